"""One trajectory forward in time whose states make events happen, such as `when V > 1: V = 0`.

A solver steps from corner to corner. In every step the conditions are asked along its interpolant, at several places
and where what is compared comes nearest. Where one becomes true, the time is narrowed down until no floats lie between,
so that it is as exact as the solution itself; the states change, and the solver starts again from there.
"""

from __future__ import annotations

import itertools
import warnings
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.problem.course import Course

Array = NDArray[np.float64]
Truth = NDArray[np.bool_]

DENSE_UP_TO = 500  # states for which a solver may hold and factor a full Jacobian
_PLACES = 12  # at which conditions are asked in a step, and in what is narrowed down
_MOST_EVENTS, _MOST_STEPS = 10_000, 100_000  # of a trajectory, which ends there
_CROWD, _CLOSE = 100, 1e-9  # so many events within this share of the time span come ever faster: it ends, too
_SAME = 1e-10  # of the time span: an observation that comes so little after an event is taken at its time
_SHORTER, _SHORTEST = 8.0, 1e-14  # a step that fails is tried again in parts, down to this share of its interval


def follow(course: Course, theta: Array, x0: Array, t: Array, stops: Array, rtol: float, atol: Array | float) -> Array:
    """States (N, K) at times t (N,), before what happens then; NaN from where the trajectory ends.

    Args:
        course: of a model with triggers.
        theta: the model's parameters (P,).
        x0: states (K,) at the start.
        t: increasing times.
        stops: the start, all corners after it, and the end: there the solver starts again.
        rtol, atol: relative and absolute accuracy.
    """
    found, x, start = np.full((len(t), len(x0)), np.nan), x0, float(stops[0])
    found[t == start] = x0
    tally = _Tally(float(stops[-1]) - start)
    held = _Stretch(course, theta, start, start).holds(start, x)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of a solver that does not get through
        try:
            for a, b in itertools.pairwise(stops.tolist()):
                for jump in (j for j in course.jumps if j.time == a):
                    x = course.jumped(jump, x[None], theta[None])[0][0]
                stretch = _Stretch(course, theta, a, b)
                x, held = _through(stretch, *stretch.settled(a, x, held), t, found, rtol, atol, tally)
        except _Ended:
            pass
    return found


class _Ended(Exception):
    """The trajectory left the finite numbers, or so much happens that it will not get through."""


@dataclass
class _Tally:
    """How much has happened on a trajectory of some time span."""

    span: float
    steps: int = 0
    events: int = 0
    last: deque[float] = field(default_factory=lambda: deque(maxlen=_CROWD))

    def step(self) -> None:
        self.steps += 1
        if self.steps > _MOST_STEPS:
            raise _Ended

    def event(self, t: float) -> None:
        self.events += 1
        self.last.append(t)
        crowded = len(self.last) == _CROWD and t - self.last[0] < _CLOSE * self.span
        if crowded or self.events > _MOST_EVENTS:
            raise _Ended


class _Crossing(NamedTuple):
    """When a condition becomes true in a step, if one does, and which ones hold just before, or at the end."""

    time: float | None
    held: Truth


