"""Ax: a generation node that takes its candidates from gpmi. Needs Ax.

node = GPMINode(seed=0)
strategy = GenerationStrategy(nodes=[node])
client.set_generation_strategy(strategy)
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

try:
    from ax.core.base_trial import TrialStatus
    from ax.core.parameter import ChoiceParameter, FixedParameter, ParameterType, RangeParameter
    from ax.core.types import ComparisonOp
    from ax.generation_strategy.external_generation_node import ExternalGenerationNode
except ImportError as error:
    raise ImportError("this needs Ax: pip install ax-platform") from error

from gpmi.integrations.one_objective import check_options
from gpmi.optimizer import Optimizer
from gpmi.space import Choice, Int, Real
from gpmi.trials import Trial


class GPMINode(ExternalGenerationNode):  # type: ignore[misc]
    """Candidates for an Ax experiment with one objective (a metric or a weighted sum), from the first trial on.

    It understands ranges, logarithms, ordered and unordered choices, fixed and dependent parameters, linear constraints
    on parameters, outcome constraints with absolute bounds, standard errors and failed trials. A candidate that Ax
    refuses as a duplicate stays pending, so that the next one differs.

    `options` are further arguments of `gpmi.Optimizer`: aim, n_init, budget, ...
    """

    def __init__(self, name: str = "GPMI", *, seed: int | None = None, **options: Any) -> None:
        begun = time.monotonic()
        check_options(options, "GPMINode", "the objective and the outcome constraints are those of the experiment")
        super().__init__(name=name)
        self._seed, self._options = seed, options
        self.optimizer: Optimizer | None = None
        self._known: set[tuple[int, str]] = set()  # (trial, arm) pairs with a recorded outcome
        self.fit_time_since_gen += time.monotonic() - begun

    def update_generator_state(self, experiment: Any, data: Any) -> None:
        """Record every outcome that is new in the experiment."""
        config = experiment.optimization_config
        if config is None or config.is_moo_problem:
            raise ValueError(
                "the experiment has several objectives, but GPMINode takes one: make the others outcome constraints, "
                "or use gpmi.Optimizer(space, goals=...)"
            )
        if self.optimizer is None:
            space = experiment.search_space
            arguments = {
                "goal": _goal(config.objective),
                "seed": self._seed,
                "constraints": _constraints(space),
                **self._options,
            }
            self.optimizer = Optimizer(_parameters(space), **arguments)
        means = _means(data)
        for index, trial in experiment.trials.items():
            for arm in trial.arms:
                if (index, arm.name) not in self._known and trial.status.is_terminal:
                    self._known.add((index, arm.name))
                    self._tell(config, trial.status, arm.parameters, means.get((index, arm.name), {}))

    def get_next_candidate(self, pending_parameters: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the next point, away from those pending here or in Ax."""
        assert self.optimizer is not None
        space = self.optimizer.space
        here = {space.encode(trial.x).tobytes() for trial in self.optimizer.pending}
        for point in (self._point(parameters) for parameters in pending_parameters):
            if point is not None and space.encode(point).tobytes() not in here:
                self.optimizer.replay([Trial(0, point, None, "pending", "user")])
        return dict(self.optimizer.ask())

    def _tell(self, config: Any, status: Any, parameters: Mapping[str, Any], means: Mapping[str, Any]) -> None:
        """Record one outcome: a value with its standard error and constraints, or a failure. Skip abandoned arms."""
        point = self._point(parameters)
        assert self.optimizer is not None
        if point is None:
            return
        space = self.optimizer.space
        row = space.encode(point).tobytes()
        pending = next((t for t in self.optimizer.pending if space.encode(t.x).tobytes() == row), None)
        weights = _weights(config.objective)
        wanted = [metric for limit in config.outcome_constraints for metric, _ in limit.metric_weights]
        if all(metric in means for metric in (*weights, *wanted)):
            y = sum(weight * means[metric][0] for metric, weight in weights.items())
            errors = [weight * means[metric][1] for metric, weight in weights.items()]
            noise = sum(error**2 for error in errors if math.isfinite(error))
            limits = [_excess(limit, means) for limit in config.outcome_constraints]
            self.optimizer.tell(point if pending is None else pending, y, noise_var=noise, constraints=limits)
        elif status == TrialStatus.FAILED:
            if pending is None:
                self.optimizer.replay([Trial(0, point, None, "failed", "user", order=0)])
            else:
                self.optimizer.fail(pending, why="failed")
        elif pending is not None:
            self.optimizer.forget(pending)

    def _point(self, parameters: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the point of an arm; None if it is outside the space."""
        assert self.optimizer is not None
        try:
            self.optimizer.space.encode(dict(parameters))
        except (TypeError, ValueError):
            return None
        return dict(parameters)


def _weights(objective: Any) -> dict[str, float]:
    """Return the weights of the metrics in the objective."""
    weights = {name: float(weight) for name, weight in objective.metric_weights}
    return weights if len(weights) > 1 else dict.fromkeys(weights, 1.0)


def _goal(objective: Any) -> Literal["max", "min"]:
    """Return the goal: expressions are maximised, a single metric with a negative weight is minimised."""
    weights = [weight for _, weight in objective.metric_weights]
    return "min" if len(weights) == 1 and weights[0] < 0.0 else "max"


def _parameters(space: Any) -> dict[str, Any]:
    """Return the parameters of an Ax search space, with the conditions of dependent ones."""
    conditions: dict[str, dict[str, list[Any]]] = {}
    for name, parameter in space.parameters.items():
        for value, children in (parameter.dependents or {}).items() if parameter.is_hierarchical else ():
            for child in children:
                conditions.setdefault(child, {}).setdefault(name, []).append(value)
    return {name: _parameter(parameter, conditions.get(name)) for name, parameter in space.parameters.items()}


def _parameter(parameter: Any, when: Mapping[str, Any] | None) -> Any:
    if isinstance(parameter, RangeParameter):
        kind: Any = Int if parameter.parameter_type == ParameterType.INT else Real
        return kind(parameter.lower, parameter.upper, bool(parameter.log_scale), when=when)
    if isinstance(parameter, ChoiceParameter):
        return Choice(tuple(parameter.values), ordered=bool(parameter.is_ordered), when=when)
    if isinstance(parameter, FixedParameter):
        return Choice((parameter.value,), when=when)
    raise TypeError(f"parameter {parameter.name!r} is a {type(parameter).__name__}; GPMINode takes ranges and choices")


def _constraints(space: Any) -> list[tuple[Any, Any, Any]] | None:
    """Return the linear constraints on parameters, each as a row with its bounds."""
    names = list(space.parameters)
    rows = []
    for constraint in space.parameter_constraints:
        row = np.array([[float(constraint.constraint_dict.get(name, 0.0)) for name in names]])
        rows.append((row, np.array([-np.inf]), np.array([float(constraint.bound)])))
    return rows or None


def _means(data: Any) -> dict[tuple[int, str], dict[str, tuple[float, float]]]:
    """Return mean and standard error of each metric, by trial and arm."""
    means: dict[tuple[int, str], dict[str, tuple[float, float]]] = {}
    for row in data.df.to_dict("records"):
        mean, error = float(row["mean"]), float(row["sem"]) if row["sem"] is not None else math.nan
        if math.isfinite(mean):
            means.setdefault((int(row["trial_index"]), row["arm_name"]), {})[row["metric_name"]] = mean, error
    return means


def _excess(limit: Any, means: Mapping[str, tuple[float, float]]) -> float:
    """Return by how much outcomes violate a constraint: feasible where it is <= 0."""
    value = sum(float(weight) * means[metric][0] for metric, weight in limit.metric_weights)
    if limit.relative:
        raise ValueError(f"the outcome constraint {limit} is relative to a status quo; give an absolute bound")
    value, bound = float(value), float(limit.bound)
    return value - bound if limit.op == ComparisonOp.LEQ else bound - value
