"""How the estimators of both ecosystems are written to model files and read back."""

import hashlib
import math
from collections.abc import Hashable, Iterable
from dataclasses import fields, replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from omkl import algorithms
from omkl.algorithms.base import Algorithm, AlgorithmSettings, EstimatorParameters, P, S, Task
from omkl.algorithms.invariants import is_count
from omkl.arrays import Tensor, leaves
from omkl.engine import Engine
from omkl.estimators.class_weights import ClassWeights, checked_class_weight, decode_class_weight, encode_class_weight
from omkl.estimators.columns import Columns, drawn, limits_of, problem_of
from omkl.estimators.core import Core, LabelCore, check_statistics, restored
from omkl.estimators.cores import AnyCore, ClassWeighting, core_class, settings_of
from omkl.estimators.ids import IdStatistics
from omkl.estimators.outputs import OutputsCore
from omkl.graph import overlap_work
from omkl.kernels import Gaussian, dictionary
from omkl.online import Online
from omkl.persist import (
    Arrays,
    Json,
    decode_kernels,
    decode_problem,
    decode_progress,
    demand,
    encode_kernels,
    encode_problem,
    encode_progress,
    float_array,
    grouped,
    item,
    plain,
    saving,
)
from omkl.scaling import InputScaler

if TYPE_CHECKING:
    from omkl.encoder import Encoder

C = TypeVar("C", bound=Core)

LARGEST_MADE = 2**24  # numbers that it may take to make again what a file does not contain
LARGEST_NEW = 2**22  # numbers that it may take to make the first model of an estimator that has none


def encode_parameters(parameters: dict[str, object], seed_name: str, seed: int | None) -> dict[str, Json]:
    """Constructor arguments as JSON; a source of randomness that is not a number becomes the seed drawn from it."""
    out: dict[str, Json] = {}
    for name, value in parameters.items():
        if name == "kernels" and isinstance(value, Iterable) and not isinstance(value, str):
            out[name] = encode_kernels(value)
        elif name == "class_weight":
            out[name] = encode_class_weight(checked_class_weight(value))
        elif isinstance(value, (tuple, list)):
            out[name] = [plain(part, f"parts of the parameter {name}") for part in value]
        elif name == seed_name and value is not None:
            out[name] = int(value) if isinstance(value, (int, np.integer)) else seed
            if out[name] is not None and out[name] < 0:
                raise ValueError(f"{name} must be at least 0 to be saved, got {value}")
        else:
            out[name] = plain(value, f"values of the parameter {name}")
    return out


def work(settings: AlgorithmSettings, algorithm: Algorithm[P, S], d: int = 1, outputs: int = 1) -> int:
    """About how many numbers it takes to make a model of these settings."""
    graph = overlap_work(settings.all_kernels) if "graph" in algorithm.Problem._fields else 0
    return settings.size(d, outputs) + graph


def check_parameters(parameters: EstimatorParameters, task: Task, core: Core | None, outputs: int = 1) -> None:
    """Parameters are valid, fit `core`, and ask for no larger a model than a file may: `core`, or LARGEST_NEW."""
    settings = settings_of(parameters, task)
    if isinstance(parameters, ClassWeighting) and isinstance(core, LabelCore):
        core.class_weights.replaced(parameters.class_weight, core.labels)
    algorithm = algorithms.get(parameters.algorithm_name)
    there = 0 if core is None else work(core.settings, algorithms.get(core.learner), 1, max(len(core.labels), 1))
    if work(settings, algorithm, 1, outputs) > max(LARGEST_NEW, there):
        raise ValueError(
            f"the parameters ask for a model of more than {LARGEST_NEW} numbers, which a model file may only describe "
            "if it contains that model; use fewer kernels or a smaller n_features, or save it after fitting"
        )
    if core is None:  # what it will start from can be made
        algorithm.check_problem(algorithms.problem(algorithm.name, settings, d=1))


def decode_parameters(kind: type[EstimatorParameters], body: Json, seed_name: str) -> dict[str, Json]:
    """Constructor arguments of an estimator class; those of earlier versions under their names of today."""
    parameters = renamed(kind().algorithm_name, body)
    seed = parameters.get(seed_name)
    demand(seed is None or (type(seed) is int and seed >= 0), f"{seed_name} must be a whole number of at least 0")
    for name, value in parameters.items():
        if name == "kernels" and isinstance(value, list):
            parameters[name] = decode_kernels(value)
        elif name == "class_weight":
            parameters[name] = decode_class_weight(value)
        elif isinstance(value, list):
            parameters[name] = tuple(plain(part) for part in value)
        else:
            plain(value, f"values of the parameter {name}")
    return parameters


