"""Studies whose fidelity has steps: every reported value is durable before the answer, stored once, and replayed."""

from __future__ import annotations

import json
import math
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import gpmi
from gpmi import Fidelity

pytest.importorskip("sqlalchemy")

from gpmi.run.study import Study
from gpmi.storage.entries import checksum
from gpmi.storage.errors import StudyError, Unavailable
from gpmi.storage.outbox import Outbox
from gpmi.storage.serialization import text_of

LAST = 27
SPACE = {"a": (0.0, 1.0), "epoch": Fidelity(1, LAST)}
ELSEWHERE = "elsewhere:abc:1:2"  # a worker of which nobody here can know whether it lives


def value(x: Any, step: int) -> float:
    return -((x["a"] - 0.3) ** 2) - 1.0 / step


def curve(run: Any, trial: Any, begin: int = 1, end: int = LAST) -> int:
    """Report the steps of a trial until the answer is to stop; return the last step."""
    for step in range(begin, end + 1):
        if run.report(trial, step, value(trial.x, step)) == "stop":
            return step
    return end


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.db"


def made(path: Path, **options: Any) -> Study:
    return gpmi.study(path, **{"space": SPACE, "seed": 0, **options})


def elsewhere(path: Path, name: str = ELSEWHERE) -> Study:
    """The study as another machine has it open."""
    study = gpmi.study(path)
    study._log.worker = name
    return study


