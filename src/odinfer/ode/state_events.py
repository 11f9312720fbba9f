"""One trajectory forward in time whose states make events happen, such as `when V > 1: V = 0`.

A solver steps from corner to corner. In every step the conditions are asked along its interpolant, at several places
and where what is compared comes nearest. Where one becomes true, the time is narrowed down until no floats lie between,
so that it is as exact as the solution itself; the states change, and the solver starts again from there: first one of
high order to which starting is nothing, and one for stiff equations from where that takes many steps.
"""

from __future__ import annotations

import itertools
import warnings
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.problem.condition import Course

Array = NDArray[np.float64]
Truth = NDArray[np.bool_]

DENSE_UP_TO = 500  # states for which a solver may hold and factor a full Jacobian
_METHODS = ("DOP853", "LSODA", "Radau")  # each for what the one before does not get through
_PLACES = 12  # at which conditions are asked in a step, and in what is narrowed down
_FEWEST_STEPS, _MOST_STEPS = 100, 300_000  # of a trajectory: what is true for less than a place may be missed
_MOST_EVENTS = 10_000  # after which it ends, as after too many steps
_PATIENCE = 500  # steps from one event to the next, after which equations are taken for stiff
_CROWD, _CLOSE = 5, 1e-8  # one event so often within this share of the time span comes ever faster: it ends, too
_MOST_AT_ONCE = 100  # rounds of events that make each other happen at one time
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
    way = _Way(float(stops[-1]) - start, rtol, atol, [*_METHODS[: None if len(x0) <= DENSE_UP_TO else 1]])
    held = _Stretch(course, theta, start, start).holds(start, x)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of a solver that does not get through
        try:
            for a, b in itertools.pairwise(stops.tolist()):
                for jump in (j for j in course.jumps if j.time == a):
                    x = course.jumped(jump, x[None], theta[None])[0][0]
                stretch = _Stretch(course, theta, a, b)
                x, held = _through(stretch, *stretch.settled(a, x, held), t, found, way)
        except _Ended:
            pass
    return found


class _Ended(Exception):
    """The trajectory left the finite numbers, or so much happens that it will not get through."""


