"""A mixture with temperature, solvent and two results is created by clicking alone, on a desktop and on a phone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("sqlalchemy")
import chromium
from chromium import accessibility_problems, fill, set_viewport, start_browser
from laboratory import running_server
from test_serve_browser import click, console_errors, find, text_on, until

import gpmi

pytestmark = chromium.MARKS
FORM = "form[action='/new/parameters']"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    started = start_browser(tmp_path_factory.mktemp("profile"))
    yield started
    started.quit()


def press(browser: Any, selector: str) -> None:
    """Press a button that stays on the page."""
    button = find(browser, selector)
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
    button.click()


@pytest.mark.parametrize("width", [390, 1280])
def test_a_mixture_is_created_by_clicking(browser: Any, tmp_path: Path, width: int) -> None:
    set_viewport(browser, width, False)
    with running_server(str(tmp_path / "new.db")) as base:
        browser.get(f"{base}/new")
        fill(browser, FORM, {"study": "paint", "goal": "goals", "budget": "30"})
        for i, name in enumerate("ABC"):
            part = {f"kind-{i}": "number", f"name-{i}": name, f"lo-{i}": "0", f"hi-{i}": "1", f"step-{i}": "0.01"}
            fill(browser, FORM, {**part, f"part-{i}": "on"})
        press(browser, "#add-row")
        fill(browser, FORM, {"name-3": "temperature", "lo-3": "20", "hi-3": "90", "step-3": "0.5", "unit-3": "°C"})
        press(browser, "#add-row")
        fill(browser, FORM, {"name-4": "solvent", "kind-4": "choice", "options-4": "THF, DMF, water"})
        fill(browser, FORM, {"output-name-0": "yield", "output-number-0": "40", "output-unit-0": "%"})
        fill(
            browser,
            FORM,
            {"output-low-0": "0", "output-high-0": "100", "output-name-1": "cost", "output-kind-1": "min"},
        )
        fill(browser, FORM, {"mixture-sum": "1", "mixture-most": "2", "rules": "A + D <= 0.9"})
        assert not find(browser, "[name=lo-4]").is_displayed() and find(browser, "[name=options-4]").is_displayed()

        click(browser, f"{FORM} button.main")  # refused: there is no D
        assert text_on(browser).count("has the name D") == 2 and accessibility_problems(browser) == []
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        wrong = find(browser, "[aria-invalid]")
        assert wrong.get_attribute("name") == "rules" and wrong.get_attribute("value") == "A + D <= 0.9"
        assert find(browser, "[name=part-2]").is_selected()
        assert find(browser, "[name=step-3]").get_attribute("value") == "0.5"
        fill(browser, FORM, {"rules": "A + B <= 0.9"})
        click(browser, f"{FORM} button.main")
        assert "The study was created." in text_on(browser)

        count = find(browser, "#n")
        count.clear()
        count.send_keys("4")
        click(browser, "#ask button")
        until(lambda: len(browser.find_elements("css selector", "tr[data-number]")) == 4)
        assert "yield (%)" in str(browser.page_source) and console_errors(browser) == []
        assert accessibility_problems(browser) == []
    with gpmi.study(tmp_path / "new.db", "paint") as study:
        assert len(study.trials) == 4
        for trial in study.trials:
            x = trial.x
            assert x["A"] + x["B"] + x["C"] == pytest.approx(1.0) and x["A"] + x["B"] <= 0.9 + 1e-9
            assert sum(x[name] > 0.0 for name in "ABC") <= 2 and x["temperature"] % 0.5 == 0.0
            assert all(round(x[name], 2) == x[name] for name in "ABC")


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_form_is_accessible_with_everything_shown(browser: Any, tmp_path: Path, width: int, dark: bool) -> None:
    set_viewport(browser, width, dark)
    with running_server(str(tmp_path / "new.db")) as base:
        browser.get(f"{base}/new")
        fill(browser, FORM, {"goal": "goals"})
        press(browser, f"{FORM} details.more summary")
        assert accessibility_problems(browser) == []
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        assert not find(browser, "[name=result-name]").is_displayed()
        fill(browser, FORM, {"goal": "min"})
        assert find(browser, "[name=result-name]").is_displayed() and not find(browser, "#outputs").is_displayed()
        assert accessibility_problems(browser) == [] and console_errors(browser) == []
