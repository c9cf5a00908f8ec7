"""User constraints: points that the parameters allow but that must not be queried.

There are five kinds of constraints, and a space may have any number of each: a string ("a + b <= 1"), (A, lb, ub) or
scipy.optimize.LinearConstraint, a string that counts ("count(a, b, c > 0) <= 2"), `Forbidden` for combinations of
values, and a function feasible(point) -> bool. A linear constraint is about the values of parameters in the user's
units, also where log=True. It applies where all its parameters are active.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gpmi._support import checks
from gpmi._support.refusals import RefusedValue
from gpmi._support.types import Array, Mask, Point
from gpmi.space.conditions.conditions import read_levels
from gpmi.space.constraints.counts import Count, counts_hold, parse_count
from gpmi.space.constraints.expressions import Inequality, parse
from gpmi.space.encoding import Encoding
from gpmi.space.fixed import FixedParameter

# A told point may break an inequality by this part of its size: fractions read from a file may not sum to 1 to the last
# digit. Asked points meet FEASIBILITY_TOLERANCE.
TOLD_TOLERANCE = 1e-9
FEASIBILITY_TOLERANCE = 1e-12

_MOST_ROWS = 10_000  # rows of A; our limit

Feasible: TypeAlias = Callable[[Point], bool]
Codes: TypeAlias = frozenset[float]  # level numbers; in a column of numbers, the numbers themselves


class Forbidden:
    """Values that may not occur together: Forbidden(kernel="rbf", degree=3). A list stands for any of its values.

    An inactive parameter has no value, so no combination with it occurs.
    """

    def __init__(self, **values: Any) -> None:
        if not values:
            raise ValueError("Forbidden() forbids nothing; give values, as in Forbidden(kernel='rbf', degree=3)")
        self.values = values

    def __repr__(self) -> str:
        return f"Forbidden({', '.join(f'{name}={checks.shown(value)}' for name, value in self.values.items())})"


class Combination(NamedTuple):
    """Values that may not occur together, by parameter number."""

    text: str
    values: Mapping[str, Any]  # as the user wrote them
    codes: tuple[tuple[int, Codes], ...]


class Operand(NamedTuple):
    """A parameter, or a column of candidates, that a constraint may mention."""

    name: str
    largest: float | None  # the largest absolute value; None if the values are not numbers, or go round
    codes: Callable[[str, Any], Codes]  # (label, value or list of values) -> their codes
    constant: float | None = None  # the value of a number that never varies
    uncounted: str = ""  # why a count may not name it, and what to do about it
    circular: bool = False  # whether the values go round


def parameter_operand(name: str, parameter: Encoding) -> Operand:
    """Return the operand of a parameter."""
    largest = None if parameter.limits is None else max(map(abs, parameter.limits))

    def codes(label: str, value: Any) -> Codes:
        return frozenset(map(float, read_levels(label, name, parameter, value)))

    constant = parameter.limits[0] if parameter.limits is not None and parameter.width == 0 else None
    uncounted = "" if constant is not None else _why_uncounted(parameter)
    return Operand(name, largest, codes, constant, uncounted, parameter.circular)


def _why_uncounted(parameter: Encoding) -> str:
    """Return why a count may not name a parameter; empty if it may."""
    if parameter.circular:
        return "an angle, which is never off; name other numbers"
    if parameter.limits is None:
        return "whose values are not numbers; name numbers only"
    if parameter.when is not None:
        return "which is there only under a condition; leave out its when=, since 0 means off"
    if parameter.limits[0] != 0.0:
        return f"whose smallest value is {parameter.limits[0]:g}; a parameter that is off is 0, so let it begin at 0"
    return ""


def column_operand(name: str, column: Array) -> Operand:
    """Return the operand of a column of numbers."""

    def codes(label: str, value: Any) -> Codes:
        values = value if isinstance(value, list | tuple | set | frozenset | range) else [value]
        return frozenset(checks.number(f"{name} of {label}", number) for number in values)

    return Operand(name, float(np.abs(column).max()), codes)


@dataclass(frozen=True, eq=False)
class Constraints:
    """The constraints of one space: R inequalities, F forbidden combinations, functions, and K counts."""

    linear: tuple[Inequality, ...]
    sizes: Array  # (R,), how large the terms of each inequality may be
    forbidden: tuple[Combination, ...]
    functions: tuple[Feasible, ...]
    counts: tuple[Count, ...] = ()

    @cached_property
    def matrix(self) -> Array:
        """The coefficients of the inequalities, (R, p)."""
        return np.array([inequality.coefficients for inequality in self.linear])

    @cached_property
    def used(self) -> Mask:
        """Which parameters each inequality is about, (R, p)."""
        used: Mask = self.matrix != 0.0
        return used

    @cached_property
    def lower(self) -> Array:
        """The lower bounds of the inequalities, (R,)."""
        return np.array([inequality.lower for inequality in self.linear])

    @cached_property
    def upper(self) -> Array:
        """The upper bounds of the inequalities, (R,)."""
        return np.array([inequality.upper for inequality in self.linear])

    @cached_property
    def texts(self) -> list[str]:
        """The constraints in words: inequalities, combinations, counts, functions. Empty if there are none."""
        return [
            *(repr(inequality.text) for inequality in self.linear),
            *(combination.text for combination in self.forbidden),
            *(repr(count.text) for count in self.counts),
            *(function_name(function) for function in self.functions),
        ]

    @property
    def plain(self) -> list[Any]:
        """The constraints as the values of a refusal, in the order of `texts`: a combination is a table."""
        combinations = [combination.values for combination in self.forbidden]
        functions = map(function_name, self.functions)
        return [*(row.text for row in self.linear), *combinations, *(count.text for count in self.counts), *functions]

    def conflict(self, together: Sequence[int], outcome: str) -> RefusedValue:
        """Return the error about constraints, by their numbers in `texts`, that cannot hold together."""
        text = " and ".join(self.texts[i] for i in together)
        constraints = [self.plain[i] for i in together]
        if len(together) == 1:
            sentence = f"constraints has {text}, which holds nowhere in the space: {outcome}; leave it out or weaken it"
            return RefusedValue(sentence, "holds-nowhere", constraints=constraints)
        sentence = f"constraints has {text}, which do not hold together in the space: {outcome}"
        return RefusedValue(f"{sentence}; leave one out or weaken it", "never-together", constraints=constraints)

    def excess(self, values: Array, active: Mask | None = None) -> Array:
        """Return by how much each inequality is broken, (m, R), at values (m, p); negative inside. O(m R p)."""
        if not self.linear:
            return np.empty((len(values), 0))
        total = values @ self.matrix.T
        excess: Array = np.maximum(self.lower - total, total - self.upper)
        if active is not None and not active.all():
            excess[~active @ self.used.T] = -math.inf
        return excess

    def forbidden_at(self, codes: Array, active: Mask | None = None) -> Mask:
        """Return which forbidden combinations occur, (m, F), where the parameters have these codes, (m, p)."""
        occurs = np.ones((len(codes), len(self.forbidden)), dtype=bool)
        for k, combination in enumerate(self.forbidden):
            for j, forbidden in combination.codes:
                occurs[:, k] &= np.isin(codes[:, j], list(forbidden))
                if active is not None:
                    occurs[:, k] &= active[:, j]
        return occurs

    def functions_allow(self, point: Point, copy: Callable[[Point], Point]) -> bool:
        """Whether the functions allow a point. Each gets a copy."""
        return all(_answer(function, copy(point)) for function in self.functions)

    def satisfied(
        self,
        values: Array,  # (m, p)
        codes: Array,  # (m, p)
        points: Sequence[Point],  # (m,), needed only if there are functions
        tolerance: float,
        copy: Callable[[Point], Point],
        active: Mask | None = None,  # (m, p)
    ) -> Mask:
        """Return which constraints hold at each point, (m, C), in the order of `texts`."""
        linear = self.excess(values, active) <= tolerance * self.sizes
        answers = [np.array([_answer(function, copy(x)) for x in points]) for function in self.functions]
        return np.column_stack([linear, ~self.forbidden_at(codes, active), counts_hold(self.counts, values), *answers])

    @staticmethod
    def conflict_in(satisfied: Mask) -> list[int]:
        """Return the numbers of constraints that cannot hold together, given which hold at each of m points, (m, C)."""
        return minimal_conflict(satisfied.shape[1], lambda subset: not satisfied[:, subset].all(axis=1).any())

    def check(self, point: Point, values: Array, codes: Array, active: Mask, copy: Callable[[Point], Point]) -> None:
        """Raise if a told point, with values (p,), breaks a constraint by more than rounding."""
        excess = self.excess(values[None], active[None])[0]
        for inequality, size, by in zip(self.linear, self.sizes, excess, strict=True):
            if by > TOLD_TOLERANCE * size:
                sentence = f"x is {checks.shown(point)}, which breaks the constraint {inequality.text!r} by {by:.3g}"
                remedy = "tell points that satisfy it, or leave the constraint out"
                raise RefusedValue(f"{sentence}; {remedy}", "breaks-constraint", constraint=inequality.text, by=by)
        for combination, occurs in zip(self.forbidden, self.forbidden_at(codes[None], active[None])[0], strict=True):
            if occurs:
                sentence = f"x is {checks.shown(point)}, which is {combination.text}; tell allowed points"
                raise RefusedValue(sentence, "forbidden", combination=combination.values)
        for count in self.counts:
            if not count.holds(values[None])[0]:
                number, many = int(count.on(values[None]).sum()), len(count.members)
                sentence = (
                    f"x is {checks.shown(point)}, in which {number} of {many} counted parameters are "
                    f"{'above' if count.positive else 'other than'} 0, but the constraint {count.text!r} allows "
                    f"{count.allowed}; tell points that satisfy it, with 0 for what is off"
                )
                raise RefusedValue(sentence, "breaks-count", constraint=count.text, number=number)
        for function in self.functions:
            if not _answer(function, copy(point)):
                raise ValueError(
                    f"x is {checks.shown(point)}, for which the constraint {function_name(function)} is False; "
                    "tell allowed points"
                )

    def joined_with(self, others: Constraints) -> Constraints:
        """Return these constraints and others."""
        return Constraints(
            self.linear + others.linear,
            np.concatenate([self.sizes, others.sizes]),
            self.forbidden + others.forbidden,
            self.functions + others.functions,
            self.counts + others.counts,
        )

    def with_fixed(self, fixed: Mapping[int, FixedParameter]) -> Constraints:
        """Return the constraints on the other parameters. Raise if the fixed values alone break one."""
        linear, sizes = [], []
        for inequality, size in zip(self.linear, self.sizes, strict=True):
            used = [j for j in fixed if inequality.coefficients[j] != 0.0]
            left = inequality.coefficients.copy()
            left[used] = 0.0
            shift = sum(float(inequality.coefficients[j]) * float(fixed[j].value) for j in used)
            if np.any(left):
                linear.append(Inequality(inequality.text, left, inequality.lower - shift, inequality.upper - shift))
                sizes.append(size)
            elif used and max(inequality.lower - shift, shift - inequality.upper) > TOLD_TOLERANCE * size:
                sentence = f"fixed breaks the constraint {inequality.text!r}; give values that satisfy it"
                raise RefusedValue(sentence, "fixed-breaks-constraint", constraint=inequality.text)
        forbidden = []
        for combination in self.forbidden:
            if any(j in fixed and fixed[j].level not in codes for j, codes in combination.codes):
                continue
            others = tuple((j, codes) for j, codes in combination.codes if j not in fixed)
            if not others:
                sentence = f"fixed has the values of {combination.text}; give allowed values"
                raise RefusedValue(sentence, "forbidden", combination=combination.values)
            forbidden.append(combination._replace(codes=others))
        counts = []
        for count in self.counts:
            for j in (j for j in count.members if j in fixed):
                count = count.without(j, is_on=float(fixed[j].value) != 0.0)
            if not count.can_hold:
                sentence = f"fixed breaks the constraint {count.text!r}; give values that satisfy it"
                raise RefusedValue(sentence, "fixed-breaks-constraint", constraint=count.text)
            counts += [count] if count.members else []
        return Constraints(tuple(linear), np.array(sizes), tuple(forbidden), self.functions, tuple(counts))


NO_CONSTRAINTS = Constraints((), np.zeros(0), (), ())


def read_constraints(spec: Any, operands: Sequence[Operand]) -> Constraints:
    """Return the constraints that a user wrote."""
    linear: list[Inequality] = []
    forbidden: list[Combination] = []
    functions: list[Feasible] = []
    counts: list[Count] = []
    for item in _listed(spec):
        if isinstance(item, str) and (count := parse_count(item, [operand.name for operand in operands])):
            counts += _countable(count, operands)
        elif isinstance(item, str):
            linear += parse(item, [operand.name for operand in operands])
        elif isinstance(item, Forbidden):
            forbidden.append(_combination(item, operands))
        elif is_matrix_form(item):
            linear += _matrix_rows(item, operands)
        elif callable(item):
            functions.append(item)
        else:
            raise TypeError(
                f"constraints has {checks.shown(item)}; give strings such as 'a + b <= 1', (A, lb, ub), "
                "gpmi.Forbidden(...) or functions feasible(point) -> bool"
            )
    for inequality in linear:
        for j in np.flatnonzero(inequality.coefficients).tolist():
            if operands[j].circular:
                remedy = "an angle, which has no smallest and no largest value; give a function feasible(point)"
                raise TypeError(f"constraint {inequality.text!r} is about {operands[j].name!r}, {remedy}")
            if operands[j].largest is None:
                raise TypeError(
                    f"constraint {inequality.text!r} is about {operands[j].name!r}, whose values are not numbers"
                )
    largest = np.array([operand.largest or 0.0 for operand in operands])
    sizes = [
        np.abs(inequality.coefficients) @ largest + max(map(_finite_size, (inequality.lower, inequality.upper)))
        for inequality in linear
    ]
    return Constraints(tuple(linear), np.array(sizes), tuple(forbidden), tuple(functions), tuple(counts))


def _countable(count: Count, operands: Sequence[Operand]) -> list[Count]:
    """Return a count without its constants; nothing if it counts only those. Raise if a member cannot be counted."""
    for j in count.members:
        operand = operands[j]
        if operand.constant is not None:
            count = count.without(j, is_on=operand.constant > 0.0 or (not count.positive and operand.constant < 0.0))
        elif operand.uncounted:
            raise ValueError(f"constraint {count.text!r} counts {operand.name!r}, {operand.uncounted}")
    if not count.can_hold:
        raise ValueError(f"constraint {count.text!r} cannot hold with the constants of the space; leave it out")
    return [count] if count.members else []


def function_name(function: Feasible) -> str:
    """Return what messages call a function."""
    return str(getattr(function, "__qualname__", None) or checks.shown(function))


def _listed(spec: Any) -> list[Any]:
    """Return a user's constraints as a list, also if there is only one."""
    if isinstance(spec, str | Forbidden) or is_matrix_form(spec) or callable(spec):
        return [spec]
    if isinstance(spec, list | tuple):
        return list(spec)
    raise TypeError(
        f"constraints is {checks.shown(spec)}; give a list of strings such as 'a + b <= 1', (A, lb, ub), "
        "gpmi.Forbidden(...) and functions feasible(point) -> bool"
    )


