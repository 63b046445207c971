"""Online standardisation of inputs and target."""

import numpy as np
import pytest

from omkl.scaling import InputScaler, TargetScaler


def test_a_row_is_standardised_with_the_statistics_of_all_rows_up_to_it():
    X = np.random.default_rng(0).normal(size=(50, 3)) * [1.0, 1e6, 1e-3] + [0.0, 1e8, 5.0]
    out = InputScaler(3).learn(X)
    for k in range(1, 50):
        seen = X[: k + 1]
        wanted = (X[k] - seen.mean(axis=0)) / seen.std(axis=0) / np.sqrt(3)
        np.testing.assert_allclose(out[k], wanted, rtol=1e-10, atol=1e-11)
    np.testing.assert_array_equal(out[0], 0)


def test_transform_gives_the_row_that_learn_gives_next():
    X = np.random.default_rng(1).normal(size=(30, 2)) + 7
    scaler = InputScaler(2)
    for row in X:
        transformed = scaler.transform(row[None])
        np.testing.assert_array_equal(transformed, scaler.learn(row[None]))


@pytest.mark.parametrize(("spread", "varies"), [(1e-10, True), (1e-13, False)])
def test_a_spread_within_rounding_error_counts_as_constant(spread, varies):
    out = InputScaler(1).learn(1 + spread * np.tile([0.0, 1.0], 20)[:, None])
    assert np.abs(out[1:]).min() > 0.5 if varies else not out.any()


def test_a_missing_value_is_replaced_by_the_mean_and_not_counted():
    X = np.array([[1.0, 10.0], [2.0, np.nan], [3.0, 30.0], [4.0, 20.0]])
    scaler = InputScaler(2)
    out = scaler.learn(X)
    assert out[1, 1] == 0
    np.testing.assert_array_equal(scaler.stats[0], [4, 3])
    np.testing.assert_allclose(scaler.stats[1], [2.5, 20.0], rtol=1e-15)


def test_no_standardised_value_exceeds_the_root_of_the_number_of_rows():
    X = np.full((20, 1), 3.0)
    X[-1] = 1e300
    out = InputScaler(1).learn(X)
    assert 0 < out[-1, 0] <= np.sqrt(20)


def test_the_target_is_standardised_and_predictions_are_transformed_back():
    y = np.random.default_rng(2).normal(50.0, 4.0, size=40)
    scaler, one_by_one = TargetScaler(), TargetScaler()
    scaled, shift, scale = scaler.learn(y)
    for k in range(40):
        before = y[:k]
        np.testing.assert_allclose(shift[k], before.mean() if k else 0.0, rtol=1e-12)
        np.testing.assert_allclose(scale[k], before.std() if k > 1 else 0.0, rtol=1e-9)
        assert one_by_one.inverse_transform_one(0.7) == shift[k] + scale[k] * 0.7
        assert one_by_one.transform_one(y[k]) == scaled[k]
        one_by_one.commit()
    np.testing.assert_array_equal(one_by_one.stats, scaler.stats)
    np.testing.assert_allclose(scaler.inverse_transform(np.array([0.0, 1.0])), [y.mean(), y.mean() + y.std()])


def test_a_row_that_is_not_committed_leaves_the_statistics_unchanged():
    scaler = InputScaler(2)
    scaler.learn(np.array([[1.0, 2.0], [3.0, 5.0]]))
    before, raw, out = scaler.stats.copy(), np.empty(2), np.empty(2)
    assert scaler.transform_dict({"a": 9.0, "b": 1.0}, ("a", "b"), raw, out) == 2
    np.testing.assert_array_equal(scaler.stats, before)
    scaler.commit()
    np.testing.assert_array_equal(scaler.stats[0], [3, 3])
    assert scaler.transform_dict({"a": 9.0, "b": "x"}, ("a", "b"), raw, out) == -2
