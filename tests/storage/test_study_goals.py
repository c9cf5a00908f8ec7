"""Studies with goals: outputs are durable one by one, from any worker, and each is stored once."""

from __future__ import annotations

import json
import math
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpmi
from gpmi import AtLeast, AtMost, Match, Max, Min, kernels

pytest.importorskip("sqlalchemy")

from gpmi.run.study import Study
from gpmi.storage.entries import checksum
from gpmi.storage.errors import StudyError, Unavailable
from gpmi.storage.outbox import Outbox
from gpmi.storage.serialization import text_of

HERE = Path(__file__).parent
BOX = [(0.0, 1.0), (0.0, 1.0)]
GOALS: dict[str, Any] = {"yield": "max", "cost": Min(at_most=3.0), "purity": AtLeast(0.3), "ph": None}
ELSEWHERE = "elsewhere:abc:1:2"  # a worker of which nobody here can know whether it lives


def f(x: Any) -> dict[str, float]:
    return {
        "yield": float(np.sin(5.0 * x[0]) + x[1]),
        "cost": float(x[0] ** 2 + x[1]),
        "purity": float(np.cos(2.0 * x[0])),
        "ph": 7.0 + float(x[1]),
    }


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.db"


def made(path: Path, **options: Any) -> Study:
    return gpmi.study(path, space=BOX, **{"goals": GOALS, "seed": 0, **options})


def elsewhere(path: Path, name: str = ELSEWHERE) -> Study:
    """The study as another machine has it open."""
    study = gpmi.study(path)
    study._log.worker = name
    return study


def run(study: Study, n: int) -> None:
    for _ in range(n):
        trial = study.ask()
        study.tell(trial, f(trial.x))


def outputs(study: Study) -> list[dict[str, float]]:
    return [dict(trial.outputs) for trial in study.trials]


def count(study: Study) -> int:
    return len(study.log())


FIELDS = ("number", "status", "y", "outputs", "output_noise_var", "output_repeats", "outputs_before", "unmet", "origin")


def rows(study: Study) -> list[list[Any]]:
    return [[getattr(trial, name) for name in FIELDS] + [trial.x.tolist()] for trial in study.trials]


# Replay


@pytest.mark.parametrize(
    ("goals", "options"),
    [
        (GOALS, {}),
        (GOALS, {"aim": "earn"}),
        (GOALS, {"policy": gpmi.Scalarised(scale=0.5)}),
        (GOALS, {"policy": gpmi.EHVI(), "budget": 9}),
        (GOALS, {"kernel": {"yield": kernels.RBF(0.3), "cost": None}, "noise_var": {"yield": 0.01, "ph": None}}),
        ({"yield": Max(at_least=0.5), "size": Match(0.4, within=0.1)}, {}),
        ({"size": Match(0.4, within=0.1), "purity": AtMost(0.9)}, {}),
        ({"yield": "min", "purity": AtLeast(0.3), "ph": None}, {"kernel": {"yield": kernels.RBF(0.3)}}),
        ({"yield": "max"}, {}),
    ],
    ids=str,
)
def test_a_study_with_goals_asks_what_an_optimizer_asks_and_verifies(
    path: Path, goals: dict[str, Any], options: dict[str, Any]
) -> None:
    def measured(x: Any) -> dict[str, float]:
        return {name: value for name, value in {**f(x), "size": float(x[0])}.items() if name in goals}

    twin = gpmi.Optimizer(BOX, goals=goals, seed=0, **options)
    for step in range(8):
        with gpmi.study(path, space=BOX, goals=goals, seed=0, **options) as study:  # opened again for every trial
            trial, x = study.ask(), twin.ask()
            assert trial.x.tobytes() == x.tobytes()
            said = measured(x)
            first = {name: said[name] for name in list(said)[: 1 + step % len(said)]}
            rest = {name: value for name, value in said.items() if name not in first}
            for part in (first, rest):
                if part:
                    assert study.tell(trial, part).outputs == twin.tell(twin.trials[-1], part).outputs
    with gpmi.study(path) as study:
        assert dict(study.optimizer.goals or {}) == dict(twin.goals or {})
        assert study.optimizer.policy == twin.policy and study.optimizer.n_init == twin.n_init
        assert study.ask().x.tobytes() == twin.ask().tobytes()
        found = study.verify()
        assert found.verdict == "equal" and found.suggestions == 9, found
        assert {t.number for t in study.front} == {t.number for t in twin.front}


