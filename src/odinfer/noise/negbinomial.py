"""negbinomial(mean, k): counts whose variance is mean + mean²/k; a Poisson count if k is infinite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np

from odinfer.noise.family import LARGEST, Array, Counts, Rows, positive, uncorrelated
from odinfer.noise.poisson import poisson_draws
from odinfer.noise.special import differentiable, log_beta, log_poisson_tail, log_split, special

NODES = 32  # of the integral for Fisher's information
SERIES = 200.0  # k from which on digamma is expanded: its differences cancel
POISSON = 1e12  # k/max(y, mean, 1) from which on tails are a Poisson count's, to rounding


def _log_mass(y: Any, m: Any, k: Any, xp: Any) -> Any:
    k = xp.minimum(k, LARGEST)
    gap = (y - m) / (1 + m / k)
    mean = m * ((1 + y / k) / (1 + m / k))
    return log_split(y, k, mean, k + gap, gap, xp) - xp.log1p(y / k)


def _log_sf(m: Any, k: Any, y: Any, xp: Any) -> Any:
    return _log_tail(m, k, y, True, xp)


def _log_cdf(m: Any, k: Any, y: Any, xp: Any) -> Any:
    return _log_tail(m, k, y, False, xp)


def _log_tail(m: Any, k: Any, y: Any, upper: bool, xp: Any) -> Any:
    poisson = k > POISSON * xp.maximum(xp.maximum(y, m), 1.0)
    k = xp.where(poisson, 1.0, k)
    p, q = m / (k + m), k / (k + m)
    log_p = log_beta(y + 1.0, k, p, q, xp) if upper else log_beta(k, y + 1.0, q, p, xp)
    if xp is np and not np.any(poisson):
        return log_p
    return xp.where(poisson, log_poisson_tail(y, m, upper, xp), log_p)


def _slope_of_sf(log_sf: Any, m: Any, k: Any, y: Any, xp: Any) -> Any:
    return xp.exp(_log_mass(y, m, k, xp) - log_sf) * ((1 + y / k) / (1 + m / k))


def _slope_of_cdf(log_cdf: Any, m: Any, k: Any, y: Any, xp: Any) -> Any:
    return -_slope_of_sf(log_cdf, m, k, y, xp)


@dataclass(frozen=True)
class NegBinomial(Counts):
    arguments: ClassVar[tuple[str, ...]] = ("mean", "k")

    def in_domain(self, a: Sequence[Any], xp: Any = np) -> Any:
        return (a[0] >= 0) & xp.isfinite(a[0]) & (a[1] > 0)

    def log_mass(self, y: Any, a: Sequence[Any], xp: Any) -> Any:
        return _log_mass(y, a[0], a[1], xp)

    def log_tail(self, y: Any, a: Sequence[Any], upper: bool, xp: Any) -> Any:
        log_p, slope = (_log_sf, _slope_of_sf) if upper else (_log_cdf, _slope_of_cdf)
        return differentiable(log_p, slope, xp)(a[0], xp.minimum(a[1], LARGEST), y)

    def random(self, rng: np.random.Generator, a: Sequence[Array]) -> Array:
        m, k = a[0], np.minimum(a[1], LARGEST)
        return poisson_draws(rng, rng.gamma(k) * (m / k))

    @np.errstate(all="ignore")
    def rows(self, y: Array, a: Sequence[Array]) -> Rows:
        m, k = positive(a[0]), positive(a[1])
        root = np.sqrt(1 / m / (1 + m / k))
        return uncorrelated([(m - y) * root**2, gradient(y, m, k)], [root, np.sqrt(information(m, k))])


def gradient(y: Array, m: Array, k: Array) -> Array:
    """Of −log p by k: with δ = (y − m)/(k + m), −[ψ(y + k) − ψ(k) − log(1 + y/k) + log(1 + δ) − δ]."""
    psi = special(np).psi
    small, n = np.minimum(k, SERIES), np.maximum(k, SERIES)
    exact = psi(y + small) - psi(small) - np.log1p(y / small)
    inverse, ratio = 1 / n, 1 / (1 + y / n)
    # ψ(x) = log x − 1/2x − 1/12x² + 1/120x⁴ − …, of which each difference is taken exactly.
    series = y * inverse**2 * ratio * (0.5 + inverse * (1 + ratio) / 12 * (1 - inverse**2 * (1 + ratio**2) / 10))
    return np.asarray(-(np.where(k > SERIES, series, exact) + _log1p_rest((y - m) / (k + m), (k + y) / (k + m))))


def _log1p_rest(x: Array, one_more: Array) -> Array:
    """log(1 + x) − x, given 1 + x too."""
    near = abs(x) < 0.02
    s = np.where(near, x, 0.0)
    series = -(s**2) * (
        1 / 2 - s * (1 / 3 - s * (1 / 4 - s * (1 / 5 - s * (1 / 6 - s * (1 / 7 - s * (1 / 8 - s / 9))))))
    )
    return np.where(near, series, np.log(one_more) - x)


def information(m: Array, k: Array) -> Array:
    """Fisher's, of k: Σ_j P(Y > j)/(k + j)² − m/(k(k + m)), which is Σ_{n ≥ 2} B(n, k) qⁿ/n with q = m/(k + m).

    As an integral, with B(n, k) = ∫ tⁿ⁻¹(1 − t)ᵏ⁻¹ dt and u = (1 − t)ᵏ: of (−log(1 − qt) − qt)/(kt) over u in (0, 1).
    """
    log_u, weight = _nodes()
    m, k = np.broadcast_arrays(m, k)
    q, k = (m / (k + m))[..., None], k[..., None]
    t = -np.expm1(log_u / k)
    # 1 − qt, where q and t are near one.
    log_rest = np.where(q * t > 0.5, np.log(k / (k + m[..., None]) + q * np.exp(log_u / k)), 0.0)
    value = np.where(q * t > 0.5, -log_rest - q * t, -_log1p_rest(-q * t, 1 - q * t))
    return np.asarray((value / t / k) @ weight)


@cache
def _nodes() -> tuple[Array, Array]:
    """log u and weights for integrals over u in (0, 1) with logarithms at the ends: u = v³(10 − 15v + 6v²)."""
    x, w = np.polynomial.legendre.leggauss(NODES)
    v = (1 + x) / 2
    return np.log(v**3 * (10 - 15 * v + 6 * v**2)), w / 2 * 30 * v**2 * (1 - v) ** 2
