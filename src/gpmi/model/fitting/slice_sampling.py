"""Draw the unknowns q from the density exp(-loss) by slice sampling."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpmi._support.types import Array
from gpmi.gp.linalg import eigen
from gpmi.model.fitting.criterion import Criterion
from gpmi.model.fitting.descent import DescentPoint
from gpmi.model.fitting.unknowns import Unknowns

# Our choices, not tuned.
_SLICE = 2.0  # the first width of a slice, in standard deviations; step-out and shrinkage correct it
_STEPS_OUT = 7  # steps out, at most: a slice is then up to (1 + 7) * 2 = 16 standard deviations wide
_SHRINKS = 50  # at most: a safeguard; a slice loses about a third of its width each time


def sample(criterion: Criterion, peak: DescentPoint, count: int, rng: np.random.Generator) -> list[Array]:
    """Return `count` draws from the density exp(-loss), by slice sampling that starts at the peak.

    Each slice is along a random direction ~ N(0, hessian^-1). It has the scales of the density. Its distribution does
    not depend on the present q, so the density stays invariant. Between two draws there are as many slices as q has
    entries, each of about six evaluations.
    """
    return chain(lambda q: criterion.loss(q)[0], criterion.unknowns, peak, count, len(peak.q), rng)


def chain(
    loss: Callable[[Array], float],
    unknowns: Unknowns,
    peak: DescentPoint,
    count: int,
    apart: int,
    rng: np.random.Generator,
) -> list[Array]:
    """Return `count` draws of q from exp(-loss) within the bounds of the unknowns, `apart` slices from each other."""
    return chain_along(loss, unknowns, peak.q, directions(peak.hessian, unknowns), count, apart, rng)


def directions(hessian: Array, unknowns: Unknowns) -> Array:
    """Return A with A A^T = hessian^-1, but no wider than the prior. A slice has the direction A u, u ~ N(0, I)."""
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
    """Do the same as `chain`, from q and with these directions."""

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
    """Return a new q on the line through q along `direction`, and its loss.

    The method is step-out and shrinkage (Neal 2003, Figs. 3, 5).
    """
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
