"""Invariants that Problems and States have in common: what a model file may claim. Each raises ValueError."""

import math
from typing import NamedTuple, get_args

import numpy as np

from omkl.algorithms.descent import Descent, Stabiliser
from omkl.algorithms.nodes import Commit
from omkl.algorithms.schedule import Schedule
from omkl.arrays import Array, Tensor
from omkl.graph import Graph
from omkl.losses import LossName
from omkl.validation import is_number

LARGEST_COUNT = 2**62  # of rounds, rows and other counts: one more never overflows


def demand(holds: bool, complaint: str) -> None:
    if not holds:
        raise ValueError(complaint)


def is_real(value: object) -> bool:
    return isinstance(value, (int, float)) and is_number(value)


def is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < LARGEST_COUNT


def is_growing_count(value: object) -> bool:
    """A count that is still one however many rows come, for a state that the engine checks again."""
    return is_count(value) and value < LARGEST_COUNT // 2  # type: ignore[operator]  # is_count has looked


def is_share(value: object) -> bool:
    """Whether `value` is a number from 0 to below 1."""
    return is_real(value) and 0 <= value < 1  # type: ignore[operator]  # is_real has looked


def check_finite(array: Array, name: str, gappy: bool = False) -> None:
    """An array of numbers has no infinite value, and no NaN unless that says that a value is missing."""
    if array.dtype.kind == "f":
        demand(bool((np.isfinite(array) | (np.isnan(array) & gappy)).all()), f"{name} is not finite")


def check_frequencies(V: Tensor) -> None:
    demand(V.ndim == 3 and min(V.shape) >= 1, "the frequencies V must have the shape (kernels, features, draws)")
    check_finite(V, "the array of frequencies V")


def check_schedule(schedule: Schedule) -> None:
    eta, xi, anytime = schedule
    demand(is_real(eta) and eta > 0, "the learning rate must be positive")
    demand(is_real(xi) and 0 <= xi <= 1, "the exploration rate must lie between 0 and 1")
    demand(isinstance(anytime, bool), "`anytime` must be true or false")


def check_descent(descent: Descent) -> None:
    loss, lam, stabiliser, radius = descent
    demand(loss in get_args(LossName) and stabiliser in get_args(Stabiliser), "unknown loss or stabiliser")
    demand(is_real(lam) and lam >= 0 and is_real(radius) and radius > 0, "ridge or radius out of range")


def check_graph(graph: Graph, N: int) -> None:
    order, A, cover = graph
    demand(order.shape == A.shape == (N, N) and cover.shape == (N,), "the graph does not fit the number of kernels")
    demand(bool((np.sort(order, axis=1) == np.arange(N)).all()), "a row of the graph's order is not a permutation")
    demand(
        bool((order[:, 0] == np.arange(N)).all() and A.diagonal().all()), "a node of the graph is not its own neighbour"
    )
    demand(bool((cover >= 0).all()) and math.isclose(cover.sum(), 1), "the graph's cover is not a distribution")
    demand(bool(A[cover > 0].any(axis=0).all()), "the graph's cover does not dominate all nodes")


def check_commit(commit: Commit, commit_after: int) -> None:
    demand(commit in get_args(Commit) and is_count(commit_after), "unknown commit rule")


def check_shapes(state: NamedTuple, shapes: dict[str, tuple[int, ...]]) -> None:
    """The arrays of these names have these shapes and are finite, and the number of rounds is a count."""
    parts = state._asdict()
    for name, shape in shapes.items():
        demand(parts[name].shape == shape, f"{name} does not fit the problem")
        check_finite(parts[name], name)
    demand(is_count(parts["t"]), "the number of rounds must be a count")
