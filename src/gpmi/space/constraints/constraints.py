"""What may not be queried although the parameters allow it, as a user writes it.

Four kinds, in any number: a text ("a + b <= 1"), (A, lb, ub) or scipy.optimize.LinearConstraint, `Forbidden` for
combinations of values, and a function feasible(point) -> bool. A linear constraint is about the values of parameters in
the user's units, also where log=True; it holds where all its parameters are active.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gpmi._support import checks
from gpmi._support.types import Array, Mask, Point
from gpmi.space.constraints.expressions import Row, parsed

# A point that is told may break a row by this part of the row's size: fractions that are read from a file may not sum
# to 1 to the last digit. Points that are asked keep to EXACT.
TOLD = 1e-9
EXACT = 1e-12

_MOST_ROWS = 10_000  # rows of A; our limit


class Forbidden:
    """Values that may not occur together: Forbidden(kernel="rbf", degree=3). A list stands for any of its values.

    A parameter that is inactive has no value, so it is in no combination.
    """

    def __init__(self, **values: Any) -> None:
        if not values:
            raise ValueError("Forbidden() forbids nothing; give values, as in Forbidden(kernel='rbf', degree=3)")
        self.values = values

    def __repr__(self) -> str:
        return f"Forbidden({', '.join(f'{name}={checks.shown(value)}' for name, value in self.values.items())})"


Feasible: TypeAlias = Callable[[Point], bool]
Codes: TypeAlias = frozenset[float]


class Combination(NamedTuple):
    """Values that may not occur together."""

    text: str
    parts: tuple[tuple[int, Codes], ...]  # the number of a parameter, and the level numbers that are meant


class Field(NamedTuple):
    """What a constraint may say of one parameter, or of one column of candidates."""

    name: str
    largest: float | None  # of its absolute values; None if its values are not numbers
    codes: Callable[[str, Any], Codes]  # (label, value or list of values) -> level numbers


@dataclass(frozen=True, eq=False)
class Rules:
    """The constraints of one space."""

    rows: tuple[Row, ...]
    sizes: Array  # (R,), how large the terms of each row may be
    forbidden: tuple[Combination, ...]
    feasible: tuple[Feasible, ...]

    @cached_property
    def matrix(self) -> Array:
        """The coefficients of the rows, (R, p)."""
        return np.array([row.coefficients for row in self.rows])

    @cached_property
    def used(self) -> Mask:
        """Which parameters each row is about, (R, p)."""
        used: Mask = self.matrix != 0.0
        return used

    @cached_property
    def lower(self) -> Array:
        """The lower bounds of the rows, (R,)."""
        return np.array([row.lower for row in self.rows])

    @cached_property
    def upper(self) -> Array:
        """The upper bounds of the rows, (R,)."""
        return np.array([row.upper for row in self.rows])

    def excess(self, values: Array, active: Mask | None = None) -> Array:
        """How far each row is exceeded, (m, R), at values (m, p) of the parameters; negative inside. O(m R p)."""
        if not self.rows:
            return np.empty((len(values), 0))
        total = values @ self.matrix.T
        excess: Array = np.maximum(self.lower - total, total - self.upper)
        if active is not None and not active.all():
            excess[~active @ self.used.T] = -math.inf
        return excess

    def combined(self, numbers: Array, active: Mask | None = None) -> Mask:
        """Which forbidden combinations occur, (m, F), at level numbers (m, p)."""
        found = np.ones((len(numbers), len(self.forbidden)), dtype=bool)
        for k, combination in enumerate(self.forbidden):
            for j, codes in combination.parts:
                found[:, k] &= np.isin(numbers[:, j], list(codes))
                if active is not None:
                    found[:, k] &= active[:, j]
        return found

    def allows(self, point: Point, copy: Callable[[Point], Point]) -> bool:
        """Whether the functions allow a point; each gets a copy."""
        return all(_answer(function, copy(point)) for function in self.feasible)

    def check(self, point: Point, values: Array, numbers: Array, active: Mask, copy: Callable[[Point], Point]) -> None:
        """Refuse a point that is told, whose values are (p,), where it breaks a constraint by more than rounding."""
        excess = self.excess(values[None], active[None])[0]
        for row, size, by in zip(self.rows, self.sizes, excess, strict=True):
            if by > TOLD * size:
                raise ValueError(
                    f"x is {checks.shown(point)}, which breaks the constraint {row.text!r} by {by:.3g}; "
                    "tell points that keep to it, or leave the constraint out"
                )
        for combination, occurs in zip(self.forbidden, self.combined(numbers[None], active[None])[0], strict=True):
            if occurs:
                raise ValueError(
                    f"x is {checks.shown(point)}, which is {combination.text}; tell points that are allowed"
                )
        for function in self.feasible:
            if not _answer(function, copy(point)):
                raise ValueError(
                    f"x is {checks.shown(point)}, for which the constraint {name_of(function)} is False; "
                    "tell points that are allowed"
                )

    @cached_property
    def texts(self) -> list[str]:
        """The constraints in words: rows, combinations, functions."""
        return [
            *(repr(row.text) for row in self.rows),
            *(combination.text for combination in self.forbidden),
            *(name_of(function) for function in self.feasible),
        ]


def rules_of(spec: Any, fields: Sequence[Field]) -> Rules:
    """The rules that a user's constraints stand for."""
    rows: list[Row] = []
    forbidden: list[Combination] = []
    feasible: list[Feasible] = []
    for item in _several(spec):
        if isinstance(item, str):
            rows += parsed(item, [field.name for field in fields])
        elif isinstance(item, Forbidden):
            forbidden.append(_combination(item, fields))
        elif _is_linear(item):
            rows += _matrix_rows(item, fields)
        elif callable(item):
            feasible.append(item)
        else:
            raise TypeError(
                f"constraints has {checks.shown(item)}; give texts such as 'a + b <= 1', (A, lb, ub), "
                "gpmi.Forbidden(...) or functions feasible(point) -> bool"
            )
    for row in rows:
        for j in np.flatnonzero(row.coefficients).tolist():
            if fields[j].largest is None:
                raise TypeError(f"constraint {row.text!r} is about {fields[j].name!r}, whose values are not numbers")
    largest = np.array([field.largest or 0.0 for field in fields])
    sizes = [np.abs(row.coefficients) @ largest + max(map(_finite, row[2:])) for row in rows]
    return Rules(tuple(rows), np.array(sizes), tuple(forbidden), tuple(feasible))


