"""Gaussian process regression as a method: step 1 of ODIN and nothing else."""

import numpy as np
import pytest

import odinfer as od
from odinfer.gp.smoother import posterior_curves
from odinfer.gp.standardisation import Units
from odinfer.methods.gpr import Gpr


@pytest.fixture(scope="module")
def fitted(lv, lv_data):
    return od.fit(lv.model, lv_data, method=Gpr())


def test_its_states_are_where_odin_starts_from(lv, lv_data, fitted):
    risk = od.Odin(grid=1, temper=1.0).risk(od.Problem(lv.model, lv_data))
    np.testing.assert_allclose(fitted.states, risk.units.user(risk.mean), atol=1e-4)


def test_nothing_is_said_about_parameters_that_are_not_fixed(lv, lv_data):
    fit = od.fit(od.Problem(lv.model, lv_data, fixed={"a": 2.0}), method=Gpr())
    assert fit.theta["a"] == 2.0
    assert np.isnan([fit.theta[p] for p in "bcd"]).all()
    assert fit.gamma == fit.verdicts == {}
    assert (fit.converged, fit.warnings) == (True, ())


def test_kernel_and_evidence_of_every_state_are_reported(fitted):
    assert set(fitted.details["kernels"]) == set(fitted.details["evidence"]) == {"prey", "predator"}
    assert fitted.stages["gpr"].objective == -sum(fitted.details["evidence"].values())


def test_it_smooths_better_than_the_observations_and_finds_their_noise(lv, lv_data, fitted):
    assert np.sqrt(np.mean((fitted.states.to_numpy() - lv.x) ** 2)) < 0.085
    assert all(0.05 < s < 0.2 for s in fitted.sigma.values())


def test_the_band_holds_most_of_the_truth(lv):
    inside = []
    for seed in range(20):
        fit = od.fit(lv.model, lv.sample(0.1, seed), method=Gpr())
        band = fit.predict(lv.t)
        for k, s in enumerate(lv.model.states):
            inside.append((band[f"{s}_low"] <= lv.x[:, k]) & (lv.x[:, k] <= band[f"{s}_high"]))
    assert 0.85 < np.mean(inside) < 0.995


def test_the_slope_is_the_derivative_of_the_mean(lv, lv_data):
    problem = od.Problem(lv.model, lv_data)
    units, hypers = Gpr().smooth(problem)
    (curve,) = posterior_curves(problem, units, hypers)
    middle = 0.5 * (curve.slope[1:] + curve.slope[:-1])
    np.testing.assert_allclose(np.diff(curve.x, axis=0) / np.diff(curve.t)[:, None], middle, atol=0.02)


def test_a_state_that_an_experiment_does_not_observe_keeps_its_prior_there(lv, tmp_path):
    y = lv.sample(0.1, 0).experiments[0].y
    rows = [f"both,{t},{a},{b}" for t, (a, b) in zip(lv.t, y, strict=True)]
    rows += [f"half,{t},{a}," for t, a in zip(lv.t, y[:, 0], strict=True)]
    (tmp_path / "d.csv").write_text("\n".join(["experiment,time,prey,predator", *rows]))
    problem = od.Problem(lv.model, od.read_csv(tmp_path / "d.csv"))
    curve = od.fit(problem, method=Gpr()).experiments["half"].curve
    np.testing.assert_allclose(curve.x[:, 1], Units.of(problem).mean[1])
    assert (curve.sd[:, 1] > 0.5).all()
    assert (curve.sd[:, 0] < 0.3).all()


def test_known_noise_is_taken_as_given(lv, lv_data):
    fit = od.fit(od.Problem(lv.model, lv_data, sigma={"prey": 0.1}), method=Gpr())
    assert fit.sigma["prey"] == pytest.approx(0.1)


def test_the_paper_preset_has_the_kernels_of_the_paper():
    assert (Gpr.paper("lotka_volterra").kernel, Gpr.paper("lotka_volterra").shared) == ("rbf", True)
    assert Gpr.paper("protein_transduction", thorough=False) == Gpr(
        "sigmoid", jitter=1e-4, scale_time=False, hyper_bounds=(1e-6, 100.0), weak_prior=False
    )


@pytest.mark.parametrize(
    ("options", "word"),
    [({"kernel": "rbff"}, "rbf"), ({"jitter": 0.0}, "jitter"), ({"hyper_bounds": (1.0, 0.1)}, "hyper_bounds")],
)
def test_bad_options_are_refused_by_name(options, word):
    with pytest.raises(od.InputError, match=word):
        Gpr(**options)
