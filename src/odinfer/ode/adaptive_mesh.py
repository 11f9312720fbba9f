"""Trajectories by integration forward in time, with steps that follow what happens: for stiff and bursting systems.

A stiff method finds the steps: a compiled one for models from text (forward/), or SciPy's Radau, which is slow but
solves the very equations of a collocation path (collocation.py). The steps become the mesh of such a path, whose
equations are then solved exactly. So a trajectory that was integrated has the sensitivities of any other.
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
from odinfer.problem.condition import SETTLED, Course
from odinfer.problem.problem import Problem

if TYPE_CHECKING:
    from odinfer.ode.integrate_batch import Marched

Array = NDArray[np.float64]

# Of the integration, relative, and where it is done with care; the collocation equations on its mesh are more accurate.
_TOLERANCE, CAREFUL = 1e-5, 1e-6
_MOST_STEPS = 3000  # of one trajectory
# A compiled solver: its accuracy, at how many times it is looked at, how much longer than its steps intervals of a mesh
# can be, and how many of its steps cost as much as one of the other.
_FINE, _LOOKS, _LONGER, _CHEAPER = 1e-7, 200, 6.0, 25
# A stretch so many times longer than that of the data is one in which the system settles: it is looked at in geometric
# intervals from this share of it on, and the mesh has no more than a few points in each. Anywhere else a mesh has no
# more points between two looks than this many steps need.
_SOON, _WITHIN, _MOST_WITHIN = 1e-10, 12.0, 600.0
_FIRST = 1e-3  # of the time: what a state of unknown size reaches in it at its first pace is its size


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
    tolerance: float | None = None,
    times: Array | None = None,
) -> CollocationPath | None:
    """The trajectory from x0 (K,) at the start of an experiment to its last time; None if it ends before.

    Args:
        theta: the model's parameters (P,) in this experiment.
        scale: of the states (K,), for the absolute accuracy; NaN where it is not known, then what they come to.
        budget: of the search that this is part of.
        tolerance: of Radau's method; without one, by the compiled method if possible.
        times: other ones to start at, to pass, and to end at; they are points of the mesh, as the experiment's own are
            where these are not many.

    Raises:
        Exhausted: the budget is spent.
    """
    from scipy.integrate import OdeSolution, Radau

    course = problem.course(experiment)
    t = course.times if times is None else times
    if len(t) == 1:
        t = np.array([t[0], t[0] + 1e-9 * (1.0 + abs(t[0]))])
    stops = np.union1d(t[[0, -1]], course.between(t[0], t[-1]))
    if times is None and len(t) > MANY:
        t = t[[0, -1]]
    if not problem.plain:
        return _by_lsoda(problem, experiment, theta, x0, t, stops, budget)
    if (
        tolerance is None
        and times is None
        and len(course.times) > 1
        and isinstance(problem.model.derivatives, TextField)
    ):
        return _compiled(problem, experiment, theta, x0, budget)
    tolerance = tolerance or _TOLERANCE
    pieces, jumped, steps = [], {}, itertools.count(1)

    def after(now: float, x: Array) -> Array:
        for jump in (j for j in course.jumps if j.time == now):
            x = jumped[now] = course.jumped(jump, x[None], theta[None])[0][0]
        return x

    x = x0
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # of steps that are tried and not taken
            for a, b in itertools.pairwise(stops):
                field, jacobian = _between(course, theta, a, b)
                x = after(a, x)
                size = np.where(np.isnan(scale), np.maximum(np.abs(x), _FIRST * (b - a) * np.abs(field(a, x))), scale)
                atol = 1e-2 * tolerance * np.maximum(size, 1e-300)
                solver = Radau(field, a, x, b, rtol=tolerance, atol=atol, jac=jacobian)
                while solver.status == "running" and next(steps) <= _MOST_STEPS:
                    if budget is not None:
                        budget.spend()
                    solver.step()
                    if solver.status != "failed":
                        pieces.append(solver.dense_output())
                        unknown = np.where(np.isnan(scale), 1e-2 * tolerance * np.abs(solver.y), 0.0)
                        solver.atol = np.maximum(solver.atol, unknown)
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
    from odinfer.ode.integrate_batch import march

    course = problem.course(experiment)
    field, most = Field(Timetable.of([course]), np.empty(0, np.int64)), _MOST_STEPS
    if budget is not None:
        most = min(most, budget.steps + 1)
    halting = len(course.times) <= MANY
    found = march(field, np.zeros(1, np.int64), theta[None], x0[None], _TOLERANCE, most, halting)
    if budget is not None:
        budget.spend(int(found.tries[0]))
    if not np.isfinite(found.x[0]).all():
        return None
    return along_steps(problem, experiment, x0, found, 0)


def along_steps(problem: Problem, experiment: int, x0: Array, marched: Marched, who: int) -> CollocationPath:
    """A path on the mesh of the steps of one trajectory of a march, which went all the way."""
    from odinfer.ode.rodas import inside

    own = [(s, s.who == who) for s in marched.steps if (s.who == who).any()]
    t, until, x, end, bend = (
        np.concatenate([getattr(s, name)[here] for s, here in own]) for name in ("t", "until", "x", "end", "bend")
    )
    Z = np.stack([inside(share, x, end, bend) for share in C], 1)
    starts = x if problem.course(experiment).jumps else None
    return CollocationPath(problem, experiment, np.append(t, until[-1]), x0, Z, starts)


def _by_lsoda(
    problem: Problem, experiment: int, theta: Array, x0: Array, t: Array, stops: Array, budget: Budget | None
) -> CollocationPath | None:
    """The same by a compiled solver, where the sizes of states are not known: they are what a first look shows.

    Its steps tell how long the intervals of a mesh can be.
    """
    from scipy.integrate import odeint

    course, x = problem.course(experiment), x0
    mesh, Z, jumped = [t[:1]], [], {}
    span, size = t[-1] - t[0], np.abs(x0)
    for a, b in itertools.pairwise(stops):
        for jump in (j for j in course.jumps if j.time == a):
            x = jumped[a] = course.jumped(jump, x[None], theta[None])[0][0]
        field = course.quick(theta, a, b)
        passed = t[(t > a) & (t < b)]
        fine = np.linspace(a, b, max(6, int(_LOOKS * (b - a) / span)))
        settling = b - a > SETTLED * max(np.ptp(course.experiment.t), 1e-300) and not len(passed)
        if settling:  # what happens does so at first
            fine = a + (b - a) * np.append(0.0, np.geomspace(_SOON, 1.0, _LOOKS))
        fine = np.union1d(fine, passed)
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                size = np.maximum(size, np.maximum(np.abs(x), _FIRST * (b - a) * np.abs(field(x, a))))
                atol = _FINE * np.maximum(size, 1e-9 * size.max() + 1e-290)
                rough, info = odeint(field, x, fine, rtol=_FINE, atol=atol, full_output=True, mxstep=_MOST_STEPS)
                if not info["message"].endswith("successful.") or not np.isfinite(rough).all():
                    return None
                if budget is not None:
                    budget.spend(1 + int(info["nst"][-1]) // _CHEAPER)
                size = np.maximum(size, np.abs(rough).max(0))
                steps = np.maximum(info["hu"], np.diff(fine) / (_WITHIN if settling else _MOST_WITHIN))
                own = _nodes(fine, steps, np.concatenate([[a], passed, [b]]))
                stages = (own[:-1, None] + np.diff(own)[:, None] * C).ravel()
                atol = _FINE * np.maximum(size, 1e-9 * size.max())
                found = odeint(field, x, np.append(a, stages), rtol=_FINE, atol=atol, mxstep=_MOST_STEPS)[1:]
        except (ArithmeticError, ValueError):
            return None
        if not np.isfinite(found).all():
            return None
        mesh.append(own[1:])
        Z.append(found.reshape(len(own) - 1, len(C), -1))
        x = Z[-1][-1, -1]
    nodes, stage_values = np.concatenate(mesh), np.concatenate(Z)
    starts = None
    if course.jumps:
        starts = np.concatenate([x0[None], stage_values[:-1, -1]])
        for now, after in jumped.items():
            starts[np.searchsorted(nodes, now)] = after
    return CollocationPath(problem, experiment, nodes, x0, stage_values, starts)


def _nodes(fine: Array, steps: Array, wanted: Array) -> Array:
    """The points of a mesh, `wanted` ones among them, from the steps (n,) of a solver up to times fine (n+1,)."""
    needed = np.append(0.0, np.cumsum(np.diff(fine) / (_LONGER * np.maximum(steps, 1e-300))))
    at = np.interp(wanted, fine, needed)
    parts = np.maximum(np.ceil(np.diff(at)), 1).astype(int)
    inner = [np.interp(np.linspace(p, q, n, endpoint=False)[1:], needed, fine) for p, q, n in
             zip(at[:-1], at[1:], parts, strict=True)]  # fmt: skip
    return np.union1d(wanted, np.concatenate(inner))


def _between(
    course: Course, theta: Array, a: float, b: float
) -> tuple[Callable[[float, Array], Array], Callable[[float, Array], Array]]:
    """The field and its Jacobian as a solver asks for them between two corners."""

    def finite(values: Array) -> Array:
        if not np.isfinite(values).all():
            raise _Stopped
        return np.asarray(values)

    def field(now: float, x: Array) -> Array:
        return finite(course.evaluate(course.inside(a, b, np.array([now])), x[None], theta)[0])

    def jacobian(now: float, x: Array) -> Array:
        return finite(course.linearise(course.inside(a, b, np.array([now])), x[None], theta)[1][0])

    return field, jacobian


def every_integrated(
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
