"""Checks of arguments: each is accepted, or refused with its name, its value and the remedy."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from functools import wraps
from numbers import Real
from typing import Any, ParamSpec, TypeVar

import numpy as np

from gpmi._support.name_hints import SEVERAL, name_hint
from gpmi._support.refusals import RefusedType, RefusedValue
from gpmi._support.refusals import shown as shown  # part of every message of a check
from gpmi._support.types import Array

LARGEST_COUNT = 2**63 - 1  # of NumPy's integers
LARGEST_SEED = 10**100  # NumPy's own seeds have 39 digits; nobody can copy a number longer than this. Our choice
LARGEST = 1e100  # the largest |y|: y^2 = 1e200 leaves room for sums and products below the largest float, 1.8e308
ONE_VALUE = f"give one finite number, gpmi.Measured(y, constraints=[...]) for one with constraints; {SEVERAL}"

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")


def with_name_hints(function: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
    """Decorate a function to reject unknown keyword arguments and suggest the intended name.

    Its arguments are those of its signature, which may list more than its code does (`gpmi.run.options`).
    """
    parameters = inspect.signature(function).parameters

    @wraps(function)
    def hinted(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Returned:
        for name in kwargs:
            if name not in parameters:
                what = function.__qualname__.removesuffix(".__init__")
                raise TypeError(f"{name} is not an argument of {what}; {name_hint(name, parameters)}")
        return function(*args, **kwargs)

    return hinted


def number(name: str, value: Any, remedy: str = "give one finite number") -> float:
    """Return a finite float from a real number of any type, but not from a bool, a string or an array."""
    if type(value) is float and math.isfinite(value):
        return value
    plain = value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value
    if isinstance(plain, bool | np.bool_) or not isinstance(plain, Real) or hasattr(value, "mask"):
        raise RefusedType(f"{name} is {shown(value)}; {remedy}", "not-a-number", name=name, value=value)
    try:
        result = float(plain)
    except OverflowError:
        result = math.inf
    except (TypeError, ValueError):  # a timedelta64 claims to be a whole number
        raise RefusedType(f"{name} is {shown(value)}; {remedy}", "not-a-number", name=name, value=value) from None
    if not math.isfinite(result):
        raise RefusedValue(f"{name} is {shown(value)}; {remedy}", "not-a-number", name=name, value=value)
    return result


def positive(name: str, value: Any) -> float:
    """Return a finite number above 0."""
    result = number(name, value, remedy := "give one positive, finite number")
    if result <= 0.0:
        raise RefusedValue(f"{name} is {shown(value)}; {remedy}", "not-positive", name=name, value=value)
    return result


def variance(name: str, value: Any) -> float:
    """Return a finite number, 0 or larger."""
    result = number(name, value, remedy := "it is a variance: give one finite number, 0 or larger")
    if result < 0.0:
        raise RefusedValue(f"{name} is {shown(value)}; {remedy}", "negative-variance", name=name, value=value)
    return result


def variances(name: str, value: Any, n: int, common: float) -> Array:
    """Return n finite variances, 0 or larger: one for each value, one for all, or `common` if `value` is None."""
    if value is None:
        return np.full(n, common)
    array = np.asarray(value, dtype=float)
    if array.shape not in ((), (n,)) or not np.all(np.isfinite(array) & (array >= 0.0)):
        raise ValueError(f"{name} is {shown(value)}; give one variance, 0 or larger, or one for each of {n} values")
    return np.full(n, array)


def probability(name: str, value: Any, remedy: str = "it is a probability: give a number between 0 and 1") -> float:
    """Return a number above 0 and below 1."""
    result = number(name, value, remedy)
    if not 0.0 < result < 1.0:
        raise ValueError(f"{name} is {shown(value)}; {remedy}")
    return result


def whole(name: str, value: Any, least: int, most: int = LARGEST_COUNT) -> int:
    """Return a whole number from `least` to `most`."""
    if isinstance(value, bool | np.timedelta64) or not isinstance(value, int | np.integer):
        raise RefusedType(f"{name} is {shown(value)}; give a whole number", "not-whole", name=name, value=value)
    if value < least:
        sentence = f"{name} is {shown(int(value))}; give a whole number of at least {least}"
        raise RefusedValue(sentence, "too-small", name=name, value=value, low=least)
    if value > most:
        sentence = f"{name} is {shown(int(value))}; give a whole number of at most {most}"
        raise RefusedValue(sentence, "too-large", name=name, value=value, high=most)
    return int(value)


def flag(name: str, value: Any) -> bool:
    """Return True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} is {shown(value)}; give True or False")
    return bool(value)


def one_of(name: str, value: Any, words: Sequence[str]) -> str:
    """Return one of several words."""
    if not isinstance(value, str) or value not in words:
        sentence = f"{name} is {shown(value)}; give one of {', '.join(map(repr, words))}"
        raise RefusedValue(sentence, "not-a-choice", name=name, value=value, options=words)
    return value


def points(name: str, value: Any, d: int | None) -> Array:
    """Return points as a finite (m, d) array, or one point as (1, d). With d None, d may be any number."""
    array = np.asarray(value, dtype=float)
    if array.ndim == 1:
        array = array[None, :]
    if array.ndim != 2 or (d is not None and array.shape[1] != d):
        want = "d" if d is None else str(d)
        raise ValueError(f"{name} has shape {np.shape(value)}; give an array of shape (m, {want}), a point per row")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} has a coordinate that is not finite; leave out such points")
    return array


def shape(value: Any) -> tuple[int, ...] | None:
    """Return the shape of an array or of nested lists; None for anything else, including ragged lists."""
    if not isinstance(value, np.ndarray | list | tuple):
        return None
    try:
        return np.shape(value)
    except ValueError:
        return None


def checked_noise(noise_var: Any, repeats: Any, output: str | None = None) -> tuple[float, int]:
    """Return the known variance of a value, or of an output, and the number of evaluations it is the mean of."""
    if type(noise_var) is float and noise_var == 0.0 and type(repeats) is int and repeats == 1:
        return 0.0, 1
    of = "" if output is None else f"[{output!r}]"
    value = variance(f"noise_var{of}", noise_var)
    if value > LARGEST**2:
        remedy = f"give a variance below {LARGEST**2:g}, in other units, or leave out a value that tells nothing"
        raise ValueError(f"noise_var{of} is {noise_var!r}, too large to compute with; {remedy}")
    return value, whole(f"repeats{of}", repeats, 1)


def checked_value(y: Any) -> float:
    """Return y as a finite number that is small enough to square."""
    remedy = "give one finite number, or call fail(x) for an evaluation that has none"
    value = number("y", y, ONE_VALUE if has_several(y) else remedy)
    if abs(value) > LARGEST:
        raise ValueError(f"y is {y!r}, too large to square; give values below {LARGEST:g}, in other units")
    return value


def has_several(value: Any) -> bool:
    """Whether a value is a collection of several values, as an evaluation with several objectives returns."""
    size = value.size if isinstance(value, np.ndarray) else len(value) if isinstance(value, list | tuple | dict) else 0
    return size > (0 if isinstance(value, dict) else 1)  # one output by name is an evaluation of a run with goals
