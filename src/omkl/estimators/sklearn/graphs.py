"""Attributes and plots of estimators whose algorithm has a similarity graph of its kernels."""

from typing import TYPE_CHECKING

import numpy as np

from omkl import graph
from omkl.algorithms.weights import normalised
from omkl.arrays import Index, Mask, Vector
from omkl.estimators import plots
from omkl.kernels import Kernel
from omkl.lock import Locked, locked
from omkl.online import Online

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class SimilarityGraphMixin(Locked):
    """Attributes of an algorithm that has a similarity graph."""

    if TYPE_CHECKING:  # which the estimators have

        def _learners(self) -> list[Online]: ...

        @property
        def kernels_(self) -> list[Kernel]: ...

    @property
    def graph_(self) -> Mask:
        """(N, N): entry (i, j) is true where there is an edge from kernel i to kernel j."""
        A: Mask = self._learners()[0].problem.graph.A.copy()
        return A

    @property
    def dominating_set_(self) -> Index:
        """Kernels whose out-neighbours together are all kernels."""
        return np.flatnonzero(self._learners()[0].problem.graph.cover)

    def _next_graph(self) -> Mask:
        return self.graph_

    def plot_graph(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the graph, nodes ordered by length scale; returns the Axes (needs omkl[plot])."""
        return plots.graph(self.kernels_, self.graph_, self.dominating_set_, self._next_graph(), ax)


class RefinedGraphMixin(SimilarityGraphMixin):
    """Attributes of SFG-MKL, whose graph chooses the kernels: its nodes have weights, and refinement may add edges."""

    if TYPE_CHECKING:
        refine: bool

    @property
    @locked
    def refined_graph_(self) -> Mask:
        """The graph of the next round: `graph_` with the edges that refinement adds, for the first of many labels."""
        online = self._learners()[0]
        return graph.refined(online.problem.graph.A, online.state.d) if self.refine else self.graph_

    @property
    @locked
    def node_weights_(self) -> Vector:
        """u / sum(u): (N,), or (labels, N) where there are more than two labels."""
        rows = np.array([normalised(online.state.log_u) for online in self._learners()])
        return rows if len(rows) > 1 else rows[0]

    def _next_graph(self) -> Mask:
        return self.refined_graph_
