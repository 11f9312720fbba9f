"""Sample posteriors by NUTS: of trajectories (θ, x0, σ), or of ODIN's model (states and θ at fixed γ)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.checks import checked_integer
from odinfer.errors import InputError, listed
from odinfer.likelihood.extension import extended
from odinfer.likelihood.refinement import TrajectoryOptimum
from odinfer.odin.dense_engine import Dense
from odinfer.odin.gamma import GammaRule
from odinfer.odin.multistart import Search
from odinfer.problem.observables import need_fully_observed_gaussian
from odinfer.problem.parameter_vector import ParameterVector
from odinfer.problem.problem import Problem
from odinfer.progress import Progress, no_progress
from odinfer.sampling import density as ds
from odinfer.sampling import nuts
from odinfer.sampling.diagnostics import convergence_verdict, ess, r_hat
from odinfer.sampling.trajectory_posterior import TrajectoryCode, TrajectoryData, compiled_functions, step_sequence
from odinfer.uncertainty.results import Posterior

if TYPE_CHECKING:
    from odinfer.uncertainty.maximum import Maximum

Array = NDArray[np.float64]

TARGETS = ("trajectory", "odin")
_MOST_VALUES = 3000  # states times observation times, all sampled, with dense matrices
_SHOWN = 400  # draws of which states are kept
# Steps of the integrator are halved until its error is this share of the states' standard deviations at most.
_ACCURATE, _MOST_STEPS = 0.02, 20_000
_NOTHING = -20.0  # on a log scale: where chains start that would start at zero


@dataclass(frozen=True, eq=False)
class OdinEstimate:
    """ODIN's estimate to sample around: the risk, where its minimum is, and γ (K,)."""

    engine: Dense
    phi: Array
    gamma: Array
    rule: GammaRule

    @staticmethod
    def of(
        problem: Problem, options: Mapping[str, Any], theta: Mapping[str, float], gamma: Mapping[str, float]
    ) -> OdinEstimate:
        """Of a fit by ODIN with these options, which ended at θ and γ.

        Raises:
            InputError: not every state is observed with Gaussian noise, or there are too many of them.
        """
        need_fully_observed_gaussian(problem, "target='odin'")
        values = len(problem.model.states) * sum(len(e.t) for e in problem.data.experiments)
        if values > _MOST_VALUES:
            raise InputError(f"target='odin' takes up to {_MOST_VALUES} values of states, not {values}; leave it out")
        names = {f.name for f in fields(Search)}
        given: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in options.items() if k in names}
        search = Search(**given | {"algebra": "dense"})
        engine = search.engine(problem)
        assert isinstance(engine, Dense)
        phi = problem.phi(np.array([theta[p] for p in problem.model.parameters]))
        return OdinEstimate(engine, phi, np.array([gamma[s] for s in problem.model.states]), search.rule)

    @property
    def problem(self) -> Problem:
        return self.engine.problem


def sample(
    start: Maximum | OdinEstimate, chains: int = 4, draws: int = 1000, seed: int = 0,
    warm_up: int = 400, until: float | None = None, progress: Progress | None = None,
) -> Posterior:  # fmt: skip
    """Draws by NUTS; see `Fit.sample`.

    Parameters without a prior are uniform in θ within their bounds, initial values uniform, and unknown noise has the
    prior 1/σ.

    Args:
        start: a maximum of the likelihood, for the posterior of exact trajectories; or ODIN's estimate.
        warm_up: draws before, in which the step widths adapt.
        until: a time beyond the data up to which the states of the draws are kept too (of trajectories).

    Raises:
        InputError: an option cannot be used, blackjax is missing, or the posterior is improper.
    """
    checked_integer("chains", chains, 1)
    checked_integer("draws", draws, 4)
    checked_integer("warm_up", warm_up, 200)
    checked_integer("seed", seed)
    if not isinstance(start, OdinEstimate):
        _check_proper(start)
    nuts.import_blackjax()
    progress = progress or no_progress
    clock = time.perf_counter()
    target, run = (
        ("odin", _odin_posterior) if isinstance(start, OdinEstimate) else ("trajectory", _trajectory_posterior)
    )
    found, parts, t, x, details = run(start, chains, draws, warm_up, seed, until, progress)  # type: ignore[arg-type]
    seconds = time.perf_counter() - clock
    problem = start.problem
    theta = problem.theta(parts["phi"])
    named = {n: np.asarray(theta[..., j]) for n, j in zip(problem.free, problem.free_index, strict=True)}
    r_hats, sizes = ({n: g(d) for n, d in named.items()} for g in (r_hat, ess))
    divergences = int(found.stats["diverging"].sum())
    status, converged = convergence_verdict(r_hats, sizes, divergences / (chains * draws))
    loose = () if callable(problem.prior) else [n for n in named if n not in problem.prior and _unlimited(problem, n)]
    if not converged and loose:
        status += f"; bounds or a prior for {listed(loose)} may help"
    names, experiments = parts.pop("initial"), [e.name for e in problem.data.experiments]
    labels = [s if len(experiments) == 1 else f"{e}:{s}" for e in experiments for s in names]
    x0 = dict(zip(labels, np.moveaxis(parts["x0"], -1, 0), strict=True))
    levels = np.array(problem.estimated_noise) | ~np.isnan(problem.known_sigma)
    sigma = {c: parts["sigma"][..., m] for m, c in enumerate(problem.columns) if levels[m]} if "sigma" in parts else {}
    return Posterior(
        target, named, x0, sigma, found.stats, r_hats, sizes, divergences, status, converged, seconds,
        tuple(t), tuple(x), details,
    )  # fmt: skip


