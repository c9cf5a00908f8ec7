"""Outputs in tables and files: a column for each, nothing is lost on the way, and a run goes on from what was read."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpmi
from gpmi.exchange import from_frame, read_trials, to_frame, write_trials
from gpmi.space import Space
from gpmi.trials.dataframe import COLUMNS, OutputColumns, frame, listing
from gpmi.trials.files import FIELDS, row_of, text_of, titles_of, trial_of
from gpmi.trials.named_goals import NamedGoals

SPACE: dict[str, Any] = {"heat": (20.0, 90.0), "kind": ["a", "b"]}
GOALS: dict[str, Any] = {"yield": "max", "cost": gpmi.Min(at_most=50.0), "purity": gpmi.AtLeast(0.5), "smell": None}
SINGLE: dict[str, Any] = {"yield": "max", "purity": gpmi.AtLeast(0.5)}


def outputs_at(x: Any) -> dict[str, float]:
    heat, kind = float(x["heat"]), x["kind"] == "a"
    return {"yield": heat / 3.0 + kind, "cost": heat**1.1 / 7.0, "purity": 1.1 - heat / 90.0, "smell": heat % 7.0}


def played(goals: dict[str, Any] = GOALS, seed: int = 1) -> gpmi.Optimizer:
    """A run in which everything happens that can happen to a trial with outputs."""
    opt = gpmi.Optimizer(SPACE, goals=goals, seed=seed)
    late = []
    for t in range(9):
        x = opt.ask()
        told = {name: value for name, value in outputs_at(x).items() if name in goals}
        if t == 3:
            opt.fail(x, "the pump stopped")
        elif t == 4:
            opt.reject(x)
        elif t in (5, 6):
            del told["purity"]
            late.append(opt.tell(x, told, noise_var={"yield": 0.1} if t == 5 else 0.25, repeats=t - 4))
        else:
            opt.tell(x, told)
    opt.tell(late[0], {"purity": 0.75}, noise_var=1.0 / 3.0)
    told_trials = [trial for trial in opt.trials if trial.status == "told"]
    opt.correct(told_trials[0], {"yield": 1.0 / 3.0}, noise_var=0.5)
    opt.retract(told_trials[1])
    opt.ask()
    return opt


def same(a: Any, b: Any) -> bool:
    """Equal in every field, to the last bit; the order in which outputs were told does not count."""

    def plain(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return value.tolist()
        return sorted(value.items()) if hasattr(value, "items") else value

    def rows(trials: Any) -> str:
        return repr([[plain(getattr(trial, field.name)) for field in fields(gpmi.Trial)] for trial in trials])

    return rows(a) == rows(b)


# Both ways


@pytest.mark.parametrize("goals", [GOALS, SINGLE], ids=["several", "single"])
@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_what_is_written_is_read_to_the_last_bit_and_the_run_goes_on(
    goals: dict[str, Any], suffix: str, tmp_path: Path
) -> None:
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    opt, path = played(goals), tmp_path / f"run{suffix}"
    write_trials(opt, path)
    read = read_trials(path, SPACE, goals)
    assert same(read, opt.trials)
    again = gpmi.Optimizer(SPACE, goals=goals, seed=1).replay(read)
    assert same(again.trials, opt.trials)
    assert repr(again.ask()) == repr(opt.ask())


@pytest.mark.parametrize("goals", [GOALS, SINGLE], ids=["several", "single"])
def test_a_frame_and_back_is_the_same(goals: dict[str, Any]) -> None:
    opt = played(goals)
    assert same(from_frame(to_frame(opt), SPACE, goals), opt.trials)


def test_a_result_and_a_study_are_written_like_an_optimizer(tmp_path: Path) -> None:
    run = gpmi.optimize(outputs_at, SPACE, goals=GOALS, budget=7, seed=0)
    write_trials(run, tmp_path / "run.csv")
    assert same(read_trials(tmp_path / "run.csv", SPACE, GOALS), run.trials)
    pytest.importorskip("sqlalchemy")
    with gpmi.study(tmp_path / "run.db", space=SPACE, goals=GOALS, seed=0) as study:
        study.tell(study.ask(), {"yield": 1.0, "purity": 0.25})
        write_trials(study, tmp_path / "study.jsonl")
        assert same(read_trials(tmp_path / "study.jsonl", SPACE, GOALS), study.trials)
        assert study.to_dataframe()["purity"].tolist() == [0.25]


NUMBER = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e90, max_value=1e90)


@given(st.lists(st.dictionaries(st.sampled_from(list(GOALS)), NUMBER, min_size=1), max_size=4))
@settings(deadline=None)
def test_any_outputs_survive(told: list[dict[str, float]]) -> None:
    from tempfile import TemporaryDirectory

    opt = gpmi.Optimizer([(0.0, 1.0)], goals=GOALS, seed=0)
    for i, outputs in enumerate(told):
        opt.tell([i / 4.0], outputs)
    with TemporaryDirectory() as folder:
        for suffix in (".csv", ".jsonl"):
            write_trials(opt, Path(folder, f"a{suffix}"))
            assert same(read_trials(Path(folder, f"a{suffix}"), [(0.0, 1.0)], GOALS), opt.trials)


def test_a_single_row_and_back_is_the_same() -> None:
    opt = played()
    space, goals = Space.of(SPACE), NamedGoals.of(GOALS)
    rows = [json.loads(json.dumps(row_of(trial, space, goals))) for trial in opt.trials]
    assert same([trial_of(row, space, 0, goals) for row in rows], opt.trials)


# Columns


def test_a_run_without_goals_keeps_its_columns() -> None:
    opt = gpmi.Optimizer(SPACE, seed=0)
    opt.tell(opt.ask(), 1.0)
    head = text_of(opt, ".csv").splitlines()[0].split(",")
    assert head == ["number", *SPACE, *FIELDS] == list(to_frame(opt).columns)
    assert list(opt.to_dataframe().columns) == [*SPACE, *COLUMNS]
    assert listing(opt.trials, opt.space).splitlines()[0].split() == ["trial", "status", "y", *SPACE, "why"]


def test_every_output_has_a_column_and_the_others_are_there_where_a_trial_needs_them() -> None:
    opt = gpmi.Optimizer(SPACE, goals=GOALS, seed=0)
    first = opt.tell(opt.ask(), {"yield": 1.0, "purity": 0.75, "cost": 2.0})
    plain = ["yield", "cost", "purity", "smell"]
    assert text_of(opt, ".csv").splitlines()[0].split(",") == ["number", *SPACE, *plain, *FIELDS]
    opt.tell(opt.ask(), {"yield": 2.0}, noise_var=0.5, repeats=3)
    opt.correct(first, {"cost": 3.0})
    head = text_of(opt, ".csv").splitlines()[0].split(",")[3 : -len(FIELDS)]
    assert head == [
        *("yield", "yield noise_var", "yield repeats", "yield before", "cost", "cost before"),
        *("purity", "purity before", "smell", "unmet"),
    ]
    table = opt.to_dataframe()
    assert list(table.columns) == [*SPACE, *head, *COLUMNS] == [*SPACE, *to_frame(opt).columns[3:13], *COLUMNS]
    assert table["yield"].tolist() == [1.0, 2.0] and table["cost before"].tolist()[0] == 2.0
    assert pd.isna(table["smell"]).all() and table["smell"].dtype == table["yield"].dtype == "float64"
    assert table["yield repeats"].tolist() == [pd.NA, 3] and table["unmet"].tolist() == [None, ["purity"]]


TRICKY = ("y", "number", "out.y", "out.out.y", "x0", "unmet", "y noise_var", "a", "a noise_var", "a before", "label")


@given(st.permutations(TRICKY), st.sets(st.sampled_from(("out.a", "out.label", "x.a", "out.x0", "out.unmet", "b"))))
def test_columns_have_names_of_their_own_whatever_the_order_of_the_goals(names: list[str], others: set[str]) -> None:
    parameters = ["x0", *sorted(others)]
    columns, usual = (OutputColumns.of(NamedGoals.of(dict.fromkeys(n, "max")), parameters) for n in (names, TRICKY))
    titles = list(columns)
    assert len(set(titles)) == len(titles) == 4 * len(TRICKY) + 1
    assert not {*titles} & {*parameters, "number", "trial", *FIELDS}
    assert set(columns.values.items()) == set(usual.values.items())
    assert set(columns.details.items()) == set(usual.details.items())


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_outputs_with_the_names_of_fields_and_parameters_come_back(suffix: str, tmp_path: Path) -> None:
    goals = {**dict.fromkeys(TRICKY, "max"), '"=1+1"': "min", "=2": None}
    opt = gpmi.Optimizer([(0.0, 1.0)], goals=goals, seed=0)
    told = {name: float(i) for i, name in enumerate(goals)}
    first = opt.tell([0.5], told, noise_var={"a": 0.5, "y": 0.25})
    opt.correct(first, {"a noise_var": -1.0})
    write_trials(opt, tmp_path / f"a{suffix}")
    assert same(read_trials(tmp_path / f"a{suffix}", [(0.0, 1.0)], goals), opt.trials)
    assert "=2" not in [cell for cell in (tmp_path / f"a{suffix}").read_text().split(",") if suffix == ".csv"]


def test_the_table_that_is_shown_can_be_read() -> None:
    run = gpmi.optimize(outputs_at, SPACE, goals=GOALS, budget=6, seed=0)
    read = from_frame(run.to_dataframe(), SPACE, GOALS)
    assert [(t.x, t.outputs, t.unmet) for t in read] == [(t.x, t.outputs, t.unmet) for t in run.trials]


# Tables of somebody else


def test_a_table_of_somebody_else_needs_parameters_and_outputs(tmp_path: Path) -> None:
    path = tmp_path / "known.csv"
    path.write_text("kind,heat,purity,yield,purity noise_var\na,30,0.25,71.5,0.01\nb,40,,70,\na,50,,,\n")
    first, second, third = read_trials(path, SPACE, GOALS)
    assert (first.status, first.origin, first.y) == ("told", "user", None)
    assert list(first.outputs.items()) == [("yield", 71.5), ("purity", 0.25)]
    assert (first.unmet, second.unmet, second.outputs) == (("purity",), ("purity",), {"yield": 70.0})
    assert first.output_noise_var == {"purity": 0.01} and third.status == "pending"
    opt = gpmi.Optimizer(SPACE, goals=GOALS, seed=0)
    opt.tell_all([first, second])
    assert [trial.outputs for trial in opt.trials] == [first.outputs, second.outputs]


def test_y_may_stand_for_the_only_objective(tmp_path: Path) -> None:
    before = gpmi.Optimizer(SPACE, seed=0)
    before.tell(before.ask(), 2.5, noise_var=0.25, repeats=3)
    write_trials(before, tmp_path / "before.csv")
    (trial,) = read_trials(tmp_path / "before.csv", SPACE, SINGLE)
    assert trial.outputs == {"yield": 2.5} and trial.unmet == ("purity",)
    assert (trial.y, trial.noise_var, trial.repeats) == (2.5, 0.25, 3)
    assert (trial.output_noise_var, trial.output_repeats) == ({"yield": 0.25}, {"yield": 3})


def test_limits_are_those_of_the_goals_that_are_given(tmp_path: Path) -> None:
    opt = gpmi.Optimizer(SPACE, goals=SINGLE, seed=0)
    opt.tell(opt.ask(), {"yield": 1.0, "purity": 0.6})
    write_trials(opt, tmp_path / "a.csv")
    (trial,) = read_trials(tmp_path / "a.csv", SPACE, {"yield": "max", "purity": gpmi.AtLeast(0.7)})
    assert trial.unmet == ("purity",) and opt.trials[0].unmet == ()


@pytest.mark.parametrize(
    ("goals", "text", "words"),
    [
        (
            GOALS,
            "yeild\n1",
            "there is a column 'yeild', which is neither a parameter nor an output; give heat, kind, y",
        ),
        (GOALS, "yield\nabc", "a.csv:2: yield is 'abc'; give one finite number"),
        (GOALS, "yield\ntrue", "a.csv:2: yield is True; give one finite number"),
        (GOALS, "yield\n1e999", "a.csv:2: yield is inf; give one finite number"),
        (GOALS, "yield\n1e150", "a.csv:2: yield is 1e+150, too large to square"),
        (GOALS, "yield,yield noise_var\n1,-2", "is -2; it is a variance"),
        (GOALS, "yield,yield repeats\n1,0", "is 0; give a whole number of at least 1"),
        (GOALS, "yield,yield before\n1,abc", "a.csv:2: yield is 'abc'"),
        (GOALS, "y\n1", "y is 1, but there are several objectives; give yield, cost, purity, smell"),
        (
            GOALS,
            "yield,noise_var\n1,0.5",
            "noise_var is 0.5, but it belongs to y; give yield noise_var, cost noise_var",
        ),
        (GOALS, "yield,repeats\n1,5", "repeats is 5, but it belongs to y; give yield repeats"),
        (GOALS, "yield,constraints\n1,[1]", "constraints is [1], but there are goals; give yield, cost, purity, smell"),
        (GOALS, "yield,status\n1,failed", "status is 'failed', but yield has a value; remove one"),
        (GOALS, "yield,status\n1,done", "status is 'done'; give one of"),
        (
            GOALS,
            "yield,status\n,told",
            "status is 'told', but no output has a value; give at least one of yield, cost, purity",
        ),
        (SINGLE, "yield,y\n1,2", "y is 2, but yield is 1; leave out y"),
        (None, "yield\n1", "there is a column 'yield', which is not a parameter; give heat, kind, y"),
    ],
)
def test_a_table_that_cannot_be_meant_is_refused_at_its_line(goals: Any, text: str, words: str, tmp_path: Path) -> None:
    head, row = text.split("\n")
    (tmp_path / "a.csv").write_text(f"heat,kind,{head}\n30,a,{row}\n")
    with pytest.raises(ValueError) as refused:
        read_trials(tmp_path / "a.csv", SPACE, goals)
    assert words in str(refused.value) and str(refused.value).startswith(str(tmp_path / "a.csv") + ":2: ")


def test_goals_that_are_none_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("heat,kind,yield\n30,a,1\n")
    with pytest.raises((TypeError, ValueError), match=r"'yield'.*'maximum'"):
        read_trials(tmp_path / "a.csv", SPACE, {"yield": "maximum"})
    with pytest.raises(ValueError, match="objective"):
        from_frame(pd.DataFrame({"heat": [1.0], "kind": ["a"]}), SPACE, {"purity": gpmi.AtLeast(1)})


def test_points_that_are_arrays_and_an_output_of_that_name() -> None:
    goals = {"x0": "max", "cost": "min"}
    opt = gpmi.Optimizer([(0.0, 1.0)], goals=goals, seed=0)
    opt.tell([0.25], {"x0": 3.0, "cost": 1.0})
    table = frame(opt.trials, opt.space, opt.goals)
    assert table[["x0", "out.x0", "cost"]].iloc[0].tolist() == [0.25, 3.0, 1.0]
    assert titles_of(opt.space) == {"x0": "x0"}
    assert same(from_frame(to_frame(opt), [(0.0, 1.0)], goals), opt.trials)
