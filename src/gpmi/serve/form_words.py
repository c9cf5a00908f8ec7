"""What the library refuses, in the words of the forms: "From" and "To" instead of lo and hi, and no Python.

The library's own messages are for people who write Python. A message that is not known here is shown as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable

Match = re.Match[str]
MAX_LENGTH = 3000  # characters of a message that is read; the patterns take quadratic time; our choice


def in_form_words(message: str) -> str:
    """Return what a message of the library says, in the words of the forms."""
    for pattern, words in _WORDS if len(message) <= MAX_LENGTH else ():
        if found := pattern.search(message):
            return message[: found.start()] + words(found) + message[found.end() :]
    return message


def _rules(texts: str) -> str:
    """Return constraints, given as quoted texts, as people write them."""
    return re.sub(r"'([^']*)'", lambda one: f"“{_rule(one[1])}”", texts)


def _rule(text: str) -> str:
    return text.replace("==", "=").replace("<=", "≤").replace(">=", "≥")


def _names(shown: str) -> str:
    """Return a list, as Python shows it, without brackets and quotes."""
    return ", ".join(part.strip().strip("'\"") for part in shown.strip("[]").split(","))


def _number(shown: str) -> str:
    """Return a number, as Python shows it, without zeros behind the point."""
    return shown.removesuffix(".0")


def _range(found: Match, at: int) -> str:
    """Return a range, as the library shows it: [20.0, 90.0] or 1..5."""
    return " to ".join(_number(end.strip()) for end in re.split(r",|\.\.", found[at].strip("[]")))


def _pairs(shown: str) -> str:
    """Return values by name, as Python shows them in a call: a=1, b='x'."""
    return ", ".join(
        f"{name.strip()} = {value.strip().strip(chr(39))}"
        for name, _, value in (part.partition("=") for part in shown.split(","))
    )


_POSITIVE = "give one positive, finite number"
_SPACE = r"which is not a parameter of the space; it has (\[.*\])"
_TABLE: tuple[tuple[str, Callable[[Match], str]], ...] = (
    # Parameters of a new study
    (
        r"(?:Real|Int) has lo = (\S+) and hi = (\S+); lo must be smaller than hi",
        lambda m: f"“From” is {_number(m[1])} and “To” is {_number(m[2])}; “From” must be smaller than “To”",
    ),
    (
        r"Fidelity has the steps (\S+) to (\S+); .*",
        lambda m: f"“From” is {m[1]} and “To” is {m[2]}; “From” must be at least 1, and smaller than “To”",
    ),
    (
        r"step of (?:Real|Int) is (\S+), but hi - lo is (\S+); .*",
        lambda m: f"the step is {m[1]}, larger than the range, which is {m[2]}; give a smaller step",
    ),
    (rf"step of (?:Real|Int) is (\S+); {_POSITIVE}", lambda m: f"the step is {_number(m[1])}; give a number above 0"),
    (
        r"(?:Real|Int) has log=True and lo = (\S+); .*",
        lambda m: f"“From” is {_number(m[1])}; a logarithmic scale needs a “From” above 0",
    ),
    (
        r"(?:Real|Int)\((\S+), (\S+?)[,)].* is too wide or too narrow to be squared; .*",
        lambda m: f"the range from {_number(m[1])} to {_number(m[2])} is too wide or too narrow; give other units",
    ),
    (
        r"features has no row for the option '(.*?)'; .*",
        lambda m: f"the table of descriptors has no line for {m[1]}; add one",
    ),
    # Results of a new study
    (
        r"bounds(?:\[.*?\])? is \[(\S+), (\S+)\], which has no room; .*",
        lambda m: (
            f"“Never below” is {_number(m[1])} and “Never above” is {_number(m[2])}; “Never below” must be smaller"
        ),
    ),
    (
        r"bounds\[.*?\] is (.*?), but its goal is .*",
        lambda m: f"its number is outside what is possible, {m[1]}; correct the number, “Never below” or “Never above”",
    ),
    (rf"error_bar is (\S+); {_POSITIVE}", lambda m: f"the error bar is {_number(m[1])}; give a number above 0"),
    (rf"within is (\S+); {_POSITIVE}", lambda m: f"the distance is {_number(m[1])}; give a number above 0"),
    # Rules, and what is fixed today
    (
        r"fixed is \{.*\}, which leaves no point: constraints has (.*), which .*",
        lambda m: f"These values leave no experiment that keeps {_rules(m[1])}; change one of them",
    ),
    (
        r"constraints has (.*), which holds nowhere in the space: .*",
        lambda m: f"{_rules(m[1])} cannot hold while the parameters are between “From” and “To”; change one of them",
    ),
    (
        r"constraints has (.*), which do not hold together in the space: .*",
        lambda m: f"{_rules(m[1])} cannot hold together; change one of them",
    ),
    (
        r"constraint '(.*)' has the name '(.*)'; the space has (\[.*\])",
        lambda m: f"“{_rule(m[1])}” has the name {m[2]}; the parameters are {_names(m[3])}",
    ),
    (
        r"constraint '(.*)' cannot be read; write it like '(.*)' or '(.*)'",
        lambda m: f"The rule “{m[1]}” cannot be read; write it like “{_rule(m[2])}” or “{_rule(m[3])}”",
    ),
    (
        r"(?:Forbidden\(.*\)|when of parameter '.*') names '(.*)', " + _SPACE,
        lambda m: f"There is no parameter {m[1]}; the parameters are {_names(m[2])}",
    ),
    (
        r"(?:Forbidden\(.*\)|when of parameter '.*'): (.*) is '(.*)'; it must be one of (\[.*\])",
        lambda m: f"The parameter {m[1]} has no option {m[2]}; its options are {_names(m[3])}",
    ),
    (
        r"Forbidden\(.*\) is about '(.*)', a Real; .*",
        lambda m: f"The parameter {m[1]} is any number of a range, so no value can be forbidden; write a rule instead",
    ),
    (
        r"fixed breaks the constraint '(.*)'; .*",
        lambda m: f"“{_rule(m[1])}” must hold; give values that keep it",
    ),
    (
        r"fixed has the values of Forbidden\((.*)\); .*",
        lambda m: f"{_pairs(m[1])} is forbidden; give other values",
    ),
    # The values of an experiment
    (
        r"(?:fixed: )?([^:]*) is (\S+), outside (\[.*?\]|\S+\.\.\S+); give a value inside",
        lambda m: f"{m[1]} is {_number(m[2])}, outside {_range(m, 3)}; give a value inside",
    ),
    (r"fixed: (.*); it must be a whole number", lambda m: f"{m[1]}; give a whole number"),
    (
        r"x is .*, which breaks the constraint '(.*)' by (\S+); .*",
        lambda m: f"“{_rule(m[1])}” must hold; with these values it is off by {m[2]}",
    ),
    (
        r"x is .*, which is Forbidden\((.*)\); tell allowed points",
        lambda m: f"{_pairs(m[1])} is forbidden; give other values",
    ),
    (r"x has wrong keys \(missing (\[.+?\]), unknown \[\]\); .*", lambda m: f"{_names(m[1])} is empty; give a value"),
)
_WORDS = tuple((re.compile(pattern, re.DOTALL), words) for pattern, words in _TABLE)
