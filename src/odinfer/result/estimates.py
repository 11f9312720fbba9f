"""Tables of estimates with errors and intervals, posteriors, and correlated parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from odinfer.result.figures.marks import states_to_show
from odinfer.result.stages import state_band
from odinfer.style.text import TextTable, format_number, format_with_error
from odinfer.uncertainty.results import Intervals, sample_intervals

if TYPE_CHECKING:
    import pandas as pd

    from odinfer.result.fit import FitResult
    from odinfer.result.stages import ExperimentFit

Array = NDArray[np.float64]
Truth = Mapping[str, float] | None

MAX_INITIAL_VALUES = 12  # initial values in a table
_MAX_CORRELATED = 24  # parameters in a table of correlations
_NUMERICAL_ERROR = 1e-5  # of a state's size: an error below it is that of the computation only
_AT_LIMIT = 1e-4  # of the longer side: an estimate so near to an end of its interval is at it
_SAME = 0.02  # relative difference below which two solutions have the same value of a parameter
STAGES = {"odin": "ODIN (slopes)", "refined": "maximum likelihood"}
# How intervals of a kind are headed: those of posteriors are credible, the others are confidence intervals.
_HEADERS = {"sample": ("posterior sd %", "95 % credible from", "to")}
_DEFAULT = ("std. error %", "95 % from", "to")


@dataclass(frozen=True)
class Estimate:
    """A row of the table: the value, its standard deviation, the limits of its interval.

    Attributes:
        known: whether it has no error.
        note: "fixed" for parameters, "given" for initial values, or nothing.
    """

    name: str
    value: float
    sd: float
    ends: tuple[float, float]
    known: bool = False
    note: str = ""

    @property
    def label(self) -> str:
        return f"{self.name} ({self.note})" if self.note else self.name

    def cells(self, with_ends: bool) -> tuple[str, ...]:
        """All of it as text, to the same place."""
        low, high = self.ends
        sides = [abs(end - self.value) for end in self.ends if np.isfinite(end)]
        least = _AT_LIMIT * max(sides, default=0.0)
        error = self.sd if np.isfinite(self.sd) else min((s for s in sides if s > least), default=np.nan)
        value, low_, high_ = format_with_error((self.value, low, high), np.nan if self.known else error)
        share = _percent(self.sd / abs(self.value)) if self.value and not self.known else "-"
        pair = (share, *(("-", "-") if self.known else (low_, high_))) if with_ends else ()
        return (self.label, value, *pair)


def parameter_table(fit: FitResult, truth: Truth = None) -> TextTable:
    """A row per parameter and initial value: the estimate, its error, its interval, the reference."""
    kind, found = preferred_intervals(fit)
    header = _HEADERS.get(kind, _DEFAULT) if found else ()
    rows = []
    for row in (*_parameters(fit), *_initial(fit, MAX_INITIAL_VALUES)[:MAX_INITIAL_VALUES]):
        reference = [format_number((truth or {}).get(row.name, np.nan))] if truth else []
        rows.append((*row.cells(bool(found)), *reference))
    return TextTable(("parameter", "estimate", *header, *(["reference"] if truth else [])), tuple(rows))


def solutions_table(fit: FitResult) -> TextTable | None:
    """A column per solution that fits the data as well, with the parameters that differ; None if there is one only."""
    others = fit.details.get("alternatives") or ()
    if not others:
        return None
    names = [n for n in others[0] if any(not np.isclose(o[n], fit.theta.get(n, np.nan), rtol=_SAME) for o in others)]
    rows = [(n, *(format_number(s[n], 4) for s in (fit.theta, *others))) for n in names if n in fit.theta]
    loglik = [fit.details.get("loglik", np.nan), *fit.details.get("alternatives_loglik", [np.nan] * len(others))]
    header = ("solution", "this one", *(f"other {i + 1}" for i in range(len(others))))
    return TextTable(header, (*rows, ("log-likelihood", *(format_number(v, 6) for v in loglik))))


def initial_rows(fit: FitResult) -> int:
    """Count the rows that all initial values would take in `parameter_table`, which shows MOST_INITIAL at most."""
    return len(_initial(fit, len(fit.state_names)))


def estimate_frame(fit: FitResult) -> pd.DataFrame:
    """Parameters and initial values as numbers: estimate, stderr, low, high and note, a row each."""
    import pandas as pd

    rows = {
        row.name: (row.value, np.nan if row.known else row.sd, *((np.nan, np.nan) if row.known else row.ends), row.note)
        for row in (*_parameters(fit), *_initial(fit, len(fit.state_names)))
    }
    columns = ["estimate", "stderr", "low", "high", "note"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("parameter")


def _parameters(fit: FitResult) -> Iterator[Estimate]:
    fixed = fit.details.get("fixed") or ()
    kind, found = preferred_intervals(fit)
    sd = standard_errors(fit, kind)
    hidden = fit.details.get("coefficients") or ()
    for name in fit.parameter_names:
        if name in hidden:
            continue
        ends, known = found.get(name, (np.nan, np.nan)), name in fixed
        value, error = fit.theta.get(name, np.nan), sd.get(name, np.nan)
        yield Estimate(name, value, error, ends, known, "fixed" if known else "")


def standard_errors(fit: FitResult, kind: str) -> dict[str, float]:
    """Standard deviations of the estimated parameters in their units: by the covariance, or of draws of a kind."""
    draws: Mapping[str, Array] = {}
    if kind == "sample":
        draws = fit.draws
    elif kind == "bootstrap" and fit.bootstrapped is not None:
        draws = fit.bootstrapped.theta
    if draws:
        with np.errstate(over="ignore", invalid="ignore"):  # of chains that ran away
            return {name: float(np.std(v)) for name, v in draws.items() if np.size(v)}
    u = fit.uncertainty
    if u is None:
        return {}
    with np.errstate(invalid="ignore"):  # of parameters at zero whose logarithms are not determined
        own = np.sqrt(np.diag(u.covariance))
        return {n: float(s * abs(fit.theta[n]) if n in u.log else s) for n, s in zip(u.names, own, strict=True)}


def _common_initial_values(fit: FitResult) -> set[str]:
    """The states whose initial values are given and the same in all experiments."""
    starts = {(e.curve.t[0], *e.curve.x[0]) for e in fit.experiments.values() if len(e.curve.t)}
    if len({start[0] for start in starts}) != 1:
        return set()
    given = fit.details.get("given", ())
    return {s for k, s in enumerate(fit.state_names, 1) if s in given and len({start[k] for start in starts}) == 1}


def _initial(fit: FitResult, most: int) -> list[Estimate]:
    """A row per state and experiment where its curve starts; the intervals are the bands there, unless it has its own.

    Initial values that are parameters have rows as such. At most `most` states are listed.
    """
    rows: list[Estimate] = []
    several = len(fit.experiments) > 1
    everywhere = _common_initial_values(fit) if several else set()
    size = np.max([np.abs(e.curve.x).max(0) for e in fit.experiments.values() if len(e.curve.t)] or [0.0], axis=0)
    for i, (label, e) in enumerate(fit.experiments.items()):
        if not len(e.t):
            continue
        begin, x, sd, low, high = _initial_state(fit, i, e)
        for k in states_to_show(fit, most):
            state = fit.state_names[k]
            if {f"{state}(0)", f"{state}(0)[{label}]"} & {*fit.parameter_names} or (state in everywhere and i):
                continue
            name = f"{state}({format_number(begin)})" + (f", {label}" if several and state not in everywhere else "")
            ends, error = (float(low[k]), float(high[k])), float(sd[k])
            profile = fit.profiles.get(f"{state}(0)" + f"[{label}]" * several)
            if profile is not None:
                ends = profile.interval()
            if fit.sampled is not None:
                draws = fit.sampled.x0.get(f"{label}:{state}" if several else state)
                if draws is not None:
                    ends, error = sample_intervals({"x0": draws})["x0"], float(np.std(draws))
            given = state in fit.details.get("given", ())
            known = given and not _NUMERICAL_ERROR * size[k] <= sd[k] < np.inf  # or only its parameters' rows tell
            rows.append(Estimate(name, float(x[k]), error, ends, known, "given" if given else ""))
    return rows


def _initial_state(fit: FitResult, i: int, e: ExperimentFit) -> tuple[float, Array, Array, Array, Array]:
    """When, where, how surely and between what states start: at the first observation, or when the model says."""
    begin, (x, sd) = float(e.t[0]), (v[0] for v in e.estimate())
    if fit.noise:
        begin, x, sd = float(e.curve.t[0]), e.curve.x[0], e.curve.sd[0]
    low, high = state_band(fit, x, sd)
    b = fit.bootstrapped
    if preferred_intervals(fit)[0] == "bootstrap" and b is not None and b.t and begin == e.t[0] and len(b.draws):
        sd, (low, high) = b.x[i][:, 0].std(0), (v[0] for v in b.band(i))
    return begin, x, sd, low, high


def preferred_intervals(fit: FitResult) -> tuple[str, Intervals]:
    """The 95 % intervals to print and their kind: what was asked for, or the default; empty without any."""
    kinds = fit.intervals_by_kind()
    for kind in ("sample", "bootstrap", "profile", "likelihood"):
        if kind in kinds:
            return kind, kinds[kind]
    return "", {}


def posterior_table(fit: FitResult) -> TextTable | None:
    """A row per parameter, initial value and noise level that was drawn; None without draws."""
    p = fit.sampled
    r_hat, ess = (p.r_hat, p.ess) if p is not None else (fit.details.get("r_hat", {}), fit.details.get("ess", {}))
    draws = dict(fit.draws)
    if p is not None:
        draws |= {f"start of {name}": v for name, v in p.x0.items()} | {
            f"σ of {name}": v for name, v in p.sigma.items()
        }
    rows = []
    for name, v in draws.items():
        low, high = sample_intervals({name: v})[name]
        with np.errstate(over="ignore", invalid="ignore"):
            mean, sd = float(np.mean(v)), float(np.std(v))
        cells = format_with_error((mean, float(np.median(v)), sd, low, high), sd)
        rows.append((name, *cells, _decimals(r_hat.get(name), 3), _decimals(ess.get(name), 0)))
    header = ("quantity", "posterior mean", "median", "sd", "95 % credible from", "to", "R-hat", "effective draws")
    return TextTable(header, tuple(rows)) if rows else None


def _percent(share: float) -> str:
    """Two digits, also where the second is 0."""
    if 0.00995 <= share < 0.0995:
        return f"{100 * share:.1f}"
    return f"{100 * share:.0f}" if 0.995 <= share < 1000 else format_number(100 * share, 2)


def _decimals(value: float | None, places: int) -> str:
    return "-" if value is None or not np.isfinite(value) else f"{value:.{places}f}"


def correlation_table(fit: FitResult) -> TextTable | None:
    """Correlations of the estimates of parameters, those of posteriors if there are draws; None without any."""
    draws = fit.draws
    if draws:
        names, values = list(draws), np.stack([np.ravel(v) for v in draws.values()])
        with np.errstate(all="ignore"):
            r = np.atleast_2d(np.corrcoef(values))
    elif fit.uncertainty is not None:
        names, C = list(fit.uncertainty.names), fit.uncertainty.covariance
        with np.errstate(all="ignore"):
            sd = np.sqrt(np.diag(C))
            r = C / np.outer(sd, sd)
    else:
        return None
    if not 2 <= len(names) <= _MAX_CORRELATED:
        return None
    rows = [(name, *(f"{v:+.2f}" if np.isfinite(v) else "-" for v in r[i, :i]), *[""] * (len(names) - i - 1))
            for i, name in enumerate(names)]  # fmt: skip
    return TextTable(("", *names[:-1]), tuple(rows[1:]))
