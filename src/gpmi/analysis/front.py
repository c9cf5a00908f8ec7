"""The front of a run with several goals, and the choice of one point from what is known."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gpmi._support import checks
from gpmi._support.text import aligned, point, rounded
from gpmi._support.types import Array, Point
from gpmi.gp.approximate.success import Requirement, SuccessProbability
from gpmi.gp.linalg import one_blas_thread
from gpmi.model.outputs import OutputModel, Prediction, is_exact
from gpmi.policies.front import non_dominated
from gpmi.search.recommendation import best_mean
from gpmi.space import Space
from gpmi.trials import Trial
from gpmi.trials.goals import Goals, Limit

CONFIDENCE = 0.9  # the probability with which a chosen point should meet its conditions, unless the user gives another
_CONDITION = re.compile(r"\s*(>=|<=|>|<)\s*([-+0-9.eE]+)\s*")


@dataclass(frozen=True, eq=False, repr=False)
class Chosen:
    """A point chosen by `choose`, with what is predicted there."""

    x: Point
    outputs: Mapping[str, Prediction]  # by output: mean and sd
    probability: float  # that the evaluation succeeds and all conditions and limits hold
    trial: Trial | None  # the trial at this point, if there is one

    def __repr__(self) -> str:
        lines = [
            ("at x", point(self.x)),
            *((name, f"{rounded(one.mean)} +- {rounded(one.sd)}") for name, one in self.outputs.items()),
            ("holds with", f"{100.0 * self.probability:.0f} %"),
            ("evaluated", "not yet" if self.trial is None else f"trial {self.trial.number}"),
        ]
        return aligned(lines)


@dataclass(frozen=True, eq=False)
class FrontAnalysis:
    """What is known of a run with goals: the front of its trials, and the best point under conditions."""

    goals: Goals
    space: Space
    seed: int
    trials: tuple[Trial, ...]  # those with an outcome
    models: Mapping[str, OutputModel]
    chance: SuccessProbability | None  # that an evaluation succeeds and keeps the limits; None if nothing speaks to it

    @cached_property
    def front(self) -> tuple[Trial, ...]:
        """The trials that no other trial beats in every objective: feasible, acceptable, and one for each point.

        Where an output is noisy, the posterior means at the points are compared, not the values.
        """
        names = list(self.goals.objectives)
        known = [t for t in self.trials if t.status == "told" and t.feasible and all(n in t.outputs for n in names)]
        rows = [self.space.encode(trial.x) for trial in known]
        first = list({row.tobytes(): i for i, row in reversed(list(enumerate(rows)))}.values())
        known, rows = [known[i] for i in sorted(first)], [rows[i] for i in sorted(first)]
        if not known:
            return ()
        values = self.values_at(known, np.array(rows))
        reference = np.array([-np.inf if g.reference is None else g.reference for g in self.goals.objectives.values()])
        accepted = np.all(values >= reference, axis=1)
        on_front = np.zeros(len(known), dtype=bool)
        on_front[accepted] = non_dominated(values[accepted])
        return tuple(trial for trial, on in zip(known, on_front, strict=True) if on)

    def values_at(self, trials: list[Trial], rows: Array) -> Array:
        """Return the objectives at trials, larger is better, (n, k): told values, or posterior means under noise."""
        columns = []
        for name, goal in self.goals.objectives.items():
            output = self.models[name]
            if is_exact(output.model.posterior, output.model.posterior.x):
                y = np.array([trial.outputs[name] for trial in trials])
            else:
                y = np.array([one.mean for one in output.predict(rows)])
            columns.append(goal.oriented(y))
        return np.stack(columns, axis=1)

    def choose(
        self, where: Mapping[str, Any] | None = None, confidence: float = CONFIDENCE, **objective: str
    ) -> Chosen:
        """Return the point with the best predicted output among those that meet all conditions.

        `objective` names one output and "max" or "min", as in cost="min"; `where` has conditions on outputs, such as
        {"yield": ">= 70"}, or a pair (lo, hi). The limits of the goals must hold, too. Points count that meet
        everything with a probability of at least `confidence`, evaluated or not. If there is none, it is the point
        that is most likely to.
        """
        if len(objective) != 1:
            given = ", ".join(objective) or "nothing"
            raise TypeError(f'choose got {given} to optimise; name one output, as in choose(cost="min")')
        (name, direction), conditions = next(iter(objective.items())), dict(where or {})
        name = self._output(name.removesuffix("_") if name not in self.goals else name)
        checks.one_of(name, direction, ("max", "min"))
        least = checks.probability("confidence", confidence)
        if not self.models:
            raise ValueError("nothing has been told yet, so nothing can be chosen; tell some outputs first")
        wanted = [one for key, text in conditions.items() for one in self._requirements(self._output(key), text)]
        chance = SuccessProbability((*(() if self.chance is None else self.chance.requirements), *wanted))
        output = self.models[name]
        mirrored = output.orientation.mirrors != (direction == "min")
        posterior = output.model.posterior.mirrored() if mirrored else output.model.posterior
        with one_blas_thread:
            row = best_mean(posterior, (), self.space, self.seed, chance if chance.requirements else None, least)
            probability = float(chance(row[None])[0]) if chance.requirements else 1.0
            outputs = {name: model.predict(row[None])[0] for name, model in self.models.items()}
        there = [t for t in self.trials if t.status == "told" and np.array_equal(self.space.encode(t.x), row)]
        return Chosen(self.space.decode(row), outputs, probability, there[0] if there else None)

    def _output(self, name: str) -> str:
        name = self.goals.checked_name(name)
        if name not in self.models and self.models:
            raise ValueError(f"{name} has no value yet, so nothing is known of it; tell some first")
        return name

    def _requirements(self, name: str, condition: Any) -> list[Requirement]:
        """Return the requirements of a condition on an output."""
        output, bounds = self.models[name], _bounds(name, condition)
        mirror = -1.0 if output.orientation.mirrors else 1.0
        return [
            Requirement(output.model.posterior, mirror * limit, mirror * sign, 0.0)
            for limit, sign in zip(bounds, (1.0, -1.0), strict=True)
            if np.isfinite(limit)
        ]


def _bounds(name: str, condition: Any) -> tuple[float, float]:
    """Return the lowest and the largest value that a condition allows."""
    remedy = f'give where={{"{name}": ">= 1"}}, "<= 1", or a pair (lo, hi)'
    if isinstance(condition, str) and (match := _CONDITION.fullmatch(condition)):
        try:
            limit = checks.number(name, float(match[2]), remedy)
        except ValueError:
            raise ValueError(f"where has {name!r}: {condition!r}; {remedy}") from None
        return (limit, np.inf) if match[1][0] == ">" else (-np.inf, limit)
    if isinstance(condition, tuple | list) and len(condition) == 2:
        lo, hi = (checks.number(f"where[{name!r}]", one, remedy) for one in condition)
        if lo <= hi:
            return lo, hi
    if isinstance(condition, Limit):
        return (condition.value, np.inf) if condition.sign < 0.0 else (-np.inf, condition.value)
    raise ValueError(f"where has {name!r}: {checks.shown(condition)}; {remedy}")
