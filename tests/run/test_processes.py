"""Evaluations in processes of their own: nothing is left behind after a timeout, and noise does not repeat itself."""

from __future__ import annotations

import fcntl
import os
import random
import signal
import stat
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from waiting import FOR_EVER, is_running, leap, lines, press_when, wait_until

import gpmi
from gpmi._support.fork_rng import split_generators
from gpmi._support.processes import descendants
from gpmi.run import evaluation
from gpmi.run.evaluation import Failure, RaisedInProcess, TimedOut, in_process

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def in_a_session(note: Path) -> None:
    note.write_text(f"{subprocess.Popen(['sleep', str(FOR_EVER)], start_new_session=True).pid}\n")


def as_a_daemon(note: Path) -> None:
    """The usual way to lose one's parents."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            note.write_text(f"{os.getpid()}\n")
            time.sleep(FOR_EVER)
        os._exit(0)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are not shown as files")
@pytest.mark.parametrize("leave", [in_a_session, as_a_daemon])
def test_a_time_out_ends_what_has_left_the_group_of_the_evaluation(
    leave: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = tmp_path / "process"

    def f(x: Any) -> float:
        leave(note)
        time.sleep(FOR_EVER)
        return 0.0

    leap(monkeypatch, evaluation, lambda: len(lines(note)))
    with pytest.raises(TimedOut):
        in_process(f, FOR_EVER, [0.5])
    process = int(note.read_text())
    wait_until(lambda: not is_running(process))
    assert process not in descendants(os.getpid())


RNG, OLD, PLAIN = np.random.default_rng(0), np.random.RandomState(0), random.Random(0)


class Noisy:
    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def draw(self, x: Any) -> float:
        return float(self.rng.normal())

    __call__ = draw


def with_argument(rng: np.random.Generator, x: Any) -> float:
    return float(rng.normal())


def noisy(seed: int) -> dict[str, Any]:
    """Functions that draw from a generator made outside of them, in all the ways that are known."""
    own = np.random.default_rng(seed)
    np.random.seed(seed)  # noqa: NPY002
    random.seed(seed)
    RNG.bit_generator.state = np.random.default_rng(seed).bit_generator.state
    OLD.seed(seed)
    PLAIN.seed(seed)
    return {
        "closure": lambda x: float(own.normal()),
        "global": lambda x: float(RNG.normal()),
        "partial": partial(with_argument, np.random.default_rng(seed)),
        "method": Noisy(np.random.default_rng(seed)).draw,
        "object": Noisy(np.random.default_rng(seed)),
        "default": lambda x, rng=own: float(rng.normal()),
        "RandomState": lambda x: float(OLD.normal()),
        "Random": lambda x: PLAIN.random(),
        "numpy.random": lambda x: float(np.random.normal()),  # noqa: NPY002
        "random": lambda x: random.random(),
    }


@pytest.mark.parametrize("kind", noisy(0))
def test_noise_does_not_repeat_itself_and_follows_from_the_seed(kind: str) -> None:
    def drawn() -> list[float]:
        f = noisy(3)[kind]
        return [in_process(f, FOR_EVER, 0.5) for _ in range(4)]

    first = drawn()
    assert len(set(first)) == 4 and first == drawn()


def test_streams_are_not_shifted_copies_of_each_other() -> None:
    rng = np.random.default_rng(0)
    streams = []
    for _ in range(2):
        part, state = split_generators(lambda x: rng), rng.bit_generator.state
        part()  # what the forked process does with its copy
        streams.append(rng.normal(size=2000))
        rng.bit_generator.state = state
    assert not set(streams[0]) & set(streams[1]) and abs(np.corrcoef(streams)[0, 1]) < 0.1


def test_workers_draw_different_noise() -> None:
    rng = np.random.default_rng(0)
    r = gpmi.maximize(lambda x: float(rng.normal()), [(0.0, 1.0)], budget=6, seed=0, workers=2)
    assert len({trial.y for trial in r.trials}) == 6


# Functions that break the pipe of their process

OUTER: set[int] = set()  # pipes that this process had before the run, such as its output


def pipes() -> dict[int, int]:
    """The pipes that this process can write into, with their numbers."""
    found = {}
    for number in range(3, 256):
        with suppress(OSError):
            status = os.fstat(number)
            if stat.S_ISFIFO(status.st_mode) and fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE:
                found[number] = status.st_ino
    return found


def open_pipes() -> list[int]:
    """The numbers of the pipes that came with the run."""
    return [number for number, file in pipes().items() if file not in OUTER]


@pytest.fixture
def outer() -> None:
    OUTER.clear()
    OUTER.update(pipes().values())


def close_everything() -> None:
    os.closerange(3, 256)


def write_two_bytes() -> None:
    for number in open_pipes():
        with suppress(BrokenPipeError):  # one of another evaluation, which has ended
            os.write(number, b"\0\0")


def write_a_lot() -> None:
    """As much as the pipe takes, again and again, by a thread that never ends."""

    def write() -> None:
        while True:
            for number in open_pipes():
                with suppress(OSError):
                    os.set_blocking(number, False)
                    os.write(number, b"x" * 5000)

    threading.Thread(target=write, daemon=True).start()


def ignore_signals() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def stop_itself() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def leave_a_writer() -> None:
    """A child in a session of its own that holds the pipe open."""
    if os.fork() == 0:
        os.setsid()
        time.sleep(FOR_EVER)
        os._exit(0)


HOSTILE = [close_everything, write_two_bytes, write_a_lot, ignore_signals, stop_itself, leave_a_writer]


@pytest.mark.parametrize("workers", [None, 2])
@pytest.mark.parametrize("attack", HOSTILE)
def test_no_function_defeats_its_timeout(attack: Any, workers: int | None, outer: None) -> None:
    def f(x: Any) -> float:
        attack()
        time.sleep(FOR_EVER)
        return 0.0

    begin = time.monotonic()
    r = gpmi.maximize(f, [(0.0, 1.0)], budget=2, seed=0, timeout=0.5, on_failure="learn", workers=workers)
    assert [trial.why for trial in r.trials] == ["timeout: f took longer than 0.5 s"] * 2
    assert time.monotonic() - begin < FOR_EVER


@pytest.mark.parametrize("workers", [None, 2])
@pytest.mark.parametrize("attack", [close_everything, write_two_bytes, write_a_lot, ignore_signals, leave_a_writer])
def test_a_value_survives_what_its_function_does_to_the_pipe(attack: Any, workers: int | None, outer: None) -> None:
    def f(x: Any) -> float:
        attack()
        return float(x[0])

    r = gpmi.maximize(f, [(0.0, 1.0)], budget=3, seed=0, timeout=FOR_EVER, workers=workers)
    assert [trial.y for trial in r.trials] == [float(trial.x[0]) for trial in r.trials]


def test_a_file_under_the_number_of_the_pipe_is_not_written_into(tmp_path: Path) -> None:
    def f(x: Any) -> float:
        os.closerange(3, 256)
        for _ in range(20):
            os.open(tmp_path / "own", os.O_WRONLY | os.O_CREAT)
        return 1.5

    assert in_process(f, FOR_EVER, 0.5) == 1.5
    assert (tmp_path / "own").read_bytes() == b""


@pytest.mark.parametrize("workers", [None, 2])
def test_the_files_of_a_study_are_read_only_in_the_processes_of_its_functions(
    workers: int | None, tmp_path: Path
) -> None:
    """Two bytes at the beginning of a database are enough to destroy it."""
    pytest.importorskip("sqlalchemy")
    outside = {int(name) for name in os.listdir("/dev/fd")}

    def f(x: Any) -> float:
        for number in set(range(3, 256)) - outside:
            with suppress(OSError):
                os.ftruncate(number, 0)
                os.write(number, b"\0\xff")
        return float(x[0])

    path = tmp_path / "run.db"
    r = gpmi.maximize(f, [(0.0, 1.0)], budget=4, seed=0, study=path, timeout=FOR_EVER, workers=workers)
    with gpmi.study(path) as study:
        assert [trial.y for trial in study.trials] == [float(trial.x[0]) for trial in r.trials]
        assert study.verify() and not study.warnings


@pytest.mark.parametrize("size", [10, 3_000_000])
def test_a_long_message_arrives_whole(size: int) -> None:
    assert in_process(lambda x: Failure("x" * size), FOR_EVER, 0.5).why == "x" * size


def test_ctrl_c_ends_evaluations_that_have_closed_their_pipes(tmp_path: Path) -> None:
    def f(x: Any) -> float:
        os.closerange(3, 256)
        (tmp_path / str(os.getpid())).touch()
        time.sleep(FOR_EVER)
        return 0.0

    press_when(lambda: len(list(tmp_path.iterdir())) == 2)
    r = gpmi.maximize(f, [(0.0, 1.0)], budget=4, seed=0, workers=2)
    assert r.reason == "interrupted" and not r.trials
    assert not any(is_running(int(path.name)) for path in tmp_path.iterdir())


def test_the_others_do_not_wait_for_one_that_has_closed_its_pipe(tmp_path: Path) -> None:
    """The first evaluation hangs until all others have values."""

    def f(x: Any) -> float:
        try:
            (tmp_path / "first").touch(exist_ok=False)
        except FileExistsError:
            (tmp_path / f"{time.monotonic_ns()}").touch()
            return 1.0
        os.closerange(3, 256)
        while len(list(tmp_path.iterdir())) < 6:
            time.sleep(0.01)
        return 2.0

    r = gpmi.maximize(f, [(0.0, 1.0)], budget=6, seed=0, workers=2, timeout=FOR_EVER)
    assert sorted(trial.y or 0.0 for trial in r.trials) == [1.0] * 5 + [2.0]


# Retries


class Hangs:
    """1.0; the first `times` evaluations do not end, or end their process."""

    def __init__(self, folder: Path, times: int, crash: bool = False) -> None:
        self.folder, self.times, self.crash = folder, times, crash

    def __call__(self, x: Any) -> float:
        for number in range(self.times):
            try:
                (self.folder / str(number)).touch(exist_ok=False)
            except FileExistsError:
                continue
            if self.crash:
                os._exit(3)
            time.sleep(FOR_EVER)
        return 1.0


def parallel(kind: str) -> dict[str, Any]:
    kinds: dict[str, dict[str, Any]] = {
        "alone": {},
        "workers": {"workers": 2},
        "executor": {"executor": partial(ThreadPoolExecutor, 2), "in_flight": 2},
    }
    return kinds[kind]


@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize("kind", ["alone", "workers", "executor"])
def test_a_timeout_is_retried_like_a_crash_and_teaches_nothing_if_it_then_succeeds(
    kind: str, crash: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not crash:  # the one that runs beside it may be out of time as well, but not more than twice
        leap(monkeypatch, evaluation, lambda: len(list(tmp_path.iterdir())))
    f, more = Hangs(tmp_path, 2, crash), parallel(kind)
    r = gpmi.maximize(f, [(0.0, 1.0)], budget=3, seed=0, timeout=FOR_EVER, retries=2, on_failure="learn", **more)
    assert [(trial.status, trial.y) for trial in r.trials] == [("told", 1.0)] * 3
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("kind", ["alone", "workers", "executor"])
def test_a_timeout_that_is_repeated_is_one_failure_that_says_so(kind: str, tmp_path: Path) -> None:
    f, more = Hangs(tmp_path, 10**6), parallel(kind)
    r = gpmi.maximize(f, [(0.0, 1.0)], budget=2, seed=0, timeout=0.3, retries=1, on_failure="learn", **more)
    assert [trial.why for trial in r.trials] == ["timeout: f took longer than 0.3 s (attempt 2)"] * 2
    with pytest.raises(TimedOut):
        gpmi.maximize(f, [(0.0, 1.0)], budget=2, seed=0, timeout=0.3, retries=1, **more)


# Children that f leaves behind


@pytest.mark.parametrize("workers", [None, 2])
def test_only_the_started_process_answers(workers: int | None, tmp_path: Path) -> None:
    """The forked child returns first, because its parent waits for it."""

    def f(x: Any) -> float:
        child = os.fork()
        if child == 0:
            return -1.0
        os.waitpid(child, 0)
        return float(x[0])

    r = gpmi.maximize(f, [(0.0, 1.0)], budget=4, seed=0, timeout=FOR_EVER, workers=workers)
    assert [trial.y for trial in r.trials] == [float(trial.x[0]) for trial in r.trials]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are not shown as files")
@pytest.mark.parametrize("leave", [in_a_session, as_a_daemon])
@pytest.mark.parametrize("fails", [False, True])
def test_an_evaluation_that_has_ended_leaves_no_processes(leave: Any, fails: bool, tmp_path: Path) -> None:
    note = tmp_path / "process"

    def f(x: Any) -> float:
        leave(note)
        wait_until(lambda: lines(note))
        if fails:
            raise ValueError("no value")
        return 1.0

    with suppress(RaisedInProcess):
        assert in_process(f, FOR_EVER, 0.5) == 1.0
    wait_until(lambda: not is_running(int(note.read_text())))
