import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from streams import FAMILIES, of_all_families

from omkl.features import column_names, features, frequencies, generator, limit_inputs, orthogonal_frequencies
from omkl.kernels import Cauchy, Gaussian, Laplacian, Matern

NAMES = ["age", "height", "é", ""]


@given(st.data(), st.integers(1, 5), st.integers(1, 20))
def test_features_have_norm_1(data, d, D):
    numbers = st.floats(-1e6, 1e6)
    V, x = data.draw(arrays(float, (d, D), elements=numbers)), data.draw(arrays(float, d, elements=numbers))
    assert np.linalg.norm(features(V, x)) == pytest.approx(1, abs=1e-14)


def test_the_inner_product_of_two_feature_vectors_is_the_mean_cosine():
    rng = np.random.default_rng(0)
    V, x, y = rng.normal(size=(3, 50)), rng.normal(size=3), rng.normal(size=3)
    assert np.vdot(features(V, x), features(V, y)) == pytest.approx(np.cos((x - y) @ V).mean(), abs=1e-14)


# Frequencies are a function of (seed, name)


def test_frequencies_of_an_input_do_not_depend_on_its_position_or_on_other_inputs():
    kernels = of_all_families(6)
    V = frequencies(kernels, NAMES, 5, seed=3)
    for chosen in ([2], [3, 0], [1, 2, 0, 3]):
        np.testing.assert_array_equal(frequencies(kernels, [NAMES[k] for k in chosen], 5, seed=3), V[:, chosen])


def test_frequencies_differ_with_seed_name_and_kernel():
    kernels = [Gaussian(1.0), Gaussian(1.0)]
    V, other = frequencies(kernels, NAMES, 5, seed=3), frequencies(kernels, NAMES, 5, seed=4)
    assert len(np.unique(np.stack((V, other)))) == 2 * V.size


def test_frequencies_are_the_same_in_another_process():
    text = "from omkl.features import generator; print(generator(7, 'height').random())"
    out = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout
    assert float(out) == generator(7, "height").random()


def test_column_k_of_an_array_is_the_feature_named_k():
    assert column_names(3) == ["0", "1", "2"]


def mixing_of(seed, names=("a", "b")):
    """The factors of two Matern kernels: what their frequencies have more than those of Gaussians in their place."""
    scales = 0.5, 2.0
    matern = frequencies([Matern(scale, 1.5) for scale in scales], names, 6, seed)
    return matern / frequencies([Gaussian(scale) for scale in scales], names, 6, seed)


def test_all_inputs_of_a_feature_share_one_mixing_factor_which_differs_with_seed_and_kernel():
    factors = mixing_of(seed=3)
    assert (factors > 0).all()
    np.testing.assert_allclose(factors[:, 0], factors[:, 1], rtol=1e-12)
    everything = np.stack((factors[:, 0], mixing_of(seed=4)[:, 0]))
    assert len(np.unique(everything.round(10))) == everything.size
    np.testing.assert_allclose(mixing_of(seed=3, names=("c", "d")), factors, rtol=1e-12)  # whatever the inputs are


def test_kernels_that_share_their_draws_have_independent_ones_for_every_input():
    kernels = [Gaussian(1.0), Matern(1.0), Gaussian(2.0)]
    V = frequencies(kernels, ["a", "b"], 5, seed=1, draw="shared")
    np.testing.assert_array_equal(V[0], 2 * V[2])
    assert len(np.unique(V[:2])) == V[:2].size


def test_a_feature_that_depends_on_few_inputs_keeps_the_variance_of_its_phase():
    names = list("abcdef")
    V = frequencies([Gaussian(0.5), Gaussian(0.5), Gaussian(0.5)], names, 4000, seed=1)
    whole = V.copy()
    limit_inputs(V, names, [2, None, 6], seed=1)
    np.testing.assert_array_equal(V[1:], whole[1:])
    assert (np.count_nonzero(V[0], axis=0) == 2).all()
    np.testing.assert_allclose(V[0][V[0] != 0], whole[0][V[0] != 0] * np.sqrt(3))  # sqrt(d / order)
    assert np.square(V[0]).sum(axis=0).mean() == pytest.approx(np.square(whole[0]).sum(axis=0).mean(), rel=0.05)
    np.testing.assert_allclose(np.count_nonzero(V[0], axis=1) / 4000, 1 / 3, atol=0.03)  # none is preferred


