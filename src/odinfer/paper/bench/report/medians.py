"""Median trajectories with their 25–75 % bands, as in the paper's figures of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.paper.bench.compute import drawn_times, numeric, system_of
from odinfer.paper.bench.report.results import Record, Results
from odinfer.paper.bench.report.tables import ReportTable, add
from odinfer.parallel.store import canonical
from odinfer.style.text import number

Array = NDArray[np.float64]


class Band(NamedTuple):
    """Quantiles over draws (T, K) at times t (T,), the true states (T, K), and how many draws there are."""

    t: Array
    truth: Array
    low: Array
    median: Array
    high: Array
    draws: int


def band(records: list[Record]) -> Band | None:
    """Of the trajectories that a method's estimates give; what blew up counts as far away. None without any."""
    drawn = [r["outcome"]["trajectory"] for r in records if "trajectory" in r["outcome"]]
    if not drawn:
        return None
    system = system_of(canonical(records[0]["run"]["system"]))
    t = drawn_times(system)
    kept = [d for d in drawn if all(len(d.get(s, ())) == len(t) for s in system.model.states)]
    if not kept:
        return None
    x = np.array([[[numeric(v) for v in draw[s]] for s in system.model.states] for draw in kept])
    x = np.where(np.isfinite(x), x, np.inf)
    # Nearest ranks: no interpolation between a number and infinity.
    low, median, high = np.quantile(x, (0.25, 0.5, 0.75), axis=0, method="inverted_cdf").swapaxes(1, 2)
    return Band(t, system.states(t), low, median, high, len(kept))


def bands(results: Results, setting: str) -> dict[str, Band]:
    """By method label."""
    found = {label: band(results.at(setting, name)) for name, label in results.methods("compared").items()}
    return {label: b for label, b in found.items() if b is not None}


def trajectory_table(results: Results) -> ReportTable:
    """How far the median trajectory is from the truth, and how wide its band is."""
    methods = results.methods("compared")
    names = ("setting", "method", "draws", "time", "state", "truth", "q25", "median", "q75")
    columns: dict[str, list[Any]] = {n: [] for n in names}
    rows = []
    for setting in results.settings():
        row, found = [setting], bands(results, setting)
        for label in methods.values():
            b = found.get(label)
            row.append("-" if b is None else _words(b))
            if b is not None:
                states = system_of(canonical(results.case(setting).case.spec)).model.states
                for k, state in enumerate(states):
                    for i, t in enumerate(b.t):
                        numbers = (b.truth[i, k], b.low[i, k], b.median[i, k], b.high[i, k])
                        add(columns, (setting, label, b.draws, t, state, *numbers))
        rows.append(tuple(row))
    note = "Root mean square distance of the median trajectory from the truth; below it the mean width of the band."
    return ReportTable(
        "3_trajectories", "Median trajectories", ("setting", *methods.values()), tuple(rows), columns, note
    )


def _words(b: Band) -> str:
    distance = np.sqrt(np.mean((b.median - b.truth) ** 2))
    return f"{number(float(distance), 2)}\nband {number(float(np.mean(b.high - b.low)), 2)}"
