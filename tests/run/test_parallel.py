"""Several evaluations at the same time: the run follows from the order of the outcomes, and no outcome is lost."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from waiting import FOR_EVER, is_running, leap, press_when, wait_until

import gpmi
from gpmi.run import evaluation
from gpmi.run.evaluation import Failure, RaisedInProcess, TimedOut

pytestmark = pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="the tests fork, so that any function will do"
)

BOX = [(0.0, 1.0), (0.0, 1.0)]


def bowl(x: Any) -> float:
    return -float((x[0] - 0.3) ** 2 + (x[1] - 0.6) ** 2)


def forked(size: int = 2) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(size, mp_context=multiprocessing.get_context("fork"))


def points(result: gpmi.Result) -> list[list[float]]:
    return [trial.x.tolist() for trial in result.trials]


# An executor whose futures finish in a given order


class Scripted(Executor):
    """Evaluates at once; its futures are finished by a thread, in the order of a script of submissions."""

    def __init__(self, script: list[int]) -> None:
        self.waiting: dict[int, tuple[Future[Any], Any]] = {}
        self.changed = threading.Condition()
        self.count = 0
        self.thread = threading.Thread(target=self.play, args=(script,), daemon=True)
        self.thread.start()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        with self.changed:
            self.waiting[self.count] = future, fn(*args)
            self.count += 1
            self.changed.notify_all()
        return future

    def play(self, script: list[int]) -> None:
        for number in script:
            with self.changed:
                self.changed.wait_for(lambda number=number: number in self.waiting)
                future, value = self.waiting.pop(number)
            future.set_result(value)


def script(budget: int, size: int, seed: int) -> list[int]:
    """A random order in which `budget` evaluations may finish, `size` of them at a time."""
    rng, order = np.random.default_rng(seed), list[int]()
    air, following = list(range(size)), size
    while air:
        order.append(air.pop(int(rng.integers(len(air)))))
        if following < budget:
            air.append(following)
            following += 1
    return order


@pytest.mark.parametrize("size", [1, 3])
def test_the_same_order_of_outcomes_gives_the_same_run(size: int) -> None:
    def run(seed: int) -> gpmi.Result:
        executor = Scripted(script(14, size, seed))
        return gpmi.maximize(bowl, BOX, budget=14, seed=0, executor=executor, in_flight=size)

    first, again, other = run(1), run(1), run(2)
    assert points(first) == points(again)
    assert [trial.order for trial in first.trials] == [trial.order for trial in again.trials]
    by_order = sorted(first.trials, key=lambda trial: trial.order or 0)
    assert [trial.number for trial in by_order] == script(14, size, 1)
    assert (points(first) == points(other)) == (size == 1)


def test_a_run_follows_from_its_log_by_ask_and_tell_alone() -> None:
    run = gpmi.maximize(bowl, BOX, budget=14, seed=0, executor=Scripted(script(14, 3, 1)), in_flight=3)
    opt = gpmi.Optimizer(BOX, seed=0, budget=14)
    asked = [opt.ask() for _ in range(3)]
    for trial in sorted(run.trials, key=lambda trial: trial.order or 0):
        opt.tell(trial.number, trial.y)
        if len(asked) < 14:
            asked.append(opt.ask())
    assert [x.tolist() for x in asked] == points(run)


def test_one_worker_makes_the_run_of_no_workers() -> None:
    alone = gpmi.maximize(bowl, BOX, budget=10, seed=0)
    assert points(gpmi.maximize(bowl, BOX, budget=10, seed=0, workers=1)) == points(alone)
    with ThreadPoolExecutor(1) as pool:
        assert points(gpmi.maximize(bowl, BOX, budget=10, seed=0, executor=pool, in_flight=1)) == points(alone)


# Real workers


def loky() -> Any:
    """The executor that joblib runs on."""
    return pytest.importorskip("joblib.externals.loky").get_reusable_executor(max_workers=2)


@pytest.mark.parametrize("kind", ["workers", "threads", "processes", "made", "joblib"])
def test_every_kind_of_workers_evaluates_each_point_once(kind: str, tmp_path: Path) -> None:
    with forked() as processes, ThreadPoolExecutor(2) as threads:
        parallel: dict[str, Any] = {
            "workers": {"workers": 2},
            "threads": {"executor": threads, "in_flight": 2},
            "processes": {"executor": processes, "in_flight": 3},
            "made": {"executor": forked, "in_flight": 2},
            "joblib": {"executor": loky, "in_flight": 2},
        }[kind]
        result = gpmi.minimize(Noting(tmp_path), BOX, budget=9, seed=0, **parallel)
    assert result.reason == "budget" and len(result.trials) == 9
    assert all(trial.status == "told" and trial.y == -bowl(trial.x) for trial in result.trials)
    assert len(list(tmp_path.iterdir())) == 9
    assert sorted(trial.order or 0 for trial in result.trials) == list(range(9))


class Noting:
    """-bowl, which leaves a file for each evaluation; it can be pickled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, x: Any) -> float:
        (self.folder / f"{os.getpid()}-{time.monotonic_ns()}").touch()
        return -bowl(x)


