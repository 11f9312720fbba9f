"""Logarithms of probabilities against high precision, where scipy's underflow."""

import mpmath as mp
import numpy as np
import pytest

from odinfer._jax import jax, jnp
from odinfer.noise.special import log_beta, log_mass, log_poisson_tail, special, stirling


@pytest.mark.parametrize("xp", [np, jnp])
@pytest.mark.parametrize("x", [1e-3, 0.7, 15.9, 16.1, 1e6])
def test_stirlings_rest(x, xp):
    with mp.workdps(40):
        right = mp.loggamma(mp.mpf(x) + 1) - (x + mp.mpf(0.5)) * mp.log(x) + x - mp.log(2 * mp.pi) / 2
    assert float(stirling(np.float64(x), xp)) == pytest.approx(float(right), rel=1e-12, abs=2e-14)


@pytest.mark.parametrize("xp", [np, jnp])
@pytest.mark.parametrize(("y", "m"), [(0, 2e3), (100, 3e3), (963_000, 1e6), (1_040_000, 1e6), (5000, 10.0)])
def test_poisson_tails_beyond_underflow(y, m, xp):
    upper = y > m
    with mp.workdps(40):
        ends = (0, m) if upper else (m, mp.inf)
        right = float(mp.log(mp.gammainc(y + 1, *ends, regularized=True)))
    assert float(log_poisson_tail(np.float64(y), np.float64(m), upper, xp)) == pytest.approx(right, rel=1e-12)


@pytest.mark.parametrize("xp", [np, jnp])
@pytest.mark.parametrize(
    ("a", "b", "x"),
    [(1.0, 5000.0, 1e-300), (2.0, 0.5, 1e-200), (50.0, 0.5, 1e-10), (2000.0, 0.5, 0.4), (3.0, 4.0, 0.3)],
)
def test_incomplete_beta_beyond_underflow(a, b, x, xp):
    with mp.workdps(40):
        right = float(mp.log(mp.betainc(a, b, 0, mp.mpf(x), regularized=True)))
    assert float(log_beta(np.float64(a), np.float64(b), np.float64(x), 1 - x, xp)) == pytest.approx(right, rel=1e-12)


def test_gradients_are_those_of_the_tail_near_and_far():
    # d log P(Y ≤ y) / dm = −P(Y = y)/P(Y ≤ y).
    for m in (40.0, 59.0, 62.0, 1000.0):
        slope = jax.grad(lambda m: log_poisson_tail(jnp.array(30.0), m, False, jnp))(m)
        right = -jnp.exp(log_mass(30.0, m, 30.0 - m, jnp) - log_poisson_tail(jnp.array(30.0), m, False, jnp))
        assert float(slope) == pytest.approx(float(right), rel=1e-8)


def test_the_functions_are_those_of_the_arrays():
    assert special(np).__name__ == "scipy.special"
    assert special(jnp).__name__ == "jax.scipy.special"
