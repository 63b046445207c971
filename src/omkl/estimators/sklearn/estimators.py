"""The estimators with scikit-learn's API; `omkl` has their names."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

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
from omkl.estimators.sklearn.base import Classifier
from omkl.estimators.sklearn.graphs import RefinedGraphMixin, SimilarityGraphMixin
from omkl.estimators.sklearn.intervals import IntervalRegressor
from omkl.estimators.sklearn.regression import Regressor

if TYPE_CHECKING:
    from sklearn.utils import Tags


@dataclass(kw_only=True, eq=False, repr=False)
class GraphMKLRegressor(SimilarityGraphMixin, IntervalRegressor, graph_mkl.Parameters, parameters=graph_mkl.Parameters):
    """GraphMKL for numbers, the recommended learner: experts on many kernels, weighted by how well they predict.

    Inputs may be in raw units, the length of the stream need not be known, and there is nothing to tune. Predictions
    come with calibrated intervals, and a change of the stream is detected and followed.

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

    def __sklearn_tags__(self) -> "Tags":
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = False
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class GraphMKLClassifier(SimilarityGraphMixin, Classifier, graph_mkl.Parameters, parameters=graph_mkl.Parameters):
    """GraphMKL for labels.

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

    def __sklearn_tags__(self) -> "Tags":
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = False
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class SFGMKLRegressor(RefinedGraphMixin, Regressor, Scaling, sfg_mkl.Parameters, parameters=sfg_mkl.Parameters):
    """SFG-MKL for numbers: a similarity graph selects the few kernels evaluated for each row.

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
    0.007
    >>> model.kernel_weights_.shape, model.n_samples_seen_
    ((11,), 3000)
    """


@dataclass(kw_only=True, eq=False, repr=False)
class SFGMKLClassifier(RefinedGraphMixin, Classifier, Scaling, sfg_mkl.Parameters, parameters=sfg_mkl.Parameters):
    """SFG-MKL for labels, with the logistic loss; more than two are learned one against the rest.

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
    0.952
    """


@dataclass(kw_only=True, eq=False, repr=False)
class RakerRegressor(Regressor, Scaling, raker.Parameters, parameters=raker.Parameters):
    """Raker for numbers: every kernel is evaluated for every row.

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
class RakerClassifier(Classifier, Scaling, raker.Parameters, parameters=raker.Parameters):
    """Raker for labels, with the logistic loss; more than two are learned one against the rest.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from omkl import RakerClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> RakerClassifier(random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """


@dataclass(kw_only=True, eq=False, repr=False)
class OMKLGFRegressor(Regressor, Scaling, omkl_gf.Parameters, parameters=omkl_gf.Parameters):
    """OMKL-GF for numbers: kernels are drawn by their weights.

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
class OMKLGFClassifier(Classifier, Scaling, omkl_gf.Parameters, parameters=omkl_gf.Parameters):
    """OMKL-GF for labels, with the logistic loss; more than two are learned one against the rest.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from omkl import OMKLGFClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> OMKLGFClassifier(random_state=0).fit(X, y).score(X, y) > 0.85
    True
    """


@dataclass(kw_only=True, eq=False, repr=False)
class RFOMKRRegressor(Regressor, Scaling, rfomkr.Parameters, parameters=rfomkr.Parameters):
    """RFOMKR for numbers: the step of OMKR on random features.

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
class OMKRRegressor(Regressor, Scaling, omkr.Parameters, parameters=omkr.Parameters):
    """OMKR for numbers, with exact kernels: memory and time grow with every row, up to `budget`.

    Examples
    --------
    >>> import numpy as np
    >>> from omkl import OMKRRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (1000, 3))
    >>> y = np.sin(3 * X[:, 0])
    >>> OMKRRegressor().fit(X, y).score(X, y) > 0.7
    True
    """


@dataclass(kw_only=True, eq=False, repr=False)
class AdaRakerRegressor(Regressor, Scaling, adaraker.Parameters, parameters=adaraker.Parameters):
    """AdaRaker for numbers: Rakers on intervals of several lengths, for streams that change.

    Examples
    --------
    >>> import numpy as np
    >>> from omkl import AdaRakerRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (1000, 3))
    >>> y = np.sin(3 * X[:, 0])
    >>> AdaRakerRegressor(random_state=0).fit(X, y).score(X, y) > 0.7
    True
    """


