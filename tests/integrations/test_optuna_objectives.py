"""The sampler for Optuna studies with several objectives: a run with goals, and nothing less than with one."""

from __future__ import annotations

import math
import multiprocessing
import pickle
import re
import time
from datetime import datetime, timedelta
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpmi

optuna = pytest.importorskip("optuna")
if int(optuna.__version__.split(".")[0]) < 5:
    pytest.skip("Optuna 5 is needed", allow_module_level=True)

from optuna.storages import JournalStorage  # noqa: E402
from optuna.storages.journal import JournalFileBackend  # noqa: E402
from optuna.trial import TrialState, create_trial  # noqa: E402

from gpmi.integrations.optuna import GPMISampler  # noqa: E402
from gpmi.integrations.optuna.goals import StudyGoals  # noqa: E402
from gpmi.policies.front import hypervolume  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning"),
    pytest.mark.filterwarnings("ignore:Fixed parameter"),
    pytest.mark.usefixtures("storages_are_closed"),
]
optuna.logging.disable_default_handler()

UNIT = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
LINE = {"x": (0.0, 1.0)}
DIRECTIONS = ("minimize", "maximize")


def study_of(sampler: Any, directions: Any = DIRECTIONS, **more: Any) -> Any:
    return optuna.create_study(sampler=sampler, directions=directions, **more)


def cost_and_gain(trial: Any) -> tuple[float, float]:
    x, y = trial.suggest_float("x", 0.0, 1.0), trial.suggest_float("y", 0.0, 1.0)
    return x**2 + 0.3 * y, math.sin(2.0 * x) - (y - 0.5) ** 2


def slow(trial: Any) -> tuple[float, float]:
    values = cost_and_gain(trial)
    time.sleep(0.02)
    return values


def asked(study: Any) -> Any:
    trial = study.ask()
    trial.suggest_float("x", 0.0, 1.0)
    return trial


# Which points


@pytest.mark.parametrize("reference", [None, [1.0, -0.2], [None, -0.2]])
def test_with_a_search_space_the_trials_are_those_of_an_optimizer_from_the_first(reference: Any) -> None:
    study = study_of(GPMISampler(UNIT, seed=3, reference_point=reference))
    study.optimize(cost_and_gain, n_trials=14)
    worst, least = (None, None) if reference is None else reference
    opt = gpmi.Optimizer(UNIT, seed=3, goals={"cost": gpmi.Min(at_most=worst), "gain": gpmi.Max(at_least=least)})
    for trial in study.trials:
        point = opt.ask()
        assert trial.params == point
        opt.tell(point, dict(zip(("cost", "gain"), trial.values, strict=True)))
    goals = study.sampler.optimizer(study).goals
    assert dict(goals) == {"0": gpmi.Min(worst), "1": gpmi.Max(least)}


def test_the_front_is_the_one_that_optuna_sees() -> None:
    study = study_of(GPMISampler(seed=0))
    study.optimize(cost_and_gain, n_trials=25)
    opt = study.sampler.optimizer(study)
    assert {trial.number for trial in opt.front} == {trial.number for trial in study.best_trials}
    assert len(opt.front) >= 12  # most points of the policy are on it
    origins = [trial.origin for trial in opt.trials]
    assert origins[0] == "user" and "user" not in origins[1:] and origins[-1] == "policy"
    chosen = opt.choose(where={"1": ">= 0.5"}, **{"0": "min"})
    assert chosen.outputs["1"].mean >= 0.5 and chosen.probability >= 0.9


def test_names_of_the_objectives_name_the_outputs_and_change_no_point() -> None:
    plain, named = (study_of(GPMISampler(UNIT, seed=1)) for _ in range(2))
    plain.optimize(cost_and_gain, n_trials=12)
    named.optimize(cost_and_gain, n_trials=6)
    named.set_metric_names(["cost", "gain"])  # in the middle
    named.optimize(cost_and_gain, n_trials=6)
    assert [trial.params for trial in named.trials] == [trial.params for trial in plain.trials]
    opt = named.sampler.optimizer(named)
    assert str(opt.goals) == "cost (min), gain (max)"
    assert [list(trial.outputs.values()) for trial in opt.trials] == [trial.values for trial in named.trials]
    assert opt.choose(cost="min", where={"gain": ">= 0.5"}).outputs["gain"].mean >= 0.5


