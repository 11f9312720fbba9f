"""Dates: which are understood, which are refused because they can be read in two ways."""

import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odinfer.data.dates import days_since_first
from odinfer.errors import InputError


def place(i: int) -> str:
    return f"cell {i}"


@pytest.mark.parametrize(
    "cells",
    [
        ["2020-03-28", "2020-03-29", "2020-04-01"],
        ["2020-03-28T00:00", "2020-03-29 00:00:00", "2020-04-01"],
        ["2020-03-28T00:00Z", "2020-03-29T02:00+02:00", "2020-04-01T00:00Z"],
        ["2020/03/28", "2020/03/29", "2020/04/01"],
        ["28.03.2020", "29.03.2020", "01.04.2020"],
        ["28/03/2020", "29/03/2020", "01/04/2020"],
        ["3/28/2020", "3/29/2020", "4/1/2020"],
        ["28 Mar 2020", "29 Mar 2020", "1 Apr 2020"],
        ["28-Mar-2020", "29-Mar-2020", "01-Apr-2020"],
        ["March 28, 2020", "March 29, 2020", "April 1, 2020"],
        ["28.03.2020 00:00", "29.03.2020 00:00", "01.04.2020 00:00"],
    ],
)
def test_dates_are_days_since_the_first(cells):
    found = days_since_first(cells, place)
    assert found is not None
    assert found[0].tolist() == [0, 1, 4]
    assert found[1].startswith("2020-03-28")


def test_the_first_is_the_earliest_and_hours_are_parts_of_a_day():
    found = days_since_first(["2020-03-02T06:00", "2020-03-01T18:00"], place)
    assert found is not None
    assert (found[0].tolist(), found[1]) == ([0.5, 0.0], "2020-03-01 18:00:00")


@pytest.mark.parametrize("cell", ["noon", "1.5", "12:30", "", "2020-13-01", "x" * 1000, "99/99/2020"])
def test_what_is_no_date_is_none(cell):
    assert days_since_first([cell, "2020-03-01"], place) is None


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (["2020-03-01", "soon"], "cell 1: 'soon' is not a date like '2020-03-01'"),
        (["2020-03-01", "2020-03-02T00:00Z"], "cell 1: .* is not a date like"),
        (["28.03.2020", "2020-03-29"], "cell 1: '2020-03-29' is not a date like '28.03.2020'"),
        (
            ["03/04/2020", "05/04/2020"],
            "cell 0: '03/04/2020' may start with the day or the month; write year-",
        ),
    ],
)
def test_mixed_and_ambiguous_dates_are_refused_with_the_place(cells, words):
    with pytest.raises(InputError, match=words):
        days_since_first(cells, place)


moments = st.datetimes(datetime.datetime(1800, 1, 1), datetime.datetime(2200, 1, 1))


@settings(deadline=None)
@given(st.lists(moments, min_size=1, max_size=8))
def test_differences_of_days_are_those_of_the_dates(dates):
    found = days_since_first([date.isoformat() for date in dates], place)
    assert found is not None
    assert found[0].tolist() == [(date - min(dates)) / datetime.timedelta(days=1) for date in dates]
