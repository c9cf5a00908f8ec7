"""Find the most probable unknowns q: starts, and a BFGS descent to a local minimum of the loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gpmi._support.types import Array, Mask
from gpmi.gp.linalg import solve_definite
from gpmi.model.fitting.criterion import NO_FIT, Criterion

# Our choices, not tuned.
ROUNDS = 60  # steps of a descent, at most: a safeguard. The longest descent took 24 evaluations, see `search/climb.py`
_LONGEST = 2.0  # the longest step in any of the logarithms: a factor of 7
_ENOUGH = 2e-2  # nats: a descent ends if the next step is expected to gain less. One sd from the peak is 0.5 nats
_AT_BOUND = 1e-9  # a logarithm closer to a bound than this counts as being at the bound: far above rounding


class DescentPoint(NamedTuple):
    """A point that a descent has reached or starts from."""

    q: Array
    loss: float
    hessian: Array  # of the loss, approximately


def start(criterion: Criterion, q: Array, hessian: Array | None = None) -> DescentPoint:
    """Return a start at q, with the Hessian of an earlier fit or a guess of it."""
    unknowns = criterion.unknowns
    if hessian is None:  # of -log p(q), plus the rough contribution of the observations
        hessian = np.diag(unknowns.width**-2 + len(criterion.y) * unknowns.curvature)
    return DescentPoint(np.clip(q, unknowns.lo, unknowns.hi), NO_FIT, hessian)


def descend(criterion: Criterion, begin: DescentPoint, rounds: int) -> DescentPoint:
    """Return the local minimum of the loss that a descent finds."""
    return minimum_in_box(criterion.loss, begin, criterion.unknowns.lo, criterion.unknowns.hi, rounds)


def minimum_in_box(
    f: Callable[[Array], tuple[float, Array]], begin: DescentPoint, lo: Array, hi: Array, rounds: int
) -> DescentPoint:
    """Return a local minimum of f in a box, by BFGS, with the approximate Hessian there. O(p^3) a step.

    A coordinate at a bound whose gradient points outwards does not move, and a step ends at the first bound it meets.
    The descent ends when a full step is expected to gain less than _ENOUGH.

    This is not the climb of `gpmi.search`. Here each point costs O(n^3), so finite differences for a Hessian would be
    too expensive. The Hessian learned on the way also serves the next fit and the sampling. `search/climb.py` compares
    the two.
    """
    q, _, hessian = begin
    value, gradient = f(q)
    inner = lo + _AT_BOUND, hi - _AT_BOUND
    for _ in range(rounds):
        direction, held = _direction(q, gradient, hessian, *inner)
        if direction is None:  # rounding has made the Hessian indefinite
            break
        slope = float(gradient @ direction)
        if slope > -_ENOUGH:
            break
        size = np.abs(direction)
        room = np.where(direction < 0.0, q - lo, hi - q) / np.maximum(size, 1e-300)
        length = min(1.0, float(np.where(held, np.inf, room).min()), _LONGEST / float(size.max()))
        for _ in range(8):
            step = np.minimum(np.maximum(q + length * direction, lo), hi) - q
            new_q = q + step
            new_value, new_gradient = f(new_q)
            excess = new_value - value - length * slope
            if excess <= -0.9999 * length * slope:  # Armijo's condition with 1e-4
                break
            # To the minimum of the parabola through both values and the slope, but to no less than a tenth.
            length *= min(0.5, max(0.1, -0.5 * length * slope / excess))
        else:
            break
        rise = new_gradient - gradient
        curvature = float(step @ rise)
        q, value, gradient = new_q, new_value, new_gradient
        if curvature > 1e-10:
            along = hessian @ step
            hessian = hessian + np.multiply.outer(rise / curvature, rise)
            hessian -= np.multiply.outer(along / float(step @ along), along)
    return DescentPoint(q, value, hessian)


def _direction(q: Array, gradient: Array, hessian: Array, lo: Array, hi: Array) -> tuple[Array | None, Mask]:
    """Return the step to the minimum of the local parabola within the bounds, and a mask of the held coordinates.

    A coordinate is held if it is at a bound, beyond lo or hi, and would move outwards. The step is None if there is no
    minimum.
    """
    low, high = q <= lo, q >= hi
    if not (low.any() or high.any()):
        return solve_definite(hessian, -gradient), low
    held = np.where(gradient > 0.0, low, high)
    while (direction := _parabola_step(hessian, gradient, held)) is not None:
        blocked = np.where(direction < 0.0, low, high) > held
        if not blocked.any():
            break
        held |= blocked
    return direction, held


def _parabola_step(hessian: Array, gradient: Array, held: Mask) -> Array | None:
    """Return the step to the minimum of the parabola in the coordinates that are not held; None if there is none."""
    if held.any():
        hessian = np.where(held | held[:, None], np.diag(held.astype(float)), hessian)
        gradient = np.where(held, 0.0, gradient)
    return solve_definite(hessian, -gradient)
