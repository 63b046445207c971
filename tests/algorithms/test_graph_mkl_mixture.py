"""GraphMKL's mixture: weights by evidence, and residual stacking."""

import numpy as np
import pytest
from scipy import stats
from streams import graph_settings as small
from streams import raw_and_turning as stream

import omkl
from omkl import algorithms
from omkl.algorithms import graph_mkl
from omkl.algorithms.graph_mkl import mixture
from omkl.algorithms.graph_mkl.constants import STACK_CLIP, STACK_RIDGE, STUDENT_DEGREES
from omkl.algorithms.graph_mkl.experts import Evaluation


def evaluation(mean, variance):
    return Evaluation(np.zeros(0), np.zeros(0), 0.0, np.atleast_1d(mean).astype(float), variance)


def test_weights_sum_to_one_over_both_sets_and_follow_the_evidence():
    evidence = [np.array([0.0, 1.0, -2.0]), np.array([0.5, -1.0, 3.0])]
    masks = [np.array([True, True, False]), np.array([False, True, False])]
    one, other = mixture.mixture_weights(evidence, masks)
    wanted = np.exp([0.0, 1.0, -1.0])
    np.testing.assert_allclose([*one[:2], other[1]], wanted / wanted.sum())
    assert one[2] == other[0] == other[2] == 0


def test_the_mixture_of_numbers_has_the_mean_and_variance_of_a_mixture_of_distributions():
    problem = algorithms.problem("graph-mkl", small(), d=2)
    mean, variance, weight = np.array([1.0, 2.0, 5.0]), np.array([0.1, 0.2, 0.3]), np.array([0.5, 0.3, 0.2])
    weights = [np.zeros(problem.experts), np.zeros(problem.experts)]
    weights[0][:3] = weight
    masks = [w > 0 for w in weights]
    leverage = np.array([0.0, 0.5, 2.0])
    part = {e: evaluation(mean[e], variance[e])._replace(leverage=leverage[e]) for e in range(3)}
    m, deviation, noise = mixture.mix(problem, [part, {}], masks, weights)
    assert m == pytest.approx(weight @ mean)
    assert deviation**2 == pytest.approx(weight @ (variance + mean**2) - (weight @ mean) ** 2)
    assert noise**2 == pytest.approx(weight @ (variance / (1 + leverage)))


def test_the_likelihood_of_a_number_is_that_of_a_student_t_up_to_a_constant():
    problem = algorithms.problem("graph-mkl", small(), d=2)
    y, scale = np.linspace(-3, 8, 12), 0.7
    ours = [mixture.log_likelihood(problem, evaluation(2.0, scale**2), float(value)) for value in y]
    student = stats.t(STUDENT_DEGREES, loc=2.0, scale=scale).logpdf(y)
    np.testing.assert_allclose(ours - student, (ours - student)[0], rtol=1e-12)


def test_the_probabilities_of_labels_are_those_of_gaussians_around_unit_vectors():
    mean, v = np.array([0.7, 0.2, 0.4]), 0.3
    density = np.exp(-np.square(np.eye(3) - mean).sum(axis=1) / (2 * v))
    np.testing.assert_allclose(graph_mkl.experts.label_probabilities(mean, v), density / density.sum())


def test_an_expert_that_predicts_better_than_the_mixture_gains_evidence():
    problem = algorithms.problem("graph-mkl", small(discount=0.0), d=2)
    weights = [np.zeros(problem.experts), np.zeros(problem.experts)]
    weights[0][:2] = 0.5
    part = {0: evaluation(1.0, 1.0), 1: evaluation(3.0, 1.0), 2: evaluation(2.0, 1.0)}
    after = mixture.gains(problem, [part, {}], weights, 1.0)[0]
    assert after[0] > 0 > after[1]
    assert after[2] != 0  # explorers gather evidence too
    assert not after[3:].any()
    scores = [mixture.log_likelihood(problem, part[e], 1.0) for e in range(2)]
    assert after[0] == pytest.approx(scores[0] - np.log(np.mean(np.exp(scores))))


def test_the_stacking_is_the_ridge_regression_on_the_differences_of_the_experts_from_the_mixture():
    X, y = stream(50)
    problem = algorithms.problem("graph-mkl", small(min_leverage=0.0, adapt=False), d=3)
    state = graph_mkl.init(problem, np.zeros(2))
    Z, gaps = [], []
    for x, target in zip(X, y, strict=True):
        now = graph_mkl.evaluate(problem, state, x)
        z, (mean, deviation, _) = now.differences[0], now.mixed
        more = np.clip(z @ state.sets[0].stack.theta, -STACK_CLIP, STACK_CLIP)
        state, info = graph_mkl.step(problem, state, x, float(target), np.zeros(2))
        np.testing.assert_allclose(info.prediction[0], mean + more * deviation, rtol=1e-12)
        Z.append(z)
        gaps.append(np.clip((target - mean) / deviation, -STACK_CLIP, STACK_CLIP))
    Z, gaps = np.array(Z), np.array(gaps)
    wanted = np.linalg.solve(Z.T @ Z + STACK_RIDGE * np.eye(Z.shape[1]), Z.T @ gaps)
    np.testing.assert_allclose(state.sets[0].stack.theta, wanted, rtol=1e-8, atol=1e-12)
    assert np.abs(wanted).max() > 1e-3


def test_without_stacking_the_prediction_is_the_mixture():
    X, y = stream(300)
    online = omkl.Online.make("graph-mkl", small(stack=False), d=3, seed=0)
    online.run(X, y)
    mixed = graph_mkl.evaluate(online.problem, online.state, X[0]).mixed
    np.testing.assert_allclose(online.predict(X[0])[0], mixed[0], rtol=1e-10)
    assert not online.state.sets[0].stack.theta.any()


def test_the_weights_of_the_kernels_are_sums_over_their_experts():
    X, y = stream(300)
    online = omkl.Online.make("graph-mkl", small(adapt=False), d=3, seed=0)
    online.run(X, y)
    problem, state = online.problem, online.state
    weights = graph_mkl.evaluate(problem, state, X[0]).weights[state.incumbent]
    wanted = weights[: problem.on_kernels].reshape(3, problem.learners).sum(axis=1)
    np.testing.assert_allclose(online.kernel_weights, wanted, rtol=1e-12)
    assert 0 < online.kernel_weights.sum() <= 1 + 1e-12
