"""Validate single values (numbers, ranges, choices), with the same message everywhere."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from odinfer.errors import InputError, nearest

_LEAST, _MOST = 1e-100, 1e100  # of what is squared, divided by and multiplied with others like it


def is_integer(value: Any, least: int = 0) -> bool:
    """Whether a value is a whole number from `least` on: Python's or numpy's, but no truth value."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and int(value) >= least


def checked_integer(what: str, value: Any, least: int = 0, most: int | None = None) -> int:
    """A whole number from `least` on, up to `most` if there is such a limit, or an InputError."""
    if not is_integer(value, least):
        raise InputError(f"{what} must be a whole number from {least} on, not {_quote(value)}")
    if most is not None and int(value) > most:
        raise InputError(f"{what} must be at most {most:,}, not {_quote(value)}")
    return int(value)


def checked_number(what: str, value: Any, finite: bool = True) -> float:
    """A number that is not NaN, and finite if it has to be, or an InputError; text is none."""
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        found = float(value)
    except OverflowError:
        found = float("inf")
    except (TypeError, ValueError):
        raise InputError(f"{what} must be a number, not {_quote(value)}") from None
    if np.isnan(found) or (finite and np.isinf(found)):
        raise InputError(f"{what} must be a finite number, not {found}")
    return found


def checked_positive(what: str, value: Any) -> float:
    """A positive number that can be squared and divided by without leaving the numbers, or an InputError."""
    found = checked_number(what, value)
    if found <= 0:
        raise InputError(f"{what} must be positive, not {_quote(value)}")
    if not _LEAST <= found <= _MOST:
        raise InputError(f"{what} must be between 1e-100 and 1e100, not {_quote(value)}")
    return found


def checked_choice(what: str, value: Any, choices: Iterable[str]) -> str:
    """One of the choices, or an InputError that names the nearest."""
    choices = list(choices)
    if not isinstance(value, str) or value not in choices:
        raise InputError(f"unknown {what} {_quote(str(value))}{nearest(str(value), choices)}")
    return value


def checked_range(what: str, value: Any) -> tuple[float, float]:
    """A pair 0 < low < high, or an InputError."""
    try:
        low, high = (checked_number(what, v, finite=False) for v in value)
    except (TypeError, ValueError):
        low, high = 0.0, 0.0
    if not 0 < low < high:
        raise InputError(f"{what} must be a pair 0 < low < high, not {_quote(value)}")
    return low, high


def _quote(value: Any) -> str:
    """A value in a message: on one line, and not too long."""
    try:
        text = " ".join(repr(value).split())
    except (ValueError, RecursionError):  # a whole number of many thousand digits, lists within lists
        text = f"a {type(value).__name__} that is too large to show"
    return text if len(text) <= 80 else f"{text[:79]}…"
