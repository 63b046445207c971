"""Plots of kernel weights and of the similarity graph; matplotlib (extra `plot`) is imported when one is drawn."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from omkl.arrays import Index, Mask, Vector
from omkl.explain.displays import new_axes
from omkl.kernels import Kernel

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def weights(kernels: Sequence[Kernel], weight: Vector, ax: "Axes | None" = None) -> "Axes":
    """Weight over length scale, one series for each family."""
    ax = new_axes(ax)
    families = [type(kernel).__name__ for kernel in kernels]
    scales = np.array([kernel.length_scale for kernel in kernels])
    for family in dict.fromkeys(families):
        own = np.array([f == family for f in families])
        stems = ax.stem(scales[own], weight[own], basefmt=" ", label=family)
        stems.markerline.set_markersize(4)
    ax.set(xscale="log", xlabel="length scale", ylabel="weight", ylim=(0, None))
    if len(set(families)) > 1:
        ax.legend()
    return ax


def graph(kernels: Sequence[Kernel], A: Mask, cover: Index, refined: Mask, ax: "Axes | None" = None) -> "Axes":
    """Arcs from a node to its out-neighbours, in the order of the dictionary; edges added by refinement are red."""
    from matplotlib.patches import FancyArrowPatch

    ax = new_axes(ax)
    N = len(kernels)
    for i, j in zip(*np.nonzero(refined & ~np.eye(N, dtype=bool)), strict=True):
        ax.add_patch(
            FancyArrowPatch(
                (i, 0), (j, 0), connectionstyle="arc3,rad=-0.45", arrowstyle="-|>",
                mutation_scale=6, linewidth=0.6, color="tab:grey" if A[i, j] else "tab:red", alpha=0.7,
            )
        )  # fmt: skip
    dominating = np.isin(np.arange(N), cover)
    others = np.flatnonzero(~dominating)
    ax.scatter(others, np.zeros(len(others)), s=18, color="tab:blue", zorder=3, label="kernel")
    ax.scatter(cover, np.zeros(len(cover)), s=42, color="tab:orange", zorder=3, label="in the dominating set")
    if (refined & ~A).any():
        ax.plot([], [], color="tab:red", linewidth=1, label="edge added by refinement")
    longest = max((abs(int(i) - int(j)) for i, j in zip(*np.nonzero(refined), strict=True)), default=1)
    ax.set(xlim=(-1, N), ylim=(-0.15 * longest - 0.5, 0.3 * longest + 0.5), yticks=[], xlabel="length scale")
    shown = np.linspace(0, N - 1, min(N, 9)).round().astype(int)
    ax.set_xticks(shown, [f"{kernels[k].length_scale:.3g}" for k in shown])
    ax.legend(loc="upper right")
    return ax
