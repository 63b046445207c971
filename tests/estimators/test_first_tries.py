"""What people try first: unusual names and types, structs, other kinds of tables, and messages that say what to do."""

import uuid
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import omkl
import omkl.river
from omkl.estimators.columns import Columns, limits_of
from omkl.names import id_features

N = 80
RNG = np.random.default_rng(7)
NUMBERS, TARGETS = RNG.normal(size=(2, N))
WORDS = [["red", "green", "blue"][k] for k in RNG.integers(0, 3, N)]


def test_columns_whose_names_are_no_text_are_used_under_their_text():
    table = pd.DataFrame({0: NUMBERS, 1: WORDS})
    model = omkl.SFGMKLRegressor(random_state=0).fit(table, TARGETS)
    named = omkl.SFGMKLRegressor(random_state=0).fit(table.set_axis(["0", "1"], axis=1), TARGETS)
    np.testing.assert_array_equal(model.predict(table), named.predict(table.set_axis(["0", "1"], axis=1)))
    assert model.feature_names_in_.tolist() == ["0", "1"]
    two_levels = table.set_axis(pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")]), axis=1)
    model.fit(two_levels, TARGETS).predict(two_levels)


def test_intervals_and_other_types_of_cells_are_text():
    size = pd.cut(pd.Series(np.arange(N, dtype=float)), 3)
    table = pd.DataFrame({"size": size, "id": [uuid.UUID(int=(0xAB << 120) + k % 2) for k in range(N)]})
    same = pd.DataFrame({"size": size.astype(str).astype("category"), "id": table["id"].map(str)})
    found = [omkl.SFGMKLRegressor(random_state=0).fit(each, TARGETS).predict(each) for each in (table, same)]
    np.testing.assert_array_equal(*found)


def test_structs_are_columns_at_every_interface():
    rows = [{"a": float(k), "o": {"p": k % 7, "q": {"r": WORDS[k]}} if k % 5 else None} for k in range(N)]
    flat = [
        {"a": row["a"], "o.p": row["o"] and row["o"]["p"], "o.q.r": row["o"] and row["o"]["q"]["r"]} for row in rows
    ]
    wanted = omkl.SFGMKLRegressor(random_state=0).predict_then_learn(pa.Table.from_pylist(flat), TARGETS)
    for table in (pa.Table.from_pylist(rows), pl.DataFrame(rows), pd.DataFrame(rows)):
        model = omkl.SFGMKLRegressor(random_state=0)
        np.testing.assert_array_equal(model.predict_then_learn(table, TARGETS), wanted)
    single = omkl.river.SFGMKLRegressor(seed=0)
    for row, y, prediction in zip(rows, TARGETS, wanted, strict=True):
        assert single.predict_one(row) == prediction
        single.learn_one(row, y)


def test_a_record_batch_is_a_table_and_what_is_none_is_refused_with_advice():
    table = pa.table({"a": NUMBERS, "b": WORDS})
    model = omkl.SFGMKLRegressor(random_state=0)
    wanted = model.fit(table, TARGETS).predict(table)
    np.testing.assert_array_equal(model.fit(table.to_batches()[0], TARGETS).predict(table), wanted)
    with pytest.raises(TypeError, match="call collect"):
        model.fit(pl.DataFrame({"a": [1.0]}).lazy(), [1.0])
    with pytest.raises(ValueError, match=r"could not convert string to float: 'a'; text.*in the columns of a frame"):
        model.fit(np.array([["a", 1.0]], dtype=object), [1.0])
    with pytest.raises(ValueError, match="X has 0 rows"):
        model.fit(table[:0], [])
    with pytest.raises(ValueError, match="two columns have the same name"):
        model.fit(pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]), [1.0])
    with pytest.raises(ValueError, match=r"a label must be .* got None in row 1"):
        omkl.SFGMKLClassifier().fit([[1.0], [2.0]], ["a", None])
    single = omkl.river.SFGMKLRegressor(seed=0)
    with pytest.raises(TypeError, match=r"x must be a dictionary of features.*got Series; use x.to_dict\(\)"):
        single.learn_one(pd.Series({"a": 1.0}), 1.0)
    single.learn_one(MappingProxyType({"a": 1.0}), 1.0)
    with pytest.raises(TypeError, match="got list"):
        single.predict_one([1.0])


