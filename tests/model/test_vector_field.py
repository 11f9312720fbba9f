"""The field at many points: one equation is a row of the whole model, and fields that reach too far are refused."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odinfer as od
from odinfer.model.vector_field import OneEquation, TracedField

FEW = settings(max_examples=25, derandomize=True, deadline=None)
MODEL = od.Model.from_text("x' = a*y*z - u*x + t; y' = -b*x*y + sin(z); z' = a*x - z^2 + u*v; input u, v", "three")


def points(seed, n=6):
    rng = np.random.default_rng(seed)
    return np.sort(rng.uniform(0, 3, n)), rng.normal(size=(n, 3)), rng.normal(size=(n, 2)), rng.normal(size=(n, 2))


def alone(k, x, u):
    """State k, and the inputs of its equation: the other states, then the inputs of the model."""
    others = [i for i in range(3) if i != k]
    return x[:, [k]], np.concatenate([x[:, others], u], 1)


@FEW
@given(k=st.integers(0, 2), seed=st.integers(0, 2**32 - 1))
def test_one_equation_is_a_row_of_the_whole_model(k, seed):
    t, x, theta, u = points(seed)
    f, fx, ft = MODEL.linearise(t, x, theta, u)
    xk, uk = alone(k, x, u)
    own, own_x, own_theta = OneEquation(MODEL, k).linearise(t, xk, theta, uk)
    assert (own.shape, own_x.shape, own_theta.shape) == ((6, 1), (6, 1, 1), (6, 1, 2))
    np.testing.assert_array_equal(own[:, 0], f[:, k])
    np.testing.assert_array_equal(own_x[:, 0, 0], fx[:, k, k])
    np.testing.assert_array_equal(own_theta[:, 0], ft[:, k])
    values = OneEquation(MODEL, k).evaluate(t, xk, theta, uk)
    np.testing.assert_array_equal(values, MODEL.evaluate(t, x, theta, u)[:, [k]])
    np.testing.assert_allclose(values, own, rtol=1e-13)


@pytest.mark.parametrize("k", range(3))
def test_the_model_of_one_equation_says_the_same_in_every_way(k):
    model = MODEL.equation(k)
    assert model.states == (MODEL.states[k],)
    assert model.parameters == MODEL.parameters
    assert model.inputs == (*(s for s in MODEL.states if s != MODEL.states[k]), "u", "v")
    t, x, theta, u = points(k)
    xk, uk = alone(k, x, u)
    f, fx, ft = model.linearise(t, xk, theta, uk)
    np.testing.assert_allclose(model.evaluate(t, xk, theta, uk), f, rtol=1e-13)
    np.testing.assert_allclose(model.f(t[0], xk[0], theta[0], uk[0]), f[0], rtol=1e-13)
    for ours, theirs in zip(TracedField(model).linearise(t, xk, theta, uk), (f, fx, ft), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@FEW
@given(seed=st.integers(0, 2**32 - 1))
def test_jacobians_equal_finite_differences(seed):
    t, x, theta, u = points(seed)
    field, h = MODEL.derivatives, 1e-6
    f, fx, ft = field.linearise(t, x, theta, u)
    np.testing.assert_allclose(field.evaluate(t, x, theta, u), f, rtol=1e-13)
    for j, e in enumerate(h * np.eye(3)):
        slope = (field.evaluate(t, x + e, theta, u) - field.evaluate(t, x - e, theta, u)) / (2 * h)
        np.testing.assert_allclose(fx[..., j], slope, rtol=1e-6, atol=1e-7)
    for j, e in enumerate(h * np.eye(2)):
        slope = (field.evaluate(t, x, theta + e, u) - field.evaluate(t, x, theta - e, u)) / (2 * h)
        np.testing.assert_allclose(ft[..., j], slope, rtol=1e-6, atol=1e-7)


def test_padding_to_few_sizes_does_not_show():
    t, x, theta, u = points(0, 130)
    field = TracedField(MODEL)
    whole = field.linearise(t, x, theta, u)
    for part, rest in zip(whole, field.linearise(t[:6], x[:6], theta[:6], u[:6]), strict=True):
        assert len(part) == 130
        np.testing.assert_allclose(part[:6], rest, rtol=1e-13)


@pytest.mark.parametrize(
    ("field", "inputs", "size"),
    [
        (lambda t, x, p: [x[1]], (), 1),
        (lambda t, x, p: [x[0] * p[2]], (), 2),
        (lambda t, x, p, u: [x[0] + u[1]], ("u",), 1),
    ],
    ids=["states", "parameters", "inputs"],
)
def test_a_field_that_reaches_beyond_what_there_is_is_refused(field, inputs, size):
    model = od.Model(field, ["x"], ["k", "l"], inputs, name="far")
    here = np.zeros(2), np.ones((2, 1)), np.ones((2, 2)), np.ones((2, len(inputs)))
    for ask in (model.linearise, model.evaluate):
        with pytest.raises(od.InputError, match=rf"'far' uses an index that does not exist: .* size {size}$"):
            ask(*here)


def test_a_field_that_fails_at_the_trial_point_only_is_traced_all_the_same():
    model = od.Model(lambda t, x, p: [p[0] / (x[0] - 1.0) - 1 / (t - 1.0)], ["x"], ["k"])
    values = model.evaluate(np.zeros(1), np.full((1, 1), 3.0), np.array([4.0]), np.zeros((1, 0)))
    np.testing.assert_allclose(values, [[3.0]])


def test_the_model_of_one_equation_goes_to_another_process():
    whole = od.Model.from_text("x' = -k*x*y\ny' = k*x - y")
    own = pickle.loads(pickle.dumps(whole.equation(1)))
    at = (np.zeros(2), np.full((2, 1), 3.0), np.array([0.5]), np.full((2, 1), 2.0))
    np.testing.assert_allclose(own.evaluate(*at), np.full((2, 1), 0.5 * 2.0 - 3.0))


def test_an_only_equation_is_the_whole_model_and_there_is_none_beyond():
    whole = od.Model.from_text("x' = -k*x")
    np.testing.assert_allclose(whole.equation(0).f(0.0, np.array([3.0]), np.array([0.5]), ()), [-1.5])
    for k in (-1, 1, 7):
        with pytest.raises(od.InputError, match="has equations 0 to 0"):
            whole.equation(k)


def test_equations_that_are_not_finite_at_the_data_are_refused_with_the_place():
    t = np.linspace(0.0, 2.0, 6)
    model = od.Model.from_text("x' = -k*log(x)")
    problem = od.Problem(model, od.Data(t, [1.0, 0.5, 0.2, -0.1, 0.1, 0.2], states=["x"]))
    with pytest.raises(od.InputError, match=r"equation for 'x' is not finite at t = 1\.2.*x = -0\.1"):
        problem.check_field()
    od.Problem(model, problem.data, bounds={"x": (1e-3, None)}).check_field()


def test_equations_finite_for_some_parameters_pass():
    t = np.linspace(0.0, 2.0, 6)
    model = od.Model.from_text("x' = -sqrt(k - 0.5)*x")  # not finite for every k
    od.Problem(model, od.Data(t, np.exp(-t), states=["x"])).check_field()


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_equations_finite_for_parameters_of_any_size_pass(unit):
    t = np.linspace(0.0, 2.0, 6)
    model = od.Model.from_text("x' = -exp(x/q)")  # q = 1 is nothing for x of size 1e9
    od.Problem(model, od.Data(t, unit * np.exp(-t), states=["x"])).check_field()
    logs = od.Problem(model, od.Data(t, unit * np.exp(-t), states=["x"]), scale={"q": "log"})
    logs.check_field()


@pytest.mark.parametrize("right", ["a*v*log(K/v)", "a*sqrt(v) - K*v", "a/v - K"])
def test_a_bound_at_which_equations_or_their_slopes_are_not_finite_is_kept_away_from(right):
    t = np.linspace(0.0, 3.0, 7)
    model = od.Model.from_text(f"v' = {right}; v > 0; K > 0")
    low, high = od.Problem(model, od.Data(t, 50.0 * t, states=["v"])).state_bounds
    assert 0.0 < low[0] < 1e-3
    assert high[0] == np.inf


def test_a_bound_at_which_equations_are_finite_is_what_it_is():
    t = np.linspace(0.0, 3.0, 7)
    model = od.Model.from_text("p' = a*p*(1 - p) + q; q' = -log(b*(q + 1))*q; 0 < p < 1; q > 0")
    problem = od.Problem(model, od.Data(t, np.c_[0.3 + 0.1 * t, 1.0 / (1.0 + t)], states=["p", "q"]))
    low, high = problem.state_bounds
    assert low.tolist() == [0.0, 0.0]
    assert high.tolist() == [1.0, np.inf]


def test_data_at_such_a_bound_are_no_obstacle():
    """A tumour that is not seen at first: the smoother is below 0 there, where the model has no value."""
    t = [0.0, 0.3, 1.0, 2.0, 2.4, 3.0, 3.4, 4.0, 6.2, 8.0]
    v = [0.0, 0.02, 3.67, 7.6, 12.11, 13.37, 16.4, 16.54, 21.9, 18.99]
    model = od.Model.from_text("v' = a*v*log(K/v); K > 0; v > 0")
    fit = od.fit(model, od.Data(t, v, states=["v"]))
    assert fit.status == "converged"
    assert fit.theta["K"] == pytest.approx(20.5, rel=0.02)
    assert fit.theta["a"] == pytest.approx(0.82, rel=0.05)
