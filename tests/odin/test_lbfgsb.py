"""The paper's optimiser: it reaches the same risk, repeats with its seed, and reports what it found."""

import numpy as np
import pytest

import odinfer as od
from odin.risks import risk_of
from odinfer.odin.gamma import GammaRule
from odinfer.odin.gauss_newton import gauss_newton
from odinfer.odin.lbfgsb import lbfgsb

TRUTH = np.array([2.0, 1.0, 4.0, 1.0])


def test_both_optimisers_reach_the_same_risk(easy):
    ours = gauss_newton(easy, easy.mean, TRUTH, GammaRule())
    theirs = lbfgsb(easy, easy.mean, TRUTH, GammaRule())
    assert ours.risk == pytest.approx(theirs.risk, abs=0.5)
    assert ours.risk <= theirs.risk + 1e-3
    np.testing.assert_allclose(ours.phi, theirs.phi, rtol=0.02)
    assert ours.iterations < theirs.iterations


def test_basin_hopping_reaches_the_same_risk_too_and_repeats_with_its_seed(easy):
    ours = gauss_newton(easy, easy.mean, TRUTH, GammaRule(shared=True))
    hopped = [
        lbfgsb(easy, easy.mean, TRUTH, GammaRule(shared=True), hops=2, rng=np.random.default_rng(1)) for _ in range(2)
    ]
    assert hopped[0].risk == pytest.approx(ours.risk, abs=0.5)
    np.testing.assert_array_equal(hopped[0].z, hopped[1].z)
    assert hopped[0].gamma[0] == hopped[0].gamma[1]


def test_what_is_reported_is_the_risk_at_the_solution_and_no_step_lowers_it(easy):
    s = lbfgsb(easy, easy.mean, TRUTH, GammaRule())
    lin = easy.linearise(s.z, s.phi)
    e = easy.mismatch(s.z, lin.f)
    assert s.converged
    assert s.risk == pytest.approx(easy.value(s.z, e, s.gamma, s.phi))
    gz, gphi, ggamma = easy.gradient(s.z, lin, e, s.gamma, s.phi)
    first = easy.linearise(easy.mean, TRUTH)
    start = easy.gradient(easy.mean, first, easy.mismatch(easy.mean, first.f), np.ones(2), TRUTH)
    assert np.abs(gz).max() < 0.01 * np.abs(start[0]).max()
    assert np.abs(gphi).max() < 0.05 * np.abs(start[1]).max()
    assert (ggamma[s.gamma > 2e-6] < 0.1).all()


def test_gamma_stays_within_its_bounds(easy):
    s = lbfgsb(easy, easy.mean, TRUTH, GammaRule((0.02, 0.5)), gamma_start=3.0)
    assert (s.gamma >= 0.02 * (1 - 1e-9)).all()
    assert (s.gamma <= 0.5 * (1 + 1e-9)).all()
    assert s.gamma.min() == pytest.approx(0.02)


def test_a_start_outside_the_bounds_is_brought_inside(lv, lv_data):
    risk = risk_of(od.Problem(lv.model, lv_data, bounds={"a": (0.0, 3.0), "prey": (0.0, None)}, positive=False))
    s = lbfgsb(risk, risk.mean - 5.0, np.array([50.0, 1.0, 4.0, 1.0]), GammaRule(fixed=0.1))
    assert 0.0 <= s.phi[0] <= 3.0
    assert risk.units.user(s.z)[:, 0].min() >= -1e-9
    right = gauss_newton(risk, risk.mean, TRUTH, GammaRule(fixed=0.1))
    assert s.risk == pytest.approx(right.risk, abs=0.5)
