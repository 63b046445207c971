"""Files of a bucket: whatever was killed or repeated, the states are those of an undisturbed fleet."""

import multiprocessing
import os
import random
import time
from pathlib import Path

import numpy as np
import pytest

import omkl
from omkl import persist
from omkl.errors import ModelFileError
from omkl.fleet import Fleet, buckets
from omkl.fleet.buckets import Bucket, BucketFiles, Held, Rows, empty_like
from omkl.fleet.state_folder import States

d, KEYS = 3, ["a", "b", "c", "d"]


def start(learner=None, classes=None):
    fleet = Fleet(learner or omkl.SFGMKLRegressor(n_features=6), seed=3, classes=classes)
    fleet.restore([], [f"x{k}" for k in range(d)])
    return fleet


def batch_of(number, classes=None, forgotten=()):
    rng = np.random.default_rng(number)
    key = np.sort(rng.integers(len(KEYS), size=12))
    places, key = np.unique(key, return_inverse=True)
    X = rng.normal(size=(12, d))
    y = X[:, 0] if classes is None else (X[:, 0] > 0).astype(float)
    return Rows(number, 1000 * number, list(forgotten), [KEYS[place] for place in places], key, X, y)


def files_in(folder, learner=None, classes=None):
    first = start(learner, classes)
    return BucketFiles(folder, lambda: empty_like(first), scale=0.1)


def packed(bucket):
    return {key: bucket.fleet.pack(key) for key in sorted(bucket.fleet)}


LEARNERS = [
    (omkl.SFGMKLRegressor(n_features=6), None),
    (omkl.OMKLGFRegressor(n_features=6), None),
    (omkl.RakerClassifier(n_features=6), ["high", "low"]),
    (omkl.GraphMKLRegressor(n_features=6, budget="small"), None),
]


@pytest.mark.parametrize(("learner", "classes"), LEARNERS, ids=lambda value: type(value).__name__)
def test_states_are_those_of_a_fleet_wherever_a_batch_is_learned(tmp_path, monkeypatch, learner, classes):
    """Three processes hold buckets of different ages; files are put together and copied on the way."""
    monkeypatch.setattr(buckets, "FILES", 4)
    files, choice = files_in(tmp_path, learner, classes), random.Random(0)
    held: list[Bucket | None] = [None, None, None]
    undisturbed = Bucket(empty_like(start(learner, classes)))
    for number in range(30):
        rows = batch_of(number, classes, forgotten=["b"] if number == 11 else ())
        worker = choice.randrange(3)
        bucket = files.before(number, held[worker])
        files.tidy(bucket)
        predictions = bucket.learn(rows)
        files.write(rows)
        held[worker] = bucket
        assert predictions.tolist() == undisturbed.learn(rows).tolist()
        assert packed(bucket) == packed(undisturbed)
        assert bucket.seen == undisturbed.seen
    names = [path.name for path in tmp_path.iterdir()]
    assert sum(name.startswith("states") for name in names) in (1, 2)
    assert len(names) < 30
    assert packed(files.before(30)) == packed(undisturbed)


class Killed(BaseException):
    """A process that ends in the middle of what it does."""


@pytest.mark.parametrize("seed", range(20))
def test_a_process_that_is_killed_anywhere_leaves_states_that_continue(tmp_path, monkeypatch, seed):
    """Every operation on files may be the last; the batch is then repeated, as Spark does."""
    monkeypatch.setattr(buckets, "FILES", 3)
    files, choice = files_in(tmp_path), random.Random(seed)
    undisturbed, kills = Bucket(empty_like(start())), 0

    def dying(function):
        def may_die(*arguments, **options):
            nonlocal kills
            if choice.random() < 0.1:
                kills += 1
                raise Killed
            return function(*arguments, **options)

        return may_die

    with monkeypatch.context() as patched:
        for owner, name in ((os, "fsync"), (Path, "replace"), (Path, "unlink"), (Path, "read_bytes")):
            patched.setattr(owner, name, dying(getattr(owner, name)))
        for number in range(25):
            rows = batch_of(number)
            while True:
                try:
                    bucket = files.before(number)
                    files.tidy(bucket)
                    predictions = bucket.learn(rows)
                    files.write(rows)
                    break
                except Killed:
                    continue
            assert predictions.tolist() == undisturbed.learn(rows).tolist()
    assert kills > 5
    assert packed(files.before(25)) == packed(undisturbed)


