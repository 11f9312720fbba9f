"""RKG2 and RKG3: gradient matching with kernel ridge regression (González et al. 2014, Niu et al. 2016)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.checks import checked_integer
from odinfer.errors import InputError, Status
from odinfer.gp.curves import Curve
from odinfer.gp.kernel_ridge import Regression
from odinfer.gp.kernels import KERNELS, kernel
from odinfer.gp.standardisation import Units
from odinfer.methods import preset
from odinfer.odin import startpoints
from odinfer.odin.startpoints import Matched
from odinfer.optimize.levenberg_marquardt import Mask, Rule, blocked_by_bounds, levenberg_marquardt
from odinfer.problem.problem import Problem
from odinfer.progress import Progress, no_progress
from odinfer.result.assemble import assemble, residual_squares, stage
from odinfer.result.fit import Fit

Array = NDArray[np.float64]

# Parameters of either sign must match this much better than positive ones: a way through infinity or zero to
# negative values often fits noise.
_SIGN_ADVANTAGE = 0.9
# Singular values of the normal equations of b below this share of the largest are noise of the kernel matrix.
_RCOND = 1e-7
_REWEIGHTINGS, _THETA_STEPS = 10, 3
_POINTS_PER_GAP = 4  # slopes matched per gap between times


@dataclass(frozen=True)
class Rkg:
    """Kernel ridge regression x_k(t) = mean(y_k) + Σ_i b_i k(t, t_i) with θ from its derivatives.

    Works on standardised states and time, so that one ridge grid and one λ_g suit all states. Bounds on θ are kept
    and those on states hold where f is evaluated; priors are not part of the method and give a warning.

    Args:
        variant: 2 matches f to the derivatives of a fixed smoother; 3 goes on to fit b and θ in turn.
        warp: regress on log(1 + t/τ) instead of t, τ per state by cross-validation.
        kernel: a name of `odinfer.gp.kernels.KERNELS`.
        starts: how many θ to start from; the first is .1 for all, as in the original.
        rounds: outer rounds of variant 3.
        updates: closed-form updates of b per round, f frozen.
        robust: weigh every equation by the mismatch it is left with, and match slopes all along the curve but for its
            two ends, where a smoother knows them least; off: plain least squares from the second time on, as published.
        lambdas: candidates for λ_g, the weight of the derivatives, chosen by 2-fold cross-validation.
    """

    variant: int = 3
    warp: bool = False
    kernel: str = "rbf"
    starts: int = 6
    rounds: int = 20
    updates: int = 3
    robust: bool = True
    lambdas: tuple[float, ...] = (1e-3, 1e-2, 1e-1, 1.0, 10.0)

    name = "rkg"

    def __post_init__(self) -> None:
        if isinstance(self.variant, bool) or self.variant not in (2, 3):
            raise InputError(f"variant must be 2 or 3, not {self.variant!r}")
        kernel(self.kernel)
        if self.warp and f"warped-{self.kernel}" not in KERNELS:
            raise InputError(f"the kernel '{self.kernel}' cannot be warped; use 'rbf' or leave warp off")
        for option in ("starts", "rounds", "updates"):
            checked_integer(option, getattr(self, option), 1)
        object.__setattr__(self, "lambdas", tuple(self.lambdas))
        if not self.lambdas or not all(0 < v < np.inf for v in self.lambdas):
            raise InputError(f"lambdas must be positive numbers, at least one, not {self.lambdas!r}")

    @staticmethod
    def paper(system: Any, **changes: Any) -> Rkg:
        """The authors' settings for one of the paper's systems, given as a System or by name."""
        presets: dict[str, dict[str, Any]] = {
            "lotka_volterra": {},
            "fitzhugh_nagumo": {},
            "protein_transduction": {"warp": True},
            "lorenz96": {},
        }
        common: dict[str, Any] = {"starts": 1, "robust": False}
        return Rkg(**common | preset(system, presets) | changes)

    @staticmethod
    def quick(**changes: Any) -> Rkg:
        """A cheap configuration for tests and first looks."""
        cheap: dict[str, Any] = {"starts": 2, "rounds": 5, "lambdas": (1e-2, 1.0)}
        return Rkg(**cheap | changes)

    def fit(self, problem: Problem, seed: int = 0, progress: Progress | None = None) -> Fit:
        """Infer θ and states; the seed draws the starts after the first."""
        progress = progress or no_progress
        progress("checking the equations", 0.0)
        problem.check_field()
        progress("smoothing the data", 0.1)
        clock = time.perf_counter()
        units = Units.of(problem)
        regression = Regression.of(problem, units, kernel(f"warped-{self.kernel}" if self.warp else self.kernel))
        b = regression.smoothed
        progress("matching derivatives", 0.4)
        found = match_derivatives(regression, b, self.starts, self.robust, np.random.default_rng(seed))
        finite, details = np.isfinite(found.cost), regression.details()
        status = Status.CONVERGED if finite else Status.NOT_FINITE
        curves = regression.curves(b)
        stages = {
            "rkg2": stage(
                problem, found.theta(problem), curves, _noise(problem, curves, regression.freedom),
                objective=found.cost, seconds=time.perf_counter() - clock, note=status.value,
            )
        }  # fmt: skip
        if self.variant == 3 and finite:
            progress("matching states and derivatives in turn", 0.6)
            clock = time.perf_counter()
            weight, errors = choose_weight(regression, found, self)
            used = np.isfinite(regression.y)[None]
            run = alternating_fit(regression, used, weight * found.weight[None], [p[None] for p in b], found, self)
            trace = run.trace[:, 0]
            settled = trace[-2] - trace[-1] <= 1e-2 * trace[-2]
            status = Status.CONVERGED if settled else Status.MAX_ITERATIONS
            found = found._replace(phi=run.phi[0], cost=float(trace[-1]))
            curves = regression.curves([p[0] for p in run.b])
            details |= {"lambda_g": weight, "lambda_g_errors": errors.tolist(), "objective_trace": trace.tolist()}
            stages["rkg3"] = stage(
                problem, found.theta(problem), curves, _noise(problem, curves, run.freedom[0]),
                objective=found.cost, seconds=time.perf_counter() - clock, note=status.value,
            )  # fmt: skip
        progress("done", 1.0)
        warnings = ("rkg makes no use of priors on parameters",) if problem.penalty else ()
        return assemble(
            problem, self, seed, stages, curves,
            status=status.value, converged=status.converged, details=details, warnings=warnings,
        )  # fmt: skip


class Match(NamedTuple):
    """Free parameters φ (F,), on the log scale where `logs` (F,); the mismatch left; weights of the equations (K,)."""

    phi: Array
    cost: float
    logs: NDArray[np.bool_]
    weight: Array

    def theta(self, problem: Problem) -> Array:
        """All parameters (P,); those estimated are NaN if nothing was finite."""
        theta = np.array([problem.fixed.get(n, np.nan) for n in problem.model.parameters])
        if np.isfinite(self.cost):
            theta[problem.free_index] = np.where(self.logs, np.exp(np.where(self.logs, self.phi, 0.0)), self.phi)
        return theta


def match_derivatives(
    regression: Regression, b: Sequence[Array], count: int, robust: bool, rng: np.random.Generator
) -> Match:
    """RKG2: least squares of ẋ(t_i) − f(x(t_i), θ) over θ, the first time of every experiment left out.

    All parameters on the log scale first, as in the original; then those that may be negative on the linear one.
    If robust, slopes are matched between the times too, but neither in the first gap nor in the last, and equations
    are reweighted in turn with θ: this minimises the product over equations of the squared mismatch, the likelihood
    with an unknown variance for each.
    """
    p = regression.problem
    points = _POINTS_PER_GAP if robust and len(regression.t) > 3 * len(regression.rows) else 1
    regression = regression.between(points) if points > 1 else regression
    x, slope = (np.repeat(v, count, 0) for v in regression.states([c[None] for c in b]))
    keep = np.ones((len(regression.t), 1))
    for s in regression.rows:
        keep[s.start : s.start + points] = 0.0
        keep[s.stop - points if points > 1 else s.stop : s.stop] = 0.0
    limits = np.array([p.limits(n) for n in p.free]).reshape(-1, 2)
    theta = p.theta(startpoints.draw(p, count, rng))[:, p.free_index]
    theta[0] = [p.start.get(n, 0.1) for n in p.free]
    found: list[Match] = []
    for logs in (limits[:, 1] > 0, limits[:, 0] >= 0):
        if found and (logs == found[0].logs).all():
            break
        phi = np.where(logs, np.log(np.maximum(np.abs(theta), 1e-8)), theta)
        weight = np.ones((count, 1, x.shape[-1]))
        phi, cost = batched_levenberg(regression, x, slope, keep * weight, phi, logs, 100)
        for _ in range(_REWEIGHTINGS if robust else 0):
            square = (keep * (regression.field(x, phi, logs)[0] - slope) ** 2).sum(1, keepdims=True)
            square = (
                np.where(np.isfinite(square), np.maximum(square, 1e-4 * square.mean(-1, keepdims=True)), 1.0) + 1e-12
            )
            cost = np.where(np.isfinite(cost), square.shape[-1] * np.exp(np.log(square).mean((1, 2))), np.inf)
            weight = np.exp(0.5 * (np.log(square).mean(-1, keepdims=True) - np.log(square)))
            phi = batched_levenberg(regression, x, slope, keep * weight, phi, logs, 20)[0]
        i = int(cost.argmin())
        found.append(Match(phi[i], float(cost[i]), logs, weight[i, 0] ** 2))
    return found[-1] if found[-1].cost < _SIGN_ADVANTAGE * found[0].cost else found[0]


def batched_levenberg(
    regression: Regression,
    x: Array,
    slope: Array,
    weight: Array,
    phi: Array,
    logs: NDArray[np.bool_],
    iterations: int,
) -> tuple[Array, Array]:
    """Levenberg–Marquardt on φ (R, F) for R runs side by side, each with its own x and ẋ (R, M, K).

    Args:
        weight: of every residual; broadcasts to (R, M, K).

    Returns:
        φ (R, F) inside its bounds, and the squared mismatch (R,), which never rises; inf where not finite.
    """
    R, F = phi.shape
    limits = np.array([regression.problem.limits(n) for n in regression.problem.free]).reshape(-1, 2)
    low, high = (np.where(logs, np.log(np.clip(v, 1e-10, 1e10)), v) for v in limits.T)

    def residual(phi: Array) -> tuple[Array, Array, Array]:
        f, ft = regression.field(x, phi, logs)
        r = (weight * (f - slope)).reshape(R, -1)
        J = (weight[..., None] * ft).reshape(R, r.shape[1], F)
        cost = np.einsum("rn,rn->r", r, r)
        fine = np.isfinite(cost) & np.isfinite(J).all((1, 2))
        r, J = np.where(fine[:, None], r, 0.0), np.where(fine[:, None, None], J, 0.0)
        JT = np.swapaxes(J, 1, 2)
        return np.where(fine, cost, np.inf), (JT @ r[..., None])[..., 0], JT @ J

    def propose(now: Matched, damping: Array) -> tuple[Matched, Mask]:
        g, free = now.g, ~blocked_by_bounds(now.phi, now.g, low, high)
        H = now.H * (free[:, :, None] & free[:, None, :])
        d = np.einsum("rii->ri", H)
        d += damping[:, None] * d + 1e-12 * (1.0 + d.max(1, keepdims=True)) + ~free
        step = np.linalg.solve(H, -(g * free)[..., None])[..., 0]
        trial = np.clip(now.phi + np.where(logs, np.clip(step, -2.0, 2.0), step), low, high)
        new = Matched(trial, *residual(trial))
        return new, new.value < now.value

    def settles(better: Mask, gain: Array, now: Matched, damping: Array) -> Mask:
        return np.asarray(better & (gain <= 1e-7 * (now.value + gain)))

    rule = Rule(damping=1e-2, down=0.2, up=5.0, least=0.0, most=5e3, tries=iterations if F else 0)
    with np.errstate(over="ignore", invalid="ignore"):
        phi = np.clip(phi, low, high)
        found = levenberg_marquardt(Matched(phi, *residual(phi)), propose, settles, rule, Matched.merged).point
    return found.phi, found.value


class Run(NamedTuple):
    """R alternating fits: b (R, K, N) per experiment, φ (R, F), objective (rounds + 1, R), freedom (R, K)."""

    b: list[Array]
    phi: Array
    trace: Array
    freedom: Array


def alternating_fit(
    regression: Regression,
    used: NDArray[np.bool_],
    weights: Array,
    b: Sequence[Array],
    start: Match,
    method: Rkg,
) -> Run:
    """RKG3: lower Σ (y − x)² + λ_g Σ (ẋ − f(x, θ))² by turns over b and θ, R runs side by side.

    An update of b solves (KᵀK + λ_g K̇ᵀK̇) b = Kᵀy + λ_g K̇ᵀf with f frozen. As f moves with b, the step is halved
    until the objective does not rise.

    Args:
        used: which observations each run sees (R, M, K).
        weights: λ_g of every run and equation (R, K).
        b: coefficients (R, K, N) per experiment to start from.
        start: θ to start from.
    """
    R, root = len(weights), np.sqrt(weights)[..., None, None]
    y = np.where(used, np.nan_to_num(regression.y - regression.centre), 0.0)
    solvers, freedom = [], np.zeros((R, used.shape[2]))
    for rows, C, dC in zip(regression.rows, regression.C, regression.dC, strict=True):
        seen = np.swapaxes(used[:, rows], 1, 2)[..., None] * C
        solvers.append(np.linalg.pinv(np.concatenate([seen, root * dC], -2), rcond=_RCOND))
        freedom += np.einsum("rknm,rkmn->rk", seen, solvers[-1][..., : C.shape[-1]])

    def objective(b: Sequence[Array], phi: Array) -> tuple[Array, Array]:
        x, slope = regression.states(b)
        f = regression.field(x, phi, start.logs)[0]
        miss = used * (x - regression.centre - y)
        value = (miss**2).sum((1, 2)) + (weights * ((slope - f) ** 2).sum(1)).sum(1)
        return np.where(np.isfinite(value), value, np.inf), f

    b, phi = list(b), np.broadcast_to(start.phi, (R, len(start.phi))).copy()
    with np.errstate(over="ignore", invalid="ignore"):
        value, f = objective(b, phi)
        trace = [value]
        for _ in range(method.rounds):
            for _ in range(method.updates):
                target = np.concatenate([y, np.nan_to_num(f)], 0)
                moves = []
                for rows, P, old in zip(regression.rows, solvers, b, strict=True):
                    right = np.concatenate([target[:R, rows], root[..., 0, 0][:, None] * target[R:, rows]], 1)
                    moves.append((P @ np.swapaxes(right, 1, 2)[..., None])[..., 0] - old)
                step = np.ones(R)
                for _ in range(5):
                    trial = [old + step[:, None, None] * move for old, move in zip(b, moves, strict=True)]
                    new, new_f = objective(trial, phi)
                    rising = ~(new <= value)
                    if not rising.any():
                        break
                    step = np.where(rising, 0.4 * step, step)
                take = ~rising[:, None, None]
                b = [np.where(take, n, o) for n, o in zip(trial, b, strict=True)]
                f, value = np.where(take, new_f, f), np.where(rising, value, new)
            x, slope = regression.states(b)
            phi, _ = batched_levenberg(regression, x, slope, root[..., 0, 0][:, None], phi, start.logs, _THETA_STEPS)
            value, f = objective(b, phi)
            trace.append(value)
            if (trace[-2] - trace[-1] <= 1e-5 * trace[-2]).all():
                break
    return Run(b, phi, np.array(trace), freedom)


def choose_weight(regression: Regression, start: Match, method: Rkg) -> tuple[float, Array]:
    """λ_g by 2-fold cross-validation: the one whose fits to half of the data best predict the other half."""
    seen = np.isfinite(regression.y)
    fold = np.concatenate([(np.cumsum(seen[rows], 0) % 2) for rows in regression.rows]) == 1
    weights = np.repeat(method.lambdas, 2)
    used = np.stack([seen & fold, seen & ~fold] * len(method.lambdas))
    b = []
    for rows, C, ridges in zip(regression.rows, regression.C, regression.ridges, strict=True):
        half = np.zeros((len(weights), len(ridges), C.shape[-1]))
        for i, k in np.ndindex(half.shape[:2]):
            s = used[i, rows, k]
            H = C[k][np.ix_(s, s)] + ridges[k].ridge * np.eye(int(s.sum()))
            half[i, k, s] = np.linalg.solve(H, regression.y[rows][s, k] - ridges[k].centre)
        b.append(half)
    run = alternating_fit(regression, used, weights[:, None] * start.weight, b, start, method)
    x = regression.states(run.b)[0]
    errors = (np.where(seen & ~used, x - regression.y, 0.0) ** 2).sum((1, 2)).reshape(-1, 2).sum(1)
    return float(method.lambdas[int(np.nan_to_num(errors, nan=np.inf).argmin())]), errors


def _noise(problem: Problem, curves: Sequence[Curve], freedom: Array) -> Array:
    """Noise standard deviations (K,) from the residuals, the used degrees of freedom taken off; known ones as given."""
    x = [c.at(e.t)[0] for c, e in zip(curves, problem.data.experiments, strict=True)]
    left = np.maximum(problem.count - freedom - len(x), 1.0)
    return np.where(np.isnan(problem.known_sigma), np.sqrt(residual_squares(problem, x) / left), problem.known_sigma)
