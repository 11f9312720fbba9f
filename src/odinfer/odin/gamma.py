"""The treatment of γ, and its exact update."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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


def best_gamma(w: Array, e: Array, bounds: tuple[float, float], shared: bool = False) -> Array:
    """The γ_k that minimise Σ e²/(w+γ) + log(w+γ), exactly, per state (or one for all).

    Args:
        w: eigenvalues of A (K, M).
        e: mismatch in the eigenbasis (K, M).
        bounds: of γ.
        shared: one γ for all states.
    """
    K = len(w)
    if shared:
        w, e = w.reshape(1, -1), e.reshape(1, -1)
    e2 = e * e
    low, high = np.log(bounds[0]), np.log(bounds[1])
    grid = np.linspace(low, high, 16)
    spread = w[:, None, :] + np.exp(grid)[:, None]
    values = (e2[:, None, :] / spread + np.log(spread)).sum(-1)
    best = values.argmin(1)
    s = w + bounds[0]
    rising = ((1.0 - e2 / s) / s).sum(1) >= 0  # at the lower bound
    gamma = np.full(len(w), bounds[0])
    inner = np.flatnonzero((best > 0) | ~rising)
    if len(inner):
        gamma[inner] = _polished_gamma(w[inner], e2[inner], grid, best[inner])
    return np.broadcast_to(gamma, K).copy() if shared else gamma


def _polished_gamma(w: Array, e2: Array, grid: Array, best: NDArray[np.int64]) -> Array:
    """Safeguarded Newton on l = log γ inside the cells around the grid's minima.

    With s = w + γ the derivatives of Σ e²/s + log s by l are d1 = Σ γ(1/s − e²/s²) and d2 = d1 + Σ γ²(2e²/s³ − 1/s²).
    """
    lg, width = grid[best], grid[1] - grid[0]
    low, high = np.maximum(lg - width, grid[0]), np.minimum(lg + width, grid[-1])
    for _ in range(12):
        gamma = np.exp(lg)[:, None]
        s = w + gamma
        d1 = (gamma * (1.0 / s - e2 / s**2)).sum(1)
        d2 = d1 + (gamma**2 * (2.0 * e2 / s**3 - 1.0 / s**2)).sum(1)
        step = np.where(d2 > 0, -d1 / np.where(d2 > 0, d2, 1.0), -np.sign(d1) * width / 4)
        new = np.clip(lg + np.clip(step, -width / 2, width / 2), low, high)
        lg, moved = new, np.abs(new - lg).max()
        if moved < 1e-8:
            break
    return np.exp(lg)
