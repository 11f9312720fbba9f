"""Maximum likelihood of a population: EM steps first, then Newton's steps on the exact marginal likelihood."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from odinfer.population.marginal import Marginal, marginal, nodes_at, nodes_near, place_at_modes
from odinfer.population.modes import find_modes
from odinfer.population.nodes import Engine, Nodes
from odinfer.population.quadrature import levels
from odinfer.population.start import start_vectors, with_units
from odinfer.population.structure import Structure
from odinfer.progress import Progress, no_progress

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_EM_STEPS, _EM_SETTLED = 15, 0.5  # at most; gain in log-likelihood below which Newton's steps take over
_NEWTON_STEPS = 40
_CONVERGED = 1e-4  # expected gain in log-likelihood of another Newton step
FLAT = 1e3  # standard error of an unconstrained parameter on which the likelihood does not depend
_SAME = 0.01  # log-likelihood, or twice its error, that steps on exact nodes may gain before these are chosen again
_LARGEST_STEP = 0.7  # of an unconstrained parameter
_DIFFERENCE = 1e-4  # of unconstrained parameters, for differences of gradients
_NO_SPREAD = 0.02  # standard deviation of a latent value below which an effect is tried without any
_EQUAL = 0.01  # log-likelihood: values that are closer are equal
_MUCH = 5.0  # log-likelihood by which a maximum must be higher to win without spread, or lower not to be named
_MOST_CORRELATED = 5.0  # artanh of a partial correlation, 0.9999, which counts as 1


@dataclass(frozen=True, eq=False)
class Estimate:
    """The maximum of a marginal likelihood.

    Attributes:
        structure: with the effects that turned out to have no spread.
        v: unconstrained parameters (Q,).
        marginal: the likelihood there, with the nodes of every subject.
        hessian: of the log-likelihood (Q, Q).
        gradient: of the log-likelihood (Q,).
        iterations: Newton steps.
        converged: whether another step would gain next to nothing.
        others: log-likelihoods, by few nodes, and parameters of other maxima that are nearly as high, or higher.
    """

    structure: Structure
    v: Array
    marginal: Marginal
    hessian: Array
    gradient: Array
    iterations: int
    converged: bool
    others: tuple[tuple[float, dict[str, float]], ...] = ()

    @property
    def engine(self) -> Engine:
        return self.marginal.nodes.engine

    @property
    def covariance(self) -> Array:
        """Inverse of the observed information (Q, Q) where the likelihood is not flat.

        A parameter on which it hardly depends, or a correlation of 1, has the variance `FLAT`² and no covariances.
        """
        inner = ~self.at_bound
        w, V = np.linalg.eigh(-self.hessian[np.ix_(inner, inner)])
        curved = w > 1e-8 * max(w.max(), 1e-300)
        C = np.zeros_like(self.hessian)
        C[np.ix_(inner, inner)] = (V[:, curved] / w[curved]) @ V[:, curved].T
        flat = self.at_bound.copy()
        flat[inner] = (V[:, ~curved] ** 2).sum(1) > 0.01
        C[flat] = C[:, flat] = 0.0
        C[flat, flat] = FLAT**2
        return C

    @property
    def at_bound(self) -> NDArray[np.bool_]:
        """Correlations that are 1 or −1 (Q,)."""
        correlation = np.array([p.role == "correlation" for p in self.structure.parameters], bool)
        return correlation & (np.abs(self.v) >= _MOST_CORRELATED)


def estimate(structure: Structure, seed: int = 0, progress: Progress = no_progress, v: Array | None = None) -> Estimate:
    """Maximise the exact marginal likelihood.

    Args:
        v: unconstrained parameters to start from, in the units of the structure; found from the data if not given.
    """
    if v is None:
        progress("fitting all subjects together, then each", 0.0)
        structure = with_units(structure)
        starts = start_vectors(structure, seed)
    else:
        starts = [v]
    engine = Engine(structure)
    ends = [_expectation_maximisation(engine, own, progress) for own in starts]
    best = max(value for value, _ in ends)
    ends = _distinct([end for end in ends if end[0] > best - _MUCH])
    if len(ends) > 1:
        climbed = [_newton(engine, own, progress, rough=True) for _, own in ends]
        winner = _prefer(structure, climbed)
        ends = [(winner.value, winner.v)]
        others = [(own.value, structure.values(own.v)) for own in climbed if own is not winner]
    else:
        others = []
    found = _newton(engine, ends[0][1], progress).estimate
    assert found is not None
    found = replace(found, others=tuple(own for own in others if own[0] > found.marginal.value - _MUCH))
    for effect, unit in vanishing_effects(found).items():
        progress(f"trying {effect} without variation", 0.7)
        less = structure.without(effect, unit)
        values = {n: x for n, x in structure.values(found.v).items() if n in less.names}
        simpler = estimate(less, seed, progress, less.vector(_repair_correlations(values)))
        if simpler.marginal.value > found.marginal.value - _EQUAL:
            return replace(simpler, others=found.others)
    return found


def estimate_at(structure: Structure, values: Mapping[str, float]) -> Estimate:
    """What the data say at given values of all parameters, without a search; curvature and slopes are not computed."""
    engine, v = Engine(structure), structure.vector(values)
    return Estimate(structure, v, marginal(engine, v), np.zeros((len(v), len(v))), np.zeros(len(v)), 0, True)


def _distinct(ends: list[tuple[float, Array]]) -> list[tuple[float, Array]]:
    """Ends of EM that are on the way to different maxima, best first."""
    kept: list[tuple[float, Array]] = []
    for end in sorted(ends, key=lambda end: -end[0]):
        if not any(abs(end[0] - own[0]) < 1.0 and np.abs(end[1] - own[1]).max() < _LARGEST_STEP for own in kept):
            kept.append(end)
    return kept


def _prefer(structure: Structure, climbed: list[_Climb]) -> _Climb:
    """The highest maximum; one without spread in some effect only if it is much higher, and of equals the tightest."""

    def spread(found: _Climb) -> Array:
        return np.sqrt(np.diag(structure.covariance(found.v)))

    inside = [found for found in climbed if spread(found).min() > _NO_SPREAD]
    best = max(climbed, key=lambda found: found.value)
    top = max((found.value for found in inside), default=-np.inf)
    if best.value > top + _MUCH:
        return best
    equals = [found for found in inside if found.value > top - _EQUAL]
    return min(equals, key=lambda found: float((spread(found) ** 2).sum()))


def _repair_correlations(values: dict[str, float]) -> dict[str, float]:
    """Correlations moved off ±1, so that matrices without some of their rows are positive definite."""
    return {name: 0.95 * value if name.startswith("corr(") else value for name, value in values.items()}


def vanishing_effects(found: Estimate) -> dict[str, float]:
    """Effects whose standard deviation has become small, the smallest first, with the size of their latent values."""
    s = found.structure
    m, omega = s.means(found.v)[0], np.sqrt(np.diag(s.covariance(found.v)))
    small = []
    for k, i in enumerate(s.active):
        effect = s.effects[i]
        unit = float(np.abs(m[:, i]).mean()) if effect.family == "normal" else 1.0
        if isinstance(effect.omega, str) and omega[k] < _NO_SPREAD * unit:
            small.append((omega[k] / unit, effect.name, unit))
    return {name: unit for _, name, unit in sorted(small)}


def _expectation_maximisation(engine: Engine, v: Array, progress: Progress) -> tuple[float, Array]:
    """Robust steps towards the maximum: each maximises the expected complete-data likelihood over few nodes.

    Returns:
        The log-likelihood and the parameters (Q,).
    """
    from scipy.optimize import minimize

    sizes = np.full(len(engine.structure.subjects), levels(len(engine.structure.active))[0])
    nodes, before = nodes_at(engine, v, place_at_modes(engine, v, find_modes(engine, v)), sizes), -np.inf
    for i in range(_EM_STEPS):
        joint = nodes.joint(v)
        value = float(nodes.each(joint).sum())
        progress(f"EM step {i + 1}, log-likelihood {value:.2f}", 0.05 + 0.02 * i)
        if not np.isfinite(value) or value < before + _EM_SETTLED:
            break
        before, weights = value, nodes.weights(joint)

        def objective(w: Array, nodes: Nodes = nodes, weights: Array = weights) -> tuple[float, Array]:
            found, gradient = nodes.expected(w, weights)
            return (-found, -gradient) if np.isfinite(found) else (1e10, np.zeros(len(w)))

        bounds = [(x - 1.5, x + 1.5) for x in v]
        v = np.asarray(minimize(objective, v, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 25}).x)
        nodes = nodes_near(engine, v, nodes, sizes)
    return before, v


def hessian(nodes: Nodes, v: Array) -> Array:
    """Second derivatives (Q, Q) of the marginal log-likelihood, by differences of Fisher's gradient on fixed nodes.

    Over fixed nodes these are Louis' formula: the expected complete-data information less the variance of the score.
    """
    H = np.empty((len(v), len(v)))
    for i in range(len(v)):
        h = np.zeros(len(v))
        h[i] = _DIFFERENCE
        H[i] = (nodes.value_and_gradient(v + h)[1] - nodes.value_and_gradient(v - h)[1]) / (2.0 * _DIFFERENCE)
    return 0.5 * (H + H.T)


def newton_step(g: Array, H: Array, free: NDArray[np.bool_]) -> tuple[Array, float]:
    """An uphill step (Q,) among the free parameters, and how much it should gain."""
    w, V = np.linalg.eigh(-H[np.ix_(free, free)])
    w = np.maximum(np.abs(w), 1e-3 * max(float(np.abs(w).max()), 1e-12) * 1e-3 + 1e-9)
    part = V @ ((V.T @ g[free]) / w)
    step = np.zeros(len(g))
    step[free] = part
    gain = 0.5 * float(g[free] @ part)
    return step * min(1.0, _LARGEST_STEP / max(float(np.abs(part).max()), 1e-300)), gain


@dataclass(frozen=True, eq=False)
class _Climb:
    """Where Newton's steps ended: with few nodes, or at the maximum of the exact likelihood."""

    value: float
    v: Array
    estimate: Estimate | None = None


