"""Fields of valid files that were edited so that the file contradicts itself: it is refused when it is loaded."""

import copy
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import omkl
import omkl.river
from omkl.persist import registry
from omkl.persist.container import pack

KERNELS = [omkl.Gaussian(0.5)]
ROWS = 60
X = np.random.default_rng(0).normal(size=(ROWS, 2))
LABELS = np.array(["a", "b", "c"])[np.arange(ROWS) % 3]
TABLE = pd.DataFrame({"u": X[:, 0], "code": np.arange(ROWS) % 3, "town": LABELS})
WEIGHTS = {"a": 2.0, "b": 0.5, "c": 1.0}
MORE = {"new": 1.0, "town": "a"}  # a column that is new to a model of numbers


def edited(model: Any, edit: Callable[[Any], Any]) -> bytes:
    content = registry.encode(model)
    body = json.loads(json.dumps(content.body))
    edit(body)
    return b"".join(pack(content._replace(body=body)))


def refused(model: Any, edit: Callable[[Any], Any], reason: str) -> None:
    omkl.from_bytes(edited(model, lambda body: None))
    with pytest.raises(omkl.ModelFileError, match=reason):
        omkl.from_bytes(edited(model, edit))


# Weights of labels


def classifier(api: Any) -> Any:
    if api is omkl:
        return omkl.RakerClassifier(kernels=KERNELS, class_weight=WEIGHTS, random_state=0).fit(X, LABELS)
    model = omkl.river.RakerClassifier(kernels=KERNELS, class_weight=WEIGHTS, seed=0)
    for row, label in zip(X, LABELS, strict=True):
        model.learn_one({"u": row[0]}, label)
    return model


def rename_b(body: Any) -> None:
    body["parameters"]["class_weight"][1][0] = 7


@pytest.mark.parametrize("api", [omkl, omkl.river])
def test_weights_of_labels_that_a_classifier_does_not_have_are_refused(api: Any):
    refused(classifier(api), rename_b, "class_weight has weights of .7., which are no labels")


@pytest.mark.parametrize("api", [omkl, omkl.river])
def test_weights_that_later_rows_could_not_have_are_refused_when_saved(api: Any):
    model = classifier(api)
    model.class_weight = {"x": 1.0}
    with pytest.raises(ValueError, match="class_weight has weights of"):
        omkl.to_bytes(model)


def test_weights_of_labels_that_have_not_come_yet_can_be_saved():
    model = omkl.river.RakerClassifier(kernels=KERNELS, class_weight={"later": 2.0, "b": 0.5}, seed=0)
    model.learn_one({"u": 1.0}, "a")
    loaded = omkl.from_bytes(omkl.to_bytes(model))
    for each in (model, loaded):
        each.learn_one({"u": 2.0}, "later")
    assert loaded.predict_proba_one({"u": 1.5}) == model.predict_proba_one({"u": 1.5})


# Settings, which make the next problem, and the problem


def regressors() -> dict[str, Any]:
    choices = {
        "AdaRakerRegressor": {"levels": 2},
        "DOEBERegressor": {"walk": 0.001},
        "NOGDRegressor": {"budget": 50},
        "KRLSTRegressor": {"budget": 50},
        "SFGMKLRegressor": {"out_degree": 1},
        "GraphMKLRegressor": {"warm_up": 10, "widths": (1.0,)},
    }
    found = {}
    for name, more in choices.items():
        model = getattr(omkl.river, name)(kernels=KERNELS, seed=0, **more)
        for row in X:
            model.learn_one({"u": row[0]}, row[1])
        found[name] = model
    return found


@pytest.fixture(scope="module")
def known() -> dict[str, Any]:
    return regressors()


@pytest.mark.parametrize(
    ("name", "setting", "value"),
    [("AdaRakerRegressor", "levels", 3), ("DOEBERegressor", "walk", 0.0), ("DOEBERegressor", "noise", 0.2),
     ("NOGDRegressor", "budget", 60), ("KRLSTRegressor", "budget", 40), ("SFGMKLRegressor", "ridge", 0.5),
     ("GraphMKLRegressor", "warm_up", 20), ("GraphMKLRegressor", "widths", [0.5]),
     ("GraphMKLRegressor", "stack", False)],
)  # fmt: skip
def test_settings_that_would_make_another_problem_are_refused(
    known: dict[str, Any], name: str, setting: str, value: object
):
    def edit(body: Any) -> None:
        settings = body["core"]["settings"]
        assert setting in settings
        assert settings[setting] != value
        settings[setting] = value

    refused(known[name], edit, "settings and problem differ")


@pytest.mark.parametrize("name", list(regressors()))
def test_what_a_file_contains_takes_a_new_column(known: dict[str, Any], name: str):
    model = omkl.from_bytes(omkl.to_bytes(known[name]))
    model.learn_one(MORE, 1.0)
    assert np.isfinite(model.predict_one(MORE))


# Columns of a table


@pytest.fixture(scope="module")
def table() -> Any:
    return omkl.RakerRegressor(kernels=KERNELS, random_state=0).fit(TABLE, X[:, 1])


def column(body: Any, name: str) -> Any:
    return next(own for known, own in body["core"]["encoder"]["columns"] if known == name)


def test_a_column_of_categories_that_holds_numbers_is_refused(table: Any):
    def declare(body: Any) -> None:
        body["core"]["encoder"]["categorical"] = ["u"]

    refused(table, lambda body: column(body, "u").update(coded=True), "a column of categories holds numbers")
    refused(table, declare, "a column of categories holds numbers")


def test_text_that_cannot_be_written_is_refused(table: Any):
    def date_format(body: Any) -> None:
        body["core"]["encoder"]["date_format"] = "\ud800"

    refused(table, lambda body: column(body, "town")["categories"].append("\ud800"), "must be valid text")
    refused(table, date_format, "must be valid text")


def test_numbers_that_no_double_holds_are_refused():
    model = omkl.river.Lags(omkl.river.RakerRegressor(kernels=KERNELS, seed=0), lags=[1], horizon=3)
    for row in X[:20]:
        model.learn_one({"u": row[0]}, row[1])

    def edit(body: Any) -> None:
        body["deferred"][0][2] = 10**400

    refused(model, edit, "must be a number")


def test_the_model_inside_lags_can_be_used_alone_with_text():
    rows = pd.DataFrame({"id": [f"user {k % 40}" for k in range(300)], "u": np.arange(300.0)}).to_dict("records")
    lags = omkl.river.Lags(omkl.river.RakerRegressor(kernels=KERNELS, seed=0), lags=[1])
    for k, row in enumerate(rows):
        lags.learn_one(row, float(k % 40))
    model = copy.deepcopy(lags.regressor)
    assert model._core.ids is not None
    assert model._core.encoder is None
    before = model._core.names
    assert np.isfinite(model.predict_one(rows[0]))
    assert model._core.names == before
    model.learn_one(rows[0], 1.0)
    assert np.isfinite(model.predict_one(rows[1]))


def test_a_target_that_no_double_holds_is_refused_with_the_reason():
    model = omkl.river.RakerRegressor(kernels=KERNELS, seed=0)
    with pytest.raises(ValueError, match="y must be a finite number"):
        model.learn_one({"u": 1.0}, 10**400)
