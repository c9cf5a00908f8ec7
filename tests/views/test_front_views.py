"""Figures and reports of runs with goals show the numbers of the run: its front, its outputs, its limits."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

import gpmi
from gpmi import kernels, plots, report
from gpmi.analysis.ledger.front_ledger import FrontLedger
from gpmi.optimizer.strategy import Strategy
from gpmi.policies.front import hypervolume
from gpmi.views.figures.style import BLUE, VERMILION
from gpmi.views.front_view import kind_of, staircase
from gpmi.views.html.front import Recipe, trade_offs
from gpmi.views.pictures.slices import MEAN
from gpmi.views.reading import view_of

HOSTILE = "<script>alert(1)</script>\"'&\x00</td>"
SPACE = {"heat": gpmi.Real(0.0, 1.0, unit="°C"), "time": (0.0, 1.0)}
PRIOR = {"kernel": kernels.RBF(0.5), "noise_var": 1e-6}
TWO = {"yield": gpmi.Max(at_least=0.1), "cost": gpmi.Min(at_most=2.0), "purity": gpmi.AtLeast(0.4)}


@pytest.fixture(autouse=True)
def few_draws() -> Iterator[None]:
    """Draw few functions: only the place of their numbers in a text or picture matters here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpmi.analysis.ledger.front_ledger.DRAWS", 16)
        patch.setattr("gpmi.analysis.ledger.front_draws.RAYS_MANY", 12)
        patch.setattr("gpmi.analysis.ledger.regret.PATHS", 32)
        patch.setattr("gpmi.analysis.ledger.regret.DRAWS", 64)
        yield


def react(p: Any) -> dict[str, float]:
    heat, time = p["heat"], p["time"]
    amount = float(np.sin(2.0 * heat) + 0.3 * time)
    return {
        "yield": amount,
        "cost": 0.3 + heat**2 + time,
        "purity": 1.0 - 0.7 * heat,
        "size": 30.0 + 20.0 * heat - time,
    }


def part(*names: str) -> Any:
    return lambda p: {name: react(p)[name] for name in names}


@cache
def two() -> Any:
    """Two objectives and a limit that some trials break."""
    return gpmi.optimize(part("yield", "cost", "purity"), SPACE, goals=TWO, budget=14, n_init=6, seed=0, **PRIOR)


@cache
def three() -> Any:
    """Two objectives and a target; nothing is stated for the first two."""
    goals = {"yield": "max", "size": gpmi.Match(42.0, within=9.0), "cost": "min"}
    return gpmi.optimize(part(*goals), SPACE, goals=goals, budget=12, n_init=6, seed=0, **PRIOR)


@cache
def single() -> Any:
    """One objective, two limits and an output that is only watched."""
    goals = {"yield": "max", "purity": gpmi.AtLeast(0.6), "cost": None, "size": gpmi.AtMost(44.0)}
    return gpmi.optimize(react, SPACE, goals=goals, budget=13, n_init=6, seed=0, **PRIOR)


@cache
def match() -> Any:
    goals = {"size": gpmi.Match(42.0, within=9.0), "cost": None}
    return gpmi.optimize(part("size", "cost"), SPACE, goals=goals, budget=10, n_init=5, seed=0, **PRIOR)


def several_outcomes(names: dict[str, str]) -> gpmi.Optimizer:
    """A run in which outputs are late, corrected, retracted, averaged and broken; `names` are those of the outputs."""
    goals = {names["yield"]: "max", names["cost"]: "min", names["purity"]: gpmi.AtLeast(0.5)}
    opt = gpmi.Optimizer(SPACE, goals=goals, seed=0, n_init=4, **PRIOR)
    for t in range(12):
        x = opt.ask()
        values = react(x)
        if t == 2:
            opt.fail(x, why=HOSTILE)
            continue
        bars = {names["yield"]: 0.04} if t == 1 else 0.0
        told = opt.tell(x, {names[key]: values[key] for key in ("yield", "cost")}, noise_var=bars, repeats=1 + (t == 3))
        if t % 3:
            told = opt.tell(told, {names["purity"]: values["purity"]})
        if t == 5:
            opt.correct(told, {names["yield"]: 0.55})
        if t == 7:
            opt.retract(told)
    opt.ask()
    return opt


PLAIN = {name: name for name in ("yield", "cost", "purity")}


def panels(figure: Figure) -> list[Any]:
    assert isinstance(figure, Figure)
    return [ax for ax in figure.axes if ax.get_label() != "<colorbar>"]


def line(ax: Any, label: str) -> Any:
    return next(drawn for drawn in ax.get_lines() if drawn.get_label() == label)


def values_of(trials: Any, *names: str) -> Any:
    return np.array([[trial.outputs[name] for name in names] for trial in trials])


# The geometry of a front


