"""Options of a choice in pictures and tables: each is judged at its own best setting of the other parameters."""

from __future__ import annotations

import html
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gpmi
from gpmi import plots
from gpmi._support.text import percent
from gpmi.views.html import report
from gpmi.views.pictures.slices import MEAN, OWN_BEST

HEIGHTS = {"a": 0.6, "b": 1.0, "c": 0.8}
PLACES = {"a": 0.2, "b": 0.5, "c": 0.8}
SPACE: dict[str, Any] = {"x": (0.0, 1.0), "o": list(HEIGHTS), "z": (0.0, 1.0)}


def hill(p: Any) -> float:
    """Each option has a hill of its own, far from those of the others."""
    return HEIGHTS[p["o"]] * float(np.exp(-0.5 * ((p["x"] - PLACES[p["o"]]) / 0.1) ** 2))


def points() -> list[dict[str, Any]]:
    """Return 11 points on the line of each option."""
    return [{"x": i / 10, "o": option, "z": (3 * i % 11) / 10} for i in range(11) for option in HEIGHTS]


def told(value: Any, space: Any = SPACE, **options: Any) -> gpmi.Optimizer:
    """Return an Optimizer that was told a value at each point."""
    opt = gpmi.Optimizer(space, seed=0, **options)
    for point in points():
        opt.tell(point, value(point))
    return opt


@pytest.fixture(scope="module")
def run() -> gpmi.Optimizer:
    return told(hill)


def drawn(source: Any, **how: Any) -> dict[str, Any]:
    """Return the panels of slices by the names at their x axes."""
    return {ax.get_xlabel(): ax for ax in plots.slices(source, **how).axes}


def heights(ax: Any) -> np.ndarray:
    """Return what a panel shows of the options, in their order."""
    (line,) = (line for line in ax.get_lines() if line.get_label() == MEAN)
    return np.asarray(line.get_ydata())


def section(source: Any, name: str) -> str:
    return "".join(part.html for part in report.sections(source, only=[name]))


CHOICE = f"o\n{OWN_BEST}"


def test_every_option_is_drawn_at_its_own_best_setting(run: gpmi.Optimizer) -> None:
    np.testing.assert_allclose(heights(drawn(run)[CHOICE]), list(HEIGHTS.values()), atol=0.05)


def test_a_function_is_drawn_at_the_same_points(run: gpmi.Optimizer) -> None:
    ax = {ax.get_xlabel(): ax for ax in plots.slices(run, hill).axes}[CHOICE]
    (line,) = (line for line in ax.get_lines() if line.get_label() == "f")
    np.testing.assert_allclose(line.get_ydata(), [hill(option.x) for option in run.options])


def test_the_smallest_value_of_each_option_is_drawn_where_small_is_good() -> None:
    opt = told(lambda p: -hill(p), goal="min")
    np.testing.assert_allclose(heights(drawn(opt)[CHOICE]), [-0.6, -1.0, -0.8], atol=0.05)


def test_rows_of_a_table_are_drawn_at_the_best_row_of_each_option() -> None:
    opt = told(hill, pd.DataFrame(points()))
    best = [max(hill(p) for p in points() if p["o"] == option) for option in HEIGHTS]
    np.testing.assert_allclose(heights(drawn(opt)[CHOICE]), best, atol=0.05)
    assert "best believed" in section(opt, "options")


def test_a_limit_is_drawn_where_the_objective_is_best() -> None:
    goals = {"gain": "max", "heat": gpmi.AtMost(2.0)}
    opt = told(lambda p: {"gain": hill(p), "heat": p["x"]}, goals=goals)
    np.testing.assert_allclose(heights(drawn(opt, output="heat")[CHOICE]), list(PLACES.values()), atol=0.06)


def test_each_objective_has_its_own_best_settings() -> None:
    opt = told(lambda p: {"up": p["x"], "down": p["x"]}, goals={"up": "max", "down": "min"})
    assert heights(drawn(opt, output="up")[CHOICE]).min() > 0.9
    assert heights(drawn(opt, output="down")[CHOICE]).max() < 0.1
    table = section(opt, "options")
    assert "Options of o for up" in table and "Options of o for down" in table


def test_an_option_has_no_best_setting_for_a_target() -> None:
    opt = told(lambda p: {"size": p["x"], "gain": hill(p)}, goals={"size": gpmi.Match(0.5, within=0.2), "gain": "max"})
    assert CHOICE not in drawn(opt, output="size") and CHOICE in drawn(opt, output="gain")
    assert "for size" not in section(opt, "options")


def test_an_option_that_constraints_forbid_is_left_out() -> None:
    opt = gpmi.Optimizer(SPACE, seed=0, constraints=[gpmi.Forbidden(o="c")])
    for point in points():
        if point["o"] != "c":
            opt.tell(point, hill(point))
    assert len(heights(drawn(opt)[CHOICE])) == 2 and "no point has it" in section(opt, "options")


def test_before_there_are_enough_values_options_are_drawn_at_the_recommended_point() -> None:
    opt = gpmi.Optimizer(SPACE, seed=0)
    for point in points()[:6]:
        opt.tell(point, hill(point))
    row = np.tile(opt.space.encode(opt.recommend()), (3, 1))
    row[:, 1:4] = np.eye(3)
    np.testing.assert_allclose(heights(drawn(opt)["o"]), opt.posterior(row)[0])
    assert section(opt, "options") == ""


def test_an_only_parameter_has_no_other_settings() -> None:
    opt = gpmi.Optimizer({"o": list("abc")}, seed=0)
    for option in "abcabcabc":
        opt.tell({"o": option}, float("abc".index(option)))
    assert list(drawn(opt)) == ["o"]
    assert '<th scope="col">at</th>' not in section(opt, "options")


def test_a_report_says_it_and_has_the_numbers_of_each_option(run: gpmi.Optimizer) -> None:
    slices = section(run, "slices")
    assert f"The options of o are drawn {OWN_BEST} of the other parameters." in slices
    assert slices.count(f"<figcaption>{OWN_BEST}</figcaption>") == 1
    hints = re.findall(r"<g><title>([^<]*)</title>", slices)
    chances = {option.option: percent(option.chance or 0.0) for option in run.options}
    assert hints == [f"{option}: 11 values, holds the best with {chance}" for option, chance in chances.items()]


def test_a_report_has_the_options_as_a_table(run: gpmi.Optimizer) -> None:
    table = html.unescape(section(run, "options"))
    first, *_ = re.findall(r"<tr>(.*?)</tr>", table.partition("<tbody>")[2])
    best = next(option for option in run.options if option.option == "b")
    cells = ["b", percent(best.chance or 0.0), best.believed, "11"]
    assert re.sub("<[^>]*>", "|", first).replace("||", "|").split("|")[1:5] == cells
    assert re.search(r"x 0\.[45]\d*, z ", first)


def test_a_run_without_a_choice_has_no_table_of_options() -> None:
    opt = gpmi.Optimizer({"x": (0.0, 1.0)}, seed=0)
    for x in np.linspace(0.0, 1.0, 12):
        opt.tell({"x": float(x)}, float(x))
    assert section(opt, "options") == "" and OWN_BEST not in section(opt, "slices")


def test_names_of_options_are_escaped() -> None:
    opt = gpmi.Optimizer({"x": (0.0, 1.0), "o": ["<b>1</b>", "2"]}, seed=0)
    for i in range(16):
        opt.tell({"x": i / 15, "o": ["<b>1</b>", "2"][i % 2]}, i / 15)
    assert "<b>1" not in section(opt, "options") + section(opt, "slices")
    assert "&lt;b&gt;1" in section(opt, "options")
