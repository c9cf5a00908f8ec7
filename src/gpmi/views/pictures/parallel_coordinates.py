"""All parameters together: each trial is a line through its coordinates and its values."""

from __future__ import annotations

import numpy as np

from gpmi._support.text import distinct_numbers, rounded, shortened
from gpmi._support.types import Array
from gpmi.space import Axis
from gpmi.views.pictures.picture import Bundle, Level, Line, Mark, Picture, Ruler, Texts
from gpmi.views.run_view import RunView

# Our choices.
MAX_LINES = 300  # trials beside those that stand out: an even selection
SETTINGS = 401  # of an axis, at most: enough for its ends and labels
LABELS = 5  # ticks of options, at most
NAME, TICK, POINT = 14, 11, 300  # characters of a name, of a tick and of a point in words, at most
INACTIVE = -0.06  # where an inactive parameter lies, below its axis


def parallel_coordinates(run: RunView) -> Picture:
    """Return a line through the coordinates and the outputs of each trial; those that are best stand out.

    A line has a gap at an output that is missing.
    """
    told, axes, titles = run.told, run.axes(SETTINGS), run.goals.titles(run.called or "y")
    columns = [_of_axis(axis, axis.positions(run.rows)) for axis in axes]
    columns += [_of_values(np.array([trial.values.get(name, np.nan) for trial in told])) for name in run.columns]
    names = [*(axis.name for axis in axes), *(titles[name] for name in run.columns)]
    x, places = np.arange(float(len(columns))), np.stack([places for places, _ in columns], axis=1)
    group, leaders = run.leaders
    rows = {trial.number: i for i, trial in enumerate(told)}
    best = [rows[trial.number] for trial in leaders if trial.number in rows]
    others = sorted(set(rows.values()) - set(best))
    others = others[:: -(-len(others) // MAX_LINES) or 1]
    marks: list[Mark] = [Bundle(x, places[others], "faint", "others")] if others else []
    marks += [Bundle(x, places[best[::-1]], "thin", group)] if best else []
    words = f"Each trial is a line. {len(best)} of {len(told)} are {group}."
    if (leader := run.best or run.compromise) is not None:
        marks.append(Line(x, places[rows[leader.number]], "recommended", f"trial {leader.number}"))
        values = ", ".join(f"{titles[name]} {rounded(leader.values[name])}" for name in run.columns)
        point = ", ".join(f"{name} {value}" for name, value in zip(run.names, run.values(leader.x), strict=True))
        words += f" Trial {leader.number} has {values} at {shortened(point, POINT)}."
    marks += [*(Level(at, "x", "whisker") for at in x.tolist()), Level(len(axes) - 0.5, "x")]
    for at, (_, ticks) in zip(x.tolist(), columns, strict=True):
        heights, texts = np.array([share for share, _ in ticks]), tuple(shortened(text, TICK) for _, text in ticks)
        marks.append(Texts(np.full(len(ticks), at), heights, texts))
    drawn = len(best) + len(others)
    fewer = f" {drawn} of {len(told)} trials are drawn." if drawn < len(told) else ""
    named = tuple((at, shortened(name, NAME)) for at, name in zip(x.tolist(), names, strict=True))
    return Picture(
        "All parameters together",
        words,
        Ruler("", -0.3, len(columns) - 0.4, named=named),
        Ruler("", -0.08, 1.02, named=((0.0, ""),)),
        marks,
        f"Each trial is a line through its parameters (left) and what was measured (right).{fewer}",
        bare=True,
    )


def _of_axis(axis: Axis, at: Array) -> tuple[Array, list[tuple[float, str]]]:
    """Return where positions (n,) lie along a parameter, from 0 to 1, and its ticks."""
    lo, hi = np.log(axis.limits) if axis.log else axis.limits
    rows = np.zeros((len(axis.settings), axis.columns.stop))
    rows[:, axis.columns] = axis.settings
    ends = axis.positions(rows)
    shares, settings = (((np.log(line) if axis.log else line) - lo) / (hi - lo) for line in (at, ends))
    shares = np.where(np.isfinite(shares), shares, INACTIVE)
    if axis.labels is not None:
        chosen = range(0, len(axis.labels), -(-len(axis.labels) // LABELS))
        return shares, [(float(settings[i]), axis.labels[i]) for i in chosen]
    return shares, list(zip(settings[[0, -1]].tolist(), distinct_numbers(ends[[0, -1]].tolist()), strict=True))


def _of_values(y: Array) -> tuple[Array, list[tuple[float, str]]]:
    """Return where values (n,) lie between the smallest and the largest, and these two as ticks."""
    finite = y[np.isfinite(y)]
    lo, hi = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    shares = (y - lo) / (hi - lo) if hi > lo else np.where(np.isfinite(y), 0.5, np.nan)
    return shares, list(zip((0.0, 1.0), distinct_numbers([lo, hi]), strict=True))
