"""Fleets and threads. `make sanitize-threads` runs these tests, so that they import nothing that ThreadSanitizer
cannot be loaded with, as polars."""

import threading

import numpy as np
import pytest

import omkl
from omkl.fleet import Fleet

SMALL = {"kernels": [omkl.Gaussian(0.5), omkl.Gaussian(1.0), omkl.Gaussian(3.0)], "n_features": 6}
LEARNERS = {
    "sfg-mkl": omkl.SFGMKLRegressor(**SMALL, out_degree=2),
    "raker": omkl.RakerRegressor(**SMALL),
    "omkl-gf": omkl.OMKLGFRegressor(**SMALL, draws=2),
    "graph-mkl": omkl.GraphMKLRegressor(**SMALL, out_degree=2),
}
WRITERS, ROWS = 3, 600


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
def test_threads_in_a_fleet_and_around_it_leave_the_models_of_one_thread(learner):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (ROWS, 2))
    y = np.sin(3 * X[:, 0]) + X[:, 1] ** 2
    keys = rng.integers(8, size=ROWS)
    alone, shared = (Fleet(learner, seed=0, threads=threads) for threads in (1, 3))
    start, failures = threading.Barrier(WRITERS + 1), []

    def work(job):
        try:
            start.wait()
            for k in range(0, ROWS, 200):
                job(slice(k, k + 200))
        except BaseException as failure:
            failures.append(failure)

    def learn(offset):  # every thread has keys of its own, so that the order of the threads makes no difference
        return lambda part: shared.learn_rows(keys[part] + offset, X[part], y[part])

    def predict(part):
        assert np.isfinite(shared.predict_rows(keys[part], X[part])).all()

    jobs = [predict, *(learn(100 * writer) for writer in range(WRITERS))]
    threads = [threading.Thread(target=work, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    for writer in range(WRITERS):
        alone.learn_rows(keys + 100 * writer, X, y)
    assert set(shared) == set(alone)
    for key in alone:
        assert shared.pack(key) == alone.pack(key)
