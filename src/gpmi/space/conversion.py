"""Convert what a user writes into parameters: bounds, or a dict by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real as RealNumber
from typing import Any

import numpy as np

from gpmi._support import checks
from gpmi._support.refusals import reworded
from gpmi._support.types import Event
from gpmi.space.choice import Choice
from gpmi.space.fidelity import Fidelity
from gpmi.space.fixed import Constant
from gpmi.space.integer import Int
from gpmi.space.parameters import Parameter
from gpmi.space.real import Real


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
        has_fidelity = any(isinstance(parameter, Fidelity) for parameter in parameters.values())
        only = "a fidelity only" if has_fidelity else "constants only"
        raise ValueError(f"space is {checks.shown(dict(spec))}, {only}; give a parameter that varies")
    return parameters


def two_option_events(spec: Mapping[Any, Any]) -> tuple[Event, ...]:
    """Return an event for each list of two numbers. They are two options, but perhaps an interval was meant."""
    events = []
    for name, value in spec.items():
        if isinstance(value, list) and len(value) == 2 and all(map(_is_number, value)):
            lo, hi = sorted(value)
            meaning = f"{name!r} = [{lo}, {hi}] means the two options {lo} and {hi}"
            remedy = f"write ({lo}, {hi}) for an interval, or Choice([{lo}, {hi}]) to make this explicit"
            events.append(Event("two options", f"{meaning}; {remedy}"))
    return tuple(events)


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
