"""Steps by conjugate gradients: of the dense Hessian, to the same minimum, with a preconditioner kept as it serves."""

import numpy as np
import pytest

from odin.sparse.many_states import dense_twin, diffusion, lorenz, somewhere, sparse_risk
from odinfer.odin.gamma import GammaRule
from odinfer.odin.gauss_newton import gauss_newton
from odinfer.odin.sparse.conjugate_gradients import Krylov, NormalEquations, Preconditioner, solve


def test_the_hessian_is_the_dense_one(both):
    risk, dense = both
    z, phi, gamma = somewhere(risk)
    lin, dense_lin = risk.linearise(z, phi), dense.linearise(z, phi)
    right = dense.normal(z, dense_lin, dense.mismatch(z, dense_lin.f), gamma, phi)
    normal = NormalEquations.at(risk, lin, gamma, phi)
    rng = np.random.default_rng(1)
    dz, dphi = rng.normal(size=z.shape), rng.normal(size=phi.shape)
    hz, hphi = normal.times(dz, dphi)
    total = right.H_phi @ dphi
    for b, H, border in zip(dense.blocks, right.H, right.border, strict=True):
        own = dz[b.rows].T.ravel()
        expected = (H @ own + border @ dphi).reshape(b.y.shape).T
        np.testing.assert_allclose(hz[b.rows], expected, rtol=1e-7, atol=1e-9 * np.abs(expected).max())
        total = total + border.T @ own
    np.testing.assert_allclose(hphi, total, rtol=1e-7)
    np.testing.assert_allclose(normal.phi_block().toarray(), right.H_phi, rtol=1e-8)


def test_conjugate_gradients_solve_the_damped_equations(both):
    risk, _ = both
    z, phi, gamma = somewhere(risk)
    normal = NormalEquations.at(risk, risk.linearise(z, phi), gamma, phi)
    p = Preconditioner(normal, 0.1)
    rng = np.random.default_rng(2)
    rz, rphi = rng.normal(size=z.shape), rng.normal(size=phi.shape)
    dz, dphi, _ = solve(normal, p, 0.1, rz.copy(), rphi.copy(), 1e-9, 2000)
    hz, hphi = normal.times(dz, dphi)
    np.testing.assert_allclose(hz + 0.1 * p.diagonal * dz, rz, atol=1e-4 * np.abs(rz).max())
    np.testing.assert_allclose(hphi + 0.1 * p.phi_diagonal * dphi, rphi, atol=1e-4 * np.abs(rphi).max())


@pytest.mark.parametrize("problem", [lambda: lorenz(10), lambda: lorenz(20, times=16), diffusion])
def test_the_minimum_is_that_of_the_dense_algebra(problem):
    risk = sparse_risk(problem())
    dense, phi = dense_twin(risk), np.full(len(risk.problem.free), 1.0)
    rule = GammaRule(fixed=1e-3)  # with γ learned there may be several minima
    right = gauss_newton(dense, risk.mean, phi, rule, tolerance=1e-11)
    found = gauss_newton(risk, risk.mean, phi, rule, tolerance=1e-11, steps=Krylov(1e-3, 300))
    assert found.converged
    assert found.risk == pytest.approx(right.risk, rel=1e-6)
    np.testing.assert_allclose(found.phi, right.phi, rtol=1e-4)
    np.testing.assert_allclose(found.z, right.z, atol=1e-3)


def test_unknowns_that_are_held_stay_and_the_others_are_solved_for(both):
    risk, _ = both
    z, phi, gamma = somewhere(risk)
    normal = NormalEquations.at(risk, risk.linearise(z, phi), gamma, phi)
    rng = np.random.default_rng(5)
    free = (rng.uniform(size=z.shape) < 0.7).astype(float), np.arange(len(phi), dtype=float).clip(0, 1)
    rz, rphi = free[0] * rng.normal(size=z.shape), free[1] * rng.normal(size=phi.shape)
    p = Preconditioner(normal, 0.1)
    dz, dphi, _ = solve(normal, p, 0.1, rz.copy(), rphi.copy(), 1e-9, 2000, free)
    assert (dz[free[0] == 0] == 0).all()
    assert (dphi[free[1] == 0] == 0).all()
    left = free[0] * (normal.times(dz, dphi)[0] + 0.1 * p.diagonal * dz) - rz
    np.testing.assert_allclose(left, 0.0, atol=1e-4 * np.abs(rz).max())


def test_a_step_ends_after_the_iterations_that_are_allowed(both):
    risk, _ = both
    z, phi, gamma = somewhere(risk)
    lin = risk.linearise(z, phi)
    for most in (1, 4):
        krylov = Krylov(1e-12, most)
        krylov(risk, z, lin, risk.mismatch(z, lin.f), gamma, phi)(1e-3)
        assert krylov.iterations == [most]


def test_a_preconditioner_is_kept_until_gamma_or_damping_moves_or_it_gets_slow():
    risk = sparse_risk(diffusion())
    z, phi, gamma = somewhere(risk)
    lin, krylov = risk.linearise(z, phi), Krylov()
    here, there = (NormalEquations.at(risk, lin, g, phi) for g in (gamma, 10.0 * gamma))
    first = krylov.suitable(here, 1e-3)
    krylov.count(5)
    assert krylov.suitable(here, 2e-3) is first
    other = krylov.suitable(there, 2e-3)
    assert other is not first
    krylov.count(5)
    damped = krylov.suitable(there, 1.0)
    assert damped is not other
    krylov.count(5)
    krylov.count(40)
    assert krylov.suitable(there, 1.0) is not damped


def test_a_bound_holds_what_would_be_pushed_through_it():
    risk = sparse_risk(diffusion(bounds={"D": (0.0, 0.5), "c3": (1.0, None)}))
    z, phi = np.clip(risk.mean, *risk.z_bounds), np.array([0.5, 0.3])
    gamma = np.full(len(risk.v), 1e-2)
    lin = risk.linearise(z, phi)
    e = risk.mismatch(z, lin.f)
    gz, g_phi, _ = risk.gradient(z, lin, e, gamma, phi)
    dz, dphi, matters = Krylov()(risk, z, lin, e, gamma, phi)(1e-3)
    pushed = (z[:, 3] == risk.z_bounds[0][3]) & (gz[:, 3] > 0)
    assert pushed.any()
    assert g_phi[0] < 0
    assert matters
    assert (dz[pushed, 3] == 0).all()
    assert dphi[0] == 0
    assert (dz[~pushed, 3] != 0).all()
