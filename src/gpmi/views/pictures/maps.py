"""Two parameters at a time: the model as a map, with the observations and the recommended point."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpmi._support.text import round_to_sd
from gpmi._support.types import Array
from gpmi.space import Axis
from gpmi.views.pictures.levels import colours_of
from gpmi.views.pictures.picture import Map, Mark, Picture, Points, Ruler
from gpmi.views.run_view import OutputView


def map_of(run: OutputView, a: Axis, b: Axis, values: Array, levels: Array) -> Picture:
    """Return values (k, l) over two parameters, in which the others are as recommended, and the observations."""
    title = f"{run.function_name} over {a.name} and {b.name}"
    marks = [filled(a, b, values, levels, colours_of(run, levels)), *places(run, a, b)]
    lo, hi = float(np.nanmin(values)), float(np.nanmax(values))
    ends = " and ".join(round_to_sd(end, hi - lo) for end in (lo, hi))
    words = f"{run.function_name} is believed to lie between {ends} here."
    return Picture(title, words, Ruler.of(a), Ruler.of(b), marks)


def filled(a: Axis, b: Axis, values: Array, levels: Array, colours: Sequence[str]) -> Map:
    """Return values (k, l) at the settings of two parameters: cells if one of them is discrete."""
    has_cells = a.discrete or b.discrete
    x, y = (axis.edges if has_cells else axis.places for axis in (a, b))
    return Map(x, y, values, levels, colours)


def places(run: OutputView, a: Axis, b: Axis) -> list[Mark]:
    """Return where values were observed, and the recommended point."""
    row = run.recommended_row
    assert row is not None
    here = row[None]
    return [
        Points(a.positions(run.rows), b.positions(run.rows), "ring", "where values were observed"),
        Points(a.positions(here), b.positions(here), "star-on-map", run.centre_name),
    ]
