"""Evolutionary multi-start: generations of new start points and of mutated copies of the best optima.

The search ends when several fresh starts have led to the best maximum, or none has become better for some generations,
and changed copies of the best have not led away from it. What counts as better is relative to what is left to explain:
a wrong model is not searched for fractions of a nat. Steps of integration are coarse as long as fine ones give the best
optimum the same objective.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from odinfer.likelihood.batch_likelihood import BatchLikelihood
from odinfer.search.trust_region import TrustRegionResult, minimise_batch

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Fresh starts of the first generation, and of those that only confirm a best end; each other one has twice as many as
# the one before, up to that.
_FRESH, _MOST_FRESH = 16, 128
_CHANGED = 32  # changed copies in a generation, at most, and twice as many after each that made nothing better
_TRAJECTORIES = 1024  # of fresh starts in all experiments, at most: each keeps its steps in memory
_FEW = 8  # searches that are carried on with the next generation
_MOST, _STALE = 30, 4  # generations at all, and in a row without a better end
_GAINS = 8  # like that of the last generation, in which the signal that the best end leaves must be gone
_AGREE, SAME = 3, 0.05  # fresh starts that must agree with the best, and to how much
_PARENTS, _APART = 5, 0.1  # ends that are changed, and by how much they differ, in nats
_WIDTHS = (0.3, 1.0, 2.0)  # in e-folds, or steps of length one
_REDRAWN = 0.3  # the share of unknowns that are drawn anew
_FINER = 0.1  # of the tolerance, until the best end is worth what it seems to be


@dataclass
class StartGenerations:
    """What became of all starts.

    Attributes:
        v, value: unknowns (B, P) and objectives (B,), infinite where a start led nowhere.
        fresh: which of them were not made from others (B,).
        left: which of them are still on their way (B,).
    """

    v: Array
    value: Array = field(default_factory=lambda: np.empty(0))
    fresh: Mask = field(default_factory=lambda: np.empty(0, bool))
    left: Mask = field(default_factory=lambda: np.empty(0, bool))

    @property
    def agreeing(self) -> int:
        """Fresh starts that led to the best end."""
        return int((self.value[self.fresh] < self.best + SAME).sum())

    @property
    def best(self) -> float:
        return float(self.value.min(initial=np.inf))

    def advance(self, v: Array, fresh: Mask, followed: Callable[[Array, float], TrustRegionResult]) -> None:
        """Follow starts (b, P), and those that are still on their way."""
        v, fresh = np.concatenate([v, self.v[self.left]]), np.concatenate([fresh, self.fresh[self.left]])
        ends, done = followed(v, self.best), ~self.left
        self.v = np.concatenate([self.v[done], ends.v])
        self.value = np.concatenate([self.value[done], ends.value])
        self.fresh = np.concatenate([self.fresh[done], fresh])
        self.left = np.concatenate([self.left[done], ends.left])


def follow_most(solver: BatchLikelihood, v: Array, best: float) -> TrustRegionResult:
    """Follow starts (B, P), but leave the last few on their way: they go on beside those of the next generation."""
    return minimise_batch(solver, v, best, few=_FEW)


def generations(
    solver: BatchLikelihood, fresh: Iterator[Array], rng: np.random.Generator, done: Callable[[StartGenerations], bool],
    followed: Callable[[BatchLikelihood, Array, float], TrustRegionResult] = follow_most, width: int = 1,
) -> Iterator[StartGenerations]:  # fmt: skip
    """All starts so far, generation by generation.

    Args:
        fresh: unknowns (P,) to start from, without end.
        done: asked where starts agree and no copy led further: whether that is good enough.
        followed: what follows the starts of a generation, and may leave some on their way.
        width: how many times as many starts as usual a generation has.
    """
    found = StartGenerations(np.empty((0, solver.likelihood.unknowns.size)))
    finest = solver.finer()
    widest = max(_FRESH, min(_MOST_FRESH, _TRAJECTORIES // solver.likelihood.unknowns.experiments))
    stale = 0
    for i in range(_MOST):
        count = _FRESH if np.isfinite(found.best) and found.agreeing >= _AGREE else min(_FRESH * 2**i, widest)
        new = np.stack([next(fresh) for _ in range(width * count)])
        copies = (
            mutated_copies(solver, found, rng, width * min(count, _CHANGED * 2**stale))
            if i and np.isfinite(found.value).any()
            else new[:0]
        )
        starts, are_fresh = np.concatenate([new, copies]), np.arange(len(new) + len(copies)) < len(new)
        best = found.best
        found.advance(starts, are_fresh, functools.partial(followed, solver))
        negligible = _negligible(solver, found)
        # What was found may be due to errors of the steps.
        if (exact := _accurate(solver, finest, found, negligible)) is not solver:
            solver = exact
            found.value, best = _values(solver, found.v), np.inf
        stale = 0 if found.best < best - negligible else stale + 1
        last = i == _MOST - 1 or stale >= _STALE or not solver.likelihood.unknowns.size
        if last or (stale and len(copies) and found.agreeing >= _AGREE and done(found)):
            if found.left.any():
                found.advance(new[:0], are_fresh[:0], functools.partial(minimise_batch, solver))
            if last or found.best >= best - SAME:
                yield found
                break
            stale = 0
        yield found


def _negligible(solver: BatchLikelihood, found: StartGenerations) -> float:
    """Nats that do not matter: a few gains like that would not explain the signal that the best end leaves."""
    if not np.isfinite(found.best):
        return SAME
    solved = solver.solve(found.v[[found.value.argmin()]])
    states, phi = solver.states(solved.trajectories), solver.likelihood.unknowns.phi(solved.v)
    signal = np.nan_to_num(solver.likelihood.signal(states, solved.worth.noise[0], phi))
    return float(max(SAME, np.maximum(signal, 0.0).sum() / _GAINS))


def _accurate(
    solver: BatchLikelihood, finest: BatchLikelihood, found: StartGenerations, error: float
) -> BatchLikelihood:
    """The same solver, or one with steps so much finer that the best end is worth what the finest say it is."""
    best = int(found.value.argmin())
    if not np.isfinite(found.value[best]) or solver.tolerance <= finest.tolerance:
        return solver
    v, value = found.v[best : best + 1], found.value[best]
    true = _values(finest, v)[0]
    while solver.tolerance > finest.tolerance and not abs(value - true) <= error:
        finer = max(_FINER * solver.tolerance, finest.tolerance)
        solver = replace(solver, tolerance=finer, most=finest.most)
        value = _values(solver, v)[0]
    return solver


def _values(solver: BatchLikelihood, v: Array) -> Array:
    """Objectives (B,) at unknowns (B, P)."""
    parts = range(0, len(v), _MOST_FRESH)
    return np.concatenate([solver.solve(v[i : i + _MOST_FRESH]).worth.value for i in parts])


def mutated_copies(solver: BatchLikelihood, found: StartGenerations, rng: np.random.Generator, count: int) -> Array:
    """Unknowns (count, P): the best ends that differ, moved, crossed, or with one unknown or some drawn anew."""
    u = solver.likelihood.unknowns
    parents: list[int] = []
    for i in np.argsort(found.value):
        if np.isfinite(found.value[i]) and all(found.value[i] > found.value[j] + _APART for j in parents):
            parents.append(int(i))
        if len(parents) == _PARENTS:
            break
    copies = []
    for n in range(count):
        # Every other copy is of the best.
        own = found.v[parents[0 if n % 2 == 0 else int(rng.integers(len(parents)))]].copy()
        size = solver.unit(own[None])[0]
        if n % 4 == 0:
            own += _WIDTHS[n // 4 % len(_WIDTHS)] * size * rng.normal(size=len(own))
        elif n % 4 == 1 and len(parents) > 1:
            other = found.v[parents[int(rng.integers(len(parents)))]]
            own = np.where(rng.uniform(size=len(own)) < 0.5, own, other) + _WIDTHS[0] * size * rng.normal(size=len(own))
        else:
            pick = rng.uniform(size=len(own)) < (_REDRAWN if n % 4 == 2 else 0.0)
            pick[rng.integers(len(own))] = True
            anew = np.where(np.isfinite(u.low) & np.isfinite(u.high), rng.uniform(size=len(own)), np.nan)
            with np.errstate(invalid="ignore"):
                anew = u.low + anew * (u.high - u.low)
            away = own + 3.0 * size * rng.normal(size=len(own))
            own = np.where(pick, np.where(np.isfinite(anew), anew, away), own)
        copies.append(np.clip(own, u.low, u.high))
    return np.stack(copies)
