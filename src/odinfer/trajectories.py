"""From a refined trajectory to what users see: curves with bands, intervals, predictions beyond the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from odinfer import refine as rf
from odinfer.collocation import Path
from odinfer.curve import Curve
from odinfer.errors import InputError
from odinfer.gradient_matching import dense_times, finer_grid, standardise
from odinfer.identifiability import notes
from odinfer.information import Information, information
from odinfer.problem import Problem
from odinfer.profile import parameter_ends, state_ends
from odinfer.simulate import simulate
from odinfer.uncertainty import LEVEL, Uncertainty, quantile

if TYPE_CHECKING:
    from odinfer.fit import Fit

Array = NDArray[np.float64]

_EXACT_TIMES = 16  # of a forecast


def trajectory_curve(problem: Problem, refined: rf.Refined, info: Information, e: int) -> Curve:
    """One experiment's trajectory with standard deviations from the information matrix."""
    dense = dense_times(problem.data.experiments[e].t)
    x, slope = refined.paths[e].at(dense)
    return Curve(dense, x, slope, band_sd(refined, info, e, dense))


def band_sd(refined: rf.Refined, info: Information, e: int, t: Array) -> Array:
    """Standard deviations (N, K) of the states, widened so that the normal 95 % band is Student's."""
    S = refined.paths[e].sensitivity_at(refined.condensed[e], t)
    K, E, F = len(refined.sigma), len(refined.paths), len(refined.phi)
    a = np.zeros((*S.shape[:2], E * K + F))
    a[..., np.r_[e * K : (e + 1) * K, E * K : E * K + F]] = S
    sd, freedom = info.spread(a)
    return np.hypot(sd * quantile(freedom, LEVEL) / quantile(np.inf, LEVEL), info.accuracy)


def uncertainty(like: rf.Likelihood, refined: rf.Refined, info: Information, level: float = LEVEL) -> Uncertainty:
    """Likelihood intervals of the free parameters, their covariance, and what the data cannot determine."""
    problem, F = like.problem, len(refined.phi)
    P = info.covariance.shape[0]
    low, high, there = parameter_ends(like, refined, info, level, np.arange(F))
    a = np.eye(P)[P - F :]
    sd, freedom = info.spread(a)
    C = info.covariance[P - F :, P - F :].copy()
    C[np.isinf(sd), np.isinf(sd)] = np.inf
    with np.errstate(over="ignore"):
        ends = [np.where(problem.is_log, np.exp(np.where(problem.is_log, v, 0.0)), v) for v in (low, high)]
    limits = np.array([problem.limits(name) for name in problem.free]).reshape(-1, 2)
    low, high = (np.clip(v, limits[:, 0], limits[:, 1]) for v in ends)
    log = tuple(n for n, is_log in zip(problem.free, problem.is_log, strict=True) if is_log)
    said = notes(problem, refined.phi, info, low, high, there)
    return Uncertainty(problem.free, log, C, freedom, level, low, high, said)


def refined_again(fit: Fit, problem: Problem) -> tuple[rf.Likelihood, rf.Refined, Information]:
    """The maximum of the likelihood that a fit reports, with everything that goes on from there.

    Raises:
        InputError: the fit is not at such a maximum, or belongs to another problem.
    """
    if fit.uncertainty is None:
        raise InputError(no_information(fit))
    names = (problem.model.states, problem.model.parameters, tuple(e.name for e in problem.data.experiments))
    if names != (fit.state_names, fit.parameter_names, tuple(fit.experiments)):
        raise InputError("this fit was made from another problem: its states, parameters or experiments differ")
    scale = standardise(problem).scale
    curves = [(c.t, c.x, c.slope) for c in (e.curve for e in fit.experiments.values())]
    phi = np.clip(problem.phi(np.array([fit.theta[p] for p in fit.parameter_names])), *problem.phi_bounds)
    found = rf.refine(problem, scale, rf.paths_through(problem, curves), phi)
    if found is None:
        raise InputError("no trajectory of the model could be followed from this fit's estimate")
    like = rf.Likelihood(problem, scale)
    return like, found, information(problem, like, found)


def no_information(fit: Fit) -> str:
    """Why a fit has no intervals, in a sentence."""
    used = fit.details.get("stage_used", fit.method)
    if used == "odin":
        return (
            "ODIN's own estimate has no interval that is known to cover: it needs the refined stage "
            "(refine=True, and a trajectory that follows the data)"
        )
    return f"the method '{fit.method}' gives no intervals; fit with odin, trajectory or a sampler (fgpgm, agm)"


def extended(problem: Problem, refined: rf.Refined, times: Sequence[Array]) -> rf.Refined | None:
    """The same trajectories, each on to the last of its times, which become points of its mesh; None after a blow-up.

    Inputs keep their last value beyond the data.
    """
    from scipy.interpolate import CubicHermiteSpline

    scale, theta = standardise(problem).scale, problem.theta(refined.phi)
    paths, lins = [], []
    for e, (path, t) in enumerate(zip(refined.paths, times, strict=True)):
        last = path.mesh[-1]
        beyond = np.unique(t[t > last])
        longer = path
        if len(beyond):
            count = int(np.clip(np.ceil((beyond[-1] - last) / np.median(np.diff(path.mesh))), 1, 5000))
            mesh = np.unique(np.concatenate([np.linspace(last, beyond[-1], count + 1), beyond]))
            fine, _ = finer_grid(mesh, 4)
            x = simulate(problem.model, theta, path.nodes[-1], fine, problem.data.experiments[e].u)
            if not np.isfinite(x).all():
                return None
            slope = problem.model.linearise(fine, x, theta, problem.inputs_at(e, fine))[0]
            blank = Path(problem, e, mesh, x[0], np.empty(0))
            Z = CubicHermiteSpline(fine, x, slope)(blank.stage_times.ravel()).reshape(*blank.stage_times.shape, -1)
            longer = Path(problem, e, np.append(path.mesh, mesh[1:]), path.x0, np.concatenate([path.Z, Z]))
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


def ahead(
    like: rf.Likelihood, refined: rf.Refined, info: Information, e: int, t: Array, level: float
) -> tuple[Array, Array, Array]:
    """States and the ends of their bands (N, K) at increasing times, also beyond the data; NaN after a blow-up.

    Beyond the data a trajectory can bend far from its linear picture, so the ends are those of likelihood intervals. Of
    many times some are computed, and between them the ends in units of the linear picture's standard deviation.
    """
    problem = like.problem
    longer = extended(problem, refined, [t if i == e else np.empty(0) for i in range(len(refined.paths))])
    if longer is None:
        nothing = np.full((len(t), len(refined.sigma)), np.nan)
        return nothing, nothing, nothing
    path = longer.paths[e]
    x, sd = path.at(t)[0], band_sd(longer, info, e, t)
    after = np.flatnonzero(t > refined.paths[e].mesh[-1])
    some = after[np.unique(np.linspace(0, len(after) - 1, _EXACT_TIMES).round().astype(int))] if len(after) else after
    low, high = (x + side * quantile(np.inf, level) * sd for side in (-1.0, 1.0))
    if len(some):
        ends = state_ends(like, longer, info, level, e, np.searchsorted(path.mesh, t[some]))
        for band, exact in zip((low, high), ends, strict=True):
            for k in range(x.shape[1]):
                units = (exact[:, k] - x[some, k]) / sd[some, k]
                band[after, k] = x[after, k] + np.interp(t[after], t[some], units) * sd[after, k]
    return x, low, high
