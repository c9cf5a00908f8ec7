"""Does aim="earn" stay on the lower of two or three humps, does it say so, and does looking elsewhere pay?

    python benchmarks/humps.py              writes humps.csv and humps.md in docs/benchmarks; ten minutes; resumes
    python benchmarks/humps.py --report     writes the page from the table
    python benchmarks/humps.py --part reported     some runs only

A function is the sum of two or three Gaussian humps in two or three dimensions, with random centres, heights and
widths. A run ends on a lower hump if climbing f from its recommended point leads to another maximum than the highest.
Seeds from 1000 are those of the development. Seeds 0 to 39 were run once, when everything was chosen.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise, product
from typing import Any

import harness
import numpy as np
from problems.functions import Array

import gpmi
from gpmi import Reinvest
from gpmi.analysis.ledger import untaken_chance
from gpmi.analysis.ledger.belief import believed, draw_priors_of
from gpmi.analysis.ledger.regret import draw_regret
from gpmi.policies import Explore, Selected

COLUMNS = ("part", "noise", "seed", "arm", "dim", "humps", "mean", "gap", "lower", "chance", "step", "event", "seconds")
TABLE = harness.Table(harness.DOCS / "humps.csv", COLUMNS, COLUMNS[:4])
BUDGETS, NOISES = {"reported": 60, "development": 60, "long": 200}, (0.1, 0.3, 1.0)  # noise in sd of f
SEEDS = {"reported": range(40), "development": range(1000, 1020), "long": range(1000, 1020)}
APART = 0.1  # the highest maximum is above the next by this much, at least


# Functions


@dataclass(frozen=True, eq=False)
class Humps:
    """f(x) = sum_i height_i exp(-sum_j ((x_j - centre_ij) / width_ij)^2 / 2) on the unit cube."""

    centres: Array  # (k, d)
    heights: Array  # (k,)
    widths: Array  # (k, d)

    def __call__(self, x: Array) -> float:
        return float(self.at(np.asarray(x, dtype=float)[None])[0])

    def at(self, x: Array) -> Array:
        """Return f at x (m, d)."""
        squares = (((x[:, None] - self.centres) / self.widths) ** 2).sum(axis=2)
        return (self.heights * np.exp(-0.5 * squares)).sum(axis=1)

    def climbed(self, x: Array) -> float:
        """Return the height of the maximum that a climb from x leads to."""
        from scipy.optimize import minimize

        return -float(minimize(lambda z: -self(z), x, bounds=[(0.0, 1.0)] * self.centres.shape[1]).fun)

    def sd(self) -> float:
        """Return the standard deviation of f over the cube."""
        return float(self.at(np.random.default_rng(0).random((4096, self.centres.shape[1]))).std())


@cache
def humps(seed: int) -> tuple[Humps, float]:
    """Return a function, in two or three dimensions by turns, and its maximum."""
    rng, d, k = np.random.default_rng([seed, 26]), 2 + seed % 2, 2 + seed // 2 % 2
    while True:
        heights = np.concatenate([[1.0], rng.uniform(0.6, 0.9, k - 1)])
        f = Humps(rng.uniform(0.1, 0.9, (k, d)), heights, rng.uniform(0.12, 0.3, (k, d)))
        maxima = sorted((f.climbed(x) for x in f.centres), reverse=True)
        distinct = [height for i, height in enumerate(maxima) if i == 0 or maxima[i - 1] - height > 1e-3]
        if len(distinct) > 1 and distinct[0] - distinct[1] >= APART:
            return f, distinct[0]


# The rules that were tried


@dataclass(frozen=True)
class Escaping(Reinvest):
    """Reinvest with the escapes of Find: after queries that taught nothing, the point farthest from all trials."""

    def choose(self, search: Any) -> Selected:
        return search.escape() or super().choose(search)


@dataclass(frozen=True)
class Looking(Reinvest):
    """Reinvest, but query number 1, 2, 4, 8, ... may be a look at a maximum of a function drawn from the belief.

    A look at z costs the mean of f(recommended) - f(z). What it may bring back, in each of the queries left, is
    `credit` times the mean of the drawn regrets, each multiplied by how much of f at its maximum the value at z
    explains. The best look is taken if it brings more than it costs, and more than the point of Reinvest does.
    """

    credit: float = 1.0

    def choose(self, search: Any) -> Selected:
        state, model, point = search.state, search.model, super().choose(search)
        if state.t & (state.t - 1):
            return point
        belief = believed(model, search.log.observed, draw_priors_of(model, search.log.observed))
        some, rng = belief.posteriors[::4], np.random.default_rng([model.setting.seed, model.n, 0, 9])
        regret = draw_regret(model, some, model.posterior.x[:0], rng, parts=4)
        z = np.concatenate([point.row[None], regret.where])
        count, back, cost = len(regret.where) // len(some), np.zeros(len(z)), np.zeros(len(z))
        for i, posterior in enumerate(some):
            own = slice(i * count, (i + 1) * count)
            (mu, var), (_, var_there) = posterior(z), posterior(regret.where[own])
            covariance = posterior.covariance(z, regret.where[own])
            spread = np.maximum((var + posterior.noise_var)[:, None] * var_there, 1e-300)
            back += (np.minimum(covariance**2 / spread, 1.0) * regret.simple[own]).mean(axis=1) / len(some)
            cost += (float(posterior.mu(model.recommendation.row)[0]) - mu) / len(some)
        worth = self.credit * (self.queries_left(state) - 1.0) * back - np.maximum(cost, 0.0)
        best = int(worth.argmax())
        if best == 0 or worth[best] <= 0.0:
            return point
        objective = search.objective.with_policy(Explore())
        found = objective.result_at(z[best])
        return replace(point, policy=objective.policy, row=found.row, mu=found.mu, var=found.var, score=found.score)


EARN = "earn"
ARMS: dict[str, dict[str, Any]] = {
    EARN: {},
    "look, credit 1": {"policy": Looking(credit=1.0)},
    "look, credit 0.3": {"policy": Looking(credit=0.3)},
    "escape as find does": {"policy": Escaping()},
    "10 points in the design": {"n_init": 10},
}
LONG = tuple(ARMS)[:3]


# Runs


def play(part: str, noise: float, seed: int, arm: str) -> tuple[Any, ...]:
    """Play one run and return its row.

    mean is R_T / T, the mean noise-free regret of all queries, and gap that of the recommended point, in sd of f. lower
    says whether that point is on a lower hump. chance is the probability of a regret above step, the smallest gain that
    counts, in sd of f; event whether the run says so at its end.
    """
    (f, maximum), begin = humps(seed), time.process_time()
    sd, (k, d) = f.sd(), f.centres.shape
    errors = noise * sd * np.random.default_rng([seed, 27]).standard_normal(BUDGETS[part])
    opt = gpmi.Optimizer([(0.0, 1.0)] * d, aim="earn", budget=BUDGETS[part], seed=seed, **ARMS[arm])
    values = []
    for error in errors:
        x = opt.ask()
        values.append(f(x))
        opt.tell(x, values[-1] + error)
    seconds, x = time.process_time() - begin, np.asarray(opt.recommend())
    numbers: list[Any] = [(maximum - np.mean(values)) / sd, (maximum - f(x)) / sd]
    lower = int(maximum - f.climbed(x) > 0.5 * APART)
    said = [np.nan, np.nan, ""]
    if arm == EARN:
        ledger = opt.ledger
        step = ledger.smallest_gain
        said = [1.0 - ledger.regret().probability_below(step), step / sd, int(untaken_chance(ledger) is not None)]
    cells = [*numbers, lower, *said, seconds]
    return part, noise, seed, arm, d, k, *(f"{cell:.4g}" if isinstance(cell, float) else cell for cell in cells)


def runs() -> Iterable[tuple[str, float, int, str]]:
    """Yield the runs of the development, then the reported ones, then some with more evaluations."""
    yield from (("development", *run) for run in product(NOISES, SEEDS["development"], ARMS))
    yield from (("reported", noise, seed, EARN) for noise in NOISES for seed in SEEDS["reported"])
    yield from (("long", 0.3, seed, arm) for seed in SEEDS["long"] for arm in LONG)


# The page


def of(rows: list[harness.Row], part: str, arm: str, noise: float | None = None) -> dict[tuple[str, str], harness.Row]:
    """Return rows by noise and seed."""
    wanted = [row for row in rows if (row["part"], row["arm"]) == (part, arm)]
    return {(row["noise"], row["seed"]): row for row in wanted if noise is None or float(row["noise"]) == noise}


def reported(rows: list[harness.Row]) -> list[str]:
    """Return a row for each noise, and one for all."""
    head = ("noise", "runs", "on a lower hump", "of these without an event", "events in other runs", "R_T / T")
    lines = []
    for noise in (*NOISES, None):
        found = list(of(rows, "reported", EARN, noise).values())
        low = [row for row in found if row["lower"] == "1"]
        silent, others = sum(row["event"] == "0" for row in low), [row for row in found if row["lower"] == "0"]
        alarms, mean = sum(row["event"] == "1" for row in others), np.mean([float(row["mean"]) for row in found])
        share = f"{silent}, {100 * silent / len(found):.1f} % of all runs"
        lines.append((noise or "all", len(found), len(low), share, f"{alarms} of {len(others)}", f"{mean:.2f}"))
    return harness.table(head, lines)


def calibration(rows: list[harness.Row]) -> list[str]:
    """Return what was said about a regret above the smallest gain that counts, and how often it was."""
    found = list(of(rows, "reported", EARN).values())
    chance = np.array([float(row["chance"]) for row in found])
    came = np.array([float(row["gap"]) > float(row["step"]) for row in found])
    edges, lines = (0.0, 0.1, 0.2, 0.3, 0.5, 1.01), []
    for low, high in pairwise(edges):
        inside = (chance >= low) & (chance < high)
        if inside.any():
            said = f"{chance[inside].mean():.2f}"
            lines.append((f"{low:g} to {min(high, 1.0):g}", inside.sum(), said, f"{came[inside].mean():.2f}"))
    return harness.table(("probability", "runs", "said, on average", "happened"), lines)


def tried(rows: list[harness.Row], part: str) -> list[str]:
    """Return a row for each arm: R_T / T against earn's, in pairs, and the runs on a lower hump."""
    base, lines = of(rows, part, EARN), []
    for arm in ARMS:
        own = of(rows, part, arm)
        keys = [key for key in base if key in own]
        if keys:
            both = np.array([[float(one[key]["mean"]) for key in keys] for one in (own, base)])
            off = both[0] - both[1]
            error = float(off.std(ddof=1)) / np.sqrt(len(off))
            change = "" if arm == EARN else f"{off.mean():+.3f} ± {error:.3f}"
            stuck = np.array([base[key]["lower"] == "1" for key in keys])
            parts = [f"{off[some].mean():+.3f}" if arm != EARN and some.any() else "" for some in (stuck, ~stuck)]
            low = sum(own[key]["lower"] == "1" for key in keys)
            seconds = np.median([float(own[key]["seconds"]) for key in keys])
            lines.append((arm, f"{both[0].mean():.3f}", change, *parts, f"{low} of {len(keys)}", f"{seconds:.2f}"))
    change = "against earn, ± standard error", "where earn is on a lower hump", "where it is not"
    return harness.table(("", "R_T / T", *change, "on a lower hump", "CPU seconds"), lines)