@dataclass(kw_only=True, eq=False, repr=False)
class AdaRakerClassifier(Classifier, Scaling, adaraker.Parameters, parameters=adaraker.Parameters):
    """AdaRaker for labels, with the logistic loss; more than two are learned one against the rest.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from omkl import AdaRakerClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> AdaRakerClassifier(random_state=0).fit(X, y).score(X, y) > 0.85
    True
    """


@dataclass(kw_only=True, eq=False, repr=False)
class VAW2Regressor(Regressor, Scaling, vaw2.Parameters, parameters=vaw2.Parameters):
    """VAW^2 for numbers: a Vovk-Azoury-Warmuth forecaster for every kernel, and one over the kernels.

    Examples
    --------
    >>> import numpy as np
    >>> from omkl import VAW2Regressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (1000, 3))
    >>> y = np.sin(3 * X[:, 0])
    >>> VAW2Regressor(random_state=0).fit(X, y).score(X, y) > 0.7
    True
    """


@dataclass(kw_only=True, eq=False, repr=False)
class FOGDRegressor(Regressor, Scaling, fogd.Parameters, parameters=fogd.Parameters):
    """FOGD for numbers: gradient descent on the random features of one kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from omkl import FOGDRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (1000, 3))
    >>> y = np.sin(3 * X[:, 0])
    >>> FOGDRegressor(random_state=0).fit(X, y).score(X, y) > 0.7
    True
    """


@dataclass(kw_only=True, eq=False, repr=False)
class FOGDClassifier(Classifier, Scaling, fogd.Parameters, parameters=fogd.Parameters):
    """FOGD for labels, with the logistic loss; more than two are learned one against the rest.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from omkl import FOGDClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> FOGDClassifier(random_state=0).fit(X, y).score(X, y) > 0.85
    True
    """


@dataclass(kw_only=True, eq=False, repr=False)
class NOGDRegressor(Regressor, Scaling, nogd.Parameters, parameters=nogd.Parameters):
    """NOGD for numbers: gradient descent on features of one kernel that the first rows span.

    Examples
    --------
    >>> import numpy as np
    >>> from omkl import NOGDRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (1000, 3))
    >>> y = np.sin(3 * X[:, 0])
    >>> NOGDRegressor(random_state=0).fit(X, y).score(X, y) > 0.7
    True
    """


@dataclass(kw_only=True, eq=False, repr=False)
class NOGDClassifier(Classifier, Scaling, nogd.Parameters, parameters=nogd.Parameters):
    """NOGD for labels, with the logistic loss; more than two are learned one against the rest.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from omkl import NOGDClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> NOGDClassifier(random_state=0).fit(X, y).score(X, y) > 0.85
    True
    """


@dataclass(kw_only=True, eq=False, repr=False)
class KRLSTRegressor(Regressor, Scaling, krls_t.Parameters, parameters=krls_t.Parameters):
    """KRLS-T for numbers: kernel recursive least squares with a budget, which forgets.

    Examples
    --------
    >>> import numpy as np
    >>> from omkl import KRLSTRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (1000, 3))
    >>> y = np.sin(3 * X[:, 0])
    >>> KRLSTRegressor(random_state=0).fit(X, y).score(X, y) > 0.7
    True
    """


@dataclass(kw_only=True, eq=False, repr=False)
class DOEBERegressor(Regressor, Scaling, doebe.Parameters, parameters=doebe.Parameters):
    """DOEBE for numbers: Bayesian regression on every kernel's features, averaged or stacked.

    Examples
    --------
    >>> import numpy as np
    >>> from omkl import DOEBERegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (1000, 3))
    >>> y = np.sin(3 * X[:, 0])
    >>> DOEBERegressor(random_state=0).fit(X, y).score(X, y) > 0.7
    True
    """


@dataclass(kw_only=True, eq=False, repr=False)
class DOEBEClassifier(Classifier, Scaling, doebe.Parameters, parameters=doebe.Parameters):
    """DOEBE for labels, with the logistic likelihood; more than two are learned one against the rest.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from omkl import DOEBEClassifier
    >>> DOEBEClassifier(random_state=0).fit(*load_breast_cancer(return_X_y=True)).classes_.tolist()
    [0, 1]
    """
