"""Chains: their covariances are the kernels', at any times, for values and slopes."""

import numpy as np
import pytest

from odinfer.gp.evidence import Hyperparameters
from odinfer.gp.kernels import KERNELS, kernel
from odinfer.gp.markov.block_tridiagonal import Factor
from odinfer.gp.markov.state_space import Chain, order

SHAPES = {
    "matern32": (0.4,), "matern52": (0.6,), "matern72": (0.8,),
    "warped-matern32": (0.9, 0.3), "warped-matern52": (1.1, 0.2), "warped-matern72": (0.3, 2.0),
}  # fmt: skip


def hyper(name: str) -> Hyperparameters:
    return Hyperparameters(name, SHAPES[name], 1.0, 0.1, 0.0)


def precision(chain: Chain, k: int = 0) -> np.ndarray:
    """The precision of one process in full."""
    (diagonal, before), d = chain.blocks, chain.d
    M = diagonal.shape[1]
    full = np.zeros((M * d, M * d))
    for n in range(M):
        at = slice(n * d, n * d + d)
        full[at, at] = diagonal[k, n]
        if n:
            full[at, n * d - d : n * d], full[n * d - d : n * d, at] = before[k, n], before[k, n].T
    return full


@pytest.mark.parametrize("name", SHAPES)
def test_values_and_slopes_have_the_covariances_of_the_kernel(name):
    t = np.cumsum(np.random.default_rng(0).uniform(0.1, 0.5, 12)) - 0.1
    chain = Chain.of([hyper(name)], t, np.arange(12) == 0)
    covariance, d = np.linalg.inv(precision(chain)), chain.d
    slopes = np.zeros((12, 12 * d))
    for n in range(12):
        slopes[n, n * d : n * d + d] = chain.slope[0, n]
    g = kernel(name).gram(t, t, np.array(SHAPES[name]))
    np.testing.assert_allclose(covariance[::d, ::d], g.C, atol=1e-5)
    np.testing.assert_allclose(slopes @ covariance[:, ::d], g.dC, atol=1e-4)
    np.testing.assert_allclose(slopes @ covariance @ slopes.T, g.dCd, atol=1e-5 * np.abs(g.dCd).max())


def test_energies_and_determinants_are_those_of_the_precision():
    t, first = np.tile(np.linspace(0.0, 2.0, 5), 2), np.arange(10) % 5 == 0
    chain = Chain.of([hyper("matern52"), hyper("warped-matern52")], t, first)
    p = np.random.default_rng(1).normal(size=(2, 10, 3))
    for k in range(2):
        full = precision(chain, k)
        assert chain.energy(p)[k] == pytest.approx(p[k].ravel() @ full @ p[k].ravel())
        assert chain.logdet[k] == pytest.approx(np.linalg.slogdet(full)[1])
        assert not full[:15, 15:].any()  # experiments know nothing of each other
    band = chain.band(np.array([2.0, 0.5]))
    right = np.ones(60)
    full = np.zeros((60, 60))
    full[:30, :30], full[30:, 30:] = precision(chain, 0) / 2.0, precision(chain, 1) / 0.5
    np.testing.assert_allclose(Factor.of(band, 3).solve(right), np.linalg.solve(full, right), rtol=1e-6)


def test_only_matern_kernels_have_chains():
    assert {name for name in KERNELS if order(name) is not None} == set(SHAPES)
