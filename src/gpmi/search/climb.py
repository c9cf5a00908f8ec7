"""Newton's method in a trust region: local maxima of one function from a few starts in lockstep.

The library has three local optimisers, because three problems differ in what is cheap:

- Here a few starts share one function, and several points in one call cost much less than one by one. So each start
  can afford the d + 1 points of a Hessian by finite differences, and few rounds are needed.
- `model.fitting.descent` descends from one start at a time. Each evaluation costs O(n^3), and k points cost k times as
  much. It learns the Hessian from successive gradients (BFGS).
- `analysis.ledger.maxima` climbs hundreds of different functions, one start each. Hessians would multiply the number
  of points by d + 1, and a rough maximum is enough. It takes gradient steps.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from gpmi._support.types import Array, Numbers
from gpmi.gp.linalg import eigen
from gpmi.policies.policy import TINY

# Points (s k, d), k for each of the starts with numbers (s,) -> values (s k,) and gradients (s k, d)
Differentiable: TypeAlias = Callable[[Array, Numbers], tuple[Array, Array]]

# "Measured" means 18 runs of 40 evaluations on six problems of benchmarks/problems, three seeds each; no page shows
# them. The others are our choices, not tuned.
ROUNDS = 60  # at most. Measured: the median climb takes 4 rounds, one in twenty 10 to 20, and 2 of 612 reach the limit
GIVE_UP = 1e-6  # a step shorter than this, in widths of the box, ends a climb
RADIUS = 0.125  # of the first trust region, in units of reach. Measured: with 0.5 it takes 25 to 35 % more points
DIFFERENCE = 1e-5  # step of the finite differences of gradients, in widths of the box: far above rounding
SAME_PEAK = 0.02  # starts closer than this, in widths of the box, climb the same peak


def climb(
    f: Differentiable,
    u: Array,  # (s, d) in the unit cube
    reach: Array,  # (d,), the distances over which f changes
    tolerance: float = 0.0,  # a climb ends when the next step is expected to gain less
) -> tuple[Array, Array]:
    """Return local maxima of f in the unit cube and their values, from all starts in lockstep.

    Each round calls f once, with d + 1 points for every start that still moves. A step that does not gain is rejected,
    and the trust region shrinks. A start that comes close to the best one, or is not expected to overtake it with its
    next step, is dropped.
    """
    u = np.clip(u, 0.0, 1.0)
    at = np.arange(len(u))  # the numbers of the starts that still move; the arrays below have a row for each
    value, gradient, hessian = _expansion(f, u, at)
    best_u, best_value = u.copy(), value.copy()  # for all starts: the point reached so far
    radius = np.full(len(u), RADIUS)
    for _ in range(ROUNDS):
        step = _newton_step(u, gradient, hessian, reach, radius)
        promise = (step * gradient).sum(axis=1)  # the gain to first order; near a maximum about twice the real gain
        moving = (promise > tolerance) & (np.abs(step).max(axis=1) > GIVE_UP)
        leader = best_value.argmax()
        if len(at) > 1 or at[0] != leader:
            rival = (value + promise > best_value[leader]) & (np.abs(u - best_u[leader]).max(axis=1) > SAME_PEAK)
            moving &= rival | (at == leader)
        left = np.flatnonzero(moving)
        if len(left) == 0:
            break
        if len(left) < len(at):
            at, u, value, gradient, hessian = at[left], u[left], value[left], gradient[left], hessian[left]
            radius, step, promise = radius[left], step[left], promise[left]
        end = u + step
        new_value, new_gradient, new_hessian = _expansion(f, end, at)
        gained = new_value >= value + 1e-4 * promise  # Armijo's condition; never true where the value is nan
        if gained.all():
            u, value, gradient, hessian, radius = end, new_value, new_gradient, new_hessian, 2.0 * radius
        else:
            u = np.where(gained[:, None], end, u)
            value = np.where(gained, new_value, value)
            gradient = np.where(gained[:, None], new_gradient, gradient)
            hessian = np.where(gained[:, None, None], new_hessian, hessian)
            radius = np.where(gained, 2.0 * radius, 0.25 * np.minimum(radius, np.abs(step / reach).max(axis=1)))
        best_u[at], best_value[at] = u, value
    return best_u, best_value


def _expansion(f: Differentiable, u: Array, which: Numbers) -> tuple[Array, Array, Array]:
    """Return values (s,), gradients (s, d) and Hessians (s, d, d) of f at u. Hessians are differences of gradients."""
    s, d = u.shape
    difference = np.where(u < 0.5, DIFFERENCE, -DIFFERENCE)  # towards the middle, so that no point leaves the cube
    points = u[:, None] + difference[:, None] * _moves(d)  # (s, d + 1, d): u, then a coordinate moved
    value, gradient = f(points.reshape(-1, d), which)
    # A gradient that is not finite, such as that of sd where sd is 0, is taken as 0.
    gradient = np.where(np.isfinite(gradient), gradient, 0.0).reshape(s, d + 1, d)
    hessian = gradient[:, 1:] - gradient[:, :1]
    hessian /= difference[:, :, None]
    return value[:: d + 1], gradient[:, 0], 0.5 * (hessian + hessian.transpose(0, 2, 1))


@lru_cache(maxsize=16)
def _moves(d: int) -> Array:
    """Return a row of 0 for the point itself, then one for each coordinate that moves, (d + 1, d)."""
    return np.eye(d + 1, d, -1)


def _newton_step(u: Array, gradient: Array, hessian: Array, reach: Array, radius: Array) -> Array:
    """Return steps (s, d) towards the maxima of the quadratic expansions, inside the trust regions.

    In units of reach, the step along each eigenvector of the Hessian has the length slope / |curvature|, at most the
    radius. The absolute value makes it go uphill also where f is not concave. A coordinate at a bound whose gradient
    points outwards does not move.
    """
    unit = np.where(np.where(gradient < 0.0, u <= 0.0, u >= 1.0), 0.0, reach)
    scaled = hessian * unit[:, :, None]
    scaled *= unit[:, None]
    curvature, vectors = eigen(scaled)
    slope = ((unit * gradient)[:, None] @ vectors)[:, 0]
    along = slope / np.maximum(np.abs(curvature), np.abs(slope) / radius[:, None] + TINY)
    end = u + unit * (vectors @ along[:, :, None])[:, :, 0]
    return np.minimum(np.maximum(end, 0.0), 1.0) - u
