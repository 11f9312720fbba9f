"""Data: experiments with their times, observations (NaN = not observed) and known inputs."""

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from odinfer.errors import InputError, InputWarning, nearest

FEWEST = 4  # observations of a state, below which no smoother can tell signal from noise
REPLICATES = ("keep", "mean", "error")
_ROUNDING = 8 * np.finfo(float).eps  # relative difference of times that are meant to be equal
_ASIDE = 1e-10  # of the time span: how far apart replicates are put, too little for any solution to change
_OFFSET = 2e-11  # of the largest time: a shorter span is known to less than five digits
_CODES = (-99.0, -999.0, -9999.0, -99999.0, 999.0, 9999.0, 99999.0)  # what people write where nothing was observed
_FAR = 3.0  # times the range of all other values: how far such a number is from them if it is no value
Names = Sequence[str]
Series = tuple[np.ndarray, np.ndarray]  # times and values

warn = partial(warnings.warn, category=InputWarning, stacklevel=2)


@dataclass(frozen=True, eq=False)
class Experiment:
    """One time course as `Data` makes it: checked, sorted, read-only."""

    name: str
    t: np.ndarray  # (N,), strictly increasing
    y: np.ndarray  # (N, K), NaN = not observed; no row is all NaN
    u: dict[str, Series]  # known inputs, (M,) and (M,), times strictly increasing, linear in between


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Data:
    """Noisy observations of the states in one or several experiments.

    Args:
        t: times, shape (N,); sorted if need be, with a warning.
        y: observations, shape (N, K), or (N,) if K = 1; NaN = not observed.
        states: the names of the K columns of `y`.
        inputs: known inputs: name -> values on `t`, shape (N,), or a tuple (times, values).
        name: the name of the experiment.
        replicates: several values of a state at one time are independent observations to "keep" (with a warning; their
            times are put 1e-10 of the time span apart), are replaced by their "mean", or are an "error".

    Raises:
        InputError: if the arrays do not fit together or a state has fewer than 4 observations.
    """

    states: tuple[str, ...]
    experiments: tuple[Experiment, ...]

    def __init__(
        self,
        t: ArrayLike,
        y: ArrayLike,
        states: Names,
        inputs: Mapping[str, Any] | None = None,
        name: str = "1",
        replicates: str = "keep",
    ) -> None:
        states = checked_names(states, "state")
        self._set(states, checked_experiments(states, [experiment_of(name, t, y, states, inputs or {}, replicates)]))

    def _set(self, states: Names, experiments: Iterable[Experiment]) -> "Data":
        self.__dict__.update(states=tuple(states), experiments=tuple(experiments))
        return self

    @classmethod
    def of_experiments(cls, states: Names, experiments: Sequence[Experiment]) -> "Data":
        """From experiments that are checked one by one, after the checks that need all of them."""
        return object.__new__(cls)._set(states, checked_experiments(states, experiments))

    @classmethod
    def join(cls, parts: Mapping[str, "Data"]) -> "Data":
        """Several experiments as one: name -> `Data`, with the same states, in any order, and inputs."""
        states = next((part.states for part in parts.values()), ())
        experiments: list[Experiment] = []
        for name, part in parts.items():
            if set(part.states) != set(states):
                raise InputError(f"experiment {short(name)} has not just {short(*states)}; select() these")
            new = part.select(states).experiments
            experiments += [replace(e, name=f"{name}/{e.name}" if len(new) > 1 else name) for e in new]
        return cls.of_experiments(states, experiments)

    @property
    def t(self) -> np.ndarray:
        """Times of the first experiment, shape (N,)."""
        return self.experiments[0].t

    @property
    def y(self) -> np.ndarray:
        """Observations of the first experiment, shape (N, K)."""
        return self.experiments[0].y

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the known inputs, the same in each experiment."""
        return tuple(self.experiments[0].u)

    def n_observed(self, state: str) -> int:
        """The number of observations of `state` over all experiments."""
        return sum(len(e.t) for e in self.select([state]).experiments)

    def select(self, states: Names) -> "Data":
        """These states only, in this order, without the rows and experiments that observe none of them."""
        states = checked_names(states, "state")
        at = {state: i for i, state in enumerate(self.states)}
        for state in states:
            if state not in at:
                raise InputError(f"there are no data of {short(state)}{nearest(state, self.states)[:300]}")
        columns = [at[state] for state in states]
        picked = [(e, *_observed(e.t, e.y[:, columns])) for e in self.experiments]
        return object.__new__(Data)._set(states, [replace(e, t=t, y=y) for e, t, y in picked if len(t)])

    def observing(self, y: Sequence[np.ndarray]) -> "Data":
        """The same design with other observations: one (N, K) array per experiment, missing where these are."""
        pairs = zip(self.experiments, y, strict=True)
        return object.__new__(Data)._set(
            self.states, [replace(e, y=np.where(np.isnan(e.y), np.nan, values)) for e, values in pairs]
        )

    def keeping(self, rows: Sequence[np.ndarray]) -> "Data":
        """Only some rows of each experiment, given as one truth value per time."""
        kept = [replace(e, t=e.t[r], y=e.y[r]) for e, r in zip(self.experiments, rows, strict=True)]
        return object.__new__(Data)._set(self.states, checked_experiments(self.states, kept))

    def first(self, share: float) -> "Data":
        """The first rows of each experiment, at least two of them where there are so many."""
        rows = [max(2, math.ceil(share * len(e.t))) for e in self.experiments]
        kept = [replace(e, t=e.t[:n], y=e.y[:n]) for e, n in zip(self.experiments, rows, strict=True)]
        return object.__new__(Data)._set(self.states, kept)

    def driven_by(self, inputs: Mapping[str, Mapping[str, Series]]) -> "Data":
        """With further known inputs: experiment -> input -> (times, values)."""
        return object.__new__(Data)._set(
            self.states, [replace(e, u={**inputs[e.name], **e.u}) for e in self.experiments]
        )

    def __repr__(self) -> str:
        observed = ", ".join(f"{state} ({self.n_observed(state)})" for state in self.states)
        inputs = ", ".join(self.inputs) or "none"
        return f"<Data: {len(self.experiments)} experiment(s); observations: {observed}; inputs: {inputs}>"


def experiment_of(
    name: str, t: ArrayLike, y: ArrayLike, states: Names, inputs: Mapping[str, Any], replicates: str
) -> Experiment:
    """Check, sort and freeze; the experiment may come out empty."""
    if replicates not in REPLICATES:
        raise InputError(f"unknown replicates {short(replicates)}{nearest(str(replicates), REPLICATES)}")
    where = f"experiment {short(name)}: "
    y_times, y = _series(t, y, states, "state", where, replicates)
    u = {}
    for key, given in inputs.items():
        if key in states:
            raise InputError(f"{short(key)} is both a state and an input; rename one of them")
        times, values = given if isinstance(given, tuple) and len(given) == 2 else (t, given)
        times, values = _series(times, values, checked_names([key], "input"), "input", where, replicates)
        if not len(times):
            raise InputError(f"{where}input {short(key)} has no values; give at least one")
        u[key] = (times, values[:, 0])
    return Experiment(name, y_times, y, u)


def _series(t: ArrayLike, y: ArrayLike, names: Names, what: str, where: str, replicates: str) -> Series:
    """Checked times and values, a row per time: rows with different columns merge, replicates by policy."""
    label = "y" if what == "state" else f"input {short(*names)}"
    t, y = _array(t, f"{where}t"), _array(y, f"{where}{label}")
    y = y[:, None] if y.ndim == 1 and len(names) == 1 else y
    if t.ndim != 1 or y.shape != (len(t), len(names)):
        expected = f"(N,) and (N, {len(names)}), with a row per time and a column per {what}"
        raise InputError(f"{where}t has shape {t.shape} and {label} {y.shape}; expected {expected}")
    for row in np.flatnonzero(~np.isfinite(t)):
        raise InputError(f"{where}t is {t[row]} in row {row}; each time must be a finite number")
    for row, k in np.argwhere(np.isinf(y)):
        raise InputError(f"{where}{what} {short(names[k])} is infinite in row {row}; NaN = not observed")
    times, row_of = _distinct(t, where)
    seen = ~np.isnan(y)
    again = np.stack([_repeats(row_of, column) for column in seen.T], axis=1)
    rows = np.broadcast_to(row_of[:, None], y.shape)
    for name, column in zip(names, seen.T, strict=True):
        if (np.diff(row_of[column]) < 0).any():  # per column: a long file goes through the times once for each
            warn(f"{where}the times of {what} {short(name)} are not increasing; they were sorted")
    if what == "state" and replicates == "keep" and again.any():
        times, rows = _apart(times, rows, again, where)
        kept = short(*(name for name, column in zip(names, again.T, strict=True) if column.any()))
        words = "are taken as independent observations of one time course"
        warn(f"{where}several values of {kept} at one time {words}; mark several time courses by a column 'experiment'")
        again = np.zeros_like(again)
    merged = np.full((len(times), len(names)), np.nan)
    at = np.nonzero(seen)
    merged[rows[at], at[1]] = y[at]
    for k, name in enumerate(names):
        for at_row, values in _repeated(row_of[seen[:, k]], y[seen[:, k], k]) if again[:, k].any() else ():
            if what == "input" and (values == values[0]).all():
                continue  # rows that share a time repeat what is known
            if replicates != "mean":
                several = f"{where}{what} {short(name)} has {len(values)} values at time {times[at_row]:g}"
                raise InputError(f'{several}; to average: replicates="mean" or --replicates mean')
            merged[at_row, k] = math.fsum(values / len(values))  # no overflow, and any order of rows gives the same
    return _observed(times, merged)


def _distinct(t: np.ndarray, where: str) -> tuple[np.ndarray, np.ndarray]:
    """The times in order, those that are equal up to rounding once, and the place of each given one."""
    times, row_of = np.unique(t, return_inverse=True)
    if len(times) < 2:
        return times, row_of
    with np.errstate(over="ignore"):  # a step of infinite length is a step
        if 0 < times[-1] - times[0] < _OFFSET * np.abs(times).max():
            first, last = repr(float(times[0])), repr(float(times[-1]))
            raise InputError(
                f"{where}the times {first} to {last} differ in their last digits only; count from the first"
            )
        new = np.append(True, np.diff(times) > _ROUNDING * np.abs(times[1:]))
    return times[new], (np.cumsum(new) - 1)[row_of]


def _repeats(row_of: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """How many observations stand before each one at its own time (N,); 0 where nothing is seen."""
    at = np.flatnonzero(seen)
    order = at[np.argsort(row_of[at], kind="stable")]
    place, new = np.arange(len(order)), np.diff(row_of[order], prepend=-1) != 0
    again = np.zeros(len(seen), int)
    again[order] = place - np.maximum.accumulate(np.where(new, place, 0))
    return again


def _repeated(rows: np.ndarray, values: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Each row that has several values, with these."""
    order = np.argsort(rows, kind="stable")
    found, first, counts = np.unique(rows[order], return_index=True, return_counts=True)
    for i in np.flatnonzero(counts > 1):
        yield int(found[i]), values[order[first[i] : first[i] + counts[i]]]


