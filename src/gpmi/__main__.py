"""`python -m gpmi`: the command line where `gpmi` is not on the path."""

from gpmi.cli import main

if __name__ == "__main__":
    main()
