"""Pictures and reports of runs with a fidelity: they speak of the target, and show the way to it and what it cost."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from sample_fidelities import levelwise, stepwise
from scipy.stats import norm

import gpmi
from gpmi import plots, report
from gpmi.trials.trial import Report
from gpmi.views.fidelity_view import MAX_CURVES, MAX_POINTS, continued, curves_of, drawn_curves, spending
from gpmi.views.figures.contours import MapPlane
from gpmi.views.figures.style import VERMILION
from gpmi.views.html.curves import trial_curve
from gpmi.views.pictures.convergence import best_so_far
from gpmi.views.reading import view_of

COSTS = {"coarse": 1.0, "medium": 10.0, "1": 60.0}
TWO = {"accuracy": "max", "seconds": "min"}


@cache
def steps() -> gpmi.Optimizer:
    return stepwise(16)


@cache
def levels() -> gpmi.Optimizer:
    return levelwise(34)


@cache
def sections(kind: str) -> dict[str, str]:
    made = {"steps": steps, "levels": levels, "two": lambda: stepwise(14, goals=TWO), "plain": plain}
    return {one.id: one.html for one in report.sections(made[kind]())}


@cache
def plain() -> gpmi.Optimizer:
    opt = gpmi.Optimizer({"a": (0.0, 1.0), "b": (0.0, 1.0)}, seed=0)
    for _ in range(12):
        p = opt.ask()
        opt.tell(p, -((p["a"] - 0.3) ** 2) - p["b"])
    return opt


def by_status(opt: gpmi.Optimizer, status: str) -> list[gpmi.Trial]:
    return [trial for trial in opt.trials if trial.status == status]


def words(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def labels(figure: Figure) -> list[str]:
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


# What counts is the target


def test_only_values_at_the_target_count() -> None:
    opt = levels()
    view = view_of(opt)
    assert {trial.x["mesh"] for trial in view.told} == {"1"} and len(view.told) < len(by_status(opt, "told"))
    assert view.best is not None and opt.best is not None and view.best.number == opt.best.number
    assert max(t.y or 0.0 for t in opt.trials if t.y is not None) > (view.best.y or 0.0)  # on a coarse mesh
    curve = best_so_far(view)
    assert len(curve) == 34 and curve[-1] == view.best.y and np.isnan(curve[0])


def test_a_stopped_trial_is_an_evaluation_without_a_value() -> None:
    opt = steps()
    ended = sorted((t for t in opt.trials if t.status in ("told", "stopped")), key=lambda t: t.order or 0)
    values = [-np.inf if t.y is None else t.y for t in ended]
    np.testing.assert_array_equal(best_so_far(view_of(opt)), [*accumulate(values, max)])
    assert by_status(opt, "stopped")


def test_a_fidelity_is_no_axis_and_no_parameter_to_rank() -> None:
    for opt, names in ((steps(), ["rate", "width"]), (levels(), ["a", "b"])):
        view = view_of(opt)
        assert [axis.name for axis in view.axes(5)] == names
        assert view.importances is None or [one.name for one in view.importances] == names


def test_importances_are_those_of_f_at_the_target() -> None:
    opt = gpmi.Optimizer({"a": (0.0, 1.0), "b": (0.0, 1.0), "mesh": gpmi.Fidelity({"coarse": 1, "fine": 9})}, seed=0)
    for u, v in np.random.default_rng(0).random((14, 2)).tolist():
        opt.tell({"a": u, "b": v, "mesh": "fine"}, np.sin(3.0 * u))
        opt.tell({"a": u, "b": v, "mesh": "coarse"}, np.sin(3.0 * v))
    a, b = gpmi.importances(opt)
    assert a.total > 0.9 and b.total < 0.1


def test_maps_are_at_the_target() -> None:
    opt = levels()
    fidelity = opt.space.fidelity
    assert fidelity is not None
    (run,) = view_of(opt).focus
    rows = MapPlane.of(run).rows
    assert len(rows) > 100 and all(fidelity.is_target(row) for row in rows)


def test_parallel_coordinates_have_a_line_for_each_trial_at_the_target() -> None:
    opt = levels()
    (ax,) = plots.parallel(opt).axes
    lines = [line for drawn in ax.collections for line in drawn.get_paths()]
    assert len(lines) == len(view_of(opt).told)
    assert "mesh" not in [text.get_text() for text in ax.texts] + [one.get_text() for one in ax.get_xticklabels()]


@pytest.mark.parametrize(
    "name",
    [
        "slices",
        "contours",
        "partial_dependence",
        "importances",
        "parallel",
        "calibration",
        "run",
        "ledger",
        "convergence",
    ],
)
def test_every_picture_can_be_drawn_of_a_run_with_a_fidelity(name: str) -> None:
    for opt in (steps(), levels()):
        if name in ("importances", "partial_dependence") and len(view_of(opt).told) < 9:
            continue
        assert isinstance(getattr(plots, name)(opt), Figure)


def test_dots_of_a_convergence_are_where_their_evaluations_are() -> None:
    opt = levels()
    (ax,) = plots.convergence(opt).axes
    ended = sorted(by_status(opt, "told"), key=lambda t: t.order or 0)
    reached = [i for i, trial in enumerate(ended, 1) if trial.x["mesh"] == "1"]
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), reached)


# Curves


def test_the_picture_of_curves_has_every_trial_and_the_best_is_thick() -> None:
    opt = steps()
    figure = plots.curves(opt)
    (ax,) = figure.axes
    assert opt.best is not None
    (best,) = [one for one in ax.lines if one.get_color() == VERMILION]
    assert best.get_linewidth() > 2.0
    np.testing.assert_array_equal(best.get_ydata(), [one.y for one in opt.best.curve])
    solid = [one for one in ax.lines if one.get_linestyle() == "-"]
    assert len(solid) == sum(bool(trial.curve) for trial in opt.trials)
    told, stopped = len(by_status(opt, "told")), len(by_status(opt, "stopped"))
    wanted = [f"reached the target ({told})", f"stopped: will hardly win ({stopped})", "still running (1)"]
    assert {*wanted} <= {*labels(figure)} and f"the best, trial {opt.best.number}" in labels(figure)
    assert ax.get_xlabel() == "epoch" and ax.get_xlim()[1] >= 52.0


def test_a_curve_goes_on_as_the_model_believes() -> None:
    opt = steps()
    view = view_of(opt)
    found = continued(view, curves_of(view))
    assert {one.kind for one, _ in found} == {"running", "stopped"}
    for one, ahead in found:
        assert ahead.steps[0] == one.steps[-1] and ahead.steps[-1] == 52.0
        assert opt.posterior is not None
        (mu,), (var,) = opt.posterior(opt.space.encode(one.trial.x)[None])
        assert opt.space.encode(one.trial.x)[2] == opt.space.target.encode(one.trial.x)[2]
        ends = opt.warp.inverse(mu + np.sqrt(var) * norm.ppf([0.1, 0.5, 0.9]))
        np.testing.assert_allclose([ahead.low[-1], ahead.middle[-1], ahead.high[-1]], ends, rtol=1e-9)
        assert np.all(ahead.low <= ahead.middle) and np.all(ahead.middle <= ahead.high)


def test_a_band_of_a_run_that_minimises_is_not_upside_down() -> None:
    view = view_of(stepwise(8, goal="min"))
    found = continued(view, curves_of(view))
    assert found
    for one, ahead in found:
        assert np.all(ahead.low <= ahead.high) and abs(ahead.middle[0] - one.y[-1]) < 0.2


def test_curves_are_drawn_before_any_trial_reached_the_target() -> None:
    opt = gpmi.Optimizer({"rate": (0.0, 1.0), "epoch": gpmi.Fidelity(1, 9)}, seed=0)
    opt.ask()
    opt.report(0, 1, 0.5)
    assert labels(plots.curves(opt)) == ["still running (1)"]
    built = {one.id: words(one.html) for one in report.sections(opt)}
    assert "1 still running" in built["curves"] and "No trial has reached the last step yet" in built["curves"]
    assert "could not be built" not in "".join(built.values())


def test_many_curves_and_long_ones_are_thinned_and_the_best_stays() -> None:
    view = view_of(steps())
    best = view.best
    assert best is not None
    long = tuple(Report(i, float(i % 7), i) for i in range(1, 1001))
    others = [replace(best, number=100 + i, y=0.0, curve=long) for i in range(2 * MAX_CURVES + 10)]
    many = replace(view, trials=(*others[:500], best, *others[500:]))
    found = drawn_curves(many)
    assert len(found) <= MAX_CURVES + 1 and best.number in {one.trial.number for one in found}
    assert all(len(one.steps) <= MAX_POINTS for one in found)
    assert found[0].steps[0] == 1.0 and found[0].steps[-1] == 1000.0


def test_a_trial_that_a_user_ends_earlier_does_not_count_as_one_that_reached_the_target() -> None:
    opt = stepwise(4)
    p = opt.ask(fixed={"epoch": 20})
    for step in range(1, 21):
        opt.report(p, step, 5.0)
    assert opt.trials[-1].status == "told" and opt.best is not None and opt.best.y != 5.0
    view = view_of(opt)
    assert view.best is not None and view.best.number == opt.best.number
    assert "ended before it, as planned (1)" in labels(plots.curves(opt))
    assert spending(view).row[-1] == 0.0 and np.isnan(spending(view).y[-1])
    assert f"({len(view.told)} at epoch 52)" in str(opt)


def test_a_trial_that_does_not_count_has_no_curve() -> None:
    view = view_of(steps())
    trials = tuple(replace(trial, status="retracted") for trial in view.trials)
    assert not curves_of(replace(view, trials=trials)) and curves_of(view)


def test_outputs_have_their_own_curves() -> None:
    run = stepwise(6, goals=TWO)
    figure = plots.curves(run)
    assert [ax.get_ylabel() for ax in figure.axes] == ["accuracy", "seconds"]
    (ax,) = plots.curves(run, output="seconds").axes
    solid = [one for one in ax.lines if one.get_linestyle() == "-"]
    assert all(np.array_equal(one.get_xdata(), one.get_ydata()) for one in solid)  # a second for each epoch


def test_the_picture_of_one_trial_needs_no_model() -> None:
    opt = steps()
    stopped = by_status(opt, "stopped")[0]
    drawn = trial_curve(opt.space, stopped, [None])
    assert drawn is not None and f"at step {stopped.curve[-1].step}, stopped." in words(drawn)
    assert trial_curve(opt.space, replace(stopped, curve=()), [None]) is None
    two = stepwise(3, goals=TWO)
    assert (trial_curve(two.space, two.trials[0], list(TWO)) or "").count("<svg") == 2


# What was spent


def test_what_levels_cost_adds_up() -> None:
    opt = levels()
    found = spending(view_of(opt))
    told = sorted(by_status(opt, "told"), key=lambda t: t.order or 0)
    np.testing.assert_allclose(found.spent, [*accumulate(COSTS[t.x["mesh"]] for t in told)])
    assert [["coarse", "medium", "1"][int(row)] for row in found.row] == [t.x["mesh"] for t in told]
    assert opt.best is not None and found.best[-1] == opt.best.y
    assert np.isfinite(found.y).sum() == sum(t.x["mesh"] == "1" for t in told)


def test_steps_of_trials_side_by_side_are_spent_when_they_are_reported() -> None:
    space: Any = {"rate": (0.0, 1.0), "epoch": gpmi.Fidelity(1, 4, cost={2: 20, 4: 30})}
    opt = gpmi.Optimizer(space, seed=0)
    opt.ask(2)
    for trial, step in ((0, 1), (1, 1), (0, 2), (1, 2), (1, 3), (1, 4), (0, 4)):
        opt.report(trial, step, 1.0)
    found = spending(view_of(opt))
    np.testing.assert_allclose(found.spent, [50.0, 60.0])  # trial 1 ends while trial 0 is at step 2
    assert found.row.tolist() == [1.0, 1.0]


def test_learned_costs_are_times() -> None:
    opt = gpmi.Optimizer({"a": (0.0, 1.0), "mesh": gpmi.Fidelity(["coarse", "fine"])}, seed=0)
    opt.tell(opt.ask(fixed={"mesh": "fine"}), 1.0)
    took = replace(opt.trials[0], asked=100.0, ended=107.5)
    view = replace(view_of(opt), trials=(took,))
    assert spending(view).spent.tolist() == [7.5]
    assert plots.cost(view).axes[0].get_xlabel() == "time spent, in seconds"


def test_the_picture_of_the_cost_is_a_step_line_with_marks_for_each_level() -> None:
    opt = levels()
    figure = plots.cost(opt)
    (ax,) = figure.axes
    assert labels(figure) == ["at the target", "largest so far"] and ax.get_xlabel() == "cost spent"
    assert [text.get_text() for text in ax.texts] == ["coarse", "medium", "1"]
    marks = [one for one in ax.lines if one.get_marker() == "|"]
    assert [len(one.get_xdata()) for one in marks] == [
        sum(t.x["mesh"] == mesh for t in by_status(opt, "told")) for mesh in COSTS
    ]
    (line,) = [one for one in ax.lines if one.get_drawstyle() == "steps-post"]
    assert opt.best is not None and line.get_ydata()[-1] == opt.best.y
    assert min(line.get_ydata()) > ax.get_ylim()[0] + 0.1 * np.ptp(ax.get_ylim())  # above the marks


# What cannot be drawn


def test_what_has_no_curve_or_no_fidelity_is_refused_with_a_remedy() -> None:
    with pytest.raises(ValueError, match=r"no fidelity; it takes one such as"):
        plots.curves(plain())
    with pytest.raises(ValueError, match=r"no fidelity"):
        plots.cost(plain())
    with pytest.raises(ValueError, match=r"mesh has levels, so there are no curves; draw cost"):
        plots.curves(levels())
    opt = gpmi.Optimizer({"rate": (0.0, 1.0), "epoch": gpmi.Fidelity(1, 9)}, seed=0)
    with pytest.raises(ValueError, match="report a step first"):
        plots.curves(opt)
    with pytest.raises(ValueError, match="no trial has reached epoch 9"):
        plots.cost(opt)


# Reports


def test_the_sections_about_a_fidelity_are_there_where_there_is_one() -> None:
    assert {"curves", "cost"} <= sections("steps").keys() and {"curves", "cost"} <= sections("two").keys()
    assert "cost" in sections("levels") and "curves" not in sections("levels")
    assert not {"curves", "cost"} & sections("plain").keys()


@pytest.mark.parametrize("kind", ["steps", "levels", "two"])
def test_every_section_of_a_run_with_a_fidelity_is_built(kind: str) -> None:
    built = sections(kind)
    assert "could not be built" not in "".join(built.values())
    assert {"found", "advice", "convergence", "slices", "parallel", "calibration", "trials"} <= built.keys()


def test_a_report_counts_what_was_stopped_and_says_why() -> None:
    opt, built = steps(), sections("steps")
    told, stopped = len(by_status(opt, "told")), len(by_status(opt, "stopped"))
    assert f"17 evaluations: {told} with a value, {stopped} stopped early, 1 without a result yet." in words(
        built["found"]
    )
    assert f"{told} values are at epoch 52, and only these count below." in words(built["found"])
    assert f"{told} reached the target, {stopped} stopped, 1 still running." in words(built["curves"])
    assert re.search(rf"will hardly win\s+{stopped}\b", words(built["curves"]))


def test_the_table_of_trials_shows_how_far_each_one_came() -> None:
    opt, table = steps(), sections("steps")["trials"]
    rows = re.findall(r"<tr[^>]*>.*?</tr>", table)[1:]
    for trial, row in zip(opt.trials, rows, strict=True):
        cells = re.findall(r"<td[^>]*>(.*?)</td>", row)
        assert cells[2] == str(trial.curve[-1].step)
        if trial.status != "told":
            assert f"{trial.status} at step {trial.curve[-1].step}" in cells
    assert "will hardly win: probability" in table


def test_a_report_of_levels_has_their_costs() -> None:
    opt, text = levels(), words(sections("levels")["cost"])
    total = sum(COSTS[trial.x["mesh"]] for trial in by_status(opt, "told"))
    assert f"Cost spent: {total:g} for 34 trials." in text
    for mesh, cost in COSTS.items():
        times = sum(trial.x["mesh"] == mesh for trial in by_status(opt, "told"))
        assert re.search(rf"\b{mesh} {cost:g} {times}\b", text)


def test_the_charts_use_classes_of_the_style_alone_so_that_they_follow_its_scheme() -> None:
    html = sections("steps")["curves"] + sections("steps")["cost"] + sections("levels")["cost"]
    charts = "".join(re.findall(r"<svg.*?</svg>", html))
    used = {name for names in re.findall(r'class="([^"]+)"', charts) for name in names.split()}
    assert used and all(re.search(rf"\.{name}\b", report.STYLE) for name in used)
    assert not re.search(r'(fill|stroke)="#', charts)


def test_names_of_levels_are_escaped() -> None:
    evil = "<script>alert(1)</script>"
    opt = gpmi.Optimizer({"a": (0.0, 1.0), evil: gpmi.Fidelity({evil: 1, "$fine": 2})}, seed=0)
    for level in (evil, "$fine", "$fine"):
        opt.tell(opt.ask(fixed={evil: level}), 1.0)
    assert evil not in "".join(one.html for one in report.sections(opt))
    plots.cost(opt).savefig("/dev/null", format="png")  # a dollar sign begins no formula
