"""Claims about equation text: what it means, what it declares, and that bad text gives one clear line."""

import itertools
import math
import pickle
import random
import subprocess
import sys
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odinfer.errors import InputError, InputWarning
from odinfer.model.differentiation import MOST_SINGLE, TextField
from odinfer.model.parser import Equations, parse

LV = """
# Lotka-Volterra
prey' = a*prey - b*prey*predator          # grows, is eaten
dpredator/dt = -c*predator + d*prey*predator
"""


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
    equations = parse("x' = 2*p; p = q + 1; q = b^2")
    assert float(equations.field(0.0, [0.0], [3.0], [])[0]) == 20.0


@pytest.mark.parametrize(
    "left", ["x''", 'x"', "x\u2033", "x\u2032\u2032", "x \u2019\u2019", "d2x/dt2", "d^2x/dt^2", "d\u00b2x/dt\u00b2"]
)
def test_a_second_order_equation_is_two_states(left):
    equations = parse(f"y' = x'*a; {left} = -k*x - c*x' + y")
    assert equations.states == ("y", "x", "x_dot")
    assert equations.parameters == ("a", "k", "c")
    derivative = equations.field(0.0, [1.0, 3.0, 5.0], [2.0, 0.5, 0.25], [])
    np.testing.assert_allclose(derivative, [10.0, 5.0, -1.5 - 1.25 + 1.0], rtol=1e-6)
    assert parse(f"{left} = x*x\u2032; x_dot > 0; x < 2").bounds == {"x_dot": (0, math.inf), "x": (-math.inf, 2)}


def test_e_to_a_power_warns_that_e_is_a_parameter_unless_it_is_meant():
    for text in (
        "x' = e^(-x)",
        "x' = a*p\np = 1 - e**x",
        "x' = 2*e\u00b2",
        "x' = 1\ny ~ normal(e^x)",
        "x' = 1; x(0) = e^2",
    ):
        with pytest.warns(InputWarning, match=r"line [12]: 'e' is taken as a parameter; .* write exp\(...\)"):
            assert "e" in parse(text).parameters
    for text in (
        "x' = e*x^2",
        "x' = e^x; e > 0",
        "x' = e^x; fixed e = 2.718",
        "x' = e^x; e = 1 + x",
        "x' = x^e; input e",
    ):
        parse(text)


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
    code = "import sys, odinfer.model.parser as e; e.parse(\"x' = a\"); sys.exit('jax' in sys.modules)"
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
    assert parse("x' = log(a)").scale == {}
    assert parse("x' = a; logs' = starting").parameters == ("a", "starting")


def test_a_definition_that_nothing_uses_is_there_for_the_data_with_its_parameters():
    equations = parse("x' = a\nrate = b*c")
    assert equations.parameters == ("a", "b", "c")
    assert [float(v) for v in equations.at([equations.definitions["rate"]], 0.0, [1.0], [2.0, 3.0, 5.0], [])] == [15.0]


# ---- bad text

BASE = "x' = a*x\n"
BAD = [
    ("", "line 1: there is no equation"),
    ("  # only a comment\n", "no equation"),
    ("a > 0", "no equation"),
    ("x' = x\n\nx' = 2", "line 3: 'x' already has 'equation' on line 1"),
    ("x' = x\nx = 2", "line 2: 'x' already has 'equation' on line 1"),
    ("p = 1\np = 2\nx' = p", "line 2: 'p' already has 'definition' on line 1"),
    ("x' = u; u = 1; input u", "'u' already has 'definition'"),
    (BASE + "input x", "'x' already has 'equation'"),
    ("x''' = 3", "is of third order"),
    ("x'(t) = 3", "without (t); states depend on time"),
    ("dx(t)/dt = 3", "without (t)"),
    ("2x'' = 3", "'2x' is not a name"),
    ("x'' = -x; x_dot' = 1", "'x_dot' already has 'equation'"),
    ("x' = -y'; y' = x", "a prime only marks its left side"),
    ("2x' = 3", "'2x' is not a name"),
    (BASE + "hello", "line 2: cannot read 'hello'"),
    (BASE + "import os", "cannot read 'import os'"),
    (BASE + "y := 3", "cannot read 'y := 3'"),
    ("p = x > 0; x' = p", "'x > 0' is a condition"),
    ("zero = 1 - 1; x' = 1/zero", "'1/zero' is not a finite"),
    ("x' = a" + " " * 100_000, "at most 100000 characters"),
    ("x' = x\0", 'x\\x00" has a null byte'),
    ("x' = x\n# \0", "line 2: '# \\x00' has a null byte"),
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
    (BASE + "a < b", "'b' in 'a < b' is no parameter"),
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
    (BASE + "x ~ normal(0, 1)", "and predicts no column (no state or parameter is in it)"),
]


