"""Linear operators that read states at observation times off collocated paths, compressed for long series.

Few times are points of the mesh. Where there are many the mesh follows the trajectory alone, and states in between are
values of the collocation polynomials: B v with the s + 1 values v of an interval and a row of B per time. Gaussian data
y of that interval then say no more than s + 1 numbers do. With B = QR,

    ‖B v − y‖² = ‖R v − Qᵀy‖² + ‖y − QQᵀy‖²,

so the rows of R read the path, Qᵀy is what they should find, and the last term is the same for all trajectories. A
step of a search costs no more then for a hundred thousand observations than for a few hundred.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odinfer.ode.collocation import STAGES, basis

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_ROOM = 1_000_000  # observations that are compressed at once
_VALUES = STAGES + 1  # of an interval: at its beginning and at its stages


@dataclass(frozen=True, eq=False)
class ObservationOperator:
    """N linear functions of what a path is at the points and stages of a mesh of n intervals.

    Attributes:
        intervals: n.
        node: points of the mesh (N,) that are read; None if it is read between them, too.
        interval: which interval (N,) is read, in order; −1 is the path's first point.
        weights: of the values (N, s+1) at the beginning and the stages of the interval.
    """

    intervals: int
    node: Index | None
    interval: Index
    weights: Array

    @staticmethod
    def of(mesh: Array, t: Array) -> ObservationOperator:
        """At times t (N,) in order, before any jump there."""
        node, n = np.minimum(np.searchsorted(mesh, t), len(mesh) - 1), len(mesh) - 1
        if (mesh[node] == t).all():
            return ObservationOperator(n, node, np.empty(0, np.int64), np.empty(0))
        i = np.clip(np.searchsorted(mesh, t) - 1, 0, n - 1)
        weights, first = basis((t - mesh[i]) / np.diff(mesh)[i]), t == mesh[0]
        weights[first] = np.eye(_VALUES)[0]
        return ObservationOperator(n, None, np.where(first, -1, i), weights)

    @functools.cached_property
    def _matrix(self) -> Any:
        """Of all values, the first point before those of the intervals."""
        from scipy.sparse import csr_array

        rows = np.arange(len(self.interval) + 1) * _VALUES
        columns = 1 + self.interval[:, None] * _VALUES + np.arange(_VALUES)
        columns[self.interval < 0] = np.arange(_VALUES)
        return csr_array((self.weights.ravel(), columns.ravel(), rows),
                         (len(self.interval), 1 + self.intervals * _VALUES))  # fmt: skip

    def read(self, nodes: Array, starts: Array, stages: Array) -> Array:
        """(B, N, ...) of B paths, or of their sensitivities.

        Args:
            nodes: at the points of the mesh (B, n+1, ...), before any jump.
            starts: at the beginning of the intervals (B, n, ...), after any jump.
            stages: (B, n, s, ...).
        """
        if self.node is not None:
            return np.asarray(nodes[:, self.node])
        B, _, *rest = nodes.shape
        values = np.concatenate([starts[:, :, None], stages], 2).reshape(B, self.intervals * _VALUES, -1)
        values = np.concatenate([nodes[:, :1].reshape(B, 1, -1), values], 1)
        found = self._matrix @ np.moveaxis(values, 0, 1).reshape(values.shape[1], -1)
        return np.ascontiguousarray(np.moveaxis(found.reshape(-1, B, values.shape[2]), 0, 1)).reshape(B, -1, *rest)

    def compressed(self, y: Array) -> tuple[ObservationOperator, Array]:
        """Fewer readings, and what they should find (B, ·, K), with the same squared distance to all paths as y.

        Args:
            y: Gaussian observations (B, N, K) of the states, missing in all B sets or in none.
        """
        if self.node is not None:
            return self, y
        B, _, K = y.shape
        seen, whole = np.isfinite(y[0]), np.isfinite(y[0]).all(1)
        runs, left = self._runs(), np.zeros((B, 1, K))
        kept: list[tuple[Index, Array, Array]] = []
        alike: dict[int, list[tuple[int, int]]] = {}  # runs of one length, whose states were all observed: place, begin
        for a, b in runs:
            size, rows = b - a, np.arange(a, b)
            together = bool(whole[a:b].all())
            if self.interval[a] < 0 or size <= _VALUES * (1 if together else K):
                kept.append((self.interval[a:b], self.weights[a:b], y[:, a:b]))
                continue
            if together:
                alike.setdefault(size, []).append((len(kept), a))
                kept.append((np.empty(0, np.int64), np.empty(0), np.empty(0)))
                continue
            for k in range(K):  # states that were observed at different times have readings of their own
                own, states = rows[seen[a:b, k]], slice(k, k + 1)
                Q, R = np.linalg.qr(self.weights[own])
                values = y[:, own, states]
                target = np.full((B, len(R), K), np.nan)
                target[..., states] = Q.T @ values
                left[..., states] += ((values - Q @ target[..., states]) ** 2).sum(1, keepdims=True)
                kept.append((np.full(len(R), self.interval[a]), R, target))
        for size, places in alike.items():
            each = max(_ROOM // (size * B * K), 1)
            for part in (places[i : i + each] for i in range(0, len(places), each)):
                first = np.array([a for _, a in part])
                rows = first[:, None] + np.arange(size)
                Q, R = np.linalg.qr(self.weights[rows])
                values = y[:, rows]
                target = np.swapaxes(Q, 1, 2) @ values
                left += ((values - Q @ target) ** 2).sum((1, 2))[:, None]
                for j, (place, a) in enumerate(part):
                    kept[place] = np.full(len(R[j]), self.interval[a]), R[j], target[:, j]
        last = self.interval[-1:], np.zeros((1, _VALUES)), np.sqrt(left)  # reads 0: what no path changes
        interval, weights, targets = zip(*kept, last, strict=True)
        reading = ObservationOperator(self.intervals, None, np.concatenate(interval), np.concatenate(weights))
        return reading, np.concatenate(targets, 1)

    def _runs(self) -> list[tuple[int, int]]:
        """Begin and end of the readings of each interval that has any."""
        begin = np.flatnonzero(np.diff(self.interval, prepend=-2))
        return list(zip(begin.tolist(), [*begin[1:].tolist(), len(self.interval)], strict=True))
