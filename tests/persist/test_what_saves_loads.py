"""Whatever `omkl.save` accepts loads again to an equal model; what could not be loaded is refused when it is saved."""

import contextlib
import copy
import datetime
import enum
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streams import as_many_as_taken

import omkl
import omkl.river
from omkl import persist
from omkl.estimators.sklearn import ESTIMATORS
from omkl.fleet import Fleet

KERNELS = [omkl.Gaussian(0.5), omkl.Matern(2.0)]
NAMES = sorted(ESTIMATORS)
REGRESSORS = [name for name in NAMES if name.endswith("Regressor")]
CLASSIFIERS = [name for name in NAMES if name.endswith("Classifier")]


class Colour(enum.StrEnum):
    RED = "red"


class Number(enum.IntEnum):
    ONE = 1


NO_LABELS = [None, math.nan, math.inf, [1], (1, 2), {"a": 1}, b"bytes", Colour.RED, Number.ONE, object(), 10**400, {1},
             np.datetime64("2020-01-01"), np.float64("nan"), 1j]  # fmt: skip
A_LABEL = st.one_of(
    st.text(max_size=5), st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False), st.booleans(),
    st.sampled_from([np.int64(3), np.float32(0.1), np.str_("n"), np.bool_(True), -0.0, 0, 1, True, 1.0, "\ud800",
                     "x" * 10**5]),
)  # fmt: skip


def new(api: Any, name: str, **more: Any) -> Any:
    known = {"n_features": 2, "out_degree": 2, "draws": 2, "warm_up": 3, "budget": 50}
    kind = getattr(api, name)
    taken = {n: v for n, v in known.items() if n in kind.__dataclass_fields__}
    return kind(kernels=as_many_as_taken(kind, KERNELS), **taken, **more)


def same_file(a: Any, b: Any) -> bool:
    return omkl.to_bytes(a) == omkl.to_bytes(b)


def can_be_saved(model: Any) -> bool:
    with contextlib.suppress(ValueError):
        omkl.to_bytes(model)
        return True
    with pytest.raises(ValueError, match="cannot be saved, because it could not be loaded again"):
        omkl.to_bytes(model)
    return False


def loaded(model: Any, compact: bool, tmp_path_factory: Any) -> Any:
    if compact:
        return omkl.from_bytes(omkl.to_bytes(model))
    path = tmp_path_factory.mktemp("model") / "model.omkl"
    omkl.save(model, path)
    again = omkl.load(path)
    omkl.save(again, path.with_suffix(".again"))
    assert path.read_bytes() == path.with_suffix(".again").read_bytes()
    return again


# Equal models

SIZES = st.floats(allow_nan=False, allow_infinity=False)
ROWS = st.lists(st.tuples(SIZES, SIZES, SIZES), min_size=1, max_size=6)


@settings(max_examples=60)
@given(name=st.sampled_from(NAMES), compact=st.booleans(), rows=ROWS, labels=st.lists(A_LABEL, min_size=1, max_size=6))
def test_a_river_model_that_can_be_saved_is_the_same_when_loaded(
    name: str, compact: bool, rows: Any, labels: Any, tmp_path_factory: Any
):
    model = new(omkl.river, name, seed=1)
    for k, (u, v, y) in enumerate(rows):
        try:
            model.predict_one({"u": u, 3: v}, key=k)
            model.learn_one({"u": u, "v": v}, y if name in REGRESSORS else labels[k % len(labels)])
        except (ValueError, omkl.DivergenceError):
            continue
    if not can_be_saved(model):
        return
    again = loaded(model, compact, tmp_path_factory)
    assert same_file(again, model)
    assert again._waiting == model._waiting
    for row in ({"u": 0.5, "v": 1.0}, {"u": -3.0}):
        one, other = ((m.predict_one if name in REGRESSORS else m.predict_proba_one)(row) for m in (model, again))
        assert one == other
        assert repr(one) == repr(other)  # labels of the same types too


