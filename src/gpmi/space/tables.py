"""Tables of candidates: an array, a DataFrame or columns by name, validated and read as columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from numbers import Integral
from numbers import Real as RealNumber
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpmi._support import checks
from gpmi._support.refusals import reworded
from gpmi._support.types import Array, Numbers
from gpmi.space.choice import MOST_OPTIONS, Choice
from gpmi.space.fields import LARGEST
from gpmi.space.options import equal_options, option_key


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
