"""The random features z(x) of a kernel, and the frequencies they are made of.

The frequencies of an input are a pure function of (seed, name of the input). Inputs may therefore come in
any order, or be added later, and the same stream still gives the same model. Column i of an array is the
input named str(i).
"""

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import numpy as np

from omkl.arrays import Matrix, Tensor, Vector, padded
from omkl.kernels import Gaussian, Kernel, Matern

Draw = Literal["independent", "shared"]
FEW = 16  # inputs; where they come one after another, what was drawn for those before is used again
GENERATOR = 2**10  # numbers that can be drawn in the time in which a generator is made


def features(V: Matrix, x: Vector) -> Matrix:
    """(2, D) random features of x for one kernel: sines in the first row, cosines in the second; norm 1.

    >>> z = features(np.array([[0.0, np.pi / 2]]), np.array([1.0]))
    >>> z.round(3)
    array([[0.   , 0.707],
           [0.707, 0.   ]])
    """
    phase = x @ V
    z: Matrix = np.stack((np.sin(phase), np.cos(phase))) / np.sqrt(V.shape[1])  # (z)
    return z


def column_names(d: int) -> list[str]:
    """Names of the columns of an array, which has none of its own."""
    return [str(i) for i in range(d)]


def generator(seed: int, name: str) -> np.random.Generator:
    """A random generator that depends on (seed, name) alone, not on the machine or the process."""
    digest = hashlib.blake2b(name.encode(errors="surrogatepass"), digest_size=16).digest()
    return np.random.Generator(np.random.PCG64([seed, int.from_bytes(digest, "little")]))


def frequencies(
    kernels: Sequence[Kernel], names: Sequence[str], D: int, seed: int, draw: Draw = "independent"
) -> Tensor:
    """(N, d, D) frequencies drawn from the spectral density of every kernel, independently as in the paper.

    With draw="shared" all Gaussian kernels use the same normal draws, divided by their length scales.

    >>> kernels = [Gaussian(1.0), Matern(2.0, nu=0.5)]
    >>> V = frequencies(kernels, ["age", "height"], 3, seed=1)
    >>> np.array_equal(V[:, :1], frequencies(kernels, ["age"], 3, seed=1))
    True
    >>> narrow, wide = frequencies([Gaussian(1.0), Gaussian(2.0)], ["age", "height"], 3, seed=1, draw="shared")
    >>> np.array_equal(narrow, 2 * wide)
    True
    """
    V = padded(len(kernels), len(names), D)
    drawn = _column if len(names) > FEW else _column_again
    for k, name in enumerate(names):
        V[:, k] = drawn(tuple(kernels), name, D, seed, draw)
    rng = generator(seed, "mixing")
    for i, kernel in enumerate(kernels):
        V[i] *= kernel.mixing(rng, D)
    return V


def _column(kernels: tuple[Kernel, ...], name: str, D: int, seed: int, draw: Draw) -> Matrix:
    """(N, D): the frequencies of one input, before the factors that all inputs share."""
    rng = generator(seed, "column " + name)
    base = generator(seed, "shared " + name).standard_normal(D) if draw == "shared" else None
    return np.array([
        base / kernel.length_scale if base is not None and type(kernel) is Gaussian else kernel.coordinate(rng, D)
        for kernel in kernels
    ]).reshape(len(kernels), D)  # fmt: skip


_column_again = lru_cache(4 * FEW)(_column)


def limit_inputs(V: Tensor, names: Sequence[str], orders: Sequence[int | None], seed: int) -> None:
    """Make each random feature of kernel i depend on orders[i] randomly chosen inputs only, in place; None: on all.

    The kernel then is a mean of kernels on subsets of inputs: its functions are sums of functions of few
    inputs each. The frequencies that remain are scaled up, so that the variance of the phase stays the same.
    Which inputs are chosen depends on (seed, their names) alone, not on their order.

    >>> V = frequencies([Gaussian(1.0)], ["age", "height", "weight"], 4, seed=1)
    >>> limit_inputs(V, ["age", "height", "weight"], [2], seed=1)
    >>> np.count_nonzero(V[0], axis=0)
    array([2, 2, 2, 2])
    """
    N, d, D = V.shape
    drawn = _ranks if len(names) > FEW else _ranks_again
    draws = np.stack([drawn(name, N, D, seed) for name in names], axis=1)
    rank = draws.argsort(axis=1).argsort(axis=1)
    for i, order in enumerate(orders):
        if order is not None and order < d:
            V[i] *= (rank[i] < order) * np.sqrt(d / order)


def _ranks(name: str, N: int, D: int, seed: int) -> Matrix:
    return generator(seed, "few inputs " + name).random((N, D))


_ranks_again = lru_cache(4 * FEW)(_ranks)


def orthogonal_frequencies(kernels: Sequence[Kernel], d: int, D: int, seed: int) -> Tensor:
    """(N, d, D) like `frequencies`, with orthogonal directions within each block of d.

    Each frequency has the distribution it has there (a uniform direction times a chi-distributed length), so
    that the estimate of the kernel is still unbiased, with a smaller variance. All d inputs must be known in
    advance, and the kernel must be radial.

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
        Q, _ = np.linalg.qr(blocks)  # uniform up to signs, and the cosine is even
        lengths = np.sqrt(rng.chisquare(d, D)) / kernel.length_scale
        V[i] = np.concatenate(list(Q), axis=1)[:, :D] * lengths * kernel.mixing(rng, D)
    return V