LABEL_ARRAYS = st.one_of(
    st.lists(st.text(max_size=4), min_size=2, max_size=8).map(np.array),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=8).map(np.array),
    st.lists(st.booleans(), min_size=2, max_size=8).map(np.array),
    st.lists(st.integers(0, 200), min_size=2, max_size=8).map(lambda y: np.array(y, dtype=np.uint8)),
    st.lists(st.integers(0, 9), min_size=2, max_size=8).map(lambda y: np.array(y, dtype=np.float32)),
    st.lists(st.text(max_size=4), min_size=2, max_size=8).map(lambda y: np.array(y, dtype=object)),
)


@settings(max_examples=60)
@given(name=st.sampled_from(NAMES), compact=st.booleans(), rows=ROWS, labels=LABEL_ARRAYS, fleet=st.booleans())
def test_a_model_or_fleet_that_can_be_saved_is_the_same_when_loaded(
    name: str, compact: bool, rows: Any, labels: Any, fleet: bool, tmp_path_factory: Any
):
    X = np.array([row[:2] for row in rows])
    y = np.array([row[2] for row in rows]) if name in REGRESSORS else np.resize(labels, len(X))
    keys = ["\ud800", 3][: len(X)] * len(X)
    try:
        if fleet:
            model: Any = Fleet(new(omkl, name), seed=1, classes=None if name in REGRESSORS else labels)
            model.learn_rows(keys[: len(X)], X, y)
        else:
            classes = {} if name in REGRESSORS else {"classes": np.unique(labels)}
            model = new(omkl, name, random_state=1).partial_fit(X, y, **classes)
    except (ValueError, omkl.DivergenceError):
        return
    if not can_be_saved(model):
        return
    again = loaded(model, compact, tmp_path_factory)
    assert same_file(again, model)
    Z = np.array([[0.5, 1.0], [-3.0, 0.0]])
    one, other = (m.predict_rows(["new", 3], Z) if fleet else m.predict(Z) for m in (model, again))
    np.testing.assert_array_equal(one, other, strict=True)


@pytest.mark.parametrize("name", NAMES)
def test_numpys_numbers_as_parameters_are_saved(name: str):
    kind = getattr(omkl, name)
    given = {"n_features": np.int64(2), "ridge": np.float32(0.01), "out_degree": np.int16(1), "refine": np.bool_(False),
             "learning_rate": np.float32(0.1), "steps": [np.float32(0.5)], "orders": (np.int64(1), None)}  # fmt: skip
    taken = {n: v for n, v in given.items() if n in kind.__dataclass_fields__}
    model = kind(kernels=as_many_as_taken(kind, KERNELS), **taken, random_state=0)
    X = np.random.default_rng(0).normal(size=(10, 2))
    model.fit(X, X[:, 0] if name in REGRESSORS else np.arange(10) % 2)
    assert same_file(omkl.from_bytes(omkl.to_bytes(model)), model)
    assert np.array_equal(omkl.from_bytes(omkl.to_bytes(model)).predict(X), model.predict(X))


def test_a_wider_array_of_strings_keeps_its_type_and_long_labels_load():
    X = np.random.default_rng(0).normal(size=(10, 2))
    for labels in (np.array(["a", "b"], dtype="<U50"), np.array(["a", "b" * 20_000])):
        model = new(omkl, "RakerClassifier", random_state=0).fit(X, np.resize(labels, 10))
        again = omkl.from_bytes(omkl.to_bytes(model))
        np.testing.assert_array_equal(again.classes_, model.classes_, strict=True)


# What cannot be loaded cannot be saved


class OwnRegressor(omkl.RakerRegressor):
    pass


class OwnRiver(omkl.river.RakerRegressor):
    pass


class OwnOnline(omkl.Online):
    pass


SUBCLASSES = [OwnRegressor, OwnRiver, lambda: OwnOnline.make("raker", omkl.Settings(), 2)]