@pytest.mark.parametrize("count", [3, 5])
def test_any_number_of_objectives(count: int) -> None:
    study = study_of(GPMISampler({f"x{j}": (0.0, 1.0) for j in range(3)}, seed=0), ["minimize"] * count)

    def f(trial: Any) -> list[float]:
        x = [trial.suggest_float(f"x{j}", 0.0, 1.0) for j in range(3)]
        return [sum((one - i / count) ** 2 for one in x) + x[i % 3] for i in range(count)]

    study.optimize(f, n_trials=12)
    opt = study.sampler.optimizer(study)
    assert list(opt.goals) == [str(i) for i in range(count)] and opt.trials[-1].origin == "policy"


def branin_currin(trial: Any) -> tuple[float, float]:
    u, v = trial.suggest_float("u", 0.0, 1.0), trial.suggest_float("v", 0.0, 1.0)
    a, b = 15.0 * u - 5.0, 15.0 * v
    branin = (b - 5.1 * a**2 / (4 * math.pi**2) + 5 * a / math.pi - 6) ** 2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(a)
    factor = 1.0 - math.exp(-1.0 / (2.0 * v)) if v > 0.0 else 1.0
    currin = factor * (2300 * u**3 + 1900 * u**2 + 2092 * u + 60) / (100 * u**3 + 500 * u**2 + 4 * u + 20)
    return branin + 10.0, currin


def test_it_finds_the_front_as_an_optimizer_does() -> None:
    """The hypervolume of BraninCurrin at (18, 6) is at most 59.36."""
    reference = np.array([18.0, 6.0])
    study = study_of(GPMISampler(seed=0, reference_point=reference), ["minimize"] * 2)
    study.optimize(branin_currin, n_trials=60)
    space = {"u": (0.0, 1.0), "v": (0.0, 1.0)}
    opt = gpmi.Optimizer(space, seed=0, goals={"a": gpmi.Min(18.0), "b": gpmi.Min(6.0)})
    for _ in range(60):
        point = opt.ask()
        values = branin_currin(optuna.trial.FixedTrial(point))
        opt.tell(point, dict(zip("ab", values, strict=True)))
    found = [[trial.values for trial in study.trials], [list(trial.outputs.values()) for trial in opt.trials]]
    theirs, ours = (hypervolume(-np.array(values), -reference) for values in found)
    assert min(theirs, ours) > 0.97 * 59.36 and abs(theirs - ours) < 0.01 * 59.36


