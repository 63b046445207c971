"""The learners of the comparison. Other libraries are imported when they run, and any of them may be missing."""

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from omkl_lab.comparison import boosting, streaming
from omkl_lab.comparison.boosting import EVERY, LAGS, LAST, MUCH_MORE, Refit, refitted
from omkl_lab.comparison.outcome import LEVELS, PREFIX, Outcome
from omkl_lab.comparison.streaming import plain, river
from omkl_lab.comparison.streams import RawStream, Task
from omkl_lab.peers.showing import US


class Learner(NamedTuple):
    """One row of the tables."""

    name: str
    package: str  # on PyPI
    tasks: tuple[Task, ...]
    run: Callable[[RawStream, int], Outcome]  # stream, seed
    seeds: int = 1  # several if the result depends on chance
    rows: int | None = None  # that a slow learner gets; None: all
    ordered: bool = False  # only for streams in order of time

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

    def takes(self, stream: RawStream) -> bool:
        return stream.task in self.tasks and (stream.ordered or not self.ordered)


def graph_mkl(settings: Mapping[str, Any]) -> Callable[[RawStream, int], Outcome]:
    """GraphMKL with these parameters, all rows in one call."""

    def run(stream: RawStream, seed: int) -> Outcome:
        omkl = import_module("omkl")
        X, y = stream.X, stream.y
        if stream.task == "labels":
            model = omkl.GraphMKLClassifier(random_state=seed, **settings)
            begin = time.process_time()
            p = model.predict_proba_then_learn(X, y, classes=np.arange(y.max() + 1))
            return Outcome(p, time.process_time() - begin, size=file_size(model))
        model = omkl.GraphMKLRegressor(random_state=seed, **settings)
        begin = time.process_time()
        first = model.predict_then_learn(X[:1], y[:1])
        rest = model.core_.learn_rows_intervals(X[1:], y[1:], LEVELS)
        seconds = time.process_time() - begin
        half_widths = np.vstack((np.ones(len(LEVELS)), (rest.upper - rest.lower) / 2))
        return Outcome(np.concatenate((first, rest.y_pred)), seconds, half_widths, file_size(model))

    return run


def file_size(model: Any) -> int:
    """Bytes of the model's file."""
    with tempfile.TemporaryDirectory() as folder:
        import_module("omkl").save(model, path := Path(folder) / "model")
        return path.stat().st_size


# Baselines


def running_mean(stream: RawStream, seed: int) -> Outcome:
    y, begin = stream.y, time.process_time()
    out = np.concatenate(([0.0], np.cumsum(y[:-1]) / np.arange(1, len(y))))
    return Outcome(out, time.process_time() - begin, size=16)


def last_value(stream: RawStream, seed: int) -> Outcome:
    begin = time.process_time()
    return Outcome(np.concatenate(([0.0], stream.y[:-1])), time.process_time() - begin, size=8)


def frequencies(stream: RawStream, seed: int) -> Outcome:
    begin = time.process_time()
    seen = np.eye(int(stream.y.max()) + 1)[stream.y.astype(int)]
    before = np.cumsum(seen, axis=0) - seen + 1 / seen.shape[1]
    return Outcome(before / before.sum(axis=1, keepdims=True), time.process_time() - begin, size=8 * seen.shape[1])


def last_label(stream: RawStream, seed: int) -> Outcome:
    begin = time.process_time()
    seen = np.eye(int(stream.y.max()) + 1)[stream.y.astype(int)]
    return Outcome(np.concatenate((np.zeros_like(seen[:1]), seen[:-1])), time.process_time() - begin, size=8)


def simpler(kind: str) -> Callable[[RawStream, int], Outcome]:
    """An algorithm of the paper with the library's defaults."""

    def run(stream: RawStream, seed: int) -> Outcome:
        labels = stream.task == "labels"
        make = getattr(import_module("omkl"), kind + ("Classifier" if labels else "Regressor"))
        model, begin = make(random_state=seed), time.process_time()
        if labels:
            out = model.predict_proba_then_learn(stream.X, stream.y, classes=np.arange(stream.y.max() + 1))
        else:
            out = model.predict_then_learn(stream.X, stream.y)
        return Outcome(out, time.process_time() - begin, size=file_size(model))

    return run


