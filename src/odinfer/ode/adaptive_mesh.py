"""Integrate a trajectory forward in time to obtain a mesh for collocation, for stiff systems.

The steps are those of the compiled Rosenbrock method for models from text (integrate_batch.py), or of SciPy's Radau,
which is slower. They become the mesh of a collocation path (collocation.py), whose equations are then solved exactly,
so that an integrated trajectory has the sensitivities of any other.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from odinfer.model.differentiation import TextField
from odinfer.ode.breakpoints import Timetable
from odinfer.ode.collocation import MANY, C, CollocationPath
from odinfer.ode.right_hand_side import Field
from odinfer.ode.tolerance import absolute_tolerance
from odinfer.problem.condition import Condition
from odinfer.problem.problem import Problem

if TYPE_CHECKING:
    from odinfer.ode.integrate_batch import BatchTrajectories

Array = NDArray[np.float64]

# Of the integration, relative, and where it is done with care; the collocation equations on its mesh are more accurate.
_TOLERANCE, CAREFUL = 1e-5, 1e-6
_MOST_STEPS = 3000  # of one trajectory


class BudgetExhausted(Exception):
    """More steps were needed than a search was given."""


@dataclass
class Budget:
    """How many steps a search may still take: hopeless ones end, however long one step takes."""

    steps: int

    def spend(self, steps: int = 1) -> None:
        self.steps -= steps
        if self.steps < 0:
            raise BudgetExhausted


class _Stopped(Exception):
    """The field left the finite numbers."""


def integrated(
    problem: Problem,
    experiment: int,
    theta: Array,
    x0: Array,
    scale: Array,
    budget: Budget | None = None,
    tolerance: float | None = None,
    times: Array | None = None,
) -> CollocationPath | None:
    """The trajectory from x0 (K,) at the start of an experiment to its last time; None if it ends before.

    Args:
        theta: the model's parameters (P,) in this experiment.
        scale: of the states (K,), which limits the absolute tolerance; NaN where it is not known.
        budget: of the search that this is part of.
        tolerance: of Radau's method; without one, by the compiled method if possible.
        times: other ones to start at, to pass, and to end at; they are points of the mesh, as the experiment's own are
            where these are not many.

    Raises:
        BudgetExhausted: the budget is spent.
    """
    from scipy.integrate import OdeSolution, Radau

    condition = problem.condition(experiment)
    t = condition.times if times is None else times
    if len(t) == 1:
        t = np.array([t[0], t[0] + 1e-9 * (1.0 + abs(t[0]))])
    stops = np.union1d(t[[0, -1]], condition.between(t[0], t[-1]))
    if times is None and len(t) > MANY:
        t = t[[0, -1]]
    if (
        tolerance is None
        and times is None
        and len(condition.times) > 1
        and isinstance(problem.model.derivatives, TextField)
    ):
        return _compiled(problem, experiment, theta, x0, budget)
    tolerance = tolerance or _TOLERANCE
    pieces, jumped, steps = [], {}, itertools.count(1)

    def after(now: float, x: Array) -> Array:
        for jump in (j for j in condition.jumps if j.time == now):
            x = jumped[now] = condition.jumped(jump, x[None], theta[None])[0][0]
        return x

    x = x0
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # of steps that are tried and not taken
            for a, b in itertools.pairwise(stops):
                field, jacobian = _smooth_field(condition, theta, a, b)
                x = after(a, x)
                atol = np.fmin(absolute_tolerance(x, field(a, x), b - a, tolerance), 1e-2 * tolerance * scale)
                solver = Radau(field, a, x, b, rtol=tolerance, atol=atol, jac=jacobian)
                while solver.status == "running" and next(steps) <= _MOST_STEPS:
                    if budget is not None:
                        budget.spend()
                    solver.step()
                    if solver.status != "failed":
                        pieces.append(solver.dense_output())
                        reached = 1e-2 * tolerance * np.fmin(np.abs(solver.y), scale)
                        solver.atol = np.maximum(solver.atol, reached)
                if solver.status != "finished":
                    return None
                x = solver.y
    except (_Stopped, ValueError, np.linalg.LinAlgError):
        return None
    ends = np.array([t[0], *(p.t for p in pieces)])
    curve = OdeSolution(ends, pieces)
    mesh = np.union1d(ends, t)
    apart = np.diff(mesh, prepend=-np.inf) > 1e-13 * np.abs(mesh).max()
    mesh = mesh[apart | np.isin(mesh, stops) | np.isin(mesh, t)]
    path = replace(CollocationPath.through(problem, experiment, mesh, lambda at: curve(at).T), x0=x0)
    if path.starts is not None:
        for now, own in jumped.items():
            path.starts[np.searchsorted(mesh, now)] = own
    return path if np.isfinite(path.Z).all() else None


def _compiled(
    problem: Problem, experiment: int, theta: Array, x0: Array, budget: Budget | None
) -> CollocationPath | None:
    """The same by a compiled method, from the start of an experiment to its last time."""
    from odinfer.ode.integrate_batch import integrate_batch

    condition = problem.condition(experiment)
    field, most = Field(Timetable.of([condition]), np.empty(0, np.int64)), _MOST_STEPS
    if budget is not None:
        most = min(most, budget.steps + 1)
    halting = len(condition.times) <= MANY
    found = integrate_batch(field, np.zeros(1, np.int64), theta[None], x0[None], _TOLERANCE, most, halting)
    if budget is not None:
        budget.spend(int(found.tries[0]))
    if not np.isfinite(found.x[0]).all():
        return None
    return along_steps(problem, experiment, x0, found, 0)


def along_steps(
    problem: Problem, experiment: int, x0: Array, trajectories: BatchTrajectories, who: int
) -> CollocationPath:
    """A path on the mesh of the steps of one trajectory of a march, which went all the way."""
    from odinfer.ode.rodas import inside

    own = [(s, s.who == who) for s in trajectories.steps if (s.who == who).any()]
    t, until, x, end, bend = (
        np.concatenate([getattr(s, name)[here] for s, here in own]) for name in ("t", "until", "x", "end", "bend")
    )
    Z = np.stack([inside(share, x, end, bend) for share in C], 1)
    starts = x if problem.condition(experiment).jumps or problem.model.declarations.triggers else None
    return CollocationPath(problem, experiment, np.append(t, until[-1]), x0, Z, starts)


def _smooth_field(
    condition: Condition, theta: Array, a: float, b: float
) -> tuple[Callable[[float, Array], Array], Callable[[float, Array], Array]]:
    """The field and its Jacobian as a solver asks for them between two corners."""

    def finite(values: Array) -> Array:
        if not np.isfinite(values).all():
            raise _Stopped
        return np.asarray(values)

    def field(now: float, x: Array) -> Array:
        return finite(condition.evaluate(condition.inside(a, b, np.array([now])), x[None], theta)[0])

    def jacobian(now: float, x: Array) -> Array:
        return finite(condition.linearise(condition.inside(a, b, np.array([now])), x[None], theta)[1][0])

    return field, jacobian


def integrate_experiments(
    problem: Problem, phi: Array, x0: Sequence[Array], scale: Array, budget: Budget | None = None,
    tolerance: float | None = None,
) -> tuple[CollocationPath, ...] | None:  # fmt: skip
    """The trajectories at φ (F,) of all experiments from initial values (K,); None if any of them ends too early."""
    paths = []
    for e, own in enumerate(x0):
        path = integrated(problem, e, problem.theta_of(e, phi), own, scale, budget, tolerance)
        if path is None:
            return None
        paths.append(path)
    return tuple(paths)
