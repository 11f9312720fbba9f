"""The ODIN stage: smooth the data, minimise the risk from many start points, and keep the distinct minima."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.checks import checked_choice, checked_integer, checked_range
from odinfer.errors import InputError
from odinfer.gp.kernels import kernel
from odinfer.odin import startpoints
from odinfer.odin.engine import ALGEBRA, Engine, engine_of
from odinfer.odin.gamma import GammaRule
from odinfer.odin.gauss_newton import Solution
from odinfer.odin.lbfgsb import lbfgsb
from odinfer.problem.problem import Problem
from odinfer.scaling import frequencies

Array = NDArray[np.float64]

OPTIMIZERS = ("gauss-newton", "lbfgsb")
_SAME = 1e-2  # difference of risks below which two minima are one


class Minima(NamedTuple):
    """The different minima of a risk, best first, how many starts led to each, and how all matched slopes."""

    engine: Engine
    solutions: list[Solution]
    counts: tuple[int, ...]
    mismatches: tuple[float, ...] = ()

    @property
    def agreeing(self) -> int:
        """How many starts led to the best minimum."""
        return self.counts[0] if self.counts else 0


@dataclass(frozen=True, kw_only=True)
class Search:
    """How the ODIN stage is run; its options are those of `odinfer.Odin`, which explains them."""

    kernel: str
    optimizer: str = "gauss-newton"
    gamma: str | float
    gamma_bounds: tuple[float, float] = (1e-6, 1e3)
    jitter: float
    grid: int
    temper: float
    starts: int = 10
    hops: int = 0
    shared: bool
    scale_time: bool
    hyper_bounds: tuple[float, float]
    thorough: bool
    weak_prior: bool
    algebra: str

    def __post_init__(self) -> None:
        if self.kernel != "auto":
            kernel(self.kernel)
        for option in ("jitter", "temper"):
            if not isinstance(getattr(self, option), numbers.Real):
                raise InputError(f"{option} must be a number, not {getattr(self, option)!r}")
        for option in ("gamma_bounds", "hyper_bounds"):
            checked_range(option, getattr(self, option))
        checked_choice("optimizer", self.optimizer, OPTIMIZERS)
        checked_choice("algebra", self.algebra, ALGEBRA)
        if self.gamma != "learn":
            try:
                value = float(self.gamma)
            except (TypeError, ValueError):
                raise InputError(f"gamma must be 'learn' or a number, not '{self.gamma}'") from None
            if not 0 <= value < np.inf:
                raise InputError(f"gamma must not be negative, not {value:g}")
        if not 0 < self.jitter < 1:
            raise InputError(f"jitter must be between 0 and 1, not {self.jitter:g}")
        for option, least in (("grid", 1), ("starts", 1), ("hops", 0)):
            checked_integer(option, getattr(self, option), least)
        if not self.temper >= 1:
            raise InputError(f"temper must be at least 1, not {self.temper:g}")

    @property
    def rule(self) -> GammaRule:
        return GammaRule(self.gamma_bounds, None if self.gamma == "learn" else float(self.gamma), self.shared)

    def engine(self, problem: Problem) -> Engine:
        """Step 1: standardise, fit the Gaussian processes, and set up the risk."""
        return engine_of(
            problem, self.algebra, self.grid, self.temper, self.jitter, scale_time=self.scale_time,
            kernel_name=self.kernel, shared=self.shared, bounds=self.hyper_bounds, thorough=self.thorough,
            weak_prior=self.weak_prior,
        )  # fmt: skip

    def minimise(
        self,
        engine: Engine,
        z: Array,
        phi: Array,
        rng: np.random.Generator | None = None,
        rival: float = np.inf,
        gamma: Array | float = 1.0,
    ) -> Solution:
        """Step 2: minimise the risk from one start; Gauss–Newton gives up where a rival is out of reach."""
        if self.optimizer == "lbfgsb":
            return lbfgsb(engine, z, phi, self.rule, hops=self.hops, rng=rng)
        return engine.minimise(z, phi, self.rule, rival, gamma)

    def run(self, problem: Problem, seed: int | Sequence[int] = 0, most: int = 2) -> Minima:
        """Both steps from many starts, of which the best few different ones are carried on.

        Parameters that are assumed positive are on linear scales here (`Problem.linear`): so are those of the minima.
        """
        problem, rng = problem.linear, np.random.default_rng(seed)
        engine = self.engine(problem)
        count = max(self.starts, 2 * frequencies.count(problem))
        phi, cost = engine.match(startpoints.draw(problem, count, rng))
        found: list[tuple[Solution, int]] = []
        for p, count in startpoints.distinct(problem, phi, cost, most):
            rival = min((s.risk for s, _ in found), default=np.inf)
            found.append((self.minimise(engine, engine.mean, p, rng, rival), count))
        found = sorted((f for f in found if np.isfinite(f[0].risk)), key=lambda f: f[0].risk)
        if found and self.optimizer == "gauss-newton":
            found[0] = self._basin_hopping(engine, *found[0], rng)
        different: list[Solution] = []
        counts: list[int] = []
        for s, n in found:
            if different and s.risk <= different[-1].risk + _SAME:
                counts[-1] += n
            else:
                different.append(s)
                counts.append(n)
        return Minima(engine, different, tuple(counts), tuple(np.sort(cost).tolist()))

    def _basin_hopping(
        self, engine: Engine, best: Solution, count: int, rng: np.random.Generator
    ) -> tuple[Solution, int]:
        """Basin hopping: minimise again from around the best solution, at three distances and three γ in turn."""
        for i in range(self.hops):
            z = best.z + (0.5 + 0.5 * (i % 3)) * rng.uniform(-1.0, 1.0, best.z.shape)
            phi = best.phi * np.exp(rng.uniform(-1.0, 1.0, best.phi.shape))
            s = self.minimise(engine, z, phi, rival=best.risk, gamma=(1.0, 1e-3, 1e-6)[i % 3])
            if s.risk < best.risk - _SAME:
                best, count = s, 1
        return best, count
