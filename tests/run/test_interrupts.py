"""What ends a run loses nothing: Ctrl-C at any moment, exceptions of any kind, rules that misbehave."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

import interrupt
import numpy as np
import pytest
from waiting import FOR_EVER

from gpmi import GPMI, Event, Optimizer, Result, kernels, maximize, minimize
from gpmi._support import sobol
from gpmi._support.interrupts import Interrupts, uninterrupted
from gpmi._support.long_work import defer_interrupts
from gpmi.run import loop
from gpmi.run.stopping import Budget, Rule, Stop
from gpmi.space import copied

GRID = np.linspace(0.0, 1.0, 21)[:, None]
PRIOR: dict[str, Any] = {"policy": GPMI(), "kernel": kernels.RBF(0.3), "noise_var": 1e-4}


def wave(x: Any) -> float:
    return float(np.sin(7.0 * x[0]) + x[0])


class Recorded:
    """f, what it has returned, and something that happens in one of its calls."""

    def __init__(self, at: int | None = None, happens: Callable[[], Any] = lambda: None) -> None:
        self.returned: list[float] = []
        self._at, self._happens = at, happens

    def __call__(self, x: Any) -> float:
        if len(self.returned) + 1 == self._at:
            self._happens()
        self.returned.append(wave(x))
        return self.returned[-1]


def key() -> None:
    """Press it."""
    signal.raise_signal(signal.SIGINT)


def values(result: Any) -> list[float | None]:
    assert isinstance(result, Result)
    return [trial.y for trial in result.trials]


@pytest.fixture(autouse=True)
def the_handler_is_given_back() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    yield
    after = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, before)
    assert after == before


# Real keys at random moments


@pytest.mark.slow
def test_real_keys_at_random_moments_lose_nothing() -> None:
    """1,000 of them: make bench NAME=interrupt."""
    outcomes = interrupt.press(20, 4, seed=1)
    assert sum(outcome.landed for outcome in outcomes) >= 20
    assert not [outcome for outcome in outcomes if not outcome.holds]


# A key at a chosen moment


def press_at(count: int, work: Callable[[], Any]) -> tuple[Any, int]:
    """The result of work() with a key before the line number `count` that it executes in loop.py, and their number."""
    lines = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal lines
        if frame.f_code.co_filename != loop.__file__:
            return None
        if event == "line":
            lines += 1
            if lines == count:
                key()
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return work(), lines
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("arguments", [{}, {"stop": Budget(4)}], ids=["budget", "rule"])
def test_a_key_at_any_line_of_the_loop_loses_nothing(arguments: dict[str, Any]) -> None:
    def work() -> tuple[Recorded, Result]:
        f = Recorded()
        return f, maximize(f, GRID, budget=3, seed=0, **PRIOR, **arguments)

    _, lines = press_at(-1, work)
    reasons = set()
    begun = 20  # lines that come before keys are deferred, at most
    for count in range(begun, lines + 1):
        (f, result), _ = press_at(count, work)
        assert values(result) == f.returned, count
        reasons.add(result.reason)
    assert lines > 40 and reasons == {"interrupted", "budget"}


@pytest.mark.parametrize("goal", [maximize, minimize])
def test_a_key_in_f_ends_the_run_at_once(goal: Any) -> None:
    f = Recorded(4, key)
    r = goal(f, GRID, budget=9, seed=0, **PRIOR)
    assert (r.reason, values(r)) == ("interrupted", f.returned) and len(f.returned) == 3


def test_a_key_between_f_and_the_log_does_not_drop_the_value(monkeypatch: pytest.MonkeyPatch) -> None:
    tell = Optimizer.tell

    def pressed(self: Optimizer, x: Any, y: Any) -> Any:
        key()
        key()
        return tell(self, x, y)

    monkeypatch.setattr(Optimizer, "tell", pressed)
    f = Recorded()
    r = maximize(f, GRID, budget=9, seed=0, **PRIOR)
    assert (r.reason, values(r)) == ("interrupted", f.returned) and len(f.returned) == 1


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_key_while_a_point_is_chosen(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """One key waits for the point, which is not evaluated; a second one does not wait."""
    choose, finished = Optimizer._compute_suggestion, []

    def pressed(self: Optimizer, place: Any) -> Any:
        if len(self.trials) == 3:
            for _ in range(times):
                key()
        suggestion = choose(self, place)
        finished.append(suggestion)
        return suggestion

    monkeypatch.setattr(Optimizer, "_compute_suggestion", pressed)
    f = Recorded()
    r = maximize(f, GRID, budget=9, seed=0, **PRIOR)
    assert (r.reason, values(r)) == ("interrupted", f.returned) and len(f.returned) == 3
    assert len(finished) == (4 if times == 1 else 3)


def test_a_key_while_the_result_is_made_leaves_out_what_the_model_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Optimizer, "recommend", lambda self: (key(), time.sleep(60.0)))
    f = Recorded()

    def pressed(point: Any) -> Any:  # the second result is made, without a model: nothing interrupts that
        if len(f.returned) == 5:
            key()
        return copied(point)

    monkeypatch.setattr("gpmi.run.result.copied", pressed)
    r = maximize(f, GRID, budget=5, seed=0, **PRIOR)
    assert (r.reason, values(r)) == ("budget", f.returned) and len(f.returned) == 5
    assert (r.y, r.recommended, r.posterior, r.ledger) == (max(f.returned), None, None, None)
    assert r.events[-1] == Event("no recommendation", "the run was interrupted")


def test_after_a_key_in_f_another_one_still_acts_in_f() -> None:
    """f may catch the first, to save its work, and go on; the second must not wait for it."""
    seen = []

    def stubborn() -> None:
        for _ in range(3):
            try:
                key()
            except KeyboardInterrupt:
                seen.append("caught")
        key()

    f = Recorded(2, stubborn)
    r = maximize(f, GRID, budget=9, seed=0, **PRIOR)
    assert seen == ["caught"] * 3
    assert (r.reason, values(r)) == ("interrupted", f.returned) and len(f.returned) == 1


def test_a_run_inside_f_is_ended_alone_and_the_outer_one_by_the_next_key() -> None:
    inner: list[Result] = []

    def nested(x: Any) -> float:
        inner.append(maximize(Recorded(2, key), GRID, budget=5, seed=1, **PRIOR))
        if len(inner) == 3:
            key()
        return wave(x)

    r = maximize(nested, GRID, budget=9, seed=0, **PRIOR)
    assert [result.reason for result in inner] == ["interrupted"] * 3 and r.reason == "interrupted"
    assert len(r.trials) == 2


@pytest.mark.parametrize("progress", [False, True])
def test_keys_with_a_handler_that_only_counts_end_nothing(progress: bool, capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        f = Recorded(2, lambda: [key() for _ in range(3)])
        r = maximize(f, GRID, budget=4, seed=0, progress=progress, **PRIOR)
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.SIGINT] * 3 and r.reason == "budget" and values(r) == f.returned


def test_a_handler_that_f_puts_in_place_stays() -> None:
    seen = []
    before = signal.getsignal(signal.SIGINT)

    def own() -> None:
        ours = signal.getsignal(signal.SIGINT)
        assert callable(ours)
        signal.signal(signal.SIGINT, lambda number, frame: (seen.append(number), ours(number, frame)))

    try:
        maximize(Recorded(2, own), GRID, budget=3, seed=0, **PRIOR)
        with pytest.raises(KeyboardInterrupt):  # it passes the key on to a handler of a run that is over
            key()
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.SIGINT]


def test_where_keys_are_ignored_they_stay_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        r = maximize(Recorded(2, key), GRID, budget=4, seed=0, **PRIOR)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    assert r.reason == "budget"


def test_a_run_in_another_thread_has_no_keys() -> None:
    found: list[Result] = []
    thread = threading.Thread(target=lambda: found.append(maximize(wave, GRID, budget=4, seed=0, **PRIOR)))
    thread.start()
    thread.join()
    assert found[0].reason == "budget"


# What must not be torn apart


def test_uninterrupted_work_is_finished_before_a_key_acts() -> None:
    done = []

    with pytest.raises(KeyboardInterrupt), uninterrupted():
        key()
        done.append(1)
    assert done == [1]
    with uninterrupted():
        done.append(2)
    assert done == [1, 2]


def test_inside_a_run_keys_are_passed_on_to_it() -> None:
    def work(interrupts: Interrupts) -> None:
        with uninterrupted():
            key()
            key()
        with pytest.raises(KeyboardInterrupt):
            interrupts.act(2)
        interrupts.act()  # both were acted on

    defer_interrupts(work)


def test_an_exception_in_uninterrupted_work_is_not_replaced() -> None:
    with pytest.raises(ZeroDivisionError), uninterrupted():
        key()
        raise ZeroDivisionError


def test_a_key_in_the_first_draw_of_sobol_points_leaves_nothing_half_made(monkeypatch: pytest.MonkeyPatch) -> None:
    make, finished = sobol._sobol, []

    def pressed(*arguments: Any) -> Any:
        key()
        points = make(*arguments)
        finished.append(points)
        return points

    seed = (987654321, 5)
    expected = make(3, 4, seed)
    monkeypatch.setattr(sobol, "_sobol", pressed)
    before = sobol.sobol.cache_info().currsize
    with pytest.raises(KeyboardInterrupt):
        sobol.sobol(3, 4, seed)
    assert len(finished) == 1 and sobol.sobol.cache_info().currsize == before
    monkeypatch.setattr(sobol, "_sobol", make)
    np.testing.assert_array_equal(sobol.sobol(3, 4, seed), expected)


# Exceptions


class NoWords(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class WordsThatExit(Exception):
    def __str__(self) -> str:
        raise SystemExit


class WordsThatAreNone(Exception):
    def __str__(self) -> str:
        return None  # type: ignore[return-value]


@dataclass(frozen=True)
class Frozen(Exception):
    code: int


class Slots(Exception):
    __slots__ = ("code",)


class SlotOfThatName(Exception):
    __slots__ = ("result",)


class Guarded(Exception):
    def __setattr__(self, name: str, value: Any) -> None:
        raise TypeError("nothing is written here")


class Hidden(Exception):
    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        raise RuntimeError("nothing to see")


class Bare(BaseException):
    pass


class Empty(Exception):
    def __len__(self) -> int:
        return 0


class OddList(list[str]):
    def __iter__(self) -> Iterator[str]:
        raise RuntimeError("not to be read")


def with_notes(notes: Any) -> Exception:
    error = ValueError("bad luck")
    error.__notes__ = notes
    return error


ERRORS = [
    *(NoWords(), WordsThatExit(), WordsThatAreNone(), Frozen(3), Slots(), SlotOfThatName(), Guarded(), Hidden()),
    *(Bare(), Empty(), SystemExit(3), GeneratorExit(), StopIteration(4), KeyError("x")),
    *(with_notes(notes) for notes in (None, "odd", ("odd",), 5, OddList(["odd"]), ["mine"])),
    *(UnicodeDecodeError("utf-8", b"", 0, 1, "odd"), MemoryError(), ExceptionGroup("g", [OSError()])),
]  # fmt: skip


def raising(error: BaseException) -> Callable[[], None]:
    def happens() -> None:
        raise error

    return happens


@pytest.mark.parametrize("progress", [False, True])
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_whatever_f_raises_carries_the_result(
    error: BaseException, progress: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    f = Recorded(4, raising(error))
    with pytest.raises(type(error)) as caught:
        maximize(f, GRID, budget=9, seed=0, progress=progress, **PRIOR)
    assert caught.value is error
    assert values(caught.value.result) == f.returned  # type: ignore[attr-defined]
    assert len(f.returned) == 3 and caught.value.result.reason.startswith("error")  # type: ignore[attr-defined]


def test_notes_of_the_user_are_kept() -> None:
    for notes, kept in [(None, 1), (["mine"], 2), (("odd",), ("odd",)), ("odd", "odd")]:
        error = with_notes(notes)
        with pytest.raises(ValueError):
            maximize(Recorded(2, raising(error)), GRID, budget=9, seed=0, **PRIOR)
        now = error.__notes__
        assert now == kept if isinstance(kept, str | tuple) else len(now) == kept and "`result`" in now[-1]


class OddNumber:
    """What f returns: no number, and an exception of an own kind says so."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __float__(self) -> float:
        raise self.error

    def __repr__(self) -> str:
        return "odd"


