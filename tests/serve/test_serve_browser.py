"""`gpmi serve` in a real browser: a whole study by clicking, an empty console, no serious problem found by axe-core."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import chromium
import numpy as np
import pytest
from chromium import EVIL, SCREENSHOTS, accessibility_problems, save_screenshot, set_viewport
from laboratory import create_study, running_server
from waiting import LIMIT

import gpmi

pytestmark = chromium.MARKS
SPACE = {
    "temperature": gpmi.Real(20.0, 90.0, unit="°C"),
    "time": gpmi.Real(0.5, 24.0, log=True, unit="h"),
    "catalyst": ["Pd", "Ni"],
}
# What may be in the console: that a page deliberately answered with one of these statuses.
EXPECTED = ("status of 400", "status of 409", "status of 404")


def yields(x: dict[str, Any]) -> float:
    hot, long = (x["temperature"] - 64.0) / 18.0, math.log(x["time"] / 6.0)
    return 40.0 + (45.0 if x["catalyst"] == "Pd" else 36.0) * math.exp(-(hot**2) - 0.5 * long**2)


@pytest.fixture(scope="module")
def starting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Any]]:
    """Yield a function that starts a browser. All browsers end with the module."""
    browsers = []

    def start(*, scripts: bool = True) -> Any:
        browsers.append(chromium.start_browser(tmp_path_factory.mktemp("profile"), scripts=scripts))
        return browsers[-1]

    yield start
    for one in browsers:
        one.quit()


@pytest.fixture(scope="module")
def browser(starting: Callable[..., Any]) -> Any:
    return starting()


def until(act: Callable[[], Any], seconds: float = LIMIT) -> Any:
    """Repeat `act` until its result is true, and return it. Errors of a page that is just changing are ignored."""
    from selenium.common.exceptions import WebDriverException

    end = time.monotonic() + seconds
    while True:
        try:
            found = act()
            if found:
                return found
        except WebDriverException:
            pass
        assert time.monotonic() < end, f"nothing came in {seconds} seconds"
        time.sleep(0.05)


def find(browser: Any, selector: str) -> Any:
    return until(lambda: browser.find_elements("css selector", selector))[0]


def click(browser: Any, selector: str) -> None:
    """Press a button of a form, and wait for the next page."""
    page = browser.find_element("tag name", "html")
    element = find(browser, selector)
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
    element.click()

    def gone() -> bool:
        try:
            return not page.is_enabled()
        except Exception:
            return True

    until(gone)
    until(lambda: browser.execute_script("return document.readyState") == "complete")


def text_on(browser: Any) -> str:
    return str(browser.execute_script("return document.body.innerText"))


def console_errors(browser: Any) -> list[str]:
    """Return what is in the console, without the expected statuses."""
    return [
        one["message"] for one in browser.get_log("browser") if not any(status in one["message"] for status in EXPECTED)
    ]


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Serve a study with results, a failure and waiting trials. Yield the URL of the server and the path."""
    path = create_study(tmp_path_factory.mktemp("begun"), space=SPACE, budget=30)
    with gpmi.study(path) as study:
        for _ in range(10):
            trial = study.ask()
            study.tell(trial, yields(trial.x))
        study.fail(study.ask(), why=EVIL)
        study.ask(3, lease=math.inf)
    with running_server(path) as base:
        yield base, path


@pytest.mark.parametrize("width", [360, 1400])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("page", ["/study/default", "/study/default/trials", "/study/default/trial/3", "/new", "/"])
def test_every_page_is_accessible(browser: Any, begun: tuple[str, str], page: str, dark: bool, width: int) -> None:
    set_viewport(browser, width, dark)
    browser.get(begun[0] + page)
    if page == "/study/default":
        until(lambda: "Working out" not in text_on(browser) and "being drawn" not in text_on(browser), 120.0)
    assert accessibility_problems(browser) == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.title != "hacked" and console_errors(browser) == []


def test_a_study_of_twenty_evaluations_is_done_by_clicking(browser: Any, tmp_path: Path) -> None:
    set_viewport(browser, 1400, False)
    with running_server(str(tmp_path / "new.db")) as base:
        browser.get(base)
        find(browser, "form[action='/new/parameters'] input[name=study]").send_keys("clicked")
        for selector, text in (("name-0", "x"), ("lo-0", "0"), ("hi-0", "1"), ("unit-0", "mm"), ("name-1", "kind")):
            find(browser, f"[name={selector}]").send_keys(text)
        find(browser, "[name=options-1]").send_keys("a, b")
        click(browser, "form[action='/new/parameters'] button.main")
        assert "clicked" in text_on(browser) and "The study was created." in text_on(browser)
        done = 0
        while done < 20:
            count = find(browser, "#n")
            count.clear()
            count.send_keys("5")
            click(browser, "#ask button")
            rows = until(lambda: browser.find_elements("css selector", "tr[data-number]"))
            assert len(rows) == 5
            for row in rows:
                cells = [cell.text for cell in row.find_elements("tag name", "td")]
                value = 1.0 - (float(cells[0]) - 0.3) ** 2 + (0.5 if cells[1] == "b" else 0.0)
                row.find_element("css selector", "input.result").send_keys(f"{value:.6f}")
            click(browser, "#results p button.main")
            done += 5
            assert "5 results saved." in text_on(browser)
        until(lambda: "The point to use" in text_on(browser) and "Working out" not in text_on(browser), 120.0)
        assert "20 results" in text_on(browser) and console_errors(browser) == []
        with gpmi.study(tmp_path / "new.db", "clicked") as study:
            assert study.best is not None and study.best.x["kind"] == "b" and abs(study.best.x["x"] - 0.3) < 0.1
            assert study.verify().agrees


