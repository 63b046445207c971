"""The learners of the comparison: omkl's, and those of other libraries with their defaults.

Other libraries are imported when they run, and any of them may be missing. Each learner gets its rows in the
format it takes (dict, array, line of text, instance), converted before the clock starts.
"""

import os
import shutil
import time
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

import numpy as np

from omkl.arrays import Matrix, Vector
from omkl_lab.peers.evaluation import Outcome, predict_then_learn
from omkl_lab.peers.streams import Task

GAMMAS = (0.01, 0.1, 1.0, 10.0, 100.0)  # of the kernels in the ensemble of river


class Learner(NamedTuple):
    """One row of the tables."""

    name: str
    package: str  # on PyPI
    tasks: tuple[Task, ...]
    run: Callable[[Matrix, Vector, int, Task], Outcome]  # rows, targets, seed, task
    ours: bool = False
    seeded: bool = False  # whether to run with several seeds

    @property
    def absent(self) -> str | None:
        """Why the learner cannot run here, or None."""
        try:
            version(self.package)
        except PackageNotFoundError:
            return f"{self.package} is not installed"
        if self.package == "capymoa" and not (shutil.which("java") or os.environ.get("JAVA_HOME")):
            return "capymoa needs a Java runtime"
        return None


# omkl: all rows in one call, except with the river API


def ours(kind: str, **settings: Any) -> Callable[[Matrix, Vector, int, Task], Outcome]:
    def run(X: Matrix, y: Vector, seed: int, task: Task) -> Outcome:
        estimators = import_module("omkl")
        make = getattr(estimators, kind + ("Classifier" if task == "labels" else "Regressor"))
        model = make(random_state=seed, **settings)
        begin = time.thread_time()
        if task == "labels":
            both = model.predict_proba_then_learn(X, y, classes=[-1.0, 1.0])
            seconds = time.thread_time() - begin
            total = both.sum(axis=1)
            return Outcome(np.where(total > 0, both[:, 1] / np.where(total > 0, total, 1), 0.5), seconds)
        out = model.predict_then_learn(X, y)
        seconds = time.thread_time() - begin
        if kind != "GraphMKL":
            return Outcome(out, seconds)
        with_interval = make(random_state=seed, **settings).predict_interval_then_learn(X, y, coverage=0.9)
        return Outcome(out, seconds, with_interval[:, 1:])

    return run


def ours_row_by_row(X: Matrix, y: Vector, seed: int, task: Task) -> Outcome:
    return run_river(import_module("omkl.river").GraphMKLRegressor(seed=seed), X, y, task)


# Baselines


def running_mean(X: Matrix, y: Vector, seed: int, task: Task) -> Outcome:
    seen = [0, 0.0]

    def learn(_: Any, target: float) -> None:
        seen[0] += 1
        seen[1] += (target - seen[1]) / seen[0]

    return predict_then_learn(X, y, lambda _: seen[1], learn)


def last_label(X: Matrix, y: Vector, seed: int, task: Task) -> Outcome:
    begin = time.thread_time()
    p = np.r_[0.5, (y[:-1] + 1) / 2]
    return Outcome(p, time.thread_time() - begin)


# river


def river(make: Callable[[], Any]) -> Callable[[Matrix, Vector, int, Task], Outcome]:
    return lambda X, y, seed, task: run_river(make(), X, y, task)


def run_river(model: Any, X: Matrix, y: Vector, task: Task) -> Outcome:
    rows = [dict(enumerate(x)) for x in X.tolist()]
    if task != "labels":
        return predict_then_learn(rows, y, model.predict_one, model.learn_one)

    def probability(x: Any) -> float:
        both = model.predict_proba_one(x)
        return both.get(True, 0.0) if both else 0.5

    return predict_then_learn(rows, (y + 1) / 2, probability, model.learn_one, targets=(y == 1).tolist())


def scaled(module: str, kind: str, **settings: Any) -> Callable[[], Any]:
    """A river learner behind river's StandardScaler."""

    def make() -> Any:
        return import_module("river.preprocessing").StandardScaler() | plain(module, kind, **settings)()

    return make


def plain(module: str, kind: str, **settings: Any) -> Callable[[], Any]:
    def make() -> Any:
        return getattr(import_module(f"river.{module}"), kind)(**settings)

    return make


def exact_knn(kind: str) -> Callable[[], Any]:
    """Nearest neighbours by exhaustive search among the last 1000 rows."""

    def make() -> Any:
        return scaled("neighbors", kind, engine=import_module("river.neighbors").LazySearch(window_size=1000))()

    return make


def river_rbf() -> Any:
    sampler = import_module("river.feature_extraction").RBFSampler(n_components=100, seed=0)
    linear = import_module("river.linear_model").LinearRegression(import_module("river.optim").SGD(5e-4))
    return import_module("river.preprocessing").StandardScaler() | sampler | linear


def river_ewa() -> Any:
    sampler, linear = import_module("river.feature_extraction").RBFSampler, import_module("river.linear_model")
    each = [sampler(gamma=gamma, n_components=20, seed=0) | linear.LinearRegression() for gamma in GAMMAS]
    return import_module("river.preprocessing").StandardScaler() | import_module("river.ensemble").EWARegressor(each)


# scikit-learn, Vowpal Wabbit, padasip, CapyMOA


