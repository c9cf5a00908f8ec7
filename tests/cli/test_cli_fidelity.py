"""Commands about studies with a fidelity: levels in `gpmi run`, `ask` and `tell`, and steps by `gpmi step`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sqlalchemy")
from typer.testing import CliRunner

import gpmi
from gpmi import cli

LEVELS = """
goal = "max"
budget = 12
seed = 0
[parameters]
x = { real = [0.0, 1.0] }
mesh = { fidelity = { coarse = 1, fine = 10 } }
[command]
run = ["{python}", "-c", '''
import sys
x, mesh = float(sys.argv[1]), sys.argv[2]
print(-(x - 0.3) ** 2 + (0.1 if mesh == "coarse" else 0.0))
''', "{x}", "{mesh}"]
"""
SPACE = {"x": gpmi.Real(0.0, 1.0), "epoch": gpmi.Fidelity(1, 20)}


def invoke(*arguments: Any) -> Any:
    return CliRunner().invoke(cli.app(), [str(a) for a in arguments])


def fine(*arguments: Any) -> str:
    result = invoke(*arguments)
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    return str(result.stdout)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_program_gets_the_level_and_the_best_is_at_the_target(folder: Path) -> None:
    Path("study.toml").write_text(LEVELS)
    result = invoke("run", "study.toml", "--json")
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout.splitlines()[-1])
    assert said["x"]["mesh"] == "fine" and said["recommended"]["mesh"] == "fine" and -0.01 < said["y"] <= 0.0
    assert (said["evaluations"], said["failed"], said["stopped_early"]) == (12, 0, 0)
    rows = [json.loads(line) for line in fine("trials", "study.toml", "--json").splitlines()]
    assert {row["mesh"] for row in rows} == {"coarse", "fine"}


def test_a_point_is_asked_with_its_level_and_told(folder: Path) -> None:
    Path("study.toml").write_text(LEVELS)
    opt = gpmi.Optimizer({"x": (0.0, 1.0), "mesh": gpmi.Fidelity({"coarse": 1, "fine": 10})}, seed=0, budget=12)
    for number in range(10):
        said = json.loads(fine("ask", "study.toml", "--json"))
        x = opt.ask()
        assert said == {"number": number, "x": x}
        opt.tell(x, x["x"])
        told = invoke("tell", "study.toml", number, repr(x["x"]))
        assert told.exit_code == 0, told.output
    assert "'mesh': 'fine'" in fine("best", "study.toml")


# Steps


def curve(x: float, step: int) -> float:
    return -((x - 0.3) ** 2) - 0.5 / step


def test_steps_are_those_of_an_optimizer(folder: Path) -> None:
    gpmi.study("a.db", "a", space=SPACE, seed=0).close()
    opt, stopped = gpmi.Optimizer(SPACE, seed=0), 0
    for number in range(8):
        x = json.loads(fine("ask", "a.db", "--json"))["x"]
        assert x == opt.ask() and x["epoch"] == 20
        for step in (1, 3, 5, 10, 20):
            answer = opt.report(number, step, curve(x["x"], step))
            assert fine("step", "a.db", number, step, repr(curve(x["x"], step))) == f"{answer}\n"
            if answer == "stop":
                stopped += step < 20
                break
    assert 0 < stopped < 8
    assert f'"stopped_early": {stopped}' in fine("best", "a.db", "--json")
    assert fine("verify", "a.db").endswith("equal\n")


def test_a_step_is_reported_once_and_what_is_wrong_is_refused(folder: Path) -> None:
    gpmi.study("a.db", "a", space=SPACE, seed=0).close()
    gpmi.study("b.db", "b", space={"x": (0.0, 1.0)}, seed=0).close()
    for name in ("a.db", "b.db"):
        fine("ask", name)
    assert fine("step", "a.db", 0, 3, 0.5) == fine("step", "a.db", 0, 3, 0.5) == "continue\n"
    for arguments, words in (
        (("a.db", 0, 3, 0.6), "step 3 of trial 0 was 0.5; report each step once"),
        (("a.db", 0, 2, 0.6), "report in order"),
        (("a.db", 0, 21, 0.6), "epoch goes from 1 to 20"),
        (("a.db", 0, 4, "nan"), "nan"),
        (("a.db", 0, 4, "loss=0.5"), "loss is an output, but the study has no goals; give one number"),
        (("a.db", 7, 4, 0.5), "there is no such trial"),
        (("b.db", 0, 1, 0.5), "the space has no steps to report"),
    ):
        result = invoke("step", *arguments)
        assert result.exit_code == 1 and words in result.stderr and "Traceback" not in result.output
    assert invoke("step", "a.db", 0, 4, "much").exit_code == 2
    assert invoke("step", "a.db", 0, 4, 1, 2).exit_code == 2
    assert json.loads(fine("step", "a.db", 0, 20, 0.7, "--json")) == {"number": 0, "step": 20, "answer": "stop"}
    assert "0.7" in fine("trials", "a.db")


def test_steps_of_outputs(folder: Path) -> None:
    goals = {"loss": gpmi.Min(), "size": gpmi.Min()}
    gpmi.study("a.db", "a", space=SPACE, seed=0, goals=goals).close()
    fine("ask", "a.db")
    assert fine("step", "a.db", 0, 3, "loss=0.5", "size=2") == "continue\n"
    assert "was given without a name" in invoke("step", "a.db", 0, 4, 0.5).stderr
    assert fine("step", "a.db", 0, 20, "loss=0.25", "size=2") == "stop\n"


def test_a_trial_that_was_stopped_may_be_told_or_fail_after_all(folder: Path) -> None:
    study = gpmi.study("a.db", "a", space=SPACE, seed=0)
    for _ in range(8):
        trial = study.ask()
        x = dict(trial.x)["x"]
        for step in (1, 3, 5, 10, 20):
            if study.report(trial.number, step, curve(x, step)) == "stop":
                break
    stopped = [trial.number for trial in study.trials if trial.status == "stopped"]
    study.close()
    assert len(stopped) >= 2
    for command in (("tell", "a.db", stopped[0], "-0.2"), ("fail", "a.db", stopped[1])):
        result = invoke(*command)
        assert result.exit_code == 0, result.output


# Programs that report steps

STEPS = """
goal = "max"
cost = 120
seed = 0
workers = WORKERS
[parameters]
x = { real = [0.0, 1.0] }
epoch = { fidelity = [1, 20] }
[command]
run = ["{python}", "-c", '''
import sys
x = float(sys.argv[1])
if x > 0.9:
    sys.exit("too large")
for epoch in range(1, int(sys.argv[2]) + 1):
    print(epoch, -(x - 0.3) ** 2 - 0.5 / epoch, flush=True)
''', "{x}", "{epoch}"]
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_a_program_is_ended_when_it_will_hardly_win_and_the_cost_ends_the_run(folder: Path, workers: int) -> None:
    pytest.importorskip("gpmi.run.curves")
    Path("study.toml").write_text(STEPS.replace("WORKERS", str(workers)))
    result = invoke("run", "study.toml", "--json")
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout.splitlines()[-1])
    assert said["stopped"] == "cost" and said["x"]["epoch"] == 20 and said["stopped_early"] > 0
    assert "not stopped" not in [event["kind"] for event in said["events"]]
    rows = [json.loads(line) for line in fine("trials", "study.toml", "--json").splitlines()]
    assert any(row["status"] == "failed" and row["why"].endswith("exit code 1: too large") for row in rows)
    for row in rows:
        if row["status"] == "stopped":
            assert 0 < len(row["curve"]) < 20  # the program may have been faster than the answer
    again = json.loads(invoke("run", "study.toml", "--json").stdout.splitlines()[-1])
    assert again["evaluations"] == said["evaluations"]
