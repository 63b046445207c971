"""Streaming learners of other libraries, row by row, on inputs standardised by the rows so far.

Each gets its rows in the format it takes (dict, array, line of text, instance), converted and standardised before the
clock starts.
"""

import pickle
import time
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

import numpy as np

from omkl.arrays import Matrix, Vector
from omkl_lab.comparison.outcome import Outcome
from omkl_lab.comparison.streams import RawStream

GAMMAS = (0.01, 0.1, 1.0, 10.0, 100.0)  # of the kernels in the ensemble of river
Runs = Callable[[RawStream, int], Outcome]


# Scaling by the rows so far


def moments(X: Matrix) -> tuple[Matrix, Matrix]:
    """Mean and standard deviation of each column over the rows up to each, that row included.

    >>> mean, deviation = moments(np.array([[1.0], [3.0], [8.0]]))
    >>> mean.ravel().tolist(), deviation.ravel().round(3).tolist()
    ([1.0, 2.0, 4.0], [0.0, 1.0, 2.944])
    """
    n = np.arange(1, len(X) + 1)[:, None]
    shifted = X - X[0]  # a variance from sums of squares needs values near 0
    mean = np.cumsum(shifted, axis=0) / n
    variance = np.cumsum(shifted**2, axis=0) / n - mean**2
    return mean + X[0], np.sqrt(np.maximum(variance, 0))


def standardised(X: Matrix) -> Matrix:
    """Each row by the mean and the deviation of the rows so far; a column that was constant so far is 0."""
    mean, deviation = moments(X)
    known = deviation > 1e-9 * np.maximum(np.abs(mean), np.abs(X).max(axis=0, initial=0))
    return np.ascontiguousarray(np.where(known, (X - mean) / np.where(known, deviation, 1), 0.0))


class Target:
    """Targets by the mean and the deviation of those so far, and predictions back into the unit of the target."""

    def __init__(self, y: Vector) -> None:
        mean, deviation = (part[:, 0] for part in moments(y[:, None]))
        deviation = np.where(deviation > 0, deviation, 1.0)
        self.scaled = (y - mean) / deviation  # as they are learned
        self.mean, self.deviation = np.append(0.0, mean[:-1]), np.append(1.0, deviation[:-1])  # before each row


# Loops


def predict_then_learn(
    rows: Iterable[Any], targets: Iterable[Any], stream: RawStream, predict: Callable[[Any], Any],
    learn: Callable[[Any, Any], Any], target: Target | None = None, size: Callable[[], int | None] = lambda: None,
) -> Outcome:  # fmt: skip
    """Predict each row, then learn it; stop when the squared errors sum to more than any constant's in the range."""
    y = stream.y.tolist()
    mean, deviation = (target.mean, target.deviation) if target else (np.zeros(len(y)), np.ones(len(y)))
    total, limit = 0.0, float(len(y) * np.ptp(stream.y) ** 2)
    out: list[float] = []
    begin = time.process_time()
    for row, truth, taught, m, s in zip(rows, y, targets, mean.tolist(), deviation.tolist(), strict=True):
        f = predict(row)
        f = m if f is None else m + s * float(f)
        if out:
            total += (f - truth) ** 2
            if not total <= limit:
                break
        out.append(f)
        learn(row, taught)
    seconds = time.process_time() - begin
    return Outcome(np.array(out), seconds, size=size())


def pickled(model: Any) -> Callable[[], int | None]:
    def size() -> int | None:
        try:
            return len(pickle.dumps(model))
        except Exception:  # a model that cannot be pickled has no size
            return None

    return size


def numbers(
    stream: RawStream, scale_target: bool, rows: Callable[[Matrix], Iterable[Any]], predict: Any, learn: Any,
    size: Callable[[], int | None],
) -> Outcome:  # fmt: skip
    target = Target(stream.y) if scale_target else None
    taught = stream.y if target is None else target.scaled
    return predict_then_learn(rows(standardised(stream.X)), taught.tolist(), stream, predict, learn, target, size)


