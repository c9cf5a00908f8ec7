"""Who evaluates what: leases, loops that share a study, answers of several workers, and what a run leaves behind."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from waiting import FOR_EVER, LIMIT, is_running, wait_until

import gpmi

pytest.importorskip("sqlalchemy")

from gpmi.run.study import Study
from gpmi.storage import heartbeat
from gpmi.storage.errors import Unavailable

BOX = [(0.0, 1.0), (0.0, 1.0)]
ELSEWHERE = "elsewhere:abc:1:2"  # a worker of which nobody here can know whether it lives


def f(x: Any) -> float:
    return -float(((np.asarray(x) - 0.3) ** 2).sum())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.db"


def elsewhere(path: Path, **more: Any) -> Study:
    """The study as another machine has it open."""
    study = gpmi.study(path, **more)
    study._log.worker = ELSEWHERE
    return study


def end_leases(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE gpmi_leases SET until = 1.0")
        connection.commit()


# Answers


def test_the_values_of_two_workers_for_one_trial_both_count(path: Path) -> None:
    with gpmi.study(path, space=BOX, seed=0) as holder, elsewhere(path) as other:
        trial = holder.ask()
        other.tell(0, 1.0)  # it never had the trial
        late = holder.tell(trial, 2.0)
        assert (late.number, late.y, late.status) == (1, 2.0, "told") and np.array_equal(late.x, trial.x)
        assert holder.tell(trial, 2.0).number == 1 and other.tell(0, 1.0).number == 0  # each delivery once
        assert holder.tell(trial, 1.0).number == 0  # the value that is there already
        for study in (holder, other):
            with pytest.raises(ValueError, match=r"trial 0 already has the value [12]\.0 from this worker"):
                study.tell(trial, 3.0)
        with pytest.raises(ValueError, match="x is trial 1, which is not pending: it is told"):
            other.fail(1)
        assert [t.y for t in other.trials] == [1.0, 2.0]
        assert [entry.worker for entry in other.log() if entry.kind == "told"] == [ELSEWHERE, holder.worker]
        assert other.verify().agrees


def test_what_was_retracted_or_rejected_does_not_count_in_the_budget(path: Path) -> None:
    with gpmi.study(path, space=BOX, seed=0, budget=4) as study:
        study.optimize(f)
        study.retract(1)
        study.reject(study.ask())
        assert study.optimize(f).reason == "budget"
        assert [t.status for t in study.trials] == ["told", "retracted", "told", "told", "rejected", "told"]


def test_values_that_nobody_asked_for_leave_the_budget_and_the_horizon_as_they_are(path: Path) -> None:
    known = [(x, f(x)) for x in np.random.default_rng(0).random((9, 2))]
    with gpmi.study(path, space=BOX, seed=0, budget=5) as study:
        study.optimizer.tell_all(known)
        assert study.optimize(f).reason == "budget"
        plain = gpmi.maximize(f, BOX, budget=5, seed=0, earlier=known)
        assert [tuple(t.x) for t in study.trials] == [tuple(t.x) for t in plain.trials] and len(plain.trials) == 14


# Leases


def test_the_lease_of_one_trial_lasts_as_long_as_was_said(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "RENEWALS", 10.0 * FOR_EVER)  # one every 0.1 s; none of the long one in its time
    with gpmi.study(path, space=BOX, seed=0, lease=FOR_EVER) as study:
        long, endless = study.ask(lease=1e9), study.ask(lease=float("inf"))
        before = study.leases()[long.number].until
        short = study.ask()  # the thread that waits for the long one looks earlier now
        wait_until(lambda: study.leases()[long.number].until > before)
        until = {number: lease.until for number, lease in study.leases().items()}
        assert abs(until[long.number] - until[short.number] - (1e9 - FOR_EVER)) < 1e-3  # renewed at the same moment
        assert until[endless.number] > 1e17


# Loops


@pytest.mark.parametrize("more", [{}, {"workers": 2}], ids=["one", "workers"])
def test_a_run_takes_over_what_a_worker_leaves_that_dies_late(
    path: Path, more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    gpmi.study(path, space=BOX, seed=0, budget=3).close()
    dead = elsewhere(path, lease=FOR_EVER)
    assert dead.ask().number == 0
    dead._log._heartbeat.stop()
    with gpmi.study(path) as study:
        hand_out, waited = study._log.hand_out, []

        def handed_out(*arguments: Any, **named: Any) -> Any:
            found = hand_out(*arguments, **named)
            if found == "wait":
                waited.append(found)
                end_leases(path)  # as time does
            return found

        monkeypatch.setattr(study._log, "hand_out", handed_out)
        assert study.optimize(f, **more).reason == "budget" and waited
        assert [t.status for t in study.trials] == ["told"] * 3
        assert study.verify().agrees


@pytest.mark.parametrize("more", [{}, {"workers": 2}], ids=["one", "workers"])
def test_what_a_run_leaves_that_f_has_ended_is_evaluated_by_the_next(path: Path, more: dict[str, Any]) -> None:
    def breaks(x: Any) -> float:
        raise RuntimeError("not today")

    with gpmi.study(path, space=BOX, seed=0, budget=2) as study:
        with pytest.raises(RuntimeError, match="not today"):
            study.optimize(breaks, **more)
        with gpmi.study(path) as other:
            assert other.ask().number == 0  # at once: it was given back, though the study is still open
            other.forget(0)
        assert study.optimize(f, **more).reason == "budget"
        assert sum(t.status == "told" for t in study.trials) == 2


def test_what_is_in_the_air_when_the_database_goes_away_is_waited_for_and_kept(path: Path, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    begun.mkdir()

    def slow(x: Any) -> float:
        (begun / str(os.getpid())).touch()
        wait_until(lambda: len(list(begun.iterdir())) == 3)
        return f(x)

    with gpmi.study(path, space=BOX, seed=0, budget=5, patience=0.05) as study:
        write, words = study._log._database.writing, []

        def gone() -> Any:
            words.append("asked")
            if len(words) > 3:  # three points were asked
                raise Unavailable("the server went away")
            return write()

        study._log._database.writing = gone  # type: ignore[method-assign]
        with pytest.raises(gpmi.StudyError, match="went away"):
            study.optimize(slow, workers=3)
        study._log._database.writing = write  # type: ignore[method-assign]
        assert [t.status for t in study.trials] == ["told"] * 3  # from the outbox
        assert study.verify().agrees and not path.with_name("run.db.spool").exists()


def test_a_loop_does_not_wait_for_what_was_asked_beside_it(path: Path) -> None:
    with gpmi.study(path, space=BOX, seed=0, budget=2) as study:
        by_hand = study.ask()
        assert study.optimize(f).reason == "budget"
        assert [t.status for t in study.trials] == ["pending", "told"]
        study.tell(by_hand, 1.0)


# The end of a process

RUN = """
import os, pathlib, sys, time, gpmi
def f(x):
    pathlib.Path(sys.argv[1], str(os.getpid())).touch()
    time.sleep(600.0)
    return 0.0
