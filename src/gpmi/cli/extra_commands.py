"""Commands that are not about one study: serve and demo."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from gpmi._support.text import install_command
from gpmi.cli.common import one_line_errors, study_errors, study_of_file


def serve(
    address: Annotated[
        str,
        typer.Argument(
            metavar="ADDRESS", help="A database file, a folder of them, a server's address, or a study file."
        ),
    ],
    name: Annotated[str | None, typer.Option(help="Show only this study.")] = None,
    host: Annotated[
        str, typer.Option(help="The address to listen on; 0.0.0.0 admits other machines, with a token.")
    ] = "127.0.0.1",
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="The port to listen on; by default a free one.")
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(envvar="GPMI_TOKEN", help="The token visitors need; generated if other machines may connect."),
    ] = None,
    public_url: Annotated[
        str | None,
        typer.Option(help="The address of a proxy in front of the server, such as https://lab.example.org."),
    ] = None,
    browser: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Run studies from a browser: ask for experiments, enter their results, see what is known.

    If the database does not exist yet, the first page creates a study. A study file (.toml) creates the study that it
    describes, and only that one is shown. Everything is stored in the database, so Ctrl-C
    may end the server at any time. Without --host only this machine can connect. Behind a proxy, --public-url names
    the address that visitors use; they need the token then.
    """
    with study_errors():
        with one_line_errors(ImportError):
            try:
                from gpmi.serve import run
            except ImportError as error:
                raise ImportError(f"gpmi serve needs {error.name}: {install_command('serve')}") from error
        if address.endswith(".toml"):
            address, name = study_of_file(address, name)
        run(
            address,
            name=name,
            host=host,
            port=port,
            token=token,
            public_url=public_url,
            browser=browser,
            say=typer.echo,
        )


def demo(
    budget: Annotated[
        int | None,
        typer.Option(help="The number of evaluations; by default 60, 30 with --objectives, 20 with --curves."),
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same run.")] = 0,
    out: Annotated[Path, typer.Option(help="The picture to write: .png, .pdf or .svg.")] = Path("gpmi-demo.png"),
    noise: Annotated[bool, typer.Option("--noise", help="Every value is measured with an error.")] = False,
    objectives: Annotated[bool, typer.Option("--objectives", help="A high yield for a low cost.")] = False,
    curves: Annotated[bool, typer.Option("--curves", help="Stop trainings early that will hardly win.")] = False,
) -> None:
    """Find the highest of four peaks and draw how it went; or show noise, two objectives, or trainings."""
    from gpmi.cli import demo as demonstration
    from gpmi.run.progress import lasting_console

    kinds: dict[demonstration.Kind, bool] = {"noise": noise, "objectives": objectives, "curves": curves}
    chosen = [name for name, is_on in kinds.items() if is_on]
    kind = chosen[0] if chosen else "hills"
    evaluations = demonstration.BUDGETS[kind] if budget is None else budget
    with one_line_errors(ValueError, ImportError):
        if len(chosen) > 1:
            raise ValueError(f"there is --{' and --'.join(chosen)}; give one of them")
        demonstration.check(budget=evaluations, seed=seed, out=out)
    with one_line_errors(OSError):
        demonstration.demo(
            kind=kind, budget=evaluations, seed=seed, out=out, console=lasting_console(), program=program_name()
        )


def program_name() -> str:
    """Return the name of this program for the user's shell, or its path if the shell would not find it by name."""
    called = sys.argv[0]
    installed = shutil.which("gpmi")
    return (
        called
        if Path(called).name == "gpmi" and (installed is None or not Path(installed).samefile(called))
        else "gpmi"
    )


COMMANDS: dict[Callable[..., None], str] = {
    serve: "study.db --open",
    demo: "--budget 30 --out picture.svg",
}
