"""Log densities that the samplers share, in JAX: GP prior, data, gradient match, prior on θ.

Everything is standardised as in `odinfer.odin.risk` and state-first: z (K, M) holds K states at the M grid points
of all experiments, whose matrices stand block-diagonally. Parameters are φ (F,), each on its own scale; a parameter
without a prior is uniform in θ within its bounds, so where φ = log θ the density of φ has the Jacobian θ.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from odinfer.errors import InputError
from odinfer.gp.standardisation import Units
from odinfer.model.model import Model
from odinfer.model.priors import FAMILIES, FLAT, GAMMA, log_density
from odinfer.odin.risk import Risk
from odinfer.problem.inequalities import jax_penalty
from odinfer.problem.problem import Problem

Array = NDArray[np.float64]
Range = tuple[float, float]

_FORWARD_MODE_LIMIT = (
    24  # variables; protein transduction has 16, where the forward mode is 1.8 times as fast with two chains
)


@dataclass(frozen=True)
class DensityCode:
    """What of a density is code rather than numbers: compiled functions are kept per Form.

    Attributes:
        model: the equations.
        free, is_log: of the estimated parameters, their places among all and whether φ is log θ.
        functions: (place, −log p) of parameters whose prior is a function.
        joint: −log p as a function of all parameters by name, if the prior is such a function.
        bounded: whether any state is bounded.
    """

    model: Model
    free: tuple[int, ...]
    is_log: tuple[bool, ...]
    functions: tuple[tuple[int, Callable[..., Any]], ...]
    joint: Callable[..., Any] | None
    bounded: bool


class ParameterData(NamedTuple):
    """What a density has to know about θ, in numbers.

    Attributes:
        low, high: bounds (F,) of φ.
        template: fixed parameters at their places (P,).
        kind, a, b: the named prior of every free parameter (F,).
    """

    low: Any
    high: Any
    template: Any
    kind: Any
    a: Any
    b: Any


class DensityData(NamedTuple):
    """The numbers of a density, an argument of everything compiled.

    Attributes:
        t, u: times (M,) and inputs (M, U) in the user's units.
        y, weight: standardised observations and 1/σ², zero where missing, both (K, M).
        C_inv, D, Q, w: operators of the Gaussian processes, A = Q diag(w) Qᵀ; (K, M, M) and w (K, M).
        mean, scale, time: the units.
        z_low, z_high: bounds (K,).
        parameters: bounds, fixed values and priors of θ.
    """

    t: Any
    u: Any
    y: Any
    weight: Any
    C_inv: Any
    D: Any
    Q: Any
    w: Any
    mean: Any
    scale: Any
    time: Any
    z_low: Any
    z_high: Any
    parameters: ParameterData

    @property
    def units(self) -> Units:
        return Units(self.mean, self.scale, self.time)


def parameter_density(
    problem: Problem,
    theta_range: Range | None = None,
    theta_prior: tuple[int, float, float] = (FLAT, 0.0, 1.0),
    bounded: bool = False,
) -> tuple[DensityCode, ParameterData]:
    """What a problem says about its model and parameters; for the arguments see `posterior_density`."""
    p = problem
    limits = np.array([p.limits(name) for name in p.free]).reshape(-1, 2)
    if theta_range is not None:
        limits = np.stack([np.maximum(limits[:, 0], theta_range[0]), np.minimum(limits[:, 1], theta_range[1])], -1)
        for name, (low, high) in zip(p.free, limits, strict=True):
            if not low < high:
                raise InputError(f"theta_range {theta_range} and the bounds of '{name}' have nothing in common")
    table = np.tile(np.array(theta_prior, float), (len(p.free), 1))
    given = {} if callable(p.prior) else {name: p.prior[name] for name in p.free if name in p.prior}
    for name, prior in given.items():
        table[p.free.index(name)] = (FLAT, 0.0, 1.0) if callable(prior) else (FAMILIES[prior[0]].kind, *prior[1:])
    if theta_prior[0] == GAMMA:
        limits[table[:, 0] == GAMMA, 0] = np.maximum(limits[table[:, 0] == GAMMA, 0], 0.0)
    with np.errstate(divide="ignore"):
        low, high = (np.where(p.is_log, np.log(np.maximum(b, 0.0)), b) for b in limits.T)
    functions = tuple((p.parameters.index(n), f) for n, f in given.items() if callable(f))
    joint = p.prior if callable(p.prior) else None
    form = DensityCode(p.model, tuple(p.free_index.tolist()), tuple(p.is_log.tolist()), functions, joint, bounded)
    template = np.array([p.fixed.get(name, 0.0) for name in p.parameters])
    return form, ParameterData(low, high, template, table[:, 0], table[:, 1], table[:, 2])


def posterior_density(
    risk: Risk,
    state_range: float | None = None,
    theta_range: Range | None = None,
    theta_prior: tuple[int, float, float] = (FLAT, 0.0, 1.0),
) -> tuple[DensityCode, DensityData]:
    """The density that belongs to a risk; for the arguments see `odinfer.paper.sampler_options.SamplerOptions`."""
    K = len(risk.hypers)

    def joined(name: str) -> Array:
        return np.stack([block_diag(*[getattr(b.smoother, name)[k] for b in risk.blocks]) for k in range(K)])

    z_low, z_high = risk.z_bounds
    if state_range is not None:
        z_low, z_high = np.maximum(z_low, -state_range), np.minimum(z_high, state_range)
    form, parameters = parameter_density(
        risk.problem, theta_range, theta_prior, bool(np.isfinite([*z_low, *z_high]).any())
    )
    return form, DensityData(
        risk.t, risk.u, np.concatenate([b.y for b in risk.blocks], 1),
        np.concatenate([b.weight for b in risk.blocks], 1), joined("C_inv"), joined("D"), joined("Q"), risk.w,
        risk.units.mean, risk.units.scale, risk.units.time, z_low, z_high, parameters,
    )  # fmt: skip


def theta(form: DensityCode, parameters: ParameterData, phi: Any) -> Any:
    """All parameters (P,) from the free ones."""
    from odinfer._jax import jnp

    if not form.free:
        return jnp.asarray(parameters.template)
    is_log = np.array(form.is_log)
    values = jnp.where(is_log, jnp.exp(jnp.where(is_log, phi, 0.0)), phi) if is_log.any() else phi
    return jnp.asarray(parameters.template).at[np.array(form.free)].set(values)


def vector_field_at(form: DensityCode, target: DensityData, i: Any, z: Any, full: Any) -> Any:
    """The standardised field (K,) at grid point i, its states z (K,) and all parameters."""
    units = target.units
    return units.standard_slope(form.model.f(target.t[i], units.user(z), full, target.u[i]))


def vector_field(form: DensityCode, target: DensityData, z: Any, phi: Any) -> Any:
    """The standardised field (K, M) at all grid points."""
    from odinfer._jax import jax

    full = theta(form, target.parameters, phi)
    x = target.units.user(z.T)
    f = jax.vmap(form.model.f, (0, 0, None, 0))(target.t, x, full, target.u)
    return target.units.standard_slope(f).T


def log_prior(form: DensityCode, parameters: ParameterData, phi: Any) -> Any:
    """log p(φ) within the bounds, up to a constant: log p(θ) and the Jacobian of log scales."""
    from odinfer._jax import jnp

    if not form.free:
        return jnp.zeros(())
    full = theta(form, parameters, phi)
    total = log_density(parameters.kind, parameters.a, parameters.b, full[np.array(form.free)])
    total += jnp.where(np.array(form.is_log), phi, 0.0).sum()
    for place, function in form.functions:
        total -= function(full[place])
    if form.joint is not None:
        total -= form.joint(dict(zip(form.model.parameters, full, strict=True)))
    return total


def batched_matvec(matrices: Any, vectors: Any) -> Any:
    """(K, N, M) times (K, M), written as a sum: at such sizes as fast as a matrix product, and compiled sooner."""
    return (matrices * vectors[:, None, :]).sum(-1)


def log_data(target: DensityData, z: Any) -> Any:
    """log N(y | z, σ²I) up to a constant."""
    return -0.5 * (target.weight * (z - target.y) ** 2).sum()


def log_gp(target: DensityData, z: Any) -> Any:
    """log N(z | 0, C) up to a constant."""
    return -0.5 * (z * batched_matvec(target.C_inv, z)).sum()


def log_gradient(target: DensityData, z: Any, f: Any, gamma: Any) -> Any:
    """log N(f | Dz, A + γI) with its normalising term in γ (K,)."""
    from odinfer._jax import jnp

    e = batched_matvec(jnp.swapaxes(target.Q, 1, 2), f - batched_matvec(target.D, z))
    spread = target.w + gamma[:, None]
    return -0.5 * (e**2 / spread + jnp.log(spread)).sum()


def log_posterior(form: DensityCode, target: DensityData, z: Any, phi: Any, gamma: Any) -> Any:
    """log p(z, φ | y, γ) up to a constant: the density that FGPGM samples."""
    match = log_gradient(target, z, vector_field(form, target, z, phi), gamma)
    prior = log_prior(form, target.parameters, phi) - jax_penalty(form.model, theta(form, target.parameters, phi))
    return log_gp(target, z) + log_data(target, z) + match + prior


class QuadraticForm(NamedTuple):
    """−log of the Gaussian factors as ½ sᵀ B s − bᵀ z in s = (z, f), per state.

    Attributes:
        B: [[H, −Gᵀ], [−G, L]] (K, 2M, 2M) with L = (A+γI)⁻¹, G = LD, H = C⁻¹ + DᵀLD + diag(weight).
        b: weight·y (K, M).
    """

    B: Any
    b: Any


def quadratic_form(target: DensityData, gamma: Array) -> QuadraticForm:
    """The Gaussian factors at γ (K,)."""
    eye = np.eye(target.y.shape[1])
    L = (target.Q / (target.w + gamma[:, None])[:, None, :]) @ np.swapaxes(target.Q, 1, 2)
    G = L @ target.D
    H = target.C_inv + np.swapaxes(target.D, 1, 2) @ G + target.weight[..., None] * eye
    B = np.concatenate([np.concatenate([H, -np.swapaxes(G, 1, 2)], 2), np.concatenate([-G, L], 2)], 1)
    return QuadraticForm(0.5 * (B + np.swapaxes(B, 1, 2)), target.weight * target.y)


def truncated_normal_step(u: Any, old: Any, width: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """A Gaussian step truncated to the bounds, and log q(old | new) − log q(new | old)."""
    from odinfer._jax import jax, jnp

    ndtr = jax.scipy.special.ndtr
    below, above = ndtr((low - old) / width), ndtr((high - old) / width)
    new = jnp.clip(old + width * jax.scipy.special.ndtri(below + u * (above - below)), low, high)
    back = ndtr((high - new) / width) - ndtr((low - new) / width)
    return new, jnp.log(above - below) - jnp.log(back)


def unconstrain(v: Array, low: Array, high: Array) -> Array:
    """From inside the bounds to the real line: logit, log or nothing, whichever bounds are finite."""
    with np.errstate(invalid="ignore", divide="ignore"):
        both = np.log(v - low) - np.log(high - v)
        one = np.where(np.isfinite(low), np.log(v - low), -np.log(high - v))
    finite = np.isfinite(low).astype(int) + np.isfinite(high)
    return np.where(finite == 2, both, np.where(finite == 1, one, v))


def constrain(r: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """The inverse of `unconstrain`, and the log of its Jacobian summed up."""
    from odinfer._jax import jax, jnp

    has_low, has_high = jnp.isfinite(low), jnp.isfinite(high)
    both, above, below = has_low & has_high, has_low & ~has_high, ~has_low & has_high
    a, b = jnp.where(has_low, low, 0.0), jnp.where(has_high, high, 1.0)
    s = jax.nn.sigmoid(r)
    e = jnp.exp(jnp.where(above, r, jnp.where(below, -r, 0.0)))
    v = jnp.where(both, a + (b - a) * s, jnp.where(above, a + e, jnp.where(below, b - e, r)))
    inside = jnp.log(jnp.where(both, b - a, 1.0)) + jax.nn.log_sigmoid(r) + jax.nn.log_sigmoid(-r)
    return v, jnp.where(both, inside, jnp.where(above, r, jnp.where(below, -r, 0.0))).sum()


def forward_mode_gradient(log_density: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The same function of (data, r), whose derivative by r is taken in the forward mode where r is short.

    Of a long recursion in few variables that takes half the time: no step is kept, and none is run backwards.
    """
    from odinfer._jax import jax, jnp

    def with_gradient(data: Any, r: Any) -> Any:
        def along(e: Any) -> Any:
            return jax.jvp(lambda q: log_density(data, q), (r,), (e,))

        return jax.vmap(along, out_axes=(None, 0))(jnp.eye(len(r)))

    ahead = jax.custom_vjp(log_density)
    ahead.defvjp(with_gradient, lambda gradient, g: (None, g * gradient))
    return lambda data, r: (ahead if len(r) <= _FORWARD_MODE_LIMIT else log_density)(data, r)


