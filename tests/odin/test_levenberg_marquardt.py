"""The loop of all searches: it ends at least-squares solutions, moves its damping as it says, and ends when it says."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import least_squares

from odinfer.optimize.levenberg_marquardt import (
    Rule,
    blocked_by_bounds,
    corner,
    damped_step,
    full_hessian,
    levenberg_marquardt,
    secant_update,
)

FEW = settings(max_examples=25, derandomize=True, deadline=None)
COORDINATE = st.floats(-2.0, 2.0)
PLACES = st.lists(st.tuples(COORDINATE, COORDINATE), min_size=1, max_size=5)


class Place(NamedTuple):
    """x (..., 2), and the sum of squares there (...)."""

    x: np.ndarray
    value: np.ndarray


class Valley:
    """Residuals 10 (y − x²), b − x and y/2: a bent valley as Rosenbrock's with one minimum, which is not zero."""

    def __init__(self, b: float = 1.0) -> None:
        self.b = b
        self.damping: list[np.ndarray] = []
        self.better: list[np.ndarray] = []
        self.gains: list[np.ndarray] = []
        self.values: list[np.ndarray] = []

    def residual(self, x):
        return np.stack([10.0 * (x[..., 1] - x[..., 0] ** 2), self.b - x[..., 0], 0.5 * x[..., 1]], -1)

    def at(self, x) -> Place:
        x = np.asarray(x, float)
        return Place(x, (self.residual(x) ** 2).sum(-1))

    def propose(self, here: Place, damping):
        self.damping.append(np.array(damping))
        J = np.zeros((*here.x.shape[:-1], 3, 2))
        J[..., 0, 0], J[..., 0, 1], J[..., 1, 0], J[..., 2, 1] = -20.0 * here.x[..., 0], 10.0, -1.0, 0.5
        H = np.swapaxes(J, -1, -2) @ J
        H = H + np.asarray(damping)[..., None, None] * H * np.eye(2)
        g = np.swapaxes(J, -1, -2) @ self.residual(here.x)[..., None]
        trial = self.at(here.x - np.linalg.solve(H, g)[..., 0])
        return trial, trial.value < here.value

    def settles(self, better, gain, here: Place, damping):
        self.better.append(np.array(better))
        self.gains.append(np.array(gain))
        self.values.append(np.array(here.value))
        return np.asarray(better & np.isfinite(gain) & (gain <= 1e-14 * (1.0 + here.value)))

    def search(self, start, **rule):
        merge = (lambda old, new, better: new if better else old) if np.ndim(start) == 1 else side_by_side
        return levenberg_marquardt(self.at(start), self.propose, self.settles, Rule(**{"tries": 1000} | rule), merge)

    def right(self, start):
        return least_squares(self.residual, start, xtol=1e-14, ftol=1e-14, gtol=1e-14).x


def side_by_side(old: Place, new: Place, better) -> Place:
    return Place(np.where(better[:, None], new.x, old.x), np.where(better, new.value, old.value))


@FEW
@given(start=st.tuples(COORDINATE, COORDINATE), b=st.floats(-2.0, 2.0))
def test_a_search_ends_at_the_least_squares_solution_of_scipy(start, b):
    valley = Valley(b)
    ended = valley.search(start)
    assert ended.settled
    np.testing.assert_allclose(ended.point.x, valley.right(start), atol=1e-5)


@FEW
@given(starts=PLACES)
def test_searches_side_by_side_all_end_there(starts):
    ended = Valley().search(np.array(starts))
    assert ended.settled.all()
    np.testing.assert_allclose(ended.point.x, np.tile(Valley().right([1.0, 1.0]), (len(starts), 1)), atol=1e-5)


@FEW
@given(starts=PLACES)
def test_a_batch_that_leaves_the_settled_gives_what_each_alone_gives(starts):
    ended = Valley().search(np.array(starts), leave=True)
    alone = [Valley().search(start, leave=True) for start in starts]
    np.testing.assert_allclose(ended.point.x, [a.point.x for a in alone], rtol=1e-10, atol=1e-12)
    assert ended.tries == max(a.tries for a in alone)


