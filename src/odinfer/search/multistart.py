"""Search for the maximum of the trajectory likelihood from many start points.

One driver runs strategies, cheapest first, until one acceptance test is met:

1. trajectories refined from the minima of ODIN's risk, where all states can be smoothed;
2. generations of start points followed by the compiled batched trust region (evolutionary.py), for models from text,
   and many start points at once where their best misses the data; or growing horizons, one start after the other, for
   Python functions and very long series;
3. multiple shooting, where the data are still missed and start points do not agree.

The search is over when several start points have led to the best optimum: few if its residuals hold no signal, more if
they do. A model that is wrong is not searched for longer than that.
"""

from __future__ import annotations

import contextlib
import itertools
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odinfer.errors import InputError
from odinfer.gp.residual_signal import SUSPICIOUS
from odinfer.gp.smoother import noise_sd
from odinfer.gp.standardisation import state_scales
from odinfer.likelihood.batch_likelihood import BatchLikelihood
from odinfer.likelihood.likelihood import Likelihood
from odinfer.likelihood.refinement import TrajectoryOptimum, maximise_from_initial, paths_through, refine
from odinfer.ode.adaptive_mesh import Budget, BudgetExhausted, integrate_experiments
from odinfer.odin import startpoints
from odinfer.odin.gauss_newton import Solution
from odinfer.odin.multistart import Minima
from odinfer.problem.problem import Problem
from odinfer.progress import Progress, no_progress
from odinfer.scaling.dimensional_analysis import natural_sizes_of_free
from odinfer.search.alternatives import exchanged_optima, nearest_counts, separate_optima
from odinfer.search.event_startpoints import event_startpoints
from odinfer.search.evolutionary import SAME, StartGenerations, follow_most, generations
from odinfer.search.growing_horizon import fit_growing_horizon
from odinfer.search.multiple_shooting import multiple_shooting
from odinfer.search.neighbours import best_neighbour
from odinfer.search.rescaling import rescale_runaways
from odinfer.search.start_executor import WIDTH, StartExecutor
from odinfer.search.startpoints import difference_noise, draw_starts, starts
from odinfer.search.trust_region import minimise_batch

Array = NDArray[np.float64]

STARTS = 60  # start points that are followed one by one, at most
_AGREE, _AGREE_ANYWAY = 3, 8  # start points at the best optimum that end a search: without, and with a signal left
_AGREE_ODIN = 2  # the same for start points of ODIN's risk
_SMOOTHER = 1.15  # residuals above this multiple of the smoother's noise may be those of a local optimum
_CHI_SQUARED = 6.0  # standard deviations of a sum of squares: what known noise leaves less than once in 10⁶ fits
_UNEXPLAINED = 0.5  # share of a state's variance: a trajectory that leaves more misses the data
_SWEEP = 256  # start points that are followed where the best of a search misses the data
_ENOUGH = 1e-3  # nats that a step must gain on the way
_KNOWN, _NEAR = 200, 15.0  # optima that are remembered, and nats by which they are below the best at most
_FROM_MINIMA = 30  # steps from a minimum of the risk: what takes more is left to the compiled search
_TRIED, _MESH_STEPS, _LAST_STEPS = 10, 100, 300  # optima, best first, that are tried on a mesh; steps there; the last
_FINAL_STEPS = 10  # on the mesh from the optimum of the compiled solver, whose error is larger
_STEPS, _ALL_STEPS = 4000, 60_000  # of integration: for one start point that is followed by itself, and for all
# Shares of the observations in the first horizon, in turn: short ones lead past oscillations that are out of phase, the
# whole shows at once what only late data tell.
_FIRST = (0.0, 0.99, 0.0, 0.5)


@dataclass(frozen=True)
class OdinStart:
    """Where the ODIN stage ended, as initial values (K,) of every experiment and φ (F,) of the problem itself, the
    smoother's noise (M,) of the columns, infinite where it has none, and to how many start points that is common."""

    x0: list[Array]
    phi: Array
    noise: Array
    starts: int
    agreeing: int


