"""From an ODIN solution to the maximum likelihood: trajectory matching by constrained Gauss–Newton.

Unknowns are θ and the initial values of every experiment; the trajectory between them is a collocation path
(collocation.py). A first phase moves path and unknowns together, so that the estimate of the states is used and
no simulation from a poor θ is needed; the second stays on solutions of the equations and accepts a step only if
the likelihood improves. Noise levels that are not given are profiled out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from odinfer.collocation import Condensed, Path
from odinfer.problem import Problem
from odinfer.risk import prior_in_phi

Array = NDArray[np.float64]

_FEASIBLE = 1e-9  # violation of the collocation equations, in units of the states' scales
ACCURATE = 1e-6  # defect between stages, same units
_NOISE_FLOOR = 1e-9  # smallest noise, same units: exact data must not give an infinite likelihood


@dataclass(frozen=True)
class Refined:
    """A trajectory at a maximum of the likelihood.

    Attributes:
        phi: free parameters (F,).
        paths: the trajectory of each experiment.
        condensed: its sensitivities.
        sigma: noise standard deviations (K,).
        loglik: log-likelihood at the maximum over the noise.
        objective: −loglik − log p(θ).
        information: Gauss–Newton information of (all x0, φ), (E·K+F)².
        iterations, converged: of the second phase.
    """

    phi: Array
    paths: tuple[Path, ...]
    condensed: tuple[Condensed, ...]
    sigma: Array
    loglik: float
    objective: float
    information: Array
    iterations: int
    converged: bool


@dataclass(frozen=True)
class _Point:
    """A feasible trajectory with everything the next step needs."""

    phi: Array
    paths: tuple[Path, ...]
    condensed: tuple[Condensed, ...]
    rss: Array
    objective: float


class Likelihood:
    """Observations against trajectories for one problem."""

    def __init__(self, problem: Problem, scale: Array) -> None:
        self.problem, self.scale = problem, scale
        self.y = [e.y for e in problem.data.experiments]
        self.t = [e.t for e in problem.data.experiments]
        self.n = np.sum([np.isfinite(y).sum(0) for y in self.y], 0)
        low, high = problem.state_bounds
        E = len(self.y)
        p_low, p_high = problem.phi_bounds
        self.low = np.concatenate([np.tile(low, E), p_low])
        self.high = np.concatenate([np.tile(high, E), p_high])

    def variance(self, rss: Array) -> Array:
        """Noise variances (K,): known, or at their maximum likelihood."""
        known = self.problem.known_sigma**2
        return np.where(np.isnan(known), np.maximum(rss / self.n, (_NOISE_FLOOR * self.scale) ** 2), known)

    def loglik(self, rss: Array) -> float:
        v = self.variance(rss)
        return float(-0.5 * (self.n * np.log(2 * np.pi * v) + rss / v).sum())

    def rss(self, paths: Sequence[Path]) -> Array:
        total = np.zeros(len(self.scale))
        for path, t, y in zip(paths, self.t, self.y, strict=True):
            total += np.nansum((path.nodes[np.searchsorted(path.mesh, t)] - y) ** 2, 0)
        return total

    def objective(self, rss: Array, phi: Array) -> float:
        value = -self.loglik(rss)
        if self.problem.penalty:
            value += prior_in_phi(self.problem, phi)[0]
        return value if np.isfinite(value) else np.inf

    def normal(self, phi: Array, paths: Sequence[Path], lins: Sequence[Condensed], rss: Array) -> tuple[Array, Array]:
        """Gauss–Newton Hessian and gradient over (x0 of every experiment, φ), about the corrected path."""
        E, K, F = len(paths), len(self.scale), len(phi)
        v = self.variance(rss)
        H, g = np.zeros((E * K + F, E * K + F)), np.zeros(E * K + F)
        for e, (path, lin) in enumerate(zip(paths, lins, strict=True)):
            at = np.searchsorted(path.mesh, self.t[e])
            maps = lin.nodes[at]
            r = path.nodes[at] + maps[..., -1] - self.y[e]
            weight = np.where(np.isfinite(r), 1.0 / v, 0.0)
            r = np.nan_to_num(r)
            J = maps[..., :-1].reshape(-1, K + F)
            JW = J.T * weight.ravel()
            index = np.r_[e * K : (e + 1) * K, E * K : E * K + F]
            H[np.ix_(index, index)] += JW @ J
            g[index] += JW @ r.ravel()
        if self.problem.penalty:
            _, gp, Hp = prior_in_phi(self.problem, phi)
            w, V = np.linalg.eigh(Hp)
            g[E * K :] += gp
            H[E * K :, E * K :] += (V * np.maximum(w, 0.0)) @ V.T
        return H, g

    def step(self, H: Array, g: Array, damping: float, at: Array) -> Array:
        """A damped step within the bounds, unknowns that push against a bound held."""
        held = ((at <= self.low) & (g > 0)) | ((at >= self.high) & (g < 0))
        d = np.sqrt(np.maximum(np.diag(H), 1e-300))
        S = H / np.outer(d, d) + damping * np.eye(len(g))
        S[held], S[:, held] = 0.0, 0.0
        S[held, held] = 1.0
        move = np.linalg.lstsq(S, np.where(held, 0.0, -g / d), rcond=1e-13)[0] / d
        return np.asarray(np.clip(at + move, self.low, self.high) - at)


def paths_through(problem: Problem, curves: Sequence[tuple[Array, Array, Array]], parts: int = 1) -> tuple[Path, ...]:
    """First guesses from states and slopes: per experiment times (N,), x (N, K), dx/dt (N, K)."""
    from scipy.interpolate import CubicHermiteSpline

    paths = []
    for e, (t, x, slope) in enumerate(curves):
        seen = problem.data.experiments[e].t
        if len(seen) == 1:  # an experiment of one time has an initial value and no path
            seen = t = np.array([t[0], t[0] + 1e-9 * (1.0 + abs(t[0]))])
            x, slope = np.repeat(x, 2, 0), np.repeat(0.0 * slope, 2, 0)
        spline = CubicHermiteSpline(t, x, slope)
        mesh = np.append(np.linspace(seen[:-1], seen[1:], parts, endpoint=False, axis=1).ravel(), seen[-1])
        blank = Path(problem, e, mesh, x[0], np.empty(0))
        Z = spline(blank.stage_times.ravel()).reshape(*blank.stage_times.shape, -1)
        paths.append(Path(problem, e, mesh, np.asarray(spline(mesh[0])), Z))
    return tuple(paths)


def refine(
    problem: Problem,
    scale: Array,
    paths: Sequence[Path],
    phi: Array,
    max_iterations: int = 60,
    accuracy: float = ACCURATE,
) -> Refined | None:
    """Maximise the likelihood from a guess of path and parameters; None if no trajectory could be reached.

    The mesh is made finer until the trajectory is accurate, in units of the states' scales.
    """
    like = Likelihood(problem, scale)
    point = _approach(like, tuple(paths), phi)
    if point is None:
        return None
    for _ in range(4):  # the mesh is judged where the optimisation ends
        point, iterations, converged = _maximise(like, point, max_iterations)
        finer = [path.refined(point.phi, scale, accuracy) for path in point.paths]
        if all(f is None for f in finer):
            break
        better = _restored(like, tuple(f or p for f, p in zip(finer, point.paths, strict=True)), point.phi)
        if better is None:
            break
        point = better
    H, _ = like.normal(point.phi, point.paths, point.condensed, point.rss)
    return Refined(
        point.phi, point.paths, point.condensed, np.sqrt(like.variance(point.rss)), like.loglik(point.rss),
        point.objective, H, iterations, converged,
    )  # fmt: skip


def explore(problem: Problem, scale: Array, best: Refined, directions: int = 2, reach: float = 2.5) -> Refined:
    """Look on both sides along the least determined directions, where a neighbouring optimum may lie."""
    like = Likelihood(problem, scale)
    d = np.sqrt(np.maximum(np.diag(best.information), 1e-300))
    w, V = np.linalg.eigh(best.information / np.outer(d, d))
    at, found = _unknowns(best.paths, best.phi), best
    for i in range(min(directions, len(w))):
        for side in (reach, -reach):
            move = np.clip(at + side * V[:, i] / d / np.sqrt(max(w[i], 1e-4)), like.low, like.high) - at
            paths = _moved(best.paths, best.condensed, move)
            other = refine(problem, scale, paths, best.phi + move[len(move) - len(best.phi) :])
            if other is not None and other.objective < found.objective - 1e-6:
                found = other
    return found


def _condense(like: Likelihood, paths: Sequence[Path], phi: Array) -> tuple[tuple[Condensed, ...], float]:
    lins = tuple(p.condense(phi, like.scale) for p in paths)
    return lins, max(lin.violation for lin in lins)


def _unknowns(paths: Sequence[Path], phi: Array) -> Array:
    return np.concatenate([*(p.x0 for p in paths), phi])


def _moved(paths: Sequence[Path], lins: Sequence[Condensed], move: Array) -> tuple[Path, ...]:
    K = len(paths[0].x0)
    dphi = move[len(paths) * K :]
    return tuple(
        p.moved(lin, move[e * K : (e + 1) * K], dphi) for e, (p, lin) in enumerate(zip(paths, lins, strict=True))
    )


def _restored(like: Likelihood, paths: tuple[Path, ...], phi: Array, most: int = 12) -> _Point | None:
    """Newton on the collocation equations at fixed x0 and φ: from a nearby path to a trajectory."""
    previous = np.inf
    still = np.zeros(sum(len(p.x0) for p in paths) + len(phi))
    for _ in range(most):
        lins, violation = _condense(like, paths, phi)
        if violation <= _FEASIBLE:
            rss = like.rss(paths)
            value = like.objective(rss, phi)
            return _Point(phi, paths, lins, rss, value) if np.isfinite(value) else None
        if not np.isfinite(violation) or violation > 1e6 or violation > 100.0 * previous:
            return None
        previous = violation
        paths = _moved(paths, lins, still)
    return None


def _approach(like: Likelihood, paths: tuple[Path, ...], phi: Array, most: int = 15) -> _Point | None:
    """Move path, initial values and parameters together until the path is a trajectory."""
    start = (paths, phi)
    lins, violation = _condense(like, paths, phi)
    for _ in range(most):
        if not np.isfinite(violation):
            break
        if violation <= 1e-4:
            point = _restored(like, paths, phi)
            if point is not None:
                return point
            break
        H, g = like.normal(phi, paths, lins, like.rss(paths))
        move = like.step(H, g, 1e-4, _unknowns(paths, phi))
        for share in (1.0, 0.5, 0.25, 0.1):
            # A share of the whole step, Newton correction included.
            full = _moved(paths, lins, move)
            trial = tuple(
                Path(p.problem, p.experiment, p.mesh, p.x0 + share * (q.x0 - p.x0), p.Z + share * (q.Z - p.Z))
                for p, q in zip(paths, full, strict=True)
            )
            phi_new = phi + share * move[len(move) - len(phi) :]
            lins_new, violation_new = _condense(like, trial, phi_new)
            if violation_new <= (1.0 - 0.3 * share) * violation:
                break
        if not np.isfinite(violation_new):
            break
        paths, phi, lins, violation = trial, phi_new, lins_new, violation_new
    return _restored(like, *start)


def _maximise(like: Likelihood, point: _Point, max_iterations: int) -> tuple[_Point, int, bool]:
    """Levenberg–Marquardt over trajectories, accepted on the objective."""
    damping, quiet = 1e-3, 0
    for iteration in range(1, max_iterations + 1):
        H, g = like.normal(point.phi, point.paths, point.condensed, point.rss)
        at = _unknowns(point.paths, point.phi)
        while True:
            move = like.step(H, g, damping, at)
            trial = _restored(
                like, _moved(point.paths, point.condensed, move), point.phi + move[len(move) - len(point.phi) :]
            )
            if trial is not None and trial.objective <= point.objective:
                break
            damping *= 6.0
            if damping > 1e9:
                return point, iteration, True
        gain, point = point.objective - trial.objective, trial
        damping = max(0.1 * damping, 1e-10)
        quiet = quiet + 1 if gain < 1e-8 * (1.0 + abs(point.objective)) else 0
        if quiet >= 2:
            return point, iteration, True
    return point, max_iterations, False
