"""The log densities that the samplers share: the GP prior, the data, the gradient match and the prior on θ, in JAX.

Everything is standardised as in `odinfer.risk` and state-first: z (K, M) holds K states at the M grid points of all
experiments, whose matrices stand block-diagonally. Parameters are φ (F,), each on its own scale; a parameter without
a prior is uniform in θ within its bounds, so where φ = log θ the density of φ has the Jacobian θ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from odinfer.errors import InputError, nearest
from odinfer.methods.odin import Odin
from odinfer.model import Model
from odinfer.problem import Problem
from odinfer.risk import Risk

Array = NDArray[np.float64]
Range = tuple[float, float]

FLAT, NORMAL, LOGNORMAL, GAMMA = range(4)
_KINDS = {"uniform": FLAT, "normal": NORMAL, "lognormal": LOGNORMAL}
STARTS = ("odin", "paper")


@dataclass(frozen=True, kw_only=True)
class SamplerOptions:
    """The options that methods by Markov chain Monte Carlo share.

    Args:
        start: "odin" starts all chains around ODIN's Gauss–Newton solution, so that short chains have little way to
            go; "paper" starts at the GP means and θ = |N(0, 1)|, as the authors do.
        state_range: standardised states lie within ± this; None for the problem's bounds alone.
        theta_range: bounds of every θ within those of the problem; None for the problem's alone.
        kernel, jitter, grid, temper, shared, scale_time, hyper_bounds, thorough, weak_prior: of the Gaussian
            processes, as in `odinfer.Odin`.
    """

    start: str = "odin"
    state_range: float | None = None
    theta_range: Range | None = None
    kernel: str = "auto"
    jitter: float = 1e-4
    grid: int = 1
    temper: float = 1.0
    shared: bool = False
    scale_time: bool = True
    hyper_bounds: Range = (1e-10, 1e6)
    thorough: bool = False
    weak_prior: bool = True

    def __post_init__(self) -> None:
        self.odin("learn")  # checks the options of the Gaussian processes
        if self.start not in STARTS:
            raise InputError(f"unknown start '{self.start}'{nearest(str(self.start), STARTS)}")
        if self.state_range is not None and not self.state_range > 0:
            raise InputError(f"state_range must be positive, not {self.state_range}")
        if self.theta_range is not None and not self.theta_range[0] < self.theta_range[1]:
            raise InputError(f"theta_range must be low < high, not {self.theta_range}")

    def odin(self, gamma: str | float) -> Odin:
        """ODIN on the same Gaussian processes: it sets up the matrices and finds where to start."""
        return Odin(
            kernel=self.kernel, gamma=gamma, jitter=self.jitter, grid=self.grid, temper=self.temper,
            shared=self.shared, scale_time=self.scale_time, hyper_bounds=self.hyper_bounds,
            thorough=self.thorough, weak_prior=self.weak_prior, refine=False,
        )  # fmt: skip

    def begin(
        self, problem: Problem, gamma: str | float, chains: int, seed: int, theta_prior: tuple[int, float, float]
    ) -> tuple[Risk, Form, Target, Array, Array]:
        """The density, and where its chains start.

        Args:
            gamma: at which ODIN's solution is sought.
            theta_prior: kind and two numbers, of parameters without a prior of their own.

        Returns:
            The risk, the density's form and numbers, and starts z (chains, K, M) and φ (chains, F) inside all bounds.
        """
        rng = np.random.default_rng(seed)
        odin = self.odin(gamma)
        solutions: Sequence[Any] = ()
        if self.start == "odin":
            risk, solutions, _ = odin.solve(problem, seed)
        else:
            risk = odin.risk(problem)
        form, target = of_risk(risk, self.state_range, self.theta_range, theta_prior)
        F = len(problem.free)
        if solutions:
            z0, phi0 = solutions[0].z.T, solutions[0].phi
            # Spread out a little: chains that start at one point would look as if they agreed.
            z = z0 + 0.02 * rng.normal(size=(chains, *z0.shape))
            phi = phi0 + 0.05 * rng.normal(size=(chains, F)) * np.where(problem.is_log, 1.0, np.abs(phi0) + 1e-3)
        else:
            z = np.broadcast_to(risk.mean.T, (chains, *risk.mean.T.shape))
            full = np.zeros((chains, len(problem.model.parameters)))
            full[:, problem.free_index] = np.abs(rng.normal(size=(chains, F)))
            phi = problem.phi(full)
        z = _inside(z, target.z_low[:, None], target.z_high[:, None])
        return risk, form, target, z, _inside(phi, target.phi_low, target.phi_high)


@dataclass(frozen=True)
class Form:
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


class Target(NamedTuple):
    """The numbers of a density, an argument of everything compiled.

    Attributes:
        t, u: times (M,) and inputs (M, U) in the user's units.
        y, weight: standardised observations and 1/σ², zero where missing, both (K, M).
        C_inv, D, Q, w: operators of the Gaussian processes, A = Q diag(w) Qᵀ; (K, M, M) and w (K, M).
        mean, scale, time: the units.
        z_low, z_high, phi_low, phi_high: bounds (K,) and (F,).
        template: fixed parameters at their places (P,).
        kind, a, b: the named prior of every free parameter (F,).
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
    phi_low: Any
    phi_high: Any
    template: Any
    kind: Any
    a: Any
    b: Any


