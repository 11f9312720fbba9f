"""Tables and models as JSON for the page, with errors at their places in the text.

Runs in a process of its own (`worker_process.py`), which remembers the tables that it has read.
"""

from __future__ import annotations

import difflib
import functools
import math
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from odinfer.apps.studio.javascript import module
from odinfer.apps.studio.scripts import Choice
from odinfer.apps.studio.typeset import typeset
from odinfer.data.column_roles import find_sd_columns
from odinfer.data.data import Data, Experiment
from odinfer.data.reader import read_table
from odinfer.data.table import Table
from odinfer.errors import InputError, InputWarning
from odinfer.model.expression import state_of
from odinfer.model.model import Model
from odinfer.model.optional_terms import candidates
from odinfer.noise import FAMILIES
from odinfer.problem.condition import Condition
from odinfer.problem.covariates import covariate_columns
from odinfer.problem.from_table import posed
from odinfer.problem.matching import DOSING, ROLES, observable
from odinfer.problem.problem import Problem

GaussianNoise = dict[str, Any]

_MAX_POINTS = 4_000  # of one series on the page: more cannot be told apart
MAX_EXPERIMENTS = 60
_MAX_COLUMNS = 200
_PREVIEW = 6, 30  # rows and columns of the table that are shown as they are
_SPAN = 10.0  # of time, where there are no data


@dataclass(frozen=True)
class Source:
    """Where the data of a session are, and what was chosen about them."""

    path: Path
    choice: Choice


# --- tables


def table(source: Source) -> GaussianNoise:
    """The columns of a table with their roles, and everything in it that can be drawn."""
    found: GaussianNoise = {"columns": [], "experiments": [], "notes": [], "error": None}
    with _notes(found["notes"]):
        whole = _raw(source.path)
        found["columns"] = _columns(whole, source.choice)
        found["preview"] = _preview(whole)
        try:
            data = _choose_columns(source).data()
        except InputError as error:
            found["error"] = _for_page(str(error))
        else:
            found["experiments"] = [_observed(e, data.states) for e in data.experiments[:MAX_EXPERIMENTS]]
    return found


@functools.lru_cache(maxsize=4)
def _raw(path: Path) -> Table:
    try:
        return replace(read_table(path), name=path.name)
    except InputError as error:  # where it is kept is nobody's concern
        raise InputError(str(error).replace(str(path)[-100:], path.name)) from None


def _choose_columns(source: Source) -> Table:
    c = source.choice
    return _raw(source.path).with_columns(c.time, c.names, c.sd)


def _columns(whole: Table, choice: Choice) -> list[GaussianNoise]:
    """Columns, or the observables of a long table, with their roles as they are without a model."""
    role = whole.roles(())
    named = {role.time: "time", role.experiment: "experiment", role.observable: "observable", role.value: "value"}
    named |= {choice.time: "time"} if choice.time else {}
    if choice.time:
        named = {column: what for column, what in named.items() if what != "time" or column == choice.time}
    named |= {column: what for what, column in role.dosing.items()}
    names = list(whole.columns)
    if not role.observable:
        series = [name for name in names if name not in named]
        named |= {column: f"errors of {name}" for name, column in find_sd_columns(series, series).items()}
    if role.observable:
        names = [n for n in names if n in named] + [n for n in dict.fromkeys(whole.columns[role.observable]) if n]
    return [
        {"name": name, "role": named.get(name), "cells": [*filter(None, whole.columns.get(name, [])[:3])]}
        for name in names[:_MAX_COLUMNS]
    ]


def _preview(whole: Table) -> GaussianNoise:
    """The first rows as they stand in the file."""
    rows, columns = _PREVIEW
    names = list(whole.columns)[:columns]
    count = min(rows, max((len(whole.columns[name]) for name in names), default=0))
    return {"names": names, "rows": [[str(whole.columns[name][i] or "") for name in names] for i in range(count)]}


