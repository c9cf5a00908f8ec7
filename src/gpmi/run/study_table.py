"""A study as a table of plain values: its parameters, constraints and goals.

Study files and the page for new studies have these in common: the same words, and the same checks. An error names the
place of the value.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeAlias, get_args

from gpmi._support import checks
from gpmi._support.plain_table import Table, nearest
from gpmi.policies import Aim
from gpmi.run.option_table import features_of_csv
from gpmi.space import Choice, Fidelity, Forbidden, Parameter, Space
from gpmi.trials.given_bounds import given_bounds
from gpmi.trials.goal_kinds import AtLeast, AtMost, Goal, Match, Max, Min, Objective
from gpmi.trials.goals import Goals
from gpmi.trials.named_goals import NamedGoals
from gpmi.trials.output_bounds import checked_bounds
from gpmi.trials.units import Units, checked_unit
from gpmi.trials.value_bounds import ValueBounds
from gpmi.trials.value_goal import ValueGoal

AnyParameter: TypeAlias = Parameter | Fidelity

# The keys at the top that every study may have.
KEYS = (
    *("goal", "bounds", "unit", "error_bar", "aim", "budget", "seed", "constraints", "forbidden", "parameters"),
    *("goals",),
)
OUTPUT = ("bounds", "unit", "error_bar")  # what may be said of a result: at the top, or in its table of [goals]
ORDERED = "ordered"  # the word for a choice whose options have an order
KINDS: dict[str, Any] = {**{kind.__name__.lower(): kind for kind in get_args(Parameter)}, ORDERED: Choice}
DETAILS = ("step", "features")  # of a parameter: what is wrong with one is said there
FIDELITY = "fidelity"  # a kind of parameter beside these: levels with their costs, or steps
FIDELITY_FORMS = (
    "{ fidelity = { coarse = 1, fine = 60 } } for levels with their costs, or { fidelity = [1, 52] } for steps"
)
GOALS = ("goal", "match", "within", "at_least", "at_most", *OUTPUT)
GOAL_FORMS = '"max", "min", "watch", or a table such as { at_least = 0.95 } or { match = 42, within = 3 }'


@dataclass(frozen=True)
class ResultsTable:
    """What a table says about the results of a study and about its run."""

    goals: Goals  # of the outputs
    bounds: ValueBounds | dict[str, ValueBounds] | None  # of the value, or by output
    units: str | Units | None  # likewise
    noise_var: float | dict[str, float] | None  # the squares of the error bars that all results have
    aim: Aim
    budget: int | None
    seed: int | None

    @property
    def goal(self) -> Literal["max", "min"]:
        """The direction of the single objective."""
        return self.goals.direction

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of `gpmi.study` beside the space."""
        return {
            **self.goals.purpose,
            **{"aim": self.aim, "budget": self.budget, "seed": self.seed},
            **{"bounds": self.bounds, "units": self.units, "noise_var": self.noise_var},
        }


@dataclass(frozen=True)
class StudyTable(ResultsTable):
    """What a table says about a study."""

    parameters: Mapping[str, AnyParameter]
    constraints: tuple[Any, ...]  # of the space: strings and `Forbidden`

    @property
    def options(self) -> dict[str, Any]:
        return {**super().options, "constraints": list(self.constraints)}


def read_table(top: Table, check_names: Callable[[Iterable[str]], None] | None = None) -> StudyTable:
    """Return what a table says about a study. `check_names` may refuse names of parameters."""
    if "parameters" not in top.content:
        top.refuse("there is no table [parameters]; `gpmi init` writes an example")
    parameters = _parameters(top.table("parameters"), check_names)
    results = read_results(top, parameters)
    return StudyTable(**vars(results), parameters=parameters, constraints=_constraints(top, parameters))


def read_results(top: Table, names: Iterable[str] = ()) -> ResultsTable:
    """Return what a table says about results. No output has one of these names, which are those of the parameters."""
    goals = _goals(top, set(names)) if "goals" in top.content else ValueGoal.to(top.get("goal", _goal, "max"))
    return ResultsTable(
        goals=goals,
        bounds=_bounds(top, goals),
        units=_of_results(top, "unit", checked_unit),
        noise_var=_of_results(top, "error_bar", _squared),
        aim=top.get("aim", partial(checks.one_of, words=("find", "earn")), "find"),
        budget=top.get("budget", partial(checks.whole, least=1)),
        seed=top.get("seed", partial(checks.whole, least=0, most=checks.LARGEST_SEED)),
    )


