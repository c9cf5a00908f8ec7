"""Does a run stay with a wrong option, where each option has its best settings elsewhere and values are noisy?

    python benchmarks/option_hills.py              writes option_hills.csv and .md in docs/benchmarks; minutes; resumes
    python benchmarks/option_hills.py --report     writes the page from the table

A function has two numbers and a choice of three options. Of *hills* each option has a hill of its own: place, width and
height are random, and the highest is 1. Of *alike* functions the options have the same hill, moved a little, and differ
by a constant. A run has 60 evaluations. It misses if its recommended point is more than 0.05 below the maximum.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import harness
import numpy as np
from problems.functions import Array

import gpmi
from gpmi import LogEI
from gpmi.policies.find import Find
from gpmi.policies.policy import PointSearch, Selected

NEEDS = "peers"
COLUMNS = ("kind", "noise", "seed", "arm", "version", "gap", "mean", "options", "seconds")
TABLE = harness.Table(harness.DOCS / "option_hills.csv", COLUMNS, COLUMNS[:4])
BUDGET, MISS, OPTIONS, DIM = 60, 0.05, ("a", "b", "c"), 2
HILLS, ALIKE = KINDS = ("hills", "alike")
NOISES = ("0", "0.02", "0.1")  # standard deviations
SEEDS, PEER_SEEDS = 24, 12
OVER_OBSERVED = Find(first=LogEI("observed"))


class ByTurns(Find):
    """Find, with LogEI over the best value in place of Reinvest at every second query."""

    def choose(self, search: PointSearch) -> Selected:
        return OVER_OBSERVED.choose(search) if search.state.t % 2 else super().choose(search)


FIND, PEER = "find", "Optuna GP"
POLICIES: dict[str, dict[str, Any]] = {
    FIND: {},
    'Find(first=LogEI("observed"))': {"policy": OVER_OBSERVED},
    "both by turns": {"policy": ByTurns()},
}
ARMS = (*POLICIES, PEER)


@dataclass(frozen=True, eq=False)
class OptionHills:
    """f(x, option i) = shift_i + height_i exp(-|(x - centre_i) / width_i|^2 / 2)."""

    centres: Array  # (k, d)
    widths: Array  # (k, d)
    heights: Array  # (k,)
    shifts: Array  # (k,)

    @classmethod
    def drawn(cls, kind: str, seed: int) -> OptionHills:
        """Draw a function."""
        k, rng = len(OPTIONS), np.random.default_rng([seed, KINDS.index(kind), 31])
        if kind == HILLS:
            heights = rng.uniform(0.4, 0.9, k)
            heights[rng.integers(k)] = 1.0
            return cls(rng.random((k, DIM)), rng.uniform(0.1, 0.25, (k, DIM)), heights, np.zeros(k))
        centres = rng.uniform(0.2, 0.8, DIM) + rng.normal(0.0, 0.1, (k, DIM))
        widths = np.tile(rng.uniform(0.2, 0.5, DIM), (k, 1))
        return cls(centres.clip(0.0, 1.0), widths, np.ones(k), rng.uniform(-0.3, 0.3, k))

    def __call__(self, x: Array, option: str) -> float:
        i = OPTIONS.index(option)
        square = float((((np.asarray(x) - self.centres[i]) / self.widths[i]) ** 2).sum())
        return float(self.shifts[i] + self.heights[i] * np.exp(-0.5 * square))

    @property
    def maximum(self) -> float:
        return float((self.shifts + self.heights).max())


def play(kind: str, noise: str, seed: int, arm: str) -> harness.Row:
    """Play one run and return its row: mean is R_T / T, options the largest number of queries with one option."""
    f, begin = OptionHills.drawn(kind, seed), time.process_time()
    errors = float(noise) * np.random.default_rng([seed, 32]).standard_normal(BUDGET)
    values: list[float] = []
    options: list[str] = []

    def evaluate(x: Array, option: str) -> float:
        options.append(option)
        values.append(f(x, option))
        return values[-1] + float(errors[len(values) - 1])

    best = by_optuna(evaluate, seed, exact=noise == "0") if arm == PEER else by_gpmi(evaluate, seed, arm)
    return {
        "kind": kind,
        "noise": noise,
        "seed": str(seed),
        "arm": arm,
        "version": harness.commit() if arm in POLICIES else (harness.installed("optuna") or ""),
        "gap": f"{f.maximum - f(*best):.4g}",
        "mean": f"{f.maximum - np.mean(values):.4g}",
        "options": str(max(map(options.count, OPTIONS))),
        "seconds": f"{time.process_time() - begin:.3g}",
    }


def by_gpmi(evaluate: Callable[[Array, str], float], seed: int, arm: str) -> tuple[Array, str]:
    """Return the recommended point of a run of gpmi."""
    space = {"x": (0.0, 1.0), "y": (0.0, 1.0), "option": list(OPTIONS)}
    opt = gpmi.Optimizer(space, budget=BUDGET, seed=seed, **POLICIES[arm])

    def parts(p: Any) -> tuple[Array, str]:
        return np.array([p["x"], p["y"]]), p["option"]

    for _ in range(BUDGET):
        p = opt.ask()
        opt.tell(p, evaluate(*parts(p)))
    return parts(opt.recommend())


def by_optuna(evaluate: Callable[[Array, str], float], seed: int, *, exact: bool) -> tuple[Array, str]:
    """Return the best trial of a run of Optuna's GPSampler."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.GPSampler(seed=seed, deterministic_objective=exact)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for _ in range(BUDGET):
        trial = study.ask()
        x = np.array([trial.suggest_float(name, 0.0, 1.0) for name in "xy"])
        study.tell(trial, evaluate(x, trial.suggest_categorical("option", list(OPTIONS))))
    found = study.best_params
    return np.array([found["x"], found["y"]]), found["option"]


