"""The form of a new study says what a study file says: mixtures, rules, steps, units, bounds and error bars."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from laboratory import Page, client_for, follow, send, text_of

import gpmi
from gpmi._support.plain_table import Table
from gpmi.run.study_table import read_table
from gpmi.serve.study_form import FormProblem, typed_study
from gpmi.space import Forbidden
from gpmi.trials.value_bounds import ValueBounds

MIXTURE = {
    **{"study": "paint", "goal": "goals", "aim": "find", "budget": "30", "mixture-sum": "1", "mixture-most": "2"},
    **{"name-0": "A", "lo-0": "0", "hi-0": "1", "step-0": "0,01", "part-0": "on"},
    **{"name-1": "B", "lo-1": "0", "hi-1": "1", "step-1": "0.01", "part-1": "on", "kind-1": "number"},
    **{"name-2": "C", "lo-2": "0", "hi-2": "0.8", "step-2": "0.01", "part-2": "on"},
    **{"name-3": "temperature", "lo-3": "20", "hi-3": "90", "step-3": "0.5", "unit-3": "°C"},
    **{"name-4": "solvent", "kind-4": "choice", "options-4": "THF, DMF, water"},
    **{"name-5": "base", "kind-5": "choice", "options-5": "NaH, none"},
    "rules": "A + 2*B <= 1,5".replace(",", ".") + "\n\n  A ≥ 0.05 ",
    "forbidden": "solvent = water, base = NaH",
    **{"output-name-0": "yield", "output-kind-0": "max", "output-number-0": "40", "output-unit-0": "%"},
    **{"output-low-0": "0", "output-high-0": "100", "output-error-0": "1.5"},
    **{"output-name-1": "gloss", "output-kind-1": "match", "output-number-1": "60", "output-within-1": "5"},
    **{"output-low-1": "0"},
}
# The same as a study file.
FILE = """
aim = "find"
budget = 30
constraints = ["A + B + C == 1", "count(A, B, C > 0) <= 2", "A + 2*B <= 1.5", "A ≥ 0.05"]
forbidden = [{ solvent = "water", base = "NaH" }]
[parameters]
A = { real = [0, 1], step = 0.01 }
B = { real = [0, 1], step = 0.01 }
C = { real = [0, 0.8], step = 0.01 }
temperature = { real = [20, 90], step = 0.5, unit = "°C" }
solvent = { choice = ["THF", "DMF", "water"] }
base = { choice = ["NaH", "none"] }
[goals]
yield = { goal = "max", at_least = 40, unit = "%", bounds = [0, 100], error_bar = 1.5 }
gloss = { match = 60, within = 5, bounds = [0, inf] }
"""


def test_the_form_says_what_a_study_file_says() -> None:
    form, file = typed_study(MIXTURE), read_table(Table(tomllib.loads(FILE)))
    assert repr(form) == repr(file)
    assert form.bounds == {"yield": ValueBounds(0.0, 100.0), "gloss": ValueBounds(0.0)}
    assert form.noise_var == {"yield": 2.25} and form.units == {"yield": "%"}
    assert isinstance(form.constraints[-1], Forbidden)


def test_a_mixture_with_two_results_is_created_and_used(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    with client_for(str(path)) as client:
        page = follow(client, send(client, client.get("/new"), "/new/parameters", **MIXTURE))
        assert "The study was created." in text_of(page)
        page = follow(client, send(client, page, "/ask", n="3"))
        assert "yield (%)" in text_of(page)
    with gpmi.study(path, "paint") as study:
        for trial in study.trials:
            parts = [trial.x[name] for name in "ABC"]
            assert sum(parts) == pytest.approx(1.0) and sum(part > 0 for part in parts) <= 2
            assert all(round(part, 2) == part for part in parts) and trial.x["temperature"] % 0.5 == 0.0


def test_one_result_has_a_name_a_unit_bounds_and_an_error_bar() -> None:
    typed = {"goal": "min", "aim": "earn", "name-0": "x", "lo-0": "0", "hi-0": "1", "seed": "7"}
    plain = typed_study(typed)
    assert (str(plain.goals), plain.bounds, plain.units, plain.noise_var) == ("min", None, None, None)
    assert plain.seed == 7 and plain.aim == "earn"
    details = {"result-unit": "mg", "result-low": "0", "result-error": "0,1"}
    unnamed = typed_study({**typed, **details})
    assert (unnamed.goals.named, unnamed.bounds, unnamed.units) == ((), ValueBounds(0.0), "mg")
    assert unnamed.noise_var == pytest.approx(0.01)
    named = typed_study({**typed, **details, "result-name": "residue"})
    assert named.goals.named and str(named.goals) == "residue (min)"
    assert (named.bounds, named.units) == ({"residue": ValueBounds(0.0)}, {"residue": "mg"})


def test_lists_in_order_and_conditions() -> None:
    typed = {
        **{"goal": "max", "aim": "find", "name-0": "metal", "kind-0": "choice", "options-0": "Pd, Ni, none"},
        **{"name-1": "ligand", "kind-1": "ordered", "options-1": "small, medium, large"},
        **{"name-2": "stirs", "kind-2": "whole", "lo-2": "1", "hi-2": "9", "step-2": "2"},
        "conditions": "ligand only if metal = Pd, Ni",
    }
    study = typed_study(typed)
    assert study.parameters["ligand"] == gpmi.Choice(
        ("small", "medium", "large"), ordered=True, when={"metal": ["Pd", "Ni"]}
    )
    assert study.parameters["stirs"] == gpmi.Int(1, 9, step=2)


SIMPLE = {
    **{"study": "x", "goal": "max", "aim": "find", "name-0": "A", "lo-0": "0", "hi-0": "1"},
    **{
        "name-1": "B",
        "kind-1": "number",
        "lo-1": "0",
        "hi-1": "1",
        "name-2": "s",
        "kind-2": "choice",
        "options-2": "p, q",
    },
}


@pytest.mark.parametrize(
    ("typed", "field", "words"),
    [
        (
            {"step-0": "3"},
            "step-0",
            "Parameter 'A': the step is 3, larger than the range, which is 1; give a smaller step",
        ),
        ({"step-0": "-1"}, "step-0", "the step is -1; give a number above 0"),
        ({"step-0": "fine"}, "step-0", "Parameter 'A': 'fine' is not a number"),
        ({"lo-0": "2"}, "lo-0", "“From” must be smaller than “To”"),
        ({"part-0": "on"}, "part-0", "The mixture has one part"),
        ({"mixture-sum": "1"}, "mixture-sum", "The mixture has no parts"),
        ({"mixture-most": "1"}, "mixture-most", "The mixture has no parts"),
        (
            {"part-0": "on", "part-1": "on", "mixture-sum": "3"},
            "mixture-sum",
            "“A + B = 3” cannot hold",
        ),
        ({"part-0": "on", "part-1": "on", "mixture-most": "5"}, "mixture-most", "At most 5 of the 2 parts cannot be"),
        ({"part-0": "on", "part-2": "on"}, "kind-2", "it is part of a mixture, so it must be a number"),
        ({"part-0": "on", "part-1": "on", "name-1": "part B"}, "name-1", "rename it, as in 'part_B'"),
        ({"rules": "A + B <= 1\nA + D <= 2"}, "rules", "“A + D ≤ 2” has the name D"),
        ({"rules": "A + B"}, "rules", "onstraint 'A + B' compares nothing"),
        ({"rules": "2 A <= 1"}, "rules", "The rule “2 A <= 1” cannot be read"),
        ({"rules": "A*B <= 1"}, "rules", "not linear"),
        ({"rules": "A >= 0.9\nA + B <= 0.5"}, "rules", "cannot hold together"),
        ({"rules": "count(A, s > 0) <= 1"}, "rules", "counts 's'"),
        ({"rules": "\n".join(["A <= 1"] * 300)}, "rules", "There are 300 lines"),
        ({"forbidden": "s"}, "forbidden", "'s' is not a parameter with a value"),
        ({"forbidden": "s = r"}, "forbidden", "The parameter s has no option r"),
        ({"forbidden": "u = 1, s = p"}, "forbidden", "There is no parameter u"),
        ({"conditions": "A if s = p"}, "conditions", "does not begin with a parameter and “only if”"),
        ({"conditions": "A only if s = r"}, "conditions", "The parameter s has no option r"),
        ({"result-low": "5", "result-high": "1"}, "result-low", "“Never below” must be smaller"),
        ({"result-high": "high"}, "result-high", "The result: 'high' is not a number"),
        ({"result-error": "-1"}, "result-error", "give a number above 0"),
        ({"result-error": "0"}, "result-error", "give a number above 0"),
        ({"result-name": "A"}, "result-name", "Output 'A': a parameter has the same name"),
        ({"result-name": "y" * 90}, "result-name", "at most 80"),
        ({"seed": "1.5"}, "seed", "The seed is 1.5; give a whole number"),
        ({"budget": "many"}, "budget", "The number of experiments: 'many' is not a number"),
        ({"goal": "goals", "output-low-0": "1"}, "output-name-0", "Output 1 has no name"),
        (
            {"goal": "goals", "output-name-0": "u", "output-kind-0": "max", "output-low-0": "1", "output-high-0": "0"},
            "output-low-0",
            "Output 'u': “Never below” is 1 and “Never above” is 0",
        ),
        (
            {"goal": "goals", "output-name-0": "u", "output-kind-0": "match", "output-number-0": "9"}
            | {"output-within-0": "1", "output-high-0": "5"},
            "output-high-0",
            "its number is outside what is possible",
        ),
    ],
)
def test_what_cannot_be_is_said_beside_its_field_and_nothing_typed_is_lost(
    tmp_path: Path, typed: dict[str, str], field: str, words: str
) -> None:
    with pytest.raises(FormProblem) as refused:
        typed_study({**SIMPLE, **typed})
    assert words in str(refused.value) and refused.value.field == field
    path = tmp_path / "new.db"
    with client_for(str(path)) as client:
        answer = send(client, client.get("/new"), "/new/parameters", **{**SIMPLE, **typed})
        assert answer.status_code == 400 and text_of(answer).count(words) == 2  # at the top, and beside the field
        marked = answer.text.split('aria-invalid="true"')
        assert len(marked) == 2 and f'name="{field}"' in marked[0].rpartition("<")[2] + marked[1].partition(">")[0]
        kept = Page(answer.text).form("/new/parameters").fields
        assert {name: kept.get(name) for name in (SIMPLE | typed)} == SIMPLE | typed
        assert not path.exists()


def test_candidates_have_units_and_bounds_too(tmp_path: Path) -> None:
    table = b"solvent,volume\nwater,1\nethanol,2\nether,3\n"
    with client_for(str(tmp_path / "new.db")) as client:
        answer = send(client, client.get("/new"), "/new/table", files={"table": ("t.csv", table)})
        typed: dict[str, Any] = {"study": "rows", "result-unit": "%", "result-low": "0", "result-high": "100"}
        wrong = send(client, answer, "/new/candidates", **typed | {"result-high": "-5"})
        assert wrong.status_code == 400 and "“Never below” must be smaller" in text_of(wrong)
        follow(client, send(client, wrong, "/new/candidates", **typed, once="2"))
    with gpmi.study(tmp_path / "new.db", "rows") as study:
        assert study.optimizer.bounds == {"y": ValueBounds(0.0, 100.0)} and study.optimizer.units == {"y": "%"}


DESCRIBED = {**SIMPLE, "features": "s\tboiling point\tpolarity\r\np\t66\t0.21\r\nq\t153\t0.39\r\n"}


def test_options_are_described_by_a_table_from_a_spreadsheet(tmp_path: Path) -> None:
    choice = typed_study(DESCRIBED).parameters["s"]
    assert choice == gpmi.Choice(
        ("p", "q"),
        features={"p": {"boiling point": 66, "polarity": 0.21}, "q": {"boiling point": 153, "polarity": 0.39}},
    )
    path = tmp_path / "new.db"
    with client_for(str(path)) as client:
        follow(client, send(client, client.get("/new"), "/new/parameters", **DESCRIBED))
    with gpmi.study(path, "x") as study:
        assert study.space.parameters[2] == choice


@pytest.mark.parametrize(
    ("features", "words"),
    [
        ("A, b\np, 1", "'A' is not one of a list; begin the table with the name of a parameter: s"),
        ("s", "the table has no descriptors"),
        ("s, b\np, 1\np, 2", "the table has 'p' twice"),
        ("s, b\np, 1\nq, hot", "for 'q'; give a number"),
        ("s, b\np, 1, 2\nq, 1", "has 3 cells for 'p' and 2 columns"),
        ("s, b\np, 1", "q"),
        ("s, b\np, 1\nq, 1", "tells nothing"),
    ],
)
def test_descriptors_that_cannot_be_are_refused(features: str, words: str) -> None:
    with pytest.raises(FormProblem) as refused:
        typed_study({**SIMPLE, "features": features})
    assert words in str(refused.value)
    assert refused.value.field == "features"
