"""Posteriors of a fit by NUTS: of exact trajectories (θ, x0, σ), and of ODIN's model (states and θ at fixed γ)."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.checks import whole
from odinfer.errors import InputError, listed
from odinfer.matching.dense import Dense
from odinfer.matching.gamma import GammaRule
from odinfer.matching.search import Search
from odinfer.observation import plain
from odinfer.problem.problem import Problem
from odinfer.problem.unknowns import Layout, Unknowns
from odinfer.progress import Progress, silent
from odinfer.sampling import density as ds
from odinfer.sampling import nuts
from odinfer.sampling.diagnostics import ess, r_hat, verdict
from odinfer.trajectory.extension import extended
from odinfer.trajectory.refine import Refined
from odinfer.uncertainty.results import Posterior

if TYPE_CHECKING:
    from odinfer.uncertainty.maximum import Maximum

Array = NDArray[np.float64]

TARGETS = ("trajectory", "odin")
_SHOWN = 400  # draws of which states are kept
# Steps of the integrator are halved until its error is this share of the states' standard deviations at most.
_ACCURATE, _MOST_STEPS = 0.02, 20_000


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
        """Of a fit by ODIN with these options, which ended at θ and γ."""
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
        InputError: an option cannot be used, or blackjax is missing.
    """
    whole("chains", chains, 1)
    whole("draws", draws, 4)
    whole("warm_up", warm_up, 200)
    whole("seed", seed)
    nuts.blackjax()
    say = progress or silent
    clock = time.perf_counter()
    target, run = ("odin", _of_odin) if isinstance(start, OdinEstimate) else ("trajectory", _of_trajectories)
    found, parts, t, x, details = run(start, chains, draws, warm_up, seed, until, say)  # type: ignore[arg-type]
    seconds = time.perf_counter() - clock
    problem = start.problem
    theta = problem.theta(parts["phi"])
    named = {n: np.asarray(theta[..., j]) for n, j in zip(problem.free, problem.free_index, strict=True)}
    r_hats, sizes = ({n: g(d) for n, d in named.items()} for g in (r_hat, ess))
    divergences = int(found.stats["diverging"].sum())
    status, converged = verdict(r_hats, sizes, divergences / (chains * draws))
    loose = () if callable(problem.prior) else [n for n in named if n not in problem.prior and _unlimited(problem, n)]
    if not converged and loose:
        status += f"; bounds or a prior for {listed(loose)} may help"
    names, experiments = problem.model.states, [e.name for e in problem.data.experiments]
    labels = [s if len(experiments) == 1 else f"{e}:{s}" for e in experiments for s in names]
    x0 = dict(zip(labels, np.moveaxis(parts["x0"], -1, 0), strict=True))
    sigma = {n: parts["sigma"][..., k] for k, n in enumerate(names)} if "sigma" in parts else {}
    return Posterior(
        target, named, x0, sigma, found.stats, r_hats, sizes, divergences, status, converged, seconds,
        tuple(t), tuple(x), details,
    )  # fmt: skip


def _unlimited(problem: Problem, name: str) -> bool:
    return not np.isfinite(problem.limits(name)).all()


# --- trajectories


class Course(NamedTuple):
    """One experiment: steps h (n,) from times t (n,), inputs (n, U) at their starts, middles and ends; which nodes
    are observed (N,), and observations y (N, K) with 1 where they are (N, K)."""

    t: Any
    h: Any
    u: tuple[Any, Any, Any]
    at: Any
    y: Any
    seen: Any


class Facts(NamedTuple):
    """The numbers of the posterior of trajectories.

    Attributes:
        parameters: of odinfer.sampling.density, for the prior.
        courses: the experiments.
        low, high: bounds (P,) of the unknowns, noise included.
        log_known: log of the known noise levels.
    """

    parameters: ds.Parameters
    courses: tuple[Course, ...]
    low: Any
    high: Any
    log_known: Any


def _steps(form: ds.Form, course: Course, x0: Any, theta: Any) -> Any:
    """States at all nodes (n+1, K), by the classical Runge–Kutta method."""
    from odinfer._jax import jax, jnp

    f = form.model.f

    def step(x: Any, now: Any) -> Any:
        t, h, (a, b, c) = now
        k1 = f(t, x, theta, a)
        k2 = f(t + 0.5 * h, x + 0.5 * h * k1, theta, b)
        k3 = f(t + 0.5 * h, x + 0.5 * h * k2, theta, b)
        k4 = f(t + h, x + h * k3, theta, c)
        x = x + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        return x, x

    _, path = jax.lax.scan(step, x0, (course.t, course.h, course.u))
    return jnp.concatenate([x0[None], path])


