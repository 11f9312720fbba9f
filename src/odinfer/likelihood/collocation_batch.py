"""Batches of collocated trajectories of one problem, for profiles and bootstraps.

All start from one refined trajectory. Each is carried to its own maximum of the likelihood, under its own observations
(a bootstrap) or with one quantity held at a value of its own (a profile). Here they share the meshes of the one they
start from; those that go forward in time are in forward_batch.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from odinfer.likelihood.likelihood import Likelihood, MeshObservations
from odinfer.likelihood.observation_operator import ObservationOperator
from odinfer.likelihood.refinement import TrajectoryOptimum
from odinfer.ode.collocation import Condensed, condense
from odinfer.optimize.arrow_matrix import ArrowMatrix
from odinfer.optimize.levenberg_marquardt import Mask, Rule, levenberg_marquardt, secant_update

Array = NDArray[np.float64]
Index = NDArray[np.int64]

# At this violation of the collocation equations one more Newton correction, already known, leaves about its square.
_FEASIBLE = 1e-4
_ASIDE = 1e-3  # of a standard deviation: how far next to a maximum gradients are compared
_LONGEST = 2.0  # e-folds of a step: where a parameter tends to 0 or infinity, steps would have no limit
_ROOM = 10_000_000  # numbers in the derivatives of what is read of trajectories side by side


def nodes(x0: Array, Z: Array) -> Array:
    """States (B, n+1, K) at the points of a mesh, from initial values and states at the stages of an experiment."""
    return np.concatenate([x0[:, None], Z[:, :, -1]], 1)


@dataclass(frozen=True)
class Batch:
    """B trajectories.

    Attributes:
        phi: free parameters (B, F).
        x0, Z: per experiment, initial values (B, K) and states at the stages (B, n, s, K); without a mesh at the
            observations (B, N, K), if they are kept.
        lins: per experiment, their sensitivities; without a mesh the Gauss–Newton equations of all.
        noise: parameters of the noise (B, K), at their best where they are not known.
        value: the objective, −log-likelihood − log p(θ) at the best noise (B,); infinite where there is no trajectory.
        bend: what Gauss–Newton leaves out of the Hessian (B, P, P), as far as that is known; (B, 0, 0) of many
            experiments, of whose data it leaves out little.
    """

    phi: Array
    x0: tuple[Array, ...]
    Z: tuple[Array, ...]
    lins: tuple[Any, ...]
    noise: Array
    value: Array
    bend: Array

    def take(self, index: Index) -> Batch:
        """Those at `index`."""
        return Batch(
            self.phi[index], tuple(v[index] for v in self.x0), tuple(v[index] for v in self.Z),
            tuple(lin._make(v[index] for v in lin) for lin in self.lins), self.noise[index], self.value[index],
            self.bend[index],
        )  # fmt: skip

    def put(self, index: Index, other: Batch) -> Batch:
        """With those at `index` replaced by all of `other`."""

        def merged(old: Array, new: Array) -> Array:
            old = old.copy()
            old[index] = new
            return old

        def each(old: Sequence[Array], new: Sequence[Array]) -> tuple[Array, ...]:
            return tuple(merged(o, n) for o, n in zip(old, new, strict=True))

        return Batch(
            merged(self.phi, other.phi), each(self.x0, other.x0), each(self.Z, other.Z),
            tuple(o._make(each(o, n)) for o, n in zip(self.lins, other.lins, strict=True)),
            merged(self.noise, other.noise), merged(self.value, other.value), merged(self.bend, other.bend),
        )  # fmt: skip


class _Subset(NamedTuple):
    """What became of some of a batch: their places, themselves, and the objective of all (B,)."""

    places: Index
    batch: Batch
    value: Array


class HeldQuantity(Protocol):
    """A quantity of each trajectory that is held at a value of its own."""

    def take(self, index: Index) -> HeldQuantity: ...

    def value(self, batch: Batch) -> Array:
        """(B,)"""
        ...

    def gradient(self, batch: Batch) -> Array:
        """By the unknowns, (B, P)."""
        ...


@dataclass
class WorkLimit:
    """Rounds of an optimiser that are left for several searches."""

    rounds: int

    @property
    def exhausted(self) -> bool:
        return self.rounds <= 0


@dataclass(frozen=True)
class Trajectories(ABC):
    """How many trajectories are computed and carried to maxima: on meshes (below), or forward in time."""

    likelihood: Likelihood

    @abstractmethod
    def take(self, index: Index) -> Self:
        """Of the trajectories at `index`."""

    @abstractmethod
    def with_observations(self, y: Sequence[Array]) -> Self:
        """With other observations (B, N, M) per experiment, a set for each trajectory."""

    @abstractmethod
    def observed(self, batch: Batch) -> list[Array]:
        """States (B, N, K) at the observations of every experiment."""

    @abstractmethod
    def start(self, refined: TrajectoryOptimum, size: int) -> Batch:
        """`size` copies of a refined trajectory."""

    @abstractmethod
    def move(self, batch: Batch, move: Array) -> Batch:
        """The trajectories after a step (B, P) of the unknowns."""

    @abstractmethod
    def gauss_newton(self, batch: Batch) -> tuple[ArrowMatrix, Array]:
        """Gauss–Newton Hessians (B, P, P) and gradients (B, P) of the objective."""

    def unbent(self, size: int) -> Array:
        """A bend of nothing (size, P, P), or (size, 0, 0) of many experiments."""
        u = self.likelihood.unknowns
        n = ArrowMatrix.dense_size(u.experiments, len(u.initial), u.size)
        return np.zeros((size, n, n))

    def bent(self, best: Batch) -> Batch:
        """The same copies of one maximum, and how the objective bends there: from gradients next to it."""
        if not best.bend.shape[1]:
            return best
        one, u = best.take(np.zeros(1, np.int64)), self.likelihood.unknowns
        H, g = self.gauss_newton(one)
        at = u.join(one.x0, one.phi)[0]
        with np.errstate(divide="ignore"):
            h = _ASIDE * np.minimum(1.0 / np.sqrt(H.diagonal[0]), 1.0 + np.abs(at))
        h = np.where(at + h > u.high, -h, h)
        aside = self.move(best.take(np.zeros(len(h), np.int64)), np.diag(h))
        with np.errstate(invalid="ignore"):
            bend = (self.gauss_newton(aside)[1] - g) / h[:, None] - H.corner[0]
        fine = np.isfinite(bend).all() and np.isfinite(aside.value).all()
        return replace(best, bend=best.bend + 0.5 * (bend + bend.T)) if fine else best

    def normal(self, batch: Batch) -> tuple[ArrowMatrix, Array]:
        """Hessians (B, P, P), positive semidefinite, and gradients (B, P) of the objective."""
        H, g = self.gauss_newton(batch)
        return H.bent(batch.bend), g

    def step(
        self, batch: Batch, H: ArrowMatrix, g: Array, damping: Array, a: Array | None = None, gap: Array | None = None
    ) -> tuple[Array, Array]:
        """As `Likelihood.step`, from the unknowns of a batch."""
        at = self.likelihood.unknowns.join(batch.x0, batch.phi)
        return self.likelihood.step(at, H, g, damping, a, gap, _LONGEST)

    def maximise(
        self, batch: Batch, held: HeldQuantity | None = None, target: Array | None = None,
        most: int = 30, tolerance: float = 1e-6, work: WorkLimit | None = None,
    ) -> Batch:  # fmt: skip
        """Carry each to its maximum of the likelihood, the held quantity at its target (B,), by Levenberg–Marquardt.

        Args:
            most: tries.
            work: what is left of them for this and for others.
        """
        done = ~np.isfinite(batch.value)
        if done.all():
            return batch
        B, P = len(done), self.likelihood.unknowns.size
        # Where each was last, its gradient there, and how the objective bends.
        last, slope, bend = np.full((B, P), np.nan), np.zeros((B, P)), batch.bend.copy()

        def propose(now: Batch, damping: Array) -> tuple[Any, Mask]:
            active = np.flatnonzero(np.isfinite(damping) & np.isfinite(now.value))
            part, own = self.take(active), now.take(active)
            H, g = part.gauss_newton(own)
            at = self.likelihood.unknowns.join(own.x0, own.phi)
            came = np.flatnonzero((at != last[active]).any(1) & np.isfinite(last[active]).all(1))
            there = active[came]
            if bend.shape[1]:
                bend[there] = secant_update(bend[there], H.corner[came], at[came] - last[there], g[came] - slope[there])
            last[active], slope[active] = at, g
            H = H.bent(bend[active])
            a = gap = None
            if held is not None and target is not None:
                quantity = held.take(active)
                a, gap = quantity.gradient(own), target[active] - quantity.value(own)
            move, fall = part.step(own, H, g, damping[active], a, gap)
            trial = part.move(own, move)
            # Where the held quantity is still on its way the objective may rise.
            open_ = np.zeros(len(active), bool) if gap is None or a is None else _far(gap, a, H)
            better = (trial.value <= own.value) | (open_ & np.isfinite(trial.value))
            gain = np.where(better, own.value - trial.value, 0.0)
            done[active] = ~open_ & ((better & (gain < tolerance)) | (fall < 0.1 * tolerance))
            value, taken = now.value.copy(), np.zeros(len(now.value), bool)
            value[active], taken[active] = trial.value, better
            return _Subset(active, trial, value), taken

        def merge(now: Batch, some: Any, better: Mask) -> Batch:
            taken = better[some.places]
            return now.put(some.places[taken], some.batch.take(np.flatnonzero(taken)))

        rule = Rule(damping=1e-4, most=1e8, tries=most if work is None else min(most, max(work.rounds, 1)), leave=True)
        ended = levenberg_marquardt(batch, propose, lambda *_: done, rule, merge)
        if work is not None:
            work.rounds -= ended.tries
        return replace(ended.point, bend=bend)


@dataclass(frozen=True)
class CollocationTrajectories(Trajectories):
    """What the trajectories of a batch share: the likelihood, a mesh per experiment, and what the data read there."""

    meshes: tuple[Array, ...]
    seen: MeshObservations

    @staticmethod
    def of(likelihood: Likelihood, refined: TrajectoryOptimum) -> CollocationTrajectories:
        """On the meshes of a refined trajectory."""
        meshes = tuple(p.mesh for p in refined.paths)
        return CollocationTrajectories(likelihood, meshes, likelihood.on(meshes))

    def take(self, index: Index) -> CollocationTrajectories:
        return replace(self, likelihood=self.likelihood.take(index), seen=self.seen.take(index))

    def with_observations(self, y: Sequence[Array]) -> CollocationTrajectories:
        likelihood = self.likelihood.with_observations(y)
        return CollocationTrajectories(likelihood, self.meshes, likelihood.on(self.meshes))

    def observed(self, batch: Batch) -> list[Array]:
        return self.states_at(batch, self.likelihood.t)

    def start(self, refined: TrajectoryOptimum, size: int) -> Batch:
        """`size` copies of a refined trajectory."""

        def copies(v: Array) -> Array:
            return np.broadcast_to(v, (size, *v.shape))  # of many experiments, copies in earnest take long to make

        x0, Z = (tuple(copies(getattr(p, name)) for p in refined.paths) for name in ("x0", "Z"))
        lins = tuple(
            Condensed(copies(c.stages), copies(c.nodes), copies(c.starts), np.zeros(size)) for c in refined.condensed
        )
        return self.evaluate(copies(refined.phi), x0, Z, lins)

    def states_at(self, batch: Batch, times: Sequence[Array]) -> list[Array]:
        """States (B, N, K) at times inside the meshes, per experiment."""
        return self._read(batch, [ObservationOperator.of(mesh, t) for mesh, t in zip(self.meshes, times, strict=True)])

    def _read(self, batch: Batch, readings: Sequence[ObservationOperator]) -> list[Array]:
        found = []
        for e, (reading, x0, Z) in enumerate(zip(readings, batch.x0, batch.Z, strict=True)):
            at = nodes(x0, Z)
            found.append(reading.read(at, self._interval_starts(e, at, batch.phi), Z))
        return found

    def _interval_starts(self, e: int, at: Array, phi: Array) -> Array:
        """States at the beginning of the intervals (B, n, K), after any jump, from those at all points of a mesh."""
        problem, begun = self.likelihood.problem, at[:, :-1]
        condition = problem.condition(e)
        for n, (i, jump) in enumerate(condition.jumps_on(self.meshes[e])):
            begun = begun if n else begun.copy()
            begun[:, i] = condition.jumped(jump, begun[:, i], problem.theta_of(e, phi))[0]
        return begun

    def evaluate(
        self, phi: Array, x0: tuple[Array, ...], Z: tuple[Array, ...], lins: tuple[Condensed, ...],
        bend: Array | None = None,
    ) -> Batch:  # fmt: skip
        """A batch with its objective; infinite where the equations are not solved."""
        nothing = np.empty(0)
        found = Batch(phi, x0, Z, lins, nothing, nothing, self.unbent(len(phi)) if bend is None else bend)
        with np.errstate(over="ignore", invalid="ignore"):
            worth = self.seen.likelihood.evaluate(self._read(found, self.seen.readings), phi)
        solved = np.max([lin.violation for lin in lins], 0) <= _FEASIBLE
        return replace(found, noise=worth.noise, value=np.where(solved, worth.value, np.inf))

    def move(self, batch: Batch, move: Array, most: int = 8) -> Batch:
        """The trajectories after a step (B, P) of the unknowns, by Newton from a first-order guess."""
        likelihood, u = self.likelihood, self.likelihood.unknowns
        B, K = len(batch.phi), len(likelihood.scale)
        phi = batch.phi + u.phi(move)
        x0, Z, lins = [], [], []
        for e, mesh in enumerate(self.meshes):
            own = move[:, u.own(e)]
            direction = np.concatenate([own, np.zeros((B, 1))], 1)
            at = batch.Z[e] + (batch.lins[e].stages @ direction[:, None, None, :, None])[..., 0]
            first = self._x0(batch.x0[e], e, own, phi)
            W = own.shape[1] + 1
            kept = Condensed(np.empty((B, *at.shape[1:], W)), np.empty((B, len(mesh), K, W)),
                             np.empty((B, len(mesh) - 1, K, W)), np.full(B, np.inf))  # fmt: skip
            left, worst = np.arange(B), np.full(B, np.inf)
            for _ in range(most):
                lin = condense(likelihood.problem, e, mesh, first[left], at[left], phi[left], likelihood.scale)
                for old, new in zip(kept, lin, strict=True):
                    old[left] = new
                usable = np.isfinite(lin.violation) & (lin.violation < 100.0 * worst[left])
                kept.violation[left[~usable]] = np.inf
                worst[left] = lin.violation
                at[left[usable]] += lin.stages[usable][..., -1]
                left = left[usable & (lin.violation > _FEASIBLE)]
                if not len(left):
                    break
            x0.append(first)
            Z.append(at)
            lins.append(kept)
        return self.evaluate(phi, tuple(x0), tuple(Z), tuple(lins), batch.bend)

    def _x0(self, x0: Array, e: int, move: Array, phi: Array) -> Array:
        """Initial values (B, K) of an experiment after a step of its own numbers (B, W) to φ (B, F)."""
        p = self.likelihood.problem
        free = p.model.free_initial
        return p.condition(e).initial(p.theta_of(e, phi), x0[:, free] + move[:, : len(free)])

    def gauss_newton(self, batch: Batch) -> tuple[ArrowMatrix, Array]:
        """Gauss–Newton Hessians (B, P, P) and gradients (B, P) of the objective."""
        size = self._pieces(batch)
        if size < len(batch.phi):
            places = [np.arange(i, min(i + size, len(batch.phi))) for i in range(0, len(batch.phi), size)]
            H, g = zip(*(self.take(own).gauss_newton(batch.take(own)) for own in places), strict=True)
            return ArrowMatrix.join(list(H)), np.concatenate(g)
        S = [reading.read(lin.nodes[..., :-1], lin.starts[..., :-1], lin.stages[..., :-1])
             for reading, lin in zip(self.seen.readings, batch.lins, strict=True)]  # fmt: skip
        return self.seen.likelihood.normal(self._read(batch, self.seen.readings), S, batch.noise, batch.phi)

    def _pieces(self, batch: Batch) -> int:
        """How many trajectories can be held against the data at once."""
        each = sum(y.shape[1] * lin.stages.shape[-1] for y, lin in zip(self.seen.likelihood.y, batch.lins, strict=True))
        return int(max(1, _ROOM // (each * len(self.likelihood.scale))))


def _far(gap: Array, a: Array, H: ArrowMatrix) -> Mask:
    """Whether a held quantity is further from its target than a thousandth of its own standard deviation or so."""
    size = np.sqrt((a * a / np.maximum(H.diagonal, 1e-300)).sum(1))
    return np.asarray(np.abs(gap) > 1e-3 * size)
