"""Which pending trial a user means: a trial, its number, or a point where one is pending."""

from __future__ import annotations

from gpmi.optimizer.open_trials import open_at, own_number
from gpmi.space import Space
from gpmi.trials import Log, Outcome, Trial, names_a_trial
from gpmi.trials.log import TrialOrPoint


def pending_trial(x: TrialOrPoint, space: Space, log: Log) -> Trial | int:
    """Return a trial, or the number of the pending trial at a point; refuse any other point."""
    trial = open_at(x, Outcome.rejection(), space, log)
    if not names_a_trial(trial):
        raise ValueError(f"x is {x!r}, which is not pending; give a point that was asked and has no outcome yet")
    return trial


def pending_number(x: TrialOrPoint, space: Space, log: Log) -> int:
    """Return the number of a pending trial; refuse one of another run."""
    trial = pending_trial(x, space, log)
    return own_number(trial, log.pending_number(trial), space, log)
