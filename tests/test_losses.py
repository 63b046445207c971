import itertools
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from omkl.losses import LOSSES, aware_step, derivative, logistic_rise, resting_margin, value

LOSS = pytest.mark.parametrize("loss", LOSSES)
F = st.floats(-50, 50)
K = st.floats(0, 1e6) | st.floats(0, 2)
SIGN = st.sampled_from([-1.0, 1.0])


def target(loss, y):
    """y for the squared loss, its sign for the others."""
    return y if loss == "squared" else math.copysign(1.0, y)


# Value and derivative


@pytest.mark.parametrize(
    ("loss", "f", "y", "want"),
    [
        ("squared", 0.5, -1.0, 2.25),
        ("logistic", 2.0, 1.0, math.log(1 + math.exp(-2))),
        ("logistic", 2.0, -1.0, math.log(1 + math.exp(2))),
        ("logistic", -1000.0, 1.0, 1000.0),
        ("logistic", 1000.0, 1.0, 0.0),
        ("hinge", 0.25, 1.0, 0.75),
        ("hinge", 0.25, -1.0, 1.25),
        ("hinge", 3.0, 1.0, 0.0),
    ],
)
def test_value_is_the_textbook_formula(loss, f, y, want):
    assert value(loss, f, y) == pytest.approx(want, rel=1e-15)


@LOSS
@given(f=F, y=F)
def test_derivative_equals_the_difference_quotient(loss, f, y):
    y, h = target(loss, y), 1e-5
    assume(loss != "hinge" or abs(1 - y * f) > h)
    difference = (value(loss, f + h, y) - value(loss, f - h, y)) / (2 * h)
    assert derivative(loss, f, y) == pytest.approx(difference, rel=1e-6, abs=1e-8)


@LOSS
@given(f=st.floats(-1e99, 1e99), y=SIGN)
def test_a_loss_is_not_negative_and_decreases_towards_the_label(loss, f, y):
    assert value(loss, f, y) >= 0
    assert loss == "squared" or y * derivative(loss, f, y) <= 0


# The aware step

LAM = st.just(0.0) | st.floats(1e-8, 1e3) | st.floats(1e-4, 1e-2)
LAMBDAS = [0.0, 5e-324, 1e-300, 1e-130, 1e-18, 1e-3, 0.4, 0.6, 7.0, 1e12, 1e300, 1.7e308]


def after(loss, lam, f, y, k):
    """The prediction after an aware step."""
    factor, a = aware_step(loss, lam, f, y, k)
    return factor * f + a


def objective(loss, lam, f, y):
    return value(loss, f, y) + lam * f * f


def ode_solution(loss, lam, y, k, theta, z):
    """theta after the time k on d theta / dt = -C'(theta' z, y) z - 2 lambda theta, by an ODE solver.

    The hinge loss has no derivative where y f = 1: the flow is solved up to that point, and stays there if its
    velocities on both sides point there.
    """

    def right(t, theta):
        return -derivative(loss, theta @ z, y) * z - 2 * lam * theta

    def solved(theta, k, side, **options):
        def one_sided(t, theta):
            return side * y * z - 2 * lam * theta

        return solve_ivp(one_sided if loss == "hinge" else right, (0, k), theta, "LSODA", rtol=1e-12, atol=1e-13,
                         **options)  # fmt: skip

    def corner(t, theta):
        return y * (theta @ z) - 1

    if loss != "hinge":
        return solved(theta, k, 0).y[:, -1]
    margin = y * (theta @ z)
    if margin != 1:
        corner.terminal = True
        path = solved(theta, k, float(margin < 1), events=corner)
        theta, k = path.y[:, -1], k - path.t[-1]
        if path.status == 0:
            return theta
    if 2 * lam <= 1:  # above 1 the margin falls, below it rises: it stays, and the rest of theta shrinks
        return np.exp(-2 * lam * k) * (theta - (theta @ z) * z) + (theta @ z) * z
    return solved(theta, k, 1.0).y[:, -1]


@LOSS
@pytest.mark.parametrize("lam", [1e-6, 1e-3, 0.03, 0.4, 0.6, 20.0])
@pytest.mark.parametrize("k", [1e-4, 0.3, 4.0, 1000.0])
def test_an_aware_step_is_the_solution_of_the_differential_equation(loss, lam, k):
    z, across = np.array([0.6, 0.8]), np.array([0.8, -0.6])
    for f, y in [(0.0, 1.0), (-7.5, 1.0), (2.5, -1.0), (5.0, 1.0), (1.0, 1.0), (300.0, 1.0), (60.0, -1.0)]:
        theta = f * z + 1.7 * across
        factor, a = aware_step(loss, lam, f, y, k)
        wanted = ode_solution(loss, lam, y, k, theta, z)
        np.testing.assert_allclose(factor * theta + a * z, wanted, rtol=0, atol=3e-10 * max(1, abs(f)))


@LOSS
@given(f=F, y=F, lam=LAM, k=st.floats(1e-12, 1e-9))
def test_a_short_aware_step_equals_the_gradient_step(loss, f, y, lam, k):
    y = target(loss, y)
    assume(loss != "hinge" or abs(1 - y * f) > k * (1 + 2 * lam * abs(f)))
    factor, a = aware_step(loss, lam, f, y, k)
    assert factor == pytest.approx(1 - 2 * lam * k, abs=(2 * lam * k) ** 2 + 1e-15)
    slope = derivative(loss, f, y)
    second_order = 2 * (1 + lam) * k * (abs(slope) + 2 * lam * abs(f))
    assert a == pytest.approx(-k * slope, abs=k * second_order + 1e-15 * (1 + abs(f)))