@given(
    arrays(float, st.tuples(st.integers(1, 8), st.just(2)), elements=st.floats(0.0, 10.0)),
    st.sampled_from([1.0, -1.0]),
    st.sampled_from([1.0, -1.0]),
)
def test_the_area_below_the_staircase_is_the_hypervolume(points: Any, first: float, second: float) -> None:
    signs, reference = np.array([first, second]), np.array([-0.5 * first, -0.5 * second])
    corners = signs * staircase(signs * points, signs, reference)
    outline = np.concatenate([corners, [signs * reference]])
    x, y = outline.T
    area = 0.5 * abs(float(x @ np.roll(y, -1) - y @ np.roll(x, -1)))
    assert area == pytest.approx(hypervolume(points, signs * reference), rel=1e-9, abs=1e-9)


def test_a_staircase_without_a_reference_begins_and_ends_at_the_best_points() -> None:
    points = np.array([[1.0, 5.0], [3.0, 4.0], [2.0, 4.5], [2.5, 1.0]])
    corners = staircase(points, np.array([1.0, 1.0]))
    np.testing.assert_array_equal(corners, [[3.0, 4.0], [2.0, 4.0], [2.0, 4.5], [1.0, 4.5], [1.0, 5.0]])
    assert staircase(np.empty((0, 2)), np.array([1.0, 1.0])).shape == (0, 2)


def test_a_trial_is_of_one_kind() -> None:
    opt = several_outcomes(PLAIN)
    front = {trial.number for trial in opt.front}
    for trial in (trial for trial in opt.trials if trial.status == "told"):
        kind = kind_of(trial, front)
        assert (kind == "front") == (trial.number in front)
        assert (kind == "waiting") == ("purity" not in trial.outputs)
        assert (kind == "broken") == (trial.outputs.get("purity", 1.0) < 0.5)


# Figures of the front


def test_the_front_is_drawn_at_the_values_told_with_its_staircase_band_and_reference() -> None:
    run = two()
    (ax,) = panels(plots.front(run))
    np.testing.assert_array_equal(line(ax, "on the front").get_xydata(), values_of(run.front, "yield", "cost"))
    broken = [trial for trial in run.trials if trial.outputs["purity"] < 0.4]
    assert broken
    np.testing.assert_array_equal(line(ax, "breaks a limit").get_xydata(), values_of(broken, "yield", "cost"))
    rest = [trial for trial in run.trials if trial not in run.front and trial not in broken]
    np.testing.assert_array_equal(line(ax, "beaten by another one").get_xydata(), values_of(rest, "yield", "cost"))
    bands = run.ledger.front_bands()
    (band,) = ax.patches
    np.testing.assert_allclose(band.get_xy()[:-1], np.concatenate([bands.low, bands.high[::-1]]))
    np.testing.assert_allclose(line(ax, "its median").get_xydata(), bands.median)
    stairs = [drawn for drawn in ax.get_lines() if drawn.get_label().startswith("_") and len(drawn.get_xdata()) > 2]
    np.testing.assert_array_equal(
        stairs[0].get_xydata(),
        staircase(values_of(run.front, "yield", "cost"), np.array([1.0, -1.0]), np.array([0.1, 2.0])),
    )
    assert line(ax, "the worst that is acceptable").get_xdata() == [0.1, 0.1]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("yield (larger is better)", "cost (smaller is better)")


def test_three_objectives_are_drawn_in_pairs_and_a_target_as_the_distance_from_it() -> None:
    run = three()
    drawn = panels(plots.front(run))
    assert [(ax.get_xlabel(), ax.get_ylabel()) for ax in drawn] == [
        ("yield (larger is better)", "distance of size from 42 (smaller is better)"),
        ("yield (larger is better)", "cost (smaller is better)"),
        ("distance of size from 42 (smaller is better)", "cost (smaller is better)"),
    ]
    size = np.abs(values_of(run.front, "size")[:, 0] - 42.0)
    np.testing.assert_array_equal(line(drawn[0], "on the front").get_ydata(), size)
    np.testing.assert_array_equal(line(drawn[2], "on the front").get_xdata(), size)
    bands = run.ledger.front_bands("yield", "cost")
    np.testing.assert_allclose(line(drawn[1], "its median").get_xydata(), bands.median)


def test_the_hypervolume_is_that_of_the_ledger_with_what_is_still_to_be_had() -> None:
    run = two()
    (ax,) = panels(plots.hypervolume(run))
    np.testing.assert_array_equal(line(ax, "hypervolume of the front").get_ydata(), run.ledger.history)
    (band,) = ax.patches
    low, high = run.ledger.hypervolume, run.ledger.hypervolume + run.ledger.missing.interval()[1]
    assert (band.get_y(), band.get_y() + band.get_height()) == pytest.approx((low, high))
    assert line(ax, "its median").get_ydata()[0] == pytest.approx(low + run.ledger.missing.median)


