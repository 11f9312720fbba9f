"""Two-step gradient matching: smoothed states, then θ by least squares."""

import numpy as np
import pytest
from scipy.optimize import least_squares

import odinfer as od
from odinfer.methods.gpr import Gpr
from odinfer.odin import startpoints
from odinfer.paper.two_step import TwoStep, polish, spline_match


@pytest.fixture(scope="module", params=["gp", "spline"])
def smoother(request):
    return request.param


def test_without_noise_it_finds_the_truth(lv, smoother):
    t = np.linspace(0.0, 2.0, 60)
    data = od.Data(t, lv.states(t), states=lv.model.states)
    fit = od.fit(lv.model, data, method=TwoStep(smoother=smoother))
    assert fit.converged
    assert fit.theta == pytest.approx(lv.theta, rel=0.03)


def test_with_little_noise_it_comes_near(lv, smoother):
    errors = []
    for seed in range(10):
        fit = od.fit(lv.model, lv.sample(0.1, seed), method=TwoStep(smoother=smoother), seed=seed)
        errors.append(np.abs([fit.theta[p] / v - 1.0 for p, v in lv.theta.items()]).max())
        assert fit.details["starts_agreeing"] >= 3
    assert np.median(errors) < 0.2


def test_the_states_are_those_of_the_regression_and_stay_as_they_are(lv, lv_data):
    alone, fit = (od.fit(lv.model, lv_data, method=m) for m in (Gpr(), TwoStep()))
    np.testing.assert_array_equal(fit.states, alone.states)
    assert fit.gamma == fit.verdicts == {}


def test_the_spline_match_is_the_least_squares_solution_of_scipy(lv, lv_data):
    fit = od.fit(lv.model, lv_data, method=TwoStep(smoother="spline"))
    x, slope = (fit.experiments["1"].curve.at(lv.t)[i] for i in (0, 1))
    scale = lv_data.experiments[0].y.std(0)

    def residual(theta):
        f = lv.model.linearise(lv.t, x, theta, np.zeros((len(lv.t), 0)))[0]
        return ((f - slope) / scale).ravel()

    best = least_squares(residual, np.ones(4), xtol=1e-12, ftol=1e-12)
    np.testing.assert_allclose([*fit.theta.values()], best.x, rtol=1e-5)


def test_the_match_is_a_minimum_and_a_prior_pulls_it(lv, lv_data):
    free = od.fit(lv.model, lv_data, method=TwoStep())
    risk_of = od.Odin(grid=1, temper=1.0)
    problem = od.Problem(lv.model, lv_data, positive=False)
    again = polish(risk_of.risk(problem), np.array([*free.theta.values()]) * 1.3, 1e-2)
    np.testing.assert_allclose(again.phi, [*free.theta.values()], rtol=1e-4)
    for smoother in ("gp", "spline"):
        pulled = od.fit(
            od.Problem(lv.model, lv_data, prior={"a": ("normal", 3.0, 1e-4)}), method=TwoStep(smoother=smoother)
        )
        assert pulled.theta["a"] == pytest.approx(3.0, abs=1e-2)


def test_a_bound_in_the_way_is_kept_and_said(lv, lv_data):
    fit = od.fit(od.Problem(lv.model, lv_data, bounds={"a": (0.0, 1.5)}), method=TwoStep())
    assert fit.theta["a"] == 1.5
    assert any("'a' is at its bound" in w for w in fit.warnings)


def test_equations_that_hold_exactly_need_no_slack(lv, lv_data):
    fit = od.fit(lv.model, lv_data, method=TwoStep(gamma=0.0))
    assert fit.converged
    assert fit.theta == pytest.approx(lv.theta, rel=0.5)


def test_log_scale_and_linear_scale_agree(decay, decay_data):
    plain, log = (
        od.fit(od.Problem(decay, decay_data, scale=scale), method=TwoStep()).theta["k"] for scale in ({}, {"k": "log"})
    )
    assert plain == pytest.approx(log, rel=1e-4)
    assert plain == pytest.approx(0.7, rel=0.1)


def test_without_free_parameters_it_still_reports_the_states(decay, decay_data, smoother):
    fit = od.fit(od.Problem(decay, decay_data, fixed={"k": 0.7}), method=TwoStep(smoother=smoother))
    assert (fit.converged, fit.theta) == (True, {"k": 0.7})


def test_when_no_start_is_finite_the_states_remain_and_the_status_says_so(lv, lv_data, smoother, monkeypatch):
    monkeypatch.setattr(startpoints, "match", lambda risk, phi, gamma: (phi, np.full(len(phi), np.inf)))
    fit = od.fit(lv.model, lv_data, method=TwoStep(smoother=smoother))
    assert not fit.converged
    assert fit.status.startswith("failed")
    assert np.isnan([*fit.theta.values()]).all()
    assert np.isfinite(fit.states.to_numpy()).all()


def test_the_paper_preset_has_the_published_gammas():
    gammas = [TwoStep.paper(s).gamma for s in ("lotka_volterra", "fitzhugh_nagumo", "protein_transduction")]
    assert gammas == [0.3, 1e-3, 1e-4]


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"smoother": "splin"}, "spline"),
        ({"gamma": -1.0}, "gamma"),
        ({"gamma": "learn"}, "gamma"),
        ({"starts": 0}, "starts"),
        ({"grid": 1.5}, "grid"),
        ({"kernel": "rbff"}, "rbf"),
    ],
)
def test_bad_options_are_refused_by_name(options, word):
    with pytest.raises(od.InputError, match=word):
        TwoStep(**options)


def test_slopes_of_the_spline_are_linear_in_its_values_between_observations_too(lv, lv_data):
    risk, (curve,) = spline_match(od.Problem(lv.model, lv_data), grid=3)
    D, mean = risk.blocks[0].smoother.D, risk.blocks[0].smoother.mean
    slope = (D @ mean[..., None])[..., 0].T * risk.units.scale / risk.units.time
    np.testing.assert_allclose(slope, curve.at(risk.t)[1], atol=1e-3)
