"""The river door: dictionaries of features in, one row at a time or a frame of them.

Features may appear, vanish or be shuffled; a feature that is missing counts as its mean so far.
A label that comes late is learned by key: `predict_one(x, key=k)`, and when it is there
`learn_key(k, y)`.
"""

import math
import warnings
from collections.abc import Hashable, Sequence
from dataclasses import fields
from typing import Any

import narwhals as nw
import numpy as np
from river import base, proba

from omkl import persist
from omkl.arrays import Matrix, Vector
from omkl.estimators import files
from omkl.estimators.core import Core, LabelCore, Scale, TargetCore, in_order, make_seed
from omkl.estimators.graph_core import GraphLabelCore, GraphTargetCore, graph_settings
from omkl.features import Draw
from omkl.kernels import Kernel
from omkl.losses import LossName
from omkl.rounds.descent import Stabiliser
from omkl.rounds.sfg_mkl import Commit
from omkl.settings import Settings, is_whole, require

Kernels = str | Sequence[Kernel]
Row = dict[Hashable, Any]


class Door:
    """What all estimators of this door share."""

    _loss: LossName
    _learner: str
    scale: Scale
    seed: int | None
    max_waiting: int

    def _start(self) -> None:
        """The rest of every __init__."""
        require(is_whole(self.max_waiting) and self.max_waiting >= 1, "max_waiting", "a whole number of at least 1",
                self.max_waiting)  # fmt: skip
        self._settings()
        self._core: Any = None
        self._waiting: dict[Hashable, Row] = {}

    def _settings(self) -> Settings:
        given = {f.name: getattr(self, f.name) for f in fields(Settings) if hasattr(self, f.name)}
        return Settings(**given, loss=self._loss)

    def _new(self, kind: type[Core], names: Sequence[Hashable]) -> Any:
        # without any feature there is still a constant to learn
        return kind(self._learner, self._settings(), make_seed(self.seed), in_order(set(names)) or [""], self.scale)

    # Labels that come late

    def _keep_waiting(self, key: Hashable, x: Row) -> None:
        if key not in self._waiting and len(self._waiting) >= self.max_waiting:
            oldest = next(iter(self._waiting))
            del self._waiting[oldest]
            warnings.warn(
                f"{self.max_waiting} rows wait for their label, as many as max_waiting allows; "
                f"the oldest, {oldest!r}, is given up",
                stacklevel=3,
            )
        self._waiting[key] = dict(x)

    def learn_key(self, key: Hashable, y: Any) -> None:
        """Learn the row that `predict_one` was asked about under this key, now that its label is known."""
        if key not in self._waiting:
            raise KeyError(
                f"no row waits under the key {key!r}: it was never predicted with key=, is learned already, "
                f"or was given up because more than max_waiting={self.max_waiting} rows waited"
            )
        self.learn_one(self._waiting[key], y)
        del self._waiting[key]

    def learn_one(self, x: Row, y: Any, w: float = 1.0) -> None:
        raise NotImplementedError

    # Frames

    def _matrix(self, frame: nw.DataFrame[Any]) -> Matrix:
        """The frame's columns in the order of the core's names; NaN, or 0 without scaling, where one is missing."""
        names = self._core.names
        X = np.full((len(frame), len(names)), self._core.missing)
        for k, name in enumerate(names):
            if name in frame.columns:
                try:
                    X[:, k] = column = frame[name].to_numpy().astype(np.float64)
                except (TypeError, ValueError):
                    raise ValueError(
                        f"column {name!r} must be numeric, got {frame[name].dtype}; encode it first"
                    ) from None
                if not np.isfinite(column).all():
                    row = int(np.argmin(np.isfinite(column)))
                    raise ValueError(
                        f"column {name!r} must be finite, got {column[row]} in row {row}; impute or drop it "
                        "(no row of this frame was learned)"
                    )
        return X


def as_frame(X: Any) -> nw.DataFrame[Any]:
    return nw.from_native(X, eager_only=True)


def as_series(name: str, values: Any, like: nw.DataFrame[Any]) -> Any:
    """A series of the kind that `like` is made of, with its index where it has one."""
    series = nw.new_series(name, values, backend=nw.get_native_namespace(like))
    index = nw.maybe_get_index(like)
    return (series if index is None else nw.maybe_set_index(series, index=index)).to_native()


