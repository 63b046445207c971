"""What is installed, whether it works, and how long a row takes on this machine."""

import platform
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

import numpy as np

from omkl import engine
from omkl.algorithms.graph_mkl import GraphSettings
from omkl.algorithms.graph_mkl.settings import BUDGETS
from omkl.online import Online

PACKAGES = {  # those that parts of omkl need beyond what it is installed with
    "plotly": "reports of omkl run and omkl compare",
    "matplotlib": "plots",
    "pyspark": "fleets on Spark",
}
INPUTS, ROWS = 10, 3000  # of the stream that is timed
TOLERANCE = 1e-9


class Finding(NamedTuple):
    """A line of the examination."""

    name: str
    text: str
    good: bool = True


def findings() -> Iterator[Finding]:
    """All lines, one after the other as they are known."""
    yield Finding("omkl", version("omkl"))
    yield Finding(
        "Python", f"{platform.python_version()}, NumPy {np.__version__}, {platform.system()} {platform.machine()}"
    )
    chosen, others = engine.instruction_set(), [name for name in engine.supported() if name != engine.instruction_set()]
    yield Finding("engine", f"{chosen} (also: {', '.join(others) or 'none'}), compiled by {engine.COMPILER}")
    for package, use in PACKAGES.items():
        try:
            yield Finding(package, f"{version(package)}, for {use}")
        except PackageNotFoundError:
            yield Finding(package, f"not installed; needed for {use}")
    off = largest_difference()
    text = (
        f"engine and NumPy differ by {off:.1g} at most" if off <= TOLERANCE else f"engine and NumPy differ by {off:.3g}"
    )
    yield Finding("self-test", text, off <= TOLERANCE)
    for budget in BUDGETS:
        yield Finding(
            f"budget {budget}", f"{microseconds(budget):.0f} microseconds a row, {INPUTS} inputs, {ROWS} rows"
        )


def stream(rows: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, INPUTS))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=rows)


def largest_difference() -> float:
    """Between the predictions of the engine and of the reference implementation, relative to max(1, |y|)."""
    X, y = stream(100)
    settings = GraphSettings(n_features=8, budget=2)
    learners = [Online.make("graph-mkl", settings, INPUTS, backend=backend) for backend in ("engine", "numpy")]
    one, other = (online.run(X, y) for online in learners)
    return float((np.abs(one - other) / np.maximum(1, np.abs(other))).max())


def microseconds(budget: str) -> float:
    """Processor time that predicting and learning a row takes GraphMKL."""
    X, y = stream(ROWS)
    online = Online.make("graph-mkl", GraphSettings(budget=budget), INPUTS)
    start = time.process_time()
    online.run(X, y)
    return 1e6 * (time.process_time() - start) / ROWS
