"""Model files: what comes back is what was saved, and a bad file is only ever a ModelFileError."""

import contextlib
import hashlib
import inspect
import json
import os
import resource
import struct
from pathlib import Path

import numpy as np
import pytest
from command import omkl as command
from streams import EVERY_CASE, as_many_as_taken, as_targets, assert_same_learner

import omkl
import omkl.river
from omkl import persist
from omkl.algorithms.invariants import LARGEST_COUNT
from omkl.arrays import is_padded, leaves
from omkl.estimators import river as river_estimators
from omkl.estimators import sklearn as sklearn_estimators
from omkl.persist import registry, values
from omkl.persist.container import FRONT, MAGIC, VERSION, Content, pack

FILES = Path(__file__).parent / "files"
LABELS = np.array(["no", "yes", "maybe"])


def stream(rows=120, d=3):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, d))
    return X, X[:, 0] ** 2 + X[:, 1], LABELS[rng.integers(3, size=rows)]


def small(kind, **more):
    """A quick model of this class."""
    kernels = [omkl.Gaussian(0.5), omkl.Laplacian(1.0), omkl.Matern(2.0, nu=2.5), omkl.Cauchy(1.0)]
    given = {"kernels": as_many_as_taken(kind, kernels)}
    known = inspect.signature(kind).parameters
    given |= {n: v for n, v in {"n_features": 5, "out_degree": 2, "draws": 3, "warm_up": 40}.items() if n in known}
    return kind(**given, **more)


def fitted(api, name):
    X, y, labels = stream()
    target = y if name.endswith("Regressor") else labels
    if api == "sklearn":
        model = small(getattr(omkl, name), random_state=3)
        return model.partial_fit(X[:60], target[:60], **({} if target is y else {"classes": LABELS}))
    model = small(getattr(omkl.river, name), seed=3)
    for x, t in zip(X[:60], target[:60], strict=True):
        model.learn_one({f"f{i}": float(v) for i, v in enumerate(x)}, t)
    model.predict_one({"f0": 1.0, "later": 2.0}, key="k")
    return model


def continued(model):
    """What the model predicts while it learns more rows, as bytes."""
    X, y, labels = stream()
    number = isinstance(model, omkl.Online) or type(model).__name__.endswith("Regressor")
    target = y if number else labels
    if isinstance(model, omkl.Online):
        return model.run(X[60:], y[60:]).tobytes()
    if hasattr(model, "partial_fit"):
        model.partial_fit(X[60:], target[60:])
        return (model.predict(X) if number else model.predict_proba(X)).tobytes()
    predictions = []
    for x, t in zip(X[60:], target[60:], strict=True):
        row = {f"f{i}": float(v) for i, v in enumerate(x)}
        predictions.append(model.predict_one(row) if number else model.predict_proba_one(row))
        model.learn_one(row, t)
    model.learn_key("k", target[0])
    predictions.append(model.predict_one({"f0": 0.0, "later": 1.0}))
    return repr(predictions).encode()


MODELS = [("sklearn", name) for name in sklearn_estimators.ESTIMATORS]
MODELS += [("river", name) for name in river_estimators.ESTIMATORS]


@pytest.mark.parametrize(("api", "name"), MODELS)
def test_a_model_that_was_saved_and_loaded_continues_as_if_it_had_never_stopped(api, name, tmp_path):
    model = fitted(api, name)
    omkl.save(model, tmp_path / "model.omkl")
    loaded = omkl.load(tmp_path / "model.omkl")
    compact = omkl.from_bytes(omkl.to_bytes(model))
    assert type(loaded) is type(compact) is type(model)
    want = continued(model)
    assert continued(loaded) == want
    assert continued(compact) == want


