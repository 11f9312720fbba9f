"""Maximise the likelihood of trajectories from a nearby guess: constrained Gauss–Newton on collocation equations.

Unknowns are θ and the initial values of every experiment; the trajectory between them is a collocation path
(collocation.py). A first phase moves path and unknowns together, so that the estimate of the states is used and
no simulation from a poor θ is needed; the second stays on solutions of the equations and accepts a step only if
the likelihood improves. Noise levels that are not given are profiled out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from odinfer.gp.curves import Hermite
from odinfer.gp.standardisation import Units
from odinfer.likelihood.likelihood import Likelihood, LikelihoodValues
from odinfer.ode.adaptive_mesh import CAREFUL, Budget, BudgetExhausted, integrate_experiments
from odinfer.ode.collocation import MANY, CollocationPath, Condensed, condense_paths, mesh_for, split
from odinfer.optimize.arrow_matrix import ArrowMatrix
from odinfer.optimize.levenberg_marquardt import Rule, levenberg_marquardt
from odinfer.problem.problem import Problem

Array = NDArray[np.float64]

_FEASIBLE = 1e-9  # violation of the collocation equations, in units of the states' scales
ACCURATE = 1e-6  # defect between stages, same units
# Steps after which a search that has not ended crawls along a curved valley; how far ahead it looks, as a share of a
# step; and how large a correction may be, as a share of it.
_CRAWLING, _AHEAD, _BEND = 15, 0.1, 0.75
_FINER = 3  # times at most that a mesh is made finer
_STEPS = 3000  # of integration, where a mesh was too coarse
_GAIN = 1e-11  # share of the objective that a step gains, below which it gains little
_ROUNDING = 1e-13  # share of the objective that a step promises, below which it promises nothing
_ROUGH = 1e-3  # nats that a step must gain as long as the mesh may still become finer
_USUAL_STEPS, _FEW_TIMES = 10, 20  # of a mesh per observation time, where there are more than a few of these
_WORSE, _NO_MATTER = 30.0, 1e-4  # a mesh suits as long as defects are no more than so many times as large, or so small


@dataclass(frozen=True)
class TrajectoryOptimum:
    """A trajectory at a maximum of the likelihood.

    Attributes:
        phi: free parameters (F,).
        paths: the trajectory of each experiment.
        condensed: its sensitivities.
        sigma: noise standard deviations (M,).
        loglik: log-likelihood at the maximum over the noise.
        objective: −loglik − log p(θ).
        information: Gauss–Newton information of the unknowns.
        iterations, converged: of the second phase.
    """

    phi: Array
    paths: tuple[CollocationPath, ...]
    condensed: tuple[Condensed, ...]
    sigma: Array
    loglik: float
    objective: float
    information: ArrowMatrix
    iterations: int
    converged: bool

    @property
    def effort(self) -> float:
        """What this trajectory costs relative to usual ones, 1 at least: stiff ones have many steps per observation."""
        times = (max(len(e.t), _FEW_TIMES) for e in self.paths[0].problem.data.experiments)
        return max(1.0, sum(len(p.mesh) for p in self.paths) / (_USUAL_STEPS * sum(times)))

    def states(self, t: Sequence[Array]) -> list[Array]:
        """States (1, N, K) of every experiment at times (N,) inside its mesh."""
        return [p.states(times)[None] for p, times in zip(self.paths, t, strict=True)]


@dataclass(frozen=True)
class _Point:
    """A feasible trajectory with everything the next step needs; `value` is its objective."""

    phi: Array
    paths: tuple[CollocationPath, ...]
    condensed: tuple[Condensed, ...]
    noise: Array  # (1, K)
    loglik: float
    value: float
    defects: tuple[Array, ...] = ()  # of the intervals of a mesh that was made for this trajectory


def paths_through(
    problem: Problem, curves: Sequence[tuple[Array, Array, Array]], parts: int = 1
) -> tuple[CollocationPath, ...]:
    """First guesses from states and slopes: per experiment times (N,), x (N, K), dx/dt (N, K)."""
    paths = []
    for e, (t, x, slope) in enumerate(curves):
        seen = problem.condition(e).times
        if len(seen) == 1:  # an experiment of one time has an initial value and no path
            seen = t = np.array([t[0], t[0] + 1e-9 * (1.0 + abs(t[0]))])
            x, slope = np.repeat(x, 2, 0), np.repeat(0.0 * slope, 2, 0)
        spline = Hermite(t, x, slope)
        corners = problem.condition(e).between(seen[0], seen[-1])
        if len(seen) > MANY:
            mesh = mesh_for(spline, seen, corners)
            mesh = split(mesh, np.full(len(mesh) - 1, parts))
        else:
            mesh = np.append(np.linspace(seen[:-1], seen[1:], parts, endpoint=False, axis=1).ravel(), seen[-1])
            mesh = np.union1d(mesh, corners)
        paths.append(CollocationPath.through(problem, e, mesh, spline))
    return tuple(paths)


def with_slopes(
    problem: Problem, theta: Array, states: Sequence[tuple[Array, Array]]
) -> list[tuple[Array, Array, Array]]:
    """Times (N,) and states (N, K) of every experiment together with the slopes of the model at θ (P,)."""
    return [(t, x, problem.condition(e).linearise(t, x, theta)[0]) for e, (t, x) in enumerate(states)]


def refine(
    problem: Problem,
    scale: Array,
    paths: Sequence[CollocationPath],
    phi: Array,
    max_iterations: int = 100,
    accuracy: float = ACCURATE,
    budget: Budget | None = None,
) -> TrajectoryOptimum | None:
    """Maximise the likelihood from a guess of path and parameters; None if no trajectory could be reached.

    The mesh is made finer until the trajectory is accurate, in units of the states' scales.

    Args:
        budget: of the search that this is part of; None is returned where it is spent, too.
    """
    try:
        return _refine(Likelihood(problem, scale), paths, phi, max_iterations, accuracy, budget)
    except BudgetExhausted:
        return None


def _refine(
    likelihood: Likelihood, paths: Sequence[CollocationPath], phi: Array, max_iterations: int, accuracy: float,
    budget: Budget | None,
) -> TrajectoryOptimum | None:  # fmt: skip
    point = _approach(likelihood, tuple(paths), phi)
    if point is None:
        return None
    for _ in range(_FINER + 1):  # the mesh is judged where the optimisation ends, roughly at first
        point, iterations, converged = _maximise(likelihood, point, max_iterations, budget, _ROUGH)
        if explains_nothing(likelihood, point.noise[0]) or point.defects:
            break
        finer = [path.refined(point.phi, likelihood.scale, accuracy) for path in point.paths]
        if all(f is None for f in finer):
            break
        better = _restore(likelihood, tuple(f or p for f, p in zip(finer, point.paths, strict=True)), point.phi)
        if better is None:  # no trajectory after all, on a mesh that was too coarse to tell; there may be one nearby
            better = _integrated(likelihood, [p.x0 for p in point.paths], point.phi, budget or Budget(_STEPS))
        if better is None:
            return None
        point = better
    point, more, converged = _maximise(likelihood, point, max(max_iterations - iterations, 0), budget)
    iterations += more
    return _finish(likelihood, point, iterations, converged)


def maximise_from_initial(
    problem: Problem,
    scale: Array,
    x0: Sequence[Array],
    phi: Array,
    max_iterations: int = 100,
    budget: Budget | None = None,
    enough: float = 0.0,
    along: Sequence[CollocationPath] = (),
) -> TrajectoryOptimum | None:
    """The same from initial values (K,) of every experiment, by integration; None if a trajectory ends too early.

    Steps are tried on the mesh at hand, and integrated anew where it does not suit them any more, as when a fast change
    comes sooner or later than before.

    Args:
        enough: nats that a step must gain for the search to go on.
        along: the trajectories, if they have been integrated already.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # parameters may leave the finite numbers on their way
        if problem.model.declarations.triggers:
            from odinfer.likelihood.event_refinement import maximise_with_events

            best = maximise_with_events(problem, x0, phi, max_iterations, enough)
            return None if best is None else TrajectoryOptimum(*best)
        found = _near_paths(problem, along, phi, scale) if along else _from_initial(problem, x0, phi, scale, budget)
        if found is None:
            return None
        likelihood, start = found
        point, iterations, converged = _maximise(likelihood, start, max_iterations, budget, enough)
        for _ in range(
            _FINER if enough == 0 and not problem.fully_observed_gaussian else 0
        ):  # on the way no mesh need be fine
            finer = [path.refined(point.phi, likelihood.scale, ACCURATE) for path in point.paths]
            if all(f is None for f in finer):
                break
            better = _on_own_meshes(
                likelihood, tuple(f or p for f, p in zip(finer, point.paths, strict=True)), point.phi
            )
            if better is None:
                break
            point, more, converged = _maximise(likelihood, better, max_iterations, budget)
            iterations += more
        return _finish(likelihood, point, iterations, converged)


