"""Who runs: GraphMKL with its defaults, and peers that a user would try first, with theirs."""

import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from omkl.arrays import Matrix, Vector
from omkl_lab.peers import learners
from omkl_lab.peers.courses import Task
from omkl_lab.peers.learners import L, Learner, N, exact_knn, plain, scaled
from omkl_lab.peers.page import US
from omkl_lab.peers.walk import Walk, step_by_step

Run = Callable[[Matrix, Vector, int, Task], Walk]
RIDGE = "recursive ridge"
LAST_LABEL = "last label"


# Numbers


def last_value(X: Matrix, y: Vector, seed: int, task: Task) -> Walk:
    begin = time.thread_time()
    return Walk(np.concatenate(([0.0], y[:-1])), time.thread_time() - begin)


def recursive_ridge(X: Matrix, y: Vector, seed: int, task: Task) -> Walk:
    """Least squares with a ridge of 1, row by row, on inputs behind river's StandardScaler and a constant."""
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

    return step_by_step([dict(enumerate(x)) for x in X.tolist()], y, predict, learn)


# Labels: a column of chances for each label


def labels(make: Callable[[int], Any]) -> Run:
    """A classifier of river, made for a number of labels."""

    def run(X: Matrix, y: Vector, seed: int, task: Task) -> Walk:
        count = int(y.max()) + 1
        rows, told = [dict(enumerate(x)) for x in X.tolist()], y.astype(int).tolist()
        model, out = make(count), np.zeros((len(y), count))
        if count == 2:
            told = [bool(label) for label in told]
        begin = time.thread_time()
        for chances, row, label in zip(out, rows, told, strict=True):
            for k, chance in model.predict_proba_one(row).items():
                chances[int(k)] = chance
            model.learn_one(row, label)
        return Walk(out, time.thread_time() - begin)

    return run


def ours(X: Matrix, y: Vector, seed: int, task: Task) -> Walk:
    model = import_module("omkl").GraphMKLClassifier(random_state=seed)
    begin = time.thread_time()
    out = model.predict_proba_then_learn(X, y, classes=np.arange(y.max() + 1))
    return Walk(out, time.thread_time() - begin)


def frequencies(X: Matrix, y: Vector, seed: int, task: Task) -> Walk:
    begin = time.thread_time()
    seen = np.eye(int(y.max()) + 1)[y.astype(int)]
    before = np.cumsum(seen, axis=0) - seen + 1 / seen.shape[1]
    return Walk(before / before.sum(axis=1, keepdims=True), time.thread_time() - begin)


def last_label(X: Matrix, y: Vector, seed: int, task: Task) -> Walk:
    begin = time.thread_time()
    seen = np.eye(int(y.max()) + 1)[y.astype(int)]
    return Walk(np.concatenate((np.zeros_like(seen[:1]), seen[:-1])), time.thread_time() - begin)


def logistic(count: int) -> Any:
    return scaled("linear_model", "LogisticRegression" if count == 2 else "SoftmaxRegression")()


def anyhow(make: Callable[[], Any]) -> Callable[[int], Any]:
    return lambda _: make()


TAKEN = (US, "running mean", "river linear", "river KNN, exact", "river Hoeffding tree", "river ARF", "river AMF",
         "padasip RLS 0.99")  # as docs/peers.md has them  # fmt: skip
NUMBERS = {name: learners.LEARNERS[name] for name in TAKEN} | {
    "last value": Learner("last value", "omkl", N, last_value),
    RIDGE: Learner(RIDGE, "river", N, recursive_ridge),
}
LABELS = {
    learner.name: learner
    for learner in (
        Learner(US, "omkl", L, ours, True, True),
        Learner("most frequent label", "omkl", L, frequencies),
        Learner(LAST_LABEL, "omkl", L, last_label),
        Learner("river logistic", "river", L, labels(logistic)),
        Learner("river GaussianNB", "river", L, labels(anyhow(plain("naive_bayes", "GaussianNB")))),
        Learner("river KNN, exact", "river", L, labels(anyhow(exact_knn("KNNClassifier")))),
        Learner("river Hoeffding tree", "river", L,
                labels(anyhow(scaled("tree", "HoeffdingAdaptiveTreeClassifier", seed=0)))),
        Learner("river ARF", "river", L, labels(anyhow(scaled("forest", "ARFClassifier", seed=0)))),
        Learner("river AMF", "river", L, labels(anyhow(scaled("forest", "AMFClassifier", seed=0)))),
    )
}  # fmt: skip
