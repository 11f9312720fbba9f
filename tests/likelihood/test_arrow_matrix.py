"""Matrices of many experiments that share parameters: everything as dense algebra has it, whatever the structure."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odinfer as od
from odinfer.likelihood.likelihood import Likelihood
from odinfer.optimize import arrow_matrix
from odinfer.optimize.arrow_matrix import ArrowMatrix, among, quadratic

FEW = settings(max_examples=25, derandomize=True, deadline=None)
SEEDS = st.integers(0, 2**32 - 1)
SIZES = {"E": st.integers(1, 5), "n": st.integers(1, 3), "C": st.integers(1, 4)}


def arrow(seed: int, B: int = 2, E: int = 4, n: int = 2, C: int = 3, blind: bool = False) -> ArrowMatrix:
    """Positive definite ones, of sensitivities of a dozen observations in each experiment."""
    rng = np.random.default_rng(seed)
    H = ArrowMatrix(np.zeros((B, E, n, n)), np.zeros((B, E, n, C)), np.zeros((B, C, C)))
    for e in range(E):
        J = rng.normal(size=(B, 12, n + C))
        if blind:
            J[..., -1] = J[..., -2]
            J[..., 0] *= e != 0
        H.add(e, np.append(np.arange(e * n, (e + 1) * n), E * n + np.arange(C)), np.swapaxes(J, 1, 2) @ J)
    return H


@FEW
@given(seed=SEEDS, **SIZES)
def test_operations_are_those_of_dense_matrices(seed, E, n, C):
    H, rng = arrow(seed, 2, E, n, C), np.random.default_rng(seed)
    D, P = H.dense(), E * n + C
    v, right, last = rng.normal(size=(2, P)), rng.normal(size=(2, P, 3)), rng.normal(size=2)
    np.testing.assert_array_equal(H.diagonal, np.einsum("bii->bi", D))
    np.testing.assert_allclose(H.times(v).dense(), D * v[:, :, None] * v[:, None])
    np.testing.assert_allclose(H.plus(v).dense(), D + v[:, :, None] * np.eye(P))
    np.testing.assert_allclose(H.solve(right), np.linalg.solve(D, right), rtol=1e-6, atol=1e-9)
    larger = np.concatenate([np.concatenate([D, v[:, None]], 1), np.append(v, last[:, None], 1)[..., None]], 2)
    np.testing.assert_array_equal(H.within(v, last).dense(), larger)
    np.testing.assert_array_equal(ArrowMatrix.join([H, H]).dense(), np.concatenate([D, D]))
    np.testing.assert_allclose(H.sum(np.array([2.0, 3.0]), H).dense()[0], 2 * D[0] + 3 * D[1] + D[0])
    for mine, own in zip(H.matrices(), D, strict=True):
        np.testing.assert_allclose(np.asarray(mine), own, atol=1e-12)
    assert H.finite.all()
    assert not H.plus(np.where(np.arange(P) == P - 1, np.nan, v)).finite.any()


@FEW
@given(seed=SEEDS, **SIZES)
def test_blocks_plus_low_rank_add_and_multiply(seed, E, n, C):
    H = arrow(seed, 2, E, n, C)
    (X, Y), (A, B) = H.matrices(), H.dense()
    for mine, own in ((X @ Y, A @ B), ((X @ Y).T, (A @ B).T), (X + 2.0 * Y, A + 2 * B), (X - Y @ X, A - B @ A)):
        size = np.abs(own).max()
        np.testing.assert_allclose(np.asarray(mine), own, atol=1e-12 * size)
        assert mine.trace() == pytest.approx(np.trace(own), abs=1e-9 * size)
        a = np.random.default_rng(seed).normal(size=(2, 3, len(A)))
        np.testing.assert_allclose(quadratic(mine, a), quadratic(own, a), atol=1e-9 * size)
        places = np.array([0, E * n - 1, E * n, 0])
        np.testing.assert_allclose(among(mine, places), among(own, places), atol=1e-12 * size)


@FEW
@given(seed=SEEDS, **SIZES)
def test_inverses_are_those_of_dense_matrices(seed, E, n, C):
    H = arrow(seed, 1, E, n, C)
    found, flat = H.inverse()
    np.testing.assert_allclose(np.asarray(found), np.linalg.inv(H.dense()[0]), rtol=1e-6, atol=1e-9)
    assert flat.shape == (E * n + C, 0)


@FEW
@given(seed=SEEDS)
def test_directions_in_which_nothing_is_known_are_left_out(seed):
    H = arrow(seed, 1, blind=True)
    D = H.dense()[0]
    found, flat = H.inverse()
    assert flat.shape == (11, 2)
    np.testing.assert_allclose(D @ flat, 0.0, atol=1e-9 * np.abs(D).max())
    X = np.asarray(found)
    np.testing.assert_allclose(D @ X @ D, D, atol=1e-9 * np.abs(D).max())
    right = ArrowMatrix.from_dense(D[None]).inverse()[1]
    np.testing.assert_allclose(right @ np.linalg.lstsq(right, flat)[0], flat, atol=1e-6)


@FEW
@given(seed=SEEDS)
def test_the_weakest_directions_are_eigenvectors(seed):
    H = arrow(seed, 1, E=8)
    w, V = H.weakest(2)
    D = H.dense()[0]
    np.testing.assert_allclose(w, np.linalg.eigvalsh(D)[:2], rtol=1e-5)
    np.testing.assert_allclose(D @ V, V * w, atol=1e-3 * np.abs(D).max())


@FEW
@given(seed=SEEDS, hold=st.booleans())
def test_steps_are_those_of_dense_equations(lv, seed, hold):
    data = od.Data.join({str(e): lv.sample(0.1, e) for e in range(4)})
    likelihood = Likelihood(od.Problem(lv.model, data, positive=True), np.ones(2))
    rng, P = np.random.default_rng(seed), likelihood.unknowns.size
    H, g = arrow(seed, 3, 4, 2, 4), rng.normal(size=(3, P))
    at = np.maximum(rng.normal(size=(3, P)), 0.0)
    more = (rng.normal(size=(3, P)), rng.normal(size=3)) if hold else ()
    found, right = (likelihood.step(at, m, g, np.full(3, 1e-3), *more) for m in (H, ArrowMatrix.from_dense(H.dense())))
    for mine, other in zip(found, right, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-6, atol=1e-8)


def test_what_is_no_number_is_forgotten(lv):
    H = arrow(0, 2)
    H.own[1, 0] = np.nan
    found = H.without_rows(np.flatnonzero(~H.finite)).solve(np.ones((2, 11, 1)))
    np.testing.assert_array_equal(found[1], 1.0)
    np.testing.assert_allclose(H.dense()[0] @ found[0], 1.0)


def test_a_fit_of_many_experiments_is_the_same_by_blocks(lv, monkeypatch):
    data = od.Data.join({f"e{e}": lv.sample(0.2, e, t=np.linspace(0, 2, 9)) for e in range(6)})
    problem = od.Problem(lv.model, data, positive=False)
    whole = od.fit(problem)
    monkeypatch.setattr(arrow_matrix, "FEW", 0)
    found = od.fit(problem)
    assert found.maximum().refined.information.own.shape[:2] == (1, 6)
    for name, (low, high) in whole.interval().items():
        np.testing.assert_allclose(found.interval()[name], (low, high), rtol=1e-6)
        assert found.theta[name] == pytest.approx(whole.theta[name], rel=1e-8)
    np.testing.assert_allclose(found.covariance, whole.covariance, rtol=1e-5, atol=1e-9)
    for name, e in whole.experiments.items():
        np.testing.assert_allclose(found.experiments[name].curve.sd, e.curve.sd, rtol=1e-5)
    late = np.array([2.5])
    np.testing.assert_allclose(found.forecast(late, "e3"), whole.forecast(late, "e3"), rtol=1e-5)
