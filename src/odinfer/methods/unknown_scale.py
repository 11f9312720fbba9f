"""Choose the scale of unknown functions by the marginal likelihood, and count what they cost.

The marginal likelihood of standard deviation and length is Laplace's approximation about the best trajectory: the
log-likelihood is quadratic in all unknowns there, and the priors of the coefficients are normal. The scale that
maximises it gives new priors, with which the trajectory is fitted again, until the scale stays (performance iteration,
Wood 2017, section 6.5). The prior of the standard deviation is uniform (Gelman 2006): without it, functions that the
data say little about are often estimated as constants, with bands that are too narrow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from odinfer.errors import InputError
from odinfer.gp.curves import Curve
from odinfer.gp.smoother import posterior_curves, smooth_states
from odinfer.gp.standardisation import Units
from odinfer.likelihood.refinement import TrajectoryOptimum
from odinfer.methods.odin import Odin
from odinfer.model.unknown_functions import UnknownFunction
from odinfer.problem.problem import Problem
from odinfer.problem.unknown_domains import with_statements
from odinfer.progress import Progress
from odinfer.search.multistart import convincing, search
from odinfer.search.warm_start import better, curves_of, maximise

Array = NDArray[np.float64]
Scale = tuple[float, float]

_ROUNDS = 8  # of refits with new scales at most
_FIRST_STEPS = 100  # iterations from constants to functions
_FIRST_LENGTH = 0.3  # of the range
_LENGTHS = np.geomspace(0.1, 1.5, 9)  # shares of the range that are tried
_FACTORS = 10.0 ** np.linspace(-1.5, 1.5, 19)  # of the standard deviation, in one round
_SAME = 0.3  # of the logarithm of a scale: smaller changes end the iteration
_SAME_VALUE = 0.01  # of its standard deviation: a function of another range is to have the values that it had
_BEYOND = 0.1  # of the range: so far may a trajectory leave the range of an argument before it is made wider


@dataclass(frozen=True)
class Quadratic:
    """The log-likelihood about an optimum: minus half its Hessian's form, with its gradient.

    Attributes:
        H, g: information (P, P) without priors and gradient (P,) of the log-likelihood at the optimum.
        v: unknowns (P,) there, zeros in place of initial values.
    """

    H: Array
    g: Array
    v: Array

    def evidence(self, precision: Array) -> float:
        """Log marginal likelihood, up to a constant, with normal priors (P,) about zero; precision 0 is none."""
        A = self.H + np.diag(precision)
        push = self.g - precision * self.v
        try:
            L = np.linalg.cholesky(A)
        except np.linalg.LinAlgError:
            return -math.inf
        half = np.linalg.solve(L, push)
        log_prior = 0.5 * np.log(precision[precision > 0]).sum() - 0.5 * (precision * self.v**2).sum()
        return float(log_prior + 0.5 * half @ half - np.log(np.diag(L)).sum())


def with_chosen_scales(problem: Problem, seed: int, progress: Progress) -> Problem:
    """The problem with a scale for every unknown function, starting from the estimates that belong to it.

    Raises:
        InputError: no trajectory was found.
    """
    open_ = [own.label for own in problem.model.declarations.unknown if own.scale is None]
    scales: dict[str, Scale] = {}
    for own in problem.model.declarations.unknown:
        relative = own.positive and not own.monotone  # then the scale is that of the logarithm
        scales[own.label] = own.scale or (1.0 if relative else _first_size(problem, own), _FIRST_LENGTH)
    progress("fitting the unknown functions", 0.0)
    problem = scaled(problem, scales, open_)
    found, curves = _first(problem, seed)
    best = problem, found
    for i in range(_ROUNDS):
        progress("choosing the scale of the unknown functions", i / _ROUNDS)
        wider = _with_wider_domains(problem, curves)
        chosen = {**scales, **_best_scales(problem, found, scales, open_)}
        pairs = [pair for name in scales for pair in zip(scales[name], chosen[name], strict=True)]
        change = max((abs(math.log(b / a)) for a, b in pairs), default=0.0)
        if change < _SAME and wider is None:
            break
        scales, before = chosen, problem
        problem = scaled(wider or problem, scales, open_)
        phi = found.phi if wider is None else _with_same_functions(problem, before, found.phi, curves)
        again = _refitted(problem, problem.theta(phi), curves, found, seed)
        if again is None:
            break
        found, curves = again, curves_of(again)
        if wider is not None or _posterior(problem, found) > _posterior(*best):
            best = problem, found
    problem, found = best
    estimates = dict(zip(problem.parameters, problem.theta(found.phi).tolist(), strict=True))
    return replace(problem, start={name: estimates[name] for name in problem.free})


def _with_same_functions(problem: Problem, before: Problem, phi: Array, curves: Sequence[Curve]) -> Array:
    """φ (F,) with which the functions have the same values along curves as on their former ranges."""
    functions = [own for own in problem.model.declarations.unknown if own.scale is not None]
    scales = {own.label: own.scale for own in functions if own.scale is not None}
    theirs = {name for own in functions for name in own.parameters}
    index = [j for j, name in enumerate(problem.free) if name.partition("[")[0] in theirs]
    precision = prior_of(problem, scales, len(phi))[index]

    def values(of: Problem, phi: Array) -> Array:
        return np.concatenate([
            values_along(of, own.definition, e, c.t, c.x, of.theta_of(e, phi)) / scales[own.label][0]
            for own in functions for e, c in enumerate(curves)
        ])  # fmt: skip

    def residuals(w: Array) -> Array:
        trial = phi.copy()
        trial[index] = w
        away = (values(problem, trial) - target) / _SAME_VALUE
        return np.concatenate([away, np.sqrt(precision) * w])

    from scipy.optimize import least_squares

    target, phi = values(before, phi), phi.copy()
    bounds = tuple(b[index] for b in problem.phi_bounds)
    phi[index] = least_squares(residuals, np.clip(phi[index], *bounds), bounds=bounds).x
    return phi


def _refitted(
    problem: Problem, theta: Array, curves: Sequence[Curve], before: TrajectoryOptimum, seed: int
) -> TrajectoryOptimum | None:
    """The optimum near the one before; from constants too where that loses the data: a nat for each of them or more."""
    found = maximise(problem, theta, curves)
    if found is not None and found.loglik > before.loglik - float(problem.count.sum()):
        return found
    return better(found, _from_constants(problem, seed))


def marginal_likelihood(found: TrajectoryOptimum) -> float:
    """Laplace's approximation, up to a constant: the log-posterior and the volume around its maximum."""
    sign, log_determinant = np.linalg.slogdet(found.information.dense()[0])
    return -found.objective - 0.5 * float(log_determinant) if sign > 0 else -math.inf