# river


def dicts(X: Matrix) -> list[dict[int, float]]:
    return [dict(enumerate(x)) for x in X.tolist()]


def river(make: Callable[[int, int], Any], scale_target: bool = False) -> Runs:
    """A learner of river; `make` gets the seed and the number of labels (0: numbers)."""

    def run(stream: RawStream, seed: int) -> Outcome:
        if stream.task == "labels":
            return river_labels(make(seed, int(stream.y.max()) + 1), stream)
        model = make(seed, 0)
        return numbers(stream, scale_target, dicts, model.predict_one, model.learn_one, pickled(model))

    return run


def river_labels(model: Any, stream: RawStream) -> Outcome:
    labels = int(stream.y.max()) + 1
    rows, targets = dicts(standardised(stream.X)), stream.y.astype(int).tolist()
    if labels == 2:
        targets = [bool(label) for label in targets]
    out = np.zeros((len(targets), labels))
    begin = time.process_time()
    for probabilities, row, label in zip(out, rows, targets, strict=True):
        for k, probability in model.predict_proba_one(row).items():
            probabilities[int(k)] = probability
        model.learn_one(row, label)
    return Outcome(out, time.process_time() - begin, size=pickled(model)())


def plain(module: str, kind: str, seeded: bool = False, **settings: Any) -> Callable[[int, int], Any]:
    """A learner of river; `kind` ends with Regressor, which becomes Classifier for labels."""

    def make(seed: int, labels: int) -> Any:
        name = kind.replace("Regressor", "Classifier") if labels else kind
        more = {"seed": seed} if seeded else {}
        return getattr(import_module(f"river.{module}"), name)(**settings, **more)

    return make


def linear(seed: int, labels: int) -> Any:
    kind = {0: "LinearRegression", 2: "LogisticRegression"}.get(labels, "SoftmaxRegression")
    return getattr(import_module("river.linear_model"), kind)()


def exact_knn(seed: int, labels: int) -> Any:
    """Nearest neighbours by exhaustive search among the last 1000 rows."""
    neighbors = import_module("river.neighbors")
    return getattr(neighbors, "KNNClassifier" if labels else "KNNRegressor")(
        engine=neighbors.LazySearch(window_size=1000)
    )


def river_rbf(seed: int, labels: int) -> Any:
    sampler = import_module("river.feature_extraction").RBFSampler(n_components=100, seed=seed)
    return sampler | import_module("river.linear_model").LinearRegression(import_module("river.optim").SGD(5e-4))


def river_ewa(seed: int, labels: int) -> Any:
    sampler, model = import_module("river.feature_extraction").RBFSampler, import_module("river.linear_model")
    each = [sampler(gamma=gamma, n_components=20, seed=seed) | model.LinearRegression() for gamma in GAMMAS]
    return import_module("river.ensemble").EWARegressor(each)


# scikit-learn, Vowpal Wabbit, padasip, recursive least squares


def sklearn_rbf(stream: RawStream, seed: int) -> Outcome:
    """100 random features and stochastic gradient descent with a constant step of 0.5."""
    approximation, model = import_module("sklearn.kernel_approximation"), import_module("sklearn.linear_model")
    sampler = approximation.RBFSampler(gamma=1 / stream.X.shape[1], random_state=seed).fit(stream.X[:1])
    regression = model.SGDRegressor(random_state=seed, learning_rate="constant", eta0=0.5)
    z: list[Any] = [None]  # the features of a row are used for its prediction and its update

    def predict(row: Matrix) -> float | None:
        z[0] = sampler.transform(row)
        return regression.predict(z[0])[0] if hasattr(regression, "coef_") else None

    return numbers(stream, True, lambda X: X[:, None], predict, lambda _, t: regression.partial_fit(z[0], [t]),
                   pickled((sampler, regression)))  # fmt: skip


