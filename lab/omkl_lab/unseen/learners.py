"""The learners compared on further streams: GraphMKL and common peers, with default parameters."""

import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from omkl.arrays import Matrix, Vector
from omkl_lab.comparison.boosting import Refit, lightgbm, lightgbm_size, refitted
from omkl_lab.comparison.streams import RawStream
from omkl_lab.peers import learners
from omkl_lab.peers.evaluation import Outcome, predict_then_learn
from omkl_lab.peers.learners import L, Learner, N, exact_knn, plain, scaled
from omkl_lab.peers.showing import US
from omkl_lab.peers.streams import Task

Run = Callable[[Matrix, Vector, int, Task], Outcome]
RIDGE = "recursive ridge"
LAST_LABEL = "last label"
BOOSTING = "LightGBM, refitted"


def boosting(X: Matrix, y: Vector, seed: int, task: Task) -> Outcome:
    """Gradient boosting, fitted anew to all rows so far whenever there are 5 % more."""
    done = refitted(lightgbm, lightgbm_size, Refit())(
        RawStream("", "labels" if task == "labels" else "numbers", X, y, 1.0, False), seed
    )
    return Outcome(done.predictions, done.seconds)


# Numbers


def last_value(X: Matrix, y: Vector, seed: int, task: Task) -> Outcome:
    begin = time.thread_time()
    return Outcome(np.concatenate(([0.0], y[:-1])), time.thread_time() - begin)


def recursive_ridge(X: Matrix, y: Vector, seed: int, task: Task) -> Outcome:
    """Recursive least squares with a ridge of 1, on inputs scaled by river's StandardScaler and a constant."""
    scaler = import_module("river.preprocessing").StandardScaler()
    P, theta = np.eye(X.shape[1] + 1), np.zeros(X.shape[1] + 1)
    z = theta

    def predict(row: Any) -> float:
        nonlocal z
        scaler.learn_one(row)
        z = np.array([1.0, *scaler.transform_one(row).values()])
        return float(theta @ z)

    def learn(_: Any, target: float) -> None:
        Pz = P @ z
        gain = Pz / (1 + z @ Pz)
        theta[:] += gain * (target - theta @ z)
        P[:] -= np.outer(gain, Pz)

    return predict_then_learn([dict(enumerate(x)) for x in X.tolist()], y, predict, learn)


# Labels: a column of probabilities for each label


def river_classifier(make: Callable[[int], Any]) -> Run:
    """A classifier of river; `make` gets the number of labels."""

    def run(X: Matrix, y: Vector, seed: int, task: Task) -> Outcome:
        count = int(y.max()) + 1
        rows, targets = [dict(enumerate(x)) for x in X.tolist()], y.astype(int).tolist()
        model, out = make(count), np.zeros((len(y), count))
        if count == 2:
            targets = [bool(label) for label in targets]
        begin = time.thread_time()
        for probabilities, row, label in zip(out, rows, targets, strict=True):
            for k, probability in model.predict_proba_one(row).items():
                probabilities[int(k)] = probability
            model.learn_one(row, label)
        return Outcome(out, time.thread_time() - begin)

    return run


def graph_mkl(X: Matrix, y: Vector, seed: int, task: Task) -> Outcome:
    model = import_module("omkl").GraphMKLClassifier(random_state=seed)
    begin = time.thread_time()
    out = model.predict_proba_then_learn(X, y, classes=np.arange(y.max() + 1))
    return Outcome(out, time.thread_time() - begin)


def frequencies(X: Matrix, y: Vector, seed: int, task: Task) -> Outcome:
    begin = time.thread_time()
    seen = np.eye(int(y.max()) + 1)[y.astype(int)]
    before = np.cumsum(seen, axis=0) - seen + 1 / seen.shape[1]
    return Outcome(before / before.sum(axis=1, keepdims=True), time.thread_time() - begin)


def last_label(X: Matrix, y: Vector, seed: int, task: Task) -> Outcome:
    begin = time.thread_time()
    seen = np.eye(int(y.max()) + 1)[y.astype(int)]
    return Outcome(np.concatenate((np.zeros_like(seen[:1]), seen[:-1])), time.thread_time() - begin)


def logistic(count: int) -> Any:
    return scaled("linear_model", "LogisticRegression" if count == 2 else "SoftmaxRegression")()


def ignoring_count(make: Callable[[], Any]) -> Callable[[int], Any]:
    return lambda _: make()


FROM_COMPARISON = (
    US, "running mean", "river linear", "river KNN, exact", "river Hoeffding tree", "river ARF", "river AMF",
    "padasip RLS 0.99",
)  # as in docs/peers.md  # fmt: skip
NUMBERS = {name: learners.LEARNERS[name] for name in FROM_COMPARISON} | {
    "last value": Learner("last value", "omkl", N, last_value),
    RIDGE: Learner(RIDGE, "river", N, recursive_ridge),
    BOOSTING: Learner(BOOSTING, "lightgbm", N, boosting),
}
LABELS = {
    learner.name: learner
    for learner in (
        Learner(US, "omkl", L, graph_mkl, True, True),
        Learner("most frequent label", "omkl", L, frequencies),
        Learner(LAST_LABEL, "omkl", L, last_label),
        Learner(BOOSTING, "lightgbm", L, boosting),
        Learner("river logistic", "river", L, river_classifier(logistic)),
        Learner("river GaussianNB", "river", L, river_classifier(ignoring_count(plain("naive_bayes", "GaussianNB")))),
        Learner("river KNN, exact", "river", L, river_classifier(ignoring_count(exact_knn("KNNClassifier")))),
        Learner("river Hoeffding tree", "river", L,
                river_classifier(ignoring_count(scaled("tree", "HoeffdingAdaptiveTreeClassifier", seed=0)))),
        Learner("river ARF", "river", L, river_classifier(ignoring_count(scaled("forest", "ARFClassifier", seed=0)))),
        Learner("river AMF", "river", L, river_classifier(ignoring_count(scaled("forest", "AMFClassifier", seed=0)))),
    )
}  # fmt: skip
