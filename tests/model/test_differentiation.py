"""Text models differentiate themselves: as JAX does, at awkward points too, with the exact pattern and nothing run."""

import pickle
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odinfer as od
from odinfer.model import differentiation
from odinfer.model.differentiation import TextField
from odinfer.model.expression import ARITY
from odinfer.model.parser import parse
from odinfer.model.vector_field import TracedField

AWKWARD = np.array([0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.7, -1.3, np.inf, -np.inf])


def field_of(text: str) -> TextField:
    e = parse(text)
    return TextField(e.code, e.outputs, (e.states, e.parameters, e.inputs))


def by_jax(text: str, t, x, theta, u):
    """f (M, K) and its derivatives (M, K, K+P) by JAX, operation by operation."""
    e, K = parse(text), x.shape[1]
    with jax.enable_x64(True):

        def point(t, z, u):
            return jnp.stack([jnp.asarray(v, float) for v in e.field(t, z[:K], z[K:], u)])

        z = jnp.concatenate([jnp.asarray(x), jnp.asarray(theta)], 1)
        f = jax.vmap(point)(jnp.asarray(t), z, jnp.asarray(u))
        return np.asarray(f), np.asarray(jax.vmap(jax.jacfwd(point, 1))(jnp.asarray(t), z, jnp.asarray(u)))


def agree(text: str, seed: int = 0, n: int = 60) -> None:
    """Values and derivatives are those of JAX wherever JAX has a number, and nothing else depends on anything."""
    field = field_of(text)
    states, parameters, inputs = field.names
    rng = np.random.default_rng(seed)
    t, x, theta, u = (rng.choice(AWKWARD, (n, k)) for k in (1, len(states), len(parameters), len(inputs)))
    t = t[:, 0]
    f, J = by_jax(text, t, x, theta, u)
    own, fx, ft = field.linearise(t, x, theta, u)
    close(own, f, nan=True)
    np.testing.assert_array_equal(field.evaluate(t, x, theta, u), own)
    found, known = np.concatenate([fx, ft], 2), np.isfinite(f)[..., None] & ~np.isnan(J)
    close(found[known], J[known])
    inside = np.zeros(J.shape[1:], bool)
    inside[field.pattern] = True
    assert not found[:, ~inside].any()
    values, entries = field.nonzeros(t, x, theta, u)
    np.testing.assert_array_equal(values, own)
    np.testing.assert_array_equal(entries, found[:, *field.pattern])
    for i in range(8):
        close(field.evaluate(t[[i]], x[[i]], theta[[i]], u[[i]])[0], f[i], nan=True)


def close(ours, theirs, nan=False):
    # Numbers beyond the largest may overflow in one order of multiplication and not in another.
    ours, theirs = (np.where(np.abs(a) > 1e80, np.copysign(np.inf, a), a) for a in (ours, theirs))
    np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-10, equal_nan=nan)


# ---- the same as JAX

ONE = [name for name, arity in ARITY.items() if arity == range(1, 2)]


@pytest.mark.parametrize("name", ONE)
def test_every_function_agrees_with_jax_at_awkward_points(name):
    agree(f"x' = {name}(x) + {name}(a*x - b); y' = {name}(2*y)*x")


@pytest.mark.parametrize(
    "text",
    [
        "x + y*a - b/x",
        "-(x - y) + x/y - 2*x/3",
        "x^2 + y^3 + a^4 + b^7 + x^-1 + y^-2",
        "(x - x)^2 + (x - 1)^3 + x^0 + x^1",
        "x^0.7 + y^1.5 + a^-0.5",
        "x^a + 2^y + 0^b + (-2)^x",
        "pow(x, y) + pow(a, 2)",
        "hill(x, a, 2) + hill(x, y, b) + hill(y, 2, 1.5)",
        "min(x, y) + max(a, b) + min(x, x) + max(x, y, a, 1)",
        "abs(x)*y + abs(x - y) + sign(x*y)*x",
        "where(x > 0, log(x), x*y) + where(x > y and a <= b, x*a, 1)",
        "where(not x == y or a != b, x^2, y^2)*where(t >= 1 and u < 2, x, a)",
        "piecewise(sqrt(x), x > 1, 1/x, x > 0, a*y, x > -1, exp(b))",
        "max(sqrt(x), 1)*min(1/y, 2)",
        "exp(-x^2/2)*tanh(a*x)/(1 + exp(-b*y))",
        "a*b + t*u",
        "3",
    ],
)
def test_every_operator_agrees_with_jax_at_awkward_points(text):
    field = "; input u" if "u" in text.replace("sqrt", "") else ""
    agree(f"x' = {text}; y' = x - a*y + b{field}")