def _of_results(top: Table, key: str, check: Callable[[str, Any], Any]) -> Any:
    """Return what is said of the result, or of each output of the table [goals]; None if nothing is."""
    if "goals" not in top.content:
        return top.get(key, check)
    table = top.table("goals")
    if key in top.content:
        top.refuse(f"there is a table [goals]; say it there, {next(iter(table.content))} = {{ ..., {key} = ... }}", key)
    tables = [name for name, content in table.content.items() if isinstance(content, dict) and key in content]
    return {name: table.table(name).get(key, check) for name in tables} or None


def _squared(name: str, value: Any) -> float:
    return checks.positive(name, value) ** 2


def _parameters(table: Table, check_names: Callable[[Iterable[str]], None] | None) -> dict[str, AnyParameter]:
    if not table.content:
        table.refuse("[parameters] is empty; give at least one, as in x = { real = [0.0, 1.0] }")
    parameters: dict[str, AnyParameter] = {}
    for name in table.content:
        if check_names is not None:
            with table.at(name):
                check_names([*parameters, name])
        parameters[name] = _parameter(table.table(name))
    with table.at():
        Space.of(parameters)  # refuses conditions on parameters and values that do not exist
    return parameters


def _parameter(table: Table) -> AnyParameter:
    if FIDELITY in table.content:
        return _fidelity(table)
    words = [word for word in KINDS if word in table.content]
    if len(words) != 1:
        near = [] if words else [key for key in table.content if nearest(key, (*KINDS, FIDELITY))]
        if near:
            table.allow_only((*KINDS, FIDELITY))
        table.refuse(f"give it one of {', '.join((*KINDS, FIDELITY))}, as in {{ real = [0.0, 1.0] }}")
    (word,) = words
    optional = [
        name
        for name, argument in inspect.signature(KINDS[word]).parameters.items()
        if argument.default is not argument.empty and name != ORDERED
    ]
    table.allow_only((word, *optional))
    arguments: dict[str, Any] = {name: table.content[name] for name in optional if name in table.content}
    table.get("when", _condition)
    details = {name: arguments.pop(name) for name in DETAILS if name in arguments}
    with table.at(word):
        values = table.content[word]
        if KINDS[word] is Choice and isinstance(values, list):
            options = [_option(option) for option in values]
            if isinstance(features := details.get("features"), str):
                with table.at("features"):
                    details["features"] = features_of_csv(table.attached(features), options)
        if word == ORDERED:
            arguments[ORDERED] = True
        parameter: Parameter = KINDS[word].from_plain(word, values, **arguments)
    for name in details:
        with table.at(name):
            parameter = replace(parameter, **details)
    return parameter


def _fidelity(table: Table) -> Fidelity:
    """Return a fidelity: a table of levels with their costs, a list of levels, or two whole numbers for steps."""
    table.allow_only((FIDELITY, "cost", "unit"))
    given, unit = table.content[FIDELITY], table.get("unit", text_value, "")
    with table.at(FIDELITY):
        if not isinstance(given, dict | list):
            raise TypeError(f"fidelity is {checks.shown(given)}; give {FIDELITY_FORMS}")
        for label in given:
            _option(label)
        if isinstance(given, list) and len(given) == 2 and all(type(step) is int for step in given):
            first, last = given
            Fidelity(first, last)
            cost = table.get("cost", _costs)
            with table.at("cost" if cost is not None else FIDELITY):
                return Fidelity(first, last, cost=cost, unit=unit)
        if "cost" in table.content:
            table.refuse("it is for steps; give the costs of levels with them, { coarse = 1, fine = 60 }", "cost")
        return Fidelity(given, unit=unit)


def _costs(name: str, value: Any) -> dict[int, Any]:
    if not isinstance(value, dict) or not all(re.fullmatch(r"[0-9]{1,12}", step) for step in value):
        raise TypeError(f"{name} is {checks.shown(value)}; give what the steps up to some cost, {{ 10 = 15, 52 = 60 }}")
    return {int(step): cost for step, cost in value.items()}


def _option(option: Any) -> Any:
    """Return an option that can be passed to a program: a string, a number, true or false."""
    if not isinstance(option, str | int | float) or (isinstance(option, float) and not math.isfinite(option)):
        raise TypeError(f"it has the option {checks.shown(option)}; give strings, finite numbers, true or false")
    if isinstance(option, str) and "\0" in option:
        raise ValueError(f"it has the option {checks.shown(option)}; no program accepts a zero byte")
    return option


def _condition(name: str, value: Any) -> None:
    if not isinstance(value, dict):
        raise TypeError(f"{name} is {checks.shown(value)}; give a table such as {{ method = 'exact' }}")


