"""Settings: what is refused, the paper's values, and the problems that follow from them."""

import dataclasses
import math

import numpy as np
import pytest
from streams import LEARNERS, PAPER, gaussians, graph_settings, small, small_for

from omkl import algorithms
from omkl.algorithms.descent import Descent
from omkl.algorithms.graph_mkl.settings import GraphSettings
from omkl.algorithms.schedule import Schedule
from omkl.algorithms.settings import Settings
from omkl.arrays import leaves
from omkl.features import GENERATOR
from omkl.kernels import Cauchy, Gaussian, dictionary

COUNTS = ["n_features", "out_degree", "draws", "freeze_after", "horizon", "budget"]
BAD = [
    *((name, value, "a whole number of at least 1") for name in COUNTS for value in (0, -3, 2.5, "five", True)),
    *(("commit_after", value, "a whole number of at least 0") for value in (-1, 2.5, None)),
    *(("delta_dimension", value, r"None \(that of the data\) or 1") for value in (0, 2, "1")),
    *(("ridge", value, "a finite number of at least 0") for value in (-1e-9, math.nan, math.inf, None, "1")),
    *(("radius", value, "a positive finite number") for value in (0, -1.0, math.nan, math.inf, None)),
    *(("learning_rate", value, "None or a positive number") for value in (0, -0.1, math.nan, math.inf, "fast")),
    *(("exploration", value, "None or a number from 0 to 1") for value in (-0.1, 1.1, math.nan, "wide")),
    *(("beta", value, r"None \(the tenth-largest rule\) or a positive number") for value in (0, -0.1, math.nan)),
    ("commit", "last", "one of never, argmax, first"),
    ("loss", "absolute", "one of squared, logistic, hinge"),
    ("stabiliser", None, "one of none, aware, floor, project"),
]


@pytest.mark.parametrize(("name", "value", "wanted"), BAD)
def test_the_message_about_a_bad_setting_has_what_was_wanted_and_what_came(name, value, wanted):
    with pytest.raises(ValueError, match=f"{name} must be {wanted}.*, got {value!r}"):
        Settings(**{name: value})


BAD_FOR_GRAPH_MKL = [
    *(
        (name, value, "a whole number of at least 1")
        for name in ("n_features", "out_degree", "warm_up", "outputs")
        for value in (0, -3, 2.5, "five", True)
    ),
    *(("delta_dimension", value, r"None \(that of the data\) or 1") for value in (0, 2, "1")),
    *(("ridge", value, "a positive finite number") for value in (0, -1.0, math.nan, math.inf, None)),
    *(
        (name, value, r"a number from 0 to below 1, or None \(the default of the task\)")
        for name in ("discount", "memory", "min_leverage")
        for value in (-0.1, 1.0, math.nan, "all", True)
    ),
    *(("evaluate", value, "quarter, all, a whole number of at least 2, or None") for value in (1, 0, 2.5, "half")),
    ("task", "ranking", "regression or classification"),
]


@pytest.mark.parametrize(("name", "value", "wanted"), BAD_FOR_GRAPH_MKL)
def test_the_message_about_a_bad_setting_of_graph_mkl_has_what_was_wanted_and_what_came(name, value, wanted):
    with pytest.raises(ValueError, match=f"{name} must be {wanted}.*, got {value!r}"):
        GraphSettings(**{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("orders", value) for value in ((), (0,), (2.5,), ("two",))),
        *((name, value) for name in ("singles", "widths") for value in ((0.0,), (-1.0,), (math.nan,), ("wide",))),
        *(("steps", value) for value in ((0.0,), (1.5,), (math.nan,), ("long",))),
    ],
)
def test_a_bad_list_in_the_settings_of_graph_mkl_is_named(name, value):
    with pytest.raises(ValueError, match=f"^{name} must be "):
        GraphSettings(**{name: value})


@pytest.mark.parametrize("kernels", ["papyrus", [], [Gaussian]])
def test_what_is_no_dictionary_of_kernels_is_refused_at_once(kernels):
    with pytest.raises(ValueError, match="kernels"):
        Settings(kernels=kernels)


@pytest.mark.parametrize(
    ("learner", "changes", "d", "message"),
    [
        ("mkl", {}, 2, "algorithm must be one of graph-mkl, .*, got 'mkl'"),
        ("raker", {}, 0, "d must be a whole number of at least 1, got 0"),
        ("raker", {}, None, "d must be a whole number of at least 1, got None"),
        ("raker", {}, 2.0, "d must be a whole number of at least 1, got 2.0"),
        ("omkr", {"loss": "hinge"}, 2, "loss must be squared for omkr, got 'hinge'"),
        ("rfomkr", {"loss": "logistic"}, 2, "loss must be squared for rfomkr, got 'logistic'"),
        ("sfg-mkl", {"out_degree": 6}, 2, "out_degree must be between 1 and 5, got 6; add kernels or lower it"),
        ("sfg-mkl-r", {"out_degree": 6}, 2, "out_degree must be between 1 and 5, got 6; add kernels or lower it"),
        ("sfg-mkl-r", {"beta": 0.3}, 2, "beta must be at most 1/N = 0.2 for 5 kernels, .*, got 0.3"),
        ("raker", {"orthogonal": True, "kernels": [Cauchy(1.0)]}, 2, "orthogonal features need a radial kernel"),
        ("raker", {"orthogonal": True, "draw": "shared"}, 2, "draw must be independent where orthogonal=True"),
        ("raker", {"draw": "common"}, 2, "draw must be one of independent, shared, got 'common'"),
    ],
)
def test_settings_that_do_not_fit_the_algorithm_are_refused(learner, changes, d, message):
    with pytest.raises(ValueError, match=message):
        algorithms.problem(learner, small(**changes), d)


