"""ODIN: ODE-informed regression (Algorithm 1 of the paper), then maximum likelihood from its solution."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odinfer.errors import Status
from odinfer.matching import starts
from odinfer.matching.dense import Dense
from odinfer.matching.engine import MOST_UNKNOWNS, Engine
from odinfer.matching.gamma import GammaRule
from odinfer.matching.minimise import Solution
from odinfer.matching.search import Minima, Search
from odinfer.matching.sparse.engine import Sparse
from odinfer.methods import preset
from odinfer.problem.problem import Problem
from odinfer.progress import Progress, silent
from odinfer.result.assemble import assemble, named, residual_squares, stage
from odinfer.result.fit import Fit, Workings
from odinfer.result.verdicts import CONTRADICTS, NOT_JUDGED
from odinfer.smoothing.grids import finer_grid
from odinfer.smoothing.smooth import facts, noise_sd
from odinfer.trajectory.collocation import CollocationPath
from odinfer.trajectory.continuation import follow
from odinfer.trajectory.integrate import Budget
from odinfer.trajectory.refine import Refined, explore, paths_through, refine, with_slopes
from odinfer.trajectory.shooting import grown
from odinfer.trajectory.simulate import simulate
from odinfer.uncertainty.maximum import Maximum, Reached

Array = NDArray[np.float64]

# γ is a variance of standardised derivatives, which are of order one; a right equation leaves it at its floor.
CONTRADICTS_ABOVE = 0.1
# A trajectory misses the data if its residuals are this many times the noise in variance, and run in smooth
# stretches (Durbin–Watson statistic; 2 for white residuals) rather than scatter.
_MISFIT, _SMOOTH = 4.0, 0.8
# A trajectory whose residuals exceed the smoother's noise by more than this may be a local optimum, and probably is one
# if they do by more than that. Then so many random θ are tried, too.
_CONVINCING, _POOR, _TRIES = 1.15, 2.0, 5
# Growing horizons: starts, steps of integration in all, and the noise at least, in scales of the states.
_SHOTS, _SHOTS_STEPS, _LEAST_NOISE = 20, 60_000, 1e-3


@dataclass(frozen=True)
class Odin:
    """ODIN with its options.

    Args:
        kernel: a name of `odinfer.smoothing.kernels.KERNELS`, or "auto": per state by evidence.
        optimizer: "gauss-newton" (Levenberg–Marquardt with the exact γ update) or "lbfgsb" (the paper's).
        refine: carry the solution on to the maximum likelihood by trajectory matching.
        gamma: "learn", or a value to hold it at (0 means that the equations hold exactly).
        gamma_bounds: within which γ is learned.
        jitter: added to the diagonals of C and A, a floor on the derivatives' variance.
        grid: grid points per gap between observations; 1 is the paper's choice, and taken where
            dense algebra would grow too large.
        temper: the GP's terms count for 1/temper; above 1 the data and the equations outweigh the smoother.
        starts: how many random θ to start from.
        hops: basin hops from the best solution found.
        shared: one set of hyperparameters and one γ for all states.
        scale_time: standardise time.
        hyper_bounds: of kernel hyperparameters and noise variance in standardised units.
        thorough: search the evidence for hyperparameters further than a good fit needs.
        weak_prior: a weak prior on the noise ratio keeps the evidence from explaining all noise away.
        algebra: "dense", "sparse" (conjugate gradients, for many states each coupled to a few), or "auto".
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

    def fit(self, problem: Problem, seed: int = 0, progress: Progress | None = None) -> Fit:
        """Infer θ, states, γ and noise; see `odinfer.fit`."""
        say = progress or silent
        say("checking the equations", 0.0)
        problem.check_field()
        say("smoothing the data", 0.15)
        clock = time.perf_counter()
        minima = self.search.run(problem, seed)
        odin_seconds = time.perf_counter() - clock
        say("following trajectories", 0.6)
        clock = time.perf_counter()
        reached = self.follow(minima, seed) if self.refine and minima.solutions else None
        seconds = (odin_seconds, time.perf_counter() - clock)
        say("done", 1.0)
        return _assembled(self, problem, seed, minima, reached, seconds)

    def solve(self, problem: Problem, seed: int = 0) -> Minima:
        """The ODIN stage: the risk, its different minima (best first), and how many starts led to the best."""
        return self.search.run(problem, seed)

    def risk(self, problem: Problem) -> Any:
        """Step 1: standardise, fit the Gaussian processes, and set up the risk."""
        return self.search.engine(problem)

    def minimise(self, risk: Engine, z: Array, phi: Array, **more: Any) -> Solution:
        """Step 2: minimise the risk from one start; see `odinfer.matching.search.Search.minimise`."""
        return self.search.minimise(risk, z, phi, **more)

    def follow(self, minima: Minima, seed: int) -> Reached | None:
        """Stage two: the best trajectory from ODIN's minima; None if none could be followed."""
        if isinstance(minima.engine, Sparse):
            return follow(minima.engine, minima.solutions[0])
        return self._refined(minima, seed)

    def _refined(self, minima: Minima, seed: int) -> Maximum | None:
        """From all minima; if the best trajectory is not convincing from those of a finer grid, then from random θ."""
        engine, problem = minima.engine, minima.engine.problem
        scatter = noise_sd(engine.units, engine.hypers)
        best = _best_from(engine, minima.solutions)
        if not _close(best, _CONVINCING * scatter) and 2 * engine.mean.size <= MOST_UNKNOWNS:
            # On a finer grid with less weight on the smoother ODIN is less biased, though slower.
            finer = replace(self, grid=2 * self.grid, temper=2.0 * self.temper).search.run(problem, seed)
            other = _best_from(finer.engine, finer.solutions) if isinstance(finer.engine, Dense) else None
            best = _better(best, other)
        if not _close(best, _POOR * scatter):
            # Slopes can be matched best by parameters beyond infinity, whose trajectories lead nowhere.
            drawn = starts.draw(problem, 2 * _TRIES, np.random.default_rng([seed, 1]))[:_TRIES]
            best = _better(best, _best_from(engine, minima.solutions[:1], list(drawn)))
        if not _close(best, _POOR * scatter):
            best = _better(best, _shot(engine, minima.solutions, scatter, seed))
        return None if best is None else Maximum.of(problem, engine.units.scale, best)


def _close(found: Refined | None, scatter: Array) -> bool:
    """Whether a trajectory leaves no more than this (K,)."""
    return found is not None and bool((found.sigma <= scatter).all())


def _better(*found: Refined | None) -> Refined | None:
    return min((r for r in found if r is not None), key=lambda r: r.objective, default=None)


def _best_from(engine: Any, solutions: Sequence[Solution], instead: Sequence[Array] = ()) -> Refined | None:
    """The best trajectory reached from any of ODIN's minima, or from around it; with other φ `instead`, if given."""
    best, problem, scale = None, engine.problem, engine.units.scale
    for s in solutions:
        x, slope = engine.units.user(s.z), engine.slopes(s)
        guess = paths_through(problem, [(engine.t[b.rows], x[b.rows], slope[b.rows]) for b in engine.blocks])
        for phi in instead or (s.phi, *starts.pulled_back(problem, s.phi)):
            found = refine(problem, scale, guess, phi)
            if found is None:
                simulated = _simulated(problem, phi, [x[b.rows][0] for b in engine.blocks])
                found = refine(problem, scale, simulated, phi) if simulated else None
            if found is not None and (best is None or found.objective < best.objective):
                best = found
    return None if best is None else explore(problem, scale, best)


def _shot(engine: Any, solutions: Sequence[Solution], scatter: Array, seed: int) -> Refined | None:
    """The best trajectory by growing horizons, from ODIN's minima and from random θ; ends with the first that is close.

    For what no smoother follows between the observations: fast and slow changes in one system, bursts, jumps.
    """
    problem, scale = engine.problem, engine.units.scale
    mean, budget, best = engine.units.user(engine.mean), Budget(_SHOTS_STEPS), None
    rng = np.random.default_rng([seed, 2])
    x0 = []
    for e, b in zip(problem.data.experiments, engine.blocks, strict=True):
        x0.append(np.where(np.isfinite(e.y[0]), e.y[0], mean[b.rows][0]))
    sigma = np.maximum(scatter, _LEAST_NOISE * scale)
    for phi in (*(s.phi for s in solutions), *starts.anywhere(problem, _SHOTS, rng)):
        best = _better(best, grown(problem, scale, sigma, x0, phi, budget))
        if _close(best, _CONVINCING * scatter) or budget.steps <= 0:
            break
    return best


def _simulated(problem: Problem, phi: Array, initial: Sequence[Array]) -> tuple[CollocationPath, ...] | None:
    """Paths by forward integration, for where the estimated states are too far from any solution to start from."""
    theta, states = problem.theta(phi), []
    for e, x0 in zip(problem.data.experiments, initial, strict=True):
        t, _ = finer_grid(e.t, 4)
        x = simulate(problem.model, theta, x0, t, e.u, rtol=1e-6, atol=1e-8)
        if not np.isfinite(x).all():
            return None
        states.append((t, x))
    return paths_through(problem, with_slopes(problem, theta, states), parts=2)


def _assembled(
    method: Odin, problem: Problem, seed: int, minima: Minima, reached: Reached | None, seconds: tuple[float, float]
) -> Fit:
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
    used, known = "odin", None
    if reached is not None:
        end = Status.CONVERGED if reached.converged else Status.MAX_ITERATIONS
        trajectories = reached.curves()
        stages["refined"] = stage(
            problem, problem.theta(reached.phi), trajectories, reached.left,
            gamma=gamma, objective=reached.objective, loglik=reached.loglik, seconds=seconds[1], note=end.value,
        )  # fmt: skip
        scatter = np.maximum(sigma**2, residual_squares(problem, stages["odin"].x) / problem.count)
        if not _misses(problem, stages["refined"].x, reached.sigma**2 / scatter):
            used, curves, status, known = "refined", trajectories, end, reached.intervals()
    if method.refine and used == "odin" and status.converged:
        status = Status.NOT_FOLLOWED if reached is None else Status.ODIN_KEPT
    # A trajectory of the model that leaves only white noise acquits every equation, whatever the smoother thinks.
    learned = method.gamma == "learn" and used == "odin"
    verdicts = {k: CONTRADICTS for k, v in gamma.items() if learned and v > CONTRADICTS_ABOVE}
    if not solutions:
        verdicts = dict.fromkeys(names, NOT_JUDGED)
    elif status is Status.NOT_FOLLOWED:
        # That no trajectory was found says something about the search, not about the equations.
        verdicts = dict.fromkeys(verdicts, NOT_JUDGED)
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
        warnings=engine.notes,
        uncertainty=known,
        workings=_kept(method, minima, reached),
        details={
            "starts": method.starts,
            "starts_agreeing": minima.agreeing,
            "iterations": s.iterations,
            **facts(problem, engine.hypers),
        },
    )


def _misses(problem: Problem, x: Sequence[Array], ratio: Array) -> bool:
    """Whether a trajectory clearly leaves the data of some state, its residuals' variance being `ratio` times noise."""
    steps, total = np.zeros(len(ratio)), np.zeros(len(ratio))
    for e, xe in zip(problem.data.experiments, x, strict=True):
        for k, r in enumerate((e.y - xe).T):
            r = r[np.isfinite(r)]
            steps[k] += (np.diff(r) ** 2).sum()
            total[k] += (r**2).sum()
    durbin_watson = steps / np.maximum(total, 1e-300)
    return bool(((ratio > _MISFIT) & (durbin_watson < _SMOOTH)).any())


def _kept(method: Odin, minima: Minima, reached: Reached | None) -> Workings:
    """What later steps can use, without the large operators of many states."""
    if not isinstance(minima.engine, Dense):
        return Workings()
    return Workings(method.search, minima, reached if isinstance(reached, Maximum) else None)


def _smoothed_only(engine: Engine) -> Solution:
    """What is left when no start gave a finite model: the GP means."""
    nothing = np.full(len(engine.problem.free), np.nan)
    return Solution(engine.mean, nothing, np.full(engine.mean.shape[1], np.nan), np.inf, 0, False)
