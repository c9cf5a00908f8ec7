"""Failures that teach, constraints measured beside y, heavy tails: what the optimizer and maximize make of them."""

from __future__ import annotations

import math
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from waiting import FOR_EVER, leap

import gpmi
from gpmi import EI, GPMI, GPUCB, Explore, LogEI, Optimizer, Thompson, kernels, maximize, minimize
from gpmi.policies import State
from gpmi.run import evaluation
from gpmi.run.stopping import Stagnation
from gpmi.trials.feasibility import Outcomes

BOX = [(0.0, 1.0), (0.0, 1.0)]
ROWS = np.random.default_rng(0).random((60, 2))
GIVEN = {"kernel": kernels.RBF(0.3), "noise_var": 1e-4}


def hill(x: Any) -> float:
    return float(-((x[0] - 0.7) ** 2) - (x[1] - 0.4) ** 2)


def crashes(x: Any) -> bool:
    return bool(x[0] > 0.6)


def played(opt: Optimizer, steps: int) -> Optimizer:
    for _ in range(steps):
        x = opt.ask()
        opt.fail(x, why="diverged") if crashes(x) else opt.tell(x, hill(x))
    return opt


@pytest.mark.parametrize("space", [BOX, ROWS], ids=["box", "rows"])
def test_what_is_recommended_has_worked(space: Any) -> None:
    opt = played(Optimizer(space, seed=1), 25)
    assert not crashes(opt.recommend())
    model = opt.model
    assert model is not None and model.chance is not None
    row = opt.space.encode(opt.recommend())
    assert model.chance(row[None])[0] >= 0.5
    assert any(np.array_equal(opt.space.encode(t.x), row) for t in opt.trials if t.status == "told")


def test_failures_become_rare_and_are_not_forbidden() -> None:
    opt = played(Optimizer(BOX, seed=2, budget=40), 40)
    failed = [trial.status == "failed" for trial in opt.trials]
    assert sum(failed[20:]) <= 4
    assert opt.best is not None and opt.best.y is not None and opt.best.y > hill([0.6, 0.4]) - 0.01


def test_a_failure_keeps_its_reason() -> None:
    opt = Optimizer(BOX, seed=0)
    x = opt.ask()
    trial = opt.fail(x, why="the mesh\nis too coarse")
    assert trial.why == "the mesh is too coarse" and "too coarse" in repr(trial)
    assert opt.trials[0].why == trial.why
    again = Optimizer(BOX, seed=0).replay(opt.trials)
    assert again.trials[0].why == trial.why
    with pytest.raises(TypeError, match="why is 3"):
        opt.fail(opt.ask(), why=3)  # type: ignore[arg-type]
    assert len(opt.pending) == 1


@pytest.mark.parametrize("goal", ["max", "min"])
@pytest.mark.parametrize("space", [BOX, ROWS], ids=["box", "rows"])
def test_a_run_with_failures_replays(space: Any, goal: Any) -> None:
    opt = Optimizer(space, seed=3, goal=goal)
    for i in range(14):
        x = opt.ask()
        opt.fail(x) if crashes(x) else opt.tell(x, hill(x), constraints=[x[1] - 0.8])
        if i % 4 == 3:
            twin = Optimizer(space, seed=3, goal=goal).replay(opt.trials)
            assert np.array_equal(twin.ask(), Optimizer(space, seed=3, goal=goal).replay(opt.trials).ask())
    twin = Optimizer(space, seed=3, goal=goal).replay(opt.trials)
    assert np.array_equal(twin.ask(), opt.ask())


def test_to_minimise_is_to_maximise_the_opposite() -> None:
    points = []
    for goal, sign in (("max", 1.0), ("min", -1.0)):
        opt = Optimizer(BOX, seed=4, goal=goal)  # type: ignore[arg-type]
        for _ in range(12):
            x = opt.ask()
            opt.fail(x) if crashes(x) else opt.tell(x, sign * hill(x))
        points.append(opt.ask())
    assert np.array_equal(*points)


