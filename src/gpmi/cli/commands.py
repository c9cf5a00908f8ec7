"""The commands: those about studies, `gpmi demo` and `gpmi paper`."""

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from gpmi import __version__
from gpmi._support.text import install_command
from gpmi.cli.messages import INTERRUPTED, one_line
from gpmi.cli.serving import add_serve
from gpmi.cli.studies import add_init, add_run, add_work

if TYPE_CHECKING:
    import typer


def main() -> None:
    """The program `gpmi`."""
    try:
        command = app()
    except ImportError as error:
        sys.exit(f"gpmi: the command line needs {error.name or 'typer'}: {install_command('cli,plots')}")
    command()


def app() -> "typer.Typer":
    """The commands; an ImportError without the extra `cli`."""
    import typer

    from gpmi.cli.trials import add_trials

    commands = typer.Typer(help="Gaussian process optimisation with mutual information.", add_completion=False)

    def show_version(wanted: bool) -> None:
        if wanted:
            typer.echo(f"gpmi {__version__}")
            raise typer.Exit()

    @commands.callback(no_args_is_help=True, invoke_without_command=True)
    def options(
        version: Annotated[
            bool, typer.Option("--version", callback=show_version, is_eager=True, help="Show the version and exit.")
        ] = False,
    ) -> None:
        pass

    add_init(commands)
    add_run(commands)
    add_work(commands)
    add_trials(commands)
    add_serve(commands)
    _add_demo(commands)
    _add_paper(commands)
    return commands


def _add_demo(commands: "typer.Typer") -> None:
    import typer

    @commands.command("demo", epilog="Example: gpmi demo --budget 30 --out picture.svg")
    def run_demo(
        budget: Annotated[int | None, typer.Option(help="How many evaluations: 60, or 20 simulations.")] = None,
        seed: Annotated[int, typer.Option(help="The same seed gives the same run.")] = 0,
        out: Annotated[Path, typer.Option(help="The picture: .png, .pdf or .svg.")] = Path("gpmi-demo.png"),
        tsunami: Annotated[
            bool, typer.Option("--tsunami", help="Maximise a tsunami's run-up behind an island, by real simulations.")
        ] = False,
    ) -> None:
        """Maximise the tilted Himmelblau function, or a simulator, and draw how it went."""
        from gpmi.cli.demo import check, demo
        from gpmi.run.progress import lasting_console

        evaluations = (20 if tsunami else 60) if budget is None else budget
        with one_line(ValueError, ImportError):
            check(budget=evaluations, seed=seed, out=out, tsunami=tsunami)
        with one_line(OSError):
            demo(budget=evaluations, seed=seed, out=out, console=lasting_console(), tsunami=tsunami, program=program())


def _add_paper(commands: "typer.Typer") -> None:
    import typer

    @commands.command("paper", epilog="Example: gpmi paper --task branin --runs 10 --out pages")
    def run_paper(
        runs: Annotated[int, typer.Option(help="Repetitions of each algorithm on each task.")] = 100,
        horizon: Annotated[int, typer.Option(help="Queries in a run; ten times as many for the erratum.")] = 200,
        task: Annotated[list[str] | None, typer.Option(help="Only this task; give it again for more.")] = None,
        seed: Annotated[int, typer.Option(help="The same seed gives the same queries.")] = 0,
        cores: Annotated[int | None, typer.Option(help="Processes; all cores unless given.")] = None,
        out: Annotated[Path, typer.Option(help="The folder of paper.md, its figures and its table.")] = Path(
            "gpmi-paper"
        ),
    ) -> None:
        """Run the paper's experiments again; write its figures and what reproduces.

        It can be stopped at any time: the same command goes on where it was.
        """
        from gpmi import paper
        from gpmi.run.progress import lasting_console

        chosen = {} if cores is None else {"cores": cores}
        with one_line(ValueError, ImportError):
            plan = paper.Plan(out, tuple(task or ()), runs, horizon, seed, **chosen)
        console = lasting_console()
        with one_line(OSError, ValueError):
            try:
                written = paper.reproduce(plan, console)
            except KeyboardInterrupt:
                typer.echo("gpmi: stopped; the same command goes on where it was", err=True)
                raise typer.Exit(INTERRUPTED) from None
        console.print(f"page: {written}", soft_wrap=True, highlight=False, markup=False)


def program() -> str:
    """How the user calls this program: its name, or its path where the shell would not find it by its name."""
    called = sys.argv[0]
    found = shutil.which("gpmi")
    return called if Path(called).name == "gpmi" and (found is None or not Path(found).samefile(called)) else "gpmi"