def stacked_bounds(target: DensityData) -> tuple[Array, Array]:
    """Bounds (K·M + F,) of the vector (z, φ)."""
    M = target.y.shape[1]
    low = np.concatenate([np.repeat(target.z_low, M), target.parameters.low])
    return low, np.concatenate([np.repeat(target.z_high, M), target.parameters.high])


@functools.lru_cache(maxsize=16)
def unconstrained_density(form: DensityCode) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    """The log density of r = (z, φ) without bounds, given data = (target, γ, box); and compiled its Hessian by r."""
    from odinfer._jax import jax

    def log_density(data: Any, r: Any) -> Any:
        target, gamma, bounds = data
        v, jacobian = constrain(r, *bounds)
        K, M = target.y.shape
        return log_posterior(form, target, v[: K * M].reshape(K, M), v[K * M :], gamma) + jacobian

    return log_density, jax.jit(jax.hessian(log_density, 1))


def whitening_matrix(form: DensityCode, data: Any, centre: Array) -> Array:
    """R such that R R' is about the covariance: long thin valleys of strongly correlated states become round."""
    w, V = np.linalg.eigh(-np.nan_to_num(np.asarray(unconstrained_density(form)[1](data, centre))))
    return np.asarray(V / np.sqrt(np.maximum(np.abs(w), 1e-9 * np.abs(w).max() + 1e-12)))
