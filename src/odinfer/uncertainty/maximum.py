"""`Maximum`: an optimum of the likelihood with its information, from which all uncertainty is computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from odinfer.gp.curves import Curve
from odinfer.gp.grids import dense_times, finer_grid
from odinfer.gp.standardisation import state_scales
from odinfer.likelihood.collocation_batch import Trajectories
from odinfer.likelihood.forward_batch import trajectories_near
from odinfer.likelihood.likelihood import Likelihood
from odinfer.likelihood.loglik import solutions
from odinfer.likelihood.refinement import TrajectoryOptimum, maximise_from_initial, paths_through, refine, scales_along
from odinfer.ode.collocation import MANY
from odinfer.problem.parameter_vector import ParameterVector
from odinfer.problem.problem import Problem
from odinfer.uncertainty.information import Information, information
from odinfer.uncertainty.results import Uncertainty
from odinfer.uncertainty.small_sample import CONFIDENCE, quantile, sd_interval

if TYPE_CHECKING:
    from odinfer.uncertainty.intervals import ParameterLimits

Array = NDArray[np.float64]

_PARTS = 4  # of an interval of a mesh, between which cubic polynomials follow a trajectory as closely as it is computed
CONFIRMED = 0.05  # nats by which re-integration may change the log-likelihood of an optimum
_JUMP = 1e-9  # of the time span: how much later than the state before a jump the one after it stands in a curve


class RefinedResult(Protocol):
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
    def intervals(self) -> Uncertainty | None: ...


@dataclass(frozen=True, eq=False)
class Maximum:
    """A trajectory at a maximum of the likelihood, and what the data say around it.

    Attributes:
        known: unknowns (n, P) where searches have ended that did not lead here, or ODIN has other minima.
        verify: confidence limits are verified from other start points; not needed where the data contradict the model.
    """

    likelihood: Likelihood
    refined: TrajectoryOptimum
    info: Information
    known: Array | None = None
    verify: bool = True

    @staticmethod
    def of(problem: Problem, refined: TrajectoryOptimum, scale: Array | None = None) -> Maximum:
        """A maximum with the information of the data; by default in the scales (K,) of the data, or else its own."""
        scale = scales_along(refined.paths, state_scales(problem)) if scale is None else scale
        likelihood = Likelihood(problem, scale)
        return Maximum(likelihood, refined, information(likelihood, refined))

    @staticmethod
    def near(problem: Problem, theta: Array, curves: Sequence[Curve]) -> Maximum | None:
        """The maximum next to parameters (P,) and curves, such as those of a fit from a file; None if there is none."""
        scale, phi = state_scales(problem), np.clip(problem.phi(theta), *problem.phi_bounds)
        if problem.fully_observed_gaussian:
            found = refine(problem, scale, paths_through(problem, [(c.t, c.x, c.slope) for c in curves]), phi)
        else:
            found = maximise_from_initial(problem, scale, [c.x[0] for c in curves], phi)
        return None if found is None else Maximum.of(problem, found)

    @property
    def problem(self) -> Problem:
        return self.likelihood.problem

    @property
    def phi(self) -> Array:
        return self.refined.phi

    @property
    def v(self) -> Array:
        """All unknowns (P,)."""
        return self.likelihood.unknowns.join([p.x0 for p in self.refined.paths], self.phi)

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
    def limits(self) -> ParameterLimits:
        """Limits of the default intervals."""
        from odinfer.uncertainty.intervals import parameter_limits

        return parameter_limits(self, CONFIDENCE)

    @cached_property
    def nearby(self) -> Trajectories:
        """How trajectories near this one are computed."""
        return trajectories_near(self.likelihood, self.refined)

    @cached_property
    def profile_origin(self) -> Array:
        """Unknowns (P,) from which profiles start."""
        from odinfer.uncertainty.intervals import profile_origin

        return profile_origin(self)

    def curves(self) -> list[Curve]:
        """The trajectory of every experiment with its band."""
        found = []
        for e, path in enumerate(self.refined.paths):
            condition = self.problem.condition(e)
            t = dense_times(condition.times) if len(condition.times) <= MANY else finer_grid(path.mesh, _PARTS)[0]
            jumps = np.array([j.time for j in condition.jumps if t[0] <= j.time < t[-1]])
            after = np.unique(jumps) + _JUMP * (t[-1] - t[0])
            t = np.unique(np.concatenate([t, jumps, after]))
            found.append(Curve(t, *path.at(t), self.band_sd(self.refined, e, t)))
        return found

    def band_sd(self, refined: TrajectoryOptimum, e: int, t: Array) -> Array:
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
        sd, freedom = self.info.of(self.likelihood.unknowns.own(e)).spread(a)
        return np.asarray(sd * quantile(freedom, CONFIDENCE) / quantile(np.inf, CONFIDENCE))

    def noise_intervals(self, level: float = CONFIDENCE) -> dict[str, tuple[float, float]]:
        """Intervals of the standard deviations that are estimated beside the parameters, by column."""
        low, high = sd_interval(self.left, np.where(np.isinf(self.info.freedom), 1.0, self.info.freedom), level)
        every = zip(self.problem.columns, low.tolist(), high.tolist(), self.problem.estimated_noise, strict=True)
        return {column: (a, b) for column, a, b, estimated in every if estimated}

    def intervals(self, level: float = CONFIDENCE) -> Uncertainty | None:
        """Compute confidence intervals of the free parameters, their covariance, and warnings.

        Returns:
            None where there are no more data than unknowns: then the noise cannot be estimated.
        """
        if self.problem.count.sum() <= ParameterVector(self.problem, noise=True).counted:
            return None
        from odinfer.uncertainty.intervals import likelihood_intervals

        return likelihood_intervals(self, level)

    @cached_property
    def reintegrated_loglik(self) -> float:
        """The log-likelihood of trajectories integrated from their initial values; −∞ if one ends early."""
        x = solutions(self.problem, self.v)
        return -np.inf if x is None else float(self.likelihood.evaluate(x, self.phi[None]).loglik[0])

    @property
    def confirmed(self) -> bool:
        """Whether re-integration leads to the same log-likelihood: a mesh can step over a pole."""
        return abs(self.reintegrated_loglik - self.loglik) <= CONFIRMED