def name_of(function: Feasible) -> str:
    """A function in a message."""
    return str(getattr(function, "__qualname__", None) or checks.shown(function))


def _several(spec: Any) -> list[Any]:
    """The constraints in a list, or the only one."""
    single = isinstance(spec, str | Forbidden) or _is_linear(spec) or callable(spec)
    if single:
        return [spec]
    if isinstance(spec, list | tuple):
        return list(spec)
    raise TypeError(
        f"constraints is {checks.shown(spec)}; give a list of texts such as 'a + b <= 1', (A, lb, ub), "
        "gpmi.Forbidden(...) and functions feasible(point) -> bool"
    )


def _is_linear(item: Any) -> bool:
    """Whether it is meant as (A, lb, ub), or as the object of SciPy that holds the three."""
    if all(hasattr(item, name) for name in ("A", "lb", "ub")):
        return True
    return isinstance(item, tuple) and len(item) == 3 and checks.shape(item[0]) not in (None, ())


def _matrix_rows(item: Any, fields: Sequence[Field]) -> list[Row]:
    """A row for each row of A."""
    given = item if isinstance(item, tuple) else (item.A, item.lb, item.ub)
    try:
        dense = given[0].toarray() if hasattr(given[0], "toarray") else given[0]
        matrix = np.atleast_2d(np.asarray(dense, dtype=float))
        lower, upper = (np.broadcast_to(np.asarray(end, dtype=float), len(matrix)) for end in given[1:])
    except (TypeError, ValueError):
        raise ValueError(
            f"constraint {checks.shown(item)} is not (A, lb, ub); give a matrix A (k, {len(fields)}) of numbers, "
            "and for lb and ub a number or k numbers each"
        ) from None
    if matrix.ndim != 2 or matrix.shape[1] != len(fields) or not 0 < len(matrix) <= _MOST_ROWS:
        raise ValueError(
            f"A of a constraint has shape {matrix.shape}; give one column for each of the {len(fields)} parameters "
            f"{[field.name for field in fields]}, 0 where it does not count"
        )
    rows = []
    for i, (coefficients, lo, hi) in enumerate(zip(matrix, lower.tolist(), upper.tolist(), strict=True)):
        text = f"row {i} of A: {_expression(coefficients, lo, hi, fields)}"
        if (
            not np.all(np.isfinite(coefficients))
            or math.isnan(lo)
            or math.isnan(hi)
            or lo == math.inf
            or hi == -math.inf
        ):
            raise ValueError(f"constraint {text!r} is not finite; give finite numbers in A, and lb <= ub")
        if lo > hi:
            raise ValueError(f"constraint {text!r} has lb = {lo} above ub = {hi}; lb must not be larger")
        if np.any(coefficients) and (math.isfinite(lo) or math.isfinite(hi)):
            rows.append(Row(text, coefficients, lo, hi))
        elif not np.any(coefficients) and not lo <= 0.0 <= hi:
            raise ValueError(f"constraint {text!r} has no coefficient but 0 and cannot hold; leave it out")
    return rows


