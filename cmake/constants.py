"""Writes the constants of a Python module, its names in capitals, as a C++ header.

python constants.py MODULE NAMESPACE HEADER

The module must import nothing that the interpreter of a build may lack.
"""

import runpy
import sys
from pathlib import Path


def declaration(name: str, value: object) -> str:
    """One constant in C++.

    >>> declaration("CLIP", 5.0), declaration("AGES", (1, 2))
    ('constexpr double CLIP = 5.0;', 'constexpr long AGES[] = {1, 2};')
    """
    values = value if isinstance(value, tuple) else (value,)
    kind = "long" if all(isinstance(v, int) for v in values) else "double"
    if isinstance(value, tuple):
        return f"constexpr {kind} {name}[] = {{{', '.join(map(repr, values))}}};"
    return f"constexpr {kind} {name} = {value!r};"


def header(module: str, namespace: str) -> str:
    constants = {name: value for name, value in runpy.run_path(module).items() if name.isupper()}
    lines = [f"// Written by the build from {Path(module).name}.", "#pragma once", f"namespace {namespace} {{"]
    lines += [declaration(name, value) for name, value in constants.items()]
    return "\n".join([*lines, "}", ""])


if __name__ == "__main__":
    module, namespace, path = sys.argv[1:]
    Path(path).write_text(header(module, namespace), encoding="utf-8")
