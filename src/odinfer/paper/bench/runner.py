"""Run a grid: select its runs and compute those that the store lacks."""

from __future__ import annotations

import re
from dataclasses import asdict

from odinfer.errors import InputError
from odinfer.paper.bench.compute import compute
from odinfer.paper.bench.grid import Grid
from odinfer.paper.bench.records import usable
from odinfer.paper.bench.runs import Cell, Run
from odinfer.parallel.resume import Job, JobProgress, ProgressCallback, resume
from odinfer.parallel.store import Store
from odinfer.parallel.workers import Workers


def shard_of(text: str | None) -> tuple[int, int]:
    """i/n: this process takes the i-th of n parts of the runs."""
    match = re.fullmatch(r"(\d+)/(\d+)", text or "1/1")
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise InputError(f"--shard takes i/n with i from 1 to n, such as 2/8; not '{text}'")
    return int(match[1]), int(match[2])


def runs_of_shard(grid: Grid, chosen: list[tuple[Cell, int]], shard: tuple[int, int]) -> list[tuple[Cell, Run]]:
    """The runs of a shard: by their keys, so that it does not depend on the order of the grid."""
    part, parts = shard
    return [(cell, run) for cell, run in grid.runs(chosen) if int(run.key[:12], 16) % parts == part - 1]


def run_grid(
    grid: Grid,
    store: Store,
    chosen: list[tuple[Cell, int]],
    workers: Workers,
    shard: tuple[int, int] = (1, 1),
    retry: bool = False,
    tell: ProgressCallback | None = None,
) -> JobProgress:
    """Compute what the store does not have yet.

    Args:
        store: opened for writing.
        chosen: cells and draws, from `grid.chosen`.
        retry: also what was lost or timed out before.
        tell: called with the state now and then.
    """
    store.add_grid(grid.content)
    jobs = [
        Job(run.key, asdict(run), (run,), _kind(cell), cell.method.name)
        for cell, run in runs_of_shard(grid, chosen, shard)
    ]
    return resume(compute, jobs, store, workers, usable=usable, retry=retry, timeout=grid.timeout, tell=tell)


def _kind(cell: Cell) -> str:
    candidate = cell.candidate.name if cell.candidate else ""
    return f"{cell.case.name} {cell.noise:g} {cell.method.name} {candidate}"