def of_risk(
    risk: Risk,
    state_range: float | None = None,
    theta_range: Range | None = None,
    theta_prior: tuple[int, float, float] = (FLAT, 0.0, 1.0),
) -> tuple[Form, Target]:
    """The density that belongs to a risk; for the arguments see `SamplerOptions`."""
    p, K = risk.problem, len(risk.hypers)

    def joined(name: str) -> Array:
        return np.stack([block_diag(*[getattr(b.smoother, name)[k] for b in risk.blocks]) for k in range(K)])

    z_low, z_high = risk.z_bounds
    if state_range is not None:
        z_low, z_high = np.maximum(z_low, -state_range), np.minimum(z_high, state_range)
    limits = np.array([p.limits(name) for name in p.free]).reshape(-1, 2)
    if theta_range is not None:
        limits = np.stack([np.maximum(limits[:, 0], theta_range[0]), np.minimum(limits[:, 1], theta_range[1])], -1)
        for name, (low, high) in zip(p.free, limits, strict=True):
            if not low < high:
                raise InputError(f"theta_range {theta_range} and the bounds of '{name}' have nothing in common")
    table = np.tile(np.array(theta_prior, float), (len(p.free), 1))
    given = {} if callable(p.prior) else {name: p.prior[name] for name in p.free if name in p.prior}
    for name, prior in given.items():
        table[p.free.index(name)] = (FLAT, 0.0, 1.0) if callable(prior) else (_KINDS[prior[0]], *prior[1:])
    if theta_prior[0] == GAMMA:
        limits[table[:, 0] == GAMMA, 0] = np.maximum(limits[table[:, 0] == GAMMA, 0], 0.0)
    with np.errstate(divide="ignore"):
        low, high = (np.where(p.is_log, np.log(np.maximum(b, 0.0)), b) for b in limits.T)
    functions = tuple((p.model.parameters.index(n), f) for n, f in given.items() if callable(f))
    form = Form(
        p.model, tuple(p.free_index.tolist()), tuple(p.is_log.tolist()), functions,
        p.prior if callable(p.prior) else None, bool(np.isfinite([*z_low, *z_high]).any()),
    )  # fmt: skip
    return form, Target(
        risk.t, risk.u, np.concatenate([b.y for b in risk.blocks], 1),
        np.concatenate([b.weight for b in risk.blocks], 1), joined("C_inv"), joined("D"), joined("Q"), risk.w,
        risk.units.mean, risk.units.scale, risk.units.time, z_low, z_high, low, high,
        np.array([p.fixed.get(name, 0.0) for name in p.model.parameters]), table[:, 0], table[:, 1], table[:, 2],
    )  # fmt: skip


