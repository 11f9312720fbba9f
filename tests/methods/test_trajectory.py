"""Trajectory matching from random starts, the yardstick: nothing of ODIN goes into it."""

import numpy as np
import pytest

import odinfer as od
from odinfer.methods import trajectory
from odinfer.methods.trajectory import FAILED, Trajectory


@pytest.fixture(scope="module")
def fitted(lv, lv_data):
    return od.fit(lv.model, lv_data, method=Trajectory(starts=4))


def test_it_reaches_the_likelihood_that_odin_reaches(fitted, lv_fit):
    assert fitted.converged
    assert fitted.stages["trajectory"].objective == pytest.approx(lv_fit.stages["refined"].objective, abs=1e-3)
    assert fitted.theta == pytest.approx(lv_fit.theta, rel=1e-3)
    assert fitted.sigma == pytest.approx(lv_fit.sigma, rel=1e-3)


def test_starts_are_counted(fitted):
    d = fitted.details
    assert d["starts"] == 4
    assert 1 <= d["starts_agreeing"] <= 4 - d["starts_failed"]


def test_the_curve_solves_the_equations_and_has_the_band_of_odins_refined_stage(lv, fitted, lv_fit):
    curve = fitted.experiments["1"].curve
    x = od.simulate(lv.model, fitted.theta, curve.x[0], curve.t)
    np.testing.assert_allclose(curve.x, x, atol=1e-4)
    np.testing.assert_allclose(curve.sd, lv_fit.experiments["1"].curve.sd, rtol=1e-2)


def test_a_given_start_is_followed_once_from_given_initial_values(lv, lv_data):
    problem = od.Problem(lv.model, lv_data, start=lv.theta)
    method = Trajectory(start="given", x0={"prey": 5.0, "predator": [3.0]})
    fit = od.fit(problem, method=method)
    assert (fit.details["starts"], fit.details["starts_agreeing"]) == (1, 1)
    assert fit.theta == pytest.approx(lv.theta, rel=0.1)
    assert fit.options["x0"] == {"prey": 5.0, "predator": [3.0]}


def test_a_given_start_needs_every_free_parameter(lv, lv_data):
    problem = od.Problem(lv.model, lv_data, start={"a": 1.0, "b": 1.0}, fixed={"c": 4.0})
    with pytest.raises(od.InputError, match="'d'"):
        od.fit(problem, method=Trajectory(start="given"))


def test_a_start_that_blows_up_is_skipped_and_counted(lv, lv_data):
    problem = od.Problem(lv.model, lv_data, start={"a": 50.0, "b": -50.0, "c": -50.0, "d": 50.0})
    fit = od.fit(problem, method=Trajectory(start="given"))
    assert not fit.converged
    assert fit.status == FAILED
    assert np.isnan([*fit.theta.values()]).all()
    assert fit.details["starts_failed"] == 1
    assert np.isfinite(fit.states.to_numpy()).all()


def test_an_optimiser_that_breaks_down_counts_as_a_failed_start(lv, lv_data, monkeypatch):
    def broken(*_):
        raise np.linalg.LinAlgError("SVD did not converge")

    monkeypatch.setattr(trajectory, "refine", broken)
    fit = od.fit(lv.model, lv_data, method=Trajectory(starts=2))
    assert (fit.status, fit.details["starts_failed"]) == (FAILED, 2)


def test_too_few_iterations_are_reported(lv, lv_data):
    fit = od.fit(lv.model, lv_data, method=Trajectory(starts=1, iterations=1))
    assert not fit.converged
    assert "iteration limit" in fit.status


def test_initial_values_are_the_first_observations_within_bounds(lv, tmp_path):
    text = "experiment,time,prey,predator\n1,0,,3\n1,1,5,2\n1,2,3,1\n1,3,2,2\n2,0,1,\n2,1,2,\n2,2,3,\n1,4,2,4\n"
    (tmp_path / "d.csv").write_text(text)
    data = od.read_csv(tmp_path / "d.csv")
    x0 = Trajectory()._initial(od.Problem(lv.model, data, bounds={"prey": (0.0, 4.0)}))
    np.testing.assert_allclose(x0, [[4.0, 3.0], [1.0, 2.4]])


def test_inputs_and_several_experiments_are_followed():
    model = od.Model.from_text("x' = -k*x + u", inputs=["u"])
    t = np.linspace(0.0, 4.0, 15)
    parts = {}
    for name, level in (("low", 0.5), ("high", 2.0)):
        u = {"u": (t, level * (1.0 + np.sin(t)))}
        x = od.simulate(model, {"k": 0.7}, [1.0], t, u)
        noise = 0.02 * np.random.default_rng(0).normal(size=x.shape)
        parts[name] = od.Data(t, x + noise, states=["x"], inputs={"u": u["u"][1]})
    fit = od.fit(model, od.Data.join(parts), method=Trajectory(starts=2))
    assert fit.theta["k"] == pytest.approx(0.7, abs=0.02)


@pytest.mark.parametrize(
    ("options", "word"),
    [({"start": "gven"}, "given"), ({"starts": 0}, "starts"), ({"iterations": 2.5}, "iterations"), ({"x0": [1]}, "x0")],
)
def test_bad_options_are_refused_by_name(options, word):
    with pytest.raises(od.InputError, match=word):
        Trajectory(**options)


@pytest.mark.parametrize(
    ("x0", "word"), [({"pray": 1.0}, "prey"), ({"prey": "one"}, "number"), ({"prey": np.inf}, "finite")]
)
def test_bad_initial_values_are_refused_at_the_fit(lv, lv_data, x0, word):
    with pytest.raises(od.InputError, match=word):
        od.fit(lv.model, lv_data, method=Trajectory(x0=x0))


HIDDEN = od.Model.from_text("x' = -k*x; y' = 2*x - c*y; log k, c; x > 0; y > 0", name="hidden x")


@pytest.fixture(scope="module")
def hidden() -> od.Problem:
    t = np.linspace(0.0, 6.0, 20)
    x = od.simulate(HIDDEN, {"k": 0.5, "c": 1.3}, [3.0, 1.0], t)
    return od.Problem(HIDDEN, od.Data(t, x[:, 1] + 0.02 * np.random.default_rng(0).normal(size=20), states=["y"]))


def test_with_a_hidden_state_it_reaches_what_odin_reaches(hidden):
    fit, odin = od.fit(hidden, method=Trajectory(starts=5)), od.fit(hidden)
    assert fit.converged
    assert fit.stages["trajectory"].objective == pytest.approx(odin.stages["refined"].objective, abs=1e-3)
    assert fit.interval().keys() == odin.interval().keys()


def test_a_hidden_state_starts_where_it_is_told_to(hidden):
    given = od.Problem(HIDDEN, hidden.data, start={"k": 0.5, "c": 1.3})
    fit = od.fit(given, method=Trajectory(start="given", x0={"x": 3.0}))
    assert fit.theta == pytest.approx({"k": 0.5, "c": 1.3}, rel=0.2)


def test_no_trajectory_with_a_hidden_state_is_a_failed_fit_and_no_error():
    t = np.linspace(0.0, 3.0, 8)
    model = od.Model.from_text("x' = x^2 + a; y' = x")
    problem = od.Problem(model, od.Data(t, t, states=["y"]), start={"a": 50.0})
    fit = od.fit(problem, method=Trajectory(start="given", x0={"x": 1e3}))
    assert fit.status == FAILED
    assert not fit.converged
    assert fit.details["starts_failed"] == 1
