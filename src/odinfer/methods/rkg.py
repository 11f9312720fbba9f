"""RKG2 and RKG3: gradient matching with kernel ridge regression (González et al. 2014, Niu et al. 2016)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer import gradient_matching as gm
from odinfer import starts
from odinfer.assemble import assemble, observations, residual_squares, stage
from odinfer.errors import InputError, Status, nearest
from odinfer.fit import Curve, Fit, Progress
from odinfer.kernels import Kernel, kernel
from odinfer.problem import Problem
from odinfer.risk import Units

Array = NDArray[np.float64]

RIDGES = (5.0, 1.0, 1e-1, 1e-2, 1e-3, 1e-4)
_FOLDS, _REFINEMENTS = 3, 3
# Singular values of the normal equations of b below this share of the largest are noise of the kernel matrix.
_RCOND = 1e-7
# Parameters of either sign must match this much better than positive ones: a way through infinity or zero to
# negative values often fits noise.
_CLEARLY = 0.9


@dataclass(frozen=True)
class Rkg:
    """Kernel ridge regression x_k(t) = mean(y_k) + Σ_i b_i k(t, t_i) with θ from its derivatives.

    Works on standardised states and time, so that one ridge grid and one λ_g suit all states. Bounds on θ are kept
    and those on states hold where f is evaluated; priors are not part of the method and give a warning.

    Args:
        variant: 2 matches f to the derivatives of a fixed smoother; 3 goes on to fit b and θ in turn.
        warp: regress on log(1 + t/τ) instead of t, τ per state by cross-validation.
        kernel: a name of `odinfer.kernels.KERNELS`.
        starts: how many θ to start from; the first is .1 for all, as in the original.
        rounds: outer rounds of variant 3.
        updates: closed-form updates of b per round, f frozen.
        lambdas: candidates for λ_g, the weight of the derivatives, chosen by 2-fold cross-validation.
    """

    variant: int = 3
    warp: bool = False
    kernel: str = "rbf"
    starts: int = 6
    rounds: int = 20
    updates: int = 3
    lambdas: tuple[float, ...] = (1e-3, 1e-2, 1e-1, 1.0, 10.0)

    name = "rkg"

    def __post_init__(self) -> None:
        if isinstance(self.variant, bool) or self.variant not in (2, 3):
            raise InputError(f"variant must be 2 or 3, not {self.variant!r}")
        kernel(self.kernel)
        if self.warp and f"warped-{self.kernel}" not in _known_kernels():
            raise InputError(f"the kernel '{self.kernel}' cannot be warped; use 'rbf' or leave warp off")
        for option in ("starts", "rounds", "updates"):
            value = getattr(self, option)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InputError(f"{option} must be a whole number from 1 on, not {value!r}")
        object.__setattr__(self, "lambdas", tuple(self.lambdas))
        if not self.lambdas or not all(0 < v < np.inf for v in self.lambdas):
            raise InputError(f"lambdas must be positive numbers, at least one, not {self.lambdas!r}")

    @staticmethod
    def paper(system: Any, **changes: Any) -> Rkg:
        """The authors' settings for one of the paper's systems, given as a System or by name."""
        name = str(getattr(getattr(system, "model", system), "name", system))
        family = "lorenz96" if name.startswith("lorenz96") else name
        presets: dict[str, dict[str, Any]] = {
            "lotka_volterra": {},
            "fitzhugh_nagumo": {},
            "protein_transduction": {"warp": True},
            "lorenz96": {},
        }
        if family not in presets:
            raise InputError(f"the paper has no system '{name}'{nearest(name, presets)}")
        return Rkg(**{"starts": 1} | presets[family] | changes)

    @staticmethod
    def quick(**changes: Any) -> Rkg:
        """A cheap configuration for tests and first looks."""
        return Rkg(**{"starts": 2, "rounds": 5, "lambdas": (1e-2, 1.0)} | changes)

    def fit(self, problem: Problem, seed: int = 0, progress: Progress | None = None) -> Fit:
        """Infer θ and states; the seed draws the starts after the first."""
        say = progress or (lambda what, share: None)
        say("checking the equations", 0.0)
        problem.check_field()
        say("smoothing the data", 0.1)
        clock = time.perf_counter()
        units = gm.standardise(problem)
        regression = Regression.of(problem, units, kernel(f"warped-{self.kernel}" if self.warp else self.kernel))
        b = regression.smoothed
        say("matching derivatives", 0.4)
        found = match(regression, b, self.starts, np.random.default_rng(seed))
        finite, details = np.isfinite(found.cost), regression.details()
        status = Status.CONVERGED if finite else Status.NOT_FINITE
        stages = {}
        curves = regression.curves(b)
        sigma = _noise(problem, regression, curves, regression.freedom)
        objective = found.cost
        stages["rkg2"] = stage(
            problem, found.theta(problem), curves, sigma, objective=objective,
            seconds=time.perf_counter() - clock, note=status.value,
        )  # fmt: skip
        if self.variant == 3 and finite:
            say("matching states and derivatives in turn", 0.6)
            clock = time.perf_counter()
            weight, errors = choose_weight(regression, found, self)
            used = np.isfinite(regression.y)[None]
            run = alternate(regression, used, np.array([weight]), b, found, self.rounds, self.updates)
            trace = run.trace[:, 0]
            settled = len(trace) < self.rounds + 1 or trace[-2] - trace[-1] <= 1e-2 * trace[-2]
            status = Status.CONVERGED if settled else Status.MAX_ITERATIONS
            found = Match(run.phi[0], float(trace[-1]), found.logs)
            curves = regression.curves([p[0] for p in run.b])
            sigma = _noise(problem, regression, curves, np.array([0.5]) * regression.freedom)
            details |= {"lambda_g": weight, "lambda_g_errors": errors.tolist(), "objective_trace": trace.tolist()}
            stages["rkg3"] = stage(
                problem, found.theta(problem), curves, sigma, objective=found.cost,
                seconds=time.perf_counter() - clock, note=status.value,
            )  # fmt: skip
        say("done", 1.0)
        warnings = ("rkg makes no use of priors on parameters",) if problem.penalty else ()
        return assemble(
            problem, self, seed, stages, curves,
            status=status.value, converged=status.converged, details=details, warnings=warnings,
        )  # fmt: skip