@FEW
@given(starts=PLACES, leave=st.booleans())
def test_values_never_rise_and_gains_are_what_they_fell_by(starts, leave):
    valley = Valley()
    start = valley.at(np.array(starts))
    valley.search(start.x, leave=leave)
    values = np.stack([start.value, *valley.values])
    assert (np.diff(values, axis=0) <= 0).all()
    np.testing.assert_allclose(np.stack(valley.gains), -np.diff(values, axis=0), atol=1e-12 * (1 + values.max()))


@FEW
@given(start=st.tuples(COORDINATE, COORDINATE), down=st.floats(0.05, 0.9), up=st.floats(1.5, 20.0))
def test_success_lowers_the_damping_down_to_the_least_and_failure_raises_it(start, down, up):
    valley = Valley()
    valley.search(start, damping=1e-2, down=down, up=up, least=1e-5, tries=30)
    assert valley.damping[0] == 1e-2
    for before, better, after in zip(valley.damping, valley.better, valley.damping[1:], strict=False):
        assert after == pytest.approx(max(before * down, 1e-5) if better else before * up)


@pytest.mark.parametrize("limit", [0, 1, 4])
def test_at_most_so_many_steps_are_taken_and_so_many_tried(limit):
    taken, tried = Valley().search([-1.2, 1.0], steps=limit), Valley().search([-1.2, 1.0], tries=limit)
    assert taken.steps == limit <= taken.tries
    assert tried.tries == limit >= tried.steps
    assert not taken.settled
    assert not tried.settled
    if not limit:
        np.testing.assert_array_equal(taken.point.x, [-1.2, 1.0])


def test_where_no_step_is_better_a_search_is_stuck_once_its_damping_is_too_high():
    valley = Valley()
    start = valley.at([0.3, 0.7])

    def propose(here, damping):
        return valley.propose(here, damping)[0], False

    rule = Rule(damping=1.0, up=2.0, most=100.0)
    ended = levenberg_marquardt(start, propose, lambda *_: False, rule)
    assert ended.point is start
    assert (ended.steps, ended.tries) == (0, 7)  # 2⁷ is the first above 100
    assert ended.stuck
    assert ended.settled
    assert not Valley().search([0.3, 0.7], steps=1).stuck


def test_the_search_ends_once_enough_have_settled():
    there = Valley().search([1.0, 1.0]).point.x
    starts = np.array([there, there, there, [-1.9, -1.9]])
    most, every = (Valley().search(starts, enough=share, leave=True) for share in (0.75, 1.0))
    assert most.settled.tolist() == [True, True, True, False]
    assert every.settled.all()
    assert most.tries < every.tries
    assert np.linalg.norm(most.point.x[3] - there) > 0.1
    np.testing.assert_allclose(every.point.x[3], there, atol=1e-5)


def test_searches_that_are_left_have_no_damping_any_more():
    valley = Valley()
    starts = np.array([Valley().search([1.0, 1.0]).point.x, [-1.9, -1.9]])
    valley.search(starts, leave=True)
    damping = np.stack(valley.damping)
    gone = np.isnan(damping[:, 0])
    assert not gone[0]
    assert gone[-1]
    assert (np.diff(gone.astype(int)) >= 0).all()
    assert not np.isnan(damping[:, 1]).any()
    carried = Valley()
    carried.search(starts)
    assert not np.isnan(np.stack(carried.damping)).any()


def test_a_search_leaves_a_place_where_nothing_is_finite():
    valley = Valley()

    def propose(here, damping):
        valley.damping.append(damping)
        if np.isfinite(here.value):
            return valley.propose(here, damping)
        trial = Place(here.x + 1.0, np.inf) if here.x[0] < -2.0 else valley.at([1.5, 1.5])
        return trial, True

    ended = levenberg_marquardt(Place(np.array([-3.0, 0.0]), np.inf), propose, valley.settles, Rule())
    assert valley.gains[:2] == [np.inf, np.inf]  # from nowhere to nowhere, and from nowhere to somewhere
    np.testing.assert_allclose(ended.point.x, valley.right([1.5, 1.5]), atol=1e-5)


@FEW
@given(
    at=st.lists(st.sampled_from([-1.0, 0.3, 2.0]), min_size=1, max_size=6),
    seed=st.integers(0, 1000),
    open_below=st.booleans(),
)
def test_what_is_pushed_out_is_exactly_what_a_step_downhill_cannot_move(at, seed, open_below):
    at = np.array(at)
    gradient = np.random.default_rng(seed).choice([-1.5, 0.0, 0.7], len(at))
    low, high = np.full(len(at), -np.inf if open_below else -1.0), np.full(len(at), 2.0)
    held = blocked_by_bounds(at, gradient, low, high)
    moves = np.clip(at - 1e-3 * gradient, low, high) != at
    np.testing.assert_array_equal(held, ~moves & (gradient != 0))


