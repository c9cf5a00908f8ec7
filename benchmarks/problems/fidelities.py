"""Functions that can be measured coarsely or finely, all maximised on boxes. Written from the published formulas.

`PROBLEMS["branin-fair"].evaluate(x, level)` is one of them: level 0 is the coarsest, the last one is the target. The
name is that of the fine function and of the variant of the other levels:

- fair, close, poor: levels of the literature, named by how they correlate with the fine one
- three: two coarser levels of the literature
- unrelated: a random smooth function with the mean and deviation of the fine one, and hardly any correlation
- reversed: the fine function with the other sign

Extremes, means and deviations of the fine functions are in `fidelities.json`, which
`make bench NAME=fidelities ARGS=--extremes` writes.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from scipy.optimize import minimize
from scipy.stats import qmc

from .functions import A6, BRANIN, P6, WEIGHTS, Array, Bounds

EXTREMES = Path(__file__).with_name("fidelities.json")
FEATURES, REACH = 512, 0.25  # cosines of an unrelated level; its length scale, as a share of the box's diagonal
UNRELATED = 0.1  # the largest correlation of an unrelated level
POWER, STARTS = 16, 64  # extremes: 2^16 Sobol' points, the best 64 of them improved
Level = Callable[[Array], Array]  # of points (..., d)
COSTS: dict[str, tuple[float, ...]] = {"1:10": (1.0, 10.0), "1:60": (1.0, 60.0), "1:8:60": (1.0, 8.0, 60.0)}


@dataclass(frozen=True)
class Problem:
    """A box and a function at several levels, coarse to fine. The last one is to be maximised."""

    function: str
    variant: str
    bounds: Array  # (d, 2)
    levels: tuple[Level, ...]

    @property
    def name(self) -> str:
        return f"{self.function}-{self.variant}"

    @property
    def d(self) -> int:
        return len(self.bounds)

    @property
    def fine(self) -> int:
        """Return the number of the target level."""
        return len(self.levels) - 1

    @property
    def ratios(self) -> tuple[str, ...]:
        """Return the names of the costs that it is played with."""
        return tuple(name for name, costs in COSTS.items() if len(costs) == len(self.levels))

    @property
    def maximum(self) -> float:
        """Return the largest value of the fine level."""
        return extremes()[self.function]["maximum"]

    @property
    def range(self) -> float:
        """Return the largest minus the smallest value of the fine level."""
        return self.maximum - extremes()[self.function]["minimum"]

    def evaluate(self, x: Array, level: int = -1) -> Array:  # (..., d) -> (...)
        """Return the values of points of the box at one level."""
        return self.levels[level](np.asarray(x, dtype=float))

    def regret(self, x: Array) -> Array:  # (..., d) -> (...)
        """Return how far the fine values of points are below the maximum, as a share of the range."""
        return (self.maximum - self.evaluate(x)) / self.range

    def scaled(self, unit: Array) -> Array:  # (..., d) in [0, 1]
        """Return the points of the box that belong to points of the unit cube."""
        return scaled(self.bounds, unit)


def scaled(bounds: Array, unit: Array) -> Array:
    """Return the points of a box that belong to points of the unit cube."""
    lo, hi = bounds.T
    points: Array = lo + np.clip(unit, 0.0, 1.0) * (hi - lo)
    return points


# Branin: the coarse levels are BoTorch's augmented function (Wu and others 2019), and those of Dong and others 2015


def branin(fidelity: float) -> Level:
    """Return Branin's function, negated, whose parabola is bent less at fidelities below 1."""

    def evaluate(x: Array) -> Array:
        bend = 5.1 / (4 * np.pi**2) - 0.1 * (1 - fidelity)
        bowl = x[..., 1] - bend * x[..., 0] ** 2 + 5 / np.pi * x[..., 0] - 6
        return -(bowl**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x[..., 0]) + 10)

    return evaluate


