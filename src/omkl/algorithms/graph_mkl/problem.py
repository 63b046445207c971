"""GraphMKL's Problem: what never changes during a run, made from the settings."""

from collections.abc import Sequence
from typing import NamedTuple, get_args

from omkl.algorithms.base import Shape, Task
from omkl.algorithms.graph_mkl.constants import (
    ARCHIVE_START,
    LEVELS,
    MAX_ARCHIVE,
    MAX_ARCHIVE_VALUES,
    MAX_FULL_INPUTS,
    MAX_SPARSE,
    MAX_TREES,
    MAX_WIDE,
    WIDE_LENGTH_SCALE,
    WIDE_RIDGES,
)
from omkl.algorithms.graph_mkl.settings import GraphSettings
from omkl.algorithms.invariants import check_finite, check_frequencies, check_graph, demand, is_count, is_real, is_share
from omkl.arrays import Tensor
from omkl.features import frequencies, limit_inputs
from omkl.graph import Graph, similarity_graph
from omkl.kernels import Gaussian

LEAST_WIDTH, LEAST_RIDGE = 1e-150, 1e-300  # in a file: their squares and inverses are finite
STABLE_RIDGE = 1e-12


class Problem(NamedTuple):
    """Experts are numbered: learner b of kernel i is expert i B + b; then those on the inputs, then the memory experts.

    On the inputs themselves there is a linear expert and, for labels, one on their squares too. After these come the
    large experts: one of boosted trees, and those of wide least squares.
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
    V_wide: Tensor  # (1, d, D_wide)  frequencies of the wide least squares; D_wide = 0: there are none
    trees: int  #               boosted trees; 0: there are none
    archive: int  #             most rows that the large experts are fitted to
    sparse: int = 0  #          inputs behind those of V, which the linear expert alone has; the rows' last values

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
    def first_large(self) -> int:
        """The number of the first large expert; those before it are selected."""
        return self.first_memory + len(self.widths)

    @property
    def wide_experts(self) -> int:
        """One for each ridge, behind that of the trees."""
        return len(WIDE_RIDGES) if self.V_wide.shape[2] else 0

    @property
    def large(self) -> int:
        """Large experts."""
        return int(self.trees > 0) + self.wide_experts

    @property
    def experts(self) -> int:
        """E: all experts of one set."""
        return self.first_large + self.large

    @property
    def rows_linear(self) -> int:
        """Rows of the factor of the linear expert: all of them, or with many inputs one, the diagonal."""
        d = self.V.shape[1]
        return d + 1 if d <= MAX_FULL_INPUTS else 1

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
        V_wide=wide_frequencies(names, settings.wide_features(len(names)), seed),
        trees=settings.trees(len(names)),
        archive=settings.archive_rows(len(names)),
    )


def wide_frequencies(names: Sequence[str], D: int, seed: int) -> Tensor:
    """(1, d, D), other draws than those of the kernels."""
    return frequencies([Gaussian(WIDE_LENGTH_SCALE)], ["wide " + name for name in names], D, seed)


def widened(problem: Problem, sparse: int) -> Problem:
    """The problem with room for so many sparse inputs."""
    return problem._replace(sparse=sparse)


def uniforms(problem: Problem) -> int:
    """One for the explorer of each set of experts."""
    return 2


def shape(problem: Problem) -> Shape:
    d = problem.V.shape[1] + problem.sparse
    if problem.task == "regression":
        return Shape(inputs=d, outputs=2, target="number", missing=True, extras=len(LEVELS))
    return Shape(inputs=d, outputs=problem.K, target="label", missing=True)


def stable(problem: Problem) -> bool:
    """Whether predictions stay finite whatever the values are: covariances start no larger than 1 / STABLE_RIDGE."""
    return min(problem.ridges) >= STABLE_RIDGE


def check_problem(problem: Problem) -> None:
    check_frequencies(problem.V)
    check_graph(problem.graph, len(problem.V))
    demand(problem.task in get_args(Task), "unknown task")
    demand(is_count(problem.K) and problem.K >= 1, "the number of outputs must be a positive count")
    demand(problem.K == 1 or problem.task == "classification", "a number is one output")
    counts = (problem.active, problem.warm_up, problem.trial)
    demand(all(is_count(n) for n in counts) and problem.warm_up >= 1, "bad number of experts or rounds")
    demand(all(is_real(step) and 0 < step <= 1 for step in problem.steps), "steps must lie between 0 and 1")
    for name, values, least in (("widths", problem.widths, LEAST_WIDTH), ("ridges", problem.ridges, LEAST_RIDGE)):
        demand(all(is_real(value) and least < value < 1 / least for value in values), f"{name} must be positive")
    demand(len(problem.ridges) == problem.maps + 1, "the ridges do not fit the number of kernels")
    check_wide(problem)
    demand(2 <= problem.active <= problem.first_large, "the number of experts evaluated is not between 2 and all")
    shares = (problem.discount, problem.memory, problem.min_leverage)
    demand(all(is_share(share) for share in shares), "shares must lie between 0 and 1")
    demand(isinstance(problem.stack, bool), "`stack` must be true or false")
    demand(is_count(problem.sparse) and problem.sparse <= MAX_SPARSE, "there are too many sparse inputs")


def check_wide(problem: Problem) -> None:
    """What the large experts are made of."""
    D = problem.V_wide.shape[2] if problem.V_wide.ndim == 3 else -1
    fits = problem.V_wide.shape == (1, problem.V.shape[1], D) or (D == 0 and len(problem.V_wide) == 1)
    demand(fits, "frequencies of wide least squares do not fit")
    demand(0 <= D <= MAX_WIDE and D & (D - 1) == 0, f"there must be a power of two, at most {MAX_WIDE}, wide features")
    check_finite(problem.V_wide, "V_wide")
    demand(is_count(problem.trees) and problem.trees <= MAX_TREES, "there are too many trees")
    demand(is_count(problem.archive) and problem.archive <= MAX_ARCHIVE, "the archive is too large")
    demand(problem.archive >= ARCHIVE_START or problem.large == 0, "large experts need an archive")
    demand(problem.archive * problem.V.shape[1] <= MAX_ARCHIVE_VALUES, "the archive is too large")
