"""A maximum of the likelihood with all that goes on from there: bands, intervals, profiles, bootstraps, forecasts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from odinfer.gp.curves import Curve
from odinfer.gp.grids import dense_times, finer_grid
from odinfer.gp.standardisation import Units
from odinfer.likelihood.batch_likelihood import SideBySide
from odinfer.likelihood.likelihood import Likelihood
from odinfer.likelihood.loglik import solutions
from odinfer.likelihood.refinement import Refined, paths_through, refine, scale_of, shoot
from odinfer.ode.collocation import MANY
from odinfer.problem.parameter_vector import Unknowns
from odinfer.problem.problem import Problem
from odinfer.search.startpoints import drawn
from odinfer.search.trust_region import follow
from odinfer.uncertainty.information import Information, information
from odinfer.uncertainty.results import Uncertainty
from odinfer.uncertainty.small_sample import CONFIDENCE, quantile, sd_interval

if TYPE_CHECKING:
    from odinfer.uncertainty.intervals import Found

Array = NDArray[np.float64]

_PARTS = 4  # of an interval of a mesh, between which cubic polynomials follow a trajectory as closely as it is computed
_CLIMBS, _HIGHER = 4, 0.05  # to higher maxima, the last in vain, and by how much at least
# Of searches for a maximum whose trajectories go forward: the tolerance of steps, starts around, how far these are in
# e-folds, and ends that are tried.
_STEPS, _AROUND, _WIDTH, _TRIED = 1e-4, 32, 0.5, 10
_JUMP = 1e-9  # of the time span: how much later than the state before a jump the one after it stands in a curve


class Reached(Protocol):
    """Where the second stage of a fit ends, whatever the engine.

    Attributes:
        phi: free parameters (F,).
        sigma, left: noise standard deviations (K,), at their maximum likelihood and corrected for the fitted unknowns.
        loglik, objective: log-likelihood, and −loglik − log p(θ).
        iterations, converged: how it ended.
    """

    @property
    def phi(self) -> Array: ...
    @property
    def sigma(self) -> Array: ...
    @property
    def left(self) -> Array: ...
    @property
    def loglik(self) -> float: ...
    @property
    def objective(self) -> float: ...
    @property
    def iterations(self) -> int: ...
    @property
    def converged(self) -> bool: ...
    def curves(self) -> list[Curve]: ...
    def settled(self) -> tuple[Reached, Uncertainty | None]: ...


@dataclass(frozen=True, eq=False)
class Maximum:
    """A trajectory at a maximum of the likelihood, and what the data say around it.

    Attributes:
        known: unknowns (n, P) where searches have ended that did not lead here, or ODIN has other minima.
        unreached: unknowns (P,) at which the likelihood is higher, though from there no maximum could be reached.
    """

    like: Likelihood
    refined: Refined
    info: Information
    known: Array | None = None
    unreached: Array | None = None

    @staticmethod
    def of(problem: Problem, scale: Array, refined: Refined) -> Maximum:
        like = Likelihood(problem, scale)
        return Maximum(like, refined, information(like, refined))

    @staticmethod
    def at(problem: Problem, refined: Refined) -> Maximum:
        """The same where the sizes of states are those of the trajectory."""
        return Maximum.of(problem, scale_of(refined.paths, np.full(len(problem.model.states), np.nan)), refined)

    @staticmethod
    def near(problem: Problem, theta: Array, curves: Sequence[Curve]) -> Maximum | None:
        """The maximum next to parameters (P,) and curves, such as those of a fit from a file; None if there is none."""
        if not problem.plain:
            x0 = [c.x[0] for c in curves]
            phi = np.clip(problem.phi(theta), *problem.phi_bounds)
            reached = shoot(problem, np.full(len(problem.model.states), np.nan), x0, phi)
            return None if reached is None else Maximum.at(problem, reached)
        scale = Units.of(problem).scale
        phi = np.clip(problem.phi(theta), *problem.phi_bounds)
        found = refine(problem, scale, paths_through(problem, [(c.t, c.x, c.slope) for c in curves]), phi)
        return None if found is None else Maximum.of(problem, scale, found)

    @property
    def problem(self) -> Problem:
        return self.like.problem

    @property
    def phi(self) -> Array:
        return self.refined.phi

    @property
    def v(self) -> Array:
        """All unknowns (P,)."""
        return self.like.unknowns.join([p.x0 for p in self.refined.paths], self.phi)

    @property
    def sigma(self) -> Array:
        return self.refined.sigma

    @property
    def left(self) -> Array:
        return self.info.sigma

    @property
    def loglik(self) -> float:
        return self.refined.loglik

    @property
    def objective(self) -> float:
        return self.refined.objective

    @property
    def iterations(self) -> int:
        return self.refined.iterations

    @property
    def converged(self) -> bool:
        return self.refined.converged

    @cached_property
    def ends(self) -> tuple[Array, Array, Found]:
        """Lower and upper ends (F,) of the default intervals, and what was found on the way there."""
        from odinfer.uncertainty.intervals import parameter_ends

        return parameter_ends(self, CONFIDENCE)

    def curves(self) -> list[Curve]:
        """The trajectory of every experiment with its band."""
        found = []
        for e, path in enumerate(self.refined.paths):
            course = self.problem.course(e)
            t = dense_times(course.times) if len(course.times) <= MANY else finer_grid(path.mesh, _PARTS)[0]
            jumps = np.array([j.time for j in course.jumps if t[0] <= j.time < t[-1]])
            after = np.unique(jumps) + _JUMP * (t[-1] - t[0])
            t = np.unique(np.concatenate([t, jumps, after]))
            found.append(Curve(t, *path.at(t), self.band_sd(self.refined, e, t)))
        return found

    def band_sd(self, refined: Refined, e: int, t: Array) -> Array:
        """Standard deviations (N, K) of the states, widened so that the normal 95 % band is Student's.

        Args:
            refined: this maximum's trajectory, or the same carried on beyond the data.
        """
        S = refined.paths[e].sensitivity_at(refined.condensed[e], t)
        return np.hypot(self.widened(e, S), self.info.accuracy)

    def widened(self, e: int, a: Array) -> Array:
        """Standard deviations (...) of quantities with gradients a (..., W), so that normal bands are Student's.

        Args:
            a: by the own numbers of experiment e.
        """
        sd, freedom = self.info.of(self.like.unknowns.own(e)).spread(a)
        return np.asarray(sd * quantile(freedom, CONFIDENCE) / quantile(np.inf, CONFIDENCE))

    def noise_intervals(self, level: float = CONFIDENCE) -> dict[str, tuple[float, float]]:
        """Intervals of the standard deviations that are estimated beside the parameters, by column."""
        low, high = sd_interval(self.left, np.where(np.isinf(self.info.freedom), 1.0, self.info.freedom), level)
        every = zip(self.problem.columns, low.tolist(), high.tolist(), self.problem.estimated_noise, strict=True)
        return {column: (a, b) for column, a, b, estimated in every if estimated}

    def intervals(self, level: float = CONFIDENCE) -> Uncertainty | None:
        """Likelihood intervals of the free parameters, their covariance, and what the data cannot determine.

        None where there are no more data than unknowns: then nothing is left to tell how sure they are.
        """
        return self._asked(level)[0]

    def settled(self, level: float = CONFIDENCE) -> tuple[Maximum, Uncertainty | None]:
        """This maximum with its intervals; or a higher one that was met on the way to their ends, with its own."""
        self, known, higher = self._sound(level)
        for i in range(_CLIMBS):
            if higher is None:
                break
            found = self.above(higher) if i < _CLIMBS - 1 else None
            self = replace(self, unreached=higher) if found is None else replace(found, known=self.known)
            self, known, higher = self._sound(level)
        return self, known

    def _sound(self, level: float) -> tuple[Maximum, Uncertainty | None, Array | None]:
        """This maximum, or a sounder one, with what was asked of it."""
        if not self.confirmed:
            self = self.sounder() or self
        known, higher = self._asked(level)
        if known is None or not self.ends[2].alone or (sound := self.sounder()) is None:
            return self, known, higher
        return sound, *sound._asked(level)

    def _asked(self, level: float) -> tuple[Uncertainty | None, Array | None]:
        """The intervals, and unknowns (P,) at which the likelihood is higher, if any were met."""
        if self.problem.count.sum() <= Unknowns(self.problem, noise=True).size:
            return None, None
        from odinfer.uncertainty.intervals import likelihood_intervals

        return likelihood_intervals(self, level)

    @cached_property
    def again(self) -> float:
        """The log-likelihood if trajectories are integrated once more from their beginning; −∞ if one ends early."""
        x = solutions(self.problem, self.v)
        return -np.inf if x is None else float(self.like.judged(x, self.phi[None]).loglik[0])

    @property
    def confirmed(self) -> bool:
        """Whether integration leads to the same likelihood: a mesh can step over a pole."""
        return abs(self.again - self.loglik) <= _HIGHER

    def sounder(self) -> Maximum | None:
        """The best maximum nearby that steps forward in time lead to and integration confirms; None unless it is worth
        more than integration makes of this one."""
        if not SideBySide.can(self.problem):
            return None
        rng, v, solver = np.random.default_rng(0), self.v, SideBySide.of(self.problem, _STEPS)
        flipped = np.where(np.eye(len(v), dtype=bool), -v, v)
        starts = [v[None], flipped, v * np.exp(_WIDTH * rng.normal(size=(_AROUND, len(v))))]
        starts += [drawn(self.problem, v, _AROUND, rng)] if self.problem.plain else []
        with np.errstate(all="ignore"):  # starts may be anywhere
            ends = follow(solver, np.concatenate(starts))
            for i in np.argsort(ends.value)[:_TRIED].tolist():
                found = self._standing(solver.finer(), ends.v[i]) if np.isfinite(ends.value[i]) else None
                if found is not None and found.loglik > self.again + _HIGHER:
                    return found
        return None

    def _standing(self, solver: SideBySide, v: Array) -> Maximum | None:
        """The maximum at unknowns (P,) that steps forward in time have led to; None if integration does not confirm it.

        Not a step further on a mesh, which might lead away.
        """
        paths, phi = solver.paths(v), self.like.unknowns.phi(v)
        made = paths and shoot(self.problem, self.like.scale, solver.initial(v), phi, 0, along=paths)
        if not made:
            return None
        found = Maximum.of(self.problem, self.like.scale, replace(made, converged=True))
        return replace(found, known=self.known) if found.confirmed else None

    def above(self, v: Array) -> Maximum | None:
        """A higher maximum from unknowns (P,) on, whose trajectories may be anywhere; None if none is reached."""
        problem, phi = self.problem, self.like.unknowns.phi(v)
        for solver in (SideBySide.of(problem), SideBySide.of(problem).finer()):
            paths = solver.paths(v)
            if paths is None:
                continue
            if problem.plain:
                found = refine(problem, self.like.scale, paths, phi)
            else:
                found = shoot(problem, np.full(len(self.like.scale), np.nan), solver.initial(v), phi, along=paths)
            if found is not None and found.objective < self.objective - _HIGHER:
                return Maximum.of(problem, self.like.scale, found) if problem.plain else Maximum.at(problem, found)
        finest = SideBySide.of(problem).finer()
        with np.errstate(all="ignore"):
            stands = self._standing(finest, follow(finest, v[None], patient=True).v[0])
        return stands if stands is not None and stands.objective < self.objective - _HIGHER else None
