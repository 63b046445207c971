"""The command line: what it prints, how it fails, and how little it loads."""

import json
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from command import invoke, omkl
from omkl_lab import demo

from omkl._version import __version__

HEAVY = ("numpy", "scipy", "sklearn", "joblib", "plotly", "rich", "omkl.online", "omkl_lab")


def test_help_shows_every_command_and_examples():
    out = invoke("--help").output
    listed = re.findall(r"^  (\w+) ", out.partition("Commands:")[2], flags=re.MULTILINE)
    assert listed == ["run", "learn", "predict", "inspect", "compare", "reproduce", "demo", "bench", "data"]
    assert "--version" in out
    assert "Examples" in out
    for command in (*listed[:-1], "data list", "data fetch"):
        help_text = invoke(*command.split(), "--help").output
        assert f"omkl {command}" in help_text.split("Example", 1)[1]


def test_no_words_at_all_show_the_help():
    assert "Examples" in invoke().output


def test_version_is_the_package_s():
    result = omkl("--version")
    assert (result.returncode, result.stdout) == (0, f"omkl {__version__}\n")


def test_help_loads_neither_numpy_nor_the_lab():
    script = (
        "import sys; sys.argv = ['omkl', '--help']\n"
        "from omkl.cli import main\n"
        "try: main()\n"
        f"except SystemExit: print([m for m in {HEAVY} if m in sys.modules], file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stderr.strip() == "[]"


def test_help_takes_less_than_three_tenths_of_a_second():
    def seconds() -> float:
        """Of processor time, which a busy machine does not stretch as it does the clock's."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        omkl("--help")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(seconds() for _ in range(5)) < 0.3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["dmo"], "No such command 'dmo'"),
        (["demo", "--fast"], "--fast"),
        (["demo", "--seed", "-1"], "--seed"),
        (["demo", "--seed", "one"], "--seed"),
        (["bench", "--json", "no/such/folder/x.json"], "no folder"),
        (["demo", "--out", "no/such/folder"], "no folder"),
        (["reproduce", "--runs", "0"], "--runs"),
        (["reproduce", "--jobs", "-1"], "--jobs"),
        (["data", "fetch"], "NAME"),
        (["bench", "--json", "."], "is a directory"),
    ],
)
def test_bad_words_are_refused_at_once_without_a_traceback(words: list[str], message: str):
    result = omkl(*words, timeout=10)
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (KeyboardInterrupt(), 130, "omkl: interrupted\n"),
        (OSError(28, "No space left on device"), 2, "omkl: No space left on device\n"),
        (ValueError("out_degree must be between 1 and 41, got 50"), 2, "omkl: out_degree must be between"),
    ],
)
def test_what_goes_wrong_is_one_line_and_an_exit_code(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, line: str
):
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(demo, "run", fail)
    result = invoke("demo")
    assert result.exit_code == code
    assert result.stderr.startswith(line)
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_demo_ends_with_the_path_of_the_report(tmp_path: Path):
    result = omkl("demo", "--quick", "--seed", "3", "--out", str(tmp_path / "demo"), check=True)
    assert result.stdout.splitlines()[-1] == f"report  {tmp_path / 'demo' / 'report.html'}"
    assert (tmp_path / "demo" / "report.html").stat().st_size > 1_000_000
    lines = [json.loads(line) for line in (tmp_path / "demo" / "results.jsonl").read_text().splitlines()]
    assert {line["dataset"] for line in lines} == {"diabetes", "mixture"}
    assert result.stderr == ""


def test_the_same_seed_gives_the_same_demo(tmp_path: Path):
    def learned(seed: int, out: str) -> list[object]:
        result = invoke("demo", "--quick", "--seed", str(seed), "--out", str(tmp_path / out))
        assert result.exit_code == 0
        lines = (tmp_path / out / "results.jsonl").read_text().splitlines()
        return [json.loads(line)["mse"] for line in lines]

    assert learned(5, "a") == learned(5, "b") != learned(6, "c")
