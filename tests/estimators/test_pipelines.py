"""Pipelines of known steps are saved and loaded; others are refused, and so are files with steps that cannot be."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from river import compose, preprocessing, stats
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)

import omkl
import omkl.river
from omkl.persist import registry
from omkl.persist.container import Content, pack

RNG = np.random.default_rng(0)
ROWS = 60
LEARNER, SEEDED = omkl.GraphMKLRegressor(), omkl.GraphMKLRegressor(random_state=0)
NUMBERS = RNG.normal(size=(ROWS, 3))
GAPPY = np.where(RNG.random((ROWS, 3)) < 0.2, np.nan, NUMBERS)
CODES = np.column_stack((RNG.choice(["x", "y", "z"], ROWS), RNG.choice(["u", "v"], ROWS))).astype(object)
Y = NUMBERS[:, 0] - NUMBERS[:, 1] ** 2
FRAME = pd.DataFrame({"a": GAPPY[:, 0], "b": NUMBERS[:, 1], "c": CODES[:, 0], "k": RNG.integers(0, 4, ROWS),
                      "r": NUMBERS[:, 2]})  # fmt: skip

STEPS = [
    (StandardScaler(), NUMBERS), (StandardScaler(), GAPPY), (StandardScaler(with_mean=False), NUMBERS),
    (StandardScaler(with_std=False), NUMBERS), (StandardScaler(with_mean=False, with_std=False), NUMBERS),
    (StandardScaler(), NUMBERS.astype(np.float32)),
    (StandardScaler().set_output(transform="pandas"), FRAME[["a", "b"]]),
    (MinMaxScaler(), GAPPY), (MinMaxScaler(feature_range=(-1, 2), clip=True), NUMBERS[:5]),
    (MinMaxScaler(), NUMBERS.astype(np.float32)), (MaxAbsScaler(), NUMBERS), (RobustScaler(), GAPPY),
    (RobustScaler(with_centering=False), NUMBERS),
    (RobustScaler(with_scaling=False, quantile_range=(10.0, 90.0)), NUMBERS),
    (SimpleImputer(), GAPPY), (SimpleImputer(strategy="median", keep_empty_features=True), GAPPY),
    (SimpleImputer(strategy="most_frequent"), np.array([["x", np.nan], ["x", "y"]], dtype=object)),
    (SimpleImputer(strategy="constant", fill_value=-1.0), GAPPY),
    (SimpleImputer(strategy="constant", fill_value="none"), np.array([["x", np.nan], ["y", "z"]], dtype=object)),
    (SimpleImputer(missing_values=-1), np.array([[1, -1], [2, 3]])),
    (OneHotEncoder(), CODES), (OneHotEncoder(sparse_output=False, drop="first", dtype=np.float32), CODES),
    (OneHotEncoder(drop=["y", "u"], dtype=int), CODES), (OrdinalEncoder(dtype="float32"), CODES),
    (OneHotEncoder(handle_unknown="ignore"), FRAME[["c", "k"]]),
    (OneHotEncoder(categories=[["z", "y", "x"], ["v", "u"]]), CODES), (OneHotEncoder(drop="if_binary"), CODES),
    (OneHotEncoder(), np.array([[1.0, 2.0], [np.nan, 2.5]])),
    (OneHotEncoder(), np.array([["x", None], ["y", np.nan]], object)),
    (OneHotEncoder(), CODES.astype(str)), (OrdinalEncoder(), CODES), (OrdinalEncoder(), np.array([[3, 1], [2, 1]])),
    (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2),
     np.array([["x", "u"], [np.nan, "v"]], dtype=object)),
    (PolynomialFeatures(), NUMBERS), (PolynomialFeatures((2, 3), interaction_only=True, include_bias=False), NUMBERS),
    (PolynomialFeatures(order="F"), FRAME[["b", "r"]]),
    (omkl.TableEncoder(), FRAME), (omkl.TableEncoder(categorical=["k"]).set_output(transform="pandas"), FRAME),
]  # fmt: skip


def columns() -> ColumnTransformer:
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    return ColumnTransformer(
        [("numbers", numbers, ["a", "b"]), ("text", OneHotEncoder(), ["c"]), ("codes", OrdinalEncoder(), ["k"])],
        remainder="passthrough",
    )


def again(model: Any) -> Any:
    return omkl.from_bytes(omkl.to_bytes(model))


def dense(values: Any) -> np.ndarray:
    return np.asarray(values.todense() if hasattr(values, "todense") else values)


def same(one: Any, other: Any) -> bool:
    one, other = dense(one), dense(other)
    if one.dtype == object:
        one, other = pd.DataFrame(one).fillna("gap").to_numpy(), pd.DataFrame(other).fillna("gap").to_numpy()
    return bool(one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind == "f"))


@pytest.mark.parametrize(("step", "X"), STEPS, ids=lambda each: repr(each)[:60])
def test_a_loaded_step_transforms_to_the_last_bit_as_the_saved_one(step: Any, X: Any):
    step = copy.deepcopy(step).fit(X)
    found = again(step)
    out, loaded = step.transform(X), found.transform(X)
    assert type(out) is type(loaded)
    assert same(out, loaded)
    assert repr(found) == repr(step)
    assert found.get_params().keys() == step.get_params().keys()
    for name in vars(step):
        assert hasattr(found, name), name
    assert list(found.get_feature_names_out()) == list(step.get_feature_names_out())
    if hasattr(step, "partial_fit"):
        assert same(step.partial_fit(X).transform(X), found.partial_fit(X).transform(X))
    assert same(found.fit(X).transform(X), step.fit(X).transform(X))
    if hasattr(step, "inverse_transform") and not isinstance(step, SimpleImputer):
        assert same(step.inverse_transform(out), found.inverse_transform(out))


@pytest.mark.parametrize(("step", "X"), STEPS, ids=lambda each: repr(each)[:60])
def test_a_step_that_has_learned_nothing_is_saved_too(step: Any, X: Any):
    assert same(again(step).fit(X).transform(X), copy.deepcopy(step).fit(X).transform(X))


CHOICES = [
    ("names", [("s", StandardScaler(), ["a", "b"])], "passthrough", ["a", "b", "k", "r"]),
    ("positions", [("s", StandardScaler(), [2, 0]), ("m", MaxAbsScaler(), [-1])], "drop", None),
    ("slices", [("s", StandardScaler(), slice(0, 2)), ("p", "passthrough", [2])], "drop", None),
    ("masks", [("s", StandardScaler(), [True, False, True])], MinMaxScaler(), None),
    ("dropped", [("s", StandardScaler(), ["r"]), ("d", "drop", ["a"]), ("e", MaxAbsScaler(), [])], "passthrough",
     ["a", "b", "r"]),
    ("powers", [("s", PolynomialFeatures(3), [0, 1]),
    ("t", OneHotEncoder(sparse_output=False, handle_unknown="ignore"), [2])], "drop", None),
]  # fmt: skip


@pytest.mark.parametrize(("given", "rest", "names"), [each[1:] for each in CHOICES], ids=[each[0] for each in CHOICES])
def test_columns_are_chosen_as_before(given: Any, rest: Any, names: Any):
    X = NUMBERS if names is None else FRAME[names].fillna(0.0)
    model = make_pipeline(ColumnTransformer(given, remainder=rest), SEEDED).fit(X, Y)
    found = again(model)
    assert same(found[0].transform(X), model[0].transform(X))
    assert np.array_equal(found.predict(X), model.predict(X))
    assert list(found[0].get_feature_names_out()) == list(model[0].get_feature_names_out())
    listed = [[(name, columns) for name, _, columns in each[0].transformers_] for each in (found, model)]
    assert listed[0] == listed[1]
    assert np.array_equal(found.fit(X, Y).predict(X), model.predict(X))


def test_a_pipeline_predicts_as_before_and_can_be_fitted_again(tmp_path: Path):
    model = Pipeline([("columns", columns()), ("nothing", "passthrough"), ("learner", SEEDED)])
    model.fit(FRAME, Y)
    omkl.save(model, tmp_path / "model.omkl")
    found = omkl.load(tmp_path / "model.omkl")
    assert np.array_equal(found.predict(FRAME), model.predict(FRAME))
    assert np.array_equal(found[-1].predict_interval(found[:-1].transform(FRAME)),
                          model[-1].predict_interval(model[:-1].transform(FRAME)))  # fmt: skip
    assert np.array_equal(found.fit(FRAME, Y).predict(FRAME), model.predict(FRAME))
    labels = np.where(Y > 0, "up", "down")
    classifier = make_pipeline(StandardScaler(), omkl.SFGMKLClassifier(random_state=0)).fit(NUMBERS, labels)
    assert np.array_equal(again(classifier).predict_proba(NUMBERS), classifier.predict_proba(NUMBERS))


class Own(StandardScaler):
    pass


@pytest.mark.parametrize(("model", "message"), [
    (make_pipeline(PCA(2), LEARNER), "step 'pca' cannot be saved.*got PCA.*register"),
    (make_pipeline(Own(), LEARNER), "step 'own' cannot be saved.*subclass of StandardScaler"),
    (make_pipeline(ColumnTransformer([("p", PCA(), [0])]), LEARNER), "in step 'columntransformer': step 'p'"),
    (make_pipeline(ColumnTransformer([("s", StandardScaler(), make_column_selector("a"))]), LEARNER),
     "chosen by a function"),
    (make_pipeline(ColumnTransformer([("s", StandardScaler(), [0])], n_jobs=2), LEARNER), "n_jobs=None"),
    (make_pipeline(StandardScaler(), LEARNER, memory="/tmp/cache"), "memory=None"),
    (make_pipeline(OneHotEncoder(feature_name_combiner=lambda name, c: name), LEARNER), "feature_name"),
    (make_pipeline(SimpleImputer(add_indicator=True).fit(GAPPY), LEARNER), "add_indicator"),
    (make_pipeline(OneHotEncoder(min_frequency=2).fit(CODES), LEARNER), "infrequent"),
    (preprocessing.Normalizer() | omkl.river.GraphMKLRegressor(), "step 'Normalizer' cannot be saved.*register"),
    (compose.FuncTransformer(dict) | omkl.river.GraphMKLRegressor(), "cannot be saved"),
    (preprocessing.StandardScaler(window_size=3) | omkl.river.GraphMKLRegressor(), "window_size"),
    (preprocessing.StatImputer(("a", stats.Mode())) | omkl.river.GraphMKLRegressor(), "statistic Mode"),
])  # fmt: skip
def test_what_cannot_be_saved_is_refused_by_name(model: Any, message: str):
    with pytest.raises(TypeError, match=message):
        omkl.to_bytes(model)


# river


RIVER = [
    lambda: preprocessing.StandardScaler(), lambda: preprocessing.StandardScaler(with_std=False),
    lambda: preprocessing.MinMaxScaler(), lambda: preprocessing.MaxAbsScaler(), lambda: compose.Select("a", "b"),
    lambda: compose.Discard("c"), lambda: compose.Discard("a") | preprocessing.OneHotEncoder(),
    lambda: preprocessing.OneHotEncoder(drop_first=True),
    lambda: preprocessing.OneHotEncoder(categories={"a": {1.0}, "b": {"x", None}, "c": {2}}),
    lambda: preprocessing.OneHotEncoder(drop_zeros=True),
    lambda: preprocessing.StatImputer(("a", stats.Mean()), ("b", stats.Min()), ("c", 0.5)),
    lambda: compose.Select("a") | preprocessing.StandardScaler(),
    lambda: compose.Select("a") + (compose.Select("b", "c") | preprocessing.MinMaxScaler()),
    lambda: omkl.river.TableEncoder(),
]  # fmt: skip


@pytest.mark.parametrize("make", RIVER)
def test_a_pipeline_of_river_continues_as_if_it_had_never_been_saved(make: Any):
    model = make() | omkl.river.GraphMKLRegressor(seed=1)
    rows = [dict(zip("abc", row, strict=True)) for row in NUMBERS.round(1).tolist()]
    new = again(model)
    found = None
    for k, (x, y) in enumerate(zip(rows, Y.tolist(), strict=True)):
        if k == ROWS // 2:
            found = again(model)
        for each in (model, new, *([] if found is None else [found])):
            assert each.predict_one(x) == model.predict_one(x)
        for each in (model, new, *([] if found is None else [found])):
            each.learn_one(x, y)
    assert str(found) == str(model)
    assert found.transform_one(rows[0]) == model.transform_one(rows[0]) if hasattr(model, "transform_one") else True
    first, other = next(iter(found.steps.values())), next(iter(model.steps.values()))
    assert first.transform_one(rows[0]) == other.transform_one(rows[0])


def test_delayed_labels_survive_in_a_saved_pipeline():
    model = preprocessing.StandardScaler() | omkl.river.GraphMKLRegressor(seed=1)
    for row, y in zip(NUMBERS.tolist(), Y.tolist(), strict=True):
        model.learn_one(dict(enumerate(row)), y)
    model.predict_one({0: 1.0, 1: 2.0, 2: 0.5}, key="later")
    found = again(model)
    for each in (model, found):
        each["GraphMKLRegressor"].learn_key("later", 1.0)
    assert found.predict_one({0: 1.0}, with_interval=0.9) == model.predict_one({0: 1.0}, with_interval=0.9)


# Files


def refused(content: Content, path: tuple[Any, ...], value: Any) -> None:
    body = copy.deepcopy(content.body)
    at = body
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    with pytest.raises(omkl.ModelFileError):
        omkl.from_bytes(b"".join(pack(content._replace(body=body))))


def refused_array(content: Content, name: str, array: np.ndarray) -> None:
    assert name in content.arrays
    with pytest.raises(omkl.ModelFileError):
        omkl.from_bytes(b"".join(pack(content._replace(arrays=content.arrays | {name: array}))))


def test_files_with_steps_that_cannot_be_are_refused():
    model = make_pipeline(StandardScaler(), PolynomialFeatures(2), SEEDED).fit(NUMBERS, Y)
    content = registry.encode(model)
    scaler = ("steps", 0, 1, "body")
    for path, value in (
        (("steps", 1, 0), "standardscaler"), (("steps",), []), (("steps", 0, 1), "os.system"),
        (("steps", 0, 1), "drop"),
        (("class",), "sklearn.preprocessing.StandardScaler"), ((*scaler, "class"), "PCA"), ((*scaler, "class"), "Step"),
        ((*scaler, "parameters", "with_mean"), 3), ((*scaler, "parameters", "other"), 1),
        ((*scaler, "output"), "shell"),
        ((*scaler, "fitted", "n_features_in_"), 4), ((*scaler, "fitted", "n_features_in_"), -1),
        ((*scaler, "fitted", "mean_"), None), ((*scaler, "fitted", "mean_"), "x"), ((*scaler, "fitted", "scale_"), 1.0),
        ((*scaler, "fitted", "names"), ["a", "b"]), ((*scaler, "fitted", "mean_"), {"array": "<U4"}),
        (("steps", 1, 1, "body", "parameters", "degree"), 3), (("steps", 1, 1, "body", "parameters", "degree"), 10**6),
        (("steps", 1), ["other", "passthrough"]), (("parameters", "memory"), "/tmp"),
        (("steps", 2, 1, "kind"), "stream"),
    ):  # fmt: skip
        refused(content, path, value)
    mean = content.arrays["0.mean_"]
    for array in (mean[:2], mean[None], np.full(3, np.inf), mean.astype(np.int64)):
        refused_array(content, "0.mean_", array)
    refused_array(content, "0.scale_", np.array([1.0, 0.0, 1.0]))
    refused_array(content, "0.scale_", -np.ones(3))


def test_files_with_columns_and_categories_that_cannot_be_are_refused():
    model = make_pipeline(columns(), SEEDED).fit(FRAME, Y)
    content = registry.encode(model)
    body = ("steps", 0, 1, "body")
    text = (*body, "columns", 1, 1, "body", "fitted", "categories_", "list", 0)
    assert content.body["steps"][0][1]["body"]["columns"][1][1]["body"]["class"] == "OneHotEncoder"
    for path, value in (
        ((*text, "cells"), ["x", "y"]), ((*text, "cells"), ["x", "x", "y"]), ((*text, "cells"), []),
        ((*text, "cells", 0), [1]), ((*text, "type"), "<M8[s]"), ((*text, "type"), "<U999999999"),
        ((*body, "columns", 1, 2), {"list": ["unknown"]}), ((*body, "columns", 1, 2), {"list": [99]}),
        ((*body, "columns", 1, 2), {"list": ["a", "b"]}), ((*body, "columns", 0, 0), "text"),
        ((*body, "columns", 3, 0), "rest"), ((*body, "columns", 3, 1), "drop"), ((*body, "sparse"), "no"),
        ((*body, "fitted", "n_features_in_"), 6), ((*body, "parameters", "n_jobs"), 10**6),
    ):  # fmt: skip
        refused(content, path, value)


def test_files_of_river_with_steps_that_cannot_be_are_refused():
    model = (
        preprocessing.StandardScaler() + (compose.Select("a") | preprocessing.MinMaxScaler())
    ) | omkl.river.GraphMKLRegressor()
    for row, y in zip(NUMBERS.tolist(), Y.tolist(), strict=True):
        model.learn_one(dict(zip("abc", row, strict=True)), y)
    content = registry.encode(model)
    scaler = ("steps", 0, 1, "body", "steps", 0, 1, "body")
    values = dict(content.body["steps"][0][1]["body"]["steps"][0][1]["body"]["values"]["mapping"])
    assert set(values) == {"with_std", "counts", "means", "vars"}
    at = {key: k for k, key in enumerate(values)}
    for path, value in (
        ((*scaler, "class"), "Normalizer"), ((*scaler, "values"), 3), (("steps", 1, 0), "TransformerUnion"),
        ((*scaler, "values", "mapping", at["with_std"], 1), "x"),
        ((*scaler, "values", "mapping", at["vars"], 1, "mapping", 0, 1), -1.0),
        ((*scaler, "values", "mapping", at["counts"], 1, "mapping", 0, 1), "many"),
        ((*scaler, "values", "mapping", at["means"], 1, "mapping", 0, 1), {"float": "nan"}),
        ((*scaler, "values", "mapping", at["means"], 1), {"list": []}), (("steps",), []),
        (("steps", 0, 1), content.body["steps"][1][1]),
    ):  # fmt: skip
        refused(content, path, value)
