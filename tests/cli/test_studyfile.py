"""Study files: what is right is read, what is wrong is refused with its line and a remedy."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpmi
from gpmi.cli.command import Reading
from gpmi.cli.studyfile import EXAMPLE, StudyFile, StudyFileError, read_study
from gpmi.cli.studyfile.toml_table import line_of, lines_of
from gpmi.run.evaluation import Measured

RIGHT = """\
budget = 5
[parameters]
x = { real = [0.0, 1.0] }
[command]
run = ["echo", "{x}"]
"""


def read(folder: Path, text: str | bytes) -> StudyFile:
    path = folder / "study.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_study(path)


# What is right


def test_the_example_runs_as_it_is(tmp_path: Path) -> None:
    study = read(tmp_path, EXAMPLE)
    assert (study.goal, study.budget, study.seed, study.workers, study.name) == ("min", 25, 0, 1, "study")
    opt = gpmi.Optimizer(dict(study.parameters), seed=study.seed, goal=study.goal, constraints=list(study.constraints))
    answers = [study.command(opt.ask()) for _ in range(6)]
    assert all(isinstance(answer, Measured) for answer in answers)


def test_every_setting_that_the_example_has_switched_off_can_be_switched_on(tmp_path: Path) -> None:
    off = re.findall(r"^# (\w+ = .*)$", EXAMPLE, flags=re.MULTILINE)
    assert len(off) >= 18
    for setting in off:
        text = EXAMPLE.replace(f"# {setting}", setting)
        if setting.startswith("from"):
            text = text.replace('from = "last line"', "", 1)
        if "match" in setting or setting.startswith("pattern"):
            text = text.replace("# pattern", "pattern").replace('# from = "match"', 'from = "match"')
            text = text.replace('from = "last line"', "")
        if setting.startswith("shell"):
            text = re.sub(r"run = \[.*?^\]", "run = 'echo \"$GPMI_X\"'", text, flags=re.DOTALL | re.MULTILINE)
        assert read(tmp_path, text) != read(tmp_path, EXAMPLE), setting


def test_everything_that_a_study_file_says_is_read(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    study = read(
        tmp_path,
        """
        name = "mine"
        goal = "max"
        aim = "earn"
        budget = 7
        seed = 3
        workers = 2
        timeout = 1.5
        retries = 2
        constraints = ["a + b <= 1.5"]
        forbidden = [{ c = "u", d = 2 }]
        [parameters]
        a = { real = [0, 1] }
        b = { real = [1e-3, 1.0], log = true }
        c = { choice = ["u", "v w", 3, true] }
        d = { ordered = [1, 2, 4] }
        [parameters.e]
        int = [1, 9]
        step = 2
        when = { c = ["u", 3] }
        [command]
        run = ["p", "{a}", ["--e", "{e}"]]
        folder = "inner"
        environment = { A = "1" }
        [value]
        from = "match"
        pattern = 'a=(?P<acc>\\S+) m=(?P<mem>\\S+)'
        y = "acc"
        constraints = ["mem"]
        [stop]
        target = 3
        seconds = 10
        regret_below_noise = true
        """,
    )
    assert (study.name, study.goal, study.aim, study.budget, study.seed, study.workers) == (
        "mine",
        "max",
        "earn",
        7,
        3,
        2,
    )
    assert study.parameters == {
        "a": gpmi.Real(0, 1),
        "b": gpmi.Real(1e-3, 1.0, log=True),
        "c": gpmi.Choice(("u", "v w", 3, True)),
        "d": gpmi.Choice((1, 2, 4), ordered=True),
        "e": gpmi.Int(1, 9, step=2, when={"c": ["u", 3]}),
    }
    assert study.constraints[0] == "a + b <= 1.5" and study.constraints[1].values == {"c": "u", "d": 2}
    assert study.command.run == ("p", "{a}", ("--e", "{e}"))
    assert (study.command.timeout, study.command.retries, study.command.cwd) == (1.5, 2, tmp_path / "inner")
    assert dict(study.command.env) == {"A": "1"}
    assert study.command.reading == Reading("match", r"a=(?P<acc>\S+) m=(?P<mem>\S+)", "acc", "noise_var", ("mem",))
    assert study.stop == (gpmi.stopping.Target(3) | gpmi.stopping.Seconds(10) | gpmi.stopping.RegretBelowNoise())


def test_a_file_with_the_line_ends_of_windows_is_read(tmp_path: Path) -> None:
    assert read(tmp_path, RIGHT.replace("\n", "\r\n")).budget == 5
    with pytest.raises(StudyFileError, match=r":3: "):
        read(tmp_path, RIGHT.replace("[0.0, 1.0]", "3").replace("\n", "\r\n"))


# What is wrong: the text, and what the message says after the path

BUDGET, X, RUN = "budget = 5", "x = { real = [0.0, 1.0] }", 'run = ["echo", "{x}"]'


def other(old: str, new: str) -> str:
    assert old in RIGHT
    return RIGHT.replace(old, new)


HOSTILE: list[tuple[str | bytes, str]] = [
    ("", ":1: there is no table [parameters]; `gpmi init` writes an example"),
    ("budget = ", ":1: Invalid value"),
    (RIGHT + "x = \n", ":6: Invalid value"),
    (RIGHT + "[command]\n", ":6: Cannot declare"),
    (RIGHT + "run = 3\n", ":6: Cannot overwrite a value"),
    (RIGHT + '[value]\nfrom = "last line\n', ":7: "),
    (b"\xff\xfe\x00", ":1: it is not UTF-8 text"),
    (RIGHT.encode() + b"# \xc3\x28\n", ":6: it is not UTF-8 text"),
    (b"\x00", ":1: Invalid statement"),
    ("a = " + "[" * 5000 + "]" * 5000, ": it cannot be read as TOML"),
    ("a = " + "9" * 5000, ": it cannot be read as TOML"),
    ("#" * 2_000_000, ": it has more than 1024 kB"),
    (other(BUDGET, "budgt = 5"), ":1: budgt: there is no such key; did you mean budget?"),
    (other(BUDGET, 'budget = 5\n"$(touch canary)" = 1'), ":2: $(touch canary): there is no such key; give one of"),
    (other(BUDGET, "budget = 0"), ":1: budget: budget is 0; give a whole number of at least 1"),
    (other(BUDGET, "budget = true"), ":1: budget: budget is True"),
    (other(BUDGET, "budget = 1e3"), ":1: budget: budget is 1000.0; give a whole number"),
    (other(BUDGET, 'budget = "5"'), ":1: budget: budget is '5'"),
    (other(BUDGET, ""), ":1: there is neither a budget nor a rule in [stop]"),
    (other(BUDGET, "budget = 5\nseed = -1"), ":2: seed: seed is -1"),
    (other(BUDGET, "budget = 5\nworkers = 0"), ":2: workers: workers is 0"),
    (other(BUDGET, "budget = 5\nworkers = 1000000"), ":2: workers: "),
    (other(BUDGET, "budget = 5\ntimeout = 0"), ":2: timeout: timeout is 0; give one positive, finite number"),
    (other(BUDGET, "budget = 5\ntimeout = inf"), ":2: timeout: timeout is inf"),
    (other(BUDGET, "budget = 5\nretries = -1"), ":2: retries: retries is -1"),
    (other(BUDGET, 'budget = 5\ngoal = "maximum"'), ":2: goal: goal is 'maximum'; give one of 'max', 'min'"),
    (other(BUDGET, 'budget = 5\naim = 1979-05-27'), ":2: aim: aim is datetime.date(1979, 5, 27)"),
    (other(BUDGET, "budget = 5\nname = ''"), ":2: name: name is ''; give a string"),
    (other(BUDGET, "budget = 5\nconstraints = 'x <= 1'"), ":2: constraints: constraints is 'x <= 1'; give a list"),
    (other(BUDGET, "budget = 5\nconstraints = [\n  'x <= 0.5',\n  'y <= 1',\n]"), ":4: constraints[1]: "),
    (other(BUDGET, "budget = 5\nconstraints = ['__import__(\"os\")']"), ":2: constraints[0]: "),
    (other(BUDGET, "budget = 5\nconstraints = [3]"), ":2: constraints[0]: it is 3; give a string"),
    (other(BUDGET, "budget = 5\nconstraints = ['x <= 0.2', 'x >= 0.8']"), ":2: constraints: "),
    (other(BUDGET, "budget = 5\nforbidden = [{ z = 1 }]"), ":2: forbidden[0]: "),
    (other(BUDGET, "budget = 5\nforbidden = [{}]"), ":2: forbidden[0]: Forbidden() forbids nothing"),
    (other(X, ""), ":2: parameters: [parameters] is empty; give at least one"),
    (other(X, "x = 3"), ":3: parameters.x: it is 3; give a table"),
    (other(X, "x = {}"), ":3: parameters.x: give it one of real, int, angle, choice, ordered"),
    (other(X, "x = { reel = [0, 1] }"), ":3: parameters.x.reel: there is no such key; did you mean real?"),
    (other(X, "x = { real = [0, 1], int = [0, 1] }"), ":3: parameters.x: give it one of"),
    (other(X, "x = { real = [0, 1], step = 2 }"), ":3: parameters.x.step: step of Real is 2, but hi - lo is 1"),
    (other(X, "x = { real = [1, 0] }"), ":3: parameters.x.real: Real has lo = 1 and hi = 0"),
    (other(X, "x = { real = [nan, 1] }"), ":3: parameters.x.real: lo of Real is nan"),
    (other(X, "x = { real = [0, 1, 2] }"), ":3: parameters.x.real: real is [0, 1, 2]; give the smallest"),
    (other(X, "x = { real = ['a', 1] }"), ":3: parameters.x.real: lo of Real is 'a'"),
    (other(X, "x = { real = [0, 1], log = true }"), ":3: parameters.x.real: Real has log=True and lo = 0"),
    (other(X, "x = { int = [0.5, 2] }"), ":3: parameters.x.int: lo of Int is 0.5; give a whole number"),
    (other(X, "x = { int = [0, 9], step = 0 }"), ":3: parameters.x.step: step of Int is 0"),
    (other(X, "x = { choice = [] }"), ":3: parameters.x.choice: options is empty"),
    (other(X, "x = { choice = 'ab' }"), ":3: parameters.x.choice: choice is 'ab'; give a list"),
    (other(X, 'x = { choice = ["a\\u0000b"] }'), ":3: parameters.x.choice: it has the option 'a\\x00b'; no program"),
    (other(X, "x = { choice = [[1], [2]] }"), ":3: parameters.x.choice: it has the option [1]; give strings"),
    (other(X, "x = { choice = ['a', 'a'] }"), ":3: parameters.x.choice: options has 'a' twice"),
    (other(X, "x = { real = [0, 1], when = 3 }"), ":3: parameters.x.when: when is 3; give a table"),
    (other(X, "x = { real = [0, 1], when = { z = 1 } }"), ":2: parameters: "),
    (other(X, X + '\n"X" = { real = [0, 1] }'), ":4: parameters.X: parameters 'x' and 'X' would share"),
    (other(X, X + "\npython = { real = [0, 1] }"), ":4: parameters.python: parameter 'python'"),
    (other(RUN, ""), ":4: command: there is no run; give the program"),
    (other(RUN, "run = 'rm -rf {x}'"), ":5: command.run: run is 'rm -rf {x}'; give a list of arguments, or add shell"),
    (other(RUN, "run = 'echo {x}'\nshell = true"), ':5: command.run: a shell command has {x}; values are never pasted'),
    (other(RUN, "run = ['a']\nshell = true"), ":5: command.run: run is ['a']; with shell = true give one string"),
    (other(RUN, "run = ['a']\nshell = 'yes'"), ":6: command.shell: shell is 'yes'; give True or False"),
    (other(RUN, "run = []"), ":5: command.run: run is []; give a list of strings"),
    (other(RUN, "run = [\n 'a',\n '{y}']"), ":7: command.run[1]: '{y}' has {y}, which is not a parameter"),
    (other(RUN, "run = ['a', ['b', '{x']]"), ":5: command.run[1][1]: '{x' has a single '{'"),
    (other(RUN, "run = ['a', 3]"), ":5: command.run[1]: it is 3; give a string"),
    (other(RUN, RUN + "\nfolder = 'nowhere'"), ":6: command.folder: there is no folder"),
    (other(RUN, RUN + "\nenvironment = { A = 1 }"), ":6: command.environment: environment is {'A': 1}"),
    (other(RUN, RUN + "\nenvironment = { 'A=B' = '1' }"), ":6: command.environment: environment has 'A=B'"),
    (other(RUN, RUN + "\nenvironment = { GPMI_X = '1' }"), ":6: command.environment: environment has GPMI_X"),
    (other(RUN, RUN + "\ntimeot = 3"), ":6: command.timeot: there is no such key"),
    (RIGHT + "[value]\nfrom = 'stdout'", ":7: value.from: from is 'stdout'; give one of 'last line', 'match', 'json'"),
    (RIGHT + "[value]\nfrom = 'match'", ":6: value: `from = \"match\"` and `pattern` belong together"),
    (RIGHT + "[value]\nfrom = 'match'\npattern = '('", ":8: value.pattern: pattern is '(', not a regular expression"),
    (RIGHT + "[value]\nconstraints = [1]", ":7: value.constraints: constraints is 1; give a string"),
    (RIGHT + "[stop]\nsecond = 3", ":7: stop.second: there is no such key; did you mean seconds?"),
    (RIGHT + "[stop]\nseconds = 'soon'", ":7: stop.seconds: limit is 'soon'"),
    (RIGHT + "[stop]\nregret_below_noise = 1", ":7: stop.regret_below_noise: regret_below_noise is 1; give True"),
    ("parameters = 3\ncommand = 4", ":1: parameters: it is 3; give a table"),
    ("[[parameters]]\nx = 1\n[command]", ":1: parameters: it is [{'x': 1}]; give a table"),
]  # fmt: skip


def test_there_are_fifty_hostile_study_files() -> None:
    assert len(HOSTILE) >= 50


@pytest.mark.parametrize(("text", "words"), HOSTILE, ids=range(len(HOSTILE)))
def test_what_is_wrong_is_refused_at_its_line(text: str | bytes, words: str, tmp_path: Path) -> None:
    with pytest.raises(StudyFileError) as refused:
        read(tmp_path, text)
    message = str(refused.value)
    assert message.startswith(f"{tmp_path / 'study.toml'}{words}"), message
    assert "\n" not in message and len(message) < 1500
    assert [path.name for path in tmp_path.iterdir()] == ["study.toml"]


@pytest.mark.parametrize("path", ["nowhere.toml", "/", "a/\0b"])
def test_a_file_that_cannot_be_read_is_refused(path: str) -> None:
    with pytest.raises(StudyFileError, match="cannot be read"):
        read_study(path)


# Lines


def paths(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of everything in a value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place, *(path for key, one in inside for path in paths(one, (*place, key)))]


HARD = (
    '''
a = 1 # = [
"b.c" = "# no comment \\" ]"
d.e."f" = [ 1, # one ]
  [2, { g = "}" , h = [3,
  4] }],
]
i = """
[j]
k = 1 \\""" """
'l' = '''
    + "'''\n]\n'''"
    + """
[m . n]
o = 2020-01-01 00:00:00
[[p]]
q = 1
[[p]]
[p.r]
s = true
[[p.t]]
u = -1.5e3
"""
)


def test_the_line_of_everything_in_a_file_is_known() -> None:
    lines = lines_of(HARD)
    assert set(paths(tomllib.loads(HARD))) - {()} <= set(lines) | {("m",), ("p",), ("p", 1, "t")}
    expected = {
        ("a",): 2, ("b.c",): 3, ("d", "e", "f"): 4, ("d", "e", "f", 1, 0): 5, ("d", "e", "f", 1, 1, "g"): 5,
        ("d", "e", "f", 1, 1, "h", 1): 6, ("i",): 8, ("l",): 11, ("m", "n"): 14, ("m", "n", "o"): 15,
        ("p", 0, "q"): 17, ("p", 1): 18, ("p", 1, "r", "s"): 20, ("p", 1, "t", 0, "u"): 22,
    }  # fmt: skip
    assert {path: lines[path] for path in expected} == expected
    assert line_of(lines, ("m", "n", "z", 3)) == 14 and line_of(lines, ("z",)) == 1


VALUES = st.recursive(
    st.integers() | st.booleans() | st.sampled_from(["", "a#", "]", '"', "'", "{", "\\"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


def toml(value: Any) -> str:
    """A value as TOML, with line ends where arrays may have them."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, list):
        return "[\n" + "".join(f"{toml(one)}, # ]\n" for one in value) + "]"
    return "{" + ", ".join(f"{key} = {toml(one)}" for key, one in value.items()) + "}"


@given(st.dictionaries(st.sampled_from("abcdefgh"), VALUES, max_size=5))
def test_every_key_and_element_has_a_line_and_lines_do_not_decrease(value: dict[str, Any]) -> None:
    text = "\n".join(f"{key} = {toml(one)}" for key, one in value.items())
    assert tomllib.loads(text) == value
    lines = lines_of(text)
    assert list(lines) == paths(value)[1:]
    assert sorted(lines.values()) == list(lines.values())
    assert all(text.splitlines()[lines[key,] - 1].startswith(f"{key} =") for key in value)


# A study that people evaluate

BY_HAND = "[parameters]\nx = { real = [0.0, 1.0] }\n"


def test_a_file_without_a_program_describes_a_study_that_people_evaluate(tmp_path: Path) -> None:
    study = read(tmp_path, BY_HAND)
    assert study.command is None and study.budget is None
    for line, name in (("timeout = 3", "timeout"), ("retries = 1", "retries")):
        with pytest.raises(StudyFileError, match=f":1: {name}: it is about a program, but there is no table"):
            read(tmp_path, f"{line}\n{BY_HAND}")
    with pytest.raises(StudyFileError, match=r":3: .*it is about a program"):
        read(tmp_path, f"{BY_HAND}[value]\ny = 'loss'\n")


def test_a_file_with_the_mark_that_windows_editors_write_is_read(tmp_path: Path) -> None:
    assert read(tmp_path, b"\xef\xbb\xbf" + RIGHT.replace("\n", "\r\n").encode()).budget == 5
    with pytest.raises(StudyFileError, match=r":1: budget: budget is 0"):
        read(tmp_path, b"\xef\xbb\xbf" + RIGHT.replace("budget = 5", "budget = 0").encode())


def test_asking_by_a_file_without_a_program_works_and_running_it_says_what_is_missing(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from gpmi.cli import app

    (tmp_path / "mix.toml").write_text(BY_HAND)
    asked = CliRunner().invoke(app(), ["ask", str(tmp_path / "mix.toml"), "--json"])
    assert asked.exit_code == 0 and '"number": 0' in asked.stdout
    assert CliRunner().invoke(app(), ["tell", str(tmp_path / "mix.toml"), "0", "1.5"]).exit_code == 0
    run = CliRunner().invoke(app(), ["run", str(tmp_path / "mix.toml")])
    assert run.exit_code == 1 and "there is no table [command] with a program to run" in run.stderr
    assert "gpmi serve" in run.stderr and run.stderr.count("\n") == 1