def is_matrix_form(item: Any) -> bool:
    """Whether a constraint is (A, lb, ub), or SciPy's object that holds the three."""
    if all(hasattr(item, name) for name in ("A", "lb", "ub")):
        return True
    return isinstance(item, tuple) and len(item) == 3 and checks.shape(item[0]) not in (None, ())


def _matrix_rows(item: Any, operands: Sequence[Operand]) -> list[Inequality]:
    """Return an inequality for each row of A."""
    parts = item if isinstance(item, tuple) else (item.A, item.lb, item.ub)
    try:
        dense = parts[0].toarray() if hasattr(parts[0], "toarray") else parts[0]
        matrix = np.atleast_2d(np.asarray(dense, dtype=float))
        lower, upper = (np.broadcast_to(np.asarray(end, dtype=float), len(matrix)) for end in parts[1:])
    except (TypeError, ValueError):
        raise ValueError(
            f"constraint {checks.shown(item)} is not (A, lb, ub); give a matrix A (k, {len(operands)}) of numbers, "
            "and for lb and ub a number or k numbers each"
        ) from None
    if matrix.ndim != 2 or matrix.shape[1] != len(operands) or not 0 < len(matrix) <= _MOST_ROWS:
        raise ValueError(
            f"A of a constraint has shape {matrix.shape}; give one column for each of the {len(operands)} parameters "
            f"{[operand.name for operand in operands]}, 0 where it does not count"
        )
    rows = []
    for i, (coefficients, lo, hi) in enumerate(zip(matrix, lower.tolist(), upper.tolist(), strict=True)):
        text = f"row {i} of A: {_row_text(coefficients, lo, hi, operands)}"
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
            rows.append(Inequality(text, coefficients, lo, hi))
        elif not np.any(coefficients) and not lo <= 0.0 <= hi:
            raise ValueError(f"constraint {text!r} has only coefficients 0 and cannot hold; leave it out")
    return rows