def _posterior(problem: Problem, found: TrajectoryOptimum) -> float:
    """The log-posterior of the scales of a problem, up to a constant, at its optimum."""
    scales = [own.scale for own in problem.model.declarations.unknown if own.scale is not None]
    return marginal_likelihood(found) + sum(math.log(sd) for sd, _ in scales)


def _first_size(problem: Problem, own: UnknownFunction) -> float:
    """A first standard deviation: of a function that makes states change by their spread in a quarter of the time."""
    if not problem.fully_observed_gaussian or own.mean not in problem.free:
        return 1.0
    j, found = problem.model.parameters.index(own.mean), []
    theta = problem.theta(np.where(problem.is_log, 0.0, 1.0) * (1.0 - problem.is_log))
    for e, data in enumerate(problem.data.experiments):
        seen = np.isfinite(data.y).all(1)
        slopes = problem.model.linearise(data.t[seen], data.y[seen], theta, problem.inputs_at(e, data.t[seen]))[2]
        effect = np.sqrt(np.mean(slopes[:, :, j] ** 2, axis=0))
        change = np.ptp(data.y[seen], axis=0) / (0.25 * np.ptp(data.t))
        found += [c / s for c, s in zip(change.tolist(), effect.tolist(), strict=True) if s > 0 and c > 0]
    return float(np.median(found)) if found and np.isfinite(found).all() else 1.0


