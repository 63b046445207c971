"""Shift-invariant kernels (values, random frequencies, inner products) and dictionaries of them.

Every kernel has kappa(0) = 1, is integrable, and is a scale mixture of Gaussians, either with one scale for
all coordinates (*radial*: Gaussian, Matern) or with a scale for each coordinate (*product*: Laplacian, Cauchy).
The Gaussian is both. Two functions therefore suffice for the integral of the product of any two of them in any
dimension: the integral against a Gaussian (`log_against_gaussian`) and the mixture (`log_mixing`).

`Gaussian(length_scale=l)` is exp(-|x - y|^2 / (2 l^2)), here and everywhere else in omkl.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal, Self

import numpy as np
from scipy.special import erfcx, gammaln, logsumexp

from omkl.arrays import Matrix, Vector

LOG_PI = math.log(math.pi)
LOG_2PI = math.log(2 * math.pi)


@dataclass(frozen=True)
class Kernel(ABC):
    """A shift-invariant kernel with one length scale and kappa(0) = 1.

    A new family defines its values (`value`), how its frequencies are drawn (`coordinate`, `mixing`) and what
    the inner products with other kernels are computed from (`log_against_gaussian`, `log_mixing`).
    """

    length_scale: float

    shape: ClassVar[Literal["radial", "product"]]

    def __post_init__(self) -> None:
        if not (isinstance(self.length_scale, (int, float, np.number)) and 1e-100 < self.length_scale < 1e100):
            raise ValueError(
                f"length_scale must be a positive finite number, got {self.length_scale!r}; between 1e-100 and 1e100, "
                "it is the distance over which the function may change, in units of the inputs"
            )
        object.__setattr__(self, "length_scale", float(self.length_scale))

    @abstractmethod
    def value(self, X: Matrix, Y: Matrix) -> Matrix:
        """kappa(x - y) for every row x of X and y of Y."""

    @abstractmethod
    def coordinate(self, rng: np.random.Generator, size: int) -> Vector:
        """One coordinate of `size` frequencies, before the factor `mixing`."""

    def mixing(self, rng: np.random.Generator, size: int) -> Vector:
        """The factor that all coordinates of a frequency share; 1 unless the kernel is radial."""
        return np.ones(size)

    @abstractmethod
    def log_against_gaussian(self, variance: Vector, d: int) -> Vector:
        """The logarithm of the integral of kappa(rho) exp(-|rho|^2 / (2 variance)) over R^d."""

    @abstractmethod
    def log_mixing(self, s: Vector) -> tuple[Vector, Vector]:
        """The mixture as (log density in s, variance at s): kappa = E_s exp(-rho^2 / (2 variance(s)))."""

    def log_against_same_family(self, other: Self, d: int) -> float | None:
        """The logarithm of the integral of both kernels' product over R^d, or None where no closed form is known."""
        return None

    def spectral(self, rng: np.random.Generator, size: int, d: int) -> Matrix:
        """(size, d) frequencies psi drawn from the kernel's Fourier transform.

        >>> rng = np.random.default_rng(1)
        >>> psi = Gaussian(2.0).spectral(rng, 20_000, 3)
        >>> (psi.shape, round(float(psi.std()), 2))
        ((20000, 3), 0.5)
        """
        mixing = self.mixing(rng, size)
        return np.stack([self.coordinate(rng, size) * mixing for _ in range(d)], axis=1)


class Gaussian(Kernel):
    """exp(-|x - y|^2 / (2 l^2)).

    >>> Gaussian(1.0).value(np.array([[0.0]]), np.array([[1.0]])).round(4)
    array([[0.6065]])
    """

    shape = "radial"

    def value(self, X: Matrix, Y: Matrix) -> Matrix:
        return np.exp(-squared_distances(X, Y) / (2 * self.length_scale**2))

    def coordinate(self, rng: np.random.Generator, size: int) -> Vector:
        return rng.standard_normal(size) / self.length_scale

    def log_against_gaussian(self, variance: Vector, d: int) -> Vector:
        # 1 / (1/a + 1/b) instead of a b / (a + b), because it neither overflows nor underflows
        return d / 2 * (LOG_2PI - np.log(1 / variance + 1 / self.length_scale**2))

    def log_mixing(self, s: Vector) -> tuple[Vector, Vector]:
        raise NotImplementedError("the mixture of a Gaussian is a point mass, which log_overlap does not need")


FAR = 1e3  # where exp(-r) is 0 and no power of r is infinite, as that of a distance beyond 1e154 would be


