"""`omkl-lab reproduce`: its files, its options and its messages."""

import io
import re
from pathlib import Path

import numpy as np
import pytest
from data_sets import data_needed
from lab_command import invoke, omkl_lab
from reproduction_cases import published_line, untimed
from rich.console import Console

from omkl_lab.configurations import (
    NAMES,
    algorithms_named,
    paper_configurations,
)
from omkl_lab.data.sets import PAPER
from omkl_lab.files import read_lines
from omkl_lab.reproduce import job, tables

# The command


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command on a user's file whose names contain markup."""
    folder = tmp_path_factory.mktemp("small")
    rng = np.random.default_rng(0)
    table = rng.random((60, 3))
    path = folder / "<b>&_|x.csv"
    np.savetxt(path, table, delimiter=",", header="<i>a</i>,b|c,target", comments="")
    words = ["reproduce", "--datasets", str(path), "--runs", "2", "--jobs", "1", "--out", str(folder / "out")]
    result = invoke(*words)
    assert result.exit_code == 0, result.output
    return folder / "out"


def test_the_command_writes_every_file(small: Path):
    for name in ("results.jsonl", "tables.md", "tables.tex", "report.html", "figures"):
        assert (small / name).exists()
    lines = read_lines(small / "results.jsonl")
    assert len(lines) == len(paper_configurations())
    assert {line["dataset"] for line in lines} == {"<b>&_|x"}


def test_names_are_text_in_markdown_and_latex(small: Path):
    text = (small / "tables.md").read_text()
    assert "<b>" not in text
    assert "## &lt;b&gt;&amp;\\_\\|x" in text
    assert "<b>\\&\\_|x" in (small / "tables.tex").read_text()


def test_names_may_be_separated_by_commas_or_spaces_or_given_one_by_one(tmp_path: Path):
    ways = [
        ["--datasets", "diabetes,mixture", "--algorithms", "raker,sfg-mkl"],
        ["--datasets", "diabetes", "mixture", "--algorithms", "Raker", "SFG-MKL"],
        ["--datasets", "diabetes", "--datasets", "mixture", "--algorithms", "RAKER", "--algorithms", "sfg-mkl"],
    ]
    found = []
    for k, way in enumerate(ways):
        result = invoke("reproduce", *way, "--runs", "1", "--out", str(tmp_path / str(k)))
        assert result.exit_code == 0, result.output
        found.append(untimed(read_lines(tmp_path / str(k) / "results.jsonl")))
    assert found[0] == found[1] == found[2]
    assert {(r["dataset"], r["algorithm"]) for r in found[0]} == {
        (d, a) for d in ("diabetes", "mixture") for a in ("Raker", "SFG-MKL")
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--datasets", "arfoil"], "unknown data set 'arfoil'; choose from airfoil, concrete, naval"),
        (["--algorithms", "SFG"], "unknown algorithm 'SFG'; choose from OMKR, RFOMKR, Raker"),
        (["--datasets", "har"], "add --sweeps"),
        (["--datasets", "no.csv"], "no.csv"),
    ],
)
def test_unknown_names_are_reported_with_the_known_ones(tmp_path: Path, words: list[str], message: str):
    result = invoke("reproduce", *words, "--out", str(tmp_path / "out"))
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_an_invalid_file_is_reported_with_line_and_column_before_anything_runs(tmp_path: Path):
    (tmp_path / "bad.csv").write_text("a,b,target\n1,2,3\n4,five,6\n")
    words = ["reproduce", "--datasets", str(tmp_path / "bad.csv"), "--out", str(tmp_path / "out")]
    result = invoke(*words)
    assert result.exit_code == 2
    assert result.stderr == f"omkl: {tmp_path}/bad.csv, line 3, column 2 (b): expected a finite number, got 'five'\n"


def test_a_missing_data_set_is_skipped_with_one_line_and_the_command_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OMKL_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    words = ["reproduce", "--datasets", "istanbul,diabetes", "--algorithms", "SFG-MKL", "--runs", "1"]
    result = invoke(*words, "--out", str(tmp_path / "out"))
    assert result.exit_code == 0
    assert re.match(r"skipped: data set istanbul not found: put istanbul\.csv", result.stderr)
    assert {line["dataset"] for line in read_lines(tmp_path / "out" / "results.jsonl")} == {"diabetes"}


def test_without_the_drawing_packages_it_reports_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(job, "DRAWERS", ("a_package_that_nobody_has",))
    words = ["reproduce", "--datasets", "diabetes", "--algorithms", "SFG-MKL", "--runs", "1", "--out", str(tmp_path)]
    result = invoke(*words)
    assert result.exit_code == 0
    assert "need a_package_that_nobody_has: pip install 'omkl[plot]'" in result.stdout
    assert (tmp_path / "tables.md").exists()


def test_tables_are_functions_of_files(small: Path):
    before = {name: (small / name).read_bytes() for name in ("tables.md", "tables.tex", "report.html")}
    job.finish(small, Console(file=io.StringIO()))
    assert before == {name: (small / name).read_bytes() for name in before}


def test_the_library_s_defaults_are_run_on_request(tmp_path: Path):
    words = ["reproduce", "--datasets", "diabetes", "--algorithms", "raker", "--defaults", "--runs", "1"]
    assert invoke(*words, "--out", str(tmp_path)).exit_code == 0
    assert [line["variant"] for line in read_lines(tmp_path / "results.jsonl")] == ["every kernel", "safe defaults"]


def test_terminal_tables_fit_eighty_columns():
    lines = [published_line(name, e.algorithm, e.variant) for name in PAPER for e in paper_configurations()]
    out = io.StringIO()
    for dataset, title in tables.titles(lines).items():
        Console(file=out, width=80).print(tables.for_terminal(lines, dataset, title))
    assert "…" not in out.getvalue()


def test_algorithms_keep_the_order_of_the_tables():
    assert algorithms_named([]) == list(NAMES.values())
    assert algorithms_named(["sfg-mkl", "RAKER"]) == ["Raker", "SFG-MKL"]


# The paper's numbers


@pytest.mark.slow
@data_needed
def test_every_published_result_is_reproduced_in_its_matching_form(tmp_path: Path):
    result = omkl_lab("reproduce", "--out", tmp_path, check=True, timeout=None)
    assert "20 of 20 published results are reproduced within the tolerance" in result.stdout
    lines = read_lines(tmp_path / "results.jsonl")
    assert len(lines) == 4 * len(paper_configurations())
    assert [line["diverged"] for line in lines].count(True) == 2  # Algorithm 1 as printed, on naval
    within_6 = [r for r in lines if r["variant"] == "commit first" and r["algorithm"].startswith("SFG")]
    assert all(abs(r["mse"] / r["paper_mse"] - 1) <= 0.06 for r in within_6)
    assert {p.name for p in (tmp_path / "figures").iterdir()} >= {"figure1.png", "figure1.svg", "figure2.svg"}
