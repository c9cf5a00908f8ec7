"""A function of one parameter, as marks: a line with its band, or a point with an interval for each value."""

from __future__ import annotations

import numpy as np

from gpmi._support.types import Array
from gpmi.space.axes import Axis
from gpmi.views.pictures.picture import Band, Line, Mark, Points, Ruler, Spans


def curve(axis: Axis, rows: Array, bounds: Array, line: str, area: str) -> list[Mark]:
    """Return the lower end, the middle and the upper end (3, m) of a function at points (m, d) along a parameter.

    `line` and `area` are the labels of the middle and of what lies between the ends.
    """
    at = axis.positions(rows)
    order = np.argsort(at, kind="stable")
    at, (low, middle, high) = at[order], bounds[:, order]
    if axis.discrete:
        return [Spans(at, low, high, "area", area), Points(at, middle, "value", line)]
    return [Band(at, low, high, "area", area), Line(at, middle, "mean", line)]


def rug(axis: Axis, rows: Array, y: Ruler, label: str) -> Points:
    """Return where points (m, d) lie on a parameter, as ticks at the bottom of a picture."""
    at = np.unique(axis.positions(rows))
    return Points(at, np.full(len(at), y.lo), "rug", label)
