"""Where evaluations fail, does the interval of the regret hold, and may a rule stop the run?

    python benchmarks/success_region.py                       writes success_region.csv and .md; an hour; resumes
    python benchmarks/success_region.py --set development     the problems on which things were chosen; printed only
    python benchmarks/success_region.py --report              writes the page from the table

The regret is against the best point that works. Two intervals are made from the same runs: over the points that work
with p >= 1/2, and over what works in draws of the region that works, which is what the ledger does. Both kinds of runs
have the same problems: in "crash" an evaluation outside the region fails, in "measured" its value comes with a
constraint. The reported problems and seeds were listed here before the first of them was run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any
from unittest.mock import patch

import harness
import numpy as np
from failures import PROBLEMS, SHARE, TUNING, Crashing
from failures import hills as plane_through_hills
from problems import draws
from problems.functions import Array

import gpmi
from gpmi.analysis.ledger import Ledger
from gpmi.analysis.ledger import regret as ledger_regret
from gpmi.analysis.ledger.gain import draw_gain
from gpmi.analysis.ledger.regret import Regret, draw_regret
from gpmi.model.model import Model

COLUMNS = (
    "kind", "group", "problem", "seed", "t", "values", "scale", "true", "likely", "drawn", "stops likely",
    "stops drawn", "said likely", "said drawn", "happened", "seconds likely", "seconds drawn", "seconds without",
)  # fmt: skip
KEY = ("kind", "problem", "seed")
TRUE, HAPPENED = COLUMNS.index("true"), COLUMNS.index("happened")
TABLE = harness.Table(harness.DOCS / "success_region.csv", COLUMNS, KEY)
KINDS = ("crash", "measured")
LOOKS, MORE, EPS, LEVEL = (20, 40, 60), 10, 0.05, 0.95
NOISE = 0.1  # sd of f, in runs with odd seeds; the others have exact values


# Problems


def _bumps(places: Array, heights: Array, steep: Array) -> Callable[[Any], float]:
    return lambda u: float(heights @ np.exp(-(steep * (np.asarray(u) - places) ** 2).sum(axis=1)))


def pocket(dim: int, seed: int) -> Crashing:
    """Return two hills. The higher one works only in a ball around it, within a half of the box that crashes."""
    rng = np.random.default_rng([91, dim, seed])
    while True:
        low, high = rng.uniform(0.15, 0.85, (2, dim))
        if np.linalg.norm(high - low) > 0.5:
            break
    normal = (high - low) / np.linalg.norm(high - low)
    middle = 0.5 * (low + high) @ normal
    radius = (0.05 / {2: np.pi, 3: 4.0 * np.pi / 3.0}[dim]) ** (1.0 / dim)  # 5 % of the box
    steep = 10.0 ** rng.uniform(0.3, 1.0, (2, dim))

    def danger(u: Any) -> Any:
        return np.minimum(u @ normal - middle, np.linalg.norm(u - high, axis=1) - radius)

    f = _bumps(np.array([low, high]), np.array([2.0, 3.0]), steep)
    return Crashing(f"pocket {dim} {seed}", dim, f, danger, np.nan, limit_at=0.0)


def drawn(seed: int) -> Crashing:
    """Return a draw of a Gaussian process that crashes where another one with the same dimension is large."""
    f, g = draws.make(seed), draws.make(seed + 5000)

    def danger(u: Any) -> Any:
        return np.cos(np.asarray(u) @ g.omega.T + g.phase) @ g.weights

    limit = np.quantile(danger(np.random.default_rng(0).random((4000, f.d))), 1.0 - SHARE)
    return Crashing(f"draw {seed}", f.d, f, danger, np.nan, limit_at=float(limit))


def _draws(first: int, count: int) -> list[int]:
    """Return seeds of draws in 2 to 4 dimensions."""
    return [seed for seed in range(first, first + 2 * count) if seed % 5 < 3][:count]


def edge(dim: int, seed: int) -> Callable[[], Crashing]:
    """Return a maker of hills with an edge through the maximiser."""
    return lambda: plane_through_hills(dim, seed)


Maker = Callable[[], Crashing]
GROUPS: dict[str, dict[str, dict[str, tuple[Maker, int]]]] = {  # set -> group -> problem -> how to make it, runs
    "development": {
        "functions": {p.name: (lambda p=p: p, 2) for p in TUNING},
        "edges": {f"hills {d} {s}": (edge(d, s), 1) for d, s in ((2, 0), (3, 0), (3, 1), (3, 2))},
        "pockets": {f"pocket {d} {s}": (lambda d=d, s=s: pocket(d, s), 1) for d in (2, 3) for s in (0, 1)},
        "draws": {f"draw {s}": (lambda s=s: drawn(s), 1) for s in _draws(0, 8)},
    },
    "reported": {
        "functions": {p.name: (lambda p=p: p, 4) for p in PROBLEMS},
        "edges": {f"hills {d} {s}": (edge(d, s), 1) for d in (2, 3, 4) for s in range(100, 104)},
        "pockets": {f"pocket {d} {s}": (lambda d=d, s=s: pocket(d, s), 1) for d in (2, 3) for s in range(100, 104)},
        "draws": {f"draw {s}": (lambda s=s: drawn(s), 1) for s in _draws(100, 20)},
    },
}  # fmt: skip


def runs(which: str) -> Iterator[tuple[str, str, int]]:
    """Yield all runs of a set: of each problem first one of each kind."""
    problems = [(name, number) for group in GROUPS[which].values() for name, (_, number) in group.items()]
    for seed in range(max(number for _, number in problems)):
        for place, (name, number) in enumerate(problems):
            if seed < number:  # problems with one run take turns with noise
                yield from ((kind, name, seed if number > 1 else place % 2) for kind in KINDS)


@lru_cache(maxsize=2)
def made(name: str) -> tuple[str, Crashing, float, float, float]:
    """Return the group of a problem, the problem, its limit, its best value where it works, and the sd of f there."""
    group, make = next((group, own[name][0]) for one in GROUPS.values() for group, own in one.items() if name in own)
    problem = make()
    limit = problem.limit()
    best, scale = best_that_works(problem, limit)
    return group, problem, limit, best, scale


def best_that_works(problem: Crashing, limit: float) -> tuple[float, float]:
    """Return the largest f where the danger is at most `limit`, and the sd of f there.

    The best of 2^12 points that work are improved by random steps that keep to what works, ever smaller ones. Steps may
    be along an edge, which a climb by gradients would need to know.
    """
    from scipy.stats import qmc

    rng = np.random.default_rng(0)
    u = qmc.Sobol(problem.dim, seed=0).random(2**12)
    u = u[problem.danger(u) <= limit]
    values = np.array([problem.f(x) for x in u])
    scale, top = float(values.std()), np.argsort(-values)[:12]
    z, value = u[top], values[top]
    if problem.best is not None:
        z, value = np.concatenate([z, [problem.best]]), np.append(value, problem.f(np.asarray(problem.best)))
    for size in 0.1 * 0.97 ** np.arange(400):
        new = np.clip(z + size * rng.standard_normal(z.shape), 0.0, 1.0)
        found = np.array([problem.f(x) for x in new])
        better = (found > value) & (problem.danger(new) <= limit)
        z, value = np.where(better[:, None], new, z), np.where(better, found, value)
    return float(value.max()), scale


# Two regions


class _Likely:
    """The region of the points with p >= 1/2, the same in each draw."""

    def __init__(self, model: Model, size: int) -> None:
        self._model, self._size = model, size
        self.chance = self.works = self

    def log(self, z: Array) -> Array:
        return np.where(self._model.allowed(z), 0.0, -np.inf)

    def part(self, numbers: Any) -> _Likely:
        return _Likely(self._model, len(numbers))

    def everywhere(self, z: Array) -> Any:
        return np.repeat(self._model.allowed(z)[:, None], self._size, axis=1)

    def __call__(self, z: Array, which: Any) -> Any:
        return self._model.allowed(z)


def over(ledger: Ledger, regions: Callable[..., Any] | None) -> tuple[Regret, float]:
    """Draw the regret over other regions than the ledger's, and return it with its CPU seconds."""
    begin, rng = time.process_time(), np.random.default_rng([ledger.setting.seed, ledger.n])
    with patch.object(ledger_regret, "regions_of", regions or ledger_regret.regions_of):
        found = draw_regret(ledger.model, ledger.belief.posteriors, ledger.rows, rng)
    return found, time.process_time() - begin


