"""Read doses from the columns amt, cmt, rate, ii, addl, ss, evid and mdv, as pharmacometric programs do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from odinfer.data.cells import Place, is_missing, is_number, parse_numbers
from odinfer.data.dose import Dose
from odinfer.errors import InputError

_MOST = 1_000_000  # doses of a table


class Dosing(NamedTuple):
    """What the rows (N,) of a table say about doses."""

    doses: list[Dose]
    rows: list[int]  # of each dose
    given: np.ndarray  # (N,): whether a row gives a dose
    silent: np.ndarray  # (N,): whether its observations do not count


def amounts(cells: Sequence[str], place: Place) -> np.ndarray:
    """How much is given, NaN where cells are missing."""
    found = parse_numbers(cells, place)
    for i in np.flatnonzero(found < 0):
        raise InputError(
            f"{place(int(i))}: the dose is {found[i]:g}; it must be positive, or empty where none is given"
        )
    return found


def dosing(
    t: np.ndarray, amount: np.ndarray, columns: Mapping[str, Sequence[str]], place: Callable[[str, int], str]
) -> Dosing:
    """The doses in rows with times and amounts (N,), NaN = none.

    Args:
        columns: those of cmt, rate, ii, addl, ss, evid and mdv that there are, name → cells.
        place: where the cell of a column and row stands, in words.

    Raises:
        InputError: at the first cell that cannot be.
    """
    none = np.zeros(len(t))

    def read(name: str) -> np.ndarray:
        return np.nan_to_num(parse_numbers(columns[name], partial(place, name))) if name in columns else none

    def refuse(name: str, wrong: np.ndarray, why: str) -> None:
        for i in map(int, np.flatnonzero(wrong)):
            raise InputError(f"{place(name, i)}: {columns[name][i] or 'nothing'} {why}")

    rate, ii, addl, ss, evid, mdv = map(read, ("rate", "ii", "addl", "ss", "evid", "mdv"))
    given = amount > 0
    refuse("evid", ~np.isin(evid, (0, 1, 2)), "is not supported; 0 is an observation, 1 a dose, 2 neither")
    refuse("evid", (evid == 1) & np.isnan(amount), "is a dose, but no amount is given")
    refuse("rate", given & (rate < 0), "is negative; it is amount per time, or 0 if given at once")
    refuse("ii", given & (ii < 0), "is negative; it is the time between doses")
    refuse("addl", given & ((addl < 0) | (addl % 1 != 0)), "is not the number of further doses, which is whole")
    refuse("addl", given & (addl > 0) & (ii == 0), "further doses need the time between them in a column ii")
    refuse("ss", given & ~np.isin(ss, (0, 1)), "is not supported; 1 is a dose at steady state, 0 any other")
    refuse("ss", given & (ss == 1) & (ii == 0), "a dose at steady state needs the time between doses in a column ii")
    rows = [int(i) for i in np.flatnonzero(given)]
    if len(rows) + addl[rows].sum() > _MOST:
        raise InputError(f"there are more than {_MOST:,} doses; check addl")
    states = _states(columns.get("cmt"), rows, partial(place, "cmt"))
    found = [
        (Dose(float(t[i] + k * ii[i]), float(amount[i]), state, float(rate[i]), float((k == 0) * ss[i] * ii[i])), i)
        for i, state in zip(rows, states, strict=True)
        for k in range(int(addl[i]) + 1)
    ]
    return Dosing([dose for dose, _ in found], [i for _, i in found], given, (evid != 0) | (mdv != 0))


def _states(cells: Sequence[str] | None, rows: Sequence[int], place: Place) -> list[str | None]:
    """What doses go to, as cells say it; nothing if none of them does."""
    if cells is None or all(is_missing(cells[i]) for i in rows):
        return [None] * len(rows)
    for i in rows:
        if is_missing(cells[i]):
            raise InputError(f"{place(i)}: the dose has no state that it goes to, but other doses have one")
    return [_format_count(cells[i]) for i in rows]


def _format_count(cell: str) -> str:
    """A number as it is counted: spreadsheets and frames make 1.0 of 1."""
    return str(int(float(cell))) if is_number(cell) and "," not in cell and float(cell).is_integer() else cell
