"""Validate values of a grid file."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

from odinfer.checks import is_integer
from odinfer.errors import InputError, nearest

_MOST, _LONGEST = 100_000, 200  # draws, times or states; characters of a name


def checked_table(table: Any, where: str, known: Mapping[str, tuple[Callable[[Any], Any], Any]]) -> dict[str, Any]:
    """Checked entries of a table, with defaults; None as a default means that there is none."""
    if not isinstance(table, Mapping):
        raise InputError(f"{where} must be a table of names and values")
    for key in table:
        if key not in known:
            raise InputError(f"{where}: unknown entry '{key}'{nearest(key, known)}")
    found = {}
    for key, (check, default) in known.items():
        if key not in table and default is None:
            raise InputError(f"{where}: '{key}' is missing")
        try:
            found[key] = check(table[key]) if key in table else default
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(f"{where}: '{key}' must be {error}, not '{_quote(table[key])}'") from None
    return found


def checked_name(where: str, what: str, name: Any, choices: Mapping[str, Any]) -> Any:
    if not isinstance(name, str) or name not in choices:
        raise InputError(f"{where}: unknown {what} '{_quote(name)}'{nearest(_quote(name), choices)}")
    return choices[name]


def _quote(value: Any) -> str:
    try:
        return str(value)[:60]
    except (ValueError, RecursionError):  # a whole number of thousands of digits, tables within tables
        return "what cannot be shown"


def _require(valid: bool, words: str) -> None:
    if not valid:
        raise ValueError(words)


def text(value: Any) -> str:
    _require(isinstance(value, str) and bool(value.strip()), "a text")
    return str(value)


def label(value: Any) -> str:
    _require(
        isinstance(value, str) and 0 < len(value.strip()) <= len(value) <= _LONGEST, f"a text up to {_LONGEST} long"
    )
    return str(value)


def texts(value: Any) -> list[str]:
    _require(isinstance(value, list) and all(isinstance(v, str) for v in value), "a list of names")
    return list(value)


def flag(value: Any) -> bool:
    _require(isinstance(value, bool), "true or false")
    return bool(value)


def whole(value: Any) -> int:
    _require(is_integer(value), "a whole number from 0 on")
    return int(value)


def count(value: Any) -> int:
    _require(is_integer(value, 1) and value <= _MOST, f"a whole number from 1 to {_MOST:,}")
    return int(value)


def number(value: Any) -> float:
    _require(isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e100, "a number")
    return float(value)


def numbers(value: Any) -> dict[str, float]:
    _require(isinstance(value, dict), "numbers by name")
    return {name: number(v) for name, v in value.items()}


def positive(value: Any) -> float:
    _require(
        isinstance(value, int | float) and not isinstance(value, bool) and 1e-100 < value < 1e100, "a positive number"
    )
    return float(value)


def pair(value: Any) -> tuple[float, float]:
    _require(isinstance(value, list) and len(value) == 2, "a pair of numbers")
    return number(value[0]), number(value[1])


def by_name(check: Callable[[Any], Any]) -> Callable[[Any], dict[str, Any]]:
    """A table whose values are all of one kind."""

    def checked(value: Any) -> dict[str, Any]:
        return {name: check(v) for name, v in table(value).items()}

    return checked


def table(value: Any) -> dict[str, Any]:
    _require(isinstance(value, dict), "a table")
    return dict(value)


def listed(value: Any) -> list[Any]:
    _require(isinstance(value, list), "a list")
    return list(value)


def levels(value: Any) -> tuple[float, ...]:
    _require(isinstance(value, list) and len(value) > 0, "a list of positive numbers")
    return tuple(map(positive, value))


def times(value: Any) -> tuple[float, ...]:
    import numpy as np

    words = "a list of increasing times, or {start, stop, count}"
    if isinstance(value, dict):
        _require(set(value) == {"start", "stop", "count"}, words)
        value = np.linspace(number(value["start"]), number(value["stop"]), min(count(value["count"]), _MOST)).tolist()
    _require(isinstance(value, list), words)
    value = tuple(map(number, value))
    _require(all(a < b for a, b in itertools.pairwise(value)), words)
    return tuple(value)
