"""The paper's experiments, figures and claims, run again: `python -m paper`."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from gpmi._support import checks
from gpmi._support.folders import writable_folder
from gpmi._support.processes import available_cores
from gpmi._support.text import install_command
from gpmi.run.progress import progress_bar
from paper.bounds import Bounds, bounds_of
from paper.experiment import ERRATUM, SOURCES, Cell, cells, run_all
from paper.table import Row, append, open_table, pack

__all__ = ["Bounds", "Plan", "bounds_of", "reproduce"]

if TYPE_CHECKING:
    from rich.console import Console

MOST = 10_000  # runs, queries in a run, processes: beyond it the list of runs does not fit into memory; our choice


@dataclass(frozen=True)
class Plan:
    """What to run and where to write it. A plan that cannot work is refused with a ValueError or an ImportError."""

    out: Path  # the folder of paper.md; tables and figures go to out/paper
    tasks: Sequence[str] = ()  # all, if none is named
    runs: int = 100
    horizon: int = 200  # the paper's tasks; ten times as many queries for the erratum
    seed: int = 0
    cores: int = field(default_factory=available_cores)

    def __post_init__(self) -> None:
        for name in self.tasks:
            if name not in SOURCES:
                raise ValueError(f"task is {name!r}; give one of {', '.join(SOURCES)}")
        checks.whole("runs", self.runs, 1, MOST)
        checks.whole("horizon", self.horizon, 1, MOST)
        checks.whole("seed", self.seed, 0, checks.LARGEST_SEED)
        checks.whole("cores", self.cores, 1, MOST)
        try:
            import matplotlib  # noqa: F401
        except ImportError as error:
            raise ImportError(f"the figures need matplotlib: {install_command('cli,plots')}") from error
        writable_folder("out", self.out, self.folder)

    @property
    def folder(self) -> Path:
        """Where the table and the figures are."""
        return self.out / "paper"

    @property
    def cells(self) -> list[Cell]:
        """Every run that is wanted."""
        return cells(self.tasks or tuple(SOURCES), self.runs, self.horizon, self.seed)


def reproduce(plan: Plan, console: Console) -> Path:
    """Make the runs that are missing in the table, then write the figures and the page; returns the path of the page.

    The table is paper/runs.csv; paper/runs.csv.gz is a copy of the rows that the page is made of.
    """
    from paper import figures, page
    from paper.summary import summarise

    path, packed, about = (plan.folder / name for name in ("runs.csv", "runs.csv.gz", "about.txt"))
    wanted = plan.cells
    done = {row.key: row for row in open_table(path, packed)}
    missing = [cell for cell in wanted if cell.key not in done]
    if missing or not about.exists():
        about.write_text(_machine())
    if missing:
        console.print(f"{len(wanted)} runs, {len(missing)} of them to do", highlight=False)
        for row in _run(missing, path, plan.cores, console):
            done[row.key] = row
    rows = [done[cell.key] for cell in wanted]
    pack(rows, packed)
    summaries = summarise(rows)
    there = {row.task for row in rows}
    bounds = {task: bounds_of(task, 10 * plan.horizon) for task in ERRATUM if task in there}
    figures.save(figures.all_figures(summaries, bounds), plan.folder)
    written, half_written = plan.out / "paper.md", plan.out / ".paper.md"
    half_written.write_text(page.text(summaries, bounds, about.read_text().strip()), encoding="utf-8")
    half_written.replace(written)
    return written


def _run(missing: Sequence[Cell], path: Path, cores: int, console: Console) -> Iterator[Row]:
    """The rows of the missing runs, each written to the table as soon as it is done."""
    with progress_bar(console) as progress:
        bar = progress.add_task("", total=len(missing))
        for rows in run_all(missing, cores):
            append(path, rows)
            progress.update(bar, advance=len(rows), description=f"{rows[0].task} {rows[0].repetition + 1}")
            yield from rows


def _machine() -> str:
    return (
        f"run on {date.today()}, {platform.machine()}, Python {platform.python_version()}, "
        f"NumPy {version('numpy')}, SciPy {version('scipy')}."
    )