def _newton(engine: Engine, v: Array, progress: Progress, rough: bool = False) -> _Climb:
    """Newton's steps, each on nodes placed anew; the rules grow when the steps have become small.

    Args:
        rough: stop before the rules grow.
    """
    s = engine.structure
    every = levels(len(s.active))
    sizes = np.full(len(s.subjects), every[min(1, len(every) - 1)])
    exact: Marginal | None = None
    radius = 1.0
    nodes = nodes_at(engine, v, place_at_modes(engine, v, find_modes(engine, v)), sizes)
    correlation = np.array([p.role == "correlation" for p in s.parameters])
    for iteration in range(1, _NEWTON_STEPS + 1):
        value, g = nodes.value_and_gradient(v)
        H = hessian(nodes, v)
        outward = correlation & (np.abs(v) >= _MOST_CORRELATED) & (g * v > 0)
        step, gain = newton_step(g, H, ~outward)
        progress(f"Newton step {iteration}, log-likelihood {value:.3f}", min(0.9, 0.35 + 0.05 * iteration))
        small = gain < (_CONVERGED if exact is not None else 100.0 * _CONVERGED)
        moved = None if small else _move(engine, nodes, v, sizes, radius * step, value, correlation)
        if moved is not None:
            v, nodes, share = moved
            radius = min(1.0, 2.0 * radius * share)
        elif rough:
            return _Climb(value, v)
        elif exact is None or abs(value - exact.value) > max(_SAME, 2.0 * exact.error):
            exact = marginal(engine, v)
            nodes, sizes, radius = exact.nodes, exact.sizes, 1.0
        else:
            exact = replace(exact, nodes=nodes, each=nodes.each(nodes.joint(v)))
            return _Climb(value, v, Estimate(s, v, exact, H, g, iteration, gain < _EQUAL))
    exact = marginal(engine, v)
    return _Climb(value, v, Estimate(s, v, exact, H, g, iteration, False))


def _move(
    engine: Engine, nodes: Nodes, v: Array, sizes: Index, step: Array, value: float, correlation: NDArray[np.bool_]
) -> tuple[Array, Nodes, float] | None:
    """Take a step, shortened until the likelihood on new nodes rises; None if it does not."""
    for share in 0.35 ** np.arange(8.0):
        trial = v + share * step
        trial[correlation] = np.clip(trial[correlation], -_MOST_CORRELATED, _MOST_CORRELATED)
        if nodes.value(trial) > value:
            new = nodes_near(engine, trial, nodes, sizes)
            if new.value(trial) > value - 1e-6:
                return trial, new, float(share)
    return None
