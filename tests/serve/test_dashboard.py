"""The dashboard in a browser, while a stream that changes is learned."""

import itertools
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import browser_needed, started
from serving import serving

from omkl.serve import Client

pytestmark = [pytest.mark.slow, browser_needed]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    yield from started(tmp_path_factory.mktemp("browser"))


CHANGE, SHOWN = 1_500, 3_000


def changing() -> Iterator[dict[str, Any]]:
    """Prices without end, that follow another rule from some row on."""
    rng = np.random.default_rng(0)
    for k in itertools.count():
        size, age = rng.uniform(20, 120), rng.uniform(0, 60)
        town = ["north", "south", "east"][int(rng.integers(3))]
        price = 2 * size - 0.5 * age + 30 * (town == "south") + 10 * np.sin(size / 8)
        if k > CHANGE:
            price = 260 - 1.2 * size + 1.5 * age + 30 * (town == "north")
        yield {"size": round(size, 1), "age": round(age, 1), "town": town,
               "price": round(float(price + 5 * rng.standard_normal()), 2)}  # fmt: skip


def look(browser: Any, url: str, width: int, dark: bool, to: Path) -> None:
    """Open the page like this, wait until it is drawn, and take a picture of all of it."""
    from selenium.webdriver.support.ui import WebDriverWait

    mobile = width < 600
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                            {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": mobile})  # fmt: skip
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    browser.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
    browser.get(url)
    WebDriverWait(browser, 120).until(
        lambda b: b.execute_script("return document.querySelectorAll('#error path').length >= 3 && "
                                   "document.querySelectorAll('#last tbody tr').length > 5 && "
                                   "document.querySelectorAll('#inputs .bar').length > 2")
    )  # fmt: skip
    wide = browser.execute_script("return document.documentElement.scrollWidth")
    assert wide <= width, "the page must not scroll sideways"
    height = browser.execute_script("return document.documentElement.scrollHeight")
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile})  # fmt: skip
    browser.save_screenshot(str(to))


def test_the_dashboard_follows_a_stream_that_changes(browser: Any, tmp_path: Path) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    rows = changing()
    with serving(tmp_path / "state", "--target", "price", "--task", "regression", "--name", "homes") as service:
        stop = threading.Event()

        def send() -> None:
            with Client(service.url, timeout=300) as client:
                while not stop.is_set():
                    found = client.predict_then_learn(list(itertools.islice(rows, 40)))
                    stop.wait(0.2 if found[-1]["row"] > SHOWN else 0.02)

        thread = threading.Thread(target=send)
        thread.start()
        try:
            with Client(service.url, timeout=300) as client:
                while client.describe()["rows"] < SHOWN:
                    stop.wait(1)
                assert client.describe()["changes"]
            for width in (1400, 390):
                for dark in (False, True):
                    look(browser, service.url, width, dark, tmp_path / f"{width}-{'dark' if dark else 'light'}.png")
            marks = browser.execute_script("return document.querySelectorAll('#error line.change').length")
            assert marks >= 1
            seen = browser.execute_script("return document.querySelector('#tiles b').textContent")
            WebDriverWait(browser, 60).until(
                lambda b: b.execute_script("return document.querySelector('#tiles b').textContent") != seen
            )
            severe = [entry for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
            assert severe == []
        finally:
            stop.set()
            thread.join()


def test_the_dashboard_asks_for_a_token(browser: Any, tmp_path: Path) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    token = "t" * 20
    with serving(
        tmp_path / "state", "--target", "y", "--task", "regression", env={"OMKL_READ_TOKEN": token}
    ) as service:
        browser.get(service.url)
        WebDriverWait(browser, 60).until(lambda b: b.find_element(By.ID, "login").is_displayed())
        field = browser.find_element(By.ID, "token")
        field.send_keys("wrong")
        field.submit()
        WebDriverWait(browser, 60).until(lambda b: "wrong" in b.find_element(By.ID, "refused").text)
        field.clear()
        field.send_keys(token)
        field.submit()
        WebDriverWait(browser, 60).until(lambda b: b.find_element(By.ID, "main").is_displayed())
