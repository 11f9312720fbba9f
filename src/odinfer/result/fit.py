"""`FitResult`, a result as plain data, and `Fit`, a result with its problem."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odinfer.checks import checked_choice, checked_integer
from odinfer.diagnostics.information_criteria import aic, bic
from odinfer.diagnostics.model_test import DRAWS, ModelTest, judge_model
from odinfer.errors import InputError, nearest
from odinfer.problem.observables import need_fully_observed_gaussian
from odinfer.problem.problem import Problem
from odinfer.problem.unknown_domains import with_text
from odinfer.progress import Progress, no_progress
from odinfer.result.plots import Plots
from odinfer.result.prediction_interval import prediction_interval
from odinfer.result.stages import ExperimentFit, Stage, attached_problem, frame, state_band
from odinfer.result.unknown import EstimatedFunction, EstimatedFunctions
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

    from odinfer.diagnostics.verdicts import Case
    from odinfer.odin.multistart import Minima, Search
    from odinfer.uncertainty.maximum import Maximum
    from odinfer.uncertainty.posterior import OdinEstimate

Array = NDArray[np.float64]

# What exists on a Fit only, since it is computed from the model and the data.
LIVE = ("problem", "cache", "profile", "bootstrap", "sample", "test", "forecast", "maximum", "to_petab")

# What other packages call it: statsmodels, lmfit, SciPy.
ELSEWHERE = {
    "bse": "stderr", "llf": "loglik", "conf_int": "interval()", "cov_params": "covariance", "resid": "residuals",
    "fittedvalues": "observables", "best_values": "theta", "best_fit": "observables", "fit_report": "summary()",
    "success": "converged", "message": "status", "x": "theta", "covar": "covariance",
}  # fmt: skip


class NotAttached(InputError, AttributeError):
    """Something was asked of a plain result that has to be computed from its problem."""


def refuse_without_problem(what: str) -> NoReturn:
    """Raise the one message of everything that needs a problem."""
    raise NotAttached(
        f"{what} needs the model and the data, which a loaded result does not hold: "
        "attach them first, fit = result.attach(od.Problem(model, data))"
    )


@dataclass(frozen=True)
class ParameterEstimate:
    """One estimated or fixed parameter.

    Attributes:
        value: the estimate in the parameter's units.
        stderr: its standard error; NaN if it is fixed or the method has none.
        interval: lower and upper limit of the 95 % interval; NaN likewise, infinite where the data set no limit.
        fixed: whether the value was given and not estimated.
    """

    value: float
    stderr: float
    interval: tuple[float, float]
    fixed: bool = False

    def __repr__(self) -> str:
        if self.fixed:
            return f"{self.value:.6g} (fixed)"
        low, high = self.interval
        error = f" ± {self.stderr:.2g}" if np.isfinite(self.stderr) else ""
        limits = "" if np.isnan(low) or np.isnan(high) else f", 95 % {low:.4g} to {high:.4g}"
        return f"{self.value:.6g}{error}{limits}"


@dataclass(frozen=True, eq=False, repr=False)
class FitResult(Plots):
    """The estimates of a fit as plain data, without the model: everything that a file holds.

    `attach(problem)` makes it a `Fit`, which can also compute: profiles, bootstrap, posterior, forecasts.

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
        profiles, bootstrapped, sampled: profiles, bootstrap and posterior, as far as `including` has added them.

    Example:
        >>> import odinfer as od
        >>> data = od.Data(range(8), [0.6, 1.3, 2.5, 4.1, 6.8, 8.3, 9.1, 9.8], states=["n"])
        >>> problem = od.Problem(od.Model.from_text("n' = r*n*(1 - n/K); log r, K"), data)
        >>> od.fit(problem).save("fit.json")
        >>> result = od.load("fit.json")
        >>> "{:.1f}".format(result.params["K"].value)
        '10.1'
        >>> list(result.attach(problem).forecast([9]).columns)
        ['n', 'n_low', 'n_high']
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
    sampled: Posterior | None = None

    def __post_init__(self) -> None:
        if not self.columns:
            object.__setattr__(self, "columns", self.state_names)

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        from odinfer.result.notebook import notebook

        return notebook(self)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in LIVE:
                refuse_without_problem(f"'{name}'")
            hint = f"; use fit.{ELSEWHERE[name]}" if name in ELSEWHERE else ""
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'{hint}")

    def attach(self, problem: Problem) -> Fit:
        """Join this result with the problem that it was fitted to.

        Args:
            problem: model and data, as they were when the fit was made.

        Returns:
            The live fit.

        Raises:
            InputError: states, parameters, experiments or data are not those of this result.
        """
        if problem.model.declarations.unknown and self.equations is not None:  # with the ranges and scales of the fit
            problem = with_text(problem, self.equations)
        if (difference := _difference(self, problem)) is not None:
            raise InputError(f"this fit was made from another problem: its {difference} differ")
        # Parameters that were assumed positive and released during the fit have linear scales.
        known = self.uncertainty
        linear = [
            name
            for name in problem.assumed_positive
            if self.theta[name] <= 0 or (known is not None and name in known.names and name not in known.log)
        ]
        if linear:
            problem = replace(problem, scale={**problem.scale, **dict.fromkeys(linear, "linear")})
        return Fit(**{f.name: getattr(self, f.name) for f in fields(FitResult)}, problem=problem)

    @property
    def params(self) -> dict[str, ParameterEstimate]:
        """Parameter → its value, standard error and 95 % interval, of the kind that the summary prints."""
        from odinfer.result.estimates import preferred_intervals

        fixed, none = self.details.get("fixed") or (), (np.nan, np.nan)
        limits, stderr = preferred_intervals(self)[1], self.stderr
        return {
            name: ParameterEstimate(
                self.theta[name], stderr.get(name, np.nan), limits.get(name, none), fixed=name in fixed
            )
            for name in self.parameter_names
        }

    @property
    def stderr(self) -> dict[str, float]:
        """Standard errors of the estimated parameters in their units; empty if the method has none."""
        from odinfer.result.estimates import preferred_intervals, standard_errors

        return standard_errors(self, preferred_intervals(self)[0])

    @property
    def loglik(self) -> float:
        """Log-likelihood of the estimate; NaN if the method computes none."""
        return float(self.details.get("loglik", np.nan))

    @property
    def aic(self) -> float:
        """Akaike's information criterion; NaN unless the estimate maximises the likelihood."""
        return aic(self.loglik, self.details["unknowns"]) if self._at_maximum else np.nan

    @property
    def bic(self) -> float:
        """The Bayesian information criterion; NaN unless the estimate maximises the likelihood."""
        observations = sum(self.details.get("observations", {}).values())
        return bic(self.loglik, self.details["unknowns"], observations) if self._at_maximum else np.nan

    @property
    def _at_maximum(self) -> bool:
        return self.uncertainty is not None and "unknowns" in self.details

    @property
    def pvalue(self) -> float:
        """Probability that a correct model leaves as large a pattern in the residuals; NaN if this was not tested."""
        return ModelTest.of(self.details.get("model_test")).p

    def table(self) -> pd.DataFrame:
        """Return parameters and initial values, a row each: estimate, stderr, low and high (95 % interval), note."""
        from odinfer.result.estimates import estimate_frame

        return estimate_frame(self)

    def to_markdown(self) -> str:
        """Return the table of estimates as the summary prints it, in Markdown."""
        from odinfer.result.estimates import parameter_table
        from odinfer.result.export import markdown

        return markdown(parameter_table(self))

    def to_latex(self) -> str:
        """Return the table of estimates as the summary prints it, as a LaTeX tabular (package booktabs)."""
        from odinfer.result.estimates import parameter_table
        from odinfer.result.export import latex

        return latex(parameter_table(self))

    @property
    def unknown(self) -> EstimatedFunctions:
        """The unknown functions by label: `fit.unknown["?"]` has a `.table` with its band, and `.at(grid)`."""
        return EstimatedFunctions({n: EstimatedFunction.of(n, v) for n, v in self.details.get("unknown", {}).items()})

    @property
    def covariance(self) -> pd.DataFrame:
        """Covariance of the estimated parameters; rows and columns of parameters on a log scale are called "log k".

        Raises:
            InputError: the method has none.
        """
        import pandas as pd

        if self.uncertainty is not None:
            log = self.uncertainty.log
            names = tuple(f"log {name}" if name in log else name for name in self.uncertainty.names)
            values = self.uncertainty.covariance
        elif self.samples:
            names, draws = tuple(self.samples), np.stack([v.ravel() for v in self.samples.values()])
            values = np.atleast_2d(np.cov(draws))
        else:
            raise InputError(self.without_intervals)
        return pd.DataFrame(values, index=list(names), columns=list(names))

    def interval(self, level: float = CONFIDENCE, kind: str | None = None) -> Intervals:
        """Confidence intervals of the estimated parameters.

        Args:
            level: of confidence; likelihood intervals of a loaded result have the level they were saved with.
            kind: "likelihood", "profile", "bootstrap" or "sample"; the best that the fit has if not given: draws of
                methods that sample, else likelihood intervals. The last three must have been added by `including`.

        Returns:
            parameter → (low, high), infinite where the data set no limit.

        Raises:
            InputError: there are none of this kind.
        """
        checked_level(level)
        if kind is not None:
            checked_choice("kind of interval", kind, KINDS)
        if kind == "profile" and self.profiles:
            return {name: p.interval(level) for name, p in self.profiles.items()}
        if kind == "bootstrap" and self.bootstrapped is not None:
            return self.bootstrapped.interval(level)
        if kind == "sample" and self.sampled is not None:
            return self.sampled.interval(level)
        if kind in (None, "sample") and self.samples and self.uncertainty is None:
            return sample_intervals(self.samples, level)
        if kind in (None, "likelihood"):
            return self._likelihood_interval(level)
        made = {"profile": "profile('name')", "bootstrap": "bootstrap()", "sample": "sample()"}[str(kind)]
        raise InputError(f"this fit has no {kind} intervals yet: fit.including(fit.{made}).interval(kind='{kind}')")

    def _likelihood_interval(self, level: float) -> Intervals:
        if self.uncertainty is None:
            raise InputError(self.without_intervals)
        if level != self.uncertainty.level:
            refuse_without_problem(f"an interval of level {level:g}")
        return self.uncertainty.interval()

    def including(self, *results: Profile | Bootstrap | Posterior | ModelTest) -> Self:
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
                made = replace(made, sampled=result)
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
        self, t: ArrayLike, experiment: str | None = None, level: float = CONFIDENCE, observed: bool = False
    ) -> pd.DataFrame:
        """States and their bands at any times inside the data.

        Args:
            t: times (N,).
            experiment: its name; the first by default.
            level: of the bands.
            observed: bands for new observations, noise included, instead of states: by the distribution of each column,
                NaN where its standard deviation is known row by row only. Needs an attached problem where columns
                are not just the states.

        Returns:
            Index time; for every state x (every column, if observed) the columns x, x_low, x_high.
        """
        times = self._inside(t, experiment)
        checked_level(level)
        own, name = self._experiment(experiment), experiment or next(iter(self.experiments))
        if observed:
            if own.expected_sd is not None and attached_problem(self) is None:
                refuse_without_problem("a band of new observations")
            return _table(times, *prediction_interval(self, name, times, level), self.columns)
        x, _, sd = own.curve.at(times)
        return _table(times, x, *state_band(self, x, sd, level), self.state_names)

    def derivative(self, t: ArrayLike, experiment: str | None = None) -> pd.DataFrame:
        """Time derivatives of the estimated states at any times inside the data: index time, a column per state."""
        times = self._inside(t, experiment)
        return frame(times, self._experiment(experiment).curve.at(times)[1], self.state_names)

    @property
    def residuals(self) -> pd.DataFrame:
        """Observed minus predicted values of the first experiment; NaN where a limit only was observed."""
        return self.residuals_of(next(iter(self.experiments)))

    def residuals_of(self, experiment: str) -> pd.DataFrame:
        """Observed minus predicted values of an experiment at its observation times."""
        e = self._experiment(experiment)
        return frame(e.t, e.residuals, self.columns)

    def summary(self) -> str:
        """Return the result as text: verdict, warnings, parameters with intervals, states with γ and noise, status."""
        from odinfer.result.summary import summary

        return summary(self)

    def to_xarray(self) -> xr.Dataset:
        """Everything numeric as an xarray Dataset."""
        from odinfer.result.formats.netcdf_format import to_xarray

        return to_xarray(self)

    def save(self, path: str | Path) -> None:
        """Write to a `.json` or a `.nc` (netCDF) file; `odinfer.load` reads the JSON back."""
        from odinfer.result.formats import write

        write(self, Path(path))

    def to_arviz(self) -> Any:
        """Return posterior draws as ArviZ reads them: those of `fit.sample()` once included, or of the method itself.

        Raises:
            InputError: there are no draws, or ArviZ is not installed.
        """
        from odinfer.uncertainty.arviz_format import to_arviz

        if not self.draws:
            raise InputError("this fit has no posterior draws; add them first: fit = fit.including(fit.sample())")
        made = Posterior(self.method, self.samples, {}, {}, {}, {}, {}, 0, self.status, self.converged, float("nan"))
        return to_arviz(made if self.sampled is None else self.sampled)

    @property
    def posterior(self) -> Any:
        """Posterior draws as ArviZ's InferenceData (0.x) or DataTree (1.x); `sampled` has them without ArviZ."""
        return self.to_arviz()

    @property
    def draws(self) -> dict[str, Array]:
        """Posterior draws (chain, draw) by parameter: of the posterior that was added, or of the method itself."""
        return self.sampled.theta if self.sampled is not None else self.samples

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
            return "there are no more observations than unknowns, so there is no information about errors"
        if self.details.get("stage_used", self.method) == "odin":
            return (
                "ODIN's estimate by slopes has no intervals: they need a maximum of the likelihood "
                "(refine=True, and a trajectory that follows the data)"
            )
        if self.noise and self.method == "odin":
            return "no trajectory was found, or its curvature could not be computed"
        return f"the method '{self.method}' gives no intervals; fit with odin, trajectory or a sampler (fgpgm, agm)"

    def _experiment(self, name: str | None) -> ExperimentFit:
        name = next(iter(self.experiments)) if name is None else name
        if name not in self.experiments:
            raise InputError(f"there is no experiment '{name}'{nearest(str(name), self.experiments)}")
        return self.experiments[name]

    def _inside(self, t: ArrayLike, experiment: str | None) -> Array:
        times = as_times(t)
        own = self._experiment(experiment)
        span = np.concatenate([own.curve.t, own.t[-1:]])  # the last replicate stands a little after the others
        outside = ~((times >= span[0]) & (times <= span.max()))
        if outside.any():
            raise InputError(
                f"time {times[outside][0]:g} is outside the data [{span[0]:g}, {span.max():g}]; "
                "use fit.forecast or odinfer.simulate to go beyond them"
            )
        return times


