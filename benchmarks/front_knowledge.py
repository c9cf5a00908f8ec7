"""Do the statements about a front hold: the probability of `choose`, the bands, what is missing, what ten more bring?

    python benchmarks/front_knowledge.py [--cores 2]   writes docs/benchmarks/front_knowledge.md and .csv; resumes
    python benchmarks/front_knowledge.py --report      writes the page from the table

Runs with two outputs, both drawn from Gaussian processes in two to four dimensions, one to be maximised and one to be
minimised, with noise. Everything is learned. The rules were chosen on other draws. The true front is found without the
library: many points, then a constrained optimiser for each ray.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import harness
import numpy as np
from problems import draws
from problems.functions import Array
from problems.hypervolume import hypervolume

import gpmi
from gpmi.analysis.ledger.front_ledger import FrontLedger

COLUMNS = ("d", "noise", "seed", "t", "what", "said", "low", "high", "true")
TABLE = harness.Table(harness.DOCS / "front_knowledge.csv", COLUMNS, COLUMNS[:3])
Row = tuple[int, float, int, int, str, float, float, float, float]
NAN = float("nan")

DIMENSIONS, NOISES, SEEDS, STREAM = (2, 3, 4), (0.05, 0.2), 24, 207  # noise in standard deviations of f
LOOKS, MORE, SHARE = (20, 30, 40), 10, 0.01
PRICED = 0.1  # the noise of the runs that are timed
SCREEN, STARTS = 13, 3  # log2 of the points of the true front, and how many of them each ray is climbed from


class Pair:
    """Two drawn functions, a to be maximised and b to be minimised, and their true front."""

    def __init__(self, d: int, number: int, stream: int) -> None:
        from scipy.stats import qmc

        self.d = d
        self.functions = [draws.random_draw(d, 2 * number + i, stream) for i in (0, 1)]
        self.points = qmc.Sobol(d, seed=1).random(2**SCREEN)
        self.values = np.column_stack([self.many(f, self.points) for f in self.functions])

    @staticmethod
    def many(f: Any, x: Array) -> Array:
        """Return f at many points."""
        parts = [x[i : i + 1024] for i in range(0, len(x), 1024)]
        return np.concatenate([np.cos(part @ f.omega.T + f.phase) @ f.weights for part in parts])

    def at(self, x: Array) -> Array:
        """Return both functions at a point, oriented so that larger is better."""
        return np.array([f(x) for f in self.functions])

    def heights(self, reference: Array, span: Array, directions: Array) -> Array:
        """Return how far each ray r + h span w is below the true front: max over x of min_i (f_i - r_i) / span_i / w_i.

        Points that one ray finds are starts of the others.
        """
        from scipy.optimize import minimize

        found = np.zeros(len(directions))
        points, values = self.points, (self.values - reference) / span
        for j, w in [*enumerate(directions), *reversed(list(enumerate(directions)))]:
            heights = (values / w).min(axis=1)
            best = np.argsort(-heights)[:STARTS]
            found[j] = max(found[j], float(heights[best[0]]))
            limits = [self._limit(i, reference[i], span[i] * w[i]) for i in (0, 1)]
            for start in best:
                end = minimize(
                    lambda v: -v[-1], np.append(points[start], heights[start]), method="SLSQP",
                    jac=lambda v: np.append(np.zeros(len(v) - 1), -1.0),
                    bounds=[(0.0, 1.0)] * self.d + [(None, None)], constraints=limits, options={"ftol": 1e-9},
                )  # fmt: skip
                x = np.clip(end.x[:-1], 0.0, 1.0)
                unit = (self.at(x) - reference) / span
                points, values = np.vstack([points, x]), np.vstack([values, unit])
                found[j] = max(found[j], float((unit / w).min()))
        for j, w in enumerate(directions):
            found[j] = max(found[j], float((values / w).min(axis=1).max()))
        return found

    def _limit(self, i: int, low: float, unit: float) -> dict[str, Any]:
        f = self.functions[i]
        return {
            "type": "ineq",
            "fun": lambda v: (f(v[:-1]) - low) / unit - v[-1],
            "jac": lambda v: np.append(f.gradient(v[:-1]) / unit, -1.0),
        }

    def volume(self, x: Array, reference: Array) -> float:
        """Return the true hypervolume of some points above the reference."""
        values = np.array([self.at(one) for one in x]).reshape(-1, 2)
        return hypervolume(-values, -reference)


def front_of_values(opt: gpmi.Optimizer) -> list[Array]:
    """Return the points that are not dominated by the values as they were told."""
    told = np.array([[t.outputs["a"], -t.outputs["b"]] for t in opt.trials])
    keep = [not np.any(np.all(told >= y, axis=1) & np.any(told > y, axis=1)) for y in told]
    return [trial.x for trial, on in zip(opt.trials, keep, strict=True) if on]


def looks(d: int, noise: float, number: int, seed: int, stream: int = STREAM) -> Iterator[Row]:
    """Play a run, and yield what is said at every look and what is true."""
    pair = Pair(d, number, stream)
    rng = np.random.default_rng([number, stream, d])
    opt = gpmi.Optimizer([(0.0, 1.0)] * d, goals={"a": "max", "b": "min"}, seed=number, budget=max(LOOKS))
    expected: tuple[float, float, float] | None = None
    for t in range(1, max(LOOKS) + 1):
        x = opt.ask()
        a, b = pair.at(x) + noise * rng.standard_normal(2)
        opt.tell(x, {"a": a, "b": -b})
        if t not in LOOKS:
            continue
        ledger, head = opt.ledger, (d, noise, seed, t)
        assert isinstance(ledger, FrontLedger)
        yield *head, "choose", *choice(opt, pair, rng)
        assert ledger.reference is not None
        reference = np.array([ledger.reference["a"], -ledger.reference["b"]])
        have = pair.volume([trial.x for trial in ledger.front], reference)
        if expected is not None:
            chance, step, before = expected
            yield *head, "chance", chance, NAN, NAN, float(have - before > step)
        if t + MORE <= max(LOOKS):
            expected = ledger.gain(MORE).probability_above(ledger.smallest_gain), ledger.smallest_gain, have
        yield *head, "front", ledger.hypervolume, NAN, pair.volume(front_of_values(opt), reference), have
        bands = ledger.front_bands()
        if bands is None:
            continue
        rays = ledger._draws.rays
        true = pair.heights(rays.reference, rays.span, rays.directions)
        signs = np.array([1.0, -1.0])
        low, high = ((signs * one - rays.reference) / rays.span / rays.directions for one in (bands.low, bands.high))
        inside = (low.min(axis=1) - 1e-6 <= true) & (true <= high.max(axis=1) + 1e-6)
        width = float(np.mean(high.max(axis=1) - low.min(axis=1)))
        yield *head, "bands", float(np.mean(inside)), float(np.mean(true < low.min(axis=1))), width, NAN
        fine, own = rays.fine, np.array([pair.at(trial.x) for trial in ledger.front])
        heights = fine.heights(own)
        total = np.maximum(rays.refined(np.maximum(true, 0.0)[None])[0], heights)
        missing = float(fine.volume(total) - fine.volume(heights))
        possible = float(fine.volume(total))
        median, high95, high90 = ledger.missing.median, ledger.missing.interval()[1], ledger.missing.interval(0.9)[1]
        yield *head, "missing", median / possible, high90 / possible, high95 / possible, missing / possible


def choice(opt: gpmi.Optimizer, pair: Pair, rng: np.random.Generator) -> tuple[float, float, float, float]:
    """Choose a point under a random condition; return what was said of it, the predicted a with its sd, and the truth.

    The condition is on b, anywhere between the ends of the front; sometimes it has two sides.
    """
    ends = np.array([trial.outputs["b"] for trial in opt.front])
    most = float(rng.uniform(ends.min(), ends.max() + 1e-9))
    least = most - float(rng.uniform(0.5, 2.0)) if rng.random() < 0.25 else -np.inf
    where: Any = {"b": f"<= {most!r}" if np.isinf(least) else (least, most)}
    chosen = opt.choose(where=where, a="max")
    a, b = pair.at(chosen.x) * np.array([1.0, -1.0])
    holds = least <= b <= most
    predicted = chosen.outputs["a"]
    return chosen.probability, abs(a - predicted.mean) / predicted.sd, float(chosen.note is None), float(holds)


def play(d: int, noise: float, seed: int) -> list[tuple[object, ...]]:
    """Play a run, or time one, and return its rows."""
    found = [price(d, seed)] if noise == PRICED else looks(d, noise, 10 * seed + NOISES.index(noise), seed)
    return [tuple(f"{v:.6g}" if isinstance(v, float) else v for v in row) for row in found]


def runs() -> list[tuple[int, float, int]]:
    """Return all runs, seed by seed, then those that are timed."""
    played = [(d, noise, seed) for seed in range(SEEDS) for d in DIMENSIONS for noise in NOISES]
    return [*played, *((d, PRICED, seed) for seed in range(3) for d in DIMENSIONS)]


def price(d: int, seed: int) -> Row:
    """Return the CPU seconds of a suggestion and of the first printed ledger after 60 values with noise."""
    pair = [draws.random_draw(d, 2 * seed + i, STREAM + 1) for i in (0, 1)]
    rng = np.random.default_rng([seed, STREAM + 1])
    opt, spent = gpmi.Optimizer([(0.0, 1.0)] * d, goals={"a": "max", "b": "min"}, seed=seed, budget=60), 0.0
    for _ in range(60):
        begin = time.process_time()
        x = opt.ask()
        spent += time.process_time() - begin
        a, b = (f(x) + 0.1 * rng.standard_normal() for f in pair)
        opt.tell(x, {"a": float(a), "b": float(-b)})
    ledger = harness.cpu_seconds(lambda: str(opt.ledger))
    chosen = harness.cpu_seconds(lambda: opt.choose(where={"b": "<= 0"}, a="max"))
    return d, PRICED, seed, 60, "price", ledger, chosen, spent / 60, NAN


# The page


def load() -> list[Row]:
    """Return all rows, with their numbers."""
    return [
        (int(r["d"]), float(r["noise"]), int(r["seed"]), int(r["t"]), r["what"],
         float(r["said"]), float(r["low"]), float(r["high"]), float(r["true"]))
        for r in TABLE.rows()
    ]  # fmt: skip


def error(rows: list[Row], value: int) -> float:
    """Return 1.96 standard errors of a mean over runs, in %. The looks of one run are not independent."""
    by_run: dict[tuple[object, ...], list[float]] = {}
    for row in rows:
        by_run.setdefault(row[:3], []).append(float(row[value]))
    return float(196 * np.std([np.mean(v) for v in by_run.values()]) / np.sqrt(max(1, len(by_run))))


def groups(rows: list[Row]) -> dict[str, list[Row]]:
    """Return all rows, and those of every noise, dimension and look."""
    found = {"all": rows}
    found |= {f"noise {100 * noise:g} %": [r for r in rows if r[1] == noise] for noise in NOISES}
    found |= {f"d = {d}": [r for r in rows if r[0] == d] for d in DIMENSIONS}
    found |= {f"t = {t}": [r for r in rows if r[3] == t] for t in LOOKS}
    return {name: some for name, some in found.items() if some}


def share(numbers: list[float]) -> str:
    """Format a share."""
    return f"{100 * np.mean(numbers):.1f} %" if numbers else ""


def statements(rows: list[Row]) -> list[Row]:
    """Return the choices that state 90 % or more."""
    return [r for r in rows if r[4] == "choose" and r[5] >= 0.9]


def of(rows: list[Row], what: str) -> list[Row]:
    return [r for r in rows if r[4] == what]


def promises(rows: list[Row]) -> list[tuple[object, ...]]:
    """Return the table of all promises."""
    said, bands, missing = statements(rows), of(rows, "bands"), of(rows, "missing")
    lines: list[tuple[object, ...]] = []
    if said:
        held = float(np.mean([r[8] for r in said]))
        text = f"`choose`: statements of 90 % hold in 85 to 95 % of {len(said)} cases"
        lines.append((text, f"{100 * held:.1f} ± {error(said, 8):.1f} %", harness.yes(0.85 <= held <= 0.95)))
    if bands:
        inside = float(np.mean([r[5] for r in bands]))
        text = f"90 % bands of the front cover in 85 to 97 % of the rays of {len(bands)} looks"
        lines.append((text, f"{100 * inside:.1f} ± {error(bands, 5):.1f} %", harness.yes(0.85 <= inside <= 0.97)))
    if missing:
        below = [(*r[:5], float(r[8] <= r[7] + 1e-9), NAN, NAN, NAN) for r in missing]
        held = float(np.mean([r[5] for r in below]))
        text = f"what is still to be had is below its 95 % bound in 90 to 99 % of {len(below)} looks"
        lines.append((text, f"{100 * held:.1f} ± {error(below, 5):.1f} %", harness.yes(0.9 <= held <= 0.99)))
    fronts = of(rows, "front")
    if fronts:
        ratio = float(np.mean([r[8] / r[7] for r in fronts if r[7] > 0.0]))
        text = "the front of the means has a larger true hypervolume than the front of the values"
        lines.append((text, f"{100 * (ratio - 1):+.1f} % on average", harness.yes(ratio > 1.0)))
    priced = of(rows, "price")
    if priced:
        worst = max(float(np.median([r[5] for r in priced if r[0] == d])) for d in {r[0] for r in priced})
        text = "the first printed ledger after 60 values takes less than 1 s of CPU"
        lines.append((text, f"{worst:.2f} s (largest median over d)", harness.yes(worst < 1.0)))
    return lines


def statement_row(name: str, rows: list[Row]) -> tuple[object, ...]:
    said, every, bands, missing = statements(rows), of(rows, "choose"), of(rows, "bands"), of(rows, "missing")
    border = [r[8] for r in said if r[5] < 0.92]
    return (
        name, len(said), share([r[8] for r in said]), share(border),
        share([float(r[5] < 0.9) for r in every]), share([float(r[6] <= 1.645) for r in said]),
        share([r[5] for r in bands]), share([r[6] for r in bands]),
        share([float(r[8] <= r[7] + 1e-9) for r in missing]),
        f"{100 * np.median([r[8] for r in missing]):.0f} %", f"{100 * np.median([r[7] for r in missing]):.0f} %",
    )  # fmt: skip


def chance_table(rows: list[Row]) -> list[str]:
    """Return how often a gain came, by the chance that was said, and the Brier score."""
    said = np.array([[r[5], r[8]] for r in of(rows, "chance")])
    if not len(said):
        return ["Not measured yet."]
    lines = []
    for low, high in pairwise((0.0, 0.2, 0.5, 0.8, 1.01)):
        mine = said[(said[:, 0] >= low) & (said[:, 0] < high)]
        if len(mine):
            lines.append((f"{low:g} to {min(high, 1):g}", len(mine), *(f"{v:.2f}" for v in mine.mean(axis=0))))
    brier, base = float(np.mean((said[:, 0] - said[:, 1]) ** 2)), float(said[:, 1].mean())
    return [
        *harness.table(("said", "looks", "mean said", "happened"), lines),
        "",
        f"Brier score {brier:.3f}; always saying {base:.2f} would score {base * (1 - base):.3f}.",
    ]


def front_table(rows: list[Row]) -> list[str]:
    """Return the true hypervolume of the two fronts, and what was said of it."""
    lines = []
    for name, some in groups(rows).items():
        mine = [r for r in of(some, "front") if r[7] > 0.0]
        if mine:
            ratio, said = np.array([r[8] / r[7] for r in mine]), np.array([r[5] / r[8] for r in mine])
            better, worse = np.mean(ratio > 1 + 1e-9), np.mean(ratio < 1 - 1e-9)
            lines.append((
                name, len(mine), f"{100 * (ratio.mean() - 1):+.1f} %", f"{100 * better:.0f} %", f"{100 * worse:.0f} %",
                f"{100 * (said.mean() - 1):+.1f} %",
            ))  # fmt: skip
    head = ("looks", "number", "means against values", "larger", "smaller", "said too much by")
    return harness.table(head, lines)


def write_page(new: int) -> None:
    """Write the page from the table."""
    rows = load()
    head = (
        "looks", "statements", "hold", "hold at the border", "none reached", "objective within 1.645 sd",
        "bands cover", "front below the bands", "missing below its bound", "median missing", "median bound",
    )  # fmt: skip
    played = [r for r in rows if r[1] in NOISES]
    priced = of(rows, "price")
    times = [
        (d, *(f"{1e3 * np.median([r[i] for r in priced if r[0] == d]):.0f} ms" for i in (7, 5, 6)))
        for d in sorted({r[0] for r in priced})
    ]
    body = [
        *harness.table(("promise", "measured", "holds"), promises(rows)),
        "",
        "## Statements",
        "",
        f"Two outputs, each a draw of a Gaussian process with random kernel and lengthscales; noise in standard "
        f"deviations of f. The default policy, looks at t = {', '.join(map(str, LOOKS))}. At each look a point is "
        "chosen under a random condition on b, anywhere between the ends of the front, sometimes with two sides. A "
        "statement is a choice whose probability is at least 90 %; it holds if the true b meets the condition. At the "
        'border are those that state 90 to 92 %. "None reached" is the share of choices where no point had 90 %. The '
        "bands are compared with the true front on every ray. Missing is what the true front has more than the true "
        "values of our own front, as a share of what is possible.",
        "",
        *harness.table(head, [statement_row(name, some) for name, some in groups(played).items()]),
        "",
        f"## What {MORE} more evaluations bring",
        "",
        f"The chance that {MORE} more evaluations gain more than {100 * SHARE:g} % of the hypervolume, said at t = 20 "
        "and 30, and how often the true hypervolume of the front grew by more.",
        "",
        *chance_table(rows),
        "",
        "## The front under noise",
        "",
        "The true hypervolume of the points that are not dominated by their posterior means, against that of those "
        "that are not dominated by the values told. The last column compares the hypervolume of the means with the "
        "true one.",
        "",
        *front_table(played),
        "",
        "## Cost",
        "",
        "CPU at n = 60, two objectives, noise 10 %.",
        "",
        *harness.table(("d", "a suggestion", "the first printed ledger", "a choice after it"), times),
    ]
    text = (
        "Every number is from front_knowledge.csv. The runs were listed beforehand, and nothing was chosen on them. "
        "The prior of the noise behind these statements, and the number of points of a drawn front, were chosen on "
        "draws of another stream. There, with the prior that suggestions use, which takes small noise for none, "
        "statements of 90 % held in 75 % of 146 cases."
    )
    harness.page(__file__, "What is known of a front, measured", text, body, runs=len({r[:3] for r in rows}), new=new)


def order(row: harness.Row) -> tuple[object, ...]:
    """Return the place of a row in the table."""
    return int(row["d"]), float(row["noise"]), int(row["seed"]), int(row["t"]), row["what"]


def main() -> None:
    args = harness.parser(__doc__, cores=True, report=True).parse_args()
    new = 0 if args.report else harness.resume(TABLE, runs(), play, args.cores)
    TABLE.tidy(order)
    write_page(new)


if __name__ == "__main__":
    main()
