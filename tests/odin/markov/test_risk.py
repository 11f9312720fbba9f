"""The risk by chains is the dense one: value, gradient, γ and the products that starts are matched by."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odin.markov.chains import both, two_experiments
from odinfer.odin.gamma import GammaRule
from odinfer.odin.markov.risk import MarkovRisk


@pytest.fixture(scope="module", params=["matern32", "matern52", "matern72", "warped-matern52"])
def engines(request, lv):
    return both(two_experiments(lv), request.param)


@given(st.integers(0, 10**6), st.floats(-5, 2))
def test_value_and_gradient_are_those_of_dense_algebra(engines, seed, level):
    dense, chains = engines
    rng = np.random.default_rng(seed)
    z = dense.mean + 0.05 * rng.normal(size=dense.mean.shape)
    phi, gamma = rng.uniform(0.5, 4.0, 4), 10.0**level * np.array([1.0, 2.0])
    lin = dense.linearise(z, phi)
    e, r = dense.mismatch(z, lin.f), chains.mismatch(z, lin.f)
    np.testing.assert_allclose(chains.state_terms(z, phi), dense.state_terms(z, phi), rtol=1e-7)
    np.testing.assert_allclose(chains.gamma_terms(r, gamma), dense.gamma_terms(e, gamma), rtol=1e-5, atol=1e-2)
    for mine, other in zip(chains.gradient(z, lin, r, gamma, phi), dense.gradient(z, lin, e, gamma, phi), strict=True):
        np.testing.assert_allclose(mine, other, atol=3e-5 * np.abs(other).max())


def test_means_and_products_are_those_of_dense_algebra(engines):
    dense, chains = engines
    assert isinstance(chains, MarkovRisk)
    np.testing.assert_allclose(chains.mean, dense.mean, atol=1e-7)
    np.testing.assert_allclose(chains.mean_slopes, dense.mean_slopes, atol=1e-4)
    m = np.random.default_rng(0).normal(size=(3, *dense.mean_slopes.shape, 4))
    np.testing.assert_allclose(chains.products(m, 0.5), dense.products(m, 0.5), rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("shared", [False, True])
def test_the_best_gamma_is_that_of_dense_algebra_from_anywhere(engines, shared):
    dense, chains = engines
    rule = GammaRule(shared=shared)
    z, phi = dense.mean, np.array([1.5, 1.2, 3.0, 0.7])
    f = dense.linearise(z, phi).f
    best = dense.best_gamma(dense.mismatch(z, f), rule)
    r = chains.mismatch(z, f)
    for start in (None, np.array([1e-6, 1e2]), best):
        np.testing.assert_allclose(chains.best_gamma(r, rule, start), best, rtol=1e-3)
    assert (chains.best_gamma(r, GammaRule(fixed=0.3)) == 0.3).all()


def test_a_field_that_is_not_finite_has_an_infinite_risk(engines):
    chains = engines[1]
    e = chains.mismatch(chains.mean, np.full_like(chains.mean, np.inf))
    assert chains.gamma_terms(e, np.ones(2)) == np.inf
