"""Weights of labels: those of scikit-learn where all rows are known, else of the rows so far, at every interface."""

import json
import math
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command import invoke
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.metrics import roc_auc_score
from sklearn.utils.class_weight import compute_class_weight

import omkl
import omkl.river
from omkl.errors import DivergenceError
from omkl.estimators.class_weights import ClassWeights
from omkl.estimators.river import ESTIMATORS as RIVER
from omkl.estimators.sklearn import ESTIMATORS as SKLEARN
from omkl.fleet import Fleet
from omkl.validation import LARGEST_WEIGHT

CLASSIFIERS = {name: kind for name, kind in SKLEARN.items() if kind.task == "classification"}
SAME = {"GraphMKLClassifier": "graph-mkl", "RakerClassifier": "raker"}  # the learners of the command line
ALL = pytest.mark.parametrize("kind", CLASSIFIERS.values(), ids=CLASSIFIERS)
GIVEN = pytest.mark.parametrize("weights", ["balanced", {"no": 0.7, "yes": 3.5}], ids=["balanced", "mapping"])
NAMES = list("abc")


def data(rows=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3))
    return X, np.where(X[:, 0] + rng.normal(size=rows) > 1.4, "yes", "no")


def so_far(y, weight=None):
    """The weight of each row by the rows up to it, directly."""
    weight = np.ones(len(y)) if weight is None else weight
    out = []
    for t, label in enumerate(y):
        here, w = y[: t + 1], weight[: t + 1]
        present = {each for each, n in zip(here, w, strict=True) if n > 0}
        total = w[here == label].sum()
        out.append(weight[t] * (w.sum() / (len(present) * total)) if weight[t] else 0.0)
    return np.array(out)


# What the weights are


@ALL
@pytest.mark.parametrize("weighted", [False, True])
def test_fit_balances_as_scikit_learn_does(kind, weighted):
    X, y = data()
    weight = np.random.default_rng(1).integers(1, 4, size=len(y)) * 1.0 if weighted else None
    of_label = compute_class_weight("balanced", classes=np.unique(y), y=y, sample_weight=weight)
    row = of_label[(y == "yes").astype(int)] * (1.0 if weight is None else weight)
    expected = kind(random_state=0, epochs=2).fit(X, y, sample_weight=row)
    model = kind(random_state=0, epochs=2, class_weight="balanced").fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(X))


@ALL
def test_streams_balance_by_the_rows_so_far(kind):
    X, y = data()
    weight = np.random.default_rng(1).integers(0, 4, size=len(y)) * 1.0
    for own in (None, weight):
        expected, model = kind(random_state=0), kind(random_state=0, class_weight="balanced")
        p = expected.predict_proba_then_learn(X, y, ["no", "yes"], sample_weight=so_far(y, own))
        np.testing.assert_array_equal(model.predict_proba_then_learn(X, y, ["no", "yes"], sample_weight=own), p)


@ALL
def test_a_mapping_multiplies_and_leaves_labels_that_it_does_not_name(kind):
    X, y = data()
    expected = kind(random_state=0).fit(X, y, sample_weight=np.where(y == "yes", 6.0, 2.0))
    model = kind(random_state=0, class_weight={"yes": 3}).fit(X, y, sample_weight=np.full(len(y), 2.0))
    np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(X))


def test_rows_after_fit_are_counted_with_those_of_fit():
    X, y = data()
    model = omkl.RakerClassifier(random_state=0, class_weight="balanced").fit(X[:80], y[:80])
    model.partial_fit(X[80:], y[80:])
    assert model.core_.class_weights.counts == {label: np.count_nonzero(y == label) for label in ("no", "yes")}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, LARGEST_WEIGHT)), max_size=30))
