"""What is remembered of a likelihood are places that differ, and those nearby lead to a value."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from odinfer.uncertainty.profile_limits.start_archive import Pool

LEAST = np.array([1e-6, 1e-6, np.inf])
numbers = st.floats(-1e6, 1e6, allow_subnormal=False)


def pool(rows, values, most=np.inf):
    made = Pool(LEAST)
    made.add(np.array(rows, float).reshape(-1, 3), np.array(values, float), most)
    return made


@given(rows=st.lists(st.tuples(numbers, numbers, st.floats(-20, 20)), min_size=1, max_size=20), place=st.integers(0, 2))
def test_the_nearest_place_is_the_first(rows, place):
    made, goal = pool(rows, np.arange(len(rows))), 3.0
    scale = (lambda x: x) if place == 2 else (lambda x: np.arcsinh(x / 1e-6))
    away = np.abs(scale(made.v[:, place]) - scale(goal))
    found = made.near(place, goal, 4)
    assert 1 <= len(found) <= 4
    assert np.abs(scale(found[0, place]) - scale(goal)) == away.min()


def test_of_places_that_are_the_same_the_best_is_kept():
    made = pool([[1.0, 2.0, 3.0], [1.0001, 2.0, 3.0], [1.0, -2.0, 3.0]], [5.0, 4.0, 6.0])
    assert made.v.tolist() == [[1.0001, 2.0, 3.0], [1.0, -2.0, 3.0]]
    assert made.best(1).tolist() == [[1.0001, 2.0, 3.0]]


def test_places_that_are_alike_are_offered_once():
    made = pool([[1.0, 2.0, 3.0], [1.1, 2.1, 3.0], [1.2, 40.0, 3.0]], [0.0, 1.0, 2.0])
    assert made.near(0, 1.0, 3).tolist() == [[1.0, 2.0, 3.0], [1.2, 40.0, 3.0]]
    assert made.best(3).tolist() == [[1.0, 2.0, 3.0], [1.2, 40.0, 3.0]]


def test_what_is_too_low_or_not_finite_is_not_remembered():
    made = pool([[1.0, 2.0, 3.0], [2.0, 2.0, 3.0], [np.inf, 2.0, 3.0], [3.0, 2.0, 3.0]], [0.0, 7.0, 1.0, np.nan], 5.0)
    assert made.v.tolist() == [[1.0, 2.0, 3.0]]
    assert not len(pool([], []).near(0, 1.0, 3))
