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
        raise InputError(f"{what} must be a whole number from {least} on, not {_shown(value)}")
    return int(value)


def number(what: str, value: Any, finite: bool = True) -> float:
    """A number that is not NaN, and finite if it has to be, or an InputError; text is none."""
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        found = float(value)
    except OverflowError:
        found = float("inf")
    except (TypeError, ValueError):
        raise InputError(f"{what} must be a number, not {_shown(value)}") from None
    if np.isnan(found) or (finite and np.isinf(found)):
        raise InputError(f"{what} must be a finite number, not {found}")
    return found


def choice(what: str, value: Any, choices: Iterable[str]) -> str:
    """One of the choices, or an InputError that names the nearest."""
    choices = list(choices)
    if not isinstance(value, str) or value not in choices:
        raise InputError(f"unknown {what} {_shown(str(value))}{nearest(str(value), choices)}")
    return value


def interval(what: str, value: Any) -> tuple[float, float]:
    """A pair 0 < low < high, or an InputError."""
    try:
        low, high = (number(what, v, finite=False) for v in value)
    except (TypeError, ValueError):
        low, high = 0.0, 0.0
    if not 0 < low < high:
        raise InputError(f"{what} must be a pair 0 < low < high, not {_shown(value)}")
    return low, high


def _shown(value: Any) -> str:
    """A value in a message: on one line, and not too long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:79]}…"
