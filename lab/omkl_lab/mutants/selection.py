"""Which tests call which functions, so that a fault is planted for the tests alone that can notice it."""

import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType

Place = tuple[str, int]  # file and line


class Calls:
    """The lines of the functions that tests have called, of some files.

    What a fixture calls belongs to all tests of the same file, which may share the fixture.
    """

    def __init__(self, paths: list[Path]) -> None:
        self.files = {str(path.resolve()) for path in paths}  # where there are none, nothing is traced
        self.found: dict[str, set[CodeType]] = defaultdict(set)  # by test, or by file of tests
        self.name = ""

    def trace(self, frame: FrameType, event: str, value: object) -> None:
        """What sys.settrace calls for every function; None means that its lines need not be traced."""
        if frame.f_code.co_filename in self.files:
            self.found[self.name].add(frame.f_code)

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Calls within belong to the test, or the file of tests, of this name."""
        if not self.files:
            yield
            return
        self.name = name
        sys.settrace(self.trace)
        threading.settrace(self.trace)
        try:
            yield
        finally:
            sys.settrace(None)
            threading.settrace(None)

    def lines(self) -> dict[str, list[Place]]:
        """Files and lines of the functions, by test or by file of tests."""
        return {name: sorted(set(places(codes))) for name, codes in self.found.items()}


def places(codes: set[CodeType]) -> Iterator[Place]:
    for code in codes:
        yield from ((code.co_filename, line) for _, _, line in code.co_lines() if line is not None)


def callers(place: Place, names: list[str], called: dict[str, list[Place]]) -> list[str]:
    """The tests that call the function with this line; all of them where no test does, as for a constant.

    >>> called = {"a.py::one": [("x.py", 3)], "b.py": [("x.py", 9)], "b.py::two": []}
    >>> names = ["a.py::one", "b.py::two"]
    >>> [callers(("x.py", line), names, called) for line in (3, 9, 1)]
    [['a.py::one'], ['b.py::two'], ['a.py::one', 'b.py::two']]
    """
    having = {name for name, lines in called.items() if place in lines}
    return [name for name in names if name in having or name.partition("::")[0] in having] or names
