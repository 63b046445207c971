"""The files that a command names: none is destroyed, each can be written, and an error says which one it is about."""

import errno
import io
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from command import OMKL, invoke
from tables import table

from omkl.persist import atomic
from omkl.stream import paths, writer

SPELLINGS = {
    "the same name": lambda path: path.name,
    "a dot before it": lambda path: f"./{path.name}",
    "through another folder": lambda path: f"folder/../{path.name}",
    "through a folder that is not there": lambda path: f"none/../{path.name}",
    "an absolute path": str,
    "a symbolic link": lambda path: link(path, os.symlink),
    "a hard link": lambda path: link(path, os.link),
}


def link(path: Path, make: Any) -> str:
    other = path.with_name(f"other{path.suffix}")
    make(path, other)
    return other.name


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table and a model of it, which is the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "d.csv").write_text(table(60))
    assert invoke("run", "d.csv", "-t", "y", "--learner", "sfg-mkl", "--model", "m.omkl").exit_code == 0
    return tmp_path


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS.keys())
@pytest.mark.parametrize(
    ("arguments", "file", "message"),
    [
        (["predict", "m.omkl", "d.csv", "--predictions"], "d.csv", "--predictions {}: the same file as the data d.csv"),
        (["run", "d.csv", "-t", "y", "--predictions"], "d.csv", "--predictions {}: the same file as the data d.csv"),
        (["run", "d.csv", "-t", "y", "--model"], "d.csv", "--model {}: the same file as the data d.csv"),
        (["run", "d.csv", "-t", "y", "--checkpoint"], "d.csv", "--checkpoint {}: the same file as the data d.csv"),
        (["run", "d.csv", "-t", "y", "--report"], "d.csv", "--report {}: the same file as the data d.csv"),
        (["learn", "m.omkl", "d.csv", "--out"], "d.csv", "--out {}: the same file as the data d.csv"),
        (["learn", "m.omkl", "d.csv", "--checkpoint"], "m.omkl", "--checkpoint {}: the same file as MODEL m.omkl"),
        (["learn", "m.omkl", "d.csv", "--report"], "m.omkl", "--report {}: the same file as MODEL m.omkl"),
        (["predict", "m.omkl", "d.csv", "--predictions"], "m.omkl", "--predictions {}: the same file as MODEL m.omkl"),
        (["compare", "d.csv", "-t", "y", "--report"], "d.csv", "--report {}: the same file as the data d.csv"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_two_options_that_name_the_same_file_are_refused(
    work: Path, arguments: list[str], file: str, message: str, spelling: Any
):
    name = spelling(work / file)
    before = contents(work)
    result = invoke(*arguments, name)
    assert (result.exit_code, result.stderr) == (2, f"omkl: {message.format(name)}; give it another name\n")
    assert contents(work) == before


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("new.csv", "./new.csv"),
        ("new.csv", "folder/../new.csv"),
        ("link.csv", "target.csv"),
        ("l/new.csv", "folder/new.csv"),
    ],
)
def test_files_that_do_not_exist_yet_are_compared_too(work: Path, first: str, second: str):
    (work / "link.csv").symlink_to("target.csv")
    (work / "l").symlink_to("folder")
    before = contents(work)
    result = invoke("run", "d.csv", "-t", "y", "--predictions", first, "--model", second)
    message = f"omkl: --model {second}: the same file as --predictions {first}; give it another name\n"
    assert (result.exit_code, result.stderr) == (2, message)
    assert contents(work) == before


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("predict m.omkl - --predictions d.csv < d.csv", "--predictions d.csv: the same file as standard input"),
        ("run - -t y --model folder/../d.csv < d.csv", "--model folder/../d.csv: the same file as standard input"),
        ("run d.csv -t y --predictions - >> d.csv", "--predictions -: the same file as the data d.csv"),
        ("run - -t y --predictions - < d.csv 1<> d.csv", "--predictions -: the same file as standard input"),
    ],
)
def test_a_file_that_the_shell_has_opened_is_not_replaced(work: Path, command: str, message: str):
    before = contents(work)
    script = f"{' '.join(map(repr, OMKL))} {command}"
    result = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=300)
    assert (result.returncode, result.stderr) == (2, f"omkl: {message}; give it another name\n")
    assert contents(work) == before


@pytest.mark.parametrize(("platform", "code"), [("darwin", 2), ("win32", 2), ("linux", 0)])
def test_names_that_differ_in_case_are_one_file_where_the_system_ignores_case(
    work: Path, monkeypatch: pytest.MonkeyPatch, platform: str, code: int
):
    monkeypatch.setattr(paths, "PLATFORM", platform)
    assert invoke("run", "d.csv", "-t", "y", "--predictions", "New.csv", "--model", "new.CSV").exit_code == code


@pytest.mark.parametrize(
    ("data", "arguments", "message"),
    [
        ("p.csv.part", ["--predictions", "p.csv"], "the file p.csv.part of --predictions"),
        ("c.lock", ["--checkpoint", "c"], "the file c.lock of --checkpoint"),
    ],
)
def test_data_in_the_place_of_a_working_file_is_refused(work: Path, data: str, arguments: list[str], message: str):
    (work / "p.csv").write_text("earlier\n")
    (work / data).write_text(table(60))
    before = contents(work)
    result = invoke("run", data, "-t", "y", "--format", "csv", *arguments)
    assert (result.exit_code, result.stderr) == (
        2, f"omkl: {message}: the same file as the data {data}; give it another name\n")  # fmt: skip
    assert contents(work) == before


