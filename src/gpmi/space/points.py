"""Points as users write them: copies, and their values in the order of the parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpmi._support import checks
from gpmi._support.refusals import RefusedValue
from gpmi._support.types import FrozenPoint, LabelledPoint, Point


def copied(point: Point) -> Point:
    """Return a copy that the user may change. An option of a Choice stays the user's own object."""
    if isinstance(point, np.ndarray):
        return np.array(point)
    label = getattr(point, "label", None)
    return dict(point) if label is None else LabelledPoint(point, label)


def frozen(point: Point) -> Point:
    """Return a copy that nobody can change."""
    if not isinstance(point, np.ndarray):
        return FrozenPoint(point, getattr(point, "label", None))
    copy = np.array(point)
    copy.flags.writeable = False
    return copy


def as_point(point: Point) -> Point:
    """Return a pandas Series as a dict of its values, and anything else unchanged."""
    is_series = hasattr(point, "iloc") and hasattr(point, "items") and getattr(point, "ndim", None) == 1
    return dict(point.items()) if is_series else point


def values_of(point: Point, names: tuple[str, ...] | None, count: int) -> list[Any]:
    """Return the values of a point: a dict with exactly these names, or without names an array of shape (count,)."""
    series = as_point(point)
    if series is not point:
        point = list(series.values()) if names is None else series
    if names is None:
        if checks.shape(point) != (count,):
            raise ValueError(f"x is {checks.shown(point)}; a point of this space is an array of shape ({count},)")
        return point.tolist() if type(point) is np.ndarray and point.dtype == float else list(point)
    if not isinstance(point, Mapping):
        raise TypeError(f"x is {checks.shown(point)}; a point of this space is a dict with the keys {list(names)}")
    missing, extra = [k for k in names if k not in point], [k for k in point if k not in names]
    if missing or extra:
        sentence = f"x has wrong keys (missing {missing}, unknown {extra}); it needs exactly {list(names)}"
        raise RefusedValue(sentence, "wrong-keys", missing=missing, unknown=extra)
    return [point[name] for name in names]


def labels_of(names: tuple[str, ...] | None, count: int) -> Sequence[str]:
    """Return what messages call the values of a point: their names, or x[0], x[1], ..."""
    return names or [f"x[{i}]" for i in range(count)]
