"""Minimising the risk by Gauss–Newton, and what holds for both optimisers: bounds, and every way to treat γ."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odinfer as od
from odin.risks import risk_of
from odinfer.odin.gamma import GammaRule, best_gamma
from odinfer.odin.gauss_newton import gauss_newton
from odinfer.odin.lbfgsb import lbfgsb

FEW = settings(max_examples=15, derandomize=True, deadline=None)
TRUTH = np.array([2.0, 1.0, 4.0, 1.0])


def slope_at(risk, s):
    lin = risk.linearise(s.z, s.phi)
    return risk.gradient(s.z, lin, risk.mismatch(s.z, lin.f), s.gamma, s.phi)


def test_gauss_newton_ends_where_the_gradient_vanishes(easy):
    start = slope_at(easy, gauss_newton(easy, easy.mean, TRUTH, GammaRule(), max_iterations=1))
    s = gauss_newton(easy, easy.mean, TRUTH, GammaRule(), tolerance=1e-11)
    assert s.converged
    gz, gphi, ggamma = slope_at(easy, s)
    assert np.abs(gz).max() < 1e-4 * np.abs(start[0]).max()
    assert np.abs(gphi).max() < 1e-3 * np.abs(start[1]).max()
    assert np.where(s.gamma > 2e-6, np.abs(ggamma), np.maximum(-ggamma, 0.0)).max() < 1e-3  # at the floor it may rise


@settings(FEW, max_examples=8)
@given(seed=st.integers(0, 1000))
def test_gauss_newton_never_ends_above_its_start(lv, lv_data, seed):
    risk = risk_of(od.Problem(lv.model, lv_data, positive=False))
    rng = np.random.default_rng(seed)
    z = risk.mean + 0.5 * rng.normal(size=risk.mean.shape)
    phi = 3 * rng.normal(size=4)
    s = gauss_newton(risk, z, phi, GammaRule(fixed=0.1))
    first = risk.value(z, risk.mismatch(z, risk.linearise(z, phi).f), np.full(2, 0.1), phi)
    assert s.risk <= first
    assert s.risk == pytest.approx(risk.value(s.z, risk.mismatch(s.z, risk.linearise(s.z, s.phi).f), s.gamma, s.phi))


def test_gamma_is_at_its_exact_minimum_in_the_end(easy):
    rule = GammaRule((1e-5, 50.0))
    s = gauss_newton(easy, easy.mean, TRUTH, rule)
    e = easy.mismatch(s.z, easy.linearise(s.z, s.phi).f)
    np.testing.assert_allclose(s.gamma, best_gamma(easy.w, e, rule.bounds))


def test_a_shared_gamma_is_the_same_for_all_states(lv, lv_data):
    wrong = od.Model.from_text("prey' = a*prey^2 + b*predator\npredator' = -c*predator + d*prey*predator")
    risk = risk_of(od.Problem(wrong, lv_data, positive=False))
    own = gauss_newton(risk, risk.mean, np.array([0.2, -1.7, 4.0, 1.0]), GammaRule())
    one = gauss_newton(risk, risk.mean, np.array([0.2, -1.7, 4.0, 1.0]), GammaRule(shared=True))
    assert own.gamma[0] > 100 * own.gamma[1]
    assert one.gamma[0] == one.gamma[1]
    assert one.risk >= own.risk


@pytest.mark.parametrize("minimise", [gauss_newton, lbfgsb])
@pytest.mark.parametrize("gamma", [0.0, 0.5])
def test_a_fixed_gamma_stays(easy, minimise, gamma):
    s = minimise(easy, easy.mean, TRUTH, GammaRule(fixed=gamma))
    np.testing.assert_array_equal(s.gamma, [gamma, gamma])
    assert np.isfinite(s.risk)
    np.testing.assert_allclose(s.phi, TRUTH, rtol=0.15)


def test_the_minimum_does_not_depend_on_a_nearby_start(easy):
    one = gauss_newton(easy, easy.mean, TRUTH, GammaRule())
    two = gauss_newton(easy, easy.mean + 0.05, 1.3 * TRUTH, GammaRule(), gamma=0.01)
    assert one.risk == pytest.approx(two.risk, abs=1e-3)
    np.testing.assert_allclose(one.phi, two.phi, rtol=1e-3)


@pytest.mark.parametrize("minimise", [gauss_newton, lbfgsb])
def test_bounds_of_parameters_and_states_hold_and_are_reached(lv, lv_data, minimise):
    bounds = {"c": (None, 3.0), "a": (2.5, 5.0), "prey": (1.0, 4.5), "predator": (None, 2.8)}
    risk = risk_of(od.Problem(lv.model, lv_data, bounds=bounds, positive=False))
    s = minimise(risk, risk.mean, TRUTH, GammaRule())
    x, theta = risk.units.user(s.z), risk.problem.theta(s.phi)
    eps = 1e-9
    assert 2.5 - eps <= theta[0] <= 5.0 + eps
    assert theta[2] == pytest.approx(3.0)
    assert x[:, 0].min() >= 1.0 - eps
    assert x[:, 0].max() == pytest.approx(4.5)
    assert x[:, 1].max() == pytest.approx(2.8)


def test_bounds_that_do_not_bind_change_nothing(lv, lv_data, easy):
    wide = dict.fromkeys((*lv.model.parameters, *lv.model.states), (-1000.0, 1000.0))
    risk = risk_of(od.Problem(lv.model, lv_data, bounds=wide, positive=False))
    one, two = (gauss_newton(r, r.mean, TRUTH, GammaRule()) for r in (risk, easy))
    np.testing.assert_allclose(one.phi, two.phi, rtol=1e-9)


def test_without_free_parameters_only_states_are_estimated(lv, lv_data):
    risk = risk_of(od.Problem(lv.model, lv_data, fixed=dict(zip("abcd", TRUTH, strict=True)), positive=False))
    for minimise in (gauss_newton, lbfgsb):
        s = minimise(risk, risk.mean, np.empty(0), GammaRule())
        assert s.phi.shape == (0,)
        assert np.sqrt(np.mean((risk.units.user(s.z) - lv.x) ** 2)) < 0.08


def test_a_start_where_the_field_is_not_finite_has_an_infinite_risk(lv_data):
    model = od.Model.from_text("prey' = a*sqrt(prey - b)\npredator' = -c*predator")
    risk = risk_of(od.Problem(model, lv_data, positive=False))
    s = gauss_newton(risk, risk.mean, np.array([1.0, 100.0, 1.0]), GammaRule())
    assert s.risk == np.inf
    assert not s.converged


def test_the_search_ends_early_where_a_rival_is_out_of_reach(easy):
    best = gauss_newton(easy, easy.mean, TRUTH, GammaRule())
    start = (easy, easy.mean, np.full(4, 10.0), GammaRule())
    alone, hopeless, close = (
        gauss_newton(*start, max_iterations=12, tolerance=0.0, rival=r)
        for r in (np.inf, best.risk - 1e4, best.risk + 1)
    )
    assert hopeless.iterations < 8 <= alone.iterations
    assert not hopeless.converged
    assert close.risk == pytest.approx(best.risk, abs=1e-3)


def test_the_iteration_limit_is_said(easy):
    s = gauss_newton(easy, easy.mean, np.array([0.1, 0.1, 0.1, 0.1]), GammaRule(), max_iterations=2)
    assert not s.converged
    assert s.iterations == 2


def test_log_scaled_parameters_reach_the_same_minimum(lv, lv_data, easy):
    risk = risk_of(od.Problem(lv.model, lv_data, scale=dict.fromkeys("abcd", "log"), positive=False))
    log = gauss_newton(risk, risk.mean, np.log(TRUTH), GammaRule())
    plain = gauss_newton(easy, easy.mean, TRUTH, GammaRule())
    assert log.risk == pytest.approx(plain.risk, abs=1e-3)
    np.testing.assert_allclose(np.exp(log.phi), plain.phi, rtol=1e-3)
