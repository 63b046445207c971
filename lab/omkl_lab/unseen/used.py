"""Streams that were used during the development of GraphMKL, so that results on them are optimistic."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from sklearn import datasets as sklearn

from omkl.arrays import Matrix, Vector
from omkl_lab.unseen.components import ROWS, Maker, Pair, Rng, columns, wave

datasets: Any = import_module("river.datasets")
synth: Any = import_module("river.datasets.synth")

# Components


def floats(x: Any) -> Vector:
    return np.asarray(x, float)


def taken(stream: Any, target: Callable[[Any], Any] = float) -> Pair:
    """Rows of a river stream as an array; text is one-hot encoded."""
    pairs = list(stream.take(ROWS))
    parts: list[Any] = []
    for key, first in pairs[0][0].items():
        values = np.array([x[key] for x, _ in pairs])
        parts.append(values[:, None] == np.unique(values) if isinstance(first, str) else values)
    targets = [target(y) for _, y in pairs]
    return columns(*parts), floats(np.unique(targets, return_inverse=True)[1] if target is str else targets)


def shuffled(rng: Rng, pair: Any) -> Pair:
    """In a random order."""
    order = rng.permutation(len(pair[1]))
    return floats(pair[0][order]), floats(pair[1][order])


def generated(kind: str, *arguments: Any, **settings: Any) -> Maker:
    """One of scikit-learn's generators."""
    return lambda rng: shuffled(rng, getattr(sklearn, f"make_{kind}")(*arguments, random_state=0, **settings))


def built_in(kind: str) -> Maker:
    return lambda rng: shuffled(rng, getattr(sklearn, f"load_{kind}")(return_X_y=True))


def smooth(X: Matrix) -> Vector:
    return floats(np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3])


def cube(
    f: Callable[[Matrix, Rng], Any], d: int = 6, noise: float = 0.2, seen: Callable[[Matrix], Any] = np.asarray
) -> Maker:
    """A function of inputs that are uniform on [-1, 1], and noise; `seen` maps them to the inputs of the learners."""

    def make(rng: Rng) -> Pair:
        X = rng.uniform(-1, 1, (ROWS, d))
        y = f(X, rng) + noise * rng.standard_normal(ROWS)
        return floats(seen(X)), floats(y)

    return make


def labelled(f: Callable[[Matrix, Rng], Any], d: int = 5) -> Maker:
    return cube(f, d, noise=0)


def lags(series: Vector, of: tuple[int, ...], ahead: int = 1) -> Pair:
    """Lagged values as inputs, and the value `ahead` rows later as target."""
    first = max(of) + ahead
    X = np.column_stack([series[first - ahead - k : len(series) - ahead - k] for k in of])
    return X[:ROWS], series[first:][:ROWS]


# Numbers


def outliers(rng: Rng) -> Pair:
    X, y = cube(lambda X, _: smooth(X))(rng)
    return X, y * np.where(rng.random(ROWS) < 0.01, 100, 1)


def input_outliers(rng: Rng) -> Pair:
    X, y = cube(lambda X, _: smooth(X))(rng)
    return X * np.where(rng.random(X.shape) < 0.005, 1000, 1), y


def long_tails(rng: Rng) -> Pair:
    L = 1.5 * rng.standard_normal((ROWS, 5))
    return np.exp(L), L[:, 0] + np.sin(L[:, 1]) + 0.5 * L[:, 2] * L[:, 3] + 0.3 * rng.standard_normal(ROWS)


def long_tails_linear(rng: Rng) -> Pair:
    X = np.exp(1.2 * rng.standard_normal((ROWS, 5)))
    return X, X @ np.array([1, -1, 0.5, 2, 0]) + rng.standard_normal(ROWS)


def walk_linear(rng: Rng) -> Pair:
    X = np.cumsum(rng.standard_normal((ROWS, 4)), axis=0)
    return X, X @ np.array([1, -2, 0.5, 0]) + rng.standard_normal(ROWS)


def autoregression(rng: Rng) -> Pair:
    s = np.zeros(ROWS + 5)
    for t in range(5, len(s)):
        s[t] = s[t - 5 : t] @ np.array([0.3, 0.1, 0.2, -0.3, 0.5]) + rng.standard_normal()
    return lags(s, (0, 1, 2, 3, 4))


def seasonal(rng: Rng) -> Pair:
    t = np.arange(ROWS + 25)
    return lags(10 * wave(t, 24) + 5 * wave(t, 168) + 0.01 * t + rng.standard_normal(len(t)), tuple(range(25)))


