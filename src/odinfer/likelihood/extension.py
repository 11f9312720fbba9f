"""Extend trajectories beyond the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from odinfer.likelihood.likelihood import Likelihood
from odinfer.likelihood.refinement import TrajectoryOptimum
from odinfer.ode.adaptive_mesh import integrated

Array = NDArray[np.float64]

_TOLERANCE = 1e-7  # of the integration
_FEASIBLE = 1e-7  # violation of the collocation equations, in units of the states' scales
# Newton steps at most, and relative change of all states that ends them: they give the tail of a decay the relative
# accuracy that integration with absolute tolerances does not. Each gains about 16 digits.
_MOST, _SAME = 20, 1e-6


def extended(likelihood: Likelihood, refined: TrajectoryOptimum, times: Sequence[Array]) -> TrajectoryOptimum | None:
    """The same trajectories, each on to the last of its times, which become points of its mesh; None after a blow-up.

    Inputs keep their last value beyond the data.
    """
    problem, scale = likelihood.problem, likelihood.scale
    if problem.model.declarations.triggers:
        v = likelihood.unknowns.join([p.x0 for p in refined.paths], refined.phi)
        from odinfer.likelihood.event_refinement import trajectories

        found = trajectories(problem, v, times)
        return None if found is None else replace(refined, paths=found[0], condensed=found[1])
    paths, lins = [], []
    for e, (path, t) in enumerate(zip(refined.paths, times, strict=True)):
        last = path.mesh[-1]
        beyond = np.unique(t[t > last])
        longer = path
        if len(beyond):
            count = int(np.clip(np.ceil((beyond[-1] - last) / np.median(np.diff(path.mesh))), 1, 5000))
            passed = np.union1d(np.linspace(last, beyond[-1], count + 1), beyond)
            theta = problem.theta_of(e, refined.phi)
            rest = integrated(problem, e, theta, path.nodes[-1], scale, tolerance=_TOLERANCE, times=passed)
            if rest is None:
                return None
            mesh, Z = np.append(path.mesh, rest.mesh[1:]), np.concatenate([path.Z, rest.Z])
            both = path.starts is not None and rest.starts is not None
            starts = np.concatenate([path.starts, rest.starts]) if both else None
            longer = replace(path, mesh=mesh, Z=Z, starts=starts)
        still = np.zeros(len(likelihood.unknowns.own(e)))
        for _ in range(_MOST):
            lin = longer.condense(refined.phi, scale)
            if not np.isfinite(lin.violation):
                return None
            change = np.abs(lin.nodes[..., -1])
            if lin.violation < _FEASIBLE and (
                longer.mesh is path.mesh or (change <= _SAME * np.abs(longer.nodes)).all()
            ):
                break
            longer = longer.move(lin, still, refined.phi)
        paths.append(longer)
        lins.append(lin)
    return replace(refined, paths=tuple(paths), condensed=tuple(lins))
