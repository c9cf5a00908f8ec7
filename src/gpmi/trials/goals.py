"""Goals: what each output of an evaluation is for.

An evaluation measures outputs. An output is optimised, limited, or only watched (`goal_kinds`). `Goals` is the
collection that a run has: `NamedGoals` if an evaluation returns a dict of outputs (`named_goals`), and `ValueGoal` if
it returns one number, y (`value_goal`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal

import numpy as np

from gpmi._support import checks
from gpmi._support.name_hints import SEVERAL, similar_name
from gpmi.trials.goal_kinds import AtLeast, AtMost, Goal, Limit, Match, Max, Min, Objective
from gpmi.trials.outcomes import Outcome
from gpmi.trials.outputs import Outputs
from gpmi.trials.trial import Trial


@dataclass(frozen=True)
class Goals(Mapping[str, Goal]):
    """The outputs of an evaluation in their order, each with its goal."""

    pairs: tuple[tuple[str, Goal], ...]

    def __getitem__(self, name: str) -> Goal:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self.pairs)

    @cached_property
    def _by_name(self) -> dict[str, Goal]:
        return dict(self.pairs)

    @cached_property
    def objectives(self) -> dict[str, Objective]:
        """The outputs that are optimised."""
        return {name: goal for name, goal in self.pairs if isinstance(goal, Max | Min | Match)}

    @cached_property
    def limits(self) -> dict[str, Limit]:
        """The outputs with a limit."""
        return {name: goal for name, goal in self.pairs if isinstance(goal, AtLeast | AtMost)}

    @cached_property
    def required(self) -> tuple[str, ...]:
        """The outputs without which a trial has no value: the only objective, unless it is a target; else none."""
        name, *others = self.objectives
        return () if others or isinstance(self[name], Match) else (name,)

    @property
    def single(self) -> str | None:
        """The one output that is maximised or minimised, whose value is y; None if there are several objectives."""
        return next(iter(self.required), None)

    @property
    def direction(self) -> Literal["max", "min"]:
        """The goal of the single objective; "max" if there are several."""
        return "min" if any(isinstance(self[name], Min) for name in self.required) else "max"

    @property
    @abstractmethod
    def purpose(self) -> dict[str, Any]:
        """The goals as arguments of `Optimizer`."""

    @property
    @abstractmethod
    def named(self) -> tuple[str, ...]:
        """The outputs that the user named."""

    @property
    @abstractmethod
    def example(self) -> str:
        """How the outputs of an evaluation are given, for messages."""

    @abstractmethod
    def titles(self, unnamed: str) -> dict[str, str]:
        """Return what to call each output. `unnamed` is the name for the output that the user did not name."""

    @abstractmethod
    def outcome(self, y: Any, **details: Any) -> Outcome:
        """Return what an evaluation returned, with the keyword arguments of `tell`, validated."""

    @abstractmethod
    def corrected(self, before: Outcome, y: Any, **details: Any) -> Outcome:
        """Return an outcome with other values; details that are None stay as they are."""

    @abstractmethod
    def checked(self, outputs: Any) -> dict[str, float]:
        """Return measured outputs as numbers; refuse an unknown name and anything that is not a finite number."""

    @abstractmethod
    def entered(self, plain: Sequence[float], outputs: Mapping[str, float]) -> float | dict[str, float]:
        """Return a value as it is told, from numbers without a name and numbers by output, as a person enters them."""

    @abstractmethod
    def entered_noise(self, plain: Sequence[float], outputs: Mapping[str, float]) -> float | dict[str, float]:
        """Return the variances of errors, entered as `entered` has it: one for all outputs, or by output."""

    @abstractmethod
    def check(self, outcome: Outcome, count: int | None) -> None:
        """Raise unless a value fits the goals. `count` is how many constraints came with the values before."""

    @abstractmethod
    def mismatch(self, y: float | None, outputs: Mapping[str, float]) -> str | None:
        """Return why a value of another study says nothing about these outputs; None if it does."""

    @abstractmethod
    def adopted(self, trial: Trial) -> Trial:
        """Return a trial of another run as a run with these goals has it. Refuse one that says nothing about them."""

    @abstractmethod
    def derived(self, outcome: Outcome) -> dict[str, Any]:
        """Return the fields of a trial that follow from its outputs."""

    def check_named(self, so: str) -> None:
        """Raise unless the user named the outputs. `so` is what follows if not."""
        if not self.named:
            raise ValueError(f'the run has no goals, so {so}; give goals={{"yield": "max", "cost": "min"}}')

    def check_unnamed(self, owner: str) -> None:
        """Raise if the user named the outputs: the owner evaluates one number."""
        if self.named:
            raise ValueError(
                f"optimizer has the goals {self}, but {owner} returns one number; give an Optimizer without goals, "
                'with goal="max" or goal="min"'
            )

    def checked_name(self, name: Any) -> str:
        """Return the name of an output; refuse an unknown one."""
        if not isinstance(name, str) or name not in self._by_name:
            near = similar_name(name, list(self)) if isinstance(name, str) else None
            hint = f"did you mean {near!r}?" if near else f"give one of {', '.join(map(repr, self))}"
            if isinstance(name, str) and near is None:
                hint += f"; an output that is only watched has the goal None, goals={{..., {name!r}: None}}"
            raise ValueError(f"{checks.shown(name)} is not an output of this run; {hint}")
        return str(name)

    def checked_objective(self, name: Any) -> str:
        """Return the name of an objective; refuse any other."""
        checked = self.checked_name(name)
        if checked not in self.objectives:
            raise ValueError(f"{checked} is no objective; give one of {', '.join(self.objectives)}")
        return checked

    def output_of_argument(self, argument: str) -> str:
        """Return the output that a keyword argument names; one that Python keeps for itself has a _ at its end."""
        return argument if argument in self else argument.removesuffix("_")

    def ordered(self, numbers: Mapping[str, float]) -> Outputs:
        """Return numbers by output in the order of the goals, read-only."""
        return Outputs({name: numbers[name] for name in self if name in numbers})

    def unmet(self, outputs: Mapping[str, float]) -> tuple[str, ...]:
        """Return the limits that these outputs break, or that are not measured yet."""
        return tuple(
            name
            for name, limit in self.limits.items()
            if name not in outputs or not float(limit.excess(np.asarray(outputs[name]))) <= 0.0
        )

    @property
    def has_limits(self) -> bool:
        """Whether a trial can be unacceptable: there is a limit, a target, or a worst value that is accepted."""
        return bool(self.limits) or any(goal.reference is not None for goal in self.objectives.values())

    def accepts(self, outputs: Mapping[str, float]) -> bool:
        """Whether all objectives are measured and none is worse than what was stated as acceptable."""
        return all(name in outputs for name in self.objectives) and not self.refuses(outputs)

    def refuses(self, outputs: Mapping[str, float]) -> bool:
        """Whether a measured objective is worse than what was stated as acceptable."""
        return any(
            goal.reference is not None
            and name in outputs
            and not float(goal.oriented(np.asarray(outputs[name]))) >= goal.reference
            for name, goal in self.objectives.items()
        )

    def to_json(self) -> list[dict[str, Any]]:
        """Return the goals as a study stores them."""
        return [
            {"output": name}
            if goal is None
            else {"output": name, "kind": type(goal).__name__, **{f.name: getattr(goal, f.name) for f in fields(goal)}}
            for name, goal in self.pairs
        ]


def checked_goal(goal: Any) -> None:
    """Refuse a goal that is neither "max" nor "min", and several of them with a sentence of their own."""
    if isinstance(goal, list | tuple | dict):
        raise TypeError(f"goal is {checks.shown(goal)}; give 'max' or 'min', and {SEVERAL}")
    checks.one_of("goal", goal, ("max", "min"))
