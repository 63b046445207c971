"""What is mutated, and the quick tests that must notice."""

from pathlib import Path
from typing import NamedTuple

SOURCE = Path("src/omkl")


class Package(NamedTuple):
    """Modules, as patterns below src/omkl and without those of another package, and their tests, quick ones first."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]
    without: tuple[str, ...] = ()

    def paths(self) -> list[Path]:
        wanted, others = (
            {path for each in patterns for path in SOURCE.glob(each)} for patterns in (self.modules, self.without)
        )
        return sorted(wanted - others)


LARGE = tuple(f"algorithms/graph_mkl/{name}.py" for name in ("archive", "large", "tree_fit", "trees", "wide"))
PACKAGES: dict[str, Package] = {
    "algorithms": Package(
        ("algorithms/*.py",),
        (
            "tests/test_settings.py",
            "tests/test_losses.py",
            "tests/algorithms/test_shared_parts.py",
            "tests/algorithms/test_start.py",
            "tests/algorithms/test_invariants.py",
            "tests/algorithms/test_related.py",
            "tests/algorithms/test_algorithms.py",
            "tests/engine/test_engine.py",
            "tests/engine/test_related_engine.py",
            "tests/estimators/test_parameters.py",
        ),
    ),
    "algorithms.graph_mkl": Package(
        ("algorithms/graph_mkl/*.py",),
        (
            "tests/test_settings.py",
            "tests/algorithms/test_graph_mkl.py",
            "tests/algorithms/test_graph_mkl_change.py",
            "tests/algorithms/test_graph_mkl_experts.py",
            "tests/algorithms/test_graph_mkl_growth.py",
            "tests/algorithms/test_graph_mkl_large.py",
            "tests/algorithms/test_graph_mkl_intervals.py",
            "tests/algorithms/test_graph_mkl_mixture.py",
            "tests/algorithms/test_graph_mkl_page.py",
            "tests/algorithms/test_graph_mkl_repeats.py",
            "tests/algorithms/test_graph_mkl_scaling.py",
            "tests/algorithms/test_graph_mkl_selection.py",
            "tests/algorithms/test_graph_mkl_sparse.py",
            "tests/algorithms/test_graph_mkl_wide.py",
            "tests/algorithms/test_graph_mkl_widths.py",
            "tests/algorithms/test_invariants.py",
            "tests/algorithms/test_least_squares.py",
            "tests/algorithms/test_shared_parts.py",
            "tests/algorithms/test_start.py",
            "tests/engine/test_graph_mkl_engine.py",
        ),
        LARGE,
    ),
    "algorithms.graph_mkl.large": Package(
        LARGE,
        (
            "tests/algorithms/test_graph_mkl_wide_least_squares.py",
            "tests/algorithms/test_graph_mkl_trees.py",
            "tests/algorithms/test_graph_mkl_large.py",
            "tests/algorithms/test_invariants.py",
            "tests/engine/test_graph_mkl_wide_engine.py",
        ),
    ),
    "graph": Package(("graph.py",), ("tests/test_graph.py", "tests/test_kernels.py")),
    "kernels": Package(("kernels.py",), ("tests/test_kernels.py", "tests/algorithms/test_shared_parts.py")),
    "features": Package(("features.py",), ("tests/test_features.py", "tests/test_settings.py")),
    "losses": Package(("losses.py",), ("tests/test_losses.py",)),
    "scaling": Package(("scaling.py",), ("tests/test_scaling.py", "tests/estimators/test_spoiled_beginnings.py")),
    "encoding": Package(
        ("encoder/*.py", "stream/targets.py"),
        (
            "tests/encoder/test_cells.py",
            "tests/encoder/test_rows.py",
            "tests/encoder/test_columns.py",
            "tests/encoder/test_encoder.py",
            "tests/estimators/test_table_encoder.py",
            "tests/stream/test_learner.py",
        ),
    ),
    "persist": Package(
        ("persist/*.py",),
        (
            "tests/persist/test_container.py",
            "tests/persist/test_values.py",
            "tests/persist/test_limits.py",
            "tests/persist/test_large_integers.py",
            "tests/persist/test_edited_fields.py",
            "tests/persist/test_persist.py",
            "tests/persist/test_registry.py",
            "tests/persist/test_tasks.py",
            "tests/persist/test_what_saves_loads.py",
        ),
    ),
}