def _row_text(coefficients: Array, lo: float, hi: float, operands: Sequence[Operand]) -> str:
    """Return a row of A as a string."""
    terms = [f"{coefficients[j]:g}*{operands[j].name}" for j in np.flatnonzero(coefficients).tolist()]
    total = " + ".join(terms).replace("+ -", "- ") or "0"
    if lo == hi:
        return f"{total} == {hi:g}"
    left, right = (f"{lo:g} <= " if math.isfinite(lo) else ""), (f" <= {hi:g}" if math.isfinite(hi) else "")
    return f"{left}{total}{right}"


def _combination(item: Forbidden, operands: Sequence[Operand]) -> Combination:
    numbers = {operand.name: i for i, operand in enumerate(operands)}
    codes = []
    for name, value in item.values.items():
        if name not in numbers:
            sentence = f"{item!r} names {name!r}, which is not a parameter of the space; it has {list(numbers)}"
            raise RefusedValue(sentence, "unknown-parameter", name=name, names=list(numbers))
        codes.append((numbers[name], operands[numbers[name]].codes(repr(item), value)))
    return Combination(repr(item), dict(item.values), tuple(codes))


def _answer(function: Feasible, point: Point) -> bool:
    answer = function(point)
    if not isinstance(answer, bool | np.bool_):
        raise TypeError(
            f"the constraint {function_name(function)} returned {checks.shown(answer)} at {checks.shown(point)}; "
            "it must return True or False"
        )
    return bool(answer)


def _finite_size(bound: float) -> float:
    return abs(bound) if math.isfinite(bound) else 0.0


def minimal_conflict(count: int, is_empty: Callable[[list[int]], bool]) -> list[int]:
    """Return a minimal conflicting subset of the constraints, by their numbers.

    `is_empty` says whether some of the constraints leave no point. It is called `count` times.
    """
    needed = list(range(count))
    for i in range(count):
        fewer = [j for j in needed if j != i]
        if is_empty(fewer):
            needed = fewer
    return needed
