"""Models used by several threads: every call sees one moment, no row is lost, and what fails changes nothing."""

import copy
import io
import itertools
import pickle
import signal
import sys
import threading
from contextlib import contextmanager, suppress
from types import SimpleNamespace

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn

import omkl
import omkl.river
from omkl import engine
from omkl.algorithms import blas
from omkl.estimators import sklearn as sklearn_estimators
from omkl.estimators.river import ESTIMATORS as RIVER
from omkl.fleet import Fleet
from omkl.lock import ModelLock
from omkl.online import Online

ROWS, CHUNK = 8000, 4
RNG = np.random.default_rng(0)
X = RNG.normal(size=(ROWS, 3))
Y = X[:, 0] + np.sin(X[:, 1])
SMALL = {"n_features": 8}
SKLEARN = sklearn_estimators.ESTIMATORS


@pytest.fixture(autouse=True)
def threads_take_turns_often():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(*jobs):
    """Run the jobs at the same time; raises the first error of any of them."""
    barrier, errors = threading.Barrier(len(jobs)), []

    def run(job):
        barrier.wait()
        try:
            job()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def while_learning(steps, action, times=25):
    """What `action` returns, called so often while another thread goes through `steps`, 25 of them for each call."""
    wanted, taken, results = threading.Semaphore(0), threading.Semaphore(0), []

    def learn():
        for step in itertools.islice(steps, 25 * times):
            wanted.acquire()
            step()
            taken.release()

    def act():
        try:
            for _ in range(times):
                wanted.release(25)
                taken.acquire()  # there is always something new
                results.append(action())
        finally:
            wanted.release(25 * times)

    together(learn, act)
    return results


# Copies and files are of one moment


def small(kind):
    return {} if "n_features" not in kind.__dataclass_fields__ else dict(SMALL)


