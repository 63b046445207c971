"""The scikit-learn door.

`fit` makes one pass over the rows in their order; `partial_fit` goes on from there. Rows are
validated a call at a time, which costs scikit-learn's 50 to 100 microseconds: give chunks of
rows, not single ones, or use the river door or `Online` for a row at a time.
"""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from omkl import graph, persist
from omkl.arrays import Index, Mask, Matrix, Vector
from omkl.estimators import files, plots
from omkl.estimators.core import Core, LabelCore, Scale, TargetCore, make_seed, probabilities
from omkl.estimators.graph_core import GraphLabelCore, GraphTargetCore, graph_settings, kernel_weights
from omkl.features import Draw, column_names
from omkl.kernels import Kernel
from omkl.losses import LossName
from omkl.rounds.descent import Stabiliser
from omkl.rounds.sfg_mkl import Commit
from omkl.rounds.weights import normalised
from omkl.settings import Settings

Kernels = str | Sequence[Kernel]


class Door(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """What all estimators of this door share."""

    _loss: LossName
    scale: Scale
    random_state: Any
    n_features_in_: int

    @property
    def _learner(self) -> str:
        raise NotImplementedError

    def _settings(self) -> Settings:
        given = {f.name: getattr(self, f.name) for f in fields(Settings) if hasattr(self, f.name)}
        return Settings(**given, loss=self._loss)

    def _seed(self) -> int:
        if self.random_state is None or isinstance(self.random_state, (int, np.integer)):
            return make_seed(self.random_state if self.random_state is None else int(self.random_state))
        return int(check_random_state(self.random_state).randint(2**31))

    def _core(self) -> Core:
        check_is_fitted(self, "core_")
        core: Core = self.core_
        return core

    def _validated(self, X: Any, y: Any, reset: bool) -> tuple[Matrix, Any]:
        numeric = self._loss == "squared"
        X, y = validate_data(self, X, y, reset=reset, dtype=np.float64, order="C", y_numeric=numeric)
        return X, np.ascontiguousarray(y, dtype=np.float64) if numeric else y

    def _rows(self, X: Any) -> Matrix:
        X = validate_data(self, X, reset=False, dtype=np.float64, order="C")
        rows: Matrix = X
        return rows

    # What there is to look at

    @property
    def n_samples_seen_(self) -> int:
        """Rows learned."""
        return self._core().online.t

    @property
    def kernels_(self) -> list[Kernel]:
        """The dictionary."""
        return list(self._core().settings.kernels)

    @property
    def kernel_weights_(self) -> Vector:
        """w / sum(w): (N,), or (labels, N) where there are more than two."""
        return self._weights("log_w")

    def _weights(self, name: str) -> Vector:
        core = self._core()
        each = core.each if isinstance(core, LabelCore) else [core.online]
        rows = np.array([normalised(getattr(online.state, name)) for online in each])
        return rows if len(rows) > 1 else rows[0]

    def plot_weights(self, ax: Any = None) -> Any:
        """Draw the weight of every kernel over its length scale; returns the Axes (needs omkl[plot])."""
        return plots.weights(self.kernels_, np.atleast_2d(self.kernel_weights_).mean(axis=0), ax)


class Regressing(RegressorMixin, Door):  # type: ignore[misc]  # as above
    """A number as target."""

    _loss: LossName = "squared"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # one gradient step a row, one pass over few rows
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Start anew and learn the rows in their order."""
        X, y = self._validated(X, y, reset=True)
        self.core_ = self._new_core()
        self.core_.run(X, y)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the rows in their order, from where the learner stands."""
        self._learn(X, y, sample_weight)
        return self

    def predict_then_learn(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Vector:
        """The prediction of each row, made before that row is learned (one call for all rows)."""
        return self._learn(X, y, sample_weight)

    def predict(self, X: Any) -> Vector:
        """Predictions from the learner as it is."""
        core: Any = self._core()
        predictions: Vector = core.predict(self._rows(X))
        return predictions

    def _new_core(self) -> TargetCore:
        return TargetCore(self._learner, self._settings(), self._seed(), column_names(self.n_features_in_), self.scale)

    def _learn(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> Vector:
        first = not hasattr(self, "core_")
        if not first and len(X) == 0:
            return np.empty(0)
        X, y = self._validated(X, y, reset=first)
        weight = None if sample_weight is None else checked_weights(sample_weight, X)
        if first:
            self.core_ = self._new_core()
        predictions: Vector = self.core_.run(X, y, weight)
        return predictions


class Classifying(ClassifierMixin, Door):  # type: ignore[misc]  # as above
    """A label as target; more than two are learned one against the rest."""

    _loss: LossName = "logistic"
    classes_: NDArray[Any]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # one gradient step a row, one pass over few rows
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Start anew and learn the rows in their order."""
        X, y = self._validated(X, y, reset=True)
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        self.core_ = self._new_core()
        self.core_.run(X, y.tolist())
        return self

    def partial_fit(
        self, X: Any, y: Any, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn the rows in their order; the first call says which labels there are."""
        self._learn(X, y, classes, sample_weight)
        return self

    def predict_then_learn(
        self, X: Any, y: Any, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> NDArray[Any]:
        """The label predicted for each row before that row is learned (one call for all rows)."""
        return self._choose(self._learn(X, y, classes, sample_weight))

    def predict_proba_then_learn(
        self, X: Any, y: Any, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Matrix:
        """The chances of every label for each row, before that row is learned."""
        return self._chances(self._learn(X, y, classes, sample_weight))

    def decision_function(self, X: Any) -> Matrix | Vector:
        """Scores: (rows,) for two labels, else (rows, labels)."""
        scores = self._scores(X)
        if len(self.classes_) != 2:
            return scores
        return np.where(np.isfinite(scores[:, 1]), scores[:, 1], -scores[:, 0])

    def predict_proba(self, X: Any) -> Matrix:
        """Chances of every label, (rows, labels)."""
        return self._chances(self._scores(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest label of each row."""
        return self._choose(self._scores(X))

    def _new_core(self) -> LabelCore:
        names = column_names(self.n_features_in_)
        return LabelCore(self._learner, self._settings(), self._seed(), names, self.scale, closed=len(self.classes_))

    def _scores(self, X: Any) -> Matrix:
        core = self._core()
        assert isinstance(core, LabelCore)
        return self._sorted(core.scores(self._rows(X)))

    def _sorted(self, scores: Matrix) -> Matrix:
        """Columns in the order of `classes_`; a label that has not come yet has -inf."""
        place = np.searchsorted(self.classes_, np.array(self.core_.labels, dtype=self.classes_.dtype))
        out = np.full((len(scores), len(self.classes_)), -np.inf)
        out[:, place] = scores
        return out

    def _choose(self, scores: Matrix) -> NDArray[Any]:
        labels: NDArray[Any] = self.classes_[np.argmax(scores, axis=1)]
        return labels

    def _chances(self, scores: Matrix) -> Matrix:
        return probabilities(scores)

    def _learn(self, X: Any, y: Any, classes: ArrayLike | None, sample_weight: ArrayLike | None) -> Matrix:
        first = not hasattr(self, "core_")
        if not first and len(X) == 0:
            return np.empty((0, len(self.classes_)))
        X, y = self._validated(X, y, reset=first)
        check_classification_targets(y)
        weight = None if sample_weight is None else checked_weights(sample_weight, X)
        if first:
            if classes is None:
                raise ValueError("classes must be given in the first call: all the labels that may come")
            known = unique_labels(classes)
        else:
            known = self.classes_
            if classes is not None and not np.array_equal(unique_labels(classes), known):
                raise ValueError(f"classes must stay what they were in the first call, {known}, got {classes}")
        strange = np.setdiff1d(y, known)
        if len(strange):
            raise ValueError(f"y must hold labels out of {known}, got {strange}; name all of them in the first call")
        if first:
            self.classes_ = known
            self.core_ = self._new_core()
        return self._sorted(self.core_.run(X, y.tolist(), weight))


def checked_weights(sample_weight: ArrayLike, X: Matrix) -> Vector:
    weight: Vector = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    return np.ascontiguousarray(weight)


# What each algorithm lets you choose


class Raker(Door):
    """Parameters of Raker."""

    _learner = "raker"

    def __init__(
        self,
        *,
        kernels: Kernels = "paper",
        n_features: int = 50,
        ridge: float = 1e-3,
        learning_rate: float | None = None,
        horizon: int | None = None,
        stabiliser: Stabiliser = "aware",
        draw: Draw = "independent",
        scale: Scale = "online",
        random_state: Any = None,
    ) -> None:
        self.kernels = kernels
        self.n_features = n_features
        self.ridge = ridge
        self.learning_rate = learning_rate
        self.horizon = horizon
        self.stabiliser = stabiliser
        self.draw = draw
        self.scale = scale
        self.random_state = random_state


class RFOMKR(Door):
    """Parameters of RFOMKR."""

    _learner = "rfomkr"

    def __init__(
        self,
        *,
        kernels: Kernels = "paper",
        n_features: int = 50,
        learning_rate: float | None = None,
        horizon: int | None = None,
        draw: Draw = "independent",
        scale: Scale = "online",
        random_state: Any = None,
    ) -> None:
        self.kernels = kernels
        self.n_features = n_features
        self.learning_rate = learning_rate
        self.horizon = horizon
        self.draw = draw
        self.scale = scale
        self.random_state = random_state


class OMKR(Door):
    """Parameters of OMKR."""

    _learner = "omkr"

    def __init__(
        self,
        *,
        kernels: Kernels = "paper-omkr",
        learning_rate: float | None = None,
        horizon: int | None = None,
        budget: int | None = None,
        scale: Scale = "online",
        random_state: Any = None,
    ) -> None:
        self.kernels = kernels
        self.learning_rate = learning_rate
        self.horizon = horizon
        self.budget = budget
        self.scale = scale
        self.random_state = random_state


class OMKLGF(Door):
    """Parameters of OMKL-GF."""

    _learner = "omkl-gf"

    def __init__(
        self,
        *,
        kernels: Kernels = "paper",
        n_features: int = 50,
        draws: int = 10,
        freeze_after: int | None = None,
        weighted: bool = True,
        ridge: float = 1e-3,
        learning_rate: float | None = None,
        exploration: float | None = None,
        horizon: int | None = None,
        stabiliser: Stabiliser = "aware",
        draw: Draw = "independent",
        scale: Scale = "online",
        random_state: Any = None,
    ) -> None:
        self.kernels = kernels
        self.n_features = n_features
        self.draws = draws
        self.freeze_after = freeze_after
        self.weighted = weighted
        self.ridge = ridge
        self.learning_rate = learning_rate
        self.exploration = exploration
        self.horizon = horizon
        self.stabiliser = stabiliser
        self.draw = draw
        self.scale = scale
        self.random_state = random_state


class SFGMKL(Door):
    """Parameters of SFG-MKL and, with `refine`, SFG-MKL-R."""

    def __init__(
        self,
        *,
        kernels: Kernels = "paper",
        n_features: int = 50,
        out_degree: int = 5,
        delta_dimension: int | None = None,
        refine: bool = False,
        beta: float | None = None,
        ridge: float = 1e-3,
        learning_rate: float | None = None,
        exploration: float | None = None,
        horizon: int | None = None,
        commit: Commit = "never",
        commit_after: int = 300,
        stabiliser: Stabiliser = "aware",
        draw: Draw = "independent",
        scale: Scale = "online",
        random_state: Any = None,
    ) -> None:
        self.kernels = kernels
        self.n_features = n_features
        self.out_degree = out_degree
        self.delta_dimension = delta_dimension
        self.refine = refine
        self.beta = beta
        self.ridge = ridge
        self.learning_rate = learning_rate
        self.exploration = exploration
        self.horizon = horizon
        self.commit = commit
        self.commit_after = commit_after
        self.stabiliser = stabiliser
        self.draw = draw
        self.scale = scale
        self.random_state = random_state

    @property
    def _learner(self) -> str:
        return "sfg-mkl-r" if self.refine else "sfg-mkl"

    @property
    def graph_(self) -> Mask:
        """(N, N): entry (i, j) is true when drawing node i lets kernel j be heard."""
        A: Mask = self._core().online.problem.graph.A.copy()
        return A

    @property
    def refined_graph_(self) -> Mask:
        """The graph of the next round: that of `graph_` with the edges that refinement adds."""
        online = self._core().online
        return graph.refined(online.problem.graph.A, online.state.d) if self.refine else self.graph_

    @property
    def dominating_set_(self) -> Index:
        """Nodes that together hear every kernel; exploration goes to them."""
        return np.flatnonzero(self._core().online.problem.graph.cover)

    @property
    def node_weights_(self) -> Vector:
        """u / sum(u): (N,), or (labels, N) where there are more than two."""
        return self._weights("log_u")

    def plot_graph(self, ax: Any = None) -> Any:
        """Draw the feedback graph, nodes placed by length scale; returns the Axes (needs omkl[plot])."""
        return plots.graph(self.kernels_, self.graph_, self.dominating_set_, self.refined_graph_, ax)


class GraphMKL(Door):
    """Parameters of GraphMKL."""

    _learner = "graph-mkl"

    def __init__(
        self,
        *,
        kernels: Kernels = "gaussian",
        n_features: int = 50,
        out_degree: int = 3,
        orders: tuple[int | None, ...] = (2, 2, None),
        steps: tuple[float, ...] = (1.0, 0.25),
        widths: tuple[float, ...] = (0.03, 0.1, 0.3),
        ridge: float = 3e-3,
        evaluate: str | int = "quarter",
        warm_up: int = 512,
        discount: float | None = None,
        memory: float | None = None,
        adapt: bool = True,
        sure: float | None = None,
        correct: bool = True,
        random_state: Any = None,
    ) -> None:
        self.kernels = kernels
        self.n_features = n_features
        self.out_degree = out_degree
        self.orders = orders
        self.steps = steps
        self.widths = widths
        self.ridge = ridge
        self.evaluate = evaluate
        self.warm_up = warm_up
        self.discount = discount
        self.memory = memory
        self.adapt = adapt
        self.sure = sure
        self.correct = correct
        self.random_state = random_state

    def _settings(self) -> Any:
        return graph_settings(self, self._loss)

    @property
    def kernel_weights_(self) -> Vector:
        """Weight of every kernel in the mixture, (N,); what is left to 1 is with the experts of no kernel."""
        core = self._core()
        return kernel_weights(core)

    @property
    def graph_(self) -> Mask:
        """(N, N): entry (i, j) is true when kernel j is not explored while kernel i leads."""
        A: Mask = self._core().online.problem.graph.A.copy()
        return A

    @property
    def dominating_set_(self) -> Index:
        """Kernels whose neighbours are all kernels together."""
        return np.flatnonzero(self._core().online.problem.graph.cover)

    def plot_graph(self, ax: Any = None) -> Any:
        """Draw the graph, nodes placed by length scale; returns the Axes (needs omkl[plot])."""
        return plots.graph(self.kernels_, self.graph_, self.dominating_set_, self.graph_, ax)


class GraphMKLRegressor(GraphMKL, Regressing):
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
    steps : tuple of float, default=(1.0, 0.25)
        Step lengths of the gradient experts on every kernel, beside its least squares.
    widths : tuple of float, default=(0.03, 0.1, 0.3)
        Length scales of the experts that average the last 1024 answers.
    ridge : float, default=3e-3
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


class GraphMKLClassifier(GraphMKL, Classifying):
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

    def _scores(self, X: Any) -> Matrix:
        core = self._core()
        assert isinstance(core, GraphLabelCore)
        return self._sorted(core.chances(self._rows(X)))

    def _sorted(self, scores: Matrix) -> Matrix:
        return np.maximum(super()._sorted(scores), 0.0)

    def _chances(self, scores: Matrix) -> Matrix:
        return scores


class SFGMKLRegressor(Regressing, SFGMKL):
    """SFG-MKL for numbers: a similarity graph picks the few kernels evaluated for each row.

    Parameters
    ----------
    kernels : str or list of Kernel, default="paper"
        The dictionary: "paper" (41 Gaussians), "gaussian", "mixed", "families", or your own list.
    n_features : int, default=50
        Random features per kernel.
    out_degree : int, default=5
        Kernels heard when a node of the graph is drawn.
    delta_dimension : None or 1, default=None
        Dimension in which kernels are compared: that of the data, or 1.
    refine : bool, default=False
        SFG-MKL-R: add edges each round so that every kernel is heard often enough.
    beta : float, default=None
        For `refine`: None for the tenth-largest rule, or a constant of at most 1 / number of kernels.
    ridge : float, default=1e-3
        Weight of the squared norm of each kernel's coefficients.
    learning_rate, exploration : float, default=None
        c / sqrt(t) with c = 1 by default; with a `horizon`, 1 / sqrt(horizon) or the constant given.
    horizon : int, default=None
        Number of rows, where it is known beforehand.
    commit : {"never", "argmax", "first"}, default="never"
        Which node is held after `commit_after` rows.
    commit_after : int, default=300
    stabiliser : {"aware", "floor", "project", "none"}, default="aware"
        "aware" cannot overshoot; "none" is the paper's step and may diverge.
    draw : {"independent", "shared"}, default="independent"
        Random features of its own for every kernel, or one draw for all Gaussian ones, which is quicker.
    scale : {"online", "none"}, default="online"
        Standardise inputs and target as they come, or leave the data alone.
    random_state : int, RandomState or None, default=None

    Examples
    --------
    >>> import numpy as np
    >>> from omkl import SFGMKLRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 100, (3000, 2))
    >>> y = 20 * np.sin(X[:, 0] / 15) + X[:, 1]
    >>> model = SFGMKLRegressor(random_state=0)
    >>> before = model.predict_then_learn(X, y)
    >>> print(round(float(np.mean((before[2000:] - y[2000:]) ** 2) / np.var(y)), 3))
    0.032
    >>> model.kernel_weights_.shape, model.n_samples_seen_
    ((41,), 3000)
    """


class SFGMKLClassifier(Classifying, SFGMKL):
    """SFG-MKL for labels, with the logistic loss; parameters as in `SFGMKLRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from omkl import SFGMKLClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 2))
    >>> y = np.where(np.hypot(*X.T) < 1.2, "inside", "outside")
    >>> model = SFGMKLClassifier(random_state=0)
    >>> before = model.predict_then_learn(X, y, classes=["inside", "outside"])
    >>> print(round(float(np.mean(before[1000:] == y[1000:])), 3))
    0.891
    """


class RakerRegressor(Regressing, Raker):
    """Raker for numbers: every kernel is evaluated for every row; parameters as in `SFGMKLRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from omkl import RakerRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (1000, 3))
    >>> y = np.sin(3 * X[:, 0])
    >>> RakerRegressor(random_state=0).fit(X, y).score(X, y) > 0.7
    True
    """


class RakerClassifier(Classifying, Raker):
    """Raker for labels, with the logistic loss; parameters as in `SFGMKLRegressor`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from omkl import RakerClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> RakerClassifier(random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """


class OMKLGFRegressor(Regressing, OMKLGF):
    """OMKL-GF for numbers: kernels drawn by their weights; other parameters as in `SFGMKLRegressor`.

    Parameters
    ----------
    draws : int, default=10
        Draws with replacement per row; the different ones among them are evaluated.
    freeze_after : int, default=None
        Rows after which the drawn subset is kept.
    weighted : bool, default=True
        Divide a kernel's step by its chance of being drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from omkl import OMKLGFRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (1000, 3))
    >>> y = np.sin(3 * X[:, 0])
    >>> OMKLGFRegressor(random_state=0).fit(X, y).score(X, y) > 0.7
    True
    """


class OMKLGFClassifier(Classifying, OMKLGF):
    """OMKL-GF for labels, with the logistic loss; parameters as in `OMKLGFRegressor`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from omkl import OMKLGFClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> OMKLGFClassifier(random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """


class RFOMKRRegressor(Regressing, RFOMKR):
    """OMKR's step on random features; parameters as in `SFGMKLRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from omkl import RFOMKRRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (1000, 3))
    >>> y = np.sin(3 * X[:, 0])
    >>> RFOMKRRegressor(random_state=0).fit(X, y).score(X, y) > 0.7
    True
    """


class OMKRRegressor(Regressing, OMKR):
    """OMKR with exact kernels: its memory and time grow with every row.

    Parameters
    ----------
    kernels : str or list of Kernel, default="paper-omkr"
    budget : int, default=None
        Most rows kept as support points; a warning says when it is reached.
    learning_rate, horizon, scale, random_state
        As in `SFGMKLRegressor`; nothing here is random.

    Examples
    --------
    >>> import numpy as np
    >>> from omkl import OMKRRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (1000, 3))
    >>> y = np.sin(3 * X[:, 0])
    >>> OMKRRegressor().fit(X, y).score(X, y) > 0.7
    True
    """


# Model files

ESTIMATORS: tuple[type[Door], ...] = (
    GraphMKLRegressor, GraphMKLClassifier,
    SFGMKLRegressor, SFGMKLClassifier, RakerRegressor, RakerClassifier,
    OMKLGFRegressor, OMKLGFClassifier, OMKRRegressor, RFOMKRRegressor,
)  # fmt: skip


def encode(model: Any, compact: bool) -> tuple[Any, persist.Arrays]:
    arrays: persist.Arrays = {}
    core = getattr(model, "core_", None)
    body = {
        "class": type(model).__name__,
        "parameters": files.encode_parameters(
            model.get_params(deep=False), "random_state", None if core is None else core.seed
        ),
        "core": files.encode_core(core, arrays, compact),
        "fitted": {},
    }
    if core is not None:
        body["fitted"] = {"n_features_in_": model.n_features_in_}
        if hasattr(model, "feature_names_in_"):
            body["fitted"]["feature_names_in_"] = [persist.plain(name) for name in model.feature_names_in_]
        if hasattr(model, "classes_"):
            body["fitted"]["classes_"] = [persist.plain(label) for label in model.classes_]
            body["fitted"]["dtype"] = model.classes_.dtype.str
    return body, arrays


def decode(body: Any, arrays: persist.Arrays) -> Any:
    kind = {c.__name__: c for c in ESTIMATORS}[body["class"]]
    model: Any = kind(**files.decode_parameters(body["parameters"]))
    core = files.decode_core(body["core"], arrays)
    if core is None:
        return model
    fitted = dict(body["fitted"])
    labelled = isinstance(core, LabelCore | GraphLabelCore)
    persist.demand(labelled == issubclass(kind, Classifying), "core and class differ")
    persist.demand(fitted["n_features_in_"] == len(core.names), "features and problem differ in number")
    model.n_features_in_ = fitted["n_features_in_"]
    if "feature_names_in_" in fitted:
        names = np.array(fitted["feature_names_in_"], dtype=object)
        persist.demand(names.shape == (model.n_features_in_,), "features and names differ in number")
        model.feature_names_in_ = names
    if labelled:
        dtype = np.dtype(fitted["dtype"])
        persist.demand(dtype.kind in "biufUO" and dtype.itemsize <= 2**16, "labels of an unknown type")
        model.classes_ = np.array(fitted["classes_"], dtype=dtype)
        persist.demand(model.classes_.ndim == 1 and set(core.labels) <= set(model.classes_.tolist()), "labels differ")
    model.core_ = core
    return model


persist.register("sklearn", persist.Codec(ESTIMATORS, encode, decode))
