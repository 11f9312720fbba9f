"""The cheapest next measurement for every parameter that the data do not determine."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from odinfer.errors import InputError
from odinfer.optimal_design.entry import design
from odinfer.optimal_design.result import percent
from odinfer.result.fit import Fit
from odinfer.style.text import format_number

_MOST = 4  # parameters for which a measurement is proposed: a design for each takes time
_LONGER = 4.0  # times the time span of the data: how long an experiment may be continued
_FACTOR = 2.0  # by which a measurement must lower a standard error to be worth a sentence


def with_next_measurements(fit: Fit) -> Fit:
    """The fit, whose summary proposes a measurement for every parameter that the data do not determine.

    One column is measured once more, at some time up to four times the time span of the data: a c-optimal design of one
    sample. Fits for which no design can be computed, and parameters that one measurement hardly helps, get none.
    """
    words = []
    begin = max(fit.problem.condition(e).start for e in range(len(fit.experiments)))
    times = begin, begin + _LONGER * (max(e.t[-1] for e in fit.problem.data.experiments) - begin)
    for name in not_determined(fit)[:_MOST]:
        try:
            found = design(fit, add=1, for_=name, times=times, costs=dict.fromkeys(fit.problem.columns, 1.0))
        except (InputError, np.linalg.LinAlgError):
            continue
        row, (sample,) = found.table().loc[name], found.samples
        if row.rse_after > row.rse_before / _FACTOR or np.isnan(row.rse_after):
            continue
        where = f" of experiment {sample.experiment}" if len(fit.experiments) > 1 else ""
        words.append(
            f"{name} is not determined; the next measurement that says most about it is {' and '.join(sample.columns)} "
            f"at {format_number(sample.time, 3)}{where}: its standard error would fall "
            f"{'' if np.isnan(row.rse_before) else f'from {percent(row.rse_before)} '}to {percent(row.rse_after)}"
        )
    return replace(fit, details={**fit.details, "next_measurements": words}) if words else fit


def not_determined(fit: Fit) -> list[str]:
    """The parameters whose likelihood interval is infinite, or reaches to 0 although they are positive."""
    if fit.uncertainty is None:
        return []
    intervals = fit.intervals_by_kind().get("likelihood", {})
    positive = {name for name in fit.problem.free if fit.problem.limits(name)[0] >= 0}
    return [
        name
        for name, (low, high) in intervals.items()
        if name in fit.problem.free and (not np.isfinite([low, high]).all() or (low <= 0 and name in positive))
    ]
