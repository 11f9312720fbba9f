"""Two-step gradient matching: smooth first, then fit the equations to the smoothed slopes, states held fixed.

The smoother is a Gaussian process, whose uncertainty about the slopes weights the match (Calderhead et al. 2009 in
spirit), or a smoothing spline, all slopes counting the same (Varah 1982).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odinfer import gradient_matching as gm
from odinfer import starts
from odinfer.assemble import assemble, stage
from odinfer.errors import InputError, Status, nearest
from odinfer.fit import Fit, Progress
from odinfer.methods.gpr import Gpr, facts, noise, paper_smoother, posterior_curves
from odinfer.problem import Problem
from odinfer.risk import Risk, prior_in_phi
from odinfer.solve import Solution
from odinfer.splines import spline_match

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
        if self.smoother not in SMOOTHERS:
            raise InputError(f"unknown smoother '{self.smoother}'{nearest(str(self.smoother), SMOOTHERS)}")
        if not isinstance(self.gamma, (int, float)) or not 0 <= self.gamma < np.inf:
            raise InputError(f"gamma must be a number from 0 on, not {self.gamma!r}")
        for option in ("grid", "starts"):
            value = getattr(self, option)
            if not isinstance(value, int) or value < 1:
                raise InputError(f"{option} must be a whole number from 1 on, not {value!r}")

    @staticmethod
    def paper(system: Any, **changes: Any) -> TwoStep:
        """The smoother of the paper's step 1 for a System (or its name), with γ as others have set it there."""
        smoother = paper_smoother(system)
        gamma = {"rbf": 0.3, "matern52": 1e-3, "sigmoid": 1e-4}.get(smoother["kernel"], TwoStep.gamma)
        return TwoStep(**smoother | {"gamma": gamma} | changes)

    def fit(self, problem: Problem, seed: int = 0, progress: Progress | None = None) -> Fit:
        """Smooth, then match; the states are the smoother's."""
        say = progress or (lambda what, share: None)
        say("checking the equations", 0.0)
        problem.check_field()
        say("smoothing the data", 0.15)
        clock = time.perf_counter()
        if self.smoother == "gp":
            units, hypers = self.smooth(problem)
            risk = gm.build_risk(problem, units, hypers, self.jitter, self.grid)
            curves = posterior_curves(problem, units, hypers, self.jitter)
            details: dict[str, Any] = facts(problem, hypers)
        else:
            risk, curves = spline_match(problem, self.grid)
            details = {}
        say("matching slopes", 0.5)
        best, agreeing = self._match(risk, np.random.default_rng(seed))
        finite = bool(np.isfinite(best.risk))
        status = Status.NOT_FINITE if not finite else Status.CONVERGED if best.converged else Status.MAX_ITERATIONS
        only = stage(
            problem, problem.theta(best.phi), curves, noise(risk.units, risk.hypers),
            objective=best.risk, seconds=time.perf_counter() - clock, note=status.value,
        )  # fmt: skip
        say("done", 1.0)
        return assemble(
            problem, self, seed, {self.name: only}, curves,
            status=status.value,
            converged=status.converged,
            gradients=gm.gradients(risk, best) if finite else None,
            details=details | {"starts": self.starts, "starts_agreeing": agreeing, "iterations": best.iterations},
        )  # fmt: skip

    def _match(self, risk: Risk, rng: np.random.Generator) -> tuple[Solution, int]:
        """The best θ of all starts, and how many starts lead to it."""
        gamma = max(self.gamma, 1e-12) if self.smoother == "gp" else 1.0  # A alone may be singular
        phi, cost = starts.match(risk, starts.draw(risk.problem, self.starts, rng), gamma)
        nothing = Solution(risk.mean, np.full(phi.shape[1], np.nan), np.full(len(risk.w), gamma), np.inf, 0, False)
        if not np.isfinite(cost).any():
            return nothing, 0
        if self.smoother == "spline":  # a prior weighs against slopes of this accuracy
            gamma = max(float(cost.min()) / risk.mean.size, 1e-12)
        ends = [(polish(risk, p, gamma), n) for p, n in starts.distinct(phi, cost, most=3)]
        best = min((s for s, _ in ends), key=lambda s: s.risk)
        return best, sum(n for s, n in ends if s.risk <= best.risk + _DIFFERENT)


def polish(risk: Risk, phi: Array, gamma: float, most: int = 100) -> Solution:
    """Levenberg–Marquardt on φ (F,) at the smoothed states within bounds, down to the minimum; a prior counts."""
    p, F = risk.problem, len(phi)
    low, high = p.phi_bounds
    z = risk.mean
    inside, level = np.clip(z, *risk.z_bounds), np.full(z.shape[1], gamma)

    def at(phi: Array) -> tuple[float, Array, Array]:
        lin = risk.linearise(inside, phi)
        e = risk.mismatch(z, lin.f)
        J = np.concatenate([np.swapaxes(b.smoother.Q, 1, 2) @ lin.fphi[b.rows].swapaxes(0, 1) for b in risk.blocks], 1)
        value, weight = risk.gamma_terms(e, level), 1.0 / (risk.w + gamma)
        J, e, weight = J.reshape(z.size, F), e.ravel(), weight.ravel()
        with np.errstate(over="ignore", invalid="ignore"):
            g, H = J.T @ (weight * e), (J.T * weight) @ J
        if p.penalty:
            prior, slope, bend = prior_in_phi(p, phi)
            lam, V = np.linalg.eigh(bend)
            value, g, H = value + 2.0 * prior, g + slope, H + (V * np.maximum(lam, 0.0)) @ V.T
        return (value if np.isfinite(value) and np.isfinite(H).all() else np.inf), g, H

    value, g, H = at(phi)
    damping = 1e-3
    iteration = 0
    for iteration in range(1, most + 1):  # noqa: B007
        if not F or not np.isfinite(value) or damping > 1e10:
            break
        held = ((phi <= low) & (g > 0)) | ((phi >= high) & (g < 0))
        d = np.sqrt(np.maximum(np.diag(H), 1e-300))
        S = np.where(held | held[:, None], 0.0, H / np.outer(d, d)) + damping * np.eye(F)
        trial = np.clip(phi + np.linalg.solve(S, np.where(held, 0.0, -g / d)) / d, low, high)
        new = at(trial)
        if new[0] > value:
            damping *= 10.0
            continue
        gain, phi, (value, g, H) = value - new[0], trial, new
        damping = max(0.1 * damping, 1e-10)
        if gain <= _GAIN * (1.0 + abs(value)):
            break
    else:
        return Solution(z, phi, level, value, most, False)
    return Solution(z, phi, level, value, iteration, bool(np.isfinite(value)))
