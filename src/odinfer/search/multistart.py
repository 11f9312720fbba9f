"""The best trajectory without a smoother: from many starts, where states are hidden or are not observed as they are.

Where everything that is estimated has two bounds, generations of starts are followed side by side (generations.py).
Otherwise every start is carried to a maximum of the likelihood by way of growing horizons (shooting.py), one after the
other. The search ends when several starts have led to the best maximum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from odinfer.errors import InputError
from odinfer.gp.residual_signal import SUSPICIOUS
from odinfer.likelihood.batch_likelihood import SideBySide
from odinfer.likelihood.likelihood import Likelihood
from odinfer.likelihood.refinement import Refined, shoot
from odinfer.ode.adaptive_mesh import Budget, Exhausted
from odinfer.problem.problem import Problem
from odinfer.progress import Progress, silent
from odinfer.scaling.dimensional_analysis import free_scales
from odinfer.search.evolutionary import Generations, generations
from odinfer.search.growing_horizon import grown
from odinfer.search.rescaling import pulled_in
from odinfer.search.start_executor import WIDTH, Crew
from odinfer.search.startpoints import boxed, mixed, rough_noise, starts

Array = NDArray[np.float64]

STARTS, ALL_STARTS = 60, 240  # at most; and where the best so far is poor
# So many starts at the best maximum, within this, end the search; so many if it leaves a signal in the residuals. None
# if the signal is so many nats, or the noise so many times what neighbouring values differ by: a steady state can
# attract nearly all starts where the data oscillate.
_AGREE, _AGREE_ANYWAY, _SAME, _POOR, _ROUGHLY = 3, 10, 0.05, 30.0, 2.0
# Hops around the best: how many in a row without a better one, how wide in logs, and the share of its natural size
# below which a parameter is put back to it.
_HOPS, _HOP_WIDTHS, _GONE = 6, (0.5, 1.0, 1.5), 1e-3
_FEWEST, _ENOUGH = 4, 1e-3  # starts in any case; nats that a step must gain on the way
_KNOWN, _NOT_FAR = 200, 15.0  # ends that are remembered, and nats by which they are below the best at most
_TRIED, _LAST_STEPS = 10, 300  # ends, best first, from which a trajectory on a mesh is looked for; its last steps
_STEPS, _ALL_STEPS = 4000, 60_000  # of integration, for one start and for the first of them
# Shares of the observations in the first horizon, in turn: short ones lead past oscillations that are out of phase, the
# whole shows at once what only late data tell.
_FIRST = (0.0, 0.99, 0.0, 0.5)


@dataclass(frozen=True)
class Ways:
    """What became of the starts.

    Attributes:
        ends: the objective each led to, best first; infinite where it led nowhere.
        known: unknowns (n, P) at ends that are not far below the best.
    """

    best: Refined | None
    ends: tuple[float, ...]
    known: Array | None = None

    @property
    def agreeing(self) -> int:
        return sum(end - self.ends[0] < _SAME for end in self.ends) if self.best is not None else 0


@dataclass(frozen=True)
class First:
    """A start that is better than others: initial values (K,) of every experiment and φ (F,), to which so many of some
    starts elsewhere have led."""

    x0: list[Array]
    phi: Array
    starts: int
    agreeing: int


def multistart(
    problem: Problem, seed: int, say: Progress = silent, crew: Crew | None = None, first: First | None = None
) -> Ways:
    """The best trajectory from any start, or none.

    Args:
        crew: who follows the starts, where they are independent; this process, all at once, if not given.
        first: a start that ends the search if it leads to a trajectory that leaves no signal in the data.

    Raises:
        InputError: there is a crew, and starts are followed one after the other.
    """
    if first is not None and (found := _convincing(problem, first)) is not None:
        return Ways(found, (*[found.objective] * first.agreeing, *[np.inf] * (first.starts - first.agreeing)))
    if boxed(problem) and SideBySide.can(problem):
        return _side_by_side(problem, seed, say, crew)
    elif crew is not None:
        raise InputError(
            "workers, cluster and store need starts that are independent: a model from text, and two finite bounds for "
            "everything that is estimated; leave them out, or give bounds"
        )
    best, ends = _one_by_one(problem, seed, say)
    return Ways(best, tuple(sorted(ends)))


def _convincing(problem: Problem, first: First) -> Refined | None:
    """The trajectory that a start leads to, if it follows the data as far as anyone can tell."""
    x0, phi, unknown = first.x0, first.phi, np.full(len(problem.model.states), np.nan)
    if SideBySide.can(problem):
        solver = SideBySide.of(problem)
        v = solver.solve(solver.like.unknowns.join(x0, phi)[None], gauged=True).v[0]
        x0, phi = solver.initial(v), solver.like.unknowns.phi(v)
    try:
        found = shoot(problem, unknown, x0, phi, budget=Budget(_STEPS))
    except Exhausted:
        return None
    if found is None or not found.converged or _poor(problem, found, rough_noise(problem)):
        return None
    return found if signal_left(problem, found) <= SUSPICIOUS else None


def _side_by_side(problem: Problem, seed: int, say: Progress, crew: Crew | None = None) -> Ways:
    """The best trajectory of a problem with bounds for all, from generations of starts, and where these led."""
    sigma, solver = rough_noise(problem), SideBySide.of(problem)

    def good_enough(so_far: Generations) -> bool:
        near = _refined(solver, so_far)
        if near is None:
            return False
        clear = signal_left(problem, near) <= SUSPICIOUS
        return clear or (so_far.agreeing >= _AGREE_ANYWAY and not _poor(problem, near, sigma))

    fresh, rng = mixed(problem, np.random.default_rng([seed, 3])), np.random.default_rng([seed, 4])
    if crew is None:
        for i, found in enumerate(generations(solver, fresh, rng, good_enough)):
            say(f"followed {len(found.value)} starts", 1.0 - 0.7**i)
    else:
        with crew.following(problem, say) as followed:
            *_, found = generations(solver, fresh, rng, good_enough, followed, WIDTH)
    near = _refined(solver, found)
    if near is not None:  # on the meshes at hand, which the steps of the search have made
        unknown, x0 = np.full(len(problem.model.states), np.nan), [p.x0 for p in near.paths]
        near = shoot(problem, unknown, x0, near.phi, _LAST_STEPS, along=near.paths) or near
    order = np.argsort(found.value, kind="stable")[:_KNOWN]
    return Ways(near, tuple(np.sort(found.value).tolist()), found.v[order[found.value[order] < found.best + _NOT_FAR]])


def _refined(solver: SideBySide, found: Generations) -> Refined | None:
    """The best end as a trajectory on a mesh, or the next best one that leads to one."""
    u, unknown = solver.like.unknowns, np.full(len(solver.problem.model.states), np.nan)
    for i in np.argsort(found.value)[:_TRIED]:
        v = found.v[i]
        for paths in (own.paths(v) for own in (solver, solver.finer()) if np.isfinite(found.value[i])):
            if paths is not None:
                near = shoot(solver.problem, unknown, solver.initial(v), u.phi(v), enough=_ENOUGH, along=paths)
                if near is not None:
                    return near
    return None


def _one_by_one(problem: Problem, seed: int, say: Progress) -> tuple[Refined | None, list[float]]:
    """The best trajectory by way of growing horizons, and where the starts led."""
    sigma = rough_noise(problem)
    best: Refined | None = None
    ends: list[float] = []
    left, most = _ALL_STEPS, STARTS
    for i, (x0, phi) in enumerate(starts(problem, ALL_STARTS, np.random.default_rng([seed, 3]))):
        if i >= most or left <= 0:
            if most == ALL_STARTS or best is None or not _poor(problem, best, sigma):
                break
            left, most = left + _ALL_STEPS * (ALL_STARTS // STARTS - 1), ALL_STARTS
        say(f"following start {i + 1}", i / most)
        given = min(_STEPS, left)
        budget = Budget(given)
        first = _FIRST[i % len(_FIRST)]
        found = grown(problem, np.full(len(problem.model.states), np.nan), sigma, x0, phi, budget, first, _ENOUGH)
        left -= given - max(budget.steps, 0)
        ends.append(np.inf if found is None else found.objective)
        if found is not None and (best is None or found.objective < best.objective):
            best = found
        if best is not None and found is not None and found.objective - best.objective < _SAME:
            agree = sum(end - best.objective < _SAME for end in ends)
            if agree >= _AGREE and i + 1 >= _FEWEST:
                clear = signal_left(problem, best) <= SUSPICIOUS
                if clear or (agree >= _AGREE_ANYWAY and not _poor(problem, best, sigma)):
                    break
    if best is not None:
        say("looking around", 0.9)
        best, around = _hopped(problem, best, np.random.default_rng([seed, 4]), Budget(_HOPS * _STEPS // 4))
        ends += around
        unknown = np.full(len(problem.model.states), np.nan)
        best = shoot(problem, unknown, [p.x0 for p in best.paths], best.phi) or best
        better = pulled_in(problem, unknown, best, free_scales(problem))
        if better.objective < best.objective:
            best = better
            ends.append(better.objective)
    return best, ends


def _hopped(problem: Problem, best: Refined, rng: np.random.Generator, budget: Budget) -> tuple[Refined, list[float]]:
    """The best of maxima around one, and where the hops led: a neighbouring one may be better, and rarely met."""
    natural, unknown = free_scales(problem), np.full(len(problem.model.states), np.nan)
    index, free = problem.free_index, problem.model.free_initial
    ends: list[float] = []
    left = _HOPS
    while left > 0:
        left -= 1
        width = _HOP_WIDTHS[left % len(_HOP_WIDTHS)]
        theta = problem.theta(best.phi)
        own = theta[index]
        gone = np.abs(own) < _GONE * natural  # nothing leads back from there
        own = np.where(gone, np.where(own < 0, -natural, natural), own) * np.exp(width * rng.normal(size=len(own)))
        theta[index] = own
        phi = np.clip(problem.phi(theta), *problem.phi_bounds)
        x0 = []
        for e, path in enumerate(best.paths):
            first = path.x0[free] * np.exp(width * rng.normal(size=len(free)))
            x0.append(problem.course(e).initial(problem.theta_of(e, phi)[None], first[None])[0])
        try:
            found = shoot(problem, unknown, x0, phi, budget=budget, enough=_ENOUGH)
        except Exhausted:
            break
        ends.append(np.inf if found is None else found.objective)
        if found is not None and found.objective < best.objective - _SAME:
            best, left = found, _HOPS
    return best, ends


def _poor(problem: Problem, found: Refined, rough: Array) -> bool:
    """Whether a trajectory leaves more than a model that is nearly right would, by a rough idea (M,) of the noise."""
    louder = (found.sigma > _ROUGHLY * rough)[list(problem.estimated_noise)]
    return bool(louder.any()) or signal_left(problem, found) > _POOR


def signal_left(problem: Problem, found: Refined) -> float:
    """The most nats of evidence, of any column, for a signal in what a trajectory leaves of the data."""
    like = Likelihood(problem, np.ones(len(problem.model.states)))
    return float(like.signal(found.states(like.t), found.sigma**2, found.phi[None]).max())
