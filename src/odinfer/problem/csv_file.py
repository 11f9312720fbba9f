"""CSV files, wide or long: read once into a table, from which data are taken; and written."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from odinfer.errors import InputError, nearest
from odinfer.problem.data import Data, Names, checked_names, experiment_of, short, warn

# Names of columns with a role, in lower case; earlier ones win.
TIME = ("time", "times", "t")
EXPERIMENT = ("experiment", "condition", "simulationconditionid")
OBSERVABLE = ("observable", "state", "variable", "observableid")
VALUE = ("value", "measurement")
_NUMBER = re.compile(r"[+-]?((\d+[.,]?\d*|[.,]\d+)(e[+-]?\d+)?|inf(inity)?)", re.ASCII | re.IGNORECASE)
_NA = {"", "na", "nan"}


@dataclass(frozen=True, eq=False)
class CsvTable:
    """A CSV file as text.

    Attributes:
        name: of the file, for messages.
        lines: line numbers of the rows.
        columns: name → cells, all of one length.
    """

    name: str
    lines: list[int]
    columns: dict[str, list[str]]

    @staticmethod
    def read(path: str | Path) -> CsvTable:
        """Read a file in UTF-8; an error names it."""
        try:
            return CsvTable(str(path)[-100:], *_table(Path(path).read_text("utf-8-sig")))
        except UnicodeDecodeError:
            problem = "the file is UTF-16, binary or in another encoding; save as UTF-8"
        except (InputError, OSError, csv.Error) as error:
            problem = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{str(path)[-100:]}: {problem}")

    @property
    def series(self) -> set[str]:
        """The names of what varies over time: columns, or the observables of a long file."""
        time, group, observable, value = (_role(self.columns, n) for n in (TIME, EXPERIMENT, OBSERVABLE, VALUE))
        names = set(self.columns[observable]) if observable and value else set(self.columns)
        return names - {time or "", group or ""}

    def data(self, states: Names | None = None, inputs: Names = (), replicates: str = "error") -> Data:
        """The observations of `states` with their inputs; see `read_csv`."""
        try:
            return _parse(self, states, checked_names(inputs, "input"), replicates)
        except InputError as error:
            raise InputError(f"{self.name}: {error}") from None


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
    return CsvTable.read(path).data(states, inputs, replicates)


def write_csv(path: str | Path, columns: Mapping[str, ArrayLike]) -> None:
    """Write columns of one length: floats exactly, NaN as empty, text such that no spreadsheet runs it."""
    cells = [[harmless(x) for x in (name, *np.asarray(column).tolist())] for name, column in columns.items()]
    if len({len(column) for column in cells}) > 1:
        raise InputError(f"the columns {short(*columns)} differ in length; make them equally long")
    try:
        with open(path, "w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(zip(*cells, strict=True))
    except OSError as error:
        raise InputError(f"cannot write {str(path)[-100:]}: {error.strerror}") from None


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
    checked_names([name for name in rows[0] if name], "column")
    return lines[1:], {name: cells for name, *cells in zip(*rows, strict=True) if name or any(cells)}


def _parse(file: CsvTable, states: Names | None, inputs: Names, replicates: str) -> Data:
    lines, table = file.lines, dict(file.columns)
    wanted = () if states is None else checked_names(states, "state")
    free = [name for name in table if name not in (*wanted, *inputs)]
    time, group, observable, value = (_role(free, names) for names in (TIME, EXPERIMENT, OBSERVABLE, VALUE))
    if time is None:
        raise InputError(f"there is no time column; name one 'time' (columns found: {short(*table)})")
    for column in filter(None, (time, group, observable if value else None)):
        for line, cell in zip(lines, table[column], strict=True):
            if not cell or (column == time and cell.lower() in _NA):
                raise InputError(f"line {line} has no {short(column)}; fill it in or remove the line")
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
            raise InputError(f"there is no column {short(name)}{nearest(name, table)[:300]}")
    if states is None:  # all but text columns, which hold no number at all: a text among numbers is a mistake
        found = [c for c, x in table.items() if any(map(_NUMBER.fullmatch, x)) or {*map(str.lower, x)} <= _NA]
        wanted = checked_names([c for c in found if c and c not in inputs], "state column")
    if unused := unused + [name for name in table if name not in (*wanted, *inputs)]:
        warn(f"columns not used: {short(*unused)}")
    series = {name: _numbers(table[name], lines, name) for name in (*wanted, *inputs)}
    experiments = []
    for name, rows in groups.items():
        y = np.column_stack([series[key][rows] for key in wanted])
        u = {key: series[key][rows] for key in inputs}
        experiments.append(experiment_of(name, t[rows], y, wanted, u, replicates))
    return Data.of_experiments(wanted, experiments)


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
            raise InputError(f"line {lines[i]}, column {short(column)}: {short(cell)} {problem}")
        numbers[i] = number
    return numbers


def harmless(value: Any) -> Any:
    if isinstance(value, str) and value.lstrip().startswith(("=", "+", "-", "@")):
        return "'" + value
    return None if isinstance(value, float) and math.isnan(value) else value
