"""The demonstration: its stream, its table, and what it does without the packages for the report."""

import csv
import io
import re
from pathlib import Path

import numpy as np
import pytest
from command import omkl
from rich.console import Console

from omkl import demo


def printed(tmp_path: Path, seed: int = 0) -> str:
    out = io.StringIO()
    demo.run(tmp_path, seed, Console(file=out, width=200))
    return out.getvalue()


def test_the_stream_depends_on_its_seed_alone():
    first, again, other = demo.hourly_demand(200, 1), demo.hourly_demand(200, 1), demo.hourly_demand(200, 2)
    np.testing.assert_array_equal(first.X, again.X)
    np.testing.assert_array_equal(first.y, again.y)
    assert not np.array_equal(first.y, other.y)


def test_inputs_are_known_before_the_target():
    stream = demo.hourly_demand(200)
    hour_before, day_before = stream.X[:, 5], stream.X[:, 6]
    np.testing.assert_array_equal(hour_before[1:], stream.y[:-1])
    np.testing.assert_array_equal(day_before[24:], stream.y[:-24])


def test_the_csv_file_has_the_stream():
    stream = demo.hourly_demand(50)
    header, *rows = csv.reader(io.StringIO(demo.as_csv(stream)))
    assert header == ["time", *demo.WEATHER, "demand"]
    assert [row[0] for row in rows[:2]] == ["2024-01-01 00:00:00", "2024-01-01 01:00:00"]
    np.testing.assert_allclose([float(row[-1]) for row in rows], stream.y, atol=5e-4)


@pytest.mark.parametrize("baseline", [demo.running_mean, demo.last_value])
def test_a_baseline_uses_only_past_targets(baseline):
    y = np.random.default_rng(0).normal(size=30)
    changed = y.copy()
    changed[-1] += 100
    np.testing.assert_array_equal(baseline(None, y), baseline(None, changed))


def test_graph_mkl_has_the_least_error_and_the_change_is_detected(tmp_path: Path):
    text = printed(tmp_path)
    errors = {
        name: float(error) for name, error in re.findall(r"^ (\w[\w ()]*?)  +([\d.]+) ", text, flags=re.MULTILINE)
    }
    assert set(errors) == set(demo.learners(0))
    assert min(errors, key=errors.__getitem__) == "GraphMKL"
    assert "\\n" not in text
    change, detected = re.findall(r"regime changes at row (\d+).*detected: (\d+)$", text, flags=re.MULTILINE)[0]
    assert 0 <= int(detected) - int(change) < 100
    assert (tmp_path / "report.html").stat().st_size > 1_000_000


def test_without_the_packages_for_the_report_it_names_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(demo, "FOR_REPORT", ("a_package_that_does_not_exist",))
    text = printed(tmp_path)
    assert "no report: a_package_that_does_not_exist not installed; pip install 'omkl[run]'" in text
    assert [path.name for path in tmp_path.iterdir()] == ["stream.csv"]


def test_the_command_writes_its_files_and_names_the_next_commands(tmp_path: Path):
    result = omkl("demo", "--seed", "3", "--out", tmp_path / "demo", check=True)
    assert {path.name for path in (tmp_path / "demo").iterdir()} == {"stream.csv", "report.html"}
    assert result.stdout.splitlines()[-1] == "  omkl run YOUR.csv --target COLUMN"
    assert result.stderr == ""


@pytest.mark.parametrize(("words", "message"), [(["--seed", "-1"], "--seed"), (["--out", "no/folder"], "no folder")])
def test_invalid_arguments_are_refused(words: list[str], message: str):
    result = omkl("demo", *words)
    assert (result.returncode, result.stdout) == (2, "")
    assert message in " ".join(result.stderr.split())
