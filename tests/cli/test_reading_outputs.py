"""The outputs of a program in a study with goals: by name, by a pattern for each, with error bars; what is missing."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from gpmi.cli.command import Command, Reading
from gpmi.cli.command.reading import NoValue
from gpmi.run.evaluation import Failure, Measured

TWO = {"yield": "yield", "cost": "cost"}
WATCHED = {"outputs": {**TWO, "smell": "smell"}, "watched": ("smell",)}


def read(text: str, **options: Any) -> Measured:
    return Reading(**{"outputs": TWO, **options}).value(text.encode(), Path("nowhere"))


def why(text: str, **options: Any) -> str:
    with pytest.raises(NoValue) as refused:
        read(text, **options)
    return str(refused.value)


# A JSON object


@pytest.mark.parametrize(
    ("text", "options", "answer"),
    [
        ('{"cost": 3, "yield": 71.5, "other": "x"}', {}, Measured({"yield": 71.5, "cost": 3.0}, {})),
        ('{"yield": 1, "cost": "2e1"}', {}, Measured({"yield": 1.0, "cost": 20.0}, {})),
        ('{"yield": 1, "cost": null}', {}, Measured({"yield": 1.0}, {})),
        ('{"Y": 1, "cost": 2}', {"outputs": {"yield": "Y", "cost": "cost"}}, Measured({"yield": 1.0, "cost": 2.0}, {})),
        ('{"yield": 1, "cost": 2}', WATCHED, Measured({"yield": 1.0, "cost": 2.0}, {})),
        ('{"yield": 1, "cost": 2, "smell": 3}', WATCHED, Measured({"yield": 1.0, "cost": 2.0, "smell": 3.0}, {})),
        ('{"yield": 1}', {"outputs": {"yield": "yield"}}, Measured({"yield": 1.0}, {})),
        ("bla\n2.5\n", {"outputs": {"yield": "Y"}}, Measured({"yield": 2.5}, {})),
    ],
)
def test_outputs_are_read_by_name_and_null_is_not_measured(text: str, options: Any, answer: Measured) -> None:
    assert read(text, **options) == answer
    assert list(read(text, **options).y) == list(answer.y)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("noise", "answer"),
    [
        ("0.5", {"yield": 0.5, "cost": 0.5}),
        ("null", {}),
        ('{"Y": 0.25}', {"yield": 0.25}),
        ('{"Y": 0.25, "cost": 0}', {"yield": 0.25, "cost": 0.0}),
        ('{"Y": null}', {}),
    ],
)
def test_an_error_bar_is_for_all_outputs_or_by_output(noise: str, answer: dict[str, float]) -> None:
    text = f'{{"Y": 1, "cost": 2, "var": {noise}}}'
    assert read(text, outputs={"yield": "Y", "cost": "cost"}, noise_var="var").noise_var == answer
    late = '{"Y": 1, "cost": null, "var": {"cost": 0.5}}'
    assert read(late, outputs={"yield": "Y", "cost": "cost"}, noise_var="var").noise_var == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"yield": 1}', "cost is missing in its result, which has ['yield']"),
        ('{"yield": 1, "Cost": 2}', "cost is missing in its result, which has ['yield', 'Cost']"),
        ('{"yield": 1, "cost": "abc"}', "cost is 'abc', not a number"),
        ('{"yield": 1, "cost": true}', "cost is True, not a number"),
        ('{"yield": 1, "cost": [2]}', "cost is [2], not a number"),
        ('{"yield": NaN, "cost": 1}', "yield is nan"),
        ('{"yield": 1e999, "cost": 1}', "yield is inf"),
        ('{"yield": 1e200, "cost": 1}', "yield is 1e+200, too large to square"),
        ('{"yield": null, "cost": null}', "none of its outputs has a value: ['yield', 'cost']"),
        ('{"yield": 1, "cost": 2, "noise_var": -1}', "noise_var of yield is -1; a variance cannot be negative"),
        ('{"yield": 1, "cost": 2, "noise_var": {"cost": "x"}}', "noise_var of cost is 'x', not a number"),
        ('{"yield": 1, "cost": 2, "noise_var": {"cast": 1}}', "noise_var has 'cast', which is not an output"),
        ('{"yield": 1, "cost": 2, "noise_var": [1]}', "noise_var of yield is [1], not a number"),
        ("3.5", 'its last line is 3.5; a JSON object {"yield": ..., "cost": ...} is needed'),
        ("", "it wrote no output, whose last line should be a JSON object with the outputs"),
        ("{", "its result is not JSON"),
    ],
)
def test_what_has_no_outputs_is_refused_with_a_reason(text: str, words: str) -> None:
    assert words in why(text)


# Patterns

BY_OUTPUT = {"yield": r"yield: (\S+)", "cost": r"(?P<noise_var>\S+) for (?P<cost>\S+) euro"}


def test_each_output_has_its_own_pattern_and_error_bar() -> None:
    text = "yield: 3\n0.5 for 4 euro\nyield: 71.5\nbye"
    answer = read(text, source="match", pattern=BY_OUTPUT)
    assert answer == Measured({"yield": 71.5, "cost": 4.0}, {"cost": 0.5})


def test_one_pattern_may_have_a_group_for_each_output() -> None:
    pattern = r"(?P<yield>\S+) at (?P<c>\S+)( var (?P<noise_var>\S+))?"
    options: Any = {"source": "match", "pattern": pattern, "outputs": {"yield": "yield", "cost": "c"}}
    assert read("3 at 4\n5 at 6", **options) == Measured({"yield": 5.0, "cost": 6.0}, {})
    assert read("3 at 4 var 0.5", **options).noise_var == {"yield": 0.5, "cost": 0.5}
    one: Any = {"source": "match", "pattern": r"loss (\S+)", "outputs": {"loss": "loss"}}
    assert read("loss 0.25", **one) == Measured({"loss": 0.25}, {})


def test_an_output_without_a_match_is_refused_unless_it_is_watched() -> None:
    assert why("yield: 3", source="match", pattern=BY_OUTPUT).startswith("cost: no line of its output matches")
    some = {**WATCHED, "source": "match", "pattern": {**BY_OUTPUT, "smell": "smell (.*)"}}
    assert read("yield: 3\n1 for 4 euro", **some).y == {"yield": 3.0, "cost": 4.0}
    assert read("smell 2\nyield: 3\n1 for 4 euro", **some).y == {"yield": 3.0, "cost": 4.0, "smell": 2.0}
    assert why("smell bad\nyield: 3\n1 for 4 euro", **some) == "smell is 'bad', not a number"
    optional = {"source": "match", "pattern": {**BY_OUTPUT, "yield": r"yield:( \d+)?"}}
    assert why("yield: x\n1 for 4 euro", **optional).startswith("yield is missing in its result")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"pattern": {"yield": "a"}}, "there is no pattern for the output 'cost'; give one"),
        (
            {"pattern": {**BY_OUTPUT, "cast": "a"}},
            "pattern has 'cast', which is not an output; give one of yield, cost",
        ),
        ({"pattern": {**BY_OUTPUT, "cost": "("}}, "pattern of 'cost' is '(', not a regular expression"),
        ({"pattern": "(?P<yield>.)"}, "pattern has no group (?P<cost>...) for the output 'cost'; add it, or give a"),
        ({"pattern": {"a": "b"}, "outputs": {}}, "pattern has 'a', which is not an output; it needs goals"),
        ({"source": "json", "pattern": BY_OUTPUT}, "only 'match' takes one"),
        ({"pattern": BY_OUTPUT, "noise_var": "cost"}, "'cost' is the name of the variances; give each its own name"),
        ({"pattern": "a", "outputs": {"a": "b", "c": "b"}}, "'b' is the name of two outputs; give each its own name"),
    ],
)
def test_a_reading_that_cannot_be_meant_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError) as refused:
        Reading(**{"source": "match", "outputs": TWO, **options})
    assert words in str(refused.value)


# A program


@pytest.mark.skipif(os.name != "posix", reason="programs need process groups")
def test_a_program_measures_outputs_or_has_failed() -> None:
    text = json.dumps({"yield": 1.5, "cost": 2}).replace('"', '\\"')
    reading = Reading("json", outputs=TWO)
    command = Command(f'echo "{text}" > "$GPMI_RESULT_FILE"', ("x",), reading=reading)
    assert command({"x": 1.0}) == Measured({"yield": 1.5, "cost": 2.0}, {})
    failed = Command("echo '{\"yield\": 1}'", ("x",), reading=Reading(outputs=TWO))({"x": 1.0})
    assert isinstance(failed, Failure) and failed.why.startswith("cost is missing")