def require_class(kind: type[EstimatorParameters], core: Core) -> None:
    """An estimator of this class can have this core."""
    demand(issubclass(kind, algorithms.get(core.learner).parameters), "the estimator and its learner differ")


def renamed(learner: str, body: Json) -> dict[str, Json]:
    """Settings or parameters under their names of today, with those that there were not."""
    algorithm = algorithms.get(learner)
    return dict(algorithm.before) | {algorithm.renamed.get(name, name): value for name, value in body.items()}


def encode_core(core: Core | None, arrays: Arrays, compact: bool) -> Json:
    if core is None:
        return None
    settings = {f.name: _settled(getattr(core.settings, f.name)) for f in fields(core.settings)}
    kernels = dictionary(core.settings.kernels)
    body: dict[str, Json] = {
        "learner": core.learner,
        "task": core.task,
        "settings": settings | {"kernels": encode_kernels(kernels)},
        "seed": core.seed,
        "names": [plain(name) for name in core.names],
        "scaled": core.inputs is not None,
    }
    if core.columns.room:
        body |= {"named": core.columns.named, "room": core.columns.room}
    if core.encoder is not None:
        body["encoder"] = core.encoder.body()
    if isinstance(core, LabelCore) and core.class_weights.given is not None:
        body["class_weight"] = encode_class_weight(core.class_weights.given)
    algorithm, problem = core.online.algorithm, core.online.problem
    V = problem.V if "V" in problem._fields else None
    made = work(core.settings, algorithm, drawn(core.learner, core.columns), max(len(core.labels), 1))
    if compact and V is not None:
        with saving():
            algorithm.check_problem(problem)
        body["drawn"] = digest(V)
    if "drawn" not in body or made > LARGEST_MADE:
        body["problem"] = encode_problem(algorithm, problem, arrays)
    return body | encode_learned(core, arrays)


def _settled(value: object) -> Json:
    """A setting as JSON."""
    return [_settled(part) for part in value] if isinstance(value, tuple) else item(value)


def encode_learned(core: Core, arrays: Arrays) -> dict[str, Json]:
    """What a core has learned, without the problem that it shares with others."""
    with saving():
        for scaler in core.scalers().values():
            check_statistics(scaler.stats)
    if core.inputs is not None:
        arrays["inputs"] = core.inputs.stats
    body = core.encode_own(arrays)
    if isinstance(core, LabelCore) and core.class_weights.given == "balanced":
        body["label_counts"] = core.class_weights.encode_counts(core.labels)
    if core.ids is not None:
        body["ids"] = core.ids.encode(arrays)
    body["progress"] = [encode_progress(o, arrays, f"{k}.") for k, o in enumerate(core.learners)]
    return body


def decode_core(body: Json, arrays: Arrays) -> AnyCore | OutputsCore | None:
    if body is None:
        return None
    learner, names = body["learner"], tuple(body["names"])
    demand(isinstance(body["names"], list), "names must be a list without duplicates")
    columns = decode_columns(learner, names, body)
    algorithm = algorithms.get(learner)
    kernels = decode_kernels(body["settings"]["kernels"])
    settings = algorithm.settings(**(renamed(learner, body["settings"]) | {"kernels": kernels}))
    if "problem" in body:
        problem = decode_problem(algorithm, body["problem"], arrays)
    else:
        N, D = len(settings.all_kernels), settings.n_features
        outputs = max(len(body.get("labels", ())), 1)
        made = work(settings, algorithm, drawn(learner, columns), outputs)
        demand(made <= LARGEST_MADE, "its random features and its graph are too large to be made again")
        demand(sum(array.size for array in arrays.values()) >= 2 * N * D, "theta does not fit the problem")
        problem = problem_of(learner, settings, columns, body["seed"])
        algorithm.check_problem(problem)
        demand(
            digest(problem.V) == body["drawn"],
            "its random features come out differently on this version of NumPy; write it with save on the old one",
        )
    shape = algorithm.shape(problem)
    d = shape.inputs
    demand(columns.number == d, "names and problem differ in number")
    demand(type(body["seed"]) is int and body["seed"] >= 0, "the seed must be a whole number of at least 0")
    require_settings(algorithm, problem, settings, columns, body["seed"])
    # the problem decides what a target is; files of version 1 do not name the task
    task: Task = "regression" if shape.target == "number" else "classification"
    demand(body.get("task", task) == task and task in algorithm.tasks, "the task and the problem differ")
    demand(("labels" in body) == (task == "classification"), "there are labels for classification, and for it alone")
    demand("outputs" not in body or task == "regression", "there are outputs for regression alone")
    demand("class_weight" not in body or task == "classification", "weights of labels are for classification")
    several: type[OutputsCore] | None = OutputsCore if "outputs" in body else None
    core: AnyCore | OutputsCore = object.__new__(several or core_class(learner, task))
    if isinstance(core, LabelCore):
        core.class_weights = ClassWeights(decode_class_weight(body.get("class_weight")))
    core.learner, core.settings, core.seed, core.columns = learner, settings, int(body["seed"]), columns
    core.inputs = InputScaler(d) if body["scaled"] else None
    core.encoder = decode_encoder(body.get("encoder"), columns.own)
    demand(core.encoder is None or core.encoder.codes in (0, core.codes), "the columns and the task differ")
    if "ids" in body:
        demand(core.codes > 0, "several targets have no statistics of categories")
        core.ids = IdStatistics.decode(body["ids"], arrays, core.codes, columns)
    return decode_learned(core, problem, None, body, arrays)


