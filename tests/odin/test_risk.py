"""The ODIN risk: the paper's formula, its derivatives, and what may not change it."""

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odinfer as od
from odin.risks import risk_of
from odinfer.gp.kernels import KERNELS
from odinfer.odin.risk import Risk

FEW = settings(max_examples=20, derandomize=True, deadline=None)
SEEDS = st.integers(0, 2**32 - 1)


@functools.cache
def problem():
    """Two experiments with their own times, missing cells, log scales, a fixed parameter and priors."""
    lv = od.systems.lotka_volterra
    one = lv.sample(0.1, 1, np.linspace(0.0, 2.0, 8))
    y = np.array(lv.sample(0.2, 2, np.linspace(0.0, 1.5, 7)).y)
    y[2, 0] = y[4, 1] = np.nan
    two = od.Data(np.linspace(0.0, 1.5, 7), y, states=lv.model.states)
    return od.Problem(
        lv.model,
        od.Data.join({"one": one, "two": two}),
        fixed={"c": 4.0},
        scale={"a": "log", "d": "log"},
        prior={"a": ("lognormal", 1.5, 0.3), "b": ("normal", 0.5, 0.2)},
        positive=False,
    )


@functools.cache
def example(grid, temper) -> Risk:
    return risk_of(problem(), jitter=1e-2, grid=grid, temper=temper)


GRIDS = pytest.mark.parametrize(("grid", "temper"), [(1, 1.0), (2, 4.0)], ids=["paper", "finer and tempered"])


def point(risk, seed):
    """Anywhere plausible: z (M, K), φ (F,), γ (K,)."""
    rng = np.random.default_rng(seed)
    z = risk.mean + 0.3 * rng.normal(size=risk.mean.shape)
    return z, rng.uniform(-0.5, 1.0, len(risk.problem.free)), 10.0 ** rng.uniform(-6, 1, z.shape[1])


def value(risk, z, phi, gamma):
    return risk.value(z, risk.mismatch(z, risk.linearise(z, phi).f), gamma, phi)


def lv_field(x, theta):
    a, b, c, d = theta
    return np.stack([a * x[:, 0] - b * x[:, 0] * x[:, 1], -c * x[:, 1] + d * x[:, 0] * x[:, 1]], -1)


def by_cholesky(risk, z, phi, gamma, jitter=1e-2, temper=1.0):
    """Σ_k x'C⁻¹x + ‖x − y‖²/σ² + ‖f − Dx‖²_{(A + γI)⁻¹} + log det(A + γI) − 2 log p(θ), from the matrices."""
    p, units = risk.problem, risk.units
    theta = p.theta(phi)
    f = lv_field(units.user(z), theta) * units.time / units.scale
    total = 0.0
    for e, b in zip(p.data.experiments, risk.blocks, strict=True):
        rows, n = b.rows, b.y.shape[1]
        t = (risk.t[rows] - e.t[0]) / units.time
        for k, h in enumerate(risk.hypers):
            g = KERNELS[h.kernel].gram(t, t, np.array(h.shape))
            C = h.variance * g.C + jitter * np.eye(n)
            L = np.linalg.cholesky(C)
            white = np.linalg.solve(L, z[rows, k])
            total += white @ white / temper
            for time, y in zip(e.t, e.y[:, k], strict=True):
                if np.isfinite(y):
                    i = rows.start + int(np.argmin(np.abs(risk.t[rows] - time)))
                    total += (z[i, k] - (y - units.mean[k]) / units.scale[k]) ** 2 / h.noise
            D = h.variance * np.linalg.solve(C, g.dC.T).T
            A = temper * (h.variance * g.dCd - D @ (h.variance * g.Cd) + jitter * np.eye(n))
            L = np.linalg.cholesky(A + gamma[k] * np.eye(n))
            white = np.linalg.solve(L, f[rows, k] - D @ z[rows, k])
            total += white @ white + 2 * np.log(np.diag(L)).sum()
    a, b = theta[0], theta[1]
    total += 2 * (0.5 * (np.log(a / 1.5) / 0.3) ** 2 + np.log(a) + 0.5 * np.log(2 * np.pi * 0.3**2))
    return total + 2 * (0.5 * ((b - 0.5) / 0.2) ** 2 + 0.5 * np.log(2 * np.pi * 0.2**2))


