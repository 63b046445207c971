import itertools
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import erfc, gammaln, logsumexp
from streams import FAMILIES, LEARNERS, small_for, stream

from omkl.graph import by_similarity, log_overlap, log_overlaps
from omkl.kernels import (
    LOG_2PI,
    Cauchy,
    Gaussian,
    Kernel,
    Laplacian,
    Matern,
    dictionary,
    log_grid,
    log_integral,
    mixture,
    squared_distances,
)
from omkl.online import Online

FAMILY = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES.keys())
PAIRS = list(itertools.combinations_with_replacement(FAMILIES, 2))
SCALES = [(1.0, 1.0), (0.3, 2.0), (2.0, 0.3), (0.05, 20.0)]


def at(kernel, rho):
    """kappa at the differences rho, given as rows."""
    return kernel.value(np.atleast_2d(rho), np.zeros((1, np.shape(rho)[-1])))[:, 0]


# Values


@FAMILY
@pytest.mark.parametrize("d", [1, 3])
def test_a_kernel_is_1_at_0_and_smaller_elsewhere(family, d):
    X = np.random.default_rng(0).normal(size=(20, d))
    K = family(0.7).value(X, X)
    assert (np.diagonal(K) == 1).all()
    assert (K[~np.eye(20, dtype=bool)] < 1).all()


@FAMILY
@pytest.mark.parametrize("d", [1, 3])
def test_a_gram_matrix_is_symmetric_and_positive_semidefinite(family, d):
    X = np.random.default_rng(1).normal(size=(40, d))
    K = family(0.7).value(X, X)
    np.testing.assert_array_equal(K, K.T)
    assert np.linalg.eigvalsh(K).min() > -1e-13


@pytest.mark.parametrize(
    ("kernel", "formula"),
    [
        (Gaussian(0.7), lambda a, b: math.exp(-(a * a + b * b) / (2 * 0.49))),
        (Laplacian(0.7), lambda a, b: math.exp(-(abs(a) + abs(b)) / 0.7)),
        (Cauchy(0.7), lambda a, b: 1 / (1 + a * a / 0.49) / (1 + b * b / 0.49)),
        (Matern(0.7, 0.5), lambda a, b: math.exp(-math.hypot(a, b) / 0.7)),
        (Matern(0.7, 1.5), lambda a, b: (1 + (r := math.sqrt(3) * math.hypot(a, b) / 0.7)) * math.exp(-r)),
        (Matern(0.7, 2.5), lambda a, b: (1 + (r := math.sqrt(5) * math.hypot(a, b) / 0.7) + r * r / 3) * math.exp(-r)),
    ],
    ids=FAMILIES.keys(),
)
def test_value_is_the_textbook_formula(kernel, formula):
    X, Y = np.random.default_rng(2).normal(size=(2, 6, 2))
    want = [[formula(*(x - y)) for y in Y] for x in X]
    np.testing.assert_allclose(kernel.value(X, Y), want, rtol=1e-14)


@FAMILY
def test_only_the_ratio_of_distance_to_length_scale_matters(family):
    rho = np.random.default_rng(3).normal(size=(10, 2))
    np.testing.assert_allclose(at(family(1e-6), 1e-6 * rho), at(family(1e6), 1e6 * rho), rtol=1e-12)


# Random frequencies


@FAMILY
@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("D", [50, 800])
def test_random_frequencies_estimate_the_kernel_with_an_error_of_order_one_over_root_D(family, d, D):
    """cos(psi rho) has mean kappa(rho) and variance (1 + kappa(2 rho)) / 2 - kappa(rho)^2, so the error is known."""
    kernel, replicates = family(0.8), 500
    rho = np.array([[0.5, -0.3, 0.4]])[:, :d]
    psi = kernel.spectral(np.random.default_rng(4), D * replicates, d)
    estimates = np.cos(psi @ rho[0]).reshape(replicates, D).mean(axis=1)
    kappa, kappa_2 = at(kernel, rho)[0], at(kernel, 2 * rho)[0]
    error = math.sqrt(((1 + kappa_2) / 2 - kappa**2) / D)
    assert abs(estimates.mean() - kappa) < 4 * error / math.sqrt(replicates)
    assert np.sqrt(np.mean((estimates - kappa) ** 2)) == pytest.approx(error, rel=4 / math.sqrt(2 * replicates))


# Inner products