def scales_along(paths: Sequence[CollocationPath], known: Array) -> Array:
    """Scales (K,) of the states: those that are known, or what they come to on paths."""
    if not np.isnan(known).any():
        return known
    sizes = np.max([np.abs(p.Z).max((0, 1)) for p in paths], 0)
    sizes = np.maximum(sizes, np.max([np.abs(p.x0) for p in paths], 0))
    return np.where(np.isnan(known), np.maximum(sizes, 1e-12 * max(float(sizes.max()), 1e-280)), known)


def _finish(likelihood: Likelihood, point: _Point, iterations: int, converged: bool) -> TrajectoryOptimum:
    H, _ = _normal(likelihood, point.paths, point.condensed, point.phi, point.noise)
    sigma = np.sqrt(point.noise[0])
    return TrajectoryOptimum(
        point.phi, point.paths, point.condensed, sigma, point.loglik, point.value, H, iterations, converged
    )


def refine_from(problem: Problem, theta: Array, states: Sequence[tuple[Array, Array]]) -> TrajectoryOptimum | None:
    """Maximise the likelihood from parameters (P,) and states: per experiment times (N,) and x (N, K)."""
    paths = paths_through(problem, with_slopes(problem, theta, states), 2)
    return refine(problem, Units.of(problem).scale, paths, problem.phi(theta))


