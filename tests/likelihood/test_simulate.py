"""Simulations against other solvers and closed forms; inputs, stiffness, and trajectories that end."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

import odinfer as od
from odinfer.ode.simulate import simulate

FEW = settings(max_examples=15, derandomize=True, deadline=None)


@FEW
@given(
    theta=st.tuples(*[st.floats(0.5, 4.0)] * 4),
    x0=st.tuples(*[st.floats(0.5, 5.0)] * 2),
    last=st.floats(0.5, 5.0),
)
def test_it_agrees_with_another_solver(lv, theta, x0, last):
    t = np.linspace(0.0, last, 15)
    a, b, c, d = theta

    def field(_, x):
        return [a * x[0] - b * x[0] * x[1], -c * x[1] + d * x[0] * x[1]]

    right = solve_ivp(field, (0.0, last), x0, "DOP853", t, rtol=1e-12, atol=1e-13).y.T
    np.testing.assert_allclose(simulate(lv.model, theta, x0, t), right, rtol=1e-6, atol=1e-8)


def test_it_agrees_with_closed_forms(decay, logistic, oscillator):
    t = np.linspace(0.0, 6.0, 25)
    np.testing.assert_allclose(simulate(decay, [0.7], [3.0], t)[:, 0], 3 * np.exp(-0.7 * t), rtol=1e-7)
    exact = 50.0 / (1 + (50.0 / 2.0 - 1) * np.exp(-1.2 * t))
    np.testing.assert_allclose(simulate(logistic, {"r": 1.2, "K": 50.0}, [2.0], t)[:, 0], exact, rtol=1e-7)
    x = simulate(oscillator, {"a": -4.0, "b": 0.0}, [2.0, 0.0], t)
    np.testing.assert_allclose(x, np.stack([2 * np.cos(2 * t), -4 * np.sin(2 * t)], -1), atol=1e-6)


def test_a_stiff_system_agrees_with_an_implicit_solver():
    robertson = od.Model.from_text(
        """A' = -k1*A + k3*B*C
        B' = k1*A - k2*B^2 - k3*B*C
        C' = k2*B^2"""
    )
    theta = {"k1": 0.04, "k2": 3e7, "k3": 1e4}

    def field(_, x):
        first, second, third = theta["k1"] * x[0], theta["k2"] * x[1] ** 2, theta["k3"] * x[1] * x[2]
        return [-first + third, first - second - third, second]

    t = np.concatenate([[0.0], np.geomspace(1e-4, 1e4, 20)])
    right = solve_ivp(field, (0.0, 1e4), [1.0, 0.0, 0.0], "Radau", t, rtol=1e-10, atol=1e-14).y.T
    np.testing.assert_allclose(simulate(robertson, theta, [1.0, 0.0, 0.0], t), right, rtol=1e-5, atol=1e-9)


def test_inputs_are_linear_in_between_and_their_corners_are_met():
    model = od.Model.from_text("x' = -k*x + u\ninput u")
    t = np.linspace(0.0, 10.0, 41)
    at, values = np.array([0.0, 3.0, 3.01, 7.0, 10.0]), np.array([0.0, 0.0, 5.0, 5.0, 0.0])

    def field(now, x):
        return [-0.9 * x[0] + np.interp(now, at, values)]

    right = solve_ivp(field, (0.0, 10.0), [1.0], "Radau", t, rtol=1e-10, atol=1e-12, max_step=0.01).y.T
    got = simulate(model, [0.9], [1.0], t, inputs={"u": (at, values)})
    np.testing.assert_allclose(got, right, rtol=1e-6, atol=1e-8)


def test_a_short_pulse_is_not_stepped_over():
    model = od.Model.from_text("x' = u + 0*k\ninput u")
    at, values = np.array([0.0, 50.0, 50.001, 50.002, 100.0]), np.array([0.0, 0.0, 1000.0, 0.0, 0.0])
    x = simulate(model, [1.0], [0.0], [0.0, 100.0], inputs={"u": (at, values)})
    assert x[-1, 0] == pytest.approx(1.0, rel=1e-6)  # the area of the triangle