def _check_proper(maximum: Maximum) -> None:
    """Refuse an improper posterior: a likelihood that stays above zero to infinity has no integral.

    Raises:
        InputError: a parameter without a prior has an infinite likelihood interval.
    """
    problem, known = maximum.problem, maximum.intervals()
    if known is None or callable(problem.prior):
        return
    for name, (low, high) in known.interval().items():
        if name not in problem.prior and not np.isfinite([low, high]).all():
            side, bound = ("above", f"{name} < 1000") if np.isinf(high) else ("below", f"{name} > -1000")
            raise InputError(
                f"the data set no limit to '{name}' from {side}, so its posterior is improper; give a bound such as "
                f"{bound}, or a prior such as {name} ~ lognormal(1, 2)"
            )


def _unlimited(problem: Problem, name: str) -> bool:
    return not np.isfinite(problem.limits(name)).all()


# --- trajectories


class _Posed(NamedTuple):
    """The posterior of trajectories: its code and numbers, v (P,) at the maximum, and the nodes of the meshes."""

    told: TrajectoryCode
    unknowns: ParameterVector
    facts: TrajectoryData
    v: Array
    nodes: tuple[NDArray[np.int64], ...]

    @property
    def programs(self) -> tuple[Callable[..., Any], ...]:
        return compiled_functions(self.told)


def _pose(maximum: Maximum, refined: TrajectoryOptimum) -> _Posed:
    """With an integrator that is accurate enough; `refined` may go on beyond the data."""
    problem, info = maximum.problem, maximum.info
    if problem.model.declarations.triggers:
        raise InputError("sampling does not follow events that states trigger; use bootstrap or profile instead")
    form, parameters = ds.parameter_density(problem)
    u, unknown = ParameterVector(problem, noise=True), np.array(problem.estimated_noise)
    inside = np.isfinite(u.low) & np.isfinite(u.high)
    margin = np.where(inside, 1e-6 * np.where(inside, u.high - u.low, 1.0), 1e-9)
    v = u.join([p.x0 for p in refined.paths], refined.phi, np.log(info.sigma[unknown]))
    v = np.clip(np.nan_to_num(v, neginf=_NOTHING), u.low + margin, u.high - margin)
    # Observation times are nodes of the integrator, whether or not they are points of the mesh.
    meshes = [np.union1d(p.mesh, e.moments) for p, e in zip(refined.paths, problem.data.experiments, strict=True)]
    every = list(zip(refined.paths, refined.condensed, meshes, strict=True))
    S = [p.sensitivity_at(lin, mesh) for p, lin, mesh in every]
    sds = [np.maximum(info.spread(maximum.likelihood.unknowns.lift(e, s))[0], info.accuracy) for e, s in enumerate(S)]
    log_known = np.log(np.nan_to_num(problem.known_sigma[~unknown], nan=1.0))
    told, parts = TrajectoryCode.of(problem, form, u.layout), 1
    while parts * max(map(len, meshes)) <= _MOST_STEPS or parts == 1:
        paths, nodes = zip(*(step_sequence(problem, e, mesh, parts) for e, mesh in enumerate(meshes)), strict=True)
        facts = TrajectoryData(parameters, paths, u.low, u.high, log_known)
        shown = (at[np.searchsorted(mesh, p.mesh)] for at, (p, _, mesh) in zip(nodes, every, strict=True))
        found = _Posed(told, u, facts, v, tuple(shown))
        worst = 0.0
        for x, sd, (path, _, mesh), at in zip(found.programs[1](facts, v[None]), sds, every, nodes, strict=True):
            error = np.abs(np.asarray(x)[0][at] - path.states(mesh)) / sd
            worst = max(worst, float(np.max(np.nan_to_num(error, nan=np.inf))))
        if worst <= _ACCURATE:
            return found
        parts *= 2
    raise InputError("the equations are too stiff to sample by explicit integration; use bootstrap or profile instead")


