"""The part of a fit that tables and panels of many series need, small enough to keep for thousands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from odinfer.diagnostics.equation_test import FALSE_ALARMS
from odinfer.diagnostics.model_test import ModelTest
from odinfer.diagnostics.verdicts import CONTRADICTS
from odinfer.result.estimates import preferred_intervals
from odinfer.result.stages import state_band

if TYPE_CHECKING:
    from odinfer.result.fit import Fit

Array = NDArray[np.float64]
Estimate = tuple[float, float, float]  # the value and the ends of its 95 % interval, NaN where it has none

WHOLE_MODEL = "the model"
_CURVE_POINTS = 48  # points of a curve in a picture
_MAX_STATES = 12  # whose initial values and curves are kept


@dataclass(frozen=True, eq=False)
class Row:
    """One series.

    Attributes:
        status, converged: how its fit ended.
        theta: the estimated parameters.
        start, initial: where its states start, and what is estimated of them there.
        sigma: noise of its columns.
        rejected: states whose equations its data contradict; or the model as a whole.
        t, x: predicted values of its first columns (D, M) at a few times (D,); empty where there are none.
    """

    status: str
    converged: bool = False
    theta: dict[str, Estimate] = field(default_factory=dict)
    start: float = np.nan
    initial: dict[str, Estimate] = field(default_factory=dict)
    sigma: dict[str, float] = field(default_factory=dict)
    rejected: tuple[str, ...] = ()
    t: Array = field(default_factory=lambda: np.empty(0))
    x: Array = field(default_factory=lambda: np.empty((0, 0)))

    @staticmethod
    def of(fit: Fit) -> Row:
        """Of the fit of one experiment."""
        fixed, ends = fit.details.get("fixed") or (), preferred_intervals(fit)[1]
        nothing = (np.nan, np.nan)
        theta = {n: (v, *ends.get(n, nothing)) for n, v in fit.theta.items() if n not in fixed}
        rejected = tuple(name for name in fit.state_names if fit.verdicts.get(name) == CONTRADICTS)
        if not rejected and ModelTest.of(fit.details.get("model_test")).contradicts(FALSE_ALARMS):
            rejected = (WHOLE_MODEL,)
        t, x = _thin_curve(fit)
        return Row(fit.status, fit.converged, theta, *_initial(fit), dict(fit.sigma), rejected, t, x)


def _initial(fit: Fit) -> tuple[float, dict[str, Estimate]]:
    """The time at which states start, and those of them that are estimated there, but not as parameters."""
    (e,) = fit.experiments.values()
    if fit.noise:
        begin, x, sd = e.curve.t[0], e.curve.x[0], e.curve.sd[0]
    else:
        begin, (x, sd) = e.t[0], (v[0] for v in e.estimate())
    known = {*fit.details.get("given", ()), *(s for s in fit.state_names if f"{s}(0)" in fit.parameter_names)}
    each = zip(fit.state_names, *(v.tolist() for v in (x, *state_band(fit, x, sd))), strict=True)
    found = {name: (v, low, high) for name, v, low, high in each if name not in known}
    return float(begin), dict(list(found.items())[:_MAX_STATES])


def _thin_curve(fit: Fit) -> tuple[Array, Array]:
    """The curve of each observed column, as fine as a small picture can show it."""
    (e,) = fit.experiments.values()
    x = (e.curve.x if e.expected is None else e.expected)[:, :_MAX_STATES]
    if not np.isfinite(x).all():
        return np.empty(0), np.empty((0, 0))
    some = np.unique(np.linspace(0, len(x) - 1, _CURVE_POINTS).round().astype(int))
    return e.curve.t[some], x[some]
