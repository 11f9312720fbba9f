"""Statements: every spelling that people try is read as what it means, others are told what to write."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odinfer.errors import InputError
from odinfer.model.statements import Distribution, read_statements


def said(text: str) -> dict[tuple[str, str], int]:
    return read_statements(text).lines


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("x(0) = 3", "initial", "x(0)"),
        ("x ( 0 ) = 3", "initial", "x(0)"),
        ("x(0.0) = 3", "initial", "x(0)"),
        ("x(t=0) = 3", "initial", "x(0)"),
        ("x(t0) = 3", "initial", "x(0)"),
        ("x( t = t0 ) = 3", "initial", "x(0)"),
        ("x'' = x; x'(0) = 3", "initial", "x_dot(0)"),
        ("x'' = x; x\u2032(t0) = 3", "initial", "x_dot(0)"),
        ("fixed x(0) = 3", "initial", "x(0)"),
        ("start x(0) = 3", "start", "x(0)"),
        ("log x(0)", "scale", "x(0)"),
        ("x(0) > 0", "lower bound", "x(0)"),
        ("3 >= x(t0)", "upper bound", "x(0)"),
        ("0 < sd(x)", "lower bound", "sd(x)"),
        ("exp(0) < k", "lower bound", "k"),
        ("k < exp(0)", "upper bound", "k"),
        ("x(0) ~ normal(1, 2)", "distribution", "x(0)"),
        ("x ~ normal(x)", "distribution", "x"),
        ("x'' = x; x' ~ normal(x')", "distribution", "x_dot"),
        ("local k", "local or shared", "k"),
        ("shared x(0)", "local or shared", "x(0)"),
        ("step u", "step", "u"),
    ],
)
def test_a_statement_says_something_of_a_kind_about_a_name(text, kind, name):
    assert list(said(text))[-1] == (kind, name)


def test_the_new_words_are_names_like_others():
    assert list(said("at = 3; local = at; step' = 2; shared = 1; t0 = 3")) == [
        ("definition", "at"),
        ("definition", "local"),
        ("equation", "step"),
        ("definition", "shared"),
        ("definition", "t0"),
    ]
    assert list(said("at' = 3")) == list(said("at   ' = 3")) == [("equation", "at")]
    assert list(said("at   = 3")) == [("definition", "at")]


def test_the_arguments_of_a_distribution_may_have_names_and_brackets():
    found = read_statements("y ~ student(min(x, 3), df = 5, sd=s)").given["distribution"]["y"]
    assert isinstance(found, Distribution)
    assert [(word, source.text) for word, source in found.arguments] == [("", "min(x, 3)"), ("df", "5"), ("sd", "s")]


@pytest.mark.parametrize(
    ("text", "times", "changes"),
    [
        ("at 12: x = x + d", (12.0,), [("x", "x + d")]),
        ("at 24, 0,12 : x = max(x, d), y = 0", (0.0, 12.0, 24.0), [("x", "max(x, d)"), ("y", "0")]),
        ("at t = 2*7: x += d - 1", (14.0,), [("x", "x + (d - 1)")]),
        ("at t == -1: x -= 1, y*=2 , z /= d", (-1.0,), [("x", "x - (1)"), ("y", "y * (2)"), ("z", "z / (d)")]),
        ("x'' = x; at 3: x' = 0", (3.0,), [("x_dot", "0")]),
    ],
)
def test_events_have_times_and_changes(text, times, changes):
    (event,) = read_statements(text).events
    assert event.times == times
    assert [(name, source.text) for name, source in event.changes] == changes


@pytest.mark.parametrize(
    ("text", "condition", "changes"),
    [
        ("when x < 1e-8: x = 0", "x < 1e-8", [("x", "0")]),
        ("when 2*x >= y + t : x -= 1, y = max(x, y)", "2*x >= y + t", [("x", "x - (1)"), ("y", "max(x, y)")]),
        ("when(x > 1): x = 0", "(x > 1)", [("x", "0")]),
        ("when 0 < x < 1 or not t > 3: x = 0", "0 < x < 1 or not t > 3", [("x", "0")]),
        ("x'' = x; when x' < 0: x' = -x'", "x_dot < 0", [("x_dot", "-x_dot")]),
    ],
)
def test_events_have_conditions_and_changes(text, condition, changes):
    (event,) = read_statements(text).events
    assert (event.times, event.when.text) == ((), condition)
    assert [(name, source.text) for name, source in event.changes] == changes


def test_when_is_a_name_like_others_where_no_event_is_meant():
    assert list(said("when' = -k*when")) == [("equation", "when")]
    assert list(said("when = 3")) == [("definition", "when")]
    assert list(said("when > 0; when(0) = 3")) == [("lower bound", "when"), ("initial", "when(0)")]


BAD = [
    ("when x < 1 x = 0", "'when x < 1 x = 0' lacks a colon after its condition; write when x < 1: x = 0"),
    ("when x = 3: x = 0", "'x = 3' is no condition of <, <=, > or >=; write when x < 1: x = 0"),
    ("when x == 3 and y < 1: x = 0", "'x == 3 and y < 1' is no condition of <"),
    ("when t == 12: x = 0", "'t == 12' is no condition of <, <=, > or >=; write at 12: ..."),
    ("when : x = 0", "'' is no condition"),
    ("when x, y < 1: x = 0", "'x, y < 1' is no condition"),
    ("when x < : x = 0", "cannot read 'x <'"),
    ("when x < 1: x", "'x' changes no state; write when x < 1: x = 0"),
    ("when x < 1: x = 1, x = 2", "changes 'x' twice"),
    ("x(0) = 1\nwhen x < x(t0): x = 0", "line 2: mixes"),
    ("at x > 3: x = 3", "'x > 3' is no time of an event: a finite constant; write when x > 3: ..."),
    ("x(5) = 3", "'x(5)' can be given at time 0, x(0), before it, x(-100)"),
    ("x(0) = 1\nx(0) = 2", "line 2: 'x(0)' already has 'initial' on line 1"),
    ("x(0) = 1; fixed x(0) = 2", "already has 'initial'"),
    ("x(t0) = 1\ny(0) = 2", "line 2: mixes x(0) with the other spelling on line 1; write x(0) (time 0)"),
    ("x(t0) = 2*y(0)", "mixes"),
    ("x' = x(0)\n0 < x(t0)", "line 2: mixes"),
    ("y ~ normal(x(0))\nat 3: x = x(t0)", "line 2: mixes"),
    ("x(0)' = 1", "'x(0)' is not a name"),
    ("input x(0)", "'x(0)' is not a name"),
    ("x'(0) = 3", "has a prime, but x'' has no equation"),
    ("f(x) = 2*x", "functions cannot be defined; write f = ..."),
    ("0 < x(t) < 3", "without (t)"),
    ("log(x) ~ normal(x, 3)", "write x ~ lognormal(median, sd of the log)"),
    ("sin(x) ~ normal(x, 3)", "'sin(x)' is not a name"),
    ("x ~ normal", "cannot read 'x ~ normal'"),
    ("at 12 x = 3", "'at 12 x = 3' lacks a colon after its times; write at 0, 12:"),
    ("at T: x = 3", "'T' is no time of an event: a finite constant"),
    ("at 1e999: x = 3", "'1e999' is no time"),
    ("at x > 3: x = 3", "'x > 3' is no time"),
    ("at 1, 1: x = 3", "twice at 1"),
    ("at 1: x = 3, x = 4", "changes 'x' twice"),
    ("at 1:", "'' changes no state"),
    ("at 1: x == 3", "changes no state"),
    ("at 1: x(0) = 3", "'x(0)' is no name of a state"),
    ("at 1: sd(x) = 3", "'sd(x)' is no name of a state"),
    ("x' = 1\nat 1: x = 2; x = 3", "at 12: x = ... for an event"),
    ("local k\nshared k", "line 2: 'k' already has 'local or shared' on line 1"),
    ("step u; u = 3", "'u' already has 'step'"),
    ("y ~ normal(x)\ny ~ poisson(x)", "line 2: 'y' already has 'distribution' on line 1"),
]


@pytest.mark.parametrize(("text", "expected"), BAD, ids=range(len(BAD)))
def test_bad_statements_give_one_line_that_names_line_and_piece(text, expected):
    with pytest.raises(InputError) as caught:
        read_statements(text)
    assert expected in str(caught.value)
    assert str(caught.value).startswith("line ")
    assert str(caught.value).isprintable()


TOKENS = [
    "x(0)",
    "x(t0)",
    "x",
    "'",
    " ",
    "(",
    ")",
    "0",
    "t0",
    "t",
    "=",
    "+=",
    "~",
    "normal(",
    ",",
    ":",
    "<",
    "at ",
    "3",
]
TOKENS += ["local ", "shared ", "step ", "fixed ", "start ", "log ", "d", "/dt", "\u2032", "sd(x)", "k", "*", "-", "="]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(TOKENS), max_size=12).map("".join))
def test_any_sequence_of_tokens_is_read_or_refused(text):
    refused = "line "
    try:
        read_statements(text)
    except InputError as error:
        refused = str(error)
    assert refused.startswith("line ")
    assert refused.isprintable()


@pytest.mark.parametrize("start", ["x(", "x", "at 3: x", "at ", "x ~ normal(", "log x", "0 < x", "(t = "])
@pytest.mark.parametrize("run", [" ", "(", ",", "x", "'", "=", "0"])
def test_long_runs_are_read_or_refused(start, run):
    for end in ("", "y = 3"):
        try:
            read_statements(start + 90_000 * run + end)
        except InputError:
            continue
