"""`PopulationFit`: the result of a fit with random effects."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odinfer.checks import checked_choice, checked_integer
from odinfer.data.data import Data
from odinfer.errors import InputError, listed, nearest
from odinfer.files import readable, write_file
from odinfer.population.estimate import FLAT, Estimate, estimate_at
from odinfer.population.intervals import KINDS, intervals, profile
from odinfer.population.marginal import LARGEST_ERROR, laplace
from odinfer.population.modes import find_modes
from odinfer.population.simulation import Draws, conditional_draws, forecast_new, forecast_subject, simulate
from odinfer.population.structure import Structure, natural
from odinfer.problem.problem import Problem
from odinfer.progress import Progress, no_progress
from odinfer.style.text import abbreviate, format_number
from odinfer.version import __version__

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from odinfer.population.model_test import PopulationTest
    from odinfer.population.posterior import PopulationPosterior

Array = NDArray[np.float64]

FORMAT = "odinfer-population/1"
LEVEL = 0.95
DRAWS = 99  # studies that the test of the model fits again: the smallest p-value is 0.01


@dataclass(frozen=True, eq=False)
class PopulationFit:
    """Maximum likelihood of a model whose parameters vary by subject.

    Attributes:
        problem: the model and the data.
        theta: estimates by name: typical values, standard deviations of random effects, correlations, noise.
        loglik: the exact marginal log-likelihood.
        loglik_error: its numerical error.
        focei, laplace: the log-likelihood at the same values by these approximations.
        intervals: 95 % confidence intervals by name.
        fixed_at_zero: effects whose standard deviation went to zero.
        warnings: sentences about what a reader should know.
        seed: random seed.
        seconds: CPU time.
        model_test: the test of the model as a whole, if it was asked for.
    """

    problem: Problem
    estimate: Estimate
    theta: Mapping[str, float]
    loglik: float
    loglik_error: float
    focei: float
    laplace: float
    intervals: Mapping[str, tuple[float, float]]
    fixed_at_zero: tuple[str, ...]
    warnings: tuple[str, ...]
    seed: int
    seconds: float
    model_test: PopulationTest | None = None

    @property
    def structure(self) -> Structure:
        """The population's parameters and random effects."""
        return self.estimate.structure

    @property
    def converged(self) -> bool:
        """Whether the maximum was found."""
        return self.estimate.converged

    @property
    def status(self) -> str:
        """ "converged", or what happened instead."""
        return "converged" if self.converged else "not converged"

    @property
    def subjects(self) -> tuple[str, ...]:
        """Names of the subjects."""
        return self.structure.subjects

    @property
    def observations(self) -> int:
        """The number of observed values."""
        return int(self.problem.count.sum())

    @property
    def ofv(self) -> float:
        """NONMEM's objective function: −2 log-likelihood without the constant n·log 2π."""
        return -2.0 * self.loglik - self.observations * float(np.log(2.0 * np.pi))

    @property
    def aic(self) -> float:
        """Akaike's information criterion."""
        return -2.0 * self.loglik + 2.0 * len(self.structure.names)

    @property
    def bic(self) -> float:
        """Bayesian information criterion for mixed effects: log N for random, log n for other parameters.

        N subjects, n observations (Delattre, Lavielle and Poursat 2014).
        """
        s = self.structure
        random = {name for e in s.effects for name in e.factors} | {str(e.omega) for e in s.effects}
        R = sum(p.name in random or p.role in ("omega", "correlation", "centre") for p in s.parameters)
        F = len(s.parameters) - R
        return float(-2.0 * self.loglik + R * np.log(len(self.subjects)) + F * np.log(self.observations))

    @functools.cached_property
    def standard_errors(self) -> dict[str, float]:
        """Standard errors by name, from the curvature of the exact likelihood, of the parameters as they stand."""
        s = self.structure
        slopes = s.value_slopes(self.estimate.v)
        variances = np.einsum("pi,ij,pj->p", slopes, self.estimate.covariance, slopes)
        return {n: float(x) for n, x in zip(s.names, np.sqrt(np.maximum(variances, 0.0)), strict=True)}

    def interval(self, level: float = LEVEL, kind: str = "profile") -> dict[str, tuple[float, float]]:
        """Confidence intervals by name.

        Args:
            level: confidence level.
            kind: "profile" of the exact likelihood, or its "curvature".
        """
        checked_choice("kind", kind, KINDS)
        if not 0.0 < level < 1.0:
            raise InputError(f"level must lie between 0 and 1, not {level:g}")
        if kind == "profile" and level == LEVEL:
            return dict(self.intervals)
        return intervals(self.estimate, level, kind)

    def profile(self, name: str) -> pd.Series[float]:
        """The profile of the exact log-likelihood: its maximum over all else, by values of a parameter."""
        import pandas as pd

        if name not in self.structure.names:
            raise InputError(f"the population has no parameter '{name}'{nearest(name, self.structure.names)}")
        values, loglik = profile(self.estimate, name)
        return pd.Series(loglik, index=pd.Index(values, name=name), name="loglik")

    @functools.cached_property
    def _posterior(self) -> tuple[Array, Array]:
        """Posterior means (E, D) and standard deviations (E, D) of all latent values."""
        s, v = self.structure, self.estimate.v
        mean, cov, _ = self.estimate.marginal.nodes.moments(v)
        full, sd = s.means(v)[0].copy(), np.zeros((len(s.subjects), len(s.effects)))
        full[:, s.active] = mean
        sd[:, s.active] = np.sqrt(np.maximum(np.einsum("eii->ei", cov), 0.0))
        return full, sd

    @property
    def eta(self) -> pd.DataFrame:
        """Conditional means of the random effects, a row per subject."""
        import pandas as pd

        s = self.structure
        values = self._posterior[0] - s.means(self.estimate.v)[0]
        return pd.DataFrame(values, index=pd.Index(s.subjects, name="subject"), columns=[e.name for e in s.effects])

    @property
    def shrinkage(self) -> dict[str, float]:
        """Share of each effect's standard deviation that the conditional means do not show."""
        s, eta = self.structure, self.eta
        sd = np.sqrt(np.diag(s.covariance(self.estimate.v)))
        own = [(name, sd[k]) for k, i in enumerate(s.active) if (name := s.effects[i].name) in s.varying]
        return {name: float(1.0 - eta[name].std(ddof=0) / omega) for name, omega in own}

    @property
    def individual(self) -> pd.DataFrame:
        """Individual parameters with 95 % bands: conditional mean ± 1.96 sd on the scale of the random effects."""
        import pandas as pd

        mean, sd = self._posterior
        columns: dict[str, Array] = {}
        for i, e in enumerate(self.structure.effects):
            for end, z in (("", 0.0), ("_low", -1.96), ("_high", 1.96)):
                columns[e.name + end] = natural(e.family, mean[:, i] + z * sd[:, i])
        return pd.DataFrame(columns, index=pd.Index(self.subjects, name="subject"))

    def conditional(self, draws: int = 100, seed: int = 0) -> pd.DataFrame:
        """Individual parameters drawn from their distribution given the subject's data, a row per subject and draw."""
        import pandas as pd

        theta = conditional_draws(self.estimate, checked_integer("draws", draws, 1), seed)[1]
        names = self.structure.problem.model.parameters
        index = pd.MultiIndex.from_product([self.subjects, range(draws)], names=["subject", "draw"])
        own = [e.name for e in self.structure.effects]
        return pd.DataFrame(theta.reshape(-1, theta.shape[2]), index=index, columns=list(names))[own]

    @functools.cached_property
    def residuals(self) -> pd.DataFrame:
        """Observations with population and individual predictions and standardised residuals, a row each.

        `individual_residual` is standardised by the noise at the individual prediction. `residual` is the normal score
        of the observation among 500 simulated ones of its subject.
        """
        from odinfer.population.simulation import residual_table

        return residual_table(self.estimate, self.seed)

    def simulate(self, replicates: int = 200, seed: int = 0) -> list[Data]:
        """Studies of the same design drawn from the fitted population."""
        return simulate(self.estimate, replicates, seed)

    def forecast(
        self,
        t: ArrayLike,
        subject: str | None = None,
        data: Data | None = None,
        draws: int = 1000,
        seed: int = 0,
    ) -> Draws:
        """Predictions at times t with their distribution.

        Args:
            t: times.
            subject: one of the data, whose random effects have their distribution given its data.
            data: a subject that was not in the fit: its doses, inputs and covariates, and any observations of it.
                Without either, a subject is drawn from the population with the doses of the first one.
            draws: how many sets of random effects are drawn.
            seed: of the draws.
        """
        times = np.unique(np.asarray(t, float))
        if data is not None:
            return forecast_new(self.estimate, times, data, draws, seed)
        if subject is not None and subject not in self.subjects:
            raise InputError(f"there is no subject '{subject}'{nearest(str(subject), self.subjects)}")
        return forecast_subject(self.estimate, times, subject, draws, seed)

    def test(
        self,
        draws: int = DRAWS,
        seed: int | None = None,
        workers: int = 1,
        cluster: str | None = None,
        progress: Progress | None = None,
    ) -> PopulationTest:
        """Test the model as a whole by simulated studies that are fitted again.

        Returns:
            p-values of the percentiles of the data over time, and of the normality of the random effects.
        """
        from odinfer.population.model_test import judge

        seed = self.seed if seed is None else seed
        return judge(self, checked_integer("draws", draws, 19), seed, workers, cluster, progress)

    def sample(self, draws: int = 1000, prior: Mapping[str, Any] | None = None, seed: int = 0) -> PopulationPosterior:
        """Draw from the posterior of the population's parameters and of all subjects.

        Args:
            draws: how many.
            prior: parameter → ("normal", mean, sd), ("lognormal", median, sd of log) or another as of `Problem`. By
                default, standard deviations of random effects and correlation matrices are uniform, other positive
                parameters uniform in their logarithm, and others as they stand.
            seed: of the draws.
        """
        from odinfer.population.posterior import sample

        return sample(self.estimate, dict(prior or {}), checked_integer("draws", draws, 1), seed)

    def summary(self) -> str:
        """The table of the population, what the likelihood is, and what to note."""
        from odinfer.population.summary import summary

        return summary(self)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"<PopulationFit: {len(self.subjects)} subjects, log-likelihood {self.loglik:.3f}, {self.status}>"

    @property
    def table(self) -> pd.DataFrame:
        """Estimates with standard errors and 95 % intervals, a row per parameter."""
        import pandas as pd

        rows = {
            name: {
                "estimate": self.theta[name],
                "se": self.standard_errors.get(name, np.nan),
                "low": self.intervals.get(name, (np.nan, np.nan))[0],
                "high": self.intervals.get(name, (np.nan, np.nan))[1],
            }
            for name in self.theta
        }
        return pd.DataFrame.from_dict(rows, orient="index")

    def plot(self, kind: str = "fits", ax: Any = None, **options: Any) -> Figure:
        """Draw a picture.

        Args:
            kind: "fits", "individual", "spaghetti", "observed", "residuals", "vpc", "effects" or "covariates".
            ax: matplotlib axes to draw into, or a list of them, one for each panel.
            options: `by="sex"` of "spaghetti" and "vpc": a panel for each label of a covariate, or for its values
                below and above the median. `subjects=["3", "7"]` of "fits".
        """
        from odinfer.population.figures import PICTURES, draw

        return draw(self, checked_choice("kind", kind, tuple(PICTURES)), ax, **options)

    def document(self) -> dict[str, Any]:
        """The result as plain values."""
        individual = self.individual
        return {
            "format": FORMAT,
            "version": __version__,
            "model": self.problem.model.name,
            "equations": self.problem.model.text,
            "status": self.status,
            "subjects": len(self.subjects),
            "observations": self.observations,
            "loglik": self.loglik,
            "loglik_error": self.loglik_error,
            "ofv": self.ofv,
            "aic": self.aic,
            "bic": self.bic,
            "focei": self.focei,
            "laplace": self.laplace,
            "theta": dict(self.theta),
            "standard_errors": self.standard_errors,
            "intervals": {name: list(ends) for name, ends in self.intervals.items()},
            "shrinkage": self.shrinkage,
            "fixed_at_zero": list(self.fixed_at_zero),
            "individual": {s: dict(individual.loc[s]) for s in self.subjects},
            "eta": {s: dict(self.eta.loc[s]) for s in self.subjects},
            "model_test": None if self.model_test is None else asdict(self.model_test),
            "warnings": list(self.warnings),
            "seed": self.seed,
            "seconds": self.seconds,
        }

    def save(self, path: str | Path) -> None:
        """Write estimates as `.json` or `.nc` (netCDF), individual parameters as `.csv`, or an `.html` report."""
        path = Path(path)
        if path.suffix == ".json":
            write_file(path, as_json(self.document()))
        elif path.suffix == ".csv":
            write_file(path, self.individual.to_csv())
        elif path.suffix == ".nc":
            from odinfer.population.export import write_netcdf

            write_netcdf(self, path)
        elif path.suffix == ".html":
            from odinfer.population.report import html

            write_file(path, html(self))
        else:
            raise InputError(f"cannot write '{path.name}'; choose a name that ends in .json, .nc, .csv or .html")