def overlap_on_the_line(a, b):
    """The integral of kappa_a kappa_b over R by adaptive quadrature."""

    def product(rho):
        return float(at(a, [rho])[0] * at(b, [rho])[0])

    low, high = sorted((a.length_scale, b.length_scale))
    cuts = sorted({0, low, 5 * low, high, 40 * high})
    parts = [quad(product, p, q, epsabs=0, epsrel=1e-12, limit=200)[0] for p, q in itertools.pairwise(cuts)]
    tail = quad(lambda v: product(1 / v) / v**2, 0, 1 / cuts[-1], epsabs=1e-14 * sum(parts), epsrel=1e-12)[0]
    return 2 * (sum(parts) + tail)


def log_overlap_along_the_radius(a, b, d):
    """The logarithm of the integral over R^d for two radial kernels: the trapezoidal rule in s = log r."""
    low, high = sorted((a.length_scale, b.length_scale))
    s, step = np.linspace(math.log(low) - 40, math.log(high) + 8, 20_001, retstep=True)
    rho = np.pad(np.exp(s)[:, None], ((0, 0), (0, d - 1)))
    with np.errstate(divide="ignore"):
        log_product = np.log(at(a, rho)) + np.log(at(b, rho))
    log_sphere = math.log(2) + d / 2 * math.log(math.pi) - gammaln(d / 2)
    return log_sphere + logsumexp(d * s + log_product) + math.log(step)


def overlap_in_the_plane(a, b):
    """The same over R^2 for any two kernels that decay fast: Gauss-Legendre quadrature in angle and radius."""
    u, weight_u = np.polynomial.legendre.leggauss(120)
    v, weight_v = np.polynomial.legendre.leggauss(300)
    angle, weight_u = math.pi / 4 * (u + 1), math.pi / 4 * weight_u  # a quadrant
    ratio, weight_v = (v + 1) / 2, weight_v / 2
    scale = math.sqrt(a.length_scale * b.length_scale)
    r, weight_r = scale * ratio / (1 - ratio), scale * weight_v / (1 - ratio) ** 2
    rho = np.stack((np.outer(np.cos(angle), r), np.outer(np.sin(angle), r)), axis=-1).reshape(-1, 2)
    product = (at(a, rho) * at(b, rho)).reshape(len(angle), len(r))
    return 4 * weight_u @ product @ (weight_r * r)


@pytest.mark.parametrize("scales", SCALES, ids=str)
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_overlap_is_the_integral_of_the_product_on_the_line(pair, scales):
    a, b = (FAMILIES[name](scale) for name, scale in zip(pair, scales, strict=True))
    assert math.exp(log_overlap(a, b, 1)) == pytest.approx(overlap_on_the_line(a, b), rel=1e-9)


@pytest.mark.parametrize("d", [2, 3, 100])
@pytest.mark.parametrize("scales", SCALES[:3], ids=str)
@pytest.mark.parametrize("pair", [p for p in PAIRS if not {"laplacian", "cauchy"} & {*p}], ids="-".join)
def test_overlap_of_radial_kernels_is_an_integral_along_the_radius(pair, scales, d):
    a, b = (FAMILIES[name](scale) for name, scale in zip(pair, scales, strict=True))
    assert log_overlap(a, b, d) == pytest.approx(log_overlap_along_the_radius(a, b, d), abs=1e-10)


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("scales", SCALES[:3], ids=str)
@pytest.mark.parametrize("pair", [p for p in PAIRS if {*p} <= {"gaussian", "laplacian", "cauchy"}], ids="-".join)
def test_overlap_of_product_kernels_is_a_power_of_that_on_the_line(pair, scales, d):
    a, b = (FAMILIES[name](scale) for name, scale in zip(pair, scales, strict=True))
    assert math.exp(log_overlap(a, b, d)) == pytest.approx(overlap_on_the_line(a, b) ** d, rel=1e-9)


@pytest.mark.parametrize("scales", SCALES[:3], ids=str)
@pytest.mark.parametrize("product", ["laplacian", "cauchy"])
@pytest.mark.parametrize("radial", ["matern12", "matern32", "matern52"])
def test_overlap_of_a_radial_and_a_product_kernel_is_an_integral_over_the_plane(radial, product, scales):
    a, b = FAMILIES[radial](scales[0]), FAMILIES[product](scales[1])
    assert math.exp(log_overlap(a, b, 2)) == pytest.approx(overlap_in_the_plane(a, b), rel=1e-8)


