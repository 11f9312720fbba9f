"""Gaussian process regression: step 1 of ODIN alone, the baseline for states. The equations are not used."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odinfer import gradient_matching as gm
from odinfer.assemble import assemble, stage
from odinfer.curve import Curve
from odinfer.errors import InputError, Status
from odinfer.fit import Fit, Progress
from odinfer.gp import Hyperparameters
from odinfer.kernels import kernel
from odinfer.methods.odin import Odin
from odinfer.problem import Problem
from odinfer.risk import Units

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Gpr:
    """Gaussian process regression with its options, which mean what they mean for ODIN.

    Args:
        kernel: a name of `odinfer.kernels.KERNELS`, or "auto": per state by evidence.
        jitter: added to the diagonals of covariance matrices.
        shared: one set of hyperparameters for all states.
        scale_time: standardise time.
        hyper_bounds: of kernel hyperparameters and noise variance in standardised units.
        thorough: search the evidence for hyperparameters further than a good fit needs.
        weak_prior: a weak prior on the noise ratio keeps the evidence from explaining all noise away.
    """

    kernel: str = "auto"
    jitter: float = 1e-6
    shared: bool = False
    scale_time: bool = True
    hyper_bounds: tuple[float, float] = (1e-10, 1e6)
    thorough: bool = False
    weak_prior: bool = True

    name = "gpr"

    def __post_init__(self) -> None:
        if self.kernel != "auto":
            kernel(self.kernel)
        if not 0 < self.jitter < 1:
            raise InputError(f"jitter must be between 0 and 1, not {self.jitter:g}")
        low, high = self.hyper_bounds
        if not 0 < low < high:
            raise InputError(f"hyper_bounds must be 0 < low < high, not {self.hyper_bounds}")

    @staticmethod
    def paper(system: Any, **changes: Any) -> Gpr:
        """The authors' settings of step 1 for one of the paper's systems, given as a System or by name."""
        return Gpr(**paper_smoother(system) | changes)

    def fit(self, problem: Problem, seed: int = 0, progress: Progress | None = None) -> Fit:
        """Smooth the data; every free parameter stays NaN."""
        say = progress or (lambda what, share: None)
        say("smoothing the data", 0.0)
        clock = time.perf_counter()
        units, hypers = self.smooth(problem)
        curves = posterior_curves(problem, units, hypers, self.jitter)
        nothing = problem.theta(np.full(len(problem.free), np.nan))
        only = stage(
            problem, nothing, curves, noise(units, hypers),
            objective=-sum(h.evidence for h in hypers), seconds=time.perf_counter() - clock,
        )  # fmt: skip
        say("done", 1.0)
        return assemble(
            problem, self, seed, {self.name: only}, curves,
            status=Status.CONVERGED.value, converged=True, details=facts(problem, hypers),
        )  # fmt: skip

    def smooth(self, problem: Problem) -> tuple[Units, tuple[Hyperparameters, ...]]:
        """Standardisation, and hyperparameters of every state by empirical Bayes."""
        units = gm.standardise(problem, self.scale_time)
        hypers = gm.smooth_states(
            problem, units, self.kernel, self.shared, self.hyper_bounds, self.thorough, self.weak_prior
        )
        return units, hypers


def paper_smoother(system: Any) -> dict[str, Any]:
    """What ODIN's settings for a system of the paper say about its step 1."""
    settings = Odin.paper(system)
    names = ("kernel", "jitter", "shared", "scale_time", "hyper_bounds", "thorough", "weak_prior")
    return {name: getattr(settings, name) for name in names}


def noise(units: Units, hypers: Sequence[Hyperparameters]) -> Array:
    """Noise standard deviations (K,) in the user's units."""
    return np.asarray(units.scale * np.sqrt([h.noise for h in hypers]))


def facts(problem: Problem, hypers: Sequence[Hyperparameters]) -> dict[str, dict[str, Any]]:
    """Kernel and evidence by state."""
    pairs = list(zip(problem.model.states, hypers, strict=True))
    return {"kernels": {n: h.kernel for n, h in pairs}, "evidence": {n: h.evidence for n, h in pairs}}


def posterior_curves(
    problem: Problem, units: Units, hypers: Sequence[Hyperparameters], jitter: float = 1e-6
) -> list[Curve]:
    """Posterior mean, its derivative and the standard deviation of the states, per experiment.

    A state that an experiment does not observe keeps its prior there.
    """
    found = []
    for e in problem.data.experiments:
        dense = gm.dense_times(e.t)
        x, slope, sd = (np.empty((len(dense), len(hypers))) for _ in range(3))
        at = (dense - e.t[0]) / units.time
        for k, h in enumerate(hypers):
            seen = np.isfinite(e.y[:, k])
            t, y = (e.t[seen] - e.t[0]) / units.time, (e.y[seen, k] - units.mean[k]) / units.scale[k]
            correlation, shape = kernel(h.kernel), np.array(h.shape)
            S = h.variance * correlation.gram(t, t, shape).C + (h.noise + jitter) * np.eye(len(t))
            cross = correlation.gram(at, t, shape)
            gain = np.linalg.solve(S, h.variance * cross.C.T).T  # (D, n)
            x[:, k] = gain @ y
            slope[:, k] = h.variance * cross.dC @ np.linalg.solve(S, y)
            prior = h.variance * np.diag(correlation.gram(at, at, shape).C)
            sd[:, k] = np.sqrt(np.maximum(prior - h.variance * (gain * cross.C).sum(1), 0.0))
        found.append(Curve(dense, units.user(x), slope * units.scale / units.time, sd * units.scale))
    return found
