"""Options, density and start points that the sampling methods share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odinfer.checks import checked_choice
from odinfer.errors import InputError
from odinfer.odin.dense_engine import Dense
from odinfer.odin.multistart import Search
from odinfer.problem.problem import Problem
from odinfer.sampling import density as ds

Array = NDArray[np.float64]

STARTS = ("odin", "paper")


@dataclass(frozen=True, kw_only=True)
class SamplerOptions:
    """The options that methods by Markov chain Monte Carlo share.

    Args:
        start: "odin" starts all chains around ODIN's Gauss–Newton solution, so that short chains have little way to
            go; "paper" starts at the GP means and θ = |N(0, 1)|, as the authors do.
        state_range: standardised states lie within ± this; None for the problem's bounds alone.
        theta_range: bounds of every θ within those of the problem; None for the problem's alone.
        kernel, jitter, grid, temper, shared, scale_time, hyper_bounds, thorough, weak_prior: of the Gaussian
            processes, as in `odinfer.Odin`.
    """

    start: str = "odin"
    state_range: float | None = None
    theta_range: tuple[float, float] | None = None
    kernel: str = "auto"
    jitter: float = 1e-4
    grid: int = 1
    temper: float = 1.0
    shared: bool = False
    scale_time: bool = True
    hyper_bounds: tuple[float, float] = (1e-10, 1e6)
    thorough: bool = False
    weak_prior: bool = True

    def __post_init__(self) -> None:
        self.search("learn")  # checks the options of the Gaussian processes
        checked_choice("start", self.start, STARTS)
        if self.state_range is not None and not self.state_range > 0:
            raise InputError(f"state_range must be positive, not {self.state_range}")
        if self.theta_range is not None and not self.theta_range[0] < self.theta_range[1]:
            raise InputError(f"theta_range must be low < high, not {self.theta_range}")

    def search(self, gamma: str | float) -> Search:
        """ODIN on the same Gaussian processes: it sets up the matrices and finds where to start."""
        return Search(
            kernel=self.kernel, gamma=gamma, jitter=self.jitter, grid=self.grid, temper=self.temper,
            shared=self.shared, scale_time=self.scale_time, hyper_bounds=self.hyper_bounds, thorough=self.thorough,
            weak_prior=self.weak_prior, algebra="dense",
        )  # fmt: skip

    def begin(
        self, problem: Problem, gamma: str | float, chains: int, seed: int, theta_prior: tuple[int, float, float]
    ) -> tuple[Dense, ds.DensityCode, ds.DensityData, Array, Array]:
        """The density, and where its chains start.

        Args:
            gamma: at which ODIN's solution is sought.
            theta_prior: kind and two numbers, of parameters without a prior of their own.

        Returns:
            The risk, the density's form and numbers, and starts z (chains, K, M) and φ (chains, F) inside all bounds.
        """
        rng = np.random.default_rng(seed)
        search = self.search(gamma)
        solutions: Sequence[Any] = ()
        if self.start == "odin":
            risk, solutions, *_ = search.run(problem, seed)
        else:
            risk = search.engine(problem)
        assert isinstance(risk, Dense)  # by its algebra
        form, target = ds.posterior_density(risk, self.state_range, self.theta_range, theta_prior)
        F = len(problem.free)
        if solutions:
            z0, phi0 = solutions[0].z.T, solutions[0].phi
            # Spread out a little: chains that start at one point would look as if they agreed.
            z = z0 + 0.02 * rng.normal(size=(chains, *z0.shape))
            phi = phi0 + 0.05 * rng.normal(size=(chains, F)) * np.where(problem.is_log, 1.0, np.abs(phi0) + 1e-3)
        else:
            z = np.broadcast_to(risk.mean.T, (chains, *risk.mean.T.shape))
            full = np.zeros((chains, len(problem.model.parameters)))
            full[:, problem.free_index] = np.abs(rng.normal(size=(chains, F)))
            phi = problem.phi(full)
        z = _move_inside(z, target.z_low[:, None], target.z_high[:, None])
        return risk, form, target, z, _move_inside(phi, target.parameters.low, target.parameters.high)


def _move_inside(values: Array, low: Array, high: Array) -> Array:
    """Strictly inside the bounds: by 1 % of a finite interval, or by a little of an open one."""
    with np.errstate(invalid="ignore"):
        margin = np.minimum(np.where(np.isfinite(high - low), 0.01 * (high - low), 1e-2), 1e-2)
    return np.clip(values, low + margin, high - margin)
