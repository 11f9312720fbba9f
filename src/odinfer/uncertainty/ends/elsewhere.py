"""Supposed ends asked again from elsewhere: a likelihood can have several ridges, and only one was followed.

With an unknown held at its supposed end, all else is fitted again from many starts side by side (trajectory/finding/):
from the maximum, from what was found at other ends, between and beyond these, and from around them. Where that leads
higher than the end should be, the end is further out; where an end is said to be open, the likelihood is asked at ever
larger distances up to the furthest. What is then known of each end is a list of points at distances from the estimate:
the end lies between the last point in a row that is inside and the first that is not, and is looked for in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.forward.march import Steps
from odinfer.matching.starts import draw
from odinfer.problem.problem import Problem
from odinfer.trajectory.finding.follow import Ends, Held, follow
from odinfer.trajectory.finding.side_by_side import SideBySide

Array = NDArray[np.float64]
Index = NDArray[np.int64]

# Where an end is first asked for if none is known: so many times the estimate away from it, and shares of the way to a
# bound; at the limit in any case. There may be a barrier close by, and likelihoods that are as high beyond it.
_LADDER, _TO_BOUND = (0.1, 0.3, 1.0, 2.0, 10.0, 100.0, 1000.0), (0.03, 0.1, 0.3)
_FURTHER = 3.0  # times as far is looked next, where all is inside
_ROUNDS, _FIRST, _STEPS = 12, 40, 12  # of asking; and of searches, those of the first round and others
_MOST_STEPS, _TIMES = 160, 8  # of one trajectory: so many, or so many times what it takes at the maximum
_ROWS = 400  # searches side by side
_WIDTHS = (0.3, 0.8)  # in e-folds, of starts around a point
_NARROW, _CLOSED = 0.05, 0.01  # brackets, relative to the distance: where the far side is asked again, and is the end
_CLOSE_BY = 0.8  # of the distance
_HIGHER = 0.1  # nats by which a point is above the maximum, and not by rounding
_GUESTS, _FRESH, _FIRST_FRESH = 3, 2, 10  # starts from other ends, and from anywhere
_TOLERANCE = 1e-4  # of the steps of trajectories


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


class Answers(NamedTuple):
    """What became of the claims.

    Attributes:
        value, v: the ends (B,), at the limit where the likelihood does not fall so far, and all unknowns there (B, P).
        rise: of the objective there (B,).
        lost: those (B,) that lie where the likelihood jumps, or was not followed further.
        higher: unknowns (P,) at which the likelihood is higher than at the maximum, if there are any.
    """

    value: Array
    v: Array
    rise: Array
    lost: NDArray[np.bool_]
    higher: Array | None


class _Point(NamedTuple):
    distance: float
    root: float  # of the fall, as a share of what is wanted
    v: Array


@dataclass
class _Way:
    """From the maximum to one end: points by distance, the first of them the maximum."""

    place: int
    side: float
    half: float  # of the fall that is wanted
    start: float
    room: float
    tolerance: float
    points: list[_Point]
    claim: float = np.nan  # the distance of the supposed end
    inside: float = 0.0  # how far all is known to be inside
    asked_twice: set[tuple[float, float]] = field(default_factory=set)

    def add(self, distance: float, rise: float, v: Array) -> None:
        if distance < self.inside:
            return
        point = _Point(distance, float(np.sqrt(max(rise, 0.0) / self.half)), v)
        old = next((p for p in self.points if p.distance == distance), None)
        if old is not None and old.root <= point.root:
            return
        self.points = sorted([p for p in self.points if p is not old] + [point], key=lambda p: p.distance)

    @property
    def bracket(self) -> tuple[_Point, _Point | None]:
        """The last point in a row that is inside, and the one after it."""
        for inner, outer in zip(self.points, self.points[1:], strict=False):
            if outer.root >= 1.0:
                return inner, outer
        return self.points[-1], None

    @property
    def end(self) -> _Point | None:
        """A point that is right, or at the limit, where all up to there are inside or as good as that."""
        most = float(np.sqrt(1.0 + self.tolerance))
        if self.points[-1].distance >= self.room and all(p.root <= most for p in self.points):
            return self.points[-1]
        inner, outer = self.bracket
        close = (p for p in (outer, inner) if p is not None and abs(p.root**2 - 1.0) <= self.tolerance)
        return next(close, None)

    def next(self, i: int) -> float | None:
        """The distance to ask for in round i; None if nothing is left to ask."""
        inner, outer = self.bracket
        if outer is None:
            if self.end is not None:
                return None
            before = self.points[-2].distance if len(self.points) > 1 else 0.0
            pace = inner.distance / before if before > 0 else _FURTHER
            return float(min(np.maximum(pace, _FURTHER) ** 1.5 * inner.distance, self.room))
        # A barrier is none if there is a way through it from what is inside beyond it.
        for p in self.points:
            beyond = [q.distance for q in self.points if q.distance > p.distance and q.root**2 <= 1.0 + self.tolerance]
            if p.root >= 1.0 and beyond and self._again(p.distance, beyond[0]):
                return p.distance
        a, b = inner.distance, outer.distance
        if self.end is not None:
            # One that was met by chance is asked for again from close by.
            near, d = [p.distance for p in self.points if p.distance < self.end.distance][-1], self.end.distance
            if d == self.claim or (near > _CLOSE_BY * d and not self._again(d, -1.0)):
                return None
            return d if near > _CLOSE_BY * d else 0.5 * (near + d)
        if b - a < _NARROW * b and self._again(b, b):
            return b
        if b - a < _CLOSED * b:
            return None
        if a > 0 and b > 4.0 * a:
            middle = float(np.sqrt(a * b))
        else:
            middle = 0.5 * (a + b) if a > 0 else 0.3 * b
        if i % 3 == 2 or not np.isfinite(outer.root) or outer.root > 3.0:
            return middle
        guess = a + (1.0 - inner.root) / (outer.root - inner.root) * (b - a)
        return float(np.clip(guess, a + 0.05 * (b - a), b - 0.05 * (b - a)))

    def _again(self, distance: float, why: float) -> bool:
        """Whether a distance may be asked for once more, since it has not been for this reason."""
        new = (distance, why) not in self.asked_twice
        self.asked_twice.add((distance, why))
        return new

    def near(self, distance: float) -> Iterator[Array]:
        """Unknowns at points around a distance, between and beyond them: those that are inside lead the way."""
        inside = [p for p in self.points if p.root <= 1.0]
        before = [p for p in inside if p.distance < distance]
        after = [p for p in inside if p.distance > distance]
        yield before[-1].v
        if after:
            yield after[0].v
            yield _between(before[-1].v, after[0].v, _share(before[-1].distance, after[0].distance, distance))
        if len(before) > 1:
            one, two = before[-2:]
            yield _between(one.v, two.v, _share(one.distance, two.distance, distance))
        yield from (p.v for p in self.points if p.distance >= distance and 1.0 < p.root < np.inf)


@np.errstate(all="ignore")  # starts may be anywhere
def asked_elsewhere(problem: Problem, best: Array, claims: Claims, tolerance: float) -> Answers | None:
    """Ends that hold from elsewhere, too; None where the maximum itself cannot be followed side by side.

    Args:
        best: the unknowns (P,) at the maximum.
        tolerance: of the fall, relative to what is wanted.
    """
    solver, rng = SideBySide.of(problem, _TOLERANCE), np.random.default_rng(0)
    solved = solver.solve(best[None])
    top = float(solved.worth.value[0])
    taken = max(sum(isinstance(s, Steps) for s in solved.marched.events), _MOST_STEPS // _TIMES)
    solver = replace(solver, most=_TIMES * taken)
    if not np.isfinite(top):
        return None
    ways = []
    for j, side, fall, limit in zip(*claims[:4], strict=True):
        begin, room = float(best[j]), abs(float(limit - best[j]))
        ways.append(_Way(int(j), float(side), 0.5 * float(fall), begin, room, tolerance, [_Point(0.0, 0.0, best)]))
    for way, inside, rise, v in zip(ways, claims.inside.tolist(), claims.rise.tolist(), claims.v, strict=True):
        if inside > 0:
            way.inside = inside
            way.add(inside, rise, v)
    search, goals = _Search(solver, best, top, rng, ways), []
    logs = {*solver.like.unknowns.phi_index[problem.is_log].tolist()}
    for k, (way, value) in enumerate(zip(ways, claims.value.tolist(), strict=True)):
        distance = abs(value - way.start)
        if 0 < distance < way.room:
            way.claim = distance
            goals.append((k, distance))
        elif way.room > 0:
            size = abs(way.start) or way.room
            steps = np.array(_TO_BOUND) * way.room if claims.bounded[k] else np.array(_LADDER) * size
            if way.place in logs:
                steps = np.log1p(np.array(_LADDER))
            goals += [(k, d) for d in [*steps[steps < way.room].tolist(), way.room]]
    guests, lowest, higher = claims.v, top - _HIGHER, None
    for i in range(_ROUNDS):
        found, every = search.fitted(goals, guests, claims.v if i == 0 else None)
        search.spread(every)
        for (k, distance), (value, v) in zip(goals, found, strict=True):
            if i == 0 and not np.isfinite(value) and distance == abs(claims.value[k] - ways[k].start) < ways[k].room:
                value, v = top + ways[k].half, claims.v[k]  # what was found by other means is not doubted for that
            ways[k].add(distance, value - top, v)
            if value < lowest:
                lowest, higher = value, v
        guests = np.array([way.bracket[0].v for way in ways])
        goals = [(k, d) for k, way in enumerate(ways) if way.room > 0 and (d := way.next(i)) is not None]
        if higher is not None or not goals:
            break
    ends = [way.end or way.bracket[0] for way in ways]
    far, most = np.array([p.distance for p in ends]), np.array([way.room for way in ways])
    return Answers(
        np.where(far < most, best[claims.place] + claims.side * far, claims.limit),
        np.stack([p.v for p in ends]),
        np.array([way.half * p.root**2 for way, p in zip(ways, ends, strict=True)]),
        np.array([way.end is None and way.room > 0 for way in ways]),
        higher,
    )


@dataclass
class _Search:
    """Fits with an unknown held."""

    solver: SideBySide
    best: Array
    top: float
    rng: np.random.Generator
    ways: Sequence[_Way]

    def fitted(
        self, goals: Sequence[tuple[int, float]], guests: Array, own: Array | None
    ) -> tuple[list[tuple[float, Array]], Ends]:
        """The least objective, and where it is, with the unknown of a way held at a distance, for each goal; and all.

        Args:
            guests: unknowns (n, P) found on other ways.
            own: and on each way itself, in any case to start from.
        """
        starts = [self._starts(k, distance, guests, own) for k, distance in goals]
        most = max(3, _ROWS // len(goals))
        owner = np.repeat(np.arange(len(goals)), [min(len(s), most) for s in starts])
        v = np.array([v for some in starts for v in some[:most]])
        which = np.array([k for k, _ in goals])[owner]
        place, half = (np.array([getattr(way, name) for way in self.ways])[which] for name in ("place", "half"))
        value = np.array([self.ways[k].start + self.ways[k].side * d for k, d in goals])[owner]
        ends = follow(self.solver, v, self.top + half, _STEPS if own is None else _FIRST, held=Held(place, value))
        mine = [np.flatnonzero(owner == n) for n in range(len(goals))]
        best = [rows[int(np.argmin(ends.value[rows]))] for rows in mine]
        return [(float(ends.value[i]), ends.v[i]) for i in best], ends

    def spread(self, ends: Ends) -> None:
        """Points that are inside the intervals of other unknowns, too, and furthest out there, are points of these."""
        for way in self.ways:
            with np.errstate(invalid="ignore"):
                distance = way.side * (ends.v[:, way.place] - way.start)
                inside = (ends.value - self.top < way.half * (1.0 - way.tolerance)) & (distance <= way.room)
            distance = np.where(inside, distance, 0.0)
            i = int(np.argmax(distance))
            if distance[i] > way.bracket[0].distance:
                way.add(float(distance[i]), float(ends.value[i]) - self.top, ends.v[i])

    def _starts(self, k: int, distance: float, guests: Array, own: Array | None) -> list[Array]:
        """Unknowns to start from, the most promising first."""
        way = self.ways[k]
        near, first = [*way.near(distance)], []
        if own is not None and np.isfinite(own[k]).all():
            far = abs(own[k, way.place] - way.start)
            first = [own[k], *([_between(self.best, own[k], distance / far)] if far > distance else [])]
        some = guests[self.rng.choice(len(guests), min(_GUESTS, len(guests)), replace=False)]
        fresh = np.tile(self.best, (_FRESH if own is None else _FIRST_FRESH, 1))
        if self.solver.problem.plain:
            fresh[:, self.solver.like.unknowns.of_phi] = draw(self.solver.problem, len(fresh), self.rng)
        around = [v * np.exp(width * self.rng.normal(size=len(v))) for width in _WIDTHS for v in (near[0], self.best)]
        return [*first, *near, *(v for v in some if np.isfinite(v).all()), self.best, *fresh, *around]


def _share(a: float, b: float, distance: float) -> float:
    """Where a distance is between two, or beyond them: on a log scale if these are far apart."""
    if a > 0 and b > 2.0 * a:
        return float(np.log(distance / a) / np.log(b / a))
    return (distance - a) / (b - a)


def _between(one: Array, two: Array, share: float) -> Array:
    """Unknowns between two sets, or beyond them: on a log scale where they keep their signs and change by much."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = two / one
        return np.where((ratio > 2.0) | ((ratio > 0) & (ratio < 0.5)), one * ratio**share, one + share * (two - one))
