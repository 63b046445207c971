"""Words in, letters out: the settings of a learner, checked, and the Problem they make."""

import math
import numbers
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from omkl.algorithms import graph_mkl, omkl_gf, omkr, raker, rfomkr, sfg_mkl, sfg_mkl_r
from omkl.algorithms.descent import Descent, Stabiliser
from omkl.algorithms.schedule import Schedule
from omkl.algorithms.sfg_mkl import Commit
from omkl.features import Draw, column_names, frequencies, limit_inputs, orthogonal_frequencies
from omkl.graph import similarity_graph
from omkl.kernels import Gaussian, Kernel, dictionary
from omkl.losses import LossName

LearnerName = Literal["omkr", "rfomkr", "raker", "omkl-gf", "sfg-mkl", "sfg-mkl-r", "graph-mkl"]
LEARNERS: tuple[LearnerName, ...] = get_args(LearnerName)
SINGLES = (0.15, 0.8)  # length scales of the kernels on single inputs that go with a named dictionary


@dataclass(frozen=True)
class Settings:
    """What a user may choose. The defaults are safe on a stream of unknown length.

    Parameters
    ----------
    kernels
        A named dictionary ("paper", "paper-omkr", "gaussian", "mixed", "families") or a list of kernels.
    n_features
        Random features per kernel, D; theta has twice as many entries.
    out_degree
        Kernels heard when a node is drawn, M.
    delta_dimension
        Dimension in which the similarity (7) is taken: None for that of the data, or 1.
    beta
        For SFG-MKL-R: None for the tenth-largest rule of the experiments, or a constant <= 1/N.
    draws
        For OMKL-GF: draws with replacement per round.
    freeze_after
        For OMKL-GF: rounds after which the drawn subset is kept; None for never.
    weighted
        For OMKL-GF: theta's step divided by the chance of being heard.
    ridge
        lambda of (5).
    learning_rate, exploration
        eta and xi. None: 1 / sqrt(horizon); without a horizon 1 / sqrt(t), and a number c means c / sqrt(t).
    horizon
        Length of the stream where it is known.
    commit, commit_after
        Which node is held after so many rounds: "never", "argmax" or "first".
    stabiliser
        "aware", "floor", "project", or "none" as in the paper.
    radius
        For stabiliser="project": the ball that theta is kept in.
    draw
        "independent" random features for every kernel as in the paper, or one draw "shared" by all Gaussian ones.
    orthogonal
        Orthogonal random features; radial kernels only.
    budget
        For OMKR: most samples kept; None for all of them.

    >>> Settings(out_degree=50).problem("sfg-mkl", d=3)
    Traceback (most recent call last):
    ValueError: out_degree must be between 1 and 41, got 50; add kernels or lower it
    """

    kernels: str | Iterable[Kernel] = "paper"
    n_features: int = 50
    out_degree: int = 5
    delta_dimension: int | None = None
    beta: float | None = None
    draws: int = 10
    freeze_after: int | None = None
    weighted: bool = True
    ridge: float = 1e-3
    learning_rate: float | None = None
    exploration: float | None = None
    horizon: int | None = None
    commit: Commit = "never"
    commit_after: int = 300
    loss: LossName = "squared"
    stabiliser: Stabiliser = "aware"
    radius: float = 10.0
    draw: Draw = "independent"
    orthogonal: bool = False
    budget: int | None = None

    @classmethod
    def paper(cls, horizon: int, **changes: Any) -> "Settings":
        """The protocol of the paper's experiments: known horizon, no stabiliser."""
        return cls(**{"horizon": horizon, "stabiliser": "none", **changes})

    def __post_init__(self) -> None:
        whole = {"n_features": self.n_features, "out_degree": self.out_degree, "draws": self.draws}
        for name in ("freeze_after", "horizon", "budget"):
            if getattr(self, name) is not None:
                whole[name] = getattr(self, name)
        for name, number in whole.items():
            require(is_whole(number) and number >= 1, name, "a whole number of at least 1", number)
        require(is_whole(self.commit_after) and self.commit_after >= 0, "commit_after", "a whole number of at least 0",
                self.commit_after)  # fmt: skip
        require(self.delta_dimension in (None, 1), "delta_dimension", "None (that of the data) or 1",
                self.delta_dimension)  # fmt: skip
        require(is_number(self.ridge) and self.ridge >= 0, "ridge", "a finite number of at least 0", self.ridge)
        require(is_number(self.radius) and self.radius > 0, "radius", "a positive finite number", self.radius)
        rate = self.learning_rate
        require(rate is None or (is_number(rate) and rate > 0), "learning_rate", "None or a positive number", rate)
        xi = self.exploration
        require(xi is None or (is_number(xi) and 0 <= xi <= 1), "exploration", "None or a number from 0 to 1", xi)
        require(self.beta is None or (is_number(self.beta) and self.beta > 0), "beta",
                "None (the tenth-largest rule) or a positive number of at most 1/N", self.beta)  # fmt: skip
        for name, kind in (("commit", Commit), ("loss", LossName), ("stabiliser", Stabiliser), ("draw", Draw)):
            require(getattr(self, name) in get_args(kind), name, f"one of {', '.join(get_args(kind))}",
                    getattr(self, name))  # fmt: skip
        require(not (self.orthogonal and self.draw == "shared"), "draw",
                "independent where orthogonal=True, which draws for each kernel", self.draw)  # fmt: skip
        object.__setattr__(self, "kernels", tuple(dictionary(self.kernels)))

    @property
    def all_kernels(self) -> tuple[Kernel, ...]:
        """The dictionary."""
        return tuple(dictionary(self.kernels))

    @property
    def schedule(self) -> Schedule:
        c = 1.0 if self.horizon is None else 1 / math.sqrt(self.horizon)
        eta = c if self.learning_rate is None else float(self.learning_rate)
        xi = c if self.exploration is None else float(self.exploration)
        return Schedule(eta, xi, anytime=self.horizon is None)

    @property
    def descent(self) -> Descent:
        return Descent(self.loss, float(self.ridge), self.stabiliser, float(self.radius))

    def problem(self, learner: str, d: int | None = None, *, names: Sequence[str] | None = None, seed: int = 0) -> Any:
        """The Problem of `learner` for d features, or for features of these names.

        `seed` decides the random features and nothing else.
        """
        mine = [name for name in LEARNERS if name != "graph-mkl"]
        require(learner in mine, "learner", f"one of {', '.join(mine)} (GraphSettings has graph-mkl)", learner)
        names = feature_names(d, names)
        kernels = dictionary(self.kernels)
        if learner in ("omkr", "rfomkr"):
            require(self.loss == "squared", "loss", f"squared for {learner}", self.loss)
        if learner == "omkr":
            return omkr.Problem(tuple(kernels), len(names), self.schedule, self.budget)

        if self.orthogonal:
            V = orthogonal_frequencies(kernels, len(names), self.n_features, seed)
        else:
            V = frequencies(kernels, names, self.n_features, seed, self.draw)
        if learner == "rfomkr":
            return rfomkr.Problem(V, self.schedule)
        if learner == "raker":
            return raker.Problem(V, self.descent, self.schedule)
        if learner == "omkl-gf":
            return omkl_gf.Problem(V, self.descent, self.schedule, self.draws, self.freeze_after, self.weighted)

        N = len(V)
        graph = similarity_graph(kernels, self.delta_dimension or len(names), self.out_degree)
        if learner == "sfg-mkl":
            return sfg_mkl.Problem(V, graph, self.descent, self.schedule, self.commit, self.commit_after)
        require(self.beta is None or self.beta <= 1 / N, "beta",
                f"at most 1/N = {1 / N:.6g} for {N} kernels, or None (the tenth-largest rule)", self.beta)  # fmt: skip
        return sfg_mkl_r.Problem(V, graph, self.descent, self.schedule, self.commit, self.commit_after, self.beta)


