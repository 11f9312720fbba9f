"""Intervals where the answer is known: a straight line is linear regression, Student's interval included."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import odinfer as od
from odinfer.uncertainty.small_sample import quantile, threshold

FEW = settings(max_examples=10, derandomize=True, deadline=None)


@pytest.fixture(scope="module")
def line() -> od.Model:
    return od.Model.from_text("x' = k", name="line")


def regression(t, y):
    """Slope, its standard error and the degrees of freedom."""
    found = stats.linregress(t, y)
    return found.slope, found.stderr, len(t) - 2


def line_data(seed: int, n: int) -> od.Data:
    t = np.linspace(0.0, 3.0, n)
    return od.Data(t, 1.0 + 0.5 * t + 0.2 * np.random.default_rng(seed).normal(size=n), states=["x"])


@FEW
@given(seed=st.integers(0, 1000), n=st.integers(6, 30))
def test_a_straight_line_gives_the_interval_of_linear_regression(line, seed, n):
    data = line_data(seed, n)
    fit = od.fit(line, data)
    slope, error, df = regression(data.t, data.y[:, 0])
    half = stats.t.ppf(0.975, df) * error
    np.testing.assert_allclose(fit.interval()["k"], [slope - half, slope + half], rtol=0, atol=0.02 * half)
    assert fit.covariance.loc["k", "k"] == pytest.approx(error**2, rel=1e-5)
    assert fit.uncertainty.freedom[0] == pytest.approx(df)


def test_other_levels_are_computed_and_nest(line):
    fit = od.fit(line, line_data(3, 12))
    slope, error, df = regression(*(lambda d: (d.t, d.y[:, 0]))(line_data(3, 12)))
    half = stats.t.ppf(0.9, df) * error
    np.testing.assert_allclose(fit.interval(0.8)["k"], [slope - half, slope + half], rtol=0, atol=0.02 * half)
    assert fit.interval(0.99)["k"][0] < fit.interval()["k"][0] < fit.interval(0.5)["k"][0]


def test_known_noise_gives_the_normal_interval(line):
    data = line_data(5, 9)
    fit = od.fit(od.Problem(line, data, sigma={"x": 0.2}))
    sd = 0.2 / np.sqrt(((data.t - data.t.mean()) ** 2).sum())
    low, high = fit.interval()["k"]
    assert high - low == pytest.approx(2 * 1.959964 * sd, rel=2e-3)
    assert np.isinf(fit.uncertainty.freedom[0])


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


def test_a_log_scale_gives_the_same_likelihood_interval(decay, decay_data):
    plain = od.fit(decay, decay_data)
    log = od.fit(od.Problem(decay, decay_data, scale={"k": "log"}))
    np.testing.assert_allclose(log.interval()["k"], plain.interval()["k"], rtol=5e-3)
    assert log.uncertainty.log == ("k",)
    assert log.covariance.loc["k", "k"] == pytest.approx(
        plain.covariance.loc["k", "k"] / plain.theta["k"] ** 2, rel=0.02
    )


def test_intervals_end_at_bounds(decay, decay_data):
    low, high = od.fit(od.Problem(decay, decay_data, bounds={"k": (None, 0.7)})).interval()["k"]
    assert low < high <= 0.7


@given(freedom=st.floats(1, 1e6), level=st.floats(0.1, 0.999))
def test_the_threshold_is_students_for_one_observation_per_degree_of_freedom(freedom, level):
    q = quantile(freedom, level)
    assert float(threshold(freedom, 1.0, level)) == pytest.approx(freedom * np.log1p(q**2 / freedom), rel=1e-9)
    assert threshold(np.inf, 1.0, level) == pytest.approx(quantile(np.inf, level) ** 2)


def test_what_has_no_interval_says_so(lv, lv_data, tmp_path):
    for method in (od.Odin(refine=False), od.TwoStep()):
        fit = od.fit(od.Problem(lv.model, lv_data), method=method)
        for ask in (fit.interval, lambda f=fit: f.covariance, lambda f=fit: f.profile("a"), fit.bootstrap, fit.sample):
            with pytest.raises(od.InputError, match="interval"):
                ask()


@pytest.mark.parametrize("level", [0, 1, 95, -0.1, "high"])
def test_a_level_that_is_none_is_refused(lv_fit, level):
    with pytest.raises(od.InputError, match="level"):
        lv_fit.interval(level)


def test_a_kind_that_is_not_there_is_refused_with_what_to_do(lv_fit):
    with pytest.raises(od.InputError, match=r"fit\.including"):
        lv_fit.interval(kind="bootstrap")
    with pytest.raises(od.InputError, match="unknown kind"):
        lv_fit.interval(kind="boot")


def test_a_loaded_fit_keeps_its_intervals_and_goes_on_with_a_problem(lv, lv_data, lv_fit, tmp_path):
    lv_fit.save(tmp_path / "fit.json")
    back = od.load(tmp_path / "fit.json")
    assert back.interval() == lv_fit.interval()
    assert back.covariance.equals(lv_fit.covariance)
    for ask in (lambda: back.interval(0.9), lambda: back.profile("a"), lambda: back.forecast([3.0])):
        with pytest.raises(od.InputError, match=r"problem=od\.Problem"):
            ask()
    problem = od.Problem(lv.model, lv_data)
    assert back.interval(0.9, problem=problem)["a"] == pytest.approx(lv_fit.interval(0.9)["a"], rel=1e-6)
    other = od.Problem(od.Model.from_text("prey' = q*prey; predator' = -predator"), lv_data)
    with pytest.raises(od.InputError, match="another problem"):
        back.profile("a", problem=other)
