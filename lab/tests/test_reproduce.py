"""Reproduction: the same numbers with any number of workers, after interruptions, and from the journal."""

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import joblib
import numpy as np
import pytest
from lab_command import OMKL_LAB
from reproduction_cases import CONFIGURATIONS, measured, untimed

from omkl.algorithms.settings import Settings
from omkl.online import Online
from omkl_lab.configurations import (
    EXPERIMENTS,
    MATCHING,
    NAMES,
    Configuration,
    Matching,
    paper_configurations,
)
from omkl_lab.files import read_lines
from omkl_lab.parallel import Journal, Unit, run_parallel
from omkl_lab.reproduce import tables
from omkl_lab.reproduce.experiments import paper_figures, paper_tables, printed
from omkl_lab.reproduce.measure import measure
from omkl_lab.reproduce.results import cases
from omkl_lab.streams import diabetes, mixture

FIELDS = ["dataset", "algorithm", "variant", "runs", "mse", "mse_std", "seconds", "diverged", "paper_mse",
          "paper_seconds"]  # fmt: skip


# Declarations


def test_every_table_and_figure_of_the_paper_has_its_file():
    assert [t.dataset for t in paper_tables()] == ["airfoil", "concrete", "naval", "wine_white"]
    assert [f.dataset for f in paper_figures()] == ["airfoil", "naval"]
    assert all(list(table.paper) == list(NAMES.values()) for table in paper_tables())
    assert len(list(EXPERIMENTS.glob("*.toml"))) == 7


def test_all_forms_that_the_paper_leaves_open_are_declared():
    forms: dict[str, list[str]] = {}
    for configuration in paper_configurations():
        forms.setdefault(configuration.algorithm, []).append(configuration.variant)
    assert {name: len(forms[name]) for name in NAMES.values()} == {
        "OMKR": 1, "RFOMKR": 1, "Raker": 1, "OMKL-GF": 4, "SFG-MKL": 6, "SFG-MKL-R": 6,
    }  # fmt: skip
    assert all(match.form in forms[name] for name, match in MATCHING.items())
    assert len(set(forms["SFG-MKL"])) == 6


def test_tolerances_are_relative_except_that_of_omkr_which_is_the_last_published_digit():
    assert Matching("f", 0.01).agrees(0.0202, 0.02)
    assert not Matching("f", 0.01).agrees(0.0203, 0.02)
    assert Matching("f", 0.01, "1e-3").agrees(0.020009, 0.02)
    assert not Matching("f", 0.01, "1e-3").agrees(0.02002, 0.02)


# Results


def test_a_cell_is_the_mean_over_its_seeds_of_plain_runs(tmp_path: Path):
    stream = mixture(350, 0)
    found = measured(tmp_path)
    errors = []
    for seed in (5, 6, 7):
        online = Online.make("sfg-mkl", Settings.paper(350, commit="first"), 3, seed)
        errors.append(np.mean((online.run(stream.X, stream.y) - stream.y) ** 2))
    mine = next(r for r in found if r["algorithm"] == "SFG-MKL")
    assert mine["mse"] == pytest.approx(np.mean(errors), rel=1e-12)
    assert mine["mse_std"] == pytest.approx(np.std(errors, ddof=1), rel=1e-9)
    assert mine["runs"] == 3


def test_results_have_these_fields_and_no_others(tmp_path: Path):
    measured(tmp_path)
    lines = read_lines(tmp_path / "results.jsonl")
    assert [list(line) for line in lines] == [FIELDS] * len(CONFIGURATIONS)
    omkr = lines[0]
    assert (omkr["algorithm"], omkr["runs"], omkr["mse_std"], omkr["paper_mse"]) == ("OMKR", 1, 0.0, None)


def test_the_paper_s_numbers_are_in_plain_units():
    assert printed("naval", "OMKR") == (0.00759, 39308.53)
    assert printed("mixture", "OMKR") is None


@pytest.mark.parametrize("jobs", [1, 3])
def test_the_number_of_workers_changes_nothing(tmp_path: Path, jobs: int):
    measured(tmp_path / "two")
    measured(tmp_path / "other", jobs)
    for name in ("results.jsonl", "details.jsonl"):
        one, other = (untimed(read_lines(tmp_path / folder / name)) for folder in ("two", "other"))
        assert one == other


def test_work_runs_in_threads_unless_joblib_is_configured_otherwise():
    here = os.getpid()
    work = [Unit((str(k),), lambda: [{"process": os.getpid()}], {}) for k in range(4)]
    assert {records[0]["process"] for _, records in run_parallel(work, 2)} == {here}
    with joblib.parallel_config(backend="loky"):
        assert here not in {records[0]["process"] for _, records in run_parallel(work, 2)}


def test_processes_find_what_threads_find(tmp_path: Path):
    measured(tmp_path / "threads")
    with joblib.parallel_config(backend="loky"):
        measured(tmp_path / "processes")
    one, other = (untimed(read_lines(tmp_path / name / "results.jsonl")) for name in ("threads", "processes"))
    assert one == other


