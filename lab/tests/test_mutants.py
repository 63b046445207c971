"""Faults that are planted in a loaded module have an effect, and their sample is the same each time."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from omkl_lab.files import read_lines
from omkl_lab.mutants.packages import PACKAGES
from omkl_lab.mutants.page import RESULTS
from omkl_lab.mutants.selection import Calls, callers
from omkl_lab.mutants.survivors import REASONS

ROOT = Path(__file__).parents[2]

SOUND = """
from dataclasses import dataclass
from functools import cache
LIMIT = 3.0
def below(x, limit=2):
    return [k < limit for k in [x]][0] and x < LIMIT
@cache
def twice(x):
    return 2 * x
@dataclass
class Point:
    x: float = 1.0
    @property
    def half(self):
        return self.x / 2
"""

FAULTY = SOUND.replace("3.0", "0.0").replace("limit=2", "limit=9").replace("2 * x", "3 * x").replace("1.0", "8.0")
CHECK = """
import sys, types
from omkl_lab.mutants.transplant import transplant
from pathlib import Path
module, user = types.ModuleType("omkl.sound"), types.ModuleType("omkl.user")
module.__file__ = "sound.py"
sys.modules |= {"omkl.sound": module, "omkl.user": user}
sound, faulty = (Path(name).read_text() for name in sys.argv[1:])
exec(compile(sound, "sound.py", "exec"), vars(module))
user.LIMIT, below, twice, Point = module.LIMIT, module.below, module.twice, module.Point
half = Point(4.0)
transplant("omkl.sound", faulty)
print(module.LIMIT, user.LIMIT, below(-1), below(1), twice(2), Point().x, half.half)
transplant("omkl.sound", sound.replace("@property", "").replace("@cache", ""))
print(callable(half.half), hasattr(module.twice, "cache_info"))
"""


def test_a_fault_reaches_functions_defaults_constants_and_classes_that_are_loaded(tmp_path: Path):
    for name, text in (("sound", SOUND), ("faulty", FAULTY.replace("self.x / 2", "self.x * 2"))):
        (tmp_path / name).write_text(text)
    words = [sys.executable, "-c", CHECK, str(tmp_path / "sound"), str(tmp_path / "faulty")]
    out = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert out.split() == ["0.0", "0.0", "True", "False", "6", "8.0", "8.0", "True", "False"]


def test_the_modules_and_tests_that_are_named_exist(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(ROOT)
    for package in PACKAGES.values():
        assert package.paths()
        assert all(Path(test).exists() for test in package.tests), package.tests


def test_a_fault_is_planted_for_the_tests_that_call_its_function(tmp_path: Path):
    path = tmp_path / "functions.py"
    path.write_text("def one():\n    return 1\n\ndef two():\n    return 2\n\nLIMIT = 3\n")
    module: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), module)
    calls = Calls([path])
    for name, called in (("a.py::first", module["one"]), ("a.py::second", module["two"]), ("b.py", module["one"])):
        with calls.of(name):
            called()
    names = ["a.py::first", "a.py::second", "b.py::third"]
    found = [callers((str(path), line), names, calls.lines()) for line in (2, 5, 7)]
    assert found == [["a.py::first", "b.py::third"], ["a.py::second"], names]


def test_every_fault_that_no_test_notices_has_its_reason():
    survivors = {
        (line["module"], line["after"]) for line in read_lines(ROOT / RESULTS) if line["outcome"] == "survived"
    }
    assert survivors == REASONS.keys()
