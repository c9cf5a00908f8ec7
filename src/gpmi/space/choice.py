"""One of several options: a coordinate for each of them, or with ordered=True one for the option's position."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np

from gpmi._support import checks
from gpmi._support.refusals import RefusedValue
from gpmi._support.types import Array, Numbers
from gpmi.space.domain import Options
from gpmi.space.features import Features
from gpmi.space.fields import FieldsOnly, check_when, checked_list
from gpmi.space.options import equal_options, option_key, same_option

MOST_OPTIONS = 1000  # each option is a coordinate of the kernel: 8,000 candidates then take 64 MB; our choice


@dataclass(frozen=True, repr=False)
class Choice(FieldsOnly):
    """One of several options: words, numbers or any objects, such as functions or estimators.

    With ordered=True neighbours in the list are alike and all steps are equal, as in Choice([16, 32, 64, 128],
    ordered=True). Otherwise any two options differ equally. `when` is as for `Real`.

    `features` are numbers that describe the options, such as boiling points: a dict by option, {"THF": {"bp": 66,
    "logP": 0.5}, ...} or {"THF": [66, 0.5], ...}, a DataFrame whose index has the options, or a list of rows in the
    order of the options. Options with similar numbers are then expected to give similar values, as far as the results
    agree. `features.kept` names the descriptors that a model uses: constant ones, and those that others explain, are
    left out.

    Options are identified by their position, and points hold the objects themselves. A value is matched to an
    option by identity, then by equality. Duplicates are refused. Hashable values, lists, dicts, sets and arrays are
    duplicates if equal, other objects only if identical.
    """

    options: tuple[Any, ...]
    ordered: bool = field(default=False, kw_only=True)
    when: Mapping[str, Any] | None = field(default=None, kw_only=True)
    features: Any = field(default=None, kw_only=True)  # `Features` after construction, or None

    def __post_init__(self) -> None:
        check_when(self)
        object.__setattr__(self, "ordered", checks.flag("ordered of Choice", self.ordered))
        if not isinstance(self.options, list | tuple):
            raise TypeError(f"options is {checks.shown(self.options)}; give a list of options")
        options = tuple(self.options)
        if len(options) == 0:
            raise ValueError("options is empty; give at least one option")
        if len(options) > MOST_OPTIONS:
            raise ValueError(
                f"options has {len(options)} options, too many for a model to learn anything; give at most "
                f"{MOST_OPTIONS}, or numbers that describe them"
            )
        object.__setattr__(self, "options", options)
        for i, option in enumerate(options):
            if self._repeats(i):
                raise ValueError(f"options has {checks.shown(option)} twice; give each option once")
        if self.features is not None:
            if self.ordered:
                raise ValueError("Choice has ordered=True and features; leave out one of them")
            object.__setattr__(self, "features", Features.of(self.features, options))

    @cached_property
    def _numbers(self) -> dict[tuple[bool, Any], int]:
        """The position of each hashable option, for a fast `find`."""
        numbers: dict[tuple[bool, Any], int] = {}
        for i, option in enumerate(self.options):
            with suppress(Exception):  # a list, a tuple that holds one, an object of the user's
                numbers.setdefault(option_key(option), i)
        return numbers

    def _by_hash(self, value: Any) -> int | None:
        """Return the position of the option that equals a value; None if no option does or it cannot be hashed."""
        with suppress(Exception):
            number = self._numbers.get(option_key(value))
            if number is not None and same_option(self.options[number], value):
                return number
        return None

    def _repeats(self, i: int) -> bool:
        """Whether option i repeats an earlier one."""
        option = self.options[i]
        number = self._by_hash(option)
        if number is not None and equal_options(option, option):
            return number < i
        by_value = number is not None or isinstance(option, list | dict | set | np.ndarray)
        return any(other is option or (by_value and same_option(other, option)) for other in self.options[:i])

    def find(self, value: Any) -> int | None:
        """Return the position of the option that is this very object, or else of the only one that equals it."""
        for i, option in enumerate(self.options):
            if option is value:
                return i
        number = self._by_hash(value)
        if number is not None:
            return number
        numbers = self._equal(value)
        return numbers[0] if len(numbers) == 1 else None

    def _equal(self, value: Any) -> list[int]:
        return [i for i, option in enumerate(self.options) if same_option(option, value)]

    unit, circular = "", False
    kind_in_words = "one of a list"

    @property
    def choice(self) -> Choice:
        return self

    @property
    def domain(self) -> Options:
        return Options(self.options)

    @property
    def width(self) -> int:
        return 1 if self.ordered else len(self.options)

    @property
    def count(self) -> int:
        return len(self.options)

    @cached_property
    def limits(self) -> tuple[float, float] | None:
        return (float(min(self.options)), float(max(self.options))) if all(map(is_number, self.options)) else None

    @cached_property
    def levels(self) -> Array:
        """All options as coordinates, (count, width)."""
        levels = np.arange(float(self.count))[:, None] if self.ordered else np.eye(self.count)
        levels.flags.writeable = False
        return levels

    @property
    def ends(self) -> Array:
        if self.ordered:
            return np.array([[0.0], [self.count - 1.0]])
        return np.repeat([[0.0], [1.0]], self.width, axis=1)

    def from_unit(self, u: Array) -> Array:
        return self.from_levels(np.minimum((u * self.count).astype(np.intp), self.count - 1))

    def from_levels(self, numbers: Array | Numbers) -> Array:
        return np.asarray(self.levels[np.asarray(numbers, dtype=np.intp)])

    def level_numbers(self, rows: Array) -> Array:
        place = np.clip(np.round(rows[:, 0]), 0, self.count - 1) if self.ordered else np.argmax(rows, axis=1)
        return np.asarray(place, dtype=float)

    def values(self, numbers: Array) -> Array:
        if self.limits is None:
            return np.zeros(len(numbers))
        return np.array(self.options, dtype=float)[numbers.astype(np.intp)]

    def levels_to_try(self, row: Array) -> Array:
        return self.levels

    def encode(self, name: str, value: Any) -> tuple[float, ...]:
        number = self.find(value)
        if number is not None:
            return tuple(self.levels[number].tolist())
        if several := self._equal(value):
            remedy = f"it equals the options at {several}: give the very object that you mean"
            raise ValueError(f"{name} is {checks.shown(value)}; {remedy}")
        sentence = f"{name} is {checks.shown(value)}; it must be one of {checks.shown(list(self.options))}"
        raise RefusedValue(sentence, "unknown-option", name=name, value=value, options=self.options)

    def decode(self, row: Array) -> Any:
        return self.options[int(self.level_numbers(row[None])[0])]

    def canonical(self, value: Any) -> Any:
        number = self.find(value)
        return None if number is None else self.options[number]

    def nearest(self, number: float) -> Any:
        return min(self.options, key=lambda option: abs(float(option) - number))

    def grid(self, points: int) -> Array:
        return self.levels

    def to_json(self) -> dict[str, Any]:
        values = super().to_json()
        del values["features"]  # a study without descriptors is written as before there were any
        return values if self.features is None else {**values, "features": self.features.to_json()}

    @classmethod
    def from_json(cls, written: Mapping[str, Any]) -> Self:
        features = written.get("features")
        return cls(**{**written, "features": None if features is None else Features.from_json(features)})

    @classmethod
    def from_plain(cls, label: str, value: Any, **others: Any) -> Self:
        return cls(tuple(checked_list(label, value)), **others)


def is_number(option: Any) -> bool:
    """Whether an option is a number that a linear constraint may use."""
    return isinstance(option, int | float | np.integer | np.floating) and not isinstance(option, bool)
