"""Linear inequalities and equalities over names, read from text: "a + 2*b <= 1", "0 <= a - b <= 1", "a + b == 1".

The text is parsed, never run: only names, numbers, + - * / and the comparisons <=, >= and == are understood.
"""

from __future__ import annotations

import ast
import math
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gpmi._support import checks
from gpmi._support.types import Array

_LONGEST = 10_000  # characters of a text; deeper nesting than such a text may have is refused by the parser


class Row(NamedTuple):
    """lower <= coefficients . values <= upper."""

    text: str
    coefficients: Array  # (p,)
    lower: float
    upper: float


class _Form(NamedTuple):
    """coefficients . values + constant."""

    coefficients: Array  # (p,)
    constant: float


def parsed(text: str, names: Sequence[str]) -> list[Row]:
    """The rows that a text stands for: one for each comparison in it."""
    label = f"constraint {checks.shown(text)}"
    if len(text) > _LONGEST:
        raise ValueError(f"{label} is longer than {_LONGEST} characters; give (A, lb, ub) instead")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(f"{label} cannot be read; write it like 'a + 2*b <= 1' or 'a + b == 1'") from None
    if isinstance(tree, ast.BoolOp):
        remedy = "give two texts, ['a <= 1', 'b <= 1']" if isinstance(tree.op, ast.And) else "give a callable instead"
        raise ValueError(f"{label} joins comparisons by {'and' if isinstance(tree.op, ast.And) else 'or'}; {remedy}")
    if not isinstance(tree, ast.Compare):
        raise ValueError(f"{label} compares nothing; write it like 'a + 2*b <= 1' or 'a + b == 1'")
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused below
            sides = [_form(label, side, _known(names)) for side in (tree.left, *tree.comparators)]
    except RecursionError:
        raise ValueError(f"{label} is nested too deeply; give (A, lb, ub) instead") from None
    return [
        _row(label, text if len(tree.ops) == 1 else f"{text} [{i + 1}]", sides[i], op, sides[i + 1])
        for i, op in enumerate(tree.ops)
    ]


def _known(names: Sequence[str]) -> dict[str, Array]:
    """The form of each name as the parser reads it, which may make one of two; such a name is left out."""
    read = [unicodedata.normalize("NFKC", name) for name in names]
    times = Counter(read)
    return {name: row for name, row in zip(read, np.eye(len(names)), strict=True) if times[name] == 1}


def _row(label: str, text: str, left: _Form, op: ast.cmpop, right: _Form) -> Row:
    """left - right <= 0, >= 0 or == 0."""
    if isinstance(op, ast.Lt | ast.Gt):
        raise ValueError(f"{label} has < or >; write <= or >=, and for whole numbers such as a < b write a <= b - 1")
    if not isinstance(op, ast.LtE | ast.GtE | ast.Eq):
        raise ValueError(f"{label} compares by something else than <=, >= or ==; only these will do")
    coefficients, bound = left.coefficients - right.coefficients, right.constant - left.constant
    if not np.any(coefficients):
        raise ValueError(f"{label} has no parameter in one of its comparisons; leave it out")
    if not (np.all(np.isfinite(coefficients)) and math.isfinite(bound)):
        raise ValueError(f"{label} has numbers too large for floating point; give it in other units")
    lower = -math.inf if isinstance(op, ast.LtE) else bound
    return Row(text, coefficients, lower, math.inf if isinstance(op, ast.GtE) else bound)


def _form(label: str, node: ast.expr, known: dict[str, Array]) -> _Form:
    """The linear form that a part of the text stands for."""
    match node:
        case ast.Constant(value=float() | int() as value) if not isinstance(value, bool):
            return _Form(np.zeros(1), checks.number(f"a number of {label}", value))  # of any length
        case ast.Name(id=name):
            if name not in known:
                raise ValueError(f"{label} has the name {name!r}; the space has {list(known)}")
            return _Form(known[name], 0.0)
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as op, operand=operand):
            sign, inner = (-1.0 if isinstance(op, ast.USub) else 1.0), _form(label, operand, known)
            return _Form(sign * inner.coefficients, sign * inner.constant)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
            a, b = _form(label, left, known), _form(label, right, known)
            sign = -1.0 if isinstance(op, ast.Sub) else 1.0
            return _Form(a.coefficients + sign * b.coefficients, a.constant + sign * b.constant)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            a, b = _form(label, left, known), _form(label, right, known)
            if np.any(a.coefficients) and np.any(b.coefficients):
                raise ValueError(f"{label} multiplies parameters; only linear ones are read, give a callable instead")
            if np.any(a.coefficients):
                a, b = b, a
            return _Form(a.constant * b.coefficients, a.constant * b.constant)
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            a, b = _form(label, left, known), _form(label, right, known)
            if np.any(b.coefficients) or b.constant == 0.0:
                raise ValueError(f"{label} divides by a parameter or by 0; only linear ones are read, give a callable")
            return _Form(a.coefficients / b.constant, a.constant / b.constant)
    raise ValueError(
        f"{label} has {checks.shown(ast.unparse(node))}, which is not understood; use names, numbers, + - * / and "
        "<=, >=, ==, or give a callable"
    )