def as_json(document: Mapping[str, Any]) -> str:
    """Plain values as the text of a JSON file."""
    return json.dumps(_finite(document), indent=1, ensure_ascii=False) + "\n"


def saved_estimate(path: Path, problem: Problem) -> Estimate:
    """The estimate in a fit.json of the same problem, without a search.

    Raises:
        InputError: the file cannot be read, or is no population fit of this model.
    """
    try:
        content = json.loads(readable(path).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {path}: {getattr(error, 'strerror', None) or 'it is not JSON'}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f"{path} is no population fit; give the fit.json that `odinfer fit` wrote for this model")
    equations, fixed, theta = (content.get(key) for key in ("equations", "fixed_at_zero", "theta"))
    if equations != problem.model.text:
        raise InputError(f"{path} is a fit of other equations; fit this model, or give the model of that fit")
    structure = Structure.of(problem)
    known = [e.name for e in structure.effects]
    if not isinstance(theta, dict) or not isinstance(fixed, list) or not all(name in known for name in fixed):
        raise InputError(f"{path} is damaged: 'theta' or 'fixed_at_zero' is not what `odinfer fit` writes; fit again")
    for name in fixed:
        if name not in structure.fixed_at_zero:
            structure = structure.without(name)
    return estimate_at(structure, {n: x for n, x in theta.items() if n in structure.names})