def sklearn_rbf(**settings: Any) -> Callable[[Matrix, Vector, int, Task], Outcome]:
    def run(X: Matrix, y: Vector, seed: int, task: Task) -> Outcome:
        sampler = import_module("sklearn.kernel_approximation").RBFSampler(n_components=100, random_state=0).fit(X[:1])
        model = import_module("sklearn.linear_model").SGDRegressor(random_state=0, **settings)
        z: list[Any] = [None]  # the features of a row are used for its prediction and its update

        def predict(row: Matrix) -> float | None:
            z[0] = sampler.transform(row)
            return model.predict(z[0])[0] if hasattr(model, "coef_") else None

        return predict_then_learn(X[:, None], y, predict, lambda _, target: model.partial_fit(z[0], [target]))

    return run


def vowpal(arguments: str) -> Callable[[Matrix, Vector, int, Task], Outcome]:
    def run(X: Matrix, y: Vector, seed: int, task: Task) -> Outcome:
        model = import_module("vowpalwabbit").Workspace(f"--quiet {arguments}")
        lines = [" |f " + " ".join(f"{k}:{value!r}" for k, value in enumerate(x)) for x in X.tolist()]
        labelled = [f"{target!r}{line}" for target, line in zip(y.tolist(), lines, strict=True)]
        out = predict_then_learn(lines, y, model.predict, lambda _, line: model.learn(line), targets=labelled)
        model.finish()
        return out

    return run


def padasip(kind: str, **settings: Any) -> Callable[[Matrix, Vector, int, Task], Outcome]:
    def run(X: Matrix, y: Vector, seed: int, task: Task) -> Outcome:
        Z = np.column_stack((X, np.ones(len(X))))
        model = getattr(import_module("padasip.filters"), kind)(n=Z.shape[1], w="zeros", **settings)
        return predict_then_learn(Z, y, model.predict, lambda z, target: model.adapt(target, z))

    return run


def capymoa(kind: str) -> Callable[[Matrix, Vector, int, Task], Outcome]:
    def run(X: Matrix, y: Vector, seed: int, task: Task) -> Outcome:
        names = [f"x{k}" for k in range(X.shape[1])]
        schema = import_module("capymoa.stream").Schema.from_custom(features=[*names, "y"], target="y")
        instance = import_module("capymoa.core").RegressionInstance.from_array
        rows = [instance(schema, x, target) for x, target in zip(X, y, strict=True)]
        model = getattr(import_module("capymoa.regressor"), kind)(schema)
        return predict_then_learn(rows, y, model.predict, lambda row, _: model.train(row), clock=time.process_time)

    return run


# All learners

N: tuple[Task, ...] = ("numbers",)
ND: tuple[Task, ...] = ("numbers", "drift")
NDL: tuple[Task, ...] = ("numbers", "drift", "labels")
L: tuple[Task, ...] = ("labels",)

LEARNERS = {
    learner.name: learner
    for learner in (
        Learner("omkl GraphMKL", "omkl", NDL, ours("GraphMKL"), True, True),
        Learner("omkl GraphMKL, all experts", "omkl", NDL, ours("GraphMKL", evaluate="all"), True, True),
        Learner("omkl GraphMKL, river row by row", "river", N, ours_row_by_row, True),
        Learner("omkl SFG-MKL", "omkl", NDL, ours("SFGMKL"), True, True),
        Learner("omkl Raker", "omkl", NDL, ours("Raker"), True, True),
        Learner("running mean", "omkl", ND, running_mean),
        Learner("last label", "omkl", L, last_label),
        Learner("river linear", "river", ND, river(scaled("linear_model", "LinearRegression"))),
        Learner("river KNN", "river", N, river(scaled("neighbors", "KNNRegressor"))),
        Learner("river KNN, exact", "river", ND, river(exact_knn("KNNRegressor"))),
        Learner("river Hoeffding tree", "river", ND, river(scaled("tree", "HoeffdingAdaptiveTreeRegressor", seed=0))),
        Learner("river ARF", "river", ND, river(scaled("forest", "ARFRegressor", seed=0))),
        Learner("river AMF", "river", N, river(scaled("forest", "AMFRegressor", seed=0))),
        Learner("river RBF + linear, step 5e-4", "river", N, river(river_rbf)),
        Learner("river EWA of 5 RBF", "river", N, river(river_ewa)),
        Learner("scikit-learn RBF + SGD", "scikit-learn", N, sklearn_rbf()),
        Learner("scikit-learn RBF + SGD, step 0.5", "scikit-learn", N,
                sklearn_rbf(learning_rate="constant", eta0=0.5)),
        Learner("VW", "vowpalwabbit", ND, vowpal("")),
        Learner("VW, quadratic", "vowpalwabbit", ND, vowpal("-q ff")),
        Learner("padasip NLMS 0.5", "padasip", ND, padasip("FilterNLMS", mu=0.5)),
        Learner("padasip RLS 0.99", "padasip", ND, padasip("FilterRLS", mu=0.99)),
        Learner("CapyMOA KNN", "capymoa", ND, capymoa("KNNRegressor")),
        Learner("CapyMOA ARF", "capymoa", ND, capymoa("AdaptiveRandomForestRegressor")),
        Learner("CapyMOA SGBR", "capymoa", ND, capymoa("StreamingGradientBoostedRegression")),
        Learner("river logistic", "river", L, river(plain("linear_model", "LogisticRegression"))),
        Learner("river logistic, scaled", "river", L, river(scaled("linear_model", "LogisticRegression"))),
        Learner("river KNN classifier", "river", L, river(scaled("neighbors", "KNNClassifier"))),
        Learner("river Hoeffding tree classifier", "river", L,
                river(scaled("tree", "HoeffdingAdaptiveTreeClassifier", seed=0))),
        Learner("river ARF classifier", "river", L, river(scaled("forest", "ARFClassifier", seed=0))),
    )
}  # fmt: skip