def _apart(times: np.ndarray, rows: np.ndarray, again: np.ndarray, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Times such that each row has one value of a state, and the row of each value: repeats come just after.

    So near that it makes no difference to any solution, and what comes later need not know about replicates.
    """
    most = again.max() + 1
    usual, least = _step_aside(times)
    with np.errstate(over="ignore"):
        step = min(usual, np.diff(times, append=np.inf).min() / (100 * most))
    if len(times) < 2 or step < least:
        found = "all values are at one time" if len(times) < 2 else "times are very close"
        raise InputError(f'{where}{found}, so replicates cannot be kept; average them: replicates="mean"')
    keys, new = np.unique(rows * most + again, return_inverse=True)
    return times[keys // most] + step * (keys % most), new.reshape(rows.shape)


def _step_aside(t: np.ndarray) -> tuple[float, float]:
    """How far apart replicates are put among such times, and how far at least so that floats tell them apart."""
    least = 4 * _ROUNDING * float(np.abs(t).max())
    with np.errstate(over="ignore"):
        return max(_ASIDE * float(np.ptp(t)), least), least


def distinct_times(t: np.ndarray) -> np.ndarray:
    """The times of an experiment, those of replicates once."""
    return np.asarray(t[np.append(True, np.diff(t) > 2 * _step_aside(t)[0])])


def _observed(t: np.ndarray, y: np.ndarray) -> Series:
    """Read-only copies of the rows in which something is observed."""
    rows = ~np.isnan(y).all(axis=1)
    t, y = t[rows], np.ascontiguousarray(y[rows])
    t.flags.writeable = y.flags.writeable = False
    return t, y


def checked_experiments(states: Names, experiments: Sequence[Experiment]) -> list[Experiment]:
    """The experiments in which something is observed, after the checks that need all of them."""
    checked_names([e.name for e in experiments], "experiment")
    kept = [e for e in experiments if len(e.t)]
    if not kept:
        raise InputError("nothing is observed: all values are missing")
    if len(kept) < len(experiments):
        warn(f"left out, as nothing is observed: {short(*(e.name for e in experiments if not len(e.t)))}")
    for e in kept:
        if set(e.u) != set(kept[0].u):
            raise InputError(f"{short(kept[0].name, e.name)} differ in their inputs; give both the same")
    for state, column in zip(states, np.concatenate([e.y for e in kept]).T, strict=True):
        values, name = column[~np.isnan(column)], short(state)
        if len(values) == 0:
            raise InputError(f"state {name} is never observed; unobserved states are not supported yet")
        check_count(state, len(values))
        if (values == values[0]).all():
            warn(f"state {name} is constant: each observation is {values[0]:g}")
        _warn_of_codes(f"state {name}", values)
    for key in kept[0].u:
        _warn_of_codes(f"input {short(key)}", np.concatenate([e.u[key][1] for e in kept]))
    return kept


def check_count(state: str, count: int) -> None:
    """Refuse a state of which there are observations, but too few."""
    if 0 < count < FEWEST:
        raise InputError(f"state {short(state)} has too few observations: {count}; {FEWEST} are needed")


def _warn_of_codes(what: str, values: np.ndarray) -> None:
    """Warn of numbers such as -999 that are far from everything else."""
    codes = np.isin(values, _CODES)
    if not codes.any() or codes.all():
        return
    low, high = float(values[~codes].min()), float(values[~codes].max())  # Python's, which overflow in silence
    for code in np.unique(values[codes]).tolist():
        if max(low - code, code - high) > _FAR * (high - low) or code < 0 <= low:
            times = f"{(values == code).sum()} time{'s' if (values == code).sum() > 1 else ''}"
            warn(f"{what} is {code:g} {times}, far from its other values; if that means missing, leave these empty")


def checked_names(names: Iterable[str], what: str) -> tuple[str, ...]:
    """The names of columns, states, …; those of inputs may be none."""
    names = (names,) if isinstance(names, str) else tuple(names)
    if not names and what != "input":
        raise InputError(f"there is no {what}; give at least one")
    known: set[str] = set()
    for name in names:
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            raise InputError(f"{what} {short(name)} cannot be a name; use printable text")
        if name in known:
            raise InputError(f"{what} {short(name)} is there twice; rename or remove one")
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


def short(*texts: object) -> str:
    return ", ".join(repr(text if len(text) <= 40 else text[:39] + "…") for text in map(str, texts))[:300]
