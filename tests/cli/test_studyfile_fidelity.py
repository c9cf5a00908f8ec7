"""Study files with a fidelity: levels, steps, costs, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import gpmi
from gpmi.cli.studyfile import StudyFile, StudyFileError, read_study

TOP = """\
budget = 5
{top}
[parameters]
x = {{ real = [0.0, 1.0] }}
mesh = {fidelity}
[command]
run = ["./f", "{{x}}", "{{mesh}}"]
[value]
{value}
"""


def read(folder: Path, fidelity: str, top: str = "", value: str = "") -> StudyFile:
    path = folder / "study.toml"
    path.write_text(TOP.format(fidelity=fidelity, top=top, value=value))
    return read_study(path)


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("{ fidelity = { coarse = 1, fine = 60 } }", gpmi.Fidelity({"coarse": 1, "fine": 60})),
        ("{ fidelity = { fine = 60, coarse = 100 } }", gpmi.Fidelity({"fine": 60, "coarse": 100})),
        ('{ fidelity = ["coarse", "fine"] }', gpmi.Fidelity(["coarse", "fine"])),
        ("{ fidelity = [16, 64, 256] }", gpmi.Fidelity([16, 64, 256])),
        ("{ fidelity = [1, 52] }", gpmi.Fidelity(1, 52)),
        ("{ fidelity = [1, 52], cost = { 10 = 15, 52 = 60 } }", gpmi.Fidelity(1, 52, cost={10: 15, 52: 60})),
        ('{ fidelity = [1, 52], unit = "epochs" }', gpmi.Fidelity(1, 52, unit="epochs")),
    ],
)
def test_a_fidelity_is_that_of_python(given: str, made: gpmi.Fidelity, tmp_path: Path) -> None:
    study = read(tmp_path, given)
    assert study.parameters["mesh"] == made and repr(study.parameters["mesh"]) == repr(made)
    assert study.command is not None
    assert study.command.steps == (("mesh", 1) if made.has_steps else None)


def test_a_table_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(
        "cost = 100\n[parameters.x]\nreal = [0.0, 1.0]\n[parameters.mesh.fidelity]\ncoarse = 1\nfine = 60\n"
    )
    study = read_study(path)
    assert study.parameters["mesh"] == gpmi.Fidelity({"coarse": 1, "fine": 60}) and study.cost == 100.0


def test_a_cost_may_stand_for_the_budget(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(
        TOP.format(fidelity="{ fidelity = [1, 52] }", top="cost = 1040", value="").replace("budget = 5", "")
    )
    study = read_study(path)
    assert (study.cost, study.budget) == (1040.0, None)


@pytest.mark.parametrize(
    ("fidelity", "more", "words"),
    [
        ("{ fidelity = 3 }", {}, "study.toml:5: parameters.mesh.fidelity: fidelity is 3; give { fidelity = { coarse"),
        ('{ fidelity = "fine" }', {}, "fidelity is 'fine'; give { fidelity ="),
        ("{ fidelity = [1] }", {}, "Fidelity has 1 levels; give 2 to 20, the target last"),
        ("{ fidelity = [] }", {}, "Fidelity has 0 levels"),
        ("{ fidelity = {} }", {}, "Fidelity has 0 levels"),
        ("{ fidelity = [52, 1] }", {}, "the first is at least 1, the last larger"),
        ("{ fidelity = [0, 9] }", {}, "the first is at least 1, the last larger"),
        ("{ fidelity = [true, false] }", {}, "name levels by strings or numbers"),
        ("{ fidelity = [1.0, inf] }", {}, "it has the option inf"),
        ("{ fidelity = [[1, 2], [3, 4]] }", {}, "it has the option [1, 2]"),
        ('{ fidelity = ["a", "a"] }', {}, "a"),
        ("{ fidelity = { a = 2, b = 1 } }", {}, "from the cheapest to the most expensive"),
        ("{ fidelity = { a = -2, b = 1 } }", {}, "give a number above 0"),
        ('{ fidelity = { a = "1", b = 1 } }', {}, "the cost of 'a' in Fidelity is '1'; give a number above 0"),
        ("{ fidelity = { a = 1, b = 2 }, cost = 3 }", {}, "parameters.mesh.cost: it is for steps; give the costs of"),
        ("{ fidelity = [1, 52], cost = 3 }", {}, "parameters.mesh.cost: cost is 3; give what the steps"),
        ("{ fidelity = [1, 52], cost = { a = 3 } }", {}, "give what the steps up to some cost"),
        ("{ fidelity = [1, 52], cost = { 10 = 3 } }", {}, "give growing costs, the last of them for step 52"),
        ("{ fidelity = [1, 52], log = true }", {}, "parameters.mesh.log: there is no such key"),
        ("{ fidelty = [1, 52] }", {}, "parameters.mesh.fidelty: there is no such key; did you mean fidelity?"),
        ("{ real = [0.0, 1.0] }", {"top": "cost = 9"}, "study.toml:2: cost: no parameter is a fidelity, so nothing"),
        ("{ fidelity = [1, 52] }", {"top": "cost = 0"}, "cost"),
        ("{ fidelity = [1, 52] }", {"value": 'constraints = ["c"]'}, "constraints do not go with steps; give limits"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_with_its_line_and_a_remedy(
    fidelity: str, more: dict[str, Any], words: str, tmp_path: Path
) -> None:
    with pytest.raises(StudyFileError) as raised:
        read(tmp_path, fidelity, **more)
    assert words in str(raised.value) and str(raised.value).startswith(str(tmp_path / "study.toml:"))


def test_the_study_files_of_the_manual_are_read(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "commands.md").read_text(encoding="utf-8")
    part = page.split("## Cheaper measurements")[1].split("\n## ")[0]
    levels, steps = re.findall(r"```toml\n(.*?)```", part, flags=re.DOTALL)
    path = tmp_path / "study.toml"
    path.write_text(levels)
    assert read_study(path).parameters["mesh"] == gpmi.Fidelity({"coarse": 1, "fine": 60})
    path.write_text(steps)
    found = read_study(path)
    assert found.parameters["epoch"] == gpmi.Fidelity(1, 52) and found.cost == 1040.0
    assert found.command is not None and found.command.steps == ("epoch", 1)


def test_two_fidelities_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text("[parameters]\nx = { real = [0.0, 1.0] }\na = { fidelity = [1, 2] }\nb = { fidelity = [1, 2] }\n")
    with pytest.raises(StudyFileError, match="space has several fidelities, 'a', 'b'; give one"):
        read_study(path)
