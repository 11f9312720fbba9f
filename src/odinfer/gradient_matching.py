"""From a problem to its risk (steps 1 and 2 of Algorithm 1 up to the optimiser), and from a solution to curves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from odinfer import gp
from odinfer.curve import Curve, Gradients
from odinfer.kernels import kernel
from odinfer.problem import Problem
from odinfer.risk import Risk, Units
from odinfer.smoother import smooth
from odinfer.snapped import snapped_bayes
from odinfer.solve import Solution

Array = NDArray[np.float64]

# Rougher than the evidence would like, because that matches gradients better (an RBF smooths corners away);
# warped only where the evidence clearly asks for it.
AUTO = ("matern52", "warped-matern52")
_AUTO_MARGIN = 2.0
_DENSE = 200


def standardise(problem: Problem, scale_time: bool = True) -> Units:
    """Mean and standard deviation per state over all observations, and the spread of the times."""
    pooled = np.concatenate([e.y for e in problem.data.experiments])
    mean, scale = np.nanmean(pooled, 0), np.nanstd(pooled, 0)
    spread = np.concatenate([e.t - e.t.mean() for e in problem.data.experiments])
    time = float(spread.std()) if scale_time and len(spread) > 1 else 1.0
    return Units(mean, np.where(scale > 1e-12 * (np.abs(mean) + 1e-300), scale, 1.0), time)


def smooth_states(
    problem: Problem,
    units: Units,
    kernel_name: str = "auto",
    shared: bool = False,
    bounds: tuple[float, float] = (1e-10, 1e6),
    thorough: bool = False,
    weak_prior: bool = False,
    snapped: bool = False,
) -> tuple[gp.Hyperparameters, ...]:
    """Empirical Bayes for every state (one set for all if shared), with shapes from one grid if snapped."""
    series = []
    for k in range(len(problem.model.states)):
        seen = [np.isfinite(e.y[:, k]) for e in problem.data.experiments]
        series.append(
            [
                gp.Series((e.t[s] - e.t[0]) / units.time, (e.y[s, k] - units.mean[k]) / units.scale[k])
                for e, s in zip(problem.data.experiments, seen, strict=True)
                if s.any()
            ]
        )
    known = [
        None if np.isnan(s) else float((s / c) ** 2) for s, c in zip(problem.known_sigma, units.scale, strict=True)
    ]
    names, margin = (AUTO, _AUTO_MARGIN) if kernel_name == "auto" else ((kernel_name,), 0.0)
    if snapped and not shared:
        return tuple(snapped_bayes(series, names, known, margin, bounds, weak_prior))
    if shared:
        pooled = [[s for state in series for s in state]]
        return tuple(gp.empirical_bayes(pooled, names, known[:1], margin, bounds, thorough, weak_prior) * len(series))
    return tuple(gp.empirical_bayes(series, names, known, margin, bounds, thorough, weak_prior))


def build_risk(
    problem: Problem,
    units: Units,
    hypers: Sequence[gp.Hyperparameters],
    jitter: float,
    grid: int = 1,
    temper: float = 1.0,
) -> Risk:
    """The risk on a grid of `grid` points per gap, the GP's weight divided by `temper`."""
    grids = []
    for e in problem.data.experiments:
        t, rows = finer_grid(e.t, grid)
        y = np.full((e.y.shape[1], len(t)), np.nan)
        y[:, rows] = units.standard(e.y).T
        grids.append((t, y, smooth(hypers, (t - e.t[0]) / units.time, y, jitter).tempered(temper)))
    return Risk.build(problem, units, hypers, grids)


def finer_grid(t: Array, points: int) -> tuple[Array, NDArray[np.int64]]:
    """`points` grid times per gap between observations, and where the observations stand among them."""
    if points <= 1 or len(t) < 2:
        return t, np.arange(len(t))
    fine = (t[:-1, None] + np.diff(t)[:, None] * np.arange(points) / points).ravel()
    return np.append(fine, t[-1]), np.arange(len(t)) * points


def slopes(risk: Risk, s: Solution) -> Array:
    """f(x, θ) in the user's units at all points (M, K)."""
    return risk.linearise(s.z, s.phi).f * risk.units.scale / risk.units.time


def gradients(risk: Risk, s: Solution) -> list[Gradients]:
    """f against the GP's derivative with its standard deviation √(diag A), per experiment."""
    rate = risk.units.scale / risk.units.time
    f = slopes(risk, s)
    found = []
    for b in risk.blocks:
        m = b.smoother
        gp_slope = (m.D @ s.z[b.rows].T[..., None])[..., 0].T
        sd = np.sqrt(np.einsum("knm,km->kn", m.Q**2, m.w)).T
        found.append(Gradients(risk.t[b.rows], f[b.rows], gp_slope * rate, sd * rate))
    return found


def curves(risk: Risk, s: Solution) -> list[Curve]:
    """The states between grid times: the GP given x and f(x, θ), with bands from the Laplace approximation."""
    deviations = _posterior_sd(risk, s)
    rate = risk.units.scale / risk.units.time
    f = risk.linearise(s.z, s.phi).f
    found = []
    for b in risk.blocks:
        t = risk.t[b.rows]
        dense = dense_times(t)
        unit, dense_unit = (t - t[0]) / risk.units.time, (dense - t[0]) / risk.units.time
        x, slope, sd = (np.empty((len(dense), b.y.shape[0])) for _ in range(3))
        for k, h in enumerate(risk.hypers):
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
        found.append(Curve(dense, risk.units.user(x), slope * rate, sd * risk.units.scale))
    return found


def mean_curves(risk: Risk) -> list[Curve]:
    """The GP means alone, without bands: what is left when no start gave a finite model."""
    found = []
    for b in risk.blocks:
        slope = (b.smoother.D @ b.smoother.mean[..., None])[..., 0].T * risk.units.scale / risk.units.time
        found.append(Curve(risk.t[b.rows], risk.units.user(b.smoother.mean.T), slope, np.zeros_like(slope)))
    return found


def dense_times(t: Array) -> Array:
    """The given times and evenly many between them, about 200 in all."""
    each = max(2, -(-_DENSE // max(len(t) - 1, 1)))
    return np.append(np.linspace(t[:-1], t[1:], each, endpoint=False, axis=1).ravel(), t[-1]) if len(t) > 1 else t


def _posterior_sd(risk: Risk, s: Solution) -> Array:
    """Standard deviations (M, K) of z from the Gauss–Newton Hessian, θ marginalised."""
    lin = risk.linearise(s.z, s.phi)
    normal = risk.normal(s.z, lin, risk.mismatch(s.z, lin.f), s.gamma, s.phi)
    S = normal.H_phi.copy()
    inverses, couplings = [], []
    for H, border in zip(normal.H, normal.border, strict=True):
        inverse = np.linalg.pinv(H, hermitian=True)
        inverses.append(inverse)
        couplings.append(inverse @ border)
        S -= border.T @ couplings[-1]
    cov = np.linalg.pinv(S, hermitian=True)
    sd = np.empty_like(s.z)
    for b, inverse, coupling in zip(risk.blocks, inverses, couplings, strict=True):
        variance = np.diag(inverse) + np.einsum("np,pq,nq->n", coupling, cov, coupling)
        sd[b.rows] = np.sqrt(np.maximum(variance, 0.0)).reshape(b.y.shape).T
    return sd
