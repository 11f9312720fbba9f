"""Find experiments in which nothing ever happens, such as those whose doses were not recognised."""

from __future__ import annotations

import numpy as np

from odinfer.errors import InputError
from odinfer.model.model import Model
from odinfer.model.program import Instructions
from odinfer.problem.problem import Problem

_REMEDY = "give an initial value, or doses in a column 'amt' (--map COLUMN=amt), or as 'at 0: x += 100' in the model"


def resting_experiments(problem: Problem) -> list[str]:
    """Names of experiments in which all states start at zero and stay there, whatever the parameters."""
    model, declarations = problem.model, problem.model.declarations
    if (
        model.text is None
        or len(model.free_initial)
        or declarations.unknown
        or declarations.triggers
        or _depends_on_time(model)
    ):
        return []
    # Parameters that are drawn make an initial value or a derivative zero with probability zero.
    theta = np.random.default_rng(0).uniform(0.5, 1.5, len(model.parameters))
    for name, value in problem.fixed.items():
        if name in model.parameters:
            theta[model.parameters.index(name)] = value
    found = []
    for e, experiment in enumerate(problem.data.experiments):
        condition = problem.condition(e)
        if condition.jumps or condition.infusions:
            continue
        x0 = condition.initial(theta[None], np.empty((1, 0)))
        t = np.concatenate([[condition.start], *(experiment.u[name][0] for name in model.inputs)])
        f = condition.evaluate(t, np.zeros((len(t), x0.shape[1])), theta)
        if not x0.any() and not f.any():
            found.append(experiment.name)
    return found


def check_not_resting(problem: Problem) -> None:
    """Raise InputError where no state of any experiment ever leaves zero."""
    if len(resting_experiments(problem)) == len(problem.data.experiments):
        raise InputError(
            f"every state starts at 0 and stays there whatever the parameters, since no dose, event or input acts on "
            f"it; {_REMEDY}"
        )


def findings_of_rest(problem: Problem) -> list[str]:
    """A sentence for every experiment in which nothing happens."""
    return [
        f"all states start from 0 in experiment '{name}' and nothing enters; {_REMEDY}"
        for name in resting_experiments(problem)
    ]


def _depends_on_time(model: Model) -> bool:
    """Whether t is in an equation: what it does there may be too small to see at any one time."""
    field = Instructions()
    field.code = list(model.declarations.code)
    return any("t" in field.leaves(i) for i in model.declarations.outputs)
