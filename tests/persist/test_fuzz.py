"""Files of every kind and algorithm, edited field by field: each is refused, or a model that predicts and learns.

Edits run in a process of their own with a limit of memory, so that a crash is a failure of one test and not the end
of all, and none may take longer than a second of the processor. `python tests/persist/test_fuzz.py COUNT SEED` tries as
many files as wanted, goes on after failures, and says what was changed in each file that failed. A third number is the
edit to begin with: `PYTHONPATH=tests python tests/persist/test_fuzz.py 2086 7 2085` repeats a single one.
"""

import copy
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from command import invoke
from large_states import large_states
from river import compose, preprocessing
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, PolynomialFeatures, RobustScaler, StandardScaler
from streams import as_many_as_taken

import omkl
import omkl.river
from omkl.encoder.table import Batch
from omkl.estimators.sklearn import ESTIMATORS
from omkl.fleet import Fleet, PooledFleet
from omkl.persist import registry
from omkl.persist.container import Content, pack, unpack
from omkl.stream import checkpoint, model
from omkl.stream.loaded import TableModel

KERNELS = [omkl.Gaussian(0.5), omkl.Matern(2.0)]
ROWS = 60
X = np.random.default_rng(0).normal(size=(ROWS, 2))
Y, LABELS = X[:, 0] - X[:, 1], np.array(["a", "b", "c"])[np.arange(ROWS) % 3]
IDS = np.array([f"user {k}" for k in range(40)])[np.arange(ROWS) % 40]
QUICK, MANY, BATCH = 300, 100_000, 1000  # edits in the quick test, in the long one, and of one process
UNCHANGED = -1  # the seed that edits nothing
MEMORY = 2 << 30  # bytes that a process may have, beside addresses that libraries reserve and do not use
SECONDS = 1.0  # of the processor that a file may take to be loaded or refused, and to predict and learn
SANITIZED = 10.0  # times as many where a sanitizer checks every access to memory
HANGS = 20  # times as many after which the process ends

NUMBERS = [-1, 0, 1, 2, 3, 10**6, 2**31, 2**53, 2**62 - 1, 2**62, 2**63 - 1, 2**63, 2**64, 10**30, -(2**63), 0.5,
           -0.5, 1e-320, 1e-150, 1e150, 1e300, 1.7e308, -1e300, 0.0, -0.0, 10**9, 10**400]  # fmt: skip
OTHERS = [None, True, False, "", "nonsense", "regression", "classification", "squared", "logistic", [], [1], {}, [[0]],
          "sklearn", "stream", "fleet", "\ud800", "x" * 10**5, [0] * 10**4, {"a": {"b": []}}]  # fmt: skip
FLOATS = [0.0, -0.0, -1.0, 1e-320, 1e150, -1e150, 1.7e308, -1.7e308, np.nan, np.inf, -np.inf]
WHOLE = [-1, 0, 1, 7, 10**6, 2**31, 2**62, 2**63 - 1, -(2**63)]


# Valid files


def estimator(api: Any, name: str, **more: Any) -> Any:
    known = {"n_features": 3, "warm_up": 10, "out_degree": 2, "draws": 2, "budget": 500}
    kind = getattr(api, name)
    taken = {n: v for n, v in known.items() if n in kind.__dataclass_fields__}
    return kind(kernels=as_many_as_taken(kind, KERNELS), **taken, **more)


