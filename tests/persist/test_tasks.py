"""What a file says about the task must agree with itself: class, task, settings, problem and labels."""

import copy
import json
from typing import Any

import numpy as np
import pytest
from command import invoke

import omkl
import omkl.river
from omkl import persist
from omkl.fleet import Fleet
from omkl.persist import registry
from omkl.persist.container import Content, pack

KERNELS = [omkl.Gaussian(0.5), omkl.Gaussian(2.0)]
X = np.random.default_rng(0).normal(size=(40, 2))
y, LABELS = X[:, 0], np.array(["a", "b", "c"])[np.arange(40) % 3]


def sklearn_model(name: str) -> Any:
    model = getattr(omkl, name)(kernels=KERNELS, n_features=3, random_state=0)
    return model.fit(X, y if name.endswith("Regressor") else LABELS)


def river_model(name: str) -> Any:
    model = getattr(omkl.river, name)(kernels=KERNELS, n_features=3, seed=0)
    for x, target in zip(X, y if name.endswith("Regressor") else LABELS, strict=True):
        model.learn_one({"a": x[0], "b": x[1]}, target)
    return model


def fleet(name: str) -> Any:
    labels = None if name.endswith("Regressor") else ["a", "b", "c"]
    learner = getattr(omkl, name)(kernels=KERNELS, n_features=3)
    model = Fleet(learner, seed=0, classes=labels)
    model.learn_rows(["k", "l"] * 20, X, y if labels is None else LABELS)
    return model


def stream_model(name: str, tmp_path: Any, *options: str) -> Any:
    table = tmp_path / "table.csv"
    rows = [f"{a},{b},{'k' if a > 0 else 'l'},{t if name.endswith('Classifier') else b}"
            for (a, b), t in zip(X, LABELS, strict=True)]  # fmt: skip
    table.write_text("u,v,who,t\n" + "\n".join(rows) + "\n")
    learner = "graph-mkl" if name.startswith("Graph") else "raker"
    out = tmp_path / "model.omkl"
    task = ["--task", "classification" if name.endswith("Classifier") else "regression"]
    done = invoke("run", table, "--target", "t", "--learner", learner, "--model", out, *task, *options)
    assert done.exit_code == 0, done.output
    return omkl.load(out)


NAMES = ["GraphMKLRegressor", "GraphMKLClassifier", "RakerRegressor", "RakerClassifier"]
KINDS = ["sklearn", "river", "fleet", "stream", "stream by key"]


@pytest.fixture(params=[(kind, name) for kind in KINDS for name in NAMES], ids=" ".join)
def content(request: pytest.FixtureRequest, tmp_path: Any) -> Content:
    kind, name = request.param
    if kind == "fleet":
        model = fleet(name)
    elif kind.startswith("stream"):
        model = stream_model(name, tmp_path, *(("--by", "who") if kind == "stream by key" else ()))
    else:
        model = (sklearn_model if kind == "sklearn" else river_model)(name)
    found = registry.encode(model)
    return found._replace(body=json.loads(json.dumps(found.body)))


def core_of(body: Any) -> Any:
    """The part of a body that describes what an estimator has learned."""
    if body.get("fleet"):
        body = body["fleet"]["body"]
    return body.get("start", body)["core"]


def refused(content: Content, body: Any) -> bool:
    try:
        omkl.from_bytes(b"".join(pack(content._replace(body=body))))
    except omkl.ModelFileError:
        return True
    return False


def test_labels_that_are_removed_or_added_are_refused(content: Content):
    for keep_task in (True, False):  # a file of version 1 does not name the task
        body = copy.deepcopy(content.body)
        core = core_of(body)
        if not keep_task:
            del core["task"]
        assert not refused(content, body)
        if "labels" in core:
            del core["labels"]
        else:
            core |= {"labels": ["a", "b"], "closed": None, "rest": True, "first": 0}
        assert refused(content, body)


def test_another_task_is_refused(content: Content):
    other = {"regression": "classification", "classification": "regression"}
    body = copy.deepcopy(content.body)
    core_of(body)["task"] = other[core_of(body)["task"]]
    assert refused(content, body)
    del core_of(body)["task"]
    assert not refused(content, body)
    settings = core_of(body)["settings"]
    if "task" in settings:
        settings["task"] = other[settings["task"]]
    else:
        settings["loss"] = "squared" if settings["loss"] == "logistic" else "logistic"
    assert refused(content, body)
    body = copy.deepcopy(content.body)
    if "task" in body:
        body["task"] = other[body["task"]]
        assert refused(content, body)


def test_a_problem_for_another_task_is_refused(content: Content):
    body = copy.deepcopy(content.body)
    problem = core_of(body)["problem"]
    if "task" in problem:
        problem["task"] = "regression" if problem["task"] == "classification" else "classification"
    else:
        loss = problem["descent"]
        loss[0] = "squared" if loss[0] == "logistic" else "logistic"
    assert refused(content, body)
    for with_task in ("task", "core"):
        if with_task == "core":
            core_of(body).pop("task")
        assert refused(content, body)


def test_the_class_of_another_task_or_algorithm_is_refused(content: Content):
    body = copy.deepcopy(content.body)
    inner = body["fleet"]["body"] if body.get("fleet") else body
    estimator = inner.get("start", inner)
    if "class" not in estimator:
        body["learner"] = "sfg-mkl"
        assert refused(content, body)
        return
    for name in NAMES:
        if name != estimator["class"]:
            changed = copy.deepcopy(body)
            place = changed["fleet"]["body"] if changed.get("fleet") else changed
            place = place.get("start", place)
            place["class"], place["parameters"] = name, {}
            assert refused(content, changed), name


def test_labels_that_come_twice_or_differ_are_refused(content: Content):
    body = copy.deepcopy(content.body)
    core = core_of(body)
    if "labels" not in core:
        return
    for wrong in (["a", "a", "b"], ["a", "b"], ["a", "b", "c", "d"], ["a", "b", ["c"]]):
        changed = copy.deepcopy(body)
        core_of(changed)["labels"] = wrong
        assert refused(content, changed), wrong
    for name, wrong in (("rest", None), ("first", 7), ("first", -1), ("closed", 1), ("closed", "3")):
        if name in core and core[name] != wrong:
            changed = copy.deepcopy(body)
            core_of(changed)[name] = wrong
            assert refused(content, changed), name


def test_what_is_not_changed_is_accepted(content: Content):
    assert isinstance(persist.from_bytes(b"".join(pack(content))), object)