def likely(model: Model, space: Any, first: Array, size: int, count: int) -> list[Any]:
    return [None if model.chance is None else _Likely(model, size)] * count


def nothing(model: Model, space: Any, first: Array, size: int, count: int) -> list[Any]:
    return [None] * count


# Runs


@dataclass
class Look:
    """What the ledger says at one moment; `happened` is added when it is known."""

    row: list[Any]
    f: float  # at the point recommended then


def play(kind: str, name: str, seed: int) -> list[tuple[Any, ...]]:
    """Play one run and return a row for each look; one row with t = 0 if there is none."""
    group, problem, limit, best, scale = made(name)
    rng = np.random.default_rng([seed, 17])
    opt = gpmi.Optimizer([(0.0, 1.0)] * problem.dim, budget=max(LOOKS), seed=seed)
    looks: dict[int, Look] = {}
    for t in range(1, max(LOOKS) + 1):
        x = np.asarray(opt.ask())
        danger = float(problem.danger(x[None])[0]) - limit
        y = problem.f(x) + (NOISE * scale * rng.standard_normal() if seed % 2 else 0.0)
        if danger <= 0.0:
            best = max(best, problem.f(x))
        if kind == "measured":
            opt.tell(x, y, constraints=[danger])
        elif danger > 0.0:
            opt.fail(x, why="crash")
        else:
            opt.tell(x, y)
        if t - MORE in looks:
            looks[t - MORE].row[HAPPENED] = int(
                problem.f(np.asarray(opt.recommend())) - looks[t - MORE].f > EPS * scale
            )
        if t in LOOKS and opt.ledger.n >= opt.ledger.needed and opt.ledger.outcomes is not None:
            looks[t] = look(opt.ledger, problem, scale, [kind, group, name, seed, t])
    rows = []
    for one in looks.values():
        one.row[TRUE] = max(0.0, best - one.f) / scale
        rows.append(tuple(f"{v:.6g}" if isinstance(v, float) else v for v in one.row))
    return rows or [(kind, group, name, seed, 0, *[""] * (len(COLUMNS) - 5))]


