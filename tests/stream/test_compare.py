"""omkl compare: every learner on one stream, which is read once."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import assert_no_requests_or_errors, browser_needed, open_page, wait_for_chart
from command import invoke

from omkl.cli.options import LEARNERS
from omkl.estimators.declaration import Declaration, supports
from omkl.stream import compare_report
from omkl.stream.compare import Comparison
from omkl.stream.options import Options
from omkl.stream.run import Run


def written(path: Path, rows: int = 1200, labels: tuple[str, ...] = ()) -> Path:
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (rows, 2))
    y = np.sin(3 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(rows)
    colours = rng.choice(["red", "green", "blue"], rows)
    lines = ["a,b,colour,y"]
    for k, (x, value) in enumerate(zip(X, y, strict=True)):
        last = labels[int(value > 0)] if labels else f"{value:.5f}"
        first = "" if k % 90 == 40 else f"{x[0]:.5f}"
        lines.append(f"{first},{x[1]:.5f},{colours[k]},{'' if k % 70 == 30 else last}")
    path.write_text("\n".join(lines) + "\n")
    return path


def compared(path: Path, learners: tuple[str, ...] = LEARNERS, rows: int | None = None, **options: Any) -> Comparison:
    made = Comparison(Options(data=(str(path),), target="y", **options), learners, rows, 2, lambda text: None)
    made.run()
    return made


def by_name(comparison: Comparison) -> dict[str, Any]:
    return {line["name"]: line for line in comparison.ranking()}


def test_the_help_of_run_names_every_learner():
    text = " ".join(invoke("run", "--help").output.split())
    assert all(name in text.partition("--learner")[2].partition("--features")[0] for name in LEARNERS)
    assert len(LEARNERS) >= 7


@pytest.mark.parametrize("labels", [(), ("no", "yes")], ids=["numbers", "labels"])
def test_every_learner_has_exactly_the_error_of_a_run_of_its_own(labels: tuple[str, ...], tmp_path: Path):
    path = written(tmp_path / "data.csv", labels=labels)
    lines = by_name(compared(path))
    learners = [name for name in LEARNERS if supports(name, "classification" if labels else "regression")]
    baselines = {"most frequent label", "last label"} if labels else {"running mean", "last value"}
    baselines.add("linear model")
    assert set(lines) == {*learners, *baselines}
    for name in learners:
        alone = Run(Options(data=(str(path),), target="y", learner=name), lambda text: None).run().summary
        if labels:
            assert lines[name]["error_rate"] == 1 - alone["accuracy"]
            assert lines[name]["log_loss"] == alone["log_loss"]
            assert lines["linear model"]["error_rate"] == pytest.approx(1 - alone["linear_accuracy"])
        else:
            assert lines[name]["rmse"] == alone["rmse"]
            assert lines["linear model"]["rmse"] == pytest.approx(alone["linear_rmse"])


def keyed(path: Path, labels: tuple[str, ...] = ()) -> Path:
    rng = np.random.default_rng(2)
    lines = ["meter,a,y"]
    for k in range(600):
        meter, a = rng.integers(4), rng.uniform(-1, 1)
        y = (meter - 1.5) * a + 3 * meter
        lines.append(f"m{meter},{a:.5f},{labels[int(y > 4)] if labels else f'{y:.5f}'}")
        if k == 300:
            lines.append("m9,0.5,")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("labels", [(), ("no", "yes")], ids=["numbers", "labels"])
def test_with_keys_every_learner_has_the_error_of_its_own_run_by_key(labels: tuple[str, ...], tmp_path: Path):
    path = keyed(tmp_path / "data.csv", labels)
    comparison = compared(path, ("sfg-mkl", "raker"), by="meter")
    lines, summary = by_name(comparison), comparison.summary()
    assert (summary["by"], summary["keys"]) == ("meter", 4)
    for name in ("sfg-mkl", "raker"):
        options = Options(data=(str(path),), target="y", learner=name, by="meter")
        alone = Run(options, lambda text: None).run().summary
        if labels:
            assert lines[name]["error_rate"] == 1 - alone["accuracy"]
            assert lines["linear model"]["error_rate"] == pytest.approx(1 - alone["linear_accuracy"])
        else:
            assert lines[name]["rmse"] == alone["rmse"]
            assert lines["linear model"]["rmse"] == pytest.approx(alone["linear_rmse"])
    assert "values of meter with a model each" in compare_report.page(comparison)


def test_with_keys_baselines_are_those_of_each_key(tmp_path: Path):
    path = tmp_path / "data.csv"
    path.write_text("k,a,y\nu,1,2\nv,1,10\nu,1,4\nv,1,\nv,1,12\nu,1,6\n")
    lines = by_name(compared(path, ("raker",), by="k", task="regression"))
    assert lines["last value"]["rmse"] == pytest.approx(np.sqrt((2**2 + 10**2 + 2**2 + 2**2 + 2**2) / 5))
    assert lines["running mean"]["rmse"] == pytest.approx(np.sqrt((2**2 + 10**2 + 2**2 + 2**2 + 3**2) / 5))
    path.write_text("k,a,y\nu,1,x\nv,1,y\nu,1,x\nv,1,y\nv,1,x\n")
    lines = by_name(compared(path, ("raker",), by="k"))
    assert lines["last label"]["error_rate"] == lines["most frequent label"]["error_rate"] == pytest.approx(3 / 5)


def test_compare_by_is_an_option(tmp_path: Path):
    result = invoke("compare", keyed(tmp_path / "data.csv"), "-t", "y", "--by", "meter", "--learners", "sfg-mkl")
    assert result.exit_code == 0, result.stderr
    assert "4 keys with a model each" in result.stdout


def test_baselines_predict_what_their_names_say(tmp_path: Path):
    path = tmp_path / "data.csv"
    path.write_text("a,y\n1,2\n1,4\n1,\n1,9\n1,3\n")
    lines = by_name(compared(path, ("raker",)))
    assert lines["last value"]["rmse"] == pytest.approx(np.sqrt((2**2 + 2**2 + 5**2 + 6**2) / 4))
    assert lines["running mean"]["rmse"] == pytest.approx(np.sqrt((2**2 + 2**2 + 6**2 + 2**2) / 4))
    path.write_text("a,y\n1,x\n1,x\n1,y\n1,\n1,x\n1,y\n")
    lines = by_name(compared(path, ("raker",)))
    assert lines["last label"]["error_rate"] == pytest.approx(4 / 5)
    assert lines["most frequent label"]["error_rate"] == pytest.approx(3 / 5)


def test_the_best_comes_first_and_the_others_are_relative_to_it(tmp_path: Path):
    comparison = compared(written(tmp_path / "data.csv"))
    lines = comparison.ranking()
    errors = [line["rmse"] for line in lines]
    assert errors == sorted(errors)
    assert [line["relative"] for line in lines] == [error / errors[0] for error in errors]
    assert lines[0]["name"] == "graph-mkl"
    assert all(line["microseconds_per_row"] > 0 for line in lines if line["kind"] == "learner")


def test_a_learner_that_diverges_drops_out_and_the_others_continue(tmp_path: Path):
    path = written(tmp_path / "data.csv", 21_000)  # three pieces
    made = Comparison(Options(data=(str(path),), target="y"), ("raker", "sfg-mkl"), None, 2, lambda text: None)

    def lengthen_the_step(comparison: Comparison) -> None:
        raker = comparison.entrants[0]
        if comparison.rows == 10_000:
            learner: Any = raker.model.learner  # type: ignore[union-attr]  # it has one by now
            unstable = Declaration("raker", "regression", {"stabiliser": "none", "learning_rate": 1e4})
            learner.core = unstable.core(0, learner.names)

    made.run(lengthen_the_step)
    lines = made.ranking()
    assert [line["name"] for line in lines][-1] == "raker"
    assert "between rows 10,001 and 20,000: raker diverged in round" in lines[-1]["diverged"]
    assert lines[-1]["relative"] is None
    assert "rmse" not in lines[-1]
    alone = Run(Options(data=(str(path),), target="y", learner="sfg-mkl"), lambda text: None).run().summary
    assert by_name(made)["sfg-mkl"]["rmse"] == alone["rmse"]
    page = compare_report.page(made)
    assert "diverged in round" in page


def test_no_more_rows_are_read_than_wanted(tmp_path: Path):
    path = written(tmp_path / "data.csv")
    assert compared(path, ("raker",), rows=500).rows == 500
    head = tmp_path / "head.csv"
    head.write_text("".join(path.read_text().splitlines(keepends=True)[:501]))
    assert by_name(compared(path, ("raker",), rows=500))["raker"]["rmse"] \
        == by_name(compared(head, ("raker",)))["raker"]["rmse"]  # fmt: skip


def test_the_command_shows_a_table_or_json_and_writes_a_report(tmp_path: Path):
    path, page = written(tmp_path / "data.csv", 300), tmp_path / "page.html"
    shown = invoke("compare", str(path), "-t", "y", "--report", str(page))
    assert shown.exit_code == 0, shown.output
    assert re.search(r"RMSE\s+MAE\s+relative\s+µs/row", shown.stdout)
    assert all(name in shown.stdout for name in (*LEARNERS, "running mean", "last value"))
    assert "Ranking, from the best to the worst" in page.read_text(encoding="utf-8")
    assert ">diverged<" not in page.read_text(encoding="utf-8")  # a column with nothing in it
    as_json = invoke("compare", str(path), "-t", "y", "--json", "--learners", "raker,omkl-gf")
    result = json.loads(as_json.stdout)
    assert result["rows"] == 300
    baselines = {"running mean", "last value", "linear model"}
    assert {line["name"] for line in result["ranking"]} == {"raker", "omkl-gf", *baselines}
    assert as_json.stderr == ""
    silent = invoke("compare", str(path), "-t", "y", "--quiet", "--learners", "raker")
    assert (silent.exit_code, silent.output) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--learners", "svm"], "--learners must be one of graph-mkl"),
        (["--report", "nowhere/page.html"], "there is no folder 'nowhere'"),
        (["--features", "y"], "'y' is both --target and --features"),
    ],
)
def test_invalid_arguments_are_one_line_of_message(arguments: list[str], complaint: str, tmp_path: Path):
    result = invoke("compare", str(written(tmp_path / "data.csv", 20)), "-t", "y", *arguments)
    assert result.exit_code == 2
    assert complaint in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.skipif(os.name != "posix", reason="signals are sent the POSIX way")
def test_ctrl_c_shows_the_ranking_so_far(tmp_path: Path):
    rows = written(tmp_path / "data.csv", 10_000).read_bytes()
    omkl = str(Path(sys.executable).with_name("omkl"))
    command = [omkl, "compare", "-", "-t", "y", "--learners", "raker,omkl-gf"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(rows)  # a whole piece; the pipe stays open
        process.stdin.flush()
        assert b"holds numbers" in process.stderr.readline()  # it has begun
        process.send_signal(signal.SIGINT)
        out, errors = process.stdout.read().decode(), process.stderr.read().decode()
        assert process.wait(20) == 130
    assert "10,000 rows" in out
    assert re.search(r"raker +0\.\d+", out)
    assert "stopped after 10000 rows" in errors


@pytest.mark.slow
@browser_needed
@pytest.mark.parametrize(("width", "dark"), [(1200, False), (390, True)], ids=["desktop", "phone in the dark"])
def test_its_report_renders_with_no_network_no_console_error_and_no_sideways_scrolling(
    browser: Any, width: int, dark: bool, tmp_path: Path
):
    path = tmp_path / "page.html"
    compare_report.write(compared(written(tmp_path / "data.csv")), path)
    open_page(browser, path, width, 844, dark)
    for kind in ("errors", "costs"):
        wait_for_chart(browser, kind)
    assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    rows = browser.find_elements("css selector", "tbody tr")
    assert len(rows) == len(LEARNERS) + 3
    assert_no_requests_or_errors(browser)
