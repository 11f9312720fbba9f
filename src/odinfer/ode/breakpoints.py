"""Breakpoints of integration: observation times, jumps and kinks of every experiment.

Rows of the tables are experiments; shorter ones are filled up with their last time.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from odinfer.problem.condition import Condition, Jump

Array = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Timetable:
    """The stops of E experiments, n of them at most; the first is where a trajectory starts.

    Attributes:
        conditions: of the experiments.
        stops: times (E, n).
        last: the number of the last stop (E,).
        corner: whether the solution has a kink at a stop (E, n).
        halt: the number of the next stop at which steps must end, from each on (E, n); at others the states are read.
        low, high: between which times the field is asked from a stop to the next (E, n), since it may jump there.
        rows: per experiment, the stops (N,) of its observations.
    """

    conditions: tuple[Condition, ...]
    stops: Array
    last: Index
    corner: NDArray[np.bool_]
    halt: Index
    low: Array
    high: Array
    rows: tuple[Index, ...]

    @staticmethod
    def of(conditions: Sequence[Condition]) -> Timetable:
        every = [np.union1d(c.times, c.between(c.times[0], c.times[-1])) for c in conditions]
        shape = len(every), max(len(own) for own in every)
        stops, low, high = np.empty(shape), np.full(shape, -np.inf), np.full(shape, np.inf)
        corner, halt = np.zeros(shape, bool), np.zeros(shape, np.int64)
        for e, (condition, own) in enumerate(zip(conditions, every, strict=True)):
            n = len(own)
            stops[e] = np.append(own, np.full(shape[1] - n, own[-1]))
            kinks = np.append(True, np.isin(own[1:], condition.corners))
            corner[e, :n] = kinks
            ends = np.flatnonzero(kinks | np.isin(own, condition.between(own[0], own[-1])) | (own == own[-1]))
            halt[e, : n - 1] = ends[np.searchsorted(ends, np.arange(n - 1), side="right")]
            if condition.abrupt:
                ends = np.append(own[kinks], own[-1])
                piece = np.cumsum(kinks) - 1
                a, b = ends[piece], ends[piece + 1]
                low[e, :n] = condition.inside(a, b, np.full(n, -np.inf))
                high[e, :n] = condition.inside(a, b, np.full(n, np.inf))
        last = np.array([len(own) - 1 for own in every])
        rows = tuple(np.searchsorted(own, c.experiment.moments) for c, own in zip(conditions, every, strict=True))
        return Timetable(tuple(conditions), stops, last, corner, halt, low, high, rows)

    @functools.cached_property
    def course(self) -> Index:
        """Experiments with the same stops have the same number (E,): that of the first of them."""
        first: dict[tuple[int, bytes], int] = {}
        keys = zip(self.last.tolist(), self.stops, strict=True)
        return np.array([first.setdefault((n, own.tobytes()), e) for e, (n, own) in enumerate(keys)])

    @functools.cached_property
    def jumps(self) -> dict[tuple[int, int], list[Jump]]:
        """What jumps at which stop of which experiment; not at the last one, after which nothing comes."""
        found: dict[tuple[int, int], list[Jump]] = {}
        for e, condition in enumerate(self.conditions):
            for jump in condition.jumps:
                i = int(np.searchsorted(self.stops[e, : self.last[e] + 1], jump.time))
                if i < self.last[e] and self.stops[e, i] == jump.time:
                    found.setdefault((e, i), []).append(jump)
        return found
