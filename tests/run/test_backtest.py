"""Backtests: a table of past experiments says how many of them gpmi would have saved."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpmi
from gpmi.run.backtest import BacktestSetting, play
from gpmi.run.backtest_result import BacktestResult
from gpmi.run.past_experiments import PastExperiments, table_columns

QUICK = {"seeds": 3, "budget": 12}


def hill(n: int = 6) -> dict[str, list[Any]]:
    """A table with numbers and words, whose best row is (4, "b")."""
    rows = [(x, kind) for x in range(n) for kind in ("a", "b", "c")]
    return {
        "x": [x for x, _ in rows],
        "kind": [kind for _, kind in rows],
        "y": [10.0 - (x - 4) ** 2 + {"a": 0.0, "b": 2.0, "c": 1.0}[kind] for x, kind in rows],
    }


def replicated() -> dict[str, list[Any]]:
    """Every row of `hill` twice, one value above and one below."""
    table = hill()
    return {
        "x": table["x"] * 2,
        "kind": table["kind"] * 2,
        "y": [y + 0.5 for y in table["y"]] + [y - 0.5 for y in table["y"]],
    }


def same(a: BacktestResult, b: BacktestResult) -> bool:
    return json.dumps(a.to_json()) == json.dumps(b.to_json())


# What is counted


def test_a_run_is_what_an_optimizer_asks_on_the_table() -> None:
    past = PastExperiments.of(hill(), "y")
    rows = play(BacktestSetting(past, "max", 12, False), (7, 1))
    opt = gpmi.Optimizer(past.space, repeats=False, seed=7, budget=12)
    for row in rows:
        x = opt.ask()
        assert x == {"x": past.space.table[row]["x"], "kind": past.space.table[row]["kind"]}
        opt.tell(x, float(past.values[row][0]))
    assert len(set(rows)) == len(rows) and past.truth[rows[-1]] == 12.0  # it ends with the best row


def test_a_run_in_batches_asks_for_so_many_at_a_time() -> None:
    past = PastExperiments.of(hill(), "y")
    rows = play(BacktestSetting(past, "max", 12, False), (0, 4))
    opt = gpmi.Optimizer(past.space, repeats=False, seed=0, budget=12)
    asked = [x.label for x in opt.ask(4)]
    assert rows[:4] == asked and (len(rows) % 4 == 0 or len(rows) == 12)


def test_the_mean_curve_and_the_gain_are_those_of_the_runs() -> None:
    past = PastExperiments.of(hill(), "y")
    tried = [[0, 13, 1], [2, 3, 4, 13], [5, 6, 7, 8, 9, 10, 11, 12, 0, 1]]  # row 13 is the best
    assert past.truth[13] == 12.0 == past.truth.max()
    found = BacktestResult.of(past, "max", {1: tried, 2: tried}, seeds=[0, 1, 2], budget=10, as_done=True)
    best = [[*past.truth[:0], *np.maximum.accumulate(past.truth[rows])] for rows in tried]
    best = [[*own, *[own[-1]] * (10 - len(own))] for own in best]
    np.testing.assert_allclose(found.curves["gpmi"].mean, np.mean(best, axis=0))
    np.testing.assert_array_equal(found.curves["gpmi"].low, np.min(best, axis=0))  # all of fewer than five runs
    random = found.curves["random order"].mean[9]
    assert found.gain["gpmi"] == {10: pytest.approx((np.mean(best, axis=0)[9] - random) / (12.0 - random))}
    target = next(one for one in found.targets if one.name == "the best row")
    assert target.rows == 1
    assert target.needed["gpmi"] == (4, None)  # 2, 4 and never
    assert target.needed["gpmi, 2 at a time"].half == 4
    assert target.needed["random order"] == (9, 9.5)
    assert target.needed["as done"] == (14, 14.0)  # beyond the budget, because the table has it


def test_the_batch_that_finds_it_counts_whole() -> None:
    past = PastExperiments.of(hill(), "y")
    found = BacktestResult.of(past, "max", {1: [[0, 1, 13]], 5: [[0, 1, 13]]}, seeds=[0], budget=9, as_done=False)
    assert found.targets[-1].needed["gpmi"].half == 3
    assert found.targets[-1].needed["gpmi, 5 at a time"].half == 5
    assert "as done" not in found.curves


@pytest.mark.parametrize(
    ("ours", "budget", "end"),
    [
        (3, 18, "gpmi needs 3 experiments (half of the runs) and random order 9: it saves 6."),
        (1, 18, "gpmi needs 1 experiment (half of the runs) and random order 9: it saves 8."),
        (9, 18, "random order 9: it saves nothing."),
        (11, 18, "random order 9: it needs 2 more."),
        (None, 12, "gpmi needs more than 12 experiments (half of the runs) and random order 9: it saves nothing."),
        (None, 5, "random order 9: a larger budget shows how many it saves."),
    ],
)
def test_the_sentence_says_what_is_saved(ours: int | None, budget: int, end: str) -> None:
    past = PastExperiments.of(hill(), "y")
    others = [row for row in range(18) if row != 13]
    rows = others[:budget] if ours is None else [*others[: ours - 1], 13]
    found = BacktestResult.of(past, "max", {1: [rows]}, seeds=[0], budget=budget, as_done=False)
    assert found.sentence.startswith("To find the best row gpmi needs") and found.sentence.endswith(end)
    assert repr(found).endswith(found.sentence) and found.sentence in found._repr_html_()


@pytest.mark.parametrize(("n", "name", "rows"), [(20, "the best row", 1), (60, "5 %", 3), (300, "1 %", 3)])
def test_a_large_table_asks_for_one_of_the_best_rows(n: int, name: str, rows: int) -> None:
    past = PastExperiments.of({"x": list(range(n)), "y": [-abs(x - 3.3) for x in range(n)]}, "y")
    found = BacktestResult.of(past, "max", {1: [[0]]}, seeds=[0], budget=5, as_done=False)
    assert name in found.targets[-1].name and found.targets[-1].rows == rows
    assert "the best row" in {one.name for one in found.targets}


def test_gpmi_needs_fewer_experiments_than_a_random_order_on_a_hill() -> None:
    found = gpmi.backtest({**hill(20), "y": [-((x - 13) ** 2) for x in range(20) for _ in "abc"]}, "y", seeds=5)
    best = found.targets[-1].needed
    assert (best["gpmi"].half or 99) < (best["random order"].half or 0) / 1.5
    assert found.gain["gpmi"][10] > 0.3


@settings(max_examples=settings.default.max_examples // 10 or 1)  # type: ignore[union-attr]
@given(st.integers(0, 1000))
def test_minimising_is_maximising_the_negative(seed: int) -> None:
    table = {"x": list(range(12)), "y": np.random.default_rng(seed).normal(size=12).tolist()}
    large = gpmi.backtest(table, "y", seed=seed, seeds=2, budget=6)
    small = gpmi.backtest({**table, "y": [-y for y in table["y"]]}, "y", goal="min", seed=seed, seeds=2, budget=6)
    assert [one[1:] for one in small.targets] == [one[1:] for one in large.targets] and small.gain == large.gain
    for name, curve in large.curves.items():
        np.testing.assert_array_equal(small.curves[name].mean, -curve.mean)
        np.testing.assert_array_equal(small.curves[name].low, -curve.high)


# Determinism


def test_the_same_seeds_give_the_same_result_and_others_another_one() -> None:
    first = gpmi.backtest(replicated(), "y", batch=[3], **QUICK)
    assert same(first, gpmi.backtest(replicated(), "y", batch=3, **QUICK))
    assert not same(first, gpmi.backtest(replicated(), "y", batch=3, seed=50, **QUICK))


@pytest.mark.slow
def test_the_number_of_workers_does_not_matter() -> None:
    one = gpmi.backtest(replicated(), "y", batch=3, **QUICK)
    assert same(one, gpmi.backtest(replicated(), "y", batch=3, workers=2, **QUICK))


def die(setting: BacktestSetting, job: tuple[int, int]) -> list[int]:
    os._exit(1)


@pytest.mark.slow
def test_a_process_that_dies_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpmi.run.backtest.play", die)
    with pytest.raises(ChildProcessError, match=r"a process of the backtest died.*give workers=1"):
        gpmi.backtest(hill(), "y", workers=2, **QUICK)


def test_a_result_is_frozen_and_its_json_is_complete() -> None:
    found = gpmi.backtest(hill(), "y", as_done=True, batch=2, **QUICK)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.rows = 3  # type: ignore[misc]
    said = json.loads(json.dumps(found.to_json()))
    assert set(said["curves"]) == {"gpmi", "gpmi, 2 at a time", "random order", "as done"}
    assert all(len(curve["mean"]) == 12 for curve in said["curves"].values())
    assert said["sentence"] == found.sentence and said["optimum"] == 12.0 and said["rows"] == 18
    assert set(said["gain"]) == {"gpmi", "gpmi, 2 at a time"}


def test_a_small_budget_prints_no_table_of_values() -> None:
    text = repr(gpmi.backtest(hill(), "y", seeds=1, budget=4))
    assert "1 run of 4 experiments" in text and "after" not in text


def test_where_nothing_is_left_to_gain_there_is_no_gain() -> None:
    found = gpmi.backtest({"x": list(range(10)), "y": list(range(10))}, "y", seeds=1)
    assert found.budget == 10 and found.gain == {"gpmi": {}} and "-" in repr(found)


# Tables


def test_the_truth_of_replicates_is_their_mean_and_an_experiment_draws_one() -> None:
    past = PastExperiments.of(replicated(), "y")
    exact = PastExperiments.of(hill(), "y")
    np.testing.assert_allclose(past.truth, exact.truth)
    assert [event.kind for event in past.events] == ["replicates"] and "18 of 36 rows repeat" in past.events[0].message
    assert past.order.tolist() == list(range(18)) * 2
    told = list[float]()

    class Listening(gpmi.Optimizer):
        def tell(self, x: Any, y: Any, **options: Any) -> Any:
            told.append(y - exact.truth[x.label])
            return super().tell(x, y, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpmi.run.backtest.Optimizer", Listening)
        for seed in range(4):
            play(BacktestSetting(past, "max", 12, False), (seed, 1))
    assert set(np.round(told, 9)) == {0.5, -0.5}


def test_with_repeats_a_budget_may_exceed_the_rows() -> None:
    noisy = {"x": list(range(6)) * 3, "y": np.random.default_rng(0).normal(size=18).tolist()}
    assert gpmi.backtest(noisy, "y", repeats=True, budget=9, seeds=1).budget == 9
    with pytest.raises(ValueError, match="budget is 9, but the table has 6 different rows; give at most 6"):
        gpmi.backtest(noisy, "y", budget=9)


def test_rows_without_a_value_or_a_label_are_left_out_and_counted() -> None:
    table = hill()
    table["y"][0], table["kind"][5], table["x"][5], table["y"][7] = None, "", float("nan"), float("nan")
    past = PastExperiments.of(table, "y")
    assert len(past.values) == 15
    text = "3 of 18 rows have a cell without a value and are left out (1 in x, 1 in kind, 2 in y)"
    assert [event.message for event in past.events] == [text]


def test_a_frame_a_file_and_columns_are_the_same_table(tmp_path: Path) -> None:
    frame = pd.DataFrame(hill())
    path, tabs, parquet = tmp_path / "t.csv", tmp_path / "t.tsv", tmp_path / "t.parquet"
    frame.to_csv(path, index=False)
    frame.to_csv(tabs, index=False, sep="\t")
    frame.to_parquet(parquet)
    first = gpmi.backtest(hill(), "y", **QUICK)
    for table in (frame, path, str(path), tabs, parquet, {name: np.array(column) for name, column in hill().items()}):
        assert same(first, gpmi.backtest(table, "y", **QUICK))


def test_files_of_spreadsheets_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("\ufeffNa;°C;y\r\nNa;1,5;1\r\n;2,5;2,25\r\nNA;3,5;\r\n\r\n;;\r\n".encode())
    assert table_columns(path) == {"Na": ["Na", None, None], "°C": [1.5, 2.5, 3.5], "y": [1.0, 2.25, None]}
    path.write_text('a,b\n"1,5",x\n1_0,"two\nlines"\n')
    assert table_columns(path) == {"a": ["1,5", "1_0"], "b": ["x", "two\nlines"]}
    path.write_text("a,y,,\n1,2,,\n3,4,,\n")  # columns of a spreadsheet that were emptied
    assert table_columns(path) == {"a": [1.0, 3.0], "y": [2.0, 4.0]}
    monkeypatch.setattr(pd, "read_excel", lambda path: pd.DataFrame(hill()))
    assert table_columns("t.xlsx") == hill()


def test_columns_that_say_nothing_are_left_out_with_a_message() -> None:
    table = {**hill(), "lab": ["here"] * 18, "KIND": [kind.upper() for kind in hill()["kind"]]}
    past = PastExperiments.of(table, "y")
    assert past.space.names == ("x", "kind")
    assert [event.kind for event in past.events] == ["same everywhere", "same column"]
    assert "'KIND' tells the same as 'kind'" in past.events[1].message


def test_columns_are_ignored_by_name_or_pattern() -> None:
    table = {**hill(), "a_id": list("abcdefghijklmnopqr"), "b_id": list(range(18)), "[c]": list(range(18))}
    past = PastExperiments.of(table, "y", ["*_id", "[c]"])
    assert past.space.names == ("x", "kind") and past.events == ()
    counted = PastExperiments.of(table, "y", ["a_id", "[c]"]).events
    assert [event.kind for event in counted] == ["counted rows"] and "--ignore b_id" in counted[0].message


def test_dates_are_words() -> None:
    days = pd.to_datetime(["2026-01-01", "2026-01-02"] * 9)
    assert PastExperiments.of(pd.DataFrame(hill()).assign(day=days), "y").space.names == ("x", "kind", "day")


# Bad input


BAD: list[tuple[Any, dict[str, Any], str]] = [
    (hill(), {"value": "Y"}, "value is 'Y', but the table has no such column; did you mean 'y'"),
    (hill(), {"value": "yield"}, "no such column; there are 'x', 'kind', 'y'"),
    (hill(), {"value": 3}, "value is 3, but the table has no such column"),
    (hill(), {"value": "kind"}, "value is 'kind', a column that has 'a' in row 1; give numbers"),
    ({**hill(), "y": [*[1.0] * 17, float("inf")]}, {}, "has inf in row 18"),
    ({**hill(), "x": [float("inf"), *range(17)]}, {}, "column 'x' of the candidates is inf"),
    ({**hill(), "y": [True, *[1.0] * 17]}, {}, "value is 'y', a column that has True in row 1"),
    ({**hill(), "y": [1.0] * 18}, {}, "'y', a column that is 1 in all rows; give one that varies"),
    ({"x": [1, 2, 3, 4, 5] * 2, "y": [1.0] * 5 + [2.0] * 5}, {}, "whose mean is the same in all different rows"),
    ({"x": [1, 2, 3, 4], "y": [1.0, 2.0, 3.0, 4.0]}, {}, "has 4 different rows with a value.*at least 5"),
    ({"x": [], "y": []}, {}, "has 0 different rows"),
    ({"y": [1.0, 2.0]}, {}, "no column beside 'y'"),
    (hill(), {"ignore": ["x", "kind"]}, "no column beside 'y'"),
    (hill(), {"ignore": ["knd"]}, "ignore is 'knd', but the table has no such column; did you mean 'kind'"),
    (hill(), {"ignore": ["y"]}, "ignore has 'y', which is the column of the values"),
    (hill(), {"ignore": "kind"}, "ignore is 'kind'; give a list"),
    ({**hill(), "my id": list("abcdefghijklmnopqr")}, {}, "18 different words in 18 rows.*--ignore 'my id'"),
    (hill(), {"goal": "most"}, "goal is 'most'; give one of 'max', 'min'"),
    (hill(), {"batch": 0}, "batch is 0"),
    (hill(), {"batch": "5"}, "batch is '5'"),
    (hill(), {"budget": 0}, "budget is 0"),
    (hill(), {"seeds": 0}, "seeds is 0"),
    (hill(), {"workers": 0}, "workers is 0"),
    (hill(), {"n_trials": 3}, "n_trials is not an argument of backtest; did you mean budget="),
    ({**hill(), "x": [1]}, {}, "give the same number in each"),
    (3, {}, "table is 3; give the path of a file, a DataFrame, or a dict of columns"),
    ("table.pdf", {}, "table is 'table.pdf'; give a file that ends in .csv"),
    (pd.DataFrame([[1, 2, 3]], columns=["x", "x", "y"]), {}, "two columns 'x'"),
]


@pytest.mark.parametrize(("table", "options", "message"), BAD)
def test_bad_input_names_the_argument_the_value_and_the_remedy(table: Any, options: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        gpmi.backtest(table, **{"value": "y", **options})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"x,,y\n1,2,3\n", "a column of the table has no name"),
        (b"x,y\n1\n", "row 2 .* has 1 cells, but the first has 2; fix the row"),
        (b'x,y\n"1,2\n', "is not CSV"),
        (b"x,y\n1,2\n2,3\n3,<5\n", "value is 'y', a column that has '<5' in row 3; give numbers"),
        (b",\n,\n", "value is 'y', but the table has no such column; it has no columns"),
        (b"x,\xb0C\n1,2\n", "is not UTF-8; save it as CSV in UTF-8"),
    ],
)
def test_a_bad_file_is_refused(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        gpmi.backtest(path, "y")


def test_a_spreadsheet_that_cannot_be_read_has_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(b"no parquet")
    with pytest.raises(ValueError, match=r"cannot be read .*; save it as CSV"):
        gpmi.backtest(path, "y")
    with pytest.raises(FileNotFoundError):
        gpmi.backtest(tmp_path / "none.parquet", "y")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install pandas openpyxl, or save the table as CSV"):
        gpmi.backtest(tmp_path / "t.xlsx", "y")


# Figures


def test_the_figure_has_every_order_and_the_best_row() -> None:
    found = gpmi.backtest(hill(), "y", as_done=True, batch=2, **QUICK)
    (ax,) = found.plot().axes
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["best row", "gpmi", "gpmi, 2 at a time", "random order", "as done"]
    assert ax.get_ylabel() == "largest y so far"
    np.testing.assert_array_equal(ax.get_lines()[1].get_ydata(), found.curves["gpmi"].mean)
    assert gpmi.plots.backtest(found, ax=ax) is ax.get_figure()
    with pytest.raises(TypeError, match=r"source is 3; give the result of gpmi\.backtest"):
        gpmi.plots.backtest(3)
