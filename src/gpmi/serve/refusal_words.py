"""What the library refuses, in the words of the forms: “From” and “To” instead of lo and hi, and no Python.

An error has a code (`gpmi._support.refusals`), which is worded here. The sentence of an error without one is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, get_args

from gpmi._support import refusals
from gpmi._support.text import VALUE, shortened, some_of
from gpmi.space import Parameter
from gpmi.trials import given_bounds

Words: TypeAlias = str | Callable[[refusals.Values], str]  # a template of the values as people read them, or a function

LIST = 300  # characters of a list of names, at most; our choice
TITLES = {
    **{f"step of {kind.__name__}": "the step" for kind in get_args(Parameter)},
    **{"error_bar": "the error bar", "within": "the distance"},
}


def in_form_words(error: Exception) -> str:
    """Return what an error says, in the words of the forms."""
    if not isinstance(error, refusals.Refused) or error.code not in WORDS:
        return str(error)
    words = WORDS[error.code]
    if callable(words):
        return words(error.values)
    return words.format_map({name: readable(name, value) for name, value in error.values.items()})


def readable(name: str, value: Any) -> str:
    """Return the value of a refusal as people read it."""
    match name, value:
        case "constraint", str():
            return rule(value)
        case "name", str():
            return shortened(TITLES.get(value, value), VALUE)
        case _, float():
            return f"{value:.12g}"
        case _, list():
            return some_of([shortened(str(item), VALUE) for item in value], LIST)
        case _, dict():
            return pairs(value)
    return shortened(str(value), VALUE)


def rule(text: str) -> str:
    """Return a constraint as people write it."""
    return text.replace("==", "=").replace("<=", "≤").replace(">=", "≥")


def pairs(values: Mapping[str, Any]) -> str:
    """Return values by name: a = 1, b = x."""
    return ", ".join(f"{name} = {readable('value', value)}" for name, value in values.items())


def rules(constraints: Sequence[Any]) -> str:
    """Return several constraints. A table has values that may not occur together."""
    texts = (f"never {pairs(item)}" if isinstance(item, dict) else rule(item) for item in constraints)
    return " and ".join(f"“{text}”" for text in texts)


def _impossible_goal(values: refusals.Values) -> str:
    sides = given_bounds("bounds", (values["low"], values["high"]))
    return f"its number is outside what is possible, {sides}; correct the number, “Never below” or “Never above”"


def _keys(values: refusals.Values) -> str:
    missing, unknown = (readable("names", values[kind]) for kind in ("missing", "unknown"))
    if not values["missing"]:
        return f"There is no parameter {unknown}; leave it out"
    return f"{missing} is empty; give a value"


UNKNOWN = "There is no parameter {name}; the parameters are {names}"
WORDS: dict[str, Words] = {
    # Arguments
    "not-a-number": "{name} is {value}; give a number",
    "not-positive": "{name} is {value}; give a number above 0",
    "negative-variance": "{name} is {value}; give a number that is not below 0",
    "not-whole": "{name} is {value}; give a whole number",
    "too-small": "{name} is {value}; give a whole number of at least {low}",
    "too-large": "{name} is {value}; give a whole number of at most {high}",
    "not-a-choice": "{name} is {value}; give one of {options}",
    # Parameters of a space
    "ends-in-wrong-order": "“From” is {low} and “To” is {high}; “From” must be smaller than “To”",
    "steps-in-wrong-order": "“From” is {low} and “To” is {high}; “From” must be at least 1, and smaller than “To”",
    "step-too-large": "the step is {step}, larger than the range, which is {range}; give a smaller step",
    "log-of-nonpositive": "“From” is {low}; a logarithmic scale needs a “From” above 0",
    "extreme-range": "the range from {low} to {high} is too wide or too narrow; give other units",
    "no-descriptors": "the table of descriptors has no line for {option}; add one",
    # Results
    "empty-bounds": "“Never below” is {low} and “Never above” is {high}; “Never below” must be smaller",
    "goal-outside-bounds": _impossible_goal,
    # Constraints
    "unreadable-constraint": lambda values: (  # as it was typed
        f"The rule “{values['constraint']}” cannot be read; write it like “a + 2*b ≤ 1” or “a + b = 1”"
    ),
    "joined-constraint": "“{constraint}” joins rules by {word}; write each in a line of its own, and all of them hold",
    "strict-constraint": "“{constraint}” has < or >; write ≤ or ≥",
    "nonlinear-constraint": "“{constraint}” is not linear; give sums of parameters, each times a number",
    "unknown-in-constraint": "“{constraint}” has the name {name}; the parameters are {names}",
    "not-discrete": "The parameter {name} is any number of a range, so no single value of it can be forbidden or be a "
    "condition; make it one of a list, or write a rule instead",
    "holds-nowhere": lambda values: (
        f"{rules(values['constraints'])} cannot hold while the parameters are between “From” and “To”; change one of "
        "them"
    ),
    "never-together": lambda values: f"{rules(values['constraints'])} cannot hold together; change one of them",
    # Points, and coordinates that are fixed
    "unknown-parameter": UNKNOWN,
    "wrong-keys": _keys,
    "outside": "{name} is {value}, outside {low} to {high}; give a value inside",
    "between-steps": "{name} is {value}; give {low}, or {low} plus a multiple of {step}",
    "unknown-option": "The parameter {name} has no option {value}; its options are {options}",
    "breaks-constraint": lambda values: (
        f"“{rule(values['constraint'])}” must hold; with these values it is off by {values['by']:.3g}"
    ),
    "breaks-count": "“{constraint}” must hold; with these values it counts {number}",
    "forbidden": "{combination} is forbidden; give other values",
    "inactive": "{name} exists only where {condition}; leave it empty",
    "fixed-inactive": "{name} exists only where {condition}; give that, too",
    "fixed-breaks-constraint": "“{constraint}” must hold; give values that keep it",
    "fixed-leaves-nothing": lambda values: (
        f"These values leave no experiment that keeps {rules(values['constraints'])}; change one of them"
    ),
}
