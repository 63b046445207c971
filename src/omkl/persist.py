"""Models as one file: arrays and a JSON header, nothing that executes.

Layout, all numbers little-endian:

    8 bytes    magic
    4          format version
    8          length of the header
    ...        header, JSON: kind, body, and name, type and shape of every array
    ...        the arrays, one after the other
    32         BLAKE2b of everything before

A file says nothing of when or where it was written. Reading trusts nothing: a file that is
truncated, changed, foreign, newer or inconsistent is a ModelFileError, and no more memory is
taken than the file itself has (compact files: than a bounded problem needs).

Other rooms make their classes known with `register`; this one knows `Online`.
"""

import hashlib
import importlib
import json
import math
import os
import secrets
import struct
from collections.abc import Callable, Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from omkl.algorithms import graph_mkl
from omkl.algorithms.descent import STABILISERS, Descent
from omkl.algorithms.schedule import Schedule
from omkl.algorithms.sfg_mkl import COMMITS
from omkl.arrays import padded_copy
from omkl.errors import ModelFileError
from omkl.graph import Graph
from omkl.kernels import Cauchy, Gaussian, Kernel, Laplacian, Matern
from omkl.losses import LOSSES
from omkl.online import ROUNDS, Checkpoint, Online

MAGIC = b"OMKL\r\n\x1a\n"
VERSION = 1
DIGEST = 32
FRONT = struct.Struct("<8sIQ")
TYPES = {"float": np.dtype("<f8"), "int": np.dtype("<i8"), "bool": np.dtype("|b1")}
MAY_HAVE_HOLES = ("rows", "mean")  # NaN stands for a value that was not there
Arrays = dict[str, Any]


class Codec(NamedTuple):
    """How one kind of model becomes (JSON body, arrays) and comes back."""

    classes: tuple[type, ...]
    encode: Callable[[Any, bool], tuple[Any, Arrays]]  # (model, compact) -> (body, arrays)
    decode: Callable[[Any, Arrays], Any]


_CODECS: dict[str, Codec] = {}
_HOMES = {
    "sklearn": "omkl.estimators.sklearn",
    "river": "omkl.estimators.river",
    "stream": "omkl.stream.codec",
    "checkpoint": "omkl.stream.checkpoint",
    "fleet": "omkl.fleet.local",
    "fleet-key": "omkl.fleet.template",
}
_KERNELS: dict[str, type[Kernel]] = {c.__name__: c for c in (Gaussian, Laplacian, Matern, Cauchy)}


def register(kind: str, codec: Codec) -> None:
    """Make a kind of model known to `save` and `load`."""
    _CODECS[kind] = codec


def register_kernel(kernel: type[Kernel]) -> type[Kernel]:
    """Make a user's own kernel known to `load`; to be called before loading, or used as a decorator."""
    _KERNELS[kernel.__name__] = kernel
    return kernel


def _codec_for(model: Any) -> tuple[str, Codec]:
    for kind, codec in _CODECS.items():
        if isinstance(model, codec.classes):
            return kind, codec
    raise TypeError(f"only omkl's estimators, fleets and Online can be saved, got {type(model).__name__}")


def _codec(kind: str) -> Codec:
    if kind not in _CODECS and kind in _HOMES:
        importlib.import_module(_HOMES[kind])
    return _CODECS[kind]


# Front door


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a model to `path`, atomically: the file is there whole, or as it was before."""
    write_atomically(path, *_pieces(model, compact=False))


def load(path: str | os.PathLike[str]) -> Any:
    """The model that `save` wrote; it goes on learning as if it had never stopped."""
    return _unpack(Path(path).read_bytes(), str(path))


def to_bytes(model: Any) -> bytes:
    """A model as bytes without its random features, which are drawn again from the seed when it comes back.

    Drawn features must come out the same; should another version of NumPy draw others,
    `from_bytes` says so. For keeping a model for years take `save`.
    """
    return _pack(model, compact=True)


def from_bytes(data: bytes) -> Any:
    """The model that `to_bytes` or `save` made."""
    return _unpack(data, "these bytes")


def write_atomically(path: str | os.PathLike[str], *pieces: bytes | memoryview) -> None:
    """A temporary file beside `path`, flushed to the disk, then renamed; pipes and devices are written to."""
    path = Path(path).resolve()
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            file.writelines(pieces)
        return
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with temporary.open("xb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if hasattr(os, "O_DIRECTORY"):
        folder = os.open(path.parent, os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


# Container


def _pack(model: Any, compact: bool) -> bytes:
    return b"".join(_pieces(model, compact))


def _pieces(model: Any, compact: bool) -> list[bytes | memoryview]:
    """A model file in its parts: a fleet's are too large to be copied together."""
    kind, codec = _codec_for(model)
    body, arrays = codec.encode(model, compact)
    listing: list[Any] = []
    chunks: list[memoryview] = []
    for name, array in arrays.items():
        word = next(word for word, dtype in TYPES.items() if dtype.kind == array.dtype.kind)
        listing.append([name, word, list(array.shape)])
        chunks.append(np.ascontiguousarray(array, dtype=TYPES[word]).ravel().view(np.uint8).data)
    header = json.dumps({"kind": kind, "body": body, "arrays": listing}, separators=(",", ":"), allow_nan=False)
    text = header.encode()
    pieces: list[bytes | memoryview] = [FRONT.pack(MAGIC, VERSION, len(text)), text, *chunks]
    digest = hashlib.blake2b(digest_size=DIGEST)
    for piece in pieces:
        digest.update(piece)
    return [*pieces, digest.digest()]


