"""Two-step gradient matching: smooth first, then fit the equations to the smoothed slopes, states held fixed.

The smoother is a Gaussian process, whose uncertainty about the slopes weights the match (Calderhead et al. 2009 in
spirit), or a smoothing spline, all slopes counting the same (Varah 1982).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.checks import checked_choice, checked_integer
from odinfer.errors import InputError, Status
from odinfer.gp.curves import Curve
from odinfer.gp.evidence import Hyperparameters
from odinfer.gp.grids import dense_times, finer_grid
from odinfer.gp.operators import Smoother
from odinfer.gp.smoother import facts, noise_sd, posterior_curves
from odinfer.gp.splines import cross_validated, natural, roughness
from odinfer.gp.standardisation import Units
from odinfer.methods.gpr import Gpr, paper_smoother
from odinfer.odin import startpoints
from odinfer.odin.dense_engine import Dense
from odinfer.odin.gauss_newton import Solution
from odinfer.optimize.levenberg_marquardt import Rule, blocked_by_bounds, levenberg_marquardt
from odinfer.problem.problem import Problem
from odinfer.progress import Progress, no_progress
from odinfer.result.assemble import assemble, stage
from odinfer.result.fit import Fit

Array = NDArray[np.float64]

SMOOTHERS = ("gp", "spline")
# How far apart two matches count as different, and what a step must gain to go on: both in units of −2 log p.
_DIFFERENT, _GAIN = 1e-2, 1e-10


@dataclass(frozen=True)
class TwoStep(Gpr):
    """Two-step gradient matching with its options; those of the Gaussian process are those of `Gpr`.

    Args:
        smoother: "gp", or "spline": a natural cubic smoothing spline, by generalised cross-validation.
        gamma: slack of the equations in standardised units; the match is weighted by (A + γI)⁻¹. A spline knows no
            A and weights all slopes the same.
        grid: points per gap between observations at which slopes are matched.
        starts: how many random θ to start from.
    """

    smoother: str = "gp"
    gamma: float = 1e-2
    grid: int = 1
    starts: int = 10

    name = "two-step"

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_choice("smoother", self.smoother, SMOOTHERS)
        if not isinstance(self.gamma, (int, float)) or not 0 <= self.gamma < np.inf:
            raise InputError(f"gamma must be a number from 0 on, not {self.gamma!r}")
        for option in ("grid", "starts"):
            checked_integer(option, getattr(self, option), 1)

    @staticmethod
    def paper(system: Any, **changes: Any) -> TwoStep:
        """The smoother of the paper's step 1 for a System (or its name), with γ as others have set it there."""
        smoother = paper_smoother(system)
        gamma = {"rbf": 0.3, "matern52": 1e-3, "sigmoid": 1e-4}.get(smoother["kernel"], TwoStep.gamma)
        return TwoStep(**smoother | {"gamma": gamma} | changes)

    def fit(self, problem: Problem, seed: int = 0, progress: Progress | None = None) -> Fit:
        """Smooth, then match; the states are the smoother's."""
        progress = progress or no_progress
        progress("checking the equations", 0.0)
        problem.check_field()
        progress("smoothing the data", 0.15)
        clock = time.perf_counter()
        if self.smoother == "gp":
            units, hypers = self.smooth(problem)
            risk = Dense.of(problem, units, hypers, self.jitter, self.grid)
            curves = posterior_curves(problem, units, hypers, self.jitter)
            details: dict[str, Any] = facts(problem, hypers)
        else:
            risk, curves = spline_match(problem, self.grid)
            details = {}
        progress("matching slopes", 0.5)
        best, agreeing = self._match(risk, np.random.default_rng(seed))
        finite = bool(np.isfinite(best.risk))
        status = Status.NOT_FINITE if not finite else Status.CONVERGED if best.converged else Status.MAX_ITERATIONS
        only = stage(
            problem, problem.theta(best.phi), curves, noise_sd(risk.units, risk.hypers),
            objective=best.risk, seconds=time.perf_counter() - clock, note=status.value,
        )  # fmt: skip
        progress("done", 1.0)
        return assemble(
            problem, self, seed, {self.name: only}, curves,
            status=status.value,
            converged=status.converged,
            gradients=risk.gradients(best) if finite else None,
            details=details | {"starts": self.starts, "starts_agreeing": agreeing, "iterations": best.iterations},
        )  # fmt: skip

    def _match(self, risk: Dense, rng: np.random.Generator) -> tuple[Solution, int]:
        """The best θ of all starts, and how many starts lead to it."""
        gamma = max(self.gamma, 1e-12) if self.smoother == "gp" else 1.0  # A alone may be singular
        phi, cost = startpoints.match(risk, startpoints.draw(risk.problem, self.starts, rng), gamma)
        nothing = Solution(risk.mean, np.full(phi.shape[1], np.nan), np.full(len(risk.w), gamma), np.inf, 0, False)
        if not np.isfinite(cost).any():
            return nothing, 0
        if self.smoother == "spline":  # a prior weighs against slopes of this accuracy
            gamma = max(float(cost.min()) / risk.mean.size, 1e-12)
        ends = [(polish(risk, p, gamma), n) for p, n in startpoints.distinct(risk.problem, phi, cost, most=3)]
        best = min((s for s, _ in ends), key=lambda s: s.risk)
        return best, sum(n for s, n in ends if s.risk <= best.risk + _DIFFERENT)


