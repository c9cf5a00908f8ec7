"""Refusals: sentences for programmers, with a code and values that outlive a wrapper, a copy and another process."""

from __future__ import annotations

import ast
import copy
import json
import math
import pickle
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_refusals import PREFIXED, SAMPLES

import gpmi
from gpmi import exchange
from gpmi._support.plain_table import Table, TableError
from gpmi._support.refusals import CODES, Refused, RefusedType, RefusedValue, plain, reworded

ROOT = Path(gpmi.__file__).parent


def refused(call: Callable[[], Any]) -> Refused:
    with pytest.raises(Refused) as caught:
        call()
    return caught.value


def raised_codes() -> Iterator[tuple[str, set[str]]]:
    """Yield each code in the source, with the names of the values that are given there."""
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id="RefusedValue" | "RefusedType"), args=[_, ast.Constant(value=code)]):
                    yield code, {keyword.arg for keyword in node.keywords if keyword.arg is not None}


# Codes


def test_every_code_is_raised_in_the_source_with_its_values_and_no_other_is() -> None:
    raised = list(raised_codes())
    assert {code for code, _ in raised} == CODES.keys() == SAMPLES.keys()
    for code, names in raised:
        assert names <= set(CODES[code].values), code


@pytest.mark.parametrize("code", CODES)
def test_every_code_is_raised_by_a_call_with_all_its_values(code: str) -> None:
    error = refused(SAMPLES[code].call)
    assert error.code == code and isinstance(error, ValueError | TypeError)
    assert set(CODES[code].values) <= error.values.keys() and re.fullmatch("[a-z]+(-[a-z]+)*", code)
    assert json.loads(json.dumps(error.values, allow_nan=False)) == error.values


@pytest.mark.parametrize(
    ("code", "sentence", "call"), PREFIXED, ids=[f"{code}-{i}" for i, (code, *_) in enumerate(PREFIXED)]
)
def test_a_prefix_keeps_the_code_and_the_values(code: str, sentence: str, call: Callable[[], Any]) -> None:
    error = refused(call)
    assert error.code == code and set(CODES[code].values) <= error.values.keys()
    assert re.search(sentence, str(error))


def test_the_definition_of_a_parameter_is_refused_with_its_name() -> None:
    assert refused(lambda: gpmi.Space.of({"hot": (9.0, 2.0)})).values == {"parameter": "hot", "low": 9.0, "high": 2.0}
    assert refused(lambda: gpmi.Space.of([(0.0, 1.0), (9.0, 2.0)])).values["parameter"] == 1


def test_the_page_on_the_api_has_every_code_with_its_values() -> None:
    page = (ROOT.parent.parent / "docs" / "serve.md").read_text("utf-8")
    rows = re.findall(r"^\| `([a-z-]+)` \| (.*?) \| (.*?) \|$", page, re.MULTILINE)
    assert rows == [
        (code, ", ".join(f"`{name}`" for name in entry.values), entry.meaning) for code, entry in CODES.items()
    ]


# Wrappers


def test_an_error_in_a_table_has_its_place_its_code_and_its_values() -> None:
    with pytest.raises(TableError) as caught, Table({"hot": 1}).at("hot"):
        gpmi.Real(9.0, 2.0)
    assert caught.value.place == ("hot",) and caught.value.code == "ends-in-wrong-order"
    assert caught.value.values == {"low": 9.0, "high": 2.0} and str(caught.value).startswith("Real has lo = 9.0")


def test_an_error_without_a_code_stays_an_ordinary_one() -> None:
    assert type(reworded(ValueError("a"), "b")) is ValueError and type(reworded(TypeError("a"), "b")) is TypeError
    error = RefusedType("a", "not-whole", name="n", value=1.5)
    outer = reworded(error, "x: a", name="other", parameter="n")
    assert type(outer) is RefusedType and str(outer) == "x: a" and outer.code == "not-whole"
    assert outer.values == {"parameter": "n", "name": "n", "value": 1.5}  # what is nearest to the value counts


# Values


