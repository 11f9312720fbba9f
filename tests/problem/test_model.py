"""A model: its field and Jacobians, from text and from functions, and fields that cannot be used."""

import pickle
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odinfer as od
from odinfer.model.differentiation import TextField
from odinfer.model.model import Model, read_text
from odinfer.model.numpy_field import NumpyField
from odinfer.model.vector_field import TracedField

FEW = settings(max_examples=20, derandomize=True, deadline=None)
NOTHING = np.zeros((1, 0))


def hand_written(t, x, theta):
    a, b, c, d = theta
    return [a * x[0] - b * x[0] * x[1], -c * x[1] + d * x[0] * x[1]]


@FEW
@given(x=st.tuples(*[st.floats(0.1, 5.0)] * 2), theta=st.tuples(*[st.floats(0.1, 4.0)] * 4))
def test_the_field_and_its_jacobians_equal_finite_differences(lv, x, theta):
    x, theta, h = np.array([x]), np.array(theta), 1e-6
    f, fx, ft = lv.model.linearise(np.zeros(1), x, theta, NOTHING)
    np.testing.assert_allclose(f[0], hand_written(0.0, x[0], theta), rtol=1e-12, atol=1e-12)

    def at(dx, dtheta):
        return np.array(hand_written(0.0, x[0] + dx, theta + dtheta))

    for j, e in enumerate(np.eye(2)):
        np.testing.assert_allclose(fx[0, :, j], (at(h * e, 0) - at(-h * e, 0)) / (2 * h), atol=1e-6)
    for j, e in enumerate(np.eye(4)):
        np.testing.assert_allclose(ft[0, :, j], (at(0, h * e) - at(0, -h * e)) / (2 * h), atol=1e-6)


def test_points_may_have_their_own_parameters_and_any_number():
    model = Model.from_text("x' = a*x + t + u\ninput u")
    for n in (1, 7, 150):
        t, x, a, u = np.arange(float(n)), np.ones((n, 1)), np.linspace(0, 1, n)[:, None], np.full((n, 1), 10.0)
        f, fx, ft = model.linearise(t, x, a, u)
        assert f.shape == (n, 1)
        assert fx.shape == ft.shape == (n, 1, 1)
        np.testing.assert_allclose(f[:, 0], a[:, 0] + t + 10.0)
        np.testing.assert_allclose(fx[:, 0, 0], a[:, 0])


@pytest.mark.parametrize(
    "field",
    [
        hand_written,
        lambda t, x, p: tuple(hand_written(t, x, p)),
        lambda t, x, p: jnp.stack(hand_written(t, x, p)),
        lambda t, x, p: jnp.array(hand_written(t, x, p)),
    ],
    ids=["list", "tuple", "stack", "array"],
)
def test_functions_and_text_give_the_same_field(lv, field):
    model = Model(field, lv.model.states, lv.model.parameters)
    x = np.random.default_rng(0).uniform(0.5, 5, (6, 2))
    theta = np.array([2.0, 1.0, 4.0, 1.0])
    empty = np.zeros((6, 0))
    for ours, theirs in zip(
        model.linearise(lv.t[:6], x, theta, empty), lv.model.linearise(lv.t[:6], x, theta, empty), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-13, atol=1e-13)


def test_text_and_function_give_the_same_fit(lv, lv_data, lv_fit):
    fit = od.fit(Model(hand_written, lv.model.states, lv.model.parameters), lv_data)
    for stage in ("odin", "refined"):
        for name, value in lv_fit.stages[stage].theta.items():
            assert fit.stages[stage].theta[name] == pytest.approx(value, rel=1e-6)
    assert fit.equations is None
    assert lv_fit.equations == lv.model.text


def test_a_field_of_one_state_may_return_a_number():
    model = Model(lambda t, x, p: -p[0] * x[0], ["x"], ["k"])
    f, _, _ = model.linearise(np.zeros(3), np.ones((3, 1)), np.array([2.0]), np.zeros((3, 0)))
    np.testing.assert_array_equal(f, [[-2.0]] * 3)


