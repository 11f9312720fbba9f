"""A maximum of the likelihood: kept by its fit, found again from a file, and what its bands are."""

from dataclasses import replace

import numpy as np
import pytest

import odinfer as od
from odinfer.gp.curves import Curve
from odinfer.methods.multistart_mle import replacement_warnings
from odinfer.uncertainty import maximum as module
from odinfer.uncertainty.maximum import Maximum
from odinfer.uncertainty.small_sample import quantile
from odinfer.uncertainty.verification import verified_optimum


def test_a_loaded_fit_keeps_its_intervals_and_computes_more_once_its_problem_is_attached(lv, lv_data, lv_fit, tmp_path):
    lv_fit.save(tmp_path / "fit.json")
    back = od.load(tmp_path / "fit.json")
    assert back.interval() == lv_fit.interval()
    assert back.covariance.equals(lv_fit.covariance)
    for ask in (lambda: back.interval(0.9), lambda: back.profile("a"), lambda: back.forecast([3.0])):
        with pytest.raises(od.InputError, match=r"result\.attach\(od\.Problem"):
            ask()
    problem = od.Problem(lv.model, lv_data)
    assert back.attach(problem).interval(0.9)["a"] == pytest.approx(lv_fit.interval(0.9)["a"], rel=1e-6)
    other = od.Problem(od.Model.from_text("prey' = q*prey; predator' = -predator"), lv_data)
    with pytest.raises(od.InputError, match="another problem"):
        back.attach(other)


def loaded(fit, path) -> od.FitResult:
    fit.save(path / "fit.json")
    return od.load(path / "fit.json")


