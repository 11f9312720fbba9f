"""`od.simulate`: integrate a model with its events, inputs and initial values."""

from __future__ import annotations

import contextlib
import itertools
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odinfer.data.data import Experiment
from odinfer.errors import InputError, nearest
from odinfer.model.model import Model
from odinfer.ode.state_events import DENSE_UP_TO, follow
from odinfer.ode.tolerance import start_tolerance
from odinfer.problem.condition import Condition
from odinfer.problem.user_input import as_model

Array = NDArray[np.float64]

_MOST_EVALUATIONS = 100_000  # of the right-hand side, between two times at which it is restarted


class _Stopped(Exception):
    """The right-hand side left the finite numbers, or the solver will not get through."""


def simulate(
    model: Model | str | Path,
    theta: Mapping[str, float] | ArrayLike,
    x0: Mapping[str, float] | ArrayLike,
    t: ArrayLike,
    inputs: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
    rtol: float = 1e-10,
    atol: float | None = None,
) -> Array:
    """The solution of the equations at times t.

    Args:
        model: the equations: a Model, text, or the path of an .ode file.
        theta: parameters, by name or in the model's order.
        x0: states at t[0], by name or in the model's order. Those whose initial values the model gives may be left out;
            it starts where it says then, for example at time 0.
        t: increasing times (N,).
        inputs: known inputs: name → (times, values), linear in between.
        rtol: relative tolerance of the integration.
        atol: absolute tolerance. If not given, it follows the size from which each state starts.

    Returns:
        States (N, K), before what jumps at such a time. Rows after a blow-up are NaN, as are those after events that
        come ever faster: a trajectory that ends is bad luck, not bad input.

    Example:
        >>> import odinfer as od
        >>> model = od.Model.from_text("x' = -k*x; y' = k*x")
        >>> od.simulate(model, {"k": 0.5}, {"x": 1, "y": 0}, [0, 1, 2]).round(3)
        array([[1.   , 0.   ],
               [0.607, 0.393],
               [0.368, 0.632]])
    """
    model = as_model(model)
    t = np.asarray(t, float)
    if t.ndim != 1 or len(t) < 1 or not np.isfinite(t).all() or (np.diff(t) <= 0).any():
        raise InputError("the times of a simulation must be finite and increasing")
    th = _vector("theta", theta, model.parameters)
    series = _inputs(model, inputs or {})
    named = dict(zip(model.inputs, series, strict=True))
    condition = Condition.of(model, Experiment("simulation", t, np.empty((len(t), 0)), named))
    start, x = _start(condition, x0, th)
    corners = np.unique(np.concatenate([condition.corners, condition.switch_times(th), *(c for c, _ in series)]))
    # Restarted at the corners of the inputs and where anything jumps: there a solver of high order loses its footing.
    stops = np.unique(np.concatenate([[start, t[-1]], corners[(corners > start) & (corners < t[-1])]]))
    if model.declarations.triggers:
        tolerance = atol if atol is not None else start_tolerance(condition, th, x, start, float(t[-1]), rtol)
        return follow(condition, th, x, t, stops, rtol, tolerance)
    result = np.full((len(t), len(x)), np.nan)
    result[t == start] = x
    for a, b in itertools.pairwise(stops):
        for jump in (j for j in condition.jumps if j.time == a):
            x = condition.jumped(jump, x[None], th[None])[0][0]
        inside = (t > a) & (t <= b)
        where = np.unique(np.append(t[inside], b))
        tolerance = atol if atol is not None else start_tolerance(condition, th, x, a, b, rtol)
        found = _integrate(_smooth_field(condition, th, a, b), a, x, where, rtol, tolerance)
        result[np.flatnonzero(inside)] = found[: inside.sum()]
        x = found[-1]
        if not np.isfinite(x).all():
            break
    return result


