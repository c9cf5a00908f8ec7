"""Studies: the log is the truth, everything else follows from it."""

from __future__ import annotations

import dis
import json
import logging
import math
import os
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from waiting import FOR_EVER, wait_until

import gpmi

pytest.importorskip("sqlalchemy")

from gpmi import storage
from gpmi.run.study import Study
from gpmi.space import Candidates
from gpmi.storage import heartbeat
from gpmi.storage.errors import StudyError, Unavailable
from gpmi.storage.outbox import Outbox
from gpmi.storage.serialization import arguments, contradiction, described, space_from_json, space_to_json, text_of
from gpmi.storage.workers import has_ended, own_name
from gpmi.trials import Log

BOX = [(0.0, 1.0), (0.0, 1.0)]
GRID = np.linspace(0.0, 1.0, 21)[:, None]
MIXED = {
    "lr": gpmi.Real(1e-5, 1e-1, log=True),
    "layers": gpmi.Int(1, 8),
    "act": ["relu", "tanh", True],
    "x": (0.0, 1.0),
}


def f(x: Any) -> float:
    return -float(((x - 0.3) ** 2).sum())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.db"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A study with entries 0 to 10: created, (asked, told) twice, corrected, asked, failed, budget, asked, leased."""
    path = tmp_path_factory.mktemp("small") / "run.db"
    with gpmi.study(path, space=BOX, seed=0, budget=9) as study:
        run(study, 2)
        study.correct(0, 2.0)
        study.fail(study.ask(), why="the pump stopped")
        study.set_budget(11)
        trial = study.ask()
    with gpmi.study(path) as study:
        assert study.ask().number == trial.number
        assert study.log()[-1].kind == "leased" and study.seq == 10
    return path.read_bytes()


def changed(path: Path, sql: str, *values: Any) -> None:
    """Change the file by hand."""
    connection = sqlite3.connect(path)
    connection.execute(sql, values)
    connection.commit()
    connection.close()


def forged(path: Path, seq: int, kind: str | None = None, time: float | None = None, **fields: Any) -> None:
    """Change an entry by hand, and the checksums of it and of all entries after it, so that they fit."""
    from gpmi.storage.entries import checksum

    before = ""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT seq, kind, body, time, worker, token FROM gpmi_events ORDER BY seq")
        for number, own_kind, body, own_time, worker, token in rows.fetchall():
            if number == seq:
                body = text_of({**json.loads(body), **fields}).replace("Infinity", "1e999")
                own_kind, own_time = kind or own_kind, own_time if time is None else time
            before = checksum(before, number, own_kind, body, own_time, worker, token)
            row = (own_kind, body, own_time, before, number)
            connection.execute("UPDATE gpmi_events SET kind=?, body=?, time=?, checksum=? WHERE seq=?", row)
        connection.commit()


def waiters(folder: Path) -> int:
    """Return how many threads wait for the lock of a file in this folder, as the kernel lists them."""
    files = {str(file.stat().st_ino) for file in folder.iterdir()}
    blocked = [line.split() for line in Path("/proc/locks").read_text().splitlines() if " -> " in line]
    return sum(fields[6].rpartition(":")[2] in files for fields in blocked)


def run(study: Study, n: int) -> None:
    for _ in range(n):
        trial = study.ask()
        study.tell(trial, f(trial.x))


# Replay


def test_a_study_suggests_what_an_optimizer_suggests(path: Path) -> None:
    with gpmi.study(path, space=BOX, seed=3) as study:
        run(study, 14)
        optimizer = gpmi.Optimizer(BOX, seed=3)
        for _ in range(14):
            x = optimizer.ask()
            optimizer.tell(x, f(x))
        for a, b in zip(optimizer.trials, study.trials, strict=True):
            assert np.array_equal(a.x, b.x) and (a.y, a.mu, a.sd, a.surprise) == (b.y, b.mu, b.sd, b.surprise)
        assert np.array_equal(optimizer.recommend(), study.recommend())


def test_closing_and_opening_changes_no_suggestion(path: Path, tmp_path: Path) -> None:
    with gpmi.study(path, space=BOX, seed=1) as study:
        run(study, 16)
        expected = [tuple(trial.x) for trial in study.trials]
    other = tmp_path / "other.db"
    with gpmi.study(other, space=BOX, seed=1) as study:
        run(study, 1)
    for _ in range(5):
        with gpmi.study(other) as study:
            run(study, 3)
    with gpmi.study(other) as study:
        assert [tuple(trial.x) for trial in study.trials] == expected
        assert study.verify().agrees and study.verify().suggestions == 16


def test_two_openings_see_each_other_and_share_one_sequence(path: Path) -> None:
    with gpmi.study(path, space=BOX, seed=2) as one, gpmi.study(path) as two:
        for _ in range(7):
            a, b = one.ask(), two.ask()
            assert not np.array_equal(a.x, b.x)
            two.tell(b, f(b.x))
            one.tell(a, f(a.x))
        assert [t.number for t in one.trials] == list(range(14)) == [t.number for t in two.trials]
        assert [entry.seq for entry in one.log()] == list(range(29))
        assert one.verify().agrees


