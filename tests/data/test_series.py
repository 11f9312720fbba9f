"""Series: one row per time with all that is known of it, and names in messages. See test_data for what it is for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odinfer as od
from odinfer.data.series import checked_names, checked_sd, distinct_times, invalid_sd, merge_rows, quoted
from odinfer.errors import InputError, InputWarning

NAN = np.nan
fuzz = settings(deadline=None, max_examples=60)


def test_rows_of_one_time_merge_with_what_is_known_of_them():
    t, y = np.array([0.0, 1, 1, 2]), np.array([[1, NAN], [2, NAN], [NAN, 3], [NAN, NAN]])
    sd, limit = np.array([[NAN, NAN], [5, NAN], [NAN, 6], [NAN, NAN]]), np.array([[0, 0], [0, 0], [0, -1], [0, 0]])
    found = merge_rows(t, y, ["A", "B"], "state", "", "keep", sd, limit)
    expected = ([0, 1], [[1, NAN], [2, 3]], [[NAN, NAN], [5, 6]], [[0, 0], [0, -1]])
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_nothing_known_is_none():
    assert checked_sd(None, np.ones((2, 1)), ["A"], "") is None
    assert checked_sd({"A": [NAN, NAN]}, np.ones((2, 1)), ["A"], "") is None
    assert checked_sd([1, NAN], np.array([[NAN], [1]]), ["A"], "") is None


def test_no_number_whose_square_is_none_is_a_standard_deviation():
    assert invalid_sd(np.array([-1, 0, 1e-200, 1e-9, 1e9, 1e200, np.inf, NAN])).tolist() == [1, 1, 1, 0, 0, 1, 1, 0]


def test_times_of_replicates_are_one():
    assert distinct_times(np.array([0, 1, 1 + 2e-10, 2])).tolist() == [0, 1, 2]
    over_magnitudes = 10.0 ** np.arange(-9.0, 7.0)
    assert distinct_times(over_magnitudes).tolist() == over_magnitudes.tolist()
    assert distinct_times(np.empty(0)).tolist() == []


def test_inputs_may_be_none_but_not_states():
    assert checked_names([], "input") == ()
    with pytest.raises(InputError, match="there is no state; give at least one"):
        checked_names([], "state")


@fuzz
@given(st.lists(st.text(), min_size=1, max_size=20))
def test_names_in_messages_are_short_and_on_one_line(texts):
    words = quoted(*texts)
    assert len(words) <= 300
    assert words.isprintable()
    assert words.startswith(repr(texts[0]) if len(texts[0]) <= 40 else repr(texts[0][:39] + "…"))


def test_replicates_stand_apart_and_are_read_at_one_time():
    with pytest.warns(InputWarning, match="independent observations"):
        data = od.Data([0.0, 0.0, 1.0, 1.0, 1.0, 2.0], [1.0, 1.1, 2.0, 2.1, 1.9, 3.0], states=["x"])
    (e,) = data.experiments
    assert (np.diff(e.t) > 0).all()
    np.testing.assert_array_equal(e.moments, [0.0, 0.0, 1.0, 1.0, 1.0, 2.0])
