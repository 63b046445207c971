"""What a user may choose for the paper's algorithms, and the parts of their Problems that follow from it."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, get_args

from omkl.algorithms.base import Task
from omkl.algorithms.descent import Descent, Stabiliser
from omkl.algorithms.nodes import Commit
from omkl.algorithms.schedule import Schedule
from omkl.arrays import Tensor
from omkl.features import GENERATOR, Draw, frequencies, orthogonal_frequencies
from omkl.graph import Graph, similarity_graph
from omkl.kernels import Kernel, dictionary
from omkl.losses import LossName
from omkl.validation import is_number, require, require_whole

OUT_DEGREE = 7  # of the estimators, unless there are fewer kernels
MOST_DRAWS = 10**4  # of OMKL-GF in a round
MOST_NODES = 100  # of OMKL-GF
QR_BLOCK = 64  # numbers that an orthogonalisation computes with for the price of drawing one


@dataclass(frozen=True)
class Settings:
    """What a user may choose. The defaults are safe on a stream of unknown length.

    Parameters
    ----------
    kernels
        A named dictionary ("paper", "paper-omkr", "jmlr", "jmlr-omkr", "gaussian", "mixed", "families") or a list of
        kernels.
    n_features
        Random features per kernel, D; theta has twice as many entries.
    out_degree
        Kernels evaluated when a node is drawn, M.
    delta_dimension
        Dimension in which the similarity (7) is computed: None for that of the data, or 1.
    beta
        For SFG-MKL-R: None for the tenth-largest rule of the experiments, or a constant <= 1/N.
    draws
        For OMKL-GF: draws with replacement per round.
    nodes
        For OMKL-GF: selective nodes, J, each with draws of its own.
    freeze_after
        For OMKL-GF: rounds after which the drawn subset is kept; None for never.
    weighted
        For OMKL-GF: divide the step of theta by the probability of being drawn.
    ridge
        lambda of (5).
    learning_rate, exploration
        eta and xi. None: 1 / sqrt(horizon); without a horizon 1 / sqrt(t), and a number c means c / sqrt(t).
    horizon
        Length of the stream, where it is known.
    commit, commit_after
        Which node is used after so many rounds: "never" (always drawn), "argmax" or "first".
    stabiliser
        "aware", "floor", "project", or "none" as in the paper.
    radius
        For stabiliser="project": radius of the ball that theta is projected on.
    draw
        "independent" random features for every kernel as in the paper, or one draw "shared" by all Gaussian ones.
    orthogonal
        Orthogonal random features; radial kernels only.
    budget
        For OMKR: the largest number of samples stored; None for all of them.
    least_q, least_p
        The smallest probabilities q of a kernel and p of a node that anything is divided by.

    >>> from omkl import algorithms
    >>> algorithms.problem("sfg-mkl", Settings(out_degree=50), d=3)
    Traceback (most recent call last):
    ValueError: out_degree must be between 1 and 41, got 50; add kernels or lower it
    """

    kernels: str | Iterable[Kernel] = "paper"
    n_features: int = 50
    out_degree: int = 5
    delta_dimension: int | None = None
    beta: float | None = None
    draws: int = 10
    nodes: int = 1
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
    least_q: float = 0.0
    least_p: float = 0.0

    @classmethod
    def paper(cls, horizon: int, **changes: Any) -> Self:
        """The protocol of the paper's experiments: known horizon, no stabiliser."""
        return cls(**{"horizon": horizon, "stabiliser": "none", **changes})

    @classmethod
    def practical(cls, **changes: Any) -> Self:
        """SFG-MKL and SFG-MKL-R outside the paper's protocol: fewer kernels, of which more are evaluated.

        With 41 kernels of which 5 are evaluated, each learns from an eighth of the rows. These are the defaults of the
        estimators.

        >>> settings = Settings.practical()
        >>> len(settings.all_kernels), settings.out_degree
        (11, 7)
        """
        return cls(**{"kernels": "gaussian", "out_degree": OUT_DEGREE, **changes})

    @classmethod
    def jmlr(cls, M: int = 10, rounds: int = 300, **changes: Any) -> Self:
        """The protocol of the journal version (JMLR 24, 2023), as its authors' notebooks have it.

        Each node has M kernels, and after `rounds` (500 for Bias) the node, or the subset, is kept. OMKL-GF has
        `least_q=0.05`, and OMKR `kernels="jmlr-omkr"`.

        >>> settings = Settings.jmlr(M=5)
        >>> len(settings.all_kernels), settings.out_degree, settings.nodes, settings.least_q
        (76, 5, 2, 0.1)
        """
        protocol = {
            "kernels": "jmlr",
            "learning_rate": 0.1,
            "exploration": 0.1,
            "stabiliser": "none",
            "out_degree": M,
            "draws": M,
            "nodes": 2,
            "delta_dimension": 1,
            "commit": "first",
            "commit_after": rounds,
            "freeze_after": rounds,
            "least_q": 0.1,
            "least_p": 0.2,
        }
        return cls(**{**protocol, **changes})

    def __post_init__(self) -> None:
        for name in ("n_features", "out_degree", "draws", "nodes"):
            require_whole(name, getattr(self, name))
        require(self.draws <= MOST_DRAWS, "draws", f"at most {MOST_DRAWS}", self.draws)
        require(self.nodes <= MOST_NODES, "nodes", f"at most {MOST_NODES}", self.nodes)
        for name in ("least_q", "least_p"):
            least = getattr(self, name)
            require(is_number(least) and 0 <= least < 1, name, "a number from 0 to below 1", least)
        for name in ("freeze_after", "horizon", "budget"):
            if getattr(self, name) is not None:
                require_whole(name, getattr(self, name))
        require_whole("commit_after", self.commit_after, least=0)
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

    @classmethod
    def for_task(cls, task: Task, **choices: Any) -> Self:
        """Settings with the loss of a task; labels are learned one against the rest."""
        default = {"out_degree": 1} if choices.get("out_degree", 1) is None else {}
        settings = cls(**{**choices, **default}, loss="squared" if task == "regression" else "logistic")
        return replace(settings, out_degree=min(OUT_DEGREE, len(settings.all_kernels))) if default else settings

    @property
    def all_kernels(self) -> tuple[Kernel, ...]:
        """The dictionary of kernels."""
        return tuple(dictionary(self.kernels))

    def size(self, d: int, outputs: int = 1) -> int:
        """About how many numbers it takes to make a model for d features and so many outputs."""
        N, D = len(self.all_kernels), self.n_features
        drawn = N * d * max(d, D) * (1 + d // QR_BLOCK) if self.orthogonal else N * d * D
        return GENERATOR * d + 2 * drawn + 4 * N * D * outputs

    @property
    def schedule(self) -> Schedule:
        c = 1.0 if self.horizon is None else 1 / math.sqrt(self.horizon)
        eta = c if self.learning_rate is None else float(self.learning_rate)
        xi = c if self.exploration is None else float(self.exploration)
        return Schedule(eta, xi, anytime=self.horizon is None)

    @property
    def descent(self) -> Descent:
        return Descent(self.loss, float(self.ridge), self.stabiliser, float(self.radius))

    def frequencies(self, names: Sequence[str], seed: int) -> Tensor:
        """(N, d, D) frequencies of the random features of every kernel."""
        if self.orthogonal:
            return orthogonal_frequencies(self.all_kernels, len(names), self.n_features, seed)
        return frequencies(self.all_kernels, names, self.n_features, seed, self.draw)

    def graph(self, names: Sequence[str]) -> Graph:
        """The similarity graph of the kernels."""
        return similarity_graph(self.all_kernels, self.delta_dimension or len(names), self.out_degree)
