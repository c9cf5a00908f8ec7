"""A run with a fidelity as figures and reports show it: its curves, where they would have led, and what was spent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from gpmi._support.types import Array
from gpmi.space import FidelityColumn
from gpmi.trials import Trial
from gpmi.trials.costs import cost_of
from gpmi.trials.goal_summary import at_target
from gpmi.trials.trial import Report
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


def steps_of(run: RunView) -> FidelityColumn | None:
    """Return the fidelity of a run if it has steps."""
    found = run.space.fidelity
    return None if found is None or not found.fidelity.has_steps else found


def value_of(report: Report, run: OutputView) -> float:
    """Return the value of a report in the view of one output; nan if it has none."""
    y = report.y.get(run.key, np.nan) if isinstance(report.y, Mapping) else report.y
    return float(y)


def curves_of(run: OutputView) -> list[DrawnCurve]:
    """Return the curves of a run in the order of the trials, without trials that do not count. O(n) values."""
    found, reached = list[DrawnCurve](), {trial.number for trial in at_target(run.trials, run.space)}
    for trial in run.trials:
        if trial.status not in _KIND or not trial.curve:
            continue
        steps = np.array([report.step for report in trial.curve], dtype=float)
        y = np.array([value_of(report, run) for report in trial.curve])
        known = np.isfinite(y)
        if known.any():
            kind = "short" if trial.status == "told" and trial.number not in reached else _KIND[trial.status]
            found.append(DrawnCurve(trial, kind, steps[known], y[known]))
    return found


def drawn_curves(run: OutputView) -> list[DrawnCurve]:
    """Return the curves to draw: at most about MAX_CURVES of them with MAX_POINTS values each."""
    found = curves_of(run)
    best = None if run.best is None else run.best.number
    needed = [one for one in found if one.kind == "running" or one.trial.number == best]
    others = [one for one in found if one.kind != "running" and one.trial.number != best]
    chosen = {one.trial.number for one in (*needed, *others[:: -(-len(others) // MAX_CURVES) or 1])}
    return [_thinned(one) for one in found if one.trial.number in chosen]


def _thinned(curve: DrawnCurve) -> DrawnCurve:
    if len(curve.steps) <= MAX_POINTS:
        return curve
    at = np.unique(np.linspace(0.0, len(curve.steps) - 1.0, MAX_POINTS).round().astype(int))
    return curve._replace(steps=curve.steps[at], y=curve.y[at])


def continued(run: OutputView, curves: list[DrawnCurve]) -> list[tuple[DrawnCurve, Continuation]]:
    """Return where the model believes stopped and running curves go on to; none without a model.

    They are at most MAX_CONTINUED of each kind, from the best to the worst last value.
    """
    fidelity = steps_of(run)
    if run.posterior is None or fidelity is None:
        return []
    found = list[DrawnCurve]()
    for kind in ("stopped", "running"):
        some = [one for one in curves if one.kind == kind and one.steps[-1] < fidelity.fidelity.target]
        some.sort(key=lambda one: one.end[1])
        places = np.linspace(0.0, len(some) - 1.0, min(MAX_CONTINUED, len(some))).round().astype(int).tolist()
        found += [some[i] for i in places]
    return [(one, _continuation(run, one, fidelity)) for one in found]


def _continuation(run: OutputView, curve: DrawnCurve, fidelity: FidelityColumn) -> Continuation:
    """Return mean and band of a curve from its end to the target: O(n^2) for each of AHEAD points."""
    from scipy.special import ndtri

    assert run.posterior is not None
    begin, target = int(curve.steps[-1]), int(fidelity.fidelity.target)
    steps = np.unique(np.linspace(begin, target, AHEAD).round().astype(int))
    row = run.space.encode(curve.trial.x)
    rows = np.array([fidelity.at(row, int(step)) for step in steps])
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
    fidelity = run.space.fidelity
    assert fidelity is not None
    changes = [change for trial in run.trials for change in _changes(trial, run.space.encode(trial.x), fidelity)]
    spent, ended = 0.0, list[tuple[float, Trial]]()
    for _, cost, trial, is_end in sorted(changes, key=lambda change: (change[0], change[3])):
        spent += cost
        if is_end:
            ended.append((spent, trial))
    reached = {trial.number for trial in run.told}
    y = np.array([trial.y if trial.number in reached and trial.y is not None else np.nan for _, trial in ended])
    counts = np.array([trial.feasible for _, trial in ended], dtype=bool) & np.isfinite(y)
    best = np.maximum.accumulate(np.where(counts, run.sign * y, -np.inf)) if len(y) else y
    return CostTrace(
        np.array([spent for spent, _ in ended]),
        np.where(np.isfinite(best), run.sign * best, np.nan),
        y,
        np.array([_level(trial, fidelity) for _, trial in ended], dtype=float),
    )


def _changes(trial: Trial, row: Array, fidelity: FidelityColumn) -> list[tuple[int, float, Trial, bool]]:
    """Return what a trial cost, as (place among all outcomes, cost, trial, whether it ended there)."""
    if trial.status in ("rejected", "retracted"):
        return []
    own, end = fidelity.fidelity, [] if trial.order is None else [(trial.order, 0.0, trial, True)]
    if own.has_steps:
        totals = [0.0, *(own.cost_of(report.step) for report in trial.curve)]
        costs = zip(trial.curve, np.diff(totals).tolist(), strict=True)
        return [(report.order, cost, trial, False) for report, cost in costs] + end
    return [(order, cost_of(trial, row, fidelity), trial, True) for order, _, trial, _ in end]


def _level(trial: Trial, fidelity: FidelityColumn) -> int:
    """Return the row of a trial in `row_names`."""
    own, at = fidelity.fidelity, trial.x[fidelity.name]
    return int(trial.status == "told" and at == own.target) if own.has_steps else own.labels.index(at)


def row_names(fidelity: FidelityColumn) -> list[str]:
    """Return what the rows of `CostTrace.row` are called."""
    own = fidelity.fidelity
    return ["not to the end", "to the end"] if own.has_steps else [str(label) for label in own.labels]


def cost_name(fidelity: FidelityColumn) -> str:
    """Return what the cost is called on an axis."""
    own = fidelity.fidelity
    if own.learns_costs:
        return "time spent, in seconds"
    return f"cost spent, in steps of {fidelity.name}" if own.has_steps and own.cost is None else "cost spent"
