"""Small dictionaries, streams and algorithms that the tests share, and the folder of the large streams."""

import inspect
import math
from collections.abc import Callable
from typing import Any, NamedTuple, get_args

import numpy as np
import pytest

from omkl import algorithms
from omkl.algorithms.adaraker import AdaRakerSettings
from omkl.algorithms.base import Algorithm, Shape
from omkl.algorithms.descent import Stabiliser
from omkl.algorithms.doebe import DOEBESettings
from omkl.algorithms.fogd import FOGDSettings
from omkl.algorithms.graph_mkl.settings import GraphSettings
from omkl.algorithms.krls_t import KRLSTSettings
from omkl.algorithms.nodes import Commit
from omkl.algorithms.nogd import NOGDSettings
from omkl.algorithms.settings import Settings
from omkl.algorithms.vaw2 import VAW2Settings
from omkl.arrays import leaves
from omkl.kernels import Cauchy, Gaussian, Kernel, Laplacian, Matern
from omkl.online import Online
from omkl.persist import decode_tuple, encode_tuple

FAMILIES: dict[str, Callable[[float], Kernel]] = {
    "gaussian": Gaussian,
    "laplacian": Laplacian,
    "cauchy": Cauchy,
    "matern12": lambda scale: Matern(scale, 0.5),
    "matern32": lambda scale: Matern(scale, 1.5),
    "matern52": lambda scale: Matern(scale, 2.5),
}
LEARNERS = algorithms.names()
PAPER = tuple(name for name in LEARNERS if algorithms.get(name).settings is Settings)  # the paper's algorithms
DESCENDING = ("raker", "omkl-gf", "sfg-mkl", "sfg-mkl-r")  # those with a loss and a stabiliser to choose
GRAPHS = ("sfg-mkl", "sfg-mkl-r")
STABILISERS, COMMITS = get_args(Stabiliser), get_args(Commit)


def gaussians(N: int) -> list[Kernel]:
    return [Gaussian(float(scale)) for scale in np.geomspace(0.2, 5.0, N)]


def of_all_families(N: int) -> list[Kernel]:
    """N kernels of all families in turn, from narrow to wide."""
    makers = list(FAMILIES.values())
    return [makers[i % len(makers)](float(scale)) for i, scale in enumerate(np.geomspace(0.3, 3.0, N))]


def small(**changes: Any) -> Settings:
    """Settings that NumPy runs through quickly: 5 Gaussians, 7 features, 2 of the kernels evaluated."""
    return Settings(**{"kernels": gaussians(5), "n_features": 7, "out_degree": 2, "draws": 3, **changes})


def graph_settings(**changes: Any) -> GraphSettings:
    """As `small`, for GraphMKL: 3 kernels, 6 features, 4 of the experts evaluated after 60 rows."""
    kernels = [Gaussian(0.2), Gaussian(1.0), Matern(2.0)]
    given = {"budget": "small", "kernels": kernels, "n_features": 6, "out_degree": 2, "warm_up": 60, "evaluate": 4}
    return GraphSettings(**{**given, **changes})


def quick(settings: type, **defaults: Any) -> Callable[..., Any]:
    """As `small`, for the settings of another algorithm."""
    return lambda **changes: settings(**{**defaults, **changes})


ONE = {"kernels": [Gaussian(0.5)], "n_features": 7}  # of the algorithms with one kernel


def as_many_as_taken(kind: type, kernels: list[Kernel]) -> list[Kernel]:
    """These kernels, or the first of them for an estimator that takes one."""
    return kernels if isinstance(inspect.signature(kind).parameters["kernels"].default, str) else kernels[:1]


# Share all code of estimators, files and threads with AdaRakerRegressor, or with NOGDRegressor, which takes one kernel
ALIKE = ("VAW2Regressor", "DOEBERegressor", "DOEBEClassifier", "FOGDRegressor", "KRLSTRegressor", "NOGDClassifier")


def representatives(kinds: list[Any]) -> list[Any]:
    """These estimators without those that are like another, for tests of what no algorithm has a part in."""
    return [kind for kind in kinds if kind.__name__ not in ALIKE]


SMALL: dict[type, Callable[..., Any]] = {
    Settings: small,
    GraphSettings: graph_settings,
    AdaRakerSettings: quick(AdaRakerSettings, kernels=gaussians(3), n_features=7, levels=3, shortest=4),
    VAW2Settings: quick(VAW2Settings, kernels=gaussians(3), n_features=5),
    FOGDSettings: quick(FOGDSettings, **ONE),
    NOGDSettings: quick(NOGDSettings, **ONE, budget=12, rank=8),
    KRLSTSettings: quick(KRLSTSettings, **ONE, budget=12),
    DOEBESettings: quick(DOEBESettings, kernels=gaussians(3), n_features=5),
}


