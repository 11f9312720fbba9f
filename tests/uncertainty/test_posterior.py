"""NUTS on a density that is known, on both targets, and in a file that ArviZ reads."""

import numpy as np
import pytest
from scipy import stats

import odinfer as od
from odinfer.uncertainty.posterior import OdinEstimate, sample
from uncertainty.hidden import count_loglik, counts


@pytest.fixture(scope="module")
def line_fit() -> od.Fit:
    t = np.linspace(0.0, 3.0, 8)
    y = 1.0 + 0.5 * t + 0.2 * np.random.default_rng(1).normal(size=8)
    return od.fit(od.Model.from_text("x' = k"), od.Data(t, y, states=["x"]))


@pytest.fixture(scope="module")
def sampled(line_fit) -> od.Fit:
    return line_fit.including(line_fit.sample(draws=1500, until=4.0))


def test_the_posterior_of_a_straight_line_is_students(line_fit, sampled):
    # With flat priors on x0 and k and 1/σ on the noise, k is Student-distributed around the regression slope.
    e = line_fit.experiments["1"]
    found = stats.linregress(e.t, e.y[:, 0])
    k = sampled.sampled.theta["k"]
    assert sampled.sampled.converged, sampled.sampled.status
    assert k.shape == (4, 1500)
    for p in (0.025, 0.25, 0.5, 0.75, 0.975):
        right = found.slope + found.stderr * stats.t.ppf(p, 6)
        assert np.quantile(k, p) == pytest.approx(right, abs=0.25 * found.stderr)
    assert max(sampled.sampled.r_hat.values()) < 1.01
    assert sampled.sampled.divergences < 30


def test_states_of_the_draws_reach_beyond_the_data(sampled):
    posterior = sampled.sampled
    assert posterior.t[0][-1] == 4.0
    low, high = posterior.band()
    assert (low < high).all()
    assert (high - low)[-1] > (high - low)[len(low) // 2]


@pytest.mark.slow
def test_a_posterior_that_is_none_is_not_believed_and_says_what_to_add():
    # Only a·b enters, and with flat priors on both a and b nothing limits them.
    t = np.linspace(0.0, 3.0, 10)
    y = 2.0 * np.exp(-0.7 * t) + 0.05 * np.random.default_rng(1).normal(size=10)
    fit = od.fit(od.Model.from_text("x' = -a*b*x"), od.Data(t, y, states=["x"]))
    found = fit.sample(chains=2, draws=200, warm_up=200)
    assert not found.converged
    assert found.status.startswith("do not use: ")
    assert found.status.endswith("; bounds or a prior for a and b may help")


@pytest.mark.slow
def test_a_long_forecast_of_what_dies_out_does_not_disturb_the_sampler():
    # Steps grow where little happens, and both states die out to less than trajectories are computed to.
    model = od.Model.from_text("x' = -k*(x - z); z' = -m*z")
    t = np.array([0.0, 0.05, 0.1, 0.2, 0.4, 1.0, 3.0, 10.0, 20.0])
    x = od.simulate(model, {"k": 5.0, "m": 0.1}, [3.0, 1.0], t)
    data = od.Data(t, x + 0.01 * np.random.default_rng(0).normal(size=x.shape), states=model.states)
    found = od.fit(model, data).sample(chains=2, draws=200, warm_up=200, until=500.0)
    assert found.divergences == 0
    assert np.isfinite(found.x[0]).all()
    assert found.x[0].shape[1] == len(found.t[0])


def test_arviz_reads_posterior_statistics_and_data(sampled, tmp_path):
    import arviz

    sampled.save(tmp_path / "fit.nc")
    data = arviz.from_netcdf(tmp_path / "fit.nc")
    np.testing.assert_array_equal(data.posterior["k"], sampled.sampled.theta["k"])
    assert {"x0_x", "sigma_x"} <= set(data.posterior.data_vars)
    assert set(data.sample_stats.data_vars) == {"lp", "acceptance_rate", "diverging", "n_steps"}
    np.testing.assert_array_equal(data.observed_data["y"], sampled.experiments["1"].y)
    assert float(arviz.summary(data, var_names=["k"])["r_hat"].iloc[0]) <= 1.01
    np.testing.assert_array_equal(sampled.posterior.posterior["k"], sampled.sampled.theta["k"])
    sampled.save(tmp_path / "fit.json")
    assert od.load(tmp_path / "fit.json").interval(kind="sample") == sampled.interval(kind="sample")


def test_the_odin_posterior_is_sampled_at_the_fits_gamma(line_fit):
    found = line_fit.sample("odin", chains=2, draws=300, warm_up=300)
    low, high = found.interval()["k"]
    assert low < line_fit.theta["k"] < high
    assert found.details["gamma"] == line_fit.gamma
    assert found.x[0].shape[2] == 1
    assert "cover the truth less often" in " ".join(line_fit.including(found).summary().split())


def test_options_that_cannot_be_used_are_refused(line_fit):
    for options, words in (({"target": "x"}, "target"), ({"chains": 0}, "chains"), ({"draws": 1.5}, "draws")):
        with pytest.raises(od.InputError, match=words):
            line_fit.sample(**options)


def test_the_same_seed_draws_the_same_and_a_fit_draws_from_its_maximum(line_fit):
    options = {"draws": 100, "warm_up": 200}
    one, two, other = (sample(line_fit.maximum(), seed=seed, **options) for seed in (5, 5, 6))
    np.testing.assert_array_equal(one.theta["k"], two.theta["k"])
    np.testing.assert_array_equal(one.theta["k"], line_fit.sample(seed=5, **options).theta["k"])
    assert (one.theta["k"] != other.theta["k"]).any()


def test_the_start_of_the_odin_posterior_is_made_from_what_a_fit_says(line_fit):
    found = OdinEstimate.of(line_fit.problem, line_fit.options, line_fit.stages["odin"].theta, line_fit.gamma)
    assert found.problem is line_fit.problem
    assert found.phi == pytest.approx(found.problem.phi(np.array([line_fit.stages["odin"].theta["k"]])))
    assert found.gamma.tolist() == list(line_fit.gamma.values())
    assert found.rule.fixed is None
    s = found.engine.minimise(found.engine.mean, found.phi, found.rule)
    assert s.phi[0] == pytest.approx(found.phi[0], rel=1e-3)
    with pytest.raises(od.InputError, match="inside the data only"):
        sample(found, until=5.0)


def test_the_posterior_of_counts_is_that_of_the_poisson_likelihood():
    problem = counts()
    fit = od.fit(problem)
    found = fit.sample(chains=2, draws=400, warm_up=200)
    assert (found.x0, found.sigma) == ({}, {})
    k = np.linspace(0.3, 1.0, 4001)
    weight = np.exp(count_loglik(problem, k) - count_loglik(problem, k).max())
    share = np.cumsum(weight) / weight.sum()
    spread = np.interp(0.84, share, k) - np.interp(0.16, share, k)
    for p in (0.05, 0.5, 0.95):
        assert np.quantile(found.theta["k"], p) == pytest.approx(np.interp(p, share, k), abs=0.12 * spread)


def test_odins_posterior_is_refused_where_a_state_is_hidden():
    with pytest.raises(
        od.InputError, match="target='odin' needs every state observed with Gaussian noise; x is hidden"
    ):
        od.fit(counts()).sample("odin")
