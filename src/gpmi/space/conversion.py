"""Convert what a user writes: bounds and dicts into parameters, tables into columns, points into values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from numbers import Integral
from numbers import Real as RealNumber
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpmi._support import checks
from gpmi._support.refusals import RefusedValue, reworded
from gpmi._support.types import Array, Event, Numbers, Point
from gpmi.space.fidelity import Fidelity
from gpmi.space.fixed import Constant
from gpmi.space.options import equal_options, option_key
from gpmi.space.parameters import LARGEST, MOST_OPTIONS, Choice, Int, Parameter, Real

# Parameters


def box_parameters(bounds: Sequence[Any]) -> tuple[Real, ...]:
    """Return one Real for each pair (lo, hi)."""
    if len(bounds) == 0:
        raise ValueError("space is empty; give at least one pair (lo, hi)")
    return tuple(_real(f"bounds[{i}]", pair, i) for i, pair in enumerate(bounds))


def named_parameters(spec: Mapping[Any, Any]) -> dict[str, Parameter | Fidelity | Constant]:
    """Return the parameters of a dict by name, in the order of the dict."""
    if len(spec) == 0:
        raise ValueError("space is an empty dict; give at least one parameter")
    for name in spec:
        if not isinstance(name, str):
            raise TypeError(f"parameter name {checks.shown(name)} is not a string; name parameters by strings")
    parameters = {name: _parameter(name, value) for name, value in spec.items()}
    if all(isinstance(parameter, Constant | Fidelity) for parameter in parameters.values()):
        only = (
            "constants only" if not any(isinstance(one, Fidelity) for one in parameters.values()) else "a fidelity only"
        )
        raise ValueError(f"space is {checks.shown(dict(spec))}, {only}; give a parameter that varies")
    return parameters


def two_option_events(spec: Mapping[Any, Any]) -> tuple[Event, ...]:
    """Return an event for each list of two numbers. They are two options, but perhaps an interval was meant."""
    found = []
    for name, value in spec.items():
        if isinstance(value, list) and len(value) == 2 and all(map(_is_number, value)):
            lo, hi = sorted(value)
            meaning = f"{name!r} = [{lo}, {hi}] means the two options {lo} and {hi}"
            remedy = f"write ({lo}, {hi}) for an interval, or Choice([{lo}, {hi}]) to make this explicit"
            found.append(Event("two options", f"{meaning}; {remedy}"))
    return tuple(found)


def _is_number(value: Any) -> bool:
    return isinstance(value, RealNumber) and not isinstance(value, bool | np.bool_ | np.timedelta64)


def _parameter(name: str, value: Any) -> Parameter | Fidelity | Constant:
    """Return a Real, Int, Choice or Fidelity as it is; convert a tuple to Real, a list to Choice, a range to Int."""
    if isinstance(value, Parameter | Fidelity):
        return value
    if isinstance(value, np.generic) and value.dtype.kind in "biufU":
        value = value.item()
    if value is None or isinstance(value, str | bool | int):
        return Constant(value)
    if isinstance(value, float):
        return Constant(checks.number(f"parameter {name!r}", value))
    if isinstance(value, range):
        return _range(name, value)
    if isinstance(value, tuple):
        if any(end is None or isinstance(end, str | bool | np.bool_) for end in value):
            text = checks.shown(value)
            raise TypeError(f"parameter {name!r} is {text}; give a list for options, a tuple (lo, hi) for a number")
        return _real(f"parameter {name!r}", value, name)
    if isinstance(value, list):
        try:
            return Choice(tuple(value))
        except (TypeError, ValueError) as error:
            raise reworded(error, f"parameter {name!r}: {error}", parameter=name) from None
    text = checks.shown(value)
    raise TypeError(
        f"parameter {name!r} is {text}; give Real, Int, a tuple (lo, hi), a list of options, or a value for a constant"
    )


def _range(name: str, value: range) -> Int | Constant:
    """Return the Int of a range; a Constant if it has one number."""
    if len(value) == 0:
        raise ValueError(f"parameter {name!r} is {value!r}, which is empty; give a range of at least one number")
    lo, hi = min(value[0], value[-1]), max(value[0], value[-1])
    try:
        return Constant(lo) if lo == hi else Int(lo, hi, step=abs(value.step))
    except (TypeError, ValueError) as error:
        raise reworded(error, f"parameter {name!r}: {error}", parameter=name) from None


def _real(label: str, pair: Any, parameter: str | int) -> Real:
    if isinstance(pair, Real):
        return pair
    pair_like = isinstance(pair, list | tuple) or (isinstance(pair, np.ndarray) and pair.ndim == 1)
    if pair_like and len(pair) == 2:
        try:
            return Real(pair[0], pair[1])
        except (TypeError, ValueError) as error:
            raise reworded(error, f"{label}: {error}", parameter=parameter) from None
    raise TypeError(f"{label} is {checks.shown(pair)}; give a pair (lo, hi), or a dict for parameters of other kinds")


# Tables of candidates


def array_table(array: NDArray[Any]) -> Array:
    """Return the candidates (m, d) of an array as a read-only copy."""
    if array.ndim != 2:
        hint = "; reshape(-1, 1) makes a column of it" if array.ndim == 1 else ""
        raise ValueError(f"candidates have shape {array.shape}; give shape (m, d), one candidate per row{hint}")
    if array.size == 0:
        raise ValueError(f"candidates have shape {array.shape}; give at least one candidate and one coordinate")
    if np.ma.isMaskedArray(array):
        raise TypeError("candidates is a masked array; leave out the masked rows and give an ordinary array")
    if array.dtype.kind in "iu" and not -LARGEST <= int(array.min()) <= int(array.max()) <= LARGEST:
        raise ValueError("candidates have whole numbers above 2**53, which floating point cannot tell apart")
    if array.dtype.kind not in "fiu":
        raise TypeError(f"candidates have dtype {array.dtype}; give numbers, or a DataFrame for mixed columns")
    table = np.array(array, dtype=float) + 0.0  # -0.0 is 0.0
    for j, column in enumerate(table.T):
        _check_column(f"column {j} of the candidates", column)
    table.flags.writeable = False
    return table


class Column(NamedTuple):
    """One column of a table."""

    values: list[Any]  # as plain Python values, (m,)
    choice: Choice | None  # whose options are the values; None for a column of numbers
    numbers: Array | Numbers  # the numbers, or the position of each value among the options of the choice, (m,)


def frame_columns(frame: Any, features: Mapping[str, Any] | None = None) -> dict[str, Column]:
    """Return the columns of a DataFrame by name. `features` are the descriptors of the options of some of them."""
    names = tuple(frame.columns)
    if len(frame) == 0 or len(names) == 0:
        raise ValueError(f"candidates have shape {frame.shape}; give at least one row and one column")
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"column name {checks.shown(name)} is not a string; name columns by strings")
    for name, times in Counter(names).items():
        if times > 1:
            raise ValueError(f"column {name!r} occurs twice in the DataFrame; parameter names must differ")
    return named_columns({name: frame[name].tolist() for name in names}, features)


def named_columns(columns: Mapping[str, Sequence[Any]], features: Mapping[str, Any] | None = None) -> dict[str, Column]:
    """Return the columns of a table by name. `features` are the descriptors of the options of some of them."""
    lengths = {len(values) for values in columns.values()}
    if not columns or 0 in lengths:
        raise ValueError("the candidates have no rows or no columns; give at least one of each")
    if len(lengths) > 1:
        raise ValueError(f"the columns of the candidates have {sorted(lengths)} values; give the same number in each")
    given = _checked_features(features, columns)
    return {
        name: _column(f"column {name!r} of the candidates", list(values), given.get(name))
        for name, values in columns.items()
    }


def _checked_features(features: Mapping[str, Any] | None, columns: Mapping[str, Sequence[Any]]) -> Mapping[str, Any]:
    """Refuse descriptors that are not given by the names of columns."""
    if features is None:
        return {}
    if not isinstance(features, Mapping) or hasattr(features, "iloc"):
        remedy = "give the descriptors of each column by its name, {'ligand': DataFrame}"
        raise TypeError(f"features is {checks.shown(features)}; {remedy}")
    for name in features:
        if name not in columns:
            raise ValueError(f"features has {checks.shown(name)}, which is no column; there are {list(columns)}")
    return features


def _column(label: str, values: list[Any], features: Any = None) -> Column:
    """Read a column: as numbers if all values are numbers, otherwise, or with descriptors, as a choice. O(m)."""
    kinds = set(map(type, values))
    if features is None and all(
        issubclass(kind, RealNumber) and not issubclass(kind, bool | np.timedelta64) for kind in kinds
    ):
        return Column(values, None, _numbers(label, values))
    position: dict[tuple[bool, Any], int] = {}
    try:
        positions = np.array([position.setdefault(option_key(value), len(position)) for value in values], dtype=np.intp)
    except TypeError:
        raise TypeError(
            f"{label} has values such as {checks.shown(values[0])}; give numbers, strings or bools"
        ) from None
    for _, value in position:
        if not equal_options(value, value):
            row = next(row for row, other in enumerate(values) if other is value)
            raise ValueError(f"{label} is {value!r} in row {row}; leave out candidates with missing values")
    if len(position) > MOST_OPTIONS:
        raise ValueError(
            f"{label} has {len(position)} different words, too many for a model to learn anything; leave out "
            f"the column if it names the candidates, or give numbers or at most {MOST_OPTIONS} words that describe them"
        )
    try:
        return Column(values, Choice(tuple(value for _, value in position), features=features), positions)
    except (TypeError, ValueError) as error:
        raise reworded(error, f"{label}: {error}") from None


def _numbers(label: str, values: list[Any]) -> Array:
    try:
        numbers = np.array(values, dtype=float) + 0.0  # -0.0 is 0.0
    except OverflowError:
        raise ValueError(f"{label} has a number too large for floating point; give it in other units") from None
    _check_column(label, numbers)
    large = np.flatnonzero(np.abs(numbers) >= LARGEST)
    if any(isinstance(values[row], Integral) and abs(int(values[row])) > LARGEST for row in large):
        raise ValueError(f"{label} has whole numbers above 2**53, which floating point cannot tell apart")
    return numbers


def _check_column(label: str, column: Array) -> None:
    if not np.all(np.isfinite(column)):
        row = int(np.flatnonzero(~np.isfinite(column))[0])
        raise ValueError(f"{label} is {column[row]} in row {row}; leave out candidates that are not finite")


# Points


def as_point(point: Point) -> Point:
    """Return a pandas Series as a dict of its values, and anything else unchanged."""
    is_series = hasattr(point, "iloc") and hasattr(point, "items") and getattr(point, "ndim", None) == 1
    return dict(point.items()) if is_series else point


def values_of(point: Point, names: tuple[str, ...] | None, count: int) -> list[Any]:
    """Return the values of a point: a dict with exactly these names, or without names an array of shape (count,)."""
    series = as_point(point)
    if series is not point:
        point = list(series.values()) if names is None else series
    if names is None:
        if checks.shape(point) != (count,):
            raise ValueError(f"x is {checks.shown(point)}; a point of this space is an array of shape ({count},)")
        return point.tolist() if type(point) is np.ndarray and point.dtype == float else list(point)
    if not isinstance(point, Mapping):
        raise TypeError(f"x is {checks.shown(point)}; a point of this space is a dict with the keys {list(names)}")
    missing, extra = [k for k in names if k not in point], [k for k in point if k not in names]
    if missing or extra:
        sentence = f"x has wrong keys (missing {missing}, unknown {extra}); it needs exactly {list(names)}"
        raise RefusedValue(sentence, "wrong-keys", missing=missing, unknown=extra)
    return [point[name] for name in names]


def labels_of(names: tuple[str, ...] | None, count: int) -> Sequence[str]:
    """Return what messages call the values of a point: their names, or x[0], x[1], ..."""
    return names or [f"x[{i}]" for i in range(count)]
