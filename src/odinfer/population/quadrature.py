"""Rules for integrals over a subject's latent values: products of Gauss–Hermite rules, and quasi-random points.

A rule has points z (n, d) and log-weights such that ∫ h(z) dz ≈ Σ exp(log-weight) h(z).
"""

from __future__ import annotations

import functools
import itertools

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

NODES = (3, 5, 7, 9, 11, 15, 21, 31, 45)  # per dimension, tried in this order
MOST_NODES = 20_000  # of one subject, with those of negligible weight
MOST_DIMENSIONS = 5  # beyond, importance sampling needs fewer points
POINTS = (512, 2048, 8192, 32768)  # of importance sampling, tried in this order
SCRAMBLES = 8  # independent parts of the points, whose differences give the error
_NEGLIGIBLE = 1e-10  # weight, relative to the largest, below which a node of a product rule is left out
_NEGLIGIBLE_OF_MANY = 1e-6  # the same in five dimensions, where half of the nodes have together a weight of 1e-5
_DEGREES = 5.0  # of freedom of Student's t from which importance sampling draws


@functools.cache
def gauss_hermite(n: int, d: int) -> tuple[Array, Array]:
    """Product rule with n nodes per dimension, without nodes of negligible weight."""
    z, w = np.polynomial.hermite_e.hermegauss(n)
    log_w = np.log(w / w.sum())
    points = np.array(list(itertools.product(z, repeat=d))).reshape(-1, d)
    weights = np.array([sum(p) for p in itertools.product(log_w, repeat=d)])
    kept = weights > weights.max() + np.log(_NEGLIGIBLE if d < MOST_DIMENSIONS else _NEGLIGIBLE_OF_MANY)
    points, weights = points[kept], weights[kept]
    weights -= np.log(np.exp(weights).sum())
    return points, weights + 0.5 * (points**2).sum(1) + 0.5 * d * np.log(2.0 * np.pi)


@functools.cache
def student(n: int, d: int, seed: int = 0) -> tuple[Array, Array]:
    """Sobol points of a multivariate Student's t distribution, and the logarithms of 1/(n density).

    The points are `SCRAMBLES` sets one after the other, which are scrambled independently.
    """
    from scipy.special import chdtri, gammaln, ndtri
    from scipy.stats import qmc

    seeds = np.random.SeedSequence(seed).spawn(SCRAMBLES)
    sets = [qmc.Sobol(d + 1, seed=np.random.default_rng(own)).random(n // SCRAMBLES) for own in seeds]
    uniform = np.concatenate(sets).clip(1e-12, 1.0 - 1e-12)
    chi2 = chdtri(_DEGREES, 1.0 - uniform[:, d])
    z = ndtri(uniform[:, :d]) * np.sqrt(_DEGREES / chi2)[:, None]
    square = (z**2).sum(1)
    log_density = (
        gammaln(0.5 * (_DEGREES + d))
        - gammaln(0.5 * _DEGREES)
        - 0.5 * d * np.log(_DEGREES * np.pi)
        - 0.5 * (_DEGREES + d) * np.log1p(square / _DEGREES)
    )
    return z, -log_density - np.log(n)


def levels(d: int) -> tuple[int, ...]:
    """The sizes of rules to try in d dimensions: nodes per dimension, or points of importance sampling."""
    if d > MOST_DIMENSIONS:
        return POINTS
    return tuple(n for n in NODES if n**d <= MOST_NODES)


def rule(size: int, d: int, seed: int = 0) -> tuple[Array, Array]:
    """The rule of a size of `levels`; `seed` is that of importance sampling."""
    return student(size, d, seed) if d > MOST_DIMENSIONS else gauss_hermite(size, d)