def scaled(problem: Problem, scales: dict[str, Scale], open_: Sequence[str]) -> Problem:
    """The problem with statements that give scales to functions; the last statement about a function holds."""
    lines = [f"{label} ~ gp({scales[label][0]!r}, {scales[label][1]!r})" for label in open_]
    return with_statements(problem, lines)


def _first(problem: Problem, seed: int) -> tuple[TrajectoryOptimum, list[Curve]]:
    """The best trajectory with the first scales, and curves to go on from."""
    found = None
    if problem.fully_observed_gaussian:
        units = Units.of(problem)
        curves = posterior_curves(problem, units, smooth_states(problem, units, weak_prior=True))
        minima = Odin(refine=False).solve(problem, seed)
        for s in minima.solutions:
            found = better(found, maximise(problem, minima.engine.problem.theta(s.phi), curves))
    if found is None or not convincing(problem, found):
        found = better(found, _from_constants(problem, seed))
    if found is None or not convincing(problem, found):
        found = better(found, search(problem, seed).best)
    if found is None:
        raise InputError("no trajectory with the unknown functions was found; give bounds or start values")
    return found, curves_of(found)


def _from_constants(problem: Problem, seed: int) -> TrajectoryOptimum | None:
    """The best trajectory from that with constants in place of the functions, which has few unknowns to search for."""
    names = {name for own in problem.model.declarations.unknown for name in own.coefficients}
    held = [name for name in problem.free if name.partition("[")[0] in names]
    if not held:
        return None
    start = {name: value for name, value in problem.start.items() if name not in held}
    constant = replace(problem, fixed={**problem.fixed, **dict.fromkeys(held, 0.0)}, start=start)
    first = search(constant, seed).best
    return None if first is None else maximise(problem, constant.theta(first.phi), curves_of(first), _FIRST_STEPS)


def quadratic(problem: Problem, found: TrajectoryOptimum) -> tuple[Quadratic, Array]:
    """The log-likelihood about an optimum, and precisions (P,) of the priors of unknown functions."""
    H = found.information.dense()[0]
    P, F = len(H), len(problem.free)
    precision = prior_of(problem, {own.label: own.scale or (1.0, 0.5) for own in problem.model.declarations.unknown}, P)
    v = np.concatenate([np.zeros(P - F), found.phi])
    H0 = H - np.diag(precision)
    H0 += 1e-10 * np.diag(np.maximum(np.diag(H), 1e-300))
    return Quadratic(H0, precision * v, v), precision


def prior_of(problem: Problem, scales: dict[str, Scale], P: int) -> Array:
    """Precisions (P,) of the priors that scales give; 0 where there is none."""
    precision = np.zeros(P)
    before = P - len(problem.free)
    for own in problem.model.declarations.unknown:
        for name, sd in own.priors(scales[own.label]).items():
            for j, free in enumerate(problem.free):
                if free.partition("[")[0] == name:
                    precision[before + j] = 1.0 / sd**2
    return precision


def _best_scales(
    problem: Problem, found: TrajectoryOptimum, scales: dict[str, Scale], open_: Sequence[str]
) -> dict[str, Scale]:
    """The scales of the highest posterior density, each function in turn."""
    about, precision = quadratic(problem, found)
    chosen = dict(scales)
    for _ in range(2 if len(open_) > 1 else 1):
        for own in problem.model.declarations.unknown:
            if own.label in open_:
                trials = _trials(own, scales[own.label])
                values = [
                    about.evidence(prior_of(problem, {**chosen, own.label: s}, len(precision))) + math.log(s[0])
                    for s in trials
                ]
                if math.isfinite(max(values)):
                    chosen[own.label] = trials[int(np.argmax(values))]
    return chosen


def _trials(own: UnknownFunction, scale: Scale) -> list[Scale]:
    """Scales around one of a function."""
    lengths = [scale[1]] if own.monotone else _LENGTHS.tolist()
    return [(scale[0] * factor, length) for factor in _FACTORS.tolist() for length in lengths]


