"""The report of a run, and the history that it is drawn from."""

import html
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import assert_no_requests_or_errors, browser_needed, open_page, wait_for_chart
from command import invoke
from pages import NASTY, assert_markup_is_escaped, assert_self_contained, charts_of

from omkl.errors import ModelFileError
from omkl.stream import run_report
from omkl.stream.history import BINS, LAST, MAX_LABELS, SAMPLED, SNAPSHOTS, History
from omkl.stream.options import Options
from omkl.stream.predictions import LateTargets, Predictions
from omkl.stream.run import Outcome, Run
from omkl.stream.sample import RowSample


def written(path: Path, rows: int = 4000, target: str = "y", labels: tuple[str, ...] = (), gaps: bool = False) -> Path:
    """A stream whose relation of inputs and target changes in the middle."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (rows, 3))
    y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(rows)
    y[rows // 2 :] = 1 - y[rows // 2 :]
    lines = [f'a,b,c,"{target}"']
    for k, (x, value) in enumerate(zip(X, y, strict=True)):
        last = labels[int(np.clip((value + 2) / 4 * len(labels), 0, len(labels) - 1))] if labels else f"{value:.5f}"
        first = "" if gaps and k % 100 == 50 else f"{x[0]:.5f}"
        lines.append(f'{first},{x[1]:.5f},{x[2]:.5f},"{last}"')
    path.write_text("\n".join(lines) + "\n")
    return path


def outcome(path: Path, **options: Any) -> Outcome:
    return Run(Options(data=(str(path),), **{"target": "y", **options}), lambda text: None).run()


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return outcome(written(tmp_path_factory.mktemp("numbers") / "numbers.csv", gaps=True))


@pytest.fixture(scope="module")
def labels(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    path = written(tmp_path_factory.mktemp("labels") / "labels.csv", target=NASTY, labels=("low", NASTY, "high"))
    return outcome(path, target=NASTY)


# The page


def test_labels_without_probabilities_have_no_columns_and_no_rows_that_need_them(tmp_path: Path):
    path = written(tmp_path / "keyed.csv", 600, labels=("low", "middle", "high"))
    lines = path.read_text().splitlines()
    path.write_text("\n".join([f"key,{lines[0]}", *(f"{k % 3},{line}" for k, line in enumerate(lines[1:]))]) + "\n")
    page = run_report.page(outcome(path, by="key", learner="raker"))
    assert "Errors of each label" in page
    assert "area under the ROC curve" not in page
    assert "Worst predictions" not in page
    assert "-100.00%" not in page


def test_the_report_is_one_file_that_requests_nothing_else(numbers: Outcome):
    assert_self_contained(run_report.page(numbers))


def test_a_report_on_numbers_has_all_its_charts_and_notices(numbers: Outcome):
    page = run_report.page(numbers)
    found = charts_of(page)
    assert set(found) == {"error", "predictions", "residuals", "coverage", "weights", "importance"}
    assert all(choice["chart"]["about"] and choice["chart"]["data"] for part in found.values() for choice in part)
    assert f"{numbers.summary['rmse']:.4g}" in page
    assert "column &#39;a&#39; has empty cells" in page


def test_true_values_against_predicted_ones_come_first_where_rows_have_no_times(tmp_path: Path):
    path = written(tmp_path / "y.csv", 300)
    first = charts_of(run_report.page(outcome(path)))["predictions"][0]
    assert first["name"] == "300 rows, true against predicted"
    dots, exact = first["chart"]["data"]
    assert len(dots["x"]) == len(dots["y"]) == 300
    assert exact["x"] == exact["y"] == [min(*dots["x"], *dots["y"]), max(*dots["x"], *dots["y"])]
    lines = path.read_text().splitlines()
    days = [f"2024-{1 + k // 28:02}-{1 + k % 28:02}" for k in range(300)]
    timed = [f"day,{lines[0]}", *(f"{day},{line}" for day, line in zip(days, lines[1:], strict=True))]
    path.write_text("\n".join(timed) + "\n")
    assert charts_of(run_report.page(outcome(path)))["predictions"][0]["name"] == "the last 300 rows"


def test_the_roc_curve_of_two_labels_is_that_of_the_rarer_one_and_no_probability_is_minus_0(tmp_path: Path):
    path = written(tmp_path / "two.csv", 600, labels=("fault", "fine", "fine", "fine"))
    page = run_report.page(outcome(path))
    assert charts_of(page)["roc"][0]["chart"]["data"][0]["name"] == "fault"
    assert "-0.00%" not in page


def test_the_change_point_is_drawn_where_the_stream_changed(numbers: Outcome):
    error = charts_of(run_report.page(numbers))["error"][0]["chart"]["data"]
    drawn = [trace for trace in error if trace["name"] == "change point"]
    assert len(drawn) == 1
    assert drawn[0]["x"][0] == numbers.summary["changes"][0]
    assert 2000 <= drawn[0]["x"][0] <= 2100


def test_the_curve_so_far_ends_at_the_error_of_the_summary(numbers: Outcome):
    error = {choice["name"]: choice["chart"]["data"] for choice in charts_of(run_report.page(numbers))["error"]}
    ours, baseline = error["all rows so far"][:2]
    assert ours["y"][-1] == pytest.approx(numbers.summary["rmse"], rel=1e-4)
    assert baseline["y"][-1] == pytest.approx(numbers.summary["baseline_rmse"], rel=1e-4)
    assert ours["x"][-1] == numbers.summary["rows"]


def test_stacked_weights_sum_to_one_with_and_without_experts_that_have_no_kernel(numbers: Outcome, tmp_path: Path):
    for run in (numbers, outcome(written(tmp_path / "y.csv"), learner="raker")):
        leading = charts_of(run_report.page(run))["weights"][0]["chart"]["data"]
        total = np.sum([trace["y"] for trace in leading], axis=0)
        np.testing.assert_allclose(total, 1, atol=0.02)  # each is rounded to three digits


def test_the_confusion_matrix_counts_every_row_for_which_a_label_was_predicted(labels: Outcome):
    page = run_report.page(labels)
    found = charts_of(page)
    assert set(found) == {"error", "log_loss", "confusion", "roc", "calibration", "weights", "importance"}
    counts = np.array(found["confusion"][0]["chart"]["data"][0]["customdata"])
    assert counts.sum() == labels.summary["scored"] - 1  # nothing was known before the first row
    right = np.trace(counts) / labels.summary["scored"]
    assert right == pytest.approx(labels.summary["accuracy"])


def test_names_in_the_data_are_shown_as_text_not_as_markup(labels: Outcome):
    page = run_report.page(labels)
    assert_markup_is_escaped(page)
    assert html.escape(NASTY[:23] + "…") in charts_of(page)["confusion"][0]["chart"]["data"][0]["x"]


@pytest.mark.parametrize("rows", [1, 2, 5, 30])
def test_a_few_rows_are_enough_for_a_report(rows: int, tmp_path: Path):
    for labels in ((), ("no", "yes")):
        page = run_report.page(outcome(written(tmp_path / "y.csv", rows, labels=labels), learner="raker"))
        assert charts_of(page)["weights"]


def test_models_by_key_have_a_report_without_probabilities_and_weights(tmp_path: Path):
    numbers, kinds = {"error", "predictions", "residuals", "importance"}, {"error", "confusion", "importance"}
    for labels, charts in (((), numbers), (("no", "yes"), kinds)):
        path = written(tmp_path / "y.csv", 300, labels=labels)
        lines = path.read_text().splitlines()
        path.write_text("".join(f"{line},{'key' if k == 0 else k % 3}\n" for k, line in enumerate(lines)))
        page = run_report.page(outcome(path, learner="raker", by="key"))
        assert set(charts_of(page)) == charts


def test_a_report_without_any_target_says_so(tmp_path: Path):
    path = tmp_path / "y.csv"
    path.write_text("a,y\n1,\n2,\n")
    page = run_report.page(outcome(path))
    assert "no target was seen" in page


def test_the_command_writes_the_page_and_a_run_repeated_writes_the_same(tmp_path: Path):
    data, page = written(tmp_path / "y.csv", 600), tmp_path / "page.html"
    arguments = ["run", data, "-t", "y", "--report", page, "--checkpoint", tmp_path / "ckpt", "--every", 200]
    first = invoke(*arguments)
    assert first.exit_code == 0, first.output
    before = page.read_bytes()
    assert invoke(*arguments).exit_code == 0
    assert page.read_bytes() == before


def test_a_missing_library_is_missed_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    for name in ("omkl.report.render", "omkl.stream.run_report"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    model = tmp_path / "y.omkl"
    data = written(tmp_path / "y.csv", 50)
    result = invoke("run", data, "-t", "y", "--report", tmp_path / "p.html", "--model", model)
    assert result.exit_code == 2
    assert "pip install 'omkl[run]'" in result.output
    assert not model.exists()


# The history


@pytest.mark.parametrize("labels", [(), ("low", "high")], ids=["numbers", "labels"])
def test_a_history_does_not_depend_on_pieces_or_on_being_stopped(labels: tuple[str, ...], tmp_path: Path):
    data = written(tmp_path / "y.csv", 1500, labels=labels, gaps=True)
    whole = outcome(data).history
    pieces = outcome(data, every=137).history
    head = tmp_path / "head.csv"
    head.write_text("".join(data.read_text().splitlines(keepends=True)[:701]))
    kept = tmp_path / "ckpt"
    outcome(head, checkpoint=str(kept), every=100)
    stopped = outcome(data, checkpoint=str(kept), every=100).history
    assert whole is not None
    for other in (pieces, stopped):
        assert other is not None
        one: dict[str, Any] = {}
        two: dict[str, Any] = {}
        assert whole.encode(one) == other.encode(two)
        for name, value in one.items():
            np.testing.assert_array_equal(value, two[name], err_msg=name, strict=True)


def test_a_history_survives_its_file(numbers: Outcome, tmp_path: Path):
    assert numbers.history is not None
    arrays: dict[str, Any] = {}
    body = json.loads(json.dumps(numbers.history.encode(arrays)))
    again: dict[str, Any] = {}
    assert json.loads(json.dumps(History.decode(body, arrays).encode(again))) == body
    assert all(np.array_equal(arrays[name], again[name], equal_nan=True) for name in arrays)
    arrays["history.ends"] = arrays["history.ends"][:-1]
    with pytest.raises(ModelFileError, match="history does not fit"):
        History.decode(body, arrays)


def test_a_history_stays_small_however_long_the_stream():
    numbers, labels, late = History("regression"), History("classification"), LateTargets.none()
    rng = np.random.default_rng(0)
    n = 20_000
    for k in range(10):
        rows = np.arange(1, n + 1) + k * n
        y = rng.standard_normal(n)
        numbers.update(Predictions(rows, None, 0 * y, y[:, None] - 1, y[:, None] + 1, None, y, None), late)
        y = np.array([f"label {j}" for j in rng.integers(0, 60, n)], dtype=object)
        half = np.full(n, 0.5)
        labels.update(Predictions(rows, None, np.roll(y, 1), None, None, half, y, half), late)
    assert len(numbers.bins) <= BINS
    assert SAMPLED / 3 < len(numbers.sample.rows) <= SAMPLED
    assert len(numbers.last) == LAST
    assert numbers.ends[-1] == labels.ends[-1] == 10 * n
    assert len(labels.places) == MAX_LABELS
    assert labels.confusion.sum() == 10 * n
    assert numbers.summary()["rmse"] == pytest.approx(1, rel=0.01)


def test_snapshots_of_weights_are_few_and_even(tmp_path: Path):
    history = outcome(written(tmp_path / "y.csv", 9000), learner="sfg-mkl").history
    assert history is not None
    assert SNAPSHOTS / 3 < len(history.snapshots) <= SNAPSHOTS
    assert set(np.diff(history.snapshots[:, 0])) == {history.step}
    np.testing.assert_allclose(history.snapshots[:, 1:].sum(axis=1), 1)


def test_a_sample_of_rows_is_fair_to_every_hour_of_the_day():
    some = RowSample(2, 2048)
    rows = np.arange(1, 400_001)
    some.add(rows, rows[:, None] % 24)
    hours = np.bincount(some.rows[:, 1].astype(int), minlength=24)
    expected = len(some.rows) / 24
    assert np.all(np.abs(hours - expected) < 5 * np.sqrt(expected))


# In a browser


@pytest.mark.slow
@browser_needed
@pytest.mark.parametrize(("width", "dark"), [(1200, False), (390, True)], ids=["desktop", "phone in the dark"])
@pytest.mark.parametrize("which", ["numbers", "labels"])
def test_it_renders_with_no_network_no_console_error_and_no_sideways_scrolling(
    browser: Any, which: str, width: int, dark: bool, tmp_path: Path, request: pytest.FixtureRequest
):
    path = tmp_path / "page.html"
    run_report.write(request.getfixturevalue(which), path)
    open_page(browser, path, width, 844, dark)
    found = charts_of(path.read_text(encoding="utf-8"))
    for kind, choices in found.items():
        wait_for_chart(browser, kind)
        for k in range(len(choices)):
            browser.execute_script(
                f"const s = document.querySelector('select[data-charts={kind}]');"
                f"s.value = {k}; s.dispatchEvent(new Event('change'))"
            )
            label = browser.find_element("id", f"chart-{kind}").get_attribute("aria-label")
            assert label == choices[k]["chart"]["about"]
        hidden = browser.execute_script(
            f"return document.querySelector('select[data-charts={kind}]').offsetParent === null"
        )
        assert hidden == (len(choices) == 1)  # nothing to choose
    assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    background = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", background)[:3])) > 384) is not dark
    paper = browser.execute_script("return document.querySelector('#chart-error .main-svg').style.background")
    assert (sum(map(int, re.findall(r"\d+", paper)[:3])) > 384) is not dark
    assert_no_requests_or_errors(browser)
    assert browser.execute_script("return document.images.length") == 0  # the hostile name made no element