@pytest.mark.parametrize("error", [UnicodeDecodeError("utf-8", b"", 0, 1, "odd"), NoWords(), SystemExit(2), OSError()])
def test_a_value_that_cannot_be_read_loses_no_other(error: BaseException) -> None:
    returned: Iterator[Any] = iter([1.0, 2.0, OddNumber(error)])
    with pytest.raises(BaseException) as caught:
        maximize(lambda x: next(returned), GRID, budget=9, seed=0, **PRIOR)
    assert values(caught.value.result) == [1.0, 2.0]  # type: ignore[attr-defined]


@pytest.mark.parametrize("where", ["recommend", "posterior", "ledger"])
@pytest.mark.parametrize("error", [NoWords(), SystemExit(3), MemoryError()], ids=lambda error: type(error).__name__)
def test_a_failure_while_the_result_is_made_loses_no_value(
    where: str, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(self: Optimizer) -> Any:
        raise error

    monkeypatch.setattr(Optimizer, where, fails if where == "recommend" else property(fails))
    f = Recorded()
    if isinstance(error, Exception):
        r = maximize(f, GRID, budget=4, seed=0, **PRIOR)
        assert r.events[-1].kind == "no recommendation"
    else:
        with pytest.raises(type(error)) as caught:
            maximize(f, GRID, budget=4, seed=0, **PRIOR)
        r = caught.value.result  # type: ignore[attr-defined]
    assert values(r) == f.returned and len(f.returned) == 4


# Rules and displays


@dataclass
class Says(Rule):
    """A rule that says this after three evaluations, or raises it."""

    what: Any

    def stop(self, optimizer: Optimizer, seconds: float) -> Any:
        if len(optimizer.trials) < 3:
            return None
        if isinstance(self.what, BaseException):
            raise self.what
        return self.what


@pytest.mark.parametrize(
    ("what", "reason", "count"),
    [
        (True, "Says", 3),
        (np.True_, "Says", 3),
        ("enough", "enough", 3),
        ("", "Says", 3),
        (Stop("done"), "done", 3),
        (Stop("done", [Event("odd", "list")]), "done", 3),  # type: ignore[arg-type]
        (False, "budget", 5),
        (np.False_, "budget", 5),
        (None, "budget", 5),
    ],
    ids=repr,
)
@pytest.mark.parametrize("combined", [False, True])
def test_a_rule_may_answer_in_short(what: Any, reason: str, count: int, combined: bool) -> None:
    rule = Says(what) | Budget(1000) if combined else Says(what)
    r = maximize(wave, GRID, budget=5, stop=rule, seed=0, **PRIOR)
    assert (r.reason, len(r.trials)) == (reason, count)
    assert all(isinstance(event, Event) for event in r.events)


class NoRepr:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


NONSENSE = [3, 0, 1.5, [], object(), NoRepr(), Stop, np.array([1.0, 2.0]), Stop(None), Stop("x", None), Stop("x", (1,))]  # type: ignore[arg-type]


@pytest.mark.parametrize("what", NONSENSE, ids=lambda what: type(what).__name__)
@pytest.mark.parametrize("combined", [False, True])
def test_a_rule_that_answers_nonsense_loses_nothing(what: Any, combined: bool) -> None:
    f = Recorded()
    rule = Says(True) & Says(what) if combined else Says(what)
    with pytest.raises((TypeError, RuntimeError)) as caught:
        maximize(f, GRID, budget=5, stop=rule, seed=0, **PRIOR)
    assert values(caught.value.result) == f.returned and len(f.returned) == 3  # type: ignore[union-attr]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_rule_that_raises_loses_nothing(error: BaseException) -> None:
    f = Recorded()
    with pytest.raises(type(error)) as caught:
        maximize(f, GRID, budget=5, stop=Says(error), seed=0, **PRIOR)
    assert caught.value is error
    assert values(caught.value.result) == f.returned and len(f.returned) == 3  # type: ignore[attr-defined]


@pytest.mark.parametrize("part", ["__enter__", "report", "__exit__"])
@pytest.mark.parametrize("error", [BrokenPipeError("gone"), Frozen(1), SystemExit(1)], ids=lambda e: type(e).__name__)
def test_a_display_that_raises_loses_nothing(part: str, error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    class Display:
        def __enter__(self) -> Callable[[Any], None]:
            self.fails("__enter__")
            return lambda trial: self.fails("report")

        def __exit__(self, *exception: object) -> None:
            assert exception == (None, None, None)
            self.fails("__exit__")

        def fails(self, here: str) -> None:
            if here == part and (here != "report" or len(f.returned) == 2):
                raise error

    f = Recorded()
    monkeypatch.setattr(loop, "_display", lambda optimizer: Display())
    with pytest.raises(type(error)) as caught:
        maximize(f, GRID, budget=3, progress=True, seed=0, **PRIOR)
    assert caught.value is error
    assert values(caught.value.result) == f.returned  # type: ignore[attr-defined]
    assert len(f.returned) == {"__enter__": 0, "report": 2, "__exit__": 3}[part]


# Events


def test_the_events_of_the_last_model_are_in_the_result() -> None:
    """y is transformed only by a model that nobody asks for before the result is made."""

    def steep(x: Any) -> float:
        return float(np.exp(12.0 * np.sin(3.0 * x[0]) * x[1]))

    box = [(0.0, 1.0)] * 2
    opt = Optimizer(box, seed=0)
    for _ in range(60):
        opt.tell(x := opt.ask(), steep(x))
        before = set(opt.events)
        assert opt.model is not None
        late = [event for event in opt.events if event not in before]
        if any(event.kind == "transformed" for event in late):
            break
    else:
        raise AssertionError("nothing was transformed, so that nothing is tested")
    r = maximize(steep, box, stop=Budget(len(opt.trials)), seed=0)
    assert set(late) <= set(r.events) and r.warp.bends


def test_the_events_of_a_rule_follow_those_of_the_model() -> None:
    mine = Event("mine", "said so")
    r = maximize(wave, GRID, budget=9, stop=Says(Stop("done", (mine,))), seed=0, **PRIOR)
    assert r.events[-1] == mine


# A key while a process is started


@pytest.mark.skipif(not hasattr(os, "register_at_fork"), reason="the system cannot fork")
@pytest.mark.parametrize("moment", ["before", "after_in_parent"])
@pytest.mark.parametrize(
    "arguments", [{"timeout": FOR_EVER}, {"workers": 2}, {"timeout": FOR_EVER, "on_failure": "learn"}], ids=repr
)
def test_a_key_in_the_callbacks_of_a_fork_is_acted_on(moment: str, arguments: dict[str, Any]) -> None:
    """What a callback raises is printed and dropped, so a KeyboardInterrupt there would be lost."""
    forks = [0]

    def third() -> None:
        forks[0] += 1
        if forks[0] == 3:
            key()

    os.register_at_fork(**{moment: third})  # cannot be taken back
    r = maximize(wave, GRID, budget=8, seed=0, **PRIOR, **arguments)
    assert (r.reason, forks[0]) == ("interrupted", 3)
    assert not multiprocessing.active_children()


@pytest.mark.skipif(not hasattr(os, "register_at_fork"), reason="the system cannot fork")
@pytest.mark.parametrize("moment", ["before", "after_in_parent"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_request_to_end_in_the_callbacks_of_a_fork_is_acted_on(moment: str, number: signal.Signals) -> None:
    """Not only after the evaluation, which may take hours."""
    forks = [0]

    def third() -> None:
        forks[0] += 1
        if forks[0] == 3:
            signal.raise_signal(number)

    os.register_at_fork(**{moment: third})  # cannot be taken back
    with pytest.raises(SystemExit) as caught:
        maximize(wave, GRID, budget=8, seed=0, timeout=FOR_EVER, **PRIOR)
    told = [trial.y for trial in caught.value.result.trials if trial.y is not None]  # type: ignore[attr-defined]
    assert (caught.value.code, len(told), forks[0]) == (128 + number, 2, 3)
    assert not multiprocessing.active_children()
    assert signal.getsignal(number) == signal.SIG_DFL


def test_a_request_to_end_waits_for_uninterrupted_work_and_is_not_lost_if_that_raises() -> None:
    def end(number: int, frame: Any) -> None:
        raise SystemExit(number)

    done = []
    before = signal.signal(signal.SIGTERM, end)
    try:
        with pytest.raises(SystemExit), uninterrupted():
            signal.raise_signal(signal.SIGTERM)
            done.append(1)
        with pytest.raises(SystemExit), uninterrupted():
            signal.raise_signal(signal.SIGTERM)
            raise ZeroDivisionError
        assert done == [1] and signal.getsignal(signal.SIGTERM) == end
    finally:
        signal.signal(signal.SIGTERM, before)
