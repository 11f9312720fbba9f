"""Values of a grid file: what is wrong with one is said with its place and what it should be."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any

from odinfer.checks import is_whole
from odinfer.errors import InputError, nearest


def taken(table: Any, where: str, known: Mapping[str, tuple[Callable[[Any], Any], Any]]) -> dict[str, Any]:
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
        except (TypeError, ValueError) as error:
            raise InputError(f"{where}: '{key}' must be {error}, not {str(table[key])[:60]!r}") from None
    return found


def known(where: str, what: str, name: Any, choices: Mapping[str, Any]) -> Any:
    if name not in choices:
        raise InputError(f"{where}: unknown {what} '{name}'{nearest(str(name), choices)}")
    return choices[name]


def _must(valid: bool, words: str) -> None:
    if not valid:
        raise ValueError(words)


def text(value: Any) -> str:
    _must(isinstance(value, str) and bool(value.strip()), "a text")
    return str(value)


def flag(value: Any) -> bool:
    _must(isinstance(value, bool), "true or false")
    return bool(value)


def whole(value: Any) -> int:
    _must(is_whole(value), "a whole number from 0 on")
    return int(value)


def count(value: Any) -> int:
    _must(is_whole(value, 1), "a whole number from 1 on")
    return int(value)


def positive(value: Any) -> float:
    _must(isinstance(value, int | float) and 0 < value < math.inf, "a positive number")
    return float(value)


def table(value: Any) -> dict[str, Any]:
    _must(isinstance(value, dict), "a table")
    return dict(value)


def listed(value: Any) -> list[Any]:
    _must(isinstance(value, list), "a list")
    return list(value)


def levels(value: Any) -> tuple[float, ...]:
    _must(isinstance(value, list) and len(value) > 0, "a list of positive numbers")
    return tuple(map(positive, value))


def times(value: Any) -> tuple[float, ...]:
    import numpy as np

    words = "a list of increasing times, or {start, stop, count}"
    if isinstance(value, dict):
        _must(set(value) == {"start", "stop", "count"} and is_whole(value["count"]), words)
        value = np.linspace(value["start"], value["stop"], value["count"]).tolist()
    _must(isinstance(value, list) and all(isinstance(v, int | float) for v in value), words)
    _must(all(a < b for a, b in itertools.pairwise(value)), words)
    return tuple(map(float, value))
