"""Support vector machines on development data, as tables: a conditional pipeline that costs nothing to evaluate.

    python benchmarks/svc_tables.py build FOLDER             computes the tables, a file each; goes on where it stopped
    python benchmarks/svc_tables.py play FOLDER --seeds 50   plays gpmi, Optuna's TPE and random search; the page

The space is that of `svc` in benchmarks/constraints.py. The data sets are others than the digits there: rules are
chosen here and tried there. A table has the accuracy on rows that were not learned, on a grid: one value of C and two
of gamma in a decade, three of coef0. Between them it is interpolated, linearly in the logarithms, and rounded to a
whole number of right answers. A table takes about half a minute.
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"], "1"))

import argparse
import csv
import itertools
import time
import warnings
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from constraints import FOLDER, SVC, SVC_BUDGET, suggested
from engine import machine
from find import commit
from numpy.typing import NDArray

import gpmi

Array = NDArray[np.float64]
RUNS, PAGE = FOLDER / "svc_tables.csv", FOLDER / "svc_tables.md"
C = np.linspace(-3.0, 3.0, 7)  # log10
GAMMA = np.linspace(-5.0, 1.0, 13)
COEF0 = np.linspace(-1.0, 1.0, 3)
DEGREE = (2, 3, 4, 5)
LEARNED, TESTED = 150, 1000  # rows of made-up data
REAL = ("wine", "iris", "breast_cancer")


# Data sets


def glyphs(n: int) -> tuple[Array, Array]:
    """Made-up characters: ten classes of two smooth 8 x 8 pictures each, moved, bent and with noise, pixels 0 to 16."""
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
    """All machines of a kernel, in the order of its array."""
    names: dict[str, Any] = {"C": 10.0**C}
    if kernel == "poly":
        names = {"degree": DEGREE, **names}
    if kernel != "linear":
        names["gamma"] = 10.0**GAMMA
    if kernel in ("poly", "sigmoid"):
        names["coef0"] = COEF0
    return [dict(zip(names, values, strict=True)) for values in itertools.product(*names.values())]


def shape(kernel: str) -> tuple[int, ...]:
    own = {"linear": (), "rbf": (len(GAMMA),), "sigmoid": (len(GAMMA), len(COEF0)), "poly": (len(GAMMA), len(COEF0))}
    return (*((len(DEGREE),) if kernel == "poly" else ()), len(C), *own[kernel])


def parts(name: str, scaler: str) -> list[tuple[Array, Array, Array, Array]]:
    """What is learned and what is tested: three folds of real data, one part each of made-up data."""
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
    from sklearn import set_config
    from sklearn.svm import SVC as Machine

    set_config(assume_finite=True, skip_parameter_validation=True)
    warnings.simplefilter("ignore")
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        if (folder / f"{name}.npz").exists():
            continue
        begin = time.perf_counter()
        right = {}
        for scaler in SVC["scaler"]:
            own_parts = parts(name, scaler)
            right["rows"] = np.array(sum(len(test) for *_, test in own_parts))
            for kernel in SVC["kernel"]:
                counts = []
                for own in settings(kernel):
                    hits = 0
                    for a, ya, b, yb in own_parts:
                        machine = Machine(kernel=kernel, max_iter=20_000, **own).fit(a, ya)
                        hits += int((machine.predict(b) == yb).sum())
                    counts.append(hits)
                right[f"{scaler} {kernel}"] = np.array(counts).reshape(shape(kernel))
            print(f"{name}, {scaler}: {time.perf_counter() - begin:.0f} s", flush=True)
        np.savez_compressed(folder / f"{name}.npz", **right)


class Table:
    """The accuracy of a machine on one data set, interpolated."""

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
    """The values (m, ...) at the places of the grid (m,), interpolated along the first axis."""
    k = float(np.clip((at - grid[0]) / (grid[1] - grid[0]), 0.0, len(grid) - 1.0))
    low = min(int(k), len(grid) - 2)
    return np.asarray((1.0 - (k - low)) * values[low] + (k - low) * values[low + 1])


# Arms


def by_gpmi(f: Callable[[Any], float], seed: int) -> list[float]:
    return [t.y for t in gpmi.maximize(f, SVC, budget=SVC_BUDGET, seed=seed).trials if t.y is not None]


def by_tpe(f: Callable[[Any], float], seed: int) -> list[float]:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    study.optimize(lambda trial: f(suggested(trial)), n_trials=SVC_BUDGET)
    return [trial.value for trial in study.trials]


def by_chance(f: Callable[[Any], float], seed: int) -> list[float]:
    space: Any = gpmi.Space.of(SVC)
    u = np.random.default_rng(seed).random((SVC_BUDGET, space.unit_dim))
    return [f(space.decode(row)) for row in space.from_unit(u)]


ARMS = {"gpmi": by_gpmi, "Optuna TPE": by_tpe, "random": by_chance}


def known() -> list[dict[str, str]]:
    if not RUNS.exists():
        return []
    with RUNS.open(newline="") as file:
        return list(csv.DictReader(file))


def play(folder: Path, names: list[str], arms: list[str], seeds: int) -> None:
    done = {(row["data"], row["arm"], int(row["seed"])) for row in known()}
    with RUNS.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if not done:
            writer.writerow(("data", "arm", "seed", "best", "gap", "ties"))
        for name in names:
            f = Table(folder / f"{name}.npz")
            for arm, seed in itertools.product(arms, range(seeds)):
                if (name, arm, seed) not in done:
                    writer.writerow((name, arm, seed, *outcome(f, ARMS[arm](f, seed))))
                    file.flush()


def outcome(f: Table, y: list[float]) -> tuple[str, str, int]:
    """The best value, how far it is below the best of the table, and how many values equalled the best before them."""
    ties = sum(y[i] == max(y[:i]) for i in range(1, len(y)))
    return repr(max(y)), repr(f.best - max(y)), ties


def page(rows: list[dict[str, str]]) -> str:
    lines = [
        "# Support vector machines as tables",
        "",
        f"Written by `python benchmarks/svc_tables.py`. The pipeline of [constraints.md](constraints.md), {SVC_BUDGET} "
        "evaluations, on other data: `glyphs` are made-up characters, `six` and `rings` made-up classes. The "
        "accuracies are those of a table, interpolated, so that a run costs nothing but its suggestions. "
        "Rules for conditional spaces are tried here ([policy.md](../policy.md)).",
        "",
        *(f"- {line}" for line in machine()),
        f"- {date.today().isoformat()}, gpmi {gpmi.__version__}, page written at commit {commit()}",
        "",
        "The mean gap, best accuracy of the table minus the best of a run, with its standard error; in brackets "
        "how much more accuracy gpmi found, in pairs by seed; how many values of a run equalled the best before.",
        "",
        f"| | {' | '.join(names := list(dict.fromkeys(row['data'] for row in rows)))} |",
        "|---" * (len(names) + 1) + "|",
    ]
    for arm in ARMS:
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
    return "\n".join(lines) + "\n"


def _with_error(values: list[float], sign: str) -> str:
    return f"{np.mean(values):{sign}.4f} +- {np.std(values, ddof=1) / len(values) ** 0.5:.4f}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("build", "play"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", nargs="*", default=list(DATA))
    parser.add_argument("--arms", nargs="*", default=list(ARMS))
    parser.add_argument("--seeds", type=int, default=50)
    args = parser.parse_args()
    if args.what == "build":
        build(args.folder, args.data)
        return
    play(args.folder, args.data, args.arms, args.seeds)
    PAGE.write_text(page(known()))


if __name__ == "__main__":
    main()