@pytest.mark.parametrize("learner", LEARNERS)
def test_settings_of_another_algorithm_are_refused(learner):
    wrong = GraphSettings() if learner in PAPER else Settings()
    wanted = algorithms.get(learner).settings.__name__
    message = f"settings must be {wanted} for {learner}, got '{type(wrong).__name__}'"
    with pytest.raises(ValueError, match=message):
        algorithms.problem(learner, wrong, 2)
    with pytest.raises(ValueError, match="settings must be"):
        algorithms.problem(learner, None, 2)


@pytest.mark.parametrize("number", [np.float64(0.5), np.float32(0.5), np.int64(1), 1])
def test_numbers_of_numpy_are_numbers(number):
    chosen = Settings(learning_rate=number, ridge=number, exploration=number, radius=number, n_features=np.int32(7))
    assert chosen.schedule == Schedule(float(number), float(number), anytime=True)
    assert chosen.descent.lam == float(number)
    assert algorithms.problem("raker", chosen, np.int64(2)).V.shape == (41, 2, 7)


# Schedules


def test_with_a_horizon_both_rates_are_one_over_its_root():
    schedule = Settings(horizon=400).schedule
    assert schedule == Schedule(0.05, 0.05, anytime=False)
    assert [schedule.eta_at(t) for t in (1, 100, 1000)] == [0.05] * 3
    assert [schedule.xi_at(t) for t in (1, 100, 1000)] == [0.05] * 3


def test_without_a_horizon_both_rates_fall_with_the_root_of_t():
    schedule = Settings().schedule
    assert [schedule.eta_at(t) for t in (1, 4, 100)] == [1, 0.5, 0.1]
    assert [schedule.xi_at(t) for t in (1, 4, 100)] == [1, 0.5, 0.1]


def test_a_rate_that_was_chosen_is_kept_and_falls_only_without_a_horizon():
    fixed = Settings(horizon=400, learning_rate=3.0, exploration=0.25).schedule
    falling = Settings(learning_rate=3.0, exploration=0.25).schedule
    assert (fixed.eta_at(9), fixed.xi_at(9)) == (3.0, 0.25)
    assert (falling.eta_at(9), falling.xi_at(9)) == (1.0, 0.25 / 3)


def test_the_exploration_rate_is_at_most_1():
    assert Schedule(5.0, 5.0, anytime=True).xi_at(4) == 1
    assert Schedule(5.0, 5.0, anytime=True).eta_at(4) == 2.5


def test_a_schedule_for_a_horizon_is_the_papers():
    assert Schedule.for_horizon(400) == Settings.paper(400).schedule


# The paper's protocol


def test_the_papers_settings_are_those_it_prints():
    chosen = Settings.paper(1503)
    assert chosen.kernels == tuple(dictionary("paper"))
    assert (chosen.n_features, chosen.out_degree, chosen.draws) == (50, 5, 10)
    assert chosen.descent == Descent("squared", 1e-3, "none", chosen.radius)
    assert chosen.schedule == Schedule(1 / math.sqrt(1503), 1 / math.sqrt(1503))
    assert (chosen.commit_after, chosen.beta) == (300, None)


def test_a_change_to_the_papers_settings_changes_just_that():
    changed = Settings.paper(100, commit="first", stabiliser="aware")
    assert dataclasses.replace(changed, commit="never", stabiliser="none") == Settings.paper(100)


def test_settings_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Settings().ridge = 1.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        GraphSettings().ridge = 1.0


def test_a_generator_of_kernels_is_read_once_and_kept():
    chosen = small(kernels=(kernel for kernel in gaussians(5)))
    assert [len(algorithms.problem("raker", chosen, 2).V) for _ in range(2)] == [5, 5]


# Problems


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_problem_is_the_algorithms_own(learner):
    problem = algorithms.problem(learner, small_for(learner), 3)
    assert isinstance(problem, algorithms.get(learner).Problem)
    assert algorithms.get(learner).shape(problem).inputs == 3


