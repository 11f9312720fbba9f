"""The best trajectory, from ODIN's minima and, where these lead nowhere, from anywhere: in which order to look.

What the smoother takes for noise tells whether a trajectory is convincing; what it leaves of the data, whether that
noise is a measure at all. Every way costs more than the one before, and is only gone if it has to be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odinfer.gp.residual_signal import SUSPICIOUS
from odinfer.gp.smoother import noise_sd
from odinfer.likelihood.batch_likelihood import SideBySide
from odinfer.likelihood.likelihood import Likelihood
from odinfer.likelihood.refinement import Refined, explore, paths_through, refine
from odinfer.ode.adaptive_mesh import Budget, Exhausted, every_integrated
from odinfer.ode.collocation import CollocationPath
from odinfer.odin import startpoints
from odinfer.odin.engine import MOST_UNKNOWNS
from odinfer.odin.gauss_newton import Solution
from odinfer.odin.markov.engine import Markov
from odinfer.odin.multistart import Minima
from odinfer.odin.sparse.engine import Sparse
from odinfer.problem.problem import Problem
from odinfer.scaling.dimensional_analysis import free_scales
from odinfer.search.growing_horizon import grown
from odinfer.search.multiple_shooting import from_windows
from odinfer.search.rescaling import pulled_in
from odinfer.search.startpoints import drawn
from odinfer.search.trust_region import follow

Array = NDArray[np.float64]

# A trajectory that leaves more than this share of some state's variance is no estimate of the states.
_UNEXPLAINED = 0.5
# So many of ODIN's starts, at least, make its best minimum credible. If they do not, as many trajectories from anywhere
# take so many steps side by side, unless there are more of them than that.
_AGREE, _ANYWHERE, _STEPS, _MOST = 2, 32, 40, 400
# A trajectory whose residuals exceed the smoother's noise by more than this may be a local optimum, and probably is one
# if they do by more than that, or fall short of it by so much. Then so many random θ are tried, too.
_CONVINCING, _POOR, _LESS, _TRIES = 1.15, 2.0, 0.5, 5
# Growing horizons: starts, steps of integration for each and for all, starts after one that follows the data, the noise
# at least in scales of the states, and the difference up to which two starts lead to one optimum.
_SHOTS, _SHOT_STEPS, _SHOTS_STEPS, _CHANCES, _LEAST_NOISE, _SAME = 20, 5000, 30_000, 3, 1e-3, 0.05


def best_trajectory(minima: Minima, finer: Callable[[], Minima], seed: int) -> Refined | None:
    """The best trajectory that is found, or None.

    Args:
        minima: of the ODIN stage.
        finer: gives those of a second look (`odinfer.Odin.second_look`).
        seed: of random starts.
    """
    engine, problem = minima.engine, minima.engine.problem
    scale, scatter = engine.units.scale, noise_sd(engine.units, engine.hypers)
    best = _best_from(engine, minima.solutions)
    if not _close(best, scatter, _CONVINCING) and (isinstance(engine, Markov) or 2 * engine.mean.size <= MOST_UNKNOWNS):
        other = finer()
        if not isinstance(other.engine, Sparse):
            best = _better(best, _best_from(other.engine, other.solutions))
    if best is not None and (minima.agreeing < _AGREE or not _close(best, scatter, _CONVINCING)):
        best = _better(best, from_anywhere(problem, scale, best, seed))
    if not _close(best, scatter, _POOR):
        # Slopes can be matched best by parameters beyond infinity, whose trajectories lead nowhere.
        drawn = startpoints.draw(problem, 2 * _TRIES, np.random.default_rng([seed, 1]))[:_TRIES]
        best = _better(best, _best_from(engine, minima.solutions[:1], list(drawn)))
    if not _close(best, scatter, _POOR) or not _credible(problem, best, scatter, scale):
        best = _better(best, _shot(engine, minima.solutions, scatter, seed))
    for i, guesses in enumerate(([s.phi for s in minima.solutions], [])):  # and once more from anywhere else
        if best is None or misses(problem, best.sigma, scatter):
            best = _better(best, from_windows(problem, scale, guesses, [seed, i]))
    return None if best is None else pulled_in(problem, scale, best, free_scales(problem))


def misses(problem: Problem, left: Array, noise: Array) -> bool:
    """Whether a trajectory misses most of what some state does: what it leaves (K,), beyond the noise (K,)."""
    y = np.concatenate([e.y for e in problem.data.experiments])
    return bool((left**2 - noise**2 > _UNEXPLAINED * np.nanvar(y, 0)).any())


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
    like = Likelihood(problem, scale)
    return bool(like.signal(found.states(like.t), found.sigma**2, found.phi[None]).max() <= SUSPICIOUS)


def _better(*found: Refined | None) -> Refined | None:
    return min((r for r in found if r is not None), key=lambda r: r.objective, default=None)


def _best_from(engine: Any, solutions: Sequence[Solution], instead: Sequence[Array] = ()) -> Refined | None:
    """The best trajectory reached from any of ODIN's minima, or from around it; with other φ `instead`, if given."""
    best, problem, scale, budget = None, engine.problem, engine.units.scale, Budget(_SHOTS_STEPS)
    for s in solutions:
        x, slope = engine.units.user(s.z), engine.slopes(s)
        guess = paths_through(problem, [(engine.t[b.rows], x[b.rows], slope[b.rows]) for b in engine.blocks])
        for phi in instead or (s.phi, *startpoints.pulled_back(problem, s.phi)):
            found = refine(problem, scale, guess, phi, budget=budget)
            if found is None:
                paths = _integrated(problem, scale, phi, [x[b.rows][0] for b in engine.blocks])
                found = refine(problem, scale, paths, phi, budget=budget) if paths else None
            if found is not None and (best is None or found.objective < best.objective):
                best = found
    return None if best is None else explore(problem, scale, best, budget=budget)


def from_anywhere(problem: Problem, scale: Array, best: Refined, seed: int) -> Refined | None:
    """A better trajectory than the best so far, whose initial values are tried with other parameters; None if none."""
    if not SideBySide.can(problem) or _ANYWHERE * len(problem.data.experiments) > _MOST:
        return None
    solver = SideBySide.of(problem)
    u = solver.like.unknowns
    near = u.join([p.x0 for p in best.paths], best.phi)
    with np.errstate(all="ignore"):
        v = np.vstack([near, drawn(problem, near, _ANYWHERE, np.random.default_rng([seed, 5]))])
        ends = follow(solver, v, rounds=_STEPS)
        i = int(ends.value.argmin())
        paths = solver.paths(ends.v[i]) if i else None
    return None if paths is None else refine(problem, scale, paths, u.phi(ends.v[i]))


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
    drawn = startpoints.anywhere(problem, _SHOTS, np.random.default_rng([seed, 2]))
    each, more = _SHOT_STEPS, len(solutions) + len(drawn)
    for i, phi in enumerate((*(s.phi for s in solutions), *drawn)):
        given = min(each if i else 3 * each, left)  # ODIN's best is worth more than a random start
        budget = Budget(given)
        found = grown(problem, scale, sigma, x0, phi, budget)
        spent = given - max(budget.steps, 0)
        left, more = left - spent, more - 1
        if found is not None and not misses(problem, found.sigma, 0.0 * scale):
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
    try:
        return every_integrated(problem, phi, initial, scale, Budget(_SHOT_STEPS))
    except Exhausted:
        return None
