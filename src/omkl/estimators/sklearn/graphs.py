"""Attributes and plots of estimators whose algorithm has a similarity graph of its kernels."""

from typing import TYPE_CHECKING

import numpy as np

from omkl import graph
from omkl.algorithms.weights import normalised
from omkl.arrays import Index, Mask, Vector
from omkl.estimators import plots

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class SimilarityGraphMixin:
    """Attributes of an algorithm that has a similarity graph."""

    @property
    def graph_(self) -> Mask:
        """(N, N): entry (i, j) is true where there is an edge from kernel i to kernel j."""
        A: Mask = self._fitted().core_.online.problem.graph.A.copy()  # type: ignore[attr-defined]  # of Estimator
        return A

    @property
    def dominating_set_(self) -> Index:
        """Kernels whose out-neighbours together are all kernels."""
        return np.flatnonzero(self._fitted().core_.online.problem.graph.cover)  # type: ignore[attr-defined]

    def _next_graph(self) -> Mask:
        return self.graph_

    def plot_graph(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the graph, nodes ordered by length scale; returns the Axes (needs omkl[plot])."""
        return plots.graph(self.kernels_, self.graph_, self.dominating_set_, self._next_graph(), ax)  # type: ignore[attr-defined]


class RefinedGraphMixin(SimilarityGraphMixin):
    """Attributes of SFG-MKL, whose graph chooses the kernels: its nodes have weights, and refinement may add edges."""

    @property
    def refined_graph_(self) -> Mask:
        """The graph of the next round: that of `graph_` with the edges that refinement adds."""
        online = self._fitted().core_.online  # type: ignore[attr-defined]
        return graph.refined(online.problem.graph.A, online.state.d) if self.refine else self.graph_  # type: ignore[attr-defined]

    @property
    def node_weights_(self) -> Vector:
        """u / sum(u): (N,), or (labels, N) where there are more than two labels."""
        rows = np.array([normalised(online.state.log_u) for online in self._fitted().core_.predictors])  # type: ignore[attr-defined]
        return rows if len(rows) > 1 else rows[0]

    def _next_graph(self) -> Mask:
        return self.refined_graph_
