"""Convert dates to days since the first."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

import numpy as np

from odinfer.data.cells import Place
from odinfer.data.series import quoted
from odinfer.errors import InputError

# What is written beside ISO 8601. Of two that read the same cells, neither is taken.
_FORMATS = (
    "%Y-%m", "%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y",
    "%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%b %d %Y", "%b %d, %Y", "%B %d, %Y", "%b %Y", "%B %Y",
)  # fmt: skip
_CLOCKS = ("", " %H:%M", " %H:%M:%S")
_LONGEST = 40  # characters of a date
_DAY = datetime.timedelta(days=1)


def days_since_first(cells: Sequence[str], place: Place) -> tuple[np.ndarray, str] | None:
    """Days since the earliest date, and that date; None if the first cell is no date.

    Raises:
        InputError: a later cell is none, or day and month cannot be told apart.
    """
    if len(cells[0]) > _LONGEST:
        return None
    if _parse_iso(cells[0]):
        dates = [_parse_iso(cell) for cell in cells]
        for i, (cell, date) in enumerate(zip(cells, dates, strict=True)):
            if date is None or (date.tzinfo is None) != (dates[0].tzinfo is None):  # type: ignore[union-attr]
                raise InputError(f"{place(i)}: {quoted(cell)} is not a date like {quoted(cells[0])}")
        found = [date for date in dates if date is not None]
        first = min(found)
        return np.array([(date - first) / _DAY for date in found]), _date_text(first)
    return _parse_by_format(cells, place)


def _parse_iso(cell: str) -> datetime.datetime | None:
    try:
        return datetime.datetime.fromisoformat(cell)
    except ValueError:
        return None


def _date_text(date: datetime.datetime) -> str:
    return date.date().isoformat() if date.time() == datetime.time() else date.isoformat(" ")


def _parse_by_format(cells: Sequence[str], place: Place) -> tuple[np.ndarray, str] | None:
    formats = [day + clock for day in _FORMATS for clock in _CLOCKS if _has_format(cells[0], day + clock)]
    if not formats:
        return None
    import pandas

    text = pandas.Series(cells, dtype=object)
    parsed = [pandas.to_datetime(text, format=form, errors="coerce") for form in formats]
    best = max(parsed, key=lambda dates: int(dates.notna().sum()))
    for i in map(int, np.flatnonzero(best.isna())):
        raise InputError(f"{place(i)}: {quoted(cells[i])} is not a date like {quoted(cells[0])}")
    if any(dates.notna().all() and (dates != best).any() for dates in parsed):
        raise InputError(f"{place(0)}: {quoted(cells[0])} may start with the day or the month; write year-month-day")
    first = best.min()
    return ((best - first) / pandas.Timedelta(days=1)).to_numpy(float), _date_text(first.to_pydatetime())


def _has_format(cell: str, form: str) -> bool:
    try:
        datetime.datetime.strptime(cell, form)
    except ValueError:
        return False
    return True
