"""A system that has not settled when it should have is said to be so, and no other."""

import warnings

import numpy as np
import pytest
from scipy import stats

import odinfer as od
from odinfer.likelihood.refinement import maximise_from_initial
from odinfer.ode.steady_state import steady_state_warnings


def settling(rate: float) -> list[str]:
    """What is said of x, which relaxes at a rate from 0 to 2 in a million time units before the data."""
    model = od.Model.from_text(f"x(-1000000) = 0; x' = {rate}*(k - x); y ~ normal(x, 0.1)")
    t = np.linspace(0.0, 5.0, 6)
    problem = od.Problem(model, od.Data(t, 2.0 + 0.05 * np.sin(7.0 * t), states=["y"]), positive=False)
    found = maximise_from_initial(problem, np.full(1, np.nan), [np.zeros(1)], np.array([2.0]))
    return steady_state_warnings(problem, lambda e, t: found.paths[e].at(t)[0])


@pytest.mark.parametrize("rate", [1.0, 1e-3, 1e-4])
def test_nothing_is_said_of_what_has_settled(rate):
    assert settling(rate) == []


@pytest.mark.parametrize("rate", [1e-6, 3e-6, 1e-7])
def test_what_settles_more_slowly_is_named(rate):
    (said,) = settling(rate)
    assert said.startswith("x has not settled")


def test_nothing_is_said_without_a_time_to_settle(lv_fit):
    best = lv_fit.maximum()
    assert steady_state_warnings(best.problem, lambda e, t: best.refined.paths[e].at(t)[0]) == []


SEEN = 0.7 + 0.05 * np.sin(np.arange(6.0))


def binding(rate, settle="x(-1000000) = 3; y(-1000000) = 0; z(-1000000) = 1"):
    """x + z ⇌ y, slow, in which x + y and y + z are conserved; observed after it has settled."""
    model = od.Model.from_text(f"{settle}; x' = -v; z' = -v; y' = v; v = {rate}*(k*x*z - y); seen ~ normal(y, 0.1)")
    t = np.linspace(0.0, 5.0, 6)
    return od.Problem(model, od.Data(t, SEEN, states=["seen"]))


@pytest.mark.parametrize("rate", [1.0, 1e-5, 1e-8, 1e-10])
def test_a_steady_state_that_is_reached_slowly_is_solved_for(rate):
    # y = k (3 - y) (1 - y) with k = 1
    steady = (5 - np.sqrt(13)) / 2
    right = stats.norm.logpdf(SEEN, steady, 0.1).sum()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert od.loglik(binding(rate), {"k": 1.0}) == pytest.approx(right, abs=1e-5)


def test_of_two_steady_states_the_one_to_which_the_trajectory_leads_is_found():
    for start, end in ((0.9, 0.0), (1.1, 3.0)):
        model = od.Model.from_text(f"x(-1000000) = {start}; x' = -1e-7*x*(x - 1)*(x - k); seen ~ normal(x, 0.1)")
        problem = od.Problem(model, od.Data(np.arange(6.0), SEEN, states=["seen"]))
        right = stats.norm.logpdf(SEEN, end, 0.1).sum()
        assert od.loglik(problem, {"k": 3.0}) == pytest.approx(right, abs=1e-3)


def test_what_has_no_steady_state_is_integrated_and_named():
    model = od.Model.from_text("x(-1000000) = 0; x' = k; seen ~ normal(x, 0.1)")
    problem = od.Problem(model, od.Data(np.arange(6.0), 1e-3 * np.arange(6.0), states=["seen"]))
    with pytest.warns(od.InputWarning, match="x has not settled"):
        od.loglik(problem, {"k": 1e-3})