def test_a_repeated_batch_writes_the_same_bytes_and_starts_from_the_states_before_it(tmp_path):
    files = files_in(tmp_path)
    first = files.before(0)
    predictions = first.learn(batch_of(0))
    files.write(batch_of(0))
    content = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    again = files.before(0, first)  # is after the batch, and of no use
    assert again.learn(batch_of(0)).tolist() == predictions.tolist()
    files.write(batch_of(0))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == content


def test_a_key_that_diverges_learns_nothing_and_the_others_do(tmp_path):
    learner = omkl.RakerRegressor(n_features=6, stabiliser="none", scale="none", learning_rate=1e6, horizon=10)
    files = files_in(tmp_path, learner)
    rows = Rows(0, 0, [], ["bad", "good"], np.repeat([0, 1], [40, 1]), np.ones((41, d)), np.ones(41))
    bucket, learned, predictions, reasons = files.before(0).learn_what_can_be(rows, lambda: files.before(0))
    assert [bool(reason) for reason in reasons] == [True, False]
    assert "diverged" in reasons[0]
    assert learned.keys == ["good"]
    assert list(bucket.fleet) == ["good"]
    fleet = empty_like(start(learner))
    assert predictions[40] == fleet.learn_rows(["good"], rows.X[40:], rows.y[40:])[0]
    assert bucket.fleet.pack("good") == fleet.pack("good")
    files.write(learned)
    both = Rows(1, 1, ["good", "other"], ["bad", "good", "other"], np.repeat([0, 1, 2], [40, 1, 1]), np.ones((42, d)),
                np.ones(42))  # fmt: skip
    bucket, _, _, _ = files.before(1).learn_what_can_be(both, lambda: files.before(1))
    assert bucket.fleet.pack("good") == fleet.pack("good")  # it was forgotten, and then learned its row again


def test_damaged_files_and_files_of_another_learner_are_refused(tmp_path):
    files = files_in(tmp_path)
    bucket = files.before(0)
    bucket.learn(batch_of(0))
    files.write(batch_of(0))
    (path,) = tmp_path.iterdir()
    content = path.read_bytes()
    for damaged in (content[:-5], content[:30] + b"\0" + content[31:], b"\xff" * 20):
        path.write_bytes(damaged)
        with pytest.raises(ModelFileError):
            files.before(1)
    path.write_bytes(content)
    files.write_states(bucket)
    with pytest.raises(ModelFileError, match="not the states of this learner"):
        files_in(tmp_path, omkl.SFGMKLRegressor(n_features=8)).before(1)
    with pytest.raises(ModelFileError, match="states are those before batch 1, but batch 0"):
        files.before(0)


@pytest.mark.parametrize(("place", "value"), [("node", 2.0**40), ("theta", np.nan), ("evaluations", -1.0)])
def test_records_that_the_engine_must_not_see_are_refused(tmp_path, place, value):
    files = files_in(tmp_path)
    bucket = files.before(0)
    bucket.learn(batch_of(0))
    storage = bucket.fleet._models._storage
    part = storage._part(storage._record(1), place)
    part[...] = np.array(value).astype(part.dtype)
    files.write_states(bucket)
    with pytest.raises(ModelFileError):
        files.before(1)


@pytest.mark.parametrize(
    "changes",
    [{"key": np.array([0, 0, 9])}, {"key": np.array([-1, 0, 0])}, {"X": np.full((3, d), np.nan)}, {"y": np.zeros(2)},
     {"X": np.zeros((3, d + 1))}, {"keys": ["a", "a"]}, {"keys": [1.5, "a"]}, {"time": -1}],
)  # fmt: skip
def test_rows_that_cannot_be_are_refused(tmp_path, changes):
    files = files_in(tmp_path)
    rows = Rows(0, 0, [], ["a", "b"], np.array([0, 0, 1]), np.zeros((3, d)), np.zeros(3))
    files.write(rows._replace(**changes))
    with pytest.raises((ModelFileError, ValueError, TypeError)):
        files.before(1)


