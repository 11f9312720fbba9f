"""student(mean, sd, df): heavy tails. `sd` is the scale of Student's t; the standard deviation is sd·√(df/(df − 2))."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from odinfer.noise.family import Array, LocationScale, Rows
from odinfer.noise.special import differentiable, log_beta, special

LARGE = 60.0  # degrees of freedom from which on expansions in 1/df are exact to rounding


def log_density(z: Any, df: Any, xp: Any) -> Any:
    """log of Student's density."""
    large = df > LARGE
    n, a = xp.where(large, 1.0, df), 0.5 * xp.where(large, df, LARGE)
    gammaln = special(xp).gammaln
    exact = gammaln((n + 1) / 2) - gammaln(n / 2) - 0.5 * xp.log(n / 2)
    w = (1 / a) ** 2
    series = -(1 / 8 - w * (1 / 192 - w * (1 / 640 - w * 17 / 14336))) / a
    return xp.where(large, series, exact) - 0.5 * np.log(2 * np.pi) - (df + 1) / 2 * xp.log1p(square(z, xp) / df)


def square(z: Any, xp: Any) -> Any:
    """z², cut where it would overflow."""
    return xp.clip(z, -1e100, 1e100) ** 2


def _log_cdf(z: Any, df: Any, xp: Any) -> Any:
    w = square(z, xp)
    tail = log_beta(df / 2, 0.5 + 0 * w, df / (df + w), w / (df + w), xp) - np.log(2)
    return xp.where(z < 0, tail, xp.log1p(-xp.exp(xp.where(z < 0, -1.0, tail))))


def _hazard(log_cdf: Any, z: Any, df: Any, xp: Any) -> Any:
    return xp.exp(log_density(z, df, xp) - log_cdf)


@dataclass(frozen=True)
class Student(LocationScale):
    arguments: ClassVar[tuple[str, ...]] = ("mean", "sd", "df")
    defaults: ClassVar[dict[str, float]] = {"df": 4.0}

    def standard_log_density(self, z: Any, shape: Sequence[Any], xp: Any = np) -> Any:
        return log_density(z, shape[0], xp)

    def standard_slope(self, z: Array, shape: Sequence[Array]) -> Array:
        df = shape[0]
        return -(df + 1) * z / (df + z**2)

    def standard_log_cdf(self, z: Any, shape: Sequence[Any], xp: Any = np) -> Any:
        return differentiable(_log_cdf, _hazard, xp)(z, shape[0])

    def standard_quantile(self, p: Array, shape: Sequence[Array]) -> Array:
        return np.asarray(special(np).stdtrit(shape[0], p))

    def standard_draw(self, rng: np.random.Generator, shape: Sequence[Array], size: tuple[int, ...]) -> Array:
        return rng.standard_t(shape[0], size=size)

    @np.errstate(all="ignore")
    def rows(self, y: Array, a: Sequence[Array]) -> Rows:
        m, s, df = self.clipped(a)
        z = (y - m) / s
        pull = (df + 1) * z / (df + z**2)
        # Mean and scale are uncorrelated, scale and df are not: the Cholesky factor of their information.
        root_m = np.sqrt((df + 1) / (df + 3)) / s
        root_s = np.sqrt(2 * df / (df + 3)) / s
        mixed = -2 / (s * (df + 1) * (df + 3)) / root_s
        root_df = np.sqrt(information(df) - mixed**2)
        r_m, r_s = -pull / s / root_m, (1 - pull * z) / s / root_s
        r_df = (gradient(z, df) - mixed * r_s) / root_df
        r = np.stack(np.broadcast_arrays(r_m, r_s, r_df), -1)
        J = np.zeros((*r.shape, 3))
        J[..., 0, 0], J[..., 1, 1], J[..., 1, 2], J[..., 2, 2] = root_m, root_s, mixed, root_df
        return Rows(r, J)


def gradient(z: Array, df: Array) -> Array:
    """Of −log p by df."""
    psi = special(np).psi
    n, b = np.minimum(df, LARGE), np.maximum(df, LARGE)
    exact = (psi((n + 1) / 2) - psi(n / 2) - 1 / n) / 2
    constant = np.where(df > LARGE, (1 - (0.5 - 1 / b**2) / b**2) / (4 * b**2), exact)
    w = z**2 / df
    share = w / (1 + w)
    return np.asarray((np.log1p(w) - share * (1 + 1 / df)) / 2 - constant)


def information(df: Array) -> Array:
    """Fisher's, of df alone."""
    zeta = special(np).zeta  # zeta(2, x) is trigamma
    n, b = np.minimum(df, LARGE), np.maximum(df, LARGE)
    exact = (zeta(2, n / 2) - zeta(2, (n + 1) / 2)) / 4 - (n + 5) / (2 * n * (n + 1) * (n + 3))
    series = (7 * b + 3) / (2 * b**3 * (b + 1) * (b + 3)) - 1 / (2 * b**5) + 3 / (2 * b**7)
    return np.asarray(np.where(df > LARGE, series, exact))
