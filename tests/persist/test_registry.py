"""Codecs are found by the entry points of installed packages: a file loads where nothing but omkl was imported."""

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from river import preprocessing
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import omkl
import omkl.river
from omkl.fleet import Fleet, PooledFleet
from omkl.fleet.buckets import Bucket, Rows
from omkl.persist import registry
from omkl.persist.container import pack, unpack
from omkl.stream.options import Options
from omkl.stream.run import Run


def of_online(folder: Path) -> Path:
    online = omkl.Online.make("raker", omkl.Settings(kernels="gaussian", n_features=3), d=2, seed=0)
    online.run(np.eye(2), np.ones(2))
    return saved(online, folder)


def of_sklearn(folder: Path) -> Path:
    return saved(omkl.RakerRegressor(n_features=3, random_state=0).fit(np.eye(2), np.ones(2)), folder)


def of_river(folder: Path) -> Path:
    model = omkl.river.RakerClassifier(n_features=3, seed=0)
    model.learn_one({"a": 1.0}, "yes")
    return saved(model, folder)


def of_river_targets(folder: Path) -> Path:
    model = omkl.river.MultiTargetRegressor(omkl.river.RakerRegressor(n_features=3, seed=0))
    model.learn_one({"a": 1.0}, {"b": 2.0, "c": 3.0})
    return saved(model, folder)


def of_sklearn_lags(folder: Path) -> Path:
    model = omkl.Lags(omkl.RakerRegressor(n_features=3, random_state=0), [1, 2], ["0"], horizon=2)
    return saved(model.fit(np.ones((5, 1)), np.arange(5.0)), folder)


def of_river_lags(folder: Path) -> Path:
    model = omkl.river.Lags(omkl.river.RakerRegressor(n_features=3, seed=0), [1, 2], ["a"], horizon=2)
    for k in range(4):
        model.learn_one({"a": 1.0, "b": "text"}, k)
    model.predict_one({"a": 1.0, "b": "text"}, key="k")
    return saved(model, folder)


def of_sklearn_step(folder: Path) -> Path:
    return saved(make_pipeline(StandardScaler(), omkl.RakerRegressor(n_features=3)).fit(np.eye(2), np.ones(2)), folder)


def of_river_step(folder: Path) -> Path:
    return saved(preprocessing.StandardScaler() | omkl.river.RakerRegressor(n_features=3), folder)


def of_sklearn_encoder(folder: Path) -> Path:
    return saved(omkl.TableEncoder().fit(np.eye(2)), folder)


def of_river_encoder(folder: Path) -> Path:
    return saved(omkl.river.TableEncoder(), folder)


def fleet() -> Fleet:
    models = Fleet(omkl.RakerRegressor(n_features=3), seed=0)
    models.learn_rows(["a", "b"], np.eye(2), np.ones(2))
    return models


def of_fleet(folder: Path) -> Path:
    return saved(fleet(), folder)


def of_fleet_key(folder: Path) -> Path:
    path = folder / "model.omkl"
    omkl.save(registry.from_bytes(fleet().pack("a")), path)
    return path


def run(folder: Path, **outputs: str) -> None:
    data = folder / "data.csv"
    data.write_text("a,y\n" + "".join(f"{k % 7},{k % 3}.5\n" for k in range(40)))
    Run(Options(data=(str(data),), target="y", learner="raker", **outputs), lambda line: None).run()


def of_stream(folder: Path) -> Path:
    run(folder, model=str(folder / "model.omkl"))
    return folder / "model.omkl"


def of_checkpoint(folder: Path) -> Path:
    run(folder, checkpoint=str(folder / "model.omkl"))
    return folder / "model.omkl"


def saved(model: Any, folder: Path) -> Path:
    omkl.save(model, folder / "model.omkl")
    return folder / "model.omkl"


def of_pooled_fleet(folder: Path) -> Path:
    fleet = PooledFleet(seed=0)
    X = np.random.default_rng(0).normal(size=(12, 2))
    fleet.learn_rows(["a", "b"] * 6, X, X[:, 0])
    return saved(fleet, folder)


def of_bucket(folder: Path) -> Path:
    bucket = Bucket(Fleet(seed=0))
    bucket.fleet.restore([], 2)
    X = np.random.default_rng(0).normal(size=(4, 2))
    bucket.learn(rows_of_a_bucket(X))
    return saved(bucket, folder)


def rows_of_a_bucket(X: np.ndarray) -> Rows:
    return Rows(0, 1, [], ["a", "b"], np.array([0, 0, 1, 1]), X, X[:, 0])


def of_rows(folder: Path) -> Path:
    return saved(rows_of_a_bucket(np.random.default_rng(0).normal(size=(4, 2))), folder)


FILES = {
    "online": of_online, "sklearn": of_sklearn, "river": of_river, "fleet": of_fleet, "fleet-key": of_fleet_key,
    "pooled-fleet": of_pooled_fleet, "fleet-bucket": of_bucket, "fleet-rows": of_rows,
    "stream": of_stream, "checkpoint": of_checkpoint, "sklearn-step": of_sklearn_step, "river-step": of_river_step,
    "sklearn-encoder": of_sklearn_encoder, "river-encoder": of_river_encoder, "river-targets": of_river_targets,
    "sklearn-lags": of_sklearn_lags, "river-lags": of_river_lags,
}  # fmt: skip


def test_there_is_a_file_for_every_kind_and_an_entry_point_for_every_kind_but_online():
    named = {entry.name for entry in entry_points(group="omkl.codecs")}
    assert named == set(FILES) - {"online"}  # which is part of omkl.persist itself
    for entry in entry_points(group="omkl.codecs"):
        entry.load()
    assert set(registry._CODECS) == set(FILES)


@pytest.mark.parametrize("kind", FILES)
def test_a_file_of_each_kind_loads_where_nothing_but_omkl_was_imported(kind: str, tmp_path: Path):
    path = FILES[kind](tmp_path)
    assert unpack(path.read_bytes()).kind == kind
    code = f"import omkl; model = omkl.load({str(path)!r}); print(type(model).__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == type(omkl.load(path)).__name__


@pytest.mark.parametrize("kind", FILES)
def test_a_file_of_each_kind_written_again_is_the_same(kind: str, tmp_path: Path):
    path = FILES[kind](tmp_path)
    before = path.read_bytes()
    omkl.save(registry.read(path), path)  # `load` would give a model of the command line as an estimator
    assert path.read_bytes() == before


def test_a_kind_that_nobody_registered_is_named(tmp_path: Path):
    path = of_online(tmp_path)
    content = unpack(path.read_bytes())
    with pytest.raises(omkl.ModelFileError, match="no model of kind 'soap' is known"):
        omkl.from_bytes(b"".join(pack(content._replace(kind="soap"))))


def test_a_package_can_register_a_kind_of_its_own(monkeypatch: pytest.MonkeyPatch):
    class Counter:
        def __init__(self, n: int) -> None:
            self.n = n

    monkeypatch.setattr(registry, "_CODECS", dict(registry._CODECS))
    codec = registry.Codec(
        (Counter,), lambda model, compact: ({"n": model.n}, {}), lambda body, arrays: Counter(body["n"])
    )
    registry.register("counter", codec)
    assert omkl.from_bytes(omkl.to_bytes(Counter(3))).n == 3
