"""Chromium for the tests that look at pages: `pytestmark = chromium.MARKS`, `started`, and what axe-core says.

Needs Debian's packages chromium and chromium-driver, and selenium and axe-core-python: `make test-browser`.
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
# The pictures of the documentation are made again where GPMI_SCREENSHOTS names the folder docs.
SCREENSHOTS = pytest.mark.skipif("GPMI_SCREENSHOTS" not in os.environ, reason="GPMI_SCREENSHOTS names no folder")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
# A text that changes the title of a page where it is not escaped.
EVIL = "<img src=x onerror=document.title='hacked'><script>document.title='hacked'</script>"


def started(profile: Path, *, scripts: bool = True) -> Any:
    """A browser with a profile of its own, whose console can be read; whoever starts it quits it."""
    options = webdriver.ChromeOptions()
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.binary_location = BROWSER
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    if not scripts:
        options.add_experimental_option("prefs", {"profile.managed_default_content_settings.javascript": 2})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))


def looking(browser: Any, width: int, dark: bool, height: int = 800) -> None:
    """Give the page a width and a scheme of colours."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})


def findings(browser: Any) -> list[str]:
    """What axe-core calls serious or critical."""
    axe = files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    browser.execute_cdp_cmd("Runtime.evaluate", {"expression": axe})  # the policy of the page allows no other script
    found = browser.execute_async_script("axe.run().then(arguments[arguments.length - 1])")
    assert len(found["passes"]) > 10  # it has looked
    serious = [one for one in found["violations"] if one["impact"] in ("serious", "critical")]
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]} {one['nodes'][0]['failureSummary']}" for one in serious]


def photographed(browser: Any, name: str) -> None:
    """Save what is seen of the page, in few colours."""
    from PIL import Image

    file = Path(os.environ["GPMI_SCREENSHOTS"]) / name
    browser.save_screenshot(str(file))
    Image.open(file).convert("P", palette=Image.Palette.ADAPTIVE, colors=64).save(file, optimize=True)
    assert file.stat().st_size < 200_000
