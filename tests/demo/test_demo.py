"""The demonstration: what it prints, what it writes, and its report in a browser."""

import csv
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import assert_no_requests_or_errors, browser_needed, open_page, wait_for_chart
from command import omkl
from pages import assert_self_contained, charts_of
from rich.console import Console

from omkl.datasets.demand import hourly_demand
from omkl.demo import job, learners
from omkl.stream.terminal import Terminal


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What the demonstration prints, and its folder."""
    folder, out = tmp_path_factory.mktemp("demo"), io.StringIO()
    job.run(folder / "out", 0, Terminal("standard output", file=out, width=100), Console(quiet=True).status(""))
    return out.getvalue(), folder / "out"


def test_every_learner_is_in_the_table_the_best_first(shown: tuple[str, Path]):
    found = re.findall(r"^ (\S[\w ()]*?)  +([\d.]+)  ", shown[0], flags=re.MULTILINE)
    assert "\\" not in shown[0]  # an escaped control character
    errors = [float(error) for _, error in found]
    assert {name for name, _ in found} == set(learners.LEARNERS)
    assert errors == sorted(errors)


def test_the_change_is_noticed_within_a_day(shown: tuple[str, Path]):
    change, row = re.findall(
        r"After row ([\d,]+) the town's habits change; GraphMKL noticed it at row ([\d,]+)", shown[0]
    )[0]
    assert 0 <= int(row.replace(",", "")) - int(change.replace(",", "")) < 24


def test_the_three_next_commands_end_the_output(shown: tuple[str, Path]):
    after = shown[0].split("Next:\n")[1].splitlines()
    assert [line.split()[1] for line in after[::2]] == ["run", "compare", "run"]
    assert len(after) == 6


def test_the_first_of_the_next_commands_runs(shown: tuple[str, Path], tmp_path: Path):
    command = shown[0].split("Next:\n")[1].splitlines()[0].split()[1:]
    result = omkl(*command, cwd=tmp_path, check=True)
    assert "coverage" in result.stdout
    assert (tmp_path / "demand.html").exists()


def test_the_file_has_the_stream(shown: tuple[str, Path]):
    stream = hourly_demand()
    header, *rows = csv.reader(io.StringIO((shown[1] / "stream.csv").read_text()))
    assert header == [*stream.columns, "demand"]
    assert [row[0] for row in rows[:2]] == ["2024-09-01 00:00:00", "2024-09-01 01:00:00"]
    np.testing.assert_array_equal([float(row[-1]) for row in rows], stream.y)
    assert [k for k, row in enumerate(rows) if row[1] == ""] == list(range(*stream.outage))


@pytest.mark.parametrize("name", learners.LEARNERS)
def test_no_learner_knows_a_target_before_it_has_predicted_its_row(name: str):
    stream = hourly_demand(120)
    y = stream.y.copy()
    y[-1] += 100
    before, after = (learners.LEARNERS[name](each, 0).y_pred for each in (stream, stream._replace(y=y)))
    np.testing.assert_array_equal(before, after)


def test_without_the_packages_for_the_report_it_names_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(job, "FOR_REPORT", ("a_package_that_does_not_exist",))
    monkeypatch.setattr(job, "LEARNERS", {"GraphMKL": learners.graph_mkl})
    monkeypatch.setattr(job, "hourly_demand", lambda random_state: hourly_demand(400, random_state))
    out = io.StringIO()
    job.run(tmp_path, 0, Console(file=out, width=100), Console(quiet=True).status(""))
    assert "no report: a_package_that_does_not_exist not installed; pip install 'omkl[run]'" in out.getvalue()
    assert [path.name for path in tmp_path.iterdir()] == ["stream.csv"]


def test_the_status_is_gone_before_results_are_printed_on_the_same_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(job, "LEARNERS", {name: learners.LEARNERS[name] for name in ("GraphMKL", "running mean")})
    monkeypatch.setattr(job, "hourly_demand", lambda random_state: hourly_demand(400, random_state))
    monkeypatch.setattr(job, "FOR_REPORT", ("a_package_that_does_not_exist",))
    out = io.StringIO()
    console = Console(file=out, width=100, force_terminal=True)
    job.run(tmp_path, 0, console, console.status(""))
    hidden, *after = out.getvalue().split("\x1b[?25h")  # the cursor is shown again when the status ends
    assert "learner 2 of 2: running mean" in hidden
    assert len(after) == 1
    assert "Next:" in after[0]
    assert "learner 2 of 2" not in after[0]


@pytest.mark.parametrize(("words", "message"), [(["--seed", "-1"], "--seed"), (["--out", "no/folder"], "no folder")])
def test_invalid_arguments_are_refused(words: list[str], message: str):
    result = omkl("demo", *words)
    assert (result.returncode, result.stdout) == (2, "")
    assert message in " ".join(result.stderr.split())


# The report


def test_the_report_is_one_file_in_which_nothing_is_empty(shown: tuple[str, Path]):
    page = (shown[1] / "report.html").read_text(encoding="utf-8")
    assert_self_contained(page)
    charts = charts_of(page)
    assert set(charts) == {"errors", "predictions", "ranking"}
    for choices in charts.values():
        assert all(any(values != [] for values in trace.values()) for c in choices for trace in c["chart"]["data"])
    assert len(charts["predictions"]) == 3
    assert not re.findall(r"<(td|th|strong|span|p|li)[^>]*>\s*</\1>", page.split("<script", 1)[0])


@pytest.mark.slow
@browser_needed
@pytest.mark.parametrize("width", [1400, 390])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_report_fits_the_screen(shown: tuple[str, Path], browser: Any, width: int, dark: bool):
    open_page(browser, shown[1] / "report.html", width, dark=dark)
    for kind in ("errors", "predictions", "ranking"):
        wait_for_chart(browser, kind)
    assert browser.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
    cut_off = browser.execute_script("""const named = document.querySelectorAll(".annotation-text, .legendtext");
        return [...named]
        .map((each) => [each.textContent, each.getBoundingClientRect()])
        .filter(([, box]) => box.left < 0 || box.right > window.innerWidth).map(([text]) => text);""")
    assert cut_off == []
    assert_no_requests_or_errors(browser)
