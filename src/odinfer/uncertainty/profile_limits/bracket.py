"""The way from a maximum of the likelihood to the end of an interval: what is known of it, and where to ask next.

What is known are points at distances from the estimate, each with how far the likelihood has fallen there. The end lies
between the last point in a row that is inside and the first that is not, and is looked for in between; what is inside
beyond a point that is not may show a way through to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_FURTHER = 3.0  # times as far is looked next, where all is inside
# Brackets, relative to the distance: where the far side is asked again, and where gaps are none. With the square of
# that there is nothing between, if they are as narrow in e-folds of the value.
_NARROW, _CLOSED = 0.05, 0.01
_JUMP = 1.0  # of the root of the fall, as a share of what is wanted: within a narrow bracket this is no slope
_CLOSE_BY, _BEHIND = 0.8, 1.05  # of the distance
_LEANS = 0.1  # of what is missed otherwise: an unknown goes along with another one
_APART = 0.2  # e-folds between points that show where a way goes
_SUDDEN = 0.5  # of the root of the fall: as much more is not what leads up to it
_AT_ONCE = 1e-3  # of the distance: between points that are no further apart, the likelihood jumps
_CROWD = 6  # points about where the likelihood jumps: searches there do not always end alike
_NEARLY = 0.3  # of the root of the fall: points between which it may be taken for linear
_GAP = 1.5  # times as far is the next point at most, where all is inside
_MAGNITUDE = 10.0  # times as large is the next value at most, next to a pole
_NEXT = 1.2  # times as far is the next point at most, if it is not on the same ridge
_STEEP = 0.6  # the root of the fall from which on it may be more than one nearby


class Point(NamedTuple):
    """All unknowns v (P,) at a distance from the estimate, and the root of the fall as a share of what is wanted.

    It may be less than that if it is `blocked`: no trajectories were found where it may be.
    """

    distance: float
    root: float
    v: Array
    blocked: bool = False


@dataclass
class Way:
    """From the maximum to one end.

    Attributes:
        place, side: of the unknown, and −1 or 1.
        half: of the fall that is wanted.
        start, limit: the estimate, and where to stop.
        least: the smallest value that differs from 0; infinite if values are logs.
        tolerance: of the fall, relative to what is wanted.
        points: what is known, by distance, the first of them the maximum.
        claim: the distance of the supposed end.
        inside: how far all is known to be inside, whatever is found elsewhere.
        asked_twice: which distances were asked for again, and why.
    """

    place: int
    side: float
    half: float
    start: float
    limit: float
    least: float
    tolerance: float
    points: list[Point]
    claim: float = np.nan
    inside: float = 0.0
    asked_twice: set[tuple[float, float | str]] = field(default_factory=set)

    @property
    def room(self) -> float:
        return abs(self.limit - self.start)

    def value(self, distance: float) -> float:
        return self.start + self.side * distance if distance < self.room else self.limit

    def wanting(self, half: float) -> Way:
        """The same where another fall is wanted."""
        points = [p._replace(root=p.root * float(np.sqrt(self.half / half))) for p in self.points]
        inside = self.inside if half >= self.half else 0.0
        return replace(self, half=half, points=points, claim=np.nan, inside=inside, asked_twice=set())

    def add(self, distance: float, rise: float, v: Array, blocked: bool = False) -> None:
        if distance < self.inside:
            return
        point = Point(distance, float(np.sqrt(max(rise, 0.0) / self.half)), v, blocked)
        old = next((p for p in self.points if p.distance == distance), None)
        if old is not None and old.root <= point.root:
            return
        self.points = sorted([p for p in self.points if p is not old] + [point], key=lambda p: p.distance)

    @property
    def sound(self) -> list[Point]:
        """All points but single ones that no trajectory was found for, between others that are inside."""
        most, points = 1.0 + self.tolerance, self.points
        inside = [p.root**2 <= most for p in points]
        alone = [i for i in range(1, len(points) - 1) if np.isinf(points[i].root) and inside[i - 1] and inside[i + 1]]
        return [p for i, p in enumerate(points) if i not in alone]

    @property
    def bracket(self) -> tuple[Point, Point | None]:
        """The last point in a row that is inside, and the one after it; a gap in the row that is narrow is none."""
        i, points = 0, self.sound
        for j, p in enumerate(points):
            if p.root < 1.0:
                if j > i + 1 and p.distance - points[i].distance > _CLOSED * p.distance:
                    break
                i = j
        return points[i], points[i + 1] if i + 1 < len(points) else None

    @property
    def end(self) -> Point | None:
        """A point that is right, or at the limit, where all up to there are inside or as good as that."""
        inner, outer = self.bracket
        last, most = self.points[-1], float(np.sqrt(1.0 + self.tolerance))
        if last.distance >= self.room and (outer is None or all(p.root <= most for p in self.sound)):
            return last
        close = (p for p in (outer, inner) if p is not None and abs(p.root**2 - 1.0) <= self.tolerance)
        return next(close, None)

    @property
    def nearly(self) -> Point | None:
        """Where the end must be: between two points whose falls are not far apart, or where the likelihood jumps."""
        inner, outer = self.bracket
        if outer is None:
            return None
        if self._at_nothing(inner.distance, outer.distance):
            return inner
        if not np.isfinite(outer.root):
            return None
        if outer.distance - inner.distance < _AT_ONCE * outer.distance:
            return inner
        if outer.root - inner.root > _NEARLY:
            return None
        part = (1.0 - inner.root) / (outer.root - inner.root)
        distance = inner.distance + part * (outer.distance - inner.distance)
        return Point(distance, 1.0, between(inner.v, outer.v, part))

    @property
    def jumps(self) -> bool:
        """Whether the end is one because the likelihood falls there all at once, as far as is known."""
        inner, outer = self.bracket
        sudden = outer is not None and np.isfinite(outer.root) and outer.root - inner.root > _LEANS
        return bool(self.room > 0 and self.end is None and self.nearly is not None and sudden)

    def block(self, point: Point) -> None:
        """Say of a point that the fall there may be less."""
        self.points = [p._replace(blocked=True) if p is point else p for p in self.points]

    @property
    def found(self) -> Point:
        """The end, or the last point that is known to be inside."""
        return (None if self.lost else self.end or self.nearly) or self.bracket[0]

    @property
    def lost(self) -> bool:
        """Whether no end was found, or none but where trajectories were not: then the true one may be further out."""
        end, nearly = self.end, self.nearly
        if self.room <= 0:
            return False
        if end is not None:
            return end.blocked and end.distance < self.room
        return nearly is None or any(p is not None and p.blocked for p in self.bracket)

    def asks(self, i: int) -> list[float]:
        """The distances to ask for in round i; none if nothing is left to ask."""
        inner, outer = self.bracket
        if outer is None and self.end is None:
            before = self.points[-2].distance if len(self.points) > 1 else 0.0
            pace = inner.distance / before if before > 0 else _FURTHER
            return [float(min(np.maximum(pace, _FURTHER) ** 1.5 * inner.distance, self.room))]
        return (self._towards(i, inner, outer) if outer is not None else []) or self._gaps()

    def _towards(self, i: int, inner: Point, outer: Point) -> list[float]:
        """Distances that lead to the end between two points, or through what is not inside."""
        if self.end is self.points[-1]:
            # A point that is hardly inside may be the near side of what is not.
            gaps = [(p.distance, q.distance) for p, q in pairwise(self.points) if p.root**2 >= 1.0 - self.tolerance]
            behind = [d for a, b in gaps for d in (min(_BEHIND * a, 0.9 * a + 0.1 * b), 0.5 * (a + b))]
            return behind if self._again(0.0, "level") else []
        # A barrier is none if there is a way through it from what is inside beyond it.
        inside = [p.distance for p in self.points if p.root**2 <= 1.0 + self.tolerance]
        walls = [p.distance for p in self.points if p.root >= 1.0]
        beyond = [(d, next((q for q in inside if q > d), None)) for d in walls]
        found = [d for d, q in beyond if q is not None and self._again(d, float(np.floor(np.log2(q - d))))]
        # What is known closer to a wall that nothing leads up to may show that it is none.
        a, b = inner.distance, outer.distance
        sudden = outer.root - inner.root > _SUDDEN and b - a > _NARROW * b
        if a > 0 and sudden and self._again(b, f"after {np.floor(2.0 * np.log2(b / a))}"):
            found.append(b)
        own = self._closer(i, inner, outer, beyond[0][1] is not None)
        return [*dict.fromkeys(found if own is None else [*found, own])]

    def _gaps(self) -> list[float]:
        """Distances where a barrier before the end may have been passed: between points that are far apart, once, and
        around those that are hardly further inside than the barrier would be."""
        end = self.end
        if end is None:
            return []
        known = [p for p in self.points if p.distance <= end.distance]
        d = [p.distance for p in known]
        if self._again(0.0, "gaps") and len(d) > 1:
            return [0.5 * d[1], *(float(np.sqrt(a * b)) for a, b in pairwise(d[1:]) if b > _GAP * a)]
        if wide := [*self._around_a_pole(known), *self._between_ridges(known)]:
            return wide
        three = zip(known, known[1:], known[2:], strict=False)
        peaks = [(a.distance, p.distance, b.distance) for a, p, b in three if p.root > max(a.root, b.root, _STEEP)]
        new = [(a, p, b) for a, p, b in peaks if b - a > _NARROW * p and self._again(p, "peak")]
        return [0.5 * (p + q) for a, p, b in new for q in (a, b)]

    def _around_a_pole(self, known: list[Point]) -> list[float]:
        """Distances between points whose values are magnitudes apart, where 0 between them does not fit: around a pole
        the likelihood goes by magnitudes."""
        if np.isinf(self.least) or all(p.root < 1.0 for p in known if self.value(p.distance) == 0.0):
            return []
        x = [v for v in (self.value(p.distance) for p in known) if 0 < abs(v) <= abs(self.start)]
        wide = [(a, b) for a, b in pairwise(x) if a * b > 0 and not 1.0 / _MAGNITUDE <= a / b <= _MAGNITUDE]
        return [self.side * (float(np.sign(a) * np.sqrt(a * b)) - self.start) for a, b in wide]

    def _between_ridges(self, known: list[Point]) -> list[float]:
        """Distances between points of which two other unknowns or more have other signs: they may be on two ridges with
        a barrier between them. One alone may pass through 0, or be a square."""
        apart = [(p, q) for p, q in pairwise(known) if q.distance > _NEXT * p.distance > 0]
        signs = [np.delete(np.sign([p.v, q.v]), self.place, 1) for p, q in apart]
        pairs = [pair for pair, (one, two) in zip(apart, signs, strict=True) if (one != two).sum() > 1]
        return [float(np.sqrt(p.distance * q.distance)) for p, q in pairs]

    def _closer(self, i: int, inner: Point, outer: Point, more: bool) -> float | None:
        """Where to ask next for the end between two points; `more` if some are inside beyond them."""
        a, b = inner.distance, outer.distance
        if self.end is not None:
            # It is asked for once more, now that more is known; one that was met by chance, from close by.
            near, d = [p.distance for p in self.points if p.distance < self.end.distance][-1], self.end.distance
            if d == self.claim or near > _CLOSE_BY * d:
                return d if self._again(d, "met") else None
            return 0.5 * (near + d)
        if b - a < _NARROW * b and self._again(b, f"narrow {np.floor(np.log2(b / (b - a)))}"):
            return b
        # All may be inside again right behind a value that no trajectory has; behind a pole, as far as before it.
        pole = self.value(b) == 0.0
        if b - a < _CLOSED * b * (0.5 if pole else 1.0) and (more or pole) and self._again(b, "behind"):
            return 2.0 * b - a if pole else b + 0.5 * (_CLOSED * b - (b - a))
        near, far = self._magnitude(a), self._magnitude(b)
        here = [p for p in self.points if abs(p.distance - a) < _AT_ONCE * b]
        crowded = sum(abs(self._magnitude(p.distance) - near) < _CLOSED for p in here) > _CROWD
        if self._at_nothing(a, b) or (crowded and b - a < _AT_ONCE * b and far - near < _CLOSED):
            return None
        narrow = _AT_ONCE if outer.root - inner.root > _JUMP else _CLOSED**2
        if b - a < narrow * b and far - near < narrow:
            return None
        if i % 3 != 2 and outer.root <= 3.0:
            guess = a + (1.0 - inner.root) / (outer.root - inner.root) * (b - a)
            return float(np.clip(guess, a + 0.05 * (b - a), b - 0.05 * (b - a)))
        if a == 0:
            return 0.3 * b
        return 0.5 * (a + b) if i % 2 else self._distance(0.5 * (near + far))

    def _at_nothing(self, *distances: float) -> bool:
        """Whether values are all as good as 0, where models often end."""
        return not np.isinf(self.least) and all(abs(self.value(d)) <= self.least for d in distances)

    def _magnitude(self, distance: float) -> float:
        """A scale on which values of all magnitudes, and of both signs, are apart, growing outwards."""
        x = self.value(distance)
        return float(self.side * (x if np.isinf(self.least) else np.arcsinh(x / self.least)))

    def _distance(self, magnitude: float) -> float:
        c = self.side * magnitude
        return float(self.side * ((c if np.isinf(self.least) else self.least * np.sinh(c)) - self.start))

    def _again(self, distance: float, why: float | str) -> bool:
        """Whether a distance may be asked for once more, since it has not been for this reason."""
        new = (distance, why) not in self.asked_twice
        self.asked_twice.add((distance, why))
        return new

    def near(self, distance: float) -> Iterator[Array]:
        """Unknowns at points around a distance, between and beyond them: those that are inside lead the way."""
        inside = [p for p in self.points if p.root**2 <= 1.0 + self.tolerance]
        before = [p for p in inside if p.distance < distance]
        after = [p for p in inside if p.distance > distance]
        two = before[-1]
        yield two.v
        if after:
            yield after[0].v
            yield between(two.v, after[0].v, share(two.distance, after[0].distance, distance))
            after = after[::-1]
            i = self._apart(after, len(after) - 1)
            if i > 0:  # what is beyond may be on another ridge, which leads back
                sets = after[self._apart(after, i)].v, after[i].v, after[-1].v
                yield going_on(*sets, self.place, self.value(distance), bool(np.isinf(self.least)))
        if len(before) > 1:
            i = self._apart(before, len(before) - 1)
            one = before[i]
            if i > 0:
                zero = before[self._apart(before, i)]
                yield going_on(zero.v, one.v, two.v, self.place, self.value(distance), bool(np.isinf(self.least)))
            yield between(one.v, two.v, share(one.distance, two.distance, distance))
            if one.distance > 0:  # what goes far may do so by powers of the distance
                yield between(one.v, two.v, np.log(distance / one.distance) / np.log(two.distance / one.distance), 1.0)
        yield from self._from_beyond_zero(inside, self.value(distance))
        yield from (p.v for p in self.points if p.distance >= distance and 1.0 < p.root < np.inf)

    def _from_beyond_zero(self, inside: list[Point], value: float) -> Iterator[Array]:
        """Unknowns at a value from points inside that have its opposite sign: what has a pole at 0, or is a square, is
        the same on both sides."""
        if np.isinf(self.least) or value == 0.0:
            return
        j, beyond = self.place, [p.v for p in inside if p.v[self.place] * value < 0]
        apart: list[Array] = []
        for v in sorted(beyond, key=lambda v: abs(np.log(-v[j] / value))):
            if all(abs(np.log(v[j] / w[j])) > _APART for w in apart):
                apart.append(v)
        yield from apart[:1]
        if len(apart) > 2:
            yield going_on(apart[2], apart[1], apart[0], j, value, False)

    def _apart(self, points: list[Point], i: int) -> int:
        """The last of some points that is clearly before number i, or else the one right before it."""
        end = self._magnitude(points[i].distance)
        return next((j for j in range(i - 1, -1, -1) if abs(end - self._magnitude(points[j].distance)) > _APART), i - 1)


def share(a: float, b: float, distance: float) -> float:
    """Where a distance is between two, or beyond them: on a log scale if these are far apart."""
    if a > 0 and b > 2.0 * a:
        return float(np.log(distance / a) / np.log(b / a))
    return (distance - a) / (b - a)


def between(one: Array, two: Array, share: float, plain: float = 2.0) -> Array:
    """Unknowns between two sets, or beyond them: on a log scale where they keep their signs and change by much.

    Args:
        plain: the factor that is not much.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = two / one
        much = (ratio > plain) | ((ratio > 0) & (ratio < 1.0 / plain))
        return np.where(much, one * ratio**share, one + share * (two - one))


