"""Checks of single values: what is a number, what is none, and one line about what is none."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odinfer.checks import checked_choice, checked_integer, checked_number, checked_positive, checked_range, is_integer
from odinfer.errors import InputError

FEW = settings(max_examples=25, deadline=None)
INTEGERS = (int, np.int8, np.int32, np.int64, np.uint16)


def message(check, *arguments, **options):
    with pytest.raises(InputError) as caught:
        check(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@FEW
@given(st.integers(-50, 100), st.integers(-50, 50), st.sampled_from(INTEGERS))
def test_whole_numbers_of_python_and_numpy_are_taken_from_the_least_on(value, least, kind):
    given_ = kind(abs(value) if kind is np.uint16 else value)
    assert is_integer(given_, least) is (int(given_) >= least)
    if int(given_) >= least:
        found = checked_integer("seed", given_, least)
        assert found == int(given_)
        assert type(found) is int
    else:
        assert message(checked_integer, "seed", given_, least).startswith(
            f"seed must be a whole number from {least} on, not "
        )


@pytest.mark.parametrize("value", [True, False, np.True_, 1.0, np.float64(2.0), "3", b"3", None, [1], math.nan, 1j, ()])
def test_truth_values_text_and_fractions_are_no_whole_numbers(value):
    assert not is_integer(value)
    assert repr(value) in message(checked_integer, "workers", value)


@FEW
@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([float, np.float64, np.array]))
def test_numbers_are_taken_as_they_are(value, kind):
    found = checked_number("noise", kind(value))
    assert found == value
    assert type(found) is float


@FEW
@given(st.integers(-(2**40), 2**40))
def test_whole_numbers_are_numbers(value):
    assert checked_number("noise", value) == checked_number("noise", np.int64(value)) == value


def test_an_infinite_number_is_taken_only_where_it_may_be():
    assert checked_number("bound", -math.inf, finite=False) == -math.inf
    for value in (math.inf, -math.inf):
        assert message(checked_number, "bound", value) == f"bound must be a finite number, not {value}"
    for finite in (True, False):
        assert message(checked_number, "bound", math.nan, finite=finite) == "bound must be a finite number, not nan"


@pytest.mark.parametrize("value", ["many", "", None, [1.0, 2.0], {}, 1j, object, np.array([1.0, 2.0])])
def test_what_is_no_number_is_refused_by_name(value):
    assert message(checked_number, "noise", value) == f"noise must be a number, not {value!r}"


@FEW
@given(st.floats(1e-300, 1e300), st.floats(1e-300, 1e300), st.sampled_from([tuple, list, np.array]))
def test_an_interval_is_a_pair_of_growing_positive_numbers(one, other, kind):
    low, high = sorted((one, other))
    if low < high:
        assert checked_range("gamma", kind([low, high])) == (low, high)
        assert message(checked_range, "gamma", (high, low)).startswith("gamma must be a pair 0 < low < high, not ")
    message(checked_range, "gamma", (low, low))
    message(checked_range, "gamma", (-low, high))
    message(checked_range, "gamma", (0.0, high))


@pytest.mark.parametrize("value", [None, 3, (1,), (1, 2, 3), ("a", "b"), (math.nan, 1.0), (1.0, math.nan), {}, "1"])
def test_what_is_no_pair_is_no_interval(value):
    assert message(checked_range, "gamma", value) == f"gamma must be a pair 0 < low < high, not {value!r}"


@FEW
@given(st.lists(st.text("abc", min_size=1), min_size=1, max_size=5, unique=True), st.data())
def test_a_choice_is_one_of_the_choices(choices, data):
    value = data.draw(st.sampled_from(choices))
    assert checked_choice("kernel", value, iter(choices)) == value
    assert message(checked_choice, "kernel", value + "!", choices).startswith(f"unknown kernel '{value}!'; ")


def test_a_choice_that_is_none_names_the_nearest_or_all():
    assert (
        message(checked_choice, "kernel", "rbff", ["rbf", "matern52"]) == "unknown kernel 'rbff'; did you mean 'rbf'?"
    )
    assert (
        message(checked_choice, "kernel", "zzz", ["rbf", "matern52"])
        == "unknown kernel 'zzz'; choose from: rbf, matern52"
    )
    for value in (None, 3, ["rbf"], ("rbf",)):
        assert message(checked_choice, "kernel", value, ["rbf"]).startswith("unknown kernel ")


@pytest.mark.parametrize("value", ["3", b"3", "1e5", "nan", np.array(["3"])])
def test_text_that_reads_like_a_number_is_none(value):
    assert message(checked_number, "x", value).startswith("x must be a number, not ")
    message(checked_range, "x", value)


def test_numbers_beyond_the_largest_are_infinite_and_messages_stay_short():
    assert message(checked_number, "x", 10**400) == "x must be a finite number, not inf"
    assert checked_range("x", (1, 10**400)) == (1.0, math.inf)
    assert len(message(checked_integer, "x", np.zeros((50, 50)))) < 200
    assert message(checked_choice, "x", "a\nb", ["c"]) == "unknown x 'a\\nb'; choose from: c"
    message(checked_choice, "x", np.array(["a", "b"]), ["a"])


def test_a_limit_is_said_with_the_number():
    assert checked_integer("--starts", 10_000, 1, 10_000) == 10_000
    assert message(checked_integer, "--starts", 10**9, 1, 10_000) == "--starts must be at most 10,000, not 1000000000"


@FEW
@given(st.floats(1e-100, 1e100))
def test_what_is_measured_can_be_squared_and_divided_by(value):
    assert checked_positive("sigma", value) == value
    assert 0 < value * value < math.inf
    assert 0 < 1 / value / value < math.inf


@pytest.mark.parametrize("value", [0, -1.0, 1e300, 1e-300, 1e308, math.inf, math.nan, "1", None, 10**400])
def test_what_is_not_is_refused(value):
    assert message(checked_positive, "sigma", value).startswith("sigma must be ")
