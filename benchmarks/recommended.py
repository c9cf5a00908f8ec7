"""How good is the point that a tool recommends when values are noisy?

    python benchmarks/recommended.py [--tools ...] [--seeds N] [--again]    plays what is missing and writes the page
    python benchmarks/recommended.py --report                               writes the page from the table

Six problems with normal noise of 0.1, 0.3 and 1 standard deviation of f over its box. A run has 60 evaluations from the
tool's own start. Nobody tells a tool how large the noise is. At the end the tool recommends a point (see
`peers/recommendations.py`), which is judged by its noise-free value: the regret is its gap to the maximum, in units of
the spread of f, its maximum minus its mean over the box. The noise of evaluation n is the same for all tools.

Each run has its own process, one BLAS thread and 15 minutes of CPU. There are ten seeds, low ones first; a tool is
compared on the seeds that it has. With --again, failed runs and runs of another version of a tool are replaced.
Problems, levels, seeds and tools were listed before the first run. Four of the problems are of the twenty on which gpmi
was developed, griewank-3 and shekel-4 are of the ten held out.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import harness
import numpy as np
import problems
from peers import optimisers as peers
from peers import playing
from peers.recommendations import ANYWHERE, CHOICES, OBSERVED, TOLD, recommended
from peers.statistics import Verdict, table
from problems.functions import Array, Problem

NEEDS = "peers"
PROBLEMS = ("branin", "gp-2", "hartmann-3", "griewank-3", "shekel-4", "hartmann-6")
LEVELS = ("0.1", "0.3", "1")
TOOLS = ("gpmi", "gpmi earn", "random", "CMA-ES", "Optuna TPE", "Emukit EI", "Optuna GP", "BoTorch LogEI")
SEEDS = 10
BUDGET, SAMPLE = 60, 4096  # evaluations; points for the standard deviation of f
US, EARN = "gpmi", "gpmi earn"
FAILED = 1.0  # the regret of a run that failed: that of a point as good as the mean of f
COLUMNS = ("tool", "version", "problem", "noise", "seed", "status", *CHOICES, "cpu")
RUNS = harness.Table(harness.DOCS / "recommended.csv", COLUMNS, ("tool", "problem", "noise", "seed"))


class Run(NamedTuple):
    """A run: a key of the table."""

    tool: str
    problem: str
    noise: str
    seed: int


@cache
def problem_of(name: str, noise: str, seed: int) -> Problem:
    """Return the problem with noise in units of the standard deviation of f."""
    exact = problems.make(name, seed)
    return replace(exact, noise_sd=float(noise) * float(problems.values_at_random(exact, SAMPLE).std()))


def play(run: Run) -> harness.Row:
    """Play one run and return its row, with the regret of each choice that the tool has."""
    problem = problem_of(run.problem, run.noise, run.seed)
    tool = peers.make(run.tool, problem.space, run.seed, BUDGET, alone=True)
    peers.one_thread()
    x: list[Any] = []
    y: list[float] = []

    def observe(point: Any) -> float:
        x.append(point)
        y.append(problem.observe(point, run.seed, len(x)))
        return y[-1]

    cpu, status = playing.play(tool, observe, BUDGET, ([], []))
    maximum = problem.maximum
    assert maximum is not None
    found = recommended(tool, problem.space, x, y) if status == "done" else {}
    spread = problems.spread(run.problem, maximum)
    regrets = {choice: f"{max(maximum - problem.f(point), 0.0) / spread:.6g}" for choice, point in found.items()}
    return {**row(run, status, cpu), **regrets}


def row(run: Run, status: str, cpu: float) -> harness.Row:
    named = {name: str(value) for name, value in run._asdict().items()}
    return {**named, "version": peers.version(run.tool), "status": status, "cpu": f"{cpu:.4g}"}


def _play_and_store(run: Run) -> None:
    RUNS.append(play(run))


def place(found: harness.Row) -> tuple[int, ...]:
    at = TOOLS.index(found["tool"]), PROBLEMS.index(found["problem"]), LEVELS.index(found["noise"])
    return *at, int(found["seed"])


def missing(chosen: Any) -> list[Run]:
    """Return the runs that are left, low seeds first, so that a partial table is balanced."""
    table = RUNS.latest()

    def left(run: Run) -> bool:
        old = table.get(tuple(map(str, run)))
        if old is None or not chosen.again:
            return old is None
        return old["status"] != "done" or old["version"] != peers.version(run.tool)

    every = itertools.product(range(chosen.seeds), chosen.tools, PROBLEMS, LEVELS)
    return [run for seed, tool, name, noise in every if left(run := Run(tool, name, noise, seed))]


# The page

Regrets = dict[tuple[str, str], Array]  # (problem, noise, seed) by tool and choice, NaN where there is no run


def regrets() -> Regrets:
    """Return the regrets of all choices of the tools that have a run of every problem at every level."""
    result: Regrets = {}
    for found in RUNS.latest().values():
        at = PROBLEMS.index(found["problem"]), LEVELS.index(found["noise"]), int(found["seed"])
        done = found["status"] == "done"
        for choice in CHOICES if done else (OBSERVED,):
            if found[choice] or not done:
                empty = np.full((len(PROBLEMS), len(LEVELS), SEEDS), np.nan)
                result.setdefault((found["tool"], choice), empty)[at] = float(found[choice]) if done else FAILED
    whole = {key for key, values in result.items() if (~np.isnan(values)).any(axis=2).all()}
    return {key: result[key] for key in itertools.product(TOOLS, CHOICES) if key in whole}


def differences(found: Regrets, levels: Sequence[int]) -> dict[tuple[str, str], Array]:
    """Return, for each choice of the other tools, its regret minus that of gpmi's `recommend()`, on shared pairs."""
    ours = found[US, ANYWHERE][:, levels]
    others = {key: values[:, levels] - ours for key, values in found.items() if key[0] not in (US, EARN)}
    return {key: values[~np.isnan(values)] for key, values in others.items()}