def going_on(zero: Array, one: Array, two: Array, place: int, value: float, logs: bool) -> Array:
    """Unknowns beyond three sets, with that at a place at a value: each goes on as it has, linearly, by powers or by
    factors.

    Far out, sums of unknowns that cancel stay what they are, and products, too. To which of them one belongs is seen by
    whether a line or a power leads from the first two sets to the third; or a line in another unknown, which is what
    sums that cancel need where both go by powers. What an epidemic starts from falls by factors as its rate grows.

    Args:
        value: beyond 0, powers go on, too, and odd ones change their sign.
        logs: values are logs, so that a line is a power.
    """
    found, missed = _on_a_line(one, two, place, value), np.abs(_on_a_line(zero, one, place, two[place]) - two)
    others = [(_by_factors, _LEANS)]
    if not logs and min(zero[place] * one[place], one[place] * two[place], abs(value)) > 0:
        others.append((_by_a_power, 1.0))
    for law, share in others:
        # Of squares, both signs are as good.
        off = np.abs(np.abs(law(zero, one, place, two[place])) - np.abs(two))
        better = off < share * missed
        found = np.where(better, law(one, two, place, value), found)
        missed = np.where(better, off, missed)
    with np.errstate(divide="ignore", invalid="ignore"):
        # [i, j]: how far a line in unknown j misses unknown i.
        slope = (one - zero)[:, None] / (one - zero)
        lines = np.abs(one[:, None] + slope * (two - one) - two[:, None])
    lines[~np.isfinite(lines)] = np.inf
    np.fill_diagonal(lines, np.inf)
    leaning, leant_on = np.zeros((2, len(two)), bool)
    for i in np.flatnonzero(np.arange(len(two)) != place).tolist():
        j = int(np.argmin(np.where(leaning, np.inf, lines[i])))
        if not leant_on[i] and lines[i, j] < _LEANS * missed[i]:
            found[i] = _on_a_line(one[[j, i]], two[[j, i]], 0, float(found[j]))[1]
            leaning[i] = leant_on[j] = True
    return found


def _on_a_line(one: Array, two: Array, place: int, value: float) -> Array:
    return np.asarray(one + (value - one[place]) / (two[place] - one[place]) * (two - one))


def _by_factors(one: Array, two: Array, place: int, value: float) -> Array:
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        part = (value - one[place]) / (two[place] - one[place])
        return np.asarray(np.copysign(np.abs(one) * np.abs(two / one) ** part, two))


def _by_a_power(one: Array, two: Array, place: int, value: float) -> Array:
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        change = np.log(two[place] / one[place])
        part = np.log(np.abs(value / one[place])) / change
        odd = np.round(np.log(np.abs(two / one)) / change) % 2 == 1
        sign = np.where(odd & (value * two[place] < 0), -1.0, 1.0)
        return np.asarray(sign * np.copysign(np.abs(one) * np.abs(two / one) ** part, two))
