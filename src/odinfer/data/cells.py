"""Convert cells of text to numbers and back; missing cells are NaN, and anything else is refused with its place."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from odinfer.data.series import quoted
from odinfer.errors import InputError

MISSING = frozenset({"", "na", "nan", "n/a", "#n/a", "null", "."})  # in lower case
Place = Callable[[int], str]  # where the i-th cell stands, in words

# Possessive: a long row of digits before a letter must not be tried in all its divisions.
_CENSORED = {"BLQ", "BLOQ", "BQL", "BLLOQ", "LLOQ", "LOQ", "BDL", "LOD", "BLD"}  # words for "below a limit"
_LIMIT_SIGNS = {
    "<": -1,
    "≤": -1,
    ">": 1,
    "≥": 1,
}  # how the cell of a limit of detection begins, and where the value lies
_NUMBER = re.compile(r"[+-]?((\d++([.,]\d*+)?|[.,]\d++)(e[+-]?\d++)?|inf(inity)?)", re.ASCII | re.IGNORECASE)


def is_missing(cell: str) -> bool:
    """Whether a cell says that nothing was observed."""
    return not cell or (len(cell) < 5 and cell.lower() in MISSING)


def is_number(cell: str) -> bool:
    """Whether a cell is meant as a number, if perhaps an infinite one or one with a decimal comma."""
    return _NUMBER.fullmatch(cell) is not None


def parse_numbers(cells: Sequence[str], place: Place) -> np.ndarray:
    """The numbers in some cells, NaN where they are missing.

    Raises:
        InputError: at the first cell that is neither.
    """
    plain = _parse_fast(cells)
    return plain if plain is not None else np.array([_parse_number(cell, i, place) for i, cell in enumerate(cells)])


def parse_observations(cells: Sequence[str], place: Place) -> tuple[np.ndarray, np.ndarray | None]:
    """Numbers as above, and where the true value lies of those that are limits such as <0.05; None if none is.

    -1: below, 1: above, 0: the number is no limit.
    """
    plain = _parse_fast(cells)
    if plain is not None:
        return plain, None
    limit = np.array([_LIMIT_SIGNS.get(cell[:1], 0) for cell in cells], np.int8)
    if not limit.any():
        return parse_numbers(cells, place), None
    for i in map(int, np.flatnonzero(limit)):
        if not is_observation(cells[i]):
            raise InputError(f"{place(i)}: {quoted(cells[i])} is no limit of detection; write one like <0.05")
    return parse_numbers(
        [_limit_value(cell) if beyond else cell for cell, beyond in zip(cells, limit, strict=True)], place
    ), limit


def is_observation(cell: str) -> bool:
    """Whether a cell is meant as a number or as a limit of detection."""
    return is_number(_limit_value(cell) if cell[:1] in _LIMIT_SIGNS else cell)


def cell_text(value: Any) -> str:
    """A value as it would stand in a CSV file."""
    if value is None or (isinstance(value, float) and value != value):
        return ""
    if isinstance(value, datetime.date):
        return value.isoformat()
    return repr(value) if isinstance(value, float) else str(value).strip()


def _limit_value(cell: str) -> str:
    """The number in a cell such as <0.05, < 0.05 or <=0.05."""
    return cell[1:].removeprefix("=").strip()


def _parse_fast(cells: Sequence[str]) -> np.ndarray | None:
    """The same, several times faster, where all cells are empty or hold finite numbers."""
    try:
        found = np.array([float(cell) if cell else math.nan for cell in cells])
    except ValueError:
        return None
    text = "".join(cells)  # float() also takes 1_000 and the digits of all scripts
    if "_" in text or not text.isascii() or np.count_nonzero(~np.isfinite(found)) != cells.count(""):
        return None
    return found


def _parse_number(cell: str, i: int, place: Place) -> float:
    if is_missing(cell):
        return math.nan
    number = float(cell.replace(",", ".")) if is_number(cell) else math.inf
    if cell.strip("<() ").upper() in _CENSORED:
        raise InputError(
            f"{place(i)}: {quoted(cell)} says that the value is below a limit, but not which; write the limit, such as "
            "<0.05"
        )
    if math.isinf(number):
        raise InputError(f"{place(i)}: {quoted(cell)} is not a finite number; leave it empty if not observed")
    if "," in cell:
        raise InputError(f"{place(i)}: {quoted(cell)} has a decimal comma; use points")
    return number
