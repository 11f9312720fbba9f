"""A system that has not settled when it should have is said to be so, and no other."""

import numpy as np
import pytest

import odinfer as od
from odinfer.likelihood.refinement import shoot
from odinfer.ode.steady_state import unsettled


def settling(rate: float) -> list[str]:
    """What is said of x, which relaxes at a rate from 0 to 2 in a million time units before the data."""
    model = od.Model.from_text(f"x(-1000000) = 0; x' = {rate}*(k - x); y ~ normal(x, 0.1)")
    t = np.linspace(0.0, 5.0, 6)
    problem = od.Problem(model, od.Data(t, 2.0 + 0.05 * np.sin(7.0 * t), states=["y"]))
    found = shoot(problem, np.full(1, np.nan), [np.zeros(1)], np.array([2.0]))
    return unsettled(problem, lambda e, t: found.paths[e].at(t)[0])


@pytest.mark.parametrize("rate", [1.0, 1e-3, 1e-4])
def test_nothing_is_said_of_what_has_settled(rate):
    assert settling(rate) == []


@pytest.mark.parametrize("rate", [1e-6, 3e-6, 1e-7])
def test_what_settles_more_slowly_is_named(rate):
    (said,) = settling(rate)
    assert said.startswith("x has not settled")


def test_nothing_is_said_without_a_time_to_settle(lv_fit):
    best = lv_fit.maximum()
    assert unsettled(best.problem, lambda e, t: best.refined.paths[e].at(t)[0]) == []
