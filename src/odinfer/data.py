"""Data: experiments with their times, observations (NaN = not observed) and known inputs; CSV in and out."""

import csv
import math
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from odinfer.errors import InputError, InputWarning, nearest

FEWEST = 4  # observations of a state, below which no smoother can tell signal from noise
REPLICATES = ("error", "mean")
Names = Sequence[str]
Series = tuple[np.ndarray, np.ndarray]  # times and values

# Names of columns with a role, in lower case; earlier ones win.
TIME = ("time", "times", "t")
EXPERIMENT = ("experiment", "condition", "simulationconditionid")
OBSERVABLE = ("observable", "state", "variable", "observableid")
VALUE = ("value", "measurement")
_NUMBER = re.compile(r"[+-]?((\d+[.,]?\d*|[.,]\d+)(e[+-]?\d+)?|inf(inity)?)", re.ASCII | re.IGNORECASE)
_NA = {"", "na", "nan"}
_warn = partial(warnings.warn, category=InputWarning, stacklevel=2)


@dataclass(frozen=True, eq=False)
class Experiment:
    """One time course as `Data` makes it: checked, sorted, read-only."""

    name: str
    t: np.ndarray  # (N,), strictly increasing
    y: np.ndarray  # (N, K), NaN = not observed; no row is all NaN
    u: dict[str, Series]  # known inputs, (M,) and (M,), times strictly increasing, linear in between


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Data:
    """Noisy observations of the states in one or several experiments.

    Args:
        t: times, shape (N,); sorted if need be, with a warning.
        y: observations, shape (N, K), or (N,) if K = 1; NaN = not observed.
        states: the names of the K columns of `y`.
        inputs: known inputs: name -> values on `t`, shape (N,), or a tuple (times, values).
        name: the name of the experiment.
        replicates: several values of a state at one time are an "error", or replaced by their "mean".

    Raises:
        InputError: if the arrays do not fit together or a state has fewer than 4 observations.
    """

    states: tuple[str, ...]
    experiments: tuple[Experiment, ...]

    def __init__(
        self,
        t: ArrayLike,
        y: ArrayLike,
        states: Names,
        inputs: Mapping[str, Any] | None = None,
        name: str = "1",
        replicates: str = "error",
    ) -> None:
        states = _names(states, "state")
        self._set(states, _checked(states, [_experiment(name, t, y, states, inputs or {}, replicates)]))

    def _set(self, states: Names, experiments: Iterable[Experiment]) -> "Data":
        self.__dict__.update(states=tuple(states), experiments=tuple(experiments))
        return self

    @classmethod
    def join(cls, parts: Mapping[str, "Data"]) -> "Data":
        """Several experiments as one: name -> `Data`, with the same states, in any order, and inputs."""
        states = next((part.states for part in parts.values()), ())
        experiments: list[Experiment] = []
        for name, part in parts.items():
            if set(part.states) != set(states):
                raise InputError(f"experiment {_short(name)} has not just {_short(*states)}; select() these")
            new = part.select(states).experiments
            experiments += [replace(e, name=f"{name}/{e.name}" if len(new) > 1 else name) for e in new]
        return object.__new__(cls)._set(states, _checked(states, experiments))

    @property
    def t(self) -> np.ndarray:
        """Times of the first experiment, shape (N,)."""
        return self.experiments[0].t

    @property
    def y(self) -> np.ndarray:
        """Observations of the first experiment, shape (N, K)."""
        return self.experiments[0].y

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the known inputs, the same in each experiment."""
        return tuple(self.experiments[0].u)

    def n_observed(self, state: str) -> int:
        """The number of observations of `state` over all experiments."""
        return sum(len(e.t) for e in self.select([state]).experiments)

    def select(self, states: Names) -> "Data":
        """These states only, in this order, without the rows and experiments that observe none of them."""
        states = _names(states, "state")
        at = {state: i for i, state in enumerate(self.states)}
        for state in states:
            if state not in at:
                raise InputError(f"there are no data of {_short(state)}{nearest(state, self.states)[:300]}")
        columns = [at[state] for state in states]
        picked = [(e, *_observed(e.t, e.y[:, columns])) for e in self.experiments]
        return object.__new__(Data)._set(states, [replace(e, t=t, y=y) for e, t, y in picked if len(t)])

    def observing(self, y: Sequence[np.ndarray]) -> "Data":
        """The same design with other observations: one (N, K) array per experiment, missing where these are."""
        pairs = zip(self.experiments, y, strict=True)
        return object.__new__(Data)._set(
            self.states, [replace(e, y=np.where(np.isnan(e.y), np.nan, values)) for e, values in pairs]
        )

    def keeping(self, rows: Sequence[np.ndarray]) -> "Data":
        """Only some rows of each experiment, given as one truth value per time."""
        kept = [replace(e, t=e.t[r], y=e.y[r]) for e, r in zip(self.experiments, rows, strict=True)]
        return object.__new__(Data)._set(self.states, _checked(self.states, kept))

    def driven_by(self, inputs: Mapping[str, Mapping[str, Series]]) -> "Data":
        """With further known inputs: experiment -> input -> (times, values)."""
        return object.__new__(Data)._set(
            self.states, [replace(e, u={**inputs[e.name], **e.u}) for e in self.experiments]
        )

    def __repr__(self) -> str:
        observed = ", ".join(f"{state} ({self.n_observed(state)})" for state in self.states)
        inputs = ", ".join(self.inputs) or "none"
        return f"<Data: {len(self.experiments)} experiment(s); observations: {observed}; inputs: {inputs}>"


def read_csv(path: str | Path, states: Names | None = None, inputs: Names = (), replicates: str = "error") -> Data:
    """Read a CSV file, wide (a column per state) or long (columns time, observable and value).

    Both have a column `time` and may have a column `experiment`. Commas, semicolons or tabs separate; empty
    cells, NA and NaN are missing values; blank lines and lines starting with # are skipped.

    Args:
        path: the file, in UTF-8.
        states: the columns (long: observables) to read; default: all that hold numbers.
        inputs: the columns (long: observables) that are known inputs.
        replicates: as for `Data`.
    """
    try:
        return _parse(Path(path).read_text("utf-8-sig"), states, _names(inputs, "input"), replicates)
    except UnicodeDecodeError:
        problem = "the file is UTF-16, binary or in another encoding; save as UTF-8"
    except (InputError, OSError, csv.Error) as error:
        problem = getattr(error, "strerror", None) or str(error)
    raise InputError(f"{str(path)[-100:]}: {problem}")


def write_csv(path: str | Path, columns: Mapping[str, ArrayLike]) -> None:
    """Write columns of one length: floats exactly, NaN as empty, text such that no spreadsheet runs it."""
    cells = [[_cell(x) for x in (name, *np.asarray(column).tolist())] for name, column in columns.items()]
    if len({len(column) for column in cells}) > 1:
        raise InputError(f"the columns {_short(*columns)} differ in length; make them equally long")
    try:
        with open(path, "w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(zip(*cells, strict=True))
    except OSError as error:
        raise InputError(f"cannot write {str(path)[-100:]}: {error.strerror}") from None


def _experiment(
    name: str, t: ArrayLike, y: ArrayLike, states: Names, inputs: Mapping[str, Any], replicates: str
) -> Experiment:
    """Check, sort and freeze; the experiment may come out empty."""
    if replicates not in REPLICATES:
        raise InputError(f"unknown replicates {_short(replicates)}{nearest(str(replicates), REPLICATES)}")
    where = f"experiment {_short(name)}: "
    y_times, y = _series(t, y, states, "state", where, replicates)
    u = {}
    for key, given in inputs.items():
        if key in states:
            raise InputError(f"{_short(key)} is both a state and an input; rename one of them")
        times, values = given if isinstance(given, tuple) and len(given) == 2 else (t, given)
        times, values = _series(times, values, _names([key], "input"), "input", where, replicates)
        if not len(times):
            raise InputError(f"{where}input {_short(key)} has no values; give at least one")
        u[key] = (times, values[:, 0])
    return Experiment(name, y_times, y, u)


def _series(t: ArrayLike, y: ArrayLike, names: Names, what: str, where: str, replicates: str) -> Series:
    """Checked times and values, a row per time: rows with different columns merge, replicates by policy."""
    label = "y" if what == "state" else f"input {_short(*names)}"
    t, y = _array(t, f"{where}t"), _array(y, f"{where}{label}")
    y = y[:, None] if y.ndim == 1 and len(names) == 1 else y
    if t.ndim != 1 or y.shape != (len(t), len(names)):
        expected = f"(N,) and (N, {len(names)}), with a row per time and a column per {what}"
        raise InputError(f"{where}t has shape {t.shape} and {label} {y.shape}; expected {expected}")
    for row in np.flatnonzero(~np.isfinite(t)):
        raise InputError(f"{where}t is {t[row]} in row {row}; each time must be a finite number")
    for row, k in np.argwhere(np.isinf(y)):
        raise InputError(f"{where}{what} {_short(names[k])} is infinite in row {row}; NaN = not observed")
    times, row_of = np.unique(t, return_inverse=True)
    merged = np.full((len(times), len(names)), np.nan)
    for k, name in enumerate(names):
        seen = ~np.isnan(y[:, k])
        rows, values = row_of[seen], y[seen, k]
        merged[rows, k] = values
        for row in np.flatnonzero(np.bincount(rows) > 1):
            same = values[rows == row]
            if what == "input" and (same == same[0]).all():
                continue  # rows that share a time repeat what is known
            if replicates == "error":
                found = f"{where}{what} {_short(name)} has {len(same)} values at time {times[row]:g}"
                raise InputError(f'{found}; to average: replicates="mean" or --replicates mean')
            merged[row, k] = math.fsum(same / len(same))  # no overflow, and any order of rows gives the same
        if (rows[1:] < rows[:-1]).any():  # per column: a long file goes through the times once for each
            _warn(f"{where}the times of {what} {_short(name)} are not increasing; they were sorted")
    return _observed(times, merged)


def _observed(t: np.ndarray, y: np.ndarray) -> Series:
    """Read-only copies of the rows in which something is observed."""
    rows = ~np.isnan(y).all(axis=1)
    t, y = t[rows], np.ascontiguousarray(y[rows])
    t.flags.writeable = y.flags.writeable = False
    return t, y


def _checked(states: Names, experiments: Sequence[Experiment]) -> list[Experiment]:
    """The experiments in which something is observed, after the checks that need all of them."""
    _names([e.name for e in experiments], "experiment")
    kept = [e for e in experiments if len(e.t)]
    if not kept:
        raise InputError("nothing is observed: all values are missing")
    if len(kept) < len(experiments):
        _warn(f"left out, as nothing is observed: {_short(*(e.name for e in experiments if not len(e.t)))}")
    for e in kept:
        if set(e.u) != set(kept[0].u):
            raise InputError(f"{_short(kept[0].name, e.name)} differ in their inputs; give both the same")
    for state, column in zip(states, np.concatenate([e.y for e in kept]).T, strict=True):
        values, name = column[~np.isnan(column)], _short(state)
        if len(values) == 0:
            raise InputError(f"state {name} is never observed; unobserved states are not supported yet")
        if len(values) < FEWEST:
            raise InputError(f"state {name} has too few observations: {len(values)}; {FEWEST} are needed")
        if (values == values[0]).all():
            _warn(f"state {name} is constant: each observation is {values[0]:g}")
    return kept


def _names(names: Iterable[str], what: str) -> tuple[str, ...]:
    names = (names,) if isinstance(names, str) else tuple(names)
    if not names and what != "input":
        raise InputError(f"there is no {what}; give at least one")
    for i, name in enumerate(names):
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            raise InputError(f"{what} {_short(name)} cannot be a name; use printable text")
        if name in names[:i]:
            raise InputError(f"{what} {_short(name)} is there twice; rename or remove one")
    return names


def _array(value: Any, what: str) -> np.ndarray:
    try:
        array = np.asanyarray(value)
        if array.dtype.kind not in "biufO":  # astype would take text, dates and complex numbers
            raise TypeError
        return np.array(np.ma.filled(array.astype(np.float64), np.nan))  # masked = not observed
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{what} is not an array of numbers; use NaN if not observed") from None


def _table(text: str) -> tuple[list[int], dict[str, list[str]]]:
    """The line numbers of the rows, and column name -> cells."""
    if "\0" in text:
        raise InputError("the file is UTF-16 or binary; save as UTF-8")
    lines, rows, delimiter = list[int](), list[list[str]](), ""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.lstrip()[:1] in ("", "#"):
            continue
        delimiter = delimiter or max(",;\t", key=re.sub('"[^"]*"', "", line).count)
        row = [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter, skipinitialspace=True))]
        if rows and any(row) and len(row) != len(rows[0]):
            raise InputError(f"line {number} has {len(row)} cells; expected {len(rows[0])} as in the header")
        if any(row):  # spreadsheets leave lines of nothing but commas
            lines.append(number)
            rows.append(row)
    if len(rows) < 2:
        raise InputError("the file has a header but no data" if rows else "the file is empty")
    _names([name for name in rows[0] if name], "column")
    return lines[1:], {name: cells for name, *cells in zip(*rows, strict=True) if name or any(cells)}


def _parse(text: str, states: Names | None, inputs: Names, replicates: str) -> Data:
    lines, table = _table(text)
    wanted = () if states is None else _names(states, "state")
    free = [name for name in table if name not in (*wanted, *inputs)]
    time, group, observable, value = (_role(free, names) for names in (TIME, EXPERIMENT, OBSERVABLE, VALUE))
    if time is None:
        raise InputError(f"there is no time column; name one 'time' (columns found: {_short(*table)})")
    for column in filter(None, (time, group, observable if value else None)):
        for line, cell in zip(lines, table[column], strict=True):
            if not cell or (column == time and cell.lower() in _NA):
                raise InputError(f"line {line} has no {_short(column)}; fill it in or remove the line")
    t = _numbers(table.pop(time), lines, time)
    groups: dict[str, list[int]] = {}
    for i, name in enumerate(table.pop(group) if group else ["1"] * len(t)):
        groups.setdefault(name, []).append(i)
    unused = []
    if observable and value:  # long: spread to wide, one value per row
        pairs = list(zip(table.pop(observable), table.pop(value), strict=True))
        unused = list(table)
        kinds = dict.fromkeys(kind for kind, _ in pairs)
        table = {kind: [cell if other == kind else "" for other, cell in pairs] for kind in kinds}
    for name in (*wanted, *inputs):
        if name not in table:
            raise InputError(f"there is no column {_short(name)}{nearest(name, table)[:300]}")
    if states is None:  # all but text columns, which hold no number at all: a text among numbers is a mistake
        found = [c for c, x in table.items() if any(map(_NUMBER.fullmatch, x)) or {*map(str.lower, x)} <= _NA]
        wanted = _names([c for c in found if c and c not in inputs], "state column")
    if unused := unused + [name for name in table if name not in (*wanted, *inputs)]:
        _warn(f"columns not used: {_short(*unused)}")
    series = {name: _numbers(table[name], lines, name) for name in (*wanted, *inputs)}
    experiments = []
    for name, rows in groups.items():
        y = np.column_stack([series[key][rows] for key in wanted])
        u = {key: series[key][rows] for key in inputs}
        experiments.append(_experiment(name, t[rows], y, wanted, u, replicates))
    return object.__new__(Data)._set(wanted, _checked(wanted, experiments))


def _role(columns: Iterable[str], choices: Names) -> str | None:
    """The column of the earliest choice, in any unit; lower case first, since T beside t is a state."""
    bare = {column: re.sub(r"\s*(\[.*\]|\(.*\))$", "", column) for column in columns}
    found = [column for column, name in bare.items() if name.lower() in choices]
    return min(found, key=lambda c: (choices.index(bare[c].lower()), not bare[c].islower()), default=None)


def _numbers(cells: list[str], lines: list[int], column: str) -> np.ndarray:
    numbers = np.full(len(cells), np.nan)
    for i, cell in enumerate(cells):
        if cell.lower() in _NA:
            continue
        number = float(cell.replace(",", ".")) if _NUMBER.fullmatch(cell) else math.inf
        if math.isinf(number) or "," in cell:
            problem = "is not a finite number; leave it empty if not observed"
            problem = problem if math.isinf(number) else "has a decimal comma; use points"
            raise InputError(f"line {lines[i]}, column {_short(column)}: {_short(cell)} {problem}")
        numbers[i] = number
    return numbers


def _cell(value: Any) -> Any:
    if isinstance(value, str) and value.lstrip().startswith(("=", "+", "-", "@")):
        return "'" + value
    return None if isinstance(value, float) and math.isnan(value) else value


def _short(*texts: object) -> str:
    return ", ".join(repr(text if len(text) <= 40 else text[:39] + "…") for text in map(str, texts))[:300]
