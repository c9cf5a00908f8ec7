"""The sampler for Optuna: its own tests of samplers, and ours for what those leave out."""

from __future__ import annotations

import math
import multiprocessing
import pickle
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gpmi

optuna = pytest.importorskip("optuna")
if int(optuna.__version__.split(".")[0]) < 5:
    pytest.skip("Optuna 5 is needed", allow_module_level=True)

from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution  # noqa: E402
from optuna.storages import JournalStorage  # noqa: E402
from optuna.storages.journal import JournalFileBackend  # noqa: E402
from optuna.testing.pytest_samplers import (  # noqa: E402
    BasicSamplerTestCase,
    MultiObjectiveSamplerTestCase,
    RelativeSamplerTestCase,
)
from optuna.trial import TrialState  # noqa: E402

from gpmi.integrations.optuna import GPMISampler, coordination  # noqa: E402
from gpmi.integrations.optuna.inference import conditions  # noqa: E402
from gpmi.integrations.optuna.search_space import SearchSpace  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning"),
    pytest.mark.filterwarnings("ignore:Fixed parameter"),
    pytest.mark.usefixtures("storages_are_closed"),
]
optuna.logging.disable_default_handler()


class TestOptunasOwn(BasicSamplerTestCase, RelativeSamplerTestCase, MultiObjectiveSamplerTestCase):
    @pytest.fixture
    def sampler(self) -> Callable[[], GPMISampler]:
        return lambda: GPMISampler(seed=0)


def study_of(sampler: Any, **more: Any) -> Any:
    return optuna.create_study(sampler=sampler, **more)


def bowl(trial: Any) -> float:
    x, y = trial.suggest_float("x", -1.0, 1.0), trial.suggest_float("y", 1e-3, 1e3, log=True)
    return float((x - 0.3) ** 2 + math.log10(y) ** 2)


BOWL = {"x": FloatDistribution(-1.0, 1.0), "y": FloatDistribution(1e-3, 1e3, log=True)}


# Which points


def test_with_a_search_space_the_trials_are_those_of_an_optimizer_from_the_first() -> None:
    study = study_of(GPMISampler(BOWL, seed=3))
    study.optimize(bowl, n_trials=12)
    opt = gpmi.Optimizer({"x": (-1.0, 1.0), "y": gpmi.Real(1e-3, 1e3, log=True)}, seed=3, goal="min")
    for trial in study.trials:
        point = opt.ask()
        assert trial.params == point
        opt.tell(point, trial.value)
    assert len(study.sampler.optimizer(study).trials) == 12


def test_without_one_the_first_trial_is_random_and_the_others_are_not() -> None:
    study = study_of(GPMISampler(seed=0))
    study.optimize(bowl, n_trials=15)
    assert study.best_value < 0.05
    origins = [trial.origin for trial in study.sampler.optimizer(study).trials]
    assert origins[0] == "user" and "user" not in origins[1:] and origins[-1] == "policy"


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_both_directions(direction: str) -> None:
    sign = 1.0 if direction == "minimize" else -1.0
    study = study_of(GPMISampler(BOWL, seed=0), direction=direction)
    study.optimize(lambda trial: sign * bowl(trial), n_trials=15)
    assert abs(study.best_value) < 0.05


def test_a_worker_that_starts_later_goes_on_as_the_first_would_have(tmp_path: Path) -> None:
    storage = JournalStorage(JournalFileBackend(str(tmp_path / "study")))
    one = study_of(GPMISampler(BOWL, seed=1), storage=storage, study_name="s")
    one.optimize(bowl, n_trials=9)
    other = optuna.load_study(storage=storage, study_name="s", sampler=GPMISampler(BOWL))  # it takes over the seed
    other.optimize(bowl, n_trials=1)
    whole = study_of(GPMISampler(BOWL, seed=1))
    whole.optimize(bowl, n_trials=10)
    assert [trial.params for trial in other.trials] == [trial.params for trial in whole.trials]


def test_a_sampler_may_be_pickled_and_goes_on() -> None:
    study = study_of(GPMISampler(BOWL, seed=1))
    study.optimize(bowl, n_trials=7)
    study.sampler = pickle.loads(pickle.dumps(study.sampler))
    study.optimize(bowl, n_trials=1)
    assert len(study.sampler.optimizer(study).trials) == 8


