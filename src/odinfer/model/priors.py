"""Priors of parameters: −log p(θ) with two derivatives for optimisers, and log p(θ) in JAX for samplers.

A family is one line in FAMILIES: what to write, what it takes, where p > 0, and −log p with two derivatives.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odinfer.errors import InputError, nearest

Array = NDArray[np.float64]
Derivatives = tuple[float, float, float]  # −log p and its first two derivatives

_MOST = 1e50  # squares of squares of such numbers, and what is divided by them, are still numbers
# How the JAX form tells families apart; the Gamma prior (shape, rate) belongs to methods that have it as their default.
FLAT, NORMAL, LOGNORMAL, GAMMA, LAPLACE, LOGLAPLACE, CAUCHY, RAYLEIGH, LOGUNIFORM, BETA = range(10)
_ROUNDED = 1e-4  # of its scale: how far from the peak of a Laplace prior its kink is rounded, for optimisers


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


def _absolute(z: float) -> Derivatives:
    """|z| with two derivatives, rounded at zero."""
    r = np.hypot(z, _ROUNDED)
    return r - _ROUNDED, z / r, _ROUNDED**2 / r**3


def _absolute_log(value: float, scale: float, jacobian: float) -> Term:
    """|z| + jacobian·log v with z = log(v/value)/scale, up to a constant."""

    def derivatives(v: float) -> Derivatives:
        v = min(max(v, 1e-150), 1e150)
        absolute, d1, d2 = _absolute(np.log(v / value) / scale)
        constant = jacobian * np.log(2 * scale)
        slope = (d1 / scale + jacobian) / v
        return absolute + jacobian * np.log(v) + constant, slope, d2 / (scale * v) ** 2 - slope / v

    return Term(derivatives, (0.0, np.inf))


def laplace(location: float, scale: float) -> Term:
    def derivatives(v: float) -> Derivatives:
        absolute, d1, d2 = _absolute((v - location) / scale)
        return absolute + np.log(2 * scale), d1 / scale, d2 / scale**2

    return Term(derivatives)


def loglaplace(median: float, scale: float) -> Term:
    return _absolute_log(median, scale, 1.0)


def nearlaplace(value: float, scale: float) -> Term:
    """A pull towards a value by its logarithm: |log(v/value)|/scale, not a density."""
    return _absolute_log(value, scale, 0.0)


def cauchy(location: float, scale: float) -> Term:
    def derivatives(v: float) -> Derivatives:
        z = (v - location) / scale
        q = 1.0 + z * z
        return np.log(np.pi * scale * q), 2 * z / (q * scale), 2 * (1 - z * z) / (q * scale) ** 2

    return Term(derivatives)


def gamma(shape: float, rate: float) -> Term:
    c = math.lgamma(shape) - shape * math.log(rate)

    def derivatives(v: float) -> Derivatives:
        v = max(v, 1e-150)
        return rate * v - (shape - 1) * np.log(v) + c, rate - (shape - 1) / v, (shape - 1) / v**2

    return Term(derivatives, (0.0, np.inf))


def halfnormal(zero: float, sd: float) -> Term:
    """The positive half of a normal distribution with mean zero; the first number is 0."""
    c = 0.5 * np.log(np.pi * sd**2 / 2)
    return Term(lambda v: (0.5 * (z := v / sd) * z + c, z / sd, 1.0 / sd**2), (zero, np.inf))


def beta(a: float, b: float) -> Term:
    c = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)

    def derivatives(v: float) -> Derivatives:
        v = min(max(v, 1e-150), 1.0 - 1e-15)
        value = c - (a - 1) * np.log(v) - (b - 1) * np.log1p(-v)
        return value, (b - 1) / (1 - v) - (a - 1) / v, (a - 1) / v**2 + (b - 1) / (1 - v) ** 2

    return Term(derivatives, (0.0, 1.0))


def rayleigh(low: float, scale: float) -> Term:
    def derivatives(v: float) -> Derivatives:
        d = max(v - low, 1e-150)
        z = d / scale
        return 0.5 * z * z - np.log(d) + 2 * np.log(scale), z / scale - 1 / d, 1 / scale**2 + 1 / d**2

    return Term(derivatives, (low, np.inf))


def loguniform(low: float, high: float) -> Term:
    c = np.log(np.log(high / low))

    def derivatives(v: float) -> Derivatives:
        v = max(v, 1e-150)
        return np.log(v) + c, 1 / v, -1 / v**2

    return Term(derivatives, (low, high))


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


def _no_scale(b: float) -> tuple[str, bool]:
    return f"the scale must be positive, not {b:g}", b <= 0


def _not_positive(a: float) -> tuple[str, bool]:
    return f"the first number must be positive, not {a:g}", a <= 0


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
    "laplace": Family(laplace, LAPLACE, "location, scale > 0", lambda a, b: (_no_scale(b),)),
    "loglaplace": Family(
        loglaplace, LOGLAPLACE, "median > 0, scale of the log > 0", lambda a, b: (_no_scale(b), _not_positive(a))
    ),
    "nearlaplace": Family(
        nearlaplace, LOGLAPLACE, "value > 0, scale of the log > 0", lambda a, b: (_no_scale(b), _not_positive(a))
    ),
    "cauchy": Family(cauchy, CAUCHY, "location, scale > 0", lambda a, b: (_no_scale(b),)),
    "gamma": Family(gamma, GAMMA, "shape > 0, rate > 0", lambda a, b: (_no_scale(b), _not_positive(a))),
    "halfnormal": Family(
        halfnormal, NORMAL, "sd > 0", lambda a, b: (_no_sd(b), (f"the half-normal starts at 0, not at {a:g}", a != 0))
    ),
    "beta": Family(beta, BETA, "a > 0, b > 0", lambda a, b: (_no_scale(b), _not_positive(a))),
    "rayleigh": Family(rayleigh, RAYLEIGH, "lowest value, scale > 0", lambda a, b: (_no_scale(b),)),
    "loguniform": Family(
        loguniform, LOGUNIFORM, "low > 0, high > low",
        lambda a, b: (_not_positive(a), (f"loguniform needs low < high, not {a:g}, {b:g}", not a < b)),
    ),
}  # fmt: skip


def two_numbers(family: str, numbers: Sequence[float]) -> tuple[float, ...]:
    """The numbers of a prior as written; halfnormal(sd) is kept as halfnormal(0, sd)."""
    return (0.0, *numbers) if family == "halfnormal" and len(numbers) == 1 else tuple(numbers)


# Distributions of SciPy: name there → what their frozen arguments (shapes, loc, scale) are here; None: not supported.
_SCIPY: dict[str, Callable[[tuple[float, ...], float, float], tuple[str, float, float] | None]] = {
    "norm": lambda s, loc, scale: ("normal", loc, scale),
    "lognorm": lambda s, loc, scale: ("lognormal", scale, s[0]) if loc == 0 else None,
    "uniform": lambda s, loc, scale: ("uniform", loc, loc + scale),
    "gamma": lambda s, loc, scale: ("gamma", s[0], 1 / scale) if loc == 0 else None,
    "expon": lambda s, loc, scale: ("gamma", 1.0, 1 / scale) if loc == 0 else None,
    "beta": lambda s, loc, scale: ("beta", s[0], s[1]) if (loc, scale) == (0, 1) else None,
    "halfnorm": lambda s, loc, scale: ("halfnormal", 0.0, scale) if loc == 0 else None,
    "laplace": lambda s, loc, scale: ("laplace", loc, scale),
    "cauchy": lambda s, loc, scale: ("cauchy", loc, scale),
    "rayleigh": lambda s, loc, scale: ("rayleigh", loc, scale),
    "loguniform": lambda s, loc, scale: ("loguniform", s[0] * scale, s[1] * scale) if loc == 0 else None,
    "reciprocal": lambda s, loc, scale: ("loguniform", s[0] * scale, s[1] * scale) if loc == 0 else None,
}
_TEXT = re.compile(r"\s*([\w-]+)\s*\(([^()]*)\)\s*")


def named_prior(name: str, given: Any) -> Any:
    """A prior that is text, such as "normal(2, 0.5)", or a frozen distribution of scipy.stats, by family and numbers.

    Raises:
        InputError: the text or the distribution is not supported.
    """
    if isinstance(given, str):
        try:
            family, inside = match.groups() if (match := _TEXT.fullmatch(given)) else ("", "")
            numbers = [float(v) for v in inside.split(",")]
        except ValueError:
            raise InputError(f"prior of '{name}' must be text such as 'normal(2, 0.5)', not {given[:60]!r}") from None
        family = re.sub(r"[-_]", "", family).lower()  # HalfNormal and half-normal are halfnormal
        if family not in FAMILIES:
            raise InputError(f"unknown prior '{family}' of '{name}'{nearest(family, FAMILIES)}")
        return (family, *two_numbers(family, numbers))
    if hasattr(given, "dist") and hasattr(given, "logpdf"):
        shapes, loc, scale = given.dist._parse_args(*given.args, **given.kwds)
        own = _SCIPY.get(given.dist.name)
        found = own(tuple(map(float, shapes)), float(loc), float(scale)) if own else None
        if found is None:
            known = ", ".join(sorted({*_SCIPY} - {"reciprocal"}))
            raise InputError(
                f"prior of '{name}': scipy.stats.{given.dist.name} with these arguments is not supported; use one of "
                f"{known} (with loc=0 where it is for positive values), or text such as 'lognormal(1, 0.5)'"
            )
        return found
    return given


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
    is_log = (kind == LOGNORMAL) | (kind == LOGLAPLACE)
    spread = jnp.where(is_log, log_theta - jnp.log(jnp.where(is_log, a, 1.0)), theta - a)
    z = spread / b
    square, above = -0.5 * z**2, jnp.log(jnp.maximum(theta - a, 1e-300))
    terms = [jnp.zeros_like(theta), square, square - log_theta, (a - 1.0) * log_theta - b * theta]
    terms += [-jnp.abs(z), -jnp.abs(z) - log_theta, -jnp.log1p(z**2), square + above, -log_theta]
    terms += [(a - 1.0) * log_theta + (b - 1.0) * jnp.log1p(-jnp.minimum(theta, 1.0 - 1e-15))]
    return jnp.select([kind == k for k in range(len(terms))], terms, 0.0).sum()


def _term(name: str, given: Any) -> Term:
    if isinstance(given, Term):
        return given
    if callable(given):
        return Term(_scalar(given))
    try:
        kind, a, b = given
        a, b = float(a), float(b)
    except (TypeError, ValueError):
        raise InputError(
            f"prior of '{name}' must be text such as 'normal(2, 0.5)', a distribution "
            f"of scipy.stats, (name, number, number) or a function, not {given!r}"
        ) from None
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
