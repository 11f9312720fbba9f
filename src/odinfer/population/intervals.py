"""Confidence intervals of the population's parameters: profiles of the exact likelihood, or its curvature."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from odinfer.errors import InputError
from odinfer.population.estimate import Estimate
from odinfer.population.marginal import nodes_at, nodes_near
from odinfer.population.nodes import Nodes
from odinfer.population.quadrature import levels
from odinfer.progress import Progress, no_progress

Array = NDArray[np.float64]
Index = NDArray[np.int64]

KINDS = ("profile", "curvature")
_ROUNDS = 25  # of the search for a limit
_ACCURATE = 0.1  # of the deviance at a limit, 1 % of the distance
_NEAR = 0.15  # of the distance by curvature: so near to their place, nodes give a limit
_FURTHEST = 8.0, 60.0  # standard errors of 1 at least, and unconstrained units, beyond which there is no limit
_PLACEMENTS = 8  # of nodes, at most
_REACH = 1.0  # logarithm of a standard deviation: so far from their place, nodes are close enough to each other
_ZERO = 4.0  # logarithm below the estimate: with 2 % of it, the likelihood is that without variation
_POOR = 1.0  # log-likelihood that the other parameters may gain on nodes that were placed without it
_STEPS = 50  # of an optimisation with one parameter held
_GAIN = 0.005  # log-likelihood that its next step would gain when it stops


def intervals(
    found: Estimate, level: float = 0.95, kind: str = "profile", progress: Progress = no_progress
) -> dict[str, tuple[float, float]]:
    """Confidence intervals by name.

    Each limit of a profile is computed on nodes that are placed there. Correlations in groups of three or more have
    intervals from the curvature on Fisher's z scale.
    """
    from scipy.special import ndtri

    s, z = found.structure, float(ndtri(0.5 + 0.5 * level))
    nodes = small_nodes(found)
    result: dict[str, tuple[float, float]] = {}
    for j, p in enumerate(s.parameters):
        progress(f"interval of {p.name}, {j + 1} of {len(s.parameters)}", 0.9 + 0.1 * j / len(s.parameters))
        nested = p.role == "correlation" and not _is_simple(found, p.name)
        if found.at_bound[j] and kind == "profile":
            side = float(np.sign(found.v[j]))
            ends = s.values(_limit(found, nodes, j, -side, z))[p.name], side
        elif kind == "curvature" or nested:
            ends = _by_curvature(found, j, z)
        else:
            low, high = (_limit(found, nodes, j, sign, z)[j] for sign in (-1.0, 1.0))
            value = np.tanh if p.role == "correlation" else p.value
            ends = float(value(low)), float(value(high))
        result[p.name] = (float(min(ends)), float(max(ends)))
    return result


def small_nodes(found: Estimate) -> Nodes:
    """Nodes of small rules about the posterior moments, on which profiles are quick."""
    return nodes_at(found.engine, found.v, found.marginal.nodes.posterior_placement(), _sizes(found))


def _sizes(found: Estimate) -> Index:
    """The second smallest rule for every subject (E,)."""
    every = levels(len(found.structure.active))
    return np.full(len(found.structure.subjects), every[min(1, len(every) - 1)])


def _is_simple(found: Estimate, name: str) -> bool:
    """Whether a correlation is a parameter as it stands: it has the first effect of its group."""
    pair = name[5:-1].split(",")
    return any(pair[0] == group[0] and pair[1] in group for group in found.structure.groups)


def _by_curvature(found: Estimate, j: int, z: float) -> tuple[float, float]:
    """On the scale on which a parameter is unconstrained; of a correlation, Fisher's z."""
    s, p, C, v = found.structure, found.structure.parameters[j], found.covariance, found.v
    if p.role != "correlation":
        half = z * np.sqrt(max(C[j, j], 0.0))
        return p.value(v[j] - half), p.value(v[j] + half)
    r = float(np.clip(s.values(v)[p.name], -1 + 1e-12, 1 - 1e-12))
    slope = s.value_slopes(v)[j] / (1.0 - r**2)
    half = z * np.sqrt(max(float(slope @ C @ slope), 0.0))
    return float(np.tanh(np.arctanh(r) - half)), float(np.tanh(np.arctanh(r) + half))


def profile(found: Estimate, name: str, points: int = 10) -> tuple[Array, Array]:
    """Values of a parameter (N,), and the highest log-likelihood with each of them (N,).

    Half of the points lie on each side of the estimate, as far as the 99 % interval by curvature, three units of the
    unconstrained scale at most. Nodes are placed anew at every point.
    """
    s, j = found.structure, found.structure.place[name]
    if s.parameters[j].role == "correlation" and not _is_simple(found, name):
        raise InputError(f"'{name}' has no profile: it depends on other correlations; see its interval")
    C, others = found.covariance, [i for i in range(len(found.v)) if i != j and not found.at_bound[i]]
    step = min(2.6 * float(np.sqrt(C[j, j])), 3.0) / points
    start = small_nodes(found)
    found_at = {0: (found.v, start.value(found.v))}
    for sign in (-1, 1):
        w, nodes = found.v, start
        for k in range(1, points + 1):
            _, w = _constrain(nodes, w + sign * step * C[:, j] / C[j, j], others, j, C)
            nodes = nodes_near(found.engine, w, nodes, _sizes(found))
            found_at[sign * k] = w, nodes.value(w)
    order = sorted(found_at)
    shift = found.marginal.value - start.value(found.v)
    return np.array([s.values(found_at[k][0])[name] for k in order]), np.array([found_at[k][1] for k in order]) + shift


