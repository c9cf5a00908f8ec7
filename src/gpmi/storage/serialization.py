"""The description of a study as JSON: its space, its goal and the other arguments of its `Optimizer`. Never pickle.

Functions and classes of the user are refused when a study is created: a later process could not load them. Numbers are
written with all their digits, so they come back bit for bit.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, NamedTuple, get_args

import numpy as np

from gpmi import policies
from gpmi._support.checks import number, shape, shown
from gpmi._support.types import Point
from gpmi.gp import kernels
from gpmi.optimizer import Optimizer
from gpmi.space import (
    Candidates,
    Constant,
    Features,
    Fidelity,
    Forbidden,
    NumberRange,
    Options,
    Parameter,
    Parameters,
    Space,
    is_matrix_form,
)
from gpmi.trials.given_bounds import given_bounds
from gpmi.trials.named_goals import NamedGoals, given_goals
from gpmi.trials.sources import SourceValue, sources_of

PARAMETERS: dict[str, Any] = {kind.__name__: kind for kind in (*get_args(Parameter), Constant, Fidelity)}
KERNELS = {kind.__name__: kind for kind in (kernels.RBF, kernels.Matern, kernels.Linear, kernels.Sum, kernels.Product)}
ABSTRACT = (policies.Policy, policies.JointPolicy, policies.Utility)  # a user subclasses them
POLICIES = {
    name: kind
    for name, kind in vars(policies).items()
    if isinstance(kind, type) and issubclass(kind, policies.Policy) and kind not in ABSTRACT
}
DIFFERENCES = 3  # parameters that differ, of which a message tells at most; our choice
# The arguments of an Optimizer that a study stores, with their defaults.
DEFAULTS = {
    name: parameter.default
    for name, parameter in inspect.signature(Optimizer).parameters.items()
    if name not in ("self", "space")
}


def text_of(value: Any) -> str:
    """Return JSON on one line, the same text for equal values."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def is_unicode(text: str) -> bool:
    """Whether a string can be encoded, so that it can be stored and shown: it has no lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


# Points


def point_to_json(space: Space, x: Point) -> Any:
    """Return a point of the space as a list of numbers or a dict."""
    point = space.canonical(x)
    if isinstance(point, np.ndarray):
        return point.tolist()
    return {name: plain(name, value) for name, value in point.items()}


def point_from_json(written: Any) -> Point:
    """Return a point; the space checks what it means."""
    if isinstance(written, dict):
        return dict(written)
    if not isinstance(written, list):
        raise TypeError(f"x is {shown(written)}; give a list or an object")
    return np.array([number(f"x[{i}]", value) for i, value in enumerate(written)], dtype=float)


# Descriptions


def described(space: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the description of a study: `space` and the given arguments of `Optimizer`, as JSON."""
    given = {name: value for name, value in checked_names(options).items() if value is not None}
    goals = given.get("goals")
    options_to_json = {name: option_to_json(name, given[name], space, goals) for name in given}
    written = {"space": space_to_json(space), **options_to_json}
    for name, value in written.items():
        if not is_unicode(json.dumps(value, ensure_ascii=False)):
            raise ValueError(
                f"{name} has a string that is not valid Unicode, which a study cannot store; give another one"
            )
    return written


def checked_names(options: Mapping[str, Any]) -> Mapping[str, Any]:
    for name in options:
        if name not in DEFAULTS:
            raise TypeError(
                f"{name} is not an argument of a study; valid arguments are {', '.join(['space', *DEFAULTS])}"
            )
    return options