@EVERY_CASE
@pytest.mark.parametrize("backend", ["engine", "numpy"])
def test_online_continues_bit_for_bit(case, backend, tmp_path):
    X, y, _ = stream()
    online = case.online(3, backend=backend)
    y = as_targets(y, online.shape)
    online.run(X[:60], y[:60])
    omkl.save(online, tmp_path / "online.omkl")
    loaded = omkl.load(tmp_path / "online.omkl")
    assert loaded.backend == backend
    assert_same_learner(loaded, online)
    assert loaded.run(X[60:], y[60:]).tobytes() == online.run(X[60:], y[60:]).tobytes()
    assert_same_learner(loaded, online)


@EVERY_CASE
def test_matrices_of_a_loaded_problem_are_laid_out_for_the_engine(case):
    online = trained(case)
    saved, loaded = leaves(online.problem), leaves(omkl.from_bytes(omkl.to_bytes(online)).problem)
    matrices = [name for name, part in saved.items() if isinstance(part, np.ndarray) and part.ndim > 1]
    for name in matrices:
        if saved[name].dtype == np.float64 and saved[name].size:
            assert is_padded(loaded[name]), name


def parameters(model):
    return model.get_params() if hasattr(model, "get_params") else model._get_params()


@pytest.mark.parametrize(("api", "name"), MODELS)
def test_an_unfitted_estimator_comes_back_with_its_parameters(api, name):
    model = small(getattr(omkl if api == "sklearn" else omkl.river, name))
    loaded = omkl.from_bytes(omkl.to_bytes(model))
    assert type(loaded) is type(model)
    assert parameters(loaded) == parameters(model)


def test_a_file_depends_on_the_model_alone(tmp_path):
    model = fitted("sklearn", "SFGMKLRegressor")
    omkl.save(model, tmp_path / "a.omkl")
    omkl.save(omkl.load(tmp_path / "a.omkl"), tmp_path / "b.omkl")
    assert (tmp_path / "a.omkl").read_bytes() == (tmp_path / "b.omkl").read_bytes()


