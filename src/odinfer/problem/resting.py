"""Refuse problems in which nothing ever happens, such as those whose doses were not recognised."""

from __future__ import annotations

import numpy as np

from odinfer.errors import InputError
from odinfer.problem.condition import Condition
from odinfer.problem.problem import Problem

_TIMES = 50  # of an experiment at which the equations are evaluated, at most


def check_not_resting(problem: Problem) -> None:
    """Raise InputError where all states start at zero and stay there, whatever the parameters."""
    model = problem.model
    if model.text is None or len(model.free_initial) or model.declarations.unknown or model.declarations.triggers:
        return
    # Parameters that are drawn are zero, or make a derivative zero, with probability zero.
    theta = np.random.default_rng(0).uniform(0.5, 1.5, len(model.parameters))
    for name, value in problem.fixed.items():
        if name in model.parameters:
            theta[model.parameters.index(name)] = value
    if all(_rests(problem.condition(e), theta) for e in range(len(problem.data.experiments))):
        raise InputError(
            "every state starts at 0 and stays there whatever the parameters, since no dose, event or input acts on "
            "it; give an initial value, or doses in a column 'amt' (--map 'COLUMN=amt' takes another)"
        )


def _rests(condition: Condition, theta: np.ndarray) -> bool:
    """Whether all states of an experiment are zero at parameters (P,) at all times."""
    if condition.jumps or condition.infusions:
        return False
    span = np.linspace(condition.start, condition.times[-1], _TIMES)
    t = np.concatenate([span, condition.times[:: 1 + len(condition.times) // _TIMES]])
    with np.errstate(all="ignore"):
        x0 = condition.initial(theta[None], np.empty((1, 0)))
        f = condition.evaluate(t, np.zeros((len(t), x0.shape[1])), theta)
    return bool((x0 == 0.0).all() and (f == 0.0).all())