def runs() -> Iterator[tuple[str, str, int, str]]:
    """Yield all runs, low seeds first; Optuna GP, which takes long, has fewer of them."""
    for seed in range(SEEDS):
        for arm in ARMS:
            if arm in POLICIES or seed < PEER_SEEDS:
                yield from ((kind, noise, seed, arm) for kind in KINDS for noise in NOISES)


def lines_of(rows: list[harness.Row], seeds: int, arms: tuple[str, ...]) -> list[str]:
    """Return a line for each kind of function and noise, over the first seeds."""
    lines = []
    for kind in KINDS:
        for noise in NOISES:
            cells = []
            for arm in arms:
                some = [
                    row
                    for row in rows
                    if (row["kind"], row["noise"], row["arm"]) == (kind, noise, arm) and int(row["seed"]) < seeds
                ]
                gaps = np.array([float(row["gap"]) for row in some])
                mean = np.mean([float(row["mean"]) for row in some]) if some else np.nan
                cells.append(f"{int((gaps > MISS).sum())} of {len(gaps)}; {mean:.2f}" if some else "")
            lines.append((kind, noise, *cells))
    return harness.table(("function", "noise", *arms), lines)


def page(rows: list[harness.Row], new: int) -> None:
    """Write the page."""
    text = (
        f"Two numbers and a choice of three options, {BUDGET} evaluations. Of *hills* each option has a hill of its "
        "own, at another place and with another height. Of *alike* functions all options have nearly the same hill. "
        f"The runs that miss, which recommend a point more than {MISS} below the maximum, then R_T / T, the mean "
        "regret of all queries. Gaps and noise are in units of the height of a hill."
    )
    lines = [
        "- `find` has nothing set but the budget and the seed. Under noise it stays too long on the first hill that it "
        "climbs: with noise every query near the top promises a little more, and the model is sure of options that "
        "were seen at bad places.",
        '- `Find(first=LogEI("observed"))` is a `policy` that users can give. It looks for improvements over the best '
        "value, noise included, and so leaves a hill earlier. *Both by turns* is no part of the library.",
        "- Optuna's GPSampler recommends its best trial, and knows whether there is noise.",
        "- The three policies were compared before on other draws with other seeds; these were listed before they were "
        "played.",
        "",
        f"## All seeds, 0 to {SEEDS - 1}",
        "",
        *lines_of(rows, SEEDS, tuple(POLICIES)),
        "",
        f"## The seeds that Optuna GP has, 0 to {PEER_SEEDS - 1}",
        "",
        *lines_of(rows, PEER_SEEDS, ARMS),
    ]
    harness.page(__file__, "A choice whose options differ, under noise", text, lines, runs=len(rows), new=new)


def main() -> None:
    args = harness.parser(__doc__, cores=True, report=True).parse_args()
    new = 0 if args.report else harness.resume(TABLE, runs(), play, args.cores)
    page(TABLE.rows(), new)


if __name__ == "__main__":
    main()
