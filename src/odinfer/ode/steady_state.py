"""Whether systems that are meant to settle, before the data or for a measurement at steady state, have done so."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from odinfer.errors import listed
from odinfer.problem.condition import Course
from odinfer.problem.problem import Problem

Array = NDArray[np.float64]

# A stretch without data is one to settle in if it is so long, and so many times as long as all others together.
_LONG, _TIMES = 9e5, 500.0
_WHEN = np.array([0.0, 0.5, 0.75, 0.999])  # of it: its beginning, and where states are compared
_STILL, _ROUNDING = 1e-4, 1e-8  # of its size then, and of that at the beginning: how much a state may still change


def looked_at(course: Course) -> Array | None:
    """When a system begins to settle and three times at which it has; None if it has no time to settle in."""
    stops = np.union1d(course.times, course.between(course.times[0], course.times[-1]))
    gaps = np.diff(stops)
    if not len(gaps):
        return None
    i = int(gaps.argmax())
    if gaps[i] < _LONG or gaps[i] < _TIMES * (gaps.sum() - gaps[i]):
        return None
    return np.asarray(stops[i] + gaps[i] * _WHEN)


def unsettled(problem: Problem, states: Callable[[int, Array], Array | None]) -> list[str]:
    """A sentence on states that still change when their time to settle is over; none if all have settled.

    Args:
        problem: a model and data.
        states: (e, t (n,)) ↦ the states (n, K) of experiment e at times, or None if it ends before.
    """
    moving: list[str] = []
    for e in range(len(problem.data.experiments)):
        t = looked_at(problem.course(e))
        x = None if t is None else states(e, t)
        if x is None:
            continue
        still = _STILL * np.abs(x[1:]).max(0) + _ROUNDING * np.abs(x[0])
        moving += [s for s, m in zip(problem.model.states, np.ptp(x[1:], 0) > still, strict=True) if m]
    if not moving:
        return []
    names = list(dict.fromkeys(moving))
    verb = "has" if len(names) == 1 else "have"
    return [f"{listed(names)} {verb} not settled when the time for it is over: what is measured then is not steady"]
