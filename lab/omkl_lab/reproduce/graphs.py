"""The feedback graph of every stream and the edges added by refinement, for graphs.jsonl."""

from typing import TypedDict

import numpy as np

from omkl.algorithms.settings import Settings
from omkl.graph import refined
from omkl.kernels import dictionary
from omkl.online import Online
from omkl_lab.streams import Stream

ROUND = 300  # the round after which the paper's experiments stop refining


class Drawn(TypedDict):
    dataset: str
    round: int
    scales: list[float]  # length scale of every kernel
    edges: list[list[int]]  # (i, j): kernel j is evaluated when node i is drawn; without self-loops
    added: list[list[int]]  # by refinement, in that round of SFG-MKL-R
    dominating: list[int]  # D
    leading: list[int]  # D'_t


def drawn(stream: Stream, seed: int) -> Drawn:
    """The graph of the paper's dictionary in the dimension of the stream."""
    rows, d = stream.X.shape
    settings = Settings.paper(rows)
    online = Online.make("sfg-mkl-r", settings, d, seed)
    stop = min(ROUND, rows)
    online.run(stream.X[:stop], stream.y[:stop])
    graph, nearest = online.problem.graph, online.state.d
    added = refined(graph.A, nearest) & ~graph.A
    apart = ~np.eye(len(graph.A), dtype=bool)
    return {
        "dataset": stream.name,
        "round": stop,
        "scales": [float(f"{kernel.length_scale:.4g}") for kernel in dictionary(settings.kernels)],
        "edges": np.argwhere(graph.A & apart).tolist(),
        "added": np.argwhere(added).tolist(),
        "dominating": np.flatnonzero(graph.cover).tolist(),
        "leading": np.flatnonzero(nearest == np.arange(len(nearest))).tolist(),
    }
