"""Results of the paper's grid that nobody computed, so that it is known what a report must say of them."""

from __future__ import annotations

import csv
import functools
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from odinfer.paper.bench import grid as grids
from odinfer.paper.bench.compute import QUANTILES, plot_times, to_json
from odinfer.paper.bench.report.results import Record, Results
from odinfer.paper.systems import system_of
from odinfer.parallel.store import Store, canonical

DRAWS = 4


@functools.cache
def truth(spec: str) -> np.ndarray:
    system = system_of(spec)
    return system.states(plot_times(system))


def invented(folder: Path, **errors: float) -> Results:
    """Every method has an error, scattered over its draws."""
    grid = grids.read("paper")
    errors = {"odin-paper": 1.0, "gpr": 2.0, "limit": 0.5, "odin": 0.5} | errors
    rng = np.random.default_rng(0)
    records = []
    for cell in grid.cells:
        system = system_of(canonical(cell.case.spec))
        for i in range(min(DRAWS, cell.draws)):
            error = errors.get(cell.method.name, 3.0) * (0.9 + 0.05 * i) * cell.noise
            wrong = cell.candidate.wrong if cell.candidate else ()
            shown = system.model.states[:5]
            outcome = {
                "status": "converged", "converged": True, "state_rmse": error, "theta": system.theta,
                "gamma": {s: 2.0 if s in wrong else 1e-6 for s in shown},
                "verdicts": {s: "contradicts the data" if s in wrong else "consistent" for s in shown},
            }  # fmt: skip
            if cell.candidate is None and cell.case.size is None:
                by_state = dict.fromkeys(system.model.states, error)
                x = {
                    s: (v + error).tolist()
                    for s, v in zip(system.model.states, truth(canonical(cell.case.spec)).T, strict=True)
                }
                outcome |= {"trmse": error, "trmse_paper": error, "trmses_paper": by_state, "trajectory": x}
                outcome |= {"stages": {"odin": {"trmse": error}, "refined": {"objective": 1.0}}, "objective": 1.0}
            if cell.method.name in ("fgpgm", "agm"):
                draws = rng.normal(size=400) if cell.case.label == "LV" else rng.exponential(size=400)
                outcome["quantiles"] = dict.fromkeys(system.theta, np.quantile(draws, QUANTILES).tolist())
                skew = 0.0 if cell.case.label == "LV" else 2.0
                moments = {"mean": 0.0, "sd": 1.0, "skewness": skew, "kurtosis": skew}
                outcome["moments"] = dict.fromkeys(system.theta, moments)
            run = cell.run(grid.first_seed + i)
            slow = {"agm": 100.0, "fgpgm": 50.0, "rkg3": 5.0}.get(cell.method.name, 1.0)
            timing = {"seconds": 0.1 * cell.case.size if cell.case.size else slow, "cpu": 1.0, "first": i == 0}
            records.append({"key": run.key, "run": asdict(run), "outcome": to_json(outcome), "timing": timing})
    with Store(folder, create=True) as store:
        store.add_grid(grid.content)
        store.add(records)
    return Results.of([folder])


def rows(path: Path) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def changed(results: Results, method: str, change: Callable[[Record], dict[str, Any]]) -> Results:
    """The same with other outcomes of a method: what `change` says of a record replaces entries of its outcome."""
    found = []
    for cell, records in results.found:
        if cell.method.name == method:
            records = [{**r, "outcome": r["outcome"] | change(r)} for r in records]
        found.append((cell, records))
    return replace(results, found=found)


def emptied(results: Results) -> Results:
    """The same grid before anything was run."""
    return replace(results, found=[(cell, []) for cell, _ in results.found])
