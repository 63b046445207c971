"""GraphMKL: the engine computes features of several rows of a chunk together, with the results of one row at a time."""

import numpy as np
import pytest
from streams import arrays_of, raw_and_turning
from streams import graph_settings as small

import omkl
from omkl import algorithms, engine


def plain(X, y, weight):
    pass


def scaling_changes(X, y, weight):
    X[:301, 0] = 2.0  # its first change is its deviation, for rows that were scaled before
    X[:290:7, 1] = np.nan


def rows_are_not_learned(X, y, weight):
    weight[270:500:3] = 0


def rows_come_again(X, y, weight):
    for array in (X, y):
        array[300:330] = array[270:300]
        array[401:600:2] = array[400:599:2]


@pytest.mark.parametrize("isa", engine.supported())
@pytest.mark.parametrize(("task", "d"), [("regression", 3), ("regression", 20), ("classification", 3)])
@pytest.mark.parametrize("spoil", [plain, scaling_changes, rows_are_not_learned, rows_come_again])
def test_a_chunk_of_rows_is_learned_as_its_rows_are_one_by_one(spoil, task, d, isa):
    X, y = raw_and_turning(700, d, change=350)
    if task == "classification":
        y = np.digitize(y, [50, 150]).astype(float)
    weight = np.ones(len(y))
    spoil(X, y, weight)
    s = small(task=task, outputs=1 if task == "regression" else 3, evaluate="all")
    together, alone = (omkl.Online.make("graph-mkl", s, d=d, seed=1, isa=isa) for _ in range(2))
    one = together.run_unchecked(X, y, weight)
    other = [alone.run_unchecked(X[t : t + 1], y[t : t + 1], weight[t : t + 1])[0] for t in range(len(y))]
    np.testing.assert_array_equal(one, np.array(other))
    wanted = arrays_of(alone.state)
    for name, found in arrays_of(together.state).items():
        np.testing.assert_array_equal(found, wanted[name], err_msg=name)


def test_engine_and_reference_agree_on_kernels_that_use_few_of_many_inputs():
    X, y = raw_and_turning(300, 40)
    fast, slow = (omkl.Online.make("graph-mkl", small(), d=40, seed=1, backend=b) for b in ("engine", "numpy"))
    a, b = fast.run(X, y), slow.run(X, y)
    np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-11 * np.abs(b).max())


def interleaved(isa, task, sparse, predicting):
    """Two models after the same rows, learned in turn, with or without predictions between; their states.

    Of the rows predicted some are learned next, by the same model or by the other one.
    """
    X, y = raw_and_turning(400, 3)
    y = np.digitize(y, [50, 150]).astype(float) if task == "classification" else y
    X = np.hstack((X, np.where(np.random.default_rng(1).random((400, sparse)) < 0.1, 1.5, np.nan)))
    s = small(task=task, outputs=1 if task == "regression" else 3)
    problem = algorithms.problem("graph-mkl", s, d=3)._replace(sparse=sparse)
    models = [omkl.Online("graph-mkl", problem, rng=1, isa=isa) for _ in range(2)]
    which = np.random.default_rng(2).integers(2, size=400)
    rng = np.random.default_rng(3)
    for t, k in enumerate(which):
        model, x = models[k], X[t : t + 1]
        if predicting:
            alike, other, changed = rng.random() < 0.5, rng.random(), x.copy()
            changed[0, rng.integers(3)] *= 1 + 1e-15
            if sparse:
                changed[0, 3:] = np.roll(changed[0, 3:], rng.integers(2))
            if other < 0.2:
                model.predict_rows_unchecked(x)
            if 0.2 < other < 0.4:
                models[1 - k].predict_rows_unchecked(x)
            model.predict_rows_unchecked(x if alike else changed)
            if 0.4 < other < 0.6:
                models[1 - k].predict_rows_unchecked(x)
            if other > 0.9:
                model.predict_rows_unchecked(np.vstack((x, changed, x)))
        if t % 50 == 7:
            model.restore(model.checkpoint())
        if t % 3:
            model.learn_unchecked(X[t], y[t], 1.0 + (t % 4))
        else:
            model.run_unchecked(x, y[t : t + 1])
        if t % 90 == 60:  # the last row again: the state is another one now
            model.learn_unchecked(X[t], y[t])
    return [arrays_of(model.state) for model in models]


@pytest.mark.parametrize("isa", engine.supported())
@pytest.mark.parametrize(("task", "sparse"), [("regression", 0), ("regression", 40), ("classification", 40)])
def test_what_was_computed_to_predict_a_row_is_used_to_learn_it_with_the_same_results(task, sparse, isa):
    for one, other in zip(*(interleaved(isa, task, sparse, predicting) for predicting in (True, False)), strict=True):
        for name, found in one.items():
            np.testing.assert_array_equal(found, other[name], err_msg=name)