# --- the formula and its derivatives


@GRIDS
@FEW
@given(seed=SEEDS)
def test_the_eigen_form_equals_the_papers_formula_by_cholesky(grid, temper, seed):
    risk = example(grid, temper)
    z, phi, gamma = point(risk, seed)
    assert value(risk, z, phi, gamma) == pytest.approx(by_cholesky(risk, z, phi, gamma, temper=temper), rel=1e-10)


@GRIDS
@FEW
@given(seed=SEEDS)
def test_the_gradient_equals_finite_differences(grid, temper, seed):
    risk = example(grid, temper)
    z, phi, gamma = point(risk, seed)
    lin = risk.linearise(z, phi)
    gz, gphi, ggamma = risk.gradient(z, lin, risk.mismatch(z, lin.f), gamma, phi)
    rng = np.random.default_rng(seed)

    def along(dz, dphi, dlog, h=1e-5):
        there = value(risk, z + h * dz, phi + h * dphi, gamma * np.exp(h * dlog))
        return (there - value(risk, z - h * dz, phi - h * dphi, gamma * np.exp(-h * dlog))) / (4 * h)

    none = np.zeros_like(z), np.zeros_like(phi), np.zeros_like(gamma)
    dz = rng.normal(size=z.shape)
    scale = np.abs(gz).max()
    assert along(dz, *none[1:]) == pytest.approx((gz * dz).sum(), rel=1e-5, abs=1e-6 * scale)
    for i in range(len(phi)):
        assert along(none[0], np.eye(len(phi))[i], none[2]) == pytest.approx(gphi[i], rel=1e-5, abs=1e-6 * scale)
    for k in range(len(gamma)):
        assert along(*none[:2], np.eye(len(gamma))[k]) == pytest.approx(ggamma[k], rel=1e-5, abs=1e-4)


def whitened(risk, z, phi, gamma):
    """The residual vector of which half the risk at fixed γ, without the prior on θ, is half the squared norm."""
    f = lv_field(risk.units.user(z), risk.problem.theta(phi)) * risk.units.time / risk.units.scale
    parts = []
    for b in risk.blocks:
        for k in range(z.shape[1]):
            zk = z[b.rows, k]
            parts.append(np.linalg.cholesky(b.smoother.C_inv[k]).T @ zk)
            parts.append(np.sqrt(b.weight[k]) * (zk - b.y[k]))
            gap = b.smoother.Q[k].T @ (f[b.rows, k] - b.smoother.D[k] @ zk)
            parts.append(gap / np.sqrt(b.smoother.w[k] + gamma[k]))
    return np.concatenate(parts)


