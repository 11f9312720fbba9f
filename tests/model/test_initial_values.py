"""Initial values are numbers, expressions of parameters and inputs, or parameters of their own."""

import math

import pytest

from odinfer.errors import InputError
from odinfer.model.initial_values import initial_values
from odinfer.model.parser import parse
from odinfer.model.statements import read_statements

SIR = "S' = -b*S*I/N\nI' = b*S*I/N - g*I\n"


def message(text: str) -> str:
    with pytest.raises(InputError) as caught:
        parse(text)
    assert str(caught.value).startswith("line ")
    return str(caught.value)


def test_given_values_and_names_about_which_something_is_declared_are_told_apart():
    given, mentioned = initial_values(read_statements("S(0) = 3; I(0) > 0; S(0) < 5"), ("S", "I"), spare=False)
    assert (list(given), mentioned) == (["S(0)"], ["I(0)"])


def test_nothing_said_is_a_free_value_at_the_first_time():
    e = parse(SIR)
    assert (e.initial, e.begins, e.local) == ({}, "first", ())


def test_a_given_value_is_an_expression_in_which_others_are_written_out():
    e = parse(SIR + "S(0) = N - 2*I(0); I(0) = i/2; input i; fixed N = 10")
    assert (e.parameters, e.begins, e.local) == (("b", "N", "g"), "zero", ())
    assert [float(v) for v in e.at([*e.initial.values()], 0.0, [0.0, 0.0], [1.0, 10.0, 1.0], [3.0])] == [7.0, 1.5]


def test_a_mentioned_value_is_a_parameter_of_that_name():
    e = parse(SIR + "S(0) = N - I(0)")
    assert (e.parameters, e.local) == (("b", "N", "g", "I(0)"), ("I(0)",))
    assert [e.code[i] for i in e.initial.values()][1] == ("name", ("I(0)",))
    assert parse("x' = k*(x(0) - x)").parameters == ("k", "x(0)")
    assert parse("x' = k; y ~ normal(x/x(0), 1)").initial.keys() == {"x"}


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("0 < I(0) < 50", "bounds", (0.0, 50.0)),
        ("start I(0) = 3", "start", 3.0),
        ("log I(0)", "scale", "log"),
        ("log I(t0)", "bounds", (0.0, math.inf)),
        ("I(0) ~ lognormal(3, 1)", "prior", ("lognormal", 3.0, 1.0)),
    ],
)
def test_declarations_are_those_of_a_parameter(text, kind, value):
    e = parse(SIR + text)
    assert getattr(e, kind)["I(0)"] == value
    assert e.begins == ("t0" if "t0" in text else "zero")
    assert list(e.initial) == ["I"]


def test_fixed_is_another_word_for_given():
    one, two = parse(SIR + "fixed I(0) = -1/4"), parse(SIR + "I(0) = -1/4")
    assert (one.begins, one.parameters, one.fixed) == (two.begins, two.parameters, {})
    for e in (one, two):
        assert [e.code[i] for i in e.initial.values()] == [("number", (-0.25,))]


def test_initial_values_are_local_unless_they_are_shared():
    assert parse(SIR + "I(0) > 0; S(0) > 0; shared S(0); local b, I(0)").local == ("b", "I(0)")


def test_a_slope_has_an_initial_value_too():
    e = parse("x'' = -k*x; x'(0) = 0; x(0) = v*x'(0) + 1")
    assert (e.parameters, list(e.initial)) == (("k", "v"), ["x", "x_dot"])


BAD = [
    ("b(0) = 1", "line 3: 'b(0)' is the initial value of 'b', which is no state"),
    ("S(0) = N - J(0)", "'J(0)' is the initial value of 'J', which is no state"),
    ("y ~ normal(SS(0)*S, 1)", "did you mean 'S'?"),
    ("J(0) > 1", "no state"),
    ("S(0) = N - I", "'N - I' makes S(0) depend on 'I'; write I(0), not the state"),
    ("S(0) = N - total; total = S + I", "depend on 'I'"),
    ("S(0) = t", "makes S(0) depend on 't'"),
    ("S(0) = I(0)\nI(0) = S(0) + 1", "makes 'S(0)' need itself; break the circle"),
    ("S(0) = 3\nS(0) > 1", "line 4: lower bound of 'S(0)', whose value is given on line 3"),
    ("S(0) = 3; start S(0) = 1", "start of 'S(0)', whose value is given"),
    ("S(0) = 3; S(0) ~ normal(1, 1)", "prior of 'S(0)', whose value is given"),
    ("S(0) = 3; local S(0)", "local of 'S(0)', whose value is given"),
    ("S(0) =", "a value is missing"),
    ("S(0) = S > 3", "is a condition"),
]


@pytest.mark.parametrize(("text", "expected"), BAD, ids=range(len(BAD)))
def test_bad_initial_values_give_one_clear_line(text, expected):
    assert expected in message(SIR + text)


@pytest.mark.parametrize("time", ["-100", "-1e2", "\u2212100", "- 100.0"])
def test_initial_values_may_be_given_at_a_time_before_zero(time):
    e = parse(SIR + f"S({time}) = N - I({time}); I({time}) = 1")
    assert (float(e.begins), list(e.initial)) == (-100.0, ["S", "I"])
    assert "mixes x(0) with the other spelling" in message(SIR + f"S({time}) = 3; I(0) = 1")
