"""Export trials to an Optuna study, or import them from one, and so to and from any storage of Optuna.

An exported trial carries all its fields in a user attribute, so that it can be imported again to the last bit.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import optuna

from gpmi._support.text import shortened, without_password
from gpmi.integrations.optuna.inference import described
from gpmi.integrations.optuna.search_space import distribution_of, parameter_of
from gpmi.space import Candidates, Parameters, Space
from gpmi.trials import Trial
from gpmi.trials.dataframe import Printable, names_of
from gpmi.trials.files import row_of, titles_of, trial_of

ATTRIBUTE = "gpmi"  # user attribute: the fields of a trial as JSON
_STATE = optuna.trial.TrialState


class Imported(NamedTuple):
    """The content of an Optuna study."""

    space: Space
    trials: tuple[Trial, ...]
    left_out: tuple[str, ...]  # one sentence for each trial that could not be imported


def to_optuna(run: Printable, study: Any) -> None:
    """Add the trials of a Result or an Optimizer to an Optuna study of the same direction.

    A value becomes a COMPLETE trial with its constraints. Failed, rejected and retracted trials become FAIL. Pending
    points are enqueued.
    """
    wanted = _direction(run.goal)
    if list(study.directions) != [wanted]:
        raise ValueError(f"study has the directions {list(study.directions)}; give one of direction {wanted.name}")
    distributions = _distributions(run.space)
    titles = names_of(run.space)
    for trial in run.all_trials():
        row = row_of(trial, run.space)
        values = dict(zip(titles, trial.x.tolist(), strict=True)) if not isinstance(trial.x, Mapping) else dict(trial.x)
        kept = {ATTRIBUTE: json.dumps({name: value for name, value in row.items() if value is not None})}
        if trial.status == "pending":
            study.enqueue_trial(values, user_attrs=kept)
            continue
        told = trial.status == "told"
        study.add_trial(
            optuna.trial.create_trial(
                state=_STATE.COMPLETE if told else _STATE.FAIL,
                value=trial.y if told else None,
                params=values,
                distributions={name: distributions[name] for name in values},
                user_attrs=kept,
                constraints={str(i): value for i, value in enumerate(trial.constraints)} if told else None,
            )
        )


def from_optuna(study: Any, space: Any = None) -> Imported:
    """Import the trials of an Optuna study with one direction; infer the space unless it is given.

    A COMPLETE trial becomes a value, or a failure if its value is infinite; FAIL becomes a failure. PRUNED trials are
    left out, because their values come from unfinished evaluations. So are running trials and points outside the space.
    """
    if len(study.directions) != 1:
        raise ValueError(f"study has {len(study.directions)} objectives; give one with a single objective")
    found = study.get_trials(deepcopy=False)
    made = _space(found) if space is None else Space.of(space)
    trials: list[Trial] = []
    left_out: list[str] = []
    for frozen in found:
        try:
            trials.append(trial_of(_row(frozen, made), made, frozen.number))
        except (TypeError, ValueError) as error:
            left_out.append(shortened(f"trial {frozen.number}: {error}"))
    return Imported(made, tuple(trials), tuple(left_out))


def to_storage(run: Printable, storage: str, name: str) -> None:
    """Write the trials as a new study to the Optuna storage at this address: all of them or none."""
    with _opened(storage) as opened:
        if name in optuna.get_all_study_names(opened):
            raise ValueError(
                f"{without_password(storage)} has a study {name!r} already; give another name, or delete it with Optuna"
            )
        study = optuna.create_study(storage=opened, study_name=name, direction=_direction(run.goal))
        try:
            to_optuna(run, study)
        except BaseException:
            optuna.delete_study(storage=opened, study_name=name)
            raise


def from_storage(storage: str, name: str | None, space: Any = None) -> Imported:
    """Import a study by its name from a storage, as `from_optuna`; None for the only one."""
    with _opened(storage) as opened:
        names = optuna.get_all_study_names(opened)
        if name is None and len(names) == 1:
            (name,) = names
        if name not in names:
            known = ", ".join(map(repr, names)) or "none"
            raise ValueError(
                f"{without_password(storage)} has the studies {known}, but the name is {name!r}; give one of these"
            )
        return from_optuna(optuna.load_study(storage=opened, study_name=name), space)


def _direction(goal: str) -> Any:
    return optuna.study.StudyDirection.MAXIMIZE if goal == "max" else optuna.study.StudyDirection.MINIMIZE


@contextmanager
def _opened(storage: str) -> Iterator[Any]:
    """Open a storage and close its connections afterwards, which Optuna leaves to the garbage collector.

    Errors of the storage become a ValueError. Optuna logs nothing meanwhile.
    """
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    opened: Any = None
    try:
        opened = optuna.storages.RDBStorage(storage)
        yield opened
    except (ValueError, TypeError):
        raise
    except Exception as error:  # of Optuna, SQLAlchemy or a driver
        said = shortened(" ".join(str(error).split()))
        raise ValueError(
            f"the storage {without_password(storage)} cannot be used ({said}); give the address of another"
        ) from error
    finally:
        optuna.logging.set_verbosity(level)
        if opened is not None:
            opened.engine.dispose()


def _row(frozen: Any, space: Space) -> dict[str, Any]:
    """Return the row of an Optuna trial: the fields it carries, unless it was evaluated later."""
    kept = json.loads(frozen.user_attrs.get(ATTRIBUTE, "{}"))
    if kept and (kept["status"] != "pending" or not frozen.state.is_finished()):
        return dict(kept)
    if frozen.state not in (_STATE.COMPLETE, _STATE.FAIL):
        raise ValueError(f"it is {frozen.state.name}")
    row: dict[str, Any] = {"status": "failed", "origin": kept.get("origin", "user")}
    row |= {title: frozen.params.get(name) for title, name in titles_of(space).items()}
    for name, when in (("asked", frozen.datetime_start), ("ended", frozen.datetime_complete)):
        row[name] = None if when is None else when.timestamp()
    row["asked"] = kept.get("asked", row["asked"])
    if frozen.state == _STATE.FAIL:
        return row
    if not math.isfinite(frozen.value):
        return {**row, "why": f"its value is {frozen.value}"}
    return {**row, "status": "told", "y": frozen.value, "constraints": list(frozen.constraints.values()) or None}


def _distributions(space: Space) -> dict[str, Any]:
    """Return Optuna's distributions for the parameters of a space."""
    assert isinstance(space, Parameters | Candidates)
    names = names_of(space)
    if isinstance(space, Parameters):
        return {name: distribution_of(p) for name, p in zip(names, space.parameters, strict=True)}
    columns: list[list[Any]] = [[] for _ in names]
    for x in space.table:
        for column, value in zip(columns, x.values() if isinstance(x, Mapping) else x.tolist(), strict=True):
            if value not in column:
                column.append(value)
    named = zip(names, columns, strict=True)
    return {name: optuna.distributions.CategoricalDistribution(column) for name, column in named}


def _space(trials: list[Any]) -> Space:
    """Infer the space: the last distribution of each name, with conditions that explain the trials."""
    distributions, whens = described(trials)
    if not distributions:
        raise ValueError("study has no finished trial with parameters; give the space")
    for name in distributions:
        if name not in whens:
            raise ValueError(f"study has {name!r} in some trials only; give the space, with its condition (when=)")
    parameters = (parameter_of(one, whens[name] or None) for name, one in distributions.items())
    return Parameters(tuple(parameters), tuple(distributions))
