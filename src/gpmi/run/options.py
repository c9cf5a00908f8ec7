"""The arguments of a run, each in one place: those of `maximize`, `minimize` and `Study.optimize`.

To add an argument: add a key here (for type checkers) and a defaulted parameter to `RunSettings` or `Optimizer`.
Signatures and help update themselves.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from typing import Any, Literal, TypedDict, TypeVar

from gpmi._support.checks import one_of, positive, shown, whole
from gpmi.gp.kernels import Kernel
from gpmi.optimizer import Optimizer
from gpmi.policies import Aim, Policy
from gpmi.run.evaluation import Evaluated
from gpmi.run.pools import PoolSettings, pool_settings
from gpmi.run.stopping import Rule, checked_rule
from gpmi.trials import Trial

DEATH_RETRIES = 1  # unless the user says how many; a timeout may be expensive, so it is not repeated by itself

Function = TypeVar("Function", bound=Callable[..., Any])


class RunOptions(TypedDict, total=False):
    """How f is evaluated and when the run ends: the arguments of `Study.optimize`."""

    budget: int | None
    cost: float | None
    stop: Rule | None
    on_failure: Literal["raise", "learn"]
    timeout: float | None
    workers: int | None
    executor: Any
    in_flight: int | None
    retries: int | None
    on_trial: Callable[[Trial, Optimizer], Any] | None
    progress: bool


class ModelOptions(TypedDict, total=False):
    """How points are chosen: the arguments of `Optimizer` that runs and studies pass on with their defaults."""

    policy: Policy | None
    kernel: Kernel | Mapping[str, Kernel | None] | None
    noise_var: float | Mapping[str, float | None] | None
    fit: Literal["map", "loo", "mcmc"]
    n_init: int | None
    repeats: bool
    mean: Callable[[Any], float] | None
    x0: Any
    constraints: Any
    noise: Literal["normal", "student"]
    bounds: Any
    units: Any


class StudyOptions(ModelOptions, total=False):
    """The arguments of `Optimizer` that a study stores without changing their defaults."""

    goals: Mapping[str, Any] | None
    earlier: Mapping[str, Any] | None


class OptimizerOptions(ModelOptions, total=False):
    """The arguments of `Optimizer` that a run passes on."""

    aim: Aim
    seed: int | None


class MaximizeOptions(RunOptions, OptimizerOptions, total=False):
    """The arguments of `maximize` and `minimize` after f and the space."""

    earlier: Iterable[Any] | Mapping[str, Any]
    study: str | PathLike[str] | None


class RunSettings:
    """The validated settings of one run."""

    def __init__(
        self,
        f: Callable[[Any], Evaluated],
        *,
        budget: int | None = None,
        cost: float | None = None,
        stop: Rule | None = None,
        on_failure: Literal["raise", "learn"] = "raise",
        timeout: float | None = None,
        workers: int | None = None,
        executor: Any = None,
        in_flight: int | None = None,
        retries: int | None = None,
        on_trial: Callable[[Trial, Optimizer], Any] | None = None,
        progress: bool = False,
    ) -> None:
        if stop is not None:
            checked_rule(stop)
        elif budget is None and cost is None:
            raise TypeError("budget is None and there is no stopping rule; give a budget, a cost, or a rule as stop=")
        if on_trial is not None and not callable(on_trial):
            raise TypeError(f"on_trial is {shown(on_trial)}; give a function of a trial and the optimizer")
        self.f, self.budget, self.stop = f, budget, stop
        self.cost = None if cost is None else positive("cost", cost)  # of all evaluations, by the space's fidelity
        self.on_trial, self.progress = on_trial, progress
        self.learns = one_of("on_failure", on_failure, ("raise", "learn")) == "learn"  # from failures
        self.timeout = None if timeout is None else positive("timeout", timeout)  # seconds of one evaluation
        self.pool: PoolSettings | None = pool_settings(workers, executor, in_flight)  # None: one at a time
        self.retries = 0 if retries is None else whole("retries", retries, 0)  # after a timeout or a crash
        self.death_retries = DEATH_RETRIES if retries is None else self.retries  # after the death of a worker

    @property
    def starts_processes(self) -> bool:
        """Whether SIGTERM must also kill child processes."""
        return self.pool is not None or self.timeout is not None


OPTIMIZER_DEFAULTS = {
    name: parameter.default
    for name, parameter in inspect.signature(Optimizer).parameters.items()
    if name in OptimizerOptions.__annotations__
}


def with_options(options: type, *users: Callable[..., Any]) -> Callable[[Function], Function]:
    """Return a decorator that lists the keys of `options`, as `users` declare them, in a function's signature.

    The function takes them as `**options: Unpack[...]`, which type checkers expand. `help` and `inspect.signature` read
    `__signature__`.
    """
    declared = {name: parameter for user in users for name, parameter in inspect.signature(user).parameters.items()}
    listed = [declared[name].replace(kind=inspect.Parameter.KEYWORD_ONLY) for name in options.__annotations__]

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)
        named = [
            parameter
            for parameter in signature.parameters.values()
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        function.__signature__ = signature.replace(parameters=[*named, *listed])  # type: ignore[attr-defined]
        return function

    return decorate
