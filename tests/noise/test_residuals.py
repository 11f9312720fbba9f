"""Quantile residuals of draws are standard normal, for every noise."""

import numpy as np
import pytest
from scipy import stats

from odinfer.noise import FAMILIES
from odinfer.noise.residuals import quantile_residuals

MANY = 4000
ARGUMENTS = {
    "normal": (1.5, 0.7), "lognormal": (2.0, 0.4), "student": (1.5, 0.7, 3.0), "laplace": (1.5, 0.7),
    "loglaplace": (2.0, 0.2), "poisson": (2.2,), "negbinomial": (4.2, 1.7), "binomial": (4.2, 12.0),
}  # fmt: skip


@pytest.mark.parametrize("name", FAMILIES)
def test_residuals_of_draws_are_standard_normal_and_of_other_draws_are_not(name):
    a = [np.full(MANY, v) for v in ARGUMENTS[name]]
    y = FAMILIES[name].draw(np.random.default_rng(2), a)
    r = quantile_residuals(FAMILIES[name], y, a, np.random.default_rng(3))
    assert stats.kstest(r, "norm").pvalue > 0.01
    other = quantile_residuals(FAMILIES[name], y, [1.2 * a[0], *a[1:]], np.random.default_rng(3))
    assert stats.kstest(other, "norm").pvalue < 1e-4


def test_of_normal_noise_they_are_the_residuals_however_large():
    y = np.array([-1e5, -40.0, 0.0, 3.0, 40.0, 1e5, np.nan])
    np.testing.assert_allclose(quantile_residuals(FAMILIES["normal"], y, (0.0, 1.0)), y, rtol=1e-9, atol=1e-12)


def test_arguments_outside_their_domain_have_none():
    assert np.isnan(quantile_residuals(FAMILIES["poisson"], np.ones(2), (np.array([-1.0, np.nan]),))).all()
    assert np.isnan(quantile_residuals(FAMILIES["normal"], np.ones(1), (0.0, 0.0))).all()


def test_of_counts_they_are_finite_in_both_tails_and_the_same_for_the_same_seed():
    y = np.array([0.0, 5.0, 1000.0, 5000.0])
    for rng in (None, np.random.default_rng(0)):
        r = quantile_residuals(FAMILIES["poisson"], y, (1000.0,), rng)
        assert np.isfinite(r).all()
        assert (np.diff(r) > 0).all()
        assert r[0] < -30
        assert r[3] > 80
    twice = [quantile_residuals(FAMILIES["poisson"], y, (1000.0,), np.random.default_rng(5)) for _ in range(2)]
    np.testing.assert_array_equal(*twice)
