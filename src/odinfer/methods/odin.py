"""ODIN: ODE-informed regression (Algorithm 1 of the paper), then maximum likelihood from its solution."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odinfer.diagnostics.equation_test import FALSE_ALARMS
from odinfer.diagnostics.model_test import DRAWS
from odinfer.diagnostics.verdicts import CONTRADICTS, NOT_JUDGED, Case, judged
from odinfer.errors import InputError, Status
from odinfer.gp.smoother import facts, noise_sd
from odinfer.methods import preset
from odinfer.methods.multistart_mle import lucky, without_smoother
from odinfer.odin.engine import Engine
from odinfer.odin.gamma import GammaRule
from odinfer.odin.gauss_newton import Solution
from odinfer.odin.multistart import Minima, Search
from odinfer.odin.sparse.engine import Sparse
from odinfer.problem.problem import Problem
from odinfer.progress import Progress, part_of, silent
from odinfer.result.assemble import assemble, named, stage
from odinfer.result.fit import Fit, Workings
from odinfer.search.continuation import follow
from odinfer.search.gaussian_relaxation import lifted, plainly
from odinfer.search.multistart import First
from odinfer.search.start_executor import Crew
from odinfer.search.strategies import best_trajectory, misses
from odinfer.uncertainty.maximum import Maximum, Reached

Array = NDArray[np.float64]

# γ is a variance of standardised derivatives, which are of order one; a right equation leaves it at its floor.
CONTRADICTS_ABOVE = 0.1
_RIVALS = 15.0  # nats by which another minimum is worse at most, if its trajectory may be nearly as likely
_WIDER = 8  # times as many starts, where those of the first look did not lead to a convincing trajectory
_WRONG = "intervals tell how well the data determine the parameters if the model is right, which the data contradict"


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
    def second_look(self) -> Odin:
        """Where ODIN is less biased, though slower: on a finer grid, with less weight on the smoother, and wider."""
        return replace(self, grid=2 * self.grid, temper=2.0 * self.temper, starts=_WIDER * self.starts)

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
        draws: int = DRAWS, whole: bool = False, crew: Crew | None = None,
    ) -> Fit:  # fmt: skip
        """Infer θ, states, γ and noise, and judge the equations; see `odinfer.fit`.

        Args:
            level, draws, whole: of the judgement; see `odinfer.diagnostics.verdicts.judged`.
            crew: who follows starts that are independent.
        """
        say = progress or silent
        if not problem.plain:
            first = lucky(lambda: self._first(problem, seed)) if self.refine else None
            return without_smoother(self, problem, seed, say, level, draws, whole, crew, first)
        if crew is not None:
            raise InputError(
                "workers, cluster and store are for fits from many starts, where states are hidden or observed "
                "otherwise; here every state is observed as it is, so leave them out"
            )
        say("checking the equations", 0.0)
        problem.check_field()
        say("smoothing the data", 0.15)
        clock = time.perf_counter()
        minima = self.search.run(problem, seed)
        odin_seconds = time.perf_counter() - clock
        say("following trajectories", 0.6)
        clock = time.perf_counter()
        reached = lucky(lambda: self.follow(minima, seed)) if self.refine and minima.solutions else None
        seconds = (odin_seconds, time.perf_counter() - clock)

        def judge(maximum: Maximum | None) -> Case:
            tell = part_of(progress, 0.7, 1.0)
            return judged(problem, self.search, minima, maximum, seed, level, draws, tell, whole)

        fit = _assembled(self, problem, seed, minima, reached, seconds, judge)
        say("done", 1.0)
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

    def _first(self, problem: Problem, seed: int) -> First | None:
        """Where a problem that is not plain starts, if all its states can be smoothed."""
        plain = plainly(problem)
        if plain is None:
            return None
        minima = self.search.run(plain, seed)
        if not minima.solutions or isinstance(minima.engine, Sparse):
            return None
        engine: Any = minima.engine
        best = minima.solutions[0]
        x0 = _initial(engine, best)
        return First(*lifted(problem, plain, best.phi, x0, seed), self.starts, minima.agreeing)

    def follow(self, minima: Minima, seed: int) -> Reached | None:
        """Stage two: the best trajectory from ODIN's minima; None if none could be followed."""
        if isinstance(minima.engine, Sparse):
            return follow(minima.engine, minima.solutions[0])

        def finer() -> Minima:
            return self.second_look.search.run(minima.engine.problem, [seed, 1], most=4)

        best = best_trajectory(minima, finer, seed)
        if best is None:
            return None
        maximum = Maximum.of(minima.engine.problem, minima.engine.units.scale, best)
        others = [s for s in minima.solutions[1:] if s.risk < minima.solutions[0].risk + _RIVALS]
        v = [maximum.like.unknowns.join(_initial(minima.engine, s), s.phi) for s in others]
        return replace(maximum, known=np.stack(v)) if v else maximum


