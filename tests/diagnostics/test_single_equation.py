"""One equation on its own, driven by the other states."""

import numpy as np
import pytest

import odinfer as od
from odinfer.diagnostics.single_equation import Equation, Estimate
from odinfer.paper.systems import fitzhugh_nagumo, lotka_volterra


def estimate(problem):
    risk, solutions, *_ = od.Odin().solve(problem)
    return Estimate.of(risk, solutions[0])


@pytest.mark.parametrize("k", [0, 1])
def test_its_derivatives_are_those_of_the_whole_model(k):
    system = lotka_volterra
    problem = od.Problem(system.model, system.sample(0.1, 0), positive=False)
    rng = np.random.default_rng(0)
    x, theta = rng.uniform(1, 3, (7, 2)), np.array([2.0, 1.0, 4.0, 1.0])
    f, fx, ft = system.model.linearise(np.zeros(7), x, theta, np.zeros((7, 0)))
    own = Equation(problem, k).model.linearise(np.zeros(7), x[:, [k]], theta, x[:, [1 - k]])
    np.testing.assert_array_equal(own[0], f[:, [k]])
    np.testing.assert_array_equal(own[1], fx[:, [k]][:, :, [k]])
    np.testing.assert_array_equal(own[2], ft[:, [k]])


def test_its_solution_follows_the_truth_where_the_equation_is_right():
    problem = od.Problem(lotka_volterra.model, lotka_volterra.sample(0.05, 3), positive=False)
    found = estimate(problem)
    for k in range(2):
        own, refined = Equation(problem, k).follow(problem, found)
        assert np.abs(refined.paths[0].states(own.data.t)[:, 0] - lotka_volterra.x[:, k]).max() < 0.15


def test_only_the_parameters_of_the_equation_are_free():
    problem = od.Problem(
        lotka_volterra.model, lotka_volterra.sample(0.05, 3), bounds={"c": (0, 10)}, scale={"d": "log"}, positive=False
    )
    own, phi = Equation(problem, 1).alone(problem, estimate(problem))
    assert own.free == ("c", "d")
    assert own.limits("c") == (0, 10)
    assert own.is_log.tolist() == [False, True]
    assert len(phi) == 2


def test_a_right_equation_is_followed_though_the_other_is_wrong():
    model = od.Model.from_text("prey' = a*prey^2 + b*predator\npredator' = -c*predator + d*prey*predator")
    problem = od.Problem(model, lotka_volterra.sample(0.1, 1), positive=False)
    own, refined = Equation(problem, 1).follow(problem, estimate(problem))
    residual = refined.paths[0].states(own.data.t)[:, 0] - lotka_volterra.x[:, 1]
    assert np.sqrt(np.mean(residual**2)) < 0.1


def test_missing_values_and_several_experiments():
    a, b = fitzhugh_nagumo.sample(100, 0), fitzhugh_nagumo.sample(100, 1)
    y = a.y.copy()
    y[3:6, 0] = np.nan
    data = od.Data.join({"a": od.Data(a.t, y, a.states), "b": b})
    problem = od.Problem(fitzhugh_nagumo.model, data, positive=False)
    own, refined = Equation(problem, 0).follow(problem, estimate(problem))
    assert [len(e.t) for e in own.data.experiments] == [17, 20]
    found = [p.states(e.t) for p, e in zip(refined.paths, own.data.experiments, strict=True)]
    assert [len(x) for x in found] == [17, 20]
