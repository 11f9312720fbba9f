"""Profile likelihoods against direct refits with a parameter fixed, and what they say where nothing is determined."""

import numpy as np
import pytest

import odinfer as od
from odinfer.uncertainty.profile import profile as profile_of
from uncertainty.growth import fall_at_parameter, fall_at_state


def test_a_profile_is_the_best_likelihood_with_the_parameter_fixed(lv, lv_data, lv_fit):
    profile = lv_fit.profile("a")
    assert profile.values.min() < lv_fit.theta["a"] < profile.values.max()
    assert profile.likelihoods.max() == 0.0
    best = lv_fit.stages["refined"].loglik
    for i in (1, len(profile.values) - 3):
        fixed = od.fit(od.Problem(lv.model, lv_data, fixed={"a": float(profile.values[i])}))
        assert profile.likelihoods[i] == pytest.approx(fixed.stages["refined"].loglik - best, abs=2e-3)


def test_profile_and_likelihood_intervals_agree(lv_fit):
    for name, (low, high) in lv_fit.interval().items():
        found = lv_fit.profile(name).interval()
        np.testing.assert_allclose(found, (low, high), atol=0.03 * (high - low))


def test_intervals_of_a_profile_nest(lv_fit):
    profile = lv_fit.profile("c")
    wide, narrow = profile.interval(0.95), profile.interval(0.5)
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_fixed_and_unknown_parameters_have_no_profile(lv, lv_data, lv_fit):
    with pytest.raises(od.InputError, match="no parameter 'e'"):
        lv_fit.profile("e")
    fit = od.fit(od.Problem(lv.model, lv_data, fixed={"a": 2.0}))
    with pytest.raises(od.InputError, match="'a' is fixed"):
        fit.profile("a")


def test_a_profile_comes_back_from_a_file(lv_fit, tmp_path):
    fit = lv_fit.including(lv_fit.profile("a"))
    fit.save(tmp_path / "fit.json")
    back = od.load(tmp_path / "fit.json")
    assert back.interval(kind="profile") == fit.interval(kind="profile")
    np.testing.assert_array_equal(back.profiles["a"].likelihoods, fit.profiles["a"].likelihoods)


def test_points_lie_at_quarters_of_what_an_interval_needs(growth_fit):
    best = growth_fit.maximum()
    found = profile_of(best, "K")
    needed = best.info.fall(best.likelihood.unknowns.unit(best.likelihood.unknowns.phi_index), 0.95)[
        best.problem.free.index("K")
    ]
    shares = np.sign(found.values - found.estimate) * np.sqrt(-2 * found.likelihoods / needed)
    np.testing.assert_allclose(shares, 0.25 * np.arange(-6, 7), atol=0.08)


def test_every_point_is_the_best_that_scipy_finds_there(logistic, growth_fit):
    found = growth_fit.profile("r")
    for i in (0, 4, -1):
        right = fall_at_parameter(logistic, growth_fit, "r", float(found.values[i]))
        assert -2 * found.likelihoods[i] == pytest.approx(right, abs=1e-3)


def test_on_a_log_scale_values_are_in_the_parameters_units(decay, decay_data):
    plain = od.fit(decay, decay_data).profile("k")
    log = od.fit(od.Problem(decay, decay_data, scale={"k": "log"})).profile("k")
    assert log.estimate == pytest.approx(plain.estimate, rel=1e-4)
    np.testing.assert_allclose(log.interval(), plain.interval(), rtol=5e-3)


def test_a_profile_goes_no_further_than_its_bounds(decay, decay_data):
    found = od.fit(od.Problem(decay, decay_data, bounds={"k": (None, 0.72)})).profile("k")
    assert found.values.max() <= 0.72
    assert found.limits == (0.0, 0.72)
    assert found.interval()[1] <= 0.72


def test_a_free_initial_value_has_a_profile(growth_fit):
    best = growth_fit.maximum()
    (name,) = best.likelihood.unknowns.names[: best.likelihood.unknowns.of_phi.start]
    found = growth_fit.profile(name)
    for i in (0, 4, -1):
        right = fall_at_state(growth_fit, best.refined.paths[0].mesh[0], float(found.values[i]))
        assert -2 * found.likelihoods[i] == pytest.approx(right, abs=2e-3)
    low, high = found.interval()
    assert low < found.estimate < high


def test_a_profile_of_an_initial_value_is_kept_in_files_and_shown(growth_fit, tmp_path):
    name = growth_fit.maximum().likelihood.unknowns.names[0]
    fit = growth_fit.including(growth_fit.profile(name))
    fit.save(tmp_path / "fit.json")
    back = od.load(tmp_path / "fit.json")
    assert back.interval(kind="profile")[name] == fit.profiles[name].interval()
    assert name in back.summary()


def test_initial_values_that_are_given_have_no_profile():
    t = np.linspace(0.0, 4.0, 15)
    y = 3.0 * np.exp(-0.7 * t) + 0.05 * np.random.default_rng(0).normal(size=15)
    fit = od.fit(od.Problem(od.Model.from_text("x(0) = 3; x' = -k*x"), od.Data(t, y, states=["x"])))
    with pytest.raises(od.InputError, match=r"'x\(0\)' is not estimated"):
        fit.profile("x(0)")
