"""Quadrature nodes with trajectories of all subjects, on which the marginal likelihood is cheap to evaluate.

The nodes are latent values x_ik. Parameters of the random effects and of the noise change the density p(x|β, Ω) and the
distribution of the data about the trajectories, but not the trajectories themselves. Parameters of the equations that
are equal in all subjects change them; to first order, by sensitivities. So one set of trajectories gives the marginal
log-likelihood Σ_i log Σ_k w_ik p(y_i|x_ik) p(x_ik|β, Ω) in the neighbourhood of the parameters for which it was made,
and there its exact gradient, which is Fisher's identity.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odinfer.population.structure import Structure, natural_slope
from odinfer.population.subjects import BatchSolution, Subjects, wanted_parameters

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_FARTHEST = 300.0  # unconstrained number beyond which values are not finite
_NEGLIGIBLE, _TINY = 1e-12, 1e-15  # weights of nodes that are left out of a sum, and of those without derivatives


@dataclass(frozen=True, eq=False)
class Placement:
    """Where the nodes of each subject lie: x = centre (E, d) + factor (E, d, d) z, of effects that are not zero."""

    centre: Array
    factor: Array


@dataclass(frozen=True, eq=False)
class Engine:
    """A structure with its subjects' trajectories."""

    structure: Structure

    @functools.cached_property
    def fixed(self) -> tuple[str, ...]:
        """Parameters of the model without a random effect of their own that are estimated."""
        s = self.structure
        own = {e.name for e in s.effects}
        return tuple(n for n in s.problem.model.parameters if n not in own and n in s.place)

    @functools.cached_property
    def determined(self) -> tuple[str, ...]:
        """Parameters of the model that those of the population determine: fixed ones, and effects without spread."""
        return (*self.structure.zero, *self.fixed)

    @functools.cached_property
    def of_data(self) -> Index:
        """Places in v of the parameters on which p(y|x) depends at given latent values x of the effects that vary."""
        s = self.structure
        roles = ("fixed", "sigma", "centre") if s.zero else ("fixed", "sigma")
        found = [i for i, p in enumerate(s.parameters) if p.role in roles or p.name in self.fixed]
        return np.array(found, np.int64)

    @functools.cached_property
    def subjects(self) -> Subjects:
        """With derivatives by the effects that are not zero, then by what is determined."""
        s = self.structure
        active = [s.effects[i].name for i in s.active]
        return Subjects(s.problem, wanted_parameters(s.problem, active, self.determined))

    @functools.cached_property
    def _determined_subjects(self) -> Subjects:
        s = self.structure
        return Subjects(s.problem, wanted_parameters(s.problem, (), self.determined))

    def full(self, v: Array, e: Index, x: Array, means: Array | None = None) -> Array:
        """Latent values (B, D) of all effects from those of the effects that are not zero (B, d)."""
        s = self.structure
        if len(s.active) == len(s.effects):
            return x
        means = s.means(v)[0] if means is None else means
        found = means[e].copy()
        found[:, s.active] = x
        return found

    def nodes(self, v: Array, e: Index, x: Array, log_weight: Array) -> Nodes:
        """Solve the trajectories at latent values x (B, d) of subjects e (B,)."""
        theta = self.structure.individual(v, e, self.full(v, e, x))
        subjects = self._determined_subjects
        return Nodes(self, v, e, x, log_weight, subjects, subjects.solve(e, theta, bool(len(subjects.field.wanted))))

    def determined_slopes(self, v: Array) -> Array:
        """Derivatives (E, n, Q) of what is determined by the unconstrained parameters."""
        s = self.structure
        found = np.zeros((len(s.subjects), len(self.determined), len(v)))
        if s.zero:
            means, by_v = s.means(v)
            values = s.individual(v, np.arange(len(means)), means)
        for k, name in enumerate(self.determined):
            if name in s.zero:
                i = next(i for i, e in enumerate(s.effects) if e.name == name)
                column = values[:, s.problem.model.parameters.index(name)]
                found[:, k] = natural_slope(s.effects[i].family, column)[:, None] * by_v[:, i]
            else:
                found[:, k, s.place[name]] = s.parameters[s.place[name]].slope(v[s.place[name]])
        return found


