"""Maximise the likelihood from many start points in a batch, each with its own trust region.

Searches that have arrived, or that are so far behind the best that they will not get there, are not carried on. A
round costs hardly less for few than for many, so that the last few may be left for a later occasion.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.likelihood.batch_likelihood import BatchLikelihood, BatchSolution
from odinfer.optimize.trust_region_step import trust_region_step

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_RADIUS, _LARGEST, _LEAST = 2.0, 20.0, 1e-5  # in e-folds: at first, at most, and where a search is over
_GOOD, _POOR, _ANY = 0.75, 0.25, 1e-4  # shares of the fall that was foretold
_STEEPEST = 1e4  # standard deviations that a unit of an unknown may amount to
ROUNDS = 200  # at most
_ENOUGH, _QUIET = 1e-3, 3  # nats that a step must gain, or that many in a row end a search
_LONGER, _MORE = 3, 50  # a trial may take so many times the steps of where it comes from, and so many more
_MUCH = 0.05  # nats that make a difference
# Of patient searches: e-folds below which steps are short, and how many times what they must gain these must promise,
# to be tried from beside the ridge, too.
_NARROW, _SIDEWAYS = 0.5, 3.0
# A search is given up where so many times what the last so many rounds gained is too little, and has arrived where
# these gained less than so many nats.
_WINDOW, _HOPE, _SLOW = 10, 8.0, 0.01


class HeldUnknown(NamedTuple):
    """One unknown of each of B searches: its place (B,) in v and its value (B,)."""

    place: Index
    value: Array


@dataclass(frozen=True)
class TrustRegionResult:
    """Where B searches ended: unknowns (B, P), objectives (B,), infinite where there was no trajectory, whether each
    has arrived (B,), whether it was left on its way (B,), whether it would have gone on to where trajectories take
    too many steps (B,), and the rounds that each took (B,)."""

    v: Array
    value: Array
    settled: NDArray[np.bool_]
    left: NDArray[np.bool_]
    blocked: NDArray[np.bool_]
    rounds: Index


def minimise_batch(
    solver: BatchLikelihood, v: Array, best: float | Array = np.inf, rounds: int = ROUNDS, few: int = 0,
    held: HeldUnknown | None = None, group: Index | None = None, enough: float | Array = -np.inf, patient: bool = False,
) -> TrustRegionResult:  # fmt: skip
    """From unknowns v (B, P) downhill.

    Args:
        best: objective that is known to be possible, or one for each (B,): searches that will not come near it, or near
            the best of their group, are given up.
        few: where no more than so many are left, they are left on their way.
        held: an unknown of each that stays where it is put.
        group: numbers (B,) of those that are after the same maximum; all are if they are not given.
        enough: objective (B,) below which it does not matter what else a group could find, if it finds it slowly.
        patient: follow narrow ridges that bend, too, however slowly.
    """
    u, projected = solver.likelihood.unknowns, held is None  # gauges would move what is held
    B, P = v.shape
    low, high = (np.tile(bound, (B, 1)) for bound in (u.low, u.high))
    if held is not None:
        low[np.arange(B), held.place] = high[np.arange(B), held.place] = held.value
    best, enough = (np.broadcast_to(np.asarray(value, float), B) for value in (best, enough))
    group = np.zeros(B, np.int64) if group is None else group
    groups = [np.flatnonzero(group == own) for own in np.unique(group)]
    v = np.clip(v, low, high)
    H, g = np.zeros((B, P, P)), np.zeros((B, P))
    radius, quiet, (settled, blocked) = np.full(B, _RADIUS), np.zeros(B, int), np.zeros((2, B), bool)
    past = np.full((_WINDOW, B), np.inf)
    solved = solver.solve(v, projected)
    v, value = solved.v.copy(), solved.worth.value.copy()
    left, tries, taken_rounds = np.flatnonzero(np.isfinite(value)), solved.tries, np.zeros(B, int)
    if not P:  # nothing is unknown
        return TrustRegionResult(v, value, np.isfinite(value), blocked, blocked, taken_rounds)
    _renew(solver, solved, left, left, H, g)
    for i in range(rounds):
        left = left[np.isfinite(g[left]).all(1) & np.isfinite(H[left]).all((1, 2))]
        if len(left) <= few:
            break
        taken_rounds[left] = i + 1
        unit = _limit_steepness(solver.unit(v[left]), H[left])
        parts = v[left], H[left], g[left], low[left], high[left]
        move, fall = trust_region_step(*parts, unit, radius[left], (u.experiments, len(u.initial)))
        length = np.sqrt(((move / unit) ** 2).sum(1))
        most = _LONGER * tries[left] + _MORE
        solved = solver.solve(v[left] + move, projected, most)
        to, reached, taken = solved.v.copy(), solved.worth.value.copy(), solved.tries.copy()
        back, (astray, won) = None, np.empty((2, 0), np.int64)
        if patient:
            # A step along a narrow ridge that bends ends beside it, however right its direction was.
            poor = (value[left] - reached < _POOR * fall) & (fall > _SIDEWAYS * _ENOUGH) & (length < _NARROW)
            astray = np.flatnonzero(poor & np.isfinite(reached))
        if len(astray):
            own = left[astray]
            back = _restart_beside_ridge(
                solver, solved, astray, low[own], high[own], length[astray], projected, most[astray]
            )
            won = np.flatnonzero(back.worth.value < reached[astray])
            astray = astray[won]
            to[astray], reached[astray], taken[astray] = back.v[won], back.worth.value[won], back.tries[won]
        gain = value[left] - reached
        share = np.where(np.isfinite(gain), gain / np.maximum(fall, 1e-12), -np.inf)
        better = (share > _ANY) & (gain > 0)
        radius[left] = np.where(share < _POOR, 0.25 * length, radius[left])
        radius[left] = np.where(share < -1.0, 0.1 * length, radius[left])
        grown = (share > _GOOD) & (length > 0.8 * radius[left])
        radius[left] = np.minimum(np.where(grown, 2.0 * radius[left], radius[left]), _LARGEST)
        calm = (fall < 10 * _ENOUGH) | better
        if patient:  # a step that is short because those before it were too long says nothing
            calm &= ~grown
        quiet[left] = np.where(better & (gain > _ENOUGH), 0, quiet[left] + calm)
        still, led_nowhere = blocked[left], ~np.isfinite(gain)
        too_long = (solved.tries >= np.minimum(most, solver.most)).any(1) & (fall > _MUCH)
        blocked[left] = np.where(led_nowhere, still | too_long, still & better & (gain <= _ENOUGH))
        moved = left[better]
        v[moved], value[moved], tries[moved] = to[better], reached[better], taken[better]
        past[i % _WINDOW, left], before = value[left], past[i % _WINDOW, left]
        lowest = np.empty(B)
        for own in groups:
            lowest[own] = value[own].min()
        best = np.minimum(best, lowest)
        over = (quiet[left] >= _QUIET) | (radius[left] < _LEAST) | ((fall < 1e-6) & ~(grown & patient))
        with np.errstate(invalid="ignore"):
            hopeless = value[left] - _HOPE * (before - value[left]) > best[left] + 1.0
        hopeless &= np.isfinite(before)
        over |= np.isfinite(before) & (before - value[left] < (0.0 if patient else _SLOW))
        over |= (lowest[left] < enough[left]) & (i >= _WINDOW // 2)
        settled[left[over]] = True
        renewed = better & ~over & ~hopeless
        here = np.setdiff1d(np.flatnonzero(renewed), astray)
        _renew(solver, solved, here, left[here], H, g)
        if back is not None:
            there = np.flatnonzero(renewed[astray])
            _renew(solver, back, won[there], left[astray[there]], H, g)
        left = left[~over & ~hopeless]
    return TrustRegionResult(v, value, settled, np.isin(np.arange(B), left), blocked, taken_rounds)


def predicted_reduction(solver: BatchLikelihood, v: Array, held: HeldUnknown) -> Array:
    """By how much the objective would fall (B,) from unknowns v (B, P), some of them held, if it were quadratic."""
    low, high = (
        np.tile(bound, (len(v), 1)) for bound in (solver.likelihood.unknowns.low, solver.likelihood.unknowns.high)
    )
    rows = np.arange(len(v))
    low[rows, held.place] = high[rows, held.place] = held.value
    return _next_steps(solver, solver.solve(v), rows, low, high, np.full(len(v), _RADIUS))[1]


def _restart_beside_ridge(
    solver: BatchLikelihood,
    solved: BatchSolution,
    which: Index,
    low: Array,
    high: Array,
    radius: Array,
    projected: bool,
    most: Index,
) -> BatchSolution:
    """Another step from where some have ended beside a ridge, back to it."""
    move, _ = _next_steps(solver, solved, which, low, high, radius)
    return solver.solve(solved.v[which] + move, projected, most)


def _next_steps(
    solver: BatchLikelihood, solved: BatchSolution, which: Index, low: Array, high: Array, radius: Array
) -> tuple[Array, Array]:
    """Steps (b, P) of some from where they are, and what these promise (b,); none where there are no derivatives."""
    u, v = solver.likelihood.unknowns, solved.v[which]
    H, g = solver.normal(solved, which)
    lost = ~np.isfinite(g).all(1) | ~np.isfinite(H).all(axis=(1, 2))
    H[lost], g[lost] = np.eye(v.shape[1]), 0.0
    return trust_region_step(
        v, H, g, low, high, _limit_steepness(solver.unit(v), H), radius, (u.experiments, len(u.initial))
    )


def _limit_steepness(unit: Array, H: Array) -> Array:
    """Units (B, P) in which no unknown is so steep that others vanish beside it, such as the start of an epidemic."""
    with np.errstate(divide="ignore"):
        return np.minimum(unit, _STEEPEST / np.sqrt(np.diagonal(H, axis1=1, axis2=2)))


def _renew(solver: BatchLikelihood, solved: BatchSolution, which: Index, places: Index, H: Array, g: Array) -> None:
    if len(which):
        H[places], g[places] = solver.normal(solved, which)
