"""From poor starts, growing horizons lead to the maximum of the likelihood of stiff and oscillating systems."""

import numpy as np
import pytest

import odinfer as od
from odinfer.gp.standardisation import Units
from odinfer.likelihood.refinement import maximise_from_initial, refine_from
from odinfer.ode.adaptive_mesh import Budget
from odinfer.search.growing_horizon import fit_growing_horizon

ROBERTSON = "x' = -a*x + b*y*z; y' = a*x - b*y*z - c*y^2; z' = c*y^2"


def posed(text, theta, x0, t, noise=0.02, seed=0):
    model = od.Model.from_text(text)
    x = od.simulate(model, theta, x0, t, rtol=1e-10, atol=1e-13)
    y = x + noise * x.std(0) * np.random.default_rng(seed).normal(size=x.shape)
    problem = od.Problem(model, od.Data(t, y, states=model.states), positive=False)
    return problem, y, noise * x.std(0), x


def grow(problem, y, sigma, theta, steps=20_000):
    return fit_growing_horizon(
        problem, Units.of(problem).scale, sigma, [y[0]], problem.phi(np.asarray(theta, float)), Budget(steps)
    )


def test_robertsons_rates_are_found_from_a_thousandth_and_from_a_thousand_times_of_them():
    problem, y, sigma, x = posed(ROBERTSON, {"a": 0.04, "b": 1e4, "c": 3e7}, [1, 0, 0], np.geomspace(1e-5, 1e5, 40))
    best = maximise_from_initial(problem, Units.of(problem).scale, [x[0]], problem.phi(np.array([0.04, 1e4, 3e7])))
    for factor in (1e-3, 1e3):
        found = grow(problem, y, sigma, factor * np.array([0.04, 1e4, 3e7]))
        assert found.converged
        assert found.loglik == pytest.approx(best.loglik, abs=1e-3)


def test_an_oscillator_is_found_from_one_and_a_half_times_its_frequency():
    t = np.linspace(0.0, 30.0, 60)
    problem, y, sigma, x = posed("x' = v; v' = -k*x - c*v", {"k": 4.0, "c": 0.05}, [1.0, 0.0], t, 0.05)
    best = refine_from(problem, np.array([4.0, 0.05]), [(t, x)])
    assert grow(problem, y, sigma, [9.0, 0.2]).loglik == pytest.approx(best.loglik, abs=1e-3)


def test_a_start_whose_trajectory_explodes_is_slowed_down():
    t = np.linspace(0.0, 3.0, 20)
    problem, y, sigma, x = posed("n' = r*n - b*n^3", {"r": 1.0, "b": 0.1}, [0.5], t)
    best = refine_from(problem, np.array([1.0, 0.1]), [(t, x)])
    assert grow(problem, y, sigma, [-20.0, -20.0]) is None  # and one that cannot be is given up
    assert grow(problem, y, sigma, [20.0, 2.0]).loglik == pytest.approx(best.loglik, abs=1e-3)


def test_a_search_ends_with_its_budget():
    problem, y, sigma, _ = posed(ROBERTSON, {"a": 0.04, "b": 1e4, "c": 3e7}, [1, 0, 0], np.geomspace(1e-5, 1e5, 40))
    assert grow(problem, y, sigma, [0.04, 1e4, 3e7], steps=50) is None


def test_parameters_that_are_given_stay_as_they_are():
    t = np.linspace(0.0, 5.0, 20)
    problem, y, sigma, _ = posed("x' = -k*x + b; fixed b = 0.5", {"k": 0.7, "b": 0.5}, [3.0], t)
    found = grow(problem, y, sigma, [2.0, 0.5] if problem.model.parameters == ("k", "b") else [0.5, 2.0])
    theta = dict(zip(problem.model.parameters, problem.theta(found.phi), strict=True))
    assert theta["b"] == 0.5
    assert theta["k"] == pytest.approx(0.7, abs=0.05)
