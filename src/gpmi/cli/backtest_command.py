"""The command that plays studies on a table of past experiments."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from gpmi._support import folders, processes
from gpmi.cli.common import study_errors

PICTURES = (".png", ".pdf", ".svg")


def backtest(
    table: Annotated[
        Path,
        typer.Argument(help="The file with the experiments: .csv, .tsv, .xlsx, .ods or .parquet.", metavar="TABLE"),
    ],
    value: Annotated[str, typer.Option(help="The column with what was measured. The others are parameters.")],
    goal: Annotated[str, typer.Option(help="Whether large values are good (max) or small ones (min).")] = "max",
    ignore: Annotated[
        list[str] | None,
        typer.Option(help='A column that is no parameter, or a pattern such as "*_id"; repeat the option for several.'),
    ] = None,
    batch: Annotated[
        list[int] | None,
        typer.Option(help="Experiments at the same time, beside one at a time; repeat the option for several sizes."),
    ] = None,
    budget: Annotated[
        int | None, typer.Option(help="Experiments of a run; by default the number of rows, 100 at most.")
    ] = None,
    seeds: Annotated[int, typer.Option(help="The number of runs.")] = 20,
    seed: Annotated[int, typer.Option(help="The seed of the first run. The same seed gives the same result.")] = 0,
    as_done: Annotated[
        bool, typer.Option("--as-done", help="The rows are in the order in which they were done: compare with it.")
    ] = False,
    repeats: Annotated[
        bool, typer.Option("--repeats", help="A row may be tried again, as if values are noisy.")
    ] = False,
    workers: Annotated[int | None, typer.Option(help="The number of processes; by default one for each core.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="The picture to write: .png, .pdf or .svg; backtest.png if Matplotlib is there.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON; a picture is then written only for --out.")
    ] = False,
) -> None:
    """Play studies on a table of past experiments, and say how many of them gpmi would have saved.

    Each run asks for a row, reads its value in the table, and asks for the next one. It is compared with a random order
    of the rows, whose expectation is computed exactly. Rows with equal parameters are replicates; rows with an empty
    cell are left out and counted.
    """
    with study_errors():
        from gpmi.run.backtest import backtest as play

        picture = _picture(out, wanted=not as_json)
        result = play(
            table,
            value,
            goal=goal,  # type: ignore[arg-type]  # checked there
            ignore=ignore or (),
            batch=batch or (),
            budget=budget,
            seeds=seeds,
            seed=seed,
            as_done=as_done,
            repeats=repeats,
            workers=processes.available_cores() if workers is None else workers,
            progress=True,
        )
        if picture is not None:
            result.plot().savefig(picture, dpi=110)
    if as_json:
        typer.echo(json.dumps(result.to_json()))
        return
    for event in result.events:
        typer.echo(f"gpmi: {event.message}", err=True)
    typer.echo(repr(result))
    if picture is not None:
        typer.echo(f"picture: {picture}")


def _picture(out: Path | None, *, wanted: bool) -> Path | None:
    """Return where the picture goes; None if there is none. Refuse a path before time is spent on the runs."""
    if out is None:
        from importlib.util import find_spec

        return Path("backtest.png") if wanted and find_spec("matplotlib") is not None else None
    if out.suffix not in PICTURES:
        raise ValueError(f"out is {str(out)!r}; give a file that ends in {', '.join(PICTURES)}")
    from gpmi.views.figures.style import style

    style()  # refuses if there is no Matplotlib
    folders.writable_folder("out", out, out.parent)
    return out


COMMANDS: dict[Callable[..., None], str] = {
    backtest: "experiments.csv --value yield --batch 5",
}
