"""All parameters together: each trial is a line, and the best ones are emphasised."""

from __future__ import annotations

import numpy as np

from gpmi._support.text import distinct_numbers, rounded, shortened
from gpmi._support.types import Array
from gpmi.space import Axis
from gpmi.views.front_run import FrontView
from gpmi.views.html.markup import Markup, joined, scrollable, shown, tag
from gpmi.views.html.svg import Scale, figure, key, line, picture, polyline, scale_of, text
from gpmi.views.run_view import MAX_LINES, TOP_TRIALS, OutputView, RunView

SETTINGS = 401  # of an axis, at most: enough for its ends and labels
STEP, HEIGHT, TOP, BOTTOM, SIDE = 96.0, 300.0, 34.0, 26.0, 52.0


def parallel_coordinates(run: RunView) -> Markup | None:
    """Return a line through the coordinates and the value of each trial. The best trials, or the front, are darker."""
    told, axes = run.told, run.axes(SETTINGS)
    if not told or len(axes) < 2:
        return None
    if isinstance(run, FrontView):
        return _front_lines(run, axes)
    assert isinstance(run, OutputView)
    sign = 1.0 if run.goal == "max" else -1.0
    y = np.array([trial.y or 0.0 for trial in told])
    order = np.argsort(-sign * np.where([trial.feasible for trial in told], y, -sign * np.inf), kind="stable")
    best, rest = order[:TOP_TRIALS], order[TOP_TRIALS:]
    rest = rest[:: -(-len(rest) // MAX_LINES)] if len(rest) else rest
    x, places, frame, width = _columns(run, axes, [(run.value_name, y)])
    parts = [polyline(x, places[i], "faint") for i in rest] + [polyline(x, places[i], "thin") for i in best[::-1]]
    parts += [polyline(x, places[i], "recommended") for i in best[:1]]
    one = told[int(best[0])]
    point = ", ".join(f"{name} {shown(value)}" for name, value in zip(run.names, run.values(one.x), strict=True))
    desc = f"Each trial is a line. The best one has {run.value_name} {rounded(one.y)} at {shortened(point, 300)}."
    fewer = f" {len(best) + len(rest)} of {len(told)} trials are drawn." if len(best) + len(rest) < len(told) else ""
    marks = [
        (line(2, 8, 30, 8, "recommended"), "the best value"),
        (line(2, 8, 30, 8, "thin"), f"the {len(best)} best"),
        (line(2, 8, 30, 8, "faint"), "others"),
    ]
    drawn = picture(width, HEIGHT, "All parameters together", desc, parts + frame)
    return joined(
        tag("p", "Each trial is a line through its parameters and its value.", fewer),
        key(*marks),
        figure(scrollable("All parameters together", drawn, "scroll wide")),
    )


def _front_lines(run: FrontView, axes: list[Axis]) -> Markup:
    """Return a line through the coordinates and the outputs of each trial. Those on the front are emphasised."""
    told, front, names = run.told, {trial.number for trial in run.front}, list(run.goals.named)
    outputs = [(name, np.array([trial.outputs.get(name, np.nan) for trial in told])) for name in names]
    x, places, frame, width = _columns(run, axes, outputs)
    chosen = [i for i, trial in enumerate(told) if trial.number in front]
    rest = [i for i, trial in enumerate(told) if trial.number not in front]
    rest = rest[:: -(-len(rest) // MAX_LINES)] if rest else rest
    middle = None if run.middle is None or len(front) < 2 else run.middle.number
    parts = [polyline(x, places[i], "faint") for i in rest] + [polyline(x, places[i], "thin") for i in chosen]
    parts += [polyline(x, places[i], "recommended") for i in chosen if told[i].number == middle]
    between = float(x[len(axes)]) - 0.5 * STEP
    parts.append(line(between, TOP, between, HEIGHT - BOTTOM, "reference"))
    desc = (
        f"Each trial is a line through its parameters and its outputs. {len(chosen)} of {len(told)} are on the front."
    )
    fewer = f" {len(chosen) + len(rest)} of {len(told)} are drawn." if len(chosen) + len(rest) < len(told) else ""
    marks = [(line(2, 8, 30, 8, "thin"), "on the front"), (line(2, 8, 30, 8, "faint"), "others")]
    marks += [(line(2, 8, 30, 8, "recommended"), f"trial {middle}, in the middle of the front")] if middle else []
    lead, title = (
        "Each trial is a line through its parameters (left) and its outputs (right).",
        "All parameters together",
    )
    drawn = picture(width, HEIGHT, title, desc, parts + frame)
    return joined(tag("p", lead, fewer), key(*marks), figure(scrollable(title, drawn, "scroll wide")))


def _columns(
    run: RunView, axes: list[Axis], outputs: list[tuple[str, Array]]
) -> tuple[Array, Array, list[Markup], float]:
    """Return where the columns are, (k,), and the trials on them, (n, k), the axes as drawn, and the width of it all.

    The outputs are values (n,) by name; one that is missing is nan.
    """
    scales = [scale_of(axis, HEIGHT - BOTTOM, TOP) for axis in axes]
    columns = [scale(axis.positions(run.rows)) for scale, axis in zip(scales, axes, strict=True)]
    columns = [np.where(np.isfinite(at), at, HEIGHT - BOTTOM + 8.0) for at in columns]  # inactive: below its axis
    ends = [_ends(axis) for axis in axes]
    for _, y in outputs:
        known = y[np.isfinite(y)]
        lo, hi = (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)
        scales.append(Scale(lo, hi if hi > lo else lo + 1.0, HEIGHT - BOTTOM, TOP))
        columns.append(scales[-1](y))
        ends.append((lo, hi))
    x = SIDE + STEP * np.arange(float(len(scales)))
    names, parts = [*(axis.name for axis in axes), *(name for name, _ in outputs)], []
    for at, scale, name, bounds in zip(x.tolist(), scales, names, ends, strict=True):
        parts.append(line(at, TOP, at, HEIGHT - BOTTOM, "whisker"))
        parts.append(text(at, 14.0, shortened(name, 14), "halo", "middle"))
        ticks = scale.ticks(5) if scale.named is not None else list(zip(bounds, distinct_numbers(bounds), strict=True))
        for value, label in ticks:
            parts.append(text(at + 4.0, float(scale(value)) + 4.0, shortened(label, 11), "small halo"))
    return x, np.stack(columns, axis=1), parts, 2.0 * SIDE + STEP * (len(scales) - 1) + 20.0


def _ends(axis: Axis) -> tuple[float, float]:
    """Return the smallest and the largest value of an axis."""
    rows = np.zeros((len(axis.settings), axis.columns.stop))
    rows[:, axis.columns] = axis.settings
    at = axis.positions(rows).tolist()
    return at[0], at[-1]