LEAVES = st.sampled_from(["x", "y", "a", "b", "t", "u", "2", "0.7", "1", "3", "0"])
CONDITIONS = ["{} < {}", "{} <= {}", "{} > {}", "{} >= {}", "{} == {}", "{} != {}", "not {} < {}"]
CONDITIONS += ["{0} > 0 and {1} > 0", "{0} < 1 or {1} < 1"]


def grow(parts):
    two = st.sampled_from(["({} + {})", "({} - {})", "({} * {})", "({} / {})", "({})^({})", "min({}, {})"])
    two |= st.sampled_from(["max({}, {})", "pow({}, {})", "hill({}, {}, 2)", "hill({}, 1.5, {})"])
    one = st.sampled_from(["-({})", "+({})", "({})^2", "({})^3", "({})^-1", *(f"{name}({{}})" for name in ONE)])
    choice = "where({}, {}, {})"
    chosen = st.builds(lambda c, *v: choice.format(c.format(*v[:2]), *v[2:]), st.sampled_from(CONDITIONS), *[parts] * 4)
    return st.builds(str.format, one, parts) | st.builds(str.format, two, parts, parts) | chosen


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.recursive(LEAVES, grow, max_leaves=8), st.integers(0, 99))
def test_random_expressions_agree_with_jax_at_awkward_points(text, seed):
    text = f"x' = {text}; y' = x*a - y/b*u; input u"
    try:
        parse(text)
    except od.InputError:  # such as 1/0
        return
    agree(text, seed, 30)


@pytest.fixture(scope="module")
def traced():
    return {name: TracedField(system.model) for name, system in od.systems.SYSTEMS.items()}


@pytest.mark.parametrize("vectors", [False, True])
def test_the_systems_of_the_paper_agree_with_jax_to_rounding(vectors, traced, monkeypatch):
    monkeypatch.setattr(differentiation, "MOST_SINGLE", -1 if vectors else differentiation.MOST_SINGLE)
    for system in od.systems.SYSTEMS.values():
        e, m, rng = parse(system.model.text), system.model, np.random.default_rng(0)
        field = TextField(e.code, e.outputs, (e.states, e.parameters, e.inputs))
        for M in (0, 1, 7, 200):
            t, x, u = np.arange(float(M)), rng.uniform(0.1, 3, (M, len(m.states))), np.zeros((M, 0))
            for theta in (rng.uniform(0.1, 3, (M, len(m.parameters))), np.broadcast_to(0.7, (M, len(m.parameters)))):
                f, fx, ft = ours = field.linearise(t, x, theta, u)
                theirs = traced[m.name].linearise(t, x, theta, u) if M else ours
                for a, b in zip(ours, theirs, strict=True):
                    np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-14)
                entries = field.nonzeros(t, x, theta, u)[1]
                np.testing.assert_array_equal(entries, np.concatenate([fx, ft], 2)[:, *field.pattern])
                np.testing.assert_allclose(field.evaluate(t, x, theta, u), f, rtol=1e-14)


# ---- what is not taken, and what is not there


def test_branches_not_taken_and_lesser_values_do_not_poison():
    field = field_of("x' = where(x > 0, sqrt(x)*log(x), x) + max(1/x, -1)*a; y' = where(y == 0, 1, x/y)")
    at = np.zeros(2), np.array([[-2.0, 0.0], [-0.5, 0.0]]), np.full((2, 1), 3.0), np.zeros((2, 0))
    f, fx, ft = field.linearise(*at)
    np.testing.assert_array_equal(f, [[-2.0 - 1.5, 1.0], [-0.5 - 3.0, 1.0]])
    np.testing.assert_array_equal(fx, [[[1.0 - 0.75, 0.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 0.0]]])
    np.testing.assert_array_equal(ft[..., 0], [[-0.5, 0.0], [-1.0, 0.0]])