def test_workers_work_at_the_same_time(tmp_path: Path) -> None:
    """Each evaluation waits until another one is there: one after the other they would wait for ever."""

    def meeting(x: Any) -> float:
        (tmp_path / f"{os.getpid()}").touch()
        wait_until(lambda: len(list(tmp_path.iterdir())) == 2)
        return 1.0

    assert len(gpmi.maximize(meeting, BOX, budget=2, workers=2, seed=0, timeout=FOR_EVER).trials) == 2


@pytest.mark.parametrize("space", [{"a": (0.0, 1.0), "b": ["u", "v"]}, np.arange(12.0).reshape(6, 2)])
def test_points_keep_their_form_and_finite_sets_are_exhausted(space: Any) -> None:
    def f(x: Any) -> float:
        return x["a"] if isinstance(x, dict) else float(x.sum())

    if isinstance(space, dict):
        assert len(gpmi.maximize(f, space, budget=5, workers=2, seed=0).trials) == 5
    else:
        result = gpmi.maximize(f, space, budget=50, workers=4, repeats=False, seed=0)
        assert result.reason == "space exhausted" and len(result.trials) == 6 and result.y == 21.0


def test_a_value_may_come_with_an_error_bar_and_constraints() -> None:
    def f(x: Any) -> Any:
        return Failure("no luck") if x[0] < 0.3 else gpmi.Measured(float(x[0]), 0.25, (float(x[0]) - 0.5,))

    for parallel in ({}, {"timeout": FOR_EVER}, {"workers": 2}):
        result = gpmi.maximize(f, [(0.0, 1.0)], budget=10, seed=0, on_failure="learn", **parallel)  # type: ignore[arg-type]
        assert all(trial.constraints == (trial.x[0] - 0.5,) for trial in result.trials if trial.status == "told")
        assert all(trial.noise_var == 0.25 for trial in result.trials if trial.status == "told")
        assert {trial.why for trial in result.trials if trial.status == "failed"} == {"no luck"}
        assert result.x is not None and result.x[0] <= 0.5


# Failures


def test_failures_are_learned_from_or_raised_with_what_was_evaluated() -> None:
    def f(x: Any) -> float:
        if x[0] > 0.5:
            raise ZeroDivisionError("too far right")
        return float(x[0]) if x[1] > 0.2 else math.nan

    learned = gpmi.maximize(f, BOX, budget=12, workers=3, seed=0, on_failure="learn")
    whys = {trial.why for trial in learned.trials if trial.status == "failed"}
    assert len(learned.trials) == 12 and "ZeroDivisionError: too far right" in whys
    with pytest.raises(RaisedInProcess, match="too far right") as raised:
        gpmi.maximize(f, [(0.4, 1.0), (0.3, 1.0)], budget=12, workers=3, seed=0)
    assert isinstance(raised.value.result, gpmi.Result)  # type: ignore[attr-defined]
    with ThreadPoolExecutor(2) as pool:
        with pytest.raises(ZeroDivisionError, match="too far right"):
            gpmi.maximize(f, [(0.4, 1.0), (0.3, 1.0)], budget=12, executor=pool, in_flight=2, seed=0)
        result = gpmi.maximize(f, BOX, budget=8, executor=pool, in_flight=2, seed=0, on_failure="learn")
        assert len(result.trials) == 8


@pytest.mark.parametrize("kind", ["workers", "threads"])
def test_a_time_out_ends_the_evaluation(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any) -> float:
        if x[0] > 0.5:
            (tmp_path / str(os.getpid())).touch()
            time.sleep(FOR_EVER)
        return float(x[0])

    leap(monkeypatch, evaluation, lambda: len(list(tmp_path.iterdir())))
    with ThreadPoolExecutor(2) as pool:
        parallel: dict[str, Any] = {"workers": 2} if kind == "workers" else {"executor": pool, "in_flight": 2}
        result = gpmi.maximize(f, BOX, budget=6, seed=0, timeout=FOR_EVER, on_failure="learn", **parallel)
        with pytest.raises(TimedOut):
            gpmi.maximize(f, [(0.6, 1.0)], budget=6, seed=0, timeout=FOR_EVER, **parallel)
    assert {trial.why for trial in result.trials if trial.status == "failed"} == {"timeout: f took longer than 600 s"}
    assert list(tmp_path.iterdir()) and not any(is_running(int(path.name)) for path in tmp_path.iterdir())