def _observed(e: Experiment, names: Sequence[str]) -> GaussianNoise:
    columns = {}
    for k, name in enumerate(names):
        seen = np.flatnonzero(np.isfinite(e.y[:, k]))
        seen = seen[:: max(1, math.ceil(len(seen) / _MAX_POINTS))]
        limit = e.limit[seen, k].tolist() if e.limit is not None else None
        columns[name] = {"t": e.t[seen].tolist(), "y": e.y[seen, k].tolist(), "limit": limit}
    return {"name": e.name, "columns": columns}


# --- models


def problems(text: str, name: str, source: Source, notes: list[str]) -> list[Problem]:
    """The problem of a text and a table, or those of all its candidates."""
    read = _choose_columns(source)
    found = []
    for i, model in enumerate(candidates(text, name)):
        known = {*model.parameters, *model.inputs, *observable(model), *ROLES}
        for new in source.choice.names.values():
            if new not in known:
                raise InputError(f"a column is assigned to '{new}', which the model does not have; assign it anew")

        def again(inputs: Sequence[str], i: int = i) -> Model:
            return candidates(text, name, inputs)[i]

        found.append(posed(model, again, read, notes))
    return found


def understand(text: str, name: str, source: Source | None) -> GaussianNoise:
    """What a text says, or where it is wrong, and what it means for the data."""
    answer: GaussianNoise = {"error": None, "data_error": None, "notes": []}
    with _notes(answer["notes"]):
        try:
            models = candidates(text, name)
        except InputError as error:
            return answer | {"error": _locate(text, str(error))}
        # Of several candidates the one with all terms is drawn.
        model, posing = models[-1], None
        if source is not None:
            try:
                posing = problems(text, name, source, answer["notes"])[-1]
                model = posing.model
            except InputError as error:
                placed = _locate(text, str(error))
                answer |= {"error": placed} if placed["line"] else {"data_error": _for_page(str(error))}
        answer["notes"] += _find_misspelled(model)
        if model.declarations.triggers:
            answer["notes"].append("events that states make happen are not drawn here; odinfer simulate follows them")
        shown = {"candidates": len(models), "typeset": typeset(model.declarations.text)}
        return answer | shown | _describe(model, posing)


def _describe(model: Model, problem: Problem | None) -> GaussianNoise:
    """All that the page draws and computes by itself."""
    declarations = model.declarations
    if problem is not None:
        shown = {c.name: c.arguments[0] for c in problem.observed}
    else:
        shown = {c.name: c.arguments[0] for c in declarations.columns}
    shown |= {name: model.instruction(name) for name in model.states if name not in shown}
    conditions: list[Condition] = []
    if declarations.triggers:
        pass  # the page cannot follow them, and a curve without them would be wrong
    elif problem is not None:
        conditions = [problem.condition(i) for i in range(min(len(problem.data.experiments), MAX_EXPERIMENTS))]
    elif not model.inputs:
        times = np.array([min([0.0, *(event.times[0] for event in declarations.events)]), _SPAN])
        last = max([_SPAN, *(1.2 * event.times[-1] for event in declarations.events)])
        conditions = [Condition.of(model, Experiment("1", np.array([times[0], last]), np.empty((2, 0)), {}))]
    observed = problem.columns if problem is not None else ()
    data = problem.data if problem is not None else None
    return {
        "states": [*model.states],
        "columns": [*shown],
        "observed": [*observed],
        "assignable": [*dict.fromkeys([*observable(model), *model.inputs, *model.parameters])],
        "dosing": [*DOSING],
        "observable": [*observable(model)],
        "silent": [*dict.fromkeys([*model.states, *declarations.definitions])],
        "families": _families(),
        "scatter": {} if data is None else {name: _scatter(data, name) for name in data.states},
        "free": [model.states[k] for k in model.free_initial],
        "given": [*declarations.initial],
        "parameters": [_parameter(model, problem, p) for p in model.parameters],
        "inputs": [*model.inputs],
        "covariates": [*covariate_columns(model)],
        "experiments": [_course(c, data, i) for i, c in enumerate(conditions)],
        "module": module(model, [*shown.values()]),
        "plain": problem is not None and problem.fully_observed_gaussian,
    }


