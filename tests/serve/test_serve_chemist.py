"""A study as a chemist makes it, in a real browser: a mixture, a temperature, a salt, two results, 20 experiments.

It is done by clicking alone, from nothing, on a desktop and on a phone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import chromium
import pytest
from chromium import (
    accessibility_problems,
    click,
    console_errors,
    fill,
    find,
    is_computed,
    set_viewport,
    text_on,
    until,
)
from laboratory import running_server

import gpmi

pytestmark = chromium.MARKS
FORM = "form[action='/new/parameters']"
STUDY = {  # the fields of the page for new studies
    **{"study": "blend", "goal": "goals", "budget": "25"},
    **{f"kind-{i}": "number" for i in range(3)},
    **{"name-0": "water", "name-1": "ethanol", "name-2": "glycol"},
    **{f"{end}-{i}": value for i in range(3) for end, value in (("lo", "0"), ("hi", "1"))},
    **{f"part-{i}": "on" for i in range(3)},
    "mixture-sum": "1",
    **{"output-name-0": "yield", "output-number-0": "30", "output-name-1": "cost", "output-kind-1": "min"},
}
MORE = {"name-3": "temperature", "lo-3": "20", "hi-3": "90", "step-3": "0.5", "unit-3": "°C"}
CHOICE = {"name-4": "salt", "kind-4": "choice", "options-4": "NaCl, KBr"}
SCREENS = {1280: 900, 390: 844}  # widths and heights


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    found = chromium.start_browser(tmp_path_factory.mktemp("profile"))
    yield found
    found.quit()


def create(browser: Any) -> None:
    """Create the study on the page for new studies."""
    fill(browser, FORM, STUDY)
    for more in (MORE, CHOICE):
        button = find(browser, "#add-row")
        browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
        button.click()
        fill(browser, FORM, more)
    click(browser, f"{FORM} button.main")
    assert "The study was created." in text_on(browser)


def settings_of(row: Any) -> dict[str, str]:
    """Return what a row of the table says to do, by the title of the column."""
    cells = row.find_elements("css selector", "td.setting")
    return {cell.get_attribute("data-label"): cell.text.split()[0] for cell in cells}


def measured(x: dict[str, str]) -> tuple[float, float]:
    hot, water, ethanol = (float(x[name]) for name in ("temperature (°C)", "water", "ethanol"))
    best = math.exp(-(((hot - 60.0) / 20.0) ** 2) - 4.0 * (water - 0.5) ** 2 - 3.0 * (ethanol - 0.3) ** 2)
    return 40.0 + 50.0 * best + (3.0 if x["salt"] == "KBr" else 0.0), 1.0 + 8.0 * ethanol + 0.02 * hot


def rows_of(browser: Any) -> list[Any]:
    """Return the rows of experiments that are waiting; a narrow page shows all of them on demand."""
    for button in browser.find_elements("css selector", "button.narrow"):
        if button.is_displayed():
            browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
            button.click()
    return list(until(lambda: browser.find_elements("css selector", "#waiting tr[data-number]")))


def suggest(browser: Any, n: int) -> None:
    count = find(browser, "#n")
    count.clear()
    count.send_keys(str(n))
    click(browser, "#ask button")


def enter(row: Any, values: tuple[float, float]) -> None:
    for i, value in enumerate(values):
        row.find_element("css selector", f"input[data-output='{i}']").send_keys(f"{value:.2f}")


def open_fold(browser: Any, row: Any, place: int) -> None:
    """Open a fold of a row as the mouse does: 0 has other values and the note, 1 what to do without a result."""
    summary = row.find_elements("css selector", "details.more > summary")[place]
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", summary)
    summary.click()


def type_over(field: Any, text: str) -> None:
    field.clear()
    field.send_keys(text)


@pytest.mark.parametrize("width", SCREENS)
def test_a_study_of_a_chemist_is_done_by_clicking(browser: Any, tmp_path: Path, width: int) -> None:
    height = SCREENS[width]
    set_viewport(browser, width, False, height)
    path = tmp_path / "new.db"
    with running_server(str(path)) as base:
        browser.get(base)
        create(browser)
        at = browser.current_url.partition("?")[0]
        until(lambda: is_computed(browser))
        assert "Too early to say" in find(browser, "#answer").text and accessibility_problems(browser) == []
        suggest(browser, 4)
        first = rows_of(browser)[0]
        place = first.find_element("css selector", "input.result")
        box = browser.execute_script("const r = arguments[0].getBoundingClientRect(); return [r.left, r.right]", place)
        assert box[0] >= 0 and box[1] <= width and place.get_attribute("inputmode") == "decimal"
        assert browser.execute_script("return arguments[0].getBoundingClientRect().height", place) >= 36

        # "I used 85 °C, not 83.8"; the sum of a mixture is checked, and nothing typed is lost
        open_fold(browser, first, 0)
        type_over(first.find_element("css selector", "[name=used-0-3]"), "85")
        type_over(first.find_element("css selector", "[name=used-0-0]"), "0.9")
        first.find_element("css selector", "[name=note-0]").send_keys("the bath was too hot")
        first.find_element("css selector", "[name=files-0]").send_keys("nmr_0.pdf")
        type_over(find(browser, "#who"), "Anna")
        enter(first, (50.0, 4.0))
        click(browser, "#results .save button")
        assert "“water + ethanol + glycol = 1” must hold" in text_on(browser)
        assert find(browser, "[name=used-0-3]").get_attribute("value") == "85"
        assert find(browser, "#y-0-0").get_attribute("value") == "50.00"
        assert find(browser, "[name=note-0]").get_attribute("value") == "the bath was too hot"
        assert accessibility_problems(browser) == []
        for index, text in enumerate(("0.5", "0.3", "0.2")):
            type_over(find(browser, f"[name=used-0-{index}]"), text)
        click(browser, "#results .save button")
        assert "1 result saved." in text_on(browser)

        # One cannot be done
        row = rows_of(browser)[0]
        open_fold(browser, row, 1)
        row.find_element("css selector", "[name=why-1]").send_keys("no glycol left")
        click(browser, "button[name=reject][value='1']")
        assert "Trial 1 was skipped." in text_on(browser)

        # What was typed is there again after another form of the page was sent
        enter(rows_of(browser)[0], (44.0, 3.0))
        browser.execute_script("document.getElementById('pasted').value = '1\\t2'")
        suggest(browser, 1)
        assert find(browser, "#y-2-0").get_attribute("value") == "44.00"
        assert find(browser, "#pasted").get_attribute("value") == ""  # it would go to other rows
        for field in ("#y-2-0", "#y-2-1"):
            find(browser, field).clear()

        done = 1
        while done < 20:
            rows = rows_of(browser)
            for row in rows[: 20 - done]:
                enter(row, measured(settings_of(row)))
            count = len(rows[: 20 - done])
            click(browser, "#results .save button")
            done += count
            assert f"{count} result{'s' if count > 1 else ''} saved." in text_on(browser)
            if done < 20:
                suggest(browser, min(4, 20 - done))
        suggest(browser, 2)
        until(lambda: is_computed(browser), 120.0)
        answer = find(browser, "#answer").text
        assert answer.startswith(("Yes, you can stop", "Not yet", "Too early to say")) and answer.endswith(".")
        assert "20 done" in text_on(browser) and accessibility_problems(browser) == []
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        suggest(browser, 6)
        until(lambda: is_computed(browser), 120.0)
        if width < 600:
            assert browser.execute_script("return document.documentElement.scrollHeight") <= 4 * height
        assert browser.find_elements("css selector", "#mixture svg") and browser.find_elements(
            "css selector", "#slices svg"
        )

        # The history and the sheet
        browser.get(f"{at}/trials?q=anna+bath")
        assert "1 trial" in text_on(browser) and "nmr_0.pdf" in text_on(browser)
        assert accessibility_problems(browser) == []
        browser.get(f"{at}/sheet")
        assert len(browser.find_elements("css selector", ".print-sheet tbody tr")) == 8
        assert accessibility_problems(browser) == [] and console_errors(browser) == []
        browser.get("about:blank")  # the page would ask the server that ends now
    with gpmi.study(path) as study:
        told = study.trials[0]
        assert dict(told.x) == {
            "water": 0.5,
            "ethanol": 0.3,
            "glycol": 0.2,
            "temperature": 85.0,
            "salt": told.x["salt"],
        }
        assert study.suggested(0) is not None and study.annotations(0)[-1].who == "Anna"
        assert study.trials[1].why == "no glycol left"
        assert sum(trial.status == "told" for trial in study.trials) == 20 and study.verify().agrees


@pytest.mark.parametrize("width", SCREENS)
def test_the_tables_of_a_wide_study_fit_the_page(browser: Any, tmp_path: Path, width: int) -> None:
    names = ("water", "isopropanol", "ethylene_glycol")
    space = {**{name: (0.0, 1.0) for name in names}, "temperature": gpmi.Real(20.0, 90.0, step=5.0, unit="°C")}
    space |= {"solvent": ["THF", "2-methyltetrahydrofuran"]}
    goals = {"yield": gpmi.Max(at_least=30), "cost": gpmi.Min(at_most=9)}
    units = {"yield": "%", "cost": "EUR/kg"}
    path = str(tmp_path / "lab.db")
    with gpmi.study(path, space=space, constraints=[f"{' + '.join(names)} == 1"], goals=goals, units=units) as study:
        for i, trial in enumerate(study.ask(2)):
            study.tell(trial, {"yield": 40.1234 + i, "cost": 5.6789 - i})
        study.annotate(0, "the bath was too hot, and the stirrer stopped for ten minutes", who="Anna")
        study.ask(2, lease=math.inf)
    set_viewport(browser, width, False, SCREENS[width])
    with running_server(path) as base:
        browser.get(f"{base}/study/default")
        until(lambda: is_computed(browser), 60.0)
        for box in ("#waiting", "#recent .scroll"):
            inside, room = browser.execute_script(
                "const box = document.querySelector(arguments[0]); return [box.scrollWidth, box.clientWidth]", box
            )
            assert inside <= room
        note = next(one for one in browser.find_elements("css selector", "#recent td[data-label=Note]") if one.text)
        assert note.size["width"] >= 160
        assert accessibility_problems(browser) == []
        browser.get("about:blank")
