"""The program `gpmi`. Each command is a function in one of the modules named here, listed in its `COMMANDS`."""

import inspect
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from gpmi import __version__
from gpmi._support.text import install_command

if TYPE_CHECKING:
    import typer


def main() -> None:
    """Run the program `gpmi`."""
    try:
        program = app()
    except ImportError as error:
        sys.exit(f"gpmi: the command line needs {error.name or 'typer'}: {install_command('cli,plots')}")
    program()


def app() -> "typer.Typer":
    """Build the program with all its commands. It raises an ImportError without the extra `cli`."""
    import typer

    from gpmi.cli import backtest_command, extra_commands, run_commands, trial_commands

    program = typer.Typer(help="Optimise expensive, noisy functions with Gaussian processes.", add_completion=False)

    def show_version(wanted: bool) -> None:
        if wanted:
            typer.echo(f"gpmi {__version__}")
            raise typer.Exit()

    @program.callback(no_args_is_help=True, invoke_without_command=True)
    def options(
        version: Annotated[
            bool, typer.Option("--version", callback=show_version, is_eager=True, help="Show the version and exit.")
        ] = False,
    ) -> None:
        pass

    for module in (run_commands, trial_commands, backtest_command, extra_commands):
        for command, example in module.COMMANDS.items():
            name = command.__name__.rstrip("_")
            # `gpmi tell` and `gpmi step` take negative numbers, which would look like options.
            settings = {"ignore_unknown_options": command in (trial_commands.tell, trial_commands.step)}
            program.command(
                name, help=_paragraphs(command), epilog=f"Example: gpmi {name} {example}", context_settings=settings
            )(command)
    return program


def _paragraphs(command: Callable[..., None]) -> str:
    """Return the docstring with one line for each paragraph, which the terminal then wraps."""
    return "\n\n".join(" ".join(part.split()) for part in (inspect.getdoc(command) or "").split("\n\n"))
