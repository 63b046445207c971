"""Steps of scikit-learn's pipelines that a model file can hold.

What scikit-learn derives from parameters and categories it derives again when a file is read, so that the file need not
be trusted with it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)

from omkl import persist
from omkl.arrays import Array
from omkl.estimators.steps import NUMBERS
from omkl.persist import demand

Transformer = Any  # scikit-learn has no types
MOST_DEGREE, MOST_OUTPUTS = 64, 2**20  # of polynomials
MOST_SAMPLES = 1e300
NEEDED = {"mean_": "with_mean", "var_": "with_std", "center_": "with_centering"}  # unless this parameter is false


class Step(NamedTuple):
    """How steps of one class are saved."""

    kind: type
    fitted: tuple[str, ...]  # attributes that are learned
    restore: Callable[
        [Transformer, dict[str, object], int], int
    ]  # set them; how many features there are after the step


def _statistics(step: Transformer, fitted: dict[str, object], d: int) -> int:
    """Attributes of scalers: a number for each feature, and counts."""
    for name, value in fitted.items():
        if name == "n_samples_seen_":
            counts = np.asarray(value)
            demand(counts.dtype.kind in "iuf" and counts.shape in ((), (d,)), "n_samples_seen_ must be counts")
            demand(bool(((counts >= 0) & (counts < MOST_SAMPLES)).all()), "n_samples_seen_ must be counts")
        elif value is None:
            flag = "with_scaling" if isinstance(step, RobustScaler) else "with_std"
            parameters = step.get_params()
            demand(not parameters.get(NEEDED.get(name, flag), True), f"{name} is missing")
        else:
            _demand_features(value, d, name)
            demand(name != "scale_" or not (np.asarray(value) <= 0).any(), "scale_ must be positive")
    step.__dict__.update(fitted)
    return d


def _demand_features(value: object, d: int, name: str) -> None:
    demand(isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.shape == (d,),
           f"{name} must be a number for each of {d} features")  # fmt: skip
    persist.require_finite(np.asarray(value), name, gappy=True)


def _imputed(step: Transformer, fitted: dict[str, object], d: int) -> int:
    demand(not step.add_indicator, "add_indicator must be false")
    values, kinds = fitted["statistics_"], (fitted["_fit_dtype"], fitted["_fill_dtype"])
    demand(all(isinstance(kind, np.dtype) for kind in kinds), "the types of an imputer are no types")
    demand(
        isinstance(values, np.ndarray) and values.shape == (d,), f"statistics_ must be a value for each of {d} features"
    )
    assert isinstance(values, np.ndarray)
    text = any(isinstance(kind, np.dtype) and kind.kind == "O" for kind in kinds)
    numbers = all(isinstance(value, (bool, int, float)) for value in values.tolist())
    demand(text or numbers, "an imputer of numbers has a value that is none")
    demand(not text or step.strategy in ("most_frequent", "constant"), "an imputer of text has a strategy for numbers")
    step.__dict__.update(fitted, indicator_=None)
    empty = np.array([value != value for value in values.tolist()])  # a column without any value is left out
    return d if step.keep_empty_features else d - int(empty.sum())


def _encoded(step: Transformer, fitted: dict[str, object], d: int) -> int:
    """Encoders of categories: fitted again, on one row, with the categories that they know."""
    categories = fitted["categories_"]
    demand(isinstance(categories, list) and len(categories) == d, f"there must be categories for each of {d} features")
    assert isinstance(categories, list)
    for each in categories:
        _check_categories(each)
    demand(np.dtype(step.dtype).str in NUMBERS, "dtype must be a type of numbers")
    demand(step.min_frequency is None and step.max_categories is None, "infrequent categories cannot be saved")
    row = np.empty((1, d), dtype=object)
    row[0] = [each.tolist()[0] for each in categories]
    given = step.categories
    step.set_params(categories=[np.array(each.tolist(), dtype=object) for each in categories]).fit(row)
    step.set_params(categories=given).categories_ = categories
    return int(sum(step._n_features_outs)) if isinstance(step, OneHotEncoder) else d


def _check_categories(each: Array) -> None:
    demand(isinstance(each, np.ndarray) and each.ndim == 1 and len(each) > 0, "categories must be a list")
    if each.dtype.kind in "UO":
        cells = each.tolist()
        demand(len({*cells}) == len(cells), "a category comes twice")
    else:
        with_gap = each[:-1] if each.dtype.kind == "f" and np.isnan(each[-1]) else each
        demand(bool((np.diff(with_gap.astype(float)) > 0).all()), "categories are not sorted, or come twice")


def _powers(step: Transformer, fitted: dict[str, object], d: int) -> int:
    degrees = step.degree if isinstance(step.degree, tuple) else (step.degree,)
    demand(all(type(degree) is int and degree <= MOST_DEGREE for degree in degrees), f"a degree is above {MOST_DEGREE}")
    step.fit(np.zeros((1, d)))
    demand(step.n_output_features_ <= MOST_OUTPUTS, f"a polynomial has more than {MOST_OUTPUTS} features")
    return int(step.n_output_features_)


STEPS = {step.kind.__name__: step for step in (
    Step(StandardScaler, ("mean_", "var_", "scale_", "n_samples_seen_"), _statistics),
    Step(MinMaxScaler, ("min_", "scale_", "data_min_", "data_max_", "data_range_", "n_samples_seen_"), _statistics),
    Step(MaxAbsScaler, ("scale_", "max_abs_", "n_samples_seen_"), _statistics),
    Step(RobustScaler, ("center_", "scale_"), _statistics),
    Step(SimpleImputer, ("statistics_", "_fit_dtype", "_fill_dtype"), _imputed),
    Step(OneHotEncoder, ("categories_",), _encoded),
    Step(OrdinalEncoder, ("categories_",), _encoded),
    Step(PolynomialFeatures, (), _powers),
)}  # fmt: skip
