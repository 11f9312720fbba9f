"""The marginal log-likelihood of a population at given parameters, exact or approximated, with its numerical error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.errors import InputError
from odinfer.population.modes import Modes, find_modes, linearise
from odinfer.population.nodes import Engine, Nodes, Placement
from odinfer.population.quadrature import MOST_DIMENSIONS, SCRAMBLES, levels, rule
from odinfer.population.structure import natural_slope
from odinfer.population.subjects import BatchSolution

Array = NDArray[np.float64]
Index = NDArray[np.int64]

APPROXIMATIONS = ("exact", "focei", "laplace", "fo")
LARGEST_ERROR = 0.1  # numerical error of a log-likelihood from which a warning is given
TOLERANCE = 1e-3  # of the log-likelihood of all subjects together
SAMPLING_TOLERANCE = 0.03  # the same by importance sampling
_SEEDS = 32  # of importance sampling; subjects with the same seed have errors of the same sign
_STEP = 1e-4  # standard deviations: step of differences for Laplace's Hessian
_WIDEST, _NARROWEST = 100.0, 1e-4  # of posterior standard deviations, relative to those at the mode
_REFINED = 2  # rules whose moments place the nodes of the next one
_FURTHEST_START = 4.0  # standard deviations of random effects, where the search for a mode may start
_ENOUGH = 4.0  # effective number of nodes from which posterior moments are taken


@dataclass(frozen=True, eq=False)
class Marginal:
    """A marginal log-likelihood.

    Attributes:
        each: log-likelihood of every subject (E,).
        error: estimated numerical error of their sum.
        sizes: nodes per dimension, or points, of every subject (E,).
        nodes: the last nodes of every subject.
    """

    each: Array
    error: float
    sizes: Index
    nodes: Nodes

    @property
    def value(self) -> float:
        return float(self.each.sum())


def place_at_modes(engine: Engine, v: Array, modes: Modes) -> Placement:
    """Nodes about the modes, as wide as Gauss–Newton curvature says."""
    s = engine.structure
    m, L = s.means(v)[0][:, s.active], s.cholesky(v)
    T = np.linalg.cholesky(np.linalg.inv(modes.information))
    return Placement(m + modes.u @ L.T, L @ T)


def place_by_moments(engine: Engine, v: Array, nodes: Nodes, before: Placement) -> Placement:
    """Nodes about posterior means, as wide as posterior covariances (Naylor and Smith 1982), where these are known."""
    s = engine.structure
    d = len(s.active)
    mean, cov, effective = nodes.moments(v)
    with np.errstate(all="ignore"):
        inverse = np.linalg.inv(before.factor)
        relative = inverse @ cov @ np.swapaxes(inverse, 1, 2)
    finite = np.asarray(np.isfinite(relative).all((1, 2)) & np.isfinite(mean).all(1))
    w, V = np.linalg.eigh(np.where(finite[:, None, None], relative, np.eye(d)))
    good = finite & (w[:, 0] > _NARROWEST) & (w[:, -1] < _WIDEST) & (effective > min(_ENOUGH, 1.5**d))
    T = before.factor @ V @ (np.sqrt(np.maximum(w, _NARROWEST))[:, :, None] * np.swapaxes(V, 1, 2))
    return Placement(np.where(good[:, None], mean, before.centre), np.where(good[:, None, None], T, before.factor))


def nodes_near(engine: Engine, v: Array, near: Nodes, sizes: Index) -> Nodes:
    """Nodes about the posterior means at v with rules of the given sizes (E,), by small rules about the modes.

    They depend on v alone, as those of `marginal` do, so that likelihoods at different v can be compared.

    Args:
        near: nodes for other parameters; the search for the modes starts at the means on these.
    """
    s, mean = engine.structure, near.moments(near.v)[0]
    u = np.linalg.solve(s.cholesky(v), (mean - s.means(v)[0][:, s.active]).T).T
    place = place_at_modes(engine, v, find_modes(engine, v, np.clip(u, -_FURTHEST_START, _FURTHEST_START)))
    for size in levels(len(s.active))[:_REFINED]:
        if size < sizes.max():
            place = place_by_moments(engine, v, nodes_at(engine, v, place, np.full_like(sizes, size)), place)
    return nodes_at(engine, v, place, sizes)


def nodes_at(engine: Engine, v: Array, placement: Placement, sizes: Index, subjects: Index | None = None) -> Nodes:
    """Solve the nodes of subjects (all if not given) with rules of the given sizes (E,)."""
    d = placement.centre.shape[1]
    every = np.arange(len(sizes)) if subjects is None else subjects
    e, x, weight = [], [], []
    for i in every:
        z, log_weight = rule(int(sizes[i]), d, int(i) % _SEEDS)
        e.append(np.full(len(z), i))
        x.append(placement.centre[i] + z @ placement.factor[i].T)
        weight.append(log_weight + np.linalg.slogdet(placement.factor[i])[1])
    return engine.nodes(v, np.concatenate(e), np.concatenate(x), np.concatenate(weight))


def marginal(engine: Engine, v: Array, start: Placement | None = None) -> Marginal:
    """The exact marginal log-likelihood: the rule of each subject grows until its log-likelihood settles.

    Args:
        start: where nodes lie at first; at the modes if not given.
    """
    E, d = len(engine.structure.subjects), len(engine.structure.active)
    placement = place_at_modes(engine, v, find_modes(engine, v)) if start is None else start
    sizes_of = levels(d)
    tolerance = TOLERANCE if d <= MOST_DIMENSIONS else SAMPLING_TOLERANCE
    sizes, active, own = np.full(E, sizes_of[0]), np.arange(E), tolerance / max(np.sqrt(E), 1.0)
    each, change = np.full(E, np.nan), np.full(E, np.inf)
    kept: dict[int, tuple[Nodes, int]] = {}
    for k, size in enumerate(sizes_of):
        sizes[active] = size
        nodes = nodes_at(engine, v, placement, sizes, active)
        found = nodes.each(nodes.joint(v))
        change[active] = np.where(np.isfinite(found), np.abs(found - each[active]), np.inf)
        if d > MOST_DIMENSIONS:
            change[active] = _sampling_errors(nodes, v)
        each[active] = found
        for position, i in enumerate(active):
            kept[int(i)] = (nodes, position)
        if k < _REFINED or d > MOST_DIMENSIONS:
            better = place_by_moments(engine, v, nodes, Placement(placement.centre[active], placement.factor[active]))
            placement.centre[active], placement.factor[active] = better.centre, better.factor
        active = active[~(change[active] < own)]
        if not len(active):
            break
    if d > MOST_DIMENSIONS:
        error = np.sqrt((np.bincount(np.arange(E) % _SEEDS, change) ** 2).sum())
    else:
        error = change.sum()
    return Marginal(each, float(error), sizes, _join(engine, v, kept))


def _sampling_errors(nodes: Nodes, v: Array) -> Array:
    """Standard errors of the log-likelihoods by importance sampling, from the differences between scrambled sets."""
    w = nodes.weights(nodes.joint(v))
    parts = [part.reshape(SCRAMBLES, -1).sum(1) for part in np.split(w, nodes._starts[1:])]
    return np.asarray(np.std(parts, axis=1, ddof=1) * np.sqrt(SCRAMBLES))


def _join(engine: Engine, v: Array, kept: dict[int, tuple[Nodes, int]]) -> Nodes:
    """The last nodes of every subject as one set, without solving them again."""
    parts, e, x, weight, theta, states, slopes, rows = [], [], [], [], [], [], [], []
    for i in sorted(kept):
        nodes, position = kept[i]
        ends = np.append(nodes._starts, len(nodes.e))
        own = np.arange(ends[position], ends[position + 1])
        first = nodes.solved.first[own[0]]
        last = first + len(own) * engine.subjects.counts[i]
        points = np.arange(first, last)
        e.append(nodes.e[own])
        x.append(nodes.x[own])
        weight.append(nodes.log_weight[own])
        theta.append(nodes.solved.theta[own])
        states.append(nodes.solved.x[points])
        rows.append(nodes.solved.row[points])
        if nodes.solved.S is not None:
            slopes.append(nodes.solved.S[points])
        parts.append(nodes)
    subject = np.concatenate(e)
    counts = engine.subjects.counts[subject]
    first_point = np.cumsum(counts) - counts
    solved = BatchSolution(
        subject, np.concatenate(theta), np.repeat(np.arange(len(subject)), counts), np.concatenate(rows), first_point,
        np.concatenate(states), np.concatenate(slopes) if slopes else None,
    )  # fmt: skip
    return Nodes(engine, v, subject, np.concatenate(x), np.concatenate(weight), parts[0].subjects, solved)


def laplace(engine: Engine, v: Array, modes: Modes | None = None, expected: bool = False) -> Array:
    """Laplace's approximation of every subject's log-likelihood (E,).

    Args:
        expected: with the Gauss–Newton curvature, which is FOCE with interaction; otherwise with the Hessian.
    """
    modes = find_modes(engine, v) if modes is None else modes
    d = modes.u.shape[1]
    H = modes.information
    if not expected:
        every = np.arange(len(modes.u))
        H = np.empty_like(modes.information)
        for i in range(d):
            step = np.zeros(d)
            step[i] = _STEP
            up, down = (linearise(engine, v, every, modes.u + sign * step)[1] for sign in (1.0, -1.0))
            H[:, :, i] = (up - down) / (2.0 * _STEP)
        H = 0.5 * (H + np.swapaxes(H, 1, 2))
    sign, logdet = np.linalg.slogdet(H)
    return np.where(sign > 0, modes.log_joint + 0.5 * d * np.log(2.0 * np.pi) - 0.5 * logdet, np.nan)


class FirstOrder(NamedTuple):
    """A subject's observations to first order in its effects: y ≈ mean + slopes z + sd ε with standard normal z and ε.

    Attributes:
        mean, sd: (n,), on the scale on which the noise is normal.
        slopes: (n, d).
        y: observations (n,) on that scale.
        jacobian: of that scale, in the log-likelihood.
    """

    mean: Array
    slopes: Array
    sd: Array
    y: Array
    jacobian: float


def first_order(engine: Engine, v: Array) -> Array:
    """The FO approximation of every subject's log-likelihood (E,): predictions linear in the effects, about zero.

    Raises:
        InputError: the data are not normal or log-normal, or there are detection limits.
    """
    found = []
    for own in first_order_moments(engine, v):
        V = own.slopes @ own.slopes.T + np.diag(np.square(own.sd))
        r = own.y - own.mean
        logdet = np.linalg.slogdet(V)[1]
        found.append(-0.5 * (r @ np.linalg.solve(V, r) + logdet + len(r) * np.log(2.0 * np.pi)) + own.jacobian)
    return np.array(found)


def first_order_moments(engine: Engine, v: Array) -> list[FirstOrder]:
    """The observations of every subject to first order in its effects, about zero."""
    s, subjects = engine.structure, engine.subjects
    families = {c.words for c in s.problem.observed}
    if not families <= {"normal", "lognormal"} or subjects.limit.any():
        raise InputError("the approximation 'fo' needs normal or log-normal data without detection limits")
    E, d = len(s.subjects), len(s.active)
    m, L = s.means(v)[0], s.cholesky(v)
    every = np.arange(E)
    theta = s.individual(v, every, m)
    solved = subjects.solve(every, theta, slopes=True)
    a, by, _ = subjects.linearised(solved)
    slopes = np.stack(
        [natural_slope(s.effects[i].family, theta[:, subjects.wanted[k]]) for k, i in enumerate(s.active)], 1
    )
    found = []
    for i in every:
        own = solved.node == i
        row = solved.row[own]
        f, G, sd, y, jacobian = [], [], [], [], 0.0
        for j, (k, o) in enumerate(zip(np.flatnonzero(own), row, strict=True)):
            column = subjects.column[o]
            family, place = s.problem.observed[column].family, subjects._places[column]
            log = s.problem.observed[column].words == "lognormal"
            value = a[k, place.start]
            given = subjects._distribution_arguments(column, a[k : k + 1], row[j : j + 1], s.sigma(v))
            f.append(float(family.transformed(value)))
            G.append(by[k, place.start, :d] / (value if log else 1.0))
            sd.append(float(given[1][0]))
            y.append(float(family.transformed(subjects.y[o])))
            jacobian -= y[-1] if log else 0.0
        A = np.array(G) @ (slopes[i][:, None] * L)
        found.append(FirstOrder(np.array(f), A, np.array(sd), np.array(y), jacobian))
    return found
