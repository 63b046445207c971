"""Rules for the source of the library that no linter checks."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import omkl
from omkl import algorithms

ROOT = Path(omkl.__file__).parent
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): ast.parse(path.read_text())
    for path in sorted(ROOT.rglob("*.py"))
}
NAMES = set(algorithms.names())
LARGEST_MODULE = 350  # lines


def test_the_modules_of_the_library_are_found():
    assert {"online", "algorithms.raker", "algorithms.graph_mkl.state", "estimators.sklearn.base"} <= set(MODULES)


# Algorithms are known by their record, not by their name


@pytest.mark.parametrize("name", ["adaraker", "vaw2", "fogd", "nogd", "krls_t", "doebe"])
def test_a_related_algorithm_is_in_five_files(name: str):
    """Algorithms that use a part of it aside; CONTRIBUTING.md promises it."""
    root = Path(__file__).parents[1] / "src" / "omkl"
    sources = [path for kind in ("py", "hpp", "cpp") for path in root.rglob(f"*.{kind}")]
    named = {path for path in sources if re.search(rf"\b{name.replace('_', '[_-]')}\b", path.read_text())}
    others = {path for path in named if path.parent.name == "algorithms" and path.stem not in (name, "__init__")}
    assert {path.relative_to(root).as_posix() for path in named - others} == {
        f"algorithms/{name}.py", "algorithms/__init__.py", f"engine/algorithms/{name}.hpp",
        "estimators/sklearn/estimators.py", "estimators/river/estimators.py",
    }  # fmt: skip


def constants(node: ast.AST) -> Iterator[ast.Constant]:
    """A string literal, or those in a literal tuple, list or set."""
    if isinstance(node, ast.Constant):
        yield node
    elif isinstance(node, ast.Tuple | ast.List | ast.Set):
        for element in node.elts:
            yield from constants(element)


def decided_by(tree: ast.AST) -> Iterator[ast.Constant]:
    """Literals that code compares with, looks up or matches."""
    for node in ast.walk(tree):
        operands: list[Any] = []
        if isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
        elif isinstance(node, ast.Dict):
            operands = node.keys
        elif isinstance(node, ast.MatchValue):
            operands = [node.value]
        elif isinstance(node, ast.Subscript):
            operands = [node.slice]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            methods = ("get", "pop", "startswith", "endswith", "__eq__")
            operands = node.args[:1] if node.func.attr in methods and node.func.value is not None else []
        for operand in operands:
            yield from constants(operand)


def names_compared(tree: ast.AST) -> list[str]:
    return [f"line {c.lineno}: {c.value}" for c in decided_by(tree) if isinstance(c.value, str) and c.value in NAMES]


@pytest.mark.parametrize("module", [name for name in MODULES if name.split(".")[0] != "algorithms"])
def test_no_module_outside_algorithms_knows_an_algorithm_by_its_name(module: str):
    assert names_compared(MODULES[module]) == []


@pytest.mark.parametrize(
    "code",
    [
        'name == "raker"',
        '"omkr" != x.name',
        'name in ("raker", "x")',
        'name in {"raker"}',
        'table = {"graph-mkl": 1}',
        'table["omkr"]',
        'table.get("omkr")',
        'match name:\n    case "omkr" | "raker":\n        pass',
    ],
)
def test_that_rule_finds_what_it_is_for(code: str):
    assert names_compared(ast.parse(code))
    assert not names_compared(ast.parse(code.replace("raker", "a").replace("omkr", "b").replace("graph-mkl", "c")))


# Private names stay within their package


def package_of(module: str) -> str:
    return module.split(".")[0]


NAMED_TUPLES = {"_fields", "_replace", "_asdict", "_make"}  # their public methods start with an underscore


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_" and name not in NAMED_TUPLES


def private_definitions(tree: ast.AST) -> set[str]:
    """Private names of functions, classes, variables, fields and attributes of self."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
    return {name for name in found if is_private(name)}


DEFINED: dict[str, set[str]] = {}
for _name, _tree in MODULES.items():
    DEFINED.setdefault(package_of(_name), set()).update(private_definitions(_tree))


def private_uses(module: str, tree: ast.AST) -> list[str]:
    """Private attributes and imports that another package of the library defines, and this one does not."""
    mine = package_of(module)
    elsewhere = set().union(*(names for package, names in DEFINED.items() if package != mine)) - DEFINED.get(
        mine, set()
    )
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr in elsewhere:
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            if not own:
                found.append(f"line {node.lineno}: .{node.attr}")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("omkl."):
            home = package_of((node.module or "").removeprefix("omkl."))
            found += [f"line {node.lineno}: {a.name}" for a in node.names if is_private(a.name) and home != mine]
    return found


@pytest.mark.parametrize("module", MODULES)
def test_no_module_uses_a_private_name_of_another_package(module: str):
    assert private_uses(module, MODULES[module]) == []


def test_that_rule_finds_what_it_is_for_too():
    assert private_uses("fleet.local", ast.parse("from omkl.persist.values import _KERNELS"))
    assert private_uses("fleet.local", ast.parse("online._install(problem)"))
    assert not private_uses("online", ast.parse("online._install(problem)"))
    assert not private_uses("fleet.local", ast.parse("state._replace(t=1)"))


# Modules


@pytest.mark.parametrize("module", MODULES)
def test_a_module_is_short(module: str):
    path = ROOT.joinpath(*module.split(".")).with_suffix(".py")
    assert len(path.read_text().splitlines()) <= LARGEST_MODULE


@pytest.mark.parametrize("module", MODULES)
def test_the_first_line_of_a_modules_docstring_is_a_sentence(module: str):
    docstring = ast.get_docstring(MODULES[module])
    assert docstring, "there is none"
    first = docstring.splitlines()[0]
    assert first.lstrip("`")[0].isupper() or first.split()[0] in ("scikit-learn", "river")
    assert first.endswith(".")
    assert len(first.split()) >= 3
