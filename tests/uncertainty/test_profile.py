"""Profile likelihoods against direct refits with a parameter fixed, and what they say where nothing is determined."""

import numpy as np
import pytest

import odinfer as od


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


def test_a_profile_has_a_picture(lv_fit, tmp_path):
    lv_fit.profile("b").plot(tmp_path / "b.png")
    assert (tmp_path / "b.png").stat().st_size > 5000


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


def test_the_forecast_of_what_dies_out_keeps_its_sign_and_a_lower_limit():
    # A step by the standard deviation would lead below zero, where no trajectory goes.
    t, beyond = np.linspace(0.0, 20.0, 20), np.array([21.0, 23.0, 25.0])
    model = od.Model.from_text("S' = -V*S/(K + S)")
    truth = {"V": 1.0, "K": 2.0}
    x = od.simulate(model, truth, [10.0], np.append(t, beyond))[:, 0]
    for seed in range(6):
        y = x[:20] + 0.3 * np.random.default_rng(seed).normal(size=20)
        fit = od.fit(model, od.Data(t, y, states=["S"]))
        table = fit.forecast(beyond)
        assert (table["S_low"] < 0.9 * table["S"]).all()
        assert (table["S_low"] >= 0.0).all()
        assert (table["S_high"] - table["S"] > table["S"] - table["S_low"]).all()  # skewed, as the likelihood is


def test_ends_of_a_forecast_are_where_the_likelihood_has_fallen(lv, lv_data, lv_fit):
    end = float(lv_data.t[-1])
    table = lv_fit.forecast([end + 0.4])
    assert 0.5 < (table["prey_high"] - table["prey"]).iloc[0] / (table["prey"] - table["prey_low"]).iloc[0] < 2.0
    narrow = lv_fit.forecast([end + 0.4], level=0.5)
    assert table["prey_low"].iloc[0] < narrow["prey_low"].iloc[0] < narrow["prey_high"].iloc[0]
    many = lv_fit.forecast(np.linspace(end, end + 0.4, 60))
    np.testing.assert_allclose(many.iloc[-1], table.iloc[0], rtol=1e-3)
    assert (np.diff(many["prey_high"] - many["prey_low"]) > -0.05).all()
