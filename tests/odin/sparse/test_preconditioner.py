"""The blocks of the Hessian that are inverted, one per state: of Gaussian processes and of collocation formulas."""

import numpy as np
import pytest

from odin.sparse.many_states import diffusion, somewhere, sparse_risk
from odinfer.odin.sparse.conjugate_gradients import NormalEquations, Preconditioner
from odinfer.odin.sparse.preconditioner import BandedBlocks, DenseBlocks, Pairs
from odinfer.odin.sparse.risk import SparseRisk
from odinfer.search.continuation import group, mesh


def test_the_preconditioner_inverts_the_blocks_of_the_dense_hessian(both):
    risk, dense = both
    z, phi, gamma = somewhere(risk)
    lin, dense_lin = risk.linearise(z, phi), dense.linearise(z, phi)
    rng = np.random.default_rng(1)
    dz, dphi = rng.normal(size=z.shape), rng.normal(size=phi.shape)
    # γ is rounded in the preconditioner: at round values it is exact.
    gamma = np.exp(0.5 * np.round(2 * np.log(gamma / risk.v))) * risk.v
    right = dense.normal(z, dense_lin, dense.mismatch(z, dense_lin.f), gamma, phi)
    p = Preconditioner(NormalEquations.at(risk, lin, gamma, phi), 0.0)
    solved, _ = p.solve(dz, dphi)
    for b, H in zip(dense.blocks, right.H, strict=True):
        K, N = b.y.shape
        for k in range(K):
            block = H[k * N : (k + 1) * N, k * N : (k + 1) * N]
            expected = np.linalg.solve(block, dz[b.rows, k])
            np.testing.assert_allclose(solved[b.rows, k], expected, atol=2e-3 * np.abs(expected).max())
            np.testing.assert_allclose(p.diagonal[b.rows, k], np.diag(block), rtol=1e-8)


def collocated(risk: SparseRisk) -> SparseRisk:
    """The same problem held to a collocation formula instead of Gaussian processes."""
    grids, K = [], len(risk.v)
    for e in risk.problem.data.experiments:
        m = mesh(e.t, 1, risk.units.time)
        y = np.full((len(m.t), K), np.nan)
        y[m.rows] = risk.units.standard(e.y)
        mean = np.stack([np.interp(m.t, e.t, column) for column in y[m.rows].T], -1)
        grids.append((m.t, y, (group(m, K, 0.01),), mean))
    noise = np.array([h.noise for h in risk.hypers])
    return SparseRisk.build(risk.problem, risk.units, risk.hypers, grids, risk.field, noise)


@pytest.mark.parametrize("damping", [0.0, 0.3])
def test_blocks_of_a_collocation_formula_are_inverted_exactly(damping):
    risk = collocated(sparse_risk(diffusion()))
    z, phi, _ = somewhere(risk)
    normal = NormalEquations.at(risk, risk.linearise(z, phi), np.zeros(len(risk.v)), phi)
    p = Preconditioner(normal, damping)
    assert all(isinstance(b, BandedBlocks) for b in p.blocks)
    r = np.random.default_rng(2).normal(size=z.shape)
    solved = p.solve(r, phi)[0]
    for b in risk.blocks:
        k, rows = 3, np.arange(len(z))[b.rows]
        block = np.empty((len(rows), len(rows)))
        for j, row in enumerate(rows):
            unit = np.zeros_like(z)
            unit[row, k] = 1.0
            block[:, j] = normal.times(unit, 0.0 * phi)[0][b.rows, k]
        np.testing.assert_allclose(p.diagonal[b.rows, k], np.diag(block), rtol=1e-9)
        block += damping * np.diag(np.diag(block))
        np.testing.assert_allclose(solved[b.rows, k], np.linalg.solve(block, r[b.rows, k]), rtol=1e-7)


def test_blocks_of_gaussian_processes_are_dense(both):
    risk, _ = both
    z, phi, gamma = somewhere(risk)
    p = Preconditioner(NormalEquations.at(risk, risk.linearise(z, phi), gamma, phi), 0.0)
    assert all(isinstance(b, DenseBlocks) for b in p.blocks)
    assert np.vdot(z, p.solve(z, phi)[0]) > 0  # as conjugate gradients need it


def test_pairs_are_the_entries_of_the_derivatives_at_every_point(both):
    risk, _ = both
    z, phi, _ = somewhere(risk)
    lin, K = risk.linearise(z, phi), len(risk.v)
    pairs = Pairs.of(lin.fz, K)
    whole = lin.fz.toarray().reshape(len(z), K, len(z), K)
    for n in (0, len(z) - 1):
        found = np.zeros((K, K))
        found[pairs.rows, pairs.cols] = pairs.values[n]
        np.testing.assert_array_equal(found, whole[n, :, n])