@pytest.mark.parametrize("d", [1, 7, 100])
def test_overlaps_of_gaussians_and_laplacians_equal_their_closed_forms(d):
    a, b = 0.6, 1.7
    for i, j in [(a, b), (a, a), (b, b)]:
        gaussian = d / 2 * math.log(2 * math.pi * i**2 * j**2 / (i**2 + j**2))
        laplacian = d * math.log(2 * i * j / (i + j))
        z = i / (math.sqrt(2) * j)
        mixed = d * math.log(math.sqrt(2 * math.pi) * i * math.exp(z * z) * erfc(z))
        assert log_overlap(Gaussian(i), Gaussian(j), d) == pytest.approx(gaussian, rel=1e-13)
        assert log_overlap(Laplacian(i), Laplacian(j), d) == pytest.approx(laplacian, rel=1e-13)
        assert log_overlap(Gaussian(i), Laplacian(j), d) == pytest.approx(mixed, rel=1e-12)


@pytest.mark.parametrize("d", [1, 3, 100])
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_overlap_is_symmetric(pair, d):
    a, b = FAMILIES[pair[0]](0.4), FAMILIES[pair[1]](1.9)
    assert log_overlap(a, b, d) == pytest.approx(log_overlap(b, a, d), rel=1e-12, abs=1e-12)


def test_laplacian_and_matern_one_half_are_the_same_kernel_on_the_line():
    a, b = Laplacian(0.6), Matern(0.6, 0.5)
    assert log_overlap(a, b, 1) == pytest.approx(log_overlap(a, a, 1), abs=1e-12)
    assert log_overlap(b, b, 1) == pytest.approx(log_overlap(a, a, 1), abs=1e-12)


@pytest.mark.parametrize("d", [2, 10, 100, 1000])
def test_overlaps_are_finite_and_satisfy_the_cauchy_schwarz_inequality_in_any_dimension(d):
    K = log_overlaps(dictionary("families"), d)
    assert np.isfinite(K).all()
    np.testing.assert_array_equal(K, K.T)
    gap = (np.diagonal(K)[:, None] + np.diagonal(K)) / 2 - K
    assert (gap[~np.eye(len(K), dtype=bool)] > 0).all()


# Order of similarity


def exact_delta(a, b, d):
    """(7) for two Gaussians, in 1000 digits and without the factor pi^(d/2)."""
    a, b = Decimal(a.length_scale), Decimal(b.length_scale)
    harmonic = (2 * a**2 * b**2 / (a**2 + b**2)).sqrt()
    return a**d + b**d - 2 * harmonic**d


@pytest.mark.parametrize("d", [1, 2, 5, 8, 15, 100, 300])
def test_the_order_of_gaussians_is_that_of_exact_arithmetic(d):
    kernels = dictionary("paper")
    with localcontext(prec=1000):
        exact = [sorted(range(41), key=lambda j, a=a: exact_delta(a, kernels[j], d)) for a in kernels]
    np.testing.assert_array_equal(by_similarity(kernels, d), exact)


@pytest.mark.parametrize("d", [1, 5, 15, 100])
def test_neighbours_of_a_gaussian_have_near_indices_in_any_dimension(d):
    nearest = by_similarity(dictionary("paper"), d)[:, :5]
    assert (np.abs(nearest - np.arange(41)[:, None]) <= 4).all()


# Dictionaries and invalid input


def test_the_dictionary_of_the_paper_has_variances_from_a_hundredth_to_a_hundred():
    variances = [kernel.length_scale**2 for kernel in dictionary("paper")]
    np.testing.assert_allclose(variances, [10 ** ((i - 21) / 10) for i in range(1, 42)], rtol=1e-14)


def test_the_dictionary_of_omkr_in_the_paper_has_no_factor_2():
    for i, kernel in enumerate(dictionary("paper-omkr"), start=1):
        assert at(kernel, [0.3, 0.4])[0] == pytest.approx(math.exp(-0.25 / 10 ** ((i - 21) / 10)), rel=1e-13)


@pytest.mark.parametrize("name", ["paper", "paper-omkr", "gaussian", "mixed", "families"])
def test_a_named_dictionary_contains_each_kernel_once(name):
    kernels = dictionary(name)
    assert len(set(kernels)) == len(kernels) > 1


