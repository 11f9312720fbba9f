"""Batches of trajectories by forward integration, with the interface of collocated ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.likelihood.batch_likelihood import BatchLikelihood
from odinfer.likelihood.collocation_batch import Batch, CollocationTrajectories, Trajectories
from odinfer.likelihood.likelihood import Likelihood
from odinfer.likelihood.refinement import TrajectoryOptimum
from odinfer.optimize.arrow_matrix import ArrowMatrix

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_STEPS = 4000  # of one trajectory, at these tolerances
_TOLERANCES, _EXACT = (1e-6, 1e-8), 0.01  # of steps: those with which a maximum is worth what it should be, in nats


def trajectories_near(like: Likelihood, refined: TrajectoryOptimum) -> Trajectories:
    """Trajectories near a refined one: forward in time, or on its meshes where that cannot be or is not exact."""
    if like.problem.model.declarations.triggers:
        return ForwardTrajectories.of(like, refined) or ForwardTrajectories.at_tolerance(like, _TOLERANCES[-1])
    forward = ForwardTrajectories.of(like, refined) if BatchLikelihood.can(like.problem) else None
    return forward or CollocationTrajectories.of(like, refined)


class Maps(NamedTuple):
    """How states at the observations depend on an experiment's own numbers (B, N, K, W)."""

    by_own: Array


@dataclass(frozen=True)
class ForwardTrajectories(Trajectories):
    """What the trajectories of a batch share: the likelihood, and how they are followed."""

    solver: BatchLikelihood

    @staticmethod
    def of(like: Likelihood, refined: TrajectoryOptimum) -> ForwardTrajectories | None:
        """Around a refined trajectory; None where steps do not lead to what it is worth."""
        for tolerance in _TOLERANCES:
            found = ForwardTrajectories.at_tolerance(like, tolerance)
            if abs(found.start(refined, 1).value[0] - refined.objective) <= _EXACT:
                return found
        return None

    @staticmethod
    def at_tolerance(like: Likelihood, tolerance: float) -> ForwardTrajectories:
        """With a given relative error of a step."""
        return ForwardTrajectories(like, replace(BatchLikelihood.of(like.problem, tolerance, _STEPS), like=like))

    def take(self, index: Index) -> ForwardTrajectories:
        return self._with(self.like.take(index))

    def with_observations(self, y: Sequence[Array]) -> ForwardTrajectories:
        return self._with(self.like.with_observations(y))

    def _with(self, like: Likelihood) -> ForwardTrajectories:
        return self if like is self.like else ForwardTrajectories(like, replace(self.solver, like=like))

    def start(self, refined: TrajectoryOptimum, size: int) -> Batch:
        v = self.like.unknowns.join([p.x0 for p in refined.paths], refined.phi)
        return self.at(np.tile(v, (size, 1)))

    def observed(self, batch: Batch) -> list[Array]:
        return list(batch.Z)

    def move(self, batch: Batch, move: Array) -> Batch:
        return self.at(self.like.unknowns.join(batch.x0, batch.phi) + move, batch.bend)

    def at(self, v: Array, bend: Array | None = None) -> Batch:
        """Compute the trajectories at unknowns v (B, P)."""
        bend = self.unbent(len(v)) if bend is None else bend
        solved = self.solver.solve(v)
        states, maps = self.solver.linearised(solved, np.arange(len(v)))
        x0 = solved.x0.reshape(-1, self.like.unknowns.experiments, solved.x0.shape[-1])
        phi, worth = self.like.unknowns.phi(v), solved.worth
        first = tuple(x0[:, e] for e in range(x0.shape[1]))
        return Batch(phi, first, tuple(states), tuple(map(Maps, maps)), worth.noise, worth.value, bend)

    def gauss_newton(self, batch: Batch) -> tuple[ArrowMatrix, Array]:
        return self.like.normal(list(batch.Z), [lin.by_own for lin in batch.lins], batch.noise, batch.phi)