def test_runs_in_the_journal_are_not_repeated(tmp_path: Path):
    before = measured(tmp_path)
    lines = (tmp_path / "journal.jsonl").read_text()
    again = measured(tmp_path)
    assert (tmp_path / "journal.jsonl").read_text() == lines
    assert before == again  # times included: nothing ran
    assert len(measured(tmp_path, runs=4)) == len(CONFIGURATIONS)
    assert (tmp_path / "journal.jsonl").read_text().startswith(lines)


def test_another_stream_of_the_same_name_is_run_again(tmp_path: Path):
    before = measured(tmp_path)
    after = measured(tmp_path, stream=mixture(350, 1))
    assert before[0]["mse"] != after[0]["mse"]
    assert len(read_lines(tmp_path / "results.jsonl")) == len(CONFIGURATIONS)


def test_results_for_other_cells_stay(tmp_path: Path):
    measured(tmp_path)
    measured(tmp_path, stream=diabetes())
    names = [line["dataset"] for line in read_lines(tmp_path / "results.jsonl")]
    assert names == ["mixture"] * len(CONFIGURATIONS) + ["diabetes"] * len(CONFIGURATIONS)


def test_progress_adds_up_to_the_rows_there_are(tmp_path: Path):
    for _ in range(2):  # the second time everything is there already
        rows: list[int] = []
        measured(tmp_path, tick=rows.append)
        assert sum(rows) == 350 * (1 + 4 * 3)


@pytest.mark.parametrize("rate", [50.0, 1e6])
def test_a_diverged_cell_has_no_mse(tmp_path: Path, rate: float):
    """At the first rate the MSE is finite and above 1, at the second it is not finite."""
    diverging = Configuration("raker", "far too fast", {"learning_rate": rate})
    results, details = measure(cases([mixture(40, 0)], [diverging], 2, 0), tmp_path, 1)
    assert (results[0]["diverged"], results[0]["mse"], results[0]["mse_std"]) == (True, None, None)
    assert details[0]["diverged_runs"] == 2
    assert "diverges" in tables.markdown(results)
    json.loads((tmp_path / "results.jsonl").read_text())


def test_two_commands_do_not_write_to_one_folder(tmp_path: Path):
    with (
        Journal(tmp_path / "journal.jsonl"),
        pytest.raises(OSError, match=f"another omkl-lab is writing to {tmp_path}"),
        Journal(tmp_path / "journal.jsonl"),
    ):
        pass


@pytest.mark.parametrize("tail", ['{"key": "b", "rec', '{"key": "b", "record": {}}', "\0\0\0", "nonsense\n"])
def test_an_incomplete_line_is_removed_and_the_others_kept(tmp_path: Path, tail: str):
    path = tmp_path / "journal.jsonl"
    with Journal(path) as journal:
        journal.add(("a",), [{"x": 1}])
    whole = path.read_text()
    path.write_text(whole + tail)
    with Journal(path) as journal:
        assert journal.records == {"a": {"x": 1}}
        journal.add(("c",), [{"x": 2}])
    with Journal(path) as journal:
        assert set(journal.records) == {"a", "c"}
    assert path.read_text().startswith(whole)


# Interruptions


def command(out: Path, *more: str) -> list[str]:
    return [*OMKL_LAB, "reproduce", "--datasets", "mixture", "--algorithms", "raker,sfg-mkl", "--runs", "12", "--jobs",
            "2", "--out", str(out), *more]  # fmt: skip


def test_killed_ten_times_it_ends_with_the_same_results(tmp_path: Path):
    uninterrupted = subprocess.run(command(tmp_path / "uninterrupted"), capture_output=True, text=True, check=True)
    assert "report.html" in uninterrupted.stdout

    def written() -> int:
        path = out / "results.jsonl"
        return path.stat().st_mtime_ns if path.exists() else 0

    rng = random.Random(4)
    out = tmp_path / "killed"
    codes = []
    for _ in range(10):
        before = written()
        process = subprocess.Popen(
            command(out), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )  # fmt: skip
        while process.poll() is None and written() == before:
            time.sleep(0.002)  # nothing is written while Python starts
        time.sleep(rng.uniform(0, 0.2))
        process.send_signal(rng.choice((signal.SIGKILL, signal.SIGINT)))
        _, errors = process.communicate(timeout=60)
        codes.append(process.returncode)
        assert "Traceback" not in errors
    assert set(codes) <= {0, 130, -signal.SIGKILL}
    assert codes.count(0) < 10

    subprocess.run(command(out), capture_output=True, check=True)
    for name in ("results.jsonl", "details.jsonl", "graphs.jsonl"):
        assert untimed(read_lines(out / name)) == untimed(read_lines(tmp_path / "uninterrupted" / name))
    assert not [name for name in os.listdir(out) if name.startswith(".") and name.endswith("tmp")]


def test_interrupted_it_leaves_at_once_with_one_line_and_130(tmp_path: Path):
    process = subprocess.Popen(
        command(tmp_path / "out", "--runs", "5000"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    while process.poll() is None and not (tmp_path / "out" / "results.jsonl").exists():
        time.sleep(0.01)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    begin = time.monotonic()
    out, errors = process.communicate(timeout=60)
    assert time.monotonic() - begin < 10
    assert (process.returncode, out) == (130, "")
    assert errors == "omkl: interrupted\n"