@LOSS
@given(f=F, y=F, lam=LAM)
@example(f=-0.9600000000000009, y=1.0, lam=0.0)  # where log(exp(f)) - f is below 0
def test_an_aware_step_of_length_0_changes_nothing(loss, f, y, lam):
    assert aware_step(loss, lam, f, target(loss, y), 0.0) == (1, 0)


@LOSS
@given(f=F, y=F, k=K)
def test_without_a_ridge_the_aware_step_is_that_of_karampatziakis_and_langford(loss, f, y, k):
    y = target(loss, y)
    factor, a = aware_step(loss, 0.0, f, y, k)
    step = {"squared": (y - f) * -math.expm1(-2 * k), "logistic": y * logistic_rise(y * f, k),
            "hinge": y * min(k, max(0.0, 1 - y * f))}  # fmt: skip
    assert factor == 1
    assert a == pytest.approx(step[loss], rel=1e-15)


@LOSS
@given(f=F, y=F, lam=st.sampled_from([1e-25, 1e-22, 1e-21, 1e-20, 1e-18, 1e-16]), k=K)
def test_an_aware_step_is_continuous_where_the_ridge_becomes_negligible(loss, f, y, lam, k):
    y = target(loss, y)
    without = after(loss, 0.0, f, y, k)
    bound = 2 * lam * k * max(abs(f), abs(without)) + 3e-14 * max(1, abs(f), abs(y))
    assert after(loss, lam, f, y, k) == pytest.approx(without, abs=bound)


@LOSS
@given(f=F, y=F, lam=LAM, k=K)
def test_an_aware_step_never_passes_the_minimum_of_loss_and_ridge(loss, f, y, lam, k):
    y = target(loss, y)
    end, rest = after(loss, lam, f, y, k), after(loss, lam, f, y, 1e100)
    rounding = 1e-14 * max(1, abs(f), abs(y))
    assert min(f, rest) - rounding <= end <= max(f, rest) + rounding
    assert objective(loss, lam, end, y) <= objective(loss, lam, f, y) + 1e-13 * objective(loss, lam, max(1, abs(f)), y)


@LOSS
@given(f=F, y=F, lam=st.floats(1e-6, 1e3))
def test_a_long_aware_step_ends_at_the_minimum_of_loss_and_ridge(loss, f, y, lam):
    y = target(loss, y)
    rest = after(loss, lam, f, y, 1e9)
    lowest = objective(loss, lam, rest, y)
    for near in (-1e-3, 1e-3):
        assert lowest <= objective(loss, lam, rest + near * max(1, abs(rest)), y)


@LOSS
@given(f=F, y=F, lam=LAM, k1=K, k2=K)
def test_two_aware_steps_equal_one_of_their_total_length(loss, f, y, lam, k1, k2):
    y = target(loss, y)
    factor1, a1 = aware_step(loss, lam, f, y, k1)
    factor2, a2 = aware_step(loss, lam, factor1 * f + a1, y, k2)
    factor, a = aware_step(loss, lam, f, y, k1 + k2)
    rounding = 1e-13 * max(1, abs(f), abs(y))
    assert factor1 * factor2 == pytest.approx(factor, abs=1e-14)
    assert factor2 * a1 + a2 == pytest.approx(a, abs=rounding)


@given(m=st.floats(-300, 300), k=st.floats(1e-12, 1e12))
@example(m=-30.0, k=1.0)
@example(m=0.0, k=1e-12)
def test_the_logistic_rise_solves_its_equation(m, k):
    """s + exp(m) (exp(s) - 1) = k, in 400 digits: the error of s is the residual divided by the slope."""
    s = logistic_rise(m, k)
    with localcontext(prec=400):
        exact = Decimal(s) + Decimal(m).exp() * (Decimal(s).exp() - 1) - Decimal(k)
        error = float(exact / (1 + (Decimal(m) + Decimal(s)).exp()))
    assert error == pytest.approx(0, abs=1e-14 * s)


@given(ridge=st.floats(1e-120, 1e100) | st.floats(1e-6, 10))
def test_at_the_resting_margin_the_loss_pulls_as_hard_as_the_ridge(ridge):
    m = resting_margin(ridge)
    assert ridge * m == pytest.approx(-derivative("logistic", m, 1.0), rel=1e-13 * (1 + m))


@LOSS
@pytest.mark.parametrize("lam", LAMBDAS)
@pytest.mark.parametrize("k", [0.0, 1e-300, 1e-17, 1.0, 1e15, 1e99, math.inf])
def test_an_aware_step_is_finite_and_does_not_increase_the_loss_at_extreme_values(loss, lam, k):
    for size, sign, y in itertools.product([0.0, 1e-300, 1.0, 37.0, 1e3, 1e15, 1e99], [-1, 1], [-1.0, 1.0]):
        f = sign * size
        factor, a = aware_step(loss, lam, f, y, k)
        assert 0 <= factor <= 1
        assert math.isfinite(a)
        end = factor * f + a
        assert abs(end) <= max(abs(f), 1e3)
        if lam < 1e90:
            assert objective(loss, lam, end, y) <= objective(loss, lam, f, y) * (1 + 1e-15)