@pytest.mark.parametrize("kind", [pytest.param("sqlite", marks=pytest.mark.slow), "journal"])
def test_a_worker_that_starts_later_goes_on_as_the_first_would_have(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "study"
    storage: Any = f"sqlite:///{path}" if kind == "sqlite" else JournalStorage(JournalFileBackend(str(path)))

    def f(trial: Any) -> tuple[float, float]:
        values = cost_and_gain(trial)
        trial.set_constraint("enough", 0.2 - values[1])
        return values

    one = study_of(GPMISampler(UNIT, seed=1), storage=storage, study_name="s")
    one.optimize(f, n_trials=9)
    other = optuna.load_study(storage=storage, study_name="s", sampler=GPMISampler(UNIT))  # it takes over the seed
    other.optimize(f, n_trials=1)
    whole = study_of(GPMISampler(UNIT, seed=1))
    whole.optimize(f, n_trials=10)
    assert [trial.params for trial in other.trials] == [trial.params for trial in whole.trials]


def test_a_sampler_may_be_pickled_and_goes_on() -> None:
    study = study_of(GPMISampler(UNIT, seed=1, reference_point=[1.0, None]))
    study.optimize(cost_and_gain, n_trials=7)
    study.sampler = pickle.loads(pickle.dumps(study.sampler))
    study.sampler.reseed_rng()
    study.optimize(cost_and_gain, n_trials=1)
    opt = study.sampler.optimizer(study)
    assert len(opt.trials) == 8 and opt.goals["0"] == gpmi.Min(1.0)


def test_conditions_are_found_from_the_trials() -> None:
    def f(trial: Any) -> tuple[float, float]:
        kind = trial.suggest_categorical("kind", ["a", "b"])
        x = trial.suggest_float("x", 0.0, 1.0)
        more = trial.suggest_float("more", 0.0, 1.0) if kind == "b" else 0.5
        return x + (kind == "a"), -x + more

    study = study_of(GPMISampler(seed=0))
    study.optimize(f, n_trials=15)
    opt = study.sampler.optimizer(study)
    when = dict(zip(opt.space.names, (one.when for one in opt.space.parameters), strict=True))
    assert when["more"] == {"kind": ["b"]} and [trial.status for trial in opt.trials] == ["told"] * 15


def test_under_hyperband_the_objectives_keep_their_names() -> None:
    study = study_of(GPMISampler(UNIT, seed=0), pruner=optuna.pruners.HyperbandPruner(1, 3))
    study.set_metric_names(["cost", "gain"])
    study.optimize(cost_and_gain, n_trials=3)
    assert [trial.origin for trial in study.sampler.optimizer(study).trials] == ["design"] * 3
    assert list(study.sampler.optimizer(study).goals) == ["cost", "gain"]


# What trials teach


def test_failed_trials_teach_where_not_to_look() -> None:
    def f(trial: Any) -> tuple[float, float]:
        x = trial.suggest_float("x", 0.0, 1.0)
        if x > 0.5:
            raise OSError("crash")
        return (math.nan if x > 0.45 else -x), x**2

    study = study_of(GPMISampler(LINE, seed=0), ["minimize"] * 2)
    study.optimize(f, n_trials=25, catch=OSError)
    failed = [trial.state == TrialState.FAIL for trial in study.trials]
    assert sum(failed[:8]) > 0 and sum(failed[12:]) <= 4
    assert [trial.status for trial in study.sampler.optimizer(study).trials] == [
        "failed" if one else "told" for one in failed
    ]


def test_infinite_values_are_failures() -> None:
    study = study_of(GPMISampler(LINE, seed=0))
    for values in ((1.0, 2.0), (math.inf, 2.0), (1.0, -math.inf), (0.5, 1e200)):
        study.tell(asked(study), values)
    opt = study.sampler.optimizer(study)
    assert [trial.status for trial in opt.trials] == ["told", "failed", "failed", "failed"]
    assert opt.trials[1].why == "complete, its values are [inf, 2.0]"


def test_pruned_trials_are_failures_or_bad_in_every_objective() -> None:
    """Optuna takes no reports with several objectives, so only trials that were added can have values."""
    study = study_of(GPMISampler(LINE, seed=0))
    for values in ((1.0, 1.0), (2.0, 2.0), (6.0, 6.0)):
        study.tell(asked(study), values)
    study.tell(asked(study), state=TrialState.PRUNED)
    space = {"x": optuna.distributions.FloatDistribution(0.0, 1.0)}
    for values in ((100.0, 100.0), (0.0, 0.0), (4.0, 1.5), None):
        study.add_trial(create_trial(state=TrialState.PRUNED, values=values, params={"x": 0.5}, distributions=space))
    pruned = study.sampler.optimizer(study).trials[3:]
    assert [tuple(trial.outputs.values()) for trial in pruned] == [(), (6.0, 2.0), (2.0, 1.0), (4.0, 1.5), ()]
    assert [trial.why for trial in pruned if trial.status == "failed"] == ["pruned, its values are None"] * 2


def test_constraints_measured_in_trials_are_limits_by_their_names() -> None:
    def f(trial: Any) -> tuple[float, float]:
        x, y = trial.suggest_float("x", 0.0, 1.0), trial.suggest_float("y", 0.0, 1.0)
        trial.set_constraint("size", x + y - 1.0)
        trial.set_constraint("x", 0.2 - x)  # the name of a parameter
        return -x, -y

    study = study_of(GPMISampler(UNIT, seed=0), ["minimize"] * 2)
    study.optimize(f, n_trials=30)
    opt = study.sampler.optimizer(study)
    assert dict(opt.goals.limits) == {"size": gpmi.AtMost(0.0), "constraint x": gpmi.AtMost(0.0)}
    assert [trial.outputs["size"] for trial in opt.trials] == [trial.constraints["size"] for trial in study.trials]
    assert {trial.number for trial in opt.front} == {trial.number for trial in study.best_trials}
    assert len(opt.front) >= 10 and all(trial.feasible and trial.x["x"] >= 0.2 for trial in opt.front)


def test_a_trial_that_lacks_a_constraint_still_teaches_its_values() -> None:
    study = study_of(GPMISampler(LINE, seed=0))
    study.tell(asked(study), (0.0, 0.0))
    for number, limit in enumerate((1.0, math.inf, -math.inf, -1.0)):
        trial = asked(study)
        trial.set_constraint("limit", limit)
        study.tell(trial, (float(number), 1.0))
    for _ in range(8):
        study.tell(asked(study), (1.0, 1.0))
    opt = study.sampler.optimizer(study)
    known = [(trial.outputs.get("0"), trial.status, trial.unmet) for trial in opt.trials[:4]]
    # The first one has no constraint, the second one breaks it, -inf is left out.
    expected = [(0.0, "told", ("limit",)), (0.0, "told", ("limit",)), (None, "failed", ()), (3.0, "told", ())]
    assert known == expected


def test_constraints_that_were_never_finite_are_no_limits() -> None:
    study = study_of(GPMISampler(LINE, seed=0))
    for limit in (-math.inf, math.inf, None, None, None, None, None):
        trial = asked(study)
        if limit is not None:
            trial.set_constraint("limit", limit)
        study.tell(trial, (trial.params["x"], 1.0))
    opt = study.sampler.optimizer(study)
    assert list(opt.goals) == ["0", "1"] and [trial.status for trial in opt.trials] == ["failed", *["told"] * 5]


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_constraints_of_other_samplers_are_limits() -> None:
    sampler = optuna.samplers.NSGAIISampler(seed=0, constraints_func=lambda trial: (trial.params["x"] - 0.6, -1.0))
    study = study_of(sampler)
    study.optimize(lambda trial: (trial.suggest_float("x", 0.0, 1.0), 1.0), n_trials=6)
    study.sampler = GPMISampler(seed=0)
    opt = study.sampler.optimizer(study)
    assert list(opt.goals) == ["0", "1", "constraint 0", "constraint 1"]
    assert [trial.outputs["constraint 0"] for trial in opt.trials] == [t.params["x"] - 0.6 for t in study.trials]


def test_every_output_has_a_name_of_its_own() -> None:
    minimise = optuna.study.StudyDirection.MINIMIZE
    found = StudyGoals.of([minimise] * 3, ["1", "", "a b"], ["0", "objective 0"], ["0", "a b", "a b"])
    outputs = ["objective objective 0", "a b", "objective a b", "1", "constraint", "constraint a b"]
    assert list(found.goals) == outputs
    assert found.outputs([1.0, 2.0, 3.0], {"1": 4.0, "a b": 6.0}) == dict(
        zip((*outputs[:4], outputs[5]), (1.0, 2.0, 3.0, 4.0, 6.0), strict=True)
    )


# What is given


def test_enqueued_parameters_are_conditioned_on() -> None:
    study = study_of(GPMISampler(UNIT, seed=0))
    study.optimize(cost_and_gain, n_trials=8)
    study.enqueue_trial({"x": 0.9})
    study.enqueue_trial({"x": 0.5, "y": 1.0})
    study.optimize(cost_and_gain, n_trials=2)
    part, whole = study.sampler.optimizer(study).trials[8:]
    assert study.trials[8].params["x"] == 0.9 and part.fixed == {"x": 0.9} and part.origin == "policy"
    assert study.trials[9].params == {"x": 0.5, "y": 1.0} and whole.origin == "user"


def test_parameters_fixed_by_another_sampler_are_conditioned_on() -> None:
    study = study_of(GPMISampler(UNIT, seed=0))
    study.optimize(cost_and_gain, n_trials=6)
    inner = study.sampler
    study.sampler = optuna.samplers.PartialFixedSampler({"x": 0.8}, inner)
    study.optimize(cost_and_gain, n_trials=6)
    assert {trial.params["x"] for trial in study.trials[6:]} == {0.8}
    chosen = inner.optimizer(study).trials[6:]
    assert all(trial.fixed == {"x": 0.8} and trial.origin == "policy" for trial in chosen)
    assert len({trial.x["y"] for trial in chosen}) == 6


# Many at the same time


def together(trials: Any) -> int:
    """How many pairs of trials ran at the same time with the same parameters."""
    return sum(
        a.datetime_start < b.datetime_complete and b.datetime_start < a.datetime_complete and a.params == b.params
        for a, b in combinations(trials, 2)
    )


def test_threads_get_points_of_their_own() -> None:
    study = study_of(GPMISampler(UNIT, seed=0))
    study.optimize(slow, n_trials=20, n_jobs=4)
    assert len(study.trials) == 20 and together(study.trials) == 0
    assert len({tuple(trial.params.values()) for trial in study.trials}) == 20


def test_points_asked_at_once_are_apart() -> None:
    study = study_of(GPMISampler(UNIT, seed=0))
    study.optimize(cost_and_gain, n_trials=8)
    distributions = {name: optuna.distributions.FloatDistribution(0.0, 1.0) for name in "xy"}
    points = np.array([list(study.ask(distributions).params.values()) for _ in range(5)])
    assert min(float(np.abs(a - b).max()) for a, b in combinations(points, 2)) > 1e-3
    assert len(study.sampler.optimizer(study).pending) == 5


def worker(path: str) -> None:
    optuna.logging.disable_default_handler()
    storage = JournalStorage(JournalFileBackend(path))
    optuna.load_study(storage=storage, study_name="s", sampler=GPMISampler()).optimize(slow, n_trials=4)


@pytest.mark.slow
def test_processes_on_one_storage_get_points_of_their_own(tmp_path: Path) -> None:
    path = str(tmp_path / "study")
    study = study_of(None, storage=JournalStorage(JournalFileBackend(path)), study_name="s")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    processes = [context.Process(target=worker, args=(path,)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert len(study.trials) == 12 and together(study.trials) == 0


def test_dead_trials_no_longer_count_but_may_come_back() -> None:
    study = study_of(GPMISampler(LINE, seed=0, stale_after=3600.0))
    for x in range(4):
        study.tell(asked(study), (float(x), -float(x)))
    dead = asked(study)
    study._storage._get_trial(dead._trial_id).datetime_start = datetime.now() - timedelta(hours=2)
    asked(study)
    assert len(study.sampler.optimizer(study).pending) == 1
    study.tell(dead, (0.5, 0.5))
    assert {"0": 0.5, "1": 0.5} in [dict(trial.outputs) for trial in study.sampler.optimizer(study).trials]


# What is refused


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"reference_point": 3.0}, "reference_point is 3.0; give the worst value"),
        ({"reference_point": "ab"}, "reference_point is 'ab'; give the worst value"),
        ({"reference_point": [1.0]}, "for fewer than two objectives"),
        ({"reference_point": [1.0, math.nan]}, "reference_point[1] is nan; give the worst value"),
        ({"reference_point": ["1", 2.0]}, "reference_point[0] is '1'; give the worst value"),
        ({"reference_point": [1e200, 2.0]}, "give values below"),
        ({"reference_point": [1.0, 2.0], "policy": gpmi.GPMI()}, "for one objective"),
        ({"goals": {"a": "max"}}, "goals is not an argument of GPMISampler; directions= of the study"),
        ({"constraints_func": len}, "call trial.set_constraint(name, value)"),
    ],
)
def test_wrong_arguments_are_refused_at_once(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(words)):
        GPMISampler(**arguments)


