"""`gpmi init` and `gpmi run`: what they print, write, and return to a shell."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner
from waiting import LIMIT, lines, wait_until

import gpmi
from gpmi import cli
from gpmi.cli.studyfile import read_study
from gpmi.trials.files import read_trials

pytestmark = pytest.mark.skipif(os.name != "posix", reason="programs run in groups of processes of POSIX")

SHORT = """
goal = "max"
budget = 6
seed = 0
workers = 2
[parameters]
x = { real = [0.0, 1.0] }
[command]
run = 'echo "$GPMI_X"'
shell = true
"""


def invoke(*arguments):
    return CliRunner().invoke(cli.app(), [str(a) for a in arguments])


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "study.toml"
    path.write_text(SHORT)
    return path


def test_what_init_writes_runs_as_it_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = invoke("init")
    assert (first.exit_code, first.output) == (0, "wrote study.toml; run it with: gpmi run study.toml\n")
    result = invoke("run", "study.toml", "--json")
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert said["evaluations"] == 25 and said["failed"] == 0 and said["goal"] == "min" and said["seed"] == 0
    assert said["y"] < 0.5 and set(said["x"]) >= {"x", "rate", "degree", "method", "size"}


def test_init_overwrites_nothing(study):
    result = invoke("init")
    assert result.exit_code == 1 and study.read_text() == SHORT
    assert result.stderr == "gpmi: 'study.toml' exists already; give another name, as in gpmi init other.toml\n"


def test_a_run_says_what_it_found_and_is_that_of_maximize(study):
    result = invoke("run", study)
    assert result.exit_code == 0 and re.search(r"^6/6   \d+:\d\d:\d\d   best \S+ at \{'x': .*\n\Z", result.stderr, re.M)
    for words in ("largest y", "at x         {'x': ", "evaluations  6", "stopped      budget", "seed         0"):
        assert words in result.stdout


def test_one_worker_makes_the_run_of_maximize(study):
    study.write_text(SHORT.replace("workers = 2", ""))
    said = json.loads(invoke("run", study, "--json").stdout)
    run = gpmi.maximize(lambda p: p["x"], {"x": (0.0, 1.0)}, budget=6, seed=0)
    assert (said["y"], said["x"], said["recommended"]) == (run.y, run.x, run.recommended)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_the_trials_can_be_written(study, suffix):
    out = study.parent / f"trials{suffix}"
    assert invoke("run", study, "--out", out).exit_code == 0
    trials = read_trials(out, dict(read_study(study).parameters))
    assert len(trials) == 6 and all(trial.y == trial.x["x"] for trial in trials)


def test_failures_are_counted_with_their_reasons(study):
    text = SHORT.replace("""run = 'echo "$GPMI_X"'""", "run = 'echo out of luck >&2; exit 7'")
    study.write_text(text)
    result = invoke("run", study)
    assert result.exit_code == 3
    assert "evaluations  6, of which 6 failed" in result.stdout
    assert "failed 6 times: exit code 7: out of luck" in result.stdout
    said = json.loads(invoke("run", study, "--json").stdout)
    assert (said["y"], said["x"], said["failed"]) == (None, None, 6)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.toml"], "nowhere.toml: it cannot be read (No such file or directory)"),
        (["wrong.toml"], "wrong.toml:3: budgt: there is no such key; did you mean budget?"),
        (["missing.toml"], "there is no program 'no-such-program-of-anybody' to run; give its path"),
        (["study.toml", "--out", "trials.xls"], "give a file that ends in .csv, .jsonl, .parquet"),
        (["study.toml", "--out", "/proc/no/trials.csv"], "cannot be written to"),
    ],
)
def test_a_mistake_gets_one_line_before_any_time_is_spent(study, arguments, words):
    (study.parent / "wrong.toml").write_text(SHORT.replace("budget", "budgt"))
    missing = SHORT.replace("shell = true", "").replace("""'echo "$GPMI_X"'""", '["no-such-program-of-anybody"]')
    (study.parent / "missing.toml").write_text(missing)
    result = invoke("run", *arguments)
    assert result.exit_code == 1 and result.stdout == ""
    assert result.stderr.startswith("gpmi: ") and words in result.stderr and result.stderr.count("\n") == 1


def test_a_program_in_the_folder_of_the_file_is_found_from_that_folder(study, monkeypatch):
    program = study.parent / "train"
    program.write_text('#!/bin/sh\necho "$1"\n')
    program.chmod(0o755)
    study.write_text(SHORT.replace("shell = true", "").replace("""'echo "$GPMI_X"'""", '["./train", "{x}"]'))
    monkeypatch.chdir(study.parent)
    result = invoke("run", "study.toml")
    assert result.exit_code == 0 and "evaluations  6" in result.stdout


def test_a_result_is_printed_even_if_the_trials_cannot_be_written(study, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device", "a.csv")

    monkeypatch.setattr("gpmi.trials.files.write_trials", full)
    result = invoke("run", study, "--out", "a.csv")
    assert result.exit_code == 1 and "largest y" in result.stdout and "No space left on device" in result.stderr


def test_ctrl_c_ends_the_programs_and_prints_what_there_is(study):
    study.write_text(
        SHORT.replace("budget = 6", "budget = 50").replace(
            """'echo "$GPMI_X"'""",
            "'for i in 1 2 3 4; do mkdir $i 2> /dev/null && echo 1 && exit; done; echo $$ >> pids; exec sleep 600'",
        )
    )
    command = [sys.executable, "-c", "from gpmi.cli import main; main()", "run", "study.toml", "--json"]
    done = subprocess.Popen(command, cwd=study.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    pids = study.parent / "pids"
    wait_until(lambda: len(lines(pids)) == 2)
    done.send_signal(signal.SIGINT)
    stdout, stderr = done.communicate(timeout=LIMIT)
    assert done.returncode == 130 and "Traceback" not in stderr
    said = json.loads(stdout)
    assert said["stopped"] == "interrupted" and said["evaluations"] == 4 and said["y"] == 1.0
    assert not any(Path("/proc", number).exists() for number in pids.read_text().split())


@pytest.mark.parametrize("command", ["init", "run", "demo"])
def test_every_help_has_an_example(command):
    result = invoke(command, "--help")
    assert result.exit_code == 0
    assert re.search(rf"Example: gpmi {command}\b", result.output)


def test_the_template_stops_only_when_its_budget_is_spent(tmp_path):
    """A target that is switched on would end the run of a user who only sets goal = "max" after one evaluation."""
    path = tmp_path / "study.toml"
    assert invoke("init", path).exit_code == 0
    assert read_study(path).stop is None


def test_the_budget_is_set_in_the_file(study):
    result = invoke("run", study, "--budget", 3)
    assert result.exit_code == 1 and f"the budget is set in the file, as budget = 3 in {study}\n" in result.stderr


def test_a_budget_below_what_was_done_is_no_fraction(study):
    assert invoke("run", study).exit_code == 0
    study.write_text(SHORT.replace("budget = 6", "budget = 2"))
    result = invoke("run", study)
    assert result.stderr.startswith("6 evaluations, budget 2   ") and "6/2" not in result.stderr


def test_a_pattern_in_double_quotes_is_told_of_single_ones(study):
    study.write_text(SHORT + '[value]\nfrom = "match"\npattern = "yield: (\\S+)"\n')
    result = invoke("run", study)
    assert result.exit_code == 1
    assert "study.toml:13: Unescaped '\\' in a string in column 22; write patterns in single quotes" in result.stderr


def test_a_study_that_is_not_there_may_have_a_study_file(study):
    (study.parent / "flaky.toml").write_text(SHORT)
    result = invoke("best", "flaky.db")
    assert result.exit_code == 1
    assert result.stderr == "gpmi: there is no study in 'flaky.db'; give its study file, 'flaky.toml'\n"
    assert not (study.parent / "flaky.db").exists()


def test_best_does_not_say_that_a_run_has_not_ended(study):
    study.write_text(SHORT + "[stop]\ntarget = 0.0\n")
    assert "target 0 reached" in invoke("run", study).stdout
    said = invoke("best", study).stdout
    assert "stopped      not known; its budget of 6 is not used up\n" in said
    assert "recommended  not computed; add --recommended\n" in said and "events       none\n" in said


def test_a_report_answers_whether_to_stop_beside_its_path(study):
    last = invoke("run", study).stdout.splitlines()[-1]
    assert last == f"can I stop? gpmi report {study}"
    result = invoke("report", study)
    assert result.exit_code == 0 and result.stdout == "study.html\n"
    with gpmi.study("study.db") as opened:
        why = opened.optimizer.ledger.advice.why
    assert result.stderr.endswith(f" {why[0].upper()}{why[1:]}.\n") and not result.stderr.startswith("gpmi:")


def test_a_report_says_if_there_is_no_answer_because_the_model_failed(study, monkeypatch):
    invoke("run", study)

    def fail(run):
        raise RuntimeError("no model today")

    monkeypatch.setattr("gpmi.views.html.overview.advised", fail)
    result = invoke("report", study)
    assert (result.exit_code, result.stdout) == (0, "study.html\n")
    assert result.stderr == "can I stop? is not known, because the model failed: no model today\n"


def test_a_report_of_failures_alone_says_that_all_failed(study):
    study.write_text(SHORT.replace("""run = 'echo "$GPMI_X"'""", "run = 'echo out of luck >&2; exit 7'"))
    assert invoke("run", study).exit_code == 3
    said = invoke("report", study).stderr
    assert said == "Find out why evaluations fail. All 6 evaluations failed: exit code 7: out of luck.\n"
    page = Path("study.html").read_text(encoding="utf-8")
    assert page.count("All 6 evaluations failed: exit code 7: out of luck.") == 2 and "tell a value" not in page


# A file that no longer fits to its study


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[0.0, 1.0]", "[0.0, 0.5]", "x is [0, 0.5], but that of the study is [0, 1]; undo this change"),
        ("[0.0, 1.0] }", "[0.0, 1.0], step = 0.5 }", "x is Real(lo=0.0, hi=1.0, log=False, step=0.5), but that of"),
        ('["a", "b"]', '["a", "c"]', "kind is ['a', 'c'], but that of the study is ['a', 'b']; undo this change"),
        ("kind = ", "sort = ", "sort is not in the study; kind is missing, which the study has; undo this change"),
        ('"max"', '"min"', "goal is 'min', but that of the study is 'max'; undo this change"),
    ],
)
def test_a_changed_file_is_told_what_differs_and_how_to_go_on(study, old, new, words):
    text = SHORT.replace("[command]", 'kind = { choice = ["a", "b"] }\n[command]')
    study.write_text(text)
    assert invoke("run", study).exit_code == 0
    study.write_text(text.replace(old, new))
    result = invoke("run", study)
    assert result.exit_code == 1 and f"gpmi: {study}: {words}" in result.stderr
    assert 'set database = "..." in the file' in result.stderr and 'before = "study.db"' in result.stderr


def test_the_values_of_a_study_are_taken_along_as_the_message_says(study):
    assert invoke("run", study).exit_code == 0
    other = SHORT.replace("[0.0, 1.0]", "[0.0, 2.0]")
    study.write_text('database = "other.db"\n' + other + '[earlier]\nbefore = "study.db"\n')
    for _ in range(2):  # also when it is continued
        result = invoke("run", study)
        assert result.exit_code == 0 and re.search(r"^earlier +before: .*6 values", result.stdout, re.M), result.output


def test_of_several_studies_in_a_database_another_name_begins_one(study):
    assert invoke("run", study).exit_code == 0
    study.write_text('name = "second"\n' + SHORT)
    assert invoke("run", study).exit_code == 0
    study.write_text('name = "second"\n' + SHORT.replace('"max"', '"min"'))
    result = invoke("run", study)
    assert "continue the study 'second', or set name = \"...\" in the file to begin another one\n" in result.stderr
