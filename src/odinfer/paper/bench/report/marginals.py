"""Marginal distributions of a parameter at fixed γ, from the draws of samplers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.paper.bench.report.results import Results, failed
from odinfer.paper.bench.report.tables import ReportTable, add
from odinfer.style.text import number

Array = NDArray[np.float64]


class Marginal(NamedTuple):
    """One sample rollout: quantiles (Q,) of a parameter's draws, and their moments."""

    setting: str
    method: str
    parameter: str
    seed: int
    quantiles: Array
    moments: dict[str, float]
    converged: bool


def marginals(results: Results) -> list[Marginal]:
    """Of the first draw of every sampler, for the parameters that the grid chooses."""
    wanted = results.grid.report.get("marginals")
    found = []
    for cell, records in results.cells():
        first = next((r for r in records if not failed(r) and "quantiles" in r["outcome"]), None)
        if first is None:
            continue
        outcome = first["outcome"]
        names = list(outcome["quantiles"]) if wanted is None else [wanted.get(cell.case.name)]
        for name in names:
            if name in outcome["quantiles"] and name in outcome.get("moments", {}):
                q, moments = np.array(outcome["quantiles"][name]), outcome["moments"][name]
                seed, converged = first["run"]["seed"], outcome["converged"]
                found.append(Marginal(cell.setting, cell.method.label, name, seed, q, moments, converged))
    return found


def marginal_table(results: Results) -> ReportTable:
    """Moments: a Gaussian has skewness and excess kurtosis zero."""
    names = ("setting", "method", "parameter", "seed", "converged", "mean", "sd", "skewness", "kurtosis")
    columns: dict[str, list[Any]] = {n: [] for n in names}
    rows = []
    for m in marginals(results):
        moments = [m.moments[n] for n in names[5:]]
        add(columns, (m.setting, m.method, m.parameter, m.seed, m.converged, *moments))
        mixed = "" if m.converged else "\nchains not mixed"
        rows.append((f"{m.setting}: {m.parameter}", m.method + mixed, *(number(float(v), 3) for v in moments)))
    header = ("parameter", "method", "mean", "standard deviation", "skewness", "excess kurtosis")
    note = "Draws of one rollout (the first seed) at the fixed γ of the authors' settings; AGM samples γ, too."
    return ReportTable("6_marginals", "Marginal distributions at fixed γ", header, tuple(rows), columns, note)
