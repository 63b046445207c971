"""GraphMKL behind the river door."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from river import proba

from omkl.estimators import parameters
from omkl.estimators.core import Core, TargetCore, in_order, make_seed
from omkl.estimators.graph_core import GraphLabelCore, GraphTargetCore
from omkl.estimators.river.base import Classifying, Door, Regressing, Row


class Weighing(Door):
    """GraphMKL has cores of its own."""

    def _new(self, kind: type[Core], names: Sequence[Hashable]) -> Any:
        core = GraphTargetCore if kind is TargetCore else GraphLabelCore
        return core(self._settings(), make_seed(self.seed), in_order(set(names)) or [""])


@dataclass(kw_only=True, eq=False, repr=False)
class GraphMKLRegressor(Weighing, Regressing, parameters.GraphMKL):
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
    singles
        Length scales of more Gaussian kernels, whose random features look at one input each; None for 0.15 and 0.8
        beside a named dictionary, and none of them beside a list of kernels.
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
    MAE: 0.195798
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


@dataclass(kw_only=True, eq=False, repr=False)
class GraphMKLClassifier(Weighing, Classifying, parameters.GraphMKL):
    """GraphMKL for labels; parameters as in `GraphMKLRegressor`.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from omkl.river import GraphMKLClassifier
    >>> model = GraphMKLClassifier(seed=1)
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 90.87%
    """