def _constraints(top: Table, parameters: Mapping[str, AnyParameter]) -> tuple[Any, ...]:
    space, constraints = Space.of(dict(parameters)), list[Any]()
    for key in ("constraints", "forbidden"):
        for i, constraint in enumerate(top.get(key, list_value, [])):
            with top.at(key, i):
                if key == "forbidden":
                    if not isinstance(constraint, dict):
                        raise TypeError(
                            f"it is {checks.shown(constraint)}; give a table of values, {{ method = 'fast' }}"
                        )
                    constraint = Forbidden(**constraint)
                elif not isinstance(constraint, str):
                    raise TypeError(f"it is {checks.shown(constraint)}; give a string such as 'x + y <= 1'")
                space.constrained([constraint])
                constraints.append(constraint)
    with top.at("constraints" if "constraints" in top.content else "forbidden"):
        if constraints:
            space.constrained(constraints)
    return tuple(constraints)


def _goals(top: Table, parameters: set[str]) -> Goals:
    """Return the goals of the outputs, from the table [goals]."""
    table = top.table("goals")
    if not table.content:
        table.refuse('[goals] is empty; give a goal for each output, as in yield = "max"')
    if "goal" in top.content:
        with top.at("goal"):
            raise ValueError("there is also a table [goals]; leave out goal, and say it there")
    goal_of: dict[str, Goal] = {}
    for name, given in table.content.items():
        with table.at(name):
            if name in parameters:
                raise ValueError("a parameter has the same name; give the output another one")
            if not isinstance(given, dict):
                goal_of[name] = _goal_in_a_word(given)
                continue
        goal_of[name] = _goal_in_a_table(table.table(name))
    if not any(isinstance(goal, Objective) for goal in goal_of.values()):
        table.refuse(f'there are only {", ".join(goal_of)}, and no objective; give an output "max", "min" or match')
    with table.at():
        return NamedGoals.of(goal_of)


def _bounds(top: Table, goals: Goals) -> ValueBounds | dict[str, ValueBounds] | None:
    """Return what the value can be at all, or each output of the table [goals]."""
    bounds: ValueBounds | dict[str, ValueBounds] | None = _of_results(top, "bounds", given_bounds)
    for name, limits in bounds.items() if isinstance(bounds, dict) else ():
        with top.at("goals", name, "bounds"):
            checked_bounds({name: limits}, goals)
    return bounds


def _goal_in_a_word(given: Any) -> Goal:
    words: dict[Any, Goal] = {"max": Max(), "min": Min(), "watch": None}
    if isinstance(given, str) and given in words:
        return words[given]
    near = given.lower()[:3] if isinstance(given, str) else ""
    remedy = f'did you mean "{near}"?' if near in words else f"give {GOAL_FORMS}"
    raise ValueError(f"it is {checks.shown(given)}; {remedy}")


def _goal_in_a_table(table: Table) -> Goal:
    """Return the goal that a table describes: a limit, a target, or an objective with the worst acceptable value."""
    table.allow_only(GOALS)
    word = table.get("goal", partial(checks.one_of, words=("max", "min", "watch")))
    given = [key for key in GOALS if key in table.content and key not in ("goal", *OUTPUT)]
    numbers = {key: table.get(key, checks.number) for key in given}
    if word == "watch":
        if numbers:
            table.refuse(f'with goal = "watch" there is nothing to reach; leave out {" and ".join(numbers)}')
        return None
    if "match" in numbers or "within" in numbers:
        if word is not None or set(numbers) != {"match", "within"}:
            table.refuse(
                "a target is given as { match = 42, within = 3 }, where within is the distance that you accept"
            )
        with table.at():
            return Match(numbers["match"], within=numbers["within"])
    if word is not None:
        kind, limit = (Max, "at_least") if word == "max" else (Min, "at_most")
        if not set(numbers) <= {limit}:
            table.refuse(
                f'with goal = "{word}" the worst value that you would accept is {limit}; leave out the other limit'
            )
        with table.at():
            return kind(numbers.get(limit))
    if len(numbers) != 1:
        both = "it has two limits; give one of them, or a target, { match = 5, within = 1 }"
        table.refuse(both if numbers else f"it is empty; give {GOAL_FORMS}")
    ((key, value),) = numbers.items()
    with table.at(key):
        return AtLeast(value) if key == "at_least" else AtMost(value)


def _goal(name: str, value: Any) -> str:
    if isinstance(value, dict):
        raise TypeError("it is a table; the goals of outputs stand in a table [goals]")
    return checks.one_of(name, value, ("max", "min"))


def text_value(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise TypeError(f"{name} is {checks.shown(value)}; give a string")
    return value


def list_value(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{name} is {checks.shown(value)}; give a list, in brackets")
    return value
