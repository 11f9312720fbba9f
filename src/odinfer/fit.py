"""Fit: what every method returns, as plain data; and `fit`, the one entry point."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odinfer.data import Data
from odinfer.errors import InputError, nearest
from odinfer.model import Model
from odinfer.problem import Problem

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

CONSISTENT, CONTRADICTS, NOT_JUDGED = "consistent", "contradicts the data", "not judged"
_BAND = 1.959963984540054  # 95 % of a normal distribution


class Progress(Protocol):
    """Told about each step of a fit: what it is, and the share of the work that is done."""

    def __call__(self, what: str, share: float) -> None: ...


class Method(Protocol):
    """A way to infer: options are fields of a frozen dataclass."""

    @property
    def name(self) -> str: ...

    def fit(self, problem: Problem, seed: int = 0, progress: Progress | None = None) -> Fit: ...


@dataclass(frozen=True, eq=False)
class Curve:
    """States of one experiment over time: t (D,), x, slope and standard deviation sd of x, each (D, K)."""

    t: Array
    x: Array
    slope: Array
    sd: Array

    def at(self, t: Array) -> tuple[Array, Array, Array]:
        """x, slope and sd (N, K) at times inside the curve, by cubic Hermite interpolation."""
        from scipy.interpolate import CubicHermiteSpline

        if len(self.t) == 1:
            x, slope, sd = (np.repeat(v, len(t), 0) for v in (self.x, self.slope, self.sd))
            return x, slope, sd
        spline = CubicHermiteSpline(self.t, self.x, self.slope)
        sd = np.stack([np.interp(t, self.t, column) for column in self.sd.T], -1)
        return spline(t), spline.derivative()(t), sd


@dataclass(frozen=True, eq=False)
class Gradients:
    """ODIN's gradient match at grid times t (N,): f(x, θ), the GP's derivative and its sd, each (N, K)."""

    t: Array
    f: Array
    gp: Array
    sd: Array


@dataclass(frozen=True, eq=False)
class ExperimentFit:
    """Observations t (N,), y (N, K) of one experiment, its estimated curve, and ODIN's gradient match if any."""

    t: Array
    y: Array
    curve: Curve
    gradients: Gradients | None = None

    @property
    def x(self) -> Array:
        """Estimated states (N, K) at the observation times."""
        return self.curve.at(self.t)[0]


@dataclass(frozen=True, eq=False)
class Stage:
    """One stage of a fit: its estimates, what it minimised, and the seconds it took.

    Attributes:
        theta, gamma, sigma: by name; gamma is in standardised units and empty where the stage has none.
        x: states at the observation times, one (N, K) array per experiment.
        objective: the risk (ODIN) or the negative log-likelihood (refined), each plus −log p(θ) terms.
        loglik: log-likelihood of the states as estimated by this stage.
        note: a sentence on how it ended.
    """

    theta: dict[str, float]
    gamma: dict[str, float]
    sigma: dict[str, float]
    x: tuple[Array, ...]
    objective: float
    loglik: float
    seconds: float
    note: str
    states: pd.DataFrame = field(repr=False)

    def __getitem__(self, key: str) -> Any:
        return getattr(self, key)


