"""Many states: the same risk, Hessian and minimum as the dense algebra, at a cost that grows with their number."""

import numpy as np
import pytest

import odinfer as od
from odinfer._jax import jnp
from odinfer.matching import starts
from odinfer.matching.gamma import GammaRule
from odinfer.matching.lbfgsb import lbfgsb
from odinfer.matching.minimise import gauss_newton
from odinfer.matching.risk import Risk
from odinfer.matching.sparse.engine import sparse_field
from odinfer.matching.sparse.krylov import Krylov, NormalEquations, Preconditioner, solve
from odinfer.matching.sparse.risk import SparseRisk
from odinfer.smoothing.operators import Smoother
from odinfer.smoothing.smooth import smooth_states
from odinfer.smoothing.units import Units

RULE = GammaRule((1e-6, 1e3))


def lorenz(K, seed=11, times=26) -> od.Problem:
    system = od.systems.lorenz96(K)
    return od.Problem(system.model, system.sample(1.0, seed, np.linspace(0.0, 2.5, times)))


def diffusion(K=12, gaps=False, **known) -> od.Problem:
    """Diffusion with decay on a ring, two experiments; with gaps in the data if asked for."""

    def field(t, x, theta):
        return theta[0] * (jnp.roll(x, 1) - 2 * x + jnp.roll(x, -1)) - theta[1] * x**2

    model = od.Model(field, [f"c{k}" for k in range(K)], ["D", "r"], name="ring")
    rng, sets = np.random.default_rng(3), []
    for n in (15, 12):
        t = np.linspace(0.0, 2.0, n)
        x = od.simulate(model, [0.8, 0.3], 1.0 + rng.uniform(0, 3, K), t)
        y = x + 0.05 * rng.normal(size=x.shape)
        if gaps:
            y[rng.uniform(size=y.shape) < 0.1] = np.nan
        sets.append(od.Data(t, y, states=model.states))
    return od.Problem(model, od.Data.join(dict(zip("ab", sets, strict=True))), **known)


def sparse_risk(problem, grid=1, temper=2.0) -> SparseRisk:
    risk = od.Odin(kernel="matern52", grid=grid, temper=temper, algebra="sparse", jitter=1e-4).risk(problem)
    assert isinstance(risk, SparseRisk)
    return risk


def dense_twin(risk: SparseRisk) -> Risk:
    """The same operators written out state by state, for the dense algebra."""
    grids, K = [], len(risk.v)
    for b in risk.blocks:
        N = len(b.y)
        C_inv, D, Q, w = (np.empty((K, N, N)) for _ in range(4))
        for g in b.groups:
            for k in g.members:
                C_inv[k], D[k], Q[k], w[k] = g.prior / risk.v[k], g.T.T @ g.S, g.T.T, g.w * risk.v[k]
        y = np.where(b.weight > 0, b.y, np.nan)
        grids.append((risk.t[b.rows], y.T, Smoother(b.mean.T, C_inv, D, Q, w[:, 0])))
    return Risk.build(risk.problem, risk.units, risk.hypers, grids)


@pytest.fixture(
    scope="module",
    params=[lambda: lorenz(10), diffusion, lambda: diffusion(gaps=True, prior={"D": ("normal", 1.0, 0.5)})],
    ids=["lorenz", "diffusion", "diffusion with gaps and a prior"],
)
def both(request) -> tuple[SparseRisk, Risk]:
    risk = sparse_risk(request.param(), grid=2)
    return risk, dense_twin(risk)


def somewhere(risk, seed=0):
    rng = np.random.default_rng(seed)
    z = risk.mean + 0.1 * rng.normal(size=risk.mean.shape)
    phi = np.abs(rng.normal(size=len(risk.problem.free))) + 0.5
    return z, phi, np.exp(rng.uniform(-8, 1, len(risk.v)))


