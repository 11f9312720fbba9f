"""The sparse engine: the same minimum and starts as the dense algebra, bounds, and when it is chosen."""

import numpy as np
import pytest

import odinfer as od
from odin.sparse.many_states import dense_twin, diffusion, lorenz, sparse_risk
from odinfer._jax import jnp
from odinfer.gp.smoother import smooth_states
from odinfer.gp.standardisation import Units
from odinfer.odin import startpoints
from odinfer.odin.gamma import GammaRule
from odinfer.odin.gauss_newton import gauss_newton
from odinfer.odin.lbfgsb import lbfgsb
from odinfer.odin.sparse.conjugate_gradients import Krylov
from odinfer.odin.sparse.engine import NO_BANDS, sparse_field

RULE = GammaRule((1e-6, 1e3))


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
    right, right_cost = startpoints.match(dense_twin(risk), phi)
    np.testing.assert_allclose(cost, right_cost, rtol=1e-3)
    np.testing.assert_allclose(mine, right, rtol=5e-2)


def test_small_or_densely_coupled_systems_keep_the_dense_algebra():
    def all_to_all(t, x, theta):
        return theta[0] * (jnp.mean(x) - x)

    model = od.Model(all_to_all, [f"x{k}" for k in range(20)], ["k"])
    rng = np.random.default_rng(0)
    data = od.Data(np.linspace(0, 1, 60), rng.normal(size=(60, 20)), states=model.states)
    assert sparse_field(od.Problem(model, data, positive=False), 1) is None
    lv = od.systems.lotka_volterra
    few = od.Problem(lv.model, lv.sample(0.1, 0, np.linspace(0, 2, 300)), positive=False)
    assert sparse_field(few, 2) is None
    assert sparse_field(lorenz(10), 2) is None
    assert sparse_field(lorenz(30), 2) is not None
    assert sparse_field(lorenz(30), 2, "dense") is None


def test_snapped_hyperparameters_lose_little_evidence():
    problem = lorenz(30, times=51)
    units = Units.of(problem)
    free = smooth_states(problem, units, "matern52", weak_prior=True)
    snapped = smooth_states(problem, units, "matern52", weak_prior=True, by="grid")
    assert len({h.shape for h in snapped}) < 12 < len({h.shape for h in free})
    loss = np.array([a.evidence - b.evidence for a, b in zip(free, snapped, strict=True)])
    assert loss.max() < 0.5
    assert np.abs(loss).mean() < 0.1


def test_an_unknown_algebra_is_refused():
    with pytest.raises(od.InputError, match="did you mean 'sparse'"):
        od.Odin(algebra="sparce")


def test_curves_go_through_the_solution_with_its_slopes_and_claim_no_bands():
    problem = diffusion()
    risk = sparse_risk(problem)
    s = risk.minimise(risk.mean, np.ones(2), RULE)
    curves, matches = risk.curves(s), risk.gradients(s)
    for i, (curve, match, b) in enumerate(zip(curves, matches, risk.blocks, strict=True)):
        t = risk.t[b.rows]
        x, slope, sd = curve.at(t)
        right = problem.model.evaluate(t, risk.units.user(s.z[b.rows]), problem.theta(s.phi), problem.inputs_at(i, t))
        np.testing.assert_allclose(x, risk.units.user(s.z[b.rows]))
        np.testing.assert_allclose(slope, right, atol=1e-9)
        np.testing.assert_allclose(match.f, right, atol=1e-9)
        assert np.isnan(sd).all()
    assert risk.notes == (NO_BANDS,)


def test_slopes_of_the_means_and_their_deviations_are_those_of_the_dense_matrices():
    risk = sparse_risk(diffusion())
    dense = dense_twin(risk)
    s = risk.minimise(risk.mean, np.ones(2), RULE)
    for match, curve, b in zip(risk.gradients(s), risk.mean_curves(), dense.blocks, strict=True):
        m, rate = b.smoother, risk.units.rate
        D_z, D_mean = ((m.D @ z.T[..., None])[..., 0].T * rate for z in (s.z[b.rows], m.mean.T))
        A = (m.Q * m.w[:, None]) @ np.swapaxes(m.Q, 1, 2)
        np.testing.assert_allclose(match.gp, D_z, atol=1e-8 * np.abs(D_z).max())
        np.testing.assert_allclose(match.sd, np.sqrt(np.einsum("knn->nk", A)) * rate, rtol=1e-8)
        np.testing.assert_allclose(curve.at(risk.t[b.rows])[1], D_mean, atol=1e-8 * np.abs(D_mean).max())