def test_whole_numbers_are_no_trap():
    model = Model(lambda t, x, p: [1, 2 * x[0]], ["x", "y"], [])
    f, fx, ft = model.linearise(np.zeros(1), np.array([[3.0, 4.0]]), np.zeros(0), NOTHING)
    np.testing.assert_array_equal(f, [[1.0, 6.0]])
    np.testing.assert_array_equal(fx, [[[0.0, 0.0], [2.0, 0.0]]])
    assert ft.shape == (1, 2, 0)


# --- functions of numpy arrays


def numpy_field(t, x, k):
    return -k * np.exp(np.log(np.asarray(x)))


def branching(t, x, k):
    return -k * abs(x[0]) if x[0] > 0 else 0.0


@pytest.mark.parametrize("field", [numpy_field, branching, lambda t, x, k: [-k * float(x[0])]])
@pytest.mark.filterwarnings("ignore:the function of model")
def test_a_function_of_numpy_arrays_is_fitted_like_the_text_of_its_equation(field, decay_data):
    found, text = od.fit(field, decay_data), od.fit("x' = -k*x", decay_data)
    assert found.theta["k"] == pytest.approx(text.theta["k"], rel=1e-5)
    assert found.stderr["k"] == pytest.approx(text.stderr["k"], rel=1e-3)


def test_derivatives_of_smooth_functions_are_exact():
    x, theta = np.array([[1.0], [1e-9], [0.0]]), np.array([0.7, 2.0])
    smooth = Model(lambda t, x, k, n: k * np.sin(x * n), ["x"])
    _, fx, ft = smooth.linearise(np.zeros(3), x, theta, np.zeros((3, 0)))
    np.testing.assert_allclose(fx[:, 0], 1.4 * np.cos(2 * x), rtol=1e-13)
    np.testing.assert_allclose(ft[:, 0], np.concatenate([np.sin(2 * x), 0.7 * x * np.cos(2 * x)], 1), rtol=1e-13)


def test_functions_that_only_differences_can_differentiate_say_so():
    kinked = Model(lambda t, x, k: k * abs(x) ** 2, ["x"])
    with pytest.warns(od.InputWarning, match="by differences"):
        _, fx, _ = kinked.linearise(np.zeros(2), np.array([[-1.0], [2.0]]), np.array([0.7]), np.zeros((2, 0)))
    np.testing.assert_allclose(fx[:, 0, 0], [-1.4, 2.8], rtol=1e-6)


def test_parameters_are_the_arguments_of_a_function_after_t_and_x():
    model = Model(lambda t, x, a, b, u: [a * x[0] + b * u], ["x"], inputs=["u"])
    assert model.parameters == ("a", "b")
    at = np.zeros(1), np.ones((1, 1)), np.array([2.0, 3.0]), np.ones((1, 1))
    np.testing.assert_array_equal(model.evaluate(*at), [[5.0]])
    with pytest.raises(od.InputError, match="a named argument per parameter"):
        Model(lambda t, x, *p: x, ["x"])


# --- what cannot be used


@pytest.mark.parametrize("values", [[1.0, 2.0], [], [[1.0, 2.0]]])
def test_a_field_with_the_wrong_number_of_values_is_refused_in_one_line(values, decay_data):
    with pytest.raises(od.InputError) as caught:
        od.fit(Model(lambda t, x, p: values, ["x"], ["k"]), decay_data)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "field",
    [
        lambda t, x: [x[0]],
        lambda t, x, p: [x[0] * p[3]],
        lambda t, x, p: None,
        lambda t, x, p: "x",
        lambda t, x, p: {"x": x[0]},
    ],
    ids=["too few arguments", "index out of range", "nothing", "text", "dictionary"],
)
def test_other_mistakes_in_a_field_are_input_errors_too(field, decay_data):
    with pytest.raises(od.InputError) as caught:
        od.fit(Model(field, ["x"], ["k"]), decay_data)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("states", "parameters", "words"),
    [
        (["x", "x"], ["k"], "used twice"),
        (["x"], ["x"], "used twice"),
        ([], ["k"], "at least one state"),
        ("x", ["k"], "list of names"),
        (["t"], ["k"], "reserved"),
        (["x"], [""], "must be text"),
        ([3], ["k"], "must be text"),
    ],
)
def test_names_that_cannot_be_used_are_refused(states, parameters, words):
    with pytest.raises(od.InputError, match=words):
        Model(lambda t, x, p: x, states, parameters)