def arguments(description: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `Optimizer` for a description."""
    read: dict[str, Callable[[Any], Any]] = {
        "space": space_from_json,
        "kernel": _kernel_from_json,
        "policy": lambda policy: _build(policy, POLICIES),
        "constraints": lambda constraints: [_constraint_from_json(constraint) for constraint in constraints],
        "x0": lambda points: [point_from_json(point) for point in points],
        "goals": NamedGoals.from_json,
        "earlier": _earlier_from_json,
    }
    return {name: read.get(name, lambda same: same)(value) for name, value in description.items()}


class Contradiction(NamedTuple):
    """How an argument differs from that of a study."""

    difference: str
    about: str = ""  # what stands in front for those who do not know what differs

    def __str__(self) -> str:
        return f"{self.about}{self.difference}"


def contradiction(description: Mapping[str, Any], space: Any, options: Mapping[str, Any]) -> Contradiction | None:
    """Say which argument differs from that of the study; None if all agree. An argument that is None was not given."""
    if space is not None and text_of(_essence(space_to_json(space))) != text_of(_essence(description["space"])):
        ours, theirs = (_without_features(written) for written in (space_to_json(space), description["space"]))
        if text_of(_essence(ours)) == text_of(_essence(theirs)):
            return Contradiction(
                "the features of the space differ from those of the study; open it without a space, or with the same"
            )
        difference = _difference(Space.of(space), Space.of(space_from_json(description["space"])))
        return Contradiction(difference, "space is another one: ")
    about = space_from_json(description["space"])
    for name, value in checked_names(options).items():
        if value is None or name in ("budget", "units"):  # units are labels
            continue
        stored = description[name] if name in description else DEFAULTS[name]
        if name == "constraints" and not stored and isinstance(value, list) and not value:
            continue  # two ways to say that there are none
        if name == "policy" and stored is not None:
            stored = _fields(name, _build(stored, POLICIES), POLICIES)  # without fields that the class no longer has
        given = option_to_json(name, value, about, _goals_of(description, options))
        if name == "goals" and stored is not None:
            if dict(NamedGoals.of(value)) != dict(NamedGoals.from_json(stored)):  # in any order
                return Contradiction(
                    f"goals is {shown(value)}, but that of the study is {NamedGoals.from_json(stored)}"
                )
        elif name == "earlier" and stored is None and not given:
            continue
        elif name == "earlier" and text_of(given) != text_of(stored):
            names = ", ".join(map(repr, stored or ()))
            return Contradiction(f"earlier has other values than those that the study has stored of {names}")
        elif text_of(given) != text_of(stored):
            return Contradiction(f"{name} is {shown(value)}, but that of the study is {shown(stored)}")
    return None


def _difference(ours: Space, theirs: Space) -> str:
    """Say which parameters of two spaces differ, and how."""
    if not isinstance(ours, Parameters) or not isinstance(theirs, Parameters):
        return f"it is {ours!r}, but that of the study is {theirs!r}"
    here, there = (dict(zip(_names(space), space.parameters, strict=True)) for space in (ours, theirs))
    differences = [f"{name} is not in the study" for name in here if name not in there]
    differences += [f"{name} is missing, which the study has" for name in there if name not in here]
    for name in (name for name in here if name in there):
        pair = [_essential_fields(_parameter_to_json(name, parameter)) for parameter in (here[name], there[name])]
        if text_of(pair[0]) != text_of(pair[1]):
            mine, other = _briefly(here[name], there[name])
            differences.append(f"{name} is {mine}, but that of the study is {other}")
    if not differences:
        return f"its parameters are {', '.join(here)}, but those of the study are {', '.join(there)}, in this order"
    others = f", and {len(differences) - DIFFERENCES} more differences" if len(differences) > DIFFERENCES else ""
    return "; ".join(differences[:DIFFERENCES]) + others


def _briefly(*parameters: Any) -> list[str]:
    """Format two parameters: by their bounds or options if these differ, otherwise in full."""
    short = [_values_in_short(parameter) for parameter in parameters]
    same_kind = type(parameters[0]) is type(parameters[1])
    return short if same_kind and short[0] != short[1] else [repr(parameter) for parameter in parameters]


def _values_in_short(parameter: Any) -> str:
    """Return the bounds or the options of a parameter; all of it if it has neither."""
    match parameter.domain:
        case NumberRange(lo=lo, hi=hi):
            return f"[{lo:.12g}, {hi:.12g}]"
        case Options(values):
            return shown(list(values))
    return repr(parameter)


def _goals_of(description: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    """Return the goals that are given, or those of the study."""
    stored = description.get("goals")
    return options.get("goals") or (None if stored is None else NamedGoals.from_json(stored))


def option_to_json(name: str, value: Any, space: Any, goals: Any = None) -> Any:
    """Return one argument of `Optimizer` as JSON; the space has a separate function. `earlier` depends on the goals."""
    if name == "kernel":
        return _kernel_to_json(value)
    if name == "policy":
        return _fields(name, value, POLICIES)
    if name == "constraints":
        several = list(value) if isinstance(value, list | tuple) and not is_matrix_form(value) else [value]
        return [_constraint_to_json(constraint) for constraint in several]
    if name == "x0":
        about = Space.of(space)
        is_point = isinstance(value, Mapping) or (shape(value) is not None and len(shape(value) or ()) == 1)
        return [point_to_json(about, x) for x in ([value] if is_point and not _dicts(value) else value)]
    if name == "goals":
        return NamedGoals.of(value).to_json()
    if name == "earlier":
        return _earlier_to_json(value, Space.of(space), goals)
    if name == "bounds":
        by_output = isinstance(value, Mapping)
        return {key: given_bounds(name, pair).to_json() for key, pair in value.items()} if by_output else _pair(value)
    if name == "mean":
        raise ValueError(
            f"mean is {shown(value)}, a function, which a study cannot store; subtract it in f, and leave out mean"
        )
    return plain(name, value)


def _pair(value: Any) -> list[float | None]:
    return given_bounds("bounds", value).to_json()


def _dicts(value: Any) -> bool:
    return not isinstance(value, Mapping) and any(isinstance(x, Mapping) for x in value)


def plain(name: str, value: Any) -> Any:
    """Return a number, a string, a bool, None, or lists and dicts of them; refuse anything else."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, np.ndarray | list | tuple):
        return [plain(name, item) for item in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: plain(name, item) for key, item in value.items()}
    raise ValueError(
        f"{name} has {shown(value)}, which cannot be stored in a study; give numbers, strings, bools or None, "
        "and convert them inside f"
    )


# Spaces


def space_to_json(spec: Any) -> dict[str, Any]:
    """Return a space as JSON, without its constraints, which are a separate argument."""
    space = Space.of(spec)
    if isinstance(space, Parameters):
        if space.constraints.texts:
            raise ValueError("space has constraints of its own; give them to the study, as constraints=")
        return {
            "names": None if space.names is None else list(space.names),
            "parameters": [
                _parameter_to_json(name, parameter)
                for name, parameter in zip(_names(space), space.parameters, strict=True)
            ],
        }
    assert isinstance(space, Candidates)
    if space.constraints.texts:
        raise ValueError("space has constraints of its own; give them to the study, as constraints=")
    if space.names is None:
        return {"rows": np.asarray(space.table).tolist()}
    columns = {name: [plain(f"column {name!r}", row[name]) for row in space.table] for name in space.names}
    labels = [_label(row.label) for row in space.table]
    written = {"names": list(space.names), "columns": columns, "labels": labels}  # names: `text_of` sorts the columns
    choices = zip(space.names, space.choices, strict=True)
    described = {
        name: choice.features.to_json()
        for name, choice in choices
        if choice is not None and choice.features is not None
    }
    return {**written, "features": described} if described else written


def space_from_json(written: Mapping[str, Any]) -> Any:
    """Return what `Space.of` takes."""
    if "parameters" in written:
        parameters = tuple(_parameter_from_json(fields) for fields in written["parameters"])
        return Parameters(parameters, None if written["names"] is None else tuple(written["names"]))
    if "rows" in written:
        return np.array(written["rows"], dtype=float)
    columns = written["columns"]
    names = written.get("names", columns)  # a study that was written without names has its columns sorted
    features = {name: Features.from_json(table) for name, table in written.get("features", {}).items()}
    return Candidates.from_columns({name: columns[name] for name in names}, written["labels"], features)


def _names(space: Parameters) -> tuple[str, ...]:
    return space.names or tuple(f"x[{i}]" for i in range(len(space.parameters)))


def _parameter_to_json(name: str, parameter: Any) -> dict[str, Any]:
    """Return the kind and the fields of a parameter; refuse options that a study cannot store."""
    for option in () if parameter.choice is None else parameter.choice.options:
        if isinstance(plain(name, option), list | dict):
            raise ValueError(
                f"{name} has the option {shown(option)}, which cannot be stored in a study; give strings or "
                "numbers, and convert them inside f"
            )
    values = {key: plain(name, value) for key, value in parameter.to_json().items()}
    return {"kind": type(parameter).__name__, **values}


def _parameter_from_json(written: Mapping[str, Any]) -> Any:
    return PARAMETERS[written["kind"]].from_json(_without_kind(written))


def _without_features(written: Mapping[str, Any]) -> dict[str, Any]:
    """Return a space without the descriptors of its options."""
    plain_space = {key: value for key, value in written.items() if key != "features"}
    if "parameters" in plain_space:
        parts = plain_space["parameters"]
        plain_space["parameters"] = [{k: v for k, v in part.items() if k != "features"} for part in parts]
    return plain_space


def _essence(written: Mapping[str, Any]) -> dict[str, Any]:
    """Return what makes two spaces different: without units of parameters and the order of a table's columns."""
    if "parameters" not in written:
        return {key: value for key, value in written.items() if key != "names"}
    return {**written, "parameters": [_essential_fields(parameter) for parameter in written["parameters"]]}


def _essential_fields(written: Mapping[str, Any]) -> dict[str, Any]:
    """Return a parameter without defaults, which an earlier version may not have, and without display-only fields."""
    declared = {field.name: field for field in fields(PARAMETERS[written["kind"]])}
    values = _without_kind(written).items()
    essential = {name: value for name, value in values if declared[name].compare and value != declared[name].default}
    return {"kind": written["kind"], **essential}


def _label(label: Any) -> Any:
    value = label.item() if isinstance(label, np.generic) else label
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise ValueError(
        f"the candidates have the label {shown(label)}, which cannot be stored in a study; "
        "call reset_index() on the DataFrame, or label its rows by strings or numbers"
    )


# Earlier studies: their values are stored with the study, which then does without them


def _earlier_to_json(value: Any, space: Space, goals: Any) -> dict[str, list[list[Any]]]:
    """Return the values of named sources, those outside the space too: [x, y, noise_var, repeats] or with outputs."""
    sources = sources_of(value, space, given_goals(goals))
    return {source.name: [_value_to_json(source.name, value) for value in source.values] for source in sources}


def _value_to_json(name: str, value: SourceValue) -> list[Any]:
    x = value.x.tolist() if isinstance(value.x, np.ndarray) else value.x
    return [plain(f"earlier[{name!r}]", dict(part) if isinstance(part, Mapping) else part) for part in (x, *value[1:])]


def _earlier_from_json(written: Mapping[str, Any]) -> dict[str, list[SourceValue]]:
    return {
        name: [SourceValue(point_from_json(x), *others) for x, *others in values] for name, values in written.items()
    }


# Kernels, policies, constraints


def _fields(name: str, value: Any, classes: Mapping[str, Any]) -> dict[str, Any]:
    if classes.get(type(value).__name__) is not type(value):
        raise ValueError(
            f"{name} is {shown(value)}, a class of your own, which a study cannot store; "
            f"give one of {', '.join(sorted(classes))}, or run without a study"
        )
    written = {}
    for field in fields(value):
        inner = getattr(value, field.name)
        nested = type(inner).__name__ in classes
        written[field.name] = _fields(name, inner, classes) if nested else plain(name, inner)
    return {"kind": type(value).__name__, **written}


def _build(written: Any, classes: Mapping[str, Any]) -> Any:
    """Build a kernel or a policy. A field that the class no longer has, such as `Find.last`, is left out."""
    kind = classes[written["kind"]]
    values = {field.name: written[field.name] for field in fields(kind) if field.name in written}
    return kind(**{name: _build(v, classes) if isinstance(v, dict) else v for name, v in values.items()})


def _kernel_to_json(value: Any) -> dict[str, Any]:
    """Return a kernel, or kernels by output, as JSON."""
    if not isinstance(value, Mapping):
        return _fields("kernel", value, KERNELS)
    return {
        "outputs": {
            name: None if kernel is None else _fields("kernel", kernel, KERNELS) for name, kernel in value.items()
        }
    }


def _kernel_from_json(written: Any) -> Any:
    if "outputs" not in written:
        return _build(written, KERNELS)
    return {name: None if kernel is None else _build(kernel, KERNELS) for name, kernel in written["outputs"].items()}


def _without_kind(written: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in written.items() if name != "kind"}


def _constraint_to_json(item: Any) -> Any:
    if isinstance(item, str):
        return item
    if isinstance(item, Forbidden):
        return {"forbidden": plain("constraints", item.values)}
    if is_matrix_form(item):
        matrix, lower, upper = item if isinstance(item, tuple) else (item.A, item.lb, item.ub)
        dense = matrix.toarray() if hasattr(matrix, "toarray") else matrix
        return {"linear": [np.asarray(part, dtype=float).tolist() for part in (dense, lower, upper)]}
    raise ValueError(
        f"constraints has {shown(item)}, which a study cannot store; give strings such as 'a + b <= 1', (A, lb, ub) or "
        "gpmi.Forbidden(...), or let f report a failure"
    )


def _constraint_from_json(written: Any) -> Any:
    if isinstance(written, str):
        return written
    return Forbidden(**written["forbidden"]) if "forbidden" in written else tuple(map(np.array, written["linear"]))
