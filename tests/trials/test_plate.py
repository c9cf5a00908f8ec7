"""Plates: every point has one well, in the order of reading, and no cell is run as a formula."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpmi


@given(st.integers(1, 30), st.integers(1, 6), st.integers(5, 40))
def test_every_point_has_one_well_in_the_order_of_reading(n: int, rows: int, columns: int) -> None:
    if n > rows * columns:
        with pytest.raises(ValueError, match=f"{rows * columns} wells"):
            gpmi.plate([{"a": i} for i in range(n)], rows, columns)
        return
    made = gpmi.plate([{"a": i} for i in range(n)], rows, columns)
    assert len(set(made.wells)) == len(made) == n
    expected = [f"{chr(65 + i // columns)}{i % columns + 1}" for i in range(n)]
    assert list(made.wells) == expected and [point["a"] for _, point in made] == list(range(n))


def test_what_all_wells_share_is_said_once() -> None:
    made = gpmi.plate([{"t": 60, "base": 1.5}, {"t": 60, "base": 2.0}])
    assert made.shared == {"t": 60} and made.own == ({"base": 1.5}, {"base": 2.0}) and made["A2"]["base"] == 2.0
    assert str(made).splitlines()[0] == "all wells: t 60" and str(made).count("60") == 1
    assert "all wells: t 60" in made._repr_html_() and made._repr_html_().count("<td>") == 12
    with pytest.raises(KeyError, match="A1 to A2"):
        made["H12"]


def test_a_plate_is_written_to_csv_in_full(tmp_path: Path) -> None:
    opt = gpmi.Optimizer({"t": (20.0, 90.0), "k": ["=1+1", "b;-2", "plain"]}, seed=0)
    opt.ask(3)
    made = gpmi.plate(opt.pending)
    made.to_csv(tmp_path / "plate.csv")
    with (tmp_path / "plate.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["well"] for row in rows] == ["A1", "A2", "A3"] and [row["trial"] for row in rows] == ["0", "1", "2"]
    assert [float(row["t"]) for row in rows] == [trial.x["t"] for trial in opt.pending]
    for row, trial in zip(rows, opt.pending, strict=True):
        assert row["k"] == trial.x["k"] if trial.x["k"] == "plain" else row["k"].startswith('"')


def test_names_and_texts_are_escaped() -> None:
    made = gpmi.plate([{"=cmd": "<b>", "a": 1}, {"=cmd": "x", "a": 1}])
    assert "&lt;b&gt;" in made._repr_html_() and "<td><b>" not in made._repr_html_()
    assert made.csv_text().splitlines()[0] == 'well,"""=cmd""",a'


def test_points_of_a_box_have_names() -> None:
    assert gpmi.plate([np.array([0.25, 1.0])])["A1"] == {"x0": 0.25, "x1": 1.0}
    assert gpmi.plate([{"a": 1}] * 27, rows=27, columns=1).wells[-1] == "AA1"


@pytest.mark.parametrize(
    ("points", "options", "words"),
    [
        *[([], {}, "points has no point"), ({"a": 1}, {}, "points is"), ([3], {}, "no point")],
        *[([{"a": 1}], {"rows": 0}, "rows"), ([{"a": 1}], {"columns": 99}, "columns")],
    ],
)
def test_what_is_no_plate_is_refused(points: Any, options: Any, words: str) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        gpmi.plate(points, **options)
    assert words in str(caught.value)
