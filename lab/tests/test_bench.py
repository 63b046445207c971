"""omkl-lab bench: its measurements, tables and pages."""

import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import assert_no_requests_or_errors, browser_needed, open_page, wait_for_chart
from lab_command import invoke
from rich.console import Console

from omkl import algorithms, engine
from omkl.algorithms.graph_mkl.settings import GraphSettings
from omkl.algorithms.settings import Settings
from omkl_lab._peaks import peak
from omkl_lab.bench import floor, job, peers, table, timing, web
from omkl_lab.equations import ROOT

RESULTS, PAGE = ROOT / "results" / "bench.json", ROOT / "docs" / "benchmark.md"


@pytest.fixture(scope="module")
def quick() -> tuple[Any, list[int]]:
    ticks: list[int] = []
    return job.run(True, ticks.append), ticks


def test_everything_is_measured_and_every_step_shows_in_the_progress(quick: Any):
    results, ticks = quick
    assert sum(ticks) == job.ticks(True)
    measured = [name for name in algorithms.names() if algorithms.get(name).settings in (Settings, GraphSettings)]
    assert {t["algorithm"] for t in results["timings"]} == {timing.TITLES[learner] for learner in measured}
    assert all(t[way] > 0 for t in results["timings"] for way in ("chunk", "row", "cores", "numpy"))
    assert all(peak > 0 for peak in results["peaks"].values())
    assert {(g["what"], g["factor"]) for g in results["growth"]} >= {("time", f) for f in "dNDM"} | {("memory", "N")}
    json.dumps(results, allow_nan=False)


def test_the_tables_fit_eighty_columns_of_ascii(quick: Any):
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")  # a cell that does not fit ends in an ellipsis: no ASCII
    table.show(quick[0], Console(file=out, width=80))
    out.seek(0)
    lines = out.read().splitlines()
    assert 40 < max(map(len, lines)) <= 80


def test_one_factor_is_varied_at_a_time():
    for _, factor, shape in timing.cases():
        differ = [name for name in shape._fields if getattr(shape, name) != getattr(timing.BASE, name)]
        assert differ == ([factor] if factor else [])


def test_the_kernels_of_the_base_are_those_of_the_paper():
    ours = timing.settings_of("raker", timing.BASE)
    papers = timing.Settings()
    np.testing.assert_allclose([k.length_scale for k in ours.kernels], [k.length_scale for k in papers.kernels])


@pytest.mark.parametrize("isa", engine.supported())
def test_a_peak_reports_its_operations(isa: str):
    assert peak(isa, "sincos", 3) == 3 * 512
    assert peak(isa, "bytes_read", 2) == 2 * 160 * 1024
    assert peak(isa, "least_squares", 2) == 10
    with pytest.raises(ValueError, match="there is no peak 'cosine'"):
        peak(isa, "cosine", 1)


def test_the_floor_grows_by_what_is_counted():
    peaks = {"sincos": 1.0, "multiply_adds": 0.1, "bytes_read": 0.01}
    one, more = floor.of_round(peaks, 5, 50, 5), floor.of_round(peaks, 5, 50, 15)
    assert math.isclose(more.arithmetic - one.arithmetic, 5 * 50 * 10 * 0.1)
    assert math.isclose(more.memory - one.memory, 5 * 50 * 10 * 8 * 0.01)


def test_a_requirement_that_is_not_met_is_marked(quick: Any):
    results = json.loads(json.dumps(quick[0]))
    for line in results["floors"]:
        line["share"] = 0.1
    results["replicates"] = {"replicates": 4, "one": 1.0, "two": 0.8, "gain": 1.25, "got": 1.2, "free": False}
    found = {d["what"]: d for d in job.requirements(results)}
    assert found["SFG-MKL, d = 5: share of the floor"]["holds"] is False
    assert found["4 replicates on two cores"]["holds"] is None  # the second core was busy: cannot be decided
    assert "only 1.20 cores were free" in found["4 replicates on two cores"]["measured"]


def test_a_missing_peer_is_listed_as_missing(quick: Any, monkeypatch: pytest.MonkeyPatch):
    learner = peers.LEARNERS["river linear"]._replace(package="no-such-package")
    monkeypatch.setitem(peers.LEARNERS, "river linear", learner)
    monkeypatch.setitem(peers.LEARNERS, peers.REFERENCE, learner)
    record = peers.evaluate_peer("switch", "river linear", 50)
    assert table.peer(record) == ("river linear", "-", "-", "not installed: no-such-package is not installed")
    assert peers.river_rbf_time(np.zeros((3, 2)), np.zeros(3)) is None


def test_the_command_writes_the_requested_files(quick: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(job, "run", lambda *_: quick[0])
    names = {"--json": tmp_path / "b.json", "--html": tmp_path / "b.html", "--docs": tmp_path / "b.md"}
    words = [word for option, path in names.items() for word in (option, str(path))]
    assert invoke("bench", "--quick", *words).exit_code == 0
    assert json.loads(names["--json"].read_text()) == quick[0]
    assert names["--docs"].read_text() == table.page(quick[0])
    assert "Plotly" in names["--html"].read_text()


# The pages


@pytest.mark.slow
@browser_needed
def test_the_page_draws_all_its_charts_without_a_browser_error(browser: Any, quick: Any, tmp_path: Path):
    path = tmp_path / "bench.html"
    path.write_text(web.page(quick[0]), encoding="utf-8")
    open_page(browser, path)
    charts = browser.find_elements("css selector", "figure.chart")
    assert len(charts) >= 8
    for k in range(len(charts)):
        wait_for_chart(browser, str(k))
    assert_no_requests_or_errors(browser)
