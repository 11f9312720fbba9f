"""Collocation paths: solutions of the equations, their sensitivities, and meshes that suffice."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

import odinfer as od
from odinfer.ode.collocation import STAGES, A, C, CollocationPath, _radau, alike, condense, condense_paths

FEW = settings(max_examples=15, derandomize=True, deadline=None)
TRUTH = np.array([2.0, 1.0, 4.0, 1.0])
ONES = np.ones(2)


def lv_field(t, x, a, b, c, d):
    return [a * x[0] - b * x[0] * x[1], -c * x[1] + d * x[0] * x[1]]


def integrate(theta, x0, t):
    return solve_ivp(lv_field, (t[0], t[-1]), x0, "DOP853", t, args=tuple(theta), rtol=1e-12, atol=1e-12).y.T


def flat_path(problem, mesh, x0, experiment=0) -> CollocationPath:
    """A first guess that solves nothing: the initial values throughout."""
    x0 = np.asarray(x0, float)
    return CollocationPath(problem, experiment, mesh, x0, np.tile(x0, (len(mesh) - 1, STAGES, 1)))


def restored(path, phi, scale) -> CollocationPath:
    """Newton on the collocation equations at fixed initial values and parameters."""
    for _ in range(30):
        lin = path.condense(phi, scale)
        if lin.violation < 1e-11:
            return path
        path = path.move(lin, np.zeros(len(path.x0) + len(phi)), phi)
    raise AssertionError("Newton did not converge")


@pytest.fixture(scope="module")
def problem(lv, lv_data):
    return od.Problem(lv.model, lv_data, positive=False)


def test_the_nodes_are_those_of_radau_and_integrate_polynomials_exactly():
    root = np.sqrt(6)
    assert STAGES == 4
    assert C[-1] == 1.0
    for power in range(STAGES):  # ∫₀^c s^p ds
        np.testing.assert_allclose(A @ C**power, C ** (power + 1) / (power + 1), atol=1e-14)
    for power in range(2 * STAGES - 1):  # the last row is a quadrature of order 2s − 1
        assert A[-1] @ C**power == pytest.approx(1 / (power + 1), abs=1e-13)
    np.testing.assert_allclose(_radau(3)[0], [(4 - root) / 10, (4 + root) / 10, 1.0], atol=1e-14)


@FEW
@given(
    a=st.floats(0.5, 3.0),
    b=st.floats(0.5, 1.5),
    c=st.floats(1.0, 4.0),
    d=st.floats(0.5, 1.5),
    prey=st.floats(1.0, 5.0),
    predator=st.floats(1.0, 4.0),
)
def test_a_restored_path_solves_the_equations(lv, lv_data, a, b, c, d, prey, predator):
    problem, phi = od.Problem(lv.model, lv_data, positive=False), np.array([a, b, c, d])
    t, x0 = np.linspace(0.0, 2.0, 61), [prey, predator]
    guess = flat_path(problem, t, x0)
    guess = CollocationPath(
        problem, 0, t, guess.x0, integrate(phi, x0, np.append(0.0, guess.stage_times.ravel()))[1:].reshape(60, 4, 2)
    )
    guess = CollocationPath(problem, 0, t, guess.x0, guess.Z + 0.05)
    path = restored(guess, phi, ONES)
    np.testing.assert_allclose(path.nodes, integrate(phi, x0, t), rtol=1e-6, atol=1e-7)
    between = np.linspace(0.0, 2.0, 47)
    x, slope = path.at(between)
    right = integrate(phi, x0, between)
    np.testing.assert_allclose(x, right, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(slope, np.transpose(lv_field(0.0, right.T, *phi)), rtol=1e-3, atol=2e-3)


def test_newton_finds_the_trajectory_from_a_constant_guess(problem):
    t = np.linspace(0.0, 2.0, 41)
    path = restored(flat_path(problem, t, [5.0, 3.0]), TRUTH, ONES)
    np.testing.assert_allclose(path.nodes, integrate(TRUTH, [5.0, 3.0], t), rtol=1e-6)
    assert np.isfinite(path.Z).all()


def test_sensitivities_equal_finite_differences_of_trajectories(lv, lv_data):
    problem = od.Problem(lv.model, lv_data, scale={"a": "log"}, fixed={"b": 1.0}, positive=False)
    t, x0, phi = np.linspace(0.0, 2.0, 41), np.array([5.0, 3.0]), np.array([np.log(2.0), 4.0, 1.0])
    path = restored(flat_path(problem, t, x0), phi, ONES)
    lin = path.condense(phi, ONES)
    between, h = np.linspace(0.05, 1.97, 9), 1e-5
    inside = path.sensitivity_at(lin, between)
    assert lin.nodes.shape == (41, 2, 6)
    assert inside.shape == (9, 2, 5)
    for i in range(5):
        up, down = np.zeros(5), np.zeros(5)
        up[i], down[i] = h, -h

        def run(move, times):
            theta = problem.theta(phi + move[2:])
            return integrate(theta, x0 + move[:2], times)

        np.testing.assert_allclose(lin.nodes[..., i], (run(up, t) - run(down, t)) / (2 * h), atol=2e-4)
        times = np.append(0.0, between)
        difference = (run(up, times) - run(down, times))[1:] / (2 * h)
        np.testing.assert_allclose(inside[..., i], difference, atol=2e-4)


def test_a_first_order_step_has_a_second_order_error(problem):
    t, x0 = np.linspace(0.0, 2.0, 41), np.array([5.0, 3.0])
    path = restored(flat_path(problem, t, x0), TRUTH, ONES)
    lin = path.condense(TRUTH, ONES)
    errors = []
    for size in (1e-2, 1e-3):
        dphi = size * np.array([1.0, -0.5, 1.0, 0.3])
        moved = path.move(lin, np.append(size * np.array([0.5, -1.0]), dphi), TRUTH + dphi)
        errors.append(np.abs(moved.nodes - integrate(TRUTH + dphi, moved.x0, t)).max())
    assert errors[1] < 0.02 * errors[0]


def test_mesh_refinement_reduces_the_defects_until_they_suffice(problem):
    phi, scale = TRUTH, np.array([1.0, 1.0])
    path = restored(flat_path(problem, np.linspace(0.0, 2.0, 6), [5.0, 3.0]), phi, scale)
    worst = [path.defects(phi, scale).max()]
    while (finer := path.refined(phi, scale, 1e-6)) is not None:
        assert len(finer.mesh) > len(path.mesh)
        assert set(path.mesh) <= set(finer.mesh)
        path = restored(finer, phi, scale)
        worst.append(path.defects(phi, scale).max())
    assert len(worst) > 1
    assert (np.diff(worst) < 0).all()
    assert worst[-1] <= 1e-6
    np.testing.assert_allclose(path.nodes, integrate(phi, [5.0, 3.0], path.mesh), rtol=1e-6)


def test_refinement_gives_up_where_a_mesh_would_get_too_large(problem):
    path = restored(flat_path(problem, np.linspace(0.0, 2.0, 6), [5.0, 3.0]), TRUTH, ONES)
    assert path.refined(TRUTH, ONES, 1e-12, most=10) is None


def test_another_mesh_carries_the_same_curve(problem):
    path = restored(flat_path(problem, np.linspace(0.0, 2.0, 21), [5.0, 3.0]), TRUTH, ONES)
    other = path.on_mesh(np.linspace(0.0, 2.0, 41))
    t = np.linspace(0.0, 2.0, 33)
    np.testing.assert_allclose(other.at(t)[0], path.at(t)[0], atol=1e-5)


def test_inputs_and_explicit_time_enter_the_path():
    model = od.Model.from_text("x' = -k*x + u + sin(t)\ninput u")
    t = np.linspace(0.0, 3.0, 13)
    data = od.Data(t, np.exp(-t), states=["x"], inputs={"u": 2 * t})
    path = restored(flat_path(od.Problem(model, data, positive=False), t, [1.0]), np.array([0.8]), np.ones(1))
    k = 0.8  # x' = −kx + 2t + sin t has the solution below
    special = 2 * t / k - 2 / k**2 + (k * np.sin(t) - np.cos(t)) / (1 + k**2)
    exact = (1.0 + 2 / k**2 + 1 / (1 + k**2)) * np.exp(-k * t) + special
    np.testing.assert_allclose(path.nodes[:, 0], exact, rtol=1e-7)


def test_stiff_equations_need_no_fine_mesh():
    model = od.Model.from_text("x' = -k*(x - cos(t))")
    t = np.linspace(0.0, 2.0, 21)
    path = restored(
        flat_path(od.Problem(model, od.Data(t, np.cos(t), states=["x"]), positive=False), t, [1.0]),
        np.array([1e5]),
        np.ones(1),
    )
    np.testing.assert_allclose(path.nodes[:, 0], np.cos(t), atol=1e-4)


def test_a_path_outside_the_finite_numbers_has_an_infinite_violation(problem):
    assert flat_path(problem, np.linspace(0, 2, 5), [1e200, 1e200]).condense(TRUTH, ONES).violation == np.inf
    assert flat_path(problem, np.linspace(0, 2, 5), [np.nan, 1.0]).condense(TRUTH, ONES).violation == np.inf


# ---- many at once


def test_paths_of_experiments_that_only_data_tell_apart_are_linearised_at_once_as_each_alone(lv):
    times = [np.linspace(0, 2, 9), np.linspace(0, 1.5, 9), np.linspace(0, 2, 7)]
    data = od.Data.join({str(i): lv.sample(0.1, i, t=t) for i, t in enumerate(times)})
    problem, phi, scale = od.Problem(lv.model, data, positive=False), np.array([2.0, 1.0, 4.0, 1.0]), np.ones(2)
    paths = [CollocationPath.through(problem, e, t, lv.states) for e, t in enumerate(times)]
    assert alike(problem, paths) == [[0, 1], [2]]
    for path, found in zip(paths, condense_paths(problem, paths, phi, scale), strict=True):
        alone = condense(problem, path.experiment, path.mesh, path.x0[None], path.Z[None], phi[None], scale)
        for mine, other in zip(found, alone, strict=True):
            np.testing.assert_allclose(mine, other[0], rtol=1e-12, atol=1e-13)


def test_experiments_with_inputs_of_their_own_are_not_alike():
    model = od.Model.from_text("x' = -k*x + u; input u")
    t = np.linspace(0, 1, 5)
    parts = {name: od.Data(t, 1.0 + t, states=["x"], inputs={"u": (t, i + t)}) for i, name in enumerate("ab")}
    data = od.Data.join(parts)
    problem = od.Problem(model, data, positive=False)
    paths = [CollocationPath.through(problem, e, t, lambda t: np.ones((len(t), 1))) for e in range(2)]
    assert alike(problem, paths) == [[0], [1]]
