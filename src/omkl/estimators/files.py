"""How the estimators of both doors are written to model files and read back."""

import hashlib
from dataclasses import fields
from typing import Any

import numpy as np

from omkl.arrays import Matrix, Tensor
from omkl.estimators.core import Core, LabelCore, TargetCore
from omkl.estimators.graph_core import GraphCore, GraphLabelCore, GraphTargetCore
from omkl.kernels import Kernel
from omkl.online import Online
from omkl.persist import (
    Arrays,
    decode_kernels,
    decode_problem,
    decode_progress,
    demand,
    encode_kernels,
    encode_problem,
    encode_progress,
    plain,
)
from omkl.scaling import InputScaler, RunningStatistics, TargetScaler
from omkl.settings import GraphSettings, Settings

LARGEST_DRAWN = 2**27  # frequencies; a compact file that asks for more is not believed
_CORES: dict[tuple[bool, bool], type[Core]] = {
    (False, False): TargetCore,
    (False, True): LabelCore,
    (True, False): GraphTargetCore,
    (True, True): GraphLabelCore,
}
MOST_KERNELS = 1000  # in a compact file: the graph is built anew, in time that grows with its square


def encode_parameters(parameters: dict[str, Any], seed_name: str, seed: int | None) -> dict[str, Any]:
    """Constructor arguments as JSON; a source of randomness that is not a number becomes the seed taken from it."""
    out: dict[str, Any] = {}
    for name, value in parameters.items():
        if name == "kernels" and not isinstance(value, str):
            out[name] = encode_kernels(value)
        elif isinstance(value, tuple):
            out[name] = [plain(part) for part in value]
        elif name == seed_name and value is not None and not isinstance(value, (int, np.integer)):
            out[name] = seed
        else:
            out[name] = plain(value)
    return out


def decode_parameters(body: Any) -> dict[str, Any]:
    parameters = dict(body)
    if isinstance(parameters.get("kernels"), list):
        parameters["kernels"] = decode_kernels(parameters["kernels"])
    for name in ("orders", "singles", "steps", "widths"):
        if parameters.get(name) is not None:
            parameters[name] = tuple(parameters[name])
    return parameters


def encode_core(core: Core | None, arrays: Arrays, compact: bool) -> Any:
    if core is None:
        return None
    settings = {f.name: getattr(core.settings, f.name) for f in fields(core.settings)}
    kernels: tuple[Kernel, ...] = settings.pop("kernels")
    body: dict[str, Any] = {
        "learner": core.learner,
        "settings": settings | {"kernels": encode_kernels(kernels)},
        "seed": core.seed,
        "names": [plain(name) for name in core.names],
        "scaled": core.inputs is not None,
    }
    problem = core.online.problem
    if compact and (V := getattr(problem, "V", None)) is not None and V.size <= LARGEST_DRAWN:
        demand(len(V) <= MOST_KERNELS, f"more than {MOST_KERNELS} kernels do not fit a compact file; use save")
        body["drawn"] = digest(V)
    else:
        body["problem"] = encode_problem(problem, arrays)
    return body | encode_learned(core, arrays)


def encode_learned(core: Core, arrays: Arrays) -> dict[str, Any]:
    """All of a core but what it starts from."""
    body: dict[str, Any] = {}
    if core.inputs is not None:
        arrays["inputs"] = core.inputs.stats
    if isinstance(core, TargetCore) and core.target is not None:
        arrays["target"] = core.target.stats
    if isinstance(core, GraphLabelCore):
        body["labels"] = [plain(label) for label in core.labels]
    if isinstance(core, LabelCore):
        body |= {"labels": [plain(label) for label in core.labels], "closed": core.closed,
                 "rest": core.rest is not None, "first": core.each.index(core.online)}  # fmt: skip
    body["progress"] = [encode_progress(o, arrays, f"{k}.") for k, o in enumerate(core.learners)]
    return body


def decode_core(body: Any, arrays: Arrays) -> Any:
    if body is None:
        return None
    learner, names = body["learner"], tuple(body["names"])
    kind = GraphSettings if learner == "graph-mkl" else Settings
    settings: Any = kind(**(body["settings"] | {"kernels": decode_kernels(body["settings"]["kernels"])}))
    if "problem" in body:
        problem = decode_problem(learner, body["problem"], arrays)
    else:
        N = len(settings.all_kernels)
        demand(N * len(names) * settings.n_features <= LARGEST_DRAWN and N <= MOST_KERNELS, "too large a problem")
        *_, outer, inner = arrays["0.theta"].shape
        fits = inner == (2 * settings.n_features if learner == "graph-mkl" else settings.n_features)
        demand(fits and arrays["0.theta"].size >= N * inner * outer, "theta does not fit")
        problem = settings.problem(learner, names=[str(name) for name in names], seed=body["seed"])
        demand(
            digest(problem.V) == body["drawn"],
            "its random features come out otherwise on this version of NumPy; write it with save on the old one",
        )
    d = problem.d if learner == "omkr" else problem.V.shape[1]
    demand(len(names) == d == len(set(names)), "names and problem differ in number")
    core: Any = object.__new__(_CORES[learner == "graph-mkl", "labels" in body])
    core.learner, core.settings, core.seed, core.names = learner, settings, int(body["seed"]), names
    core.inputs = InputScaler(d) if body["scaled"] else None
    return decode_learned(core, problem, None, body, arrays)


def decode_learned(core: Any, problem: Any, compiled: Any, body: Any, arrays: Arrays) -> Any:
    """A core with all that `encode_learned` kept; `compiled` may be shared."""
    learners = [_online(core.learner, problem, compiled, part, arrays, k) for k, part in enumerate(body["progress"])]
    scaled = core.inputs is not None
    if scaled:
        core.inputs = _running(InputScaler(len(core.names)), arrays["inputs"])
    if isinstance(core, GraphCore):
        demand(len(learners) == 1, "GraphMKL is one learner")
        core.online = learners[0]
        if isinstance(core, GraphLabelCore):
            core.labels = list(body["labels"])
            demand(max(len(core.labels), 1) == problem.K, "labels and outputs differ")
    elif isinstance(core, TargetCore):
        demand(len(learners) == 1, "a number has one learner")
        core.online = learners[0]
        scaler: Any = _running(TargetScaler(), arrays["target"]) if scaled else None
        core.target = scaler
    else:
        core.labels, core.closed = list(body["labels"]), body["closed"]
        core.rest = learners.pop() if body["rest"] else None
        core.each = learners
        demand(len(learners) == (len(core.labels) if len(core.labels) > 2 else 1), "labels and learners differ")
        demand(core.closed is None or len(core.labels) <= core.closed, "more labels than there may be")
        core.online = learners[body["first"]]
    core._set_up()
    return core


def _online(learner: str, problem: Any, compiled: Any, body: Any, arrays: Arrays, k: int) -> Online:
    checkpoint = decode_progress(learner, problem, body, arrays, f"{k}.")
    return Online(learner, problem, checkpoint=checkpoint, compiled=compiled)


def _running(scaler: RunningStatistics, stats: Matrix) -> RunningStatistics:
    demand(stats.shape == scaler.stats.shape and stats.dtype == np.float64, "the scaling does not fit the problem")
    demand(bool((stats[[0, 2]] >= 0).all()), "a count or a sum of squares is negative")
    scaler.restore(stats)
    return scaler


def digest(V: Tensor) -> str:
    return hashlib.blake2b(np.ascontiguousarray(V).tobytes(), digest_size=16).hexdigest()
