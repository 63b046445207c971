"""For `make sanitize`: the engine that was built with sanitizers, in build/sanitize, in place of the installed one."""

import importlib.util
import sys
from pathlib import Path

BUILD = Path(__file__).parents[2] / "build" / "sanitize"


class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "omkl.engine._native":
            return None
        return importlib.util.spec_from_file_location(name, next(BUILD.glob("_native*.so")))


sys.meta_path.insert(0, Finder)
