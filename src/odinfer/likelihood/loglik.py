"""`od.loglik` without random effects: the log-likelihood at given values by integration at tight tolerances."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from odinfer.checks import checked_number
from odinfer.errors import InputError, InputWarning, nearest
from odinfer.observation import observation_of
from odinfer.ode.reference import reference_trajectory, settled
from odinfer.ode.steady_state import settling_interval, steady_state_warnings
from odinfer.problem.parameter_vector import ParameterVector
from odinfer.problem.problem import Problem

Array = NDArray[np.float64]


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
            interval and found is not None and settled(problem.condition(e), theta, found[-1], interval) is not None
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
    x = reference_trajectory(condition, theta, condition.initial(theta[None], unknowns.x0(v, e)[None])[0], t)
    return x if np.isfinite(x).all() else None


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
