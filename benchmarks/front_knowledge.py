"""Do the statements about a front hold: the probability of `choose`, the bands, what is missing, what ten more bring?

    python benchmarks/front_knowledge.py [--cores 2]   writes docs/benchmarks/front_knowledge.md and .csv; resumes
    python benchmarks/front_knowledge.py --report      writes the page from the table

Runs with two outputs, both drawn from Gaussian processes in two to four dimensions, one to be maximised and one to be
minimised, with noise. Everything is learned. The rules were chosen on other draws. The true front is found without the
library: many points, then a constrained optimiser for each ray.
"""

from __future__ import annotations

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
    """Play one run and return its rows."""
    number = 10 * seed + NOISES.index(noise)
    return [tuple(f"{v:.6g}" if isinstance(v, float) else v for v in row) for row in looks(d, noise, number, seed)]


def runs() -> list[tuple[int, float, int]]:
    """Return all runs, seed by seed."""
    return [(d, noise, seed) for seed in range(SEEDS) for d in DIMENSIONS for noise in NOISES]
