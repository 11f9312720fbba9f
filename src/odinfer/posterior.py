"""Posteriors of a fit by NUTS: of exact trajectories (θ, x0, σ), and of ODIN's model (states and θ at fixed γ)."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer import chains as ch
from odinfer import density as ds
from odinfer import nuts
from odinfer.errors import InputError, listed, nearest
from odinfer.information import Information
from odinfer.methods.odin import Odin
from odinfer.problem import Problem
from odinfer.refine import Likelihood, Refined
from odinfer.risk import Risk
from odinfer.solve import gauss_newton
from odinfer.trajectories import extended, refined_again
from odinfer.uncertainty import Posterior

if TYPE_CHECKING:
    from odinfer.fit import Fit, Progress

Array = NDArray[np.float64]

TARGETS = ("trajectory", "odin")
_SHOWN = 400  # draws of which states are kept
# Steps of the integrator are halved until its error is this share of the states' standard deviations at most.
_ACCURATE, _MOST_STEPS = 0.02, 20_000


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
        parameters: of odinfer.density, for the prior.
        courses: the experiments.
        low, high: bounds (P,) of v = (x0 of every experiment, φ, log σ of the unknown noise).
        log_known: log of the known noise levels; place: of every state among the unknown followed by these (K,).
    """

    parameters: ds.Parameters
    courses: tuple[Course, ...]
    low: Any
    high: Any
    log_known: Any
    place: Any


def sample(
    fit: Fit, problem: Problem, target: str = "trajectory", chains: int = 4, draws: int = 1000, seed: int = 0,
    warm_up: int = 400, until: float | None = None, progress: Progress | None = None,
) -> Posterior:  # fmt: skip
    """Draws by NUTS; see `Fit.sample`.

    Parameters without a prior are uniform in θ within their bounds, initial values uniform, and unknown noise has the
    prior 1/σ.

    Args:
        warm_up: draws before, in which the step widths adapt.
        until: a time beyond the data up to which the states of the draws are kept too (target "trajectory").

    Raises:
        InputError: an option cannot be used, blackjax is missing, or the fit is not at a maximum of the likelihood.
    """
    if target not in TARGETS:
        raise InputError(f"unknown target '{target}'{nearest(str(target), TARGETS)}")
    for what, value, least in (
        ("chains", chains, 1),
        ("draws", draws, 4),
        ("warm_up", warm_up, 200),
        ("seed", seed, 0),
    ):
        if not isinstance(value, int | np.integer) or value < least:
            raise InputError(f"{what} must be a whole number from {least} on, not {value!r}")
    ch.blackjax()
    say = progress or (lambda what, share: None)
    clock = time.perf_counter()
    run = _of_trajectories if target == "trajectory" else _of_odin
    found, parts, t, x, details = run(fit, problem, chains, draws, warm_up, seed, until, say)
    seconds = time.perf_counter() - clock
    theta = problem.theta(parts["phi"])
    named = {n: np.asarray(theta[..., j]) for n, j in zip(problem.free, problem.free_index, strict=True)}
    r_hats, sizes = ({n: g(d) for n, d in named.items()} for g in (ch.r_hat, ch.ess))
    divergences = int(found.stats["diverging"].sum())
    status, converged = ch.verdict(r_hats, sizes, divergences / (chains * draws))
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


def _steps(form: ds.Form, facts: Facts, course: Course, x0: Any, theta: Any) -> Any:
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


def _split(form: ds.Form, facts: Facts, v: Any) -> tuple[Any, Any, Any]:
    """x0 (..., E, K), φ (..., F) and σ (..., K) from v (..., P)."""
    from odinfer._jax import jnp

    E, K, F = len(facts.courses), len(form.model.states), len(form.free)
    known = jnp.broadcast_to(facts.log_known, (*v.shape[:-1], len(facts.log_known)))
    log_sigma = jnp.concatenate([v[..., E * K + F :], known], -1)[..., facts.place]
    return v[..., : E * K].reshape(*v.shape[:-1], E, K), v[..., E * K : E * K + F], jnp.exp(log_sigma)


@functools.lru_cache(maxsize=16)
def _trajectory_programs(form: ds.Form) -> tuple[Callable[..., Any], ...]:
    """The log density of r, and compiled: states at all nodes of draws v (S, P), per experiment."""
    from odinfer._jax import jax, jnp

    def log_density(facts: Facts, r: Any) -> Any:
        v, jacobian = ds.constrain(r, facts.low, facts.high)
        x0, phi, sigma = _split(form, facts, v)
        theta = ds.theta(form, facts.parameters, phi)
        value = jacobian + ds.log_prior(form, facts.parameters, phi)
        for start, course in zip(x0, facts.courses, strict=True):
            x = _steps(form, facts, course, start, theta)[course.at]
            z = jnp.where(course.seen > 0, (x - course.y) / sigma, 0.0)
            value = value - 0.5 * (z**2).sum() - (course.seen.sum(0) * jnp.log(sigma)).sum()
        return value

    def states(facts: Facts, v: Any) -> Any:
        x0, phi, _ = _split(form, facts, v)
        theta = ds.theta(form, facts.parameters, phi)
        return [_steps(form, facts, c, start, theta) for start, c in zip(x0, facts.courses, strict=True)]

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