def _condense(
    likelihood: Likelihood, paths: Sequence[CollocationPath], phi: Array
) -> tuple[tuple[Condensed, ...], float]:
    lins = condense_paths(likelihood.problem, paths, phi, likelihood.scale)
    return lins, max(lin.violation for lin in lins)


def _pack(likelihood: Likelihood, paths: Sequence[CollocationPath], phi: Array) -> Array:
    return likelihood.unknowns.join([p.x0 for p in paths], phi)


def _move(
    likelihood: Likelihood, paths: Sequence[CollocationPath], lins: Sequence[Condensed], move: Array, phi: Array
) -> tuple[CollocationPath, ...]:
    """The paths after a first-order step (P,) of the unknowns from φ (F,), Newton correction included."""
    u = likelihood.unknowns
    pairs = enumerate(zip(paths, lins, strict=True))
    return tuple(p.move(lin, move[u.own(e)], phi + u.phi(move)) for e, (p, lin) in pairs)


def _evaluate(likelihood: Likelihood, paths: Sequence[CollocationPath], phi: Array) -> LikelihoodValues:
    seen = likelihood.on([p.mesh for p in paths])
    return seen.likelihood.evaluate(seen.states(paths), phi[None])


def _normal(
    likelihood: Likelihood, paths: Sequence[CollocationPath], lins: Sequence[Condensed], phi: Array, noise: Array
) -> tuple[ArrowMatrix, Array]:
    """Gauss–Newton Hessian, alone in its batch, and gradient (P,), about the paths with their Newton correction."""
    seen = likelihood.on([p.mesh for p in paths])
    maps = seen.maps(lins)
    x = [own + m[..., -1] for own, m in zip(seen.states(paths), maps, strict=True)]
    H, g = seen.likelihood.normal(x, [m[..., :-1] for m in maps], noise, phi[None])
    return H, g[0]


def _step(likelihood: Likelihood, at: Array, H: ArrowMatrix, g: Array, damping: float) -> tuple[Array, float]:
    """A step (P,), and by how much the objective should fall."""
    move, fall = likelihood.step(at[None], H, g[None], np.array([damping]))
    return move[0], float(fall[0])


