"""Values of a grid file: right ones are taken as they are, and what is wrong with others is said with its place."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odinfer.errors import InputError
from odinfer.paper.bench import values

FEW = settings(max_examples=25, deadline=None)
GOOD = {
    "text": ["a", " b "], "flag": [True, False], "whole": [0, 7], "count": [1, 7], "positive": [1, 0.5],
    "table": [{}, {"a": 1}], "listed": [[], [1]], "levels": [[0.1], [1, 10]], "times": [[0.0, 1.0], []],
}  # fmt: skip
BAD = {
    "text": ["", "  ", 3, None], "flag": [1, "true", None], "whole": [-1, 1.0, True, "1"], "count": [0, -1, 2.0, True],
    "positive": [0, -0.5, math.inf, math.nan, "1"], "table": [[], "a", None], "listed": [{}, "a", None],
    "levels": [[], [0.0], [-1], ["a"], 0.1], "times": [[1.0, 1.0], [2, 1], ["a"], {"start": 0, "stop": 1}, 3],
}  # fmt: skip


@pytest.mark.parametrize("check", GOOD)
def test_right_values_are_taken(check):
    for value in GOOD[check]:
        found = getattr(values, check)(value)
        assert found == (tuple(value) if check in ("levels", "times") else value)


@pytest.mark.parametrize("check", BAD)
def test_wrong_values_are_refused_with_what_they_should_be(check):
    for value in BAD[check]:
        with pytest.raises(ValueError, match=r"^(a|true) "):
            getattr(values, check)(value)


@FEW
@given(start=st.floats(-1e3, 1e3), span=st.floats(0.1, 1e3), count=st.integers(2, 40))
def test_even_times_are_those_between_start_and_stop(start, span, count):
    found = values.times({"start": start, "stop": start + span, "count": count})
    np.testing.assert_array_equal(found, np.linspace(start, start + span, count))


def test_a_table_gets_its_defaults_and_its_checks():
    known = {"title": (values.text, "none"), "draws": (values.count, None)}
    assert values.taken({"draws": 3}, "here", known) == {"title": "none", "draws": 3}


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({}, "here: 'draws' is missing"),
        ({"draw": 3}, "here: unknown entry 'draw'; did you mean 'draws'?"),
        ({"draws": 0}, "here: 'draws' must be a whole number from 1 to 100,000, not '0'"),
        ([3], "here must be a table of names and values"),
    ],
)
def test_what_is_wrong_with_a_table_is_said_with_its_place(table, words):
    with pytest.raises(InputError) as caught:
        values.taken(table, "here", {"draws": (values.count, None)})
    assert str(caught.value) == words


def test_a_long_value_is_cut_in_the_message():
    with pytest.raises(InputError) as caught:
        values.taken({"draws": "x" * 10_000}, "here", {"draws": (values.count, None)})
    assert len(str(caught.value)) < 150


def test_a_name_is_one_of_those_known_or_gets_a_suggestion():
    assert values.known("here", "system", "decay", {"decay": 3}) == 3
    with pytest.raises(InputError, match="here: unknown system 'deca'; did you mean 'decay'"):
        values.known("here", "system", "deca", {"decay": 3})
