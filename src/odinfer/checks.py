"""Checks of single values, each in one place, so that the same value is right or wrong everywhere."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from odinfer.errors import InputError, nearest


def is_whole(value: Any, least: int = 0) -> bool:
    """Whether a value is a whole number from `least` on: Python's or numpy's, but no truth value."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and int(value) >= least


def whole(what: str, value: Any, least: int = 0) -> int:
    """A whole number from `least` on, or an InputError."""
    if not is_whole(value, least):
        raise InputError(f"{what} must be a whole number from {least} on, not {value!r}")
    return int(value)


def number(what: str, value: Any, finite: bool = True) -> float:
    """A number that is not NaN, and finite if it has to be, or an InputError."""
    try:
        found = float(value)
    except (TypeError, ValueError):
        raise InputError(f"{what} must be a number, not {value!r}") from None
    if np.isnan(found) or (finite and np.isinf(found)):
        raise InputError(f"{what} must be a finite number, not {found}")
    return found


def choice(what: str, value: Any, choices: Iterable[str]) -> str:
    """One of the choices, or an InputError that names the nearest."""
    choices = list(choices)
    if value not in choices:
        raise InputError(f"unknown {what} '{value}'{nearest(str(value), choices)}")
    return str(value)


def interval(what: str, value: Any) -> tuple[float, float]:
    """A pair 0 < low < high, or an InputError."""
    try:
        low, high = map(float, value)
    except (TypeError, ValueError):
        low, high = 0.0, 0.0
    if not 0 < low < high:
        raise InputError(f"{what} must be a pair 0 < low < high, not {value!r}")
    return low, high
