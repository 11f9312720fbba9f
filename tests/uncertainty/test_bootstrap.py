"""The bootstrap refits as a fit would, gives the same numbers for any number of workers, and comes back from a file."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from scipy import stats

import odinfer as od
from odinfer.likelihood.collocation_batch import CollocationTrajectories
from odinfer.uncertainty.bootstrap import refits
from uncertainty.hidden import counts


@pytest.fixture(scope="module")
def made(lv_fit) -> od.Fit:
    return lv_fit.including(lv_fit.bootstrap(60, seed=1, until=2.4))


def test_refits_side_by_side_reach_the_maximum_of_a_fit_of_their_own(lv, lv_fit):
    best = lv_fit.maximum()
    likelihood, refined, info = best.likelihood, best.refined, best.info
    rng = np.random.default_rng(4)
    y = lv_fit.states.to_numpy() + info.sigma * rng.normal(size=(3, *lv_fit.states.shape))
    on = CollocationTrajectories.of(likelihood.with_observations([y]), refined)
    found = on.maximise(on.start(refined, 3))
    for b in range(3):
        alone = od.fit(lv.model, od.Data(lv.t, y[b], states=lv.model.states)).stages["refined"]
        assert found.value[b] == pytest.approx(alone.objective, abs=1e-4)
        np.testing.assert_allclose(likelihood.problem.theta(found.phi[b]), list(alone.theta.values()), rtol=2e-3)


def test_the_spread_of_refits_is_that_of_the_covariance(made):
    draws = np.stack(list(made.bootstrapped.theta.values()))
    assert made.bootstrapped.failed == 0
    ratio = np.log(draws).std(1) / np.sqrt(np.diag(made.covariance))
    assert ((ratio > 0.7) & (ratio < 1.3)).all()


def test_intervals_of_a_straight_line_are_students():
    t = np.linspace(0.0, 3.0, 8)
    y = 1.0 + 0.5 * t + 0.2 * np.random.default_rng(1).normal(size=8)
    found = stats.linregress(t, y)
    boot = od.fit(od.Model.from_text("x' = k"), od.Data(t, y, states=["x"])).bootstrap(4000, seed=2)
    for level in (0.5, 0.95):
        half = found.stderr * stats.t.ppf(0.5 * (1 + level), 6)
        assert boot.interval(level)["k"] == pytest.approx([found.slope - half, found.slope + half], abs=0.12 * half)


def test_known_noise_is_not_drawn():
    t = np.linspace(0.0, 3.0, 8)
    data = od.Data(t, 1.0 + 0.5 * t + 0.2 * np.random.default_rng(1).normal(size=8), states=["x"])
    fit = od.fit(od.Problem(od.Model.from_text("x' = k"), data, sigma={"x": 0.2}))
    sd = 0.2 / np.sqrt(((t - t.mean()) ** 2).sum())
    assert fit.bootstrap(4000).theta["k"].std() == pytest.approx(sd, rel=0.05)


def test_intervals_and_bands_contain_the_estimate_and_nest(made):
    boot = made.bootstrapped
    for name, (low, high) in boot.interval().items():
        inner = boot.interval(0.5)[name]
        assert low < inner[0] < inner[1] < high
        assert low < made.theta[name] < high
    low, high = boot.band()
    assert low.shape == (30, 2)
    assert (low < high).all()
    assert boot.t[0][-1] == pytest.approx(2.4)


def test_the_numbers_do_not_depend_on_the_number_of_workers(lv_fit):
    best = lv_fit.maximum()
    likelihood, refined, info = best.likelihood, best.refined, best.info
    direct = refits(likelihood, refined, info.sigma, info.freedom, [lv_fit.experiments["1"].t], 25, (3, 0))
    for workers in (1, 2):
        found = lv_fit.bootstrap(30, seed=3, workers=workers)
        np.testing.assert_allclose(found.draws[:25], direct[0], rtol=1e-9)
    assert not np.allclose(lv_fit.bootstrap(30, seed=4).draws, found.draws)


def test_files_hold_the_refits(made, tmp_path):
    made.save(tmp_path / "fit.json")
    assert od.load(tmp_path / "fit.json").interval(kind="bootstrap") == made.interval(kind="bootstrap")
    made.save(tmp_path / "fit.nc")
    with xr.open_dataset(tmp_path / "fit.nc", group="bootstrap") as group:
        np.testing.assert_array_equal(group["a"], made.bootstrapped.theta["a"])


def test_without_a_single_refit_that_worked_there_is_no_interval(made):
    lost = replace(made.bootstrapped, draws=np.empty((0, 4)), x=(np.empty((0, 30, 2)),), failed=60)
    assert np.isnan(list(lost.interval().values())).all()
    assert np.isnan(lost.band()).all()
    assert "60 of 60 refits of the bootstrap failed" in made.including(lost).summary()


@pytest.mark.parametrize("n", [5, 2.5, "many"])
def test_too_few_refits_are_refused(lv_fit, n):
    with pytest.raises(od.InputError, match="n must be a whole number from 10 on"):
        lv_fit.bootstrap(n)


def test_refits_to_simulated_counts_scatter_as_the_likelihood_says():
    fit = od.fit(counts())
    found = fit.bootstrap(100, until=5.0)
    (low, high), (a, b) = fit.interval()["k"], found.interval()["k"]
    assert (b - a) / (high - low) == pytest.approx(1.0, abs=0.35)
    assert found.failed == 0
    assert found.x[0].shape[2] == 1


def test_refits_whose_parameters_run_off_on_a_log_scale_warn_of_nothing():
    t = np.arange(14.0)
    y = np.array([3.0, 8, 26, 76, 225, 298, 258, 233, 189, 128, 68, 29, 14, 4])
    text = "S' = -b*S*I/763; I' = b*S*I/763 - g*I; S(0) = 763 - I(0); log b, g, I(0); n ~ negbinomial(I)"
    fit = od.fit(od.Model.from_text(text), od.Data(t, y[:, None], ["n"]))
    assert np.isfinite(list(fit.bootstrap(50).interval()["b"])).all()
