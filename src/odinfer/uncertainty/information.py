"""Observed information at an optimum, and covariances with a small-sample correction."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from odinfer.likelihood.likelihood import Likelihood
from odinfer.likelihood.refinement import ACCURATE, TrajectoryOptimum
from odinfer.optimize.arrow_matrix import ArrowMatrix, among, quadratic
from odinfer.uncertainty.small_sample import Corrected, corrected, threshold

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Information(Corrected):
    """The inverse of the information on the unknowns (free x0 of every experiment, φ), P of them.

    Noise variances that are not known are estimated by their residuals, with as many degrees of freedom as the
    trajectory leaves. That they are estimates costs twice: intervals are Student's with Satterthwaite's degrees of
    freedom, and the covariance grows, since the weights of the states are estimates too (Kenward and Roger).

    Attributes:
        accuracy: to which trajectories are computed (K,), which no band should be narrower than.
    """

    accuracy: Array

    def of(self, places: NDArray[np.int64]) -> Information:
        """About the unknowns at these places alone: all that quantities need that depend on no other."""
        if len(places) == len(self.covariance):
            return self
        covariance, plain, *parts = (among(m, places) for m in (self.covariance, self.plain, *self.parts))
        return replace(self, covariance=covariance, plain=plain, parts=tuple(parts), flat=self.flat[places])

    def spread(self, a: Array) -> tuple[Array, Array]:
        """Standard deviation and degrees of freedom (...) of quantities with gradients a (..., P) by the unknowns."""
        variance, plain, blind = self._variances(a)
        parts = np.stack([quadratic(m, a) for m in self.parts], -1)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            # Of variances that may be too large to be squared.
            doubt = np.where(np.isinf(self.freedom), 0.0, (parts / plain[..., None]) ** 2 / self.freedom).sum(-1)
            freedom = np.where(doubt > 0, 1.0 / doubt, np.inf)
        freedom = np.where(blind, self.freedom.min(initial=np.inf), freedom)  # what is flat says nothing of its noise
        return np.where(blind, np.inf, np.sqrt(np.maximum(variance, 0.0))), np.maximum(freedom, 1.0)

    def _variances(self, a: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Variances (...) of quantities with such gradients, the same as if the noise were known, and whether they
        change along directions that are flat, or so flat that there are no numbers for it."""
        variance, plain = (quadratic(m, a) for m in (self.covariance, self.plain))
        flat = np.abs(a @ self.flat).max(-1, initial=0.0) > 1e-6 * np.abs(a).max(-1, initial=0.0)
        return variance, plain, np.asarray(flat | ~np.isfinite(variance) | ~np.isfinite(plain))

    def fall(self, a: Array, level: float) -> Array:
        """Twice the fall of the log-likelihood (...) at the ends of intervals of such quantities."""
        variance, plain, blind = self._variances(a)
        seen = (plain > 0) & ~blind
        grown = np.where(seen, variance, 1.0) / np.where(seen, plain, 1.0)
        return threshold(self.spread(a)[1], self.count, level) * grown


def information(likelihood: Likelihood, refined: TrajectoryOptimum) -> Information:
    """The information at a refined trajectory."""
    u, observation, phi = likelihood.unknowns, likelihood.observation, refined.phi[None]
    variance = refined.sigma**2
    M = ArrowMatrix.zeros(len(variance), u.experiments, len(u.initial), u.size)
    seen = likelihood.on([p.mesh for p in refined.paths])
    for e, (x, maps) in enumerate(zip(seen.states(refined.paths), seen.maps(refined.condensed), strict=True)):
        J = observation.rows(e, x, maps[..., :-1], seen.likelihood.y[e], variance[None], phi)[1][0]
        each = [np.concatenate([*J[:, observation.owners == m]]) for m in range(len(variance))]
        M.add(e, u.own(e), np.stack([v * (own.T @ own) for v, own in zip(variance, each, strict=True)]))
    prior = ArrowMatrix.zeros(1, u.experiments, len(u.initial), u.size)
    prior.add_last(0, likelihood.problem.prior_at(refined.phi).curvature)
    found = corrected(M, variance, observation.is_known, observation.count, prior)
    return Information(**vars(found), accuracy=ACCURATE * likelihood.scale)
