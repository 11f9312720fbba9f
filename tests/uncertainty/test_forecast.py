"""Forecasts: trajectories of the model beyond the data, with bands whose ends the likelihood sets."""

import numpy as np
import pytest
from scipy import stats

import odinfer as od
from odinfer.likelihood.extension import extended
from odinfer.uncertainty.forecast import forecast
from uncertainty.growth import fall_at_state
from uncertainty.hidden import counts, doubled
from uncertainty.lines import line_data, regression


def test_bands_of_a_straight_line_are_those_of_regression_inside_and_beyond_the_data(line):
    data = line_data(7, 10)
    fit = od.fit(line, data)
    slope, _, df = regression(data.t, data.y[:, 0])
    r = data.y[:, 0] - np.polyval([slope, data.y.mean() - slope * data.t.mean()], data.t)
    s = np.sqrt((r**2).sum() / df)
    t = np.array([0.3, 2.9, 4.5])
    sd = s * np.sqrt(1 / 10 + (t - data.t.mean()) ** 2 / ((data.t - data.t.mean()) ** 2).sum())
    half = stats.t.ppf(0.975, df) * sd
    table = fit.forecast(t)
    np.testing.assert_allclose(table["x_high"] - table["x"], half, rtol=1e-3)
    np.testing.assert_allclose(fit.predict(t[:2])["x_high"], table["x_high"][:2], rtol=1e-3)
    wider = fit.forecast(t, observed=True)
    assert (wider["x_high"] > table["x_high"]).all()


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


def test_the_states_are_those_of_forward_integration(lv, lv_fit):
    t = np.array([0.5, 1.7, 2.5, 3.0])
    x, low, high = forecast(lv_fit.maximum(), 0, t, 0.95)
    start = lv_fit.states.iloc[0].to_numpy()
    right = od.simulate(lv.model, lv_fit.theta, start, np.append(0.0, t))[1:]
    np.testing.assert_allclose(x, right, rtol=1e-4)
    assert (low < x).all()
    assert (x < high).all()


def test_beyond_the_data_a_band_ends_where_the_likelihood_has_fallen(growth_fit):
    best, t = growth_fit.maximum(), np.array([6.0, 8.0])
    _, low, high = forecast(best, 0, t, 0.9)
    longer = extended(best.likelihood, best.refined, [t])
    S = longer.paths[0].sensitivity_at(longer.condensed[0], t)[:, 0]
    for i, asked in enumerate(best.info.fall(best.likelihood.unknowns.lift(0, S), 0.9)):
        for end in (low[i, 0], high[i, 0]):
            assert fall_at_state(growth_fit, float(t[i]), float(end)) == pytest.approx(asked, rel=0.05)


def test_inside_the_data_a_forecast_is_the_fit_itself(lv_fit):
    t = np.linspace(0.1, 1.9, 7)
    np.testing.assert_allclose(lv_fit.forecast(t), lv_fit.predict(t), rtol=1e-4)


def test_after_a_blow_up_there_is_nothing_to_say():
    t = np.linspace(0.0, 1.0, 12)
    y = 1 / (1 - 0.5 * t) + 0.01 * np.random.default_rng(0).normal(size=12)
    fit = od.fit(od.Model.from_text("x' = k*x^2"), od.Data(t, y, states=["x"]))
    assert fit.forecast([1.2]).notna().all(axis=None)
    assert fit.forecast([2.5]).isna().all(axis=None)


def test_times_may_come_in_any_order_and_twice(lv_fit):
    table = lv_fit.forecast([2.6, 2.2, 2.6])
    assert table.index.tolist() == [2.6, 2.2, 2.6]
    np.testing.assert_array_equal(table.iloc[0], table.iloc[2])
    np.testing.assert_allclose(table.iloc[1], lv_fit.forecast([2.2]).iloc[0], rtol=1e-3)


