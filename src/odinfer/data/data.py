"""`Data` and `Experiment`: times, observations (NaN = missing), standard deviations, inputs and doses."""

import functools
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from odinfer.data.dose import Dose, checked_doses
from odinfer.data.series import (
    Names,
    Series,
    checked_limit,
    checked_names,
    checked_sd,
    checked_series,
    merge_rows,
    nominal_times,
    quoted,
    select_rows,
    warn,
)
from odinfer.errors import InputError, nearest

FEWEST_OBSERVATIONS = 4  # observations of a state, below which no smoother can tell signal from noise
REPLICATES = ("keep", "mean", "error")
_MISSING_CODES = (
    -99.0,
    -999.0,
    -9999.0,
    -99999.0,
    999.0,
    9999.0,
    99999.0,
)  # what people write where nothing was observed
_FAR_RANGES = 3.0  # times the range of all other values: how far such a number is from them if it is no value


@dataclass(frozen=True, eq=False)
class Experiment:
    """One time course as `Data` makes it: checked, sorted, read-only.

    Attributes:
        name: tells it from others; "1" if it is the only one.
        t: times (N,), strictly increasing.
        y: observations (N, K), NaN = not observed; no row is all NaN.
        u: known inputs: name → times (M,), strictly increasing, and values (M,), linear in between.
        sd: known standard deviation of each observation (N, K), NaN = not known.
        limit: (N, K) of int8: the true value lies below y (-1) or above y (1), or is y itself (0).
        doses: in the order of their times, which may lie outside of t.
        covariates: what is known of the subject as a whole: column → number or label.
    """

    name: str
    t: np.ndarray
    y: np.ndarray
    u: dict[str, Series]
    sd: np.ndarray | None = None
    limit: np.ndarray | None = None
    doses: tuple[Dose, ...] = ()
    covariates: Mapping[str, float | str] = field(default_factory=dict)

    @functools.cached_property
    def moments(self) -> np.ndarray:
        """When trajectories are read (N,): the times, but one for all replicates."""
        return nominal_times(self.t)


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
            times are put 1e-10 of the time span apart, and trajectories are read at one), are replaced by their "mean",
            or are an "error".
        sd: known standard deviations of the observations, an array like `y` or state -> array; NaN = not known.
        limit: an array like `y`, or state -> array: -1 where the true value lies below `y`, which is then the limit of
            detection, 1 where it lies above, 0 where `y` itself was observed.
        doses: a list of `Dose`, or of tuples (time, amount) or (time, amount, state).

    Raises:
        InputError: if the arrays do not fit together or nothing is observed.

    Example:
        >>> import numpy as np
        >>> import odinfer as od
        >>> od.Data([0, 1, 2], [[5.0, 3.0], [np.nan, 2.1], [2.6, 1.4]], states=["prey", "predator"])
        <Data: 1 experiment(s); observations: prey (2), predator (3); inputs: none>
    """

    states: tuple[str, ...]
    experiments: tuple[Experiment, ...]
    labels: Mapping[str, str]  # name, or "time" → its header in the table, where that is another
    beginning: bool = False  # the first rows only of what was observed, in which some states may be seen hardly or not

    def __init__(
        self,
        t: ArrayLike,
        y: ArrayLike,
        states: Names,
        inputs: Mapping[str, Any] | None = None,
        name: str = "1",
        replicates: str = "keep",
        sd: ArrayLike | Mapping[str, ArrayLike] | None = None,
        limit: ArrayLike | Mapping[str, ArrayLike] | None = None,
        doses: Iterable[Dose | tuple[Any, ...]] = (),
    ) -> None:
        states = checked_names(states, "state")
        only = make_experiment(name, t, y, states, inputs or {}, replicates, sd, limit, doses)
        self.__dict__.update(states=states, experiments=tuple(checked_experiments(states, [only])), labels={})

    def _with(self, experiments: Iterable[Experiment], **changes: Any) -> "Data":
        """The same but for the experiments, and for what else is to change."""
        new = object.__new__(Data)
        new.__dict__.update(self.__dict__, experiments=tuple(experiments), **changes)
        return new

    @classmethod
    def from_experiments(
        cls, states: Names, experiments: Sequence[Experiment], labels: Mapping[str, str] | None = None
    ) -> "Data":
        """From experiments that are checked one by one, after the checks that need all of them."""
        new = object.__new__(cls)
        found = tuple(checked_experiments(states, experiments))
        new.__dict__.update(states=tuple(states), experiments=found, labels=dict(labels or {}))
        return new

    @classmethod
    def join(cls, parts: Mapping[str, "Data"]) -> "Data":
        """Several experiments as one: name -> `Data`, with the same states, in any order, and inputs."""
        states = next((part.states for part in parts.values()), ())
        experiments: list[Experiment] = []
        for name, part in parts.items():
            if set(part.states) != set(states):
                raise InputError(f"experiment {quoted(name)} has not just {quoted(*states)}; select() these")
            new = part.select(states).experiments
            experiments += [replace(e, name=f"{name}/{e.name}" if len(new) > 1 else name) for e in new]
        return cls.from_experiments(states, experiments)

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
                raise InputError(f"there are no data of {quoted(state)}{nearest(state, self.states)[:300]}")
        columns = [at[state] for state in states]
        kept = (_subset(e, ~np.isnan(e.y[:, columns]).all(axis=1), columns) for e in self.experiments)
        return self._with((e for e in kept if len(e.t)), states=states)

    def only(self, experiment: str) -> "Data":
        """One experiment of several."""
        found = [e for e in self.experiments if e.name == experiment]
        if not found:
            choices = nearest(str(experiment), [e.name for e in self.experiments])[:300]
            raise InputError(f"there is no experiment {quoted(str(experiment))}{choices}")
        return self._with(found)

    def with_observations(self, y: Sequence[np.ndarray]) -> "Data":
        """The same design with other observations: one (N, K) array per experiment, missing where these are.

        What was beyond a limit of detection has that limit again: another value beyond it is not seen either.
        """
        pairs = zip(self.experiments, y, strict=True)
        return self._with(_replace_observations(e, np.where(np.isnan(e.y), np.nan, values)) for e, values in pairs)

    def with_rows(self, rows: Sequence[np.ndarray]) -> "Data":
        """Only some rows of each experiment, given as one truth value per time."""
        kept = [_subset(e, r) for e, r in zip(self.experiments, rows, strict=True)]
        return self._with(checked_experiments(self.states, kept))

    def first(self, share: float) -> "Data":
        """The first rows of each experiment, at least two of them where there are so many."""
        rows = (slice(max(2, math.ceil(share * len(e.t)))) for e in self.experiments)
        return self._with((_subset(e, r) for e, r in zip(self.experiments, rows, strict=True)), beginning=True)

    def with_inputs(self, inputs: Mapping[str, Mapping[str, Series]]) -> "Data":
        """With further known inputs: experiment -> input -> (times, values)."""
        return self._with(replace(e, u={**inputs[e.name], **e.u}) for e in self.experiments)

    def with_covariates(self, covariates: Mapping[str, Mapping[str, float | str]]) -> "Data":
        """With what is known of each experiment as a whole: experiment -> column -> number or label."""
        return self._with(
            replace(e, covariates={**e.covariates, **covariates.get(e.name, {})}) for e in self.experiments
        )

    def __repr__(self) -> str:
        observed = ", ".join(f"{state} ({self.n_observed(state)})" for state in self.states)
        inputs = ", ".join(self.inputs) or "none"
        return f"<Data: {len(self.experiments)} experiment(s); observations: {observed}; inputs: {inputs}>"


def split_windows(data: Data, gaps: int) -> tuple[Data, np.ndarray]:
    """Every experiment cut into windows of about so many gaps between times, as experiments of their own, and the rows
    in which they begin, counted over all experiments; what was observed where two windows meet belongs to both."""
    cut, firsts, before = [], [], 0
    for e in data.experiments:
        last = len(e.t) - 1
        ends = np.unique(np.linspace(0, last, max(1, round(last / gaps)) + 1).round().astype(int))
        for i, (a, b) in enumerate(itertools.pairwise(ends)):
            cut.append(replace(_subset(e, slice(a, b + 1)), name=f"{e.name}/{i}"))
            firsts.append(before + a)
        before += len(e.t)
    return data._with(cut, beginning=True), np.array(firsts)


def make_experiment(
    name: str,
    t: ArrayLike,
    y: ArrayLike,
    states: Names,
    inputs: Mapping[str, Any],
    replicates: str,
    sd: Any = None,
    limit: Any = None,
    doses: Iterable[Any] = (),
) -> Experiment:
    """Check, sort and freeze; the experiment may come out empty."""
    if replicates not in REPLICATES:
        raise InputError(f"unknown replicates {quoted(replicates)}{nearest(str(replicates), REPLICATES)}")
    where = f"experiment {quoted(name)}: "
    y_times, values = checked_series(t, y, states, "state", where)
    sd, limit = checked_sd(sd, values, states, where), checked_limit(limit, values, states, where)
    if replicates == "mean" and not (sd is None and limit is None):
        known = "limits of detection" if sd is None else "standard deviations by row"
        raise InputError(f'{where}replicates with {known} cannot be averaged; keep them: replicates="keep"')
    y_times, values, sd, limit = merge_rows(y_times, values, states, "state", where, replicates, sd, limit)
    u = {}
    for key, given in inputs.items():
        if key in states:
            raise InputError(f"{quoted(key)} is both a state and an input; rename one of them")
        times, given = given if isinstance(given, tuple) and len(given) == 2 else (t, given)
        own = checked_names([key], "input")
        times, given, *_ = merge_rows(
            *checked_series(times, given, own, "input", where), own, "input", where, replicates
        )
        if not len(times):
            raise InputError(f"{where}input {quoted(key)} has no values; give at least one")
        u[key] = (times, given[:, 0])
    return Experiment(name, y_times, values, u, sd, limit, checked_doses(doses, where))


def _subset(e: Experiment, rows: Any, columns: Any = slice(None)) -> Experiment:
    """Some rows and columns of an experiment."""
    y, sd, limit = (None if a is None else np.ascontiguousarray(a[:, columns]) for a in (e.y, e.sd, e.limit))
    assert y is not None
    t, y, sd, limit = select_rows(rows, e.t, y, sd, limit)
    return replace(e, t=t, y=y, sd=sd, limit=limit)


def _replace_observations(e: Experiment, y: np.ndarray) -> Experiment:
    if e.limit is None:
        return replace(e, y=y)
    beyond = (e.limit != 0) & (e.limit * y >= e.limit * e.y)
    limit = np.where(beyond, e.limit, 0).astype(np.int8)
    return replace(e, y=np.where(beyond, e.y, y), limit=limit if beyond.any() else None)


def checked_experiments(states: Names, experiments: Sequence[Experiment]) -> list[Experiment]:
    """The experiments in which something is observed, after the checks that need all of them."""
    checked_names([e.name for e in experiments], "experiment")
    kept = [e for e in experiments if len(e.t)]
    if not kept:
        raise InputError("nothing is observed: all values are missing")
    if len(kept) < len(experiments):
        warn(f"left out, as nothing is observed: {quoted(*(e.name for e in experiments if not len(e.t)))}")
    for e in kept:
        if set(e.u) != set(kept[0].u):
            raise InputError(f"{quoted(kept[0].name, e.name)} differ in their inputs; give both the same")
    itself = np.concatenate([e.y if e.limit is None else np.where(e.limit, np.nan, e.y) for e in kept])
    for state, column in zip(states, itself.T, strict=True):
        values, name = column[~np.isnan(column)], quoted(state)
        if len(values) > 1 and (values == values[0]).all():
            warn(f"state {name} is constant: each observation is {values[0]:g}")
        _warn_of_codes(f"state {name}", values)
    for key in kept[0].u:
        _warn_of_codes(f"input {quoted(key)}", np.concatenate([e.u[key][1] for e in kept]))
    return kept


def check_counts(data: Data) -> None:
    """Refuse data that do not show enough of each state for a smoother."""
    counts = sum(((~np.isnan(e.y)).sum(axis=0) for e in data.experiments), np.zeros(len(data.states), int))
    for state, count in zip(data.states, counts.tolist(), strict=True):
        if data.beginning or count >= FEWEST_OBSERVATIONS:
            continue
        raise InputError(f"state {quoted(state)} has too few observations: {count}; {FEWEST_OBSERVATIONS} are needed")


def _warn_of_codes(what: str, values: np.ndarray) -> None:
    """Warn of numbers such as -999 that are far from everything else."""
    codes = np.isin(values, _MISSING_CODES)
    if not codes.any() or codes.all():
        return
    low, high = float(values[~codes].min()), float(values[~codes].max())  # Python's, which overflow in silence
    for code in np.unique(values[codes]).tolist():
        if max(low - code, code - high) > _FAR_RANGES * (high - low) or code < 0 <= low:
            times = f"{(values == code).sum()} time{'s' if (values == code).sum() > 1 else ''}"
            warn(f"{what} is {code:g} {times}, far from its other values; if that means missing, leave these empty")
