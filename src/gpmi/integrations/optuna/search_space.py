"""The search space of an Optuna study: distributions become parameters, and params become points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, assert_never

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from gpmi._support import checks
from gpmi.space import (
    MOST_OPTIONS,
    Choice,
    Constant,
    Domain,
    Int,
    NumberRange,
    Options,
    Parameters,
    Real,
    Single,
    Steps,
    named_parameters,
)

DIGITS = 12  # digits of the levels of a float with a step: 0.1 + 0.2 is 0.3; Optuna accepts 1e-8 off a step


def parameter_of(distribution: BaseDistribution, when: Mapping[str, Any] | None = None) -> Any:
    """Return gpmi's parameter for a distribution. `SearchSpace` converts values where the two differ.

    A float with more than 1,000 steps is represented by the number of its step, a very large integer by a Real.
    """
    if isinstance(distribution, CategoricalDistribution):
        options = tuple(distribution.choices)
        return Constant(options[0]) if len(options) == 1 else Choice(options, when=when)
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    if not varies(distribution):
        return Constant(distribution.low)
    low, high, log, step = distribution.low, distribution.high, distribution.log, distribution.step
    if isinstance(distribution, IntDistribution):
        try:
            return Int(int(low), int(high), log, step=int(step or 1), when=when)
        except ValueError:  # too large for an Int
            return Real(low, high, log, when=when)
    if step is None:
        return Real(low, high, log, when=when)
    count = _number(distribution, high) + 1
    if count > MOST_OPTIONS:
        return Int(0, count - 1, when=when)
    return Choice(tuple(_level(distribution, i) for i in range(count)), ordered=True, when=when)


def varies(distribution: BaseDistribution) -> bool:
    """Whether a distribution has more than one value."""
    return not distribution.single()


def varied(distributions: Mapping[str, BaseDistribution]) -> dict[str, BaseDistribution]:
    """Return the distributions with more than one value."""
    return {name: distribution for name, distribution in distributions.items() if varies(distribution)}


def distribution_of(domain: Domain) -> BaseDistribution:
    """Return Optuna's distribution of the values of a parameter."""
    match domain:
        case NumberRange(whole=True):
            lo, hi, step = int(domain.lo), int(domain.hi), int(domain.step or 1)
            return IntDistribution(lo, hi, log=domain.log and step == 1, step=step)  # no log with steps
        case NumberRange():
            return FloatDistribution(domain.lo, domain.hi, log=domain.log)
        case Options(values):
            return CategoricalDistribution(values)
        case Steps(first, last):
            return IntDistribution(first, last)
        case Single(value):
            return CategoricalDistribution((value,))
        case _:
            assert_never(domain)


