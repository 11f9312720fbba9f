"""Run a grid: what is not in the store yet is claimed, computed by workers, and stored as it comes."""

from __future__ import annotations

import contextlib
import math
import re
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field

from odinfer.bench.cells import Cell
from odinfer.bench.compute import compute, failure
from odinfer.bench.grid import Grid
from odinfer.bench.records import usable
from odinfer.bench.runs import Run
from odinfer.bench.store import Store
from odinfer.errors import InputError
from odinfer.parallel import executor
from odinfer.parallel.workers import Workers

LOST, TIMED_OUT = "lost", "timed out"
_CLAIMED = 8  # runs claimed at a time: few, so that other processes find work, too
Tell = Callable[["Headway"], None]


@dataclass
class Headway:
    """How far a run of a grid has come.

    Attributes:
        total, before: runs of the choice, and those of them that were in the store already.
        done: computed by this process; of these, `failed` have no estimate.
        elsewhere: being computed by other processes.
        left: seconds until the end, as far as can be told.
        seconds: since the start.
        damaged: lines of the store that were set aside.
    """

    total: int
    before: int = 0
    done: int = 0
    failed: int = 0
    elsewhere: int = 0
    left: float = math.nan
    seconds: float = 0.0
    workers: int = 1
    damaged: int = 0
    _pace: dict[str, list[float]] = field(default_factory=dict)


def shard_of(text: str | None) -> tuple[int, int]:
    """i/n: this process takes the i-th of n parts of the runs."""
    match = re.fullmatch(r"(\d+)/(\d+)", text or "1/1")
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise InputError(f"--shard takes i/n with i from 1 to n, such as 2/8; not '{text}'")
    return int(match[1]), int(match[2])


def selected(grid: Grid, chosen: list[tuple[Cell, int]], shard: tuple[int, int]) -> list[tuple[Cell, Run]]:
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
    tell: Tell | None = None,
) -> Headway:
    """Compute what the store does not have yet.

    Args:
        store: opened for writing.
        chosen: cells and draws, from `grid.chosen`.
        retry: also what was lost or timed out before.
        tell: called with the state now and then.
    """
    runs = selected(grid, chosen, shard)
    stored = {run.key: store.records[run.key] for _, run in runs if run.key in store.records}
    again = (LOST, TIMED_OUT) if retry else ()
    spoilt = [key for key, r in stored.items() if not usable(r) or r["outcome"]["status"].startswith(again)]
    if spoilt:
        store.forget(spoilt)
    store.add_grid(grid.content)
    missing = {run.key: (cell, run) for cell, run in runs if run.key not in store.records}
    state = Headway(len(runs), len(runs) - len(missing), workers=workers.size, damaged=store.damaged)
    rest: dict[str, int] = {}
    for cell, _ in missing.values():
        rest[_kind(cell)] = rest.get(_kind(cell), 0) + 1
    clock = time.monotonic()
    with contextlib.closing(executor.completed(compute, _claimed(store, missing), workers, grid.timeout)) as results:
        for run, result in results:
            if isinstance(result, executor.Lost):
                word = TIMED_OUT if result.timed_out else LOST
                seconds = grid.timeout if result.timed_out else 0.0
                result = {"outcome": failure(f"{word}: {result.reason}"), "timing": {"seconds": seconds, "cpu": 0.0}}
            store.add([{"key": run.key, "run": asdict(run), **result}])
            kind, seconds = _kind(missing[run.key][0]), result["timing"]["seconds"]
            rest[kind] -= 1
            pace = state._pace.setdefault(kind, [])
            pace.append(seconds)
            state.done += 1
            state.failed += not result["outcome"]["theta"]
            state.seconds = time.monotonic() - clock
            state.left = _left(rest, state._pace) / state.workers
            if tell:
                tell(state)
    store.refresh()
    state.elsewhere = sum(key not in store.records for key in missing)
    state.seconds = time.monotonic() - clock
    return state


def _claimed(store: Store, missing: dict[str, tuple[Cell, Run]]) -> Iterator[executor.Task]:
    """Tasks, a few at a time when workers are free: those that nobody else has taken meanwhile."""
    keys = list(missing)
    for i in range(0, len(keys), _CLAIMED):
        for key in store.claim(keys[i : i + _CLAIMED]):
            cell, run = missing[key]
            yield executor.Task(run, (run,), _kind(cell))


def _kind(cell: Cell) -> str:
    candidate = cell.candidate.name if cell.candidate else ""
    return f"{cell.case.name} {cell.noise:g} {cell.method.name} {candidate}"


def _left(rest: dict[str, int], pace: dict[str, list[float]]) -> float:
    """Seconds of work left: by the pace of each kind of run, of its method on others, or of all."""
    known = {kind: statistics.mean(times[1:] or times) for kind, times in pace.items()}  # the first one compiles
    methods: dict[str, list[float]] = {}
    for kind, mean in known.items():
        methods.setdefault(kind.split()[2], []).append(mean)
    total = 0.0
    for kind, count in rest.items():
        alike = [known[kind]] if kind in known else methods.get(kind.split()[2]) or list(known.values())
        total += count * statistics.median(alike)
    return total