def test_saving_is_atomic(tmp_path, monkeypatch):
    model = fitted("sklearn", "RakerRegressor")
    path = tmp_path / "model.omkl"
    omkl.save(model, path)
    before = path.read_bytes()
    model.partial_fit(*stream()[:2])

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        omkl.save(model, path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_only_models_can_be_saved(tmp_path):
    with pytest.raises(TypeError, match=r"only omkl's estimators.* can be saved, got dict"):
        omkl.save({}, tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


def test_a_users_own_kernel_must_be_registered_before_saving_and_before_loading(monkeypatch):
    class Mine(omkl.Gaussian):
        pass

    X, y, _ = stream()
    monkeypatch.setattr(values, "_KERNELS", dict(values._KERNELS))
    model = omkl.RakerRegressor(kernels=[Mine(1.0)], random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"Mine is not registered: call omkl\.persist\.register_kernel"):
        omkl.to_bytes(model)
    persist.register_kernel(Mine)
    data = omkl.to_bytes(model)
    assert omkl.from_bytes(data).kernels_ == [Mine(1.0)]
    del values._KERNELS["Mine"]
    with pytest.raises(omkl.ModelFileError, match=r"kernel 'Mine' is not known.*register_kernel"):
        omkl.from_bytes(data)


def resealed(data, change):
    """`data` with its header changed and a right checksum."""
    _, version, length = FRONT.unpack_from(data)
    header = json.loads(data[FRONT.size :][:length])
    change(header)
    text = json.dumps(header).encode()
    body = FRONT.pack(MAGIC, version, len(text)) + text + data[FRONT.size + length : -32]
    return body + hashlib.blake2b(body, digest_size=32).digest()


def test_the_message_about_a_bad_file_has_what_is_wrong_with_it(tmp_path):
    data = omkl.to_bytes(fitted("sklearn", "SFGMKLClassifier"))
    newer = bytearray(data)
    struct.pack_into("<I", newer, 8, VERSION + 1)
    flipped = bytearray(data)
    flipped[len(data) // 2] ^= 1
    for bad, message in [
        (b"", "not an omkl model file"),
        (b"PK\x03\x04" + bytes(100), "not an omkl model file"),
        (bytes(newer), f"format version {VERSION + 1} is newer than {VERSION}"),
        (bytes(flipped), "truncated or corrupted"),
        (data[: len(data) // 2], "truncated or corrupted"),
        (data[:-1], "truncated or corrupted"),
        (data + b"\0", "truncated or corrupted"),
        (resealed(data, lambda h: h["arrays"][0].__setitem__(2, [2**60, 2**60])), "longer than the file"),
        (resealed(data, lambda h: h.__setitem__("kind", "fleet")), "inconsistent content"),
        (resealed(data, lambda h: h["body"].__setitem__("class", "os.system")), "inconsistent content"),
        (resealed(data, lambda h: h["body"]["core"]["settings"].__setitem__("n_features", 10**9)), "too large"),
        (resealed(data, lambda h: h["body"]["core"]["settings"].__setitem__("n_features", 5000)), "theta does not fit"),
        (resealed(data, lambda h: h["body"]["core"].__setitem__("seed", 4)), "come out differently"),
        (resealed(data, lambda h: h["body"]["core"]["progress"][0].__setitem__("node", 4)), "no such node"),
        (resealed(data, lambda h: h["body"]["core"]["progress"].pop()), "labels and learners differ"),
    ]:
        path = tmp_path / "bad.omkl"
        path.write_bytes(bad)
        with pytest.raises(omkl.ModelFileError, match=message) as error:
            omkl.load(path)
        assert "bad.omkl" in str(error.value)


def mutations(data, rng, count):
    """Files with bytes flipped, cut, doubled and spliced; half of them with a right checksum again."""
    for k in range(count):
        bad = bytearray(data)
        for _ in range(rng.integers(1, 6)):
            place = int(rng.integers(len(bad))) if rng.random() < 0.5 else int(rng.integers(min(len(bad), 2500)))
            kind = rng.integers(4)
            if kind == 0:
                bad[place] = int(rng.integers(256))
            elif kind == 1:
                del bad[place : place + int(rng.integers(1, 50))]
            elif kind == 2:
                bad[place:place] = bytes(rng.integers(48, 58, size=int(rng.integers(1, 8)), dtype=np.uint8))
            else:
                other = int(rng.integers(len(bad)))
                bad[place : place + 8] = bad[other : other + 8]
        if k % 2 and len(bad) > 60:
            body = bytes(bad[:-32])
            yield body + hashlib.blake2b(body, digest_size=32).digest()
        else:
            yield bytes(bad)


def fuzz(count):
    """Load mutated files; whatever loads all the same is consistent: it can predict and learn."""
    X, y, _ = stream()
    models = [
        ("sklearn", "SFGMKLClassifier"), ("river", "OMKLGFRegressor"), ("sklearn", "OMKRRegressor"),
        ("river", "SFGMKLClassifier"), ("sklearn", "GraphMKLClassifier"), ("river", "GraphMKLRegressor"),
    ]  # fmt: skip
    survivors = 0
    for seed, (api, name) in enumerate(models):
        model = fitted(api, name)
        for compact in (False, True):
            whole = b"".join(pack(registry.encode(model, compact)))
            for bad in mutations(whole, np.random.default_rng(seed), count // (2 * len(models))):
                try:
                    survivor = omkl.from_bytes(bad)
                except omkl.ModelFileError:
                    continue
                survivors += 1
                with contextlib.suppress(ValueError, omkl.DivergenceError):
                    if api == "river":
                        survivor.predict_one({"f0": 1.0})
                        survivor.learn_one({"f0": 1.0, "f1": 2.0}, 1.0)
                    else:
                        survivor.partial_fit(X, y if "Regressor" in name else survivor.classes_[np.arange(len(X)) % 3])
    assert survivors > count // 1000  # some changes are harmless: the fuzzing gets past the checksum


def test_mutated_files_are_only_ever_model_file_errors():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    fuzz(2_000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # kB


@pytest.mark.soak
def test_twenty_thousand_mutated_files_are_only_ever_model_file_errors():
    fuzz(20_000)


# What a file may claim


def resealed_content(content, body=None, arrays=None):
    return b"".join(pack(Content(content.kind, content.body if body is None else body, arrays or content.arrays)))


def trained(case):
    X, y, _ = stream()
    online = case.online(3)
    if case.algorithm.widened is not None:  # so that no array of its state is empty
        online.change_problem(case.algorithm.widened(online.problem, 2))
    X = np.hstack((X, X))[:, : online.shape.inputs]
    online.run(X, as_targets(y, online.shape))
    return online


def gappy(name):
    """Arrays in which NaN says that a value is missing."""
    return name.endswith((".scaling.mean", ".first.X"))


def arrays_of(content):
    """Those that there must be: a model without large experts has empty arrays for them, or in older files none."""
    optional = [name for name in content.arrays if "large." in name or name == "V_wide"]
    return {name: array for name, array in content.arrays.items() if array.size or name not in optional}


def wrong_shapes(array):
    yield array[None]
    for axis in range(array.ndim):
        yield np.concatenate((array, np.take(array, [-1], axis)), axis)
        if array.shape[axis] > 1:
            yield np.take(array, range(array.shape[axis] - 1), axis)


@EVERY_CASE
def test_an_array_of_another_shape_is_refused(case):
    content = registry.encode(trained(case))
    for name, array in arrays_of(content).items():
        for wrong in wrong_shapes(array):
            if name == "V" and wrong.ndim == 3 and wrong.shape[1] != array.shape[1] and not case.algorithm.distribution:
                continue  # the state does not depend on the number of features: a problem of its own
            with pytest.raises(omkl.ModelFileError):
                omkl.from_bytes(resealed_content(content, arrays=content.arrays | {name: wrong}))


@EVERY_CASE
def test_an_array_of_another_type_is_refused(case):
    content = registry.encode(trained(case))
    for name, array in arrays_of(content).items():
        for dtype in {
            "f": (np.int64, bool),
            "i": (np.float64, bool),
            "b": (np.float64, np.int64),
            "u": (np.float64, np.int64),
        }[array.dtype.kind]:
            wrong = np.nan_to_num(array).astype(dtype)
            with pytest.raises(omkl.ModelFileError, match=f"array {name.removeprefix('state.')} must hold"):
                omkl.from_bytes(resealed_content(content, arrays=content.arrays | {name: wrong}))


@EVERY_CASE
def test_an_array_that_is_missing_is_named(case):
    content = registry.encode(trained(case))
    for name in arrays_of(content):
        rest = {other: array for other, array in content.arrays.items() if other != name}
        with pytest.raises(omkl.ModelFileError, match=f"array {name.removeprefix('state.')} is missing"):
            omkl.from_bytes(resealed_content(content, arrays=rest))


@EVERY_CASE
def test_an_array_that_is_not_finite_is_refused_unless_nan_says_that_a_value_is_missing(case):
    content = registry.encode(trained(case))
    for name, array in arrays_of(content).items():
        if array.dtype.kind != "f" or array.size == 0:
            continue
        for value in (np.nan, np.inf, -np.inf):
            wrong = array.copy()
            wrong.flat[-1] = value
            bad = resealed_content(content, arrays=content.arrays | {name: wrong})
            if np.isnan(value) and gappy(name):
                online = omkl.from_bytes(bad)
                assert np.isfinite(online.predict(np.zeros(online.shape.inputs))).all()
            else:
                with pytest.raises(omkl.ModelFileError, match="is not finite"):
                    omkl.from_bytes(bad)


@EVERY_CASE
def test_an_index_out_of_range_is_refused(case):
    content = registry.encode(trained(case))
    for name, array in arrays_of(content).items():
        if array.dtype.kind != "i":
            continue
        for value in (-1, -(2**40)) if name.endswith(".noise.rounds") else (-1, 10**6, -(2**40)):
            wrong = array.copy()
            wrong.flat[-1] = value
            with pytest.raises(omkl.ModelFileError):
                omkl.from_bytes(resealed_content(content, arrays=content.arrays | {name: wrong}))


def values_in(body, path=()):
    """(path, value) of every number, word and flag in a JSON value."""
    items = body.items() if isinstance(body, dict) else enumerate(body) if isinstance(body, list) else None
    if items is None:
        yield path, body
        return
    for key, value in items:
        yield from values_in(value, (*path, key))


def with_value(body, path, value):
    changed = json.loads(json.dumps(body))
    place = changed
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return changed


@EVERY_CASE
def test_a_number_of_a_state_that_cannot_be_is_refused(case):
    """Counts and indices: negative, too large, not whole, no number; other numbers: no number."""
    content = registry.encode(trained(case))
    body = json.loads(json.dumps(content.body))
    for path, value in values_in(body["progress"], ("progress",)):
        if "generator" in path:
            continue
        bad = [None, "1", True, [1]]
        if isinstance(value, int):
            bad += [-2, LARGEST_COUNT, 0.5]
        for wrong in bad:
            with pytest.raises(omkl.ModelFileError):
                omkl.from_bytes(resealed_content(content, with_value(body, path, wrong)))


@EVERY_CASE
def test_a_value_of_a_problem_that_cannot_be_is_refused(case):
    content = registry.encode(trained(case))
    body = json.loads(json.dumps(content.body))
    for path, value in values_in(body["problem"], ("problem",)):
        if "kernels" in path:
            continue
        for wrong in ("nonsense", -1, [1]):
            assert wrong != value
            with pytest.raises(omkl.ModelFileError):
                omkl.from_bytes(resealed_content(content, with_value(body, path, wrong)))


@EVERY_CASE
def test_a_value_that_is_missing_is_refused(case):
    content = registry.encode(trained(case))
    body = json.loads(json.dumps(content.body))
    for part in ("problem", "progress"):
        for name in body[part].keys() - case.algorithm.added.keys():
            less = json.loads(json.dumps(body))
            del less[part][name]
            with pytest.raises(omkl.ModelFileError, match=name):
                omkl.from_bytes(resealed_content(content, less))


# Files of earlier versions


def same_to_nine_digits(got, wanted):
    """Equal, but for rounding that differs between instruction sets."""
    if isinstance(wanted, dict):
        assert got.keys() == wanted.keys()
        got, wanted = [got[name] for name in wanted], list(wanted.values())
    np.testing.assert_allclose(got, wanted, rtol=1e-9)


@pytest.mark.parametrize("path", sorted(FILES.glob("*.omkl")), ids=lambda p: p.stem)
def test_files_of_every_format_version_load_and_predict_as_they_did(path):
    wanted = json.loads(path.with_suffix(".json").read_text())
    model = omkl.load(path)
    checked = 0
    if "prediction" in wanted:
        same_to_nine_digits(prediction_of(model), wanted["prediction"])
        checked += 1
    if "predictions" in wanted:
        same_to_nine_digits(model.predict(np.array(wanted["X"])), wanted["predictions"])
        same_to_nine_digits(model.predict_interval(np.array(wanted["X"]), coverage=0.8), wanted["intervals"])
        same_to_nine_digits(model.predict_then_learn(np.array(wanted["X"]), wanted["y"]), wanted["prequential"])
        checked += 1
    if "probabilities" in wanted:
        for row, p in zip(wanted["rows"], wanted["probabilities"], strict=True):
            same_to_nine_digits(model.predict_proba_one(row), p)
        for row, label, p in zip(wanted["rows"], wanted["labels"], wanted["prequential"], strict=True):
            # It goes on to learn by the rules of this version, in which the noise of labels moves a little faster.
            assert model.predict_proba_one(row) == pytest.approx(p, abs=1e-5)
            model.learn_one(row, label)
        checked += 1
    assert checked


@pytest.mark.parametrize("path", sorted(FILES.glob("*.omkl")), ids=lambda p: p.stem)
def test_a_file_of_an_earlier_version_is_written_again_as_one_of_today(path):
    model = omkl.load(path)
    data = b"".join(pack(registry.encode(model)))
    assert FRONT.unpack_from(data)[1] == VERSION
    again = omkl.from_bytes(data)
    assert b"".join(pack(registry.encode(again))) == data
    assert parameters(again) == parameters(model)


def prediction_of(model):
    """What a model saved in `files` predicts for one row."""
    if hasattr(model, "predict"):
        return float(model.predict(np.array([[0.5, -1.0, 0.25]]))[0])
    return model.predict_one({"f0": 0.5, "f1": -1.0, "f2": 0.25})


def test_there_are_files_of_every_format_version():
    versions = {FRONT.unpack_from(path.read_bytes())[1] for path in FILES.glob("*.omkl")}
    assert versions == set(range(1, VERSION + 1)), "python tests/persist/test_persist.py writes those of a new version"


def write_files():
    """Run by hand once for a new format version: python tests/persist/test_persist.py"""
    for kind, api, name in (
        ("sklearn", "sklearn", "SFGMKLRegressor"), ("river", "river", "SFGMKLRegressor"),
        ("graph-mkl-sklearn", "sklearn", "GraphMKLRegressor"), ("graph-mkl-river", "river", "GraphMKLRegressor"),
    ):  # fmt: skip
        path = FILES / f"version{VERSION}-{kind}.omkl"
        omkl.save(fitted(api, name), path, metadata={"rows": 60})
        path.with_suffix(".json").write_text(json.dumps({"prediction": prediction_of(omkl.load(path))}) + "\n")


# What a file says about its model


METADATA = {"trained on": "sales of 2024", "rows": 60, "checked": True, "tags": ["a", {"b": None}], "rate": 0.5}


def test_a_file_has_the_version_of_omkl_and_the_users_metadata(tmp_path):
    path = tmp_path / "model.omkl"
    omkl.save(fitted("sklearn", "RakerRegressor"), path, metadata=METADATA)
    assert omkl.read_metadata(path) == METADATA
    assert persist.about(path) == {"omkl": omkl.__version__, "metadata": METADATA}
    without = tmp_path / "without.omkl"
    omkl.save(omkl.load(path), without)
    assert omkl.read_metadata(without) == {}
    assert continued(omkl.load(path)) == continued(omkl.load(without))


def test_a_file_from_before_there_was_metadata_has_none():
    assert persist.about(FILES / "version1-sklearn.omkl") == {}


@pytest.mark.parametrize(
    "wrong", [{"a": float("nan")}, {1: "a"}, {"a": (1, 2)}, {"a": set()}, {"a": b"bytes"}], ids=repr
)
def test_metadata_that_json_does_not_have_is_refused_before_anything_is_written(tmp_path, wrong):
    with pytest.raises(TypeError, match="metadata must be a dictionary of texts, finite numbers"):
        omkl.save(fitted("sklearn", "RakerRegressor"), tmp_path / "model.omkl", metadata=wrong)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("change", [{"metadata": [1]}, {"omkl": 3}, {"omkl": "x" * 1000}], ids=lambda c: repr(c)[:30])
def test_an_untrue_word_about_a_model_is_a_model_file_error(tmp_path, change):
    path = tmp_path / "model.omkl"
    omkl.save(fitted("sklearn", "RakerRegressor"), path, metadata=METADATA)
    path.write_bytes(resealed(path.read_bytes(), lambda header: header.update(change)))
    with pytest.raises(omkl.ModelFileError, match=r"model\.omkl: the (metadata|version of omkl) must be"):
        omkl.read_metadata(path)


def test_inspect_shows_what_a_file_says_about_its_model(tmp_path):
    path = tmp_path / "model.omkl"
    omkl.save(fitted("sklearn", "RakerRegressor"), path, metadata=METADATA)
    shown = command("inspect", path, check=True).stdout
    assert omkl.__version__ in shown
    assert "trained on: sales of 2024" in shown
    assert json.loads(command("inspect", path, "--json", check=True).stdout)["metadata"] == METADATA


if __name__ == "__main__":
    write_files()