# Parameters of all kinds


@pytest.mark.filterwarnings("ignore:Choices for a categorical")
def test_steps_categories_and_logarithms_of_any_kind() -> None:
    options: list[Any] = [None, math.nan, [1, 2], {"a": 1}, "word", 1, (3,)]
    space = {
        "c": CategoricalDistribution(options),
        "q": FloatDistribution(0.0, 1.0, step=0.1),
        "fine": FloatDistribution(-3.0, 3.0, step=0.001),
        "n": IntDistribution(1, 99, step=7),
        "m": IntDistribution(1, 10**15, log=True),
        "one": IntDistribution(4, 4),
    }
    study = study_of(GPMISampler(space, seed=0))

    def f(trial: Any) -> float:
        number = options.index(trial.suggest_categorical("c", options))
        q, fine = trial.suggest_float("q", 0.0, 1.0, step=0.1), trial.suggest_float("fine", -3.0, 3.0, step=0.001)
        n, m = trial.suggest_int("n", 1, 99, step=7), trial.suggest_int("m", 1, 10**15, log=True)
        assert isinstance(m, int) and isinstance(q, float) and trial.suggest_int("one", 4, 4) == 4
        return abs(number - 2) + q + abs(fine) + n / 99 + math.log10(m) / 15

    study.optimize(f, n_trials=12)
    assert all(trial.state == TrialState.COMPLETE for trial in study.trials)
    assert [trial.status for trial in study.sampler.optimizer(study).trials] == ["told"] * 12
    assert len({options.index(trial.params["c"]) for trial in study.trials[:7]}) == 7  # the design shows every option
    fine = np.array([trial.params["fine"] for trial in study.trials])
    np.testing.assert_allclose(1000.0 * fine, np.round(1000.0 * fine), atol=1e-9)


def branches(trial: Any) -> float:
    kernel = trial.suggest_categorical("kernel", ["rbf", "poly", "linear"])
    cost = trial.suggest_float("cost", 0.0, 1.0)
    if kernel == "rbf":
        return float(cost + (trial.suggest_float("gamma", 0.0, 1.0) - 0.4) ** 2)
    if kernel == "poly":
        degree = trial.suggest_int("degree", 2, 5)
        return float(cost + 1.0 + degree + (trial.suggest_float("coef", 0.0, 1.0) if degree > 3 else 0.0))
    return float(cost + 2.0)


def test_conditions_are_found_from_the_trials() -> None:
    study = study_of(GPMISampler(seed=0))
    study.optimize(branches, n_trials=30)
    assert study.best_value < 0.1
    opt = study.sampler.optimizer(study)
    assert [trial.status for trial in opt.trials] == ["told"] * 30  # every trial is a point of the space
    when = dict(zip(opt.space.names, (one.when for one in opt.space.parameters), strict=True))
    assert when["gamma"] == {"kernel": ["rbf"]} and when["degree"] == {"kernel": ["poly"]} and when["cost"] is None


def test_conditions_are_found_from_a_database_too() -> None:
    study = study_of(optuna.samplers.RandomSampler(seed=0), storage="sqlite:///:memory:")
    study.optimize(branches, n_trials=40)
    study.sampler = GPMISampler(seed=0)
    study.optimize(branches, n_trials=1)
    opt = study.sampler.optimizer(study)
    when = dict(zip(opt.space.names, (one.when for one in opt.space.parameters), strict=True))
    assert when["coef"] == {"degree": [4, 5]} and when["gamma"] == {"kernel": ["rbf"]}
    assert len(opt.trials) == 41


def test_the_fewest_values_that_explain_a_parameter_are_its_condition() -> None:
    kinds = {"a": CategoricalDistribution("xy"), "b": CategoricalDistribution("uv"), "n": IntDistribution(1, 9)}
    kinds |= {"p": FloatDistribution(0.0, 1.0), "q": FloatDistribution(0.0, 1.0), "r": FloatDistribution(0.0, 1.0)}
    trials = [
        {"a": a, "b": b, "n": n}
        | ({"p": 0.5} if a == b == 1.0 else {})  # a = y and b = v
        | ({"q": 0.5} if n >= 5 else {})
        | ({"r": 0.5} if n in (2.0, 7.0) and a == 1.0 else {})
        for a in (0.0, 1.0)
        for b in (0.0, 1.0)
        for n in (2.0, 5.0, 7.0)
    ]
    found = conditions(kinds, trials)
    assert found["a"] == found["b"] == found["n"] == {}
    assert found["p"] == {"a": ["y"], "b": ["v"]}
    assert found["q"] == {"n": [4, 5, 6, 7, 8, 9]}  # what was not seen is as what is nearest to it
    assert found["r"] == {"a": ["y"], "n": [1, 2, 3, 6, 7, 8, 9]}
    loose = [{"a": 0.0}, {"a": 0.0, "p": 0.5}]
    assert conditions({name: kinds[name] for name in "ap"}, loose) == {"a": {}}  # nothing explains p


