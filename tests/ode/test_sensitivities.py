"""Sensitivities are the derivatives of what the march finds."""

import numpy as np
import pytest

import odinfer as od
from odinfer.ode.breakpoints import Timetable
from odinfer.ode.integrate_batch import integrate_batch
from odinfer.ode.right_hand_side import Field
from odinfer.ode.sensitivities import sensitivities


def setting(text, t):
    t = np.asarray(t, float)
    p = od.Problem(
        od.Model.from_text(text), od.Data(t, np.arange(1.0, len(t) + 1)[:, None], states=["x"]), positive=False
    )
    return p, Field(Timetable.of([p.condition(0)]), p.own_index(0))


@pytest.mark.parametrize(
    "text",
    [
        "x' = -k*x*y + m; y' = k*x*y - y; x(0) = m; y(0) = 1; fixed c = 3; q ~ normal(c*x)",
        "x' = -k*x; y' = k*x - m*y; x(0) = 2; y(0) = 0; at 1.5: x = x*y + m",
        "x' = -k*x + piecewise(m*t, t < 1.2, 0); y' = -1e4*(y - sin(x)); x(0) = k; y(0) = 1",
    ],
)
def test_they_agree_with_differences(text):
    column = "q" if "q ~" in text else "x"
    t = np.array([0.5, 1.0, 2.0, 3.0])
    p = od.Problem(od.Model.from_text(text), od.Data(t, np.arange(4.0)[:, None], states=[column]), positive=False)
    f = Field(Timetable.of([p.condition(0)]), p.own_index(0))
    names = dict(zip(p.model.parameters, range(9), strict=False))
    theta = np.full((1, len(names)), 3.0)
    theta[0, names["k"]], theta[0, names["m"]] = 0.8, 1.3
    e = np.zeros(1, int)

    def end(theta):
        x0 = p.condition(0).initial(theta, np.empty((len(theta), 0)))
        return integrate_batch(f, np.zeros(len(theta), int), theta, x0, 1e-8, 5000)

    slopes = p.condition(0).initial_slopes(theta)[..., f.wanted]
    S = sensitivities(f, end(theta), e, theta, slopes, np.zeros(1, int))
    for q, place in enumerate(f.wanted):
        h = 1e-4
        up, down = (end(theta + s * h * np.eye(theta.shape[1])[place]).x[0] for s in (1, -1))
        np.testing.assert_allclose(S[0, ..., q], (up - down) / (2 * h), rtol=2e-3, atol=2e-4)


def test_of_a_linear_equation_by_its_initial_value_they_are_exact():
    _, f = setting("x' = -k*x", [0.0, 1.0, 2.0, 3.0])
    theta, e = np.array([[0.5], [2.0], [0.1]]), np.zeros(3, int)
    trajectories = integrate_batch(f, e, theta, np.ones((3, 1)), 1e-7, 1000)
    S0 = np.tile([[[1.0, 0.0]]], (2, 1, 1))
    S = sensitivities(f, trajectories, e, theta, S0, np.array([2, 0]))
    for own, k in zip(S, (0.1, 0.5), strict=True):
        t = np.arange(4.0)
        np.testing.assert_allclose(own[:, 0, 0], np.exp(-k * t), rtol=1e-4)
        np.testing.assert_allclose(own[:, 0, 1], -t * np.exp(-k * t), rtol=1e-3)


def test_within_long_steps_they_are_read_off():
    t = np.linspace(0.0, 6.0, 80)
    _, f = setting("x' = -k*x + m", t)
    theta, e = np.array([[0.5, 1.0]]), np.zeros(1, int)
    trajectories = integrate_batch(f, e, theta, np.full((1, 1), 4.0), 1e-5, 500)
    assert trajectories.tries[0] < 60
    S = sensitivities(f, trajectories, e, theta, np.eye(1, 3)[None], np.zeros(1, int))[0, :, 0]
    k, m, decay = 0.5, 1.0, np.exp(-0.5 * t)
    by_k = -t * decay * (4.0 - m / k) - m / k**2 * (1.0 - decay)
    np.testing.assert_allclose(S, np.c_[decay, by_k, (1.0 - decay) / k], rtol=1e-2, atol=1e-3)


def test_where_a_trajectory_did_not_get_to_there_are_none():
    _, f = setting("x' = k*x^2", [0.0, 0.5, 2.0, 3.0])
    theta, e = np.ones((1, 1)), np.zeros(1, int)
    trajectories = integrate_batch(f, e, theta, np.ones((1, 1)), 1e-5, 500)
    S = sensitivities(f, trajectories, e, theta, np.zeros((1, 1, 1)), np.zeros(1, int))
    assert np.isfinite(S[0, :2]).all()
    assert np.isnan(S[0, 2:]).all()
