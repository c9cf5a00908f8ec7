"""The curves of a run whose fidelity has steps: each over its steps, and where it was believed to go on to."""

from __future__ import annotations

from collections import Counter

import numpy as np

from gpmi._support.text import rounded
from gpmi._support.types import Array
from gpmi.views.fidelity_view import KINDS, DrawnCurve, Kind, continued, curves_of, drawn_curves, stop_reasons
from gpmi.views.pictures.picture import Band, Line, Mark, Picture, Points, Ruler
from gpmi.views.run_view import OutputView

LOOKS: dict[Kind, tuple[str, str]] = {  # of a curve, and of its end
    "finished": ("thin", "point"),
    "short": ("thin", "end"),
    "stopped": ("faint", "stopped"),
    "running": ("whisker", "running"),
    "failed": ("failed", "failed"),
}


def curves(run: OutputView) -> Picture:
    """Return every curve of an output, the best one thick, and where some of the others would have gone on to."""
    shown, counts = drawn_curves(run), Counter(curve.kind for curve in curves_of(run))
    ahead = [way for _, way in continued(run, shown)]
    marks: list[Mark] = [Band(way.steps, way.low, way.high, "likely", "80 % of the prediction") for way in ahead]
    marks += [Line(way.steps, way.middle, "reference", "what the model predicts") for way in ahead]
    number = None if run.best is None else run.best.number
    best = [curve for curve in shown if curve.trial.number == number]
    for kind, (line, _) in LOOKS.items():
        of_kind = [curve for curve in shown if curve.kind == kind]
        marks += [Line(curve.steps, curve.y, line) for curve in of_kind if curve.trial.number != number]
        marks += [_ends(of_kind, kind, f"{_words(run, kind)} ({counts[kind]})")] if of_kind else []
    marks += [Line(way.steps, way.y, "recommended", run.best_title) for way in best]
    fewer = f" {len(shown)} of {counts.total()} are drawn." if len(shown) < counts.total() else ""
    end = "No trial has reached the last step yet." if run.best is None else f"The best ends at {rounded(run.best.y)}."
    x, y = _rulers(run, [*(curve.y for curve in shown), *(side for way in ahead for side in (way.low, way.high))])
    return Picture(f"The curves of {y.title}", end + fewer, x, y, marks, end + fewer)


def curve_of(run: OutputView, curve: DrawnCurve) -> Picture:
    """Return the curve of one trial."""
    words = f"{rounded(curve.end[1])} at step {int(curve.end[0])}, {KINDS[curve.kind]}."
    marks: list[Mark] = [Line(curve.steps, curve.y), _ends([curve], curve.kind)]
    return Picture(f"The curve of trial {curve.trial.number}", words, *_rulers(run, [curve.y]), marks, words)


def _rulers(run: OutputView, values: list[Array]) -> tuple[Ruler, Ruler]:
    name, (first, last) = run.short_name or "y", run.fidelity.ends
    margin = 0.02 * (last - first)
    x = Ruler(run.fidelity.title, first - margin, last + margin, whole=True)
    return x, Ruler.fitted(name, np.concatenate(values))


def _ends(curves: list[DrawnCurve], kind: Kind, label: str = "") -> Points:
    x, y = np.array([curve.end for curve in curves]).T
    return Points(x, y, LOOKS[kind][1], label)


def _words(run: OutputView, kind: Kind) -> str:
    """Return what a mark means: for stopped curves also why, if they have one reason in common."""
    reasons = stop_reasons(run)
    if kind != "stopped" or len(reasons) != 1 or reasons[0][0] == "no reason given":
        return KINDS[kind]
    return f"stopped: {reasons[0][0]}"
