"""A database that is not where it was, or not what it was: copies, moved folders, servers that go away."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from waiting import Clock

import gpmi

pytest.importorskip("sqlalchemy")

from gpmi.run.study import Study
from gpmi.storage import database
from gpmi.storage.errors import Busy, StudyError, Unavailable
from gpmi.storage.outbox import Outbox
from gpmi.storage.study_log import StudyLog

BOX = [(0.0, 1.0), (0.0, 1.0)]


def run(study: Study, n: int) -> None:
    for _ in range(n):
        trial = study.ask()
        study.tell(trial, -float(((trial.x - 0.3) ** 2).sum()))


def copied(source: Path, target: Path) -> None:
    """A whole copy by SQLite's own means, also over a file that others have open."""
    with closing(sqlite3.connect(source)) as a, closing(sqlite3.connect(target)) as b:
        a.backup(b)


def moved(source: Path, target: Path) -> None:
    """As somebody does who puts an older file in the place of another."""
    for name in ("-wal", "-shm"):
        target.with_name(target.name + name).unlink(missing_ok=True)
    os.replace(source, target)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.db"


# Copies


@pytest.mark.parametrize("put_back", [copied, moved])
def test_an_older_copy_in_the_place_of_an_open_study_is_noticed(path: Path, tmp_path: Path, put_back: Any) -> None:
    older = tmp_path / "older.db"
    with gpmi.study(path, space=BOX, seed=0) as study:
        run(study, 3)
        copied(path, older)
        run(study, 2)
        put_back(older, path)
        run(study, 3)
        assert len(study.warnings) == 1 and "4 entries of the log are gone, 2 of th" in study.warnings[0]
        (aside,) = path.with_name("run.db.spool").glob("*.gone")
        assert str(aside) in study.warnings[0]
        gone = [json.loads(line) for line in aside.read_text().splitlines()]
        assert [(one["seq"], one["kind"]) for one in gone] == [(7, "asked"), (8, "told"), (9, "asked"), (10, "told")]
        assert [t.number for t in study.trials] == list(range(6))
        assert [entry.seq for entry in study.log()] == list(range(13)) and study.verify().agrees


def test_reading_alone_notices_it_too(path: Path, tmp_path: Path) -> None:
    with gpmi.study(path, space=BOX, seed=0) as study:
        run(study, 1)
        copied(path, tmp_path / "older.db")
        run(study, 2)
        copied(tmp_path / "older.db", path)
        assert len(study.trials) == 1 and "which is used from now on" in study.warnings[0]


@pytest.mark.parametrize("known", [False, True], ids=["by the tell", "before it"])
def test_a_value_that_comes_for_a_trial_of_the_log_that_is_gone_is_kept(
    path: Path, tmp_path: Path, known: bool
) -> None:
    with gpmi.study(path, space=BOX, seed=0) as study, gpmi.study(path) as other:
        run(study, 2)
        early = study.ask()
        copied(path, tmp_path / "older.db")
        good, bad = study.ask(2)
        copied(tmp_path / "older.db", path)
        other.tell([0.9, 0.9], 5.0)  # number 3 is another trial now
        if known:
            assert len(study.trials) == 4
        told = study.tell(good, 7.0)
        assert (told.y, told.status, told.number) == (7.0, "told", 4) and np.array_equal(told.x, good.x)
        failed = study.fail(bad, "diverged")
        assert (failed.status, failed.why, failed.number) == ("failed", "diverged", 5)
        assert np.array_equal(failed.x, bad.x) and study.trials[3].y == 5.0
        assert study.tell(early, 6.0).number == early.number  # it is in the copy, too
        run(study, 2)
        assert study.verify().agrees


def test_another_study_in_its_place_is_refused_and_what_is_told_is_kept(path: Path, tmp_path: Path) -> None:
    with gpmi.study(tmp_path / "b.db", space=[(0.0, 5.0)], seed=1) as other:
        other.tell([4.0], 1.0)
    with gpmi.study(path, space=BOX, seed=0, patience=0.05) as study:
        trial = study.ask()
        copied(path, tmp_path / "right.db")
        copied(tmp_path / "b.db", path)
        study.tell(trial, 2.0)
        assert "is not the one that was opened; put the right one back" in study.warnings[0]
        with pytest.raises(StudyError, match="is not the one that was opened"):
            study.ask()
        copied(tmp_path / "right.db", path)
        assert study.best is not None and study.best.y == 2.0 and study.verify().agrees


