"""Formulas of SBML and PEtab become expressions of the same value in our language, or are refused by name."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odinfer.errors import InputError
from odinfer.io.formula import Writer, named, number, parsed
from odinfer.model.expression import RESERVED
from odinfer.model.program import constant

LETTERS = {"a": 1.7, "b": -0.6, "c": 2.3}


def written(text):
    return Writer(lambda name: name, "test")(parsed(text, "test"))


def value(text):
    """The value of an expression of our language at these letters."""
    return constant(Writer(lambda name: f"({LETTERS[name]})", "test", time="4")(parsed(text, "test")), 1)


def formulas():
    """Random formulas in the syntax of PEtab, and the same for Python."""
    leaf = st.sampled_from(["a", "b", "c", "2", "0.5", "1e-3"])

    def more(inner):
        pairs = st.tuples(inner, st.sampled_from(["+", "-", "*"]), inner).map(lambda p: f"({p[0]}){p[1]}({p[2]})")
        return pairs | inner.map(lambda p: f"-({p})") | inner.map(lambda p: f"exp(-abs({p}))")

    return st.recursive(leaf, more, max_leaves=12)


@settings(max_examples=60, derandomize=True, deadline=None)
@given(formulas())
def test_values_are_those_of_the_formula_however_brackets_fall(text):
    right = eval(text, {"exp": math.exp, "abs": abs, **LETTERS})
    assert value(text) == pytest.approx(right, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(
    ("text", "ours"),
    [
        ("a + b*c^2", "a + b*c^2"),
        ("-a - b - (c - a)", "-a - b - (c - a)"),
        ("a/(b/c)", "a/(b/c)"),
        ("2^-1", "2^(-1)"),
        ("log(a) + log10(a) + ln(b)", "log(a) + log10(a) + log(b)"),
        ("sqrt(a) + pow(a, b + 1)", "sqrt(a) + a^(b + 1)"),
        ("piecewise(1, time < 5 && a >= 2 || !(b == 1), 0)", "piecewise(1, t < 5 and a >= 2 or not (b == 1), 0)"),
    ],
)
def test_formulas_stay_readable(text, ours):
    assert written(text) == ours


@pytest.mark.parametrize(
    ("text", "right"),
    [("log2(8)", 3.0), ("log(2, 8)", 3.0), ("time*2", 8.0), ("arcsinh(2)", np.arcsinh(2)), ("max(a, c)", 2.3),
     ("floor(a)", 1.0), ("ceil(a)", 2.0), ("factorial(4)", 24.0), ("rem(-7, 3)", -1.0), ("quotient(-7, 3)", -2.0),
     ("piecewise(1, a < 0)", 0.0), ("(a > 1) + 2", 3.0), ("piecewise(1, xor(a > 1, true, b < 0), 2)", 1.0),
     ("piecewise(1, implies(a > 1, b > 0), 2)", 2.0), ("piecewise(1, b, 2)", 1.0), ("arccoth(2)", np.arctanh(0.5)),
     ("sec(a)", 1 / np.cos(1.7)), ("root(3, 8)", 2.0), ("exponentiale", math.e), ("piecewise(5, true, 1)", 5.0)],
)  # fmt: skip
def test_what_our_language_lacks_is_written_out(text, right):
    assert value(text) == pytest.approx(right)


@pytest.mark.parametrize("text", ["factorial(a)", "factorial(2.5)", "factorial(200)", "unknown(a)", "infinity"])
def test_what_cannot_be_said_is_refused_by_name(text):
    with pytest.raises(InputError, match=r"test: .* cannot be written"):
        written(text)


def test_what_is_no_formula_is_refused():
    with pytest.raises(InputError, match="cannot read the formula 'a \\+'"):
        parsed("a +", "test")


def test_names_that_mean_something_here_get_an_underscore():
    own = named(["k", "input", "input_", "t", "__x"])
    assert own == {"k": "k", "input": "input__", "input_": "input_", "t": "t_", "__x": "v__x"}
    assert not {*named([*RESERVED]).values()} & RESERVED


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_exact(x):
    assert float(number(x)) == x
