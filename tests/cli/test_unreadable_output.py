"""A program whose output cannot be read ends a run before the budget is spent, and the message repairs it."""

from __future__ import annotations

import os
import pickle
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import gpmi
from gpmi import cli
from gpmi.cli.command import Command, Reading
from gpmi.cli.command.command import ProgramFailed
from gpmi.cli.command.remedy import pattern, remedy
from gpmi.run.evaluation import Failure, RepairNeeded, record

pytestmark = pytest.mark.skipif(os.name != "posix", reason="programs run in groups of processes of POSIX")

FILE = """
{top}
budget = 6
seed = 0
[parameters]
x = {{ real = [0.0, 1.0] }}
{parameter}
[command]
shell = true
run = '''
echo "$GPMI_X" >> evaluated
{program}
'''
{rest}
"""


def invoke(*arguments: Any) -> Any:
    return CliRunner().invoke(cli.app(), [str(a) for a in arguments])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder: Path, program: str, *, top: str = "", parameter: str = "", rest: str = "") -> Path:
    path = folder / "study.toml"
    path.write_text(FILE.format(program=program, top=top, parameter=parameter, rest=rest))
    return path


def evaluated(folder: Path) -> list[str]:
    return (folder / "evaluated").read_text().split()


def suggested(message: str) -> str:
    """Return the table [value] that a message suggests."""
    return "\n".join(line.strip() for line in message.splitlines() if line.startswith("    "))


# A run


def test_the_first_output_that_cannot_be_read_ends_the_run_and_its_point_is_given_back(folder: Path) -> None:
    path = write(folder, 'echo loading; echo "yield: $GPMI_X"')
    ended = invoke("run", path, "--json")
    assert (ended.exit_code, ended.stdout) == (1, "") and len(evaluated(folder)) == 1
    x = evaluated(folder)[0]
    for words in (
        f"gpmi: the program ran, but its value cannot be read: y is 'yield: {x}', not a number\n",
        f"Its last line: yield: {x}\nLet it print only the number as its last line; or write",
        "    pattern = 'yield:\\s*(\\S+)'\n",
        "This output was not recorded: repair it, and run the same command again.\n",
    ):
        assert words in ended.stderr
    with gpmi.study("study.db") as study:
        assert [trial.status for trial in study.trials] == ["pending"] and all(
            one.until == 0.0 for one in study.leases().values()
        )
    write(folder, 'echo loading; echo "yield: $GPMI_X"', rest=suggested(ended.stderr))
    again = invoke("run", path)
    assert again.exit_code == 0 and "evaluations  6\n" in again.stdout
    assert evaluated(folder)[1] == x and len(evaluated(folder)) == 7  # the same point again, and nothing else twice


def test_several_workers_end_together_and_no_failure_is_learned(folder: Path) -> None:
    path = write(folder, "echo done", top="workers = 3")
    ended = invoke("run", path)
    assert ended.exit_code == 1 and ended.stderr.count("Its last line: done") == 1 and "Traceback" not in ended.stderr
    with gpmi.study("study.db") as study:
        assert {trial.status for trial in study.trials} == {"pending"} and all(
            one.until == 0.0 for one in study.leases().values()
        )
    worked = invoke("work", "study.db", "--file", path, "--workers", 2)
    assert worked.exit_code == 1 and "cannot be read: y is 'done', not a number" in worked.stderr


def test_once_there_is_a_value_unreadable_output_is_a_failure(folder: Path) -> None:
    path = write(folder, 'mkdir first 2> /dev/null && echo 1 || echo "yield: 2"')
    ended = invoke("run", path)
    assert ended.exit_code == 0 and "evaluations  6, of which 5 failed" in ended.stdout
    assert "failed 5 times: y is 'yield: 2', not a number" in ended.stdout


@pytest.mark.parametrize("program", ["echo nan", "echo '{\"y\": null}'", "echo yield: 3; exit 2", "echo inf"])
def test_an_evaluation_that_says_that_it_failed_is_a_failure_from_the_first(folder: Path, program: str) -> None:
    ended = invoke("run", write(folder, program))
    assert ended.exit_code == 3 and "evaluations  6, of which 6 failed" in ended.stdout


def test_goals_are_told_of_the_object_and_of_a_pattern_for_each(folder: Path) -> None:
    goals = '[goals]\nyield = "max"\ncost = "min"\n'
    path = write(folder, 'echo "yield = $GPMI_X %"; echo "cost: 3eur"', rest=goals)
    ended = invoke("run", path)
    assert ended.exit_code == 1 and 'the JSON object {"yield": ..., "cost": ...} as its last line' in ended.stderr
    found = tomllib.loads(suggested(ended.stderr))["value"]["pattern"]
    assert found == {"yield": r"yield\s*=\s*(\S+)", "cost": r"cost:\s*([-+]?[\d.]+(?:[eE][-+]?\d+)?)"}
    write(folder, 'echo "yield = $GPMI_X %"; echo "cost: 3eur"', rest=goals + suggested(ended.stderr))
    assert invoke("run", path).exit_code == 0


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ('echo "epoch 1: 0.5"', "cannot be read: y is 'epoch 1: 0.5', not a number"),
        ("echo '1 {}'; sleep 600", "cannot be read: step 1: y is missing in its result"),
    ],
)
def test_steps_that_cannot_be_read_end_the_run(folder: Path, program: str, words: str) -> None:
    path = write(folder, program, top="workers = 2", parameter="epoch = { fidelity = [1, 5] }")
    ended = invoke("run", path)
    assert ended.exit_code == 1 and words in ended.stderr and r"pattern = 'epoch (?P<step>\d+): (\S+)'" in ended.stderr
    with gpmi.study("study.db") as study:
        assert {trial.status for trial in study.trials} == {"pending"}