def look(ledger: Ledger, problem: Crashing, scale: float, first: list[Any]) -> Look:
    """Read the ledger, and what it would say over other regions."""
    _ = ledger.belief
    (today, cost_today), (new, cost_new), (_, cost) = (over(ledger, regions) for regions in (likely, None, nothing))
    sure = ledger.calibration.verdict in ("fine", "under-confident")
    stops = [int(sure and one.probability_below(EPS * scale) >= LEVEL) for one in (today, new)]
    row, rng = ledger.model.recommendation.row, np.random.default_rng([ledger.n, 3])
    unaware = replace(ledger.model, outcomes=None)
    gains = (
        draw_gain(unaware, ledger.belief, row, today.where, MORE, rng),
        draw_gain(ledger.model, ledger.belief, row, new.where, MORE, rng),
    )
    said = [gain.probability_above(EPS * scale) for gain in gains]
    ends = [one.interval(LEVEL)[1] / scale for one in (today, new)]
    return Look(
        [*first, ledger.n, scale, np.nan, *ends, *stops, *said, "", cost_today, cost_new, cost],
        problem.f(np.asarray(new.recommended)),
    )


# The page


def pinball(true: Array, upper: Array) -> Array:
    """Return the loss of the upper end at LEVEL: it is smallest in the mean if that is the quantile."""
    off = true - upper
    return np.maximum(LEVEL * off, (LEVEL - 1.0) * off)


def summary(rows: list[harness.Row]) -> list[str]:
    """Return a table of coverage and loss by kind, group, noise and t."""
    head = ["", "runs", "looks", "covered, p >= 1/2", "covered, drawn", "loss", "loss, drawn", "median end", "drawn"]
    lines = []
    for kind in KINDS:
        own = [row for row in rows if row["kind"] == kind]
        parts = [(kind, own), *((f"{kind}, {g}", [r for r in own if r["group"] == g]) for g in GROUPS["reported"])]
        parts += [(f"{kind}, t = {t}", [r for r in own if r["t"] == str(t)]) for t in LOOKS]
        for name, odd in (("exact", 0), ("noise", 1)):
            parts.append((f"{kind}, {name}", [r for r in own if int(r["seed"]) % 2 == odd]))
        for name, some in parts:
            looks = [r for r in some if r["t"] != "0"]
            if not looks:
                continue
            true, today, new = (np.array([float(r[c]) for r in looks]) for c in ("true", "likely", "drawn"))
            lines.append(
                [
                    name,
                    len({(r["problem"], r["seed"]) for r in some}),
                    len(looks),
                    *(f"{np.mean(true <= end + 1e-6):.0%}" for end in (today, new)),
                    *(f"{pinball(true, end).mean():.3f}" for end in (today, new)),
                    *(f"{np.median(end):.3g}" for end in (today, new)),
                ]
            )
    return harness.table(head, lines)


def stopped(rows: list[harness.Row]) -> list[str]:
    """Return how many runs a rule would have stopped, and how many of them rightly."""
    lines = []
    for kind in KINDS:
        cells: list[object] = [kind]
        for arm in ("likely", "drawn"):
            first: dict[tuple[str, str], harness.Row] = {}
            for row in sorted(rows, key=lambda row: int(row["t"])):
                if row["kind"] == kind and row[f"stops {arm}"] == "1":
                    first.setdefault((row["problem"], row["seed"]), row)
            right = sum(float(row["true"]) <= EPS for row in first.values())
            cells.append(f"{right} of {len(first)}")
        lines.append(cells)
    return harness.table(["stopped rightly", "p >= 1/2", "drawn"], lines)