@pytest.mark.parametrize("policy", [GPMI(), GPUCB(), EI(), LogEI(), Thompson(), Explore(), None])
def test_every_policy_prefers_the_side_that_works(policy: Any) -> None:
    """What is told lies in the middle and mirrors itself; on the right, beyond the candidates, evaluations fail."""
    rows = np.array([[x, y] for x in (0.2, 0.5, 0.8, 0.95) for y in np.linspace(0, 1, 6)])
    sides = []
    for seed in range(8 if isinstance(policy, Thompson) else 1):
        opt = Optimizer(rows, policy, seed=seed, **GIVEN)
        failed = [gpmi.Trial(i, row, None, "failed", "user") for i, row in enumerate(rows[rows[:, 0] == 0.95])]
        opt.replay(failed)
        for row in rows[rows[:, 0] == 0.5]:
            opt.tell(row, 0.1 * row[1])
        sides.append(opt.ask()[0])
    assert sides.count(0.8) < sides.count(0.2)


def test_the_weights_of_a_policy_have_the_right_derivatives() -> None:
    state = State(best_mean=0.3, caution=3.0)
    score, log_p = np.array([-1.0, 0.2, 0.5, 2.0]), np.log([0.3, 0.99, 0.5, 0.97])
    for policy in (GPMI(), EI(), LogEI(), Thompson()):
        value, by_score, by_log_p = policy.weighed(score, log_p, state)
        for step, derivative in (((1e-6, 0.0), by_score), ((0.0, 1e-6), by_log_p)):
            above = policy.weighed(score + step[0], log_p + step[1], state)[0]
            below = policy.weighed(score - step[0], log_p - step[1], state)[0]
            np.testing.assert_allclose((above - below) / 2e-6, derivative, rtol=1e-4, atol=1e-6)
        assert np.all(value <= score + 1e-12)
        np.testing.assert_allclose(policy.weighed(score, np.zeros(4), state)[0], score)  # certain success


def test_without_failures_and_constraints_there_is_no_chance() -> None:
    opt = Optimizer(BOX, seed=0)
    for _ in range(8):
        x = opt.ask()
        opt.tell(x, hill(x))
    assert opt.model is not None and opt.model.chance is None and opt.model.outcomes is None


def test_the_ledger_speaks_of_the_feasible_part_and_counts_failures() -> None:
    opt = played(Optimizer(BOX, seed=5, budget=25), 25)
    ledger = opt.ledger
    assert "failed (diverged" in ledger.statistics and "0 infeasible" in ledger.statistics
    regret = ledger.regret()
    true = hill([0.6, 0.4]) - hill(opt.recommend())  # the best that works
    low, high = regret.interval()
    assert low - 0.02 <= true <= high + 0.02
    assert ledger.regret(8).simple.min() >= 0.0


def test_a_correction_turns_a_failure_into_a_value() -> None:
    opt = played(Optimizer(BOX, seed=1), 10)
    failed = next(trial for trial in opt.trials if trial.status == "failed")
    opt.correct(failed, hill(failed.x))
    opt.retract(next(trial for trial in opt.trials if trial.status == "failed"))
    twin = Optimizer(BOX, seed=1).replay(opt.trials)
    assert np.array_equal(twin.ask(), opt.ask())


# Constraints


def told_with_constraints(seed: int, steps: int, noisy: bool = False) -> Optimizer:
    """The best of the hill, at (0.7, 0.4), breaks the constraint x0 + x1 <= 0.9."""
    opt, rng = Optimizer(BOX, seed=seed, budget=steps), np.random.default_rng(seed)
    for _ in range(steps):
        x = opt.ask()
        opt.tell(x, hill(x), constraints=[x[0] + x[1] - 0.9 + 0.01 * noisy * rng.standard_normal(), x[0] - 2.0])
    return opt


