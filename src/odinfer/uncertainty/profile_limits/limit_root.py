"""The ends of likelihood intervals: how far a quantity can go until the best likelihood has fallen by so much.

Let w(q) be twice the fall of the log-likelihood, maximised over everything else while a quantity is held at q. Near
the maximum w(q) ≈ ((q − q̂)/sd)², so the root of w grows linearly with the distance: where it is a share r of the root
of what is wanted, the end is about 1/r times as far. There are two ways to an end, and a check in between:

- `_quick`, enough for most. Each round goes along the ridge of the likelihood to a distance `reach` by one Gauss–Newton
  step with the quantity held; subtracts from the fall what another such step would still gain back (`rough` if that is
  too much to trust); and takes distance/r as the next reach, kept inside the bracket of what is known to be inside and
  outside.
- The likelihood is then maximised anew with the quantity held at the supposed end. Where it has fallen by a little more
  or less than is wanted, the end is moved along the slope of the profile, which the held quantity's share of the
  gradient gives; if that does not help, or if the likelihood has fallen by more at a supposed limit, it was no end.
- `_followed`, for these. From the maximum outwards, every point is maximised before the next step is taken, steps
  being short enough for the root of the fall to grow by a third of what is wanted at most. A quantity is unlimited only
  if the likelihood, maximised far out, says so.

Many quantities, each with a trajectory of its own, are followed side by side.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.likelihood.collocation_batch import Batch, Held, Index, Trajectories
from odinfer.optimize.levenberg_marquardt import Mask

Array = NDArray[np.float64]

_DAMPING = 1e-6  # of the steps along the ridge
_STILL = 1e-10  # and of those that only ask what is left to gain
# Followed from point to point: growth of the root of the fall that a step aims at and may have at most, steps at
# most, the share of the way to the next point below which the ridge is taken to end, and what a maximum may still gain.
_AIM, _GROWTH, _POINTS, _SHORTEST, _LEFT = 0.35, 0.6, 60, 1e-4, 0.02
_FAILURES = 10  # steps that did not lead to a maximum, after which the ridge is taken to end
# Relative error of the fall at a supposed end up to which it is moved along the slope there, and how often at most.
_CORRECTED, _CORRECTIONS = 0.5, 4
_ROUNDING = 0.03  # of residuals in standard deviations, by that of unknowns
_RISE = 1e-3  # growth of the fall at an end per distance from the maximum, in units of what is wanted, at least
_DAMPINGS = (1e-10, 1e-2, 1.0, 100.0)  # of the steps that show whether a promised gain is real
_NEAR = 0.01  # of the way: how far from its goal a held state may be, which is held in first order only


class Wanted(NamedTuple):
    """What is looked for, each (B,).

    Attributes:
        side: −1 or 1.
        fall: of twice the log-likelihood at the end.
        sd: standard deviation of the quantity, which gives the first step.
        limit: where to stop: a bound, or as far as makes no difference.
    """

    side: Array
    fall: Array
    sd: Array
    limit: Array


class Ends(NamedTuple):
    """Where the ends are.

    Attributes:
        values: (B,), infinite where the likelihood does not fall so far on the way to an infinite limit.
        batch: the trajectories there, or where the way to them was given up.
        lost: those whose way was given up before an end or a limit; their values are guesses from the pace so far.
    """

    values: Array
    batch: Batch
    lost: Index


class _Round(NamedTuple):
    """What one round found: trajectories at distances (A,) from the maximum, whether they are solutions on the right
    side, whether the fall cannot be trusted yet, the root of the fall as a share of what is wanted, and what another
    step would gain."""

    batch: Batch
    at: Array
    good: Mask
    rough: Mask
    ratio: Array
    gain: Array


@np.errstate(over="ignore", invalid="ignore")  # parameters may leave the finite numbers on their way
def find_ends(
    on: Trajectories, best: Batch, held: Held, wanted: Wanted, tolerance: float = 0.02, accuracy: float = 1e-3,
    patient: bool = True,
) -> Ends:  # fmt: skip
    """Where the profile likelihood of a held quantity has fallen by half of `wanted.fall`.

    Args:
        best: B copies of the maximum.
        held: the quantity of each.
        tolerance: of the fall, relative to what is wanted.
        accuracy: of the maxima that are returned, in nats.
        patient: follow what is not reached at once from point to point; it is given up otherwise.
    """
    if not len(wanted.side):
        return Ends(wanted.side, best, np.empty(0, np.int64))
    found = _quick(on, best, held, wanted, tolerance=tolerance)
    begin = held.value(best)
    goal = np.where(np.isfinite(found.values), found.values, wanted.limit)
    settled = np.isfinite(goal) & np.isfinite(found.batch.value)
    settled[found.lost] = False
    exact, here = found.batch, np.flatnonzero(settled)
    at = _Measured(*np.full((3, len(goal)), np.inf))
    if len(here):
        part, own, some = on.take(here), held.take(here), Wanted(*(v[here] for v in wanted))
        there = part.maximise(exact.take(here), own, goal[here], tolerance=accuracy)
        exact = exact.put(here, there)
        for all_, new in zip(at, _measured(part, there, own, some, best), strict=True):
            all_[here] = new
    for left in range(_CORRECTIONS, -1, -1):
        solved = settled & (at.left <= _LEFT) & (np.abs(held.value(exact) - goal) <= _NEAR * np.abs(goal - begin))
        error = np.abs(at.ratio**2 - 1.0)
        rises = wanted.side * at.slope * np.abs(goal - begin) > _RISE * wanted.fall
        limit = (goal == wanted.limit) & (at.ratio <= 1.0)
        sure = solved & ((rises & (error <= tolerance)) | limit) | (begin == wanted.limit)
        near = np.flatnonzero(solved & ~sure & (error <= _CORRECTED))
        if not left or not len(near):
            break
        goal[near] = _corrected(at, held, wanted, best, goal)[near]
        part, own, some = on.take(near), held.take(near), Wanted(*(v[near] for v in wanted))
        moved = _at(part, exact.take(near), own, goal[near])
        exact = exact.put(near, moved)
        for old, new in zip(at, _measured(part, moved, own, some, best), strict=True):
            old[near] = new
    # A state is held in first order only: it ends where it is, not where it should have been.
    values = np.where(sure, np.where(goal == wanted.limit, goal, held.value(exact)), found.values)
    wrong = np.flatnonzero(~sure)
    if not len(wrong) or not patient:
        return Ends(values, exact, wrong)
    some = Wanted(*(v[wrong] for v in wanted))
    best = replace(best, bend=found.batch.bend) if found.batch.bend.any() else on.bent(best)
    again = _followed(on.take(wrong), best.take(wrong), held.take(wrong), some, tolerance)
    values[wrong] = again.values
    return Ends(values, exact.put(wrong, again.batch), wrong[again.lost])


class _Measured(NamedTuple):
    """At maxima with a quantity held: the root of the fall as a share of what is wanted (B,), what is still to be
    gained in units of that (B,), and the slope of the objective by the quantity (B,)."""

    ratio: Array
    left: Array
    slope: Array


def _measured(on: Trajectories, batch: Batch, held: Held, wanted: Wanted, best: Batch) -> _Measured:
    size, a = len(batch.value), held.gradient(batch)
    H, g = on.normal(batch)
    with np.errstate(invalid="ignore", over="ignore"):
        _, gain = on.step(batch, H, g, np.full(size, _STILL), a, np.zeros(size))
        fall = 2.0 * (batch.value - best.value[0])
        # All else is at its best or at a bound, so the rest of the gradient is that of the quantity alone.
        u = on.like.unknowns
        v = u.join(batch.x0, batch.phi)
        free = np.where((v > u.low) & (v < u.high), a, 0.0)
        slope = (g * free).sum(1) / np.maximum((free * free).sum(1), 1e-300)
        # What a rounding of the unknowns does to the residuals: if that is not small, no maximum can be told.
        rounding = (np.finfo(float).eps * np.abs(v) * np.sqrt(H.diagonal)).max(1, initial=0.0)
    fine = np.isfinite(fall) & (rounding <= _ROUNDING)
    ratio = np.where(fine, np.sqrt(np.maximum(fall, 0.0) / wanted.fall), np.inf)
    left = np.where(fine & np.isfinite(gain), 2.0 * gain / wanted.fall, np.inf)
    # A step that is not damped promises much where an unknown hardly matters; what counts is what a step gains.
    doubtful = np.flatnonzero(fine & (left > _LEFT))
    if len(doubtful):
        part, own, a = on.take(doubtful), batch.take(doubtful), a[doubtful]
        real = np.zeros(len(doubtful))
        for damping in _DAMPINGS:
            still = np.zeros(len(doubtful))
            move, _ = part.step(own, H.take(doubtful), g[doubtful], np.full(len(doubtful), damping), a, still)
            with np.errstate(invalid="ignore"):
                real = np.fmax(real, own.value - part.moved(own, move).value)
        left[doubtful] = np.minimum(left[doubtful], 2.0 * real / wanted.fall[doubtful])
    return _Measured(ratio, left, slope)


def _corrected(at: _Measured, held: Held, wanted: Wanted, best: Batch, goal: Array) -> Array:
    """Ends (B,) moved along the slope of the root of the fall, by half of their distance at most."""
    distance, room = (np.abs(v - held.value(best)) for v in (goal, wanted.limit))
    with np.errstate(divide="ignore", invalid="ignore"):
        move = (1.0 - at.ratio) * at.ratio * wanted.fall / (wanted.side * at.slope)
    straight = distance / np.maximum(at.ratio, 1e-3)
    further = np.where(wanted.side * at.slope > 0, distance + move, straight)
    reach = np.minimum(np.clip(further, 0.5 * distance, 1.5 * distance), room)
    return np.asarray(held.value(best) + wanted.side * reach)


def _followed(on: Trajectories, best: Batch, held: Held, wanted: Wanted, tolerance: float) -> Ends:
    """The ends by way of maxima from point to point."""
    start, side = held.value(best), wanted.side
    room = np.abs(wanted.limit - start)
    with np.errstate(invalid="ignore"):
        known = np.isfinite(wanted.sd) & (wanted.sd > 0)
        step = np.where(known, _AIM * wanted.sd * np.sqrt(wanted.fall), 0.1 * (1e-3 + np.abs(start)))
    # The furthest maximum inside, the root of its fall, and the slope there.
    at, root, slope = np.zeros(len(side)), np.zeros(len(side)), np.zeros(len(side))
    outer = np.full(len(side), np.inf)  # the nearest maximum outside
    failures = np.zeros(len(side), int)
    found, now, active, lost = start.copy(), best, np.flatnonzero(room > 0), np.empty(0, np.int64)
    for _ in range(_POINTS):
        if not len(active):
            break
        reach = np.minimum(at + step, np.minimum(room, outer))[active]
        width, goal = reach - at[active], start[active] + side[active] * reach
        part, own, quantity = on.take(active), now.take(active), held.take(active)
        trial = _at(part, own, quantity, goal)
        some = Wanted(*(v[active] for v in wanted))
        ratio, left, steep = _measured(part, trial, quantity, some, best)
        good = np.isfinite(ratio) & (left <= _LEFT) & (np.abs(quantity.value(trial) - goal) <= _NEAR * reach)
        # A fall that jumps, or that the slopes before and after do not explain, has left the ridge, unless the step was
        # as short as can be.
        most = 3.0 * np.fmax(np.abs(slope[active]), np.abs(steep)) * width / (0.5 * some.fall) + _LEFT
        explained = (ratio - root[active] <= _GROWTH) & (ratio**2 - root[active] ** 2 <= most)
        good &= explained | (width <= _SHORTEST * reach)
        good &= (ratio < 1.0) | (side[active] * steep * reach > _RISE * some.fall)  # at an end it falls further
        close, inside = good & (np.abs(ratio**2 - 1.0) <= tolerance), good & (ratio < 1.0)
        over, limit = good & ~close & ~inside, inside & (reach >= room[active])
        with np.errstate(divide="ignore", invalid="ignore"):
            pace = width / (ratio - root[active])  # of the quantity per growth of the root
            further = np.where(pace > 0, np.minimum(_AIM, 1.0 - ratio) * pace, np.inf)
            between = (1.0 - root[active]) * pace
        further, between = np.clip(further, 0.3 * width, 3.0 * width), np.clip(between, 0.1 * width, 1.1 * width)
        step[active] = np.where(inside, further, np.where(over, np.minimum(between, 0.9 * width), 0.4 * width))
        kept, taken = inside | close, active[inside | close]
        now = now.put(taken, trial.take(np.flatnonzero(kept)))
        found[active[close]] = quantity.value(trial)[close]
        at[taken], root[taken], slope[taken] = reach[kept], ratio[kept], steep[kept]
        outer[active[over]] = reach[over]
        found[active[limit]] = np.where(np.isfinite(wanted.limit), wanted.limit, side * np.inf)[active[limit]]
        failures[active[~good]] += 1
        stuck = failures[active] > _FAILURES
        lost = np.append(lost, active[stuck])
        active = active[~close & ~limit & ~stuck]
    lost = np.append(lost, active)
    found[lost] = (start + side * np.minimum(_at_its_pace(at, root, outer), room))[lost]
    return Ends(found, now, lost)


def _at(on: Trajectories, now: Batch, held: Held, goal: Array) -> Batch:
    """Maxima with the quantity held at a goal, from maxima with it held nearby."""
    H, g = on.normal(now)
    a = held.gradient(now)
    move, _ = on.step(now, H, g, np.full(len(goal), _DAMPING), a, goal - held.value(now))
    return on.maximise(on.moved(now, move), held, goal, tolerance=1e-5)


def _quick(on: Trajectories, best: Batch, held: Held, wanted: Wanted, most: int = 25, tolerance: float = 0.02) -> Ends:
    """The ends by one Gauss–Newton step a round."""
    start, side = held.value(best), wanted.side
    room = np.abs(wanted.limit - start)
    with np.errstate(invalid="ignore"):
        known = np.isfinite(wanted.sd) & (wanted.sd > 0)
        first = np.where(known, wanted.sd * np.sqrt(wanted.fall), 0.1 * (1.0 + np.abs(start)))
    reach = np.minimum(first, room)  # how far from the maximum the next trial is
    inner, inner_ratio = np.zeros(len(side)), np.zeros(len(side))  # the furthest that is known to be inside
    outer = np.full(len(side), np.inf)
    found = np.where(room > 0, side * np.inf, start)
    to_gain = np.full(len(side), np.inf)  # as long as corrections are needed
    now, active, astray, bent = best, np.flatnonzero(room > 0), np.empty(0, np.int64), False
    for _ in range(most):
        if not len(active):
            break
        goal = start[active] + side[active] * reach[active]
        some = Wanted(*(v[active] for v in wanted))
        r = _along_the_ridge(on.take(active), now.take(active), held.take(active), some, start[active], goal, best)
        if r.rough.any() and not bent:  # Gauss–Newton alone does not lead along the ridge: once more
            now, bent = on.bent(best), True
            continue
        now = now.put(active[r.good], r.batch.take(np.flatnonzero(r.good)))
        sure = r.good & ~r.rough
        inside, over = sure & (r.ratio < 1.0), sure & (r.ratio >= 1.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            straight = r.at / r.ratio  # where a root that grows linearly arrives
        close = sure & (np.abs(r.ratio**2 - 1.0) <= tolerance)
        found[active[close]] = (start[active] + some.side * straight)[close]
        at_limit = inside & (r.at >= room[active] * (1.0 - 1e-9))
        found[active[at_limit]] = np.where(np.isfinite(some.limit), some.limit, some.side * np.inf)[at_limit]
        inner[active[inside]], inner_ratio[active[inside]] = r.at[inside], r.ratio[inside]
        outer[active[over]] = np.minimum(outer[active], r.at)[over]
        back = 0.5 * (reach[active] + inner[active])  # from where no solution was found
        step = np.where(r.good, np.clip(straight, 0.3 * r.at, 3.0 * r.at + 1e-300), back)
        step = np.where(r.rough, r.at, step)  # correct again first
        outside = (step >= outer[active]) | (step <= inner[active])
        middle = 0.5 * (inner[active] + outer[active])
        step = np.where(outside & np.isfinite(middle) & ~r.rough, middle, step)
        reach[active] = np.minimum(step, room[active])
        with np.errstate(invalid="ignore"):
            worse = r.rough & ~(r.gain < 0.5 * to_gain[active])  # steps that lead nowhere
        to_gain[active] = np.where(r.rough, r.gain, np.inf)
        astray = np.append(astray, active[worse])
        active = active[~close & ~at_limit & ~worse]
    active = np.append(active, astray)
    found[active] = (start + side * np.minimum(_at_its_pace(inner, inner_ratio, outer), room))[active]
    return Ends(found, now, active)


def _at_its_pace(inner: Array, root: Array, outer: Array) -> Array:
    """Supposed ends (B,) of what was given up: the last point inside, continued at its pace, or the first outside,
    whichever is nearer."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.minimum(np.where(root > 0, inner / root, np.inf), outer)


def _along_the_ridge(
    on: Trajectories, now: Batch, held: Held, wanted: Wanted, start: Array, goal: Array, best: Batch
) -> _Round:
    """One step of each trajectory that carries its held quantity to a goal, and how far the likelihood has fallen."""
    size = len(goal)
    H, g = on.normal(now)
    move, _ = on.step(now, H, g, np.full(size, _DAMPING), held.gradient(now), goal - held.value(now))
    trial = on.moved(now, move)
    at = wanted.side * (held.value(trial) - start)
    good = np.isfinite(trial.value) & (at > 0)  # a step that is far too long can end on the other side
    H, g = on.normal(trial)
    _, gain = on.step(trial, H, g, np.full(size, _STILL), held.gradient(trial), np.zeros(size))
    fall = np.where(good, 2.0 * (trial.value - gain - best.value[0]), np.inf)
    # A gain as large as the fall itself says that the quadratic picture does not hold yet.
    rough = good & (2.0 * gain > 0.25 * np.maximum(fall, 0.1 * wanted.fall))
    return _Round(trial, at, good, rough, np.sqrt(np.maximum(fall, 1e-12) / wanted.fall), gain)
