"""Numbers, arrays and records become strict JSON and come back exactly."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from fits import assert_same, strict_json
from odinfer.result.formats.json_values import array, numbers, of_record, packed, record, unpacked

FEW = settings(max_examples=25, deadline=None)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
NAMES = st.text() | st.sampled_from(["$float", "$tuple", "$dict", "$array"])
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(NAMES, inner)
        | st.dictionaries(st.integers() | st.booleans(), inner)
    ),
    max_leaves=10,
)
ARRAYS = arrays(float, array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))


def through_a_file(content: Any) -> Any:
    return strict_json(json.dumps(content, allow_nan=False))


@FEW
@given(ANYTHING)
def test_what_is_packed_comes_back_exactly(value):
    assert_same(unpacked(through_a_file(packed(value))), value)


@FEW
@given(ARRAYS)
def test_arrays_come_back_with_their_shape_and_the_sign_of_zero(values):
    assert_same(array(through_a_file(numbers(values)), *values.shape), values)
    assert_same(unpacked(through_a_file(packed(values, arrays=True))), values)


def test_nan_is_null_and_an_infinity_a_word_in_whatever_holds_them():
    assert numbers([1.0, np.nan]) == [1.0, None]
    assert numbers({"a": -np.inf, "b": [[np.inf]]}) == {"a": "-inf", "b": [["inf"]]}
    assert numbers(np.nan) is None


@pytest.mark.parametrize(("values", "shape"), [([1.0, 2.0], (3,)), ([[1.0]], (1,)), ([], (2,)), (1.0, (1,))])
def test_an_array_of_another_shape_is_refused(values, shape):
    with pytest.raises(ValueError, match="instead of"):
        array(values, *shape)


def test_an_empty_array_takes_the_shape_that_it_should_have():
    assert array([], 0, 3).shape == (0, 3)


def test_numbers_of_numpy_become_plain_and_unknown_objects_text():
    assert_same(packed({"n": np.int64(3), "x": np.float64(2.0), "v": np.arange(2)}), {"n": 3, "x": 2.0, "v": [0, 1]})
    assert packed(Path("a") / "b") == "a/b"


@dataclass(frozen=True)
class Example:
    name: str
    values: np.ndarray
    by_name: dict[str, Any]
    limits: tuple[float, float]


@FEW
@given(ARRAYS, st.dictionaries(st.text(), ARRAYS))
def test_a_record_comes_back_as_what_it_was(values, by_name):
    example = Example("x", values, by_name, (0.0, np.inf))
    assert_same(of_record(Example, through_a_file(record(example))), example)


def test_no_record_is_nothing():
    assert of_record(Example, None) is None
