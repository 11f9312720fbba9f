"""Trajectory matching: the maximum likelihood, known noise, bounds and priors."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import least_squares

import odinfer as od
from odinfer.gp.standardisation import Units
from odinfer.likelihood import refinement as rf

TRUTH = np.array([2.0, 1.0, 4.0, 1.0])


def lv_field(t, x, a, b, c, d):
    return [a * x[0] - b * x[0] * x[1], -c * x[1] + d * x[0] * x[1]]


def integrate(theta, x0, t):
    return solve_ivp(lv_field, (t[0], t[-1]), x0, "DOP853", t, args=tuple(theta), rtol=1e-10, atol=1e-10).y.T


def refined(problem, phi=None, parts=2):
    """From the truth, as far as it is free."""
    lv = od.systems.lotka_volterra
    phi = problem.phi(TRUTH) if phi is None else phi
    curves = []
    for e in problem.data.experiments:
        x = lv.states(e.t)
        curves.append((e.t, x, np.transpose(lv_field(0.0, x.T, *TRUTH))))
    return rf.refine(problem, Units.of(problem).scale, rf.paths_through(problem, curves, parts), phi)


def reference(t, y, sigma=None, start=(*TRUTH, 5.0, 3.0), extra=None):
    """Maximum likelihood by scipy: weighted least squares, weights updated until the noise is profiled out."""
    y, p = np.asarray(y), np.array(start)
    sd = np.array([0.1, 0.1]) if sigma is None else np.asarray(sigma)
    for _ in range(12 if sigma is None else 1):

        def residual(v, sd=sd):
            r = ((integrate(v[:4], v[4:], t) - y) / sd).ravel()
            return np.append(r[np.isfinite(r)], [] if extra is None else extra(v))

        p = least_squares(residual, p, x_scale=np.abs(p), xtol=1e-12, ftol=1e-12, gtol=1e-12).x
        if sigma is None:
            sd = np.sqrt(np.nanmean((integrate(p[:4], p[4:], t) - y) ** 2, 0))
    n = np.isfinite(y).sum(0)
    r2 = np.nansum((integrate(p[:4], p[4:], t) - y) ** 2, 0)
    return p, sd, float(-0.5 * (n * np.log(2 * np.pi * sd**2) + r2 / sd**2).sum())


@pytest.fixture(scope="module")
def uneven(lv):
    """Noise of 0.05 on prey and 0.2 on predator, with missing cells."""
    y = lv.x + np.array([0.05, 0.2]) * np.random.default_rng(5).normal(size=lv.x.shape)
    y[3, 0] = y[10, 1] = np.nan
    return od.Data(lv.t, y, states=lv.model.states)


def test_it_reaches_the_optimum_of_scipy_with_the_noise_profiled_out(lv, uneven):
    found = refined(od.Problem(lv.model, uneven, positive=False))
    p, sd, loglik = reference(uneven.t, uneven.y)
    assert found.converged
    np.testing.assert_allclose(found.phi, p[:4], rtol=1e-4)
    np.testing.assert_allclose(found.paths[0].x0, p[4:], rtol=1e-4)
    np.testing.assert_allclose(found.sigma, sd, rtol=1e-4)
    assert found.loglik == pytest.approx(loglik, abs=1e-4)
    assert found.objective == -found.loglik


def test_a_log_scale_reaches_the_same_optimum(lv, uneven):
    plain = refined(od.Problem(lv.model, uneven, positive=False))
    log = refined(od.Problem(lv.model, uneven, scale=dict.fromkeys("abcd", "log"), positive=False))
    np.testing.assert_allclose(np.exp(log.phi), plain.phi, rtol=1e-4)
    assert log.loglik == pytest.approx(plain.loglik, abs=1e-5)


def test_a_known_sigma_is_used(lv, uneven):
    sigma = {"prey": 0.3, "predator": 0.01}  # far from the truth, so that it tells
    found = refined(od.Problem(lv.model, uneven, sigma=sigma, positive=False))
    p, _, loglik = reference(uneven.t, uneven.y, list(sigma.values()))
    np.testing.assert_allclose(found.phi, p[:4], rtol=1e-4)
    np.testing.assert_array_equal(found.sigma, list(sigma.values()))
    assert found.loglik == pytest.approx(loglik, abs=1e-3)
    free = refined(od.Problem(lv.model, uneven, positive=False))
    assert np.abs(found.phi / free.phi - 1).max() > 1e-3


def test_bounds_are_respected_and_reached(lv, uneven):
    p = od.Problem(lv.model, uneven, bounds={"c": (None, 3.5), "prey": (None, 4.9)}, positive=False)
    found = refined(p, np.array([2.0, 1.0, 3.0, 1.0]))
    assert found.phi[2] == pytest.approx(3.5)
    assert found.phi[2] <= 3.5 + 1e-12
    assert found.paths[0].x0[0] <= 4.9 + 1e-12
    assert found.loglik < refined(od.Problem(lv.model, uneven, positive=False)).loglik


def test_a_prior_enters_like_an_observation(lv, uneven):
    sigma = [0.05, 0.2]
    prior = {"a": ("normal", 3.0, 0.02)}
    found = refined(
        od.Problem(lv.model, uneven, sigma=dict(zip(lv.model.states, sigma, strict=True)), prior=prior, positive=False)
    )
    p, _, loglik = reference(uneven.t, uneven.y, sigma, extra=lambda v: [(v[0] - 3.0) / 0.02])
    np.testing.assert_allclose(found.phi, p[:4], rtol=1e-4)
    penalty = 0.5 * ((found.phi[0] - 3.0) / 0.02) ** 2 + 0.5 * np.log(2 * np.pi * 0.02**2)
    assert found.objective == pytest.approx(-loglik + penalty, abs=1e-3)


def test_experiments_share_parameters_and_have_their_own_initial_values(lv):
    t = np.linspace(0.0, 1.5, 14)
    x = integrate(TRUTH, [2.0, 1.0], t)
    rng = np.random.default_rng(3)
    two = od.Data(t, x + 0.1 * rng.normal(size=x.shape), states=lv.model.states)
    one = lv.sample(0.1, 7)
    problem = od.Problem(
        lv.model, od.Data.join({"one": one, "two": two}), sigma={"prey": 0.1, "predator": 0.1}, positive=False
    )
    slope = [np.transpose(lv_field(0.0, v.T, *TRUTH)) for v in (lv.x, x)]
    guess = rf.paths_through(problem, [(one.t, lv.x, slope[0]), (t, x, slope[1])], 2)
    found = rf.refine(problem, Units.of(problem).scale, guess, TRUTH)

    def residual(v):
        parts = (integrate(v[:4], v[4:6], one.t) - one.y, integrate(v[:4], v[6:], t) - two.y)
        return np.concatenate([part.ravel() for part in parts]) / 0.1

    right = least_squares(residual, [*TRUTH, 5, 3, 2, 1], xtol=1e-12, ftol=1e-12).x
    np.testing.assert_allclose(found.phi, right[:4], rtol=1e-4)
    np.testing.assert_allclose(np.concatenate([p.x0 for p in found.paths]), right[4:], rtol=1e-4)
    J = least_squares(residual, right, max_nfev=1).jac
    order = [4, 5, 6, 7, 0, 1, 2, 3]  # initial values first
    right = (J.T @ J)[np.ix_(order, order)]
    np.testing.assert_allclose(found.information.dense()[0], right, rtol=1e-2, atol=1e-3 * (J**2).sum())


def test_it_starts_from_a_path_that_solves_nothing(lv, lv_data):
    problem = od.Problem(lv.model, lv_data, positive=False)
    guess = rf.paths_through(problem, [(lv_data.t, lv_data.y, np.gradient(lv_data.y, lv_data.t, axis=0))])
    found = rf.refine(problem, Units.of(problem).scale, guess, 1.3 * TRUTH)
    assert found.loglik == pytest.approx(refined(problem).loglik, abs=1e-4)


def test_noise_free_data_do_not_give_an_infinite_likelihood(lv):
    found = refined(od.Problem(lv.model, od.Data(lv.t, lv.x, states=lv.model.states), positive=False))
    assert np.isfinite(found.loglik)
    np.testing.assert_allclose(found.phi, TRUTH, rtol=1e-5)
    assert (found.sigma > 0).all()


def test_no_trajectory_is_none_and_not_an_error():
    # x' = x² from 1 ends at t = 1: nothing reaches the data that go on to t = 3.
    t = np.linspace(0.0, 3.0, 8)
    model = od.Model.from_text("x' = x^2 + 0*k")
    problem = od.Problem(model, od.Data(t, 1.0 + t, states=["x"]), bounds={"x": (1.0, None)}, positive=False)
    guess = rf.paths_through(problem, [(t, (1.0 + t)[:, None], np.ones((8, 1)))])
    found = rf.refine(problem, np.ones(1), guess, np.array([1.0]))
    assert found is None


def test_pulses_between_observations_are_seen():
    model = od.Model.from_text("V' = -k*V + b*u\ninput u")
    times, values = [0.0], [0.0]
    for start in np.arange(2.2, 40.0, 5.0):
        times += [start, start + 1e-6, start + 0.1, start + 0.1 + 1e-6]
        values += [0.0, 1.0, 1.0, 0.0]
    u = (np.array([*times, 45.0]), np.array([*values, 0.0]))
    t = np.arange(0.0, 41.0, 5.0)
    x = od.simulate(model, {"k": 0.3, "b": 13.0}, [0.5], t, inputs={"u": u})
    y = x + 0.02 * np.random.default_rng(0).normal(size=x.shape)
    fit = od.fit(model, od.Data(t, y, states=["V"], inputs={"u": u}))
    for name, truth in (("k", 0.3), ("b", 13.0)):
        low, high = fit.interval()[name]
        assert low < truth < high
        assert fit.theta[name] == pytest.approx(truth, rel=0.3)


def test_a_narrow_curved_valley_is_followed_to_its_end():
    """x' = a x² up to 0.999 of its life: a and x0 can only move together, along a hyperbola as thin as a hair."""
    model, t = od.Model.from_text("x' = a*x^2"), np.linspace(0.0, 0.999, 25)
    x = 1.0 / (1.0 - t)[:, None]
    y = x + 0.01 * x.std() * np.random.default_rng(0).normal(size=x.shape)
    problem = od.Problem(model, od.Data(t, y, ["x"]), positive=False)
    near, far = (
        rf.maximise_from_initial(problem, x.std(0), [np.array([s])], np.array([a])) for a, s in ((0.9, 1.0), (0.5, 1.9))
    )
    assert near.converged
    assert far.loglik == pytest.approx(near.loglik, abs=1e-2)
    assert far.phi[0] == pytest.approx(1.0, abs=0.2)