def _limit(found: Estimate, nodes: Nodes, j: int, sign: float, z: float) -> Array:
    """Unconstrained parameters (Q,) where the profile of parameter j has fallen by z²/2; that one may be infinite.

    Nodes are placed where the curvature says that the limit is, the limit is searched for on these, and so on until
    the limit is where the nodes are; if it never is, the curvature gives it. Nodes serve half of their distance
    towards the maximum. A standard deviation of random effects is followed in short parts, as its nodes have to be as
    close as the effects are.
    """
    C, top, here = found.covariance, nodes.value(found.v), np.arange(len(found.v)) == j
    se, spread = float(np.sqrt(C[j, j])), found.structure.parameters[j].role == "omega"
    furthest = _ZERO if spread and sign < 0 else min(_FURTHEST[0] * max(se, 1.0), _FURTHEST[1])
    distance = min(z * min(se, 1.0), _REACH if spread else np.inf)
    w = found.v + sign * distance * C[:, j] / C[j, j]
    for _ in range(_PLACEMENTS):
        nodes, placed = nodes_near(found.engine, w, nodes, _sizes(found)), distance
        value = nodes.value(w)
        ends = 0.5 * placed, (min(furthest, placed + _REACH) if spread else furthest)
        distance, w = _root(found, nodes, top, j, sign, z, distance, w, ends)
        if distance >= furthest:
            return np.where(here, sign * np.inf, w)
        if abs(distance - placed) < _NEAR * z * se and abs(nodes.value(w) - value) < _POOR:
            return w
    return np.where(here, found.v + sign * z * se, w)


def _root(
    found: Estimate, nodes: Nodes, top: float, j: int, sign: float, z: float, trial: float, w: Array,
    ends: tuple[float, float],
) -> tuple[float, Array]:  # fmt: skip
    """The distance at which the root of the deviance on given nodes is z, by the secant method, and the optimum there.

    Args:
        trial: the first distance.
        w: parameters near the optimum there (Q,).
        ends: the smallest and the largest distance, which are returned if the root is larger or smaller than z there.
    """
    C, others = found.covariance, [i for i in range(len(found.v)) if i != j and not found.at_bound[i]]
    direction, se = C[:, j] / C[j, j], min(float(np.sqrt(C[j, j])), 1.0)
    at, depth, trial = 0.0, 0.0, float(np.clip(trial, *ends))
    for _ in range(_ROUNDS):
        starts = [x + (found.v[j] + sign * trial - x[j]) * direction for x in (w, found.v)]
        value, w = _constrain(nodes, max(starts, key=nodes.value), others, j, C)
        root = np.sqrt(max(2.0 * (top - value), 0.0))
        outside = (trial >= ends[1] and root < z) or (trial <= ends[0] and root > z)
        if outside or abs(root**2 - z**2) < 0.5 * _ACCURATE:
            return trial, w
        slope = (root - depth) / (trial - at) if trial != at else 0.0
        at, depth = trial, root
        flat = slope <= 0.1 / se  # the profile hardly falls: go on in longer steps
        step = at if flat and root < z else np.clip((z - root) / max(slope, 1e-300), -0.5 * at, 2.0 * z * se)
        trial = float(np.clip(at + step, *ends))
    return at, w


def _constrain(nodes: Nodes, start: Array, others: list[int], held: int, C: Array) -> tuple[float, Array]:
    """The highest likelihood with one parameter held, from a start, by BFGS.

    The variables are scaled by a root of the covariance matrix of the others, so that the curvature is about one, and
    half the squared norm of the gradient is what another step would gain.
    """
    from scipy.optimize import minimize

    w = start.copy()
    if not others:
        return nodes.value(w), w
    inverse = C[np.ix_(others, others)] - np.outer(C[others, held], C[others, held]) / C[held, held]
    e, V = np.linalg.eigh(0.5 * (inverse + inverse.T))
    root = V * np.sqrt(np.clip(e, 1e-10, 1.0))

    def objective(z: Array) -> tuple[float, Array]:
        full = w.copy()
        full[others] = start[others] + root @ z
        value, gradient = nodes.value_and_gradient(full)
        return (-value, -gradient[others] @ root) if np.isfinite(value) else (1e10, np.zeros(len(others)))

    options = {"maxiter": _STEPS, "gtol": np.sqrt(2.0 * _GAIN), "norm": 2}
    solved = minimize(objective, np.zeros(len(others)), jac=True, method="BFGS", options=options)
    w[others] = start[others] + root @ solved.x
    return -float(solved.fun), w
