"""Trust-region steps within bounds for a batch of searches."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from odinfer.optimize.arrow_matrix import ArrowMatrix
from odinfer.optimize.levenberg_marquardt import blocked_by_bounds

Array = NDArray[np.float64]

_PASSES, _HALVINGS, _FEWER = 4, 40, 16
_LEAST = 1e-12  # of the largest curvature
_HUGE = 1e150  # beyond which squares overflow


def trust_region_step(
    at: Array, H: ArrowMatrix, g: Array, low: Array, high: Array, unit: Array, radius: Array
) -> tuple[Array, Array]:
    """Steps (B, P) from points (B, P) that lower g·s + s·H·s/2 as far as they may, and by how much they do (B,).

    Unknowns that would leave their bounds (B, P) or (P,) stop there, and the others are solved for again. Where numbers
    overflow there is no step.

    Args:
        H, g: (B, P, P), positive semidefinite, and (B, P).
        unit: of the unknowns (B, P), in which steps are measured.
        radius: longest steps (B,) in these units.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        Hs, gs = H.times(unit), g * unit
    sound = Hs.finite & np.isfinite(gs).all(1) & (Hs.largest < _HUGE)
    Hs, gs = Hs.without_rows(np.flatnonzero(~sound)), np.where(sound[:, None], gs, 0.0)
    least, most = (low - at) / unit, (high - at) / unit
    held, s = blocked_by_bounds(at, g, low, high), np.zeros_like(g)
    for _ in range(_PASSES):
        free = ~held
        slope = np.where(free, gs + Hs.dot(np.where(held, s, 0.0)), 0.0)
        left = np.sqrt(np.maximum(radius**2 - (np.where(held, s, 0.0) ** 2).sum(1), (0.1 * radius) ** 2))
        s = np.where(free, _step_within_radius(Hs.times(free.astype(float)), slope, left), s)
        out = free & ((s < least) | (s > most))
        s = np.clip(s, least, most)
        held = held | out
        if not out.any():
            break
    fall = -(gs * s).sum(1) - 0.5 * (s * Hs.dot(s)).sum(1)
    return s * unit, fall


def _step_within_radius(H: ArrowMatrix, g: Array, radius: Array) -> Array:
    """−(H + λ)⁻¹ g with the least λ ≥ 0 for which this is no longer than the radius (B,)."""
    if H.own.shape[1]:
        try:
            return _by_blocks(H, g, radius)
        except np.linalg.LinAlgError:
            pass  # too close to singular for that
    w, V = np.linalg.eigh(H.dense())
    w = np.maximum(w, _LEAST * np.maximum(w[:, -1:], 1e-290))
    along = (np.swapaxes(V, 1, 2) @ g[..., None])[..., 0]
    high = np.log(np.maximum(np.sqrt((along**2).sum(1)) / radius, 1e-290))
    low = high - 60.0
    with np.errstate(over="ignore"):
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            long = ((along / (w + np.exp(middle)[:, None])) ** 2).sum(1) > radius**2
            low, high = np.where(long, middle, low), np.where(long, high, middle)
        fits = ((along / w) ** 2).sum(1) <= radius**2
        found = along / (w + np.where(fits, 0.0, np.exp(high))[:, None])
    return np.asarray(-(V @ found[..., None])[..., 0])


def _by_blocks(H: ArrowMatrix, g: Array, radius: Array) -> Array:
    """The same for the blocks of many experiments: they are eliminated, λ by λ."""
    B, E, n, _ = H.own.shape
    right = np.concatenate([H.edge, g[:, : E * n].reshape(B, E, n, 1)], -1)

    def solved(damping: Array) -> Array:
        X = np.linalg.solve(H.own + damping[:, None, None, None] * np.eye(n), right)
        left = np.einsum("beip,beiq->bpq", H.edge, X, optimize=True)
        S = H.corner + damping[:, None, None] * np.eye(H.corner.shape[1]) - left[..., :-1]
        y = np.linalg.solve(S, (g[:, E * n :] - left[..., -1])[..., None])
        x = X[..., -1:] - X[..., :-1] @ y[:, None]
        return np.concatenate([x.reshape(B, E * n), y[..., 0]], 1)

    least = np.log(_LEAST * np.maximum(H.diagonal.max(1), 1e-290))
    whole = solved(np.exp(least))
    fits = (whole**2).sum(1) <= radius**2
    if fits.all():
        return -whole
    high = np.maximum(np.log(np.maximum(np.sqrt((g**2).sum(1)) / radius, 1e-290)), least)
    low = least
    for _ in range(_FEWER):
        middle = 0.5 * (low + high)
        long = ~((solved(np.exp(middle)) ** 2).sum(1) <= radius**2)
        low, high = np.where(long, middle, low), np.where(long, high, middle)
    return -solved(np.exp(np.where(fits, least, high)))
