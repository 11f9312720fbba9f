"""Events change states at constant times; times at which expressions of t change their form are found."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odinfer.errors import InputError
from odinfer.model.events import breaks, event, into_states
from odinfer.model.expression import read
from odinfer.model.parser import parse
from odinfer.model.program import Program
from odinfer.model.statements import read_statements

BASE = "x' = -k*x\ny' = x - y\n"


def test_changes_are_instructions_of_states_parameters_and_inputs():
    e = parse(BASE + "input u\nat 0, 12: x = x + dose*u, y = 0")
    (found,) = e.events
    assert (found.times, found.line, [name for name, _ in found.changes]) == ((0.0, 12.0), 4, ["x", "y"])
    assert e.parameters == ("k", "dose")
    values = e.at([i for _, i in found.changes], 0.0, [2.0, 3.0], [5.0, 7.0], [11.0])
    assert [float(v) for v in values] == [79.0, 0.0]


def test_changes_of_what_is_no_state_are_refused_or_with_spare_left_out():
    doses = read_statements("at 3: x = 1, z = 2\nat 4: z = 1").events
    with pytest.raises(InputError, match="line 1: the event changes 'z', which is no state; choose from: x, y"):
        into_states(doses, ("x", "y"), spare=False)
    (kept,) = into_states(doses, ("x", "y"), spare=True)
    assert [name for name, _ in event(kept, Program({})).changes] == ["x"]


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("where(t > 3, 1, 0)", (3.0,)),
        ("where(3 >= t, 1, 0)", (3.0,)),
        ("where(t - 3 > 0, 1, 0)", (3.0,)),
        ("where(2*t < 7 - t/2, x, 0)", (2.8,)),
        ("where(1 < t <= 2, x, 0)", (1.0, 2.0)),
        ("piecewise(1, t < 1, 2, t < 2 or t == 5, 3)", (1.0, 2.0, 5.0)),
        ("sign(4 - t) + max(t, 2) + abs(-t)", (0.0, 2.0, 4.0)),
        ("where(t > a, 1, 0) + where(x > 3, 1, 0) + where(t > t, 1, 0) + where(sin(t) > 0, 1, 0)", ()),
        ("where(t^2 > 4, 1, 0) + where(t*t > 4, 1, 0)", ()),
        ("where(1e-300*t > 1e300, 1, 0)", ()),
    ],
)
def test_breaks_are_where_time_passes_constants(text, times):
    assert parse(f"x' = a*({text})").breaks == pytest.approx(times)


def test_breaks_are_found_in_columns_and_definitions_too():
    assert parse("x' = p; p = where(t > 2, 1, 0); y ~ normal(where(t > 1, x, 0), 1)").breaks == (1.0, 2.0)


@given(*[st.floats(-1e3, 1e3).filter(lambda v: abs(v) > 1e-3) for _ in range(4)])
def test_at_a_break_both_sides_are_equal(a, b, c, d):
    program = Program({})
    program.whole(read(f"where({a!r}*t + {b!r} > {c!r}*(t - {d!r}), 1, 2)", 1))
    for time in breaks(program.code):
        scale = max(abs(a * time), abs(b), abs(c * time), abs(c * d))
        assert np.isclose(a * time + b, c * (time - d), rtol=0, atol=1e-9 * scale)
    assert len(breaks(program.code)) == (a != c)


def test_what_is_observed_at_the_time_of_an_event_comes_first_unless_it_is_before_that_time():
    at, before = parse(BASE + "at 3: x = 1\nbefore 4, 5: y += x").events
    assert (at.before, before.before, before.times) == (False, True, (4.0, 5.0))
    assert parse("before' = -k*before\nbefore > 0").states == ("before",)


def test_conditions_are_instructions_with_what_they_compare():
    e = parse(BASE + "input u\nwhen x < c*u and not (y >= 2 or t > 9): x = x + d, y = 0")
    (found,) = e.triggers
    assert (e.events, found.line, [name for name, _ in found.changes]) == ((), 4, ["x", "y"])
    assert (e.parameters, e.breaks) == (("k", "c", "d"), (9.0,))
    point = 1.0, [2.0, 3.0], [5.0, 7.0, 11.0], [13.0]
    assert [float(v) for v in e.at(found.gaps, *point)] == [2.0 - 91.0, 1.0, -8.0]
    assert not bool(e.at([found.condition], *point)[0])
    assert bool(e.at([found.condition], 1.0, [2.0, 1.0], *point[2:])[0])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "when X > 1: x = 0",
            "line 3: 'X > 1' cannot become true: nothing in it changes in time; choose from: t, x, y",
        ),
        ("when k + speed > 1: x = 0", "'k + speed > 1' cannot become true"),
        ("when 1 < 2: x = 0", "cannot become true: nothing in it changes in time; name a state, an input or t in it"),
        ("when x > 1: z = 0", "line 3: the event changes 'z', which is no state"),
        ("when where(x > 1, 1, 0): x = 0", "is no condition"),
        ("when x > foo(1): x = 0", "line 3: 'foo(1)' calls the unknown function"),
    ],
)
def test_conditions_that_say_nothing_are_refused(text, words):
    with pytest.raises(InputError) as caught:
        parse(BASE + text)
    assert words in str(caught.value)


def test_a_misspelled_state_in_a_condition_is_told():
    with pytest.raises(InputError, match="did you mean 'voltage'"):
        parse("voltage' = 1\nwhen Voltage > 1: voltage = 0")