@dataclass(frozen=True, eq=False)
class Nodes:
    """Nodes of all subjects.

    Attributes:
        v: the parameters for which the trajectories were solved.
        e, x, log_weight: subjects (B,), latent values (B, d) and weights of the rule (B,).
        solved: the trajectories.
    """

    engine: Engine
    v: Array
    e: Index
    x: Array
    log_weight: Array
    subjects: Subjects
    solved: BatchSolution
    _of_data: dict[str, tuple[bytes, Any]] = field(default_factory=dict, repr=False)

    @functools.cached_property
    def _starts(self) -> Index:
        return np.flatnonzero(np.append(True, np.diff(self.e) != 0))

    @functools.cached_property
    def _arguments(self) -> Array:
        return self.subjects.arguments(self.solved)

    def _at(self, v: Array) -> BatchSolution:
        """The trajectories with what is determined at v, to first order."""
        s, old = self.engine.structure, self.solved
        theta = s.individual(v, self.e, self.engine.full(v, self.e, self.x))
        x = old.x
        if old.S is not None and old.S.shape[-1]:
            change = (theta - old.theta)[:, self.subjects.wanted]
            if change.any():
                x = x + np.einsum("mkw,mw->mk", old.S, change[old.node])
        return BatchSolution(old.e, theta, old.node, old.row, old.first, x, old.S)

    def log_prior(self, v: Array) -> Array:
        """log p(x|β, Ω) of every node (B,)."""
        s = self.engine.structure
        m, L = s.means(v)[0][:, s.active], s.cholesky(v)
        z = np.linalg.solve(L, (self.x - m[self.e]).T)
        return np.asarray(-0.5 * (z**2).sum(0) - np.log(np.diag(L)).sum() - 0.5 * len(s.active) * np.log(2.0 * np.pi))

    def log_data(self, v: Array) -> Array:
        """log p(y|x) of every node (B,), kept for the next v with the same parameters of the data."""
        key = v[self.engine.of_data].tobytes()
        old, found = self._of_data.get("log_data", (b"", None))
        if found is None or old != key:
            found = self._log_data(v)
            self._of_data["log_data"] = key, found
        return np.asarray(found)

    def _log_data(self, v: Array) -> Array:
        a = self.subjects.arguments(self._at(v)) if self.engine.determined else self._arguments
        with np.errstate(all="ignore"):
            each = self.subjects.log_density(a, self.solved.row, self.engine.structure.sigma(v))
        found = self.solved.sums(each)
        return np.where(np.isfinite(found), found, -np.inf)

    def joint(self, v: Array) -> Array:
        """Logarithm of what every node contributes to its subject's likelihood (B,)."""
        with np.errstate(all="ignore"):
            found = self.log_weight + self.log_prior(v) + self.log_data(v)
        return np.where(np.isnan(found), -np.inf, found)

    def each(self, joint: Array) -> Array:
        """Marginal log-likelihoods of the subjects that have nodes, in their order."""
        top = np.maximum.reduceat(joint, self._starts)
        top = np.where(np.isfinite(top), top, 0.0)
        counts = np.diff(np.append(self._starts, len(joint)))
        with np.errstate(all="ignore"):
            return np.asarray(np.log(np.add.reduceat(np.exp(joint - np.repeat(top, counts)), self._starts)) + top)

    def weights(self, joint: Array) -> Array:
        """Posterior probabilities of the nodes (B,), which sum to one for every subject."""
        counts = np.diff(np.append(self._starts, len(joint)))
        return np.asarray(np.exp(joint - np.repeat(self.each(joint), counts)))

    def value(self, v: Array) -> float:
        """The marginal log-likelihood."""
        return float(self.each(self.joint(v)).sum())

    def value_and_gradient(self, v: Array) -> tuple[float, Array]:
        """The marginal log-likelihood and its gradient (Q,), by Fisher's identity."""
        if not np.abs(v).max(initial=0.0) < _FARTHEST:
            return -np.inf, np.zeros(len(v))
        joint = self.joint(v)
        value = float(self.each(joint).sum())
        if not np.isfinite(value):
            return -np.inf, np.zeros(len(v))
        return value, self._score(v, self.weights(joint)).sum(0)

    def scores(self, v: Array) -> Array:
        """Gradients of every subject's marginal log-likelihood (E, Q)."""
        return self._score(v, self.weights(self.joint(v)))

    def expected(self, v: Array, weights: Array) -> tuple[float, Array]:
        """Expected complete-data log-likelihood (the Q function of EM) with given weights, and its gradient."""
        with np.errstate(all="ignore"):
            each = self.log_prior(v) + self.log_data(v)
        kept = weights > 0
        value = float((weights[kept] * each[kept]).sum())
        return (value, self._score(v, weights).sum(0)) if np.isfinite(value) else (-np.inf, np.zeros(len(v)))

    def _score(self, v: Array, weights: Array) -> Array:
        """Expected derivatives (E, Q) of log p(y, x) by v, under the weights of the nodes."""
        s = self.engine.structure
        E = len(self._starts)
        subject = self.e[self._starts]
        m, by_v = s.means(v)
        active = s.active
        r = self.x - m[:, active][self.e]
        first, second = self._moments(weights, r)
        inverse = np.linalg.inv(s.cholesky(v))
        P = inverse.T @ inverse
        score = np.einsum("ed,dc,ecq->eq", first, P, by_v[subject][:, active])
        index, slopes = s.covariance_slopes(v)
        for i, slope in zip(index, slopes, strict=True):
            inner = P @ slope @ P
            score[:, i] += 0.5 * (np.einsum("cd,ecd->e", inner, second) - np.trace(P @ slope))
        return np.asarray(score + self._data_score(v, weights, E))

    def _moments(self, weights: Array, r: Array) -> tuple[Array, Array]:
        """Sums (E, d) and (E, d, d) of r and r r' (B, d) over the nodes of every subject."""
        d, columns = r.shape[1], np.ascontiguousarray(r.T)
        first, second = np.empty((len(self._starts), d)), np.empty((len(self._starts), d, d))
        for i in range(d):
            weighted = weights * columns[i]
            first[:, i] = np.add.reduceat(weighted, self._starts)
            for j in range(i + 1):
                second[:, i, j] = second[:, j, i] = np.add.reduceat(weighted * columns[j], self._starts)
        return first, second

    def _data_score(self, v: Array, weights: Array, E: int) -> Array:
        """Expected derivatives (E, Q) of log p(y|x) by the noise and by what is determined."""
        s, found = self.engine.structure, np.zeros((E, len(v)))
        columns = [m for m, c in enumerate(s.problem.columns) if f"sigma {c}" in s.place]
        if not columns and not self.engine.determined:
            return found
        key, (old, (kept, slopes)) = v[self.engine.of_data].tobytes(), self._of_data.get("slopes", (b"", (None, None)))
        if kept is None or old != key or (weights[~kept] > _NEGLIGIBLE).any():
            kept = weights > _TINY
            slopes = self._data_slopes(v, kept, columns)
            self._of_data["slopes"] = key, (kept, slopes)
        place = np.cumsum(np.append(False, np.diff(self.e) != 0))[kept]
        sums = np.stack([np.bincount(place, weights[kept] * own, E) for own in slopes.T], 1)
        for k, m in enumerate(columns):
            found[:, s.place[f"sigma {s.problem.columns[m]}"]] += sums[:, k]
        if self.engine.determined:
            chain = self.engine.determined_slopes(v)[self.e[self._starts]]
            found += np.einsum("ew,ewq->eq", sums[:, len(columns) :], chain)
        return found

    def _data_slopes(self, v: Array, kept: NDArray[np.bool_], columns: list[int]) -> Array:
        """Derivatives (B', columns + n) of log p(y|x) of the kept nodes by log σ and by what is determined."""
        point = kept[self.solved.node]
        row, node = self.solved.row[point], self.solved.node[point]
        with np.errstate(all="ignore"):
            if self.engine.determined:
                a, by, _ = self.subjects.linearised(self._at(v).points(point))
            else:
                a, by = self._arguments[point], np.empty((len(row), 0, 0))
            r, J = self.subjects.rows(a, row, self.engine.structure.sigma(v))
            slope = -np.einsum("mr,mra->ma", r, J)
            each = slope[:, [a.shape[1] + m for m in columns]]
            if self.engine.determined:
                each = np.hstack([each, np.einsum("ma,maw->mw", slope[:, : a.shape[1]], by)])
        return np.asarray(np.add.reduceat(each, np.flatnonzero(np.append(True, np.diff(node) != 0)), axis=0))

    def moments(self, v: Array) -> tuple[Array, Array, Array]:
        """Posterior means (E, d), covariances (E, d, d) and effective numbers of nodes (E,) of every subject."""
        w = self.weights(self.joint(v))
        counts = np.diff(np.append(self._starts, len(w)))
        mean = self._moments(w, self.x)[0]
        cov = self._moments(w, self.x - np.repeat(mean, counts, 0))[1]
        return mean, cov, 1.0 / np.add.reduceat(w**2, self._starts)

    def posterior_placement(self) -> Placement:
        """Nodes about the posterior means, as wide as the posterior covariances."""
        mean, cov, _ = self.moments(self.v)
        w, V = np.linalg.eigh(np.where(np.isfinite(cov), cov, 0.0))
        least = 1e-12 * w.sum(1, keepdims=True) + 1e-300
        return Placement(np.where(np.isfinite(mean), mean, 0.0), V * np.sqrt(np.maximum(w, least))[:, None, :])
