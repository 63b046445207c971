"""What both implementations are given, so that comparing them shows no fault: settings, rates, limits of checks."""

import math
from contextlib import nullcontext

import numpy as np
import pytest
from streams import gaussians, small_for

from omkl import GraphSettings, Settings, algorithms
from omkl.algorithms import invariants
from omkl.algorithms.descent import Descent, require_finite_step
from omkl.algorithms.nodes import next_node
from omkl.algorithms.schedule import Schedule
from omkl.algorithms.weights import draw, normalised
from omkl.errors import DivergenceError
from omkl.graph import Graph, similarity_graph
from omkl.kernels import dictionary

# Draws


@pytest.mark.parametrize(("r", "index"), [(0.0, 1), (0.2499, 1), (0.25, 3), (0.7499, 3), (0.75, 4), (0.9999999, 4)])
def test_a_draw_never_takes_what_has_probability_0(r, index):
    assert draw(np.array([0.0, 0.25, 0.0, 0.5, 0.25, 0.0]), r) == index


def test_where_rounding_leaves_a_rest_the_last_is_drawn():
    assert draw(np.full(3, 0.3), 0.95) == 2


def test_weights_are_normalised_whatever_their_size():
    for shift in (0.0, 1e5, -1e5):
        np.testing.assert_allclose(normalised(np.log([1.0, 2.0, 5.0]) + shift), [1 / 8, 2 / 8, 5 / 8], rtol=1e-10)


def test_a_commit_rule_names_the_node_of_largest_u_or_the_first():
    log_u, p = np.array([-3.0, -1.0, -1.0, -2.0]), np.array([0.0, 0.0, 0.0, 1.0])
    for t, argmax, first in [(9, 3, 3), (10, 3, 3), (11, 1, 0)]:
        assert next_node("argmax", 10, log_u, p, t, 0.5) == argmax
        assert next_node("first", 10, log_u, p, t, 0.5) == first
        assert next_node("never", 10, log_u, p, t, 0.5) == 3


# Settings


def test_the_default_experts_of_graph_mkl_are_these():
    """11 Gaussians and two kernels on single inputs with three learners each, those on the inputs, three of memory."""
    chosen = GraphSettings(budget="small")
    assert [round(kernel.length_scale, 3) for kernel in chosen.all_kernels] == [
        0.1, 0.158, 0.251, 0.398, 0.631, 1.0, 1.585, 2.512, 3.981, 6.31, 10.0, 0.15, 0.8,
    ]  # fmt: skip
    assert chosen.kernel_orders == [2, 2, None, 2, 2, None, 2, 2, None, 2, 2, 1, 1]
    assert (chosen.experts, chosen.active) == (13 * 3 + 1 + 3, 10)
    labels = GraphSettings(budget="small", task="classification", outputs=4)
    assert (labels.experts, labels.active) == (13 * 3 + 2 + 3, 11)
    problem = algorithms.problem("graph-mkl", labels, 2)
    assert (problem.experts, problem.on_kernels, problem.first_memory, problem.maps) == (44, 39, 41, 14)


@pytest.mark.parametrize(("evaluate", "active"), [("quarter", 2), ("all", 7), (5, 5), (7, 7), (99, 7)])
def test_as_many_experts_are_evaluated_as_were_asked_for_and_there_are(evaluate, active):
    few = GraphSettings(kernels=gaussians(1), evaluate=evaluate)
    assert (few.experts, few.active) == (3 + 1 + 3, active)


def test_a_list_of_kernels_has_none_on_single_inputs_unless_asked_for():
    assert len(GraphSettings(kernels=gaussians(4)).all_kernels) == 4
    assert GraphSettings(kernels=gaussians(4), singles=(0.3,)).kernel_orders == [2, 2, None, 2, 1]


