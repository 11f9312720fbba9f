"""State-triggered events in batched integration: locate crossings and apply jumps with their sensitivities.

A step within which a condition becomes true is shortened to end there: the length is bisected, and every trial is a
step of the method itself (kernels/event_crossing.c). The change of the states then depends on parameters and earlier
states in two ways: by the new values, and by the time τ of the crossing. With the jump x⁺ = h(x⁻, θ, τ), the right-hand
sides f⁻ and f⁺ before and after it, and the distance g(x, θ, t) that vanishes at τ,

    dτ  = −(g_x dx⁻ + g_θ dθ) / (g_x f⁻ + g_t),
    dx⁺ = h_x dx⁻ + h_θ dθ + (h_x f⁻ + h_t − f⁺) dτ

(the saltation matrix; Leine and Nijmeijer, Dynamics and Bifurcations of Non-Smooth Mechanical Systems, 2004, §7).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.model.events import Trigger
from odinfer.ode.bytecode import Tape
from odinfer.ode.forcing import Drive
from odinfer.ode.interpreter import values_of_tape
from odinfer.problem.condition import Condition

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Mask = NDArray[np.bool_]

_MOST_AT_ONCE = 100  # executions at one time, after which a trajectory ends
_DERIVATIVE = 1e-6  # of the interval between two stops: step of the finite differences in time


def holding(conditions: Tape, drive: Drive, e: int, t: Array, x: Array, numbers: Array) -> Array:
    """Which conditions (b, T) are true (1) and which are not (0) in experiment e, at times (b,) and states (b, K).

    Args:
        drive: without infusions.
        numbers: inputs and parameters (b, N).
    """
    return values_of_tape(conditions, drive, e, t, x, numbers)


class Executed(NamedTuple):
    """States (b, K) after events at one time, their derivatives by those before (b, K, K) and by θ (b, K, P), and which
    conditions (b, T) are true."""

    x: Array
    by_x: Array
    by_theta: Array
    held: Mask


class _Due(NamedTuple):
    """An event that is to be executed: its number, and the new values (b, n) with their derivatives (b, n, K+P+1)."""

    trigger: int
    values: Array
    slopes: Array


class _Progress(NamedTuple):
    """Some trajectories (b,) in the midst of their events, which are the same for all so far.

    Attributes:
        rows: numbers of the trajectories (b,).
        x, slopes: states (b, K), and their derivatives by states before, θ and t (b, K, K+P+1).
        held, truth: which conditions (b, T) were true before the last change, and after it.
        due: events that are to be executed.
        first: the event that began.
        executed: how many have been executed.
    """

    rows: Index
    x: Array
    slopes: Array
    held: Mask
    truth: Mask
    due: tuple[_Due, ...] = ()
    first: int = -1
    executed: int = 0

    def of(self, rows: Index) -> _Progress:
        """Of the trajectories at places (c,) among these."""
        due = tuple(_Due(d.trigger, d.values[rows], d.slopes[rows]) for d in self.due)
        return self._replace(
            rows=self.rows[rows], x=self.x[rows], slopes=self.slopes[rows], held=self.held[rows],
            truth=self.truth[rows], due=due,
        )  # fmt: skip


class Execution:
    """The execution of events of trajectories (b,) of one experiment, each at a time of its own.

    Args:
        theta: parameters of the model (b, P).
        t: times (b,), moved off a breakpoint where the right-hand side may jump.
        width: lengths (b,) of the intervals between stops.
        crossing: which times (b,) are those of crossings, which change with parameters and states.
    """

    def __init__(self, condition: Condition, theta: Array, t: Array, width: Array, crossing: Mask) -> None:
        self.condition, self.theta, self.t, self.crossing = condition, theta, t, crossing
        self.model, self.triggers = condition.model, condition.model.declarations.triggers
        self.dt, self.P = _DERIVATIVE * width, theta.shape[1]

    def run(self, x: Array, held: Mask, truth: Mask) -> Executed:
        """Execute the events whose conditions have become true, and those that they trigger.

        Args:
            x: states (b, K) before.
            held, truth: which conditions (b, T) are true before, and now.

        Returns:
            States that are not finite where too much happens at once.
        """
        b, K = x.shape
        slopes = np.tile(np.hstack([np.eye(K), np.zeros((K, self.P + 1))]), (b, 1, 1))
        found = Executed(x.copy(), slopes[..., :K].copy(), slopes[..., K:-1].copy(), truth.copy())
        left = [_Progress(np.arange(b), x, slopes, held, truth)]
        while left:
            now = left.pop()
            new = now.truth & ~now.held
            patterns, kind = np.unique(np.hstack([new, now.truth]), axis=0, return_inverse=True)
            if len(patterns) > 1:
                left += [now.of(np.flatnonzero(kind.ravel() == i)) for i in range(len(patterns))]
                continue
            due = (*now.due, *(self._schedule(int(i), now) for i in np.flatnonzero(new[0])))
            due = tuple(d for d in due if now.truth[0, d.trigger] or not self.triggers[d.trigger].cancellable)
            now = now._replace(due=due, first=due[0].trigger if due and now.first < 0 else now.first)
            if not due or now.executed == _MOST_AT_ONCE:
                self._write(found, now, x)
                continue
            chosen = np.argmax([self._priorities(d.trigger, now) for d in due], axis=0)
            left += [self._apply(now.of(np.flatnonzero(chosen == i)), int(i)) for i in np.unique(chosen)]
        return found

    def _write(self, found: Executed, now: _Progress, before: Array) -> None:
        """Write the result of trajectories to which nothing more happens, or too much."""
        K, rows = before.shape[1], now.rows
        x = np.where(len(now.due) > 0, np.nan, now.x)
        by_x, by_theta = now.slopes[..., :K].copy(), now.slopes[..., K:-1].copy()
        at = np.flatnonzero(self.crossing[rows])
        if now.first >= 0 and len(at):
            own = rows[at]
            f = [self.condition.evaluate(self.t[own], states, self.theta[own]) for states in (before[own], x[at])]
            tau_x, tau_theta = self._crossing_slopes(self.triggers[now.first], own, before[own], f[0])
            change = (by_x[at] @ f[0][..., None])[..., 0] + now.slopes[at, :, -1] - f[1]
            by_x[at] += change[..., None] * tau_x[:, None]
            by_theta[at] += change[..., None] * tau_theta[:, None]
        for every, part in zip(found, (x, by_x, by_theta, now.truth), strict=True):
            every[rows] = part

    def _apply(self, now: _Progress, i: int) -> _Progress:
        """The trajectories after the event that is due at place i."""
        chosen = now.due[i]
        if self.triggers[chosen.trigger].current_values:
            chosen = self._schedule(chosen.trigger, now)
        places = [self.model.states.index(name) for name, _ in self.triggers[chosen.trigger].changes]
        x, slopes = now.x.copy(), now.slopes.copy()
        x[:, places], slopes[:, places] = chosen.values, chosen.slopes
        truth = self._truth(now, x)
        due = now.due[:i] + now.due[i + 1 :]
        return now._replace(x=x, slopes=slopes, held=now.truth, truth=truth, due=due, executed=now.executed + 1)

    def _schedule(self, i: int, now: _Progress) -> _Due:
        instructions = tuple(j for _, j in self.triggers[i].changes)
        values, by_x, by_theta, by_t = self._linearise(instructions, now.rows, now.x)
        K, own = now.x.shape[1], by_x @ now.slopes
        own[..., K:-1] += by_theta
        own[..., -1] += by_t
        return _Due(i, values, own)

    def _priorities(self, i: int, now: _Progress) -> Array:
        priority = self.triggers[i].priority
        if priority is None:
            return np.full(len(now.rows), -np.inf)
        return self._values((priority,), now.rows, now.x)[:, 0]

    def _truth(self, now: _Progress, after: Array) -> Mask:
        """Which conditions (b, T) are true after a change; those whose quantities have not changed are as they were.

        Where a quantity is at its threshold, rounding alone would decide.
        """
        truth = now.truth.copy()
        for i, trigger in enumerate(self.triggers):
            old, new = (self._values(trigger.gaps, now.rows, x) for x in (now.x, after))
            value = self._values((trigger.condition,), now.rows, after)[:, 0] > 0
            truth[:, i] = np.where((old != new).any(1), value, truth[:, i])
        return truth

    def _crossing_slopes(self, trigger: Trigger, rows: Index, x: Array, f: Array) -> tuple[Array, Array]:
        """Derivatives of the times of crossings by x (b, K) and by θ (b, P): of the comparison nearest in time."""
        values, by_x, by_theta, by_t = self._linearise(trigger.gaps, rows, x)
        if not trigger.gaps:
            return np.zeros_like(x), np.zeros((len(x), self.P))
        pace = (by_x @ f[..., None])[..., 0] + by_t
        away = np.abs(values / pace)
        i = np.argmin(np.where(np.isfinite(away), away, np.inf), axis=1)
        every = np.arange(len(x))
        return -by_x[every, i] / pace[every, i, None], -by_theta[every, i] / pace[every, i, None]

    def _values(self, instructions: tuple[int, ...], rows: Index, x: Array, t: Array | None = None) -> Array:
        at = self.t[rows] if t is None else t
        program = self.model.program(instructions)
        return program.evaluate(at, x, self.theta[rows], self.condition.inputs_at(at))

    def _linearise(self, instructions: tuple[int, ...], rows: Index, x: Array) -> tuple[Array, Array, Array, Array]:
        """Values (b, n) and their derivatives by x (b, n, K), θ (b, n, P) and t (b, n)."""
        t, dt = self.t[rows], self.dt[rows]
        program = self.model.program(instructions)
        values, by_x, by_theta = program.linearise(t, x, self.theta[rows], self.condition.inputs_at(t))
        later, earlier = (self._values(instructions, rows, x, t + side * dt) for side in (1.0, -1.0))
        return values, by_x, by_theta, (later - earlier) / (2.0 * dt[:, None])