def test_explicit_time_enters():
    model = od.Model.from_text("x' = a*cos(t)")
    t = np.linspace(1.0, 9.0, 20)
    np.testing.assert_allclose(simulate(model, [2.0], [0.5], t)[:, 0], 0.5 + 2 * (np.sin(t) - np.sin(1.0)), atol=1e-8)


@pytest.mark.parametrize("text", ["x' = a*x^2", "x' = -a/(2*x)", "x' = -a*sqrt(x) - 0.2"])
def test_rows_after_a_blow_up_are_nan_and_rows_before_it_stay(text):
    model = od.Model.from_text(text)
    t = np.linspace(0.0, 3.0, 31)
    x = simulate(model, [1.0], [1.0], t)
    assert x.shape == (31, 1)
    alive = np.isfinite(x[:, 0])
    end = alive.argmin()
    assert not alive[-1]
    assert (alive == (np.arange(31) < end)).all()
    assert end >= 9
    if text == "x' = a*x^2":  # x = 1/(1 − t)
        assert end in (10, 11)
        np.testing.assert_allclose(x[:10, 0], 1 / (1 - t[:10]), rtol=1e-5)
    if text == "x' = -a/(2*x)":  # x = √(1 − t)
        np.testing.assert_allclose(x[:10, 0], np.sqrt(1 - t[:10]), rtol=1e-5)


def test_a_field_that_is_not_finite_at_the_start_leaves_only_the_start(decay):
    model = od.Model.from_text("x' = a*log(x)")
    x = simulate(model, [1.0], [-1.0], [0.0, 1.0, 2.0])
    assert x[0, 0] == -1.0
    assert np.isnan(x[1:]).all()


def test_one_time_gives_the_initial_values(decay):
    np.testing.assert_array_equal(simulate(decay, [1.0], [2.0], [5.0]), [[2.0]])


def test_names_and_orders_give_the_same(lv):
    by_name = simulate(lv.model, {"d": 1.0, "a": 2.0, "c": 4.0, "b": 1.0}, {"predator": 3.0, "prey": 5.0}, lv.t)
    np.testing.assert_array_equal(by_name, simulate(lv.model, [2.0, 1.0, 4.0, 1.0], [5.0, 3.0], lv.t))