@dataclass(frozen=True)
class SearchResult:
    """The outcome of a search.

    Attributes:
        best: the trajectory of the highest likelihood; None if no start point led to a trajectory.
        objectives: −log-likelihood − log prior that each start point led to, best first; infinite without a trajectory.
        starts: start points that were followed.
        agreeing: those of them that led to this optimum; of those that only its neighbours or copies led to, none.
        elsewhere: those that led to another optimum of the same likelihood.
        known: unknowns (n, P) at optima that are not far below the best.
        alternatives: unknowns (m, P) at other optima that fit as well, the best first.
    """

    best: TrajectoryOptimum | None
    objectives: tuple[float, ...]
    starts: int
    agreeing: int
    elsewhere: int = 0
    known: Array | None = None
    alternatives: Array | None = None


def search(
    problem: Problem, seed: int, progress: Progress = no_progress, executor: StartExecutor | None = None,
    minima: Minima | None = None, first: OdinStart | None = None, brief: bool = False,
) -> SearchResult:  # fmt: skip
    """Find the maximum of the likelihood over trajectories.

    Args:
        executor: worker processes that follow start points; this process, all at once, if not given.
        minima: of ODIN's risk for this problem.
        first: of ODIN's risk for a relaxation of it.
        brief: from these minima and by multiple shooting only, since chaotic trajectories cannot be followed from
            start points anywhere.

    Raises:
        InputError: there is an executor, and the model is no text.
    """
    if executor is not None and not BatchLikelihood.can(problem):
        raise InputError("workers, cluster and store need a model from text, and no very long series; leave them out")
    found = _search(problem, seed, progress, executor, minima, first, brief)
    if found.best is None or found.alternatives is not None or not BatchLikelihood.can(problem):
        return found
    solver = BatchLikelihood.of(problem)
    with np.errstate(all="ignore"):
        v = solver.likelihood.unknowns.join([p.x0 for p in found.best.paths], found.best.phi)
        return replace(found, alternatives=exchanged_optima(solver, v))


def _search(
    problem: Problem, seed: int, progress: Progress, executor: StartExecutor | None, minima: Minima | None,
    first: OdinStart | None, brief: bool,
) -> SearchResult:  # fmt: skip
    """The same without optima that exchange parameters of the best."""
    best, led = None, 0
    if minima is not None and minima.solutions:
        best, led = _from_minima(problem, minima)
        noise = noise_sd(minima.engine.units, minima.engine.hypers)
        if minima.agreeing >= _AGREE_ODIN and best is not None and convincing(problem, best, noise):
            best = rescale_runaways(problem, state_scales(problem), best, natural_sizes_of_free(problem))
            return _odin_result(problem, best, minima, led)
    if first is not None and (reached := _from_relaxation(problem, first)) is not None:
        objectives = (*[reached.objective] * first.agreeing, *[np.inf] * (first.starts - first.agreeing))
        return SearchResult(reached, objectives, first.starts, first.agreeing)
    if brief and minima is not None:
        found = SearchResult(best, () if best is None else (best.objective,), len(minima.mismatches), led)
    elif BatchLikelihood.can(problem):
        found = _search_batched(problem, seed, progress, executor, best)
    else:
        found = _search_sequentially(problem, seed, progress)
    best = _better(best, found.best)
    if (
        problem.fully_observed_gaussian
        and minima is not None
        and found.agreeing < _AGREE_ANYWAY
        and (best is None or misses(problem, best.sigma, difference_noise(problem)))
    ):
        guesses = [_phi(problem, minima, s) for s in minima.solutions]
        for i, own in enumerate((guesses, [])):  # and once more from other start points
            reached = multiple_shooting(problem, state_scales(problem), own, [seed, i])
            before, best = best, _better(best, reached)
            # Where multiple shooting leads no further, start points have found the best: a wrong model misses the data.
            if best is not None and (best is before or not misses(problem, best.sigma, difference_noise(problem))):
                break
    if best is not None and problem.fully_observed_gaussian:
        best = rescale_runaways(problem, state_scales(problem), best, natural_sizes_of_free(problem))
    if best is None or found.best is None or best.objective < found.best.objective - SAME:
        return SearchResult(best, found.objectives, found.starts, 0, known=found.known)
    return replace(found, best=best)