def test_the_ridge_of_a_wide_kernel_is_divided_by_its_squared_length_scale():
    """(G8), and the ridge of the experts on the inputs themselves."""
    kernels = gaussians(3)  # length scales 0.2, 1 and 5
    np.testing.assert_allclose(GraphSettings(ridge=0.5).ridges(kernels, 4), [0.5, 0.5, 0.02, 0.5])
    labels = GraphSettings(ridge=0.5, task="classification", outputs=2)
    np.testing.assert_allclose(labels.ridges(kernels, 4), [0.5, 0.5, 0.02, 0.25, 1.0])
    np.testing.assert_allclose(labels.ridges(kernels, 40), [0.5, 0.5, 0.02, 0.025, 0.25])


def test_a_challenger_has_500_rounds_or_there_is_none():
    assert (GraphSettings().trial, GraphSettings(adapt=False).trial) == (500, 0)


def test_labels_are_learned_with_the_logistic_loss_and_numbers_with_the_squared():
    assert Settings.for_task("classification").loss == "logistic"
    assert Settings.for_task("regression", ridge=0.5) == Settings(ridge=0.5)


def test_a_shape_says_what_rows_look_like():
    numbers, labels = GraphSettings(), GraphSettings(task="classification", outputs=3)
    shapes = [algorithms.get("graph-mkl").shape(algorithms.problem("graph-mkl", s, 2)) for s in (numbers, labels)]
    assert [(s.inputs, s.outputs, s.target, s.missing) for s in shapes] == [
        (2, 2, "number", True), (2, 3, "label", True),
    ]  # fmt: skip
    for loss, target in [("squared", "number"), ("logistic", "sign"), ("hinge", "sign")]:
        for name in ("raker", "omkl-gf", "sfg-mkl", "sfg-mkl-r"):
            shape = algorithms.get(name).shape(algorithms.problem(name, Settings(loss=loss), 2))
            assert (shape.inputs, shape.outputs, shape.target, shape.missing) == (2, 1, target, False)


# Checks of files, at the limits of what they accept


@pytest.mark.parametrize("value", [0, 1, 2**62 - 1])
def test_counts_are_accepted(value):
    assert invariants.is_count(value)


@pytest.mark.parametrize("value", [-1, 2**62, 1.0, True, None, "1"])
def test_what_is_no_count_is_not(value):
    assert not invariants.is_count(value)


@pytest.mark.parametrize(("value", "real", "share"), [
    (0, True, True), (0.0, True, True), (0.999, True, True), (1, True, False), (1.0, True, False), (-1e-9, True, False),
    (math.nan, False, False), (math.inf, False, False), (True, False, False), ("0", False, False), (None, False, False),
])  # fmt: skip
def test_numbers_and_shares_are_told_from_others(value, real, share):
    assert (invariants.is_real(value), invariants.is_share(value)) == (real, share)


def refused(check, *values):
    try:
        check(*values)
    except ValueError:
        return True
    return False


@pytest.mark.parametrize(("eta", "xi", "fine"), [
    (1e-300, 0.0, True), (1.0, 1.0, True), (1e300, 0.5, True), (0.0, 0.5, False), (-1.0, 0.5, False),
    (1.0, -1e-9, False), (1.0, 1 + 1e-9, False), (1.0, math.nan, False), (math.inf, 0.5, False),
])  # fmt: skip
def test_rates_are_accepted_in_their_ranges(eta, xi, fine):
    assert refused(invariants.check_schedule, Schedule(eta, xi)) != fine


@pytest.mark.parametrize(("lam", "radius", "fine"), [
    (0.0, 1e-300, True), (2.0, 1.0, True), (-1e-9, 1.0, False), (1.0, 0.0, False), (1.0, -1.0, False),
    (math.inf, 1.0, False), (1.0, math.nan, False),
])  # fmt: skip
def test_ridge_and_radius_are_accepted_in_their_ranges(lam, radius, fine):
    assert refused(invariants.check_descent, Descent("hinge", lam, "project", radius)) != fine


