"""The small-sample correction: what it costs that the noise is estimated from the same few data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

CONFIDENCE = 0.95  # of every interval and band, unless another level is asked for
# Below this share of the best determined direction, in standardised unknowns, rounding decides.
_FLAT = 1e-13


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
        parts: (K, P, P), the share of each state's noise in `plain`.
        freedom: degrees of freedom (K,) of the noise variances, infinite where they are known.
        sigma: noise standard deviations (K,), corrected for the fitted unknowns.
        flat: directions (P, ·) in which the data say nothing.
        count: observations per degree of freedom.
    """

    covariance: Array
    plain: Array
    parts: Array
    freedom: Array
    sigma: Array
    flat: Array
    count: float


def corrected(M: Array, v: Array, known: NDArray[np.bool_], n: ArrayLike, prior: Array) -> Corrected:
    """Covariances of P unknowns from K states whose noise is known or estimated.

    With M_k the cross products of state k's sensitivities, the information is Σ M_k/v_k plus the prior's, and C its
    inverse. The trajectory spends tr(C M_k)/v_k of state k's n_k observations; what is left are the degrees of freedom
    ν_k of its variance, which grows accordingly. Since the weights 1/v_k are estimates themselves, with variances
    2 v_k²/ν_k, the covariance grows to second order (Kenward and Roger 1997) by 2 Σ (2/ν_k)(W_k − C (M_k/v_k) W_k)
    with W_k = C (M_k/v_k) C, the share of state k in C.

    Args:
        M: (K, P, P).
        v: noise variances (K,), at their maximum likelihood where not known.
        n: observations of each state (K,).
        prior: curvature of −log p(θ) (P, P).
    """
    count = np.asarray(n, float)
    C, _ = _inverse((M / v[:, None, None]).sum(0) + prior)
    spent = np.einsum("pq,kqp->k", C, M) / v
    left = np.maximum(count - spent, 1.0)
    v = np.where(known, v, v * count / left)
    C, flat = _inverse((M / v[:, None, None]).sum(0) + prior)
    parts = C @ (M / v[:, None, None]) @ C
    freedom = np.where(known, np.inf, left)
    doubt = (2.0 / freedom)[:, None, None] * (parts - C @ (M / v[:, None, None]) @ parts)
    grown = C + 2.0 * doubt.sum(0)
    each = float(count[~known].sum() / left[~known].sum()) if not known.all() else 1.0
    return Corrected(0.5 * (grown + grown.T), C, parts, freedom, np.sqrt(v), flat, each)


def _inverse(H: Array) -> tuple[Array, Array]:
    """The inverse without flat directions, and these (P, ·)."""
    d = np.sqrt(np.maximum(np.diag(H), 1e-300))
    w, V = np.linalg.eigh(H / np.outer(d, d))
    sound = w > _FLAT * w[-1]
    W = V[:, sound] / d[:, None]
    flat = V[:, ~sound] / d[:, None]
    size = np.linalg.norm(flat, axis=0)
    return (W / w[sound]) @ W.T, flat / np.where(size > 0, size, 1.0)
