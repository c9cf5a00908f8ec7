"""`gpmi run` and `gpmi work` keep everything in a study: they go on after a kill, and share the work."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sqlalchemy")
from typer.testing import CliRunner
from waiting import LIMIT, Clock, lines, wait_until

import gpmi
from gpmi import cli

pytestmark = pytest.mark.skipif(os.name != "posix", reason="programs run in groups of processes of POSIX")

# Each evaluation leaves a line in `evaluated`, so that it can be counted what was evaluated how often.
FILE = """
goal = "max"
budget = 8
seed = 0
workers = 1
[parameters]
x = { real = [0.0, 1.0] }
[command]
run = 'echo "$GPMI_X" >> evaluated; sleep 0.05; echo "$GPMI_X"'
shell = true
"""
# The fourth evaluation waits for the file `go`, so that a signal surely meets it.
HELD = FILE.replace("sleep 0.05", "[ $(wc -l < evaluated) -lt 4 ] || until [ -e go ]; do sleep 0.05; done")
# Each evaluation waits until two processes have begun one.
SHARED = FILE.replace(
    "sleep 0.05", "echo $PPID >> workers; until [ $(sort -u workers | wc -l) -ge 2 ]; do sleep 0.05; done"
)
PROGRAM = [sys.executable, "-c", "from gpmi.cli import main; main()"]


def invoke(*arguments: Any) -> Any:
    return CliRunner().invoke(cli.app(), [str(a) for a in arguments])


def started(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*PROGRAM, *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def evaluated(folder: Path) -> list[float]:
    return [float(line) for line in lines(folder / "evaluated")]


def only_progress(stderr: str) -> bool:
    """Whether nothing was said but how far the run is.

    On a busy machine that includes waiting for the database. Several processes tell in an order of their own, and in
    some orders the model of a linear function is over-confident.
    """
    doubt = r"the model was over-confident \(the largest of \d+ residuals is .*"
    said = rf"(\d+/\d+   \d+:\d\d:\d\d.*|.*; retrying for \d+ s|{doubt})"
    return re.fullmatch(rf"({said}\n)*", stderr) is not None


def wait_for(folder: Path, count: int) -> None:
    wait_until(lambda: len(evaluated(folder)) >= count)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(FILE)
    yield tmp_path
    (tmp_path / "go").touch()  # ends what still waits


def test_a_run_is_kept_beside_its_file_and_is_not_repeated(folder: Path) -> None:
    first = json.loads(invoke("run", "study.toml", "--json").stdout)
    again = json.loads(invoke("run", "study.toml", "--json").stdout)
    assert (first.pop("before"), again.pop("before")) == (0, 8)
    assert [event["kind"] for event in again.pop("events")] == ["budget used up"] and first.pop("events") == []
    assert first == again and len(evaluated(folder)) == 8
    with gpmi.study("study.db", "study") as kept:
        assert len(kept.trials) == 8 and kept.verify().agrees


def test_a_larger_budget_makes_a_run_longer(folder: Path) -> None:
    (folder / "study.toml").write_text(FILE.replace("budget = 8", "budget = 4"))
    assert invoke("run", "study.toml").exit_code == 0
    (folder / "study.toml").write_text(FILE)
    said = json.loads(invoke("run", "study.toml", "--json").stdout)
    assert (said["evaluations"], said["before"], len(evaluated(folder))) == (8, 4, 8)


def test_a_run_that_reached_its_target_is_at_its_end(folder: Path) -> None:
    (folder / "study.toml").write_text(FILE + "[stop]\ntarget = 0.0\n")
    first = json.loads(invoke("run", "study.toml", "--json").stdout)
    again = json.loads(invoke("run", "study.toml", "--json").stdout)
    assert first["stopped"] == again["stopped"] and "target" in again["stopped"]
    assert len(evaluated(folder)) == 1


def test_a_killed_run_goes_on_and_ends_with_the_points_of_one_that_was_not(folder: Path) -> None:
    (folder / "study.toml").write_text(HELD)
    killed = started(folder, "run", "study.toml")
    wait_for(folder, 4)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    with gpmi.study("study.db", "study") as kept:
        assert [trial.status for trial in kept.trials] == ["told", "told", "told", "pending"]
    (folder / "go").touch()
    said = json.loads(invoke("run", "study.toml", "--json").stdout)
    assert (said["evaluations"], said["before"]) == (8, 3)
    assert len(evaluated(folder)) == 9  # the one that was running was begun twice
    with gpmi.study("study.db", "study") as kept:
        asked = [trial.x["x"] for trial in kept.trials]
        assert kept.verify().agrees
    whole = gpmi.maximize(lambda p: p["x"], {"x": (0.0, 1.0)}, budget=8, seed=0)
    assert asked == [trial.x["x"] for trial in whole.trials]


def test_ctrl_c_gives_its_point_back_and_the_next_run_evaluates_it(folder: Path) -> None:
    (folder / "study.toml").write_text(HELD)
    run = started(folder, "run", "study.toml", "--json")
    wait_for(folder, 4)
    run.send_signal(signal.SIGINT)
    stdout, stderr = run.communicate(timeout=LIMIT)
    assert run.returncode == 130 and only_progress(stderr)
    assert (json.loads(stdout)["stopped"], json.loads(stdout)["evaluations"]) == ("interrupted", 3)
    (folder / "go").touch()
    said = json.loads(invoke("run", "study.toml", "--json").stdout)
    assert (said["evaluations"], said["before"], len(set(evaluated(folder)))) == (8, 3, 8)


@pytest.mark.parametrize("command", [("run", "study.toml"), ("work", "study.db", "study")])
def test_sigterm_ends_the_programs_and_gives_their_points_back(folder: Path, command: tuple[str, ...]) -> None:
    (folder / "study.toml").write_text(FILE.replace("sleep 0.05", "echo $$ > program; exec sleep 600"))
    if command[0] == "work":
        invoke("ask", "study.toml")
    run = started(folder, *command)
    wait_for(folder, 1)
    wait_until(lambda: lines(folder / "program"))
    program = int((folder / "program").read_text())
    os.kill(program, 0)
    run.send_signal(signal.SIGTERM)
    stdout, stderr = run.communicate(timeout=LIMIT)
    assert (run.returncode, stdout) == (143, "") and only_progress(stderr)
    with pytest.raises(ProcessLookupError):
        os.kill(program, 0)
    pending = [trial["number"] for trial in map(json.loads, invoke("trials", "study.db", "--json").stdout.splitlines())]
    assert json.loads(invoke("ask", "study.db", "--json").stdout)["number"] == pending[-1]


def test_two_runs_at_once_and_a_worker_share_one_budget(folder: Path) -> None:
    (folder / "study.toml").write_text(SHARED.replace("budget = 8", "budget = 16"))
    runs = [started(folder, "run", "study.toml", "--json") for _ in range(2)]
    wait_for(folder, 2)
    runs.append(started(folder, "work", "study.db", "study", "--workers", "2", "--json"))
    ended = [run.communicate(timeout=LIMIT) for run in runs]
    assert [run.returncode for run in runs] == [0] * 3
    assert not [stderr for _, stderr in ended if not only_progress(stderr)]
    assert {json.loads(stdout)["evaluations"] for stdout, _ in ended} == {16}
    points = evaluated(folder)
    assert len(points) == 16 and len(set(points)) == 16
    with gpmi.study("study.db", "study") as kept:
        assert [trial.status for trial in kept.trials] == ["told"] * 16
        assert len({entry.worker for entry in kept.log() if entry.kind == "told"}) >= 2
        assert kept.verify().agrees


def test_a_worker_ends_with_the_budget_of_the_study_not_of_the_file(folder: Path) -> None:
    gpmi.study("mine.db", "mine", space={"x": (0.0, 1.0)}, goal="max", seed=3, budget=3).close()
    said = json.loads(invoke("work", "mine.db", "--json").stdout)
    assert (said["evaluations"], said["seed"]) == (3, 3)
    gpmi.study("free.db", "mine", space={"x": (0.0, 1.0)}, goal="max", seed=3).close()
    assert json.loads(invoke("work", "free.db", "mine", "--json").stdout)["evaluations"] == 8


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["run", "other.toml"],
            "x is [0, 2], but that of the study is [0, 1]; undo this change to continue the study 'study'",
        ),
        (["run", "minimum.toml"], "goal is 'min', but that of the study is 'max'; undo this change to continue"),
        (["run", "constrained.toml"], "constraints is ['x <= 0.5'], but that of the study is []"),
        (["run", "damaged.toml"], "damaged.db is damaged, or no SQLite file"),
        (["work", "nowhere.db", "study"], "there is no study in 'nowhere.db'; give its path or address"),
        (["work", "study.db", "another"], "there is no study 'another' in 'study.db'; it has 'study'"),
        (["work", "study.db", "--workers", "0"], "workers is 0; give a whole number of at least 1"),
        (["work", "study.db", "--file", "other.toml"], "x is [0, 2], but that of the study is [0, 1]; undo"),
        (["work", "mysql://me@host/db"], "only SQLite and PostgreSQL are supported"),
    ],
)
def test_what_does_not_belong_together_is_refused_in_one_line(folder: Path, arguments: list[str], words: str) -> None:
    gpmi.study("study.db", "study", space={"x": (0.0, 1.0)}, goal="max", seed=0, constraints=[]).close()
    named = 'name = "study"\n' + FILE
    (folder / "other.toml").write_text(named.replace("[0.0, 1.0]", "[0.0, 2.0]"))
    (folder / "minimum.toml").write_text(named.replace('"max"', '"min"'))
    (folder / "constrained.toml").write_text('constraints = ["x <= 0.5"]\n' + named)
    (folder / "damaged.toml").write_text('database = "damaged.db"\n' + FILE)
    (folder / "damaged.db").write_text("this is no database, and it is long enough to be looked at" * 100)
    result = invoke(*arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("gpmi: ") and words in result.stderr and result.stderr.count("\n") == 1
    assert not evaluated(folder) and not (folder / "nowhere.db").exists()


def test_constraints_that_were_removed_from_the_file_are_missed(folder: Path) -> None:
    (folder / "study.toml").write_text('constraints = ["x <= 0.5"]\n' + FILE)
    assert invoke("run", "study.toml").exit_code == 0
    (folder / "study.toml").write_text(FILE)
    result = invoke("run", "study.toml")
    assert result.exit_code == 1 and "constraints is [], but that of the study is ['x <= 0.5']" in result.stderr


@pytest.mark.parametrize("wrong", ["sqlite:///a.db", ":memory:", "no-such-folder/a.db", "."])
def test_a_database_that_can_be_none_is_refused_at_its_line(folder: Path, wrong: str) -> None:
    (folder / "study.toml").write_text(f'goal = "max"\ndatabase = "{wrong}"\n' + FILE.replace('goal = "max"', ""))
    result = invoke("run", "study.toml")
    assert result.exit_code == 1 and "gpmi: study.toml:2: database: " in result.stderr


def test_the_last_line_of_a_run_is_a_command_that_can_be_copied(tmp_path: Path, folder: Path) -> None:
    where = tmp_path / "a folder; of 'mine'"
    where.mkdir()
    (where / "study.toml").write_text(
        'budget = 2\n[parameters]\nx = { real = [0.0, 1.0] }\n[command]\nrun = ["echo", "{x}"]\n'
    )
    done = invoke("run", where / "study.toml")
    assert done.exit_code == 0, done.stderr
    last = done.stdout.splitlines()[-1].partition("gpmi report ")[2]
    assert invoke("best", *shlex.split(last), "--json").exit_code == 0  # it takes the same arguments
    worked = invoke("work", where / "study.db", "--file", where / "study.toml")
    assert worked.exit_code == 0, worked.stderr
    assert invoke("best", *shlex.split(worked.stdout.splitlines()[-1].partition("gpmi report ")[2])).exit_code == 0


def test_a_server_that_is_down_is_reported_while_it_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("psycopg")
    from gpmi.storage import database, opening

    assert database.CONNECT_TIMEOUT + database.SILENT <= 5
    monkeypatch.setattr(database, "time", Clock())
    monkeypatch.setattr(database, "SILENT", 0.0)
    monkeypatch.setattr(opening, "PATIENCE", 0.5)
    done = invoke("best", "postgresql://me:secret@127.0.0.1:1/studies")
    assert done.exit_code == 1 and "secret" not in done.stderr
    retrying, failed = done.stderr.splitlines()
    assert "is unreachable" in retrying and "retrying for" in retrying and "is unreachable" in failed


@pytest.mark.parametrize(
    "call",
    [
        "gpmi.study(address, space=[(0.0, 1.0)], patience=600.0)",
        "gpmi.maximize(abs, [(0.0, 1.0)], budget=2, study=address)",
    ],
)
def test_a_python_caller_hears_that_a_server_is_down_while_it_is_tried_again(call: str) -> None:
    """On stderr, without any setting of logging: nobody waits a minute without a word."""
    pytest.importorskip("psycopg")
    code = f"""if True:
        import types
        import gpmi
        from gpmi.storage import database

        def stop_waiting(*args):
            raise SystemExit(5)

        database.SILENT = -1.0
        database.random = types.SimpleNamespace(uniform=stop_waiting)  # it is to sleep before the next attempt
        address = "postgresql://me:secret@127.0.0.1:1/studies"
        {call}
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    (line,) = done.stderr.splitlines()
    assert done.returncode == 5 and "secret" not in line
    assert line.startswith("gpmi: ") and "is unreachable" in line and "retrying for" in line


def test_a_report_shows_which_section_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rich.status import Status

    from gpmi.views.html import IDS

    shown: list[str] = []
    monkeypatch.setattr(Status, "update", lambda self, status: shown.append(status))
    monkeypatch.chdir(tmp_path)
    with gpmi.study("run.db", space=[(0.0, 1.0)], seed=0) as study:
        study.optimize(lambda x: -((x[0] - 0.3) ** 2), budget=6)
    assert invoke("report", "run.db").exit_code == 0
    assert shown[0] == f"writing the report, 1 of {len(IDS)}: What was found"
    assert len(shown) == len(IDS) and shown[-1].startswith(f"writing the report, {len(IDS)} of {len(IDS)}: ")
