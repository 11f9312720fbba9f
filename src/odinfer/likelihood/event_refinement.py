"""Maximum likelihood of models whose states trigger events, by forward integration.

An optimum has the form of those on meshes: the steps of the integration are the mesh, and states and sensitivities at
the collocation points are read off the steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.likelihood.batch_likelihood import BatchLikelihood, BatchSolution
from odinfer.likelihood.likelihood import Likelihood
from odinfer.ode.adaptive_mesh import along_steps
from odinfer.ode.breakpoints import Timetable
from odinfer.ode.collocation import C, CollocationPath, Condensed
from odinfer.ode.integrate_batch import integrate_batch
from odinfer.ode.right_hand_side import Field
from odinfer.ode.sensitivities import stage_sensitivities
from odinfer.optimize.arrow_matrix import ArrowMatrix
from odinfer.optimize.levenberg_marquardt import Rule, levenberg_marquardt
from odinfer.problem.condition import Condition
from odinfer.problem.problem import Problem

Array = NDArray[np.float64]

_TOLERANCE, _MOST_STEPS = 1e-7, 20_000  # relative error of a step, and steps of one trajectory
_QUIET = 1e-8  # of the objective: steps that gain less, twice in a row, end a search


class EventOptimum(NamedTuple):
    """A trajectory at a maximum of the likelihood, as in `refinement.TrajectoryOptimum`."""

    phi: Array
    paths: tuple[CollocationPath, ...]
    condensed: tuple[Condensed, ...]
    sigma: Array
    loglik: float
    objective: float
    information: ArrowMatrix
    iterations: int
    converged: bool


@dataclass(frozen=True)
class _Point:
    """Unknowns (P,), their trajectories, and the objective there."""

    v: Array
    solved: BatchSolution
    value: float


def maximise_with_events(
    problem: Problem, x0: Sequence[Array], phi: Array, max_iterations: int, enough: float = 0.0
) -> EventOptimum | None:
    """Maximise the likelihood by Levenberg–Marquardt from initial values (K,) of every experiment and φ (F,).

    Args:
        enough: nats that a step must gain for the search to go on.

    Returns:
        None if the first trajectory ends before the data do.
    """
    solver = BatchLikelihood.of(problem, _TOLERANCE, _MOST_STEPS)
    likelihood, quiet = solver.likelihood, 0
    at: _Point | None = None
    equations: tuple[ArrowMatrix, Array] | None = None

    def point(v: Array) -> _Point:
        solved = solver.solve(v[None])
        return _Point(v, solved, float(solved.worth.value[0]))

    def propose(here: _Point, damping: float) -> tuple[_Point, bool]:
        nonlocal at, equations
        if at is not here or equations is None:
            at, equations = here, _normal(solver, here)
        move = likelihood.step(here.v[None], *equations, np.array([damping]))[0][0]
        trial = point(here.v + move)
        return trial, trial.value <= here.value

    def settles(better: bool, gain: float, here: _Point, damping: float) -> bool:
        nonlocal quiet
        if better:
            quiet = quiet + 1 if gain < max(_QUIET * (1.0 + abs(here.value)), enough) else 0
        return bool(better) and quiet >= 2

    start = point(likelihood.unknowns.join(x0, phi))
    if not np.isfinite(start.value):
        return None
    ended = levenberg_marquardt(start, propose, settles, Rule(up=6.0, most=1e9, steps=max_iterations))
    best, worth = ended.point, ended.point.solved.worth
    found = trajectories(problem, best.v)
    if found is None:
        return None
    return EventOptimum(
        likelihood.unknowns.phi(best.v), *found, np.sqrt(worth.noise[0]), float(worth.loglik[0]), best.value,
        _normal(solver, best)[0], ended.steps + int(ended.stuck), bool(ended.settled),
    )  # fmt: skip


def _normal(solver: BatchLikelihood, at: _Point) -> tuple[ArrowMatrix, Array]:
    """Gauss–Newton Hessian, alone in its batch, and gradient (1, P)."""
    states, maps = solver.linearised(at.solved, np.zeros(1, np.int64))
    return solver.likelihood.normal(states, maps, at.solved.worth.noise, solver.likelihood.unknowns.phi(at.v[None]))


def trajectories(
    problem: Problem, v: Array, times: Sequence[Array] = ()
) -> tuple[tuple[CollocationPath, ...], tuple[Condensed, ...]] | None:
    """The trajectories of every experiment at unknowns v (P,) with their sensitivities; None if one ends early.

    Args:
        times: at which steps end, too, per experiment, and the last of which trajectories go on to.
    """
    u = Likelihood(problem, np.ones(len(problem.model.states))).unknowns
    phi, paths, lins = u.phi(v), [], []
    for e in range(u.experiments):
        condition = _longer(problem.condition(e), times[e]) if times else problem.condition(e)
        theta = problem.theta_of(e, phi)
        x0 = condition.initial(theta[None], u.x0(v, e)[None])
        index = problem.own_index(e)
        field = Field(Timetable.of([condition]), index)
        one = np.zeros(1, np.int64)
        found = integrate_batch(field, one, theta[None], x0, _TOLERANCE, _MOST_STEPS, halting=True)
        if not np.isfinite(found.x).all():
            return None
        first, K = len(u.initial), x0.shape[1]
        S0 = np.zeros((K, first + len(index)))
        S0[u.initial, np.arange(first)] = 1.0
        S0[:, first:] = condition.initial_slopes(theta[None])[0][:, index]
        starts, stages = stage_sensitivities(field, found, theta, S0, C)
        slope = np.append(np.append(np.ones(first), problem.slope(phi[None])[0, problem.own_phi(e)]), 0.0)
        starts, stages = (np.concatenate([S, np.zeros((*S.shape[:-1], 1))], -1) * slope for S in (starts, stages))
        nodes = np.concatenate([np.append(S0, np.zeros((K, 1)), 1)[None] * slope, stages[:, -1]])
        paths.append(along_steps(problem, e, x0[0], found, 0))
        lins.append(Condensed(stages, nodes, starts, 0.0))
    return tuple(paths), tuple(lins)


def _longer(condition: Condition, times: Array) -> Condition:
    """An experiment with other times after its own, at which nothing is observed."""
    own = condition.experiment
    later = np.unique(times[times > own.t[-1]])
    nothing = np.full((len(later), own.y.shape[1]), np.nan)
    sd, limit = (
        None if a is None else np.concatenate([a, np.zeros_like(nothing, a.dtype)]) for a in (own.sd, own.limit)
    )
    return Condition.of(
        condition.model, replace(own, t=np.append(own.t, later), y=np.concatenate([own.y, nothing]), sd=sd, limit=limit)
    )
