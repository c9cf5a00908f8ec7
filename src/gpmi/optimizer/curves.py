"""Whether an evaluation that reports values on its way to the target should be stopped: if it will hardly win."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpmi._support import checks
from gpmi._support.types import Array
from gpmi.model.model import Model
from gpmi.model.outputs import OutputModel, objective_values
from gpmi.optimizer.duplicates import is_near
from gpmi.space import Parameters, Space
from gpmi.trials import Log, Outcome, Trial
from gpmi.trials.goals import Goals
from gpmi.trials.trial import value_of

# An evaluation is stopped if its value at the target will exceed the best one with a smaller probability. Our choice:
# on the development tasks of docs/benchmarks/curves.md 0.05 and 0.03 were no clear gain.
HARDLY = 0.1
DRAWS = 512  # of the objectives at the target: a probability of 0.1 has an error of 0.013
CURVES = 7  # stream id of these draws


def points_at_target(log: Log, part: Space) -> Array:
    """Return the points that reached the target, (m, d), moved to the fixed coordinates of a part of the space."""
    rows = [log.row(number) for number in log.reached if log[number].feasible]
    points = np.array(rows).reshape(len(rows), part.dim)
    return part.move_to_fixed(points) if isinstance(part, Parameters) and len(rows) else points


def probability_to_win(model: Model, row: Array, rivals: Array) -> float:
    """Return the probability that f at a row (d,) exceeds the best of its rivals (m, d), the points at the target.

    The best value is their best posterior mean, because y may be noisy. Without any, the probability is 1. O(n^2).
    """
    from scipy.special import ndtr

    if not len(rivals):
        return 1.0
    best = float(model.posterior.mu(rivals).max())
    (mu,), (var,) = model.posterior(row[None])
    return float(ndtr((mu - best) / math.sqrt(var))) if var > 0.0 else float(mu > best)


def probability_to_join_front(
    models: Mapping[str, OutputModel], goals: Goals, row: Array, rivals: Array, seed: Sequence[int]
) -> float:
    """Return the probability that the objectives at a row (d,) at the target beat the front in at least one of them.

    The front is that of its rivals (m, d), the points that reached the target, by their posterior means; without any
    the probability is 1. It is the share of DRAWS draws from the models. O(k n^2).
    """
    if not len(rivals):
        return 1.0
    rng = np.random.default_rng([*seed, CURVES])
    front, drawn = [], []
    for name, goal in goals.objectives.items():
        posterior = models[name].model.posterior
        (mu,), (var,) = posterior(row[None])
        front.append(objective_values(goal, posterior.mu(rivals)))
        drawn.append(objective_values(goal, float(mu) + math.sqrt(var) * rng.standard_normal(DRAWS)))
    means, values = np.stack(front, axis=1), np.stack(drawn, axis=1)  # (m, k), (DRAWS, k)
    beaten = np.all(means[None] >= values[:, None], axis=2).any(axis=1)
    stated = np.array([-np.inf if goal.reference is None else goal.reference for goal in goals.objectives.values()])
    return float(np.mean(~beaten & np.all(values > stated, axis=1)))


def may_stop(trial: Trial, log: Log, space: Space) -> bool:
    """Whether the last value of a curve may end its trial: the value has entered the model, so there is news to judge.

    Not if the user fixed the last step of the trial. Nor if a trial was stopped at the same point, and the policy still
    wants to know: another stop would teach nothing.
    """
    row = log.row(trial.number)
    if not log.enters(trial, len(trial.curve) - 1) or not log.exactness.is_target(row):
        return False
    return not is_near(row, space, [log.rows[number] for number in log.stopped if number != trial.number])


def checked_step(log: Log, trial: Trial | int, step: Any) -> int:
    """Validate a step of a trial: a whole number within the fidelity of the space, which has steps."""
    log.exactness.check_steps()
    assert log.fidelity is not None
    fidelity, name = log.fidelity.fidelity, log.fidelity.name
    number = checks.whole("step", step, 1)
    last = log.last_step(trial)
    if not fidelity.levels <= number <= last:
        remedy = f"{name} goes from {fidelity.levels} to {last}: report steps within, or widen the fidelity"
        raise ValueError(f"step is {number}; {remedy}")
    return number


def is_next_step(trial: Trial, step: int, outcome: Outcome) -> bool:
    """Whether a step continues the curve of a trial; not if it was reported before with the same value.

    Refuse another value of a step that was reported before, and a step before the last one.
    """
    for report in trial.curve:
        if report.step == step:
            if report.y == value_of(outcome):
                return False
            shown = dict(report.y) if isinstance(report.y, Mapping) else report.y
            raise ValueError(f"step {step} of trial {trial.number} was {checks.shown(shown)}; report each step once")
    if trial.curve and step < trial.curve[-1].step:
        raise ValueError(f"step is {step}, but trial {trial.number} is at {trial.curve[-1].step}; report in order")
    return True
