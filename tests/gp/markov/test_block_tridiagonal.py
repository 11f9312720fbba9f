"""Banded matrices: assembled, factored, solved and inverted as their full forms are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odinfer.gp.markov.block_tridiagonal import Factor, banded


def blocks(n: int, q: int, seed: int):
    """A positive definite block tridiagonal matrix: its blocks, and in full."""
    rng = np.random.default_rng(seed)
    L = np.zeros((n * q, n * q))
    for i in range(n):
        at = slice(i * q, i * q + q)
        L[at, at] = np.tril(rng.normal(size=(q, q))) + 3.0 * np.eye(q)
        if i:
            L[at, i * q - q : i * q] = rng.normal(size=(q, q))
    full = L @ L.T
    diagonal = np.stack([full[i * q : i * q + q, i * q : i * q + q] for i in range(n)])
    below = np.array([full[i * q : i * q + q, i * q - q : i * q] for i in range(1, n)]).reshape(-1, q, q)
    return diagonal, below, full


@given(st.integers(1, 6), st.integers(1, 4), st.integers(0, 1000))
def test_a_band_is_the_matrix_and_its_factor_solves_it(n, q, seed):
    diagonal, below, full = blocks(n, q, seed)
    factor = Factor.of(banded(diagonal, below), q)
    right = np.random.default_rng(seed).normal(size=(n * q, 2))
    np.testing.assert_allclose(factor.solve(right), np.linalg.solve(full, right), atol=1e-9)
    assert 2.0 * factor.log_diagonal.sum() == pytest.approx(np.linalg.slogdet(full)[1])
    inverse = np.linalg.inv(full)
    for i, mine in enumerate(factor.marginals()):
        np.testing.assert_allclose(mine, inverse[i * q : i * q + q, i * q : i * q + q], atol=1e-9)


def test_chains_without_ties_are_inverted_side_by_side():
    one, other = blocks(4, 2, 1), blocks(4, 2, 2)
    below = np.concatenate([one[1], np.zeros((1, 2, 2)), other[1]])
    factor = Factor.of(banded(np.concatenate([one[0], other[0]]), below), 2)
    np.testing.assert_allclose(factor.marginals(2), factor.marginals(), atol=1e-12)


def test_a_matrix_that_is_not_positive_definite_has_no_factor():
    diagonal, below, _ = blocks(3, 2, 0)
    assert Factor.of(banded(-diagonal, below), 2) is None
