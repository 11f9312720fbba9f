"""Gauss–Newton steps by preconditioned conjugate gradients on the normal equations.

The unknowns (z, φ) are solved for together, preconditioned by the block of every state over its own times
(preconditioner.py) and by the block of φ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odinfer.odin.sparse.preconditioner import BandedBlocks, Blocks, DenseBlocks, Pairs
from odinfer.odin.sparse.risk import SparseLinear, SparseRisk
from odinfer.optimize.levenberg_marquardt import blocked_by_bounds

Array = NDArray[np.float64]


@dataclass(frozen=True)
class NormalEquations:
    """The Gauss–Newton Hessian of half the risk as an operator on (z (M, K), φ (F,))."""

    risk: SparseRisk
    lin: SparseLinear
    gamma: Array
    weights: Array  # 1/(w + γ), (E, K)
    prior_phi: Array  # curvature of −log p(θ), (F, F)

    @staticmethod
    def at(risk: SparseRisk, lin: SparseLinear, gamma: Array, phi: Array) -> NormalEquations:
        weights = np.ascontiguousarray((1.0 / (risk.w + gamma[:, None])).T)
        return NormalEquations(risk, lin, gamma, weights, risk.problem.prior_at(phi).curvature)

    def times(self, dz: Array, dphi: Array) -> tuple[Array, Array]:
        """The Hessian times a direction."""
        out, a = np.empty_like(dz), np.empty_like(dz)
        df = (self.lin.fz @ dz.ravel() + self.lin.fphi @ dphi).reshape(dz.shape)
        for b in self.risk.blocks:
            own = dz[b.rows]
            r = self.weights[b.mismatches] * (b.apply("T", df[b.rows]) - b.apply("S", own))
            a[b.rows] = b.apply("T", r, transpose=True)
            out[b.rows] = b.weight * own - b.apply("S", r, transpose=True)
            if b.has_prior:
                out[b.rows] += b.apply("prior", own) / self.risk.v
        out += (self.lin.fz.T @ a.ravel()).reshape(dz.shape)
        return out, self.lin.fphi.T @ a.ravel() + self.prior_phi @ dphi

    def phi_block(self) -> Any:
        """The Hessian's block of φ (F, F), sparse."""
        from scipy import sparse

        K, F = len(self.risk.v), len(self.prior_phi)
        pairs = Pairs.of(self.lin.fphi, K)
        white = np.empty((len(self.weights), len(pairs.rows)))
        for b in self.risk.blocks:
            for g in b.groups:
                own = np.flatnonzero(np.isin(pairs.rows, g.members))
                white[b.mismatches, own] = g.T @ pairs.values[b.rows][:, own]
        white *= np.sqrt(self.weights[:, pairs.rows])
        rows = pairs.rows + K * np.arange(len(white))[:, None]
        columns = np.broadcast_to(pairs.cols, rows.shape)
        E = sparse.csr_array((white.ravel(), (rows.ravel(), columns.ravel())), shape=(len(white) * K, F))
        return (E.T @ E + sparse.csr_array(self.prior_phi)).tocsc()


class Preconditioner:
    """The states' blocks and that of φ, inverted."""

    def __init__(self, normal: NormalEquations, damping: float) -> None:
        from scipy import sparse
        from scipy.sparse.linalg import splu

        risk = normal.risk
        pairs = Pairs.of(normal.lin.fz, len(risk.v))
        self.normal, self.damping = normal, damping
        self.blocks: list[Blocks] = []
        for b in risk.blocks:
            kind = DenseBlocks if b.groups[0].element is None else BandedBlocks
            self.blocks.append(kind(risk, b, pairs, normal.weights[b.mismatches], normal.gamma, damping))
        self.diagonal = np.concatenate([b.diagonal for b in self.blocks])
        H = normal.phi_block()
        self.phi_diagonal = H.diagonal()
        extra = damping * self.phi_diagonal + 1e-14 * np.where(self.phi_diagonal > 0, self.phi_diagonal, 1.0)
        self._phi = splu((H + sparse.diags_array(extra)).tocsc()) if len(extra) else None

    def solve(self, rz: Array, rphi: Array) -> tuple[Array, Array]:
        parts = [own.solve(rz[b.rows]) for b, own in zip(self.normal.risk.blocks, self.blocks, strict=True)]
        return np.concatenate(parts), self._phi.solve(rphi) if self._phi is not None else rphi