def _parameter(model: Model, problem: Problem | None, name: str) -> GaussianNoise:
    low, high = model.bounds.get(name, (-math.inf, math.inf))
    family, *numbers = model.prior.get(name, ("",))
    by = next((effect.by for effect in model.declarations.effects.subject if effect.name == name), None)
    several = problem is not None and (problem.split.any or by is not None)
    log = model.scale.get(name) == "log" or (problem is not None and name in problem.assumed_positive_names)
    return {
        "name": name,
        "low": _finite(low) if low or not log else None,  # which a log scale implies
        "high": _finite(high),
        "log": log,
        "scale": model.scale.get(name),
        "fixed": model.fixed.get(name),
        "start": model.start.get(name),
        "prior": [family, *numbers] if family else None,
        "local": several and name in own_names(model),
        "by": by,
        "hidden": name in coefficients(model),
        "initial": state_of(name) is not None,
    }


def own_names(model: Model) -> set[str]:
    """Parameters with a value for every experiment: local ones, and those that vary by subject."""
    return {*model.declarations.local, *(effect.name for effect in model.declarations.effects.subject)}


def coefficients(model: Model) -> set[str]:
    """Parameters of unknown functions, which nobody has written."""
    return {name for own in model.declarations.unknown for name in own.parameters}


def _families() -> GaussianNoise:
    """The kinds of noise that there are, and what stands in the brackets of each."""
    return {n: {"arguments": f.arguments, "least": f.least, "defaults": f.defaults} for n, f in FAMILIES.items()}


def _scatter(data: Data, name: str) -> GaussianNoise:
    """Which families the values of a column refuse, and why."""
    m = data.states.index(name)
    y = np.concatenate([e.y[:, m] for e in data.experiments])
    y = y[np.isfinite(y)]
    by_row = any(e.sd is not None and np.isfinite(e.sd[:, m]).any() for e in data.experiments)
    limited = any(e.limit is not None and (e.limit[:, m] != 0).any() for e in data.experiments)
    refused = {}
    for words, family in FAMILIES.items():
        why = "has errors by row" if by_row and not family.profiled else family.refuses(y)
        if (why := why or ("has detection limits" if limited and family.discrete else None)) is not None:
            refused[words] = why
    return {"refused": refused, "by_row": by_row, "largest": float(y.max()) if len(y) else None}


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _course(condition: Condition, data: Data | None, i: int) -> GaussianNoise:
    """What one experiment does to a trajectory, as `simulate.js` takes it."""
    e, model = condition.experiment, condition.model
    jumps: list[GaussianNoise] = [
        {"t": time, "program": k, "states": [model.states.index(name) for name, _ in event.changes]}
        for k, event in enumerate(model.declarations.events)
        for time in event.times
    ]
    jumps += [
        {"t": j.time, "program": None, "amounts": j.amounts.tolist()} for j in condition.jumps if j.program is None
    ]
    first = {}
    for name in model.states:
        column = data.states.index(name) if data is not None and name in data.states else None
        values = e.y[:, column] if column is not None else np.empty(0)
        first[name] = next((float(v) for v in values if np.isfinite(v)), None)
    return {
        "name": e.name,
        "start": condition.start,
        "seen": float(e.t[0]),
        "end": float(e.t[-1]),
        "corners": condition.corners.tolist(),
        "jumps": sorted(jumps, key=lambda jump: jump["t"]),
        "infusions": [{"k": f.k, "begin": f.begin, "end": f.end, "rate": f.rate} for f in condition.infusions],
        "inputs": [
            {"t": e.u[n][0].tolist(), "y": e.u[n][1].tolist(), "step": n in model.declarations.steps}
            for n in model.inputs
        ],
        "first": first,
        "observed": _observed(e, data.states)["columns"] if data is not None else {},
    }


