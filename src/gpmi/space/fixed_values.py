"""The values that a user fixes for some queries: read, validated, and set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpmi._support import checks
from gpmi._support.refusals import RefusedValue, reworded
from gpmi.space.conditions.conditions import ParentCondition, condition_text
from gpmi.space.fixed import Constant, FixedParameter
from gpmi.space.layout import Layout


def fixed_by_number(fixed: Any, names: Sequence[str] | None, count: int) -> dict[int, Any]:
    """Return the values of a user's `fixed` by the numbers of their parameters, in the order of the parameters."""
    if not isinstance(fixed, Mapping):
        example = {names[0]: "..."} if names else {0: "..."}
        raise TypeError(f"fixed is {checks.shown(fixed)}; give a dict of fixed values, as in {example}")
    by_number = {}
    for key, value in fixed.items():
        if names is not None:
            if not isinstance(key, str) or key not in names:
                sentence = f"fixed names {checks.shown(key)}, which is not a parameter; there are {list(names)}"
                raise RefusedValue(sentence, "unknown-parameter", name=key, names=names)
            by_number[names.index(key)] = value
        else:
            whole = isinstance(key, int | np.integer) and not isinstance(key, bool)
            if not whole or not 0 <= key < count:
                raise ValueError(
                    f"fixed has the key {checks.shown(key)}; a point of this space is an array: give the numbers of "
                    f"its coordinates, 0 to {count - 1}"
                )
            by_number[int(key)] = value
    return dict(sorted(by_number.items()))


def fix(layout: Layout, values: Mapping[int, Any]) -> dict[int, FixedParameter | Constant]:
    """Return the parameters of a layout with these numbers, each fixed at its value.

    Raise if a value is not one of the parameter, or if the parameter is not always active. A parameter under a
    condition can be fixed only together with the parameters that it depends on, at values that make it active.
    """
    parts: dict[int, FixedParameter | Constant] = {}
    for j, value in values.items():
        encoding = layout.encodings[j]
        assert not isinstance(encoding, FixedParameter)
        try:
            row = np.array(encoding.encode(layout.labels[j], value))
        except (TypeError, ValueError) as error:
            raise reworded(error, f"fixed: {error}") from None
        if isinstance(encoding, Constant):
            parts[j] = encoding
        else:
            parts[j] = FixedParameter(encoding, encoding.canonical(value), row)
    for j in parts:
        if not all(_holds(layout, condition, parts.get(condition.parent)) for condition in layout.conditions[j]):
            text = condition_text(layout.parameters[j].when)
            sentence = f"fixed has {layout.labels[j]!r}, which is active only where {text}; fix that as well"
            raise RefusedValue(sentence, "fixed-inactive", name=layout.labels[j], condition=layout.parameters[j].when)
    return parts


def _holds(layout: Layout, condition: ParentCondition, fixed: FixedParameter | Constant | None) -> bool:
    """Whether a condition holds at every point where its parent is fixed like this."""
    if isinstance(layout.encodings[condition.parent], Constant):
        return 0 in condition.numbers
    return isinstance(fixed, FixedParameter) and fixed.level in condition.numbers
