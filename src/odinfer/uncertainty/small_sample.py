"""Small-sample correction of thresholds where the noise is estimated from the same data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odinfer.optimize.arrow_matrix import ArrowMatrix, BlockPlusLowRank

Array = NDArray[np.float64]

CONFIDENCE = 0.95  # of every interval and band, unless another level is asked for


def quantile(freedom: ArrayLike, level: float) -> Array:
    """Half the width of Student's interval in standard deviations; the normal one for infinite freedom."""
    from scipy.special import ndtri, stdtrit  # scipy.stats, which has them too, takes longer to load than a fit takes

    freedom, p = np.asarray(freedom, float), 0.5 * (1.0 + level)
    known = np.isinf(freedom)
    return np.asarray(np.where(known, ndtri(p), stdtrit(np.where(known, 1.0, freedom), p)))


def sd_interval(sigma: ArrayLike, freedom: ArrayLike, level: float) -> tuple[Array, Array]:
    """The ends of intervals of standard deviations that were estimated with so many degrees of freedom."""
    from scipy.special import gammaincinv

    sigma, freedom = np.asarray(sigma, float), np.asarray(freedom, float)
    low, high = (2.0 * gammaincinv(0.5 * freedom, 0.5 * (1.0 + side * level)) for side in (1.0, -1.0))
    return np.sqrt(freedom / low) * sigma, np.sqrt(freedom / high) * sigma


def threshold(freedom: ArrayLike, count: float, level: float) -> Array:
    """Twice the fall of the log-likelihood, noise profiled out, at the ends of an interval of this level.

    Exact for one state and a quantity that is linear in the unknowns: there it is Student's interval. With n residuals
    and ν degrees of freedom the profiled log-likelihood falls by (n/2) log(1 + t²/ν) where Student's statistic is t.

    Args:
        freedom: degrees of freedom ν behind the noise, infinite if it is known.
        count: observations per degree of freedom, n/ν.
    """
    freedom = np.asarray(freedom, float)
    q = quantile(freedom, level)
    safe = np.where(np.isfinite(freedom), freedom, 1.0)
    return np.asarray(np.where(np.isfinite(freedom), count * safe * np.log1p(q**2 / safe), q**2))


@dataclass(frozen=True, eq=False)
class Corrected:
    """Covariances of P unknowns, corrected for noise that is estimated.

    Attributes:
        covariance: (P, P), without the directions that are flat.
        plain: the same as if the noise were known.
        parts: (P, P) of each of K states, the share of its noise in `plain`.
        freedom: degrees of freedom (K,) of the noise variances, infinite where they are known.
        sigma: noise standard deviations (K,), corrected for the fitted unknowns.
        flat: directions (P, ·) in which the data say nothing.
        count: observations per degree of freedom.
    """

    covariance: Array | BlockPlusLowRank
    plain: Array | BlockPlusLowRank
    parts: tuple[Array | BlockPlusLowRank, ...]
    freedom: Array
    sigma: Array
    flat: Array
    count: float


def corrected(M: ArrowMatrix, v: Array, known: NDArray[np.bool_], n: ArrayLike, prior: ArrowMatrix) -> Corrected:
    """Covariances of P unknowns from K states whose noise is known or estimated.

    With M_k the cross products of state k's sensitivities, the information is Σ M_k/v_k plus the prior's, and C its
    inverse. The trajectory spends tr(C M_k)/v_k of state k's n_k observations; what is left are the degrees of freedom
    ν_k of its variance, which grows accordingly. Since the weights 1/v_k are estimates themselves, with variances
    2 v_k²/ν_k, the covariance grows to second order (Kenward and Roger 1997) by 2 Σ (2/ν_k)(W_k − C (M_k/v_k) W_k)
    with W_k = C (M_k/v_k) C, the share of state k in C.

    Args:
        M: K of them.
        v: noise variances (K,), at their maximum likelihood where not known.
        n: observations of each state (K,).
        prior: curvature of −log p(θ).
    """
    count = np.asarray(n, float)
    each = M.matrices()
    C, _ = M.sum(1.0 / v, prior).inverse()
    spent = np.array([(C @ own).trace() for own in each]) / v
    left = np.maximum(count - spent, 1.0)
    v = np.where(known, v, v * count / left)
    C, flat = M.sum(1.0 / v, prior).inverse()
    weighted = [C @ (float(w) * own) for w, own in zip(1.0 / v, each, strict=True)]
    parts = tuple(own @ C for own in weighted)
    freedom = np.where(known, np.inf, left)
    grown = C
    for nu, own, part in zip(freedom.tolist(), weighted, parts, strict=True):
        grown = grown + (4.0 / nu) * (part - own @ part)
    ratio = float(count[~known].sum() / left[~known].sum()) if not known.all() else 1.0
    return Corrected(0.5 * (grown + grown.T), C, parts, freedom, np.sqrt(v), flat, ratio)
