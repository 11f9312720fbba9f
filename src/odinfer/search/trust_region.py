"""Maximise the likelihood from many start points in a batch, each with its own trust region.

Searches that have arrived, or that are so far behind the best that they will not get there, are not carried on. A
round costs hardly less for few than for many, so that the last few may be left for a later occasion.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.likelihood.batch_likelihood import BatchLikelihood, BatchSolution, Expansion
from odinfer.optimize.arrow_matrix import ArrowMatrix
from odinfer.optimize.trust_region_step import trust_region_step

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Mask = NDArray[np.bool_]

_RADIUS, _LARGEST, _LEAST = 2.0, 20.0, 1e-5  # in e-folds: at first, at most, and where a search is over
_GOOD, _POOR, _ANY = 0.75, 0.25, 1e-4  # shares of the fall that was foretold
_STEEPEST = 1e4  # standard deviations that a unit of an unknown may amount to
ROUNDS = 200  # at most
_ENOUGH, _QUIET = 1e-3, 3  # nats that a step must gain, or that many in a row end a search
_LONGER, _MORE = 3, 50  # a trial may take so many times the steps of where it comes from, and so many more
_PROMISED = 1e-6  # nats that a step must promise, or a search has arrived
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
    B = len(v)
    best, enough = (np.broadcast_to(np.asarray(value, float), B) for value in (best, enough))
    group = np.zeros(B, np.int64) if group is None else group
    searches, left = _Searches.start(solver, v, held, patient, best, enough, group, _PROMISED)
    return _follow(searches, left, rounds, few)


def minimise_held(
    solver: BatchLikelihood, begin: Expansion, held: HeldUnknown, rounds: int, promised: float
) -> tuple[Expansion, Index]:
    """From where the objective is known to second order downhill, each search to a maximum of its own.

    Args:
        held: an unknown of each that stays where it is.
        promised: a search has arrived where the next step promises a smaller fall of the objective.

    Returns:
        The objective to second order where the searches ended, and the rounds that each took (B,).
    """
    B = len(begin.v)
    nothing = np.full(B, np.inf), np.full(B, -np.inf), np.arange(B)
    searches, left = _Searches.start(solver, begin.v, held, False, *nothing, promised, begin)
    rounds_taken = _follow(searches, left, rounds, 0).rounds
    return searches.expansion(), rounds_taken


def _follow(searches: _Searches, left: Index, rounds: int, few: int) -> TrustRegionResult:
    """Follow searches of which some are left until no more than `few` are."""
    B, P = searches.v.shape
    rounds_taken = np.zeros(B, int)
    for i in range(rounds if P else 0):
        left = left[np.isfinite(searches.g[left]).all(1) & searches.H.take(left).finite]
        if len(left) <= few:
            break
        rounds_taken[left] = i + 1
        step = searches.step(left)
        if not searches.patient:
            left, step = searches.settle(left, step)
        if not len(left):
            break
        trial = searches.trial(left, step)
        better = searches.accept(left, trial)
        left = searches.go_on(left, trial, better, i)
    if not P:  # nothing is unknown
        searches.settled, left = np.isfinite(searches.value), left[:0]
    unfinished = np.isin(np.arange(B), left)
    return TrustRegionResult(searches.v, searches.value, searches.settled, unfinished, searches.blocked, rounds_taken)


class _Step(NamedTuple):
    """Steps `move` (b, P) of b searches, their `length` (b,) in units of the trust region, and the decrease `fall` (b,)
    of the objective that they promise."""

    move: Array
    length: Array
    fall: Array


class _Trial(NamedTuple):
    """Steps of b searches that are left.

    `fall` (b,) is the decrease of the objective that a step promised, `gain` (b,) the one that it brought, `length`
    (b,) its length in units of the trust region, `most` (b,) the steps of integration that it might take. `to` (b, P),
    `reached` (b,) and `noise` (b, M) are where it ended, `integrated` (b, E) the steps of integration there. Of those
    `beside`, which ended beside a narrow ridge, the rows `won` of `restarted` went further than those of `solved`.
    """

    fall: Array
    gain: Array
    length: Array
    most: Index
    to: Array
    reached: Array
    noise: Array
    integrated: Index
    solved: BatchSolution
    beside: Index
    won: Index
    restarted: BatchSolution | None


@dataclass
class _Searches:
    """B searches in work.

    Attributes:
        projected: whether unknowns that only scale what is observed are put at their best in every solution, which
            would move what is held.
        v, value, noise: unknowns (B, P), objectives (B,) and variances of the noise (B, M).
        H, g: curvature (B, P, P) and gradient (B, P) of the objectives, at v where they are `current` (B,).
        integrated: steps of integration (B, E) at v.
        low, high: bounds (B, P).
        radius: of the trust regions (B,).
        quiet: rounds (B,) that gained next to nothing.
        settled, blocked: which have arrived (B,), and which need more steps of integration than there may be (B,).
        past: objectives of the last rounds (rounds, B).
        best: objectives (B,) that are known to be possible.
        promised: nats that a step must promise.
        groups: places of the searches that are after the same maximum.
    """

    solver: BatchLikelihood
    patient: bool
    projected: bool
    v: Array
    value: Array
    noise: Array
    integrated: Index
    H: ArrowMatrix
    g: Array
    current: Mask
    low: Array
    high: Array
    radius: Array
    quiet: Index
    settled: Mask
    blocked: Mask
    past: Array
    best: Array
    enough: Array
    groups: list[Index]
    promised: float

    @staticmethod
    def start(
        solver: BatchLikelihood, v: Array, held: HeldUnknown | None, patient: bool, best: Array, enough: Array,
        group: Index, promised: float, begin: Expansion | None = None,
    ) -> tuple[_Searches, Index]:  # fmt: skip
        """Searches from unknowns v (B, P), and which of them have a trajectory."""
        B, P = v.shape
        low, high = (
            np.tile(bound, (B, 1)) for bound in (solver.likelihood.unknowns.low, solver.likelihood.unknowns.high)
        )
        if held is not None:
            low[np.arange(B), held.place] = high[np.arange(B), held.place] = held.value
        projected = held is None
        if begin is None:
            u, solved = solver.likelihood.unknowns, solver.solve(np.clip(v, low, high), projected)
            nothing = ArrowMatrix.zeros(B, u.experiments, len(u.initial), P)
            parts = solved.v, solved.worth.value, solved.worth.noise, solved.tries
            begin = Expansion(*parts, nothing, np.zeros((B, P)))
        else:
            solved = None
        found = _Searches(
            solver, patient, projected, begin.v.copy(), begin.value.copy(), begin.noise.copy(), begin.tries,
            begin.H.take(np.arange(B)), begin.g.copy(), np.full(B, solved is None), low, high, np.full(B, _RADIUS),
            np.zeros(B, int), np.zeros(B, bool), np.zeros(B, bool), np.full((_WINDOW, B), np.inf), best, enough,
            [np.flatnonzero(group == own) for own in np.unique(group)], promised,
        )  # fmt: skip
        left = np.flatnonzero(np.isfinite(found.value))
        if P and solved is not None:
            found.differentiate(solved, left, left)
        return found, left

    def expansion(self) -> Expansion:
        """The objectives to second order where the searches are."""
        stale = np.flatnonzero(~self.current & np.isfinite(self.value))
        if len(stale):
            self.differentiate(self.solver.solve(self.v[stale]), np.arange(len(stale)), stale)
        return Expansion(self.v, self.value, self.noise, self.integrated, self.H, self.g)

    def differentiate(self, solved: BatchSolution, rows: Index, places: Index) -> None:
        """Compute curvature and gradient at rows of a solution for the searches at some places."""
        if len(rows):
            H, self.g[places] = self.solver.normal(solved, rows)
            self.H.put(places, H)
            self.current[places] = True

    def step(self, left: Index) -> _Step:
        """Compute the next step of each search that is left (b,)."""
        H = self.H.take(left)
        unit = _limit_steepness(self.solver.unit(self.v[left]), H)
        parts = self.v[left], H, self.g[left], self.low[left], self.high[left]
        move, fall = trust_region_step(*parts, unit, self.radius[left])
        return _Step(move, np.sqrt(((move / unit) ** 2).sum(1)), fall)

    def settle(self, left: Index, step: _Step) -> tuple[Index, _Step]:
        """Leave searches where they are whose next step promises next to nothing."""
        on = step.fall >= self.promised
        self.settled[left[~on]] = True
        return left[on], _Step(*(part[on] for part in step))

    def trial(self, left: Index, step: _Step) -> _Trial:
        """Take a step in each search that is left (b,)."""
        solver, (move, length, fall) = self.solver, step
        most = _LONGER * self.integrated[left] + _MORE
        solved = solver.solve(self.v[left] + move, self.projected, most)
        to, reached, integrated = solved.v.copy(), solved.worth.value.copy(), solved.tries.copy()
        noise = solved.worth.noise.copy()
        restarted, beside, won = None, np.empty(0, np.int64), np.empty(0, np.int64)
        if self.patient:
            # A step along a narrow ridge that bends ends beside it, however right its direction was.
            poor = (self.value[left] - reached < _POOR * fall) & (fall > _SIDEWAYS * _ENOUGH) & (length < _NARROW)
            beside = np.flatnonzero(poor & np.isfinite(reached))
        if len(beside):
            own = left[beside]
            back, _ = _next_steps(solver, solved, beside, self.low[own], self.high[own], length[beside])
            restarted = solver.solve(solved.v[beside] + back, self.projected, most[beside])
            won = np.flatnonzero(restarted.worth.value < reached[beside])
            beside = beside[won]
            to[beside], reached[beside] = restarted.v[won], restarted.worth.value[won]
            noise[beside], integrated[beside] = restarted.worth.noise[won], restarted.tries[won]
        gain = self.value[left] - reached
        return _Trial(fall, gain, length, most, to, reached, noise, integrated, solved, beside, won, restarted)

    def accept(self, left: Index, trial: _Trial) -> Mask:
        """Go where a step has made a search better (b,), and make its trust region wider or narrower."""
        fall, gain, length = trial.fall, trial.gain, trial.length
        share = np.where(np.isfinite(gain), gain / np.maximum(fall, 1e-12), -np.inf)
        better = (share > _ANY) & (gain > 0)
        self.radius[left] = np.where(share < _POOR, 0.25 * length, self.radius[left])
        self.radius[left] = np.where(share < -1.0, 0.1 * length, self.radius[left])
        grown = (share > _GOOD) & (length > 0.8 * self.radius[left])
        self.radius[left] = np.minimum(np.where(grown, 2.0 * self.radius[left], self.radius[left]), _LARGEST)
        calm = (fall < 10 * _ENOUGH) | better
        if self.patient:  # a step that is short because those before it were too long says nothing
            calm &= ~grown
        self.quiet[left] = np.where(better & (gain > _ENOUGH), 0, self.quiet[left] + calm)
        still, led_nowhere = self.blocked[left], ~np.isfinite(gain)
        too_long = (trial.solved.tries >= np.minimum(trial.most, self.solver.most)).any(1) & (fall > _MUCH)
        self.blocked[left] = np.where(led_nowhere, still | too_long, still & better & (gain <= _ENOUGH))
        self.settled[left] = (self.quiet[left] >= _QUIET) | (self.radius[left] < _LEAST)
        self.settled[left] |= (fall < self.promised) & ~(grown & self.patient)
        gone = left[better]
        self.v[gone], self.value[gone] = trial.to[better], trial.reached[better]
        self.noise[gone] = trial.noise[better]
        self.integrated[gone] = trial.integrated[better]
        self.current[gone] = False
        return better

    def go_on(self, left: Index, trial: _Trial, better: Mask, i: int) -> Index:
        """Decide which searches are left after round i, with derivatives at where they are now."""
        self.past[i % _WINDOW, left], before = self.value[left], self.past[i % _WINDOW, left]
        lowest = np.empty(len(self.v))
        for own in self.groups:
            lowest[own] = self.value[own].min()
        self.best = np.minimum(self.best, lowest)
        with np.errstate(invalid="ignore"):
            hopeless = self.value[left] - _HOPE * (before - self.value[left]) > self.best[left] + 1.0
        hopeless &= np.isfinite(before)
        over = self.settled[left]
        over |= np.isfinite(before) & (before - self.value[left] < (0.0 if self.patient else _SLOW))
        over |= (lowest[left] < self.enough[left]) & (i >= _WINDOW // 2)
        self.settled[left] = over
        renewed = better & ~over & ~hopeless
        rows = np.setdiff1d(np.flatnonzero(renewed), trial.beside)
        self.differentiate(trial.solved, rows, left[rows])
        if trial.restarted is not None:
            rows = np.flatnonzero(renewed[trial.beside])
            self.differentiate(trial.restarted, trial.won[rows], left[trial.beside[rows]])
        remaining: Index = left[~over & ~hopeless]
        return remaining


def predicted_reduction(solver: BatchLikelihood, v: Array, held: HeldUnknown) -> Array:
    """By how much the objective would fall (B,) from unknowns v (B, P), some of them held, if it were quadratic."""
    low, high = (
        np.tile(bound, (len(v), 1)) for bound in (solver.likelihood.unknowns.low, solver.likelihood.unknowns.high)
    )
    rows = np.arange(len(v))
    low[rows, held.place] = high[rows, held.place] = held.value
    return _next_steps(solver, solver.solve(v), rows, low, high, np.full(len(v), _RADIUS))[1]


def _next_steps(
    solver: BatchLikelihood, solved: BatchSolution, which: Index, low: Array, high: Array, radius: Array
) -> tuple[Array, Array]:
    """Steps (b, P) of some from where they are, and what these promise (b,); none where there are no derivatives."""
    v = solved.v[which]
    H, g = solver.normal(solved, which)
    lost = np.flatnonzero(~np.isfinite(g).all(1) | ~H.finite)
    H, g[lost] = H.without_rows(lost), 0.0
    return trust_region_step(v, H, g, low, high, _limit_steepness(solver.unit(v), H), radius)


def _limit_steepness(unit: Array, H: ArrowMatrix) -> Array:
    """Units (B, P) in which no unknown is so steep that others vanish beside it, such as the start of an epidemic."""
    with np.errstate(divide="ignore"):
        return np.minimum(unit, _STEEPEST / np.sqrt(H.diagonal))
