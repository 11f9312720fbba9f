"""Quantities that a profile holds fixed: unknowns, states at a time, predicted columns."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from odinfer.likelihood.collocation_batch import Batch, CollocationTrajectories, Index, nodes
from odinfer.problem.parameter_vector import ParameterVector

Array = NDArray[np.float64]


@dataclass(frozen=True)
class HeldUnknown:
    """The unknowns at places `index` (B,), one of each trajectory: parameters on their own scales, initial values."""

    unknowns: ParameterVector
    index: Index

    def take(self, index: Index) -> HeldUnknown:
        return replace(self, index=self.index[index])

    def value(self, batch: Batch) -> Array:
        v = self.unknowns.join(batch.x0, batch.phi)
        return np.asarray(v[np.arange(len(self.index)), self.index])

    def gradient(self, batch: Batch) -> Array:
        return self.unknowns.unit(self.index)


@dataclass(frozen=True)
class HeldState:
    """State `k` (B,) of an experiment at the point `node` (B,) of its mesh, one of each trajectory.

    On a log scale (of its size) if `log`: the right one for what dies out and cannot change its sign.
    """

    unknowns: ParameterVector
    experiment: int
    node: Index
    k: Index
    log: bool = False

    def take(self, index: Index) -> HeldState:
        return replace(self, node=self.node[index], k=self.k[index])

    def value(self, batch: Batch) -> Array:
        x = self._plain(batch)
        return np.log(np.maximum(np.abs(x), 1e-300)) if self.log else x

    def gradient(self, batch: Batch) -> Array:
        S = batch.lins[self.experiment].nodes[np.arange(len(self.node)), self.node, self.k, :-1]
        if self.log:
            x = self._plain(batch)
            S = S / np.where(x == 0, 1e-300, x)[:, None]
        return self.unknowns.lift(self.experiment, S)

    def _plain(self, batch: Batch) -> Array:
        x = nodes(batch.x0[self.experiment], batch.Z[self.experiment])
        return np.asarray(x[np.arange(len(self.node)), self.node, self.k])


@dataclass(frozen=True)
class HeldColumn(HeldState):
    """The predicted value of column `k` (B,) of an experiment at the point `node` (B,) of its mesh.

    Attributes:
        on: whose observations and meshes.
    """

    on: CollocationTrajectories | None = None

    def gradient(self, batch: Batch) -> Array:
        value, S = self._both(batch)
        return self.unknowns.lift(self.experiment, S / np.where(value == 0, 1e-300, value)[:, None] if self.log else S)

    def _plain(self, batch: Batch) -> Array:
        return self._both(batch)[0]

    def _both(self, batch: Batch) -> tuple[Array, Array]:
        """Values (B,) and their derivatives (B, W) by the experiment's own numbers."""
        assert self.on is not None
        e, observation, rows = self.experiment, self.on.likelihood.observation, np.arange(len(self.node))
        x, S = nodes(batch.x0[e], batch.Z[e])[rows, self.node], batch.lins[e].nodes[rows, self.node, :, :-1]
        value, slope = np.empty(len(rows)), np.empty((len(rows), S.shape[-1]))
        for node in np.unique(self.node):  # predictions are made for one set of times at once
            at, t = np.flatnonzero(self.node == node), self.on.meshes[e][[node]]
            h, by = observation.linearised(e, x[at][:, None], S[at][:, None], batch.phi[at], t)
            own = np.arange(len(at)), 0, self.k[at]
            value[at], slope[at] = h[own], by[own]
        return value, slope