TEXT = (
    "A function is the sum of two or three Gaussian humps at random places of the unit cube in two or three dimensions "
    "(sd 0.12 to 0.3 in each coordinate; the highest is 1 high, the others 0.6 to 0.9, and the highest maximum is at "
    f"least {APART} above the next). A run has {BUDGETS['reported']} evaluations under aim='earn' with noise of 0.1, "
    "0.3 or 1 standard deviation of f; nothing is set but a budget and a seed. Regrets are in standard deviations of "
    "f. A run is *on a lower hump* if a climb on f from its recommended point leads to another maximum than the "
    "highest."
)
EVENT = """The event `chance not taken` says at the end of a run that, with a probability of at least 20 %, a point is
better than the recommended one by more than the noise. It is a statement of the ledger's belief. A hump that no query
came near leaves little trace in the values, so some runs on a lower hump have no event, and other runs have one."""
TRIED = """`look` asks the belief at the policy's queries 1, 2, 4, 8, ...: the point is a maximum of a drawn function if
the gain over the rest of the horizon, multiplied by `credit`, exceeds what the look costs. `escape` has the rule of
find: the farthest point after queries that taught nothing. The last line looks before there is a model. R_T / T is
compared in pairs with that of earn, also where earn ends on a lower hump and where it does not; this split favours
every other rule in the first kind of run and earn in the second. The 20 % of the event were chosen on these functions
and on another one of two humps, with the same noise."""


def page(rows: list[harness.Row], new: int) -> None:
    """Write the page."""
    lines = [
        "## Seeds 0 to 39, run once",
        "",
        EVENT,
        "",
        *reported(rows),
        "",
        "The probability that the recommended point is worse than the best by more than the smallest gain that counts:",
        "",
        *calibration(rows),
        "",
        "## What was tried, seeds from 1000",
        "",
        TRIED,
        "",
        *tried(rows, "development"),
        "",
        f"With {BUDGETS['long']} evaluations and noise of 0.3 sd, on the same functions:",
        "",
        *tried(rows, "long"),
    ]
    harness.page(__file__, "The lower of two humps", TEXT, lines, runs=len(rows), new=new)


def main() -> None:
    parser = harness.parser(__doc__, cores=True, report=True)
    parser.add_argument("--part", choices=list(SEEDS))
    args = parser.parse_args()
    wanted = (run for run in runs() if args.part in (None, run[0]))
    new = 0 if args.report else harness.resume(TABLE, wanted, play, args.cores)
    page(TABLE.rows(), new)


if __name__ == "__main__":
    main()
