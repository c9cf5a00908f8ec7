"""The log of a run: every trial by its number, everything that happened in order."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpmi import Optimizer
from gpmi.trials import Log, Outcome
from gpmi.trials.corrections import correct, retract
from gpmi.trials.replay import take_over

X, ROW = np.array([0.5]), np.array([0.5])


def a_log() -> Log:
    """Four points: one told, one failed, one given back, one pending."""
    log = Log()
    for i in range(4):
        log.add(np.array([float(i)]), np.array([float(i)]), "design" if i == 0 else "policy")
    log.settle(2, Outcome.value(7.0))
    log.settle(0, Outcome.failure())
    log.forget(1)
    return log


def test_everything_that_happens_is_an_entry_in_order() -> None:
    log = a_log()
    assert [(entry.kind, entry.number) for entry in log.entries] == [
        ("added", 0), ("added", 1), ("added", 2), ("added", 3), ("told", 2), ("failed", 0), ("forgotten", 1),
    ]  # fmt: skip
    times = [entry.time for entry in log.entries]
    assert times == sorted(times)


def test_trials_go_by_their_outcome_and_keep_their_number() -> None:
    log = a_log()
    assert (list(log.told), list(log.failed), log.pending) == ([2], [0], [3])
    assert [trial.number for trial in log.trials] == [0, 2, 3] and len(log) == 3
    assert log[2].y == 7.0 and log[2].order == 0 and log[0].order == 1
    np.testing.assert_array_equal(log.observed.y, [7.0])
    np.testing.assert_array_equal(log.observed.x, [[2.0]])
    assert log.unchosen == 1 and log.chosen([0, 2]).tolist() == [False, True]
    assert log.add(X, ROW, "policy").number == 4  # 1 was given back and is not used again


def test_a_trial_carries_when_it_was_asked_and_when_it_ended() -> None:
    before = time.time()
    opt = Optimizer([(0.0, 1.0)], seed=0)
    x = opt.ask()
    assert opt.trials[0].asked is not None and before <= opt.trials[0].asked <= time.time()
    assert opt.trials[0].ended is None
    trial = opt.tell(x, 1.0)
    assert trial.asked is not None and trial.ended is not None and trial.asked <= trial.ended <= time.time()
    unasked = opt.tell(np.array([0.3]), 2.0)
    assert unasked.asked is None and unasked.ended is not None


def test_a_replayed_trial_keeps_its_times() -> None:
    opt = Optimizer([(0.0, 1.0)], seed=0)
    for _ in range(3):
        opt.tell(opt.ask(), 1.0)
    opt.fail(opt.ask())
    again = Optimizer([(0.0, 1.0)], seed=0).replay(opt.trials)
    assert [(t.asked, t.ended) for t in again.trials] == [(t.asked, t.ended) for t in opt.trials]


def test_taking_over_settles_in_the_order_of_the_outcomes() -> None:
    first = a_log()
    second = Log()
    take_over(second, first.trials, [first.rows[trial.number] for trial in first.trials])
    assert [second[number].y for number in second.told] == [7.0]
    outcomes = [entry.kind for entry in second.entries if entry.kind != "added"]
    assert outcomes == ["told", "failed"]


VALUE, FAILURE, REJECTION = Outcome.value(1.0), Outcome.failure(), Outcome.rejection()
WORDS = ("user", "design", "policy", "tell", "fail", "reject", "forget", "correct", "retract")


@given(words=st.lists(st.tuples(st.sampled_from(WORDS), st.integers(0, 9)), max_size=30))
def test_what_the_log_counts_is_what_its_trials_say(
    words: list[tuple[str, int]],
) -> None:
    log = Log()
    for word, which in words:
        if word in ("user", "design", "policy"):
            log.add(X, ROW, word)
        else:
            has = {"correct": ("told", "failed", "retracted"), "retract": ("told", "failed", "rejected")}
            numbers = [trial.number for trial in log.trials if trial.status in has.get(word, ("pending",))]
            if not numbers:
                continue
            number = numbers[which % len(numbers)]
            match word:
                case "tell" | "fail" | "reject":
                    log.settle(number, {"tell": VALUE, "fail": FAILURE, "reject": REJECTION}[word])
                case "correct":
                    correct(log, number, Outcome.value(2.0))
                case "retract":
                    retract(log, number)
                case _:
                    getattr(log, word)(number)
        origins = [trial.origin for trial in log.trials]
        first = next((i for i, origin in enumerate(origins) if origin != "user"), len(origins))
        assert log.told_before_asking == sum(trial.status == "told" for trial in log.trials[:first])
        by_policy = [log[number].origin == "policy" for number in log.rows]
        assert log.unchosen == by_policy.count(False) and log.chosen(log.rows).tolist() == by_policy


def test_the_pending_point_is_found_by_its_coordinates() -> None:
    log = a_log()
    exact, rounded = np.zeros(1), np.array([1e-15])
    assert log.find_pending(np.array([3.0]), exact) == 3
    assert log.find_pending(np.array([2.0]), rounded) is None  # already told
    assert log.find_pending(np.array([3.0 + 5e-16]), rounded) == 3
    assert log.find_pending(np.array([3.0 + 5e-16]), exact) is None
    assert log.find_pending(np.array([3.1]), rounded) is None


def test_of_two_equal_pending_points_the_first_is_meant_unless_a_number_says_otherwise() -> None:
    log = Log()
    first, second = (log.add(X, ROW, "policy") for _ in range(2))
    assert log.find_pending(ROW, np.zeros(1)) == first.number
    assert log.pending_number(second) == log.pending_number(second.number) == second.number
    log.settle(second.number, VALUE)
    assert log.find_pending(ROW, np.zeros(1)) == first.number
    log.forget(first.number)
    assert log.find_pending(ROW, np.zeros(1)) is None
    with pytest.raises(ValueError, match="x is trial 1, which is not pending: it is told"):
        log.pending_number(second.number)
    with pytest.raises(ValueError, match="x is trial 9, which is not pending: there is no such trial"):
        log.pending_number(9)


def test_coordinates_cannot_be_changed_through_the_log() -> None:
    with pytest.raises(TypeError):
        a_log().rows[9] = ROW  # type: ignore[index]


def test_a_replayed_log_keeps_the_numbers_and_a_trial_of_another_run_is_refused() -> None:
    opt = Optimizer([(0.0, 1.0)], seed=0)
    opt.ask(4)
    opt.forget(1)
    old = opt.trials
    again = Optimizer([(0.0, 1.0)], seed=0).replay(old)
    assert [trial.number for trial in again.trials] == [0, 2, 3]
    assert again.tell(old[1], 1.0).x == old[1].x
    stranger = Optimizer([(0.0, 1.0)], seed=5)
    stranger.ask(4)
    with pytest.raises(ValueError, match="is at another point"):
        stranger.tell(old[2], 1.0)


def test_a_replayed_log_is_in_the_order_of_time() -> None:
    opt = Optimizer([(0.0, 1.0)], seed=0)
    for _ in range(3):
        opt.tell(opt.ask(), 1.0)
    again = Optimizer([(0.0, 1.0)], seed=0).replay(opt.trials)
    for number in range(3):
        added, told = (entry.time for entry in again._log.entries if entry.number == number)
        assert added <= told
