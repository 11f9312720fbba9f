"""Minimise the risk: Gauss–Newton with the exact γ update, or the paper's L-BFGS-B."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from odinfer.problem import Problem
from odinfer.risk import Linear, Normal, Risk, best_gamma

Array = NDArray[np.float64]


@dataclass(frozen=True)
class GammaRule:
    """How γ is treated: learned within bounds, or held at `fixed`; one for all states if shared."""

    bounds: tuple[float, float] = (1e-6, 1e3)
    fixed: float | None = None
    shared: bool = False

    def update(self, w: Array, e: Array) -> Array:
        if self.fixed is not None:
            return np.full(len(w), self.fixed)
        return best_gamma(w, e, self.bounds, self.shared)


@dataclass(frozen=True)
class Solution:
    """Where a minimisation of the risk ended: z (M, K), φ (F,), γ (K,)."""

    z: Array
    phi: Array
    gamma: Array
    risk: float
    iterations: int
    converged: bool


class Objective(Protocol):
    """What the optimisers need of a risk, for few states (risk.py) or many (sparse_risk.py)."""

    @property
    def problem(self) -> Problem: ...
    @property
    def w(self) -> Array: ...
    @property
    def z_bounds(self) -> tuple[Array, Array]: ...
    def linearise(self, z: Array, phi: Array) -> Any: ...
    def mismatch(self, z: Array, f: Array) -> Array: ...
    def value(self, z: Array, e: Array, gamma: Array, phi: Array) -> float: ...
    def state_terms(self, z: Array, phi: Array) -> float: ...
    def gamma_terms(self, e: Array, gamma: Array) -> float: ...
    def gradient(self, z: Array, lin: Any, e: Array, gamma: Array, phi: Array) -> tuple[Array, Array, Array]: ...


class Steps(Protocol):
    """Steps from one point: damping ↦ δz (M, K), δφ (F,), and whether a bound matters."""

    def __call__(self, damping: float) -> tuple[Array, Array, bool]: ...


def gauss_newton(
    risk: Objective,
    z: Array,
    phi: Array,
    rule: GammaRule,
    max_iterations: int = 200,
    tolerance: float = 1e-6,
    rival: float = np.inf,
    gamma: Array | float = 1.0,
    steps: Callable[..., Steps] | None = None,
) -> Solution:
    """Levenberg–Marquardt on (z, φ) within bounds, γ at its exact minimum after every step.

    Args:
        risk: what to minimise.
        z, phi: where to start.
        rule: how γ is treated.
        gamma: where it starts, (K,) or one value.
        rival: the risk of a better solution; the search ends early once it is clear that it stays above.
        steps: (risk, z, linearisation, mismatch, γ, φ) ↦ the steps from there; dense algebra if not given.
    """
    z_low, z_high = risk.z_bounds
    p_low, p_high = risk.problem.phi_bounds
    z, phi = np.clip(z, z_low, z_high), np.clip(phi, p_low, p_high)
    lin = risk.linearise(z, phi)
    e = risk.mismatch(z, lin.f)
    if not np.isfinite(e).all():
        return Solution(z, phi, np.full(len(risk.w), np.nan), np.inf, 0, False)
    gamma = np.broadcast_to(gamma, len(risk.w)) if rule.fixed is None else rule.update(risk.w, e)
    base = risk.state_terms(z, phi)
    value = base + risk.gamma_terms(e, gamma)
    damping, gain = 1e-3, np.inf
    memory = _Anderson()
    for iteration in range(1, max_iterations + 1):
        step = (steps or _dense_steps)(risk, z, lin, e, gamma, phi)
        first = True
        while True:
            dz, dphi, bounded = step(damping)
            if first and not bounded and gain < 1.0:  # close enough for the steps to be nearly linear
                dz, dphi = memory.extrapolate(z, phi, dz, dphi)
                first = False
            z_new, phi_new = z + dz, phi + dphi
            if risk.problem.bounded:
                z_new, phi_new = np.clip(z_new, z_low, z_high), np.clip(phi_new, p_low, p_high)
            lin_new = risk.linearise(z_new, phi_new)
            e_new = risk.mismatch(z_new, lin_new.f)
            base = risk.state_terms(z_new, phi_new)
            if base + risk.gamma_terms(e_new, gamma) <= value:
                break
            if memory.used:
                memory = _Anderson()
                continue
            damping *= 8.0
            if damping > 1e12:  # no descent left along any scaled step: rounding level
                return Solution(z, phi, gamma, value, iteration, True)
        z, phi, lin, e = z_new, phi_new, lin_new, e_new
        gamma = rule.update(risk.w, e)
        new = base + risk.gamma_terms(e, gamma)
        gain, value = value - new, new
        damping = max(damping * 0.15, 1e-10)
        # A small gain of a heavily damped step says little.
        if gain < tolerance * (1.0 + abs(value)) and damping < 1.0:
            return Solution(z, phi, gamma, value, iteration, True)
        if iteration >= 4 and value - 10.0 * gain > rival:
            return Solution(z, phi, gamma, value, iteration, False)
    return Solution(z, phi, gamma, value, max_iterations, False)


def _dense_steps(risk: Any, z: Array, lin: Linear, e: Array, gamma: Array, phi: Array) -> Steps:
    normal = risk.normal(z, lin, e, gamma, phi)
    return lambda damping: _bounded_step(risk, normal, damping, z, phi)


class _Anderson:
    """Anderson acceleration of the step map.

    Gauss–Newton leaves out the curvature of f, so near a minimum with a mismatch its error shrinks only by a
    constant factor a step; combining the last steps removes the slowest of these.
    """

    def __init__(self, depth: int = 2) -> None:
        self.depth, self.used = depth, False
        self.past: list[tuple[Array, Array]] = []
        self.scale: Array | None = None

    def extrapolate(self, z: Array, phi: Array, dz: Array, dphi: Array) -> tuple[Array, Array]:
        self.scale = scale = np.abs(phi) + 1e-3 if self.scale is None else self.scale
        at, step = np.concatenate([z.ravel(), phi / scale]), np.concatenate([dz.ravel(), dphi / scale])
        past, self.past = self.past, [*self.past[-self.depth + 1 :], (at, step)]
        self.used = False
        # Only where the steps have become small and comparable is the map close to linear.
        if not past or np.linalg.norm(step) > 0.9 * np.linalg.norm(past[-1][1]) or np.abs(step).max() > 0.3:
            return dz, dphi
        dx, ds = (np.stack([now - old[i] for old in past], -1) for i, now in ((0, at), (1, step)))
        alpha = np.linalg.lstsq(ds, step, rcond=1e-8)[0]
        step = step - (dx + ds) @ alpha
        self.used = True
        return step[: z.size].reshape(z.shape), step[z.size :] * scale


@dataclass
class _Pins:
    """Unknowns held in a step: masks and the moves they make, per block (n,) and for φ (F,)."""

    blocks: list[NDArray[np.bool_]]
    moves: list[Array]
    phi: NDArray[np.bool_]
    phi_move: Array

    @property
    def any(self) -> bool:
        return bool(self.phi.any()) or any(bool(m.any()) for m in self.blocks)


def _pinned(risk: Risk, z: Array, phi: Array, normal: Normal) -> _Pins:
    """Unknowns that sit at a bound and would be pushed through it."""
    (z_low, z_high), (p_low, p_high) = risk.z_bounds, risk.problem.phi_bounds
    masks = []
    for b, g in zip(risk.blocks, normal.g, strict=True):
        at_low, at_high = (z[b.rows] <= z_low).T.ravel(), (z[b.rows] >= z_high).T.ravel()
        masks.append((at_low & (g > 0)) | (at_high & (g < 0)))
    phi_mask = ((phi <= p_low) & (normal.g_phi > 0)) | ((phi >= p_high) & (normal.g_phi < 0))
    return _Pins(masks, [np.zeros(len(m)) for m in masks], phi_mask, np.zeros(len(phi)))


def _bounded_step(risk: Risk, normal: Normal, damping: float, z: Array, phi: Array) -> tuple[Array, Array, bool]:
    """A damped step that ends within the bounds, and whether any of them matters.

    Unknowns that a step would carry through a bound go just to it, and the others are solved for again.
    """
    if not risk.problem.bounded:
        return *_step(risk, normal, damping, None), False
    (z_low, z_high), (p_low, p_high) = risk.z_bounds, risk.problem.phi_bounds
    pins = _pinned(risk, z, phi, normal)
    for _ in range(6):
        dz, dphi = _step(risk, normal, damping, pins)
        to_z, to_phi = np.clip(z + dz, z_low, z_high) - z, np.clip(phi + dphi, p_low, p_high) - phi
        crossed = False
        for i, b in enumerate(risk.blocks):
            new = (to_z[b.rows] != dz[b.rows]).T.ravel() & ~pins.blocks[i]
            if new.any() and (np.abs(to_z[b.rows] - dz[b.rows]).T.ravel()[new] > 1e-14).any():
                pins.blocks[i] |= new
                pins.moves[i][new] = to_z[b.rows].T.ravel()[new]
                crossed = True
        new = (np.abs(to_phi - dphi) > 1e-14 * (1.0 + np.abs(phi))) & ~pins.phi
        if new.any():
            pins.phi |= new
            pins.phi_move[new] = to_phi[new]
            crossed = True
        if not crossed:
            break
    return to_z, to_phi, pins.any


def _step(risk: Risk, normal: Normal, damping: float, pins: _Pins | None) -> tuple[Array, Array]:
    """Solve the damped bordered normal equations by Schur complement on φ."""
    F = len(normal.g_phi)
    S, rhs = normal.H_phi.copy(), -normal.g_phi
    diagonal = np.einsum("ii->i", S)
    diagonal *= 1.0 + damping
    diagonal += 1e-14 * (1.0 + diagonal.sum())
    if pins is not None:
        rhs -= S @ pins.phi_move
    solved = []
    for i, (H, border, g) in enumerate(zip(normal.H, normal.border, normal.g, strict=True)):
        H = H.copy()
        diagonal = np.einsum("ii->i", H)
        diagonal *= 1.0 + damping
        right = np.concatenate([border, -g[:, None]], 1)
        if pins is not None:
            pin, move = pins.blocks[i], pins.moves[i]
            right[:, F] -= border @ pins.phi_move + H @ move
            rhs -= border.T @ move
            H[pin], H[:, pin] = 0.0, 0.0
            diagonal[pin] = 1.0
            right[pin] = 0.0
        x, info = lapack.dposv(H, right, lower=1)[1:]
        if info:
            x = np.linalg.lstsq(H, right, rcond=1e-12)[0]
        coupling = right[:, :F].T @ x
        S -= coupling[:, :F]
        rhs -= coupling[:, F]
        solved.append(x)
    if pins is not None:
        S[pins.phi], S[:, pins.phi], rhs[pins.phi] = 0.0, 0.0, 0.0
        S[pins.phi, pins.phi] = 1.0
    # Scaled by its diagonal, so that one indifferent parameter does not swamp the others.
    d = np.sqrt(np.maximum(S.diagonal(), 1e-300))
    S /= d[:, None] * d
    dphi, info = lapack.dposv(S, rhs / d)[1:] if F else (rhs, 0)
    if info:
        dphi = np.linalg.lstsq(S, rhs / d, rcond=1e-14)[0]
    dphi = dphi / d if F else dphi
    dz = np.empty((len(risk.t), len(risk.units.scale)))
    for i, (b, x) in enumerate(zip(risk.blocks, solved, strict=True)):
        own = x[:, F] - x[:, :F] @ dphi
        dz[b.rows] = (own if pins is None else own + pins.moves[i]).reshape(dz.shape[1], -1).T
    return dz, dphi if pins is None else dphi + pins.phi_move


def lbfgsb(
    risk: Objective,
    z: Array,
    phi: Array,
    rule: GammaRule,
    gamma_start: float = 1.0,
    hops: int = 0,
    rng: np.random.Generator | None = None,
    progress: Callable[[], None] = lambda: None,
) -> Solution:
    """The paper's optimiser: L-BFGS-B on (x, θ, log γ) jointly, with basin hopping if `hops` > 0."""
    from scipy.optimize import basinhopping, minimize

    shape, F, K = z.shape, len(phi), z.shape[1]
    n_gamma = 0 if rule.fixed is not None else 1 if rule.shared else K

    def unpack(v: Array) -> tuple[Array, Array, Array]:
        free = np.exp(v[z.size + F :])
        gamma = np.full(K, rule.fixed) if rule.fixed is not None else np.broadcast_to(free, K)
        return v[: z.size].reshape(shape), v[z.size : z.size + F], gamma

    def half_risk(v: Array) -> tuple[float, Array]:
        zv, pv, gamma = unpack(v)
        lin = risk.linearise(zv, pv)
        e = risk.mismatch(zv, lin.f)
        if not np.isfinite(e).all():
            return 1e100, np.zeros_like(v)
        gz, gp, gg = risk.gradient(zv, lin, e, gamma, pv)
        tail = gg if n_gamma == K and not rule.shared else np.full(n_gamma, gg.sum())
        return 0.5 * risk.value(zv, e, gamma, pv), np.concatenate([gz.ravel(), gp, tail])

    z_low, z_high = (np.broadcast_to(b, shape).ravel() for b in risk.z_bounds)
    p_low, p_high = risk.problem.phi_bounds
    log_gamma = np.log(np.array([rule.bounds] * n_gamma)).reshape(-1, 2)
    low = np.concatenate([z_low, p_low, log_gamma[:, 0]])
    high = np.concatenate([z_high, p_high, log_gamma[:, 1]])
    start = np.clip(np.concatenate([z.ravel(), phi, np.full(n_gamma, np.log(gamma_start))]), low, high)
    options = {"method": "L-BFGS-B", "jac": True, "bounds": np.column_stack([low, high])}
    if hops:
        result = basinhopping(
            half_risk, start, niter=hops, minimizer_kwargs=options, rng=rng
        ).lowest_optimization_result
    else:
        result = minimize(half_risk, start, **options)
    zv, pv, gamma = unpack(result.x)
    return Solution(zv, pv, gamma.copy(), 2.0 * float(result.fun), int(result.nit), bool(result.success))
