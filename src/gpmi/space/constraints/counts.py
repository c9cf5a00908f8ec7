"""Read constraints on how many parameters are on: "count(a, b, c > 0) <= 2", "1 <= count(a, b) <= 3".

A parameter is on where its value is above 0; without "> 0", where it differs from 0. The text is parsed, never run.
"""

from __future__ import annotations

import ast
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gpmi._support import checks
from gpmi._support.refusals import Refused, RefusedValue, reworded
from gpmi._support.types import Array, Mask
from gpmi.space.constraints.expressions import comparison_in

_EXAMPLE = "write it like 'count(a, b, c > 0) <= 2' or '1 <= count(a, b) <= 3'"


class Count(NamedTuple):
    """lower <= the number of members that are on <= upper."""

    text: str
    members: tuple[int, ...]  # the numbers of the parameters
    lower: int
    upper: int
    positive: bool  # whether on means above 0; otherwise it means different from 0

    def on(self, values: Array) -> Mask:
        """Return which members are on, (m, k), where the parameters have values (m, p)."""
        counted = values[:, list(self.members)]
        result: Mask = counted > 0.0 if self.positive else counted != 0.0
        return result

    def holds(self, values: Array) -> Mask:
        """Return where the constraint holds, (m,)."""
        number = self.on(values).sum(axis=1)
        result: Mask = (self.lower <= number) & (number <= self.upper)
        return result

    def without(self, j: int, *, is_on: bool) -> Count:
        """Return the constraint on the other members, where one of them is known to be on or off."""
        others = tuple(i for i in self.members if i != j)
        return self._replace(members=others, lower=max(self.lower - is_on, 0), upper=self.upper - is_on)

    @property
    def can_hold(self) -> bool:
        """Whether the number of members allows it."""
        return self.lower <= len(self.members) and self.upper >= 0

    @property
    def allowed(self) -> str:
        """How many members may be on, in words."""
        if self.lower == self.upper:
            return f"exactly {self.upper}"
        if self.lower == 0:
            return f"at most {self.upper}"
        return f"at least {self.lower}" if self.upper >= len(self.members) else f"{self.lower} to {self.upper}"


def parse_count(text: str, names: Sequence[str]) -> Count | None:
    """Return the count of a text; None if the text counts nothing."""
    if "count" not in text:
        return None
    label = f"constraint {checks.shown(text)}"
    tree = comparison_in(text, label)
    if not any(_is_count(node) for node in ast.walk(tree)):
        return None
    sides = [tree.left, *tree.comparators]
    calls = [k for k, side in enumerate(sides) if _is_count(side)]
    if len(calls) != 1:
        raise ValueError(f"{label} does not compare one count with whole numbers; {_EXAMPLE}")
    call = sides[calls[0]]
    assert isinstance(call, ast.Call)
    try:
        members, positive = _members(label, call, names)
    except Refused as error:
        raise reworded(error, str(error), constraint=text) from None
    lower, upper = 0, len(members)
    for k, op in enumerate(tree.ops):
        if calls[0] not in (k, k + 1):
            raise ValueError(f"{label} compares numbers with each other; {_EXAMPLE}")
        left = k == calls[0]  # count on the left
        bound = _whole(label, sides[k + 1] if left else sides[k])
        if isinstance(op, ast.Lt | ast.Gt):
            sentence = f"{label} has < or >; write <= or >= with a whole number, as in 'count(a, b > 0) <= 2'"
            raise RefusedValue(sentence, "strict-constraint", constraint=text)
        if isinstance(op, ast.Eq):
            lower, upper = max(lower, bound), min(upper, bound)
        elif isinstance(op, ast.LtE if left else ast.GtE):
            upper = min(upper, bound)
        elif isinstance(op, ast.GtE | ast.LtE):
            lower = max(lower, bound)
        else:
            raise ValueError(f"{label} has a comparison other than <=, >= and ==; use one of these")
    if lower > upper:
        raise ValueError(f"{label} cannot hold: it counts {len(members)} parameters; give a number from 0 to that")
    return Count(text, members, lower, upper, positive)


def _is_count(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "count"


def _members(label: str, call: ast.Call, names: Sequence[str]) -> tuple[tuple[int, ...], bool]:
    """Return the parameters that are counted, and whether they are on above 0 only."""
    spelled = [unicodedata.normalize("NFKC", name) for name in names]  # as the parser spells them
    members: list[int] = []
    kinds: set[type[ast.cmpop]] = set()
    for argument in call.args:
        match argument:
            case ast.Name(id=name):
                pass
            case ast.Compare(left=ast.Name(id=name), ops=[op], comparators=[ast.Constant(value=0)]):
                kinds.add(type(op))
            case _:
                shown = checks.shown(ast.unparse(argument))
                raise ValueError(f"{label} counts {shown}; give names, the last one with > 0: {_EXAMPLE}")
        if spelled.count(name) != 1:
            sentence = f"{label} has the name {name!r}; the space has {list(names)}"
            raise RefusedValue(sentence, "unknown-in-constraint", name=name, names=names)
        if spelled.index(name) in members:
            raise ValueError(f"{label} counts {name!r} twice; name each parameter once")
        members.append(spelled.index(name))
    if call.keywords or not members:
        raise ValueError(f"{label} counts no parameter by its name; {_EXAMPLE}")
    if not kinds <= {ast.Gt, ast.NotEq} or len(kinds) > 1:
        raise ValueError(f"{label} counts by another comparison than > 0 or != 0; {_EXAMPLE}")
    return tuple(members), kinds == {ast.Gt}


def _whole(label: str, node: ast.expr) -> int:
    match node:
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            return value
    shown = checks.shown(ast.unparse(node))
    raise ValueError(f"{label} compares the count with {shown}; give a whole number, 0 or more")


def counts_hold(counts: Sequence[Count], values: Array) -> Mask:
    """Return which counts hold, (m, K), where the parameters have values (m, p)."""
    return np.array([count.holds(values) for count in counts], dtype=bool).reshape(len(counts), len(values)).T
