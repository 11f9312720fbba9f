"""A table of text cells, wide or long, and its conversion to `Data`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice

import numpy as np

from odinfer.checks import checked_positive
from odinfer.data import dates
from odinfer.data.cells import is_missing, is_number, is_observation, parse_numbers, parse_observations
from odinfer.data.column_roles import TIME, Roles, checked_column, find_long_columns, find_roles, find_sd_columns
from odinfer.data.data import Data, make_experiment
from odinfer.data.dose import Dose
from odinfer.data.dosing_columns import Dosing, amounts, dosing
from odinfer.data.series import Names, checked_names, invalid_sd, quoted, warn
from odinfer.errors import InputError, nearest

_LARGE, _SPARSE = 10_000_000, 50  # a long table may not become so large and so many times larger when made wide
UNUSED = "-"  # the new name of a column that is to be left out
Cells = Sequence[str]
Rows = Sequence[int] | np.ndarray


@dataclass(frozen=True, eq=False)
class Table:
    """What a file, sheet or frame holds.

    Attributes:
        name: of the source, for messages.
        rows: the numbers of the rows in the source.
        columns: name → cells, all of one length.
        word: what the source calls a row.
        time: the column that was chosen to be the time, if any was.
        sd: series → the column that was chosen for its standard deviations.
        headers: name → the header in the source, where that was another.
    """

    name: str
    rows: Sequence[int]
    columns: dict[str, list[str]]
    word: str = "line"
    time: str | None = None
    sd: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    def with_columns(
        self,
        time: str | None = None,
        names: Mapping[str, str] | None = None,
        sd: Mapping[str, str] | None = None,
    ) -> Table:
        """With chosen columns of the time and of standard deviations, and with other names, old → new.

        Names are those of columns or, in a long table, of observables; standard deviations go by the new ones. What is
        named "-" is left out; what was chosen before stays.
        """
        names, sd = names or {}, sd or {}
        if dropped := {old for old, new in names.items() if new == UNUSED}:
            rest = {old: new for old, new in names.items() if new != UNUSED}
            return self._drop(dropped).with_columns(time, rest, sd)
        with self._prefix_errors():
            chosen = self.time if time is None else checked_column(time, self.columns, "time")
            observable, _ = find_long_columns(self.columns)
            kinds = dict.fromkeys(self.columns[observable] if observable else ())
            for known, what in ((self.columns, "column"), (kinds, "observable")):
                if new := [names.get(name, name) for name in known if name]:
                    checked_names(new, what)
            for old in names:
                if old not in kinds:
                    checked_column(old, [*self.columns, *islice(kinds, 1000)], "columns")
            renamed = {names.get(name, name) for name in (*self.columns, *kinds)}
            for name in sd:
                checked_column(name, renamed if name in renamed else islice(renamed, 1000), "sd")
                checked_column(sd[name], self.columns, "sd")
        columns = dict(self.columns)
        if observable:
            columns[observable] = [names.get(kind, kind) for kind in columns[observable]]
        columns = {names.get(name, name): cells for name, cells in columns.items()}
        return replace(
            self,
            columns=columns,
            time=names.get(chosen, chosen) if chosen else None,
            sd={
                **{names.get(name, name): names.get(of, of) for name, of in self.sd.items()},
                **{name: names.get(of, of) for name, of in sd.items()},
            },
            headers={**self.headers, **{new: self.headers.get(old, old) for old, new in names.items()}},
        )

    def _drop(self, dropped: set[str]) -> Table:
        """Without some columns and, in a long table, observables."""
        with self._prefix_errors():
            observable, _ = find_long_columns(self.columns)
            kinds = self.columns[observable] if observable else [""] * len(self.rows)
            for name in dropped - {*kinds}:
                checked_column(name, self.columns, "columns")
        kept = [i for i, kind in enumerate(kinds) if not kind or kind not in dropped]
        columns = {name: [cells[i] for i in kept] for name, cells in self.columns.items() if name not in dropped}
        return replace(self, rows=[self.rows[i] for i in kept], columns=columns)

    def roles(self, taken: Collection[str] = ()) -> Roles:
        """The columns with a role, of those that are not `taken` as series."""
        with self._prefix_errors():
            return find_roles(self.columns, taken, self.time)

    def remarks(self, taken: Collection[str] = ()) -> list[str]:
        """What was understood though it was not said, in a sentence each."""
        role = self.roles(taken)
        given = {*self.sd.values()}
        errors = sorted({*self._sd_columns(role, taken, taken).values()} - given)
        found = [f"{quoted(*errors)} {'hold' if len(errors) > 1 else 'holds'} standard deviations"] if errors else []
        return (role._replace(time=None) if self.time else role).remarks() + found

    def series(self, taken: Collection[str] = ()) -> set[str]:
        """The names of what varies over time: columns, or the observables of a long table."""
        role = self.roles(taken)
        if role.observable:
            return set(self.columns[role.observable]) - {role.dose, ""}
        return set(self.columns) - role.columns - {*self._sd_columns(role, taken, taken).values()}

    def data(
        self, states: Names | None = None, inputs: Names = (), replicates: str = "keep", optional: Names = ()
    ) -> Data:
        """The observations of `states`, without `optional` ones that have no column, and inputs; see `read_csv`."""
        with self._prefix_errors():
            return self._data(states, checked_names(inputs, "input"), replicates, optional)

    @contextlib.contextmanager
    def _prefix_errors(self) -> Iterator[None]:
        """Errors start with the name of the table."""
        try:
            yield
        except InputError as error:
            raise InputError(f"{self.name}: {error}") from None

    def _data(self, states: Names | None, inputs: Names, replicates: str, optional: Names) -> Data:
        wanted = () if states is None else checked_names(states, "state")
        role = find_roles(self.columns, {*wanted, *inputs}, self.time)
        t = self._times(role.time)
        experiments, group = _factorize(self._complete_column(role.experiment) if role.experiment else ["1"] * len(t))
        doses = self._dosing(role, t)
        series = self._series(role, doses)
        wanted = tuple(name for name in wanted if name in series or name not in optional) or wanted[:1]
        for name in (*wanted, *inputs):
            if name not in series:
                words = [
                    c for c in self.columns if c not in {*_numeric_columns(self.columns), role.time, role.experiment}
                ]
                raise InputError(_missing_column_message(name, series, words))
        errors_in = self._sd_columns(role, series if states is None else wanted, {*wanted, *inputs})
        if states is None:
            given = {"", *inputs, *(() if role.observable else errors_in.values())}
            found = _numeric_columns({name: cells for name, (_, cells) in series.items() if name not in given})
            wanted = checked_names(found, "state column")
        used, states_read = {*wanted, *inputs}, {*wanted}
        errors_in = {name: of for name, of in errors_in.items() if name in states_read}
        known = {*used, *role.columns, *errors_in.values()}
        unused = [name for name in self.columns if name not in known] if role.observable else []
        if unused := unused + [name for name in series if name not in known]:
            warn(f"columns not used: {quoted(*unused)}")
        row_of = self._row_of(role, t, group)
        first = np.unique(row_of, return_index=True)[1]
        if role.observable and len(first) * len(used) > max(_LARGE, _SPARSE * len(t)):
            raise InputError(f"{len(used)} observables at {len(first)} times are too many; name the states to read")
        y, errors, limits = self._observations(series, wanted, errors_in, doses, row_of, len(first))
        u = {}
        for name in inputs:
            rows, cells = series[name]
            u[name] = np.full(len(first), np.nan)
            u[name][row_of[rows]] = parse_numbers(cells, self._place(name, rows))
        doses_of: list[list[Dose]] = [[] for _ in experiments]
        for dose, row in zip(doses.doses, doses.rows, strict=True) if doses else ():
            doses_of[group[row]].append(dose)
        parts, t = [], t[first]
        for name, rows, own in zip(experiments, _rows_by_code(group[first], len(experiments)), doses_of, strict=True):
            driven = {key: values[rows] for key, values in u.items()}
            sd, limit = (None if beside is None else beside[rows] for beside in (errors, limits))
            parts.append(make_experiment(name, t[rows], y[rows], wanted, driven, replicates, sd, limit, own))
        labels = {name: self.headers[name] for name in wanted if name in self.headers}
        if role.time is not None and role.time not in TIME and is_number(self.columns[role.time][0]):
            labels["time"] = self.headers.get(role.time, role.time)
        return Data.from_experiments(wanted, parts, labels)

    def _row_of(self, role: Roles, t: np.ndarray, group: np.ndarray) -> np.ndarray:
        """The row of a wide table in which each row of this one lands (N,)."""
        if role.observable is None:
            return np.arange(len(t))
        kind = _factorize(self.columns[role.observable])[1]
        return _wide_rows(group, np.unique(t, return_inverse=True)[1], kind)

    def _observations(
        self,
        series: Mapping[str, tuple[Rows, Cells]],
        wanted: Names,
        sd: Mapping[str, str],
        doses: Dosing | None,
        row_of: np.ndarray,
        count: int,
    ) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
        """Values, standard deviations and limits, each (count, K): those of row i of the table in row_of[i]."""
        y = np.full((count, len(wanted)), np.nan)
        errors, limits = np.full(y.shape, np.nan) if sd else None, None
        silent = doses.silent if doses and doses.silent.any() else None
        for k, name in enumerate(wanted):
            rows, cells = series[name]
            if silent is not None:
                cells = ["" if silent[i] else cell for i, cell in zip(rows, cells, strict=True)]
            values, limit = parse_observations(cells, self._place(name, rows))
            y[row_of[rows], k] = values
            if limit is not None:
                limits = np.zeros(y.shape) if limits is None else limits
                limits[row_of[rows], k] = limit
            if errors is not None and name in sd:
                errors[row_of[rows], k] = self._errors(sd[name], rows, values)
        return y, errors, limits

    def _sd_columns(self, role: Roles, series: Collection[str], taken: Collection[str]) -> dict[str, str]:
        """Series → the column of its standard deviations, which is none of those that are `taken` as series."""
        if role.observable:
            found = dict.fromkeys(series, role.sd) if role.sd else {}
        else:
            used = {*role.columns, *taken}
            free = [name for name in self.columns if name not in used]
            found = find_sd_columns([name for name in series if name not in self.sd], free)
        return {**found, **{name: of for name, of in self.sd.items() if name in series}}

    def _errors(self, name: str, rows: Rows, values: np.ndarray) -> np.ndarray:
        """The standard deviations in a column, of the values in some rows."""
        place = self._place(name, rows)
        found = parse_numbers([self.columns[name][i] for i in rows], place)
        for i in map(int, np.flatnonzero(~np.isnan(values) & invalid_sd(found))):
            checked_positive(f"{place(i)}: the standard deviation", float(found[i]))
        return found

    def _dosing(self, role: Roles, t: np.ndarray) -> Dosing | None:
        """What rows say about doses; None if there are none."""
        if not role.dose and not role.dosing:
            return None

        def place(name: str, i: int) -> str:
            return f"{self.word} {self.rows[i]}, column {quoted(role.dosing.get(name, name))}"

        cells = {name: self.columns[of] for name, of in role.dosing.items()}
        amount = amounts(cells["amt"], partial(place, "amt")) if "amt" in cells else np.full(len(t), np.nan)
        if role.dose and role.observable and role.value:
            rows = [i for i, kind in enumerate(self.columns[role.observable]) if kind == role.dose]
            values = [self.columns[role.value][i] for i in rows]
            amount[rows] = amounts(values, lambda i: place(str(role.dose), rows[i]))
            for i in np.flatnonzero(np.isnan(amount[rows])):
                raise InputError(self._missing_cell_message(role.value, rows[i]))
        return dosing(t, amount, cells, place)

    def _complete_column(self, name: str) -> list[str]:
        """The cells of a column none of which may be empty."""
        if "" in (cells := self.columns[name]):
            raise InputError(self._missing_cell_message(name, cells.index("")))
        return cells

    def _missing_cell_message(self, name: str, row: int) -> str:
        return f"{self.word} {self.rows[row]} has no {quoted(name)}; fill it in or remove the {self.word}"

    def _times(self, name: str | None) -> np.ndarray:
        """The times (N,): numbers, or the days since the first of some dates."""
        if name is None:
            remedy = "name one 'time' or choose it by --time COLUMN (in Python time=COLUMN)"
            raise InputError(f"there is no time column; {remedy}; columns found: {_first_names(self.columns)}")
        cells = self._complete_column(name)
        place = self._place(name, range(len(cells)))
        if not is_number(cells[0]) and (found := dates.days_since_first(cells, place)):
            t, first = found
            warn(f"{self.name}: {quoted(name)} holds dates, so time is in days since {first}")
            return t
        t = parse_numbers(cells, place)
        for i in np.flatnonzero(np.isnan(t)):
            raise InputError(self._missing_cell_message(name, int(i)))
        return t

    def _series(self, role: Roles, doses: Dosing | None) -> dict[str, tuple[Rows, Cells]]:
        """Name → rows and cells of what varies over time."""
        if role.observable is None or role.value is None:
            everywhere, no_series = np.arange(len(self.rows)), role.columns
            return {name: (everywhere, cells) for name, cells in self.columns.items() if name not in no_series}
        found: dict[str, tuple[list[int], list[str]]] = {}
        for i, (kind, cell) in enumerate(zip(self.columns[role.observable], self.columns[role.value], strict=True)):
            rows, cells = found.setdefault(kind, ([], []))
            rows.append(i)
            cells.append(cell)
        for i in found.pop("", ((), ()))[0]:
            if doses is None or not (doses.given[i] or doses.silent[i]):
                raise InputError(self._missing_cell_message(role.observable, i))
        return {name: known for name, known in found.items() if name != role.dose}

    def _place(self, name: str, rows: Rows) -> Callable[[int], str]:
        return lambda i: f"{self.word} {self.rows[rows[i]]}, column {quoted(name)}"


def columns_from_rows(rows: Iterable[tuple[int, Sequence[str]]], word: str) -> tuple[list[int], dict[str, list[str]]]:
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


def _factorize(texts: Cells) -> tuple[list[str], np.ndarray]:
    """The distinct texts in their order, and the number of each."""
    known: dict[str, int] = {}
    codes = np.array([known.setdefault(text, len(known)) for text in texts])
    return list(known), codes


def _rows_by_code(codes: np.ndarray, count: int) -> list[np.ndarray]:
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


def _numeric_columns(columns: Mapping[str, Cells]) -> list[str]:
    """All but text columns, which hold no number at all: a text among numbers is a mistake."""
    return [name for name, cells in columns.items() if any(map(is_observation, cells)) or all(map(is_missing, cells))]


def _missing_column_message(name: str, columns: Collection[str], words: Sequence[str] = ()) -> str:
    near = nearest(name, islice(columns, 1000))
    known = near if "did you mean" in near else f"; columns found: {_first_names(columns)}"
    need = "inputs need a column, and so does at least one state"
    remedy = f"to take another: --map 'COLUMN={name[:40]}' (in Python columns=)"
    if words and (values := [c for c in columns if c not in words]):  # a long table with names of its own
        remedy = f"if {quoted(words[0])} says what was measured: --map '{words[0][:40]}=observable' --map "
        remedy += f"'{values[0][:40]}=value'"
    return f"there is no column {quoted(name)}{known}; {need}; {remedy}"


def _first_names(names: Collection[str]) -> str:
    return quoted(*islice(names, 8))[:150] + (f" and {len(names) - 8} more" if len(names) > 8 else "")
