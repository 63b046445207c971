"""Laboratory commands without arguments refuse arguments, and describe themselves."""

import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

import omkl_lab

FOLDER = Path(omkl_lab.__file__).parent
ALONE = sorted(
    path.stem for path in FOLDER.glob("*.py") if "\n    run_without_arguments(" in path.read_text(encoding="utf-8")
)


def test_there_are_such_commands() -> None:
    assert {"rare", "wide", "one_hot"} <= set(ALONE)


@pytest.mark.parametrize("name", ALONE)
@pytest.mark.parametrize(("word", "code"), [("--help", 0), ("--typo", 2), ("unknown", 2)])
def test_argument(
    name: str, word: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = import_module(f"omkl_lab.{name}")
    text = Path(module.__file__ or "").read_text(encoding="utf-8")
    (call,) = re.findall(r"\n    (run_without_arguments\(.*\))\n", text)

    def never() -> None:
        raise AssertionError("the command ran")

    monkeypatch.setattr(sys, "argv", [name, word])
    with pytest.raises(SystemExit) as stopped:
        eval(call, vars(module) | {"main": never})
    assert stopped.value.code == code
    shown = capsys.readouterr()
    assert f"python -m omkl_lab.{name}" in shown.out + shown.err
