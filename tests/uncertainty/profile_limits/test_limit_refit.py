"""Ends that are found by integration are where the likelihood, maximised anew, has fallen by what was asked for."""

from dataclasses import replace

import numpy as np
import pytest

import odinfer as od
from odinfer.likelihood.refinement import shoot
from odinfer.ode.adaptive_mesh import Budget
from odinfer.uncertainty.intervals import parameter_ends
from odinfer.uncertainty.maximum import Maximum
from odinfer.uncertainty.profile_limits import limit_refit
from odinfer.uncertainty.profile_limits.limit_refit import shot_end


def test_they_agree_with_those_on_one_mesh(lv_fit):
    m = lv_fit.maximum()
    low, high, found = parameter_ends(m, 0.95)
    assert not len(found.lost)
    a = m.like.unknowns.unit(m.like.unknowns.phi_index)
    sd, fall = m.info.spread(a)[0], m.info.fall(a, 0.95)
    for j in range(2):
        for side, end in ((-1.0, low[j]), (1.0, high[j])):
            found = shot_end(m.problem, m.like.scale, m.refined, j, side, fall[j], sd[j], side * 1e6, Budget(20_000))
            assert found == pytest.approx(end, abs=0.05 * abs(end - m.phi[j]))


def test_jumps_that_move_in_time_have_ends_where_the_likelihood_has_fallen():
    model = od.Model.from_text("x' = m*(y - x^3/3 + x); y' = -x/m")
    t = np.linspace(0.0, 200.0, 40)
    x = od.simulate(model, {"m": 100.0}, [2.0, 0.6], t)
    y = x + 0.02 * x.std(0) * np.random.default_rng(0).normal(size=x.shape)
    problem, scale = od.Problem(model, od.Data(t, y, states=model.states)), x.std(0)
    best = shoot(problem, scale, [y[0]], np.array([100.0]))
    m = Maximum.of(problem, scale, best)
    low, high, found = parameter_ends(m, 0.95)
    assert not len(found.lost)
    assert low[0] < 100.0 < high[0]
    a = m.like.unknowns.unit(m.like.unknowns.phi_index)
    for end in (low[0], high[0]):
        held = shoot(od.Problem(model, problem.data, fixed={"m": end}), scale, [p.x0 for p in best.paths], np.empty(0))
        assert 2 * (held.objective - best.objective) == pytest.approx(m.info.fall(a, 0.95)[0], rel=0.1)


def test_a_limit_that_is_inside_is_returned_and_a_spent_budget_gives_none(lv_fit):
    m = lv_fit.maximum()
    near = m.phi[0] + 1e-3
    args = (m.problem, m.like.scale, m.refined, 0, 1.0, 4.0, 0.05)
    assert shot_end(*args, near, Budget(20_000)) == near
    assert shot_end(*args, 1e6, Budget(10)) is None


def test_trajectories_that_are_worth_nothing_finite_lead_to_no_end(lv_fit, monkeypatch):
    m = lv_fit.maximum()
    monkeypatch.setattr(limit_refit, "_held", lambda *_: replace(m.refined, objective=np.nan))
    assert shot_end(m.problem, m.like.scale, m.refined, 0, 1.0, 4.0, 0.05, 1e6, Budget(100)) is None
