"""report.html: its content, and its behaviour in a browser."""

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import assert_no_requests_or_errors, browser_needed, open_page, wait_for_chart
from lab_command import invoke
from pages import NASTY, assert_markup_is_escaped, assert_self_contained, charts_of

from omkl.report.render import in_html
from omkl_lab.files import read_lines
from omkl_lab.reproduce import charts, report
from omkl_lab.reproduce.graphs import drawn
from omkl_lab.streams import mixture


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report on the generated stream, on a user's file with a hostile name, and with theory and sweeps."""
    place = tmp_path_factory.mktemp("report")
    path = place / f"{NASTY}.csv"
    np.savetxt(path, np.random.default_rng(0).random((80, 3)), delimiter=",", header=f"{NASTY},b,target", comments="")
    words = ["reproduce", "--datasets", "mixture", "--datasets", str(path), "--runs", "1", "--out", str(place / "out")]
    result = invoke(*words)
    assert result.exit_code == 0, result.output
    out = place / "out"
    point = {
        "algorithm": "SFG-MKL", "regret_std": 0.1, "average_loss": 0.1, "best_loss": 0.05, "star": 3, "C": 150.0,
        "L": 2.0, "epsilon": 2.5, "least_q": 0.02, "beta": None, "bound": 5e5, "bound_without_features": 5e2,
        "losses_out_of_range": 0.0, "large_gradients": 0.0, "mean_inverse_q_bar": 10.0, "mean_inverse_q": 10.0,
    }  # fmt: skip
    stream = {
        "dataset": NASTY, "rows": 80, "features": 2, "runs": 1, "space": "the kernels' own spaces", "needed": [],
        "points": [{**point, "T": 40, "regret": 2.0}, {**point, "T": 80, "regret": 3.0}], "growth": {"SFG-MKL": None},
    }  # fmt: skip
    theory = {"runs": 1, "subsets": 16, "streams": [stream], "complexity": []}
    (out / "theory.json").write_text(json.dumps(theory))
    line = {"factor": "M", "dataset": NASTY, "algorithm": "SFG-MKL", "runs": 1, "mse": 0.01, "log_loss": None,
            "error_rate": None, "std": None, "seconds": 0.1, "kernels": 5.0, "diverged": False}  # fmt: skip
    lines = [json.dumps({**line, "value": value}) for value in ("2", "5")]
    (out / "sweeps.jsonl").write_text("\n".join(lines) + "\n")
    report.write(out)
    return out


@pytest.fixture(scope="module")
def page(folder: Path) -> str:
    return (folder / "report.html").read_text(encoding="utf-8")


def test_the_page_is_one_file_that_needs_no_network(page: str):
    assert_self_contained(page)


def test_names_are_text_everywhere(page: str):
    assert_markup_is_escaped(page)
    assert any(choice["name"] == NASTY for choice in charts_of(page)["curves"])


def test_json_survives_its_way_through_html():
    value = {"a": ["</script><script>alert(1)</script>", "&lt;", "\u2028", 1.5]}
    text = in_html(value)
    assert "<" not in text
    assert json.loads(text) == value


def test_every_cell_has_its_row_and_every_chart_a_label(page: str, folder: Path):
    rows = read_lines(folder / "results.jsonl")
    tables = page.split('id="tables"', 1)[1].split('id="curves"', 1)[0]
    assert tables.count("<tr") == len(rows) + 2  # two tables with a head each
    found = charts_of(page)
    assert set(found) == {"curves", "weights", "graph", "theory", "sweeps"}
    assert all(choice["chart"]["about"] for part in found.values() for choice in part)


def test_the_graph_shows_every_edge_and_marks_the_dominating_set():
    g = drawn(mixture(400, 0), seed=0)
    assert len(g["edges"]) == 41 * 4  # five out-neighbours, the node itself among them
    assert g["added"]
    assert not {tuple(e) for e in g["added"]} & {tuple(e) for e in g["edges"]}
    assert {i for i, _ in g["added"]} <= set(g["leading"])
    similar, refined, nodes, dominating = charts.graph(g)["data"]
    assert similar["x"].count(None) == len(g["edges"])
    assert refined["x"].count(None) == len(g["added"])
    assert refined["line"]["color"] != similar["line"]["color"]
    assert len(nodes["x"]) + len(dominating["x"]) == 41
    assert len(dominating["x"]) == len(g["dominating"])
    assert nodes["x"] == sorted(nodes["x"])  # placed by length scale


def test_published_forms_are_visible_and_the_others_only_in_the_legend(folder: Path):
    details = [d for d in read_lines(folder / "details.jsonl") if d["dataset"] == "mixture"]
    shown = [t["name"] for t in charts.curves(details)["data"] if t["visible"] is True]
    assert shown == [
        "OMKR, exact kernels", "Raker, every kernel", "OMKL-GF, frozen, plain step",
        "SFG-MKL, commit first, 1-D Delta", "SFG-MKL-R, commit first, 1-D Delta",
    ]  # fmt: skip


def test_figures_are_the_same_bytes_from_the_same_files(folder: Path):
    from omkl_lab.reproduce import figures

    first = {path: path.read_bytes() for path in figures.draw(folder)}
    again = {path: path.read_bytes() for path in figures.draw(folder)}
    assert first == again
    assert {path.suffix for path in first} == {".png", ".svg"}
    assert not [name for name in os.listdir(folder / "figures") if re.search(r"[^\w.\-]", name)]