def decode_columns(learner: str, names: tuple[Hashable, ...], body: Json) -> Columns:
    named, room = body.get("named", len(names)), body.get("room", 0)
    limits = limits_of(learner)
    demand(
        is_count(named) and is_count(room) and room <= limits.most,
        "the number of columns must be a count",
    )
    demand(1 <= named <= len(names) <= named + room, "names and columns differ in number")
    demand(len(set(names)) == len(names), "names must be a list without duplicates")
    return Columns(names, limits, named, room)


def decode_encoder(body: Json, names: Iterable[Hashable]) -> "Encoder | None":
    """The encoder of a core with these features."""
    if body is None:
        return None
    from omkl.encoder import Encoder, warn  # pyarrow takes time to load, and numbers do without

    encoder = Encoder.from_body(body, warn)
    demand(set(names) <= set(encoder.features), "the columns and the features differ")
    return encoder


def require_settings(
    algorithm: Algorithm[P, S], problem: P, settings: AlgorithmSettings, columns: Columns, seed: int
) -> None:
    """The problem differs from the one that these settings make only as its features and kernels do.

    Once there is a new feature, the settings make the next problem, which the state has to fit. Here they make one of
    one feature and with other kernels, as many of them: a graph of Gaussian ones takes little to compute.
    """
    N, D = len(settings.all_kernels), settings.n_features
    V = getattr(problem, "V", None)
    shape = N, drawn(algorithm.name, columns), D
    demand(not isinstance(V, np.ndarray) or V.shape == shape, "settings and problem differ in size")
    other = replace(settings, kernels=[Gaussian(1.0)] * len(dictionary(settings.kernels)))
    made: P = algorithms.problem(algorithm.name, other, names=[str(name) for name in columns.names[:1]], seed=seed)
    algorithm.check_problem(made)
    parts, wanted = leaves(problem), leaves(made)
    demand(parts.keys() == wanted.keys(), "settings and problem differ in size")
    for name, value in wanted.items():
        if not isinstance(value, np.ndarray) and name.partition(".")[0] not in algorithm.of_inputs:
            demand(_agree(parts[name], value), f"settings and problem differ in {name}")
    d = algorithm.shape(problem).inputs
    demand(algorithm.shape(made)._replace(inputs=d) == algorithm.shape(problem), "settings and problem differ in kind")


def _agree(claimed: object, made: object) -> bool:
    """Whether two values of a problem are the same, numbers up to rounding, which differs between machines."""
    return math.isclose(claimed, made) if isinstance(claimed, float) and isinstance(made, float) else claimed == made


def decode_learned(core: C, problem: NamedTuple, compiled: Engine | None, body: Json, arrays: Arrays) -> C:
    """The core with all that `encode_learned` wrote; `compiled` may be shared."""
    algorithm = algorithms.get(core.learner)
    learners = []
    own = grouped(arrays)
    for k, part in enumerate(body["progress"]):
        checkpoint = decode_progress(algorithm, problem, part, own.get(str(k), {}))
        learners.append(Online(core.learner, problem, checkpoint=checkpoint, compiled=compiled))
    if core.inputs is not None:
        core.inputs = restored(InputScaler(core.columns.number), float_array(arrays, "inputs"))
    core.decode_own(body, arrays, learners)
    if isinstance(core, LabelCore):
        core.class_weights = core.class_weights.fresh()
        if core.class_weights.given == "balanced":
            core.class_weights.decode_counts(body["label_counts"], core.labels)
    core._set_up()
    return core


def digest(V: Tensor) -> str:
    return hashlib.blake2b(np.ascontiguousarray(V).tobytes(), digest_size=16).hexdigest()
