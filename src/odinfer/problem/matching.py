"""Match columns of a table with states, observables and inputs of a model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from odinfer.data.column_roles import base_name
from odinfer.data.covariates import split_covariates
from odinfer.data.data import Data
from odinfer.data.series import quoted
from odinfer.data.table import UNUSED, Table
from odinfer.errors import InputError, listed, nearest
from odinfer.model.model import Model
from odinfer.problem.covariates import covariate_columns, occasion_column
from odinfer.style.text import abbreviate

# Names with a meaning in the data, if not in the model.
DOSING = ("dose", "amt", "cmt", "rate", "ii", "addl", "ss", "evid", "mdv")
ROLES = ("time", "experiment", "observable", "value", *DOSING, UNUSED)


def matched(
    system: Model,
    again: Callable[[Sequence[str]], Model],
    data: Table,
    notes: list[str],
    inputs: Sequence[str] = (),
    known: Collection[str] = (),
    replicates: str = "keep",
) -> tuple[Model, Data]:
    """A model and its data: which columns are observed, which are known inputs, which are not used.

    Args:
        system: the model.
        again: reads it with further names as inputs.
        data: what was observed.
        notes: gets a sentence for each thing that was understood though it was not said.
        inputs: names that are known inputs, though the model does not say so.
        known: names of parameters about which something is declared, so that no column is taken for them.
        replicates: see `Data`.
    """
    for name in inputs:
        if name not in (*system.parameters, *system.inputs):
            raise InputError(f"--input: the equations do not use '{name}'{nearest(name, system.parameters)}")
    declared = {*inputs, *known}
    declared |= {*system.bounds, *system.start, *system.scale, *system.fixed, *system.prior}
    data = _with_names_of_model(system, data, notes)
    names, found = observable(system), list(inputs)
    data = _with_subjects(system, data)
    data, covariates = split_covariates(data, covariate_columns(system), system.inputs)
    used = (*names, *system.inputs, *(name for name in system.parameters if name in DOSING))
    for name in sorted({*system.parameters} & data.series(used) - declared):
        found.append(name)
        notes.append(f"'{name}' is a column of the data, so it is a known input; write 'input {name}' in the model")
    system = again(found) if found else system
    notes += _hidden(system, names, data)
    if data.series((*names, *system.inputs)).isdisjoint(names):  # the error names what the model says is observed
        names = tuple(dict.fromkeys((*(c.name for c in system.declarations.columns), *names)))
    occasions = [column for column in [occasion_column(system)] if column]
    varying = (*system.inputs, *occasions)
    observed = data.data(names, varying, replicates, optional=names).with_covariates(covariates)
    notes += data.remarks((*names, *varying))
    return system, observed


def _with_names_of_model(system: Model, data: Table, notes: list[str]) -> Table:
    """The table with columns under their names in the model where these differ by capitals or a unit only.

    NONMEM's DV gets the name of the only column that the model observes, unless DVID tells several apart.
    """
    names = (*observable(system), *system.inputs, *covariate_columns(system))
    columns = data.series(names)
    free = sorted(columns - {*names, *system.parameters})
    found: dict[str, str] = {}
    for name in names:
        near = [column for column in free if base_name(column) == name.lower()]
        if name not in columns and len(near) == 1:
            found[near[0]] = name
    taken = [c.name for c in system.declarations.columns] or list(system.states)
    kinds = [len({*cells}) for column, cells in data.columns.items() if base_name(column) == "dvid"]
    measured = [column for column in free if base_name(column) == "dv"]
    unobserved = {*columns, *found.values()}.isdisjoint(observable(system))
    if unobserved and len(taken) == len(measured) == 1 and max(kinds, default=1) == 1:
        found[measured[0]] = taken[0]
    if len({*found.values()}) < len(found) or not found:
        return data
    notes += [f"the column {quoted(column)} is taken as {quoted(name)}" for column, name in found.items()]
    return data.with_columns(data.time, found, data.sd)


def _with_subjects(system: Model, data: Table) -> Table:
    """The table with the column by which parameters vary as the one that marks experiments.

    Raises:
        InputError: another column does.
    """
    for effect in system.declarations.effects.subject[:1]:
        marks = data.roles(system.inputs).experiment
        if effect.by not in data.columns or effect.by == marks:
            return data
        if marks:
            start = f"line {effect.line}: '{effect.name}' varies by {effect.by}, but each '{marks}' is a subject"
            nested = f"{effect.name} ~ {effect.family}({effect.name}, gamma_{effect.name}) by {effect.by}"
            raise InputError(f"{start}; write by subject, and for variation within subjects {nested} as well")
        return data.with_columns(names={effect.by: "experiment"})
    return data


def observable(system: Model) -> tuple[str, ...]:
    """What columns of the data may be: states, columns with a distribution, definitions."""
    declarations = system.declarations
    return tuple(dict.fromkeys((*system.states, *(c.name for c in declarations.columns), *declarations.definitions)))


def _hidden(system: Model, names: Sequence[str], data: Table) -> list[str]:
    """Which states have no column, in a sentence.

    Raises:
        InputError: a column that is nothing to the model has the name of such a state, but for a slip.
    """
    columns = data.series((*names, *system.inputs))
    unused = sorted(columns - {*names, *system.inputs})
    missing = [name for name in system.states if name not in columns]
    for name in missing:
        if "did you mean" in (near := nearest(name, unused)):
            remedy = f"rename it, by --map COLUMN={name[:40]} if you like; leave that column out if '{name}' is hidden"
            raise InputError(f"{data.name}: there is no column '{name}'{near} {remedy}")
    if (
        not missing or system.declarations.columns or columns.isdisjoint(names)
    ):  # said so, or all are missing: refused elsewhere
        return []
    which = listed([f"'{name}'" for name in abbreviate(missing)])
    return [f"{which} {'has' if len(missing) == 1 else 'have'} no column in the data: hidden"]
