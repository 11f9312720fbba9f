"""Steps stay within bounds and what is trusted, and lower the model as they say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odinfer.optimize.arrow_matrix import ArrowMatrix
from odinfer.optimize.trust_region_step import trust_region_step

INF = np.full(4, np.inf)


def random(seed, B=3, P=4):
    rng = np.random.default_rng(seed)
    J = rng.normal(size=(B, 6, P)) * 10.0 ** rng.uniform(-3, 3, P)
    return rng, np.swapaxes(J, 1, 2) @ J, (np.swapaxes(J, 1, 2) @ rng.normal(size=(B, 6, 1)))[..., 0]


def test_far_from_everything_a_step_is_newtons():
    _, H, g = random(0)
    move, fall = trust_region_step(
        np.zeros((3, 4)), ArrowMatrix.from_dense(H), g, -INF, INF, np.ones((3, 4)), np.full(3, 1e9)
    )
    np.testing.assert_allclose(move, -np.linalg.solve(H, g[..., None])[..., 0], rtol=1e-6)
    np.testing.assert_allclose(fall, -0.5 * (g * move).sum(1), rtol=1e-6)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.floats(1e-3, 10.0))
def test_steps_keep_to_bounds_and_radius_and_lower_the_model(seed, radius):
    rng, H, g = random(seed)
    unit = 10.0 ** rng.uniform(-1, 1, (3, 4))
    low, high = -rng.uniform(0, 2, 4), rng.uniform(0, 2, 4)
    at = rng.uniform(low, high, (3, 4))
    at[0, 0], at[1, 1] = low[0], high[1]
    move, fall = trust_region_step(at, ArrowMatrix.from_dense(H), g, low, high, unit, np.full(3, radius))
    assert (at + move >= low - 1e-12).all()
    assert (at + move <= high + 1e-12).all()
    assert (np.sqrt(((move / unit) ** 2).sum(1)) <= 1.5 * radius).all()
    model = (g * move).sum(1) + 0.5 * (move * (H @ move[..., None])[..., 0]).sum(1)
    np.testing.assert_allclose(fall, -model, rtol=1e-6, atol=1e-9 * np.abs(model).max())


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_without_bounds_no_random_step_of_that_length_is_better(seed):
    rng, H, g = random(seed)
    _, fall = trust_region_step(
        np.zeros((3, 4)), ArrowMatrix.from_dense(H), g, -INF, INF, np.ones((3, 4)), np.full(3, 0.5)
    )
    other = rng.normal(size=(200, 3, 4))
    other *= 0.5 / np.linalg.norm(other, axis=-1, keepdims=True)
    worth = -np.einsum("nbi,bi->nb", other, g) - 0.5 * np.einsum("nbi,bij,nbj->nb", other, H, other)
    assert (worth <= fall * (1 + 1e-6) + 1e-12).all()


def test_an_unknown_that_pushes_out_of_its_bounds_stays_and_others_move():
    H, g = np.eye(2)[None], np.array([[1.0, 1.0]])
    move, _ = trust_region_step(
        np.zeros((1, 2)),
        ArrowMatrix.from_dense(H),
        g,
        np.array([0.0, -9.0]),
        np.full(2, 9.0),
        np.ones((1, 2)),
        np.full(1, 5.0),
    )
    np.testing.assert_allclose(move, [[0.0, -1.0]])


def test_where_numbers_overflow_there_is_no_step_and_others_take_theirs():
    _, H, g = random(1)
    unit = np.ones((3, 4))
    alone, _ = trust_region_step(np.zeros((3, 4)), ArrowMatrix.from_dense(H), g, -INF, INF, unit, np.full(3, 2.0))
    unit[1, 0], H[2, 0, 0] = 1e200, np.nan
    move, fall = trust_region_step(np.zeros((3, 4)), ArrowMatrix.from_dense(H), g, -INF, INF, unit, np.full(3, 2.0))
    np.testing.assert_allclose(move[0], alone[0])
    assert not move[1:].any()
    assert not fall[1:].any()


@pytest.mark.parametrize("radius", [1e-2, 1.0, 1e9])
def test_unknowns_in_sets_that_do_not_meet_lead_to_the_same_steps(radius):
    rng, sets, size, more = np.random.default_rng(3), 20, 3, 4
    P = sets * size + more
    J = np.zeros((2, sets, 5, P))
    for i in range(sets):
        J[:, i, :, i * size : (i + 1) * size] = rng.normal(size=(2, 5, size))
        J[:, i, :, -more:] = rng.normal(size=(2, 5, more))
    J = J.reshape(2, -1, P)
    H, g = np.swapaxes(J, 1, 2) @ J, (np.swapaxes(J, 1, 2) @ rng.normal(size=(2, J.shape[1], 1)))[..., 0]
    low, high, unit = np.full(P, -0.5), np.full(P, np.inf), np.ones((2, P))
    blocks, n = np.stack([H[:, i : i + size, i : i + size] for i in range(0, P - more, size)], 1), sets * size
    arrow = ArrowMatrix(blocks, H[:, :n, n:].reshape(2, sets, size, more), H[:, n:, n:])
    parts = g, low, high, unit, np.full(2, radius)
    move, fall = trust_region_step(np.zeros((2, P)), arrow, *parts)
    plain, as_much = trust_region_step(np.zeros((2, P)), ArrowMatrix.from_dense(H), *parts)
    np.testing.assert_allclose(fall, as_much, rtol=1e-2)
    np.testing.assert_allclose(move, plain, atol=1e-2 * np.abs(plain).max())
