"""Which rules for conditional spaces work? The pipeline of `constraints.py` on other data, as tables.

    python benchmarks/svc_tables.py FOLDER             computes the tables, a file each, and plays; writes the page
    python benchmarks/svc_tables.py FOLDER --seeds 50 --arms gpmi     some runs only
    python benchmarks/svc_tables.py --report           writes the page from docs/benchmarks/svc_tables.csv

gpmi, Optuna's TPE and random search tune a support vector machine, whose parameters depend on each other. The data
sets are not the digits of `constraints.py`: rules are chosen here and tried there. A table has the accuracy on rows
that were not learned, on a grid: one value of C and two of gamma in a decade, three of coef0. Between them it is
interpolated, linearly in the logarithms, and rounded to a whole number of right answers. So an evaluation costs
nothing. A table takes about half a minute, all runs an hour. Tables that are in FOLDER, and runs that are in the csv,
are not made again.
"""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Iterable
from functools import cache, partial
from pathlib import Path
from typing import Any

import harness
import numpy as np
from problems import pipeline
from problems.functions import Array

NEEDS = "peers"
COLUMNS = ("data", "arm", "seed", "best", "gap", "ties")
RUNS = harness.Table(harness.DOCS / "svc_tables.csv", COLUMNS, COLUMNS[:3])
C = np.linspace(-3.0, 3.0, 7)  # log10
GAMMA = np.linspace(-5.0, 1.0, 13)
COEF0 = np.linspace(-1.0, 1.0, 3)
DEGREE = (2, 3, 4, 5)
LEARNED, TESTED = 150, 1000  # rows of made-up data
REAL = ("wine", "iris", "breast_cancer")


# Data sets


def glyphs(n: int) -> tuple[Array, Array]:
    """Return made-up characters: ten classes of two smooth 8 x 8 pictures, moved, rotated and noisy, pixels 0 to 16."""
    rng = np.random.default_rng(14)
    waves = np.arange(1, 4)
    at = (np.arange(8) + 0.5) / 8.0
    shapes = rng.normal(size=(10, 2, 3, 3)) / (waves[:, None] * waves)
    y = np.arange(n) % 10
    rows = []
    for label in y:
        shape = shapes[label, rng.integers(2)]
        u, v = np.meshgrid(at, at, indexing="ij")
        angle, (du, dv) = 0.18 * rng.normal(), 0.06 * rng.normal(size=2)
        u, v = u - 0.5, v - 0.5
        u, v = np.cos(angle) * u - np.sin(angle) * v + 0.5 + du, np.sin(angle) * u + np.cos(angle) * v + 0.5 + dv
        basis = [[np.cos(np.pi * i * u) * np.cos(np.pi * j * v) for j in waves] for i in waves]
        picture = np.einsum("ij,ijuv->uv", shape, np.array(basis))
        rows.append(np.clip(np.round(16.0 / (1.0 + np.exp(-4.0 * picture)) + rng.normal(size=(8, 8))), 0, 16).ravel())
    return np.array(rows), y.astype(float)


def loaded(name: str) -> tuple[Array, Array]:
    """Return the inputs and the labels of a data set."""
    from sklearn import datasets

    if name == "glyphs":
        return glyphs(LEARNED + TESTED)
    if name in REAL:
        x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        return x, y
    if name == "six":  # columns on scales from 0.1 to 10
        x, y = datasets.make_classification(
            LEARNED + TESTED,
            16,
            n_informative=10,
            n_classes=6,
            n_clusters_per_class=1,
            class_sep=2.5,
            flip_y=0.0,
            random_state=6,
        )
        return x * 10.0 ** np.linspace(-1.0, 1.0, 16), y
    rng = np.random.default_rng(5)  # rings: two of four columns decide, with four classes
    x = rng.normal(size=(LEARNED + TESTED, 4))
    y = np.digitize(np.hypot(x[:, 0], x[:, 1]) + 0.02 * rng.normal(size=len(x)), [0.75, 1.2, 1.7])
    return x, y