def misses(problem: Problem, left: Array, noise: Array) -> bool:
    """Whether a trajectory misses most of what some state does: what it leaves (K,), beyond the noise (K,)."""
    y = np.concatenate([e.y for e in problem.data.experiments])
    return bool((left**2 - noise**2 > _UNEXPLAINED * np.nanvar(y, 0)).any())


def _misses_data(problem: Problem, found: TrajectoryOptimum | None) -> bool:
    """Whether a trajectory misses most of some column's variance, beyond its noise; or there is none."""
    if found is None:
        return True
    likelihood = Likelihood(problem, np.ones(len(problem.model.states)))
    seen, left = [], []
    for e, x in enumerate(found.states(likelihood.t)):
        y = problem.data.experiments[e].y
        both = np.stack([y, likelihood.observation.predicted(e, x, found.phi[None])[0]])
        both = np.stack([c.family.transformed(both[..., m]) for m, c in enumerate(problem.observed)], -1)
        seen.append(both[0])
        left.append(both[0] - both[1])
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of columns without values
        missed = np.nanmean(np.concatenate(left) ** 2, 0) - difference_noise(problem) ** 2
        return bool((missed > _UNEXPLAINED * np.nanvar(np.concatenate(seen), 0)).any())


def convincing(problem: Problem, found: TrajectoryOptimum, noise: Array | None = None) -> bool:
    """Test whether a trajectory is good enough to end a search.

    It leaves no signal, and residuals no larger than the noise: that of the problem where it is known, and the
    smoother's (M,) where that is given and the noise is estimated.
    """
    own = np.asarray(problem.estimated_noise)
    close = noise is None or bool((found.sigma[own] <= _SMOOTHER * noise[own]).all())
    return close and not exceeds_known_noise(problem, found) and signal_left(problem, found) <= SUSPICIOUS


def exceeds_known_noise(problem: Problem, found: TrajectoryOptimum) -> bool:
    """Whether the residuals of some column are too large, by χ², for noise that the problem knows."""
    likelihood = Likelihood(problem, np.ones(len(problem.model.states)))
    squares, count = np.zeros((2, len(problem.columns)))
    for e, x in enumerate(found.states(likelihood.t)):
        left = likelihood.observation.residuals(e, x, likelihood.y[e], found.sigma[None] ** 2, found.phi[None])[0]
        squares += np.nansum(left**2, 0)
        count += np.isfinite(left).sum(0)
    excess = squares > count + _CHI_SQUARED * np.sqrt(2.0 * count)
    return bool((excess & ~np.asarray(problem.estimated_noise)).any())


def signal_left(problem: Problem, found: TrajectoryOptimum) -> float:
    """The most nats of evidence, of any column, for a signal in what a trajectory leaves of the data."""
    likelihood = Likelihood(problem, np.ones(len(problem.model.states)))
    return float(likelihood.signal(found.states(likelihood.t), found.sigma**2, found.phi[None]).max())


def _better(*found: TrajectoryOptimum | None) -> TrajectoryOptimum | None:
    return min((r for r in found if r is not None), key=lambda r: r.objective, default=None)


def _phi(problem: Problem, minima: Minima, solution: Solution) -> Array:
    """φ (F,) of the problem itself at a minimum of the risk; what is zero there starts far below its natural size."""
    theta = minima.engine.problem.theta(solution.phi)
    index, least = problem.free_index, 1e-4 * natural_sizes_of_free(problem)
    theta[index] = np.where(problem.is_log, np.maximum(theta[index], least), theta[index])
    return np.clip(problem.phi(theta), *problem.phi_bounds)


