"""Recognise the roles of columns: time, experiment, observable and value of long tables, errors, doses."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from odinfer.data.cells import is_number
from odinfer.data.series import Names, quoted
from odinfer.errors import InputError, nearest

# Names in lower case; earlier ones win.
TIME = ("time", "times", "t")
EXPERIMENT = (
    "experiment",
    "condition",
    "simulationconditionid",
    "subject",
    "subject_id",
    "subjectid",
    "patient",
    "id",
    "group",
)
OBSERVABLE = ("observable", "state", "variable", "observableid")
VALUE = ("value", "measurement")
SD = ("sd",)  # of the value
DOSE = ("dose", "Dose", "DOSE")  # an observable that is none
DOSING = (
    "amt",
    "cmt",
    "rate",
    "ii",
    "addl",
    "ss",
    "evid",
    "mdv",
)  # the first, or rows as above, tell that these are they
# Times by their unit, if there is none of the names above; several of them are not told apart.
TIME_UNITS = (
    "year", "years", "yr", "yrs", "month", "months", "week", "weeks", "day", "days", "hour", "hours", "hr", "hrs",
    "minute", "minutes", "min", "mins", "second", "seconds", "sec", "secs", "date", "dates", "datetime", "timestamp",
    "zeit", "tag", "tage", "stunde", "stunden", "std", "monat", "monate", "jahr", "jahre",  # German
    "temps", "heure", "heures", "jour", "jours", "tiempo", "hora", "horas", "tempo", "ora", "ore",  # French to Italian
    "tid", "dag", "dage", "dagar", "dagen", "timme", "timmar", "tijd", "uur", "uren",  # Scandinavian, Dutch
)  # fmt: skip
_UNIT = re.compile(rf"\s*(\[[^\]]*\]|\([^)]*\))$|(?<=time)[ _./-]+([smhdwy]|{'|'.join(TIME_UNITS)})$", re.IGNORECASE)
_SD = re.compile(r"(.+)_sd|sd_(.+)", re.IGNORECASE)


class Roles(NamedTuple):
    """The columns with a role; `observable` and `value` are both there or both None.

    Attributes:
        sd: the column with the standard deviations of the values of a long table.
        dose: the observable of a long table whose values are doses.
        dosing: names of `DOSING` → column; none if there are no doses.
    """

    time: str | None
    experiment: str | None
    observable: str | None
    value: str | None
    sd: str | None
    dose: str | None
    dosing: Mapping[str, str]

    @property
    def columns(self) -> set[str]:
        """All columns with a role."""
        named = (self.time, self.experiment, self.observable, self.value, self.sd)
        return {*(name for name in named if name), *self.dosing.values()}

    def remarks(self) -> list[str]:
        """What was understood though it was not said in so many words, in a sentence each."""
        time = self.time and base_name(self.time) not in TIME and f"the column {quoted(self.time)} is taken as the time"
        mark = self.experiment and base_name(self.experiment) not in EXPERIMENT[:3]
        where = f"observable {quoted(self.dose)}" if self.dose else f"column {quoted(self.dosing.get('amt'))}"
        doses = (self.dose or self.dosing) and f"the {where} holds doses"
        return [text for text in (time, mark and f"each {quoted(self.experiment)} is an experiment", doses) if text]


def find_roles(columns: Mapping[str, Sequence[str]], taken: Collection[str] = (), time: str | None = None) -> Roles:
    """The roles of columns (name → cells) but for those that are `taken` as series; `time` if it was chosen.

    Experiments are marked by a column of a usual name, or by the only column of words without which times repeat.

    Raises:
        InputError: if several columns may be the time.
    """
    free = [name for name in columns if name not in taken and name != time]
    time = time or _find_role(free, TIME) or _find_time_by_unit(free)
    marks = [name for name in free if name != time and not _numbers_rows(name, columns[name])]
    observable, value = find_long_columns(free)
    kinds = set(columns[observable]) if observable else set()
    dose = next((name for name in DOSE if name in kinds and name not in taken), None)
    dosing = {name: column for name in DOSING if (column := _find_role(free, (name,)))}
    sd = _find_role(free, SD) if observable else None
    experiment = _find_role(marks, EXPERIMENT)
    if experiment is None and time and not observable and any(name in columns for name in taken):
        experiment = _find_labels(columns, free, time)
    return Roles(time, experiment, observable, value, sd, dose, dosing if dose or "amt" in dosing else {})


def find_long_columns(columns: Iterable[str]) -> tuple[str, str] | tuple[None, None]:
    """The columns with the names and with the values of observables, if there are both."""
    columns = list(columns)
    observable, value = _find_role(columns, OBSERVABLE), _find_role(columns, VALUE)
    return (observable, value) if observable and value else (None, None)


def find_sd_columns(series: Collection[str], free: Iterable[str]) -> dict[str, str]:
    """Series x → the column of its standard deviations, of those that are `free`: x_sd or sd_x, with a unit or not.

    Raises:
        InputError: if there are several.
    """
    targets = {_UNIT.sub("", name[:100]): name for name in series} | {name: name for name in series}
    found: dict[str, str] = {}
    for name in free:
        match = _SD.fullmatch(_UNIT.sub("", name[:100]))
        target = targets.get(match[1] or match[2]) if match else None
        if target in found:
            choice = f"choose by --sd {target[:40]}=COLUMN (in Python sd=)"
            raise InputError(f"{quoted(found[target], name)} may each hold the errors of {quoted(target)}; {choice}")
        if target is not None:
            found[target] = name
    return found


def checked_column(name: str, columns: Iterable[str], what: str) -> str:
    """The column of that name, or an InputError that starts with `what`."""
    columns = list(columns)
    if name not in columns:
        raise InputError(f"{what}: there is no column {quoted(name)}{nearest(name, columns[:1000])[:300]}")
    return name


def base_name(name: str) -> str:
    """A name without its unit, in lower case."""
    return _UNIT.sub("", name[:100]).lower()  # no name with a role is longer


def _find_role(columns: Iterable[str], choices: Names) -> str | None:
    """The column of the earliest choice, in any unit; lower case first, since T beside t is a state."""
    found = [column for column in columns if base_name(column) in choices]
    return min(found, key=lambda c: (choices.index(base_name(c)), not _UNIT.sub("", c).islower()), default=None)


def _find_time_by_unit(columns: Iterable[str]) -> str | None:
    found = [column for column in columns if base_name(column) in TIME_UNITS]
    if len(found) > 1:
        raise InputError(f"{quoted(*found)} may each be the time; choose by --time COLUMN (in Python time=COLUMN)")
    return found[0] if found else None


def _find_labels(columns: Mapping[str, Sequence[str]], free: Iterable[str], time: str) -> str | None:
    """The only column of words that tells several time courses apart: with it times repeat no more, without it they do.

    A word of every time course comes in at least two rows.
    """
    times, found = columns[time], []
    if len(set(times)) == len(times):
        return None
    for name in free:
        rows = Counter(columns[name])
        words = all(word.strip() and not is_number(word) for word in rows)
        if words and min(rows.values()) > 1 and len(set(zip(columns[name], times, strict=True))) == len(times):
            found.append(name)
    return found[0] if len(found) == 1 else None


def _numbers_rows(name: str, cells: Sequence[str]) -> bool:
    """An ID that never repeats numbers the rows and marks nothing."""
    return base_name(name) == "id" and len(set(cells)) == len(cells)
