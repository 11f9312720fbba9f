"""AGM: its population against quadrature, its ladder, and what a Fit of it says."""

import numpy as np
import pytest

import odinfer as od
from methods.linear_posterior import agrees, decay_problem, gaussian
from odinfer.errors import InputError
from odinfer.paper.agm import Agm, temperature_ladder
from odinfer.paper.parallel_tempering import proposal_roots, respace_temperatures

OPTIONS = {"kernel": "matern52", "jitter": 1e-2, "chains": 4, "iterations": 80_000}


def exact(risk, low, high):
    """Posterior mean and sd of k and mean of γ by quadrature over both, the states integrated out exactly."""
    k, log_gamma = np.linspace(low, high, 161), np.linspace(np.log(1e-5), np.log(20.0), 100)
    gamma = np.exp(log_gamma)
    level = np.array([[gaussian(risk, v, g)[2] + np.log(g) - g for g in gamma] for v in k])
    p = np.exp(level - level.max())
    p /= p.sum()
    mean = p.sum(1) @ k
    return mean, np.sqrt(p.sum(1) @ (k - mean) ** 2), p.sum(0) @ gamma


def test_the_population_has_the_posterior_of_theta_and_gamma(decay, decay_data):
    problem = decay_problem(decay, decay_data, bounds={"k": (0.0, 2.0)})
    method = Agm(**OPTIONS)
    told = []
    fit = method.fit(problem, progress=lambda what, share: told.append(share))
    mean, sd, gamma = exact(method.search("learn").engine(problem), 0.0, 2.0)
    found = fit.theta["k"], fit.details["theta_sd"]["k"]
    assert agrees(*found, mean, sd, 0.15)
    assert not agrees(*found, mean + 0.3 * sd, sd, 0.15)  # the check can fail
    assert fit.converged
    assert fit.gamma["x"] == pytest.approx(gamma, rel=0.25)
    assert fit.samples["k"].min() >= 0.0
    assert fit.samples["k"].max() <= 2.0
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert len(fit.details["swaps"]) == 3
    assert fit.details["temperatures"][-1] == 1.0
    again = method.fit(problem)
    assert (again.samples["k"] == fit.samples["k"]).all()
    assert (method.fit(problem, 1).samples["k"] != fit.samples["k"]).any()


def test_a_tied_gamma_is_that_of_the_coldest_chain(decay, decay_data):
    problem = decay_problem(decay, decay_data, bounds={"k": (0.0, 2.0)})
    method = Agm(**OPTIONS, gamma="2^-j")
    fit = method.fit(problem)
    assert fit.gamma["x"] == pytest.approx(2.0**-4)
    risk = method.search("learn").engine(problem)
    k = np.linspace(0.0, 2.0, 401)
    level = np.array([gaussian(risk, v, 2.0**-4)[2] for v in k])
    p = np.exp(level - level.max()) / np.exp(level - level.max()).sum()
    sd = np.sqrt(p @ (k - p @ k) ** 2)
    assert agrees(fit.theta["k"], fit.details["theta_sd"]["k"], p @ k, sd, 0.15)


def test_the_ladder_and_its_spacing():
    beta, log_gamma = temperature_ladder(Agm(), 2)
    assert beta[0] == pytest.approx(0.05**5)
    assert beta[-1] == 1.0
    assert log_gamma.shape == (20, 2)
    assert np.exp(temperature_ladder(Agm(gamma="10^-j"), 1)[1][1, 0]) == pytest.approx(0.01)
    start = np.array([0.1, 0.5, 1.0])
    moved = respace_temperatures(start, np.array([100, 10, 0]), np.array([100, 100, 0]))
    assert moved[-1] == 1.0
    assert moved[1] > 0.5  # few swaps: nearer
    assert moved[0] / moved[1] < 0.2  # many: further apart


def test_moves_of_everything_have_the_shape_of_the_tempered_posterior():
    rng = np.random.default_rng(0)
    parts = [(lambda X: X @ X.T)(rng.normal(size=(4, 6))) for _ in range(3)]
    beta = np.array([0.1, 1.0])
    R = proposal_roots(-np.tile(parts, (2, 1, 1, 1)), beta)
    for b, root in zip(beta, R, strict=True):
        np.testing.assert_allclose(root @ root.T, np.linalg.inv(parts[0] + b * parts[1] + parts[2]), rtol=1e-8)


def test_moves_of_everything_mix_where_the_authors_do_not(lv, lv_data):
    problem = od.Problem(lv.model, lv_data, positive=True)
    few = {"iterations": 100_000, "chains": 10}
    plain, whole = (Agm(**few, **more).fit(problem) for more in ({"shares": (0.1, 0.4, 0.0)}, {}))
    assert min(whole.details["ess"].values()) > 3 * min(plain.details["ess"].values())
    assert "all" not in plain.details["acceptance"]
    assert 0.15 < whole.details["acceptance"]["all"] < 0.4


def test_authors_settings_and_bad_options():
    lv = Agm.paper(od.systems.lotka_volterra)
    assert (lv.iterations, lv.chains, lv.populations, lv.prior, lv.shares) == (
        300_000,
        20,
        1,
        "gamma",
        (0.01, 0.15, 0.0),
    )
    assert Agm.paper("protein_transduction").kernel == "sigmoid"
    for bad, message in (
        ({"gamma": "2^j"}, "did you mean '2\\^-j'"),
        ({"prior": "flat"}, "unknown prior"),
        ({"chains": 0}, "chains must be a whole number"),
        ({"iterations": 100}, "at least 16 per chain"),
        ({"burn_in": 1.0}, "burn_in must be a share"),
        ({"shares": (0.5, 0.6, 0.0)}, "shares must be"),
        ({"shares": (0.1, 0.4)}, "shares must be three"),
        ({"step_x": 0.0}, "step_x must be positive"),
    ):
        with pytest.raises(InputError, match=message):
            Agm(**bad)
    with pytest.raises(InputError, match="no system"):
        Agm.paper("lorenz63")


@pytest.mark.slow
def test_accuracy_on_lotka_volterra(lv):
    errors = []
    for seed in range(1000, 1008):
        fit = Agm(iterations=400_000).fit(od.Problem(lv.model, lv.sample(0.1, seed), positive=True))
        errors.append(np.sqrt(np.mean((od.simulate(lv.model, fit.theta, lv.x0, lv.t) - lv.x) ** 2)))
    assert np.median(errors) < 1.25 * 0.065
