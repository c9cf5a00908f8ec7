"""The report of a front in a real browser: sliders, recipes, the keyboard, no script, phone and desktop."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import chromium
import numpy as np
import pytest
from chromium import EVIL, SCREENSHOTS, accessibility_problems, set_viewport

import gpmi
from gpmi import kernels
from gpmi.views.reading import view_of

pytestmark = chromium.MARKS
SPACE = {"heat": gpmi.Real(0.0, 1.0, unit="°C"), "time": (0.0, 1.0), "kind": ["a", EVIL]}
GOALS = {"yield": gpmi.Max(at_least=0.1), EVIL: gpmi.Min(at_most=2.0), "purity": gpmi.AtLeast(0.4)}


def react(p: Any) -> dict[str, float]:
    amount = float(np.sin(2.0 * p["heat"]) + 0.3 * p["time"])
    return {"yield": amount, EVIL: 0.3 + p["heat"] ** 2 + p["time"], "purity": 1.0 - 0.7 * p["heat"]}


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    one = chromium.start_browser(tmp_path_factory.mktemp("profile"))
    yield one
    one.quit()


@pytest.fixture(scope="module")
def run() -> Any:
    prior = {"kernel": kernels.RBF(0.6), "noise_var": 1e-6}
    return gpmi.optimize(react, SPACE, goals=GOALS, budget=22, n_init=8, seed=0, **prior)


@pytest.fixture(scope="module")
def page(run: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(run.report(tmp_path_factory.mktemp("report") / "run.html", title=EVIL))


def move(browser: Any, number: int, share: float) -> None:
    """Move a slider, as a person does."""
    script = """
        const slider = document.querySelectorAll(".front-limit")[arguments[0]];
        slider.value = arguments[1] * slider.max;
        slider.dispatchEvent(new Event("input", { bubbles: true }));
    """
    browser.execute_script(script, number, share)


def left(browser: Any) -> set[int]:
    """Return the numbers of the points of the front that are not faded."""
    found = browser.find_elements("css selector", ".front-point.front:not(.faded)")
    return {int(one.get_attribute("data-number")) for one in found}


def recipe(browser: Any) -> Any:
    """Return the recipe that is shown."""
    (shown,) = [one for one in browser.find_elements("css selector", ".front-recipe") if one.is_displayed()]
    return shown


@pytest.mark.parametrize("width", [360, 1400])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_report_of_a_front_is_accessible(browser: Any, page: Path, width: int, dark: bool) -> None:
    set_viewport(browser, width, dark)
    browser.get(page.as_uri())
    assert accessibility_problems(browser) == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.title == EVIL and not browser.find_elements("css selector", "img")
    assert [one["message"] for one in browser.get_log("browser")] == []
    for chart in browser.find_elements("css selector", "svg.chart"):
        assert chart.size["height"] > 20 and chart.get_attribute("aria-label")


def test_a_slider_fades_what_it_excludes_and_shows_the_recipe_next_to_it(browser: Any, run: Any, page: Path) -> None:
    set_viewport(browser, 1400, False)
    browser.get(page.as_uri())
    front = {trial.number: trial for trial in run.front}
    assert left(browser) == {*front} and int(recipe(browser).get_attribute("data-number")) == view_of(run).middle.number
    values = np.array([trial.outputs["yield"] for trial in run.front])
    move(browser, 0, 0.5)
    limit = 0.5 * (values.min() + values.max())
    kept = {number for number, trial in front.items() if trial.outputs["yield"] >= limit}
    assert 0 < len(kept) < len(front) and left(browser) == kept
    assert (
        browser.find_element("css selector", ".front-left").text
        == f"{len(kept)} of {len(front)} trials on the front are left."
    )
    assert browser.find_element("css selector", ".front-value").text.startswith("at least ")
    next_to_it = min(kept, key=lambda number: front[number].outputs["yield"])
    shown = recipe(browser)
    assert int(shown.get_attribute("data-number")) == next_to_it
    assert (
        f"{front[next_to_it].outputs['yield']:.6g}" in shown.text
        and f"{front[next_to_it].x['heat']:.6g} °C" in shown.text
    )
    faded = browser.find_elements("css selector", "#front-table tr.faded")
    assert {one.get_attribute("id") for one in faded} == {f"front-{number}" for number in {*front} - kept}
    move(browser, 1, 0.0)  # nothing is as good as the best of both
    assert left(browser) == set()
    assert browser.find_element("css selector", ".front-none").text == "No trial on the front meets this."
    move(browser, 0, 0.0)
    move(browser, 1, 1.0)
    assert left(browser) == {*front}


def test_the_recipe_behind_a_point_is_shown_by_a_click_and_by_the_keyboard(browser: Any, run: Any, page: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    set_viewport(browser, 1400, False, 2000)
    browser.get(page.as_uri())
    in_order = sorted(run.front, key=lambda trial: trial.outputs["yield"])
    first, second = in_order[0].number, in_order[1].number
    point = browser.find_element("css selector", f'.front-point[data-number="{first}"]')
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", point)
    point.click()
    assert int(recipe(browser).get_attribute("data-number")) == first
    assert "front" not in browser.execute_script("return location.hash")  # the page did not jump to the table
    point.send_keys(Keys.ARROW_RIGHT)
    assert int(recipe(browser).get_attribute("data-number")) == second
    in_tab_order = browser.find_elements("css selector", '.front-point[tabindex="0"]')
    assert [int(one.get_attribute("data-number")) for one in in_tab_order] == [second]


def test_without_a_script_the_front_is_a_picture_with_one_recipe(page: Path, run: Any, tmp_path: Path) -> None:
    plain = chromium.start_browser(tmp_path / "profile", scripts=False)
    try:
        set_viewport(plain, 1400, False)
        plain.get(page.as_uri())
        assert not [one for one in plain.find_elements("css selector", ".front-limit") if one.is_displayed()]
        assert int(recipe(plain).get_attribute("data-number")) == view_of(run).middle.number
        points = plain.find_elements("css selector", "a.front-point")
        assert {one.get_dom_attribute("href") for one in points} == {f"#front-{t.number}" for t in run.front}
        assert len(plain.find_elements("css selector", "#front-table tbody tr")) == len(run.front)
    finally:
        plain.quit()


@SCREENSHOTS
def test_screenshots_for_the_documentation(browser: Any, tmp_path: Path) -> None:
    """Take front.png and front-phone.png for docs/report.md, in 64 colours, of which rare ones are some."""
    from PIL import Image

    rng = np.random.default_rng(1)
    space = {
        "temperature": gpmi.Real(20.0, 90.0, unit="°C"),
        "time": gpmi.Real(0.5, 24.0, log=True, unit="h"),
        "equivalents": gpmi.Real(1.0, 3.0),
        "catalyst": ["Pd", "Ni", "Cu"],
    }
    goals = {"yield": gpmi.Max(at_least=50.0), "cost": gpmi.Min(at_most=60.0), "purity": gpmi.AtLeast(0.95)}

    def react(p: Any) -> dict[str, float]:
        hot, long = (p["temperature"] - 64.0) / 22.0, np.log(p["time"] / 6.0)
        most = {"Pd": 52.0, "Ni": 40.0, "Cu": 34.0}[p["catalyst"]]
        amount = 38.0 + most * np.exp(-(hot**2) - 0.4 * long**2 - 0.25 * (p["equivalents"] - 2.2) ** 2)
        price = {"Pd": 30.0, "Ni": 9.0, "Cu": 5.0}[p["catalyst"]] + 6.0 * p["equivalents"] + 0.5 * p["time"]
        loss = 0.06 / (1.0 + np.exp((72.0 - p["temperature"]) / 4.0)) + 0.01 * (p["equivalents"] - 1.0) ** 2
        return {
            "yield": round(float(amount + 0.5 * rng.normal()), 1),
            "cost": round(float(price), 2),
            "purity": round(float(0.99 - loss + 0.001 * rng.normal()), 4),
        }

    run = gpmi.optimize(react, space, goals=goals, budget=45, seed=0)
    path = run.report(tmp_path / "run.html", title="Yield and cost of a coupling")
    for name, width, height, dark in (("front", 1000, 900, False), ("front-phone", 390, 1500, True)):
        set_viewport(browser, width, dark, height)
        browser.get(path.as_uri())
        move(browser, 0, 0.6)
        browser.execute_script("document.getElementById('tradeoffs').scrollIntoView()")
        file = Path(os.environ["GPMI_SCREENSHOTS"]) / f"report/{name}.png"
        browser.save_screenshot(str(file))
        Image.open(file).convert("RGB").quantize(64, Image.Quantize.MAXCOVERAGE).save(file, optimize=True)
