"""Read linear inequalities and equalities over names from text: "a + 2*b <= 1", "0 <= a - b <= 1", "a + b == 1".

The text is parsed, never run: only names, numbers, + - * / and the comparisons <=, >= and == are accepted; = is read as
==.
"""

from __future__ import annotations

import ast
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gpmi._support import checks
from gpmi._support.refusals import Refused, RefusedValue, reworded
from gpmi._support.types import Array

_LONGEST_TEXT = 10_000  # characters; the parser refuses deeper nesting than such a string may have


class Inequality(NamedTuple):
    """lower <= coefficients . values <= upper. An equality has lower == upper."""

    text: str
    coefficients: Array  # (p,)
    lower: float
    upper: float


class _LinearForm(NamedTuple):
    """coefficients . values + constant."""

    coefficients: Array  # (p,)
    constant: float


def parse(text: str, names: Sequence[str]) -> list[Inequality]:
    """Return one inequality for each comparison in a string."""
    label = f"constraint {checks.shown(text)}"
    tree = comparison_in(text, label)
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # overflows are refused below
            sides = [_form(label, side, _unit_rows(names)) for side in (tree.left, *tree.comparators)]
        return [
            _inequality(label, text if len(tree.ops) == 1 else f"{text} [{i + 1}]", sides[i], op, sides[i + 1])
            for i, op in enumerate(tree.ops)
        ]
    except Refused as error:
        raise reworded(error, str(error), constraint=text) from None
    except RecursionError:
        raise ValueError(f"{label} is nested too deeply; give (A, lb, ub) instead") from None


def comparison_in(text: str, label: str) -> ast.Compare:
    """Return the parsed comparisons of a string."""
    if len(text) > _LONGEST_TEXT:
        raise ValueError(f"{label} is longer than {_LONGEST_TEXT} characters; give (A, lb, ub) instead")
    try:
        tree = ast.parse(_as_python(text).strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        sentence = f"{label} cannot be read; write it like 'a + 2*b <= 1' or 'a + b == 1'"
        raise RefusedValue(sentence, "unreadable-constraint", constraint=text) from None
    if isinstance(tree, ast.BoolOp):
        remedy = "give two strings, ['a <= 1', 'b <= 1']" if isinstance(tree.op, ast.And) else "give a callable instead"
        word = "and" if isinstance(tree.op, ast.And) else "or"
        sentence = f"{label} joins comparisons by {word}; {remedy}"
        raise RefusedValue(sentence, "joined-constraint", constraint=text, word=word)
    if not isinstance(tree, ast.Compare):
        raise ValueError(f"{label} compares nothing; write it like 'a + 2*b <= 1' or 'a + b == 1'")
    return tree


def _as_python(text: str) -> str:
    """Return a text with = as ==, and with the signs ≤ and ≥ as Python writes them."""
    return re.sub(r"(?<![<>=!:])=(?!=)", "==", text.replace("≤", "<=").replace("≥", ">="))


def _unit_rows(names: Sequence[str]) -> dict[str, Array]:
    """Return the coefficients (p,) of each name, spelled as the parser spells it.

    The parser may normalise two names to one; such a name is left out.
    """
    read = [unicodedata.normalize("NFKC", name) for name in names]
    times = Counter(read)
    return {name: row for name, row in zip(read, np.eye(len(names)), strict=True) if times[name] == 1}


def _inequality(label: str, text: str, left: _LinearForm, op: ast.cmpop, right: _LinearForm) -> Inequality:
    """Return left - right <= 0, >= 0 or == 0."""
    if isinstance(op, ast.Lt | ast.Gt):
        sentence = f"{label} has < or >; write <= or >=, and for whole numbers such as a < b write a <= b - 1"
        raise RefusedValue(sentence, "strict-constraint")
    if not isinstance(op, ast.LtE | ast.GtE | ast.Eq):
        raise ValueError(f"{label} has a comparison other than <=, >= and ==; use one of these")
    coefficients, bound = left.coefficients - right.coefficients, right.constant - left.constant
    if not np.any(coefficients):
        raise ValueError(f"{label} has no parameter in one of its comparisons; leave it out")
    if not (np.all(np.isfinite(coefficients)) and math.isfinite(bound)):
        raise ValueError(f"{label} has numbers too large for floating point; give it in other units")
    lower = -math.inf if isinstance(op, ast.LtE) else bound
    return Inequality(text, coefficients, lower, math.inf if isinstance(op, ast.GtE) else bound)


def _form(label: str, node: ast.expr, rows: dict[str, Array]) -> _LinearForm:
    """Return the linear form of a part of the text."""
    match node:
        case ast.Constant(value=float() | int() as value) if not isinstance(value, bool):
            return _LinearForm(np.zeros(1), checks.number(f"a number of {label}", value))  # broadcasts to (p,)
        case ast.Name(id=name):
            if name not in rows:
                sentence = f"{label} has the name {name!r}; the space has {list(rows)}"
                raise RefusedValue(sentence, "unknown-in-constraint", name=name, names=list(rows))
            return _LinearForm(rows[name], 0.0)
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as op, operand=operand):
            sign, inner = (-1.0 if isinstance(op, ast.USub) else 1.0), _form(label, operand, rows)
            return _LinearForm(sign * inner.coefficients, sign * inner.constant)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
            a, b = _form(label, left, rows), _form(label, right, rows)
            sign = -1.0 if isinstance(op, ast.Sub) else 1.0
            return _LinearForm(a.coefficients + sign * b.coefficients, a.constant + sign * b.constant)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            a, b = _form(label, left, rows), _form(label, right, rows)
            if np.any(a.coefficients) and np.any(b.coefficients):
                sentence = f"{label} multiplies parameters, which is not linear; give a callable instead"
                raise RefusedValue(sentence, "nonlinear-constraint")
            if np.any(a.coefficients):
                a, b = b, a
            return _LinearForm(a.constant * b.coefficients, a.constant * b.constant)
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            a, b = _form(label, left, rows), _form(label, right, rows)
            if np.any(b.coefficients) or b.constant == 0.0:
                sentence = f"{label} divides by a parameter or by 0, which is not linear; give a callable"
                raise RefusedValue(sentence, "nonlinear-constraint")
            return _LinearForm(a.coefficients / b.constant, a.constant / b.constant)
    raise ValueError(
        f"{label} has {checks.shown(ast.unparse(node))}, which is not understood; use names, numbers, + - * / and "
        "<=, >=, ==, or give a callable"
    )
