import math
from decimal import Decimal, localcontext

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from omkl.losses import LOSSES, aware_step, derivative, logistic_rise, value

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


@LOSS
@given(f=F, y=F, k=st.floats(1e-12, 1e-7))
def test_a_short_aware_step_equals_the_gradient_step(loss, f, y, k):
    y = target(loss, y)
    assume(loss != "hinge" or abs(1 - y * f) > k)
    assert aware_step(loss, f, y, k) == pytest.approx(k * derivative(loss, f, y), rel=3 * k, abs=1e-15)


@LOSS
@given(f=F, y=F)
@example(f=-0.9600000000000009, y=1.0)  # where log(exp(f)) - f is below 0
def test_an_aware_step_of_length_0_changes_nothing(loss, f, y):
    assert aware_step(loss, f, target(loss, y), 0.0) == 0


@LOSS
@given(f=F, y=F, k=K)
def test_an_aware_step_passes_neither_the_minimum_nor_the_gradient_step(loss, f, y, k):
    y = target(loss, y)
    step = aware_step(loss, f, y, k)
    slope = derivative(loss, f, y)
    assert step * slope >= 0
    assert abs(step) <= k * abs(slope) * (1 + 1e-12) + 1e-300
    assert derivative(loss, f - step, y) * slope >= 0 or abs(f - step - y) < 1e-12
    assert value(loss, f - step, y) <= value(loss, f, y)


@LOSS
@given(f=F, y=F, k1=K, k2=K)
def test_two_aware_steps_equal_one_of_their_total_length(loss, f, y, k1, k2):
    y = target(loss, y)
    first = aware_step(loss, f, y, k1)
    both = first + aware_step(loss, f - first, y, k2)
    assert both == pytest.approx(aware_step(loss, f, y, k1 + k2), rel=1e-12, abs=1e-13 * max(1, abs(f), abs(y)))


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


@LOSS
@pytest.mark.parametrize("k", [1e-300, 1e-17, 1.0, 1e15, 1e99, math.inf])
@pytest.mark.parametrize("f", [0.0, 1e-300, 1.0, 37.0, 1e3, 1e15, 1e99])
@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_an_aware_step_is_finite_and_does_not_increase_the_loss_at_extreme_values(loss, k, f, sign, y):
    f *= sign
    step = aware_step(loss, f, y, k)
    assert math.isfinite(step)
    assert value(loss, f - step, y) <= value(loss, f, y)
