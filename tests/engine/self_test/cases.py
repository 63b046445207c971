"""Rounds of every algorithm, with the results of the NumPy implementation, in a file that self_test.cpp reads.

python cases.py FILE
"""

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from streams import CASES, COMMITS, DESCENDING, PAPER, STABILISERS, Case, of_all_families, raw_and_turning, weights_of

from omkl.algorithms.descent import Descent
from omkl.algorithms.graph_mkl.constants import REFIT_AGES
from omkl.algorithms.runner import ReferenceRunner
from omkl.arrays import leaves
from omkl.kernels import Gaussian
from omkl.losses import LOSSES

TYPES = {"f": ("float", np.float64), "i": ("int", np.int64), "b": ("bool", np.bool_), "u": ("bool", np.uint8)}
GENTLE = {"learning_rate": 0.05, "exploration": 0.5}  # differences grow by dividing by p and q


def write(file: BinaryIO, name: str, value: object) -> None:
    if value is None or isinstance(value, str):
        text = (value or "").encode()
        file.write(f"{name} {'none' if value is None else 'text'} {len(text)}\n".encode() + text)
        return
    array = np.asarray(value)
    kind, dtype = TYPES[array.dtype.kind]
    file.write(f"{name} {kind} {' '.join(map(str, array.shape))}".rstrip().encode() + b"\n")
    file.write(array.astype(dtype, order="C").tobytes())


def write_object(file: BinaryIO, prefix: str, value: Any) -> None:
    """Fields of a Problem, or of what the engine sees of it; the parts of a part follow a dot."""
    fields = value._asdict() if isinstance(value, tuple) else vars(value)
    if isinstance(value, Descent):
        fields = {**fields, "resting_margin": value.resting_margin}
    for name, field in fields.items():
        if isinstance(field, tuple) and hasattr(field, "_fields"):
            write_object(file, f"{prefix}{name}.", field)
        elif np.asarray(field).dtype != object or field is None:  # else kernels, of which the engine has the numbers
            write(file, prefix + name, field)


def write_state(file: BinaryIO, prefix: str, case: Case, state: NamedTuple) -> None:
    for name, leaf in leaves(state).items():
        write(file, prefix + name, leaf)
    if grows := case.algorithm.native.grows:
        write(file, prefix + "n", getattr(state, grows[0]).shape[-1])


class Rows(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None


def write_rounds(file: BinaryIO, title: str, case: Case, problem: Any, state: Any, rows: Rows, seed: int = 0) -> Any:
    """The rows learned from this state on; returns the state after them."""
    runner = ReferenceRunner(case.algorithm, problem, state)
    X, y, weight = rows
    shape = case.algorithm.shape(problem)
    uniforms = np.random.default_rng(seed).random((len(X), case.algorithm.uniforms(problem)))
    out, extra = np.empty((len(X), shape.outputs)), np.empty((len(X), shape.extras))
    write(file, "case", title)
    write(file, "algorithm", case.learner)
    write_object(file, "problem.", case.algorithm.native.view(problem))
    write_state(file, "before.", case, state)
    done, evaluated = runner.run(X, y, uniforms.reshape(-1), weight, out.reshape(-1), extra.reshape(-1))
    write_state(file, "after.", case, runner.state)
    results = {"X": X, "y": y, "weight": weight, "uniforms": uniforms, "done": [done], "evaluated": [evaluated]}
    for name, value in {**results, "predictions": out[:done], "extra": extra[:done]}.items():
        write(file, name, value)
    file.write(b"end\n")
    return runner.state


def of_the_paper() -> Iterator[tuple[Case, int]]:
    """The algorithms of the paper with their options, and a number of inputs."""
    for learner in PAPER:
        shared = {"kernels": of_all_families(11), "n_features": 13, "out_degree": 3, "draws": 4, **GENTLE}
        choices = [(loss, stabiliser) for loss in LOSSES for stabiliser in STABILISERS]
        for k, (loss, stabiliser) in enumerate(choices if learner in DESCENDING else []):
            options = {"loss": loss, "stabiliser": stabiliser, "radius": 0.5, "horizon": (100, None)[k % 2],
                       "commit": COMMITS[k % len(COMMITS)], "commit_after": 30, "freeze_after": (None, 40)[k % 2],
                       "weighted": k % 3 > 0}  # fmt: skip
            yield Case(learner, {**shared, **options}), 3
        yield Case(learner, {**shared, "beta": 0.02, "budget": 20}), 1
        yield Case(learner, {**shared, "draw": "shared"}), 4
        yield Case(learner, {**shared, "n_features": 61}), 9  # more inputs than those whose frequencies are prefetched
        yield Case(learner, {"kernels": [Gaussian(1e-6), Gaussian(1.0)], **GENTLE}), 1  # phases beyond the polynomials
        yield Case(learner, {"learning_rate": 1e300, "stabiliser": "none"}), 2  # diverges


def write_paper(file: BinaryIO) -> None:
    for case, d in of_the_paper():
        problem = case.problem(d)
        X, y = case.stream(90, d)
        r = np.full(case.algorithm.uniforms(problem), 0.4)
        state = case.algorithm.init(problem, r)
        size = 1e99 if "learning_rate" in case.changes and case.changes["learning_rate"] > 1 else 1.0
        for start, weight in ((0, weights_of(60)), (60, None)):
            rows = Rows(X[start : start + 60], size * y[start : start + 60], weight)
            title = f"{case.learner} {case.changes}, rows from {start}"
            state = write_rounds(file, title, case, problem, state, rows, seed=start)


def write_graph_mkl(file: BinaryIO, case: Case, d: int, rows: int) -> None:
    """Single rounds, each from NumPy's state, because rounding grows along a stream: every tenth, those with a refit,
    and those in which a challenger starts or its trial ends."""
    problem = case.problem(d)._replace(trial=60)
    X, y = raw_and_turning(rows, d, change=300)
    if case.algorithm.shape(problem).target == "label":
        y = (np.digitize(X[:, 0], [37, 43]) + (np.arange(rows) >= 300)) % 3.0
    X[np.random.default_rng(1).random(X.shape) < 0.02] = np.nan
    weight = 1 + weights_of(rows)
    state, events = case.algorithm.init(problem, np.full(2, 0.4)), 0
    for k in range(rows):
        here = Rows(X[k : k + 1], y[k : k + 1], weight[k : k + 1])
        after = write_rounds(io.BytesIO(), "", case, problem, state, here, k)
        turns = [s.age < 0 for s in state.sets] != [s.age < 0 for s in after.sets]
        events += turns
        if turns or k % 10 == 0 or any(s.age in REFIT_AGES for s in after.sets):
            write_rounds(file, f"{case}, row {k}", case, problem, state, here, k)
        state = after
    assert events >= 2 or rows < 300, f"{case}: no challenger started, or its trial did not end"


def main(path: Path) -> None:
    with path.open("wb") as file:
        write_paper(file)
        for name in ("graph-mkl", "graph-mkl, labels"):
            learner, changes = CASES[name]
            write_graph_mkl(file, CASES[name], 3, 480)
            write_graph_mkl(file, Case(learner, {**changes, "n_features": 21}), 9, 40)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
