"""Outcomes that are corrected or taken back, and the trials for which that is possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gpmi._support import checks
from gpmi.trials.doubts import doubts_that_stay
from gpmi.trials.log import Log
from gpmi.trials.outcomes import Outcome
from gpmi.trials.outputs import NONE
from gpmi.trials.trial import Status, Trial, names_a_trial


def correctable(log: Log, trial: Any) -> Trial:
    """Return a trial that was told, failed or retracted; raise a ValueError if it has another status."""
    remedy = "give a trial that was told, failed or retracted; a pending one is told"
    return _with_status(log, trial, ("told", "failed", "retracted"), remedy)


def confirmable(log: Log, trial: Any) -> Trial:
    """Return a trial that was told; raise a ValueError if it has another status."""
    return _with_status(log, trial, ("told",), "give a trial that was told")


def retractable(log: Log, trial: Any) -> Trial:
    """Return a trial that was told, stopped, failed or rejected; raise a ValueError if it has another status."""
    remedy = "give a trial that was told, stopped, failed or rejected; a pending one is forgotten"
    return _with_status(log, trial, ("told", "stopped", "failed", "rejected"), remedy)


def _with_status(log: Log, trial: Any, statuses: Sequence[Status], remedy: str) -> Trial:
    if not names_a_trial(trial):
        raise TypeError(f"trial is {checks.shown(trial)}; give a Trial or its number")
    number = trial.number if isinstance(trial, Trial) else int(trial)
    stored = log.get(number)
    if stored is None or stored.status not in statuses:
        raise ValueError(f"trial is {number}: {log.state_of(number)}; {remedy}")
    return stored


def correct(log: Log, number: int, outcome: Outcome, when: float | None = None) -> Trial:
    """Replace the outcome of a trial by another value, at its place in the order of the outcomes. O(n).

    Its prediction stays. `surprise` and `information` are reset.
    """
    corrected = replace(_outdated(log, number), **{**vars(outcome), **log.goals.derived(outcome)})
    corrected = replace(corrected, doubts=doubts_that_stay(log[number], corrected))
    return log.replace(log.exactness.ended(corrected, log.row(number)), "corrected", when, outcome)


def retract(log: Log, number: int, when: float | None = None) -> Trial:
    """Take back the outcome of a trial: it no longer counts. O(n)."""
    retracted = replace(_outdated(log, number), status="retracted", y=None, outputs=NONE, unmet=(), doubts=None)
    return log.replace(retracted, "retracted", when)


def _outdated(log: Log, number: int) -> Trial:
    """Return a trial with its first values kept, and nothing that was derived from its value."""
    old = log[number]
    before, first = old.y if old.y_before is None else old.y_before, old.outputs_before
    if old.outputs:  # the first value of every output that had one
        first = log.goals.ordered({**old.outputs, **(first or {})})
    return replace(old, y_before=before, outputs_before=first, surprise=None, information=None, trust=None)
