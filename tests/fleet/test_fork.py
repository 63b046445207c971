"""Processes that were forked: models and fleets can be used there, or say why not. Batches that fail; Ctrl-C."""

import multiprocessing
import os
import pickle
import select
import signal
import threading
import time
import traceback

import numpy as np
import pytest

import omkl
import omkl.river
from omkl.errors import DivergenceError
from omkl.fleet import Fleet
from omkl.fleet.groups import Groups, Threads
from omkl.fleet.packed import PackedStorage
from omkl.fleet.records import RecordStorage
from omkl.fleet.separate import EstimatorStorage
from omkl.fleet.template import Template
from omkl.online import Online

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]

ROWS = 400
RNG = np.random.default_rng(0)
X = RNG.normal(size=(ROWS, 2))
Y = X[:, 0] + np.sin(X[:, 1])
KEYS = list(np.arange(ROWS) % 40)
SMALL = {"n_features": 8}
LEARNERS = [omkl.RakerRegressor(**SMALL), omkl.OMKRRegressor(), omkl.GraphMKLRegressor(**SMALL, budget="small")]
STORAGES = ["records", "estimators", "packed"]


def in_child(function):
    """What the function returns in a forked process, or the error that it raises there."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            try:
                answer = pickle.dumps((True, function()))
            except BaseException as error:
                answer = pickle.dumps((False, (repr(error), traceback.format_exc())))
            os.write(writing, answer)
        finally:
            os._exit(0)
    os.close(writing)
    answer = b""
    try:
        while select.select([reading], [], [], 60)[0]:
            more = os.read(reading, 2**16)
            answer += more
            if not more:
                break
        else:
            os.kill(child, signal.SIGKILL)
            pytest.fail("the forked process hangs")
    finally:
        os.waitpid(child, 0)
        os.close(reading)
    worked, value = pickle.loads(answer)
    if not worked:
        raise RuntimeError(value[0] + value[1])
    return value


def used_fleet(learner, threads=2):
    fleet = Fleet(learner, seed=0, threads=threads)
    fleet.learn_rows(KEYS, X, Y)
    return fleet


# Forks


@pytest.mark.parametrize("learner", LEARNERS, ids=STORAGES)
def test_a_used_fleet_predicts_and_learns_in_a_forked_process(learner):
    fleet = used_fleet(learner)
    before = fleet.predict_rows(KEYS, X).tolist()

    def use():
        return fleet.predict_rows(KEYS, X).tolist(), fleet.learn_rows(KEYS, X, Y).tolist(), len(fleet)

    predicted, learned, keys = in_child(use)
    assert predicted == before
    assert keys == 40
    assert fleet.learn_rows(KEYS, X, Y).tolist() == learned


def _predict_with(fleet_and_part):
    fleet, part = fleet_and_part
    return fleet.predict_rows(KEYS[part], X[part]).tolist()


def test_a_used_fleet_works_in_the_processes_of_a_pool():
    fleet = used_fleet(LEARNERS[0])
    parts = [slice(0, 200), slice(200, 400)]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        answers = pool.map_async(_predict_with, [(fleet, part) for part in parts]).get(60)
    assert answers == [fleet.predict_rows(KEYS[part], X[part]).tolist() for part in parts]


def models():
    """A model of each kind, and a call that uses it."""
    river = omkl.river.RakerRegressor(seed=0, **SMALL)
    river.learn_one({"x": 1.0}, 1.0)
    estimator = omkl.RakerRegressor(random_state=0, **SMALL).fit(X, Y)
    learner = Online.make("raker", omkl.Settings(**SMALL), 2, 0)
    fleet = used_fleet(LEARNERS[0])
    return {
        "sklearn": (estimator, lambda: estimator.partial_fit(X, Y).n_samples_seen_),
        "core": (estimator.core_, lambda: estimator.predict(X[:1]).tolist()),
        "river": (river, lambda: river.predict_one({"x": 1.0}, key=1)),
        "river's core": (river._core, lambda: river.learn_one({"x": 1.0}, 1.0)),
        "Online": (learner, lambda: learner.learn(X[0], 1.0)),
        "Online, many": (learner, lambda: learner.run(X, Y).tolist()),
        "fleet": (fleet, lambda: fleet.learn_rows(KEYS, X, Y).tolist()),
        "saving": (estimator, lambda: omkl.to_bytes(estimator)),
        "copying": (river._core, lambda: pickle.dumps(river)),
    }


@pytest.mark.parametrize("case", models())
def test_a_model_that_another_thread_was_using_says_so_in_a_forked_process(case):
    cases = models()
    model, use = cases[case]
    other = models()[case][1]
    held, end = threading.Event(), threading.Event()

    def hold():
        with model._lock:
            held.set()
            end.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(60)
    try:
        with pytest.raises(RuntimeError, match="this process was forked while another thread used this model"):
            in_child(use)
        in_child(other)  # what no other thread used can be used
    finally:
        end.set()
        thread.join()
    use()  # and here nothing has changed
    in_child(use)


def test_a_model_that_the_forking_thread_itself_holds_can_be_used_in_the_new_process():
    model = omkl.RakerRegressor(random_state=0, **SMALL).fit(X, Y)
    with model._lock, model.core_.lock:
        assert in_child(lambda: model.partial_fit(X, Y).n_samples_seen_) == 2 * ROWS


def fork_while_learning(model, learn, use, times):
    """How often the forked process could use the model while another thread learned."""
    stop, worked = threading.Event(), 0

    def keep_learning():
        while not stop.is_set():
            learn()

    thread = threading.Thread(target=keep_learning)
    thread.start()
    try:
        for _ in range(times):
            try:
                in_child(use)
                worked += 1
            except RuntimeError as error:
                assert "this process was forked while another thread" in str(error)  # noqa: PT017  either is right
            in_child(lambda: omkl.RakerRegressor(random_state=0, **SMALL).fit(X, Y).n_samples_seen_)
    finally:
        stop.set()
        thread.join()
    return worked


@pytest.mark.parametrize("case", ["sklearn", "fleet"])
def test_forking_while_a_thread_learns_never_hangs(case):
    model, use = models()[case]
    fork_while_learning(model, use, use, 5)


@pytest.mark.slow
@pytest.mark.parametrize("case", models())
def test_forking_often_while_a_thread_learns_never_hangs(case):
    model, use = models()[case]
    fork_while_learning(model, use, use, 20)


# Batches for which memory is too small


@pytest.mark.parametrize("learner", LEARNERS, ids=STORAGES)
@pytest.mark.parametrize("used", [False, True])
@pytest.mark.parametrize("keys", [0, 300, 599])
def test_a_batch_whose_new_keys_do_not_fit_in_memory_leaves_the_fleet_as_it_was(learner, used, keys, monkeypatch):
    fleet, alone = (used_fleet(learner) if used else Fleet(learner, seed=0, threads=2) for _ in range(2))
    before = omkl.to_bytes(fleet), fleet.nbytes
    batch = [f"new {k}" for k in range(600)], np.resize(X, (600, 2)), np.resize(Y, 600)
    kind = {0: RecordStorage, 1: EstimatorStorage, 2: PackedStorage}[LEARNERS.index(learner)]
    add = kind.add

    def fail(self, slot, key):
        add(self, slot, key)
        if key == f"new {keys}":
            raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(kind, "add", fail)
        with pytest.raises(MemoryError):
            fleet.learn_rows(*batch)
    assert (omkl.to_bytes(fleet), fleet.nbytes) == before
    few = (part[:50] for part in batch)
    few_again = (part[:50] for part in batch)
    assert fleet.learn_rows(*few).tolist() == alone.learn_rows(*few_again).tolist()
    assert omkl.to_bytes(fleet) == omkl.to_bytes(alone)


@pytest.mark.slow  # sanitizers do not work with a limit on the address space
def test_a_batch_that_the_system_refuses_memory_for_leaves_the_fleet_as_it_was():
    resource = pytest.importorskip("resource", reason="the memory of a process can only be limited on POSIX")
    fleet = Fleet(omkl.SFGMKLRegressor(), seed=0, threads=2)
    fleet.learn_rows(KEYS, X, Y)
    before = omkl.to_bytes(fleet)

    def overflow():
        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 2**29, used + 2**29))
        try:
            fleet.learn_rows(list(range(100, 60_100)), np.resize(X, (60_000, 2)), np.resize(Y, 60_000))
        except MemoryError:
            return len(fleet), omkl.to_bytes(fleet) == before, fleet.learn_rows(KEYS, X, Y).tolist()

    assert in_child(overflow) == (40, True, fleet.learn_rows(KEYS, X, Y).tolist())


@pytest.mark.parametrize("learner", LEARNERS, ids=STORAGES)
def test_a_part_that_has_too_little_memory_is_learned_when_the_others_are_done(learner, monkeypatch):
    fleet, alone = used_fleet(learner), used_fleet(learner)
    failed = []

    def once(function):
        def call(*args):
            if not failed:
                failed.append(1)
                raise MemoryError
            return function(*args)

        return call

    with monkeypatch.context() as patch:
        if learner is not LEARNERS[1]:
            own = fleet._models._storage
            patch.setattr(own, "_engine", Refusing(own._engine, once))
        else:
            patch.setattr(Template, "learn", once(Template.learn))
        predictions = fleet.learn_rows(KEYS, X, Y).tolist()
    assert failed
    assert predictions == alone.learn_rows(KEYS, X, Y).tolist()
    assert omkl.to_bytes(fleet) == omkl.to_bytes(alone)


class Refusing:
    """An engine that has too little memory once."""

    def __init__(self, engine, once):
        for name in ("run_keys", "run_packed"):
            if hasattr(engine, name):
                setattr(self, name, once(getattr(engine, name)))


def test_if_the_system_starts_no_thread_the_calling_one_does_the_work(monkeypatch):
    fleet, alone = Fleet(LEARNERS[0], seed=0, threads=3), Fleet(LEARNERS[0], seed=0, threads=1)

    def refuse(self):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        first = fleet.learn_rows(KEYS, X, Y).tolist()
    assert first == alone.learn_rows(KEYS, X, Y).tolist()
    assert fleet.learn_rows(KEYS, X, Y).tolist() == alone.learn_rows(KEYS, X, Y).tolist()


def test_an_error_is_raised_when_no_part_is_being_worked_on_any_more():
    finished, threads = [], Threads(3)

    def job(part):
        if 0 in part.slots:
            raise DivergenceError
        time.sleep(0.01)
        finished.append(part)

    groups = Groups.by(np.arange(100))
    with pytest.raises(DivergenceError):
        threads.map(job, groups)
    assert len(finished) == len(groups.parts(24)) - 1


# Ctrl-C


@pytest.mark.parametrize("rows", [10, ROWS])
@pytest.mark.parametrize("moment", ["add", "run"])
@pytest.mark.parametrize("learner", LEARNERS, ids=STORAGES)
def test_ctrl_c_takes_effect_when_the_batch_has_been_learned(learner, moment, rows, monkeypatch):
    fleet, alone = used_fleet(learner), used_fleet(learner)
    batch = [f"new {k}" for k in KEYS[:rows]], X[:rows], Y[:rows]
    kind = type(fleet._models._storage)
    function = getattr(kind, moment)

    def interrupted(self, *args):
        signal.raise_signal(signal.SIGINT)
        answer = function(self, *args)
        signal.raise_signal(signal.SIGINT)
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(kind, moment, interrupted)
        with pytest.raises(KeyboardInterrupt):
            fleet.learn_rows(*batch)
    alone.learn_rows(*batch)
    assert omkl.to_bytes(fleet) == omkl.to_bytes(alone)
    with pytest.raises(KeyboardInterrupt):  # as always
        signal.raise_signal(signal.SIGINT)
