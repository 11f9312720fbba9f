"""`od.loglik` without random effects: the log-likelihood at given values by integration at tight tolerances."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from odinfer.checks import checked_number
from odinfer.errors import InputError, InputWarning, nearest
from odinfer.observation import observation_of
from odinfer.ode.state_events import follow
from odinfer.ode.steady_state import is_steady, settling_interval, steady_state, steady_state_warnings
from odinfer.ode.tolerance import start_tolerance
from odinfer.problem.condition import Condition
from odinfer.problem.parameter_vector import ParameterVector
from odinfer.problem.problem import Problem

Array = NDArray[np.float64]

_RELATIVE, _ABSOLUTE = 1e-10, 1e-12  # accuracy, the second of the largest value that a state has had
_ROUGH = 1e-6  # of a first look, which tells how large states become
_MOST_STEPS = 100_000  # between two times
_FIRST = 1e-3  # of the time: what states that start at zero reach in it at their first pace is their size at first
_LONGER = 1e5  # times the time to settle: integrated on before the steady state is solved for
_LEAST = 1e-9  # of the largest state: what counts as the size of smaller ones


def loglik(problem: Problem, values: Mapping[str, float]) -> float:
    """The log-likelihood of the data, without priors, at given parameters.

    Args:
        problem: a model and data.
        values: parameters by name, such as "k" or "k[experiment]", free initial values such as "x(0)" or
            "x(0)[experiment]". Those that are fixed may be left out. "sigma x" is the standard deviation of the noise
            of x where it is estimated; left out, it is the most likely one.

    Returns:
        −∞ where the trajectory ends before the data do, or what is observed is impossible.

    Warns:
        InputWarning: a system that should settle, before the data or for a measurement at steady state, has not.

    Raises:
        InputError: a value is missing, or of nothing that the problem has.

    Example:
        >>> import odinfer as od
        >>> data = od.Data([0, 1, 2, 3, 4], [3.0, 1.9, 1.1, 0.7, 0.45], states=["x"])
        >>> problem = od.Problem(od.Model.from_text("x' = -k*x"), data, sigma={"x": 0.05})
        >>> [round(od.loglik(problem, {"k": k, "x(0)": 3.0}), 2) for k in (0.45, 0.48)]
        [5.86, 9.49]
    """
    problem, v = at(problem, values)
    x, unknowns = solutions(problem, v), ParameterVector(problem)
    if x is None:
        return -np.inf

    def states(e: int, t: Array) -> Array | None:
        """States that are integrated; None where the steady state was solved for instead."""
        interval, found = settling_interval(problem.condition(e)), _states(problem, unknowns, v, e, t)
        theta = problem.theta_of(e, unknowns.phi(v))
        solved = (
            interval and found is not None and _steady(problem.condition(e), theta, found[-1], interval) is not None
        )
        return None if solved else found

    for message in steady_state_warnings(problem, states):
        warnings.warn(message, InputWarning, stacklevel=2)
    y = [e.y[None] for e in problem.data.experiments]
    return float(observation_of(problem).best(x, y, unknowns.phi(v)[None])[1][0])


def solutions(problem: Problem, v: Array) -> list[Array] | None:
    """States (1, N, K) at the observation times of every experiment at unknowns v (P,); None if one ends earlier."""
    x, unknowns = [], ParameterVector(problem)
    for e, experiment in enumerate(problem.data.experiments):
        t, row = np.unique(experiment.moments, return_inverse=True)
        found = _states(problem, unknowns, v, e, t)
        if found is None:
            return None
        x.append(found[None, row])
    return x


def _states(problem: Problem, unknowns: ParameterVector, v: Array, e: int, t: Array) -> Array | None:
    """States (n, K) of an experiment at times (n,), at unknowns v (P,); None if the trajectory ends earlier."""
    condition, theta = problem.condition(e), problem.theta_of(e, unknowns.phi(v))
    return solution(condition, theta, condition.initial(theta[None], unknowns.x0(v, e)[None])[0], t)


def at(problem: Problem, values: Mapping[str, float]) -> tuple[Problem, Array]:
    """The problem with what is said of its fixed values and noise, and the vector of its unknowns (P,)."""
    unknowns = ParameterVector(problem, noise=True)
    noise = {f"sigma {c}": c for c, own in zip(problem.columns, problem.estimated_noise, strict=True) if own}
    known = (*unknowns.names, *problem.fixed)
    for name, value in values.items():
        if name not in known:
            raise InputError(f"loglik: the problem has no '{name}'{nearest(str(name), known)}")
        checked_number(f"loglik: the value of '{name}'", value)
    sigma = {**problem.sigma, **{c: float(values[name]) for name, c in noise.items() if name in values}}
    fixed = {name: float(values.get(name, value)) for name, value in problem.fixed.items()}
    problem = replace(problem, sigma=sigma, fixed=fixed)
    v = []
    is_log = dict(zip(problem.free, problem.is_log, strict=True))
    for name in ParameterVector(problem).names:
        if name not in values:
            raise InputError(f"loglik: '{name}' has no value; give all of {', '.join(ParameterVector(problem).names)}")
        value = float(values[name])
        if is_log.get(name) and value <= 0:
            raise InputError(f"loglik: '{name}' must be positive, not {value:g}: it is on a log scale")
        v.append(np.log(value) if is_log.get(name) else value)
    return problem, np.array(v, float)


def solution(condition: Condition, theta: Array, x0: Array, t: Array) -> Array | None:
    """States (N, K) at times t (N,) of an experiment, before what jumps then; None if the trajectory ends earlier.

    Switches at times that are parameters are those of the equations as they are written.

    Args:
        theta: the model's parameters (P,).
        x0: states (K,) at the start of the experiment.
    """
    condition = condition.with_sharp_switches
    interval = settling_interval(condition)
    between = np.append(condition.switch_times(theta), interval or ())
    between = between[(between > condition.start) & (between < t[-1])]
    stops = np.unique(np.concatenate([[condition.start, t[-1]], between, condition.between(condition.start, t[-1])]))
    if condition.model.declarations.triggers:
        return _integrate_events(condition, theta, x0, t, stops)
    found, x, size = np.full((len(t), len(x0)), np.nan), x0, np.abs(x0)
    found[t == condition.start] = x0
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of what is tried and given up
        for a, b in itertools.pairwise(stops):
            for jump in (j for j in condition.jumps if j.time == a):
                x = condition.jumped(jump, x[None], theta[None])[0][0]
            inside = (t > a) & (t <= b)
            times = np.unique(np.concatenate([[a], t[inside], [b]]))
            # Tolerances of single states go by the sizes that they reach, which only a solution tells.
            largest = (
                np.maximum(size, np.abs(x)).max() or _FIRST * (b - a) * np.abs(_slope(condition, theta, x, a, b)).max()
            )
            rough = _integrate(condition, theta, x, times, _ROUGH, _ROUGH * largest)
            if rough is None:
                return None
            size = np.maximum(size, np.abs(rough).max(0))
            tolerance = np.minimum(_tolerance(size), start_tolerance(condition, theta, x, a, b, _RELATIVE))
            own = _integrate(condition, theta, x, times, _RELATIVE, tolerance)
            if own is None:
                return None
            if interval == (a, b) and (steady := _steady(condition, theta, own[-1], interval)) is not None:
                own[-1] = steady
            x = own[-1]
            found[inside] = own[1 : 1 + inside.sum()]
    return found


def _steady(condition: Condition, theta: Array, x: Array, interval: tuple[float, float]) -> Array | None:
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
            atol=_ROUGH * np.maximum(np.abs(x), _LEAST * np.abs(x).max()) + 1e-290,
        )  # fmt: skip
    except (ArithmeticError, ValueError):
        return None
    near = found.y[:, -1]
    return steady_state(condition, theta, x, near, interval) if found.success and np.isfinite(near).all() else None


def _integrate_events(condition: Condition, theta: Array, x0: Array, t: Array, stops: Array) -> Array | None:
    """The same where states make events happen."""
    if len(stops) == 1:
        return np.tile(x0, (len(t), 1))
    slope = np.abs(_slope(condition, theta, x0, stops[0], stops[1])).max()
    largest = np.abs(x0).max() or _FIRST * (stops[-1] - stops[0]) * slope
    rough = follow(condition, theta, x0, t, stops, _ROUGH, _ROUGH * largest)
    size = np.abs(np.vstack([x0, rough[np.isfinite(rough).all(1)]])).max(0)
    start = start_tolerance(condition, theta, x0, stops[0], stops[1], _RELATIVE)
    found = follow(condition, theta, x0, t, stops, _RELATIVE, np.minimum(_tolerance(size), start))
    return found if np.isfinite(found).all() else None


def _tolerance(size: Array) -> Array:
    """In absolute terms (K,), by the sizes that states reach."""
    return np.asarray(_ABSOLUTE * np.maximum(size, max(_LEAST * size.max(), 1e-290)))


def _integrate(
    condition: Condition, theta: Array, x: Array, times: Array, rtol: float, atol: Array | float
) -> Array | None:
    """States (n, K) at times (n,) between two corners, from x at the first: by LSODA or, where it fails, by Radau."""
    from scipy.integrate import odeint, solve_ivp

    a, b = times[0], times[-1]
    try:
        field = condition.quick(theta, a, b)
        field(x, a)
        found, info = odeint(
            field, x, times, Dfun=_jacobian(condition, theta, a, b), rtol=rtol, atol=np.maximum(atol, 1e-290),
            full_output=True, mxstep=_MOST_STEPS,
        )  # fmt: skip
        if info["message"].endswith("successful.") and np.isfinite(found).all():
            return np.asarray(found)
        jacobian = _jacobian(condition, theta, a, b)
        other = solve_ivp(
            lambda now, own: np.asarray(field(own, now)), (a, b), x, "Radau", times,
            jac=lambda now, own: jacobian(own, now), rtol=max(rtol, 1e-9), atol=np.maximum(atol, 1e-290),
        )  # fmt: skip
        return other.y.T if other.success and np.isfinite(other.y).all() else None
    except (ArithmeticError, ValueError):
        return None


def _slope(condition: Condition, theta: Array, x: Array, a: float, b: float) -> Array:
    """The derivatives (K,) of states x at the beginning of an interval."""
    return np.asarray(condition.evaluate(condition.inside(a, b, np.array([a])), x[None], theta[None])[0])


def _jacobian(condition: Condition, theta: Array, a: float, b: float) -> Callable[[Array, float], Array]:
    def at(x: Array, now: float) -> Array:
        return np.asarray(condition.linearise(condition.inside(a, b, np.array([now])), x[None], theta[None])[1][0])

    return at
