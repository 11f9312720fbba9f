"""Steady states: test whether one is reached, else solve for it by Newton's method with conservation laws."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from odinfer.errors import listed
from odinfer.problem.condition import Condition
from odinfer.problem.problem import Problem

Array = NDArray[np.float64]

# A stretch without data is one to settle in if it is so long, and so many times as long as all others together.
_LONG, _TIMES = 9e5, 500.0
_WHEN = np.array([0.0, 0.5, 0.75, 0.999])  # of it: its beginning, and where states are compared
_STILL, _ROUNDING = 1e-4, 1e-8  # of its size then, and of that at the beginning: how much a state may still change


_MOST_STATES = 300  # for which the Jacobian is factored
_MOST_STEPS, _CONVERGED = 50, 1e-10  # Newton steps, and the largest relative step at which they have converged
_BALANCED = 1e-8  # of the terms of a derivative: how much of them may be left
_DEPENDENT, _UNSTABLE = 1e-9, 1e-12  # relative singular value of a conserved quantity, and real part of an eigenvalue


def settling_interval(condition: Condition) -> tuple[float, float] | None:
    """The interval of time without data in which a system is to settle; None if there is none."""
    stops = np.union1d(condition.times, condition.between(condition.times[0], condition.times[-1]))
    gaps = np.diff(stops)
    if not len(gaps):
        return None
    i = int(gaps.argmax())
    if gaps[i] < _LONG or gaps[i] < _TIMES * (gaps.sum() - gaps[i]):
        return None
    return float(stops[i]), float(stops[i + 1])


def is_steady(condition: Condition, theta: Array, x: Array, interval: tuple[float, float]) -> bool:
    """Whether states (K,) at the end of an interval would hardly change in another interval of its length."""
    begin, end = interval
    f = condition.evaluate(condition.inside(begin, end, np.array([end])), x[None], theta[None])[0]
    return bool((np.abs(f) * (end - begin) <= _STILL * np.abs(x) + _ROUNDING * np.abs(x).max(initial=0.0)).all())


def steady_state(
    condition: Condition, theta: Array, x: Array, near: Array, interval: tuple[float, float]
) -> Array | None:
    """Solve for the stable steady state of the equations by Newton's method.

    Linear conserved quantities, found as the null space of the derivatives at random states, have the values that they
    have at x; they replace the equations that depend on the others.

    Args:
        theta: parameters of the model (P,).
        x: states (K,) that have the conserved quantities.
        near: states (K,) from which Newton's method starts.
        interval: in which time is constant.

    Returns:
        States (K,); None if the equations change in time, Newton's method does not converge, or the solution is
        negative where x is not, or unstable.
    """
    times = interval[0] + (interval[1] - interval[0]) * np.array([0.3, 0.7, 0.999])
    f = condition.evaluate(times, np.tile(near, (3, 1)), np.tile(theta, (3, 1)))
    if len(x) > _MOST_STATES or not np.isfinite(f).all() or (f != f[0]).any():
        return None
    conserved = _conservation_laws(condition, theta, near, times[-1])
    own, positive = near.copy(), (x >= 0.0) & (near >= 0.0)
    for _ in range(_MOST_STEPS):
        size = np.maximum(np.abs(own), 1e-12 * np.abs(own).max(initial=0.0) + 1e-290)
        f, J, _ = (part[0] for part in condition.linearise(times[-1:], own[None], theta[None]))
        if not (np.isfinite(f).all() and np.isfinite(J).all()):
            return None
        A = np.vstack([J * size, conserved * size])
        scale = np.maximum(np.linalg.norm(A, axis=1), 1e-290)
        right = -np.concatenate([f, conserved @ (own - x)])
        step = size * np.linalg.lstsq(A / scale[:, None], right / scale, rcond=1e-14)[0]
        if (np.abs(step) <= _CONVERGED * size).all():
            eigenvalues = np.linalg.eigvals(J)
            stable = eigenvalues.real.max() <= _UNSTABLE * np.abs(eigenvalues).max()
            solved = (np.abs(f) <= _BALANCED * np.abs(J) @ np.abs(own)).all()
            return own if stable and solved else None
        falling = positive & (own + step < 0.0)
        share = min(1.0, 0.9 * float((own[falling] / -step[falling]).min(initial=np.inf)))
        if share <= 0.0:
            return None
        own = own + share * step
    return None


def _conservation_laws(condition: Condition, theta: Array, x: Array, t: float) -> Array:
    """Coefficients (C, K) of the linear combinations of states that do not change, whatever the states are."""
    M = 3 * len(x) + 10
    size = np.where(x == 0.0, np.abs(x).max(initial=0.0) or 1.0, x)
    points = size * np.exp(np.random.default_rng(0).normal(size=(M, len(x))))
    with np.errstate(all="ignore"):
        f = condition.evaluate(np.full(M, t), points, np.tile(theta, (M, 1)))
    f = f[np.isfinite(f).all(1)]
    scale = np.abs(f).max(0, initial=0.0)
    scale[scale == 0.0] = 1.0
    _, values, rows = np.linalg.svd(np.vstack([f / scale, np.zeros((len(x), len(x)))]))
    return np.asarray(rows[values <= _DEPENDENT * values.max(initial=1e-290)] / scale)


def _times_of_interest(condition: Condition) -> Array | None:
    """When a system begins to settle and three times at which it has; None if it has no time to settle in."""
    interval = settling_interval(condition)
    return None if interval is None else np.asarray(interval[0] + (interval[1] - interval[0]) * _WHEN)


def steady_state_warnings(problem: Problem, states: Callable[[int, Array], Array | None]) -> list[str]:
    """A sentence on states that still change when their time to settle is over; none if all have settled.

    Args:
        problem: a model and data.
        states: (e, t (n,)) ↦ the states (n, K) of experiment e at times, or None if it ends before.
    """
    moving: list[str] = []
    for e in range(len(problem.data.experiments)):
        t = _times_of_interest(problem.condition(e))
        x = None if t is None else states(e, t)
        if x is None:
            continue
        still = _STILL * np.abs(x[1:]).max(0) + _ROUNDING * np.abs(x[0])
        moving += [s for s, m in zip(problem.model.states, np.ptp(x[1:], 0) > still, strict=True) if m]
    if not moving:
        return []
    names = list(dict.fromkeys(moving))
    verb = "has" if len(names) == 1 else "have"
    return [f"{listed(names)} {verb} not settled when the time for it is over: what is measured then is not steady"]
