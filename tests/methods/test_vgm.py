"""Variational gradient matching: closed forms, a bound that never falls, and the class of equations it takes."""

from __future__ import annotations

import numpy as np
import pytest

import odinfer as od
from odinfer.gp.smoother import smooth_states
from odinfer.gp.standardisation import Units
from odinfer.odin.dense_engine import Dense
from odinfer.odin.risk import Risk
from odinfer.paper import vgm
from odinfer.paper.systems import System
from odinfer.paper.vgm import Vgm

GAMMA = 0.2


@pytest.fixture(scope="module")
def risk(lv: System, lv_data: od.Data) -> Risk:
    problem = od.Problem(lv.model, lv_data, positive=False)
    units = Units.of(problem)
    return Dense.of(problem, units, smooth_states(problem, units, "rbf"), 1e-4)


def roots(risk: Risk) -> list[np.ndarray]:
    return [np.swapaxes(b.smoother.Q, 1, 2) / np.sqrt(b.smoother.w + GAMMA)[..., None] for b in risk.blocks]


def weights(risk: Risk) -> list[np.ndarray]:
    """(A + γI)⁻¹ of both states, from A itself."""
    s = risk.blocks[0].smoother
    return [np.linalg.inv(Q @ np.diag(w) @ Q.T + GAMMA * np.eye(len(w))) for Q, w in zip(s.Q, s.w, strict=True)]


def test_q_of_theta_is_weighted_least_squares_when_the_states_are_fixed(risk: Risk) -> None:
    z, units = risk.mean, risk.units
    x, y = units.user(z).T
    # f = B θ written out: prey' = a x − b x y, predator' = −c y + d x y, in standardised units.
    zero = np.zeros_like(x)
    B = [np.stack([x, -x * y, zero, zero], -1), np.stack([zero, zero, -y, x * y], -1)]
    B = [b * units.time / s for b, s in zip(B, units.scale, strict=True)]
    D, L = risk.blocks[0].smoother.D, weights(risk)
    precision = sum(B[k].T @ L[k] @ B[k] for k in range(2))
    mean = np.linalg.solve(precision, sum(B[k].T @ L[k] @ D[k] @ z[:, k] for k in range(2)))
    phi, cov = vgm.theta_factor(risk, roots(risk), z, np.array([5.0, -1.0, 0.3, 2.0]))
    np.testing.assert_allclose(phi, mean, rtol=1e-6)
    np.testing.assert_allclose(cov, np.linalg.inv(precision), rtol=1e-5)


def test_q_of_a_state_has_the_published_precision_and_mean(risk: Risk) -> None:
    theta, z, units = np.array([2.0, 1.0, 4.0, 1.0]), risk.mean, risk.units
    _, y = units.user(z).T
    # As functions of prey: prey' = (a − b y) prey, predator' = d y prey − c y; prey = mean + scale z.
    a, b, c, d = theta
    m, s, time = units.mean[0], units.scale, units.time
    R = [(a - b * y) * time, d * y * time * s[0] / s[1]]
    rest = [(a - b * y) * m * time / s[0], (d * y * m - c * y) * time / s[1]]
    block, L = risk.blocks[0], weights(risk)
    D = block.smoother.D
    own = np.diag(R[0]) - D[0]
    other = np.diag(R[1])
    precision = block.smoother.C_inv[0] + np.diag(block.weight[0]) + own.T @ L[0] @ own + other.T @ L[1] @ other
    right = block.weight[0] * block.y[0] - own.T @ L[0] @ rest[0] + other.T @ L[1] @ (D[1] @ z[:, 1] - rest[1])
    mean, sd = vgm.state_factor(risk, roots(risk), z, risk.linearise(z, theta), 0)
    np.testing.assert_allclose(mean, np.linalg.solve(precision, right), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(sd, np.sqrt(np.diag(np.linalg.inv(precision))), rtol=1e-6)


@pytest.mark.parametrize("bounded", [False, True])
def test_the_bound_never_falls(lv: System, bounded: bool) -> None:
    data = lv.sample(0.5, seed=3)
    problem = od.Problem(lv.model, data, bounds={"b": (0.0, 0.7), "prey": (0.5, 4.5)} if bounded else {})
    fit = od.fit(problem, method=Vgm(gamma=0.05, tolerance=1e-6, sweeps=40))
    rises = np.diff(fit.details["bound_trace"])
    assert len(rises) > 3
    assert rises.min() >= -1e-8 * abs(fit.details["bound"]["last"])
    assert fit.details["bound"]["last"] > fit.details["bound"]["first"]
    if bounded:
        assert 0 <= fit.theta["b"] <= 0.7
        assert any("'b' is at its bound" in w for w in fit.warnings)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fitzhugh_nagumo", "'V' appears nonlinearly in the equation for V"),
        ("protein_transduction", "'Rpp' appears nonlinearly in the equation for R"),
    ],
)
def test_equations_outside_the_class_are_refused_by_name(name: str, message: str) -> None:
    system = od.systems.SYSTEMS[name]
    with pytest.raises(od.InputError, match=message):
        od.fit(system.model, system.sample(system.levels[0], 0), method=Vgm())


