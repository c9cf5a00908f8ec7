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
    assert result.stderr == "gpmi: 'study.toml' cannot be used (File exists); give another path, or remove the file\n"


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


@pytest.mark.parametrize("command", ["init", "run", "demo", "paper"])
def test_every_help_has_an_example(command):
    result = invoke(command, "--help")
    assert result.exit_code == 0
    assert re.search(rf"Example: gpmi {command}\b", result.output)


def test_nothing_of_the_example_of_the_paper_is_unknown(tmp_path):
    from gpmi import paper

    shown = re.search(r"--task (\S+)", invoke("paper", "--help").output.replace("\n", " ").split("Example:")[1])
    assert shown is not None
    paper.Plan(tmp_path / "pages", (shown[1],), 10, 50, 0)