def vowpal(arguments: str) -> Runs:
    def run(stream: RawStream, seed: int) -> Outcome:
        model = import_module("vowpalwabbit").Workspace(f"--quiet {arguments}")
        target = Target(stream.y)
        X = standardised(stream.X)
        lines = [" |f " + " ".join(f"{k}:{value!r}" for k, value in enumerate(x)) for x in X.tolist()]
        taught = [f"{t!r}{line}" for t, line in zip(target.scaled.tolist(), lines, strict=True)]
        out = predict_then_learn(lines, taught, stream, model.predict, lambda _, line: model.learn(line), target)
        model.finish()
        return out

    return run


def padasip(kind: str, **settings: Any) -> Runs:
    def run(stream: RawStream, seed: int) -> Outcome:
        n = stream.X.shape[1] + 1
        model = getattr(import_module("padasip.filters"), kind)(n=n, w="zeros", **settings)
        return numbers(stream, True, lambda X: np.column_stack((X, np.ones(len(X)))), model.predict,
                       lambda z, t: model.adapt(t, z), pickled(model))  # fmt: skip

    return run


def recursive_ridge(stream: RawStream, seed: int) -> Outcome:
    """Recursive least squares with a ridge of 1."""
    n = stream.X.shape[1] + 1
    P, theta = np.eye(n), np.zeros(n)

    def learn(z: Vector, target: float) -> None:
        Pz = P @ z
        gain = Pz / (1 + z @ Pz)
        theta[:] += gain * (target - theta @ z)
        P[:] -= np.outer(gain, Pz)

    return numbers(stream, True, lambda X: np.column_stack((X, np.ones(len(X)))), theta.__matmul__, learn,
                   lambda: P.nbytes + theta.nbytes)  # fmt: skip


# CapyMOA


def capymoa(kind: str, **settings: Any) -> Runs:
    """A learner of CapyMOA, on a Java machine whose threads all count."""

    def run(stream: RawStream, seed: int) -> Outcome:
        features = [f"x{k}" for k in range(stream.X.shape[1])]
        schema = import_module("capymoa.stream").Schema
        core = import_module("capymoa.core")
        X = standardised(stream.X)
        if stream.task == "numbers":
            there = schema.from_custom(features=[*features, "y"], target="y")
            rows = [core.RegressionInstance.from_array(there, x, t) for x, t in zip(X, stream.y, strict=True)]
            model = getattr(import_module("capymoa.regressor"), kind)(there, random_seed=seed + 1, **settings)
            return predict_then_learn(rows, stream.y.tolist(), stream, model.predict, lambda row, _: model.train(row),
                                      size=lambda: java_size(model))  # fmt: skip
        labels = int(stream.y.max()) + 1
        there = schema.from_custom(
            features=[*features, "y"], target="y", categories={"y": [str(k) for k in range(labels)]}
        )
        rows = [core.LabeledInstance.from_array(there, x, int(t)) for x, t in zip(X, stream.y, strict=True)]
        make = getattr(import_module("capymoa.classifier"), kind.replace("Regressor", "Classifier"))
        model = make(there, random_seed=seed + 1, **settings)
        out = np.zeros((len(rows), labels))
        begin = time.process_time()
        for probabilities, row in zip(out, rows, strict=True):
            found = model.predict_proba(row)
            if found is not None:
                probabilities[: len(found)] = found
            model.train(row)
        return Outcome(out, time.process_time() - begin, size=java_size(model))

    return run


def java_size(model: Any) -> int | None:
    """Bytes of the model as Java serialises it."""
    try:
        jpype = import_module("jpype")
        out = jpype.java.io.ByteArrayOutputStream()
        jpype.java.io.ObjectOutputStream(out).writeObject(model.moa_learner)
        return int(out.size())
    except Exception:  # not every learner of MOA can be serialised
        return None