def test_the_best_point_respects_the_constraints() -> None:
    opt = told_with_constraints(0, 25)
    best = opt.best
    assert best is not None and best.feasible and best.x.sum() <= 0.9
    assert opt.recommend().sum() <= 0.9
    exact = hill([0.6, 0.3])
    assert best.y is not None and exact - 0.01 < best.y <= exact + 1e-9
    assert any(not trial.feasible for trial in opt.trials)
    assert opt.ledger.infeasible == sum(not trial.feasible for trial in opt.trials)
    assert f"{opt.ledger.infeasible} infeasible" in repr(opt.ledger)


def test_a_value_that_breaks_a_constraint_is_no_progress() -> None:
    opt = Optimizer(BOX, seed=0)
    for i, y in enumerate([0.0, 1.0, 5.0, 0.5, 6.0]):  # the third and the last one break the constraint
        opt.tell([0.1 * i, 0.5], y, constraints=[1.0 if y > 2.0 else -1.0])
    assert Stagnation(4).stop(opt, 0.0) is None
    assert Stagnation(3).stop(opt, 0.0) is not None


def test_no_feasible_point_is_said() -> None:
    opt = Optimizer(BOX, seed=0)
    for _ in range(6):
        x = opt.ask()
        opt.tell(x, hill(x), constraints=[1.0 + x[0]])
    assert opt.best is None
    opt.recommend()
    assert "nothing feasible" in {event.kind for event in opt.events}


def test_the_chance_of_a_constraint_is_that_of_its_own_model() -> None:
    from scipy.special import ndtr

    opt = told_with_constraints(1, 12)
    assert opt.model is not None and opt.model.chance is not None
    z = np.random.default_rng(0).random((5, 2))
    first, second = opt.model.chance.requirements
    mu, var = first.posterior(z)
    np.testing.assert_allclose(
        np.exp(first.log(z)), ndtr((first.limit - mu) / np.sqrt(np.maximum(var, 1e-300))), atol=1e-6
    )
    np.testing.assert_allclose(opt.model.chance(z), np.exp(first.log(z) + second.log(z)))
    np.testing.assert_allclose(mu, z.sum(axis=1) - 0.9, atol=0.15)


@pytest.mark.parametrize(
    ("constraints", "error", "words"),
    [
        ([1.0], ValueError, "2 came with the values before"),
        (None, ValueError, "constraints is None"),
        (3.0, TypeError, "constraints is 3.0"),
        ([math.nan, 1.0], ValueError, r"constraints\[0\] is nan"),
        (["a", 1.0], TypeError, r"constraints\[0\] is 'a'"),
        ([1.0, math.nan], ValueError, r"constraints\[1\] is nan"),
        ([1e200, 1.0], ValueError, "in other units"),
    ],
)
def test_wrong_constraints_are_refused(constraints: Any, error: type[Exception], words: str) -> None:
    opt = told_with_constraints(0, 3)
    with pytest.raises(error, match=words):
        opt.tell([0.1, 0.2], 1.0, constraints=constraints)
    assert len(opt.trials) == 3


def test_constraints_are_corrected_and_replayed() -> None:
    opt = told_with_constraints(2, 8)
    opt.correct(3, 0.5, constraints=[-1.0, -1.0])
    assert opt.trials[3].constraints == (-1.0, -1.0) and opt.trials[3].feasible
    opt.correct(2, 0.1)
    assert opt.trials[2].constraints[1] == pytest.approx(opt.trials[2].x[0] - 2.0)
    twin = Optimizer(BOX, seed=2, budget=8).replay(opt.trials)
    assert np.array_equal(twin.ask(), opt.ask())


def test_outcomes_up_to_a_value() -> None:
    x = np.arange(5.0)[:, None]
    outcomes = Outcomes(x, np.array([True, False, True, False, False]), np.array([[1.0], [-1.0], [0.0]]))
    assert outcomes.feasible.tolist() == [False, True, True]
    assert outcomes.up_to(1).x.ravel().tolist() == [0.0, 1.0]
    assert outcomes.up_to(2).failed.tolist() == [True, False, True, False]
    assert outcomes.up_to(3).constraints.ravel().tolist() == [1.0, -1.0, 0.0]
    assert outcomes.feasible_at(np.array([[3.0], [1.0]])).tolist() == [True, False]


