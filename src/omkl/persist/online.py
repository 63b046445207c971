"""How an Online, its problem and its progress are written to model files and read back."""

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
    problem = decode_tuple(algorithm.Problem, given, arrays, pad=True)
    algorithm.check_problem(problem)
    return problem


def encode_progress(online: Online, arrays: Arrays, prefix: str = "") -> dict[str, Json]:
    """All of an Online except its problem."""
    checkpoint = online.checkpoint()
    rest = {"evaluations": checkpoint.evaluations, "generator": checkpoint.generator}
    return rest | encode_tuple(checkpoint.state, arrays, prefix)


def decode_progress(algorithm: Algorithm[P, S], problem: P, body: Json, arrays: Arrays, prefix: str = "") -> Checkpoint:
    own = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
    own, body = algorithm.upgrade(own, body)
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
        "problem": encode_tuple(online.problem, arrays),
        "progress": encode_progress(online, arrays, "state."),
    }
    return body, arrays


def _decode(body: Json, arrays: Arrays) -> Online:
    algorithm = algorithms.get(body["learner"])
    problem = decode_problem(algorithm, body["problem"], arrays)
    checkpoint = decode_progress(algorithm, problem, body["progress"], arrays, "state.")
    backend = BACKENDS.get(body["backend"], body["backend"])
    return Online(algorithm.name, problem, backend=backend, checkpoint=checkpoint)


register("online", Codec((Online,), _encode, _decode))