@dataclass(frozen=True)
class _Stretch:
    """Conditions (T,) and what they make happen, between two corners."""

    course: Course
    theta: Array
    begin: float
    end: float

    def holds(self, t: float, x: Array) -> Truth:
        """Which conditions (T,) are true of states (K,)."""
        return np.asarray(self._conditions(np.array([t]), x[None])[0])

    def _conditions(self, t: Array, x: Array) -> Truth:
        triggers = self.course.model.said.triggers
        return self._evaluate(tuple(trigger.condition for trigger in triggers), t, x) > 0

    def _evaluate(self, instructions: tuple[int, ...], t: Array, x: Array) -> Array:
        inside = self.course.inside(self.begin, self.end, t)
        theta = np.broadcast_to(self.theta, (len(t), len(self.theta)))
        program = self.course.model.program(instructions)
        return program.evaluate(inside, x, theta, self.course.inputs_at(inside))

    def settled(self, t: float, x: Array, held: Truth) -> tuple[Array, Truth]:
        """States (K,) after all that happens at a time, and what is true then.

        What becomes true there happens, all of it from the values before; then what that makes true, and so on.

        Args:
            x: after what else has changed.
            held: which conditions (T,) were true before.
        """
        for _ in range(_CROWD):
            now = self.holds(t, x)
            if not (new := now & ~held).any():
                return x, now
            x, held = self._changed(t, x, new), now
        raise _Ended

    def _changed(self, t: float, x: Array, happening: Truth) -> Array:
        model, after = self.course.model, x.copy()
        for trigger in itertools.compress(model.said.triggers, happening):
            states = [model.states.index(name) for name, _ in trigger.changes]
            after[states] = self._evaluate(tuple(i for _, i in trigger.changes), np.array([t]), x[None])[0]
        return after

    def crossing(self, states: Callable[[Any], Array], a: float, b: float, held: Truth) -> _Crossing:
        """The first time after a at which a condition becomes true.

        Args:
            states: times (n,) ↦ states (K, n) in a step from a to b.
            held: which conditions (T,) are true at a.
        """
        t, narrowed = self._places(states, a, b), False
        while True:
            truth = self._conditions(t, states(t).T)
            before = np.concatenate([held[None], truth[:-1]])
            new = (truth & ~before).any(1)
            if not narrowed and not new.any():
                return _Crossing(None, truth[-1])
            i = int(new.argmax()) if new.any() else len(t) - 1  # the last one is true but for rounding
            a, held, last = (float(t[i - 1]) if i else a), before[i], float(t[i])
            t = np.unique(np.append(np.linspace(a, last, _PLACES + 2)[1:-1], last))
            t, narrowed = t[t > a], True
            if len(t) == 1:
                return _Crossing(self._surely(states, last, b, held), held)

    def _surely(self, states: Callable[[Any], Array], t: float, b: float, held: Truth) -> float:
        """A time from t on at which a condition is true that was not, whatever rounding does."""
        step = np.spacing(abs(t))
        while t < b and not (self.holds(t, states(t)) & ~held).any():
            t, step = min(t + step, b), 2.0 * step
        return float(t)

    def _places(self, states: Callable[[Any], Array], a: float, b: float) -> Array:
        """Times in a step at which to ask: evenly, and where the sides of a comparison come nearest in between."""
        t = np.linspace(a, b, _PLACES + 1)
        gaps = tuple(gap for trigger in self.course.model.said.triggers for gap in trigger.gaps)
        g = np.abs(self._evaluate(gaps, t, states(t).T))
        left, middle, right = g[:-2], g[1:-1], g[2:]
        near = (middle <= left) & (middle <= right) & (left + right > 2.0 * middle)
        aside = 0.5 * (left - right) / np.where(near, left + right - 2.0 * middle, 1.0)  # of the parabola's vertex
        vertices = (t[1:-1, None] + aside * (t[1] - t[0]))[near]
        return np.unique(np.append(t[1:], vertices[(vertices > a) & (vertices < b)])) if len(vertices) else t[1:]

    def solver(self, method: str, t: float, x: Array, first: float | None, rtol: float, atol: Array | float) -> Any:
        """Of SciPy, from states (K,) at a time to the end of the stretch."""
        from scipy import integrate

        field = self.course.quick(self.theta, self.begin, self.end)

        def jacobian(now: float, x: Array) -> Array:
            at = self.course.inside(self.begin, self.end, np.array([now]))
            return np.asarray(self.course.linearise(at, x[None], self.theta[None])[1][0])

        more = {} if method == "DOP853" else {"jac": jacobian}
        rtol = max(rtol, 1e-9) if method == "Radau" else rtol
        return getattr(integrate, method)(
            lambda now, x: np.asarray(field(x, now)), t, x, self.end, rtol=rtol, atol=np.maximum(atol, 1e-290),
            first_step=first, **more,
        )  # fmt: skip


def _through(
    stretch: _Stretch, x: Array, held: Truth, t: Array, found: Array, rtol: float, atol: Array | float, tally: _Tally
) -> tuple[Array, Truth]:
    """States (K,) and what holds at the end of a stretch; states at times t in it are written to `found` on the way."""
    now, first, method = stretch.begin, None, "LSODA" if len(x) <= DENSE_UP_TO else "DOP853"
    row, same = int(np.searchsorted(t, now, "right")), _SAME * (float(np.ptp(t)) or 1.0)
    while stretch.end - now > 4.0 * np.spacing(max(abs(now), abs(stretch.end))):
        solver = None
        try:
            solver = stretch.solver(method, now, x, first, rtol, atol)
            while solver.status == "running":
                tally.step()
                solver.step()
                if solver.status == "failed":
                    raise ArithmeticError
                states = solver.dense_output()
                crossing = stretch.crossing(states, solver.t_old, solver.t, held)
                until, later = (solver.t, 0.0) if crossing.time is None else (crossing.time, same)
                next_row = max(row, int(np.searchsorted(t, min(until + later, stretch.end), "right")))
                found[row:next_row] = states(np.minimum(t[row:next_row], until)).T
                row, now, x, held, first = next_row, until, states(until), crossing.held, None
                if crossing.time is not None:
                    tally.event(now)
                    x, held = stretch.settled(now, x, held)
                    break
        except (ArithmeticError, ValueError):
            # In parts, as the step may have left what is finite where an event would have kept it in; a step that fails
            # for another reason is one for another method.
            failed = solver is not None and solver.status == "failed"
            method = "Radau" if failed and method == "LSODA" else method
            step = solver.step_size if solver is not None and solver.step_size else stretch.end - now
            first = min(step, stretch.end - now, np.inf if first is None else first) / _SHORTER
            if first < _SHORTEST * (stretch.end - stretch.begin):
                raise _Ended from None
    return x, held
