"""Text from files on a terminal: control characters are shown, not obeyed."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from command import invoke

from omkl.stream import inspect
from omkl.stream.display import Display
from omkl.stream.terminal import HIDDEN, Terminal

ESCAPES = "\x1b]0:title\x07\x1b[2J\x9b31m\x7f\u202e"
TARGET = f"y{ESCAPES}x"
SHOWN = r"\x1b]0:title\x07\x1b[2J\x9b31m\x7f\u202e"


def obeyed(text: str) -> list[str]:
    """The characters that a terminal would obey, apart from ends of lines."""
    return [character for character in HIDDEN.findall(text) if character != "\n"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A table whose names, categories and labels are full of control characters."""
    rows = [f"{k % 5},red{ESCAPES}{k % 3},{k if k % 9 else ''},{k % 2}no{ESCAPES}" for k in range(40)]
    path = tmp_path / "d.csv"
    path.write_text("\n".join([f"a{ESCAPES},c{ESCAPES},g{ESCAPES},{TARGET}", *rows]) + "\n")
    return path


def test_no_command_writes_control_characters_of_a_file(data: Path, tmp_path: Path):
    model = tmp_path / "m.omkl"
    (tmp_path / "new.csv").write_text(f"a{ESCAPES},a{ESCAPES}z\n1,2\n")
    for arguments in (
        ["run", data, "-t", TARGET, "--learner", "sfg-mkl", "--model", model],
        ["inspect", model],
        ["inspect", model, "--json"],
        ["compare", data, "-t", TARGET, "--learners", "sfg-mkl"],
        ["predict", model, tmp_path / "new.csv", "--predictions", tmp_path / "p.csv"],
    ):
        result = invoke(*arguments)
        assert result.exit_code == 0, result.stderr
        assert obeyed(result.stdout) == []
        assert obeyed(result.stderr) == []
    shown = " ".join(invoke("inspect", model).stdout.split())
    assert SHOWN in shown.replace(" ", "")


@pytest.mark.parametrize("option", ["--key", "--by"])
def test_error_messages_show_control_characters(data: Path, option: str):
    result = invoke("run", data, "-t", TARGET, option, "none")
    assert result.exit_code == 2
    assert SHOWN in result.stderr
    assert obeyed(result.stderr) == []
    assert result.stderr.splitlines()[-1].startswith("omkl: ")


def on_terminal(show: Any) -> str:
    out = io.StringIO()
    show(Terminal("test", file=out, force_terminal=True, color_system=None, width=300))
    return out.getvalue()


def test_every_fact_about_a_model_is_shown_with_its_control_characters_escaped():
    evil = f"x{ESCAPES}"
    facts = {"file": evil, "bytes": 1, "kind": evil, "learner": evil, "target": evil, "task": evil, "by": evil,
             "key": evil, "labels": [evil], "of_key": evil, "columns": {evil: {"kind": evil, "gaps": True,
             "categories": [evil]}}, "kernels": [{"kernel": evil, "weight": 1.0}]}  # fmt: skip
    text = on_terminal(lambda terminal: inspect.show(facts, terminal))
    assert obeyed(text) == []
    assert text.count(SHOWN) == 13
    assert obeyed(inspect.as_json(facts).replace("\x7f", "")) == []
    assert json.loads(inspect.as_json(facts)) == facts


def test_notices_and_names_of_emoji_are_shown_as_they_are():
    notice = f"column ':warning:' {ESCAPES} [red]x[/red]"
    text = on_terminal(lambda terminal: Display(terminal, quiet=False).notice(notice))
    assert text.rstrip("\n") == f"note: column ':warning:' {SHOWN} [red]x[/red]"
