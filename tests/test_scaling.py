"""Raw units: inputs standardised as they come."""

import numpy as np
import pytest

from omkl.scaling import InputScaler


def test_a_row_is_standardised_by_all_rows_up_to_it():
    X = np.random.default_rng(0).normal(size=(50, 3)) * [1.0, 1e6, 1e-3] + [0.0, 1e8, 5.0]
    out = InputScaler(3).learn(X)
    for k in range(1, 50):
        seen = X[: k + 1]
        wanted = (X[k] - seen.mean(axis=0)) / seen.std(axis=0) / np.sqrt(3)
        np.testing.assert_allclose(out[k], wanted, rtol=1e-10, atol=1e-11)
    np.testing.assert_array_equal(out[0], 0)


def test_asking_about_a_row_standardises_it_as_learning_it_would():
    X = np.random.default_rng(1).normal(size=(30, 2)) + 7
    scaler = InputScaler(2)
    for row in X:
        asked = scaler.transform(row[None])
        np.testing.assert_array_equal(asked, scaler.learn(row[None]))


@pytest.mark.parametrize(("spread", "counts"), [(1e-10, True), (1e-13, False)])
def test_a_spread_beyond_rounding_counts_and_one_within_it_is_a_constant(spread, counts):
    out = InputScaler(1).learn(1 + spread * np.tile([0.0, 1.0], 20)[:, None])
    assert np.abs(out[1:]).min() > 0.5 if counts else not out.any()


def test_a_value_that_is_missing_is_the_mean_and_is_not_counted():
    X = np.array([[1.0, 10.0], [2.0, np.nan], [3.0, 30.0], [4.0, 20.0]])
    scaler = InputScaler(2)
    out = scaler.learn(X)
    assert out[1, 1] == 0
    np.testing.assert_array_equal(scaler.stats[0], [4, 3])
    np.testing.assert_allclose(scaler.stats[1], [2.5, 20.0], rtol=1e-15)


def test_no_value_lies_further_out_than_the_root_of_their_number():
    X = np.full((20, 1), 3.0)
    X[-1] = 1e300
    out = InputScaler(1).learn(X)
    assert 0 < out[-1, 0] <= np.sqrt(20)
