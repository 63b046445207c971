"""Standard output and standard error: readers who leave early, and streams that are closed or full."""

import os
import subprocess
from pathlib import Path

import pytest
from command import OMKL, omkl
from tables import table

COMMANDS = {
    "run": "run d.csv -t y --learner sfg-mkl",
    "run --json": "run d.csv -t y --learner sfg-mkl --json",
    "run --predictions -": "run d.csv -t y --learner sfg-mkl --predictions -",
    "learn": "learn m.omkl d.csv --out new.omkl",
    "predict": "predict m.omkl d.csv",
    "inspect": "inspect m.omkl",
    "inspect --json": "inspect m.omkl --json",
    "compare": "compare d.csv -t y --learners sfg-mkl",
    "compare --json": "compare d.csv -t y --learners sfg-mkl --json",
}
TEXTS = ["--help", "--version", "run --help"]  # what is shown of commands


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table and a model of it."""
    place = tmp_path_factory.mktemp("output")
    (place / "d.csv").write_text(table(60))
    assert omkl("run", "d.csv", "-t", "y", "--learner", "sfg-mkl", "--model", "m.omkl", cwd=place).returncode == 0
    return place


def shell(folder: Path, command: str, redirection: str) -> tuple[int, str]:
    """The exit code of a command whose output a shell redirects, and its standard error."""
    words = " ".join(f"'{word}'" for word in OMKL)
    script = f"{words} {command} {redirection}; exit ${{PIPESTATUS[0]}}"
    result = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, timeout=300)
    return result.returncode, result.stderr


@pytest.mark.parametrize("command", [*COMMANDS.values(), *TEXTS], ids=[*COMMANDS, *TEXTS])
def test_a_reader_who_leaves_is_exit_code_141(folder: Path, command: str):
    code, err = shell(folder, command, "| true")
    assert code == 141
    assert "Traceback" not in err
    assert "Exception" not in err


def test_a_reader_of_notices_who_leaves_is_exit_code_141(folder: Path):
    assert shell(folder, COMMANDS["run"], "2>&1 >/dev/null | true")[0] == 141


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_a_closed_standard_output_is_refused_before_the_work(folder: Path, command: str):
    assert shell(folder, command, ">&-") == (
        2, "omkl: standard output is closed; redirect it, to /dev/null for instance\n")  # fmt: skip


def test_nothing_needs_standard_output_where_nothing_is_shown(folder: Path):
    assert shell(folder, f"{COMMANDS['run']} --quiet --predictions quiet.csv", ">&-") == (0, "")
    assert shell(folder, "predict m.omkl d.csv --predictions quiet2.csv", ">&-") == (0, "")
    assert (folder / "quiet.csv").read_text().startswith("row,")


def test_a_closed_standard_error_loses_notices_and_nothing_else(folder: Path):
    (folder / "gaps.csv").write_text("a,y\n1,2\n,3\n4,5\n")
    result = subprocess.run(["bash", "-c", " ".join(f"'{w}'" for w in OMKL) + " run gaps.csv -t y --json 2>&-"],
                            cwd=folder, capture_output=True, text=True, timeout=300)  # fmt: skip
    assert result.returncode == 0
    assert result.stdout.startswith('{"target": "y"')
    assert result.stdout.count("\n") == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is always full")
@pytest.mark.parametrize("command", [*COMMANDS.values(), *TEXTS], ids=[*COMMANDS, *TEXTS])
def test_a_full_standard_output_is_named(folder: Path, command: str):
    code, err = shell(folder, command, "> /dev/full")
    assert code == 2
    assert err.splitlines()[-1] == "omkl: standard output: cannot be written (No space left on device)"
    assert "Traceback" not in err
