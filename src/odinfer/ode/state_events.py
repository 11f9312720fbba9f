"""Integrate one trajectory whose states trigger events, such as `when V > 1: V = 0`.

A solver steps from breakpoint to breakpoint. In every step the conditions are evaluated along its interpolant, at
several points and where the compared quantities come nearest to each other. Where a condition becomes true, the time is
bisected down to the resolution of floating-point numbers, the event is executed, and the solver restarts: first a
method of high order, then one for stiff equations where that needs many steps.

Events are executed as in SBML (level 3, version 2, section 4.11): at the time at which a condition becomes true, or a
delay later; of several at one time, the one of highest priority first, and one of equal priorities at random (with a
fixed seed); after each, all conditions are evaluated again.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.model.events import Trigger
from odinfer.problem.condition import Condition

Array = NDArray[np.float64]
Truth = NDArray[np.bool_]

DENSE_UP_TO = 500  # states for which a solver may hold and factor a full Jacobian
_METHODS = ("DOP853", "LSODA", "Radau")  # each for what the one before does not get through
_PLACES = 12  # points of a step at which conditions are evaluated, and of an interval that is bisected
_FEWEST_STEPS, _MOST_STEPS = 100, 300_000  # of a trajectory; a condition that holds between two points may be missed
_MOST_EVENTS = 10_000  # after which a trajectory ends, as after too many steps
_PATIENCE = 500  # steps from one event to the next after which equations are taken for stiff
_CROWD, _CLOSE = 5, 1e-8  # a trajectory ends if one event happens so often within this share of the time span
_MOST_AT_ONCE = 100  # executions of each event at one time
_SAME = 1e-10  # share of the time span within which an observation and an event have the same time
_SHORTER, _SHORTEST = 8.0, 1e-14  # a step that fails is tried again in parts, down to this share of its interval


def follow(
    condition: Condition, theta: Array, x0: Array, t: Array, stops: Array, rtol: float, atol: Array | float
) -> Array:
    """Integrate states (N, K) to times t (N,); NaN from where the trajectory ends.

    At the time of a state-triggered event or of an event with `at`, states are those before it. At a time that a
    condition names (`when t >= 3`) or at which a delay is over, states are those after the event.

    Args:
        condition: of a model with triggers.
        theta: the model's parameters (P,).
        x0: states (K,) at the start.
        t: increasing times.
        stops: the start, all breakpoints after it, and the end: there the solver restarts.
        rtol, atol: relative and absolute tolerance.
    """
    found, start = np.full((len(t), len(x0)), np.nan), float(stops[0])
    found[t == start] = x0
    span = float(stops[-1]) - start
    path = _Trajectory(
        t, found, span, _SAME * (float(np.ptp(t)) or 1.0), rtol, atol,
        [*_METHODS[: None if len(x0) <= DENSE_UP_TO else 1]],
    )  # fmt: skip
    triggers = condition.model.declarations.triggers
    state = _State(start, x0, np.array([not trigger.initially_false for trigger in triggers], bool))
    pairs = [*itertools.pairwise(stops.tolist()), (float(stops[-1]), float(stops[-1]))]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of a solver that fails
        try:
            for a, b in pairs:
                interval = _Interval(condition, theta, a, b)
                if interval.execute(state, exact=True):
                    path.replace(a, state.x)
                if a == b:
                    break
                for jump in (j for j in condition.jumps if j.time == a):
                    state.x = condition.jumped(jump, state.x[None], theta[None])[0][0]
                interval.execute(state)
                _integrate(interval, state, path)
        except _Ended:
            pass
    return found


class _Ended(Exception):
    """The trajectory left the finite numbers, or too many events or steps are needed."""


@dataclass
class _Trajectory:
    """Where the states at times t go, how they are integrated, and how much work was done."""

    t: Array
    found: Array
    span: float
    same: float
    rtol: float
    atol: Array | float
    methods: list[str]
    steps: int = 0
    events: int = 0
    last: dict[int, deque[float]] = field(default_factory=lambda: defaultdict(lambda: deque(maxlen=_CROWD)))

    @property
    def at_first(self) -> bool:
        return self.methods[0] == _METHODS[0]

    def next_method(self) -> bool:
        """Switch to the next method, if there is one."""
        if len(self.methods) == 1:
            return False
        self.methods.pop(0)
        return True

    def count_step(self) -> None:
        self.steps += 1
        if self.steps > _MOST_STEPS:
            raise _Ended

    def count_events(self, t: float, happening: Truth) -> None:
        self.events += 1
        for i in np.flatnonzero(happening).tolist():
            last = self.last[i]
            last.append(t)
            if len(last) == _CROWD and t - last[0] < _CLOSE * self.span:
                raise _Ended
        if self.events > _MOST_EVENTS:
            raise _Ended

    def replace(self, now: float, x: Array) -> None:
        """States at the times that equal that of an event, after it."""
        self.found[np.abs(self.t - now) <= self.same] = x


class _Pending(NamedTuple):
    """An event whose condition has become true and that waits for its execution."""

    time: float
    trigger: int  # its number
    values: Array | None  # of the states that it changes; None if they are computed at the execution


@dataclass
class _State:
    """A time, the states (K,), which conditions (T,) hold, the events that wait, and what draws among equal ones."""

    now: float
    x: Array
    held: Truth
    pending: list[_Pending] = field(default_factory=list)
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    @property
    def due(self) -> float:
        """The time of the next execution."""
        return min((own.time for own in self.pending), default=math.inf)


class _Crossing(NamedTuple):
    """When a condition becomes true in a step, if one does, and which ones hold just before, or at the end."""

    time: float | None
    held: Truth


@dataclass(frozen=True)
class _Interval:
    """Conditions (T,) and events between two breakpoints."""

    condition: Condition
    theta: Array
    begin: float
    end: float

    @property
    def triggers(self) -> tuple[Trigger, ...]:
        return self.condition.model.declarations.triggers

    def holds(self, t: float, x: Array, exact: bool = False) -> Truth:
        """Which conditions (T,) are true of states (K,); with `exact`, at the breakpoint itself and not beside it."""
        return np.asarray(self._evaluate_conditions(np.array([t]), x[None], exact)[0][0])

    def _evaluate_conditions(self, t: Array, x: Array, exact: bool = False) -> tuple[Truth, Array]:
        """Conditions (n, T) at n points, and the differences (n, G) between the sides of their comparisons."""
        conditions = tuple(trigger.condition for trigger in self.triggers)
        gaps = (gap for trigger in self.triggers for gap in trigger.gaps)
        found = self._evaluate((*conditions, *gaps), t, x, exact)
        return found[:, : len(conditions)] > 0, found[:, len(conditions) :]

    def _evaluate(self, instructions: tuple[int, ...], t: Array, x: Array, exact: bool = False) -> Array:
        inside = t if exact else self.condition.inside(self.begin, self.end, t)
        theta = np.broadcast_to(self.theta, (len(t), len(self.theta)))
        program = self.condition.model.program(instructions)
        return program.evaluate(inside, x, theta, self.condition.inputs_at(inside))

    def execute(self, state: _State, exact: bool = False) -> bool:
        """Execute all events of the present time, and those that they trigger; return whether there were any."""
        t, happened = state.now, False
        for _ in range(_MOST_AT_ONCE * (1 + len(self.triggers))):
            now = self.holds(t, state.x, exact)
            for i in np.flatnonzero(now & ~state.held).tolist():
                self._schedule(state, i, exact)
            state.held = now
            state.pending = [p for p in state.pending if now[p.trigger] or not self.triggers[p.trigger].cancellable]
            late = [p for p in state.pending if p.time <= t]
            if not late:
                return happened
            priorities = [self._priority(p, state, exact) for p in late]
            first = [p for p, priority in zip(late, priorities, strict=True) if priority == max(priorities)]
            chosen = first[int(state.random.integers(len(first)))] if max(priorities) > -math.inf else first[0]
            state.pending = [p for p in state.pending if p is not chosen]
            self._apply(chosen, state, exact)
            happened = True
        raise _Ended

    def _schedule(self, state: _State, i: int, exact: bool) -> None:
        """Let an event wait for its execution, which may be due at once."""
        trigger, at = self.triggers[i], (np.array([state.now]), state.x[None], exact)
        delay = 0.0 if trigger.delay is None else float(self._evaluate((trigger.delay,), *at)[0, 0])
        if not math.isfinite(delay) or delay < 0.0:
            raise _Ended
        values = None if trigger.current_values else self._evaluate(tuple(i for _, i in trigger.changes), *at)[0]
        state.pending.append(_Pending(state.now + delay, i, values))

    def _priority(self, pending: _Pending, state: _State, exact: bool) -> float:
        priority = self.triggers[pending.trigger].priority
        if priority is None:
            return -math.inf
        return float(self._evaluate((priority,), np.array([state.now]), state.x[None], exact)[0, 0])

    def _apply(self, pending: _Pending, state: _State, exact: bool) -> None:
        model, changes = self.condition.model, self.triggers[pending.trigger].changes
        values = pending.values
        if values is None:
            values = self._evaluate(tuple(i for _, i in changes), np.array([state.now]), state.x[None], exact)[0]
        state.x = state.x.copy()
        state.x[[model.states.index(name) for name, _ in changes]] = values

    def crossing(self, states: Callable[[Any], Array], a: float, b: float, held: Truth) -> _Crossing:
        """The first time after a at which a condition becomes true, or one with a waiting event becomes false.

        Args:
            states: times (n,) ↦ states (K, n) in a step from a to b.
            held: which conditions (T,) are true at a.
        """
        t, truth = self._scan(states, np.linspace(a, b, _PLACES + 1))
        if not (truth & ~np.concatenate([held[None], truth[:-1]])).any():
            return _Crossing(None, truth[-1])
        while True:
            before = np.concatenate([held[None], truth[:-1]])
            new = (truth & ~before).any(1)
            i = int(new.argmax()) if new.any() else len(t) - 1  # the last one is true but for rounding
            a, held, last = (float(t[i - 1]) if i else a), before[i], float(t[i])
            inside = np.linspace(a, last, _PLACES + 2)[1:-1]
            if not (inside := inside[(inside > a) & (inside < last)]).size:
                return _Crossing(self._certain_time(states, last, b, held), held)
            t = np.unique(np.append(inside, last))
            truth = self._evaluate_conditions(t, states(t).T)[0]

    def cancelled(self, states: Callable[[Any], Array], a: float, b: float, pending: list[_Pending]) -> list[_Pending]:
        """The waiting events that are not cancelled by a condition that becomes false between two times."""
        some = [p for p in pending if self.triggers[p.trigger].cancellable]
        if not some:
            return pending
        truth = self._scan(states, np.linspace(a, b, _PLACES + 1))[1]
        return [p for p in pending if not any(p is own for own in some) or truth[:, p.trigger].all()]

    def _certain_time(self, states: Callable[[Any], Array], t: float, b: float, held: Truth) -> float:
        """A time from t on at which a condition is true that was not, whatever rounding does."""
        step = np.spacing(abs(t))
        while t < b and not (self.holds(t, states(t)) & ~held).any():
            t, step = min(t + step, b), 2.0 * step
        return float(t)

    def _scan(self, states: Callable[[Any], Array], t: Array) -> tuple[Array, Truth]:
        """Conditions at times t (n,) but the first, and between them where compared quantities come nearest."""
        truth, g = self._evaluate_conditions(t, states(t).T)
        left, middle, right = np.abs(g[:-2]), np.abs(g[1:-1]), np.abs(g[2:])
        near = (middle <= left) & (middle <= right) & (left + right > 2.0 * middle)
        if not near.any():
            return t[1:], truth[1:]
        aside = 0.5 * (left - right)[near] / (left + right - 2.0 * middle)[near]  # the vertex of a parabola
        vertices = t[1 + np.nonzero(near)[0]] + aside * (t[1] - t[0])
        every = np.append(t[1:], vertices)
        order = np.argsort(every, kind="stable")
        return every[order], np.concatenate([truth[1:], self._evaluate_conditions(vertices, states(vertices).T)[0]])[
            order
        ]

    def solver(self, path: _Trajectory, t: float, x: Array, end: float, first: float | None) -> Any:
        """A solver of SciPy from states (K,) at a time."""
        from scipy import integrate

        method, field = path.methods[0], self.condition.quick(self.theta, self.begin, self.end)

        def jacobian(now: float, x: Array) -> Array:
            at = self.condition.inside(self.begin, self.end, np.array([now]))
            return np.asarray(self.condition.linearise(at, x[None], self.theta[None])[1][0])

        return getattr(integrate, method)(
            lambda now, x: np.asarray(field(x, now)), t, x, end,
            rtol=max(path.rtol, 1e-9) if method == "Radau" else path.rtol, atol=np.maximum(path.atol, 1e-290),
            first_step=first, max_step=path.span / _FEWEST_STEPS, **({} if path.at_first else {"jac": jacobian}),
        )  # fmt: skip


def _integrate(interval: _Interval, state: _State, path: _Trajectory) -> None:
    """Integrate to the end of an interval; states at observation times are written on the way."""
    t, first = path.t, None
    row = int(np.searchsorted(t, state.now, "right"))
    while interval.end - state.now > _resolution(state.now, interval.end):
        solver = None
        end = min(state.due, interval.end)
        if end - state.now <= _resolution(state.now, end):
            _execute_due(interval, state, path, end)
            continue
        try:
            solver = interval.solver(
                path, state.now, state.x, end, None if first is None else min(first, end - state.now)
            )
            for step in itertools.count():
                path.count_step()
                solver.step()
                if solver.status == "failed":
                    raise ArithmeticError
                states = solver.dense_output()
                crossing = interval.crossing(states, solver.t_old, solver.t, state.held)
                until, later = (solver.t, 0.0) if crossing.time is None else (crossing.time, path.same)
                next_row = max(row, int(np.searchsorted(t, min(until + later, interval.end), "right")))
                path.found[row:next_row] = states(np.minimum(t[row:next_row], until)).T
                state.pending = interval.cancelled(states, solver.t_old, until, state.pending)
                row, state.now, state.x, state.held, first = next_row, until, states(until), crossing.held, None
                if crossing.time is not None:
                    path.count_events(state.now, interval.holds(state.now, state.x) & ~state.held)
                    interval.execute(state)
                    break
                if solver.status == "finished":
                    if state.due <= state.now:
                        _execute_due(interval, state, path, state.now)
                    break
                if step > _PATIENCE and path.at_first and path.next_method():
                    break
        except (ArithmeticError, ValueError):
            if solver is not None and solver.status == "failed" and path.next_method():
                continue
            # In parts: the step may have left what is finite where an event keeps the states.
            step_size = solver.step_size if solver is not None and solver.step_size else np.inf
            first = min(step_size, interval.end - state.now, np.inf if first is None else first) / _SHORTER
            if first < _SHORTEST * (interval.end - interval.begin):
                raise _Ended from None
    state.now = interval.end


def _execute_due(interval: _Interval, state: _State, path: _Trajectory, now: float) -> None:
    """Execute the events whose delay is over."""
    state.now = now
    happening = np.isin(np.arange(len(state.held)), [p.trigger for p in state.pending if p.time <= now])
    path.count_events(now, happening)
    if interval.execute(state):
        path.replace(now, state.x)


def _resolution(a: float, b: float) -> float:
    """The length of time below which nothing is integrated."""
    return float(4.0 * np.spacing(max(abs(a), abs(b))))
