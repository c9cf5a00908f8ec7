"""`gpmi serve` in a real browser: a whole study by clicking, an empty console, no serious problem found by axe-core."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import chromium
import numpy as np
import pytest
from chromium import (
    EVIL,
    SCREENSHOTS,
    accessibility_problems,
    click,
    console_errors,
    find,
    is_computed,
    save_screenshot,
    set_viewport,
    text_on,
    until,
)
from laboratory import create_study, running_server

import gpmi

pytestmark = chromium.MARKS
SPACE = {
    "temperature": gpmi.Real(20.0, 90.0, unit="°C"),
    "time": gpmi.Real(0.5, 24.0, log=True, unit="h"),
    "catalyst": ["Pd", "Ni"],
}


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
        assert "20 done" in text_on(browser) and console_errors(browser) == []
        with gpmi.study(tmp_path / "new.db", "clicked") as study:
            assert study.best is not None and study.best.x["kind"] == "b" and abs(study.best.x["x"] - 0.3) < 0.1
            assert study.verify().agrees


# Studies with goals

GOALS = {
    "yield": gpmi.Max(at_least=40.0),
    "cost": gpmi.Min(at_most=16.0),
    "purity": gpmi.AtLeast(0.93),
    EVIL: None,
}


def outputs_at(x: dict[str, Any]) -> dict[str, float]:
    cost = (6.0 if x["catalyst"] == "Pd" else 3.0) + 0.08 * x["temperature"] + 0.2 * x["time"]
    purity = 1.0 - 0.0012 * (x["temperature"] - 20.0) - 0.002 * x["time"]
    return {"yield": round(yields(x), 1), "cost": round(cost, 2), "purity": round(purity, 3)}


def fill_with_goals(path: str, n: int = 14, why: str = EVIL) -> None:
    """Add results, a failure, a trial that lacks its purity, and waiting trials."""
    with gpmi.study(path) as study:
        for _ in range(n):
            trial = study.ask()
            study.tell(trial, outputs_at(trial.x))
        trial = study.ask()
        study.tell(trial, {name: y for name, y in outputs_at(trial.x).items() if name != "purity"})
        study.fail(study.ask(), why=why)
        study.ask(2, lease=math.inf)


def move_slider(browser: Any, index: int, place: int) -> None:
    """Move a slider as the mouse does."""
    script = "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input', {bubbles: true}))"
    browser.execute_script(script, find(browser, f".front-limit[data-index='{index}']"), place)


def shown_recipe(browser: Any) -> str:
    return str(find(browser, ".front-recipe:not([hidden]) h3").text)


@pytest.fixture(scope="module")
def traded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve a study with goals, and yield its address."""
    path = create_study(tmp_path_factory.mktemp("traded"), space=SPACE, goals=GOALS, budget=30)
    fill_with_goals(path)
    with running_server(path) as base:
        yield f"{base}/study/default"


@pytest.mark.parametrize("width", [360, 1400])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("page", ["", "/trials", "/trial/3", "/trial/14", "/trial/16"])
def test_every_page_of_a_study_with_goals_is_accessible(
    browser: Any, traded: str, page: str, dark: bool, width: int
) -> None:
    set_viewport(browser, width, dark)
    browser.get(traded + page)
    until(lambda: is_computed(browser))
    if not page:
        browser.execute_script("document.getElementById('front-fold').open = true")  # closed on a phone
        browser.execute_script("document.querySelector('.front-point.front').focus()")
        move_slider(browser, 0, 120)
        assert browser.find_elements("css selector", ".front-point.faded") and shown_recipe(browser)
    assert accessibility_problems(browser) == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.title != "hacked" and console_errors(browser) == []


