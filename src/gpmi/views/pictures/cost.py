"""What a run with a fidelity cost: the best value at the target against what was spent."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpmi._support.text import rounded, shortened
from gpmi.views.fidelity_view import spending
from gpmi.views.pictures.picture import Level, Line, Mark, Picture, Points, Ruler, Texts
from gpmi.views.run_view import OutputView

LEVEL = 14  # characters of the name of a level, at most
ROW = 0.075  # the height of a row of marks, of the part of the picture that has the values


def cost(run: OutputView) -> Picture:
    """Return the values at the target, the best so far, and below a row of marks for the measurements of each level."""
    trace, levels = spending(run), run.fidelity.row_names
    measured, present = np.isfinite(trace.y), np.isfinite(trace.best)
    last = float(trace.spent[-1]) or 1.0
    name = run.short_name or "y"
    x, y = Ruler(run.fidelity.cost_name, 0.0, 1.02 * last), Ruler.fitted(name, trace.y[measured])
    heights = y.lo - (y.hi - y.lo) * ROW * np.arange(len(levels) - 0.5, 0.0, -1.0)
    marks: list[Mark] = [Level(y.lo, look="faint")]
    for row, height in enumerate(heights):
        spent = trace.spent[trace.row == row]
        look = "at-target" if row == len(levels) - 1 else "before-target"
        marks.append(Points(spent, np.full(len(spent), height), look))
    names = tuple(shortened(level, LEVEL) for level in levels)
    marks.append(Texts(np.full(len(levels), x.hi), heights, names, "tick"))
    marks.append(Points(trace.spent[measured], trace.y[measured], "observed", "at the target"))
    steps = np.append(trace.spent[present], last), np.append(trace.best[present], trace.best[-1])
    marks.append(Line(*steps, "mean", f"{run.extreme} so far", steps=True))
    now = f"The {run.extreme} {name} is {rounded(float(trace.best[-1]))}." if present.any() else "None is feasible yet."
    title = f"The {run.extreme} {name} at the target, by what was spent"
    whole = replace(y, lo=y.lo - (y.hi - y.lo) * ROW * len(levels), least=y.lo)
    return Picture(title, now, x, whole, marks, f"{title}. {now}")