def test_parallel_coordinates_are_coloured_by_front_membership() -> None:
    run = two()
    (ax,) = panels(plots.parallel(run))
    others, front = (drawn for drawn in ax.collections if isinstance(drawn, LineCollection))
    assert (len(front.get_segments()), len(others.get_segments())) == (len(run.front), 14 - len(run.front))
    assert [text.get_text() for text in ax.get_xticklabels()] == ["heat", "time", "yield", "cost", "purity"]
    y = values_of(run.trials, "yield")[:, 0]
    best = max(run.front, key=lambda trial: trial.outputs["yield"])
    shares = [float(segment[2, 1]) for segment in front.get_segments()]
    assert max(shares) == pytest.approx((best.outputs["yield"] - y.min()) / np.ptp(y))
    assert {*map(tuple, front.get_colors())} == {(*(int(BLUE[i : i + 2], 16) / 255 for i in (1, 3, 5)), 1.0)}
    assert line(ax, f"trial {view_of(run).middle.number}").get_color() == VERMILION


@pytest.mark.parametrize("draw", [plots.front, plots.hypervolume])
def test_a_front_needs_several_objectives_with_values(draw: Any) -> None:
    with pytest.raises(ValueError, match="source has one objective"):
        draw(single())
    with pytest.raises(ValueError, match="source has no observation"):
        draw(gpmi.Optimizer(SPACE, goals=TWO))
    opt = gpmi.Optimizer(SPACE, goals=TWO)
    opt.tell({"heat": 0.5, "time": 0.5}, {"yield": 1.0})
    with pytest.raises(ValueError, match="no trial has all objectives yet"):
        draw(opt)


def test_a_front_says_what_it_cannot_draw() -> None:
    with pytest.raises(ValueError, match=r"size is the only objective.*convergence"):
        plots.front(match())
    with pytest.raises(ValueError, match=r"ax is given for 3 objectives.*leave ax out"):
        plots.front(three(), ax=Figure().add_subplot())
    opt = gpmi.Optimizer(SPACE, goals={"yield": "max", "cost": "min"}, n_init=6)
    opt.tell({"heat": 0.5, "time": 0.5}, {"yield": 1.0, "cost": 1.0})
    with pytest.raises(ValueError, match="reference of the hypervolume is not known yet"):
        plots.hypervolume(opt)
    assert len(panels(plots.front(opt))) == 1  # the values are there


# Figures of outputs


def test_slices_have_a_row_for_each_output_in_its_own_units() -> None:
    run = two()
    drawn = panels(plots.slices(run))
    assert [ax.get_ylabel() for ax in drawn] == ["yield", "", "cost", "", "purity", ""]
    middle = view_of(run).middle
    for i, name in enumerate(("yield", "cost", "purity")):
        heat = line(drawn[2 * i], MEAN)
        rows = np.array([run.space.encode({**middle.x, "heat": x}) for x in heat.get_xdata()])
        predicted = [one.mean for one in run.front_analysis.models[name].predict(rows)]
        np.testing.assert_allclose(heat.get_ydata(), predicted, rtol=1e-6, atol=1e-9)
        star = line(drawn[2 * i], f"trial {middle.number}")
        np.testing.assert_allclose(star.get_xydata()[0], [middle.x["heat"], middle.outputs[name]], rtol=1e-3)
    assert line(drawn[4], "limit").get_ydata()[0] == 0.4  # that of the purity
    (only, _) = panels(plots.slices(run, output="cost"))
    np.testing.assert_array_equal(line(only, MEAN).get_ydata(), line(drawn[2], MEAN).get_ydata())


def test_f_may_return_a_dict_of_outputs() -> None:
    heat, _ = panels(plots.slices(two(), react, output="cost"))
    x, middle = line(heat, "f").get_xdata(), view_of(two()).middle
    np.testing.assert_allclose(line(heat, "f").get_ydata(), [react({**middle.x, "heat": one})["cost"] for one in x])


@pytest.mark.slow
def test_contours_importances_and_calibration_have_a_part_for_each_output() -> None:
    run = two()
    titles = [ax.get_title(loc="left") for ax in panels(plots.contours(run))]
    assert [titles[i] for i in (1, 4, 7)] == [rf"{n}: posterior mean $\mu$" for n in ("yield", "cost", "purity")]
    drawn = panels(plots.importances(run))
    for ax, name in zip(drawn, run.goals, strict=True):
        found = gpmi.importances(run, output=name)
        np.testing.assert_allclose([bar.get_width() for bar in ax.containers[0]], [one.total for one in found.ranked])
        assert f"variance of {name}" in ax.get_xlabel()
    (only,) = panels(plots.importances(run, output="cost"))
    assert [bar.get_width() for bar in only.containers[0]] == [bar.get_width() for bar in drawn[1].containers[0]]
    for ax, name in zip(panels(plots.calibration(run)), run.goals, strict=True):
        judged = run.ledger.outputs[name].calibration
        assert ax.get_title(loc="left") == f"Residuals of {name} / sd: {judged.verdict}"
        np.testing.assert_array_equal(ax.get_lines()[-1].get_ydata(), np.sort(judged.ahead))
    assert len(panels(plots.partial_dependence(run))) == 6
    assert len(panels(plots.partial_dependence(run, "heat", output="purity"))) == 1