@functools.lru_cache(maxsize=16)
def _trajectory_programs(form: ds.Form, u: Layout) -> tuple[Callable[..., Any], ...]:
    """The log density of r, and compiled: states at all nodes of draws v (S, P), per experiment."""
    from odinfer._jax import jax, jnp

    def log_density(facts: Facts, r: Any) -> Any:
        v, jacobian = ds.constrain(r, facts.low, facts.high)
        phi, sigma = u.phi(v), jnp.exp(u.log_sigma(v, facts.log_known, jnp))
        theta = ds.theta(form, facts.parameters, phi)
        value = jacobian + ds.log_prior(form, facts.parameters, phi)
        for e, course in enumerate(facts.courses):
            x = _steps(form, course, u.x0(v, e), theta)[course.at]
            value = value + plain.log_density(x, course.y, course.seen, sigma)
        return value

    def states(facts: Facts, v: Any) -> Any:
        theta = ds.theta(form, facts.parameters, u.phi(v))
        return [_steps(form, c, u.x0(v, e), theta) for e, c in enumerate(facts.courses)]

    return ds.forwards(log_density), jax.jit(jax.vmap(states, (None, 0)))


def _courses(problem: Problem, refined: Refined, parts: int) -> tuple[Course, ...]:
    """Every step of the meshes divided into `parts`.

    Steps of length zero at the end make their number one of a few, so that data of the same times seldom need a new
    compilation.
    """
    found = []
    for e, path in enumerate(refined.paths):
        grid = np.append(
            np.linspace(path.mesh[:-1], path.mesh[1:], parts, endpoint=False, axis=1).ravel(), path.mesh[-1]
        )
        size = 16.0
        while round(size) < len(grid):
            size *= 1.25
        grid = np.append(grid, np.full(round(size) - len(grid), grid[-1]))
        t, h = grid[:-1], np.diff(grid)
        y = problem.data.experiments[e].y
        u = tuple(problem.inputs_at(e, s) for s in (t, t + 0.5 * h, t + h))
        at = np.searchsorted(path.mesh, problem.data.experiments[e].t) * parts
        found.append(Course(t, h, u, at, np.nan_to_num(y), np.isfinite(y).astype(float)))  # type: ignore[arg-type]
    return tuple(found)


class _Posed(NamedTuple):
    """The posterior of trajectories: its code and numbers, v (P,) at the maximum, and steps per step of the mesh."""

    form: ds.Form
    unknowns: Unknowns
    facts: Facts
    v: Array
    parts: int

    @property
    def programs(self) -> tuple[Callable[..., Any], ...]:
        return _trajectory_programs(self.form, self.unknowns.layout)


def _posed(maximum: Maximum, refined: Refined) -> _Posed:
    """With an integrator that is accurate enough; `refined` may go on beyond the data."""
    problem, info = maximum.problem, maximum.info
    form, parameters = ds.of_problem(problem)
    u, unknown = Unknowns(problem, noise=True), np.isnan(problem.known_sigma)
    inside = np.isfinite(u.low) & np.isfinite(u.high)
    margin = np.where(inside, 1e-6 * np.where(inside, u.high - u.low, 1.0), 1e-9)
    v = u.join([p.x0 for p in refined.paths], refined.phi, np.log(info.sigma[unknown]))
    v = np.clip(v, u.low + margin, u.high - margin)
    S = [p.sensitivity_at(lin, p.mesh) for p, lin in zip(refined.paths, refined.condensed, strict=True)]
    sds = [np.maximum(info.spread(maximum.like.unknowns.lift(e, s))[0], info.accuracy) for e, s in enumerate(S)]
    log_known = np.log(problem.known_sigma[~unknown])
    parts = 1
    while parts * max(len(p.mesh) for p in refined.paths) <= _MOST_STEPS or parts == 1:
        facts = Facts(parameters, _courses(problem, refined, parts), u.low, u.high, log_known)
        found = _Posed(form, u, facts, v, parts)
        worst = 0.0
        for x, sd, path in zip(found.programs[1](facts, v[None]), sds, refined.paths, strict=True):
            error = np.abs(np.asarray(x)[0][: parts * len(path.mesh) : parts] - path.nodes) / sd
            worst = max(worst, float(np.max(np.nan_to_num(error, nan=np.inf))))
        if worst <= _ACCURATE:
            return found
        parts *= 2
    raise InputError("the equations are too stiff to sample by explicit integration; use bootstrap or profile instead")


