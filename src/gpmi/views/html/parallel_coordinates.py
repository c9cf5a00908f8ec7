"""All parameters together: each trial is a line, and the best ones are emphasised."""

from __future__ import annotations

import numpy as np

from gpmi._support.text import distinct_numbers, rounded, shortened
from gpmi.space.axes import Axis
from gpmi.views.html.markup import Markup, joined, scrollable, shown, tag
from gpmi.views.html.svg import Scale, figure, key, line, picture, polyline, scale_of, text
from gpmi.views.run_view import MAX_LINES, TOP_TRIALS, RunView

SETTINGS = 401  # of an axis, at most: enough for its ends and labels
STEP, HEIGHT, TOP, BOTTOM, SIDE = 96.0, 300.0, 34.0, 26.0, 52.0


def parallel_coordinates(run: RunView) -> Markup | None:
    """Return a line through the coordinates and the value of each trial. The best trials are emphasised."""
    told, axes = run.told, run.axes(SETTINGS)
    if not told or len(axes) < 2:
        return None
    sign = 1.0 if run.goal == "max" else -1.0
    y = np.array([trial.y or 0.0 for trial in told])
    order = np.argsort(-sign * np.where([trial.feasible for trial in told], y, -sign * np.inf), kind="stable")
    best, rest = order[:TOP_TRIALS], order[TOP_TRIALS:]
    rest = rest[:: -(-len(rest) // MAX_LINES)] if len(rest) else rest
    scales = [scale_of(axis, HEIGHT - BOTTOM, TOP) for axis in axes]
    lo, hi = float(y.min()), float(y.max())
    scales.append(Scale(lo, hi if hi > lo else lo + 1.0, HEIGHT - BOTTOM, TOP))
    columns = [scale(axis.positions(run.rows)) for scale, axis in zip(scales, axes, strict=False)]
    places = np.stack([*columns, scales[-1](y)], axis=1)
    places = np.where(np.isfinite(places), places, HEIGHT - BOTTOM + 8.0)  # an inactive parameter: below its axis
    x = SIDE + STEP * np.arange(float(len(scales)))
    parts = [polyline(x, places[i], "faint") for i in rest] + [polyline(x, places[i], "thin") for i in best[::-1]]
    parts += [polyline(x, places[i], "recommended") for i in best[:1]]
    ends = [_ends(axis) for axis in axes] + [(lo, hi)]
    names = [*(axis.name for axis in axes), "y"]
    for at, scale, name, bounds in zip(x.tolist(), scales, names, ends, strict=True):
        parts.append(line(at, TOP, at, HEIGHT - BOTTOM, "whisker"))
        parts.append(text(at, 14.0, shortened(name, 14), "halo", "middle"))
        ticks = scale.ticks(5) if scale.named is not None else list(zip(bounds, distinct_numbers(bounds), strict=True))
        for value, label in ticks:
            parts.append(text(at + 4.0, float(scale(value)) + 4.0, shortened(label, 11), "small halo"))
    width = 2.0 * SIDE + STEP * (len(scales) - 1) + 20.0
    one = told[int(best[0])]
    point = ", ".join(f"{name} {shown(value)}" for name, value in zip(run.names, run.values(one.x), strict=True))
    desc = f"Each trial is a line. The best one has y {rounded(one.y)} at {shortened(point, 300)}."
    fewer = f" {len(best) + len(rest)} of {len(told)} trials are drawn." if len(best) + len(rest) < len(told) else ""
    marks = [
        (line(2, 8, 30, 8, "recommended"), "the best value"),
        (line(2, 8, 30, 8, "thin"), f"the {len(best)} best"),
        (line(2, 8, 30, 8, "faint"), "others"),
    ]
    drawn = picture(width, HEIGHT, "All parameters together", desc, parts)
    return joined(
        tag("p", "Each trial is a line through its parameters and its value.", fewer),
        key(*marks),
        figure(scrollable("All parameters together", drawn, "scroll wide")),
    )


def _ends(axis: Axis) -> tuple[float, float]:
    """Return the smallest and the largest value of an axis."""
    rows = np.zeros((len(axis.settings), axis.columns.stop))
    rows[:, axis.columns] = axis.settings
    at = axis.positions(rows).tolist()
    return at[0], at[-1]
