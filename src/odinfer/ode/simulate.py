"""`od.simulate`: integrate a model with its events, inputs and initial values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odinfer.data.data import Experiment
from odinfer.errors import InputError, nearest
from odinfer.model.model import Model
from odinfer.ode.reference import reference_trajectory
from odinfer.problem.condition import Condition
from odinfer.problem.user_input import as_model

Array = NDArray[np.float64]


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
        atol: absolute tolerance. If not given, it follows the sizes from which states start and that they reach.

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
    return reference_trajectory(condition, th, x, t, rtol, atol, start)


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
