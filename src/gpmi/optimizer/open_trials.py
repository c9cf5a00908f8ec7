"""Which trial a user means: a trial, its number, or a point where one is open."""

from __future__ import annotations

import numpy as np

from gpmi.space import Space
from gpmi.trials import Log, Outcome, Trial, names_a_trial
from gpmi.trials.log import TrialOrPoint


def open_at(x: TrialOrPoint, outcome: Outcome, space: Space, log: Log) -> TrialOrPoint:
    """Return the number of the trial at a point that can take the outcome, if there is one; otherwise x."""
    if names_a_trial(x):
        return x
    number = log.find_open(space.encode(x), space.rounding, outcome)
    return x if number is None else number


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


def open_number(trial: Trial | int, outcome: Outcome, space: Space, log: Log) -> int:
    """Return the number of a trial that can take the outcome; refuse one of another run."""
    return own_number(trial, log.open_number(trial, outcome), space, log)


def own_number(trial: Trial | int, number: int, space: Space, log: Log) -> int:
    """Return the number; refuse a trial of another run with the same number."""
    if isinstance(trial, Trial) and not np.array_equal(space.encode(trial.x), log.row(number)):
        problem = f"trial {number} of this run is at another point; give one of its trials"
        raise ValueError(f"x is {trial!r}, but {problem}")
    return number
