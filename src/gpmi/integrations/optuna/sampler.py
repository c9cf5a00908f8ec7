"""`GPMISampler`: gpmi's suggestions in Optuna's studies."""

from __future__ import annotations

import inspect
import random
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from threading import RLock
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, PartialFixedSampler
from optuna.storages import BaseStorage
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from gpmi._support import checks, name_hints
from gpmi._support.logger import logger
from gpmi.integrations.optuna.coordination import await_earlier, is_shared, publish, published
from gpmi.integrations.optuna.follower import PREDICTIONS, Follower
from gpmi.integrations.optuna.goals import Reference, checked_reference, kind_of
from gpmi.integrations.optuna.inference import inferred
from gpmi.integrations.optuna.private_api import (
    base_sampler_of,
    fixed_params_of,
    metric_names_of,
    storage_of,
    study_id_of,
    trial_id_of,
    trials_of,
)
from gpmi.integrations.optuna.search_space import SearchSpace, parameter_of, varied
from gpmi.optimizer import Optimizer
from gpmi.policies import JointPolicy

ATTEMPTS = 3  # attempts at a point that no other running trial has; a small space may have none
PAUSE = 0.5  # seconds, at most, before the next attempt: longer than a suggestion takes
OURS = ("self", "space", "seed", "goal", "goals")  # arguments of Optimizer that the sampler sets itself
INSTEAD = {  # of arguments of Optimizer and of Optuna's samplers
    **dict.fromkeys(
        ("goal", "goals"), "directions= of the study say it, and reference_point= what you would accept at worst"
    ),
    "constraints_func": "call trial.set_constraint(name, value) in the objective, feasible where the value is <= 0",
}


class Memory(NamedTuple):
    """The study that was read last, and its follower."""

    storage: BaseStorage
    study_id: int
    follower: Follower


