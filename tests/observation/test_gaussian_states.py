"""Gaussian noise: its log-likelihood is scipy's, its variances are the best ones, and what is missing says nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import odinfer as od
from odinfer._jax import jax
from odinfer.observation import observation_of
from odinfer.observation.gaussian_states import GaussianNoise, log_density, squares

FEW = settings(max_examples=25, derandomize=True, deadline=None)
SEEDS = st.integers(0, 2**32 - 1)
DENSITY = jax.jit(log_density)


def drawn(seed, sizes=(7, 4), missing=0.3):
    """Predicted and observed values (N, 2) of several experiments, and how often each state was observed."""
    rng = np.random.default_rng(seed)
    x = [rng.normal(size=(n, 2)) for n in sizes]
    y = [a + rng.normal(size=a.shape) * [0.3, 2.0] for a in x]
    for b in y:
        b[rng.uniform(size=b.shape) < missing] = np.nan
    y[0][0] = 1.0
    return x, y, np.sum([np.isfinite(b).sum(0) for b in y], 0)


def by_scipy(x, y, sd):
    return sum(np.nansum(stats.norm.logpdf(b, a, sd)) for a, b in zip(x, y, strict=True))


@FEW
@given(SEEDS, st.tuples(*[st.floats(0.05, 20.0)] * 2))
def test_the_log_likelihood_is_the_sum_over_what_was_observed(seed, sd):
    x, y, count = drawn(seed)
    noise = GaussianNoise(np.full(2, np.nan), count)
    assert noise.loglik(squares(x, y), np.square(sd)) == pytest.approx(by_scipy(x, y, sd))


@FEW
@given(SEEDS)
def test_no_other_variance_is_more_likely(seed):
    x, y, count = drawn(seed)
    noise = GaussianNoise(np.full(2, np.nan), count)
    rss = squares(x, y)
    best = noise.variance(rss)
    assert noise.loglik(rss) == noise.loglik(rss, best) == pytest.approx(by_scipy(x, y, np.sqrt(best)))
    for factor in ([0.9, 1.0], [1.1, 1.0], [1.0, 0.9], [1.0, 1.1], [3.0, 0.2]):
        assert noise.loglik(rss, best * factor) < noise.loglik(rss)


@FEW
@given(SEEDS, st.floats(0.05, 20.0))
def test_known_noise_is_kept_and_the_other_is_estimated_as_if_alone(seed, sd):
    x, y, count = drawn(seed)
    rss = squares(x, y)
    known = GaussianNoise(np.array([sd, np.nan]), count)
    assert known.is_known.tolist() == [True, False]
    assert known.variance(rss)[0] == sd**2
    assert known.variance(rss)[1] == GaussianNoise(np.full(2, np.nan), count).variance(rss)[1]
    assert known.loglik(rss) == pytest.approx(by_scipy(x, y, np.sqrt(known.variance(rss))))


def test_exact_data_have_the_floor_as_variance_and_a_finite_likelihood():
    noise = GaussianNoise(np.array([np.nan, np.nan, 0.5]), np.array([5, 5, 5]), np.array([1e-8, 1e-6, 1.0]))
    np.testing.assert_array_equal(noise.variance(np.zeros(3)), [1e-8, 1e-6, 0.25])
    np.testing.assert_array_equal(noise.variance(np.full(3, 5.0)), [1.0, 1.0, 0.25])
    assert np.isfinite(GaussianNoise(np.array([np.nan]), np.array([5])).loglik(np.zeros(1)))


@FEW
@given(SEEDS, st.integers(1, 5))
def test_many_data_sets_side_by_side_equal_one_by_one(seed, size):
    x, y, count = drawn(seed)
    noise = GaussianNoise(np.array([np.nan, 0.7]), count, seen=tuple(np.isfinite(b) for b in y))
    rng = np.random.default_rng(seed)
    many = [noise.draw(rng, e, a, np.empty(0), np.array([0.3, 2.0]), size) for e, a in enumerate(x)]
    rss = squares(x, many)
    assert rss.shape == (size, 2)
    variance, loglik = noise.best(x, many)
    for i in range(size):
        own = squares(x, [b[i] for b in many])
        np.testing.assert_allclose(rss[i], own)
        np.testing.assert_allclose(variance[i], noise.variance(own))
        assert loglik[i] == pytest.approx(noise.loglik(own))


def test_squares_add_over_experiments_and_leave_out_what_is_missing():
    x = [np.zeros((2, 2)), np.zeros((1, 2))]
    y = [np.array([[1.0, np.nan], [2.0, 3.0]]), np.array([[np.nan, 4.0]])]
    np.testing.assert_array_equal(squares(x, y), [5.0, 25.0])
    with pytest.raises(ValueError, match="zip"):
        squares(x, y[:1])


@FEW
@given(SEEDS, st.tuples(*[st.floats(0.1, 5.0)] * 2))
def test_whitened_residuals_give_the_likelihood_and_its_gradient(seed, sd):
    (x,), (y,), count = drawn(seed, sizes=(6,))
    noise, v = GaussianNoise(np.full(2, np.nan), count), np.square(sd)
    r, weight = noise.whitened(x, y, v)
    assert (r[np.isnan(y)] == 0).all()
    assert (weight[np.isnan(y)] == 0).all()
    constant = -0.5 * (count * np.log(2 * np.pi * v)).sum()
    assert constant - 0.5 * (r**2).sum() == pytest.approx(noise.loglik(squares([x], [y]), v))
    h = 1e-5
    for n, k in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[n, k] += h
        down[n, k] -= h
        slope = (noise.loglik(squares([up], [y]), v) - noise.loglik(squares([down], [y]), v)) / (2 * h)
        assert r[n, k] * weight[n, k] == pytest.approx(-slope, rel=1e-5, abs=1e-5)


@FEW
@given(SEEDS, st.tuples(*[st.floats(0.1, 5.0)] * 2))
def test_the_density_in_jax_is_the_log_likelihood_up_to_its_constant(seed, sd):
    (x,), (y,), count = drawn(seed, sizes=(6,))
    seen = np.isfinite(y)
    density = DENSITY(x, np.nan_to_num(y), seen.astype(float), np.array(sd))
    loglik = GaussianNoise(np.full(2, np.nan), count).loglik(squares([x], [y]), np.square(sd))
    assert float(density) - 0.5 * count.sum() * np.log(2 * np.pi) == pytest.approx(float(loglik))


def test_missing_values_stay_missing_in_draws_and_the_others_scatter_by_sigma():
    x, sigma = np.array([[1.0, -2.0], [5.0, 0.0], [0.0, 3.0]]), np.array([0.1, 2.0])
    y = np.array([[0.0, np.nan], [0.0, 0.0], [np.nan, 0.0]])
    noise = GaussianNoise(np.full(2, np.nan), np.array([2, 2]), seen=(np.isfinite(y),))
    found = noise.draw(np.random.default_rng(0), 0, x, np.empty(0), sigma, 4000)
    assert found.shape == (4000, 3, 2)
    np.testing.assert_array_equal(np.isnan(found), np.broadcast_to(np.isnan(y), found.shape))
    seen = np.isfinite(y)
    np.testing.assert_allclose(found.mean(0)[seen], x[seen], atol=0.1)
    np.testing.assert_allclose(found.std(0)[seen], np.broadcast_to(sigma, y.shape)[seen], rtol=0.05)
    again = noise.draw(np.random.default_rng(0), 0, x, np.empty(0), sigma, 4000)
    np.testing.assert_array_equal(found, again)


def test_the_noise_of_a_problem_has_its_counts_and_what_it_knows(lv):
    y = lv.sample(0.1, 0).y.copy()
    y[3:6, 1] = np.nan
    problem = od.Problem(lv.model, od.Data(lv.t, y, states=lv.model.states), sigma={"predator": 0.3}, positive=False)
    for noise in (GaussianNoise.of(problem), observation_of(problem, 1e-9)):
        np.testing.assert_array_equal(noise.count, [20, 17])
        np.testing.assert_array_equal(noise.is_known, [False, True])
        variance, loglik = noise.best([lv.x], [y])
        assert variance[1] == pytest.approx(0.09)
        assert loglik == pytest.approx(by_scipy([lv.x], [y], np.sqrt(variance)))
