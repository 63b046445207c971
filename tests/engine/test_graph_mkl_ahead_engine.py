"""GraphMKL: the engine computes features of several rows of a chunk together, with the results of one row at a time."""

import numpy as np
import pytest
from streams import arrays_of, raw_and_turning
from streams import graph_settings as small

import omkl
from omkl import engine


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