def test_what_belongs_elsewhere_is_refused_with_its_place():
    for y in (WORDS, np.array(WORDS), pd.Series(WORDS), pl.Series(WORDS)):
        for X in (NUMBERS[:, None], pd.DataFrame({"a": WORDS})):
            with pytest.raises(ValueError, match=r"y holds text such as '\w+', and SFGMKLRegressor predicts numbers"):
                omkl.SFGMKLRegressor().fit(X, y)
    omkl.SFGMKLRegressor().fit(NUMBERS[:, None], [str(value) for value in TARGETS])  # numbers as text are numbers
    single = omkl.river.SFGMKLRegressor(seed=0)
    with pytest.raises(ValueError, match="got 'red'; labels are for a classifier"):
        single.learn_one({"a": 1.0}, "red")  # type: ignore[arg-type]  # the mistake
    with pytest.raises(TypeError, match=r"X must be a frame .* got list; pandas.DataFrame\(X\) makes one"):
        single.learn_many([{"a": 1.0}], [1.0])  # type: ignore[arg-type]  # the mistake
    with pytest.raises(TypeError, match="path must be the name of a file, got int"):
        omkl.load(3)  # type: ignore[arg-type]  # the mistake


def test_arrays_that_skip_the_validation_of_scikit_learn_are_learned_as_others_are():
    X, y = RNG.normal(size=(N, 3)), RNG.normal(size=N)
    quick, slow = (omkl.SFGMKLRegressor(random_state=0).partial_fit(X[:50], y[:50]) for _ in range(2))
    for k in range(50, N):
        assert quick.predict(X[k : k + 1]) == slow.predict(X[k : k + 1].tolist())
        quick.partial_fit(X[k : k + 1], y[k : k + 1])
        slow.partial_fit(X[k : k + 1].tolist(), y[k : k + 1].tolist())
    assert omkl.to_bytes(quick) == omkl.to_bytes(slow)
    labels, other = (omkl.SFGMKLClassifier(random_state=0) for _ in range(2))
    labels.partial_fit(X[:50], y[:50] > 0, classes=[False, True]).partial_fit(X[50:], y[50:] > 0)
    other.partial_fit(X[:50], y[:50] > 0, classes=[False, True]).partial_fit(X[50:].tolist(), (y[50:] > 0).tolist())
    assert omkl.to_bytes(labels) == omkl.to_bytes(other)
    for wrong in (np.full((1, 3), np.nan), np.ones((1, 4)), np.ones((0, 3)), np.ones(3)):
        with pytest.raises(ValueError):
            quick.predict(wrong)
    for wrong in (np.array([np.inf]), np.ones(2), np.ones((1, 2))):
        with pytest.raises(ValueError):
            quick.partial_fit(X[:1], wrong)
    with pytest.warns(UserWarning, match="feature names"):
        omkl.SFGMKLRegressor().fit(pd.DataFrame({"a": NUMBERS}), TARGETS).predict(np.ones((1, 1)))


# Weights of labels can be changed


@pytest.mark.parametrize("weight", [{"a": 3.0, "b": 1.0}, "balanced", None])
def test_class_weight_that_is_changed_counts_from_the_next_row(weight: Any):
    X, y = RNG.normal(size=(N, 2)), np.where(RNG.random(N) < 0.2, "a", "b")
    rows = [{"0": row[0], "1": row[1]} for row in X.tolist()]
    start = "balanced" if weight is None else None
    model = omkl.SFGMKLClassifier(random_state=0, class_weight=start).partial_fit(X[:40], y[:40], classes=["a", "b"])
    counts = dict(model.core_.class_weights.counts)
    model.set_params(class_weight=weight).partial_fit(X[40:], y[40:])
    if weight == "balanced":
        given = np.array([(y[40 : k + 1] != "").sum() / (len(set(y[40 : k + 1])) * (y[40 : k + 1] == y[k]).sum())
                          for k in range(40, N)])  # fmt: skip
    else:
        given = np.array([1.0 if weight is None else weight[label] for label in y[40:]])
        assert model.core_.class_weights.counts == counts
    other = omkl.SFGMKLClassifier(random_state=0, class_weight=start).partial_fit(X[:40], y[:40], classes=["a", "b"])
    other.set_params(class_weight=None).partial_fit(X[40:], y[40:], sample_weight=given)
    np.testing.assert_array_equal(model.predict_proba(X), other.predict_proba(X))

    single, many = (omkl.river.SFGMKLClassifier(seed=0, class_weight=start) for _ in range(2))
    for each in (single, many):
        each.learn_many(pd.DataFrame(rows[:40]), y[:40].tolist())
        each.mutate({"class_weight": weight})
    many.learn_many(pd.DataFrame(rows[40:]), y[40:].tolist())
    for row, label in zip(rows[40:], y[40:].tolist(), strict=True):
        single.learn_one(row, label)
    assert omkl.to_bytes(single) == omkl.to_bytes(many)
    with pytest.raises(ValueError, match="which are no labels"):
        model.set_params(class_weight={"c": 2.0}).partial_fit(X, y)


