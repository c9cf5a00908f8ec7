"""Random hostile functions under workers, timeouts and executors: every run ends in time, and no value is lost.

A function first does harm to its process, then returns, raises, dies or hangs. It notes each value in a file of its own
before it returns it, so that the values of the run can be compared with the file. Each run has a process of its own.
"""

from __future__ import annotations

import json
import math
import os
import random
import resource
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pytest
from fuzzing import play

import gpmi
from gpmi._support.processes import adopt_orphans, descendants
from gpmi.run.evaluation import Failure, RaisedInProcess, TimedOut

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs fork, and processes as files"),
    pytest.mark.filterwarnings("ignore"),
]

FOR_EVER = 600.0
MANY = "GPMI_FUNCTIONS" in os.environ
LATE = 2.0 if MANY else 120.0  # seconds after the timeout; a machine that runs other tests may be slow
NOTES = 900  # the lowest descriptor of the notes, out of the reach of the attacks
DESCRIPTORS = range(3, 256)


# What a function does to its process


def close_files() -> None:
    os.closerange(3, 256)


def close_output() -> None:
    os.closerange(0, 3)


def write_two_bytes() -> None:
    """Into everything that it has inherited, such as pipes and the database of a study."""
    for number in DESCRIPTORS:
        with suppress(OSError):
            os.write(number, b"\0\xff")


def write_a_lot() -> None:
    for number in DESCRIPTORS:
        with suppress(OSError):
            os.set_blocking(number, False)
            os.write(number, b"x" * 100_000)


def write_for_ever() -> None:
    def write() -> None:
        while True:
            write_a_lot()
            time.sleep(0.01)

    threading.Thread(target=write, daemon=True).start()


def empty_files() -> None:
    for number in DESCRIPTORS:
        with suppress(OSError):
            os.ftruncate(number, 0)


def fork_and_return() -> None:
    """Both processes go on; the child is quicker."""
    if child := os.fork():
        os.waitpid(child, 0)


def fork_and_both_go_on() -> None:
    os.fork()


def leave_a_daemon() -> None:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(FOR_EVER)
        os._exit(0)


def leave_children() -> None:
    for _ in range(3):
        if os.fork() == 0:
            time.sleep(FOR_EVER)
            os._exit(0)


def leave_a_program() -> None:
    """By a call that reads no pipe: another attack may be writing into it."""
    os.posix_spawnp("sleep", ["sleep", "600"], os.environ, setsid=True)


def leave_a_thread() -> None:
    threading.Thread(target=time.sleep, args=(FOR_EVER,)).start()


def ignore_signals() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, signal.SIG_IGN)


def handle_signals() -> None:
    def handler(number: int, frame: Any) -> None:
        raise RuntimeError("a signal")

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
        signal.signal(number, handler)


def block_signals() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())


def change_surroundings() -> None:
    os.chdir("/")
    os.umask(0o777)
    os.environ.clear()
    sys.stdout = sys.stderr = None  # type: ignore[assignment]


def take_memory() -> None:
    globals()["_taken"] = bytearray(30_000_000)


def allow_no_files() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))


def reap_everything() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass


def stop_itself() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


ATTACKS: list[Callable[[], None]] = [
    close_files, close_output, write_two_bytes, write_a_lot, write_for_ever, empty_files, fork_and_return,
    fork_and_both_go_on, leave_a_daemon, leave_children, leave_a_program, leave_a_thread, ignore_signals,
    handle_signals, block_signals, change_surroundings, take_memory, allow_no_files, reap_everything,
]  # fmt: skip


# How it ends


