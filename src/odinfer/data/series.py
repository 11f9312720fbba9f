"""Check and sort times and observations of one experiment; merge replicates by a policy."""

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from odinfer.checks import checked_positive
from odinfer.errors import InputError, InputWarning, nearest

_ROUNDING = 8 * np.finfo(float).eps  # relative difference of times that are meant to be equal
_REPLICATE_SPACING = 1e-10  # of the time span: how far apart replicates are put, too little for any solution to change
_LEAST_RELATIVE_SPAN = 2e-11  # of the largest time: a shorter span is known to less than five digits
_LEAST_SD = 1e-100  # and its inverse the largest, so that squares are numbers
Names = Sequence[str]
Series = tuple[np.ndarray, np.ndarray]  # times and values

warn = partial(warnings.warn, category=InputWarning, stacklevel=2)


def checked_series(t: ArrayLike, y: ArrayLike, names: Names, what: str, where: str) -> Series:
    """Times (N,) and values (N, K), finite or missing."""
    label = "y" if what == "state" else f"input {quoted(*names)}"
    t, y = _array(t, f"{where}t"), _array(y, f"{where}{label}")
    y = y[:, None] if y.ndim == 1 and len(names) == 1 else y
    if t.ndim != 1 or y.shape != (len(t), len(names)):
        expected = f"(N,) and (N, {len(names)}), with a row per time and a column per {what}"
        raise InputError(f"{where}t has shape {t.shape} and {label} {y.shape}; expected {expected}")
    for row in np.flatnonzero(~np.isfinite(t)):
        raise InputError(f"{where}t is {t[row]} in row {row}; each time must be a finite number")
    for row, k in np.argwhere(np.isinf(y)):
        raise InputError(f"{where}{what} {quoted(names[k])} is infinite in row {row}; NaN = not observed")
    return t, y


def _per_observation(given: Any, y: np.ndarray, states: Names, what: str, where: str) -> np.ndarray | None:
    """What is known of each observation, in the shape of y (N, K) and NaN where y is; None if that is nothing."""
    if given is None:
        return None
    if isinstance(given, Mapping):
        for state in given:
            if state not in states:
                raise InputError(f"{where}{what}: there are no data of {quoted(state)}{nearest(str(state), states)}")
        columns = {state: _array(column, f"{where}{what} of {quoted(state)}") for state, column in given.items()}
        shapes = {column.shape for column in columns.values()} - {y.shape[:1]}
        array = y if shapes else np.column_stack([columns.get(state, np.full(len(y), np.nan)) for state in states])
    else:
        array = _array(given, f"{where}{what}")
        array = array[:, None] if array.ndim == 1 and len(states) == 1 else array
        shapes = {array.shape} - {y.shape}
    for shape in shapes:
        raise InputError(f"{where}{what} has shape {shape} where y has {y.shape}; give a value per observation")
    array = np.where(np.isnan(y), np.nan, array)
    return None if np.isnan(array).all() else array


def checked_sd(given: Any, y: np.ndarray, states: Names, where: str) -> np.ndarray | None:
    sd = _per_observation(given, y, states, "sd", where)
    if sd is not None:
        for row, k in np.argwhere(invalid_sd(sd)):
            checked_positive(f"{where}sd of {quoted(states[k])} in row {row}", sd[row, k].item())
    return sd


def invalid_sd(values: np.ndarray) -> np.ndarray:
    """Which of some numbers cannot be a standard deviation; NaN = not known is right."""
    return np.asarray((values < _LEAST_SD) | (values > 1 / _LEAST_SD))


def checked_limit(given: Any, y: np.ndarray, states: Names, where: str) -> np.ndarray | None:
    limit = _per_observation(given, y, states, "limit", where)
    if limit is None:
        return None
    limit[np.isnan(limit)] = 0
    for row, k in np.argwhere(~np.isin(limit, (-1, 0, 1))):
        limit_text = f"limit of {quoted(states[k])} in row {row} is {limit[row, k]:g}"
        raise InputError(f"{where}{limit_text}; it is -1 (the true value is below y), 0 (it is y) or 1 (above)")
    return limit.astype(np.int8) if limit.any() else None


