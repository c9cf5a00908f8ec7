"""Simulates a space-filling design of tsunamis and keeps it in src/gpmi/tasks/tsunami.csv.

    python benchmarks/tsunami_table.py [--points N] [--cores N]

The rows are gathered in tsunami-anew.csv beside the table, which they replace when all of them are there. If the table
has changed, learn the priors again, `python -m gpmi.paper.tasks.priors`, remove the tsunamis' rows from
docs/paper/runs.csv.gz and run `gpmi paper`.

The design is a scrambled Sobol sequence, so that its first N points fill the space for any N. A simulation has a
process with one thread; its row is appended when it is done, so the work can be stopped at any time and taken up again.
A row does not depend on the order, or the number of cores. When all points are there the rows are put in order.
Needs the extras `tsunami` and `cli`.
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"], "1"))

import argparse
import csv
import io
import multiprocessing
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib.metadata import version
from pathlib import Path

import numpy as np
from rich.console import Console
from scipy.stats import qmc

from gpmi.paper.tasks import shallow_water, tsunami
from gpmi.run.progress import progress_bar

PATH = Path(tsunami.__file__).with_name(tsunami.TABLE)
ANEW = PATH.with_name("tsunami-anew.csv")
POINTS, SEED = 200, 2014
RESULTS = (
    *("run_up", "aside_run_up", "lowest_run_up", "bare_run_up", "amplification", "bare_amplification"),
    *("time", "bare_time", "duration"),
)
COST = ("triangles", "steps")
SETTINGS = tuple(tsunami.Settings.__dataclass_fields__)
COLUMNS = ("point", *tsunami.SPACE, *RESULTS, "along", *COST, *SETTINGS, "algorithm", "anuga")
Row = dict[str, str]


def design(points: int = POINTS) -> list[dict[str, float]]:
    """The first points of the sequence, with as many digits as the table keeps."""
    u = qmc.Sobol(len(tsunami.SPACE), scramble=True, rng=SEED).random_base2(m=max(1, (points - 1).bit_length()))
    lo, hi = np.array(list(tsunami.SPACE.values())).T
    return [
        dict(zip(tsunami.SPACE, (float(f"{value:.6g}") for value in row), strict=True))
        for row in lo + u[:points] * (hi - lo)
    ]


def run(point: int, inputs: dict[str, float], settings: tsunami.Settings | None = None) -> tuple[Row, float]:
    """A row of the table, and the CPU seconds it cost."""
    begin = time.process_time()
    done = tsunami.simulate(**inputs, settings=settings)
    row = {
        "point": str(point),
        **{name: f"{value:.6g}" for name, value in inputs.items()},
        **{name: f"{getattr(done, name):.6g}" for name in RESULTS},
        "along": " ".join(f"{y:.5g}:{height:.5g}" for y, height in done.along),
        **{name: str(getattr(done, name)) for name in COST},
        **{name: f"{getattr(done.settings, name):g}" for name in SETTINGS},
        "algorithm": shallow_water.ALGORITHM,
        "anuga": version("anuga"),
    }
    return row, time.process_time() - begin


def load(path: Path) -> dict[int, Row]:
    """The rows of the table by their points. A last line without its end is what a killed run left: it is cut off."""
    if not path.exists():
        return {}
    text = path.read_text()
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        write(path, whole)
    reader = csv.DictReader(io.StringIO(whole))
    if tuple(reader.fieldnames or ()) != COLUMNS:
        raise ValueError(f"{path} has other columns than this script writes; give another --path")
    return {int(row["point"]): row for row in reader}


def lines(rows: Iterable[Row], header: bool) -> str:
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, COLUMNS, lineterminator="\n")
    if header:
        writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()


def write(path: Path, text: str) -> None:
    """The whole table or nothing."""
    part = path.with_suffix(".part")
    part.write_text(text)
    part.replace(path)


def append(path: Path, row: Row) -> None:
    """One line in one write."""
    if not path.exists() or path.stat().st_size == 0:
        write(path, lines([], header=True))
    with path.open("ab", buffering=0) as file:
        file.write(lines([row], header=False).encode())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=POINTS)
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--path", type=Path, default=ANEW)
    chosen = parser.parse_args()
    points = design(chosen.points)
    todo = [point for point in range(len(points)) if point not in load(chosen.path)]
    console = Console(stderr=True)
    bar = progress_bar(console)
    costs, failed = [], []
    context = multiprocessing.get_context("spawn")
    with bar, ProcessPoolExecutor(chosen.cores, mp_context=context) as pool:
        task = bar.add_task("", total=len(points), completed=len(points) - len(todo))
        waiting = {pool.submit(run, point, points[point]): point for point in todo}
        for future in as_completed(waiting):
            point = waiting[future]
            try:
                row, cpu = future.result()
            except Exception as error:  # told below; the other points do not depend on it
                failed.append(point)
                bar.console.print(f"point {point} failed: {type(error).__name__}: {error}")
                continue
            append(chosen.path, row)
            costs.append(cpu)
            bar.update(task, advance=1, description=f"{np.mean(costs):.1f} CPU s each")
            if not console.is_terminal:
                print(f"{time.strftime('%H:%M:%S')} point {point}: {row['amplification']}, {cpu:.1f} s", flush=True)
    rows = load(chosen.path)
    write(chosen.path, lines((rows[point] for point in sorted(rows)), header=True))
    if failed:
        sys.exit(f"{len(failed)} points failed: {failed}; run again to repeat them")
    if chosen.path == ANEW and len(rows) >= POINTS:
        ANEW.replace(PATH)


if __name__ == "__main__":
    main()
