"""The log-likelihood at the slider values of the page."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from odinfer.apps.studio.interactive import GaussianNoise, Source, problems
from odinfer.errors import InputError
from odinfer.likelihood.loglik import loglik
from odinfer.problem.parameter_vector import ParameterVector
from odinfer.problem.problem import Problem

_MOST_VALUES = 20_000  # of the data: more take too long while somebody drags
_last: dict[tuple[str, str, str], Problem | None] = {}  # the problem whose sliders move


def live_loglik(text: str, name: str, source: Source, values: Mapping[str, Any]) -> GaussianNoise:
    """The log-likelihood at values by the names of sliders; None where there is none."""
    key = text, name, repr(source)
    if key not in _last:
        _last.clear()
        _last[key] = _make_problem(text, name, source)
    if (problem := _last[key]) is None:
        return {"loglik": None}
    given = {n: values[n] for n in ParameterVector(problem).names if isinstance(values.get(n), int | float)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = loglik(problem, given)
        except InputError:  # a slider stands where the model has no value
            return {"loglik": None}
    return {"loglik": float(found) if np.isfinite(found) else None}


def _make_problem(text: str, name: str, source: Source) -> Problem | None:
    try:
        every = problems(text, name, source, [])
    except InputError:  # the page says so itself
        return None
    size = sum(e.y.size for e in every[0].data.experiments)
    return every[0] if len(every) == 1 and not every[0].model.declarations.effects and size <= _MOST_VALUES else None
