"""One parameter at a time: the model as a curve with its deviation, through the recommended point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from gpmi._support.text import percent, round_to_sd, rounded, shortened
from gpmi._support.types import Array
from gpmi.analysis.ledger import OptionSummary
from gpmi.space import Axis, Space
from gpmi.views.front_view import measured_levels
from gpmi.views.pictures.picture import Band, Hints, Level, Line, Mark, Picture, Points, Ruler, Spans
from gpmi.views.run_view import OutputView

Function: TypeAlias = Callable[[Any], float]  # of one point, in the form of the space
MEAN, DEVIATION = "what the model believes", "where it probably lies (two in three)"
OWN_BEST = "each at its own best setting"
NAME = 40  # characters of the name of an output, at most


def slices(run: OutputView, axes: Sequence[Axis], f: Function | None = None) -> list[Picture]:
    """Return mu and mu +- sd along each of these parameters, all on one scale of y.

    With a single parameter the values observed are shown. With several they do not lie in the slice, so only their
    places are marked, at the bottom. Limits, targets and what is acceptable are shown where they are near. Each option
    of a choice is shown at its own best setting of the other parameters, as far as that is known.
    """
    row = run.recommended_row
    assert row is not None
    curves = [run.slice_rows(axis) for axis in axes]
    bounds = [_bounds(run, rows) for rows in curves]
    true = [np.empty(0) if f is None else values_of(f, run.space, rows) for rows in curves]
    alone = len(run.axes(2)) == 1
    y = np.array([trial.y for trial in run.told], dtype=float)
    shown = [part.ravel() for part in (*bounds, *true, run.mean(row[None]), *([y] if alone else []))]
    ruler = Ruler.fitted(name := shortened(run.function_name, NAME), np.concatenate(shown))
    near = [(value, what) for value, what in measured_levels(run.goals[run.key]) if ruler.is_near(value)]
    levels = [Level(value, look="target" if what == "target" else "reference", label=what) for value, what in near]
    ruler = Ruler.fitted(name, np.concatenate([*shown, np.array([level.at for level in levels])]))
    pictures = []
    for axis, rows, ends, truth in zip(axes, curves, bounds, true, strict=True):
        here = axis.positions(row[None])
        marks: list[Mark] = [*levels, *curve(axis, rows, ends, MEAN, DEVIATION)]
        marks += [] if f is None else [of_function(axis, rows, truth)]
        marks.append(observations(axis, run.rows, y) if alone else rug(axis, run.rows, ruler))
        marks.append(Points(here, run.mean(row[None]), "star", run.centre_name))
        options = run.judged_options(axis)
        marks += [_hints(axis, rows, options)] * bool(options)
        settings, caption = (
            (f"of its options, {OWN_BEST}", OWN_BEST) if options else ("along it, at these other settings", "")
        )
        words = f"{_span(run, ends[1])} {settings}; the star is at {_value(axis, float(here[0]))}."
        title = f"{run.function_name} along {axis.name}"
        pictures.append(Picture(title, words, Ruler.of(axis), ruler, marks, caption))
    return pictures


def _bounds(run: OutputView, rows: Array) -> Array:
    """Return mu - sd, mu and mu + sd at points (m, d), (3, m); nan where the constraints forbid a point."""
    inside, bounds = run.inside(rows), np.full((3, len(rows)), np.nan)
    if inside.any():
        bounds[:, inside] = run.bounds(rows[inside])
    return bounds


def _span(run: OutputView, mu: Array) -> str:
    if not np.isfinite(mu).any():
        return "The constraints allow no value"
    lo, hi = float(np.nanmin(mu)), float(np.nanmax(mu))
    ends = " and ".join(round_to_sd(end, hi - lo) for end in (lo, hi))
    return f"{run.function_name} is believed to lie between {ends}"


def _value(axis: Axis, at: float) -> str:
    return axis.labels[int(at)] if axis.labels is not None and np.isfinite(at) else rounded(at)


# Marks


def _hints(axis: Axis, rows: Array, options: Sequence[OptionSummary]) -> Hints:
    """Return how likely each option holds the best of all, and how many values it has."""
    chances = [(option, option.chance) for option in options if option.chance is not None]
    counted = ((option, chance, f"{option.values} value{'s' * (option.values != 1)}") for option, chance in chances)
    texts = [f"{option.option}: {count}, holds the best with {percent(chance)}" for option, chance, count in counted]
    return Hints(axis.positions(rows), tuple(texts))


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


def of_function(axis: Axis, rows: Array, y: Array) -> Mark:
    """Return the true function along a parameter."""
    return (Points if axis.discrete else Line)(axis.positions(rows), y, "function", "f")


def observations(axis: Axis, rows: Array, y: Array) -> Points:
    """Return the values y (m,) observed at points (m, d)."""
    return Points(axis.positions(rows), y, "cross", "observations")


def rug(axis: Axis, rows: Array, y: Ruler) -> Points:
    """Return where points (m, d) lie on a parameter, as ticks at the bottom of a picture."""
    at = np.unique(axis.positions(rows))
    return Points(at, np.full(len(at), y.lo), "rug", "where values were observed")


def values_of(f: Function, space: Space, rows: Array) -> Array:
    """Return f at the points with coordinates rows (m, d)."""
    if not callable(f):
        raise TypeError(f"f is {f!r}; give a function of one point, or leave it out")
    values = np.array([np.asarray(f(space.decode(row)), dtype=float).item() for row in rows])
    if not np.all(np.isfinite(values)):
        bad = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ValueError(f"f returned {values[bad]} at x = {space.decode(rows[bad])!r}; leave f out of the figure")
    return values
