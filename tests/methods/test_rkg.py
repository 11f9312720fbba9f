"""Kernel ridge regression with gradient matching: closed forms, cross-validation, the alternating fit."""

from __future__ import annotations

import numpy as np
import pytest

import odinfer as od
from odinfer.gp import kernel_ridge
from odinfer.gp.kernels import kernel
from odinfer.gp.standardisation import Units
from odinfer.paper import rkg
from odinfer.paper.rkg import Rkg
from odinfer.paper.systems import System


def regression_of(problem: od.Problem, name: str = "rbf") -> kernel_ridge.Regression:
    return kernel_ridge.Regression.of(problem, Units.of(problem), kernel(name))


def rbf(a: np.ndarray, b: np.ndarray, length: float) -> np.ndarray:
    return np.exp(-0.5 * ((a[:, None] - b[None, :]) / length) ** 2)


def test_leave_one_out_errors_are_those_of_leaving_one_out() -> None:
    rng = np.random.default_rng(0)
    t, y = np.sort(rng.uniform(0, 3, 9)), rng.normal(size=9)
    lengths, ridges = np.array([0.3, 1.0]), np.array([1e-2, 0.5])
    lam, U = np.linalg.eigh(kernel("rbf").gram(t, t, lengths[:, None]).C)
    scores, alpha = kernel_ridge.leave_one_out(lam, U, y, ridges)
    for g, length in enumerate(lengths):
        for r, weight in enumerate(ridges):
            errors = []
            for i in range(9):
                rest = np.arange(9) != i
                b = np.linalg.solve(rbf(t[rest], t[rest], length) + weight * np.eye(8), y[rest])
                errors.append(y[i] - (rbf(t[i : i + 1], t[rest], length) @ b)[0])
            assert scores[g, r] == pytest.approx(np.mean(np.square(errors)), rel=1e-8)
            direct = np.linalg.solve(rbf(t, t, length) + weight * np.eye(9), y)
            np.testing.assert_allclose(alpha[g, :, r], direct, rtol=1e-7)


def test_the_regression_is_mean_plus_kernel_sum_with_its_ridge() -> None:
    t = np.linspace(0, 2, 15)
    y = 3.0 + np.sin(3 * t) + 0.1 * np.random.default_rng(1).normal(size=15)
    found = kernel_ridge.ridge_regression(kernel("rbf"), t, y)
    K = rbf(t, t, found.shape[0])
    np.testing.assert_allclose(found.b, np.linalg.solve(K + found.ridge * np.eye(15), y - y.mean()), rtol=1e-7)
    assert found.centre == pytest.approx(y.mean())
    assert np.sqrt(np.mean((found.centre + K @ found.b - 3.0 - np.sin(3 * t)) ** 2)) < 0.1


def test_cross_validation_asks_for_more_ridge_when_there_is_more_noise() -> None:
    t, rng = np.linspace(0, 2, 40), np.random.default_rng(2)
    wave, noise = np.sin(4 * t), rng.normal(size=40)
    little, much = (kernel_ridge.ridge_regression(kernel("rbf"), t, wave + s * noise) for s in (0.001, 0.5))
    assert little.ridge < 1e-3 < 1e-2 < much.ridge
    assert little.freedom > much.freedom


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5])
@pytest.mark.parametrize("name", ["rbf", "warped-rbf"])
def test_cross_validation_survives_few_points(n: int, name: str) -> None:
    t = np.arange(n) * 0.5
    found = kernel_ridge.ridge_regression(kernel(name), t, np.cos(t))
    assert found.b.shape == (n,)
    assert np.isfinite(found.b).all()
    assert np.isfinite(found.shape).all()


@pytest.mark.parametrize("variant", [2, 3])
@pytest.mark.parametrize("name", ["fitzhugh_nagumo", "protein_transduction"])
def test_the_hard_systems_are_survived(name: str, variant: int) -> None:
    system = od.systems.SYSTEMS[name]
    for seed in (0, 1):
        problem = system.problem(system.sample(system.levels[1], seed))
        method = Rkg.paper(system, variant=variant, rounds=4, lambdas=(1e-2, 1.0))
        fit = od.fit(problem, method=method)
        assert np.isfinite(list(fit.theta.values())).all()
        assert all(0 < r < 50 for found in fit.details["ridge"].values() for r in found)