def _facts(
    problem: Problem, like: Likelihood, refined: Refined, info: Information
) -> tuple[ds.Form, Facts, Array, int]:
    """The posterior's numbers with an integrator that is accurate enough, v (P,) at the maximum, and the parts."""
    form, parameters = ds.of_problem(problem)
    unknown = np.isnan(problem.known_sigma)
    E, K = len(refined.paths), len(unknown)
    free = np.full(int(unknown.sum()), np.inf)
    low, high = np.concatenate([like.low, -free]), np.concatenate([like.high, free])
    place = np.where(unknown, np.cumsum(unknown) - 1, unknown.sum() + np.cumsum(~unknown) - 1)
    v = np.concatenate([*(p.x0 for p in refined.paths), refined.phi, np.log(info.sigma[unknown])])
    inside = np.isfinite(low) & np.isfinite(high)
    margin = np.where(inside, 1e-6 * np.where(inside, high - low, 1.0), 1e-9)
    v = np.clip(v, low + margin, high - margin)
    _, states = _trajectory_programs(form)
    S = [p.sensitivity_at(lin, p.mesh) for p, lin in zip(refined.paths, refined.condensed, strict=True)]
    parts = 1
    while True:
        facts = Facts(
            parameters, _courses(problem, refined, parts), low, high, np.log(problem.known_sigma[~unknown]), place
        )
        worst = 0.0
        for e, (x, path) in enumerate(zip(states(facts, v[None]), refined.paths, strict=True)):
            a = np.zeros((*S[e].shape[:2], E * K + len(refined.phi)))
            a[..., np.r_[e * K : (e + 1) * K, E * K : a.shape[-1]]] = S[e]
            sd = np.maximum(info.spread(a)[0], info.accuracy)
            error = np.abs(np.asarray(x)[0][: parts * len(path.mesh) : parts] - path.nodes) / sd
            worst = max(worst, float(np.max(np.nan_to_num(error, nan=np.inf))))
        if worst <= _ACCURATE:
            return form, facts, v, parts
        parts *= 2
        if parts * max(len(p.mesh) for p in refined.paths) > _MOST_STEPS:
            raise InputError(
                "the equations are too stiff to sample by explicit integration; use bootstrap or profile instead"
            )


def _of_trajectories(
    fit: Fit, problem: Problem, chains: int, draws: int, warm_up: int, seed: int, until: float | None, say: Any
) -> Any:
    like, refined, info = refined_again(fit, problem)
    form, facts, v, parts = _facts(problem, like, refined, info)
    ahead = facts
    if until is not None:
        longer = extended(problem, refined, [np.array([until])] * len(refined.paths))
        if longer is None:
            raise InputError(f"the trajectory of this fit does not reach time {until:g}")
        refined = longer
        _, ahead, _, parts = _facts(problem, like, refined, info)
    log_density, states = _trajectory_programs(form)
    # In r the bounds are gone; there the covariance is about that in v, divided by the slope of the transformation.
    centre = ds.unconstrain(v, facts.low, facts.high)
    slope = _slope(v, facts.low, facts.high)
    unknown = np.isnan(problem.known_sigma)
    C = np.zeros((len(v), len(v)))
    P = info.covariance.shape[0]
    C[:P, :P] = info.covariance
    C[np.arange(P, len(v)), np.arange(P, len(v))] = 0.5 / info.freedom[unknown]
    w, V = np.linalg.eigh(C / np.outer(slope, slope))
    R = V * np.sqrt(np.maximum(w, 1e-12 * w[-1]))
    rng = np.random.default_rng([seed, 7])
    start = centre + rng.normal(size=(chains, len(v))) @ R.T
    found = nuts.sample(log_density, facts, start, centre, R, draws, warm_up, seed, say)
    vs = np.asarray(ds.constrain(found.positions, facts.low, facts.high)[0])
    x0, phi, sigma = (np.asarray(part) for part in _split(form, facts, vs))
    every = vs.reshape(-1, vs.shape[-1])
    shown = every[np.linspace(0, len(every) - 1, min(_SHOWN, len(every))).round().astype(int)]
    t = [p.mesh for p in refined.paths]
    x = [np.asarray(s)[:, : parts * len(m) : parts] for s, m in zip(states(ahead, shown), t, strict=True)]
    pieces = {"x0": x0.reshape(*vs.shape[:-1], -1), "phi": phi, "sigma": sigma}
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
    fit: Fit, problem: Problem, chains: int, draws: int, warm_up: int, seed: int, until: float | None, say: Any
) -> Any:
    if fit.method != "odin" or not all(np.isfinite(g) for g in fit.gamma.values()):
        raise InputError("target='odin' needs a fit by odin with its gamma")
    if until is not None:
        raise InputError("target='odin' knows the states inside the data only; leave out until")
    options: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in fit.options.items()}
    method = Odin(**options)
    risk = replace(method, algebra="dense").risk(problem)
    assert isinstance(risk, Risk)
    gamma = np.array([fit.gamma[s] for s in problem.model.states])
    form, target = ds.of_risk(risk)
    theta = np.array([fit.stages["odin"].theta[p] for p in problem.model.parameters])
    at = gauss_newton(risk, risk.mean, problem.phi(theta), method.rule, gamma=gamma)
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
    xs = risk.units.mean + risk.units.scale * np.swapaxes(zs, -1, -2)  # (C, N, M, K)
    every = xs.reshape(-1, M, K)
    shown = every[np.linspace(0, len(every) - 1, min(_SHOWN, len(every))).round().astype(int)]
    t, x = [risk.t[b.rows] for b in risk.blocks], [shown[:, b.rows] for b in risk.blocks]
    x0 = np.concatenate([xs[:, :, b.rows][:, :, 0] for b in risk.blocks], -1)
    return found, {"x0": x0, "phi": vs[..., K * M :]}, t, x, {"gamma": dict(fit.gamma)}
