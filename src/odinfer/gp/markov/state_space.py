"""Matérn processes as Markov chains.

A Matérn process of smoothness d − ½ solves (d/ds + λ)ᵈ g = white noise. Written with p_j = (d/ds + λ)ʲ g for j < d, its
state after a lag Δ is exp(−λΔ) U(Δ) p plus noise, with U the matrix of Taylor's formula, U_ij = Δ^(j−i)/(j−i)!, and
the noise's covariance q ∫ m mᵀ exp(−2λu) du over 0 … Δ, m_i = u^(d−1−i)/(d−1−i)!. The integrals are incomplete gamma
functions, accurate however short the lag: no difference of nearly equal matrices is formed.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from math import factorial

import numpy as np
from numpy.typing import NDArray

from odinfer.gp.evidence import Hyperparameters
from odinfer.gp.markov.block_tridiagonal import banded

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

_ORDER = {"matern32": 2, "matern52": 3, "matern72": 4}


def order(name: str) -> int | None:
    """How many numbers the state of a kernel's chain has; None if the kernel has no chain."""
    return _ORDER.get(name.removeprefix("warped-"))


def own_time(name: str, shape: Sequence[float], t: Array) -> tuple[Array, Array]:
    """The process's own time at times t (M,) from the start of the data, in units of 1/λ, and its rate (M,)."""
    rate = np.sqrt(2.0 * (_ORDER[name.removeprefix("warped-")] - 0.5)) / shape[0]
    if name.startswith("warped-"):
        return rate * np.log1p(np.maximum(t, 0.0) / shape[-1]), rate / (np.maximum(t, 0.0) + shape[-1])
    return rate * t, np.full(len(t), rate)


@dataclass(frozen=True, eq=False)
class Chain:
    """K processes of unit variance at M times, as chains of states p (d,), stacked one process after the other.

    With the process's own time λs as its time, λ is one, and a state's first two entries are g and dg/dt/rate + g.

    Attributes:
        R, T: the white noise between neighbours is R_n p_n − T_n p_(n−1), each (K, M, d, d); T is zero where a series
            of observations begins.
        rate: of each process's own time (K, M).
    """

    R: Array
    T: Array
    rate: Array

    @staticmethod
    def of(hypers: Sequence[Hyperparameters], t: Array, first: Mask) -> Chain:
        """At times (M,), each from the start of its experiment; `first` (M,) marks where experiments begin."""
        d = order(hypers[0].kernel)
        assert d is not None
        own, rate = (np.stack(v) for v in zip(*(own_time(h.kernel, h.shape, t) for h in hypers), strict=True))
        lag = np.where(first, np.inf, np.diff(own, axis=1, prepend=0.0))
        R = _whitening(lag, d)
        finite = np.where(first, 0.0, lag)
        U = np.zeros((*lag.shape, d, d))
        for i in range(d):
            for j in range(i, d):
                U[..., i, j] = finite ** (j - i) / factorial(j - i)
        T = R @ (U * np.where(first, 0.0, np.exp(-finite))[..., None, None])
        return Chain(R, T, rate)

    @property
    def d(self) -> int:
        return int(self.R.shape[-1])

    @functools.cached_property
    def slope(self) -> Array:
        """The rows (K, M, d) that take the state to the derivative by time."""
        rows = np.zeros(self.R.shape[:-1])
        rows[..., 0], rows[..., 1] = -self.rate, self.rate
        return rows

    @functools.cached_property
    def blocks(self) -> tuple[Array, Array]:
        """The precision: blocks (K, M, d, d) on its diagonal, and those of each time with the one before."""
        RT, TT = np.swapaxes(self.R, 2, 3), np.swapaxes(self.T, 2, 3)
        diagonal = RT @ self.R
        diagonal[:, :-1] += (TT @ self.T)[:, 1:]
        return diagonal, -(RT @ self.T)

    def band(self, scale: Array) -> Array:
        """The precision of all processes stacked as a band (2d, K·M·d), each divided by its scale (K,)."""
        weight = (1.0 / scale)[:, None, None, None]
        diagonal, before = (np.reshape(weight * b, (-1, self.d, self.d)) for b in self.blocks)
        return banded(diagonal, before[1:])

    @functools.cached_property
    def logdet(self) -> Array:
        """Of the precision of each process (K,)."""
        return np.asarray(2.0 * np.log(np.einsum("kmii->kmi", self.R)).sum((1, 2)))

    def energy(self, p: Array) -> Array:
        """pᵀ (precision) p of states (K, M, d), as a sum of squares (K,)."""
        noise = np.einsum("kmij,kmj->kmi", self.R, p)
        noise[:, 1:] -= np.einsum("kmij,kmj->kmi", self.T[:, 1:], p[:, :-1])
        return np.asarray(np.square(noise).sum((1, 2)))


def _whitening(lag: Array, d: int) -> Array:
    """The inverse Cholesky factors (..., d, d) of the noise over lags (...,); stationary where a lag is infinite."""
    from scipy.special import gammainc

    unit = factorial(d - 1) ** 2 * 2.0 ** (2 * d - 1) / factorial(2 * d - 2)
    grown = [None, *(gammainc(m, 2.0 * lag) for m in range(1, 2 * d))]
    Q = np.empty((*lag.shape, d, d))
    for i in range(d):
        for j in range(d):
            a, b = d - 1 - i, d - 1 - j
            factor = unit * factorial(a + b) / (factorial(a) * factorial(b)) / 2.0 ** (a + b + 1)
            Q[..., i, j] = factor * grown[a + b + 1]
    size = np.sqrt(np.einsum("...ii->...i", Q))
    L = np.linalg.cholesky(Q / (size[..., :, None] * size[..., None, :]))
    return np.asarray(np.linalg.inv(L) / size[..., None, :])