class Stream:
    """A model and the steps of its stream; the same for every model of its class."""

    def __init__(self, api, name):
        self.api, self.name = api, name
        self.kind = (SKLEARN if api == "sklearn" else RIVER)[name]
        self.labels = ["a", "b", "c"] if self.kind.task == "classification" else None

    def model(self):
        options = small(self.kind)
        if self.api == "sklearn":
            model = self.kind(random_state=0, **options)
            return model.partial_fit(X[:1], self.targets(slice(1)), **({"classes": self.labels} if self.labels else {}))
        model = self.kind(seed=0, **options)
        model.learn_one(self.row(0), self.target(0))
        return model

    def target(self, i):
        return float(Y[i]) if self.labels is None else self.labels[int(np.digitize(Y[i], [-0.5, 0.5]))]

    def targets(self, part):
        return [self.target(i) for i in range(ROWS)[part]]

    def row(self, i):
        names = ["x", "y", "z"][: 1 + min(i // 40, 2)]  # a new feature in rows 40 and 80
        return dict(zip(names, map(float, X[i]), strict=False))

    def rows(self, model):
        return (model.core_ if self.api == "sklearn" else model._core).online.t

    def steps(self, model):
        if self.api == "river":
            return (lambda i=i: model.learn_one(self.row(i), self.target(i)) for i in range(1, ROWS))
        parts = (slice(a, a + CHUNK) for a in range(1, ROWS - CHUNK, CHUNK))
        return (lambda part=part: model.partial_fit(X[part], self.targets(part)) for part in parts)


def through_file(model, tmp_path):
    omkl.save(model, tmp_path / "model.omkl")
    return omkl.load(tmp_path / "model.omkl")


def through_joblib(model, tmp_path):
    file = io.BytesIO()
    joblib.dump(model, file)
    return joblib.load(file)


COPIES = {
    "save": through_file,
    "to_bytes": lambda model, _: omkl.from_bytes(omkl.to_bytes(model)),
    "deepcopy": lambda model, _: copy.deepcopy(model),
    "pickle": lambda model, _: pickle.loads(pickle.dumps(model)),
    "joblib": through_joblib,
}
STREAMS = [
    ("sklearn", "SFGMKLRegressor"),
    ("sklearn", "RakerClassifier"),
    ("river", "SFGMKLRegressor"),
    ("river", "GraphMKLRegressor"),
    ("river", "RakerClassifier"),
    ("river", "GraphMKLClassifier"),
]


def assert_copies_are_of_one_moment(stream, how, tmp_path, times):
    model = stream.model()
    copies = while_learning(stream.steps(model), lambda: COPIES[how](model, tmp_path), times)
    alone = stream.model()
    steps = stream.steps(alone)
    for each in copies:
        while stream.rows(alone) < stream.rows(each):
            next(steps)()
        assert omkl.to_bytes(each) == omkl.to_bytes(alone)


@pytest.mark.parametrize("how", ["save", "deepcopy", "pickle"])
@pytest.mark.parametrize(("api", "name"), STREAMS[:3])
def test_a_file_or_copy_is_the_model_of_one_moment_while_another_thread_learns(api, name, how, tmp_path):
    assert_copies_are_of_one_moment(Stream(api, name), how, tmp_path, 15)


@pytest.mark.slow
@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize(
    ("api", "name"), [*(("sklearn", name) for name in SKLEARN), *(("river", name) for name in RIVER)]
)
def test_files_and_copies_of_every_estimator_are_of_one_moment(api, name, how, tmp_path):
    assert_copies_are_of_one_moment(Stream(api, name), how, tmp_path, 15)


def test_a_copy_of_online_has_the_problem_that_its_state_was_learned_on():
    names = [str(k) for k in range(40)]
    settings = omkl.Settings(n_features=4)

    def problem(d):
        return omkl.algorithms.problem("sfg-mkl", settings, names=names[:d], seed=0)

    learner = Online("sfg-mkl", problem(1), 0)
    steps = (lambda d=d: learner.change_problem(problem(d)) for d in range(2, 41))
    for each in while_learning(steps, lambda: pickle.loads(pickle.dumps(learner)), 30):
        assert len(each.predict_rows(np.zeros((2, each.shape.inputs)))) == 2


def test_attributes_and_descriptions_can_be_read_while_another_thread_learns():
    stream = Stream("sklearn", "SFGMKLClassifier")
    model = stream.model()

    def read():
        assert repr(model)
        assert sklearn.base.clone(model).get_params() == model.get_params()
        assert model.node_weights_.shape == model.kernel_weights_.shape
        assert model.predict_proba(X[:3]).shape == (3, 3)
        return model.n_samples_seen_

    seen = while_learning(stream.steps(model), read, 10)
    assert seen == sorted(seen)
    assert all(n % CHUNK == 1 for n in seen)  # whole chunks


# First calls


FIRST_CALLS = {
    "a regressor": (
        lambda: omkl.RakerRegressor(random_state=0, **SMALL),
        lambda model, _: model.partial_fit(X[:5], Y[:5]),
        lambda model: model.n_samples_seen_ == 10,
    ),
    "a classifier": (
        lambda: omkl.RakerClassifier(random_state=0, **SMALL),
        lambda model, _: model.partial_fit(X[:5], Y[:5] > 0, classes=[False, True]),
        lambda model: model.n_samples_seen_ == 10,
    ),
    "intervals": (
        lambda: omkl.GraphMKLRegressor(random_state=0, **SMALL),
        lambda model, _: model.predict_interval_then_learn(X[:5], Y[:5]),
        lambda model: model.n_samples_seen_ == 10,
    ),
    "one row": (
        lambda: omkl.river.RakerRegressor(seed=0, **SMALL),
        lambda model, who: model.learn_one({f"x{who}": 1.0}, 1.0),
        lambda model: model._core.online.t == 2 and set(model._core.names) == {"x0", "x1"},
    ),
    "a frame": (
        lambda: omkl.river.RakerClassifier(seed=0, **SMALL),
        lambda model, who: model.learn_many(pd.DataFrame({f"x{who}": [1.0, 2.0]}), ["a", who]),
        lambda model: model._core.online.t == 4 and set(model._core.labels) == {"a", 0, 1},
    ),
    "a fleet": (
        lambda: Fleet(omkl.RakerRegressor(**SMALL), seed=0),
        lambda fleet, who: fleet.learn_many(
            pd.DataFrame({"key": [who, 2], "y": [0.0, 1.0]} | {name: ord(name) * 1.0 for name in ("ab", "ba")[who]}),
            key="key",
            target="y",
        ),
        lambda fleet: len(fleet) == 3 and fleet[2].n_samples_seen_ == 2 and not fleet[2].core_.inputs.stats[2].any(),
    ),
}


@pytest.mark.parametrize("case", FIRST_CALLS)
def test_first_calls_from_two_threads_lose_no_row(case):
    make, call, complete = FIRST_CALLS[case]
    for _ in range(15):
        model = make()
        together(lambda m=model: call(m, 0), lambda m=model: call(m, 1))
        assert complete(model)


# New features and labels


@pytest.mark.parametrize("name", ["SFGMKLRegressor", "RakerClassifier", "GraphMKLClassifier"])
def test_frames_with_new_columns_do_not_disturb_other_threads(name):
    stream = Stream("river", name)
    model = stream.model()
    frame, targets = pd.DataFrame(X[:4], columns=list("abc")), stream.targets(slice(4))
    chunks = 25

    def bring_columns():
        for k in range(chunks):
            model.learn_many(frame.assign(**{f"n{k}": 1.0}), targets)

    def learn():
        for _ in range(chunks):
            model.learn_many(frame, targets)

    def predict():
        for _ in range(chunks):
            assert len(model.predict_many(frame)) == 4
            if stream.labels:
                assert set(model.predict_proba_one({"a": 0.0})) <= set(stream.labels)
                assert len(model.predict_proba_many(frame)) == 4

    together(bring_columns, learn, predict)
    assert model._core.online.t == 1 + 2 * 4 * chunks
    assert len(model._core.names) == 1 + 3 + chunks


def test_delayed_labels_from_several_threads_are_each_learned_once():
    model = omkl.river.RakerRegressor(seed=0, **SMALL)

    def learn(who):
        for k in range(60):
            model.predict_one({"x": float(k)}, key=f"{who} {k}")
            if k >= 5:
                model.learn_key(f"{who} {k - 5}", 1.0)

    together(*(lambda who=who: learn(who) for who in range(4)))
    assert model._core.online.t == 4 * 55
    assert len(model._waiting) == 4 * 5


@pytest.mark.parametrize("how", ["to_bytes", "deepcopy", "pickle"])
def test_in_a_copy_a_delayed_row_is_either_learned_or_waiting(how):
    model = omkl.river.RakerRegressor(seed=0, **SMALL)
    model.learn_one({"x": 0.0}, 1.0)

    def step(k):
        model.predict_one({"x": float(k)}, key=k)
        if k >= 3:
            model.learn_key(k - 3, 1.0)

    steps = [lambda k=k: step(k) for k in range(ROWS)]
    for each in while_learning(steps, lambda: COPIES[how](model, None), 60):
        t = each._core.online.t - 1  # rows with the keys 0 to t - 1 are learned
        assert list(each._waiting) == list(range(t, t + len(each._waiting)))


# What fails changes nothing


@contextmanager
def failing_after(monkeypatch, owner, name, calls):
    """The function works so many times, and then there is too little memory."""
    count, function = itertools.count(), getattr(owner, name)

    def fail(*args, **kwargs):
        if next(count) >= calls:
            raise MemoryError
        return function(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, fail)
        yield


@pytest.mark.parametrize("calls", range(4))
@pytest.mark.parametrize("name", ["SFGMKLRegressor", "RakerClassifier", "GraphMKLRegressor"])
def test_a_new_feature_for_which_memory_is_too_small_changes_nothing(name, calls, monkeypatch):
    stream = Stream("river", name)
    model, alone = stream.model(), stream.model()
    for each in (model, alone):
        for step in itertools.islice(stream.steps(each), 30):
            step()
    before = omkl.to_bytes(model)
    learners = len(model._core.learners)
    failing = failing_after(monkeypatch, engine, "compile_problem", min(calls, learners - 1))
    with failing, pytest.raises(MemoryError):
        model.learn_one({"x": 1.0, "new": 2.0}, stream.target(0))
    assert omkl.to_bytes(model) == before
    for each in (model, alone):
        each.learn_one({"x": 1.0, "new": 2.0}, stream.target(0))
    assert omkl.to_bytes(model) == omkl.to_bytes(alone)


def test_a_new_label_for_which_memory_is_too_small_changes_nothing(monkeypatch):
    model = Stream("river", "GraphMKLClassifier").model()
    model.learn_one({"x": 1.0}, "second")
    before = omkl.to_bytes(model)
    with failing_after(monkeypatch, engine, "compile_problem", 0), pytest.raises(MemoryError):
        model.learn_one({"x": 1.0}, "third")
    assert omkl.to_bytes(model) == before
    model.learn_one({"x": 1.0}, "third")


def test_support_points_for_which_memory_is_too_small_change_nothing(monkeypatch):
    learner, alone = (Online.make("omkr", omkl.Settings(), 3, 0) for _ in range(2))
    for each in (learner, alone):
        each.run(X[:8], Y[:8])
    with failing_after(monkeypatch, engine, "padded", 0), pytest.raises(MemoryError):
        learner.run(X[8:30], Y[8:30])
    assert learner.t == 8
    assert (learner.run(X[8:30], Y[8:30]) == alone.run(X[8:30], Y[8:30])).all()


@pytest.mark.parametrize("kind", [omkl.RakerRegressor, omkl.RakerClassifier])
def test_a_fit_that_fails_changes_nothing(kind, monkeypatch):
    y = Y if kind is omkl.RakerRegressor else Y > 0
    model = kind(random_state=0, **SMALL).fit(X[:20, :2], y[:20])
    before = omkl.to_bytes(model)
    with failing_after(monkeypatch, engine, "compile_problem", 0), pytest.raises(MemoryError):
        model.fit(X[:20], y[:20])
    assert omkl.to_bytes(model) == before
    new = kind(random_state=0, **SMALL)
    with failing_after(monkeypatch, engine, "compile_problem", 0), pytest.raises(MemoryError):
        new.fit(X[:20], y[:20])
    assert vars(new).keys() - {"_lock"} == new.get_params().keys()


def test_the_number_of_blas_threads_is_changed_by_one_thread_at_a_time(monkeypatch):
    both, met = threading.Barrier(2), []

    @contextmanager
    def limit(**_):
        with suppress(threading.BrokenBarrierError):
            both.wait(0.3)
            met.append(True)
        yield

    monkeypatch.setattr(blas, "libraries", lambda: SimpleNamespace(limit=limit))
    models = [omkl.river.GraphMKLRegressor(seed=0, n_features=4) for _ in range(2)]
    for model in models:
        model.learn_one({"x": 1.0}, 1.0)
    together(*(lambda m=model: m.learn_one({"y": 1.0}, 1.0) for model in models))
    assert not met


# Ctrl-C


def interrupted(function):
    """The function, with a Ctrl-C that comes while it runs: it takes effect when the engine returns."""

    def call(*args, **kwargs):
        function(*args, **kwargs)
        signal.raise_signal(signal.SIGINT)

    return call


@pytest.mark.parametrize("rows", [1, 50])
@pytest.mark.parametrize("name", ["SFGMKLRegressor", "SFGMKLClassifier", "OMKLGFRegressor", "GraphMKLRegressor"])
def test_after_ctrl_c_a_chunk_is_learned_whole_or_not_at_all(name, rows, monkeypatch):
    stream = Stream("sklearn", name)
    model, with_it = stream.model(), stream.model()
    chunk = X[1 : 1 + rows], stream.targets(slice(1, 1 + rows))
    without = omkl.to_bytes(model)
    with_it.partial_fit(*chunk)
    with monkeypatch.context() as patch:
        runner = model.core_.predictors[-1]._runner
        patch.setattr(runner, "run", interrupted(runner.run))
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(*chunk)
    evaluations = [each.core_.online.evaluations for each in (model, with_it)]
    if model.n_samples_seen_ == 1 + rows:  # their number is not known when the call is interrupted
        model.core_.online.evaluations = evaluations[1]
    assert omkl.to_bytes(model) in (without, omkl.to_bytes(with_it))


def test_after_ctrl_c_the_random_numbers_are_those_after_the_rows_learned(monkeypatch):
    learner, alone = (Online.make("sfg-mkl", omkl.Settings(**SMALL), 3, 0) for _ in range(2))
    with monkeypatch.context() as patch:
        patch.setattr(learner._runner, "run", interrupted(learner._runner.run))
        with pytest.raises(KeyboardInterrupt):
            learner.run(X[:30], Y[:30])
    alone.run(X[:30], Y[:30])
    assert learner.t == 30
    assert (learner.run(X[30:99], Y[30:99]) == alone.run(X[30:99], Y[30:99])).all()


# The lock


def test_a_copy_of_a_lock_is_another_lock_that_is_free():
    lock = ModelLock()
    with lock:
        for other in (copy.copy(lock), copy.deepcopy(lock), pickle.loads(pickle.dumps(lock))):
            taken = []
            together(lambda o=other, t=taken: t.append(o.acquire(blocking=False)))
            assert taken == [True]


@pytest.mark.parametrize(
    "model", [Stream("sklearn", "RakerRegressor").model(), Stream("river", "RakerRegressor").model()]
)
@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, COPIES["pickle"]])
def test_a_copy_of_a_model_can_be_used_while_the_model_is_locked(model, how):
    other = how(model) if how is not COPIES["pickle"] else how(model, None)
    finished = threading.Event()
    with model._lock:
        thread = threading.Thread(target=lambda: (copy.copy(other), other._lock.acquire(), finished.set()))
        thread.start()
        assert finished.wait(60)
    thread.join()


def test_two_threads_that_ask_for_the_lock_of_a_new_estimator_get_the_same_one():
    for _ in range(50):
        model, locks = omkl.RakerRegressor(), []
        together(*[lambda m=model, found=locks: found.append(m._lock)] * 4)
        assert len(set(map(id, locks))) == 1
