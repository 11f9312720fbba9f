"""Data: experiments with their times, observations (NaN = not observed) and known inputs."""

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from odinfer.errors import InputError, InputWarning, nearest

FEWEST = 4  # observations of a state, below which no smoother can tell signal from noise
REPLICATES = ("error", "mean")
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
        replicates: several values of a state at one time are an "error", or replaced by their "mean".

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
        replicates: str = "error",
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
    times, row_of = np.unique(t, return_inverse=True)
    merged = np.full((len(times), len(names)), np.nan)
    for k, name in enumerate(names):
        seen = ~np.isnan(y[:, k])
        rows, values = row_of[seen], y[seen, k]
        merged[rows, k] = values
        for row in np.flatnonzero(np.bincount(rows) > 1):
            same = values[rows == row]
            if what == "input" and (same == same[0]).all():
                continue  # rows that share a time repeat what is known
            if replicates == "error":
                found = f"{where}{what} {short(name)} has {len(same)} values at time {times[row]:g}"
                raise InputError(f'{found}; to average: replicates="mean" or --replicates mean')
            merged[row, k] = math.fsum(same / len(same))  # no overflow, and any order of rows gives the same
        if (rows[1:] < rows[:-1]).any():  # per column: a long file goes through the times once for each
            warn(f"{where}the times of {what} {short(name)} are not increasing; they were sorted")
    return _observed(times, merged)


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
        if len(values) < FEWEST:
            raise InputError(f"state {name} has too few observations: {len(values)}; {FEWEST} are needed")
        if (values == values[0]).all():
            warn(f"state {name} is constant: each observation is {values[0]:g}")
    return kept


def checked_names(names: Iterable[str], what: str) -> tuple[str, ...]:
    names = (names,) if isinstance(names, str) else tuple(names)
    if not names and what != "input":
        raise InputError(f"there is no {what}; give at least one")
    for i, name in enumerate(names):
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            raise InputError(f"{what} {short(name)} cannot be a name; use printable text")
        if name in names[:i]:
            raise InputError(f"{what} {short(name)} is there twice; rename or remove one")
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