@dataclass(frozen=True)
class Matern(Kernel):
    """The Matern kernel of smoothness nu = 1/2, 3/2 or 5/2, on the Euclidean distance.

    >>> Matern(1.0, nu=0.5).value(np.array([[0.0]]), np.array([[1.0]])).round(4)
    array([[0.3679]])
    """

    nu: float = 1.5

    shape = "radial"

    # kappa = sum_k c_k (rate r)^k exp(-rate r), with rate = sqrt(2 nu) / l
    _polynomial: ClassVar[dict[float, tuple[float, ...]]] = {0.5: (1.0,), 1.5: (1.0, 1.0), 2.5: (1.0, 1.0, 1 / 3)}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.nu not in self._polynomial:
            raise ValueError(f"nu must be 0.5, 1.5 or 2.5, got {self.nu!r}; for a smoother kernel take Gaussian")

    @property
    def rate(self) -> float:
        return math.sqrt(2 * self.nu) / self.length_scale

    def value(self, X: Matrix, Y: Matrix) -> Matrix:
        r = np.minimum(self.rate * np.sqrt(squared_distances(X, Y)), FAR)
        return np.asarray(np.polynomial.polynomial.polyval(r, self._polynomial[self.nu]) * np.exp(-r), dtype=np.float64)

    def coordinate(self, rng: np.random.Generator, size: int) -> Vector:
        return rng.standard_normal(size) / self.length_scale

    def mixing(self, rng: np.random.Generator, size: int) -> Vector:
        # the frequencies have a multivariate t distribution with 2 nu degrees of freedom
        return np.sqrt(2 * self.nu / rng.chisquare(2 * self.nu, size))

    def log_against_gaussian(self, variance: Vector, d: int) -> Vector:
        def log_integrand(s: Vector, other: float) -> Vector:
            log_density, own = self.log_mixing(s)
            return log_density + d / 2 * (LOG_2PI - np.log(1 / own + 1 / other))

        return np.array([log_integral(partial(log_integrand, other=b)) for b in np.atleast_1d(variance)])

    def log_against_same_family(self, other: Self, d: int) -> float:
        # a sum of Gamma integrals over the radius, all of them positive
        total = self.rate + other.rate
        log_sphere = math.log(2) + d / 2 * LOG_PI - gammaln(d / 2)
        terms = [
            math.log(a * b) + i * math.log(self.rate) + j * math.log(other.rate)
            + gammaln(d + i + j) - (d + i + j) * math.log(total)
            for i, a in enumerate(self._polynomial[self.nu])
            for j, b in enumerate(other._polynomial[other.nu])
        ]  # fmt: skip
        return float(log_sphere + logsumexp(terms))

    def log_mixing(self, s: Vector) -> tuple[Vector, Vector]:
        return inverse_gamma(s, self.nu), self.length_scale**2 * np.exp(-s)


class Laplacian(Kernel):
    """exp(-|x - y|_1 / l), a product over coordinates.

    >>> Laplacian(1.0).value(np.array([[0.0, 0.0]]), np.array([[1.0, 2.0]])).round(4)
    array([[0.0498]])
    """

    shape = "product"

    def value(self, X: Matrix, Y: Matrix) -> Matrix:
        distance: Matrix = np.abs(X[:, None, :] - Y[None, :, :]).sum(axis=2)
        return np.exp(-distance / self.length_scale)

    def coordinate(self, rng: np.random.Generator, size: int) -> Vector:
        return rng.standard_cauchy(size) / self.length_scale

    def log_against_gaussian(self, variance: Vector, d: int) -> Vector:
        z = np.sqrt(variance / 2) / self.length_scale
        return d * (0.5 * (LOG_2PI + np.log(variance)) + np.log(erfcx(z)))

    def log_against_same_family(self, other: Self, d: int) -> float:
        return d * (math.log(2) - math.log(1 / self.length_scale + 1 / other.length_scale))

    def log_mixing(self, s: Vector) -> tuple[Vector, Vector]:
        return inverse_gamma(s, 0.5), self.length_scale**2 * np.exp(-s)


class Cauchy(Kernel):
    """prod_k 1 / (1 + (x_k - y_k)^2 / l^2).

    The product form, because the radial one is not integrable in two or more dimensions.

    >>> Cauchy(1.0).value(np.array([[0.0, 0.0]]), np.array([[1.0, 1.0]]))
    array([[0.25]])
    """

    shape = "product"

    def value(self, X: Matrix, Y: Matrix) -> Matrix:
        ratio = (X[:, None, :] - Y[None, :, :]) / self.length_scale
        value: Matrix = np.prod(1 / (1 + ratio**2), axis=2)
        return value

    def coordinate(self, rng: np.random.Generator, size: int) -> Vector:
        return rng.laplace(size=size) / self.length_scale

    def log_against_gaussian(self, variance: Vector, d: int) -> Vector:
        z = self.length_scale / np.sqrt(2 * variance)
        return d * (LOG_PI + math.log(self.length_scale) + np.log(erfcx(z)))

    def log_against_same_family(self, other: Self, d: int) -> float:
        return d * (LOG_PI - math.log(1 / self.length_scale + 1 / other.length_scale))

    def log_mixing(self, s: Vector) -> tuple[Vector, Vector]:
        # 1 / (1 + rho^2 / l^2) = E exp(-tau rho^2 / l^2), tau = e^s exponential
        return s - np.exp(s), self.length_scale**2 / 2 * np.exp(-s)


def squared_distances(X: Matrix, Y: Matrix) -> Matrix:
    """|x - y|^2, computed from differences: exactly 0 where x = y, without cancellation."""
    out: Matrix = np.square(X[:, None, :] - Y[None, :, :]).sum(axis=2)
    return out


