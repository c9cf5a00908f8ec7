"""Values that do not fit: asked about, left out until somebody answers, and the same in every replay."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pytest

import gpmi
from gpmi import Optimizer
from gpmi.trials.files import from_frame, read_trials, to_frame, write_trials

BOX = [(0.0, 1.0), (0.0, 1.0)]
SLIP = 12
GOALS = {"strength": "max", "cost": None}


def f(x: Any) -> float:
    return 80.0 + 10.0 * float(np.sin(3.0 * x[0]) * np.cos(2.0 * x[1]))


def measured(x: Any, n: int, *, slips: bool = True) -> float:
    y = f(x) + 0.3 * float(np.random.default_rng(n).standard_normal())
    return 0.1 * y if slips and n == SLIP else y


def play(opt: Any, steps: int, begin: int = 0, *, slips: bool = True) -> Any:
    for n in range(begin, begin + steps):
        x = opt.ask()
        opt.tell(x, measured(x.x if isinstance(x, gpmi.Trial) else x, n, slips=slips))
    return opt


def test_a_slip_in_the_initial_design_is_found_with_the_first_values_of_the_policy():
    opt = Optimizer(BOX, seed=1)
    for n in range(10):
        x = opt.ask()
        opt.tell(x, measured(x, n) * (0.1 if n == 1 else 1.0))
    assert opt.trials[1].origin == "design" and opt.trials[1].doubt is not None
    assert [trial.number for trial in opt.trials if trial.doubt is not None] == [1]


def test_runs_decide_alike_from_the_same_trials():
    opt = play(Optimizer(BOX, seed=1), SLIP)
    again = Optimizer(BOX, seed=1).replay(opt.trials)
    for each in (opt, again):
        play(each, 3, SLIP)
    assert [trial.doubts for trial in opt.trials] == [trial.doubts for trial in again.trials]
    assert opt.trials[SLIP].doubt is not None


def test_a_second_value_like_a_doubtful_one_shows_that_it_may_be_right():
    opt = Optimizer(BOX, seed=1)
    for n in range(SLIP + 3):
        x = opt.ask()
        opt.tell(x, measured(x, n) * (0.1 if n == SLIP + 2 else 1.0))
    assert any(event.kind == "doubtful value" for event in opt.events)
    assert all(trial.doubt is None for trial in opt.trials)


def test_of_several_doubts_the_first_is_set_aside_and_the_next_one_after_its_answer():
    opt = Optimizer(BOX, seed=1)
    for n in range(SLIP + 4):
        x = opt.ask()
        opt.tell(x, measured(x, n) * (10.0 if n == SLIP + 2 else 1.0))
    first, second = [trial.number for trial in opt.trials if trial.doubt is not None]
    assert (first, second) == (SLIP, SLIP + 2)
    assert opt._log.set_aside == {"y": first}
    assert second in [trial.number for trial in opt.ledger.trials] and opt.best.number not in (first, second)
    opt.retract(first)
    assert opt._log.set_aside == {"y": second}
    opt.retract(second)
    assert opt._log.set_aside == {}


@pytest.fixture(scope="module")
def played() -> Optimizer:
    return play(Optimizer(BOX, seed=1), SLIP + 1)


def copied(opt: Optimizer) -> Optimizer:
    return pickle.loads(pickle.dumps(opt))


def test_a_slip_is_asked_about_when_it_comes(played):
    (doubtful,) = [trial for trial in played.trials if trial.doubt is not None]
    assert doubtful.number == SLIP
    assert "is far from what was expected" in doubtful.doubt
    assert f"is it right? did you mean {10.0 * doubtful.y:.6g}" in doubtful.doubt
    assert any(event.kind == "doubtful value" and doubtful.doubt in event.message for event in played.events)
    assert "doubtful" in repr(doubtful)


def test_until_it_is_answered_no_model_knows_the_value_and_it_is_never_the_best(played):
    opt = copied(played)
    assert len(opt.ledger.trials) == SLIP and SLIP not in [trial.number for trial in opt.ledger.trials]
    assert opt.best.number != SLIP and not opt.trials[SLIP].feasible
    without = copied(played)
    without.retract(SLIP)
    x = opt.trials[SLIP].x
    assert opt.posterior.mu(x)[0] == without.posterior.mu(x)[0]
    assert opt.evaluated == SLIP + 1


def test_the_doubtful_point_is_like_one_whose_value_is_still_to_come(played):
    opt, x = copied(played), played.trials[SLIP].x
    assert float(np.abs(np.asarray(opt.ask()) - x).max()) > 1e-3


@pytest.mark.parametrize(
    ("answer", "counts"),
    [
        (lambda opt: opt.confirm(SLIP), True),
        (lambda opt: opt.correct(SLIP, 10.0 * opt.trials[SLIP].y), True),
        (lambda opt: opt.retract(SLIP), False),
    ],
    ids=["confirmed", "corrected", "retracted"],
)
def test_an_answer_settles_the_doubt(played, answer, counts):
    opt = copied(played)
    trial = answer(opt)
    assert trial.doubt is None and opt.trials[SLIP].doubt is None
    assert (SLIP in [told.number for told in opt.ledger.trials]) == counts
    assert opt.ledger.can_stop.short != "a value is doubtful"
    play(opt, 3, SLIP + 1)
    assert opt.trials[SLIP].doubt is None


def test_a_corrected_slip_leaves_no_trace_in_the_model(played):
    opt, never = copied(played), play(Optimizer(BOX, seed=1), SLIP + 1, slips=False)
    opt.correct(SLIP, measured(opt.trials[SLIP].x, SLIP, slips=False))
    np.testing.assert_array_equal(opt.ask(), never.ask())


def test_only_a_value_that_was_told_can_be_confirmed(played):
    opt = copied(played)
    pending = opt._next_trial(opt._subspaces.whole)
    with pytest.raises(ValueError, match="give a trial that was told"):
        opt.confirm(pending)


def test_a_value_that_was_confirmed_is_never_asked_about(played):
    opt = copied(played)
    opt.confirm(3)
    assert opt.trials[3].doubt is None and opt.trials[SLIP].doubt is not None


def test_a_run_goes_on_alike_from_its_trials_from_a_file_and_from_a_copy(played, tmp_path):
    space = gpmi.Space.of(BOX)
    trials = [played.trials]
    for name in ("run.csv", "run.jsonl"):
        write_trials(played, tmp_path / name)
        trials.append(read_trials(tmp_path / name, space))
    pytest.importorskip("pandas")
    trials += [from_frame(to_frame(played), space), from_frame(played.to_dataframe(), space)]
    now = copied(played).ask()
    for each in trials:
        assert each[SLIP].doubt == played.trials[SLIP].doubt
        np.testing.assert_array_equal(Optimizer(BOX, seed=1).replay(each).ask(), now)


def test_the_ledger_cannot_tell_while_a_doubt_is_open(played):
    ledger = play(copied(played), 8, SLIP + 1).ledger
    assert ledger.can_stop.answer == "cannot tell" and "is it right?" in ledger.can_stop.why
    assert ledger.calibration.verdict != "fine" and ledger.doubt is not None
    assert not ledger.is_below(1e6)
    facts = ledger.facts()
    assert facts["doubts"].value == [{"trial": SLIP, "why": played.trials[SLIP].doubt}]
    assert "is it right?" in str(ledger) and "is it right?" in ledger.statistics
    json.dumps(facts["doubts"].value)


def test_a_stated_error_bar_does_not_force_the_model_through_a_slip():
    opt = Optimizer(BOX, seed=1)
    for n in range(SLIP + 1):
        x = opt.ask()
        opt.tell(x, measured(x, n), noise_var=0.01)
    assert opt.trials[SLIP].doubt is not None


def test_with_a_given_kernel_nothing_is_doubtful():
    opt = play(Optimizer(BOX, seed=1, kernel=gpmi.kernels.RBF(lengthscale=0.3), noise_var=0.1), SLIP + 1)
    assert all(trial.doubts is None for trial in opt.trials)


def test_an_output_is_doubtful_without_the_others():
    opt = Optimizer(BOX, seed=1, goals=GOALS)
    for n in range(SLIP + 1):
        x = opt.ask()
        cost = 40.0 + 5.0 * float(x[0]) + 0.05 * float(np.random.default_rng(n + 50).standard_normal())
        opt.tell(x, {"strength": measured(x, n, slips=False), "cost": 0.1 * cost if n == SLIP else cost})
    trial = opt.trials[SLIP]
    assert trial.doubt.startswith("cost: ") and list(trial.doubts) == ["cost"]
    assert SLIP in [told.number for told in opt.ledger.trials]
    assert SLIP not in opt.models["cost"].numbers and SLIP in opt.models["strength"].numbers
    again = Optimizer(BOX, seed=1, goals=GOALS).replay(opt.trials)
    np.testing.assert_array_equal(again.ask(), opt.ask())
    assert opt.confirm(trial).doubt is None
    assert SLIP in opt.models["cost"].numbers


def test_several_objectives_leave_a_doubtful_trial_off_the_front():
    opt = Optimizer(BOX, seed=1, goals={"strength": "max", "cost": "min"})
    for n in range(SLIP + 3):
        x = opt.ask()
        cost = 40.0 + 5.0 * float(x[0]) + 0.05 * float(np.random.default_rng(n + 50).standard_normal())
        opt.tell(x, {"strength": measured(x, n, slips=False), "cost": 0.1 * cost if n == SLIP else cost})
    assert opt.trials[SLIP].doubt.startswith("cost: ")
    assert SLIP not in [trial.number for trial in opt.front]
    assert opt.ledger.can_stop.answer == "cannot tell"
    opt.confirm(SLIP)
    assert SLIP in [trial.number for trial in opt.front]


def test_a_study_goes_on_with_the_decision_that_it_recorded(tmp_path):
    path = str(tmp_path / "run.db")
    with gpmi.study(path, space=BOX, seed=1) as study:
        play(study, SLIP + 1)
        doubt = study.trials[SLIP].doubt
    assert doubt is not None
    with gpmi.study(path) as study:
        assert study.trials[SLIP].doubt == doubt
        assert any(event.kind == "doubtful value" for event in study.optimizer.events)
        play(study, 2, SLIP + 1)
        assert study.confirm(SLIP).doubt is None
        play(study, 2, SLIP + 3)
        assert study.verify().verdict == "equal"
    with gpmi.study(path) as study:
        assert study.trials[SLIP].doubt is None and study.verify()
        memory = Optimizer(BOX, seed=1).replay(study.trials)
        np.testing.assert_array_equal(memory.ask(), study.ask().x)


def test_the_decision_is_read_and_not_made_again(tmp_path, monkeypatch):
    path = str(tmp_path / "run.db")
    with gpmi.study(path, space=BOX, seed=1) as study:
        play(study, SLIP + 1)
    monkeypatch.setattr("gpmi.optimizer.doubts.misfit", lambda *_: pytest.fail("it was judged again"))
    with gpmi.study(path) as study:
        assert study.trials[SLIP].doubt is not None
        assert study.verify()


def test_a_value_that_cannot_be_judged_is_recorded_with_an_event(monkeypatch):
    opt = play(Optimizer(BOX, seed=1), SLIP)

    def fails(*_):
        raise ArithmeticError("no draws")

    monkeypatch.setattr("gpmi.optimizer.doubts.misfit", fails)
    x = opt.ask()
    assert opt.tell(x, 8.0).y == 8.0
    assert any(event.kind == "not judged" and "no draws" in event.message for event in opt.events)