# The outbox


@contextmanager
def locked(path: Path) -> Any:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    yield
    other.execute("ROLLBACK")
    other.close()


def test_what_waits_is_delivered_after_the_folder_was_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY", 0.01)
    (tmp_path / "here").mkdir()
    path = tmp_path / "here" / "run.db"
    with gpmi.study(path, space=BOX, seed=0, patience=0.02) as study:
        trial = study.ask()
        with locked(path):
            study.tell(trial, 1.5)
    shutil.move(tmp_path / "here", tmp_path / "there")
    with gpmi.study(tmp_path / "there" / "run.db") as study:
        assert [t.y for t in study.trials] == [1.5] and study.verify().agrees
    assert not list((tmp_path / "there").glob("*.spool"))


def test_a_folder_for_temporary_files_that_others_can_write_to_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    outbox = Outbox("study", tmp_path / "no" / "run.db")  # there is no folder beside the study
    shared = tmp_path / f"gpmi-{os.getuid()}.spool"
    kept = outbox.keep({"token": "a", "y": 1.0})
    assert kept.parent == shared and shared.stat().st_mode & 0o777 == 0o700 and len(list(outbox)) == 1
    shared.chmod(0o777)
    assert list(outbox) == []
    with pytest.raises(StudyError, match=r'others may write to it\): save this value .*"y":2.0'):
        outbox.keep({"token": "b", "y": 2.0})
    shared.chmod(0o700)
    if os.getuid() == 0:
        os.chown(shared, 65534, 65534)
        assert list(outbox) == []
        os.chown(shared, 0, 0)
    shared.rename(tmp_path / "elsewhere")
    shared.symlink_to(tmp_path / "elsewhere")
    assert list(outbox) == []


def test_a_disk_that_is_full_leaves_no_half_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    outbox = Outbox("study", tmp_path / "run.db")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StudyError, match=r'No space left on device.*save this value .*"y":1.0'):
        outbox.keep({"token": "a", "y": 1.0})
    assert [path.name for path in tmp_path.rglob("*")] == ["temporary"]


# Reading


def set_clock(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    """Let all that waits for the database use this clock."""
    monkeypatch.setattr(database, "time", clock)
    monkeypatch.setattr(StudyLog, "_sleep", lambda self, seconds: clock.sleep(seconds))


def test_reading_is_tried_again_while_the_database_does_not_answer(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    set_clock(monkeypatch, Clock())
    with gpmi.study(path, space=BOX, seed=0) as study:
        run(study, 2)
        reading, failures = study._log._database.reading, [3]

        @contextmanager
        def unlucky() -> Any:
            failures[0] -= 1
            if failures[0] >= 0:
                raise Unavailable("the server went away")
            with reading() as transaction:
                yield transaction

        monkeypatch.setattr(study._log._database, "reading", unlucky)
        for read in (lambda: study.best, study.log, study.verify, study.recommend):
            failures[0] = 3
            assert read() is not None and failures[0] < 0
        assert caplog.messages == []
        monkeypatch.setattr(database, "SILENT", 0.0)
        failures[0] = 3
        assert len(study.trials) == 2
        assert caplog.messages == ["the server went away; retrying for 60 s"]  # once
        study._log._patience, failures[0] = 0.01, 100
        with pytest.raises(StudyError, match="went away"):
            _ = study.trials


# Many at once


def test_who_waits_for_a_lock_waits_as_long_as_others_are_served(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    set_clock(monkeypatch, clock)
    monkeypatch.setattr(database, "BUSY", 0.02)
    with gpmi.study(path, space=BOX, seed=0, patience=2.5) as study, gpmi.study(path) as other:
        monkeypatch.setattr(database, "fair_lock", lambda path, seconds: nullcontext())
        writing, turns = study._log._database.writing, []

        @contextmanager
        def unlucky() -> Any:  # others come first, one entry in two seconds, for longer than anybody is patient
            turns.append(clock.now)
            if len(turns) <= 8:
                other.tell([0.5, 0.5], 1.0)
                clock.now += 2.0
                raise Busy("another process holds the lock")
            with writing() as transaction:
                yield transaction

        monkeypatch.setattr(study._log._database, "writing", unlucky)
        study.ask()
        assert turns[-1] - turns[0] > 16.0 and len(study.trials) == 9
        with locked(path), pytest.raises(StudyError, match="another process holds the lock"):
            study.ask()  # nobody is served