def _unpack(data: bytes, where: str) -> Any:
    if len(data) < FRONT.size or not data.startswith(MAGIC):
        raise ModelFileError(f"{where}: not an omkl model file, or cut off within its first {FRONT.size} bytes")
    _, version, length = FRONT.unpack_from(data)
    if version > VERSION:
        raise ModelFileError(
            f"{where}: format version {version} is newer than {VERSION}, the newest this omkl reads; upgrade omkl"
        )
    content, digest = memoryview(data)[:-DIGEST], data[-DIGEST:]
    if hashlib.blake2b(content, digest_size=DIGEST).digest() != digest:
        raise ModelFileError(f"{where}: truncated or corrupted, its checksum does not match")
    try:
        header = json.loads(bytes(content[FRONT.size : FRONT.size + length]))
        arrays = _arrays(header["arrays"], content[FRONT.size + length :])
        return _codec(header["kind"]).decode(header["body"], arrays)
    except ModelFileError as error:
        raise ModelFileError(f"{where}: {error}") from None
    except ImportError:
        raise
    except Exception as error:  # whatever an untrue header leads to
        raise ModelFileError(f"{where}: inconsistent content ({type(error).__name__}: {error})") from error


def encode_part(model: Any, arrays: Arrays, prefix: str) -> Any:
    """A model within the file of another, its arrays among the others under `prefix`."""
    kind, codec = _codec_for(model)
    body, mine = codec.encode(model, False)
    arrays |= {prefix + name: array for name, array in mine.items()}
    return {"kind": kind, "body": body}


def decode_part(part: Any, arrays: Arrays, prefix: str) -> Any:
    mine = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
    return _codec(part["kind"]).decode(part["body"], mine)


def _arrays(listing: Any, content: memoryview) -> Arrays:
    arrays: Arrays = {}
    start = 0
    for name, word, shape in listing:
        dtype = TYPES[word]
        demand(all(isinstance(n, int) and n >= 0 for n in shape), f"array {name} has no such shape")
        size = math.prod(shape) * dtype.itemsize
        demand(size <= len(content) - start, f"array {name} is longer than the file")
        arrays[name] = np.frombuffer(content[start : start + size], dtype=dtype).reshape(shape).copy()
        if dtype.kind == "f":
            holes = name.rpartition(".")[2] in MAY_HAVE_HOLES
            real = np.isfinite(arrays[name]) | (np.isnan(arrays[name]) & holes)
            demand(bool(real.all()), f"array {name} is not finite")
        start += size
    demand(start == len(content), "arrays and file differ in length")
    return arrays


def demand(holds: bool, complaint: str) -> None:
    if not holds:
        raise ModelFileError(complaint)


# Values


