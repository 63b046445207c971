"""The command line: what it prints, how it fails, and how little it loads."""

import re
import resource
import subprocess
import sys

import pytest
from command import invoke, omkl

from omkl._version import __version__
from omkl.stream import inspect

HEAVY = ("numpy", "scipy", "sklearn", "joblib", "pyarrow", "plotly", "rich", "omkl.online", "omkl.stream", "omkl_lab")
COMMANDS = ("run", "learn", "predict", "serve", "inspect", "compare", "demo", "doctor")


def test_help_shows_every_command_and_examples():
    out = invoke("--help").output
    listed = re.findall(r"^  (\w+) ", out.partition("Commands:")[2], flags=re.MULTILINE)
    assert tuple(listed) == COMMANDS
    assert "--version" in out
    assert "Examples" in out
    for command in listed:
        help_text = invoke(command, "--help").output
        assert f"omkl {command}" in help_text.split("Example", 1)[1]


def test_help_explains_the_exit_codes():
    out = " ".join(invoke("--help").output.split())
    for code in ("0 success", "1 internal error", "2 invalid arguments or input", "130 interrupted", "141 broken pipe"):
        assert code in out


def test_no_arguments_show_the_help():
    assert "Examples" in invoke().output


@pytest.mark.parametrize("command", [[], ["run"], ["inspect"]])
def test_help_may_be_asked_for_by_a_word(command: list[str]):
    result = invoke("help", *command)
    assert result.exit_code == 0
    assert result.stdout == invoke(*command, "--help").stdout


def test_version_is_that_of_the_package():
    result = omkl("--version")
    assert (result.returncode, result.stdout) == (0, f"omkl {__version__}\n")


def test_the_package_runs_as_a_module():
    result = subprocess.run([sys.executable, "-m", "omkl", "--version"], capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stdout) == (0, omkl("--version").stdout)


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["compare", "--help"]], ids=" ".join)
def test_help_loads_neither_numpy_nor_the_laboratory(arguments: list[str]):
    script = (
        f"import sys; sys.argv = ['omkl', *{arguments}]\n"
        "from omkl.cli import main\n"
        "try: main()\n"
        f"except SystemExit: print([m for m in {HEAVY} if m in sys.modules], file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stderr.strip() == "[]"


def test_help_takes_less_than_three_tenths_of_a_second():
    def seconds() -> float:
        """Processor time, which other processes on the machine do not add to."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        omkl("--help")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(seconds() for _ in range(5)) < 0.3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rn"], "No such command 'rn'; the commands are run, learn, predict,"),
        (["help", "rn"], "No such command 'rn'; the commands are run,"),
        (["run", "data.csv", "-t", "y", "--date-format", "dd.mm.yyyy"], "--date-format must be made of directives"),
        (["run", "data.csv", "-t", "y", "--report", "page.pdf"], "wanted a name that ends in .html"),
        (["run", "data.csv"], "--target"),
        (["run", "data.csv", "-t", "y", "--fast"], "--fast"),
        (["run", "data.csv", "-t", "y", "--seed", "-1"], "--seed"),
        (["run", "data.csv", "-t", "y", "--seed", "one"], "--seed"),
        (["run", "data.csv", "-t", "y", "--learner", "svm"], "--learner must be one of"),
        (["run", "data.csv", "-t", "y", "--task", "ranking"], "--task must be one of auto, regression, classification"),
        (["compare", "data.csv", "-t", "y", "--rows", "0"], "--rows"),
        (["compare", "data.csv", "-t", "y", "--jobs", "-1"], "--jobs"),
        (["predict", "no.omkl", "data.csv"], "omkl: no.omkl: No such file or directory"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_invalid_arguments_are_refused_without_a_traceback(arguments: list[str], message: str):
    result = omkl(*arguments, timeout=60)
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def import_ended_by_interrupt() -> ImportError:
    """What a compiled module raises that was being imported when Ctrl-C came."""
    error = ImportError("initialization failed")
    error.__cause__ = KeyboardInterrupt()
    return error


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (KeyboardInterrupt(), 130, "omkl: interrupted\n"),
        (import_ended_by_interrupt(), 130, "omkl: interrupted\n"),
        (OSError(28, "No space left on device"), 2, "omkl: No space left on device\n"),
        (FileNotFoundError(2, "No such file or directory", "m.omkl"), 2, "omkl: m.omkl: No such file or directory\n"),
        (ValueError("out_degree must be between 1 and 41, got 50"), 2, "omkl: out_degree must be between"),
        (ModuleNotFoundError(name="plotly"), 2, "omkl: this needs plotly; install it with pip install 'omkl[run]'\n"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_an_error_is_one_line_and_an_exit_code(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, line: str
):
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(inspect, "facts", fail)
    result = invoke("inspect", "m.omkl")
    assert result.exit_code == code
    assert result.stderr.startswith(line)
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_an_internal_error_is_exit_code_1_with_a_traceback(monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object) -> None:
        raise AssertionError("impossible")

    monkeypatch.setattr(inspect, "facts", fail)
    result = invoke("inspect", "m.omkl")
    assert result.exit_code == 1
    assert isinstance(result.exception, AssertionError)
