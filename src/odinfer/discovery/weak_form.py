"""Regression of equations in their weak form against smoothed states, weighted by the smoother's uncertainty.

Multiplied with a test function φ that vanishes at both ends of the data and integrated by parts, x' = f(x) becomes
−∫φ'x dt = ∫φ f(x) dt: no slopes of noisy data are needed. Test functions are sines over the time span (modulating
functions, Shinbrot 1957). Errors δx of the smoothed states enter both sides; to first order they add
−∫φ'δx − ∫φ f_x δx, whose covariance follows from that of the Gaussian process and weights the regression.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from odinfer.gp.curves import Curve
from odinfer.gp.evidence import Hyperparameters
from odinfer.gp.grids import finer_grid
from odinfer.gp.kernels import kernel
from odinfer.gp.smoother import posterior_curves, smooth_states
from odinfer.gp.standardisation import Units
from odinfer.problem.problem import Problem

Array = NDArray[np.float64]

_QUADRATURE = 240  # points per experiment at least
_TESTS = 80  # test functions per experiment at most: faster ones see noise only
_RIDGE = 1e-6  # of a test function's largest variance: the quadrature is not more accurate than that


@dataclass(frozen=True, eq=False)
class WeakForm:
    """Smoothed states with their uncertainty, and test functions. All experiments are joined, point by point.

    Attributes:
        t, x, u: quadrature times (M,), smoothed states (M, K) and inputs (M, U).
        V, Vd: (Q, M): V g = ∫φ g dt and Vd g = ∫φ' g dt.
        factors: per state (M, ·): the covariance of the smoothed state is F Fᵀ.
        curves: the smoother's curve of every experiment.
        noise: standard deviations (K,) of the observations.
    """

    t: Array
    x: Array
    u: Array
    V: Array
    Vd: Array
    factors: tuple[Array, ...]
    curves: tuple[Curve, ...]
    noise: Array

    @staticmethod
    def of(problem: Problem) -> WeakForm:
        """Smooth every state of a problem by a Gaussian process whose hyperparameters maximise the evidence."""
        units = Units.of(problem)
        hypers = smooth_states(problem, units, weak_prior=True)
        t, x, u, V, Vd = [], [], [], [], []
        factors: list[list[Array]] = [[] for _ in hypers]
        for i, e in enumerate(problem.data.experiments):
            if len(e.t) < 2:
                continue
            times = np.unique(e.t)
            own, _ = finer_grid(times, max(1, -(-_QUADRATURE // (len(times) - 1))))
            t.append(own)
            u.append(problem.inputs_at(i, own))
            phi, slope = _test_functions(own, min(_TESTS, len(times) + 1))
            V.append(phi)
            Vd.append(slope)
            means = []
            for k, h in enumerate(hypers):
                mean, factor = _posterior(units.of_state(k), h, e.t, e.y[:, k], own)
                means.append(mean)
                factors[k].append(factor)
            x.append(np.stack(means, 1))
        noise = units.user_sd(np.sqrt([h.noise for h in hypers]))
        curves = tuple(posterior_curves(problem, units, hypers))
        joined = tuple(_block_diagonal(own) for own in factors)
        return WeakForm(
            np.concatenate(t), np.concatenate(x), np.concatenate(u), _block_diagonal(V), _block_diagonal(Vd), joined,
            curves, noise,
        )  # fmt: skip

    def whitener(self, k: int, fx: Array) -> Array:
        """W (Q, Q) such that W times the errors of equation k has unit covariance.

        Args:
            fx: derivatives (M, K) of the equation by all states.
        """
        S = np.zeros((len(self.V), len(self.V)))
        for i, F in enumerate(self.factors):
            A = -(self.V * fx[:, i]) @ F - (self.Vd @ F if i == k else 0.0)
            S += A @ A.T
        S += _RIDGE * np.diag(S).max() * np.eye(len(S))
        return np.linalg.inv(np.linalg.cholesky(S))

    def slopes(self, k: int) -> Array:
        """−∫φ'x_k dt (Q,)."""
        return -self.Vd @ self.x[:, k]


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


def _test_functions(t: Array, count: int) -> tuple[Array, Array]:
    """Quadrature matrices (Q, M) of sines over the time span and of their derivatives, by the trapezoidal rule."""
    weight = np.zeros(len(t))
    weight[:-1] += 0.5 * np.diff(t)
    weight[1:] += 0.5 * np.diff(t)
    span = t[-1] - t[0]
    omega = np.pi * np.arange(1, count + 1)[:, None] / span
    at = t - t[0]
    return np.sin(omega * at) * weight, omega * np.cos(omega * at) * weight


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