def _trajectory_posterior(
    maximum: Maximum, chains: int, draws: int, warm_up: int, seed: int, until: float | None, progress: Progress
) -> Any:
    problem, info, refined = maximum.problem, maximum.info, maximum.refined
    posed = ahead = _pose(maximum, refined)
    if until is not None:
        longer = extended(maximum.likelihood, refined, [np.array([until])] * len(refined.paths))
        if longer is None:
            raise InputError(f"the trajectory of this fit does not reach time {until:g}")
        refined = longer
        ahead = _pose(maximum, refined)
    u, facts, v = posed.unknowns, posed.facts, posed.v
    log_density, states = posed.programs
    # In r the bounds are gone; there the covariance is about that in v, divided by the slope of the transformation.
    centre = ds.unconstrain(v, u.low, u.high)
    slope = _slope(v, u.low, u.high)
    C = np.zeros((u.size, u.size))
    C[: u.of_phi.stop, : u.of_phi.stop] = info.covariance
    C[u.noise_index, u.noise_index] = 0.5 / info.freedom[np.array(problem.estimated_noise)]
    w, V = np.linalg.eigh(C / np.outer(slope, slope))
    R = V * np.sqrt(np.maximum(w, 1e-12 * w[-1]))
    rng = np.random.default_rng([seed, 7])
    start = centre + rng.normal(size=(chains, len(v))) @ R.T
    found = nuts.sample(log_density, facts, start, centre, R, draws, warm_up, seed, progress)
    vs = np.asarray(ds.constrain(found.positions, u.low, u.high)[0])
    every = vs.reshape(-1, vs.shape[-1])
    shown = every[np.linspace(0, len(every) - 1, min(_SHOWN, len(every))).round().astype(int)]
    t = [p.mesh for p in refined.paths]
    x = [np.asarray(s)[:, at] for s, at in zip(states(ahead.facts, shown), ahead.nodes, strict=True)]
    initial = [problem.model.states[k] for k in u.initial]
    pieces = {
        "initial": initial,
        "x0": vs[..., : u.of_phi.start],
        "phi": u.phi(vs),
        "sigma": np.exp(u.log_sigma(vs, facts.log_known)),
    }
    return found, pieces, t, x, {"steps": [len(path.h) for path in facts.paths]}


def _slope(v: Array, low: Array, high: Array) -> Array:
    """dv/dr of `density.constrain` at v."""
    with np.errstate(invalid="ignore", divide="ignore"):
        both = (v - low) * (high - v) / (high - low)
        one = np.where(np.isfinite(low), v - low, high - v)
    finite = np.isfinite(low).astype(int) + np.isfinite(high)
    return np.where(finite == 2, both, np.where(finite == 1, one, 1.0))


# --- ODIN


def _odin_posterior(
    estimate: OdinEstimate, chains: int, draws: int, warm_up: int, seed: int, until: float | None, progress: Progress
) -> Any:
    if until is not None:
        raise InputError("target='odin' knows the states inside the data only; leave out until")
    risk, gamma = estimate.engine, estimate.gamma
    form, target = ds.posterior_density(risk)
    at = risk.minimise(risk.mean, estimate.phi, estimate.rule, gamma=gamma)
    z, phi = at.z.T, at.phi
    box = ds.stacked_bounds(target)
    margin = np.where(np.isfinite(box[1] - box[0]), 1e-3 * np.nan_to_num(box[1] - box[0], posinf=1.0), 1e-3)
    v = np.clip(np.concatenate([z.ravel(), phi]), box[0] + margin, box[1] - margin)
    centre = ds.unconstrain(v, *box)
    data = (target, gamma, box)
    log_density, R = ds.unconstrained_density(form)[0], ds.whitening_matrix(form, data, centre)
    rng = np.random.default_rng([seed, 7])
    start = centre + rng.normal(size=(chains, len(v))) @ R.T
    found = nuts.sample(log_density, data, start, centre, R, draws, warm_up, seed, progress)
    vs = np.asarray(ds.constrain(found.positions, *box)[0])
    K, M = target.y.shape
    zs = vs[..., : K * M].reshape(*vs.shape[:-1], K, M)
    xs = risk.units.user(np.swapaxes(zs, -1, -2))  # (C, N, M, K)
    every = xs.reshape(-1, M, K)
    shown = every[np.linspace(0, len(every) - 1, min(_SHOWN, len(every))).round().astype(int)]
    t, x = [risk.t[b.rows] for b in risk.blocks], [shown[:, b.rows] for b in risk.blocks]
    x0 = np.concatenate([xs[:, :, b.rows][:, :, 0] for b in risk.blocks], -1)
    by_name = dict(zip(risk.problem.model.states, gamma.tolist(), strict=True))
    pieces = {"initial": risk.problem.model.states, "x0": x0, "phi": vs[..., K * M :]}
    return found, pieces, t, x, {"gamma": by_name}
