"""Goals: what each output of an evaluation is for.

An evaluation measures outputs. An output is optimised (`Max`, `Min`, `Match`), limited (`AtLeast`, `AtMost`), or only
watched (None). `Goals` is the collection that a run has. `ValueGoal` is that of a run whose evaluations return one
number: a single output, y, that its user does not name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from gpmi._support import checks
from gpmi._support.checks import SEVERAL
from gpmi._support.text import rounded
from gpmi._support.types import Array
from gpmi.trials.outcomes import Outcome, by_output, check_count, checked_details
from gpmi.trials.outputs import Outputs, Y, checked_output, small_number


@dataclass(frozen=True)
class Max:
    """Make the output as large as possible; `at_least` is the worst value you would still accept."""

    at_least: float | None = None
    larger_is_better: ClassVar[bool] = True  # of the values as they are shown

    def __post_init__(self) -> None:
        _check_optional(self, "at_least")

    def oriented(self, y: Array) -> Array:
        """Return the values so that larger is better."""
        return y

    @property
    def reference(self) -> float | None:
        """The worst acceptable value, oriented so that larger is better; None if none was stated."""
        return self.at_least

    def __str__(self) -> str:
        return "max" if self.at_least is None else f"max, at least {rounded(self.at_least)}"


@dataclass(frozen=True)
class Min:
    """Make the output as small as possible; `at_most` is the worst value you would still accept."""

    at_most: float | None = None
    larger_is_better: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check_optional(self, "at_most")

    def oriented(self, y: Array) -> Array:
        """Return the values so that larger is better."""
        result: Array = 0.0 - y
        return result

    @property
    def reference(self) -> float | None:
        """The worst acceptable value, oriented so that larger is better; None if none was stated."""
        return None if self.at_most is None else 0.0 - self.at_most

    def __str__(self) -> str:
        return "min" if self.at_most is None else f"min, at most {rounded(self.at_most)}"


@dataclass(frozen=True)
class Match:
    """Bring the output close to `target`: minimise |y - target|. More than `within` away is not acceptable.

    The model is the one of y, and the policy uses the distribution of |y - target| that follows from it.
    """

    target: float
    within: float | None = None  # required; None only to explain that
    larger_is_better: ClassVar[bool] = False  # of the distances that are shown

    def __post_init__(self) -> None:
        _check(self, "target")
        if self.within is None:
            raise TypeError(
                f"within is None; give the distance from the target that you accept, as in "
                f"gpmi.Match({rounded(self.target)}, within=1)"
            )
        object.__setattr__(self, "within", checks.positive("within", self.within))

    def oriented(self, y: Array) -> Array:
        """Return minus the distance from the target: larger is better."""
        result: Array = -np.abs(y - self.target)
        return result

    @property
    def reference(self) -> float:
        """The worst acceptable value, oriented so that larger is better."""
        assert self.within is not None
        return -self.within

    def __str__(self) -> str:
        return f"match {rounded(self.target)} within {rounded(self.reference * -1.0)}"


@dataclass(frozen=True)
class AtLeast:
    """The output must be at least `value`: a limit, not an objective."""

    value: float
    sign: ClassVar[float] = -1.0

    def __post_init__(self) -> None:
        _check(self, "value")

    def excess(self, y: Array) -> Array:
        """Return by how much the limit is broken; it holds where this is <= 0."""
        result: Array = self.value - y
        return result

    @property
    def reference(self) -> float:
        """The worst acceptable value, oriented so that larger is better."""
        return self.value

    def __str__(self) -> str:
        return f"at least {rounded(self.value)}"


@dataclass(frozen=True)
class AtMost:
    """The output must be at most `value`: a limit, not an objective."""

    value: float
    sign: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        _check(self, "value")

    def excess(self, y: Array) -> Array:
        """Return by how much the limit is broken; it holds where this is <= 0."""
        result: Array = y - self.value
        return result

    @property
    def reference(self) -> float:
        """The worst acceptable value, oriented so that larger is better."""
        return -self.value

    def __str__(self) -> str:
        return f"at most {rounded(self.value)}"


Objective: TypeAlias = Max | Min | Match
Limit: TypeAlias = AtLeast | AtMost
Goal: TypeAlias = Objective | Limit | None
KINDS = {kind.__name__: kind for kind in (Max, Min, Match, AtLeast, AtMost)}
_FORMS = '"max", "min", gpmi.Max, gpmi.Min, gpmi.Match, gpmi.AtLeast, gpmi.AtMost, or None to watch it'
_EXAMPLE = '{"yield": "max", "cost": "min"}'
_INSTANCES: Mapping[type, str] = {
    Max: 'gpmi.Max() or "max"',
    Min: 'gpmi.Min() or "min"',
    Match: "gpmi.Match(42, within=3)",
    AtLeast: "gpmi.AtLeast(0.95)",
    AtMost: "gpmi.AtMost(0.95)",
}


@dataclass(frozen=True)
class Goals(Mapping[str, Goal]):
    """The outputs of an evaluation in their order, each with its goal."""

    pairs: tuple[tuple[str, Goal], ...]

    @staticmethod
    def of(given: Any) -> Goals:
        """Return the goals that a user gives as a dict, validated."""
        if isinstance(given, Goals):
            return given
        if not isinstance(given, Mapping):
            raise TypeError(f"goals is {checks.shown(given)}; give a dict of outputs, such as {_EXAMPLE}")
        if not given:
            raise ValueError(f"goals is {checks.shown(given)}, without an output; give a dict such as {_EXAMPLE}")
        goals = Goals(tuple((_checked_name(name), _checked_goal(name, goal)) for name, goal in given.items()))
        if not goals.objectives:
            raise ValueError(
                f"goals is {checks.shown(dict(given))}, without an objective; give at least one output the goal "
                '"max", "min" or gpmi.Match'
            )
        return goals

    @staticmethod
    def given(goals: Any) -> Goals:
        """Return the goals that a caller gives; None stands for one number whose direction does not matter."""
        return MAXIMISE if goals is None else Goals.of(goals)

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
    def single(self) -> str | None:
        """The one output that is maximised or minimised, whose value is y; None if there are several objectives."""
        name, *others = self.objectives
        return None if others or isinstance(self[name], Match) else name

    @property
    def direction(self) -> Literal["max", "min"]:
        """The goal of the single objective; "max" if there are several."""
        return "min" if self.single is not None and isinstance(self[self.single], Min) else "max"

    @property
    def example(self) -> str:
        """How the outputs of an evaluation are given, for messages."""
        return f"{{{', '.join(f'{name!r}: ...' for name in self)}}}"

    @property
    def purpose(self) -> dict[str, Any]:
        """The goals as arguments of `Optimizer`."""
        return {"goals": self}

    @property
    def named(self) -> tuple[str, ...]:
        """The outputs that the user named."""
        return tuple(self)

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

    def titles(self, unnamed: str) -> dict[str, str]:
        """Return what to call each output. `unnamed` is the name for the output that the user did not name."""
        return {name: name for name in self}

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

    def checked(self, outputs: Any) -> dict[str, float]:
        """Return measured outputs as numbers; refuse an unknown name and anything that is not a finite number."""
        if not isinstance(outputs, Mapping):
            raise TypeError(
                f"y is {checks.shown(outputs)}, but the run has goals; give a dict of outputs, {self.example}"
            )
        if not outputs:
            raise ValueError(
                f"y is {checks.shown(outputs)}, without an output; give at least one of {', '.join(map(repr, self))}, "
                "or call fail(x) for an evaluation that has none"
            )
        return {self.checked_name(name): checked_output(name, value) for name, value in outputs.items()}

    def checked_name(self, name: Any) -> str:
        """Return the name of an output; refuse an unknown one."""
        if not isinstance(name, str) or name not in self._by_name:
            near = checks.similar_name(name, list(self)) if isinstance(name, str) else None
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

    def entered(self, plain: Sequence[float], outputs: Mapping[str, float]) -> float | dict[str, float]:
        """Return a value as it is told, from numbers without a name and numbers by output, as a person enters them."""
        if plain:
            words = " ".join(f"{name}=..." for name in self)
            raise ValueError(f"{plain[0]:g} was given without a name, but the study has goals; give {words}")
        return self.checked(outputs)

    def entered_noise(self, plain: Sequence[float], outputs: Mapping[str, float]) -> float | dict[str, float]:
        """Return the variances of errors, entered as `entered` has it: the last one for all outputs, or by output."""
        if plain and outputs:
            raise ValueError("noise_var has a number for all outputs and one for an output; give only one kind")
        return dict(outputs) if outputs else plain[-1] if plain else 0.0

    @property
    def required(self) -> tuple[str, ...]:
        """The outputs without which a trial has no value: the single objective; none if there are several."""
        return () if self.single is None else (self.single,)

    def outcome(self, y: Any, **details: Any) -> Outcome:
        """Return measured outputs, validated. `noise_var` and `repeats` are one number for all, or a dict by output."""
        details, values = dict(checked_details(details)), self.checked(y)
        constraints = details.get("constraints")
        if constraints is not None and checks.shape(constraints) != (0,):
            raise ValueError(
                f"constraints is {checks.shown(constraints)}, but the run has goals; give the output a limit, "
                "gpmi.AtMost or gpmi.AtLeast, and tell its value with the others"
            )
        return Outcome(
            "told",
            outputs=Outputs(values),
            output_noise_var=by_output("noise_var", details.get("noise_var", 0.0), values),
            output_repeats=by_output("repeats", details.get("repeats", 1), values),
        ).checked()

    def corrected(
        self, before: Outcome, y: Any, *, noise_var: Any = None, repeats: Any = None, constraints: Any = None
    ) -> Outcome:
        """Return an outcome with other values of some outputs. Their noise_var and repeats stay unless given."""
        details: dict[str, Any] = {}
        for name, given, stored, usual in (
            ("noise_var", noise_var, before.output_noise_var, 0.0),
            ("repeats", repeats, before.output_repeats, 1),
        ):
            if given is None or isinstance(given, Mapping):
                kept = {key: stored.get(key, usual) for key in y} if isinstance(y, Mapping) else {}
                given = {**kept, **(given or {})}
            details[name] = given
        return before.with_outputs(self.outcome(y, **details, constraints=constraints))

    def check(self, outcome: Outcome, count: int | None) -> None:
        """Raise unless a value fits the goals. `count` is how many constraints came with the values before."""
        self.checked(outcome.outputs or outcome.y)

    def mismatch(self, y: float | None, outputs: Mapping[str, float]) -> str | None:
        """Return why a value of another study says nothing about these outputs; None if it does."""
        if self.single is None and not outputs:
            return f"has one value y, but this study has several objectives; give a list of (x, {self.example})"
        if outputs and not any(name in self for name in outputs):
            return f"measured {', '.join(map(repr, outputs))}, but this study measures {', '.join(map(repr, self))}"
        return None

    def derived(self, outcome: Outcome) -> dict[str, Any]:
        """Return the fields of a trial that follow from its outputs: y of a single objective, and the limits unmet."""
        if not outcome.outputs:
            return {}
        name, outputs = self.single, outcome.outputs
        fields: dict[str, Any] = {"outputs": self.ordered(outputs), "unmet": self.unmet(outputs)}
        if name is None or name not in outputs:
            return fields | {"y": None, "noise_var": 0.0, "repeats": 1}
        noise_var, repeats = outcome.output_noise_var.get(name, 0.0), outcome.output_repeats.get(name, 1)
        return fields | {"y": outputs[name], "noise_var": noise_var, "repeats": repeats}

    def to_json(self) -> list[dict[str, Any]]:
        """Return the goals as a study stores them."""
        return [
            {"output": name}
            if goal is None
            else {"output": name, "kind": type(goal).__name__, **{f.name: getattr(goal, f.name) for f in fields(goal)}}
            for name, goal in self.pairs
        ]

    @staticmethod
    def from_json(stored: Any) -> Goals:
        """Return the goals of a stored description, validated."""
        given: dict[str, Goal] = {}
        for one in stored:
            about = {key: value for key, value in one.items() if key not in ("output", "kind")}
            if one["output"] in given:
                raise ValueError(f"goals has the output {one['output']!r} twice; an output has one goal")
            given[one["output"]] = KINDS[one["kind"]](**about) if "kind" in one else None
        return Goals.of(given)

    def __str__(self) -> str:
        return ", ".join(f"{name} ({'watched' if goal is None else goal})" for name, goal in self.pairs)


@dataclass(frozen=True)
class ValueGoal(Goals):
    """The goal of a run whose evaluations return one number, y: to maximise it, or to minimise it."""

    @staticmethod
    def to(direction: str) -> ValueGoal:
        """Return the goal to maximise ("max") or to minimise y ("min")."""
        checks.checked_goal(direction)
        return ValueGoal(((Y, Min() if direction == "min" else Max()),))

    @property
    def purpose(self) -> dict[str, Any]:
        """The goal as an argument of `Optimizer`."""
        return {"goal": self.direction}

    @property
    def named(self) -> tuple[str, ...]:
        """The outputs that the user named: none."""
        return ()

    def titles(self, unnamed: str) -> dict[str, str]:
        """Return what to call y: the name that is given."""
        return {Y: unnamed}

    def entered(self, plain: Sequence[float], outputs: Mapping[str, float]) -> float:
        """Return the number that a person enters; refuse numbers by output."""
        if outputs:
            raise ValueError(f"{next(iter(outputs))} is an output, but the study has no goals; give one number")
        return plain[0]

    def entered_noise(self, plain: Sequence[float], outputs: Mapping[str, float]) -> float:
        """Return the variance of the error, 0 if none was entered."""
        return self.entered([*plain[-1:], 0.0], outputs)

    def outcome(self, y: Any, **details: Any) -> Outcome:
        """Return a value with its details, validated."""
        return Outcome.value(y, **details)

    def corrected(self, before: Outcome, y: Any, **details: Any) -> Outcome:
        """Return an outcome with another value; details that are None stay as they are."""
        return before.corrected(y, **details)

    def check(self, outcome: Outcome, count: int | None) -> None:
        """Raise unless a value is one number, with as many constraints as the values before."""
        if outcome.outputs:
            raise TypeError(f"y is {checks.shown(dict(outcome.outputs))}, but the run has no goals; {SEVERAL}")
        check_count(outcome.constraints, count)

    def mismatch(self, y: float | None, outputs: Mapping[str, float]) -> str | None:
        """Return why a value of another study says nothing about y; None if it does."""
        if y is not None:
            return None
        names = ", ".join(map(repr, outputs))
        return f"measured {names}, but this study has one value; give goals=, or a list of (x, y)"

    def derived(self, outcome: Outcome) -> dict[str, Any]:
        """Return the fields of a trial that follow from its outputs: none, y is the value itself."""
        return {}

    def __str__(self) -> str:
        return self.direction


def _checked_name(name: Any) -> str:
    if not isinstance(name, str) or not name.strip():
        raise TypeError(f"goals has the output {checks.shown(name)}; give its name, a string that is not blank")
    return name


def _checked_goal(name: str, goal: Any) -> Goal:
    if goal is None or isinstance(goal, Max | Min | Match | AtLeast | AtMost):
        return goal
    if isinstance(goal, str) and goal in ("max", "min"):
        return Max() if goal == "max" else Min()
    about = f"goals has {name!r}: {checks.shown(goal)}"
    if isinstance(goal, str) and goal.lower().startswith(("max", "min")):
        raise ValueError(f"{about}; did you mean {goal.lower()[:3]!r}?")
    if isinstance(goal, type) and goal in KINDS.values():
        raise TypeError(f"{about}, a class; give an instance, {_INSTANCES[goal]}")
    if isinstance(goal, list | tuple | set | frozenset):
        raise TypeError(
            f"{about}, but an output has one goal: give gpmi.Max(at_least=...) or gpmi.Min(at_most=...) for a "
            "direction and the worst value that is acceptable"
        )
    raise TypeError(f"{about}; give {_FORMS}")


def _check(goal: Any, field: str) -> None:
    object.__setattr__(goal, field, small_number(field, getattr(goal, field)))


def _check_optional(goal: Any, field: str) -> None:
    if getattr(goal, field) is not None:
        _check(goal, field)


MAXIMISE = ValueGoal.to("max")  # of a run about which nothing else is said