def test_an_equation_depends_on_the_names_in_it_and_on_no_others():
    field = field_of("a' = k*b^2 + u; b' = t*sign(a) + where(b > 0, l*c, p); c' = 2 + m^0; input u; p = a + k")
    states, parameters, _ = field.names
    names = [*states, *parameters]
    found = {(states[i], names[j]) for i, j in zip(*field.pattern, strict=True)}
    assert found == {("a", "k"), ("a", "b"), ("b", "l"), ("b", "c"), ("b", "a"), ("b", "k")}


# ---- what is generated


def test_no_name_of_a_model_is_a_name_in_its_code():
    names = ["run", "g0", "g1", "v3", "v4", "f_exp", "f_whole", "x1_0", "x0_0", "np", "units", "exec", "f"]
    pairs = zip(names, names[1:] + names[:1], strict=True)
    agree("\n".join(f"{name}' = exp({name}) + {name}^3*{other}*k" for name, other in pairs), n=10)
    field = field_of("\N{GREEK SMALL LETTER LAMDA}' = open*sqrt(\N{GREEK SMALL LETTER LAMDA}) + secret; secret = 0.1")
    field.evaluate(np.zeros(1), np.ones((1, 1)), np.ones((1, 1)), np.zeros((1, 0)))
    assert field._at_one.__code__.co_names == ("f_sqrt",)
    assert all(name[0] in "gvx" for name in field._at_one.__code__.co_varnames)