@dataclass(frozen=True, eq=False)
class SearchSpace:
    """The parameters of a study: Optuna's distributions, and gpmi's space of the same names."""

    distributions: Mapping[str, BaseDistribution]
    space: Parameters  # named as the distributions

    @staticmethod
    def of(spec: Any) -> SearchSpace:
        """Build it from a dict of names with Optuna's distributions or gpmi's parameters, in any mixture."""
        remedy = "give a dict of names and distributions, those of Optuna or parameters of gpmi"
        if not isinstance(spec, Mapping):
            raise TypeError(f"search_space is {checks.shown(spec)}; {remedy}")
        if not spec:
            raise ValueError(f"search_space is empty; {remedy}, or leave it out")
        given = {name: content for name, content in spec.items() if isinstance(content, BaseDistribution)}
        others = {name: content for name, content in spec.items() if name not in given}
        parameters = {**(named_parameters(others) if others else {}), **{n: parameter_of(d) for n, d in given.items()}}
        distributions = {name: given.get(name) or distribution_of(parameters[name].domain) for name in spec}
        return SearchSpace(distributions, Parameters(tuple(parameters[name] for name in spec), tuple(spec)))

    @cached_property
    def names(self) -> tuple[str, ...]:
        assert self.space.names is not None
        return self.space.names

    @cached_property
    def _order(self) -> list[int]:
        """The numbers of the parameters, parents before the parameters that depend on them."""
        conditions, order = self.space.layout.conditions, list[int]()
        while len(order) < len(conditions):
            order += [
                j
                for j, needed in enumerate(conditions)
                if j not in order and all(condition.parent in order for condition in needed)
            ]
        return order

    def point(self, params: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the point with these params; None if it is outside the space or incomplete.

        Inactive parameters are ignored.
        """
        point: dict[str, Any] = {}
        try:
            for j in self._order:
                name, parameter = self.names[j], self.space.parameters[j]
                if isinstance(parameter.domain, Single):
                    point[name] = parameter.domain.value
                elif self._active(j, point):
                    point[name] = self._ours(name, params[name])
            self.space.encode(point)
        except (KeyError, TypeError, ValueError):
            return None
        return point

    def fixed(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the params that `Optimizer.ask(fixed=...)` accepts: active parameters with values of the space.

        If a parameter needs a condition that the params leave open, its parent is fixed to a value that activates it.
        """
        wanted = {name: self._ours(name, params[name]) for name in self.names if name in params}
        wanted = {name: value for name, value in wanted.items() if self._is_value(name, value)}
        for j in reversed(self._order):
            for condition in self.space.layout.conditions[j] if self.names[j] in wanted else ():
                parent = self.space.parameters[condition.parent]
                if self.names[condition.parent] not in wanted and not isinstance(parent.domain, Single):
                    row = parent.from_levels(np.array([min(condition.numbers)]))[0]
                    wanted[self.names[condition.parent]] = parent.decode(row)
        fixed: dict[str, Any] = {}
        for j in self._order:
            if self.names[j] in wanted and self._active(j, fixed):
                fixed[self.names[j]] = wanted[self.names[j]]
        return fixed

    def params(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """Convert a point to the params of an Optuna trial."""
        return {name: self._theirs(name, value) for name, value in point.items()}

    def internal(self, params: Mapping[str, Any]) -> dict[str, float]:
        """Convert params to the numbers of Optuna's storages; a choice becomes its position."""
        return {name: float(self.distributions[name].to_internal_repr(value)) for name, value in params.items()}

    def external(self, numbers: Mapping[str, float]) -> dict[str, Any]:
        """Convert such numbers back to params; names outside the space are left out."""
        inside = {name: number for name, number in numbers.items() if name in self.distributions}
        return {name: self.distributions[name].to_external_repr(number) for name, number in inside.items()}

    def fits(self, distributions: Mapping[str, BaseDistribution], params: Mapping[str, Any]) -> bool:
        """Whether a trial has the same distributions, and exactly the parameters that are active under its params."""
        free = varied(distributions)
        if any(self.distributions.get(name) != distribution for name, distribution in free.items()):
            return False
        point = self.point(params)
        return point is not None and point.keys() == free.keys()

    def _ours(self, name: str, value: Any) -> Any:
        """Convert a value of a trial to one of our points; leave it as it is if it is outside."""
        distribution = self.distributions[name]
        if not isinstance(distribution, FloatDistribution) or distribution.step is None:
            return value
        if not distribution.low <= value <= distribution.high:
            return value
        number = _number(distribution, value)
        return number if self._counts_steps(name) else _level(distribution, number)

    def _theirs(self, name: str, value: Any) -> Any:
        distribution = self.distributions[name]
        if isinstance(distribution, FloatDistribution):
            return _level(distribution, value) if self._counts_steps(name) else float(value)
        return round(value) if isinstance(distribution, IntDistribution) else value

    def _counts_steps(self, name: str) -> bool:
        """Whether it is a float with too many steps to list, so that gpmi's value is the number of a step."""
        domain = self._parameter(name).domain
        return (
            isinstance(self.distributions[name], FloatDistribution) and isinstance(domain, NumberRange) and domain.whole
        )

    def _parameter(self, name: str) -> Any:
        return self.space.parameters[self.names.index(name)]

    def _is_value(self, name: str, value: Any) -> bool:
        parameter = self._parameter(name)
        try:
            parameter.encode(name, value)
        except (TypeError, ValueError):
            return False
        return not isinstance(parameter.domain, Single)

    def _active(self, j: int, point: Mapping[str, Any]) -> bool:
        """Whether parameter j is active, given the values of its parents in `point`."""
        return all(
            self.names[parent] in point and self._number(parent, point[self.names[parent]]) in numbers
            for parent, numbers in self.space.layout.conditions[j]
        )

    def _number(self, j: int, value: Any) -> int:
        parameter = self.space.parameters[j]
        return int(parameter.level_numbers(np.array([parameter.encode(self.names[j], value)]))[0])


def _number(distribution: FloatDistribution, value: float) -> int:
    assert distribution.step is not None
    return round((value - distribution.low) / distribution.step)


def _level(distribution: FloatDistribution, i: int) -> float:
    assert distribution.step is not None
    return min(round(distribution.low + i * distribution.step, DIGITS), distribution.high)