def end_leases(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE gpmi_leases SET until = 0.0")
        connection.commit()


def steps(study: Study, number: int = 0) -> list[int]:
    return [report.step for report in study.trials[number].curve]


def kinds(study: Study) -> list[str]:
    return [entry.kind for entry in study.log()]


# Replay


def test_a_study_asks_and_stops_as_an_optimizer_in_memory_does(path: Path) -> None:
    optimizer = gpmi.Optimizer(SPACE, seed=0)
    with made(path) as study:
        for _ in range(12):
            optimizer.ask()
            own, trial = optimizer.pending[-1], study.ask()
            assert own.x == trial.x
            assert curve(optimizer, own) == curve(study, trial)
        plain = [(t.status, t.y, t.why, [(r.step, r.y) for r in t.curve]) for t in optimizer.trials]
        assert [(t.status, t.y, t.why, [(r.step, r.y) for r in t.curve]) for t in study.trials] == plain
        assert {"told", "stopped"} == {t.status for t in study.trials}
        assert study.verify().verdict == "equal"
        before = study.trials
    with gpmi.study(path) as study:
        assert [vars(t) for t in study.trials] == [vars(t) for t in before]
        assert study.ask().x == optimizer.ask()


def test_a_report_and_the_stop_that_it_brings_are_one_entry(path: Path) -> None:
    with made(path) as study:
        stopped = [curve(study, study.ask()) < LAST for _ in range(8)].index(True)
        entries = [entry for entry in study.log() if entry.content.get("number") == stopped]
        assert [e.kind for e in entries] == ["asked", *["reported"] * len(steps(study, stopped))]
        assert entries[-1].content["stopped"].startswith("will hardly win")
        assert study.trials[stopped].ended == entries[-1].time
        assert stopped not in study.leases()


def test_a_stop_that_was_not_decided_so_is_found_by_verify(path: Path) -> None:
    with made(path) as study:
        for _ in range(8):
            curve(study, study.ask())
        entries = study.log()
        seq = next(e.seq for e in entries if "stopped" in e.content)
        going = next(e.seq for e in entries if e.kind == "reported" and "stopped" not in e.content)
    forged(path, seq, remove=("stopped",))
    with gpmi.study(path) as study:
        assert any(
            f"entry {seq}, trial" in problem and "would be stopped" in problem for problem in study.verify().problems
        )
    forged(path, seq, stopped="will hardly win")
    forged(path, going, stopped="a whim")
    with gpmi.study(path) as study:
        assert any("it was stopped at step 1" in problem for problem in study.verify().problems)


@pytest.mark.parametrize(
    "fidelity",
    [
        Fidelity(1, 9),
        Fidelity(2, 60, cost={10: 15, 60: 90.5}),
        Fidelity(["coarse", "fine"]),
        Fidelity({1: 0.5, 2.5: 3, "fine": 60}, unit="mesh"),
    ],
    ids=repr,
)
def test_a_fidelity_comes_back_from_a_study_as_it_was(path: Path, fidelity: Fidelity) -> None:
    space = {"a": (0.0, 1.0), "how": fidelity}
    with made(path, space=space) as study:
        for _ in range(3):
            trial = study.ask()
            study.tell(trial, trial.x["a"])
    with gpmi.study(path, space=space) as study:
        again = study.space.fidelity
        assert again is not None and again.fidelity == fidelity and again.fidelity.unit == fidelity.unit
        assert study.verify().verdict == "equal"
    with pytest.raises(ValueError, match="but that of the study is"):
        gpmi.study(path, space={"a": (0.0, 1.0), "how": Fidelity(1, 7)})


def test_stopped_trials_count_in_the_budget_of_a_study(path: Path) -> None:
    with made(path, budget=6) as study:
        for _ in range(6):
            curve(study, study.ask())
        assert any(t.status == "stopped" for t in study.trials)
        assert study.optimizer.evaluated == 6 and study.result().reason == "budget"


# Once


def test_the_same_value_of_a_step_is_stored_once_and_another_one_is_refused(path: Path) -> None:
    with made(path) as study:
        trial = study.ask()
        for _ in range(3):
            assert study.report(trial, 1, 0.5) == "continue"
        with pytest.raises(ValueError, match=r"step 1 of trial 0 was 0.5; report each step once"):
            study.report(trial, 1, 0.6)
        assert study.report(trial, 4, 0.7) == "continue"
        with pytest.raises(ValueError, match="step is 2, but trial 0 is at 4; report in order"):
            study.report(trial, 2, 0.6)
        assert kinds(study) == ["created", "asked", "reported", "reported"] and steps(study) == [1, 4]


def test_a_commit_whose_acknowledgement_was_lost_is_not_repeated(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with made(path) as study:
        trial, write, lost = study.ask(), study._log._write, list[int]()

        def loses(*arguments: Any, **named: Any) -> Any:
            result = write(*arguments, **named)
            if not lost:
                lost.append(1)
                raise Unavailable("gone")
            return result

        monkeypatch.setattr(study._log, "_write", loses)
        assert study.report(trial, 1, 0.5) == "continue" and study.report(trial, 2, 0.6) == "continue"
        assert kinds(study) == ["created", "asked", "reported", "reported"] and steps(study) == [1, 2]
    assert not path.with_name("run.db.spool").exists()


def test_the_value_at_the_target_is_that_of_the_trial(path: Path) -> None:
    with made(path) as study:
        trial = study.ask()
        study.report(trial, 1, 0.5)
        assert study.report(trial, LAST, 0.9) == "stop" == study.report(trial, LAST, 0.9)
        (told,) = study.trials
        assert (told.status, told.y, steps(study)) == ("told", 0.9, [1, LAST])
        assert kinds(study) == ["created", "asked", "reported", "told"]


def test_a_stopped_trial_may_go_on_and_is_leased_again(path: Path) -> None:
    with made(path) as study:
        while (last := curve(study, trial := study.ask())) == LAST:
            pass
        assert trial.number not in study.leases()
        study.report(trial, last + 1, value(trial.x, last + 1))
        assert study.trials[trial.number].status == "pending" and trial.number in study.leases()
        study.tell(trial, 0.5)
        assert study.trials[trial.number].y == 0.5 and len(study.trials) == trial.number + 1
        assert study.verify().agrees
        before = study.trials
    with gpmi.study(path) as study:
        assert [vars(t) for t in study.trials] == [vars(t) for t in before]


def test_a_value_at_the_target_of_a_stopped_trial_is_its_value(path: Path) -> None:
    with made(path) as study:
        while curve(study, trial := study.ask()) == LAST:
            pass
        study.tell(trial, 0.7)
        assert study.trials[-1].number == trial.number and study.trials[-1].status == "told"
        while curve(study, trial := study.ask()) == LAST:
            pass
        study.fail(trial, "too late")
        assert study.trials[-1].status == "stopped"


# Other workers


def test_a_trial_that_is_handed_on_keeps_its_values_and_goes_on_where_they_end(path: Path) -> None:
    with made(path) as study:
        other = elsewhere(path)
        trial = other.ask()
        for step in (1, 2, 3):
            other.report(trial, step, 0.1 * step)
        other._log._heartbeat.stop()
        end_leases(path)
        again = study.ask()
        assert again.number == trial.number and len(again.curve) == 3
        assert [study.report(again, step, 0.2 * step) for step in (1, 2, 3)] == ["continue"] * 3  # another training
        study.report(again, 4, 0.8)
        assert [(r.step, r.y) for r in study.trials[0].curve] == [(1, 0.1), (2, 0.2), (3, 0.1 * 3), (4, 0.8)]
        assert other.report(trial, 4, 0.4) == "stop"  # from the worker that has lost it
        assert study.report(again, LAST, 0.9) == "stop"
        assert other.report(trial, 5, 0.5) == "stop" and other.report(trial, 5, 0.5) == "stop"
        assert other.warnings and "stored without effect" in other.warnings[-1]
        late = [entry.content for entry in study.log() if entry.content.get("late")]
        assert [(one["step"], one["y"]) for one in late] == [(4, 0.4), (5, 0.5)]
        assert study.trials[0].y == 0.9 and steps(study) == [1, 2, 3, 4, LAST]
        assert study.verify().agrees
        before = study.trials
        other.close()
    with gpmi.study(path) as study:
        assert [vars(t) for t in study.trials] == [vars(t) for t in before]


@pytest.mark.parametrize("end", ["tell", "fail", "reject", "forget", "retract"])
def test_a_report_to_a_trial_that_has_ended_is_stored_without_effect(path: Path, end: str) -> None:
    with made(path) as study, elsewhere(path) as other:
        trial = study.ask()
        study.report(trial, 1, 0.5)
        if end in ("tell", "retract"):
            other.tell(trial.number, 0.9)
        if end != "tell":
            getattr(other, end)(trial.number)
        before = [vars(t) for t in study.trials]
        assert study.report(trial, 2, 0.6) == "stop" == study.report(trial, 2, 0.6)
        assert [vars(t) for t in study.trials] == before
        assert [e.content["y"] for e in study.log() if e.content.get("late")] == [0.6]
        assert study.verify().agrees
    with gpmi.study(path) as study:
        assert [vars(t) for t in study.trials] == before


def test_the_lease_of_a_trial_goes_on_while_its_curve_runs(path: Path) -> None:
    with made(path) as study:
        trial = study.ask()
        curve(study, trial, end=LAST - 1)
        assert trial.number in study.leases() and trial.number in study._log._heartbeat._held
        assert study.ask().number == trial.number + 1


def test_another_process_may_report_by_number(path: Path) -> None:
    with made(path) as study, elsewhere(path) as other:
        trial = study.ask()
        assert other.report(trial.number, 1, 0.5) == "continue" == study.report(trial, 1, 0.5)
        assert study.report(trial, 2, 0.6) == "continue"
        assert steps(other) == [1, 2]


# The outbox


def away(study: Study, path: Path) -> Path:
    study._log._database.close()
    for end in ("-wal", "-shm"):
        assert not path.with_name(path.name + end).exists() or path.with_name(path.name + end).unlink() is None
    return path.rename(path.with_name("away.db"))


def test_reports_wait_for_the_database_in_their_order(path: Path) -> None:
    with made(path, patience=0.05) as study:
        for _ in range(4):
            curve(study, study.ask())
        trial = study.ask()
        study.report(trial, 1, -9.0)
        gone = away(study, path)
        assert [study.report(trial, step, -9.0) for step in range(2, 8)] == ["continue"] * 6
        assert "is delivered with the next call" in study.warnings[-1]
        assert len(list(path.with_name("run.db.spool").glob("*.json"))) == 6
        gone.rename(path)
        study.report(trial, 8, -9.0)
        assert steps(study, trial.number) == list(range(1, 9))
        assert study.verify().agrees  # what waited was not judged
    assert not path.with_name("run.db.spool").exists()


def test_a_stop_waits_for_the_database(path: Path) -> None:
    from gpmi.trials import Outcome

    with made(path, patience=0.05) as study:
        trial = study.ask()
        study.report(trial, 1, 0.5)
        gone = away(study, path)
        assert study.optimizer.record(trial, Outcome.stop("the cost is spent")).status == "stopped"
        gone.rename(path)
        assert study.trials[0].status == "stopped" and study.trials[0].why == "the cost is spent"
    with gpmi.study(path) as study:
        assert study.trials[0].why == "the cost is spent" and kinds(study)[-1] == "stopped"


def test_a_report_that_the_study_refuses_is_set_aside(path: Path) -> None:
    with made(path) as study:
        outbox = Outbox(study.identity, path)
        outbox.keep({"kind": "reported", "number": 99, "step": 3, "y": 1.0, "token": "t"})
        outbox.keep({"kind": "reported", "number": 0, "step": "x", "y": 1.0, "token": "t"})
        study.refresh()
        assert len(list(path.with_name("run.db.spool").glob("*.refused"))) == 2 and study.trials == ()


# Goals and contexts


def test_outputs_are_reported_and_replayed(path: Path) -> None:
    with made(path, goals={"accuracy": "max", "latency": gpmi.AtMost(2.0)}) as study:
        trial = study.ask()
        assert study.report(trial, 1, {"accuracy": 0.5, "latency": 1.0}) == "continue"
        assert study.report(trial, 1, {"accuracy": 0.5, "latency": 1.0}) == "continue"
        with pytest.raises(ValueError, match="report each step once"):
            study.report(trial, 1, {"accuracy": 0.6, "latency": 1.0})
        study.report(trial, 2, {"accuracy": 0.6, "latency": 1.5})
        assert study.report(trial, LAST, {"accuracy": 0.9, "latency": 1.5}) == "stop"
        assert study.verify().agrees
        before = study.trials
        assert before[0].y == 0.9 and len(before[0].curve) == 3
    with gpmi.study(path) as study:
        assert [vars(t) for t in study.trials] == [vars(t) for t in before]


def test_curves_in_a_context(path: Path) -> None:
    space = {**SPACE, "room": gpmi.Real(15.0, 30.0)}
    with made(path, space=space) as study:
        for i in range(8):
            curve(study, study.ask(fixed={"room": 20.0 + i % 2}))
        assert study.verify().verdict == "equal"
        before = study.trials
    with gpmi.study(path) as study:
        assert [vars(t) for t in study.trials] == [vars(t) for t in before]


# Bad input and hostile entries


def test_a_space_without_steps_has_nothing_to_report(path: Path) -> None:
    with made(path, space={"a": (0.0, 1.0)}) as study, pytest.raises(ValueError, match="the space has no steps"):
        study.report(study.ask(), 1, 0.5)


@pytest.mark.parametrize(("step", "y"), [(0, 1.0), (LAST + 1, 1.0), (1.5, 1.0), (True, 1.0), (1, math.nan), (1, "x")])
def test_a_bad_report_is_refused_and_leaves_no_entry(path: Path, step: Any, y: Any) -> None:
    with made(path) as study:
        trial = study.ask()
        with pytest.raises((TypeError, ValueError), match=r"step is|y is"):
            study.report(trial, step, y)
        assert kinds(study) == ["created", "asked"]


def test_report_with_a_path_writes_a_page(path: Path) -> None:
    with made(path) as study:
        for _ in range(3):
            study.tell(study.ask(), 1.0)
        assert study.report(path.with_suffix(".html")).exists()
        assert study.report(path=path.with_suffix(".htm"), title="A").exists()
        with pytest.raises(TypeError, match="give report"):
            study.report({"a": 0.5}, 1, 0.5)  # type: ignore[call-overload]


def forged(path: Path, seq: int, remove: tuple[str, ...] = (), kind: str | None = None, **fields: Any) -> None:
    """Change an entry by hand, and the checksums of it and of all entries after it, so that they fit."""
    before = ""
    with closing(sqlite3.connect(path)) as connection:
        stored = connection.execute("SELECT seq, kind, body, time, worker, token FROM gpmi_events ORDER BY seq")
        for number, was, body, time, worker, token in stored.fetchall():
            if number == seq:
                content = {**json.loads(body), **fields}
                body, was = text_of({key: one for key, one in content.items() if key not in remove}), kind or was
            before = checksum(before, number, was, body, time, worker, token)
            connection.execute(
                "UPDATE gpmi_events SET kind=?, body=?, checksum=? WHERE seq=?", (was, body, before, number)
            )
        connection.commit()


@pytest.mark.parametrize(
    "fields",
    [
        *({"step": step} for step in (0, -1, 1, LAST, LAST + 1, 1.5, "2", None, True, [2])),
        *({"y": y} for y in (math.nan, math.inf, "0.5", None, True, [0.5], 1e150)),
        *({"outputs": outputs} for outputs in ({"accuracy": 0.5}, [1.0], "x")),
        *({"number": number} for number in (7, -1, "0", None)),
        *({"stopped": why} for why in (3, ["x"], True)),
        {"remove": ("step",)},
        {"remove": ("y",)},
        {"remove": ("number",)},
    ],
    ids=str,
)
def test_a_report_that_nobody_could_have_made_is_refused_by_the_number_of_its_entry(
    path: Path, fields: dict[str, Any]
) -> None:
    with made(path) as study:
        trial = study.ask()
        study.report(trial, 1, 0.5)
        study.report(trial, 2, 0.6)
    forged(path, 3, **fields)
    with pytest.raises(StudyError, match=r"entry 3 of the log \(reported\) cannot be replayed"):
        gpmi.study(path)


@pytest.mark.parametrize("kind", ["reported", "stopped"])
def test_curves_in_a_study_without_steps_are_refused(path: Path, kind: str) -> None:
    with made(path, space={"a": (0.0, 1.0)}) as study:
        study.tell(study.ask(), 1.0)
    forged(path, 2, kind=kind, step=1)
    with pytest.raises(StudyError, match=rf"entry 2 of the log \({kind}\) cannot be replayed"):
        gpmi.study(path)