def small_for(learner: str, **changes: Any) -> Any:
    """Quick settings of the class that the algorithm takes."""
    settings = algorithms.get(learner).settings
    return SMALL.get(settings, settings)(**changes)


def stream(rows: int, d: int, seed: int = 0, loss: str = "squared") -> tuple[np.ndarray, np.ndarray]:
    """A smooth function of uniform inputs with some noise; its sign where the loss takes signs."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (rows, d))
    y = np.sin(3 * X[:, 0]) + X[:, -1] ** 2 - 0.3 + 0.1 * rng.standard_normal(rows)
    return X, (y if loss == "squared" else np.where(y > 0, 1.0, -1.0))


def as_targets(y: np.ndarray, shape: Shape) -> np.ndarray:
    """Numbers as the targets that a problem takes: themselves, their signs, or labels by their size."""
    if shape.target == "sign":
        return np.where(y > 0, 1.0, -1.0)
    if shape.target == "label":
        return np.digitize(y, np.linspace(-1, 1, shape.outputs + 1)[1:-1]).astype(float)
    return y


class Case(NamedTuple):
    """An algorithm with settings: what every property test of algorithms runs on."""

    learner: str
    changes: dict[str, Any]  # to its small settings

    @property
    def algorithm(self) -> Algorithm[Any, Any]:
        return algorithms.get(self.learner)

    def settings(self, **changes: Any) -> Any:
        return small_for(self.learner, **{**self.changes, **changes})

    def problem(self, d: int, seed: int = 0, **changes: Any) -> Any:
        return algorithms.problem(self.learner, self.settings(**changes), d, seed=seed)

    def online(self, d: int = 2, seed: int = 3, backend: str = "engine", **changes: Any) -> Online:
        return Online.make(self.learner, self.settings(**changes), d, seed, backend=backend)

    def stream(self, rows: int, d: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
        X, y = stream(rows, d, seed)
        return X, as_targets(y, self.algorithm.shape(self.problem(d)))


CASES = {
    **{learner: Case(learner, {}) for learner in LEARNERS},
    "sfg-mkl, signs": Case("sfg-mkl", {"loss": "logistic"}),
    "omkl-gf, nodes": Case("omkl-gf", {"nodes": 2}),
    "doebe, stacking": Case("doebe", {"mixing": "stacking"}),
    "graph-mkl": Case("graph-mkl", {"warm_up": 20}),
    "graph-mkl, labels": Case("graph-mkl", {"warm_up": 20, "task": "classification", "outputs": 3}),
}
EVERY_CASE = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def in_raw_units(rows: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """A smooth function of inputs around 100, as they come before anybody scaled them."""
    X = np.random.default_rng(0).normal(size=(rows, d)) * 10 + 100
    return X, np.sin(X[:, 0] / 10) * 50 + X[:, 1]


def labels_of(rows: int, names: Any) -> np.ndarray:
    """Labels that have nothing to do with the inputs."""
    return np.array(list(names))[np.random.default_rng(1).integers(len(names), size=rows)]


def raw_and_turning(rows: int, d: int = 3, seed: int = 0, change: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Raw units, and another function from row `change` on."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, d)) * 5 + 40
    y = 100 * np.sin(X[:, 0] / 3) + 3 * X[:, 1] + rng.normal(size=rows)
    if change is not None:
        y[change:] = 80 * np.cos(X[change:, 1] / 2) - 5 * X[change:, 2]
    return X, y


def arrays_of(state: Any) -> dict[str, np.ndarray]:
    """Every leaf of a state as an array, numbers included, by its dotted name."""
    return {name: np.asarray(leaf) for name, leaf in leaves(state).items()}


def assert_finite(online: Online) -> None:
    """All numbers of the state are finite, but for those that say by NaN that a value is missing."""
    arrays: dict[str, np.ndarray] = {}
    state = online.state
    body = encode_tuple(state, arrays)
    decode_tuple(type(state), body, arrays)  # refuses what is not finite
    assert all(math.isfinite(leaf) for leaf in leaves(state).values() if not isinstance(leaf, np.ndarray))


def assert_same_state(a: Any, b: Any) -> None:
    """Equal bit for bit."""
    assert type(a) is type(b)
    assert arrays_of(a).keys() == arrays_of(b).keys()
    for name, value in arrays_of(a).items():
        np.testing.assert_array_equal(value, arrays_of(b)[name], err_msg=name, strict=True)


def assert_same_learner(a: Online, b: Online) -> None:
    """Equal bit for bit: state, Generator and count of evaluations."""
    one, other = a.checkpoint(), b.checkpoint()
    assert_same_state(one.state, other.state)
    assert one.generator == other.generator
    assert one.evaluations == other.evaluations


def weights_of(rows: int, seed: int = 5) -> np.ndarray:
    """Sample weights of all sizes, zeros among them."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(rows) < 0.2, 0.0, rng.exponential(size=rows))
