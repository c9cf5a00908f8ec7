"""Measurements with a fidelity: curves that are stopped, levels that are chosen, and the target, which alone counts."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest

import gpmi
from gpmi import Fidelity, Optimizer
from gpmi.gp.posterior import Posterior
from gpmi.optimizer import levels
from gpmi.optimizer.curves import HARDLY, probability_to_win
from gpmi.optimizer.levels import choose_level, trust
from gpmi.trials.costs import costs_of_levels, spent
from gpmi.trials.target import at_target

STEPS: dict[str, Any] = {"x": (0.0, 1.0), "epoch": Fidelity(1, 16)}
LEVELS: dict[str, Any] = {"x": (0.0, 1.0), "z": (0.0, 1.0), "mesh": Fidelity({"coarse": 1, "fine": 10})}


def accuracy(x: float, epoch: int) -> float:
    return 1.0 - (x - 0.3) ** 2 - 1.0 / epoch


def train(opt: Optimizer, *, until: int = 16) -> gpmi.Trial:
    """Ask for a point and report its curve, until gpmi stops it."""
    p = opt.ask()
    trial = opt.pending[-1]
    for epoch in range(1, until + 1):
        if opt.report(trial, epoch, accuracy(p["x"], epoch)) == "stop":
            break
    return opt.trials[trial.number]


def trained(count: int = 12, seed: int = 0) -> Optimizer:
    opt = Optimizer(STEPS, seed=seed)
    for _ in range(count):
        train(opt)
    return opt


def measure(p: Any) -> float:
    f = -((p["x"] - 0.3) ** 2) - (p["z"] - 0.6) ** 2
    return float(f if p["mesh"] == "fine" else 2.0 * f + 5.0 + 0.05 * math.sin(9.0 * p["x"]))


def measured(count: int = 20, seed: int = 0, f: Any = measure) -> Optimizer:
    opt = Optimizer(LEVELS, seed=seed)
    for _ in range(count):
        p = opt.ask()
        opt.tell(p, f(p))
    return opt


# Curves


def test_a_point_is_asked_at_the_target_and_reaches_it_by_its_last_report() -> None:
    opt = Optimizer(STEPS, seed=0)
    p = opt.ask()
    assert p["epoch"] == 16
    answers = [opt.report(p, epoch, accuracy(p["x"], epoch)) for epoch in range(1, 17)]
    assert answers == ["continue"] * 15 + ["stop"]
    (trial,) = opt.trials
    assert trial.status == "told" and trial.y == accuracy(p["x"], 16) == opt.best.y  # type: ignore[union-attr]
    assert [(report.step, report.y) for report in trial.curve] == [(e, accuracy(p["x"], e)) for e in range(1, 17)]


def test_an_evaluation_is_stopped_when_it_will_hardly_win_and_says_why() -> None:
    opt = trained(20)
    stopped = [trial for trial in opt.trials if trial.status == "stopped"]
    assert stopped and all(trial.y is None and "hardly win" in (trial.why or "") for trial in stopped)
    assert all(trial.curve[-1].step in Fidelity(1, 16).rungs for trial in stopped)
    best = max(trial.y for trial in opt.trials if trial.y is not None)
    assert all(accuracy(trial.x["x"], 16) < best for trial in stopped)
    assert opt.best is not None and abs(opt.best.x["x"] - 0.3) < 0.05 and abs(opt.recommend()["x"] - 0.3) < 0.05


def test_a_point_that_is_asked_again_where_one_was_stopped_goes_to_its_end() -> None:
    starts = [0.3, 0.1, 0.5, 0.7, 0.9, 0.9002, 0.95]
    opt = Optimizer(STEPS, seed=0, x0=[{"x": x, "epoch": 16} for x in starts])
    trials = [train(opt) for _ in starts]
    assert [trial.x["x"] for trial in trials] == starts
    assert [trial.status for trial in trials[-3:]] == ["stopped", "told", "stopped"]


def test_the_probability_to_win_is_that_of_the_posterior_at_the_target() -> None:
    opt = trained(8)
    model, log = opt.model, opt._log
    assert model is not None
    row = opt.space.encode({"x": 0.9, "epoch": 16})
    rows = np.array([log.row(number) for number in log.reached])
    draws = model.posterior.sample(row[None], np.random.default_rng(0), 20_000)[:, 0]
    share = float(np.mean(draws > model.posterior.mu(rows).max()))
    assert probability_to_win(model, row, rows) == pytest.approx(share, abs=0.02)
    assert 0.0 < HARDLY < 0.5


def test_only_rungs_enter_the_model_and_every_value_is_kept() -> None:
    opt = Optimizer(STEPS, seed=0)
    trial = train(opt)
    steps = [opt._log.fidelity.of(row) for row in opt._log.observed.x]  # type: ignore[union-attr]
    assert steps == [2, 4, 8, 16] and len(trial.curve) == 16


def test_sparse_reports_enter_at_the_first_step_after_each_rung() -> None:
    opt = Optimizer(STEPS, seed=0)
    p = opt.ask()
    for step in (3, 7, 12, 16):
        opt.report(p, step, accuracy(p["x"], step))
    assert [opt._log.fidelity.of(row) for row in opt._log.observed.x] == [3, 7, 12, 16]  # type: ignore[union-attr]


def test_a_stopped_evaluation_may_go_on() -> None:
    opt = trained(20)
    trial = next(trial for trial in opt.trials if trial.status == "stopped")
    step = trial.curve[-1].step
    opt.report(trial, step + 1, accuracy(trial.x["x"], step + 1))
    again = opt.trials[trial.number]
    assert len(again.curve) == len(trial.curve) + 1 and again.status in ("pending", "stopped")
    opt.tell(again, accuracy(trial.x["x"], 16))
    assert opt.trials[trial.number].status == "told" and opt.trials[trial.number].curve[-1].step == 16


def test_what_a_stopped_evaluation_reported_counts_and_a_forgotten_one_does_not() -> None:
    opt = Optimizer(STEPS, seed=0)
    train(opt)
    p = opt.ask()
    for step in (1, 2):
        opt.report(p, step, 0.9)
    assert len(opt._log.observed) == 5
    opt.forget(p)
    assert len(opt._log.observed) == 4 and spent(opt._log) == 16.0


def test_the_cost_is_that_of_all_reported_steps() -> None:
    opt = trained(15)
    assert spent(opt._log) == sum(trial.curve[-1].step for trial in opt.trials) < 15 * 16


def test_the_same_value_of_a_step_twice_is_one_report() -> None:
    opt = Optimizer(STEPS, seed=0)
    p = opt.ask()
    opt.report(p, 3, 0.5)
    assert opt.report(p, 3, 0.5) == "continue" and len(opt.pending[0].curve) == 1


@pytest.mark.parametrize(
    ("step", "y", "words"),
    [
        (17, 0.5, "from 1 to 16"),
        (0, 0.5, "step"),
        (2.5, 0.5, "step"),
        (4, 0.7, "step 4 of trial 0 was 0.5; report each step once"),
        (3, 0.5, "report in order"),
        (5, math.nan, "nan"),
        (5, "good", "good"),
    ],
)
def test_a_wrong_report_is_refused_and_changes_nothing(step: Any, y: Any, words: str) -> None:
    opt = Optimizer(STEPS, seed=0)
    p = opt.ask()
    opt.report(p, 4, 0.5)
    before = opt.trials[0].curve
    with pytest.raises((TypeError, ValueError), match=words):
        opt.report(p, step, y)
    assert opt.trials[0].curve == before


def test_a_report_without_steps_is_refused() -> None:
    opt = Optimizer(LEVELS, seed=0)
    with pytest.raises(ValueError, match="no steps to report"):
        opt.report(opt.ask(), 1, 0.5)


# Levels


def test_the_design_is_coarse_and_a_part_of_it_fine() -> None:
    opt = measured(8)
    meshes = [trial.x["mesh"] for trial in opt.trials]
    assert meshes == ["coarse"] * 5 + ["fine"] * 3
    coarse, fine = opt.trials[:3], opt.trials[5:8]
    assert [(t.x["x"], t.x["z"]) for t in coarse] == [(t.x["x"], t.x["z"]) for t in fine]


def test_best_and_recommended_are_at_the_target() -> None:
    opt = measured(20)
    assert opt.best is not None and opt.best.x["mesh"] == "fine" and opt.recommend()["mesh"] == "fine"
    assert opt.best.y == max(trial.y for trial in opt.trials if trial.x["mesh"] == "fine")
    assert abs(opt.recommend()["x"] - 0.3) < 0.05 and abs(opt.recommend()["z"] - 0.6) < 0.05


def test_the_level_removes_the_most_variance_for_its_cost() -> None:
    opt = measured(9)
    model, log, space = opt.model, opt._log, opt.space
    assert model is not None and space.fidelity is not None
    for x in ({"x": 0.1, "z": 0.9}, {"x": 0.5, "z": 0.5}, {"x": 0.31, "z": 0.62}):
        row = space.encode({**x, "mesh": "fine"})
        gains = []
        for label, cost in (("coarse", 1.0), ("fine", 10.0)):
            after = model.posterior.anticipate(space.fidelity.at(row, label)[None])
            gains.append((model.posterior(row[None])[1][0] - after(row[None])[1][0]) / cost)
        assert choose_level(row, [model.posterior], log, space) == int(np.argmax(gains))


def test_coarse_measurements_in_a_row_cost_at_most_one_fine_one() -> None:
    spent = 0
    for trial in measured(40).trials[8:]:
        spent = spent + 1 if trial.x["mesh"] == "coarse" else 0
        assert spent <= 10


def test_a_coarse_point_is_measured_once() -> None:
    rows = [(t.x["x"], t.x["z"]) for t in measured(40).trials if t.x["mesh"] == "coarse"]
    assert len(rows) == len(set(rows))


def test_a_level_that_misleads_is_ignored() -> None:
    rng = np.random.default_rng(3)
    opt = measured(40, f=lambda p: measure(p) if p["mesh"] == "fine" else float(rng.standard_normal()))
    assert trust(opt._log) < 0.0 and any(event.kind == "levels ignored" for event in opt.events)
    assert {trial.x["mesh"] for trial in opt.trials[-10:]} == {"fine"}
    assert abs(opt.recommend()["x"] - 0.3) < 0.1


def test_trust_is_what_both_models_said_before_the_value() -> None:
    opt = measured(20)
    told = [trial for trial in opt.trials if trial.trust is not None]
    assert told and all(trial.x["mesh"] == "fine" for trial in told)
    last = told[-1]
    before = Optimizer(LEVELS, seed=0).replay([t for t in opt.trials if t.number < last.number])
    joint = before.model
    assert joint is not None
    row = opt.space.encode(last.x)
    (rival,) = before._strategy._rival_models
    alone = levels.RivalModel(rival._setting.cleared(), before._arguments.orientation)
    other = alone.after(at_target(before._log))

    def density(posterior: Posterior) -> float:
        (mu,), (var,) = posterior(row[None])
        total = var + posterior.noise_var
        return -0.5 * math.log(2.0 * math.pi * total) - 0.5 * (last.y - mu) ** 2 / total  # type: ignore[operator]

    assert not joint.warp.bends and not other.warp.bends
    assert last.trust == pytest.approx(density(joint.posterior) - density(other.posterior), rel=1e-6, abs=1e-6)


def test_costs_are_learned_from_the_times_of_trials() -> None:
    opt = Optimizer({**LEVELS, "mesh": Fidelity(["coarse", "fine"])}, seed=0)
    trials = []
    for i in range(8):
        p = opt.ask()
        opt.tell(p, measure(p))
        seconds = 2.0 if p["mesh"] == "coarse" else 30.0
        trials.append(gpmi.Trial(i, p, measure(p), "told", "design", order=i, asked=100.0, ended=100.0 + seconds))
    again = Optimizer({**LEVELS, "mesh": Fidelity(["coarse", "fine"])}, seed=0).replay(trials)
    assert costs_of_levels(again._log) == [2.0, 30.0] and spent(again._log) == 5 * 2.0 + 3 * 30.0


def test_a_level_may_be_given() -> None:
    opt = measured(12)
    assert opt.ask(fixed={"mesh": "coarse"})["mesh"] == "coarse"
    point = opt.ask(fixed={"mesh": "fine", "x": 0.25})
    assert point["mesh"] == "fine" and point["x"] == 0.25
    assert opt.ask(fixed={"x": 0.25})["x"] == 0.25


def test_three_levels_work() -> None:
    space = {**LEVELS, "mesh": Fidelity({"coarse": 1, "medium": 4, "fine": 20})}
    opt = Optimizer(space, seed=0)
    for _ in range(30):
        p = opt.ask()
        f = measure({**p, "mesh": "fine"})
        opt.tell(p, f + {"coarse": 0.1, "medium": 0.01, "fine": 0.0}[p["mesh"]] * math.sin(20.0 * p["z"]))
    assert {trial.x["mesh"] for trial in opt.trials} == {"coarse", "medium", "fine"}
    assert abs(opt.recommend()["x"] - 0.3) < 0.05


def test_a_kernel_is_refused_where_there_are_levels() -> None:
    with pytest.raises(ValueError, match="leave out kernel"):
        Optimizer(LEVELS, kernel=gpmi.kernels.RBF(lengthscale=None))


# Both


@pytest.mark.parametrize("make", [lambda: trained(10), lambda: measured(14)])
def test_a_copy_and_a_replay_ask_the_same(make: Any) -> None:
    opt = make()
    space = STEPS if "epoch" in opt.trials[0].x else LEVELS
    replayed = Optimizer(space, seed=0).replay(opt.trials)
    copies = [pickle.loads(pickle.dumps(opt)), copy.deepcopy(opt), replayed]
    assert [trial.status for trial in replayed.trials] == [trial.status for trial in opt.trials]
    expected = opt.ask()
    for other in copies:
        assert other.ask() == expected


def test_the_ledger_speaks_of_the_target_and_knows_all_values() -> None:
    opt = measured(40)
    fine = [trial for trial in opt.trials if trial.x["mesh"] == "fine"]
    ledger = opt.ledger
    assert ledger.n == len(fine) and [trial.number for trial in ledger.trials] == [trial.number for trial in fine]
    assert ledger.model.n == 40 and ledger.regret().recommended == opt.recommend()
    assert ledger.regret().known and ledger.regret().interval()[1] < 0.05
    assert "can I stop?" in str(ledger)


def test_several_objectives_are_stopped_where_they_will_hardly_join_the_front() -> None:
    goals = {"accuracy": gpmi.Max(at_least=0.0), "seconds": gpmi.Min(at_most=2.0)}
    opt = Optimizer(STEPS, goals=goals, seed=0)
    for _ in range(25):
        p = opt.ask()
        trial = opt.pending[-1]
        for epoch in range(1, 17):
            seconds = 1.0 + abs(p["x"] - 0.3)
            if opt.report(trial, epoch, {"accuracy": accuracy(p["x"], epoch), "seconds": seconds}) == "stop":
                break
    assert any(trial.status == "stopped" for trial in opt.trials)
    assert all(trial.status == "told" for trial in opt.front)


def test_several_objectives_use_the_levels() -> None:
    opt = Optimizer(LEVELS, goals={"a": "max", "b": "min"}, seed=0)
    for _ in range(24):
        p = opt.ask()
        opt.tell(p, {"a": measure(p), "b": p["x"] + (0.1 if p["mesh"] == "coarse" else 0.0)})
    assert {trial.x["mesh"] for trial in opt.trials} == {"coarse", "fine"}
    assert all(trial.x["mesh"] == "fine" for trial in opt.front) and opt.ledger.n < 24


# What a careful reader found


def test_the_design_of_levels_keeps_fixed_coordinates() -> None:
    opt = Optimizer(LEVELS, seed=0)
    for i in range(12):
        p = opt.ask(fixed={"z": 0.25 + 0.05 * (i % 3)})
        assert p["z"] == 0.25 + 0.05 * (i % 3)
        opt.tell(p, measure(p))


def test_a_level_that_is_fixed_is_asked_at_new_points() -> None:
    opt = Optimizer(LEVELS, seed=0)
    points = []
    for _ in range(12):
        p = opt.ask(fixed={"mesh": "coarse"})
        points.append((p["x"], p["z"]))
        opt.tell(p, measure(p))
    assert len(set(points)) == 12


def test_a_point_that_is_rejected_at_a_level_is_not_offered_again() -> None:
    opt = Optimizer(LEVELS, seed=0)
    seen = set()
    for _ in range(12):
        p = opt.ask()
        seen.add(tuple(p.values()))
        opt.reject(p)
    assert len(seen) == 12


def test_many_points_can_be_asked_before_the_first_value() -> None:
    points = Optimizer(LEVELS, seed=0).ask(20)
    assert [p["mesh"] for p in points[:8]] == ["coarse"] * 5 + ["fine"] * 3
    assert len({(p["x"], p["z"]) for p in points if p["mesh"] == "coarse"}) == 17


def test_a_failure_before_the_first_step_costs_that_step() -> None:
    opt = Optimizer(STEPS, seed=0)
    opt.fail(opt.ask())
    assert spent(opt._log) == 1.0


def test_curves_compete_within_their_context() -> None:
    opt = Optimizer({**STEPS, "t": (0.0, 1.0)}, seed=0)
    reached = []
    for i in range(24):
        t = float(i % 2)
        p = opt.ask(fixed={"t": t})
        trial = opt.pending[-1]
        for epoch in range(1, 17):
            if opt.report(trial, epoch, accuracy(p["x"], epoch) - 5.0 * t) == "stop":
                break
        reached.append((t, opt.trials[trial.number].status))
    assert (1.0, "told") in reached[-12:]


def test_a_last_step_that_is_fixed_is_reached() -> None:
    opt = trained(10)
    p = opt.ask(fixed={"epoch": 4})
    assert [opt.report(p, step, 0.0) for step in (1, 2, 3, 4)] == ["continue"] * 3 + ["stop"]
    assert opt.trials[-1].status == "told" and opt.best is not None and opt.best.number != opt.trials[-1].number


def test_a_starting_point_may_be_below_the_target() -> None:
    start = {"x": 0.11, "z": 0.22, "mesh": "coarse"}
    assert Optimizer(LEVELS, x0=start, seed=0).ask() == start


def test_a_correction_takes_back_the_trust_in_the_levels() -> None:
    opt = measured(20)
    trial = next(trial for trial in opt.trials if trial.trust is not None)
    opt.correct(trial, 1e3)
    assert opt.trials[trial.number].trust is None


def test_a_function_that_forbids_a_level_is_kept() -> None:
    opt = Optimizer(LEVELS, constraints=lambda p: p["mesh"] == "fine" or p["x"] < 0.5, seed=0)
    for _ in range(15):
        p = opt.ask()
        assert p["mesh"] == "fine" or p["x"] < 0.5
        opt.tell(p, measure(p))


@pytest.mark.parametrize("call", ["recommend", "regret"])
def test_results_cannot_be_asked_for_below_the_target(call: str) -> None:
    opt = measured(12)
    with pytest.raises(ValueError, match="results are at 'fine'"):
        _ = (
            opt.recommend(fixed={"mesh": "coarse"})
            if call == "recommend"
            else opt.ledger.regret(fixed={"mesh": "coarse"})
        )


def test_curves_need_steps_and_conditions_need_another_parameter() -> None:
    with pytest.raises(ValueError, match="has a curve"):
        Optimizer({"x": (0.0, 1.0), "epoch": gpmi.Int(1, 16)}, seed=0).replay(trained(2).trials)
    with pytest.raises(ValueError, match="a fidelity"):
        Optimizer({"x": (0.0, 1.0), "y": gpmi.Real(0.0, 1.0, when={"m": "f"}), "m": Fidelity({"c": 1, "f": 2})})