def test_weights_are_finite_and_labels_have_the_same_weight_in_total(rows):
    assume(any(weight > 0 for _, weight in rows))
    _, weights = ClassWeights("balanced").of_all([label for label, _ in rows], np.array([w for _, w in rows]))
    total: dict[str, float] = {}
    for (label, weight), found in zip(rows, weights, strict=True):
        assert 0 <= found <= LARGEST_WEIGHT
        assert (found == 0) <= (weight < 1e-290)
        total[label] = total.get(label, 0.0) + found
    if rows and max(weight for _, weight in rows) < 1e20 and min(weight for _, weight in rows) > 1e-5:
        np.testing.assert_allclose(list(total.values()), total[rows[0][0]], rtol=1e-9)


# The same everywhere


@GIVEN
@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("meters", [False, True])
def test_river_and_the_command_line_give_the_same_to_the_last_bit(name, weights, meters, tmp_path, monkeypatch):
    """Statistics of the target by `meter`, a column of many categories, count rows by their weights too."""
    monkeypatch.chdir(tmp_path)
    X, y = data()
    frame = pd.DataFrame(X, columns=NAMES)
    if meters:
        frame = frame.assign(meter=[f"m{k}" for k in np.random.default_rng(2).integers(0, 60, size=len(X))])
    rows = frame.to_dict("records")
    frame.assign(y=y).to_csv("d.csv", index=False)
    wanted = f"class_weight={weights if weights == 'balanced' else json.dumps(weights)}"
    run = ["run", "d.csv", "--target", "y", "--learner", SAME[name], "--set", wanted, "--model", "m.omkl"]
    result = invoke(*run, "--predictions", "p.jsonl", "--probabilities")
    assert result.exit_code == 0, result.output
    found = [json.loads(line)["probabilities"] for line in Path("p.jsonl").read_text().splitlines()]
    single, many = (RIVER[name](seed=0, class_weight=weights) for _ in range(2))
    for x, label, p in zip(rows, y.tolist(), found, strict=True):
        assert single.predict_proba_one(x) == (p or {})
        single.learn_one(x, label)
    many.learn_many(frame, y)
    expected = [single.predict_proba_one(x) for x in rows[:9]]
    assert [many.predict_proba_one(x) for x in rows[:9]] == expected
    loaded = omkl.load("m.omkl")
    assert [loaded.predict_proba_one(x) for x in rows[:9]] == expected
    assert loaded.class_weight == weights
    assert single.class_weight == weights


@GIVEN
@ALL
def test_pieces_single_rows_and_keys_of_a_fleet_give_the_same_to_the_last_bit(kind, weights):
    X, y = data()
    model = kind(random_state=0, class_weight=weights)
    whole = clone(model).predict_then_learn(X, y, ["no", "yes"])
    pieces = clone(model)
    found = [pieces.predict_then_learn(X[k : k + 7], y[k : k + 7], ["no", "yes"]) for k in range(0, len(X), 7)]
    np.testing.assert_array_equal(np.concatenate(found), whole)
    single = clone(model).partial_fit(X[:1], y[:1], ["no", "yes"])
    for x, label in zip(X[1:].tolist(), y[1:].tolist(), strict=True):
        single.learn_one({str(k): value for k, value in enumerate(x)}, label)
    np.testing.assert_array_equal(single.predict_proba(X), pieces.predict_proba(X))
    fleet = Fleet(model, seed=0, classes=["no", "yes"])
    fleet.learn_rows(["k"] * 60, X[:60], y[:60])
    alone = Fleet(model, seed=0, classes=["no", "yes"])
    for k in range(60):
        alone.learn_rows(["k"], X[k : k + 1], y[k : k + 1])
    fleet = omkl.from_bytes(omkl.to_bytes(fleet))
    for part in (fleet, alone):
        part.learn_rows(["k"] * 60, X[60:], y[60:])
    assert omkl.to_bytes(fleet["k"].core_.online) == omkl.to_bytes(alone["k"].core_.online)
    assert fleet["k"].core_.class_weights == alone["k"].core_.class_weights
    plain = Fleet(kind(), seed=0, classes=["no", "yes"])
    plain.learn_rows(["k"] * 120, X, y)
    assert omkl.to_bytes(plain["k"].core_.online) != omkl.to_bytes(fleet["k"].core_.online)


# Files


