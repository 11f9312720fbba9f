"""What the data say around a maximum of the likelihood: covariances of the unknowns, corrected for few observations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from odinfer.problem import Problem
from odinfer.refine import ACCURATE, Likelihood, Refined
from odinfer.risk import prior_in_phi
from odinfer.uncertainty import threshold

Array = NDArray[np.float64]

# Below this share of the best determined direction, in standardised unknowns, rounding decides.
_FLAT = 1e-13


@dataclass(frozen=True, eq=False)
class Information:
    """The inverse of the information on the unknowns u = (x0 of every experiment, φ), P of them.

    Noise variances that are not known are estimated by their residuals, with as many degrees of freedom as the
    trajectory leaves. That they are estimates costs twice: intervals are Student's with Satterthwaite's degrees of
    freedom, and the covariance grows, since the weights of the states are estimates too (Kenward and Roger).

    Attributes:
        covariance: (P, P), without the directions that are flat.
        plain: the same as if the noise were known.
        parts: (K, P, P), the share of each state's noise in `plain`.
        freedom: degrees of freedom (K,) of the noise variances, infinite where they are known.
        sigma: noise standard deviations (K,), corrected for the fitted unknowns.
        flat: directions (P, ·) in which the data say nothing.
        count: observations per degree of freedom.
        accuracy: to which trajectories are computed (K,), which no band should be narrower than.
    """

    covariance: Array
    plain: Array
    parts: Array
    freedom: Array
    sigma: Array
    flat: Array
    count: float
    accuracy: Array

    def spread(self, a: Array) -> tuple[Array, Array]:
        """Standard deviation and degrees of freedom (...) of quantities with gradients a (..., P) by the unknowns."""
        variance, plain = (np.einsum("...p,pq,...q->...", a, m, a) for m in (self.covariance, self.plain))
        parts = np.einsum("...p,kpq,...q->...k", a, self.parts, a)
        with np.errstate(divide="ignore", invalid="ignore"):
            doubt = np.where(np.isinf(self.freedom), 0.0, parts**2 / self.freedom).sum(-1)
            freedom = np.where(doubt > 0, plain**2 / doubt, np.inf)
        blind = np.abs(a @ self.flat).max(-1, initial=0.0) > 1e-6 * np.abs(a).max(-1, initial=0.0)
        return np.where(blind, np.inf, np.sqrt(np.maximum(variance, 0.0))), np.maximum(freedom, 1.0)

    def fall(self, a: Array, level: float) -> Array:
        """Twice the fall of the log-likelihood (...) at the ends of intervals of such quantities."""
        variance, plain = (np.einsum("...p,pq,...q->...", a, m, a) for m in (self.covariance, self.plain))
        grown = np.where(plain > 0, variance / np.where(plain > 0, plain, 1.0), 1.0)
        return threshold(self.spread(a)[1], self.count, level) * grown


def information(problem: Problem, like: Likelihood, refined: Refined) -> Information:
    """The information at a refined trajectory."""
    K, E, F = len(refined.sigma), len(refined.paths), len(refined.phi)
    M = np.zeros((K, E * K + F, E * K + F))
    for e, (path, lin) in enumerate(zip(refined.paths, refined.condensed, strict=True)):
        J = lin.nodes[np.searchsorted(path.mesh, like.t[e])][..., :-1] * np.isfinite(like.y[e])[..., None]
        index = np.r_[e * K : (e + 1) * K, E * K : E * K + F]
        M[:, index[:, None], index] += np.einsum("nkp,nkq->kpq", J, J)
    prior = np.zeros(M.shape[1:])
    if problem.penalty:
        w, V = np.linalg.eigh(prior_in_phi(problem, refined.phi)[2])
        prior[E * K :, E * K :] = (V * np.maximum(w, 0.0)) @ V.T
    known, v = ~np.isnan(problem.known_sigma), refined.sigma**2
    C, _ = _inverse((M / v[:, None, None]).sum(0) + prior)
    spent = np.einsum("pq,kqp->k", C, M) / v
    left = np.maximum(like.n - spent, 1.0)
    v = np.where(known, v, v * like.n / left)
    C, flat = _inverse((M / v[:, None, None]).sum(0) + prior)
    parts = C @ (M / v[:, None, None]) @ C
    freedom = np.where(known, np.inf, left)
    doubt = (2.0 / freedom)[:, None, None] * (parts - C @ (M / v[:, None, None]) @ parts)
    grown = C + 2.0 * doubt.sum(0)
    count = float(like.n[~known].sum() / left[~known].sum()) if not known.all() else 1.0
    return Information(0.5 * (grown + grown.T), C, parts, freedom, np.sqrt(v), flat, count, ACCURATE * like.scale)


def _inverse(H: Array) -> tuple[Array, Array]:
    """The inverse without flat directions, and these (P, ·)."""
    d = np.sqrt(np.maximum(np.diag(H), 1e-300))
    w, V = np.linalg.eigh(H / np.outer(d, d))
    sound = w > _FLAT * w[-1]
    W = V[:, sound] / d[:, None]
    flat = V[:, ~sound] / d[:, None]
    size = np.linalg.norm(flat, axis=0)
    return (W / w[sound]) @ W.T, flat / np.where(size > 0, size, 1.0)
