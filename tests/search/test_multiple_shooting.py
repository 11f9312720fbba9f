"""search/multiple_shooting.py: trajectories with bursts are found by way of windows that grow together."""

import numpy as np
import pytest

import odinfer as od
from odinfer.gp.standardisation import Units
from odinfer.likelihood.refinement import refine_from
from odinfer.search.multiple_shooting import Searches, Windows, multiple_shooting

RNG = np.random.default_rng(0)


def decay(n: int = 12) -> od.Problem:
    t = np.linspace(0.0, 3.0, n)
    y = 2.0 * np.exp(-1.5 * t[:, None]) + 0.02 * np.random.default_rng(1).normal(size=(n, 1))
    return od.Problem(od.Model.from_text("x' = -k*x"), od.Data(t, y, states=["x"]), positive=False)


def test_a_trajectory_that_jumps_between_observations_is_found_from_far_away():
    model = od.Model.from_text("x' = m*(y - x^3/3 + x); y' = -x/m")
    t, truth = np.linspace(0.0, 40.0, 20), np.array([20.0])
    x = od.simulate(model, truth, [2.0, 0.6], t)
    y = x + 0.02 * x.std(0) * np.random.default_rng(0).normal(size=x.shape)
    problem = od.Problem(model, od.Data(t, y, states=["x", "y"]), positive=False)
    best = refine_from(problem, truth, [(t, x)])
    found = multiple_shooting(problem, Units.of(problem).scale, [problem.phi(np.array([0.3]))], 0)
    assert found is not None
    assert found.loglik > (-np.inf if best is None else best.loglik) - 0.1
    assert found.phi[0] == pytest.approx(20.0, rel=0.02)


def test_windows_that_grow_lead_to_the_rate_of_a_decay():
    cut = Windows.of(decay())
    found = Searches(np.log([[0.2], [9.0]]), np.tile(cut.seen, (2, 1, 1)))
    for gaps, width in ((1, 0.0), (3, 0.0), (3, 1.0), (20, 1.0)):
        found = cut.follow(found, cut.stage(gaps, width))
        assert np.exp(found.phi[0, 0]) == pytest.approx(1.5, rel=0.15)


def test_the_best_first_states_are_no_worse_than_those_before():
    cut = Windows.of(decay())
    stage = cut.stage(4, 1.0)
    off = Searches(np.log([[1.5]]), np.tile(3.0 * cut.seen, (1, 1, 1)))
    chosen = cut.restart(off, stage, np.random.default_rng(0))

    def left(found: Searches) -> float:
        solved = stage.solver.solve(stage.join(found))
        return sum(float(own[0]) for own in cut._misfits(stage, solved.trajectories.x))

    assert left(chosen) < 0.5 * left(off)


def test_random_states_keep_to_bounds_and_signs():
    cut = Windows.of(decay())
    assert cut.positive.all()
    assert (cut.states(RNG) > 0).all()


def test_problems_with_few_observations_or_other_columns_are_left_alone():
    problem = decay(4)
    assert multiple_shooting(problem, np.ones(1), [], 0) is None


def test_a_wrong_model_is_given_up_where_short_windows_miss_the_data_at_most_times():
    wrong = od.Model.from_text("prey' = a*prey^2 + b*predator\npredator' = -c*predator + d*prey*predator")
    problem = od.Problem(wrong, od.systems.lotka_volterra.sample(0.1, 1))
    assert multiple_shooting(problem, Units.of(problem).scale, [], 0) is None