class Krylov:
    """Gives `minimise.gauss_newton` its steps; keeps a preconditioner as long as it serves.

    Args:
        tolerance: by which the residual shrinks in a step.
        most: conjugate-gradient iterations of a step.
    """

    def __init__(self, tolerance: float = 0.1, most: int = 60) -> None:
        self.tolerance, self.most = tolerance, most
        self.preconditioner: Preconditioner | None = None
        self.best = self.last = 0
        self.iterations: list[int] = []

    def __call__(
        self, risk: SparseRisk, z: Array, lin: SparseLinear, e: Array, gamma: Array, phi: Array
    ) -> KrylovSteps:
        return KrylovSteps(
            self, NormalEquations.at(risk, lin, gamma, phi), z, phi, *risk.gradient(z, lin, e, gamma, phi)[:2]
        )

    def suitable(self, normal: NormalEquations, damping: float) -> Preconditioner:
        """The kept preconditioner, or a new one where γ or the damping moved or it has become slow."""
        p = self.preconditioner
        if p is not None and len(p.normal.gamma) == len(normal.gamma):
            moved = np.abs(np.log(np.maximum(normal.gamma, 1e-300) / np.maximum(p.normal.gamma, 1e-300))) > 0.7
            same_damping = 0.1 < max(damping, 1e-2) / max(p.damping, 1e-2) < 10.0
            if moved.mean() < 0.1 and same_damping and self.last < min(2 * self.best + 10, self.most):
                return p
        self.best = 0
        self.preconditioner = Preconditioner(normal, damping)
        return self.preconditioner

    def count(self, iterations: int) -> None:
        self.last = iterations
        self.best = min(self.best, iterations) if self.best else iterations
        self.iterations.append(iterations)


@dataclass
class KrylovSteps:
    """Damped steps from one point."""

    krylov: Krylov
    normal: NormalEquations
    z: Array
    phi: Array
    gz: Array
    g_phi: Array

    def __call__(self, damping: float) -> tuple[Array, Array, bool]:
        """A step within the bounds, and whether any of them matters."""
        p = self.krylov.suitable(self.normal, damping)
        problem = self.normal.risk.problem
        free, free_phi = np.ones_like(self.z), np.ones_like(self.phi)
        if problem.bounded:  # unknowns that sit at a bound and would be pushed through it stay
            (z_low, z_high), (p_low, p_high) = self.normal.risk.z_bounds, problem.phi_bounds
            free -= blocked_by_bounds(self.z, self.gz, z_low, z_high)
            free_phi -= blocked_by_bounds(self.phi, self.g_phi, p_low, p_high)
        dz, dphi, count = solve(
            self.normal, p, damping, -free * self.gz, -free_phi * self.g_phi,
            self.krylov.tolerance, self.krylov.most, (free, free_phi) if problem.bounded else None,
        )  # fmt: skip
        self.krylov.count(count)
        return dz, dphi, not (free.all() and free_phi.all())


def solve(
    normal: NormalEquations,
    p: Preconditioner,
    damping: float,
    rz: Array,
    rphi: Array,
    tolerance: float,
    most: int,
    free: tuple[Array, Array] | None = None,
) -> tuple[Array, Array, int]:
    """Preconditioned conjugate gradients for (H + damping·diag H) δ = r; δz, δφ and the number of iterations.

    Args:
        free: ones for unknowns that may move, zeros for others.
    """
    dz, dphi = np.zeros_like(rz), np.zeros_like(rphi)

    def preconditioned(rz: Array, rphi: Array) -> tuple[Array, Array]:
        sz, sphi = p.solve(rz, rphi)
        return (sz, sphi) if free is None else (free[0] * sz, free[1] * sphi)

    sz, sphi = preconditioned(rz, rphi)
    pz, pphi = sz.copy(), sphi
    rho = first = float(np.vdot(rz, sz) + np.vdot(rphi, sphi))
    for iteration in range(most):
        if not rho > tolerance**2 * first:
            return dz, dphi, iteration
        hz, hphi = normal.times(pz, pphi)
        if damping > 1e-9:
            hz += damping * p.diagonal * pz
        hphi = hphi + damping * p.phi_diagonal * pphi
        if free is not None:
            hz, hphi = free[0] * hz, free[1] * hphi
        curvature = float(np.vdot(pz, hz) + np.vdot(pphi, hphi))
        if not curvature > 0:
            return dz, dphi, iteration
        alpha = rho / curvature
        dz += alpha * pz
        hz *= alpha
        rz -= hz
        dphi, rphi = dphi + alpha * pphi, rphi - alpha * hphi
        sz, sphi = preconditioned(rz, rphi)
        old, rho = rho, float(np.vdot(rz, sz) + np.vdot(rphi, sphi))
        pz *= rho / old
        pz += sz
        pphi = sphi + rho / old * pphi
    return dz, dphi, most
