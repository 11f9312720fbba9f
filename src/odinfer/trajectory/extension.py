"""Trajectories carried on beyond the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from odinfer.smoothing.grids import finer_grid
from odinfer.trajectory.collocation import CollocationPath
from odinfer.trajectory.likelihood import Likelihood
from odinfer.trajectory.refine import Refined
from odinfer.trajectory.simulate import simulate

Array = NDArray[np.float64]


def extended(like: Likelihood, refined: Refined, times: Sequence[Array]) -> Refined | None:
    """The same trajectories, each on to the last of its times, which become points of its mesh; None after a blow-up.

    Inputs keep their last value beyond the data.
    """
    from scipy.interpolate import CubicHermiteSpline

    problem, scale = like.problem, like.scale
    theta = problem.theta(refined.phi)
    paths, lins = [], []
    for e, (path, t) in enumerate(zip(refined.paths, times, strict=True)):
        last = path.mesh[-1]
        beyond = np.unique(t[t > last])
        longer = path
        if len(beyond):
            count = int(np.clip(np.ceil((beyond[-1] - last) / np.median(np.diff(path.mesh))), 1, 5000))
            corners = problem.corners(e)
            ahead = corners[(corners > last) & (corners < beyond[-1])]
            mesh = np.unique(np.concatenate([np.linspace(last, beyond[-1], count + 1), beyond, ahead]))
            fine, _ = finer_grid(mesh, 4)
            x = simulate(problem.model, theta, path.nodes[-1], fine, problem.data.experiments[e].u)
            if not np.isfinite(x).all():
                return None
            slope = problem.model.linearise(fine, x, theta, problem.inputs_at(e, fine))[0]
            rest = CollocationPath.through(problem, e, mesh, CubicHermiteSpline(fine, x, slope))
            longer = replace(path, mesh=np.append(path.mesh, mesh[1:]), Z=np.concatenate([path.Z, rest.Z]))
        still = np.zeros(len(path.x0)), np.zeros(len(refined.phi))
        for _ in range(8):
            lin = longer.condense(refined.phi, scale)
            if not np.isfinite(lin.violation):
                return None
            if lin.violation < 1e-7:
                break
            longer = longer.moved(lin, *still)
        paths.append(longer)
        lins.append(lin)
    return replace(refined, paths=tuple(paths), condensed=tuple(lins))