class GPMISampler(BaseSampler):
    """Choose the parameters of Optuna's trials with a Gaussian process.

    Parameters
    ----------
    search_space : a dict of names with distributions of Optuna, or with parameters of gpmi, which can have conditions:
        gpmi.Real(0.0, 1.0, when={"kernel": "rbf"}). By default the space and its conditions are inferred from the
        trials, and the first trial is random.
    seed : a whole number. By default the first worker of a study draws one, and all others take it.
    stale_after : seconds after which a running trial is presumed dead and no longer repels other points. By default ten
        times the duration of the longest completed trial, and at least a minute.
    reference_point : for studies with several objectives, the worst value of each that you would accept, in the order
        of the directions: [0.9, 50.0]. None stands for one that you leave open. Stating it is worth much, because it
        says which part of the front to look for.
    options : further arguments of `gpmi.Optimizer`: aim, n_init, noise_var, budget, policy, kernel, ... Constraints on
        parameters and starting points (constraints=, x0=, mean=) need a search_space.

    All state is in the study. So any number of workers, in threads, processes or on several machines, may share a
    storage, and each may be replaced at any time. The model is kept in memory and extended by new trials. Failed trials
    teach where not to look, pruned trials count as bad values, and constraints are those of `trial.set_constraint`.

    A study with several objectives is a run with goals: an output for each direction, named by
    `study.set_metric_names` or else "0", "1", ..., and one for each constraint, with the limit 0.

    Examples
    --------
    >>> import optuna
    >>> optuna.logging.set_verbosity(optuna.logging.ERROR)
    >>> study = optuna.create_study(sampler=GPMISampler(seed=0))
    >>> study.optimize(lambda trial: (trial.suggest_float("x", -10.0, 10.0) - 2.0) ** 2, n_trials=15)
    >>> study.best_value < 0.01
    True
    """

    def __init__(
        self,
        search_space: Mapping[str, Any] | None = None,
        *,
        seed: int | None = None,
        stale_after: float | None = None,
        reference_point: Sequence[float | None] | None = None,
        **options: Any,
    ) -> None:
        self._search_space = None if search_space is None else SearchSpace.of(search_space)
        self._given_seed = None if seed is None else checks.whole("seed", seed, 0, checks.LARGEST_SEED)
        self._seed = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else self._given_seed
        self._stale_after = None if stale_after is None else checks.number("stale_after", stale_after)
        self._reference = checked_reference(reference_point)
        self._options = options
        _check_options(options, self._search_space, self._reference)
        self._forget()

    def _forget(self) -> None:
        self._lock = RLock()
        self._memory: Memory | None = None
        self._given_up: dict[int, set[int]] = {}  # by study: trials that will never publish a point

    def optimizer(self, study: Study) -> Optimizer:
        """Return the study as an Optimizer to read: its ledger, recommended point or front, and model."""
        self._check_objectives(study)
        with self._lock:
            follower = self._follower(study, trials_of(study))
        if follower is None:
            raise ValueError("the study has no finished trial, so its parameters are not known; give search_space")
        return follower.optimizer

    # Called by Optuna

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        with suppress(Exception):  # raised again at the first `suggest`, where Optuna turns it into a failed trial
            self._check_objectives(study)
            self._decide(study, trial)

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        self._check_objectives(study)
        with self._lock:
            search_space = self._current_space(study, trials_of(study))
        return {} if search_space is None else varied(search_space.distributions)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        self._check_objectives(study)
        payload = published(storage_of(study).get_trial_system_attrs(trial_id_of(trial)))
        numbers = self._decide(study, trial) if payload is None else payload["x"]
        chosen = {name: number for name, number in numbers.items() if name in search_space}
        return {name: search_space[name].to_external_repr(number) for name, number in chosen.items()}

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Draw a random value for a parameter that is not in the search space, or has another range there."""
        self._check_objectives(study)
        if self._memory is not None or self._search_space is not None:
            logger.warning("trial %d: %r is not in the search space, its value is random", trial.number, param_name)
        search_space = SearchSpace.of({param_name: param_distribution})
        rng = np.random.default_rng([self._seed or 0, trial.number, crc32(param_name.encode())])
        parameter = parameter_of(param_distribution)
        value = parameter.decode(parameter.from_unit(rng.random(1))[0])
        return search_space.params({param_name: value})[param_name]

    def reseed_rng(self) -> None:
        """Do nothing: random numbers are seeded by the seed and the trial's number, which no two trials share."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_lock", "_memory", "_given_up")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    # How a point is chosen

    def _decide(self, study: Study, trial: FrozenTrial) -> dict[str, float]:
        """Choose and publish the point of a trial; return its values as storages keep them.

        Two trials may get the same point if one of them stopped waiting for the other. Then, after a random pause,
        another point is chosen: one of the two does so first.
        """
        given_up = self._given_up.setdefault(study_id_of(study), set())
        await_earlier(lambda: trials_of(study, TrialState.RUNNING), trial.number, given_up)
        payload = self._choose(study, trial)
        for _ in range(ATTEMPTS):
            if payload.get("origin") == "user" or not is_shared(
                trial, payload["x"], trials_of(study, TrialState.RUNNING)
            ):
                break
            time.sleep(PAUSE * random.random())
            if is_shared(trial, payload["x"], trials_of(study, TrialState.RUNNING)):
                payload = self._choose(study, trial, anew=True)
        return dict(payload["x"])

    def _choose(self, study: Study, trial: FrozenTrial, *, anew: bool = False) -> dict[str, Any]:
        """Choose the point of a trial and publish it with its predictions; return the payload."""
        with self._lock:
            if anew and (cached := self._cached(study)) is not None:
                cached.forget(trial.number)
            trials = trials_of(study)
            follower = self._follower(study, trials, trial.number)
            payload: dict[str, Any] = {"x": {}, "seed": self._seed_of(trials)}
            if follower is not None:
                asked = follower.ask(trial.number, {**_fixed(study, trial), **trial.params})
                payload["x"] = follower.search_space.internal(follower.search_space.params(dict(asked.x)))
                payload |= {name: getattr(asked, name) for name in PREDICTIONS if getattr(asked, name) is not None}
            publish(storage_of(study), trial_id_of(trial), payload)
        return payload

    def _current_space(self, study: Study, trials: Sequence[FrozenTrial]) -> SearchSpace | None:
        """Return the search space: the given one, the last one if all new trials fit it, or one inferred anew."""
        if self._search_space is not None:
            return self._search_space
        cached = self._cached(study)
        if cached is not None:
            new = (t for t in cached.lacks(trials) if t.state == TrialState.COMPLETE)
            if all(cached.search_space.fits(trial.distributions, trial.params) for trial in new):
                return cached.search_space
        return inferred(trials)

    def _cached(self, study: Study) -> Follower | None:
        memory = self._memory
        same = memory is not None and memory.storage is storage_of(study) and memory.study_id == study_id_of(study)
        return memory.follower if memory is not None and same else None

    def _follower(self, study: Study, trials: Sequence[FrozenTrial], number: int = -1) -> Follower | None:
        """Return the follower of the study, up to date; None while its parameters are unknown."""
        follower = self._cached(study)
        search_space = self._current_space(study, trials)
        if search_space is None:
            return None
        kind, new = kind_of(study.directions), trials if follower is None else follower.lacks(trials)
        constraints = kind.constraints_in(new) or (() if follower is None else follower.goals.constraints)
        names = metric_names_of(study)
        purpose = kind.of(study.directions, constraints, search_space.names, names, self._reference)
        if follower is None or not follower.fits(search_space, purpose):
            arguments: dict[str, Any] = {**purpose.goals.purpose, **self._options}
            optimizer = Optimizer(search_space.space, seed=self._seed_of(trials), **arguments)
            follower = Follower(search_space, optimizer, purpose)
            self._memory = Memory(storage_of(study), study_id_of(study), follower)
        follower.follow(trials, self._stale_after, number)
        return follower

    def _check_objectives(self, study: Study) -> None:
        """Refuse a study whose number of objectives does not fit the arguments."""
        count, reference, policy = len(study.directions), self._reference, self._options.get("policy")
        if reference is not None and len(reference) != count:
            remedy = "leave it out" if count == 1 else f"give {count} values"
            raise ValueError(
                f"reference_point is {list(reference)}, for {len(reference)} objectives, but the study has {count}; "
                f"{remedy}"
            )
        if count == 1 and isinstance(policy, JointPolicy):
            raise ValueError(f"policy is {policy!r}, for several objectives, but the study has one; leave it out")

    def _seed_of(self, trials: Sequence[FrozenTrial]) -> int | None:
        """Return the given seed, or the one published with the first trial, which all workers share."""
        if self._given_seed is not None:
            return self._given_seed
        payloads = (published(trial.system_attrs) for trial in trials)
        return next((int(payload["seed"]) for payload in payloads if payload is not None), self._seed)