def mackey_glass(rng: Rng) -> Pair:
    s = 1.2 + 0.1 * rng.random(ROWS + 330)
    for t in range(18, len(s)):
        s[t] = s[t - 1] + 0.2 * s[t - 18] / (1 + s[t - 18] ** 10) - 0.1 * s[t - 1]
    return lags(s[300:], (0, 6, 12, 18), ahead=6)


def linear_200(rng: Rng) -> Pair:
    X = rng.standard_normal((ROWS, 200))
    return X, X @ rng.standard_normal(200) + 5 * rng.standard_normal(ROWS)


def kinds(rng: Rng) -> Pair:
    a, b = rng.integers(30, size=ROWS), rng.integers(20, size=ROWS)
    y = rng.standard_normal(30)[a] + rng.standard_normal(20)[b] + 0.3 * rng.standard_normal(ROWS)
    return columns(np.eye(30)[a], np.eye(20)[b]), y


def scale_drift(rng: Rng) -> Pair:
    X, y = cube(lambda X, _: smooth(X))(rng)
    return X * np.linspace(1, 20, ROWS)[:, None], y * np.linspace(1, 20, ROWS)


NUMBERS: dict[str, Maker] = {
    "solar_flare": lambda rng: taken(datasets.SolarFlare(), lambda y: y["c-class-flares"]),
    "trump_approval": lambda rng: taken(datasets.TrumpApproval()),
    "mv": lambda rng: taken(synth.Mv(seed=0)),
    "planes": lambda rng: taken(synth.Planes2D(seed=0)),
    "diabetes": built_in("diabetes"),
    "digits_as_numbers": built_in("digits"),
    "friedman1_50": generated("friedman1", ROWS, 50, noise=1),
    "friedman2": generated("friedman2", ROWS, noise=125),
    "linear_20": generated("regression", ROWS, 20, n_informative=10, noise=30),
    "swiss_roll": generated("swiss_roll", ROWS, noise=0.5),
    "smooth": cube(lambda X, _: smooth(X), noise=0.3),
    "student": cube(lambda X, rng: smooth(X) + 0.2 * rng.standard_t(2, ROWS), noise=0),
    "uneven_noise": cube(lambda X, rng: smooth(X) + 0.3 * np.exp(1.5 * X[:, 4]) * rng.standard_normal(ROWS), noise=0),
    "multiplied": cube(lambda X, rng: np.exp(smooth(X) + 0.4 * rng.standard_normal(ROWS)), noise=0),
    "outliers": outliers,
    "input_outliers": input_outliers,
    "long_tails": long_tails,
    "long_tails_linear": long_tails_linear,
    "walk_linear": walk_linear,
    "autoregression": autoregression,
    "seasonal": seasonal,
    "mackey_glass": mackey_glass,
    "irrelevant_50": cube(lambda X, _: np.sin(3 * X[:, 7]) + 2 * X[:, 21] * X[:, 33], 50),
    "linear_200": linear_200,
    "kinds": kinds,
    "duplicated": cube(lambda X, _: smooth(X), 4, seen=lambda X: np.column_stack((X, X, X, 1e3 * X[:, 0]))),
    "steps": cube(lambda X, _: np.where(X[:, 0] > 0, 1 + 2.0 * (X[:, 1] > 0.3), 2 - 3.0 * (X[:, 2] > -0.4))),
    "signs_of_3": cube(lambda X, _: np.sign(X[:, :3].prod(axis=1)), 5),
    "product_of_3": cube(lambda X, _: 4 * X[:, :3].prod(axis=1), 5),
    "fast_sine": cube(lambda X, _: np.sin(15 * X[:, 0])),
    "level_walk": cube(lambda X, rng: smooth(X) + np.cumsum(0.1 * rng.standard_normal(ROWS))),
    "abrupt": cube(lambda X, _: np.where(np.arange(ROWS) < 1000, smooth(X), smooth(-X[:, ::-1]))),
    "scale_drift": scale_drift,
    "noise": cube(lambda X, _: 0, 8, noise=1),
    "counts": cube(lambda X, rng: rng.poisson(np.exp(smooth(X))), noise=0),
    "rare": cube(lambda X, rng: (rng.random(ROWS) < 0.03) * rng.exponential(10, ROWS) * (1 + (X[:, 0] > 0)), noise=0),
    "noiseless_linear": cube(lambda X, _: X @ np.arange(10), 10, noise=0),
}


