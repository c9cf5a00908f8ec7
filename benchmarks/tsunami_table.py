"""Simulates a space-filling design of tsunamis, and stores it in paper/tasks/tsunami.csv.

    python benchmarks/tsunami_table.py [--points N] [--cores N]      hours; resumes

The rows are collected in tsunami-anew.csv next to the table, which they replace when all of them are there. If the
table has changed, learn the priors again (`python -m paper.tasks.priors`), remove the tsunamis' rows from
docs/paper/runs.csv.gz and run `make paper`.

The design is a scrambled Sobol sequence, so that its first N points fill the space for any N. A simulation has a
process with one thread. Its row is appended when it ends, so the work can be stopped at any time and resumed. A row
does not depend on the order, or on the number of cores. When all points are there the rows are sorted. Needs the extra
`cli` and ANUGA (paper/requirements.txt).
"""

from __future__ import annotations

import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib.metadata import version
from pathlib import Path

import harness
import numpy as np
from rich.console import Console
from scipy.stats import qmc

from gpmi.run.progress import progress_bar
from paper.tasks import shallow_water, tsunami

NEEDS = "ANUGA"
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
Row = harness.Row


def design(points: int = POINTS) -> list[dict[str, float]]:
    """Return the first points of the sequence, with as many digits as the table stores."""
    u = qmc.Sobol(len(tsunami.SPACE), scramble=True, rng=SEED).random_base2(m=max(1, (points - 1).bit_length()))
    lo, hi = np.array(list(tsunami.SPACE.values())).T
    return [
        dict(zip(tsunami.SPACE, (float(f"{value:.6g}") for value in row), strict=True))
        for row in lo + u[:points] * (hi - lo)
    ]


def run(point: int, inputs: dict[str, float], settings: tsunami.Settings | None = None) -> tuple[Row, float]:
    """Simulate a point, and return its row and the CPU seconds it cost."""
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


def table(path: Path) -> harness.Table:
    """Return the table at a path."""
    return harness.Table(path, COLUMNS, ("point",))


def main() -> None:
    parser = harness.parser(__doc__, cores=True)
    parser.add_argument("--points", type=int, default=POINTS)
    parser.add_argument("--out", type=Path, default=ANEW)
    chosen = parser.parse_args()
    points, rows = design(chosen.points), table(chosen.out)
    todo = [point for (point,) in rows.missing((point,) for point in range(len(points)))]
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
            except Exception as error:  # reported below; the other points do not depend on it
                failed.append(point)
                bar.console.print(f"point {point} failed: {type(error).__name__}: {error}")
                continue
            rows.append(row)
            costs.append(cpu)
            bar.update(task, advance=1, description=f"{np.mean(costs):.1f} CPU s each")
            if not console.is_terminal:
                print(f"{time.strftime('%H:%M:%S')} point {point}: {row['amplification']}, {cpu:.1f} s", flush=True)
    rows.tidy(lambda row: int(row["point"]), latest=True)
    if failed:
        sys.exit(f"{len(failed)} points failed: {failed}; run again to repeat them")
    if chosen.out == ANEW and len(rows.keys()) >= POINTS:
        ANEW.replace(PATH)


if __name__ == "__main__":
    main()
