"""Files of every kind and algorithm, edited field by field: each is refused, or a model that predicts and learns.

Edits run in a process of their own, so that a crash is a failure of one test and not the end of all.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import invoke

import omkl
import omkl.river
from omkl.fleet import Fleet
from omkl.persist import registry
from omkl.persist.container import Content, pack, unpack

KERNELS = [omkl.Gaussian(0.5), omkl.Matern(2.0)]
ROWS = 60
X = np.random.default_rng(0).normal(size=(ROWS, 2))
Y, LABELS = X[:, 0] - X[:, 1], np.array(["a", "b", "c"])[np.arange(ROWS) % 3]
QUICK, BATCH = 5, 400  # edits of every file in the quick test; files of one process

NUMBERS = [-1, 0, 1, 2, 3, 10**6, 2**31, 2**53, 2**62 - 1, 2**62, 2**63 - 1, 2**63, 2**64, 10**30, -(2**63), 0.5,
           -0.5, 1e-320, 1e-150, 1e150, 1e300, 1.7e308, -1e300]  # fmt: skip
OTHERS = [None, True, False, "", "nonsense", "regression", "classification", "squared", "logistic", [], [1], {}, [[0]]]
FLOATS = [0.0, -1.0, 1e-320, 1e150, -1e150, 1.7e308, np.nan, np.inf, -np.inf]
WHOLE = [-1, 0, 1, 7, 10**6, 2**31, 2**62, 2**63 - 1, -(2**63)]


# Valid files


def estimator(api: Any, name: str, **more: Any) -> Any:
    known = {"n_features": 3, "warm_up": 10, "out_degree": 2, "draws": 2, "budget": 500}
    kind = getattr(api, name)
    return kind(kernels=KERNELS, **{n: v for n, v in known.items() if n in kind.__dataclass_fields__}, **more)


def models(folder: Path) -> Iterator[tuple[str, Any]]:
    """(name, model) of every kind of file and every algorithm."""
    for name in sorted(omkl.estimators.sklearn.ESTIMATORS):
        target = Y if name.endswith("Regressor") else LABELS
        yield f"sklearn {name}", estimator(omkl, name, random_state=0).fit(X, target)
        river = estimator(omkl.river, name, seed=0)
        for x, t in zip(X, target, strict=True):
            river.learn_one({"u": x[0], "v": x[1]}, t)
        river.predict_one({"u": 0.0}, key="k")
        yield f"river {name}", river
    yield "sklearn refine", estimator(omkl, "SFGMKLRegressor", refine=True, random_state=0).fit(X, Y)
    yield "sklearn new", estimator(omkl, "GraphMKLClassifier")
    for name in ("GraphMKLRegressor", "GraphMKLClassifier", "SFGMKLRegressor", "RakerClassifier"):
        labels = None if name.endswith("Regressor") else ["a", "b", "c"]
        fleet = Fleet(estimator(omkl, name), seed=0, classes=labels)
        fleet.learn_rows(["k", "l"] * (ROWS // 2), X, Y if labels is None else LABELS)
        yield f"fleet {name}", fleet
    for name in omkl.algorithms.names():
        algorithm = omkl.algorithms.get(name)
        choices = {"n_features": 3, "kernels": KERNELS, "out_degree": 2}
        online = omkl.Online.make(name, algorithm.settings(**choices), 2)
        online.run(X, Y)
        yield f"online {name}", online
    table = folder / "table.csv"
    rows = [f"{u},{v},{'k' if u > 0 else 'l'},{t}" for (u, v), t in zip(X, LABELS, strict=True)]
    table.write_text("u,v,who,t\n" + "\n".join(rows) + "\n")
    for target, options in (("t", ["--learner", "raker"]), ("v", ["--learner", "omkr"]), ("v", ["--by", "who"]),
                            ("v", ["--key", "who"])):  # fmt: skip
        done = invoke("run", table, "--target", target, "--model", folder / "model.omkl", *options)
        assert done.exit_code == 0, done.output
        yield f"stream {target} {' '.join(options)}", omkl.load(folder / "model.omkl")


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
    kind = rng.integers(8)
    if kind == 0:
        return with_body(content, path, None, remove=True)
    if kind == 1:
        others = [p for p in every if p[: len(path)] != path and path[: len(p)] != p]
        return swapped(content, path, others[rng.integers(len(others))]) if others else content
    values = NUMBERS if kind < 6 else OTHERS
    return with_body(content, path, values[rng.integers(len(values))])


def array_edit(content: Content, rng: np.random.Generator) -> Content:
    names = list(content.arrays)
    name = names[rng.integers(len(names))]
    array = content.arrays[name].copy()
    kind = rng.integers(8)
    if kind == 0:
        return with_array(content, name, None)
    if kind == 1:
        return with_array(content, name, content.arrays[names[rng.integers(len(names))]])
    if kind == 2:
        return with_array(content, name, np.nan_to_num(array).astype((float, np.int64, bool)[rng.integers(3)]))
    if kind == 3:
        shapes = (array[None], array[:0], array[..., :-1], array.reshape(-1), np.concatenate((array, array)), array.T)
        return with_array(content, name, np.ascontiguousarray(shapes[rng.integers(len(shapes))]))
    if array.size and array.dtype.kind in "fi":
        values = FLOATS if array.dtype.kind == "f" else WHOLE
        array.flat[slice(None) if kind == 4 else int(rng.integers(array.size))] = values[rng.integers(len(values))]
    elif array.size:
        array[...] = bool(rng.integers(2))
    return with_array(content, name, array)


def edited(content: Content, count: int, rng: np.random.Generator) -> Iterator[bytes]:
    for _ in range(count):
        changed = content
        for _ in range(1 + (rng.random() < 0.2)):
            which = array_edit if changed.arrays and rng.random() < 0.4 else body_edit
            changed = which(changed, rng)
        try:
            yield b"".join(pack(changed))
        except (ValueError, StopIteration):  # what JSON cannot hold
            continue


# In a process of its own


def use(model: Any) -> None:
    """Predict and learn a few rows; what the data may be refused for, it may be refused for here too."""
    try:
        exercise(model)
    except (omkl.DivergenceError, omkl.ModelFileError):
        return


def exercise(model: Any) -> None:
    if isinstance(model, omkl.Online):
        d, shape = model.shape.inputs, model.shape
        rows = np.resize(X, (40, d)) if d < 10**4 else np.zeros((1, d))
        target = {"number": Y, "sign": np.sign(Y), "label": np.arange(ROWS) % shape.outputs}[shape.target]
        model.predict_rows(rows)
        model.run(rows, target[: len(rows)].astype(float))
        model.learn(rows[0], float(target[0]))
    elif isinstance(model, Fleet):
        if len(model):
            d = model[next(iter(model))].n_features_in_
            rows = np.resize(X, (ROWS, d))
            labels = model.classes
            model.predict_rows(["k", "l"] * (ROWS // 2), rows)
            model.learn_rows(["k", "new"] * (ROWS // 2), rows, Y if labels is None else np.resize(labels, ROWS))
    elif hasattr(model, "learn_one"):
        for x, y, label in zip(X[:20], Y, LABELS, strict=False):
            row = {"u": x[0], "w": x[1]}
            model.predict_one(row)
            model.learn_one(row, float(y) if model.task == "regression" else str(label))
    elif hasattr(model, "partial_fit") and hasattr(model, "core_"):
        rows = np.resize(X, (ROWS, model.n_features_in_))
        labels = getattr(model, "classes_", None)
        model.partial_fit(rows, Y if labels is None else np.resize(labels, ROWS))
        model.predict(rows)


def main(names: list[str]) -> None:
    """Load and use each of these files; the last line printed names the file that ended the process."""
    loaded = 0
    for name in names:
        print(name, flush=True)
        try:
            model = omkl.from_bytes(Path(name).read_bytes())
        except omkl.ModelFileError:
            continue
        loaded += 1
        with np.errstate(all="ignore"):
            use(model)
    print(f"loaded {loaded}")


def run(folder: Path, files: list[bytes]) -> int:
    """How many files could be loaded; fails where one of them ends the process or raises something else."""
    names = []
    for k, data in enumerate(files):
        names.append(str(folder / f"{k}.omkl"))
        Path(names[-1]).write_bytes(data)
    loaded = 0
    for start in range(0, len(names), BATCH):
        code = "import sys, test_fuzz; test_fuzz.main(sys.argv[1:])"
        command = [sys.executable, "-W", "ignore", "-c", code, *names[start : start + BATCH]]
        environment = dict(os.environ)
        here = Path(__file__).parent
        environment["PYTHONPATH"] = f"{here}:{here.parent}:{environment.get('PYTHONPATH', '')}"
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        last = done.stdout.splitlines()[-1] if done.stdout else "nothing"
        assert done.returncode == 0, f"{last}: {done.stderr[-3000:]}"
        loaded += int(last.split()[1])
    return loaded


def fuzz(folder: Path, each: int, seed: int) -> None:
    files, originals = [], []
    for k, (_, model) in enumerate(models(folder)):
        for compact in (False, True):
            content = unpack(b"".join(pack(registry.encode(model, compact))))
            originals.append(b"".join(pack(content)))
            files += edited(content, each, np.random.default_rng([seed, k, compact]))
    assert run(folder, originals) == len(originals)
    loaded = run(folder, files)
    assert 0.02 * len(files) < loaded < 0.7 * len(files)  # some edits are harmless, and most are not


def test_edited_files_are_refused_or_models_that_work(tmp_path: Path):
    fuzz(tmp_path, QUICK, 0)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10))
def test_many_edited_files_are_refused_or_models_that_work(tmp_path: Path, seed: int):
    fuzz(tmp_path, 50 * QUICK, seed + 1)