def test_conditions_that_are_given() -> None:
    space = {
        "kernel": ["rbf", "poly", "linear"],
        "cost": (0.0, 1.0),
        "gamma": gpmi.Real(0.0, 1.0, when={"kernel": "rbf"}),
        "degree": gpmi.Int(2, 5, when={"kernel": "poly"}),
        "coef": gpmi.Real(0.0, 1.0, when={"degree": [4, 5]}),
    }
    study = study_of(GPMISampler(space, seed=0))
    study.optimize(branches, n_trials=12)
    assert "user" not in {trial.origin for trial in study.sampler.optimizer(study).trials}


def test_known_constraints_on_the_parameters_hold() -> None:
    study = study_of(GPMISampler({"a": (0.0, 1.0), "b": (0.0, 1.0)}, seed=0, constraints=["a + b <= 1"]))
    study.optimize(lambda t: -t.suggest_float("a", 0, 1) - 2 * t.suggest_float("b", 0, 1), n_trials=12)
    assert all(sum(trial.params.values()) <= 1.0 + 1e-9 for trial in study.trials)
    assert study.best_value < -1.9


def test_trials_outside_a_changed_range_are_left_out() -> None:
    study = study_of(GPMISampler(seed=0))
    study.optimize(lambda trial: trial.suggest_float("x", 0.0, 10.0), n_trials=6)
    study.optimize(lambda trial: trial.suggest_float("x", 5.0, 20.0), n_trials=6)
    inside = sum(trial.params["x"] >= 5.0 for trial in study.trials)
    assert len(study.sampler.optimizer(study).trials) == inside < 12
    assert all(trial.params["x"] >= 5.0 for trial in study.trials[6:])


# What trials teach


def test_failed_trials_teach_where_not_to_look() -> None:
    def f(trial: Any) -> float:
        x = trial.suggest_float("x", 0.0, 1.0)
        if x > 0.5:
            raise OSError("crash")
        return math.nan if x > 0.45 else -x

    study = study_of(GPMISampler({"x": (0.0, 1.0)}, seed=0))
    study.optimize(f, n_trials=25, catch=OSError)
    failed = [trial.state == TrialState.FAIL for trial in study.trials]
    assert sum(failed[:8]) > 0 and sum(failed[12:]) <= 4
    assert {trial.status for trial in study.sampler.optimizer(study).trials} == {"told", "failed"}


def test_infinite_values_are_failures() -> None:
    study = study_of(GPMISampler({"x": (0.0, 1.0)}, seed=0))
    study.optimize(lambda trial: math.inf if trial.suggest_float("x", 0.0, 1.0) > 0.5 else 0.0, n_trials=6)
    assert [trial.status for trial in study.sampler.optimizer(study).trials] == [
        "told" if math.isfinite(trial.value) else "failed" for trial in study.trials
    ]


def test_a_pruned_trial_is_between_the_median_and_the_worst() -> None:
    study = study_of(GPMISampler({"x": (0.0, 1.0)}, seed=0))
    for value in (1.0, 2.0, 6.0):
        study.tell(_asked(study), value)
    for reported in (100.0, 0.0, 4.0, None):
        trial = _asked(study)
        if reported is not None:
            trial.report(reported, 1)
        study.tell(trial, state=TrialState.PRUNED)
    _asked(study)
    told = study.sampler.optimizer(study).trials
    assert [trial.y for trial in told[3:6]] == [6.0, 2.0, 4.0]
    assert told[6].status == "failed" and told[6].why == "pruned, its value is None"


def _asked(study: Any) -> Any:
    trial = study.ask()
    trial.suggest_float("x", 0.0, 1.0)
    return trial