def models(folder: Path) -> Iterator[tuple[str, Any]]:
    """(name, model) of every kind of file and every algorithm."""
    for name in sorted(ESTIMATORS):
        labels = None if name.endswith("Regressor") else ["a", "b", "c"]
        target = Y if labels is None else LABELS
        yield f"sklearn {name}", estimator(omkl, name, random_state=0).fit(X, target)
        yield f"sklearn new {name}", estimator(omkl, name)
        river = estimator(omkl.river, name, seed=0)
        for x, t in zip(X, target, strict=True):
            river.learn_one({"u": x[0], "v": x[1]}, t)
        river.predict_one({"u": 0.0}, key="k")
        yield f"river {name}", river
        yield f"river new {name}", estimator(omkl.river, name)
        fleet = Fleet(estimator(omkl, name), seed=0, classes=labels)
        yield f"fleet new {name}", copy.deepcopy(fleet)
        fleet.learn_rows(["k", "l"] * (ROWS // 2), X, target)
        yield f"fleet {name}", fleet
    for name in ("SFGMKLRegressor", "RakerRegressor"):
        pooled = PooledFleet(estimator(omkl, name), estimator(omkl, "GraphMKLRegressor", random_state=0), seed=0)
        yield f"pooled new {name}", pooled
        pooled.learn_rows(["k", "l"] * (ROWS // 2), X, Y)
        yield f"pooled {name}", pooled
    yield from pipelines()
    yield from tables()
    yield from packed_fleets()
    yield from full_budgets()
    for name, online in large_states():
        yield f"online large {name}", online
    for name in ("GraphMKLRegressor", "RakerRegressor"):
        yield f"sklearn targets {name}", estimator(omkl, name, random_state=0).fit(X, np.column_stack((Y, -Y)))
    targets = omkl.river.MultiTargetRegressor(estimator(omkl.river, "RakerRegressor", seed=0))
    for x, t in zip(X.tolist(), Y.tolist(), strict=True):
        targets.learn_one({"u": x[0], "v": x[1]}, {"a": t, "b": -t})
    yield "river targets", targets
    frame = pd.DataFrame({"u": X[:, 0], "w": LABELS})
    lags = {"lags": [1, 3], "columns": {"u": [0, 2]}, "horizon": 2}
    yield "sklearn lags", omkl.Lags(estimator(omkl, "RakerRegressor", random_state=0), **lags).fit(frame, Y)
    river_lags = omkl.river.Lags(estimator(omkl.river, "RakerRegressor", seed=0), **lags)
    for row, t in zip(frame.to_dict("records"), Y.tolist(), strict=True):
        river_lags.learn_one(row, t)
    river_lags.predict_one(row, key="k")
    yield "river lags", river_lags
    yield "sklearn refine", estimator(omkl, "SFGMKLRegressor", refine=True, random_state=0).fit(X, Y)
    for name in omkl.algorithms.names():
        algorithm = omkl.algorithms.get(name)
        wanted = {"n_features": 3, "kernels": as_many_as_taken(algorithm.parameters, KERNELS), "out_degree": 2}
        choices = {n: v for n, v in wanted.items() if n in algorithm.settings.__dataclass_fields__}
        for backend in ("engine", "numpy"):
            online = omkl.Online.make(name, algorithm.settings(**choices), 2, backend=backend)
            online.run(X[:20], Y[:20])
            yield f"online {name} {backend}", online
    table = folder / "table.csv"
    rows = [f"{u},{v},{'k' if u > 0 else 'l'},{t}" for (u, v), t in zip(X, LABELS, strict=True)]
    table.write_text("u,v,who,t\n" + "\n".join(rows) + "\n")
    for target, options in (("t", ["--learner", "raker"]), ("t", []), ("v", ["--learner", "omkr"]), ("v", []),
                            ("v", ["--by", "who"]), ("t", ["--by", "who", "--learner", "raker"]),
                            ("v", ["--lags", "1,2", "--lag-columns", "u=0,1", "--horizon", "2", "--learner", "raker"]),
                            ("v", ["--key", "who", "--learner", "sfg-mkl"])):  # fmt: skip
        with_checkpoint = ["--checkpoint", folder / "checkpoint.omkl", "--every", "20"]
        done = invoke("run", table, "--target", target, "--model", folder / "model.omkl", *options, *with_checkpoint)
        assert done.exit_code == 0, done.output
        yield f"stream {target} {' '.join(options)}", registry.read(folder / "model.omkl")
        yield f"checkpoint {target} {' '.join(options)}", registry.read(folder / "checkpoint.omkl")
        (folder / "checkpoint.omkl").unlink()


def packed_fleets() -> Iterator[tuple[str, Any]]:
    """(name, fleet) of small GraphMKL models: keys as rows, as packed models in memory, and on disk; a pool of them."""
    kinds = {"few": {"budget": "small", "kernels": KERNELS, "n_features": 3, "out_degree": 2, "warm_up": 10}}
    kinds["default"] = {}  # models that are large enough for keys with few rows to be kept as these
    for kind, given in kinds.items():
        for name, target, labels in (("GraphMKLRegressor", Y, None), ("GraphMKLClassifier", LABELS, ["a", "b", "c"])):
            fleet = Fleet(getattr(omkl, name)(**given), seed=0, classes=labels)
            fleet.learn_rows(["k"] * 50 + ["l"] * 10, X, target)
            fleet.learn_rows(["k"] * (8 * ROWS), np.tile(X, (8, 1)), np.tile(target, 8))
            yield f"fleet packed {kind} {name}", fleet
    cold = Fleet(omkl.GraphMKLRegressor(**kinds["few"]), seed=0, memory=1 << 20)
    keys = [f"key {k}" for k in range(150)]
    cold.learn_rows(np.repeat(keys, ROWS), np.tile(X, (len(keys), 1)), np.tile(Y, len(keys)))
    assert cold.nbytes_in_memory < cold.nbytes  # some keys are on disk
    yield "fleet packed cold", cold
    pool = omkl.GraphMKLRegressor(random_state=0, **kinds["few"])
    pooled = PooledFleet(omkl.GraphMKLRegressor(**kinds["few"]), pool, seed=0)
    pooled.learn_rows(["k", "l"] * (ROWS // 2), X, Y)
    yield "pooled packed", pooled


def full_budgets() -> Iterator[tuple[str, Any]]:
    """(name, model) whose stored rows, or whose large experts, are all there."""
    more, rows = {"random_state": 0}, (np.random.default_rng(1).normal(size=(300, 2)), np.arange(300) % 3)
    for name in ("NOGDRegressor", "NOGDClassifier", "KRLSTRegressor", "OMKRRegressor", "FOGDRegressor"):
        kind = getattr(omkl, name)
        least = {"budget": 20, "rank": 5, "kernels": as_many_as_taken(kind, KERNELS), "n_features": 3}
        taken = {n: v for n, v in least.items() if n in kind.__dataclass_fields__}
        model = kind(**taken, **more)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", omkl.BudgetWarning)  # it is to be full
            model.fit(X, LABELS if name.endswith("Classifier") else Y)
        yield f"sklearn full {name}", model
    for name in ("GraphMKLRegressor", "GraphMKLClassifier"):
        model = getattr(omkl, name)(kernels=KERNELS, n_features=3, out_degree=2, budget="standard", **more)
        yield f"sklearn large {name}", model.fit(rows[0], rows[1] if name.endswith("Classifier") else rows[0][:, 0])


def tables() -> Iterator[tuple[str, Any]]:
    """(name, model) of tables with text, gaps and many categories, of weighted labels, and of many features."""
    frame = pd.DataFrame({"u": X[:, 0], "w": LABELS, "id": IDS})
    frame.loc[::7, "u"] = np.nan
    rows = frame.to_dict("records")
    for name in ("GraphMKLRegressor", "GraphMKLClassifier", "SFGMKLRegressor", "RakerClassifier"):
        target = Y if name.endswith("Regressor") else LABELS
        weights = {} if name.endswith("Regressor") else {"class_weight": "balanced"}
        yield f"sklearn table {name}", estimator(omkl, name, random_state=0, **weights).fit(frame, target)
        river = estimator(omkl.river, name, seed=0, **weights)
        for row, t in zip(rows, target, strict=True):
            river.learn_one(row, t)
        yield f"river table {name}", river
        for k, t in enumerate(target[:40]):  # features that come later
            river.learn_one({"u": 1.0, f"word {k}": 1.0}, t)
        yield f"river words {name}", river
        sparse = estimator(omkl.river, name, seed=0, **weights)
        for k, t in enumerate(target):  # few of many numbers: sparse inputs of GraphMKL, room for others
            sparse.learn_one({"u": 1.0} | {f"word {2 * k % 50 + j}": 1.0 for j in range(2)}, t)
        yield f"river sparse {name}", sparse
    weights = {"class_weight": {"a": 2.0, "b": 0.5, "c": 1.0}}
    yield "sklearn weights", estimator(omkl, "SFGMKLClassifier", random_state=0, **weights).fit(X, LABELS)


def pipelines() -> Iterator[tuple[str, Any]]:
    """(name, pipeline) of both ecosystems."""
    text = pd.DataFrame({"u": X[:, 0], "v": X[:, 1], "w": LABELS})
    numbers = make_pipeline(SimpleImputer(), StandardScaler(), PolynomialFeatures(2))
    columns = ColumnTransformer(
        [("numbers", numbers, ["u", "v"]), ("text", OneHotEncoder(sparse_output=False, handle_unknown="ignore"), ["w"])]
    )
    learner = estimator(omkl, "GraphMKLRegressor", random_state=0)
    yield "sklearn columns", make_pipeline(columns, MinMaxScaler(), learner).fit(text, Y)
    yield "sklearn table", make_pipeline(omkl.TableEncoder(), RobustScaler(), learner).fit(text, Y)
    select = compose.Select("w") | preprocessing.OneHotEncoder()
    scale = compose.Discard("w") | preprocessing.StandardScaler() | preprocessing.MinMaxScaler()
    encode = omkl.river.TableEncoder()
    for name, step in (("union", select + scale), ("table", encode)):
        river = step | estimator(omkl.river, "GraphMKLRegressor", seed=0)
        for row, y in zip(text.to_dict("records"), Y.tolist(), strict=True):
            river.learn_one(row, y)
        yield f"river {name}", river


def originals(folder: Path) -> list[Path]:
    """A file of every kind, in full and compact."""
    paths = []
    for k, (name, each) in enumerate(models(folder)):
        for compact in (False, True)[: 2 if name.startswith(("sklearn", "river", "fleet", "pooled")) else 1]:
            paths.append(folder / f"{k}{'-compact' if compact else ''}.omkl")
            paths[-1].write_bytes(b"".join(pack(registry.encode(each, compact))))
    return paths


# Edits


def places(body: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value in a JSON value, those of dictionaries and lists among them."""
    items = body.items() if isinstance(body, dict) else enumerate(body) if isinstance(body, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


def at(body: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        body = body[key]
    return body


def with_body(content: Content, path: tuple[Any, ...], value: Any, remove: bool = False) -> Content:
    body = json.loads(json.dumps(content.body))
    if remove:
        del at(body, path[:-1])[path[-1]]
    else:
        at(body, path[:-1])[path[-1]] = value
    return content._replace(body=body)


def swapped(content: Content, one: tuple[Any, ...], other: tuple[Any, ...]) -> Content:
    first, second = at(content.body, one), at(content.body, other)
    return with_body(with_body(content, one, second), other, first)


def with_array(content: Content, name: str, array: np.ndarray | None) -> Content:
    arrays = {n: a for n, a in content.arrays.items() if n != name}
    return content._replace(arrays=arrays if array is None else {**arrays, name: array})


def body_edit(content: Content, rng: np.random.Generator) -> Content:
    every = list(places(content.body))
    path = every[rng.integers(len(every))]
    kind = rng.integers(10)
    if kind == 0:
        return with_body(content, path, None, remove=True)
    if kind == 1:
        others = [p for p in every if p[: len(path)] != path and path[: len(p)] != p]
        return swapped(content, path, others[rng.integers(len(others))]) if others else content
    if kind == 2:  # a value of the same type from another place
        alike = [p for p in every if type(at(content.body, p)) is type(at(content.body, path))]
        return with_body(content, path, at(content.body, alike[rng.integers(len(alike))]))
    if kind == 3 and isinstance(at(content.body, path), list):
        return with_body(content, path, at(content.body, path) * int(rng.integers(2, 5)))
    values = NUMBERS if kind < 8 else OTHERS
    return with_body(content, path, values[rng.integers(len(values))])


def array_edit(content: Content, rng: np.random.Generator) -> Content:
    names = list(content.arrays)
    name = names[rng.integers(len(names))]
    array = content.arrays[name].copy()
    kind = rng.integers(9)
    if kind == 0:
        return with_array(content, name, None)
    if kind == 1:
        return with_array(content, name, content.arrays[names[rng.integers(len(names))]])
    if kind == 2:
        return with_array(content, name, np.nan_to_num(array).astype((float, np.int64, bool)[rng.integers(3)]))
    if kind == 3:
        shapes = (array[None], array[:0], array[..., :-1], array.reshape(-1), np.concatenate((array, array)), array.T)
        return with_array(content, name, np.ascontiguousarray(shapes[rng.integers(len(shapes))]))
    if kind == 4:  # other orders of the same values
        return with_array(content, name, rng.permuted(array.reshape(-1)).reshape(array.shape))
    if array.size and array.dtype.kind in "fi":
        values = FLOATS if array.dtype.kind == "f" else WHOLE
        array.flat[slice(None) if kind == 5 else int(rng.integers(array.size))] = values[rng.integers(len(values))]
    elif array.size:
        array.flat[slice(None) if kind == 5 else int(rng.integers(array.size))] = bool(rng.integers(2))
    return with_array(content, name, array)


def edited(content: Content, rng: np.random.Generator) -> bytes | None:
    """A file with one to three edits; None where that cannot be written."""
    changed = content
    for _ in range(1 + rng.binomial(2, 0.15)):
        which = array_edit if changed.arrays and rng.random() < 0.4 else body_edit
        changed = which(changed, rng)
    if rng.random() < 0.01:
        changed = changed._replace(kind=str(rng.choice(["sklearn", "river", "online", "fleet", "stream", "fleet-key"])))
    try:
        return b"".join(pack(changed))
    except (ValueError, StopIteration, RecursionError):  # what JSON cannot hold
        return None


def differences(before: Content, after: Content) -> str:
    """What was changed, for whoever looks for the reason of a failure."""
    one, other = ({path: at(each.body, path) for path in places(each.body)} for each in (before, after))
    changed = [path for path in one | other if repr(one.get(path, one)) != repr(other.get(path, one))]
    inner = [path for path in changed if not any(p != path and p[: len(path)] == path for p in changed)]
    lines = [f"{path}: {one.get(path, 'absent')!r:.200} -> {other.get(path, 'absent')!r:.200}" for path in inner]
    for name in before.arrays | after.arrays:
        arrays = [described(each.arrays.get(name)) for each in (before, after)]
        lines += [f"array {name}: {' -> '.join(arrays)}"] if arrays[0] != arrays[1] else []
    return "\n".join([f"kind {before.kind} -> {after.kind}", *lines])


def described(array: np.ndarray | None) -> str:
    if array is None:
        return "absent"
    return f"{array.dtype} {array.shape} {array.ravel()[:8].tolist()} (checksum {zlib.crc32(array.tobytes()):x})"


# In a process of its own


def use(found: Any) -> None:
    """Predict and learn a few rows; what the data may be refused for, it may be refused for here too."""
    try:
        exercise(found)
    except (omkl.DivergenceError, omkl.ModelFileError):
        return


def exercise(found: Any) -> None:
    if isinstance(found, omkl.Online):
        d, shape = found.shape.inputs, found.shape
        rows = np.resize(X, (20 if found.backend == "numpy" else ROWS, d)) if d < 10**4 else np.zeros((1, d))
        target = {"number": Y, "sign": np.sign(Y), "label": np.arange(ROWS) % shape.outputs}[shape.target]
        found.predict_rows(rows)
        found.run(rows, target[: len(rows)].astype(float))
        found.learn(rows[0], float(target[0]))
    elif isinstance(found, (Fleet, PooledFleet)):
        own = found.fleet if isinstance(found, PooledFleet) else found
        d = own[next(iter(own))].n_features_in_ if len(own) else 2
        rows, labels = np.resize(X, (ROWS, d)), found.classes
        found.learn_rows(["k", "new"] * (ROWS // 2), rows, Y if labels is None else np.resize(labels, ROWS))
        found.predict_rows(["k", "l"] * (ROWS // 2), rows)
        assert len(own.pack("new")) > 0
    elif isinstance(found, checkpoint.Checkpoint):
        predictions = use_stream(found.model, found.history)
        if found.history is not None:
            found.history.update(*predictions)
            found.history.summary()
            found.history.change_points()
    elif isinstance(found, model.StreamModel):
        use_stream(found, None)
    elif isinstance(found, TableModel):
        use_table(found)
    elif isinstance(found, (Pipeline, compose.Pipeline)):
        use_pipeline(found)
    elif isinstance(found, (omkl.Lags, omkl.river.Lags)):
        use_lags(found)
    elif hasattr(found, "feature_names_in_"):
        use_frame(found)
    elif hasattr(found, "partial_fit"):
        rows = np.resize(X, (ROWS, getattr(found, "n_features_in_", 2)))
        labels = getattr(found, "classes_", LABELS if found.task == "classification" else None)
        known = {"classes": np.unique(labels)} if labels is not None else {}
        outputs = getattr(found, "target_names_", None)
        numbers = Y if outputs is None else np.tile(Y[:, None], len(outputs))
        found.partial_fit(rows, numbers if labels is None else np.resize(labels, ROWS), **known)
        found.predict(rows)
        row = {"u": 0.5, "w": "text", "v": None}
        number = 1.0 if outputs is None else dict.fromkeys(outputs, 1.0)
        found.learn_one(row, number if labels is None else labels[0])
        found.predict_one(row)
    elif hasattr(found, "learn_one"):
        for x, y, label, own in zip(X[:20], Y, LABELS, IDS, strict=False):
            row = {"u": x[0], "w": x[1], "id": own, "word 7": 1.0}
            outputs = found.predict_one(row)
            target = dict.fromkeys(outputs or ("a",), float(y)) if isinstance(outputs, dict) else float(y)
            found.learn_one(row, target if found.task == "regression" else str(label))


def use_frame(found: Any) -> None:
    """Predict and learn; columns that an edited file names otherwise, or reads as another kind, are refused."""
    known = {"w": LABELS, "id": IDS}
    frame = pd.DataFrame({name: known.get(name, X[:, 0]) for name in found.feature_names_in_})
    try:
        found.predict(frame)
        found.partial_fit(frame, Y if found.task == "regression" else LABELS)
        found.predict(frame)
        found.learn_one(frame.iloc[0].to_dict(), Y[0] if found.task == "regression" else "a")
    except ValueError as error:
        raise omkl.DivergenceError(str(error)) from error


def use_lags(found: Any) -> None:
    """Predict and learn; inputs that an edited file names otherwise are refused."""
    frame = pd.DataFrame({"u": X[:, 0], "w": LABELS})
    try:
        if isinstance(found, omkl.Lags):
            found.predict_then_learn(frame, Y)
            found.predict(frame[:5])
            return
        for row, y in zip(frame[:20].to_dict("records"), Y.tolist(), strict=False):
            found.predict_one(row)
            found.learn_one(row, y)
        found.forecast(found.horizon if found.horizon < 9 else 1, [row] * (found.horizon if found.horizon < 9 else 1))
    except ValueError as error:
        raise omkl.DivergenceError(str(error)) from error


def use_table(found: TableModel) -> None:
    """Predict and learn; columns and targets that an edited file names otherwise are refused."""
    frame = pd.DataFrame({"u": X[:, 0], "v": X[:, 1], "w": "x", "t": LABELS})
    frame["who"] = [["k", "new"][k % 2] for k in range(ROWS)]
    try:
        found.predict(frame)
        found.predict_one(frame.iloc[0].to_dict())
        found.partial_fit(frame, Y if found.model.task == "regression" else LABELS)
        found.predict(frame)
    except ValueError as error:
        raise omkl.DivergenceError(str(error)) from error


def use_pipeline(found: Any) -> None:
    """Transform, predict and learn; a step may refuse the cells that it is given, as its data may not fit these."""
    frame = pd.DataFrame({"u": X[:, 0], "v": X[:, 1], "w": LABELS})
    last = list(found.steps.values())[-1] if isinstance(found, compose.Pipeline) else found[-1]
    try:
        if isinstance(found, Pipeline):
            predict = found.predict if hasattr(last, "predict") else found.transform  # a step can be saved alone too
            predict(frame)
            found.fit(frame, Y)
            return
        predict = found.predict_one if hasattr(last, "predict_one") else found.transform_one
        for row, y in zip(frame[:20].to_dict("records"), Y.tolist(), strict=False):
            predict(row)
            found.learn_one(row, y)
    except (ValueError, KeyError) as error:
        raise omkl.DivergenceError(str(error)) from error
    except TypeError as error:
        if "'str'" not in str(error):  # river computes with text that another step should have removed
            raise
        raise omkl.DivergenceError(str(error)) from error


def use_stream(found: Any, history: Any) -> Any:
    names = {"u": pa.array(X[:, 0]), "v": pa.array(X[:, 1]), "w": pa.array(["x"] * ROWS),
             "t": pa.array(LABELS.tolist()), "who": pa.array([["k", "new"][k % 2] for k in range(ROWS)])}  # fmt: skip
    try:
        out = found.learn(found.prepare(Batch(np.arange(1, ROWS + 1) + 10**6, names)), history)
        found.predict(Batch(np.arange(1, ROWS + 1), names))
    except ValueError as error:  # of the command line: the data does not have what the model wants
        if type(error).__name__ != "DataError":
            raise
        raise omkl.DivergenceError(str(error)) from error
    return out


def took_too_much(seconds: float, limit: float, error: Exception | None) -> str:
    """What a file has exhausted; "" if nothing."""
    if isinstance(error, MemoryError) or (error is not None and isinstance(error.__cause__, MemoryError)):
        return "memory"
    return f"{seconds:.1f} seconds of the processor, at most {limit:g}" if seconds > limit else ""


def worker(folder: str, seed: int, first: int, stop: int) -> None:
    """Load and use edits first, ..., stop - 1 of a folder's files; the last line printed names where it ended."""
    sanitized = "asan" in os.environ.get("LD_PRELOAD", "")
    limit = SECONDS * (SANITIZED if sanitized else 1)
    if not sanitized:  # which reserves terabytes of addresses
        addresses, used, *_ = map(int, Path("/proc/self/statm").read_text().split())
        most = MEMORY + (addresses - used) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    paths = sorted(Path(folder).glob("[0-9]*.omkl"))
    contents = [unpack(path.read_bytes()) for path in paths]
    tried = loaded = failed = 0
    slowest = 0.0
    for k in range(first, stop):
        which = k % len(paths)
        rng = np.random.default_rng([abs(seed), k])
        data = paths[which].read_bytes() if seed == UNCHANGED else edited(contents[which], rng)
        if data is None:
            continue
        tried += 1
        os.write(1, f"{k} {paths[which].name}\n".encode())
        signal.setitimer(signal.ITIMER_PROF, HANGS * limit)
        start, caught, report = time.process_time(), None, ""
        try:
            found = omkl.from_bytes(data)
            loaded += 1
            with np.errstate(all="ignore"):
                use(found)
        except Exception as error:
            caught, report = error, traceback.format_exc(-4)
        seconds = time.process_time() - start
        slowest = max(slowest, seconds)
        exhausted = took_too_much(seconds, limit, caught)
        if exhausted or not (caught is None or isinstance(caught, omkl.ModelFileError)):
            failed += 1
            changes = differences(contents[which], unpack(data))
            print(f"edit {k} of {paths[which].name}: {exhausted}\n{changes}\n{report}", file=sys.stderr)
    signal.setitimer(signal.ITIMER_PROF, 0)
    os.write(1, f"{stop} {tried} {loaded} {slowest:.2f}\n".encode())
    sys.exit(bool(failed))


def run(folder: Path, seed: int, start: int, stop: int) -> tuple[int, int, float]:
    """How many files were tried and how many could be loaded, and the seconds of the slowest.

    Fails where one ends the process, raises, or takes too long.
    """
    here = Path(__file__).parent
    code = "import sys, test_fuzz; test_fuzz.worker(sys.argv[1], *map(int, sys.argv[2:]))"
    command = [sys.executable, "-W", "ignore", "-c", code, str(folder), str(seed), str(start), str(stop)]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = f"{here}:{here.parent}:{environment.get('PYTHONPATH', '')}"
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    last = done.stdout.splitlines()[-1] if done.stdout else "nothing"
    if done.returncode:
        number, *rest = last.split()
        if len(rest) == 1:  # it ended the process, which could not say what was changed
            before = unpack((folder / rest[0]).read_bytes())
            after = edited(before, np.random.default_rng([abs(seed), int(number)]))
            done.stderr += differences(before, unpack(after or b""))
        raise Failed(f"seed {seed}, edit {last}: exit {done.returncode} {done.stderr[-3000:]}", last)
    _, tried, loaded, slowest = last.split()
    return int(tried), int(loaded), float(slowest)


class Failed(AssertionError):
    """A file that ended the process: the reason, and the last line that was printed."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("files")
    originals(path)
    return path


def test_files_that_are_not_edited_are_models_that_work(folder: Path):
    count = len(list(folder.glob("[0-9]*.omkl")))
    assert run(folder, UNCHANGED, 0, count)[:2] == (count, count)


def test_edited_files_are_refused_or_models_that_work(folder: Path):
    tried, loaded, _ = run(folder, 0, 0, QUICK)
    assert tried > 0.9 * QUICK
    assert 0.02 * tried < loaded < 0.7 * tried  # some edits are harmless, and most are not


@pytest.mark.parametrize(
    ("seconds", "error", "found"),
    [(0.9, None, ""), (0.9, omkl.ModelFileError("no"), ""), (1.1, None, "1.1 seconds"), (1.1, ValueError(), "1.1 s"),
     (0.1, MemoryError(), "memory")],
)  # fmt: skip
def test_a_file_that_takes_too_long_or_too_much_memory_counts_as_a_failure(seconds: float, error: Any, found: str):
    assert took_too_much(seconds, 1.0, error).startswith(found)
    assert bool(took_too_much(seconds, 1.0, error)) == bool(found)


def test_a_file_that_is_refused_for_want_of_memory_counts_as_a_failure(monkeypatch: pytest.MonkeyPatch):
    def exhaust(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(registry, "decode", exhaust)
    with pytest.raises(omkl.ModelFileError) as caught:
        omkl.from_bytes(omkl.to_bytes(omkl.RakerRegressor()))
    assert took_too_much(0.0, 1.0, caught.value) == "memory"


@pytest.mark.soak
@pytest.mark.parametrize("part", range(MANY // BATCH))
def test_many_edited_files_are_refused_or_models_that_work(folder: Path, part: int):
    run(folder, 1, part * BATCH, (part + 1) * BATCH)


def main(count: int, seed: int, first: int = 0) -> None:
    """Try edits first, ..., count - 1, go on after a failure, and print what there was."""
    here = Path(tempfile.mkdtemp())
    print(len(originals(here)), "kinds of files", flush=True)
    tried = loaded = failures = 0
    slowest, start = 0.0, first
    while start < count:
        stop = min(start + BATCH, count)
        try:
            more = run(here, seed, start, stop)
            tried, loaded, slowest = tried + more[0], loaded + more[1], max(slowest, more[2])
            start = stop
        except Failed as error:
            failures += 1
            print("FAILED", error.args[0], flush=True)
            last, *numbers = error.args[1].split()
            complete = len(numbers) == 3  # nothing but exceptions and slow ones
            tried, loaded = (tried + int(numbers[0]), loaded + int(numbers[1])) if complete else (tried, loaded)
            start = int(last) + (not complete)
        print(
            f"up to {start}: {tried} tried, {loaded} loaded, {failures} failures, the slowest {slowest:.2f} seconds",
            flush=True,
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
