"""What the pages of `gpmi serve` say: warnings, refusals in the words of the forms, and numbers that agree."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laboratory import Page, client_for, create_study, follow, send, text_of
from sample_refusals import SAMPLES

import gpmi
from gpmi._support.refusals import CODES, Refused, RefusedValue
from gpmi.serve.cell_parsing import parse_cell, parse_number
from gpmi.serve.model_worker import summarise
from gpmi.serve.parameter_fields import fields_of
from gpmi.serve.refusal_words import WORDS, in_form_words
from gpmi.serve.study_form import FormProblem, typed_study

AT = "/study/default"
GOALS: dict[str, Any] = {"yield": gpmi.Max(at_least=30.0), "cost": gpmi.Min()}
BLEND = {
    **{name: gpmi.Real(0.0, 1.0) for name in ("water", "ethanol", "glycol")},
    "temperature": gpmi.Real(20.0, 90.0, step=5.0, unit="°C"),
    "solvent": ["THF", "DMF"],
}
SUM = ["water + ethanol + glycol == 1"]


def asked(client: Any, n: int = 1) -> Any:
    return follow(client, send(client, client.get(AT), "/ask", n=str(n)))


@pytest.mark.parametrize("options", [{"goals": GOALS}, {"goals": {"yield": "max", "cost": "min"}}, {}])
def test_the_results_still_needed_count_down_from_the_beginning(tmp_path: Path, options: dict[str, Any]) -> None:
    path = create_study(tmp_path, space=BLEND, constraints=SUM, **options)
    with gpmi.study(path) as study:
        for left in (18, 17, 16):
            found = summarise(study)
            decision = found.facts.decision
            assert decision.needed == left and decision.kind == "too early"
            assert decision.text == f"Too early to say: gpmi can say more after {left} more results."
            x = study.ask().x
            y = {"yield": x["temperature"], "cost": x["water"]}
            study.tell(x, y if options else x["water"])


@pytest.mark.parametrize("text", ["high", "nan"])
def test_only_results_can_fail(text: str) -> None:
    with pytest.raises(ValueError, match="write “failed”"):
        parse_cell(text)
    with pytest.raises(ValueError, match=r"is not a number; give a number$"):
        parse_number(text)


TYPED = {
    **{"goal": "goals", "aim": "find", "output-name-0": "yield", "output-kind-0": "max"},
    **{"name-0": "hot", "lo-0": "20", "hi-0": "90"},
    **{"name-1": "solvent", "kind-1": "choice", "options-1": "THF, toluene"},
}
PARTS = {f"{key}-{i}": text for i, name in ((2, "a"), (3, "b"), (4, "c"))
         for key, text in (("name", name), ("lo", "0"), ("hi", "1"), ("part", "on"))}  # fmt: skip
PYTHON = re.compile(r"\b(Real|Int|lo|hi|None|DataFrame|dict|space|constraints|bounds|fixed:|Forbidden)\b|==|\[")


@pytest.mark.parametrize(
    ("more", "field", "words"),
    [
        ({"lo-0": "90", "hi-0": "20"}, "lo-0", "“From” must be smaller than “To”"),
        ({"kind-0": "whole", "lo-0": "9", "hi-0": "2"}, "lo-0", "“From” is 9 and “To” is 2"),
        ({"kind-0": "fidelity", "lo-0": "9", "hi-0": "2"}, "lo-0", "“From” must be at least 1"),
        ({"step-0": "500"}, "step-0", "the step is 500, larger than the range, which is 70"),
        ({"step-0": "-5"}, "step-0", "the step is -5; give a number above 0"),
        ({"lo-0": "-1", "log-0": "on"}, "lo-0", "a logarithmic scale needs a “From” above 0"),
        ({"hi-0": "1e300"}, "lo-0", "the range from 20 to 1e+300 is too wide"),
        ({"features": "solvent,eps\nTHF,7.5"}, "features", "has no line for toluene"),
        ({"output-low-0": "100", "output-high-0": "0"}, "output-low-0", "“Never below” is 100 and “Never above” is 0"),
        ({"output-high-0": "100", "output-number-0": "200"}, "output-high-0", "outside what is possible, at most 100"),
        ({"output-error-0": "-1"}, "output-error-0", "the error bar is -1; give a number above 0"),
        ({**PARTS, "mixture-sum": "5"}, "mixture-sum", "“a + b + c = 5” cannot hold while"),
        ({**PARTS, "mixture-sum": "2.5", "mixture-most": "2"}, "mixture-sum", "cannot hold together"),
        ({"rules": "x + hot <= 1"}, "rules", "“x + hot ≤ 1” has the name x; the parameters are hot, solvent"),
        ({"rules": "hot ~ 5"}, "rules", "The rule “hot ~ 5” cannot be read"),
        ({"forbidden": "solvent = water"}, "forbidden", "The parameter solvent has no option water"),
        ({"forbidden": "base = NaH"}, "forbidden", "There is no parameter base; the parameters are hot, solvent"),
        ({"forbidden": "hot = 30"}, "forbidden", "write a rule instead"),
        ({"conditions": "hot only if base = NaH"}, "conditions", "There is no parameter base"),
    ],
)  # fmt: skip
def test_refusals_of_a_new_study_have_the_words_of_the_form(more: dict[str, str], field: str, words: str) -> None:
    with pytest.raises(FormProblem) as refused:
        typed_study({**TYPED, **more})
    assert words in str(refused.value) and refused.value.field == field
    assert not PYTHON.search(str(refused.value))


def test_refusals_of_values_have_the_words_of_the_page(tmp_path: Path) -> None:
    path = create_study(tmp_path, space=BLEND, constraints=SUM, goals=GOALS)
    with client_for(path) as client:
        for typed, words in (
            ({"given-temperature": "120"}, "temperature is 120, outside 20 to 90; give a value inside."),
            ({"given-water": "0.9", "given-ethanol": "0.9"}, "no experiment that keeps “water + ethanol + glycol = 1”"),
            ({"given-water": "wet"}, "'wet' is not a number; give a number."),
        ):
            assert words in text_of(send(client, client.get(AT), "/ask", **typed))
        own = {"own-water": "0.5", "own-ethanol": "0.3", "own-glycol": "0.1", "own-temperature": "50"}
        own |= {"own-solvent": "THF", "own-result-0": "40"}
        page = text_of(send(client, client.get(AT), "/observe", **own))
        assert "“water + ethanol + glycol = 1” must hold; with these values it is off by 0.1." in page


# The words of a code


@pytest.mark.parametrize("code", CODES)
def test_every_code_has_words_for_a_form(code: str) -> None:
    assert CODES.keys() == WORDS.keys()
    with pytest.raises(Refused) as refused:
        SAMPLES[code].call()
    words = in_form_words(refused.value)
    assert words == SAMPLES[code].words and not PYTHON.search(words)


def test_what_has_no_code_is_shown_as_it_is() -> None:
    assert in_form_words(ValueError("give a number")) == "give a number"
    assert in_form_words(FormProblem("give a number", "lo-0")) == "give a number"
    assert in_form_words(RefusedValue("give a number")) == "give a number"


def test_what_was_typed_stays_what_it_is_and_long_lists_are_cut() -> None:
    names = [f"parameter {i}" for i in range(1000)]
    words = in_form_words(RefusedValue("", "unknown-parameter", name="{low} == 1", names=names))
    assert words.startswith("There is no parameter {low} == 1; the parameters are parameter 0, parameter 1, ")
    assert words.endswith(" more") and len(words) < 400
    combination = {"step": "a <= b", "pH": 7.0, "solvent": ["THF", "DMF"]}
    words = in_form_words(RefusedValue("", "never-together", constraints=[combination, "x == 1"]))
    assert words.startswith("“never step = a <= b, pH = 7, solvent = THF, DMF” and “x = 1” cannot hold together")


@pytest.mark.parametrize("separator", [";", "\t"])
def test_descriptors_may_have_decimal_commas(separator: str) -> None:
    table = "\n".join(separator.join(row) for row in (("solvent", "eps"), ("THF", "7,5"), ("toluene", "-2,4")))
    solvent = typed_study({**TYPED, "features": table}).parameters["solvent"]
    point = typed_study({**TYPED, "features": table.replace(",", ".")}).parameters["solvent"]
    assert repr(solvent) == repr(point) and solvent.features is not None


SHARES = st.lists(st.floats(0.0, 1.0), min_size=3, max_size=3).filter(lambda one: sum(one) > 0.1)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.floats(0.0, 1.0), min_size=3, max_size=3).filter(lambda one: sum(one) > 0.1), st.sampled_from([1, 100])
)
def test_the_numbers_of_a_mixture_add_up_as_they_are_shown(parts: list[float], total: int) -> None:
    shares = [float(part / sum(parts) * total) for part in parts]
    box = {"a": gpmi.Real(0.0, float(total)), "b": gpmi.Real(0.0, float(total)), "c": gpmi.Real(0.0, float(total))}
    space = gpmi.Optimizer(box, constraints=[f"a + b + c == {total}"]).space
    x = dict(zip("abc", shares, strict=True))
    shown = [Decimal(field.shown(x)) for field in fields_of(space)]
    assert sum(shown) == total
    assert all(abs(float(one) - share) <= total / 1000 + 1e-9 for one, share in zip(shown, shares, strict=True))
    assert all(not one for one, share in zip(shown, shares, strict=True) if share == 0.0)


def test_the_page_takes_its_own_numbers_of_a_mixture(tmp_path: Path) -> None:
    box = {**BLEND, "water": gpmi.Real(0.1, 0.5), "glycol": gpmi.Real(0.0, 0.3)}
    path = create_study(tmp_path, space=box, constraints=SUM, goals=GOALS)
    with client_for(path) as client:
        asked(client, 24)
        for page in (client.get(AT), client.get(f"{AT}/sheet")):
            rows = re.findall(r"<tr.*?</tr>", page.text.partition("<tbody")[2], re.DOTALL)[:24]
            cells = [re.findall(r">([0-9.]+)<", row)[:3] for row in rows]
            assert [sum(map(Decimal, row)) for row in cells] == [1] * 24
        plate = re.sub(r"<[^>]*>", " ", client.get(f"{AT}/sheet?plate=24").text)
        found = re.findall(r"water ([0-9.]+) +ethanol ([0-9.]+) +glycol ([0-9.]+)", plate)
        assert [sum(map(Decimal, row)) for row in found] == [1] * 24
        for row in cells:
            own = dict(zip(("own-water", "own-ethanol", "own-glycol"), row, strict=True))
            typed = {**own, "own-temperature": "50", "own-solvent": "THF", "own-result-0": "40"}
            follow(client, send(client, client.get(AT), "/observe", **typed))


def test_the_planned_experiments_add_up(tmp_path: Path) -> None:
    with client_for(create_study(tmp_path, budget=5)) as client:
        page = asked(client, 3)
        assert "3 waiting, 2 left of 5 planned" in text_of(page)
        page = follow(client, send(client, page, "/results", **{"y-0": "1", "reject": "1"}))
        words = text_of(page)
        assert "1 done, 1 waiting, 3 left of 5 planned" in words  # one was skipped, so 3 are left
        assert "1 done, 3 waiting, 1 left of 5 planned" in text_of(asked(client, 2))
        page = asked(client, 3)
        assert "1 done, 6 waiting, 5 were planned" in text_of(page)
        typed = {name: "2" for name in Page(page.text).form("/results").fields if name.startswith("y-")}
        assert "7 done, 5 were planned" in text_of(follow(client, send(client, page, "/results", **typed)))


def test_the_best_of_each_keeps_the_limits(tmp_path: Path) -> None:
    path = create_study(tmp_path, goals=GOALS)
    with gpmi.study(path) as study:
        for hot, good, cost in ((30.0, 5.0, 1.0), (50.0, 60.0, 4.0), (70.0, 50.0, 7.0)):
            study.tell({"temperature": hot, "catalyst": "A"}, {"yield": good, "cost": cost})
    with client_for(path) as client:
        words = text_of(client.get(AT))
    assert "smallest cost4, trial 1" in words and "smallest cost1, trial 0" not in words
    assert "Only experiments with values that you would accept count." in words
    assert "One experiment is at least as good as all others that you would accept in yield and cost." in words
