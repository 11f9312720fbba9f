"""Grids between observations: they hold the observed times exactly, in order, and evenly many points in every gap."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from odinfer.gp.grids import KEPT, dense_times, finer_grid, thinned

FEW = settings(max_examples=25, deadline=None)
TIMES = st.lists(st.integers(-1000, 1000), min_size=1, max_size=30, unique=True).map(lambda t: np.sort(t) / 8.0)


@FEW
@given(TIMES, st.integers(0, 6))
def test_observed_times_stand_in_the_finer_grid_where_it_says(t, points):
    grid, at = finer_grid(t, points)
    np.testing.assert_array_equal(grid[at], t)
    assert len(grid) == (len(t) - 1) * max(points, 1) + 1
    assert (np.diff(grid) > 0).all()


@FEW
@given(TIMES.filter(lambda t: len(t) > 1), st.integers(2, 6))
def test_the_points_of_a_finer_grid_share_each_gap_evenly(t, points):
    grid, _ = finer_grid(t, points)
    np.testing.assert_allclose(np.diff(grid).reshape(-1, points), np.diff(t)[:, None] / points * np.ones(points))


@FEW
@given(TIMES)
def test_dense_times_hold_the_given_ones_and_evenly_many_between_them(t):
    dense = dense_times(t)
    assert (np.diff(dense) > 0).all()
    assert np.isin(t, dense).all()
    if len(t) > 1:
        inside = np.histogram(dense[:-1], t)[0]
        assert (inside == inside[0]).all()
        assert 200 < len(dense) <= 200 + len(t)


def test_times_that_are_many_already_are_only_halved():
    t = np.arange(1000.0)
    np.testing.assert_array_equal(dense_times(t), np.arange(1998 + 1) / 2)


def test_one_time_is_its_own_grid():
    for t in (np.array([3.0]),):
        assert dense_times(t).tolist() == finer_grid(t, 5)[0].tolist() == [3.0]
        assert finer_grid(t, 5)[1].tolist() == [0]


@FEW
@given(st.integers(0, 10_000))
def test_thinned_places_are_even_and_have_both_ends(count):
    some = thinned(count)
    assert len(some) == min(count, KEPT)
    if count > 1:
        assert (some[0], some[-1]) == (0, count - 1)
        assert np.ptp(np.diff(some)) <= 2
