"""Covariates: columns that are constant within a subject and occur in the centre of a random effect."""

from __future__ import annotations

import numpy as np

from odinfer.data.data import Data
from odinfer.errors import InputError
from odinfer.model.model import Model


def covariate_columns(model: Model) -> tuple[str, ...]:
    """The names in a model that may be columns of covariates, labels and occasions included."""
    effects = model.declarations.effects
    omegas = {effect.omega for effect in (*effects.subject, *effects.occasion)}
    names = [name for name in effects.names if name not in omegas]
    labelled = [column for column, _ in effects.labels.values()]
    return tuple(dict.fromkeys([*names, *labelled]))


def occasion_column(model: Model) -> str | None:
    """The column of occasions that a model names, if any."""
    effects = model.declarations.effects.occasion
    return effects[0].by if effects else None


def with_covariates(model: Model, data: Data) -> Data:
    """Take covariates out of the observed columns and inputs of the data, and the occasions into the inputs.

    Raises:
        InputError: a covariate changes within a subject, or is missing.
    """
    found: dict[str, dict[str, float | str]] = {e.name: {} for e in data.experiments}
    observable = {*model.states, *(c.name for c in model.declarations.columns), *model.declarations.definitions}
    for name in covariate_columns(model):
        for e in data.experiments:
            if name in e.covariates:
                continue
            if name in data.states and name not in observable:
                values = e.y[:, data.states.index(name)]
            elif name in e.u:
                values = e.u[name][1]
            else:
                continue
            known = np.unique(values[np.isfinite(values)])
            if len(known) != 1:
                wrong = f"changes from {known[0]:g} to {known[-1]:g}" if len(known) else "has no value"
                remedy = (
                    "a covariate has one value per subject" if len(known) else "fill it in, or leave the subject out"
                )
                raise InputError(f"experiment '{e.name}': covariate '{name}' {wrong}; {remedy}")
            found[e.name][name] = float(known[0])
    taken = {name for own in found.values() for name in own}
    data = data.with_covariates(found)
    if (column := occasion_column(model)) in data.states:
        place = data.states.index(str(column))
        seen = {e.name: np.isfinite(e.y[:, place]) for e in data.experiments}
        data = data.with_inputs(
            {e.name: {str(column): (e.t[seen[e.name]], e.y[seen[e.name], place])} for e in data.experiments}
        )
        taken.add(str(column))
    kept = tuple(name for name in data.states if name not in taken)
    return data.select(kept) if len(kept) < len(data.states) and kept else data