@pytest.mark.parametrize(
    ("sampler", "count", "words"),
    [
        (lambda: GPMISampler(reference_point=[1.0, 2.0]), 3, "for 2 objectives, but the study has 3; give 3 values"),
        (lambda: GPMISampler(reference_point=[1.0, 2.0]), 1, "but the study has 1; leave it out"),
        (lambda: GPMISampler(policy=gpmi.EHVI()), 1, "for several objectives, but the study has one"),
        (lambda: GPMISampler(LINE, policy=gpmi.GPMI()), 2, "for one objective, but the goals have 0, 1"),
    ],
)
def test_a_study_that_does_not_fit_is_refused_in_a_trial_that_fails(sampler: Any, count: int, words: str) -> None:
    """Optuna calls a sampler only after it has stored a trial."""
    study = study_of(sampler(), ["minimize"] * count)
    with pytest.raises(ValueError, match=words):
        study.optimize(lambda trial: [trial.suggest_float("x", 0.0, 1.0)] * count, n_trials=1)
    assert study.trials[0].state == TrialState.FAIL


@pytest.mark.parametrize("options", [{"policy": gpmi.EHVI()}, {"noise_var": {"0": 0.1}}, {"aim": "earn"}])
def test_options_for_several_objectives_are_taken(options: dict[str, Any]) -> None:
    study = study_of(GPMISampler(UNIT, seed=0, **options))
    study.optimize(cost_and_gain, n_trials=9)
    assert study.sampler.optimizer(study).trials[-1].origin == "policy"