# Workers that die


class Deadly:
    """bowl; the first `deaths` evaluations at a point with x[0] > 0.5 are killed in the middle."""

    def __init__(self, folder: Path, deaths: int) -> None:
        self.folder, self.deaths = folder, deaths

    def __call__(self, x: Any) -> float:
        if x[0] > 0.5:
            for death in range(self.deaths):  # workers at the same moment must not die the same death
                try:
                    (self.folder / str(death)).touch(exist_ok=False)
                except FileExistsError:
                    continue
                os.kill(os.getpid(), signal.SIGKILL)
        return bowl(x)


@pytest.mark.parametrize("parallel", [{"workers": 3}, {"executor": forked, "in_flight": 3}], ids=["workers", "pool"])
def test_the_point_of_a_worker_that_dies_is_evaluated_again(parallel: dict[str, Any], tmp_path: Path) -> None:
    result = gpmi.maximize(Deadly(tmp_path, 1), BOX, budget=10, seed=0, **parallel)
    assert len(list(tmp_path.iterdir())) == 1
    assert len(result.trials) == 10 and all(trial.y == bowl(trial.x) for trial in result.trials)
    assert len({trial.number for trial in result.trials}) == 10


@pytest.mark.parametrize("parallel", [{"workers": 3}, {"executor": forked, "in_flight": 3}], ids=["workers", "pool"])
def test_a_point_that_kills_its_workers_is_a_failure_and_the_others_are_not(
    parallel: dict[str, Any], tmp_path: Path
) -> None:
    deadly = Deadly(tmp_path, 10**9)
    result = gpmi.maximize(deadly, BOX, budget=8, seed=0, on_failure="learn", retries=1, **parallel)
    assert len(result.trials) == 8
    for trial in result.trials:
        assert trial.status == ("failed" if trial.x[0] > 0.5 else "told")
        assert trial.why is None or trial.why.startswith("its worker died 2 times: ")
    with pytest.raises((RaisedInProcess, BrokenProcessPool)):
        gpmi.maximize(deadly, [(0.6, 1.0)], budget=8, seed=0, **parallel)


def test_an_executor_that_cannot_be_replaced_is_an_error_that_names_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(BrokenProcessPool) as raised, forked() as pool:
        gpmi.maximize(Deadly(tmp_path, 1), BOX, budget=20, seed=0, executor=pool, in_flight=2)
    assert any("pass an executor factory" in note for note in raised.value.__notes__)
    assert isinstance(raised.value.result, gpmi.Result)  # type: ignore[attr-defined]


# The end


def test_when_a_rule_stops_the_run_what_is_in_the_air_is_told() -> None:
    seen: list[int] = []
    stop = gpmi.stopping.Target(-1e9)  # reached by the first value
    executor = Scripted([1, 0, 2])
    result = gpmi.maximize(
        bowl, BOX, stop=stop, seed=0, executor=executor, in_flight=3, on_trial=lambda t, o: seen.append(t.number)
    )
    assert result.reason == "target -1e+09 reached"
    assert seen == [1, 0, 2] and len(result.trials) == 3


@pytest.mark.parametrize("kind", ["workers", "threads"])
def test_ctrl_c_keeps_everything_that_has_arrived(kind: str, tmp_path: Path) -> None:
    """Both evaluations that begin after the fourth value hang when the key is pressed."""
    over = threading.Event()

    def f(x: Any) -> float:
        if (tmp_path / "done").exists():
            (tmp_path / f"{os.getpid()}-{threading.get_native_id()}.hangs").touch()
            over.wait(FOR_EVER)
        return 1.0

    def ends_soon(trial: gpmi.Trial, optimizer: gpmi.Optimizer) -> None:
        if trial.order == 3:
            (tmp_path / "done").touch()

    with ThreadPoolExecutor(2) as pool:
        parallel: dict[str, Any] = {"workers": 2} if kind == "workers" else {"executor": pool, "in_flight": 2}
        press_when(lambda: len(list(tmp_path.glob("*.hangs"))) == 2)
        result = gpmi.maximize(f, BOX, budget=20, seed=0, on_trial=ends_soon, **parallel)
        over.set()
    assert result.reason == "interrupted" and 4 <= len(result.trials) <= 6
    if kind == "workers":
        assert not any(is_running(int(path.name.partition("-")[0])) for path in tmp_path.glob("*.hangs"))


def test_an_outcome_that_arrives_with_an_exception_is_told() -> None:
    class Together(Executor):
        """Finishes three evaluations at the same time, the first of them with an exception."""

        def __init__(self) -> None:
            self.futures: list[Future[Any]] = []

        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            self.futures.append(Future())
            if len(self.futures) == 3:
                self.futures[0].set_exception(OSError("no network"))
                self.futures[1].set_result(1.5)
                self.futures[2].set_result(2.5)
            return self.futures[-1]

    with pytest.raises(OSError, match="no network") as raised:
        gpmi.maximize(bowl, BOX, budget=9, seed=0, executor=Together(), in_flight=3)
    assert [trial.y for trial in raised.value.result.trials] == [1.5, 2.5]  # type: ignore[attr-defined]


