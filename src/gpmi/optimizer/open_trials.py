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


def open_number(trial: Trial | int, outcome: Outcome, space: Space, log: Log) -> int:
    """Return the number of a trial that can take the outcome; refuse one of another run."""
    return own_number(trial, log.open_number(trial, outcome), space, log)


def own_number(trial: Trial | int, number: int, space: Space, log: Log) -> int:
    """Return the number; refuse a trial of another run with the same number."""
    if isinstance(trial, Trial) and not np.array_equal(space.encode(trial.x), log.row(number)):
        problem = f"trial {number} of this run is at another point; give one of its trials"
        raise ValueError(f"x is {trial!r}, but {problem}")
    return number
