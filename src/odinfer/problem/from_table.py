"""A model and a table to a Problem: what the columns are to the model, and which of its states have none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from odinfer.data.table import UNUSED, Table
from odinfer.errors import InputError, listed, nearest
from odinfer.model.model import Model
from odinfer.problem.problem import Problem
from odinfer.style.text import few

# Names with a meaning in the data, if not in the model.
DOSING = ("dose", "amt", "cmt", "rate", "ii", "addl", "evid", "mdv")
ROLES = ("time", "experiment", "observable", "value", *DOSING, UNUSED)


def posed(
    system: Model,
    again: Callable[[Sequence[str]], Model],
    data: Table,
    notes: list[str],
    inputs: Sequence[str] = (),
    known: Mapping[str, Mapping[str, Any]] | None = None,
    replicates: str = "keep",
    positive: bool = False,
) -> Problem:
    """The problem of one model.

    Args:
        system: the model.
        again: reads it with further names as inputs.
        data: what was observed.
        notes: gets a sentence for each thing that was understood though it was not said.
        inputs: names that are known inputs, though the model does not say so.
        known: "set", "fixed", "prior", "sigma", "start" and "log" → name → value, as flags of the command have them.
        replicates, positive: see `Data` and `Problem`.
    """
    k = known or {}
    for name in inputs:
        if name not in (*system.parameters, *system.inputs):
            raise InputError(f"--input: the equations do not use '{name}'{nearest(name, system.parameters)}")
    said = {*inputs, *(name for flag, values in k.items() if flag != "sigma" for name in values)}
    said |= {*system.bounds, *system.start, *system.scale, *system.fixed, *system.prior}
    names, found = observable(system), list(inputs)
    used = (*names, *system.inputs, *(name for name in system.parameters if name in DOSING))
    for name in sorted({*system.parameters} & data.series(used) - said):
        found.append(name)
        notes.append(f"'{name}' is a column of the data, so it is a known input; write 'input {name}' in the model")
    system = again(found) if found else system
    notes += _hidden(system, names, data)
    observed = data.data(names, system.inputs, replicates, optional=names)
    notes += data.remarks((*names, *system.inputs))
    of = {"bounds": "set", "fixed": "fixed", "prior": "prior", "sigma": "sigma", "start": "start", "scale": "log"}
    given: dict[str, Any] = {option: k.get(flag, {}) for option, flag in of.items()}
    return Problem(system, observed, **given, positive=positive)


def observable(system: Model) -> tuple[str, ...]:
    """What columns of the data may be: states, columns with a distribution, definitions."""
    said = system.said
    return tuple(dict.fromkeys((*system.states, *(c.name for c in said.columns), *said.definitions)))


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
        not missing or system.said.columns or columns.isdisjoint(names)
    ):  # said so, or all are missing: refused elsewhere
        return []
    which = listed([f"'{name}'" for name in few(missing)])
    return [f"{which} {'has' if len(missing) == 1 else 'have'} no column in the data: hidden"]
