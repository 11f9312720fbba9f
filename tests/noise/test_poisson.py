"""Poisson counts: nothing, very many, and what cannot be counted."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odinfer._jax import jax, jnp
from odinfer.noise.poisson import Poisson

POISSON = Poisson()


def test_of_a_mean_of_zero_zero_is_certain():
    np.testing.assert_array_equal(POISSON.log_density(np.array([0.0, 1.0]), (0.0,)), [0.0, -np.inf])
    np.testing.assert_array_equal(POISSON.log_cdf(np.array([0.0, 1.0]), (0.0,)), [0.0, 0.0])
    np.testing.assert_array_equal(POISSON.log_sf(np.array([0.0, 1.0]), (0.0,)), [-np.inf, -np.inf])
    assert jax.grad(lambda m: POISSON.log_density(jnp.array(0.0), [m], jnp))(0.0) == -1.0


@settings(max_examples=25, derandomize=True, deadline=None)
@given(log_m=st.floats(-3, 15), z=st.floats(-5, 5))
def test_densities_are_exact_for_any_mean(log_m, z):
    m = 10**log_m
    y = float(max(0, round(m + z * m**0.5)))
    with mp.workdps(40):
        right = float(y * mp.log(m) - mp.mpf(m) - mp.loggamma(y + 1))
    assert float(POISSON.log_density(y, (m,))) == pytest.approx(right, rel=1e-11, abs=1e-10)


@pytest.mark.parametrize("xp", [np, jnp])
def test_tails_of_large_means_keep_their_digits(xp):
    # Far out P(Y > y) is p(y + 1) (1 + m/(y + 2) + …), summed here term by term.
    m, y = 1e8, 1e8 + 8e4
    with mp.workdps(30):
        term = total = mp.mpf(1)
        j = 2
        while term > mp.mpf(10) ** -16:
            term *= m / (mp.mpf(y) + j)
            total, j = total + term, j + 1
        right = float((y + 1) * mp.log(m) - m - mp.loggamma(y + 2) + mp.log(total))
    assert float(POISSON.log_sf(y, (m,), xp)) == pytest.approx(right, rel=1e-12)


@pytest.mark.parametrize("y", [-1.0, 0.5, np.inf])
def test_only_whole_numbers_can_be_observed(y):
    assert POISSON.refuses(np.array([1.0, y, np.nan])) == "must be whole numbers ≥ 0"
    assert POISSON.log_density(np.array(y), (2.0,)) == -np.inf


def test_draws_of_huge_means_are_possible():
    y = POISSON.draw(np.random.default_rng(0), [np.full(1000, 1e20)])
    assert np.std(y) == pytest.approx(1e10, rel=0.1)
