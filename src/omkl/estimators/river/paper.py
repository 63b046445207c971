"""The paper's learners behind the river door."""

from dataclasses import dataclass

from omkl.estimators import parameters
from omkl.estimators.river.base import Classifying, Regressing


@dataclass(kw_only=True, eq=False, repr=False)
class SFGMKLRegressor(Regressing, parameters.SFGMKL):
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


@dataclass(kw_only=True, eq=False, repr=False)
class SFGMKLClassifier(Classifying, parameters.SFGMKL):
    """SFG-MKL for labels, with the logistic loss; parameters as in `SFGMKLRegressor`.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from omkl.river import SFGMKLClassifier
    >>> model = SFGMKLClassifier(seed=1)
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 77.58%
    """


@dataclass(kw_only=True, eq=False, repr=False)
class RakerRegressor(Regressing, parameters.Raker):
    """Raker for numbers: every kernel is evaluated for every row; parameters as in `SFGMKLRegressor`.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from omkl.river import RakerRegressor
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), RakerRegressor(seed=1), metrics.MAE())
    MAE: 0.395125
    """


@dataclass(kw_only=True, eq=False, repr=False)
class RakerClassifier(Classifying, parameters.Raker):
    """Raker for labels, with the logistic loss; parameters as in `SFGMKLRegressor`.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from omkl.river import RakerClassifier
    >>> evaluate.progressive_val_score(datasets.Phishing(), RakerClassifier(seed=1), metrics.Accuracy())
    Accuracy: 87.83%
    """


@dataclass(kw_only=True, eq=False, repr=False)
class OMKLGFRegressor(Regressing, parameters.OMKLGF):
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


@dataclass(kw_only=True, eq=False, repr=False)
class OMKLGFClassifier(Classifying, parameters.OMKLGF):
    """OMKL-GF for labels, with the logistic loss; parameters as in `OMKLGFRegressor`.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from omkl.river import OMKLGFClassifier
    >>> evaluate.progressive_val_score(datasets.Phishing(), OMKLGFClassifier(seed=1), metrics.Accuracy())
    Accuracy: 85.91%
    """


@dataclass(kw_only=True, eq=False, repr=False)
class RFOMKRRegressor(Regressing, parameters.RFOMKR):
    """OMKR's step on random features; parameters as in `SFGMKLRegressor`.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from omkl.river import RFOMKRRegressor
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), RFOMKRRegressor(seed=1), metrics.MAE())
    MAE: 0.45077
    """


@dataclass(kw_only=True, eq=False, repr=False)
class OMKRRegressor(Regressing, parameters.OMKR):
    """OMKR with exact kernels: its memory and time grow with every row, up to `budget`.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from omkl.river import OMKRRegressor
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), OMKRRegressor(), metrics.MAE())
    MAE: 0.454575
    """
