"""ODIN: ODE-informed regression (Algorithm 1 of the paper), then maximum likelihood from its solution."""

from __future__ import annotations

import numbers
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odinfer import gradient_matching as gm
from odinfer import many_states, starts
from odinfer import refine as rf
from odinfer.assemble import assemble, named, observations, residual_squares, stage
from odinfer.collocation import Path
from odinfer.continuation import Followed, follow
from odinfer.errors import InputError, Status, nearest
from odinfer.fit import CONTRADICTS, NOT_JUDGED, Fit, Progress
from odinfer.information import information
from odinfer.kernels import kernel
from odinfer.methods import preset
from odinfer.problem import Problem
from odinfer.risk import Risk
from odinfer.simulate import simulate
from odinfer.solve import GammaRule, Solution, gauss_newton, lbfgsb
from odinfer.sparse_risk import SparseRisk
from odinfer.trajectories import trajectory_curve, uncertainty

Array = NDArray[np.float64]

OPTIMIZERS = ("gauss-newton", "lbfgsb")
ALGEBRA = ("auto", "dense", "sparse")
# γ is a variance of standardised derivatives, which are of order one; a right equation leaves it at its floor.
CONTRADICTS_ABOVE = 0.1
# A trajectory misses the data if its residuals are this many times the noise in variance, and run in smooth
# stretches (Durbin–Watson statistic; 2 for white residuals) rather than scatter.
_MISFIT, _SMOOTH = 4.0, 0.8
# A trajectory whose residuals exceed the smoother's noise by more than this may be a local optimum.
_CONVINCING = 1.15
_MOST_UNKNOWNS = 3000  # up to here dense algebra refines grids


