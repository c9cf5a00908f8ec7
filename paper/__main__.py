"""Run the paper's experiments: `python -m paper`, from the root of the repository."""

from pathlib import Path
from typing import Annotated

import typer

import paper
from gpmi.cli.common import INTERRUPTED, one_line_errors
from gpmi.run.progress import lasting_console

app = typer.Typer(add_completion=False)


@app.command(epilog="Example: python -m paper --task branin --runs 10 --out pages")
def main(
    runs: Annotated[int, typer.Option(help="Repetitions of each algorithm on each task.")] = 100,
    horizon: Annotated[int, typer.Option(help="Queries in a run; ten times as many for the erratum.")] = 200,
    task: Annotated[list[str] | None, typer.Option(help="Run only this task; repeat the option for several.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same queries.")] = 0,
    cores: Annotated[int | None, typer.Option(help="The number of processes; by default one for each core.")] = None,
    out: Annotated[Path, typer.Option(help="The folder for paper.md, its figures and its table.")] = Path("gpmi-paper"),
) -> None:
    """Run the paper's experiments again, draw its figures and report what reproduces.

    It can be stopped at any time. The same command continues where it stopped.
    """
    chosen = {} if cores is None else {"cores": cores}
    with one_line_errors(ValueError, ImportError):
        plan = paper.Plan(out, tuple(task or ()), runs, horizon, seed, **chosen)
    console = lasting_console()
    with one_line_errors(OSError, ValueError):
        try:
            written = paper.reproduce(plan, console)
        except KeyboardInterrupt:
            typer.echo("gpmi: stopped; the same command continues", err=True)
            raise typer.Exit(INTERRUPTED) from None
    console.print(f"page: {written}", soft_wrap=True, highlight=False, markup=False)


if __name__ == "__main__":
    app()