@pytest.mark.parametrize(
    ("equation", "message"),
    [
        ("x' = -k*k*x", "'k' appears nonlinearly in the equation for x"),
        ("x' = -k*m*x", "'k' and 'm' together appear nonlinearly"),
        ("x' = -k*abs(x - 1)", "'x' appears nonlinearly in the equation for x"),
    ],
)
def test_products_and_kinks_are_nonlinear_too(equation: str, message: str, decay_data: od.Data) -> None:
    with pytest.raises(od.InputError, match=message):
        vgm.check_linear(od.Problem(od.Model.from_text(equation), decay_data))


def test_a_fixed_parameter_may_appear_anyhow(decay_data: od.Data) -> None:
    model = od.Model.from_text("x' = -k*x/(m*m)")
    vgm.check_linear(od.Problem(model, decay_data, fixed={"m": 2.0}))


def test_negative_parameters_are_found(oscillator: od.Model) -> None:
    t = np.linspace(0, 6, 30)
    x = od.simulate(oscillator, {"a": -2.0, "b": -0.3}, [1.0, 0.0], t)
    y = x + 0.01 * np.random.default_rng(0).normal(size=x.shape)
    problem = od.Problem(oscillator, od.Data(t, y, states=["x", "v"]), positive=False)
    fit = od.fit(problem, method=Vgm(gamma=0.01))
    assert fit.converged
    assert fit.theta["a"] == pytest.approx(-2.0, rel=0.05)
    assert fit.theta["b"] == pytest.approx(-0.3, abs=0.05)


def test_a_fit_to_lotka_volterra_is_complete_and_repeatable(lv: System, lv_data: od.Data) -> None:
    fit, again = (od.fit(lv.model, lv_data, method=Vgm.paper(lv), seed=s) for s in (0, 1))
    assert fit.theta == again.theta
    assert fit.converged
    assert list(fit.theta.values()) == pytest.approx([2.0, 1.0, 4.0, 1.0], rel=0.15)
    assert fit.gamma == {"prey": 0.1, "predator": 0.1}
    curve = next(iter(fit.experiments.values())).curve
    assert (curve.sd > 0).all()
    assert np.abs(fit.states.to_numpy() - lv.x).max() < 0.3


def test_two_experiments_and_missing_cells_share_theta(lv: System) -> None:
    first = lv.sample(0.05, seed=1)
    t = np.linspace(0, 1.5, 16)
    x = od.simulate(lv.model, lv.theta, [3.0, 2.0], t) + 0.05 * np.random.default_rng(2).normal(size=(16, 2))
    x[[2, 7], 0] = np.nan
    data = od.Data.join({"first": first, "second": od.Data(t, x, states=lv.model.states)})
    fit = od.fit(lv.model, data, method=Vgm(gamma=0.05))
    assert fit.converged
    assert len(fit.experiments) == 2
    assert list(fit.theta.values()) == pytest.approx([2.0, 1.0, 4.0, 1.0], rel=0.1)


def test_a_normal_prior_pulls_and_others_are_refused(decay: od.Model, decay_data: od.Data) -> None:
    free = od.fit(decay, decay_data, method=Vgm.quick()).theta["k"]
    tight = od.Problem(decay, decay_data, prior={"k": ("normal", 1.0, 1e-3)})
    assert free == pytest.approx(0.7, rel=0.1)
    assert od.fit(tight, method=Vgm.quick()).theta["k"] == pytest.approx(1.0, abs=0.01)
    with pytest.raises(od.InputError, match="only normal and uniform priors"):
        od.fit(od.Problem(decay, decay_data, prior={"k": ("lognormal", 1.0, 1.0)}), method=Vgm.quick())


def test_lorenz_96_is_in_the_class() -> None:
    system = od.systems.lorenz96(4)
    fit = od.fit(system.model, system.sample(0.3, 0), method=Vgm.quick(gamma=0.1))
    assert fit.theta["F"] == pytest.approx(8.0, rel=0.2)


def test_no_sweep_left_is_a_status_not_an_error(lv: System, lv_data: od.Data) -> None:
    fit = od.fit(lv.model, lv_data, method=Vgm(sweeps=1, tolerance=1e-9))
    assert not fit.converged
    assert "iteration limit" in fit.status


def test_a_failure_is_a_status_with_the_smoothed_states(
    lv: System, lv_data: od.Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        vgm, "_box_maximum", lambda H, g, low, high: (np.full(len(g), np.nan), np.full(H.shape, np.nan))
    )
    fit = od.fit(lv.model, lv_data, method=Vgm())
    assert not fit.converged
    assert "not finite" in fit.status
    assert np.isfinite(fit.states.to_numpy()).all()


@pytest.mark.parametrize(
    "options", [{"gamma": 0.0}, {"gamma": "learn"}, {"sweeps": 0}, {"grid": 1.5}, {"kernel": "rbff"}, {"jitter": -1}]
)
def test_bad_options_are_refused(options: dict) -> None:
    with pytest.raises(od.InputError):
        Vgm(**options)


def test_settings_of_an_unknown_system_are_refused() -> None:
    with pytest.raises(od.InputError, match="did you mean 'lotka_volterra'"):
        Vgm.paper("lotka_voltera")
