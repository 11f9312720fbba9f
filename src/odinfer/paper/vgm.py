"""VGM: variational gradient matching (Gorbach et al. 2017) for equations linear in θ and in every single state."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import lsq_linear

from odinfer.checks import checked_integer
from odinfer.errors import InputError, Status
from odinfer.gp.curves import Curve
from odinfer.gp.kernels import kernel
from odinfer.gp.smoother import noise_sd, smooth_states
from odinfer.gp.standardisation import Units
from odinfer.methods import preset
from odinfer.odin.dense_engine import Dense
from odinfer.odin.gauss_newton import Solution
from odinfer.odin.risk import Linear
from odinfer.problem.problem import Problem
from odinfer.progress import Progress, no_progress
from odinfer.result.assemble import assemble, named, stage
from odinfer.result.fit import Fit

Array = NDArray[np.float64]

# Derivatives that are equal up to rounding differ by less than this, relative to the largest in their equation.
_SLOPE_TOLERANCE = 1e-7
_PROBES = 4


@dataclass(frozen=True)
class Vgm:
    """Mean-field variational inference with q(θ) Π_u q(x_u), all Gaussian.

    The target is p(x, θ) ∝ Π_k p(x_k | y_k) N(f_k(x, θ) | D_k x_k, A_k + γI) p(θ). With L_k = (A_k + γI)⁻¹ every
    factor has a closed form given the others. As published, the other factors enter by their means (second
    moments of their products are left out), so that a sweep is exact coordinate ascent of log p at the means:
    the evidence bound of factors whose spread is held fixed, up to a constant. This is the bound that is reported,
    and it never falls. q(θ) and q(x_u) have the covariances of their conditional distributions.

    Bounds on θ and states are kept by maximising each quadratic inside its box. Priors on θ must be normal or
    uniform.

    Args:
        kernel: a name of `odinfer.gp.kernels.KERNELS`, or "auto": per state by evidence.
        gamma: the fixed γ, a variance of standardised derivatives.
        jitter: added to the diagonals of C and A.
        grid: grid points per gap between observations.
        shared: one set of hyperparameters for all states.
        scale_time: standardise time.
        sweeps: at most so many rounds over θ and all states.
        tolerance: stop when a sweep raises the bound by less, in nats.
        weak_prior: a weak prior on the noise ratio keeps the evidence from explaining all noise away.
    """

    kernel: str = "auto"
    gamma: float = 0.1
    jitter: float = 1e-4
    grid: int = 1
    shared: bool = False
    scale_time: bool = True
    sweeps: int = 500
    tolerance: float = 1e-4
    weak_prior: bool = True

    name = "vgm"

    def __post_init__(self) -> None:
        if self.kernel != "auto":
            kernel(self.kernel)
        for option in ("gamma", "jitter", "tolerance"):
            value = getattr(self, option)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < np.inf:
                raise InputError(f"{option} must be a positive number, not {value!r}")
        for option in ("grid", "sweeps"):
            checked_integer(option, getattr(self, option), 1)

    @staticmethod
    def paper(system: Any, **changes: Any) -> Vgm:
        """The authors' kernels for one of the paper's systems, given as a System or by name; γ is the default here."""
        presets: dict[str, dict[str, Any]] = {
            "lotka_volterra": {"kernel": "rbf", "shared": True},
            "lorenz96": {"kernel": "rbf"},
        }
        return Vgm(**preset(system, presets) | {"weak_prior": False} | changes)

    @staticmethod
    def quick(**changes: Any) -> Vgm:
        """A cheap configuration for tests and first looks."""
        cheap: dict[str, Any] = {"kernel": "rbf", "sweeps": 60, "tolerance": 1e-2}
        return Vgm(**cheap | changes)

    def fit(self, problem: Problem, seed: int = 0, progress: Progress | None = None) -> Fit:
        """Infer θ and states; nothing is random, so the seed is only recorded.

        Raises:
            InputError: an equation is not linear in θ or in a state; the message names both.
        """
        progress = progress or no_progress
        progress("checking the equations", 0.0)
        problem.check_field()
        check_linear(problem)
        flat = _on_linear_scale(problem)
        clock = time.perf_counter()
        progress("smoothing the data", 0.2)
        units = Units.of(flat, self.scale_time)
        hypers = smooth_states(flat, units, self.kernel, self.shared, weak_prior=self.weak_prior)
        risk = Dense.of(flat, units, hypers, self.jitter, self.grid)
        progress("coordinate ascent", 0.5)
        q = ascend(risk, self.gamma, self.sweeps, self.tolerance)
        seconds = time.perf_counter() - clock
        finite = bool(np.isfinite(q.phi).all() and np.isfinite(q.z).all() and np.isfinite(q.bound).all())
        settled = finite and (len(q.bound) < 2 or q.bound[-1] - q.bound[-2] <= self.tolerance)
        status = Status.NOT_FINITE if not finite else Status.CONVERGED if settled else Status.MAX_ITERATIONS
        curves = _curves(risk, q) if finite else risk.mean_curves()
        theta = flat.theta(q.phi if finite else np.full(len(q.phi), np.nan))
        names = problem.model.states
        progress("done", 1.0)
        result = stage(
            problem, theta, curves, noise_sd(units, hypers),
            gamma=named(names, np.full(len(names), float(self.gamma))), objective=-q.bound[-1],
            seconds=seconds, note=status.value,
        )  # fmt: skip
        return assemble(
            problem, self, seed, {"vgm": result}, curves,
            status=status.value, converged=status.converged, units=units,
            gradients=risk.gradients(_solution(q)) if finite else None,
            details={
                "bound": {"first": q.bound[0], "last": q.bound[-1], "sweeps": len(q.bound) - 1,
                          "largest_fall": -float(np.diff(q.bound).min(initial=0.0)) + 0.0},
                "bound_trace": [float(v) for v in q.bound],
                "theta_sd": named(problem.free, np.sqrt(np.maximum(np.diag(q.cov), 0.0))),
                "kernels": {n: h.kernel for n, h in zip(names, hypers, strict=True)},
            },
        )  # fmt: skip


class Factors(NamedTuple):
    """The variational factors: means z (M, K), φ (F,); sd of z (M, K), covariance of φ (F, F); bound per sweep."""

    z: Array
    phi: Array
    sd: Array
    cov: Array
    gamma: Array
    bound: list[float]


def ascend(risk: Dense, gamma: float, sweeps: int, tolerance: float) -> Factors:
    """Coordinate ascent from the GP means: θ, then every state in turn, until the bound stands still."""
    K = risk.mean.shape[1]
    gammas = np.full(K, float(gamma))
    z = np.clip(risk.mean, *risk.z_bounds)
    phi = np.clip(np.full(len(risk.problem.free), 0.1), *risk.problem.phi_bounds)
    roots = [np.swapaxes(b.smoother.Q, 1, 2) / np.sqrt(b.smoother.w + gamma)[..., None] for b in risk.blocks]
    sd, bound = np.full_like(z, np.nan), []
    for _ in range(sweeps + 1):
        phi, cov = theta_factor(risk, roots, z, phi)
        lin = risk.linearise(z, phi)
        bound.append(-0.5 * risk.value(z, risk.mismatch(z, lin.f), gammas, phi))
        if not np.isfinite(bound[-1]) or (len(bound) > 1 and bound[-1] - bound[-2] <= tolerance):
            break
        if len(bound) > sweeps:
            break
        z = z.copy()
        for u in range(K):
            z[:, u], sd[:, u] = state_factor(risk, roots, z, lin, u)
            if u + 1 < K:
                lin = risk.linearise(z, phi)
    if np.isnan(sd).any() and np.isfinite(bound[-1]):  # no sweep was needed
        sd = np.stack([state_factor(risk, roots, z, lin, u)[1] for u in range(K)], -1)
    return Factors(z, phi, sd, cov, gammas, bound)


def theta_factor(risk: Dense, roots: list[Array], z: Array, phi: Array) -> tuple[Array, Array]:
    """q(θ) given x: precision Σ B_kᵀ L_k B_k, mean = precision⁻¹ Σ B_kᵀ L_k (D_k x_k − b_k) inside the bounds.

    Args:
        risk: the problem's matrices.
        roots: per block W (K, N, N) with WᵀW = L.
        z: states (M, K).
        phi: any θ (F,); f is linear, so it is only where f is expanded.

    Returns:
        Mean (F,) and covariance (F, F).
    """
    lin = risk.linearise(z, phi)
    F = len(phi)
    H, g = np.zeros((F, F)), np.zeros(F)
    for b, W in zip(risk.blocks, roots, strict=True):
        zb = z[b.rows].T[..., None]
        J = (W @ lin.fphi[b.rows].transpose(1, 0, 2)).reshape(-1, F)
        r = (W @ (b.smoother.D @ zb - lin.f[b.rows].T[..., None])).ravel()
        H += J.T @ J
        g += J.T @ r
    prior = risk.problem.prior_at(phi)
    H, g = H + prior.curvature, g - prior.gradient
    return _box_maximum(H, g + H @ phi, *risk.problem.phi_bounds)


def state_factor(risk: Dense, roots: list[Array], z: Array, lin: Linear, u: int) -> tuple[Array, Array]:
    """q(x_u) given θ and the other states: mean and sd (M,).

    The precision is that of the GP posterior, C⁻¹ + σ⁻²I, plus Σ_k B_ukᵀ L_k B_uk with B_uu = diag(R_uu) − D and
    B_uk = diag(R_uk) where R_uk = ∂f_k/∂x_u.
    """
    mean, sd = np.empty(len(z)), np.empty(len(z))
    low, high = (b[u] for b in risk.z_bounds)
    for b, W in zip(risk.blocks, roots, strict=True):
        R = lin.fz[b.rows, :, u].T  # (K, N)
        touched = np.flatnonzero((R != 0).any(1) | (np.arange(len(R)) == u))
        J = W[touched] * R[touched, None, :]
        zb = z[b.rows].T
        miss = lin.f[b.rows].T - (b.smoother.D @ zb[..., None])[..., 0]
        J[touched == u] -= W[u] @ b.smoother.D[u]
        r = (W[touched] @ miss[touched, :, None])[..., 0].ravel()
        J = J.reshape(-1, J.shape[-1])
        data = J.T @ J
        H = data + b.smoother.C_inv[u] + np.diag(b.weight[u])
        # The terms linear in x_u: those of the mismatch about the present x_u, and the observations.
        g = data @ zb[u] - J.T @ r + b.weight[u] * b.y[u]
        mean[b.rows], cov = _box_maximum(H, g, np.full(len(g), low), np.full(len(g), high))
        sd[b.rows] = np.sqrt(np.maximum(np.diag(cov), 0.0))
    return mean, sd


def _box_maximum(H: Array, g: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """argmax of gᵀv − ½ vᵀHv over low ≤ v ≤ high, and H⁻¹; directions without information stay at zero."""
    if not len(g):
        return g, H
    if not (np.isfinite(H).all() and np.isfinite(g).all()):
        return np.full(len(g), np.nan), np.full(H.shape, np.nan)
    d = np.sqrt(np.maximum(np.diag(H), 1e-300))
    scaled = H / np.outer(d, d)
    cov = np.linalg.pinv(scaled, rcond=1e-13, hermitian=True) / np.outer(d, d)
    v = cov @ g
    if ((v >= low) & (v <= high)).all():
        return v, cov
    w, V = np.linalg.eigh(scaled)
    root = np.sqrt(np.maximum(w, 1e-13 * w[-1]))
    found = lsq_linear((V * root).T, (V.T @ (g / d)) / root, (low * d, high * d), method="bvls", tol=1e-12)
    return np.clip(found.x / d, low, high), cov


def _on_linear_scale(problem: Problem) -> Problem:
    """The same problem with every parameter on the linear scale, where f is linear, within the same limits."""
    p = problem.model.parameters
    limits = {n: problem.limits(n) for n in (*p, *problem.model.states)}
    flat = replace(problem, scale=dict.fromkeys(p, "linear"), bounds=limits, positive=False)
    if flat.penalty:
        bends = [flat.penalty.derivatives(np.full(len(p), v))[2] for v in (0.5, 2.0)]
        if not np.allclose(bends[0], bends[1]):
            raise InputError("vgm takes only normal and uniform priors on parameters: others have no closed form")
    return flat


def check_linear(problem: Problem) -> None:
    """Raise InputError where f is not linear in θ, or not in some single state given the others.

    A function is linear in v if its derivatives by v do not change with v; so each is compared at random places
    within the data that differ in v alone.
    """
    m, rng = problem.model, np.random.default_rng(0)
    names = (*m.states, *problem.free)
    K, F = len(m.states), len(problem.free)
    y = np.concatenate([e.y for e in problem.data.experiments])
    e = problem.data.experiments[0]
    t = np.repeat(rng.choice(e.t, _PROBES), 1 + K + F)
    u = problem.inputs_at(0, t)
    low, high = np.nanmin(y, 0), np.nanmax(y, 0)
    high = high + 1e-3 * np.abs(high) + 1e-9  # a state that never changed is still varied
    theta_limits = np.array([problem.limits(p) for p in problem.free]).reshape(-1, 2)
    bottom = np.maximum(theta_limits[:, 0], np.minimum(0.1, theta_limits[:, 1] - 1.0))
    top = np.minimum(theta_limits[:, 1], bottom + 2.0)
    low, high = np.r_[low, bottom], np.r_[high, top]
    base, other = rng.uniform(low, high, (2, _PROBES, K + F))
    points = np.repeat(base[:, None], 1 + K + F, 1)  # the place itself, then with one variable changed at a time
    index = np.arange(K + F)
    points[:, 1 + index, index] = other
    flat = points.reshape(-1, K + F)
    theta = np.tile([problem.fixed.get(p, np.nan) for p in m.parameters], (len(flat), 1))
    theta[:, problem.free_index] = flat[:, K:]
    _, fx, ft = m.linearise(t, flat[:, :K], theta, u)
    slopes = np.concatenate([fx, ft[..., problem.free_index]], -1).reshape(_PROBES, 1 + K + F, K, K + F)
    size = np.nan_to_num(np.abs(slopes)).max((0, 1, 3))[:, None]
    change = np.abs(slopes[:, 1:] - slopes[:, :1])  # (probe, variable changed, equation, derivative by)
    bent = (~(change <= _SLOPE_TOLERANCE * (size + 1e-300))).any(0)
    # A state may multiply others and parameters, so only its own slope counts; parameters must not even do that.
    counts = np.eye(K + F, dtype=bool)
    counts[K:, K:] = True
    wrong = np.argwhere((bent & counts[:, None, :]).transpose(1, 0, 2))
    if len(wrong):
        k, *pair = next((w for w in wrong if w[1] == w[2]), wrong[0])
        i, j = sorted(pair)
        what = f"'{names[i]}' appears" if i == j else f"'{names[i]}' and '{names[j]}' together appear"
        raise InputError(
            f"vgm needs equations that are linear in the parameters and in every single state, but {what} nonlinearly "
            f"in the equation for {m.states[k]}; use odin instead"
        )


def _solution(q: Factors) -> Solution:
    return Solution(q.z, q.phi, q.gamma, -q.bound[-1], len(q.bound), True)


def _curves(risk: Dense, q: Factors) -> list[Curve]:
    """The means between grid times from the GP given x and f, with the sd of q(x) in between by interpolation."""
    found = []
    for b, c in zip(risk.blocks, risk.curves(_solution(q)), strict=True):
        sd = np.stack([np.interp(c.t, risk.t[b.rows], s) for s in q.sd[b.rows].T], -1)
        found.append(replace(c, sd=risk.units.user_sd(sd)))
    return found
