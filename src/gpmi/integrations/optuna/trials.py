"""Export trials to an Optuna study, or import them from one, and so to and from any storage of Optuna.

An exported trial carries all its fields in a user attribute, so that it can be imported again to the last bit. The
study carries the goals of the run, if it has any.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import optuna

from gpmi._support.text import shortened, without_password
from gpmi.integrations.optuna.goals import StudyGoals, directions_of, kind_of, run_goals
from gpmi.integrations.optuna.inference import described
from gpmi.integrations.optuna.search_space import distribution_of, parameter_of
from gpmi.space import Candidates, Parameters, Space
from gpmi.trials import (
    MAXIMISE,
    Goals,
    Match,
    NamedGoals,
    Printable,
    Trial,
    given_goals,
    names_of,
    output_columns,
    row_of,
    titles_of,
    trial_of,
)
from gpmi.trials.goal_summary import at_target

ATTRIBUTE = "gpmi"  # user attribute: the fields of a trial as JSON
GOALS = "gpmi:goals"  # user attribute of a study: the goals of the run
_STATE = optuna.trial.TrialState


class Imported(NamedTuple):
    """The content of an Optuna study."""

    space: Space
    trials: tuple[Trial, ...]
    left_out: tuple[str, ...]  # one sentence for each trial that could not be imported


def to_optuna(run: Printable, study: Any) -> None:
    """Add the trials of a Result, an Optimizer or a Study to an Optuna study of the same directions.

    A value becomes a COMPLETE trial with its constraints. Failed, rejected and retracted trials become FAIL. Pending
    points are enqueued. In a run with goals, each objective is a value, each limit a constraint of its name, and the
    value of a `Match` is the distance from the target. A trial that lacks an objective is RUNNING. One that did not
    reach the target of its fidelity is PRUNED, with its values as intermediate ones.
    """
    goals, wanted = run_goals(run.goals), directions_of(run.goals)
    if list(study.directions) != wanted:
        what = f"direction{'s' * (len(wanted) > 1)} {', '.join(direction.name for direction in wanted)}"
        raise ValueError(f"study has the directions {list(study.directions)}; give one of {what}")
    _note_goals(goals, study)
    distributions = _distributions(run.space)
    titles = names_of(run.space)
    for trial in run.all_trials():
        values = dict(zip(titles, trial.x.tolist(), strict=True)) if not isinstance(trial.x, Mapping) else dict(trial.x)
        row = row_of(trial, run.space, run.goals)
        kept = {ATTRIBUTE: json.dumps({name: value for name, value in row.items() if value is not None})}
        if trial.status == "pending":
            study.enqueue_trial(values, user_attrs=kept)
            continue
        study.add_trial(
            optuna.trial.create_trial(
                params=values,
                distributions={name: distributions[name] for name in values},
                user_attrs=kept,
                **_result(trial, goals, run.space),
            )
        )


def from_optuna(study: Any, space: Any = None, goals: Mapping[str, Any] | None = None) -> Imported:
    """Import the trials of an Optuna study; infer the space unless it is given.

    A COMPLETE trial becomes a value, or a failure if its value is infinite; FAIL becomes a failure. PRUNED trials are
    left out, because their values come from unfinished evaluations. So are running trials and points outside the space.

    The trials of a study with several objectives have outputs, with the goals of `goals_of(study)` unless they are
    given: the objectives in the order of the directions, and a limit for each constraint, by its name.
    """
    theirs = study.get_trials(deepcopy=False)
    purpose = _study_goals(study, theirs, given_goals(goals))
    inside = _space(theirs) if space is None else Space.of(space)
    trials: list[Trial] = []
    left_out: list[str] = []
    for frozen in theirs:
        try:
            trials.append(_trial(frozen, inside, purpose))
        except (TypeError, ValueError) as error:
            left_out.append(shortened(f"trial {frozen.number}: {error}"))
    return Imported(inside, tuple(trials), tuple(left_out))


def goals_of(study: Any) -> Goals | None:
    """Return the goals of the trials that `from_optuna` imports, for `Optimizer(space, goals=...)`.

    They are those of the run that the study was exported from, or else its directions, with a limit of 0 for each
    constraint. None for a study with one objective that did not come from a run with goals.
    """
    return _study_goals(study, study.get_trials(deepcopy=False)).goals.purpose.get("goals")


def to_storage(run: Printable, storage: str, name: str) -> None:
    """Write the trials as a new study to the Optuna storage at this address: all of them or none."""
    with _opened(storage) as opened:
        if name in optuna.get_all_study_names(opened):
            raise ValueError(
                f"{without_password(storage)} has a study {name!r} already; give another name, or delete it with Optuna"
            )
        study = optuna.create_study(storage=opened, study_name=name, directions=directions_of(run.goals))
        try:
            to_optuna(run, study)
        except BaseException:
            optuna.delete_study(storage=opened, study_name=name)
            raise


def from_storage(storage: str, name: str | None, space: Any = None, goals: Mapping[str, Any] | None = None) -> Imported:
    """Import a study by its name from a storage, as `from_optuna`; None for the only one."""
    with _opened(storage) as opened:
        names = optuna.get_all_study_names(opened)
        if name is None and len(names) == 1:
            (name,) = names
        if name not in names:
            studies = ", ".join(map(repr, names)) or "none"
            raise ValueError(
                f"{without_password(storage)} has the studies {studies}, but the name is {name!r}; give one of these"
            )
        return from_optuna(optuna.load_study(storage=opened, study_name=name), space, goals)


# Goals


def _note_goals(purpose: StudyGoals, study: Any) -> None:
    """Store the goals with a study whose directions do not say them, and name its objectives for Optuna's plots."""
    described, given, stored = purpose.described(), purpose.goals, _stored_goals(study)
    if described is None:
        return
    if stored not in (None, given):
        raise ValueError(f"study has the goals {stored}, but the run has {given}; give another study")
    study.set_user_attr(GOALS, described)
    if study.metric_names is None:
        names = [f"|{n} - {g.target}|" if isinstance(g, Match) else n for n, g in given.objectives.items()]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            study.set_metric_names(names)