def dong_fine(x: Array) -> Array:
    """Return Branin's function with a slope that leaves one maximum, at a bound."""
    return branin(1.0)(x) + 22.5 * x[..., 1]


def dong_coarse(x: Array) -> Array:
    return branin(1.0)(0.7 * x) + 15.75 * x[..., 1] - 20 * (0.9 + x[..., 0]) ** 2 + 50


# Xiong, Qian and Wu 2013


def currin(x: Array) -> Array:
    """Return Currin's exponential function."""
    u, v = x[..., 0], x[..., 1]
    decay = 1 - np.exp(-0.5 / np.maximum(v, 1e-8))
    product: Array = decay * np.polyval([2300, 1900, 2092, 60], u) / np.polyval([100, 500, 4, 20], u)
    return product


def currin_coarse(x: Array) -> Array:
    """Return its mean over four points around x."""
    u, v = x[..., 0], x[..., 1]
    high, low = v + 0.05, np.maximum(v - 0.05, 0.0)
    corners = [np.stack([a, b], axis=-1) for a in (u + 0.05, u - 0.05) for b in (high, low)]
    mean: Array = np.mean([currin(corner) for corner in corners], axis=0)
    return mean


def borehole(gain: float, offset: float) -> Level:
    """Return the flow of water through a borehole: the gain is 2 π and the offset 1 in the fine model."""

    def evaluate(x: Array) -> Array:
        radius, reach, upper, upper_head, lower, lower_head, length, conductivity = np.moveaxis(x, -1, 0)
        ratio = np.log(reach / radius)
        resistance = 2 * length * upper / (ratio * radius**2 * conductivity)
        flow: Array = gain * upper * (upper_head - lower_head) / (ratio * (offset + resistance + upper / lower))
        return flow

    return evaluate


# Hartmann: the coarse levels of Park, Haftka and Kim 2016, and BoTorch's augmented function


def exponents(x: Array) -> Array:  # (..., 6) -> (..., 4)
    squares: Array = np.sum(A6 * (x[..., None, :] - P6) ** 2, axis=-1)
    return -squares


def hartmann6(fidelity: float) -> Level:
    """Return Hartmann's function in six dimensions, whose first hump is lower at fidelities below 1."""
    heights = WEIGHTS - np.array([0.1 * (1 - fidelity), 0.0, 0.0, 0.0])
    return lambda x: np.exp(exponents(x)) @ heights


def hartmann6_coarse(x: Array) -> Array:
    """Return the same with other heights, and a power in the place of the exponential function."""
    rough = np.exp(-4.0) * (1 + (exponents(x) + 4) / 9) ** 9
    total: Array = rough @ np.array([0.5, 0.5, 2.0, 4.0])
    return total


# Levels that say nothing, or the opposite


def unrelated(function: str) -> Level:
    """Return a draw of a Gaussian process, by random cosines, with the mean and deviation of the fine function.

    It is the first draw whose correlation with the fine function is below 0.1: those of smooth functions are often not.
    """
    bounds, fine = np.array(FUNCTIONS[function][0]), FUNCTIONS[function][1]
    (lo, hi), points = bounds.T, sobol(bounds, 12)
    values, rng = fine(points), np.random.default_rng([11, zlib.crc32(function.encode())])
    while True:
        waves = rng.standard_normal((FEATURES, len(lo))) / (REACH * np.sqrt(len(lo)))
        phases, weights = rng.uniform(0, 2 * np.pi, FEATURES), rng.standard_normal(FEATURES)

        def draw(x: Array, waves: Array = waves, phases: Array = phases, weights: Array = weights) -> Array:
            cosines: Array = np.cos((x - lo) / (hi - lo) @ waves.T + phases)
            return cosines @ weights

        sample = draw(points)
        if abs(np.corrcoef(sample, values)[0, 1]) < UNRELATED:
            break
    scale, centre = values.std() / sample.std(), sample.mean()
    return lambda x: values.mean() + scale * (draw(x) - centre)


