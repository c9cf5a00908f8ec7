"""`gpmi` on studies with goals: tell, best, choose, trials, export, import, run, work and verify."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sqlalchemy")
from typer.testing import CliRunner

import gpmi
from gpmi import cli
from gpmi.exchange import read_trials
from gpmi.model.model import Model

SPACE: dict[str, Any] = {"heat": (0.0, 10.0)}
GOALS: dict[str, Any] = {"yield": gpmi.Max(at_least=0.0), "cost": "min", "purity": gpmi.AtLeast(0.5)}
SINGLE: dict[str, Any] = {"cost": "min", "purity": gpmi.AtLeast(0.5)}
FILE = """\
budget = 8
seed = 0
[parameters]
heat = { real = [0.0, 10.0] }
[goals]
yield = { goal = "max", at_least = 0 }
cost = "min"
purity = { at_least = 0.5 }
"""
PROGRAM = r"""
[command]
run = 'echo "{\"yield\": $GPMI_HEAT, \"cost\": $GPMI_HEAT, \"purity\": 0.75}"'
shell = true
"""


def invoke(*arguments: Any) -> Any:
    return CliRunner().invoke(cli.app(), [str(a) for a in arguments])


def fine(*arguments: Any) -> str:
    result = invoke(*arguments)
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    return str(result.stdout)


def refused(*arguments: Any) -> str:
    result = invoke(*arguments)
    assert (result.exit_code, result.stdout) == (1, "") and result.stderr.count("\n") == 1, result.output
    return str(result.stderr)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    gpmi.study("run.db", space=SPACE, goals=GOALS, seed=0).close()
    gpmi.study("single.db", space=SPACE, goals=SINGLE, seed=0).close()
    gpmi.study("plain.db", space=SPACE, seed=0).close()
    return tmp_path


def trials_of(path: str) -> tuple[gpmi.Trial, ...]:
    with gpmi.study(path) as study:
        return study.trials


def filled(path: str = "run.db") -> None:
    """Tell nine trials: yield and cost grow with the heat, and a heat above 7 is infeasible."""
    with gpmi.study(path) as study:
        for heat in range(1, 10):
            study.tell({"heat": float(heat)}, {"yield": heat, "cost": heat**2, "purity": 0.75 if heat < 7.5 else 0.25})


# Telling


def test_outputs_are_told_by_name_and_the_rest_may_follow(folder: Path) -> None:
    fine("ask", "run.db", "--count", 2)
    assert json.loads(fine("tell", "run.db", 0, "yield=-71.5", "cost=3e1", "--json")) == {
        "number": 0, "status": "told", "y": None, "why": None,
        "outputs": {"yield": -71.5, "cost": 30.0}, "unmet": ["purity"],
    }  # fmt: skip
    assert fine("tell", "run.db", 0, "purity=0.75", "--noise-var", 0.25) == ""
    fine("tell", "run.db", 1, "cost=1", "yield=2", "--noise-var", "yield=0.5")
    first, second = trials_of("run.db")
    assert first.outputs == {"yield": -71.5, "cost": 30.0, "purity": 0.75} and first.feasible
    assert (first.output_noise_var, second.output_noise_var) == ({"purity": 0.25}, {"yield": 0.5})
    assert json.loads(fine("verify", "run.db", "--json"))["verdict"] == "equal"


def test_the_same_outputs_count_once_and_another_value_is_refused(folder: Path) -> None:
    fine("ask", "run.db")
    fine("tell", "run.db", 0, "yield=1", "--noise-var", "yield=0.5")
    for words in (
        ["yield=1"],
        ["yield=1", "cost=2"],
        ["cost=2", "yield=1"],
        ["cost=2"],
        ["yield=1", "--noise-var", 0.5],
    ):
        fine("tell", "run.db", 0, *words)
    (trial,) = trials_of("run.db")
    assert trial.outputs == {"yield": 1.0, "cost": 2.0} and trial.output_noise_var == {"yield": 0.5}
    already = "trial 0 was told yield = 1.0, cost = 2.0 already; --correct replaces it, --again adds another"
    assert already in refused("tell", "run.db", 0, "yield=3")
    assert already in refused("tell", "run.db", 0, "yield=3", "purity=1")
    assert already in refused("tell", "run.db", 0, "yield=1", "purity=1", "--noise-var", "yield=0.25")
    assert "trial 0 was told yield = 1.0, cost = 2.0 already; it cannot fail" in refused("fail", "run.db", 0)
    assert trials_of("run.db")[0].outputs == trial.outputs


def test_outputs_are_corrected_one_by_one_and_measured_again(folder: Path) -> None:
    fine("ask", "run.db")
    fine("tell", "run.db", 0, "yield=1", "cost=2", "--noise-var", "cost=0.5")
    corrected = json.loads(fine("tell", "run.db", 0, "yield=-3", "--correct", "--json"))
    assert corrected["outputs"] == {"yield": -3.0, "cost": 2.0}
    again = json.loads(fine("tell", "run.db", 0, "yield=4", "--again", "--json"))
    assert (again["number"], again["outputs"]) == (1, {"yield": 4.0})
    first, second = trials_of("run.db")
    assert first.outputs_before == {"yield": 1.0, "cost": 2.0} and first.output_noise_var == {"cost": 0.5}
    assert first.x == second.x
    fine("tell", "run.db", 0, "cost=5", "--correct", "--noise-var", "cost=0.25")
    assert trials_of("run.db")[0].output_noise_var == {"cost": 0.25}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run.db", 0, 5], "5 was given without a name, but the study has goals; give yield=... cost=... purity=..."),
        (["run.db", 0, "yeild=5"], "'yeild' is not an output of this run; did you mean 'yield'?"),
        (["run.db", 0, "yield=nan"], "yield is nan; give one finite number"),
        (["run.db", 0, "yield=1e200"], "yield is 1e+200, too large to square"),
        (["run.db", 0, "yield=1", "--noise-var", "cost=1"], "noise_var has 'cost', which y has not"),
        (["run.db", 0, "yield=1", "--noise-var", "cast=1"], "'cast'"),
        (["run.db", 0, "yield=1", "--noise-var", "yield=-1"], "is -1.0; it is a variance"),
        (["run.db", 0, "yield=1", "--noise-var", 1, "--noise-var", "yield=1"], "give only one kind"),
        (["run.db", 0, "yield=1", "--constraint", 1], "constraints is [1.0], but the run has goals"),
        (["run.db", 0, "yield=1", "--correct"], "trial is 0: it is pending"),
        (["run.db", 7, "yield=1"], "trial is 7: there is no such trial"),
        (["plain.db", 0, "yield=5"], "yield is an output, but the study has no goals; give one number"),
        (["plain.db", 0, 1, "--noise-var", "y=3"], "y is an output, but the study has no goals; give one number"),
    ],
)
def test_what_cannot_be_told_is_refused_in_one_line(folder: Path, arguments: list[Any], words: str) -> None:
    for path in ("run.db", "plain.db"):
        fine("ask", path)
    assert words in refused("tell", *arguments)
    assert trials_of("run.db")[0].status == trials_of("plain.db")[0].status == "pending"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["yield=abc"], "'abc' is not a number"),
        (["yield="], "'' is not a number"),
        (["abc"], "'abc' is not a valid float"),
        (["yield=1", "yield=2"], "yield was given twice"),
        (["1", "2"], "there are several numbers; give one, or outputs by name."),
        (["yield=1", "--noise-var", "abc"], "'abc' is not a valid float"),
        ([], "Missing argument"),
    ],
)
def test_a_text_for_a_number_is_a_wrong_argument(folder: Path, arguments: list[str], words: str) -> None:
    result = invoke("tell", "run.db", 0, *arguments)
    assert result.exit_code == 2 and words in " ".join(re.sub(r"[│╭╰─╮╯]", " ", result.output).split())


# Reading


def test_the_best_of_several_objectives_is_the_front_without_a_model(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled()
    built, after = [], Model.after
    monkeypatch.setattr(Model, "after", lambda *given: built.append(given) or after(*given))
    shown = fine("best", "run.db")
    assert "front          7 of 9 trials, by the values told" in shown and "largest yield  7 in trial 6" in shown
    table = shown.split("\n\n")[1].splitlines()
    assert table[0].split() == ["trial", "yield", "cost", "purity", "heat"]
    assert [row.split()[:3] for row in table[1:3]] == [["6", "7", "49"], ["5", "6", "36"]] and len(table) == 8
    said = json.loads(fine("best", "run.db", "--json"))
    assert (said["goal"], said["y"], said["x"], said["infeasible"], said["waiting"]) == (None, None, None, [7, 8], [])
    assert said["front"][0] == {
        "number": 6,
        "x": {"heat": 7.0},
        "outputs": {"yield": 7.0, "cost": 49.0, "purity": 0.75},
    }
    assert said["goals"][0] == {"output": "yield", "kind": "Max", "at_least": 0.0} and not built
    assert "front          7 of 9 trials\n" in fine("best", "run.db", "--recommended") and built


def test_the_best_of_a_single_objective_has_its_name(folder: Path) -> None:
    with gpmi.study("single.db") as study:
        study.tell({"heat": 1.0}, {"cost": 1.0, "purity": 0.25})
    nothing = invoke("best", "single.db")
    assert (nothing.exit_code, nothing.stderr) == (
        3,
        "gpmi: the study 'default' has no feasible value yet in 1 trials\n",
    )
    with gpmi.study("single.db") as study:
        study.tell({"heat": 2.0}, {"cost": 2.0, "purity": 0.75})
        study.tell({"heat": 3.0}, {"cost": 1.0})
    assert "smallest feasible cost  2\n" in fine("best", "single.db")
    said = json.loads(fine("best", "single.db", "--json"))
    assert (said["number"], said["goal"], said["y"], said["outputs"]) == (1, "min", 2.0, {"cost": 2.0, "purity": 0.75})
    assert said["waiting"] == [{"number": 2, "outputs": ["purity"]}] and "front" not in said


def test_nothing_to_show_is_3(folder: Path) -> None:
    for command in (["best", "run.db"], ["choose", "run.db", "cost=min"]):
        result = invoke(*command)
        assert (result.exit_code, result.stderr) == (3, "gpmi: the study 'default' has no value yet in 0 trials\n")
    fine("ask", "run.db")
    fine("tell", "run.db", 0, "yield=1")
    assert "no feasible value yet in 1 trials" in invoke("best", "run.db").stderr


def test_the_list_of_trials_has_the_outputs(folder: Path) -> None:
    filled()
    fine("ask", "run.db")
    fine("tell", "run.db", 9, "yield=1")
    assert "doubtful" in fine("trials", "run.db").splitlines()[-1], "ten times less than its neighbours"
    fine("confirm", "run.db", 9)
    head, *rows = fine("trials", "run.db").splitlines()
    assert head.split() == ["trial", "status", "yield", "cost", "purity", "heat", "why"]
    assert [row.split()[1] for row in rows] == ["told"] * 7 + ["infeasible"] * 2 + ["waiting"]
    assert json.loads(fine("trials", "run.db", "--json").splitlines()[1])["cost"] == 4.0
    assert fine("trials", "run.db", "--csv").splitlines()[0].startswith("number,heat,yield,cost,purity,unmet,y,")


def test_a_point_is_chosen_under_conditions(folder: Path) -> None:
    filled()
    shown = fine("choose", "run.db", "cost=min", "--where", "yield >= 4.5")
    assert "at x" in shown and "yield" in shown
    said = json.loads(fine("choose", "run.db", "cost=min", "--where", "yield>=4.5", "--confidence", 0.95, "--json"))
    with gpmi.study("run.db") as study:
        chosen = study.choose({"yield": ">= 4.5"}, 0.95, cost="min")
    assert said["x"] == chosen.x and said["probability"] == chosen.probability >= 0.95
    assert said["outputs"]["cost"] == {"mean": chosen.outputs["cost"].mean, "sd": chosen.outputs["cost"].sd}
    assert 4.4 < said["x"]["heat"] < 5.5
    both = ["--where", "yield >= 2.5", "--where", "yield < 3.75"]
    between = json.loads(fine("choose", "run.db", "yield=max", *both, "--json"))
    assert 2.5 < between["x"]["heat"] < 4.0


def test_a_choice_that_nothing_meets_is_printed_and_3(folder: Path) -> None:
    filled()
    result = invoke("choose", "run.db", "cost=min", "--where", "yield >= 400", "--json")
    said = json.loads(result.stdout)
    assert result.exit_code == 3 and said["probability"] < 0.9
    with gpmi.study("run.db") as study:
        assert said["x"] == study.trials[said["trial"]].x, "it is a measured point"
    assert result.stderr == "gpmi: no point meets everything with a probability of 0.9\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run.db", "cost"], "objective is 'cost'; name an output and max, min or match, as in cost=min"),
        (["run.db", "=min"], "objective is '=min'; name an output"),
        (["run.db", "cost=small"], "cost is 'small'; give one of 'max', 'min'"),
        (["run.db", "cast=min"], "'cast' is not an output of this run; did you mean 'cost'?"),
        (
            ["run.db", "cost=min", "--where", "yield = 3"],
            "where is 'yield = 3'; give an output, >= or <=, and a number",
        ),
        (["run.db", "cost=min", "--where", ">= 3"], "where is '>= 3'; give an output"),
        (["run.db", "cost=min", "--where", "yield >= much"], "where is 'yield >= much'; give an output"),
        (["run.db", "cost=min", "--where", "yeild >= 3"], "'yeild' is not an output of this run"),
        (["run.db", "cost=min", "--where", "yield > 1", "--where", "yield >= 2"], "where has yield twice"),
        (["run.db", "cost=min", "--confidence", "2"], "confidence is 2.0; it is a probability"),
        (["plain.db", "cost=min"], "the run has no goals"),
    ],
)
def test_a_choice_that_cannot_be_meant_is_refused(folder: Path, arguments: list[str], words: str) -> None:
    filled()
    assert words in refused("choose", *arguments)


def test_outputs_with_the_names_of_arguments_can_be_chosen(folder: Path) -> None:
    goals = {"where": "max", "confidence": "min", "a b": None}
    with gpmi.study("odd.db", space=SPACE, goals=goals, seed=0) as study:
        for heat in range(1, 8):
            study.tell({"heat": float(heat)}, {"where": heat, "confidence": heat, "a b": heat})
    for objective in ("where=max", "confidence=min", "a b=min"):
        fine("choose", "odd.db", objective, "--where", "a b >= 2", "--where", "where <= 6", "--json")


# In and out


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_what_is_exported_can_be_imported(folder: Path, suffix: str) -> None:
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    filled()
    fine("export", "run.db", f"out{suffix}")
    read = read_trials(f"out{suffix}", SPACE, GOALS)
    assert [trial.outputs for trial in read] == [trial.outputs for trial in trials_of("run.db")]
    (folder / "study.toml").write_text(FILE)
    assert json.loads(fine("import", "study.toml", f"out{suffix}", "--json"))["new"] == 9
    assert json.loads(fine("import", "study.toml", f"out{suffix}", "--json"))["new"] == 0
    with gpmi.study("study.db") as study:
        assert [trial.outputs for trial in study.trials] == [trial.outputs for trial in read]
        assert study.optimizer.goals == gpmi.Optimizer(SPACE, goals=GOALS).goals


def test_optuna_both_ways(folder: Path) -> None:
    pytest.importorskip("optuna")
    filled()
    fine("export", "run.db", "sqlite:///optuna.db")
    gpmi.study("other.db", space=SPACE, goals=GOALS, seed=0).close()
    assert json.loads(fine("import", "other.db", "sqlite:///optuna.db", "--json"))["new"] == 9
    assert [trial.outputs for trial in trials_of("other.db")] == [trial.outputs for trial in trials_of("run.db")]


def test_imported_outputs_are_told_to_the_trials_that_wait_for_them(folder: Path) -> None:
    with gpmi.study("run.db") as study:
        study.tell({"heat": 3.0}, {"yield": 1.0})
    (folder / "in.csv").write_text("heat,cost,purity,cost noise_var\n3,2,0.75,0.5\n4,1,,\n")
    assert json.loads(fine("import", "run.db", "in.csv", "--json")) == {
        "new": 2, "values": 2, "left_out": 0, "source": "in.csv"
    }  # fmt: skip
    first, second = trials_of("run.db")
    assert first.outputs == {"yield": 1.0, "cost": 2.0, "purity": 0.75} and first.output_noise_var == {"cost": 0.5}
    assert second.outputs == {"cost": 1.0}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("heat,yeild\n3,1\n", "in.csv:2: there is a column 'yeild', which is neither a parameter nor an output"),
        ("heat,yield\n3,1\n4,abc\n", "in.csv:3: yield is 'abc'"),
        ("heat,y\n3,1\n", "in.csv:2: y is 1, but there are several objectives; give yield, cost, purity"),
    ],
)
def test_a_row_that_is_wrong_lets_nothing_in(folder: Path, text: str, words: str) -> None:
    (folder / "in.csv").write_text(text)
    assert words in refused("import", "run.db", "in.csv")
    assert fine("trials", "run.db") == ""


# Running


@pytest.mark.skipif(os.name != "posix", reason="programs need process groups")
def test_a_study_file_with_goals_runs_and_works(folder: Path) -> None:
    (folder / "study.toml").write_text(FILE + PROGRAM)
    result = invoke("run", "study.toml", "--out", "trials.csv")
    assert result.exit_code == 0, result.output
    assert re.search(r"^8/8   \S+   front \d trials?: largest yield \S+, smallest cost ", result.stderr, re.MULTILINE)
    assert "goals          yield (max, at least 0), cost (min), purity (at least 0.5)" in result.stdout
    assert "\n\ntrial  yield" in result.stdout and result.stdout.endswith("can I stop? gpmi report study.toml\n")
    trials = read_trials("trials.csv", SPACE, GOALS)
    assert len(trials) == 8 and all(trial.outputs["cost"] == trial.x["heat"] for trial in trials)
    (folder / "study.toml").write_text(FILE.replace("budget = 8", "budget = 9") + PROGRAM)
    said = json.loads(invoke("run", "study.toml", "--json").stdout)
    assert said["evaluations"] == 9 and said["before"] == 8 and len(said["front"]) >= 8
    worked = invoke("work", "study.db", "--json")
    assert worked.exit_code == 0 and json.loads(worked.stdout)["evaluations"] == 9
    assert json.loads(fine("verify", "study.toml", "--json"))["verdict"] == "equal"


@pytest.mark.skipif(os.name != "posix", reason="programs need process groups")
@pytest.mark.parametrize(
    ("program", "code", "words"),
    [
        ("echo 3", 1, 'its last line is 3; a JSON object {"yield": ..., "cost": ..., "purity": ...}'),
        ("echo '{\"yield\": 1}'", 1, "cost is missing in its result, which has ['yield']"),
        ('echo \'{"yield": 1, "cost": 1, "purity": 0.1}\'', 3, "2 infeasible (purity)"),
        ('echo \'{"yield": 1, "cost": 1, "purity": null}\'', 3, "waiting      trials 0, 1 for purity"),
        ('echo \'{"yield": 1, "cost": 1, "purity": 0.9}\'', 0, "front          2 of 2 trials"),
    ],
)
def test_what_a_program_leaves_out_ends_the_run_and_null_comes_later(
    folder: Path, program: str, code: int, words: str
) -> None:
    text = f'[command]\nrun = """{program}"""\nshell = true\n'
    (folder / "study.toml").write_text(FILE.replace("budget = 8", "budget = 2") + text)
    result = invoke("run", "study.toml")
    assert result.exit_code == code and words in (result.stderr if code == 1 else result.stdout), result.output


def test_the_help_of_choose_has_an_example() -> None:
    assert "Example: gpmi choose study.db cost=min" in " ".join(invoke("choose", "--help").output.split())