def merge_rows(
    t: np.ndarray,
    y: np.ndarray,
    names: Names,
    what: str,
    where: str,
    replicates: str,
    sd: np.ndarray | None = None,
    limit: np.ndarray | None = None,
) -> tuple[Any, Any, Any, Any]:
    """All four with a row per time: rows with different columns merge, replicates by policy."""
    times, row_of = _distinct_times(t, where)
    seen = ~np.isnan(y)
    again = np.stack([_repeat_numbers(row_of, column) for column in seen.T], axis=1)
    rows = np.broadcast_to(row_of[:, None], y.shape)
    for name, column in zip(names, seen.T, strict=True):
        if (np.diff(row_of[column]) < 0).any():  # per column: a long file goes through the times once for each
            warn(f"{where}the times of {what} {quoted(name)} are not increasing; they were sorted")
    if what == "state" and replicates == "keep" and again.any():
        times, rows = _separate_replicates(times, rows, again, where)
        kept = quoted(*(name for name, column in zip(names, again.T, strict=True) if column.any()))
        words = "are taken as independent observations of one time course"
        warn(f"{where}several values of {kept} at one time {words}; mark several time courses by a column 'experiment'")
        again = np.zeros_like(again)
    at = np.nonzero(seen)

    def placed(values: np.ndarray | None, empty: float) -> np.ndarray | None:
        if values is None:
            return None
        array = np.full((len(times), len(names)), empty, values.dtype)
        array[rows[at], at[1]] = values[at]
        return array

    wide, sd, limit = placed(y, np.nan), placed(sd, np.nan), placed(limit, 0)
    assert wide is not None
    for k, name in enumerate(names):
        for at_row, values in _repeated_values(row_of[seen[:, k]], y[seen[:, k], k]) if again[:, k].any() else ():
            if what == "input" and (values == values[0]).all():
                continue  # rows that share a time repeat what is known
            if replicates != "mean":
                several = f"{where}{what} {quoted(name)} has {len(values)} values at time {times[at_row]:g}"
                raise InputError(f'{several}; to average: replicates="mean" or --replicates mean')
            wide[at_row, k] = math.fsum(values / len(values))  # no overflow, and any order of rows gives the same
    return select_rows(~np.isnan(wide).all(axis=1), times, wide, sd, limit)


def _distinct_times(t: np.ndarray, where: str) -> tuple[np.ndarray, np.ndarray]:
    """The times in order, those that are equal up to rounding once, and the place of each given one."""
    times, row_of = np.unique(t, return_inverse=True)
    if len(times) < 2:
        return times, row_of
    with np.errstate(over="ignore"):  # a step of infinite length is a step
        if 0 < times[-1] - times[0] < _LEAST_RELATIVE_SPAN * np.abs(times).max():
            first, last = repr(float(times[0])), repr(float(times[-1]))
            raise InputError(
                f"{where}the times {first} to {last} differ in their last digits only; count from the first"
            )
        new = np.append(True, np.diff(times) > _ROUNDING * np.abs(times[1:]))
    return times[new], (np.cumsum(new) - 1)[row_of]