def test_buckets_that_are_held_take_so_many_bytes_and_belong_to_one_run(tmp_path):
    held, files = Held(), files_in(tmp_path)
    made = []
    for k in range(3):
        bucket = files.before(0)
        bucket.learn(batch_of(k))
        held.put(tmp_path / str(k), "run", bucket, 2 * bucket.fleet.nbytes)
        made.append(bucket)
    assert held.take(tmp_path / "0", "run") is None  # the one used longest ago
    assert held.take(tmp_path / "1", "run") is made[1]
    assert held.take(tmp_path / "2", "another run") is None


def test_another_generation_counts_only_when_it_is_whole(tmp_path):
    states = States.open_for(tmp_path, start(), "string", None, 2)
    for number in range(2):
        bucket = states.bucket(number).before(0)
        rows = batch_of(number)._replace(batch=0)
        bucket.learn(rows)
        states.bucket(number).write(rows)
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits" / "0").touch()

    def interrupted():
        with states.rewritten(buckets=3) as new:
            new.bucket(0).write_states(Bucket(new.first(), 1))
            raise Killed

    with pytest.raises(Killed):
        interrupted()
    again = States.open(tmp_path)
    assert again == states
    before = packed(again.bucket(1).before(1))
    with again.rewritten(keep=True) as new:
        changed = again.bucket(0).before(1)
        del changed.fleet["a"]
        new.bucket(0).write_states(changed)
    with pytest.raises(RuntimeError, match="stop the query"):
        states.require_current()
    latest = States.open(tmp_path)
    assert (latest.generation, latest.batch, latest.buckets) == (1, 1, 2)
    assert "a" not in latest.bucket(0).before(1).fleet
    assert packed(latest.bucket(1).before(1)) == before
    assert [path.name for path in (tmp_path / "fleet").glob("generation-*")] == ["generation-1"]


def test_states_refuse_another_learner_other_keys_and_another_number_of_buckets(tmp_path):
    States.open_for(tmp_path, start(), "string", 4, 2)
    assert States.open_for(tmp_path, start(), "string", None, 2).buckets == 4
    with pytest.raises(ValueError, match="learned with another learner"):
        States.open_for(tmp_path, start(omkl.SFGMKLRegressor(n_features=8)), "string", None, 2)
    with pytest.raises(ValueError, match="another type of key"):
        States.open_for(tmp_path, start(), "integer", None, 2)
    with pytest.raises(ValueError, match="in 4 buckets, not 5"):
        States.open_for(tmp_path, start(), "string", 5, 2)
    (tmp_path / "fleet" / "fleet.json").write_text('{"buckets": -1}')
    with pytest.raises(ModelFileError, match=r"fleet\.json"):
        States.open(tmp_path)


def test_both_kinds_of_files_can_be_loaded(tmp_path):
    bucket = Bucket(empty_like(start()))
    bucket.learn(batch_of(0))
    persist.save(bucket, tmp_path / "bucket.omkl")
    assert packed(omkl.load(tmp_path / "bucket.omkl")) == packed(bucket)


def learn_batches(folder, number):
    """Learn batches up to this number, each certain as soon as there is a file for it, as Spark's checkpoint does."""
    buckets.FILES = 3
    files, held = files_in(folder / "bucket"), None
    while (batch := len(list(folder.glob("certain-*")))) < number:
        held = files.before(batch, held)
        files.tidy(held)
        predictions = held.learn(batch_of(batch))
        files.write(batch_of(batch))
        persist.write_atomically(folder / f"certain-{batch}", predictions.tobytes())


@pytest.mark.slow
def test_processes_that_are_killed_by_the_system_leave_states_that_continue(tmp_path):
    """kill -9 at twenty random moments of a process that learns batch after batch."""
    choice, fork = random.Random(1), multiprocessing.get_context("fork")
    done = 0
    for _ in range(20):
        process = fork.Process(target=learn_batches, args=(tmp_path, 10**6))
        process.start()
        while len(list(tmp_path.glob("certain-*"))) == done:
            assert process.is_alive()
            time.sleep(0.001)
        time.sleep(choice.uniform(0, 0.2))
        process.kill()
        process.join()
        done = len(list(tmp_path.glob("certain-*")))
    done += 3
    learn_batches(tmp_path, done)
    undisturbed = Bucket(empty_like(start()))
    for batch in range(done):
        assert (tmp_path / f"certain-{batch}").read_bytes() == undisturbed.learn(batch_of(batch)).tobytes()
    assert packed(files_in(tmp_path / "bucket").before(done)) == packed(undisturbed)
