"""What is optimised in the benchmarks. Here: the twenty problems of the comparison, smooth and rugged, exact and noisy.

`make(name, seed)` returns one of them, or one of the ten in `held_out`. Only the GP draws depend on the seed: each seed
is a new function. The boxes of Ackley, Levy, Goldstein-Price and Michalewicz differ from the customary ones. No
coordinate of the maximiser is in the middle of its interval, where some optimisers look first. The maxima are the
customary ones; `make bench NAME=maxima` finds those that have no closed form.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

import gpmi
from paper.tasks import HIMMELBLAU, branin, goldstein_price, log_goldstein_price

from . import functions as fs
from .functions import Array, Bounds, Problem
from .held_out import HELD_OUT

MAXIMA = Path(__file__).with_name("maxima.json")
GOLDSTEIN_PRICE: Bounds = [(-2.0, 1.6), (-2.0, 2.0)]
ACKLEY: Bounds = [(-10.0, 20.0), (-20.0, 10.0), (-10.0, 20.0), (-20.0, 10.0), (-10.0, 20.0)]
MICHALEWICZ: Bounds = [(0.0, 3.5)] * 5  # x2 = pi / 2 at the maximum


def unit(d: int) -> Bounds:
    """Return the unit cube."""
    return [(0.0, 1.0)] * d


FIXED = {
    problem.name: problem
    for problem in (
        Problem("himmelblau", list(HIMMELBLAU.bounds), HIMMELBLAU.f, HIMMELBLAU.maximum),
        Problem("mixture", unit(2), fs.mixture, None),
        Problem("branin", fs.BRANIN, branin, fs.BRANIN_MAXIMUM),
        Problem("goldstein-price", GOLDSTEIN_PRICE, goldstein_price, -3.0),
        Problem("log-goldstein-price", GOLDSTEIN_PRICE, log_goldstein_price, -float(np.log(3.0))),
        Problem("hartmann-3", unit(3), fs.hartmann3, fs.HARTMANN3_MAXIMUM),
        Problem("hartmann-6", unit(6), fs.hartmann6, fs.HARTMANN6_MAXIMUM),
        Problem("ackley-5", ACKLEY, fs.ackley, 0.0),
        Problem("levy-4", fs.LEVY, fs.levy, 0.0),
        Problem("rosenbrock-4", [(-5.0, 10.0)] * 4, fs.rosenbrock, 0.0),
        Problem("michalewicz-5", MICHALEWICZ, fs.michalewicz, 4.687658179088148),
        Problem("styblinski-tang-4", [(-5.0, 5.0)] * 4, fs.styblinski_tang, 156.66466281508565),
        # The noise is 5 % of the function's standard deviation on Branin, 8 % on Hartmann-6 and on the draw.
        Problem("branin-noisy", fs.BRANIN, branin, fs.BRANIN_MAXIMUM, noise_sd=2.5),
        Problem("hartmann-6-noisy", unit(6), fs.hartmann6, fs.HARTMANN6_MAXIMUM, noise_sd=0.03),
        Problem("hartmann-mixed", fs.MIXED, fs.hartmann_mixed, None),
        Problem("svr-diabetes", fs.SVR, fs.svr_diabetes, None),
        Problem("boosting-cancer", fs.BOOSTING, fs.boosting_cancer, None),
    )
}
DRAWS = {"gp-2": (2, 0, 0.0), "gp-4": (4, 0, 0.0), "gp-2-noisy": (2, 1, 0.08)}  # dimension, stream, noise sd
NAMES = (*FIXED, *DRAWS)


def make(name: str, seed: int) -> Problem:
    """Return the problem of that name. A GP draw is the function of that seed."""
    if name in DRAWS:
        d, stream, noise_sd = DRAWS[name]
        return Problem(name, unit(d), fs.gp_draw(d, stream, seed), _stored().get(f"{name}/{seed}"), noise_sd)
    problem = FIXED[name] if name in FIXED else HELD_OUT[name]
    if problem.maximum is None:
        return replace(problem, maximum=_stored().get(name))
    return problem


def spread(name: str, maximum: float) -> float:
    """Return the maximum minus the mean of f over its space, which is 0 for a GP draw. Gaps are divided by it."""
    return maximum - _stored().get(f"mean/{name}", 0.0)


def values_at_random(problem: Problem, points: int) -> Array:
    """Return f at so many uniform points of its space, always the same ones."""
    space = gpmi.Space.of(problem.space)
    rows = space.from_unit(np.random.default_rng(0).random((points, space.unit_dim)))
    return np.array([problem.f(space.decode(row)) for row in rows])


@cache
def _stored() -> dict[str, float]:
    return json.loads(MAXIMA.read_text()) if MAXIMA.exists() else {}
