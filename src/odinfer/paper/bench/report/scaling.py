"""Run time over the number of states."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.paper.bench.compute import numeric
from odinfer.paper.bench.report.results import Results, failed, metric, quartiles, values
from odinfer.paper.bench.report.tables import ReportTable, add, plus_minus
from odinfer.style.text import number

Array = NDArray[np.float64]


class Scaling(NamedTuple):
    """One method: sizes K (S,), mean and standard deviation of seconds (S,), and the fits through the means.

    `line` is (slope, intercept) by least squares, as in the paper; `exponent` that of a power law, NaN for one size.
    """

    method: str
    K: Array
    mean: Array
    sd: Array
    line: tuple[float, float]
    exponent: float


def scalings(results: Results) -> dict[str, Scaling]:
    """By method name. Fits in which something was compiled are left out if there are others of the same size."""
    seconds: dict[str, dict[int, list[float]]] = {}
    labels = {}
    for cell, records in results.cells("sizes"):
        assert cell.case.size is not None
        good = [r["timing"] for r in records if not failed(r)]
        good = [t for t in good if not t.get("first")] or good
        if good:
            labels[cell.method.name] = cell.method.label
            seconds.setdefault(cell.method.name, {})[cell.case.size] = [max(numeric(t["seconds"]), 1e-9) for t in good]
    found = {}
    for name, by_size in seconds.items():
        K = np.array(sorted(by_size), float)
        mean = np.array([np.mean(by_size[int(k)]) for k in K])
        sd = np.array([np.std(by_size[int(k)]) for k in K])
        line, exponent = (math.nan, math.nan), math.nan
        if len(K) > 1:
            slope, intercept = np.polyfit(K, mean, 1)
            line, exponent = (float(slope), float(intercept)), float(np.polyfit(np.log(K), np.log(mean), 1)[0])
        found[name] = Scaling(labels[name], K, mean, sd, line, exponent)
    return found


def scaling_table(results: Results) -> ReportTable:
    """Seconds, the parameter and the states' error by size and method."""
    names = (
        "states",
        "method",
        "draws",
        "failed",
        "not_converged",
        "seconds_mean",
        "seconds_sd",
        "theta",
        "state_rmse",
    )
    columns: dict[str, list[Any]] = {n: [] for n in names}
    rows = []
    fits = scalings(results)
    for cell, records in results.cells("sizes"):
        lost = sum(map(failed, records))
        loose = sum(not r["outcome"]["converged"] for r in records) - lost
        fit = fits.get(cell.method.name)
        here = fit is not None and cell.case.size in fit.K
        at = int(np.flatnonzero(cell.case.size == fit.K)[0]) if fit is not None and here else -1
        mean, sd = (float(fit.mean[at]), float(fit.sd[at])) if fit is not None and here else (math.nan, math.nan)
        theta = quartiles(values(records, lambda o: next(iter(o["theta"].values()), None)))[1]
        rmse = quartiles(values(records, metric("state_rmse")))[1]
        add(columns, (cell.case.size, cell.method.name, len(records), lost, loose, mean, sd, theta, rmse))
        trouble = ", ".join(f"{n} {what}" for n, what in ((lost, "failed"), (loose, "not converged")) if n)
        cells = (plus_minus(mean, sd), number(theta, 4), number(rmse, 3), str(len(records)))
        rows.append((f"K = {cell.case.size}", cell.method.label, *cells, trouble or "-"))
    header = ("states", "method", "seconds", "θ (truth 8)", "state RMSE", "draws", "trouble")
    note = "Mean ± standard deviation of seconds; medians of the others. " + " ".join(
        f"{f.method}: time grows as K to the power {f.exponent:.2f}."
        for f in fits.values()
        if not math.isnan(f.exponent)
    )
    return ReportTable("8_scaling", "Run time over the number of states", header, tuple(rows), columns, note)
