"""Regression of equations in their integral form, weighted by the uncertainty of data and smoothed states.

Integrated over time, x' = f(x) becomes y(t_i) − x(0) − ∫ f(x) dt = ε_i: no slopes of noisy data are needed, and what is
left of the data is their noise (integral matching, Dattner and Klaassen 2015). Smoothed states x + δx stand in the
integrals; to first order they add −∫ f_x δx, which is correlated with ε_i since both come from the same data. The
covariance of the sum follows from that of the Gaussian process and weights the regression.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from odinfer.gp.curves import Curve
from odinfer.gp.evidence import Hyperparameters
from odinfer.gp.grids import finer_grid, thinned
from odinfer.gp.kernels import kernel
from odinfer.gp.smoother import posterior_curves, smooth_states
from odinfer.gp.standardisation import Units
from odinfer.problem.problem import Problem

Array = NDArray[np.float64]

_QUADRATURE = 240  # points per experiment at least
_OBSERVED = 400  # times per experiment at most: algebra is cubic in them, and more tell little that screening needs
_RIDGE = 0.1  # of the noise's variance: no error is known better than that


@dataclass(frozen=True, eq=False)
class IntegralForm:
    """Smoothed states with their uncertainty, and integrals to the times of data. All experiments are joined.

    Attributes:
        t, x, u: quadrature times (M,), smoothed states (M, K) and inputs (M, U).
        y: observations (Q, K), NaN where there is none.
        V: (Q, M): V g is ∫ g dt from the first time to that of each observation.
        place: of each observation (Q,) among the quadrature times.
        starts: (Q, E): 1 where an observation belongs to an experiment, whose initial values are unknown.
        factors: per state (M, ·): the covariance of the smoothed state is F Fᵀ.
        curves: the smoother's curve of every experiment.
        noise: standard deviations (K,) of the observations.
    """

    t: Array
    x: Array
    u: Array
    y: Array
    V: Array
    place: NDArray[np.int64]
    starts: Array
    factors: tuple[Array, ...]
    curves: tuple[Curve, ...]
    noise: Array

    @staticmethod
    def of(problem: Problem) -> IntegralForm:
        """Smooth every state of a problem by a Gaussian process whose hyperparameters maximise the evidence."""
        units = Units.of(problem)
        hypers = smooth_states(problem, units, weak_prior=True)
        t, x, u, y, V = (list[Array]() for _ in range(5))
        place: list[NDArray[np.int64]] = []
        factors: list[list[Array]] = [[] for _ in hypers]
        for i, e in enumerate(problem.data.experiments):
            if len(np.unique(e.t)) < 2:
                continue
            some = thinned(len(e.t), _OBSERVED)
            seen, observed = e.t[some], e.y[some]
            times = np.unique(seen)
            grid, _ = finer_grid(times, max(1, -(-_QUADRATURE // (len(times) - 1))))
            place.append(np.searchsorted(grid, seen) + sum(map(len, t)))
            V.append(_integrals(grid)[np.searchsorted(grid, seen)])
            t.append(grid)
            u.append(problem.inputs_at(i, grid))
            y.append(observed)
            smoothed = [_posterior(units.of_state(k), h, seen, observed[:, k], grid) for k, h in enumerate(hypers)]
            x.append(np.stack([mean for mean, _ in smoothed], 1))
            for own, (_, factor) in zip(factors, smoothed, strict=True):
                own.append(factor)
        noise = units.user_sd(np.sqrt([h.noise for h in hypers]))
        curves = tuple(posterior_curves(problem, units, hypers))
        starts = _block_diagonal([np.ones((len(own), 1)) for own in y])
        joined = tuple(_block_diagonal(own) for own in factors)
        return IntegralForm(
            np.concatenate(t), np.concatenate(x), np.concatenate(u), np.concatenate(y), _block_diagonal(V),
            np.concatenate(place), starts, joined, curves, noise,
        )  # fmt: skip

    def whitener(self, k: int, fx: Array) -> Array:
        """W (·, Q) such that W times the errors of equation k has unit covariance; initial values are projected out.

        Args:
            fx: derivatives (M, K) of the equation by all states.
        """
        seen = np.flatnonzero(np.isfinite(self.y[:, k]))
        S = self.noise[k] ** 2 * np.eye(len(seen))
        for i, F in enumerate(self.factors):
            B = (self.V[seen] * fx[:, i]) @ F
            S += B @ B.T
            if i == k:
                shared = B @ F[self.place[seen]].T
                S -= shared + shared.T
        w, U = np.linalg.eigh(S)
        W = (U / np.sqrt(np.maximum(w, _RIDGE * self.noise[k] ** 2))).T
        constants = np.linalg.qr(W @ self.starts[seen])[0]
        found = np.zeros((len(seen), len(self.y)))
        found[:, seen] = W - constants @ (constants.T @ W)
        return found

    def changes(self, k: int) -> Array:
        """Observations (Q,) of state k, which the integral of its equation explains but for initial values."""
        return np.nan_to_num(self.y[:, k])


@dataclass(frozen=True, eq=False)
class Gains:
    """What single further columns gain in a weighted least-squares fit.

    Attributes:
        gain: nats (C,) of each column, with all own columns fitted anew.
        coefficient: of each column (C,).
        own: coefficients of the own columns beside each (C, P).
    """

    gain: Array
    coefficient: Array
    own: Array


def gains(residual: Array, own: Array, columns: Array, least: float = 1e-4) -> Gains:
    """Fit a residual (Q,) by own columns (Q, P) and one further column (Q, C) at a time, all whitened.

    Columns that the own ones span to a share of `least` gain nothing.
    """
    own_sizes = np.linalg.norm(own, axis=0)
    scaled = own / np.where(own_sizes > 0, own_sizes, 1.0)
    u, s, vt = np.linalg.svd(scaled, full_matrices=False)
    keep = s > 1e-10 * s.max(initial=0.0)
    u, inverse = u[:, keep], (vt[keep].T / s[keep]) @ u[:, keep].T
    rest, new = residual - u @ (u.T @ residual), columns - u @ (u.T @ columns)
    size2, full2 = (new**2).sum(0), (columns**2).sum(0)
    fresh = size2 > least**2 * full2
    projected = new.T @ rest
    coefficient = np.where(fresh, projected / np.where(fresh, size2, 1.0), 0.0)
    beside = (residual[:, None] - columns * coefficient).T @ inverse.T
    beside = beside / np.where(own_sizes > 0, own_sizes, 1.0)
    return Gains(0.5 * coefficient * projected, coefficient, beside)


def _integrals(t: Array) -> Array:
    """(M, M): integrals from the first time to each, by the trapezoidal rule."""
    half = 0.5 * np.diff(t)
    steps = np.zeros((len(t), len(t)))
    steps[1:, :-1] += np.diag(half)
    steps[1:, 1:] += np.diag(half)
    return np.cumsum(steps, axis=0)


def _posterior(units: Units, h: Hyperparameters, t: Array, y: Array, at: Array) -> tuple[Array, Array]:
    """Mean (M,) and factor (M, ·) of the covariance of a smoothed state, in the user's units, at times (M,)."""
    seen = np.isfinite(y)
    start = t[0]
    own, there = units.standard_time(t[seen], start), units.standard_time(at, start)
    correlation, shape = kernel(h.kernel), np.array(h.shape)
    prior = h.variance * correlation.gram(there, there, shape).C
    cross = h.variance * correlation.gram(there, own, shape).C
    S = h.variance * correlation.gram(own, own, shape).C + (h.noise + 1e-9) * np.eye(len(own))
    L = np.linalg.cholesky(S)
    half = np.linalg.solve(L, cross.T)
    mean = half.T @ np.linalg.solve(L, units.standard(y[seen]))
    w, U = np.linalg.eigh(prior - half.T @ half)
    keep = w > 1e-9 * w.max()
    factor = U[:, keep] * np.sqrt(w[keep])
    return units.user(mean), units.user_sd(factor)


def _block_diagonal(blocks: Sequence[Array]) -> Array:
    rows, columns = (sum(b.shape[a] for b in blocks) for a in (0, 1))
    found = np.zeros((rows, columns))
    r = c = 0
    for b in blocks:
        found[r : r + b.shape[0], c : c + b.shape[1]] = b
        r, c = r + b.shape[0], c + b.shape[1]
    return found
