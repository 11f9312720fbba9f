"""FGPGM: its samplers against known posteriors, against each other, and what a Fit of it says."""

import builtins
import dataclasses
import importlib.util

import numpy as np
import pytest

import odinfer as od
from methods.linear_posterior import agrees, decay_problem, gaussian
from odinfer.errors import InputError
from odinfer.paper.fgpgm import Fgpgm, _metropolis, _nuts
from odinfer.sampling import density as ds

GAMMA = 0.05
OPTIONS = {"sampler": "metropolis", "kernel": "matern52", "jitter": 1e-2, "gamma": GAMMA}


def standard(fit, risk):
    curve = next(iter(fit.experiments.values())).curve
    return risk.units.standard(curve.x)[:, 0], curve.sd[:, 0] / risk.units.scale[0]


def test_states_of_a_linear_model_have_their_gaussian_posterior(decay, decay_data):
    problem = decay_problem(decay, decay_data, fixed={"k": 0.7})
    method = Fgpgm(**OPTIONS, draws=8000)
    risk = method.search(GAMMA).engine(problem)
    mean, sd = standard(method.fit(problem), risk)
    true_mean, cov, _ = gaussian(risk, 0.7, GAMMA)
    assert agrees(mean, sd, true_mean, np.sqrt(np.diag(cov)))
    for k, gamma in ((0.8, GAMMA), (0.7, 4 * GAMMA)):  # the check can fail
        wrong_mean, wrong, _ = gaussian(risk, k, gamma)
        assert not agrees(mean, sd, wrong_mean, np.sqrt(np.diag(wrong)))


def exact_k(risk, gamma, low, high):
    """Posterior mean and sd of k by quadrature, the states integrated out exactly."""
    k = np.linspace(low, high, 801)
    level = np.array([gaussian(risk, v, gamma)[2] for v in k])
    p = np.exp(level - level.max())
    p /= p.sum()
    return p @ k, np.sqrt(p @ (k - p @ k) ** 2)


@pytest.mark.parametrize("bounds", [(0.0, 3.0), (0.65, 0.75)], ids=["wide", "narrow"])
def test_the_random_walk_has_the_posterior_of_theta_also_at_bounds(decay, decay_data, bounds):
    problem = decay_problem(decay, decay_data, bounds={"k": bounds, "x": (-5.0, 9.0)})
    method = Fgpgm(**OPTIONS, draws=8000)
    fit = method.fit(problem, seed=1)
    risk = method.search(GAMMA).engine(problem)
    mean, sd = exact_k(risk, GAMMA, *bounds)
    draws = fit.samples["k"]
    assert agrees(fit.theta["k"], fit.details["theta_sd"]["k"], mean, sd)
    assert not agrees(fit.theta["k"], fit.details["theta_sd"]["k"], mean + 0.2 * sd, sd)
    assert draws.min() >= bounds[0]
    assert draws.max() <= bounds[1]
    assert fit.converged
    assert fit.gamma == {"x": GAMMA}


@pytest.mark.slow
def test_both_samplers_agree_on_a_small_problem(lv):
    problem = od.Problem(lv.model, lv.sample(0.1, 0, np.linspace(0.0, 2.0, 10)), positive=True)
    told = []
    walk = Fgpgm(gamma=0.3, sampler="metropolis", draws=10_000).fit(
        problem, progress=lambda what, share: told.append(share)
    )
    nuts = Fgpgm(gamma=0.3, sampler="nuts", draws=500, burn_in=300).fit(problem)
    assert nuts.converged
    assert nuts.details["divergences"] <= 20
    for p in lv.theta:
        sd = nuts.details["theta_sd"][p]
        error = sd * np.sqrt(1 / nuts.details["ess"][p] + 1 / walk.details["ess"][p])
        assert abs(nuts.theta[p] - walk.theta[p]) < 4 * error
        assert walk.details["theta_sd"][p] == pytest.approx(sd, rel=0.35)
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert walk.samples["a"].shape == (4, 1000)
    assert set(walk.details["acceptance"]) == {"states", *lv.theta}


def test_the_same_seed_gives_the_same_draws_and_short_chains_are_not_to_be_used(decay, decay_data):
    problem = decay_problem(decay, decay_data, bounds={"x": (-5.0, 9.0)})
    one, same, other = (Fgpgm(**OPTIONS, draws=250, burn_in=250).fit(problem, seed) for seed in (3, 3, 4))
    assert (one.samples["k"] == same.samples["k"]).all()
    assert (one.samples["k"] != other.samples["k"]).any()
    far = Fgpgm(**OPTIONS, draws=250, burn_in=0, adapt=False, step_x=1e-4, step_theta=1e-5)
    fit = far.fit(problem)
    assert not fit.converged
    assert fit.status.startswith("do not use: ")


