"""Cells: what is a number, what is missing, and that the fast way to numbers is the careful one."""

import datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odinfer.data.cells import (
    _parse_number,
    cell_text,
    is_missing,
    is_number,
    is_observation,
    parse_numbers,
    parse_observations,
)
from odinfer.errors import InputError


def place(i: int) -> str:
    return f"cell {i}"


@pytest.mark.parametrize("cell", ["", "NA", "na", "NaN", "n/a", "#N/A", "null", "NULL", "."])
def test_missing_cells_are_nan(cell):
    assert is_missing(cell)
    assert np.isnan(parse_numbers([cell, "1"], place)).tolist() == [True, False]


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("high", "'high' is not a finite number; leave it empty if not observed"),
        ("1_000", "'1_000' is not a finite number"),
        ("٣", "'٣' is not a finite number"),
        ("inf", "'inf' is not a finite number"),
        ("-nan", "'-nan' is not"),
        ("1e999", "'1e999' is not a finite number"),
        ("1,5", "'1,5' has a decimal comma; use points"),
        ("9" * 100_000 + "x", "'9{39}…' is not a finite number"),
    ],
)
def test_what_is_no_number_is_refused_with_its_place(cell, words):
    with pytest.raises(InputError, match=f"^cell 1: {words}"):
        parse_numbers(["1", cell, "worse"], place)


odd = st.sampled_from(
    ["", "NA", ".", "-", "+1", ".5", "5.", "1e5", "1E-5", "inf", "nan", "1_0", "1,5", "0x1", " 1", "٣"]
)
cells = st.lists(odd | st.floats().map(repr) | st.integers().map(str) | st.text(max_size=5), min_size=1, max_size=6)


@settings(deadline=None, max_examples=300)
@given(cells)
def test_the_fast_way_takes_no_cell_that_the_careful_one_refuses_and_gives_the_same_numbers(texts):
    texts = [text.strip() for text in texts]

    def outcome(call):
        try:
            return call().tolist()
        except InputError as error:
            return str(error)

    fast = outcome(lambda: parse_numbers(texts, place))
    careful = outcome(lambda: np.array([_parse_number(text, i, place) for i, text in enumerate(texts)]))
    np.testing.assert_equal(fast, careful)


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**15), 10**15))
def test_a_number_that_becomes_text_is_the_same_number_again(value):
    assert is_number(cell_text(value))
    assert parse_numbers([cell_text(value)], place)[0] == value


def test_values_become_the_text_of_a_csv_file():
    values = [None, float("nan"), " a ", True, datetime.datetime(2020, 3, 1, 12), datetime.date(2020, 3, 1)]
    assert [cell_text(value) for value in values] == ["", "", "a", "True", "2020-03-01T12:00:00", "2020-03-01"]


@pytest.mark.parametrize(
    ("cell", "value", "limit"),
    [
        ("<0.05", 0.05, -1), ("< 0.05", 0.05, -1), ("≤0.05", 0.05, -1), ("<= 5e-2", 0.05, -1), (">100", 100, 1),
        ("≥ 100", 100, 1), (">=100", 100, 1), ("<-1", -1, -1), ("7", 7, 0),
    ],
)  # fmt: skip
def test_limits_of_detection_are_numbers_that_the_true_value_lies_beyond(cell, value, limit):
    values, limits = parse_observations(["1", cell, "", "<3"], place)
    np.testing.assert_array_equal(values, [1, value, np.nan, 3])
    assert limits.tolist() == [0, limit, 0, -1]
    assert is_observation(cell)


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("<abc", "'<abc' is no limit of detection; write one like <0.05"),
        ("<", "'<' is no limit of detection"),
        ("<<5", "'<<5' is no limit"),
        ("<NA", "'<NA' is no limit"),
        ("<0,05", "'0,05' has a decimal comma; use points"),
        ("<1e999", "'1e999' is not a finite number"),
        ("low", "'low' is not a finite number"),
    ],
)
def test_what_is_no_limit_is_refused_with_its_place(cell, words):
    with pytest.raises(InputError, match=f"^cell 1: {words}"):
        parse_observations(["1", cell, "worse"], place)


@settings(deadline=None, max_examples=200)
@given(cells)
def test_cells_without_limits_are_the_same_observations_as_numbers(texts):
    texts = [text.strip().lstrip("<>≤≥") for text in texts]

    def outcome(call):
        try:
            return call()
        except InputError as error:
            return str(error)

    one, other = outcome(lambda: parse_numbers(texts, place)), outcome(lambda: parse_observations(texts, place))
    assert isinstance(other, str) or other[1] is None
    np.testing.assert_equal(other if isinstance(other, str) else other[0], one)
