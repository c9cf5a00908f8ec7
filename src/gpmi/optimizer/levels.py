"""Which level of a fidelity to measure next, and whether the other levels are of any use.

The policy chooses a point by its value at the target. The level is then the one that tells most about the target there
for its cost. Two models are kept: of all levels, and of the target alone. Each value at the target was predicted by
both. While the predictions of the model of all levels were worse in sum, the target alone is modelled and measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gpmi._support.types import Array, Event, Observations, Point
from gpmi.gp.posterior import Posterior
from gpmi.model.fitting.level_covariance import LevelColumn
from gpmi.model.model import Model, ModelSetting
from gpmi.model.orientation import Orientation
from gpmi.model.outputs import OutputModel, begins_with
from gpmi.optimizer.duplicates import is_near
from gpmi.optimizer.exclusions import around_rejected
from gpmi.optimizer.suggestion import Suggestion
from gpmi.search.subspaces import Subspace
from gpmi.space import FidelityColumn, Space
from gpmi.trials import Log, Outcome, Trial
from gpmi.trials.costs import costs_of_levels
from gpmi.trials.target import without_last

# FIRST was compared with 2 on the development seeds of docs/benchmarks/fidelities.md. The others are our choice, not
# tuned.
FIRST = 3  # values at each level above the lowest one in the initial design
MOST_TRUST = 3.0  # a single prediction counts at most this much, in nats
ROW = 1.0  # cheaper measurements in a row cost at most this many measurements at the target

IGNORED = Event("levels ignored", "the target is predicted better without the other levels, so it is measured alone")


def level_column(space: Space, kernel: Any = None) -> LevelColumn | None:
    """Return where the level of a space is; None if it has none. Refuse a kernel, since levels have their own."""
    fidelity = space.fidelity
    if fidelity is None or fidelity.fidelity.has_steps:
        return None
    if kernel is not None:
        raise ValueError(
            f"kernel is {kernel!r}, but {fidelity.name} has levels, whose kernel is learned; leave out kernel"
        )
    return LevelColumn(fidelity.column, fidelity.fidelity.count)


def trust(log: Log) -> float:
    """Return how much better the model of all levels predicted the values at the target, in nats. O(n)."""
    gains = [log[number].trust for number in log.reached]
    return sum(max(-MOST_TRUST, min(MOST_TRUST, gain)) for gain in gains if gain is not None)


class RivalModel:
    """The model of a rival (`rivals.py`): another prior, and a part of the log, kept from one query to the next."""

    def __init__(self, setting: ModelSetting, orientation: Orientation) -> None:
        self._setting, self._orientation = setting, orientation
        self._observed = Observations.of(np.empty((0, 0)), np.empty(0))  # the longest behind what was learned
        self._last: Model | None = None

    def after(self, part: Log) -> Model:
        """Return the model after all values of a part of the log. Where values left the part, it is learned anew."""
        observed = replace(part.observed, y=self._orientation.values(part.observed.y))
        shorter, longer = sorted((self._observed, observed), key=len)
        if not begins_with(longer, shorter):
            self._setting, self._last, longer = self._setting.cleared(), None, observed
        self._observed = longer
        self._last = Model.after(self._setting, observed, self._last).with_outcomes(part.outcomes)
        return self._last

    def gain(self, joint: Model, trial: Trial, part: Log) -> float | None:
        """Return log p(y) of the last value by the model of the run minus that by this one, both before it.

        None for a value that this one does not know, and for its first values, from which nothing can be learned.
        """
        if trial.number not in part.told or len(part.told) <= 2 or trial.y is None:
            return None
        row, y = part.row(trial.number), self._orientation.value(trial.y)
        try:
            alone = self.after(without_last(part))
        except Exception:  # the value is recorded even if a model fails; the next `ask` raises the error
            return None
        return _log_density(joint, row, y, trial.noise_var) - _log_density(alone, row, y, trial.noise_var)


def gain_of_outputs(
    joint: Mapping[str, OutputModel], alone: Mapping[str, OutputModel], row: Array, outcome: Outcome
) -> float | None:
    """Return what `RivalModel.gain` does for several objectives: the sum over those that the outcome has."""
    gains = []
    for name, rival in alone.items():
        if name in outcome.outputs and len(rival.numbers) >= 2:
            y, noise = rival.orientation.value(outcome.outputs[name]), outcome.output_noise_var.get(name, 0.0)
            both = (_log_density(output.model, row, y, noise) for output in (joint[name], rival))
            gains.append(next(both) - next(both))
    return sum(gains) if gains else None


def _log_density(model: Model, row: Array, y: float, noise_var: float) -> float:
    """Return log p(y) at a row (d,) by a model; y is oriented and has the noise variance `own` beside the common one.

    O(n^2). Without noise a model may be certain: the variance is at least 1e-12 of the prior's.
    """
    (mu,), (var,) = model.posterior(row[None])
    z, slope = float(model.warp(np.array([y]))[0]), float(model.warp.log_slope(np.array([y]))[0])
    total = float(var) + model.posterior.noise_var + noise_var * math.exp(2.0 * slope)
    total = max(total, 1e-12 * float(model.posterior.kernel.diagonal(row[None])[0]), 1e-300)
    return slope - 0.5 * (math.log(2.0 * math.pi * total) + (z - float(mu)) ** 2 / total)


def from_level_design(subspace: Subspace, space: Space, log: Log, n_init: int) -> Suggestion | None:
    """Return the next measurement of the initial design; None when it is complete.

    It has n_init points at the lowest level, then the first of them at each higher level; if the user has fixed the
    level, n_init points there. It is never complete before the first value of every objective.
    """
    fidelity = space.fidelity
    assert fidelity is not None
    blind = not log.told or bool(log.unmeasured)
    if not blind and log.unchosen < len(log):
        return None
    by_level: dict[int, list[int]] = {i: [] for i in range(fidelity.fidelity.count)}
    for number, row in log.rows.items():
        by_level[round(float(row[fidelity.column]))].append(number)
    if fidelity.name in (subspace.fixed or {}):
        return None if not blind and len(log) >= n_init else _new_point(subspace, space, log, 0)
    if len(by_level[0]) < n_init and len(log.reached) < n_init:
        return _new_point(subspace, space, log, 0)
    for level in range(1, fidelity.fidelity.count):
        if len(by_level[level]) < min(FIRST, n_init):
            at = _next_row(subspace, log, fidelity, level, by_level)
            return _new_point(subspace, space, log, level) if at is None else Suggestion(space.decode(at), "design")
    return _new_point(subspace, space, log, 0) if blind else None


def _new_point(subspace: Subspace, space: Space, log: Log, level: int) -> Suggestion | None:
    """Return the next point of the design that has no trial at any level and was not rejected, at a level."""
    fidelity = space.fidelity
    assert fidelity is not None
    rows = [*map(np.frombuffer, log.asked_places), *(log.row(number) for number in log.rejected)]
    taken = dict.fromkeys((fidelity.at(row, fidelity.fidelity.target).tobytes() for row in rows), 1)
    x = subspace.design.first_free(taken, around_rejected(subspace.space, log))
    if x is None:
        return None
    lower = _at(x, fidelity, level)
    return Suggestion(lower if is_allowed(space, lower) else x, "design")


def is_allowed(space: Space, x: Point) -> bool:
    """Whether a point keeps the constraints at its level."""
    try:
        space.encode(x)
    except ValueError:
        return False
    return True


def _next_row(
    subspace: Subspace, log: Log, fidelity: FidelityColumn, level: int, by_level: dict[int, list[int]]
) -> Array | None:
    """Return the first point of the subspace that was measured at the level below and not at this one."""
    label, target = fidelity.fidelity.labels[level], fidelity.fidelity.target
    here = {log.rows[number].tobytes() for number in by_level[level]}
    here |= {log.row(number).tobytes() for number in log.rejected}
    below = [log.rows[number] for number in by_level[level - 1] if log[number].status in ("told", "pending")]
    inside = (row for row in below if subspace.space.contains(fidelity.at(row, target)))
    return next((row for row in (fidelity.at(row, label) for row in inside) if row.tobytes() not in here), None)


def _at(x: Point, fidelity: FidelityColumn, level: int) -> Point:
    return {**x, fidelity.name: fidelity.fidelity.labels[level]}


def at_best_level(chosen: Suggestion, posteriors: Sequence[Posterior], log: Log, space: Space) -> Suggestion:
    """Return a suggestion at the target, at the level where the point should be measured."""
    fidelity = space.fidelity
    assert fidelity is not None
    return chosen._replace(x=_at(chosen.x, fidelity, choose_level(space.encode(chosen.x), posteriors, log, space)))


def choose_level(row: Array, posteriors: Sequence[Posterior], log: Log, space: Space) -> int:
    """Return the level at which to measure the point of a row (d,): the one that tells most for its cost.

    A value at level l lowers the variance of f at the target by cov(f_target, f_l)^2 / (var f_l + noise). Of several
    objectives the shares are added. No point is measured twice at a level below the target. Lower levels cost at most
    ROW values at the target in a row. O(L n^2)
    """
    fidelity = space.fidelity
    assert fidelity is not None
    target = fidelity.fidelity.count - 1
    costs = costs_of_levels(log)
    rows = np.array([fidelity.at(row, label) for label in fidelity.fidelity.labels])
    lowered = np.sum([_lowered(posterior, rows) for posterior in posteriors], axis=0)
    spent = cost_since_target(log, fidelity, costs)
    best, score = target, lowered[target] / costs[target]
    measured = np.array([*log.rows.values(), *(log.row(number) for number in log.rejected)])
    for level in range(target):
        if spent + costs[level] > ROW * costs[target] or is_near(rows[level], space, measured):
            continue
        if not is_allowed(space, space.decode(rows[level])):
            continue
        if lowered[level] / costs[level] > score:
            best, score = level, lowered[level] / costs[level]
    return best


def _lowered(posterior: Posterior, rows: Array) -> Array:
    """Return the share of the variance at the last of the rows (L, d) that a value at each of them removes, (L,)."""
    covariance = posterior.covariance(rows)
    var = covariance[-1, -1]
    if not var > 0.0:
        return np.zeros(len(rows))
    noise = posterior.noise_var + 1e-12 * var
    lowered: Array = covariance[-1] ** 2 / (covariance.diagonal() + noise) / var
    return lowered


def cost_since_target(log: Log, fidelity: FidelityColumn, costs: list[float]) -> float:
    """Return the cost of the policy's measurements below the target since the last one at the target. O(n)."""
    spent = 0.0
    for number in reversed(list(log.rows)):
        level = round(float(log.rows[number][fidelity.column]))
        if level == len(costs) - 1 or log[number].origin != "policy":
            break
        spent += costs[level]
    return spent
