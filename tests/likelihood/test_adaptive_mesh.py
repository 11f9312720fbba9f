"""Integrated trajectories solve their equations, however stiff, and say so where they cannot go on."""

import numpy as np
import pytest

import odinfer as od
from odinfer.ode.adaptive_mesh import Budget, BudgetExhausted, integrated


def problem_of(text, t, x):
    model = od.Model.from_text(text)
    return od.Problem(model, od.Data(t, x, states=model.states), positive=False)


def solved(problem, theta, x0, scale):
    """The integrated path after Newton steps on its collocation equations."""
    path, phi = integrated(problem, 0, theta, x0, scale), problem.phi(theta)
    for _ in range(6):
        path = path.move(path.condense(phi, scale), np.zeros(len(x0) + len(phi)), phi)
    return path


@pytest.mark.parametrize("m", [1.0, 100.0, 1000.0])
def test_relaxation_oscillations_are_accurate_at_the_observations(m):
    t = np.linspace(0.0, 2.0 * m, 15)
    text = "x' = y; y' = m*(1 - x^2)*y - x"
    x = od.simulate(od.Model.from_text(text), {"m": m}, [2.0, 0.0], t, rtol=1e-10, atol=1e-13)
    problem, scale = problem_of(text, t, x), x.std(0)
    found = solved(problem, np.array([m]), x[0], scale).states(t)
    assert np.abs((found - x) / scale).max() < 1e-5


def test_rates_twelve_magnitudes_apart_are_followed_in_few_steps():
    t = np.geomspace(1e-7, 3e6, 30)
    a, b = 1e6, 1e-6
    exact = np.stack([np.exp(-a * (t - t[0])), (np.exp(-b * (t - t[0])) - np.exp(-a * (t - t[0]))) * a / (a - b)], -1)
    problem = problem_of("x' = -a*x; y' = a*x - b*y", t, exact + 0.01)
    path = solved(problem, np.array([a, b]), np.array([1.0, 0.0]), np.array([0.3, 0.3]))
    assert np.abs(path.states(t) - exact).max() < 1e-3
    assert len(path.mesh) < 200


def test_observations_and_bends_of_inputs_are_points_of_the_mesh():
    model = od.Model.from_text("x' = -k*x + u; input u")
    t = np.linspace(0.0, 10.0, 6)
    u = (np.array([0.0, 2.9, 3.0, 3.1, 10.0]), np.array([0.0, 0.0, 1.0, 0.0, 0.0]))
    problem = od.Problem(model, od.Data(t, np.ones(6) + 0.1 * t, states=["x"], inputs={"u": u}), positive=False)
    mesh = integrated(problem, 0, np.array([1.0]), np.array([1.0]), np.array([1.0])).mesh
    assert set(t) | {2.9, 3.0, 3.1} <= set(mesh)
    assert (np.diff(mesh) > 0).all()


def test_a_trajectory_that_ends_before_the_data_is_none():
    t = np.linspace(0.0, 3.0, 8)
    problem = problem_of("x' = a*x^2", t, 1.0 + t)
    assert integrated(problem, 0, np.array([1.0]), np.array([1.0]), np.array([1.0])) is None
    assert integrated(problem, 0, np.array([0.1]), np.array([1.0]), np.array([1.0])) is not None


def test_a_field_that_is_not_finite_is_none_and_a_spent_budget_is_told():
    t = np.linspace(0.0, 3.0, 8)
    problem = problem_of("x' = -a*sqrt(x)", t, 2.0 - 0.1 * t)
    assert integrated(problem, 0, np.array([1.0]), np.array([-1.0]), np.array([1.0])) is None
    with pytest.raises(BudgetExhausted):
        integrated(problem, 0, np.array([0.1]), np.array([2.0]), np.array([1.0]), Budget(2))


def test_an_experiment_of_one_time_has_a_path():
    model = od.Model.from_text("x' = -k*x")
    data = od.Data.join({"a": od.Data(np.arange(5.0), np.exp(-np.arange(5.0)), ["x"])})
    problem = od.Problem(model, data, positive=False)
    one = od.Problem(model, data.with_rows([np.arange(5) < 4]), positive=False)
    assert integrated(one, 0, np.array([1.0]), np.array([1.0]), np.array([1.0])).mesh[-1] == 3.0
    assert integrated(problem, 0, np.array([1.0]), np.array([1.0]), np.array([1.0])).mesh[-1] == 4.0


def test_a_system_that_settles_for_long_first_has_a_short_mesh_and_is_where_it_settles():
    t = np.linspace(0.0, 4.0, 5)
    model = od.Model.from_text(
        "x' = a - k*x - 1e4*(x - y)\ny' = 1e4*(x - y)\nx(-1e6) = 0; y(-1e6) = 0\nbefore 0: x += 1"
    )
    problem = od.Problem(model, od.Data(t, np.exp(-t)[:, None] + [[1.0, 1.1]], states=model.states), positive=False)
    path = integrated(problem, 0, np.array([2.0, 0.5]), np.zeros(2), np.full(2, np.nan))
    assert len(path.mesh) < 400
    x = path.at(t[1:])[0].sum(1)  # two states in equilibrium: their sum decays by half the rate
    np.testing.assert_allclose(x, 8.0 + np.exp(-0.25 * t[1:]), rtol=1e-4)
