"""Gaussian processes with given hyperparameters on a grid of times: posterior mean and the operators D and A."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from odinfer.gp.evidence import Hyperparameters
from odinfer.gp.kernels import kernel

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Smoother:
    """What the risk needs of K Gaussian processes on one grid of N times, in standardised units.

    Attributes:
        mean: posterior mean given the observations (K, N).
        C_inv: inverse prior covariance (K, N, N).
        D: derivative operator 'C C⁻¹ (K, N, N).
        Q, w: eigenvectors (K, N, N) and eigenvalues (K, N) of A = C'' − 'C C⁻¹ C'.
    """

    mean: Array
    C_inv: Array
    D: Array
    Q: Array
    w: Array

    def tempered(self, temper: float) -> Smoother:
        """The same with the weight of the prior on x and ẋ divided by `temper`."""
        return self if temper == 1.0 else replace(self, C_inv=self.C_inv / temper, w=self.w * temper)


def smooth(hypers: Sequence[Hyperparameters], t: Array, y: Array, jitter: float) -> Smoother:
    """Prior operators and posterior mean on the grid.

    Args:
        hypers: one per state.
        t: grid times (N,), measured like the times that gave the hyperparameters.
        y: observations (K, N), NaN where a state is not observed at a grid time.
        jitter: added to the diagonals of C and of A.
    """
    K, N = y.shape
    grams = [kernel(h.kernel).gram(t, t, np.array(h.shape)) for h in hypers]
    v = np.array([h.variance for h in hypers])[:, None, None]
    C, dC, Cd, dCd = (v * np.stack(m) for m in zip(*grams, strict=True))
    eye = np.eye(N)
    C = C + jitter * eye
    C_inv = np.linalg.inv(C)
    C_inv = 0.5 * (C_inv + np.swapaxes(C_inv, 1, 2))
    D = dC @ C_inv
    A = dCd - D @ Cd + jitter * eye
    w, Q = np.linalg.eigh(0.5 * (A + np.swapaxes(A, 1, 2)))
    mean = np.empty((K, N))
    for k, h in enumerate(hypers):
        seen = np.isfinite(y[k])
        S = C[k][np.ix_(seen, seen)] + h.noise * np.eye(int(seen.sum()))
        mean[k] = C[k][:, seen] @ np.linalg.solve(S, y[k, seen])
    return Smoother(mean, C_inv, D, Q, np.maximum(w, 0.0))
