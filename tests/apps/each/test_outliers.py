"""Who is unlike the rest: far from the median by the spread of all and by the own error, whatever the units."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odinfer.apps.each.outliers import FEWEST, distances, unlike


def estimates(values, half: float = 0.05):
    return [(v, v - half, v + half) for v in values]


def drawn(seed: int = 0, count: int = 200):
    return np.random.default_rng(seed).normal(3.0, 0.1, size=count)


def test_series_that_are_alike_are_not_named_and_those_far_away_are_the_farthest_first():
    values = drawn()
    assert unlike({"a": dict(enumerate(estimates(values)))}) == {}
    values[[7, 9]] = 5.0, 9.0
    alike = dict(enumerate(estimates(drawn(1))))
    assert unlike({"a": dict(enumerate(estimates(values))), "b": alike}) == {9: ("a",), 7: ("a",)}


def test_about_one_set_of_alike_series_in_twenty_has_any_that_is_named():
    named = [bool(unlike({"a": dict(enumerate(estimates(drawn(seed))))})) for seed in range(400)]
    assert 0 < sum(named) < 0.12 * 400


def test_what_is_merely_unknown_is_not_unlike():
    table = estimates(drawn())
    table[3] = (9.0, -np.inf, np.inf)
    table[4] = (9.0, 2.0, 16.0)
    table[5] = (np.nan, np.nan, np.nan)
    assert unlike({"a": dict(enumerate(table))}) == {}


@pytest.mark.parametrize("values", [[1.0] * (FEWEST - 1) + [50.0], []])
def test_of_few_nothing_is_said(values):
    assert not distances(estimates(values[1:])).any()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0.1, 10.0), min_size=FEWEST, max_size=40), st.floats(1e-6, 1e6))
def test_units_do_not_matter(values, unit):
    one, other = distances(estimates(values, 0.0)), distances(estimates(np.array(values) * unit, 0.0))
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