@dataclass(frozen=True, eq=False, repr=False)
class Cache:
    """Intermediate results of a fit, kept in memory so that later steps do not repeat them; not saved in files.

    Attributes:
        search, minima: options and minima of the ODIN stage.
        maximum: of the likelihood, where the fit is at one.
        case: the tests of the equations and of the model, where they were made.
    """

    search: Search | None = None
    minima: Minima | None = None
    maximum: Maximum | None = None
    case: Case | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Fit(FitResult):
    """A result with its problem: what `odinfer.fit` returns. It has everything of a `FitResult` and can compute more.

    Copies in other processes and files are of type FitResult; `attach` turns them into a Fit again.

    Attributes:
        problem: what was fitted.
        cache: intermediate results of the fit.

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
    """

    problem: Problem = field(kw_only=True, repr=False)
    cache: Cache = field(default=Cache(), kw_only=True, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        # A model may hold functions that cannot go to another process.
        return _result, ({f.name: getattr(self, f.name) for f in fields(FitResult)},)

    def profile(self, name: str) -> Profile:
        """The profile likelihood of a parameter or initial value; `.interval()` and `.plot()` are its use.

        Args:
            name: of an estimated parameter, or of a state that starts anywhere, as "prey(0)" or "prey(0)[control]".
        """
        from odinfer.uncertainty.profile import profile

        return profile(self.maximum(), name)

    def bootstrap(self, n: int = 200, seed: int = 0, workers: int = 1, **options: Any) -> Bootstrap:
        """Refit n sets of data simulated from this fit; `.interval()` and `.theta` are its use.

        Args:
            n: how many.
            seed: of the noise; the same numbers for any number of workers.
            workers: how many processes.
            options: `until`, a time up to which to forecast; further ones of `odinfer.parallel.executor.parallel_map`.
        """
        from odinfer.uncertainty.bootstrap import bootstrap

        return bootstrap(self.maximum(), n, seed, workers, **options)

    def sample(
        self, target: str = "trajectory", chains: int = 4, draws: int = 1000, seed: int = 0,
        **options: Any,
    ) -> Posterior:  # fmt: skip
        """Draws from the posterior of parameters by the no-U-turn sampler; needs blackjax.

        Args:
            target: "trajectory": exact trajectories, θ, x0 and σ unknown; "odin": states and θ, at this fit's γ.
            chains, draws: how many, after as many draws as needed to adapt.
            seed: of the draws.
            options: see `odinfer.uncertainty.posterior.sample`.

        Returns:
            `.theta`: parameter → draws (chain, draw); `.interval()`; a status that says whether chains agree.
        """
        from odinfer.uncertainty.posterior import TARGETS, sample

        checked_choice("target", target, TARGETS)
        start = self.maximum() if target == "trajectory" else self._odin_estimate()
        return sample(start, chains, draws, seed, **options)

    def test(
        self, draws: int = DRAWS, seed: int | None = None,
        progress: Progress | None = None,
    ) -> ModelTest:  # fmt: skip
        """How often a right model leaves as much of a pattern in the residuals as this one: its p-value.

        Args:
            draws: simulated data sets, each refitted.
            seed: of the simulations; the fit's if not given.
            progress: called with (what, share done).
        """
        maximum = self.maximum()
        return judge_model(
            maximum, self.seed if seed is None else seed, checked_integer("draws", draws, 19), progress or no_progress
        )

    def _likelihood_interval(self, level: float) -> Intervals:
        if self.uncertainty is None or level == self.uncertainty.level:
            return super()._likelihood_interval(level)
        found = self.maximum().intervals(level)
        return found.interval() if found is not None else {}

    def forecast(
        self, t: ArrayLike, experiment: str | None = None, level: float = CONFIDENCE, observed: bool = False,
    ) -> pd.DataFrame:  # fmt: skip
        """The same beyond the data, of fits at a maximum of the likelihood; inputs keep their last value there.

        Columns of the data that are no states come after the states; `observed` gives columns only, where they are not
        just the states.

        Args:
            t, experiment, level, observed: as in `predict`; NaN where the trajectory has ended before.
        """
        from odinfer.uncertainty.forecast import forecast

        times = as_times(t)
        start = self._experiment(experiment).curve.t[0]
        if not np.isfinite(times).all() or (times < start).any():
            raise InputError(f"times of a forecast must be finite and not before the data, which start at {start:g}")
        checked_level(level)
        maximum = self.maximum()
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

    def to_petab(self, folder: str | Path) -> Path:
        """Write what was fitted as a PEtab problem whose nominal values are the estimates: the path of problem.yaml.

        Noise is the most likely one, which is a little less than `sigma`.

        Args:
            folder: made if need be.

        Raises:
            InputError: something of the problem cannot be said in PEtab, which is named.
        """
        from odinfer.files import staged_folder
        from odinfer.io.petab_writer import write_petab

        problem = self.problem
        best = None if self.uncertainty is None else self.maximum().refined
        noise = self.sigma if best is None else dict(zip(problem.columns, map(float, best.sigma), strict=True))
        values = {f"sigma {column}": sd for column, sd in noise.items()}
        several = len(problem.data.experiments) > 1
        for e, (name, own) in enumerate(self.experiments.items()):
            begin = own.curve.x[0] if best is None else best.paths[e].x0
            for state, value in zip(problem.model.states, begin, strict=True):
                values[f"{state}(0)" + f"[{name}]" * several] = float(value)
        values |= self.theta
        with staged_folder(folder) as stage:
            write_petab(problem, stage, values)
        return Path(folder) / "problem.yaml"

    @property
    def unknown(self) -> EstimatedFunctions:
        """The unknown functions by label: `fit.unknown["?"]` has a `.table` with its band, and `.at(grid)`."""
        live, maximum = super().unknown, self.maximum() if super().unknown else None
        own = {f.label: f for f in maximum.problem.model.declarations.unknown} if maximum is not None else {}
        found = {n: replace(f, _function=own[n], _maximum=maximum) for n, f in live.items()}
        return EstimatedFunctions(found)

    def maximum(self) -> Maximum:
        """Return the maximum of the likelihood that this fit reports, from which further results are computed.

        It is kept from the fit; after `attach` it is found again by optimisation from the estimate.

        Raises:
            InputError: the fit is not at such a maximum.
        """
        if self.uncertainty is None:
            raise InputError(self.without_intervals)
        return self._maximum

    @cached_property
    def _maximum(self) -> Maximum:
        from odinfer.uncertainty.maximum import Maximum

        if self.cache.maximum is not None:
            return self.cache.maximum
        theta = np.array([self.theta[p] for p in self.parameter_names])
        found = Maximum.near(self.problem, theta, [e.curve for e in self.experiments.values()])
        if found is None:
            raise InputError("no trajectory of the model could be computed from this fit's estimate")
        return found

    def _odin_estimate(self) -> OdinEstimate:
        """ODIN's states and parameters at this fit's γ, to sample from."""
        from odinfer.uncertainty.posterior import OdinEstimate

        need_fully_observed_gaussian(self.problem, "target='odin'")
        if self.method != "odin" or not self.gamma or not all(np.isfinite(g) for g in self.gamma.values()):
            raise InputError("target='odin' needs a fit by odin with its gamma")
        return OdinEstimate.of(self.problem, self.options, self.stages["odin"].theta, self.gamma)


def as_times(t: ArrayLike) -> Array:
    """Times (N,) from a number or a sequence of numbers.

    Raises:
        InputError: they are something else.
    """
    try:
        times = np.atleast_1d(np.asarray(t, float))
    except (TypeError, ValueError):
        raise InputError(f"times must be numbers, such as [0.5, 1.0], not {t!r:.60}") from None
    if times.ndim != 1:
        raise InputError(f"times must be one row of numbers, not an array of shape {times.shape}")
    return times


def _result(content: dict[str, Any]) -> FitResult:
    return FitResult(**content)


def _difference(result: FitResult, problem: Problem) -> str | None:
    """Name the first thing in which a problem differs from the one that a result was fitted to; None if nothing."""
    experiments = problem.data.experiments
    pairs = {
        "states": (problem.model.states, result.state_names),
        "parameters": (problem.parameters, result.parameter_names),
        "columns": (problem.columns, result.columns),
        "experiments": (tuple(e.name for e in experiments), tuple(result.experiments)),
    }
    for what, (given, own) in pairs.items():
        if given != own:
            return what
    known = result.experiments.values()
    same = (
        np.array_equal(e.t, k.t) and np.array_equal(e.y, k.y, equal_nan=True)
        for e, k in zip(experiments, known, strict=True)
    )
    return None if all(same) else "data"


def _table(t: Array, x: Array, low: Array, high: Array, names: tuple[str, ...]) -> pd.DataFrame:
    """Values (N, ·) and the ends of their bands, by name."""
    values = np.stack([x, low, high], -1).reshape(len(t), -1)
    return frame(t, values, [f"{name}{end}" for name in names for end in ("", "_low", "_high")])
