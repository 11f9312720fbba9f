"""From start to end: trajectories side by side, each with steps of its own length, as far as it gets.

What is done in Python for a step is done for all trajectories at once, so that it costs next to nothing for one of
them. Every round tries one step of each that has not arrived; the steps that were taken are kept for sensitivities.
States at observations are read off within steps where nothing but the states changes the field.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.forward.field import Field
from odinfer.forward.rodas import ORDER, inside, step
from odinfer.forward.timetable import Timetable

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Mask = NDArray[np.bool_]

# Errors are measured relative to a state, but to no less than a share of the largest value that it has had, and one of
# the largest that any has had: states that start from zero have no size of their own yet.
_LEAST, _NOTHING = 1e-3, 1e-13
_SAFE, _SHORTER, _LONGER, _BAD = 0.9, 0.2, 6.0, 0.1  # changes of the length of a step
_SHORTEST, _FIRST = 1e-12, 1e-3  # of the way to the next stop: the first step after a corner
_CHANGE = 0.03  # of a state, at most, in it
_STRETCH = 1.1  # a stop that is so much further than a step is reached by it
_AHEAD = 1e-4  # of a step: how far ahead of a time the field's own change is looked at


class Steps(NamedTuple):
    """Steps that were taken in one round: of which trajectories (b,), from when until when (b,), from where, to where
    (b, K), and how they bend in between (2, b, K)."""

    who: Index
    t: Array
    until: Array
    x: Array
    end: Array
    bend: Array


class Jumped(NamedTuple):
    """Jumps at one stop: of which trajectories (b,), and derivatives of the states after by those before (b, K, K) and
    by θ (b, K, P)."""

    who: Index
    by_x: Array
    by_theta: Array


class Read(NamedTuple):
    """Stops that lie within steps, or at their ends: numbers of steps, one after the other, and of stops, and the share
    of the step that is over, each (r,)."""

    step: Index
    stop: Index
    share: Array


@dataclass
class Marched:
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


def march(
    f: Field, e: Index, theta: Array, x0: Array, tolerance: float, most: int | Index, halting: bool = False
) -> Marched:
    """Trajectories of experiments e (B,) with θ (B, P) from x0 (B, K) at their starts; those that fail end in NaN.

    Args:
        tolerance: of the error of a step, relative to the states.
        most: steps of a trajectory, or of each (B,), those that are tried in vain among them.
        halting: steps end at every observation. They do in any case if the field changes with time by itself: what is
            short, and far from where the last step ended, is not passed over so.
    """
    with np.errstate(all="ignore"):
        found = _marched(f, e, theta, x0, tolerance, most, halting or f.varies)
        if steps := found.steps:
            who, x, end = (np.concatenate([getattr(s, name) for s in steps]) for name in ("who", "x", "end"))
            at = read(f.table, e, steps)
            bend = np.concatenate([s.bend for s in steps], 1)[:, at.step]
            found.x[who[at.step], at.stop] = inside(at.share[:, None], x[at.step], end[at.step], bend)
        return found


def read(table: Timetable, e: Index, steps: Sequence[Steps]) -> Read:
    """Which stops lie within which steps of trajectories of experiments e (B,)."""
    who, t, until = (np.concatenate([getattr(s, name) for s in steps]) for name in ("who", "t", "until"))
    first, count = np.zeros((2, len(who)), np.int64)
    for own, (stops, last) in enumerate(zip(table.stops, table.last, strict=True)):
        here = e[who] == own
        first[here], after = (np.searchsorted(stops[: last + 1], when[here], side="right") for when in (t, until))
        count[here] = after - first[here]
    step = np.repeat(np.arange(len(who)), count)
    stop = np.arange(len(step)) - np.repeat(np.cumsum(count) - count, count) + first[step]
    when = table.stops[e[who[step]], stop]
    return Read(step, stop, np.where(when == until[step], 1.0, (when - t[step]) / (until - t)[step]))


def _marched(
    f: Field, e: Index, theta: Array, x0: Array, tolerance: float, most: int | Index, halting: bool
) -> Marched:
    table = f.table
    halt = np.tile(np.arange(1, table.stops.shape[1] + 1), (len(table.stops), 1)) if halting else table.halt
    (B, K), n = x0.shape, table.stops.shape[1]
    found, most = Marched(np.full((B, n, K), np.nan), np.zeros(B, np.int64)), np.broadcast_to(most, B)
    numbers = f.numbers(e, theta)
    t, x, stop = table.stops[e, 0].copy(), x0.copy(), np.zeros(B, np.int64)
    size, h, fresh = np.abs(x0), np.zeros(B), np.ones(B, bool)
    found.x[:, 0] = x0
    _jump(f, found, e, theta, x, stop, np.arange(B))
    left = np.flatnonzero((table.last[e] > 0) & np.isfinite(x).all(1))
    while len(left := left[found.tries[left] < most[left]]):
        found.tries[left] += 1
        own, at, now, go = e[left], x[left], t[left], stop[left]
        mine = numbers.T[:, left].T
        low, high = table.low[own, go], table.high[own, go]
        goal = halt[own, go]
        to = table.stops[own, goal]
        asked = f.between(own, low, high, mine)
        f0, fx = f.by_states(own, np.clip(now, low, high), at, mine)
        pace = h[left]
        if (new := fresh[left]).any():
            first = _first(at[new], f0[new], size[left[new]], to[new] - now[new])
            pace[new] = np.where(pace[new] > 0, np.minimum(pace[new], first), first)
        cut = pace * _STRETCH >= to - now
        length = np.where(cut, to - now, pace)
        ft = (asked(now + _AHEAD * length, at) - f0) / (_AHEAD * length)[:, None] if f.varies else None
        taken = step(asked, now, length, at, f0, fx, ft)
        size_now = np.maximum(size[left], np.maximum(np.abs(at), np.abs(taken.x)))
        matter = np.maximum(_LEAST * size_now, np.maximum(np.abs(at), np.abs(taken.x)))
        matter = np.maximum(matter, _NOTHING * size_now.max(1, keepdims=True) + 1e-290)
        error = (np.abs(taken.error) / matter).max(1) / tolerance
        error = np.where(np.isfinite(error) & np.isfinite(taken.x).all(1), error, np.inf)
        good = error <= 1.0
        change = np.clip(_SAFE * np.maximum(error, 1e-10) ** (-1.0 / (ORDER + 1)), _SHORTER, _LONGER)
        change = np.where(np.isinf(error), _BAD, change)
        follow = length * change
        # A step that a stop has cut says little of how long one could be.
        h[left] = np.where(good & cut, np.maximum(follow, pace), np.where(good, follow, np.minimum(follow, 0.9 * pace)))
        fresh[left] = new & ~good & (h[left] == 0)
        who = left[good]
        if len(who):
            x[who], size[who] = taken.x[good], size_now[good]
            t[who] = np.where(cut[good], to[good], now[good] + length[good])
            found.events.append(Steps(who, now[good], t[who], at[good], taken.x[good], taken.bend[:, good]))
        arrived = left[good & cut]
        if len(arrived):
            stop[arrived] = goal[good & cut]
            _jump(f, found, e, theta, x, stop, arrived)
            fresh[arrived] = table.corner[e[arrived], stop[arrived]]
        stuck = h[left] <= 1e-14 * np.maximum(np.abs(t[left]), 1e-280)
        left = left[~stuck & (stop[left] < table.last[e[left]]) & np.isfinite(x[left]).all(1)]
    return found


def _first(x: Array, f: Array, size: Array, way: Array) -> Array:
    """Lengths (b,) of first steps, in which no state changes by much."""
    known = np.maximum(size, 1e-3 * size.max(1, keepdims=True))
    rate = (np.abs(f) / np.maximum(known, 1e-290)).max(1)
    return np.asarray(np.clip(_CHANGE / np.maximum(rate, 1e-290), _SHORTEST * way, _FIRST * way))


def _jump(f: Field, found: Marched, e: Index, theta: Array, x: Array, stop: Index, who: Index) -> None:
    """Change the states of those that have arrived where something jumps."""
    for (own, i), jumps in f.table.jumps.items():
        here = who[(e[who] == own) & (stop[who] == i)]
        if not len(here):
            continue
        for jump in jumps:
            x[here], by_x, by_theta = f.table.courses[own].jumped(jump, x[here], theta[here])
            found.events.append(Jumped(here, by_x, by_theta))
