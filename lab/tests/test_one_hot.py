import numpy as np
import pandas as pd
import pytest

from omkl import GraphMKLRegressor
from omkl_lab import one_hot


def test_categories_are_put_together_from_their_columns():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"a": rng.normal(size=50), "b": rng.choice(["x", "y=z", "w"], 50), "c": rng.choice(["u", "v"], 50)}
    )
    made = pd.get_dummies(table, columns=["b", "c"], prefix_sep="=", dtype=float).drop(columns="c=v")
    again = one_hot.with_categories(made)
    pd.testing.assert_frame_equal(again, table.assign(c=table["c"].replace("v", "other")), check_dtype=False)


def test_the_error_is_that_of_predictions_made_one_after_another():
    rng = np.random.default_rng(1)
    X, y = pd.DataFrame({"a": rng.normal(size=12)}), pd.Series(rng.normal(size=12))
    model, errors = GraphMKLRegressor(random_state=3).partial_fit(X[:1], y[:1]), []
    for k in range(1, 12):
        errors.append(float(model.predict(X[k : k + 1])[0] - y[k]))
        model.partial_fit(X[k : k + 1], y[k : k + 1])
    assert one_hot.error(X, y, labels=False, seed=3) == pytest.approx(
        1000 * np.mean(np.square(errors)) / np.ptp(y) ** 2, rel=1e-12
    )
