"""The dense engine of ODIN, by Cholesky factorisations, for few states and some hundred times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from odinfer.gp.curves import Curve, Gradients
from odinfer.gp.evidence import Hyperparameters
from odinfer.gp.grids import dense_times, finer_grid
from odinfer.gp.kernels import kernel
from odinfer.gp.operators import smooth
from odinfer.gp.standardisation import Units
from odinfer.odin import startpoints
from odinfer.odin.gamma import GammaRule
from odinfer.odin.gauss_newton import Solution, gauss_newton
from odinfer.odin.risk import Risk
from odinfer.problem.problem import Problem

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Dense(Risk):
    """A risk that minimises itself by dense algebra, and turns solutions into curves."""

    notes = ()

    @staticmethod
    def of(
        problem: Problem,
        units: Units,
        hypers: Sequence[Hyperparameters],
        jitter: float,
        grid: int = 1,
        temper: float = 1.0,
    ) -> Dense:
        """On a grid of `grid` points per gap, the GP's weight divided by `temper`."""
        grids = []
        for e in problem.data.experiments:
            t, rows = finer_grid(e.t, grid)
            y = np.full((e.y.shape[1], len(t)), np.nan)
            y[:, rows] = units.standard(e.y).T
            grids.append((t, y, smooth(hypers, units.standard_time(t, e.t[0]), y, jitter).tempered(temper)))
        return Dense.build(problem, units, hypers, grids)

    def match(self, phi: Array) -> tuple[Array, Array]:
        """φ (S, F) that best match the slopes of the GP mean from starts (S, F), and the squared mismatch (S,)."""
        return startpoints.match(self, phi)

    def minimise(
        self, z: Array, phi: Array, rule: GammaRule, rival: float = np.inf, gamma: Array | float = 1.0
    ) -> Solution:
        """Gauss–Newton from one start; given up where it stays above the risk of a rival."""
        return gauss_newton(self, z, phi, rule, rival=rival, gamma=gamma)

    def slopes(self, s: Solution) -> Array:
        """f(x, θ) in the user's units at all points (M, K)."""
        return self.units.user_slope(self.linearise(s.z, s.phi).f)

    def gradients(self, s: Solution) -> list[Gradients]:
        """f against the GP's derivative with its standard deviation √(diag A), per experiment."""
        f, found = self.slopes(s), []
        for b in self.blocks:
            m = b.smoother
            gp_slope = (m.D @ s.z[b.rows].T[..., None])[..., 0].T
            sd = np.sqrt(np.einsum("knm,km->kn", m.Q**2, m.w)).T
            found.append(Gradients(self.t[b.rows], f[b.rows], *map(self.units.user_slope, (gp_slope, sd))))
        return found

    def curves(self, s: Solution) -> list[Curve]:
        """The states between grid times: the GP given x and f(x, θ), with bands from the Laplace approximation."""
        deviations = _posterior_sd(self, s)
        f = self.linearise(s.z, s.phi).f
        found = []
        for b in self.blocks:
            t = self.t[b.rows]
            dense = dense_times(t)
            unit, dense_unit = (self.units.standard_time(v, t[0]) for v in (t, dense))
            x, slope, sd = (np.empty((len(dense), b.y.shape[0])) for _ in range(3))
            for k, h in enumerate(self.hypers):
                g = kernel(h.kernel).gram(unit, unit, np.array(h.shape))
                c = kernel(h.kernel).gram(dense_unit, unit, np.array(h.shape))
                noise = np.diag(np.r_[np.full(len(t), 1e-8), np.full(len(t), 1e-8 + s.gamma[k] / h.variance)])
                S = np.block([[g.C, g.Cd], [g.dC, g.dCd]]) + noise
                alpha = np.linalg.solve(S, np.r_[s.z[b.rows, k], f[b.rows, k]])
                cross = np.hstack([c.C, c.Cd])
                x[:, k] = cross @ alpha
                slope[:, k] = np.hstack([c.dC, c.dCd]) @ alpha
                gap = np.einsum("nm,mn->n", cross, np.linalg.solve(S, cross.T))
                between = h.variance * np.maximum(
                    np.diag(kernel(h.kernel).gram(dense_unit, dense_unit, np.array(h.shape)).C) - gap, 0.0
                )
                sd[:, k] = np.sqrt(np.interp(dense, t, deviations[b.rows, k]) ** 2 + between)
            # Exact at the grid, whatever the jitter: the estimate there is the optimiser's.
            at = np.searchsorted(dense, t)
            x[at], slope[at] = s.z[b.rows], np.where(s.gamma > 1e-2, slope[at], f[b.rows])
            found.append(Curve.of_standard(self.units, dense, x, slope, sd))
        return found

    def mean_curves(self) -> list[Curve]:
        """The GP means alone, without bands: what is left when no start gave a finite model."""
        found = []
        for b in self.blocks:
            slope = (b.smoother.D @ b.smoother.mean[..., None])[..., 0].T
            found.append(Curve.of_standard(self.units, self.t[b.rows], b.smoother.mean.T, slope, np.zeros_like(slope)))
        return found


def _pseudo_inverse(H: Array) -> Array:
    """Compute the pseudo-inverse of a symmetric matrix; entries beyond the floating-point numbers count as zero."""
    return np.asarray(np.linalg.pinv(np.nan_to_num(H, nan=0.0, posinf=0.0, neginf=0.0), hermitian=True))


def _posterior_sd(risk: Risk, s: Solution) -> Array:
    """Standard deviations (M, K) of z from the Gauss–Newton Hessian, θ marginalised."""
    lin = risk.linearise(s.z, s.phi)
    normal = risk.normal(s.z, lin, risk.mismatch(s.z, lin.f), s.gamma, s.phi)
    S = normal.H_phi.copy()
    inverses, couplings = [], []
    for H, border in zip(normal.H, normal.border, strict=True):
        inverse = _pseudo_inverse(H)
        inverses.append(inverse)
        couplings.append(inverse @ border)
        S -= border.T @ couplings[-1]
    cov = _pseudo_inverse(S)
    sd = np.empty_like(s.z)
    for b, inverse, coupling in zip(risk.blocks, inverses, couplings, strict=True):
        variance = np.diag(inverse) + np.einsum("np,pq,nq->n", coupling, cov, coupling)
        sd[b.rows] = np.sqrt(np.maximum(variance, 0.0)).reshape(b.y.shape).T
    return sd
