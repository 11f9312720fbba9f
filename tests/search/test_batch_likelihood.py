"""Many sets of unknowns at once have the likelihoods and gradients that each has by itself."""

import numpy as np
import pytest

import odinfer as od
from odinfer.likelihood.batch_likelihood import BatchLikelihood
from odinfer.ode.reference import reference_trajectory

T = np.linspace(0.5, 6.0, 9)


def problem():
    model = od.Model.from_text(
        "x' = -k*x + m; y' = k*x - n*y; x(0) = a; 0 < y < 9; at 3: x = x + a; local n\n"
        "z ~ normal(y, s); w ~ poisson(5*x)\n"
        "1e-3 < k < 10; 1e-3 < m < 10; 0.01 < n < 5; 0.1 < a < 4; 0.01 < s < 1; log k, m, s"
    )
    rng = np.random.default_rng(0)
    y = np.stack([rng.uniform(0.2, 2, 9), rng.poisson(5, 9)], -1)
    return od.Problem(
        model, od.Data.join({c: od.Data(T, y + i, states=["z", "w"]) for i, c in enumerate("ab")}), positive=False
    )


def points(solver, count=4):
    u = solver.likelihood.unknowns
    return np.random.default_rng(1).uniform(
        u.low + 0.3 * (u.high - u.low), u.low + 0.6 * (u.high - u.low), (count, u.size)
    )


def test_values_are_the_exact_log_likelihoods():
    p = problem()
    solver = BatchLikelihood.of(p, 1e-6, 2000)
    v = points(solver)
    for own, value in zip(v, solver.solve(v).worth.value, strict=True):
        theta = p.theta(solver.likelihood.unknowns.phi(own))
        values = dict(zip(p.parameters, theta, strict=True))
        values |= {f"y(0)[{c}]": own[i] for i, c in enumerate("ab")}
        assert -value == pytest.approx(od.loglik(p, values), abs=1e-3)


def test_gradients_are_those_of_the_values():
    solver = BatchLikelihood.of(problem(), 1e-8, 5000)
    v = points(solver, 3)
    _, g = solver.normal(solver.solve(v), np.array([2, 0]))
    for own, gradient in zip(v[[2, 0]], g, strict=True):
        h = 1e-5 * np.eye(len(own))
        slopes = (solver.solve(own + h).worth.value - solver.solve(own - h).worth.value) / 2e-5
        np.testing.assert_allclose(gradient, slopes, rtol=2e-3, atol=2e-3 * np.abs(slopes).max())


def test_where_a_trajectory_ends_early_the_value_is_infinite():
    model = od.Model.from_text("x' = k*x^2; x(0) = 1; -5 < k < 5")
    solver = BatchLikelihood.of(od.Problem(model, od.Data(T, T[:, None], states=["x"]), positive=False))
    value = solver.solve(np.array([[3.0], [-1.0]])).worth.value
    assert np.isinf(value[0])
    assert np.isfinite(value[1])


def test_functions_and_long_series_are_left_to_others():
    t = np.linspace(0.0, 9.0, 800)
    model = od.Model.from_text("x' = -k*x; x(0) = 1")
    assert BatchLikelihood.can(od.Problem(model, od.Data(t[:50], t[:50, None], states=["x"]), positive=False))
    assert not BatchLikelihood.can(od.Problem(model, od.Data(t, t[:, None], states=["x"]), positive=False))
    function = od.Model(lambda t, x, theta: [-theta[0] * x[0]], ["x"], ["k"])
    assert not BatchLikelihood.can(od.Problem(function, od.Data(t[:50], t[:50, None], states=["x"]), positive=False))


def test_initial_values_follow_from_the_unknowns():
    solver = BatchLikelihood.of(problem())
    v = points(solver, 1)[0]
    x0 = solver.initial(v)
    a = solver.problem.theta(solver.likelihood.unknowns.phi(v))[solver.problem.parameters.index("a")]
    np.testing.assert_allclose(x0, [[a, v[0]], [a, v[1]]])


def test_steps_are_measured_in_e_folds_or_by_bounds():
    solver = BatchLikelihood.of(problem())
    unit = dict(zip(solver.likelihood.unknowns.names, solver.unit(points(solver, 1))[0], strict=True))
    assert unit["k"] == 1.0
    assert unit["a"] == pytest.approx(0.39)
    assert unit["y(0)[a]"] == pytest.approx(0.9)


def test_paths_are_the_trajectories_on_meshes_of_their_steps():
    p = problem()
    solver = BatchLikelihood.of(p, 1e-5, 2000)
    v = points(solver, 1)[0]
    for e, path in enumerate(solver.paths(v)):
        exact = reference_trajectory(p.condition(e), p.theta_of(e, solver.likelihood.unknowns.phi(v)), path.x0, T)
        nodes = np.searchsorted(path.mesh, T)
        np.testing.assert_array_equal(path.mesh[nodes], T)
        np.testing.assert_allclose(path.nodes[nodes], exact, rtol=1e-4)
    blown = od.Model.from_text("x' = k*x^2; x(0) = 1; -5 < k < 5")
    ends = BatchLikelihood.of(od.Problem(blown, od.Data(T, T[:, None], states=["x"]), positive=False))
    assert ends.paths(np.array([3.0])) is None


def test_finer_steps_are_closer_to_the_exact_likelihood():
    coarse = BatchLikelihood.of(problem())
    v = points(coarse)
    exact = BatchLikelihood.of(problem(), 1e-9, 9000).solve(v).worth.value
    off, less = (np.abs(own.solve(v).worth.value - exact).max() for own in (coarse, coarse.finer()))
    assert less < 0.1 * off
