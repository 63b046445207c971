"""The estimators with river's API; `omkl.river` has their names."""

from dataclasses import dataclass

from omkl.algorithms import graph_mkl, omkl_gf, omkr, raker, rfomkr, sfg_mkl
from omkl.estimators.cores import Scaling
from omkl.estimators.river.base import Classifier, Regressor
from omkl.estimators.river.distribution import DistributionRegressor


@dataclass(kw_only=True, eq=False, repr=False)
class GraphMKLRegressor(DistributionRegressor, graph_mkl.Parameters, parameters=graph_mkl.Parameters):
    """GraphMKL for numbers, the recommended learner: experts on many kernels, weighted by how well they predict.

    Inputs may be in raw units, the length of the stream need not be known, and there is nothing to tune. A change of
    the stream is detected and followed.

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


@dataclass(kw_only=True, eq=False, repr=False)
class GraphMKLClassifier(Classifier, graph_mkl.Parameters, parameters=graph_mkl.Parameters):
    """GraphMKL for labels.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from omkl.river import GraphMKLClassifier
    >>> model = GraphMKLClassifier(seed=1)
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 90.79%
    """


@dataclass(kw_only=True, eq=False, repr=False)
class SFGMKLRegressor(Regressor, Scaling, sfg_mkl.Parameters, parameters=sfg_mkl.Parameters):
    """SFG-MKL for numbers: a similarity graph selects the few kernels evaluated for each row.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from omkl.river import SFGMKLRegressor
    >>> model = SFGMKLRegressor(seed=1)
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    MAE: 0.527887
    """


@dataclass(kw_only=True, eq=False, repr=False)
class SFGMKLClassifier(Classifier, Scaling, sfg_mkl.Parameters, parameters=sfg_mkl.Parameters):
    """SFG-MKL for labels, with the logistic loss; more than two are learned one against the rest.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from omkl.river import SFGMKLClassifier
    >>> model = SFGMKLClassifier(seed=1)
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 77.82%
    """


@dataclass(kw_only=True, eq=False, repr=False)
class RakerRegressor(Regressor, Scaling, raker.Parameters, parameters=raker.Parameters):
    """Raker for numbers: every kernel is evaluated for every row.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from omkl.river import RakerRegressor
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), RakerRegressor(seed=1), metrics.MAE())
    MAE: 0.395114
    """


@dataclass(kw_only=True, eq=False, repr=False)
class RakerClassifier(Classifier, Scaling, raker.Parameters, parameters=raker.Parameters):
    """Raker for labels, with the logistic loss; more than two are learned one against the rest.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from omkl.river import RakerClassifier
    >>> evaluate.progressive_val_score(datasets.Phishing(), RakerClassifier(seed=1), metrics.Accuracy())
    Accuracy: 87.83%
    """


@dataclass(kw_only=True, eq=False, repr=False)
class OMKLGFRegressor(Regressor, Scaling, omkl_gf.Parameters, parameters=omkl_gf.Parameters):
    """OMKL-GF for numbers: kernels are drawn by their weights.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from omkl.river import OMKLGFRegressor
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), OMKLGFRegressor(seed=1), metrics.MAE())
    MAE: 0.407413
    """


@dataclass(kw_only=True, eq=False, repr=False)
class OMKLGFClassifier(Classifier, Scaling, omkl_gf.Parameters, parameters=omkl_gf.Parameters):
    """OMKL-GF for labels, with the logistic loss; more than two are learned one against the rest.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from omkl.river import OMKLGFClassifier
    >>> evaluate.progressive_val_score(datasets.Phishing(), OMKLGFClassifier(seed=1), metrics.Accuracy())
    Accuracy: 85.91%
    """


@dataclass(kw_only=True, eq=False, repr=False)
class RFOMKRRegressor(Regressor, Scaling, rfomkr.Parameters, parameters=rfomkr.Parameters):
    """RFOMKR for numbers: the step of OMKR on random features.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from omkl.river import RFOMKRRegressor
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), RFOMKRRegressor(seed=1), metrics.MAE())
    MAE: 0.45077
    """


@dataclass(kw_only=True, eq=False, repr=False)
class OMKRRegressor(Regressor, Scaling, omkr.Parameters, parameters=omkr.Parameters):
    """OMKR for numbers, with exact kernels: memory and time grow with every row, up to `budget`.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from omkl.river import OMKRRegressor
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), OMKRRegressor(), metrics.MAE())
    MAE: 0.454575
    """
