"""The generation node, in Ax's own client."""

from __future__ import annotations

import logging
from typing import Any

import pytest

import gpmi

pytest.importorskip("ax")

from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
from ax.generation_strategy.generation_strategy import GenerationStrategy

from gpmi.integrations.ax import GPMINode

pytestmark = pytest.mark.filterwarnings("ignore")
logging.getLogger("ax").setLevel(logging.ERROR)
BOX = [RangeParameterConfig("x", (0.0, 1.0), "float"), RangeParameterConfig("y", (1e-3, 1e3), "float", scaling="log")]


def client_of(parameters: list[Any], objective: str = "f", node: GPMINode | None = None, **more: Any) -> Any:
    client = Client(random_seed=0)
    client.configure_experiment(parameters, parameter_constraints=more.pop("parameter_constraints", None))
    client.configure_optimization(objective, **more)
    client.set_generation_strategy(GenerationStrategy(nodes=[node or GPMINode(seed=0)], name="gpmi"))
    return client


def one(client: Any) -> tuple[int, dict[str, Any]]:
    ((index, parameters),) = client.get_next_trials(1).items()
    return index, parameters


def test_its_candidates_are_those_of_an_optimizer() -> None:
    client = client_of(BOX)
    opt = gpmi.Optimizer({"x": (0.0, 1.0), "y": gpmi.Real(1e-3, 1e3, log=True)}, seed=0)
    for _ in range(9):
        index, parameters = one(client)
        point = opt.ask()
        assert parameters == pytest.approx(point)
        value = -((parameters["x"] - 0.3) ** 2)
        client.complete_trial(index, {"f": value})
        opt.tell(point, value)


def test_minimum_kinds_and_errors() -> None:
    parameters = [
        *BOX,
        RangeParameterConfig("n", (1, 9), "int"),
        ChoiceParameterConfig("c", ["a", "b"], "str", is_ordered=False),
        ChoiceParameterConfig("o", [1, 2, 4], "int", is_ordered=True),
    ]
    node = GPMINode(seed=0)
    client = client_of(parameters, "-f", node)
    for _ in range(8):
        index, point = one(client)
        assert isinstance(point["n"], int) and point["c"] in "ab" and point["o"] in (1, 2, 4)
        client.complete_trial(index, {"f": (point["x"] - 0.5 + (point["c"] == "a"), 0.1)})
    one(client)
    assert node.optimizer is not None and node.optimizer.goal == "min"
    told = [trial for trial in node.optimizer.trials if trial.status == "told"]
    assert len(told) == 8 and all(trial.noise_var == pytest.approx(0.01) for trial in told)


def test_several_at_a_time_are_apart_and_failures_teach() -> None:
    node = GPMINode(seed=0)
    client = client_of(BOX, node=node)
    points = client.get_next_trials(4)
    assert len({tuple(point.values()) for point in points.values()}) == 4
    first, *others = points
    client.mark_trial_failed(first)
    client.mark_trial_abandoned(others[0])
    for index in others[1:]:
        client.complete_trial(index, {"f": 1.0})
    client.attach_trial({"x": 0.123, "y": 1.0})
    one(client)
    statuses = sorted(trial.status for trial in node.optimizer.trials)  # type: ignore[union-attr]
    # Pending are the new one, the attached one, and the abandoned one, which Ax does not want again.
    assert statuses == ["failed", "pending", "pending", "pending", "told", "told"]


def test_constraints_on_parameters_and_outcomes() -> None:
    node = GPMINode(seed=0)
    box = [RangeParameterConfig("x", (0.0, 1.0), "float"), RangeParameterConfig("y", (0.0, 1.0), "float")]
    client = client_of(box, node=node, parameter_constraints=["x + y <= 1"], outcome_constraints=["g >= 0.5"])
    for _ in range(8):
        index, point = one(client)
        assert point["x"] + point["y"] <= 1.0 + 1e-9
        client.complete_trial(index, {"f": point["x"], "g": point["y"]})
    one(client)
    told = [trial for trial in node.optimizer.trials if trial.status == "told"]  # type: ignore[union-attr]
    assert [trial.constraints for trial in told] == [pytest.approx((0.5 - trial.x["y"],)) for trial in told]


@pytest.mark.parametrize(("objective", "sign"), [("f + 2*g", 1.0), ("-f - 2*g", -1.0)])
def test_a_weighted_sum_of_metrics_is_one_objective(objective: str, sign: float) -> None:
    node = GPMINode(seed=0)
    client = client_of(BOX, objective, node)
    index, point = one(client)
    client.complete_trial(index, {"f": (point["x"], 0.3), "g": (0.5, 0.2)})
    one(client)
    told = node.optimizer.trials[0]  # type: ignore[union-attr]
    assert node.optimizer.goal == "max" and told.y == pytest.approx(sign * (point["x"] + 1.0))  # type: ignore[union-attr]
    assert told.noise_var == pytest.approx(0.3**2 + 0.4**2)


def test_the_factor_of_a_single_metric_changes_nothing() -> None:
    node = GPMINode(seed=0)
    client = client_of(BOX, "-3*f", node)
    index, point = one(client)
    client.complete_trial(index, {"f": point["x"]})
    one(client)
    assert node.optimizer.goal == "min" and node.optimizer.trials[0].y == point["x"]  # type: ignore[union-attr]


def test_several_objectives_are_refused() -> None:
    client = client_of(BOX, "f, g")
    with pytest.raises(Exception, match="several objectives, but GPMINode takes one"):
        one(client)


def test_goals_are_those_of_the_experiment() -> None:
    with pytest.raises(TypeError, match="goals is not an argument of GPMINode, which optimises one value"):
        GPMINode(goals={"f": "max", "g": "min"})
    with pytest.raises(ValueError, match="for several objectives, but GPMINode has one"):
        GPMINode(policy=gpmi.EHVI())
