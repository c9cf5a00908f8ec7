"""Newton's method in lockstep: local maxima of one function from a few starts at the same time.

The library has two more local optimisers, because three problems differ in what is cheap:

- Here few starts share one function, and many points cost little more than one. So each start can afford the d + 1
  points of a Hessian by differences, and few rounds are needed.
- `gpmi.prior.search` descends from one start, where an evaluation costs O(n^3) and many points cost many times as
  much. It learns the Hessian from successive gradients (BFGS).
- `gpmi.ledger.maxima` climbs hundreds of different functions, one start each. A Hessian for each would multiply the
  number of points by d + 1, and a rough maximum is enough, so it takes plain gradient steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from gpmi.gp.linalg import eigen
from gpmi.types import Array, Numbers

# Points (k, d) and the numbers (k,) of the starts they belong to -> values (k,) and gradients (k, d)
Differentiable: TypeAlias = Callable[[Array, Numbers], tuple[Array, Array]]

ROUNDS = 60  # at most; usually four to eight are enough (measured on the problems of the comparison)
GIVE_UP = 1e-6  # a step shorter than this, in widths of the box, ends a climb: below the 1e-5 of DIFFERENCE
RADIUS = 0.125  # of the first trust region, in units of reach; with 0.5 a third more points were evaluated
DIFFERENCE = 1e-5  # step of the differences of gradients, in widths of the box: about the cube root of 2e-16
SAME_PEAK = 0.02  # starts closer than this, in widths of the box, climb the same peak: our choice, not tuned
_TINY = 1e-300  # keeps a quotient finite where numerator and denominator are 0


def climb(
    f: Differentiable,
    u: Array,  # (s, d) in the unit cube
    reach: Array,  # (d,), the distances over which f changes
    tolerance: float = 0.0,  # a start that promises to gain less is finished
) -> tuple[Array, Array]:
    """Local maxima of f in the unit cube, from all starts in lockstep: Newton's method in a trust region.

    Each round evaluates f once, for every start still moving at the d + 1 points that its expansion takes. A step that
    does not gain is taken back and tried shorter. A start that comes close to the best one, or does not promise to
    overtake it, is dropped.
    """
    u = np.clip(u, 0.0, 1.0)
    at = np.arange(len(u))  # the starts still moving; the arrays below are theirs
    value, gradient, hessian = _expansion(f, u, at)
    best_u, best_value = u.copy(), value.copy()  # where each start has come to
    radius = np.full(len(u), RADIUS)
    for _ in range(ROUNDS):
        step = _newton_step(u, gradient, hessian, reach, radius)
        promise = (step * gradient).sum(axis=1)  # about twice what the step brings, near a maximum
        leader = best_value.argmax()
        rival = (value + promise > best_value[leader]) & (np.abs(u - best_u[leader]).max(axis=1) > SAME_PEAK)
        moving = (promise > tolerance) & (np.abs(step).max(axis=1) > GIVE_UP) & (rival | (at == leader))
        if not moving.all():
            at, u, value, gradient, hessian = at[moving], u[moving], value[moving], gradient[moving], hessian[moving]
            radius, step, promise = radius[moving], step[moving], promise[moving]
        if len(at) == 0:
            break
        new_value, new_gradient, new_hessian = _expansion(f, u + step, at)
        gained = new_value >= value + 1e-4 * promise  # Armijo's condition; never true where the value is nan
        radius = np.where(gained, 2.0 * radius, 0.25 * np.minimum(radius, np.abs(step / reach).max(axis=1)))
        value = np.where(gained, new_value, value)
        u = np.where(gained[:, None], u + step, u)
        gradient = np.where(gained[:, None], new_gradient, gradient)
        hessian = np.where(gained[:, None, None], new_hessian, hessian)
        best_u[at], best_value[at] = u, value
    return best_u, best_value


def _expansion(f: Differentiable, u: Array, which: Numbers) -> tuple[Array, Array, Array]:
    """The values (s,), gradients (s, d) and Hessians (s, d, d) of f at u; the Hessians are differences of gradients."""
    s, d = u.shape
    difference = np.where(u < 0.5, DIFFERENCE, -DIFFERENCE)  # towards the middle, so that no point leaves the cube
    points = u[:, None] + difference[:, None] * np.eye(d + 1, d, -1)  # (s, d + 1, d): u, then a coordinate moved
    value, gradient = f(points.reshape(-1, d), which.repeat(d + 1))
    # A gradient that is not finite, such as that of sd where sd is 0, counts as 0.
    gradient = np.where(np.isfinite(gradient), gradient, 0.0).reshape(s, d + 1, d)
    hessian = (gradient[:, 1:] - gradient[:, :1]) / difference[:, :, None]
    return value[:: d + 1], gradient[:, 0], 0.5 * (hessian + hessian.transpose(0, 2, 1))


def _newton_step(u: Array, gradient: Array, hessian: Array, reach: Array, radius: Array) -> Array:
    """Steps (s, d) towards the maxima of the quadratic expansions, inside the trust regions.

    In units of reach and along each eigenvector of the Hessian a step is slope / |curvature| long, at most the radius.
    The absolute value makes it go uphill where f is not concave. A coordinate that its gradient presses against a
    bound does not move.
    """
    unit = np.where(np.where(gradient < 0.0, u <= 0.0, u >= 1.0), 0.0, reach)
    curvature, vectors = eigen(hessian * unit[:, :, None] * unit[:, None])
    slope = ((unit * gradient)[:, None] @ vectors)[:, 0]
    along = slope / np.maximum(np.abs(curvature), np.abs(slope) / radius[:, None] + _TINY)
    end: Array = np.clip(u + unit * (vectors @ along[:, :, None])[:, :, 0], 0.0, 1.0)
    return end - u
