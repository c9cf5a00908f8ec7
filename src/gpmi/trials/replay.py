"""Trials of another run: validated, as this run has them, and entered into its log in the order of that run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

from gpmi._support import checks
from gpmi._support.checks import checked_value
from gpmi._support.types import Array, FrozenPoint
from gpmi.trials.corrections import correct, retract
from gpmi.trials.log import Log
from gpmi.trials.outcomes import OUTPUTS, Ending, Outcome, check_count, details_of
from gpmi.trials.outputs import NONE, Outputs, checked_output
from gpmi.trials.trial import PREDICTIONS, Origin, Report, Status, Trial, is_doubts


def checked_trials(trials: Iterable[Any], count: int | None) -> list[Trial]:
    """Validate the trials of another run; every value has `count` constraints, or as many as the first of them."""
    checked = [_checked(trial) for trial in trials]
    for trial in checked:
        if trial.status == "told":
            count = check_count(trial.constraints, count)
    return checked


def _checked(trial: Any) -> Trial:
    """Validate what the log needs of a trial, except its point; predictions are taken as they are."""
    if not isinstance(trial, Trial):
        raise TypeError(f"trials has {trial!r}; give the trials of a Result or an Optimizer")
    checks.whole("number", trial.number, 0)
    checks.one_of("status", trial.status, get_args(Status))
    checks.one_of("origin", trial.origin, get_args(Origin))
    if trial.order is not None:
        checks.whole("order", trial.order, 0)
    outcome = Outcome("told" if trial.status == "told" else "failed", trial.y, **details_of(trial)).checked()
    curve, doubts = _checked_curve(trial), _checked_doubts(trial)
    first = trial.outputs_before if trial.status in ("told", "retracted") and trial.outputs_before else None
    if outcome.outputs or first is not None:  # y and the fields about it follow from the outputs
        earliest = first_outcome(trial)
        kept = outcome if outcome.outputs else replace(earliest, outputs=NONE)  # a retracted one keeps its error bars
        about_outputs = {name: getattr(kept, name) for name in OUTPUTS}
        first = None if first is None else earliest.outputs
        return replace(trial, outputs_before=first, curve=curve, doubts=doubts, **about_outputs)
    before = None if trial.y_before is None else checked_value(trial.y_before)
    values: dict[str, Any] = {"y": outcome.y, "y_before": before, "outputs_before": None, "doubts": doubts}
    return replace(trial, curve=curve, **values, **details_of(outcome))


def _checked_doubts(trial: Trial) -> Mapping[str, str] | None:
    """Validate what was said of values that do not fit: texts by output."""
    if trial.doubts is None or (trial.status == "told" and is_doubts(trial.doubts)):
        return None if trial.doubts is None else FrozenPoint(trial.doubts)
    raise TypeError(f"doubts is {checks.shown(trial.doubts)}; give a text for each output of a trial with values")


def _checked_curve(trial: Trial) -> tuple[Report, ...]:
    remedy = "give a list of [step, value, place among all outcomes]"
    if not isinstance(trial.curve, list | tuple):
        raise TypeError(f"curve is {checks.shown(trial.curve)}; {remedy}")
    reports: list[Report] = []
    for report in trial.curve:
        if not isinstance(report, list | tuple) or len(report) != 3:
            raise TypeError(f"curve has {checks.shown(report)}; {remedy}")
        step, order = checks.whole("step", report[0], 1), checks.whole("order", report[2], 0)
        if reports and step <= reports[-1].step:
            raise ValueError(f"curve has step {step} after {reports[-1].step}; give its steps in order")
        reports.append(Report(step, _checked_report(report[1]), order))
    return tuple(reports)


def _checked_report(y: Any) -> float | Mapping[str, float]:
    """Validate a value of a curve: a number, or outputs by name."""
    if not isinstance(y, Mapping):
        return checked_value(y)
    return Outputs({name: checked_output(name, value) for name, value in y.items()})


def in_order(trials: Sequence[Trial], last_step: Callable[[int], int]) -> list[tuple[int, Report | None]]:
    """Return the outcomes of trials and the values of their curves in their order, by the index of the trial.

    None stands for the outcome, which has the value at last_step(index).
    """
    changes: list[tuple[bool, int, bool, int, Report | None]] = []
    for i, trial in enumerate(trials):
        changes += [(False, report.order, False, i, report) for report in trial.curve if report.step != last_step(i)]
        if trial.status != "pending":
            changes.append((trial.order is None, trial.order or 0, True, i, None))
    return [(i, report) for *_, i, report in sorted(changes, key=lambda change: change[:4])]


def reported_outcome(report: Report) -> Outcome:
    """Return the value of a curve as an outcome."""
    return Outcome("told", outputs=Outputs(report.y)) if isinstance(report.y, Mapping) else Outcome("told", report.y)


def first_outcome(trial: Trial) -> Outcome:
    """Return the outcome of a trial as it was before it was corrected or retracted, validated."""
    if outputs := trial.outputs if trial.outputs_before is None else trial.outputs_before:
        return Outcome("told", **{**details_of(trial), "outputs": outputs}).checked()
    y = trial.y if trial.y_before is None else trial.y_before
    ending: Ending = "failed" if trial.status not in ("rejected", "stopped") else trial.status
    return Outcome("told" if y is not None else ending, y, **details_of(trial))


def adopted(trial: Trial, log: Log) -> Trial:
    """Return a trial of another run as the run of a log has it: with the outputs of its goals, or with one value y.

    Where one of the two runs has goals, y stands for the output of a single objective. Refuse anything else.
    """
    log.exactness.check_curve(trial)
    return log.goals.adopted(trial)


def take_over(log: Log, trials: Sequence[Trial], rows: Sequence[Array]) -> None:
    """Add the trials of an earlier run with their predictions, then their outcomes in the order of that run.

    An empty log keeps their numbers. A corrected value enters as its first value; corrections and retractions follow
    after all outcomes.
    """
    keeps = len(log.entries) == 0 and len({trial.number for trial in trials}) == len(trials)
    numbers = []
    for trial, row in zip(trials, rows, strict=True):
        fields = {name: getattr(trial, name) for name in (*PREDICTIONS, "asked", "fixed")}
        added = log.add(trial.x, row, trial.origin, number=trial.number if keeps else None, **fields)
        numbers.append(added.number)
    for i, report in in_order(trials, lambda i: log.last_step(numbers[i])):
        if report is None:
            log.settle(numbers[i], first_outcome(trials[i]), trials[i].ended)
        else:
            log.report(numbers[i], report.step, reported_outcome(report), trials[i].ended)
    for number, trial in zip(numbers, trials, strict=True):
        if trial.status == "retracted":
            retract(log, number)
        elif trial.status != "pending" and trial.outputs_before is not None:
            correct(log, number, Outcome("told", **details_of(trial)).checked())
        elif trial.status != "pending" and trial.y is not None and trial.y_before is not None:
            correct(log, number, Outcome("told", trial.y, **details_of(trial)))
    pairs = zip(numbers, trials, strict=True)
    log.note_doubts({number: trial.doubts for number, trial in pairs if trial.doubts is not None})
