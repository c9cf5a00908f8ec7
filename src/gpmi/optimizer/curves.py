"""Whether an evaluation that reports values on its way to the target should be stopped: if it will hardly win."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from gpmi._support import checks
from gpmi._support.types import Array
from gpmi.model.model import Model
from gpmi.trials import Log, Outcome, Trial
from gpmi.trials.log import value_of

# An evaluation is stopped if its value at the target will exceed the best one with a smaller probability. Chosen on the
# development tasks of docs/benchmarks/curves.md.
HARDLY = 0.1


def probability_to_win(model: Model, row: Array, log: Log) -> float:
    """Return the probability that f at a row (d,) at the target exceeds the best value that reached it.

    The best value is the best posterior mean at a point that reached the target, because y may be noisy. Before there
    is one, the probability is 1. O(n^2).
    """
    from scipy.special import ndtr

    reached = [number for number in log.reached if log[number].feasible]
    if not reached:
        return 1.0
    best = float(model.posterior.mu(np.array([log.row(number) for number in reached])).max())
    (mu,), (var,) = model.posterior(row[None])
    return float(ndtr((mu - best) / math.sqrt(var))) if var > 0.0 else float(mu > best)


def is_at_rung(trial: Trial, log: Log) -> bool:
    """Whether the last value of a curve has entered the model, so that there is something new to judge."""
    return log.enters(trial, len(trial.curve) - 1)


def checked_step(log: Log, trial: Trial, step: Any, outcome: Outcome) -> int | None:
    """Validate a step of a curve; None if it was reported before with the same value."""
    if log.fidelity is None or not log.fidelity.fidelity.has_steps:
        raise ValueError('the space has no steps to report; give it a fidelity such as "epoch": gpmi.Fidelity(1, 52)')
    fidelity, name = log.fidelity.fidelity, log.fidelity.name
    number = checks.whole("step", step, 1)
    if not fidelity.levels <= number <= (fidelity.last or 0):
        remedy = f"{name} goes from {fidelity.levels} to {fidelity.last}: report steps within, or widen the fidelity"
        raise ValueError(f"step is {number}; {remedy}")
    given = value_of(outcome)
    for report in trial.curve:
        if report.step == number:
            if report.y == given:
                return None
            shown = dict(report.y) if isinstance(report.y, Mapping) else report.y
            raise ValueError(f"step {number} of trial {trial.number} was {checks.shown(shown)}; report each step once")
    if trial.curve and number < trial.curve[-1].step:
        raise ValueError(f"step is {number}, but trial {trial.number} is at {trial.curve[-1].step}; report in order")
    return number
