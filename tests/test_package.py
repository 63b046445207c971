"""What `import omkl` offers, to people and to their tools."""

import ast
import importlib
from pathlib import Path

import omkl


def test_the_stub_names_what_the_package_imports_and_from_where():
    stub = ast.parse(Path(omkl.__file__).with_suffix(".pyi").read_text())
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    homes = {alias.asname: node.module for node in imports for alias in node.names}
    assert set(homes) == {*omkl.__all__, "__version__"}
    for name, home in homes.items():
        assert getattr(importlib.import_module(home), name) is getattr(omkl, name)
