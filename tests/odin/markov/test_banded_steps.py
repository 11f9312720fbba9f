"""Steps by the banded matrix are those of dense algebra, with and without bounds, and so are the variances."""

import numpy as np
import pytest

from odin.markov.chains import both, two_experiments
from odinfer.odin.dense_engine import _posterior_sd
from odinfer.odin.gauss_newton import Solution, _dense_steps
from odinfer.odin.markov.banded_steps import Equations, steps


@pytest.mark.parametrize("bounded", [False, True])
def test_a_step_without_damping_is_the_dense_one(lv, bounded):
    states, parameters = lv.model.states, lv.model.parameters
    bounds = {states[0]: (0.0, 4.0), parameters[2]: (0.0, 3.0)} if bounded else {}
    dense, chains = both(two_experiments(lv, bounds=bounds))
    z = np.clip(dense.mean, *dense.z_bounds)
    phi, gamma = np.array([1.8, 1.1, 2.9, 0.9]), np.array([0.05, 0.3])
    lin = dense.linearise(z, phi)
    mine, moved, cut = steps(chains, z, lin, chains.mismatch(z, lin.f), gamma, phi)(0.0)
    other, moved_other, cut_other = _dense_steps(dense, z, lin, dense.mismatch(z, lin.f), gamma, phi)(0.0)
    np.testing.assert_allclose(mine, other, atol=1e-4 * np.abs(other).max())
    np.testing.assert_allclose(moved, moved_other, atol=1e-4 * np.abs(moved_other).max())
    assert cut == cut_other == bounded


def test_damping_shortens_a_step(lv):
    _, chains = both(two_experiments(lv))
    z, phi, gamma = chains.mean, np.ones(4), np.ones(2)
    lin = chains.linearise(z, phi)
    step = steps(chains, z, lin, chains.mismatch(z, lin.f), gamma, phi)
    sizes = [np.abs(step(damping)[0]).max() for damping in (0.0, 1.0, 1e3, 1e6)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < 1e-3 * sizes[0]


def test_variances_are_those_of_the_dense_hessian(lv):
    dense, chains = both(two_experiments(lv))
    z, phi, gamma = dense.mean, np.array([2.0, 1.0, 4.0, 1.0]), np.array([1e-3, 1e-2])
    lin = chains.linearise(z, phi)
    mine = Equations.at(chains, z, lin, chains.mismatch(z, lin.f), gamma, phi).variances()
    other = _posterior_sd(dense, Solution(z, phi, gamma, 0.0, 0, True)) ** 2
    np.testing.assert_allclose(mine, other, rtol=1e-3)
