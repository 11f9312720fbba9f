"""From an ODIN solution of many states to a trajectory: the formula, the likelihood, chaos."""

import numpy as np
import pytest

import odinfer as od
from odin.sparse.many_states import diffusion, lorenz, sparse_risk
from odinfer.search.continuation import STAGES, group, mesh, tighten_equations


def rmse(x, truth):
    return float(np.sqrt(np.mean((x - truth) ** 2)))


def test_the_formula_is_exact_for_polynomials_and_its_operators_agree():
    seen = np.array([0.0, 0.4, 1.5])
    m = mesh(seen, 2, time=2.0)
    np.testing.assert_allclose(m.t[m.rows], seen)
    g = group(m, 3, 0.1)
    s = m.t / 2.0
    for degree in range(STAGES + 1):
        slope = degree * s ** max(degree - 1, 0) if degree else np.zeros_like(s)
        np.testing.assert_allclose(g.T @ slope[:, None] - g.S @ (s**degree)[:, None], 0.0, atol=1e-12)
    assert np.abs(g.T @ (7 * s**6) - g.S @ s**7).max() > 1e-6  # and not for all


def test_the_trajectory_is_that_of_the_maximum_likelihood():
    problem = diffusion()
    many = od.fit(problem, method=od.Odin(algebra="sparse"))
    dense = od.fit(problem, method=od.Odin(algebra="dense"))
    assert many.details["stage_used"] == dense.details["stage_used"] == "refined"
    assert many.converged
    for name in ("D", "r"):
        assert many.theta[name] == pytest.approx(dense.theta[name], rel=2e-3)
    assert many.stages["refined"].loglik == pytest.approx(dense.stages["refined"].loglik, abs=0.5)
    for name in problem.model.states:
        assert many.sigma[name] == pytest.approx(dense.sigma[name], rel=0.05)


def test_the_path_solves_the_equations_between_observations():
    problem = diffusion()
    risk = sparse_risk(problem)
    found = tighten_equations(risk, od.Odin(algebra="sparse").minimise(risk, risk.mean, np.array([0.7, 0.3])))
    assert found is not None
    assert found.defect < 0.1  # of the noise, the worst of all elements
    t, x, _ = found.paths[0]
    again = od.simulate(problem.model, problem.theta(found.phi), x[0], t)
    assert np.abs(again - x).max() < 0.5 * found.sigma.max()


def test_known_noise_is_kept():
    problem = diffusion(sigma={"c1": 0.2})
    found = od.fit(problem, method=od.Odin(algebra="sparse"))
    assert found.sigma["c1"] == pytest.approx(0.2)


def test_chaos_is_followed():
    system, t = od.systems.lorenz96(20), 0.1 * np.arange(51)
    truth = system.states(t)
    data = system.sample(1.0, 31, t)
    fit = od.fit(system.model, data)
    odin, refined = fit.stages["odin"], fit.stages["refined"]
    gp = od.Odin().risk(od.Problem(system.model, data, positive=False))
    smoothed = rmse(gp.units.user(gp.mean)[::2], truth)
    assert fit.details["stage_used"] == "refined"
    assert odin.theta["F"] == pytest.approx(8.0, rel=0.05)
    assert refined.theta["F"] == pytest.approx(8.0, rel=0.01)
    assert rmse(odin.x[0], truth) < 0.75 * smoothed
    assert rmse(refined.x[0], truth) < 0.3 * smoothed
    assert np.isnan(fit.experiments["1"].curve.sd).all()  # no band is claimed
    assert any("bands" in warning for warning in fit.warnings)


def test_an_equation_that_does_not_fit_has_its_best_trajectory_and_no_verdict():
    problem = lorenz(12, times=51)

    def wrong(t, x, theta):
        return theta[0] - x

    fit = od.fit(
        od.Problem(od.Model(wrong, problem.model.states, ["F"]), problem.data, positive=False),
        method=od.Odin(algebra="sparse"),
    )
    assert fit.details["stage_used"] == "refined"
    assert set(fit.verdicts.values()) == {"not judged"}  # so many states are not put to the test


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_thousand_states_are_fitted_as_well_as_ten():
    system, t = od.systems.lorenz96(1000), 0.1 * np.arange(51)
    truth = system.states(t)
    fit = od.fit(system.model, system.sample(1.0, 7, t))
    assert fit.stages["odin"].theta["F"] == pytest.approx(8.0, rel=0.05)
    assert fit.theta["F"] == pytest.approx(8.0, rel=0.01)
    assert rmse(fit.stages["odin"].x[0], truth) < 0.75 * 0.79  # Gaussian process regression's is 0.79 to 0.80
    assert rmse(fit.states.to_numpy(), truth) < 0.25