# Statistics of categories never share a column


def test_statistics_have_columns_of_their_own_behind_all_others():
    limits = limits_of("sfg-mkl")
    columns = Columns([f"n{k}" for k in range(20)], limits).with_late([f"w{k}" for k in range(limits.own)])
    names = id_features("user", 1)
    more = columns.with_late([*names, "word"])
    places = [more.place(name) for name in names]
    assert None not in places
    assert len({*places, more.place("word")}) == 4 == len({*places} - {columns.place(f"w{k}") for k in range(600)}) + 1
    assert set(names) <= set(more.own)
    assert "word" not in more.own
    assert all(columns.place(name) is None for name in names)
    assert more.number <= more.named + limits.most
    full = more.with_late([f"id mean of c{k}" for k in range(2 * limits.statistics)])
    assert full.statistics == limits.statistics
    assert full.place("id mean of another") == full.index.get(full.shared_name("id mean of another"))


# Categories that come late


def test_a_category_that_comes_after_the_first_rows_leaves_the_random_features_as_they_are():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(400, 18)), columns=[f"x{k}" for k in range(18)])
    frame["town"] = np.where(np.arange(400) % 2, "north", "south")
    frame.loc[300::2, "town"] = "late"
    model = omkl.GraphMKLRegressor(random_state=0).partial_fit(frame[:300], frame["x0"][:300])
    V = model.core_.online.problem.V
    y = frame["x0"] + 5.0 * (frame["town"] == "late")
    model.partial_fit(frame[300:], y[300:])
    assert model.core_.online.problem.V is V or np.array_equal(model.core_.online.problem.V, V)
    assert "town=late" in model.core_.names
    late, other = frame[398:399], frame[398:399].assign(town="north")
    assert 3 < model.predict(late)[0] - model.predict(other)[0] < 7


def test_an_option_that_a_model_of_river_does_not_know_is_refused():
    regressor, classifier = omkl.river.GraphMKLRegressor(seed=0), omkl.river.GraphMKLClassifier(seed=0)
    regressor.learn_one({"a": 1.0}, 1.0)
    classifier.learn_one({"a": 1.0}, "x")
    with pytest.raises(ValueError, match="with_dist and with_interval cannot be combined"):
        regressor.predict_one({"a": 1.0}, with_dist=True, with_interval=0.9)  # type: ignore[call-overload]  # refused, which is tested
    for predict in (classifier.predict_one, classifier.predict_proba_one):
        with pytest.raises(TypeError, match="'with_interval' is no option of a classifier"):
            predict({"a": 1.0}, with_interval=0.9)


def test_an_array_in_place_of_a_frame_is_refused_with_advice():
    with pytest.raises(TypeError, match="got ndarray; pandas"):
        omkl.river.GraphMKLRegressor().learn_many(np.ones((3, 2)), [1.0, 2.0, 3.0])  # type: ignore[type-var]  # refused, which is tested


@pytest.mark.parametrize("kernels", ["few", [omkl.Gaussian(1.0)]], ids=["few", "one"])
def test_sfg_mkl_evaluates_all_kernels_where_there_are_fewer_than_seven(kernels: Any):
    X, y = np.random.default_rng(0).normal(size=(2, 40, 1))
    model = omkl.SFGMKLRegressor(kernels=kernels, random_state=0).fit(X, y.ravel())
    chosen = omkl.SFGMKLRegressor(kernels=kernels, out_degree=len(model.kernels_), random_state=0).fit(X, y.ravel())
    assert (model.predict(X) == chosen.predict(X)).all()
    few = omkl.from_bytes(omkl.to_bytes(model))
    assert few.get_params()["out_degree"] is None
    assert (few.predict(X) == model.predict(X)).all()
    with pytest.raises(ValueError, match="out_degree must be between 1 and"):
        omkl.SFGMKLRegressor(kernels=kernels, out_degree=7).fit(X, y.ravel())
