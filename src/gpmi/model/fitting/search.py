"""The search over the unknowns q: starts, descent to a local minimum of the loss, and draws from exp(-loss)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gpmi._support.types import Array, Mask
from gpmi.gp.linalg import eigen, solve_definite
from gpmi.model.fitting.criterion import NO_FIT, Criterion
from gpmi.model.fitting.unknowns import Unknowns

# Our choices, not tuned.
ROUNDS = 60  # steps of a descent, at most: a safeguard. A descent took 24 evaluations at most, see `search/climb.py`
_LONGEST = 2.0  # the longest step in any of the logarithms: a factor of 7
_ENOUGH = 2e-2  # nats: a descent ends when the next step is expected to gain less. One sd from the peak is 0.5 nats
_AT_BOUND = 1e-9  # a logarithm closer to a bound than this counts as at the bound: far above rounding
_SLICE = 2.0  # the first width of a slice, in standard deviations; step-out and shrinkage correct it
_STEPS_OUT = 7  # steps out, at most: a slice is then up to (1 + 7) * 2 = 16 standard deviations wide
_SHRINKS = 50  # at most: a safeguard. A slice loses about a third of its width each time


class Peak(NamedTuple):
    """The point that a descent has reached, or starts from."""

    q: Array
    loss: float
    hessian: Array  # of the loss, approximately


def start(criterion: Criterion, q: Array, hessian: Array | None = None) -> Peak:
    """A start of a descent at q, with the Hessian of an earlier fit, or a guess of it."""
    unknowns = criterion.unknowns
    if hessian is None:  # that of -log p(q), plus roughly what the observations add
        hessian = np.diag(unknowns.width**-2 + len(criterion.y) * unknowns.told)
    return Peak(np.clip(q, unknowns.lo, unknowns.hi), NO_FIT, hessian)


def descend(criterion: Criterion, begin: Peak, rounds: int) -> Peak:
    """The local minimum of the loss that a descent finds."""
    return minimum_in_box(criterion.loss, begin, criterion.unknowns.lo, criterion.unknowns.hi, rounds)


def minimum_in_box(f: Callable[[Array], tuple[float, Array]], begin: Peak, lo: Array, hi: Array, rounds: int) -> Peak:
    """A local minimum of f in a box by BFGS, with the approximate Hessian there. O(p^3) a step.

    A coordinate at a bound whose gradient points outwards does not move, and a step ends at the first bound it meets.
    The descent ends when a full step is expected to gain less than _ENOUGH.

    It is not the climb of `gpmi.search`: here each point costs O(n^3), so finite differences for a Hessian would be too
    expensive, and the Hessian learned on the way serves the next fit and the sampling. `search/climb.py` compares them.
    """
    q, _, hessian = begin
    value, gradient = f(q)
    inner = lo + _AT_BOUND, hi - _AT_BOUND
    for _ in range(rounds):
        direction, held = _direction(q, gradient, hessian, *inner)
        if direction is None:  # the Hessian is not positive definite, by rounding
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
    return Peak(q, value, hessian)


def _direction(q: Array, gradient: Array, hessian: Array, lo: Array, hi: Array) -> tuple[Array | None, Mask]:
    """The step to the minimum of the local parabola within the bounds, and a mask of the coordinates that are held.

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
    """The step to the minimum of the parabola in the coordinates that are not held, None if there is none."""
    if held.any():
        hessian = np.where(held | held[:, None], np.diag(held.astype(float)), hessian)
        gradient = np.where(held, 0.0, gradient)
    return solve_definite(hessian, -gradient)


def sample(criterion: Criterion, peak: Peak, count: int, rng: np.random.Generator) -> list[Array]:
    """`count` draws from the density exp(-loss), by slice sampling that starts at the peak.

    Each slice is along a random direction ~ N(0, hessian^-1). It has the scales of the density, and its distribution
    does not depend on the present q, so the density stays invariant. Between two draws there are as many slices as q
    has entries, each of about six evaluations.
    """
    return chain(lambda q: criterion.loss(q)[0], criterion.unknowns, peak, count, len(peak.q), rng)


def chain(
    loss: Callable[[Array], float], unknowns: Unknowns, peak: Peak, count: int, apart: int, rng: np.random.Generator
) -> list[Array]:
    """`count` draws of q from exp(-loss) within the bounds of the unknowns, `apart` slices from each other."""
    return chain_along(loss, unknowns, peak.q, directions(peak.hessian, unknowns), count, apart, rng)


def directions(hessian: Array, unknowns: Unknowns) -> Array:
    """A with A A^T = hessian^-1, but no wider than the prior: A u with u ~ N(0, I) is a direction of a slice."""
    values, vectors = eigen(hessian)
    scales: Array = vectors / np.sqrt(np.maximum(values, unknowns.width.max() ** -2))
    return scales


def chain_along(
    loss: Callable[[Array], float],
    unknowns: Unknowns,
    q: Array,
    scales: Array,  # see `directions`
    count: int,
    apart: int,
    rng: np.random.Generator,
) -> list[Array]:
    """The same as `chain`, from q and with given directions."""

    def bounded(q: Array) -> float:
        return loss(q) if np.all(q >= unknowns.lo) and np.all(q <= unknowns.hi) else np.inf

    value, draws = loss(q), []
    for step in range(1, count * apart + 1):
        q, value = _slice(bounded, q, value, scales @ rng.standard_normal(len(q)), rng)
        if step % apart == 0:
            draws.append(q)
    return draws


def _slice(
    loss: Callable[[Array], float], q: Array, value: float, direction: Array, rng: np.random.Generator
) -> tuple[Array, float]:
    """A new q on the line through q along `direction`, and its loss: step-out and shrinkage (Neal 2003, Figs. 3, 5)."""
    level = value + rng.exponential()  # the slice is where loss < level
    left = -_SLICE * rng.random()
    right = left + _SLICE
    to_the_left = int(rng.integers(_STEPS_OUT + 1))
    for _ in range(to_the_left):
        if loss(q + left * direction) >= level:
            break
        left -= _SLICE
    for _ in range(_STEPS_OUT - to_the_left):
        if loss(q + right * direction) >= level:
            break
        right += _SLICE
    for _ in range(_SHRINKS):
        at = left + (right - left) * rng.random()
        here = loss(q + at * direction)
        if here < level:
            return q + at * direction, here
        left, right = (at, right) if at < 0.0 else (left, at)
    return q, value
