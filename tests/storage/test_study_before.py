"""Databases of earlier versions: they open, agree and go on. The path of a value into the log is short.

before.sql is a database that version 0.1.0 made before there was one log with two backends, with everything that a log
can hold; before.json is how that version read it.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpmi

pytest.importorskip("sqlalchemy")

from gpmi.storage.outbox import Outbox
from gpmi.trials import Log

HERE = Path(__file__).parent
BEFORE: dict[str, dict[str, Any]] = json.loads((HERE / "before.json").read_text())
FIELDS = (
    *("number", "status", "origin", "y", "y_before", "noise_var", "repeats", "constraints", "why", "mu", "sd"),
    *("surprise", "order", "asked", "ended"),
)
FRAMES = 12  # from the user's call of tell to the log, both included


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with closing(sqlite3.connect(tmp_path / "run.db")) as connection:
        connection.executescript((HERE / "before.sql").read_text())
    return tmp_path / "run.db"


def as_json(x: Any) -> Any:
    return x.tolist() if isinstance(x, np.ndarray) else dict(x)


def row(trial: gpmi.Trial) -> list[Any]:
    values = [getattr(trial, name) for name in FIELDS]
    if trial.status == "rejected":
        values[-1] = None  # the version before had the time of the replay
    return [*(list(value) if isinstance(value, tuple) else value for value in values), as_json(trial.x)]


def is_near(one: Any, other: Any) -> bool:
    """Whether two points are equal up to rounding: the last digits of a suggestion depend on the processor."""
    values, others = (list(x.values()) if isinstance(x, dict) else x for x in (one, other))
    return all(a == b or bool(np.isclose(a, b, rtol=1e-5)) for a, b in zip(values, others, strict=True))


@pytest.mark.parametrize("name", BEFORE)
def test_a_database_of_the_version_before_opens_agrees_and_goes_on(path: Path, name: str) -> None:
    before = BEFORE[name]
    with gpmi.study(path, name) as study:
        assert [row(trial) for trial in study.trials] == before["trials"]
        assert (len(study.log()), study.budget) == (before["entries"], before["budget"])
        assert study.verify()
        trial = study.ask()
        assert trial.number == before["next"][0] and is_near(as_json(trial.x), before["next"][1])
        study.tell(trial, 1.0, constraints=[0.5] if name == "named" else None)
        study.correct(trial, 2.0, noise_var=0.25)
        after = [row(trial) for trial in study.trials]
        assert study.verify()
    with gpmi.study(path, name) as study:
        assert [row(trial) for trial in study.trials] == after


def test_what_the_version_before_delivered_counts_once(path: Path) -> None:
    with gpmi.study(path, "box") as study:
        count = len(study.log())
        study.optimizer.tell_all([([0.1, 0.1], 0.5), ([0.2, 0.2], 0.6, 0.01)])
        assert study.tell(4, 0.125).number == 8  # forgotten, and told all the same
        assert study.tell(0, 1.0, noise_var=0.5, repeats=3).y == 1.5  # corrected since
        assert len(study.log()) == count
        outbox = Outbox(study.identity, path)
        outbox.keep({"kind": "told", "y": 3.0, "number": 17, "at": as_json(study.trials[-1].x), "token": "t"})
        assert study.trials[-1].y == 3.0 and study.verify()


def test_a_value_reaches_the_log_in_few_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settle, found = Log.settle, []

    def counted(self: Log, *args: Any, **more: Any) -> gpmi.Trial:
        frame, names = sys._getframe(1), ["settle"]
        while names[-1] != "test_a_value_reaches_the_log_in_few_frames":
            names.append(frame.f_code.co_name)
            assert frame.f_back is not None
            frame = frame.f_back
        found.append(names[-2::-1])
        return settle(self, *args, **more)

    with gpmi.study(tmp_path / "run.db", space=[(0.0, 1.0)], seed=0) as study:
        trial = study.ask()
        monkeypatch.setattr(Log, "settle", counted)
        study.tell(trial, 1.0)
    (path,) = found
    assert path[0] == "tell" and path[-1] == "settle" and len(path) <= FRAMES, path