def _start(condition: Condition, x0: Any, theta: Array) -> tuple[float, Array]:
    """Where a simulation starts, and the states (K,) there."""
    model = condition.model
    if not isinstance(x0, Mapping) or model.given_initial is None or {*model.states} <= {*x0}:
        return float(condition.experiment.t[0]), _vector("x0", x0, model.states)
    free = tuple(model.states[k] for k in model.free_initial)
    for name in x0:
        if name in model.states and name not in free:
            given = ", ".join(name for name in model.states if name not in free)
            raise InputError(
                f"x0: the model itself gives the initial values of {given}; leave '{name}' out or give all"
            )
    return condition.start, condition.initial(theta[None], _vector("x0", x0, free)[None])[0]


def _smooth_field(condition: Condition, theta: Array, a: float, b: float) -> Callable[[float, Array], Array]:
    """The right-hand side between two corners."""

    def rhs(now: float, state: Array) -> Array:
        out: Array = condition.evaluate(condition.inside(a, b, np.array([now])), state[None], theta[None])[0]
        if not np.isfinite(out).all():  # LSODA would never return
            raise _Stopped
        return out

    return rhs


def _integrate(
    rhs: Callable[[float, Array], Array], start: float, x: Array, where: Array, rtol: float, atol: float | Array
) -> Array:
    """States (n, K) at times `where` from x at `start`; after a blow-up, NaN."""
    from scipy.integrate import solve_ivp

    def run(a: float, x: Array, times: Array) -> Array:
        found = np.full((len(times), len(x)), np.nan)
        left = itertools.count(_MOST_EVALUATIONS, -1)

        def limited(now: float, state: Array) -> Array:
            if next(left) < 0:
                raise _Stopped
            return rhs(now, state)

        solver = "LSODA" if len(x) <= DENSE_UP_TO else "DOP853"
        with warnings.catch_warnings(), contextlib.suppress(_Stopped):
            warnings.simplefilter("ignore")  # LSODA's remarks on a solution that blows up
            y = solve_ivp(limited, (a, times[-1]), x, solver, t_eval=times, rtol=rtol, atol=atol).y
            y = np.reshape(y, (len(x), -1)).T  # an empty list if it ends before the first time
            found[: len(y)] = y
        return found

    found = run(start, x, where)
    if not np.isfinite(found[0]).all():  # stopped on the way: time by time, to keep what comes before
        for i in range(len(where)):
            found[i] = run(start if i == 0 else where[i - 1], x if i == 0 else found[i - 1], where[i : i + 1])[0]
            if not np.isfinite(found[i]).all():
                break
    return found


def _inputs(model: Model, given: Mapping[str, Any]) -> list[tuple[Array, Array]]:
    series = []
    for name in model.inputs:
        if name not in given:
            raise InputError(
                f"input '{name}' of model '{model.name}' has no values: give inputs={{'{name}': (times, values)}}"
            )
        try:
            times, values = (np.asarray(a, float) for a in given[name])
        except (TypeError, ValueError):
            raise InputError(f"input '{name}' must be a pair (times, values) of numbers") from None
        if times.ndim != 1 or times.shape != values.shape or not len(times):
            raise InputError(f"input '{name}' needs as many values as times, and at least one")
        if not (np.isfinite(times).all() and np.isfinite(values).all()) or (np.diff(times) <= 0).any():
            raise InputError(f"input '{name}' must have increasing times and finite values")
        series.append((times, values))
    return series


def _vector(what: str, given: Any, names: Sequence[str]) -> Array:
    """Values in the order of names, from a mapping or a sequence."""
    if isinstance(given, Mapping):
        for name in given:
            if name not in names:
                raise InputError(f"{what}: the model has no '{name}'{nearest(str(name), names)}")
        missing = [name for name in names if name not in given]
        if missing:
            raise InputError(f"{what}: no value for {', '.join(missing)}")
        given = [given[name] for name in names]
    try:
        values = np.asarray(given, float)
    except (TypeError, ValueError):
        raise InputError(f"{what} must be numbers") from None
    if values.shape != (len(names),):
        raise InputError(f"{what} needs {len(names)} values ({', '.join(names)}), not shape {values.shape}")
    if not np.isfinite(values).all():
        raise InputError(f"{what} must be finite")
    return values