def _stored_goals(study: Any) -> Goals | None:
    stored = study.user_attrs.get(GOALS)
    return None if stored is None else NamedGoals.from_json(stored)


def _study_goals(study: Any, trials: list[Any], given: Goals = MAXIMISE) -> StudyGoals:
    """Return the goals of a study: those that name their outputs, given or stored, or else its directions."""
    named = given.purpose.get("goals", _stored_goals(study))
    if named is not None:
        return _checked_goals(named, study, trials)
    parameters = {name for trial in trials for name in trial.params}
    directions = study.directions
    return kind_of(directions).of(directions, _constraints(trials), parameters, study.metric_names)


def _checked_goals(goals: Goals, study: Any, trials: list[Any]) -> StudyGoals:
    """Return these goals for a study; refuse a study with other directions or further constraints."""
    wanted = directions_of(goals)
    if wanted != list(study.directions):
        directions = ", ".join(direction.name for direction in study.directions)
        raise ValueError(
            f"goals is {goals}, but the study has the directions {directions}; give a goal for each, in their order"
        )
    limits = goals.limits
    for name in _constraints(trials):
        if name not in limits:
            raise ValueError(
                f"study has the constraint {name!r}, which goals does not limit; add {name!r}: gpmi.AtMost(0)"
            )
    return run_goals(goals)


def _constraints(trials: list[Any]) -> dict[str, None]:
    """Return the names of all constraints of completed trials, in the order in which they appeared."""
    complete = (trial for trial in trials if trial.state == _STATE.COMPLETE)
    return dict.fromkeys(name for trial in complete for name in trial.constraints)


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


# Trials


def _below_target(trial: Trial, single: str, space: Space) -> dict[int, float] | None:
    """Return the values of a trial that did not reach the target of its fidelity, by step or by level from 0 on.

    None for any other trial. Optuna has one value for each step, that of the single objective, so those of several
    objectives are left out.
    """
    is_below = trial.status == "told" and [*at_target([trial], space)] == []
    if trial.status == "stopped" or (is_below and trial.curve):
        values = {report.step: report.values.get(single) for report in trial.curve}
    elif is_below:
        assert space.fidelity is not None
        values = {space.fidelity.fidelity.labels.index(trial.x[space.fidelity.name]): trial.y}
    else:
        return None
    return {step: y for step, y in values.items() if y is not None}


def _result(trial: Trial, purpose: StudyGoals, space: Space) -> dict[str, Any]:
    """Return the state of a trial with an outcome, its values and its constraints, as Optuna has them."""
    below = _below_target(trial, purpose.goals.single or "", space)
    if below is not None:
        return {"state": _STATE.PRUNED, "intermediate_values": below}
    return {"state": _STATE.FAIL} if trial.status != "told" else purpose.result(trial)


def _trial(frozen: Any, space: Space, purpose: StudyGoals) -> Trial:
    """Return an Optuna trial: with the fields it carries, unless it was evaluated later."""
    kept = json.loads(frozen.user_attrs.get(ATTRIBUTE, "{}"))
    columns = output_columns(purpose.goals, space)
    carried = columns.fields(kept)["outputs"]
    if kept and not _is_outdated(frozen, kept, carried, purpose):
        return trial_of(kept, space, frozen.number, purpose.goals)
    row = _row(frozen, space, kept)
    if frozen.state == _STATE.COMPLETE and not all(math.isfinite(value) for value in frozen.values):
        row["why"] = f"its {purpose.shown(frozen.values)}"
    elif frozen.state == _STATE.COMPLETE:
        row |= {"status": "told", **purpose.row(frozen.values, frozen.constraints, carried, columns.values)}
    return trial_of(row, space, frozen.number, purpose.goals)


def _is_outdated(frozen: Any, kept: Mapping[str, Any], carried: Mapping[str, float], purpose: StudyGoals) -> bool:
    """Whether a trial was evaluated after it was exported, or was exported by a run without goals.

    `carried` are the outputs that it was exported with.
    """
    finished = bool(frozen.state.is_finished())
    if kept["status"] == "told":
        return purpose.is_outdated(carried, finished)
    return finished and kept["status"] == "pending"


def _row(frozen: Any, space: Space, kept: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of an Optuna trial without its value, which would be a failure."""
    if frozen.state not in (_STATE.COMPLETE, _STATE.FAIL):
        raise ValueError(f"it is {frozen.state.name}")
    row: dict[str, Any] = {"status": "failed", "origin": kept.get("origin", "user")}
    row |= {title: frozen.params.get(name) for title, name in titles_of(space).items()}
    for name, when in (("asked", frozen.datetime_start), ("ended", frozen.datetime_complete)):
        row[name] = None if when is None else when.timestamp()
    row["asked"] = kept.get("asked", row["asked"])
    return row


def _distributions(space: Space) -> dict[str, Any]:
    """Return Optuna's distributions for the parameters of a space."""
    assert isinstance(space, Parameters | Candidates)
    names = names_of(space)
    if isinstance(space, Parameters):
        return {name: distribution_of(p.domain) for name, p in zip(names, space.parameters, strict=True)}
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
    parameters = (parameter_of(distribution, whens[name] or None) for name, distribution in distributions.items())
    return Parameters(tuple(parameters), tuple(distributions))
