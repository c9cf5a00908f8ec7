"""Trials with a fidelity in tables and files: curves, levels and stopped trials come back as they were."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sample_fidelities import LEVELS, STEPS, levelwise, stepwise
from sample_runs import same

import gpmi
from gpmi.trials.dataframe import listing
from gpmi.trials.files import FIELDS, from_frame, read_trials, text_of, to_frame, trial_of, write_trials

GOALS = {"accuracy": "max", "seconds": None}
RUNS = {
    "steps": (stepwise, STEPS, None),
    "levels": (levelwise, LEVELS, None),
    "outputs": (lambda: stepwise(goals=GOALS), STEPS, GOALS),
}


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
@pytest.mark.parametrize("kind", RUNS)
def test_a_run_with_a_fidelity_is_read_to_the_last_bit_and_goes_on(kind: str, suffix: str, tmp_path: Path) -> None:
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    play, space, goals = RUNS[kind]
    opt = play()
    write_trials(opt, tmp_path / f"run{suffix}")
    read = read_trials(tmp_path / f"run{suffix}", space, goals)
    assert same(read, opt.trials)
    again = gpmi.Optimizer(space, seed=0, goals=goals).replay(read)
    assert same(again.trials, opt.trials)
    assert repr(again.ask()) == repr(opt.ask())


@pytest.mark.parametrize("kind", RUNS)
def test_both_frames_of_a_run_with_a_fidelity_can_be_read(kind: str) -> None:
    play, space, goals = RUNS[kind]
    opt = play()
    assert same(from_frame(to_frame(opt), space, goals), opt.trials)
    shown = from_frame(opt.to_dataframe(), space, goals)
    assert [t.curve for t in shown] == [t.curve for t in opt.trials]
    assert [t.status for t in shown] == [t.status for t in opt.trials]


def test_a_curve_is_one_json_cell_of_steps_values_and_places() -> None:
    opt = gpmi.Optimizer(STEPS, seed=0)
    opt.ask()
    opt.report(0, 1, 0.25)
    opt.report(0, 3, 0.5)
    (line,) = text_of(opt, ".jsonl").splitlines()
    assert json.loads(line)["curve"] == [[1, 0.25, 0], [3, 0.5, 1]]
    assert opt.to_dataframe()["curve"][0][-1].step == 3


def test_tables_without_a_fidelity_have_no_column_about_one() -> None:
    opt = gpmi.Optimizer({"curve": (0.0, 1.0), "trust": (0.0, 1.0)}, seed=0)
    opt.tell(opt.ask(), 1.0)
    assert text_of(opt, ".csv").splitlines()[0].split(",") == ["number", "curve", "trust", *FIELDS]
    assert not {"curve", "trust"} & {*FIELDS}
    assert list(opt.to_dataframe().columns[:2]) == ["curve", "trust"]


def test_a_parameter_named_curve_gives_way_where_there_are_curves(tmp_path: Path) -> None:
    space: Any = {"curve": (0.0, 1.0), "epoch": gpmi.Fidelity(1, 9)}
    opt = gpmi.Optimizer(space, seed=0)
    opt.ask()
    opt.report(0, 1, 0.25)
    write_trials(opt, tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text().startswith("number,x.curve,epoch,y")
    assert same(read_trials(tmp_path / "a.csv", space), opt.trials)


@pytest.mark.parametrize(
    ("curve", "problem"),
    [
        ("soon", "give a list of"),
        ([1, 2], "give a list of"),
        ([[1, 0.5]], "give a list of"),
        ([[0, 0.5, 0]], "step is 0"),
        ([[2, 0.5, 0], [1, 0.5, 1]], "step 1 after 2"),
        ([[1, "x", 0]], "'x'"),
        ([[1, 0.5, -1]], "order is -1"),
        ([[1, {"accuracy": "x"}, 0]], "accuracy is 'x'"),
    ],
)
def test_a_curve_that_cannot_be_meant_is_refused(curve: Any, problem: str) -> None:
    space = gpmi.Optimizer(STEPS).space
    with pytest.raises((TypeError, ValueError), match=problem):
        trial_of({"rate": 0.1, "width": 0.1, "epoch": 52, "status": "pending", "curve": curve}, space, 0)


def test_a_table_of_somebody_else_names_its_levels(tmp_path: Path) -> None:
    (tmp_path / "known.csv").write_text("a,b,mesh,y\n0.1,0.2,coarse,3\n0.1,0.2,1,2\n")
    read = read_trials(tmp_path / "known.csv", LEVELS)
    assert [trial.x["mesh"] for trial in read] == ["coarse", "1"]  # the level is a text, not the number 1


def test_lists_and_summaries_say_what_was_stopped_and_where() -> None:
    opt = stepwise()
    stopped = [trial for trial in opt.trials if trial.status == "stopped"]
    assert stopped and f", {len(stopped)} stopped" in str(opt)
    table = listing(opt.trials, opt.space).splitlines()
    assert f"stopped at {stopped[0].curve[-1].step}" in table[1 + stopped[0].number]
    assert "pending at 3" in table[-1]


def test_a_summary_and_a_notebook_speak_of_the_target() -> None:
    opt = levelwise()
    reached = [trial for trial in opt.trials if trial.status == "told" and trial.x["mesh"] == "1"]
    assert f"20 told ({len(reached)} at mesh 1)" in str(opt)
    shown = opt._repr_html_().partition("<thead>")[2]
    assert "coarse" not in shown and "medium" not in shown
    assert f'<td style="text-align: left">{opt.best.number}</td>' in shown  # type: ignore[union-attr]