def _initial(engine: Any, s: Solution) -> list[Array]:
    """The first states (K,) of every experiment at a minimum."""
    x = engine.units.user(s.z)
    return [x[block.rows][0] for block in engine.blocks]


def _assembled(
    method: Odin, problem: Problem, seed: int, minima: Minima, reached: Reached | None, seconds: tuple[float, float],
    judge: Callable[[Maximum | None], Case],
) -> Fit:  # fmt: skip
    """Both stages as plain data, which of them to believe, and the verdicts."""
    engine, solutions, names = minima.engine, minima.solutions, problem.model.states
    s = solutions[0] if solutions else _smoothed_only(engine)
    status = Status.NOT_FINITE if not solutions else Status.CONVERGED if s.converged else Status.MAX_ITERATIONS
    curves = engine.curves(s) if solutions else engine.mean_curves()
    gamma, sigma = named(names, s.gamma), noise_sd(engine.units, engine.hypers)
    stages = {
        "odin": stage(
            problem, problem.theta(s.phi), curves, sigma,
            gamma=gamma, objective=s.risk, seconds=seconds[0], note=status.value,
        )
    }  # fmt: skip
    used, known, best = "odin", None, None
    if reached is not None:
        follows = not misses(problem, reached.sigma, sigma)
        if follows and (settled := lucky(reached.settled)) is not None:
            reached, known = settled
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
    case = None
    if not solutions or (isinstance(engine, Sparse) and used == "odin"):
        verdicts = dict.fromkeys(names, NOT_JUDGED)
    elif not method.refine or isinstance(engine, Sparse):
        # The paper's reading of γ, for which no rate of false alarms is known; or what only a trajectory can acquit.
        wrong = method.gamma == "learn" and used == "odin"
        verdicts = {k: CONTRADICTS for k, v in gamma.items() if wrong and v > CONTRADICTS_ABOVE}
    else:
        maximum = reached if used == "refined" and isinstance(reached, Maximum) else None
        case = lucky(lambda: judge(maximum)) or Case(())
        verdicts = case.verdicts(names)
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
        warnings=(*engine.notes, *([_WRONG] if known is not None and CONTRADICTS in verdicts.values() else [])),
        uncertainty=known,
        workings=_kept(method, minima, reached, case),
        best=best,
        details={
            "starts": method.starts,
            "starts_agreeing": minima.agreeing,
            "start_mismatches": [cost for cost in minima.mismatches if np.isfinite(cost)],
            "iterations": s.iterations,
            **facts(problem, engine.hypers),
            **(case.numbers() if case else {}),
        },
    )


def _kept(method: Odin, minima: Minima, reached: Reached | None, case: Case | None) -> Workings:
    """What later steps can use, without the large operators of many states."""
    if isinstance(minima.engine, Sparse):
        return Workings()
    return Workings(method.search, minima, reached if isinstance(reached, Maximum) else None, case)


def _smoothed_only(engine: Engine) -> Solution:
    """What is left when no start gave a finite model: the GP means."""
    nothing = np.full(len(engine.problem.free), np.nan)
    return Solution(engine.mean, nothing, np.full(engine.mean.shape[1], np.nan), np.inf, 0, False)