@pytest.mark.parametrize(("text", "expected"), BAD, ids=range(len(BAD)))
def test_bad_text_gives_one_line_that_names_line_and_piece(text, expected):
    assert expected in message(text)
    assert message(text).startswith("line ")


RESERVED = ["t", "pi", "dt", "exp", "where", "input", "fixed", "start", "linear", "ln", "None", "and"]


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


# ---- everything at once

EPIDEMIC = """
S' = -beta*S*I/N
E' = beta*S*I/N - k*E
I' = k*E - g*I
incidence = k*E                      # a definition
cases ~ negbinomial(rho*incidence)
beds ~ normal(I*share, s0 + s1*I)
S(0) = N - I(0); E(0) = 0
0 < I(0) < 50
at 12, 24: S = S - vaccinated*u, E = 0
step u
local rho
fixed N = 763
s0 ~ lognormal(1, 2)
"""


def test_parameters_come_from_equations_then_initial_values_events_and_columns():
    e = parse(EPIDEMIC)
    assert e.parameters == ("beta", "N", "k", "g", "I(0)", "vaccinated", "rho", "share", "s0", "s1", "k(cases)")
    assert (e.local, e.inputs, e.steps, e.begins) == (("I(0)", "rho"), ("u",), ("u",), "zero")
    assert [(c.name, c.family) for c in e.columns] == [("cases", "negbinomial"), ("beds", "normal")]
    assert [len(c.arguments) for c in e.columns] == [2, 2]
    assert list(e.initial) == ["S", "E", "I"]
    assert (e.prior, e.bounds["I(0)"]) == ({"s0": ("lognormal", 1.0, 2.0)}, (0.0, 50.0))
    assert pickle.loads(pickle.dumps(e)) == e


def test_what_is_said_besides_leaves_the_program_of_the_equations_as_it_is():
    equations = "\n".join(EPIDEMIC.splitlines()[:5])
    one, two = parse(equations), parse(EPIDEMIC)
    assert two.code[: max(one.outputs) + 1] == one.code[: max(one.outputs) + 1]
    assert two.outputs == one.outputs


def test_the_example_of_the_documentation_is_a_model():
    page = (Path(__file__).parents[2] / "docs" / "equations.md").read_text("utf-8")
    e = parse(page.split("```ode\n")[1].split("```")[0])
    assert [c.name for c in e.columns] == ["cases", "immune"]
    assert (e.begins, e.breaks, e.local) == ("zero", (10.0,), ("I(0)", "rho"))
    assert e.parameters == ("b", "N", "v", "g", "I(0)", "arrivals", "rho", "k(cases)")


def test_a_text_may_say_more_about_a_model_whose_equations_are_elsewhere():
    text = "x ~ student(x + y, sx); 0 < k < 3; x(0) = k; y(0) > 0; at 3: y = u; local k; flow = k*x; w ~ poisson(flow)"
    e = parse(text, ("u", "v"), of=(["x", "y"], ["k", "m"]))
    assert (e.states, e.outputs, e.inputs) == (("x", "y"), (), ("u", "v"))
    assert e.parameters == ("k", "m", "y(0)", "sx")
    assert (e.local, e.bounds["k"], list(e.initial)) == (("k", "y(0)"), (0.0, 3.0), ["x", "y"])
    values = e.at([e.initial["x"], e.definitions["flow"]], 0.0, [2.0, 3.0], [5.0, 7.0, 1.0, 1.0], [0.0, 0.0])
    assert [float(v) for v in values] == [5.0, 10.0]
    assert parse("", of=(["x"], ["k"])).parameters == ("k",)
    assert parse("k ~ normal(1, 2)", of=(["x"], ["k"])).prior == {"k": ("normal", 1.0, 2.0)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("k > 0\nx' = 3", "line 2: 'x' has an equation, but equations are given elsewhere; remove it"),
        ("x = 3", "line 1: 'x' is a state or a parameter of the model already; rename one"),
        ("input k", "'k' is a state or a parameter of the model already"),
        ("z > 0", "'z', which is not a name in the equations"),
        ("z(0) = 3", "'z', which is no state"),
    ],
)
def test_bad_text_about_a_model_elsewhere_is_refused(text, expected):
    with pytest.raises(InputError) as caught:
        parse(text, of=(["x"], ["k"]))
    assert expected in str(caught.value)


