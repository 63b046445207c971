"""A headless browser for the reports, with its network and its console recorded."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
browser_needed = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="no browser: install Debian's chromium and chromium-driver to run this test"
)


def started(profile: Path) -> Iterator[Any]:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for flag in ("headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run",
                 "disable-background-networking", "disable-component-update", "disable-sync",
                 f"user-data-dir={profile}", "window-size=1200,900"):  # fmt: skip
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    yield driver
    driver.quit()


def open_page(browser: Any, path: Path, width: int = 1200, height: int = 900, dark: bool = False) -> None:
    browser.execute_cdp_cmd("Network.enable", {})
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600},
    )
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    browser.get(path.as_uri())


def wait_for_chart(browser: Any, kind: str) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, 20).until(
        lambda b: b.execute_script(f"return document.querySelectorAll('#chart-{kind} .main-svg').length") > 0
    )


def assert_no_requests_or_errors(browser: Any) -> None:
    """No error on the console, and no request to the network."""
    assert [entry for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []
    requested = [
        message["params"]["request"]["url"]
        for entry in browser.get_log("performance")
        if (message := json.loads(entry["message"])["message"])["method"] == "Network.requestWillBeSent"
        and message["params"]["documentURL"].startswith("file:")  # not the browser's own first page
    ]
    assert requested
    assert [url for url in requested if not url.startswith(("file:", "data:", "blob:"))] == []