def test_constraints_measured_in_trials_are_kept_to() -> None:
    def f(trial: Any) -> float:
        x = trial.suggest_float("x", 0.0, 1.0)
        trial.set_constraint("limit", x - 0.6)
        return -x

    study = study_of(GPMISampler({"x": (0.0, 1.0)}, seed=0))
    study.optimize(f, n_trials=14)
    assert -0.601 < study.best_value < -0.55
    opt = study.sampler.optimizer(study)
    assert [len(trial.constraints) for trial in opt.trials] == [1] * 14


def test_a_trial_without_the_constraints_of_the_others_is_left_out() -> None:
    study = study_of(GPMISampler({"x": (0.0, 1.0)}, seed=0))
    study.tell(_asked(study), 0.0)
    for number, limit in enumerate((1.0, math.inf, -math.inf, -1.0)):
        trial = _asked(study)
        trial.set_constraint("limit", limit)
        study.tell(trial, float(number))
    _asked(study)
    known = [(trial.y, trial.status) for trial in study.sampler.optimizer(study).trials]
    assert known == [(0.0, "told"), (None, "failed"), (3.0, "told"), (None, "pending")]


# What is given


def test_enqueued_parameters_are_conditioned_on() -> None:
    study = study_of(GPMISampler(BOWL, seed=0))
    study.optimize(bowl, n_trials=8)
    study.enqueue_trial({"x": 0.9})
    study.enqueue_trial({"x": -0.5, "y": 1.0})
    study.optimize(bowl, n_trials=2)
    part, whole = study.sampler.optimizer(study).trials[8:]
    assert study.trials[8].params["x"] == 0.9 and part.fixed == {"x": 0.9} and part.origin == "policy"
    assert abs(math.log10(part.x["y"])) < 1.5  # the other one is chosen well, whatever x is
    assert study.trials[9].params == {"x": -0.5, "y": 1.0} and whole.origin == "user"


def test_enqueued_parameters_that_have_no_place_do_no_harm() -> None:
    study = study_of(GPMISampler(BOWL, seed=0))
    study.enqueue_trial({"x": 7.0, "other": 1})
    study.optimize(bowl, n_trials=2)
    assert study.trials[0].params["x"] == 7.0
    assert [trial.x["x"] for trial in study.sampler.optimizer(study).trials] == [study.trials[1].params["x"]]


def test_a_fixed_parameter_brings_what_makes_it_active() -> None:
    space = {"kind": ["a", "b"], "p": gpmi.Real(0.0, 1.0, when={"kind": "b"}), "q": gpmi.Real(0.0, 1.0)}
    domain = SearchSpace.of(space)
    assert domain.fixed({"p": 0.5}) == {"kind": "b", "p": 0.5}
    assert domain.fixed({"kind": "a", "p": 0.5, "q": 2.0}) == {"kind": "a"}
    assert domain.point({"kind": "a", "p": 0.5, "q": 0.5}) == {"kind": "a", "q": 0.5}
    assert domain.point({"kind": "b", "q": 0.5}) is None


def test_parameters_fixed_by_another_sampler_are_conditioned_on() -> None:
    study = study_of(GPMISampler(BOWL, seed=0))
    study.optimize(bowl, n_trials=6)
    inner = study.sampler
    study.sampler = optuna.samplers.PartialFixedSampler({"x": -0.8}, inner)
    study.optimize(bowl, n_trials=6)
    assert {trial.params["x"] for trial in study.trials[6:]} == {-0.8}
    assert all(trial.fixed == {"x": -0.8} for trial in inner.optimizer(study).trials[6:])
    assert min(abs(math.log10(trial.params["y"])) for trial in study.trials[6:]) < 0.2


# Many at the same time


def shared(trials: list[Any], lasted: Callable[[Any], tuple[Any, Any]]) -> int:
    """How many pairs of trials ran at the same time with the same parameters."""
    count = 0
    for a, b in combinations(trials, 2):
        (begin, end), (start, stop) = lasted(a), lasted(b)
        count += begin < stop and start < end and a.params == b.params
    return count


def lasted(trial: Any) -> tuple[Any, Any]:
    return trial.datetime_start, trial.datetime_complete


def slow_bowl(trial: Any) -> float:
    value = bowl(trial)
    time.sleep(0.02)
    return value