def test_the_value_of_a_trial_that_was_told_meanwhile_is_one_more_at_its_point() -> None:
    def told(trial: gpmi.Trial, optimizer: gpmi.Optimizer) -> None:
        if trial.order == 0:
            optimizer.tell(optimizer.pending[0], 9.0)

    result = gpmi.maximize(bowl, BOX, budget=4, seed=0, executor=Scripted([0, 1, 2, 3]), in_flight=2, on_trial=told)
    there = [trial for trial in result.trials if trial.x.tolist() == points(result)[1]]
    assert [trial.y for trial in there] == [9.0, bowl(there[0].x)]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"workers": 0}, "workers is 0; give a whole number of at least 1"),
        ({"workers": 2.5}, "workers is 2.5"),
        ({"workers": 2, "in_flight": 3}, "in_flight is 3, but there is no executor; give workers instead"),
        ({"executor": 3, "in_flight": 3}, "executor is 3; give an executor of concurrent.futures"),
        ({"executor": lambda: 3, "in_flight": 3}, "it must return an executor"),
        ({"executor": Scripted([])}, "in_flight is None; with an executor give"),
        ({"executor": Scripted([]), "workers": 3}, "workers is 3, but there is an executor; give in_flight instead"),
        ({"executor": Scripted([]), "in_flight": 0}, "in_flight is 0"),
        ({"workers": 2, "retries": -1}, "retries is -1"),
    ],
)
def test_wrong_arguments_are_refused(more: dict[str, Any], words: str) -> None:
    with pytest.raises((TypeError, ValueError)) as refused:
        gpmi.maximize(bowl, BOX, budget=3, **more)
    assert words in str(refused.value)


# Dask


@pytest.fixture
def cluster() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        ) as found,
        distributed.Client(found) as client,
    ):
        yield client


@pytest.mark.filterwarnings("ignore")
def test_dask_goes_on_when_one_of_two_workers_is_killed(cluster: Any, tmp_path: Path) -> None:
    def f(x: Any, folder: str = str(tmp_path)) -> float:
        import os
        import time

        time.sleep(0.1)
        open(os.path.join(folder, f"{os.getpid()}-{time.monotonic_ns()}"), "w").close()
        return -float((x[0] - 0.3) ** 2 + (x[1] - 0.6) ** 2)

    def kill(trial: gpmi.Trial, optimizer: gpmi.Optimizer) -> None:
        if trial.order == 4:
            os.kill(next(iter(cluster.run(os.getpid).values())), signal.SIGKILL)

    executor = cluster.get_executor(pure=False)
    result = gpmi.maximize(f, BOX, budget=16, seed=0, executor=executor, in_flight=3, on_trial=kill)
    assert result.reason == "budget" and len(result.trials) == 16
    assert all(trial.status == "told" and trial.y == bowl(trial.x) for trial in result.trials)
    assert sorted(trial.order or 0 for trial in result.trials) == list(range(16))
    assert 16 <= len(list(tmp_path.iterdir())) <= 19


class Arrived(gpmi.run.pools.Pool):
    """Two outcomes are there when the run is interrupted; the first one is no number."""

    size = 2

    def __init__(self) -> None:
        self.numbers: list[int] = []

    def start(self, number: int, x: Any) -> None:
        self.numbers.append(number)

    def wait(self, seconds: float | None = None) -> None:
        raise KeyboardInterrupt

    def take(self) -> Any:
        if not self.numbers:
            return None
        number = self.numbers.pop(0)
        return gpmi.run.pools.Finished(number, "no number" if number == 0 else 1.5)

    def close(self) -> None:
        pass


def test_what_has_arrived_is_told_and_what_is_refused_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    from gpmi._support.interrupts import Interrupts
    from gpmi.run.curves import Curves
    from gpmi.run.parallel import ParallelLoop

    opt = gpmi.Optimizer(BOX, seed=0)
    interrupts = Interrupts(lambda *key: None)
    curves = Curves(opt, learns=False, cost=None, show=lambda trial: None)
    shows = lambda trial: None  # noqa: E731
    loop = ParallelLoop(opt, Arrived(), shows, lambda trial: None, interrupts, curves, learns=False, retries=0)
    with pytest.raises(KeyboardInterrupt):
        loop.run(opt.turns(2))
    assert [trial.y for trial in opt.trials] == [None, 1.5]
    assert "trial 0 returned 'no number', which was not told" in caplog.text
