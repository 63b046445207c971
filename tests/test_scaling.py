"""Online standardisation of inputs and target."""

import numpy as np
import pytest

from omkl.scaling import STATISTICS, InputScaler, TargetScaler, with_block


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


# Statistics that were spoiled


def standardised(column):
    """By two passes over the rows that count: those before the last block that showed that they were spoiled do not."""
    column, out, start, block, far = np.array(column), [], 0, 0, False
    for n in range(1, len(column) + 1):
        past, was_far = column[start : n - 1], far
        far = len(past) >= 64 and 0 < 30 * past.std() < abs(column[n - 1] - past.mean())
        if far and not was_far:
            column[n - 1] = past.mean() + 30 * past.std() * np.sign(column[n - 1] - past.mean())
        rows, recent = column[start:n], column[block:n]
        if len(recent) >= 64 and 4 * len(recent) >= len(rows):
            if 0 < 50 * recent.std() < rows.std():
                start = block
            if np.ptp(column[start:n]) == 0:
                start = n - 1  # a constant counts as one value
            block = n
        rows = column[start:n]
        out.append((column[n - 1] - rows.mean()) / rows.std() if np.ptp(rows) > 0 else 0.0)
    return np.array(out)


def spoiled(rows=900):
    """Columns with one huge value, first rows in other units, a shift, a constant beginning, and one that is clean."""
    X = np.random.default_rng(3).normal(size=(rows, 6))
    X[0, 0] = 1e6
    X[77, 1] = -1e9
    X[:100, 2] *= 1e6
    X[:300, 3] += 1e5
    X[:200, 4] = 0.25
    return X


def test_statistics_start_again_from_the_latest_rows_where_earlier_ones_spoiled_them():
    X = spoiled()
    out = InputScaler(6).learn(X) * np.sqrt(6)
    for column, got in zip(X.T, out.T, strict=True):
        np.testing.assert_allclose(got, standardised(column), rtol=1e-6, atol=1e-6)
    for column in out[-300:].T:
        assert 0.5 < column.std() < 2


def test_a_clean_column_is_standardised_by_all_rows():
    X = spoiled()
    expected = (X[-1, 5] - X[:, 5].mean()) / X[:, 5].std()
    assert InputScaler(6).learn(X)[-1, 5] * np.sqrt(6) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("period", [1e3, 3e3, 1e4, 3e4])
@pytest.mark.parametrize("phase", np.arange(8) / 8)
def test_slow_waves_trends_and_random_walks_do_not_look_spoiled(period, phase):
    rows = np.arange(6000)
    wave = np.sin(2 * np.pi * (rows / period + phase))
    walk = np.cumsum(np.random.default_rng(int(period + 100 * phase)).normal(size=6000))
    scaler = InputScaler(3)
    scaler.learn(np.column_stack([wave, walk, rows * period]))
    np.testing.assert_array_equal(scaler.stats[0], [6000, 6000, 6000])


@pytest.mark.parametrize("share", [0.5, 0.1, 0.01])
def test_flags_do_not_look_spoiled(share):
    flags = np.random.default_rng(1).uniform(size=(6000, 1)) < share
    flags[0] = True
    scaler = InputScaler(1)
    scaler.learn(flags.astype(float))
    assert scaler.stats[0, 0] == 6000


def test_single_rows_and_chunks_have_the_same_statistics_at_every_end_of_a_block():
    X = spoiled()
    whole, single = InputScaler(6), InputScaler(6)
    out = whole.learn(X)
    for row, expected in zip(X, out, strict=True):
        np.testing.assert_array_equal(single.transform(row[None])[0], expected)
        np.testing.assert_array_equal(single.learn(row[None])[0], expected)
    np.testing.assert_array_equal(single.stats, whole.stats)


def test_statistics_of_earlier_versions_begin_a_block():
    old = np.array([[5.0, 4.0], [1.0, 2.0], [3.0, 0.5]])
    new = with_block(old)
    assert new.shape == (STATISTICS, 2)
    np.testing.assert_array_equal(new[:3], old)
    assert not new[3:].any()
    scaler = InputScaler(2)
    scaler.__setstate__({"stats": old})
    scaler.learn(np.ones((1, 2)))
    np.testing.assert_array_equal(scaler.stats[[0, 3]], [[6, 5], [1, 1]])


@pytest.mark.parametrize("rows", [100, 1000, 10_000])
def test_a_huge_value_at_any_time_hardly_changes_the_deviation(rows):
    X = np.random.default_rng(0).normal(size=(rows + 1, 1))
    X[-1] = 1e12
    scaler = InputScaler(1)
    scaler.learn(X[:-1])
    assert 0 < scaler.learn(X[-1:])[0, 0] < 30.1
    count, _, square = scaler.stats[:3, 0]
    assert np.sqrt(square / count) < 4 * X[:-1].std()


@pytest.mark.parametrize(("before", "after"), [(100, 20), (1000, 100), (10_000, 1000)])
def test_a_scale_that_grows_by_1e6_is_followed(before, after):
    X = np.random.default_rng(0).normal(size=(before + after + 100, 1))
    X[before:] *= 1e6
    out = InputScaler(1).learn(X)
    assert np.abs(out[before]).max() < 30.1
    assert np.abs(out[before + after :]).max() < 15


@pytest.mark.parametrize(("columns", "more"), [(3, 1), (1, 5), (STATISTICS, 2)])
def test_further_columns_are_new_and_leave_the_others_as_they_are(columns, more):
    scaler = InputScaler(columns)
    scaler.learn(np.random.default_rng(0).normal(size=(20, columns)))
    extended = scaler.extended(more)
    assert extended.stats.shape == (STATISTICS, columns + more)
    np.testing.assert_array_equal(extended.stats[:, :columns], scaler.stats)
    np.testing.assert_array_equal(extended.stats[:, columns:], InputScaler(more).stats)