def checked_weight(w: float) -> float:
    if not 0 <= w < math.inf:
        raise ValueError(f"w must be a finite number of at least 0, got {w!r}")
    return w


class Regressing(Door, base.MiniBatchRegressor):
    """A number as target."""

    _loss: LossName = "squared"

    def predict_one(self, x: Row, key: Hashable = None) -> float:
        """The prediction for x; with a key the row is kept until `learn_key`."""
        if key is not None:
            self._keep_waiting(key, x)
        core: TargetCore | None = self._core
        return 0.0 if core is None else core.predict_row(x)

    def learn_one(self, x: Row, y: float, w: float = 1.0) -> None:
        y = checked_target(y)
        if self._core is None:
            self._core = self._new(TargetCore, list(x))
        self._core.learn_row(x, y, checked_weight(w))

    def predict_many(self, X: Any) -> Any:
        frame = as_frame(X)
        f = np.zeros(len(frame)) if self._core is None else self._core.predict(self._matrix(frame))
        return as_series("prediction", f, frame)

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn the rows of a frame in their order: the same as `learn_one` on each of them."""
        self._run(as_frame(X), y)

    def predict_then_learn(self, X: Any, y: Any) -> Vector:
        """The prediction of each row of a frame, made before that row is learned."""
        return self._run(as_frame(X), y)

    def _run(self, frame: nw.DataFrame[Any], y: Any) -> Vector:
        targets = np.ascontiguousarray(np.asarray(y), dtype=np.float64)
        require(targets.shape == (len(frame),), "y", f"one number for each of the {len(frame)} rows", targets.shape)
        if not np.isfinite(targets).all():
            row = int(np.argmin(np.isfinite(targets)))
            raise ValueError(f"y must be finite, got {targets[row]} in row {row} (no row was learned)")
        if self._core is None:
            core = self._core = self._new(TargetCore, frame.columns)
        else:
            core = self._core
            core.meet(frame.columns)
        predictions: Vector = core.run(self._matrix(frame), targets)
        return predictions


def checked_target(y: Any) -> float:
    try:
        number = float(y)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"y must be a finite number, got {y!r}; drop the row")
    return number


class Classifying(Door, base.MiniBatchClassifier):
    """A label as target; new labels may come at any time."""

    _loss: LossName = "logistic"

    @property
    def _multiclass(self) -> bool:
        return True

    def predict_proba_one(self, x: Row, key: Hashable = None, **kwargs: Any) -> dict[Any, float]:
        """Chances of all labels seen so far; with a key the row is kept until `learn_key`."""
        if key is not None:
            self._keep_waiting(key, x)
        core = self._core
        return {} if core is None else dict(zip(core.labels, core.chances_row(x), strict=True))

    def predict_one(self, x: Row, key: Hashable = None, **kwargs: Any) -> Any:
        """The likeliest label, None before there is any; with a key the row is kept until `learn_key`."""
        if key is not None:
            self._keep_waiting(key, x)
        core = self._core
        if core is None or not core.labels:
            return None
        p = core.chances_row(x)
        return core.labels[max(range(len(p)), key=p.__getitem__)]

    def learn_one(self, x: Row, y: Any, w: float = 1.0) -> None:
        if self._core is None:
            self._core = self._new(LabelCore, list(x))
        self._core.learn_row(x, y.item() if isinstance(y, np.generic) else y, checked_weight(w))

    def predict_proba_many(self, X: Any) -> Any:
        frame = as_frame(X)
        core = self._core
        p = np.empty((len(frame), 0)) if core is None else core.chances(self._matrix(frame))
        labels = [] if core is None else core.labels
        columns = {label: as_series(str(label), p[:, k], frame) for k, label in enumerate(labels)}
        native = nw.get_native_namespace(frame)
        return native.DataFrame(columns) if columns else native.DataFrame()

    def predict_many(self, X: Any) -> Any:
        frame = as_frame(X)
        core = self._core
        if core is None or not core.labels:
            return as_series("prediction", [None] * len(frame), frame)
        best = np.argmax(core.chances(self._matrix(frame)), axis=1)
        return as_series("prediction", [core.labels[k] for k in best], frame)

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn the rows of a frame in their order: the same as `learn_one` on each of them."""
        self._run(as_frame(X), y)

    def predict_then_learn(self, X: Any, y: Any) -> list[Any]:
        """The label predicted for each row of a frame before that row is learned, None before there is any."""
        chances = self._run(as_frame(X), y)
        return [self._core.labels[int(np.argmax(p))] if p.any() else None for p in chances]

    def _run(self, frame: nw.DataFrame[Any], y: Any) -> Matrix:
        labels = y.tolist() if hasattr(y, "tolist") else list(y)
        require(len(labels) == len(frame), "y", f"one label for each of the {len(frame)} rows", len(labels))
        if self._core is None:
            core = self._core = self._new(LabelCore, frame.columns)
        else:
            core = self._core
            core.meet(frame.columns)
        chances: Matrix = core.run_chances(self._matrix(frame), labels)
        return chances


