"""GraphMKL's Problem: what never changes during a run, made from the settings."""

from collections.abc import Sequence
from typing import NamedTuple, get_args

import numpy as np

from omkl.algorithms.base import Shape, Task
from omkl.algorithms.graph_mkl.settings import GraphSettings
from omkl.arrays import Tensor
from omkl.features import limit_inputs, frequencies
from omkl.graph import Graph, similarity_graph
from omkl.settings import is_number, is_whole


class Problem(NamedTuple):
    """Experts are numbered: learner b of kernel i is expert i B + b; then those on the inputs, then the memory experts.

    On the inputs themselves there is a linear expert and, for labels, one on their squares too.
    """

    V: Tensor  # (N, d, D)      frequencies of every kernel
    graph: Graph
    task: Task
    K: int  #                   outputs: 1, or one for each label
    steps: tuple[float, ...]  # step lengths of the normalised gradient experts
    widths: tuple[float, ...]  # length scales of the memory experts
    ridges: tuple[float, ...]  # (maps + 1,), the last that of the linear expert
    active: int  #              experts evaluated after the warm-up, the explorer among them
    warm_up: int  #             rounds in which all experts are evaluated
    discount: float  #          share of the evidence forgotten in a round
    memory: float  #            share of a noise estimate kept in a round
    trial: int  #               rounds of a challenger's trial; 0: there is no challenger
    min_leverage: float  #      least z' P z at which a row updates P; 0: every row does
    stack: bool  #              whether residual stacking corrects the mixture

    @property
    def learners(self) -> int:
        """B: the least squares and the gradient experts of one kernel."""
        return 1 + len(self.steps)

    @property
    def on_kernels(self) -> int:
        """Experts on random features; the number of the linear expert."""
        return len(self.V) * self.learners

    @property
    def on_inputs(self) -> int:
        """Experts on the inputs themselves."""
        return 1 if self.task == "regression" else 2

    @property
    def first_memory(self) -> int:
        """The number of the first memory expert."""
        return self.on_kernels + self.on_inputs

    @property
    def experts(self) -> int:
        """E: all experts of one set."""
        return self.first_memory + len(self.widths)

    @property
    def maps(self) -> int:
        """Feature maps of length 2D: one of every kernel, and for labels that of the squares."""
        return len(self.V) + self.on_inputs - 1


def build(settings: GraphSettings, names: Sequence[str], seed: int) -> Problem:
    """The Problem for features of these names; `seed` decides the random features."""
    kernels = settings.all_kernels
    V = frequencies(kernels, names, settings.n_features, seed)
    limit_inputs(V, names, settings.kernel_orders, seed)
    graph = similarity_graph(
        kernels, settings.delta_dimension or len(names), min(settings.out_degree, len(kernels))
    )  # fmt: skip
    return Problem(
        V=V,
        graph=graph,
        task=settings.task,
        K=settings.outputs,
        steps=tuple(float(step) for step in settings.steps),
        widths=tuple(float(width) for width in settings.widths),
        ridges=settings.ridges(kernels, len(names)),
        active=settings.active,
        warm_up=settings.warm_up,
        discount=settings.resolved("discount"),
        memory=settings.resolved("memory"),
        trial=settings.trial,
        min_leverage=settings.resolved("min_leverage"),
        stack=bool(settings.stack),
    )


def uniforms(problem: Problem) -> int:
    """One for the explorer of each set of experts."""
    return 2


def shape(problem: Problem) -> Shape:
    d = problem.V.shape[1]
    if problem.task == "regression":
        return Shape(inputs=d, outputs=2, target="number", missing=True)
    return Shape(inputs=d, outputs=problem.K, target="label", missing=True)


def check_problem(problem: Problem) -> None:
    """Raise ValueError where a Problem read from a file cannot be."""
    counts = (problem.K, problem.active, problem.warm_up, problem.trial)
    require(problem.task in get_args(Task), "task")
    require(all(is_whole(n) and 0 <= n < 2**62 for n in counts), "number of outputs, experts or rounds")
    require(problem.K >= 1 and (problem.K == 1 or problem.task == "classification"), "number of outputs")
    require(problem.active >= 2, "number of experts")
    require(all(is_number(step) and 0 < step <= 1 for step in problem.steps), "steps")
    require(all(is_number(width) and width > 0 for width in problem.widths), "widths")
    require(all(is_number(ridge) and ridge > 0 for ridge in problem.ridges), "ridges")
    require(len(problem.ridges) == problem.maps + 1, "number of ridges")
    shares = (problem.discount, problem.memory, problem.min_leverage)
    require(all(is_number(share) and 0 <= share < 1 for share in shares), "discount, memory or min_leverage")
    require(isinstance(problem.stack, bool), "stack")
    check_graph(problem.graph, len(problem.V))


def check_graph(graph: Graph, N: int) -> None:
    order, A, cover = graph
    require(order.shape == A.shape == (N, N) and cover.shape == (N,), "graph: not one node for each kernel")
    require(order.dtype == np.int64 and A.dtype == np.bool_ and cover.dtype == np.float64, "graph")
    require(bool((np.sort(order, axis=1) == np.arange(N)).all()), "graph: its order is no permutation")
    require(bool(A.any(axis=1).all() and A.any(axis=0).all()), "graph: a node without neighbours")


def require(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"bad {what}")
