"""Chromium for the tests of pages: `pytestmark = chromium.MARKS`, `start_browser` and `accessibility_problems`.

Needs Debian's packages chromium and chromium-driver, and the Python packages selenium and axe-core-python.
`make test-browser` installs the latter.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from waiting import LIMIT

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is missing: make test-browser installs it")
pytest.importorskip("axe_core_python", reason="axe-core-python is missing: make test-browser installs it")

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
MARKS = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (BROWSER and DRIVER), reason="there is no Chromium: apt-get install chromium chromium-driver"
    ),
]
# With GPMI_SCREENSHOTS=docs the screenshots of the documentation are taken again.
SCREENSHOTS = pytest.mark.skipif("GPMI_SCREENSHOTS" not in os.environ, reason="GPMI_SCREENSHOTS is not set")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
# A text that changes the title of a page if it is not escaped.
EVIL = "<img src=x onerror=document.title='hacked'><script>document.title='hacked'</script>"


def start_browser(profile: Path, *, scripts: bool = True) -> Any:
    """Start a browser with its own profile and a readable console. The caller quits it."""
    options = webdriver.ChromeOptions()
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.binary_location = BROWSER
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    if not scripts:
        options.add_experimental_option("prefs", {"profile.managed_default_content_settings.javascript": 2})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))


def set_viewport(browser: Any, width: int, dark: bool, height: int = 800) -> None:
    """Set the width of the page and the light or dark colour scheme."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})


def accessibility_problems(browser: Any) -> list[str]:
    """Return what axe-core rates as serious or critical."""
    axe = files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    browser.execute_cdp_cmd("Runtime.evaluate", {"expression": axe})  # the policy of the page forbids a script element
    found = browser.execute_async_script("axe.run().then(arguments[arguments.length - 1])")
    assert len(found["passes"]) > 10  # it has really run
    serious = [one for one in found["violations"] if one["impact"] in ("serious", "critical")]
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]} {one['nodes'][0]['failureSummary']}" for one in serious]


def save_screenshot(browser: Any, name: str) -> None:
    """Save the visible part of the page in 64 colours, which keeps the file small."""
    from PIL import Image

    file = Path(os.environ["GPMI_SCREENSHOTS"]) / name
    browser.save_screenshot(str(file))
    Image.open(file).convert("P", palette=Image.Palette.ADAPTIVE, colors=64).save(file, optimize=True)
    assert file.stat().st_size < 200_000


# What people do with a page

# What may be in the console: that a page deliberately answered with one of these statuses.
EXPECTED = ("status of 400", "status of 409", "status of 404")


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


def is_computed(browser: Any) -> bool:
    """Whether the page shows what the model says, and its pictures."""
    return "Working out" not in text_on(browser) and "being drawn" not in text_on(browser)


def fill(browser: Any, form: str, typed: dict[str, str]) -> None:
    """Type into the fields of a form, choose from its lists, and tick its boxes."""
    from selenium.webdriver.support.ui import Select

    for name, text in typed.items():
        control = find(browser, f"{form} [name={name}]")
        browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", control)
        if control.tag_name == "select":
            Select(control).select_by_value(text)
        elif control.get_attribute("type") == "checkbox":
            control.click()
        else:
            control.clear()
            control.send_keys(text)
