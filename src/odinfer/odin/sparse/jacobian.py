"""Sparsity patterns of Jacobians, and their evaluation by column colouring.

A model from text knows the pattern of ∂f/∂(x, θ) and gives its non-zeros. Of a function it is found by probing: a NaN
put into the tangents of a group of columns turns up in the equations that see any of them. Groups are halved until they
are single columns, and groups whose reach is known to be disjoint are probed together, so a system in which every
equation names a few states takes some ten evaluations per halving. The same colouring then compresses the Jacobian:
columns that share no equation share one directional derivative. A probe sees only the branch that a `where` takes at
its points; therefore every linearisation is checked in a random direction, and the pattern is extended where it fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from odinfer.model.differentiation import TextField
from odinfer.model.model import Model

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_POINTS = 16  # at which the pattern is probed


@dataclass(frozen=True)
class Pattern:
    """Non-zeros of ∂f/∂(x, θ): `rows` (equations) and `cols` (states, then parameters), sorted by row.

    Attributes:
        rows, cols: (nnz,).
        colours: of every column (K+P,); columns of one colour share no row.
    """

    rows: Index
    cols: Index
    colours: Index

    @property
    def n_colours(self) -> int:
        return int(self.colours.max()) + 1 if len(self.colours) else 0

    @staticmethod
    def of(reaches: Sequence[Index], K: int) -> Pattern:
        """From the equations that each column reaches."""
        cols = np.repeat(np.arange(len(reaches)), [len(r) for r in reaches])
        rows = np.concatenate([*reaches, np.empty(0, np.int64)]).astype(np.int64)
        order = np.lexsort((cols, rows))
        return Pattern(rows[order], cols[order], disjoint_colours(reaches, K))


def disjoint_colours(sets: Sequence[Index], K: int) -> Index:
    """Greedy colouring: sets (of numbers below K) that intersect get different colours."""
    colours = np.zeros(len(sets), np.int64)
    taken: list[NDArray[np.bool_]] = []
    for i, members in enumerate(sets):
        c = next((c for c, occupied in enumerate(taken) if not occupied[members].any()), len(taken))
        if c == len(taken):
            taken.append(np.zeros(K, bool))
        taken[c][members] = True
        colours[i] = c
    return colours


class Derivatives(NamedTuple):
    """f (M, K); ∂f/∂x (M·K, M·K) and ∂f/∂θ (M·K, P), sparse, rows and columns ordered by point, then state."""

    f: Array
    fx: Any
    ft: Any


class SparseField:
    """A model's vector field with its sparse derivatives; learns the pattern of a function where it is evaluated."""

    def __init__(self, model: Model, t: Array, x: Array, theta: Array, u: Array) -> None:
        self.model = model
        if isinstance(model.derivatives, TextField):
            rows, cols = model.derivatives.pattern
            self.pattern = Pattern.of(_reaches(rows, cols, x.shape[1] + len(theta)), x.shape[1])
        else:
            some = np.unique(np.linspace(0, len(t) - 1, _POINTS).astype(int))
            self.pattern = find_pattern(model, t[some], x[some], theta, u[some])
        self._layout: dict[int, _Layout] = {}
        self._compiled: Callable[..., Any] | None = None

    def derivatives(self, t: Array, x: Array, theta: Array, u: Array) -> Derivatives:
        """f and its derivatives at M points t (M,), x (M, K), u (M, U) for one θ (P,)."""
        theta = np.asarray(theta, float)
        if isinstance(self.model.derivatives, TextField):
            everywhere = np.broadcast_to(theta, (len(t), len(theta)))
            return self._matrices(*self.model.derivatives.nonzeros(t, x, everywhere, u), len(theta))
        found, error = self._evaluate(t, x, theta, u)
        if error > 1e-8:  # a branch that no probe has seen
            seen = find_pattern(self.model, t, x, theta, u)
            self.pattern = _union(self.pattern, seen, x.shape[1])
            self._layout, self._compiled = {}, None
            found, _ = self._evaluate(t, x, theta, u)
        return found

    def _evaluate(self, t: Array, x: Array, theta: Array, u: Array) -> tuple[Derivatives, float]:
        """The derivatives, and how far they are from one in a random direction."""
        if self._compiled is None:
            self._compiled = _compress(self.model, self.pattern)
        f, pushed = (np.asarray(a) for a in self._compiled(t, x, theta, u))
        (M, K), p = x.shape, self.pattern
        found = self._matrices(f, pushed.reshape(M, -1)[:, p.colours[p.cols] * K + p.rows], len(theta))
        d = _direction(K + len(theta))
        known = found.fx @ np.tile(d[:K], M) + found.ft @ d[K:]
        with np.errstate(invalid="ignore"):
            error = np.abs(pushed[:, -1].ravel() - known) / (1.0 + np.abs(known))
        return found, float(np.nanmax(error, initial=0.0))

    def _matrices(self, f: Array, nonzeros: Array, P: int) -> Derivatives:
        """From f (M, K) and the derivatives (M, nnz) in the order of the pattern."""
        M, K = f.shape
        if M not in self._layout:
            self._layout[M] = _Layout.of(self.pattern, M, K)
        at = self._layout[M]
        fx = sparse.csr_array((nonzeros[:, at.x_from].ravel(), at.x_columns, at.x_ends), shape=(M * K, M * K))
        ft = sparse.csr_array((nonzeros[:, at.t_from].ravel(), at.t_columns, at.t_ends), shape=(M * K, P))
        return Derivatives(f, fx, ft)


