"""What is printed of a run with goals: the front, the best of each objective, what is infeasible or missing."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpmi
from gpmi.policies.front import non_dominated
from gpmi.trials.dataframe import FRONT, WIDE, front_listing, listing
from gpmi.trials.goal_summary import along_front, missing_outputs, told_front
from gpmi.trials.named_goals import NamedGoals

SPACE: dict[str, Any] = {"heat": (0.0, 100.0), "kind": ["a", "b"]}
GOALS: dict[str, Any] = {
    "yield": gpmi.Max(at_least=0.0),
    "cost": "min",
    "size": gpmi.Match(5.0, within=4.0),
    "purity": gpmi.AtLeast(0.5),
    "smell": None,
}
TWO: dict[str, Any] = {"yield": "max", "cost": "min"}


def told(goals: dict[str, Any], *outputs: dict[str, float]) -> gpmi.Optimizer:
    opt = gpmi.Optimizer(SPACE, goals=goals, seed=0)
    for i, one in enumerate(outputs):
        opt.tell({"heat": float(i), "kind": "a"}, one)
    return opt


def example() -> gpmi.Optimizer:
    """Trials 0, 1 and 2 are on the front, 3 is worse, 4 is infeasible, 5 not acceptable, 6 waits, 7 is pending."""
    return told(
        GOALS,
        {"yield": 9.0, "cost": 4.0, "size": 7.0, "purity": 0.9},
        {"yield": 5.0, "cost": 1.0, "size": 3.0, "purity": 0.9},
        {"yield": 7.0, "cost": 3.0, "size": 4.5, "purity": 0.5, "smell": 2.0},
        {"yield": 6.0, "cost": 3.5, "size": 7.0, "purity": 0.9},
        {"yield": 99.0, "cost": 0.0, "size": 5.0, "purity": 0.4},
        {"yield": 99.0, "cost": 0.0, "size": 0.5, "purity": 0.9},
        {"yield": 99.0, "cost": 0.0, "size": 5.0},
    )


def lines_of(text: str) -> dict[str, str]:
    return dict(re.split(r" {2,}", line, maxsplit=1) for line in text.splitlines() if not line.startswith(" "))


def cells(row: Any) -> list[str]:
    return [cell.text or "" for cell in row]


# The front of told values


@given(st.lists(st.tuples(*[st.integers(-3, 3)] * 3), min_size=1, max_size=25))
def test_the_front_of_told_values_is_what_no_trial_dominates(values: list[tuple[int, ...]]) -> None:
    goals = {"up": "max", "down": "min", "close": gpmi.Match(0.0, within=10.0)}
    opt = told(goals, *({"up": a, "down": b, "close": c} for a, b, c in values))
    z = np.array([[a, -b, -abs(c)] for a, b, c in values], dtype=float)
    expected = np.flatnonzero(non_dominated(z))
    assert [trial.number for trial in told_front(opt.trials, NamedGoals.of(goals), opt.space)] == expected.tolist()


def test_the_front_has_one_trial_of_each_point_and_only_feasible_acceptable_ones() -> None:
    opt = example()
    assert [trial.number for trial in opt.shown_front()] == [0, 1, 2]
    opt.tell({"heat": 0.0, "kind": "a"}, {"yield": 9.0, "cost": 4.0, "size": 7.0, "purity": 0.9})
    assert [trial.number for trial in opt.shown_front()] == [0, 1, 2]


def test_without_noise_it_is_the_front_of_the_model() -> None:
    run = gpmi.optimize(lambda x: {"yield": x[0], "cost": x[0] ** 2}, [(0.0, 1.0)], goals=TWO, budget=9, seed=0)
    assert run.goals is not None
    assert told_front(run.trials, run.goals, run.space) == tuple(sorted(run.front, key=lambda t: t.number))


def test_a_part_of_a_front_has_both_ends() -> None:
    opt = told(TWO, *({"yield": float(i), "cost": float(i)} for i in range(30)))
    assert opt.goals is not None
    some = along_front(opt.shown_front(), opt.goals, 8)
    values = [trial.outputs["yield"] for trial in some]
    assert len(some) == 8 and (values[0], values[-1]) == (29.0, 0.0) and values == sorted(values, reverse=True)
    assert len(along_front(opt.shown_front(), opt.goals)) == 30


# Lines


def test_several_objectives_show_the_front_and_the_best_of_each() -> None:
    opt = example()
    opt.ask()
    shown = lines_of(repr(opt))
    assert shown["goals"].startswith(
        "yield (max, at least 0), cost (min), size (match 5 within 4), purity (at least 0.5)"
    )
    assert shown["front"] == "3 of 7 trials, by the values told"
    assert (shown["largest yield"], shown["smallest cost"]) == ("9 in trial 0", "1 in trial 1")
    assert shown["closest size"] == "4.5 in trial 2 (target 5)"
    assert shown["trials"] == "7 told, 1 pending, 0 failed, 1 infeasible (purity)"
    assert shown["waiting"] == "trial 6 for purity"
    assert all(len(line) <= 120 for line in repr(opt).splitlines())


def test_a_result_shows_the_front_of_the_model() -> None:
    def f(x: Any) -> dict[str, float]:
        return {"yield": x["heat"], "cost": x["heat"] ** 1.5, "purity": 0.9 - x["heat"] / 150.0}

    run = gpmi.optimize(f, SPACE, goals={**TWO, "purity": gpmi.AtLeast(0.5)}, budget=9, seed=0)
    shown = lines_of(repr(run))
    infeasible = sum(not trial.feasible for trial in run.trials)
    assert infeasible and shown["evaluations"] == f"9, of which {infeasible} infeasible (purity)"
    assert shown["front"] == f"{len(run.front)} of 9 trials" and "recommended" not in shown
    best = max(run.front, key=lambda trial: trial.outputs["yield"])
    assert shown["largest yield"] == f"{best.outputs['yield']:.6g} in trial {best.number}"
    quick = gpmi.Result(**{**vars(run), "front_analysis": None, "ledger": None})  # as without a model
    assert lines_of(repr(quick))["front"].endswith("by the values told")


def test_a_single_objective_has_the_name_of_its_output() -> None:
    goals = {"cost": "min", "purity": gpmi.AtLeast(0.5), "width": gpmi.AtMost(2.0)}
    opt = told(
        goals,
        {"cost": 3.0, "purity": 0.9, "width": 1.0},
        {"cost": 1.0, "purity": 0.4, "width": 3.0},
        {"cost": 2.0, "purity": 0.4, "width": 1.0},
        {"purity": 0.9},
        {"cost": 0.5, "width": 1.0},
    )
    shown = lines_of(repr(opt))
    assert shown["smallest feasible cost"] == "3" and shown["at x"] == "{'heat': 0, 'kind': 'a'}"
    assert shown["trials"] == "5 told, 0 pending, 0 failed, 2 infeasible (purity in 2, width in 1)"
    assert shown["waiting"] == "trial 3 for cost; trial 4 for purity; trial 3 for width"
    run = gpmi.Result.of(opt, "budget")
    assert lines_of(repr(run))["smallest feasible cost"] == "3" and "recommended" in lines_of(repr(run))
    assert lines_of(repr(told({"cost": "min"}, {"cost": 2.0})))["smallest cost"] == "2"


def test_a_run_without_a_front_says_why() -> None:
    assert lines_of(repr(told(GOALS)))["front"] == "none yet"
    some = told(GOALS, {"yield": 1.0, "purity": 0.1})
    assert lines_of(repr(some))["front"] == "none yet: no trial has all objectives, keeps all limits and is acceptable"
    ElementTree.fromstring(some._repr_html_())


def test_a_second_measurement_of_one_output_waits_for_nothing() -> None:
    opt = told(TWO, {"yield": 1.0, "cost": 2.0})
    opt.record({"heat": 0.0, "kind": "a"}, opt.outcome_of({"yield": 1.5}))
    opt.tell({"heat": 50.0, "kind": "a"}, {"cost": 1.5})
    assert opt.goals is not None and len(opt.trials) == 3
    assert missing_outputs(opt.trials, opt.goals) == {2: ("yield",)}


def test_many_waiting_trials_fit_into_a_line() -> None:
    opt = told({**TWO, "p" * 300: gpmi.AtLeast(0.0)}, *({"yield": float(i)} for i in range(99)))
    shown = repr(opt)
    assert re.search(r"waiting +trials 0, 1, 2, .*\.\.\. \d+ more for cost", shown)
    assert all(len(line) <= 120 for line in shown.splitlines())


# Tables


def test_the_html_has_the_front() -> None:
    opt = example()
    summary, front = ElementTree.fromstring(opt._repr_html_())
    assert [tuple(cells(row)) for row in summary.iter("tr")] == list(lines_of(repr(opt)).items())
    head, *rows = [cells(row) for row in front.iter("tr")]
    assert head == ["trial", "heat", "kind", "yield", "cost", "size", "purity", "smell", "origin"]
    assert rows[1] == ["2", "2", "'a'", "7", "3", "4.5", "0.5", "2", "user"]
    assert [row[0] for row in rows] == ["0", "2", "1"] and rows[0][-2] == ""


def test_the_html_of_a_long_front_is_a_part_of_it() -> None:
    opt = told(TWO, *({"yield": float(i), "cost": float(i)} for i in range(30)))
    summary, front = ElementTree.fromstring(opt._repr_html_())
    assert len([*front.iter("tr")]) == FRONT + 1
    shown = {cells(row)[0]: cells(row)[1] for row in summary.iter("tr")}
    assert shown["shown"] == f"{FRONT} of the 30 trials on the front, spread over it"


def test_the_html_is_escaped_and_of_limited_width() -> None:
    space = {f"<b>{i}": (0.0, 1.0) for i in range(20)}
    for goals in ({"<i>": "max", "b\n\x1b": "min"}, {"<i>": "max", "b\n\x1b": None}):
        opt = gpmi.Optimizer(space, goals=goals, seed=0)
        opt.tell(opt.ask(), {"<i>": 1.0, "b\n\x1b": 2.0})
        shown = opt._repr_html_()
        assert "<i>" not in shown and "<b>" not in shown and "\x1b" not in shown
        _, table = ElementTree.fromstring(shown)
        head, row = [cells(row) for row in table.iter("tr")]
        assert len(head) == len(row) and head[1 + WIDE : 4 + WIDE] == ["12 more", "<i>", "b \\x1b"]
        assert "\x1b" not in repr(opt) and "\x1b" not in repr(opt.trials[0])


def test_the_html_of_a_single_objective_has_all_outputs() -> None:
    opt = told({"yield": "max", "smell": None}, {"yield": 1.0, "smell": 3.0}, {"yield": 2.0})
    _, best = ElementTree.fromstring(opt._repr_html_())
    head, first, second = [cells(row) for row in best.iter("tr")]
    assert head == ["trial", "heat", "kind", "yield", "smell", "mu", "sd", "origin"]
    assert (first[3:5], second[3:5]) == (["2", ""], ["1", "3"])


def test_the_listing_has_the_outputs_and_says_which_trials_wait() -> None:
    opt = example()
    opt.fail(opt.ask(), "no gas")
    head, *rows = listing(opt.trials, opt.space, opt.goals).splitlines()
    assert head.split() == ["trial", "status", "yield", "cost", "size", "purity", "smell", "heat", "kind", "why"]
    states = [row.split()[1] for row in rows]
    assert states == ["told"] * 4 + ["infeasible", "told", "waiting", "failed"]
    assert rows[2].split()[2:7] == ["7", "3", "4.5", "0.5", "2"] and rows[-1].endswith("no gas")


def test_the_listing_of_the_front_leaves_out_what_was_never_measured() -> None:
    opt = told({**TWO, "smell": None}, {"yield": 1.0, "cost": 1.0}, {"yield": 2.0, "cost": 2.0})
    assert opt.goals is not None
    head, *rows = front_listing(opt.shown_front(), opt.space, opt.goals).splitlines()
    assert head.split() == ["trial", "yield", "cost", "heat", "kind"]
    assert [row.split()[:3] for row in rows] == [["1", "2", "2"], ["0", "1", "1"]]


def test_a_trial_with_many_outputs_is_one_line() -> None:
    goals = {f"output number {i}": "max" for i in range(20)}
    opt = gpmi.Optimizer([(0.0, 1.0)] * 9, goals=goals, seed=0)
    trial = opt.tell(opt.ask(), dict.fromkeys(goals, 1.0 / 3.0))
    assert (
        len(repr(trial)) <= 120 and "output number 0=0.333333, " in repr(trial) and "... 19 more, told" in repr(trial)
    )


def test_a_study_shows_what_its_optimizer_shows(tmp_path: Any) -> None:
    pytest.importorskip("sqlalchemy")
    with gpmi.study(tmp_path / "run.db", space=SPACE, goals=TWO, seed=0) as study:
        study.tell(study.ask(), {"yield": 1.0, "cost": 1.0})
        study.tell(study.ask(), {"yield": 2.0})
        shown = lines_of(repr(study))
        assert shown["front"] == "1 of 2 trials, by the values told" and shown["waiting"] == "trial 1 for cost"
        _, front = ElementTree.fromstring(study._repr_html_())
        assert len([*front.iter("tr")]) == 2
