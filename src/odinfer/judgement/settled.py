"""Whether systems that are meant to settle, before the data or for a measurement at steady state, have done so."""

from __future__ import annotations

import numpy as np

from odinfer.errors import listed
from odinfer.problem.problem import Problem
from odinfer.trajectory.refine import Refined

# A stretch without data is one to settle in if it is so long, and so many times as long as all others together.
_LONG, _TIMES = 9e5, 500.0
_STILL = 1e-4  # of its size: how much a state may change in the second half of it


def unsettled(problem: Problem, found: Refined) -> list[str]:
    """A sentence on states that still change when their time to settle is over; none if all have settled."""
    moving: list[str] = []
    for e, path in enumerate(found.paths):
        course = problem.course(e)
        stops = np.union1d(course.times, course.between(course.times[0], course.times[-1]))
        gaps = np.diff(stops)
        if not len(gaps):
            continue
        i = int(gaps.argmax())
        if gaps[i] < _LONG or gaps[i] < _TIMES * (gaps.sum() - gaps[i]):
            continue
        at = stops[i] + gaps[i] * np.array([0.25, 0.5, 0.75, 0.999])
        x = path.at(at)[0]
        size = np.maximum(np.abs(x).max(0), 1e-300)
        moving += [
            s for s, change in zip(problem.model.states, np.ptp(x[1:], 0) / size, strict=True) if change > _STILL
        ]
    if not moving:
        return []
    names = list(dict.fromkeys(moving))
    verb = "has" if len(names) == 1 else "have"
    return [f"{listed(names)} {verb} not settled when the time for it is over: what is measured then is not steady"]
