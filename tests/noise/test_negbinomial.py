"""Negative binomial counts: their limit is Poisson's, and the information about k is exact."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odinfer.noise.negbinomial import SERIES, NegBinomial, gradient, information
from odinfer.noise.poisson import Poisson

NEGBINOMIAL = NegBinomial()
FEW = settings(max_examples=25, derandomize=True, deadline=None)


@pytest.mark.parametrize("k", [1e15, 1e60, np.inf])
@pytest.mark.parametrize("m", [0.0, 0.1, 7.0, 1e4])
def test_with_infinite_k_it_is_poisson(k, m):
    y = np.unique(np.round(m + np.sqrt(m) * np.array([-3.0, -1.0, 0.0, 2.0, 6.0])).clip(0))
    np.testing.assert_allclose(NEGBINOMIAL.log_density(y, (m, k)), Poisson().log_density(y, (m,)), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(NEGBINOMIAL.log_cdf(y, (m, k)), Poisson().log_cdf(y, (m,)), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(NEGBINOMIAL.log_sf(y, (m, k)), Poisson().log_sf(y, (m,)), rtol=1e-8, atol=1e-9)
    r, J = NEGBINOMIAL.rows(y, [np.full_like(y, m), np.full_like(y, k)])
    assert np.isfinite(r).all()
    assert np.isfinite(J).all()


@FEW
@given(log_m=st.floats(-1, 4), log_k=st.floats(-1, 3))
def test_the_information_about_k_is_the_expected_square_of_the_score(log_m, log_k):
    # Counts are summed one by one up to 2000, then in blocks that grow: the score is smooth there.
    m, k = 10**log_m, 10**log_k
    most = float(NEGBINOMIAL.quantile(1 - 1e-13, (m, k)))
    edges = np.unique(np.round(np.concatenate([np.arange(2001.0), np.geomspace(2000, max(most, 2001), 20_000)])))
    weight = np.diff(np.exp(NEGBINOMIAL.log_cdf(np.concatenate([[-1.0], edges]), (m, k))))
    middle = np.concatenate([[0.0], (edges[1:] + edges[:-1] + 1) / 2])
    right = weight @ gradient(middle, np.array(m), np.array(k)) ** 2
    assert float(information(np.array(m), np.array(k))) == pytest.approx(right, rel=0.01)


@FEW
@given(log_m=st.floats(-6, 12), log_k=st.floats(-6, 12))
def test_the_information_about_k_is_always_positive(log_m, log_k):
    assert 0 < information(np.array(10**log_m), np.array(10**log_k)) < np.inf


@FEW
@given(m=st.floats(0.01, 1e4), y=st.integers(0, 10_000))
def test_the_expansion_of_the_gradient_continues_the_exact_formula(m, y):
    below, above = gradient(np.array(float(y)), np.array(m), SERIES * np.array([1 - 1e-10, 1 + 1e-10]))
    assert below == pytest.approx(above, rel=1e-6, abs=1e-14)


def test_a_score_in_units_of_its_information_is_of_order_one_for_any_k():
    y = np.array([3.0, 5.0, 9.0])
    for k in 10.0 ** np.arange(0, 40, 3):
        r, _ = NEGBINOMIAL.rows(y, [np.full(3, 5.0), np.full(3, k)])
        assert np.abs(r).max() < 5
