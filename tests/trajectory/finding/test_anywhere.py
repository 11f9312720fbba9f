"""A better trajectory is found from anywhere, in any units; none is claimed where the best is known."""

import numpy as np
import pytest

import odinfer as od
from odinfer.smoothing.units import Units
from odinfer.trajectory.finding.anywhere import drawn, from_anywhere
from odinfer.trajectory.refine import refine_from

T = np.linspace(0.0, 60.0, 80)
TRUTH, ASIDE = [6.0, 0.1, 0.9, 0.1, 0.2], [6.0, -0.2, 0.7, -0.9, 0.2]


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


def test_starts_differ_in_parameters_alone():
    problem, (_, best) = calcium(1.0)
    near = np.concatenate([best.paths[0].x0, best.phi])
    v = drawn(problem, near, 5, np.random.default_rng(0))
    assert (v[:, :2] == near[:2]).all()
    assert len(np.unique(v[:, 2:], axis=0)) == 5
