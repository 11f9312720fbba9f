"""Standardised units: every conversion is undone by its opposite, and derivatives follow the chain rule."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import block_diag
from scipy.sparse import csr_array

import odinfer as od
from odinfer.gp.standardisation import Units

FEW = settings(max_examples=25, derandomize=True, deadline=None)
POSITIVE = st.floats(1e-3, 1e3)
MODEL = od.Model.from_text("x' = a*x*y + t; y' = b*sin(x) - y^2")


@st.composite
def some_units(draw):
    pair = st.tuples(*[POSITIVE] * 2)
    return Units(np.array(draw(pair)) - 500.0, np.array(draw(pair)), draw(POSITIVE))


ARRAYS = st.integers(0, 2**32 - 1).map(lambda seed: np.random.default_rng(seed).normal(size=(4, 5, 2)))


@FEW
@given(some_units(), ARRAYS)
def test_there_and_back_is_nothing(units, z):
    np.testing.assert_allclose(
        units.standard(units.user(z)), z, atol=1e-9 * (1 + np.abs(units.mean / units.scale).max())
    )
    np.testing.assert_allclose(units.standard_slope(units.user_slope(z)), z, rtol=1e-12)
    np.testing.assert_allclose(units.standard_variance(units.user_sd(z)), z**2, rtol=1e-12)
    np.testing.assert_allclose(units.user_slope(np.ones(2)), units.rate)
    np.testing.assert_allclose(7.0 + units.user_time(units.standard_time(z, 7.0)), z, atol=1e-12)


@FEW
@given(some_units(), st.integers(0, 2**32 - 1))
def test_slopes_are_those_of_the_standardised_curve(units, seed):
    t, h = np.random.default_rng(seed).uniform(0, 3, 6), 1e-5

    def curve(t):
        return np.stack([np.sin(t), np.exp(-t)], -1)

    slope = np.stack([np.cos(t), -np.exp(-t)], -1)
    ahead, behind = (units.standard(curve(t + s)) for s in (h, -h))
    found = (ahead - behind) / units.standard_time(np.full((6, 1), 2 * h))
    np.testing.assert_allclose(units.standard_slope(slope), found, rtol=1e-5, atol=1e-5 * np.abs(found).max())


@FEW
@given(some_units(), st.integers(0, 2**32 - 1))
def test_the_standard_field_equals_finite_differences_of_the_standardised_one(units, seed):
    rng = np.random.default_rng(seed)
    t, z, theta, u, h = rng.uniform(0, 2, 4), rng.normal(size=(4, 2)), rng.normal(size=2), np.zeros((4, 0)), 1e-6

    def standardised(z, theta):
        return units.standard_slope(MODEL.evaluate(t, units.user(z), theta, u))

    f, fz, ft = units.standard_field(*MODEL.linearise(t, units.user(z), theta, u))
    np.testing.assert_allclose(f, standardised(z, theta), rtol=1e-12)
    for found, by in ((fz, lambda e: standardised(z + e, theta)), (ft, lambda e: standardised(z, theta + e))):
        slopes = np.stack([(by(e) - by(-e)) / (2 * h) for e in h * np.eye(2)], -1)
        np.testing.assert_allclose(found, slopes, rtol=1e-4, atol=1e-6 * (np.abs(f).max() + np.abs(slopes).max()))


@FEW
@given(some_units(), st.integers(0, 2**32 - 1))
def test_the_sparse_field_is_standardised_like_the_dense_one(units, seed):
    rng = np.random.default_rng(seed)
    f, fx, ft = rng.normal(size=(4, 2)), rng.normal(size=(4, 2, 2)), rng.normal(size=(4, 2, 3))
    fx[rng.uniform(size=fx.shape) < 0.5] = 0.0
    sparse = units.standard_sparse_field(f, csr_array(block_diag(*fx)), csr_array(ft.reshape(8, 3)))
    dense = units.standard_field(f, fx, ft)
    np.testing.assert_allclose(sparse[0], dense[0])
    np.testing.assert_allclose(sparse[1].toarray(), block_diag(*dense[1]))
    np.testing.assert_allclose(sparse[2].toarray(), dense[2].reshape(8, 3))


@FEW
@given(some_units(), ARRAYS, st.integers(0, 1))
def test_one_state_alone_is_converted_as_among_the_others(units, z, k):
    own, column = units.of_state(k), z[..., [k]]
    np.testing.assert_array_equal(own.standard(column), units.standard(z)[..., [k]])
    np.testing.assert_array_equal(own.user(column), units.user(z)[..., [k]])
    np.testing.assert_array_equal(own.user_slope(column), units.user_slope(z)[..., [k]])
    np.testing.assert_array_equal(own.user_sd(column), units.user_sd(z)[..., [k]])
    assert own.time == units.time


def test_standardised_observations_have_mean_zero_and_spread_one_over_all_experiments(lv, lv_data):
    y = 1e3 + 7 * lv_data.y
    y[4:9, 1] = np.nan
    late = od.Data(100.0 + 3.0 * lv_data.t[:14], y[:14], states=lv.model.states)
    problem = od.Problem(lv.model, od.Data.join({"a": lv_data, "b": late}), positive=False)
    units = Units.of(problem)
    z = units.standard(np.concatenate([e.y for e in problem.data.experiments]))
    np.testing.assert_allclose(np.nanmean(z, 0), 0.0, atol=1e-12)
    np.testing.assert_allclose(np.nanstd(z, 0), 1.0)
    spread = [units.standard_time(e.t, e.t.mean()) for e in problem.data.experiments]
    assert np.concatenate(spread).std() == pytest.approx(1.0)
    assert Units.of(problem, scale_time=False).time == 1.0


@pytest.mark.filterwarnings("ignore:state 'x' is constant")
def test_a_state_that_does_not_change_keeps_its_scale():
    data = od.Data(np.arange(5.0), np.full(5, 3.0), states=["x"])
    units = Units.of(od.Problem(od.Model.from_text("x' = -k*x"), data, positive=False))
    assert (units.mean[0], units.scale[0]) == (3.0, 1.0)
