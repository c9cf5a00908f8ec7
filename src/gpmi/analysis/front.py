"""The front of a run with several goals, and the choice of one point from what is known."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from gpmi._support import checks
from gpmi._support.text import aligned, point, rounded
from gpmi._support.types import Array, Observations, Point
from gpmi.analysis.conditions import WIDER, Conditions, Range, Score, best_under, score_of
from gpmi.analysis.ledger.ledger import Ledger, LedgerCache
from gpmi.gp.approximate.success import SuccessProbability
from gpmi.gp.linalg import one_blas_thread
from gpmi.model.outputs import OutputModel, Prediction, is_exact
from gpmi.policies.front import non_dominated
from gpmi.space import Space
from gpmi.trials import Trial
from gpmi.trials.goal_kinds import AtLeast, AtMost, Limit, Match, Max, Min
from gpmi.trials.goals import Goals

CONFIDENCE = 0.9  # the probability with which a chosen point should meet its conditions, unless the user gives another
_CONDITION = re.compile(r"\s*(>=|<=|>|<)\s*([-+0-9.eE]+)\s*")
_UNPREDICTED = ("mu", "sd", "phi", "gamma_hat", "explored", "surprise", "information")  # those of another output


@dataclass(frozen=True, eq=False, repr=False)
class Chosen:
    """A point chosen by `choose`, with what is predicted there."""

    x: Point
    outputs: Mapping[str, Prediction]  # by output: mean and sd, averaged over draws of the prior if it is learned
    probability: float  # that the evaluation succeeds and all conditions and limits hold
    trial: Trial | None  # the trial at this point, if there is one
    note: str | None = None  # what to know before acting on it, if there is anything
    untried: Chosen | None = None  # where no point is sure enough: the one most likely to hold, beside a measured one

    def __repr__(self) -> str:
        lines = [
            ("at x", point(self.x)),
            *(
                (name, f"{rounded(prediction.mean)} +- {rounded(prediction.sd)}")
                for name, prediction in self.outputs.items()
            ),
            ("holds with", f"{100.0 * self.probability:.0f} %"),
            ("evaluated", "not yet" if self.trial is None else f"trial {self.trial.number}"),
            *([] if self.note is None else [("note", self.note)]),
        ]
        beside = "" if self.untried is None else f"\n\nnot tried yet\n{self.untried!r}"
        return aligned(lines) + beside


@dataclass(frozen=True, eq=False)
class FrontCache:
    """Results that the analyses of one run share, so that the next one does not recompute them."""

    outputs: dict[str, LedgerCache] = field(default_factory=dict)  # by output
    draws: dict[Any, Any] = field(default_factory=dict)  # of the front and of gains, by what they depend on


class OutputLedgers(Mapping[str, Ledger]):
    """A ledger of each output with a value, made when it is first read: as if the output were the only one."""

    def __init__(self, analysis: FrontAnalysis) -> None:
        self._analysis = analysis
        self._made: dict[str, Ledger] = {}

    def __getitem__(self, name: str) -> Ledger:
        if name not in self._made:
            self._made[name] = self._analysis.ledger_of(name)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._analysis.models)

    def __len__(self) -> int:
        return len(self._analysis.models)


@dataclass(frozen=True, eq=False)
class FrontAnalysis:
    """What is known of a run with goals: the front of its trials, and the best point under conditions."""

    goals: Goals
    space: Space
    seed: int
    trials: tuple[Trial, ...]  # those with an outcome
    models: Mapping[str, OutputModel]
    chance: SuccessProbability | None  # that an evaluation succeeds and keeps the limits; None if nothing speaks to it
    cache: FrontCache = field(default_factory=FrontCache)

    # The front

    @cached_property
    def front(self) -> tuple[Trial, ...]:
        """The trials that no other trial beats in every objective: feasible, acceptable, and one for each point.

        Where an output is noisy, the posterior means at the points are compared, not the values: a lucky value does not
        put a point on the front. With noise of 5 and 20 % the true hypervolume of this front is larger than that of the
        front of the values (docs/benchmarks/front_knowledge.md).
        """
        trials, values = self.known
        reference = np.array([-np.inf if g.reference is None else g.reference for g in self.goals.objectives.values()])
        accepted = np.all(values >= reference, axis=1)
        on_front = np.zeros(len(trials), dtype=bool)
        on_front[accepted] = non_dominated(values[accepted])
        return tuple(trial for trial, on in zip(trials, on_front, strict=True) if on)

    @cached_property
    def known(self) -> tuple[list[Trial], Array]:
        """The trials that may be on the front, the first of those at one point, and their objectives (n, k)."""
        trials = [trial for trial in self.complete if trial.feasible]
        rows = [self.space.encode(trial.x) for trial in trials]
        first = sorted({row.tobytes(): i for i, row in reversed(list(enumerate(rows)))}.values())
        trials, rows = [trials[i] for i in first], [rows[i] for i in first]
        if not trials:
            return [], np.empty((0, len(self.goals.objectives)))
        return trials, self.values_at(trials, np.array(rows))

    @cached_property
    def complete(self) -> tuple[Trial, ...]:
        """The trials with a value of every objective, in the order of their outcomes."""
        names = self.goals.objectives
        trials = [t for t in self.trials if t.status == "told" and all(name in t.outputs for name in names)]
        return tuple(sorted(trials, key=lambda trial: trial.order or 0))

    def values_at(self, trials: list[Trial], rows: Array) -> Array:
        """Return the objectives at trials, larger is better, (n, k): told values, or posterior means under noise."""
        objectives = self.goals.objectives.items()
        return np.stack([goal.oriented(self._known_values(name, trials, rows)) for name, goal in objectives], axis=1)

    # Each output by itself

    @cached_property
    def outputs(self) -> Mapping[str, Ledger]:
        """The ledger of each output with a value: its belief, its calibration, its noise."""
        return OutputLedgers(self)

    def ledger_of(self, name: str) -> Ledger:
        """Return the ledger of an output as if it were the only one; a limit or a watched output counts as "max"."""
        output = self.models[name]
        by_number = {trial.number: trial for trial in self.trials}
        all_values = output.observed
        at = [i for i, row in enumerate(all_values.x) if self.space.contains(row)]
        trials = [by_number[output.numbers[i]] for i in at]
        x, numbers = all_values.x[at], (all_values.y[at], all_values.noise_var[at], all_values.repeats[at])
        observed = Observations.of(x, *numbers)
        nothing: dict[str, Any] = dict.fromkeys(_UNPREDICTED)
        of_output = [replace(trial, y=trial.outputs[name], **nothing) for trial in trials]
        priors = output.model.setting.priors
        if priors.is_fixed and not priors.student_noise:  # a learned prior has its residuals from the belief
            surprises = output.orientation.values(output.model.posterior.ahead.surprise)[at].tolist()
            of_output = [
                replace(trial, surprise=surprise) for trial, surprise in zip(of_output, surprises, strict=True)
            ]
        return Ledger(
            trials=tuple(of_output),
            observed=observed,
            outcomes=None,
            failures=(),
            events=(),
            orientation=output.orientation,
            setting=output.model.setting,
            earlier=(output.model,),
            cache=self.cache.outputs.setdefault(name, LedgerCache({}, {})),
            open_noise=True,
            evidence=all_values,
            ends=tuple(i + 1 for i in at),
            doubtful=tuple(trial for trial in self.trials if (trial.doubts or {}).get(name)),
        )

    @cached_property
    def success(self) -> SuccessProbability | None:
        """The probability that an evaluation does not fail, whatever the limits; None if none has failed."""
        failures = (
            ()
            if self.chance is None
            else tuple(requirement for requirement in self.chance.requirements if requirement.spread > 0.0)
        )
        return SuccessProbability(failures) if failures else None

    # One point

    def choose(
        self,
        where: Mapping[str, Any] | None = None,
        confidence: float = CONFIDENCE,
        *,
        fixed: Any = None,
        **objective: str,
    ) -> Chosen:
        """Return the point with the best predicted output among those that meet all conditions.

        `objective` names one output and "max" or "min", as in cost="min", or "match" for an output with a target: the
        smallest expected distance. `where` has conditions on outputs, such as {"yield": ">= 70"}, or a pair (lo, hi).
        Limits of the goals must hold, too, and so must what they state as acceptable, unless `where` says otherwise of
        that output. `fixed` are coordinates that you set, as in `ask`.

        Points count that meet everything with a probability of at least `confidence`, evaluated or not. If none is
        found, it is the measured point that falls short of the conditions least, the best one of equals, and `note`
        says so; `untried` is then the point that meets them most likely, unless it is the same. The probability is
        about the outputs themselves, without the noise of a single measurement, and is averaged over draws of the
        learned priors (`Ledger.belief`), with standard deviations that are larger by a quarter:
        docs/benchmarks/front_knowledge.md has how often 90 % statements hold.
        """
        if len(objective) != 1:
            given = ", ".join(objective) or "nothing"
            raise TypeError(f'choose got {given} to optimise; name one output, as in choose(cost="min")')
        (name, direction), wanted = next(iter(objective.items())), self._checked_where(where)
        name = self._output(self.goals.output_of_argument(name))
        checks.one_of(name, direction, ("max", "min", "match"))
        goal, least = self.goals[name], checks.probability("confidence", confidence)
        if direction == "match" and not isinstance(goal, Match):
            remedy = 'give "max" or "min", or the output the goal gpmi.Match'
            raise ValueError(f"{name} is 'match', but its goal is {goal or 'None'}; {remedy}")
        part = self.space if fixed is None else self.space.with_fixed(fixed)
        conditions = self._conditions(wanted)
        mirrored = self.models[name].orientation.mirrors != (direction == "min")
        mixture = self.outputs[name].belief.posteriors
        mixture = tuple(posterior.mirrored() for posterior in mixture) if mirrored else mixture
        score = score_of(mixture, goal.target if isinstance(goal, Match) and direction == "match" else None)
        with one_blas_thread:
            chosen = self._chosen(best_under(score, conditions, part, self.seed, least), conditions)
            if not conditions or chosen.probability >= least * (1.0 - 1e-9):
                return replace(chosen, note=self._what_is_missing(wanted))
            named = ", ".join(f"{name} {_range(*bounds)}" for name, bounds in wanted.items())
            nowhere = f"no point found reaches {100.0 * least:g} % for {named}"
            nearest = self._nearest(wanted, score, part)
            if nearest is None:
                return replace(chosen, note=f"{nowhere}; this is the one most likely to")
            measured = self._chosen(self.space.encode(nearest.x), conditions)
        values = ", ".join(f"{name} {rounded(nearest.outputs[name])}" for name in wanted)
        note = f"{nowhere}; of what was measured trial {nearest.number} comes closest, with {values}"
        untried = None if chosen.trial is not None else chosen
        return replace(measured, trial=nearest, note=note, untried=untried)

    def _chosen(self, row: Array, conditions: Conditions) -> Chosen:
        """Return a point with what is predicted there, and the probability that the conditions hold."""
        probability = float(np.exp(conditions.log(row[None])[0]))
        predicted = {name: self._predicted(name, row) for name in self.models}
        there = [t for t in self.trials if t.status == "told" and np.array_equal(self.space.encode(t.x), row)]
        return Chosen(self.space.decode(row), predicted, probability, there[0] if there else None)

    def _nearest(self, wanted: Mapping[str, tuple[float, float]], score: Score, part: Space) -> Trial | None:
        """Return the measured trial that falls short of the ranges least, the best one of equals; None without one.

        How far an output is outside its range counts in units of the range of its values. Where it is noisy, its
        posterior mean counts and not its value.
        """
        measured = [t for t in self.trials if t.status == "told" and all(name in t.outputs for name in wanted)]
        inside = [(trial, row) for trial in measured if part.contains(row := self.space.encode(trial.x))]
        if not inside or not wanted:
            return None
        trials, rows = [trial for trial, _ in inside], np.array([row for _, row in inside])
        shortfalls = []
        for name, (lo, hi) in wanted.items():
            y = self._known_values(name, trials, rows)
            span = float(np.ptp([trial.outputs[name] for trial in measured])) or 1.0
            shortfalls.append(np.maximum(np.maximum(lo - y, y - hi), 0.0) / span)
        order = np.lexsort((-score(rows), np.max(shortfalls, axis=0)))
        return trials[int(order[0])]

    def _known_values(self, name: str, trials: list[Trial], rows: Array) -> Array:
        """Return an output at trials (n,), in its own units: told values, or posterior means under noise."""
        output = self.models[name]
        if is_exact(output.model.posterior, output.model.posterior.x):
            return np.array([trial.outputs[name] for trial in trials])
        return np.array([prediction.mean for prediction in output.predict(rows)])

    def _checked_where(self, where: Any) -> dict[str, tuple[float, float]]:
        """Return the range of each output that has a condition, in its own units."""
        if where is not None and not isinstance(where, Mapping):
            raise TypeError(f'where is {checks.shown(where)}; give a dict such as {{"yield": ">= 70"}}')
        if not self.models:
            raise ValueError("nothing has been told yet, so nothing can be chosen; tell some outputs first")
        given = {self._output(key): _bounds(key, condition) for key, condition in (where or {}).items()}
        for name, goal in self.goals.items():
            if isinstance(goal, AtLeast | AtMost):
                lo, hi = given.get(name, (-np.inf, np.inf))
                least, most = _bounds(name, goal)
                given[name] = max(lo, least), min(hi, most)
                if given[name][0] > given[name][1]:
                    raise ValueError(f"where has {name!r}, but its goal is {goal}: no value meets both")
            elif name not in given and (accepted := _accepted(goal)) is not None:
                given[name] = accepted
        return {name: bounds for name, bounds in given.items() if name in self.models}

    def _conditions(self, wanted: Mapping[str, tuple[float, float]]) -> Conditions:
        ranges = []
        for name, (lo, hi) in wanted.items():
            mirrors = self.models[name].orientation.mirrors
            lo, hi = (0.0 - hi, 0.0 - lo) if mirrors else (lo, hi)
            bounds = self.models[name].model.setting.bounds  # what they imply holds always
            lo, hi = -np.inf if lo <= bounds.lo else lo, np.inf if hi >= bounds.hi else hi
            ranges.append(Range(self.outputs[name].belief.posteriors, lo, hi, self._wider(name)))
        return Conditions(tuple(ranges), self.success)

    def _predicted(self, name: str, row: Array) -> Prediction:
        """Return the median of an output at a point and half the width of its central 68 %, under its belief."""
        from scipy.special import ndtr

        output = self.models[name]
        levels = ndtr(np.array([-1.0, 0.0, 1.0]))
        low, middle, high = output.model.to_units_of_y(self.outputs[name].belief.quantiles(row, levels)).tolist()
        half, bounds = 0.5 * (high - low) * self._wider(name), output.model.setting.bounds
        if bounds.limited:  # keep to the part within them, as in `Model.stated`
            low, high = bounds.clip(np.array([middle - half, middle + half])).tolist()
            middle, half = 0.5 * (low + high), 0.5 * (high - low)
        return Prediction(output.orientation.value(middle), half)

    def _wider(self, name: str) -> float:
        """Return the factor of the uncertainty of an output."""
        return 1.0 if self.models[name].model.setting.priors.is_fixed else WIDER

    def _what_is_missing(self, wanted: Mapping[str, Any]) -> str | None:
        """Return which outputs the probability leaves out or knows little of; None if there are none."""
        unmeasured = [name for name in self.goals.limits if name not in self.models]
        if unmeasured:
            return f"{', '.join(unmeasured)} has no value yet, and the probability leaves it out"
        few = [name for name in wanted if self.outputs[name].unknown is not None]
        if few:
            return f"little is known of {', '.join(few)}: {self.outputs[few[0]].unknown}"
        return None

    def _output(self, name: Any) -> str:
        name = self.goals.checked_name(name)
        if name not in self.models and self.models:
            raise ValueError(f"{name} has no value yet, so nothing is known of it; tell some first")
        return str(name)


def _accepted(goal: Any) -> tuple[float, float] | None:
    """Return the range of values that a goal states as acceptable, in units of the output; None if it states none."""
    if isinstance(goal, Max) and goal.at_least is not None:
        return goal.at_least, np.inf
    if isinstance(goal, Min) and goal.at_most is not None:
        return -np.inf, goal.at_most
    if isinstance(goal, Match):
        return goal.target + goal.reference, goal.target - goal.reference
    return None


def _range(lo: float, hi: float) -> str:
    """Return the range of a condition in words."""
    if np.isinf(hi):
        return f"at least {rounded(lo)}"
    return f"at most {rounded(hi)}" if np.isinf(lo) else f"from {rounded(lo)} to {rounded(hi)}"


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
        lo, hi = (checks.number(f"where[{name!r}]", bound, remedy) for bound in condition)
        if lo <= hi:
            return lo, hi
    if isinstance(condition, Limit):
        return (condition.value, np.inf) if condition.sign < 0.0 else (-np.inf, condition.value)
    raise ValueError(f"where has {name!r}: {checks.shown(condition)}; {remedy}")
