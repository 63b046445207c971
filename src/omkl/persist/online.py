"""How an Online, its problem and its progress are written to model files and read back."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from omkl import algorithms
from omkl.algorithms.base import Algorithm, P, S
from omkl.algorithms.invariants import is_count
from omkl.arrays import Arrays
from omkl.online import Checkpoint, Online
from omkl.persist.container import Json, demand
from omkl.persist.registry import Codec, register
from omkl.persist.values import decode_tuple, encode_tuple

BACKENDS = {"rounds": "numpy"}  # as files of version 1 name it


def decode_problem(algorithm: Algorithm[P, S], body: Json, arrays: Arrays) -> P:
    given = {algorithm.renamed.get(name, name): value for name, value in body.items()}
    added = {name: value for name, value in algorithm.added.items() if isinstance(value, np.ndarray)}
    problem = decode_tuple(algorithm.Problem, dict(algorithm.added) | given, added | arrays, pad=True)
    algorithm.check_problem(problem)
    return problem


@contextmanager
def saving() -> Iterator[None]:
    """Make the complaint about a problem or state that no file may hold one about saving."""
    try:
        yield
    except ValueError as error:
        raise ValueError(
            f"the model cannot be saved, because it could not be loaded again: {error}; continue from the last file "
            "that was saved, with data or parameters of moderate size"
        ) from None


def encode_problem(algorithm: Algorithm[P, S], problem: P, arrays: Arrays) -> dict[str, Json]:
    with saving():
        algorithm.check_problem(problem)
    return encode_tuple(problem, arrays)


def encode_progress(online: Online, arrays: Arrays, prefix: str = "") -> dict[str, Json]:
    """All of an Online except its problem."""
    checkpoint = online.checkpoint()
    with saving():
        online.algorithm.check_state(online.problem, checkpoint.state)
    rest = {"evaluations": checkpoint.evaluations, "generator": checkpoint.generator}
    return rest | encode_tuple(checkpoint.state, arrays, prefix)


def grouped(arrays: Arrays) -> dict[str, Arrays]:
    """Arrays by what their names have before the first dot; once for all, as a file may hold many learners."""
    groups: dict[str, Arrays] = {}
    for name, array in arrays.items():
        group, _, own = name.partition(".")
        groups.setdefault(group, {})[own] = array
    return groups


def decode_progress(algorithm: Algorithm[P, S], problem: P, body: Json, arrays: Arrays) -> Checkpoint:
    """What `encode_progress` was given; the arrays under their own names."""
    own, body = algorithm.upgrade(arrays, body)
    state = decode_tuple(algorithm.State, body, own)
    algorithm.check_state(problem, state)
    demand(is_count(body["evaluations"]), "the number of evaluations must be a count")
    return Checkpoint(state, body["generator"], body["evaluations"])


def _encode(online: Online, compact: bool) -> tuple[Json, Arrays]:
    online = online.copy()  # one moment, whatever other threads learn meanwhile
    arrays: Arrays = {}
    body = {
        "learner": online.algorithm.name,
        "backend": online.backend,
        "problem": encode_problem(online.algorithm, online.problem, arrays),
        "progress": encode_progress(online, arrays, "state."),
    }
    return body, arrays


def _decode(body: Json, arrays: Arrays) -> Online:
    algorithm = algorithms.get(body["learner"])
    problem = decode_problem(algorithm, body["problem"], arrays)
    checkpoint = decode_progress(algorithm, problem, body["progress"], grouped(arrays).get("state", {}))
    backend = BACKENDS.get(body["backend"], body["backend"])
    return Online(algorithm.name, problem, backend=backend, checkpoint=checkpoint)


register("online", Codec((Online,), _encode, _decode))