def test_a_study_with_two_objectives_and_a_limit_is_done_by_clicking(browser: Any, tmp_path: Path) -> None:
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import Select

    set_viewport(browser, 1400, False)
    with running_server(str(tmp_path / "new.db")) as base:
        browser.get(base)
        assert not find(browser, "#outputs").is_displayed()  # one result is the default
        Select(find(browser, "[name=goal]")).select_by_value("goals")
        assert find(browser, "#outputs").is_displayed() and not find(browser, "[name=output-within-0]").is_displayed()
        typed = {
            "study": "traded",
            "name-0": "warmth",
            "lo-0": "20",
            "hi-0": "90",
            "name-1": "metal",
            "options-1": "Pd, Ni",
        }
        typed |= {"output-name-0": "yield", "output-number-0": "20", "output-name-1": "cost", "output-name-2": "purity"}
        typed |= {"output-number-2": "0.9"}
        for name, text in typed.items():
            find(browser, f"form[action='/new/parameters'] [name={name}]").send_keys(text)
        find(browser, "#add-output").click()
        find(browser, "[name=output-name-3]").send_keys("shade")
        Select(find(browser, "[name=output-kind-3]")).select_by_value("match")
        assert find(browser, "[name=output-within-3]").is_displayed()
        Select(find(browser, "[name=output-kind-3]")).select_by_value("watch")
        click(browser, "form[action='/new/parameters'] button.main")
        assert "Goals: the largest yield, 20 or more; the smallest cost; purity at least 0.9" in text_on(browser)

        def row_values(row: Any) -> dict[int, float]:
            warmth, metal = (float(row.find_elements("tag name", "td")[0].text) - 20.0) / 70.0, 5.0
            metal = 5.0 if row.find_elements("tag name", "td")[1].text == "Pd" else 0.0
            return {0: 20.0 + 60.0 * math.sqrt(warmth) + metal, 1: 2.0 + 8.0 * warmth + metal, 2: 1.0 - 0.15 * warmth}

        late: dict[str, float] = {}  # the purity is measured later
        for _ in range(3):
            count = find(browser, "#n")
            count.clear()
            count.send_keys("4")
            click(browser, "#ask button")
            rows = until(lambda: browser.find_elements("css selector", "#waiting tr[data-number]"))
            assert len(rows) == 4
            for row in rows:
                values = row_values(row)
                late[row.get_attribute("data-number")] = values[2]
                for i in (0, 1):
                    row.find_element("css selector", f"input[data-output='{i}']").send_keys(f"{values[i]:.3f}")
            click(browser, "#results .save button")
            assert "4 results saved." in text_on(browser) and "Still missing: purity" in text_on(browser)
            for number, y in late.items():
                find(browser, f"#incomplete #y-{number}-2").send_keys(f"{y:.4f}")
            click(browser, "#results .save button")
            assert "Still missing" not in text_on(browser)
            late.clear()
        until(lambda: is_computed(browser))

        # A slider fades the points that it excludes
        front = browser.find_elements("css selector", ".front-point.front")
        assert len(front) >= 3 and not browser.find_elements("css selector", ".front-point.faded")
        slider = find(browser, ".front-limit")
        slider.send_keys(Keys.END)
        assert "yield: at least" in slider.find_element("xpath", "..").text
        left = until(lambda: find(browser, ".front-left").text)
        assert left == f"1 of {len(front)} trials on the front is left." and browser.find_elements(
            "css selector", ".front-point.faded"
        )
        assert len([row for row in browser.find_elements("css selector", "#front tbody tr") if row.is_displayed()]) == 1
        slider.send_keys(Keys.HOME)
        assert not browser.find_elements("css selector", ".front-point.faded")

        # The recipe behind a point, by keyboard and by mouse
        slider.send_keys(Keys.TAB, Keys.TAB)
        first = browser.switch_to.active_element
        assert "front-point" in first.get_attribute("class")
        assert shown_recipe(browser) == f"Trial {first.get_attribute('data-number')}"
        for _ in front:  # to the left end, then one to the right
            browser.switch_to.active_element.send_keys(Keys.ARROW_LEFT)
        leftmost = browser.switch_to.active_element.get_attribute("data-number")
        browser.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
        number = browser.switch_to.active_element.get_attribute("data-number")
        assert number != leftmost and shown_recipe(browser) == f"Trial {number}"
        words = find(browser, ".front-recipe:not([hidden])").text
        assert "warmth" in words and "purity" in words
        other = browser.find_elements("css selector", ".front-point.front:not(.chosen)")[0]
        target = other.find_element("css selector", ".front-target")
        browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", target)
        browser.execute_script(
            "arguments[0].dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true}))", target
        )
        assert shown_recipe(browser) == f"Trial {other.get_attribute('data-number')}" and "#" not in browser.current_url

        # The cheapest with a yield of at least 50, to be tried next
        find(browser, "[name=choose-value-0]").send_keys("50")
        click(browser, "#choose button.main")
        assert "All conditions and limits hold with a probability of" in find(browser, ".found").text
        click(browser, ".found button")
        assert "Trial 12 is at the chosen point." in text_on(browser) and find(browser, "#y-12-0").is_displayed()
        assert console_errors(browser) == []
        with gpmi.study(tmp_path / "new.db", "traded") as study:
            assert len(study.front) >= 3 and all(len(trial.outputs) == 3 for trial in study.trials[:12])
            assert study.pending[0].x == study.choose(cost="min", where={"yield": ">= 50"}).x
            assert study.verify().agrees


