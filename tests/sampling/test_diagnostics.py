"""R-hat, effective sample sizes and the verdict, on chains of which both are known."""

import numpy as np
import pytest

from odinfer.result.from_draws import thin
from odinfer.sampling.diagnostics import convergence_verdict, ess, r_hat, split_chains


def normal(chains=4, draws=2000, seed=0):
    return np.random.default_rng(seed).normal(size=(chains, draws))


def autoregressive(rho, chains=4, draws=20_000, seed=1):
    e = normal(chains, draws, seed)
    x = np.zeros_like(e)
    for n in range(1, draws):
        x[:, n] = rho * x[:, n - 1] + np.sqrt(1 - rho**2) * e[:, n]
    return x


def test_independent_draws_agree_and_all_count():
    assert r_hat(normal()) == pytest.approx(1.0, abs=0.005)
    assert ess(normal()) == pytest.approx(8000, rel=0.1)


@pytest.mark.parametrize("rho", [0.5, 0.9])
def test_the_effective_size_of_an_autoregression(rho):
    assert ess(autoregressive(rho)) == pytest.approx(80_000 * (1 - rho) / (1 + rho), rel=0.15)


def test_stuck_chains_do_not_agree():
    stuck = np.repeat(np.arange(4.0)[:, None], 100, 1)
    assert r_hat(stuck) == np.inf
    assert ess(stuck) < 10
    near = 0.1 * normal(draws=500) + np.arange(4.0)[:, None]
    assert r_hat(near) > 2
    assert ess(near) < 20


def test_a_drift_and_a_different_spread_show():
    assert r_hat(normal() + np.linspace(0, 3, 2000)) > 1.1
    assert r_hat(normal() * np.array([1.0, 1.0, 1.0, 5.0])[:, None]) > 1.1


def test_neither_depends_on_the_scale_or_on_a_monotone_change():
    x = normal()
    assert ess(3 * x - 7) == pytest.approx(ess(x))
    assert ess(np.exp(x)) == pytest.approx(ess(x))


def test_too_short_or_not_finite_is_not_a_number():
    assert np.isnan(r_hat(normal(draws=3)))
    assert np.isnan(ess(normal(draws=3)))
    assert np.isnan(r_hat(np.full((2, 10), np.nan)))


def test_verdicts():
    assert convergence_verdict({"a": 1.001}, {"a": 900.0}) == (
        "converged: R-hat at most 1.001, at least 900 effective draws",
        True,
    )
    text = "do not use: the chains have not mixed (R-hat 1.3 for a)"
    assert convergence_verdict({"a": 1.3, "b": 1.2}, {"a": 500.0, "b": 400.0}) == (text, False)
    assert convergence_verdict({"a": np.inf}, {"a": 2.0})[1] is False
    assert "12 effective draws of b" in convergence_verdict({"a": 1.0, "b": 1.0}, {"a": 500.0, "b": 12.0})[0]
    assert "diverged" in convergence_verdict({"a": 1.0}, {"a": 500.0}, 0.2)[0]
    assert not convergence_verdict({"a": np.nan}, {"a": np.nan})[1]
    assert convergence_verdict({}, {})[1]


def test_splitting_and_thinning():
    x = np.arange(14.0).reshape(2, 7)
    assert split_chains(x).tolist() == [[1, 2, 3], [4, 5, 6], [8, 9, 10], [11, 12, 13]]
    assert thin(np.zeros((6, 5000))).shape == (4, 1000)
    assert thin(np.zeros((2, 30))).shape == (2, 30)