def gains(rows: list[harness.Row]) -> list[str]:
    """Return how often ten more evaluations brought what was said, by what was said."""
    lines = []
    for kind in KINDS:
        own = [row for row in rows if row["kind"] == kind and row["happened"] != ""]
        happened = np.array([int(row["happened"]) for row in own], dtype=float)
        for arm in ("likely", "drawn"):
            said = np.array([float(row[f"said {arm}"]) for row in own])
            cells: list[object] = [f"{kind}, {'p >= 1/2' if arm == 'likely' else arm}"]
            for low, high in ((0.0, 0.1), (0.1, 0.5), (0.5, 0.9), (0.9, 1.01)):
                part = (said >= low) & (said < high)
                both = f"{said[part].mean():.2f} / {happened[part].mean():.2f}" if part.any() else "-"
                cells.append(f"{both} ({part.sum()})")
            lines.append([*cells, f"{np.mean((said - happened) ** 2):.3f}"])
    return harness.table(["said / happened", "below 0.1", "to 0.5", "to 0.9", "above", "Brier score"], lines)


def body(rows: list[harness.Row]) -> list[str]:
    """Return the lines of the page below its head."""
    looks = [row for row in rows if row["t"] != "0"]
    late = [row for row in looks if row["t"] == str(max(LOOKS))]
    costs = [np.median([float(row[f"seconds {arm}"]) for row in late]) for arm in ("without", "likely", "drawn")]
    return [
        "In `crash` an evaluation that does not work fails; in `measured` it has a value and a constraint above 0. "
        "The groups: `functions` are those of [failures.md](failures.md). `edges` are sums of hills in 2 to 4 "
        "dimensions with the edge of what works through the maximiser. In `pockets` the higher of two hills lies in a "
        "ball with 5 % of the box that works, within the half that does not. `draws` are Gaussian processes in 2 to 4 "
        "dimensions where another draw is below its 60 % quantile.",
        "",
        "`p >= 1/2` is the regret against the best point that works with p >= 1/2, `drawn` that against the best point "
        "that works in a draw of what works, which is what the ledger does. Covered: the true regret is at most the "
        f"upper end at {LEVEL:.0%}. The loss is the pinball loss of that end: it punishes width and misses together.",
        "",
        *summary(rows),
        "",
        f"Runs in which P(regret <= {EPS} sd) >= {LEVEL} at a look, under a verdict that allows a stop, and how many "
        "of them were right at the first such look:",
        "",
        *stopped(looks),
        "",
        f"The chance that {MORE} more evaluations improve the recommended point by more than {EPS} sd: what was said, "
        "how often it happened, and in brackets the number of looks.",
        "",
        *gains(looks),
        "",
        f"Median CPU seconds of the draws behind an interval at t = {max(LOOKS)}: {costs[0]:.2f} without a region, "
        f"{costs[1]:.2f} with p >= 1/2, {costs[2]:.2f} with drawn regions.",
    ]


def page(rows: list[harness.Row], new: int) -> None:
    """Write the page."""
    text = (
        f"The runs are in [success_region.csv](success_region.csv): {max(LOOKS)} evaluations each, looks after "
        f"{', '.join(map(str, LOOKS))} of them once a trial has failed or a constraint was measured, and none before "
        f"the ledger's `needed` values. Half of the runs have noise of {NOISE} standard deviations of f. Values are in "
        "standard deviations of f where it works. The problems and seeds were listed before they were run; what was "
        "chosen was chosen on others (`--set development`)."
    )
    count = len({tuple(row[name] for name in KEY) for row in rows})
    harness.page(__file__, "The regret where evaluations fail", text, body(rows), runs=count, new=new)


def main() -> None:
    parser = harness.parser(__doc__, cores=True, report=True)
    parser.add_argument("--set", choices=list(GROUPS), default="reported")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    chosen = parser.parse_args()
    wanted = [] if chosen.report else [run for run in runs(chosen.set) if run[0] in chosen.kinds]
    if chosen.set == "reported":
        new = harness.resume(TABLE, wanted, play, chosen.cores)
        page(TABLE.rows(), new)
        return
    found = [row for _, rows in harness.each(play, wanted, chosen.cores) for row in rows]
    harness.say("\n".join(body([dict(zip(COLUMNS, map(str, row), strict=True)) for row in found])))


if __name__ == "__main__":
    main()
