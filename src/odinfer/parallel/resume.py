"""Compute jobs whose results are kept in a store: claim, compute, store."""

from __future__ import annotations

import contextlib
import math
import statistics
import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from odinfer.errors import InputError
from odinfer.parallel.executor import LostTask, Task, run_tasks
from odinfer.parallel.store import Store
from odinfer.parallel.workers import Workers

LOST, TIMED_OUT = "lost", "timed out"
FAILED = ("failed", LOST, TIMED_OUT)  # how the status of a result begins that holds no estimate
_CLAIM_SIZE = 8  # jobs claimed at a time: few, so that other processes find work, too


@dataclass(frozen=True, eq=False)
class Job:
    """Something to compute once.

    Attributes:
        key: a digest of everything that determines the result.
        run: what is kept beside the result, to say what it is of.
        args: of the function that computes {"outcome": {"status", …}, "timing": {"seconds", …}}.
        kind: jobs of one kind take about equally long.
        group: jobs of kinds in one group take more equally long than others.
    """

    key: str
    run: Mapping[str, Any]
    args: tuple[Any, ...]
    kind: str = ""
    group: str = ""


@dataclass
class JobProgress:
    """How far it has come.

    Attributes:
        total, before: jobs, and those of them that were in the store already.
        done: computed by this process; of these, `failed` have no estimate.
        claimed_by_others: being computed by other processes.
        left: seconds until the end, as far as can be told.
        seconds: since the start.
        damaged: lines of the store that were set aside.
    """

    total: int
    before: int = 0
    done: int = 0
    failed: int = 0
    claimed_by_others: int = 0
    left: float = math.nan
    seconds: float = 0.0
    workers: int = 1
    damaged: int = 0
    _pace: dict[tuple[str, str], list[float]] = field(default_factory=dict)


ProgressCallback = Callable[[JobProgress], None]


def failure_outcome(status: str) -> dict[str, Any]:
    """The outcome of a job that gave no estimate."""
    return {"status": status, "converged": False, "theta": {}}


def error_outcome(error: Exception) -> dict[str, Any]:
    """The outcome of a job in which something was raised."""
    text = " ".join(str(error).split())[:300]
    return failure_outcome(
        f"failed: {text}" if isinstance(error, InputError) else f"failed: {type(error).__name__}: {text}"
    )


def resume(
    function: Callable[..., dict[str, Any]],
    jobs: Collection[Job],
    store: Store,
    workers: Workers | None,
    *,
    usable: Callable[[Mapping[str, Any]], bool],
    retry: bool = False,
    timeout: float | None = None,
    tell: ProgressCallback | None = None,
) -> JobProgress:
    """Compute what the store does not have yet.

    Args:
        function: of a module, so that workers can import it; whatever goes wrong in it must be a status.
        jobs: what to compute; an equal key means an equal result.
        store: opened for writing.
        workers: where to; None is this process.
        usable: whether a stored record is one; others are computed again.
        retry: also what was lost or timed out before.
        timeout: seconds after which workers give a job up.
        tell: called with the state now and then.
    """
    again = (LOST, TIMED_OUT) if retry else ()
    stored = [store.records[job.key] for job in jobs if job.key in store.records]
    if spoilt := [r["key"] for r in stored if not usable(r) or r["outcome"]["status"].startswith(again)]:
        store.forget(spoilt)
    missing = {job.key: job for job in jobs if job.key not in store.records}
    state = JobProgress(
        len(jobs), len(jobs) - len(missing), workers=workers.size if workers else 1, damaged=store.damaged
    )
    rest: dict[tuple[str, str], int] = {}
    for job in missing.values():
        rest[job.kind, job.group] = rest.get((job.kind, job.group), 0) + 1
    clock = time.monotonic()
    tasks = _claim_tasks(store, missing)
    found = run_tasks(function, tasks, workers, timeout) if workers else _run_in_process(function, tasks)
    with contextlib.closing(found) as results:
        for job, result in results:
            if isinstance(result, LostTask):
                word, seconds = (TIMED_OUT, timeout) if result.timed_out else (LOST, 0.0)
                result = {
                    "outcome": failure_outcome(f"{word}: {result.reason}"),
                    "timing": {"seconds": seconds, "cpu": 0.0},
                }
            store.add([{"key": job.key, "run": job.run, **result}])
            rest[job.kind, job.group] -= 1
            state._pace.setdefault((job.kind, job.group), []).append(result["timing"]["seconds"])
            state.done += 1
            state.failed += result["outcome"]["status"].startswith(FAILED)
            state.seconds = time.monotonic() - clock
            state.left = _seconds_left(rest, state._pace) / state.workers
            if tell:
                tell(state)
    store.refresh()
    state.claimed_by_others = sum(key not in store.records for key in missing)
    state.seconds = time.monotonic() - clock
    return state


def _claim_tasks(store: Store, missing: Mapping[str, Job]) -> Iterator[Task]:
    """Tasks, a few at a time when workers are free: those that nobody else has taken meanwhile."""
    keys = list(missing)
    for i in range(0, len(keys), _CLAIM_SIZE):
        for key in store.claim(keys[i : i + _CLAIM_SIZE]):
            yield Task(missing[key], missing[key].args, missing[key].kind)


def _run_in_process(function: Callable[..., Any], tasks: Iterator[Task]) -> Generator[tuple[Any, Any], None, None]:
    yield from ((task.tag, function(*task.args)) for task in tasks)


def _seconds_left(rest: Mapping[tuple[str, str], int], pace: Mapping[tuple[str, str], list[float]]) -> float:
    """Seconds of work left: by the pace of each kind of job, of those alike, or of all."""
    known = {kind: statistics.mean(times[1:] or times) for kind, times in pace.items()}  # the first one compiles
    alike: dict[str, list[float]] = {}
    for (_, group), mean in known.items():
        alike.setdefault(group, []).append(mean)
    total = 0.0
    for kind, count in rest.items():
        near = [known[kind]] if kind in known else alike.get(kind[1]) or list(known.values())
        total += count * statistics.median(near)
    return total
