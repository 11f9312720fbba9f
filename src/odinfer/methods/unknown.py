"""Fit a model with unknown functions: choose their scale, fit as usual, and keep the functions with their bands."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np

from odinfer.errors import InputWarning
from odinfer.methods.unknown_scale import (
    effective_unknowns,
    freedom_of,
    scale_covariance,
    values_along,
    with_chosen_scales,
)
from odinfer.noise.laplace import Laplace
from odinfer.problem.problem import Problem
from odinfer.progress import Progress, sub_progress
from odinfer.result.fit import Fit
from odinfer.result.unknown import estimated
from odinfer.style.text import format_number

_SATURATED = 0.8  # of the basis functions: with more degrees of freedom, a function may be too smooth for the data


def fit_unknown(method: Any, problem: Problem, seed: int, progress: Progress | None, options: dict[str, Any]) -> Fit:
    """Infer parameters, states and unknown functions by a method.

    Warns:
        InputWarning: the likelihood has kinks, about which it is not quadratic.
    """
    if any(isinstance(column.family, Laplace) for column in problem.observed):
        warnings.warn(
            "the likelihood of Laplace noise has kinks: with unknown functions the fit is slow, and bands and tests "
            "are unreliable; student(mean, s, 4) also allows outliers and has none",
            InputWarning,
            stacklevel=2,
        )
    chosen = with_chosen_scales(problem, seed, sub_progress(progress, 0.0, 0.5))
    given = {own.label for own in problem.model.declarations.unknown if own.scale is not None}
    return with_functions(method.fit(chosen, seed, sub_progress(progress, 0.5, 1.0), **options), given)


def with_functions(fit: Fit, given: Collection[str]) -> Fit:
    """The fit with its unknown functions and effective degrees of freedom; as it is where there is no maximum.

    Args:
        given: labels of the functions whose scale is known.
    """
    maximum = fit.cache.maximum
    if maximum is None:
        return fit
    problem, found = maximum.problem, maximum.refined
    noise = sum(problem.estimated_noise)
    stored, words = {}, []
    for own in problem.model.declarations.unknown:
        curves = [e.curve for e in fit.experiments.values()]
        theta = problem.theta(found.phi)[: len(problem.model.parameters)]
        seen = np.concatenate([
            np.stack([values_along(problem, name, e, x.t, c.at(x.t)[0], theta) for name in own.arguments], -1)
            for e, (x, c) in enumerate(zip(problem.data.experiments, curves, strict=True))
        ])  # fmt: skip
        W = len(own.parameters)
        doubt = np.zeros((W, W)) if own.label in given else scale_covariance(problem, found, own)
        one = estimated(maximum, own, freedom_of(problem, found, own), seen, doubt)
        stored[own.label] = one.stored()
        ends = " and ".join(
            f"{name} from {format_number(a, 3)} to {format_number(b, 3)}"
            for name, (a, b) in zip(own.arguments, one.domain, strict=True)
        )
        beyond = "it repeats" if own.period is not None else "beyond, it keeps its last value, an assumption"
        words.append(
            f"{own.label} is estimated for {ends}, with {format_number(one.freedom, 2)} effective degrees of freedom; "
            f"{beyond}"
        )
        if one.freedom > _SATURATED * len(own.coefficients):
            words.append(
                f"{own.label} uses nearly all of its {len(own.coefficients)} basis functions: sharper changes are "
                "smoothed, and the band may miss them"
            )
    theirs = {name for own in problem.model.declarations.unknown for name in own.parameters}
    coefficients = [name for name in problem.parameters if name.partition("[")[0] in theirs]
    details = {**fit.details, "unknown": stored, "unknown_notes": words, "coefficients": coefficients}
    details["unknowns"] = effective_unknowns(problem, found) + noise
    return replace(fit, details=details)