class _Layout(NamedTuple):
    """Where M points' values stand in the order of the pattern, and in sparse matrices."""

    x_from: Index
    x_columns: NDArray[np.int32]
    x_ends: NDArray[np.int32]
    t_from: Index
    t_columns: NDArray[np.int32]
    t_ends: NDArray[np.int32]

    @staticmethod
    def of(p: Pattern, M: int, K: int) -> _Layout:
        parts: list[Any] = []
        for which, stride in ((p.cols < K, K), (p.cols >= K, 0)):
            counts = np.tile(np.bincount(p.rows[which], minlength=K), M)
            columns = (p.cols[which] - (0 if stride else K)) + stride * np.arange(M)[:, None]
            ends = np.concatenate([[0], np.cumsum(counts)])
            parts += [np.flatnonzero(which), columns.ravel().astype(np.int32), ends.astype(np.int32)]
        return _Layout(*parts)


def find_pattern(model: Model, t: Array, x: Array, theta: Array, u: Array) -> Pattern:
    """The pattern of ∂f/∂(x, θ) as seen at points t (M,), x (M, K), u (M, U) and one θ (P,)."""
    K, P = x.shape[1], len(theta)
    touched = _probe(model, t, x, np.asarray(theta, float), u)
    groups, reaches = [np.arange(K + P)], [np.arange(K)]
    while max(len(g) for g in groups) > 1:
        colours = disjoint_colours(reaches, K)
        halves: list[list[Index]] = [np.array_split(g, 2) if len(g) > 1 else [g] for g in groups]
        found: dict[tuple[int, int], Index] = {}
        for colour in range(int(colours.max()) + 1):
            members = np.flatnonzero(colours == colour).tolist()
            for side in (0, 1):
                tangent = np.zeros(K + P)
                probed = [i for i in members if side < len(halves[i])]
                if not probed:
                    continue
                tangent[np.concatenate([halves[i][side] for i in probed])] = np.nan
                hit = touched(tangent)
                for i in probed:
                    found[i, side] = reaches[i][hit[reaches[i]]]
        pairs = [(half, found[i, side]) for i, parts in enumerate(halves) for side, half in enumerate(parts)]
        groups, reaches = [g for g, _ in pairs], [r for _, r in pairs]
    return Pattern.of(reaches, K)


def _union(a: Pattern, b: Pattern, K: int) -> Pattern:
    keys = np.union1d(a.cols * K + a.rows, b.cols * K + b.rows)
    return Pattern.of(_reaches(keys % K, keys // K, len(a.colours)), K)


def _reaches(rows: Index, cols: Index, total: int) -> list[Index]:
    """The rows of every column."""
    order = np.argsort(cols, kind="stable")
    return np.split(rows[order], np.searchsorted(cols[order], np.arange(1, total)))


def _probe(model: Model, t: Array, x: Array, theta: Array, u: Array) -> Callable[[Array], NDArray[np.bool_]]:
    """tangent (K+P,) ↦ which equations turn NaN by it at any of the points."""
    from odinfer._jax import jax, jnp

    K = x.shape[1]

    def push(tangent: Any) -> Any:
        def point(t: Any, x: Any, u: Any) -> Any:
            z = jnp.concatenate([x, theta])
            return jax.jvp(lambda z: model.f(t, z[:K], z[K:], u), (z,), (tangent,))[1]

        return jnp.isnan(jax.vmap(point)(t, x, u))

    compiled = jax.jit(push)
    still = np.asarray(compiled(np.zeros(K + len(theta))))
    return lambda tangent: np.asarray((np.asarray(compiled(tangent)) & ~still).any(0))


def _direction(n: int) -> Array:
    return np.random.default_rng(0).normal(size=n)


def _compress(model: Model, pattern: Pattern) -> Callable[..., Any]:
    """Compiled (t, x, θ, u) ↦ f (M, K) and its derivatives along all colours and a random direction (M, C+1, K)."""
    from odinfer._jax import jax, jnp

    K, n = len(model.states), len(pattern.colours)
    seeds = np.zeros((pattern.n_colours + 1, n))
    seeds[pattern.colours, np.arange(n)] = 1.0
    seeds[-1] = _direction(n)

    def point(t: Any, x: Any, theta: Any, u: Any, seeds: Any) -> Any:
        f, push = jax.linearize(lambda z: model.f(t, z[:K], z[K:], u), jnp.concatenate([x, theta]))
        return f, jax.vmap(push)(seeds)

    compiled = jax.jit(jax.vmap(point, (0, 0, None, 0, None)))
    return lambda *at: compiled(*at, seeds)
