"""`gpmi ask | tell | fail | best | trials | verify | export | import`: what they print, and return to a shell."""

from __future__ import annotations

import json
import math
import re
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sqlalchemy")
from typer.testing import CliRunner

import gpmi
from gpmi import cli
from gpmi.model.model import Model
from gpmi.trials.files import read_trials

SPACE = {"x": (0.0, 1.0), "kind": ["a", "b"]}
FILE = """
goal = "min"
budget = 5
seed = 4
[parameters]
x = { real = [0.0, 1.0] }
kind = { choice = ["a", "b"] }
[command]
run = ["echo", "{x}"]
"""


def invoke(*arguments: Any) -> Any:
    return CliRunner().invoke(cli.app(), [str(a) for a in arguments])


def fine(*arguments: Any) -> str:
    result = invoke(*arguments)
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    return str(result.stdout)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    gpmi.study("run.db", "mine", space=SPACE, goal="max", seed=0).close()
    return tmp_path


def test_what_is_asked_and_told_by_commands_is_what_an_optimizer_asks(folder: Path) -> None:
    opt = gpmi.Optimizer(SPACE, goal="max", seed=0)
    for number in range(6):
        said = json.loads(fine("ask", "run.db", "--json"))
        x = opt.ask()
        assert said == {"number": number, "x": x}
        y = -((x["x"] - 0.3) ** 2)  # negative numbers are values, not options
        opt.tell(x, y)
        assert fine("tell", "run.db", number, y) == ""
    with gpmi.study("run.db", "mine") as study:
        assert [trial.y for trial in study.trials] == [trial.y for trial in opt.trials]
    best = json.loads(fine("best", "run.db", "--recommended", "--json"))
    assert opt.best is not None
    assert (best["number"], best["y"], best["x"]) == (opt.best.number, opt.best.y, opt.best.x)
    assert best["recommended"] == opt.recommend() and "largest y" in fine("best", "run.db")
    verified = {"entries": 13, "suggestions": 6, "verdict": "equal", "problems": [], "rounded": []}
    assert json.loads(fine("verify", "run.db", "--json")) == verified


def test_a_plate_shares_a_parameter_and_names_the_trials(folder: Path) -> None:
    said = [
        json.loads(x) for x in fine("ask", "run.db", "-n", 5, "--same", "x", "--plate", "p.csv", "--json").splitlines()
    ]
    assert len({one["x"]["x"] for one in said}) == 1 and len(said) == 2  # two kinds
    lines = (folder / "p.csv").read_text().splitlines()
    assert lines[0] == "well,trial,x,kind" and [line.split(",")[:2] for line in lines[1:]] == [["A1", "0"], ["A2", "1"]]
    fine("ask", "run.db", "-n", 3, "--plate", "p.html")
    assert "<table" in (folder / "p.html").read_text()
    for wrong, code, words in (
        (("--same", "oven"), 1, "same names 'oven'"),
        (("--plate", "p.pdf"), 2, "--plate"),
        (("--plate", "p.csv", "-n", 97), 2, "96 wells"),
    ):
        result = invoke("ask", "run.db", *wrong)
        assert result.exit_code == code and words in result.stderr
    assert fine("verify", "run.db", "--json").count('"equal"') == 1


def test_a_point_that_was_asked_stays_with_who_asked_it(folder: Path) -> None:
    first, second = fine("ask", "run.db", "--count", "2", "--json").splitlines()
    third = fine("ask", "run.db")
    assert [json.loads(first)["number"], json.loads(second)["number"]] == [0, 1]
    assert re.fullmatch(r"trial 2\n  x = 0\.\d+\n  kind = [ab]\n", third)
    with gpmi.study("run.db", "mine") as study:
        assert len(study.pending) == 3


def test_error_bars_constraints_and_reasons_are_kept(folder: Path) -> None:
    fine("ask", "run.db", "--count", "2")
    fine("tell", "run.db", 0, 1.5, "--noise-var", 0.25, "--constraint", -1, "--constraint", 0.5, "--name", "mine")
    assert json.loads(fine("fail", "run.db", 1, "--why", "the pump stopped", "--json"))["why"] == "the pump stopped"
    with gpmi.study("run.db", "mine") as study:
        told, failed = study.trials
    assert (told.y, told.noise_var, told.constraints) == (1.5, 0.25, (-1.0, 0.5))
    assert (failed.status, failed.why) == ("failed", "the pump stopped")
    head, *lines = fine("trials", "run.db").splitlines()
    assert head.split() == ["trial", "status", "y", *SPACE, "why"]
    assert len(lines) == 2 and lines[0].split()[:3] == ["0", "infeasible", "1.5"] and "the pump stopped" in lines[1]
    assert lines[1].index("the pump") == head.index("why")