def _repeat_numbers(row_of: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """How many observations stand before each one at its own time (N,); 0 where nothing is seen."""
    at = np.flatnonzero(seen)
    order = at[np.argsort(row_of[at], kind="stable")]
    place, new = np.arange(len(order)), np.diff(row_of[order], prepend=-1) != 0
    again = np.zeros(len(seen), int)
    again[order] = place - np.maximum.accumulate(np.where(new, place, 0))
    return again


def _repeated_values(rows: np.ndarray, values: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Each row that has several values, with these."""
    order = np.argsort(rows, kind="stable")
    found, first, counts = np.unique(rows[order], return_index=True, return_counts=True)
    for i in np.flatnonzero(counts > 1):
        yield int(found[i]), values[order[first[i] : first[i] + counts[i]]]


def _separate_replicates(
    times: np.ndarray, rows: np.ndarray, again: np.ndarray, where: str
) -> tuple[np.ndarray, np.ndarray]:
    """Times such that each row has one value of a state, and the row of each value: repeats come just after.

    So near that a smoother need not know about replicates. Trajectories are read at one time for all (`nominal_times`).
    """
    most = again.max() + 1
    usual, least = _usual_spacing(times)
    step = _replicate_spacing(usual, np.diff(times), int(most))
    if len(times) < 2 or step < least:
        found = "all values are at one time" if len(times) < 2 else "times are very close"
        raise InputError(f'{where}{found}, so replicates cannot be kept; average them: replicates="mean"')
    keys, new = np.unique(rows * most + again, return_inverse=True)
    return times[keys // most] + step * (keys % most), new.reshape(rows.shape)


def _usual_spacing(t: np.ndarray) -> tuple[float, float]:
    """How far apart replicates are put among such times, and how far at least so that floats tell them apart."""
    least = 4 * _ROUNDING * float(np.abs(t).max())
    with np.errstate(over="ignore"):
        return max(_REPLICATE_SPACING * float(np.ptp(t)), least), least


def distinct_times(t: np.ndarray) -> np.ndarray:
    """The times of an experiment, those of replicates once."""
    return np.unique(nominal_times(t))


def nominal_times(t: np.ndarray) -> np.ndarray:
    """When things were observed (N,): the times of an experiment, replicates at one and the same.

    Replicates are told by their distances, which are all what they have been put apart by: times that grow by factors
    over many magnitudes can be as near to each other.
    """
    gaps = np.diff(t)
    if not len(gaps):
        return t
    usual, least = _usual_spacing(t)
    near = gaps <= 1.1 * gaps.min() + least
    new = np.append(True, ~near)
    group = np.cumsum(new) - 1
    step = _replicate_spacing(usual, gaps[~near], int(np.bincount(group).max()))
    if near.all() or not np.allclose(gaps[near], step, rtol=0.02, atol=least):
        return t
    return np.asarray(t[np.flatnonzero(new)[group]])


def _replicate_spacing(usual: float, gaps: np.ndarray, most: int) -> float:
    """By how much replicates are put apart, at most so many at a time, among times with such gaps."""
    return float(min(usual, np.min(gaps, initial=np.inf) / (100 * most)))


def select_rows(
    rows: Any, t: np.ndarray, y: np.ndarray, sd: np.ndarray | None, limit: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Some rows, read-only, of times and what was observed then; None where nothing is known beside."""
    sd = None if sd is None or np.isnan(sd[rows]).all() else sd[rows]
    limit = None if limit is None or not limit[rows].any() else limit[rows]
    found = t[rows], y[rows], sd, limit
    for array in found:
        if array is not None:
            array.flags.writeable = False
    return found


def checked_names(names: Iterable[str], what: str) -> tuple[str, ...]:
    """The names of columns, states, …; those of inputs may be none."""
    names = (names,) if isinstance(names, str) else tuple(names)
    if not names and what != "input":
        raise InputError(f"there is no {what}; give at least one")
    known: set[str] = set()
    for name in names:
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            raise InputError(f"{what} {quoted(name)} cannot be a name; use printable text")
        if name in known:
            raise InputError(f"{what} {quoted(name)} is there twice; rename or remove one")
        known.add(name)
    return names


def _array(value: Any, what: str) -> np.ndarray:
    try:
        array = np.asanyarray(value)
        if array.dtype.kind not in "biufO":  # astype would take text, dates and complex numbers
            raise TypeError
        return np.array(np.ma.filled(array.astype(np.float64), np.nan))  # masked = not observed
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{what} is not an array of numbers; use NaN if not observed") from None


def quoted(*texts: object) -> str:
    return ", ".join(repr(text if len(text) <= 40 else text[:39] + "…") for text in map(str, texts))[:300]
