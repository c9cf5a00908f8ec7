"""Chromium for the tests of pages: `pytestmark = chromium.MARKS`, `start_browser` and `accessibility_problems`.

Needs Debian's packages chromium and chromium-driver, and the Python packages selenium and axe-core-python.
`make test-browser` installs the latter.
"""

from __future__ import annotations

import os
import shutil
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

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
