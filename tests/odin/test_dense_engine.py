"""The dense engine: its grids, and the curves and gradients that solutions are turned into."""

import numpy as np
import pytest

import odinfer as od
from odin.risks import risk_of
from odinfer.odin import startpoints
from odinfer.odin.dense_engine import Dense
from odinfer.odin.gamma import GammaRule

TRUTH = np.array([2.0, 1.0, 4.0, 1.0])


@pytest.fixture(scope="module")
def problem(lv) -> od.Problem:
    """Two experiments, the second with a missing cell."""
    y = np.array(lv.sample(0.2, 2, np.linspace(0.0, 1.5, 9)).y)
    y[2, 0] = np.nan
    two = od.Data(np.linspace(0.0, 1.5, 9), y, states=lv.model.states)
    return od.Problem(lv.model, od.Data.join({"one": lv.sample(0.1, 1), "two": two}), positive=False)


@pytest.fixture(scope="module")
def engine(problem) -> Dense:
    return risk_of(problem, grid=2, temper=2.0)


@pytest.fixture(scope="module")
def solution(engine):
    return engine.minimise(engine.mean, TRUTH, GammaRule())


def field(engine, s):
    """f at the solution in the user's units (M, K)."""
    x = engine.units.user(s.z)
    return engine.problem.model.evaluate(engine.t, x, engine.problem.theta(s.phi), engine.u)


def test_a_finer_grid_holds_the_observations_where_they_were_made(problem, engine):
    for e, b in zip(problem.data.experiments, engine.blocks, strict=True):
        t = engine.t[b.rows]
        assert len(t) == 2 * len(e.t) - 1
        np.testing.assert_allclose(t[::2], e.t)
        seen = np.isfinite(e.y)
        np.testing.assert_array_equal(b.weight[:, ::2].T > 0, seen)
        assert (b.weight[:, 1::2] == 0).all()
        np.testing.assert_allclose(b.y[:, ::2].T[seen], engine.units.standard(e.y)[seen])


def test_tempering_divides_the_weight_of_the_smoother(problem, engine):
    plain = risk_of(problem, grid=2)
    np.testing.assert_allclose(engine.w, 2.0 * plain.w)
    for mine, other in zip(engine.blocks, plain.blocks, strict=True):
        np.testing.assert_allclose(2.0 * mine.smoother.C_inv, other.smoother.C_inv)


def test_starts_are_matched_as_by_the_function(engine):
    phi = startpoints.draw(engine.problem, 4, np.random.default_rng(0))
    for mine, right in zip(engine.match(phi), startpoints.match(engine, phi), strict=True):
        np.testing.assert_array_equal(mine, right)


def test_curves_go_through_the_solution_with_the_slopes_of_the_equations(engine, solution):
    f = field(engine, solution)
    np.testing.assert_allclose(engine.slopes(solution), f, rtol=1e-9)
    for curve, b in zip(engine.curves(solution), engine.blocks, strict=True):
        x, slope, _ = curve.at(engine.t[b.rows])
        np.testing.assert_allclose(x, engine.units.user(solution.z[b.rows]), rtol=1e-9)
        np.testing.assert_allclose(slope, f[b.rows], rtol=1e-9, atol=1e-9)
        assert len(curve.t) > 3 * len(engine.t[b.rows])


def test_between_grid_times_curves_stay_close_to_the_trajectory(lv, engine, solution):
    curve = engine.curves(solution)[0]
    truth = od.simulate(lv.model, TRUTH, lv.x0, curve.t)
    assert np.abs(curve.x - truth).max() < 0.25
    assert (np.abs(curve.x - truth) < 3 * curve.sd + 0.02).mean() > 0.8


def test_bands_are_those_of_the_whole_hessian_inverted(engine, solution):
    s = solution
    lin = engine.linearise(s.z, s.phi)
    normal = engine.normal(s.z, lin, engine.mismatch(s.z, lin.f), s.gamma, s.phi)
    sizes, F = [len(H) for H in normal.H], len(s.phi)
    whole = np.zeros((sum(sizes) + F, sum(sizes) + F))
    whole[-F:, -F:] = normal.H_phi
    start = 0
    for H, border in zip(normal.H, normal.border, strict=True):
        own = slice(start, start := start + len(H))
        whole[own, own], whole[own, -F:], whole[-F:, own] = H, border, border.T
    sd = np.sqrt(np.diag(np.linalg.inv(whole)))
    start = 0
    for curve, b in zip(engine.curves(s), engine.blocks, strict=True):
        own = sd[start : (start := start + b.y.size)].reshape(b.y.shape).T
        found = curve.at(engine.t[b.rows])[2]
        np.testing.assert_allclose(found, engine.units.scale * own, rtol=5e-3)


def test_gradients_are_the_equations_against_the_slope_of_the_smoother(engine, solution):
    f, rate = field(engine, solution), engine.units.scale / engine.units.time
    for match, b in zip(engine.gradients(solution), engine.blocks, strict=True):
        m = b.smoother
        np.testing.assert_allclose(match.f, f[b.rows], rtol=1e-9)
        for k in range(2):
            np.testing.assert_allclose(match.gp[:, k], rate[k] * (m.D[k] @ solution.z[b.rows, k]), rtol=1e-9)
            A = (m.Q[k] * m.w[k]) @ m.Q[k].T
            np.testing.assert_allclose(match.sd[:, k], rate[k] * np.sqrt(np.diag(A)), rtol=1e-6)


def test_what_is_left_without_a_model_are_the_means_without_bands(engine):
    for curve, b in zip(engine.mean_curves(), engine.blocks, strict=True):
        np.testing.assert_allclose(curve.x, engine.units.user(b.smoother.mean.T))
        assert (curve.sd == 0).all()
        inside = slice(2, -2)
        differences = np.gradient(curve.x, curve.t, axis=0)[inside]
        np.testing.assert_allclose(curve.slope[inside], differences, atol=0.15 * np.abs(differences).max())
