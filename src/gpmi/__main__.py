"""`python -m gpmi`: the command line, for whoever has no `gpmi` on the path."""

from gpmi.cli import main

if __name__ == "__main__":
    main()
