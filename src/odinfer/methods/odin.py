"""ODIN: ODE-informed regression (Algorithm 1 of the paper), then maximum likelihood from its solution."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odinfer.diagnostics.equation_test import FALSE_ALARMS
from odinfer.diagnostics.model_test import DRAWS
from odinfer.diagnostics.verdicts import CONTRADICTS, NOT_JUDGED, Case, judge_fit
from odinfer.errors import Status, none_if_singular
from odinfer.gp.smoother import facts, noise_sd
from odinfer.methods import preset
from odinfer.methods.multistart_mle import (
    MODEL_IS_WRONG,
    fit_by_multistart,
    optimum,
    profile_replacement,
    release_warnings,
    replacement_warnings,
    search_details,
    search_warnings,
)
from odinfer.odin.engine import Engine
from odinfer.odin.gamma import GammaRule
from odinfer.odin.gauss_newton import Solution
from odinfer.odin.multistart import Minima, Search
from odinfer.odin.sparse.engine import Sparse
from odinfer.problem.problem import Problem
from odinfer.progress import Progress, no_progress, sub_progress
from odinfer.result.assemble import assemble, named, stage
from odinfer.result.fit import Cache, Fit
from odinfer.search.chaos import chaotic
from odinfer.search.continuation import tighten_equations
from odinfer.search.gaussian_relaxation import columns_of_states, gaussian_relaxation, lift_to_problem
from odinfer.search.multistart import OdinStart, misses, search
from odinfer.search.release import released_by_matching
from odinfer.search.start_executor import StartExecutor
from odinfer.uncertainty.maximum import Maximum, RefinedResult
from odinfer.uncertainty.results import Uncertainty
from odinfer.uncertainty.verification import judge_with_intervals, verified_optimum

Array = NDArray[np.float64]

# γ is a variance of standardised derivatives, which are of order one; a right equation leaves it at its floor.
CONTRADICTS_ABOVE = 0.1


@dataclass(frozen=True)
class Odin:
    """ODIN with its options.

    Args:
        kernel: a name of `odinfer.gp.kernels.KERNELS`, or "auto": per state by evidence.
        optimizer: "gauss-newton" (Levenberg–Marquardt with the exact γ update) or "lbfgsb" (the paper's).
        refine: carry the solution on to the maximum likelihood by trajectory matching.
        gamma: "learn", or a value to hold it at (0 means that the equations hold exactly).
        gamma_bounds: within which γ is learned.
        jitter: added to the diagonals of C and A, a floor on the derivatives' variance.
        grid: grid points per gap between observations; 1 is the paper's choice, and taken where gaps are short
            or dense algebra would grow too large.
        temper: the GP's terms count for 1/temper; above 1 the data and the equations outweigh the smoother.
        starts: how many random θ to start from.
        hops: basin hops from the best solution found.
        shared: one set of hyperparameters and one γ for all states.
        scale_time: standardise time.
        hyper_bounds: of kernel hyperparameters and noise variance in standardised units.
        thorough: search the evidence for hyperparameters further than a good fit needs.
        weak_prior: a weak prior on the noise ratio keeps the evidence from explaining all noise away.
        algebra: "dense", "sparse" (conjugate gradients, for many states each coupled to a few), "markov" (linear in the
            number of times), or "auto".
    """

    kernel: str = "auto"
    optimizer: str = Search.optimizer
    refine: bool = True
    gamma: str | float = "learn"
    gamma_bounds: tuple[float, float] = Search.gamma_bounds
    jitter: float = 1e-6
    grid: int = 2
    temper: float = 4.0
    starts: int = Search.starts
    hops: int = Search.hops
    shared: bool = False
    scale_time: bool = True
    hyper_bounds: tuple[float, float] = (1e-10, 1e6)
    thorough: bool = False
    weak_prior: bool = True
    algebra: str = "auto"

    name = "odin"

    def __post_init__(self) -> None:
        _ = self.search  # which checks the options

    @property
    def search(self) -> Search:
        """The ODIN stage with these options."""
        return Search(**{f.name: getattr(self, f.name) for f in fields(Search)})

    @property
    def rule(self) -> GammaRule:
        """How γ is treated."""
        return self.search.rule

    @staticmethod
    def paper(system: Any, **changes: Any) -> Odin:
        """The authors' settings for one of the paper's systems, given as a System or by name.

        Their bounds on θ and states belong to the Problem: see `System.problem`. The optimiser stays Gauss–Newton,
        which reaches the same minimum; pass optimizer="lbfgsb" for theirs.
        """
        presets: dict[str, dict[str, Any]] = {
            "lotka_volterra": {"kernel": "rbf", "shared": True},
            "fitzhugh_nagumo": {"kernel": "matern52", "hops": 40},
            "protein_transduction": {"kernel": "sigmoid", "scale_time": False, "hops": 10},
            "lorenz96": {"kernel": "matern32"},
        }
        common: dict[str, Any] = {
            "refine": False, "gamma_bounds": (1e-6, 10.0), "jitter": 1e-4, "grid": 1, "temper": 1.0,
            "hyper_bounds": (1e-6, 100.0), "thorough": True, "weak_prior": False,
        }  # fmt: skip
        return Odin(**common | preset(system, presets) | changes)

    def fit(
        self, problem: Problem, seed: int = 0, progress: Progress | None = None, level: float = FALSE_ALARMS,
        draws: int = DRAWS, whole: bool = False, executor: StartExecutor | None = None,
    ) -> Fit:  # fmt: skip
        """Infer θ, states, γ and noise, and judge the equations; see `odinfer.fit`.

        Args:
            level, draws, whole: of the judgement; see `odinfer.diagnostics.verdicts.judge_fit`.
            executor: who follows starts that are independent.
        """
        progress = progress or no_progress
        if not problem.fully_observed_gaussian:
            start = none_if_singular(lambda: self._relax(problem, seed)) if self.refine else None
            return fit_by_multistart(self, problem, seed, progress, level, draws, whole, executor, start)
        progress("checking the equations", 0.0)
        problem.check_field()
        progress("smoothing the data", 0.15)
        clock = time.perf_counter()
        stated, minima = problem, self.search.run(problem, seed)
        problem, minima = released_by_matching(problem, self.search, minima, seed)
        odin_seconds = time.perf_counter() - clock
        progress("following trajectories", 0.3)
        clock = time.perf_counter()
        reached: RefinedResult | None = None
        notes: list[str] = []
        details: dict[str, Any] = {}
        if self.refine and isinstance(minima.engine, Sparse):
            engine = minima.engine
            reached = (
                none_if_singular(lambda: tighten_equations(engine, minima.solutions[0])) if minima.solutions else None
            )
        elif self.refine:
            lost = _chaotic_at(problem, minima)
            found = search(problem, seed, sub_progress(progress, 0.3, 0.7), executor, minima, brief=lost)
            maximum = none_if_singular(lambda: optimum(problem, found))
            details, notes = search_details(problem, found), search_warnings(problem, found)
            if maximum is not None:
                notes += release_warnings(stated, maximum)
                reached, problem = maximum, maximum.problem
        seconds = (odin_seconds, time.perf_counter() - clock)

        def judge(maximum: Maximum | None) -> Case:
            tell = sub_progress(progress, 0.7, 1.0)
            return judge_fit(problem, self.search, minima, maximum, seed, level, draws, tell, whole)

        fit = _assemble(self, problem, seed, minima, reached, notes, details, seconds, judge, level)
        progress("done", 1.0)
        return fit

    def solve(self, problem: Problem, seed: int = 0) -> Minima:
        """The ODIN stage: the risk, its different minima (best first), and how many starts led to the best."""
        return self.search.run(problem, seed)

    def risk(self, problem: Problem) -> Any:
        """Step 1: standardise, fit the Gaussian processes, and set up the risk."""
        return self.search.engine(problem)

    def minimise(self, risk: Engine, z: Array, phi: Array, **more: Any) -> Solution:
        """Step 2: minimise the risk from one start; see `odinfer.odin.multistart.Search.minimise`."""
        return self.search.minimise(risk, z, phi, **more)

    def _relax(self, problem: Problem, seed: int) -> OdinStart | None:
        """The start point that a Gaussian relaxation of the problem gives, if all its states can be smoothed."""
        relaxed = gaussian_relaxation(problem)
        if relaxed is None:
            return None
        minima = self.search.run(relaxed, seed)
        if not minima.solutions:
            return None
        engine: Any = minima.engine
        best = minima.solutions[0]
        x0, phi = lift_to_problem(problem, engine.problem, best.phi, _initial(engine, best), seed)
        noise = np.full(len(problem.columns), np.inf)
        noise[columns_of_states(problem)] = noise_sd(engine.units, engine.hypers)
        return OdinStart(x0, phi, noise, self.starts, minima.agreeing)


def _chaotic_at(problem: Problem, minima: Minima) -> bool:
    """Whether trajectories are chaotic at ODIN's estimate."""
    if not minima.solutions:
        return False
    engine: Any = minima.engine
    best = minima.solutions[0]
    return chaotic(problem, engine.problem.theta(best.phi), _initial(engine, best))


def _initial(engine: Any, s: Solution) -> list[Array]:
    """The first states (K,) of every experiment at a minimum."""
    x = engine.units.user(s.z)
    return [x[block.rows][0] for block in engine.blocks]


def _assemble(
    method: Odin, problem: Problem, seed: int, minima: Minima, reached: RefinedResult | None, notes: Sequence[str],
    details: dict[str, Any], seconds: tuple[float, float], judge: Callable[[Maximum | None], Case], level: float,
) -> Fit:  # fmt: skip
    """Collect both stages as plain data, the verdicts, and which stage is reported.

    The estimate is that of the best trajectory. ODIN's is reported where no trajectory could be computed, or where
    trajectories are chaotic and the best one that was found misses the data.
    """
    engine, solutions, names = minima.engine, minima.solutions, problem.model.states
    s = solutions[0] if solutions else _smoothed_means(engine)
    status = Status.NOT_FINITE if not solutions else Status.CONVERGED if s.converged else Status.MAX_ITERATIONS
    curves = engine.curves(s) if solutions else engine.mean_curves()
    gamma, sigma = named(names, s.gamma), noise_sd(engine.units, engine.hypers)
    stages = {
        "odin": stage(
            problem, engine.problem.theta(s.phi), curves, sigma,
            gamma=gamma, objective=s.risk, seconds=seconds[0], note=status.value,
        )
    }  # fmt: skip
    used, known, best, case = "odin", None, None, None
    judged = bool(solutions) and not isinstance(engine, Sparse) and method.refine  # so many states are not tested

    def judge_or_not(maximum: Maximum | None) -> tuple[Case | None, bool]:
        found = (none_if_singular(lambda: judge(maximum)) or Case(())) if judged else None
        return found, found is not None and found.rejected(level)

    if reached is not None:
        follows = not (misses(problem, reached.sigma, sigma) and _chaotic_at(problem, minima))
        if follows and isinstance(reached, Maximum):
            reached, case, known, replaced = _verify_and_judge(reached, judge_or_not)
            details, notes = details | ({"starts_agreeing": 0} if replaced else {}), [*notes, *replaced]
        elif follows:
            known = none_if_singular(reached.intervals)
        end = Status.CONVERGED if reached.converged else Status.MAX_ITERATIONS
        trajectories = reached.curves()
        stages["refined"] = stage(
            problem, problem.theta(reached.phi), trajectories, reached.left,
            gamma=gamma, objective=reached.objective, loglik=reached.loglik, seconds=seconds[1], note=end.value,
        )  # fmt: skip
        if follows:
            used, curves, status = "refined", trajectories, end
        else:
            best = trajectories
    if method.refine and used == "odin" and status.converged:
        status = Status.NOT_FOLLOWED if reached is None else Status.ODIN_KEPT
    if judged and case is None:
        case, _ = judge_or_not(None)
    verdicts = case.verdicts(names) if case is not None else dict.fromkeys(names, NOT_JUDGED)
    if solutions and not method.refine and not isinstance(engine, Sparse):
        # The paper's reading of γ, for which no rate of false alarms is known.
        wrong = method.gamma == "learn"
        verdicts = {k: CONTRADICTS for k, v in gamma.items() if wrong and v > CONTRADICTS_ABOVE}
    rejected = CONTRADICTS in verdicts.values() or (case is not None and case.rejected(level))
    of_odin = {"starts": len(minima.mismatches), "starts_agreeing": minima.agreeing}
    return assemble(
        problem,
        method,
        seed,
        stages,
        curves,
        status=status.value,
        converged=status.converged,
        used=used,
        units=engine.units,
        gradients=engine.gradients(s) if solutions else None,
        verdicts=verdicts,
        warnings=(*notes, *engine.notes, *([MODEL_IS_WRONG] if known is not None and rejected else [])),
        uncertainty=known,
        cache=_cache(method, minima, reached, case),
        best=best,
        details={
            "start_mismatches": [cost for cost in minima.mismatches if np.isfinite(cost)],
            **details,
            **(of_odin if used == "odin" or "starts" not in details else {}),
            "iterations": s.iterations,
            **facts(problem, engine.hypers),
            **(case.numbers() if case else {}),
        },
    )


def _verify_and_judge(
    reached: Maximum, judge: Callable[[Maximum], tuple[Case | None, bool]]
) -> tuple[Maximum, Case | None, Uncertainty | None, list[str]]:
    """Verify an optimum, test the model there, and compute intervals; and say what has replaced the optimum."""
    verified = verified_optimum(reached)
    maximum, case, known = judge_with_intervals(verified, judge)
    replaced = replacement_warnings(reached, verified)
    if maximum.refined is not verified.refined:
        replaced.append(profile_replacement(verified, maximum))
    return maximum, case, known, replaced


def _cache(method: Odin, minima: Minima, reached: RefinedResult | None, case: Case | None) -> Cache:
    """What later steps can use, without the large operators of many states."""
    if isinstance(minima.engine, Sparse):
        return Cache()
    return Cache(method.search, minima, reached if isinstance(reached, Maximum) else None, case)


def _smoothed_means(engine: Engine) -> Solution:
    """What is left when no start gave a finite model: the GP means."""
    nothing = np.full(len(engine.problem.free), np.nan)
    return Solution(engine.mean, nothing, np.full(engine.mean.shape[1], np.nan), np.inf, 0, False)
