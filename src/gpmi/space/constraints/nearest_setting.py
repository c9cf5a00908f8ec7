"""Find the feasible setting of the discrete parameters that is nearest to a given point.

This is a mixed integer linear program. The reals are variables in [0, 1]. A Choice is a set of binary variables, one
for each option. An Int is a whole number; if conditions or forbidden combinations name single values of it, binary
variables say in which run of consecutive values it lies. A Real that is counted has a binary variable, too: whether it
is on. A variable for each value would make the program of an Int of
many values a hundred times slower. A constraint on a parameter that may be inactive is relaxed by a big-M term where
the parameter is inactive.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gpmi._support.library_output import c_output_discarded
from gpmi._support.types import Array, Numbers
from gpmi.space.constraints.constraints import Constraints
from gpmi.space.constraints.supports import Supports
from gpmi.space.fixed import FixedParameter
from gpmi.space.integer import Int
from gpmi.space.layout import Layout

# A counted parameter that must be on is at least this part of its width: less is hardly an ingredient. Our choice.
LEAST_ON = 1e-3
_SECONDS = 20.0  # time limit of one program; those of the tests take milliseconds


class _Variables(NamedTuple):
    """The variables of the program that stand for one discrete parameter."""

    first: int
    levels: int  # how many values it has
    is_whole: bool  # the first variable is the level number
    runs: tuple[tuple[int, int], ...]  # first and last level number of each run; each has a binary variable

    @property
    def binaries(self) -> slice:
        start = self.first + self.is_whole
        return slice(start, start + len(self.runs))

    @property
    def size(self) -> int:
        return self.is_whole + len(self.runs)

    def binaries_of(self, numbers: Iterable[float]) -> list[int]:
        """Return the binary variables of which one is 1 if the level number is one of these, which are whole runs."""
        chosen = {int(number) for number in numbers}
        return [self.binaries.start + k for k, (first, _) in enumerate(self.runs) if first in chosen]


@dataclass(frozen=True, eq=False)
class NearestSetting:
    """The integer program for the linear constraints and forbidden combinations of a space."""

    layout: Layout
    constraints: Constraints
    reals: Numbers  # the numbers of the parameters that are Real, (q,)
    low: Array  # (q,), the value of each Real where its variable is 0
    width: Array  # (q,), how much larger the value is where the variable is 1

    @cached_property
    def discrete(self) -> tuple[int, ...]:
        """The discrete parameters that constraints are about, and those that decide whether these are active."""
        wanted = {int(j) for inequality in self.constraints.linear for j in np.flatnonzero(inequality.coefficients)}
        wanted |= {j for combination in self.constraints.forbidden for j, _ in combination.codes}
        wanted |= {j for count in self.constraints.counts for j in count.members}
        above = list(wanted)
        while above:
            for condition in self.layout.conditions[above.pop()]:
                if condition.parent not in wanted:
                    wanted.add(condition.parent)
                    above.append(condition.parent)
        encodings = enumerate(self.layout.encodings)
        fixed = {j for j, encoding in encodings if isinstance(encoding, FixedParameter)}  # in no constraint
        return tuple(sorted(wanted - set(self.reals.tolist()) - fixed))

    @cached_property
    def supports(self) -> Supports:
        """Which of the counted parameters may be on together."""
        return Supports(self.layout, self.constraints.counts)

    @cached_property
    def _switches(self) -> dict[int, int]:
        """The variable that says whether a counted Real is on; the last ones of the program."""
        first = len(self.reals) + sum(v.size for v in self._variables.values())
        return {int(j): first + k for k, j in enumerate(self.supports.reals)}

    @cached_property
    def _variables(self) -> dict[int, _Variables]:
        at, variables = len(self.reals), {}
        for j in self.discrete:
            count = self.layout.encodings[j].count
            assert count is not None
            is_whole = isinstance(self.layout.parameters[j], Int)
            runs = self._runs(j, count) if is_whole else tuple((number, number) for number in range(count))
            variables[j] = _Variables(at, count, is_whole, runs)
            at += variables[j].size
        return variables

    def _runs(self, j: int, count: int) -> tuple[tuple[int, int], ...]:
        """Return the runs of level numbers that no condition and no combination tells apart; none if all are alike."""
        named: list[Iterable[float]] = [
            c.numbers for conditions in self.layout.conditions for c in conditions if c.parent == j
        ]
        named += [codes for combination in self.constraints.forbidden for k, codes in combination.codes if k == j]
        named += [[0.0] for count in self.constraints.counts if j in count.members]
        if not named:
            return ()
        alike = np.array([np.isin(np.arange(count), list(map(int, numbers))) for numbers in named])
        first = np.flatnonzero(np.append(True, np.any(alike[:, 1:] != alike[:, :-1], axis=0))).tolist()
        return tuple(zip(first, [*(number - 1 for number in first[1:]), count - 1], strict=True))

    def find(self, numbers: Array, s: Array) -> Array | None:
        """Return the feasible level numbers (p,) nearest to the given ones and to the reals s (q,).

        None if there are none. Reals keep their numbers, except where a counted one comes on or goes off.
        """
        from scipy.optimize import Bounds, LinearConstraint, milp  # slow to import

        q = len(self.reals)
        size = q + sum(v.size for v in self._variables.values()) + len(self._switches)
        whole = [j for j in self.discrete if self._variables[j].is_whole]
        total = size + q + len(whole)  # the last ones are distances from the given point
        matrix, lower, upper = self._matrix(size)
        far, target, cost = np.zeros((0, total)), np.zeros(0), np.zeros(total)
        upper_ends = np.ones(total)
        for k, (variable, at, unit) in enumerate(
            [
                *((i, s[i], 1.0) for i in range(q)),
                *((self._variables[j].first, numbers[j], float(self._variables[j].levels)) for j in whole),
            ]
        ):
            for sign in (1.0, -1.0):  # distance >= |variable - at| / unit
                line = np.zeros(total)
                line[variable], line[size + k] = sign / unit, -1.0
                far, target = np.vstack([far, line]), np.append(target, sign * at / unit)
            cost[size + k] = 1.0
        for j, variables in self._variables.items():
            if variables.is_whole:
                upper_ends[variables.first] = variables.levels - 1.0
            else:
                cost[variables.binaries] = 1.0
                cost[variables.first + int(numbers[j])] = 0.0
        constraints: list[Any] = [LinearConstraint(far, -np.inf, target)] if len(far) else []
        if len(matrix):
            constraints.append(LinearConstraint(np.pad(matrix, ((0, 0), (0, total - size))), lower, upper))
        is_whole = np.concatenate([np.zeros(q), np.ones(size - q), np.zeros(total - size)])
        with c_output_discarded():
            solution = milp(
                cost, integrality=is_whole, bounds=Bounds(0.0, upper_ends), constraints=constraints,
                options={"time_limit": _SECONDS},
            )  # fmt: skip
        return None if solution.x is None else self._read(numbers, solution.x)

    def _read(self, numbers: Array, x: Array) -> Array:
        result = numbers.copy()
        for j, variables in self._variables.items():
            result[j] = np.round(x[variables.first]) if variables.is_whole else np.argmax(x[variables.binaries])
        for j, switch in self._switches.items():
            i = int(np.searchsorted(self.reals, j))
            if x[switch] < 0.5:
                result[j] = 0.0
            elif result[j] == 0.0:
                result[j] = max(float(x[i]), LEAST_ON) * self.width[i]
        return result

    def _matrix(self, size: int) -> tuple[Array, Array, Array]:
        """Return the constraints as lower <= matrix x <= upper."""
        lines: list[tuple[Array, float, float]] = []
        for variables in self._variables.values():
            if variables.runs:
                line = np.zeros(size)
                line[variables.binaries] = 1.0
                lines.append((line, 1.0, 1.0))
            if variables.runs and variables.is_whole:  # it is not below the first number of its run, or above the last
                for ends, least, most in zip(np.transpose(variables.runs), (0.0, -np.inf), (np.inf, 0.0), strict=True):
                    line = np.zeros(size)
                    line[variables.first], line[variables.binaries] = 1.0, -ends
                    lines.append((line, least, most))
        for r in range(len(self.constraints.linear)):
            lines += self._inequality(size, r)
        for combination in self.constraints.forbidden:
            line, most = np.zeros(size), len(combination.codes) - 1.0
            for j, codes in combination.codes:
                line[self._variables[j].binaries_of(codes)] += 1.0
                line, most = self._switched(line, most, j, -1.0)
            lines.append((line, -np.inf, most))
        lines += self._counts(size)
        if not lines:
            return np.zeros((0, size)), np.zeros(0), np.zeros(0)
        matrix, lower, upper = zip(*lines, strict=True)
        return np.array(matrix), np.array(lower), np.array(upper)

    def _counts(self, size: int) -> list[tuple[Array, float, float]]:
        """Return the counts in the variables, and what a switch means: a Real is 0, or at least LEAST_ON if needed."""
        lines: list[tuple[Array, float, float]] = []
        supports = self.supports
        needed = dict(zip(supports.counted.tolist(), supports.needed.tolist(), strict=True))
        zero = dict(zip(supports.counted.tolist(), supports.zero.tolist(), strict=True))
        for j, switch in self._switches.items():
            i = int(np.searchsorted(self.reals, j))
            for share, least, most in ((1.0, -np.inf, 0.0), (LEAST_ON, 0.0, np.inf)):
                if share == 1.0 or needed[j]:
                    line = np.zeros(size)
                    line[i], line[switch] = 1.0, -share
                    lines.append((line, least, most))
        for count in self.constraints.counts:
            line, constant = np.zeros(size), 0.0
            for j in count.members:
                if j in self._switches:
                    line[self._switches[j]] = 1.0
                else:  # on, unless it has the level of 0
                    line[self._variables[j].binaries_of([zero[j]])] = -1.0
                    constant += 1.0
            lines.append((line, count.lower - constant, count.upper - constant))
        return lines

    def _inequality(self, size: int, r: int) -> list[tuple[Array, float, float]]:
        """Return an inequality in the variables: one line, or one for each side if it can be switched off."""
        inequality, line, shift = self.constraints.linear[r], np.zeros(size), 0.0
        real = {int(j): i for i, j in enumerate(self.reals)}
        used = np.flatnonzero(inequality.coefficients).tolist()
        for j in used:
            coefficient, parameter = inequality.coefficients[j], self.layout.parameters[j]
            if j in real:
                line[real[j]] += coefficient * self.width[real[j]]
                shift += coefficient * self.low[real[j]]
                continue
            variables = self._variables[j]
            if variables.is_whole:
                assert isinstance(parameter, Int)
                line[variables.first] += coefficient * parameter.step
                shift += coefficient * parameter.lo
            else:
                assert parameter.limits is not None
                line[variables.binaries] += coefficient * parameter.values(np.arange(float(variables.levels)))
        lower, upper = inequality.lower - shift, inequality.upper - shift
        if not any(self.layout.conditions[j] for j in used):
            return [(line, lower, upper)]
        lines, large = [], 4.0 * float(self.constraints.sizes[r]) + 1.0
        for end, sign in ((upper, 1.0), (-lower, -1.0)):
            if np.isfinite(end):
                switched, most = sign * line, end
                for j in used:
                    switched, most = self._switched(switched, most, j, -large)
                lines.append((switched, -np.inf, most))
        return lines

    def _switched(self, line: Array, most: float, j: int, by: float) -> tuple[Array, float]:
        """Return line x <= most, relaxed by a big-M term where parameter j is inactive: the left side is lower by |by|.

        Let b be the sum of the binary variables of the values that make it active. by (1 - b) is added on the left.
        """
        line = line.copy()
        for condition in self.layout.conditions[j]:
            parent = self.layout.encodings[condition.parent]
            if isinstance(parent, FixedParameter):  # b is a constant
                most -= 0.0 if parent.level in condition.numbers else by
                line, most = self._switched(line, most, condition.parent, by)
                continue
            line[self._variables[condition.parent].binaries_of(condition.numbers)] -= by
            most -= by
            line, most = self._switched(line, most, condition.parent, by)
        return line, most
