"""Trajectories side by side, as those of batch.py, but forward in time and without a mesh.

Where a mesh takes many numbers, this takes a tenth of the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.likelihood.batch_likelihood import SideBySide
from odinfer.likelihood.collocation_batch import Batch, OnMeshes, Trajectories
from odinfer.likelihood.likelihood import Likelihood
from odinfer.likelihood.refinement import Refined
from odinfer.optimize.arrow_matrix import Bordered

Array = NDArray[np.float64]
Index = NDArray[np.int64]

# Numbers in the matrices of a trajectory on its meshes, from which on going forward takes less time, although its loops
# have to be loaded first.
_EASY = 5000
_TOLERANCES, _EXACT = (1e-6, 1e-8), 0.01  # of steps: those with which a maximum is worth what it should be, in nats


def easy(refined: Refined) -> bool:
    """Whether trajectories on the meshes of one are easily computed."""
    numbers: int = sum(n * (s * K) ** 2 for n, s, K in (path.Z.shape for path in refined.paths))
    return numbers <= _EASY


def around(like: Likelihood, refined: Refined) -> Trajectories:
    """Trajectories near a refined one, on its meshes or forward in time, whichever takes less."""
    forward = not easy(refined) and SideBySide.can(like.problem)
    return (Ahead.of(like, refined) if forward else None) or OnMeshes.of(like, refined)


class Maps(NamedTuple):
    """How states at the observations depend on an experiment's own numbers (B, N, K, W)."""

    by_own: Array


@dataclass(frozen=True)
class Ahead(Trajectories):
    """What the trajectories of a batch share: the likelihood, and how they are followed."""

    solver: SideBySide

    @staticmethod
    def of(like: Likelihood, refined: Refined) -> Ahead | None:
        """Around a refined trajectory; None where steps do not lead to what it is worth."""
        for tolerance in _TOLERANCES:
            found = Ahead(like, replace(SideBySide.of(like.problem, tolerance), like=like))
            if abs(found.start(refined, 1).value[0] - refined.objective) <= _EXACT:
                return found
        return None

    def take(self, index: Index) -> Ahead:
        return self._with(self.like.take(index))

    def observing(self, y: Sequence[Array]) -> Ahead:
        return self._with(self.like.observing(y))

    def _with(self, like: Likelihood) -> Ahead:
        return self if like is self.like else Ahead(like, replace(self.solver, like=like))

    def start(self, refined: Refined, size: int) -> Batch:
        v = self.like.unknowns.join([p.x0 for p in refined.paths], refined.phi)
        return self._at(np.tile(v, (size, 1)), self.unbent(size))

    def observed(self, batch: Batch) -> list[Array]:
        return list(batch.Z)

    def moved(self, batch: Batch, move: Array) -> Batch:
        return self._at(self.like.unknowns.join(batch.x0, batch.phi) + move, batch.bend)

    def _at(self, v: Array, bend: Array) -> Batch:
        """The trajectories at unknowns v (B, P)."""
        solved = self.solver.solve(v)
        states, maps = self.solver.linearised(solved, np.arange(len(v)))
        x0 = solved.x0.reshape(len(v), self.like.unknowns.experiments, -1)
        phi, worth = self.like.unknowns.phi(v), solved.worth
        first = tuple(x0[:, e] for e in range(x0.shape[1]))
        return Batch(phi, first, tuple(states), tuple(map(Maps, maps)), worth.noise, worth.value, bend)

    def gauss_newton(self, batch: Batch) -> tuple[Bordered, Array]:
        return self.like.normal(list(batch.Z), [lin.by_own for lin in batch.lins], batch.noise, batch.phi)
