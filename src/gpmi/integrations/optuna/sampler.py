"""The sampler: Optuna's studies, with our points."""

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

from gpmi._support import checks
from gpmi._support.logger import logger
from gpmi.integrations.optuna.domain import Domain, parameter_of
from gpmi.integrations.optuna.inferred import inferred
from gpmi.integrations.optuna.inside import (
    base_sampler_of,
    fixed_params_of,
    storage_of,
    study_id_of,
    trial_id_of,
    trials_of,
)
from gpmi.integrations.optuna.mirror import SAID, Mirror, limits_of
from gpmi.integrations.optuna.published import await_earlier, is_shared, publish, published
from gpmi.optimizer import Optimizer
from gpmi.space import Constant

ATTEMPTS = 3  # to get a point that no other running trial has; in a small space there may be none
PAUSE = 0.5  # seconds, at most, before another is tried: longer than a suggestion takes
OURS = ("self", "space", "seed", "goal")  # arguments of Optimizer that the sampler gives itself


class Memory(NamedTuple):
    """The study that was read last, as an Optimizer."""

    storage: BaseStorage
    study_id: int
    mirror: Mirror


class GPMISampler(BaseSampler):
    """Chooses the parameters of Optuna's trials by a Gaussian process.

    Parameters
    ----------
    search_space : a dict of names with distributions of Optuna, or with parameters of gpmi, which can have conditions:
        gpmi.Real(0.0, 1.0, when={"kernel": "rbf"}). By default it is found from the trials, with its conditions: then
        the first trial is random.
    seed : a whole number. By default the first worker of a study draws one, and all others take it.
    stale_after : seconds after which a running trial is taken for dead: it no longer pushes others away. By default ten
        times what the longest completed trial has taken, and at least a minute.
    options : further arguments of `gpmi.Optimizer`: aim, n_init, noise_var, budget, policy, kernel, ... Constraints on
        parameters and starting points (constraints=, x0=, mean=) need a search_space.

    Everything it knows is in the study, so any number of workers, in threads, processes or on machines, may share a
    storage, and each may be replaced at any time. What was learned is kept in memory and extended by what is new.
    Failed trials teach where not to look, pruned ones that they were bad; constraints are those of
    `trial.set_constraint`. A study must have one objective.

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
        **options: Any,
    ) -> None:
        self._domain = None if search_space is None else Domain.of(search_space)
        self._given_seed = None if seed is None else checks.whole("seed", seed, 0, checks.LARGEST_SEED)
        self._seed = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else self._given_seed
        self._stale_after = None if stale_after is None else checks.number("stale_after", stale_after)
        self._options = options
        _check_options(options, self._domain)
        self._forget()

    def _forget(self) -> None:
        self._lock = RLock()
        self._memory: Memory | None = None
        self._given_up: dict[int, set[int]] = {}  # by study: the trials that will publish no point

    def optimizer(self, study: Study) -> Optimizer:
        """The study as an Optimizer, to read: its ledger, its recommended point, its model."""
        _require_one_objective(study)
        with self._lock:
            mirror = self._mirror(study, trials_of(study))
        if mirror is None:
            raise ValueError("the study has no finished trial, so its parameters are not known; give search_space")
        return mirror.optimizer

    # What Optuna calls

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        with suppress(Exception):  # it is raised at the first `suggest`, where Optuna makes a failed trial of it
            _require_one_objective(study)
            self._decide(study, trial)

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        _require_one_objective(study)
        with self._lock:
            domain = self._domain_now(study, trials_of(study))
        return {} if domain is None else {n: one for n, one in domain.distributions.items() if not one.single()}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        _require_one_objective(study)
        said = published(storage_of(study).get_trial_system_attrs(trial_id_of(trial)))
        numbers = self._decide(study, trial) if said is None else said["x"]
        chosen = {name: number for name, number in numbers.items() if name in search_space}
        return {name: search_space[name].to_external_repr(number) for name, number in chosen.items()}

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """A random value: of a parameter that is not in the search space, or has another range there."""
        _require_one_objective(study)
        if self._memory is not None or self._domain is not None:
            logger.warning("trial %d: %r is not in the search space, its value is random", trial.number, param_name)
        domain = Domain.of({param_name: param_distribution})
        rng = np.random.default_rng([self._seed or 0, trial.number, crc32(param_name.encode())])
        parameter = parameter_of(param_distribution)
        if isinstance(parameter, Constant):
            return parameter.value
        return domain.params({param_name: parameter.decode(parameter.from_unit(rng.random(1))[0])})[param_name]

    def reseed_rng(self) -> None:
        """Nothing: random numbers come from the seed and the number of the trial, and no two trials share that."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: one for name, one in self.__dict__.items() if name not in ("_lock", "_memory", "_given_up")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    # How a point is chosen

    def _decide(self, study: Study, trial: FrozenTrial) -> dict[str, float]:
        """Choose the point of a trial and publish it; as storages have its values.

        If another trial got the same one at the same moment, because it did not wait for this one to the end or this
        one not for it, another is chosen, after a random pause: one of the two comes first.
        """
        given_up = self._given_up.setdefault(study_id_of(study), set())
        await_earlier(lambda: trials_of(study, TrialState.RUNNING), trial.number, given_up)
        said = self._choose(study, trial)
        for _ in range(ATTEMPTS):
            if said.get("origin") == "user" or not is_shared(trial, said["x"], trials_of(study, TrialState.RUNNING)):
                break
            time.sleep(PAUSE * random.random())
            if is_shared(trial, said["x"], trials_of(study, TrialState.RUNNING)):
                said = self._choose(study, trial, anew=True)
        return dict(said["x"])

    def _choose(self, study: Study, trial: FrozenTrial, *, anew: bool = False) -> dict[str, Any]:
        """What is published of a trial: its point, and what the policy said of it."""
        with self._lock:
            if anew and (known := self._known(study)) is not None:
                known.forget(trial.number)
            trials = trials_of(study)
            mirror = self._mirror(study, trials, trial.number)
            said: dict[str, Any] = {"x": {}, "seed": self._seed_of(trials)}
            if mirror is not None:
                asked = mirror.ask(trial.number, {**_fixed(study, trial), **trial.params})
                said["x"] = mirror.domain.internal(mirror.domain.params(dict(asked.x)))
                said |= {name: getattr(asked, name) for name in SAID if getattr(asked, name) is not None}
            publish(storage_of(study), trial_id_of(trial), said)
        return said

    def _domain_now(self, study: Study, trials: Sequence[FrozenTrial]) -> Domain | None:
        """The search space: as given, as it was while all new trials fit it, or else as the trials have it."""
        if self._domain is not None:
            return self._domain
        known = self._known(study)
        if known is not None:
            new = (t for t in known.lacks(trials) if t.state == TrialState.COMPLETE)
            if all(known.domain.fits(trial.distributions, trial.params) for trial in new):
                return known.domain
        return inferred(trials)

    def _known(self, study: Study) -> Mirror | None:
        memory = self._memory
        same = memory is not None and memory.storage is storage_of(study) and memory.study_id == study_id_of(study)
        return memory.mirror if memory is not None and same else None

    def _mirror(self, study: Study, trials: Sequence[FrozenTrial], number: int = -1) -> Mirror | None:
        """The study as an Optimizer; None while nothing is known of its parameters."""
        known = self._known(study)
        domain = self._domain_now(study, trials)
        if domain is None:
            return None
        limits = limits_of(trials if known is None else known.lacks(trials)) or (() if known is None else known.limits)
        if known is None or known.domain is not domain or known.limits != limits:
            goal: Any = "max" if study.direction == StudyDirection.MAXIMIZE else "min"
            optimizer = Optimizer(domain.space, goal=goal, seed=self._seed_of(trials), **self._options)
            known = Mirror(domain, optimizer, limits)
            self._memory = Memory(storage_of(study), study_id_of(study), known)
        known.follow(trials, self._stale_after, number)
        return known

    def _seed_of(self, trials: Sequence[FrozenTrial]) -> int | None:
        """The seed that was given, or else that of the first trial of the study, which all workers know."""
        if self._given_seed is not None:
            return self._given_seed
        said = (published(trial.system_attrs) for trial in trials)
        return next((int(one["seed"]) for one in said if one is not None), self._seed)


