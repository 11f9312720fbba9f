"""Integrate a batch of trajectories with the RODAS method, each with its own step sizes.

The steps that were taken are kept for sensitivities. States at observations are read off within steps where nothing but
the states changes the field. The steps are those of kernels/integrate_batch.c.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.ode.breakpoints import Timetable
from odinfer.ode.event_crossing import Execution, holding
from odinfer.ode.kernels.library import call
from odinfer.ode.right_hand_side import Field
from odinfer.ode.rodas import Step, inside

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Mask = NDArray[np.bool_]

_EVENT = 10  # tries of steps that an event costs
_ROOM, _LEAST_ROOM = 40, 1000  # steps for which there is room at first: of a trajectory, and of all


class Read(NamedTuple):
    """Stops that lie within steps, or at their ends: numbers of steps, one after the other, and of stops, and the share
    of the step that is over, each (r,)."""

    step: Index
    stop: Index
    share: Array


class Steps(NamedTuple):
    """Steps that were taken between two jumps, those of each trajectory in their order: of which (b,), from when until
    when (b,), from where, to where (b, K), and how they bend in between (b, 2, K)."""

    who: Index
    t: Array
    until: Array
    x: Array
    end: Array
    bend: Array

    @staticmethod
    def room(size: int, K: int) -> Steps:
        """For so many steps of K states."""
        who, (t, until), (x, end) = np.empty(size, np.int64), np.empty((2, size)), np.empty((2, size, K))
        return Steps(who, t, until, x, end, np.empty((size, 2, K)))

    def until_step(self, i: int) -> Steps:
        """The first i steps."""
        return Steps(self.who[:i], self.t[:i], self.until[:i], self.x[:i], self.end[:i], self.bend[:i])


class Jumped(NamedTuple):
    """Jumps: of which trajectories (b,), derivatives of the states after by those before (b, K, K) and by θ (b, K, P),
    and at which stop (b,) an observation sees the states after; −1 for none."""

    who: Index
    by_x: Array
    by_theta: Array
    seen: Index


@dataclass
class BatchTrajectories:
    """Where trajectories went.

    Attributes:
        x: states (B, n, K) at the stops, before what jumps there; NaN where a trajectory did not get to.
        tries: steps that were tried (B,).
        events: what happened, in order, for sensitivities.
    """

    x: Array
    tries: Index
    events: list[Steps | Jumped] = field(default_factory=list)

    @property
    def steps(self) -> list[Steps]:
        return [event for event in self.events if isinstance(event, Steps)]


class _Walkers(NamedTuple):
    """Where B trajectories are: experiments, inputs and parameters (B, N), steps that they may try and have tried,
    time, states (B, K), the last stop, the largest that states have been (B, K), whether they have started from zero
    (B, K), the length of the next step, whether that is the first after a corner, whether it can be taken, whether
    something jumps before that, the stop at which something jumped last, which conditions of events are true (B, T),
    and whether one has become true within the last step."""

    e: Index
    numbers: Array
    most: Index
    tries: Index
    t: Array
    x: Array
    stop: Index
    size: Array
    blank: Mask
    h: Array
    fresh: Mask
    going: Mask
    waits: Mask
    jumped: Index
    held: Mask
    crossed: Mask


class _Work(NamedTuple):
    """Room to work in: registers of the field, of its derivatives by the states, too, and of conditions, of which T are
    true or not; f, f a little ahead, ∂f/∂t (K,), ∂f/∂x (K, K), derivatives by nothing else (K, 0), and the step in
    work."""

    r: Array
    r_all: Array
    r_conditions: Array
    truth: Array
    f0: Array
    ahead: Array
    ft: Array
    fx: Array
    nothing: Array
    to: Step

    @staticmethod
    def of(f: Field, K: int, T: int) -> _Work:
        f0, ahead, ft = np.zeros((3, K))
        r, r_all, r_conditions = (own.registers.copy() for own in (f.values, f.by_states, f.conditions))
        fx, nothing = np.empty((K, K)), np.empty((K, 0))
        return _Work(r, r_all, r_conditions, np.empty(T), f0, ahead, ft, fx, nothing, Step.of(K))


class _Stops(NamedTuple):
    """What the way goes by; see `Timetable`. `jumps` (E, n): whether something does at a stop."""

    stops: Array
    last: Index
    corner: Mask
    halt: Index
    low: Array
    high: Array
    jumps: Mask


def integrate_batch(
    f: Field, e: Index, theta: Array, x0: Array, tolerance: float, most: int | Index, halting: bool = False
) -> BatchTrajectories:
    """Trajectories of experiments e (B,) with θ (B, P) from x0 (B, K) at their starts; those that fail end in NaN.

    Args:
        tolerance: of the error of a step, relative to the states.
        most: steps of a trajectory, or of each (B,), those that are tried in vain among them.
        halting: steps end at every observation. They do in any case if the field changes with time by itself: what is
            short, and far from where the last step ended, is not passed over so.
    """
    table, (B, K) = f.table, x0.shape
    n = table.stops.shape[1]
    halt = np.tile(np.arange(1, n + 1), (len(table.stops), 1)) if halting or f.varies else table.halt
    jumps = np.zeros(table.stops.shape, bool)
    for own in table.jumps:
        jumps[own] = True
    stops = _Stops(table.stops, table.last, table.corner, halt, table.low, table.high, jumps)
    found = BatchTrajectories(np.full((B, n, K), np.nan), np.zeros(B, np.int64))
    found.x[:, 0] = x0
    held = np.array([not own.initially_false for own in f.model.declarations.triggers], bool)
    w = _Walkers(
        e, f.numbers(e, theta), np.broadcast_to(most, B).astype(np.int64), found.tries, table.stops[e, 0].copy(),
        x0.copy(), np.zeros(B, np.int64), np.abs(x0), x0 == 0.0, np.zeros(B), np.ones(B, bool), np.ones(B, bool),
        np.zeros(B, bool), np.full(B, -1), np.tile(held, (B, 1)), np.zeros(B, bool),
    )  # fmt: skip
    arrived = np.arange(B)
    with np.errstate(all="ignore"):
        while len(arrived):
            _change(f, found, w, theta, arrived)
            w.waits[arrived] = False
            w.going[arrived] = (table.last[e[arrived]] > w.stop[arrived]) & np.isfinite(w.x[arrived]).all(1)
            here = arrived[w.going[arrived]]
            if len(here):
                steps = _collect_steps(f, stops, w, here, tolerance)
                found.events.append(steps)
                at = read(table, e, steps)
                states = inside(at.share[:, None], steps.x[at.step], steps.end[at.step], steps.bend[at.step])
                found.x[steps.who[at.step], at.stop] = states
            arrived = here[w.waits[here]]
    return found


def _change(f: Field, found: BatchTrajectories, w: _Walkers, theta: Array, who: Index) -> None:
    """Change the states of those that have arrived where something jumps, or where an event happens."""
    here = who[w.stop[who] > w.jumped[who]]
    if w.held.shape[1]:
        _execute(f, found, w, theta, who[w.crossed[who]])
        _execute(f, found, w, theta, here, exact=True)
    _jump(f, found, w, theta, here)
    if w.held.shape[1]:
        _execute(f, found, w, theta, here)
    w.jumped[here] = w.stop[here]


def _execute(f: Field, found: BatchTrajectories, w: _Walkers, theta: Array, who: Index, exact: bool = False) -> None:
    """Execute the events of those whose conditions have become true.

    Args:
        exact: conditions are evaluated at a stop itself; observations there see the states after.
    """
    table = f.table
    for e, places in _groups(w.e[who]):
        own = who[places]
        stop, crossed = w.stop[own], w.crossed[own].copy()
        t = w.t[own] if exact else np.clip(w.t[own], table.low[e, stop], table.high[e, stop])
        truth = holding(f.conditions, f.drive_without_infusions, e, t, w.x[own], w.numbers[own]) > 0
        new = (truth & ~w.held[own]).any(1)
        held, w.held[own], w.crossed[own] = w.held[own][new], truth, False
        if not new.any():
            continue
        end = np.maximum(np.minimum(stop + 1, table.last[e]), 1)
        width = (table.stops[e, end] - table.stops[e, end - 1])[new]
        who_new, stop = own[new], stop[new]
        execution = Execution(table.conditions[e], theta[who_new], t[new], width, crossed[new])
        w.x[who_new], by_x, by_theta, w.held[who_new] = execution.run(w.x[who_new], held, truth[new])
        w.fresh[who_new] = True
        w.tries[who_new] += _EVENT
        if exact:
            found.x[who_new, stop] = w.x[who_new]
        found.events.append(Jumped(who_new, by_x, by_theta, stop if exact else np.full(len(stop), -1)))


def _jump(f: Field, found: BatchTrajectories, w: _Walkers, theta: Array, who: Index) -> None:
    """Change the states of those that have arrived where something jumps at a known time."""
    if not len(who):
        return
    for key, places in _groups(w.e[who] * f.table.stops.shape[1] + w.stop[who]):
        here, (own, i) = who[places], divmod(key, f.table.stops.shape[1])
        for jump in f.table.jumps.get((own, i), ()):
            w.x[here], by_x, by_theta = f.table.conditions[own].jumped(jump, w.x[here], theta[here])
            found.events.append(Jumped(here, by_x, by_theta, np.full(len(here), -1)))


def _groups(keys: Index) -> Iterator[tuple[int, Index]]:
    """The keys that are there, each with the places where it is, in their order."""
    order = np.argsort(keys, kind="stable")
    present, first = np.unique(keys[order], return_index=True)
    return zip(present.tolist(), np.split(order, first)[1:], strict=True)


def _collect_steps(f: Field, stops: _Stops, w: _Walkers, rows: Index, tolerance: float) -> Steps:
    """The steps of some trajectories until something jumps or they end."""
    K = w.x.shape[1]
    steps, count, work = Steps.room(max(_ROOM * len(rows), _LEAST_ROOM), K), 0, _Work.of(f, K, w.held.shape[1])
    while (count := call("walk", f.packed, stops, w, rows, tolerance, steps, count, work)) < 0:
        old, count = steps, -count - 1
        steps = Steps.room(2 * count, K)
        for new, own in zip(steps.until_step(count), old, strict=True):
            new[:] = own
    return steps.until_step(count)


def read(table: Timetable, e: Index, steps: Steps) -> Read:
    """Which stops lie within which steps of trajectories of experiments e (B,)."""
    who, t, until = steps.who, steps.t, steps.until
    first, count = np.zeros((2, len(who)), np.int64)
    for own, here in _groups(table.course[e[who]]):
        stops = table.stops[own, : table.last[own] + 1]
        first[here], after = (np.searchsorted(stops, when[here], side="right") for when in (t, until))
        count[here] = after - first[here]
    step = np.repeat(np.arange(len(who)), count)
    stop = np.arange(len(step)) - np.repeat(np.cumsum(count) - count, count) + first[step]
    when = table.stops[e[who[step]], stop]
    return Read(step, stop, np.where(when == until[step], 1.0, (when - t[step]) / (until - t)[step]))