class Odd:
    def __repr__(self) -> str:
        raise RuntimeError


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.complex_numbers()
    | st.dates() | st.builds(Odd) | st.floats(width=32).map(np.float32) | st.integers(0, 9).map(np.int64)
    | st.text(st.characters(categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.integers(), inner, max_size=3)
    | st.lists(inner, max_size=3).map(tuple) | st.frozensets(st.integers(), max_size=3),
    max_leaves=6,
)  # fmt: skip


@given(ANYTHING)
def test_any_value_becomes_one_that_json_has(value: Any) -> None:
    made = plain(value)
    assert json.loads(json.dumps(made, allow_nan=False, ensure_ascii=False).encode().decode()) == made


def test_plain_values_are_kept_and_others_shown() -> None:
    assert plain([1, 2.5, "a", None, True]) == [1, 2.5, "a", None, True]
    assert plain(np.float64(2.5)) == 2.5 and plain(np.array([1, 2])) == [1, 2] and plain(range(3)) == [0, 1, 2]
    assert plain(math.nan) == "nan" and plain(10**30) == str(10**30) and plain(1j) == "1j"
    assert len(plain("a" * 10_000)) == 500 and len(plain(10**400)) <= 500


# Copies and processes


def same(left: Refused, right: Refused) -> bool:
    def parts(error: Refused) -> tuple[Any, ...]:
        return type(error), str(error), error.args, error.code, error.values

    return parts(left) == parts(right)


@given(st.text(), st.sampled_from(list(CODES)), st.dictionaries(st.text(st.characters(categories=["Ll"])), ANYTHING))
def test_copies_are_equal(sentence: str, code: str, values: dict[str, Any]) -> None:
    for kind in (RefusedValue, RefusedType):
        error = kind(sentence, code, **values)
        for copied in (copy.copy(error), copy.deepcopy(error), *(pickle.loads(pickle.dumps(error, k)) for k in (2, 5))):
            assert same(error, copied)


def test_an_error_of_a_table_is_copied_with_its_place() -> None:
    error = TableError("a", ("hot", 1)).like(RefusedValue("b", "not-positive", name="step", value=0))
    copied = pickle.loads(pickle.dumps(error))
    assert same(error, copied) and copied.place == ("hot", 1)


def test_other_settings_are_copied_with_the_difference(tmp_path: Path) -> None:
    gpmi.study(tmp_path / "study.db", space={"a": (0.0, 1.0)}).close()
    with pytest.raises(ValueError, match="space is another one: a is ") as caught:
        gpmi.study(tmp_path / "study.db", space={"a": (0.0, 2.0)})
    copied = pickle.loads(pickle.dumps(caught.value))
    assert str(copied) == str(caught.value) and copied.difference == "a is [0, 2], but that of the study is [0, 1]"


def test_a_line_of_a_file_is_refused_with_its_code(tmp_path: Path) -> None:
    table = tmp_path / "trials.csv"
    table.write_text("a,y\n0.5,1.0\n2.0,1.0\n")
    error = refused(lambda: exchange.read_trials(table, {"a": (0.0, 1.0)}))
    assert str(error).startswith(f"{table}:3: a is 2.0") and error.code == "outside" and error.values["line"] == 3


def test_a_note_is_copied_with_the_error() -> None:
    error = RefusedValue("a", "not-positive", name="step", value=0)
    error.add_note("there")
    assert pickle.loads(pickle.dumps(error)).__notes__ == ["there"]


def _refuse(code: str) -> Any:
    return SAMPLES[code].call()


def test_another_process_hands_the_error_over_whole() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("forkserver")) as pool:
        error = refused(lambda: pool.submit(_refuse, "step-too-large").result())
    assert error.code == "step-too-large" and error.values == {"step": 500.0, "range": 70.0}


def refused_f(x: Any) -> float:
    gpmi.Real(9.0, 2.0)
    return 0.0


@pytest.mark.parametrize("options", [{"workers": 2}, {"timeout": 60.0}])
def test_a_refusal_inside_f_leaves_a_run_whole(options: dict[str, Any]) -> None:
    with pytest.raises((ValueError, RuntimeError), match="lo must be smaller than hi") as caught:
        gpmi.maximize(refused_f, [(0.0, 1.0)], budget=2, **options)
    assert getattr(caught.value, "code", "ends-in-wrong-order") == "ends-in-wrong-order"