def _finite(value: Any) -> Any:
    """Values that JSON has: numbers that are not finite become null."""
    if isinstance(value, Mapping):
        return {str(key): _finite(own) for key, own in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_finite(own) for own in value]
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    return value


def made(problem: Problem, found: Estimate, seed: int, progress: Progress = no_progress) -> PopulationFit:
    """The result of an estimate, with intervals and the usual approximations of the likelihood."""
    modes = find_modes(found.engine, found.v)
    s = found.structure
    theta = s.values(found.v)
    limits = intervals(found, progress=progress)
    theta |= {omega: 0.0 for omega in s.fixed_at_zero.values() if omega not in theta}
    warnings = _warnings(found, theta)
    return PopulationFit(
        problem, found, theta, found.marginal.value, found.marginal.error,
        float(laplace(found.engine, found.v, modes, expected=True).sum()),
        float(laplace(found.engine, found.v, modes).sum()),
        limits, tuple(s.fixed_at_zero), warnings, seed, 0.0,
    )  # fmt: skip


def _warnings(found: Estimate, theta: Mapping[str, float]) -> tuple[str, ...]:
    """What a reader should know, in a sentence each."""
    s, warnings = found.structure, []
    for name in s.fixed_at_zero:
        warnings.append(f"The variation of {name} between subjects is estimated as zero and was fixed there.")
    if found.marginal.error > LARGEST_ERROR:
        warnings.append(f"The numerical error of the log-likelihood is {found.marginal.error:.2g}, which is large.")
    every = np.arange(len(s.subjects))
    unsettled = found.engine.subjects.unsettled(s.individual(found.v, every, s.means(found.v)[0]))
    if unsettled:
        named = listed(abbreviate(unsettled))
        warnings.append(
            f"The doses before do not lead to a steady state, as the data say, in {named}; give these doses."
        )
    if not found.converged:
        warnings.append("The maximum of the likelihood was not reached.")
    warnings += [f"{name} is one parameter, in a centre and in the equations or the noise." for name in s.used_twice]
    flat = np.diag(found.covariance) >= FLAT**2
    for i, p in enumerate(s.parameters):
        if p.role == "correlation" and abs(theta[p.name]) > 0.98:
            warnings.append(
                f"{p.name} is close to {np.sign(theta[p.name]):+.0f}: the data show fewer directions of variation."
            )
        elif flat[i] and p.low == 0.0 and found.v[i] < 0:
            warnings.append(f"{p.name} is estimated as zero, where the likelihood no longer changes with it.")
        elif flat[i]:
            warnings.append(f"The likelihood hardly depends on {p.name}; fix it, or give more data.")
    if s.sparse:
        warnings.append(s.sparse)
    for value, other in found.others:
        shown = ", ".join(f"{n} = {format_number(other[n], 3)}" for n in s.names if n in other)
        kind = "higher" if value > found.marginal.value else "nearly as high"
        warnings.append(
            f"The likelihood has another maximum that is {kind} ({value - found.marginal.value:+.1f}): {shown}; "
            "choose by start values."
        )
    return tuple(warnings)