def _fixed(study: Study, trial: FrozenTrial) -> dict[str, Any]:
    """Return the values that others fixed: by `enqueue_trial`, or by PartialFixedSampler."""
    fixed: dict[str, Any] = {}
    sampler: Any = study.sampler
    while isinstance(sampler, PartialFixedSampler):
        fixed |= fixed_params_of(sampler)
        sampler = base_sampler_of(sampler)
    return {**fixed, **trial.system_attrs.get("fixed_params", {})}


def _check_options(options: Mapping[str, Any], search_space: SearchSpace | None, reference: Reference | None) -> None:
    """Refuse arguments that no Optimizer takes, as far as possible without the space and the study."""
    arguments = [name for name in inspect.signature(Optimizer.__init__).parameters if name not in OURS]
    for name in options:
        if name not in arguments:
            ours = ("search_space", "seed", "stale_after", "reference_point", *arguments)
            hint = INSTEAD[name] if name in INSTEAD else name_hints.name_hint(name, ours)
            raise TypeError(f"{name} is not an argument of GPMISampler; {hint}")
        if search_space is None and name in ("constraints", "x0", "mean"):
            raise ValueError(f"{name} refers to the parameters; give search_space as well")
    free = {name: value for name, value in options.items() if search_space is not None or name != "kernel"}
    by_output = [name for name in ("kernel", "noise_var") if isinstance(free.get(name), Mapping)]
    free = {name: value for name, value in free.items() if name not in by_output}  # the study names the outputs
    if reference is not None or by_output or isinstance(options.get("policy"), JointPolicy):
        directions = [StudyDirection.MINIMIZE] * (2 if reference is None else len(reference))
        free["goals"] = kind_of(directions).of(directions, (), () if search_space is None else search_space.names).goals
    Optimizer([(0.0, 1.0)] if search_space is None else search_space.space, seed=0, **free)