def inverse_gamma(s: Vector, nu: float) -> Vector:
    """The log density of s = log tau, tau ~ InvGamma(nu, nu)."""
    out: Vector = nu * math.log(nu) - gammaln(nu) - nu * s - nu * np.exp(-s)
    return out


def log_integral(log_f: Callable[[Vector], Vector]) -> float:
    """The logarithm of the integral of exp(log_f(s)) over the real line, for a smooth unimodal integrand.

    A coarse grid finds the interval that matters. The trapezoidal rule converges exponentially on it, because
    the integrand decays at both ends.
    """
    coarse = np.arange(-100.0, 100.0, 0.25)
    with np.errstate(over="ignore", under="ignore"):
        log_height = log_f(coarse)
        support = coarse[log_height > np.max(log_height) - 50]
        s, step = np.linspace(support[0] - 0.25, support[-1] + 0.25, 400, retstep=True)
        return float(logsumexp(log_f(s)) + math.log(step))


# Dictionaries


def paper() -> list[Kernel]:
    """The 41 Gaussians of the paper: l^2 = 10^((i - 21) / 10), i = 1, ..., 41."""
    return [Gaussian(math.sqrt(10 ** ((i - 21) / 10))) for i in range(1, 42)]


def paper_omkr() -> list[Kernel]:
    """The 41 Gaussians of the paper's OMKR, exp(-|rho|^2 / 10^((i - 21) / 10)): without the factor 2."""
    return [Gaussian(math.sqrt(10 ** ((i - 21) / 10) / 2)) for i in range(1, 42)]


def jmlr(halved: bool = False) -> list[Kernel]:
    """The 51 Gaussians and 25 Laplacians of the journal version: l^2 = 10^(4 i / 50 - 2), and l = 10^(i / 6 - 2).

    `halved` is for the exact kernels of its OMKR, exp(-|rho|^2 / 10^(4 i / 50 - 2)): without the factor 2.
    """
    gaussians = [Gaussian(math.sqrt(10 ** (4 * i / 50 - 2) / (2 if halved else 1))) for i in range(51)]
    return [*gaussians, *(Laplacian(10 ** (i / 6 - 2)) for i in range(25))]


def log_grid(family: Callable[[float], Kernel], low: float, high: float, count: int) -> list[Kernel]:
    """`count` kernels of one family, their length scales evenly spaced on a logarithmic axis.

    >>> [round(k.length_scale, 3) for k in log_grid(Laplacian, 0.1, 10.0, 3)]
    [0.1, 1.0, 10.0]
    """
    if not (0 < low <= high < math.inf and count >= 1):
        raise ValueError(f"a log grid needs 0 < low <= high and count >= 1, got low={low}, high={high}, count={count}")
    return [family(float(scale)) for scale in np.geomspace(low, high, count)]


def mixture(families: Iterable[Callable[[float], Kernel]], low: float, high: float, count: int) -> list[Kernel]:
    """The log grids of several families in one list."""
    return [kernel for family in families for kernel in log_grid(family, low, high, count)]


NAMED: dict[str, Callable[[], list[Kernel]]] = {
    "paper": paper,
    "paper-omkr": paper_omkr,
    "jmlr": jmlr,
    "jmlr-omkr": lambda: jmlr(halved=True),
    "gaussian": lambda: log_grid(Gaussian, 0.1, 10.0, 11),
    "few": lambda: log_grid(Gaussian, 0.1, 10.0, 6),
    "mixed": lambda: mixture((Gaussian, Laplacian), 0.1, 10.0, 11),
    "families": lambda: mixture(
        (
            Gaussian, Laplacian, Cauchy,
            lambda scale: Matern(scale, 0.5), lambda scale: Matern(scale, 1.5), lambda scale: Matern(scale, 2.5),
        ),
        0.1, 10.0, 7,
    ),
}  # fmt: skip


def dictionary(spec: str | Iterable[Kernel]) -> list[Kernel]:
    """The dictionary of kernels of this name, or the user's own list, validated.

    >>> len(dictionary("paper"))
    41
    >>> dictionary([Gaussian(1.0), Laplacian(2.0)])
    [Gaussian(length_scale=1.0), Laplacian(length_scale=2.0)]
    """
    if isinstance(spec, str):
        if spec not in NAMED:
            raise ValueError(f"kernels must be one of {', '.join(NAMED)} or a list of kernels, got {spec!r}")
        return NAMED[spec]()
    if not isinstance(spec, Iterable):
        raise ValueError(f"kernels must be a name or a list of kernels, such as [Gaussian(1.0)], got {spec!r}")
    kernels = list(spec)
    if not kernels:
        raise ValueError("the dictionary of kernels is empty; name at least one kernel, or take kernels='paper'")
    for i, kernel in enumerate(kernels):
        if not isinstance(kernel, Kernel):
            raise ValueError(
                f"kernels[{i}] must be a Kernel such as Gaussian(1.0), got {type(kernel).__name__} {kernel!r}"
            )
    return kernels
