"""`od.loglik`: the log-likelihood at given values, marginal where parameters vary by subject."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import numpy as np

from odinfer.checks import checked_choice
from odinfer.errors import InputError, InputWarning
from odinfer.likelihood.loglik import loglik as of_trajectories
from odinfer.population.marginal import APPROXIMATIONS, LARGEST_ERROR, first_order, laplace, marginal
from odinfer.population.nodes import Engine
from odinfer.population.structure import Structure
from odinfer.problem.problem import Problem


def loglik(problem: Problem, values: Mapping[str, float], approximation: str = "exact") -> float:
    """The log-likelihood of the data, without priors, at given parameters.

    Where parameters vary by subject, it is the marginal likelihood: the integral over all random effects.

    Args:
        problem: a model and data.
        values: parameters by name, such as "k" or "k[experiment]", free initial values such as "x(0)" or
            "x(0)[experiment]". Those that are fixed may be left out. "sigma x" is the standard deviation of the noise
            of x where it is estimated; left out, it is the most likely one. In population models: all parameters of
            the population, such as "CL_pop", "omega_CL", "corr(CL,V)" and "sigma conc".
        approximation: of the marginal likelihood: "exact", or "laplace", "focei" (first-order conditional estimation
            with interaction), "fo" (first order).

    Returns:
        −∞ where the trajectory ends before the data do, or what is observed is impossible.

    Warns:
        InputWarning: a system that should settle, before the data or for a measurement at steady state, has not; or the
            numerical error of a marginal likelihood exceeds 0.1.

    Raises:
        InputError: a value is missing, or of nothing that the problem has.

    Example:
        >>> import odinfer as od
        >>> data = od.Data([0, 1, 2, 3, 4], [3.0, 1.9, 1.1, 0.7, 0.45], states=["x"])
        >>> problem = od.Problem(od.Model.from_text("x' = -k*x"), data, sigma={"x": 0.05})
        >>> [round(od.loglik(problem, {"k": k, "x(0)": 3.0}), 2) for k in (0.45, 0.48)]
        [5.86, 9.49]
    """
    checked_choice("approximation", approximation, APPROXIMATIONS)
    if not problem.model.declarations.effects:
        if approximation != "exact":
            raise InputError("an approximation is for models with random effects; leave it out")
        return of_trajectories(problem, values)
    structure = Structure.of(problem)
    engine, v = Engine(structure), structure.vector(values)
    if not np.isfinite(structure.means(v)[0]).all():
        return -np.inf
    if approximation == "fo":
        return float(first_order(engine, v).sum())
    if approximation != "exact":
        return float(laplace(engine, v, expected=approximation == "focei").sum())
    found = marginal(engine, v)
    if found.error > LARGEST_ERROR:
        message = f"the numerical error of the log-likelihood is about {found.error:.2g}"
        warnings.warn(f"{message}; give fewer random effects, or more data of each subject", InputWarning, stacklevel=2)
    return found.value
