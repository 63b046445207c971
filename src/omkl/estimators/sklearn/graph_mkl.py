"""GraphMKL behind the scikit-learn door."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from omkl.arrays import Matrix, Vector
from omkl.estimators import parameters
from omkl.estimators.graph_core import GraphLabelCore, GraphTargetCore
from omkl.estimators.sklearn.base import Classifying, OnGraph, Regressing
from omkl.features import column_names


@dataclass(kw_only=True, eq=False, repr=False)
class GraphMKLRegressor(OnGraph, Regressing, parameters.GraphMKL):
    """The learner to use: least squares and gradient experts on every kernel, weighed by their evidence.

    Raw units in, unknown horizon, nothing to tune; predictions come with calibrated intervals, and a
    change of the stream is noticed and followed.

    Parameters
    ----------
    kernels : str or list of Kernel, default="gaussian"
        The dictionary, on inputs standardised and divided by sqrt(d).
    n_features : int, default=50
        Random features per kernel.
    out_degree : int, default=3
        Kernels so near to a leading one that no explorer is sent there, itself among them.
    orders : tuple of int or None, default=(2, 2, None)
        How many inputs a random feature looks at, kernel after kernel and again from the start; None for all.
    singles : tuple of float, default=None
        Length scales of more Gaussian kernels, whose random features look at one input each; None for 0.15 and 0.8
        beside a named dictionary, and none of them beside a list of kernels.
    steps : tuple of float, default=(1.0, 0.25)
        Step lengths of the gradient experts on every kernel, beside its least squares.
    widths : tuple of float, default=(0.03, 0.1, 0.3)
        Length scales of the experts that average the last 1024 answers.
    ridge : float, default=3e-3
        Of the least squares.
    evaluate : {"quarter", "all"} or int, default="quarter"
        Experts evaluated for a row after the warm-up.
    warm_up : int, default=512
        Rows for which all experts are evaluated.
    discount, memory : float, default=None
        Share of the evidence forgotten, and of the noise estimate kept, with every row;
        0.1 and 0.97 for numbers, 0.01 and 0.98 for labels.
    adapt : bool, default=True
        Start a second set of experts when the error rises, and keep the better one.
    sure : float, default=None
        Least squares go on learning as if no more than 1 / sure rows like the next had been seen; 0.05 for
        numbers, 0.01 for labels; 0 for streams that never change.
    correct : bool, default=True
        Correct the mixture by a least squares on what its experts say beyond it (numbers only).
    random_state : int, RandomState or None, default=None
        Decides random features and draws.

    Examples
    --------
    >>> import numpy as np
    >>> from omkl import GraphMKLRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 100, (2000, 2))
    >>> y = 20 * np.sin(X[:, 0] / 15) + X[:, 1] + rng.normal(size=2000)
    >>> model = GraphMKLRegressor(random_state=0)
    >>> before = model.predict_then_learn(X, y)
    >>> bool(np.mean((before[1000:] - y[1000:]) ** 2) < 0.01 * np.var(y))
    True
    >>> low, high = model.predict_interval(X[:1], coverage=0.9)[0]
    >>> bool(low < y[0] < high)
    True
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = False
        return tags

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predictions; with `return_std` also half the width of the interval that holds 68 % of the targets."""
        core = self._core()
        assert isinstance(core, GraphTargetCore)
        if not return_std:
            return core.predict(self._rows(X))
        out = core.dist(self._rows(X))
        return out[:, 0], out[:, 1]

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Matrix:
        """(rows, 2): intervals that hold `coverage` of the targets, calibrated as the stream goes."""
        core = self._core()
        assert isinstance(core, GraphTargetCore)
        return core.interval(self._rows(X), coverage)

    def predict_interval_then_learn(self, X: Any, y: Any, coverage: float = 0.9) -> Matrix:
        """(rows, 3): prediction, lower and upper end of each row, before that row is learned."""
        first = not hasattr(self, "core_")
        X, y = self._validated(X, y, reset=first)
        if first:
            self.core_ = self._new_core()
        core = self._core()
        assert isinstance(core, GraphTargetCore)
        return core.run_interval(X, y, coverage)

    def _new_core(self) -> Any:
        return GraphTargetCore(self._settings(), self._seed(), column_names(self.n_features_in_))


@dataclass(kw_only=True, eq=False, repr=False)
class GraphMKLClassifier(OnGraph, Classifying, parameters.GraphMKL):
    """GraphMKL for labels; parameters as in `GraphMKLRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from omkl import GraphMKLClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 2))
    >>> y = np.where(np.hypot(*X.T) < 1.2, "inside", "outside")
    >>> model = GraphMKLClassifier(random_state=0)
    >>> before = model.predict_then_learn(X, y, classes=["inside", "outside"])
    >>> bool(np.mean(before[1000:] == y[1000:]) > 0.97)
    True
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = False
        return tags

    def decision_function(self, X: Any) -> Matrix | Vector:
        """Logarithms of the chances: their difference, (rows,), for two labels, else (rows, labels)."""
        log_p = np.log(np.maximum(self._scores(X), 1e-300))
        return log_p[:, 1] - log_p[:, 0] if len(self.classes_) == 2 else log_p

    def _new_core(self) -> Any:
        names = column_names(self.n_features_in_)
        return GraphLabelCore(self._settings(), self._seed(), names, self.classes_.tolist())

    def _core_scores(self, X: Matrix) -> Matrix:
        probabilities: Matrix = self.core_.chances(X)
        return probabilities

    def _sorted(self, scores: Matrix) -> Matrix:
        return np.maximum(super()._sorted(scores), 0.0)

    def _chances(self, scores: Matrix) -> Matrix:
        return scores
