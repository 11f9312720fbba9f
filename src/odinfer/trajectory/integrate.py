"""Trajectories by integration forward in time, with steps that follow what happens: for stiff and bursting systems.

SciPy's implicit Radau method finds the steps; they become the mesh of a collocation path (collocation.py), whose
equations are then solved exactly. So a trajectory that was integrated has the sensitivities of any other.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from odinfer.problem.problem import Problem
from odinfer.trajectory.collocation import CollocationPath

Array = NDArray[np.float64]

TOLERANCE = 1e-5  # of the integration, relative; the collocation equations on its mesh are more accurate than that
_MOST_STEPS = 3000  # of one trajectory


class Exhausted(Exception):
    """More steps were needed than a search was given."""


@dataclass
class Budget:
    """How many steps a search may still take: hopeless ones end, however long one step takes."""

    steps: int

    def spend(self, steps: int = 1) -> None:
        self.steps -= steps
        if self.steps < 0:
            raise Exhausted


class _Stopped(Exception):
    """The field left the finite numbers."""


def integrated(
    problem: Problem,
    experiment: int,
    theta: Array,
    x0: Array,
    scale: Array,
    budget: Budget | None = None,
    tolerance: float = TOLERANCE,
) -> CollocationPath | None:
    """The trajectory from x0 (K,) at the first time of an experiment to its last one; None if it ends before.

    Args:
        theta: parameters (P,).
        scale: of the states (K,), for the absolute accuracy.
        budget: of the search that this is part of.

    Raises:
        Exhausted: the budget is spent.
    """
    from scipy.integrate import OdeSolution, Radau

    t = problem.data.experiments[experiment].t
    if len(t) == 1:
        t = np.array([t[0], t[0] + 1e-9 * (1.0 + abs(t[0]))])
    corners = problem.corners(experiment)
    stops = np.union1d(t[[0, -1]], corners[(corners > t[0]) & (corners < t[-1])])
    model, pieces = problem.model, []
    steps = itertools.count(1)

    def field(now: float, x: Array) -> Array:
        at = np.array([now])
        f = model.evaluate(at, x[None], theta, problem.inputs_at(experiment, at))[0]
        if not np.isfinite(f).all():
            raise _Stopped
        return np.asarray(f)

    def jacobian(now: float, x: Array) -> Array:
        at = np.array([now])
        fx = model.linearise(at, x[None], theta, problem.inputs_at(experiment, at))[1][0]
        if not np.isfinite(fx).all():
            raise _Stopped
        return np.asarray(fx)

    x = x0
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # of steps that are tried and not taken
            for a, b in itertools.pairwise(stops):
                solver = Radau(field, a, x, b, rtol=tolerance, atol=1e-2 * tolerance * scale, jac=jacobian)
                while solver.status == "running" and next(steps) <= _MOST_STEPS:
                    if budget is not None:
                        budget.spend()
                    solver.step()
                    if solver.status != "failed":
                        pieces.append(solver.dense_output())
                if solver.status != "finished":
                    return None
                x = solver.y
    except (_Stopped, ValueError, np.linalg.LinAlgError):
        return None
    ends = np.array([t[0], *(p.t for p in pieces)])
    curve = OdeSolution(ends, pieces)
    mesh = np.union1d(ends, t)
    apart = np.diff(mesh, prepend=-np.inf) > 1e-13 * np.abs(mesh).max()
    mesh = mesh[apart | np.isin(mesh, t)]
    path = CollocationPath.through(problem, experiment, mesh, lambda at: curve(at).T)
    return path if np.isfinite(path.Z).all() else None


def every_integrated(
    problem: Problem, theta: Array, x0: Sequence[Array], scale: Array, budget: Budget | None = None
) -> tuple[CollocationPath, ...] | None:
    """The trajectories of all experiments from their initial values (K,); None if any of them ends before its data."""
    paths = []
    for e, own in enumerate(x0):
        path = integrated(problem, e, theta, own, scale, budget)
        if path is None:
            return None
        paths.append(path)
    return tuple(paths)