@pytest.mark.parametrize("learner", sorted({*LEARNERS} - {"omkr", "nogd", "krls-t"}))  # which have no random features
def test_the_seed_decides_the_frequencies_and_nothing_else(learner):
    chosen = small_for(learner)
    one, again, other = (algorithms.problem(learner, chosen, 3, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.V, again.V)
    assert (one.V != other.V)[(one.V != 0) | (other.V != 0)].all()
    for name in {*one._fields} - {"V"}:
        np.testing.assert_equal(getattr(one, name), getattr(other, name))


def test_delta_is_taken_in_the_dimension_of_the_data_or_in_one():
    of_data, of_line = (algorithms.problem("sfg-mkl", Settings(delta_dimension=k), 30).graph for k in (None, 1))
    assert (of_data.A != of_line.A).any()
    np.testing.assert_array_equal(of_line.A, algorithms.problem("sfg-mkl", Settings(), 1).graph.A)


@pytest.mark.parametrize("chosen", [small(), graph_settings(orders=(None,))], ids=["raker", "graph-mkl"])
def test_frequencies_of_a_feature_belong_to_its_name(chosen):
    learner = "raker" if isinstance(chosen, Settings) else "graph-mkl"
    by_name = algorithms.problem(learner, chosen, names=["1", "0"], seed=4).V
    np.testing.assert_array_equal(by_name, algorithms.problem(learner, chosen, 2, seed=4).V[:, ::-1])


# The list of algorithms


def test_every_algorithm_has_the_name_it_is_listed_under():
    assert [algorithms.get(name).name for name in algorithms.names()] == list(algorithms.names())


@pytest.mark.parametrize("name", ["ridge", "SFG-MKL", "sfg_mkl", "base", "", None])
def test_an_unknown_algorithm_is_named_with_those_there_are(name):
    with pytest.raises(ValueError, match=f"algorithm must be one of graph-mkl, .*, doebe, got {name!r}"):
        algorithms.get(name)


@pytest.mark.parametrize("learner", LEARNERS)
def test_the_preset_of_an_algorithm_chooses_it(learner):
    algorithm = algorithms.get(learner)
    assert algorithm.parameters(**algorithm.preset).algorithm_name == learner


def numbers_of(name, settings, d):
    """How many numbers a problem and its first state have."""
    algorithm, problem = algorithms.get(name), algorithms.problem(name, settings, d=d)
    state = algorithm.init(problem, np.zeros(algorithm.uniforms(problem)))
    return sum(part.size for each in (problem, state) for part in leaves(each).values() if isinstance(part, np.ndarray))


@pytest.mark.parametrize(
    ("D", "d", "outputs"), [(50, 1, 1), (5, 60, 1), (50, 1, 8), (5, 1, 200), (1, 1, 1), (200, 2, 1)]
)
def test_the_size_of_graph_mkl_is_about_once_to_twice_the_numbers_that_it_has(D, d, outputs):
    task = "regression" if outputs == 1 else "classification"
    settings = GraphSettings(kernels=gaussians(3), n_features=D, outputs=outputs, task=task)
    numbers = numbers_of("graph-mkl", settings, d)
    assert 0.85 * numbers < settings.size(d, outputs) - 2 * GENERATOR * d < 2 * numbers
    assert settings.size(d) == settings.size(d, 1)


@pytest.mark.parametrize(("D", "d"), [(50, 1), (5, 60), (200, 2)])
def test_the_size_of_the_papers_algorithms_is_twice_the_numbers_that_they_have(D, d):
    settings = Settings(kernels=gaussians(3), n_features=D, out_degree=1)
    size = settings.size(d) - GENERATOR * d
    assert 1.9 * numbers_of("raker", settings, d) <= size <= 2 * numbers_of("raker", settings, d)
    each_output = settings.size(d, 5) - settings.size(d, 4)
    theta = algorithms.get("raker").init(algorithms.problem("raker", settings, d=d), np.zeros(0)).theta
    assert each_output == 2 * theta.size


@pytest.mark.parametrize("learner", sorted(set(LEARNERS) - {*PAPER, "graph-mkl"}))
@pytest.mark.parametrize(("D", "d"), [(50, 1), (5, 60), (200, 2)])
def test_the_size_of_the_related_algorithms_is_about_once_to_twice_the_numbers_that_they_have(learner, D, d):
    """Files may describe models by their size, so that it must count what each further output takes."""
    settings, algorithm = small_for(learner, n_features=D), algorithms.get(learner)
    problem = algorithms.problem(learner, settings, d=d)
    generators = GENERATOR * d if "V" in problem._fields else 0
    assert 0.9 <= (settings.size(d) - generators) / numbers_of(learner, settings, d) <= 2
    state = algorithm.init(problem, np.zeros(algorithm.uniforms(problem)))
    numbers = sum(part.size for part in leaves(state).values() if isinstance(part, np.ndarray))
    assert 0.9 <= (settings.size(d, 5) - settings.size(d, 4)) / numbers <= 2


def test_orthogonal_features_take_a_decomposition_of_blocks_as_large_as_the_inputs():
    """Twice as many inputs: eight times the numbers of a block's decomposition, where that is what takes the time."""
    settings = Settings(kernels=gaussians(3), n_features=5, orthogonal=True)
    small, large = (settings.size(d) - GENERATOR * d for d in (2**12, 2**13))
    assert 7.5 * small < large < 8 * small
    assert settings.size(3) - dataclasses.replace(settings, orthogonal=False).size(3) == 0