def scale_covariance(problem: Problem, found: TrajectoryOptimum, own: UnknownFunction) -> Array:
    """What not knowing a function's scale adds to the covariance (W, W) of its parameters.

    Given a scale, they are normal about the optimum; with scales weighted by their posterior density, the covariance
    is the mean of the covariances and the covariance of the means (Kass and Steffey 1989).
    """
    about, precision = quadratic(problem, found)
    scales = {one.label: one.scale or (1.0, 0.5) for one in problem.model.declarations.unknown}
    theirs = [len(precision) - len(problem.free) + problem.free.index(name) for name in own.parameters]
    values, means, covariances = [], [], []
    for trial in _trials(own, scales[own.label]):
        tried = prior_of(problem, {**scales, own.label: trial}, len(precision))
        values.append(about.evidence(tried) + math.log(trial[0]))
        C = np.linalg.inv(about.H + np.diag(tried))
        means.append((about.v + C @ (about.g - tried * about.v))[theirs])
        covariances.append(C[np.ix_(theirs, theirs)])
    weights = np.exp(np.array(values) - max(values))
    weights /= weights.sum()
    away = np.array(means) - weights @ np.array(means)
    given = np.linalg.inv(about.H + np.diag(precision))[np.ix_(theirs, theirs)]
    return np.asarray(np.tensordot(weights, np.array(covariances), 1) - given + (away.T * weights) @ away)


def _shares(problem: Problem, found: TrajectoryOptimum) -> Array:
    """The effective degrees of freedom (P,) of every unknown: the diagonal of (H + P)⁻¹ H, P the priors' precision."""
    about, precision = quadratic(problem, found)
    return np.asarray(np.diag(np.linalg.solve(about.H + np.diag(precision), about.H)))


def effective_unknowns(problem: Problem, found: TrajectoryOptimum) -> float:
    """Effective degrees of freedom of all unknowns."""
    return float(_shares(problem, found).sum())


def freedom_of(problem: Problem, found: TrajectoryOptimum, own: UnknownFunction) -> float:
    """Effective degrees of freedom of one unknown function."""
    shares = _shares(problem, found)[-len(problem.free) :]
    return float(sum(s for s, n in zip(shares, problem.free, strict=True) if n.partition("[")[0] in own.parameters))


def _with_wider_domains(problem: Problem, curves: Sequence[Curve]) -> Problem | None:
    """The problem with ranges of arguments that are not observed set to where trajectories are; None if they fit."""
    lines = []
    for own in problem.model.declarations.unknown:
        if not own.domain:  # periodic
            continue
        seen = [argument_range(problem, name, curves) for name in own.arguments]
        domain = []
        for (low, high), (a, b), name in zip(own.domain, seen, own.arguments, strict=True):
            slack = _BEYOND * (high - low)
            fits = low - slack <= a and b <= high + slack and b - a > 0.5 * (high - low)
            given = name == "t" or name in problem.columns or name in problem.model.inputs or not b > a
            domain.append((low, high) if fits or given else (a, b))
        if domain != list(own.domain):
            ends = [", ".join(repr(pair[side]) for pair in domain) for side in (0, 1)]
            lines.append(f"{own.label} from {ends[0]} to {ends[1]}")
    return with_statements(problem, lines) if lines else None


def argument_range(problem: Problem, name: str, curves: Sequence[Curve]) -> tuple[float, float]:
    """The least and the largest value of an argument along curves."""
    values = np.concatenate([values_along(problem, name, e, c.t, c.x) for e, c in enumerate(curves)])
    return float(values.min()), float(values.max())


def values_along(problem: Problem, name: str, e: int, t: Array, x: Array, theta: Array | None = None) -> Array:
    """The values (N,) of t, a state, an input or a definition at times t (N,) and states x (N, K)."""
    model = problem.model
    if name == "t":
        return t
    if name in model.states:
        return x[:, model.states.index(name)]
    if name in model.inputs:
        return problem.inputs_at(e, t)[:, model.inputs.index(name)]
    theta = np.ones(len(model.parameters)) if theta is None else theta
    program = model.program((model.declarations.definitions[name],))
    return program.evaluate(t, x, np.broadcast_to(theta, (len(t), len(theta))), problem.inputs_at(e, t))[:, 0]