def test_everything_that_is_said_of_outputs_is_kept_bit_for_bit(path: Path) -> None:
    with made(path) as study:
        run(study, 6)
        study.tell([0.1, 0.2], {"yield": 0.1 + 0.2, "cost": 1e-300}, noise_var={"cost": 1 / 3}, repeats={"yield": 4})
        study.correct(2, {"cost": 0.5}, noise_var=0.25)
        study.tell(6, {"purity": 0.9})
        study.retract(3)
        study.correct(3, {"ph": 6.5})
        study.fail(study.ask(), "the pump stopped")
        study.reject(study.ask())
        study.optimizer.tell_all([([0.3, 0.3], {"yield": 1.0}), ([0.3, 0.3], {"ph": 7.0}, 0.5)], noise_var={"ph": 1.0})
        study.retract(5)
        before, entries = rows(study), study.log()
        assert study.trials[6].output_noise_var == {"cost": 1 / 3} and study.trials[6].output_repeats == {"yield": 4}
        assert study.trials[9].outputs == {"yield": 1.0, "ph": 7.0} and study.trials[9].output_noise_var == {"ph": 1.5}
    with gpmi.study(path) as study:
        assert rows(study) == before and study.log() == entries
        assert all(list(t.outputs) == [name for name in GOALS if name in t.outputs] for t in study.trials)
        run(study, 1)
        assert study.verify().verdict == "equal"
        again = gpmi.Optimizer(BOX, goals=GOALS, seed=0).replay(study.trials)
        assert again.ask().tobytes() == study.ask().x.tobytes()


def test_a_run_with_goals_in_a_study_goes_on_and_workers_share_it(path: Path) -> None:
    for budget in (5, 9):
        r = gpmi.optimize(f, BOX, goals=GOALS, budget=budget, seed=0, study=path, workers=2 if budget == 9 else None)
        assert len(r.trials) == budget and all(t.outputs == f(t.x) for t in r.trials)
    with gpmi.study(path) as study:
        assert r.front and [t.number for t in study.front] == [t.number for t in r.front]
        assert study.verify().verdict == "equal"


# Outputs one by one, from anywhere


