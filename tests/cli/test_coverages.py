"""Coverages of prediction intervals: one or several, of runs, of saved models, and in checkpoints."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import invoke
from pyarrow import csv
from tables import table

from omkl import persist
from omkl.stream.history import History


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "d.csv"
    path.write_text(table(400))
    return path


def run(command: str, *arguments: Any) -> dict[str, Any]:
    result = invoke(command, *arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def columns(path: Path) -> dict[str, np.ndarray]:
    read = csv.read_csv(path)
    return {name: read[name].to_numpy() for name in read.column_names}


def test_several_coverages_are_those_of_runs_with_each_of_them(tmp_path: Path, data: Path):
    def one(*arguments: Any) -> tuple[dict[str, np.ndarray], dict[str, Any], bytes]:
        out, model = tmp_path / "p.csv", tmp_path / "m.omkl"
        summary = run("run", data, "-t", "y", *arguments, "--predictions", out, "--model", model)
        return columns(out), summary, model.read_bytes()

    both, summary, model = one("--coverage", "0.8,0.95")
    assert list(both) == ["row", "prediction", "lower_0.8", "upper_0.8", "lower_0.95", "upper_0.95", "target"]
    known = ~np.isnan(both["target"])
    for coverage in ("0.8", "0.95"):
        alone, of_one, same_model = one("--coverage", coverage)
        assert list(alone) == ["row", "prediction", "lower", "upper", "target"]
        assert same_model == model
        np.testing.assert_array_equal(both["prediction"], alone["prediction"])
        for end in ("lower", "upper"):
            np.testing.assert_array_equal(both[f"{end}_{coverage}"], alone[end])
        inside = (alone["lower"] <= alone["target"]) & (alone["target"] <= alone["upper"])
        assert summary["coverages"][coverage] == of_one["coverage"] == inside[known].mean()
    assert "coverage" not in summary
    assert (both["upper_0.8"] <= both["upper_0.95"]).all()


def test_without_the_option_the_coverage_is_90_percent(tmp_path: Path, data: Path):
    files = tmp_path / "a.csv", tmp_path / "b.csv"
    plain, given = (run("run", data, "-t", "y", "--predictions", out, *more)
                    for out, more in zip(files, ([], ["--coverage", "0.9"]), strict=True))  # fmt: skip
    assert plain["coverages"] == given["coverages"] == {"0.9": plain["coverage"]}
    assert files[0].read_bytes() == files[1].read_bytes()


def test_json_lines_have_the_same_intervals(tmp_path: Path, data: Path):
    for name in ("p.csv", "p.jsonl"):
        run("run", data, "-t", "y", "--coverage", "0.5,0.99", "--predictions", tmp_path / name)
    rows = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    for name, values in columns(tmp_path / "p.csv").items():
        np.testing.assert_array_equal([np.nan if row[name] is None else row[name] for row in rows], values)


def test_learn_and_predict_choose_their_own_coverage(tmp_path: Path, data: Path):
    model, out = tmp_path / "m.omkl", tmp_path / "p.csv"
    run("run", data, "-t", "y", "--model", model, "--coverage", "0.5")
    assert invoke("predict", model, data, "--predictions", out, "--coverage", "0.8,0.9").exit_code == 0
    wide = columns(out)
    assert invoke("predict", model, data, "--predictions", out).exit_code == 0
    np.testing.assert_array_equal(columns(out)["lower"], wide["lower_0.9"])
    summary = run("learn", model, data, "--predictions", out, "--coverage", "0.7,0.8")
    assert list(summary["coverages"]) == ["0.7", "0.8"]
    assert "lower_0.7" in columns(out)


def test_rows_that_wait_keep_the_intervals_that_were_predicted_for_them(tmp_path: Path):
    first, second, model = tmp_path / "1.csv", tmp_path / "2.csv", tmp_path / "m.omkl"
    first.write_text("id,a,y\n" + "".join(f"{k},{k % 7},{k % 7}\n" for k in range(60)) + "x,3,\nz,4,\n")
    second.write_text("id,a,y\nx,3,3\nz,4,4000\n")
    run("run", first, "-t", "y", "--key", "id", "--coverage", "0.8,0.9", "--model", model)
    summary = run("learn", model, second, "--coverage", "0.9,0.99")
    assert summary["coverages"] == {"0.9": 0.5}  # of 0.99 nothing was predicted for them


@pytest.mark.parametrize("wrong", ["0", "1", "0.995", "80", "-0.5", "nan", "high", "0.8,0.8", "0.8;0.9"])
@pytest.mark.parametrize("command", ["run", "learn", "predict"])
def test_a_coverage_that_cannot_be_had_is_refused_before_anything_is_read(command: str, wrong: str):
    given = ["run", "absent.csv", "-t", "y"] if command == "run" else [command, "absent.omkl", "absent.csv"]
    result = invoke(*given, "--coverage", wrong)
    assert result.exit_code == 2
    assert "--coverage" in result.stderr
    assert "0.99" in result.stderr or "twice" in result.stderr


@pytest.mark.parametrize("arguments", [["--learner", "raker"], ["--task", "classification"], ["--by", "colour"]])
def test_a_coverage_where_there_are_no_intervals_is_refused(tmp_path: Path, data: Path, arguments: list[str]):
    result = invoke("run", data, "-t", "y", "--coverage", "0.8", *arguments, "--predictions", tmp_path / "p.csv")
    assert result.exit_code == 2
    assert "--coverage" in result.stderr
    assert not (tmp_path / "p.csv").exists()


def test_labels_that_are_found_to_be_labels_have_no_coverage(tmp_path: Path):
    (tmp_path / "d.csv").write_text("a,y\n1,yes\n2,no\n")
    result = invoke("run", tmp_path / "d.csv", "-t", "y", "--coverage", "0.8")
    assert result.exit_code == 2
    assert "'y' holds labels" in result.stderr


def test_a_run_resumes_with_its_coverages_and_no_others(tmp_path: Path, data: Path):
    lines = data.read_text().splitlines(keepends=True)
    head, kept = tmp_path / "head.csv", ["--checkpoint", tmp_path / "c.ckpt", "--every", 50]
    given = ["-t", "y", "--coverage", "0.8,0.95"]
    head.write_text("".join(lines[:201]))
    run("run", head, *given, *kept, "--predictions", tmp_path / "p.csv")
    other = invoke("run", head, "-t", "y", "--coverage", "0.8", *kept, "--predictions", tmp_path / "p.csv")
    assert other.exit_code == 2
    assert "coverage=[0.8, 0.95]" in other.stderr
    head.write_text("".join(lines))
    resumed = run("run", head, *given, *kept, "--predictions", tmp_path / "p.csv")
    whole = run("run", data, *given, "--predictions", tmp_path / "q.csv")
    assert (tmp_path / "p.csv").read_bytes() == (tmp_path / "q.csv").read_bytes()
    for name in set(whole) - {"seconds", "rows_per_second"}:
        assert resumed[name] == whole[name], name


def test_a_checkpoint_of_before_there_were_coverages_and_linear_models_goes_on(tmp_path: Path, data: Path):
    run("run", data, "-t", "y", "--checkpoint", tmp_path / "c.ckpt")
    history = persist.load(tmp_path / "c.ckpt").history
    arrays: persist.Arrays = {}
    body = history.encode(arrays)
    rows, loss, baseline, _, absolute, log_loss, covered, with_interval = arrays["history.bins"].T
    older = arrays | {
        "history.bins": np.column_stack((rows, loss, baseline, absolute, covered, with_interval, log_loss))
    }
    again = History.decode({name: body[name] for name in body if name not in ("coverages", "linear")}, older)
    now, then = history.summary(), again.summary()
    assert then == {name: value for name, value in now.items() if not name.startswith("linear")}
