"""The values that a trial of Optuna reports at its steps, for one objective or for several.

With one objective they are Optuna's intermediate values. Optuna takes none with several objectives. Then each step is a
system attribute of its own, because some databases limit the length of an attribute.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, TypeAlias

import optuna
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial

from gpmi._support import checks
from gpmi.integrations.optuna.private_api import storage_of, trial_id_of

KEY = "gpmi:step:"  # system attribute, with the step: the values there, in the order of the directions

Values: TypeAlias = tuple[float, ...]  # one for each objective


def reports_of(trial: FrozenTrial) -> dict[int, Values]:
    """Return the reported values by step, in the order of the steps."""
    reports: dict[int, Values] = {step: (value,) for step, value in trial.intermediate_values.items()}
    for name, values in trial.system_attrs.items():
        if name.startswith(KEY):
            reports[int(name.removeprefix(KEY))] = tuple(float(value) for value in values)
    return dict(sorted(reports.items()))


def last_values(trial: FrozenTrial) -> list[float] | None:
    """Return the values of the last step that a trial with several objectives reported; None if there is none."""
    steps = [int(name.removeprefix(KEY)) for name in trial.system_attrs if name.startswith(KEY)]
    return None if not steps else [float(value) for value in trial.system_attrs[f"{KEY}{max(steps)}"]]


def add_report(trial: optuna.Trial, step: Any, values: Any) -> None:
    """Store the values of a step; with one objective as Optuna does it."""
    count = len(trial.study.directions)
    given = _checked_values(values, count)
    number = checks.whole("step", step, 0)
    if count == 1:
        trial.report(given[0], number)
        return
    if f"{KEY}{number}" in latest(trial).system_attrs:
        warnings.warn(f"trial {trial.number} has reported step {number} before; the first values count", stacklevel=3)
        return
    storage_of(trial.study).set_trial_system_attr(trial_id_of(trial), f"{KEY}{number}", list(given))  # type: ignore[arg-type]


def latest(trial: optuna.Trial) -> FrozenTrial:
    """Return a running trial as the storage has it now."""
    return storage_of(trial.study).get_trial(trial_id_of(trial))  # type: ignore[arg-type]


def is_usable(values: Values) -> bool:
    """Whether a model can learn from these values."""
    return all(abs(value) <= checks.LARGEST for value in values)


def is_hopeless(values: Values, directions: Sequence[StudyDirection]) -> bool:
    """Whether a value is not a number, or infinitely bad."""
    signs = (1.0 if direction == StudyDirection.MAXIMIZE else -1.0 for direction in directions)
    return not all(sign * value >= -checks.LARGEST for sign, value in zip(signs, values, strict=False))


def _checked_values(values: Any, count: int) -> Values:
    remedy = f"give {count} numbers, in the order of the directions" if count > 1 else "give a number"
    try:
        given = tuple(float(value) for value in (values if checks.shape(values) else [values]))
    except (TypeError, ValueError):
        raise TypeError(f"values is {checks.shown(values)}; {remedy}") from None
    if len(given) != count:
        raise ValueError(f"values is {checks.shown(values)}; {remedy}")
    return given
