"""Model selection: γ of every equation of every candidate, and how often its verdict is right."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.diagnostics.verdicts import CONTRADICTS
from odinfer.paper.bench.compute import system_of
from odinfer.paper.bench.report.results import Results, failed, metric, quartiles, values
from odinfer.paper.bench.report.tables import ReportTable, add, plus_minus
from odinfer.parallel.store import canonical

Array = NDArray[np.float64]


class Judged(NamedTuple):
    """One equation of one candidate: γ over the draws, and in how many its verdict was right."""

    setting: str
    method: str
    label: str
    candidate: str
    state: str
    wrong: bool
    gamma: Array
    median: float
    sd: float
    draws: int
    right: int
    failed: int
    printed: tuple[float, float]


def judged(results: Results) -> list[Judged]:
    """In the order of the grid."""
    printed = results.grid.report.get("gamma", {})
    found = []
    for cell, records in results.cells("candidates"):
        assert cell.candidate is not None
        for state in system_of(canonical(cell.case.spec)).model.states:
            wrong = state in cell.candidate.wrong
            gamma = values(records, metric("gamma", state))
            verdicts = [r["outcome"].get("verdicts", {}).get(state) for r in records]
            right = sum(v is not None and (v == CONTRADICTS) == wrong for v in verdicts)
            theirs = tuple(printed.get(cell.candidate.name, {}).get(state, (math.nan, math.nan)))
            _, median, _, sd = quartiles(gamma)
            name, method = cell.candidate.name, cell.method
            lost = sum(map(failed, records))
            numbers = (wrong, gamma, median, sd, len(records), right, lost, theirs)
            found.append(Judged(cell.setting, method.name, method.label, name, state, *numbers))
    return found


def gamma_table(results: Results) -> ReportTable:
    """Table 2 of the paper, for every method that was run, with the share of right verdicts."""
    columns: dict[str, list[Any]] = {n: [] for n in ("setting", "method", "candidate", "state", "equation_is_wrong")}
    columns |= {n: [] for n in ("draws", "failed", "gamma_median", "gamma_sd", "paper_median", "paper_sd")}
    columns["verdict_right"] = []
    rows = []
    for j in judged(results):
        share = j.right / max(j.draws, 1)
        add(
            columns,
            (j.setting, j.method, j.candidate, j.state, j.wrong, j.draws, j.failed, j.median, j.sd, *j.printed, share),
        )
        theirs = "-" if math.isnan(j.printed[0]) else plus_minus(*j.printed)
        ours = plus_minus(j.median, j.sd)
        right = f"{j.right} of {j.draws}" + (f"\n{j.failed} failed" if j.failed else "")
        rows.append((f"{j.candidate}: {j.state}", j.label, "wrong" if j.wrong else "right", ours, theirs, right))
    header = ("equation", "method", "it is", "γ", "γ in the paper", "verdict right")
    note = "Median ± standard deviation over draws. An equation is judged wrong where its γ exceeds 0.1"
    note += " and, for the default, no trajectory of the model follows the data."
    return ReportTable("7_model_selection", "Model selection", header, tuple(rows), columns, note)