# In a browser


@pytest.mark.slow
@browser_needed
@pytest.mark.parametrize(("width", "dark"), [(1200, False), (390, True)], ids=["desktop", "phone in the dark"])
def test_it_renders_with_no_network_no_console_error_and_no_sideways_scrolling(
    browser: Any, folder: Path, width: int, dark: bool
):
    open_page(browser, folder / "report.html", width, 844, dark)
    kinds = ("overview", "tables", "curves", "weights", "graph", "theory", "sweeps")
    for kind in kinds:
        browser.execute_script(f"document.getElementById('tab-{kind}').click()")
        if kind not in ("overview", "tables"):
            wait_for_chart(browser, kind)
        visible = browser.execute_script(
            "return [...document.querySelectorAll('[role=tabpanel]')].filter(p => p.offsetParent).map(p => p.id)"
        )
        assert visible == [kind]
        assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    background = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    light = sum(map(int, re.findall(r"\d+", background)[:3])) > 384
    assert light is not dark
    if dark:
        paper = browser.execute_script("return document.querySelector('#chart-sweeps .main-svg').style.background")
        assert sum(map(int, re.findall(r"\d+", paper)[:3])) < 384
    assert_no_requests_or_errors(browser)
    assert browser.execute_script("return document.images.length") == 0  # the hostile name made no element


@pytest.mark.slow
@browser_needed
def test_tabs_follow_the_keyboard(browser: Any, folder: Path):
    from selenium.webdriver.common.keys import Keys

    open_page(browser, folder / "report.html")
    for key, wanted in ((Keys.ARROW_RIGHT, "tab-tables"), (Keys.END, "tab-sweeps"), (Keys.ARROW_RIGHT, "tab-overview"),
                        (Keys.ARROW_LEFT, "tab-sweeps"), (Keys.HOME, "tab-overview")):  # fmt: skip
        start = browser.execute_script("return document.querySelector('[role=tab][aria-selected=true]').id")
        browser.find_element("id", start).send_keys(key)
        assert browser.switch_to.active_element.get_attribute("id") == wanted
        assert browser.find_element("id", wanted).get_attribute("aria-selected") == "true"


@pytest.mark.slow
@browser_needed
def test_tables_sort_by_number_and_by_letter(browser: Any, folder: Path):
    open_page(browser, folder / "report.html")
    browser.find_element("id", "tab-tables").click()

    def column(k: int) -> list[str]:
        return browser.execute_script(
            f"return [...document.querySelector('#tables table').tBodies[0].rows].map(r => r.cells[{k}].textContent)"
        )

    heads = browser.find_elements("css selector", "#tables table:first-of-type th button")
    heads[3].click()  # ours
    up = [float(x) for x in column(3) if re.match(r"[\d.]", x)]
    assert up == sorted(up)
    assert heads[3].find_element("xpath", "..").get_attribute("aria-sort") == "ascending"
    heads[3].click()
    down = [float(x) for x in column(3) if re.match(r"[\d.]", x)]
    assert down == sorted(down, reverse=True)
    heads[1].click()
    assert column(1) == sorted(column(1), key=str.lower)


@pytest.mark.slow
@browser_needed
def test_tooltips_show_the_value_under_the_pointer(browser: Any, folder: Path):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.support.ui import WebDriverWait

    open_page(browser, folder / "report.html")
    for kind in ("curves", "weights"):
        browser.find_element("id", f"tab-{kind}").click()
        wait_for_chart(browser, kind)
        plot = browser.find_element("css selector", f"#chart-{kind} .nsewdrag")
        if kind == "curves":  # a point of the last line, wherever it lies
            x, y = browser.execute_script(
                "const g = document.getElementById('chart-curves'), d = g._fullData.filter(t => t.visible === true)[0],"
                "k = Math.floor(d.x.length / 2), r = g.querySelector('.nsewdrag').getBoundingClientRect();"
                "return [g._fullLayout.xaxis.d2p(d.x[k]) - r.width / 2, g._fullLayout.yaxis.d2p(d.y[k]) - r.height / 2]"
            )
        else:
            x, y = 10, 10
        ActionChains(browser).move_to_element_with_offset(plot, round(x), round(y)).perform()
        text = WebDriverWait(browser, 10).until(
            lambda b, kind=kind: b.execute_script(
                f"return [...document.querySelectorAll('#chart-{kind} .hoverlayer text')]"
                ".map(t => t.textContent).join(' ')"
            )
        )
        assert ("MSE = " if kind == "curves" else "weight") in text


@pytest.mark.slow
@browser_needed
def test_choosing_a_data_set_draws_it_and_updates_its_label(browser: Any, folder: Path):
    open_page(browser, folder / "report.html")
    browser.find_element("id", "tab-curves").click()
    wait_for_chart(browser, "curves")
    figure = browser.find_element("id", "chart-curves")
    assert figure.get_attribute("aria-label").endswith("on mixture")
    browser.execute_script(
        "const s = document.querySelector('select[data-charts=curves]');"
        "s.value = 1; s.dispatchEvent(new Event('change'))"
    )
    assert figure.get_attribute("aria-label").endswith(NASTY)
    unnamed = browser.execute_script(
        "return [...document.querySelectorAll('button, select, figure, [role=region]')].filter(e => e.offsetParent &&"
        " !(e.textContent.trim() || e.getAttribute('aria-label'))).length"
    )
    assert unnamed == 0