def opposite(level: Level) -> Level:
    return lambda x: -level(x)


# All of them


def box(d: int, lo: float = 0.0, hi: float = 1.0) -> Bounds:
    return [(lo, hi)] * d


WELL: Bounds = [
    *[(0.05, 0.15), (100.0, 50_000.0), (63_070.0, 115_600.0), (990.0, 1_110.0)],
    *[(63.1, 116.0), (700.0, 820.0), (1_120.0, 1_680.0), (9_855.0, 12_045.0)],
]
FUNCTIONS: dict[str, tuple[Bounds, Level]] = {
    "branin": (BRANIN, branin(1.0)),
    "dong": (BRANIN, dong_fine),
    "currin": (box(2), currin),
    "borehole": (WELL, borehole(2 * np.pi, 1.0)),
    "hartmann6": (box(6, 0.1), hartmann6(1.0)),
}
PUBLISHED: dict[str, dict[str, tuple[Level, ...]]] = {  # by function and variant: the coarse levels
    "branin": {"fair": (branin(0.5),), "poor": (branin(0.0),), "three": (branin(0.0), branin(0.5))},
    "dong": {"poor": (dong_coarse,)},
    "currin": {"fair": (currin_coarse,)},
    "borehole": {"fair": (borehole(5.0, 1.5),)},
    "hartmann6": {
        "fair": (hartmann6_coarse,),
        "close": (hartmann6(0.0),),
        "three": (hartmann6_coarse, hartmann6(0.0)),
    },
}
WITHOUT_USE = ("branin", "currin", "borehole", "hartmann6")  # also played with levels that say nothing


def build() -> dict[str, Problem]:
    """Return all problems by name."""
    found = []
    for function, (bounds, fine) in FUNCTIONS.items():
        variants = dict(PUBLISHED[function])
        if function in WITHOUT_USE:
            variants |= {"unrelated": (unrelated(function),), "reversed": (opposite(fine),)}
        found += [Problem(function, name, np.array(bounds), (*coarse, fine)) for name, coarse in variants.items()]
    return {problem.name: problem for problem in found}


# What is known about the fine functions


@cache
def extremes() -> dict[str, dict[str, float]]:
    """Return maximum, minimum, mean and deviation of the fine functions."""
    return json.loads(EXTREMES.read_text()) if EXTREMES.exists() else {}


def sobol(bounds: Array, power: int) -> Array:
    """Return 2^power points of a box."""
    return scaled(bounds, qmc.Sobol(len(bounds), seed=0).random_base2(power))


def climbed(level: Level, bounds: Array, points: Array, values: Array) -> float:
    """Return the largest value that L-BFGS-B finds from the best points, which it sees in the unit cube."""
    starts = (points[np.argsort(-values)[:STARTS]] - bounds[:, 0]) / (bounds[:, 1] - bounds[:, 0])
    tops = [
        -minimize(lambda u: -float(level(scaled(bounds, u))), start, bounds=box(len(bounds)), method="L-BFGS-B").fun
        for start in starts
    ]
    return float(max(values.max(), *tops))


def find_extremes(functions: Sequence[str] = tuple(FUNCTIONS)) -> dict[str, dict[str, float]]:
    """Search the fine functions for their extremes, and write what was found."""
    found = dict(extremes())
    for function in functions:
        bounds, level = np.array(FUNCTIONS[function][0]), FUNCTIONS[function][1]
        points = sobol(bounds, POWER)
        values = level(points)
        found[function] = {
            "maximum": climbed(level, bounds, points, values),
            "minimum": -climbed(opposite(level), bounds, points, -values),
            "mean": float(values.mean()),
            "sd": float(values.std()),
        }
    EXTREMES.write_text(json.dumps(found, indent=1) + "\n")
    extremes.cache_clear()
    return found


PROBLEMS = build()
