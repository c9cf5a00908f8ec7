"""A run with a fidelity as figures and reports show it: its curves, where they would have led, and what was spent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from gpmi._support.types import Array
from gpmi.trials import Report, Trial
from gpmi.trials.goal_summary import at_target
from gpmi.views.run_view import OutputView, RunView

# Our choices, for figures and reports alike.
MAX_CURVES = 300  # curves that are drawn: the best, those on the way, and an even selection of the others
MAX_POINTS = 60  # of a curve
MAX_CONTINUED = 8  # curves of each kind that are continued, spread over their values: more would cover each other
AHEAD = 25  # points of a continuation
BAND = 0.8  # the probability of its band

Kind: TypeAlias = Literal["finished", "short", "stopped", "running", "failed"]
KINDS: dict[Kind, str] = {
    "finished": "reached the target",
    "short": "ended before it, as planned",
    "stopped": "stopped",
    "running": "still running",
    "failed": "failed",
}
_KIND: dict[str, Kind] = {"told": "finished", "stopped": "stopped", "pending": "running", "failed": "failed"}


class DrawnCurve(NamedTuple):
    """The values of one trial on the way to the target, (k,) each."""

    trial: Trial
    kind: Kind
    steps: Array
    y: Array

    @property
    def end(self) -> tuple[float, float]:
        """The last step and the value there."""
        return float(self.steps[-1]), float(self.y[-1])


class Continuation(NamedTuple):
    """Where the model believes that a curve goes on to, (m,) each: the median, and the ends of a band of BAND."""

    steps: Array
    low: Array
    middle: Array
    high: Array


class CostTrace(NamedTuple):
    """What had been spent when each value, stop or failure came, (n,) each."""

    spent: Array
    best: Array  # the best value at the target so far; nan before the first
    y: Array  # the value at the target; nan where there is none
    row: Array  # the level of the measurement from 0 on; for steps 1 if it reached the target, else 0


def value_of(report: Report, run: OutputView) -> float:
    """Return the value of a report in the view of one output; nan if it has none."""
    y = report.y.get(run.key, np.nan) if isinstance(report.y, Mapping) else report.y
    return float(y)


def curves_of(run: OutputView) -> list[DrawnCurve]:
    """Return the curves of a run in the order of the trials, without trials that do not count. O(n) values."""
    curves, reached = list[DrawnCurve](), {trial.number for trial in at_target(run.trials, run.space)}
    for trial in run.trials:
        if trial.status not in _KIND or not trial.curve:
            continue
        steps = np.array([report.step for report in trial.curve], dtype=float)
        y = np.array([value_of(report, run) for report in trial.curve])
        present = np.isfinite(y)
        if present.any():
            kind = "short" if trial.status == "told" and trial.number not in reached else _KIND[trial.status]
            curves.append(DrawnCurve(trial, kind, steps[present], y[present]))
    return curves


def drawn_curves(run: OutputView) -> list[DrawnCurve]:
    """Return the curves to draw: at most about MAX_CURVES of them with MAX_POINTS values each."""
    curves = curves_of(run)
    best = None if run.best is None else run.best.number
    needed = [curve for curve in curves if curve.kind == "running" or curve.trial.number == best]
    others = [curve for curve in curves if curve.kind != "running" and curve.trial.number != best]
    chosen = {curve.trial.number for curve in (*needed, *others[:: -(-len(others) // MAX_CURVES) or 1])}
    return [_thinned(curve) for curve in curves if curve.trial.number in chosen]


def _thinned(curve: DrawnCurve) -> DrawnCurve:
    if len(curve.steps) <= MAX_POINTS:
        return curve
    at = np.unique(np.linspace(0.0, len(curve.steps) - 1.0, MAX_POINTS).round().astype(int))
    return curve._replace(steps=curve.steps[at], y=curve.y[at])


def continued(run: OutputView, curves: list[DrawnCurve]) -> list[tuple[DrawnCurve, Continuation]]:
    """Return where the model believes stopped and running curves go on to; none without a model.

    They are at most MAX_CONTINUED of each kind, from the best to the worst last value.
    """
    if run.posterior is None:
        return []
    chosen, target = list[DrawnCurve](), run.fidelity.target
    for kind in ("stopped", "running"):
        ending = [curve for curve in curves if curve.kind == kind and curve.steps[-1] < target]
        ending.sort(key=lambda curve: curve.end[1])
        places = np.linspace(0.0, len(ending) - 1.0, min(MAX_CONTINUED, len(ending))).round().astype(int).tolist()
        chosen += [ending[i] for i in places]
    return [(curve, _continuation(run, curve)) for curve in chosen]


def _continuation(run: OutputView, curve: DrawnCurve) -> Continuation:
    """Return mean and band of a curve from its end to the target: O(n^2) for each of AHEAD points."""
    from scipy.special import ndtri

    steps = np.unique(np.linspace(int(curve.steps[-1]), int(run.fidelity.target), AHEAD).round().astype(int))
    row = run.space.encode(curve.trial.x)
    rows = np.array([run.fidelity.at(row, int(step)) for step in steps])
    width = float(ndtri(0.5 + 0.5 * BAND))
    low, middle, high = np.sort(run.bounds(rows, width), axis=0)
    return Continuation(steps.astype(float), low, middle, high)


def stop_reasons(run: RunView) -> list[tuple[str, int]]:
    """Return why trials were stopped, without the numbers in it, and how often; the most frequent one first."""
    reasons = Counter((trial.why or "no reason given").partition(":")[0] for trial in run.trials if is_stopped(trial))
    return reasons.most_common()


def is_stopped(trial: Trial) -> bool:
    return trial.status == "stopped"


# What was spent


def spending(run: RunView) -> CostTrace:
    """Return what had been spent when each trial ended, and the best value at the target then. O(n log n)."""
    expenses = [part for trial in run.trials for part in run.fidelity.expenses(trial, run.space.encode(trial.x))]
    spent, ended = 0.0, list[tuple[float, Trial]]()
    for part in sorted(expenses, key=lambda part: (part.order, part.is_last)):
        spent += part.cost
        if part.is_last:
            ended.append((spent, part.trial))
    reached = {trial.number for trial in run.told}
    y = np.array([trial.y if trial.number in reached else None for _, trial in ended], dtype=float)
    counts = np.array([trial.feasible for _, trial in ended], dtype=bool) & np.isfinite(y)
    best = np.maximum.accumulate(np.where(counts, run.sign * y, -np.inf)) if len(y) else y
    return CostTrace(
        np.array([spent for spent, _ in ended]),
        np.where(np.isfinite(best), run.sign * best, np.nan),
        y,
        np.array([run.fidelity.row_of(trial) for _, trial in ended], dtype=float),
    )
