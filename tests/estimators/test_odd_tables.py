"""Tables as people have them: types, names and cells that are seldom in tests, through every interface."""

import datetime
import decimal
import re
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import omkl
import omkl.river

N = 60
RNG = np.random.default_rng(3)
NUMBERS = RNG.normal(size=N)
TARGETS = np.round(np.sin(np.arange(N)) + NUMBERS, 3)
SECONDS = RNG.integers(0, 80_000, N)


def predictions(model: Any, X: Any) -> list[float]:
    """Of rows of a frame, or of dictionaries, each before it is learned."""
    if not isinstance(X, list):
        return model.predict_then_learn(X, TARGETS).tolist()
    out = []
    for x, y in zip(X, TARGETS.tolist(), strict=True):
        out.append(model.predict_one(x))
        model.learn_one(x, y)
    return out


def same_everywhere(frame: pd.DataFrame, *others: Any) -> bool:
    """Whether a frame, its rows and the others have the same predictions, with both APIs."""
    models = [
        (omkl.RakerRegressor(random_state=0), frame),
        (omkl.river.RakerRegressor(seed=0), frame),
        (omkl.river.RakerRegressor(seed=0), frame.to_dict("records")),
        *((omkl.RakerRegressor(random_state=0), other) for other in others),
    ]
    first, *rest = (predictions(model, X) for model, X in models)
    return all(each == first for each in rest)


CODED = {
    "with a number": pd.DataFrame({"code": pd.Categorical(RNG.integers(0, 4, N)), "x": NUMBERS}),
    "alone": pd.DataFrame({"code": pd.Categorical(RNG.integers(0, 4, N))}),
    "two": pd.DataFrame({k: pd.Categorical(RNG.integers(0, 4, N)) for k in ("code", "other")}),
    "booleans": pd.DataFrame({"code": pd.Categorical(RNG.random(N) < 0.5), "x": NUMBERS}),
}


@pytest.mark.parametrize("name", CODED)
def test_categories_that_are_numbers_are_categories_beside_numbers_too(name: str):
    frame = CODED[name]
    arrow = pa.Table.from_pandas(frame)
    text = frame.assign(**{name: frame[name].astype(str).astype("category") for name in frame if name != "x"})
    outcomes = [predictions(omkl.RakerRegressor(random_state=0), X) for X in (frame, arrow, text)]
    if name != "booleans":  # which Arrow writes as true, and pandas as True
        assert outcomes[2] == outcomes[0]
    assert outcomes[1] == outcomes[0]
    model = omkl.GraphMKLRegressor(random_state=0).fit(frame, TARGETS)
    assert any(str(feature).startswith("code=") for feature in model.core_.names)
    np.testing.assert_array_equal(model.predict(frame), model.predict(arrow))


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_the_unit_of_durations_and_times_of_day_does_not_matter(unit: str):
    spans = [datetime.timedelta(seconds=int(k)) for k in SECONDS]
    times = [(datetime.datetime(2024, 1, 1) + span).time() for span in spans]
    of_day = pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)
    frame = pd.DataFrame({"span": pd.Series(spans).astype(f"timedelta64[{unit}]"), "time": times})
    table = pa.table({"span": pa.array(spans, pa.duration(unit)), "time": pa.array(times).cast(of_day)})
    assert same_everywhere(frame, table, pl.DataFrame({"span": spans, "time": times}))


