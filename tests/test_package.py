"""What `import omkl` offers, to people and to their tools."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import omkl


def test_the_stub_names_what_the_package_imports_and_from_where():
    stub = ast.parse(Path(omkl.__file__).with_suffix(".pyi").read_text())
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    homes = {alias.asname: node.module for node in imports for alias in node.names}
    assert set(homes) == {*omkl.__all__, "__version__"}
    for name, home in homes.items():
        assert getattr(importlib.import_module(home), name) is getattr(omkl, name)


def test_importing_omkl_imports_nothing_heavy():
    code = (
        "import sys, omkl; dir(omkl); print(*(m for m in ('numpy', 'sklearn', 'river', 'scipy') if m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split() == []


def test_dir_lists_the_public_names_and_they_all_exist():
    for name in omkl.__all__:
        assert name in dir(omkl)
        assert getattr(omkl, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = omkl.nothing
