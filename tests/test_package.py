"""What `import omkl` offers, to people and to their tools."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import omkl


def names_imported(node):
    """The names that a `from ... import` of the stub makes known; for `*` the classes that the module defines."""
    if node.names[0].name != "*":
        return [alias.asname for alias in node.names]
    module = importlib.import_module(node.module)
    return [name for name, value in vars(module).items() if getattr(value, "__module__", "") == node.module]


def test_the_stub_names_what_the_package_imports_and_from_where():
    stub = ast.parse(Path(omkl.__file__).with_suffix(".pyi").read_text())
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    homes = {name: node.module for node in imports for name in names_imported(node)}
    assert set(homes) == {*omkl.__all__, "__version__"}
    for name, home in homes.items():
        assert getattr(importlib.import_module(home), name) is getattr(omkl, name)


def test_importing_omkl_imports_nothing_heavy():
    assert imported_by("import omkl; dir(omkl)") == set()


def test_listing_the_algorithms_imports_none_of_them():
    assert imported_by("import omkl.algorithms; omkl.algorithms.names()") == set()


def test_an_algorithm_is_used_without_importing_scikit_learn_or_river():
    code = "import omkl; omkl.Online.make('graph-mkl', omkl.GraphSettings(), d=2)"
    assert not imported_by(code) & {"sklearn", "river"}


def imported_by(code):
    """Which of the heavy packages this code imports."""
    heavy = ("numpy", "scipy", "sklearn", "river", "pandas", "polars", "plotly", "matplotlib", "pyarrow")
    code = f"{code}\nimport sys; print(*(name for name in {heavy} if name in sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_the_river_api_is_there_without_an_import_of_its_own():
    code = "import sys, omkl; assert 'river' not in sys.modules; print(omkl.river.GraphMKLRegressor.__name__)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "GraphMKLRegressor\n"


def test_dir_lists_no_names_that_the_package_only_imports():
    assert not {"Any", "importlib"} & set(dir(omkl))


def test_dir_lists_the_public_names_and_they_all_exist():
    for name in omkl.__all__:
        assert name in dir(omkl)
        assert getattr(omkl, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = omkl.nothing