def test_a_mixture_is_a_grid_of_each_family():
    assert mixture((Gaussian, Laplacian), 1.0, 4.0, 3) == log_grid(Gaussian, 1.0, 4.0, 3) + log_grid(
        Laplacian, 1.0, 4.0, 3
    )


@FAMILY
@pytest.mark.parametrize("scale", [0, -1.0, math.nan, math.inf, "wide", None])
def test_an_invalid_length_scale_is_refused(family, scale):
    with pytest.raises(ValueError, match=f"length_scale must be a positive finite number, got {scale!r}"):
        family(scale)


def test_a_matern_kernel_of_another_smoothness_is_refused():
    with pytest.raises(ValueError, match=r"nu must be 0.5, 1.5 or 2.5, got 3.5"):
        Matern(1.0, nu=3.5)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ([], "dictionary of kernels is empty"),
        ("papyrus", r"one of paper, .* or a list of kernels, got 'papyrus'"),
        ([Gaussian(1.0), 2.0], r"kernels\[1\] must be a Kernel .* got float 2.0"),
        ([Gaussian], r"kernels\[0\] must be a Kernel"),
        (Gaussian(2.0), r"a list of kernels, such as \[Gaussian\(1.0\)\], got Gaussian\(length_scale=2.0\)"),
        (None, r"a name or a list of kernels, such as \[Gaussian\(1.0\)\], got None"),
    ],
)
def test_an_invalid_dictionary_is_refused(spec, message):
    with pytest.raises(ValueError, match=message):
        dictionary(spec)


@pytest.mark.parametrize(
    ("low", "high", "count"), [(0, 1, 3), (2, 1, 3), (1, math.inf, 3), (1, 2, 0), (math.nan, 1, 2)]
)
def test_an_invalid_grid_is_refused(low, high, count):
    with pytest.raises(ValueError, match=r"0 < low <= high and count >= 1"):
        log_grid(Gaussian, low, high, count)


# A user's own kernel


class RationalQuadratic(Kernel):
    """(1 + r^2 / (2 a l^2))^-a, a mixture of Gaussians of precision Gamma(a, a) / l^2."""

    shape = "radial"
    a = 4.0

    def value(self, X, Y):
        return (1 + squared_distances(X, Y) / (2 * self.a * self.length_scale**2)) ** -self.a

    def coordinate(self, rng, size):
        return rng.standard_normal(size) / self.length_scale

    def mixing(self, rng, size):
        return np.sqrt(rng.gamma(self.a, 1 / self.a, size))

    def log_mixing(self, s):
        log_density = self.a * math.log(self.a) - gammaln(self.a) + self.a * (s - np.exp(s))
        return log_density, self.length_scale**2 * np.exp(-s)

    def log_against_gaussian(self, variance, d):
        def log_integrand(s, other):
            log_density, own = self.log_mixing(s)
            return log_density + d / 2 * (LOG_2PI - np.log(1 / own + 1 / other))

        return np.array([log_integral(lambda s, b=b: log_integrand(s, b)) for b in np.atleast_1d(variance)])


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_users_own_kernel_works_in_every_algorithm(learner):
    X, Y = stream(500, 2)
    kernels = [RationalQuadratic(0.3), RationalQuadratic(1.0), Gaussian(1.0), Laplacian(1.0)]
    one = learner in ("fogd", "nogd", "krls-t")
    changes = {"budget": 100} | ({"rank": 50} if learner == "nogd" else {}) if learner in ("nogd", "krls-t") else {}
    chosen = small_for(learner, kernels=kernels[:1] if one else kernels, n_features=40, ridge=1e-6, **changes)
    online = Online.make(learner, chosen, 2)
    assert online.backend == ("numpy" if learner in ("omkr", "nogd", "krls-t") else "engine")
    predictions = online.run(X, Y)
    errors = ((predictions[:, 0] if online.algorithm.distribution else predictions) - Y) ** 2
    assert errors[-100:].mean() < 0.2 * Y[-100:].var()


def test_random_frequencies_estimate_a_users_own_kernel():
    kernel, rho = RationalQuadratic(0.8), np.array([0.5, -0.3])
    psi = kernel.spectral(np.random.default_rng(0), 200_000, 2)
    assert np.cos(psi @ rho).mean() == pytest.approx(at(kernel, rho)[0], abs=0.006)