@pytest.mark.parametrize(("m", "x"), [(1000.192, 2.000031), (1000.391, 2.000284), (1000.123, 2.000313)])
def test_a_jump_that_a_rough_integration_puts_too_late_is_followed(m, x):
    model = od.Model.from_text("x' = y; y' = m*(1 - x^2)*y - x")
    t = np.linspace(0.0, 2000.0, 40)
    states = solve_ivp(
        lambda _, s: [s[1], 1000.0 * (1.0 - s[0] ** 2) * s[1] - s[0]], (0.0, 2000.0), [2.0, 0.0], "Radau", t, rtol=1e-8
    ).y.T
    problem = od.Problem(model, od.Data(t, states, states=["x", "y"]), positive=False)
    found = rf.maximise_from_initial(problem, Units.of(problem).scale, [np.array([x, 3e-5])], np.array([m]), 0)
    assert found is not None
    np.testing.assert_allclose(found.paths[0].states(t)[:, 0], states[:, 0], atol=0.01)


def test_what_rounding_leaves_of_fast_rates_over_long_times_is_no_violation():
    # Rates of 1e3 over intervals of 1e6: terms of 1e9 that cancel, as before a long rest.
    model = od.Model.from_text("x' = -k*x + r*y; y' = k*x - r*y")
    t = np.append(np.linspace(0.0, 4e-3, 20), [1e6, 2e6, 3e6])
    x = od.simulate(model, [700.0, 500.0], [0.9, 0.1], t)
    y = x + 0.01 * np.random.default_rng(0).normal(size=x.shape)
    problem = od.Problem(model, od.Data(t, y, states=model.states), positive=False)
    found = rf.refine_from(problem, np.array([700.0, 500.0]), [(t, x)])
    assert found is not None
    assert found.converged
    assert problem.theta(found.phi) == pytest.approx([700.0, 500.0], rel=0.1)
