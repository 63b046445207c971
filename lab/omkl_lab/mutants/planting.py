"""The faults: those of cosmic-ray's operators, sampled with a seed, at most one for each place in the source."""

import ast
import random
from pathlib import Path
from typing import NamedTuple

import cosmic_ray.plugins
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code

from omkl_lab.mutants.packages import SOURCE, Package

Position = tuple[int, int]


class Mutant(NamedTuple):
    """One fault in one module."""

    path: Path
    operator: str
    occurrence: int
    start: Position  # line and column

    @property
    def module(self) -> str:
        return ".".join(self.path.with_suffix("").parts[1:]).removesuffix(".__init__")

    def key(self) -> dict[str, object]:
        """What tells it from others in a results file."""
        line, column = self.start
        return {"module": str(self.path.relative_to(SOURCE)), "line": line, "column": column,
                "operator": self.operator.removeprefix("core/")}  # fmt: skip

    def source(self) -> str:
        """The module with the fault."""
        operator = cosmic_ray.plugins.get_operator(self.operator)()
        mutated: str = mutate_code(self.path.read_text(encoding="utf-8"), operator, self.occurrence)
        return mutated

    def change(self, source: str) -> tuple[str, str]:
        """The first line that differs, before and after."""
        old, new = self.path.read_text(encoding="utf-8").splitlines(), source.splitlines()
        return next(((a.strip(), b.strip()) for a, b in zip(old, new, strict=False) if a != b), ("", ""))


def sampled(package: Package, size: int, seed: int = 0) -> list[Mutant]:
    """At most `size` faults in the package's modules in random order, no two at one place."""
    everything = every(package)
    random.Random(seed).shuffle(everything)
    places: set[tuple[Path, Position]] = set()
    chosen: list[Mutant] = []
    for mutant in everything:
        if (mutant.path, mutant.start) not in places:
            places.add((mutant.path, mutant.start))
            chosen.append(mutant)
    return chosen[:size]


def every(package: Package) -> list[Mutant]:
    return [mutant for path in package.paths() for mutant in mutants_of(path)]


def mutants_of(path: Path) -> list[Mutant]:
    """Every fault that cosmic-ray can make in a module, outside of annotations, which nothing evaluates."""
    text = path.read_text(encoding="utf-8")
    nodes, annotated = list(ast_nodes(get_ast(text))), annotations(text)
    out = []
    for name in cosmic_ray.plugins.operator_names():
        operator_class = cosmic_ray.plugins.get_operator(name)
        if operator_class.arguments():
            continue
        operator = operator_class()
        positions = (start for node in nodes for start, _ in operator.mutation_positions(node))
        for occurrence, start in enumerate(positions):
            if not any(low <= start <= high for low, high in annotated):
                out.append(Mutant(path, name, occurrence, start))
    return out


def annotations(text: str) -> list[tuple[Position, Position]]:
    """Where the annotations of the module and its type aliases begin and end."""
    out = []
    for node in ast.walk(ast.parse(text)):
        for name in ("annotation", "returns"):
            found = getattr(node, name, None)
            if isinstance(found, ast.expr):
                out.append(span(found))
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp) and isinstance(node.value.op, ast.BitOr):
            out.append(span(node.value))
    return out


def span(node: ast.expr) -> tuple[Position, Position]:
    return (node.lineno, node.col_offset), (node.end_lineno or node.lineno, node.end_col_offset or 0)
