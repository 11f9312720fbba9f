"""Trajectories from anywhere, side by side: parameters drawn over many magnitudes, initial values as they are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from odinfer.matching.starts import draw
from odinfer.problem.problem import Problem
from odinfer.problem.unknowns import Unknowns
from odinfer.trajectory.finding.follow import follow
from odinfer.trajectory.finding.side_by_side import SideBySide
from odinfer.trajectory.refine import Refined, refine

Array = NDArray[np.float64]

_STARTS, _STEPS = 32, 40  # and steps of each
_MOST = 400  # trajectories at once


def drawn(problem: Problem, near: Array, count: int, rng: np.random.Generator) -> Array:
    """Unknowns (count, P) like some (P,) with parameters from anywhere."""
    v = np.tile(near, (count, 1))
    v[:, Unknowns(problem).of_phi] = draw(problem, count, rng)
    return v


def from_anywhere(problem: Problem, scale: Array, best: Refined, seed: int) -> Refined | None:
    """A better trajectory than the best so far, whose initial values are tried with other parameters; None if none."""
    if not SideBySide.can(problem) or _STARTS * len(problem.data.experiments) > _MOST:
        return None
    solver = SideBySide.of(problem)
    u = solver.like.unknowns
    near = u.join([p.x0 for p in best.paths], best.phi)
    with np.errstate(all="ignore"):
        v = np.vstack([near, drawn(problem, near, _STARTS, np.random.default_rng([seed, 5]))])
        ends = follow(solver, v, rounds=_STEPS)
        i = int(ends.value.argmin())
        paths = solver.paths(ends.v[i]) if i else None
    return None if paths is None else refine(problem, scale, paths, u.phi(ends.v[i]))