@dataclass(frozen=True)
class Odin:
    """ODIN with its options.

    Args:
        kernel: a name of `odinfer.kernels.KERNELS`, or "auto": per state by evidence.
        optimizer: "gauss-newton" (Levenberg–Marquardt with the exact γ update) or "lbfgsb" (the paper's).
        refine: carry the solution on to the maximum likelihood by trajectory matching.
        gamma: "learn", or a value to hold it at (0 means that the equations hold exactly).
        gamma_bounds: within which γ is learned.
        jitter: added to the diagonals of C and A, a floor on the derivatives' variance.
        grid: grid points per gap between observations; 1 is the paper's choice, and taken where
            dense algebra would grow too large.
        temper: the GP's terms count for 1/temper; above 1 the data and the equations outweigh the smoother.
        starts: how many random θ to start from.
        hops: basin hops from the best solution found.
        shared: one set of hyperparameters and one γ for all states.
        scale_time: standardise time.
        hyper_bounds: of kernel hyperparameters and noise variance in standardised units.
        thorough: search the evidence for hyperparameters further than a good fit needs.
        weak_prior: a weak prior on the noise ratio keeps the evidence from explaining all noise away.
        algebra: "dense", "sparse" (conjugate gradients, for many states each coupled to a few), or "auto".
    """

    kernel: str = "auto"
    optimizer: str = "gauss-newton"
    refine: bool = True
    gamma: str | float = "learn"
    gamma_bounds: tuple[float, float] = (1e-6, 1e3)
    jitter: float = 1e-6
    grid: int = 2
    temper: float = 4.0
    starts: int = 10
    hops: int = 0
    shared: bool = False
    scale_time: bool = True
    hyper_bounds: tuple[float, float] = (1e-10, 1e6)
    thorough: bool = False
    weak_prior: bool = True
    algebra: str = "auto"

    name = "odin"

    def __post_init__(self) -> None:
        if self.kernel != "auto":
            kernel(self.kernel)
        for option in ("jitter", "temper"):
            if not isinstance(getattr(self, option), numbers.Real):
                raise InputError(f"{option} must be a number, not {getattr(self, option)!r}")
        for option in ("gamma_bounds", "hyper_bounds"):
            try:
                low, high = getattr(self, option)
                valid = 0 < low < high
            except (TypeError, ValueError):
                valid = False
            if not valid:
                raise InputError(f"{option} must be a pair 0 < low < high, not {getattr(self, option)!r}")
        if self.optimizer not in OPTIMIZERS:
            raise InputError(f"unknown optimizer '{self.optimizer}'{nearest(self.optimizer, OPTIMIZERS)}")
        if self.algebra not in ALGEBRA:
            raise InputError(f"unknown algebra '{self.algebra}'{nearest(self.algebra, ALGEBRA)}")
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
            value = getattr(self, option)
            if not isinstance(value, int) or value < least:
                raise InputError(f"{option} must be a whole number from {least} on, not {value!r}")
        if not self.temper >= 1:
            raise InputError(f"temper must be at least 1, not {self.temper:g}")

    @staticmethod
    def paper(system: Any, **changes: Any) -> Odin:
        """The authors' settings for one of the paper's systems, given as a System or by name.

        Their bounds on θ and states belong to the Problem: see `System.problem`. The optimiser stays Gauss–Newton,
        which reaches the same minimum; pass optimizer="lbfgsb" for theirs.
        """
        presets: dict[str, dict[str, Any]] = {
            "lotka_volterra": {"kernel": "rbf", "shared": True},
            "fitzhugh_nagumo": {"kernel": "matern52", "hops": 40},
            "protein_transduction": {"kernel": "sigmoid", "scale_time": False, "hops": 10},
            "lorenz96": {"kernel": "matern32"},
        }
        common: dict[str, Any] = {
            "refine": False, "gamma_bounds": (1e-6, 10.0), "jitter": 1e-4, "grid": 1, "temper": 1.0,
            "hyper_bounds": (1e-6, 100.0), "thorough": True, "weak_prior": False,
        }  # fmt: skip
        return Odin(**common | preset(system, presets) | changes)

    def fit(self, problem: Problem, seed: int = 0, progress: Progress | None = None) -> Fit:
        """Infer θ, states, γ and noise; see `odinfer.fit`."""
        say = progress or (lambda what, share: None)
        say("checking the equations", 0.0)
        problem.check_field()
        say("smoothing the data", 0.15)
        clock = time.perf_counter()
        risk, solutions, agreeing = self.solve(problem, seed)
        odin_seconds = time.perf_counter() - clock
        say("following trajectories", 0.6)
        clock = time.perf_counter()
        refined = self.follow(problem, risk, solutions, seed) if self.refine and solutions else None
        seconds = (odin_seconds, time.perf_counter() - clock)
        say("done", 1.0)
        return _assemble(self, problem, seed, risk, solutions, agreeing, refined, seconds)

    def solve(self, problem: Problem, seed: int = 0) -> tuple[Risk | SparseRisk, list[Solution], int]:
        """The ODIN stage: the risk, its different minima (best first), and how many starts led to the best."""
        rng = np.random.default_rng(seed)
        risk = self.risk(problem)
        drawn = starts.draw(problem, self.starts, rng)
        phi, cost = many_states.match(risk, drawn) if isinstance(risk, SparseRisk) else starts.match(risk, drawn)
        found: list[tuple[Solution, int]] = []
        for p, count in starts.distinct(phi, cost, most=2):
            rival = min((s.risk for s, _ in found), default=np.inf)
            found.append((self.minimise(risk, risk.mean, p, rng, rival), count))
        found = sorted((f for f in found if np.isfinite(f[0].risk)), key=lambda f: f[0].risk)
        if found and self.optimizer == "gauss-newton":
            found[0] = self.hop(risk, *found[0], rng)
        agreeing = sum(n for s, n in found if s.risk <= found[0][0].risk + 1e-2)
        different = [s for i, (s, _) in enumerate(found) if all(s.risk > o.risk + 1e-2 for o, _ in found[:i])]
        return risk, different, agreeing

    def risk(self, problem: Problem) -> Risk | SparseRisk:
        """Step 1: standardise, fit the Gaussian processes, and set up the risk."""
        units = gm.standardise(problem, self.scale_time)
        field = many_states.sparse_field(problem, self.grid, self.algebra)
        hypers = gm.smooth_states(
            problem, units, self.kernel, self.shared, self.hyper_bounds, self.thorough, self.weak_prior,
            snapped=field is not None,
        )  # fmt: skip
        if field is not None:
            return many_states.build_risk(problem, units, hypers, self.jitter, self.grid, self.temper, field)
        points = len(problem.model.states) * sum(len(e.t) for e in problem.data.experiments)
        grid = self.grid if self.grid * points <= _MOST_UNKNOWNS else 1
        return gm.build_risk(problem, units, hypers, self.jitter, grid, self.temper)

    def minimise(
        self,
        risk: Risk | SparseRisk,
        z: Array,
        phi: Array,
        rng: np.random.Generator | None = None,
        rival: float = np.inf,
        gamma: Array | float = 1.0,
    ) -> Solution:
        """Step 2: minimise the risk from one start; Gauss–Newton gives up where a rival is out of reach."""
        if self.optimizer == "lbfgsb":
            return lbfgsb(risk, z, phi, self.rule, hops=self.hops, rng=rng)
        if isinstance(risk, SparseRisk):
            return many_states.minimise(risk, z, phi, self.rule, rival)
        return gauss_newton(risk, z, phi, self.rule, rival=rival, gamma=gamma)

    def follow(
        self, problem: Problem, risk: Risk | SparseRisk, solutions: list[Solution], seed: int
    ) -> rf.Refined | Followed | None:
        """Stage two: the best trajectory from ODIN's minima, and from those of a finer grid if it is not convincing."""
        if isinstance(risk, SparseRisk):
            return follow(risk, solutions[0])
        best = _refine(problem, risk, solutions)
        noise = risk.units.scale * np.sqrt([h.noise for h in risk.hypers])
        if best is not None and (best.sigma <= _CONVINCING * noise).all():
            return best
        if 2 * risk.mean.size > _MOST_UNKNOWNS:
            return best
        # On a finer grid with less weight on the smoother ODIN is less biased, though slower.
        finer = replace(self, grid=2 * self.grid, temper=2.0 * self.temper)
        risk, solutions, _ = finer.solve(problem, seed)
        other = _refine(problem, risk, solutions) if isinstance(risk, Risk) else None
        return min((r for r in (best, other) if r), key=lambda r: r.objective, default=None)

    def hop(
        self, risk: Risk | SparseRisk, best: Solution, count: int, rng: np.random.Generator
    ) -> tuple[Solution, int]:
        """Basin hopping: minimise again from around the best solution, at three distances and three γ in turn."""
        for i in range(self.hops):
            z = best.z + (0.5 + 0.5 * (i % 3)) * rng.uniform(-1.0, 1.0, best.z.shape)
            phi = best.phi * np.exp(rng.uniform(-1.0, 1.0, best.phi.shape))
            s = self.minimise(risk, z, phi, rival=best.risk, gamma=(1.0, 1e-3, 1e-6)[i % 3])
            if s.risk < best.risk - 1e-2:
                best, count = s, 1
        return best, count

    @property
    def rule(self) -> GammaRule:
        return GammaRule(self.gamma_bounds, None if self.gamma == "learn" else float(self.gamma), self.shared)