# What each algorithm lets you choose


class Raker(Door):
    """Parameters of Raker."""

    _learner = "raker"

    def __init__(
        self,
        kernels: Kernels = "paper",
        n_features: int = 50,
        ridge: float = 1e-3,
        learning_rate: float | None = None,
        horizon: int | None = None,
        stabiliser: Stabiliser = "aware",
        draw: Draw = "independent",
        scale: Scale = "online",
        max_waiting: int = 1000,
        seed: int | None = None,
    ) -> None:
        self.kernels = kernels
        self.n_features = n_features
        self.ridge = ridge
        self.learning_rate = learning_rate
        self.horizon = horizon
        self.stabiliser = stabiliser
        self.draw = draw
        self.scale = scale
        self.max_waiting = max_waiting
        self.seed = seed
        self._start()


class RFOMKR(Door):
    """Parameters of RFOMKR."""

    _learner = "rfomkr"

    def __init__(
        self,
        kernels: Kernels = "paper",
        n_features: int = 50,
        learning_rate: float | None = None,
        horizon: int | None = None,
        draw: Draw = "independent",
        scale: Scale = "online",
        max_waiting: int = 1000,
        seed: int | None = None,
    ) -> None:
        self.kernels = kernels
        self.n_features = n_features
        self.learning_rate = learning_rate
        self.horizon = horizon
        self.draw = draw
        self.scale = scale
        self.max_waiting = max_waiting
        self.seed = seed
        self._start()


class OMKR(Door):
    """Parameters of OMKR."""

    _learner = "omkr"

    def __init__(
        self,
        kernels: Kernels = "paper-omkr",
        learning_rate: float | None = None,
        horizon: int | None = None,
        budget: int | None = None,
        scale: Scale = "online",
        max_waiting: int = 1000,
        seed: int | None = None,
    ) -> None:
        self.kernels = kernels
        self.learning_rate = learning_rate
        self.horizon = horizon
        self.budget = budget
        self.scale = scale
        self.max_waiting = max_waiting
        self.seed = seed
        self._start()


