"""Trajectories as solutions of collocation equations (Radau IIA), linearised about any guess.

A path need not solve the equations yet: `CollocationPath.condense` gives the Newton correction together with the
sensitivities to initial values and parameters, from one batched call of the vector field. This is what carries
an ODIN estimate, which nearly solves the equations, to a trajectory that does, without a forward solve that
could blow up on the way; and the scheme is stable for stiff equations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import polynomial as P
from numpy.typing import NDArray
from scipy.special import roots_jacobi

from odinfer.problem.problem import Problem

Array = NDArray[np.float64]
Index = NDArray[np.int64]

STAGES = 4
MANY = 200  # observation times: if there are more, meshes do not have a point at each
_FEWEST, _CLOSE, _ROUNDS = 40, 1e-3, 8  # intervals of such a mesh; how well it follows a curve, in its range; rounds
_MOST = 2000
_SMALLEST = 1e-290  # no size of a state is smaller: defects are divided by it
_ROOM = 5_000_000  # numbers in the matrices of paths that are linearised at once
_ROUNDING = 4.0 * np.finfo(float).eps  # of a sum of terms that cancel


def _radau(s: int) -> tuple[Array, Array, Array]:
    """Nodes c (s,), integration matrix A (s, s), and Lagrange coefficients (s+1, s+1) on {0} ∪ c."""
    inner = 0.5 * (roots_jacobi(s - 1, 1.0, 0.0)[0] + 1.0)
    c = np.append(inner, 1.0)
    lagrange = np.linalg.inv(np.vander(c, increasing=True))  # column j: coefficients of the j-th basis polynomial
    powers = c[:, None] ** np.arange(1, s + 1) / np.arange(1, s + 1)
    full = np.linalg.inv(np.vander(np.append(0.0, c), increasing=True))
    return c, powers @ lagrange, full


C, A, _BASIS = _radau(STAGES)
_BASIS_SLOPE = np.stack([P.polyder(col) for col in _BASIS.T], -1)
# Between the last two stages the polynomial is free to disagree with f: there the defect is measured.
_PROBE = np.array([0.5 * C[0], 0.5 * (C[0] + C[1]), 0.5 * (C[1] + C[2]), 0.5 * (C[2] + C[3])])


def basis(at: Array, slope: bool = False) -> Array:
    """Values (..., s+1) of the Lagrange basis on {0} ∪ c (or its derivatives) at fractions of an interval."""
    coefficients = _BASIS_SLOPE if slope else _BASIS
    return np.asarray(at)[..., None] ** np.arange(len(coefficients)) @ coefficients


def mesh_for(curve: Callable[[Array], Array], t: Array, corners: Array) -> Array:
    """A mesh from the first to the last of many times t (N,) whose polynomials follow a curve, t (N,) ↦ x (N, K).

    It has points at the corners, and about as many elsewhere as the curve needs, but no more than there are times.
    """
    mesh = np.union1d(np.linspace(t[0], t[-1], _FEWEST + 1), corners[(corners > t[0]) & (corners < t[-1])])
    size = np.maximum(np.ptp(curve(t[:: max(1, len(t) // 1000)]), axis=0), 1e-300)
    for _ in range(_ROUNDS):
        h = np.diff(mesh)
        inside = mesh[:-1, None] + h[:, None] * np.append(0.0, C)
        between = mesh[:-1, None] + h[:, None] * _PROBE
        x, right = (curve(at.ravel()).reshape(*at.shape, -1) for at in (inside, between))
        error = np.abs((np.einsum("qa,nak->nqk", basis(_PROBE), x) - right) / size).max((1, 2))
        full = np.diff(np.searchsorted(t, mesh)) > 2
        parts = np.where(full, parts_for(error, _CLOSE), 1)
        if (parts == 1).all():
            break
        mesh = split(mesh, parts)
    return mesh


def parts_for(error: Array, tolerance: float) -> Index:
    """Into how many parts intervals (n,) must be divided for errors to be small enough."""
    parts = np.ceil((np.maximum(error, 1e-300) / tolerance) ** (1.0 / (STAGES + 1)) * 1.1).astype(int)
    return np.where(error <= tolerance, 1, np.clip(parts, 2, 8))


def split(mesh: Array, parts: Index) -> Array:
    """A mesh with each of its intervals divided into so many parts (n,)."""
    inner = [np.linspace(a, b, k, endpoint=False) for a, b, k in zip(mesh[:-1], mesh[1:], parts, strict=True)]
    return np.append(np.concatenate(inner), mesh[-1])


def alike(problem: Problem, paths: Sequence[CollocationPath]) -> list[list[int]]:
    """Places of paths that can be linearised side by side: nothing but data tells their experiments apart, and their
    meshes have as many points."""
    groups: dict[int, list[int]] = {}
    for i, path in enumerate(paths):
        condition = problem.condition(path.experiment)
        told_apart = any([problem.split.any, problem.model.inputs, condition.jumps, condition.infusions])
        told_apart |= problem.model.given_initial is not None
        groups.setdefault(-i if told_apart else len(path.mesh), []).append(i)
    return list(groups.values())


class Condensed(NamedTuple):
    """First-order dependence on an experiment's own numbers (parameter_vector.py), W of them, and 1.

    Of B paths at once all of it has a leading axis B, and the violation is (B,).

    Attributes:
        stages: (n, s, K, W+1).
        nodes: (n+1, K, W+1), before any jump there.
        starts: (n, K, W+1), at the beginning of the intervals, after any jump.
        violation: of the collocation equations.
    """

    stages: Array
    nodes: Array
    starts: Array
    violation: Any


def condense(
    problem: Problem, experiment: int, mesh: Array, x0: Array, Z: Array, phi: Array, scale: Array
) -> Condensed:
    """Linearise the collocation equations of B paths and eliminate everything but their own numbers.

    On an interval of length h from the state x the stages Z_a (a = 1 … s) shall solve Z_a = x + h Σ_b A_ab f(Z_b, θ).
    With the residual r of the present path, a change obeys (I − hA⊗f_x) δZ = δx + hA f_φ δφ − r. Solved for the three
    right-hand sides, W gives δZ as a linear function of (δx, δφ, 1); since the last stage is the next node, a recursion
    over the intervals, through the jumps between them, replaces δx of each by the free initial values and φ. The column
    of 1 is the Newton correction.

    Args:
        experiment: whose they are, or one that is like those whose they are (`alike`).
        mesh: of all paths (n+1,), or of each (B, n+1).
        x0, Z, phi: initial values (B, K), states at the stages (B, n, s, K), parameters (B, F).
        scale: of the states (K,), in which the violation of the equations is measured.

    Returns:
        The violation is infinite, and the rest of it not to be used, where a path cannot be linearised.
    """
    B, n, s, K = Z.shape
    if (size := max(1, _ROOM // (n * (s * K) ** 2))) < B:
        places = [slice(i, i + size) for i in range(0, B, size)]
        pieces = [condense(problem, experiment, mesh if mesh.ndim == 1 else mesh[at], x0[at], Z[at], phi[at], scale)
                  for at in places]  # fmt: skip
        return Condensed(*(np.concatenate(parts) for parts in zip(*pieces, strict=True)))
    condition, index = problem.condition(experiment), problem.own_index(experiment)
    own_theta = problem.theta_of(experiment, phi)
    slope = problem.slope(phi)[:, problem.own_phi(experiment)]
    first, F = len(problem.model.free_initial), len(index)  # columns of x0, and of φ
    width = first + F + 1
    begin, end, h = mesh[..., :-1, None], mesh[..., 1:, None], np.diff(mesh)
    t = np.broadcast_to(condition.inside(begin, end, begin + h[..., None] * C), (B, n, s)).ravel()
    f, fx, ft = condition.linearise(t, Z.reshape(-1, K), np.repeat(own_theta, n * s, 0))
    f, fx = f.reshape(B, n, s, K), fx.reshape(B, n, s, K, K)
    with np.errstate(over="ignore", invalid="ignore"):
        ft = ft[..., index].reshape(B, n, s, K, F) * slope[:, None, None, None]
    hA = np.broadcast_to(h[..., None, None] * A, (B, n, s, s))
    before = np.concatenate([x0[:, None], Z[:, :-1, -1]], 1)
    jumps: dict[int, list[tuple[Array, Array]]] = {}
    for i, jump in condition.jumps_on(mesh):
        before[:, i], by_x, by_theta = condition.jumped(jump, before[:, i], own_theta)
        jumps.setdefault(i, []).append((by_x, by_theta[..., index] * slope[:, None]))
    with np.errstate(over="ignore", invalid="ignore"):  # a path may leave the finite numbers on its way
        residual = Z - before[:, :, None] - hA @ f
        # Rates times long intervals are large numbers that cancel: what rounding makes of them is no violation.
        rounding = _ROUNDING * np.abs(hA) @ (np.abs(fx) @ np.abs(Z[..., None]))[..., 0]
        violation = (np.maximum(np.abs(residual) - rounding, 0.0) / scale).max((1, 2, 3))
    good = np.isfinite(violation) & np.isfinite(fx).all((1, 2, 3, 4)) & np.isfinite(ft).all((1, 2, 3, 4))
    if not good.all():
        stages, nodes, starts = (np.full((B, *shape, K, width), np.nan) for shape in ((n, s), (n + 1,), (n,)))
        every = Condensed(stages, nodes, starts, np.full(B, np.inf))
        if good.any():
            own = mesh if mesh.ndim == 1 else mesh[good]
            some = condense(problem, experiment, own, x0[good], Z[good], phi[good], scale)
            for value, found in zip(every, some, strict=True):
                value[good] = found
        return every
    L = -(hA[:, :, :, None, :, None] * fx.transpose(0, 1, 3, 2, 4)[:, :, None])  # (B, n, a, k, b, l)
    L = L.reshape(B, n, s * K, s * K)
    L[..., np.arange(s * K), np.arange(s * K)] += 1.0
    right = np.zeros((B, n, s, K, K + F + 1))
    right[..., :K] = np.eye(K)
    right[..., K : K + F] = (hA @ ft.reshape(B, n, s, K * F)).reshape(B, n, s, K, F)
    right[..., -1] = -residual
    try:
        W = np.asarray(np.linalg.solve(L, right.reshape(B, n, s * K, K + F + 1)), np.float64)
    except np.linalg.LinAlgError:
        W = np.full((B, n, s * K, K + F + 1), np.nan)
    own_nodes = np.zeros((n + 1, B, K, width))  # time first: each step of the recursion is one block
    own_nodes[0, :, problem.model.free_initial, np.arange(first)] = 1.0
    if problem.model.given_initial is not None:
        own_nodes[0, :, :, first:-1] = condition.initial_slopes(own_theta)[..., index] * slope[:, None]
    with np.errstate(over="ignore", invalid="ignore"):  # sensitivities may overflow along a long unstable path
        nodes, starts = _propagate(W, own_nodes, jumps, first)
        inner = W[..., :K] @ starts
        inner[..., first:] += W[..., K:]
    stages = inner.reshape(B, n, s, K, width).astype(np.float64, copy=False)
    finite = np.isfinite(nodes).all((1, 2, 3)) & np.isfinite(stages).all((1, 2, 3, 4))
    return Condensed(stages, nodes, starts, np.where(finite, violation, np.inf))


def _propagate(W: Array, nodes: Array, jumps: dict[int, list[tuple[Array, Array]]], first: int) -> tuple[Array, Array]:
    """Derivatives of the states at the nodes (B, n+1, K, width) and at the starts of intervals (B, n, K, width).

    Args:
        W: derivatives (B, n, sK, K+F+1) of the stages by the start of their own interval, by φ, and the correction.
        nodes: (n+1, B, K, width), of which the first is known.
        jumps: interval → derivatives of the states after jumps at its start by those before and by φ.
        first: number of free initial values, the first columns.
    """
    n, K = W.shape[1], nodes.shape[2]
    starts = nodes[:-1] if not jumps else np.empty_like(nodes[:-1])
    last = np.moveaxis(W[:, :, -K:], 1, 0)
    through, own = np.ascontiguousarray(last[..., :K]), np.ascontiguousarray(last[..., K:])
    for i in range(n):
        if jumps:
            starts[i] = nodes[i]
            for by_x, by_phi in jumps.get(i, ()):
                starts[i] = by_x @ starts[i]
                starts[i, ..., first:-1] += by_phi
        np.matmul(through[i], starts[i], out=nodes[i + 1])
        nodes[i + 1, ..., first:] += own[i]
    return np.moveaxis(nodes, 0, 1), np.moveaxis(starts, 0, 1)


@dataclass(frozen=True)
class CollocationPath:
    """Stage values of one experiment on a mesh.

    Attributes:
        problem, experiment: whose field and inputs to use.
        mesh: (n+1,) increasing times.
        x0: initial values (K,).
        Z: states at the stages (n, s, K); the last stage is the next node.
        starts: states at the beginning of the intervals (n, K), where they jump anywhere; otherwise these are nodes.
    """

    problem: Problem
    experiment: int
    mesh: Array
    x0: Array
    Z: Array
    starts: Array | None = None

    @staticmethod
    def through(problem: Problem, experiment: int, mesh: Array, curve: Callable[[Array], Array]) -> CollocationPath:
        """The path whose states are those of a curve, t (N,) ↦ x (N, K)."""
        blank = CollocationPath(problem, experiment, mesh, np.empty(0), np.empty(0))
        Z = curve(blank.stage_times.ravel()).reshape(*blank.stage_times.shape, -1)
        starts = curve(mesh[:-1]) if problem.condition(experiment).jumps else None
        return CollocationPath(problem, experiment, mesh, curve(mesh[:1])[0], Z, starts)

    @property
    def nodes(self) -> Array:
        """States at the mesh points (n+1, K)."""
        return np.concatenate([self.x0[None], self.Z[:, -1]])

    @property
    def stage_times(self) -> Array:
        return self.mesh[:-1, None] + np.diff(self.mesh)[:, None] * C

    @property
    def begun(self) -> Array:
        """States at the beginning of the intervals (n, K), after any jump."""
        return self.nodes[:-1] if self.starts is None else self.starts

    def _interval_values(self) -> Array:
        """The values (n, s+1, K) at the beginning and at the stages of each interval."""
        return np.concatenate([self.begun[:, None], self.Z], 1)

    def condense(self, phi: Array, scale: Array) -> Condensed:
        """Linearise the collocation equations and eliminate everything but the experiment's own numbers."""
        return condense_paths(self.problem, [self], phi, scale)[0]

    def move(self, lin: Condensed, move: Array, phi: Array) -> CollocationPath:
        """The path after a first-order step, which also applies the Newton correction.

        Args:
            move: of the experiment's own numbers (W,).
            phi: free parameters (F,) after the step.
        """
        direction = np.append(move, 1.0)
        starts = None if self.starts is None else self.starts + lin.starts @ direction
        return replace(self, x0=self.x0_at(move, phi), Z=self.Z + lin.stages @ direction, starts=starts)

    def x0_at(self, move: Array, phi: Array) -> Array:
        """The initial values (K,) after a step of the own numbers (W,) to φ (F,)."""
        m = self.problem.model
        if m.given_initial is None:
            return np.asarray(self.x0 + move[: len(self.x0)])
        free = self.x0[m.free_initial] + move[: len(m.free_initial)]
        theta = self.problem.theta_of(self.experiment, phi[None])
        return np.asarray(self.problem.condition(self.experiment).initial(theta, free[None])[0])

    def towards(self, other: CollocationPath, share: float) -> CollocationPath:
        """A share of the way to another path on the same mesh."""
        x0, Z = self.x0 + share * (other.x0 - self.x0), self.Z + share * (other.Z - self.Z)
        starts = None
        if self.starts is not None and other.starts is not None:
            starts = self.starts + share * (other.starts - self.starts)
        return replace(self, x0=x0, Z=Z, starts=starts)

    def _locate(self, t: Array, after: bool = False) -> tuple[Index, Array]:
        """The interval (N,) that each time lies in, and where in it (N,); at its points, the one before or after."""
        i = np.searchsorted(self.mesh, t, side="right" if after else "left") - 1
        i = np.clip(i, 0, len(self.mesh) - 2)
        return i, (t - self.mesh[i]) / np.diff(self.mesh)[i]

    def at(self, t: Array, after: bool = False) -> tuple[Array, Array]:
        """States and their slopes (N, K) at times inside the mesh, by the collocation polynomials.

        Args:
            after: where states jump at such a time, those after the jump instead of those before.
        """
        i, c = self._locate(t, after)
        values = self._interval_values()[i]
        x = np.einsum("na,nak->nk", basis(c), values)
        if self.starts is not None and not after:
            x[t == self.mesh[0]] = self.x0
        return x, np.einsum("na,nak->nk", basis(c, slope=True), values) / np.diff(self.mesh)[i][:, None]

    def sensitivity_at(self, lin: Condensed, t: Array) -> Array:
        """Sensitivities (N, K, W) to the experiment's own numbers at times inside the mesh, before any jump there."""
        i, c = self._locate(t)
        maps = np.concatenate([lin.starts[:, None], lin.stages], 1)[i]
        found = np.einsum("na,nakp->nkp", basis(c), maps)
        if self.starts is not None:
            found[t == self.mesh[0]] = lin.nodes[0]
        return np.asarray(found[..., :-1])

    def defects(self, phi: Array, scale: Array) -> Array:
        """Compute the largest h·|dx/dt − f|/size between the stages of each interval (n,).

        The size of a state is the largest value that it has had, but no more than its scale: growth multiplies an early
        error as it multiplies the state. A state that starts at zero has its scale.
        """
        K = self.Z.shape[-1]
        h = np.diff(self.mesh)
        values = self._interval_values()
        x = np.einsum("qa,nak->nqk", basis(_PROBE), values)
        slope = np.einsum("qa,nak->nqk", basis(_PROBE, slope=True), values) / h[:, None, None]
        t = (self.mesh[:-1, None] + h[:, None] * _PROBE).ravel()
        condition, theta = self.problem.condition(self.experiment), self.problem.theta_of(self.experiment, phi)
        f = condition.linearise(t, x.reshape(-1, K), theta)[0].reshape(x.shape)
        size = np.minimum(np.maximum.accumulate(np.abs(values).max(1)), scale)
        size = np.where(self.x0 == 0.0, scale, np.maximum(size, _SMALLEST))
        return np.asarray(np.abs((slope - f) * h[:, None, None] / size[:, None]).max((1, 2)))

    def states(self, t: Array) -> Array:
        """States (N, K) at times inside the mesh, before any jump; to the last digit at its points."""
        node = np.minimum(np.searchsorted(self.mesh, t), len(self.mesh) - 1)
        return np.asarray(self.nodes[node]) if (self.mesh[node] == t).all() else self.at(t)[0]

    def on_mesh(self, mesh: Array) -> CollocationPath:
        """The same curve on another mesh."""
        moved = CollocationPath.through(self.problem, self.experiment, mesh, lambda t: self.at(t)[0])
        starts = None if self.starts is None else self.at(mesh[:-1], after=True)[0]
        return replace(moved, x0=self.x0, starts=starts)

    def refined(self, phi: Array, scale: Array, tolerance: float, most: int = _MOST) -> CollocationPath | None:
        """The path on a mesh split where the defect is too large, or None if it is small everywhere.

        Args:
            most: intervals, where there are not more observation times.
        """
        most = max(most, len(self.problem.condition(self.experiment).times))
        defect = self.defects(phi, scale)
        if not np.isfinite(defect).all():
            return None
        parts = parts_for(defect, tolerance)
        if (parts == 1).all() or parts.sum() > most:
            return None
        return self.on_mesh(split(self.mesh, parts))


def condense_paths(
    problem: Problem, paths: Sequence[CollocationPath], phi: Array, scale: Array
) -> tuple[Condensed, ...]:
    """Each path linearised at φ (F,), those alike at once; empty, and violated infinitely, where it cannot be."""
    found: dict[int, Condensed] = {}
    for group in alike(problem, paths):
        some = [paths[i] for i in group]
        mesh, x0, Z = (np.stack([getattr(p, name) for p in some]) for name in ("mesh", "x0", "Z"))
        phis = np.broadcast_to(phi, (len(some), len(phi)))
        many = condense(problem, some[0].experiment, mesh[0] if len(some) == 1 else mesh, x0, Z, phis, scale)
        for j, i in enumerate(group):
            violation = float(many.violation[j])
            stages, nodes, starts = (v[j] if np.isfinite(violation) else np.empty(0) for v in many[:3])
            found[i] = Condensed(stages, nodes, starts, violation)
    return tuple(found[i] for i in range(len(paths)))