DATA = ("glyphs", "six", "rings")  # those of REAL can be built, too; they have taken no part so far


# Tables


def settings(kernel: str) -> list[dict[str, Any]]:
    """Return all settings of a kernel, in the order of its array."""
    names: dict[str, Any] = {"C": 10.0**C}
    if kernel == "poly":
        names = {"degree": DEGREE, **names}
    if kernel != "linear":
        names["gamma"] = 10.0**GAMMA
    if kernel in ("poly", "sigmoid"):
        names["coef0"] = COEF0
    return [dict(zip(names, values, strict=True)) for values in itertools.product(*names.values())]


def shape(kernel: str) -> tuple[int, ...]:
    """Return the shape of the array of a kernel."""
    own = {"linear": (), "rbf": (len(GAMMA),), "sigmoid": (len(GAMMA), len(COEF0)), "poly": (len(GAMMA), len(COEF0))}
    return (*((len(DEGREE),) if kernel == "poly" else ()), len(C), *own[kernel])


def parts(name: str, scaler: str) -> list[tuple[Array, Array, Array, Array]]:
    """Return the inputs and labels to learn and to test: three folds of real data, one split of made-up data."""
    from sklearn.model_selection import StratifiedKFold
    from sklearn.preprocessing import MinMaxScaler, StandardScaler

    x, y = loaded(name)
    folds = [(slice(LEARNED), slice(LEARNED, None))]
    if name in REAL:
        folds = StratifiedKFold(3, shuffle=True, random_state=0).split(x, y)
    found = []
    for train, test in folds:
        a, b = x[train], x[test]
        if scaler != "none":
            scale = (StandardScaler() if scaler == "standard" else MinMaxScaler()).fit(a)
            a, b = scale.transform(a), scale.transform(b)
        found.append((a, y[train], b, y[test]))
    return found


def build(folder: Path, names: list[str]) -> None:
    """Compute the tables that are missing in the folder."""
    from sklearn import set_config
    from sklearn.svm import SVC

    set_config(assume_finite=True, skip_parameter_validation=True)
    warnings.simplefilter("ignore")
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        if (folder / f"{name}.npz").exists():
            continue
        begin = time.perf_counter()
        right = {}
        for scaler in pipeline.SPACE["scaler"]:
            own_parts = parts(name, scaler)
            right["rows"] = np.array(sum(len(test) for *_, test in own_parts))
            for kernel in pipeline.SPACE["kernel"]:
                counts = []
                for own in settings(kernel):
                    hits = 0
                    for a, ya, b, yb in own_parts:
                        model = SVC(kernel=kernel, max_iter=20_000, **own).fit(a, ya)
                        hits += int((model.predict(b) == yb).sum())
                    counts.append(hits)
                right[f"{scaler} {kernel}"] = np.array(counts).reshape(shape(kernel))
            harness.say(f"{name}, {scaler}: {time.perf_counter() - begin:.0f} s")
        np.savez_compressed(folder / f"{name}.npz", **right)


class Table:
    """The accuracy of the pipeline on one data set, interpolated."""

    def __init__(self, path: Path) -> None:
        with np.load(path) as file:
            self.right = {key: np.asarray(file[key], dtype=float) for key in file.files}
        self.rows = int(self.right.pop("rows"))
        self.best = max(float(own.max()) for own in self.right.values()) / self.rows

    def __call__(self, p: dict[str, Any]) -> float:
        values = self.right[f"{p['scaler']} {p['kernel']}"]
        if "degree" in p:
            values = values[DEGREE.index(p["degree"])]
        values = _between(values, C, np.log10(p["C"]))
        if "gamma" in p:
            values = _between(values, GAMMA, np.log10(p["gamma"]))
        if "coef0" in p:
            values = _between(values, COEF0, p["coef0"])
        return round(float(values)) / self.rows