def plain(value: Any) -> Any:
    """A label, key or name as JSON that remembers its type."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or type(value) in (bool, int, float, str):
        return value
    raise ValueError(f"labels, keys and names must be numbers, strings or booleans to be saved, got {value!r}")


def encode_kernels(kernels: Iterable[Kernel]) -> list[Any]:
    return [[type(k).__name__, {f.name: getattr(k, f.name) for f in fields(k)}] for k in kernels]


def decode_kernels(listing: Any) -> list[Kernel]:
    for name, _ in listing:
        demand(
            name in _KERNELS,
            f"kernel {name!r} is not known; if it is your own, call omkl.persist.register_kernel on it before loading",
        )
    return [_KERNELS[name](**values) for name, values in listing]


# Online


def encode_problem(problem: Any, arrays: Arrays) -> dict[str, Any]:
    body: dict[str, Any] = {}
    for name, value in problem._asdict().items():
        if isinstance(value, Graph):
            arrays |= {f"graph.{part}": array for part, array in value._asdict().items()}
        elif isinstance(value, np.ndarray):
            arrays[name] = value
        elif name == "kernels":
            body[name] = encode_kernels(value)
        else:
            body[name] = list(value) if isinstance(value, tuple) else value
    return body


def decode_problem(learner: str, body: Any, arrays: Arrays) -> Any:
    given = dict(body)
    if "V" in arrays:
        demand(arrays["V"].ndim == 3 and min(arrays["V"].shape) >= 1, "V has no such shape")
        given["V"] = padded_copy(arrays["V"])
    if "graph.order" in arrays:
        given["graph"] = Graph(*(arrays[f"graph.{part}"] for part in Graph._fields))
    if "kernels" in given:
        given["kernels"] = tuple(decode_kernels(given["kernels"]))
    if "descent" in given:
        given["descent"] = Descent(*given["descent"])
    if "schedule" in given:
        given["schedule"] = Schedule(*given["schedule"])
    for name in ("steps", "widths", "ridges"):
        if name in given:
            given[name] = tuple(given[name])
    problem = ROUNDS[learner].Problem(**given)
    check_problem(problem)
    return problem


def check_problem(problem: Any) -> None:
    """What C++ relies on."""
    if hasattr(problem, "schedule"):
        eta, xi, anytime = problem.schedule
        demand(_number(eta) and eta > 0 and _number(xi) and 0 <= xi <= 1 and isinstance(anytime, bool), "bad schedule")
    if hasattr(problem, "descent"):
        loss, lam, stabiliser, radius = problem.descent
        demand(loss in LOSSES and stabiliser in STABILISERS, "bad loss or stabiliser")
        demand(_number(lam) and lam >= 0 and _number(radius) and radius > 0, "bad ridge or radius")
    if hasattr(problem, "graph"):
        N = len(problem.V)
        order, A, cover = problem.graph
        demand(order.shape == A.shape == (N, N) and cover.shape == (N,), "graph and kernels differ in number")
        demand(order.dtype == np.int64 and A.dtype == np.bool_ and cover.dtype == np.float64, "bad graph")
        demand(bool((np.sort(order, axis=1) == np.arange(N)).all()), "the graph's order is not one")
        demand(bool(A.any(axis=1).all() and A.any(axis=0).all()), "a node hears nothing or is never heard")
    if hasattr(problem, "commit"):
        demand(problem.commit in COMMITS and _whole(problem.commit_after), "bad commit rule")
    if hasattr(problem, "steps"):
        demand(problem.task in ("regression", "classification"), "bad task")
        demand(_whole(problem.K) and problem.K >= 1 and (problem.K == 1 or problem.task != "regression"), "bad outputs")
        demand(all(_number(step) and 0 < step <= 1 for step in problem.steps), "bad steps")
        demand(all(_number(width) and width > 0 for width in problem.widths), "bad widths")
        right = all(_number(ridge) and ridge > 0 for ridge in problem.ridges)
        demand(right and len(problem.ridges) == len(problem.V) + graph_mkl.on_inputs(problem), "bad ridges")
        demand(_whole(problem.active) and problem.active >= 2 and _whole(problem.warm_up), "bad number of experts")
        demand(all(_number(a) and 0 <= a < 1 for a in (problem.discount, problem.memory)), "bad discount or memory")
        demand(_whole(problem.trial) and isinstance(problem.correct, bool), "bad trial or correction")
        demand(_number(problem.sure) and 0 <= problem.sure < 1, "bad sure")
    for name in ("budget", "freeze_after"):
        demand(getattr(problem, name, None) is None or _whole(getattr(problem, name)), f"bad {name}")
    if hasattr(problem, "M"):
        demand(_whole(problem.M) and 1 <= problem.M <= 10**6 and isinstance(problem.weighted, bool), "bad draws")
    if hasattr(problem, "beta"):
        demand(problem.beta is None or (_number(problem.beta) and problem.beta > 0), "bad beta")
    if hasattr(problem, "kernels"):
        demand(_whole(problem.d) and problem.d >= 1 and len(problem.kernels) >= 1, "bad dictionary")


def check_state(problem: Any, state: Any) -> None:
    demand(_whole(state.t), "bad number of rounds")
    if hasattr(state, "incumbent"):
        check_graph_state(problem, state)
        return
    if hasattr(state, "alpha"):
        N, d, n = len(problem.kernels), problem.d, state.S.shape[1]
        demand(state.S.shape == (d, n) and state.alpha.shape == (N, n), "support points do not fit the problem")
        demand(problem.budget is None or n <= problem.budget, "more support points than the budget")
    else:
        N, _, D = problem.V.shape
        demand(state.theta.shape == (N, 2, D), "theta does not fit the problem")
    for name in ("log_w", "log_u", "d", "chosen", "q"):
        if hasattr(state, name):
            demand(getattr(state, name).shape == (N,), f"{name} does not fit the problem")
    if hasattr(state, "chosen"):
        demand(state.chosen.dtype == np.bool_ and bool(state.chosen.any()), "no kernel is chosen")
    if hasattr(state, "d"):
        leads = state.d == np.arange(N)
        demand(state.d.dtype == np.int64 and bool(((state.d >= 0) & (state.d < N)).all() and leads.any()), "bad d")
    if hasattr(state, "node"):
        demand(_whole(state.node) and state.node < N, "there is no such node")


def check_graph_state(problem: Any, s: Any) -> None:
    N, d, D = problem.V.shape
    K, E, n = problem.K, graph_mkl.experts(problem), 2 * D
    B, maps = 1 + len(problem.steps), N + graph_mkl.on_inputs(problem) - 1
    shapes = {
        "R": (2, maps, n, n), "theta": (2, maps, B, K, n), "R_lin": (2, d + 1, d + 1), "theta_lin": (2, K, d + 1),
        "R_mix": (2, E, E), "theta_mix": (2, E),
        "evidence": (2, E), "noise": (2, E), "heard": (2, E), "rank": (2, E), "explorer": (2,),
        "mean": (2, d), "scale": (2, d), "shift": (2, K), "unit": (2,), "rows": (2, graph_mkl.KEPT, d),
        "answers": (2, graph_mkl.KEPT, K), "worth": (2, graph_mkl.KEPT),
        "window": (2, d, graph_mkl.WINDOW), "recalled": (2, K, graph_mkl.WINDOW),
        "age": (2,), "trust": (2,), "trend": (3,), "reach": (len(graph_mkl.LEVELS),),
    }  # fmt: skip
    for name, shape in shapes.items():
        wanted = np.int64 if name in ("heard", "rank", "explorer", "age") else np.float64
        array = getattr(s, name)
        demand(array.shape == shape and array.dtype == wanted, f"{name} does not fit the problem")
    demand(bool((np.sort(s.rank, axis=1) == np.arange(E)).all()), "the experts' rank is not one")
    demand(bool(((s.explorer >= 0) & (s.explorer < E)).all()), "there is no such explorer")
    demand(s.incumbent in (0, 1) and s.age[s.incumbent] >= 0 and bool((s.age >= -1).all()), "no incumbent")
    demand(bool((s.heard >= 0).all() and (s.noise >= 0).all() and (s.unit >= 0).all()), "a count or size is negative")
    demand(bool((s.reach > 0).all() and (s.worth >= 0).all()), "a width or weight is not positive")


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**62


def encode_progress(online: Online, arrays: Arrays, prefix: str = "") -> dict[str, Any]:
    """All of an Online but its problem."""
    checkpoint = online.checkpoint()
    body: dict[str, Any] = {"evaluations": checkpoint.evaluations, "generator": checkpoint.generator}
    for name, value in checkpoint.state._asdict().items():
        if isinstance(value, np.ndarray):
            arrays[f"{prefix}{name}"] = value
        else:
            body[name] = value
    return body


def decode_progress(learner: str, problem: Any, body: Any, arrays: Arrays, prefix: str = "") -> Checkpoint:
    State = ROUNDS[learner].State
    wanted = {name: arrays.get(f"{prefix}{name}", body.get(name)) for name in State._fields}
    demand(all(value is not None for value in wanted.values()), "parts of the state are missing")
    state = State(**wanted)
    check_state(problem, state)
    demand(_whole(body["evaluations"]), "bad number of evaluations")
    return Checkpoint(state, body["generator"], body["evaluations"])


def _encode_online(online: Online, compact: bool) -> tuple[Any, Arrays]:
    arrays: Arrays = {}
    body = {
        "learner": online.learner,
        "backend": online.backend,
        "problem": encode_problem(online.problem, arrays),
        "progress": encode_progress(online, arrays, "state."),
    }
    return body, arrays


def _decode_online(body: Any, arrays: Arrays) -> Online:
    learner = body["learner"]
    problem = decode_problem(learner, body["problem"], arrays)
    checkpoint = decode_progress(learner, problem, body["progress"], arrays, "state.")
    return Online(learner, problem, backend=body["backend"], checkpoint=checkpoint)


register("online", Codec((Online,), _encode_online, _decode_online))
