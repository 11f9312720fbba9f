"""Gaussian process regression of the states without the equations: step 1 of ODIN alone."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from odinfer.checks import checked_range
from odinfer.errors import InputError, Status
from odinfer.gp.evidence import Hyperparameters
from odinfer.gp.kernels import kernel
from odinfer.gp.smoother import facts, noise_sd, posterior_curves, smooth_states
from odinfer.gp.standardisation import Units
from odinfer.methods.odin import Odin
from odinfer.problem.problem import Problem
from odinfer.progress import Progress, no_progress
from odinfer.result.assemble import assemble, stage
from odinfer.result.fit import Fit


@dataclass(frozen=True)
class Gpr:
    """Gaussian process regression with its options, which mean what they mean for ODIN.

    Args:
        kernel: a name of `odinfer.gp.kernels.KERNELS`, or "auto": per state by evidence.
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
        checked_range("hyper_bounds", self.hyper_bounds)

    @staticmethod
    def paper(system: Any, **changes: Any) -> Gpr:
        """The authors' settings of step 1 for one of the paper's systems, given as a System or by name."""
        return Gpr(**paper_smoother(system) | changes)

    def fit(self, problem: Problem, seed: int = 0, progress: Progress | None = None) -> Fit:
        """Smooth the data; every free parameter stays NaN."""
        progress = progress or no_progress
        progress("smoothing the data", 0.0)
        clock = time.perf_counter()
        units, hypers = self.smooth(problem)
        curves = posterior_curves(problem, units, hypers, self.jitter)
        nothing = problem.theta(np.full(len(problem.free), np.nan))
        only = stage(
            problem, nothing, curves, noise_sd(units, hypers),
            objective=-sum(h.evidence for h in hypers), seconds=time.perf_counter() - clock,
        )  # fmt: skip
        progress("done", 1.0)
        return assemble(
            problem, self, seed, {self.name: only}, curves,
            status=Status.CONVERGED.value, converged=True, details=facts(problem, hypers),
        )  # fmt: skip

    def smooth(self, problem: Problem) -> tuple[Units, tuple[Hyperparameters, ...]]:
        """Standardisation, and hyperparameters of every state by empirical Bayes."""
        units = Units.of(problem, self.scale_time)
        hypers = smooth_states(
            problem, units, self.kernel, self.shared, self.hyper_bounds, self.thorough, self.weak_prior
        )
        return units, hypers


def paper_smoother(system: Any) -> dict[str, Any]:
    """What ODIN's settings for a system of the paper say about its step 1."""
    settings = Odin.paper(system)
    names = ("kernel", "jitter", "shared", "scale_time", "hyper_bounds", "thorough", "weak_prior")
    return {name: getattr(settings, name) for name in names}