class Odd:
    """Cannot be shown, compared or converted."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    __float__ = __str__ = __eq__ = __repr__  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]


class Silent(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no message")


class Own(BaseException):
    pass


def recurse(n: int = 0) -> int:
    return recurse(n + 1) + 1


def raises(error: BaseException) -> Callable[[], NoReturn]:
    def end() -> NoReturn:
        raise error

    return end


def returns(value: Any) -> Callable[[], Any]:
    return lambda: value


ERRORS: tuple[BaseException, ...] = (
    SystemExit(0), SystemExit("words"), KeyboardInterrupt(), GeneratorExit(), Own("own"), Silent(), StopIteration(),
    ValueError("\ud800 \x00 \x1b[2J"), OSError("x" * 300_000), MemoryError(), AssertionError(), TimeoutError("mine"),
    BrokenPipeError(), EOFError(), Exception(Odd()), ExceptionGroup("many", [ValueError("x")]),
)  # fmt: skip
NO_VALUES: tuple[Any, ...] = (
    math.nan,
    math.inf,
    -math.inf,
    np.float64("nan"),
    Failure("no luck"),
    Failure("\ud800"),
    1e300,
)
NO_NUMBERS: tuple[Any, ...] = (
    None, "1.0", "x" * 3_000_000, b"1", [1.0], (1.0, 2.0), {}, 1j, True, np.ones(3), np.bool_(True), Odd(), object(),
    10**400, lambda: 1.0, gpmi.Measured("x"), gpmi.Measured(1.0, -1.0), gpmi.Measured(1.0, 0.0, ("x",)),  # type: ignore[arg-type]
)  # fmt: skip
FAILURES: list[Callable[[], Any]] = [
    *(raises(error) for error in ERRORS),
    *(returns(value) for value in NO_VALUES),
    recurse,
]
MISTAKES: list[Callable[[], Any]] = [returns(value) for value in NO_NUMBERS]  # they end a run
DEATHS: list[Callable[[], Any]] = [
    partial(os._exit, 0),
    partial(os._exit, 3),
    os.abort,
    *(
        lambda number=number: os.kill(os.getpid(), number)
        for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGALRM)
    ),
    lambda: os.killpg(0, signal.SIGTERM),
]


def busy() -> None:
    while True:
        pass


HANGS: list[Callable[[], Any]] = [partial(time.sleep, FOR_EVER), busy, stop_itself]


class Hostile:
    """A function whose deeds follow from its seed and from the point."""

    def __init__(self, seed: int, folder: Path, hangs: bool, mistakes: bool) -> None:
        self.seed, self.notes = seed, folder / "notes"
        self.ends = [FAILURES, DEATHS, *([HANGS] * hangs), *([MISTAKES] * mistakes)]

    def __call__(self, x: Any) -> Any:
        rng = random.Random(f"{self.seed} {float(x[0]).hex()}")
        attacks = rng.sample(ATTACKS, rng.choice([0, 1, 1, 1, 2, 3]))
        end = None if rng.random() < 0.6 else rng.choice(rng.choice(self.ends))
        notes, own = self.opened(), os.getpid()
        note(notes, "start", x)
        for attack in attacks:
            attack()
        if os.getpid() != own:
            return -1.0  # of a forked child: never a value of the run
        if end is not None:
            return end()
        y = rng.random()
        note(notes, "value", x, y)
        return y

    def opened(self) -> int:
        import fcntl

        notes = os.open(self.notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        moved = fcntl.fcntl(notes, fcntl.F_DUPFD, NOTES)
        os.close(notes)
        return moved


def note(notes: int, kind: str, x: Any, y: float = 0.0) -> None:
    os.write(notes, json.dumps([kind, float(x[0]).hex(), y.hex(), time.monotonic()]).encode() + b"\n")


# One run


class Plan(NamedTuple):
    """A run with a hostile function."""

    seed: int
    timeout: float
    options: dict[str, Any]
    hangs: bool
    mistakes: bool
    in_a_study: bool


def plan_of(rng: random.Random) -> Plan:
    hangs, parallel = rng.random() < 0.5, rng.choice([None, 1, 2, 2, 3, "executor"])
    timeout = rng.choice([0.3, 0.6, 1.0]) if hangs else FOR_EVER
    options: dict[str, Any] = {"budget": rng.randint(1, 6), "seed": rng.randrange(1000), "timeout": timeout}
    if parallel == "executor":
        options |= {"executor": partial(ThreadPoolExecutor, 2), "in_flight": 2}
    elif parallel is not None:
        options["workers"] = parallel
    if rng.random() < 0.4:
        options["retries"] = rng.randint(0, 1)
    if rng.random() < 0.8:
        options["on_failure"] = "learn"
    return Plan(rng.getrandbits(32), timeout, options, hangs, rng.random() < 0.3, rng.random() < 0.4)


def check_run(plan: Plan, folder: Path) -> str:
    """Run, compare the values with the notes, and return what became of the run."""
    f, outcomes = Hostile(plan.seed, folder, plan.hangs, plan.mistakes), list[tuple[str, float]]()
    study = folder / "run.db" if plan.in_a_study else None

    def on_trial(trial: gpmi.Trial, optimizer: gpmi.Optimizer) -> None:
        outcomes.append((float(trial.x[0]).hex(), time.monotonic()))

    error: BaseException | None = None
    try:
        result = gpmi.maximize(f, [(0.0, 1.0)], on_trial=on_trial, n_init=10, study=study, **plan.options)
    except (TimedOut, RaisedInProcess, ValueError, TypeError) as caught:  # anything else would be raw
        error, result = caught, caught.result  # type: ignore[union-attr]
        assert str(error) and "Traceback" not in str(error), error
    end, trials = time.monotonic(), result.trials
    lines = [json.loads(line) for line in f.notes.read_text().splitlines()]
    starts = {x: when for kind, x, _, when in lines if kind == "start"}  # the last attempt
    noted = {x: y for kind, x, y, _ in lines if kind == "value"}
    told = {float(t.x[0]).hex(): t.y.hex() for t in trials if t.y is not None}
    why = {float(t.x[0]).hex(): t.why or "" for t in trials if t.status == "failed"}
    assert all(noted.get(x) == y for x, y in told.items()), ("a value that f did not return", told, noted)
    lost = [x for x in noted if x not in told and not (plan.hangs and why.get(x, "").startswith("timeout"))]
    together = plan.options.get("workers", plan.options.get("in_flight", 1))
    assert len(lost) <= (0 if error is None else together - 1), ("lost", lost, why, error)
    assert error is not None or len(told) + len(why) == plan.options["budget"], trials
    late = [when - starts[x] - plan.timeout for x, when in [*outcomes, (max(starts, key=starts.__getitem__), end)]]
    assert max(late) < LATE, f"{max(late):.1f} s after the timeout"
    if study is not None:
        check_study(study, told, bool(lost))
    return "ended by an exception" if error is not None else "ran to the end"


def check_study(path: Path, told: dict[str, str], cut_off: bool) -> None:
    with gpmi.study(path) as study:
        stored = {float(t.x[0]).hex(): t.y.hex() for t in study.trials if t.y is not None}
        assert stored == told and not study.warnings, (stored, told, study.warnings)
        assert study.verify(), study.verify()


def in_own_process(check: Callable[[], str], limit: float) -> str:
    """Return check(), called in a forked process that has no files of this one; raise what it raised, as text."""
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if child == 0:
            answer = ["failed", ""]
            try:
                os.setsid()
                adopt_orphans()
                resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
                os.dup2(output.fileno(), NOTES)
                for number in range(3):
                    os.dup2(os.open(os.devnull, os.O_RDWR), number)
                os.closerange(3, NOTES)
                answer = ["passed", check()]
            except BaseException:
                answer[1] = traceback.format_exc()
            finally:
                for number in descendants(os.getpid()):  # daemons of the functions
                    with suppress(OSError):
                        os.kill(number, signal.SIGKILL)
                os.pwrite(NOTES, json.dumps(answer).encode(), 0)
                os._exit(0)
        end = time.monotonic() + limit
        while os.waitpid(child, os.WNOHANG) == (0, 0):
            if time.monotonic() > end:
                for number in [child, *descendants(child)]:
                    with suppress(OSError):
                        os.kill(number, signal.SIGKILL)
                os.waitpid(child, 0)
                raise AssertionError(f"the run had not ended after {limit:.0f} s")
            time.sleep(0.005)
        output.seek(0)
        kind, text = json.loads(output.read())
    assert kind == "passed", text
    return str(text)


@pytest.mark.fuzz
@pytest.mark.slow
def test_no_hostile_function_loses_a_value_or_defeats_its_timeout(tmp_path: Path) -> None:
    def case(rng: random.Random) -> str:
        plan = plan_of(rng)
        folder = tmp_path / f"{plan.seed}"
        folder.mkdir()
        try:
            return in_own_process(partial(check_run, plan, folder), 60.0 if MANY else 600.0)
        except AssertionError as error:
            raise AssertionError(f"{plan}\n{error}") from None

    play("hostile functions", "GPMI_FUNCTIONS", 12, case)