@pytest.mark.parametrize("make", SUBCLASSES, ids=["sklearn", "river", "online"])
def test_a_subclass_is_refused_with_the_reason(make: Any, tmp_path: Any):
    model = make()
    with pytest.raises(TypeError, match=f"{type(model).__name__} is a subclass of .*: a model file executes nothing"):
        omkl.save(model, tmp_path / "model.omkl")
    assert not list(tmp_path.iterdir())


def test_a_subclass_with_a_codec_of_its_own_is_saved():
    def encode(model: OwnRegressor, compact: bool) -> tuple[Any, Any]:
        return {}, {}

    persist.register("own", persist.Codec((OwnRegressor,), encode, lambda body, arrays: OwnRegressor()))
    try:
        assert type(omkl.from_bytes(omkl.to_bytes(OwnRegressor()))) is OwnRegressor
    finally:
        del persist.registry._CODECS["own"]


def test_a_fleet_of_a_subclass_is_refused():
    with pytest.raises(TypeError, match="learner must be an estimator of omkl's scikit-learn API"):
        Fleet(OwnRegressor())


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("OMKRRegressor",)])
def test_a_state_that_is_not_finite_is_refused(name: str):
    X = np.random.default_rng(0).normal(size=(20, 2))
    model = new(omkl, name, random_state=0).fit(X, X[:, 0] if name in REGRESSORS else np.arange(20) % 2)
    online = model.core_.online
    checkpoint = online.checkpoint()
    leaves = omkl.arrays.leaves(checkpoint.state)
    for which, leaf in leaves.items():
        if (
            not isinstance(leaf, np.ndarray)
            or leaf.dtype != np.float64
            or which.endswith((".mean", ".first.X", "archive.X"))
        ):
            continue
        if not leaf.size:  # there are no sparse inputs
            continue
        if which.endswith("archive.y") and name not in REGRESSORS:  # the engine itself refuses what is no label
            continue
        broken = copy.deepcopy(checkpoint.state)
        omkl.arrays.leaves(broken)[which].flat[0] = np.nan
        online.restore(checkpoint._replace(state=broken))
        with pytest.raises(ValueError, match="cannot be saved, because it could not be loaded again"):
            omkl.to_bytes(model)
    online.restore(checkpoint)
    omkl.to_bytes(model)


def test_statistics_that_are_not_finite_are_refused():
    X = np.random.default_rng(0).normal(size=(20, 2))
    model = new(omkl, "RakerRegressor", random_state=0).fit(X, X[:, 0])
    for scaler in model.core_.scalers().values():
        before = scaler.stats.copy()
        for value in (np.nan, np.inf, -1.0):
            scaler.stats[2, 0] = value
            with pytest.raises(ValueError, match="cannot be saved"):
                omkl.to_bytes(model)
        scaler.restore(before)
    omkl.to_bytes(model)


IMPOSSIBLE = [{"n_features": -1}, {"scale": "both"}, {"random_state": -1}, {"learning_rate": np.nan}, {"kernels": [3]},
              {"horizon": 2**70}, {"ridge": [1]}]  # fmt: skip


@pytest.mark.parametrize("given", IMPOSSIBLE, ids=str)
def test_parameters_that_no_model_can_have_are_refused(given: dict[str, Any]):
    with pytest.raises((ValueError, TypeError)):
        omkl.to_bytes(omkl.RakerRegressor(**given))


# Labels