@dataclass
class _Way:
    """How a trajectory of some time span is followed, and how much has happened on it."""

    span: float
    rtol: float
    atol: Array | float
    methods: list[str]
    steps: int = 0
    events: int = 0
    last: dict[int, deque[float]] = field(default_factory=lambda: defaultdict(lambda: deque(maxlen=_CROWD)))

    @property
    def at_first(self) -> bool:
        return self.methods[0] == _METHODS[0]

    def harder(self) -> bool:
        """Go on with the next method, if there is one."""
        if len(self.methods) == 1:
            return False
        self.methods.pop(0)
        return True

    def step(self) -> None:
        self.steps += 1
        if self.steps > _MOST_STEPS:
            raise _Ended

    def event(self, t: float, happening: Truth) -> None:
        self.events += 1
        for i in np.flatnonzero(happening).tolist():
            last = self.last[i]
            last.append(t)
            if len(last) == _CROWD and t - last[0] < _CLOSE * self.span:
                raise _Ended
        if self.events > _MOST_EVENTS:
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
        return np.asarray(self._asked(np.array([t]), x[None])[0][0])

    def _asked(self, t: Array, x: Array) -> tuple[Truth, Array]:
        """Conditions (n, T) at n points, and the differences (n, G) between what they compare."""
        triggers = self.course.model.said.triggers
        conditions = tuple(trigger.condition for trigger in triggers)
        found = self._evaluate((*conditions, *(gap for trigger in triggers for gap in trigger.gaps)), t, x)
        return found[:, : len(conditions)] > 0, found[:, len(conditions) :]

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
        for _ in range(_MOST_AT_ONCE):
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
        t, truth = self._looked(states, np.linspace(a, b, _PLACES + 1))
        if not (truth & ~np.concatenate([held[None], truth[:-1]])).any():
            return _Crossing(None, truth[-1])
        while True:
            before = np.concatenate([held[None], truth[:-1]])
            new = (truth & ~before).any(1)
            i = int(new.argmax()) if new.any() else len(t) - 1  # the last one is true but for rounding
            a, held, last = (float(t[i - 1]) if i else a), before[i], float(t[i])
            inside = np.linspace(a, last, _PLACES + 2)[1:-1]
            if not (inside := inside[(inside > a) & (inside < last)]).size:
                return _Crossing(self._surely(states, last, b, held), held)
            t = np.unique(np.append(inside, last))
            truth = self._asked(t, states(t).T)[0]

    def _surely(self, states: Callable[[Any], Array], t: float, b: float, held: Truth) -> float:
        """A time from t on at which a condition is true that was not, whatever rounding does."""
        step = np.spacing(abs(t))
        while t < b and not (self.holds(t, states(t)) & ~held).any():
            t, step = min(t + step, b), 2.0 * step
        return float(t)

    def _looked(self, states: Callable[[Any], Array], t: Array) -> tuple[Array, Truth]:
        """Times after the first of t (n,), with those between them where what is compared comes nearest, and what holds
        there."""
        truth, g = self._asked(t, states(t).T)
        left, middle, right = np.abs(g[:-2]), np.abs(g[1:-1]), np.abs(g[2:])
        near = (middle <= left) & (middle <= right) & (left + right > 2.0 * middle)
        if not near.any():
            return t[1:], truth[1:]
        aside = 0.5 * (left - right)[near] / (left + right - 2.0 * middle)[near]  # the vertex of a parabola
        vertices = t[1 + np.nonzero(near)[0]] + aside * (t[1] - t[0])
        every = np.append(t[1:], vertices)
        order = np.argsort(every, kind="stable")
        return every[order], np.concatenate([truth[1:], self._asked(vertices, states(vertices).T)[0]])[order]

    def solver(self, way: _Way, t: float, x: Array, first: float | None) -> Any:
        """Of SciPy, from states (K,) at a time to the end of the stretch."""
        from scipy import integrate

        method, field = way.methods[0], self.course.quick(self.theta, self.begin, self.end)

        def jacobian(now: float, x: Array) -> Array:
            at = self.course.inside(self.begin, self.end, np.array([now]))
            return np.asarray(self.course.linearise(at, x[None], self.theta[None])[1][0])

        return getattr(integrate, method)(
            lambda now, x: np.asarray(field(x, now)), t, x, self.end,
            rtol=max(way.rtol, 1e-9) if method == "Radau" else way.rtol, atol=np.maximum(way.atol, 1e-290),
            first_step=first, max_step=way.span / _FEWEST_STEPS, **({} if way.at_first else {"jac": jacobian}),
        )  # fmt: skip


def _through(stretch: _Stretch, x: Array, held: Truth, t: Array, found: Array, way: _Way) -> tuple[Array, Truth]:
    """States (K,) and what holds at the end of a stretch; states at times t in it are written to `found` on the way."""
    now, first = stretch.begin, None
    row, same = int(np.searchsorted(t, now, "right")), _SAME * (float(np.ptp(t)) or 1.0)
    while stretch.end - now > 4.0 * np.spacing(max(abs(now), abs(stretch.end))):
        solver = None
        try:
            solver = stretch.solver(way, now, x, first)
            for step in itertools.count():
                way.step()
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
                    way.event(now, stretch.holds(now, x) & ~held)
                    x, held = stretch.settled(now, x, held)
                    break
                if solver.status == "finished" or (step > _PATIENCE and way.at_first and way.harder()):
                    break
        except (ArithmeticError, ValueError):
            if solver is not None and solver.status == "failed" and way.harder():
                continue
            # In parts: the step may have left what is finite where an event keeps the states.
            step_size = solver.step_size if solver is not None and solver.step_size else np.inf
            first = min(step_size, stretch.end - now, np.inf if first is None else first) / _SHORTER
            if first < _SHORTEST * (stretch.end - stretch.begin):
                raise _Ended from None
    return x, held
