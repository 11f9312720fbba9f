"""Binomial counts out of n: the ends of their range."""

import numpy as np
import pytest

from odinfer.noise.binomial import Binomial
from odinfer.noise.poisson import Poisson

BINOMIAL = Binomial()


def test_none_and_all_can_be_certain():
    y = np.array([0.0, 1.0, 5.0, 6.0])
    np.testing.assert_array_equal(BINOMIAL.log_density(y, (0.0, 5.0)), [0.0, -np.inf, -np.inf, -np.inf])
    np.testing.assert_array_equal(BINOMIAL.log_density(y, (5.0, 5.0)), [-np.inf, -np.inf, 0.0, -np.inf])
    np.testing.assert_array_equal(BINOMIAL.log_cdf(y, (5.0, 5.0)), [-np.inf, -np.inf, 0.0, 0.0])
    np.testing.assert_array_equal(BINOMIAL.log_sf(y, (0.0, 5.0)), [-np.inf, -np.inf, -np.inf, -np.inf])
    np.testing.assert_array_equal(
        BINOMIAL.draw(np.random.default_rng(0), [np.array([0.0, 5.0]), np.full(2, 5.0)]), [0, 5]
    )


def test_quantiles_stay_between_none_and_all():
    np.testing.assert_array_equal(BINOMIAL.quantile(np.array([0.0, 1.0]), (2.0, 5.0)), [0.0, 5.0])
    assert Poisson().quantile(1.0, (2.0,)) == np.inf


def test_none_of_none_is_certain():
    assert BINOMIAL.log_density(np.array(0.0), (0.0, 0.0)) == 0.0
    assert BINOMIAL.log_cdf(np.array(0.0), (0.0, 0.0)) == 0.0


def test_few_of_very_many_are_poisson():
    y = np.arange(12.0)
    np.testing.assert_allclose(BINOMIAL.log_density(y, (4.0, 1e14)), Poisson().log_density(y, (4.0,)), rtol=1e-9)
    np.testing.assert_allclose(BINOMIAL.log_sf(y, (4.0, 1e14)), Poisson().log_sf(y, (4.0,)), rtol=1e-9)


@pytest.mark.parametrize("m", [0.0, 5.0])
def test_derivatives_are_finite_at_the_ends(m):
    r, J = BINOMIAL.rows(np.array([0.0, 2.0, 5.0]), [np.full(3, m), np.full(3, 5.0)])
    assert np.isfinite(r).all()
    assert np.isfinite(J).all()
