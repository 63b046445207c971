"""GraphMKL's change detection: trend of the error, challengers and their trials."""

import numpy as np
import pytest
from streams import graph_settings as small
from streams import raw_and_turning as stream

import omkl
from omkl import algorithms
from omkl.algorithms.graph_mkl import change, inspection
from omkl.algorithms.graph_mkl.change import Trend, Trial
from omkl.algorithms.graph_mkl.constants import ALARM_AFTER, CAP_AFTER, ERROR_CAP, TREND_AFTER


def after(errors, age=1000):
    trend = Trend()
    for error in errors:
        trend = change.update_trend(trend, float(error), age)
    return trend


def test_the_means_of_the_error_are_plain_means_at_first():
    errors = np.random.default_rng(0).uniform(size=30)
    fast, slow, rounds = after(errors)
    assert fast == pytest.approx(errors.mean())
    assert slow == pytest.approx(errors.mean())
    assert rounds == 30


def test_errors_of_an_incumbent_that_has_learned_little_do_not_count():
    assert after([1.0] * 50, age=TREND_AFTER) == Trend()


def test_an_outlier_counts_only_up_to_a_cap():
    errors = [1.0] * (CAP_AFTER + 1)
    assert after([*errors, 1e9]) == pytest.approx(after([*errors, ERROR_CAP]))


def test_no_alarm_without_a_change_and_one_soon_after_a_rise():
    rng = np.random.default_rng(0)
    errors = rng.exponential(size=5000)
    trend = Trend()
    for error in errors:
        trend = change.update_trend(trend, error, 1000)
        assert not change.alarm(trend)
    rounds = 0
    while not change.alarm(trend):
        trend = change.update_trend(trend, 5 * rng.exponential(), 1000)
        rounds += 1
    assert rounds < 60


def test_a_change_after_rows_that_were_predicted_exactly_raises_the_alarm():
    trend = after([0.0] * 500)
    rounds = 0
    while not change.alarm(trend, unit=3.0):
        trend = change.update_trend(trend, 9.0, 1000, unit=3.0)
        rounds += 1
    assert rounds < 20


def test_rounding_errors_raise_no_alarm():
    trend = after([1e-34] * 500)
    for _ in range(100):
        trend = change.update_trend(trend, 1e-30, 1000)
        assert not change.alarm(trend)
    assert not change.alarm(Trend(9.0, 1.0, 500), unit=0.0)  # the target has been constant


def test_no_alarm_before_the_means_are_over_enough_rounds():
    assert not change.alarm(Trend(10.0, 1.0, ALARM_AFTER))
    assert change.alarm(Trend(10.0, 1.0, ALARM_AFTER + 1))


@pytest.mark.parametrize(
    ("trend", "trial", "age", "verdict"),
    [
        (Trend(1.0, 1.0, 500), Trial(), -1, "none"),
        (Trend(9.0, 1.0, 500), Trial(), -1, "start"),
        (Trend(9.0, 1.0, 500), Trial(1.0, 2.0), 499, "none"),
        (Trend(1.0, 1.0, 500), Trial(1.0, 2.0), 500, "replace"),
        (Trend(1.0, 1.0, 500), Trial(2.0, 2.0), 500, "keep"),
    ],
)
def test_a_trial_begins_with_an_alarm_and_ends_with_the_better_set(trend, trial, age, verdict):
    problem = algorithms.problem("graph-mkl", small(), d=2)
    assert problem.trial == 500
    assert change.verdict(problem, trend, trial, age) == verdict


def test_a_trial_begins_where_the_scaling_does_not_fit():
    problem = algorithms.problem("graph-mkl", small(), d=2)
    calm = Trend(1.0, 1.0, 500)
    assert change.verdict(problem, calm, Trial(), -1, misfit=True) == "start"
    assert change.verdict(problem, calm, Trial(), 20, misfit=True) == "none"  # there is a challenger


def test_there_is_no_trial_where_adapt_is_off():
    problem = algorithms.problem("graph-mkl", small(adapt=False), d=2)
    assert change.verdict(problem, Trend(9.0, 1.0, 500), Trial(), -1) == "none"


def test_a_change_is_detected_and_followed():
    X, y = stream(6000, change=3000)
    adapting = omkl.GraphMKLRegressor(random_state=0).predict_then_learn(X, y)
    fixed = omkl.GraphMKLRegressor(random_state=0, adapt=False).predict_then_learn(X, y)
    after = slice(3500, 6000)
    assert np.mean((adapting - y)[after] ** 2) < 0.7 * np.mean((fixed - y)[after] ** 2)
    assert np.mean((adapting - y)[after] ** 2) < 0.2 * np.var(y[after])


def test_there_is_no_second_set_of_experts_without_a_change():
    X, y = stream(4000)
    state = omkl.GraphMKLRegressor(random_state=0).fit(X, y).core_.online.state
    assert state.incumbent == 0
    assert state.sets[0].age == 4000


def test_a_change_of_the_units_of_an_input_is_recovered_from():
    rng = np.random.default_rng(0)
    celsius, other = rng.uniform(-10, 30, 4000), rng.uniform(-1, 1, 4000)
    y = np.sin(celsius / 6) + other * celsius / 20 + 0.05 * rng.normal(size=4000)
    X = np.column_stack((np.where(np.arange(4000) < 2500, celsius, celsius + 273.15), other))
    model = omkl.GraphMKLRegressor(random_state=0)
    squares = (model.predict_then_learn(X, y) - y) ** 2
    assert np.sqrt(squares[2500:2600].mean()) > 0.2
    assert np.sqrt(squares[2800:].mean()) < 0.1  # twice the noise
    assert [change.inputs for change in model.changes_] == [("0",)]


def test_a_set_has_replaced_another_that_has_learned_and_is_gone():
    X, y = stream(200, 3, change=200)
    online = omkl.Online.make("graph-mkl", small(), 3)
    online.run(X, y)
    problem, state = online.problem, online.state
    part = state.sets[0]

    def found(other, rows_before):
        return inspection.replaced(problem, state._replace(sets=(part, other), t=part.age + rows_before))

    gone, new = part._replace(age=-1), state.sets[1]
    assert found(gone, 50).began == 50
    assert found(gone, 0) is None  # it was a challenger that lost its trial
    assert found(part._replace(age=10), 50) is None  # it is a challenger whose trial goes on
    assert found(new, 50) is None  # it has never learned
