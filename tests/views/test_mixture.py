"""Mixtures in reports: triangles, moves along the mixture, and no empty pictures."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpmi
from gpmi.views.html import sections
from gpmi.views.html.mixture import part_above, triangle_paths
from gpmi.views.reading import view_of

SPACE = {"a": (0.0, 1.0), "b": (0.0, 1.0), "c": (0.0, 1.0), "t": (20.0, 90.0)}


def made(goals: object = None, rule: str = "a + b + c == 1", **space: object) -> gpmi.Optimizer:
    optimizer = gpmi.Optimizer({**SPACE, **space}, constraints=[rule], seed=0, **({"goals": goals} if goals else {}))
    for _ in range(14):
        x = optimizer.ask()
        y = 2.0 * x["a"] - x["b"] ** 2 - ((x["t"] - 50.0) / 40.0) ** 2
        optimizer.tell(x, y if goals is None else {"yield": y, "cost": x["a"]})
    return optimizer


def texts(optimizer: gpmi.Optimizer) -> dict[str, str]:
    return {one.id: one.html for one in sections(optimizer, only=["mixture", "slices", "contours"])}


def test_three_components_have_a_triangle_and_no_empty_slices() -> None:
    found = texts(made())
    assert found["mixture"].count("<figure>") == 1 and "a 1" in found["mixture"]
    assert found["slices"].count("<figure>") == 4 and "fall in proportion" in found["slices"]
    assert "nan" not in found["mixture"] + found["slices"]
    titles = re.findall(r"<title>(.*?)</title>", found["contours"])
    assert not any("a and b" in title or "b and a" in title for title in titles)  # the triangle has them


def test_every_output_has_its_triangle() -> None:
    assert texts(made({"yield": "max", "cost": "min"}))["mixture"].count("<figure>") == 2


def test_a_triangle_of_four_components_shows_three_of_them() -> None:
    found = texts(made(rule="a + b + c + d == 1", d=(0.0, 0.4)))
    assert found["mixture"].count("<figure>") == 1


def test_runs_without_a_mixture_have_no_triangle() -> None:
    assert "mixture" not in texts(made(rule="a + b + c <= 2"))


def test_moves_along_the_mixture_are_inside_the_space() -> None:
    run = view_of(made())
    row = run.recommended_row
    assert row is not None
    for axis in run.axes(21):
        rows = run.along(axis, row)
        if run.mixture_of(axis) is not None:
            assert rows[:, :3].sum(axis=1) == pytest.approx(1.0) and run.inside(rows).all()


def test_figures_of_a_mixture_are_not_empty() -> None:
    pytest.importorskip("matplotlib")
    figure = gpmi.plots.slices(made())
    for ax in figure.axes[:3]:
        line = next(line for line in ax.lines if len(line.get_ydata()) > 100)
        assert np.isfinite(line.get_ydata()).mean() > 0.9


def test_the_figure_of_a_triangle() -> None:
    pytest.importorskip("matplotlib")
    figure = gpmi.plots.ternary(made({"yield": "max", "cost": "min"}))
    shown = [text.get_text() for ax in figure.axes for text in ax.texts]
    assert shown == ["a 1", "b 1", "c 1"] * 2
    assert len(gpmi.plots.ternary(made({"yield": "max", "cost": "min"}), output="cost").axes) == 2  # with its colours
    with pytest.raises(ValueError, match="no mixture"):
        gpmi.plots.ternary(made(rule="a + b + c <= 2"))


@given(st.lists(st.floats(-1.0, 1.0), min_size=3, max_size=3), st.floats(-1.0, 1.0))
def test_the_part_above_a_level_is_where_the_plane_is_above_it(values: list[float], level: float) -> None:
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    y = np.array(values)
    if np.ptp(y) < 1e-3 or not y.min() < level <= y.max() or np.abs(y - level).min() < 1e-6:
        return
    part = part_above(corners, y, level)
    inside = y[0] + part @ np.array([y[1] - y[0], y[2] - y[0]])
    assert np.all(inside >= level - 1e-9)
    x, z = part.T
    area = 0.5 * abs(float(x @ np.roll(z, -1) - z @ np.roll(x, -1)))
    grid = (np.stack(np.meshgrid(np.arange(200), np.arange(200)), axis=-1).reshape(-1, 2) + 0.5) / 200.0
    grid = grid[grid.sum(axis=1) < 1.0]
    share = float(np.mean(y[0] + grid @ np.array([y[1] - y[0], y[2] - y[0]]) >= level))
    assert area == pytest.approx(0.5 * share, abs=0.02)  # a Riemann sum


def test_levels_are_painted_from_the_lowest_up_and_unknown_places_stay_empty() -> None:
    places, small = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.array([[0, 1, 2], [1, 2, 3]])
    levels, colours = np.array([0.0, 1.0, 2.0]), ["#000000", "#ffffff"]
    paths = triangle_paths(places, small, np.array([0.5, 1.5, 0.5, np.nan]), levels, colours)
    assert [re.search('fill="(.*?)"', path)[1] for path in paths] == colours
    assert paths[0].count("M") == 1


def test_what_is_drawn_of_a_triangle_is_within_the_ranges() -> None:
    run = view_of(made(a=(0.1, 0.6)))
    row = run.recommended_row
    assert row is not None
    rows = np.array([row, row, row, row])
    rows[:, 0] = (0.05, 0.1, 0.6, 0.65)
    rows[:, 1:3] = 0.5 * (1.0 - rows[:, :1])
    assert run.inside(rows).tolist() == [False, True, True, False]