def test_threads_get_points_of_their_own() -> None:
    study = study_of(GPMISampler(BOWL, seed=0))
    study.optimize(slow_bowl, n_trials=24, n_jobs=4)
    assert len(study.trials) == 24 and shared(study.trials, lasted) == 0
    assert len({tuple(trial.params.values()) for trial in study.trials}) == 24


def test_points_asked_at_once_are_apart() -> None:
    study = study_of(GPMISampler(BOWL, seed=0))
    study.optimize(bowl, n_trials=8)
    asked = [study.ask(BOWL) for _ in range(5)]
    x = np.array([[t.params["x"] / 2.0, math.log10(t.params["y"]) / 6.0] for t in asked])
    assert min(float(np.abs(a - b).max()) for a, b in combinations(x, 2)) > 1e-3
    assert len(study.sampler.optimizer(study).pending) == 5


def worker(storage: str, count: int) -> None:
    optuna.logging.disable_default_handler()
    backing: Any = storage if storage.startswith("sqlite") else JournalStorage(JournalFileBackend(storage))
    optuna.load_study(storage=backing, study_name="s", sampler=GPMISampler()).optimize(slow_bowl, n_trials=count)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "journal"])
def test_processes_on_one_storage_get_points_of_their_own(kind: str, tmp_path: Path) -> None:
    path = str(tmp_path / "study")
    storage = f"sqlite:///{path}" if kind == "sqlite" else path
    backing: Any = storage if kind == "sqlite" else JournalStorage(JournalFileBackend(path))
    study = optuna.create_study(storage=backing, study_name="s")
    context = multiprocessing.get_context("forkserver")  # it imports Optuna once for all processes
    context.set_forkserver_preload([__name__])
    processes = [context.Process(target=worker, args=(storage, 4)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert len(study.trials) == 12 and shared(study.trials, lasted) == 0
    seeds = {coordination.published(trial.system_attrs)["seed"] for trial in study.trials}
    assert len(seeds) == 1


def test_a_trial_waits_for_the_points_of_those_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    looked, released = threading.Event(), threading.Event()

    def sleep(seconds: float) -> None:
        looked.set()
        assert released.wait(60.0)

    monkeypatch.setattr(coordination, "time", SimpleNamespace(monotonic=time.monotonic, sleep=sleep))
    study = study_of(GPMISampler(BOWL, seed=0))
    late = study._storage.create_new_trial(study._study_id)  # another worker, which is still thinking
    asked: list[Any] = []
    thread = threading.Thread(target=lambda: asked.append(study.ask(BOWL)))
    thread.start()
    assert looked.wait(60.0) and not asked
    coordination.publish(study._storage, late, {"x": {"x": 0.25, "y": 2.0}, "seed": 0})
    released.set()
    thread.join(60.0)
    assert len(asked) == 1
    assert study.sampler.optimizer(study).pending[0].x == {"x": 0.25, "y": 2.0}


def test_it_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordination, "PATIENCE", 0.05)
    study = study_of(GPMISampler(BOWL, seed=0))
    study._storage.create_new_trial(study._study_id)  # its worker has died
    study.ask(BOWL)
    monkeypatch.setattr(coordination, "PATIENCE", 1e9)
    study.ask(BOWL)  # it is not waited for again


def test_those_who_wait_give_up_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordination, "PATIENCE", 0.05)
    study = study_of(GPMISampler(BOWL, seed=0))
    for _ in range(3):
        study._storage.create_new_trial(study._study_id)
    given_up: set[int] = set()
    seen: list[set[int]] = []

    def running() -> list[Any]:
        seen.append(set(given_up))
        return list(study._storage.get_all_trials(study._study_id))

    coordination.await_earlier(running, 3, given_up)
    assert given_up == {0, 1, 2} and [len(one) for one in seen] == sorted(len(one) for one in seen)
    assert {0} in seen and {0, 1} in seen


def test_a_point_that_another_got_at_the_same_moment_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    study = study_of(GPMISampler(BOWL, seed=0))
    late = study._storage.create_new_trial(study._study_id)  # it was given up, and chooses at the same moment
    first = gpmi.Optimizer({"x": (-1.0, 1.0), "y": gpmi.Real(1e-3, 1e3, log=True)}, seed=0, goal="min").ask()
    monkeypatch.setattr(coordination, "PATIENCE", 0.05)
    write = coordination.publish

    def both(storage: Any, trial_id: int, said: Any) -> None:
        if "gpmi:point" not in storage.get_trial_system_attrs(late):
            write(storage, late, {"x": dict(first), "seed": 0, "origin": "design"})
        write(storage, trial_id, said)

    monkeypatch.setattr("gpmi.integrations.optuna.sampler.publish", both)
    trial = study.ask(BOWL)
    assert trial.params != first
    assert [one.x for one in study.sampler.optimizer(study).pending] == [first, trial.params]