def test_an_output_from_another_process_a_day_later(path: Path) -> None:
    with made(path) as study:
        run(study, 5)
        trial = study.ask()
        study.tell(trial, {"yield": 1.0})
    code = (
        "import sys, gpmi\n"
        "with gpmi.study(sys.argv[1]) as study:\n"
        "    print(study.tell(5, {'purity': 0.97, 'cost': 2.0}, noise_var={'purity': 0.01}))\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert "yield=1, cost=2, purity=0.97, told" in done.stdout
    with gpmi.study(path) as study:
        assert study.trials[5].outputs == {"yield": 1.0, "cost": 2.0, "purity": 0.97}
        assert study.trials[5].output_noise_var == {"purity": 0.01}
        assert len({entry.worker for entry in study.log() if entry.content.get("number") == 5}) == 2
        run(study, 1)
        assert study.verify().verdict == "equal"


def test_another_opening_sees_a_late_output_before_its_next_suggestion(path: Path) -> None:
    with made(path) as one, elsewhere(path) as other:
        run(one, 6)
        trial = one.ask()
        one.tell(trial, {"yield": 1.0, "cost": 1.0})
        assert other.ask().number == 7
        one.tell(trial, {"purity": 0.5})
        other.tell(7, f(other.trials[7].x))
        last = other.ask()
        twin = gpmi.Optimizer(BOX, goals=GOALS, seed=0).replay(other.trials[:-1])
        assert twin.ask().tobytes() == last.x.tobytes() and one.verify().verdict == "equal"


def test_the_same_output_is_stored_once_and_another_one_of_the_same_worker_is_refused(path: Path) -> None:
    with made(path) as study:
        trial = study.ask()
        for said in ({"yield": 1.0}, {"cost": 2.0, "ph": 7.0}):
            told = study.tell(trial, said)
            entries = count(study)
            assert study.tell(trial, said).outputs == told.outputs and count(study) == entries
        assert study.tell(trial, {"yield": 1.0, "purity": 0.5}).outputs == {
            **told.outputs,
            "purity": 0.5,
        }  # the new one
        entries = count(study)
        assert study.tell(trial, {"yield": 1.0, "cost": 2.0}).number == 0 and count(study) == entries
        for said in ({"yield": 3.0}, {"yield": 1.0, "ph": 3.0}):
            with pytest.raises(ValueError, match=r"trial 0 already has the value \{.*\} from this worker; use correct"):
                study.tell(trial, said)
        study.correct(0, {"yield": 4.0})
        assert study.tell(trial, {"yield": 1.0}).outputs["yield"] == 4.0  # it arrived before it was corrected
        assert outputs(study) == [{"yield": 4.0, "cost": 2.0, "purity": 0.5, "ph": 7.0}]
        assert study.verify().agrees


def test_the_outputs_of_two_workers_for_one_trial_both_count_and_stay_apart(path: Path) -> None:
    with made(path) as holder, elsewhere(path) as other:
        trial = holder.ask()
        other.tell(0, {"yield": 1.0})  # it never had the trial
        late = holder.tell(trial, {"yield": 2.0, "cost": 2.0})
        assert (late.number, late.status) == (1, "told") and np.array_equal(late.x, trial.x)
        assert holder.tell(trial, {"purity": 0.2}).number == 1  # of the same evaluation
        assert other.tell(0, {"purity": 0.1}).number == 0
        assert holder.tell(trial, {"ph": 7.0}).number == 1 and other.tell(0, {"ph": 7.0}).number == 0
        entries = count(holder)
        assert holder.tell(trial, {"yield": 2.0, "cost": 2.0}).number == 1
        assert other.tell(0, {"yield": 1.0, "purity": 0.1}).number == 0
        assert count(other) == entries  # each delivery once
        assert outputs(other) == [
            {"yield": 1.0, "purity": 0.1, "ph": 7.0},
            {"yield": 2.0, "cost": 2.0, "purity": 0.2, "ph": 7.0},
        ]
        assert holder.verify().agrees
    with gpmi.study(path) as study:
        assert outputs(study)[1]["cost"] == 2.0


def test_a_third_worker_completes_a_trial_and_says_again_what_is_known(path: Path) -> None:
    with made(path) as holder, elsewhere(path) as other, elsewhere(path, "third:abc:1:2") as third:
        trial = holder.ask()
        holder.tell(trial, {"yield": 1.0})
        assert other.tell(0, {"yield": 1.0, "cost": 2.0}).number == 0  # equal: the same evaluation
        assert third.tell(0, {"purity": 0.5, "ph": 7.0}).number == 0
        replicate = third.tell(0, {"yield": 9.0})
        assert (replicate.number, replicate.outputs) == (1, {"yield": 9.0})
        assert outputs(holder) == [{"yield": 1.0, "cost": 2.0, "purity": 0.5, "ph": 7.0}, {"yield": 9.0}]
        assert third.tell(0, {"yield": 9.0, "ph": 7.0}).number == 1 and count(third) == 6


def test_late_outputs_of_trials_that_ended_otherwise(path: Path) -> None:
    with made(path) as study, elsewhere(path) as other:
        failed, forgotten, retracted, rejected = study.ask(4)
        study.fail(failed, "broken")
        study.forget(forgotten)
        study.tell(retracted, {"yield": 1.0})
        study.retract(retracted)
        study.reject(rejected)
        with pytest.raises(ValueError, match="trial 0 already has a failure from this worker"):
            study.tell(failed, {"yield": 1.0})
        assert other.tell(0, {"yield": 1.0}).number == 4
        assert other.tell(0, {"cost": 1.0}).number == 4  # of the same evaluation
        assert study.tell(forgotten, {"yield": 2.0}).number == 5
        assert study.tell(forgotten, {"cost": 2.0}).number == 5
        for who in (study, other):
            with pytest.raises(ValueError, match=r"trial 2 was retracted; give it a value again with correct\(2, y\)"):
                who.tell(2, {"cost": 1.0})
        with pytest.raises(ValueError, match="trial 2 was retracted"):
            study.tell(2, {"yield": 1.0})
        assert other.tell(3, {"yield": 3.0}).number == 6
        entries = count(study)
        assert study.fail(forgotten).number == 1
        assert count(study) == entries + 1  # a late failure, which changes nothing
        for who, number in ((study, 5), (other, 5), (study, 4), (other, 3)):
            with pytest.raises(ValueError, match=f"x is trial {number}, which is not pending: it is (told|rejected); "):
                who.fail(number)
        for who in (study, other):
            with pytest.raises(ValueError, match="trial 2 was retracted"):
                who.fail(2)
        assert count(study) == entries + 1
        assert outputs(study)[-3:] == [
            {"yield": 1.0, "cost": 1.0},
            {"yield": 2.0, "cost": 2.0},
            {"yield": 3.0},
        ]
        assert study.verify().agrees


def test_a_trial_with_some_outputs_cannot_fail_unless_it_may_have_been_evaluated_twice(path: Path) -> None:
    refused = r"x is trial 0, which is not pending: it is told; retract\(0\) takes that back"
    with made(path) as holder, elsewhere(path) as other, elsewhere(path, "third:abc:1:2") as third:
        trial = holder.ask()
        other.tell(0, {"yield": 1.0})
        entries = count(holder)
        for who in (other, third):  # who told it, and who never had it
            with pytest.raises(ValueError, match=refused):
                who.fail(0, "the assay broke")
        assert count(holder) == entries
        assert holder.fail(trial, "the pump stopped").outputs == {"yield": 1.0}
        assert count(holder) == entries + 1 and holder.log()[-1].content["late"]
        assert holder.fail(trial).outputs == {"yield": 1.0} and count(holder) == entries + 1  # the same delivery again
        trial = holder.ask()
        holder.tell(trial, {"yield": 1.0})
        with pytest.raises(ValueError, match="x is trial 1, which is not pending"):
            holder.fail(trial)
        holder.tell(trial, {"cost": 1.0})
        assert outputs(third) == [{"yield": 1.0}, {"yield": 1.0, "cost": 1.0}] and third.verify().agrees


def test_outputs_that_are_told_together_are_stored_once_and_fill_what_is_missing(path: Path) -> None:
    known = [([0.1, 0.1], {"yield": 1.0}), ([0.1, 0.1], {"cost": 2.0}, 0.5), ([0.2, 0.2], f([0.2, 0.2]))]
    with made(path) as study:
        trial = study.ask()
        for _ in range(2):
            told = study.optimizer.tell_all([*known, (trial.x, {"ph": 7.0})])
            assert [one.number for one in told] == [1, 1, 2, 0]
        assert outputs(study) == [{"ph": 7.0}, {"yield": 1.0, "cost": 2.0}, f([0.2, 0.2])] and count(study) == 6
        with pytest.raises(ValueError, match="'mass' is not an output"):
            study.optimizer.tell_all([([0.3, 0.3], {"yield": 1.0}), ([0.4, 0.4], {"mass": 1.0})])
        assert count(study) == 6
    for _ in range(2):
        r = gpmi.optimize(f, BOX, goals=GOALS, budget=2, seed=0, study=path, earlier=known[:1])
    assert len(r.trials) == 4 and sum(t.origin == "user" for t in r.trials) == 2  # trial 0 is one of the two
    with gpmi.study(path) as study:
        assert study.verify().verdict == "equal"


def test_an_answer_that_was_lost_on_the_way_is_not_written_twice(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with made(path) as study:
        trial = study.ask()
        study.tell(trial, {"yield": 1.0})
        write, lost = type(study._log._database).writing, []

        def losing(self: Any) -> Any:
            from contextlib import contextmanager

            @contextmanager
            def writing() -> Any:
                with write(self) as transaction:
                    yield transaction
                if not lost:
                    lost.append(True)
                    raise Unavailable("the connection broke after the commit")

            return writing()

        monkeypatch.setattr(type(study._log._database), "writing", losing)
        assert study.tell(trial, {"cost": 2.0}).outputs == {"yield": 1.0, "cost": 2.0}
        assert lost and [e.content["outputs"] for e in study.log() if e.kind == "told"] == [
            {"yield": 1.0},
            {"cost": 2.0},
        ]


# The outbox


def away(study: Study, path: Path) -> Path:
    study._log._database.close()
    for end in ("-wal", "-shm"):
        assert not path.with_name(path.name + end).exists() or path.with_name(path.name + end).unlink() is None
    return path.rename(path.with_name("away.db"))


def test_outputs_of_one_trial_wait_for_the_database_apart(path: Path) -> None:
    with made(path, patience=0.05) as study:
        run(study, 2)
        trial = study.ask()
        gone = away(study, path)
        told = [study.tell(trial, part) for part in ({"yield": 5.0}, {"cost": 2.0}, {"purity": 0.5, "ph": 7.0})]
        assert [t.status for t in told] == ["told"] * 3 and told[0].outputs == {"yield": 5.0}
        assert len(list(path.with_name("run.db.spool").glob("*.json"))) == 3
        study.tell(trial, {"cost": 2.0})  # again: the same file
        assert len(list(path.with_name("run.db.spool").glob("*.json"))) == 3
        gone.rename(path)
        assert study.trials[2].outputs == {"yield": 5.0, "cost": 2.0, "purity": 0.5, "ph": 7.0}
        assert study.trials[2].number == trial.number and len(study.trials) == 3
        assert study.verify().agrees and len([e for e in study.log() if e.content.get("number") == 2]) == 4
    assert not path.with_name("run.db.spool").exists()


def test_a_late_output_that_waits_is_shown_with_those_that_are_stored(path: Path) -> None:
    with made(path, patience=0.05) as study:
        trial = study.ask()
        study.tell(trial, {"yield": 5.0})
        gone = away(study, path)
        told = study.tell(trial, {"cost": 2.0})
        assert told.outputs == {"yield": 5.0, "cost": 2.0} and told.unmet == ("purity",)
        gone.rename(path)
    with gpmi.study(path) as study:
        assert outputs(study) == [{"yield": 5.0, "cost": 2.0}]


def test_a_failure_that_waits_for_the_database_is_set_aside_if_the_trial_has_outputs(path: Path) -> None:
    with made(path, patience=0.05) as study:
        trial = study.ask()
        study.tell(trial, {"yield": 5.0})
        gone = away(study, path)
        assert study.fail(trial).outputs == {"yield": 5.0}
        gone.rename(path)
        assert outputs(study) == [{"yield": 5.0}] and study.log()[-1].kind == "told"
        assert "was refused: x is trial 0, which is not pending: it is told" in study.warnings[-1]


def test_outputs_that_the_study_refuses_are_set_aside(path: Path) -> None:
    with made(path) as study:
        x = study.ask().x.tolist()
        outbox = Outbox(study.identity, path)
        for i, bad in enumerate(({"mass": 1.0}, {"yield": "1"}, {"yield": None}, [1.0], "yield", {"yield": math.nan})):
            outbox.keep({"kind": "told", "number": 0, "at": x, "outputs": bad, "token": f"t{i}", "worker": "w"})
        outbox.keep({"kind": "told", "number": 0, "at": x, "y": 1.0, "token": "y", "worker": "w"})
        outbox.keep({"kind": "failed", "number": 0, "at": x, "outputs": {"yield": 1.0}, "token": "z", "worker": "w"})
        assert study.trials[0].status == "pending"
        assert sum("was refused" in warning for warning in study.warnings) == 8
        assert len(list(path.with_name("run.db.spool").glob("*.refused"))) == 8


# What nobody could have written


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Entries 0 to 6: created, asked, told, told (a late output), corrected, asked, failed."""
    path = tmp_path_factory.mktemp("small") / "run.db"
    with made(path) as study:
        trial = study.ask()
        study.tell(trial, {"yield": 1.0}, noise_var=0.5)
        study.tell(trial, {"cost": 2.0})
        study.correct(0, {"yield": 1.5})
        study.fail(study.ask())
        assert [entry.kind for entry in study.log()] == [
            *("created", "asked", "told", "told", "corrected", "asked", "failed"),
        ]
    return path.read_bytes()


def forged(path: Path, seq: int, remove: tuple[str, ...] = (), **fields: Any) -> None:
    """Change an entry by hand, and the checksums of it and of all entries after it, so that they fit."""
    before = ""
    with closing(sqlite3.connect(path)) as connection:
        stored = connection.execute("SELECT seq, kind, body, time, worker, token FROM gpmi_events ORDER BY seq")
        for number, kind, body, time, worker, token in stored.fetchall():
            if number == seq:
                content = {**json.loads(body), **fields}
                body = text_of({key: value for key, value in content.items() if key not in remove})
            before = checksum(before, number, kind, body, time, worker, token)
            connection.execute("UPDATE gpmi_events SET body=?, checksum=? WHERE seq=?", (body, before, number))
        connection.commit()


BAD: tuple[Any, ...] = (
    *({"mass": 1.0}, {"yield": "1"}, {"yield": math.nan}, {"yield": math.inf}, {"yield": None}, {"yield": True}),
    *({"yield": 1e150}, {"yield": [1.0]}, [1.0], [], "yield", "", 3, 0, True, False, {"": 1.0}),
)


@pytest.mark.parametrize(
    ("seq", "fields"),
    [
        *((seq, {"outputs": outputs}) for seq in (2, 3, 4) for outputs in (*BAD, {})),
        (3, {"outputs": {"yield": 1.0}}),  # it has it already
        (3, {"outputs": {"cost": 1.0, "yield": 1.0}}),
        *((seq, {"output_noise_var": value}) for seq in (2, 4) for value in ({"yield": -1}, {"yield": "x"}, 3, "x")),
        *((seq, {"output_repeats": value}) for seq in (2, 4) for value in ({"yield": 0}, {"yield": 1.5}, [2])),
        *((6, {"outputs": outputs}) for outputs in (*BAD, {"yield": 1.0})),
    ],
    ids=str,
)
def test_outputs_that_nobody_could_have_told_are_refused_by_the_number_of_their_entry(
    path: Path, small: bytes, seq: int, fields: dict[str, Any]
) -> None:
    path.write_bytes(small)
    forged(path, seq, **fields)
    with pytest.raises(StudyError, match=rf"entry {seq} of the log \(\w+\) cannot be replayed"):
        gpmi.study(path)


@pytest.mark.parametrize("seq", [2, 3, 4])
def test_a_value_y_in_a_study_with_goals_is_refused(path: Path, small: bytes, seq: int) -> None:
    path.write_bytes(small)
    forged(path, seq, remove=("outputs", "output_noise_var", "output_repeats"), y=1.0)
    with pytest.raises(StudyError, match=rf"entry {seq} of the log .* y is 1.0, but the run has goals; give a dict"):
        gpmi.study(path)


@pytest.mark.parametrize("outputs", [*BAD, {"yield": 1.0}], ids=str)
@pytest.mark.parametrize("kind", ["told", "corrected"])
def test_outputs_in_a_study_without_goals_are_refused(path: Path, outputs: Any, kind: str) -> None:
    with gpmi.study(path, space=BOX, seed=0) as study:
        study.tell(study.ask(), 1.0)
        study.correct(0, 2.0)
    forged(path, 2 if kind == "told" else 3, outputs=outputs)
    with pytest.raises(
        StudyError, match=rf"entry {2 if kind == 'told' else 3} of the log \({kind}\) cannot be replayed"
    ):
        gpmi.study(path)


@pytest.mark.parametrize(
    "goals",
    [
        *([], {}, "max", 3, [{"output": "yield"}], [{"kind": "Max"}], [{"output": "yield", "kind": "Best"}]),
        [{"output": "yield", "kind": "Max", "at_least": "x"}],
        [{"output": "yield", "kind": "Max"}, {"output": "yield", "kind": "Min"}],
        [{"output": "yield", "kind": "Max", "colour": 1}],
        [{"output": "size", "kind": "Match", "target": 1.0}],
        [{"output": 3, "kind": "Max"}],
    ],
    ids=str,
)
def test_a_description_with_goals_that_nobody_could_have_given_is_refused(path: Path, small: bytes, goals: Any) -> None:
    path.write_bytes(small)
    with closing(sqlite3.connect(path)) as connection:
        (text,) = connection.execute("SELECT description FROM gpmi_studies").fetchone()
        description = {**json.loads(text), "goals": goals}
        connection.execute("UPDATE gpmi_studies SET description = ?", (text_of(description),))
        connection.commit()
    forged(path, 0, description=description)
    with pytest.raises(StudyError, match="entry 0 of the study 'default' does not describe a study"):
        gpmi.study(path)


# Opening


def test_what_contradicts_the_goals_of_a_study_is_refused(path: Path) -> None:
    made(path).close()
    stored = r"but that of the study is yield \(max\), cost \(min, at most 3\), purity \(at least 0.3\), ph \(watched\)"
    for goals in (
        {"yield": "max"},
        {**GOALS, "yield": "min"},
        {**GOALS, "cost": "min"},
        {**GOALS, "purity": AtLeast(0.4)},
        {**GOALS, "ph": "max"},
        {**GOALS, "mass": None},
    ):
        with pytest.raises(ValueError, match=rf"goals is .*, {stored}; leave it out"):
            gpmi.study(path, goals=goals)
    with pytest.raises(TypeError, match="goals is 'max'; give a dict of outputs"):
        gpmi.study(path, goals="max")  # type: ignore[arg-type]
    reordered = {name: GOALS[name] for name in sorted(GOALS)}
    with gpmi.study(path, space=BOX, goals=reordered, seed=0) as study:
        assert list(study.optimizer.goals or ()) == list(GOALS)  # as it was made
    plain = path.with_name("plain.db")
    gpmi.study(plain, space=BOX).close()
    with pytest.raises(ValueError, match=r"goals is .*, but that of the study is None; leave it out"):
        gpmi.study(plain, goals=GOALS)
    with pytest.raises(ValueError, match=r"goals is .*, but that of the study is None"):
        gpmi.optimize(f, BOX, goals=GOALS, budget=3, study=plain)
    with pytest.raises(TypeError, match=r"f returned 1.0 at x = .*; it must return a dict of outputs"):
        gpmi.maximize(lambda x: 1.0, BOX, budget=3, study=path, seed=0)


def test_kernels_by_output_are_kept_and_contradict_others(path: Path) -> None:
    kernel = {"yield": kernels.RBF(0.3) + kernels.Linear(0.5), "cost": None}
    made(path, kernel=kernel).close()
    made(path, kernel=kernel).close()
    with gpmi.study(path) as study:
        run(study, 5)
        assert study.optimizer.models["yield"].model.prior.kernel == kernel["yield"]
    for wrong in ({"yield": kernels.RBF(0.3)}, kernels.RBF(0.3)):
        with pytest.raises(ValueError, match=r"kernel is .*, but that of the study is"):
            gpmi.study(path, kernel=wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="kernel has 'mass', which is not an output"):
        made(path.with_name("other.db"), kernel={"mass": None})
    assert not path.with_name("other.db").exists()


def test_bad_goals_are_refused_before_there_is_a_file(path: Path) -> None:
    for goals in ({}, ["max"], {"purity": AtLeast(1.0)}, {"yield": Match}, {"yield": "large"}):
        with pytest.raises((TypeError, ValueError), match="goals"):
            made(path, goals=goals)
    with pytest.raises(ValueError, match="goals has a string that is not valid Unicode"):
        made(path, goals={"\ud800": "max"})
    assert not path.exists()


def test_wrong_outputs_are_refused_and_nothing_is_stored(path: Path) -> None:
    with made(path) as study:
        trial = study.ask()
        study.tell(trial, {"yield": 1.0})
        entries = study.log()
        for y, details, words in (
            ({"mass": 1.0}, {}, "'mass' is not an output"),
            ({"cost": "1"}, {}, "cost is '1'"),
            ({}, {}, "without an output"),
            (1.0, {}, "the run has goals; give a dict"),
            ({"cost": 1.0}, {"noise_var": {"ph": 1.0}}, "noise_var has 'ph', which y has not"),
            ({"cost": 1.0}, {"constraints": [1.0]}, "constraints is"),
            ({"cost": 1.0}, {"colour": 1.0}, "colour is not an argument of tell"),
        ):
            for call in (study.tell, study.correct):
                with pytest.raises((TypeError, ValueError), match=words if call == study.tell else None):
                    call(trial, y, **details)
        assert study.log() == entries and not list(path.parent.glob("*.spool"))


# A study without goals is what it was


def keys_by_kind(connection: sqlite3.Connection) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for kind, body in connection.execute("SELECT kind, body FROM gpmi_events"):
        found.setdefault(kind, set()).update(json.loads(body))
    return found


def test_the_entries_of_a_study_without_goals_have_no_new_keys(path: Path) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript((HERE / "before.sql").read_text())
        before = keys_by_kind(connection)
    with gpmi.study(path, space=BOX, seed=0, budget=20) as study:
        for i in range(4):
            trial = study.ask()
            study.tell(trial, 0.5 + i, noise_var=0.25 * (i == 1), repeats=1 + (i == 2))
        study.correct(1, 2.0)
        study.retract(2)
        study.fail(study.ask(), "diverged")
        study.reject(study.ask())
        study.forget(study.ask())
        study.tell([0.25, 0.75], 1.0)
        study.set_budget(30)
        bodies = {entry.kind: entry.body for entry in study.log()}
        first = next(entry.body for entry in study.log() if entry.kind == "told")
    with closing(sqlite3.connect(path)) as connection:
        after = keys_by_kind(connection)
    for kind, keys in after.items():
        assert keys <= before[kind] | {"repeats", "platform", "lease"}, (
            kind
        )  # which later versions stored, without goals
    assert first == '{"number":0,"said":{},"y":0.5}'
    assert bodies["corrected"] == '{"constraints":[],"noise_var":0.25,"number":1,"repeats":1,"y":2.0}'
    assert bodies["failed"] == '{"number":4,"why":"diverged"}'
    assert bodies["told"].startswith('{"number":7,"said":{') and bodies["told"].endswith('},"x":[0.25,0.75],"y":1.0}')
    assert bodies["retracted"] == '{"number":2}'
    assert json.loads(bodies["created"])["description"].keys() == {"space", "seed", "budget"}


def test_the_outbox_of_a_study_without_goals_has_no_new_keys(path: Path) -> None:
    with gpmi.study(path, space=BOX, seed=0, patience=0.05) as study:
        trial = study.ask()
        gone = away(study, path)
        study.tell(trial, 5.0)
        (file,) = path.with_name("run.db.spool").glob("*.json")
        assert set(json.loads(file.read_text())) == {"kind", "y", "number", "at", "token", "worker"}
        gone.rename(path)
        assert study.best is not None and study.best.y == 5.0
