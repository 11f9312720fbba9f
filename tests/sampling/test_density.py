"""The samplers' log densities against the same formulas in plain numpy."""

import functools

import numpy as np
import pytest

import odinfer as od
from odinfer._jax import jax
from odinfer.errors import InputError
from odinfer.gp.smoother import smooth_states
from odinfer.gp.standardisation import Units
from odinfer.odin.dense_engine import Dense
from odinfer.sampling import density as ds


def risk_of(problem):
    units = Units.of(problem)
    return Dense.of(problem, units, smooth_states(problem, units, "matern52"), 1e-2)


@pytest.fixture(scope="module")
def problem():
    """Two experiments, a missing cell, a fixed parameter, a log scale and priors."""
    lv = od.systems.lotka_volterra
    one = lv.sample(0.1, 1, np.linspace(0.0, 2.0, 6))
    y = np.array(lv.sample(0.2, 2, np.linspace(0.0, 1.5, 5)).y)
    y[2, 0] = np.nan
    two = od.Data(np.linspace(0.0, 1.5, 5), y, states=lv.model.states)
    return od.Problem(
        lv.model,
        od.Data.join({"one": one, "two": two}),
        fixed={"c": 4.0},
        scale={"a": "log"},
        sigma={"prey": 0.1, "predator": 0.2},
        prior={"a": ("lognormal", 1.5, 0.3), "b": ("normal", 0.5, 0.2), "d": lambda v: 0.7 * v**2},
        positive=False,
    )


@pytest.fixture(scope="module")
def risk(problem):
    return risk_of(problem)


def by_hand(risk, z, phi, gamma):
    """log p(z, φ | y, γ) block by block with dense covariances; a is on a log scale."""
    p, u = risk.problem, risk.units
    a, b, d = np.exp(phi[0]), phi[1], phi[2]
    total = 0.0
    for block in risk.blocks:
        zb = z[:, block.rows]
        x = u.mean[:, None] + u.scale[:, None] * zb
        f = np.stack([a * x[0] - b * x[0] * x[1], -4.0 * x[1] + d * x[0] * x[1]]) * (u.time / u.scale)[:, None]
        for k in range(2):
            s = block.smoother
            S = (s.Q[k] * s.w[k]) @ s.Q[k].T + gamma[k] * np.eye(zb.shape[1])
            r = f[k] - s.D[k] @ zb[k]
            total -= 0.5 * (r @ np.linalg.solve(S, r) + np.linalg.slogdet(S)[1])
            total -= 0.5 * zb[k] @ s.C_inv[k] @ zb[k]
            seen = block.weight[k] > 0
            total -= 0.5 * ((zb[k] - block.y[k])[seen] ** 2).sum() / risk.hypers[k].noise
    total -= 0.5 * (np.log(a / 1.5) / 0.3) ** 2 + np.log(a)
    total -= 0.5 * ((b - 0.5) / 0.2) ** 2
    total -= 0.7 * d**2
    assert p.free == ("a", "b", "d")
    return total + phi[0]  # dθ/dφ


def points(risk):
    rng = np.random.default_rng(3)
    for _ in range(5):
        z = risk.mean.T + 0.3 * rng.normal(size=risk.mean.T.shape)
        yield z, rng.uniform(0.1, 1.0, 3), 10.0 ** rng.uniform(-3, 0, 2)


def test_the_posterior_is_the_formula_up_to_a_constant_and_a_wrong_one_shows(risk):
    form, target = ds.posterior_density(risk)
    density = jax.jit(functools.partial(ds.log_posterior, form))
    gaps = [float(density(target, z, phi, g)) - by_hand(risk, z, phi, g) for z, phi, g in points(risk)]
    np.testing.assert_allclose(gaps, gaps[0], atol=1e-8)

    wrong = [float(density(target, z, phi, 1.1 * g)) - by_hand(risk, z, phi, g) for z, phi, g in points(risk)]
    assert np.ptp(wrong) > 1e-3  # the check can fail


def test_the_quadratic_form_is_the_same_density(risk):
    form, target = ds.posterior_density(risk)
    field, prior = (jax.jit(functools.partial(g, form)) for g in (ds.vector_field, ds.log_prior))
    gaps = []
    for z, phi, _ in points(risk):
        gamma = np.array([0.1, 0.02])
        q = ds.quadratic_form(target, gamma)
        s = np.concatenate([z, np.asarray(field(target, z, phi))], 1)
        value = -0.5 * np.einsum("ka,kab,kb", s, q.B, s) + (q.b * z).sum()
        gaps.append(value + float(prior(target.parameters, phi)) - by_hand(risk, z, phi, gamma))
    np.testing.assert_allclose(gaps, gaps[0], atol=1e-8)


def test_the_gamma_prior_and_ranges(lv, lv_data):
    risk = risk_of(od.Problem(lv.model, lv_data, bounds={"b": (0.5, None)}, positive=False))
    form, target = ds.posterior_density(risk, 3.0, (-1.0, 7.0), (ds.GAMMA, 4.0, 2.0))
    values = [float(ds.log_prior(form, target.parameters, np.full(4, v))) for v in (1.0, 3.0)]
    assert values[1] - values[0] == pytest.approx(4 * (3 * np.log(3.0) - 2 * 2.0))
    assert target.parameters.low.tolist() == [0.0, 0.5, 0.0, 0.0]
    assert target.parameters.high.tolist() == [7.0] * 4
    assert target.z_high.tolist() == [3.0, 3.0]
    with pytest.raises(InputError, match="nothing in common"):
        ds.posterior_density(risk, None, (0.0, 0.4))


def test_a_joint_prior_is_a_function_of_all_parameters(lv, lv_data):
    risk = risk_of(od.Problem(lv.model, lv_data, prior=lambda p: p["a"] * p["d"], positive=False))
    form, target = ds.posterior_density(risk)
    assert float(ds.log_prior(form, target.parameters, np.array([2.0, 1.0, 4.0, 3.0]))) == pytest.approx(-6.0)


def test_transformations_to_the_real_line_and_their_jacobian():
    low, high = np.array([0.0, -np.inf, 1.0, -np.inf]), np.array([2.0, 3.0, np.inf, np.inf])
    v = np.array([0.3, 1.0, 5.0, -2.0])
    r = ds.unconstrain(v, low, high)
    back, jacobian = ds.constrain(r, low, high)
    np.testing.assert_allclose(back, v, rtol=1e-12)
    h = 1e-6
    ends = [[np.asarray(ds.constrain(r + side * e, low, high)[0]) @ e for side in (h, -h)] for e in np.eye(4)]
    slopes = np.array([(up - down) / (2 * h) for up, down in ends])
    assert float(jacobian) == pytest.approx(np.log(slopes).sum(), abs=1e-6)


@pytest.mark.parametrize("size", [3, 40])
def test_the_forward_mode_gives_the_same_value_and_gradient(size):
    def log_density(data, r):
        return -((data * r) ** 4).sum() + jax.numpy.prod(jax.numpy.cos(r))

    rng = np.random.default_rng(size)
    data, r = rng.normal(size=size), rng.normal(size=(2, size))
    expected = jax.vmap(jax.value_and_grad(log_density, 1), (None, 0))(data, r)
    found = jax.jit(jax.vmap(jax.value_and_grad(ds.forward_mode_gradient(log_density), 1), (None, 0)))(data, r)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-10)
