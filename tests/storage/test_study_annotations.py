"""Trials that were done otherwise than suggested, remarks of people, and reasons of rejections, in a study."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest

import gpmi
from gpmi.storage.annotations import DEEDS, MAX_FILES, MAX_TEXT, Annotation

SPACE = {"a": (0.0, 1.0), "b": (0.0, 1.0), "c": (0.0, 1.0), "t": gpmi.Real(20.0, 90.0), "solvent": ["THF", "DMF"]}


def made(path: Path, **more: object) -> gpmi.Study:
    return gpmi.study(path / "s.db", space=SPACE, constraints=["a + b + c == 1"], seed=0, **more)


def value(x: dict[str, float]) -> float:
    return -(((x["t"] - 60.0) / 20.0) ** 2) + x["a"]


def test_a_moved_trial_keeps_its_number_and_the_run_verifies(tmp_path: Path) -> None:
    with made(tmp_path, budget=30) as study:
        for i in range(12):
            trial = study.ask()
            if i % 3 == 2:
                suggested = trial.x
                trial = study.move(trial, {**trial.x, "t": 50.0 + i})
                assert trial.number == i and trial.x["t"] == 50.0 + i and trial.origin == "user"
                assert study.suggested(i) == suggested
            told = study.tell(trial, value(trial.x))
            assert told.number == i
        assert study.optimizer.evaluated == 12  # a moved trial uses up the budget: it was one of the plan
        assert study.verify()
    with gpmi.study(tmp_path / "s.db") as again:
        assert again.trials[2].x["t"] == 52.0 and again.suggested(2) is not None and again.suggested(3) is None
        assert again.optimizer.evaluated == 12 and again.optimizer.log.told_before_asking == 0


def test_the_model_sees_the_point_that_was_used() -> None:
    used, other = (gpmi.Optimizer([(0.0, 1.0)], seed=0) for _ in range(2))
    for y in (0.1, 0.4, 0.2, 0.3):
        trial = used.ask()
        number = len(used.trials) - 1
        moved = used.move(number, [y])
        used.tell(number, 2.0 * y)
        assert moved.mu is None and trial is not None
        other.tell([y], 2.0 * y)
    grid = np.linspace(0.0, 1.0, 7)[:, None]
    np.testing.assert_allclose(used.posterior(grid), other.posterior(grid), rtol=1e-6, atol=1e-9)


def test_only_pending_trials_can_be_moved_and_only_to_points_of_the_space(tmp_path: Path) -> None:
    with made(tmp_path) as study:
        trial = study.ask()
        with pytest.raises(ValueError, match="a \\+ b \\+ c == 1"):
            study.move(trial, {**trial.x, "a": trial.x["a"] + 0.5 if trial.x["a"] < 0.5 else 0.0})
        with pytest.raises(ValueError, match="outside"):
            study.move(trial, {**trial.x, "t": 95.0})
        assert study.trials[0].x == trial.x and study.suggested(0) is None
        study.tell(trial, 1.0)
        with pytest.raises(ValueError, match="not pending"):
            study.move(0, {**trial.x, "t": 50.0})


def test_remarks_survive_and_change_no_suggestion(tmp_path: Path) -> None:
    with (
        made(tmp_path) as study,
        gpmi.study(tmp_path / "t.db", space=SPACE, constraints=["a + b + c == 1"], seed=0) as s,
    ):
        for _ in range(10):
            trial, plain = study.ask(), s.ask()
            assert trial.x == plain.x
            study.tell(trial, value(trial.x))
            s.tell(plain, value(plain.x))
            study.annotate(trial, "cloudy\nat first", who=" Anna  Berg ", files=["nmr.pdf", ""], did="told")
            study.annotate(trial, "cloudy\nat first", who="Anna Berg", files=["nmr.pdf"], did="told")  # sent twice
        assert study.verify()
    with gpmi.study(tmp_path / "s.db") as again:
        (one,) = again.annotations(3)
        assert (one.who, one.text, one.files, one.did) == ("Anna Berg", "cloudy\nat first", ("nmr.pdf",), "told")
        assert one.time >= again.trials[3].ended - 1e-3
        assert again.annotations(99) == ()


def test_a_withdrawn_trial_keeps_its_remarks(tmp_path: Path) -> None:
    with made(tmp_path) as study:
        study.forget(study.ask())
        study.annotate(0, who="Bo", did="forgotten")
        assert study.annotations(0)[0].who == "Bo"


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({}, "empty"),
        ({"text": 3}, "text is 3"),
        ({"text": "x" * (MAX_TEXT + 1)}, "at most"),
        ({"who": "x" * 81}, "at most 80"),
        ({"files": "nmr.pdf"}, "list of names"),
        ({"files": ["a"] * (MAX_FILES + 1)}, "at most"),
        ({"text": "x", "did": "danced"}, "did"),
    ],
)
def test_bad_remarks_are_refused_in_words(tmp_path: Path, arguments: dict[str, object], match: str) -> None:
    with made(tmp_path) as study:
        study.ask()
        with pytest.raises((ValueError, TypeError), match=match):
            study.annotate(0, **arguments)
        with pytest.raises(ValueError, match="no such trial"):
            study.annotate(7, "x")
        assert study.annotations(0) == ()


@pytest.mark.parametrize("did", ["", *DEEDS])
def test_what_is_stored_is_what_was_written(did: str) -> None:
    one = Annotation.checked(3, "text", "who", ["a", "b"], did or None)
    assert Annotation.from_json(one.to_json(), one.time) == one


def test_a_rejection_has_a_reason_and_one_without_stays_readable(tmp_path: Path) -> None:
    with made(tmp_path) as study:
        assert study.reject(study.ask(), "no THF left").why == "no THF left"
        assert study.reject(study.ask()).why is None
        with pytest.raises(TypeError, match="why is 3"):
            study.reject(study.ask(), 3)
    with gpmi.study(tmp_path / "s.db") as again:
        assert [trial.why for trial in again.trials[:2]] == ["no THF left", None]
    rows = sqlite3.connect(tmp_path / "s.db").execute("SELECT body FROM gpmi_events WHERE kind = 'rejected'").fetchall()
    assert "why" in rows[0][0] and "why" not in rows[1][0]  # as earlier versions wrote it


def test_a_value_of_the_point_before_a_move_is_kept(tmp_path: Path) -> None:
    with gpmi.study(tmp_path / "a.db", space=[(0.0, 1.0)], seed=0) as one, gpmi.study(tmp_path / "a.db") as other:
        trial = one.ask()
        other.move(trial.number, [0.5])
        assert one.trials[0].x == [0.5]  # it has seen the move
        told = one.tell(trial, 2.0)
        assert (told.number, told.x, told.y) == (1, trial.x, 2.0)
        assert other.tell(trial.number, 3.0).x == [0.5]
        assert [t.y for t in one.trials] == [3.0, 2.0]
        assert one.verify().agrees


def test_a_value_by_a_worker_that_did_not_know_of_the_move_leaves_the_trial_open(tmp_path: Path) -> None:
    with gpmi.study(tmp_path / "a.db", space=[(0.0, 1.0)], seed=0) as one, gpmi.study(tmp_path / "a.db") as other:
        trial = one.ask()
        other.move(trial.number, [0.5])
        assert one.tell(trial, 2.0).number == 1
        assert other.tell(trial.number, 3.0).x == [0.5]
        assert [t.y for t in one.trials] == [3.0, 2.0]
