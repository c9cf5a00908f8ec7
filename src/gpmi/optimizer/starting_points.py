"""The points that a run begins with: those of the user, and the best ones of earlier studies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpmi._support import checks
from gpmi._support.refusals import reworded
from gpmi._support.types import Array, Point
from gpmi.space import Space


def starting_points(x0: Any, space: Space) -> tuple[tuple[Point, Array], ...]:
    """Validate x0, one point or several, and return each point with its coordinates."""
    if x0 is None:
        return ()
    numbers = checks.shape(x0)
    is_point = isinstance(x0, Mapping) or (numbers is not None and len(numbers) == 1 and not _has_points(x0))
    try:
        points = [x0] if is_point else list(x0)
    except TypeError:
        raise TypeError(f"x0 is {checks.shown(x0)}; give a point of the space, or a list of them") from None
    if not points:
        raise ValueError("x0 has no point; give at least one, or leave it out")
    try:
        return tuple((space.canonical(x), space.encode(x)) for x in points)
    except (TypeError, ValueError) as error:
        sentence = f"x0 is {checks.shown(x0)}; give a point of the space, or a list of them ({error})"
        raise reworded(error, sentence) from error


def starts_of(best: list[Array], space: Space, n_init: int) -> tuple[tuple[Point, Array], ...]:
    """Return the best points of earlier studies as starting points: at most n_init - 1, but at least one."""
    rows = {row.tobytes(): row for row in best[: max(1, n_init - 1)]} if n_init else {}
    return tuple((space.decode(row), space.encode(space.decode(row))) for row in rows.values())


def _has_points(x0: Any) -> bool:
    """Whether a flat list holds points rather than the numbers of one point."""
    return any(isinstance(x, Mapping) or checks.shape(x) for x in x0)