def test_the_overview_of_several_objectives_has_the_front_the_hypervolume_and_every_output() -> None:
    run = two()
    front, volume, *outputs = panels(plots.run(run))
    assert front.get_xlabel() == "yield (larger is better)" and volume.get_ylabel() == "hypervolume: yield × cost"
    assert [ax.get_ylabel() for ax in outputs] == ["yield", "cost", "purity"]
    feasible = [trial.outputs["cost"] if trial.feasible else np.inf for trial in run.trials]
    drawn = line(outputs[1], "best so far").get_ydata()
    np.testing.assert_array_equal(drawn[np.isfinite(drawn)], [y for y in np.minimum.accumulate(feasible) if y < np.inf])
    assert not [drawn for drawn in outputs[2].get_lines() if drawn.get_label() == "best so far"]  # a limit has no best
    volume, *residuals = panels(plots.ledger(run))
    assert len(residuals) == 3
    np.testing.assert_array_equal(
        residuals[0].get_lines()[0].get_ydata(), run.ledger.outputs["yield"].calibration.ahead
    )
    model = panels(plots.run(run, output="purity"))
    assert len(model) == 4 and model[-1].get_ylabel() == "purity"
    assert len(panels(plots.ledger(run, output="purity"))) == 4


def test_convergence_takes_an_objective_and_says_which_there_are() -> None:
    run = two()
    with pytest.raises(ValueError, match=r"output is None.*give one of 'yield', 'cost', or draw plots.hypervolume"):
        plots.convergence(run)
    with pytest.raises(ValueError, match=r"'purity', which is no objective; give one of 'yield', 'cost'"):
        plots.convergence(run, output="purity")
    (ax,) = panels(plots.convergence(run, output="cost"))
    best = np.minimum.accumulate([t.outputs["cost"] if t.feasible else np.inf for t in run.trials])
    np.testing.assert_array_equal(ax.get_lines()[-1].get_ydata(), np.where(np.isfinite(best), best, np.nan))
    assert ax.get_ylabel() == "smallest cost so far"
    (ax,) = panels(plots.convergence(match()))
    size = np.abs(values_of(match().trials, "size")[:, 0] - 42.0)
    np.testing.assert_array_equal(ax.get_lines()[-1].get_ydata(), np.minimum.accumulate(size))
    assert ax.get_ylabel() == "smallest distance of size from 42 so far"


@pytest.mark.parametrize(
    "draw",
    [plots.slices, plots.contours, plots.importances, plots.calibration, plots.convergence, plots.run, plots.ledger],
)
def test_an_unknown_output_is_refused_with_those_that_exist(draw: Any) -> None:
    with pytest.raises(
        ValueError, match=r"'taste' is not an output of this run; give one of 'yield', 'cost', 'purity'"
    ):
        draw(two(), output="taste")
    plain = gpmi.maximize(lambda x: -float(x[0] ** 2), [(0.0, 1.0)] * 2, budget=3, n_init=3, seed=0, **PRIOR)
    with pytest.raises(ValueError, match="output is 'yield', but the run has no goals; leave out output"):
        draw(plain, output="yield")


def test_an_output_without_a_value_is_refused() -> None:
    opt = gpmi.Optimizer(SPACE, goals=TWO, n_init=3, **PRIOR)
    opt.tell({"heat": 0.5, "time": 0.5}, {"yield": 1.0})
    with pytest.raises(ValueError, match="cost has no value yet"):
        plots.slices(opt, output="cost")


@pytest.mark.parametrize("draw", [plots.contours, plots.importances, plots.calibration])
def test_axes_take_one_output(draw: Any) -> None:
    with pytest.raises(ValueError, match=r"ax is given for 3 outputs; give output=.*'yield', 'cost', 'purity'"):
        draw(two(), ax=Figure().add_subplot())
    figure = Figure()
    assert draw(two(), output="cost", ax=figure.add_subplot()) is figure


