"""What was estimated, in tables: values with their errors and intervals, posteriors, and what goes together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from odinfer.result.figures.marks import shown
from odinfer.result.stages import state_band
from odinfer.style.text import TextTable, aligned, number
from odinfer.uncertainty.results import Intervals, sample_intervals

if TYPE_CHECKING:
    from odinfer.result.fit import Fit
    from odinfer.result.stages import ExperimentFit

Array = NDArray[np.float64]
Truth = Mapping[str, float] | None

MOST_INITIAL = 12  # initial values in a table
_MOST_PAIRS = 24  # parameters in a table of correlations
_KNOWN = 1e-5  # of a state's size: an error below it is that of the computation only
_AT_END = 1e-4  # of the longer side: an estimate so near to an end of its interval is at it
STAGES = {"odin": "ODIN stage", "refined": "refined stage"}
# How intervals of a kind are headed: those of posteriors are credible, the others are confidence intervals.
_HEADERS = {"sample": ("posterior sd %", "95 % credible from", "to")}
_DEFAULT = ("std. error %", "95 % from", "to")


@dataclass(frozen=True)
class Estimate:
    """A row of the table: the value, its standard deviation, the ends of its interval, and what other stages found."""

    name: str
    value: float
    sd: float
    ends: tuple[float, float]
    stages: tuple[float, ...]
    known: bool = False

    def cells(self, with_ends: bool) -> tuple[str, ...]:
        """All of it as text, to the same place."""
        low, high = self.ends
        sides = [abs(end - self.value) for end in self.ends if np.isfinite(end)]
        least = _AT_END * max(sides, default=0.0)
        error = self.sd if np.isfinite(self.sd) else min((s for s in sides if s > least), default=np.nan)
        value, low_, high_, *stages = aligned((self.value, low, high, *self.stages), np.nan if self.known else error)
        share = _percent(self.sd / abs(self.value)) if self.value and not self.known else "-"
        pair = (share, *(("-", "-") if self.known else (low_, high_))) if with_ends else ()
        return (self.name, value, *pair, *stages)


def parameter_table(fit: Fit, truth: Truth = None) -> TextTable:
    """A row per parameter and initial value: the estimate, its error, its interval, other stages, the reference."""
    kind, found = shown_intervals(fit)
    header = _HEADERS.get(kind, _DEFAULT) if found else ()
    rows = []
    for row in (*_parameters(fit), *_initial(fit)):
        reference = [number((truth or {}).get(row.name, np.nan))] if truth else []
        rows.append((*row.cells(bool(found)), *reference))
    stages = tuple(STAGES.get(name, name) for name in _others(fit))
    return TextTable(("parameter", "estimate", *header, *stages, *(["reference"] if truth else [])), tuple(rows))


def _others(fit: Fit) -> list[str]:
    """The stages that are not the estimate itself."""
    used = fit.details.get("stage_used", list(fit.stages)[-1] if fit.stages else "")
    return [name for name in fit.stages if name != used]


def _parameters(fit: Fit) -> Iterator[Estimate]:
    fixed = fit.details.get("fixed") or ()
    kind, found = shown_intervals(fit)
    sd = standard_errors(fit, kind)
    for name in fit.parameter_names:
        stages = tuple(fit.stages[s].theta.get(name, np.nan) for s in _others(fit))
        label = f"{name} (fixed)" if name in fixed else name
        ends = found.get(name, (np.nan, np.nan))
        yield Estimate(label, fit.theta.get(name, np.nan), sd.get(name, np.nan), ends, stages, name in fixed)


def standard_errors(fit: Fit, kind: str) -> dict[str, float]:
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
    with np.errstate(invalid="ignore"):
        own = np.sqrt(np.diag(u.covariance))
    return {n: float(s * abs(fit.theta[n]) if n in u.log else s) for n, s in zip(u.names, own, strict=True)}


def _given_once(fit: Fit) -> set[str]:
    """The states whose initial values are given and the same in all experiments."""
    starts = {(e.curve.t[0], *e.curve.x[0]) for e in fit.experiments.values() if len(e.curve.t)}
    if len({start[0] for start in starts}) != 1:
        return set()
    given = fit.details.get("given", ())
    return {s for k, s in enumerate(fit.state_names, 1) if s in given and len({start[k] for start in starts}) == 1}


def _initial(fit: Fit) -> list[Estimate]:
    """A row per state and experiment where its curve starts; the intervals are the bands there, unless it has its own.

    Initial values that are parameters have rows as such; those that are given are said to be.
    """
    rows: list[Estimate] = []
    several = len(fit.experiments) > 1
    everywhere = _given_once(fit) if several else set()
    size = np.max([np.abs(e.curve.x).max(0) for e in fit.experiments.values() if len(e.curve.t)] or [0.0], axis=0)
    for i, (label, e) in enumerate(fit.experiments.items()):
        if not len(e.t):
            continue
        begin, x, sd, low, high = _start(fit, i, e)
        for k in shown(fit, MOST_INITIAL):
            state = fit.state_names[k]
            if {f"{state}(0)", f"{state}(0)[{label}]"} & {*fit.parameter_names} or (state in everywhere and i):
                continue
            name = f"{state}({number(begin)})" + (f", {label}" if several and state not in everywhere else "")
            ends, error = (float(low[k]), float(high[k])), float(sd[k])
            profile = fit.profiles.get(f"{state}(0)" + f"[{label}]" * several)
            if profile is not None:
                ends = profile.interval()
            if fit.posterior is not None:
                draws = fit.posterior.x0.get(f"{label}:{state}" if several else state)
                if draws is not None:
                    ends, error = sample_intervals({"x0": draws})["x0"], float(np.std(draws))
            given = state in fit.details.get("given", ())
            known = given and not _KNOWN * size[k] <= sd[k] < np.inf  # or only its parameters' rows tell
            name = f"{name} (given)" if given else name
            stages = tuple(float(x[k] if fit.noise else fit.stages[s].x[i][0, k]) for s in _others(fit))
            rows.append(Estimate(name, float(x[k]), error, ends, stages, known))
    return rows[:MOST_INITIAL]


def _start(fit: Fit, i: int, e: ExperimentFit) -> tuple[float, Array, Array, Array, Array]:
    """When, where, how surely and between what states start: at the first observation, or when the model says."""
    begin, (x, sd) = float(e.t[0]), (v[0] for v in e.estimate())
    if fit.noise:
        begin, x, sd = float(e.curve.t[0]), e.curve.x[0], e.curve.sd[0]
    low, high = state_band(fit, x, sd)
    b = fit.bootstrapped
    if shown_intervals(fit)[0] == "bootstrap" and b is not None and b.t and begin == e.t[0] and len(b.draws):
        sd, (low, high) = b.x[i][:, 0].std(0), (v[0] for v in b.band(i))
    return begin, x, sd, low, high


def shown_intervals(fit: Fit) -> tuple[str, Intervals]:
    """The 95 % intervals to print and their kind: what was asked for, or the default; empty without any."""
    kinds = fit.intervals_by_kind()
    for kind in ("sample", "bootstrap", "profile", "likelihood"):
        if kind in kinds:
            return kind, kinds[kind]
    return "", {}


def posterior_table(fit: Fit) -> TextTable | None:
    """A row per parameter, initial value and noise level that was drawn; None without draws."""
    p = fit.posterior
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
        cells = aligned((mean, float(np.median(v)), sd, low, high), sd)
        rows.append((name, *cells, _decimals(r_hat.get(name), 3), _decimals(ess.get(name), 0)))
    header = ("quantity", "posterior mean", "median", "sd", "95 % credible from", "to", "R-hat", "effective draws")
    return TextTable(header, tuple(rows)) if rows else None


def _percent(share: float) -> str:
    """Two digits, also where the second is 0."""
    if 0.00995 <= share < 0.0995:
        return f"{100 * share:.1f}"
    return f"{100 * share:.0f}" if 0.995 <= share < 1000 else number(100 * share, 2)


def _decimals(value: float | None, places: int) -> str:
    return "-" if value is None or not np.isfinite(value) else f"{value:.{places}f}"


def correlation_table(fit: Fit) -> TextTable | None:
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
    if not 2 <= len(names) <= _MOST_PAIRS:
        return None
    rows = [(name, *(f"{v:+.2f}" if np.isfinite(v) else "-" for v in r[i, :i]), *[""] * (len(names) - i - 1))
            for i, name in enumerate(names)]  # fmt: skip
    return TextTable(("", *names[:-1]), tuple(rows[1:]))