def test_a_point_that_the_storage_did_not_take_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    study = study_of(GPMISampler(BOWL, seed=0))
    refused, write = [], study._storage.set_trial_system_attr

    def locked_once(*args: Any) -> None:
        if not refused:
            refused.append(args)
            raise OSError("the database is locked")
        write(*args)

    monkeypatch.setattr(study._storage, "set_trial_system_attr", locked_once)
    study.optimize(bowl, n_trials=2)
    assert refused and len(study.sampler.optimizer(study).trials) == 2


def test_what_is_published_may_be_long() -> None:
    study = study_of(GPMISampler(seed=0))
    trial_id = study._storage.create_new_trial(study._study_id)
    said = {"x": {f"parameter number {i}": i / 7.0 for i in range(300)}}
    coordination.publish(study._storage, trial_id, said)
    attributes = study._storage.get_trial_system_attrs(trial_id)
    assert coordination.published(attributes) == said and coordination.published({}) is None
    assert max(len(str(value)) for value in attributes.values()) < 1100


def test_dead_trials_no_longer_count_but_may_come_back() -> None:
    study = study_of(GPMISampler(BOWL, seed=0, stale_after=3600.0))
    study.optimize(bowl, n_trials=6)
    dead = study.ask(BOWL)
    frozen = study._storage.get_all_trials(study._study_id, deepcopy=False)[6]
    study.ask(BOWL)
    assert len(study.sampler.optimizer(study).pending) == 2
    frozen = study._storage._get_trial(dead._trial_id)
    frozen.datetime_start = datetime.now() - timedelta(hours=2)
    study.ask(BOWL)
    assert len(study.sampler.optimizer(study).pending) == 2  # that of the dead one is not among them
    study.tell(dead, 0.5)
    study.ask(BOWL)
    assert 0.5 in [trial.y for trial in study.sampler.optimizer(study).trials]


def test_by_default_dead_is_what_lasts_ten_times_the_longest() -> None:
    study = study_of(GPMISampler(BOWL, seed=0))
    study.optimize(bowl, n_trials=3)
    dead = study.ask(BOWL)
    for hours, count in ((0.0, 2), (2.0, 2)):  # itself and the dead one; then itself and the one before
        study._storage._get_trial(dead._trial_id).datetime_start = datetime.now() - timedelta(hours=hours)
        study.ask(BOWL)
        assert len(study.sampler.optimizer(study).pending) == count


# What is refused


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"search_space": {}}, "search_space is empty"),
        ({"search_space": [(0.0, 1.0)]}, "give a dict of names"),
        ({"seed": -1}, "seed"),
        ({"stale_after": "soon"}, "stale_after"),
        ({"goal": "max"}, "goal is not an argument of GPMISampler"),
        ({"n_startup_trials": 5}, "did you mean n_init="),
        ({"aim": "win"}, "aim"),
        ({"constraints": "a <= 1"}, "give search_space as well"),
        ({"search_space": {"a": (0.0, 1.0)}, "constraints": "b <= 1"}, "b"),
    ],
)
def test_wrong_arguments_are_refused_at_once(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        GPMISampler(**arguments)


# OptunaHub


def test_the_package_for_optunahub_is_in_its_layout() -> None:
    folder = Path(__file__).parents[2] / "integrations" / "optunahub" / "package" / "samplers" / "gpmi"
    assert {"__init__.py", "README.md", "LICENSE", "example.py"} <= {path.name for path in folder.iterdir()}
    head = (folder / "README.md").read_text(encoding="utf-8").split("---")[1]
    keys = [line.split(":")[0] for line in head.strip().splitlines()]
    assert keys == ["author", "title", "description", "tags", "optuna_versions", "license"]
    names: dict[str, Any] = {}
    exec((folder / "__init__.py").read_text(encoding="utf-8"), names)
    assert names["GPMISampler"] is GPMISampler
