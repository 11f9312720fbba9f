"""A table of text cells, wide or long, from which data are taken."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from odinfer.errors import InputError, nearest
from odinfer.problem.data import Data, Names, check_count, checked_names, experiment_of, short, warn
from odinfer.problem.tables import dates
from odinfer.problem.tables.cells import is_missing, is_number, numbers
from odinfer.problem.tables.roles import Roles, column, long_columns, roles

_LARGE, _SPARSE = 10_000_000, 50  # a long table may not become so large and so many times larger when made wide
Cells = Sequence[str]


@dataclass(frozen=True, eq=False)
class Table:
    """What a file, sheet or frame holds.

    Attributes:
        name: of the source, for messages.
        rows: the numbers of the rows in the source.
        columns: name → cells, all of one length.
        word: what the source calls a row.
        time: the column that was chosen to be the time, if any was.
    """

    name: str
    rows: Sequence[int]
    columns: dict[str, list[str]]
    word: str = "line"
    time: str | None = None

    def choosing(self, time: str | None = None, names: Mapping[str, str] | None = None) -> Table:
        """With a chosen time column, and with columns (long: or observables) under other names, old → new."""
        names = names or {}
        with self._named():
            chosen = None if time is None else column(time, self.columns, "time")
            observable, _ = long_columns(self.columns)
            kinds = dict.fromkeys(self.columns[observable] if observable else ())
            for known, what in ((self.columns, "column"), (kinds, "observable")):
                if new := [names.get(name, name) for name in known if name]:
                    checked_names(new, what)
            for old in names:
                if old not in kinds:
                    column(old, [*self.columns, *islice(kinds, 1000)], "columns")
        columns = dict(self.columns)
        if observable:
            columns[observable] = [names.get(kind, kind) for kind in columns[observable]]
        columns = {names.get(name, name): cells for name, cells in columns.items()}
        return replace(self, columns=columns, time=names.get(chosen, chosen) if chosen else None)

    def roles(self, taken: Collection[str] = ()) -> Roles:
        """The columns with a role, of those that are not `taken` as series."""
        with self._named():
            return roles(self.columns, taken, self.time)

    def remarks(self, taken: Collection[str] = ()) -> list[str]:
        """What was understood though it was not said, in a sentence each."""
        role = self.roles(taken)
        return (role._replace(time=None) if self.time else role).remarks()

    def series(self, taken: Collection[str] = ()) -> set[str]:
        """The names of what varies over time: columns, or the observables of a long table."""
        role = self.roles(taken)
        names = set(self.columns[role.observable]) if role.observable else set(self.columns)
        return names - {role.time or "", role.experiment or ""}

    def data(self, states: Names | None = None, inputs: Names = (), replicates: str = "keep") -> Data:
        """The observations of `states` with their inputs; see `read_csv`."""
        with self._named():
            return self._data(states, checked_names(inputs, "input"), replicates)

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        """Errors start with the name of the table."""
        try:
            yield
        except InputError as error:
            raise InputError(f"{self.name}: {error}") from None

    def _data(self, states: Names | None, inputs: Names, replicates: str) -> Data:
        wanted = () if states is None else checked_names(states, "state")
        role = roles(self.columns, {*wanted, *inputs}, self.time)
        t = self._times(role.time)
        experiments, group = _numbered(self._filled(role.experiment) if role.experiment else ["1"] * len(t))
        series = self._series(role)
        for name in (*wanted, *inputs):
            if name not in series:
                raise InputError(_no_column(name, series))
        if states is None:
            given = {"", *inputs}
            found = _numeric({name: cells for name, (_, cells) in series.items() if name not in given})
            wanted = checked_names(found, "state column")
        used = dict.fromkeys((*wanted, *inputs))
        unused = [name for name in self.columns if name not in role] if role.observable else []
        if unused := unused + [name for name in series if name not in used]:
            warn(f"columns not used: {short(*unused)}")
        values = {name: numbers(series[name][1], self._place(name, series[name][0])) for name in used}
        for name in wanted:
            check_count(name, int(np.count_nonzero(~np.isnan(values[name]))))
        row_of = np.arange(len(t))
        if role.observable:
            kind = _numbered(self.columns[role.observable])[1]
            row_of = _wide_rows(group, np.unique(t, return_inverse=True)[1], kind)
        first = np.unique(row_of, return_index=True)[1]
        if role.observable and len(first) * len(used) > max(_LARGE, _SPARSE * len(t)):
            raise InputError(f"{len(used)} observables at {len(first)} times are too many; name the states to read")
        filled = {name: np.full(len(first), np.nan) for name in used}
        for name in used:
            filled[name][row_of[series[name][0]]] = values[name]
        parts = []
        for name, rows in zip(experiments, _places(group[first], len(experiments)), strict=True):
            y = np.column_stack([filled[key][rows] for key in wanted])
            u = {key: filled[key][rows] for key in inputs}
            parts.append(experiment_of(name, t[first][rows], y, wanted, u, replicates))
        return Data.of_experiments(wanted, parts)

    def _filled(self, name: str) -> list[str]:
        """The cells of a column none of which may be empty."""
        if "" in (cells := self.columns[name]):
            raise InputError(self._nothing(name, cells.index("")))
        return cells

    def _nothing(self, name: str, row: int) -> str:
        return f"{self.word} {self.rows[row]} has no {short(name)}; fill it in or remove the {self.word}"

    def _times(self, name: str | None) -> np.ndarray:
        """The times (N,): numbers, or the days since the first of some dates."""
        if name is None:
            remedy = "name one 'time' or choose it by --time COLUMN (in Python time=COLUMN)"
            raise InputError(f"there is no time column; {remedy}; columns found: {_some(self.columns)}")
        cells = self._filled(name)
        place = self._place(name, range(len(cells)))
        if not is_number(cells[0]) and (found := dates.days(cells, place)):
            t, first = found
            warn(f"{self.name}: {short(name)} holds dates, so time is in days since {first}")
            return t
        t = numbers(cells, place)
        for i in np.flatnonzero(np.isnan(t)):
            raise InputError(self._nothing(name, int(i)))
        return t

    def _series(self, role: Roles) -> dict[str, tuple[Sequence[int], Cells]]:
        """Name → rows and cells of what varies over time."""
        if role.observable is None or role.value is None:
            everywhere, no_series = range(len(self.rows)), (role.time, role.experiment)
            return {name: (everywhere, cells) for name, cells in self.columns.items() if name not in no_series}
        found: dict[str, tuple[list[int], list[str]]] = {}
        for i, (kind, cell) in enumerate(zip(self._filled(role.observable), self.columns[role.value], strict=True)):
            rows, cells = found.setdefault(kind, ([], []))
            rows.append(i)
            cells.append(cell)
        return dict(found)

    def _place(self, name: str, rows: Sequence[int]) -> Callable[[int], str]:
        return lambda i: f"{self.word} {self.rows[rows[i]]}, column {short(name)}"


def columns_of(rows: Iterable[tuple[int, Sequence[str]]], word: str) -> tuple[list[int], dict[str, list[str]]]:
    """The numbers of the rows below the header and name → cells, from numbered rows of stripped cells.

    Rows in which all cells are empty are left out, as spreadsheets leave many.
    """
    numbers, flat, width = list[int](), list[str](), 0
    for number, row in rows:
        if len(row) != width and any(row):
            if width:
                raise InputError(f"{word} {number} has {len(row)} cells; expected {width} as in the header")
            width = len(row)
        if any(row):
            numbers.append(number)
            flat += row
    if len(numbers) < 2:
        raise InputError("the file has a header but no data" if numbers else "the file is empty")
    checked_names([name for name in flat[:width] if name], "column")
    columns = {flat[i]: flat[width + i :: width] for i in range(width)}
    return numbers[1:], {name: cells for name, cells in columns.items() if name or any(cells)}


def _numbered(texts: Cells) -> tuple[list[str], np.ndarray]:
    """The distinct texts in their order, and the number of each."""
    known: dict[str, int] = {}
    codes = np.array([known.setdefault(text, len(known)) for text in texts])
    return list(known), codes


def _places(codes: np.ndarray, count: int) -> list[np.ndarray]:
    """Where each of the codes 0 … count − 1 stands."""
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.searchsorted(codes[order], np.arange(1, count)))


def _wide_rows(group: np.ndarray, time: np.ndarray, kind: np.ndarray) -> np.ndarray:
    """The row of a wide table in which each row of a long one lands, all three given as codes (N,).

    A group has a row per time, and further ones for the second, third, … values of a kind at that time.
    """
    order = np.lexsort((kind, time, group))
    key = np.stack([group, time, kind])[:, order]
    at, new = np.arange(len(order)), np.append(True, (key[:, 1:] != key[:, :-1]).any(axis=0))
    again = np.empty_like(at)
    again[order] = at - np.maximum.accumulate(np.where(new, at, 0))
    return np.unique(np.stack([group, time, again]), axis=1, return_inverse=True)[1].ravel()


def _numeric(columns: Mapping[str, Cells]) -> list[str]:
    """All but text columns, which hold no number at all: a text among numbers is a mistake."""
    return [name for name, cells in columns.items() if any(map(is_number, cells)) or all(map(is_missing, cells))]


def _no_column(name: str, columns: Collection[str]) -> str:
    near = nearest(name, islice(columns, 1000))
    known = near if "did you mean" in near else f"; columns found: {_some(columns)}"
    need = "each state and input needs a column, as hidden states are not supported yet"
    remedy = f"to take another: --map 'COLUMN={name[:40]}' (in Python columns=)"
    return f"there is no column {short(name)}{known}; {need}; {remedy}"


def _some(names: Collection[str]) -> str:
    return short(*islice(names, 8))[:150] + (f" and {len(names) - 8} more" if len(names) > 8 else "")
