"""What users pass in: what is accepted, and what the messages about the rest say."""

import math
import re
from decimal import Decimal
from fractions import Fraction

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omkl import validation
from omkl.validation import (
    LARGEST_TARGET,
    LARGEST_WEIGHT,
    is_number,
    is_target,
    is_whole,
    many_rows,
    many_targets,
    many_weights,
    one_row,
    one_weight,
    require,
    require_whole,
    wrong_target,
)


@pytest.mark.parametrize("value", [0, -1.5, np.float32(2.0), np.int8(3), Fraction(1, 3), 10**400 // 10**399])
def test_finite_real_numbers_are_numbers(value):
    assert is_number(value)


@pytest.mark.parametrize("value", [True, np.nan, math.inf, -math.inf, -(10**400), "1", None, 1j, [1], Decimal(1)])
def test_everything_else_is_no_number(value):
    assert not is_number(value)


def test_whole_numbers_are_integers_of_python_or_numpy_but_not_booleans():
    assert [is_whole(value) for value in (3, np.int64(3), -1)] == [True] * 3
    assert [is_whole(value) for value in (3.0, True, "3", None, np.bool_(True))] == [False] * 5


def test_require_names_the_argument_what_was_wanted_and_what_came():
    require(True, "x", "anything", None)
    with pytest.raises(ValueError, match=r"^colour must be red or blue, got 'green'$"):
        require(False, "colour", "red or blue", "green")


@pytest.mark.parametrize(("value", "least"), [(0, 1), (-1, 0), (1.0, 1), (True, 1), ("2", 1), (None, 1)])
def test_a_number_that_is_not_whole_or_too_small_is_refused(value, least):
    with pytest.raises(ValueError, match=f"^n must be a whole number of at least {least}, got {value!r}$"):
        require_whole("n", value, least)
    require_whole("n", np.int32(least), least)


# Rows


def test_a_row_becomes_a_contiguous_array_of_float64():
    row = one_row(np.arange(6, dtype=np.int16)[::2], 3)
    assert row.dtype == np.float64
    assert row.flags.c_contiguous
    np.testing.assert_array_equal(row, [0, 2, 4])


@pytest.mark.parametrize("x", [[1.0], [[1.0, 2.0]], 1.0, []])
def test_a_row_of_another_shape_is_refused_with_the_shape_and_what_to_use(x):
    shape = re.escape(str(np.shape(x)))
    message = f"x must be one sample of 2 values, got .* {shape}; give many samples to run or predict_rows"
    with pytest.raises(ValueError, match=message):
        one_row(x, 2)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_the_first_value_of_a_row_that_is_not_finite_is_named(bad):
    with pytest.raises(ValueError, match=rf"^x\[1\] must be a finite number, got {bad}; impute or drop the sample$"):
        one_row([0.0, bad, bad], 3)


@pytest.mark.parametrize("X", [np.zeros((4, 3)), np.zeros(2), np.zeros((1, 4, 2))])
def test_a_table_of_another_shape_is_refused_with_the_shape_and_what_to_use(X):
    with pytest.raises(
        ValueError, match=r"X must be a table of samples with 2 columns, .*; give one sample to predict"
    ):
        many_rows(X, 2)


@given(st.integers(0, 9), st.integers(0, 3), st.sampled_from([math.nan, math.inf, -math.inf]))
def test_row_and_column_of_the_first_cell_that_is_not_finite_are_named(row, column, bad):
    X = np.zeros((10, 4))
    X[row, column], X[9, 3] = bad, bad
    with pytest.raises(ValueError, match=f"got {bad} in row {row}, column {column}; impute or drop it .no row of this"):
        many_rows(X, 4)


def test_a_table_of_no_rows_is_accepted():
    assert many_rows(np.empty((0, 3)), 3).shape == (0, 3)


# Targets


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        ("number", [0.0, -1e99, 1e100], [math.nan, math.inf, -math.inf, 1.1e100]),
        ("sign", [-1.0, 1.0], [0.0, 2.0, 0.5, math.nan, math.inf]),
        ("label", [0.0, 1.0, 2.0], [-1.0, 3.0, 0.5, math.nan, math.inf]),
    ],
)
def test_targets_are_accepted_or_refused_by_their_kind(kind, right, wrong):
    assert all(is_target(y, kind, 3) for y in right)
    assert not any(is_target(y, kind, 3) for y in wrong)
    np.testing.assert_array_equal(many_targets(right, len(right), kind, 3), right)
    for k, bad in enumerate(wrong):
        y = np.array([right[0]] * len(wrong))
        y[k] = bad
        message = f"got {bad} in row {k} (no row of this chunk was learned)"
        with pytest.raises(ValueError, match=f"^y must be .*, {re.escape(message)}"):
            many_targets(y, len(y), kind, 3)


