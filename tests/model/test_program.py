"""Expressions: what their text means, derivatives where branches are not taken, and one clear line for bad ones."""

import math
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odinfer.errors import InputError
from odinfer.model.expression import ARITY, read
from odinfer.model.parser import parse
from odinfer.model.program import FOLD, Program, constant, operations_of


def value(text: str, **names: float) -> float:
    """The value of an expression at the given values of its names."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        equations = parse(f"state' = {text}")
    theta = [names[name] for name in equations.parameters]
    with jax.enable_x64(True):
        return float(equations.field(names.get("t", 0.0), np.zeros(1), np.array(theta), np.zeros(0))[0])


def message(text: str) -> str:
    """The one-line message with which an expression on line 2 is refused."""
    with pytest.raises(InputError) as caught:
        Program({}).whole(read(text, 2))
    assert str(caught.value).isprintable()
    return str(caught.value)


# ---- what the text means


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
        ("a\u00b7a", 9.0),
        ("2\u00d7a\u22c5a", 18.0),
        ("a\u00b2", 9.0),
        ("-a\u00b3", -27.0),
        ("2\u00b7a\u207b\u00b9", 2 / 3),
        ("a\u00b9\u2070", 59049.0),
        ("lambda*a", 15.0),
        ("-lambda^2 + class*(yield - if)", -25.0 + 7.0 * (11.0 - 13.0)),
        ("a \u2013 1", 2.0),
        ("+a", 3.0),
        ("2*(a + 1)", 8.0),
        (".5e1", 5.0),
        ("1_000", 1000.0),
        ("pi", math.pi),
    ],
)
def test_operators_bind_as_in_mathematics(text, expected):
    names = {"lambda": 5.0, "class": 7.0, "yield": 11.0, "if": 13.0}
    assert value(text, a=3.0, **names) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("exp(a)", math.exp(0.3)),
        ("log(a)", math.log(0.3)),
        ("ln(a)", math.log(0.3)),
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


# ---- the program


def test_a_constant_expression_is_one_number():
    program = Program({})
    assert program.value(program.whole(read("2*pi + max(1, 3)/4 - where(1 < 2, sqrt(4), 0)", 1))) == pytest.approx(
        2 * math.pi + 0.75 - 2.0
    )
    assert program.value(program.whole(read("2*a", 1))) is None


def test_arguments_are_numbers_of_earlier_instructions():
    program = Program({"p": read("a/b", 1)})
    last = program.whole(read("where(p > 0, log(p) + hill(p, K, 2), min(a, b, t))", 2))
    assert last == len(program.code) - 1
    for i, (op, args) in enumerate(program.code):
        if op not in ("name", "number", "truth"):
            assert op in FOLD
            assert all(isinstance(a, int) and a < i for a in args)


def test_a_definition_is_translated_once_and_a_circle_is_named():
    once, twice = Program({"p": read("a*b*c", 1)}), Program({"p": read("a*b*c", 1)})
    once.whole(read("p", 2))
    twice.whole(read("p + p", 2))
    assert len(twice.code) == len(once.code) + 1
    circle = Program({"p": read("q + 1", 3), "q": read("2*p", 4)})
    with pytest.raises(InputError, match=r"line 4: .*'p' need itself"):
        circle.definition("p")


@pytest.mark.parametrize(("text", "expected"), [("2", 2.0), ("1/3", 1 / 3), ("-2*pi", -2 * math.pi), ("-1e3", -1000.0)])
def test_constants_are_numbers_written_in_any_way(text, expected):
    assert constant(text, 1) == pytest.approx(expected)
    with pytest.raises(InputError, match=r"line 7: .* is not a number"):
        constant(f"{text} + a", 7)


# ---- derivatives


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


def test_nested_branches_share_their_instructions():
    lengths = []
    for n in (4, 8, 12):
        text = "x"
        for i in range(n):
            text = f"where(x > {i}, sqrt(d), {text})"
        lines = [f"d{i} = where(x > d{i - 1}, log(d{i - 1}), 1/d{i - 1})" for i in range(1, n)]
        lengths.append(len(parse("\n".join([f"x' = d{n - 1} + {text}", "d = a*x; d0 = d", *lines])).code))
    assert lengths[2] - lengths[1] == lengths[1] - lengths[0]


def test_what_a_condition_needs_is_not_guarded_by_it():
    equations = parse("x' = where(sqrt(x) > 1, sqrt(x), where(1/x > 0, 3*x, 2*x))")
    for jacobian in (jax.jacfwd, jax.jacrev):
        slope = jacobian(lambda x: equations.field(0.0, x[None], [], [])[0])
        assert [float(slope(jnp.array(x))) for x in (4.0, 0.5, 0.0, -1.0)] == [0.25, 3.0, 3.0, 2.0]


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


# ---- bad text

BAD = [
    ("", "value is missing"),
    ("2x", "line 2: cannot read '2x': invalid decimal literal; write 2*x"),
    ("a + 2.5e3 rate", "write 2.5e3*rate"),
    ("2(x - k)", "'2(x - k)' lacks an operator after '2'; write 2*(x - k)"),
    ("(a + b)(x - 1)", "write (a + b)*(x - 1)"),
    ("a x", "write a*x"),
    ("2*ln x", "write ln(x)"),
    ("k(x - 1)", "'k(x - 1)' calls the unknown function 'k'; write k*(x - 1)"),
    ("-k*x(t)", "'x(t)' is not allowed in an equation; write 'x'"),
    ("x if x > 0", "line 2: cannot read 'x if x > 0'"),
    ("(a", "'(' was never closed"),
    ("a)", "line 2: cannot read 'a)'"),
    ("epx(x)", "unknown function 'epx'; did you mean 'exp'?"),
    ("a(b + c)", "unknown function 'a'; write a*(b + c)"),
    ("exp(x, 2)", "'exp(x, 2)' has 2 arguments; give exp 1"),
    ("max(x)", "has 1 arguments; give max 2, 3, 4, ..."),
    ("where(x > 0, 1)", "has 2 arguments; give where 3"),
    ("piecewise(1, x > 0)", "give piecewise 3, 5, 7, ..."),
    ("piecewise(1, x > 0, 2, x > 1)", "has 4 arguments"),
    ("hill(x)", "give hill 3"),
    ("exp()", "has 0 arguments"),
    ("where(x, 1, 2)", "'x' is not a condition"),
    ("where(x > 0 and y, 1, 2)", "'y' is not a condition"),
    ("where(not x, 1, 2)", "'x' is not a condition"),
    ("x > 0", "'x > 0' is a condition"),
    ("1 + (x > 0)", "'x > 0' is a condition"),
    ("exp(not x > 0)", "is a condition"),
    ("9**9**9", "'9**9**9' is not a finite real number"),
    ("9^9^9^9^9", "not a finite"),
    ("1e400", "'1e400' is too large"),
    ("0x" + "f" * 400, "is too large"),
    ("9" * 5000, "line 2: cannot read '999"),
    ("x + 1/0", "'1/0' is not a finite"),
    ("log(0)", "'log(0)' is not a finite"),
    ("0**-1", "'0**-1' is not a finite"),
    ("(-8)**0.5", "'(-8)**0.5' is not a finite"),
    ("exp(1000)*x", "'exp(1000)' is not a finite"),
    ("exp(-exp(1000))", "'exp(1000)' is not a finite"),
    ("x/0", "'x/0' divides by zero"),
    ("(" * 300 + "x" + ")" * 300, "too many nested parentheses"),
    ("-" * 5000 + "x", "too"),
    ("exp(" * 300 + "x" + ")" * 300, "nested"),
    ("x" + "^x" * 5000, "too"),
    ("+".join("a" * 40_000), "too long"),
    ("\ud800", "not valid text"),
    ("a" * 201, "is too long for a name"),
    ("dx/dt", "'dt' is a reserved word"),
    ("exp*x", "'exp' is a reserved word"),
    ("__a", "'__a' is not a name"),
]


@pytest.mark.parametrize(("text", "expected"), BAD, ids=range(len(BAD)))
def test_bad_expressions_give_one_line_that_names_line_and_piece(text, expected):
    assert expected in message(text)
    assert message(text).startswith("line 2: ")


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
        "__import__('os').system('touch hacked')",
        "().__class__.__bases__",
        "x.__class__",
        "exp.__globals__",
        "where(x in y, 1, 2)",
        "where(x is y, 1, 2)",
    ],
)
def test_python_beyond_arithmetic_is_not_allowed(code):
    assert "not allowed in an equation" in message(code)
    assert "line 2" in message(code)


# ---- size


@pytest.mark.parametrize("sign", ["+", "-", "*"])
def test_chains_of_two_thousand_terms_work(sign):
    equations = parse("x' = " + sign.join(["a"] * 2000))
    expected = {"+": 2000.0, "-": -1998.0, "*": 1.0}[sign]
    assert float(jax.jit(equations.field)(0.0, jnp.ones(1), jnp.ones(1), jnp.zeros(0))[0]) == expected


def test_definitions_used_twice_each_do_not_blow_up():
    lines = [f"d{i} = d{i - 1} + d{i - 1}" for i in range(1, 61)]
    equations = parse("\n".join(["d0 = a", *lines, "x' = d60"]))
    assert len(equations.code) < 200
    assert float(equations.field(0.0, [0.0], [1.0], [])[0]) == 2.0**60


def test_definitions_used_in_many_branches_do_not_blow_up():
    lines = [f"d{i} = where(x > {i}, sqrt(d{i - 1}), d{i - 1} + 1)" for i in range(1, 61)]
    equations = parse("\n".join(["d0 = a", *lines, "x' = d60"]))
    assert len(equations.code) < 20_000
    assert parse("\n".join(["x' = d60", *reversed(lines), "d0 = a"])).parameters == ("a",)


# ---- properties


@settings(max_examples=8, deadline=None)
@given(st.tuples(*[st.floats(0.05, 0.95)] * 3))
def test_folding_and_the_field_compute_the_same(values):
    with jax.enable_x64(True):
        traced = operations_of(jnp)
        assert traced.keys() == FOLD.keys()
        for op, fold in FOLD.items():
            own = values[: ARITY[op].start if op in ARITY else 1 if op in ("neg", "pos", "not") else 2]
            own = (own[0] > 0.5, *own[1:]) if op == "where" else own
            own = (1.0 + own[0],) if op == "acosh" else own
            assert float(traced[op](*map(jnp.asarray, own))) == pytest.approx(float(fold(*own)), rel=1e-12), op


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


def largest(tree):
    """The largest size of a number on the way."""
    parts = tree[1:] if isinstance(tree, tuple) else ()
    return max([abs(evaluate(tree)), *map(largest, parts)])


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
    if largest(tree) < 1e5:  # the sine of a large number is that of its last digits, which rounding decides
        assert value(render(tree), **VALUES) == pytest.approx(evaluate(tree), rel=1e-9, abs=1e-9)
