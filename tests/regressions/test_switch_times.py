"""Times of switches are estimated like any other parameter, with the sensitivities that they really have."""

import numpy as np
import pytest
from scipy.optimize import least_squares

import odinfer as od


def switched(t, tau, k, c, x0):
    """The solution of x' = where(t < tau, 0, k) - c*x."""
    return x0 * np.exp(-c * t) + k / c * -np.expm1(-c * np.maximum(t - tau, 0.0))


@pytest.mark.parametrize(("seed", "n"), [(1, 48), (2, 17), (3, 20)])
def test_a_switch_time_that_acts_through_a_condition_alone_is_estimated_as_by_least_squares(seed, n):
    rng = np.random.default_rng(seed)
    tau, t = rng.uniform(2.0, 7.0), np.linspace(0.0, 10.0, n)
    y = switched(t, tau, 2.0, 0.7, 0.5) + 0.05 * rng.normal(size=n)
    model = od.Model.from_text("x' = where(t < tau, 0, k) - c*x; 0 < tau < 10", name="switch")
    fit = od.fit(od.Problem(model, od.Data(t, y, states=["x"])))
    starts = (least_squares(lambda v: switched(t, *v) - y, [tau + d, 2.0, 0.7, 0.5]) for d in np.linspace(-1, 1, 21))
    best = min(starts, key=lambda found: found.cost)
    rss = 2.0 * best.cost
    assert fit.details["loglik"] == pytest.approx(-0.5 * n * (np.log(2.0 * np.pi * rss / n) + 1.0), abs=0.02)
    sd = np.sqrt(np.linalg.inv(best.jac.T @ best.jac)[0, 0] * rss / (n - 4))
    assert fit.theta["tau"] == pytest.approx(best.x[0], abs=0.05 * sd)
    low, high = fit.uncertainty.interval()["tau"]
    assert high - low == pytest.approx(4.1 * sd, rel=0.35)


def test_a_switch_into_an_expression_of_its_own_time_is_found():
    model = od.Model.from_text(
        "x' = where(t < tau, 0, k*exp(-r*(t - tau))) - c*x; log k, r, c; 0 < tau < 10", name="pulse"
    )
    theta, t = {"tau": 3.3, "k": 2.0, "r": 0.3, "c": 0.7}, np.linspace(0.0, 10.0, 41)
    y = od.simulate(model, theta, [0.5], t)[:, 0] + 0.02 * np.random.default_rng(1).normal(size=41)
    problem = od.Problem(model, od.Data(t, y, states=["x"]))
    fit = od.fit(problem)
    assert fit.details["loglik"] >= od.loglik(problem, theta | {"x(0)": 0.5})
    assert "contradicts" not in fit.verdicts.values()
    low, high = fit.uncertainty.interval()["tau"]
    assert low < 3.3 < high


def test_a_window_between_two_times_is_estimated_while_a_state_is_hidden():
    model = od.Model.from_text(
        "a' = where(t > begin and t < begin + 2, k, 0) - a; x' = a - x; a(t0) = 0; x(t0) = 0; 1 < begin < 5; log k",
        name="window",
    )
    t = np.linspace(0.0, 10.0, 31)
    clean = od.simulate(model, {"begin": 2.2, "k": 3.0}, {}, t)[:, 1]
    data = od.Data(t, clean + 0.02 * np.random.default_rng(0).normal(size=31), states=["x"])
    fit = od.fit(od.Problem(model, data, bounds={"k": (0.1, 100.0)}))
    assert fit.theta["begin"] == pytest.approx(2.2, abs=0.1)
    assert fit.theta["k"] == pytest.approx(3.0, rel=0.05)


def test_sensitivities_to_a_switch_time_jump_by_the_difference_of_the_slopes():
    model = od.Model.from_text("x' = where(t < tau, 1, 3); 0 < tau < 4", name="kink")
    t = np.linspace(0.0, 4.0, 9)
    problem = od.Problem(model, od.Data(t, t, states=["x"]))
    values = [od.loglik(problem, {"tau": tau, "x(0)": 0.0, "sigma x": 1.0}) for tau in (1.69, 1.71)]
    right = [-0.5 * ((t - np.where(t < tau, t, 3 * t - 2 * tau)) ** 2).sum() for tau in (1.69, 1.71)]
    assert np.diff(values) == pytest.approx(np.diff(right), rel=1e-4)


def test_a_pulse_at_a_time_that_is_a_parameter_is_not_stepped_over():
    model = od.Model.from_text("x' = where(t > tau and t < tau + 0.01, 100, 0) - x", name="pulse")
    x = od.simulate(model, {"tau": 3.3}, [0.0], [0.0, 50.0, 51.0])[:, 0]
    exact = 100.0 * -np.expm1(-0.01) * np.exp(-np.array([46.69, 47.69]))
    np.testing.assert_allclose(x[1:], exact, rtol=1e-6)


def test_the_log_likelihood_of_a_state_that_rests_until_a_switch_is_exact():
    model = od.Model.from_text("x' = where(t < tau, 0, k) - c*x; x(0) = 0", name="onset")
    t = np.linspace(0.0, 12.0, 60)
    y = switched(t, 3.3, 2.0, 0.5, 0.0) + 0.02 * np.random.default_rng(1).normal(size=60)
    problem = od.Problem(model, od.Data(t, y, states=["x"]))
    exact = (-0.5 * ((y - switched(t, 3.3, 2.0, 0.5, 0.0)) / 0.02) ** 2 - np.log(0.02 * np.sqrt(2.0 * np.pi))).sum()
    assert od.loglik(problem, {"tau": 3.3, "k": 2.0, "c": 0.5, "sigma x": 0.02}) == pytest.approx(exact, abs=1e-6)
    assert not od.fit(problem).warnings