@pytest.mark.parametrize("text", ["x' = -x", "x' = exp(a*x)/b"])
def test_the_field_goes_to_another_process_without_what_is_compiled(text):
    field = field_of(text)
    at = np.zeros(2), np.ones((2, 1)), np.ones((2, len(field.names[1]))), np.zeros((2, 0))
    expected = field.linearise(*at)
    other = pickle.loads(pickle.dumps(field))
    assert not {"_run", "_values", "_at_one"} & {*vars(other)}
    for ours, theirs in zip(other.linearise(*at), expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_derivatives_of_many_names_in_many_instructions_are_as_many_instructions_as_the_model_has():
    n = 400
    chain = "\n".join(f"d{i} = d{i - 1}*tanh(a{i})" for i in range(1, n))
    field = field_of(f"x' = d{n - 1}; y' = 3; z' = x + a7; d0 = x\n{chain}")
    at = np.zeros(3), np.full((3, 3), 2.0), np.full((3, n - 1), 5.0), np.zeros((3, 0))
    f, fx, ft = field.linearise(*at)
    assert not field._single
    rows, columns = field.pattern
    assert [(rows == k).sum() for k in range(3)] == [n, 0, 2]
    np.testing.assert_array_equal(field.nonzeros(*at)[1], np.concatenate([fx, ft], 2)[:, rows, columns])
    f, fx, ft = f[:, :1], fx[:, :1, :1], ft[:, :1]
    np.testing.assert_allclose(f, 2.0 * np.tanh(5.0) ** (n - 1))
    np.testing.assert_allclose(fx[..., 0], f / 2.0)
    np.testing.assert_allclose(ft[:, 0], np.broadcast_to(f / np.tanh(5.0) / np.cosh(5.0) ** 2, (3, n - 1)))
    assert field.cost < 6 * len(field.code)


# ---- nothing to import

FIT = """
import sys, numpy as np, odinfer as od
t = np.linspace(0, 4, 15)
data = od.Data(t, 3 * np.exp(-0.7 * t) + 0.05 * np.random.default_rng(0).normal(size=15), states=["x"])
fit = od.fit(od.Model.from_text("x' = -k*x; log k"), data)
od.simulate(fit.problem.model, fit.theta, [3.0], t)
fit.summary(), fit.forecast([5.0]), fit.interval()
assert abs(fit.theta["k"] - 0.7) < 0.1
sys.exit("jax was imported" if "jax" in sys.modules else 0)
"""


def test_a_text_model_is_fitted_without_jax():
    done = subprocess.run([sys.executable, "-c", FIT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# ---- other programs than the field


def test_any_instructions_are_functions_of_states_parameters_and_inputs():
    e = parse("x' = -k*x; y' = x; input u; c ~ normal(u*x*I(0), s0 + 3*t); I' = 1; y(0) = k*I(0); at 3: x = 7")
    names = (e.states, e.parameters, e.inputs)
    at = np.full((4, 3), 2.0), np.full((4, len(e.parameters)), 3.0), np.full((4, 1), 5.0)
    t = np.arange(4.0)
    columns = TextField(e.code, e.columns[0].arguments, names)
    f, fx, ft = columns.linearise(t, *at)
    np.testing.assert_allclose(f, np.stack([np.full(4, 30.0), 3.0 + 3 * t], 1))
    assert (fx.shape, ft.shape) == ((4, 2, 3), (4, 2, len(e.parameters)))
    np.testing.assert_allclose(fx[:, 0], [[15.0, 0.0, 0.0]] * 4)
    np.testing.assert_allclose(ft[:, 0, e.parameters.index("I(0)")], 10.0)
    np.testing.assert_array_equal(columns.evaluate(t, *at), f)
    values, entries = columns.nonzeros(t, *at)
    np.testing.assert_array_equal(values, f)
    assert entries.shape == (4, 3)
    initial = TextField(e.code, [e.initial["y"]], names)
    np.testing.assert_allclose(initial.evaluate(t[:1], *(a[:1] for a in at)), [[9.0]])
    assert not initial.linearise(t, *at)[1].any()


def test_constant_programs_and_those_of_no_states_have_values():
    e = parse("x' = 1; x(0) = k*u; input u; at 3: x = 7")
    constant = TextField(e.code, [e.events[0].changes[0][1]], (e.states, e.parameters, e.inputs))
    none = TextField(e.code, [e.initial["x"]], ((), e.parameters, e.inputs))
    for M in (1, 3):
        t, x, theta, u = np.zeros(M), np.zeros((M, 1)), np.full((M, 1), 2.0), np.full((M, 1), 3.0)
        for found in (constant.evaluate(t, x, theta, u), constant.linearise(t, x, theta, u)[0]):
            np.testing.assert_array_equal(found, np.full((M, 1), 7.0))
        assert not constant.linearise(t, x, theta, u)[2].any()
        f, fx, ft = none.linearise(t, x[:, :0], theta, u)
        np.testing.assert_array_equal(none.evaluate(t, x[:, :0], theta, u), f)
        assert (f[0, 0], fx.shape, ft[0, 0, 0]) == (6.0, (M, 1, 0), 3.0)
    nothing = TextField(e.code, [], (e.states, e.parameters, e.inputs))
    assert nothing.evaluate(t, x, theta, u).shape == (3, 0)
    assert nothing.linearise(t, x, theta, u)[1].shape == (3, 0, 1)


def test_instructions_that_outputs_do_not_need_are_left_out():
    e = parse("x' = -k*x; y ~ normal(exp(sin(x))*hill(x, K, n), s)")
    field, alone = TextField(e.code, e.outputs, (e.states, e.parameters, e.inputs)), field_of("x' = -k*x")
    assert (field.code, field.cost) == (alone.code, alone.cost)
    again = pickle.loads(pickle.dumps(field))
    assert (again.code, again.outputs) == (field.code, field.outputs)


def test_programs_in_which_all_columns_go_together_have_the_same_derivatives(monkeypatch):
    e = parse("x' = -k*x*I(0); c ~ normal(x*k, s0 + x); I' = x; at 3: x = 1")
    outputs = [*e.columns[0].arguments, e.events[0].changes[0][1]]
    at = np.zeros(2), np.full((2, 2), 2.0), np.full((2, len(e.parameters)), 3.0), np.zeros((2, 0))
    one = TextField(e.code, outputs, (e.states, e.parameters, e.inputs)).linearise(*at)
    monkeypatch.setattr(differentiation, "MOST_SINGLE", 0)
    two = TextField(e.code, outputs, (e.states, e.parameters, e.inputs)).linearise(*at)
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)
