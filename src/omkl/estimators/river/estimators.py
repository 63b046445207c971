"""The estimators with river's API; `omkl.river` has their names."""

from dataclasses import dataclass

from omkl.algorithms import (
    adaraker,
    doebe,
    fogd,
    graph_mkl,
    krls_t,
    nogd,
    omkl_gf,
    omkr,
    raker,
    rfomkr,
    sfg_mkl,
    vaw2,
)
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
    MAE: 0.199234
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
    Accuracy: 91.67%
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
    MAE: 0.418507
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
    Accuracy: 86.95%
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


@dataclass(kw_only=True, eq=False, repr=False)
class AdaRakerRegressor(Regressor, Scaling, adaraker.Parameters, parameters=adaraker.Parameters):
    """AdaRaker for numbers: Rakers on intervals of several lengths, for streams that change.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from omkl.river import AdaRakerRegressor
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), AdaRakerRegressor(seed=1), metrics.MAE())
    MAE: 0.364894
    """


@dataclass(kw_only=True, eq=False, repr=False)
class AdaRakerClassifier(Classifier, Scaling, adaraker.Parameters, parameters=adaraker.Parameters):
    """AdaRaker for labels, with the logistic loss; more than two are learned one against the rest.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from omkl.river import AdaRakerClassifier
    >>> evaluate.progressive_val_score(datasets.Phishing(), AdaRakerClassifier(seed=1), metrics.Accuracy())
    Accuracy: 87.59%
    """


@dataclass(kw_only=True, eq=False, repr=False)
class VAW2Regressor(Regressor, Scaling, vaw2.Parameters, parameters=vaw2.Parameters):
    """VAW^2 for numbers: a Vovk-Azoury-Warmuth forecaster for every kernel, and one over the kernels.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from omkl.river import VAW2Regressor
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), VAW2Regressor(seed=1), metrics.MAE())
    MAE: 0.654692
    """


@dataclass(kw_only=True, eq=False, repr=False)
class FOGDRegressor(Regressor, Scaling, fogd.Parameters, parameters=fogd.Parameters):
    """FOGD for numbers: gradient descent on the random features of one kernel.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from omkl.river import FOGDRegressor
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), FOGDRegressor(seed=1), metrics.MAE())
    MAE: 0.404208
    """


@dataclass(kw_only=True, eq=False, repr=False)
class FOGDClassifier(Classifier, Scaling, fogd.Parameters, parameters=fogd.Parameters):
    """FOGD for labels, with the logistic loss; more than two are learned one against the rest.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from omkl.river import FOGDClassifier
    >>> evaluate.progressive_val_score(datasets.Phishing(), FOGDClassifier(seed=1), metrics.Accuracy())
    Accuracy: 80.62%
    """


@dataclass(kw_only=True, eq=False, repr=False)
class NOGDRegressor(Regressor, Scaling, nogd.Parameters, parameters=nogd.Parameters):
    """NOGD for numbers: gradient descent on features of one kernel that the first rows span.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from omkl.river import NOGDRegressor
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), NOGDRegressor(seed=1), metrics.MAE())
    MAE: 0.398306
    """


@dataclass(kw_only=True, eq=False, repr=False)
class NOGDClassifier(Classifier, Scaling, nogd.Parameters, parameters=nogd.Parameters):
    """NOGD for labels, with the logistic loss; more than two are learned one against the rest.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from omkl.river import NOGDClassifier
    >>> evaluate.progressive_val_score(datasets.Phishing(), NOGDClassifier(seed=1), metrics.Accuracy())
    Accuracy: 83.51%
    """


@dataclass(kw_only=True, eq=False, repr=False)
class KRLSTRegressor(Regressor, Scaling, krls_t.Parameters, parameters=krls_t.Parameters):
    """KRLS-T for numbers: kernel recursive least squares with a budget, which forgets.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from omkl.river import KRLSTRegressor
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), KRLSTRegressor(seed=1), metrics.MAE())
    MAE: 0.366339
    """


@dataclass(kw_only=True, eq=False, repr=False)
class DOEBERegressor(Regressor, Scaling, doebe.Parameters, parameters=doebe.Parameters):
    """DOEBE for numbers: Bayesian regression on every kernel's features, averaged or stacked.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from omkl.river import DOEBERegressor
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), DOEBERegressor(seed=1), metrics.MAE())
    MAE: 0.378092
    """


@dataclass(kw_only=True, eq=False, repr=False)
class DOEBEClassifier(Classifier, Scaling, doebe.Parameters, parameters=doebe.Parameters):
    """DOEBE for labels, with the logistic likelihood; more than two are learned one against the rest.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from omkl.river import DOEBEClassifier
    >>> evaluate.progressive_val_score(datasets.Phishing(), DOEBEClassifier(seed=1), metrics.Accuracy())
    Accuracy: 89.03%
    """
