"""Observation models of columns with any noise family."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from odinfer.noise import censored
from odinfer.noise.residuals import quantile_residuals
from odinfer.problem.observables import Column
from odinfer.problem.problem import Problem

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_ROUNDS, _SETTLED = 40, 1e-10  # of the search for a standard deviation beside censored values


@dataclass(frozen=True, eq=False)
class Measured:
    """The observed columns of a problem; see `Observation`.

    Attributes:
        floor: smallest variances (M,).
    """

    problem: Problem
    floor: Array

    @functools.cached_property
    def columns(self) -> tuple[Column, ...]:
        return self.problem.observed

    @property
    def count(self) -> NDArray[np.int64]:
        return self.problem.count

    @functools.cached_property
    def is_known(self) -> NDArray[np.bool_]:
        p = self.problem
        m, free = p.model, p.own_index(0)
        point = [np.full((1, len(names)), 1.5) for names in (m.states, m.parameters, m.inputs)]
        with np.errstate(all="ignore"):
            by_theta = p.observation_program.linearise(np.ones(1), *point)[2][0]
        estimated = [bool(by_theta[own.start + 1 : own.stop][:, free].any()) for own in self._places]
        return ~(np.array(p.estimated_noise) | estimated)

    @functools.cached_property
    def _places(self) -> tuple[slice, ...]:
        """Where the arguments of each column stand among all."""
        ends = np.cumsum([len(c.arguments) for c in self.columns])
        return tuple(slice(int(end) - len(c.arguments), int(end)) for c, end in zip(self.columns, ends, strict=True))

    @functools.cached_property
    def _sizes(self) -> tuple[int, ...]:
        """The number of residuals of one observation of each column: as many as its distribution has arguments."""
        return tuple(len(c.family.arguments) for c in self.columns)

    @functools.cached_property
    def owners(self) -> Index:
        return np.repeat(np.arange(len(self.columns)), self._sizes)

    @functools.cached_property
    def _observed_rows(self) -> tuple[NDArray[np.bool_], ...]:
        return tuple(np.isfinite(e.y) for e in self.problem.data.experiments)

    def _points(self, e: int, x: Array, phi: Array, t: Array | None) -> tuple[Array, Array, Array, Array]:
        """Times, states, parameters and inputs of all points of B trajectories, one after the other."""
        condition = self.problem.condition(e)
        t = condition.experiment.t if t is None else t
        B, N, K = x.shape
        theta = np.broadcast_to(self.problem.theta_of(e, phi), (B, len(self.problem.model.parameters)))
        u = condition.inputs_at(t)
        return np.tile(t, B), x.reshape(-1, K), np.repeat(theta, N, 0), np.tile(u, (B, 1))

    def _arguments(self, e: int, x: Array, phi: Array, t: Array | None = None) -> Array:
        """The arguments (B, N, A) of all columns' distributions, as far as the text gives them."""
        a = self.problem.observation_program.evaluate(*self._points(e, x, phi, t))
        return np.asarray(a.reshape(*x.shape[:2], a.shape[-1]))

    def _complete(self, m: int, e: int, a: Array, noise: Array, rows: bool = True) -> list[Array]:
        """All arguments (B, N) of column m: those of the text, and the standard deviation if it stands elsewhere."""
        given = [a[..., i] for i in range(a.shape[-1])[self._places[m]]]
        if self.columns[m].profiled:
            sd = self.problem.data.experiments[e].sd
            own = np.sqrt(noise[:, m : m + 1])
            given.append(own if sd is None or not rows else np.where(np.isnan(sd[:, m]), own, sd[:, m]))
        return list(np.broadcast_arrays(*given))

    def _limit(self, e: int, m: int) -> Array | None:
        limit = self.problem.data.experiments[e].limit
        return None if limit is None or not limit[:, m].any() else limit[:, m]

    def _log_density(self, m: int, e: int, y: Array, a: Sequence[Array]) -> Array:
        """Sums (B,) of log p over the observations of a column in an experiment."""
        family, limit, seen = self.columns[m].family, self._limit(e, m), self._observed_rows[e][:, m]
        if not seen.any():
            return np.zeros(len(y))
        y, a = y[..., m][:, seen], [v[:, seen] for v in a]
        if limit is None:
            each = family.log_density(y, a)
        else:
            each = censored.log_density(family, y, a, limit[seen])
        return np.asarray(np.asarray(each).sum(-1))

    def best(self, x: Sequence[Array], y: Sequence[Array], phi: Array) -> tuple[Array, Array]:
        arguments = [self._arguments(e, own, phi) for e, own in enumerate(x)]
        (B,) = np.broadcast_shapes(*((len(v),) for v in (*arguments, *y)))
        noise = np.ones((B, len(self.columns)))
        known = self.problem.known_sigma
        for m, column in enumerate(self.columns):
            if not column.profiled:
                continue
            if not np.isnan(known[m]):
                noise[:, m] = known[m] ** 2
            elif self.problem.estimated_noise[m]:
                noise[:, m] = self._variance(m, arguments, y, B)
        loglik = np.zeros(B)
        for m in range(len(self.columns)):
            for e, a in enumerate(arguments):
                loglik = loglik + self._log_density(m, e, y[e], self._complete(m, e, a, noise))
        return noise, np.where(np.isnan(loglik), -np.inf, loglik)

    def _variance(self, m: int, arguments: Sequence[Array], y: Sequence[Array], B: int) -> Array:
        """The most likely variance (B,) of a column about what is predicted."""
        family, squares = self.columns[m].family, np.zeros(B)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            for e, a in enumerate(arguments):
                seen = self._observed_rows[e][:, m]
                mean = a[:, seen, self._places[m].start]
                off = family.transformed(y[e][..., m][:, seen]) - family.transformed(mean)
                squares = squares + (np.where(np.isfinite(off), off, np.inf) ** 2).sum(-1)
        variance: Array = np.maximum(squares / self.count[m], self.floor[m])
        if all(self._limit(e, m) is None for e in range(len(arguments))):
            return variance
        return self._score_censored(m, arguments, y, variance)

    def _score_censored(self, m: int, arguments: Sequence[Array], y: Sequence[Array], first: Array) -> Array:
        """The same where some values are censored, by scoring on the log scale."""
        family, log_sd = self.columns[m].family, 0.5 * np.log(np.where(np.isfinite(first), first, 1.0))
        for _ in range(_ROUNDS):
            slope, bend = np.zeros(len(log_sd)), np.zeros(len(log_sd))
            for e, a in enumerate(arguments):
                seen, limit = self._observed_rows[e][:, m], self._limit(e, m)
                if not seen.any():
                    continue
                sd = np.exp(log_sd)[:, None]
                mean = a[:, seen, self._places[m].start]
                own, values = np.broadcast_arrays(mean, sd, y[e][..., m][:, seen])[:2], y[e][..., m][:, seen]
                flags = np.zeros(seen.sum()) if limit is None else limit[seen]
                r, J = censored.rows(family, np.broadcast_to(values, own[0].shape), own, flags)
                by_sd = J[..., 1] * sd[..., None]
                slope, bend = slope + (r * by_sd).sum((-1, -2)), bend + (by_sd**2).sum((-1, -2))
            step = np.clip(slope / np.maximum(bend, 1e-300), -1.0, 1.0)
            log_sd = log_sd - np.where(np.isfinite(step), step, 0.0)
            if np.abs(step).max(initial=0.0) < _SETTLED:
                break
        return np.where(np.isfinite(first), np.maximum(np.exp(2.0 * log_sd), self.floor[m]), first)

    def _linear(self, e: int, x: Array, S: Array, phi: Array, t: Array | None) -> tuple[Array, Array]:
        """The arguments (B, N, A) of all columns, and their derivatives (B, N, A, W) by the own numbers."""
        p = self.problem
        B, N, K = x.shape
        a, ax, at = p.observation_program.linearise(*self._points(e, x, phi, t))
        a, ax = a.reshape(B, N, a.shape[-1]), ax.reshape(B, N, ax.shape[1], K)
        index = p.own_index(e)
        slope = np.broadcast_to(p.slope(phi)[:, p.own_phi(e)], (B, len(index)))
        by_own = ax @ S
        if len(index):
            by_own[..., -len(index) :] += at.reshape(B, N, *at.shape[1:])[..., index] * slope[:, None, None]
        return a, by_own

    def rows(self, e: int, x: Array, S: Array, y: Array, noise: Array, phi: Array) -> tuple[Array, Array]:
        a, by_own = self._linear(e, x, S, phi, None)
        residuals, derivatives = [], []
        for m, column in enumerate(self.columns):
            limit, given = self._limit(e, m), self._complete(m, e, a, noise)
            values = np.broadcast_to(y[..., m], given[0].shape)
            seen = np.broadcast_to(self._observed_rows[e][:, m], values.shape)
            filled = np.where(seen, values, 1.0)
            if limit is None:
                r, J = column.family.rows(filled, given)
            else:
                r, J = censored.rows(column.family, filled, given, np.broadcast_to(limit, values.shape))
            own = by_own[:, :, self._places[m]]
            r, J = np.where(seen[..., None], r, 0.0), np.where(seen[..., None, None], J, 0.0)
            J = J[..., : own.shape[2]] @ own
            wanted = self._sizes[m] - r.shape[-1]
            if wanted:
                r = np.concatenate([r, np.zeros((*r.shape[:-1], wanted))], -1)
                J = np.concatenate([J, np.zeros((*J.shape[:-2], wanted, J.shape[-1]))], -2)
            residuals.append(r)
            derivatives.append(J)
        return np.concatenate(residuals, -1), np.concatenate(derivatives, -2)

    def predicted(self, e: int, x: Array, phi: Array, t: Array | None = None) -> Array:
        return self._arguments(e, x, phi, t)[..., self._first]

    def linearised(self, e: int, x: Array, S: Array, phi: Array, t: Array) -> tuple[Array, Array]:
        a, by_own = self._linear(e, x, S, phi, t)
        return a[..., self._first], by_own[..., self._first, :]

    def outer(
        self, e: int, x: Array, noise: Array, phi: Array, t: Array, low: Array, high: Array, level: float
    ) -> tuple[Array, Array]:
        a = self._arguments(e, x, phi, t)
        ends = []
        for band, p, side in ((low, 0.5 * (1.0 - level), -1.0), (high, 0.5 * (1.0 + level), 1.0)):
            found = np.empty_like(band)
            for m, column in enumerate(self.columns):
                given, family = self._complete(m, e, a, noise, rows=False), column.family
                with np.errstate(all="ignore"):
                    middle, one = (family.transformed(v) for v in (given[0], band[..., m]))
                    two = family.transformed(family.quantile(np.full(given[0].shape, p), given))
                    away = np.hypot(one - middle, two - middle)
                found[..., m] = family.restored(middle + side * away)
                if family.discrete:
                    found[..., m] = np.maximum(side * np.ceil(side * found[..., m]), 0.0)
                if column.profiled and self.is_known[m] and np.isnan(self.problem.known_sigma[m]):
                    found[..., m] = np.nan  # where noise is known row by row, there is none for other times
            ends.append(found)
        return ends[0], ends[1]

    @functools.cached_property
    def _first(self) -> list[int]:
        """Where the predicted values stand among all arguments."""
        return [place.start for place in self._places]

    def residuals(self, e: int, x: Array, y: Array, noise: Array, phi: Array) -> Array:
        a = self._arguments(e, x, phi)
        B = max(len(a), len(y), len(noise))
        found = np.full((B, *y.shape[1:]), np.nan)
        for m, column in enumerate(self.columns):
            seen, limit = self._observed_rows[e][:, m], self._limit(e, m)
            if limit is not None:
                seen = seen & (limit == 0)
            if seen.any():
                given = [v[:, seen] for v in self._complete(m, e, a, noise)]
                found[:, seen, m] = quantile_residuals(column.family, y[:, seen, m], given)
        return found

    def draw(self, rng: np.random.Generator, e: int, x: Array, phi: Array, sigma: Array, size: int) -> Array:
        a = self._arguments(e, x, phi)
        noise = np.broadcast_to(np.reshape(np.asarray(sigma) ** 2, (-1, len(self.columns))), (size, len(self.columns)))
        found = np.full((size, *self._observed_rows[e].shape), np.nan)
        own = self.problem.data.experiments[e]
        for m, column in enumerate(self.columns):
            seen, limit = self._observed_rows[e][:, m], self._limit(e, m)
            given = [np.broadcast_to(v, (size, v.shape[-1]))[:, seen] for v in self._complete(m, e, a, noise)]
            if not seen.any():
                continue
            drawn = column.family.draw(rng, given)
            # What lay beyond a limit is taken to lie there again: the limit is part of the experiment.
            found[:, seen, m] = drawn if limit is None else np.where(limit[seen] != 0, own.y[seen, m], drawn)
        return found
