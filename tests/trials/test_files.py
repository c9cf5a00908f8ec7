"""Trials to and from files and tables: nothing is lost on the way, and a run goes on from what was read."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_runs import HARD, SPACES, played, same, value_of

import gpmi
from gpmi.trials.files import from_frame, read_trials, to_frame, write_trials

PARQUET = pytest.param(".parquet", id="parquet")


@pytest.mark.parametrize("kind", SPACES)
@pytest.mark.parametrize("suffix", [".csv", ".jsonl", PARQUET])
def test_what_is_written_is_read_to_the_last_bit_and_the_run_goes_on(kind: str, suffix: str, tmp_path: Path) -> None:
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    opt, path = played(SPACES[kind]), tmp_path / f"run{suffix}"
    write_trials(opt, path)
    read = read_trials(path, SPACES[kind])
    assert same(read, opt.trials)
    assert [path.name for path in tmp_path.iterdir()] == [f"run{suffix}"]
    again = gpmi.Optimizer(SPACES[kind], seed=1).replay(read)
    assert repr(again.ask()) == repr(opt.ask())


@pytest.mark.parametrize("kind", SPACES)
def test_a_frame_and_back_is_the_same(kind: str) -> None:
    opt = played(SPACES[kind])
    assert same(from_frame(to_frame(opt), SPACES[kind]), opt.trials)


@pytest.mark.parametrize("kind", ["box", "table"])
def test_the_table_that_is_shown_can_be_read(kind: str) -> None:
    space = SPACES[kind].drop(columns="order") if kind == "table" else SPACES[kind]
    run = gpmi.maximize(value_of, space, budget=5, seed=0)
    read = from_frame(run.to_dataframe(), space)
    assert [t.y for t in read] == [t.y for t in run.trials]
    assert [repr(t.x) for t in read] == [repr(t.x) for t in run.trials]
    assert [t.label for t in read] == [t.label for t in run.trials]
    opt = gpmi.Optimizer(space, seed=0)
    opt.tell(opt.ask(fixed={"b": "1"} if kind == "table" else {1: 0.5}), 1.0)
    (trial,) = from_frame(opt.to_dataframe(), space)
    assert trial.fixed == opt.trials[0].fixed is not None


def test_every_hard_word_comes_back_as_the_option_that_it_was(tmp_path: Path) -> None:
    opt = gpmi.Optimizer({"kind": list(HARD), "x": (0.0, 1.0)}, seed=0)
    for word in HARD:
        opt.tell({"kind": word, "x": 0.1}, 1.0)
    for suffix in (".csv", ".jsonl"):
        write_trials(opt, tmp_path / f"run{suffix}")
        read = read_trials(tmp_path / f"run{suffix}", opt.space)
        assert [repr(trial.x["kind"]) for trial in read] == [repr(word) for word in HARD]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e90, max_value=1e90), max_size=5))
def test_any_value_survives(values: list[float]) -> None:
    from tempfile import TemporaryDirectory

    opt = gpmi.Optimizer([(0.0, 1.0)], seed=0)
    for value in values:
        opt.tell([0.5], value)
    with TemporaryDirectory() as folder:
        for suffix in (".csv", ".jsonl"):
            write_trials(opt, Path(folder, f"a{suffix}"))
            assert same(read_trials(Path(folder, f"a{suffix}"), [(0.0, 1.0)]), opt.trials)


def test_a_table_of_somebody_else_needs_parameters_and_y(tmp_path: Path) -> None:
    path = tmp_path / "known.csv"
    path.write_text("kind,rate,y\n01,1e-2,3\ntanh,0.001,\n")
    space = {"rate": gpmi.Real(1e-4, 1.0, log=True), "kind": ["01", "tanh"]}
    first, second = read_trials(path, space)
    assert (first.x, first.y, first.status, first.origin) == ({"rate": 0.01, "kind": "01"}, 3.0, "told", "user")
    assert (second.number, second.y, second.status) == (1, None, "pending")
    opt = gpmi.Optimizer(space, seed=0)
    opt.tell_all([first])
    assert len(opt.trials) == 1


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.txt", "", "give a file that ends in .csv, .jsonl, .parquet"),
        ("a.csv", "x0,y\n0.5,abc\n", "a.csv:2: y is 'abc'"),
        ("a.csv", "x0,y\n0.5,1\n7,1\n", "a.csv:3: x[0] is 7, outside [0.0, 1.0]"),
        ("a.csv", "x0,y\n0.5\n", "line 2 has more or fewer cells"),
        ("a.csv", "x0,y\n0.5,1,2\n", "line 2 has more or fewer cells"),
        ("a.csv", 'x0,y\n"0.5,1\n', "is not CSV"),
        ("a.csv", "x1,y\n0.5,1\n", "a.csv:2: there is a column 'x1', which is not a parameter; give x0, y"),
        ("a.csv", "y\n1\n", "a.csv:2: there is no column 'x0'"),
        ("a.csv", "x0,y,status\n0.5,1,done\n", "a.csv:2: status is 'done'; give one of"),
        ("a.csv", "x0,y,number\n0.5,1,-1\n", "a.csv:2: number is -1"),
        ("a.csv", "x0,y,constraints\n0.5,1,3\n", "a.csv:2: constraints is 3"),
        ("a.jsonl", '{"x0": 0.5, "y": 1}\n{"x0": 0.', "a.jsonl:2: it is not JSON; was the file cut off?"),
        ("a.jsonl", "3\n", "a.jsonl:1: it is 3; give a JSON object"),
        ("a.jsonl", '{"x0": {}, "y": 1}\n', "a.jsonl:1: x[0] is {}"),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused_at_its_line(name: str, text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError) as refused:
        read_trials(tmp_path / name, [(0.0, 1.0)])
    assert words in str(refused.value)


def test_options_that_no_file_can_hold_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    opt = gpmi.Optimizer({"f": [min, max]}, seed=0)
    opt.tell({"f": min}, 1.0)
    with pytest.raises(TypeError, match="a file holds strings"):
        write_trials(opt, tmp_path / "a.csv")
    assert not list(tmp_path.iterdir())


def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opt, path = played(SPACES["box"]), tmp_path / "run.csv"
    path.write_text("before")

    def full(*arguments: Any, **more: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(csv, "writer", full)
    with pytest.raises(OSError):
        write_trials(opt, path)
    assert path.read_text() == "before" and len(list(tmp_path.iterdir())) == 1


def test_a_result_is_written_like_an_optimizer(tmp_path: Path) -> None:
    run = gpmi.maximize(value_of, SPACES["box"], budget=5, seed=0)
    write_trials(run, tmp_path / "a.jsonl")
    read = read_trials(tmp_path / "a.jsonl", run.space)
    assert same(read, run.trials)
    more = gpmi.maximize(value_of, SPACES["box"], budget=2, seed=0, earlier=[replace(t) for t in read])
    assert len(more.trials) == 7


FORMULAS = ["=cmd|'/C calc'!A0", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", " =1", "a;=1", "＝1", "-", '"=1"', "-5"]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", PARQUET])
def test_no_text_of_a_csv_file_is_a_formula_and_all_come_back(suffix: str, tmp_path: Path) -> None:
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    space = {"=HYPERLINK(1)": FORMULAS, '"+2"': (0.0, 1.0), "plain": (-9.0, -1.0)}
    opt, path = gpmi.Optimizer(space, seed=0), tmp_path / f"run{suffix}"
    for text in FORMULAS:
        opt.tell({"=HYPERLINK(1)": text, '"+2"': 0.5, "plain": -3.0}, 1.0)
    opt.fail(opt.ask(), "=cmd|'/C calc'!A0")
    write_trials(opt, path)
    assert same(read_trials(path, space), opt.trials)
    if suffix == ".csv":
        for separator in ",;":
            with path.open(newline="", encoding="utf-8") as file:
                cells = [cell.strip() for row in csv.reader(file, delimiter=separator) for cell in row]
            formulas = [cell for cell in cells if cell.startswith(tuple("=+-@＝＋－＠"))]
            assert all(cell.split(",")[0].lstrip("-").replace(".", "").isdecimal() for cell in formulas)
