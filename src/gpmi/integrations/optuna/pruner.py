"""`GPMIPruner`: gpmi's rule for stopping trials early in Optuna's studies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import RLock
from typing import Any, NamedTuple

import optuna
from optuna.pruners import BasePruner
from optuna.storages import BaseStorage
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from gpmi._support import checks
from gpmi._support.logger import logger
from gpmi.integrations.optuna.curve_follower import CurveFollower, target_of
from gpmi.integrations.optuna.goals import kind_of
from gpmi.integrations.optuna.inference import inferred
from gpmi.integrations.optuna.private_api import metric_names_of, storage_of, study_id_of, trials_of
from gpmi.integrations.optuna.reports import add_report, is_hopeless, latest, reports_of
from gpmi.integrations.optuna.search_space import SearchSpace
from gpmi.optimizer import Optimizer
from gpmi.space import Fidelity, Space


class Followed(NamedTuple):
    """The study that was read last, and its follower."""

    storage: BaseStorage
    study_id: int
    follower: CurveFollower


class GPMIPruner(BasePruner):
    """Prune a trial when its final value will hardly be the best, by a Gaussian process of all learning curves.

    The model has the parameters of all trials and the values that they reported, whichever sampler chose them. A trial
    is judged at a few steps, each 2 to 2.5 times the one before; at other steps the last answer stands.

    Parameters
    ----------
    max_step : the last step that a trial reports. By default the last step of the longest completed trial; before there
        is one, nothing is pruned.

    The value that the objective returns counts as the value at the last step, so report what it returns. A value that
    is not a number, or infinitely bad, prunes at once.

    Optuna's `trial.report` refuses several objectives: call `pruner.report(trial, step, values)` and
    `pruner.should_prune(trial)` instead. A trial is then pruned when it will hardly be on the front.

    Threads may share a pruner. It keeps its model in memory, and all else in the study.

    Examples
    --------
    >>> import optuna
    >>> optuna.logging.set_verbosity(optuna.logging.ERROR)
    >>> def objective(trial):
    ...     x = trial.suggest_float("x", 0.0, 1.0)
    ...     for step in range(30):
    ...         trial.report((x - 0.3) ** 2 + 1.0 / (step + 1.0), step)
    ...         if trial.should_prune():
    ...             raise optuna.TrialPruned
    ...     return (x - 0.3) ** 2 + 1.0 / 30.0
    >>> study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0), pruner=GPMIPruner(max_step=29))
    >>> study.optimize(objective, n_trials=15)
    >>> any(trial.state.name == "PRUNED" for trial in study.trials)
    True
    """

    def __init__(self, max_step: int | None = None) -> None:
        self._max_step = None if max_step is None else checks.whole("max_step", max_step, 1)
        self._forget()

    def _forget(self) -> None:
        self._lock = RLock()
        self._memory: Followed | None = None
        self._warned: set[str] = set()

    def report(self, trial: Any, step: int, values: Sequence[float] | float) -> None:
        """Store the values of a trial at a step: one for each objective, in the order of the directions.

        Does nothing for trials outside a study, such as an `optuna.trial.FixedTrial`.
        """
        if isinstance(trial, optuna.Trial):
            add_report(trial, step, values)

    def should_prune(self, trial: Any) -> bool:
        """Return whether to prune a trial, by what it has reported."""
        return isinstance(trial, optuna.Trial) and self.prune(trial.study, latest(trial))

    # Called by Optuna

    def prune(self, study: Study, trial: FrozenTrial) -> bool:
        """Return whether to prune a trial of a study, by what it has reported."""
        reports = reports_of(trial)
        if not reports:
            return False
        step, last = max(reports.items())
        if is_hopeless(last, study.directions):
            return True
        if self._max_step is not None and step > self._max_step:
            self._warn(f"trial {trial.number} is not pruned: it reports step {step}, but max_step is {self._max_step}")
            return False
        with self._lock:
            cached = self._cached(study)
            if cached is not None and not cached.is_due(trial.number, step):
                return cached.answer(trial.number)
            follower = self._follower(study)
            if follower is None or not follower.has_reached or step >= follower.max_step:
                return False
            if not follower.begin(trial):
                self._warn(f"trial {trial.number} is not pruned: its parameters do not fit those of completed trials")
                return False
            return follower.judge(trial.number, reports)

    def __getstate__(self) -> dict[str, Any]:
        return {"_max_step": self._max_step}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    # The model

    def _cached(self, study: Study) -> CurveFollower | None:
        memory = self._memory
        same = memory is not None and memory.storage is storage_of(study) and memory.study_id == study_id_of(study)
        return memory.follower if memory is not None and same else None

    def _follower(self, study: Study) -> CurveFollower | None:
        """Return the follower of a study, up to date; None while its parameters or its last step are unknown."""
        trials, follower = trials_of(study), self._cached(study)
        new = trials if follower is None else follower.lacks(trials)
        completed = [trial for trial in new if trial.state == TrialState.COMPLETE]
        longest = max((max(reports_of(trial), default=0) for trial in completed), default=0)
        max_step = self._max_step or max(longest, 0 if follower is None else follower.max_step)
        search_space = self._space(follower, trials, completed)
        if search_space is None or max_step < 1:
            return None
        purpose = kind_of(study.directions).of(study.directions, (), search_space.names, metric_names_of(study))
        if follower is None or not follower.fits(search_space, max_step, purpose) or follower.is_full:
            space, name = _with_steps(search_space, max_step)
            optimizer = Optimizer(space, seed=0, **purpose.goals.purpose)
            follower = CurveFollower(search_space, optimizer, name, max_step, purpose)
            self._memory = Followed(storage_of(study), study_id_of(study), follower)
        follower.follow(trials)
        return follower

    def _space(
        self, follower: CurveFollower | None, trials: Sequence[FrozenTrial], completed: Sequence[FrozenTrial]
    ) -> SearchSpace | None:
        """Return the search space: the last one if all newly completed trials fit it, or one inferred anew."""
        if follower is not None and all(follower.search_space.fits(t.distributions, t.params) for t in completed):
            return follower.search_space
        return inferred(trials)

    def _warn(self, message: str) -> None:
        if message not in self._warned:
            self._warned.add(message)
            logger.warning("%s", message)


def _with_steps(search_space: SearchSpace, max_step: int) -> tuple[Space, str]:
    """Return the space with a fidelity whose last step is the target, and the name of that fidelity."""
    name = "step"
    while name in search_space.names:
        name += "_"
    parameters: Mapping[str, Any] = dict(zip(search_space.names, search_space.space.parameters, strict=True))
    return Space.of({**parameters, name: Fidelity(1, target_of(max_step))}), name