def test_authors_settings_and_bad_options():
    lv = Fgpgm.paper("lotka_volterra")
    assert (lv.gamma, lv.kernel, lv.draws, lv.start, lv.theta_range) == (0.3, "rbf", 300_000, "paper", (0.0, 100.0))
    assert Fgpgm.paper(od.systems.protein_transduction, draws=10).state_range == 5.0
    for bad, message in (
        ({"sampler": "nut"}, "did you mean 'nuts'"),
        ({"gamma": 0.0}, "gamma must be positive"),
        ({"chains": 0}, "chains must be a whole number"),
        ({"start": "x"}, "unknown start"),
        ({"kernel": "rbff"}, "kernel"),
        ({"theta_range": (1.0, 0.0)}, "theta_range"),
        ({"state_range": -1.0}, "state_range"),
    ):
        with pytest.raises(InputError, match=message):
            Fgpgm(**bad)
    with pytest.raises(InputError, match="no system"):
        Fgpgm.paper("lorenz63")


def test_nuts_without_blackjax_says_what_to_install(monkeypatch, lv, lv_data):
    real = builtins.__import__

    def without(name, *rest, **options):
        if name == "blackjax":
            raise ImportError(name)
        return real(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match=r"pip install 'odinfer\[sample\]'"):
        Fgpgm(sampler="nuts").fit(od.Problem(lv.model, lv_data))


def test_nuts_is_taken_where_blackjax_is_and_the_walk_elsewhere(monkeypatch, decay, decay_data):
    found = Fgpgm().decided()
    assert (found.sampler, found.draws, found.burn_in) == ("nuts", 1000, 500)
    assert Fgpgm(sampler="metropolis").lengths == (40_000, 2000)
    assert Fgpgm(draws=7).decided().lengths == (7, 500)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    method = Fgpgm(**OPTIONS | {"sampler": "auto"}, draws=250)
    fit = method.fit(decay_problem(decay, decay_data))
    assert (fit.options["sampler"], fit.options["draws"], fit.options["burn_in"]) == ("metropolis", 250, 2000)


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["metropolis", "nuts"])
def test_calibration_on_the_model_that_generated_the_data(decay, decay_data, sampler):
    """Ranks of k among its posterior draws are uniform if k and y come from the density's own joint distribution.

    With a prior on k, the joint density of (z, k) without data is sampled by quadrature over k; y adds noise.
    """
    prior = ("normal", 0.7, 0.1)
    problem = decay_problem(decay, decay_data, prior={"k": prior})
    length = 2000 if sampler == "metropolis" else 300
    method = Fgpgm(**OPTIONS | {"sampler": sampler}, chains=2, draws=length, burn_in=500)
    sample = _metropolis if sampler == "metropolis" else _nuts
    risk = method.search(GAMMA).engine(problem)
    block = dataclasses.replace(risk.blocks[0], weight=0 * risk.blocks[0].weight)
    free = dataclasses.replace(risk, blocks=(block,))
    grid = np.linspace(0.3, 1.1, 801)
    level = np.array([gaussian(free, k, GAMMA)[2] for k in grid]) - 0.5 * ((grid - 0.7) / 0.1) ** 2
    p = np.exp(level - level.max())
    rng = np.random.default_rng(0)
    form, target = ds.posterior_density(risk)
    ranks = []
    for i in range(120):
        k = rng.choice(grid, p=p / p.sum()) + rng.uniform(-0.5e-3, 0.5e-3)
        mean, cov, _ = gaussian(free, k, GAMMA)
        z = rng.multivariate_normal(mean, cov)
        y = z + rng.normal(size=len(z)) / np.sqrt(risk.blocks[0].weight[0])
        start = (np.broadcast_to(y, (2, 1, len(z))), np.full((2, 1), 0.7))
        draws = sample(method, form, target._replace(y=y[None]), *start, i, lambda what, share: None)
        ranks.append((draws.phi[..., 0] < k).mean())
    counts = np.histogram(ranks, 6, (0, 1))[0]
    assert ((counts - 20) ** 2 / 20).sum() < 20.5  # χ² with 5 degrees of freedom, p = 0.001


@pytest.mark.slow
def test_accuracy_on_lotka_volterra(lv):
    errors = []
    for seed in range(1000, 1010):
        fit = Fgpgm.paper(lv, start="odin", draws=20_000, chains=4, adapt=True).fit(lv.problem(lv.sample(0.1, seed)))
        x = od.simulate(lv.model, fit.theta, lv.x0, lv.t)
        errors.append(np.sqrt(np.mean((x - lv.x) ** 2)))
    assert np.median(errors) < 1.25 * 0.065
