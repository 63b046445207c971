"""Models of GraphMKL in fleets: one array for each key, of which some may be on disk."""

import errno
import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import omkl
from omkl.arrays import leaves
from omkl.errors import ModelFileError
from omkl.fleet import Fleet
from omkl.fleet.models import KeyedModels
from omkl.fleet.packed import PackedStorage
from omkl.fleet.shelf import BLOCK_BYTES, Disk
from omkl.fleet.storage import FIRST_ROWS
from omkl.fleet.template import Template
from omkl.persist.container import Content, pack, unpack

FEW = {"n_features": 4, "kernels": [omkl.Gaussian(0.5), omkl.Gaussian(2.0)], "out_degree": 1, "warm_up": 5}
SMALL = omkl.GraphMKLRegressor(**FEW, budget="small")
LABELS = omkl.GraphMKLClassifier(**FEW, budget="small")
KINDS = {"numbers": (SMALL, None), "labels": (LABELS, ["calm", "gust", "storm"]),
         "fixed size": (omkl.SFGMKLRegressor(n_features=8), None)}  # fmt: skip


def changing(rows, d=3, seed=0, classes=None):
    """A stream that changes in the middle, so that challengers start."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, d))
    y = np.sin(X[:, 0]) + X[:, 1] + 0.05 * rng.standard_normal(rows)
    y[rows // 2 :] *= -5
    return X, y if classes is None else np.array(classes)[np.digitize(y, [-1, 1])]


def storage_of(fleet):
    return fleet._models._storage


@pytest.mark.parametrize("rows", [0, 1, 40, 255, 256, 257, 1024, 1300])
def test_a_model_that_is_packed_and_unpacked_is_the_same_to_the_last_bit(rows):
    fleet = Fleet(SMALL, seed=0)
    fleet.learn_rows(["other"], *changing(1))
    model = fleet.fresh("k")
    X, y = changing(max(rows, 2))
    if rows:
        model.predict_then_learn(X[:rows], y[:rows])
    storage = storage_of(fleet)
    packed = storage._packed(model.core_)
    before, after = (leaves(core.online.state) for core in (model.core_, storage.unpacked(packed)))
    assert before.keys() == after.keys()
    for name, value in before.items():
        assert np.array_equal(value, after[name], equal_nan=True), name
    storage.check(packed)


def lengths(fleet, key):
    """What a packed array must hold, counted from the arrays of the state by the rules of the page."""
    online = fleet[key].core_.online
    problem, total = online.problem, 0
    for name, leaf in leaves(online.state).items():
        part, _, own = name.partition(".")
        if part == "sets":
            g, own = own.split(".", 1)
            age = online.state.sets[int(g)].age
            if own == "age":
                total += 1
            elif age >= 0 or own.startswith("scaling."):  # which says what has changed since
                total += length(own, leaf, age)
        else:
            total += leaf.size if isinstance(leaf, np.ndarray) else 1
    return total + 7 * (problem.V.shape[1] + 1) + 5


def length(name, leaf, age):
    if name in ("coefficients.R", "coefficients.R_linear", "stack.R"):
        n = leaf.shape[-1]
        return leaf.size // n // n * n * (n + 1) // 2
    if name.startswith("first."):
        return leaf[: min(age, 256)].size
    if name.startswith("window."):
        return leaf[..., : min(age, 1024)].size
    return leaf.size if isinstance(leaf, np.ndarray) else 1


def test_a_packed_model_holds_triangles_the_rows_that_have_come_and_a_second_set_during_a_trial_alone():
    fleet, seen = Fleet(SMALL, seed=0), set()
    X, y = changing(3000)
    for a, b in pairwise(range(0, 3001, 100)):
        fleet.learn_rows(["k"] * (b - a), X[a:b], y[a:b])
        assert fleet.nbytes == 8 * lengths(fleet, "k")
        seen.add(min(part.age for part in fleet["k"].core_.online.state.sets) >= 0)
    assert seen == {False, True}


@pytest.mark.parametrize("d", [2, 8])
def test_a_key_of_a_fleet_of_graph_mkl_takes_at_most_300_kilobytes(d):
    fleet = Fleet("graph-mkl", seed=0)
    X, y = changing(2400, d)
    fleet.learn_rows(["k"] * 1200, X[:1200], y[:1200])
    assert [part.age for part in fleet["k"].core_.online.state.sets] == [1200, -1]
    assert fleet.nbytes <= 300_000


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=8)
@given(data=st.data())
def test_what_is_on_disk_changes_nothing(kind, data):
    """Keys in any order, forgotten and new ones; little memory against all of it."""
    learner, classes = KINDS[kind]
    whole = Fleet(learner, seed=1, classes=classes)
    whole.learn_rows(range(3), *changing(3, classes=classes))
    least = 8 * PackedStorage(whole._models.template)._sizes.full
    fleets = [Fleet(learner, seed=1, classes=classes, memory=memory, threads=2) for memory in (None, least)]
    for number in range(data.draw(st.integers(1, 4))):
        keys = data.draw(st.lists(st.integers(0, 30), min_size=1, max_size=150))
        X, y = changing(len(keys), seed=number, classes=classes)
        whole, limited = (fleet.learn_rows(keys, X, y).tolist() for fleet in fleets)
        assert whole == limited
        asked = data.draw(st.lists(st.integers(0, 40), min_size=1, max_size=20))
        rows = np.resize(X, (len(asked), 3))
        assert fleets[0].predict_rows(asked, rows).tolist() == fleets[1].predict_rows(asked, rows).tolist()
        assert fleets[1].nbytes_in_memory <= least
        gone = data.draw(st.sampled_from(keys))
        for fleet in fleets:
            del fleet[gone]
    if len(fleets[0]):
        loaded = omkl.from_bytes(omkl.to_bytes(fleets[1]))
        assert loaded.memory == least
        for key in fleets[0]:
            assert fleets[0].pack(key) == fleets[1].pack(key) == loaded.pack(key)


def test_keys_beyond_the_limit_are_on_disk_and_the_last_ones_in_memory():
    fleet = Fleet(SMALL, seed=0, memory=10**6)
    for key in range(100):
        fleet.learn_rows([key] * 300, *changing(300))
    storage = storage_of(fleet)
    on_disk = [storage._shelf.is_on_disk(slot) for slot in range(100)]
    assert fleet.nbytes > 2 * 10**6
    assert fleet.nbytes_in_memory <= 10**6
    assert on_disk == sorted(on_disk, reverse=True)
    assert not on_disk[-1]
    fleet.learn_rows([0], *changing(1))
    assert not storage._shelf.is_on_disk(0)


def test_forgetting_keys_keeps_the_models_within_the_limit():
    fleet, free = Fleet("graph-mkl", seed=0, memory=3_000_000), Fleet("graph-mkl", seed=0)
    keys, (X, y) = np.arange(1080) % 60, changing(1080)
    for each in (fleet, free):
        each.learn_rows(keys, X, y)
    for key in range(0, 60, 2):
        del fleet[key], free[key]
        assert fleet.nbytes_in_memory <= 3_000_000
    assert fleet.nbytes == free.nbytes > 4_000_000
    again = [each.learn_rows(keys, X, y).tolist() for each in (fleet, free)]  # of keys that were forgotten, too
    assert again[0] == again[1]
    assert all(fleet.pack(key) == free.pack(key) for key in range(60))


def test_a_batch_of_a_limited_fleet_that_is_undone_leaves_all_models_as_they_were():
    fleet = Fleet(omkl.SFGMKLRegressor(n_features=8, stabiliser="none", learning_rate=1e9), seed=0, memory=10**6)
    rng = np.random.default_rng(0)
    keys, X = np.arange(200), rng.normal(size=(200, 3))
    fleet.learn_rows(keys, X, X[:, 0])
    before = [fleet.pack(key) for key in range(200)]
    with pytest.raises(omkl.DivergenceError):
        fleet.learn_rows(np.repeat(keys, 60), np.repeat(X, 60, axis=0), 1e30 * rng.normal(size=12000))
    assert [fleet.pack(key) for key in range(200)] == before


def test_a_limit_that_cannot_be_kept_is_refused():
    with pytest.raises(ValueError, match="memory must be a whole number of at least 1"):
        Fleet(SMALL, memory=0)
    with pytest.raises(ValueError, match=r"memory must be at least \d+ bytes"):
        Fleet(SMALL, memory=1000).learn_rows(["k"], *changing(1))
    with pytest.raises(ValueError, match="memory= limits fleets of GraphMKL with budget='small'"):
        Fleet(omkl.OMKRRegressor(), memory=10**9).learn_rows(["k"], *changing(1))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks")
def test_a_forked_process_may_not_use_the_temporary_file():
    fleet = Fleet(SMALL, seed=0, memory=10**6)
    fleet.learn_rows(np.repeat(np.arange(100), 300), *changing(30_000))
    child = os.fork()
    if child == 0:
        try:
            fleet.learn_rows([0], *changing(1))
        except RuntimeError as error:
            os._exit(0 if "save the fleet before the fork" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    fleet.learn_rows([0], *changing(1))


def test_class_weights_take_estimators_one_by_one():
    fleet = Fleet(LABELS.__class__(**FEW, budget="small", class_weight="balanced"), classes=["a", "b"])
    fleet.learn_rows([1, 1], np.ones((2, 2)), ["a", "b"])
    assert not isinstance(storage_of(fleet), PackedStorage)


def test_the_name_of_an_algorithm_stands_for_its_settings_for_keys():
    assert (
        Fleet("graph-mkl").learner.get_params()
        == omkl.GraphMKLRegressor(budget="small", kernels="few", n_features=32, evaluate="all").get_params()
    )
    assert isinstance(Fleet("graph-mkl", classes=["a", "b"]).learner, omkl.GraphMKLClassifier)
    with pytest.raises(ValueError, match="nonsense"):
        Fleet("nonsense")


# What the engine refuses


def bound():
    """An engine, packed models of two keys, and a batch for them."""
    fleet = Fleet(SMALL, seed=0)
    X, y = changing(60)
    fleet.learn_rows(np.arange(60) % 2, X, y)
    storage = storage_of(fleet)
    packed = [storage.packed(slot) for slot in (0, 1)]
    return storage._engine, packed, np.array([0, 30, 60]), np.arange(60), X, y, np.empty(120)


def test_the_engine_refuses_packed_models_that_do_not_fit():
    engine, packed, starts, order, X, y, out = bound()
    for wrong in (packed[1][:-1], np.append(packed[1], 0.0), packed[1][:0], np.zeros(len(packed[1])), -packed[1]):
        given = np.ascontiguousarray(wrong)
        with pytest.raises(ValueError, match="does not fit"):
            engine.run_packed([packed[0].copy(), given], starts, order, X, y, False, out)
        with pytest.raises(ValueError, match="does not fit"):
            engine.predict_packed([packed[0], given], starts, order, X, False, out)
    with pytest.raises(TypeError):
        engine.run_packed([np.zeros(len(packed[0]), np.float32)] * 2, starts, order, X, y, False, out)


@pytest.mark.parametrize(
    ("starts", "order"),
    [([0, 30], range(60)), ([0, 31, 30], range(60)), ([-1, 30, 60], range(60)), ([0, 30, 61], range(60)),
     ([0, 30, 60], range(1, 61)), ([0, 30, 60], range(-1, 59)), ([], range(60))],
)  # fmt: skip
def test_the_engine_refuses_groups_beyond_the_rows(starts, order):
    engine, packed, _, _, X, y, out = bound()
    with pytest.raises(ValueError, match="do not fit each other"):
        engine.run_packed(packed, np.array(starts, np.int64), np.array(order), X, y, False, out)


def test_any_words_in_place_of_a_packed_model_are_refused_or_stay_within_memory():
    """Words overwritten one by one; whatever is not refused is learned from without reading beyond arrays."""
    engine, packed, starts, order, X, y, out = bound()
    words = np.array([-1, 0, 1, 2, 7, 2**31, 2**62, -(2**63), 2**63 - 1], dtype=np.int64)
    rng, refused = np.random.default_rng(0), 0
    places = [*range(40), *rng.integers(len(packed[1]), size=200), *range(len(packed[1]) - 40, len(packed[1]))]
    for place in places:
        changed = packed[1].copy()
        changed[place : place + 1].view(np.int64)[:] = rng.choice(words)
        try:
            engine.run_packed([packed[0].copy(), changed], starts, order, X, y, False, out)
        except ValueError:
            refused += 1
    assert refused > 0


def test_a_file_may_not_claim_a_packed_model_that_cannot_be():
    fleet = Fleet(SMALL, seed=0)
    fleet.learn_rows(np.arange(60) % 2, *changing(60))
    content = unpack(omkl.to_bytes(fleet))
    for change in (lambda a: a[:-8], lambda a: a[:-3], np.zeros_like,
                   lambda a: np.full(len(a) // 8, np.inf).view(np.uint8)):  # fmt: skip
        arrays = content.arrays | {"1/packed": change(content.arrays["1/packed"])}
        with pytest.raises(ModelFileError):
            omkl.from_bytes(b"".join(pack(Content(content.kind, content.body, arrays))))


def test_files_of_fleets_with_whole_states_are_still_read(monkeypatch):
    fleet = Fleet(SMALL, seed=0)
    fleet.learn_rows(np.arange(600) % 2, *changing(600))
    monkeypatch.setattr(KeyedModels, "packed_size", lambda self, key: None)
    data = omkl.to_bytes(fleet)
    assert not any(name.endswith("/packed") for name in unpack(data).arrays)
    loaded = omkl.from_bytes(data)
    assert [loaded.pack(key) for key in (0, 1)] == [fleet.pack(key) for key in (0, 1)]


def test_saving_a_limited_fleet_takes_little_memory(tmp_path):
    """Models on disk are read one by one while the file is written."""
    fleet = Fleet(SMALL, seed=0, memory=10**6)
    fleet.learn_rows(np.repeat(np.arange(100), 300), *changing(30_000))
    omkl.save(fleet, tmp_path / "fleet.omkl")
    assert fleet.nbytes_in_memory <= 10**6
    assert omkl.load(tmp_path / "fleet.omkl").pack(5) == fleet.pack(5)


def test_few_rows_are_kept_as_rows_where_models_are_large():
    fleet = Fleet("graph-mkl", seed=0)
    X, y = changing(FIRST_ROWS + 1)
    model = fleet.fresh("k", 3)
    for row in range(FIRST_ROWS):
        said = fleet.learn_rows(["k"], X[row : row + 1], y[row : row + 1])
        assert said.tolist() == model.predict_then_learn(X[row : row + 1], y[row : row + 1]).tolist()
    assert fleet.nbytes == 8 * 4 * FIRST_ROWS
    fleet.learn_rows(["k"], X[-1:], y[-1:])
    model.predict_then_learn(X[-1:], y[-1:])
    assert fleet.nbytes > 100_000
    assert omkl.to_bytes(fleet["k"]) == omkl.to_bytes(model)


@given(sizes=st.lists(st.tuples(st.integers(0, 5), st.integers(1, 3 * BLOCK_BYTES // 8)), max_size=30))
def test_the_temporary_file_holds_what_was_written_last_and_is_as_long_as_was_needed_at_most(sizes):
    disk, written, most = Disk(), {}, 0
    for number, (slot, size) in enumerate(sizes):
        written[slot] = np.arange(size) + 1000.0 * number
        disk.write(slot, written[slot])
        most = max(most, sum(-(-values.nbytes // BLOCK_BYTES) for values in written.values()))
        for other, values in written.items():
            assert disk.read(other, values.nbytes).tobytes() == values.tobytes()
    assert disk._blocks == most


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="only Linux shows the file")
def test_the_temporary_file_has_no_name_and_is_where_it_was_asked_for(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    disk = Disk()
    disk.write(0, np.zeros(1))
    shown = os.readlink(f"/proc/self/fd/{disk._file.fileno()}")
    assert shown.startswith(str(tmp_path))
    assert shown.endswith("(deleted)")
    assert not list(tmp_path.iterdir())


def test_where_the_disk_is_full_no_model_is_lost(monkeypatch):
    """Nothing of what was learned before is gone, and the fleet goes on when there is room again."""
    fleet, other = Fleet(SMALL, seed=0, memory=10**6), Fleet(SMALL, seed=0)
    for each in (fleet, other):
        each.learn_rows(np.repeat(np.arange(60), 300), *changing(18_000))

    def full(self, slot, packed):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Disk, "write", full)
        with pytest.raises(OSError, match="No space"):
            fleet.learn_rows([0, 60], *changing(2))
    assert all(fleet.pack(key) == other.pack(key) for key in range(1, 60))
    X, y = changing(60)
    assert (
        fleet.learn_rows(range(1, 60), X[1:], y[1:]).tolist() == other.learn_rows(range(1, 60), X[1:], y[1:]).tolist()
    )
    assert fleet.nbytes_in_memory <= 10**6


def test_a_batch_is_undone_where_the_disk_is_full(monkeypatch):
    """The copies that undoing needs are put back without writing."""
    learner = omkl.SFGMKLRegressor(n_features=8, stabiliser="none")
    fleet, rng = Fleet(learner, seed=0, memory=10**6), np.random.default_rng(0)
    X = rng.normal(size=(1000, 3))
    fleet.learn_rows(np.arange(1000), X, X[:, 0])
    before = {key: fleet.pack(key) for key in fleet}

    def full(self, slot, packed):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Disk, "write", full)
        with pytest.raises(OSError, match="No space"):
            fleet.learn_rows(np.arange(1001), np.vstack((X, X[:1])), np.ones(1001))
    assert {key: fleet.pack(key) for key in fleet} == before


def test_templates_of_which_the_engine_packs_no_states():
    for learner in (omkl.GraphMKLRegressor(), omkl.OMKRRegressor()):
        template = Template.make(learner, 0, 2, None, None)
        assert not template.core.online.compiled.can_be_packed
