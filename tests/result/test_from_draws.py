"""From draws to a Fit: means, bands and draws are those of the chains, and chains that disagree are not to be used."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odinfer as od
from odinfer.paper.fgpgm import Fgpgm
from odinfer.result.from_draws import Draws, thin, to_fit

METHOD = Fgpgm(sampler="metropolis", kernel="matern52", gamma=0.05)


@pytest.fixture(scope="module")
def risk(decay, decay_data):
    return METHOD.search(0.05).engine(od.Problem(decay, decay_data, scale={"k": "log"}))


def draws_of(risk, phi, **more) -> Draws:
    z = risk.mean
    return Draws(phi, z, np.full_like(z, 0.3), np.array([0.05]), {"states": 0.25}, 1.5, **more)


def chains(shift: float = 0.0, n: int = 400) -> np.ndarray:
    """log k (4, n, 1) around log 0.7, the chains apart by a shift."""
    noise = 0.05 * np.random.default_rng(0).normal(size=(4, n, 1))
    return np.log(0.7) + noise + shift * np.arange(4)[:, None, None]


def test_estimates_are_posterior_means_in_the_units_of_the_user(risk):
    phi = chains()
    fit = to_fit(METHOD, 3, risk, draws_of(risk, phi))
    k = np.exp(phi[..., 0])
    assert fit.theta["k"] == pytest.approx(k.mean())
    assert fit.details["theta_sd"]["k"] == pytest.approx(k.std())
    np.testing.assert_allclose(fit.samples["k"], k)
    np.testing.assert_allclose(fit.states.to_numpy(), risk.units.user(risk.mean), rtol=1e-9)
    np.testing.assert_allclose(fit.experiments["1"].curve.sd, 0.3 * risk.units.scale[0])
    assert (fit.method, fit.seed, fit.gamma) == ("fgpgm", 3, {"x": 0.05})
    assert fit.details["acceptance"] == {"states": 0.25}
    assert fit.stages["fgpgm"].seconds == 1.5


def test_chains_that_agree_are_converged_and_those_that_do_not_say_so(risk):
    good, bad = (to_fit(METHOD, 0, risk, draws_of(risk, chains(shift))) for shift in (0.0, 0.3))
    assert good.converged
    assert good.status.startswith("converged: R-hat at most 1.0")
    assert not bad.converged
    assert bad.status.startswith("do not use: the chains have not mixed")
    assert bad.details["r_hat"]["k"] > 1.5 > good.details["r_hat"]["k"]


def test_divergent_draws_are_counted_against_the_result(risk):
    fit = to_fit(METHOD, 0, risk, draws_of(risk, chains(), divergences=80))
    assert fit.details["divergences"] == 80
    assert fit.status == "do not use: 5% of the draws diverged"


def test_further_numbers_are_among_the_details(risk):
    assert to_fit(METHOD, 0, risk, draws_of(risk, chains(), details={"swaps": [0.2]})).details["swaps"] == [0.2]


def test_without_a_free_parameter_there_are_states_and_no_samples(decay, decay_data):
    fixed = METHOD.search(0.05).engine(od.Problem(decay, decay_data, fixed={"k": 0.7}))
    fit = to_fit(METHOD, 0, fixed, draws_of(fixed, np.empty((4, 50, 0))))
    assert fit.samples == {}
    assert fit.theta == {"k": 0.7}
    assert fit.converged


@settings(max_examples=25, deadline=None)
@given(chains=st.integers(1, 8), n=st.integers(1, 3000))
def test_what_is_kept_are_draws_of_the_first_chains_evenly_and_in_order(chains, n):
    draws = np.arange(chains * n, dtype=float).reshape(chains, n)
    kept = thin(draws)
    assert kept.shape == (min(chains, 4), min(n, 1000))
    assert (kept[:, 0] == draws[:4, 0]).all()
    assert (kept[:, -1] == draws[:4, -1]).all()
    steps = np.diff(kept, axis=1)
    assert (steps > 0).all()
    assert steps.max(initial=0.0) - steps.min(initial=np.inf) <= 1
