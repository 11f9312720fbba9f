"""Curves: exact where they are given, cubic between, their slope the derivative of what they say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import CubicHermiteSpline

from odinfer.gp.curves import Curve, Gradients, Hermite
from odinfer.gp.standardisation import Units

FEW = settings(max_examples=25, derandomize=True, deadline=None)
SEEDS = st.integers(0, 2**32 - 1)


def some_curve(seed, n=9, K=2):
    rng = np.random.default_rng(seed)
    t = np.cumsum(rng.uniform(0.1, 1.0, n))
    return Curve(t, rng.normal(size=(n, K)), rng.normal(size=(n, K)), rng.uniform(0.1, 1.0, (n, K)))


@FEW
@given(SEEDS)
def test_at_its_own_times_a_curve_is_what_was_given(seed):
    curve = some_curve(seed)
    for found, given_ in zip(curve.at(curve.t), (curve.x, curve.slope, curve.sd), strict=True):
        np.testing.assert_allclose(found, given_, atol=1e-12)


@FEW
@given(SEEDS)
def test_a_cubic_is_met_exactly_between_the_times_too(seed):
    rng = np.random.default_rng(seed)
    p = np.polynomial.Polynomial(rng.normal(size=4))
    t, fine = np.sort(rng.uniform(0, 2, 5)), rng.uniform(0.0, 1.0, 20)
    curve = Curve(t, p(t)[:, None], p.deriv()(t)[:, None], np.ones((5, 1)))
    fine = t[0] + (t[-1] - t[0]) * fine
    x, slope, _ = curve.at(fine)
    np.testing.assert_allclose(x[:, 0], p(fine), atol=1e-9)
    np.testing.assert_allclose(slope[:, 0], p.deriv()(fine), atol=1e-7)


@FEW
@given(SEEDS)
def test_the_slope_is_the_derivative_of_the_curve(seed):
    curve, h = some_curve(seed), 1e-6
    t = np.linspace(curve.t[0] + h, curve.t[-1] - h, 40)
    slope = (curve.at(t + h)[0] - curve.at(t - h)[0]) / (2 * h)
    np.testing.assert_allclose(curve.at(t)[1], slope, atol=1e-4)


@FEW
@given(SEEDS)
def test_the_standard_deviation_is_linear_between_and_never_negative(seed):
    curve = some_curve(seed)
    middle = 0.5 * (curve.t[1:] + curve.t[:-1])
    np.testing.assert_allclose(curve.at(middle)[2], 0.5 * (curve.sd[1:] + curve.sd[:-1]))


def test_a_curve_of_one_time_is_the_same_at_all_times():
    curve = Curve(np.array([2.0]), np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]), np.array([[0.5, 0.6]]))
    for found, row in zip(curve.at(np.array([2.0, 2.0, 2.0])), ([1.0, 2.0], [3.0, 4.0], [0.5, 0.6]), strict=True):
        np.testing.assert_array_equal(found, [row] * 3)


@FEW
@given(SEEDS)
def test_standardised_curves_come_out_in_the_units_of_the_user(seed):
    z = some_curve(seed)
    units = Units(np.array([3.0, -1.0]), np.array([0.5, 20.0]), 4.0)
    curve = Curve.of_standard(units, 4.0 * z.t, z.x, z.slope, z.sd)
    np.testing.assert_allclose(units.standard(curve.x), z.x, atol=1e-12)
    np.testing.assert_allclose(units.standard_slope(curve.slope), z.slope)
    np.testing.assert_allclose(units.standard_variance(curve.sd), z.sd**2)
    fine = np.linspace(z.t[0], z.t[-1], 30)
    np.testing.assert_allclose(units.standard(curve.at(4.0 * fine)[0]), z.at(fine)[0], atol=1e-9)


@pytest.mark.parametrize("kind", [Curve, Gradients])
def test_what_is_kept_cannot_be_exchanged_and_is_compared_by_identity(kind):
    one, other = (kind(*[np.zeros(2)] * 4) for _ in range(2))
    assert one == one
    assert one != other
    with pytest.raises(AttributeError):
        one.t = np.ones(2)


@settings(max_examples=40, derandomize=True, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 9))
def test_cubic_hermite_pieces_are_scipys(seed, n):
    rng = np.random.default_rng(seed)
    t = np.cumsum(10.0 ** rng.uniform(-2, 1, n))
    x, slope = rng.normal(size=(2, n, 3))
    right, found = CubicHermiteSpline(t, x, slope), Hermite(t, x, slope)
    at = np.concatenate([t, rng.uniform(t[0], t[-1], 20), [t[0] - 0.1, t[-1] + 0.1]])
    for mine, other in ((found(at), right(at)), (found.derivative(at), right.derivative()(at))):
        np.testing.assert_allclose(mine, other, rtol=1e-9, atol=1e-9 * np.abs(other).max())
    np.testing.assert_array_equal(found(t[:-1]), x[:-1])