@GIVEN
@pytest.mark.parametrize("kind", [*CLASSIFIERS.values(), omkl.river.RakerClassifier, omkl.river.GraphMKLClassifier])
def test_a_saved_model_continues_where_it_was(kind, weights):
    X, y = data()
    frames = [pd.DataFrame(part, columns=NAMES) for part in (X[:80], X[80:])]
    model = kind(class_weight=weights)
    if kind in CLASSIFIERS.values():
        model.partial_fit(frames[0], y[:80], classes=["no", "yes"])
    else:
        model.learn_many(frames[0], y[:80])
    loaded = omkl.from_bytes(omkl.to_bytes(model))
    assert loaded.class_weight == weights
    for each in (model, loaded):
        (each.partial_fit if kind in CLASSIFIERS.values() else each.learn_many)(frames[1], y[80:])
    assert omkl.to_bytes(loaded) == omkl.to_bytes(model)


def test_the_command_line_continues_where_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = data()
    frame = pd.DataFrame(X, columns=NAMES).assign(y=y)
    for name, part in (("all.csv", frame), ("first.csv", frame[:80]), ("second.csv", frame[80:])):
        part.to_csv(name, index=False)
    wanted = ["--target", "y", "--set", "class_weight=balanced"]
    whole, first = (["run", f"{data}.csv", *wanted, "--model", f"{data}.omkl"] for data in ("all", "first"))
    for command in (whole, first, ["learn", "first.omkl", "second.csv"]):
        result = invoke(*command)
        assert result.exit_code == 0, result.output
    assert omkl.to_bytes(omkl.load("all.omkl")) == omkl.to_bytes(omkl.load("first.omkl"))


@pytest.mark.parametrize("weights", ["balanced", {0: 2.0, 1: 9.0}], ids=["balanced", "mapping"])
def test_an_estimator_of_numbered_labels_goes_on_at_the_command_line(tmp_path, monkeypatch, weights):
    monkeypatch.chdir(tmp_path)
    X, y = data()
    numbers = (y == "yes").astype(int)
    frame = pd.DataFrame(X, columns=NAMES)
    model = omkl.RakerClassifier(random_state=0, class_weight=weights)
    omkl.save(model.partial_fit(frame[:80], numbers[:80], classes=[0, 1]), "m.omkl")
    frame.assign(y=numbers)[80:].to_csv("second.csv", index=False)
    result = invoke("learn", "m.omkl", "second.csv", "--target", "y")
    assert result.exit_code == 0, result.output
    model.partial_fit(frame[80:], numbers[80:])
    loaded = omkl.load("m.omkl")
    np.testing.assert_array_equal(loaded.predict_proba(frame), model.predict_proba(frame))
    assert loaded.class_weight == (weights if weights == "balanced" else {"0": 2.0, "1": 9.0})


# What is refused

REFUSED = ["balance", 5, ["no", "yes"], {"yes": -1}, {"yes": math.nan}, {"yes": math.inf}, {"yes": 2 * LARGEST_WEIGHT},
           {"yes": "much"}, {None: 1.0}, {math.nan: 1.0}]  # fmt: skip


@pytest.mark.parametrize("weights", REFUSED, ids=repr)
def test_what_is_no_weight_is_refused_with_what_is_wanted(weights):
    X, y = data()
    with pytest.raises(ValueError, match=r"class_weight must be None, 'balanced', or a weight"):
        omkl.RakerClassifier(class_weight=weights).fit(X, y)
    with pytest.raises(ValueError, match=r"class_weight must be None, 'balanced', or a weight"):
        omkl.river.RakerClassifier(class_weight=weights)


def test_weights_of_which_none_is_above_0_are_refused():
    X, y = data()
    with pytest.raises(ValueError, match="class_weight must be above 0 for a label in y"):
        omkl.RakerClassifier(class_weight={"no": 0, "yes": 0}).fit(X, y)


def test_weights_of_labels_that_are_none_are_refused_while_others_have_none():
    X, y = data()
    with pytest.raises(ValueError, match=r"class_weight has weights of \['yse'\].*none of \['yes'\]"):
        omkl.RakerClassifier(class_weight={"no": 1, "yse": 5}).fit(X, y)
    omkl.RakerClassifier(class_weight={"no": 1, "yes": 5, "maybe": 2}).fit(X, y)  # as scikit-learn


