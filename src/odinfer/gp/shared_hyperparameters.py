"""Gaussian processes of thousands of states: shapes from one grid, so that states share eigensystems and operators.

A state's evidence changes little between neighbouring shapes of a grid of forty; held to it, thousands of states
need no more eigendecompositions than the grid has shapes, and those of one shape share C⁻¹, D and the eigenvectors
of A up to their variance, with the jitter counted in units of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.gp.evidence import LOG_RATIOS, Hyperparameters, Limits, Series, at_best_noise, evidence_table
from odinfer.gp.kernels import Kernel, kernel

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_SHAPES = 40  # candidates of a kernel with one shape parameter
_CHUNK = 500  # states whose tables are in memory at a time


def bayes_on_grid(
    series: Sequence[Sequence[Series]],
    kernels: Sequence[str],
    known_noise: Sequence[float | None],
    margin: float,
    bounds: tuple[float, float],
    weak_prior: bool,
) -> list[Hyperparameters]:
    """Hyperparameters that maximise the evidence among the shapes of a grid; else as `empirical_bayes`."""
    limits = Limits.of(bounds, weak_prior)
    noise = np.array([np.nan if n is None else n for n in known_noise])
    alike: dict[tuple[bytes, ...], list[int]] = {}
    for k, state in enumerate(series):
        alike.setdefault(tuple(s.t.tobytes() for s in state), []).append(k)
    found: dict[int, Hyperparameters] = {}
    candidates = [(kernel(name), _grid(kernel(name), series[0], limits)) for name in kernels]
    for members in alike.values():
        times = [s.t for s in series[members[0]]]
        systems = [[np.linalg.eigh(k.gram(t, t, shapes).C) for t in times] for k, shapes in candidates]
        for start in range(0, len(members), _CHUNK):
            chunk = members[start : start + _CHUNK]
            y = [np.stack([series[k][e].y for k in chunk], -1) for e in range(len(times))]
            best: list[Hyperparameters] = []
            for (own, shapes), eigen in zip(candidates, systems, strict=True):
                rivals = _best(own, shapes, eigen, y, noise[chunk], limits)
                best = rivals if not best else [
                    r if r.evidence > b.evidence + margin else b for b, r in zip(best, rivals, strict=True)
                ]  # fmt: skip
            found |= dict(zip(chunk, best, strict=True))
    return [found[k] for k in range(len(series))]


def _grid(k: Kernel, state: Sequence[Series], limits: Limits) -> Array:
    longest = max((s.t for s in state), key=lambda t: float(t[-1] - t[0]))
    axes = k.grid(longest)
    if len(axes) == 1:
        axes = (np.geomspace(axes[0][0], axes[0][-1], _SHAPES),)
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, len(axes))
    return np.clip(grid, limits.low, limits.high)


def _best(
    k: Kernel, shapes: Array, eigen: Sequence[tuple[Array, Array]], y: list[Array], noise: Array, limits: Limits
) -> list[Hyperparameters]:
    """The best shape of every state from the whole table, then its best noise ratio."""
    lam = np.concatenate([np.maximum(values, 0.0) for values, _ in eigen], -1)  # (G, n)
    b2 = np.concatenate([np.square(np.swapaxes(U, -1, -2) @ ye) for (_, U), ye in zip(eigen, y, strict=True)], -2)
    table = evidence_table(lam, b2, LOG_RATIOS, noise, limits)  # (G, R, S)
    S = table.shape[-1]
    g, r = np.divmod(table.reshape(-1, S).argmax(0), len(LOG_RATIOS))
    coarse = np.clip(LOG_RATIOS[r], LOG_RATIOS[1], LOG_RATIOS[-2])
    return at_best_noise(k, shapes[g], lam[g], b2[g, :, np.arange(S)], noise, coarse, limits)


class Element(NamedTuple):
    """Operators T and S by elements (n, m, s): m equations on s points, the last shared with the next element."""

    T: Array
    S: Array


@dataclass(frozen=True)
class Group:
    """Operators that some states share on a grid of N times, for unit variance.

    Attributes:
        members: which states.
        prior: C⁻¹ (N, N), the weight of a state's own values.
        T, S: the mismatch of a state is e = T f − S z, each (E, N); for a Gaussian process Qᵀ and QᵀD.
        w: variances (E,) of e.
        element: T and S once more where they reach only over elements of a mesh; then both are sparse.
    """

    members: Index
    prior: Array
    T: Any
    S: Any
    w: Array
    element: Element | None = None

    def tempered(self, temper: float) -> Group:
        """The same with the weight of the prior on x and ẋ divided by `temper`."""
        return replace(self, prior=self.prior / temper, w=self.w * temper)


def shared_operators(
    hypers: Sequence[Hyperparameters], t: Array, y: Array, jitter: float
) -> tuple[tuple[Group, ...], Array]:
    """The operators of every distinct kernel shape on a grid, and the posterior means (N, K).

    Args:
        hypers: one per state; the variance scales a group's operators.
        t: grid times (N,).
        y: standardised observations (N, K), NaN where there is none.
        jitter: added to the diagonals of C and A, in units of the variance.
    """
    alike: dict[tuple[str, tuple[float, ...]], list[int]] = {}
    for k, h in enumerate(hypers):
        alike.setdefault((h.kernel, h.shape), []).append(k)
    ratio = np.array([h.noise / h.variance for h in hypers])
    groups, mean, eye = [], np.empty(y.shape), np.eye(len(t))
    for (name, shape), states in alike.items():
        members = np.array(states)
        g = kernel(name).gram(t, t, np.array(shape))
        C = g.C + jitter * eye
        prior = np.linalg.inv(C)
        prior = 0.5 * (prior + prior.T)
        D = g.dC @ prior
        A = g.dCd - D @ g.Cd + jitter * eye
        w, Q = np.linalg.eigh(0.5 * (A + A.T))
        groups.append(Group(members, prior, np.ascontiguousarray(Q.T), Q.T @ D, np.maximum(w, 0.0)))
        mean[:, members] = _posterior_mean(C, y[:, members], ratio[members])
    return tuple(groups), mean


def _posterior_mean(C: Array, y: Array, ratio: Array) -> Array:
    """Means (N, S) of states with correlation C (N, N), observations y (N, S) and noise ratios (S,)."""
    mean, seen = np.empty(y.shape), np.isfinite(y)
    patterns, which = np.unique(seen, axis=1, return_inverse=True)
    for i, at in enumerate(patterns.T):
        own = np.flatnonzero(which == i)
        lam, U = np.linalg.eigh(C[np.ix_(at, at)])
        weighted = (U.T @ y[np.ix_(at, own)]) / (np.maximum(lam, 0.0)[:, None] + ratio[own])
        mean[:, own] = C[:, at] @ (U @ weighted)
    return mean