@pytest.mark.parametrize(
    ("space", "options"),
    [
        (MIXED, {"goal": "min"}),
        (np.linspace(0.0, 1.0, 12)[:, None], {"repeats": False, "aim": "earn"}),
        ({"a": (0.0, 1.0), "b": (0.0, 1.0)}, {"constraints": ["a + b <= 1", gpmi.Forbidden(a=0.5)][:1]}),
        ({"kind": ["p", "q"], "w": gpmi.Int(1, 64, step=3, when={"kind": "q"})}, {}),
        (
            BOX,
            {"kernel": gpmi.kernels.Matern(nu=1.5, lengthscale=[0.3, None]) + gpmi.kernels.Linear(), "x0": [0.5, 0.5]},
        ),
        (BOX, {"kernel": gpmi.kernels.RBF(0.3), "noise_var": 1e-4, "policy": gpmi.GPMI(delta=1e-3)}),
        (BOX, {"policy": gpmi.GPUCBPE(scale=0.5)}),
        (BOX, {"policy": gpmi.Find(then=gpmi.LogEI()), "constraints": (np.array([[1.0, 1.0]]), -np.inf, 1.0)}),
    ],
)
def test_every_space_and_option_comes_back_and_replays(path: Path, space: Any, options: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    with gpmi.study(path, space=space, seed=5, **options) as study:
        for _ in range(9):
            trial = study.ask()
            study.tell(trial, rng.normal())
    with gpmi.study(path, space=space, **options) as study:
        assert study.verify().agrees
        plain = gpmi.Optimizer(space, seed=5, **options).replay(study.trials)
        plain.ask()
        assert repr(study.ask().x) == repr(plain.pending[-1].x)


def test_a_study_of_a_find_with_a_third_policy_still_opens() -> None:
    """Earlier versions stored it."""
    third = {"kind": "GPUCB", "delta": 1e-6, "scale": 0.2}
    stored = {"kind": "Find", **{name: third for name in ("then", "last")}}
    description = {"space": space_to_json(BOX), "policy": stored}
    assert arguments(description)["policy"] == gpmi.Find(then=gpmi.GPUCB(scale=0.2))
    written = described(BOX, {"policy": gpmi.Find()})
    written["policy"]["last"] = third
    assert contradiction(written, None, {"policy": gpmi.Find()}) is None


def test_a_dataframe_of_candidates_comes_back_with_its_labels(path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": [1, 2, 3], "b": ["u", "v", "u"]}, index=["p", "q", "r"])
    with gpmi.study(path, space=table, seed=0) as study:
        label = study.ask().label
    with gpmi.study(path, space=table) as study:
        assert study.trials[0].label == label
        assert study.verify().agrees


def test_the_columns_of_a_table_keep_their_order(path: Path) -> None:
    table = Candidates.from_columns({"z": [1.0, 2.0, 4.0], "a": ["u", "v", "u"]})
    with gpmi.study(path, space=table, seed=0) as study:
        assert list(study.ask().x) == ["z", "a"]
    with gpmi.study(path, space=Candidates.from_columns({"a": ["u", "v", "u"], "z": [1.0, 2.0, 4.0]})) as study:
        assert list(study.ask().x) == ["z", "a"]  # the order is no contradiction, and stays that of the study
        assert study.verify().agrees
    written = {"columns": {"a": ["u", "v"], "z": [1.0, 2.0]}, "labels": [0, 1]}  # as it was before names were kept
    assert space_from_json(written).names == ("a", "z")


def test_numbers_survive_to_the_last_bit(path: Path) -> None:
    values = [0.1 + 0.2, 1e-300, -5e-324, 1.7976931348623157e99, math.pi]
    with gpmi.study(path, space=BOX, seed=0) as study:
        for y in values:
            study.tell(study.ask(), y)
    with gpmi.study(path) as study:
        assert [trial.y for trial in study.trials] == values


# What is said


def test_a_late_value_is_an_observation_and_not_an_error(path: Path) -> None:
    with gpmi.study(path, space=BOX, seed=0) as slow, gpmi.study(path) as other:
        trial = slow.ask()
        slow._log._heartbeat.stop()
        changed(path, "UPDATE gpmi_leases SET until = 1.0")
        again = other.ask()
        assert again.number == trial.number
        other.tell(again, 1.0)
        late = slow.tell(trial, 2.0)
        assert (late.number, late.y, late.status) == (1, 2.0, "told")
        assert slow.tell(trial, 2.0).number == 1  # the same delivery again
        assert [t.y for t in other.trials] == [1.0, 2.0]
        assert np.array_equal(other.trials[0].x, other.trials[1].x)
        trial = slow.ask()
        slow._log._heartbeat.stop()
        changed(path, "UPDATE gpmi_leases SET until = 1.0")
        other.tell(other.ask(), 3.0)
        assert slow.fail(trial).y == 3.0  # noted, and without effect
        assert json.loads(other.log()[-1].body)["late"]
        assert other.verify().agrees
    with gpmi.study(path) as third:
        third._log.worker = "elsewhere:abc:1:2"
        with pytest.raises(ValueError, match=r"x is trial 2, which is not pending: it is told; retract\(2\)"):
            third.fail(2)  # it never had the trial


def test_the_same_value_twice_counts_once_and_another_one_is_refused(path: Path) -> None:
    with gpmi.study(path, space=BOX, seed=0) as study:
        trial = study.ask()
        study.tell(trial, 1.0)
        assert study.tell(trial.number, 1.0).number == 0
        with pytest.raises(ValueError, match=r"trial 0 already has the value 1\.0 from this worker; use correct"):
            study.tell(trial, 1.5)
        assert len(study.trials) == 1
    with gpmi.study(path) as study:
        assert study.tell(0, 1.0).number == 0
        assert len(study.trials) == 1


def test_every_word_is_kept(path: Path) -> None:
    with gpmi.study(path, space=BOX, seed=0) as study:
        trials = study.ask(5)
        study.tell(trials[0], 1.0, noise_var=0.5, repeats=3)
        study.correct(0, 2.0)
        study.tell(trials[1], 7.0)
        study.retract(1)
        study.fail(trials[2])
        study.reject(trials[3])
        study.forget(trials[4])
        assert study.tell([0.5, 0.5], 3.0).number == 5
        assert study.reject(np.array([0.9, 0.9])).number == 6
        study.tell(trials[4], 4.0)  # it was forgotten, and evaluated all the same
        before = [repr(trial) for trial in study.trials]
    with gpmi.study(path) as study:
        assert [repr(trial) for trial in study.trials] == before
        assert [t.status for t in study.trials] == [
            "told",
            "retracted",
            "failed",
            "rejected",
            "told",
            "rejected",
            "told",
        ]
        assert (study.trials[0].noise_var, study.trials[0].repeats, study.trials[0].y_before) == (0.5, 3, 1.0)
        assert study.ask().number == 8  # a number is never used again
        assert study.verify().agrees
        kinds = [entry.kind for entry in study.log()]
        assert kinds.count("told") == 4 and kinds[-1] == "asked"


def test_wrong_words_are_refused_and_change_nothing(path: Path) -> None:
    with gpmi.study(path, space=BOX, seed=0) as study:
        trial = study.ask()
        for wrong in (
            lambda: study.tell(trial, math.nan),
            lambda: study.tell(7, 1.0),
            lambda: study.tell([2.0, 0.0], 1.0),
            lambda: study.correct(trial, 1.0),
            lambda: study.retract(trial),
            lambda: study.fail(3),
            lambda: study.ask(0),
            lambda: study.ask(lease=-1.0),
        ):
            with pytest.raises((ValueError, TypeError)):
                wrong()
        assert [entry.kind for entry in study.log()] == ["created", "asked"]
        study.tell(trial, 1.0)
        assert study.verify().agrees


def test_a_wrong_word_leaves_the_optimizer_as_the_log_has_it(path: Path) -> None:
    with gpmi.study(path, space=BOX, seed=0) as study:
        run(study, 3)
        trial = study.ask()
        with pytest.raises(ValueError, match="it is pending"):
            study.retract(trial)
        study.tell(trial, 0.0)
        run(study, 3)
        assert study.verify().agrees


# Leases


def test_a_lease_that_ended_frees_the_trial_and_a_live_one_does_not(path: Path) -> None:
    with gpmi.study(path, space=BOX, seed=0) as one, gpmi.study(path) as two:
        trial = one.ask()
        assert two.ask().number == 1
        changed(path, "UPDATE gpmi_leases SET until = 1.0 WHERE number = 0")
        assert two.ask().number == trial.number
        assert [entry.kind for entry in two.log()] == ["created", "asked", "asked", "leased"]
        assert two.ask().number == 2


def test_a_heartbeat_renews_and_closing_gives_back(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "RENEWALS", 10.0 * FOR_EVER)  # one every 0.1 s
    with gpmi.study(path, space=BOX, seed=0, lease=FOR_EVER) as one, gpmi.study(path) as two:
        one.ask()
        first = two.leases()[0].until
        wait_until(lambda: two.leases()[0].until > first)
        assert two.ask().number == 1
        one.close()
        assert two.ask().number == 0


@pytest.mark.parametrize("recorded", [True, False])  # whether the log has the duration; earlier versions wrote none
def test_a_lease_from_a_clock_that_was_ahead_ends_all_the_same(path: Path, recorded: bool) -> None:
    with gpmi.study(path, space=BOX, seed=0, lease=100.0) as study:
        study.ask(lease=FOR_EVER)
        asked = study.log()[-1]
        assert asked.content["lease"] == FOR_EVER
    forged(path, 1, time=asked.time + 86400.0, **({} if recorded else {"lease": None}))
    elsewhere = "another:machine:1:1"  # it is not known whether its process has ended
    changed(path, "UPDATE gpmi_leases SET until = ?, worker = ?", asked.time + 86400.0 + FOR_EVER, elsewhere)
    with gpmi.study(path, lease=FOR_EVER) as study:
        begin = time.time()
        assert study.ask().number == 1  # the worker may live, so its lease is not over at once
        assert begin - 1.0 <= study.leases()[0].until - FOR_EVER <= time.time() + 1.0
        changed(path, "UPDATE gpmi_leases SET until = until - ? WHERE number = 0", 2.0 * FOR_EVER)  # as time does
        assert study.ask().number == 0


def test_a_long_lease_is_no_mistake_of_the_clock(path: Path) -> None:
    with gpmi.study(path, space=BOX, seed=0) as study, gpmi.study(path) as other:
        study.ask(lease=86400.0)
        until = study.leases()[0].until
        assert other.ask().number == 1 and other.leases()[0].until == until


def test_a_lease_without_end_outlives_the_process(path: Path) -> None:
    with gpmi.study(path, space=BOX, seed=0) as study:
        assert study.ask(lease=math.inf).number == 0
    with gpmi.study(path) as study:
        assert study.ask().number == 1
        study.tell(0, 1.0)


def test_a_worker_whose_process_has_ended_is_known_to_be_gone() -> None:
    name = own_name()
    assert not has_ended(name) and not has_ended("elsewhere:abc:1:2") and not has_ended("")
    host, machine, process, started = name.split(":")
    if started:
        assert has_ended(f"{host}:{machine}:{process}:{int(started) + 1}")
        assert has_ended(f"{host}:{machine}:{2**22 + 1}:5")


def test_the_trial_of_a_dead_process_is_offered_at_once(path: Path) -> None:
    if not own_name().split(":")[3]:
        pytest.skip("the system does not say which processes there are")
    with gpmi.study(path, space=BOX, seed=0) as study:
        process = os.fork()
        if process == 0:
            try:
                gpmi.study(path).ask()
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(process, 0)[1] == 0
        assert study.ask().number == 0


# Running


def test_the_same_call_of_maximize_goes_on(path: Path) -> None:
    calls: list[int] = []

    def stops(x: Any) -> float:
        calls.append(1)
        if len(calls) == 6:
            raise RuntimeError("power failure")
        return f(x)

    with pytest.raises(RuntimeError) as caught:
        gpmi.maximize(stops, BOX, budget=12, seed=4, study=path)
    assert len(caught.value.result.trials) == 5  # type: ignore[attr-defined]
    result = gpmi.maximize(stops, BOX, budget=12, seed=4, study=path)
    whole = gpmi.maximize(f, BOX, budget=12, seed=4)
    assert len(calls) == 13 and result.reason == "budget"
    assert [tuple(t.x) for t in result.trials] == [tuple(t.x) for t in whole.trials]
    assert gpmi.maximize(stops, BOX, budget=12, seed=4, study=path).y == whole.y and len(calls) == 13
    assert len(gpmi.maximize(stops, BOX, budget=14, seed=4, study=path).trials) == 14  # more is possible, too
    with gpmi.study(path) as study:
        assert study.verify().agrees


def test_a_study_whose_budget_is_used_up_says_so_and_what_it_found(path: Path) -> None:
    call: dict[str, Any] = {"space": BOX, "budget": 5, "seed": 4, "study": path}
    first = gpmi.maximize(f, **call)
    assert first.events == ()
    for more in ({}, {"workers": 2}):
        again = gpmi.maximize(f, **call, **more)
        assert (again.reason, again.y) == ("budget", first.y) and len(again.trials) == 5
        (event,) = again.events
        assert event.kind == "budget used up" and "5 evaluations; a larger budget continues it" in event.message
        assert f"the best is {first.y:.6g}" in event.message and event.message in str(again)
    longer = gpmi.maximize(f, **{**call, "budget": 6})
    assert longer.events == () and len(longer.trials) == 6


def test_the_display_of_a_study_that_goes_on_shows_its_best_from_the_beginning(path: Path, capsys: Any) -> None:
    pytest.importorskip("rich")
    call: dict[str, Any] = {"space": BOX, "budget": 3, "seed": 4, "study": path}
    first = gpmi.maximize(f, **call)
    gpmi.maximize(f, **call, progress=True)
    assert f"best {first.y:.6g} at" in capsys.readouterr().err


def test_a_list_of_two_numbers_leaves_a_word_in_a_study_too(path: Path) -> None:
    call: dict[str, Any] = {"space": {"a": [0, 2], "b": (0.0, 1.0)}, "seed": 0, "study": path}
    for budget in (2, 3):
        assert [e.kind for e in gpmi.maximize(lambda p: p["b"], budget=budget, **call).events] == ["two options"]


def test_nothing_is_left_beside_a_study_but_its_file(path: Path) -> None:
    gpmi.maximize(f, BOX, budget=3, seed=4, study=path)
    assert [one.name for one in path.parent.iterdir()] == [path.name]
    with gpmi.study(path) as study, gpmi.study(path) as other:
        other.tell(study.ask(), 1.0)
        other.tell([0.5, 0.5], 1.0)
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_what_was_known_before_is_told_once(path: Path) -> None:
    earlier = [([0.1, 0.1], 0.5), ([0.2, 0.2], 0.6, 0.01)]
    for budget in (3, 5):
        result = gpmi.minimize(lambda x: -f(x), BOX, budget=budget, seed=0, study=path, earlier=earlier)
    assert len(result.trials) == 7 and [t.y for t in result.trials[:2]] == [0.5, 0.6]
    with gpmi.study(path) as study:
        again = study.optimizer.tell_all([([0.3, 0.3], 0.5), ([0.2, 0.2], 0.6, 0.01)])
        assert [trial.number for trial in again] == [7, 1] and study.events == ()
    plain = gpmi.minimize(lambda x: -f(x), BOX, budget=3, seed=0, earlier=earlier)
    assert [tuple(t.x) for t in plain.trials] == [tuple(t.x) for t in result.trials[:5]]


def test_the_optimizer_of_a_run_keeps_every_word(path: Path) -> None:
    def look(trial: gpmi.Trial, optimizer: gpmi.Optimizer) -> None:
        if trial.number == 2:
            optimizer.correct(trial, 5.0)
            x = optimizer.ask()
            optimizer.tell(x, 6.0)
            optimizer.fail(optimizer.ask(2)[0])
            optimizer.forget(optimizer.pending[-1])
            optimizer.retract(1)
            optimizer.reject(optimizer.ask())
            with pytest.raises(ValueError, match="replayed into a study"):
                optimizer.replay([])

    gpmi.maximize(f, BOX, budget=8, seed=0, study=path, on_trial=look)
    with gpmi.study(path) as study:
        assert study.verify().agrees
        assert [t.y for t in study.trials[2:4]] == [5.0, 6.0]
        assert sum(t.origin != "user" and t.status in ("told", "failed") for t in study.trials) == 8


def test_optimize_counts_what_others_did_and_takes_over_what_they_left(path: Path) -> None:
    with gpmi.study(path, space=BOX, seed=0) as one:
        run(one, 3)
        one.ask()
    with gpmi.study(path) as two:
        with pytest.raises(TypeError, match="budget is None"):
            two.optimize(f)
        result = two.optimize(f, budget=8)
        assert result.reason == "budget" and len(result.trials) == 8 == two.budget
        assert [t.number for t in two.trials] == list(range(8))
        assert two.optimize(f).trials[-1].number == 7
        assert "8 told" in repr(two) and two.best is not None and two.result().y == two.best.y
        assert len(two.ledger.steps) == 8 and two.pending == ()


def test_failures_and_measured_constraints_are_kept_and_replay(path: Path) -> None:
    def sometimes(x: Any) -> float:
        if x[0] > 0.7:
            raise ArithmeticError("too hot")
        return f(x)

    result = gpmi.maximize(sometimes, BOX, budget=12, seed=0, study=path, on_failure="learn")
    with gpmi.study(path) as study:
        result = study.optimize(sometimes, budget=16, on_failure="learn")
        failed = [trial for trial in study.trials if trial.status == "failed"]
        assert failed and all("too hot" in (trial.why or "") for trial in failed)
        assert study.verify().agrees
    whole = gpmi.maximize(sometimes, BOX, budget=12, seed=0, on_failure="learn")
    assert [tuple(t.x) for t in whole.trials] == [tuple(t.x) for t in result.trials[:12]]
    with gpmi.study(path, "measured", space=BOX, seed=1) as study:
        for _ in range(9):
            trial = study.ask()
            study.tell(trial, f(trial.x), constraints=[0.5 - trial.x[0]])
        study.correct(0, 1.0, constraints=[-1.0])
        with pytest.raises(ValueError, match="constraints"):
            study.tell(study.ask(), 1.0, constraints=[1.0, 2.0])
    with gpmi.study(path, "measured") as study:
        assert study.trials[0].constraints == (-1.0,) and study.trials[1].constraints != ()
        assert study.verify().agrees


def test_given_coordinates_are_kept_and_replay(path: Path) -> None:
    with gpmi.study(path, space=BOX, seed=0) as study:
        for i in range(9):
            trial = study.ask(fixed={0: 0.25} if i % 2 else None)
            study.tell(trial, f(trial.x))
        left = study.ask(fixed={0: 0.5})
        assert left.x[0] == 0.5
    with gpmi.study(path) as study:
        assert study.trials[-1].fixed == {0: 0.5} and study.recommend(fixed={0: 0.125})[0] == 0.125
        assert study.ask().number == 10 and study.ask(fixed={0: 0.5}).number == 9
        assert study.verify().agrees
    with gpmi.study(path, "named", space=MIXED, seed=0) as study:
        assert study.ask(fixed={"act": True, "x": 0.5}).x["act"] is True
        assert study.optimizer.ask(fixed={"layers": 3})["layers"] == 3
    with gpmi.study(path, "named") as study:
        assert study.trials[0].fixed == {"act": True, "x": 0.5} and study.verify().agrees


def test_a_constant_that_is_given_is_no_given_coordinate(path: Path) -> None:
    with gpmi.study(path, space={"x": (0.0, 1.0), "k": 7}, seed=0) as study:
        left = study.ask()
    with gpmi.study(path) as study:
        again = study.ask(fixed={"k": 7})
        assert again.number == left.number and again.fixed is None
        assert study.ask(fixed={"k": 7, "x": 0.5}).fixed == {"x": 0.5} and study.verify().agrees


def test_a_loop_does_not_wait_for_what_a_person_evaluates(path: Path) -> None:
    with gpmi.study(path, space=BOX, seed=0) as study:
        study.ask(lease=math.inf)
        assert len(study.optimize(f, budget=4).trials) == 3
        study.tell(0, 1.0)
        assert len(study.optimize(f).trials) == 4


def test_a_space_that_is_exhausted_ends_the_run(path: Path) -> None:
    rows = np.arange(4.0)[:, None]
    result = gpmi.maximize(lambda x: float(x[0]), rows, budget=9, repeats=False, seed=0, study=path)
    assert result.reason == "space exhausted" and len(result.trials) == 4
    with gpmi.study(path, "few", space=rows, repeats=False, seed=0) as study:
        assert len(study.ask(9)) == 4
        with pytest.raises(gpmi.SpaceExhausted):
            study.ask()


# Opening


def test_what_contradicts_the_study_is_refused(path: Path) -> None:
    gpmi.study(path, space=BOX, goal="min", seed=3).close()
    for wrong, words in (
        ({"seed": 4}, "seed is 4, but that of the study is 3"),
        ({"goal": "max"}, "goal is 'max', but that of the study is 'min'"),
        ({"aim": "earn"}, "aim is 'earn', but that of the study is 'find'"),
        ({"space": [(0.0, 2.0), (0.0, 1.0)]}, r"space is another one: x\[0\] is \[0, 2\], but that of the study is \["),
        ({"space": BOX[:1]}, r"x\[1\] is missing, which the study has; leave it out to continue the study"),
        ({"space": MIXED}, "and .* more differences; leave it out to continue the study"),
        ({"kernel": gpmi.kernels.RBF(0.1)}, "kernel is"),
        ({"colour": 1}, "colour is not an argument of study; it takes address, name, "),
    ):
        with pytest.raises((ValueError, TypeError), match=words):
            gpmi.study(path, **wrong)  # type: ignore[arg-type]
    gpmi.study(path, space=BOX, goal="min", seed=3, aim="find", fit="map").close()
    with pytest.raises(ValueError, match=r"there is no study 'other' in .*: it has 'default'; give one of these names"):
        gpmi.study(path, "other")
    gpmi.study(path, "other", space=MIXED).close()


@pytest.mark.parametrize(
    ("space", "options", "words"),
    [
        (BOX, {"constraints": [lambda x: True]}, "constraints has .*, which a study cannot store; give strings"),
        (BOX, {"mean": f}, "mean is .*, a function, which a study cannot store; subtract it in f"),
        ({"c": [print, abs]}, {}, "c has .*, which cannot be stored in a study"),
        ({"c": gpmi.Choice([(1, 2), (3, 4)])}, {}, "c has the option .*convert them inside f"),
        (BOX, {"lease": 0.0}, "lease is 0"),
        (BOX, {"seed": -1}, "seed is -1"),
    ],
)
def test_what_cannot_be_kept_is_refused_before_there_is_a_file(
    path: Path, space: Any, options: dict[str, Any], words: str
) -> None:
    with pytest.raises((ValueError, TypeError), match=words):
        gpmi.study(path, space=space, **options)
    assert not path.exists()


def test_an_own_policy_is_refused(path: Path) -> None:
    class Own(gpmi.GPMI):
        pass

    with pytest.raises(ValueError, match="a class of your own, which a study cannot store"):
        gpmi.study(path, space=BOX, policy=Own())


def test_a_description_is_text_and_comes_back() -> None:
    description = json.loads(text_of(described(MIXED, {"seed": 1, "budget": None})))
    assert described(arguments(description)["space"], {"seed": 1}) == description


@pytest.mark.parametrize("address", ["", ":memory:", "sqlite://", "mysql://a/b", 3, "http//::://"])
def test_addresses_that_are_none(address: Any) -> None:
    with pytest.raises((TypeError, ValueError, StudyError)):
        gpmi.study(address)


@pytest.mark.parametrize("address", ["file:x.db", "file:./x.db", "sqlite:///file:x.db", "sqlite:///file:x.db?uri=true"])
def test_an_address_of_sqlite_itself_is_the_path_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with gpmi.study(address, space=BOX, seed=0) as study:
        run(study, 2)
    assert [file.name for file in tmp_path.iterdir()] == ["x.db"]
    with gpmi.study("x.db") as study:
        assert len(study.trials) == 2


def test_options_of_an_address_of_sqlite_itself_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with gpmi.study("a b%.db", space=BOX, seed=0) as study:
        run(study, 2)
    for address in ("file:a%20b%25.db?mode=ro", f"file://{tmp_path}/a%20b%25.db?mode=ro"):
        with gpmi.study(address) as study:
            assert len(study.trials) == 2
            with pytest.raises(StudyError, match="cannot be written to; allow writing"):
                study.ask()
    for address in ("file:", "file:x.db?mode=memory", "file://elsewhere/x.db", "file:x.db#part"):
        with pytest.raises(ValueError, match="give the path of a file"):
            gpmi.study(address, space=BOX)
    assert all(file.name.startswith("a b%.db") for file in tmp_path.iterdir())


@pytest.mark.parametrize("name", ["\ud800", "a\udcffb"])
def test_a_string_that_is_not_unicode_is_refused_before_there_is_a_file(path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="not valid Unicode; give another name"):
        gpmi.study(path, name, space=BOX)
    for space in ({name: (0.0, 1.0)}, {"x": ["a", name]}):
        with pytest.raises(ValueError, match="space has a string that is not valid Unicode"):
            gpmi.study(path, space=space)
    assert not path.exists()
    gpmi.study(path, space={"x": ["a", "b"]}, seed=0).close()
    with gpmi.study(path) as study:
        description = json.loads(text_of(study.log()[0].content["description"]).replace('"b"', json.dumps(name)))
    forged(path, 0, description=description)
    changed(path, "UPDATE gpmi_studies SET description = ?", text_of(description))
    with pytest.raises(StudyError, match=r"does not describe a study .* not valid Unicode"):
        gpmi.study(path)


def test_import_gpmi_loads_no_database() -> None:
    import subprocess

    code = "import gpmi, sys; assert 'sqlalchemy' not in sys.modules; gpmi.study; assert 'sqlalchemy' in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


# What can go wrong


def test_verify_names_what_was_changed(path: Path) -> None:
    with gpmi.study(path, space=BOX, seed=0) as study:
        run(study, 8)
        assert study.verify().agrees
        body = json.loads(study.log()[12].body)
    body["y"] += 0.5
    changed(path, "UPDATE gpmi_events SET body = ? WHERE seq = 12", text_of(body))
    with gpmi.study(path) as study:
        report = study.verify()
        assert not report.agrees and "entry 12 (told) does not have the checksum of its content" in report.problems[0]
        assert any("was suggested" in problem for problem in report.problems[1:])
        assert "entry 12 of the log does not fit the entries before it" in study.warnings[0]


def test_verify_names_a_suggestion_that_nobody_would_make(path: Path) -> None:
    from gpmi.storage.entries import checksum

    with gpmi.study(path, space=BOX, seed=0) as study:
        run(study, 8)
        log = study.log()
    said, before = json.loads(log[-2].body), log[-3].checksum
    said["x"] = [0.5, 0.25]
    body = text_of(said)
    forged = checksum(before, log[-2].seq, "asked", body, log[-2].time, log[-2].worker, log[-2].token)
    changed(path, "UPDATE gpmi_events SET body = ?, checksum = ? WHERE seq = ?", body, forged, log[-2].seq)
    last = checksum(forged, log[-1].seq, "told", log[-1].body, log[-1].time, log[-1].worker, log[-1].token)
    changed(path, "UPDATE gpmi_events SET checksum = ? WHERE seq = ?", last, log[-1].seq)
    with gpmi.study(path) as study:
        problems = study.verify().problems
        assert len(problems) == 1 and "trial 7: [0.5, 0.25] was suggested" in problems[0]


@pytest.mark.parametrize(
    ("cpu", "moved", "verdict"),
    [
        ("here", 0.0, "equal"),
        ("elsewhere", 0.0, "equal"),
        ("elsewhere", 1e-8, "equal up to rounding on another platform"),
        ("nowhere", 1e-8, "equal up to rounding on another platform"),  # an earlier version recorded no platform
        ("here", 1e-8, "different"),
        ("elsewhere", 1e-3, "different"),
    ],
)
def test_verify_tells_rounding_on_another_platform_from_a_difference(
    path: Path, cpu: str, moved: float, verdict: str
) -> None:
    from gpmi.storage.platforms import own_platform

    with gpmi.study(path, space=BOX, seed=0) as study:
        run(study, 6)
        study.ask()
        first, *_, last = study.log()
    assert set(first.content["platform"]) == {"numpy", "vectors", "scipy", "blas", "libc", "cpu"}
    x = last.content["x"]
    forged(path, last.seq, x=[x[0] + (moved if x[0] < 0.5 else -moved), x[1]])
    if cpu != "here":
        forged(path, 0, platform={**own_platform(), "cpu": cpu} if cpu == "elsewhere" else None)
    with gpmi.study(path) as study:
        found = study.verify()
        assert found.verdict == verdict and bool(found) == (verdict != "different") == found.agrees
        assert verdict in repr(found)
        if moved and cpu == "elsewhere":
            assert "CPU elsewhere" in (found.problems or found.rounded)[0]


def test_a_platform_is_recorded_again_where_it_changes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gpmi.storage import shared_log

    with gpmi.study(path, space=BOX, seed=0) as study:
        run(study, 2)
    monkeypatch.setattr(shared_log, "own_platform", lambda: {"cpu": "another"})
    with gpmi.study(path) as study:
        run(study, 2)
    monkeypatch.undo()
    with gpmi.study(path) as study:
        run(study, 1)
        recorded = [entry.seq for entry in study.log() if "platform" in entry.content]
        assert recorded == [0, 5, 9] and study.verify().verdict == "equal"


def test_verify_names_a_gap_and_a_changed_description(path: Path) -> None:
    with gpmi.study(path, space=BOX, seed=0) as study:
        run(study, 3)
        study.ask()
    changed(path, "DELETE FROM gpmi_events WHERE seq = 7")
    with gpmi.study(path) as study:
        changed(path, "UPDATE gpmi_studies SET description = replace(description, ':0,', ':1,')")
        changed(path, "UPDATE gpmi_events SET seq = 9 WHERE seq = 6")
        report = study.verify()
    assert any("entry 6 is missing" in problem for problem in report.problems)
    assert any("description" in problem for problem in report.problems)


def test_a_changed_description_is_not_believed(path: Path) -> None:
    with gpmi.study(path, space=BOX, seed=0) as study:
        run(study, 2)
    changed(path, "UPDATE gpmi_studies SET description = replace(description, '\"hi\":1.0', '\"hi\":3.0')")
    with pytest.raises(StudyError, match=r"description of the study 'default' .* is not that of entry 0"):
        gpmi.study(path)
    changed(path, "UPDATE gpmi_studies SET description = replace(description, '\"hi\":3.0', '\"hi\": 1.0')")
    gpmi.study(path).close()  # the same values in other words
    changed(path, "DELETE FROM gpmi_events WHERE seq = 0")
    with pytest.raises(StudyError, match="entry 0 of the study 'default' is missing"):
        gpmi.study(path)


def test_an_entry_that_cannot_be_read_is_named(path: Path) -> None:
    with gpmi.study(path, space=BOX, seed=0) as study:
        run(study, 2)
    changed(path, "UPDATE gpmi_events SET body = 'torn' WHERE seq = 2")
    with pytest.raises(StudyError, match="entry 2 of the log cannot be read"):
        gpmi.study(path)
    changed(path, "UPDATE gpmi_events SET body = '{\"number\": 9}' WHERE seq = 2")
    with pytest.raises(StudyError, match=r"entry 2 of the log \(told\) cannot be replayed"):
        gpmi.study(path)


@pytest.mark.parametrize(
    ("seq", "fields"),
    [
        *((2, {"y": y}) for y in (math.inf, -math.inf, math.nan, 1e150, True, None, "x", [1.0])),
        *((seq, {"noise_var": value}) for seq in (2, 5) for value in (-5, math.inf, True, "x")),
        *((seq, {"repeats": value}) for seq in (2, 5) for value in (0, -1, 1.5, True, "2")),
        *((seq, {"constraints": value}) for seq in (2, 5) for value in (["x"], "x", 3, [None], [True], [math.inf])),
        *((5, {"y": value}) for value in (math.inf, True, None)),
        *((seq, {"number": value}) for seq in (2, 5) for value in ("0", 0.7, True, None, -1, 99)),
        *((1, {"number": value}) for value in ("0", 0.5, False, None, -1, 10**30)),
        *((3, {"number": value}) for value in (0, 10**9)),
        (4, {"constraints": [1.0]}),
        *(
            (1, {"x": x})
            for x in ([0.5], [0.5, 7.0], "x", None, [True, False], ["0.5", "0.5"], {"a": 1}, [math.inf, 0])
        ),
        *((1, {"origin": value}) for value in ("evil", None, 3, ["policy"])),
        *((seq, {"said": value}) for seq in (1, 2) for value in ({"mu": "x"}, {"sd": True}, {"explored": 1}, [], 3)),
        *((1, {"fixed": value}) for value in ([[0, 7.0]], [["a", 1]], 3, [[5, 0.5]])),
        *((7, {"why": value}) for value in (3, ["a"], {"a": 1})),
        *((8, {"budget": value}) for value in ("x", True, -3, 0, 1.5, None, math.inf)),
        *((seq, {"time": value}) for seq in (2, 5) for value in (math.inf, -1.0, 1e18)),
        (10, {"number": 1}),
        (4, {"kind": "invented"}),
    ],
)
def test_an_entry_that_nobody_could_have_made_is_refused_by_its_number(
    path: Path, small: bytes, seq: int, fields: dict[str, Any]
) -> None:
    """Its checksum fits, so only the checks of its fields can find it."""
    path.write_bytes(small)
    forged(path, seq, **fields)
    with pytest.raises(StudyError, match=rf"entry {seq} of the log \(\w+\) cannot be replayed"):
        gpmi.study(path)


@pytest.mark.parametrize(
    ("table", "column", "value", "words"),
    [
        *(("events", "body", value, "row 2 of the table gpmi_events has .* as its body") for value in (b"\x00", b"{}")),
        *(("events", "body", value, "entry 2 of the log cannot be read") for value in ("", "[]", "null", "[" * 20_000)),
        ("events", "body", "{}", r"entry 2 of the log \(told\) cannot be replayed, .* it has no 'number'"),
        *(
            ("events", column, b"\xff", f"row 2 .* as its {column}")
            for column in ("kind", "worker", "token", "checksum")
        ),
        *(("events", "time", value, "row 2 .* as its time") for value in (b"1", "noon")),
        ("events", "kind", "invented", r"entry 2 of the log \(invented\) cannot be replayed"),
        *(("studies", "description", value, "is not that of entry 0") for value in ("", "{", "{}", "[]", "[" * 20_000)),
        ("studies", "description", b"{}", "row 1 of the table gpmi_studies has b'{}' as its description"),
        *(
            ("leases", column, b"x", f"row .* of the table gpmi_leases .* as its {column}")
            for column in ("number", "until")
        ),
        ("leases", "worker", b"x", "row 3 of the table gpmi_leases has b'x' as its worker"),
        ("leases", "until", "noon", "row 3 of the table gpmi_leases has 'noon' as its until"),
        ("schema", "version", "new", "row 1 of the table gpmi_schema has 'new' as its version"),
    ],
)
def test_a_damaged_row_is_named(path: Path, small: bytes, table: str, column: str, value: Any, words: str) -> None:
    path.write_bytes(small)
    where = "WHERE seq = 2" if table == "events" else ""
    changed(path, f"UPDATE gpmi_{table} SET {column} = ? {where}", value)
    with pytest.raises(StudyError, match=words):
        gpmi.study(path).leases()


@pytest.mark.parametrize(
    "description", [{}, [], None, 3, {"space": {}}, {"space": {"names": None, "parameters": [{"kind": "Evil"}]}}]
)
def test_an_entry_0_that_describes_nothing_is_refused(path: Path, small: bytes, description: Any) -> None:
    path.write_bytes(small)
    forged(path, 0, description=description)
    changed(path, "UPDATE gpmi_studies SET description = ?", text_of(description))
    with pytest.raises(StudyError, match="entry 0 of the study 'default' does not describe a study"):
        gpmi.study(path)
    with pytest.raises(StudyError, match="entry 0 of the study 'default' does not describe a study"):
        gpmi.study(path, space=BOX)


def test_a_name_that_is_no_text_is_named(path: Path, small: bytes) -> None:
    path.write_bytes(small)
    changed(path, "UPDATE gpmi_studies SET name = ?", b"default")
    with pytest.raises(StudyError, match="row 1 of the table gpmi_studies has b'default' as its name"):
        gpmi.study(path)


def test_a_newer_version_is_refused_with_a_sentence(path: Path) -> None:
    gpmi.study(path, space=BOX, seed=0).close()
    changed(path, "UPDATE gpmi_schema SET version = 3")
    with pytest.raises(StudyError, match=r"written by a newer gpmi .* update gpmi"):
        gpmi.study(path)


def test_version_1_is_migrated(path: Path) -> None:
    """The tables as version 1 had them, with a log of its own: checksums and suggestions still agree."""
    with gpmi.study(path, space=BOX, seed=0) as study:
        run(study, 4)
        study.ask()
    from gpmi.storage.entries import checksum

    connection = sqlite3.connect(path)
    before = ""
    for row in connection.execute("SELECT seq, kind, body, time, worker FROM gpmi_events ORDER BY seq").fetchall():
        before = checksum(before, *row, "")
        connection.execute("UPDATE gpmi_events SET checksum = ? WHERE seq = ?", (before, row[0]))
    connection.executescript(
        "DROP INDEX gpmi_events_token; ALTER TABLE gpmi_events DROP COLUMN token;"
        "DROP TABLE gpmi_leases; UPDATE gpmi_schema SET version = 1;"
    )
    connection.close()
    with gpmi.study(path) as study:
        assert len(study.trials) == 5 and study.verify().agrees
        assert study.ask().number == 4  # nobody is known to work on it
        study.tell(4, 1.0)
        run(study, 2)
        assert study.verify().agrees
    with closing(sqlite3.connect(path)) as raw:
        assert raw.execute("SELECT version FROM gpmi_schema").fetchone() == (2,)


def test_a_file_that_is_no_database(path: Path) -> None:
    path.write_bytes(b"all work and no play " * 500)
    with pytest.raises(StudyError, match="damaged, or no SQLite file"):
        gpmi.study(path, space=BOX)
    assert path.read_bytes() == b"all work and no play " * 500


def test_a_damaged_file(path: Path) -> None:
    with gpmi.study(path, space=BOX, seed=0) as study:
        run(study, 12)
    data = bytearray(path.read_bytes())
    data[4096:] = bytes(len(data) - 4096)
    path.write_bytes(bytes(data))
    with pytest.raises(StudyError, match="damaged"):
        gpmi.study(path)


@pytest.mark.parametrize(
    ("intact", "damaged", "words"),
    [
        (b"CREATE TABLE gpmi_events", b"CREATE TAB\xccE gpmi_events", "malformed database schema"),
        (b"\x06\x04\x09\x01\x01\x06\x07", b"\x06\x04\x09\x01\x01\x46\x07", "index sqlite_autoindex_gpmi_events_1"),
        (b'"budget":11', b'"budg\xe5t":11', "row 8 of the table gpmi_events has .* as its body"),
    ],
    ids=["a name that is not UTF-8", "an index that hides entries", "a text that is not UTF-8"],
)
def test_a_flipped_bit_is_named(path: Path, small: bytes, intact: bytes, damaged: bytes, words: str) -> None:
    assert small.count(intact) == 1
    path.write_bytes(small.replace(intact, damaged))
    with pytest.raises(StudyError, match=words):
        gpmi.study(path)


def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="there is no file"):
        gpmi.study(tmp_path / "no" / "run.db")
    with pytest.raises(StudyError, match="cannot be opened; check that its folder exists"):
        gpmi.study(tmp_path / "no" / "run.db", space=BOX)


def test_a_study_that_cannot_be_written_to_can_be_read(path: Path) -> None:
    with gpmi.study(path, space=BOX, seed=0) as study:
        run(study, 3)
        study.ask()
    with gpmi.study(f"sqlite:///file:{path}?mode=ro&uri=true") as study:
        assert len(study.trials) == 4 and study.verify().agrees
        with pytest.raises(StudyError, match="cannot be written to; allow writing"):
            study.ask()


def limited(study: Study, pages: int) -> None:
    """Let the file grow no further: what SQLite says then is what it says on a full disk."""
    with study._log._database.reading() as transaction:
        transaction._connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")


def test_a_full_disk_keeps_the_value_and_delivers_it_later(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with gpmi.study(path, space=BOX, seed=0) as study:
        trials = study.ask(2)
        study.tell(trials[0], 1.0)
        limited(study, 1)
        with caplog.at_level(logging.WARNING):
            told = 0
            while not study.warnings:  # until the pages that there are have no room
                limited(study, 1)
                study.tell([0.5, 0.5], 0.125 + told)
                told += 1
        assert "is full; free some space" in study.warnings[0] and "is saved in" in study.warnings[0]
        kept = list(path.with_name("run.db.spool").glob("*.json"))
        assert len(kept) == 1
        study.tell(trials[1], 3.0)  # the connection is a new one: there is space again
        assert not path.with_name("run.db.spool").exists()
        assert {t.y for t in study.trials} >= {1.0, 3.0, *(0.125 + i for i in range(told))}
        assert study.verify().agrees


def test_a_file_that_goes_away_loses_nothing(path: Path, tmp_path: Path) -> None:
    with gpmi.study(path, space=BOX, seed=0, patience=0.05) as study:
        run(study, 2)
        trial = study.ask()
        study._log._database.close()
        for name in ("run.db", "run.db-wal", "run.db-shm"):
            if (tmp_path / name).exists():
                (tmp_path / name).rename(tmp_path / f"away-{name}")
        told = study.tell(trial, 5.0)
        assert (told.number, told.y, told.status) == (2, 5.0, "told")
        assert "is gone; put it back" in study.warnings[0]
        with pytest.raises(StudyError, match="is gone"):
            study.ask()
        assert not path.exists()
        for name in ("run.db", "run.db-wal", "run.db-shm"):
            if (tmp_path / f"away-{name}").exists():
                (tmp_path / f"away-{name}").rename(tmp_path / name)
        assert study.best is not None and study.best.y == 5.0
        run(study, 2)
        assert study.verify().agrees and len(study.trials) == 5


def test_nothing_is_committed_to_a_file_that_was_removed(path: Path) -> None:
    with gpmi.study(path, space=BOX, seed=0, patience=0.05) as study:
        trial = study.ask()
        os.unlink(path)
        study.tell(trial, 5.0)
        assert "is gone" in study.warnings[0] or "was removed or replaced" in study.warnings[0]
        assert len(list(path.with_name("run.db.spool").glob("*.json"))) == 1


def test_a_lock_that_is_held_for_long_fills_the_outbox_and_the_next_start_delivers(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import gpmi.storage.database as database

    monkeypatch.setattr(database, "BUSY", 0.01)
    with gpmi.study(path, space=BOX, seed=0, patience=0.05) as study:
        trials = study.ask(2)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        study.tell(trials[0], 1.5)
        study.fail(trials[1], "diverged")
        assert "another process holds the lock" in study.warnings[0]
        with pytest.raises(Unavailable):
            study.ask()
        other.execute("ROLLBACK")
        other.close()
    with gpmi.study(path) as study:
        assert [t.status for t in study.trials] == ["told", "failed"] and study.trials[0].y == 1.5
        assert study.trials[1].why == "diverged"
    assert not path.with_name("run.db.spool").exists()


def _identity(path: Path) -> str:
    with gpmi.study(path) as study:
        return study.identity


def test_what_a_study_does_not_take_is_set_aside(path: Path) -> None:
    gpmi.study(path, space=BOX, seed=0).close()
    outbox = Outbox(_identity(path), path)
    outbox.keep({"kind": "told", "number": 99, "y": 1.0, "token": "t"})
    with gpmi.study(path) as study:
        assert study.trials == () and "was refused" in study.warnings[0]
        assert len(list(path.with_name("run.db.spool").glob("*.refused"))) == 1


def test_an_outbox_without_any_folder_hands_the_value_to_the_caller(tmp_path: Path) -> None:
    outbox = Outbox("a", tmp_path / "x" / "y")
    outbox._folders = (tmp_path / "x" / "y", tmp_path / "x" / "z")
    with pytest.raises(StudyError, match=r'save this value and call tell\(\) again later: .*"y":1.5'):
        outbox.keep({"token": "t", "y": 1.5})


def test_an_answer_that_was_lost_on_the_way_is_not_written_twice(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit happens, and the database seems to be gone just then: everything is tried again, nothing twice."""
    from contextlib import contextmanager

    with gpmi.study(path, space=BOX, seed=0) as study:
        run(study, 2)
        writing, lost = study._log._database.writing, [True]

        @contextmanager
        def unlucky() -> Any:
            with writing() as transaction:
                yield transaction
            lost[0] = not lost[0]
            if not lost[0]:
                raise Unavailable("the connection was lost")

        monkeypatch.setattr(study._log._database, "writing", unlucky)
        for _ in range(4):
            trial = study.ask()
            study.tell(trial, f(trial.x))
        study.correct(0, 9.0)
        monkeypatch.undo()
        kinds = [entry.kind for entry in study.log()]
        assert kinds == ["created", *["asked", "told"] * 6, "corrected"]
        assert study.verify().agrees


def test_threads_share_a_study(path: Path) -> None:
    from threading import Thread

    with gpmi.study(path, space=BOX, seed=0) as study:
        threads = [Thread(target=run, args=(study, 4)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(t.number for t in study.trials) == list(range(12))
        assert all(t.status == "told" for t in study.trials) and study.verify().agrees


@pytest.mark.parametrize("seed", range(4))
def test_any_history_replays_and_verifies(path: Path, seed: int) -> None:
    """Two openings of one study say what they like; a third one, later, has the same trials and asks the same."""
    rng = np.random.default_rng(seed)
    goal: Any = "min" if seed % 2 else "max"
    studies = [
        gpmi.study(path, space=MIXED, seed=seed, goal=goal, aim="earn" if seed > 1 else "find") for _ in range(2)
    ]
    given: list[gpmi.Trial] = []
    for _ in range(40):
        study, trial = studies[rng.integers(2)], given[rng.integers(len(given))] if given else None
        word = rng.choice(
            ["ask", "ask", "tell", "tell", "tell", "fail", "forget", "correct", "retract", "reject", "point"]
        )
        try:
            if word == "ask" or trial is None:
                given.append(study.ask())
            elif word == "tell":
                study.tell(trial, rng.normal(), noise_var=float(rng.choice([0.0, 0.1])))
            elif word == "correct":
                study.correct(trial, rng.normal(), repeats=2)
            elif word == "point":
                study.tell(trial.x, rng.normal())
            else:
                getattr(study, word)(trial)
        except ValueError as error:
            assert "trial" in str(error)  # the word does not fit the trial; nothing was written
    shown = [repr(trial) for trial in studies[0].trials]
    assert shown == [repr(trial) for trial in studies[1].trials]
    for study in studies:
        study.close()
    with gpmi.study(path) as later:
        assert [repr(trial) for trial in later.trials] == shown
        later.ask()
        report = later.verify()
        assert report.agrees and report.suggestions > 5, report


def test_descriptions_of_all_kinds_of_parameters_come_back(path: Path) -> None:
    from scipy.optimize import LinearConstraint

    space = {
        "o": gpmi.Choice([16, 32, 64], ordered=True),
        "r": range(2, 9),
        "c": 5,
        "i": gpmi.Int(1, 1000, log=True, step=1),
        "x": (0.0, 1.0),
    }
    start = [{"o": 32, "r": 3, "c": 5, "i": 10, "x": 0.25}]
    rule = LinearConstraint(np.array([[0.0, 0.0, 0.0, 0.0, 1.0]]), -np.inf, 0.75)
    with gpmi.study(path, space=space, x0=start, constraints=[rule, gpmi.Forbidden(o=16, r=[2, 3])], seed=0) as study:
        assert study.ask().x == start[0]
        study.tell(0, 1.0)
        for _ in range(5):
            study.tell(trial := study.ask(), float(trial.x["x"]))
    with gpmi.study(path, space=space, x0=start[0], constraints=[rule, gpmi.Forbidden(o=16, r=[2, 3])]) as study:
        assert study.verify().agrees and all(trial.x["x"] <= 0.75 for trial in study.trials)


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="the kernel does not list its locks")
def test_who_waits_for_a_file_comes_in_order_and_does_not_wait_for_ever(tmp_path: Path) -> None:
    from threading import Thread

    from gpmi.storage.fair_lock import fair_lock

    came: list[int] = []

    def waits(number: int) -> None:
        with fair_lock(tmp_path / "queue", FOR_EVER):
            came.append(number)

    with fair_lock(tmp_path / "queue", FOR_EVER):
        threads = []
        for number in range(5):
            threads.append(Thread(target=waits, args=(number,)))
            threads[-1].start()
            wait_until(lambda number=number: waiters(tmp_path) == number + 1)  # type: ignore[misc]
        with fair_lock(tmp_path / "queue", 0.01):  # it has waited long enough
            assert came == []
    for thread in threads:
        thread.join()
    assert came == [0, 1, 2, 3, 4]
    with (
        fair_lock(tmp_path / "queue", FOR_EVER),
        fair_lock(tmp_path / "no" / "queue", FOR_EVER),
        fair_lock(None, FOR_EVER),
    ):
        pass


def test_a_queue_is_cleared_when_nobody_is_in_it(tmp_path: Path) -> None:
    from gpmi.storage.fair_lock import fair_lock, remove_lock_files

    with fair_lock(tmp_path / "queue", FOR_EVER):
        remove_lock_files(tmp_path / "queue")
        assert len(list(tmp_path.iterdir())) == 2
    for _ in range(2):
        remove_lock_files(tmp_path / "queue")
        assert not list(tmp_path.iterdir())
    remove_lock_files(None)


def test_workers_and_a_study_together(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    r = gpmi.maximize(_parabola, [(0.0, 1.0)], budget=8, seed=0, workers=2, study=path)
    assert len(r.trials) == 8 and r.reason == "budget"
    with gpmi.study(path) as study:
        assert study.optimize(_parabola, budget=12, workers=3).reason == "budget"
        assert [trial.number for trial in study.trials] == list(range(12)) and study.verify().agrees


def _parabola(x: Any) -> float:
    return -((float(x[0]) - 0.3) ** 2)


def test_a_value_told_after_a_retraction_is_not_dropped_in_silence(tmp_path: Path) -> None:
    with gpmi.study(tmp_path / "run.db", space=[(0.0, 1.0)], seed=0) as study:
        trial = study.ask()
        study.tell(trial, 3.7)
        study.retract(trial)
        with pytest.raises(ValueError, match="was retracted; give it a value again with correct"):
            study.tell(trial, 3.7)
        assert study.correct(trial, 3.7).y == 3.7


def test_units_are_kept_and_contradict_nothing(path: Path) -> None:
    space = {"warm": gpmi.Real(20.0, 90.0, unit="°C"), "n": gpmi.Int(1, 5)}
    gpmi.study(path, space=space, seed=0).close()
    plain = {"warm": (20.0, 90.0), "n": gpmi.Int(1, 5, unit="ml")}
    with gpmi.study(path, space=plain) as again:
        assert [one.unit for one in again.space.parameters] == ["°C", ""]  # type: ignore[attr-defined]
        assert '"unit"' not in text_of(described({"n": gpmi.Int(1, 5)}, {}))  # studies of before stay as they are


def test_who_works_on_what_can_be_read(path: Path) -> None:
    with gpmi.study(path, space=[(0.0, 1.0)], seed=0) as study:
        study.ask(lease=math.inf)
        study.tell(study.ask(), 1.0)
        (lease,) = study.leases().values()
        assert lease.number == 0 and lease.until > 1e17
        assert study.seq == study.log()[-1].seq and [entry.seq for entry in study.log(after=study.seq - 1)] == [
            study.seq
        ]


def test_a_study_is_closed_while_another_thread_reads(path: Path) -> None:
    """SQLite crashes the process if a connection is closed in the middle of a query."""
    for _ in range(10):
        study = gpmi.study(path, space=[(0.0, 1.0)], seed=0)
        reading = [threading.Thread(target=lambda one=study: [one.log() for _ in range(20)]) for _ in range(3)]
        for thread in reading:
            thread.start()
        study.close()
        for thread in reading:
            thread.join()
        study.close()


def test_without_a_name_the_only_study_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    gpmi.study(path, "mine", space=BOX, seed=3).close()
    with gpmi.study(path) as study:
        assert study.name == "mine" and study.seed == 3
    gpmi.study(path, "other", space=BOX).close()
    with pytest.raises(ValueError, match=r"no study 'default' in .*: it has 'mine', 'other'; give one of these names"):
        gpmi.study(path)
    gpmi.study(path, space=BOX, seed=4).close()  # with a space, "default" is made
    with gpmi.study(path) as study:
        assert study.name == "default" and study.seed == 4


def test_an_argument_that_tell_does_not_have_is_refused(path: Path) -> None:
    with gpmi.study(path, space=[(0.0, 1.0)], seed=0) as study:
        trial = study.ask()
        for wrong in ("why", "noise"):
            with pytest.raises(TypeError, match=f"{wrong} is not an argument of tell; "):
                study.tell(trial, 1.0, **{wrong: 1})
        assert study.pending


def test_values_that_are_told_together_fill_pending_trials_as_tell_does(path: Path) -> None:
    values = [0.5, 0.25]
    with gpmi.study(path, space=BOX, seed=0) as study:
        _, second = study.ask(2)
        known = [(second.x, values[0]), ([0.25, 0.75], values[1])]
        told = study.optimizer.tell_all(known)
        assert [(t.number, t.y, t.origin) for t in told] == [(1, 0.5, second.origin), (2, 0.25, "user")]
        assert [t.number for t in study.pending] == [0] == list(study.leases())
        assert [t.number for t in study.optimizer.tell_all(known)] == [1, 2]  # again: nothing new
        assert study.tell(second, 0.75).number == 3  # the late value of its worker is one more observation
        plain = gpmi.Optimizer(BOX, seed=0)
        plain.ask(2)
        assert [t.number for t in plain.tell_all(known)] == [1, 2]
    with gpmi.study(path) as study:
        assert [t.y for t in study.trials] == [None, 0.5, 0.25, 0.75] and study.verify().agrees


# Ctrl-C, and threads


@pytest.mark.parametrize("batch", [1, 256])
def test_a_replay_that_was_interrupted_goes_on(path: Path, monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    monkeypatch.setattr("gpmi.storage.shared_log.BATCH", batch)
    make, keys = Log._list, [0]

    def pressed(self: Log, trial: gpmi.Trial) -> None:
        if trial.number == 2 and not keys[0]:
            keys[0] += 1
            signal.raise_signal(signal.SIGINT)
        make(self, trial)

    with gpmi.study(path, space=BOX, seed=0) as one, gpmi.study(path) as two:
        run(one, 4)
        monkeypatch.setattr(Log, "_list", pressed)
        with pytest.raises(KeyboardInterrupt):
            two.refresh()
        assert len(two.optimizer.trials) == (3 if batch == 1 else 4)
        assert [t.y for t in two.trials] == [t.y for t in one.trials] and not two.warnings
        run(two, 1)
        assert two.verify().agrees


def test_a_roll_back_that_is_interrupted_is_finished(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clear, keys = Log._clear, [0]

    def pressed(self: Log) -> None:
        clear(self)
        keys[0] += 1
        signal.raise_signal(signal.SIGINT)

    with gpmi.study(path, space=BOX, seed=0) as study:
        run(study, 3)
        monkeypatch.setattr(Log, "_clear", pressed)
        monkeypatch.setattr(study._log, "_store_last", lambda *_, **__: 1 / 0)
        with pytest.raises((ZeroDivisionError, KeyboardInterrupt)):
            study.ask()
        monkeypatch.undo()
        assert keys == [1] and len(study.optimizer.trials) == 3
        run(study, 1)
        assert [t.number for t in study.trials] == [0, 1, 2, 3] and study.verify().agrees


def test_reading_does_not_wait_for_a_thread_that_waits_for_the_database(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts, read = [0], []

    def down() -> Any:
        attempts[0] += 1
        raise Unavailable("the server is down")

    with gpmi.study(path, space=BOX, seed=0, patience=600.0) as study:
        run(study, 3)
        trial = study.ask()
        monkeypatch.setattr(study._log._database, "writing", down)
        teller = threading.Thread(target=study.tell, args=(trial, 1.0))
        reader = threading.Thread(
            target=lambda: read.append((study.optimizer.best, study.optimizer.trials, study.optimizer.ledger.regret)),
            daemon=True,
        )
        teller.start()
        try:
            wait_until(lambda: attempts[0] > 1)
            reader.start()
            reader.join(60.0)
            done, waits = not reader.is_alive(), teller.is_alive()
        finally:
            monkeypatch.undo()
        teller.join()
        assert done and waits and len(read[0][1]) == 4
        assert study.trials[3].y == 1.0 and study.best == study.trials[3] and study.verify().agrees


class Pressed:
    """Press Ctrl-C before one of the lines of gpmi.storage that a call executes."""

    def __init__(self, at: int) -> None:
        self.at, self.lines = at, 0

    def __call__(self, work: Callable[[], Any]) -> bool:
        """Return whether work() was interrupted."""
        before = sys.gettrace()
        sys.settrace(self.trace)
        try:
            work()
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(before)
        return False

    def trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith(os.path.dirname(storage.__file__)):
            return None
        if event in ("call", "line") and not ends_block(frame):
            self.lines += 1
            if self.lines == self.at:
                signal.raise_signal(signal.SIGINT)
        return self.trace


def ends_block(frame: FrameType) -> bool:
    """Whether the end of a `with` block comes next: no handler of a signal runs just before that."""
    code, at = frame.f_code.co_code, max(frame.f_lasti, 0)
    return code[at : at + 6 : 2] == bytes([dis.opmap["LOAD_CONST"]]) * 3


@pytest.mark.parametrize("name", ["ask", "tell", "forget", "tell_all", "refresh"])
def test_ctrl_c_at_any_line_of_a_study_loses_and_blocks_nothing(path: Path, name: str) -> None:
    """After each one the study goes on at once: no false error, no trial that nobody gets."""
    prior: dict[str, Any] = {"policy": gpmi.GPMI(), "kernel": gpmi.kernels.RBF(0.3), "noise_var": 1e-2}
    rng = np.random.default_rng(0)  # which lines: all of them take a minute
    asked: list[gpmi.Trial] = []
    with gpmi.study(path, space=GRID, seed=0, **prior) as study, gpmi.study(path) as other:
        calls: dict[str, Callable[[], Any]] = {
            "ask": lambda: asked.extend(study.ask(2)),
            "tell": lambda: study.tell(asked[0], 0.25),
            "forget": lambda: study.forget(asked[0]),
            "tell_all": lambda: study.optimizer.tell_all([(GRID[3], float(len(study.trials))), (GRID[5], 0.5)]),
            "refresh": lambda: other.refresh(),
        }
        count, interrupted = Pressed(-1), 0
        for attempt in range(16):
            asked[:] = [study.ask()] if name in ("tell", "forget") else []
            pressed = count if attempt == 0 else Pressed(int(rng.integers(1, count.lines + 1)))
            if pressed(calls[name]):
                interrupted += 1
                if name in ("tell", "forget") and any(t.number == asked[0].number for t in study.pending):
                    calls[name]()  # it had not been stored
            if name == "ask":
                for trial in asked:
                    study.tell(trial, 0.5)
            while (trial := study.ask()).number < len(study.trials) - 1:  # a trial that nobody got is offered first
                study.tell(trial, 0.5)
            study.tell(trial, 0.5)
            assert not study.pending and not study.warnings
            assert sum(t.y == 0.25 for t in study.trials) == (attempt + 1 if name == "tell" else 0)
        assert interrupted > 10
        assert repr(other.trials) == repr(study.trials) and other.verify().agrees and not other.warnings
