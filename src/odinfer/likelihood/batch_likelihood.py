"""The likelihood of many sets of unknowns at once, by batched forward integration."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from odinfer.likelihood.likelihood import Likelihood, LikelihoodValues
from odinfer.likelihood.variable_projection import VariableProjection, moving
from odinfer.model.differentiation import TextField
from odinfer.ode.adaptive_mesh import along_steps
from odinfer.ode.breakpoints import Timetable
from odinfer.ode.collocation import CollocationPath
from odinfer.ode.right_hand_side import Field
from odinfer.optimize.arrow_matrix import ArrowMatrix
from odinfer.problem.problem import Problem
from odinfer.scaling.dimensional_analysis import implied_sizes, natural_sizes_of_phi

if TYPE_CHECKING:
    from odinfer.ode.integrate_batch import BatchTrajectories

Array = NDArray[np.float64]
Index = NDArray[np.int64]

TOLERANCE, MOST_STEPS = 1e-3, 1000  # of the steps of a search, and of one trajectory
MOST_TIMES = 500  # of one series: longer ones are followed one start point after the other
_FINER = 1e-3
_SMALL = 1e-3  # of their natural size: unknowns that are smaller still change in steps of this
_ROOM = 5_000_000  # derivatives that are kept at once


@dataclass(frozen=True, eq=False)
class BatchSolution:
    """Trajectories at unknowns v (B, P), one after the other for every experiment of each.

    Attributes:
        experiments, theta, x0: (B·E,), (B·E, P) and (B·E, K).
        worth: what they are worth (B,).
    """

    v: Array
    experiments: Index
    theta: Array
    x0: Array
    trajectories: BatchTrajectories
    worth: LikelihoodValues

    @property
    def tries(self) -> Index:
        """Steps that were tried for each trajectory (B, E)."""
        return self.trajectories.tries.reshape(len(self.v), -1)


@dataclass(frozen=True, eq=False)
class Expansion:
    """The objective at B sets of unknowns to second order.

    Attributes:
        v, value: unknowns (B, P) and objectives (B,).
        noise: variances (B, M).
        tries: steps of integration that were tried (B, E).
        H, g: Gauss–Newton Hessians (B, P, P) and gradients (B, P).
    """

    v: Array
    value: Array
    noise: Array
    tries: Index
    H: ArrowMatrix
    g: Array


@dataclass(frozen=True, eq=False)
class BatchLikelihood:
    """A problem whose model is text.

    Attributes:
        tolerance: of the steps.
        most: steps of one trajectory.
        halting: steps end at every observation, which makes them shorter and more accurate where there are many.
    """

    likelihood: Likelihood
    field: Field
    tolerance: float
    most: int
    halting: bool = True

    @staticmethod
    def of(
        problem: Problem, tolerance: float = TOLERANCE, most: int = MOST_STEPS, halting: bool = True
    ) -> BatchLikelihood:
        conditions = [problem.condition(e) for e in range(len(problem.data.experiments))]
        wanted = np.unique(np.concatenate([problem.own_index(e) for e in range(len(conditions))]))
        moved = moving(problem.model)
        wanted = wanted[[problem.model.parameters[i] in moved for i in wanted]]
        field = Field(Timetable.of(conditions), wanted)
        return BatchLikelihood(Likelihood(problem, np.ones(len(problem.model.states))), field, tolerance, most, halting)

    @staticmethod
    def can(problem: Problem) -> bool:
        """Whether a problem can be solved so: its model is text, and no series is very long."""
        few = all(len(e.t) <= MOST_TIMES for e in problem.data.experiments)
        return few and isinstance(problem.model.derivatives, TextField)

    def finer(self) -> BatchLikelihood:
        """The same with steps that are much more accurate."""
        return replace(self, tolerance=_FINER * self.tolerance, most=4 * self.most)

    @property
    def problem(self) -> Problem:
        return self.likelihood.problem

    def initial(self, v: Array) -> list[Array]:
        """Initial values (K,) of every experiment at unknowns v (P,)."""
        p, u = self.problem, self.likelihood.unknowns
        theta = [p.theta_of(e, u.phi(v))[None] for e in range(u.experiments)]
        return [p.condition(e).initial(own, u.x0(v, e)[None])[0] for e, own in enumerate(theta)]

    @functools.cached_property
    def projection(self) -> VariableProjection:
        return VariableProjection(self.likelihood)

    def solve(self, v: Array, projected: bool = False, most: Index | None = None) -> BatchSolution:
        """The trajectories at unknowns v (B, P) and what they are worth; infinite where one ends early.

        Args:
            gauged: whether what only the measurement has is moved to its best.
            most: steps of each trajectory (B, E), where they are not as many as may be.
        """
        from odinfer.ode.integrate_batch import integrate_batch

        u, B, E = self.likelihood.unknowns, len(v), len(self.problem.data.experiments)
        phi = u.phi(v)
        theta, x0 = self.initial_values(v)
        experiments = np.tile(np.arange(E), B)
        theta, x0 = (own.reshape(B * E, own.shape[-1]) for own in (theta, x0))
        limit = self.most if most is None else np.minimum(most, self.most).ravel()
        trajectories = integrate_batch(self.field, experiments, theta, x0, self.tolerance, limit, self.halting)
        with np.errstate(all="ignore"):
            if projected:
                v, worth = self.projection.set(self.states(trajectories), v, self.unit(v))
            else:
                worth = self.likelihood.evaluate(self.states(trajectories), phi)
        return BatchSolution(v, experiments, theta, x0, trajectories, worth)

    def initial_values(self, v: Array) -> tuple[Array, Array]:
        """The model's parameters (B, E, P) and initial values (B, E, K) of every experiment at unknowns v (B, P)."""
        p, u, E = self.problem, self.likelihood.unknowns, len(self.problem.data.experiments)
        phi = u.phi(v)
        if not p.split.any and p.model.given_initial is None:  # all experiments are alike
            theta, x0 = p.theta(phi), np.empty((len(v), E, len(p.model.states)))
            x0[..., p.model.free_initial] = v[:, : E * len(u.initial)].reshape(len(v), E, -1)
            return np.repeat(theta[:, None], E, 1), x0
        theta = np.stack([p.theta_of(e, phi) for e in range(E)], 1)
        with np.errstate(all="ignore"):
            return theta, np.stack([p.condition(e).initial(theta[:, e], u.x0(v, e)) for e in range(E)], 1)

    def paths(self, v: Array) -> tuple[CollocationPath, ...] | None:
        """The trajectories at unknowns v (P,) on meshes of their own steps; None if one ends early."""
        solved = replace(self, halting=True).solve(v[None])
        if not np.isfinite(solved.worth.value[0]):
            return None
        every = enumerate(self.initial(v))
        return tuple(along_steps(self.problem, e, x0, solved.trajectories, e) for e, x0 in every)

    def states(self, trajectories: BatchTrajectories) -> list[Array]:
        """States (B, N, K) at the observations of every experiment."""
        x = trajectories.x.reshape(-1, self.likelihood.unknowns.experiments, *trajectories.x.shape[1:])
        return [x[:, e][:, rows] for e, rows in enumerate(self.field.table.rows)]

    def normal(self, solved: BatchSolution, which: Index) -> tuple[ArrowMatrix, Array]:
        """Gauss–Newton Hessians (b, P, P) and gradients (b, P) of the sets of unknowns `which` (b,)."""
        _, n, K = solved.trajectories.x.shape
        wide = len(self.problem.model.free_initial) + len(self.field.wanted)
        size = max(1, _ROOM // max(len(self.problem.data.experiments) * n * K * wide, 1))
        parts = [self._normal(solved, which[i : i + size]) for i in range(0, max(len(which), 1), size)]
        return ArrowMatrix.join([H for H, _ in parts]), np.concatenate([g for _, g in parts])

    def _normal(self, solved: BatchSolution, which: Index) -> tuple[ArrowMatrix, Array]:
        states, maps = self.linearised(solved, which)
        with np.errstate(all="ignore"):
            phi = self.likelihood.unknowns.phi(solved.v[which])
            return self.likelihood.take(which).normal(states, maps, solved.worth.noise[which], phi)

    def linearised(self, solved: BatchSolution, which: Index) -> tuple[list[Array], list[Array]]:
        """States (b, N, K) of the sets of unknowns `which` (b,) at the observations of every experiment, and how they
        depend (b, N, K, W) on its own numbers."""
        from odinfer.ode.sensitivities import sensitivities

        p, u, E = self.problem, self.likelihood.unknowns, len(self.problem.data.experiments)
        phi, initial, wanted = u.phi(solved.v[which]), p.model.free_initial, self.field.wanted
        first, K = len(initial), len(p.model.states)
        own = (which[:, None] * E + np.arange(E)).ravel()
        S0 = np.zeros((len(own), K, first + len(wanted)))
        S0[:, initial, np.arange(first)] = 1.0
        if p.model.given_initial is not None:
            theta = solved.theta[own].reshape(len(which), E, solved.theta.shape[-1])
            for e in range(E):
                S0[e::E, :, first:] = p.condition(e).initial_slopes(theta[:, e])[..., wanted]
        S = sensitivities(self.field, solved.trajectories, solved.experiments, solved.theta, S0, own)
        S, x = (v.reshape(len(v) // E, E, *v.shape[1:]) for v in (S, solved.trajectories.x))
        states: list[Array] = [np.empty(0)] * E
        maps: list[Array] = [np.empty(0)] * E
        for alike, rows, index, places in self._alike:
            into = np.append(np.ones(first, bool), np.isin(index, wanted))
            columns = np.append(np.arange(first), first + np.searchsorted(wanted, index[into[first:]]))
            by_own = np.zeros((len(which), len(alike), len(rows), K, first + len(index)))
            by_own[..., into] = S[:, alike[:, None], rows][..., columns]
            slope = np.broadcast_to(p.slope(phi), (len(which), phi.shape[1]))
            by_own[..., first:] *= slope[:, places][:, :, None, None]
            own_states = x[which[:, None, None], alike[:, None], rows]
            for i, e in enumerate(alike.tolist()):
                states[e], maps[e] = own_states[:, i], by_own[:, i]
        return states, maps

    @functools.cached_property
    def _alike(self) -> list[tuple[Index, Index, Index, Index]]:
        """Experiments (G,) with the same stops `rows` (N,) at their observations and the same places (W,) of their own
        parameters in the model, and the places (G, W) of these in φ."""
        groups: dict[tuple[bytes, bytes], list[int]] = {}
        rows, p = self.field.table.rows, self.problem
        for e, own in enumerate(rows):
            groups.setdefault((own.tobytes(), p.own_index(e).tobytes()), []).append(e)
        return [
            (np.array(es), rows[es[0]], p.own_index(es[0]), np.array([p.own_phi(e) for e in es]))
            for es in groups.values()
        ]

    def unit(self, v: Array) -> Array:
        """By which unknowns (B, P) change in a step of length one: an e-fold, a tenth of what their bounds leave them,
        or their own size."""
        u = self.likelihood.unknowns
        width = 0.1 * (u.high - u.low)
        size = np.maximum(np.abs(v), _SMALL * self.natural)
        return np.where(self.is_log, 1.0, np.where(np.isfinite(width), width, size))

    @functools.cached_property
    def is_log(self) -> NDArray[np.bool_]:
        """Which unknowns (P,) are on a log scale."""
        own = np.zeros(self.likelihood.unknowns.size, bool)
        own[self.likelihood.unknowns.of_phi] = self.problem.is_log
        return own

    @functools.cached_property
    def natural(self) -> Array:
        """Sizes of the unknowns (P,) that data and equations imply."""
        states = 10.0 ** implied_sizes(self.problem).states
        return self.likelihood.unknowns.join(
            [states] * self.likelihood.unknowns.experiments, natural_sizes_of_phi(self.problem)
        )
