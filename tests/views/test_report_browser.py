"""A report in a real browser: light and dark, phone and desktop, no console error, no serious accessibility problem."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import chromium
import numpy as np
import pytest
from chromium import EVIL, SCREENSHOTS, accessibility_problems, save_screenshot, set_viewport

import gpmi

pytestmark = chromium.MARKS
SPACE = {
    "temperature": gpmi.Real(20.0, 90.0, unit="°C"),
    "rate": gpmi.Real(1e-4, 1.0, log=True),
    "layers": gpmi.Int(1, 6),
    EVIL: ["relu", "tanh", EVIL],
}


def f(p: dict[str, Any]) -> float:
    if p["temperature"] > 80.0:
        raise RuntimeError(EVIL)
    return float(-((np.log10(p["rate"]) + 2.0) ** 2) - (p["layers"] - 3) ** 2 + (p[EVIL] == "tanh"))


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    one = chromium.start_browser(tmp_path_factory.mktemp("profile"))
    yield one
    one.quit()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = gpmi.maximize(f, SPACE, budget=25, seed=0, on_failure="learn")
    return run.report(tmp_path_factory.mktemp("report") / "run.html", title=EVIL)


@pytest.mark.parametrize("width", [360, 1400])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_report_is_accessible(browser: Any, page: Path, width: int, dark: bool) -> None:
    set_viewport(browser, width, dark)
    browser.get(page.as_uri())
    assert accessibility_problems(browser) == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.title == EVIL and not browser.find_elements("css selector", "img")
    assert [one["message"] for one in browser.get_log("browser")] == []
    for chart in browser.find_elements("css selector", "svg.chart"):
        assert chart.size["height"] > 20 and chart.get_attribute("aria-label")


def test_the_table_can_be_sorted_filtered_and_copied(browser: Any, page: Path) -> None:
    browser.get(page.as_uri())

    def column(title: str) -> list[str]:
        script = """
            const table = document.getElementById("trials-table");
            const at = [...table.tHead.rows[0].cells].findIndex((cell) => cell.textContent === arguments[0]);
            return [...table.tBodies[0].rows].filter((row) => !row.hidden).map((row) => row.cells[at].textContent);
        """
        return list(browser.execute_script(script, title))

    def press(title: str) -> None:
        for button in browser.find_elements("css selector", "#trials-table button.sort"):
            if button.text == title:
                browser.execute_script("arguments[0].scrollIntoView({block: 'center', inline: 'center'})", button)
                button.click()

    press("y")
    values = [float(text) for text in column("y") if text]
    assert values == sorted(values) and len(values) < len(column("y"))
    press("y")
    values = [float(text) for text in column("y") if text]
    assert values == sorted(values, reverse=True) and column("y")[-1] == ""  # what has no value comes last
    browser.find_element("css selector", "input.filter").send_keys("failed")
    assert set(column("status")) == {"failed"}
    assert browser.find_element("css selector", ".count").text == f"{len(column('status'))} of 25"
    button = browser.find_element("css selector", "button.copy[data-table]")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
    button.click()
    browser.implicitly_wait(2)
    assert browser.find_element("xpath", "//button[text()='Copied']")


@SCREENSHOTS
def test_screenshots_for_the_documentation(browser: Any, tmp_path: Path) -> None:
    """Take desk.png and phone.png for docs/report.md."""
    rng = np.random.default_rng(1)
    space = {
        "temperature": gpmi.Real(20.0, 90.0, unit="°C"),
        "time": gpmi.Real(0.5, 24.0, log=True, unit="h"),
        "catalyst": ["Pd", "Ni"],
        "stirring": gpmi.Int(1, 5),
    }

    def yields(p: dict[str, Any]) -> float:
        if p["temperature"] > 82.0:
            raise RuntimeError("it boiled over")
        hot, long = (p["temperature"] - 64.0) / 18.0, np.log(p["time"] / 6.0)
        high = (45.0 if p["catalyst"] == "Pd" else 36.0) * np.exp(-(hot**2) - 0.5 * long**2)
        return float(40.0 + high - 0.3 * (p["stirring"] - 4) ** 2 + 0.5 * rng.normal())

    run = gpmi.maximize(yields, space, budget=45, seed=0, on_failure="learn")
    path = run.report(tmp_path / "run.html", title="Yield of a reaction")
    for name, width, height, dark in (("desk", 1000, 1415, False), ("phone", 390, 1500, True)):
        set_viewport(browser, width, dark, height)
        browser.get(path.as_uri())
        save_screenshot(browser, f"report/{name}.png")
