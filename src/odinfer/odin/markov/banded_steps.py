"""Gauss–Newton steps of the risk of long series: one banded matrix over time, bordered by θ.

Unknowns are z, the processes' states p and φ, all at once; p enters linearly, so that a step is that of z and φ alone
with p at its best, which is what dense algebra computes. At every time, with J = ∂f/∂z, F = ∂f/∂φ, Γ the weights of the
mismatch, E and L as in risk.py,

    [ W   −B   G ]        W = weights of the data + 1/ε + JᵀΓJ,   B = E/ε + JᵀΓL,   G = JᵀΓF,
    [ ·   P+Q  −U ]        Q = EᵀE/ε + LᵀΓL,   U = LᵀΓF.
    [ ·   ·    FᵀΓF ]

z is eliminated time by time; what is left of p is block tridiagonal, and its elimination leaves φ.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from odinfer.gp.markov.block_tridiagonal import Factor, banded
from odinfer.odin.gauss_newton import Step
from odinfer.odin.markov.risk import MarkovRisk
from odinfer.odin.risk import Linear
from odinfer.optimize.levenberg_marquardt import blocked_by_bounds, corner

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

_TIMES = 6  # a step is cut at bounds, and solved for again, at most so often


def steps(risk: MarkovRisk, z: Array, lin: Linear, e: Array, gamma: Array, phi: Array) -> Step:
    """The steps from one point, by damping."""
    equations = Equations.at(risk, z, lin, e, gamma, phi)
    if not risk.problem.bounded:
        return lambda damping: (*equations.solved(damping), False)
    return functools.partial(_bounded_step, risk, equations, z, phi)


def _bounded_step(
    risk: MarkovRisk, equations: Equations, z: Array, phi: Array, damping: float
) -> tuple[Array, Array, bool]:
    """A damped step that ends within the bounds, and whether any of them matters.

    Unknowns that a step would carry through a bound go just to it, and the others are solved for again.
    """
    z_bounds, p_bounds = risk.z_bounds, risk.problem.phi_bounds
    held, held_phi = blocked_by_bounds(z, equations.g, *z_bounds), blocked_by_bounds(phi, equations.g_phi, *p_bounds)
    moves, phi_moves = np.zeros_like(z), np.zeros_like(phi)
    for _ in range(_TIMES):
        dz, dphi = equations.solved(damping, (held, moves, held_phi, phi_moves))
        to_z, to_phi = np.clip(z + dz, *z_bounds) - z, np.clip(phi + dphi, *p_bounds) - phi
        crossed = (np.abs(to_z - dz) > 1e-14) & ~held
        crossed_phi = (np.abs(to_phi - dphi) > 1e-14 * (np.abs(phi) + np.abs(dphi))) & ~held_phi
        if not crossed.any() and not crossed_phi.any():
            break
        held, held_phi = held | crossed, held_phi | crossed_phi
        moves, phi_moves = np.where(crossed, to_z, moves), np.where(crossed_phi, to_phi, phi_moves)
    return to_z, to_phi, bool(held.any() or held_phi.any())


Held = tuple[Mask, Array, Mask, Array]


@dataclass(frozen=True, eq=False)
class Equations:
    """The blocks of the normal equations of half the risk at one point: per time, and for φ; names as above."""

    risk: MarkovRisk
    W: Array  # (M, K, K)
    B: Array  # (M, K, dK)
    G: Array  # (M, K, F)
    Q: Array  # (M, dK, dK), with the prior's blocks
    below: Array  # (M − 1, dK, dK)
    U: Array  # (M, dK, F)
    H_phi: Array
    g: Array  # ½ dR/dz (M, K)
    g_phi: Array

    @staticmethod
    def at(risk: MarkovRisk, z: Array, lin: Linear, e: Array, gamma: Array, phi: Array) -> Equations:
        K, M, d = risk.shape
        g, g_phi = risk.descent(z, lin, e, gamma, phi)
        weight = 1.0 / (risk.jitter + gamma)
        J, F = lin.fz, lin.fphi
        JG = np.swapaxes(J, 1, 2) * weight
        W = JG @ J
        index = np.arange(K)
        W[:, index, index] += risk.weight + 1.0 / risk.jitter
        L = risk.chain.slope.transpose(1, 0, 2)  # (M, K, d)
        B = (JG[..., None] * L[:, None]).reshape(M, K, K * d)
        B[:, index, index * d] += 1.0 / risk.jitter
        Q, below = np.zeros((M, K, d, K, d)), np.zeros((M, K, d, K, d))
        diagonal, before = risk.chain.blocks
        Q[:, index, :, index] = diagonal / risk.v[:, None, None, None]
        rows = risk.chain.slope
        Q[:, index, :, index] += weight[:, None, None, None] * rows[..., None] * rows[..., None, :]
        Q[:, index, 0, index, 0] += 1.0 / risk.jitter
        below[:, index, :, index] = before / risk.v[:, None, None, None]
        U = (L[..., None] * (weight[:, None] * F)[:, :, None]).reshape(M, K * d, -1)
        H_phi = np.einsum("mkp,k,mkq->pq", F, weight, F) + risk.problem.prior_at(phi).curvature
        size = K * d
        return Equations(
            risk, W, B, JG @ F, Q.reshape(M, size, size), below.reshape(M, size, size)[1:], U, H_phi, g, g_phi
        )

    def solved(self, damping: float, held: Held | None = None) -> tuple[Array, Array]:
        """The damped step δz (M, K) and δφ (F,); what is held makes the moves that are given."""
        W, B, G, U, H_phi = self.W.copy(), self.B, self.G, self.U, self.H_phi.copy()
        M, K, size = B.shape
        F, index = H_phi.shape[0], np.arange(K)
        W[:, index, index] *= 1.0 + damping
        H_phi[np.diag_indices(F)] *= 1.0 + damping
        right_z, right_p, right_phi = -self.g, np.zeros((M, size)), -self.g_phi
        if held is not None:
            mask, moves, mask_phi, phi_moves = held
            right_z = right_z - np.einsum("mkj,mj->mk", W, moves) - G @ phi_moves
            right_p += np.einsum("mks,mk->ms", B, moves) + U @ phi_moves
            right_phi = right_phi - np.einsum("mkp,mk->p", G, moves) - H_phi @ phi_moves
            free, free_phi = ~mask, ~mask_phi
            W = np.where(free[:, :, None] & free[:, None, :], W, np.eye(K))
            B, G = np.where(mask[..., None], 0.0, B), np.where(mask[..., None] | mask_phi, 0.0, G)
            U, right_z = np.where(mask_phi, 0.0, U), np.where(mask, 0.0, right_z)
            H_phi = np.where(free_phi[:, None] & free_phi, H_phi, np.eye(F))
            right_phi = np.where(mask_phi, 0.0, right_phi)
        solved = np.linalg.solve(W, np.concatenate([B, G, right_z[..., None]], -1))
        WB, WG, Wr = solved[..., :size], solved[..., size:-1], solved[..., -1]
        BT = np.swapaxes(B, 1, 2)
        border = BT @ WG - U
        right = np.concatenate([border, (right_p + (BT @ Wr[..., None])[..., 0])[..., None]], -1)
        factor = Factor.of(banded(self.Q - BT @ WB, self.below), size)
        if factor is None:  # rounding has eaten what is positive: no step, and the damping grows
            return np.zeros((M, K)), np.zeros(F)
        p = factor.solve(right.reshape(M * size, F + 1)).reshape(M, size, F + 1)
        S = H_phi - np.einsum("mkp,mkq->pq", G, WG) - np.einsum("msp,msq->pq", border, p[..., :F])
        rhs = right_phi - np.einsum("mkp,mk->p", G, Wr) - np.einsum("msp,ms->p", border, p[..., F])
        dphi = corner(S, rhs, H_phi.diagonal())
        dp = p[..., F] - p[..., :F] @ dphi
        dz = Wr + np.einsum("mks,ms->mk", WB, dp) - WG @ dphi
        return (dz, dphi) if held is None else (dz + held[1], dphi + held[3])

    def variances(self) -> Array:
        """Variances (M, K) of z, φ marginalised, by the inverse of these equations."""
        M, K, size = self.B.shape
        F = len(self.g_phi)
        solved = np.linalg.solve(self.W, np.concatenate([self.B, self.G], -1))
        WB, WG = solved[..., :size], solved[..., size:]
        BT = np.swapaxes(self.B, 1, 2)
        factor = Factor.of(banded(self.Q - BT @ WB, self.below), size)
        if factor is None:
            return np.full((M, K), np.nan)
        own = np.einsum("mks,mst,mkt->mk", WB, factor.marginals(), WB)
        own += np.einsum("mkk->mk", np.linalg.inv(self.W))
        border = BT @ WG - self.U
        p = factor.solve(border.reshape(M * size, F)).reshape(M, size, F)
        S = self.H_phi - np.einsum("mkp,mkq->pq", self.G, WG) - np.einsum("msp,msq->pq", border, p)
        coupling = WG + np.einsum("mks,msp->mkp", WB, p)
        return np.asarray(own + np.einsum("mkp,pq,mkq->mk", coupling, np.linalg.pinv(S, hermitian=True), coupling))
