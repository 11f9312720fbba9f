"""Instructions written as formulas have their values when they are read, and identifiers are valid and different."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odinfer.io.formula import Writer, parsed
from odinfer.io.infix import Infix, identifiers
from odinfer.model.parser import parse
from odinfer.model.program import constant

EXPRESSIONS = [
    "a - (b - 2)/3 + -a^2", "where(a > b and not b < 0, a, b)", "min(a, b, 1) + max(a, b)",
    "sign(a) + sign(-b) + abs(-b)",
    "hill(a, b, 2) + log(a) + log10(b) + sqrt(a)", "piecewise(1, a > 5, 2, b > 0, 3)",
    "asin(b/9) + cosh(a) + pi + tan(b)",
    "where(a == 1 or b != 3, 1, 0) * exp(-a)",
]  # fmt: skip


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_values_survive_the_way_there_and_back(text):
    letters = {"a": "1.3", "b": "0.7", "t": "0"}
    e = parse(f"x' = {text}")
    formula = Infix(e.code, lambda name: letters[name], {})(e.outputs[0])
    back = Writer(lambda name: letters[name], "test")(parsed(formula, "test"))
    own = re.sub(r"\b[ab]\b", lambda m: letters[m[0]], text)
    assert constant(back, 1) == pytest.approx(constant(own, 1), rel=1e-12)


def test_shared_instructions_are_written_by_their_names():
    e = parse("y = a*b\nx' = y + 1 - x")
    write = Infix(e.code, str, {e.definitions["y"]: "y"})
    assert write(e.outputs[0]) == "((y + 1) - x)"
    assert write(e.definitions["y"]) == "(a * b)"


@given(st.lists(st.text(), unique=True))
def test_identifiers_are_valid_and_different(names):
    found = identifiers(names)
    assert all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", own) for own in found.values())
    assert len({own.lower() for own in found.values()}) == len(names)


def test_names_with_brackets_stay_readable():
    assert identifiers(["k[dry 1]", "x(0)", "x(0)[wet]", "time", "2"]) == {
        "k[dry 1]": "k_dry_1", "x(0)": "x_0", "x(0)[wet]": "x_0_wet", "time": "time_", "2": "_2",
    }  # fmt: skip
