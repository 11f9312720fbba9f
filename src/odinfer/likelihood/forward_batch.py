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


def trajectories_near(likelihood: Likelihood, refined: TrajectoryOptimum) -> Trajectories:
    """Trajectories near a refined one: forward in time, or on its meshes where that cannot be or is not exact."""
    if likelihood.problem.model.declarations.triggers:
        return ForwardTrajectories.of(likelihood, refined) or ForwardTrajectories.at_tolerance(
            likelihood, _TOLERANCES[-1]
        )
    forward = ForwardTrajectories.of(likelihood, refined) if BatchLikelihood.can(likelihood.problem) else None
    return forward or CollocationTrajectories.of(likelihood, refined)


class Maps(NamedTuple):
    """How states at the observations depend on an experiment's own numbers (B, N, K, W)."""

    by_own: Array


@dataclass(frozen=True)
class ForwardTrajectories(Trajectories):
    """What the trajectories of a batch share: the likelihood, and how they are followed."""

    solver: BatchLikelihood

    @staticmethod
    def of(likelihood: Likelihood, refined: TrajectoryOptimum) -> ForwardTrajectories | None:
        """Around a refined trajectory; None where steps do not lead to what it is worth."""
        for tolerance in _TOLERANCES:
            found = ForwardTrajectories.at_tolerance(likelihood, tolerance)
            if abs(found.start(refined, 1).value[0] - refined.objective) <= _EXACT:
                return found
        return None

    @staticmethod
    def at_tolerance(likelihood: Likelihood, tolerance: float) -> ForwardTrajectories:
        """With a given relative error of a step."""
        return ForwardTrajectories(
            likelihood, replace(BatchLikelihood.of(likelihood.problem, tolerance, _STEPS), likelihood=likelihood)
        )

    def take(self, index: Index) -> ForwardTrajectories:
        return self._with(self.likelihood.take(index))

    def with_observations(self, y: Sequence[Array]) -> ForwardTrajectories:
        return self._with(self.likelihood.with_observations(y))

    def _with(self, likelihood: Likelihood) -> ForwardTrajectories:
        return (
            self
            if likelihood is self.likelihood
            else ForwardTrajectories(likelihood, replace(self.solver, likelihood=likelihood))
        )

    def start(self, refined: TrajectoryOptimum, size: int) -> Batch:
        v = self.likelihood.unknowns.join([p.x0 for p in refined.paths], refined.phi)
        return self.at(np.tile(v, (size, 1)))

    def observed(self, batch: Batch) -> list[Array]:
        return list(batch.Z)

    def move(self, batch: Batch, move: Array) -> Batch:
        return self.at(self.likelihood.unknowns.join(batch.x0, batch.phi) + move, batch.bend)

    def at(self, v: Array, bend: Array | None = None) -> Batch:
        """Compute the trajectories at unknowns v (B, P)."""
        bend = self.unbent(len(v)) if bend is None else bend
        solved = self.solver.solve(v)
        states, maps = self.solver.linearised(solved, np.arange(len(v)))
        x0 = solved.x0.reshape(-1, self.likelihood.unknowns.experiments, solved.x0.shape[-1])
        phi, worth = self.likelihood.unknowns.phi(v), solved.worth
        first = tuple(x0[:, e] for e in range(x0.shape[1]))
        return Batch(phi, first, tuple(states), tuple(map(Maps, maps)), worth.noise, worth.value, bend)

    def gauss_newton(self, batch: Batch) -> tuple[ArrowMatrix, Array]:
        return self.likelihood.normal(list(batch.Z), [lin.by_own for lin in batch.lins], batch.noise, batch.phi)