@GRIDS
@settings(FEW, max_examples=8)
@given(seed=SEEDS)
def test_gauss_newton_blocks_equal_those_of_differenced_residuals(grid, temper, seed):
    risk = example(grid, temper)
    z, phi, gamma = point(risk, seed)
    gamma = np.maximum(gamma, 1e-3)
    M, K = z.shape
    F, h = len(phi), 1e-6

    def column(i):
        dz, dphi = np.zeros(M * K), np.zeros(F)
        (dz if i < M * K else dphi)[i if i < M * K else i - M * K] = h
        dz = dz.reshape(K, M).T
        up, down = whitened(risk, z + dz, phi + dphi, gamma), whitened(risk, z - dz, phi - dphi, gamma)
        return (up - down) / (2 * h)

    J = np.stack([column(i) for i in range(M * K + F)], -1)  # unknowns state-major over all points, then φ
    H, g = J.T @ J, J.T @ whitened(risk, z, phi, gamma)
    lin = risk.linearise(z, phi)
    normal = risk.normal(z, lin, risk.mismatch(z, lin.f), gamma, phi)
    tolerance = 1e-6 * np.abs(H).max()
    for i, b in enumerate(risk.blocks):
        index = (np.arange(K)[:, None] * M + np.arange(M)[b.rows]).ravel()
        np.testing.assert_allclose(normal.H[i], H[np.ix_(index, index)], atol=tolerance)
        np.testing.assert_allclose(normal.border[i], H[index, M * K :], atol=tolerance)
        np.testing.assert_allclose(normal.g[i], g[index], atol=1e-6 * np.abs(g).max())
    prior = risk.problem.prior_at(phi)
    np.testing.assert_allclose(normal.H_phi, H[M * K :, M * K :] + prior.curvature, atol=tolerance)
    np.testing.assert_allclose(normal.g_phi, g[M * K :] + prior.gradient, atol=1e-6 * np.abs(g).max())


@FEW
@given(seed=SEEDS)
def test_the_prior_on_its_own_scale_equals_finite_differences(seed):
    phi, h = np.random.default_rng(seed).uniform(-0.5, 1.0, len(problem().free)), 1e-5
    here, bend = problem().prior_at(phi), np.empty((len(phi), len(phi)))
    for i, e in enumerate(np.eye(len(phi))):
        up, down = problem().prior_at(phi + h * e), problem().prior_at(phi - h * e)
        assert (up.value - down.value) / (2 * h) == pytest.approx(here.gradient[i], rel=1e-6, abs=1e-6)
        bend[i] = (up.gradient - down.gradient) / (2 * h)
    w, V = np.linalg.eigh(0.5 * (bend + bend.T))
    np.testing.assert_allclose(here.curvature, (V * np.maximum(w, 0)) @ V.T, rtol=1e-6, atol=1e-6)


def test_where_the_field_or_the_states_are_not_finite_the_risk_is_infinite():
    risk = example(1, 1.0)
    z, phi, gamma = point(risk, 0)
    assert value(risk, 1e200 * z, phi, gamma) == np.inf
    assert value(risk, z * np.nan, phi, gamma) == np.inf
    assert value(risk, z, np.where(risk.problem.is_log, 300.0, phi), gamma) > 1e100


# --- what may not change it


def parts_of(problem, kernel="matern52"):
    risk = risk_of(problem, kernel, jitter=1e-2)
    z = risk.mean + 0.1 * np.sin(np.arange(risk.mean.size)).reshape(risk.mean.shape)
    return risk, z


@FEW
@given(factor=st.floats(0.01, 100.0), shift=st.floats(-50.0, 50.0))
def test_rescaled_and_shifted_time_leaves_the_risk(lv, lv_data, factor, shift):
    gamma, theta = np.array([0.1, 0.01]), np.array([2.1, 0.9, 3.8, 1.1])
    risk, z = parts_of(od.Problem(lv.model, lv_data, positive=False))
    moved = od.Data(factor * lv_data.t + shift, lv_data.y, states=lv_data.states)
    other, _ = parts_of(od.Problem(lv.model, moved, positive=False))
    # Rates are per unit of time, so they shrink as times grow.
    assert value(other, z, theta / factor, gamma) == pytest.approx(value(risk, z, theta, gamma), rel=1e-7)


@pytest.fixture(scope="module")
def affine():
    """Lotka–Volterra in other units: P = m1 + s1*prey, Q = m2 + s2*predator."""
    return od.Model.from_text(
        """P' = s1*(a*p - b*p*q)
        Q' = s2*(-c*q + d*p*q)
        p = (P - m1)/s1
        q = (Q - m2)/s2"""
    )