# --- words


def _locate(text: str, message: str) -> GaussianNoise:
    """An error with its line and columns, counted from 1 and 0; the whole line where the piece is not found in it."""
    found = re.match(r"line (\d+): (.*)", message, re.DOTALL)
    if not found:
        return {"message": message, "line": None, "start": 0, "end": 0}
    lines = re.split(r"\r\n?|\n", text)
    line, rest = min(int(found[1]), len(lines)), found[2]
    content = lines[line - 1]
    start, end = _narrow(content, *_piece(content, rest), rest)
    return {"message": rest, "line": line, "start": start, "end": end}


def _piece(content: str, message: str) -> tuple[int, int]:
    for quoted in re.findall(r"'([^']+)'|\"([^\"]+)\"", message):
        piece = next(filter(None, quoted))
        for spelled in (piece, piece.replace("**", "^"), *re.split(r"\.\.\.", piece)[:1]):
            if spelled and (at := re.search(rf"(?<!\w){re.escape(spelled)}(?!\w)", content)):
                return at.span()
            if spelled and (i := content.find(spelled)) >= 0:
                return i, i + len(spelled)
    stripped = content.partition("#")[0].rstrip()
    return len(stripped) - len(stripped.lstrip()), max(len(stripped), 1)


def _narrow(content: str, start: int, end: int, message: str) -> tuple[int, int]:
    """The bracket or operator itself, where one is to blame."""
    opened: list[int] = []
    for i in range(start, min(end, len(content))):
        if content[i] == "(":
            opened.append(i)
        elif content[i] == ")" and opened:
            opened.pop()
        elif content[i] == ")" and "unmatched" in message:
            return i, i + 1
    if "was never closed" in message and opened:
        return opened[0], opened[0] + 1
    if "something is missing after" in message:
        return max(start, end - 1), end
    return start, end


def _find_misspelled(model: Model) -> list[str]:
    """Parameters that look like misspelled states or definitions."""
    known = {*model.states, *model.declarations.definitions}
    notes = []
    for name in (own for own in model.parameters if own not in coefficients(model)):
        close = difflib.get_close_matches(name, known, 1, 0.85) if len(name) > 3 else []
        if close and name.rstrip("0123456789") != close[0].rstrip("0123456789"):
            notes.append(f"'{name}' is taken as a parameter; did you mean '{close[0]}'?")
    return notes


def _for_page(message: str) -> str:
    """What to do about a column, where there are no flags but a list to choose from."""
    message = re.sub(r"to take another: --map '[^']*' \(in Python columns=\)", "choose one under Columns", message)
    return re.sub(r"by --\w+ \S+( \(in Python [^)]*\))?", "under Columns", message)


@contextmanager
def _notes(notes: list[str]) -> Iterator[None]:
    """Warnings for users become notes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
        notes += [str(w.message) for w in caught if issubclass(w.category, InputWarning)]
        notes[:] = [*dict.fromkeys(notes)]


def choice_of(given: Any) -> Choice:
    """What was chosen on the page, checked: names and texts of a sensible length."""
    if not isinstance(given, Mapping) or not all(isinstance(given.get(k) or {}, Mapping) for k in ("names", "sd")):
        raise InputError("columns are assigned by name")
    time, names, sd = given.get("time"), given.get("names") or {}, given.get("sd") or {}
    texts = [time or "", *(t for pairs in (names, sd) for pair in pairs.items() for t in pair)]
    if not all(isinstance(text, str) and len(text) <= 1000 for text in texts) or len(texts) > 5000:
        raise InputError("columns are assigned by name")
    return Choice(time or None, dict(names), dict(sd))