def _fixed(study: Study, trial: FrozenTrial) -> dict[str, Any]:
    """The parameters whose values are not ours to choose: those of `enqueue_trial` and of PartialFixedSampler."""
    fixed: dict[str, Any] = {}
    sampler: Any = study.sampler
    while isinstance(sampler, PartialFixedSampler):
        fixed |= fixed_params_of(sampler)
        sampler = base_sampler_of(sampler)
    return {**fixed, **trial.system_attrs.get("fixed_params", {})}


def _require_one_objective(study: Study) -> None:
    if len(study.directions) != 1:
        raise ValueError(
            f"the study has {len(study.directions)} objectives, and GPMISampler is for one; combine them to one value, "
            "or give all but one by trial.set_constraint"
        )


def _check_options(options: Mapping[str, Any], domain: Domain | None) -> None:
    """Refuse what no Optimizer takes, as far as that can be known without the space."""
    known = [name for name in inspect.signature(Optimizer.__init__).parameters if name not in OURS]
    for name in options:
        if name not in known:
            raise TypeError(f"GPMISampler has no argument {name!r}; it takes search_space, seed, stale_after, {known}")
        if domain is None and name in ("constraints", "x0", "mean"):
            raise ValueError(f"{name} is about the parameters; give the search_space as well")
    free = {name: value for name, value in options.items() if domain is not None or name != "kernel"}
    Optimizer([(0.0, 1.0)] if domain is None else domain.space, seed=0, **free)
