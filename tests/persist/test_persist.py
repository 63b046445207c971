"""Model files: what comes back is what was saved, and a bad file is only ever a ModelFileError."""

import contextlib
import hashlib
import json
import os
import resource
import struct
from pathlib import Path

import numpy as np
import pytest

import omkl
import omkl.river
from omkl import persist
from omkl.estimators import river as river_door
from omkl.estimators import sklearn as sklearn_door
from omkl.online import ROUNDS

FILES = Path(__file__).parent / "files"
LABELS = np.array(["no", "yes", "maybe"])


def stream(rows=120, d=3):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, d))
    return X, X[:, 0] ** 2 + X[:, 1], LABELS[rng.integers(3, size=rows)]


def small(kind, **more):
    """A quick model of this class."""
    given = {"kernels": [omkl.Gaussian(0.5), omkl.Laplacian(1.0), omkl.Matern(2.0, nu=2.5), omkl.Cauchy(1.0)]}
    known = kind.__init__.__code__.co_varnames
    given |= {n: v for n, v in {"n_features": 5, "out_degree": 2, "draws": 3, "warm_up": 40}.items() if n in known}
    return kind(**given, **more)


def fitted(door, name):
    X, y, labels = stream()
    target = y if name.endswith("Regressor") else labels
    if door == "sklearn":
        model = small(getattr(omkl, name), random_state=3)
        return model.partial_fit(X[:60], target[:60], **({} if target is y else {"classes": LABELS}))
    model = small(getattr(omkl.river, name), seed=3)
    for x, t in zip(X[:60], target[:60], strict=True):
        model.learn_one({f"f{i}": float(v) for i, v in enumerate(x)}, t)
    model.predict_one({"f0": 1.0, "later": 2.0}, key="k")
    return model


def go_on(model):
    """What the model says and learns from here, as bytes."""
    X, y, labels = stream()
    number = isinstance(model, omkl.Online) or type(model).__name__.endswith("Regressor")
    target = y if number else labels
    if isinstance(model, omkl.Online):
        return model.run(X[60:], y[60:]).tobytes()
    if hasattr(model, "partial_fit"):
        model.partial_fit(X[60:], target[60:])
        return (model.predict(X) if number else model.predict_proba(X)).tobytes()
    said = []
    for x, t in zip(X[60:], target[60:], strict=True):
        row = {f"f{i}": float(v) for i, v in enumerate(x)}
        said.append(model.predict_one(row) if number else model.predict_proba_one(row))
        model.learn_one(row, t)
    model.learn_key("k", target[0])
    said.append(model.predict_one({"f0": 0.0, "later": 1.0}))
    return repr(said).encode()


CASES = [("sklearn", c.__name__) for c in sklearn_door.ESTIMATORS]
CASES += [("river", c.__name__) for c in river_door.ESTIMATORS]


@pytest.mark.parametrize(("door", "name"), CASES)
def test_save_load_go_on_equals_never_having_stopped(door, name, tmp_path):
    model = fitted(door, name)
    omkl.save(model, tmp_path / "model.omkl")
    loaded = omkl.load(tmp_path / "model.omkl")
    compact = omkl.from_bytes(omkl.to_bytes(model))
    assert type(loaded) is type(compact) is type(model)
    want = go_on(model)
    assert go_on(loaded) == want
    assert go_on(compact) == want


@pytest.mark.parametrize("learner", ROUNDS)
@pytest.mark.parametrize("backend", ["engine", "rounds"])
def test_online_goes_on_bit_for_bit(learner, backend, tmp_path):
    X, y, _ = stream()
    given = {"kernels": [omkl.Gaussian(0.5), omkl.Matern(1.0)], "n_features": 4, "out_degree": 1}
    settings = omkl.GraphSettings(**given) if learner == "graph-mkl" else omkl.Settings(**given, draws=2)
    online = omkl.Online.make(learner, settings, d=3, seed=1, backend=backend)
    online.run(X[:60], y[:60])
    omkl.save(online, tmp_path / "online.omkl")
    loaded = omkl.load(tmp_path / "online.omkl")
    assert loaded.backend == backend
    assert loaded.evaluations == online.evaluations
    assert go_on(loaded) == go_on(online)


def parameters(model):
    return model.get_params() if hasattr(model, "get_params") else model._get_params()