def test_a_graph_is_accepted_as_it_is_built_and_refused_with_one_property_less():
    graph = similarity_graph(gaussians(6), 2, 3)
    invariants.check_graph(graph, 6)
    order, A, cover = graph
    alone = np.eye(6, dtype=bool)
    invariants.check_graph(Graph(order, alone, np.full(6, 1 / 6)), 6)
    for bad in [
        Graph(order, alone, np.array([0.5, 0.5, 0, 0, 0, 0])),  # does not dominate
        Graph(order, A, cover * (1 + 1e-6)),
        Graph(order[:, ::-1], A, cover),
        Graph(order, A & ~alone, cover),
        Graph(np.zeros_like(order), A, cover),
        Graph(order[:5, :5], A, cover),
        Graph(order, A[:5], cover),
        Graph(order, A, cover[:5]),
    ]:
        assert refused(invariants.check_graph, bad, 6)
    assert refused(invariants.check_graph, graph, 5)


def test_frequencies_have_at_least_one_kernel_input_and_draw():
    invariants.check_frequencies(np.zeros((1, 1, 1)))
    for shape in [(0, 1, 1), (1, 0, 1), (1, 1, 0), (1, 1), (1, 1, 1, 1)]:
        assert refused(invariants.check_frequencies, np.zeros(shape))


@pytest.mark.parametrize(("commit", "after", "fine"), [
    ("never", 0, True), ("first", 300, True), ("last", 3, False), ("argmax", -1, False), ("argmax", 1.5, False),
])  # fmt: skip
def test_commit_rules_are_those_that_there_are(commit, after, fine):
    assert refused(invariants.check_commit, commit, after) != fine


def test_a_problem_of_graph_mkl_is_accepted_at_its_limits():
    algorithm = algorithms.get("graph-mkl")
    problem = algorithms.problem("graph-mkl", GraphSettings(kernels=gaussians(2), n_features=3), 2)
    assert problem.experts == problem.first_large + 3
    for changes, fine in [
        ({"trees": 1000}, True), ({"trees": 1001}, False), ({"archive": 255}, False), ({"archive": 2**17}, False),
        ({"active": 2}, True), ({"active": problem.first_large}, True), ({"active": problem.first_large + 1}, False),
        ({"active": 1}, False), ({"warm_up": 1}, True), ({"warm_up": 0}, False), ({"trial": 0}, True),
        ({"K": 2}, False),
        ({"steps": (1.0, 0.25)}, True), ({"steps": (1.0, 1 + 1e-9)}, False), ({"steps": (0.0, 0.25)}, False),
        ({"discount": 0.0}, True), ({"memory": 0.0}, True), ({"min_leverage": 0.0}, True), ({"K": 0}, False),
        ({"ridges": problem.ridges[1:]}, False), ({"widths": (1e-149, 1.0, 1e149)}, True),
        ({"widths": (1e-151, 1.0, 1.0)}, False), ({"widths": (1.0, 1.0, 1e151)}, False),
        ({"ridges": (1e-299, 1.0, 1e299)}, True), ({"ridges": (1e-301, 1.0, 1.0)}, False),
    ]:  # fmt: skip
        assert refused(algorithm.check_problem, problem._replace(**changes)) != fine, changes


def test_named_dictionaries_have_these_kernels():
    names = {name: [(type(k).__name__, round(k.length_scale, 3)) for k in dictionary(name)] for name in
             ("gaussian", "mixed", "families")}  # fmt: skip
    grid = [0.1, 0.158, 0.251, 0.398, 0.631, 1.0, 1.585, 2.512, 3.981, 6.31, 10.0]
    assert names["gaussian"] == [("Gaussian", scale) for scale in grid]
    assert names["mixed"] == [(family, scale) for family in ("Gaussian", "Laplacian") for scale in grid]
    coarse = [0.1, 0.215, 0.464, 1.0, 2.154, 4.642, 10.0]
    families = ("Gaussian", "Laplacian", "Cauchy", "Matern", "Matern", "Matern")
    assert names["families"] == [(family, scale) for family in families for scale in coarse]
    assert [k.nu for k in dictionary("families")[21:]] == [0.5] * 7 + [1.5] * 7 + [2.5] * 7


# What is read from a state


def graph_mkl_state(evidence, age, **selection):
    """A state of two kernels with three learners each, the linear expert and three of memory: E = 10."""
    problem = algorithms.problem(
        "graph-mkl", GraphSettings(budget="small", kernels=gaussians(2), n_features=3, warm_up=60, evaluate=4), 2
    )
    state = algorithms.get("graph-mkl").init(problem, np.zeros(2))
    part = state.sets[0]
    part = part._replace(evidence=np.log(evidence), age=age, selection=part.selection._replace(**selection))
    return problem, state._replace(sets=(part, state.sets[1]), t=700)


