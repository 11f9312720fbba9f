"""Natural cubic smoothing splines by generalised cross-validation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def natural(knots: Array, at: Array) -> tuple[Array, Array]:
    """Values and slopes (N, n) at N times of the natural splines through the n unit vectors; straight outside."""
    from scipy.interpolate import CubicSpline

    if len(knots) < 2:
        return np.ones((len(at), len(knots))), np.zeros((len(at), len(knots)))
    spline = CubicSpline(knots, np.eye(len(knots)), bc_type="natural")
    inside = np.clip(at, knots[0], knots[-1])
    slope = spline(inside, 1)
    return spline(inside) + (at - inside)[:, None] * slope, slope


def roughness(knots: Array) -> Array:
    """The matrix R (n, n) of the natural spline through y: ∫(x″)² = yᵀRy."""
    from scipy.interpolate import CubicSpline

    n = len(knots)
    if n < 3:
        return np.zeros((n, n))
    bend = CubicSpline(knots, np.eye(n), bc_type="natural")(knots, 2)
    h, i = np.diff(knots), np.arange(n - 1)
    B = np.zeros((n, n))
    B[i, i] += h / 3.0
    B[i + 1, i + 1] += h / 3.0
    B[i, i + 1] = B[i + 1, i] = h / 6.0
    R = bend.T @ B @ bend
    return np.asarray(0.5 * (R + R.T))


def cross_validated(series: list[tuple[Array, Array]]) -> tuple[float, float]:
    """The smoothing λ of generalised cross-validation, one for all series (t, y) of a state, and the noise variance."""
    d, b2 = [], []
    for t, y in series:
        values, U = np.linalg.eigh(roughness(t))
        d.append(np.where(values > 1e-10 * values.max(initial=0.0), values, 0.0))
        b2.append((U.T @ y) ** 2)
    bends, squares = np.concatenate(d), np.concatenate(b2)
    if not (bends > 0).any():
        return 0.0, 0.0
    positive = bends[bends > 0]
    lam = np.geomspace(1e-2 / positive.max(), 1e4 / positive.min(), 400)
    cut = lam[:, None] * bends / (1.0 + lam[:, None] * bends)  # share of each component that is smoothed away
    rss, left = (cut**2 * squares).sum(1), cut.sum(1)
    best = int((rss / left**2).argmin())
    return float(lam[best]), float(rss[best] / left[best])