def _restore(likelihood: Likelihood, paths: tuple[CollocationPath, ...], phi: Array, most: int = 12) -> _Point | None:
    """Newton on the collocation equations at fixed x0 and φ: from a nearby path to a trajectory."""
    previous, still = np.inf, np.zeros(likelihood.unknowns.size)
    for _ in range(most):
        lins, violation = _condense(likelihood, paths, phi)
        if violation <= _FEASIBLE:
            worth = _evaluate(likelihood, paths, phi)
            point = _Point(phi, paths, lins, worth.noise, float(worth.loglik[0]), float(worth.value[0]))
            return point if np.isfinite(point.value) else None
        if not np.isfinite(violation) or violation > 1e6 or violation > 100.0 * previous:
            return None
        previous = violation
        paths = _move(likelihood, paths, lins, still, phi)
    return None


def _integrated(likelihood: Likelihood, x0: Sequence[Array], phi: Array, budget: Budget | None) -> _Point | None:
    """The trajectory from initial values, on a mesh of its own."""
    found = _from_initial(likelihood.problem, x0, phi, likelihood.scale, budget, likelihood)
    return None if found is None else found[1]


def _near_paths(
    problem: Problem, paths: Sequence[CollocationPath], phi: Array, scale: Array
) -> tuple[Likelihood, _Point] | None:
    """The trajectory near paths that were integrated elsewhere, with its likelihood."""
    likelihood = Likelihood(problem, scales_along(paths, scale))
    point = _on_own_meshes(likelihood, tuple(paths), phi)
    return None if point is None else (likelihood, point)


def _from_initial(
    problem: Problem,
    x0: Sequence[Array],
    phi: Array,
    scale: Array,
    budget: Budget | None,
    likelihood: Likelihood | None = None,
) -> tuple[Likelihood, _Point] | None:
    """The same with its likelihood, which is made here if scales were not known (NaN) before.

    Where something fast begins suddenly, a path that was integrated roughly can be too far from the trajectory on its
    own mesh: it is late by more than the change takes. A more accurate one is not.
    """
    for tolerance in (None, CAREFUL):
        paths = integrate_experiments(problem, phi, x0, scale, budget, tolerance)
        if paths is None:
            return None
        own = likelihood or Likelihood(problem, scales_along(paths, scale))
        point = _on_own_meshes(own, paths, phi)
        if point is not None:
            return own, point
    return None


def _on_own_meshes(likelihood: Likelihood, paths: tuple[CollocationPath, ...], phi: Array) -> _Point | None:
    """The trajectory on the meshes of integrated paths, which were made for it.

    One Newton step is always taken: states that start from almost nothing have errors that are small on their scale and
    grow with them.
    """
    lins, violation = _condense(likelihood, paths, phi)
    if np.isfinite(violation):
        paths = _move(likelihood, paths, lins, np.zeros(likelihood.unknowns.size), phi)
    point = _restore(likelihood, paths, phi)
    return None if point is None else replace(point, defects=_defects(likelihood, point))


def _defects(likelihood: Likelihood, point: _Point) -> tuple[Array, ...]:
    return tuple(p.defects(point.phi, likelihood.scale) for p in point.paths)


def _suits(likelihood: Likelihood, trial: _Point, made: Sequence[Array]) -> bool:
    """Whether a mesh that left defects `made` when it was made still suits a trajectory."""
    return all((d <= _WORSE * m + _NO_MATTER).all() for d, m in zip(_defects(likelihood, trial), made, strict=True))


def explains_nothing(likelihood: Likelihood, variance: Array) -> bool:
    """Whether a trajectory leaves as much (K,) of some state as its mean would: nothing to be more accurate about."""
    if not likelihood.problem.fully_observed_gaussian:
        return False
    return bool((variance > np.nanvar(np.concatenate([y[0] for y in likelihood.y]), 0)).any())


def _approach(likelihood: Likelihood, paths: tuple[CollocationPath, ...], phi: Array, most: int = 15) -> _Point | None:
    """Move path, initial values and parameters together until the path is a trajectory."""
    start = (paths, phi)
    lins, violation = _condense(likelihood, paths, phi)
    for _ in range(most):
        if not np.isfinite(violation):
            break
        if violation <= 1e-4:
            break
        equations = _normal(likelihood, paths, lins, phi, _evaluate(likelihood, paths, phi).noise)
        move, _ = _step(likelihood, _pack(likelihood, paths, phi), *equations, 1e-4)
        full = _move(likelihood, paths, lins, move, phi)
        for share in (1.0, 0.5, 0.25, 0.1):  # of the whole step, Newton correction included
            trial = tuple(p.towards(q, share) for p, q in zip(paths, full, strict=True))
            phi_new = phi + share * likelihood.unknowns.phi(move)
            lins_new, violation_new = _condense(likelihood, trial, phi_new)
            if violation_new <= (1.0 - 0.3 * share) * violation:
                break
        else:  # no part of the step leads nearer to a trajectory; Newton at fixed unknowns does
            break
        paths, phi, lins, violation = trial, phi_new, lins_new, violation_new
    return _restore(likelihood, paths, phi) or _restore(likelihood, *start)


