"""The paper's learners behind the scikit-learn door."""

from dataclasses import dataclass

from omkl import graph
from omkl.arrays import Mask, Vector
from omkl.estimators import parameters
from omkl.estimators.sklearn.base import Classifying, OnGraph, Regressing


class Choosing(OnGraph):
    """The graph of SFG-MKL decides who is heard: its nodes have weights, and refinement may add edges."""

    @property
    def refined_graph_(self) -> Mask:
        """The graph of the next round: that of `graph_` with the edges that refinement adds."""
        online = self._core().online
        return graph.refined(online.problem.graph.A, online.state.d) if self.refine else self.graph_

    @property
    def node_weights_(self) -> Vector:
        """u / sum(u): (N,), or (labels, N) where there are more than two."""
        return self._weights("log_u")

    def _next_graph(self) -> Mask:
        return self.refined_graph_


@dataclass(kw_only=True, eq=False, repr=False)
class SFGMKLRegressor(Regressing, Choosing, parameters.SFGMKL):
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
        Rows before a node is held.
    stabiliser : {"aware", "floor", "project", "none"}, default="aware"
        "aware" cannot overshoot; "none" is the paper's step and may diverge.
    draw : {"independent", "shared"}, default="independent"
        Random features of its own for every kernel, or one draw for all Gaussian ones, which is quicker.
    scale : {"online", "none"}, default="online"
        Standardise inputs and target as they come, or leave the data alone.
    random_state : int, RandomState or None, default=None
        Decides random features and draws.

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


@dataclass(kw_only=True, eq=False, repr=False)
class SFGMKLClassifier(Classifying, Choosing, parameters.SFGMKL):
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


@dataclass(kw_only=True, eq=False, repr=False)
class RakerRegressor(Regressing, parameters.Raker):
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


@dataclass(kw_only=True, eq=False, repr=False)
class RakerClassifier(Classifying, parameters.Raker):
    """Raker for labels, with the logistic loss; parameters as in `SFGMKLRegressor`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from omkl import RakerClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> RakerClassifier(random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """


@dataclass(kw_only=True, eq=False, repr=False)
class OMKLGFRegressor(Regressing, parameters.OMKLGF):
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


@dataclass(kw_only=True, eq=False, repr=False)
class OMKLGFClassifier(Classifying, parameters.OMKLGF):
    """OMKL-GF for labels, with the logistic loss; parameters as in `OMKLGFRegressor`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from omkl import OMKLGFClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> OMKLGFClassifier(random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """


@dataclass(kw_only=True, eq=False, repr=False)
class RFOMKRRegressor(Regressing, parameters.RFOMKR):
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


@dataclass(kw_only=True, eq=False, repr=False)
class OMKRRegressor(Regressing, parameters.OMKR):
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
