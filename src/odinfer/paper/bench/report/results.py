"""Records of a grid with quantiles over draws and counts of failures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.paper.bench import grid as grids
from odinfer.paper.bench.compute import from_json
from odinfer.paper.bench.grid import Grid
from odinfer.paper.bench.records import usable
from odinfer.paper.bench.runs import Cell
from odinfer.parallel.resume import FAILED
from odinfer.parallel.store import Store

Record = dict[str, Any]
Array = NDArray[np.float64]
_HUGE = 1e300  # stands for infinity while quantiles are interpolated


@dataclass(frozen=True, eq=False)
class Results:
    """The records of a grid: of every cell those of its draws that are stored, in the order of their seeds."""

    grid: Grid
    found: list[tuple[Cell, list[Record]]]
    others: int
    damaged: int

    @staticmethod
    def of(stores: Sequence[Path], name: str | None = None) -> Results:
        """From one or several stores; the grid is the one that was run last, if not named."""
        opened = [Store(folder) for folder in stores]
        contents = [content for store in opened for content in store.grids]
        if name is not None or not contents:
            grid = grids.read(name or grids.PAPER)
        else:
            grid = grids.of_content(contents[-1])
        records = {key: record for store in opened for key, record in store.records.items()}
        found, used, damaged = [], 0, 0
        for cell in grid.cells:
            keys = [cell.run(grid.first_seed + i).key for i in range(max(cell.full, cell.draws))]
            mine = [records[key] for key in keys if key in records]
            used += len(mine)
            found.append((cell, [record for record in mine if usable(record)]))
            damaged += len(mine) - len(found[-1][1])
        return Results(grid, found, len(records) - used, damaged)

    def cells(self, kind: str = "inference") -> list[tuple[Cell, list[Record]]]:
        """Cells with records: of plain inference, of "candidates", or of systems in several "sizes"."""
        chosen: dict[str, Callable[[Cell], bool]] = {
            "inference": lambda c: c.candidate is None and c.case.size is None,
            "candidates": lambda c: c.candidate is not None,
            "sizes": lambda c: c.case.size is not None and c.candidate is None,
        }
        return [(cell, records) for cell, records in self.found if records and chosen[kind](cell)]

    def settings(self) -> list[str]:
        return list(dict.fromkeys(cell.setting for cell, _ in self.cells()))

    def at(self, setting: str, method: str) -> list[Record]:
        """The records of a method at a setting of plain inference."""
        return next((r for c, r in self.cells() if c.setting == setting and c.method.name == method), [])

    def methods(self, role: str) -> dict[str, str]:
        """Names and labels of the methods of a role in the report ("states", "compared" …) that have records."""
        labels = {cell.method.name: cell.method.label for cell, _ in self.cells()}
        wanted = self.grid.report.get(role, list(labels))
        return {name: labels[name] for name in wanted if name in labels}

    def case(self, setting: str) -> Cell:
        return next(cell for cell, _ in self.cells() if cell.setting == setting)

    def status(self, full: bool = False) -> list[str]:
        """What is stored of what is planned, a line per cell."""
        rows: list[tuple[str, ...]] = [("setting", "method", "stored", "of", "failed", "not converged")]
        for cell, records in self.found:
            counts = summarise(records, lambda o: 0.0)
            name = f"{cell.method.name} on {cell.candidate.name}" if cell.candidate else cell.method.name
            planned = cell.full if full else max(cell.draws, len(records))
            numbers = (len(records), planned, counts.failed, counts.unconverged)
            rows.append((cell.setting, name, *map(str, numbers)))
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = [
            "  ".join(v.ljust(w) if i < 2 else v.rjust(w) for i, (v, w) in enumerate(zip(row, widths, strict=True)))
            for row in rows
        ]
        stored, planned = (sum(int(row[i]) for row in rows[1:]) for i in (2, 3))
        lines += ["", f"{stored} of {planned} runs are stored."]
        lines += [f"{self.damaged} damaged results are left out."] if self.damaged else []
        lines += [f"{self.others} more results belong to other grids or versions."] if self.others else []
        return lines


class Summary(NamedTuple):
    """Of one number over the draws of a cell; a run without an estimate counts as an infinite error."""

    draws: int
    failed: int
    unconverged: int
    low: float
    median: float
    high: float
    sd: float


def is_failed(record: Record) -> bool:
    return bool(record["outcome"]["status"].startswith(FAILED))


def outcome_values(records: Iterable[Record], value: Callable[[Mapping[str, Any]], Any]) -> Array:
    """A number of every record's outcome; infinite for those that failed, left out where it does not exist."""
    found = [math.inf if is_failed(r) else from_json(value(r["outcome"])) for r in records]
    return np.array([v for v in found if not math.isnan(v)])


def summarise(records: Sequence[Record], value: Callable[[Mapping[str, Any]], Any]) -> Summary:
    """Quartiles, as in the paper, and counts."""
    lost = sum(map(is_failed, records))
    loose = sum(not r["outcome"]["converged"] for r in records) - lost
    return Summary(len(records), lost, loose, *quartiles(outcome_values(records, value)))


def quartiles(v: Array) -> tuple[float, float, float, float]:
    """25 %, 50 %, 75 % and standard deviation."""
    if not len(v):
        return math.nan, math.nan, math.nan, math.nan
    q = np.quantile(np.minimum(v, _HUGE), (0.25, 0.5, 0.75))
    low, median, high = (math.inf if x > 0.1 * _HUGE else float(x) for x in q)
    finite = v[np.isfinite(v)]
    return low, median, high, float(finite.std(ddof=1)) if len(finite) > 1 else math.nan


def outcome_entry(name: str, state: str | None = None) -> Callable[[Mapping[str, Any]], Any]:
    """An entry of an outcome, or of a dictionary by state in it."""
    return (lambda o: o.get(name)) if state is None else (lambda o: o.get(name, {}).get(state))