def test_the_inputs_of_a_feature_depend_on_seed_and_names_and_not_on_their_order():
    def chosen(names, seed):
        V = np.ones((2, len(names), 40))
        limit_inputs(V, names, [2, 2], seed)
        return {name: tuple(map(tuple, V[:, k] != 0)) for k, name in enumerate(names)}

    assert chosen(list("abcd"), 1) == chosen(list("dbca"), 1)
    assert chosen(list("abcd"), 1) != chosen(list("abcd"), 2)
    one, other = zip(*chosen(list("abcd"), 1).values(), strict=True)
    assert one != other  # each kernel has its own


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES.keys())
def test_frequencies_have_the_spectral_distribution_of_the_kernel(family):
    kernel, rho, D = family(0.8), np.array([0.5, -0.3]), 200_000
    estimate = np.cos(rho @ frequencies([kernel], ["a", "b"], D, seed=1)[0]).mean()
    assert abs(estimate - kernel.value(rho[None], np.zeros((1, 2)))[0, 0]) < 4 / math.sqrt(2 * D)


# Orthogonal features


@pytest.mark.parametrize("D", [4, 12, 18])
def test_orthogonal_frequencies_are_orthogonal_within_each_block(D):
    d = 4
    for V in orthogonal_frequencies([Gaussian(1.0), Matern(2.0, 0.5)], d, D, seed=0):
        unit = V / np.linalg.norm(V, axis=0)
        for start in range(0, D, d):
            block = unit[:, start : start + d]
            np.testing.assert_allclose(block.T @ block, np.eye(block.shape[1]), atol=1e-14)


def estimates(draw, rho, seeds):
    return np.array([np.cos(rho @ draw(seed)[0]).mean() for seed in range(seeds)])


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Matern(1.0, 0.5), Matern(1.0, 2.5)], ids=repr)
def test_orthogonal_features_are_unbiased(kernel):
    rho = np.array([0.6, -0.5, 0.4, 0.3])
    got = estimates(lambda seed: orthogonal_frequencies([kernel], 4, 8, seed), rho, 4000)
    want = kernel.value(rho[None], np.zeros((1, 4)))[0, 0]
    assert abs(got.mean() - want) < 4 * got.std() / math.sqrt(4000)


def test_orthogonal_features_of_a_gaussian_have_less_variance_than_independent_ones():
    rho, kernel = np.array([0.6, -0.5, 0.4, 0.3]), Gaussian(1.0)
    orthogonal = estimates(lambda seed: orthogonal_frequencies([kernel], 4, 8, seed), rho, 2000)
    independent = estimates(lambda seed: frequencies([kernel], column_names(4), 8, seed), rho, 2000)
    assert orthogonal.var() < 0.7 * independent.var()


@pytest.mark.parametrize("kind", [Gaussian, Matern])
def test_orthogonal_frequencies_are_divided_by_the_length_scale(kind):
    one, wide = (orthogonal_frequencies([kind(scale)], 3, 7, seed=1) for scale in (1.0, 2.5))
    np.testing.assert_allclose(one, 2.5 * wide, rtol=1e-12)


@pytest.mark.parametrize("kernel", [Laplacian(1.0), Cauchy(1.0)], ids=repr)
def test_orthogonal_features_of_a_product_kernel_are_refused(kernel):
    with pytest.raises(ValueError, match=r"need a radial kernel .* orthogonal=False"):
        orthogonal_frequencies([Gaussian(1.0), kernel], 2, 4, seed=0)