# maximize


def sometimes(x: Any) -> float:
    if x[0] > 0.8:
        raise RuntimeError("the solver diverged")
    if x[0] > 0.7:
        return math.nan
    return math.inf if x[0] < 0.05 else hill(x)


def test_a_run_learns_from_failures_and_goes_on() -> None:
    r = maximize(sometimes, BOX, budget=25, seed=0, on_failure="learn")
    assert len(r.trials) == 25 and r.reason == "budget"
    reasons = {trial.why for trial in r.trials if trial.status == "failed"}
    assert "RuntimeError: the solver diverged" in reasons
    assert r.recommended is not None and math.isfinite(sometimes(r.recommended))
    assert "failed" in repr(r)
    s = minimize(lambda x: -sometimes(x), BOX, budget=25, seed=0, on_failure="learn")
    assert s.x is not None and r.x is not None and np.array_equal(s.x, r.x)


def test_the_default_is_to_raise_and_names_the_switch() -> None:
    with pytest.raises(RuntimeError, match="diverged") as raised:
        maximize(lambda x: sometimes([0.9, 0.0]), BOX, budget=5, seed=0)
    assert any('on_failure="learn"' in note for note in raised.value.__notes__)
    with pytest.raises(ValueError, match='on_failure="learn"'):
        maximize(lambda x: math.nan, BOX, budget=5, seed=0)


@pytest.mark.parametrize("answer", [None, "no number", ["a"]], ids=repr)
@pytest.mark.parametrize("more", [{}, {"timeout": FOR_EVER}, {"workers": 2}], ids=repr)
def test_what_is_no_number_is_a_mistake_and_no_failure(answer: Any, more: dict[str, Any]) -> None:
    """Also in a process of its own; and the advice is not what was done already."""
    with pytest.raises(TypeError) as raised:
        maximize(lambda x: answer, BOX, budget=5, seed=0, on_failure="learn", **more)
    words = str(raised.value)
    assert f"f returned {answer!r} at x" in words and "raise or return nan where there is no value" in words
    assert "to record failures and continue" not in words


