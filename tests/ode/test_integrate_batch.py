"""Many trajectories side by side are the trajectories that an independent solver finds for each."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.linalg import expm

import odinfer as od
from odinfer.ode.breakpoints import Timetable
from odinfer.ode.integrate_batch import integrate_batch
from odinfer.ode.reference import reference_trajectory
from odinfer.ode.right_hand_side import Field


def marching(text, t, column="x", **more):
    t = np.asarray(t, float)
    p = od.Problem(
        od.Model.from_text(text),
        od.Data(t, np.arange(1.0, len(t) + 1)[:, None], states=[column], **more),
        positive=False,
    )
    return p, Field(Timetable.of([p.condition(0)]), p.own_index(0))


def gone(f, theta, x0, tolerance=1e-6, most=2000):
    theta, x0 = np.atleast_2d(theta), np.atleast_2d(x0)
    return integrate_batch(f, np.zeros(len(theta), int), theta, x0, tolerance, most)


def test_a_stiff_reaction_agrees_with_an_independent_solver():
    text = "x' = -a*x + b*y*z; y' = a*x - b*y*z - c*y^2; z' = c*y^2"
    t = [0.0, 1e-3, 1.0, 1e3, 1e6, 1e10]
    _, f = marching(text, t)
    a, b, c = 0.04, 1e4, 3e7

    def robertson(t, x):
        return [-a * x[0] + b * x[1] * x[2], a * x[0] - b * x[1] * x[2] - c * x[1] ** 2, c * x[1] ** 2]

    exact = solve_ivp(robertson, (0, 1e10), [1.0, 0, 0], "Radau", t, rtol=1e-10, atol=1e-16).y.T
    found = gone(f, [a, b, c], [1.0, 0.0, 0.0])
    np.testing.assert_allclose(found.x[0], exact, rtol=1e-4, atol=1e-12)
    assert len(found.steps) < 500


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_linear_systems_agree_with_the_exponential_of_their_matrix(seed):
    rng = np.random.default_rng(seed)
    K, B = int(rng.integers(1, 4)), 3
    A = rng.normal(size=(B, K, K)) - 2.0 * np.eye(K)
    names = "xyz"[:K]
    text = "; ".join(f"{s}' = " + " + ".join(f"a{i}{j}*{r}" for j, r in enumerate(names)) for i, s in enumerate(names))
    t = np.sort(rng.uniform(0.1, 3.0, 4))
    p, f = marching(f"{text}; " + "; ".join(f"{s}(0) = {i + 1}" for i, s in enumerate(names)), t)
    order = [p.model.parameters.index(f"a{i}{j}") for i in range(K) for j in range(K)]
    theta = np.empty((B, K * K))
    theta[:, order] = A.reshape(B, -1)
    found = gone(f, theta, np.tile(np.arange(1.0, K + 1), (B, 1)))
    for b in range(B):
        exact = np.stack([expm(A[b] * s) @ np.arange(1.0, K + 1) for s in t])
        np.testing.assert_allclose(found.x[b, f.table.rows[0]], exact, atol=2e-5 * np.abs(exact).max())


@pytest.mark.parametrize(
    "text",
    [
        "x' = -k*x + m; x(0) = 1; at 2: x = x + m; at 3: x = 2*x",
        "x' = -k*x + piecewise(m, t < 1.3, 0); x(0) = 0",
        "x' = -k*x + m*sin(3*t); x(0) = 2; before 2: x = 5",
    ],
)
def test_jumps_switches_and_driven_equations_agree_with_the_reference(text):
    p, f = marching(text, [1.0, 2.0, 3.5])
    theta = np.array([[0.7, 1.5], [2.0, 0.3]])
    x0 = p.condition(0).initial(theta, np.empty((2, 0)))
    found = gone(f, theta, x0)
    for b in range(2):
        exact = reference_trajectory(p.condition(0), theta[b], x0[b], p.data.experiments[0].t)
        np.testing.assert_allclose(found.x[b, f.table.rows[0]], exact, rtol=1e-5)


def test_one_that_ends_early_is_not_a_number_from_there_and_leaves_others_alone():
    _, f = marching("x' = k*x^2", [0.0, 0.5, 2.0, 3.0])
    found = gone(f, [[1.0], [-1.0]], [[1.0], [1.0]])
    np.testing.assert_allclose(found.x[0, 1], 2.0, rtol=1e-5)
    assert np.isnan(found.x[0, 2:]).all()
    np.testing.assert_allclose(found.x[1, :, 0], [1.0, 1 / 1.5, 1 / 3.0, 1 / 4.0], rtol=1e-5)


def test_a_trajectory_does_not_depend_on_its_company():
    _, f = marching("x' = k*x*(1 - x) + y; y' = -k*y", [0.0, 1.0, 5.0])
    theta, x0 = np.array([[1.0], [30.0], [0.2]]), np.array([[0.1, 0.0], [0.2, 1.0], [2.0, 3.0]])
    whole = gone(f, theta, x0, 1e-3)
    for b in range(3):
        np.testing.assert_allclose(gone(f, theta[b], x0[b], 1e-3).x[0], whole.x[b], rtol=1e-9)


def test_a_system_that_settles_for_a_million_units_takes_few_steps():
    _, f = marching("x' = k*(m - x); y' = x - y; x(0) = 0; y(0) = 0", [1e6])
    found = gone(f, [[1.0, 3.0]], [[0.0, 0.0]], 1e-3)
    np.testing.assert_allclose(found.x[0, -1], [3.0, 3.0], rtol=1e-5)
    assert len(found.steps) < 100


def test_a_long_chain_from_zero_is_followed():
    text = "a' = -k*a; b' = k*a - k*b; c' = k*b - k*c; x' = k*c - k*x; a(0) = 1e5; b(0) = 0; c(0) = 0; x(0) = 0"
    _, f = marching(text, [0.01, 1.0])
    found = gone(f, [[1.0]], [[1e5, 0.0, 0.0, 0.0]], 1e-4)
    t = np.array([0.01, 1.0])
    np.testing.assert_allclose(found.x[0, 1:, 3], 1e5 * t**3 / 6 * np.exp(-t), rtol=1e-4)


@pytest.mark.parametrize("least", [1e-6, 1e-20, 1e-80])
def test_what_grows_from_very_little_is_followed_beside_what_is_large(least):
    t = np.log(1.0 / least) / 30.0 * np.array([0.0, 1.0, 1.05])
    _, f = marching("x' = r*x*(y - x); y' = 0*x", t)
    found = gone(f, [[30.0]], [[least, 1.0]], 1e-6)
    np.testing.assert_allclose(found.x[0, :, 0], 1.0 / (1.0 + (1.0 / least - 1.0) * np.exp(-30.0 * t)), rtol=1e-4)


def test_too_many_steps_end_a_trajectory():
    _, f = marching("x' = y; y' = -k*x", [0.0, 1000.0])
    assert np.isnan(gone(f, [[1.0]], [[1.0, 0.0]], 1e-6, 50).x[0, -1]).all()


def test_many_observations_of_a_smooth_system_are_read_off_few_steps():
    t = np.linspace(0.0, 10.0, 200)
    _, f = marching("x' = k*x*(m - x)", t)
    theta, x0 = [[1.0, 2.0], [0.5, 3.0]], [[0.1], [0.2]]
    found = gone(f, theta, x0, 1e-5)
    assert found.tries.max() < 100
    e = np.zeros(2, int)
    halted = integrate_batch(f, e, np.array(theta), np.array(x0), 1e-5, 2000, halting=True)
    assert halted.tries.min() >= 199
    for b, ((k, m), (x,)) in enumerate(zip(theta, x0, strict=True)):
        exact = m / (1.0 + (m / x - 1.0) * np.exp(-k * m * t))
        np.testing.assert_allclose(found.x[b, :, 0], exact, rtol=3e-4)
        np.testing.assert_allclose(halted.x[b, :, 0], exact, rtol=1e-6)


def test_a_short_pulse_in_time_between_observations_is_not_passed_over():
    _, f = marching("x' = -x + k*exp(-((t - 5)/0.05)^2)", np.linspace(0.0, 10.0, 101))
    area = 0.05 * np.sqrt(np.pi)
    found = gone(f, [[20.0]], [[1.0]], 1e-4)
    assert found.x[0, -1, 0] == pytest.approx(np.exp(-10.0) + 20.0 * area * np.exp(-5.0), rel=0.01)


def test_each_trajectory_may_have_steps_of_its_own_number():
    _, f = marching("x' = -k*x; x(0) = 1", [1.0, 5.0])
    theta = np.full((2, 1), 3.0)
    found = integrate_batch(f, np.zeros(2, int), theta, np.ones((2, 1)), 1e-6, np.array([500, 3]))
    assert np.isfinite(found.x[0]).all()
    assert np.isnan(found.x[1, -1]).all()
    assert found.tries[1] == 3 < found.tries[0] < 500