def test_the_same_value_counts_once_and_another_one_is_refused(folder: Path) -> None:
    fine("ask", "run.db")
    fine("tell", "run.db", 0, 1)
    fine("tell", "run.db", 0, 1)
    other = invoke("tell", "run.db", 0, 2)
    assert other.exit_code == 1 and "told the value 1.0 already; --correct replaces it, --again" in other.stderr
    failed = invoke("fail", "run.db", 0)
    assert failed.exit_code == 1 and "told the value 1.0 already" in failed.stderr
    assert len(fine("trials", "run.db", "--json").splitlines()) == 1
    assert json.loads(fine("tell", "run.db", 0, 3, "--correct", "--json"))["y"] == 3.0
    said = json.loads(fine("tell", "run.db", 0, 4, "--again", "--json"))
    assert said == {"number": 1, "status": "told", "y": 4.0, "why": None}
    assert invoke("tell", "run.db", 0, 4, "--again", "--correct").exit_code == 1
    with gpmi.study("run.db", "mine") as study:
        assert [t.y for t in study.trials] == [3.0, 4.0] and study.trials[0].x == study.trials[1].x


@pytest.mark.parametrize(("option", "suffix"), [("--csv", ".csv"), ("--json", ".jsonl")])
def test_what_is_printed_is_what_is_exported_and_can_be_imported(folder: Path, option: str, suffix: str) -> None:
    fine("ask", "run.db", "--count", "3")
    fine("tell", "run.db", 0, 1 / 3)
    fine("tell", "run.db", 1, -2.5, "--noise-var", 0.1)
    fine("export", "run.db", f"out{suffix}")
    assert fine("trials", "run.db", option) == (folder / f"out{suffix}").read_text()
    (folder / "study.toml").write_text(FILE)
    for _ in range(2):  # the same rows count once
        result = invoke("import", "study.toml", f"out{suffix}")
        assert (result.exit_code, result.stderr) == (0, "gpmi: left out 1 trials without a value\n")
    rows = read_trials(f"out{suffix}", SPACE)[:2]
    with gpmi.study("study.db", "study") as study:
        assert [(t.x, t.y, t.noise_var) for t in study.trials] == [(t.x, t.y, t.noise_var) for t in rows]
        assert (study.goal, study.seed, study.budget) == ("min", 4, 5)
    assert json.loads(fine("best", "study.toml", "--json"))["y"] == -2.5


def test_a_row_that_is_wrong_lets_nothing_in(folder: Path) -> None:
    (folder / "in.csv").write_text("x,kind,y\n0.5,a,1\n0.5,c,2\n")
    result = invoke("import", "run.db", "in.csv")
    assert result.exit_code == 1 and result.stderr.startswith("gpmi: in.csv:3: ")
    assert fine("trials", "run.db") == ""


def test_parquet_and_optuna_both_ways(folder: Path) -> None:
    pytest.importorskip("pyarrow")
    pytest.importorskip("optuna")
    (folder / "in.csv").write_text("x,kind,y\n0.25,a,1\n0.5,b,2\n")
    fine("import", "run.db", "in.csv")
    again = json.loads(fine("import", "run.db", "in.csv", "--json"))
    assert again == {"new": 0, "values": 2, "left_out": 0, "source": "in.csv"}
    fine("export", "run.db", "out.parquet")
    assert json.loads(fine("export", "run.db", "sqlite:///optuna.db", "--json"))["trials"] == 2
    again = invoke("export", "run.db", "sqlite:///optuna.db")
    assert again.exit_code == 1 and "has a study 'mine' already" in again.stderr
    fine("export", "run.db", "sqlite:///optuna.db", "--optuna-name", "other")
    unnamed = invoke("import", "run.db", "sqlite:///optuna.db")
    assert unnamed.exit_code == 1 and "has the studies 'mine', 'other'" in unnamed.stderr
    for number, (source, *more) in enumerate(
        [("out.parquet",), ("sqlite:///optuna.db", "--optuna-name", "other")], start=1
    ):
        gpmi.study(f"{number}.db", space=SPACE, seed=0).close()
        fine("import", f"{number}.db", source, *more)
        with gpmi.study(f"{number}.db") as study:
            assert [(t.x, t.y) for t in study.trials] == [
                ({"x": 0.25, "kind": "a"}, 1.0),
                ({"x": 0.5, "kind": "b"}, 2.0),
            ]