def test_a_single_objective_is_drawn_as_without_goals_under_its_name() -> None:
    goals = {"yield": "max"}
    named = gpmi.optimize(part("yield"), SPACE, goals=goals, budget=8, n_init=5, seed=0, **PRIOR)
    plain = gpmi.maximize(lambda p: react(p)["yield"], SPACE, budget=8, n_init=5, seed=0, **PRIOR)
    for draw in (plots.slices, plots.run, plots.convergence, plots.parallel, plots.calibration, plots.importances,
                 plots.ledger, plots.contours):  # fmt: skip
        for ours, theirs in zip(panels(draw(named)), panels(draw(plain)), strict=True):
            for mine, other in zip(ours.get_lines(), theirs.get_lines(), strict=True):
                np.testing.assert_array_equal(mine.get_xydata(), other.get_xydata())
            for mine, other in ((ours.get_ylabel(), theirs.get_ylabel()), (ours.get_xlabel(), theirs.get_xlabel())):
                assert mine == re.sub(r"\$?\b[fy]\b\$?", "yield", other)


@pytest.mark.slow
def test_every_figure_of_every_source_is_drawn_without_a_warning(tmp_path: Any) -> None:
    opt = several_outcomes({"yield": HOSTILE, "cost": "cost $", "purity": "purity"})
    with gpmi.study(tmp_path / "s.db", space=SPACE, goals=TWO, seed=0, **PRIOR) as study:
        for x in np.linspace(0.1, 0.9, 9):
            p = {"heat": float(x), "time": float(x**2)}
            study.tell(p, part("yield", "cost", "purity")(p))
        cheap = ("front", "slices", "run")
        everything = [name for name in plots.__all__ if name not in ("backtest", "posterior_1d", "convergence")]
        for source, names in ((opt, everything), (study, cheap), (three(), cheap), (match(), cheap), (single(), cheap)):
            for name in names:
                try:
                    figure = getattr(plots, name)(source)
                except ValueError as error:
                    words = "only objective|one objective|not known yet|no fidelity|no mixture"
                    assert re.search(words, str(error)), (name, str(error))
                    continue
                FigureCanvasAgg(figure).draw()


# The view of an output


def test_the_view_of_an_output_has_its_values_and_its_own_ledger() -> None:
    opt = several_outcomes(PLAIN)
    view = view_of(opt)
    assert isinstance(view.ledger, FrontLedger) and view.best is None
    purity = view.of_output("purity")
    told = [trial for trial in opt.trials if "purity" in trial.outputs and trial.status == "told"]
    assert [trial.y for trial in purity.told] == [trial.outputs["purity"] for trial in told]
    assert purity.ledger.n == len(told) < view.ledger.n
    assert view.of_output("cost").goal == "min" and purity.goal == "max"
    assert [one.key for one in view.each_output] == ["yield", "cost", "purity"]
    alone = view_of(single())
    assert [one.key for one in alone.each_output] == ["yield", "purity", "cost", "size"]
    assert (
        alone.each_output[0] is alone
        and alone.best.number
        == max((trial for trial in single().trials if trial.feasible), key=lambda trial: trial.y).number
    )


def test_slices_of_all_outputs_go_through_a_trial_on_the_front() -> None:
    for run in (two(), three()):
        view = view_of(run)
        assert view.middle in run.front
        for one in view.each_output:
            np.testing.assert_array_equal(one.recommended_row, run.space.encode(view.middle.x))
            assert one.centre == view.centre == f"trial {view.middle.number} (in the middle of the front)"


def test_the_trials_are_shown_although_the_model_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    opt = several_outcomes(PLAIN)

    def fails(self: Any, log: Any) -> None:
        raise FloatingPointError("no way")

    monkeypatch.setattr(Strategy, "models", fails)
    html = report.page(opt)
    assert "the model failed: no way" in html and "could not be built" not in html
    found = {one.id for one in report.sections(opt)}
    assert {"found", "tradeoffs", "trials", "about"} <= found and "slices" not in found


# Reports