@pytest.mark.parametrize("variant", [2, 3])
def test_data_without_noise_give_the_parameters_of_lotka_volterra(lv: System, variant: int) -> None:
    fit = od.fit(lv.model, od.Data(lv.t, lv.x, states=lv.model.states), method=Rkg(variant=variant))
    assert fit.converged
    assert list(fit.theta.values()) == pytest.approx([2.0, 1.0, 4.0, 1.0], rel=0.05)


def test_an_update_of_the_coefficients_solves_the_published_equations(lv: System, lv_data: od.Data) -> None:
    problem = od.Problem(lv.model, lv_data)
    reg = regression_of(problem)
    start = rkg.Match(np.log([2.0, 1.0, 4.0, 1.0]), 1.0, np.ones(4, bool), np.ones(2))
    weight, b0 = 1e-3, [b[None] for b in reg.smoothed]
    x, _ = reg.states(b0)
    f = reg.field(x, start.phi[None], start.logs)[0][0]
    # The frozen-f step alone: one update, no move of θ, from coefficients where nothing needs halving.
    run = rkg.alternating_fit(
        reg, np.ones((1, 20, 2), bool), np.full((1, 2), weight), b0, start, Rkg(rounds=1, updates=1)
    )
    centre = reg.centre[0]
    for k in range(2):
        K, dK = reg.C[0][k], reg.dC[0][k]
        right = K.T @ (reg.y[:, k] - centre[k]) + weight * dK.T @ f[:, k]
        full = np.linalg.lstsq(K.T @ K + weight * dK.T @ dK, right, rcond=1e-13)[0]
        np.testing.assert_allclose(K @ run.b[0][0, k], K @ full, atol=2e-3)
    assert run.trace[1, 0] < run.trace[0, 0]


def test_the_objective_of_the_alternating_fit_never_rises(lv: System) -> None:
    for noise in (0.1, 0.5):
        fit = od.fit(lv.model, lv.sample(noise, 4), method=Rkg(rounds=8, starts=1))
        trace = np.array(fit.details["objective_trace"])
        assert (np.diff(trace) <= 1e-10 * trace[0]).all()
        assert trace[-1] < trace[0]


def test_the_field_has_the_derivatives_it_claims(lv: System, lv_data: od.Data) -> None:
    reg = regression_of(od.Problem(lv.model, lv_data))
    x, _ = reg.states([b[None] for b in reg.smoothed])
    logs, phi, h = np.array([True, False, True, True]), np.array([[0.5, 1.2, 1.3, 0.1]]), 1e-6
    _, J = reg.field(x, phi, logs)
    for j in range(4):
        move = h * np.eye(4)[j]
        difference = (reg.field(x, phi + move, logs)[0] - reg.field(x, phi - move, logs)[0]) / (2 * h)
        np.testing.assert_allclose(J[..., j], difference, rtol=1e-5, atol=1e-6)


def test_negative_parameters_are_found(oscillator: od.Model) -> None:
    t = np.linspace(0, 6, 30)
    x = od.simulate(oscillator, {"a": -2.0, "b": -0.3}, [1.0, 0.0], t)
    y = x + 0.01 * np.random.default_rng(0).normal(size=x.shape)
    problem = od.Problem(oscillator, od.Data(t, y, states=["x", "v"]), positive=False)
    fit = od.fit(problem, method=Rkg.quick())
    assert fit.theta["a"] == pytest.approx(-2.0, rel=0.1)
    assert fit.theta["b"] == pytest.approx(-0.3, abs=0.1)


def test_bounds_on_parameters_are_kept(lv: System, lv_data: od.Data) -> None:
    fit = od.fit(od.Problem(lv.model, lv_data, bounds={"c": (0.0, 3.0)}), method=Rkg.quick())
    assert fit.theta["c"] == pytest.approx(3.0, rel=0.05)
    assert fit.theta["c"] <= 3.0 + 1e-12


