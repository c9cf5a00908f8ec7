"""Which parameters matter: the Sobol indices as bars, and how the function depends on one parameter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpmi._support.text import shortened
from gpmi.analysis import Importance, Importances
from gpmi.space import Axis
from gpmi.views.pictures.picture import Picture, Ruler, Spans
from gpmi.views.pictures.slices import curve, rug
from gpmi.views.run_view import OutputView

NAME = 24  # characters of the name of a parameter or an output, at most
BAR = 0.38  # the height of a bar, of a row
DESCRIBED = 8  # parameters in the alternative text, at most


def importances(run: OutputView, indices: Importances) -> Picture:
    """Return the total and the first-order index of each parameter with their intervals, the largest on top."""
    ranked = indices.ranked
    at = np.arange(len(ranked) - 1.0, -1.0, -1.0)
    names = zip(at.tolist(), (shortened(index.name, NAME) for index in ranked), strict=True)
    total, first = np.array([index.total for index in ranked]), np.array([index.first for index in ranked])
    total_ends = np.array([index.total_interval for index in ranked]).T
    first_ends = np.array([index.first_interval for index in ranked]).T
    return Picture(
        f"Which parameters matter for {run.short_name}" if run.given_name else "Which parameters matter",
        "; ".join(f"{index.name}: {index.first:.2f} alone, {index.total:.2f} together" for index in ranked[:DESCRIBED]),
        Ruler(f"share of the variance of {shortened(run.function_name, 40)}", 0.0, 1.0),
        Ruler("", -0.5, len(at) - 0.5, named=tuple(names)),
        [
            Spans(at + 0.2, 0.0 * total, total, "bar-light", "together with others (total)", BAR, lie=True),
            Spans(at - 0.2, 0.0 * first, first, "bar", "alone (first order)", BAR, lie=True),
            Spans(at + 0.2, total_ends[0], total_ends[1], "whisker", "95 % interval", lie=True),
            Spans(at - 0.2, first_ends[0], first_ends[1], "whisker", lie=True),
        ],
    )


def dependence(run: OutputView, axis: Axis, index: Importance, y: Ruler) -> Picture:
    """Return E[f | x_i] along a parameter with its 95 % interval, and where values were observed."""
    rows = np.zeros((len(index.settings), run.space.dim))
    rows[:, axis.columns] = index.settings
    bounds = np.array([index.effect_interval[:, 0], index.effect, index.effect_interval[:, 1]])
    marks = curve(axis, rows, bounds, "mean over the others", "95 % interval")
    title = f"{shortened(run.function_name, NAME)} along {axis.name}, averaged over the other parameters"
    return Picture(title, "", Ruler.of(axis), y, [*marks, rug(axis, run.rows, y)])


def effects(run: OutputView, indices: Sequence[Importance]) -> Ruler:
    """Return an axis for E[f | x_i] of several parameters."""
    ends = np.concatenate([index.effect_interval.ravel() for index in indices])
    return Ruler.fitted(shortened(run.function_name, NAME), ends)