class Strict(HTMLParser):
    """A parser that checks that every element is closed, and collects elements and text."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in ("meta", "input", "br", "hr"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def of_class(self, name: str) -> list[dict[str, str]]:
        return [attributes for _, attributes in self.found if name in attributes.get("class", "").split()]


def section(run: Any, name: str) -> Strict:
    (found,) = report.sections(run, only=[name])
    return Strict(found.html)


def rows(html: str, table: str) -> list[list[str]]:
    """Return the texts of the cells of a table with this id, its head first."""
    (found,) = re.findall(rf'<table id="{table}".*?</table>', html, flags=re.DOTALL)
    return [
        [Strict(one).text for one in re.findall(r"<t[hd].*?</t[hd]>", row)] for row in re.findall(r"<tr.*?</tr>", found)
    ]


def test_the_overview_has_the_front_and_what_is_still_to_be_had() -> None:
    run = two()
    text, ledger = section(run, "found").text, run.ledger
    assert f"Of 14 trials, {len(run.front)} are on the front" in text
    best = max(run.front, key=lambda trial: trial.outputs["yield"])
    cheap = min(run.front, key=lambda trial: trial.outputs["cost"])
    assert f"largest yield (trial {best.number})" in text and f"smallest cost (trial {cheap.number})" in text
    assert f"{best.outputs['yield']:.6g}" in text and f"{cheap.outputs['cost']:.6g}" in text
    assert f"The hypervolume of the front is {ledger.hypervolume:.4g}" in text and "from yield 0.1 and cost 2." in text
    assert f"at most {100.0 * ledger.missing.share()[1]:.2g} % of what is possible" in text
    advice = section(run, "advice").text
    assert {"stop": "You can stop", "go on": "Go on", "distrust": "Do not trust"}[ledger.advice.what] in advice
    for name, words in ledger.answer()[1:]:
        assert name in advice and words in advice
    assert "10 more evaluations" in advice


def test_every_point_of_the_front_has_its_values_a_link_a_tooltip_and_a_recipe() -> None:
    run = two()
    (found,) = report.sections(run, only=["tradeoffs"])
    page = Strict(found.html)
    points = page.of_class("front-point")
    assert len(points) == 14
    by_number = {int(point["data-number"]): point for point in points}
    for trial in run.trials:
        values = [float(value) for value in by_number[trial.number]["data-values"].split()]
        assert values == pytest.approx([trial.outputs["yield"], trial.outputs["cost"]], rel=1e-8)
    on_front = {trial.number for trial in run.front}
    links = {number: point["href"] for number, point in by_number.items() if "href" in point}
    assert links == {number: f"#front-{number}" for number in on_front}
    ids = {attributes["id"] for _, attributes in page.found if attributes.get("id", "").startswith("front-")}
    assert ids == {f"front-{number}" for number in on_front} | {"front-table"}
    cards = page.of_class("front-recipe")
    assert {int(card["data-number"]) for card in cards} == on_front
    shown = [int(card["data-number"]) for card in cards if "hidden" not in card]  # without a script one recipe is shown
    assert shown == [view_of(run).middle.number]
    first = run.front[0]
    assert f"Trial {first.number}: yield {first.outputs['yield']:.6g}, cost {first.outputs['cost']:.6g}" in page.text
    assert f"{first.x['heat']:.6g} °C" in page.text


def test_a_slider_goes_from_the_worst_to_the_best_value_on_the_front() -> None:
    run = three()
    sliders = section(run, "tradeoffs").of_class("front-limit")
    shown = {name: values_of(run.front, name)[:, 0] for name in run.goals}
    shown["size"] = np.abs(shown["size"] - 42.0)
    for one, values in zip(sliders, shown.values(), strict=True):
        assert (float(one["data-lo"]), float(one["data-hi"])) == (values.min(), values.max())
    assert [(one["data-sense"], one["value"]) for one in sliders] == [("least", "0"), ("most", "200"), ("most", "200")]
    assert sliders[1]["data-words"] == "within … of 42"


def test_the_picture_has_the_band_of_the_model_and_the_stated_reference() -> None:
    run = two()
    html = report.sections(run, only=["tradeoffs"])[0].html
    (outline,) = re.findall(r'<polygon points="([^"]*)" class="area"', html)
    bands = run.ledger.front_bands()
    assert len(outline.split()) == len(bands.low) + len(bands.high)
    assert html.count('class="reference"') == 3  # a line for each objective, and one in the legend
    assert html.count('class="front-stairs"') == 1
    pairs = report.sections(three(), only=["tradeoffs"])[0].html
    assert pairs.count('class="area"') == 3 + 1 and "front-stairs" not in pairs
    assert pairs.count('role="group"') == 3


def test_the_tables_have_a_column_for_each_output_and_say_which_limit_is_broken() -> None:
    run = two()
    html = report.page(run)
    head, *body = rows(html, "trials-table")
    outputs = ["yield", "cost", "purity"]
    assert head == ["trial", "heat (°C)", "time", *outputs, "status", "limit broken", "front", "origin", "note"]
    for trial, row in zip(run.trials, body, strict=True):
        cells = dict(zip(head, row, strict=True))
        assert [float(cells[name]) for name in outputs] == pytest.approx([*trial.outputs.values()], rel=1e-5)
        assert cells["limit broken"] == ("purity below 0.4" if trial.outputs["purity"] < 0.4 else "")
        assert cells["front"] == ("yes" if trial in run.front else "")
    head, *body = rows(html, "front-table")
    yields = [float(row[head.index("yield")]) for row in body]
    assert yields == sorted(yields, reverse=True) and len(body) == len(run.front)
    failures = section(run, "failures").text
    broken = sum(trial.outputs["purity"] < 0.4 for trial in run.trials)
    assert f"{broken} of 14 trials break a limit." in failures and "at least 0.4" in failures


def test_late_corrected_and_averaged_outputs_are_named() -> None:
    opt = several_outcomes(PLAIN)
    head, *body = rows(report.page(opt), "trials-table")
    notes = {row[0]: row[-1] for row in body}
    assert notes["0"] == "purity not measured yet"
    assert "error bar of yield 0.2" in notes["1"] and "mean of 2" in notes["3"]
    assert re.fullmatch(r"was yield 0\.\d+", notes["5"])
    assert body[2][head.index("status")] == "failed" and body[7][head.index("status")] == "retracted"
    kinds = section(opt, "tradeoffs").of_class("waiting")
    assert len([one for one in kinds if "data-number" in one]) == sum(
        trial.status == "told" and "purity" not in trial.outputs for trial in opt.trials
    )


@pytest.mark.slow
def test_a_single_objective_has_named_limits_and_the_pictures_of_every_output() -> None:
    run = single()
    html = report.page(run)
    page = Strict(html)
    assert f"The largest feasible yield observed is {run.y:.6g}" in page.text
    assert "tradeoffs" not in {one.id for one in report.sections(run)}
    assert not re.search(
        r"constraint( \d)?<", html.split("<main>")[1].split('id="about"')[0].replace("Failures and", "")
    )
    head, *_ = rows(html, "trials-table")
    assert head[3:7] == ["yield", "purity", "cost", "size"] and "limit broken" in head and {"mu", "sd"} <= {*head}
    for name in ("importance", "slices", "contours", "calibration"):
        headings = re.findall(r"<h3>(\w+)<span", report.sections(run, only=[name])[0].html)
        assert headings == ["yield", "purity", "cost", "size"]
    assert "size: must be at most 44" in page.text and "cost: only watched" in page.text


def test_a_target_is_approached_and_its_map_is_bright_near_it() -> None:
    run = match()
    assert "is the closest to the target of size" in section(run, "found").text
    assert "tradeoffs" not in {one.id for one in report.sections(run)}
    assert "smallest distance of size from 42" in section(run, "convergence").text
    (maps,) = report.sections(run, only=["contours"])
    bar = re.findall(r'<rect [^>]*height="14" fill="(#\w{6})"', maps.html)[:10]
    bright = [sum(int(colour[i : i + 2], 16) for i in (1, 3, 5)) for colour in bar]
    assert 0 < int(np.argmax(bright)) < len(bar) - 1  # the brightest colour is in the middle, where the target is


def hostile() -> gpmi.Optimizer:
    return several_outcomes({"yield": HOSTILE, "cost": "cost $", "purity": "<u>"})


def conditional() -> Any:
    space = {"kind": ["plain", HOSTILE], "knob": gpmi.Real(0.01, 1.0, log=True, when={"kind": "plain"})}
    f = lambda p: {"a": p.get("knob", 0.5), "b": p.get("knob", 0.2) ** 2}  # noqa: E731
    return gpmi.optimize(f, space, goals={"a": "max", "b": "min"}, budget=8, seed=0)


def table() -> Any:
    frame = pd.DataFrame({"size": [1, 2, 3, 1, 2, 3], "kind": list("uuuvvv")}, index=[f"<row {i}>" for i in range(6)])
    f = lambda p: {"a": float(p["size"]), "b": float(p["size"] ** 2 - (p["kind"] == "v"))}  # noqa: E731
    return gpmi.optimize(f, frame, goals={"a": "max", "b": "min"}, budget=5, seed=0)


def told(goals: Any, *outcomes: dict[str, float]) -> gpmi.Optimizer:
    opt = gpmi.Optimizer(SPACE, goals=goals, seed=0, n_init=4, **PRIOR)
    for i, outputs in enumerate(outcomes):
        opt.tell({"heat": 0.1 * i, "time": 1.0 - 0.1 * i}, outputs)
    return opt


KINDS = {
    "nothing": lambda: gpmi.Optimizer(SPACE, goals=TWO, seed=0),
    "one output of one trial": lambda: told(TWO, {"yield": 1.0}),
    "one trial": lambda: told({"a": "max", "b": "min"}, {"a": 1.0, "b": 2.0}),
    "equal values": lambda: told({"a": "max", "b": "min"}, *[{"a": 1.0, "b": 2.0}] * 5),
    "huge values": lambda: told(
        {"a": "max", "b": "max"}, *[{"a": 10.0 ** (4 * i), "b": 10.0 ** (-4 * i)} for i in range(6)]
    ),
    "infeasible": lambda: told(
        {"a": "max", "b": "min", "c": gpmi.AtLeast(9)}, *[{"a": i, "b": i**2, "c": 1.0 + i} for i in range(6)]
    ),
    "unacceptable": lambda: told({"a": gpmi.Max(99), "b": "min"}, *[{"a": i, "b": i**2} for i in range(6)]),
    "six objectives": lambda: told(
        dict.fromkeys("abcdef", "min"), *[{n: (i - j) ** 2.0 for j, n in enumerate("abcdef")} for i in range(6)]
    ),
    "failed": lambda: gpmi.optimize(lambda p: 1 / 0, SPACE, goals=TWO, budget=3, seed=0, on_failure="learn"),
    **{f.__name__: f for f in (two, three, single, match, hostile, conditional, table)},
}  # fmt: skip


SLOW = ("six objectives", "three", "huge values", "equal values")


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=[pytest.mark.slow] * (kind in SLOW)) for kind in KINDS])
def test_every_section_of_any_run_with_goals_is_built_escaped_and_labelled(kind: str) -> None:
    html = report.page(KINDS[kind]())
    assert "could not be built" not in html
    page = Strict(html)
    levels = [int(tag[1]) for tag, _ in page.found if tag in ("h1", "h2", "h3", "h4")]
    assert levels[0] == 1 and all(below <= above + 1 for above, below in pairwise(levels))
    assert len([tag for tag, _ in page.found if tag == "script"]) == 1
    for _, attributes in page.found:
        assert not any(name.startswith("on") or name in ("style", "src") for name in attributes)
        assert attributes.get("href", "#").startswith("#")
    for found in re.findall(r"<table.*?</table>", html, flags=re.DOTALL):
        assert "<caption" in found and not re.search(r"<th(?![^>]* scope=)[ >]", found)
    for svg in re.findall(r"<svg[^>]*class=\"chart\".*?</svg>", html, flags=re.DOTALL):
        assert re.search(r'role="(img|group)"', svg) and "<title>" in svg and "<desc>" in svg
        assert not re.search(r"=\"[^\"]*\b(nan|inf)\b", svg)
    ids = [attributes["id"] for _, attributes in page.found if "id" in attributes]
    assert len(ids) == len(set(ids))
    for number in re.findall(r'href="#(front-\d+)"', html):
        assert number in ids


def test_names_of_outputs_are_shown_literally_and_never_executed() -> None:
    html = report.page(hostile())
    page = Strict(html)
    assert HOSTILE.replace("\x00", "") in page.text and "<u>" in page.text
    assert "<script>alert" not in html and "\x00" not in html
    assert not [tag for tag, _ in page.found if tag == "u"]


@pytest.mark.slow
def test_the_same_run_gives_the_same_report() -> None:
    assert report.page(two()) == report.page(two())


def test_a_report_without_goals_has_none_of_this() -> None:
    def f(x: Any) -> gpmi.Measured:
        return gpmi.Measured(float(x[0]), constraints=[x[0] - 0.9, x[1] - 0.9])

    run = gpmi.maximize(f, [(0.0, 1.0)] * 2, budget=10, n_init=5, seed=0, **PRIOR)
    built = {one.id: one.html for one in report.sections(run)}
    assert [*built] == [
        name for name in report.IDS if name not in ("tradeoffs", "curves", "cost", "options", "mixture")
    ]
    text = "".join(built.values())
    assert not re.search(r"front|hypervolume|output|limit|<h3>(?!What the library)", text)
    head, *_ = rows(built["trials"], "trials-table")
    assert head == ["trial", "x0", "x1", "y", "constraint 1", "constraint 2", "status", "mu", "sd", "origin", "note"]
    assert "How f changes with one parameter while the others stay at the recommended point" in built["slices"]
    assert "values violate a constraint (it was measured above 0)." in built["failures"]
    assert [*re.findall(r'<th scope="row">(\w+)', built["about"])][:2] == ["goal", "seed"]


def test_the_pictures_of_a_front_can_be_part_of_another_page() -> None:
    """As the pages of `gpmi serve` use them: with links to trials, and recipes with links."""
    run = two()
    front = {trial.number for trial in run.front}
    html = trade_offs(
        run.goals,
        run.trials,
        front,
        lambda trial: Recipe(
            f"<b>{trial.number}", [("yield", "1 %")], [("heat", "2 °C")], "a note", f"/t/{trial.number}"
        ),
        link=lambda trial: f"/t/{trial.number}",
    )
    page = Strict(html)
    links = {int(one["data-number"]): one["href"] for one in page.of_class("front-point")}
    assert links == {t.number: f"#front-{t.number}" if t.number in front else f"/t/{t.number}" for t in run.trials}
    assert page.text.count("a note") == 14 + len(front) and "<b>" not in html and 'class="area"' not in html
    hidden = [json.dumps("hidden" in card) for card in page.of_class("front-recipe")]
    assert hidden.count("false") == 1
