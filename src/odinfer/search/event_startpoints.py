"""Start points of models whose states trigger events.

A threshold that no trajectory crosses has no influence, so that searches cannot find it from there. Where an event sets
a state back, its threshold is near the largest or the smallest values that were observed.

Over a long time trajectories whose events come a little too early or too late are out of phase with the data, and a
trajectory without any event fits better. So the first start points are ends of searches over growing horizons, and
then over all data for as long as changed copies of the ends lead to better ones.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from odinfer.errors import InputError
from odinfer.likelihood.batch_likelihood import BatchLikelihood
from odinfer.problem.parameter_vector import ParameterVector
from odinfer.problem.problem import Problem
from odinfer.search.startpoints import difference_noise
from odinfer.search.trust_region import minimise_batch

Array = NDArray[np.float64]

_EXTREME = 0.1  # share of the observations, at either end, of which one is drawn
_SHARE = 0.75  # of the start points that are changed
_FIRST, _GROWTH = 5, 1.35  # observations in the first horizon, and how much longer the next one is
_COPIES = 4  # of a start point on average, more of the better ones
_NEAR = 0.03  # standard deviation of changes of copies: of logarithms, or as a share of a value
_STARTS, _KEPT = 80, 16  # start points over the first horizon, and how many are carried on to the next
_ROUNDS = 30  # of the search over a horizon
_MOST, _PATIENCE = 20, 4  # searches over all data at most, and without improvement
_APART = 0.1  # nats by which ends differ that are not the same


def event_startpoints(problem: Problem, drawn: Iterator[Array], rng: np.random.Generator) -> Iterator[Array]:
    """Start points (P,): ends over growing horizons, best first, then drawn ones with thresholds at observations."""
    drawn = with_thresholds(problem, drawn, rng)
    v = np.stack([next(drawn) for _ in range(_STARTS)])
    noise = zip(problem.columns, difference_noise(problem).tolist(), problem.estimated_noise, strict=True)
    weights = {column: sd for column, sd, estimated in noise if estimated} | dict(problem.sigma)
    share = np.ones(_STARTS)  # of the copies
    longest = max(len(e.t) for e in problem.data.experiments)
    growing = _FIRST * _GROWTH ** np.arange(np.ceil(max(np.log(longest / _FIRST) / np.log(_GROWTH), 0.0)))
    best: list[float] = []  # over all data
    for rows in [*growing, *[float(longest)] * _MOST]:
        try:
            part = replace(problem, sigma=weights, data=problem.data.first(rows / longest))
        except InputError:  # a column has no value so early
            continue
        counts = np.ceil(_COPIES * len(v) * share / share.sum()).astype(int)
        copies = _copies(part, np.repeat(v, counts, 0), rng)
        ends = minimise_batch(BatchLikelihood.of(part), np.stack([*v, *copies]), rounds=_ROUNDS)
        kept: list[int] = []
        for i in np.argsort(ends.value)[: int(np.isfinite(ends.value).sum())].tolist():
            if all(abs(ends.value[i] - ends.value[j]) > _APART for j in kept[-1:]) and len(kept) < _KEPT:
                kept.append(i)
        if kept:
            v, share = ends.v[kept], 1.0 / np.arange(1, len(kept) + 1)
        best += [float(ends.value.min())] if rows == longest else []
        if len(best) > _PATIENCE and best[-1] > best[-1 - _PATIENCE] - _APART:
            break
    return itertools.chain(v[:_KEPT], drawn)


def _copies(problem: Problem, v: Array, rng: np.random.Generator) -> list[Array]:
    """Start points (P,) of which half are changed a little and half have thresholds at observations.

    Where an event comes on the wrong side of an observation, the likelihood has a jump that no gradient leads across.
    """
    u, near = ParameterVector(problem), rng.uniform(size=len(v)) < 0.5
    size = np.abs(v)
    size[:, u.of_phi] = np.where(problem.is_log, 1.0, size[:, u.of_phi])
    moved = v + _NEAR * size * rng.normal(size=v.shape)
    return [*np.clip(moved[near], u.low, u.high), *with_thresholds(problem, iter(v[~near]), rng)]


def with_thresholds(problem: Problem, drawn: Iterator[Array], rng: np.random.Generator) -> Iterator[Array]:
    """Start points (P,) with thresholds of events at observations; the same where a model has no events of states."""
    every = [gap for trigger in problem.model.declarations.triggers for gap in trigger.gaps]
    states = _observed_states(problem)
    u = ParameterVector(problem)
    for v in drawn:
        for gap in every:
            if rng.uniform() < _SHARE:
                v = _meet_threshold(problem, u, v, gap, states, rng)
        yield np.clip(v, u.low, u.high)


def _observed_states(problem: Problem) -> Array:
    """States (N, K) of the first experiment at its observations; NaN where they are not observed as they are."""
    m, first = problem.model, problem.data.experiments[0]
    found = np.full((len(first.t), len(m.states)), np.nan)
    for column, own in zip(problem.observed, first.y.T, strict=True):
        for k, name in enumerate(m.states):
            if column.arguments[0] == m.instruction(name):
                found[:, k] = own
    return found


def _meet_threshold(
    problem: Problem, u: ParameterVector, v: Array, gap: int, states: Array, rng: np.random.Generator
) -> Array:  # fmt: skip
    """Unknowns (P,) with one parameter such that both sides of a comparison are equal at a random observation."""
    m, condition, index = problem.model, problem.condition(0), problem.own_index(0)
    theta, t = problem.theta_of(0, u.phi(v)), condition.experiment.t
    rows = np.broadcast_to(theta, (len(t), len(theta)))
    g, gx, gt = (
        part[:, 0] for part in m.program((gap,)).linearise(t, np.nan_to_num(states), rows, condition.inputs_at(t))
    )
    places = [j for j, i in enumerate(index) if gt[:, i].any()]
    known = np.isfinite(np.where(gx != 0.0, states, 0.0)).all(1) & (gx != 0.0).any(1)
    if not places or not known.any():
        return v
    j = int(rng.choice(places))
    change = np.sort(-g[known] / gt[known, index[j]])
    far = rng.uniform(0.0, _EXTREME) * (len(change) - 1)
    chosen = change[int(far)] if rng.uniform() < 0.5 else change[-1 - int(far)]
    moved, place = theta.copy(), problem.own_phi(0)[j]
    moved[index[j]] += chosen
    if not np.isfinite(moved[index[j]]) or (problem.is_log[place] and moved[index[j]] <= 0.0):
        return v
    v = v.copy()
    value = moved[index[j]]
    v[u.of_phi.start + place] = np.log(value) if problem.is_log[place] else value
    return v