def test_the_maximum_of_a_fit_is_found_again_from_a_file(lv_fit, growth_fit, tmp_path):
    for fit in (lv_fit, growth_fit):
        kept, back = fit.maximum(), loaded(fit, tmp_path)
        theta = np.array([back.theta[p] for p in back.parameter_names])
        found = Maximum.near(fit.problem, theta, [e.curve for e in back.experiments.values()])
        np.testing.assert_allclose(found.phi, kept.phi, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(found.sigma, kept.sigma, rtol=1e-6)
        assert found.loglik == pytest.approx(kept.loglik, abs=1e-6)
        for mine, other in zip(found.refined.paths, kept.refined.paths, strict=True):
            np.testing.assert_allclose(mine.x0, other.x0, rtol=1e-6)


@pytest.fixture
def searches(monkeypatch) -> list[od.Problem]:
    """The problems whose likelihood is maximised from a guess from now on."""
    asked, refine = [], module.refine

    def counted(problem, *more, **options):
        asked.append(problem)
        return refine(problem, *more, **options)

    monkeypatch.setattr(module, "refine", counted)
    return asked


def test_a_fit_keeps_its_maximum_and_nothing_looks_for_it_again(lv_fit, searches):
    assert lv_fit.maximum() is lv_fit.cache.maximum
    lv_fit.profile("a")
    lv_fit.forecast([2.5])
    lv_fit.bootstrap(10)
    lv_fit.interval(0.8)
    assert searches == []


def test_a_fit_from_a_file_looks_for_it_once_where_it_is_needed(lv_fit, searches, tmp_path):
    back = loaded(lv_fit, tmp_path)
    back.interval()
    assert searches == []
    live = back.attach(lv_fit.problem)
    live.profile("a")
    live.forecast([2.5])
    assert searches == [lv_fit.problem]


def test_where_no_trajectory_is_near_there_is_no_maximum():
    # x' = x² from 1 ends at t = 1: nothing reaches the data that go on to t = 3.
    t = np.linspace(0.0, 3.0, 8)
    data = od.Data(t, 1.0 + t, states=["x"])
    problem = od.Problem(od.Model.from_text("x' = x^2 + 0*k"), data, bounds={"x": (1.0, None)})
    curve = Curve(t, (1.0 + t)[:, None], np.ones((8, 1)), np.zeros((8, 1)))
    assert Maximum.near(problem, np.ones(1), [curve]) is None


def test_curves_are_the_trajectories_with_students_band(lv_fit):
    best = lv_fit.maximum()
    (curve,), path = best.curves(), best.refined.paths[0]
    x, slope = path.at(curve.t)
    np.testing.assert_allclose(curve.x, x)
    np.testing.assert_allclose(curve.slope, slope)
    S = path.sensitivity_at(best.refined.condensed[0], curve.t)
    sd, freedom = best.info.spread(best.likelihood.unknowns.lift(0, S))
    assert (freedom < 50).all()
    np.testing.assert_allclose(quantile(np.inf, 0.95) * curve.sd, quantile(freedom, 0.95) * sd, rtol=1e-3)
    np.testing.assert_array_equal(lv_fit.experiments["1"].curve.sd, curve.sd)


def test_bands_are_no_narrower_than_trajectories_are_computed_to(decay):
    t = np.linspace(0.0, 4.0, 15)
    best = od.fit(decay, od.Data(t, 3.0 * np.exp(-0.7 * t), states=["x"])).maximum()
    assert (best.band_sd(best.refined, 0, t) >= best.info.accuracy).all()


def test_it_says_where_the_search_ended(lv_fit):
    best, stage = lv_fit.maximum(), lv_fit.stages["refined"]
    assert best.converged
    assert best.iterations > 0
    assert best.problem is lv_fit.problem
    assert stage.loglik == best.loglik == -best.objective
    np.testing.assert_allclose(list(lv_fit.theta.values()), best.problem.theta(best.phi))
    np.testing.assert_allclose(list(lv_fit.sigma.values()), best.left)
    assert (best.left > best.sigma).all()  # some observations are spent on the unknowns
    assert best.intervals(0.5).level == 0.5


@pytest.mark.slow
def test_a_mesh_that_stepped_over_a_pole_gives_way_to_trajectories_that_exist():
    t, s = np.reshape(
        [0, 3.095, 0.257, 2.417, 0.266, 2.648, 0.372, 2.579, 0.714, 2.16, 1.134, 1.347, 1.239, 1.106, 1.419, 0.992,
         1.491, 0.782, 1.839, 0.103, 2.616, 0.0533, 2.72, 0.138, 3.299, -0.0741, 3.973, -0.0268, 4.388, 0.0708,
         4.6, -0.0983, 4.605, 0.178, 4.827, 0.192, 4.886, 0.346, 5.001, 0.113, 5.332, 0.125, 5.425, -0.125,
         5.807, 0.0154, 5.917, -0.247], (-1, 2),
    ).T  # fmt: skip
    model = od.Model.from_text("s' = -v*s/(k + s)")
    best = od.fit(model, od.Data(t, s[:, None], states=["s"])).maximum()
    assert best.reintegrated_loglik == pytest.approx(best.loglik, abs=0.01)
    assert best.loglik == pytest.approx(12.91, abs=0.02)
    assert 0.0 < best.phi[1] < 0.01


def test_an_optimum_that_re_integration_does_not_confirm_is_replaced_by_one_that_it_does(decay, decay_data):
    best = od.fit(decay, decay_data).maximum()
    doubtful = replace(best, refined=replace(best.refined, phi=best.phi + 1.0))
    assert doubtful.reintegrated_loglik < best.loglik - 1.0
    assert best.confirmed
    assert not doubtful.confirmed
    assert verified_optimum(best) is best
    found = verified_optimum(doubtful)
    assert found.loglik == pytest.approx(best.loglik, abs=0.01)
    assert found.confirmed
    assert found.converged
    (told,) = replacement_warnings(doubtful, found)
    assert f"{doubtful.loglik:.4g}" in told
    assert f"({found.loglik:.4g})" in told
    assert not replacement_warnings(best, best)
