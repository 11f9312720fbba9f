"""Claims about equation text: what it means, what it declares, and that bad text gives one clear line."""

import math
import pickle
import subprocess
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odinfer.errors import InputError, InputWarning
from odinfer.problem.equations import Equations, parse

LV = """
# Lotka-Volterra
prey' = a*prey - b*prey*predator          # grows, is eaten
dpredator/dt = -c*predator + d*prey*predator
"""


def value(text: str, **names: float) -> float:
    """The value of an expression at the given values of its names."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        equations = parse(f"state' = {text}")
    theta = [names[name] for name in equations.parameters]
    with jax.enable_x64(True):
        return float(equations.field(names.get("t", 0.0), np.zeros(1), np.array(theta), np.zeros(0))[0])


def message(text: str, inputs: tuple[str, ...] = ()) -> str:
    """The one-line message with which `text` is refused."""
    with pytest.raises(InputError) as caught:
        parse(text, inputs)
    assert str(caught.value).isprintable()
    return str(caught.value)


# ---- what the text means


def test_equations_in_both_notations_give_states_parameters_and_the_field():
    equations = parse(LV)
    assert equations.states == ("prey", "predator")
    assert equations.parameters == ("a", "b", "c", "d")
    assert equations.inputs == ()
    assert equations.text == LV
    assert equations.bounds == equations.fixed == equations.start == equations.scale == equations.prior == {}
    derivative = equations.field(0.0, [3.0, 5.0], [2.0, 0.5, 1.0, 0.25], [])
    assert isinstance(derivative, list)
    np.testing.assert_allclose(derivative, [2 * 3 - 0.5 * 15, -5 + 0.25 * 15], rtol=1e-6)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-a^2", -9.0),
        ("-a**2", -9.0),
        ("2^-1", 0.5),
        ("2^3^2", 512.0),
        ("a - 2 - 1", 0.0),
        ("8/2/2", 2.0),
        ("a\u22121", 2.0),
        ("a \u2013 1", 2.0),
        ("+a", 3.0),
        ("2*(a + 1)", 8.0),
        (".5e1", 5.0),
        ("1_000", 1000.0),
        ("pi", math.pi),
    ],
)
def test_operators_bind_as_in_mathematics(text, expected):
    assert value(text, a=3.0) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("exp(a)", math.exp(0.3)),
        ("log(a)", math.log(0.3)),
        ("log10(a)", math.log10(0.3)),
        ("sqrt(a)", math.sqrt(0.3)),
        ("sin(a)", math.sin(0.3)),
        ("cos(a)", math.cos(0.3)),
        ("tan(a)", math.tan(0.3)),
        ("asin(a)", math.asin(0.3)),
        ("acos(a)", math.acos(0.3)),
        ("atan(a)", math.atan(0.3)),
        ("sinh(a)", math.sinh(0.3)),
        ("cosh(a)", math.cosh(0.3)),
        ("tanh(a)", math.tanh(0.3)),
        ("abs(-a)", 0.3),
        ("sign(-a)", -1.0),
        ("min(2, a, 1)", 0.3),
        ("max(a, 2)", 2.0),
        ("max(1, 5, 2, a)", 5.0),
        ("pow(a, 2)", 0.09),
        ("hill(a, 0.5, 2)", 0.09 / (0.25 + 0.09)),
        ("hill(a, 0.5, n)", 0.3**1.5 / (0.5**1.5 + 0.3**1.5)),
    ],
)
def test_functions_are_those_of_mathematics_also_when_folded(text, expected):
    assert value(text, a=0.3, n=1.5) == pytest.approx(expected, rel=1e-12)
    assert value(text.replace("a,", "0.3,").replace("(a)", "(0.3)"), a=0.3, n=1.5) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("where(a > 2, 1, 2)", 1.0),
        ("where(a >= 3 and not a > 3, 1, 2)", 1.0),
        ("where(a < 2 or a == 3, 1, 2)", 1.0),
        ("where(a != 3, 1, 2)", 2.0),
        ("where(1 < a <= 3, 1, 2)", 1.0),
        ("where(1 < 2, 1, 2)", 1.0),
        ("where(t > 1, a, 2)", 2.0),
        ("piecewise(1, a < 1, 2, a < 2, 3, a < 4, 4)", 3.0),
        ("piecewise(1, a < 1, 2)", 2.0),
        ("piecewise(1, a > 1, 2, a > 2, 3)", 1.0),
    ],
)
def test_conditions_choose_the_first_branch_that_holds(text, expected):
    assert value(text, a=3.0) == expected


def test_time_and_inputs_reach_the_field():
    equations = parse("input u, v; x' = u - t*v + w", inputs=("w", "u", "unused"))
    assert equations.inputs == ("u", "v", "w", "unused")
    assert equations.parameters == ()
    assert float(equations.field(2.0, [0.0], [], [10.0, 3.0, 1.0, 0.0])[0]) == 5.0


def test_constant_and_unused_states_are_fine():
    equations = parse("x' = 1; y' = 2*3")
    assert [float(v) for v in equations.field(0.0, [0.0, 0.0], [], [])] == [1.0, 6.0]
    assert jnp.stack(equations.field(0.0, [0.0, 0.0], [], [])).shape == (2,)


def test_parameters_come_in_order_of_first_appearance_with_definitions_written_out():
    text = "rate = q*inner; inner = r + z; x' = b*rate + a; y' = c + q"
    assert parse(text).parameters == ("b", "q", "r", "z", "a", "c")


def test_definitions_may_come_after_use():
    assert value("2*p; p = q + 1; q = b^2", b=3.0) == 20.0


def test_names_are_case_sensitive_and_may_be_unicode():
    assert parse("x' = K*k*X").parameters == ("K", "k", "X")
    assert parse("\u00b5' = \u03b2*\u00b5").states == ("\u03bc",)  # the micro sign is the letter mu to Python


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", ";", " # note; x' = 3\n"])
def test_statements_end_at_lines_and_semicolons_and_comments_say_nothing(end):
    assert parse(f"\ufeffx' = a{end}y' = b{end}").parameters == ("a", "b")


def test_equations_survive_pickling():
    equations = pickle.loads(pickle.dumps(parse(LV)))
    assert equations == parse(LV)
    assert len(equations.field(0.0, [1.0, 1.0], [1.0] * 4, [])) == 2


def test_importing_does_not_import_jax():
    code = "import sys, odinfer.problem.equations as e; e.parse(\"x' = a\"); sys.exit('jax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": ":".join(sys.path)})
    assert done.returncode == 0


# ---- derivatives


def test_jit_and_jacobian_agree_with_hand_written_lotka_volterra():
    equations = parse(LV)
    x, theta = jnp.array([1.5, 0.7]), jnp.array([2.0, 1.0, 4.0, 1.0])

    def by_hand(x, p):
        return jnp.array([p[0] * x[0] - p[1] * x[0] * x[1], -p[2] * x[1] + p[3] * x[0] * x[1]])

    def by_text(x, p):
        return jnp.stack(equations.field(0.0, x, p, jnp.zeros(0)))

    np.testing.assert_allclose(jax.jit(by_text)(x, theta), by_hand(x, theta), rtol=1e-6)
    for argument in (0, 1):
        got = jax.jit(jax.jacfwd(by_text, argument))(x, theta)
        np.testing.assert_allclose(got, jax.jacfwd(by_hand, argument)(x, theta), rtol=1e-6)


@pytest.mark.parametrize("jacobian", [jax.jacfwd, jax.jacrev])
@pytest.mark.parametrize(
    "text",
    [
        "x' = piecewise(0, x <= 0, k*sqrt(x), x < 1, k*(1 + log(x)))",
        "root = sqrt(x); x' = where(x > 0, where(x < 1, k*root, k*(1 + log(x))), 0)",
    ],
)
def test_branches_not_taken_leave_derivatives_alone(text, jacobian):
    equations = parse(text)
    slope = jax.jit(jacobian(lambda x, k: equations.field(0.0, x[None], k[None], jnp.zeros(0))[0], (0, 1)))
    cases = {-1.0: (0.0, 0.0), 0.0: (0.0, 0.0), 0.25: (2.0, 0.5), 4.0: (0.5, 1 + math.log(4))}
    for x, expected in cases.items():
        np.testing.assert_allclose(slope(jnp.array(x), jnp.array(2.0)), expected, rtol=1e-6)


SINGULAR = ["1/x", "log(x)", "sqrt(x)", "x^0.5", "x^n", "asin(x + 1)", "exp(1e4*(x + 1))", "log(x - x)"]
SINGULAR += ["hill(x, 0, 2)"]


@pytest.mark.parametrize("jacobian", [jax.jacfwd, jax.jacrev])
@pytest.mark.parametrize("branch", SINGULAR)
def test_singular_functions_are_safe_in_branches_not_taken(branch, jacobian):
    equations = parse(f"x' = where(x > 0, {branch}, x)")
    theta = [1.0] * len(equations.parameters)
    slope = jacobian(lambda x: equations.field(0.0, x[None], theta, [])[0])
    assert float(slope(jnp.array(0.0))) == 1.0


def test_integer_powers_are_right_at_and_below_zero():
    for text in ("x^2", "x**2", "pow(x, 2)", "x^(1 + 1)"):
        equations = parse(f"x' = {text}")
        f = lambda x, e=equations: e.field(0.0, x[None], [], [])[0]  # noqa: E731
        assert float(f(jnp.array(-3.0))) == 9.0
        assert float(jax.grad(f)(jnp.array(-3.0))) == -6.0
        assert float(jax.grad(f)(jnp.array(0.0))) == 0.0
        assert float(jax.grad(jax.grad(f))(jnp.array(0.0))) == 2.0
        assert " pow" not in str(jax.make_jaxpr(f)(jnp.ones(())))
    assert value("a^0", a=0.0) == 1.0
    assert value("a^-1", a=-2.0) == -0.5


# ---- declarations


def test_declarations_are_read():
    text = "x' = a*b*c*d*e*x; fixed d = 1; start a = 1/2; log a, b; linear c"
    text += "; a > 0; 0 < b < 2*pi; c <= 5; 1 >= x"
    text += "; a ~ normal(2, 0.5); b ~ lognormal(1, 2); e ~ uniform(-1, 3)"
    equations = parse(text)
    assert equations.fixed == {"d": 1.0}
    assert equations.start == {"a": 0.5}
    assert equations.scale == {"a": "log", "b": "log", "c": "linear"}
    assert equations.bounds == {
        "a": (0.0, math.inf),
        "b": (0.0, 2 * math.pi),
        "c": (-math.inf, 5.0),
        "x": (-math.inf, 1.0),
        "e": (-1.0, 3.0),
    }
    assert equations.prior == {
        "a": ("normal", 2.0, 0.5),
        "b": ("lognormal", 1.0, 2.0),
        "e": ("uniform", -1.0, 3.0),
    }


@pytest.mark.parametrize("text", ["0 < a < 9", "9 > a > 0", "a >= 0; a <= 9", "0 <= a; 9 >= a", "0<a;a<9"])
def test_bounds_may_be_written_in_any_direction_and_in_parts(text):
    assert parse(f"x' = a; {text}").bounds == {"a": (0.0, 9.0)}


@pytest.mark.parametrize("text", ["log a", "a ~ lognormal(1, 1)"])
def test_a_log_scale_and_a_lognormal_prior_imply_a_lower_bound_of_zero(text):
    assert parse(f"x' = a; {text}").bounds == {"a": (0.0, math.inf)}
    assert parse(f"x' = a; {text}; a < 3").bounds == {"a": (0.0, 3.0)}


def test_keywords_are_keywords_only_before_a_name():
    assert "'log' is a reserved word" in message("log = 3; x' = log")
    assert value("log(a)", a=1.0) == 0.0
    assert parse("x' = a; logs' = starting").parameters == ("a", "starting")


def test_a_definition_never_used_warns_and_adds_no_parameter():
    with pytest.warns(InputWarning, match="line 2: .*'rate' is never used"):
        equations = parse("x' = a\nrate = b*c")
    assert equations.parameters == ("a",)
    assert float(equations.field(0.0, [1.0], [2.0], [])[0]) == 2.0


# ---- bad text

BASE = "x' = a*x\n"
BAD = [
    ("", "line 1: there is no equation"),
    ("  # only a comment\n", "no equation"),
    ("a > 0", "no equation"),
    ("x' = ", "value is missing"),
    ("x' = x\n\nx' = 2", "line 3: 'x' already has 'equation' on line 1"),
    ("x' = x\nx = 2", "line 2: 'x' already has 'equation' on line 1"),
    ("p = 1\np = 2\nx' = p", "line 2: 'p' already has 'definition' on line 1"),
    ("x' = u; u = 1; input u", "'u' already has 'definition'"),
    (BASE + "input x", "'x' already has 'equation'"),
    ("x'' = 3", "not a name"),
    ("2x' = 3", "'2x' is not a name"),
    (BASE + "y' = 2x", "line 2: cannot read '2x'"),
    (BASE + "y' = a x", "products need *"),
    (BASE + "y' = (a", "'(' was never closed"),
    (BASE + "y' = a)", "line 2: cannot read 'a)'"),
    (BASE + "hello", "line 2: cannot read 'hello'"),
    (BASE + "import os", "cannot read 'import os'"),
    (BASE + "y := 3", "cannot read 'y := 3'"),
    ("x' = lambda*x", "'lambda' is a reserved word"),
    ("x' = epx(x)", "unknown function 'epx'; did you mean 'exp'?"),
    ("x' = a(b + c)", "unknown function 'a'"),
    ("x' = exp(x, 2)", "'exp(x, 2)' has 2 arguments; give exp 1"),
    ("x' = max(x)", "has 1 arguments; give max 2, 3, 4, ..."),
    ("x' = where(x > 0, 1)", "has 2 arguments; give where 3"),
    ("x' = piecewise(1, x > 0)", "give piecewise 3, 5, 7, ..."),
    ("x' = piecewise(1, x > 0, 2, x > 1)", "has 4 arguments"),
    ("x' = hill(x)", "give hill 3"),
    ("x' = exp()", "has 0 arguments"),
    ("x' = where(x, 1, 2)", "'x' is not a condition"),
    ("x' = where(x > 0 and y, 1, 2)", "'y' is not a condition"),
    ("x' = where(not x, 1, 2)", "'x' is not a condition"),
    ("x' = x > 0", "'x > 0' is a condition"),
    ("x' = 1 + (x > 0)", "'x > 0' is a condition"),
    ("x' = exp(not x > 0)", "is a condition"),
    ("p = x > 0; x' = p", "'x > 0' is a condition"),
    ("x' = 9**9**9", "'9**9**9' is not a finite real number"),
    ("x' = 9^9^9^9^9", "not a finite"),
    ("x' = 1e400", "'1e400' is too large"),
    ("x' = 0x" + "f" * 400, "is too large"),
    ("x' = " + "9" * 5000, "line 1: cannot read '999"),
    ("x' = x + 1/0", "'1/0' is not a finite"),
    ("x' = log(0)", "'log(0)' is not a finite"),
    ("x' = 0**-1", "'0**-1' is not a finite"),
    ("x' = (-8)**0.5", "'(-8)**0.5' is not a finite"),
    ("x' = exp(1000)*x", "'exp(1000)' is not a finite"),
    ("x' = exp(-exp(1000))", "'exp(1000)' is not a finite"),
    ("zero = 1 - 1; x' = 1/zero", "'1/zero' is not a finite"),
    ("x' = x/0", "'x/0' divides by zero"),
    ("x' = " + "(" * 300 + "x" + ")" * 300, "too many nested parentheses"),
    ("x' = " + "-" * 5000 + "x", "too"),
    ("x' = " + "exp(" * 300 + "x" + ")" * 300, "nested"),
    ("x' = x" + "^x" * 5000, "too"),
    ("x' = " + "+".join("a" * 40_000), "too long"),
    ("x' = a" + " " * 100_000, "at most 100000 characters"),
    ("x' = x\0", 'x\\x00" has a null byte'),
    ("x' = x\n# \0", "line 2: '# \\x00' has a null byte"),
    ("x' = \ud800", "not valid text"),
    ("x' = a\u00b7b", "'a·b' is not a name"),
    ("x' = x\u00b2", "cannot read 'x²'"),
    ("x' = dx/dt", "'dt' is a reserved word"),
    ("x' = exp*x", "'exp' is a reserved word"),
    ("x' = __a", "'__a' is not a name"),
    ("p = q\nq = p\nx' = p", "line 2: 'p' makes 'p' need itself"),
    ("p = 2*p; x' = p", "'2*p' makes 'p' need itself"),
    ("p = q; q = where(x > 0, p, 1); x' = x", "need itself"),
    ("q = where(x > 0, p, 1); p = where(x > 0, p, 1); x' = q", "need itself"),
    (BASE + "5 < a < 1", "line 2: 'a' cannot lie between 5 and 1"),
    (BASE + "1 < a < 1", "'a' cannot lie between 1 and 1"),
    (BASE + "a > 0\na < -1", "line 3: 'a' cannot lie between 0 and -1"),
    (BASE + "1 < x < 0", "'x' cannot lie between 1 and 0"),
    (BASE + "a > 0\na > 1", "line 3: 'a' already has 'lower bound' on line 2"),
    (BASE + "0 < a > 1", "already has 'lower bound'"),
    (BASE + "a < b", "'a' is not a number"),
    (BASE + "a < 1/0", "not a finite"),
    (BASE + "1 < 2", "'1' is not a name"),
    (BASE + "a == 3", "cannot read 'a == 3'"),
    (BASE + "a <", "value is missing"),
    (BASE + "start a = 3\na < 2", "line 3: 'a' has the value 3, outside -inf to 2"),
    (BASE + "fixed a = 3; a < 2", "outside -inf to 2"),
    (BASE + "fixed a = 1; start a = 2", "'a' already has 'fixed'"),
    (BASE + "start a = b", "'b' is not a number"),
    (BASE + "start a = 1 < 2", "is a condition"),
    (BASE + "start a = nan", "'nan' is not a number"),
    (BASE + "start a", "value is missing"),
    (BASE + "start x = 3", "start of 'x', which is not a parameter"),
    (BASE + "log a; a > -1", "'a' cannot lie between -1 and inf"),
    (BASE + "log a; a < 0", "'a' cannot lie between -inf and 0"),
    (BASE + "log a; start a = 0", "'a' has the value 0"),
    (BASE + "log a; linear a", "already has 'scale'"),
    (BASE + "log a b", "'a b' is not a name"),
    (BASE + "log z", "scale of 'z', which is not a parameter"),
    ("x' = alpha*x; alhpa > 0", "did you mean 'alpha'?"),
    (BASE + "start aa = 1", "did you mean 'a'?"),
    (BASE + "input u", "input of 'u', which is not used"),
    (BASE + "a ~ normal(2, 0)", "write normal(mean, sd > 0)"),
    (BASE + "a ~ normal(2)", "write normal(mean, sd > 0)"),
    (BASE + "a ~ normal(2, b)", "'b' is not a number"),
    (BASE + "a ~ norml(2, 3)", "did you mean 'normal'?"),
    (BASE + "a ~ lognormal(-1, 1)", "write lognormal(median > 0"),
    (BASE + "a ~ lognormal(1, 1); a > -2", "cannot lie between -2 and inf"),
    (BASE + "a ~ uniform(2, 1)", "write uniform(low, high > low)"),
    (BASE + "a ~ uniform(2, 3); a < 1", "cannot lie between 2 and 1"),
    (BASE + "a ~ 3", "cannot read 'a ~ 3'"),
    (BASE + "x ~ normal(0, 1)", "prior of 'x', which is not a parameter"),
]


@pytest.mark.parametrize(("text", "expected"), BAD, ids=range(len(BAD)))
def test_bad_text_gives_one_line_that_names_line_and_piece(text, expected):
    assert expected in message(text)
    assert message(text).startswith("line ")


@pytest.mark.parametrize(
    "code",
    [
        "x.real",
        "x[0]",
        "(lambda: 3)",
        "lambda x: x",
        "[x for x in y]",
        "{x for x in y}",
        "{1: 2}",
        "(x, 1)",
        "'text'",
        "f'{x}'",
        "b'x'",
        "(y := 3)",
        "exp(x=2)",
        "exp(*x)",
        "exp(**x)",
        "x if x > 0 else 1",
        "x % 2",
        "x // 2",
        "x @ y",
        "~x",
        "x & y",
        "1j",
        "True",
        "None",
        "...",
        "(yield)",
        "__import__('os').system('touch hacked')",
        "().__class__.__bases__",
        "x.__class__",
        "exp.__globals__",
        "where(x in y, 1, 2)",
        "where(x is y, 1, 2)",
    ],
)
def test_python_beyond_arithmetic_is_not_allowed(code):
    assert "not allowed in an equation" in message(f"y' = 1\nx' = {code}")
    assert "line 2" in message(f"y' = 1\nx' = {code}")


RESERVED = ["t", "pi", "dt", "exp", "where", "input", "fixed", "start", "linear", "if", "None"]


@pytest.mark.parametrize("name", RESERVED)
def test_reserved_names_cannot_be_used(name):
    for text in (f"{name}' = 1", f"{name} = 1; x' = 1", f"x' = 1; input {name}", f"x' = 1; start {name} = 1"):
        assert f"'{name}' is a reserved word" in message(text)
    assert "reserved word" in message("x' = 1", (name,))


def test_input_names_are_checked():
    assert "equation or a definition" in message("x' = 1", ("x",))
    assert "'a b' is not a name" in message("x' = 1", ("a b",))
    assert parse("x' = uv", inputs="uv").inputs == ("uv",)


def test_other_than_text_is_refused():
    for text in (None, 3, b"x' = 1"):
        with pytest.raises(InputError, match="text"):
            parse(text)  # type: ignore[arg-type]


# ---- size


@pytest.mark.parametrize("sign", ["+", "-", "*"])
def test_chains_of_two_thousand_terms_work(sign):
    equations = parse("x' = " + sign.join(["a"] * 2000))
    expected = {"+": 2000.0, "-": -1998.0, "*": 1.0}[sign]
    assert float(jax.jit(equations.field)(0.0, jnp.ones(1), jnp.ones(1), jnp.zeros(0))[0]) == expected


def test_definitions_used_twice_each_do_not_blow_up():
    lines = [f"d{i} = d{i - 1} + d{i - 1}" for i in range(1, 61)]
    equations = parse("\n".join(["d0 = a", *lines, "x' = d60"]))
    assert len(equations._code) < 200
    assert float(equations.field(0.0, [0.0], [1.0], [])[0]) == 2.0**60


def test_definitions_used_in_many_branches_do_not_blow_up():
    lines = [f"d{i} = where(x > {i}, sqrt(d{i - 1}), d{i - 1} + 1)" for i in range(1, 61)]
    equations = parse("\n".join(["d0 = a", *lines, "x' = d60"]))
    assert len(equations._code) < 20_000
    assert parse("\n".join(["x' = d60", *reversed(lines), "d0 = a"])).parameters == ("a",)


def test_long_texts_are_read_quickly():
    names = [f"a{i}" for i in range(3000)]
    equations = parse("\n".join([f"x{n}' = {n}*x{n}" for n in names] + [f"log {n}" for n in names]))
    assert len(equations.parameters) == len(equations.bounds) == 3000


# ---- properties

NUMBERS = st.floats(0.1, 9.0).map(lambda v: round(v, 3))
LEAVES = st.one_of(NUMBERS, st.sampled_from(["a", "b", "t"]))
VALUES = {"a": 1.7, "b": -0.6, "t": 0.9}
ONE = {"sin": math.sin, "cos": math.cos, "tanh": math.tanh, "atan": math.atan, "abs": abs}
TWO = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": lambda x, y: x / (y * y + 1),
    "min": min,
    "max": max,
    "where": lambda x, y: x if x < y else -y,
}


def grow(children):
    return st.one_of(
        st.tuples(st.sampled_from([*ONE, "neg", "square", "cube"]), children),
        st.tuples(st.sampled_from([*TWO]), children, children),
    )


TREES = st.recursive(LEAVES, grow, max_leaves=12)


def evaluate(tree):
    match tree:
        case float():
            return tree
        case str():
            return VALUES[tree]
        case ("neg", x):
            return -evaluate(x)
        case ("square", x):
            return evaluate(x) ** 2
        case ("cube", x):
            return evaluate(x) * evaluate(x) * evaluate(x)
        case (name, x):
            return ONE[name](evaluate(x))
        case (name, x, y):
            return TWO[name](evaluate(x), evaluate(y))


LEVEL = {"+": 1, "-": 1, "*": 2, "/": 2, "neg": 3, "square": 4, "cube": 4}


def render(tree, level=0):
    """Text with no more brackets than precedence asks for."""
    if not isinstance(tree, tuple):
        return str(tree)
    name, *parts = tree
    own = LEVEL.get(name, 9)
    match name:
        case "neg":
            text = f"-{render(parts[0], own)}"
        case "square" | "cube":
            text = f"{render(parts[0], own + 1)}{'^2' if name == 'square' else ' ** 3'}"
        case "+" | "-" | "*":
            text = f"{render(parts[0], own)} {name} {render(parts[1], own + 1)}"
        case "/":
            bottom = render(parts[1], 5)
            text = f"{render(parts[0], own)}/({bottom}*{bottom} + 1)"
        case "where":
            first, second = (render(part) for part in parts)
            text = f"where({first} < {second}, {first}, -({second}))"
        case _:
            text = f"{name}({', '.join(render(part) for part in parts)})"
    return f"({text})" if own < level else text


@settings(max_examples=200, deadline=None)
@given(TREES)
def test_random_expressions_equal_an_independent_evaluation(tree):
    expected = evaluate(tree)
    if abs(expected) < 1e100:
        assert value(render(tree), **VALUES) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def equations_or_input_error(text):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", InputWarning)
        refused, result = "", None
        try:
            result = parse(text)
        except InputError as error:
            refused = str(error)
    if result is None:
        assert refused.isprintable()
        assert refused.startswith("line ")
    else:
        assert isinstance(result, Equations)
        values = [np.ones(len(names)) for names in (result.states, result.parameters, result.inputs)]
        assert len(result.field(0.5, *values)) == len(result.states)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200), st.sampled_from(["", "x' = ", "x' = x; a = ", "log ", "x' = a; a ~ "]))
def test_random_text_gives_equations_or_an_input_error(text, start):
    equations_or_input_error(start + text)


VALID = "prey' = a*prey - b*exp(u)\ndy/dt = where(y > 0 and t < 1, hill(y, K, 2), p)\np = 2^c; input u\n"
VALID += "log a, b; 0 < b < 10; start a = 1/3; fixed c = 2; K ~ normal(2, 0.5)"
TOKENS = [*"()'=<>~^*/;,#:.[]\n-0p", "**", " and ", "1e999", "exp("]
PIECES = st.one_of(st.text(max_size=3), st.sampled_from(TOKENS))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(VALID)), st.integers(0, 4), PIECES), max_size=4))
def test_damaged_text_gives_equations_or_an_input_error(edits):
    text = VALID
    for place, length, piece in edits:
        text = text[:place] + piece + text[place + length :]
    equations_or_input_error(text)