def test_the_weight_of_a_kernel_is_that_of_its_experts_in_the_mixture():
    evidence = np.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 10.0])
    algorithm = algorithms.get("graph-mkl")
    problem, state = graph_mkl_state(evidence, age=59)
    np.testing.assert_allclose(algorithm.kernel_weights(problem, state), [6 / 55, 15 / 55])
    rank = np.array([9, 4, 2, 0, 1, 3, 5, 6, 7, 8])
    problem, state = graph_mkl_state(evidence, age=60, rank=rank, explorer=1)  # leaders 9, 4, 2; no explorer
    np.testing.assert_allclose(algorithm.kernel_weights(problem, state), [3 / 18, 5 / 18])


def test_the_incumbent_has_started_as_many_rounds_ago_as_it_is_old():
    problem, state = graph_mkl_state(np.ones(10), age=200)
    assert algorithms.get("graph-mkl").started(problem, state) == 500


@pytest.mark.parametrize("learner", ["omkr", "nogd", "krls-t"])
def test_stored_rows_have_zeros_for_features_that_come_later(learner):
    algorithm, settings = algorithms.get(learner), small_for(learner)
    few, more = (algorithms.problem(learner, settings, d) for d in (2, 4))
    state = algorithm.init(few, np.empty(0))
    for x, y in [([0.3, -0.2], 1.0), ([1.0, 0.5], -2.0)]:
        state, _ = algorithm.step(few, state, np.array(x), y, np.empty(0), 1.0)
    grown = algorithm.grow(more, state)
    np.testing.assert_array_equal(grown.S, np.vstack((state.S, np.zeros((2, state.S.shape[1])))))
    x = np.array([0.1, 0.4])
    assert algorithm.predict(more, grown, np.append(x, [0, 0])) == algorithm.predict(few, state, x)


# theta of the next round: shrink = 1 - 2 ridge k, plus k times the derivative of the loss along z, which has length 1
STEPS = {
    "all is moderate": (1.0, 0.0, 1.0, True),
    "theta is large": (1e153, 0.0, 1.0, True),
    "theta overflows as it grows": (1e60, 1e100, 1.0, False),
    "theta is as long as can be and shrinks": (1.3e154, 0.4, 1.0, True),
    "the step overflows": (1.0, 0.0, 1e160, False),
    "theta and the step overflow together": (1.1e154, 0.0, 0.55e154, False),
    "the step is large": (1.0, 0.0, 1e153, True),
}


@pytest.mark.parametrize(("size", "ridge", "error", "finite"), STEPS.values(), ids=STEPS.keys())
@pytest.mark.parametrize("stabiliser", ["none", "aware"])
def test_a_step_after_which_theta_is_too_long_for_a_double_is_a_divergence(size, ridge, error, finite, stabiliser):
    descent = Descent("squared", ridge, stabiliser, 1.0)
    theta = np.array([[size, 0.0], [0.0, 0.0]])
    expected = nullcontext() if finite or stabiliser == "aware" else pytest.raises(DivergenceError)
    with np.errstate(over="ignore"), expected:
        require_finite_step(descent, theta, f=error, y=0.0, k=1.0)


@pytest.mark.parametrize("learner", ["sfg-mkl", "sfg-mkl-r"])
def test_a_heavy_row_is_learned_where_the_step_is_short(learner):
    """The step has the length of the learning rate times the weight, not that of either."""
    algorithm = algorithms.get(learner)
    settings = Settings(kernels=gaussians(3), n_features=2, out_degree=1, stabiliser="none", learning_rate=1e-30)
    problem = algorithms.problem(learner, settings, d=1)
    uniforms = np.full(algorithm.uniforms(problem), 0.5)
    state = algorithm.init(problem, uniforms)
    state, _ = algorithm.step(problem, state, np.ones(1), 1e99, uniforms, 1e60)
    assert 1e125 < np.abs(state.theta).max() < np.inf
