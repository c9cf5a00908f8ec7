"""What is refused: an exception has a sentence for programmers, a code, and the values that the sentence is about.

Whoever speaks to somebody else words the code (`gpmi.serve.refusal_words`), and a program compares it. So no code of
ours reads a sentence of ours. An error without a code has its sentence alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np

_SHOWN = 500  # characters of a value in a message, at most; our choice, not tuned
_LARGEST = 2**63  # whole numbers up to this one are values; longer ones are shown as texts. Our choice

Values: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Code:
    """What a code means, and the names of its values."""

    meaning: str
    values: tuple[str, ...]


# Codes are for programs, too: they stay the same from version to version. docs/serve.md has them as a table. `name` is
# that of an argument or of a parameter.
CODES: dict[str, Code] = {
    # Arguments
    "not-a-number": Code("it must be one finite number", ("name", "value")),
    "not-positive": Code("it must be above 0", ("name", "value")),
    "negative-variance": Code("a variance must be 0 or larger", ("name", "value")),
    "not-whole": Code("it must be a whole number", ("name", "value")),
    "too-small": Code("it must be at least `low`", ("name", "value", "low")),
    "too-large": Code("it must be at most `high`", ("name", "value", "high")),
    "not-a-choice": Code("it must be one of `options`", ("name", "value", "options")),
    # Parameters of a space
    "ends-in-wrong-order": Code("the smallest value must be below the largest one", ("low", "high")),
    "steps-in-wrong-order": Code("steps begin at 1 or later, and the last one is larger", ("low", "high")),
    "step-too-large": Code("the step is larger than the range", ("step", "range")),
    "log-of-nonpositive": Code("a logarithmic scale needs a smallest value above 0", ("low",)),
    "extreme-range": Code("the range is too wide or too narrow to be squared", ("low", "high")),
    "no-descriptors": Code("an option has no descriptors", ("option",)),
    # Results
    "empty-bounds": Code("the smallest possible value must be below the largest one", ("name", "low", "high")),
    "goal-outside-bounds": Code("no possible value can meet or miss the goal", ("name", "low", "high")),
    # Constraints
    "unreadable-constraint": Code("a constraint cannot be read", ("constraint",)),
    "joined-constraint": Code("constraints are joined by a word, `and` or `or`", ("constraint", "word")),
    "strict-constraint": Code("a constraint has < or >", ("constraint",)),
    "nonlinear-constraint": Code("a constraint multiplies or divides parameters", ("constraint",)),
    "unknown-in-constraint": Code("a constraint names no parameter", ("constraint", "name", "names")),
    "not-discrete": Code("a number of a range can be neither forbidden nor a condition", ("name",)),
    "holds-nowhere": Code("a constraint holds at no point", ("constraints",)),
    "never-together": Code("constraints do not hold together at any point", ("constraints",)),
    # Points, and coordinates that are fixed
    "unknown-parameter": Code("there is no parameter of this name", ("name", "names")),
    "wrong-keys": Code("a point lacks parameters, or has others", ("missing", "unknown")),
    "outside": Code("it is outside the range of its parameter", ("name", "value", "low", "high")),
    "between-steps": Code("it is not `low` plus a multiple of `step`", ("name", "value", "low", "step")),
    "unknown-option": Code("it is no option of its parameter", ("name", "value", "options")),
    "breaks-constraint": Code("a point breaks a constraint, by an amount", ("constraint", "by")),
    "breaks-count": Code("too many parameters of a point are on, or too few", ("constraint", "number")),
    "forbidden": Code("these values may not occur together", ("combination",)),
    "inactive": Code("a point has a parameter that is not there under its condition", ("name", "condition")),
    "fixed-inactive": Code("a parameter is fixed without what it depends on", ("name", "condition")),
    "fixed-breaks-constraint": Code("the fixed values alone break a constraint", ("constraint",)),
    "fixed-leaves-nothing": Code("no point has the fixed values and keeps the constraints", ("constraints",)),
}  # fmt: skip


class Refused(Exception):
    """An argument was refused. Its code is one of CODES, or empty; its values are plain: they can be written as JSON.

    A wrapper may add values, such as the `parameter` whose definition is refused.
    """

    def __init__(self, sentence: str, code: str = "", /, **values: Any) -> None:
        super().__init__(sentence)  # alone, so that copies and other processes can make it again
        self.code = code
        self.values = {name: plain(value) for name, value in values.items()}

    def like(self, error: Exception, **values: Any) -> Self:
        """Take over the code and the values of another error, and add values. Return self."""
        if isinstance(error, Refused):
            added = {name: plain(value) for name, value in values.items()}
            self.code, self.values = error.code, {**added, **error.values}
        return self


class RefusedValue(Refused, ValueError):
    """A value was refused."""


class RefusedType(Refused, TypeError):
    """A value was refused because of its type."""


def reworded(error: Exception, sentence: str, **values: Any) -> ValueError | TypeError:
    """Return a ValueError or TypeError with another sentence, and the code and values of the error that it wraps."""
    if isinstance(error, Refused):
        return (RefusedType if isinstance(error, TypeError) else RefusedValue)(sentence).like(error, **values)
    return TypeError(sentence) if isinstance(error, TypeError) else ValueError(sentence)


def plain(value: Any) -> Any:
    """Return a value as JSON has it: anything else than numbers, texts, lists and tables is shown as a text."""
    match value:
        case np.generic() | np.ndarray():
            inner = value.tolist()
            return shown(value) if isinstance(inner, np.generic) else plain(inner)
        case None | bool():
            return value
        case int() if abs(value) <= _LARGEST:
            return int(value)
        case float() if math.isfinite(value):
            return float(value)
        case str():
            text = value.encode(errors="backslashreplace").decode()  # half a character cannot be sent
            return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
        case list() | tuple() | set() | frozenset() | range():
            return [plain(item) for item in value]
        case Mapping():
            return {str(plain(name)): plain(item) for name, item in value.items()}
    return shown(value)


def shown(value: Any) -> str:
    """Return the repr of a value for a message, cut if it is long. It never raises."""
    try:
        text = repr(value)
    except Exception:  # a whole number of more than 4,300 digits, or an object of the user
        return f"a value of type {type(value).__name__} that cannot be printed"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
