"""Generations of starts, each followed side by side: fresh ones, and changed copies of the best ends so far.

The search ends when several fresh starts have led to the best maximum, or none has become better for some generations,
and changed copies of the best have not led away from it. Steps are coarse as long as the best end is worth the same
with fine ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from odinfer.trajectory.finding.follow import Ends, follow
from odinfer.trajectory.finding.side_by_side import SideBySide

Array = NDArray[np.float64]

_FRESH, _CHANGED = 16, 16  # starts of a generation; the first has none that are changed
_MOST, _STALE = 12, 4  # generations at all, and in a row without a better end
_AGREE, SAME = 3, 0.05  # fresh starts that must agree with the best, and to how much
_PARENTS, _APART = 5, 0.1  # ends that are changed, and by how much they differ, in nats
_WIDTHS = (0.3, 1.0, 2.0)  # in e-folds, or steps of length one
_REDRAWN = 0.3  # the share of unknowns that are drawn anew


@dataclass
class Generations:
    """What became of all starts.

    Attributes:
        v, value: unknowns (B, P) and objectives (B,), infinite where a start led nowhere.
        fresh: which of them were not made from others (B,).
    """

    v: Array
    value: Array = field(default_factory=lambda: np.empty(0))
    fresh: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, bool))

    @property
    def agreeing(self) -> int:
        """Fresh starts that led to the best end."""
        return int((self.value[self.fresh] < self.value.min() + SAME).sum())

    def add(self, v: Array, value: Array, fresh: NDArray[np.bool_]) -> None:
        self.v = np.concatenate([self.v, v])
        self.value = np.concatenate([self.value, value])
        self.fresh = np.concatenate([self.fresh, fresh])


def generations(
    solver: SideBySide, fresh: Iterator[Array], rng: np.random.Generator, done: Callable[[Generations], bool],
    followed: Callable[[SideBySide, Array, float], Ends] = follow, width: int = 1,
) -> Iterator[Generations]:  # fmt: skip
    """All starts so far, generation by generation.

    Args:
        fresh: unknowns (P,) to start from, without end.
        done: asked where starts agree and no copy led further: whether that is good enough.
        followed: what follows the starts of a generation.
        width: how many times as many starts as usual a generation has.
    """
    found = Generations(np.empty((0, solver.like.unknowns.size)))
    finer: SideBySide | None = solver.finer()
    stale = 0
    for i in range(_MOST):
        new = np.stack([next(fresh) for _ in range(width * _FRESH)])
        copies = changed(solver, found, rng, width * _CHANGED) if i and np.isfinite(found.value).any() else new[:0]
        best = float(found.value.min(initial=np.inf))
        ends = followed(solver, np.concatenate([new, copies]), best)
        found.add(ends.v, ends.value, np.arange(len(ends.v)) < len(new))
        if finer is not None and not _true(finer, found):  # what was found is due to errors of the steps
            solver, finer = finer, None
            found.value, best = _values(solver, found.v), np.inf
        stale = 0 if found.value.min() < best - SAME else stale + 1
        yield found
        if stale >= _STALE or (stale and len(copies) and found.agreeing >= _AGREE and done(found)):
            break


def _true(finer: SideBySide, found: Generations) -> bool:
    """Whether the best end is worth what was found, as far as more accurate steps can tell."""
    best = int(found.value.argmin())
    if not np.isfinite(found.value[best]):
        return True
    return bool(abs(_values(finer, found.v[best : best + 1])[0] - found.value[best]) <= SAME)


def _values(solver: SideBySide, v: Array) -> Array:
    """Objectives (B,) at unknowns (B, P)."""
    return np.asarray(solver.solve(v).worth.value)


def changed(solver: SideBySide, found: Generations, rng: np.random.Generator, count: int) -> Array:
    """Unknowns (count, P): the best ends that differ, moved, crossed, or with some unknowns drawn anew."""
    u = solver.like.unknowns
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
        if n % 3 == 0:
            own += _WIDTHS[n // 3 % len(_WIDTHS)] * size * rng.normal(size=len(own))
        elif n % 3 == 1 and len(parents) > 1:
            other = found.v[parents[int(rng.integers(len(parents)))]]
            own = np.where(rng.uniform(size=len(own)) < 0.5, own, other) + _WIDTHS[0] * size * rng.normal(size=len(own))
        else:
            pick = rng.uniform(size=len(own)) < _REDRAWN
            anew = np.where(np.isfinite(u.low) & np.isfinite(u.high), rng.uniform(size=len(own)), np.nan)
            with np.errstate(invalid="ignore"):
                anew = u.low + anew * (u.high - u.low)
            away = own + 3.0 * size * rng.normal(size=len(own))
            own = np.where(pick, np.where(np.isfinite(anew), anew, away), own)
        copies.append(np.clip(own, u.low, u.high))
    return np.stack(copies)