def test_with_spare_what_is_about_nothing_is_left_out_and_nothing_else():
    text = "x' = -k*x; rate = c*x; double = 2*x; input u; start q = 1; h ~ uniform(0, 1); h2 ~ normal(1, 1); local q"
    text += "; z(0) = 3; q > 0; at 3: z = 1; at 4: x = 1, z = 2; x ~ student(x); w ~ poisson(double); step v"
    e = parse(text, spare=True)
    assert (e.parameters, list(e.definitions), e.inputs, e.initial) == (("k", "sd(x)"), ["double"], (), {})
    assert [event.times for event in e.events] == [(4.0,)]
    assert [c.name for c in e.columns] == ["x", "w"]
    assert (e.start, e.prior, e.local) == ({}, {}, ())


# ---- size


def test_long_texts_are_read_quickly():
    names = [f"a{i}" for i in range(3000)]
    equations = parse("\n".join([f"x{n}' = {n}*x{n}" for n in names] + [f"log {n}" for n in names]))
    assert len(equations.parameters) == len(equations.bounds) == 3000
    chain = "x' = x; d0 = x\n" + "\n".join(f"d{i} = d{i - 1}+q; c{i} ~ poisson(d{i})" for i in range(1, 2000))
    assert len(parse(chain, spare=True).columns) == len(parse(chain).columns) == 1999
    states = "\n".join(f"x{i}' = 1; x{i}(0) = x{i + 1}(0); at {i}: x{i} = 1" for i in reversed(range(1500)))
    assert parse("x1500' = 1\n" + states).parameters == ("x1500(0)",)


# ---- properties


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
        every = [*result.definitions.values(), *result.initial.values()]
        every += [i for column in result.columns for i in column.arguments]
        every += [i for event in result.events for _, i in event.changes]
        assert len(result.at(every, 0.5, *values)) == len(every)
        assert {*result.local, *result.bounds} <= {*result.parameters, *result.states}
        assert {*result.steps} <= {*result.inputs}


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200), st.sampled_from(["", "x' = ", "x' = x; a = ", "log ", "x' = a; a ~ "]))
def test_random_text_gives_equations_or_an_input_error(text, start):
    equations_or_input_error(start + text)


VALID = "prey' = a*prey - b*exp(u)\ndy/dt = where(y > 0 and t < 1, hill(y, K, 2), p)\np = 2^c; input u\n"
VALID += "log a, b; 0 < b < 10; start a = 1/3; fixed c = 2; K ~ normal(2, 0.5)\n"
VALID += "z ~ student(p*prey, s0 + s1*y); y ~ normal(y); n ~ negbinomial(p)\nprey(0) = K - y(0); 0 < y(0) < 3\n"
VALID += "local a, K; shared y(0); at 0, 12: prey = prey + d, y += 1; log k(n)"
TOKENS = [*"()'=<>~^*/;,#:.[]\n-0p", "**", " and ", "1e999", "exp(", "(0)", "(t0)", "y", "prey", "at ", "~ normal("]
PIECES = st.one_of(st.text(max_size=3), st.sampled_from(TOKENS))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(VALID)), st.integers(0, 4), PIECES), max_size=4))
def test_damaged_text_gives_equations_or_an_input_error(edits):
    text = VALID
    for place, length, piece in edits:
        text = text[:place] + piece + text[place + length :]
    equations_or_input_error(text)


SPELLINGS = [
    ["x ' = - k * x + x ( 0 )", "d x /dt = - k * x + x ( 0.0 )", "x \u2032 = \u2212 k \u00b7 x + x ( 0 )"],
    ["y ' = k - y"],
    ["flow = k * y ^ 2", "flow = k * y ** 2", "flow = k * y\u00b2"],
    ["x ~ normal ( x , s )", "x ~ normal ( mean = x , sd = s )", "x ~ normal ( sd = s , mean = x )"],
    ["c ~ negbinomial ( flow )", "c ~ negbinomial ( mean = flow )"],
    ["y ( 0 ) = n - 1", "y ( t = 0 ) = n - 1"],
    ["0 < x ( 0 ) < 50", "50 > x ( 0 ) > 0", "x ( 0 ) >= 0 ; x ( 0 ) <= 50"],
    ["at 0 , 12 : x = x + ( d )", "at 12 , 0 : x += d", "at t = 0 , 24 / 2 : x += d"],
    ["local k , n", "local n ; local k"],
    ["input u ; at 3 : y = u", "at 3 : y = u ; input u"],
]


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_spacing_and_spelling_make_no_difference(data):
    def written(statement: str) -> str:
        words = statement.split(" ")
        gaps = data.draw(st.lists(st.sampled_from(["", " ", "\t", "  "]), min_size=len(words), max_size=len(words)))
        # Between two words, and after a keyword, there must be a space.
        together = [a.isalnum() and b[:1].isalnum() and a != "d" for a, b in itertools.pairwise(words)]
        glue = [" " if needed else gap for needed, gap in zip(together, gaps[1:], strict=True)]
        return "".join(w + g for w, g in zip(words, [*glue, ""], strict=True))

    chosen = [data.draw(st.sampled_from(options)) for options in SPELLINGS]
    text = data.draw(st.sampled_from(["\n", ";", " ; ", "\r\n", " # note\n"])).join(map(written, chosen))
    expected, found = (parse(t) for t in ("\n".join(options[0] for options in SPELLINGS), text))
    plain = [field for field in expected.__dataclass_fields__ if field not in ("text", "columns", "events", "code")]
    assert [getattr(found, field) for field in plain] == [getattr(expected, field) for field in plain]
    assert found.code == expected.code
    assert [c.arguments for c in found.columns] == [c.arguments for c in expected.columns]
    assert [(e.times, e.changes) for e in found.events] == [(e.times, e.changes) for e in expected.events]


