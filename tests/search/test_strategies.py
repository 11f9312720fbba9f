"""The best trajectory is found where ODIN's start leads elsewhere; parameters do not stay where they ran off to."""

from dataclasses import replace

import numpy as np
import pytest

import odinfer as od
from odinfer.gp.standardisation import Units
from odinfer.likelihood.refinement import refine_from
from odinfer.paper.systems import lotka_volterra
from odinfer.search.strategies import best_trajectory, from_anywhere, misses

T = np.linspace(0.0, 60.0, 80)
TRUTH, ASIDE = [6.0, 0.1, 0.9, 0.1, 0.2], [6.0, -0.2, 0.7, -0.9, 0.2]


def noisy(model, theta, x0, t, sd, seed=0) -> od.Data:
    x = od.simulate(model, theta, x0, t)
    return od.Data(t, x + sd * np.random.default_rng(seed).normal(size=x.shape), states=model.states)


def test_minima_that_are_right_lead_to_the_maximum_without_a_finer_grid():
    problem = od.Problem(lotka_volterra.model, lotka_volterra.sample(0.1, 0))

    def finer():
        raise AssertionError("not needed")

    found = best_trajectory(od.Odin().solve(problem), finer, 0)
    truth = np.array([lotka_volterra.theta[p] for p in problem.model.parameters])
    limit = refine_from(problem, truth, [(lotka_volterra.t, lotka_volterra.x)])
    assert abs(found.loglik - limit.loglik) < 1e-3


def test_a_parameter_does_not_stay_at_zero_where_the_likelihood_is_flat_by_symmetry():
    model, t = od.Model.from_text("x' = -v*x^2/(k^2 + x^2)"), np.linspace(0.0, 6.0, 30)
    problem = od.Problem(model, noisy(model, {"v": 1.0, "k": 1.0}, [4.0], t, 0.03))
    minima = od.Odin().solve(problem)
    at_zero = [replace(s, phi=np.array([1.0, 0.0])[: len(s.phi)]) for s in minima.solutions]
    found = best_trajectory(minima._replace(solutions=at_zero), lambda: minima, 0)
    assert abs(abs(problem.theta(found.phi)[problem.model.parameters.index("k")]) - 1.0) < 0.2


def test_a_rate_that_is_too_fast_to_be_seen_is_named_with_its_limit_and_the_others_keep_their_intervals():
    model = od.Model.from_text("a' = -k*a; b' = -m*(b - a)")
    for seed in range(3):
        data = noisy(model, {"k": 0.1, "m": 500.0}, [1.0, 0.0], np.linspace(0.0, 20.0, 30), 0.005, seed)
        fit = od.fit(model, data)
        (k_low, k_high), (m_low, m_high) = fit.interval()["k"], fit.interval()["m"]
        assert 0.095 < k_low < k_high < 0.105
        assert 1.0 < m_low < 500.0 < m_high == np.inf
        assert abs(fit.theta["m"]) < 1e5
        assert any(w.startswith("m is not determined by these data: anything above") for w in fit.warnings)


def test_a_trajectory_misses_the_data_if_it_leaves_most_of_some_state_beyond_the_noise():
    data = lotka_volterra.sample(0.1, 0)
    problem = od.Problem(lotka_volterra.model, data)
    sd = np.nanstd(data.y, 0)
    assert misses(problem, 0.8 * sd, 0.1 * sd)
    assert misses(problem, np.array([0.8, 0.1]) * sd, 0.1 * sd)
    assert not misses(problem, 0.6 * sd, 0.1 * sd)
    assert not misses(problem, 0.8 * sd, 0.8 * sd)


def calcium(unit):
    """Oscillations of calcium (Li and Rinzel) in other units of time, and trajectories at two maxima of the likelihood:
    a lower one, and the best."""
    model = od.Model.from_text(
        "c' = (v1*(c/(c + 0.08))^3*h^3 + v2)*(3 - 1.2*c) - v3*c^2/(k^2 + c^2); h' = a*(0.5*(1 - h) - c*h)"
    )
    rate, t = np.array([unit, unit, unit, 1.0, unit]), T * unit
    x = od.simulate(model, TRUTH / rate, [0.2, 0.5], t)
    y = x + 0.03 * x.std(0) * np.random.default_rng(0).normal(size=x.shape)
    problem = od.Problem(model, od.Data(t, y, states=model.states))
    return problem, [refine_from(problem, theta / rate, [(t, x)]) for theta in (ASIDE, TRUTH)]


@pytest.mark.parametrize("unit", [1.0, 1e8])
def test_a_better_trajectory_is_found_in_any_units(unit):
    problem, (poor, best) = calcium(unit)
    assert poor.loglik < best.loglik - 5
    found = from_anywhere(problem, Units.of(problem).scale, poor, 0)
    assert found.loglik == pytest.approx(best.loglik, abs=0.01)


def test_where_nothing_is_better_none_is_claimed():
    problem, (_, best) = calcium(1.0)
    found = from_anywhere(problem, Units.of(problem).scale, best, 0)
    assert found is None or found.loglik == pytest.approx(best.loglik, abs=1e-3)