@dataclass(frozen=True)
class GraphSettings:
    """What a user may choose for GraphMKL. The defaults were chosen once, for all streams.

    Parameters
    ----------
    kernels
        A named dictionary or a list of kernels; inputs are standardised and divided by sqrt(d).
    n_features
        Random features per kernel, D.
    out_degree
        Kernels so near to a leading one that no explorer is sent there, itself among them.
    delta_dimension
        Dimension in which the similarity (7) is taken: None for that of the data, or 1.
    orders
        How many inputs a random feature looks at, for one kernel after the other and again from the start;
        None for all.
    singles
        Length scales of more Gaussian kernels, whose random features look at one input each; None for 0.15 and
        0.8 beside a named dictionary, and none of them beside a list of kernels.
    steps
        Normalised gradient experts on every kernel, beside its least squares: their step lengths in (0, 1].
    widths
        Length scales of the experts that average the last answers.
    ridge
        Of the least squares; divided by the squared length scale where that is above 1.
    evaluate
        Experts evaluated for a row after the warm-up: "quarter" of them, "all", or a number.
    warm_up
        Rows for which all experts are evaluated.
    discount
        Share of the evidence forgotten with every row.
    memory
        Share of an expert's noise estimate kept with every row.
    adapt
        Start a second set of experts when the error rises, and keep the better one.
    sure
        Variance of a prediction, in units of the noise, below which a row makes least squares no surer: they
        go on learning as if no more than 1 / sure such rows had been seen. 0 for streams that never change.
    correct
        Correct the mixture by a least squares on what its experts say beyond it.
    task, outputs
        "regression", or "classification" of so many labels.

    >>> GraphSettings().experts, GraphSettings().active
    (43, 10)
    """

    kernels: str | Iterable[Kernel] = "gaussian"
    n_features: int = 50
    out_degree: int = 3
    delta_dimension: int | None = 1
    orders: tuple[int | None, ...] = (2, 2, None)
    singles: tuple[float, ...] | None = None
    steps: tuple[float, ...] = (1.0, 0.25)
    widths: tuple[float, ...] = (0.03, 0.1, 0.3)
    ridge: float = 3e-3
    evaluate: str | int = "quarter"
    warm_up: int = 512
    discount: float = 0.1
    memory: float = 0.97
    adapt: bool = True
    sure: float = 0.05
    correct: bool = True
    task: graph_mkl.Task = "regression"
    outputs: int = 1

    def __post_init__(self) -> None:
        for name in ("n_features", "out_degree", "warm_up", "outputs"):
            number = getattr(self, name)
            require(is_whole(number) and number >= 1, name, "a whole number of at least 1", number)
        require(self.delta_dimension in (None, 1), "delta_dimension", "None (that of the data) or 1",
                self.delta_dimension)  # fmt: skip
        if self.singles is None:
            object.__setattr__(self, "singles", SINGLES if isinstance(self.kernels, str) else ())
        for name in ("orders", "singles", "steps", "widths"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        right = all(order is None or (is_whole(order) and order >= 1) for order in self.orders)
        require(right and len(self.orders) > 0, "orders", "whole numbers of at least 1, or None", self.orders)
        for name in ("singles", "widths"):
            right = all(is_number(width) and width > 0 for width in getattr(self, name))
            require(right, name, "positive numbers", getattr(self, name))
        right = all(is_number(step) and 0 < step <= 1 for step in self.steps)
        require(right, "steps", "numbers above 0, at most 1", self.steps)
        require(is_number(self.ridge) and self.ridge > 0, "ridge", "a positive finite number", self.ridge)
        for name in ("discount", "memory", "sure"):
            share = getattr(self, name)
            require(is_number(share) and 0 <= share < 1, name, "a number from 0 to below 1", share)
        require(self.task in get_args(graph_mkl.Task), "task", "regression or classification", self.task)
        object.__setattr__(self, "kernels", tuple(dictionary(self.kernels)))
        right = self.evaluate in ("quarter", "all") or (is_whole(self.evaluate) and int(self.evaluate) >= 2)
        require(right, "evaluate", "quarter, all, or a whole number of at least 2", self.evaluate)

    def ridges(self, kernels: Sequence[Kernel], d: int) -> tuple[float, ...]:
        """Of every kernel's least squares, and of the experts on the inputs themselves.

        What a wide kernel can tell apart lies in directions of its features that are small by powers of its
        length scale; the same ridge for all would hide them. For labels the coefficients of standardised
        inputs are taken to be of size 1.
        """
        on_inputs = (self.ridge,) if self.task == "regression" else (1 / d, 1 / d)
        return (*(self.ridge / max(1.0, kernel.length_scale**2) for kernel in kernels), *on_inputs)

    @property
    def all_kernels(self) -> tuple[Kernel, ...]:
        """The dictionary, and behind it the kernels on single inputs."""
        return (*dictionary(self.kernels), *(Gaussian(scale) for scale in self.singles or ()))

    @property
    def experts(self) -> int:
        on_inputs = 1 if self.task == "regression" else 2
        return len(self.all_kernels) * (1 + len(self.steps)) + on_inputs + len(self.widths)

    @property
    def active(self) -> int:
        if self.evaluate == "all":
            return self.experts
        return max(2, self.experts // 4) if self.evaluate == "quarter" else min(int(self.evaluate), self.experts)

    def problem(self, learner: str, d: int | None = None, *, names: Sequence[str] | None = None, seed: int = 0) -> Any:
        """The Problem for d features, or for features of these names; `seed` decides the random features."""
        require(learner == "graph-mkl", "learner", "graph-mkl for GraphSettings", learner)
        names = feature_names(d, names)
        kernels = self.all_kernels
        V = frequencies(kernels, names, self.n_features, seed)
        orders = [self.orders[i % len(self.orders)] for i in range(len(tuple(self.kernels)))]
        limit_inputs(V, names, [*orders, *(1 for _ in self.singles or ())], seed)
        graph = similarity_graph(kernels, self.delta_dimension or len(names), min(self.out_degree, len(kernels)))
        return graph_mkl.Problem(
            V, graph, self.task, self.outputs, tuple(float(step) for step in self.steps),
            tuple(float(width) for width in self.widths), self.ridges(kernels, len(names)),
            self.active, self.warm_up, float(self.discount), float(self.memory), 500 if self.adapt else 0,
            float(self.sure), bool(self.correct),
        )  # fmt: skip


def feature_names(d: int | None, names: Sequence[str] | None) -> Sequence[str]:
    """`names`, or those of d columns."""
    if names is not None:
        return names
    require(d is not None and is_whole(d) and d >= 1, "d", "a whole number of at least 1", d)
    return column_names(int(d or 0))


def is_number(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)


def is_whole(value: object) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool)


def require(holds: bool, name: str, wanted: str, got: object) -> None:
    if not holds:
        raise ValueError(f"{name} must be {wanted}, got {got!r}")