def theta(form: Form, target: Target, phi: Any) -> Any:
    """All parameters (P,) from the free ones."""
    from odinfer._jax import jnp

    if not form.free:
        return jnp.asarray(target.template)
    is_log = np.array(form.is_log)
    values = jnp.where(is_log, jnp.exp(jnp.where(is_log, phi, 0.0)), phi) if is_log.any() else phi
    return jnp.asarray(target.template).at[np.array(form.free)].set(values)


def field_at(form: Form, target: Target, i: Any, z: Any, full: Any) -> Any:
    """The standardised field (K,) at grid point i, its states z (K,) and all parameters."""
    f = form.model.f(target.t[i], target.mean + target.scale * z, full, target.u[i])
    return f * target.time / target.scale


def field(form: Form, target: Target, z: Any, phi: Any) -> Any:
    """The standardised field (K, M) at all grid points."""
    from odinfer._jax import jax

    full = theta(form, target, phi)
    x = target.mean[:, None] + target.scale[:, None] * z
    f = jax.vmap(form.model.f, (0, 1, None, 0), 1)(target.t, x, full, target.u)
    return f * (target.time / target.scale)[:, None]


def log_prior(form: Form, target: Target, phi: Any) -> Any:
    """log p(φ) within the bounds, up to a constant: log p(θ) and the Jacobian of log scales."""
    from odinfer._jax import jnp

    if not form.free:
        return jnp.zeros(())
    full = theta(form, target, phi)
    v, a, b = full[np.array(form.free)], target.a, target.b
    log_v = jnp.log(jnp.maximum(v, 1e-300))
    spread = jnp.where(target.kind == LOGNORMAL, log_v - jnp.log(jnp.where(target.kind == LOGNORMAL, a, 1.0)), v - a)
    square = -0.5 * (spread / b) ** 2
    terms = [jnp.zeros_like(v), square, square - log_v, (a - 1.0) * log_v - b * v]
    total = jnp.select([target.kind == kind for kind in range(4)], terms, 0.0).sum()
    total += jnp.where(np.array(form.is_log), phi, 0.0).sum()
    for place, function in form.functions:
        total -= function(full[place])
    if form.joint is not None:
        total -= form.joint(dict(zip(form.model.parameters, full, strict=True)))
    return total


def log_data(target: Target, z: Any) -> Any:
    """log N(y | z, σ²I) up to a constant."""
    return -0.5 * (target.weight * (z - target.y) ** 2).sum()


def log_gp(target: Target, z: Any) -> Any:
    """log N(z | 0, C) up to a constant."""
    from odinfer._jax import jnp

    return -0.5 * jnp.einsum("km,kmn,kn->", z, target.C_inv, z)


def log_gradient(target: Target, z: Any, f: Any, gamma: Any) -> Any:
    """log N(f | Dz, A + γI) with its normalising term in γ (K,)."""
    from odinfer._jax import jnp

    e = jnp.einsum("knm,kn->km", target.Q, f - jnp.einsum("knm,km->kn", target.D, z))
    spread = target.w + gamma[:, None]
    return -0.5 * (e**2 / spread + jnp.log(spread)).sum()


def log_posterior(form: Form, target: Target, z: Any, phi: Any, gamma: Any) -> Any:
    """log p(z, φ | y, γ) up to a constant: the density that FGPGM samples."""
    match = log_gradient(target, z, field(form, target, z, phi), gamma)
    return log_gp(target, z) + log_data(target, z) + match + log_prior(form, target, phi)


def _inside(values: Array, low: Array, high: Array) -> Array:
    """Strictly inside the bounds: by 1 % of a finite interval, or by a little of an open one."""
    with np.errstate(invalid="ignore"):
        margin = np.minimum(np.where(np.isfinite(high - low), 0.01 * (high - low), 1e-2), 1e-2)
    return np.clip(values, low + margin, high - margin)
