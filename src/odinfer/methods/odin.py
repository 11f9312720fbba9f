"""ODIN: Algorithm 1 of the paper, and what goes beyond it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from odinfer import gp, starts
from odinfer.problem import Problem
from odinfer.risk import Risk, Units
from odinfer.solve import GammaRule, Solution, gauss_newton, lbfgsb

Array = NDArray[np.float64]

@dataclass(frozen=True)
class Odin:
    kernel: str = "auto"
    optimizer: str = "gauss-newton"
    refine: bool = True
    gamma: str | float = "learn"
    gamma_bounds: tuple[float, float] = (1e-6, 1e3)
    jitter: float = 1e-6
    jitter_A: float | None = None
    grid: int = 1
    starts: int = 10
    hops: int = 0
    shared: bool = False
    scale_time: bool = True
    hyper_bounds: tuple[float, float] = (1e-6, 1e6)
    peaks: int = 1
    margin: float = 2.0
    candidates: tuple[str, ...] = ("matern52", "warped-matern52")

    @property
    def rule(self) -> GammaRule:
        return GammaRule(self.gamma_bounds, None if self.gamma == "learn" else float(self.gamma), self.shared)


def standardise(problem: Problem, scale_time: bool = True) -> Units:
    pooled = np.concatenate([e.y for e in problem.data.experiments])
    mean, scale = np.nanmean(pooled, 0), np.nanstd(pooled, 0)
    spread = np.concatenate([e.t - e.t.mean() for e in problem.data.experiments])
    return Units(mean, np.where(scale > 0, scale, 1.0), float(spread.std()) if scale_time else 1.0)


def build(problem: Problem, o: Odin) -> Risk:
    units = standardise(problem, o.scale_time)
    ex = problem.data.experiments
    origin = [e.t[0] for e in ex] if o.scale_time else [0.0] * len(ex)
    series = []
    for k in range(len(problem.model.states)):
        state = []
        for e, t0 in zip(ex, origin):
            seen = np.isfinite(e.y[:, k])
            if seen.any():
                state.append(gp.Series((e.t[seen] - t0) / units.time, (e.y[seen, k] - units.mean[k]) / units.scale[k]))
        series.append(state)
    known = [None if np.isnan(s) else float((s / c) ** 2) for s, c in zip(problem.known_sigma, units.scale)]
    names = list(o.candidates) if o.kernel == "auto" else [o.kernel]
    if o.shared:
        pooled = [[s for state in series for s in state]]
        hypers = gp.empirical_bayes(pooled, names, [known[0]], o.margin, o.hyper_bounds, o.peaks) * len(series)
    else:
        hypers = gp.empirical_bayes(series, names, known, o.margin, o.hyper_bounds, o.peaks)
    grids = []
    for e, t0 in zip(ex, origin):
        t, rows = refine_grid(e.t, o.grid)
        y = np.full((e.y.shape[1], len(t)), np.nan)
        y[:, rows] = units.standard(e.y).T
        grids.append((t, y, gp.smooth(hypers, (t - t0) / units.time, y, o.jitter, o.jitter_A)))
    return Risk.build(problem, units, hypers, grids)


def refine_grid(t: Array, points: int) -> tuple[Array, NDArray[np.int64]]:
    """`points` grid times per gap between observations, and the rows of the observations among them."""
    if points <= 1 or len(t) < 2:
        return t, np.arange(len(t))
    fine = np.concatenate([t[:-1, None] + np.diff(t)[:, None] * np.arange(points) / points]).ravel()
    return np.append(fine, t[-1]), np.arange(len(t)) * points


def odin_stage(problem: Problem, o: Odin, seed: int = 0, risk=None, most=3) -> tuple[Risk, Solution, int]:
    rng = np.random.default_rng(seed)
    risk = risk or build(problem, o)
    phi0 = starts.draw(problem, o.starts, rng)
    phi, cost = starts.match(risk, phi0)
    best, agree = None, 0
    for p, count in starts.distinct(phi, cost, most):
        s = gauss_newton(risk, risk.mean, p, o.rule)
        if best is None or s.risk < best.risk - 1e-3:
            best, agree = s, count
        elif abs(s.risk - best.risk) <= 1e-3:
            agree += count
    return risk, best, agree