def test_messages_about_targets_say_what_to_do():
    assert str(wrong_target(7.0, "label", 3)) == "y must be a whole number from 0 to 2, the label's index, got 7.0"
    assert str(wrong_target(0.0, "sign", 1)) == "y must be -1 or 1 for this loss, got 0.0; recode the labels"
    assert str(wrong_target(math.nan, "number", 1)).endswith("drop the sample, or scale y to at most 1e+100")


@pytest.mark.parametrize("y", [[1.0, 2.0], [[1.0], [2.0], [3.0]], 1.0])
def test_targets_of_another_number_than_rows_are_refused(y):
    with pytest.raises(ValueError, match="y must have one value for each of the 3 rows of X, got an array of shape"):
        many_targets(y, 3, "number", 1)


# Weights


@pytest.mark.parametrize("weight", [-1e-9, math.nan, math.inf, 2 * LARGEST_WEIGHT])
def test_a_weight_that_is_negative_or_not_finite_is_refused(weight):
    with pytest.raises(ValueError, match=r"weight must be a finite number of at least 0, got .*; the largest is 1e"):
        one_weight(weight)
    with pytest.raises(ValueError, match=r"weight must be finite, at most 1e\+30 and at least 0, got .* in row 1 "):
        many_weights([1.0, weight, weight], 3)


def test_weights_from_0_to_the_largest_are_accepted():
    one_weight(0.0)
    one_weight(LARGEST_WEIGHT)
    np.testing.assert_array_equal(many_weights([0, 1, LARGEST_WEIGHT], 3), [0, 1, LARGEST_WEIGHT])
    with pytest.raises(
        ValueError, match=r"weight must be 3 finite numbers of at least 0, got an array of shape \(2,\)"
    ):
        many_weights([1.0, 1.0], 3)


def test_the_largest_targets_and_weights_have_finite_products():
    assert math.isfinite(LARGEST_TARGET**2 * LARGEST_WEIGHT)
    assert "learned" in validation.UNCHANGED


@pytest.mark.parametrize(("columns", "plain"), [
    ({"a": [1.5, 2.0], "b": [1, 2]}, True), ({"a": [1.5, 2.0], "b": [True, False]}, True), ({"a": [1, 2]}, True),
    ({"a": [1.5, np.nan], "b": [1, 2]}, False), ({"a": pd.Categorical([1, 2])}, False),
    ({"a": pd.Categorical([1, 2]), "b": pd.Categorical([1, 2])}, False), ({"a": ["1", "2"]}, False),
    ({"a": pd.array([1, 2], "Int64"), "b": [1.0, 2.0]}, True), ({"a": pd.array([1, None], "Int64")}, False),
    ({"a": pd.array([1, None], "Int64"), "b": [True, False]}, False), ({"a": pd.to_datetime(["2024", "2025"])}, False),
    ({"a": pd.to_datetime(["2024", "2025"]), "b": [1, 2]}, False), ({"a": np.array([1, 2], dtype=object)}, False),
])  # fmt: skip
def test_frames_of_numbers_are_told_from_others_and_their_values_are_the_cells(columns, plain):
    values = validation.frame_numbers(nw.from_native(pd.DataFrame(columns)))
    assert (values is not None) == plain
    if values is not None:
        np.testing.assert_array_equal(values.astype(float), pd.DataFrame(columns).astype(float))


@pytest.mark.parametrize("kind", [lambda frame: frame, pl.DataFrame.to_arrow])
def test_the_same_holds_for_frames_of_polars_and_arrow(kind):
    for column, plain in (
        ([1.5, 2.0], True), ([1, 2], True), ([True, False], True), ([1, None], False), ([1.5, None], False),
        ([1.5, math.nan], False), (["1", "2"], False), (pl.Series(["a", "b"], dtype=pl.Categorical), False),
    ):  # fmt: skip
        for other in ({}, {"other": [0.5, 1.5]}):
            values = validation.frame_numbers(nw.from_native(kind(pl.DataFrame({"a": column, **other}))))
            assert (values is not None) == plain
            assert values is None or values[:, 0].tolist() == column
