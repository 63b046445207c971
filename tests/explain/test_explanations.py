"""Explanations: exact sums, known inputs, an exact oracle for Shapley values, and every learner of both APIs."""

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr
from sklearn.inspection import partial_dependence, permutation_importance

import omkl
from omkl import GraphMKLClassifier, GraphMKLRegressor, RakerClassifier, RakerRegressor
from omkl import river as online
from omkl.arrays import Matrix, Vector
from omkl.estimators.sklearn import ESTIMATORS
from omkl.explain import View, explain, importance
from omkl.explain.columns import InputColumn, columns_of

N = 1200


def rows(seed: int = 0, n: int = N, d: int = 6) -> tuple[Matrix, Vector]:
    """A function of three of the inputs: alone, and as a product."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    return X, np.sin(3 * X[:, 1]) + 1.5 * X[:, 3] * X[:, 4] + 0.05 * rng.standard_normal(n)


def homes(n: int = 600) -> tuple[pd.DataFrame, Vector]:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({
        "size": rng.uniform(20, 100, n).round(1), "town": rng.choice(["north", "south", "east"], n),
        "sold": pd.date_range("2024-01-01", periods=n, freq="h"), "noise": rng.uniform(size=n),
    })  # fmt: skip
    table.loc[::9, "size"] = np.nan
    return table, table["size"].fillna(60).to_numpy() + 30.0 * (table["town"] == "south").to_numpy()


@pytest.fixture(scope="module")
def fitted() -> GraphMKLRegressor:
    return GraphMKLRegressor(random_state=0).partial_fit(*rows())


@pytest.fixture(scope="module")
def of_table() -> GraphMKLRegressor:
    return GraphMKLRegressor(random_state=0).partial_fit(*homes())


def assert_sums(explanation: Any, predictions: Any) -> None:
    total = explanation.base + explanation.contributions.sum(axis=1)
    np.testing.assert_allclose(total, predictions, rtol=1e-12, atol=1e-9)
    np.testing.assert_array_equal(explanation.predictions, predictions)


# Contributions


def test_contributions_sum_to_the_predictions(fitted: GraphMKLRegressor):
    X, _ = rows(1, 20)
    assert_sums(fitted.explain(X), fitted.predict(X))


@pytest.mark.parametrize("kind", ESTIMATORS.values(), ids=lambda kind: kind.__name__)
def test_every_learner_is_explained(kind: Any):
    X, y = rows(n=300)
    classifies = kind.task == "classification"
    target = np.where(y > 0.4, "high", np.where(y < -0.4, "low", "mid")) if classifies else y
    model = kind(random_state=0).fit(X, target)
    found = model.explain(X[:3])
    assert_sums(found, model.predict_proba(X[:3]) if classifies else model.predict(X[:3]))
    assert found.outputs == (["high", "low", "mid"] if classifies else [])
    assert list(model.importance_) == sorted(model.importance_, key=lambda name: -model.importance_[name])
    assert sum(expert.weight for expert in model.experts_) == pytest.approx(1)
    assert model.changes_ == []
    assert len(model.effect("1").values) > 10


def test_shapley_values_are_exact_where_columns_act_alone_or_in_pairs_and_close_elsewhere():
    """The oracle sums over all subsets of four inputs, for each row of the background."""

    def of_pairs(X: Matrix) -> Matrix:
        return (X[:, 0] * X[:, 1] + np.exp(X[:, 2]) * X[:, 0] + X[:, 3])[:, None]

    def of_three(X: Matrix) -> Matrix:
        return np.tanh(X[:, 0] * X[:, 1] * X[:, 2] + X[:, 3])[:, None]

    rng = np.random.default_rng(3)
    background, x = rng.normal(size=(32, 4)), rng.normal(size=4)
    columns = [InputColumn(k, np.array([k]), ("",)) for k in range(4)]
    # contributions to tanh are within -2 and 2, so that the standard error of 32 orders is below 2 / sqrt(32)
    for f, tolerance in ((of_pairs, 1e-12), (of_three, 2 / math.sqrt(32))):
        exact = np.zeros(4)
        for k, size in itertools.product(range(4), range(4)):
            for some in itertools.combinations([j for j in range(4) if j != k], size):
                without, known = background.copy(), background.copy()
                without[:, some] = x[list(some)]
                known[:, (*some, k)] = x[[*some, k]]
                exact[k] += float((f(known) - f(without)).mean()) / (4 * math.comb(3, size))
        found = explain(View(f, columns, background), x[None])
        np.testing.assert_allclose(found.contributions[0], exact, atol=tolerance)


def test_a_column_that_is_not_used_has_exactly_nothing():
    view = View(
        lambda X: X[:, :1] ** 2, [InputColumn(k, np.array([k]), ("",)) for k in range(3)],
        np.random.default_rng(0).normal(size=(40, 3)),
    )  # fmt: skip
    assert np.all(explain(view, np.ones((2, 3))).contributions[:, 1:] == 0)
    assert np.all(importance(view)[1:] == 0)


def test_the_importance_of_a_column_that_acts_alone_is_its_standard_deviation():
    X = np.random.default_rng(0).normal(size=(4000, 2))
    view = View(lambda X: 3 * X[:, :1] - X[:, 1:], [InputColumn(k, np.array([k]), ("",)) for k in range(2)], X)
    np.testing.assert_allclose(importance(view)[:, 0], [3, 1], rtol=0.03)


def test_contributions_are_of_columns_and_not_of_features(of_table: GraphMKLRegressor):
    table, _ = homes()
    found = of_table.explain(table[:4])
    assert found.columns == ["size", "town", "sold", "noise"]
    assert_sums(found, of_table.predict(table[:4]))
    assert found.values[1][:2] == [table["size"][1], table["town"][1]]
    assert found.values[0][0] == "missing"
    assert list(of_table.importance_)[:2] == ["size", "town"]
    south, north = (int(np.argmax(table["town"] == name)) for name in ("south", "north"))
    both = of_table.explain(table.iloc[[south, north]]).contributions[:, 1]
    assert both[0] - both[1] == pytest.approx(30, rel=0.15)


def test_columns_of_many_categories_have_one_contribution():
    rng = np.random.default_rng(0)
    users = rng.integers(0, 300, 3000)
    table = pd.DataFrame({"user": [f"u{k}" for k in users], "size": rng.uniform(size=3000)})
    y = (users % 7) + table["size"].to_numpy()
    model = GraphMKLRegressor(random_state=0).partial_fit(table, y)
    found = model.explain(table[-5:])
    assert found.columns == ["size", "user"] or found.columns == ["user", "size"]
    assert_sums(found, model.predict(table[-5:]))
    assert next(iter(model.importance_)) == "user"


def test_one_row_is_explained_as_in_a_frame(of_table: GraphMKLRegressor):
    table, _ = homes()
    one = of_table.explain(table[3:4].to_dict("records")[0])
    many = of_table.explain(table[2:5])
    np.testing.assert_array_equal(one.contributions[0], many.contributions[1])
    assert one.of_row() == many.of_row(1)


def test_several_targets_have_contributions_each():
    X, y = rows(n=400)
    model = GraphMKLRegressor(random_state=0).fit(X, np.column_stack((y, 10 * X[:, 0])))
    found = model.explain(X[:3])
    assert found.contributions.shape == (3, 6, 2)
    assert_sums(found, model.predict(X[:3]))
    first, second = model.importance_.values()
    assert next(iter(first)) == "1"
    assert next(iter(second)) == "0"


def test_background_rows_may_be_given(fitted: GraphMKLRegressor):
    X, _ = rows(1, 40)
    found = fitted.explain(X[:2], background=X[10:11])
    assert found.base.tolist() == [fitted.predict(X[10:11])[0]] * 2
    assert_sums(found, fitted.predict(X[:2]))
    unscaled = RakerRegressor(random_state=0, scale="none").fit(X, X[:, 0])
    with pytest.raises(ValueError, match="give some as background="):
        unscaled.explain(X[:2])
    assert_sums(unscaled.explain(X[:2], background=X), unscaled.predict(X[:2]))


# Against known inputs and scikit-learn


def test_importance_agrees_with_permutation_importance(fitted: GraphMKLRegressor):
    X, y = rows(7, 1000)
    permuted = permutation_importance(fitted, X, y, scoring="neg_mean_squared_error", n_repeats=5, random_state=0)
    ours = np.array([fitted.importance_[str(k)] for k in range(6)])
    assert set(np.argsort(-ours)[:3]) == {1, 3, 4} == set(np.argsort(-permuted.importances_mean)[:3])
    # the error rises by twice the variance that a column accounts for
    np.testing.assert_allclose(np.sqrt(permuted.importances_mean[[1, 3, 4]] / 2), ours[[1, 3, 4]], rtol=0.25)
    absolute = np.abs(fitted.explain(X[:40]).contributions).mean(axis=0)
    assert spearmanr(absolute[[1, 3, 4]], ours[[1, 3, 4]]).statistic > 0


def test_effects_are_partial_dependence(fitted: GraphMKLRegressor):
    X, _ = rows(3, 200)
    found = fitted.effect("1", background=X)
    theirs = partial_dependence(fitted, X, [1], custom_values={1: np.array(found.values)}, kind="average")
    np.testing.assert_allclose(found.mean, theirs["average"][0], rtol=1e-9)
    assert np.all((found.lower <= found.mean) & (found.mean <= found.upper))
    inside = fitted.effect("1", coverage=0.5, background=X)
    assert np.all(inside.upper - inside.lower < found.upper - found.lower)


def test_the_effect_of_a_category(of_table: GraphMKLRegressor):
    found = of_table.effect("town")
    assert found.values == ["east", "north", "south"]
    assert found.mean[2] - found.mean[1] == pytest.approx(30, rel=0.15)
    with pytest.raises(ValueError, match="there is no column 'towns'; the columns are 'size', 'town'"):
        of_table.effect("towns")


def test_learners_without_rows_draw_them_from_their_statistics():
    table, y = homes()
    model = RakerRegressor(random_state=0).partial_fit(table, y)
    first, second, *_ = model.importance_
    assert {first, second} == {"size", "town"}
    assert model.effect("town").values == ["east", "north", "south"]
    assert_sums(model.explain(table[:2]), model.predict(table[:2]))


def test_the_small_budget_has_rows_too():
    X, y = rows()
    model = GraphMKLRegressor(random_state=0, budget="small").partial_fit(X, y)
    core: Any = model.core_
    kept = core.online.look(lambda problem, state: core.online.algorithm.recent_rows(problem, state, 100))
    np.testing.assert_allclose(kept, X[-100:], atol=1e-12)
    few = GraphMKLRegressor(random_state=0, budget="small").partial_fit(X[:50], y[:50])
    core = few.core_
    kept = core.online.look(lambda problem, state: core.online.algorithm.recent_rows(problem, state, 10))
    np.testing.assert_allclose(kept, X[40:50], atol=1e-12)
    assert set(list(model.importance_)[:3]) == {"1", "3", "4"}


# Explanations change nothing, and files keep all that they need


def test_explaining_changes_nothing_and_a_loaded_model_explains_the_same(fitted: GraphMKLRegressor):
    before = omkl.to_bytes(fitted)
    X, _ = rows(1, 3)
    found = fitted.explain(X), fitted.importance_, fitted.experts_, fitted.effect("1").mean.tolist()
    assert omkl.to_bytes(fitted) == before
    loaded: Any = omkl.from_bytes(before)
    again = loaded.explain(X), loaded.importance_, loaded.experts_, loaded.effect("1").mean.tolist()
    assert again[1:] == found[1:]
    np.testing.assert_array_equal(again[0].contributions, found[0].contributions)


def test_a_model_that_has_learned_nothing_says_so():
    with pytest.raises(ValueError, match="not fitted"):
        GraphMKLRegressor().explain(np.zeros((1, 2)))
    with pytest.raises(ValueError, match="learned no row yet"):
        online.GraphMKLRegressor().explain({"a": 1.0})


# The river API


def test_dictionaries_and_frames():
    table, y = homes(300)
    model = online.GraphMKLRegressor(seed=0)
    for x, target in zip(table.to_dict("records"), y.tolist(), strict=True):
        model.learn_one(x, target)
    x = table[5:6].to_dict("records")[0]
    one, many = model.explain(x), model.explain(table[5:7])
    assert_sums(one, [model.predict_one(x)])
    np.testing.assert_array_equal(one.contributions[0], many.contributions[0])
    assert list(model.importance_)[:2] == ["size", "town"]
    plain = online.RakerClassifier(seed=0)
    for k in range(60):
        plain.learn_one({"a": float(k % 7), "b": float(k % 3)}, k % 3 == 1)
    found = plain.explain({"a": 1.0, "b": 1.0})
    assert found.outputs == [False, True]
    np.testing.assert_array_equal(found.predictions[0], list(plain.predict_proba_one({"a": 1.0, "b": 1.0}).values()))
    assert_sums(found, found.predictions)


def test_more_features_than_have_names_of_their_own():
    rng = np.random.default_rng(0)
    model = online.GraphMKLRegressor(seed=0)
    for _ in range(300):
        words = rng.choice(40, 5, replace=False)
        model.learn_one({f"w{k}": 1.0 for k in words}, float(3 * (0 in words) + rng.normal() * 0.1))
    x = {"w0": 1.0, "w7": 1.0}
    found = model.explain(x)
    assert_sums(found, [model.predict_one(x)])
    assert next(iter(found.of_row())) == "w0"


# Changes


def stream(what: str, n: int = 3000) -> tuple[Matrix, Vector]:
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (n, 3))
    y = np.sin(3 * X[:, 0]) + X[:, 1]
    half = slice(n // 2, None)
    if what == "relation":
        y[half] = np.sin(3 * X[half, 2]) - X[half, 1]
    elif what == "target":
        y[half] += 5 - 3 * X[half, 2]
    else:
        X[half, 1] = 10 + 5 * X[half, 1]
    return X, y + 0.05 * rng.standard_normal(n)


@pytest.mark.parametrize(
    ("what", "expected", "inputs"),
    [("relation", ("error",), ()), ("target", ("target",), ()), ("inputs", ("inputs",), ("1",))],
)
def test_changes_say_when_and_what(what: str, expected: tuple[str, ...], inputs: tuple[str, ...]):
    X, y = stream(what)
    model = GraphMKLRegressor(random_state=0)
    for start in range(0, len(X), 250):
        model.partial_fit(X[start : start + 250], y[start : start + 250])
    (change,) = model.changes_
    assert 1500 <= change.row < 1800
    assert change.what == expected
    assert change.inputs == inputs
    loaded: Any = omkl.from_bytes(omkl.to_bytes(model))
    assert loaded.changes_ == [change]


def test_changes_are_noticed_while_single_rows_are_learned():
    X, y = stream("relation", 3000)
    back = np.vstack((X, X[:1500])), np.concatenate((y, y[:1500]))
    model = online.GraphMKLRegressor(seed=0)
    for x, target in zip(*back, strict=True):
        model.learn_one(dict(enumerate(x.tolist())), float(target))
    assert [change.row // 100 for change in model.changes_] == [15, 30]


def test_a_stream_that_does_not_change_has_no_changes(fitted: GraphMKLRegressor):
    assert fitted.changes_ == []
    X, y = rows()
    labels = np.where(y > 0, "a", "b")
    assert GraphMKLClassifier(random_state=0).partial_fit(X, labels, classes=["a", "b"]).changes_ == []
    assert RakerClassifier(random_state=0).fit(X, labels).changes_ == []


# Names


def test_the_features_of_a_column_are_found():
    names = ["a", "a missing", "a:day sin", "b=x", "b=x=y", "b other", "id count of b", "'a=b'", "c"]
    found = columns_of(names, {"a": "a", "b": "b", "'a=b'": "a=b"})
    assert {column.name: column.places.tolist() for column in found} == {
        "a": [0, 1, 2], "b": [3, 4, 5, 6], "a=b": [7], "c": [8],
    }  # fmt: skip