def test_decimals_are_the_numbers_that_their_digits_say():
    cells = [decimal.Decimal(f"{value:.4f}") for value in NUMBERS]
    frame = pd.DataFrame({"x": cells, "town": ["a", "b"] * (N // 2)})
    assert same_everywhere(frame, pl.DataFrame(frame.to_dict("list")), frame.assign(x=[float(cell) for cell in cells]))


def test_whole_numbers_beyond_64_bits_are_numbers():
    cells = [10**30 + k * 10**28 for k in range(N)]
    assert same_everywhere(
        pd.DataFrame({"n": cells, "x": NUMBERS}), pd.DataFrame({"n": map(float, cells), "x": NUMBERS})
    )


@pytest.mark.filterwarnings("ignore:column:UserWarning")  # bins look like numbers with signs
def test_periods_and_intervals_are_the_same_in_rows_as_in_frames():
    periods, bins = pd.period_range("2020-01-01", periods=N, freq="D"), pd.cut(pd.Series(NUMBERS), 4)
    assert same_everywhere(pd.DataFrame({"day": periods, "bin": bins.astype(object)}))


@pytest.mark.parametrize("names", [[0, 1], ["a", 1]], ids=str)
def test_names_of_columns_that_are_no_text_may_be_given_to_river(names: list[Any]):
    for frame in (
        pd.DataFrame({"a": NUMBERS, "b": NUMBERS**2}),
        pd.DataFrame({"a": NUMBERS, "b": ["x", "y"] * (N // 2)}),
    ):
        named = frame.set_axis(names, axis=1)
        one, other = (omkl.river.RakerRegressor(seed=0) for _ in range(2))
        assert predictions(one, named) == predictions(other, named.to_dict("records"))


def test_columns_of_one_name_are_refused_by_both_apis():
    frame = pd.DataFrame(np.column_stack([NUMBERS, NUMBERS]), columns=["a", "a"])
    for model in (omkl.RakerRegressor(), omkl.river.RakerRegressor()):
        with pytest.raises(ValueError, match="two columns have the same name; rename one of them"):
            model.predict_then_learn(frame, TARGETS)


def test_a_cell_that_cannot_be_used_is_named():
    cell = [1, 2]
    expected = "'tags' must be a number, text, a boolean, a timestamp or empty, got [1, 2] (list)"
    with pytest.raises(ValueError, match=re.escape(f"feature {expected}")):
        omkl.river.RakerRegressor().learn_one({"town": "a", "tags": cell}, 1.0)
    frame = pd.DataFrame({"tags": [cell, "a"] * (N // 2)}, dtype=object)
    with pytest.raises(ValueError, match=re.escape(f"every cell of column {expected}")):
        omkl.RakerRegressor().fit(frame, TARGETS)


def test_a_column_that_is_left_out_is_warned_about():
    frame = pd.DataFrame({"id": [f"row {k}" for k in range(250)], "x": np.arange(250.0)})
    with pytest.warns(UserWarning, match="column 'id' names the rows"):
        omkl.RakerRegressor(random_state=0).fit(frame, np.arange(250.0))


@pytest.mark.parametrize("y", [[None, *range(N - 1)], pd.Series([*range(N - 1), None], dtype=object)], ids=type)
def test_a_target_that_is_none_is_refused(y: Any):
    frame = pd.DataFrame({"x": NUMBERS, "town": ["a", "b"] * (N // 2)})
    for X in (frame, frame[["x"]], frame[["x"]].to_numpy()):
        model = omkl.RakerRegressor(random_state=0).partial_fit(X, TARGETS)
        for learn in (model.partial_fit, model.fit):
            with pytest.raises(ValueError, match=r"Input y contains NaN, first at position [0-9]+ "):
                learn(X, y)


@pytest.mark.parametrize("kind", ["string", "category", object])
def test_a_label_that_is_missing_is_refused_with_its_place(kind: Any):
    labels = pd.Series(["a", "b"] * (N // 2), dtype=kind)
    labels[3] = pd.NA
    for learn in (omkl.RakerClassifier().fit, omkl.RakerClassifier().predict_then_learn):
        with pytest.raises(ValueError, match=r"a label must be .*, got (<NA>|nan) in row 3"):
            learn(NUMBERS[:, None], labels)


@pytest.mark.parametrize("y", [pd.date_range("2024", periods=N), pd.to_timedelta(SECONDS, unit="s")], ids=["at", "for"])
def test_times_are_no_targets_but_their_seconds_are(y: Any):
    for times in (y, pd.Series(y), y.tolist(), y.to_numpy()):
        with pytest.raises(ValueError, match=r"y holds times such as .*; pass numbers, such as the seconds"):
            omkl.RakerRegressor().fit(NUMBERS[:, None], times)
    omkl.RakerRegressor().fit(NUMBERS[:, None], pd.Series(pd.to_timedelta(SECONDS, unit="s")).dt.total_seconds())


@pytest.mark.parametrize("column", [SECONDS, SECONDS.astype(str), ["a", "b"] * (N // 2)], ids=["int", "digits", "text"])
def test_the_missing_value_of_pandas_is_a_gap_in_rows_as_none_is(column: Any):
    rows = [{"x": float(x), "c": cell} for x, cell in zip(NUMBERS, column, strict=True)]
    gaps = {
        marker: [row | {"c": marker} if k % 7 == 6 else row for k, row in enumerate(rows)] for marker in (None, pd.NA)
    }
    one, other = (omkl.river.RakerRegressor(seed=0) for _ in range(2))
    assert predictions(one, gaps[None]) == predictions(other, gaps[pd.NA])
    other.predict_one({"x": 1.0, "c": pd.NA}, key="late")
    other.learn_key("late", 2.0)


@pytest.mark.parametrize("first", [1.0, "a", pd.Timestamp("2024-01-01")])
@pytest.mark.parametrize("cell", [np.array([1.0, 2.0]), np.array([]), pd.Series([1, 2])], ids=["two", "none", "series"])
def test_an_array_is_no_cell(first: Any, cell: Any):
    model = omkl.river.RakerRegressor(seed=0)
    model.learn_one({"size": first}, 1.0)
    for use in (model.predict_one, lambda x: model.learn_one(x, 1.0)):
        with pytest.raises(ValueError, match="feature 'size' must be a number, text, a boolean, a timestamp or empty"):
            use({"size": cell})


@pytest.mark.parametrize("unit", ["D", "h", "s", "ns"])
def test_times_of_numpy_are_read_in_rows(unit: str):
    times = np.arange("2024-01-01", "2024-03-01", dtype="datetime64[D]").astype(f"datetime64[{unit}]")[:N]
    spans = np.arange(N).astype("timedelta64[D]").astype(f"timedelta64[{unit}]")
    frame = pd.DataFrame({"at": times, "for": spans.astype("timedelta64[s]")})
    numpy_rows, rows = (omkl.river.RakerRegressor(seed=0) for _ in range(2))
    cells = [{"at": at, "for": span} for at, span in zip(times, spans, strict=True)]
    assert predictions(numpy_rows, cells) == predictions(rows, frame.to_dict("records"))