def in_other_units(lv_data, affine, scale, shift, **options):
    fixed = dict(zip(("s1", "s2", "m1", "m2"), (*scale, *shift), strict=True))
    data = od.Data(lv_data.t, np.asarray(shift) + np.asarray(scale) * lv_data.y, states=["P", "Q"])
    return od.Problem(affine, data, fixed=fixed, positive=False, **options)


@FEW
@given(
    scale=st.tuples(st.floats(0.01, 100.0), st.floats(-100.0, -0.01)),
    shift=st.tuples(st.floats(-5.0, 5.0), st.floats(-5.0, 5.0)),
)
def test_rescaled_and_shifted_states_leave_the_risk(lv, lv_data, affine, scale, shift):
    gamma = np.array([0.1, 0.01])
    theta = {"a": 2.1, "b": 0.9, "c": 3.8, "d": 1.1}
    risk, z = parts_of(od.Problem(lv.model, lv_data, positive=False))
    other, _ = parts_of(in_other_units(lv_data, affine, scale, shift))
    phi = np.array([theta[p] for p in other.problem.free])
    mine = value(risk, z, np.array([theta[p] for p in risk.problem.free]), gamma)
    assert value(other, z * np.sign(scale), phi, gamma) == pytest.approx(mine, rel=1e-6)


SWAPPED = "predator' = d*predator*prey - predator*c\nprey' = prey*a - predator*b*prey"


def test_permuted_states_and_parameters_leave_the_risk(lv, lv_data):
    theta = {"a": 2.1, "b": 0.9, "c": 3.8, "d": 1.1}
    swapped = od.Model.from_text(SWAPPED)
    assert swapped.parameters == ("d", "c", "a", "b")
    risk, z = parts_of(od.Problem(lv.model, lv_data, positive=False))
    other, _ = parts_of(od.Problem(swapped, lv_data, positive=False))
    mine = value(risk, z, np.array([theta[p] for p in risk.problem.free]), np.array([0.1, 0.01]))
    theirs = value(other, z[:, ::-1], np.array([theta[p] for p in swapped.parameters]), np.array([0.01, 0.1]))
    assert theirs == pytest.approx(mine, rel=1e-9)


def test_optima_in_other_units_and_orders_agree(lv, lv_data, lv_fit, affine):
    faster = od.fit(lv.model, od.Data(60 * lv_data.t + 7, lv_data.y, states=lv_data.states))
    other = od.fit(in_other_units(lv_data, affine, (0.02, 30.0), (1.0, -4.0)))
    swapped = od.fit(od.Model.from_text(SWAPPED), lv_data)
    for stage in ("odin", "refined"):
        for p, v in lv_fit.stages[stage].theta.items():
            assert 60 * faster.stages[stage].theta[p] == pytest.approx(v, rel=2e-3)
            assert other.stages[stage].theta[p] == pytest.approx(v, rel=2e-3)
            assert swapped.stages[stage].theta[p] == pytest.approx(v, rel=2e-3)


def test_the_risk_of_uncoupled_states_is_the_sum_of_their_risks():
    t = np.linspace(0.0, 3.0, 10)
    y = np.stack([3 * np.exp(-t), 1 / (1 + 4 * np.exp(-2 * t))], -1) + 0.02 * np.random.default_rng(0).normal(
        size=(10, 2)
    )
    both = od.Model.from_text("x' = -k*x\nn' = r*n*(1 - n)")
    gamma, total = np.array([0.2, 0.03]), 0.0
    risk, z = parts_of(od.Problem(both, od.Data(t, y, states=both.states), positive=False))
    for i, (text, theta) in enumerate((("x' = -k*x", 1.1), ("n' = r*n*(1 - n)", 1.9))):
        model = od.Model.from_text(text)
        alone, _ = parts_of(od.Problem(model, od.Data(t, y[:, i], states=model.states), positive=False))
        total += value(alone, z[:, i : i + 1], np.array([theta]), gamma[i : i + 1])
    assert value(risk, z, np.array([1.1, 1.9]), gamma) == pytest.approx(total, rel=1e-9)