class OMKLGF(Door):
    """Parameters of OMKL-GF."""

    _learner = "omkl-gf"

    def __init__(
        self,
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
        max_waiting: int = 1000,
        seed: int | None = None,
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
        self.max_waiting = max_waiting
        self.seed = seed
        self._start()


class SFGMKL(Door):
    """Parameters of SFG-MKL and, with `refine`, SFG-MKL-R."""

    def __init__(
        self,
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
        max_waiting: int = 1000,
        seed: int | None = None,
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
        self.max_waiting = max_waiting
        self.seed = seed
        self._start()

    @property
    def _learner(self) -> str:  # type: ignore[override]  # a name elsewhere, here it depends on `refine`
        return "sfg-mkl-r" if self.refine else "sfg-mkl"


class GraphMKL(Door):
    """Parameters of GraphMKL."""

    _learner = "graph-mkl"

    def __init__(
        self,
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
        max_waiting: int = 1000,
        seed: int | None = None,
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
        self.max_waiting = max_waiting
        self.seed = seed
        self._start()

    def _settings(self) -> Any:
        return graph_settings(self, self._loss)

    def _new(self, kind: type[Core], names: Sequence[Hashable]) -> Any:
        core = GraphTargetCore if kind is TargetCore else GraphLabelCore
        return core(self._settings(), make_seed(self.seed), in_order(set(names)) or [""])


class GraphMKLRegressor(GraphMKL, Regressing):
    """The learner to use: least squares and gradient experts on every kernel, weighed by their evidence.

    Raw units in, unknown horizon, nothing to tune; a change of the stream is noticed and followed.

    Parameters
    ----------
    kernels
        The dictionary, on inputs standardised and divided by sqrt(d).
    n_features
        Random features per kernel.
    out_degree
        Kernels so near to a leading one that no explorer is sent there, itself among them.
    orders
        How many inputs a random feature looks at, kernel after kernel and again from the start; None for all.
    steps
        Step lengths of the gradient experts on every kernel, beside its least squares.
    widths
        Length scales of the experts that average the last 1024 answers.
    ridge
        Of the least squares.
    evaluate
        Experts evaluated for a row after the warm-up: "quarter" of them, "all", or a number.
    warm_up
        Rows for which all experts are evaluated.
    discount, memory
        Share of the evidence forgotten, and of the noise estimate kept, with every row;
        0.1 and 0.97 for numbers, 0.01 and 0.98 for labels.
    adapt
        Start a second set of experts when the error rises, and keep the better one.
    sure
        Least squares go on learning as if no more than 1 / sure rows like the next had been seen; 0.05 for
        numbers, 0.01 for labels; 0 for streams that never change.
    correct
        Correct the mixture by a least squares on what its experts say beyond it (numbers only).
    max_waiting
        Most rows kept for labels that come late.
    seed
        Decides random features and draws.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from omkl.river import GraphMKLRegressor
    >>> model = GraphMKLRegressor(seed=1)
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    MAE: 0.193481
    >>> x, _ = next(iter(datasets.TrumpApproval()))
    >>> type(model.predict_one(x, with_dist=True)).__name__
    'Gaussian'
    """

    def predict_one(self, x: Row, key: Hashable = None, with_dist: bool = False) -> Any:
        """The prediction for x; `with_dist` as a Gaussian whose deviation holds 68 % to either side."""
        if not with_dist:
            return super().predict_one(x, key)
        if key is not None:
            self._keep_waiting(key, x)
        core: GraphTargetCore | None = self._core
        mean, deviation = (0.0, 0.0) if core is None else core.dist_row(x)
        return proba.Gaussian._from_state(2, mean, deviation**2, 0)  # type: ignore[no-untyped-call]  # river's


class GraphMKLClassifier(GraphMKL, Classifying):
    """GraphMKL for labels; parameters as in `GraphMKLRegressor`.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from omkl.river import GraphMKLClassifier
    >>> model = GraphMKLClassifier(seed=1)
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 90.31%
    """


class SFGMKLRegressor(Regressing, SFGMKL):
    """SFG-MKL for numbers: a similarity graph picks the few kernels evaluated for each row.

    Parameters
    ----------
    kernels
        The dictionary: "paper" (41 Gaussians), "gaussian", "mixed", "families", or your own list.
    n_features
        Random features per kernel.
    out_degree
        Kernels heard when a node of the graph is drawn.
    delta_dimension
        Dimension in which kernels are compared: None for that of the data, or 1.
    refine
        SFG-MKL-R: add edges each round so that every kernel is heard often enough.
    beta
        For `refine`: None for the tenth-largest rule, or a constant of at most 1 / number of kernels.
    ridge
        Weight of the squared norm of each kernel's coefficients.
    learning_rate, exploration
        c / sqrt(t) with c = 1 by default; with a `horizon`, 1 / sqrt(horizon) or the constant given.
    horizon
        Number of rows, where it is known beforehand.
    commit, commit_after
        Which node is held after so many rows: "never", "argmax" or "first".
    stabiliser
        "aware" cannot overshoot; "none" is the paper's step and may diverge.
    draw
        "independent" random features for every kernel, or one draw "shared" by all Gaussian ones, which is quicker.
    scale
        "online" standardises inputs and target as they come, "none" leaves the data alone.
    max_waiting
        Most rows kept for labels that come late.
    seed
        Decides random features and draws.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from omkl.river import SFGMKLRegressor
    >>> model = SFGMKLRegressor(seed=1)
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    MAE: 0.525502
    """


class SFGMKLClassifier(Classifying, SFGMKL):
    """SFG-MKL for labels, with the logistic loss; parameters as in `SFGMKLRegressor`.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from omkl.river import SFGMKLClassifier
    >>> model = SFGMKLClassifier(seed=1)
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 77.58%
    """


class RakerRegressor(Regressing, Raker):
    """Raker for numbers: every kernel is evaluated for every row; parameters as in `SFGMKLRegressor`.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from omkl.river import RakerRegressor
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), RakerRegressor(seed=1), metrics.MAE())
    MAE: 0.395125
    """


class RakerClassifier(Classifying, Raker):
    """Raker for labels, with the logistic loss; parameters as in `SFGMKLRegressor`.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from omkl.river import RakerClassifier
    >>> evaluate.progressive_val_score(datasets.Phishing(), RakerClassifier(seed=1), metrics.Accuracy())
    Accuracy: 87.83%
    """


class OMKLGFRegressor(Regressing, OMKLGF):
    """OMKL-GF for numbers: kernels drawn by their weights; other parameters as in `SFGMKLRegressor`.

    Parameters
    ----------
    draws
        Draws with replacement per row; the different ones among them are evaluated.
    freeze_after
        Rows after which the drawn subset is kept.
    weighted
        Divide a kernel's step by its chance of being drawn.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from omkl.river import OMKLGFRegressor
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), OMKLGFRegressor(seed=1), metrics.MAE())
    MAE: 0.404891
    """


class OMKLGFClassifier(Classifying, OMKLGF):
    """OMKL-GF for labels, with the logistic loss; parameters as in `OMKLGFRegressor`.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from omkl.river import OMKLGFClassifier
    >>> evaluate.progressive_val_score(datasets.Phishing(), OMKLGFClassifier(seed=1), metrics.Accuracy())
    Accuracy: 85.91%
    """


class RFOMKRRegressor(Regressing, RFOMKR):
    """OMKR's step on random features; parameters as in `SFGMKLRegressor`.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from omkl.river import RFOMKRRegressor
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), RFOMKRRegressor(seed=1), metrics.MAE())
    MAE: 0.45077
    """


class OMKRRegressor(Regressing, OMKR):
    """OMKR with exact kernels: its memory and time grow with every row, up to `budget`.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from omkl.river import OMKRRegressor
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), OMKRRegressor(), metrics.MAE())
    MAE: 0.454575
    """


# Model files

ESTIMATORS: tuple[type[Door], ...] = (
    GraphMKLRegressor, GraphMKLClassifier,
    SFGMKLRegressor, SFGMKLClassifier, RakerRegressor, RakerClassifier,
    OMKLGFRegressor, OMKLGFClassifier, OMKRRegressor, RFOMKRRegressor,
)  # fmt: skip


def _encode(model: Any, compact: bool) -> tuple[Any, persist.Arrays]:
    arrays: persist.Arrays = {}
    body = {
        "class": type(model).__name__,
        "parameters": files.encode_parameters(model._get_params(), "seed", None),
        "core": files.encode_core(model._core, arrays, compact),
        "waiting": [
            [persist.plain(key), [[persist.plain(name), persist.plain(value)] for name, value in row.items()]]
            for key, row in model._waiting.items()
        ],
    }
    return body, arrays


def _decode(body: Any, arrays: persist.Arrays) -> Any:
    kind = {c.__name__: c for c in ESTIMATORS}[body["class"]]
    model = kind(**files.decode_parameters(body["parameters"]))
    model._core = files.decode_core(body["core"], arrays)
    if model._core is not None:
        persist.demand(
            isinstance(model._core, LabelCore | GraphLabelCore) == issubclass(kind, Classifying),
            "core and class differ",
        )
    model._waiting = {key: dict(row) for key, row in body["waiting"]}
    persist.demand(len(model._waiting) <= model.max_waiting, "more rows wait than may")
    return model


persist.register("river", persist.Codec(ESTIMATORS, _encode, _decode))