def _from_minima(problem: Problem, minima: Minima) -> tuple[TrajectoryOptimum | None, int]:
    """The best trajectory refined from the minima of ODIN's risk, and from around it; and how many starts led there."""
    engine: Any = minima.engine
    scale, budget = engine.units.scale, Budget(_ALL_STEPS // 2)
    ends: list[TrajectoryOptimum | None] = []
    for s in minima.solutions:
        x, slope, phi = engine.units.user(s.z), engine.slopes(s), _phi(problem, minima, s)
        guess = paths_through(problem, [(engine.t[b.rows], x[b.rows], slope[b.rows]) for b in engine.blocks])
        end = None
        for start in (phi, *startpoints.scaled_back(problem, phi)):
            found = refine(problem, scale, guess, start, _FROM_MINIMA, budget=budget)
            if found is None:
                found = _refine_integrated(problem, scale, start, [x[b.rows][0] for b in engine.blocks], budget)
            end = _better(end, found)
        ends.append(end)
    if (best := _better(*ends)) is None:
        return None, 0
    own = zip(ends, minima.counts, strict=True)
    led = sum(count for end, count in own if end is not None and end.objective < best.objective + SAME)
    return best_neighbour(problem, scale, best, budget), led


def _refine_integrated(
    problem: Problem, scale: Array, phi: Array, x0: Sequence[Array], budget: Budget
) -> TrajectoryOptimum | None:
    """Refine a trajectory that is integrated, where the estimated states are too far from any solution."""
    try:
        paths = integrate_experiments(problem, phi, x0, scale, Budget(_STEPS))
    except BudgetExhausted:
        return None
    return refine(problem, scale, paths, phi, budget=budget) if paths else None


def _odin_result(problem: Problem, best: TrajectoryOptimum, minima: Minima, led: int) -> SearchResult:
    """The result of a search that ODIN's minima alone have led to, from so many start points."""
    engine: Any = minima.engine
    likelihood = Likelihood(problem, state_scales(problem))
    others = [s for s in minima.solutions[1:] if s.risk < minima.solutions[0].risk + _NEAR]
    x0 = [[engine.units.user(s.z)[b.rows][0] for b in engine.blocks] for s in others]
    known = [likelihood.unknowns.join(own, _phi(problem, minima, s)) for own, s in zip(x0, others, strict=True)]
    starts = len(minima.mismatches)
    return SearchResult(best, (best.objective,), starts, led, known=np.stack(known) if known else None)


def _from_relaxation(problem: Problem, first: OdinStart) -> TrajectoryOptimum | None:
    """The trajectory that ODIN's estimate of a relaxed problem leads to, if it is convincing."""
    x0, phi, scale = first.x0, first.phi, state_scales(problem)
    if BatchLikelihood.can(problem):
        solver = BatchLikelihood.of(problem)
        v = solver.solve(solver.likelihood.unknowns.join(x0, phi)[None], projected=True).v[0]
        x0, phi = solver.initial(v), solver.likelihood.unknowns.phi(v)
    try:
        found = maximise_from_initial(problem, scale, x0, phi, budget=Budget(_STEPS))
    except BudgetExhausted:
        return None
    return found if found is not None and found.converged and convincing(problem, found, first.noise) else None


def _search_batched(
    problem: Problem, seed: int, progress: Progress, executor: StartExecutor | None, start: TrajectoryOptimum | None
) -> SearchResult:
    """Follow generations of start points by the compiled batched trust region."""
    solver = BatchLikelihood.of(problem)
    given = None if start is None else solver.likelihood.unknowns.join([p.x0 for p in start.paths], start.phi)

    def done(so_far: StartGenerations) -> bool:
        if so_far.agreeing >= _AGREE_ANYWAY:
            return True
        near = _on_mesh(solver, so_far)
        return near is not None and convincing(problem, near)

    fresh, rng = draw_starts(problem, np.random.default_rng([seed, 3]), given), np.random.default_rng([seed, 4])
    if problem.model.declarations.triggers:
        fresh = event_startpoints(problem, fresh, np.random.default_rng([seed, 5]))
    with np.errstate(all="ignore"):  # start points may be anywhere
        following = contextlib.nullcontext(follow_most) if executor is None else executor.following(problem, progress)
        with following as followed:

            def run(starts: Iterator[Array]) -> StartGenerations:
                width = 1 if executor is None else WIDTH
                for i, so_far in enumerate(generations(solver, starts, rng, done, followed, width)):
                    if executor is None:  # which tells by itself
                        progress(f"followed {len(so_far.value)} starts", 1.0 - 0.7**i)
                return so_far

            found = run(fresh)
            if _misses_data(problem, _on_mesh(solver, found)):  # most start points may lead to what explains nothing
                count = _SWEEP // solver.likelihood.unknowns.experiments
                sweep = followed(solver, np.stack(list(itertools.islice(fresh, count))), found.best)
                if sweep.value.min(initial=np.inf) < found.best - SAME:
                    found = run(itertools.chain([sweep.v[sweep.value.argmin()]], fresh))
        order = np.argsort(found.value, kind="stable")[:_KNOWN]
        known = order[found.value[order] < found.best + _NEAR]
        optima = separate_optima(solver, found.v[known], found.value[known])
        same = found.v[found.fresh & (found.value < found.best + SAME)]
        counts = nearest_counts(solver, same, optima)
        # Of several optima of the same likelihood, the one that most start points have led to.
        most = int(counts.argmax()) if len(counts) else 0
        near = _on_mesh(solver, found, optima[most] if most else None)
        if near is not None:  # on the meshes at hand, which the steps of the search have made
            x0, steps = [p.x0 for p in near.paths], _FINAL_STEPS if near.converged else _LAST_STEPS
            last = maximise_from_initial(problem, state_scales(problem), x0, near.phi, steps, along=near.paths)
            near = near if last is None else replace(last, converged=near.converged or last.converged)
    values = np.sort(found.value[found.fresh])
    agreeing = int(counts[most]) if len(counts) else 0
    return SearchResult(
        near, tuple(values.tolist()), len(values), agreeing, len(same) - agreeing,
        found.v[known], np.delete(optima, most, 0) if len(optima) else optima,
    )  # fmt: skip


def _on_mesh(solver: BatchLikelihood, found: StartGenerations, first: Array | None = None) -> TrajectoryOptimum | None:
    """The best optimum as a trajectory on a mesh, or the next best one for which there is one.

    Unknowns (P,) that are given are tried first. The compiled solver carries each to the optimum of accurate
    trajectories, since a step on a mesh costs far more.
    """
    u, scale, finer = solver.likelihood.unknowns, state_scales(solver.problem), solver.finer()
    order = np.argsort(found.value)[:_TRIED]
    best = found.v[order[np.isfinite(found.value[order])]]
    for end in best if first is None else np.concatenate([first[None], best]):
        polished = minimise_batch(finer, end[None])
        settled = bool(polished.settled[0])
        for own, v, steps in ((finer, polished.v[0], 0 if settled else _MESH_STEPS), (solver, end, _MESH_STEPS)):
            paths = own.paths(v)
            if paths is not None:
                x0 = solver.initial(v)
                near = maximise_from_initial(solver.problem, scale, x0, u.phi(v), steps, enough=_ENOUGH, along=paths)
                if near is not None:
                    return replace(near, converged=near.converged or not steps)
    return None


def _search_sequentially(problem: Problem, seed: int, progress: Progress) -> SearchResult:
    """Follow start points by growing horizons, one after the other."""
    sigma, scale = difference_noise(problem), state_scales(problem)
    best: TrajectoryOptimum | None = None
    objectives: list[float] = []
    left = _ALL_STEPS
    for i, (x0, phi) in enumerate(starts(problem, STARTS, np.random.default_rng([seed, 3]))):
        if left <= 0:
            break
        progress(f"following start {i + 1}", i / STARTS)
        given = min(_STEPS, left)
        budget = Budget(given)
        found = fit_growing_horizon(problem, scale, sigma, x0, phi, budget, _FIRST[i % len(_FIRST)], _ENOUGH)
        left -= given - max(budget.steps, 0)
        objectives.append(np.inf if found is None else found.objective)
        best = _better(best, found)
        agree = _count_agreeing(objectives)
        if best is not None and (agree >= _AGREE_ANYWAY or (agree >= _AGREE and convincing(problem, best))):
            break
    if best is not None:
        best = maximise_from_initial(problem, scale, [p.x0 for p in best.paths], best.phi) or best
        best = rescale_runaways(problem, scale, best, natural_sizes_of_free(problem))
    return SearchResult(best, tuple(sorted(objectives)), len(objectives), _count_agreeing(objectives))


def _count_agreeing(objectives: Sequence[float]) -> int:
    best = min(objectives, default=np.inf)
    return sum(value - best < SAME for value in objectives) if np.isfinite(best) else 0