def test_a_model_of_something_else_than_a_function_is_refused():
    with pytest.raises(od.InputError, match="from_text"):
        Model("x' = -k*x", ["x"], ["k"])


def test_a_model_file_is_named_after_itself_and_read_with_a_byte_order_mark(tmp_path):
    path = tmp_path / "fast decay.ode"
    path.write_text("x' = -k*x", encoding="utf-8-sig")
    model = Model.from_file(path)
    assert model.name == "fast decay"
    assert model.parameters == ("k",)


def test_model_files_that_cannot_be_read_are_refused(tmp_path):
    (tmp_path / "binary.ode").write_bytes(b"\xff\xfe\x00\x81")
    for name, words in (("none.ode", "does not exist"), ("binary.ode", "UTF-8"), (".", "folder")):
        with pytest.raises(od.InputError, match=words):
            Model.from_file(tmp_path / name)
        with pytest.raises(od.InputError, match=rf"model file '.*{Path(name).name}'.*{words}"):
            read_text(tmp_path / name)


def test_the_model_shows_what_it_is(lv):
    assert "prey, predator" in repr(lv.model)
    assert "a, b, c, d" in repr(lv.model)


def test_a_model_survives_pickling_and_leaves_behind_what_was_compiled(lv):
    here = np.zeros(2), np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([2.0, 1.0, 4.0, 1.0]), np.zeros((2, 0))
    expected = lv.model.linearise(*here)
    assert "derivatives" in vars(lv.model)
    other = pickle.loads(pickle.dumps(lv.model))
    assert "derivatives" not in vars(other)
    assert (other.states, other.parameters, other.text) == (lv.model.states, lv.model.parameters, lv.model.text)
    for ours, theirs in zip(other.linearise(*here), expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_derivatives_are_given_or_the_models_own_or_traced(lv):
    class Doubled:
        def linearise(self, *point):
            return tuple(2.0 * a for a in lv.model.linearise(*point))

        def evaluate(self, *point):
            return 2.0 * lv.model.evaluate(*point)

    given = Model(lv.model.field, lv.model.states, lv.model.parameters, evaluator=Doubled())
    here = np.zeros(1), np.ones((1, 2)), np.array([2.0, 1.0, 4.0, 1.0]), NOTHING
    np.testing.assert_array_equal(given.evaluate(*here), 2.0 * lv.model.evaluate(*here))
    np.testing.assert_array_equal(given.linearise(*here)[1], 2.0 * lv.model.linearise(*here)[1])
    assert isinstance(lv.model.derivatives, TextField)
    assert isinstance(Model(hand_written, ["x", "y"], [*"abcd"]).derivatives, NumpyField)
    assert isinstance(Model(lambda t, x, k: -k * jnp.sin(x[0]), ["x"]).derivatives, TracedField)


def test_words_of_python_are_names_like_others():
    model = Model.from_text("lambda' = -class*lambda + if/in; class > 0; start in = 2", name="poisson")
    assert (model.states, model.parameters) == (("lambda",), ("class", "if", "in"))
    assert (model.bounds, model.start) == ({"class": (0.0, np.inf)}, {"in": 2.0})
    np.testing.assert_array_equal(
        model.evaluate(np.zeros(1), np.full((1, 1), 3.0), np.array([2.0, 1, 4]), NOTHING), -5.75
    )
    assert Model(lambda t, x, p: -p[0] * x[0], ["x"], ["lambda"]).parameters == ("lambda",)


def test_what_the_author_says_about_parameters_stays_with_the_model():
    model = Model.from_text("x' = -a*x + b + c; 0 < a < 5; fixed b = 1; start c = 3; log c; a ~ normal(2, 1)")
    assert model.bounds == {"a": (0.0, 5.0), "c": (0.0, np.inf)}
    assert (model.fixed, model.start, model.scale) == ({"b": 1.0}, {"c": 3.0}, {"c": "log"})
    assert model.prior == {"a": ("normal", 2.0, 1.0)}
    assert Model.from_text("x' = u - x", inputs=["u"]).inputs == ("u",)