def test_steps_that_were_read_count_as_values(folder: Path) -> None:
    path = write(folder, "echo 1 0.5; echo bye", parameter="epoch = { fidelity = [1, 5] }")
    ended = invoke("run", path)
    assert ended.exit_code == 3 and "of which 6 failed" in ended.stdout


# The remedy


@pytest.mark.parametrize(
    ("lines", "name", "expected"),
    [
        (["yield: 12.3"], None, r"yield:\s*(\S+)"),
        (["yield=12.3"], None, r"yield=(\S+)"),
        (["yield =  -1e-3 %"], None, r"yield\s*=\s*(\S+)"),
        (["Final yield (mean): 12.3%"], None, r"Final yield \(mean\):\s*([-+]?[\d.]+(?:[eE][-+]?\d+)?)"),
        (["loss: 1", "Done."], None, r"loss:\s*(\S+)"),
        (["a: 1, b: 2"], "b", r"b:\s*(\S+)"),
        (["a: 1, b: 2"], "a", r"a:\s*([-+]?[\d.]+(?:[eE][-+]?\d+)?)"),
        (["3.5 4.5"], None, r"value:\s*(\S+)"),
        ([], "cost", r"cost:\s*(\S+)"),
    ],
)
def test_a_pattern_is_made_from_a_line_that_has_a_name_and_a_number(
    lines: list[str], name: str | None, expected: str
) -> None:
    assert pattern(lines, name) == expected


@given(
    label=st.from_regex(r"[A-Za-z_][A-Za-z_ ./()\[\]-]{0,20}", fullmatch=True),
    sign=st.sampled_from([":", "=", ": ", " = ", " :  "]),
    value=st.floats(allow_nan=False, allow_infinity=False),
    rest=st.sampled_from(["", " %", "%", ", and more", " 7", "eur"]),
)
def test_the_suggested_pattern_finds_the_number_of_its_line(label: str, sign: str, value: float, rest: str) -> None:
    line = f"{label}{sign}{value!r}{rest}"
    found = re.search(pattern([line]), line)
    assert found is not None and float(found[1]) == value
    assert "'" not in pattern([line])


def test_the_remedy_fits_to_where_the_value_is_read() -> None:
    assert "to the file that GPMI_RESULT_FILE names" in remedy(Reading("json"), b"")
    assert remedy(Reading("json"), b" \n").startswith("It printed nothing.\n")
    changed = remedy(Reading("match", r"loss (\S+)"), b"loss: 3")
    assert "Change the pattern in the study file" in changed and r"pattern = 'loss:\s*(\S+)'" in changed


@given(output=st.binary(max_size=300))
def test_whatever_a_program_writes_there_is_a_remedy_that_is_toml(output: bytes) -> None:
    outputs = {"yield": "yield", "my cost": "c'"}
    for reading in (Reading(), Reading(outputs=outputs)):
        found = tomllib.loads(suggested(remedy(reading, output)))["value"]
        Reading("match", found["pattern"], outputs=reading.outputs)


def test_only_an_output_that_cannot_be_read_has_a_remedy() -> None:
    def failure(program: str) -> Failure:
        answer = Command(program, ("x",), repairable=True)({"x": 1.0})
        assert isinstance(answer, Failure)
        return answer

    assert failure("echo done").remedy and failure("true").remedy
    assert not any(failure(one).remedy for one in ("exit 1", "echo nan", "echo 1e300", "kill -9 $$"))


def test_a_command_in_python_has_no_remedy_and_fails_as_others_do() -> None:
    result = gpmi.minimize(Command("echo bad", ("x",)), {"x": (0.0, 1.0)}, budget=3, seed=0, on_failure="learn")
    assert [trial.status for trial in result.trials] == ["failed"] * 3


def test_values_of_other_processes_count(folder: Path) -> None:
    failure = Failure("y is 'bad'", "print a number")
    with (
        gpmi.study("s.db", "s", space={"x": (0.0, 1.0)}, goal="min", seed=0) as first,
        gpmi.study("s.db", "s") as other,
    ):
        trial = first.ask()
        with pytest.raises(RepairNeeded):
            record(first.optimizer, trial, failure, learns=True)
        other.tell({"x": 0.5}, 1.0)
        assert record(first.optimizer, trial, failure, learns=True).status == "failed"
    error = pickle.loads(pickle.dumps(ProgramFailed(failure)))
    assert error.failure == failure and str(error) == failure.why
