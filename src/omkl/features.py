"""z(x): the random-feature map, and where its frequencies come from.

A feature's frequencies are a pure function of (seed, name of the feature), so that features may
come in any order, or later, and the same stream still gives the same model. Column i of an array
is the feature named str(i).
"""

import hashlib
from collections.abc import Sequence
from typing import Literal

import numpy as np

from omkl.arrays import Matrix, Tensor, Vector, padded
from omkl.kernels import Gaussian, Kernel, Matern

Draw = Literal["independent", "shared"]


def features(V: Matrix, x: Vector) -> Matrix:
    """Random features of x for one kernel, sines above cosines; their norm is 1.

    >>> z = features(np.array([[0.0, np.pi / 2]]), np.array([1.0]))
    >>> z.round(3)
    array([[0.   , 0.707],
           [0.707, 0.   ]])
    """
    phase = x @ V
    z: Matrix = np.stack((np.sin(phase), np.cos(phase))) / np.sqrt(V.shape[1])  # (3)
    return z


def column_names(d: int) -> list[str]:
    return [str(i) for i in range(d)]


def generator(seed: int, name: str) -> np.random.Generator:
    """The Generator that belongs to (seed, name), on every machine and in every process."""
    digest = hashlib.blake2b(name.encode(), digest_size=16).digest()
    return np.random.Generator(np.random.PCG64([seed, int.from_bytes(digest, "little")]))


def frequencies(
    kernels: Sequence[Kernel], names: Sequence[str], D: int, seed: int, draw: Draw = "independent"
) -> Tensor:
    """(N, d, D) spectral draws of every kernel, independent from kernel to kernel as in the paper.

    With draw="shared" the Gaussian kernels have one draw, each divided by its length scale.

    >>> kernels = [Gaussian(1.0), Matern(2.0, nu=0.5)]
    >>> V = frequencies(kernels, ["age", "height"], 3, seed=1)
    >>> np.array_equal(V[:, :1], frequencies(kernels, ["age"], 3, seed=1))
    True
    >>> narrow, wide = frequencies([Gaussian(1.0), Gaussian(2.0)], ["age", "height"], 3, seed=1, draw="shared")
    >>> np.array_equal(narrow, 2 * wide)
    True
    """
    V = padded(len(kernels), len(names), D)
    for k, name in enumerate(names):
        rng = generator(seed, "column " + name)
        base = generator(seed, "shared " + name).standard_normal(D) if draw == "shared" else None
        for i, kernel in enumerate(kernels):
            if base is not None and type(kernel) is Gaussian:
                V[i, k] = base / kernel.length_scale
            else:
                V[i, k] = kernel.coordinate(rng, D)
    rng = generator(seed, "mixing")
    for i, kernel in enumerate(kernels):
        V[i] *= kernel.mixing(rng, D)
    return V


def limit_inputs(V: Tensor, names: Sequence[str], orders: Sequence[int | None], seed: int) -> None:
    """Let the random features of kernel i look at orders[i] inputs each, drawn for each of them; None: at all.

    The kernel is then a mean over sets of so many inputs, a sum of functions of few inputs each. What is
    left of a frequency grows, so that its phase varies as much as that of the whole. Which inputs are
    looked at depends on (seed, their names) alone, not on their order.

    >>> V = frequencies([Gaussian(1.0)], ["age", "height", "weight"], 4, seed=1)
    >>> limit_inputs(V, ["age", "height", "weight"], [2], seed=1)
    >>> np.count_nonzero(V[0], axis=0)
    array([2, 2, 2, 2])
    """
    N, d, D = V.shape
    lot = np.stack([generator(seed, "few inputs " + name).random((N, D)) for name in names], axis=1)
    place = lot.argsort(axis=1).argsort(axis=1)
    for i, order in enumerate(orders):
        if order is not None and order < d:
            V[i] *= (place[i] < order) * np.sqrt(d / order)


def orthogonal_frequencies(kernels: Sequence[Kernel], d: int, D: int, seed: int) -> Tensor:
    """(N, d, D) like `frequencies`, the directions orthogonal within each block of d.

    Each draw keeps its law (a uniform direction times a chi-distributed length), so the kernel
    estimate stays unbiased, with less variance. It needs all d at once and a radial kernel.

    Yu, Suresh, Choromanski, Holtmann-Rice, Kumar: Orthogonal Random Features, 2016.
    """
    for kernel in kernels:
        if not isinstance(kernel, (Gaussian, Matern)):
            raise ValueError(
                f"orthogonal features need a radial kernel (Gaussian or Matern), got {kernel!r}; "
                "leave it out of the dictionary or take orthogonal=False"
            )
    V = padded(len(kernels), d, D)
    rng = generator(seed, "orthogonal")
    for i, kernel in enumerate(kernels):
        blocks = rng.standard_normal((-(-D // d), d, d))
        Q, _ = np.linalg.qr(blocks)  # uniform but for signs, which no kernel estimate can tell
        lengths = np.sqrt(rng.chisquare(d, D)) / kernel.length_scale
        V[i] = np.concatenate(list(Q), axis=1)[:, :D] * lengths * kernel.mixing(rng, D)
    return V
