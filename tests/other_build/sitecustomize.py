"""On PYTHONPATH: the engine in the folder $OMKL_BUILD, an absolute path, in place of the installed one."""

import importlib.util
import os
import sys
from pathlib import Path

BUILD = Path(os.environ["OMKL_BUILD"])


class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "omkl.engine._native":
            return None
        return importlib.util.spec_from_file_location(name, next(BUILD.glob("_native*.so")))


sys.meta_path.insert(0, Finder)