UNITS = st.lists(st.floats(-12.0, 12.0), min_size=3, max_size=3)


def normal_equations(units: list[float]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """H (3, 3) and g (3,) of a linear fit whose unknowns are in other units, and the units."""
    rng, u = np.random.default_rng(0), 10.0 ** np.array(units)
    J, r = rng.normal(size=(9, 3)) / u, rng.normal(size=9)
    return J.T @ J, J.T @ r, u


@FEW
@given(units=UNITS, damping=st.floats(0.0, 10.0))
def test_damped_steps_do_not_depend_on_units(units, damping):
    H, g, _ = normal_equations([0.0, 0.0, 0.0])
    H_other, g_other, u = normal_equations(units)
    plain = np.linalg.solve(H + damping * np.diag(np.diag(H)), -g)
    found = damped_step(np.stack([H_other, H]), np.stack([g_other, g]), np.full(2, damping))
    np.testing.assert_allclose(found[0] / u, plain, rtol=1e-9)
    np.testing.assert_allclose(found[1], plain, rtol=1e-9)


def test_unknowns_that_change_nothing_stay_and_do_not_keep_others_from_moving():
    H, g, _ = normal_equations([0.0, 9.0, 0.0])
    H[2], H[:, 2], g[2] = 0.0, 0.0, 0.0
    step = damped_step(H[None], g[None], np.zeros(1))[0]
    assert step[2] == 0.0
    np.testing.assert_allclose(H[:2, :2] @ step[:2], -g[:2], rtol=1e-9)


@FEW
@given(units=UNITS)
def test_what_is_left_of_normal_equations_is_solved_in_any_units(units):
    H, g, u = normal_equations(units)
    np.testing.assert_allclose(corner(H, -g, np.diag(H)), np.linalg.solve(H * np.outer(u, u), -g * u) * u, rtol=1e-9)


def test_what_rounding_has_left_of_an_indifferent_parameter_does_not_move_the_others():
    S = np.diag([2.0, -1e-17])
    found = corner(S, np.array([4.0, 0.0]), np.array([2.0, 1.0]))
    np.testing.assert_allclose(found, [2.0, 0.0])
    assert corner(np.empty((0, 0)), np.empty(0), np.empty(0)).shape == (0,)


def random_hessians(seed: int, P: int) -> tuple[np.ndarray, np.ndarray, np.random.Generator]:
    """A Gauss–Newton Hessian, what it leaves out (the sum being positive definite), and a source of numbers."""
    rng = np.random.default_rng(seed)
    A, B = rng.normal(size=(2, P, P))
    H, S = A @ A.T + 0.1 * np.eye(P), 0.5 * (B + B.T)
    S *= 0.5 * np.linalg.eigvalsh(H)[0] / np.abs(np.linalg.eigvalsh(S)).max()
    return H, S, rng


@given(st.integers(0, 10_000), st.integers(2, 5))
def test_what_is_learnt_explains_the_last_step(seed, P):
    H, S, rng = random_hessians(seed, P)
    s = rng.normal(size=P)
    found = secant_update(np.zeros((1, P, P)), H[None], s[None], ((H + S) @ s)[None])[0]
    np.testing.assert_allclose((H + found) @ s, (H + S) @ s, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(found, found.T, atol=1e-12)


def test_a_step_against_the_curvature_teaches_nothing():
    H = np.eye(2)[None]
    before = np.diag([0.1, 0.2])[None]
    s = np.array([[1.0, 0.0]])
    found = secant_update(before, H, s, -s)
    np.testing.assert_array_equal(found != 0, before != 0)


def test_a_sum_that_is_not_positive_definite_is_left_to_gauss_newton():
    H = np.stack([np.eye(2), np.eye(2), np.eye(2)])
    S = np.stack([-2.0 * np.eye(2), 0.5 * np.eye(2), np.full((2, 2), np.nan)])
    found = full_hessian(H, S)
    np.testing.assert_array_equal(found, [np.eye(2), 1.5 * np.eye(2), np.eye(2)])
    assert full_hessian(H, np.zeros((3, 2, 2))) is H
