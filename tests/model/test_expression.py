"""Expressions as text: their names and how these are spelled, and initial values among them."""

import ast

import pytest

from odinfer.errors import InputError
from odinfer.model.expression import RESERVED, checked_name, initial_name, initial_value, names_met, read, state_of


def test_names_are_listed_from_left_to_right_with_functions():
    assert read("exp(b) + a*log(c + b)", 1).names() == ["exp", "b", "a", "log", "c", "b"]


def test_a_name_is_spelled_as_the_parser_of_python_spells_it():
    assert checked_name("\u00b5_1", "line 1") == "\u03bc_1"
    for name in RESERVED:
        with pytest.raises(InputError, match=r"line 3: .* reserved word"):
            checked_name(name, "line 3")
    for name in ("", "1a", "a b", "a-b", "__a", "a\u00b7b"):
        with pytest.raises(InputError, match=r"line 3: .* is not a name"):
            checked_name(name, "line 3")


def test_an_initial_value_is_a_name_of_its_own():
    assert initial_value(ast.parse("x(0)", mode="eval").body) == ("x", "0")
    assert initial_value(ast.parse("x(y)", mode="eval").body) is None
    assert state_of(initial_name("x")) == "x"
    assert state_of("x") is None


def test_names_are_met_through_definitions_once_each():
    p, q = read("a*q + a", 1), read("b + c", 2)
    assert [*names_met([p], {"q": q})] == ["a", "q", "b", "c"]
