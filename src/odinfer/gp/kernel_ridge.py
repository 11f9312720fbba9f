"""Kernel ridge regression of time series, and the basis in which RKG matches derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.gp.curves import Curve
from odinfer.gp.grids import dense_times, finer_grid
from odinfer.gp.kernels import Kernel
from odinfer.gp.standardisation import Units
from odinfer.problem.problem import Problem

Array = NDArray[np.float64]

RIDGES = (5.0, 1.0, 1e-1, 1e-2, 1e-3, 1e-4)
_FOLDS, _REFINEMENTS = 3, 3


class Ridge(NamedTuple):
    """Kernel ridge regression of one series: shape (d,), ridge λ, coefficients b (n,), mean, degrees of freedom."""

    shape: Array
    ridge: float
    b: Array
    centre: float
    freedom: float


class _Part(NamedTuple):
    """Training times and centred values with the eigensystems (G, m, m) of their kernel matrices; what is held out."""

    t: Array
    y: Array
    lam: Array
    U: Array
    t_out: Array
    y_out: Array


def ridge_regression(k: Kernel, t: Array, y: Array) -> Ridge:
    """λ by 3-fold cross-validation with interleaved folds, three refinements around the best, then all data.

    Within a fold's training part the kernel's shape is chosen anew for every λ by the leave-one-out error, which
    has the closed form (H⁻¹y)_i / (H⁻¹)_ii with H = K + λI.
    """
    n = len(t)
    centre = float(y.mean()) if n else 0.0
    if n < 4:  # too few to validate anything: a stiff, damped curve
        shape = np.median(k.shapes(t)[0], 0) if n > 1 else np.ones(len(k.shape_names))
        return _final(k, shape, 0.1, t, y, centre)
    shapes, steps = k.shapes(t)
    fold = np.arange(n) % _FOLDS
    parts = [_part(k, shapes, t, y, fold == i) for i in range(_FOLDS)]

    def error(ridges: Array) -> Array:
        total = np.zeros(len(ridges))
        for p in parts:
            scores, alpha = leave_one_out(p.lam, p.U, p.y, ridges)
            best = scores.argmin(0)
            guess = k.gram(p.t_out, p.t, shapes[best]).C @ alpha[best, :, np.arange(len(ridges))][..., None]
            total += ((guess[..., 0] - p.y_out) ** 2).sum(-1)
        return total

    ridges = np.array(RIDGES)
    errors = error(ridges)
    ratio = np.sqrt(10.0)
    for _ in range(_REFINEMENTS):
        best = ridges[errors.argmin()]
        near = np.array([best / ratio, best * ratio])
        ridges, errors = np.r_[ridges, near], np.r_[errors, error(near)]
        ratio = np.sqrt(ratio)
    ridge = float(ridges[errors.argmin()])
    shape = shapes[_scores(k, shapes, t, y - centre, ridge).argmin()]
    stencil = np.stack(np.meshgrid(*[np.linspace(-1.0, 1.0, 5)] * len(shape), indexing="ij"), -1).reshape(
        -1, len(shape)
    )
    for shrink in (0.8, 0.3):
        trial = shape * np.exp(shrink * steps * stencil)
        shape = trial[_scores(k, trial, t, y - centre, ridge).argmin()]
    return _final(k, shape, ridge, t, y, centre)


def leave_one_out(lam: Array, U: Array, y: Array, ridges: Array) -> tuple[Array, Array]:
    """Mean squared leave-one-out errors (G, L) and coefficients (G, m, L) of kernel ridge regression.

    Args:
        lam, U: eigenvalues (G, m) and eigenvectors (G, m, m) of the kernel matrices.
        y: centred values (m,).
        ridges: (L,).
    """
    inverse = 1.0 / (lam[..., None] + ridges)  # (G, m, L)
    alpha = U @ ((y @ U)[..., None] * inverse)
    return ((alpha / (U**2 @ inverse)) ** 2).mean(1), alpha


def _part(k: Kernel, shapes: Array, t: Array, y: Array, out: NDArray[np.bool_]) -> _Part:
    lam, U = np.linalg.eigh(k.gram(t[~out], t[~out], shapes).C)
    mean = y[~out].mean()
    return _Part(t[~out], y[~out] - mean, np.maximum(lam, 0.0), U, t[out], y[out] - mean)


def _scores(k: Kernel, shapes: Array, t: Array, y: Array, ridge: float) -> Array:
    lam, U = np.linalg.eigh(k.gram(t, t, shapes).C)
    return leave_one_out(np.maximum(lam, 0.0), U, y, np.array([ridge]))[0][:, 0]


def _final(k: Kernel, shape: Array, ridge: float, t: Array, y: Array, centre: float) -> Ridge:
    C = k.gram(t, t, shape).C
    inverse = np.linalg.inv(C + ridge * np.eye(len(t)))
    return Ridge(shape, ridge, inverse @ (y - centre), centre, float(np.trace(C @ inverse)))


@dataclass(frozen=True)
class Regression:
    """All series of a problem in standardised units; points of all experiments are stacked (M,).

    Attributes:
        rows: per experiment, where its points stand.
        ridges: per experiment and state.
        C, dC: per experiment, k and dk/dt between its times (K, N, N).
        smoothed: per experiment, coefficients (K, N), zero where a state was not observed.
    """

    problem: Problem
    units: Units
    kernel: Kernel
    t: Array
    u: Array
    y: Array
    rows: tuple[slice, ...]
    ridges: tuple[tuple[Ridge, ...], ...]
    C: tuple[Array, ...]
    dC: tuple[Array, ...]
    smoothed: list[Array]

    @staticmethod
    def of(problem: Problem, units: Units, k: Kernel) -> Regression:
        """Smooth every state of every experiment on its own."""
        rows, ridges, C, dC, smoothed, start = [], [], [], [], [], 0
        for e in problem.data.experiments:
            rows.append(slice(start, start := start + len(e.t)))
            t, y = units.standard_time(e.t, e.t[0]), units.standard(e.y)
            seen = np.isfinite(y)
            found = tuple(ridge_regression(k, t[s], column[s]) for s, column in zip(seen.T, y.T, strict=True))
            grams = [k.gram(t, t, r.shape) for r in found]
            b = np.zeros(y.T.shape)
            for bk, s, r in zip(b, seen.T, found, strict=True):
                bk[s] = r.b
            ridges.append(found)
            smoothed.append(b)
            C.append(np.stack([g.C for g in grams]))
            dC.append(np.stack([g.dC for g in grams]))
        data = problem.data.experiments
        u = np.concatenate([problem.inputs_at(i, e.t) for i, e in enumerate(data)])
        t, y = np.concatenate([e.t for e in data]), units.standard(np.concatenate([e.y for e in data]))
        return Regression(problem, units, k, t, u, y, tuple(rows), tuple(ridges), tuple(C), tuple(dC), smoothed)

    def between(self, points: int) -> Regression:
        """The same curves at `points` per gap between the times of every experiment, where nothing is observed."""
        rows, C, dC, times, inputs, start = [], [], [], [], [], 0
        for i, (e, found) in enumerate(zip(self.problem.data.experiments, self.ridges, strict=True)):
            t = finer_grid(e.t, points)[0]
            rows.append(slice(start, start := start + len(t)))
            fine, unit = (self.units.standard_time(v, e.t[0]) for v in (t, e.t))
            grams = [self.kernel.gram(fine, unit, r.shape) for r in found]
            C.append(np.stack([g.C for g in grams]))
            dC.append(np.stack([g.dC for g in grams]))
            times.append(t)
            inputs.append(self.problem.inputs_at(i, t))
        t, y = np.concatenate(times), np.full((start, self.y.shape[1]), np.nan)
        return replace(self, t=t, u=np.concatenate(inputs), y=y, rows=tuple(rows), C=tuple(C), dC=tuple(dC))

    @property
    def freedom(self) -> Array:
        """Degrees of freedom (K,) that the smoothers used."""
        return np.asarray(np.sum([[r.freedom for r in found] for found in self.ridges], 0))

    @property
    def centre(self) -> Array:
        """Means (M, K) that the regressions were centred on."""
        sizes = [s.stop - s.start for s in self.rows]
        return np.repeat([[r.centre for r in found] for found in self.ridges], sizes, 0)

    def states(self, b: Sequence[Array]) -> tuple[Array, Array]:
        """x and ẋ (R, M, K) at all points from coefficients (R, K, N) per experiment."""
        x, slope = (
            np.concatenate([(G @ p[..., None])[..., 0] for G, p in zip(grams, b, strict=True)], -1)
            for grams in (self.C, self.dC)
        )
        return self.centre + np.swapaxes(x, -1, -2), np.swapaxes(slope, -1, -2)

    def field(self, x: Array, phi: Array, logs: NDArray[np.bool_]) -> tuple[Array, Array]:
        """f (R, M, K) and ∂f/∂φ (R, M, K, F) at x (R, M, K), φ (R, F), standardised; states kept within bounds."""
        p, (R, M, K) = self.problem, x.shape
        theta = np.tile([p.fixed.get(n, np.nan) for n in p.model.parameters], (R, 1))
        free = np.where(logs, np.exp(np.where(logs, phi, 0.0)), phi)
        theta[:, p.free_index] = free
        user = np.clip(self.units.user(x), *p.state_bounds).reshape(R * M, K)
        f, fx, ft = p.model.linearise(np.tile(self.t, R), user, np.repeat(theta, M, 0), np.tile(self.u, (R, 1)))
        f, _, ft = self.units.standard_field(f, fx, ft[..., p.free_index])
        return f.reshape(R, M, K), ft.reshape(R, M, K, -1) * np.where(logs, free, 1.0)[:, None, None]

    def curves(self, b: Sequence[Array]) -> list[Curve]:
        """The regressions in the user's units, without a band, from coefficients (K, N) per experiment."""
        found = []
        for e, p, ridges in zip(self.problem.data.experiments, b, self.ridges, strict=True):
            dense = dense_times(e.t)
            unit, fine = (self.units.standard_time(v, e.t[0]) for v in (e.t, dense))
            grams = [self.kernel.gram(fine, unit, r.shape) for r in ridges]
            x = np.stack([r.centre + g.C @ c for r, g, c in zip(ridges, grams, p, strict=True)], -1)
            slope = np.stack([g.dC @ c for g, c in zip(grams, p, strict=True)], -1)
            found.append(Curve.of_standard(self.units, dense, x, slope, np.zeros_like(x)))
        return found

    def details(self) -> dict[str, Any]:
        """λ and kernel shape of every state, a list over experiments."""
        names = self.problem.model.states
        of = {n: [found[k] for found in self.ridges] for k, n in enumerate(names)}
        return {
            "ridge": {n: [r.ridge for r in found] for n, found in of.items()},
            "shape": {n: [r.shape.tolist() for r in found] for n, found in of.items()},
        }
