"""`gpmi serve`: studies in a browser."""

from typing import TYPE_CHECKING, Annotated

from gpmi._support.text import install_command
from gpmi.cli.messages import one_line

if TYPE_CHECKING:
    import typer


def add_serve(commands: "typer.Typer") -> None:
    import typer

    @commands.command("serve", epilog="Example: gpmi serve study.db --open")
    def serve(
        address: Annotated[
            str,
            typer.Argument(metavar="ADDRESS", help="A study file, a folder of them, or the address of a database."),
        ],
        name: Annotated[str | None, typer.Option(help="Show only this study.")] = None,
        host: Annotated[str, typer.Option(help="Listen here; 0.0.0.0 lets other machines in, with a token.")] = (
            "127.0.0.1"
        ),
        port: Annotated[int | None, typer.Option(min=0, max=65535, help="Listen there; else one that is free.")] = None,
        token: Annotated[
            str | None,
            typer.Option(envvar="GPMI_TOKEN", help="What visitors need; made if other machines are let in."),
        ] = None,
        browser: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    ) -> None:
        """Run studies from a browser: the next experiments, a table for their results, what is known.

        A database that does not exist yet begins with the page for a new study. Everything is kept in the database, and
        Ctrl-C ends the server at any time. Without --host only this machine is listened to.
        """
        from gpmi.cli.opened import mistakes

        with mistakes():
            with one_line(ImportError):
                try:
                    from gpmi.serve import run
                except ImportError as error:
                    raise ImportError(f"gpmi serve needs {error.name}: {install_command('serve')}") from error
            run(address, name=name, host=host, port=port, token=token, browser=browser, say=typer.echo)