@pytest.mark.parametrize(
    ("more", "words"), [({"on_failure": "ignore"}, "on_failure is 'ignore'"), ({"timeout": 0.0}, "timeout is 0.0")]
)
def test_wrong_arguments_are_refused(more: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        maximize(hill, BOX, budget=3, seed=0, **more)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the functions of a test cannot be pickled")
def test_an_evaluation_that_takes_too_long_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(x: Any) -> float:
        if x[0] > 0.6:
            (tmp_path / str(os.getpid())).touch()
            time.sleep(FOR_EVER)
        if x[1] > 0.8:
            os._exit(3)
        if x[1] > 0.6:
            raise KeyError("no mesh")
        return hill(x)

    def expected(x: Any) -> str | None:
        if x[0] > 0.6:
            return "timeout: f took longer than 600 s"
        return (
            "the process of f ended with exit code 3" if x[1] > 0.8 else "KeyError: 'no mesh'" if x[1] > 0.6 else None
        )

    leap(monkeypatch, evaluation, lambda: len(list(tmp_path.iterdir())))
    r = maximize(slow, BOX, budget=8, seed=0, on_failure="learn", timeout=FOR_EVER)
    assert [trial.why for trial in r.trials] == [expected(trial.x) for trial in r.trials]
    assert len({trial.why for trial in r.trials}) >= 3
    assert all(trial.y == (hill(trial.x) if trial.why is None else None) for trial in r.trials)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the functions of a test cannot be pickled")
def test_a_time_out_is_raised_by_default() -> None:
    with pytest.raises(TimeoutError, match=r"longer than 0\.3 s"):
        maximize(lambda x: time.sleep(FOR_EVER), BOX, budget=3, seed=0, timeout=0.3)  # type: ignore[arg-type,return-value]
    with pytest.raises(RuntimeError, match="ValueError: bad"):
        maximize(_bad, BOX, budget=3, seed=0, timeout=FOR_EVER)
    with pytest.raises(TypeError, match="f returned 'text'"):
        maximize(lambda x: "text", BOX, budget=3, seed=0, timeout=FOR_EVER)  # type: ignore[arg-type,return-value]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the functions of a test cannot be pickled")
@pytest.mark.parametrize("timeout", [1e7, 1e300])
def test_a_long_time_is_no_trouble(timeout: float) -> None:
    assert maximize(hill, BOX, budget=1, seed=0, timeout=timeout).y is not None


def _bad(x: Any) -> float:
    raise ValueError("bad")


# Heavy tails


def contaminated(x: Any, rng: np.random.Generator) -> float:
    return hill(x) + 0.01 * rng.standard_normal() + (5.0 if rng.random() < 0.1 else 0.0)


def test_outliers_do_not_lead_a_run_astray() -> None:
    gaps = {}
    for noise in ("normal", "student"):
        opt, rng = Optimizer(BOX, seed=0, noise=noise), np.random.default_rng(0)  # type: ignore[arg-type]
        for x in np.random.default_rng(5).random((30, 2)):
            opt.tell(x, contaminated(x, rng))
        gaps[noise] = -hill(opt.recommend())
    assert gaps["student"] < 0.02 < gaps["normal"]


@pytest.mark.parametrize("more", [{}, GIVEN, {"noise_var": 1e-4}, {"kernel": kernels.RBF(0.3)}])
def test_a_run_with_heavy_tails_replays(more: Any) -> None:
    options = {"noise": "student", "seed": 1, **more}
    opt, rng = Optimizer(BOX, **options), np.random.default_rng(2)
    for _ in range(10):
        x = opt.ask()
        opt.tell(x, contaminated(x, rng), noise_var=1e-4, repeats=2)
    assert np.array_equal(Optimizer(BOX, **options).replay(opt.trials).ask(), opt.ask())
    opt.ledger.regret()
    assert all(trial.surprise is None or math.isfinite(trial.surprise) for trial in opt.trials)


def test_wrong_words_for_the_noise_are_refused() -> None:
    with pytest.raises(ValueError, match="noise is 'cauchy'"):
        Optimizer(BOX, noise="cauchy")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="noise is 'student', but fit is 'mcmc'"):
        Optimizer(BOX, noise="student", fit="mcmc")


# In any order


@settings(max_examples=15, deadline=None)
@given(
    actions=st.lists(st.sampled_from(["tell", "fail", "correct", "retract"]), min_size=3, max_size=9),
    seed=st.integers(0, 3),
    limits=st.integers(0, 1),
)
def test_any_history_replays(actions: list[str], seed: int, limits: int) -> None:
    opt = Optimizer(BOX, seed=seed, n_init=2)
    for action in actions:
        x = opt.ask()
        more: dict[str, Any] = {"constraints": [x[0] - 0.5]} if limits else {}
        opt.fail(x, why="once") if action == "fail" else opt.tell(x, hill(x), **more)
        if action == "correct":
            opt.correct(opt.trials[-1], 0.3)
        elif action == "retract":
            opt.retract(opt.trials[-1])
    twin = Optimizer(BOX, seed=seed, n_init=2).replay(opt.trials)
    assert np.array_equal(twin.ask(), opt.ask())


def test_a_run_in_which_nothing_was_feasible_keeps_its_model() -> None:
    r = gpmi.maximize(lambda x: gpmi.Measured(float(x[0]), 0.0, (1.0 + float(x[0]),)), [(0.0, 1.0)], budget=8, seed=0)
    assert r.x is None and r.y is None and len(r.trials) == 8
    assert r.recommended is not None and r.ledger is not None and r.events
