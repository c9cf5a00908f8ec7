"""One Optimizer, many threads: every call is alone, so that nothing is lost, doubled or torn apart."""

from __future__ import annotations

import random
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from gpmi import GPMI, GPUCB, Optimizer, SpaceExhausted, Trial, kernels

THREADS, TELLS = 8, 800
GRID = np.stack([axis.ravel() for axis in np.meshgrid(*[np.linspace(0.0, 1.0, 50)] * 2)], axis=1)
PRIOR: dict[str, Any] = {"kernel": kernels.RBF(0.3), "noise_var": 1e-2}


@pytest.fixture(autouse=True)
def threads_change_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def together(work: Callable[[int], Any], threads: int = THREADS) -> list[Any]:
    """What work(0), work(1), ... return, each in a thread of its own; the first exception is raised."""
    results: list[Any] = [None] * threads
    errors: list[BaseException] = []
    barrier = threading.Barrier(threads)

    def run(i: int) -> None:
        barrier.wait()
        try:
            results[i] = work(i)
        except BaseException as error:
            errors.append(error)

    running = [threading.Thread(target=run, args=(i,)) for i in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if errors:
        raise errors[0]
    return results


def wave(x: Any) -> float:
    return float(np.sin(7.0 * x[0]) + x[1])


def assert_replays(opt: Optimizer, fresh: Callable[[], Optimizer]) -> None:
    """The log alone gives the same next points, to the last bit."""
    again = fresh().replay(opt.trials)
    for _ in range(3):
        x, y = opt.ask(), again.ask()
        assert x.tobytes() == y.tobytes()
        opt.tell(x, 1.0)
        again.tell(y, 1.0)


@pytest.mark.slow
def test_tells_of_8_threads_are_all_recorded_once_and_replay() -> None:
    """Some of points that were asked, by the point, the trial or its number; some of points that never were."""

    def fresh() -> Optimizer:
        return Optimizer([(0.0, 1.0)] * 2, GPUCB(), seed=0, **PRIOR)

    opt = fresh()
    mine = TELLS // THREADS

    def work(i: int) -> list[tuple[int, bytes, float]]:
        rng, told = random.Random(i), []
        for k in range(mine):
            y = float(i * mine + k)  # each value once, so that it can be found again
            if k % 25 == 0:
                x = opt.ask()
                trial = opt.tell(x, y)
            elif k % 25 == 1:
                opt.ask()
                trial = told_by_number(opt, rng, y)
                x = trial.x
            else:
                x = np.array([rng.random(), rng.random()])
                trial = opt.tell(x, y)
            told.append((trial.number, x.tobytes(), y))
            if k % 50 == 0:
                assert opt.best is not None and len(opt.trials) >= len(told) and repr(opt)
        return told

    told = [entry for entries in together(work) for entry in entries]
    assert len(told) == TELLS and len({number for number, _, _ in told}) == TELLS
    recorded = [(t.number, t.x.tobytes(), t.y) for t in opt.trials if t.status == "told"]
    assert sorted(recorded) == sorted(told)
    assert sorted(t.order for t in opt.trials if t.order is not None) == list(range(TELLS))
    assert [t.number for t in opt.trials] == list(range(len(opt.trials)))
    assert_replays(opt, fresh)


def told_by_number(opt: Optimizer, rng: random.Random, y: float) -> Trial:
    """Tell any pending trial, which another thread may take away meanwhile."""
    while True:
        pending = opt.pending or (opt.trials[-1],)
        trial = rng.choice(pending)
        try:
            return opt.tell(trial if rng.random() < 0.5 else trial.number, y)
        except ValueError as error:
            assert "not pending" in str(error)
            if not opt.pending:
                opt.ask()


@pytest.mark.parametrize("arguments", [{"policy": GPMI(), **PRIOR}, {"n_init": 5}], ids=["given", "learned"])
def test_rows_are_asked_once(arguments: dict[str, Any]) -> None:
    rows = GRID[::25]
    opt = Optimizer(rows, repeats=False, seed=0, **arguments)

    def work(i: int) -> list[bytes]:
        asked = []
        while True:
            try:
                x = opt.ask()
            except SpaceExhausted:
                return asked
            asked.append(x.tobytes())
            if len(asked) % 5 == 0:
                opt.fail(x)
            else:
                opt.tell(x, wave(x))

    asked = Counter(x for points in together(work) for x in points)
    assert asked == Counter(row.tobytes() for row in rows)
    assert {t.status for t in opt.trials} == {"told", "failed"} and len(opt.trials) == len(rows)


@pytest.mark.slow
def test_everything_at_the_same_time() -> None:
    """Ask, tell, fail, forget and read in any order: the counts add up, and the log replays."""

    def fresh() -> Optimizer:
        return Optimizer(GRID[::10], seed=0, **PRIOR)

    opt = fresh()
    opt.tell(GRID[0], 0.0)

    def work(i: int) -> Counter[str]:
        rng, done = random.Random(i), Counter[str]()
        for _ in range(12):
            for x in opt.ask(2):
                act = rng.choice(["tell", "fail", "forget"])
                try:
                    done[act] += 1
                    opt.tell(x, wave(x)) if act == "tell" else opt.fail(x) if act == "fail" else opt.forget(x)
                except ValueError as error:  # an equal point was asked by two threads, and both were told already
                    assert "not pending" in str(error)
                    done[act] -= 1
            read = rng.choice(["recommend", "ledger", "table", "text", "model"])
            if read == "recommend":
                opt.recommend()
            elif read == "ledger":
                assert opt.ledger.improvement >= 0.0 and len(opt.ledger.steps) > 0
            elif read == "table":
                opt.to_dataframe()
            elif read == "text":
                assert repr(opt) and opt._repr_html_() and opt.events is not None
            else:
                assert opt.posterior is not None and opt.model is not None and opt.warp is not None
        return done

    done = sum(together(work), Counter[str]())
    status = Counter(t.status for t in opt.trials)
    assert status["told"] == done["tell"] + 1 and status["failed"] == done["fail"]
    assert [step.y for step in opt.ledger.steps] == [t.y for t in opt.ledger.trials]
    assert_replays(opt, fresh)


def test_optimizers_of_different_threads_do_not_know_of_each_other() -> None:
    def run(seed: int) -> list[bytes]:
        opt, asked = Optimizer([(0.0, 1.0)] * 2, seed=seed % 2), []
        for _ in range(9):
            x = opt.ask()
            opt.tell(x, wave(x))
            asked.append(x.tobytes())
        return asked

    alone = [run(0), run(1)]
    assert together(run) == [alone[i % 2] for i in range(THREADS)]