def _refine(problem: Problem, risk: Risk, solutions: Sequence[Solution]) -> rf.Refined | None:
    """The best trajectory reached from any of ODIN's minima, or from around it."""
    best, scale = None, risk.units.scale
    for s in solutions:
        x, slope = risk.units.user(s.z), gm.slopes(risk, s)
        guess = rf.paths_through(problem, [(risk.t[b.rows], x[b.rows], slope[b.rows]) for b in risk.blocks])
        for phi in (s.phi, *starts.pulled_back(problem, s.phi)):
            found = rf.refine(problem, scale, guess, phi)
            if found is None:
                simulated = _simulated(problem, phi, [x[b.rows][0] for b in risk.blocks])
                found = rf.refine(problem, scale, simulated, phi) if simulated else None
            if found is not None and (best is None or found.objective < best.objective):
                best = found
    return None if best is None else rf.explore(problem, scale, best)


def _simulated(problem: Problem, phi: Array, initial: Sequence[Array]) -> tuple[Path, ...] | None:
    """Paths by forward integration, for where the estimated states are too far from any solution to start from."""
    theta, curves = problem.theta(phi), []
    for i, (e, x0) in enumerate(zip(problem.data.experiments, initial, strict=True)):
        t, _ = gm.finer_grid(e.t, 4)
        x = simulate(problem.model, theta, x0, t, e.u, rtol=1e-6, atol=1e-8)
        if not np.isfinite(x).all():
            return None
        curves.append((t, x, problem.model.linearise(t, x, theta, problem.inputs_at(i, t))[0]))
    return rf.paths_through(problem, curves, parts=2)