def _between(values: Array, grid: Array, at: float) -> Array:
    """Return the values (m, ...) on a grid (m,), interpolated along the first axis."""
    k = float(np.clip((at - grid[0]) / (grid[1] - grid[0]), 0.0, len(grid) - 1.0))
    low = min(int(k), len(grid) - 2)
    return np.asarray((1.0 - (k - low)) * values[low] + (k - low) * values[low + 1])


# Runs


@cache
def table(folder: Path, name: str) -> Table:
    """Return the table of a data set."""
    return Table(folder / f"{name}.npz")


def play(folder: Path, name: str, arm: str, seed: int) -> tuple[Any, ...]:
    """Play one run and return its row."""
    f = table(folder, name)
    return name, arm, seed, *outcome(f, pipeline.TOOLS[arm](f, seed))


def outcome(f: Table, y: list[float]) -> tuple[str, str, int]:
    """Return the best value, its gap to the best of the table, and how many values equalled the best before them."""
    ties = sum(y[i] == max(y[:i]) for i in range(1, len(y)))
    return repr(max(y)), repr(f.best - max(y)), ties


def page(rows: list[harness.Row], new: int) -> None:
    """Write the page."""
    text = (
        f"The pipeline of [constraints.md](constraints.md), {pipeline.BUDGET} evaluations, on other data: `glyphs` are "
        "made-up characters, `six` and `rings` made-up classes. The accuracies are those of a table, interpolated, so "
        "that a run costs nothing but its suggestions. Rules for conditional spaces are tried here "
        "([a note](../notes/plateaus.md))."
    )
    lines = [
        "The mean gap, best accuracy of the table minus the best of a run, with its standard error; in brackets "
        "how much more accuracy gpmi found, in pairs by seed; how many values of a run equalled the best before.",
        "",
        f"| | {' | '.join(names := list(dict.fromkeys(row['data'] for row in rows)))} |",
        "|---" * (len(names) + 1) + "|",
    ]
    for arm in pipeline.TOOLS:
        cells = []
        for name in names:
            own, ours = ({r["seed"]: r for r in rows if (r["data"], r["arm"]) == (name, a)} for a in (arm, "gpmi"))
            if not own:
                cells.append("")
                continue
            cells.append(_with_error([float(row["gap"]) for row in own.values()], ""))
            pairs = [float(own[seed]["gap"]) - float(ours[seed]["gap"]) for seed in own if seed in ours]
            if arm != "gpmi" and pairs:
                cells[-1] += f" ({_with_error(pairs, '+')})"
            ties = np.mean([int(row["ties"]) for row in own.values()])
            cells[-1] += f"; {ties:.1f} ties; {len(own)} runs"
        lines.append(f"| {arm} | {' | '.join(cells)} |")
    harness.page(__file__, "Support vector machines as tables", text, lines, runs=len(rows), new=new)


def _with_error(values: list[float], sign: str) -> str:
    return f"{np.mean(values):{sign}.4f} +- {np.std(values, ddof=1) / len(values) ** 0.5:.4f}"


def main() -> None:
    parser = harness.parser(__doc__, cores=True, report=True)
    parser.add_argument("folder", type=Path, nargs="?", help="where the tables are, or go to")
    parser.add_argument("--data", nargs="+", default=list(DATA), choices=[*DATA, *REAL])
    parser.add_argument("--arms", nargs="+", default=list(pipeline.TOOLS), choices=list(pipeline.TOOLS))
    parser.add_argument("--seeds", type=int, default=50)
    args = parser.parse_args()
    new = 0
    if not args.report:
        if args.folder is None:
            parser.error("give a FOLDER for the tables, or --report")
        build(args.folder, args.data)
        runs: Iterable[Any] = itertools.product(args.data, args.arms, range(args.seeds))
        new = harness.resume(RUNS, runs, partial(play, args.folder), args.cores)
    page(RUNS.rows(), new)


if __name__ == "__main__":
    main()
