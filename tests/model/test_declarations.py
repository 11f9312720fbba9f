"""What is declared must be about something, and what is declared about one name must go together."""

import math

import pytest

from odinfer.errors import InputError
from odinfer.model.declarations import bounds
from odinfer.model.parser import parse
from odinfer.model.statements import read_statements


def test_bounds_are_those_of_states_and_parameters_alike():
    said = read_statements("0 < a < 2; x > 1; log b")
    found = bounds(said, ("x",), ("a", "b"), ("x", "a", "b"), spare=False)
    assert found == {"a": (0.0, 2.0), "x": (1.0, math.inf), "b": (0.0, math.inf)}


def test_what_is_about_nothing_is_refused_or_with_spare_left_out():
    said = read_statements("0 < a < 2\nlocal q")
    with pytest.raises(InputError, match="line 2: local of 'q', which is not a parameter in the equations"):
        bounds(said, ("x",), ("a",), ("x", "a"), spare=False)
    assert bounds(said, ("x",), ("a",), ("x", "a"), spare=True) == {"a": (0.0, 2.0)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("local x", "local of 'x', which is not a parameter but a state; for its beginning write x(0)"),
        ("shared kk", "shared of 'kk', which is not a parameter in the equations; did you mean 'k'?"),
        ("step v", "step of 'v', which is not used in the equations"),
        ("0 < sd(x) < 1; x ~ normal(x)", "'sd(x)', which is not estimated as such; give it a name where it stands"),
        ("log x(0); x(0) > -1", "'x(0)' cannot lie between -1 and inf"),
        ("start x(0) = 3; x(0) < 2", "'x(0)' has the value 3, outside -inf to 2"),
    ],
)
def test_contradictions_give_one_clear_line(text, expected):
    with pytest.raises(InputError) as caught:
        parse("x' = -k*x\n" + text)
    assert str(caught.value).startswith("line 2: ")
    assert expected in str(caught.value)


def test_parameters_are_shared_unless_they_are_local():
    assert parse("x' = -k*x + a*b; local b, k; shared a").local == ("k", "b")
