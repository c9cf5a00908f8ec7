"""Is a slip of the decimal point found, and what does it cost until somebody answers?

    python benchmarks/doubts.py [--cores 2]   writes docs/benchmarks/doubts.md and .csv; five minutes; resumes
    python benchmarks/doubts.py --report      writes the page from the table

Values are like measured ones: 60 on average over the space, with a standard deviation of 10. The rule was chosen on
seeds below 100. Seeds 100 and 101 were seen before its last change, so they are not here.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import harness
import numpy as np
import problems
from problems.functions import Array, hartmann3

import gpmi

COLUMNS = ("function", "noise", "seed", "arm", "at", "flagged", "false", "open", "regret", "judging", "seconds")
TABLE = harness.Table(harness.DOCS / "doubts.csv", COLUMNS, COLUMNS[:4])

NOISES, SEEDS = (0.01, 0.1, 0.3), (102,)  # sd of f over the space
T, FIRST, LAST = 40, 8, 36  # values of a run, and the places of the first and the last slip
MEAN, SD = 60.0, 10.0
ARMS = {
    "slip": "with a slip, which nobody answers",
    "clean": "without a slip",
    "kept": "with a slip, which is confirmed as soon as it is told: as before there were doubts",
}


def cliff(x: Array) -> float:
    """A plateau with hills, and nothing at all beyond an edge."""
    return 0.0 if x[0] + 0.5 * x[1] > 0.9 else 3.0 + float(np.sin(6.0 * x[0]) * np.cos(4.0 * x[1]))


def step(x: Array) -> float:
    """Two levels with an edge between them."""
    return 50.0 + 30.0 * (x[0] > 0.6) + 10.0 * float(np.sin(5.0 * x[1]))


def low_region(x: Array) -> float:
    """Hartmann-3, but for a ball where everything is far lower."""
    return 90.0 + 2.0 * hartmann3(x) - 60.0 * (float(np.sum((x - 0.2) ** 2)) < 0.06)


def bowl_in_a_plain(x: Array) -> float:
    """A hill that falls off to a plain at an edge."""
    r2 = float(np.sum((x - 0.55) ** 2))
    return 10.0 - 20.0 * r2 if r2 < 0.25 else -15.0


def spike(x: Array) -> float:
    """A wide hill and a spike that is three times as high."""
    wide, thin = float(np.sum((x - 0.4) ** 2)), float(np.sum((x - (0.7, 0.2)) ** 2))
    return float(np.exp(-20.0 * wide) + 2.0 * np.exp(-400.0 * thin))


@dataclass(frozen=True, eq=False)
class Case:
    """A function in units of a measurement, and its maximum."""

    space: list[tuple[float, float]]
    f: Callable[[Any], float]
    maximum: float
    mean: float
    sd: float

    def value(self, x: Any) -> float:
        """Return what is measured at x without noise."""
        return MEAN + SD * (self.f(x) - self.mean) / self.sd

    def regret(self, x: Any) -> float:
        """Return the regret of a point, in standard deviations of f."""
        return max(self.maximum - self.f(x), 0.0) / self.sd


EDGES: dict[str, tuple[int, Callable[[Array], float], float]] = {  # dimension, function, maximum
    "spike": (2, spike, 2.0 + float(np.exp(-2.6))),
    "cliff": (2, cliff, 4.0),
    "step": (2, step, 90.0),
    "low region": (3, low_region, 90.0 + 2.0 * 3.862782147820755),
    "bowl in a plain": (3, bowl_in_a_plain, 10.0),
}
KINDS = {
    "smooth": ("branin", "hartmann-3", "hartmann-6", "himmelblau", "styblinski-tang-4"),
    "spiky": ("ackley-5", "michalewicz-5", "mixture", "spike"),
    "cliffs and low regions": ("cliff", "step", "low region", "bowl in a plain"),
}
FUNCTIONS = tuple(name for names in KINDS.values() for name in names)


@cache
def case(name: str) -> Case:
    """Return a function by its name."""
    if name in EDGES:
        d, f, maximum = EDGES[name]
        space = [(0.0, 1.0)] * d
    else:
        problem = problems.make(name, 0)
        assert problem.maximum is not None
        space, f, maximum = problem.space, problem.f, problem.maximum
    low, high = np.array(space).T
    values = np.array([f(x) for x in np.random.default_rng(0).uniform(low, high, (4000, len(space)))])
    return Case(space, f, maximum, float(values.mean()), float(values.std()))


def play(name: str, noise: float, seed: int, arm: str) -> tuple[Any, ...]:
    """Play a run, and return its row."""
    problem = case(name)
    at = int(np.random.default_rng([seed, 8, FUNCTIONS.index(name)]).integers(FIRST, LAST + 1))
    factor = 10.0 if np.random.default_rng([seed, 9, FUNCTIONS.index(name)]).random() < 0.5 else 0.1
    errors = np.random.default_rng([seed, 7]).standard_normal(T) * noise * SD
    opt, spent, flags = gpmi.Optimizer(problem.space, seed=seed, budget=T), 0.0, dict[int, int]()
    judge = opt._strategy.doubts

    def timed(*given: Any) -> Any:
        nonlocal spent
        begin = time.process_time()
        try:
            return judge(*given)
        finally:
            spent += time.process_time() - begin

    vars(opt._strategy)["doubts"] = timed
    start = time.process_time()
    for n in range(T):
        x = opt.ask()
        slips = n == at and arm != "clean"
        trial = opt.tell(x, (problem.value(x) + float(errors[n])) * (factor if slips else 1.0))
        if arm == "kept":
            opt.confirm(trial)
        for doubtful in (other for other in opt.trials if other.doubt is not None):
            flags.setdefault(doubtful.number, n)
    seconds = time.process_time() - start
    late = flags.pop(at) - at if arm == "slip" and at in flags else ""
    still = sum(trial.doubt is not None for trial in opt.trials)
    regret = problem.regret(opt.recommend())
    return (name, noise, seed, arm, at, late, len(flags), still, f"{regret:.5g}", f"{spent:.3f}", f"{seconds:.3f}")


def mean(rows: list[Mapping[str, str]], column: str) -> float:
    """Return the mean of a column; nan if there are no rows."""
    return float(np.mean([float(row[column]) for row in rows])) if rows else float("nan")


def lines(rows: list[Mapping[str, str]]) -> Iterator[str]:
    """Yield the lines of the page."""
    groups = {**KINDS, "all": FUNCTIONS}
    by_arm = {arm: [row for row in rows if row["arm"] == arm] for arm in ARMS}
    table = []
    for kind, names in groups.items():
        slips, clean = ([row for row in by_arm[arm] if row["function"] in names] for arm in ("slip", "clean"))
        early = [row for row in slips if row["flagged"] and int(row["flagged"]) <= 3]
        now = [row for row in slips if row["flagged"] == "0"]
        table.append(
            (
                kind,
                len(slips),
                f"{len(now) / len(slips):.0%}",
                f"{len(early) / len(slips):.1%}",
                f"{mean(clean, 'false'):.2f} ({max(int(row['false']) for row in clean)})",
                *(f"{mean(each, 'regret'):.3f}" for each in (clean, slips)),
            )
        )
    head = ("functions", "runs", "flagged at once", "within 3 values", "false flags a clean run (most)")
    yield from harness.table((*head, "regret clean", "with a slip"), table)
    slips, clean = by_arm["slip"], by_arm["clean"]
    judging = [float(row["judging"]) for row in (*slips, *clean)]
    first = [[row for row in by_arm[arm] if row["seed"] == str(SEEDS[0])] for arm in ("clean", "slip", "kept")]
    regrets = ", ".join(f"{mean(part, 'regret'):.3f}" for part in first)
    yield from (
        "",
        f"Mean regrets on seed {SEEDS[0]}, clean, with a slip, and with one that is confirmed: {regrets}.",
        "",
        f"Judging took {np.mean(judging):.2f} CPU seconds a run on average, {max(judging):.2f} at most.",
        "",
        "| promise | measured | holds |",
        "|---|---|---|",
    )
    rate = sum(bool(row["flagged"]) and int(row["flagged"]) <= 3 for row in slips) / len(slips)
    false, most = mean(clean, "false"), max(int(row["false"]) for row in clean)
    few = false <= 0.25 and most <= 2
    ratio = mean(slips, "regret") / mean(clean, "regret")
    for what, measured, holds in (
        ("at least 95 % of the slips flagged within three values", f"{rate:.1%}", rate >= 0.95),
        ("at most 0.25 false flags a clean run, at most two in one", f"{false:.2f}, {most}", few),
        ("regret with a slip at most 1.25 times that without", f"{ratio:.2f}", ratio <= 1.25),
        ("at most 1.2 CPU seconds for a run of 40", f"{np.mean(judging):.2f}", bool(np.mean(judging) <= 1.2)),
    ):  # fmt: skip
        yield f"| {what} | {measured} | {harness.yes(holds)} |"
    yield ""
    yield "Slips that were not flagged within three values:"
    yield ""
    for row in slips:
        if not row["flagged"] or int(row["flagged"]) > 3:
            when = f"flagged {row['flagged']} values later" if row["flagged"] else "never flagged"
            yield f"- {row['function']}, noise {row['noise']}, seed {row['seed']}, value {row['at']}: {when}"


def main() -> int:
    given = harness.parser(__doc__, cores=True, report=True).parse_args()
    plan = [(SEEDS, ("slip", "clean")), (SEEDS[:1], ("kept",))]  # the last says only what there was before
    runs = [
        (name, noise, seed, arm)
        for seeds, arms in plan
        for seed in seeds
        for noise in NOISES
        for name in FUNCTIONS
        for arm in arms
    ]
    new = 0 if given.report else harness.resume(TABLE, runs, play, given.cores)
    rows: list[Mapping[str, str]] = [dict(row) for row in TABLE.rows()]
    about = (
        f"13 functions, noise {', '.join(map(str, NOISES))} sd, seed {', '.join(map(str, SEEDS))}, {T} values. A slip "
        f"is ten times or a tenth of a value, at a place drawn from {FIRST} to {LAST}. "
        + "; ".join(f"*{arm}* is {what}" for arm, what in ARMS.items())
        + ". Regrets are those of the recommended point, in standard deviations of f. "
        "The rule was chosen on seeds below 100; 100 and 101 were seen before its last change, so they are not here."
    )
    harness.page(__file__, "Values that do not fit", about, lines(rows), runs=len(rows), new=new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
