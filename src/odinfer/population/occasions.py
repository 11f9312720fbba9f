"""Variation between occasions of a subject: `CL ~ lognormal(CL, gamma_CL) by occasion`.

On occasion j of subject i the latent value is x_i + κ_ij with κ_ij ~ N(0, γ²). Each κ_ij is a further random effect of
the subject, switched on by an indicator of the occasion that is held constant in between. So a model with occasions is
an ordinary model with more effects, of which those of one parameter share a standard deviation.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from odinfer.data.data import Data, Experiment
from odinfer.errors import InputError
from odinfer.model.model import Model
from odinfer.model.random_effects import RandomEffect
from odinfer.problem.covariates import occasion_column
from odinfer.problem.problem import Problem

Array = NDArray[np.float64]

_BY = re.compile(r".*~.*\)\s*by\s+\w+\s*", re.DOTALL)
_DECLARATION = re.compile(r"(correlated|log|linear|real|fixed|start|local|shared|input|step)\s+[^\W\d].*", re.DOTALL)
_SHIFTED = {  # the parameter on an occasion, from that of the subject and κ
    "normal": "{0} + ({1})",
    "lognormal": "{0}*exp({1})",
    "logitnormal": "{0}/({0} + (1 - {0})*exp(-({1})))",
}


def with_occasions(problem: Problem) -> Problem:
    """The same with an effect by subject for every occasion in place of effects by occasion."""
    column = occasion_column(problem.model)
    if column is None:
        return problem
    count = max(len(_firsts(e, column)) for e in problem.data.experiments)
    if count < 2:
        raise InputError(f"no subject has two values of '{column}'; leave `by {column}` out")
    model = problem.model
    text = _expand(model.text or "", model.declarations.effects.occasion, column, count)
    return replace(
        problem,
        model=Model.from_text(text, model.name, model.inputs),
        data=with_indicators(problem.data, column, count),
    )


def with_indicators(data: Data, column: str, count: int) -> Data:
    """The same with inputs column_1, column_2, … that are 1 on a subject's first, second, … occasion and else 0.

    Raises:
        InputError: a subject has more occasions than `count`.
    """
    found = {}
    for e in data.experiments:
        firsts = _firsts(e, column)
        if len(firsts) > count:
            raise InputError(f"experiment '{e.name}' has {len(firsts)} occasions; the fit knows {count}")
        t, values = e.u[column]
        number = np.array([list(firsts).index(value) for value in values])
        found[e.name] = {f"{column}_{j + 1}": (t, (number == j).astype(float)) for j in range(count)}
    return data.with_inputs(found)


def _levels_of_the_fit(effects: tuple[RandomEffect, ...], data: Data) -> Data:
    """Data of a new subject with the indicators that the effects of a fit need."""
    own = [e for e in effects if e.deviates]
    count = sum(e.deviates is own[0].deviates for e in own)
    return with_indicators(data, own[0].by, count) if own else data


def _firsts(e: Experiment, column: str) -> dict[float, None]:
    """The occasions of a subject in the order in which they come."""
    if column not in e.u:
        raise InputError(f"experiment '{e.name}' has no column '{column}' of occasions; read it by inputs=['{column}']")
    return dict.fromkeys(float(value) for value in e.u[column][1])


def effects_of(problem: Problem, expanded: Problem) -> tuple[RandomEffect, ...]:
    """All effects of the expanded problem; those of occasions know from what they deviate."""
    effects, column = problem.model.declarations.effects, occasion_column(problem.model)
    parent = {effect.name: effect for effect in effects.subject}
    varying = [parent[effect.name] for effect in effects.occasion]
    found = []
    for effect in expanded.model.declarations.effects.subject:
        of = [p for p in varying if re.fullmatch(rf"{p.name}_{column}\d+", effect.name)]
        found.append(replace(effect, by=str(column), deviates=of[0]) if of else effect)
    return tuple(found)


def occasion_effect(name: str, column: str, j: int) -> str:
    """The name of the effect of a parameter on the j-th occasion, counted from 1."""
    return f"{name}_{column}{j}"


def _expand(text: str, effects: tuple[RandomEffect, ...], column: str, count: int) -> str:
    """The text with an effect by subject for each occasion, and equations in the parameters of the occasion."""
    names = {effect.name: f"{effect.name}_on_{column}" for effect in effects}
    word = re.compile(r"(?<!\w)(" + "|".join(names) + r")(?!\w)")
    pieces = [piece.strip() for line in text.splitlines() for piece in line.partition("#")[0].split(";")]
    found = [f"step {', '.join(f'{column}_{j + 1}' for j in range(count))}"]
    for piece in pieces:
        if _BY.fullmatch(piece):
            found += [] if re.search(rf"by\s+{column}\s*$", piece) else [piece]
        elif _DECLARATION.fullmatch(piece) or not re.search(r"[=~]", piece):
            found += [piece]
        else:
            found += [word.sub(lambda match: names[match[1]], piece)]
    for effect in effects:
        own = [occasion_effect(effect.name, column, j + 1) for j in range(count)]
        kappa = " + ".join(f"{column}_{j + 1}*{name}" for j, name in enumerate(own))
        found.append(f"{names[effect.name]} = {_SHIFTED[effect.family].format(effect.name, kappa)}")
        found += [f"{name} ~ normal(0, {effect.omega}) by subject" for name in own]
    return "\n".join(piece for piece in found if piece)