def _of_trajectories(
    maximum: Maximum, chains: int, draws: int, warm_up: int, seed: int, until: float | None, say: Progress
) -> Any:
    problem, info, refined = maximum.problem, maximum.info, maximum.refined
    posed = ahead = _posed(maximum, refined)
    if until is not None:
        longer = extended(maximum.like, refined, [np.array([until])] * len(refined.paths))
        if longer is None:
            raise InputError(f"the trajectory of this fit does not reach time {until:g}")
        refined = longer
        ahead = _posed(maximum, refined)
    u, facts, v = posed.unknowns, posed.facts, posed.v
    log_density, states = posed.programs
    # In r the bounds are gone; there the covariance is about that in v, divided by the slope of the transformation.
    centre = ds.unconstrain(v, u.low, u.high)
    slope = _slope(v, u.low, u.high)
    C = np.zeros((u.size, u.size))
    C[: u.of_phi.stop, : u.of_phi.stop] = info.covariance
    C[u.noise_index, u.noise_index] = 0.5 / info.freedom[np.isnan(problem.known_sigma)]
    w, V = np.linalg.eigh(C / np.outer(slope, slope))
    R = V * np.sqrt(np.maximum(w, 1e-12 * w[-1]))
    rng = np.random.default_rng([seed, 7])
    start = centre + rng.normal(size=(chains, len(v))) @ R.T
    found = nuts.sample(log_density, facts, start, centre, R, draws, warm_up, seed, say)
    vs = np.asarray(ds.constrain(found.positions, u.low, u.high)[0])
    every = vs.reshape(-1, vs.shape[-1])
    shown = every[np.linspace(0, len(every) - 1, min(_SHOWN, len(every))).round().astype(int)]
    t = [p.mesh for p in refined.paths]
    of_shown = zip(states(ahead.facts, shown), t, strict=True)
    x = [np.asarray(s)[:, : ahead.parts * len(m) : ahead.parts] for s, m in of_shown]
    pieces = {"x0": vs[..., : u.of_phi.start], "phi": u.phi(vs), "sigma": np.exp(u.log_sigma(vs, facts.log_known))}
    return found, pieces, t, x, {"steps": [len(c.t) for c in facts.courses]}


def _slope(v: Array, low: Array, high: Array) -> Array:
    """dv/dr of `density.constrain` at v."""
    with np.errstate(invalid="ignore", divide="ignore"):
        both = (v - low) * (high - v) / (high - low)
        one = np.where(np.isfinite(low), v - low, high - v)
    finite = np.isfinite(low).astype(int) + np.isfinite(high)
    return np.where(finite == 2, both, np.where(finite == 1, one, 1.0))


# --- ODIN


def _of_odin(
    estimate: OdinEstimate, chains: int, draws: int, warm_up: int, seed: int, until: float | None, say: Progress
) -> Any:
    if until is not None:
        raise InputError("target='odin' knows the states inside the data only; leave out until")
    risk, gamma = estimate.engine, estimate.gamma
    form, target = ds.of_risk(risk)
    at = risk.minimise(risk.mean, estimate.phi, estimate.rule, gamma=gamma)
    z, phi = at.z.T, at.phi
    box = ds.box(target)
    margin = np.where(np.isfinite(box[1] - box[0]), 1e-3 * np.nan_to_num(box[1] - box[0], posinf=1.0), 1e-3)
    v = np.clip(np.concatenate([z.ravel(), phi]), box[0] + margin, box[1] - margin)
    centre = ds.unconstrain(v, *box)
    data = (target, gamma, box)
    log_density, R = ds.unbounded(form)[0], ds.rounding(form, data, centre)
    rng = np.random.default_rng([seed, 7])
    start = centre + rng.normal(size=(chains, len(v))) @ R.T
    found = nuts.sample(log_density, data, start, centre, R, draws, warm_up, seed, say)
    vs = np.asarray(ds.constrain(found.positions, *box)[0])
    K, M = target.y.shape
    zs = vs[..., : K * M].reshape(*vs.shape[:-1], K, M)
    xs = risk.units.user(np.swapaxes(zs, -1, -2))  # (C, N, M, K)
    every = xs.reshape(-1, M, K)
    shown = every[np.linspace(0, len(every) - 1, min(_SHOWN, len(every))).round().astype(int)]
    t, x = [risk.t[b.rows] for b in risk.blocks], [shown[:, b.rows] for b in risk.blocks]
    x0 = np.concatenate([xs[:, :, b.rows][:, :, 0] for b in risk.blocks], -1)
    by_name = dict(zip(risk.problem.model.states, gamma.tolist(), strict=True))
    return found, {"x0": x0, "phi": vs[..., K * M :]}, t, x, {"gamma": by_name}
