"""The laboratory's command line: help, errors as messages, and the demo."""

import json
import re
from pathlib import Path

import pytest
from lab_command import invoke, omkl_lab


def test_help_shows_every_command_and_examples():
    out = invoke("--help").output
    listed = re.findall(r"^  (\w+) ", out.partition("Commands:")[2], flags=re.MULTILINE)
    assert listed == ["reproduce", "regret", "demo", "bench", "data"]
    for command in ("reproduce", "regret", "demo", "bench", "data list", "data path", "data fetch"):
        help_text = invoke(*command.split(), "--help").output
        assert f"omkl-lab {command}" in help_text.split("Example", 1)[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["demo", "--seed", "-1"], "--seed"),
        (["demo", "--out", "no/such/folder"], "no folder"),
        (["bench", "--json", "no/such/folder/x.json"], "no folder"),
        (["bench", "--json", "."], "is a directory"),
        (["reproduce", "--runs", "0"], "--runs"),
        (["reproduce", "--jobs", "-1"], "--jobs"),
        (["data", "fetch"], "NAME"),
    ],
)
def test_invalid_arguments_are_refused_at_once_without_a_traceback(words: list[str], message: str):
    result = omkl_lab(*words, timeout=30)
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_demo_ends_with_the_path_of_the_report(tmp_path: Path):
    result = omkl_lab("demo", "--quick", "--seed", "3", "--out", tmp_path / "demo", check=True)
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
