"""The ODIN risk of many states: operators shared by groups of states, sparse derivatives, no large dense matrix.

The same risk as in risk.py with the mismatch written e = T f − S z, which has two uses: T = Qᵀ and S = QᵀD are a
Gaussian process's; a collocation formula's (continuation.py) turn the risk into that of a trajectory. States are
(M, K) throughout, points of all experiments stacked.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from odinfer.gp.evidence import Hyperparameters
from odinfer.gp.shared_hyperparameters import Group
from odinfer.gp.standardisation import Units
from odinfer.odin.risk import Diagonal
from odinfer.odin.sparse.jacobian import SparseField
from odinfer.problem.problem import Problem

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SparseBlock:
    """One experiment on its grid of N times.

    Attributes:
        rows: where its points stand among all stacked points.
        mismatches: where its mismatches stand among all stacked ones.
        y, weight: standardised observations and 1/σ², zero where missing, (N, K).
        groups: operators with the states that share them.
        mean: where the states start (N, K).
    """

    rows: slice
    mismatches: slice
    y: Array
    weight: Array
    groups: tuple[Group, ...]
    mean: Array

    @functools.cached_property
    def has_prior(self) -> bool:
        return any(g.prior.size for g in self.groups)

    def apply(self, operator: str, z: Array, transpose: bool = False) -> Array:
        """An operator of the groups on all states: (n, K) → (m, K)."""
        first = getattr(self.groups[0], operator)
        if len(self.groups) == 1:  # of all states
            return np.asarray((first.T if transpose else first) @ z)
        out = np.empty((first.shape[1 if transpose else 0], z.shape[1]))
        for g in self.groups:
            matrix = getattr(g, operator)
            out[:, g.members] = (matrix.T if transpose else matrix) @ z[:, g.members]
        return out


class SparseLinear(NamedTuple):
    """The standardised field: f (M, K), ∂f/∂z (M·K, M·K) and ∂f/∂φ (M·K, F), the last two sparse."""

    f: Array
    fz: Any
    fphi: Any


@dataclass(frozen=True)
class SparseRisk(Diagonal):
    """The risk of one problem with given hyperparameters, for many states."""

    blocks: tuple[SparseBlock, ...]
    field: SparseField
    v: Array  # (K,) variances: they scale each state's prior and w

    @classmethod
    def build(
        cls,
        problem: Problem,
        units: Units,
        hypers: Sequence[Hyperparameters],
        grids: Sequence[tuple[Array, Array, tuple[Group, ...], Array]],
        field: SparseField,
        v: Array,
    ) -> Self:
        """From user times (N,), standardised observations (N, K), groups and first states (N, K) per experiment."""
        noise = np.array([h.noise for h in hypers])
        blocks, start, first = [], 0, 0
        for t, y, groups, mean in grids:
            weight = np.where(np.isfinite(y), 1.0 / noise, 0.0)
            rows = slice(start, start := start + len(t))
            mismatches = slice(first, first := first + len(groups[0].w))
            blocks.append(SparseBlock(rows, mismatches, np.nan_to_num(y), weight, groups, mean))
        t = np.concatenate([g[0] for g in grids])
        u = np.concatenate([problem.inputs_at(i, g[0]) for i, g in enumerate(grids)])
        return cls(problem, units, tuple(hypers), tuple(blocks), t, u, field, v)

    @property
    def mean(self) -> Array:
        """Where the states start (M, K)."""
        return np.concatenate([b.mean for b in self.blocks])

    @functools.cached_property
    def w(self) -> Array:
        """Variances of the mismatches (K, E), without γ."""
        w = np.empty((len(self.v), self.blocks[-1].mismatches.stop))
        for b in self.blocks:
            for g in b.groups:
                w[g.members, b.mismatches] = self.v[g.members, None] * g.w
        return w

    def linearise(self, z: Array, phi: Array) -> SparseLinear:
        """The standardised field and its sparse Jacobians at z (M, K), φ (F,)."""
        p = self.problem
        found = self.field.derivatives(self.t, self.units.user(z), p.theta(phi), self.u)
        ft = found.ft[:, p.free_index]
        ft.data *= p.slope(phi)[ft.indices]
        return SparseLinear(*self.units.standard_sparse_field(found.f, found.fx, ft))

    def mismatch(self, z: Array, f: Array) -> Array:
        """e = T f − S z for all states (K, E)."""
        with np.errstate(invalid="ignore", over="ignore"):  # f may overflow at a trial point; the caller looks
            parts = [b.apply("T", f[b.rows]) - b.apply("S", z[b.rows]) for b in self.blocks]
        return np.ascontiguousarray(np.concatenate(parts).T)

    def state_terms(self, z: Array, phi: Array) -> float:
        """The terms of R without γ: the prior of the states, the data, and −2 log p(θ)."""
        total = 0.0
        for b in self.blocks:
            zb = z[b.rows]
            miss = zb - b.y
            total += float(np.vdot(b.weight * miss, miss))
            if b.has_prior:
                total += float(np.vdot(zb / self.v, b.apply("prior", zb)))
        total += 2.0 * self.problem.prior_at(phi).value
        return total if np.isfinite(total) else np.inf

    def gradient(self, z: Array, lin: SparseLinear, e: Array, gamma: Array, phi: Array) -> tuple[Array, Array, Array]:
        """½ dR/dz (M, K), ½ dR/dφ (F,) and ½ dR/dlog γ (K,)."""
        spread = self.w + gamma[:, None]
        scaled = (e / spread).T
        gz, a = np.empty_like(z), np.empty_like(z)
        for b in self.blocks:
            gz[b.rows] = b.weight * (z[b.rows] - b.y) - b.apply("S", scaled[b.mismatches], transpose=True)
            if b.has_prior:
                gz[b.rows] += b.apply("prior", z[b.rows]) / self.v
            a[b.rows] = b.apply("T", scaled[b.mismatches], transpose=True)
        gz += (lin.fz.T @ a.ravel()).reshape(z.shape)
        g_phi = np.asarray(lin.fphi.T @ a.ravel())
        g_phi = g_phi + self.problem.prior_at(phi).gradient
        return gz, g_phi, self.gamma_gradient(e, gamma)
