"""A report in a real browser: light and dark, on a phone and on a desk, no error, no serious finding of axe-core.

Needs Debian's packages chromium and chromium-driver, and selenium and axe-core-python: `make test-browser`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpmi

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is missing: make test-browser installs it")
pytest.importorskip("axe_core_python", reason="axe-core-python is missing: make test-browser installs it")

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (BROWSER and DRIVER), reason="there is no Chromium: apt-get install chromium chromium-driver"
    ),
]
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
EVIL = "<img src=x onerror=document.title='hacked'><script>document.title='hacked'</script>"
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
    options = webdriver.ChromeOptions()
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.binary_location = BROWSER
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield started
    started.quit()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = gpmi.maximize(f, SPACE, budget=25, seed=0, on_failure="learn")
    return run.report(tmp_path_factory.mktemp("report") / "run.html", title=EVIL)


def findings(browser: Any) -> list[str]:
    """What axe-core calls serious or critical."""
    axe = files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    browser.execute_cdp_cmd("Runtime.evaluate", {"expression": axe})  # the policy of the page allows no other script
    found = browser.execute_async_script("axe.run().then(arguments[arguments.length - 1])")
    assert len(found["passes"]) > 10  # it has looked
    serious = [one for one in found["violations"] if one["impact"] in ("serious", "critical")]
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]} {one['nodes'][0]['failureSummary']}" for one in serious]


@pytest.mark.parametrize("width", [360, 1400])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_report_can_be_read_by_everybody(browser: Any, page: Path, width: int, dark: bool) -> None:
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
    browser.get(page.as_uri())
    assert findings(browser) == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.title == EVIL and not browser.find_elements("css selector", "img")
    assert [one["message"] for one in browser.get_log("browser")] == []
    for chart in browser.find_elements("css selector", "svg.chart"):
        assert chart.size["height"] > 20 and chart.get_attribute("aria-label")


def test_the_table_is_sorted_filtered_and_copied(browser: Any, page: Path) -> None:
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