BAD = {
    "times that go back": ({"t": [0.0, 2.0, 1.0]}, "increasing"),
    "a time twice": ({"t": [0.0, 1.0, 1.0]}, "increasing"),
    "no times": ({"t": []}, "increasing"),
    "an infinite time": ({"t": [0.0, np.inf]}, "finite"),
    "a missing parameter": ({"theta": {}}, "no value for k"),
    "an unknown parameter": ({"theta": {"k": 1.0, "kk": 1.0}}, "did you mean 'k'"),
    "too many parameters": ({"theta": [1.0, 2.0]}, "needs 1 value"),
    "a parameter that is text": ({"theta": ["fast"]}, "numbers"),
    "a parameter that is NaN": ({"theta": [np.nan]}, "finite"),
    "an initial value too many": ({"x0": [1.0, 2.0]}, "needs 1 value"),
    "an infinite initial value": ({"x0": {"x": np.inf}}, "finite"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_simulated_is_refused_in_one_line(decay, case):
    given, words = BAD[case]
    with pytest.raises(od.InputError, match=words) as caught:
        simulate(decay, **({"theta": [1.0], "x0": [1.0], "t": [0.0, 1.0]} | given))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "inputs",
    [
        {},
        None,
        {"u": ([0.0, 1.0], [1.0, 2.0, 3.0])},
        {"u": 3.0},
        {"u": ([0.0, 1.0], [0.0, np.nan])},
        {"u": ([1.0, 0.0], [1.0, 2.0])},
        {"u": ([], [])},
    ],
    ids=["missing", "none", "lengths differ", "no pair", "not finite", "times go back", "empty"],
)
def test_inputs_that_cannot_be_used_are_refused(inputs):
    model = od.Model.from_text("x' = -k*x + u\ninput u")
    with pytest.raises(od.InputError, match="'u'"):
        simulate(model, [1.0], [1.0], [0.0, 1.0], inputs=inputs)


def test_arguments_are_left_as_they_were(decay):
    t, theta, x0 = np.linspace(0, 1, 5), np.array([1.0]), np.array([2.0])
    copies = t.copy(), theta.copy(), x0.copy()
    simulate(decay, theta, x0, t)
    for before, after in zip(copies, (t, theta, x0), strict=True):
        np.testing.assert_array_equal(before, after)


def test_initial_values_that_the_model_gives_are_left_out_and_hold_where_it_says():
    model = od.Model.from_text("x' = -k*x; y' = x; x(0) = A; fixed A = 4")
    theta, t = {"k": 0.5, "A": 4.0}, np.array([1.0, 2.0])
    found = od.simulate(model, theta, {"y": 0.0}, t)
    np.testing.assert_allclose(found[:, 0], 4 * np.exp(-0.5 * t), rtol=1e-7)
    np.testing.assert_allclose(found[:, 1], 8 * (1 - np.exp(-0.5 * t)), rtol=1e-7)
    everything = od.simulate(model, theta, {"x": 1.0, "y": 0.0}, t)  # then they are those at the first time
    np.testing.assert_allclose(everything[:, 0], np.exp(-0.5 * (t - 1)), rtol=1e-7)
    with pytest.raises(
        od.InputError, match="the model itself gives the initial values of x; leave 'x' out or give all"
    ):
        od.simulate(model, theta, {"x": 1.0}, t)


def test_events_happen_just_after_their_time_and_before_the_next():
    model = od.Model.from_text("x' = 0*x; at 1: x = 2*x; at 1.5, 2: x = x + 1")
    found = od.simulate(model, {}, {"x": 3.0}, [0.0, 1.0, 1.25, 1.5, 2.0, 3.0])
    np.testing.assert_allclose(found[:, 0], [3.0, 3.0, 6.0, 6.0, 7.0, 8.0])
    with pytest.raises(od.InputError, match="event at 1 lies before"):
        od.simulate(model, {}, {"x": 3.0}, [2.0, 3.0])


def test_inputs_declared_as_steps_are_held():
    u = {"u": ([0.0, 1.0, 2.0], [1.0, 3.0, 0.0])}
    held = od.simulate(od.Model.from_text("x' = u; step u"), {}, {"x": 0.0}, [0.0, 1.0, 2.0, 3.0], u)
    np.testing.assert_allclose(held[:, 0], [0.0, 1.0, 4.0, 4.0], atol=1e-6)


def test_a_solution_that_ends_before_the_first_time_asked_for_is_nan():
    x = od.simulate(od.Model.from_text("x' = a*x^2"), {"a": 1.0}, [1.0], [0.0, 2.0], rtol=1e-8, atol=1e-12)
    assert np.isfinite(x[0]).all()
    assert np.isnan(x[1]).all()


def test_events_that_states_make_happen_are_followed():
    model = od.Model.from_text("V' = I - V; when V > 1: V = 0")
    t = np.linspace(0.0, 4.0, 9)
    x = od.simulate(model, {"I": 2.0}, {"V": 0.0}, t)
    np.testing.assert_allclose(x[:, 0], 2 * (1 - np.exp(-(t % np.log(2.0)))), atol=1e-6)
    np.testing.assert_array_equal(od.simulate(model, {"I": 2.0}, {"V": 0.5}, [3.0]), [[0.5]])


def test_a_function_has_such_events_by_further_statements():
    model = od.Model(lambda t, x, theta: [theta[0] - x[0]], ["V"], ["I"]).with_statements("when V > c: V = 0")
    x = od.simulate(model, {"I": 2.0, "c": 1.0}, {"V": 0.0}, [0.0, 1.0])
    assert x[-1, 0] == pytest.approx(2 * (1 - np.exp(-(1 % np.log(2.0)))), abs=1e-6)
