"""ODIN: ODE-informed regression (Algorithm 1 of the paper), then maximum likelihood from its solution."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from odinfer.errors import Status
from odinfer.judgement.equation_test import FALSE_ALARMS
from odinfer.judgement.model_test import DRAWS, signal_of
from odinfer.judgement.verdicts import CONTRADICTS, NOT_JUDGED, SUSPICIOUS, Case, judged
from odinfer.matching import starts
from odinfer.matching.dense import Dense
from odinfer.matching.engine import MOST_UNKNOWNS, Engine
from odinfer.matching.gamma import GammaRule
from odinfer.matching.minimise import Solution
from odinfer.matching.scales import natural_scales
from odinfer.matching.search import Minima, Search
from odinfer.matching.sparse.engine import Sparse
from odinfer.methods import preset
from odinfer.problem.problem import Problem
from odinfer.progress import Progress, part_of, silent
from odinfer.result.assemble import assemble, named, stage
from odinfer.result.fit import Fit, Workings
from odinfer.smoothing.smooth import facts, noise_sd
from odinfer.trajectory.collocation import CollocationPath
from odinfer.trajectory.continuation import follow
from odinfer.trajectory.integrate import Budget, Exhausted, integrated
from odinfer.trajectory.likelihood import Likelihood
from odinfer.trajectory.refine import Refined, explore, paths_through, refine
from odinfer.trajectory.shooting import grown
from odinfer.uncertainty.maximum import Maximum, Reached

Array = NDArray[np.float64]
_T = TypeVar("_T")

# γ is a variance of standardised derivatives, which are of order one; a right equation leaves it at its floor.
CONTRADICTS_ABOVE = 0.1
# A trajectory that leaves more than this share of some state's variance is no estimate of the states.
_UNEXPLAINED = 0.5
# A trajectory whose residuals exceed the smoother's noise by more than this may be a local optimum, and probably is one
# if they do by more than that, or fall short of it by so much. Then so many random θ are tried, too.
_CONVINCING, _POOR, _LESS, _TRIES = 1.15, 2.0, 0.5, 5
# Growing horizons: starts, steps of integration for each and for all, starts after one that follows the data, the noise
# at least in scales of the states, and the difference up to which two starts lead to one optimum.
_SHOTS, _SHOT_STEPS, _SHOTS_STEPS, _CHANCES, _LEAST_NOISE, _SAME = 20, 4000, 20_000, 3, 1e-3, 0.05


# Parameters of so many times their natural scale, or as little of it, have run away; what pulling them in may cost.
_RUNAWAY, _AS_GOOD = 1e5, 0.01
_WRONG = "intervals tell how well the data determine the parameters if the model is right, which the data contradict"


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

    def fit(
        self, problem: Problem, seed: int = 0, progress: Progress | None = None, level: float = FALSE_ALARMS,
        draws: int = DRAWS, whole: bool = False,
    ) -> Fit:  # fmt: skip
        """Infer θ, states, γ and noise, and judge the equations; see `odinfer.fit`.

        Args:
            level, draws, whole: of the judgement; see `odinfer.judgement.verdicts.judged`.
        """
        say = progress or silent
        say("checking the equations", 0.0)
        problem.check_field()
        say("smoothing the data", 0.15)
        clock = time.perf_counter()
        minima = self.search.run(problem, seed)
        odin_seconds = time.perf_counter() - clock
        say("following trajectories", 0.6)
        clock = time.perf_counter()
        reached = _lucky(lambda: self.follow(minima, seed)) if self.refine and minima.solutions else None
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
        if not _close(best, scatter, _CONVINCING) and 2 * engine.mean.size <= MOST_UNKNOWNS:
            # On a finer grid with less weight on the smoother ODIN is less biased, though slower.
            finer = replace(self, grid=2 * self.grid, temper=2.0 * self.temper).search.run(problem, seed)
            other = _best_from(finer.engine, finer.solutions) if isinstance(finer.engine, Dense) else None
            best = _better(best, other)
        if not _close(best, scatter, _POOR):
            # Slopes can be matched best by parameters beyond infinity, whose trajectories lead nowhere.
            drawn = starts.draw(problem, 2 * _TRIES, np.random.default_rng([seed, 1]))[:_TRIES]
            best = _better(best, _best_from(engine, minima.solutions[:1], list(drawn)))
        if not _close(best, scatter, _POOR) or not _credible(problem, best, scatter, engine.units.scale):
            best = _better(best, _shot(engine, minima.solutions, scatter, seed))
        if best is not None:
            best = _pulled_in(problem, engine.units.scale, best)
        return None if best is None else Maximum.of(problem, engine.units.scale, best)


def _lucky(step: Callable[[], _T]) -> _T | None:
    """What a step gives; None where its linear algebra breaks down, which is bad luck and no reason to stop."""
    try:
        return step()
    except (np.linalg.LinAlgError, ArithmeticError):
        return None


def _close(found: Refined | None, scatter: Array, most: float) -> bool:
    """Whether a trajectory leaves no more than so many times what the smoother takes for noise (K,)."""
    return found is not None and bool((found.sigma <= most * scatter).all())


def _credible(problem: Problem, found: Refined | None, scatter: Array, scale: Array) -> bool:
    """Whether a trajectory is probably the best there is, judged by what it leaves of the data.

    That is what the smoother takes for noise (K,), or much less without a signal in it: then the smoother has not
    followed the data, and its noise is no measure.
    """
    if found is None:
        return False
    if ((found.sigma >= _LESS * scatter) | (found.sigma <= _LEAST_NOISE * scale)).all():
        return True
    return bool(signal_of(Likelihood(problem, scale), found).max() <= SUSPICIOUS)


def _better(*found: Refined | None) -> Refined | None:
    return min((r for r in found if r is not None), key=lambda r: r.objective, default=None)


def _best_from(engine: Any, solutions: Sequence[Solution], instead: Sequence[Array] = ()) -> Refined | None:
    """The best trajectory reached from any of ODIN's minima, or from around it; with other φ `instead`, if given."""
    best, problem, scale, budget = None, engine.problem, engine.units.scale, Budget(_SHOTS_STEPS)
    for s in solutions:
        x, slope = engine.units.user(s.z), engine.slopes(s)
        guess = paths_through(problem, [(engine.t[b.rows], x[b.rows], slope[b.rows]) for b in engine.blocks])
        for phi in instead or (s.phi, *starts.pulled_back(problem, s.phi)):
            found = refine(problem, scale, guess, phi, budget=budget)
            if found is None:
                paths = _integrated(problem, scale, phi, [x[b.rows][0] for b in engine.blocks])
                found = refine(problem, scale, paths, phi, budget=budget) if paths else None
            if found is not None and (best is None or found.objective < best.objective):
                best = found
    return None if best is None else explore(problem, scale, best, budget=budget)