def spline_match(problem: Problem, grid: int) -> tuple[Dense, list[Curve]]:
    """The unweighted match of a smoothing spline's slopes as a risk (A = 0), and the spline's curves with bands.

    On a grid that holds its knots, a natural spline is the interpolating one of its values: D is linear, as for a GP.
    """
    units = Units.of(problem)
    experiments = problem.data.experiments
    z = [units.standard(e.y) for e in experiments]
    times = [units.standard_time(e.t, e.t[0]) for e in experiments]
    grids, curves = [], []
    K = len(problem.model.states)
    found = []
    for k in range(K):
        series = [(t[np.isfinite(y[:, k])], y[np.isfinite(y[:, k]), k]) for t, y in zip(times, z, strict=True)]
        lam, variance = cross_validated(series)
        known = units.standard_variance(problem.known_sigma)[k]
        found.append((lam, variance if np.isnan(known) else known, series))
    for i, e in enumerate(experiments):
        t, rows = finer_grid(e.t, grid)
        dense = dense_times(e.t)
        at, fine = (units.standard_time(v, e.t[0]) for v in (t, dense))
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
        curves.append(Curve.of_standard(units, dense, x, slope, sd))
    hypers = [Hyperparameters("spline", (lam,), 1.0, max(v, 1e-20), float("nan")) for lam, v, _ in found]
    return Dense.build(problem, units, hypers, grids), curves


class _Polished(NamedTuple):
    """φ (F,) with −2 log p, its half gradient (F,) and Gauss–Newton matrix (F, F)."""

    phi: Array
    value: float
    g: Array
    H: Array


def polish(risk: Dense, phi: Array, gamma: float, most: int = 100) -> Solution:
    """Levenberg–Marquardt on φ (F,) at the smoothed states within bounds, down to the minimum; a prior counts."""
    p, F = risk.problem, len(phi)
    low, high = p.phi_bounds
    z = risk.mean
    inside, level = np.clip(z, *risk.z_bounds), np.full(z.shape[1], gamma)

    def at(phi: Array) -> _Polished:
        lin = risk.linearise(inside, phi)
        e = risk.mismatch(z, lin.f)
        J = np.concatenate([np.swapaxes(b.smoother.Q, 1, 2) @ lin.fphi[b.rows].swapaxes(0, 1) for b in risk.blocks], 1)
        prior, weight = p.prior_at(phi), 1.0 / (risk.w + gamma)
        value = risk.gamma_terms(e, level) + 2.0 * prior.value
        J, e, weight = J.reshape(z.size, F), e.ravel(), weight.ravel()
        with np.errstate(over="ignore", invalid="ignore"):
            g, H = J.T @ (weight * e) + prior.gradient, (J.T * weight) @ J + prior.curvature
        return _Polished(phi, value if np.isfinite(value) and np.isfinite(H).all() else np.inf, g, H)

    def propose(now: _Polished, damping: float) -> tuple[_Polished, bool]:
        held = blocked_by_bounds(now.phi, now.g, low, high)
        d = np.sqrt(np.maximum(np.diag(now.H), 1e-300))
        S = np.where(held | held[:, None], 0.0, now.H / np.outer(d, d)) + damping * np.eye(F)
        new = at(np.clip(now.phi + np.linalg.solve(S, np.where(held, 0.0, -now.g / d)) / d, low, high))
        return new, new.value <= now.value

    def settles(better: bool, gain: float, now: _Polished, damping: float) -> bool:
        return bool(better) and gain <= _GAIN * (1.0 + abs(now.value))

    start = at(phi)
    if not F or not np.isfinite(start.value):
        return Solution(z, phi, level, start.value, 1, bool(np.isfinite(start.value)))
    ended = levenberg_marquardt(start, propose, settles, Rule(tries=most))
    found, tries = ended.point, ended.tries + int(ended.stuck)
    return Solution(z, found.phi, level, found.value, tries, bool(ended.settled))