# ---- cost

WORDS = ["x", "y", "k", "a1", "b2", "t", "u", "d0", "d0", "d0", "2", "0.5", "1e3", "pi", "lambda", "e"]
FORMS = [
    "{} + {}",
    "{}*{}",
    "({} - {})/{}",
    "{}^{}",
    "-{}",
    "exp({})",
    "sqrt({})",
    "hill({}, {}, {})",
    "min({}, {}, {})",
]
FORMS += [
    "where({} > {}, {}, {})",
    "piecewise({}, {} < {} <= {}, {}, {} == {} or not {} > {}, {})",
    "({})",
    "{}\u00b7{}\u00b2",
]
LINES = ["y' = {}", "dz/dt = {}", "d0 = x + 1", "d1 = {}", "d2 = where(x > 0, d1, {} + d1)", "w'' = {} - w'", "# {}"]
LINES += ["x ~ normal({}, {})", "c ~ student({})", "x(0) = {}", "at 1, 2: x = {}, y = {}", "log x(0)", "local k"]
LINES += ["x' = {}", "log k", "input u", "0 < a1 < 3", "start b2 = 1/2", "y = {}", "b2 ~ normal(2, 3)", "{}"]


def expression(rng: random.Random, size: int) -> str:
    if size <= 1:
        return rng.choice(WORDS)
    form = rng.choice(FORMS)
    parts = form.count("{}")
    return form.format(*(expression(rng, size // parts) for _ in range(parts)))


def statements(seed: int, size: int) -> str:
    """Statements of some kilobytes at most, in which a few characters may be damaged."""
    rng = random.Random(seed)
    found = ["x' = k*a1*b2*u*x"]
    for line in rng.sample(LINES, rng.randint(1, 6)):
        room = 10_000 - len("\n".join(found))
        text = line.format(*(expression(rng, rng.randint(1, size)) for _ in range(line.count("{}"))))
        found += [text] * (len(text) < room)
    text = "\n".join(found)
    for _ in range(rng.choice([0, 0, 0, 0, 1])):
        place = rng.randint(0, len(text))
        text = (
            text[:place]
            + rng.choice(["(", ")", "'", "*", "\u0661", " ", "if ", ",", "\0", "=", "<"])
            + text[place + 1 :]
        )
    return text


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([3, 10, 50, 300, 1000]))
def test_the_cost_of_a_text_is_bounded_by_its_length(seed, size):
    text = statements(seed, size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        try:
            equations = parse(text)
        except InputError:
            return
    assert len(equations.code) <= 2 * len(text)
    field = TextField(equations.code, equations.outputs, (equations.states, equations.parameters, equations.inputs))
    assert field.cost <= 12 * (len(equations.code) + MOST_SINGLE)
    at = [np.ones((1, len(names))) for names in field.names]
    assert field.linearise(np.zeros(1), *at)[0].shape == (1, len(equations.states))


@pytest.mark.parametrize(
    "text",
    [
        "x' = " + "(" * 90 + "x" + ")" * 90,
        "a" * 9000 + "' = 1",
        "x' = 1" + " " * 9000 + "+ 2x",
        "x" + " " * 9000 + "y'' = 1",
        "x(" + " " * 9000 + "= 1",
        "x' = " + "1" * 4000 + "x",
        "x' = " + "a" * 9000 + "'",
    ],
)
def test_long_runs_of_one_character_are_read_or_refused(text):
    equations_or_input_error(text)