def _expression(coefficients: Array, lo: float, hi: float, fields: Sequence[Field]) -> str:
    """A row as a text."""
    terms = [f"{coefficients[j]:g}*{fields[j].name}" for j in np.flatnonzero(coefficients).tolist()]
    total = " + ".join(terms).replace("+ -", "- ") or "0"
    if lo == hi:
        return f"{total} == {hi:g}"
    left, right = (f"{lo:g} <= " if math.isfinite(lo) else ""), (f" <= {hi:g}" if math.isfinite(hi) else "")
    return f"{left}{total}{right}"


def _combination(item: Forbidden, fields: Sequence[Field]) -> Combination:
    known = {field.name: i for i, field in enumerate(fields)}
    parts = []
    for name, value in item.values.items():
        if name not in known:
            raise ValueError(f"{item!r} names {name!r}, which is no parameter of the space; it has {list(known)}")
        parts.append((known[name], fields[known[name]].codes(repr(item), value)))
    return Combination(repr(item), tuple(parts))


def _answer(function: Feasible, point: Point) -> bool:
    answer = function(point)
    if not isinstance(answer, bool | np.bool_):
        raise TypeError(
            f"the constraint {name_of(function)} returned {checks.shown(answer)} at {checks.shown(point)}; "
            "it must return True or False"
        )
    return bool(answer)


def _finite(bound: float) -> float:
    return abs(bound) if math.isfinite(bound) else 0.0


def minimal(count: int, is_empty: Callable[[list[int]], bool]) -> list[int]:
    """Numbers of constraints that cannot hold together, none of which can be left out. At most `count` questions."""
    kept = list(range(count))
    for i in range(count):
        fewer = [j for j in kept if j != i]
        if is_empty(fewer):
            kept = fewer
    return kept


def nothing_left(together: Sequence[str], outcome: str) -> str:
    """The message about constraints that cannot hold together."""
    if len(together) == 1:
        return f"constraints has {together[0]}, which holds nowhere in the space: {outcome}; leave it out or weaken it"
    words = " and ".join(together)
    return f"constraints has {words}, which do not hold together in the space: {outcome}; leave one out or weaken it"