def test_a_model_behind_its_data_is_noticed(work: Path):
    before = contents(work)
    for command in ("predict", "learn"):
        result = invoke(command, "d.csv", "m.omkl")
        assert result.exit_code == 2
        assert "d.csv: no model, but m.omkl is one; the model comes first, then the data" in result.stderr
    result = invoke("run", "m.omkl", "-t", "y")
    assert result.exit_code == 2
    assert "m.omkl: a model of omkl, which omkl inspect describes; wanted CSV" in result.stderr
    assert contents(work) == before


def test_a_model_that_is_named_as_data_too_is_not_replaced(work: Path):
    before = contents(work)
    result = invoke("learn", "m.omkl", "./m.omkl")
    message = "omkl: MODEL m.omkl: the same file as the data ./m.omkl; give it another name\n"
    assert (result.exit_code, result.stderr) == (2, message)
    assert contents(work) == before


def test_a_model_may_be_written_over_itself_and_data_be_read_twice(work: Path):
    assert invoke("learn", "m.omkl", "d.csv", "./d.csv", "--out", "./m.omkl").exit_code == 0
    assert invoke("predict", "m.omkl", "d.csv", "--predictions", os.devnull).exit_code == 0


# Outputs that cannot be written


class Refusal:
    """An output that cannot be written, and the reason in the message."""

    def __init__(self, place: str, reason: str) -> None:
        self.place, self.reason = place, reason


REFUSALS = {
    "name too long": Refusal("x" * 300 + ".csv", "File name too long"),
    "folder missing": Refusal("no/x.csv", "there is no folder 'no'; make it first"),
    "a file for a folder": Refusal("d.csv/x.csv", "there is no folder 'd.csv'; make it first"),
    "a folder of that name": Refusal("folder.csv", "a folder; wanted the name of a file"),
    "no place for a file": Refusal("/proc/x.csv", "cannot be written to"),
}


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS.keys())
@pytest.mark.parametrize(
    "arguments",
    [
        ["predict", "m.omkl", "d.csv", "--predictions"],
        *(["run", "d.csv", "-t", "y", f"--{name}"] for name in ("predictions", "model", "checkpoint", "report")),
        *(["learn", "m.omkl", "d.csv", f"--{name}"] for name in ("predictions", "out", "checkpoint", "report")),
        ["compare", "d.csv", "-t", "y", "--report"],
    ],
    ids=" ".join,
)
def test_an_output_that_cannot_be_written_is_refused_before_the_work(
    work: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], refusal: Refusal
):
    (work / "folder.csv").mkdir()
    before = sorted(work.rglob("*"))
    monkeypatch.setattr("omkl.stream.raw.Raw.__init__", lambda *_: pytest.fail("the data was opened"))
    result = invoke(*arguments, refusal.place)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"omkl: {arguments[-1]} {refusal.place}: ")
    assert refusal.reason in result.stderr
    assert result.stderr.count("\n") == 1
    assert sorted(work.rglob("*")) == before


@pytest.mark.parametrize(("name", "option"), [("p.csv.part", "--predictions"), ("p.csv.lock", "--checkpoint")])
def test_a_folder_in_the_place_of_a_working_file_is_refused_before_the_work(work: Path, name: str, option: str):
    (work / "p.csv").write_text("earlier\n")
    (work / name).mkdir()
    result = invoke("run", "d.csv", "-t", "y", option, "p.csv")
    assert (result.exit_code, result.stderr) == (
        2, f"omkl: the file {name} of {option}: a folder; wanted the name of a file\n")  # fmt: skip


@pytest.mark.parametrize("ending", [".omkl", ".html"])
def test_the_longest_name_that_a_folder_takes_is_a_name_for_an_output(work: Path, ending: str):
    name = "x" * (255 - len(ending)) + ending
    option = {".omkl": "--model", ".html": "--report"}[ending]
    assert invoke("run", "d.csv", "-t", "y", "--learner", "sfg-mkl", option, name).exit_code == 0
    assert (work / name).exists()


def test_a_check_of_an_output_leaves_an_earlier_file_as_it_was(work: Path):
    (work / "m2.omkl").write_text("earlier\n")
    before = contents(work)
    result = invoke("run", "d.csv", "-t", "cost", "--model", "m2.omkl", "--predictions", "p.csv", "--checkpoint", "c")
    assert (result.exit_code, contents(work)) == (2, before)


# Writing that fails


class FullDisk(io.BytesIO):
    """A file on a disk that is full: nothing can be written to it."""

    def write(self, *_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def writelines(self, *_: object) -> None:
        self.write()


@pytest.mark.parametrize(
    ("module", "arguments", "named"),
    [
        (writer, ["--predictions", "p.csv"], "p.csv"),
        (atomic, ["--model", "new.omkl"], "new.omkl"),
        (atomic, ["--checkpoint", "new.ckpt"], "new.ckpt"),
        (atomic, ["--report", "new.html"], "new.html"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_an_error_of_writing_names_the_file_and_the_reason(
    work: Path, monkeypatch: pytest.MonkeyPatch, module: Any, arguments: list[str], named: str
):
    monkeypatch.setattr(module, "open", lambda *_: FullDisk(), raising=False)
    result = invoke("run", "d.csv", "-t", "y", *arguments, "-q")
    message = f"omkl: {named}: cannot be written (No space left on device)\n"
    assert (result.exit_code, result.stderr) == (2, message)