def test_the_front_is_updated_live_and_the_sliders_stay(browser: Any, tmp_path: Path) -> None:
    set_viewport(browser, 1400, False)
    path = create_study(tmp_path, space=SPACE, goals=GOALS)
    fill_with_goals(path, 5)
    with running_server(path) as base, gpmi.study(path) as other:
        browser.get(f"{base}/study/default")
        until(lambda: is_computed(browser) and "Live" in find(browser, "#live").text)
        move_slider(browser, 1, 50)
        browser.execute_script("document.querySelector('.front-point.front').focus()")
        shown = shown_recipe(browser)
        waiting = [trial for trial in other.trials if trial.status == "pending"]
        find(browser, f"#y-{waiting[0].number}-0").send_keys("12")
        other.tell(waiting[0].number, {"cost": 9.0})  # moves it to those that lack outputs, but something was typed
        other.tell(waiting[1].number, {"yield": 99.0, "cost": 15.5, "purity": 0.99})  # beats none
        until(
            lambda: (
                "Trial" in find(browser, "#front").text
                and "99" in find(browser, "#front table").get_attribute("textContent")
            )
        )
        assert find(browser, ".front-limit[data-index='1']").get_attribute("value") == "50"
        assert shown_recipe(browser) == shown
        assert find(browser, f"#y-{waiting[0].number}-0").get_attribute("value") == "12"
        assert len(browser.find_elements("css selector", f"[name=y-{waiting[0].number}-0]")) == 1
        click(browser, "#results .save button")
        assert "Already entered" not in text_on(browser)  # the yield was still missing
        assert dict(other.trials[waiting[0].number].outputs) == {"yield": 12.0, "cost": 9.0}
        assert console_errors(browser) == []
        browser.get("about:blank")  # the page would ask the server that ends now


def test_columns_are_pasted_into_the_first_cell(browser: Any, tmp_path: Path) -> None:
    path = create_study(tmp_path, space=SPACE, goals=GOALS)
    with running_server(path) as base, gpmi.study(path) as other:
        other.ask(2, lease=math.inf)
        browser.get(f"{base}/study/default")
        browser.execute_script(
            """
            const data = new DataTransfer();
            data.setData("text", "3,5\\t0.95\\r\\n4\\t\\r\\n");
            const paste = new ClipboardEvent("paste", {clipboardData: data, bubbles: true, cancelable: true});
            document.getElementById("y-0-1").dispatchEvent(paste);
            """
        )
        click(browser, "#results .save button")
        assert [dict(trial.outputs) for trial in other.trials] == [{"cost": 3.5, "purity": 0.95}, {"cost": 4.0}]
        assert console_errors(browser) == []


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
        assert "Already entered" in text_on(browser)
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


def test_goals_work_without_scripts(starting: Callable[..., Any], tmp_path: Path) -> None:
    browser = starting(scripts=False)
    path = create_study(tmp_path, space=SPACE, goals=GOALS)
    fill_with_goals(path, 5)
    with running_server(path) as base, gpmi.study(path) as other:
        browser.get(f"{base}/study/default")
        assert find(browser, "#front table").is_displayed() and find(browser, "#front svg").is_displayed()
        assert not find(browser, ".front-limit").is_displayed()
        find(browser, "#y-5-2").send_keys("0,95")
        click_plain(browser, "#results .save button")
        assert other.trials[5].outputs["purity"] == 0.95
        find(browser, "[name=choose-value-0]").send_keys("45")
        click_plain(browser, "#choose button.main")
        click_plain(browser, ".found button")
        assert other.trials[-1].status == "pending" and "is at the chosen point" in find(browser, "main").text


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


@SCREENSHOTS
def test_screenshots_of_goals_for_the_documentation(browser: Any, tmp_path: Path) -> None:
    """Take serve-new-goals.png, serve-goals.png and serve-front.png for docs/serve.md."""
    from selenium.webdriver.support.ui import Select

    path = str(tmp_path / "trade.db")
    goals = {name: goal for name, goal in GOALS.items() if name != EVIL}
    gpmi.study(path, space=SPACE, goals=goals, seed=1, budget=30).close()
    fill_with_goals(path, 16, "the stirrer stopped")
    with running_server(path) as base:
        set_viewport(browser, 1400, False, 1000)
        browser.get(f"{base}/new")
        Select(find(browser, "[name=goal]")).select_by_value("goals")
        browser.execute_script("document.activeElement.blur()")
        save_screenshot(browser, "serve-new-goals.png")
        for name, top, height in (("serve-goals", "main", 1000), ("serve-front", "#front-fold", 1080)):
            set_viewport(browser, 1400, False, height)
            browser.get(f"{base}/study/default")
            until(lambda: is_computed(browser))
            move_slider(browser, 0, 90)
            browser.execute_script(
                "document.querySelector('.front-point.front:not(.faded)').focus({preventScroll: true});"
                f"document.querySelector('{top}').scrollIntoView()"
            )
            save_screenshot(browser, f"{name}.png")