gpmi.maximize(f, [(0.0, 1.0)], budget=4, seed=0, study=sys.argv[2], **eval(sys.argv[3]))
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are not shown as files")
@pytest.mark.parametrize(
    ("more", "number"), [("{'workers': 2}", signal.SIGTERM), ("{'timeout': 600.0}", signal.SIGHUP)]
)
def test_a_run_that_is_asked_to_end_ends_its_evaluations(
    path: Path, tmp_path: Path, more: str, number: signal.Signals
) -> None:
    folder = tmp_path / "processes"
    folder.mkdir()
    count = 2 if "workers" in more else 1
    run = subprocess.Popen([sys.executable, "-c", RUN, str(folder), str(path), more])
    wait_until(lambda: len(list(folder.iterdir())) == count)
    begun = [int(one.name) for one in folder.iterdir()]
    assert all(map(is_running, begun))
    run.send_signal(number)
    assert run.wait(LIMIT) == 128 + number
    wait_until(lambda: not any(map(is_running, begun)))
    with gpmi.study(path) as study:
        assert study.ask().number == 0 and len(study.trials) == count  # given back


def test_a_handler_of_the_user_is_left_alone() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        gpmi.maximize(lambda x: os.kill(os.getppid(), signal.SIGTERM) or 0.0, BOX, budget=2, seed=0, workers=1)
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)


def test_two_values_of_a_trial_that_wait_for_the_database_are_both_kept(path: Path) -> None:
    with gpmi.study(path, space=[(0.0, 1.0)], seed=0, patience=0.2) as study:
        trial = study.ask()
        away = path.rename(path.with_name("away.db"))
        study.tell(trial, 1.0)
        study.tell(trial, 2.0)
        away.rename(path)
        assert [one.y for one in study.trials] == [1.0]  # the second one is refused, as with a database at hand
        assert any("2.0" in one.read_text() for one in path.parent.rglob("*.refused"))


def test_a_trial_that_ctrl_c_kept_from_its_caller_is_offered_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suggest = gpmi.Optimizer._compute_suggestion
    presses = [signal.SIGINT]

    def pressed(self: gpmi.Optimizer, *arguments: Any) -> Any:
        if presses:
            os.kill(os.getpid(), presses.pop())
        return suggest(self, *arguments)

    with gpmi.study(path, space=[(0.0, 1.0)], seed=0, budget=3) as study:
        monkeypatch.setattr(gpmi.Optimizer, "_compute_suggestion", pressed)
        with pytest.raises(KeyboardInterrupt):
            study.ask()
        end_leases(path)  # as time does: nobody renews it
        result = study.optimize(lambda x: float(x[0]))
        assert len(result.trials) == 3 and not study.pending
