"""Which column is the time, which marks experiments, and which are those of a long table."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from odinfer.errors import InputError, nearest
from odinfer.problem.data import Names, short

# Names in lower case; earlier ones win.
TIME = ("time", "times", "t")
EXPERIMENT = ("experiment", "condition", "simulationconditionid", "subject", "subject_id", "subjectid", "id", "group")
OBSERVABLE = ("observable", "state", "variable", "observableid")
VALUE = ("value", "measurement")
# Times by their unit, if there is none of the names above; several of them are not told apart.
UNITS = (
    "year", "years", "yr", "yrs", "month", "months", "week", "weeks", "day", "days", "hour", "hours", "hr", "hrs",
    "minute", "minutes", "min", "mins", "second", "seconds", "sec", "secs", "date", "dates", "datetime", "timestamp",
)  # fmt: skip
_UNIT = re.compile(rf"\s*(\[[^\]]*\]|\([^)]*\))$|(?<=time)[ _./-]+([smhdwy]|{'|'.join(UNITS)})$", re.IGNORECASE)


class Roles(NamedTuple):
    """The columns with a role; `observable` and `value` are both there or both None."""

    time: str | None
    experiment: str | None
    observable: str | None
    value: str | None

    def remarks(self) -> list[str]:
        """What was understood though it was not said in so many words, in a sentence each."""
        time = self.time and _bare(self.time) not in TIME and f"the column {short(self.time)} is taken as the time"
        mark = self.experiment and _bare(self.experiment) not in EXPERIMENT[:3]
        return [text for text in (time, mark and f"each {short(self.experiment)} is an experiment") if text]


def roles(columns: Mapping[str, Sequence[str]], taken: Collection[str] = (), time: str | None = None) -> Roles:
    """The roles of columns (name → cells) but for those that are `taken` as series; `time` if it was chosen.

    Raises:
        InputError: if several columns may be the time.
    """
    free = [name for name in columns if name not in taken and name != time]
    time = time or _role(free, TIME) or _by_unit(free)
    marks = [name for name in free if name != time and not _counts_rows(name, columns[name])]
    return Roles(time, _role(marks, EXPERIMENT), *long_columns(free))


def long_columns(columns: Iterable[str]) -> tuple[str, str] | tuple[None, None]:
    """The columns with the names and with the values of observables, if there are both."""
    columns = list(columns)
    observable, value = _role(columns, OBSERVABLE), _role(columns, VALUE)
    return (observable, value) if observable and value else (None, None)


def column(name: str, columns: Iterable[str], what: str) -> str:
    """The column of that name, or an InputError that starts with `what`."""
    columns = list(columns)
    if name not in columns:
        raise InputError(f"{what}: there is no column {short(name)}{nearest(name, columns[:1000])[:300]}")
    return name


def _bare(name: str) -> str:
    """A name without its unit, in lower case."""
    return _UNIT.sub("", name[:100]).lower()  # no name with a role is longer


def _role(columns: Iterable[str], choices: Names) -> str | None:
    """The column of the earliest choice, in any unit; lower case first, since T beside t is a state."""
    found = [column for column in columns if _bare(column) in choices]
    return min(found, key=lambda c: (choices.index(_bare(c)), not _UNIT.sub("", c).islower()), default=None)


def _by_unit(columns: Iterable[str]) -> str | None:
    found = [column for column in columns if _bare(column) in UNITS]
    if len(found) > 1:
        raise InputError(f"{short(*found)} may each be the time; choose by --time COLUMN (in Python time=COLUMN)")
    return found[0] if found else None


def _counts_rows(name: str, cells: Sequence[str]) -> bool:
    """An ID that never repeats numbers the rows and marks nothing."""
    return _bare(name) == "id" and len(set(cells)) == len(cells)