@dataclass(frozen=True, eq=False)
class Fit:
    """The result of a fit, without the model: everything here can be saved, loaded and plotted.

    Attributes:
        model, equations: the model's name and text (None if it was a function).
        method, options, seed: how the fit was made.
        state_names, parameter_names: in the model's order.
        theta: estimated (and fixed) parameters by name.
        gamma: γ per state in standardised units, as in the paper's Table 2.
        gamma_user: γ per state in (state/time)² of the user's units.
        sigma: noise standard deviations per state in the user's units.
        verdicts: state → "consistent", "contradicts the data" or "not judged".
        experiments: name → observations and curves.
        stages: "odin" and "refined", where they ran.
        status, converged: how it ended, in words and as a truth value.
        details: numbers behind it: starts agreeing, kernels, fit quality, seconds.
        samples: parameter → posterior draws (chain, draw), for methods that sample.
        warnings: sentences the user should read.
    """

    model: str
    equations: str | None
    method: str
    options: dict[str, Any]
    seed: int
    state_names: tuple[str, ...]
    parameter_names: tuple[str, ...]
    theta: dict[str, float]
    gamma: dict[str, float]
    gamma_user: dict[str, float]
    sigma: dict[str, float]
    verdicts: dict[str, str]
    experiments: dict[str, ExperimentFit]
    stages: dict[str, Stage]
    status: str
    converged: bool
    details: dict[str, Any]
    samples: dict[str, Array] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def states(self) -> pd.DataFrame:
        """Estimated states of the first experiment at its observation times: index time, a column per state."""
        return self.states_of(next(iter(self.experiments)))

    def states_of(self, experiment: str) -> pd.DataFrame:
        """Estimated states of an experiment at its observation times."""
        e = self._experiment(experiment)
        return frame(e.t, e.x, self.state_names)

    def predict(self, t: ArrayLike, experiment: str | None = None) -> pd.DataFrame:
        """States and 95 % bands at any times inside the data.

        Args:
            t: times (N,).
            experiment: its name; the first by default.

        Returns:
            Index time; for every state x the columns x, x_low, x_high.
        """
        times = self._inside(t, experiment)
        x, _, sd = self._experiment(experiment).curve.at(times)
        table = np.stack([x, x - _BAND * sd, x + _BAND * sd], -1).reshape(len(times), -1)
        return frame(times, table, [f"{s}{end}" for s in self.state_names for end in ("", "_low", "_high")])

    def derivative(self, t: ArrayLike, experiment: str | None = None) -> pd.DataFrame:
        """Time derivatives of the estimated states at any times inside the data: index time, a column per state."""
        times = self._inside(t, experiment)
        return frame(times, self._experiment(experiment).curve.at(times)[1], self.state_names)

    def residuals(self, experiment: str | None = None) -> pd.DataFrame:
        """Observed minus estimated states at the observation times."""
        e = self._experiment(experiment)
        return frame(e.t, e.y - e.x, self.state_names)

    def summary(self) -> str:
        """The result as text: parameters of both stages, γ with its verdict, noise, quality, status."""
        from odinfer.report import summary

        return summary(self)

    def plot(self, path: str | Path | None = None) -> Figure:
        """Data and estimated states with bands as a matplotlib figure; written to `path` if given."""
        from odinfer.plot import states_figure

        figure = states_figure(self)
        if path is not None:
            figure.savefig(path, dpi=150)
        return figure

    def to_xarray(self) -> xr.Dataset:
        """Everything numeric as an xarray Dataset."""
        from odinfer.store import to_xarray

        return to_xarray(self)

    def save(self, path: str | Path) -> None:
        """Write to a `.json` or a `.nc` (netCDF) file; `odinfer.load` reads the JSON back."""
        from odinfer.store import write

        write(self, Path(path))

    def _experiment(self, name: str | None) -> ExperimentFit:
        name = next(iter(self.experiments)) if name is None else name
        if name not in self.experiments:
            raise InputError(f"there is no experiment '{name}'{nearest(str(name), self.experiments)}")
        return self.experiments[name]

    def _inside(self, t: ArrayLike, experiment: str | None) -> Array:
        times = np.atleast_1d(np.asarray(t, float))
        span = self._experiment(experiment).curve.t
        outside = ~((times >= span[0]) & (times <= span[-1]))
        if outside.any():
            raise InputError(
                f"time {times[outside][0]:g} is outside the data [{span[0]:g}, {span[-1]:g}]; "
                "use odinfer.simulate to go beyond them"
            )
        return times


def frame(t: Array, values: Array, names: Any) -> pd.DataFrame:
    """A table with index time and named columns."""
    import pandas as pd

    return pd.DataFrame(values, index=pd.Index(t, name="time"), columns=list(names))


def fit(
    problem: Problem | Model,
    data: Data | None = None,
    method: Method | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Fit:
    """Infer parameters and states.

    Args:
        problem: a Problem, or a Model together with `data`.
        data: the observations, if `problem` is a Model.
        method: how; ODIN with its default settings if not given.
        seed: of everything random; the same seed gives the same answer.
        progress: called with (what, share done).
    """
    from threadpoolctl import threadpool_limits

    from odinfer.methods.odin import Odin

    if isinstance(problem, Model):
        if not isinstance(data, Data):
            raise InputError("fit needs data: fit(model, data) with data from od.Data(...) or od.read_csv(...)")
        problem = Problem(problem, data)
    elif not isinstance(problem, Problem):
        raise InputError(f"fit takes a Problem or a Model, not {type(problem).__name__}")
    elif data is not None:
        raise InputError("fit(problem) takes no data of its own: they are in the Problem")
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"seed must be a whole number from 0 on, not {seed!r}")
    # The matrices are small: threads inside BLAS cost more than they give.
    with threadpool_limits(1, user_api="blas"):
        return (method or Odin()).fit(problem, int(seed), progress)
