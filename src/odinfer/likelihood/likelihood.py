"""The likelihood of a batch of trajectories with its gradient and Gauss–Newton matrix; a single one is a batch of one.

It takes states at the observation times and their derivatives by each experiment's own numbers. It returns values,
Gauss–Newton equations over the vector of unknowns (problem/parameter_vector.py) and steps within its bounds. Noise
parameters that are not known are at their maximum (observation/).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.gp.residual_signal import evidence
from odinfer.likelihood.observation_operator import ObservationOperator
from odinfer.observation import Observation, observation_of
from odinfer.ode.collocation import CollocationPath, Condensed
from odinfer.optimize.arrow_matrix import ArrowMatrix
from odinfer.optimize.levenberg_marquardt import Mask, blocked_by_bounds
from odinfer.problem.parameter_vector import ParameterVector
from odinfer.problem.problem import Problem

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_EXACT = 1e-4  # residuals, in units of the states' scales, that are as good as none
_ROUNDS = 6  # in which a step is fitted into the bounds
_NOISE_FLOOR = 1e-9  # smallest noise in units of the states' scales: exact data must not give an infinite likelihood


class LikelihoodValues(NamedTuple):
    """What B trajectories are worth.

    Attributes:
        noise: variances (B, M), at their best where they are not known.
        loglik: log-likelihood (B,).
        value: the objective −loglik − log p(θ) (B,); infinite where it is not finite.
    """

    noise: Array
    loglik: Array
    value: Array


@dataclass(frozen=True, eq=False)
class Likelihood:
    """Observations against trajectories of one problem.

    Attributes:
        scale: of the states (K,), in which accuracies are measured.
        y: per experiment (B, N, K), each trajectory with observations of its own, or (1, N, K) for the data themselves.
    """

    problem: Problem
    scale: Array
    y: tuple[Array, ...] = ()
    unknowns: ParameterVector = field(init=False)
    observation: Observation = field(init=False)
    _last: list[MeshObservations] = field(init=False, default_factory=list, repr=False)

    def __post_init__(self) -> None:
        if not self.y:
            object.__setattr__(self, "y", tuple(e.y[None] for e in self.problem.data.experiments))
        object.__setattr__(self, "unknowns", ParameterVector(self.problem))
        floor = (_NOISE_FLOOR * self.scale) ** 2 if self.problem.fully_observed_gaussian else 1e-300
        object.__setattr__(self, "observation", observation_of(self.problem, floor))

    @functools.cached_property
    def t(self) -> list[Array]:
        """When trajectories are read (N,), in every experiment."""
        return [e.moments for e in self.problem.data.experiments]

    def with_observations(self, y: Sequence[Array]) -> Likelihood:
        """The same with other observations (B, N, K) per experiment."""
        return Likelihood(self.problem, self.scale, tuple(y))

    def take(self, index: Index) -> Likelihood:
        """Of the trajectories at `index`."""
        return self if all(len(v) == 1 for v in self.y) else self.with_observations([v[index] for v in self.y])

    def on(self, meshes: Sequence[Array]) -> MeshObservations:
        """The same, as paths on these meshes meet it; kept for those that were asked for last."""
        for last in self._last:
            if all(a is b for a, b in zip(last.meshes, meshes, strict=True)):
                return last
        likelihood, readings = self, [ObservationOperator.of(mesh, t) for mesh, t in zip(meshes, self.t, strict=True)]
        if self.problem.fully_observed_gaussian and any(r.node is None for r in readings):
            pairs = [r.compressed(y) for r, y in zip(readings, self.y, strict=True)]
            likelihood, readings = self.with_observations([y for _, y in pairs]), [r for r, _ in pairs]
        self._last[:] = [MeshObservations(likelihood, tuple(readings), tuple(meshes))]
        return self._last[0]

    def evaluate(self, x: Sequence[Array], phi: Array) -> LikelihoodValues:
        """What states x (B, N, K) per experiment and φ (B, F) are worth."""
        noise, loglik = self.observation.best(x, self.y, phi)
        value = -loglik
        if self.problem.penalised:
            value = value + np.array([self.problem.prior_at(p).value for p in phi])
        return LikelihoodValues(noise, loglik, np.where(np.isfinite(value), value, np.inf))

    def signal(self, x: Sequence[Array], noise: Array, phi: Array) -> Array:
        """Nats of evidence (B, M), column by column, for a signal in what states x (B, N, K) leave of the data.

        None where that is as little, by its variances noise (M,), as the errors of computed trajectories, which are
        smooth.
        """
        residuals = self._residuals(x, noise, phi)
        B, _, M = residuals[0].shape
        found = np.zeros((B, M))
        exact = np.sqrt(noise) <= _EXACT * self.scale if self.problem.fully_observed_gaussian else np.zeros(M, bool)
        for m in range(M):
            seen = [e for e, r in enumerate(residuals) if B and np.isfinite(r[0, :, m]).sum() > 1]
            if seen and not exact[m]:
                left = [residuals[e][:, :, m] for e in seen]
                largest = np.max([np.nanmax(np.abs(r), axis=1) for r in left], 0)
                found[:, m] = np.where(largest > _EXACT, evidence([self.t[e] for e in seen], left), 0.0)
        return found

    def excess(self, x: Sequence[Array], noise: Array, phi: Array) -> Array:
        """Nats of evidence (B, M), column by column, for more noise than is known; none for counts and estimated noise.

        The logarithm of the likelihood ratio of normal residuals with any standard deviation above 1, and with 1.
        """
        residuals = np.concatenate(self._residuals(x, noise, phi), 1)
        count, squares = np.isfinite(residuals).sum(1), np.nansum(residuals**2, 1)
        ratio = np.maximum(squares / np.maximum(count, 1), 1.0)
        known = ~np.asarray(self.problem.estimated_noise)
        known &= [not column.family.discrete for column in self.problem.observed]
        return np.where(known, 0.5 * count * (ratio - 1.0 - np.log(ratio)), 0.0)

    def _residuals(self, x: Sequence[Array], noise: Array, phi: Array) -> list[Array]:
        """Standardised residuals (B, N, M) of every experiment."""
        noise = np.broadcast_to(noise, (1, len(noise)))
        pairs = enumerate(zip(x, self.y, strict=True))
        return [self.observation.residuals(e, own, y, noise, phi) for e, (own, y) in pairs]

    def normal(self, x: Sequence[Array], S: Sequence[Array], noise: Array, phi: Array) -> tuple[ArrowMatrix, Array]:
        """Gauss–Newton Hessians (B, P, P) and gradients (B, P) of the objective.

        Args:
            x, S: per experiment, states (B, N, K) and their derivatives by its own numbers (B, N, K, W).
            noise: variances (B, M).
            phi: (B, F).
        """
        B, u = len(phi), self.unknowns
        H, g = ArrowMatrix.zeros(B, u.experiments, len(u.initial), u.size), np.zeros((B, u.size))
        for alike in self._alike([derivatives.shape[1:] for derivatives in S]):
            if len(alike) == 1:
                (e,) = alike
                r, J = (v[:, None] for v in self.observation.rows(e, x[e], S[e], self.y[e], noise, phi))
            else:
                states, maps, y = (np.stack([own[e] for e in alike], 1) for own in (x, S, self.y))
                r, J = self.observation.rows(alike[0], states, maps, y, noise[:, None], phi)
            J = J.reshape(B, len(alike), int(np.prod(J.shape[2:-1])), J.shape[-1])  # of no unknowns, too
            JT, own = np.swapaxes(J, 2, 3), np.array([u.own(e) for e in alike])
            H.add_alike(np.array(alike), own, JT @ J)
            np.add.at(g.T, own, np.moveaxis((JT @ r.reshape(B, len(alike), -1, 1))[..., 0], 0, -1))
        if self.problem.penalised:
            for b, p in enumerate(phi):
                prior = self.problem.prior_at(p)
                g[b, u.of_phi] += prior.gradient
                H.add_last(b, prior.curvature)
        return H, g

    def _alike(self, shapes: Sequence[tuple[int, ...]]) -> list[list[int]]:
        """Experiments whose data are of the same shapes, if all of them have the same observation model."""
        if not self.problem.fully_observed_gaussian:
            return [[e] for e in range(len(shapes))]
        groups: dict[Any, list[int]] = {}
        for e, (shape, y) in enumerate(zip(shapes, self.y, strict=True)):
            groups.setdefault((shape, len(y)), []).append(e)
        return list(groups.values())

    def step(
        self, at: Array, H: ArrowMatrix, g: Array, damping: Array, a: Array | None = None, gap: Array | None = None,
        longest: float = np.inf,
    ) -> tuple[Array, Array]:  # fmt: skip
        """Damped steps (B, P) from v (B, P) within the bounds, and how much the objective should still fall (B,).

        Where a quantity with gradient a (B, P) is held, the steps change it by `gap` (B,) in first order. They solve

            [ H + damping·diag H   a ] [ δ ]   [ −g  ]
            [ aᵀ                   0 ] [ λ ] = [ gap ]

        in unknowns scaled by √diag H, in which the damping is the same for all. The multiplier λ takes its part of the
        gradient, so that an unknown at a bound is held by what is left of it.

        Args:
            longest: e-folds that a parameter on a log scale may move in one step.
        """
        if not at.shape[1]:
            return at, np.zeros(len(at))
        B, P = g.shape
        low, high = self.unknowns.low, self.unknowns.high
        if a is None or gap is None:
            push, border, gap = g, np.zeros((B, P)), np.zeros(B)
        else:
            push, border = g - ((g * a).sum(1) / np.maximum((a * a).sum(1), 1e-300))[:, None] * a, a
        held = blocked_by_bounds(at, push, low, high) & (border == 0.0)
        d = np.sqrt(np.maximum(H.diagonal, 1e-300))
        S = H.times(1.0 / d).plus(np.broadcast_to(damping[:, None], (B, P)))
        scaled, edge = g / d, border / d
        lost = ~(S.finite & np.isfinite(scaled).all(1) & np.isfinite(edge).all(1) & np.isfinite(gap))
        scaled[lost], edge[lost], gap = 0.0, 0.0, np.where(lost, 0.0, gap)  # of no trajectory
        reach = np.full(P, np.inf)
        reach[self.unknowns.of_phi][self.problem.is_log] = longest
        inside = np.maximum(low - at, -reach) * d, np.minimum(high - at, reach) * d
        S = S.without_rows(np.flatnonzero(lost))
        move = _step_within_bounds(S, scaled, edge, gap, *inside, held)
        still = _step_within_bounds(S, scaled, edge, 0.0 * gap, *inside, held) if gap.any() else move
        # What a Gauss–Newton step gains that keeps the held quantity where it is.
        fall = -(scaled * still).sum(1) - 0.5 * (still * S.dot(still)).sum(1)
        return np.clip(at + move / d, low, high) - at, np.maximum(fall, 0.0)


def _step_within_bounds(
    S: ArrowMatrix, g: Array, edge: Array, gap: Array, low: Array, high: Array, held: Mask
) -> Array:
    """The minima (B, P) of δᵀSδ/2 + gᵀδ with edgeᵀδ = gap, as good as inside low ≤ δ ≤ high.

    What would leave the bounds is held at them, and the rest is found again: cut off afterwards, a step would count on
    what it cannot have.

    Args:
        held: unknowns that stay where they are.
    """
    B, P = g.shape
    size = np.maximum(np.abs(edge).max(1, initial=0.0), 1e-300)
    edge, gap = edge / size[:, None], gap / size
    own = np.arange(P) == np.abs(edge).argmax(1)[:, None]  # by which the held quantity can always be met
    fixed, at = held.copy(), np.zeros((B, P))
    for _ in range(_ROUNDS):
        free_edge = np.where(fixed, 0.0, edge)
        none = ~(np.abs(free_edge).max(1) > 0)
        M = (
            S.times(np.where(fixed, 0.0, 1.0))
            .plus(np.where(fixed, 1.0, 0.0))
            .within(free_edge, np.where(none, 1.0, 0.0))
        )
        right = np.empty((B, P + 1, 1))
        right[:, :P, 0] = np.where(fixed, at, -g - S.dot(at))
        right[:, P, 0] = np.where(none, 0.0, gap - (edge * at).sum(1))
        found = M.solve(right)[:, :P, 0]
        beyond = ~fixed & ((found < low) | (found > high)) & ~(own & (edge != 0))
        if not beyond.any():
            break
        at, fixed = np.where(beyond, np.clip(found, low, high), at), fixed | beyond
    return np.asarray(found)


@dataclass(frozen=True, eq=False)
class MeshObservations:
    """A likelihood and what its data read off paths on given meshes.

    Attributes:
        likelihood: against readings instead of states at the observation times, where that is the same and less to do.
        readings, meshes: per experiment.
    """

    likelihood: Likelihood
    readings: tuple[ObservationOperator, ...]
    meshes: tuple[Array, ...]

    def take(self, index: Index) -> MeshObservations:
        """Of the trajectories at `index`."""
        return MeshObservations(self.likelihood.take(index), self.readings, self.meshes)

    def states(self, paths: Sequence[CollocationPath]) -> list[Array]:
        """What is read (1, N, K) of each experiment's path."""
        return [r.read(p.nodes[None], p.begun[None], p.Z[None]) for r, p in zip(self.readings, paths, strict=True)]

    def maps(self, lins: Sequence[Condensed]) -> list[Array]:
        """How it depends (1, N, K, W+1) on the experiment's own numbers and 1."""
        return [r.read(c.nodes[None], c.starts[None], c.stages[None])
                for r, c in zip(self.readings, lins, strict=True)]  # fmt: skip
