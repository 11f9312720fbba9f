"""Plain data of uncertainty: intervals, profiles, bootstrap and posterior draws."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from odinfer.errors import InputError
from odinfer.uncertainty.small_sample import CONFIDENCE, threshold

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
Intervals = dict[str, tuple[float, float]]

BAND = 1.959963984540054  # half a 95 % band in standard deviations of a normal distribution
_NEAR = 0.01  # relative error of the root of the fall, to which ends are found
_NAMED = 6  # intervals in a repr
_APART = 3.0  # points of a profile that are so many times as far from the estimate as those before are far apart
# Kinds of intervals beyond the default, for `--uncertainty` and `Fit.interval(kind=...)`.
KINDS = ("likelihood", "profile", "bootstrap", "sample")


def checked_level(level: float) -> float:
    """A level of confidence, or an InputError."""
    if not isinstance(level, float | int | np.floating) or not 0.0 < level < 1.0:
        raise InputError(f"level must be between 0 and 1, for example 0.95, not {level!r}")
    return float(level)


@dataclass(frozen=True, eq=False, repr=False)
class Uncertainty:
    """The default: likelihood intervals of the parameters, and their covariance.

    Attributes:
        names: the estimated parameters (F).
        log: those on a log scale, on which their covariance and intervals are made.
        covariance: (F, F) on each parameter's own scale: of log θ where it is log.
        freedom: degrees of freedom (F,) behind each variance, for Student's t.
        level: of the interval.
        low, high: its ends (F,) in the parameters' units; infinite where the data set no limit.
        notes: sentences on what the data cannot determine.
    """

    names: tuple[str, ...]
    log: tuple[str, ...]
    covariance: Array
    freedom: Array
    level: float
    low: Array
    high: Array
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Uncertainty: {_in_words(self.interval())}>"

    def interval(self) -> Intervals:
        return {n: (float(a), float(b)) for n, a, b in zip(self.names, self.low, self.high, strict=True)}


@dataclass(frozen=True, eq=False, repr=False)
class Profile:
    """The profile likelihood of one parameter.

    Attributes:
        name, estimate: of the parameter.
        values: (M,) increasing, in the parameter's units.
        likelihoods: the best log-likelihood at each (M,), relative to the highest, hence ≤ 0; a prior counts in.
        limits: what the values can reach at most: bounds or infinity.
        freedom, count: for the small-sample correction, see `threshold`.
    """

    name: str
    estimate: float
    values: Array
    likelihoods: Array
    limits: tuple[float, float]
    freedom: float
    count: float

    def __repr__(self) -> str:
        return f"<Profile likelihood: {self.name} = {self.estimate:.4g}, {_in_words({self.name: self.interval()})}>"

    def interval(self, level: float = CONFIDENCE) -> tuple[float, float]:
        """Where the likelihood ratio is not too small; a limit where it never gets so small."""
        wanted = float(np.sqrt(threshold(self.freedom, self.count, checked_level(level))))
        root = np.sqrt(np.maximum(-2.0 * self.likelihoods, 0.0))
        near = _NEAR if level == CONFIDENCE else 0.0  # at this level ends are points of the profile
        found = []
        for side, limit in ((-1.0, self.limits[0]), (1.0, self.limits[1])):
            here = side * (self.values - self.estimate) >= 0
            v, r = self.values[here][:: int(side)], root[here][:: int(side)]
            out = np.flatnonzero(r >= (1.0 - near) * wanted)
            if not len(out):
                found.append(float(limit))
            elif out[0] == 0 or r[out[0]] <= (1.0 + near) * wanted:
                found.append(float(v[out[0]]))
            else:
                found.append(self._interpolate(v[out[0] - 1], v[out[0]], *(r[out[0] - 1 : out[0] + 1] / wanted)))
        return found[0], found[1]

    def _interpolate(self, inner: float, outer: float, less: float, more: float) -> float:
        """Where the root of the fall is one, between points where it is less and more; far apart, on a log scale."""
        near, far, share = abs(inner - self.estimate), abs(outer - self.estimate), (1.0 - less) / (more - less)
        if far > _APART * near > 0:
            return float(self.estimate + (outer - inner) / (far - near) * near * (far / near) ** share)
        return float(inner + share * (outer - inner))

    def plot(self, path: str | Path | None = None, ax: Axes | None = None) -> Figure:
        """Plot on matplotlib axes or on a new figure, write it to `path` if given; return the figure."""
        from odinfer.style.picture import draw_panels
        from odinfer.uncertainty.figures import profiles_figure, profiles_picture

        if ax is None:
            figure = profiles_figure({self.name: self})
        else:
            figure = draw_panels(profiles_picture({self.name: self}), ax)[0].figure.figure
        if path is not None:
            figure.savefig(path, dpi=150)
        return figure


@dataclass(frozen=True, eq=False, repr=False)
class Bootstrap:
    """Refits to data simulated from the fit.

    Attributes:
        names, log: the estimated parameters, and those on a log scale.
        draws: estimates of every refit (n, F), on each parameter's own scale.
        t: times (N,) per experiment: of the observations, or of 2,000 of them, and beyond if asked for.
        x: states of every refit there, one (n, N, K) array per experiment.
        failed: how many refits found no trajectory, and are left out.
    """

    names: tuple[str, ...]
    log: tuple[str, ...]
    draws: Array
    t: tuple[Array, ...]
    x: tuple[Array, ...]
    failed: int

    def __repr__(self) -> str:
        failed = f" ({self.failed} failed)" if self.failed else ""
        return f"<Bootstrap: {len(self.draws)} refits{failed}; {_in_words(self.interval())}>"

    @property
    def theta(self) -> dict[str, Array]:
        """Refitted parameters by name, each (n,)."""
        return {n: np.exp(v) if n in self.log else v for n, v in zip(self.names, self.draws.T, strict=True)}

    def interval(self, level: float = CONFIDENCE) -> Intervals:
        """Quantiles of the refits, as much left out below as above."""
        return sample_intervals(self.theta, level)

    def band(self, experiment: int = 0, level: float = CONFIDENCE) -> tuple[Array, Array]:
        """Quantiles (N, K) of the states at the times t."""
        return _ends(self.x[experiment], level)


@dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    """Draws from a posterior.

    Attributes:
        target: "trajectory" or "odin".
        theta: parameter → draws (chain, draw).
        x0, sigma: the same of initial values (experiment, state → here "state" or "experiment:state") and noise.
        stats: "diverging", "acceptance_rate", "n_steps", "lp" → (chain, draw).
        r_hat, ess: of every parameter.
        divergences: number of divergent draws.
        status, converged: whether to believe it, in words and as a truth value.
        seconds: of sampling.
        t, x: per experiment, times (D,) and states of thinned draws (S, D, K).
    """

    target: str
    theta: dict[str, Array]
    x0: dict[str, Array]
    sigma: dict[str, Array]
    stats: dict[str, Array]
    r_hat: dict[str, float]
    ess: dict[str, float]
    divergences: int
    status: str
    converged: bool
    seconds: float
    t: tuple[Array, ...] = ()
    x: tuple[Array, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        chains, draws = np.shape(next(iter(self.theta.values()), np.empty((0, 0))))
        size = f"{chains} chains × {draws} draws, {self.status}"
        return f"<Posterior ({self.target}): {size}; {_in_words(self.interval())}>"

    def to_arviz(self) -> Any:
        """Return the draws as ArviZ's InferenceData (ArviZ 0.x) or DataTree (1.x); needs the package arviz."""
        from odinfer.uncertainty.arviz_format import to_arviz

        return to_arviz(self)

    def interval(self, level: float = CONFIDENCE) -> Intervals:
        """Quantiles of the draws, as much left out below as above."""
        return sample_intervals(self.theta, level)

    def band(self, experiment: int = 0, level: float = CONFIDENCE) -> tuple[Array, Array]:
        """Quantiles (D, K) of the states at the times t."""
        return _ends(self.x[experiment], level)


def _in_words(intervals: Intervals) -> str:
    """Return 95 % intervals on one line, the first six of them."""
    parts = [f"{name} {low:.4g} to {high:.4g}" for name, (low, high) in [*intervals.items()][:_NAMED]]
    more = f", and {len(intervals) - _NAMED} more" if len(intervals) > _NAMED else ""
    return f"95 %: {', '.join(parts)}{more}"


def sample_intervals(samples: dict[str, Array], level: float = CONFIDENCE) -> Intervals:
    """Quantiles of draws by name."""
    ends = {name: _ends(np.ravel(draws), level) for name, draws in samples.items()}
    return {name: (float(low), float(high)) for name, (low, high) in ends.items()}


def _ends(draws: Array, level: float) -> tuple[Array, Array]:
    """Quantiles (...) of draws (n, ...), as much left out below as above; NaN where there are no draws."""
    level = checked_level(level)
    if not len(draws):
        return np.full(draws.shape[1:], np.nan), np.full(draws.shape[1:], np.nan)
    low, high = np.quantile(draws, [0.5 * (1.0 - level), 0.5 * (1.0 + level)], axis=0)
    return low, high