@pytest.fixture(scope="module")
def doubled_fit() -> od.Fit:
    return od.fit(doubled())


def test_columns_that_are_no_states_come_after_them_with_bands_of_their_own(doubled_fit):
    table = doubled_fit.forecast([1.0, 3.5, 5.0, 6.0])
    assert list(table.columns) == ["x", "x_low", "x_high", "y", "y_low", "y_high"]
    for end in ("", "_low", "_high"):
        np.testing.assert_allclose(table[f"y{end}"], 2.0 * table[f"x{end}"], rtol=2e-3)
    assert (table["x_low"] > 0).all()


@pytest.mark.parametrize("family", ["normal", "lognormal"])
def test_bands_of_new_observations_add_noise_on_the_scale_where_it_is_symmetric(family):
    fit = od.fit(doubled(family))
    t = [2.0, 5.0]
    mean, new = fit.forecast(t), fit.forecast(t, observed=True)
    assert list(new.columns) == ["y", "y_low", "y_high"]
    on = np.log if family == "lognormal" else np.asarray
    noise = stats.t.ppf(0.975, fit.maximum().info.freedom[0]) * fit.sigma["y"]
    for end in ("_low", "_high"):
        doubt = on(mean[f"y{end}"]) - on(mean["y"])
        np.testing.assert_allclose(np.abs(on(new[f"y{end}"]) - on(new["y"])), np.hypot(doubt, noise), rtol=1e-6)


def test_bands_of_new_counts_are_whole_numbers_about_the_prediction():
    fit = od.fit(counts())
    new = fit.forecast([1.0, 4.5, 8.0], observed=True)
    ends = new[["n_low", "n_high"]].to_numpy()
    np.testing.assert_array_equal(ends, np.round(ends))
    assert (ends >= 0).all()
    right = stats.poisson.ppf([0.025, 0.975], new["n"].to_numpy()[:, None])  # k adds little
    assert np.abs(ends - right).max() <= 2


def test_what_happens_after_the_data_is_part_of_a_forecast():
    model = od.Model.from_text("c' = -k*c; c(0) = 0; at 0, 6: c = c + 10; y ~ normal(c)")
    t = np.linspace(0.5, 5.0, 10)
    y = 10.0 * np.exp(-0.5 * t) + 0.1 * np.random.default_rng(0).normal(size=10)
    dose = od.Dose(7.0, 4.0, "c", 2.0)  # by infusion
    fit = od.fit(od.Problem(model, od.Data(t, y, states=["y"], doses=[dose])))
    k, table = fit.theta["k"], fit.forecast([5.9, 6.5, 8.0])
    at_seven = 10.0 * (np.exp(-7 * k) + np.exp(-k))
    right = [10 * np.exp(-5.9 * k), 10 * (np.exp(-6.5 * k) + np.exp(-0.5 * k)), at_seven * np.exp(-k)]
    right[2] += 2.0 / k * (1 - np.exp(-k))
    np.testing.assert_allclose(table["c"], right, rtol=1e-4)
    np.testing.assert_allclose(table["y"], right, rtol=1e-4)


@pytest.mark.parametrize("noise", ["", "; x ~ lognormal(x); x > 0"])
def test_bands_of_new_observations_of_few_data_are_as_wide_beyond_the_data_as_at_the_last_time(noise):
    t, rng = np.linspace(0.0, 5.0, 8), np.random.default_rng(0)
    y = 5.0 * np.exp(-0.3 * t + 0.1 * rng.normal(size=8))
    fit = od.fit(od.Model.from_text(f"x' = -k*x{noise}"), od.Data(t, y, states=["x"]))
    inside, beyond = (
        table.iloc[-1] for table in (fit.predict(t, observed=True), fit.forecast(t + 1e-3, observed=True))
    )
    assert beyond["x_high"] - beyond["x_low"] == pytest.approx(inside["x_high"] - inside["x_low"], rel=0.02)
