"""The ODIN risk R(x, θ, γ) of the paper, its gradient and its Gauss–Newton blocks.

Everything inside is standardised (gp/standardisation.py): states z, time, and the vector field scaled to match. States
of all experiments are stacked, z (M, K); per experiment ("block") the algebra is state-first, (K, N). A = Q diag(w) Qᵀ
is diagonalised once, so the γ terms are sums over e²/(w+γ) and log(w+γ).
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from odinfer.gp.evidence import Hyperparameters
from odinfer.gp.operators import Smoother
from odinfer.gp.standardisation import Units
from odinfer.odin.gamma import GammaRule
from odinfer.problem.problem import Problem

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Block:
    """One experiment on its grid.

    Attributes:
        rows: where its points stand among all stacked points.
        y: standardised observations (K, N), zero where missing.
        weight: 1/σ² where observed, else 0 (K, N).
        smoother: prior operators.
        QtD: Qᵀ D (K, N, N).
    """

    rows: slice
    y: Array
    weight: Array
    smoother: Smoother
    QtD: Array


class Linear(NamedTuple):
    """The standardised vector field at all points: f (M, K), ∂f/∂z (M, K, K), ∂f/∂φ (M, K, F)."""

    f: Array
    fz: Array
    fphi: Array


class Normal(NamedTuple):
    """Gauss–Newton normal equations of half the risk: per block H (n, n), border (n, F), g (n,); and for φ."""

    H: list[Array]
    border: list[Array]
    g: list[Array]
    H_phi: Array
    g_phi: Array


@dataclass(frozen=True)
class AnyRisk(ABC):
    """What all forms of the risk have in common: the problem on its grids, and the terms with γ.

    Attributes:
        hypers: of the Gaussian processes, one per state.
        blocks: the experiments on their grids.
        t, u: user times (M,) and inputs (M, U) of all grid points.
    """

    problem: Problem
    units: Units
    hypers: tuple[Hyperparameters, ...]
    blocks: tuple[Any, ...]
    t: Array
    u: Array

    @abstractmethod
    def state_terms(self, z: Array, phi: Array) -> float:
        """The terms of R without γ: the prior of the states, the data, and −2 log p(θ)."""

    @abstractmethod
    def gamma_terms(self, e: Array, gamma: Array) -> float:
        """The terms of R with γ (K,): the mismatch e of gradients and the log-determinant; infinite where f is."""

    @abstractmethod
    def gamma_gradient(self, e: Array, gamma: Array) -> Array:
        """½ dR/dlog γ (K,)."""

    @abstractmethod
    def best_gamma(self, e: Array, rule: GammaRule, gamma: Array | None = None) -> Array:
        """The γ (K,) that minimise R by the rule; a search may start from those given."""

    @functools.cached_property
    def z_bounds(self) -> tuple[Array, Array]:
        low, high = self.problem.state_bounds
        return self.units.standard(low), self.units.standard(high)

    def value(self, z: Array, e: Array, gamma: Array, phi: Array) -> float:
        """R at a point, given its mismatch e; γ is (K,). The paper's formula, without a factor ½."""
        return self.state_terms(z, phi) + self.gamma_terms(e, gamma)

    def linearise(self, z: Array, phi: Array) -> Any:
        """The standardised field and its Jacobians at z (M, K), φ (F,)."""
        p = self.problem
        f, fx, ft = p.model.linearise(self.t, self.units.user(z), p.theta(phi), self.u)
        return Linear(*self.units.standard_field(f, fx, ft[..., p.free_index] * p.slope(phi)))


@dataclass(frozen=True)
class Diagonal(AnyRisk):
    """A risk whose mismatches e (K, E) are independent: then the terms with γ are sums."""

    @property
    @abstractmethod
    def w(self) -> Array:
        """Variances of the mismatches (K, E), without γ."""

    def gamma_terms(self, e: Array, gamma: Array) -> float:
        """The terms of R with γ: the mismatch of gradients and the log-determinant; infinite where f is."""
        spread = self.w + gamma[:, None]
        if not np.isfinite(e).all():
            return np.inf
        total = float(np.vdot(e, e / spread) + np.log(spread).sum())
        return total if np.isfinite(total) else np.inf

    def gamma_gradient(self, e: Array, gamma: Array) -> Array:
        """½ dR/dlog γ (K,)."""
        spread = self.w + gamma[:, None]
        return np.asarray(0.5 * gamma * (1.0 / spread - (e / spread) ** 2).sum(1))

    def best_gamma(self, e: Array, rule: GammaRule, gamma: Array | None = None) -> Array:
        """The γ (K,) that minimise R by the rule, wherever they were."""
        return rule.update(self.w, e)


