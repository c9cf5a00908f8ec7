"""Evaluations in processes of their own: nothing is left behind after a timeout, and noise does not repeat itself."""

from __future__ import annotations

import os
import random
import subprocess
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpmi
from gpmi._support.fork_rng import split_generators
from gpmi._support.processes import descendants
from gpmi.run.evaluation import TimedOut, in_process

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def in_a_session(note: Path) -> None:
    note.write_text(str(subprocess.Popen(["sleep", "60"], start_new_session=True).pid))


def as_a_daemon(note: Path) -> None:
    """The usual way to lose one's parents."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            note.write_text(str(os.getpid()))
            time.sleep(60.0)
        os._exit(0)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are not shown as files")
@pytest.mark.parametrize("leave", [in_a_session, as_a_daemon])
def test_a_time_out_ends_what_has_left_the_group_of_the_evaluation(leave: Any, tmp_path: Path) -> None:
    note = tmp_path / "process"

    def f(x: Any) -> float:
        leave(note)
        time.sleep(60.0)
        return 0.0

    with pytest.raises(TimedOut):
        in_process(f, 0.6, [0.5])
    process = int(note.read_text())
    end = time.monotonic() + 10.0
    while is_running(process) and time.monotonic() < end:
        time.sleep(0.01)
    assert not is_running(process) and process not in descendants(os.getpid())


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
        return [in_process(f, 30.0, 0.5) for _ in range(4)]

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
