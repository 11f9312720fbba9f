"""Trajectories beyond the data: those of forward integration, sensitivities included, or none after a blow-up."""

import numpy as np
import pytest

import odinfer as od
from odinfer.likelihood import refinement as rf
from odinfer.likelihood.extension import extended
from odinfer.likelihood.likelihood import Likelihood


@pytest.fixture(scope="module")
def longer(lv_fit):
    best = lv_fit.maximum()
    beyond = np.array([2.1, 2.35, 3.0])
    found = extended(best.likelihood, best.refined, [beyond])
    assert found is not None
    return best, beyond, found


def test_beyond_the_data_the_states_are_those_of_forward_integration(lv, longer):
    best, beyond, found = longer
    path = found.paths[0]
    t = np.concatenate([[0.0], np.linspace(1.9, 3.0, 12)])
    right = od.simulate(lv.model, best.problem.theta(best.phi), path.x0, t)
    np.testing.assert_allclose(path.at(t[1:])[0], right[1:], rtol=1e-4)
    assert set(beyond) <= set(path.mesh)
    assert path.mesh[-1] == 3.0
    assert found.condensed[0].violation < 1e-7


def test_inside_the_data_nothing_changes(longer):
    best, _, found = longer
    old, new = best.refined.paths[0], found.paths[0]
    n = len(old.mesh)
    np.testing.assert_array_equal(new.mesh[:n], old.mesh)
    np.testing.assert_allclose(new.nodes[:n], old.nodes, rtol=1e-8)
    np.testing.assert_allclose(found.condensed[0].nodes[:n], best.refined.condensed[0].nodes, rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(found.phi, best.phi)


def test_sensitivities_go_on_too(lv, longer):
    best, _, found = longer
    path, h, t = found.paths[0], 1e-5, np.array([0.0, 3.0])
    S = path.sensitivity_at(found.condensed[0], t[1:])[0]

    def end(v):
        return od.simulate(lv.model, best.problem.theta(v[2:]), v[:2], t)[1]

    v = np.concatenate([path.x0, found.phi])
    for i, d in enumerate(h * np.eye(6)):
        np.testing.assert_allclose(S[:, i], (end(v + d) - end(v - d)) / (2 * h), rtol=1e-3, atol=1e-3)


def test_times_inside_the_data_alone_change_nothing(lv_fit):
    best = lv_fit.maximum()
    found = extended(best.likelihood, best.refined, [np.array([0.5, 1.0])])
    np.testing.assert_array_equal(found.paths[0].mesh, best.refined.paths[0].mesh)


def test_there_is_nothing_after_a_blow_up():
    # x = 1/(1 − t/2) ends at t = 2.
    model = od.Model.from_text("x' = k*x^2")
    t = np.linspace(0.0, 1.0, 9)
    problem = od.Problem(model, od.Data(t, 1 / (1 - 0.5 * t), states=["x"]), positive=False)
    likelihood = Likelihood(problem, np.ones(1))
    refined = rf.refine_from(problem, np.array([0.5]), [(t, (1 / (1 - 0.5 * t))[:, None])])
    assert extended(likelihood, refined, [np.array([2.5])]) is None
    before = extended(likelihood, refined, [np.array([1.5])])
    assert before.paths[0].nodes[-1, 0] == pytest.approx(4.0, rel=1e-3)


def test_inputs_keep_their_last_value():
    model = od.Model.from_text("x' = -k*x + u\ninput u")
    t = np.linspace(0.0, 4.0, 15)
    x = od.simulate(model, [0.8], [1.0], t, inputs={"u": (t, t)})
    y = x[:, 0] + 0.01 * np.random.default_rng(0).normal(size=15)
    problem = od.Problem(model, od.Data(t, y, states=["x"], inputs={"u": t}), positive=False)
    refined = rf.refine_from(problem, np.array([0.8]), [(t, x)])
    found = extended(Likelihood(problem, np.ones(1)), refined, [np.array([9.0])])
    k, last = found.phi[0], refined.paths[0].nodes[-1, 0]
    right = 4.0 / k + (last - 4.0 / k) * np.exp(-5.0 * k)
    assert found.paths[0].nodes[-1, 0] == pytest.approx(right, rel=1e-5)
