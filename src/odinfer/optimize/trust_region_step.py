"""Trust-region steps within bounds for a batch of searches."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from odinfer.optimize.levenberg_marquardt import blocked_by_bounds

Array = NDArray[np.float64]

_PASSES, _HALVINGS, _FEWER = 4, 40, 16
_MANY = 48  # unknowns from which on blocks are made use of
_LEAST = 1e-12  # of the largest curvature
_HUGE = 1e150  # beyond which squares overflow


def trust_region_step(
    at: Array, H: Array, g: Array, low: Array, high: Array, unit: Array, radius: Array, blocks: tuple[int, int] = (0, 0)
) -> tuple[Array, Array]:
    """Steps (B, P) from points (B, P) that lower g·s + s·H·s/2 as far as they may, and by how much they do (B,).

    Unknowns that would leave their bounds (B, P) or (P,) stop there, and the others are solved for again. Where numbers
    overflow there is no step.

    Args:
        H, g: (B, P, P), positive semidefinite, and (B, P).
        unit: of the unknowns (B, P), in which steps are measured.
        radius: longest steps (B,) in these units.
        blocks: so many sets of so many unknowns come first, and no two of these sets meet in H.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        Hs, gs = H * unit[:, :, None] * unit[:, None, :], g * unit
    sound = np.isfinite(Hs).all((1, 2)) & np.isfinite(gs).all(1) & (np.abs(Hs).max((1, 2), initial=0.0) < _HUGE)
    Hs, gs = np.where(sound[:, None, None], Hs, np.eye(g.shape[1])), np.where(sound[:, None], gs, 0.0)
    least, most = (low - at) / unit, (high - at) / unit
    held, s = blocked_by_bounds(at, g, low, high), np.zeros_like(g)
    for _ in range(_PASSES):
        free = ~held
        own = np.where(free[:, :, None] & free[:, None, :], Hs, 0.0)
        slope = np.where(free, gs + (Hs @ np.where(held, s, 0.0)[..., None])[..., 0], 0.0)
        left = np.sqrt(np.maximum(radius**2 - (np.where(held, s, 0.0) ** 2).sum(1), (0.1 * radius) ** 2))
        s = np.where(free, _step_within_radius(own, slope, left, *blocks), s)
        out = free & ((s < least) | (s > most))
        s = np.clip(s, least, most)
        held = held | out
        if not out.any():
            break
    fall = -(gs * s).sum(1) - 0.5 * (s * (Hs @ s[..., None])[..., 0]).sum(1)
    return s * unit, fall


def _step_within_radius(H: Array, g: Array, radius: Array, sets: int = 0, size: int = 0) -> Array:
    """−(H + λ)⁻¹ g with the least λ ≥ 0 for which this is no longer than the radius (B,)."""
    if sets > 1 and sets * size > _MANY:
        try:
            return _by_blocks(H, g, radius, sets, size)
        except np.linalg.LinAlgError:
            pass  # too close to singular for that
    w, V = np.linalg.eigh(H)
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


def _by_blocks(H: Array, g: Array, radius: Array, sets: int, size: int) -> Array:
    """The same where only what comes after the sets touches all of them: they are eliminated, λ by λ."""
    (B, P), n = g.shape, sets * size
    own = np.arange(n).reshape(sets, size)
    A, C = H[:, own[:, :, None], own[:, None, :]], H[:, :n, n:].reshape(B, sets, size, P - n)
    right = np.concatenate([C, g[:, :n].reshape(B, sets, size, 1)], -1)

    def solved(damping: Array) -> Array:
        X = np.linalg.solve(A + damping[:, None, None, None] * np.eye(size), right)
        left = (np.swapaxes(C, 2, 3) @ X).sum(1)
        S = H[:, n:, n:] + damping[:, None, None] * np.eye(P - n) - left[..., :-1]
        y = np.linalg.solve(S, (g[:, n:] - left[..., -1])[..., None])
        x = X[..., -1:] - X[..., :-1] @ y[:, None]
        return np.concatenate([x.reshape(B, n), y[..., 0]], 1)

    least = np.log(_LEAST * np.maximum(np.diagonal(H, axis1=1, axis2=2).max(1), 1e-290))
    high = np.maximum(np.log(np.maximum(np.sqrt((g**2).sum(1)) / radius, 1e-290)), least)
    low = least
    fits = (solved(np.exp(least)) ** 2).sum(1) <= radius**2
    for _ in range(_FEWER):
        middle = 0.5 * (low + high)
        long = ~((solved(np.exp(middle)) ** 2).sum(1) <= radius**2)
        low, high = np.where(long, middle, low), np.where(long, high, middle)
    return -solved(np.exp(np.where(fits, least, high)))
