"""The encoder of tables as a transformer of both ecosystems."""

import copy
import datetime
import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from river import checks, linear_model
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import estimator_checks_generator

import omkl
import omkl.river
from omkl.encoder import of_frame

FRAME = pd.DataFrame({
    "size": [1.5, None, 2.0, 3.0], "colour": ["red", "blue", None, "red"],
    "seen": pd.to_datetime(["2024-01-01 00:00", "2024-05-02 12:00", "2024-09-03 01:00", None]), "code": [3, 3, 1, 2],
    "level": pd.Categorical(["low", "high", "low", "low"]), "open": [True, False, True, True],
})  # fmt: skip
CHECKS = list(estimator_checks_generator(omkl.TableEncoder()))


@pytest.mark.parametrize(("model", "check"), CHECKS, ids=[check.func.__name__ for _, check in CHECKS])
@pytest.mark.filterwarnings("ignore:column .* is too large")  # the checks pass such numbers
def test_the_transformer_passes_the_checks_of_scikit_learn(model: Any, check: Any):
    check(model)


def test_the_transformer_passes_the_checks_of_river():
    model = omkl.river.TableEncoder()
    for check in checks.yield_checks(model):
        if check.__name__ not in model._unit_test_skips():
            check(copy.deepcopy(model))


def test_features_are_those_that_an_estimator_of_omkl_learns_from():
    encoder = omkl.TableEncoder().fit(FRAME)
    model = omkl.GraphMKLRegressor(random_state=0).fit(FRAME, [1.0, 2.0, 3.0, 4.0])
    assert set(encoder.get_feature_names_out()) == set(model.core_.names)
    assert set(encoder.features_) == set(model.core_.encoder.features)
    encoded = model.core_.encoder.encode(of_frame(FRAME), learn=False).features
    for k, name in enumerate(encoder.features_):
        assert np.array_equal(encoder.transform(FRAME)[:, k], encoded[name], equal_nan=True), name


@pytest.mark.parametrize("kind", [lambda frame: frame, pl.from_pandas, lambda frame: pl.from_pandas(frame).to_arrow()])
def test_frames_of_all_kinds_give_the_same_features(kind: Any):
    found = omkl.TableEncoder().fit_transform(kind(FRAME))
    assert np.array_equal(found, omkl.TableEncoder().fit_transform(FRAME), equal_nan=True)


def test_rows_and_frames_give_river_the_same_features():
    rows = [{name: None if pd.isna(cell) else cell for name, cell in row.items()} for row in FRAME.to_dict("records")]
    single, many = omkl.river.TableEncoder(), omkl.river.TableEncoder()
    for row in rows:
        single.learn_one({name: cell.to_pydatetime() if isinstance(cell, datetime.datetime) else cell
                          for name, cell in row.items()})  # fmt: skip
    many.learn_many(FRAME.astype({"level": str}))
    table = many.transform_many(FRAME.astype({"level": str}))
    for row, (_, expected) in zip(rows, table.iterrows(), strict=True):
        assert single.transform_one(row) == expected.dropna().to_dict()


def test_partial_fit_appends_features_and_forgets_none():
    first, other = FRAME.iloc[:1], FRAME.iloc[1:]
    encoder = omkl.TableEncoder().fit(first)
    names = list(encoder.get_feature_names_out())
    assert list(encoder.partial_fit(other).get_feature_names_out())[: len(names)] == names
    assert set(encoder.get_feature_names_out()) == set(omkl.TableEncoder().fit(FRAME).get_feature_names_out())


def test_codes_and_dates_are_read_as_the_parameters_say():
    frame = pd.DataFrame({"code": [3, 1, 3], "day": ["01.02.2024", "02.03.2024", "01.02.2025"]})
    encoder = omkl.TableEncoder(date_format="%d.%m.%Y", categorical=["code"]).fit(frame)
    names = list(encoder.get_feature_names_out())
    assert names[:2] == ["code=3", "code=1"]
    assert "day" in names
    assert not any("day=" in name for name in names)
    one = omkl.river.TableEncoder(date_format="%d.%m.%Y", categorical=["code"])
    one.learn_one({"code": 3, "day": "01.02.2024"})
    assert one.transform_one({"code": 3, "day": "01.02.2024"})["code=3"] == 1.0


def test_another_learner_learns_from_the_features():
    rng = np.random.default_rng(0)
    colours = rng.choice(["red", "green", "blue"], 300)
    frame = pd.DataFrame({"colour": colours, "x": np.where(rng.random(300) < 0.1, np.nan, rng.normal(size=300))})
    y = np.where(colours == "red", 5.0, 0.0)
    model = make_pipeline(omkl.TableEncoder(), HistGradientBoostingRegressor()).fit(frame, y)
    assert model.score(frame, y) > 0.95
    online = omkl.river.TableEncoder() | linear_model.LinearRegression()
    for colour, target in zip(colours, y.tolist(), strict=True):
        online.learn_one({"colour": colour}, target)
    assert online.predict_one({"colour": "red"}) > online.predict_one({"colour": "blue"}) + 3


def test_mistakes_are_refused():
    with pytest.raises(NotFittedError):
        omkl.TableEncoder().transform(FRAME)
    with pytest.raises(ValueError, match="every cell of X is empty"):
        omkl.TableEncoder().fit(pd.DataFrame({"a": [None, None]}))
    for make in (lambda **chosen: omkl.TableEncoder(**chosen).fit(FRAME), omkl.river.TableEncoder):
        with pytest.raises(ValueError, match="categorical must be a list of names"):
            make(categorical="code")
        with pytest.raises(ValueError, match="date_format must be text or None"):
            make(date_format=3)
    with pytest.raises(ValueError, match="feature names"):
        omkl.TableEncoder().fit(FRAME).transform(FRAME.rename(columns={"size": "weight"}))


def test_copies_learn_on_their_own():
    encoder = omkl.TableEncoder().fit(FRAME)
    other = pickle.loads(pickle.dumps(encoder))
    other.partial_fit(FRAME.assign(colour="green"))
    assert "colour=green" in other.get_feature_names_out()
    assert "colour=green" not in encoder.get_feature_names_out()
    one = omkl.river.TableEncoder()
    one.learn_one({"colour": "red"})
    clone = one.clone()
    assert clone.transform_one({"colour": "red"}) == {}


def test_rows_of_river_let_no_value_wait_and_the_first_32_of_many_have_features():
    cells = [f"w{k}" for k in range(40)]
    single, many = omkl.river.TableEncoder(), omkl.river.TableEncoder()
    for k, cell in enumerate(cells):
        single.learn_one({"x": cell})
        expected = {f"x={text}": float(text == cell) for text in cells[: min(k + 1, 32)]}
        assert single.transform_one({"x": cell}) == (expected if k < 32 else expected | {"x other": 1.0})
        single = omkl.from_bytes(omkl.to_bytes(single)) if k == 5 else single
    many.learn_many(pd.DataFrame({"x": cells}))
    assert many.transform_one({"x": "w3"}) == single.transform_one({"x": "w3"})
