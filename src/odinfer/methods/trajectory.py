"""Trajectory matching: maximum likelihood over θ and initial values from random or given start points.

This is what is done without gradient matching, and therefore the yardstick. The optimiser is the one that ends
ODIN (refinement.py); only what it starts from differs: a simulation at a random θ from the first observations.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odinfer.checks import checked_choice, checked_integer
from odinfer.errors import InputError, Status, nearest
from odinfer.gp.smoother import noise_sd, posterior_curves, smooth_states
from odinfer.gp.standardisation import Units, state_scales
from odinfer.likelihood.refinement import TrajectoryOptimum, maximise_from_initial, refine
from odinfer.methods.multistart_mle import FAILED, nothing_found, replacement_warnings
from odinfer.methods.odin import Odin
from odinfer.ode.adaptive_mesh import Budget, BudgetExhausted, integrate_experiments
from odinfer.odin import startpoints
from odinfer.problem.problem import Problem
from odinfer.progress import Progress, no_progress
from odinfer.result.assemble import assemble, stage
from odinfer.result.fit import Cache, Fit
from odinfer.search import startpoints as finding
from odinfer.uncertainty.maximum import Maximum
from odinfer.uncertainty.verification import verified_optimum

Array = NDArray[np.float64]

STARTS = ("random", "given")
_STEPS = 4000  # of integration from a start


@dataclass(frozen=True)
class Trajectory:
    """Trajectory matching with its options.

    Args:
        starts: how many random θ to start from.
        start: "random", or "given": once, from the start values of the Problem, which every free parameter needs.
        x0: where initial values start: state → a value, or one per experiment; the first observations if not given.
        iterations: at most so many steps from each start.
    """

    starts: int = 10
    start: str = "random"
    x0: Mapping[str, Any] | None = None
    iterations: int = 60

    name = "trajectory"

    def __post_init__(self) -> None:
        checked_choice("start", self.start, STARTS)
        for option in ("starts", "iterations"):
            checked_integer(option, getattr(self, option), 1)
        if self.x0 is not None and not isinstance(self.x0, Mapping):
            raise InputError(f"x0 must be a dictionary by state, not {type(self.x0).__name__}")

    @staticmethod
    def paper(system: Any, **changes: Any) -> Trajectory:
        """The defaults, for a System of the paper (or its name), which has no settings of its own for this method."""
        Odin.paper(system)
        return Trajectory(**changes)

    @staticmethod
    def quick(**changes: Any) -> Trajectory:
        """Few starts, for a first look and for tests."""
        return Trajectory(**{"starts": 2} | changes)

    def fit(self, problem: Problem, seed: int = 0, progress: Progress | None = None) -> Fit:
        """Follow every start to its maximum of the likelihood and keep the highest."""
        progress = progress or no_progress
        progress("checking the equations", 0.0)
        if problem.fully_observed_gaussian:
            problem.check_field()
        clock = time.perf_counter()
        guesses = self._guesses(problem, seed)
        scale = state_scales(problem)
        ends: list[TrajectoryOptimum] = []
        for i, (x0, phi) in enumerate(guesses):
            progress(f"following start {i + 1} of {len(guesses)}", 0.05 + 0.9 * i / len(guesses))
            end = _follow(problem, scale, phi, x0, self.iterations)
            if end is not None and np.isfinite(end.objective):
                ends.append(end)
        best = min(ends, key=lambda r: r.objective, default=None)
        maximum = None
        warned: list[str] = []
        if best is None and not problem.fully_observed_gaussian:
            counts = {"starts": len(guesses), "starts_agreeing": 0, "starts_failed": len(guesses), "iterations": 0}
            progress("done", 1.0)
            return nothing_found(self, problem, seed, self.name, counts, time.perf_counter() - clock)
        if best is None:
            units = Units.of(problem)
            hypers = smooth_states(problem, units, weak_prior=True)  # of the data, so that there is a curve to show
            curves, sigma = posterior_curves(problem, units, hypers), noise_sd(units, hypers)
            theta = problem.theta(np.full(len(problem.free), np.nan))
            status, objective, agreeing, known = FAILED, float("nan"), 0, None
        else:
            maximum = Maximum.of(problem, best)
            found, maximum = maximum, verified_optimum(maximum) if best.converged else maximum
            warned = replacement_warnings(found, maximum)
            agreeing = 0 if warned else sum(r.objective <= best.objective + 1e-2 for r in ends)
            known = maximum.intervals()
            best, curves = maximum.refined, maximum.curves()
            theta, sigma, objective = problem.theta(best.phi), maximum.left, best.objective
            status = (Status.CONVERGED if best.converged else Status.MAX_ITERATIONS).value
        only = stage(
            problem, theta, curves, sigma,
            objective=objective, loglik=None if best is None else best.loglik,
            seconds=time.perf_counter() - clock, note=status,
        )  # fmt: skip
        progress("done", 1.0)
        return assemble(
            problem, self, seed, {self.name: only}, curves,
            status=status,
            converged=best is not None and best.converged,
            uncertainty=known,
            warnings=tuple(warned),
            cache=Cache(maximum=maximum),
            details={
                "starts": len(guesses),
                "starts_agreeing": agreeing,
                "starts_failed": len(guesses) - len(ends),
                "iterations": 0 if best is None else best.iterations,
            },
        )  # fmt: skip

    def _guesses(self, problem: Problem, seed: int) -> list[tuple[Array, Array]]:
        """Initial values (E, K) and φ (F,) to start from."""
        rng = np.random.default_rng(seed)
        if self.start == "random" and problem.fully_observed_gaussian:
            x0 = self._initial(problem)
            return [(x0, phi) for phi in startpoints.draw(problem, self.starts, rng)]
        if self.start == "random":
            drawn = finding.starts(problem, self.starts, rng)
            return [(self._initial_values(problem, np.array(x0), phi), phi) for x0, phi in drawn]
        for name in problem.free:
            if name not in problem.start:
                raise InputError(
                    f"start='given' needs a start value of '{name}': Problem(..., start={{'{name}': 1.0}})"
                )
        known = {**problem.start, **problem.fixed}
        phi = problem.phi(np.array([float(known[name]) for name in problem.parameters]))
        if problem.fully_observed_gaussian:
            return [(self._initial(problem), phi)]
        x0 = np.array(next(finding.starts(problem, 1, rng))[0])
        return [(self._initial_values(problem, x0, phi), phi)]

    def _initial_values(self, problem: Problem, x0: Array, phi: Array) -> Array:
        """Initial values (E, K) with those of the options, and with those that the model gives at φ (F,)."""
        x0 = self._with_given_values(problem, x0)
        free = problem.model.free_initial
        pairs = ((problem.condition(e), problem.theta_of(e, phi)[None], own[None, free]) for e, own in enumerate(x0))
        return np.concatenate([condition.initial(theta, own) for condition, theta, own in pairs])

    def _initial(self, problem: Problem) -> Array:
        """Initial values (E, K) to start from, within the states' bounds."""
        experiments, names = problem.data.experiments, problem.model.states
        x0 = np.empty((len(experiments), len(names)))
        usual = np.nanmean(np.concatenate([e.y for e in experiments]), 0)
        for i, e in enumerate(experiments):
            seen = np.isfinite(e.y)
            x0[i] = np.where(seen.any(0), e.y[seen.argmax(0), np.arange(len(names))], usual)
        return self._with_given_values(problem, x0)

    def _with_given_values(self, problem: Problem, x0: Array) -> Array:
        """The same (E, K) with the values of the options, within the states' bounds."""
        names = problem.model.states
        for name, value in (self.x0 or {}).items():
            if name not in names:
                raise InputError(f"x0: the model has no state '{name}'{nearest(str(name), names)}")
            try:
                x0[:, names.index(name)] = value
            except (TypeError, ValueError):
                raise InputError(f"x0 of '{name}' must be a number, or one per experiment, not {value!r}") from None
        if not np.isfinite(x0).all():
            raise InputError("x0 must be finite")
        return np.clip(x0, *problem.state_bounds)


def _follow(problem: Problem, scale: Array, phi: Array, x0: Array, iterations: int) -> TrajectoryOptimum | None:
    """Maximum likelihood from one start; None if its trajectory, or one on the way, leaves the finite numbers."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the integrator's, on trajectories that it cannot follow
            if not problem.fully_observed_gaussian:
                return maximise_from_initial(problem, scale, list(x0), phi, iterations, Budget(_STEPS))
            paths = integrate_experiments(problem, phi, list(x0), scale, Budget(_STEPS))
            return None if paths is None else refine(problem, scale, paths, phi, iterations)
    except (np.linalg.LinAlgError, BudgetExhausted):
        return None
