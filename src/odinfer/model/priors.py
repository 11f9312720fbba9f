"""Priors on parameters, in both forms: −log p(θ) with derivatives for optimisers, and log p(θ) in JAX for samplers.

A family is one line in FAMILIES: what to write, what it takes, where p > 0, and −log p with two derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odinfer.errors import InputError, nearest

Array = NDArray[np.float64]
Derivatives = tuple[float, float, float]  # −log p and its first two derivatives

_MOST = 1e50  # squares of squares of such numbers, and what is divided by them, are still numbers
# How the JAX form tells families apart; the Gamma prior (shape, rate) belongs to methods that have it as their default.
FLAT, NORMAL, LOGNORMAL, GAMMA = range(4)


@dataclass(frozen=True)
class Term:
    """The prior of one parameter: θ ↦ −log p, slope, curvature; and where p > 0."""

    derivatives: Callable[[float], Derivatives]
    support: tuple[float, float] = (-np.inf, np.inf)


def normal(mean: float, sd: float) -> Term:
    c = 0.5 * np.log(2 * np.pi * sd**2)
    # z * z: Python raises at the power of a float that is too large, where a product is infinite.
    return Term(lambda v: (0.5 * (z := (v - mean) / sd) * z + c, z / sd, 1.0 / sd**2))


def lognormal(median: float, sd: float) -> Term:
    c = 0.5 * np.log(2 * np.pi * sd**2)

    def derivatives(v: float) -> Derivatives:
        v = min(max(v, 1e-150), 1e150)  # its square must stay within the floating-point numbers
        z = np.log(v / median) / sd**2
        return 0.5 * sd**2 * z**2 + np.log(v) + c, (z + 1.0) / v, (1.0 / sd**2 - z - 1.0) / v**2

    return Term(derivatives, (0.0, np.inf))


def near(value: float, sd: float) -> Term:
    """A pull towards a value by its logarithm: z²/2 with z = log(v/value)/sd, not a density."""

    def derivatives(v: float) -> Derivatives:
        v = min(max(v, 1e-150), 1e150)
        z = np.log(v / value) / sd
        return 0.5 * z**2, z / (sd * v), (1.0 / sd - z) / (sd * v**2)

    return Term(derivatives, (0.0, np.inf))


def uniform(low: float, high: float) -> Term:
    return Term(lambda v: (np.log(high - low), 0.0, 0.0), (low, high))


@dataclass(frozen=True)
class Family:
    """A named prior with two numbers.

    Attributes:
        term: its −log p.
        kind: of the JAX form.
        wants: what the numbers are, in words.
        objections: (what is wrong, whether it is) of two numbers.
    """

    term: Callable[[float, float], Term]
    kind: int
    wants: str
    objections: Callable[[float, float], tuple[tuple[str, bool], ...]]

    def valid(self, a: float, b: float) -> bool:
        return not any(wrong for _, wrong in self.objections(a, b))


def _no_sd(b: float) -> tuple[str, bool]:
    return f"the standard deviation must be positive, not {b:g}", b <= 0


FAMILIES = {
    "normal": Family(normal, NORMAL, "mean, sd > 0", lambda a, b: (_no_sd(b),)),
    "lognormal": Family(
        lognormal, LOGNORMAL, "median > 0, sd of the log > 0",
        lambda a, b: (_no_sd(b), (f"the median of a lognormal must be positive, not {a:g}", a <= 0)),
    ),
    "near": Family(  # whose distribution is the lognormal one, and whose maximum is on the log scale
        near, LOGNORMAL, "value > 0, sd of the log > 0",
        lambda a, b: (_no_sd(b), (f"the value that a parameter is near must be positive, not {a:g}", a <= 0)),
    ),
    "uniform": Family(
        uniform, FLAT, "low, high > low", lambda a, b: ((f"uniform needs low < high, not {a:g}, {b:g}", not a < b),)
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Prior:
    """The sum of all −log p terms of a problem."""

    parameters: tuple[str, ...]
    terms: Mapping[str, Term]
    joint: Callable[[Array], tuple[float, Array, Array]] | None = None

    @staticmethod
    def of(prior: Mapping[str, Any] | Callable[..., Any], parameters: tuple[str, ...]) -> Prior:
        """From what a Problem was given; see there."""
        if callable(prior):
            return Prior(parameters, {}, _joint(prior, parameters))
        return Prior(parameters, {name: _term(name, given) for name, given in prior.items()})

    def __bool__(self) -> bool:
        return bool(self.terms) or self.joint is not None

    def derivatives(self, theta: Array) -> tuple[float, Array, Array]:
        """−log p(θ), gradient (P,) and Hessian (P, P) at theta (P,)."""
        P = len(self.parameters)
        value, g, H = (0.0, np.zeros(P), np.zeros((P, P))) if self.joint is None else self.joint(theta)
        for name, term in self.terms.items():
            i = self.parameters.index(name)
            v, d1, d2 = term.derivatives(float(theta[i]))
            value, g[i], H[i, i] = value + v, g[i] + d1, H[i, i] + d2
        return value, g, H


def log_density(kind: Any, a: Any, b: Any, theta: Any) -> Any:
    """In JAX: log p of parameters θ (F,) with priors of these kinds and numbers (F,), up to a constant."""
    from odinfer._jax import jnp

    log_theta = jnp.log(jnp.maximum(theta, 1e-300))
    is_log = kind == LOGNORMAL
    spread = jnp.where(is_log, log_theta - jnp.log(jnp.where(is_log, a, 1.0)), theta - a)
    square = -0.5 * (spread / b) ** 2
    terms = [jnp.zeros_like(theta), square, square - log_theta, (a - 1.0) * log_theta - b * theta]
    return jnp.select([kind == k for k in (FLAT, NORMAL, LOGNORMAL, GAMMA)], terms, 0.0).sum()


def _term(name: str, given: Any) -> Term:
    if isinstance(given, Term):
        return given
    if callable(given):
        return Term(_scalar(given))
    try:
        kind, a, b = given
        a, b = float(a), float(b)
    except (TypeError, ValueError):
        raise InputError(f"prior of '{name}' must be (name, number, number) or a function, not {given!r}") from None
    if kind not in FAMILIES:
        raise InputError(f"unknown prior '{kind}' of '{name}'{nearest(str(kind), FAMILIES)}")
    if not (np.isfinite(a) and np.isfinite(b)):
        raise InputError(f"the prior of '{name}' has a parameter that is not finite")
    if not max(abs(a), abs(b)) <= _MOST or 0 < b < 1 / _MOST:
        raise InputError(f"the prior of '{name}' has a parameter beyond 1e50 or a standard deviation below 1e-50")
    for words, wrong in FAMILIES[kind].objections(a, b):
        if wrong:
            raise InputError(f"prior of '{name}': {words}")
    return FAMILIES[kind].term(a, b)


def _scalar(function: Callable[..., Any]) -> Callable[[float], Derivatives]:
    from odinfer._jax import jax

    derivatives = jax.jit(lambda v: (function(v), jax.grad(function)(v), jax.grad(jax.grad(function))(v)))

    def at(v: float) -> Derivatives:
        value, d1, d2 = derivatives(v)
        return float(value), float(d1), float(d2)

    return at


def _joint(function: Callable[..., Any], names: tuple[str, ...]) -> Callable[[Array], tuple[float, Array, Array]]:
    from odinfer._jax import jax

    def named(theta: Any) -> Any:
        return function(dict(zip(names, theta, strict=True)))

    derivatives = jax.jit(lambda v: (named(v), jax.grad(named)(v), jax.hessian(named)(v)))

    def at(theta: Array) -> tuple[float, Array, Array]:
        value, g, H = derivatives(theta)
        return float(value), np.array(g), np.array(H)

    return at