def test_warping_time_helps_where_all_is_fast_early() -> None:
    t = np.array([0.0, 1, 2, 4, 5, 7, 10, 15, 20, 30, 40, 50, 60, 80, 100])
    x = np.exp(-0.5 * t)
    y = x + 0.005 * np.random.default_rng(0).normal(size=15)
    plain, warped = (kernel_ridge.ridge_regression(kernel(k), t / 30, y) for k in ("rbf", "warped-rbf"))

    def error(k: str, found: kernel_ridge.Ridge) -> float:
        return float(np.abs(found.centre + kernel(k).gram(t / 30, t / 30, found.shape).C @ found.b - x).max())

    assert error("warped-rbf", warped) < 0.5 * error("rbf", plain)


def test_a_fit_is_complete_and_repeatable(lv: System, lv_data: od.Data) -> None:
    fit, again = (od.fit(lv.model, lv_data, method=Rkg.quick(), seed=3) for _ in range(2))
    assert fit.theta == again.theta
    assert list(fit.stages) == ["rkg2", "rkg3"]
    assert fit.gamma == {}
    curve = next(iter(fit.experiments.values())).curve
    assert (curve.sd == 0).all()
    np.testing.assert_allclose(np.gradient(curve.x[:, 0], curve.t)[5:-5], curve.slope[5:-5, 0], atol=0.05)
    assert all(0.03 < s < 0.3 for s in fit.sigma.values())


@pytest.mark.parametrize("variant", [2, 3])
def test_two_experiments_and_missing_cells_share_theta(lv: System, variant: int) -> None:
    t = np.linspace(0, 1.5, 16)
    x = od.simulate(lv.model, lv.theta, [3.0, 2.0], t) + 0.02 * np.random.default_rng(2).normal(size=(16, 2))
    x[[2, 7], 0] = np.nan
    data = od.Data.join({"first": lv.sample(0.02, 1), "second": od.Data(t, x, states=lv.model.states)})
    fit = od.fit(lv.model, data, method=Rkg.quick(variant=variant))
    assert len(fit.experiments) == 2
    assert list(fit.theta.values()) == pytest.approx([2.0, 1.0, 4.0, 1.0], rel=0.1)


def test_a_fixed_parameter_stays_and_a_prior_warns(decay: od.Model, decay_data: od.Data) -> None:
    fixed = od.fit(od.Problem(decay, decay_data, fixed={"k": 0.5}), method=Rkg.quick())
    assert fixed.theta == {"k": 0.5}
    told = od.fit(od.Problem(decay, decay_data, prior={"k": ("normal", 1.0, 0.1)}), method=Rkg.quick())
    assert told.theta["k"] == pytest.approx(0.7, rel=0.1)
    assert any("no use of priors" in w for w in told.warnings)


@pytest.mark.parametrize(
    "options",
    [{"variant": 4}, {"kernel": "rbff"}, {"starts": 0}, {"rounds": 1.5}, {"lambdas": ()}, {"lambdas": (-1.0,)},
     {"kernel": "sigmoid", "warp": True}],
)  # fmt: skip
def test_bad_options_are_refused(options: dict) -> None:
    with pytest.raises(od.InputError):
        Rkg(**options)


def test_a_failure_is_a_status_with_the_smoothed_states(
    lv: System, lv_data: od.Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rkg, "batched_levenberg", lambda r, x, s, w, phi, logs, n: (phi, np.full(len(phi), np.inf)))
    fit = od.fit(lv.model, lv_data, method=Rkg.quick())
    assert not fit.converged
    assert "not finite" in fit.status
    assert np.isnan(list(fit.theta.values())).all()
    assert np.isfinite(fit.states.to_numpy()).all()


def test_the_paper_settings_are_as_accurate_as_the_original_on_lotka_volterra(lv: System) -> None:
    """Medians over 20 draws of the originals are .109 and .079; five draws here, so with room."""
    for variant, most in ((2, 0.16), (3, 0.12)):
        errors = []
        for seed in range(5):
            theta = od.fit(lv.model, lv.sample(0.1, seed), method=Rkg.paper(lv, variant=variant)).theta
            errors.append(np.sqrt(np.mean((od.simulate(lv.model, theta, lv.x0, lv.t) - lv.x) ** 2)))
        assert np.median(errors) < most


def test_settings_of_an_unknown_system_are_refused() -> None:
    with pytest.raises(od.InputError, match="did you mean 'lotka_volterra'"):
        Rkg.paper("lotka_voltera")
    assert Rkg.paper(od.systems.protein_transduction).warp
