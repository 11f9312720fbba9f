"""Fit: what every method returns, as plain data, with what one does with it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odinfer.checks import choice, whole
from odinfer.diagnostics.model_test import DRAWS, ModelTest, judge_model
from odinfer.errors import InputError, nearest
from odinfer.problem.observables import need_plain
from odinfer.problem.problem import Problem
from odinfer.progress import Progress, silent
from odinfer.result.prediction_interval import new_observations
from odinfer.result.stages import ExperimentFit, Stage, frame, state_band
from odinfer.uncertainty.results import (
    KINDS,
    Bootstrap,
    Intervals,
    Posterior,
    Profile,
    Uncertainty,
    checked_level,
    sample_intervals,
)
from odinfer.uncertainty.small_sample import CONFIDENCE

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

    from odinfer.diagnostics.verdicts import Case
    from odinfer.odin.multistart import Minima, Search
    from odinfer.uncertainty.maximum import Maximum
    from odinfer.uncertainty.posterior import OdinEstimate

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Workings:
    """What a fit was computed from, kept in memory so that nothing is computed twice; not saved in files.

    Attributes:
        search, minima: how the ODIN stage was run, and what it found.
        maximum: of the likelihood, where the fit is at one.
        case: the model's, where it was put to the test.
    """

    search: Search | None = None
    minima: Minima | None = None
    maximum: Maximum | None = None
    case: Case | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Fit:
    """The result of a fit, without the model: everything here can be saved, loaded and plotted.

    Attributes:
        model, equations: the model's name and text (None if it was a function).
        method, options, seed: how the fit was made.
        state_names, parameter_names: in the model's order; a local parameter once per experiment, as k[experiment].
        columns: the observed columns of the data; the states, where each was observed as it is.
        noise: column → the family of its distribution; empty where every state was observed as it is.
        theta: estimated (and fixed) parameters by name.
        gamma: γ per state in standardised units, as in the paper's Table 2.
        gamma_user: γ per state in (state/time)² of the user's units.
        sigma: noise standard deviations per column in the user's units (of the log, where noise is log-normal), where
            there is one for all of a column; noise parameters with names of their own are in theta.
        verdicts: state → "consistent", "contradicts the data" or "not judged".
        experiments: name → observations and curves.
        stages: "odin" and "refined", where they ran.
        status, converged: how it ended, in words and as a truth value.
        details: numbers behind it: starts agreeing, kernels, fit quality, seconds.
        samples: parameter → posterior draws (chain, draw), for methods that sample.
        warnings: sentences the user should read.
        uncertainty: covariance and likelihood intervals, of fits that end at a maximum of the likelihood.
        profiles, bootstrapped, posterior: further kinds, as far as `including` has added them.
        problem, workings: what was fitted, and what was computed on the way, for what goes on from here; not saved.

    Example:
        >>> import odinfer as od
        >>> data = od.Data(range(8), [0.6, 1.3, 2.5, 4.1, 6.8, 8.3, 9.1, 9.8], states=["n"])
        >>> fit = od.fit(od.Model.from_text("n' = r*n*(1 - n/K); log r, K"), data)
        >>> print(fit.predict([2.5, 6.5]).round(1))
                n  n_low  n_high
        time
        2.5   3.4    3.1     3.7
        6.5   9.5    9.2     9.9
        >>> "{:.1f} to {:.1f}".format(*fit.profile("K").interval())
        '9.6 to 10.8'
        >>> fit.save("fit.json")
        >>> od.load("fit.json").theta == fit.theta
        True
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
    columns: tuple[str, ...] = ()
    noise: dict[str, str] = field(default_factory=dict)
    uncertainty: Uncertainty | None = None
    profiles: dict[str, Profile] = field(default_factory=dict)
    bootstrapped: Bootstrap | None = None
    posterior: Posterior | None = None
    problem: Problem | None = field(default=None, repr=False)
    workings: Workings = field(default=Workings(), repr=False)

    def __post_init__(self) -> None:
        if not self.columns:
            object.__setattr__(self, "columns", self.state_names)

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        from odinfer.result.notebook import notebook

        return notebook(self)

    def __getstate__(self) -> dict[str, Any]:
        # A model may hold functions that cannot go to another process.
        return {**self.__dict__, "problem": None, "workings": Workings()}

    @property
    def covariance(self) -> pd.DataFrame:
        """Covariance of the estimated parameters, each on its own scale: of log θ for parameters on a log scale.

        Raises:
            InputError: the method has none.
        """
        import pandas as pd

        if self.uncertainty is not None:
            names, values = self.uncertainty.names, self.uncertainty.covariance
        elif self.samples:
            names, draws = tuple(self.samples), np.stack([v.ravel() for v in self.samples.values()])
            values = np.atleast_2d(np.cov(draws))
        else:
            raise InputError(self.without_intervals)
        return pd.DataFrame(values, index=list(names), columns=list(names))

    def interval(self, level: float = CONFIDENCE, kind: str | None = None, problem: Problem | None = None) -> Intervals:
        """Confidence intervals of the estimated parameters.

        Args:
            level: of confidence.
            kind: "likelihood", "profile", "bootstrap" or "sample"; the best that the fit has if not given: draws of
                methods that sample, else likelihood intervals. The last three must have been added by `including`.
            problem: for another level than 95 % of a loaded fit, which has no problem of its own.

        Returns:
            parameter → (low, high), infinite where the data set no limit.

        Raises:
            InputError: there are none of this kind.
        """
        checked_level(level)
        if kind is not None:
            choice("kind of interval", kind, KINDS)
        if kind == "profile" and self.profiles:
            return {name: p.interval(level) for name, p in self.profiles.items()}
        if kind == "bootstrap" and self.bootstrapped is not None:
            return self.bootstrapped.interval(level)
        if kind == "sample" and self.posterior is not None:
            return self.posterior.interval(level)
        if kind in (None, "sample") and self.samples and self.uncertainty is None:
            return sample_intervals(self.samples, level)
        if kind in (None, "likelihood"):
            if self.uncertainty is None:
                raise InputError(self.without_intervals)
            if level == self.uncertainty.level:
                return self.uncertainty.interval()
            found = self.maximum(problem).intervals(level)
            return found.interval() if found is not None else {}
        made = {"profile": "profile('name')", "bootstrap": "bootstrap()", "sample": "sample()"}[str(kind)]
        raise InputError(f"this fit has no {kind} intervals yet: fit.including(fit.{made}).interval(kind='{kind}')")

    def profile(self, name: str, problem: Problem | None = None) -> Profile:
        """The profile likelihood of a parameter or initial value; `.interval()` and `.plot()` are its use.

        Args:
            name: of an estimated parameter, or of a state that starts anywhere, as "prey(0)" or "prey(0)[control]".
            problem: what was fitted, if this fit comes from a file.
        """
        from odinfer.uncertainty.profile import profile

        return profile(self.maximum(problem), name)

    def bootstrap(
        self, n: int = 200, seed: int = 0, workers: int = 1, problem: Problem | None = None, **options: Any
    ) -> Bootstrap:
        """Refit n sets of data simulated from this fit; `.interval()` and `.theta` are its use.

        Args:
            n: how many.
            seed: of the noise; the same numbers for any number of workers.
            workers: how many processes.
            problem: what was fitted, if this fit comes from a file.
            options: `until`, a time up to which to forecast; further ones of `odinfer.parallel.executor.spread`.
        """
        from odinfer.uncertainty.bootstrap import bootstrap

        return bootstrap(self.maximum(problem), n, seed, workers, **options)

    def sample(
        self, target: str = "trajectory", chains: int = 4, draws: int = 1000, seed: int = 0,
        problem: Problem | None = None, **options: Any,
    ) -> Posterior:  # fmt: skip
        """Draws from the posterior of parameters by the no-U-turn sampler; needs blackjax.

        Args:
            target: "trajectory": exact trajectories, θ, x0 and σ unknown; "odin": states and θ, at this fit's γ.
            chains, draws: how many, after as many draws as needed to adapt.
            seed: of the draws.
            problem: what was fitted, if this fit comes from a file.
            options: see `odinfer.uncertainty.posterior.sample`.

        Returns:
            `.theta`: parameter → draws (chain, draw); `.interval()`; a status that says whether chains agree.
        """
        from odinfer.uncertainty.posterior import TARGETS, sample

        choice("target", target, TARGETS)
        start = self.maximum(problem) if target == "trajectory" else self._odin_estimate(problem)
        return sample(start, chains, draws, seed, **options)

    def test(
        self, draws: int = DRAWS, seed: int | None = None, problem: Problem | None = None,
        progress: Progress | None = None,
    ) -> ModelTest:  # fmt: skip
        """How often a right model leaves as much of a pattern in the residuals as this one: its p-value.

        Args:
            draws: simulated data sets, each refitted.
            seed: of the simulations; the fit's if not given.
            problem: what was fitted, if this fit comes from a file.
            progress: called with (what, share done).
        """
        maximum = self.maximum(problem, "a test")
        return judge_model(maximum, self.seed if seed is None else seed, whole("draws", draws, 19), progress or silent)

    def including(self, *results: Profile | Bootstrap | Posterior | ModelTest) -> Fit:
        """This fit together with profiles, a bootstrap, draws or a test, so that they are saved, printed and shown."""
        made = self
        for result in results:
            if isinstance(result, ModelTest):
                made = replace(made, details={**made.details, "model_test": asdict(result)})
            elif isinstance(result, Profile):
                made = replace(made, profiles={**made.profiles, result.name: result})
            elif isinstance(result, Bootstrap):
                made = replace(made, bootstrapped=result)
            elif isinstance(result, Posterior):
                made = replace(made, posterior=result)
            else:
                raise InputError(
                    f"a fit can include profiles, a bootstrap, a posterior or a test, not {type(result).__name__}"
                )
        return made

    @property
    def states(self) -> pd.DataFrame:
        """Estimated states of the first experiment at its observation times: index time, a column per state."""
        return self.states_of(next(iter(self.experiments)))

    def states_of(self, experiment: str) -> pd.DataFrame:
        """Estimated states of an experiment at its observation times."""
        e = self._experiment(experiment)
        return frame(e.t, e.x, self.state_names)

    @property
    def observables(self) -> pd.DataFrame:
        """Predicted values of the observed columns of the first experiment at its observation times."""
        return self.observables_of(next(iter(self.experiments)))

    def observables_of(self, experiment: str) -> pd.DataFrame:
        """Predicted values of the observed columns of an experiment at its observation times."""
        e = self._experiment(experiment)
        return frame(e.t, e.predicted, self.columns)

    def predict(
        self, t: ArrayLike, experiment: str | None = None, level: float = CONFIDENCE, observed: bool = False,
        problem: Problem | None = None,
    ) -> pd.DataFrame:  # fmt: skip
        """States and their bands at any times inside the data.

        Args:
            t: times (N,).
            experiment: its name; the first by default.
            level: of the bands.
            observed: bands for new observations, noise included, instead of states: by the distribution of each column,
                NaN where its standard deviation is known row by row only.
            problem: what was fitted, for new observations of hidden states and the like of a fit from a file.

        Returns:
            Index time; for every state x (every column, if observed) the columns x, x_low, x_high.
        """
        times = self._inside(t, experiment)
        checked_level(level)
        own, name = self._experiment(experiment), experiment or next(iter(self.experiments))
        if observed:
            posed = None if own.expected_sd is None else self._problem(problem, "a band of new observations")
            return _table(times, *new_observations(self, name, times, posed, level), self.columns)
        x, _, sd = own.curve.at(times)
        return _table(times, x, *state_band(self, x, sd, level), self.state_names)

    def forecast(
        self, t: ArrayLike, experiment: str | None = None, level: float = CONFIDENCE, observed: bool = False,
        problem: Problem | None = None,
    ) -> pd.DataFrame:  # fmt: skip
        """The same beyond the data, of fits at a maximum of the likelihood; inputs keep their last value there.

        Columns of the data that are no states come after the states; `observed` gives columns only, where they are not
        just the states.

        Args:
            t, experiment, level, observed: as in `predict`; NaN where the trajectory has ended before.
            problem: what was fitted, if this fit comes from a file.
        """
        from odinfer.uncertainty.forecast import forecast

        times = np.atleast_1d(np.asarray(t, float))
        start = self._experiment(experiment).curve.t[0]
        if not np.isfinite(times).all() or (times < start).any():
            raise InputError(f"times of a forecast must be finite and not before the data, which start at {start:g}")
        checked_level(level)
        maximum = self.maximum(problem, "a forecast")
        e = 0 if experiment is None else list(self.experiments).index(experiment)
        order, back = np.unique(times, return_inverse=True)
        if not observed:
            parts = [(self.state_names, forecast(maximum, e, order, level))]
            if more := [m for m, c in enumerate(self.columns) if c not in self.state_names]:
                x, low, high = forecast(maximum, e, order, level, columns=True)
                parts.append((tuple(self.columns[m] for m in more), (x[:, more], low[:, more], high[:, more])))
        else:
            parts = [(self.columns, forecast(maximum, e, order, level, observed=True))]
        names = [f"{name}{end}" for own, _ in parts for name in own for end in ("", "_low", "_high")]
        table = np.concatenate([np.stack(bands, -1).reshape(len(order), -1) for _, bands in parts], 1)
        return frame(times, table[back], names)

    def derivative(self, t: ArrayLike, experiment: str | None = None) -> pd.DataFrame:
        """Time derivatives of the estimated states at any times inside the data: index time, a column per state."""
        times = self._inside(t, experiment)
        return frame(times, self._experiment(experiment).curve.at(times)[1], self.state_names)

    def residuals(self, experiment: str | None = None) -> pd.DataFrame:
        """Observed minus predicted values at the observation times; NaN where a limit only was observed."""
        e = self._experiment(experiment)
        return frame(e.t, e.residuals, self.columns)

    def summary(self) -> str:
        """The result as text: parameters of both stages, γ with its verdict, noise, quality, status."""
        from odinfer.result.summary import summary

        return summary(self)

    def plot(self, path: str | Path | None = None) -> Figure:
        """Data and estimated states with bands as a matplotlib figure; written to `path` if given."""
        from odinfer.result.figures.states import states_figure

        figure = states_figure(self)
        if path is not None:
            figure.savefig(path, dpi=150)
        return figure

    def to_xarray(self) -> xr.Dataset:
        """Everything numeric as an xarray Dataset."""
        from odinfer.result.formats.netcdf_format import to_xarray

        return to_xarray(self)

    def save(self, path: str | Path) -> None:
        """Write to a `.json` or a `.nc` (netCDF) file; `odinfer.load` reads the JSON back."""
        from odinfer.result.formats import write

        write(self, Path(path))

    def to_petab(self, folder: str | Path, problem: Problem | None = None) -> Path:
        """Write what was fitted as a PEtab problem whose nominal values are the estimates: the path of problem.yaml.

        Noise is the most likely one, which is a little less than `sigma`.

        Args:
            folder: made if need be.
            problem: what was fitted, if this fit comes from a file.

        Raises:
            InputError: something of the problem cannot be said in PEtab, which is named.
        """
        from odinfer.files import staged
        from odinfer.io.petab_writer import write_petab

        posed = self._problem(problem, "PEtab")
        best = None if self.uncertainty is None else self.maximum(posed).refined
        noise = self.sigma if best is None else dict(zip(posed.columns, map(float, best.sigma), strict=True))
        values = {f"sigma {column}": sd for column, sd in noise.items()}
        several = len(posed.data.experiments) > 1
        for e, (name, own) in enumerate(self.experiments.items()):
            begin = own.curve.x[0] if best is None else best.paths[e].x0
            for state, value in zip(posed.model.states, begin, strict=True):
                values[f"{state}(0)" + f"[{name}]" * several] = float(value)
        values |= self.theta
        with staged(folder) as stage:
            write_petab(posed, stage, values)
        return Path(folder) / "problem.yaml"

    def _problem(self, given: Problem | None, what: str = "this") -> Problem:
        problem = self.problem if given is None else given
        if problem is None:
            raise InputError(f"a fit from a file has no model and data with it: {what} needs problem=od.Problem(...)")
        return problem

    def maximum(self, problem: Problem | None = None, what: str = "this") -> Maximum:
        """The maximum of the likelihood that this fit reports, with everything that goes on from there.

        It is kept from the fit; of a fit from a file it is found again, next to the estimate.

        Args:
            problem: what was fitted, if this fit comes from a file.
            what: needs it, for the message.

        Raises:
            InputError: the fit is not at such a maximum, or belongs to another problem.
        """
        from odinfer.uncertainty.maximum import Maximum

        posed = self._problem(problem, what)
        if self.uncertainty is None:
            raise InputError(self.without_intervals)
        if posed is self.problem and self.workings.maximum is not None:
            return self.workings.maximum
        names = (posed.model.states, posed.parameters, posed.columns, tuple(e.name for e in posed.data.experiments))
        if names != (self.state_names, self.parameter_names, self.columns, tuple(self.experiments)):
            raise InputError("this fit was made from another problem: its states, parameters or data differ")
        theta = np.array([self.theta[p] for p in self.parameter_names])
        found = Maximum.near(posed, theta, [e.curve for e in self.experiments.values()])
        if found is None:
            raise InputError("no trajectory of the model could be followed from this fit's estimate")
        return found

    def _odin_estimate(self, problem: Problem | None) -> OdinEstimate:
        """ODIN's states and parameters at this fit's γ, to sample from."""
        from odinfer.uncertainty.posterior import OdinEstimate

        posed = self._problem(problem)
        need_plain(posed, "target='odin'")
        if self.method != "odin" or not self.gamma or not all(np.isfinite(g) for g in self.gamma.values()):
            raise InputError("target='odin' needs a fit by odin with its gamma")
        return OdinEstimate.of(posed, self.options, self.stages["odin"].theta, self.gamma)

    @property
    def draws(self) -> dict[str, Array]:
        """Posterior draws (chain, draw) by parameter: of the posterior that was added, or of the method itself."""
        return self.posterior.theta if self.posterior is not None else self.samples

    def intervals_by_kind(self) -> dict[str, Intervals]:
        """95 % intervals by kind, as far as this fit has them without computing."""
        there = {
            "likelihood": self.uncertainty is not None,
            "profile": bool(self.profiles),
            "bootstrap": self.bootstrapped is not None,
            "sample": bool(self.draws),
        }
        return {kind: self.interval(CONFIDENCE, kind) for kind, yes in there.items() if yes}

    @property
    def without_intervals(self) -> str:
        """Why this fit has no intervals, in a sentence."""
        if sum(self.details.get("observations", {}).values()) <= self.details.get("unknowns", -1):
            return "there are no more observations than unknowns, so nothing tells how sure the estimates are"
        if self.details.get("stage_used", self.method) == "odin":
            return (
                "ODIN's own estimate has no interval that is known to cover: it needs the refined stage "
                "(refine=True, and a trajectory that follows the data)"
            )
        if self.noise and self.method == "odin":
            return "no trajectory was found, or it could not be told how sure it is"
        return f"the method '{self.method}' gives no intervals; fit with odin, trajectory or a sampler (fgpgm, agm)"

    def _experiment(self, name: str | None) -> ExperimentFit:
        name = next(iter(self.experiments)) if name is None else name
        if name not in self.experiments:
            raise InputError(f"there is no experiment '{name}'{nearest(str(name), self.experiments)}")
        return self.experiments[name]

    def _inside(self, t: ArrayLike, experiment: str | None) -> Array:
        times = np.atleast_1d(np.asarray(t, float))
        own = self._experiment(experiment)
        span = np.concatenate([own.curve.t, own.t[-1:]])  # the last replicate stands a little after the others
        outside = ~((times >= span[0]) & (times <= span.max()))
        if outside.any():
            raise InputError(
                f"time {times[outside][0]:g} is outside the data [{span[0]:g}, {span.max():g}]; "
                "use fit.forecast or odinfer.simulate to go beyond them"
            )
        return times


def _table(t: Array, x: Array, low: Array, high: Array, names: tuple[str, ...]) -> pd.DataFrame:
    """Values (N, ·) and the ends of their bands, by name."""
    values = np.stack([x, low, high], -1).reshape(len(t), -1)
    return frame(t, values, [f"{name}{end}" for name in names for end in ("", "_low", "_high")])