class Nearest(NamedTuple):
    """The mean regret of gpmi's recommended point, and how much worse the best choice of the next tool is."""

    ours: float
    tool: str
    more: Array  # by pair (problem, level, seed)

    @classmethod
    def of(cls, found: Regrets, levels: Sequence[int]) -> Nearest | None:
        """Return the next tool with noise of these levels, or None as long as there are no pairs."""
        if (US, ANYWHERE) not in found:
            return None
        gaps = {key: values for key, values in differences(found, list(levels)).items() if len(values)}
        if not gaps:
            return None
        key = min(gaps, key=lambda key: float(gaps[key].mean()))
        return cls(float(np.nanmean(found[US, ANYWHERE][:, list(levels)])), key[0], gaps[key])


def verdicts() -> list[Verdict]:
    """Return whether the recommended point of gpmi has the lowest mean regret: with all noise, and at each level."""
    found, claim = regrets(), "lowest mean regret of the recommended point"
    parts = {"": range(len(LEVELS)), **{f", noise of {level} sd": [i] for i, level in enumerate(LEVELS)}}
    result = []
    for part, levels in parts.items():
        near = Nearest.of(found, levels)
        if near is None:
            result.append(Verdict(claim + part, None, ""))
            continue
        figures = f"gpmi {near.ours:.4f}, next {near.tool} {signed(near.more)} on {len(near.more)} pairs"
        result.append(Verdict(claim + part, bool(near.more.mean() >= 0.0), figures))
    return result


def sentence() -> str:
    """Return the result in the words of somebody who has never heard of regret."""
    near = Nearest.of(regrets(), range(len(LEVELS)))
    if near is None:
        return "not measured yet"
    more, error = 100 * near.more.mean(), 100 * standard_error(near.more)
    than = f"{more:.0f} ± {error:.1f} points more" if more >= 0.0 else f"{-more:.0f} ± {error:.1f} points less"
    return (
        f"the point that it recommends after {BUDGET} evaluations gives away {near.ours:.0%} of what the best "
        f"point gains over an average one; that of the {'next' if more >= 0.0 else 'best'} other tool, {near.tool}, "
        f"{than}"
    )


WORDS = {OBSERVED: "best observed", TOLD: "best mean of those told", ANYWHERE: "best mean anywhere"}
OF_CMA, OF_GPMI = "mean of its distribution", "recommend()"


def words(tool: str, choice: str) -> str:
    if choice == ANYWHERE and tool in (US, EARN):
        return OF_GPMI
    return OF_CMA if (tool, choice) == ("CMA-ES", ANYWHERE) else WORDS[choice]


def standard_error(values: Array) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def signed(values: Array) -> str:
    return f"{values.mean():+.4f} ± {standard_error(values):.4f}"


def mean_table(found: Regrets) -> str:
    """Return the mean regrets by level, over all runs that a tool has."""
    body = []
    for (tool, choice), values in found.items():
        cells = []
        for part in (values, *np.moveaxis(values, 1, 0)):
            known = part[~np.isnan(part)]
            cells.append(f"{known.mean():.4f} ± {standard_error(known):.4f}" if len(known) else "")
        body.append([tool, words(tool, choice), str(int((~np.isnan(values)).sum())), *cells])
    return table(["tool", "point", "runs", "all", *(f"noise of {level} sd" for level in LEVELS)], body)


def pair_table(found: Regrets) -> str:
    """Return the regrets minus those of gpmi's `recommend()`, by level; bold where the other tool is better."""
    parts = [list(range(len(LEVELS))), *([i] for i in range(len(LEVELS)))]
    by_part = [differences(found, part) for part in parts]
    body = []
    for key in by_part[0]:
        cells = [signed(of[key]) if len(of[key]) else "" for of in by_part]
        worse = [len(of[key]) > 0 and of[key].mean() < 0.0 for of in by_part]
        marked = [f"**{cell}**" if bad else cell for cell, bad in zip(cells, worse, strict=True)]
        ahead = f"{(np.mean(by_part[0][key] > 0.0) + np.mean(by_part[0][key] >= 0.0)) / 2:.0%}"
        body.append([key[0], words(*key), str(len(by_part[0][key])), ahead, *marked])
    return table(["tool", "point", "pairs", "gpmi ahead", "all", *(f"noise of {level} sd" for level in LEVELS)], body)