def _bent(likelihood: Likelihood, point: _Point, at: Array, H: ArrowMatrix, move: Array, damping: float) -> Array:
    """A step (P,) that follows a curved valley: with the second-order change of the states along the first-order one.

    Trajectories a share h of the way on tell the second derivative of the states along the step; the correction undoes
    what it would do to the residuals (geodesic acceleration).
    """
    h = _AHEAD
    paths = _move(likelihood, point.paths, point.condensed, h * move, point.phi)
    ahead = _restore(likelihood, paths, point.phi + h * likelihood.unknowns.phi(move))
    if ahead is None:
        return move
    seen, phi = likelihood.on([p.mesh for p in point.paths]), point.phi[None]
    x, S = seen.states(point.paths), [m[..., :-1] for m in seen.maps(point.condensed)]
    bend = []
    for e, (here, there, maps) in enumerate(zip(x, seen.states(ahead.paths), S, strict=True)):
        bend.append((2.0 / h) * ((there - here) / h - maps @ move[likelihood.unknowns.own(e)]))
    curved, plain = (
        seen.likelihood.normal([own + shift * b for own, b in zip(x, bend, strict=True)], S, point.noise, phi)[1][0]
        for shift in (1.0, 0.0)
    )
    second = 0.5 * _step(likelihood, at, H, curved - plain, damping)[0]
    size = np.sqrt(np.maximum(H.diagonal[0], 1e-300))
    small = np.abs(second * size).max(initial=0.0) <= _BEND * np.abs(move * size).max(initial=0.0)
    bent = move + second
    return np.clip(at + bent, likelihood.unknowns.low, likelihood.unknowns.high) - at if small else move


def _maximise(
    likelihood: Likelihood, start: _Point, max_iterations: int, budget: Budget | None = None, enough: float = 0.0
) -> tuple[_Point, int, bool]:
    """Levenberg–Marquardt over trajectories, accepted on the objective."""
    at, equations, quiet, tries, promised = None, None, 0, 0, np.inf

    def propose(point: _Point, damping: float) -> tuple[_Point, bool]:
        nonlocal at, equations, tries, promised
        tries += 1
        if budget is not None:  # a try on the mesh at hand costs about as much as integrating over a tenth of it
            budget.spend(sum(len(p.mesh) for p in point.paths) // 10)
        unknowns, first = _pack(likelihood, point.paths, point.phi), at is not point
        if first or equations is None:
            at, equations = point, _normal(likelihood, point.paths, point.condensed, point.phi, point.noise)
        move, fall = _step(likelihood, unknowns, *equations, damping)
        if first:
            promised = fall
        if tries > _CRAWLING:
            move = _bent(likelihood, point, unknowns, equations[0], move, damping)
        moved = _move(likelihood, point.paths, point.condensed, move, point.phi)
        phi = point.phi + likelihood.unknowns.phi(move)
        trial = _restore(likelihood, moved, phi)
        if point.defects:
            if trial is not None and _suits(likelihood, trial, point.defects):
                trial = replace(trial, defects=point.defects)
            else:
                trial = _integrated(likelihood, [p.x0 for p in moved], phi, budget)
        return (point, False) if trial is None else (trial, trial.value <= point.value)

    def settles(better: bool, gain: float, point: _Point, damping: float) -> bool:
        nonlocal quiet
        if better:
            quiet = quiet + 1 if gain < max(_GAIN * (1.0 + abs(point.value)), enough) else 0
        # Where a step promises nothing, rounding decides whether it is better.
        return (bool(better) and quiet >= 2) or promised < _ROUNDING * (1.0 + abs(point.value))

    ended = levenberg_marquardt(start, propose, settles, Rule(up=6.0, most=1e9, steps=max_iterations))
    return ended.point, ended.steps + int(ended.stuck), bool(ended.settled)