def _assemble(
    method: Odin,
    problem: Problem,
    seed: int,
    risk: Risk | SparseRisk,
    solutions: list[Solution],
    agreeing: int,
    refined: rf.Refined | Followed | None,
    seconds: tuple[float, float],
) -> Fit:
    """Both stages as plain data, which of them to believe, and the verdicts."""
    names = problem.model.states
    s = solutions[0] if solutions else _smoothed_only(risk)
    status = Status.NOT_FINITE if not solutions else Status.CONVERGED if s.converged else Status.MAX_ITERATIONS
    stage_of: Any = many_states if isinstance(risk, SparseRisk) else gm
    curves = stage_of.curves(risk, s) if solutions else stage_of.mean_curves(risk)
    gamma = named(names, s.gamma)
    sigma = risk.units.scale * np.sqrt([h.noise for h in risk.hypers])
    stages = {
        "odin": stage(
            problem, problem.theta(s.phi), curves, sigma,
            gamma=gamma, objective=s.risk, seconds=seconds[0], note=status.value,
        )
    }  # fmt: skip
    used, known = "odin", None
    if refined is not None:
        if isinstance(refined, Followed):
            trajectories, left = many_states.trajectories(refined), many_states.unbiased_sigma(problem, refined)
        else:
            like = rf.Likelihood(problem, risk.units.scale)
            info = information(problem, like, refined)
            trajectories = [trajectory_curve(problem, refined, info, e) for e in range(len(refined.paths))]
            left = info.sigma
        end = Status.CONVERGED if refined.converged else Status.MAX_ITERATIONS
        stages["refined"] = stage(
            problem, problem.theta(refined.phi), trajectories, left,
            gamma=gamma, objective=refined.objective, loglik=refined.loglik, seconds=seconds[1], note=end.value,
        )  # fmt: skip
        noise = np.maximum(sigma**2, residual_squares(problem, stages["odin"].x) / observations(problem))
        if not _misses(problem, stages["refined"].x, refined.sigma**2 / noise):
            used, curves, status = "refined", trajectories, end
            known = None if isinstance(refined, Followed) else uncertainty(like, refined, info)
    if method.refine and used == "odin" and status.converged:
        status = Status.ODIN_KEPT
    # A trajectory of the model that leaves only white noise acquits every equation, whatever the smoother thinks.
    learned = method.gamma == "learn" and used == "odin"
    verdicts = {k: CONTRADICTS for k, v in gamma.items() if learned and v > CONTRADICTS_ABOVE}
    if not solutions:
        verdicts = dict.fromkeys(names, NOT_JUDGED)
    return assemble(
        problem,
        method,
        seed,
        stages,
        curves,
        status=status.value,
        converged=status.converged,
        used=used,
        units=risk.units,
        gradients=stage_of.gradients(risk, s) if solutions else None,
        verdicts=verdicts,
        warnings=[many_states.NO_BANDS] if isinstance(risk, SparseRisk) else [],
        uncertainty=known,
        details={
            "starts": method.starts,
            "starts_agreeing": agreeing,
            "iterations": s.iterations,
            "kernels": {n: h.kernel for n, h in zip(names, risk.hypers, strict=True)},
            "evidence": {n: h.evidence for n, h in zip(names, risk.hypers, strict=True)},
        },
    )


def _misses(problem: Problem, x: Sequence[Array], ratio: Array) -> bool:
    """Whether a trajectory clearly leaves the data of some state, its residuals' variance being `ratio` times noise."""
    steps, total = np.zeros(len(ratio)), np.zeros(len(ratio))
    for e, xe in zip(problem.data.experiments, x, strict=True):
        for k, r in enumerate((e.y - xe).T):
            r = r[np.isfinite(r)]
            steps[k] += (np.diff(r) ** 2).sum()
            total[k] += (r**2).sum()
    durbin_watson = steps / np.maximum(total, 1e-300)
    return bool(((ratio > _MISFIT) & (durbin_watson < _SMOOTH)).any())


def _smoothed_only(risk: Risk | SparseRisk) -> Solution:
    """What is left when no start gave a finite model: the GP means."""
    nothing = np.full(len(risk.problem.free), np.nan)
    return Solution(risk.mean, nothing, np.full(risk.mean.shape[1], np.nan), np.inf, 0, False)