def _pulled_in(problem: Problem, scale: Array, best: Refined) -> Refined:
    """The same with parameters that ran off to nothing or beyond all bounds back at usual sizes, if that is as good.

    Far out the likelihood is flat and nothing leads back: where that begins is as good a place. At zero it may be flat
    by symmetry, as for k in k².
    """
    natural = natural_scales(problem)[problem.free_index]
    for j in range(len(problem.free)):
        value = problem.theta(best.phi)[problem.free_index[j]] / natural[j]
        if abs(value) < 1.0 / _RUNAWAY:
            tries = [_set(problem, scale, best, j, sign * natural[j]) for sign in (1.0, -1.0)]
            best = _better(best, *tries) or best
        elif abs(value) > _RUNAWAY:
            for decade in range(int(np.log10(abs(value)))):
                found = _set(problem, scale, best, j, np.sign(value) * 10.0**decade * natural[j], held=True)
                if found is not None and found.objective < best.objective + _AS_GOOD:
                    best = found
                    break
    return best


def _set(problem: Problem, scale: Array, best: Refined, j: int, value: float, held: bool = False) -> Refined | None:
    """The maximum from where the free parameter j has another value, or with it held there."""
    theta, budget, name = problem.theta(best.phi), Budget(_SHOT_STEPS), problem.free[j]
    theta[problem.free_index[j]] = value = float(np.clip(value, *problem.limits(name)))
    if not held:
        return refine(problem, scale, best.paths, problem.phi(theta), budget=budget)
    start = {k: v for k, v in problem.start.items() if k != name}
    fixed = replace(problem, fixed={**problem.fixed, name: value}, start=start)
    found = refine(fixed, scale, [replace(p, problem=fixed) for p in best.paths], fixed.phi(theta), budget=budget)
    if found is None:
        return None
    paths = [replace(p, problem=problem) for p in found.paths]
    there = refine(problem, scale, paths, problem.phi(fixed.theta(found.phi)), 0, budget=budget)
    return None if there is None else replace(there, converged=True)


