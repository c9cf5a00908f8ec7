"""A bit of a study's database is flipped: the damage is named, or it changes nothing that is read.

Some flips cannot be noticed by design, and the test says which: those in bytes that SQLite does not use, those in the
table of leases, which no checksum covers because no value depends on them, and those in the write-ahead log of a
process that was killed, where SQLite takes the first frame with a wrong checksum for the end.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fuzzing import play

import gpmi

pytest.importorskip("sqlalchemy")

from gpmi.run.study import Study
from gpmi.storage.errors import StudyError
from gpmi.storage.opening import names_in

NAMES = ("default", "Müller")
SPACES: dict[str, Any] = {
    "default": [(0.0, 1.0), (0.0, 1.0)],
    "Müller": {"lr": gpmi.Real(1e-5, 1e-1, log=True), "layers": gpmi.Int(1, 8), "act": ["relu", "größer", True]},
}


class Files(NamedTuple):
    """A database whose process has ended, and one whose process was killed before its log was merged."""

    closed: bytes
    killed: bytes
    ahead: bytes  # the write-ahead log of the second


class Content(NamedTuple):
    """What can be read of a study."""

    trials: list[str]
    log: list[str]
    budget: int | None
    best: str
    seed: int


def fill(study: Study, values: int) -> None:
    told = [study.tell(study.ask(), 0.1 * i, noise_var=0.01 * (i % 3)) for i in range(values)]
    study.correct(told[0].number, 2.0)
    study.fail(study.ask(), why="die Pumpe stand still")
    study.forget(study.ask())
    study.retract(told[1].number)
    study.set_budget(40)
    study.ask()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    path = tmp_path_factory.mktemp("intact") / "run.db"
    ahead = path.with_name("run.db-wal")
    for name in NAMES:
        with gpmi.study(path, name, space=SPACES[name], seed=1, n_init=20) as study:
            fill(study, 6)
    closed = path.read_bytes()
    with gpmi.study(path, NAMES[0]) as study:
        fill(study, 3)
        return Files(closed, path.read_bytes(), ahead.read_bytes())


def read(path: Path, name: str) -> tuple[Content, tuple[str, ...]]:
    with gpmi.study(path, name, patience=1.0) as study:
        trials, log = [repr(trial) for trial in study.trials], [repr(entry) for entry in study.log()]
        study.leases()
        return Content(trials, log, study.budget, repr(study.best), study.seed), study.warnings


@contextmanager
def quiet() -> Iterator[None]:
    """The warnings are read from the study; they need not be printed hundreds of times."""
    logger = logging.getLogger("gpmi")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def flipped(data: bytes, rng: random.Random) -> bytes:
    """Flip a bit, mostly in a byte that is used."""
    used = [place for place, byte in enumerate(data) if byte]
    place = rng.choice(used) if rng.random() < 0.7 else rng.randrange(len(data))
    changed = bytearray(data)
    changed[place] ^= 1 << rng.randrange(8)
    return bytes(changed)


def names_the_place(error: Exception, path: Path) -> bool:
    text = str(error)
    return "\n" not in text and any(word in text for word in ("entry ", "row ", "gpmi_studies", str(path)))


def still_works(path: Path, name: str) -> None:
    """What is asked and told afterwards is there when the study is opened again."""
    with gpmi.study(path, name) as study:
        trial = study.ask()
        study.tell(trial, 7.25)
    with gpmi.study(path, name) as study:
        assert next(one for one in study.trials if one.number == trial.number).y == 7.25


@pytest.fixture(scope="module")
def intact(files: Files, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Content]:
    path = tmp_path_factory.mktemp("intact") / "run.db"
    path.write_bytes(files.closed)
    return {name: read(path, name)[0] for name in NAMES}


@pytest.mark.fuzz
def test_a_flipped_bit_is_named_or_changes_nothing(files: Files, intact: dict[str, Content], tmp_path: Path) -> None:
    def case(rng: random.Random) -> str:
        path, name = tmp_path / f"{rng.getrandbits(64):x}.db", rng.choice(NAMES)
        path.write_bytes(flipped(files.closed, rng))
        try:
            names = names_in(path)
            content, warnings = read(path, name)
        except StudyError as error:
            assert names_the_place(error, path), error
            return "refused"
        if warnings:
            assert any("entry" in text for text in warnings), warnings
            if rng.random() < 0.2:
                with gpmi.study(path, name) as study:
                    assert not study.verify()
            return "read with a warning"
        assert content == intact[name] and sorted(names) == sorted(NAMES)
        still_works(path, name)
        return "without effect"

    with quiet():
        play("flipped bits", "GPMI_FLIPS", 40, case)


@pytest.mark.fuzz
def test_a_flipped_bit_in_the_log_of_a_killed_process_is_named_or_the_log_ends_there(
    files: Files, intact: dict[str, Content], tmp_path: Path
) -> None:
    whole = tmp_path / "whole.db"
    whole.write_bytes(files.killed)
    whole.with_name("whole.db-wal").write_bytes(files.ahead)
    log = read(whole, NAMES[0])[0].log
    assert len(log) > len(intact[NAMES[0]].log)

    def case(rng: random.Random) -> str:
        path = tmp_path / f"{rng.getrandbits(64):x}.db"
        path.write_bytes(files.killed)
        path.with_name(f"{path.name}-wal").write_bytes(flipped(files.ahead, rng))
        try:
            content, warnings = read(path, NAMES[0])
        except StudyError as error:
            assert names_the_place(error, path), error
            return "refused"
        assert not warnings and content.log == log[: len(content.log)]
        assert len(content.log) >= len(intact[NAMES[0]].log)
        return "without effect" if content.log == log else "read up to the damage"

    with quiet():
        play("flipped bits, killed process", "GPMI_FLIPS", 10, case)
