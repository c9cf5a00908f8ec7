"""The table [goals] of a study file: what is right is read, what is wrong is refused with its line and a remedy."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy")

import gpmi
from gpmi.cli.command import Reading
from gpmi.cli.studyfile import EXAMPLE, StudyFile, StudyFileError, open_study, read_study, run_study
from gpmi.trials.named_goals import NamedGoals
from gpmi.trials.value_bounds import ValueBounds

RIGHT = """\
budget = 5
seed = 0
[parameters]
x = { real = [0.0, 1.0] }
[goals]
yield = "max"
cost = "min"
[command]
run = ["echo", "{x}"]
"""


def read(folder: Path, text: str) -> StudyFile:
    path = folder / "study.toml"
    path.write_text(text)
    return read_study(path)


def other(old: str, new: str) -> str:
    assert old in RIGHT
    return RIGHT.replace(old, new)


# What is right


def test_every_form_of_a_goal_is_read_in_the_order_of_the_file(tmp_path: Path) -> None:
    file = read(
        tmp_path,
        """
        [parameters]
        x = { real = [0.0, 1.0] }
        [goals]
        cost = { goal = "min", at_most = 10 }
        yield = { goal = "max", at_least = -1.5 }
        size = { match = 42, within = 3 }
        purity = { at_least = 0.95 }
        "memory in GB" = { at_most = 8 }
        time = { goal = "min" }
        loss = "min"
        gain = "max"
        energy = "watch"
        """,
    )
    assert file.goals is not None and list(file.goals.items()) == [
        ("cost", gpmi.Min(at_most=10.0)),
        ("yield", gpmi.Max(at_least=-1.5)),
        ("size", gpmi.Match(42.0, within=3.0)),
        ("purity", gpmi.AtLeast(0.95)),
        ("memory in GB", gpmi.AtMost(8.0)),
        ("time", gpmi.Min()),
        ("loss", gpmi.Min()),
        ("gain", gpmi.Max()),
        ("energy", None),
    ]
    assert read(tmp_path, "[parameters]\nx = { real = [0.0, 1.0] }\n").goals.named == ()


def test_the_outputs_are_read_by_their_names_or_by_those_in_the_file(tmp_path: Path) -> None:
    file = read(tmp_path, RIGHT + "[value]\nfrom = 'json'\noutputs = { cost = 'euro' }\nnoise_var = 'var'\n")
    assert file.command is not None
    names = {"yield": "yield", "cost": "euro"}
    assert file.command.reading == Reading("json", noise_var="var", outputs=names)
    text = other('cost = "min"', 'cost = "min"\nsmell = "watch"')
    by_output = read(tmp_path, text + "[value]\nfrom = 'match'\n[value.pattern]\nyield = 'y (.)'\ncost = 'c (.)'\n")
    assert by_output.command is not None
    reading = by_output.command.reading
    assert reading.pattern == {"yield": "y (.)", "cost": "c (.)"} and reading.watched == ("smell",)


def test_the_goals_in_the_example_can_be_switched_on(tmp_path: Path) -> None:
    begin, end = EXAMPLE.index("# [goals]"), EXAMPLE.index("# The program.")
    on = re.sub(r"^# ", "", EXAMPLE[begin:end], flags=re.MULTILINE)
    text = EXAMPLE[:begin] + on + EXAMPLE[end:]
    text = text.replace('goal = "min"  ', "")
    file = read(tmp_path, text)
    expected = {
        "loss": "min",
        "seconds": gpmi.Min(at_most=60),
        "memory": gpmi.AtMost(8),
        "width": gpmi.Match(42, within=3),
        "energy": None,
    }
    assert file.goals == NamedGoals.of(expected)
    for line in re.findall(r"^# +((?:outputs|pattern) = \{.*)$", EXAMPLE, flags=re.MULTILINE):
        line = line.replace("}", ", seconds = 's', memory = 'm', width = 'w' }")
        line = line if line.startswith("outputs") else f'from = "match"\n{line}'
        assert read(tmp_path, text.replace('from = "last line"', line)) != file


def test_the_study_file_of_the_manual_is_read(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "commands.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```toml\n(.*?)```", page.split("## Several outputs")[1].split("\n## ")[0], flags=re.DOTALL)
    assert len(blocks) == 2
    file = read(tmp_path, "".join(blocks))
    assert file.goals is not None and list(file.goals) == ["accuracy", "seconds", "memory"]
    assert file.goals["accuracy"] == gpmi.Max(at_least=0.8) and file.command is not None
    text = b"accuracy: 0.9\npeak 3 GB\ntook 41 s\n"
    assert file.command.reading.value(text, tmp_path).y == {"accuracy": 0.9, "seconds": 41.0, "memory": 3.0}


@pytest.mark.skipif(os.name != "posix", reason="programs need process groups")
def test_a_study_with_goals_runs_and_goes_on(tmp_path: Path) -> None:
    program = (
        """run = 'echo "{\\"yield\\": $GPMI_X, \\"cost\\": 0.5, \\"noise_var\\": {\\"yield\\": 0.25}}"'\nshell = true"""
    )
    file = read(tmp_path, other('run = ["echo", "{x}"]', program))
    with open_study(file) as study:
        result = run_study(file, study)
    assert len(result.trials) == 5 and result.goals == file.goals and result.front
    for trial in result.trials:
        assert trial.outputs == {"yield": trial.x["x"], "cost": 0.5} and trial.output_noise_var == {"yield": 0.25}
    with open_study(file) as study:
        assert len(study.trials) == 5
    for text in (RIGHT.replace('cost = "min"', 'cost = "max"'), RIGHT.replace('cost = "min"\n', "")):
        with pytest.raises(ValueError, match="goals"):
            open_study(read(tmp_path, text))
    without = re.sub(r"\[goals\].*?(?=\[)", "", RIGHT, flags=re.DOTALL)
    with pytest.raises(StudyFileError, match=r"has the goals yield \(max\), cost \(min\), and the file has none"):
        open_study(read(tmp_path, without))
    (tmp_path / "study.db").unlink()
    open_study(read(tmp_path, without)).close()
    with pytest.raises(ValueError, match="goals"):
        open_study(read(tmp_path, RIGHT))


# What is wrong

COST = 'cost = "min"'
HOSTILE = [
    (other('yield = "max"\ncost = "min"', ""), ":5: goals: [goals] is empty; give a goal for each output"),
    ("goals = 3\n[parameters]\nx = { real = [0, 1] }", ":1: goals: it is 3; give a table"),
    (f'goal = "max"\n{RIGHT}', ":1: goal: there is also a table [goals]; leave out goal, and say it there"),
    (other("[goals]", "[goal]"), ":5: goal: it is a table; the goals of outputs stand in a table [goals]"),
    (other(COST, "x = 'min'"), ":7: goals.x: a parameter has the same name; give the output another one"),
    (other(COST, "cost = 'maximise'"), ":7: goals.cost: it is 'maximise'; did you mean \"max\"?"),
    (other(COST, "cost = 'small'"), ":7: goals.cost: it is 'small'; give \"max\", \"min\", \"watch\", or a table"),
    (other(COST, "cost = 10"), ":7: goals.cost: it is 10; give \"max\", \"min\", \"watch\", or a table such as"),
    (other(COST, "cost = true"), ":7: goals.cost: it is True; give"),
    (other(COST, "cost = ['min', 'max']"), ":7: goals.cost: it is ['min', 'max']; give"),
    (other(COST, "cost = {}"), ":7: goals.cost: it is empty; give \"max\""),
    (other(COST, "cost = { at_mots = 3 }"), ":7: goals.cost.at_mots: there is no such key; did you mean at_most?"),
    (other(COST, "cost = { at_most = 'x' }"), ":7: goals.cost.at_most: at_most is 'x'; give one finite number"),
    (other(COST, "cost = { at_most = inf }"), ":7: goals.cost.at_most: at_most is inf; give one finite number"),
    (other(COST, "cost = { at_most = 1, at_least = 0 }"), ":7: goals.cost: it has two limits; give one of them"),
    (other(COST, "cost = { goal = 'small' }"), ":7: goals.cost.goal: goal is 'small'; give one of 'max', 'min'"),
    (other(COST, "cost = { goal = 'min', at_least = 1 }"), ":7: goals.cost: with goal = \"min\" the worst value that"),
    (other(COST, "cost = { goal = 'max', at_most = 1 }"), "worst value that you would accept is at_least; leave out"),
    (other(COST, "cost = { match = 3 }"), ":7: goals.cost: a target is given as { match = 42, within = 3 }"),
    (other(COST, "cost = { within = 3 }"), ":7: goals.cost: a target is given as"),
    (other(COST, "cost = { match = 3, within = 1, at_most = 5 }"), ":7: goals.cost: a target is given as"),
    (other(COST, "cost = { goal = 'min', match = 3, within = 1 }"), ":7: goals.cost: a target is given as"),
    (other(COST, "cost = { match = 3, within = 0 }"), ":7: goals.cost: within is 0"),
    (other(COST, "cost = { match = 'a', within = 1 }"), ":7: goals.cost.match: match is 'a'; give one finite number"),
    (other(COST, 'yield = "min"'), ":7: Cannot overwrite a value"),
    (other(COST, "cost.a = 'min'"), ":7: goals.cost.a: there is no such key; give one of goal, match, within"),
    (other('yield = "max"\ncost = "min"', "a = { at_least = 1 }\nb = 'watch'"), ":5: goals: there are only a, b, and"),
    (RIGHT + "[value]\ny = 'loss'", ":11: value.y: y is for a study without [goals]; leave it out: outputs = {"),
    (RIGHT + "[value]\nconstraints = ['a']", ":11: value.constraints: constraints is for a study without [goals]"),
    (RIGHT + "[value]\noutputs = { cast = 'a' }", ":11: value.outputs.cast: 'cast' is not an output of this run"),
    (RIGHT + "[value]\noutputs = { cost = 3 }", ":11: value.outputs: cost is 3; give a string"),
    (RIGHT + "[value]\noutputs = 'cost'", ":11: value.outputs: outputs is 'cost'; give a table"),
    (RIGHT + "[value]\noutputs = { cost = 'yield' }", ":10: value: 'yield' is the name of two outputs"),
    (RIGHT + "[value]\nnoise_var = 'cost'", ":10: value: 'cost' is the name of the variances"),
    (RIGHT + "[value]\nfrom = 'match'\npattern = 'a'", ":12: value.pattern: pattern has no group (?P<yield>...)"),
    (RIGHT + "[value]\nfrom = 'match'\npattern = { cost = 'a' }", ":12: value.pattern: there is no pattern for the"),
    (RIGHT + "[value]\nfrom = 'match'\npattern = { cost = 3 }", ":12: value.pattern: cost is 3; give a string"),
    (RIGHT + "[stop]\ntarget = 3", ":11: stop.target: it is about one value, and there are several objectives; "),
    (RIGHT + "[stop]\nregret_below = 3", ":11: stop.regret_below: it is about one value"),
    (
        RIGHT.replace("[goals]", "").replace('yield = "max"\ncost = "min"', "") + "[value]\noutputs = { a = 'b' }",
        ':10: value.outputs: outputs need a table [goals], as in yield = "max"; give one, or leave this out',
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "words"), HOSTILE, ids=range(len(HOSTILE)))
def test_what_is_wrong_is_refused_at_its_line(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(StudyFileError) as refused:
        read(tmp_path, text)
    message = str(refused.value)
    assert message.startswith(f"{tmp_path / 'study.toml'}:") and words in message, message
    assert "\n" not in message


@pytest.mark.parametrize("rule", ["seconds = 3", "stagnation = 3", "gain_below = 0.01"])
def test_rules_that_several_objectives_have_are_read(rule: str, tmp_path: Path) -> None:
    assert read(tmp_path, f"{RIGHT}[stop]\n{rule}").stop is not None
    single = RIGHT.replace('cost = "min"', "cost = { at_most = 3 }")
    assert read(tmp_path, f"{single}[stop]\ntarget = 3").stop == gpmi.stopping.Target(3)


BOUNDED = """
[parameters]
x = { real = [0.0, 1.0] }
[goals]
yield = { goal = "max", at_least = 50, bounds = [0, 100] }
ph = { goal = "watch", bounds = [0, inf] }
cost = "min"
"""


def test_outputs_have_bounds(tmp_path: Path) -> None:
    study = read(tmp_path, BOUNDED)
    assert study.bounds == {"yield": ValueBounds(0.0, 100.0), "ph": ValueBounds(0.0)}
    assert study.goals is not None and study.goals["ph"] is None
    with open_study(study) as opened:
        assert opened.optimizer.bounds == study.bounds
    other = read(tmp_path, BOUNDED.replace("[0, 100]", "[0, 90]"))
    with pytest.raises(ValueError, match=r"bounds is .* but that of the study is"):
        open_study(other)
    alone = read(tmp_path, "bounds = [0, 100]\n[parameters]\nx = { real = [0.0, 1.0] }")
    assert alone.bounds == ValueBounds(0.0, 100.0)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("bounds = [0, 100]", "bounds = [100, 0]", r":5: goals.yield.bounds: bounds is \[100, 0\], which has no room"),
        ("bounds = [0, 100]", "bounds = 3", r":5: goals.yield.bounds: bounds is 3; give the smallest and the largest"),
        ("bounds = [0, 100]", "bounds = [0, 40]", ":5: goals.yield.bounds: .* its goal is max, at least 50"),
        ("\n[parameters]", "bounds = [0, 1]\n[parameters]", ":1: bounds: there is a table .goals.; say it there"),
        (
            '"watch", bounds',
            '"watch", at_most = 3, bounds',
            ":6: goals.ph: with goal = .watch. there is nothing to rea",
        ),
    ],
)
def test_bounds_that_cannot_be_are_refused_at_their_line(tmp_path: Path, old: str, new: str, words: str) -> None:
    with pytest.raises(StudyFileError, match=words):
        read(tmp_path, BOUNDED.replace(old, new))
