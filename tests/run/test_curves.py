"""f as a generator: every value is recorded before f goes on, f is closed when it is to stop, and costs are limited."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from waiting import FOR_EVER, leap, lines, press_when, wait_until

import gpmi
from gpmi import Fidelity
from gpmi.run import evaluation
from gpmi.run.evaluation import RaisedInProcess
from gpmi.run.progress import ProgressState

LAST = 27
SPACE = {"a": (0.0, 1.0), "epoch": Fidelity(1, LAST)}
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
WAYS = [
    pytest.param({}, id="here"),
    pytest.param({"timeout": FOR_EVER}, id="timeout", marks=forks),
    pytest.param({"workers": 1}, id="workers", marks=forks),
]
Curve = Iterator[tuple[int, float]]


def value(x: Any, step: int) -> float:
    return float(-((x["a"] - 0.3) ** 2) - 1.0 / step)


def f(x: Any) -> Curve:
    for step in range(1, LAST + 1):
        yield step, value(x, step)


def note(path: Path, *what: Any) -> None:
    with open(path, "a") as file:
        file.write(json.dumps(what) + "\n")
        file.flush()


def noted(path: Path) -> list[Any]:
    return [json.loads(line) for line in lines(path)]


def told(result: gpmi.Result) -> list[Any]:
    return [(dict(t.x), t.status, t.y, t.why, [(r.step, r.y) for r in t.curve]) for t in result.trials]


def error_of(call: Callable[[], Any], kind: type[BaseException]) -> tuple[str, gpmi.Result]:
    with pytest.raises(kind) as caught:
        call()
    return str(caught.value), caught.value.result  # type: ignore[attr-defined]


# The same curves everywhere


@forks
def test_a_curve_is_the_same_in_every_way_to_evaluate_it(tmp_path: Path) -> None:
    plain = gpmi.maximize(f, SPACE, budget=7, seed=0)
    assert {t.status for t in plain.trials} == {"told", "stopped"}
    optimizer = gpmi.Optimizer(SPACE, seed=0, budget=7)
    for _ in range(7):
        optimizer.ask()
        trial = optimizer.pending[0]
        assert any(optimizer.report(trial, step, y) == "stop" for step, y in f(trial.x))
    assert [(t.x, t.y) for t in optimizer.trials] == [(t.x, t.y) for t in plain.trials]
    for options in ({"timeout": FOR_EVER}, {"workers": 1}):
        assert told(gpmi.maximize(f, SPACE, budget=7, seed=0, **options)) == told(plain)
    pytest.importorskip("sqlalchemy")
    path = tmp_path / "run.db"
    assert told(gpmi.maximize(f, SPACE, budget=7, seed=0, study=path)) == told(plain)
    with gpmi.study(path) as study:
        assert study.verify().verdict == "equal"


def test_a_function_that_returns_a_number_is_evaluated_at_the_target() -> None:
    result = gpmi.maximize(lambda x: x["a"], SPACE, budget=4, seed=0)
    assert [[r.step for r in t.curve] for t in result.trials] == [[LAST]] * 4 and result.cost == 4 * LAST


@pytest.mark.parametrize("options", WAYS)
def test_outputs_are_yielded_as_a_dict(options: dict[str, Any]) -> None:
    def outputs(x: Any) -> Iterator[Any]:
        for step in range(1, LAST + 1):
            yield step, {"accuracy": value(x, step), "latency": 1.0}

    goals = {"accuracy": "max", "latency": gpmi.AtMost(2.0)}
    result = gpmi.optimize(outputs, SPACE, goals=goals, budget=5, seed=0, **options)
    assert result.trials[0].y == value(result.trials[0].x, LAST)
    assert result.trials[0].curve[0].y == {"accuracy": value(result.trials[0].x, 1), "latency": 1.0}


@pytest.mark.parametrize("options", WAYS)
def test_the_value_at_the_target_may_have_an_error_bar(options: dict[str, Any]) -> None:
    def measured(x: Any) -> Iterator[Any]:
        yield 1, gpmi.Measured(0.5)
        yield LAST, gpmi.Measured(1.0, noise_var=0.25)

    trial = gpmi.maximize(measured, SPACE, budget=1, seed=0, **options).trials[0]
    assert (trial.y, trial.noise_var, len(trial.curve)) == (1.0, 0.25, 2)


# Stopping


@pytest.mark.parametrize("options", WAYS)
def test_a_generator_that_is_to_stop_can_clean_up(options: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "closed"

    def cleans(x: Any) -> Curve:
        try:
            yield from f(x)
        finally:
            note(path, x["a"])

    result = gpmi.maximize(cleans, SPACE, budget=6, seed=0, **options)
    assert [a for (a,) in noted(path)] == [t.x["a"] for t in result.trials]
    assert "stopped" in {t.status for t in result.trials}


@pytest.mark.parametrize("options", WAYS)
def test_an_error_while_cleaning_up_loses_nothing(options: dict[str, Any]) -> None:
    def breaks(x: Any) -> Curve:
        try:
            yield from f(x)
        finally:
            raise OSError("no space left")

    text, result = error_of(lambda: gpmi.maximize(breaks, SPACE, budget=3, seed=0, **options), Exception)
    assert "no space left" in text and result.trials[0].status == "told"
    learned = gpmi.maximize(breaks, SPACE, budget=3, seed=0, on_failure="learn", **options)
    assert len(learned.trials) == 3 and {t.status for t in learned.trials} <= {"told", "stopped"}
    assert "clean-up failed" in {event.kind for event in learned.events}


@forks
def test_a_generator_that_does_not_end_when_it_is_to_stop_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "hangs"

    def hangs(x: Any) -> Curve:
        try:
            yield from f(x)
        finally:
            note(path, 1)
            time.sleep(FOR_EVER)

    leap(monkeypatch, evaluation, lambda: len(lines(path)))
    for options in ({"workers": 1}, {"timeout": 2.0 * FOR_EVER}):
        result = gpmi.maximize(hangs, SPACE, budget=2, seed=0, **options)
        assert result.trials[0].status == "told" and len(result.trials) == 2


def test_a_curve_that_ends_before_its_target_is_stopped() -> None:
    for options in ({}, {"workers": 1}, {"timeout": FOR_EVER}):

        def ends(x: Any) -> Curve:
            for step in range(1, 18):
                yield step, value(x, step)

        trial = gpmi.maximize(ends, SPACE, budget=1, seed=0, **options).trials[0]
        assert (trial.status, trial.why, trial.y) == ("stopped", "ended at step 17 of 27", None)


def test_an_executor_cannot_stop_a_curve_and_an_event_says_so() -> None:
    with ThreadPoolExecutor(1) as executor:
        result = gpmi.maximize(f, SPACE, budget=6, seed=0, executor=executor, in_flight=1)
    assert [len(t.curve) for t in result.trials] == [LAST] * 6 and {t.status for t in result.trials} == {"told"}
    assert [event.kind for event in result.events if event.kind == "not stopped"] == ["not stopped"]


def test_a_curve_that_fails_in_an_executor_keeps_its_values() -> None:
    def breaks(x: Any) -> Curve:
        yield 1, 0.5
        yield 2, 0.6
        raise OSError("no space left")

    with ThreadPoolExecutor(1) as executor:
        options: dict[str, Any] = {"executor": executor, "in_flight": 1, "budget": 2, "seed": 0}
        learned = gpmi.maximize(breaks, SPACE, on_failure="learn", **options)
        assert [(t.status, t.why, len(t.curve)) for t in learned.trials] == [
            ("failed", "OSError: no space left", 2)
        ] * 2
        text, _ = error_of(lambda: gpmi.maximize(breaks, SPACE, **options), RaisedInProcess)
        assert text == "OSError: no space left"


# What goes wrong


@pytest.mark.parametrize("options", WAYS)
@pytest.mark.parametrize(
    ("bad", "kind", "words"),
    [
        ("abc", TypeError, "yield a step and its value"),
        (0.5, TypeError, "yield a step and its value"),
        ((2, 0.5, 1.0), TypeError, "yield a step and its value"),
        (("2", 0.5), TypeError, "step is '2'; give a whole number"),
        ((2.0, 0.5), TypeError, "step is 2.0; give a whole number"),
        ((0, 0.5), ValueError, "step is 0"),
        ((LAST + 1, 0.5), ValueError, f"epoch goes from 1 to {LAST}"),
        ((1, 0.7), ValueError, "report each step once"),
        ((2, "x"), TypeError, "must be one finite number"),
        ((2, None), TypeError, "must be one finite number"),
        ((2, float("nan")), ValueError, "the value is nan"),
        ((2, {"a": 0.5}), TypeError, "the run has no goals|several outputs"),
    ],
    ids=str,
)
def test_what_is_no_step_and_value_is_a_failure_or_a_clear_error(
    bad: Any, kind: type[Exception], words: str, options: dict[str, Any]
) -> None:
    def yields(x: Any) -> Iterator[Any]:
        yield 1, 0.5
        yield bad
        yield 3, 0.7

    with pytest.raises(kind, match=words) as caught:
        gpmi.maximize(yields, SPACE, budget=2, seed=0, **options)
    assert "f yielded" in str(caught.value) and "at x = {'a'" in str(caught.value)
    learned = gpmi.maximize(yields, SPACE, budget=2, seed=0, on_failure="learn", **options)
    for trial in learned.trials:
        assert trial.status == "failed" and (trial.why or "").startswith("f yielded") and len(trial.curve) == 1


@pytest.mark.parametrize("options", WAYS)
def test_a_generator_that_yields_nothing_is_a_failure_or_a_clear_error(options: dict[str, Any]) -> None:
    def nothing(x: Any) -> Curve:
        yield from ()

    with pytest.raises(
        ValueError, match=r"f is a generator that yielded nothing at x = .*; yield a step and its value"
    ):
        gpmi.maximize(nothing, SPACE, budget=2, seed=0, **options)
    learned = gpmi.maximize(nothing, SPACE, budget=2, seed=0, on_failure="learn", **options)
    assert [t.status for t in learned.trials] == ["failed"] * 2


@pytest.mark.parametrize("options", WAYS)
@pytest.mark.parametrize(
    "space", [[(0.0, 1.0)], {"a": (0.0, 1.0), "mesh": Fidelity({"coarse": 1, "fine": 9})}], ids=str
)
def test_a_generator_in_a_space_without_steps_is_refused(space: Any, options: dict[str, Any]) -> None:
    for on_failure in ("raise", "learn"):
        with pytest.raises(ValueError, match="f is a generator, but the space has no steps; give it a fidelity"):
            gpmi.maximize(lambda x: iter_of(0.5), space, budget=2, on_failure=on_failure, **options)


def iter_of(y: float) -> Curve:
    yield 1, y


@pytest.mark.parametrize("options", WAYS)
def test_values_before_an_exception_stay(options: dict[str, Any]) -> None:
    def breaks(x: Any) -> Curve:
        yield 1, 0.5
        yield 2, 0.6
        raise OSError("no space left")

    learned = gpmi.maximize(breaks, SPACE, budget=2, seed=0, on_failure="learn", **options)
    assert [(t.status, t.why, len(t.curve)) for t in learned.trials] == [("failed", "OSError: no space left", 2)] * 2
    text, _ = error_of(lambda: gpmi.maximize(breaks, SPACE, budget=2, seed=0, **options), Exception)
    assert "no space left" in text
    assert learned.cost == 4.0


@forks
@pytest.mark.parametrize("options", [{}, {"workers": 1}], ids=["timeout", "workers"])
@pytest.mark.parametrize("retries", [0, 1])
def test_a_timeout_in_the_middle_of_a_curve_keeps_its_values(
    options: dict[str, Any], retries: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "hung"

    def hangs(x: Any) -> Curve:
        again = len(lines(path))
        for step in range(1, 4 + again):
            yield step, 0.1 * step + again  # another training has other values
        note(path, 1)
        time.sleep(FOR_EVER)

    leap(monkeypatch, evaluation, lambda: len(lines(path)))
    result = gpmi.maximize(
        hangs, SPACE, budget=1, seed=0, timeout=1800.0, retries=retries, on_failure="learn", **options
    )
    (trial,) = result.trials
    assert trial.status == "failed" and (trial.why or "").startswith("timeout")
    assert [(r.step, r.y) for r in trial.curve] == [(1, 0.1), (2, 0.2), (3, 0.1 * 3), *[(4, 1.4)] * retries]


@forks
def test_a_worker_that_dies_in_the_middle_of_a_curve_is_repeated_and_keeps_the_first_values(tmp_path: Path) -> None:
    path = tmp_path / "died"

    def dies(x: Any) -> Curve:
        again = len(lines(path))
        for step in range(1, LAST + 1):
            yield step, 0.1 * step + again
            if step == 5 and not again:
                note(path, 1)
                os.kill(os.getpid(), signal.SIGKILL)

    for options in ({"workers": 2}, {"timeout": FOR_EVER, "retries": 1}):
        path.unlink(missing_ok=True)
        trial = gpmi.maximize(dies, SPACE, budget=1, seed=0, **options).trials[0]
        assert trial.y == 0.1 * LAST + 1
        assert [r.y for r in trial.curve] == [0.1 * s + (s > 5) for s in range(1, LAST + 1)]


@forks
@pytest.mark.parametrize("options", [{"timeout": FOR_EVER}, {"workers": 1}, {"workers": 2}], ids=str)
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs descriptors as files")
@pytest.mark.parametrize("attack", ["close", "write", "replace", "fork"])
def test_a_hostile_generator_loses_no_value(options: dict[str, Any], attack: str, tmp_path: Path) -> None:
    known = set(os.listdir("/proc/self/fd"))  # of the tests

    def hostile(x: Any) -> Curve:
        new = [int(number) for number in os.listdir("/proc/self/fd") if number not in known]
        for step in range(1, LAST + 1):
            if step == 3 and attack == "close":
                for number in new:
                    with suppress(OSError):
                        os.close(number)
            elif attack == "write":
                for number in new:
                    with suppress(OSError):
                        os.write(number, b"\0\xff" * step)
            elif step == 3 and attack == "replace":
                other = os.open(tmp_path / "other", os.O_CREAT | os.O_RDWR)
                for number in new:
                    with suppress(OSError):
                        os.dup2(other, number)
            elif step == 3 and attack == "fork":
                os.fork()  # the child goes on as well, and says nothing
            yield step, value(x, step)

    plain = gpmi.maximize(f, SPACE, budget=3, seed=0)
    result = gpmi.maximize(hostile, SPACE, budget=3, seed=0, **options)
    assert len(result.trials) == 3
    for trial in result.trials:
        assert [(r.step, r.y) for r in trial.curve] == [(s, value(trial.x, s)) for s in range(1, len(trial.curve) + 1)]
    if options != {"workers": 2}:
        assert told(result) == told(plain)


@pytest.mark.parametrize("options", WAYS)
def test_ctrl_c_in_the_middle_of_a_curve_keeps_its_values_and_leaves_the_trial_pending(
    options: dict[str, Any], tmp_path: Path
) -> None:
    pytest.importorskip("sqlalchemy")
    path, closed, study = tmp_path / "steps", tmp_path / "closed", tmp_path / "run.db"

    def waits(x: Any) -> Curve:
        again = closed.exists()
        for step in range(1, LAST + 1):
            yield step, value(x, step) + again
            note(path, step)
            if step == 4 and not again:
                time.sleep(FOR_EVER)

    press_when(lambda: len(lines(path)) == 4)
    result = gpmi.maximize(waits, SPACE, budget=2, seed=0, study=study, **options)
    assert result.reason == "interrupted" and result.trials == () and result.cost == 4.0
    with gpmi.study(study) as opened:
        (trial,) = opened.pending
        assert [r.step for r in trial.curve] == [1, 2, 3, 4]
    closed.touch()
    result = gpmi.maximize(waits, SPACE, budget=2, seed=0, study=study, **options)
    assert result.reason == "budget"
    x = result.trials[0].x
    assert [r.y for r in result.trials[0].curve] == [value(x, s) + (s > 4) for s in range(1, LAST + 1)]
    with gpmi.study(study) as opened:
        assert opened.verify().agrees


# Costs


def costs_of(result: gpmi.Result) -> list[int]:
    return [t.curve[-1].step if t.curve else 0 for t in result.trials]


@pytest.mark.parametrize("options", [*WAYS, pytest.param({"workers": 3}, marks=forks, id="three")])
def test_a_run_ends_when_its_cost_is_spent(options: dict[str, Any]) -> None:
    result = gpmi.maximize(f, SPACE, cost=100, seed=0, **options)
    assert result.reason == "cost" and result.cost == sum(costs_of(result))
    assert 100.0 - options.get("workers", 1) < (result.cost or 0.0) <= 100.0
    last = [t for t in result.trials if t.why == "the cost is spent"]
    assert last and all(t.status == "stopped" for t in last)
    assert f"evaluations  {len(result.trials)}, of which" in str(result) and f"stopped; cost {result.cost:.0f}" in str(
        result
    )


def test_the_same_call_on_a_study_continues_from_what_was_spent(tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy")
    path = tmp_path / "run.db"
    first = gpmi.maximize(f, SPACE, cost=60, seed=0, study=path)
    again = gpmi.maximize(f, SPACE, cost=60, seed=0, study=path)
    assert told(again) == told(first) and again.reason == "cost"
    assert [event.kind for event in again.events] == ["cost used up"]
    more = gpmi.maximize(f, SPACE, cost=110, seed=0, study=path)
    assert told(more)[: len(first.trials)] == told(first) and more.cost == 110.0
    with gpmi.study(path) as study:
        assert study.verify().agrees
        assert study.optimize(f, cost=130).cost == 130.0


def test_a_cost_that_grows_with_the_steps_is_not_exceeded() -> None:
    space = {"a": (0.0, 1.0), "epoch": Fidelity(1, LAST, cost={10: 5.0, LAST: 39.5})}
    result = gpmi.maximize(f, space, cost=100.3, seed=0)
    assert result.reason == "cost" and 98.3 <= (result.cost or 0.0) <= 100.3


@pytest.mark.parametrize("options", [{}, pytest.param({"workers": 3}, marks=forks)], ids=str)
def test_no_measurement_begins_that_costs_more_than_is_left(options: dict[str, Any]) -> None:
    space = {"a": (0.0, 1.0), "mesh": Fidelity({"coarse": 1, "fine": 7})}
    result = gpmi.maximize(lambda x: -((x["a"] - 0.3) ** 2), space, cost=40, seed=0, **options)
    cost = {"coarse": 1.0, "fine": 7.0}
    assert result.reason == "cost" and result.cost == sum(cost[t.x["mesh"]] for t in result.trials) <= 40.0
    assert (result.cost or 0.0) > 40.0 - 7.0 * 3


def test_costs_that_are_learned_limit_a_run_by_its_time() -> None:
    space = {"a": (0.0, 1.0), "mesh": Fidelity(["coarse", "fine"])}
    result = gpmi.maximize(lambda x: x["a"], space, cost=1e-9, seed=0)
    assert result.reason == "cost" and len(result.trials) == 1


def test_a_budget_and_a_cost_end_a_run_whichever_comes_first() -> None:
    assert gpmi.maximize(f, SPACE, budget=2, cost=1000, seed=0).reason == "budget"
    assert gpmi.maximize(f, SPACE, budget=50, cost=60, seed=0).reason == "cost"


def test_a_cost_needs_a_fidelity_and_is_positive() -> None:
    with pytest.raises(ValueError, match="cost is 5, but the space has no fidelity; give it a fidelity such as"):
        gpmi.maximize(lambda x: x[0], [(0.0, 1.0)], cost=5)
    for bad in (0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="cost is"):
            gpmi.maximize(f, SPACE, cost=bad)
    with pytest.raises(TypeError, match="cost is 'x'"):
        gpmi.maximize(f, SPACE, cost="x")  # type: ignore[arg-type]
    assert gpmi.maximize(lambda x: x[0], [(0.0, 1.0)], budget=2).cost is None


# The display


def test_the_progress_shows_the_step_and_the_cost() -> None:
    optimizer = gpmi.Optimizer(SPACE, seed=0, budget=5)
    state = ProgressState(optimizer)
    optimizer.ask()
    trial = optimizer.pending[0]
    state.begin(trial)
    optimizer.report(trial, 3, 0.5)
    state.step(optimizer.trials[0])
    assert state.count == "0/5, cost 3" and f"step 3 of {LAST}" in state.evaluated[0]
    optimizer.report(trial, LAST, 0.7)
    state.end(optimizer.trials[0])
    assert state.line.startswith(f"1/5, cost {LAST}")


def test_a_run_with_a_display_shows_its_cost(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("rich")
    gpmi.maximize(f, SPACE, cost=60, seed=0, progress=True)
    assert "evaluations, cost 60" in capsys.readouterr().err


# Durability


@forks
@pytest.mark.parametrize("options", [{}, {"workers": 2}], ids=["here", "workers"])
def test_no_acknowledged_value_is_lost_when_workers_are_killed(options: dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy")
    acknowledged, path = tmp_path / "acknowledged", tmp_path / "run.db"
    gpmi.study(path, space=SPACE, seed=0, budget=8, lease=FOR_EVER).close()

    def notes(x: Any) -> Curve:
        for step, y in f(x):
            yield step, y
            note(acknowledged, x["a"], step, y)  # the answer has come

    def worker() -> int:
        child = os.fork()
        if child == 0:
            try:
                with gpmi.study(path) as study:
                    study.optimize(notes, **options)
            finally:
                os._exit(0)
        return child

    children = [worker(), worker()]
    for kill in range(6):
        enough = len(lines(acknowledged)) + 5
        wait_until(lambda enough=enough: len(lines(acknowledged)) >= enough or all_told(path))
        victim = children[kill % 2]
        os.kill(victim, signal.SIGKILL)
        os.waitpid(victim, 0)
        children[kill % 2] = worker()
    for child in children:
        assert os.waitpid(child, 0)[1] == 0
    with gpmi.study(path) as study:
        assert study.optimize(notes, **options).reason == "budget"
        trials = study.trials
        stored = {(t.x["a"], r.step, r.y) for t in trials for r in t.curve}
        assert {tuple(one) for one in noted(acknowledged)} <= stored
        assert len(trials) == 8 and {t.status for t in trials} <= {"told", "stopped"}
        assert study.verify().agrees


def all_told(path: Path) -> bool:
    with gpmi.study(path) as study:
        return study.optimizer.evaluated >= 8