@dataclass(frozen=True)
class Risk(Diagonal):
    """The risk of one problem with given hyperparameters, by dense matrices."""

    blocks: tuple[Block, ...]

    @classmethod
    def build(
        cls,
        problem: Problem,
        units: Units,
        hypers: Sequence[Hyperparameters],
        grids: Sequence[tuple[Array, Array, Smoother]],
    ) -> Self:
        """From the user-time grid (N,), standardised observations (K, N) and smoother of each experiment."""
        noise = np.array([h.noise for h in hypers])[:, None]
        blocks, start = [], 0
        for t, y, s in grids:
            weight = np.where(np.isfinite(y), 1.0 / noise, 0.0)
            rows = slice(start, start := start + len(t))
            blocks.append(Block(rows, np.nan_to_num(y), weight, s, np.swapaxes(s.Q, 1, 2) @ s.D))
        u = np.concatenate([problem.inputs_at(i, t) for i, (t, _, _) in enumerate(grids)])
        return cls(problem, units, tuple(hypers), tuple(blocks), np.concatenate([t for t, _, _ in grids]), u)

    @property
    def mean(self) -> Array:
        """GP posterior means of all states at all points (M, K): where x starts."""
        return np.concatenate([b.smoother.mean.T for b in self.blocks])

    @functools.cached_property
    def w(self) -> Array:
        """Eigenvalues of A over all blocks (K, M)."""
        return np.concatenate([b.smoother.w for b in self.blocks], 1)

    def mismatch(self, z: Array, f: Array) -> Array:
        """e = Qᵀ(f − Dz) for all states and points (K, M)."""
        parts = []
        with np.errstate(invalid="ignore", over="ignore"):  # f may overflow at a trial point; the caller looks
            for b in self.blocks:
                fb, zb = f[b.rows].T[..., None], z[b.rows].T[..., None]
                parts.append((np.swapaxes(b.smoother.Q, 1, 2) @ fb - b.QtD @ zb)[..., 0])
        return np.concatenate(parts, 1)

    @functools.cached_property
    def mean_slopes(self) -> Array:
        """The derivatives of the GP means at all points (K, M)."""
        return np.concatenate([(b.smoother.D @ b.smoother.mean[..., None])[..., 0] for b in self.blocks], 1)

    def products(self, m: Array, gamma: float) -> Array:
        """mᵀ (A + γI)⁻¹ m (S, c, c) of sets of mismatches m (S, K, M, c), summed over states."""
        parts = []
        for b in self.blocks:
            W = np.swapaxes(b.smoother.Q, 1, 2) / np.sqrt(b.smoother.w + gamma)[..., None]
            parts.append(W @ m[:, :, b.rows])
        white = np.concatenate(parts, 2).reshape(len(m), -1, m.shape[-1])
        return np.asarray(np.swapaxes(white, 1, 2) @ white)

    def state_terms(self, z: Array, phi: Array) -> float:
        """The terms of R without γ: the GP prior, the data, and −2 log p(θ)."""
        total = 0.0
        for b in self.blocks:
            zb = z[b.rows].T
            miss = zb - b.y
            total += float(np.vdot(zb, (b.smoother.C_inv @ zb[..., None])[..., 0]) + np.vdot(b.weight * miss, miss))
        total += 2.0 * self.problem.prior_at(phi).value
        return total if np.isfinite(total) else np.inf

    def gradient(self, z: Array, lin: Linear, e: Array, gamma: Array, phi: Array) -> tuple[Array, Array, Array]:
        """½ dR/dz (M, K), ½ dR/dφ (F,) and ½ dR/dlog γ (K,)."""
        spread = self.w + gamma[:, None]
        gz = np.empty_like(z)
        a = np.empty_like(z)
        for b in self.blocks:
            zb, scaled = z[b.rows].T, (e / spread)[:, b.rows, None]
            ab = (b.smoother.Q @ scaled)[..., 0]
            part = (b.smoother.C_inv @ zb[..., None])[..., 0] + b.weight * (zb - b.y)
            part -= (np.swapaxes(b.QtD, 1, 2) @ scaled)[..., 0]
            gz[b.rows], a[b.rows] = part.T, ab.T
        gz += np.einsum("mk,mkj->mj", a, lin.fz)
        g_phi = np.einsum("mk,mkp->p", a, lin.fphi)
        g_phi = g_phi + self.problem.prior_at(phi).gradient
        return gz, g_phi, self.gamma_gradient(e, gamma)

    def normal(self, z: Array, lin: Linear, e: Array, gamma: Array, phi: Array) -> Normal:
        """Gauss–Newton normal equations for (z, φ) at fixed γ; unknowns of a block are state-major (K·N).

        With B_k = diag(w_k + γ_k)^(−½) Qᵀ, state k's mismatch is B_k(f_k − D z_k): white. By z_j it changes with
        B_k diag(∂f_k/∂z_j), minus B_kD if j = k, and by φ with B_k ∂f_k/∂φ. These rows are J and J_phi.
        """
        gz, g_phi, _ = self.gradient(z, lin, e, gamma, phi)
        H, border, g = [], [], []
        F = lin.fphi.shape[-1]
        H_phi = np.zeros((F, F))
        for b in self.blocks:
            K, N = b.y.shape
            root = 1.0 / np.sqrt(b.smoother.w + gamma[:, None])[..., None]
            B = root * np.swapaxes(b.smoother.Q, 1, 2)  # whitening of state k's mismatch
            fz = lin.fz[b.rows].transpose(1, 2, 0)  # (K, K, N)
            J = B[:, :, None, :] * fz[:, None, :, :]  # (k, n, j, m)
            index = np.arange(K)
            J[index, :, index, :] -= root * b.QtD
            J = J.reshape(K * N, K * N)
            J_phi = (B @ lin.fphi[b.rows].transpose(1, 0, 2)).reshape(K * N, F)
            Hb = J.T @ J
            blocks = Hb.reshape(K, N, K, N)
            blocks[index, :, index, :] += b.smoother.C_inv
            Hb[np.diag_indices(K * N)] += b.weight.ravel()
            H.append(Hb)
            border.append(J.T @ J_phi)
            g.append(gz[b.rows].T.ravel())
            H_phi += J_phi.T @ J_phi
        H_phi += self.problem.prior_at(phi).curvature
        return Normal(H, border, g, H_phi, g_phi)
