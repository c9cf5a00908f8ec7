"""Checks of what a user gives: it is accepted, or refused with its name, its value and the remedy."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from gpmi.types import Array


def number(name: str, value: Any, remedy: str = "give one finite number") -> float:
    """A finite float from a real number of any type, not from a bool, a string or an array."""
    plain = value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value
    if isinstance(plain, bool | np.bool_) or not isinstance(plain, Real) or hasattr(value, "mask"):
        raise TypeError(f"{name} is {value!r}; {remedy}")
    try:
        result = float(plain)
    except OverflowError:
        result = math.inf
    except (TypeError, ValueError):  # a timedelta64 calls itself a whole number
        raise TypeError(f"{name} is {value!r}; {remedy}") from None
    if not math.isfinite(result):
        raise ValueError(f"{name} is {value!r}; {remedy}")
    return result


def positive(name: str, value: Any) -> float:
    """A finite number above 0."""
    result = number(name, value, remedy := "give one positive, finite number")
    if result <= 0.0:
        raise ValueError(f"{name} is {value!r}; {remedy}")
    return result


def variance(name: str, value: Any) -> float:
    """A finite number, 0 or larger."""
    result = number(name, value, remedy := "it is a variance: give one finite number, 0 or larger")
    if result < 0.0:
        raise ValueError(f"{name} is {value!r}; {remedy}")
    return result


def probability(name: str, value: Any, remedy: str = "it is a probability: give a number between 0 and 1") -> float:
    """A number above 0 and below 1."""
    result = number(name, value, remedy)
    if not 0.0 < result < 1.0:
        raise ValueError(f"{name} is {value!r}; {remedy}")
    return result


def whole(name: str, value: Any, least: int) -> int:
    """A whole number of at least `least`."""
    if isinstance(value, bool | np.timedelta64) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} is {value!r}; give a whole number")
    if value < least:
        raise ValueError(f"{name} is {value}; give a whole number of at least {least}")
    return int(value)


def flag(name: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} is {value!r}; give True or False")
    return bool(value)


def one_of(name: str, value: Any, words: Sequence[str]) -> str:
    """One of several words."""
    if not isinstance(value, str) or value not in words:
        raise ValueError(f"{name} is {value!r}; give one of {', '.join(map(repr, words))}")
    return value


def points(name: str, value: Any, d: int | None) -> Array:
    """Points as a finite (m, d) array, or one point as (1, d); with d None any number of coordinates will do."""
    array = np.asarray(value, dtype=float)
    if array.ndim == 1:
        array = array[None, :]
    if array.ndim != 2 or (d is not None and array.shape[1] != d):
        want = "d" if d is None else str(d)
        raise ValueError(f"{name} has shape {np.shape(value)}; give an array of shape (m, {want}), a point per row")
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{name} has a coordinate that is not finite; leave out such points")
    return array


def shape(value: Any) -> tuple[int, ...] | None:
    """The shape of an array or of nested lists; None for anything else, ragged lists included."""
    if not isinstance(value, np.ndarray | list | tuple):
        return None
    try:
        return np.shape(value)
    except ValueError:
        return None


def writable_folder(name: str, value: Path, folder: Path) -> None:
    """Refuse the path `value` if no file can be made in `folder`, which is made if it is not there yet."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        reason = error.strerror or str(error)
        raise ValueError(
            f"{name} is {str(value)!r}, but {str(folder)!r} cannot be written to ({reason}); give another"
        ) from error