def test_commands_that_need_no_model_build_none(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model of 20,000 values takes minutes and gigabytes; replaying them takes two seconds."""
    with gpmi.study("run.db", "mine") as study:
        study.optimize(lambda p: -((p["x"] - 0.3) ** 2), budget=8)
        study.ask(2, lease=math.inf)
    built, after = [], Model.after
    monkeypatch.setattr(Model, "after", lambda *given: built.append(given) or after(*given))
    found = json.loads(fine("best", "run.db", "--json"))
    assert (found["recommended"], found["stopped"]) == (None, "budget")
    assert found["events"] == [{"kind": "no recommendation", "message": "add --recommended"}]
    said = fine("best", "run.db")
    assert "recommended  not computed; add --recommended\n" in said and "events       none" in said
    assert fine("trials", "run.db") and fine("trials", "run.db", "--json") and fine("trials", "run.db", "--csv")
    fine("fail", "run.db", 8)
    for target in ("run.csv", "run.jsonl", "run.parquet", "sqlite:///optuna.db"):
        fine("export", "run.db", target)
    assert not built and "recommended  {'x'" in fine("best", "run.db", "--recommended") and built


def test_points_that_are_arrays(folder: Path) -> None:
    gpmi.study("array.db", space=[(0.0, 1.0), (0.0, 2.0)], seed=0).close()
    x = json.loads(fine("ask", "array.db", "--json"))["x"]
    assert len(x) == 2 and "  x1 = " in fine("ask", "array.db")
    fine("tell", "array.db", 0, 1)
    assert json.loads(fine("best", "array.db", "--json"))["x"] == x


def test_nothing_to_give_is_3(folder: Path) -> None:
    best = invoke("best", "run.db")
    assert (best.exit_code, best.stderr) == (3, "gpmi: the study 'mine' has no value yet in 0 trials\n")
    gpmi.study("small.db", space=np.array([[0.0], [1.0]]), repeats=False, seed=0).close()
    assert len(fine("ask", "small.db", "--count", "3", "--json").splitlines()) == 2
    assert invoke("ask", "small.db").exit_code == 3


def test_a_log_that_was_changed_by_hand_is_3_and_the_entry_is_named(folder: Path) -> None:
    fine("ask", "run.db")
    fine("tell", "run.db", 0, 1)
    with sqlite3.connect("run.db") as raw:
        raw.execute("UPDATE gpmi_events SET body = replace(body, '1.0', '2.0') WHERE kind = 'told'")
    raw.close()
    result = invoke("verify", "run.db")
    assert result.exit_code == 3 and "entry 2 (told) does not have the checksum" in result.stdout
    assert "1 suggestions recomputed: different" in result.stdout


def test_rounding_on_another_platform_is_0_and_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gpmi.storage import verification

    fine("ask", "run.db")
    assert json.loads(fine("verify", "run.db", "--json"))["verdict"] == "equal"
    suggested = verification.ReplayedOptimizer.suggested
    monkeypatch.setattr(
        verification.ReplayedOptimizer,
        "suggested",
        lambda self, fixed: {**suggested(self, fixed), "x": suggested(self, fixed)["x"] * (1.0 - 1e-9)},
    )
    assert invoke("verify", "run.db").exit_code == 3
    monkeypatch.setattr(verification, "own_platform", lambda: {"cpu": "another"})
    result = invoke("verify", "run.db")
    assert result.exit_code == 0 and "equal up to rounding on another platform" in result.stdout
    assert "this is gpmi" in result.stdout and "CPU another" in result.stdout
    assert len(json.loads(fine("verify", "run.db", "--json"))["rounded"]) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["best", "nowhere.db"], "there is no study in 'nowhere.db'; give its path or address"),
        (["best", "other.db"], "there is no study in 'other.db'"),
        (["best", "two.db"], "there are 2 studies in 'two.db'; give --name with one of them: 'a', 'b'"),
        (["best", "two.db", "--name", "c"], "there is no study 'c' in 'two.db'; it has 'a', 'b'"),
        (["best", "study.toml"], "there is no study in "),
        (["best", "broken.toml"], "broken.toml:1: "),
        (["best", "mysql://me:secret@host/db"], "'mysql://me:***@host/db'; only SQLite and PostgreSQL are supported"),
        (["tell", "run.db", "7", "1"], "trial is 7: there is no such trial; the study has 0"),
        (["tell", "run.db", "0", "nan"], "y is nan; give one finite number"),
        (["fail", "run.db", "0"], "trial is 0: there is no such trial"),
        (["ask", "run.db", "--count", "0"], "n is 0; give a whole number of at least 1"),
        (["trials", "run.db", "--json", "--csv"], "--json and --csv were given; give one of them"),
        (["export", "run.db", "trials.xls"], "give a file that ends in .csv, .jsonl, .parquet"),
        (["export", "run.db", "/proc/no/trials.csv"], "cannot be written to"),
        (["import", "run.db", "nowhere.csv"], "'nowhere.csv' cannot be used (No such file or directory)"),
    ],
)
def test_a_mistake_gets_one_line_and_1(folder: Path, arguments: list[str], words: str) -> None:
    for name in "ab":
        gpmi.study("two.db", name, space=SPACE).close()
    sqlite3.connect("other.db").close()
    (folder / "study.toml").write_text(FILE)
    (folder / "broken.toml").write_text("goal = ")
    result = invoke(*arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("gpmi: ") and words in result.stderr and result.stderr.count("\n") == 1
    assert not (folder / "nowhere.db").exists() and not (folder / "study.db").exists()


@pytest.mark.parametrize("command", ["work", "ask", "tell", "fail", "best", "trials", "verify", "export", "import"])
def test_every_help_has_an_example(command: str) -> None:
    assert re.search(rf"Example: gpmi {command}\b", invoke(command, "--help").output)