def test_risk_and_gradient_are_those_of_the_dense_algebra(both):
    risk, dense = both
    z, phi, gamma = somewhere(risk)
    np.testing.assert_allclose(risk.mean, dense.mean)
    parts = []
    for r in both:
        lin = r.linearise(z, phi)
        e = r.mismatch(z, lin.f)
        parts.append((r.value(z, e, gamma, phi), *r.gradient(z, lin, e, gamma, phi)))
    for mine, right in zip(*parts, strict=True):
        np.testing.assert_allclose(mine, right, rtol=1e-8, atol=1e-8 * np.abs(right).max())


def test_the_hessian_is_the_dense_one_and_the_preconditioner_inverts_its_blocks(both):
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


def test_learned_gammas_lead_to_no_higher_a_risk_than_the_dense_algebra():
    for problem in (lorenz(10), diffusion()):
        risk = sparse_risk(problem)
        phi = np.full(len(problem.free), 1.0)
        right = gauss_newton(dense_twin(risk), risk.mean, phi, RULE)
        found = risk.minimise(risk.mean, phi, RULE)
        assert found.converged
        assert found.risk <= right.risk + 1e-3 * abs(right.risk)


def test_the_papers_optimiser_runs_on_the_same_risk():
    risk = sparse_risk(diffusion())
    rule = GammaRule(fixed=1e-2)
    s = lbfgsb(risk, risk.mean, np.ones(2), rule)
    right = gauss_newton(risk, risk.mean, np.ones(2), rule, steps=Krylov(), tolerance=1e-9)
    assert s.risk >= right.risk - 1e-6 * abs(right.risk)
    assert s.risk == pytest.approx(right.risk, rel=1e-2)


def test_bounds_hold_and_are_reached():
    risk = sparse_risk(diffusion(bounds={"D": (0.0, 0.5), "c3": (1.0, None)}))
    s = risk.minimise(risk.mean, np.array([0.4, 0.1]), RULE)
    assert s.phi[0] == pytest.approx(0.5)
    assert risk.units.user(s.z)[:, 3].min() >= 1.0 - 1e-12


def test_starts_are_carried_to_the_same_match_as_by_the_dense_algebra():
    risk = sparse_risk(diffusion())
    phi = np.array([[1.0, 1.0], [0.2, 3.0]])
    mine, cost = risk.match(phi)
    right, right_cost = starts.match(dense_twin(risk), phi)
    np.testing.assert_allclose(cost, right_cost, rtol=1e-3)
    np.testing.assert_allclose(mine, right, rtol=5e-2)


def test_small_or_densely_coupled_systems_keep_the_dense_algebra():
    def all_to_all(t, x, theta):
        return theta[0] * (jnp.mean(x) - x)

    model = od.Model(all_to_all, [f"x{k}" for k in range(20)], ["k"])
    rng = np.random.default_rng(0)
    data = od.Data(np.linspace(0, 1, 60), rng.normal(size=(60, 20)), states=model.states)
    assert sparse_field(od.Problem(model, data), 1) is None
    lv = od.systems.lotka_volterra
    few = od.Problem(lv.model, lv.sample(0.1, 0, np.linspace(0, 2, 300)))
    assert sparse_field(few, 2) is None
    assert sparse_field(lorenz(10), 2) is None
    assert sparse_field(lorenz(30), 2) is not None
    assert sparse_field(lorenz(30), 2, "dense") is None


def test_snapped_hyperparameters_lose_little_evidence():
    problem = lorenz(30, times=51)
    units = Units.of(problem)
    free = smooth_states(problem, units, "matern52", weak_prior=True)
    snapped = smooth_states(problem, units, "matern52", weak_prior=True, snapped=True)
    assert len({h.shape for h in snapped}) < 12 < len({h.shape for h in free})
    loss = np.array([a.evidence - b.evidence for a, b in zip(free, snapped, strict=True)])
    assert loss.max() < 0.5
    assert np.abs(loss).mean() < 0.1


def test_an_unknown_algebra_is_refused():
    with pytest.raises(od.InputError, match="did you mean 'sparse'"):
        od.Odin(algebra="sparce")