@pytest.mark.parametrize(
    "label",
    NO_LABELS,
    ids=lambda label: f"{type(label).__name__} {label}"[:40] if type(label) is not object else "object",
)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_what_is_no_label_is_refused_by_river_and_changes_nothing(name: str, label: Any):
    pandas = pytest.importorskip("pandas", reason="river learns frames of pandas")
    fresh, model = new(omkl.river, name, seed=1), new(omkl.river, name, seed=1)
    for k in range(6):
        model.learn_one({"u": k / 6}, "ab"[k % 2])
    model.predict_one({"u": 0.5}, key="late")
    for each in (fresh, model):
        before = omkl.to_bytes(each)
        with pytest.raises(ValueError, match="a label must be"):
            each.learn_one({"u": 1.0, "new": 2.0}, label)
        with pytest.raises(ValueError, match="a label must be"):
            each.learn_many(pandas.DataFrame({"u": [1.0, 2.0], "new": 0.0}), ["a", label])
        assert omkl.to_bytes(each) == before
    with pytest.raises(ValueError, match="a label must be"):
        model.learn_key("late", label)
    assert omkl.to_bytes(model) == before


@pytest.mark.parametrize(
    "label",
    [None, [1], (1, 2), Colour.RED, math.nan],
    ids=lambda label: f"{type(label).__name__} {label}"[:40] if type(label) is not object else "object",
)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_what_is_no_label_is_refused_by_scikit_learns_interface_and_by_fleets(name: str, label: Any):
    X = np.random.default_rng(0).normal(size=(4, 2))
    y = np.empty(4, dtype=object)
    y[:] = ["a", "b", "a", label]
    model = new(omkl, name, random_state=0).partial_fit(X, ["a", "b", "a", "b"], classes=["a", "b"])
    fleet = Fleet(new(omkl, name), seed=0, classes=["a", "b"])
    fleet.learn_rows(["k"] * 4, X, ["a", "b", "a", "b"])
    before = omkl.to_bytes(model), omkl.to_bytes(fleet)
    with pytest.raises((ValueError, TypeError)):
        new(omkl, name).fit(X, y)
    with pytest.raises((ValueError, TypeError)):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match="label"):
        fleet.learn_rows(["k", "new", "k", "new"], X, y)
    with pytest.raises((ValueError, TypeError)):
        Fleet(new(omkl, name), classes=y)
    assert (omkl.to_bytes(model), omkl.to_bytes(fleet)) == before


def test_labels_that_are_equal_are_one_label():
    model = new(omkl.river, "RakerClassifier", seed=1)
    for label in (1, True, 1.0, np.int8(1), 0.0, -0.0, False, "1"):
        model.learn_one({"u": 1.0}, label)
    assert list(map(repr, model._core.labels)) == ["1", "0.0", "'1'"]
    assert list(map(repr, omkl.from_bytes(omkl.to_bytes(model))._core.labels)) == ["1", "0.0", "'1'"]


@pytest.mark.parametrize(
    "row",
    [{"u": math.inf}, {"u": 1j}, {"u": [1]}, {"u": object}],
    ids=lambda label: f"{type(label).__name__} {label}"[:40] if type(label) is not object else "object",
)
@pytest.mark.parametrize("name", NAMES)
def test_a_row_that_cannot_be_learned_does_not_wait_for_its_label(name: str, row: Any):
    model = new(omkl.river, name, seed=1)
    with pytest.raises(ValueError, match=r"must be a finite number|must be a number, text"):
        model.predict_one(row, key=1)
    assert not model._waiting
    omkl.from_bytes(omkl.to_bytes(model))


WAITING = {
    "u": 1.5, "whole": 3, "truth": True, "text": "red", "gap": math.nan, "none": None, "day": datetime.date(2024, 5, 1),
    "time": datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.UTC),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_waiting_row_of_cells_of_any_kind_is_saved(name: str):
    model = new(omkl.river, name, seed=1)
    target: Any = "b" if "Classifier" in name else 2.0
    for k in range(5):
        model.learn_one({**WAITING, "u": float(k)}, target if k % 2 else "a" if "Classifier" in name else 1.0)
    model.predict_one({**WAITING, "late": "blue"}, key=1)
    again = omkl.from_bytes(omkl.to_bytes(model))
    for each in (model, again):
        each.learn_key(1, target)
    assert omkl.to_bytes(again) == omkl.to_bytes(model)
    assert "late=blue" in again._core.names
