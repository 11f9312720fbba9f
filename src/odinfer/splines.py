"""Natural cubic smoothing splines by generalised cross-validation, and the match of their slopes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from odinfer import gradient_matching as gm
from odinfer.curve import Curve
from odinfer.gp import Hyperparameters
from odinfer.problem import Problem
from odinfer.risk import Risk
from odinfer.smoother import Smoother

Array = NDArray[np.float64]


def spline_match(problem: Problem, grid: int) -> tuple[Risk, list[Curve]]:
    """The unweighted match of a smoothing spline's slopes as a Risk (A = 0), and the spline's curves with bands.

    On a grid that holds its knots, a natural spline is the interpolating one of its values: D is linear, as for a GP.
    """
    units = gm.standardise(problem)
    experiments = problem.data.experiments
    z = [units.standard(e.y) for e in experiments]
    times = [(e.t - e.t[0]) / units.time for e in experiments]
    grids, curves = [], []
    K = len(problem.model.states)
    found = []
    for k in range(K):
        series = [(t[np.isfinite(y[:, k])], y[np.isfinite(y[:, k]), k]) for t, y in zip(times, z, strict=True)]
        lam, variance = cross_validated(series)
        known = problem.known_sigma[k] / units.scale[k]
        found.append((lam, variance if np.isnan(known) else known**2, series))
    for i, e in enumerate(experiments):
        t, rows = gm.finer_grid(e.t, grid)
        dense = gm.dense_times(e.t)
        at, fine = (t - e.t[0]) / units.time, (dense - e.t[0]) / units.time
        mean, y = np.empty((K, len(t))), np.full((K, len(t)), np.nan)
        y[:, rows] = z[i].T
        x, slope, sd = (np.empty((len(dense), K)) for _ in range(3))
        for k, (lam, variance, series) in enumerate(found):
            knots, values = series[i]
            hat = np.linalg.inv(np.eye(len(knots)) + lam * roughness(knots))
            fitted = hat @ values
            between, between_slope = natural(knots, fine)
            mean[k] = natural(knots, at)[0] @ fitted
            x[:, k], slope[:, k] = between @ fitted, between_slope @ fitted
            sd[:, k] = np.sqrt(variance * np.maximum(np.einsum("dn,nm,dm->d", between, hat, between), 0.0))
        D, eye = natural(at, at)[1], np.eye(len(t))
        spread = np.broadcast_to(eye, (K, *eye.shape))
        smoother = Smoother(mean, np.zeros_like(spread), np.broadcast_to(D, spread.shape), spread, np.zeros_like(mean))
        grids.append((t, y, smoother))
        curves.append(Curve(dense, units.user(x), slope * units.scale / units.time, sd * units.scale))
    hypers = [Hyperparameters("spline", (lam,), 1.0, max(v, 1e-20), float("nan")) for lam, v, _ in found]
    return Risk.build(problem, units, hypers, grids), curves


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
