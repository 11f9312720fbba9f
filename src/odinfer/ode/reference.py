"""Single trajectories at tight tolerances by SciPy's solvers, for `od.simulate` and `od.loglik`.

LSODA integrates between the times at which the right-hand side or the states jump, Radau where it fails. The compiled
solvers are tested against this one.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from odinfer.ode.state_events import DENSE_UP_TO, follow
from odinfer.ode.steady_state import is_steady, settling_interval, steady_state
from odinfer.ode.tolerance import start_tolerance
from odinfer.problem.condition import Condition

Array = NDArray[np.float64]

_RELATIVE, _ABSOLUTE = 1e-10, 1e-12  # tolerances, the second of the largest value that a state has had
_ROUGH = 1e-6  # relative tolerance of a first integration, which tells how large states become
_MOST_STEPS = 100_000  # between two times
_MOST_SLOW_STEPS = 3000  # of Radau between two corners
_FIRST = 1e-3  # of the time: states that start at zero have the size that their first slope reaches in it
_LONGER = 1e5  # times the time to settle: integrated on before the steady state is solved for
_LEAST = 1e-9  # of the largest state: the size of smaller ones
_SMALLEST = 1e-290  # of absolute tolerances


def reference_trajectory(
    condition: Condition, theta: Array, x0: Array, t: Array, rtol: float = _RELATIVE, atol: float | None = None,
    start: float | None = None,
) -> Array:  # fmt: skip
    """States (N, K) at times t (N,) of an experiment, before what jumps then; NaN after the trajectory has ended.

    Switches at times that are parameters are those of the equations as they are written.

    Args:
        theta: the model's parameters (P,).
        x0: states (K,) at the start.
        start: that of the experiment unless another is given.
        rtol, atol: tolerances; without atol, it follows the sizes from which states start and that they reach.
    """
    condition, start = condition.with_sharp_switches, condition.start if start is None else start
    settling = settling_interval(condition)
    between = np.append(condition.switch_times(theta), settling or ())
    between = between[(between > start) & (between < t[-1])]
    stops = np.unique(np.concatenate([[start, t[-1]], between, condition.between(start, t[-1])]))
    integrate = _integrate_events if condition.model.declarations.triggers else _integrate_intervals
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of solvers that fail
        return integrate(condition, theta, x0, t, stops, settling, rtol, atol)


def settled(condition: Condition, theta: Array, x: Array, interval: tuple[float, float]) -> Array | None:
    """Solve for the steady state (K,) of a system that has come to states x (K,) and still changes.

    Integration over a much longer time gives the start for Newton's method, so that of several steady states the one is
    found to which the trajectory leads. None if x is steady or no steady state is found.
    """
    from scipy.integrate import solve_ivp

    if is_steady(condition, theta, x, interval):
        return None
    field, longer = condition.quick(theta, *interval), _LONGER * (interval[1] - interval[0])
    try:
        found = solve_ivp(
            lambda _, own: np.asarray(field(own, interval[1])), (0.0, longer), x, "LSODA", rtol=_ROUGH,
            atol=_ROUGH * np.maximum(np.abs(x), _LEAST * np.abs(x).max()) + _SMALLEST,
        )  # fmt: skip
    except (ArithmeticError, ValueError):
        return None
    near = found.y[:, -1]
    return steady_state(condition, theta, x, near, interval) if found.success and np.isfinite(near).all() else None


def _integrate_intervals(
    condition: Condition, theta: Array, x: Array, t: Array, stops: Array, settling: tuple[float, float] | None,
    rtol: float, atol: float | None,
) -> Array:  # fmt: skip
    """Integrate between stops, where states may jump."""
    found, size = np.full((len(t), len(x)), np.nan), np.abs(x)
    found[t == stops[0]] = x
    for a, b in itertools.pairwise(stops):
        for jump in (j for j in condition.jumps if j.time == a):
            x = condition.jumped(jump, x[None], theta[None])[0][0]
        inside = (t > a) & (t <= b)
        times = np.unique(np.concatenate([[a], t[inside], [b]]))
        tolerance: Array | float
        if atol is not None:
            tolerance = atol
        else:
            largest = np.maximum(size, np.abs(x)).max() or _first_size(condition, theta, x, a, b)
            rough = _integrate_lsoda(condition, theta, x, times, _ROUGH, _ROUGH * largest)
            size = size if rough is None else np.maximum(size, np.abs(rough).max(0))
            tolerance = np.minimum(_tolerance(size), start_tolerance(condition, theta, x, a, b, rtol))
        own = _integrate_lsoda(condition, theta, x, times, rtol, tolerance)
        if own is None:
            own = _integrate_stepwise(condition, theta, x, times, rtol, tolerance)
        if settling == (a, b) and np.isfinite(own).all():
            steady = settled(condition, theta, own[-1], settling)
            own[-1] = own[-1] if steady is None else steady
        x = own[-1]
        found[inside] = own[1 : 1 + inside.sum()]
        if not np.isfinite(x).all():
            break
    return found


def _integrate_events(
    condition: Condition, theta: Array, x0: Array, t: Array, stops: Array, settling: tuple[float, float] | None,
    rtol: float, atol: float | None,
) -> Array:  # fmt: skip
    """The same where states make events happen."""
    if len(stops) == 1:
        return np.tile(x0, (len(t), 1))
    if atol is not None:
        return follow(condition, theta, x0, t, stops, rtol, atol)
    largest = np.abs(x0).max() or _first_size(condition, theta, x0, stops[0], stops[-1])
    rough = follow(condition, theta, x0, t, stops, _ROUGH, _ROUGH * largest)
    size = np.abs(np.vstack([x0, rough[np.isfinite(rough).all(1)]])).max(0)
    start = start_tolerance(condition, theta, x0, stops[0], stops[1], rtol)
    return follow(condition, theta, x0, t, stops, rtol, np.minimum(_tolerance(size), start))


def _tolerance(size: Array) -> Array:
    """Absolute tolerances (K,), by the sizes that states reach."""
    return np.asarray(_ABSOLUTE * np.maximum(size, max(_LEAST * size.max(), _SMALLEST)))


def _integrate_lsoda(
    condition: Condition, theta: Array, x: Array, times: Array, rtol: float, atol: Array | float
) -> Array | None:
    """States (n, K) at times (n,) between two corners, from x at the first; None if it does not get to the last."""
    from scipy.integrate import odeint

    if len(x) > DENSE_UP_TO:
        return None
    try:
        field, jacobian = condition.quick(theta, times[0], times[-1]), _jacobian(condition, theta, times[0], times[-1])
        field(x, times[0])
        found, info = odeint(
            field, x, times, Dfun=jacobian, rtol=rtol, atol=np.maximum(atol, _SMALLEST), full_output=True,
            mxstep=_MOST_STEPS,
        )  # fmt: skip
    except (ArithmeticError, ValueError):
        return None
    return np.asarray(found) if info["message"].endswith("successful.") and np.isfinite(found).all() else None


def _integrate_stepwise(
    condition: Condition, theta: Array, x: Array, times: Array, rtol: float, atol: Array | float
) -> Array:
    """The same by Radau, or by DOP853 for many states; NaN after the trajectory has ended.

    Steps become shorter where the field is not finite.
    """
    from scipy.integrate import DOP853, Radau

    found = np.full((len(times), len(x)), np.nan)
    found[0], atol = x, np.maximum(atol, _SMALLEST)
    field, jacobian = condition.quick(theta, times[0], times[-1]), _jacobian(condition, theta, times[0], times[-1])

    def finite(now: float, x: Array) -> Array:
        try:
            return np.asarray(field(x, now))
        except (ArithmeticError, ValueError):
            return np.full(len(x), np.nan)

    row = 1
    if not np.isfinite(finite(times[0], x)).all():
        return found
    try:
        if len(x) <= DENSE_UP_TO:
            solver = Radau(
                finite, times[0], x, times[-1], rtol=max(rtol, 1e-9), atol=atol, jac=lambda now, x: jacobian(x, now)
            )
        else:
            solver = DOP853(finite, times[0], x, times[-1], rtol=rtol, atol=atol)
        for _ in range(_MOST_SLOW_STEPS):
            solver.step()
            if solver.status == "failed":
                break
            until = int(np.searchsorted(times, solver.t, "right"))
            found[row:until] = solver.dense_output()(times[row:until]).T
            row = until
            if solver.status == "finished":
                break
    except (ArithmeticError, ValueError):  # a Jacobian that is not finite
        pass
    return found


def _first_size(condition: Condition, theta: Array, x: Array, a: float, b: float) -> float:
    """The size of states that all start at zero; 1 where nothing tells."""
    slope = condition.evaluate(condition.inside(a, b, np.array([a])), x[None], theta[None])[0]
    return float(_FIRST * (b - a) * np.abs(slope).max()) or 1.0


def _jacobian(condition: Condition, theta: Array, a: float, b: float) -> Callable[[Array, float], Array]:
    def at(x: Array, now: float) -> Array:
        return np.asarray(condition.linearise(condition.inside(a, b, np.array([now])), x[None], theta[None])[1][0])

    return at