# Labels


def random_rbf() -> Any:
    return synth.RandomRBFDrift(
        seed_model=0,
        seed_sample=0,
        n_classes=4,
        n_features=10,
        n_centroids=50,
        change_speed=0.001,
        n_drift_centroids=25,
    )


def random_tree() -> Any:
    return synth.RandomTree(
        seed_tree=0, seed_sample=0, n_classes=3, n_num_features=5, n_cat_features=2, n_categories_per_feature=4
    )


def sine_drift() -> Any:
    before, after = (synth.Sine(classification_function=k, seed=k) for k in (0, 1))
    return synth.ConceptDriftStream(before, after, position=1000, width=10, seed=0)


def blobs(rng: Rng, moved: bool) -> Pair:
    """Clusters whose labels are permuted in the middle (`moved`), or come in blocks."""
    X, y = generated("blobs", ROWS, 5, centers=4, cluster_std=5)(rng)
    late_half = np.arange(ROWS) // 1000
    order = np.arange(ROWS) if moved else np.argsort(y + 4 * late_half, kind="stable")
    return X[order], (y[order] + late_half) % 4 if moved else y[order]


def plane_50(rng: Rng) -> Pair:
    X = rng.standard_normal((ROWS, 50))
    return X, floats(X @ rng.standard_normal(50) + 2 * rng.standard_normal(ROWS) > 0)


def long_tails_labels(rng: Rng) -> Pair:
    L = 1.5 * rng.standard_normal((ROWS, 5))
    return np.exp(L), floats(L[:, 0] + L[:, 1] * (L[:, 2] > 0) + 0.3 * rng.standard_normal(ROWS) > 0)


def sticky_labels(rng: Rng) -> Pair:
    y = np.cumsum(rng.random(ROWS) < 0.05) % 2
    return rng.uniform(-1, 1, (ROWS, 4)) + 0.3 * y[:, None], floats(y)


LABELS: dict[str, Maker] = {
    "phishing": lambda rng: taken(datasets.Phishing()),
    "bananas": lambda rng: taken(datasets.Bananas()),
    "segments": lambda rng: shuffled(rng, taken(datasets.ImageSegments(), str)),
    "shuttle": lambda rng: taken(datasets.Shuttle()),
    "agrawal": lambda rng: taken(synth.Agrawal(classification_function=1, seed=0, perturbation=0.05)),
    "hyperplane": lambda rng: taken(synth.Hyperplane(seed=0, n_features=10, mag_change=0.001)),
    "led": lambda rng: taken(synth.LED(seed=0, noise_percentage=0.1)),
    "random_rbf": lambda rng: taken(random_rbf()),
    "random_tree": lambda rng: taken(random_tree()),
    "sea": lambda rng: taken(synth.SEA(seed=0, noise=0.1)),
    "sine_drift": lambda rng: taken(sine_drift()),
    "waveform": lambda rng: taken(synth.Waveform(seed=0, has_noise=True)),
    "wine": built_in("wine"),
    "digits": built_in("digits"),
    "breast_cancer": built_in("breast_cancer"),
    "classification": generated("classification", ROWS, 20, n_informative=8, n_redundant=4, n_classes=3),
    "one_in_100": generated("classification", ROWS, 10, n_informative=5, weights=[0.99], flip_y=0),
    "moons": generated("moons", ROWS, noise=0.25),
    "circles": generated("circles", ROWS, noise=0.15, factor=0.6),
    "quantiles": generated("gaussian_quantiles", n_samples=ROWS, n_features=6, n_classes=3),
    "spheres": generated("hastie_10_2", ROWS),
    "blobs_26": generated("blobs", ROWS, 16, centers=26, cluster_std=5),
    "blocks": lambda rng: blobs(rng, moved=False),
    "renamed": lambda rng: blobs(rng, moved=True),
    "signs_of_3_labels": labelled(lambda X, _: X[:, :3].prod(axis=1) > 0),
    "checkerboard": labelled(lambda X, _: np.floor(3 * X).sum(axis=1) % 2, 2),
    "plane_50": plane_50,
    "boxes_50": labelled(lambda X, _: (X[:, 3] > 0.2) & (X[:, 17] < 0.5) | (X[:, 40] > 0.8), 50),
    "long_tails_labels": long_tails_labels,
    "noise_labels": labelled(lambda X, rng: rng.random(ROWS) < 0.3, 6),
    "sticky": sticky_labels,
}
