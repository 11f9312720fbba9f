"""Supposed ends asked again from elsewhere: a likelihood can have several ridges, and only one was followed.

With an unknown held at its supposed end, all else is fitted again from many starts side by side (trajectory/finding/):
from the maximum, from what was found at other ends, between and beyond these, from around them, and from wherever else
a search with nothing held has found a likelihood that is not too low (pool.py). Where that leads higher than the end
should be, the end is further out; where an end is said to be open, the likelihood is asked at ever larger distances up
to the furthest (way.py). What was learnt so serves intervals and profiles of all levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.likelihood.batch_likelihood import SideBySide, Solved
from odinfer.problem.problem import Problem
from odinfer.search.startpoints import drawn
from odinfer.search.trust_region import Ends, Held, follow, promised
from odinfer.uncertainty.profile_limits.bracket import Point, Way, between
from odinfer.uncertainty.profile_limits.start_archive import Pool

Array = NDArray[np.float64]
Index = NDArray[np.int64]

# Where an end is first asked for if none is known: so many times the estimate away from it, and shares of the way to a
# bound, or e-folds; at the limit in any case. There may be a barrier close by, and likelihoods that are as high beyond
# it.
_LADDER, _TO_BOUND, _EFOLDS = (0.1, 0.3, 1.0, 2.0, 10.0, 100.0, 1000.0), (0.03, 0.1, 0.3), (0.2, 0.7, 2.0)
_LEAST = 1e-6  # of an estimate: what is smaller is nothing
_BEYOND = (2.0, 10.0)  # times as far as a supposed end it is asked for, too, and at the limit
_ROUNDS, _STEPS, _FEW_STEPS, _MANY = 40, 40, 25, 8  # of asking; of searches; and in later rounds if many are asked
_HALVINGS = 24  # of the distance between two points between which the likelihood may jump
# Steps that a trajectory takes at the maximum, times searches, after which nothing more is asked; and multiplications
# that take as long as the rest of such a step.
_WORK, _REST = 1_000_000, 10_000
_MOST_STEPS, _TIMES = 160, 5  # of one trajectory: so many, or so many times what it takes at the maximum
_ROWS = 400  # searches side by side
_INSIDE = 0.3  # of the fall that is wanted: where it has fallen by less, it does not matter by how much
# Of the fall that is wanted: from where to where there may be an end; what a search that has arrived does not promise
# any more; and what one promises that has not, after so many steps.
_DECISIVE, _OUTSIDE, _UNSETTLED, _DOUBTFUL, _PATIENT = 0.8, 4.0, 0.02, 0.1, 150
_WIDTHS = (0.3, 0.8)  # in e-folds, of starts around a point
_HIGHER, _AS_HIGH = 0.1, 0.02  # nats by which a point is above the maximum, and not by rounding; by which none is
_EXPLORED = 64  # starts with nothing held
_FLATTEST = 1e-12  # of the largest curvature: along what is flatter nothing moves
# The curvature by e-folds below which unknowns may go to infinity together, the share of one that does, and parts of
# the way back to natural sizes.
_FLAT, _GOES_ALONG, _PULLED_IN = 0.01, 0.3, (0.3, 0.7)
_LEAST_STARTS, _FEW_STARTS = 3, 8  # of a goal; so many at most where many starts have led to the maximum
# Starts from other supposed ends and from anywhere, and from what is known nearby, in the first rounds and later.
_GUESTS, _FRESH, _NEIGHBOURS, _FEWER = 3, 2, 5, 2
_REMEMBERED = 2.25  # times the fall that is wanted: what has not fallen further is remembered
# Tolerances of steps that end at observations, or not, of which those are made that are fewer; and shares of these,
# where the objective at the maximum is not exact to so many nats.
_TOLERANCE, _FINER, _EXACT = {True: 1e-4, False: 3e-5}, (0.1, 0.01, 1e-3), 0.03


class Claims(NamedTuple):
    """Supposed ends.

    Attributes:
        place: of the unknowns in v (B,).
        side: −1 or 1 (B,).
        fall: of twice the log-likelihood at the ends (B,).
        limit: where to stop (B,); `bounded` (B,) if that is a bound.
        value: the supposed ends (B,), at the limit if open; NaN where none is known.
        v: all unknowns there (B, P).
        inside: how far from the maximum all is known to be inside (B,), whatever is found elsewhere.
        rise: of the objective there (B,).
    """

    place: Index
    side: Array
    fall: Array
    limit: Array
    bounded: NDArray[np.bool_]
    value: Array
    v: Array
    inside: Array
    rise: Array

    def take(self, index: Index) -> Claims:
        some: dict[str, Any] = {name: getattr(self, name)[index] for name in self._fields}
        return Claims(**some)


class Answers(NamedTuple):
    """What became of the claims.

    Attributes:
        value, v: the ends (B,), at the limit where the likelihood does not fall so far, and all unknowns there (B, P).
        rise: of the objective there (B,).
        lost: those (B,) that lie where the likelihood jumps, or was not followed further.
        higher: unknowns (P,) at which the likelihood is higher than at the maximum, if there are any.
        ways: all that is known of the ways there (B).
        pool: and of the likelihood in general.
    """

    value: Array
    v: Array
    rise: Array
    lost: NDArray[np.bool_]
    higher: Array | None
    ways: tuple[Way, ...]
    pool: Pool


@np.errstate(all="ignore")  # starts may be anywhere
def asked_elsewhere(
    problem: Problem, best: Array, objective: float, claims: Claims, tolerance: float, known: Array | None = None,
    climbing: bool = True,
) -> Answers | None:  # fmt: skip
    """Ends that hold from elsewhere, too; None where the maximum itself cannot be followed side by side.

    Args:
        best: the unknowns (P,) at the maximum.
        objective: there.
        tolerance: of the fall, relative to what is wanted.
        known: unknowns (n, P) where other searches have ended.
        climbing: nothing more is asked once the likelihood is higher somewhere than at the maximum.
    """
    ways, goals, least = [], [], _least(problem, best)
    for k, (j, side, fall, limit, _, value) in enumerate(zip(*(a.tolist() for a in claims[:6]), strict=True)):
        way = Way(j, side, 0.5 * fall, float(best[j]), limit, float(least[j]), tolerance, [Point(0.0, 0.0, best)])
        ways.append(way)
        distance = abs(value - way.start)
        if 0 < distance < way.room:
            way.claim = distance
            goals += [(k, d) for d in [distance, *(f * distance for f in _BEYOND if f * distance < way.room), way.room]]
        elif way.room > 0:
            size = abs(way.start) or way.room
            steps = np.array(_TO_BOUND) * way.room if claims.bounded[k] else np.array(_LADDER) * size
            if np.isinf(least[j]):
                steps = np.array(_EFOLDS)
            goals += [(k, d) for d in [*steps[steps < way.room].tolist(), way.room]]
    search = _Search.of(problem, best, objective, ways, Pool(least))
    if search is None:
        return None
    search.climbing = climbing
    search.believe(claims)
    search.explore(known)
    return search.answers(goals, claims.v)


@np.errstate(all="ignore")
def asked_further(
    problem: Problem, best: Array, objective: float, ways: Sequence[Way], pool: Pool, fall: Array
) -> Answers | None:
    """Ends at other levels (B,) on ways of which much is known."""
    ways = [way.wanting(0.5 * float(f)) for way, f in zip(ways, fall, strict=True)]
    search = _Search.of(problem, best, objective, ways, pool)
    return None if search is None else search.answers(search.asks(0), None)


def _least(problem: Problem, best: Array) -> Array:
    """Sizes (P,) below which unknowns are as good as 0; infinite where they are logs."""
    solver = SideBySide.of(problem)
    least = _LEAST * np.where(best == 0, solver.natural, np.abs(best))
    least[solver.like.unknowns.phi_index[problem.is_log]] = np.inf
    return least


_Best = tuple[float, Array, bool]  # the least objective, where it is, and whether it may be less elsewhere


@dataclass
class _Search:
    """Fits with an unknown held, or nothing.

    Attributes:
        top, cost: the objective at the maximum `best`, and what its trajectories cost, in steps of few states.
        mirrors: factors (m, P) that lead beyond infinity.
        climbing: whether it ends where the likelihood is higher than there.
        higher: unknowns (P,) at which it is, if any were met.
    """

    solver: SideBySide
    best: Array
    top: float
    cost: float
    mirrors: Array
    ways: Sequence[Way]
    pool: Pool
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    climbing: bool = False
    higher: Array | None = None

    @staticmethod
    def of(problem: Problem, best: Array, objective: float, ways: Sequence[Way], pool: Pool) -> _Search | None:
        """None where the maximum itself cannot be followed side by side."""
        both = [SideBySide.of(problem, tolerance, halting=halting) for halting, tolerance in _TOLERANCE.items()]
        for finer in (1.0, *_FINER):
            tried = [replace(solver, tolerance=finer * solver.tolerance) for solver in both]
            solved = [(solver, solver.solve(best[None])) for solver in tried]
            exact = [own for own in solved if abs(float(own[1].worth.value[0]) - objective) < _EXACT]
            if exact:
                solver, at = min(exact, key=lambda own: int(own[1].tries.sum()))
                taken = max(int(at.tries.max()), _MOST_STEPS // _TIMES)
                top, cost = float(at.worth.value[0]), int(at.tries.sum()) * (1.0 + solver.multiplications / _REST)
                mirrors = _mirrors(solver, at)
                return _Search(replace(solver, most=_TIMES * taken), best, top, cost, mirrors, ways, pool)
        return None

    def believe(self, claims: Claims) -> None:
        """Take what is said to be inside for that, where trajectories agree: a mesh can step over a pole."""
        rows = np.flatnonzero(claims.inside > 0)
        if not len(rows):
            return
        rise = self.solver.solve(claims.v[rows]).worth.value - self.top
        for k in rows[rise < _OUTSIDE * 0.5 * claims.fall[rows]].tolist():
            self.ways[k].inside = float(claims.inside[k])
            self.ways[k].add(self.ways[k].inside, float(claims.rise[k]), claims.v[k])

    def explore(self, known: Array | None) -> None:
        """Look for other maxima with nothing held, and at those (n, P) that are known."""
        plain, known = self.solver.problem.plain, np.empty((0, len(self.best))) if known is None else known
        if not plain and len(known):
            there, value = np.ones(len(known), bool), self.solver.solve(known).worth.value
            self.learn(Ends(known, value, settled=there, left=~there, blocked=~there))
        v = np.concatenate([known if plain else known[:0], self.anywhere(_EXPLORED), self.mirrors * self.best])
        if len(v):
            self.learn(follow(self.solver, v, self.worst, _STEPS, group=np.arange(len(v))))

    def answers(self, goals: list[tuple[int, float]], own: Array | None) -> Answers:
        """What becomes of the ways.

        Args:
            goals: ways and distances on them to begin with.
            own: unknowns (B, P) that were found at the supposed ends, if there are any.
        """
        ways, rows = self.ways, 0
        for i in range(_ROUNDS):
            if self.higher is not None or not goals or rows * self.cost > _WORK:
                break
            found, every = self.fitted(goals, own if i == 0 else None, i)
            self.learn(every)
            rows += len(every.v)
            for (k, distance), (value, v, blocked) in zip(goals, found, strict=True):
                if i == 0 and own is not None and not np.isfinite(value) and distance == ways[k].claim:
                    value, v = self.top + ways[k].half, own[k]  # what was found by other means is not doubted for that
                ways[k].add(distance, value - self.top, v, blocked)
            goals = self.asks(i)
            if not goals and self.doubted():
                goals = self.asks(i)
        if goals and self.higher is None:  # nothing more may be asked, but not everything is believed
            self.doubted()
        for way in ways:
            if way.jumps and self.higher is None:
                self.follow_jump(way)
        ends = [way.found for way in ways]
        return Answers(
            np.array([way.value(p.distance) for way, p in zip(ways, ends, strict=True)]),
            np.stack([p.v for p in ends]),
            np.array([way.half * p.root**2 for way, p in zip(ways, ends, strict=True)]),
            np.array([way.lost for way in ways]),
            self.higher,
            tuple(ways),
            self.pool,
        )

    def doubted(self) -> bool:
        """Whether an end was not at the best of all else, and may be elsewhere: it was met by chance, or is on a ridge
        that is hard to follow."""
        known = [(way, way.end) for way in self.ways if not way.lost]
        ends = [(way, end) for way, end in known if end is not None and 0 < end.distance < way.room]
        if not ends:
            return False
        place, value, half = np.array([(way.place, way.value(end.distance), way.half) for way, end in ends]).T
        held, much = Held(place.astype(np.int64), value), _DOUBTFUL * half
        v = np.stack([end.v for _, end in ends])
        rows = np.flatnonzero(promised(self.solver, v, held) > much)
        if not len(rows):
            return False
        found, unsure = self._patiently(v[rows], Held(held.place[rows], held.value[rows]), much[rows])
        better = False
        for n, k in enumerate(rows.tolist()):
            way, end = ends[k]
            way.add(end.distance, float(found.value[n]) - self.top, found.v[n])
            if unsure[n] and way.end is not None:
                way.block(way.end)
            better |= way.end is not end
        return better

    def follow_jump(self, way: Way) -> None:
        """Find out whether the likelihood jumps between two points of a way: it does if it does in ever shorter steps.

        If not, it was not followed from the inner one, and the outer one is blocked.
        """
        inner, outer = way.bracket
        assert outer is not None
        a, v, b = inner.distance, inner.v, outer.distance
        for _ in range(_HALVINGS):
            for distance in (0.5 * (a + b), b):
                held = Held(np.array([way.place]), np.array([way.value(distance)]))
                ends = follow(self.solver, v[None], rounds=_STEPS, held=held, patient=True)
                if ends.value[0] - self.top >= way.half:
                    b = distance
                    break
                a, v = distance, ends.v[0]
                way.add(a, float(ends.value[0]) - self.top, v)
            if a == b:
                way.block(outer)
                return

    @property
    def worst(self) -> float:
        """The highest objective inside any interval."""
        return self.top + max(way.half for way in self.ways)

    def anywhere(self, count: int) -> Array:
        """Unknowns (count, P) whose parameters may be anywhere.

        None unless ODIN has found the maximum: elsewhere it was found by a search of this kind.
        """
        problem = self.solver.problem
        return drawn(problem, self.best, count, self.rng) if problem.plain else np.empty((0, len(self.best)))

    def asks(self, i: int) -> list[tuple[int, float]]:
        return [(k, d) for k, way in enumerate(self.ways) if way.room > 0 for d in way.asks(i)]

    def fitted(self, goals: Sequence[tuple[int, float]], own: Array | None, i: int) -> tuple[list[_Best], Ends]:
        """For each goal, with the unknown of a way held at a distance: the least objective, where it is, and whether it
        may be less where no trajectory was found; and all that was found.

        Args:
            own: unknowns (B, P) found on each way itself, in any case to start from.
            i: the round.
        """
        starts = [self._starts(k, distance, own, _NEIGHBOURS if i < 2 else _FEWER) for k, distance in goals]
        most = max(_LEAST_STARTS, min(_ROWS // len(goals), _ROWS if self.solver.problem.plain else _FEW_STARTS))
        owner = np.repeat(np.arange(len(goals)), [min(len(s), most) for s in starts])
        v = np.array([v for some in starts for v in some[:most]])
        which = np.array([k for k, _ in goals])[owner]
        place, half = (np.array([getattr(way, name) for way in self.ways])[which] for name in ("place", "half"))
        value = np.array([self.ways[k].value(d) for k, d in goals])[owner]
        steps = _FEW_STEPS if i and len(goals) > _MANY else _STEPS
        held, enough = Held(place, value), self.top + _INSIDE * half
        ends = follow(self.solver, v, self.top + half, steps, held=held, group=owner, enough=enough)
        mine = [np.flatnonzero(owner == n) for n in range(len(goals))]
        ends = self.settled(ends, held, half, mine)
        best = [rows[int(np.argmin(ends.value[rows]))] for rows in mine]
        return [(float(ends.value[i]), ends.v[i], bool(ends.blocked[i])) for i in best], ends

    def settled(self, ends: Ends, held: Held, half: Array, mine: Sequence[Index]) -> Ends:
        """The same after longer searches, where they have not arrived though that may decide where an end is.

        A ridge can be so narrow, and bend so much, that steps along it are very short, above all if the first state is
        next to an unstable balance, which other unknowns move.

        Args:
            half: of the fall that is wanted, of each search (B,).
            mine: those of each goal, of which the best goes on, and the best that was still on its way.
        """
        rise = ends.value - self.top
        decide = [rows for rows in mine if rise[rows].min() > _DECISIVE * half[rows[0]]]
        both = rise, np.where(ends.left, rise, np.inf)
        rows = np.unique([rows[int(np.argmin(worth[rows]))] for worth in both for rows in decide]).astype(np.int64)
        rows = rows[rise[rows] < _OUTSIDE * half[rows]]
        rows = rows[self._promise(ends, held, rows) > _UNSETTLED * half[rows]]
        if not len(rows):
            return ends
        some = Held(held.place[rows], held.value[rows])
        new, unsure = self._patiently(ends.v[rows], some, _DOUBTFUL * half[rows])
        v, value, blocked = ends.v.copy(), ends.value.copy(), ends.blocked.copy()
        v[rows], value[rows], blocked[rows] = new.v, new.value, new.blocked | unsure
        return replace(ends, v=v, value=value, blocked=blocked)

    def _patiently(self, v: Array, held: Held, much: Array) -> tuple[Ends, NDArray[np.bool_]]:
        """Where long searches from unknowns (B, P) end, and which have not arrived though they promise so much (B,)."""
        ends = follow(self.solver, v, rounds=_PATIENT, held=held, group=np.arange(len(v)), patient=True)
        return ends, ends.left & (promised(self.solver, ends.v, held) > much)

    def _promise(self, ends: Ends, held: Held, rows: Index) -> Array:
        if not len(rows):
            return np.empty(0)
        return promised(self.solver, ends.v[rows], Held(held.place[rows], held.value[rows]))

    def learn(self, ends: Ends) -> None:
        """Points that are inside the intervals of other unknowns, too, and furthest out there, are points of these."""
        self.pool.add(ends.v, ends.value, self.top + _REMEMBERED * (self.worst - self.top))
        for way in self.ways:
            with np.errstate(invalid="ignore"):
                distance = way.side * (ends.v[:, way.place] - way.start)
                inside = (ends.value - self.top < way.half * (1.0 - way.tolerance)) & (distance <= way.room)
            distance = np.where(inside, distance, 0.0)
            i = int(np.argmax(distance))
            if distance[i] > way.bracket[0].distance:
                way.add(float(distance[i]), float(ends.value[i]) - self.top, ends.v[i])
        if self.climbing and ends.value.min() < self.top - _HIGHER:
            # Far out it may be flat: the first that is as high.
            first = ends.v[int(np.argmax(ends.value < ends.value.min() + _AS_HIGH))]
            finer = self.solver.finer().solve(np.stack([first, self.best])).worth.value
            self.higher = first if finer[0] < finer[1] - 0.5 * _HIGHER else None

    def moved(self, v: Array, place: int, value: float) -> Array:
        """Where all else goes, to first order, from places (n, P) at their best, as an unknown goes to a value."""
        if not len(v):
            return v
        solved, rows = self.solver.solve(v), np.arange(len(v))
        (H, _), unit, free = self.solver.normal(solved, rows), self.solver.unit(v), np.arange(v.shape[1]) != place
        there = np.isfinite(H).all((1, 2))
        H = H[there] * unit[there, :, None] * unit[there, None, :]
        step = (value - v[there, place]) / unit[there, place]
        to = v[there].copy()
        inverse = np.linalg.pinv(H[:, free][:, :, free], rcond=_FLATTEST, hermitian=True)
        to[:, free] -= (inverse @ H[:, free, place][..., None])[..., 0] * step[:, None] * unit[there][:, free]
        to[:, place] = value
        return np.asarray(to)

    def _starts(self, k: int, distance: float, own: Array | None, count: int) -> list[Array]:
        """Unknowns to start from, the most promising first, so many of what is known nearby, and of the best."""
        way = self.ways[k]
        near, first = [*way.near(distance)], []
        if own is not None and np.isfinite(own[k]).all():
            far = abs(own[k, way.place] - way.start)
            first = [own[k], *([between(self.best, own[k], distance / far)] if far > distance else [])]
            first += [v for v in own[self.rng.permutation(len(own))[:_GUESTS]] if np.isfinite(v).all()]
        beside = self.pool.near(way.place, way.value(distance), _NEIGHBOURS)
        known = [*self.moved(beside, way.place, way.value(distance)), *beside[:count], *self.pool.best(count)]
        fresh = [*(self.mirrors * near[0]), *self.anywhere(_FRESH)]
        around = [v * np.exp(width * self.rng.normal(size=len(v))) for width in _WIDTHS for v in (near[0], self.best)]
        return [*first, *near, *known, self.best, *fresh, *around]


def _mirrors(solver: SideBySide, solved: Solved) -> Array:
    """Factors (m, P) that lead from a maximum beyond infinity: unknowns that can go there together, with a product or
    quotient that stays what it is, often come back from there with the other sign, and from far out back only slowly.
    """
    u, v = solver.like.unknowns, solved.v[0]
    unit = np.where(np.isinf(_least(solver.problem, v)), 0.0, np.abs(v))  # what is a log has no other sign
    H, _ = solver.normal(solved, np.array([0]))
    if not np.isfinite(H).all():
        return np.empty((0, len(v)))
    curvature, along = np.linalg.eigh(H[0] * np.outer(unit, unit))
    found = []
    for way in along[:, curvature < _FLAT].T:
        way = np.where((np.abs(way) > _GOES_ALONG) & (unit > 0), way, 0.0)
        if way.any():
            far = float(way @ np.log(np.where(way != 0, unit / solver.natural, 1.0)) / (way @ way))
            found += [np.where(way != 0, -np.exp(-share * far * way), 1.0) for share in _PULLED_IN]
    factors = np.array(found).reshape(-1, len(v))
    return np.asarray(factors[((factors * v >= u.low) & (factors * v <= u.high)).all(1)])