def _shot(engine: Any, solutions: Sequence[Solution], scatter: Array, seed: int) -> Refined | None:
    """The best trajectory by growing horizons, from ODIN's minima and from random θ; ends with the first that is close.

    For what no smoother follows between the observations: fast and slow changes in one system, bursts, jumps.
    """
    problem, scale = engine.problem, engine.units.scale
    mean, left, best = engine.units.user(engine.mean), _SHOTS_STEPS, None
    x0 = []
    for e, b in zip(problem.data.experiments, engine.blocks, strict=True):
        x0.append(np.where(np.isfinite(e.y[0]), e.y[0], mean[b.rows][0]))
    sigma = np.maximum(scatter, _LEAST_NOISE * scale)
    drawn = starts.anywhere(problem, _SHOTS, np.random.default_rng([seed, 2]))
    each, more = _SHOT_STEPS, len(solutions) + len(drawn)
    for phi in (*(s.phi for s in solutions), *drawn):
        budget = Budget(min(each, left))
        found = grown(problem, scale, sigma, x0, phi, budget)
        spent = min(each, left) - max(budget.steps, 0)
        left, more = left - spent, more - 1
        if found is not None and not _misses(problem, found.sigma, 0.0 * scale):
            # This may well be it: others get their chance, but not a better one.
            each, more = min(each, 2 * spent), min(more, _CHANCES)
        agree = found is not None and best is not None and abs(found.objective - best.objective) < _SAME
        best = _better(best, found)
        if (
            agree
            or left <= 0
            or more <= 0
            or (_close(best, scatter, _CONVINCING) and _credible(problem, best, scatter, scale))
        ):
            break
    return best


def _integrated(
    problem: Problem, scale: Array, phi: Array, initial: Sequence[Array]
) -> tuple[CollocationPath, ...] | None:
    """Paths by forward integration, for where the estimated states are too far from any solution to start from."""
    theta, paths, budget = problem.theta(phi), [], Budget(_SHOT_STEPS)
    for e, x0 in enumerate(initial):
        try:
            path = integrated(problem, e, theta, x0, scale, budget)
        except Exhausted:
            path = None
        if path is None:
            return None
        paths.append(path)
    return tuple(paths)


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
    used, known = "odin", None
    if reached is not None:
        end = Status.CONVERGED if reached.converged else Status.MAX_ITERATIONS
        trajectories = reached.curves()
        stages["refined"] = stage(
            problem, problem.theta(reached.phi), trajectories, reached.left,
            gamma=gamma, objective=reached.objective, loglik=reached.loglik, seconds=seconds[1], note=end.value,
        )  # fmt: skip
        if not _misses(problem, reached.sigma, sigma):
            used, curves, status, known = "refined", trajectories, end, _lucky(reached.intervals)
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
        case = _lucky(lambda: judge(maximum)) or Case(())
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
        details={
            "starts": method.starts,
            "starts_agreeing": minima.agreeing,
            "iterations": s.iterations,
            **facts(problem, engine.hypers),
            **(case.numbers() if case else {}),
        },
    )


def _misses(problem: Problem, left: Array, noise: Array) -> bool:
    """Whether a trajectory misses most of what some state does: what it leaves (K,), beyond the noise (K,)."""
    y = np.concatenate([e.y for e in problem.data.experiments])
    return bool((left**2 - noise**2 > _UNEXPLAINED * np.nanvar(y, 0)).any())


def _kept(method: Odin, minima: Minima, reached: Reached | None, case: Case | None) -> Workings:
    """What later steps can use, without the large operators of many states."""
    if not isinstance(minima.engine, Dense):
        return Workings()
    return Workings(method.search, minima, reached if isinstance(reached, Maximum) else None, case)


def _smoothed_only(engine: Engine) -> Solution:
    """What is left when no start gave a finite model: the GP means."""
    nothing = np.full(len(engine.problem.free), np.nan)
    return Solution(engine.mean, nothing, np.full(engine.mean.shape[1], np.nan), np.inf, 0, False)