@pytest.mark.parametrize(
    ("target", "given", "message"),
    [
        ("label", "class_weight=balancd", "class_weight must be None, 'balanced'"),
        ("label", "class_weigth=balanced", "did you mean 'class_weight'"),
        ("number", "class_weight=balanced", "class_weight is for labels"),
    ],
)
def test_the_command_line_refuses_what_it_cannot_use(tmp_path, monkeypatch, target, given, message):
    monkeypatch.chdir(tmp_path)
    X, y = data()
    frame = pd.DataFrame(X, columns=NAMES)
    frame.assign(y=y if target == "label" else X[:, 0]).to_csv("d.csv", index=False)
    result = invoke("run", "d.csv", "--target", "y", "--set", given)
    assert result.exit_code == 2
    assert message in result.output


def test_a_weight_of_a_label_that_does_not_come_is_noticed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = data()
    pd.DataFrame(X, columns=NAMES).assign(y=y).to_csv("d.csv", index=False)
    result = invoke("run", "d.csv", "--target", "y", "--learner", "raker", "--set", 'class_weight={"yse": 5}')
    assert "class_weight has a weight of 'yse', which did not come, did you mean 'yes'?" in result.output


def test_a_chunk_that_is_refused_is_not_counted(monkeypatch):
    X, y = data()
    model = omkl.RakerClassifier(random_state=0, class_weight="balanced").partial_fit(X[:50], y[:50], ["no", "yes"])
    before = dict(model.core_.class_weights.counts)

    def diverge(*rows):
        raise DivergenceError("diverged")

    monkeypatch.setattr(model.core_, "learn_features", diverge)
    with pytest.raises(DivergenceError):
        model.partial_fit(X[50:], y[50:])
    assert model.core_.class_weights.counts == before


# What they are good for


@pytest.fixture(scope="module")
def rare():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 4))
    y = (rng.random(5000) < 1 / (1 + np.exp(5.6 - X @ [1.5, -1, 0.8, 0]))).astype(int)
    return X, y


@pytest.mark.parametrize("kind", [omkl.GraphMKLClassifier, omkl.RakerClassifier])
def test_balanced_labels_find_rare_ones_and_rank_rows_no_worse(rare, kind):
    X, y = rare
    plain, balanced = (kind(random_state=0, class_weight=w).fit(X[:3000], y[:3000]) for w in (None, "balanced"))
    p, q = (model.predict_proba(X[3000:])[:, 1] for model in (plain, balanced))
    assert roc_auc_score(y[3000:], q) > roc_auc_score(y[3000:], p) - 0.005
    rare_rows = y[3000:] == 1
    assert (p[rare_rows] > 0.5).mean() < 0.3
    assert (q[rare_rows] > 0.5).mean() > 0.7


def test_heavy_rows_rank_as_their_copies_do():
    """Sixty rows of 3,000 have a weight of 25; their copies come in a row."""
    X, y = make_classification(
        7000, n_features=10, n_informative=4, n_redundant=2, weights=[0.98], flip_y=0.005, random_state=2
    )
    labels = y[:3000]
    copies = np.repeat(np.arange(3000), np.where(labels == 1, 25, 1))
    heavy = omkl.GraphMKLClassifier(random_state=2)
    heavy.partial_fit(X[:3000], labels, [0, 1], sample_weight=np.where(labels == 1, 25.0, 1.0))
    copied = omkl.GraphMKLClassifier(random_state=2).partial_fit(X[copies], y[copies], [0, 1])
    a, b = (roc_auc_score(y[3000:], model.predict_proba(X[3000:])[:, 1]) for model in (heavy, copied))
    assert a == pytest.approx(b, abs=0.01)


def test_no_warning_for_weights(rare):
    X, y = rare
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        omkl.RakerClassifier(random_state=0, class_weight="balanced").partial_fit(X[:300], y[:300], [0, 1])
