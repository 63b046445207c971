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
    kind = "double"
    if all(isinstance(v, int) for v in values):
        kind = "long" if max(values) < 2**63 else "unsigned long"
    texts = [f"{v!r}u" if kind == "unsigned long" else repr(v) for v in values]
    if isinstance(value, tuple):
        return f"constexpr {kind} {name}[] = {{{', '.join(texts)}}};"
    return f"constexpr {kind} {name} = {texts[0]};"


def header(module: str, namespace: str) -> str:
    constants = {name: value for name, value in runpy.run_path(module).items() if name.isupper()}
    lines = [f"// Written by the build from {Path(module).name}.", "#pragma once", f"namespace {namespace} {{"]
    lines += [declaration(name, value) for name, value in constants.items()]
    return "\n".join([*lines, "}", ""])


if __name__ == "__main__":
    module, namespace, path = sys.argv[1:]
    Path(path).write_text(header(module, namespace), encoding="utf-8")