# All learners

N: tuple[Task, ...] = ("numbers",)
L: tuple[Task, ...] = ("labels",)
NL: tuple[Task, ...] = ("numbers", "labels")


def light(how: Refit) -> Callable[[RawStream, int], Outcome]:
    return refitted(boosting.lightgbm, boosting.lightgbm_size, how)


def histograms(stream: RawStream, seed: int) -> Outcome:
    return refitted(boosting.histogram_boosting, boosting.pickled_size, Refit(more=MUCH_MORE))(stream, seed)


HOEFFDING = "HoeffdingAdaptiveTreeRegressor"
LIGHTGBM = "LightGBM, all rows"
LAST_LABEL = "last label"  # predicts with probability 1, so its log-loss is not compared
SEEDS = 3  # of peers whose results depend on chance
LEARNERS = {
    learner.name: learner
    for learner in (
        Learner(US, "omkl", NL, graph_mkl({}), seeds=5),
        Learner("omkl SFG-MKL", "omkl", NL, simpler("SFGMKL"), seeds=SEEDS),
        Learner("omkl Raker", "omkl", NL, simpler("Raker"), seeds=SEEDS),
        Learner("running mean", "omkl", N, running_mean),
        Learner("last value", "omkl", N, last_value),
        Learner("most frequent label", "omkl", L, frequencies),
        Learner(LAST_LABEL, "omkl", L, last_label),
        Learner(LIGHTGBM, "lightgbm", NL, light(Refit()), seeds=SEEDS),
        Learner(f"LightGBM, last {LAST}", "lightgbm", NL, light(Refit(LAST, EVERY))),
        Learner(f"{LIGHTGBM} + y", "lightgbm", N, light(Refit(lags=LAGS)), ordered=True),
        Learner("HistGradientBoosting, 20 %", "scikit-learn", NL, histograms, rows=PREFIX),
        Learner("recursive ridge", "river", N, streaming.recursive_ridge),
        Learner("river linear", "river", NL, river(streaming.linear, scale_target=True)),
        Learner("river GaussianNB", "river", L, river(plain("naive_bayes", "GaussianNB"))),
        Learner("river KNN, exact", "river", NL, river(streaming.exact_knn)),
        Learner(
            "river Hoeffding tree", "river", NL, river(plain("tree", "HoeffdingAdaptiveTreeRegressor", True)), SEEDS
        ),
        Learner("river AMRules", "river", N, river(plain("rules", "AMRules"))),
        Learner("river ARF", "river", NL, river(plain("forest", "ARFRegressor", True)), SEEDS, PREFIX),
        Learner("river AMF", "river", NL, river(plain("forest", "AMFRegressor", True)), SEEDS, PREFIX),
        Learner("river RBF + linear, step 5e-4", "river", N, river(streaming.river_rbf, True), SEEDS, PREFIX),
        Learner("river EWA of 5 RBF", "river", N, river(streaming.river_ewa, True), SEEDS, PREFIX),
        Learner("scikit-learn RBF + SGD, step 0.5", "scikit-learn", N, streaming.sklearn_rbf, SEEDS, PREFIX),
        Learner("VW", "vowpalwabbit", N, streaming.vowpal("")),
        Learner("VW, quadratic", "vowpalwabbit", N, streaming.vowpal("-q ff")),
        Learner("padasip NLMS 0.5", "padasip", N, streaming.padasip("FilterNLMS", mu=0.5)),
        Learner("padasip RLS 0.99", "padasip", N, streaming.padasip("FilterRLS", mu=0.99)),
        Learner("CapyMOA KNN", "capymoa", N, streaming.capymoa("KNNRegressor"), rows=PREFIX),
        Learner("CapyMOA ARF", "capymoa", NL, streaming.capymoa("AdaptiveRandomForestRegressor"), SEEDS, PREFIX),
        Learner("CapyMOA SGBR", "capymoa", N, streaming.capymoa("StreamingGradientBoostedRegression"), SEEDS, PREFIX),
        Learner("CapyMOA SOKNL", "capymoa", N, streaming.capymoa("SOKNL"), SEEDS, PREFIX),
    )
}