def test_results_of_others_appear_live_and_typed_text_stays(browser: Any, tmp_path: Path) -> None:
    set_viewport(browser, 1400, False)
    path = create_study(tmp_path, space=[(0.0, 1.0)])
    with running_server(path) as base, gpmi.study(path) as other:
        first, second = other.ask(2, lease=math.inf)
        browser.get(f"{base}/study/default")
        until(lambda: "Live" in find(browser, "#live").text)
        find(browser, f"#y-{second.number}").send_keys("2.5")
        other.tell(first, 17.25)
        until(lambda: "17.25" in find(browser, "#known").text and "17.25" in find(browser, "#recent").text)
        third = other.ask(lease=math.inf)
        until(lambda: browser.find_elements("css selector", f"#y-{third.number}"))
        assert not browser.find_elements("css selector", f"#y-{first.number}")
        assert find(browser, f"#y-{second.number}").get_attribute("value") == "2.5"
        other.tell(second, 1.0)  # somebody is faster
        until(lambda: "Someone else has entered a result" in find(browser, "#waiting").text)
        click(browser, "#results p button.main")
        assert "Someone else was faster" in text_on(browser)
        assert find(browser, f"#y-{second.number}").get_attribute("value") == "2.5"
        set_viewport(browser, 360, True)
        assert accessibility_problems(browser) == []
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 360
        click(browser, "button[name=again]")
        assert sorted(trial.y for trial in other.trials if trial.y is not None) == [1.0, 2.5, 17.25]
        assert console_errors(browser) == []


def test_a_column_is_pasted_into_the_first_cell(browser: Any, tmp_path: Path) -> None:
    path = create_study(tmp_path, space=[(0.0, 1.0)])
    with running_server(path) as base, gpmi.study(path) as other:
        other.ask(3, lease=math.inf)
        browser.get(f"{base}/study/default")
        browser.execute_script(
            """
            const data = new DataTransfer();
            data.setData("text", "1.5\\r\\n2,5\\r\\nfailed: spilt\\r\\n");
            const paste = new ClipboardEvent("paste", {clipboardData: data, bubbles: true, cancelable: true});
            document.getElementById("y-0").dispatchEvent(paste);
            """
        )
        assert [find(browser, f"#y-{i}").get_attribute("value") for i in range(3)] == ["1.5", "2,5", "failed: spilt"]
        click(browser, "#results p button.main")
        assert [(trial.y, trial.why) for trial in other.trials] == [(1.5, None), (2.5, None), (None, "spilt")]
        assert console_errors(browser) == []


def test_the_forms_work_without_scripts(starting: Callable[..., Any], tmp_path: Path) -> None:
    browser = starting(scripts=False)
    path = create_study(tmp_path, space=[(0.0, 1.0)])
    with running_server(path) as base, gpmi.study(path) as other:
        browser.get(f"{base}/study/default")
        click_plain(browser, "#ask button")
        find(browser, "#y-0").send_keys("3,5")
        click_plain(browser, "#results p button.main")
        assert "1 result saved." in find(browser, "main").text
        assert other.trials[0].y == 3.5


def click_plain(browser: Any, selector: str) -> None:
    element = find(browser, selector)
    element.click()
    until(lambda: not browser.find_elements("css selector", "html") or _is_stale(element))


def _is_stale(element: Any) -> bool:
    from selenium.common.exceptions import WebDriverException

    try:
        element.is_enabled()
    except WebDriverException:
        return True
    return False


@SCREENSHOTS
def test_screenshots_for_the_documentation(browser: Any, tmp_path: Path) -> None:
    """Take serve.png and serve-phone.png for docs/serve.md."""
    path, rng = str(tmp_path / "coupling.db"), np.random.default_rng(1)
    with gpmi.study(path, space=SPACE, seed=1, budget=30) as study:
        for _ in range(16):
            trial = study.ask()
            study.tell(trial, round(yields(trial.x) + rng.normal(), 1))
        study.fail(study.ask(), why="the stirrer stopped")
        study.ask(3, lease=math.inf)
    with running_server(path) as base:
        for name, width, height, dark in (("serve", 1400, 1160, False), ("serve-phone", 360, 760, True)):
            set_viewport(browser, width, dark, height)
            browser.get(f"{base}/study/default")
            until(lambda: "Working out" not in text_on(browser) and "being drawn" not in text_on(browser), 120.0)
            save_screenshot(browser, f"{name}.png")
