"""Batches of trajectories by forward integration, with the interface of collocated ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.likelihood.batch_likelihood import BatchLikelihood, Expansion
from odinfer.likelihood.collocation_batch import Batch, CollocationTrajectories, Trajectories
from odinfer.likelihood.likelihood import Likelihood
from odinfer.likelihood.refinement import TrajectoryOptimum
from odinfer.optimize.arrow_matrix import ArrowMatrix

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_STEPS = 4000  # of one trajectory, at these tolerances
_TOLERANCES, _EXACT = (1e-6, 1e-8), 0.01  # of steps: those with which a maximum is worth what it should be, in nats
# Tolerances that may do, and nats by which errors around a maximum may then differ, for one experiment: errors that are
# the same everywhere change no likelihood ratio. They are looked at in some random points about it.
_COARSE, _ERROR, _AROUND = (1e-3, 1e-4, 1e-5), 1e-3, 6


def trajectories_near(likelihood: Likelihood, refined: TrajectoryOptimum) -> Trajectories:
    """Trajectories near a refined one: forward in time, or on its meshes where that cannot be or is not exact."""
    if likelihood.problem.model.declarations.triggers:
        return ForwardTrajectories.of(likelihood, refined) or ForwardTrajectories.at_tolerance(
            likelihood, _TOLERANCES[-1]
        )
    forward = ForwardTrajectories.of(likelihood, refined) if BatchLikelihood.can(likelihood.problem) else None
    return forward or CollocationTrajectories.of(likelihood, refined)


class Equations(NamedTuple):
    """The parts of the Gauss–Newton matrix of each trajectory (`ArrowMatrix`), its gradient (B, P), and the steps of
    integration that were tried (B, E)."""

    own: Array
    edge: Array
    corner: Array
    gradient: Array
    tries: Index


@dataclass(frozen=True)
class ForwardTrajectories(Trajectories):
    """What the trajectories of a batch share: the likelihood, and how they are followed.

    Attributes:
        keeps_states: batches keep their states at the observations.
    """

    solver: BatchLikelihood
    keeps_states: bool = False

    @staticmethod
    def of(likelihood: Likelihood, refined: TrajectoryOptimum) -> ForwardTrajectories | None:
        """Around a refined trajectory; None where steps do not lead to what it is worth."""
        if (coarse := ForwardTrajectories._coarsest(likelihood, refined)) is not None:
            return coarse
        for tolerance in _TOLERANCES:
            found = ForwardTrajectories.at_tolerance(likelihood, tolerance)
            if abs(found.start(refined, 1).value[0] - refined.objective) <= _EXACT:
                return found
        return None

    @staticmethod
    @np.errstate(all="ignore")
    def _coarsest(likelihood: Likelihood, refined: TrajectoryOptimum) -> ForwardTrajectories | None:
        """With the largest steps that tell points around a refined trajectory apart as smaller ones do."""
        u, P = likelihood.unknowns, likelihood.unknowns.size
        v = u.join([p.x0 for p in refined.paths], refined.phi)
        sd = np.minimum(1.0 / np.sqrt(np.maximum(refined.information.diagonal[0], 1e-300)), 1.0 + np.abs(v))
        draws = np.random.default_rng(0).normal(size=(_AROUND, P))
        points = np.clip(v + np.concatenate([np.zeros((1, P)), sd * draws]), u.low, u.high)
        exact = ForwardTrajectories.at_tolerance(likelihood, _TOLERANCES[0]).solver.solve(points).worth.value
        seen = np.isfinite(exact)
        for tolerance in _COARSE if seen[0] else ():
            found = ForwardTrajectories.at_tolerance(likelihood, tolerance)
            value = found.solver.solve(points).worth.value
            error = value - exact
            apart = np.abs(error - error[0])[seen].max()
            if abs(value[0] - refined.objective) <= _EXACT and apart <= _ERROR * np.sqrt(u.experiments):
                return found
        return None

    @staticmethod
    def at_tolerance(likelihood: Likelihood, tolerance: float) -> ForwardTrajectories:
        """With a given relative error of a step."""
        return ForwardTrajectories(
            likelihood, replace(BatchLikelihood.of(likelihood.problem, tolerance, _STEPS), likelihood=likelihood)
        )

    def take(self, index: Index) -> ForwardTrajectories:
        return self._with(self.likelihood.take(index), self.keeps_states)

    def with_observations(self, y: Sequence[Array]) -> ForwardTrajectories:
        return self._with(self.likelihood.with_observations(y), True)

    def _with(self, likelihood: Likelihood, keeps_states: bool) -> ForwardTrajectories:
        if likelihood is self.likelihood:
            return self
        return ForwardTrajectories(likelihood, replace(self.solver, likelihood=likelihood), keeps_states)

    def start(self, refined: TrajectoryOptimum, size: int) -> Batch:
        """`size` copies of a refined trajectory, which is integrated once."""
        likelihood, one = self.likelihood, np.zeros(1, np.int64)
        v = likelihood.unknowns.join([p.x0 for p in refined.paths], refined.phi)[None]
        solved = self.solver.solve(v)
        states, maps = (
            [np.broadcast_to(own, (size, *own.shape[1:])) for own in every]
            for every in self.solver.linearised(solved, one)
        )
        v, tries = np.tile(v, (size, 1)), np.tile(solved.tries, (size, 1))
        phi = likelihood.unknowns.phi(v)
        with np.errstate(all="ignore"):
            worth = likelihood.evaluate(states, phi)
            H, g = likelihood.normal(states, maps, worth.noise, phi)
        found = Expansion(v, worth.value, worth.noise, tries, H, g)
        return self.batch(found, states=tuple(states) if self.keeps_states else ())

    def observed(self, batch: Batch) -> list[Array]:
        if batch.Z:
            return list(batch.Z)
        return self.solver.states(self.solver.solve(self.likelihood.unknowns.join(batch.x0, batch.phi)).trajectories)

    def move(self, batch: Batch, move: Array) -> Batch:
        return self.at(self.likelihood.unknowns.join(batch.x0, batch.phi) + move, batch.bend)

    def at(self, v: Array, bend: Array | None = None) -> Batch:
        """Compute the trajectories at unknowns v (B, P)."""
        solved = self.solver.solve(v)
        H, g = self.solver.normal(solved, np.arange(len(v)))
        states = tuple(self.solver.states(solved.trajectories)) if self.keeps_states else ()
        return self.batch(Expansion(v, solved.worth.value, solved.worth.noise, solved.tries, H, g), bend, states)

    def batch(self, found: Expansion, bend: Array | None = None, states: tuple[Array, ...] = ()) -> Batch:
        """Trajectories where the objective is known to second order."""
        u = self.likelihood.unknowns
        bend = self.unbent(len(found.v)) if bend is None else bend
        x0 = tuple(self.solver.initial_values(found.v)[1].swapaxes(0, 1))
        equations = Equations(found.H.own, found.H.edge, found.H.corner, found.g, found.tries)
        return Batch(u.phi(found.v), x0, states, (equations,), found.noise, found.value, bend)

    def expansion(self, batch: Batch) -> Expansion:
        """The objective to second order, as a batch keeps it."""
        H, g = self.gauss_newton(batch)
        v = self.likelihood.unknowns.join(batch.x0, batch.phi)
        return Expansion(v, batch.value, batch.noise, batch.lins[0].tries, H, g)

    def gauss_newton(self, batch: Batch) -> tuple[ArrowMatrix, Array]:
        (own,) = batch.lins
        return ArrowMatrix(own.own, own.edge, own.corner), own.gradient
