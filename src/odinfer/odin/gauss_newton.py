"""Minimise the risk by Gauss–Newton with the exact γ update."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from odinfer.odin.gamma import GammaRule
from odinfer.odin.risk import Linear, Normal, Risk
from odinfer.optimize.levenberg_marquardt import Rule, blocked_by_bounds, corner, levenberg_marquardt
from odinfer.problem.problem import Problem
from odinfer.scaling.dimensional_analysis import natural_sizes_of_phi

Array = NDArray[np.float64]


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
    """What the optimisers need of a risk, for few states (risk.py) or many (sparse/risk.py)."""

    @property
    def problem(self) -> Problem: ...
    @property
    def z_bounds(self) -> tuple[Array, Array]: ...
    def linearise(self, z: Array, phi: Array) -> Any: ...
    def mismatch(self, z: Array, f: Array) -> Array: ...
    def value(self, z: Array, e: Array, gamma: Array, phi: Array) -> float: ...
    def state_terms(self, z: Array, phi: Array) -> float: ...
    def gamma_terms(self, e: Array, gamma: Array) -> float: ...
    def best_gamma(self, e: Array, rule: GammaRule, gamma: Array | None = None) -> Array: ...
    def gradient(self, z: Array, lin: Any, e: Array, gamma: Array, phi: Array) -> tuple[Array, Array, Array]: ...


class Step(Protocol):
    """Steps from one point: damping ↦ δz (M, K), δφ (F,), and whether a bound matters."""

    def __call__(self, damping: float) -> tuple[Array, Array, bool]: ...


@dataclass(frozen=True)
class _Iterate:
    """A point with everything the next step needs; `value` is its risk."""

    z: Array
    phi: Array
    gamma: Array
    lin: Any
    e: Array
    value: float


def gauss_newton(
    risk: Objective,
    z: Array,
    phi: Array,
    rule: GammaRule,
    max_iterations: int = 200,
    tolerance: float = 1e-6,
    rival: float = np.inf,
    gamma: Array | float = 1.0,
    steps: Callable[..., Step] | None = None,
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
    z, phi = np.clip(z, *risk.z_bounds), np.clip(phi, *risk.problem.phi_bounds)
    lin = risk.linearise(z, phi)
    e = risk.mismatch(z, lin.f)
    if not np.isfinite(e).all():
        return Solution(z, phi, np.full(z.shape[1], np.nan), np.inf, 0, False)
    gamma = np.broadcast_to(gamma, z.shape[1]) if rule.fixed is None else np.full(z.shape[1], rule.fixed)
    start = _Iterate(z, phi, gamma, lin, e, risk.value(z, e, gamma, phi))
    descent = _Descent(risk, rule, tolerance, rival, steps or _dense_steps)
    limits = Rule(down=0.15, up=8.0, most=1e12, steps=max_iterations)
    ended = levenberg_marquardt(start, descent.propose, descent.settles, limits)
    here, arrived = ended.point, bool(ended.settled) and not descent.abandoned
    return Solution(here.z, here.phi, here.gamma, here.value, ended.steps + int(ended.stuck), arrived)


class _Descent:
    """One descent of a risk: its steps, extrapolated where they have become regular, and when they are enough."""

    def __init__(
        self, risk: Objective, rule: GammaRule, tolerance: float, rival: float, steps: Callable[..., Step]
    ) -> None:
        self.risk, self.rule, self.tolerance, self.rival, self.steps = risk, rule, tolerance, rival, steps
        self.sizes = natural_sizes_of_phi(risk.problem)
        self.memory, self.last_gain, self.taken, self.abandoned = _Anderson(self.sizes), np.inf, 0, False
        self.at: _Iterate | None = None  # where `step` starts, and whether it has been extrapolated from there
        self.extrapolated = False

    def propose(self, here: _Iterate, damping: float) -> tuple[_Iterate, bool]:
        if self.at is not here:
            self.at, self.extrapolated = here, False
            self.step = self.steps(self.risk, here.z, here.lin, here.e, here.gamma, here.phi)
        dz, dphi, bounded = self.step(damping)
        further = dz, dphi
        if not self.extrapolated and not bounded and self.last_gain < 1.0:  # near enough for steps to be nearly linear
            further, self.extrapolated = self.memory.extrapolate(here.z, here.phi, dz, dphi), True
        found, better = self._move(here, *further)
        if not better and self.memory.used:
            self.memory = _Anderson(self.sizes)
            found, better = self._move(here, dz, dphi)
        return found, better

    def settles(self, better: bool, gain: float, here: _Iterate, damping: float) -> bool:
        if not better:
            return False
        self.last_gain, self.taken = gain, self.taken + 1
        # A small gain of a heavily damped step says little.
        if gain < self.tolerance * (1.0 + abs(here.value)) and damping < 1.0:
            return True
        self.abandoned = self.taken >= 4 and here.value - 10.0 * gain > self.rival
        return self.abandoned

    def _move(self, here: _Iterate, dz: Array, dphi: Array) -> tuple[_Iterate, bool]:
        """The point after a step with γ updated, and whether the step lowers the risk before that."""
        risk, z, phi = self.risk, here.z + dz, here.phi + dphi
        if risk.problem.bounded:
            z, phi = np.clip(z, *risk.z_bounds), np.clip(phi, *risk.problem.phi_bounds)
        lin = risk.linearise(z, phi)
        e = risk.mismatch(z, lin.f)
        base = risk.state_terms(z, phi)
        if not base + risk.gamma_terms(e, here.gamma) <= here.value:
            return here, False
        gamma = risk.best_gamma(e, self.rule, here.gamma)
        return _Iterate(z, phi, gamma, lin, e, base + risk.gamma_terms(e, gamma)), True


def _dense_steps(risk: Any, z: Array, lin: Linear, e: Array, gamma: Array, phi: Array) -> Step:
    normal = risk.normal(z, lin, e, gamma, phi)
    return lambda damping: _bounded_step(risk, normal, damping, z, phi)


class _Anderson:
    """Anderson acceleration of the step map.

    Gauss–Newton leaves out the curvature of f, so near a minimum with a mismatch its error shrinks only by a
    constant factor a step; combining the last steps removes the slowest of these.

    Args:
        sizes: natural ones of φ (F,): its steps are measured in what it is, but at least in a small share of them.
    """

    def __init__(self, sizes: Array, depth: int = 2) -> None:
        self.sizes, self.depth, self.used = sizes, depth, False
        self.past: list[tuple[Array, Array]] = []
        self.scale: Array | None = None

    def extrapolate(self, z: Array, phi: Array, dz: Array, dphi: Array) -> tuple[Array, Array]:
        self.scale = scale = np.abs(phi) + 1e-3 * self.sizes if self.scale is None else self.scale
        at, step = np.concatenate([z.ravel(), phi / scale]), np.concatenate([dz.ravel(), dphi / scale])
        past, self.past = self.past, [*self.past[-self.depth + 1 :], (at, step)]
        self.used = False
        # Only where the steps have become small and comparable is the map close to linear.
        if (
            not past
            or not np.isfinite(step).all()
            or np.linalg.norm(step) > 0.9 * np.linalg.norm(past[-1][1])
            or np.abs(step).max() > 0.3
        ):
            return dz, dphi
        dx, ds = (np.stack([now - old[i] for old in past], -1) for i, now in ((0, at), (1, step)))
        if not np.isfinite(ds).all():
            return dz, dphi
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


def _pins_of(risk: Risk, z: Array, phi: Array, normal: Normal) -> _Pins:
    """Unknowns that sit at a bound and would be pushed through it."""
    (z_low, z_high), (p_low, p_high) = risk.z_bounds, risk.problem.phi_bounds
    shape = (-1, 1)
    masks = [
        blocked_by_bounds(z[b.rows].T, g.reshape(b.y.shape), z_low.reshape(shape), z_high.reshape(shape)).ravel()
        for b, g in zip(risk.blocks, normal.g, strict=True)
    ]
    phi_mask = blocked_by_bounds(phi, normal.g_phi, p_low, p_high)
    return _Pins(masks, [np.zeros(len(m)) for m in masks], phi_mask, np.zeros(len(phi)))


def _bounded_step(risk: Risk, normal: Normal, damping: float, z: Array, phi: Array) -> tuple[Array, Array, bool]:
    """A damped step that ends within the bounds, and whether any of them matters.

    Unknowns that a step would carry through a bound go just to it, and the others are solved for again.
    """
    if not risk.problem.bounded:
        return *_step(risk, normal, damping, None), False
    (z_low, z_high), (p_low, p_high) = risk.z_bounds, risk.problem.phi_bounds
    pins = _pins_of(risk, z, phi, normal)
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
        new = (np.abs(to_phi - dphi) > 1e-14 * (np.abs(phi) + np.abs(dphi))) & ~pins.phi
        if new.any():
            pins.phi |= new
            pins.phi_move[new] = to_phi[new]
            crossed = True
        if not crossed:
            break
    return to_z, to_phi, pins.any


def _step(risk: Risk, normal: Normal, damping: float, pins: _Pins | None) -> tuple[Array, Array]:
    """Solve the damped bordered normal equations by Schur complement on φ.

    With H_b, border B_b and gradient g_b of every block b, and the same of φ without a name, the equations are

        H_b δz_b + B_b δφ = −g_b  for every b,     Σ B_bᵀ δz_b + H δφ = −g.

    From the first, δz_b = H_b⁻¹(−g_b) − H_b⁻¹B_b δφ: one factorisation with F + 1 right-hand sides. Put into the
    second, (H − Σ B_bᵀH_b⁻¹B_b) δφ = −g − Σ B_bᵀH_b⁻¹(−g_b). A pinned unknown makes its given move: what this does to
    the others goes to the right-hand side, and its own equation becomes 1·δ = 0, to which the move is added in the end.
    """
    F = len(normal.g_phi)
    S, rhs = normal.H_phi.copy(), -normal.g_phi
    diagonal = np.einsum("ii->i", S)
    diagonal *= 1.0 + damping
    before = diagonal.copy()
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
    dphi = corner(S, rhs, before)
    dz = np.empty((len(risk.t), len(risk.units.scale)))
    for i, (b, x) in enumerate(zip(risk.blocks, solved, strict=True)):
        own = x[:, F] - x[:, :F] @ dphi
        dz[b.rows] = (own if pins is None else own + pins.moves[i]).reshape(dz.shape[1], -1).T
    return dz, dphi if pins is None else dphi + pins.phi_move