def problem_table(found: Regrets) -> str:
    """Return the mean regret of each problem at each level, of the best choice of each tool over all."""
    best = {}
    for tool in TOOLS:
        choices = {key: values for key, values in found.items() if key[0] == tool}
        if tool in (US, EARN):
            choices = {key: values for key, values in choices.items() if key[1] == ANYWHERE}
        if choices:
            best[tool] = choices[min(choices, key=lambda key: float(np.nanmean(choices[key])))]
    body = []
    for (i, name), (j, level) in itertools.product(enumerate(PROBLEMS), enumerate(LEVELS)):
        known = [values[i, j][~np.isnan(values[i, j])] for values in best.values()]
        means = [float(values.mean()) if len(values) else np.nan for values in known]
        lowest = np.nanmin(means)
        cells = ["" if np.isnan(m) else f"**{m:.4f}**" if m == lowest else f"{m:.4f}" for m in means]
        body.append([name, level, *cells])
    return table(["problem", "noise", *best], body)


def effort_table() -> str:
    body, rows = [], RUNS.rows()
    for tool in TOOLS:
        mine = [r for r in rows if r["tool"] == tool]
        if mine:
            versions = ", ".join(sorted({r["version"] for r in mine}))
            failed = sum(r["status"] != "done" for r in mine)
            seconds = np.median([float(r["cpu"]) for r in mine])
            seeds = len({r["seed"] for r in mine})
            body.append([tool, versions, str(seeds), str(len(mine)), str(failed), f"{seconds:.3g}"])
    return table(["tool", "version", "seeds", "runs", "failed", "CPU seconds, median"], body)


def write(new: int) -> None:
    """Write the page. `new` is the number of rows that were made just now."""
    found = regrets()
    text = (
        f"{len(PROBLEMS)} problems with normal noise of 0.1, 0.3 and 1 standard deviation of f over its box, {BUDGET} "
        f"evaluations from each tool's own start, up to {SEEDS} seeds, every tool configured as in "
        "[the comparison](compare.md); no tool is told how large the noise is. At the end a tool recommends a point, "
        "which is judged by its noise-free value. Regret is the gap to the maximum in units of the spread of f, its "
        "maximum minus its mean over the box. A failed run has a regret of 1. Problems, levels, seeds and tools were "
        "listed before the first run. branin, gp-2, hartmann-3 and hartmann-6 are of the twenty problems on which gpmi "
        "was developed, griewank-3 and shekel-4 of the ten held out."
    )
    lines = [
        "## What was promised",
        'gpmi\'s point is that of `recommend()`, with aim="find". It has to be better than every choice of every '
        "other tool, so a peer is given its best choice in hindsight.",
        "\n".join(map(str, verdicts())),
        "## Mean regret of the recommended point",
        "Every choice of every tool, with standard errors. *Best observed* is the point with the best observed value, "
        "which is all that TPE, random search and the public functions of Optuna have. *Best mean of those told* is "
        "the evaluated point with the best posterior mean, *best mean anywhere* the best in the whole box, both by the "
        "tool's own model of all values.",
        mean_table(found),
        "## Pair by pair",
        "The regret of each choice minus that of gpmi's `recommend()` on the same problem, noise and seed: mean and "
        "standard error over the pairs that both have. Positive: gpmi is better. Bold: the other tool is better. *gpmi "
        "ahead* is the share of pairs in which gpmi's regret is lower: a few large regrets weigh much in a mean.",
        pair_table(found) if (US, ANYWHERE) in found else "gpmi has not run yet.",
        "## Problem by problem",
        "Means over the seeds that a tool has; gpmi's `recommend()`, and of every other tool the choice with the "
        "lowest mean over all runs. The lowest is bold.",
        problem_table(found),
        "## Runs",
        "A tool is in the tables above once it has a run of every problem at every level.",
        effort_table(),
    ]
    body = ["\n\n".join(lines)]
    harness.page(__file__, "The recommended point under noise", text, body, runs=len(RUNS.rows()), new=new)


def main() -> None:
    parser = harness.parser(__doc__, report=True)
    parser.add_argument("--tools", nargs="+", default=list(TOOLS), choices=TOOLS, metavar="TOOL")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--again", action="store_true", help="replace failed runs and runs of another version")
    chosen = parser.parse_args()
    todo = [] if chosen.report else missing(chosen)
    playing.in_turn(todo, _play_and_store, lambda run, reason: RUNS.append(row(run, reason, 0.0)))
    RUNS.tidy(place, latest=True)
    write(new=len(todo))


if __name__ == "__main__":
    main()
