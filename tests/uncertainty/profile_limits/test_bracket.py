"""The way to an end is asked for where it must be, and ends where the fall is right, whatever lies in between."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odinfer.uncertainty.profile_limits.bracket import Point, Way, between, going_on, share

BEST = np.zeros(1)


def walked(fall, first=(0.1, 1.0, 10.0, 100.0), limit=100.0, rounds=40):
    """The way from 0 to a limit, asked until nothing is left, where the share of the fall is a function of distance."""
    way, goals = Way(0, 1.0, 2.0, 0.0, limit, np.inf, 0.02, [Point(0.0, 0.0, BEST)]), list(first)
    for i in range(rounds):
        for d in goals:
            way.add(d, 2.0 * fall(d), np.array([d]))
        goals = way.asks(i)
        if not goals:
            return way
    raise AssertionError("there is always something left to ask")


@given(end=st.floats(1e-3, 90.0), power=st.floats(0.5, 6.0))
def test_an_end_is_where_the_fall_is_right(end, power):
    way = walked(lambda d: (d / end) ** power)
    assert (way.end.distance / end) ** power == pytest.approx(1.0, abs=0.021)


@given(end=st.floats(5.0, 90.0))
def test_an_end_that_is_steep_and_far_from_the_estimate_is_found(end):
    way = walked(lambda d: max(0.0, 1.0 + (d - end) / (0.01 * end)))
    assert way.end.distance == pytest.approx(end, rel=3e-4)


@given(decades=st.floats(0.3, 5.0))
def test_an_end_magnitudes_below_the_estimate_is_found(decades):
    end = 10.0**-decades
    way = Way(0, -1.0, 2.0, 1.0, -1e4, 1e-6, 0.02, [Point(0.0, 0.0, BEST)])
    goals = [0.1, 0.3, 1.0, 2.0, 1e4]
    for i in range(40):
        for d in goals:
            way.add(d, 2.0 * (end / (1.0 - d) if d < 1.0 else np.inf), BEST)
        goals = way.asks(i)
    assert way.value(way.end.distance) == pytest.approx(end, rel=0.021)


def test_what_stays_inside_up_to_the_limit_is_open():
    way = walked(lambda d: 0.5 * d / (1.0 + d))
    assert (way.end.distance, way.value(way.end.distance)) == (100.0, 100.0)


@given(hole=st.floats(0.5, 50.0))
def test_a_single_value_that_no_trajectory_has_is_no_end(hole):
    way = walked(lambda d: np.inf if d == hole else 0.3, first=(0.1, hole, 2.0 * hole, 100.0))
    assert way.end.distance == 100.0


def test_a_barrier_is_an_end_though_all_is_inside_beyond_it():
    way = walked(lambda d: 4.0 * np.exp(-((d - 12.0) ** 2) / 8.0))
    assert 4.0 * np.exp(-((way.end.distance - 12.0) ** 2) / 8.0) == pytest.approx(1.0, abs=0.021)
    assert way.end.distance < 12.0


@given(place=st.floats(0.5, 40.0), width=st.floats(0.55, 0.9))
def test_a_barrier_about_as_wide_as_it_is_far_is_not_passed(place, width):
    def fall(d):
        return 0.3 + 2.0 * np.exp(-(((d - place) / (width * place)) ** 2))

    way = walked(fall)
    assert fall(way.end.distance) == pytest.approx(1.0, abs=0.021)
    assert way.end.distance < place


def test_two_sides_of_a_barrier_are_not_taken_for_one_level():
    way = walked(lambda d: (d / 4.0) ** 2 if d < 8.0 else 1.01 * 12.0 / d, first=(4.0, 12.0, 100.0))
    assert way.end.distance == pytest.approx(4.0, rel=0.01)


def test_where_the_likelihood_jumps_no_end_is_claimed():
    way = walked(lambda d: 0.2 if d < 7.0 else 50.0)
    assert way.end is None
    assert way.bracket[0].distance == pytest.approx(7.0, rel=0.011)


@given(factor=st.floats(0.1, 5.0))
def test_what_is_known_serves_other_levels(factor):
    way = walked(lambda d: (d / 9.0) ** 2)
    other = way.wanting(factor * way.half)
    assert [p.root**2 * factor for p in other.points] == pytest.approx([p.root**2 for p in way.points])
    assert other.half == pytest.approx(2.0 * factor)


def test_a_point_that_is_higher_replaces_one_at_the_same_distance_and_no_other():
    way = Way(0, 1.0, 2.0, 0.0, 10.0, np.inf, 0.02, [Point(0.0, 0.0, BEST)])
    for rise in (3.0, 1.0, 2.0):
        way.add(1.0, rise, BEST)
    assert [p.root**2 * 2.0 for p in way.points] == pytest.approx([0.0, 1.0])


def test_known_points_lead_the_way_to_those_between_and_beyond():
    one, two = np.array([1.0, 8.0, -1.0]), np.array([2.0, 2.0, 1.0])
    assert between(one, two, 0.5) == pytest.approx([1.5, 4.0, 0.0])
    assert share(1.0, 100.0, 10.0) == pytest.approx(0.5)
    assert share(1.0, 1.5, 2.0) == pytest.approx(2.0)


@given(a=st.floats(0.1, 10.0), c=st.floats(-5.0, 5.0), power=st.floats(-2.0, 2.0), value=st.floats(40.0, 1e6))
def test_unknowns_go_on_by_the_law_that_they_have_followed(a, c, power, value):
    """Sums that cancel, products of powers, and what stays the same, far beyond what is known."""

    def law(x):
        return np.array([x, c - x, -a * x**power, 3.0])

    sets = [law(x) for x in (5.0, 10.0, 20.0)]
    sets[1][2] *= -1.0  # of squares, both signs are as good
    np.testing.assert_allclose(going_on(*sets, 0, value, logs=False), law(value), rtol=1e-6, atol=1e-9 * value)


@given(a=st.floats(0.1, 10.0), c=st.floats(-5.0, 5.0), power=st.floats(-2.5, -0.5), value=st.floats(1e-4, 0.1))
def test_sums_that_cancel_are_kept_where_both_terms_go_by_powers(a, c, power, value):
    def law(x):
        return np.array([x, c - a * x**power, a * x**power, 3.0])

    found = going_on(*[law(x) for x in (2.0, 1.0, 0.5)], 0, value, logs=False)
    np.testing.assert_allclose(found[2], law(value)[2], rtol=1e-6)
    assert found[1] + found[2] == pytest.approx(c, abs=1e-6 + 1e-9 * found[2])


@given(a=st.floats(0.1, 10.0), rate=st.floats(-3.0, 3.0), value=st.floats(25.0, 60.0))
def test_what_falls_or_grows_by_factors_goes_on_so(a, rate, value):
    sets = [np.array([x, a * np.exp(rate * x), 3.0]) for x in (5.0, 10.0, 20.0)]
    assert going_on(*sets, 0, value, logs=False)[1] == pytest.approx(a * np.exp(rate * value), rel=0.02 * value)


@given(a=st.floats(0.1, 10.0), c=st.floats(-5.0, 5.0), power=st.sampled_from([-1, -2]), value=st.floats(1e-4, 0.1))
def test_beyond_a_pole_odd_powers_change_their_sign_and_even_ones_do_not(a, c, power, value):
    def law(x):
        return np.array([x, c - a * x**power, a * x**power, 3.0])

    found = going_on(*[law(x) for x in (0.4, 0.2, 0.1)], 0, -value, logs=False)
    np.testing.assert_allclose(found[2], law(-value)[2], rtol=1e-6)
    assert found[1] + found[2] == pytest.approx(c, abs=1e-6 + 1e-9 * abs(found[2]))


def test_points_beyond_a_pole_lead_the_way():
    def law(x):
        return np.array([x, 2.0 / x])

    way = Way(0, -1.0, 2.0, 1.0, -1e4, 1e-6, 0.02, [Point(0.0, 0.0, law(1.0))])
    for x in (0.3, 0.1, 0.03):
        way.add(1.0 - x, 0.1, law(x))
    assert any(np.allclose(v, law(-0.05), rtol=1e-3) for v in way.near(1.05))


def test_points_on_another_ridge_beyond_lead_back():
    def law(x):
        return np.array([x, 5.0 - x, 3.0 / x**2])

    way = Way(0, 1.0, 2.0, 1.0, 1e4, 1e-6, 0.02, [Point(0.0, 0.0, np.ones(3))])
    for x in (20.0, 40.0, 80.0):
        way.add(x - 1.0, 0.1, law(x))
    assert any(np.allclose(v, law(12.0), rtol=1e-3) for v in way.near(11.0))


@pytest.mark.parametrize("end", [-0.01, -0.2, -3.0, -40.0])
def test_an_interval_goes_on_behind_a_pole_to_where_the_likelihood_has_fallen(end):
    way = Way(0, -1.0, 2.0, 1.0, -1e4, 1e-6, 0.02, [Point(0.0, 0.0, np.array([1.0, 2.0]))])

    def fall(x):
        if x == 0.0:
            return 9.0
        # Far out all is inside once more.
        return 0.3 if x > 0 else min(0.3 + 0.7 * x / end, 0.3 + 2000.0 * np.exp(-abs(x / end)))

    goals = [0.1, 0.3, 1.0, 2.0, 10.0, 100.0, 1e3, 1e4]
    for i in range(60):
        for d in goals:
            x = way.value(d)
            way.add(d, 2.0 * fall(x), np.array([x, 2.0 / x if x else 2.0]))
        goals = way.asks(i)
    assert goals == []
    assert way.value(way.end.distance) == pytest.approx(end, rel=0.05)


def test_a_barrier_between_two_ridges_is_looked_for():
    """Points inside on either side of a barrier that no question has met, with other signs of two other unknowns."""

    def fall(d):
        return 0.3 + 3.0 * np.exp(-(((np.log(d) - np.log(12.5)) / 0.15) ** 2)) if d > 0 else 0.0

    way, goals = Way(0, 1.0, 2.0, 0.0, 100.0, np.inf, 0.02, [Point(0.0, 0.0, np.ones(3))]), [0.1, 1.0, 5.0, 100.0]
    for i in range(40):
        for d in goals:
            sign = 1.0 if d < 12.5 else -1.0
            way.add(d, 2.0 * fall(d), np.array([d, sign, 2.0 * sign]))
        goals = way.asks(i)
    assert fall(way.end.distance) == pytest.approx(1.0, abs=0.021)
    assert way.end.distance < 12.5


def test_beyond_a_change_of_sign_and_of_logs_unknowns_go_on_along_a_line():
    sets = [np.array([x, 2.0 * x + 1.0]) for x in (-2.0, -1.0, 1.0)]
    np.testing.assert_allclose(going_on(*sets, 0, 3.0, logs=False), [3.0, 7.0])
    np.testing.assert_allclose(going_on(*sets[:2], sets[2], 0, 4.0, logs=True), [4.0, 9.0])


def test_what_is_inside_down_to_nothing_ends_at_nothing_though_0_itself_has_no_trajectory():
    way = Way(0, -1.0, 2.0, 1.0, -1e4, 1e-6, 0.02, [Point(0.0, 0.0, BEST)])
    goals, rounds = [0.1, 0.3, 1.0, 2.0, 1e4], 0
    while goals:
        for d in goals:
            way.add(d, 2.0 * (0.3 if d < 1.0 else np.inf), np.array([1.0 - d]))
        goals, rounds = way.asks(rounds), rounds + 1
        assert rounds < 25
    assert way.end is None
    assert 0 <= way.value(way.nearly.distance) <= 1e-6


def test_where_searches_do_not_always_end_alike_an_end_is_found_all_the_same():
    rng = np.random.default_rng(0)
    way, goals, asked = Way(0, 1.0, 2.0, 0.0, 100.0, np.inf, 0.02, [Point(0.0, 0.0, BEST)]), [1.0, 10.0, 100.0], 0
    for i in range(40):
        for d in goals:
            way.add(d, 2.0 * (0.9 * (d / 7.0) ** 0.1 if d < 7.0 else 1.1 * rng.uniform(1.0, 1.3)), np.array([d]))
        asked, goals = asked + len(goals), way.asks(i)
    assert goals == []
    assert asked < 35
    assert (way.end or way.nearly).distance == pytest.approx(7.0, rel=2e-3)


def test_an_end_that_is_one_only_where_trajectories_were_not_found_is_lost():
    for blocked in (False, True):
        way = Way(0, 1.0, 2.0, 0.0, 100.0, np.inf, 0.02, [Point(0.0, 0.0, BEST)])
        way.add(1.0, 0.5, np.array([1.0]))
        way.add(3.0, 2.0, np.array([3.0]), blocked)
        way.add(9.0, 8.0, np.array([9.0]))
        assert way.end.distance == 3.0
        assert way.lost == blocked
        assert way.found.distance == (1.0 if blocked else 3.0)


def test_an_end_where_the_likelihood_falls_all_at_once_is_told_and_may_be_blocked():
    way = Way(0, 1.0, 2.0, 0.0, 100.0, np.inf, 0.02, [Point(0.0, 0.0, BEST)])
    way.add(5.0, 0.5, np.array([5.0]))
    way.add(5.001, 8.0, np.array([5.001]))
    assert way.jumps
    assert not way.lost
    way.block(way.bracket[1])
    assert way.lost
    smooth = walked(lambda d: (d / 9.0) ** 2)
    assert not smooth.jumps