@pytest.mark.parametrize(("door", "name"), CASES)
def test_an_unfitted_estimator_comes_back_with_its_parameters(door, name):
    model = small(getattr(omkl if door == "sklearn" else omkl.river, name))
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
    with pytest.raises(TypeError, match="only omkl's estimators, fleets and Online can be saved, got dict"):
        omkl.save({}, tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


def test_a_users_own_kernel_is_asked_for_by_name():
    class Mine(omkl.Gaussian):
        pass

    X, y, _ = stream()
    data = omkl.to_bytes(omkl.RakerRegressor(kernels=[Mine(1.0)], random_state=0).fit(X, y))
    with pytest.raises(omkl.ModelFileError, match=r"kernel 'Mine' is not known.*register_kernel"):
        omkl.from_bytes(data)
    persist.register_kernel(Mine)
    assert omkl.from_bytes(data).kernels_ == [Mine(1.0)]


def resealed(data, change):
    """`data` with its header changed and a right checksum."""
    _, version, length = persist.FRONT.unpack_from(data)
    header = json.loads(data[persist.FRONT.size :][:length])
    change(header)
    text = json.dumps(header).encode()
    body = persist.FRONT.pack(persist.MAGIC, version, len(text)) + text + data[persist.FRONT.size + length : -32]
    return body + hashlib.blake2b(body, digest_size=32).digest()


def test_bad_files_say_what_is_wrong_with_them(tmp_path):
    data = omkl.to_bytes(fitted("sklearn", "SFGMKLClassifier"))
    newer = bytearray(data)
    struct.pack_into("<I", newer, 8, 2)
    flipped = bytearray(data)
    flipped[len(data) // 2] ^= 1
    for bad, message in [
        (b"", "not an omkl model file"),
        (b"PK\x03\x04" + bytes(100), "not an omkl model file"),
        (bytes(newer), "format version 2 is newer than 1"),
        (bytes(flipped), "truncated or corrupted"),
        (data[: len(data) // 2], "truncated or corrupted"),
        (data[:-1], "truncated or corrupted"),
        (data + b"\0", "truncated or corrupted"),
        (resealed(data, lambda h: h["arrays"][0].__setitem__(2, [2**60, 2**60])), "longer than the file"),
        (resealed(data, lambda h: h.__setitem__("kind", "fleet")), "inconsistent content"),
        (resealed(data, lambda h: h["body"].__setitem__("class", "os.system")), "inconsistent content"),
        (resealed(data, lambda h: h["body"]["core"]["settings"].__setitem__("n_features", 10**9)), "too large"),
        (resealed(data, lambda h: h["body"]["core"]["settings"].__setitem__("n_features", 6)), "theta does not fit"),
        (resealed(data, lambda h: h["body"]["core"].__setitem__("seed", 4)), "come out otherwise"),
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
    """Load mutated files; whatever loads all the same is whole: it can be asked and taught."""
    X, y, _ = stream()
    models = [("sklearn", "SFGMKLClassifier"), ("river", "OMKLGFRegressor"), ("sklearn", "OMKRRegressor")]
    survivors = 0
    for seed, (door, name) in enumerate([*models, ("river", "SFGMKLClassifier")]):
        model = fitted(door, name)
        for compact in (False, True):
            for bad in mutations(persist._pack(model, compact), np.random.default_rng(seed), count // 8):
                try:
                    survivor = omkl.from_bytes(bad)
                except omkl.ModelFileError:
                    continue
                survivors += 1
                with contextlib.suppress(ValueError, omkl.DivergenceError):
                    if door == "river":
                        survivor.predict_one({"f0": 1.0})
                        survivor.learn_one({"f0": 1.0, "f1": 2.0}, 1.0)
                    else:
                        survivor.partial_fit(X, y if "Regressor" in name else survivor.classes_[np.arange(len(X)) % 3])
    assert survivors > count // 1000  # some changes are harmless: the fuzzing reaches beyond the checksum


def test_mutated_files_are_only_ever_model_file_errors():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    fuzz(2_000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # kB


@pytest.mark.soak
def test_twenty_thousand_mutated_files_are_only_ever_model_file_errors():
    fuzz(20_000)


def opinion(model):
    """What a model saved in `files` says about one row."""
    if hasattr(model, "predict_one"):
        return model.predict_one({"f0": 0.5, "f1": -1.0, "f2": 0.25})
    return float(model.predict(np.array([[0.5, -1.0, 0.25]]))[0])


@pytest.mark.parametrize("path", sorted(FILES.glob("*.omkl")), ids=lambda p: p.stem)
def test_files_of_every_format_version_load_for_ever(path):
    wanted = json.loads(path.with_suffix(".json").read_text())["prediction"]
    assert opinion(omkl.load(path)) == pytest.approx(wanted, rel=1e-9)


def write_files():
    """Run by hand once for a new format version: python tests/test_persist.py"""
    FILES.mkdir(exist_ok=True)
    for door, name in (("sklearn", "SFGMKLRegressor"), ("river", "SFGMKLRegressor")):
        path = FILES / f"version{persist.VERSION}-{door}.omkl"
        omkl.save(fitted(door, name), path)
        path.with_suffix(".json").write_text(json.dumps({"prediction": opinion(omkl.load(path))}) + "\n")


if __name__ == "__main__":
    write_files()
