"""Rows sorted by label are warned about at every interface; labels that come in runs are not."""

import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from command import invoke
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris

import omkl
import omkl.river
from omkl.estimators.label_order import MANY, LabelOrder

X, Y = load_iris(return_X_y=True)
FRAME = pd.DataFrame(X, columns=list("abcd"))
ROWS = FRAME.to_dict("records")
SHUFFLED = np.random.default_rng(0).permutation(len(Y))


def runs(labels, rows, stay, seed):
    """A label that stays for long: a chain that leaves it with probability 1 - stay."""
    rng = np.random.default_rng(seed)
    out = [0]
    for _ in range(rows - 1):
        out.append(out[-1] if rng.random() < stay else (out[-1] + rng.integers(1, labels)) % labels)
    return out


def learn_all(model):
    for x, y in zip(ROWS, Y.tolist(), strict=True):
        model.learn_one(x, y)


@given(st.lists(st.sampled_from("abcd"), max_size=200), st.integers(1, 40))
def test_rows_are_sorted_if_each_label_came_in_one_run(labels, times):
    labels = [label for label in labels for _ in range(times)]
    order = LabelOrder()
    order.update(labels)
    changes = sum(a != b for a, b in pairwise(labels))
    assert order.grouped == (len(labels) >= MANY and 0 < changes == len(set(labels)) - 1)


def test_river_warns_of_the_third_label_once_and_names_the_line_of_the_caller():
    model = omkl.river.RakerClassifier(seed=0)
    with pytest.warns(UserWarning, match="the 101 rows are sorted by label") as found:
        learn_all(model)
    assert [warning.filename for warning in found] == [__file__]


def test_single_rows_of_a_scikit_learn_estimator_are_warned_about():
    model = omkl.RakerClassifier(random_state=0).partial_fit(FRAME[:3], Y[:3], classes=range(3))
    with pytest.warns(UserWarning, match="sorted by label") as found:
        learn_all(model)
    assert [warning.filename for warning in found] == [__file__]


def test_frames_are_warned_about():
    with pytest.warns(UserWarning, match="the 150 rows are sorted by label") as found:
        omkl.river.RakerClassifier(seed=0).learn_many(FRAME, Y)
    assert [warning.filename for warning in found] == [__file__]


@pytest.mark.parametrize("seed", range(5))
def test_labels_that_stay_for_long_are_not_warned_about(seed):
    labels = runs(2, 1000, 0.99, seed)
    model = omkl.river.RakerClassifier(seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for k, y in enumerate(labels):
            model.learn_one({"a": float(k % 7)}, y)
        omkl.river.RakerClassifier(seed=0).learn_many(pd.DataFrame({"a": np.arange(1000.0) % 7}), labels)
        omkl.river.RakerClassifier(seed=0).learn_many(FRAME.iloc[SHUFFLED], Y[SHUFFLED])


def test_the_command_line_notices_at_the_end(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    labels = np.array(["a", "b", "c"])[Y]
    FRAME.assign(y=labels).to_csv("sorted.csv", index=False)
    FRAME.assign(y=labels).iloc[SHUFFLED].to_csv("mixed.csv", index=False)
    FRAME.assign(y=np.sort(X[:, 0])).to_csv("numbers.csv", index=False)
    arguments = ["--target", "y", "--learner", "raker", "--every", "60"]
    found = invoke("run", "sorted.csv", *arguments)
    assert found.exit_code == 0
    assert found.output.count("the 150 rows are sorted by label") == 1
    for name in ("mixed.csv", "numbers.csv"):
        assert "sorted" not in invoke("run", name, *arguments).output
