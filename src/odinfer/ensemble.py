"""Many trajectories of one problem side by side: what profiles and bootstraps are made of.

All start from one refined trajectory and share its meshes. Each is carried to its own maximum of the likelihood,
under its own observations (a bootstrap) or with one quantity held at a value of its own (a profile).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from odinfer.collocation import Condensed, condense
from odinfer.refine import Likelihood, Refined
from odinfer.risk import prior_in_phi

Array = NDArray[np.float64]
Index = NDArray[np.int64]

# At this violation of the collocation equations one more Newton correction, already known, leaves about its square.
_FEASIBLE = 1e-4


def nodes(x0: Array, Z: Array) -> Array:
    """States (B, n+1, K) at the points of a mesh, from initial values and states at the stages of an experiment."""
    return np.concatenate([x0[:, None], Z[:, :, -1]], 1)


@dataclass(frozen=True)
class Ensemble:
    """B trajectories.

    Attributes:
        phi: free parameters (B, F).
        x0, Z: per experiment, initial values (B, K) and states at the stages (B, n, s, K).
        lins: per experiment, sensitivities.
        rss: residual sums of squares (B, K).
        objective: −log-likelihood − log p(θ) at the best noise (B,); infinite where there is no trajectory.
    """

    phi: Array
    x0: tuple[Array, ...]
    Z: tuple[Array, ...]
    lins: tuple[Condensed, ...]
    rss: Array
    objective: Array

    def take(self, index: Index) -> Ensemble:
        """Those at `index`."""
        return Ensemble(
            self.phi[index], tuple(v[index] for v in self.x0), tuple(v[index] for v in self.Z),
            tuple(Condensed(*(v[index] for v in lin)) for lin in self.lins), self.rss[index], self.objective[index],
        )  # fmt: skip

    def put(self, index: Index, other: Ensemble) -> Ensemble:
        """With those at `index` replaced by all of `other`."""

        def merged(old: Array, new: Array) -> Array:
            old = old.copy()
            old[index] = new
            return old

        def each(old: Sequence[Array], new: Sequence[Array]) -> tuple[Array, ...]:
            return tuple(merged(o, n) for o, n in zip(old, new, strict=True))

        return Ensemble(
            merged(self.phi, other.phi), each(self.x0, other.x0), each(self.Z, other.Z),
            tuple(Condensed(*each(o, n)) for o, n in zip(self.lins, other.lins, strict=True)),
            merged(self.rss, other.rss), merged(self.objective, other.objective),
        )  # fmt: skip

    @property
    def unknowns(self) -> Array:
        """Initial values of every experiment and φ (B, P)."""
        return np.concatenate([*self.x0, self.phi], 1)


class Held(Protocol):
    """A quantity of each trajectory that is held at a value of its own."""

    def take(self, index: Index) -> Held: ...

    def value(self, ensemble: Ensemble) -> Array:
        """(B,)"""
        ...

    def gradient(self, ensemble: Ensemble) -> Array:
        """By the unknowns, (B, P)."""
        ...


@dataclass(frozen=True)
class Bundle:
    """What the trajectories share: the likelihood and the meshes; and the observations, where they have their own.

    Attributes:
        y: per experiment (B, N, K), or (1, N, K) for the data themselves.
    """

    like: Likelihood
    meshes: tuple[Array, ...]
    y: tuple[Array, ...]

    @staticmethod
    def of(like: Likelihood, refined: Refined, y: Sequence[Array] | None = None) -> Bundle:
        return Bundle(like, tuple(p.mesh for p in refined.paths), tuple(y or (v[None] for v in like.y)))

    def take(self, index: Index) -> Bundle:
        return replace(self, y=tuple(v if len(v) == 1 else v[index] for v in self.y))

    def start(self, refined: Refined, size: int) -> Ensemble:
        """`size` copies of a refined trajectory."""

        def copies(v: Array) -> Array:
            return np.repeat(v[None], size, 0)

        x0, Z = (tuple(copies(getattr(p, name)) for p in refined.paths) for name in ("x0", "Z"))
        lins = tuple(Condensed(copies(c.stages), copies(c.nodes), np.zeros(size)) for c in refined.condensed)
        return self.judged(copies(refined.phi), x0, Z, lins)

    def nodes(self, x0: Array, Z: Array, e: int) -> Array:
        """States (B, N, K) at the observation times of an experiment."""
        return nodes(x0, Z)[:, np.searchsorted(self.meshes[e], self.like.t[e])]

    def judged(self, phi: Array, x0: tuple[Array, ...], Z: tuple[Array, ...], lins: tuple[Condensed, ...]) -> Ensemble:
        """An ensemble with its objective; infinite where the equations are not solved."""
        with np.errstate(over="ignore", invalid="ignore"):
            rss = np.sum([np.nansum((self.nodes(a, b, e) - self.y[e]) ** 2, 1) for e, (a, b) in
                          enumerate(zip(x0, Z, strict=True))], 0)  # fmt: skip
            v = self.like.variance(rss)
            value = 0.5 * (self.like.n * np.log(2 * np.pi * v) + rss / v).sum(-1)
        if self.like.problem.penalty:
            value = value + np.array([prior_in_phi(self.like.problem, p)[0] for p in phi])
        solved = np.max([lin.violation for lin in lins], 0) <= _FEASIBLE
        return Ensemble(phi, x0, Z, lins, rss, np.where(solved & np.isfinite(value), value, np.inf))

    def moved(self, ensemble: Ensemble, move: Array, most: int = 8) -> Ensemble:
        """The trajectories from x0 + δx0 at φ + δφ, move (B, P), by Newton from a first-order guess."""
        like, K = self.like, len(self.like.scale)
        E = len(self.meshes)
        B, F = ensemble.phi.shape
        phi = ensemble.phi + move[:, E * K :]
        x0, Z, lins = [], [], []
        for e, mesh in enumerate(self.meshes):
            dx0 = move[:, e * K : (e + 1) * K]
            direction = np.concatenate([dx0, move[:, E * K :], np.zeros((B, 1))], 1)
            at = ensemble.Z[e] + (ensemble.lins[e].stages @ direction[:, None, None, :, None])[..., 0]
            first = ensemble.x0[e] + dx0
            kept = Condensed(np.empty((B, *at.shape[1:], K + F + 1)), np.empty((B, len(mesh), K, K + F + 1)),
                             np.full(B, np.inf))  # fmt: skip
            left, worst = np.arange(B), np.full(B, np.inf)
            for _ in range(most):
                lin = condense(like.problem, e, mesh, first[left], at[left], phi[left], like.scale)
                for old, new in zip(kept, lin, strict=True):
                    old[left] = new
                usable = np.isfinite(lin.violation) & (lin.violation < 100.0 * worst[left])
                kept.violation[left[~usable]] = np.inf
                worst[left] = lin.violation
                at[left[usable]] += lin.stages[usable][..., -1]
                left = left[usable & (lin.violation > _FEASIBLE)]
                if not len(left):
                    break
            x0.append(first)
            Z.append(at)
            lins.append(kept)
        return self.judged(phi, tuple(x0), tuple(Z), tuple(lins))

    def normal(self, ensemble: Ensemble) -> tuple[Array, Array]:
        """Gauss–Newton Hessians (B, P, P) and gradients (B, P) of the objective."""
        E, K = len(self.meshes), len(self.like.scale)
        B, F = ensemble.phi.shape
        H, g = np.zeros((B, E * K + F, E * K + F)), np.zeros((B, E * K + F))
        v = self.like.variance(ensemble.rss)
        for e, lin in enumerate(ensemble.lins):
            r = self.nodes(ensemble.x0[e], ensemble.Z[e], e) - self.y[e]
            root = np.where(np.isfinite(r), np.sqrt(1.0 / v)[:, None], 0.0)
            J = lin.nodes[:, np.searchsorted(self.meshes[e], self.like.t[e])][..., :-1] * root[..., None]
            J, r = J.reshape(B, -1, K + F), (np.nan_to_num(r) * root).reshape(B, -1, 1)
            index = np.r_[e * K : (e + 1) * K, E * K : E * K + F]
            JT = np.swapaxes(J, 1, 2)
            H[:, index[:, None], index] += JT @ J
            g[:, index] += (JT @ r)[..., 0]
        if self.like.problem.penalty:
            for b, phi in enumerate(ensemble.phi):
                _, gp, Hp = prior_in_phi(self.like.problem, phi)
                w, V = np.linalg.eigh(Hp)
                g[b, E * K :] += gp
                H[b, E * K :, E * K :] += (V * np.maximum(w, 0.0)) @ V.T
        return H, g

    def step(
        self, ensemble: Ensemble, H: Array, g: Array, damping: Array, a: Array | None = None, gap: Array | None = None
    ) -> tuple[Array, Array]:
        """Damped steps (B, P) within the bounds along which aᵀδ = gap, and how much the objective should still fall."""
        B, P = g.shape
        at = ensemble.unknowns
        low, high = self.like.low, self.like.high
        if a is None or gap is None:
            push, border = g, np.zeros((B, P))
        else:
            # The multiplier of the held quantity takes its part of the gradient.
            push, border = g - ((g * a).sum(1) / np.maximum((a * a).sum(1), 1e-300))[:, None] * a, a
        held = ((at <= low) & (push > 0)) | ((at >= high) & (push < 0))
        if a is not None:
            held &= a == 0.0
        d = np.sqrt(np.maximum(np.einsum("bii->bi", H), 1e-300))
        S = np.zeros((B, P + 1, P + 1))
        S[:, :P, :P] = H / (d[:, :, None] * d[:, None, :])
        S[:, np.arange(P), np.arange(P)] += damping[:, None]
        S[:, :P, :P] *= ~held[:, :, None] & ~held[:, None, :]
        S[:, np.arange(P), np.arange(P)] += held
        edge = np.where(held, 0.0, border) / d
        size = np.maximum(np.abs(edge).max(1), 1e-300)
        S[:, :P, P] = S[:, P, :P] = edge / size[:, None]
        S[:, P, P] = np.where(np.abs(edge).max(1) > 0, 0.0, 1.0)
        right = np.zeros((B, P + 1, 2))
        right[:, :P, 0] = right[:, :P, 1] = np.where(held, 0.0, -g / d)
        if gap is not None:
            right[:, P, 0] = gap / size
        try:
            found = np.linalg.solve(S, right)
        except np.linalg.LinAlgError:
            found = np.stack([np.linalg.pinv(s) @ r for s, r in zip(S, right, strict=True)])
        move, still = found[:, :P, 0] / d, found[:, :P, 1] / d
        fall = -0.5 * (g * still).sum(1)  # of a Gauss–Newton step that keeps the held quantity where it is
        return np.clip(at + move, low, high) - at, np.maximum(fall, 0.0)

    def maximise(
        self, ensemble: Ensemble, held: Held | None = None, target: Array | None = None,
        most: int = 30, tolerance: float = 1e-6,
    ) -> Ensemble:  # fmt: skip
        """Carry each to its maximum of the likelihood, the held quantity at its target (B,), by Levenberg–Marquardt."""
        B = len(ensemble.phi)
        damping, active = np.full(B, 1e-4), np.flatnonzero(np.isfinite(ensemble.objective))
        for _ in range(most):
            if not len(active):
                break
            now, part = ensemble.take(active), self.take(active)
            H, g = part.normal(now)
            a = gap = None
            if held is not None and target is not None:
                own = held.take(active)
                a, gap = own.gradient(now), target[active] - own.value(now)
            move, fall = part.step(now, H, g, damping[active], a, gap)
            trial = part.moved(now, move)
            # Where the held quantity is still on its way the objective may rise.
            open_ = np.zeros(len(active), bool) if gap is None or a is None else _far(gap, a, H)
            better = (trial.objective <= now.objective) | (open_ & np.isfinite(trial.objective))
            gain = np.where(better, now.objective - trial.objective, 0.0)
            ensemble = ensemble.put(active[better], trial.take(np.flatnonzero(better)))
            damping[active] = np.where(better, np.maximum(0.1 * damping[active], 1e-10), 10.0 * damping[active])
            done = ~open_ & ((better & (gain < tolerance)) | (fall < 0.1 * tolerance))
            active = active[~done & (damping[active] < 1e8)]
        return ensemble


def _far(gap: Array, a: Array, H: Array) -> NDArray[np.bool_]:
    """Whether a held quantity is further from its target than a thousandth of its own standard deviation or so."""
    size = np.sqrt((a * a / np.maximum(np.einsum("bii->bi", H), 1e-300)).sum(1))
    return np.asarray(np.abs(gap) > 1e-3 * size)
