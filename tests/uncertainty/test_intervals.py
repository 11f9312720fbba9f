"""Likelihood intervals: regression's for a straight line, ends where the likelihood has fallen, bounds, open ends."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import odinfer as od
from odinfer.uncertainty.intervals import likelihood_intervals, search_range, state_limits
from odinfer.uncertainty.small_sample import quantile
from uncertainty.growth import fall_at_parameter, fall_at_state
from uncertainty.hidden import count_loglik, counts
from uncertainty.lines import line_data, regression

FEW = settings(max_examples=10, derandomize=True, deadline=None)


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


def test_a_log_scale_gives_the_same_likelihood_interval(decay, decay_data):
    plain = od.fit(od.Problem(decay, decay_data, positive=False))
    log = od.fit(od.Problem(decay, decay_data, scale={"k": "log"}))
    np.testing.assert_allclose(log.interval()["k"], plain.interval()["k"], rtol=5e-3)
    assert log.uncertainty.log == ("k",)
    assert log.covariance.loc["log k", "log k"] == pytest.approx(
        plain.covariance.loc["k", "k"] / plain.theta["k"] ** 2, rel=0.02
    )


def test_intervals_end_at_bounds(decay, decay_data):
    low, high = od.fit(od.Problem(decay, decay_data, bounds={"k": (None, 0.7)})).interval()["k"]
    assert low < high <= 0.7


def test_what_has_no_interval_says_so(lv, lv_data, tmp_path):
    for method in (od.Odin(refine=False), od.TwoStep()):
        fit = od.fit(od.Problem(lv.model, lv_data), method=method)
        for ask in (fit.interval, lambda f=fit: f.covariance, lambda f=fit: f.profile("a"), fit.bootstrap, fit.sample):
            with pytest.raises(od.InputError, match="interval"):
                ask()


def test_a_kind_that_is_not_there_is_refused_with_what_to_do(lv_fit):
    with pytest.raises(od.InputError, match=r"fit\.including"):
        lv_fit.interval(kind="bootstrap")
    with pytest.raises(od.InputError, match="unknown kind"):
        lv_fit.interval(kind="boot")


def test_at_both_ends_the_likelihood_has_fallen_by_what_the_level_asks_for(logistic, growth_fit):
    best, level = growth_fit.maximum(), 0.8
    found, u = likelihood_intervals(best, level), best.likelihood.unknowns
    falls = best.info.fall(u.unit(u.phi_index), level)
    for name, asked, ends in zip(found.names, falls, zip(found.low, found.high, strict=True), strict=True):
        for end in ends:
            assert fall_at_parameter(logistic, growth_fit, name, float(end)) == pytest.approx(asked, rel=0.1)


def test_the_intervals_of_a_fit_are_those_of_its_maximum(growth_fit):
    found = likelihood_intervals(growth_fit.maximum(), 0.95)
    assert found.interval() == growth_fit.interval()
    assert found.level == 0.95
    assert found.names == ("r", "K")


def test_ends_of_states_are_where_the_likelihood_has_fallen(growth_fit):
    best = growth_fit.maximum()
    path, node = best.refined.paths[0], np.array([0, 20])
    low, high = state_limits(best, 0.9, 0, node)
    S = best.likelihood.unknowns.lift(0, best.refined.condensed[0].nodes[node][..., :-1])[:, 0]
    for i, asked in enumerate(best.info.fall(S, 0.9)):
        assert low[i, 0] < path.nodes[node[i], 0] < high[i, 0]
        for end in (low[i, 0], high[i, 0]):
            assert fall_at_state(growth_fit, path.mesh[node[i]], float(end)) == pytest.approx(asked, rel=0.05)


def test_ends_of_states_stop_at_their_bounds(logistic, growth_fit):
    best, first = growth_fit.maximum(), np.array([0])
    low, high = state_limits(best, 0.95, 0, first)
    bound = float(0.5 * (low[0, 0] + best.refined.paths[0].x0[0]))
    fit = od.fit(od.Problem(logistic, growth_fit.problem.data, bounds={"n": (bound, None)}))
    bounded = state_limits(fit.maximum(), 0.95, 0, first)
    assert bounded[0][0, 0] == bound > low[0, 0]
    assert bounded[1][0, 0] == pytest.approx(high[0, 0], rel=1e-3)


def test_no_interval_of_a_state_is_narrower_than_trajectories_are_computed_to(decay):
    t = np.linspace(0.0, 4.0, 15)
    best = od.fit(decay, od.Data(t, 3.0 * np.exp(-0.7 * t), states=["x"])).maximum()
    low, high = state_limits(best, 0.95, 0, np.arange(3))
    least = 2 * quantile(np.inf, 0.95) * best.info.accuracy
    assert (high - low >= least * (1 - 1e-9)).all()


def test_profiles_stop_at_bounds_or_at_the_end_of_the_search_range(decay, decay_data):
    side, plain = np.array([-1.0, 1.0]), od.fit(od.Problem(decay, decay_data, positive=False))
    k, index = plain.theta["k"], plain.maximum().likelihood.unknowns.phi_index[[0, 0]]
    limit, bound = search_range(plain.maximum(), index, side)
    np.testing.assert_allclose(limit, [k - 1e4 * k, k + 1e4 * k])
    np.testing.assert_array_equal(bound, [-np.inf, np.inf])
    log = od.fit(od.Problem(decay, decay_data, scale={"k": "log"}, bounds={"k": (0.1, None)}))
    limit, bound = search_range(log.maximum(), index, side)
    np.testing.assert_allclose(limit, [np.log(0.1), np.log(1e4 * log.theta["k"])])
    np.testing.assert_allclose(bound, [np.log(0.1), np.inf])
    wide = od.fit(od.Problem(decay, decay_data, scale={"k": "log"}, bounds={"k": (1e-9, 1e9)}))
    limit, bound = search_range(wide.maximum(), index, side)  # where there is a bound, it is asked for
    np.testing.assert_array_equal(limit, bound)


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_the_search_range_does_not_depend_on_units(decay, decay_data, unit):
    e = decay_data.experiments[0]
    scaled = od.Data(e.t / unit, e.y * unit, states=["x"])
    plain, other = (od.fit(od.Problem(decay, data, positive=False)).maximum() for data in (decay_data, scaled))
    every, side = np.arange(plain.likelihood.unknowns.size), np.ones(plain.likelihood.unknowns.size)
    own, there = search_range(plain, every, side)[0], search_range(other, every, side)[0]
    np.testing.assert_allclose(there, own * unit, rtol=1e-3)


def test_ends_that_the_data_leave_open_are_open_and_the_others_are_not():
    # Biochemical oxygen demand over days, six values (Bates and Watts 1988): badly determined, and not by quadratics.
    t, y = [1.0, 2.0, 3.0, 4.0, 5.0, 7.0], [8.3, 10.3, 19.0, 16.0, 15.6, 19.8]
    model = od.Model.from_text("demand' = k*(A - demand); log k, A")
    fit = od.fit(model, od.Data(t, y, states=["demand"]))
    assert fit.stages["refined"].loglik == pytest.approx(-12.9115, abs=1e-3)
    # As k tends to 0 only k·A matters.
    low, high = fit.interval()["A"]
    assert low == pytest.approx(12.7, abs=0.1)
    assert high == np.inf
    assert fit.profile("A").interval() == (low, high)
    assert fit.interval()["k"] == fit.profile("k").interval() == (0.0, np.inf)
    assert any("k·A" in note for note in fit.warnings)


SATURATING = od.Model.from_text("s' = -vmax*s/(km + s)")


@pytest.mark.parametrize("seed", [1, 2, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (0, 3))])
def test_default_and_profile_agree_where_parameters_can_go_far(seed):
    model, t = SATURATING, np.linspace(0.0, 6.0, 20)
    x = od.simulate(model, {"vmax": 1.0, "km": 0.5}, [3.0], t)
    data = od.Data(t, x + 0.1 * np.random.default_rng(seed).normal(size=x.shape), states=["s"])
    fit = od.fit(model, data)
    for name, ends in fit.interval().items():
        np.testing.assert_allclose(fit.profile(name).interval(), ends, atol=0.03 * (ends[1] - ends[0]))
        assert ends[0] < fit.theta[name] < ends[1]


def test_of_counts_the_ends_are_where_the_poisson_likelihood_has_fallen():
    problem = counts()
    fit = od.fit(problem)
    k, (low, high) = fit.theta["k"], fit.interval()["k"]
    at = count_loglik(problem, np.array([k, low, high, k + 1e-3, k - 1e-3]))
    assert at[0] >= at[3:].max()
    np.testing.assert_allclose(2.0 * (at[0] - at[1:3]), stats.chi2.ppf(0.95, 1), rtol=0.02)


def test_initial_values_local_parameters_and_noise_parameters_have_intervals():
    model = od.Model.from_text("x' = -k*x; local k; log x(0); shared x(0); y ~ normal(x, s)")
    rng, t = np.random.default_rng(0), np.linspace(0.0, 4.0, 12)
    parts = {n: od.Data(t, 5 * np.exp(-k * t) + 0.1 * rng.normal(size=12), ["y"]) for n, k in (("a", 0.5), ("b", 1.2))}
    fit = od.fit(od.Problem(model, od.Data.join(parts)))
    truth = {"k[a]": 0.5, "k[b]": 1.2, "x(0)": 5.0, "s": 0.1}
    assert set(fit.interval()) == set(truth)
    for name, value in truth.items():
        low, high = fit.interval(0.999)[name]
        assert low < value < high
        np.testing.assert_allclose(fit.profile(name).interval(), fit.interval()[name], rtol=0.02)
    with pytest.raises(od.InputError, match=r"'k' has one value per experiment"):
        fit.profile("k")


def test_where_only_a_product_is_determined_bounds_of_one_factor_limit_the_other():
    t = np.linspace(0.0, 4.0, 15)
    y = 3.0 * np.exp(-0.7 * t) + 0.05 * np.random.default_rng(0).normal(size=15)
    data = od.Data(t, y, states=["x"])
    low, high = od.fit(od.Problem(od.Model.from_text("x' = -k*x"), data)).interval()["k"]
    fit = od.fit(od.Problem(
        od.Model.from_text("x' = -a*b*x"), data, bounds={"a": (1e-6, 1e6), "b": (0.5, 2.0)},
        scale={"a": "log", "b": "log"},
    ))  # fmt: skip
    # The ends of a are where b is at its bound and the product at its own end.
    np.testing.assert_allclose(fit.interval()["a"], (low / 2.0, high / 0.5), rtol=0.01)
    assert fit.interval()["b"] == (0.5, 2.0)


def test_ends_are_right_where_gauss_newton_alone_goes_astray():
    # Large residuals on a curve that bends: the Hessian is far from that of Gauss–Newton.
    t = np.linspace(0.0, 6.0, 14)
    y = 2.0 * np.exp(-0.6 * t) + 1.2 * np.sin(2.0 * t)
    data = od.Data(t, y, states=["x"])
    model = od.Model.from_text("x' = -k*x + c*cos(w*t)")
    fit = od.fit(od.Problem(model, data, bounds={"k": (0.01, 5.0), "w": (0.5, 4.0)}))
    best = fit.maximum()
    u = best.likelihood.unknowns
    for name, ends in fit.interval().items():
        wanted = best.info.fall(u.unit(np.array([u.names.index(name)])), 0.95)[0]
        for end in ends:
            if end not in (fit.problem.limits(name) if fit.problem else ()):
                held = od.fit(od.Problem(model, data, fixed={name: end}, start=dict(fit.theta) | {name: end}))
                fall = 2.0 * (best.loglik - held.maximum().loglik)
                assert fall == pytest.approx(wanted, rel=0.1)


def test_a_trajectory_that_re_integration_does_not_confirm_is_reported(line):
    best = od.fit(line, line_data(3, 12)).maximum()
    assert best.reintegrated_loglik == pytest.approx(best.loglik, abs=1e-6)
    assert not any("integrated once more" in note for note in best.intervals().notes)
    elsewhere = replace(best)
    object.__setattr__(elsewhere, "reintegrated_loglik", best.loglik - 3.0)
    (said,) = [note for note in elsewhere.intervals().notes if "integrated once more" in note]
    assert f"{best.loglik - 3.0:.4g} instead of {best.loglik:.4g}" in said


def test_limits_of_a_parameter_that_tends_to_zero_hold_where_the_model_is_rejected():
    t, counts = np.arange(10.0), np.array([3, 5, 8, 12, 17, 22, 30, 33, 40, 44.0])
    fit = od.fit(od.Model.from_text("C' = a - b*C; C ~ poisson(C)"), od.Data(t, counts, states=["C"]))
    assert fit.details["model_test"]["p"] <= 0.05
    assert fit.theta["b"] < 1e-6
    low, high = fit.interval()["b"]
    assert low == 0.0
    assert high == pytest.approx(0.073, rel=0.05)
    assert any("write 'real b' to allow negative values" in w for w in fit.warnings)
