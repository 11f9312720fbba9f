"""Map independent tasks over this process, worker processes or a Dask cluster; retry tasks of dead workers."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from typing import Any

from odinfer.parallel.workers import Workers, check_workers, start_workers
from odinfer.progress import Progress, sub_progress

CHUNK_SECONDS = 1.0  # of work per message to a worker, some hundred times what the message costs
_MOST_TASKS = 256  # in one chunk


@dataclass(frozen=True)
class Task:
    """function(*args) to be computed; tasks of one kind take about equally long; `tag` comes back with the result."""

    tag: Any
    args: tuple[Any, ...]
    kind: str = ""


@dataclass(frozen=True)
class LostTask:
    """Stands for the result of a task that has none: its workers died, or it took too long."""

    reason: str
    timed_out: bool = False


def parallel_map(
    function: Callable[..., Any],
    tasks: Iterable[Sequence[Any]],
    *,
    workers: int = 1,
    cluster: str | None = None,
    progress: Progress | None = None,
    telling: bool = False,
) -> list[Any]:
    """function(*task) for every task, results in the order of tasks and the same for any number of workers.

    Args:
        function: of a module, so that workers can import it.
        tasks: the arguments of each call; randomness must come from a seed among them.
        workers: 1 runs in this process; more are spawned.
        cluster: address of a Dask scheduler, instead of local workers.
        progress: called with (what, share done).
        telling: the function takes `progress` too; it is told from within tasks that run in this process.

    Returns:
        A result per task; `LostTask` where two workers died over it.

    Raises:
        What a call raises.
    """
    jobs = [Task(i, tuple(args)) for i, args in enumerate(tasks)]
    check_workers(workers)
    results: list[Any] = [None] * len(jobs)
    with contextlib.ExitStack() as stack:
        if cluster is None and (workers == 1 or len(jobs) < 2):
            found: Iterable[tuple[Any, Any]] = _run_in_process(function, jobs, progress if telling else None)
        else:
            crew = stack.enter_context(contextlib.closing(start_workers(min(workers, len(jobs)), cluster)))
            found = run_tasks(function, jobs, crew)
        for count, (i, result) in enumerate(found, 1):
            results[i] = result
            if progress:
                progress(f"{count} of {len(jobs)}", count / len(jobs))
    return results


def _run_in_process(
    function: Callable[..., Any], jobs: list[Task], progress: Progress | None
) -> Iterator[tuple[Any, Any]]:
    """In this process, one after the other; progress is that of all of them."""
    for i, job in enumerate(jobs):
        more = {} if progress is None else {"progress": sub_progress(progress, i / len(jobs), (i + 1) / len(jobs))}
        yield job.tag, function(*job.args, **more)


# --- the schedule


@dataclass
class _Chunk:
    tasks: list[Task]
    attempt: int = 1
    deadline: float = float("inf")


@dataclass
class _Queue:
    """Chunks to come: first what has to be tried again, then tasks of one kind, as many as take about a second."""

    source: Iterator[Task]
    again: deque[_Chunk] = field(default_factory=deque)
    seconds: dict[str, float] = field(default_factory=dict)
    peeked: Task | None = None

    def next(self) -> _Chunk | None:
        if self.again:
            return self.again.popleft()
        tasks: list[Task] = []
        while (task := self.peeked or next(self.source, None)) is not None:
            self.peeked = task
            # One alone where the time it takes is unknown.
            fits = min(CHUNK_SECONDS / max(self.seconds.get(task.kind, CHUNK_SECONDS), 1e-6), _MOST_TASKS)
            if tasks and (task.kind != tasks[0].kind or len(tasks) + 1 > fits):
                break
            tasks.append(task)
            self.peeked = None
        return _Chunk(tasks) if tasks else None


def run_tasks(
    function: Callable[..., Any], tasks: Iterable[Task], workers: Workers, timeout: float | None = None
) -> Generator[tuple[Any, Any], None, None]:
    """Run tasks, taken from their iterable when a worker is free, and give (tag, result) as they end.

    A chunk whose worker dies, or which takes longer than `timeout` seconds for one of its tasks, is tried again task
    by task on fresh workers; a task that fails so alone, or for the second time, gives `LostTask`.
    """
    queue, running = _Queue(iter(tasks)), dict[Future[Any], _Chunk]()

    def refill() -> None:
        while len(running) < workers.size and (chunk := queue.next()) is not None:
            if timeout is not None:
                # Every task of a chunk is expected to be far below the limit of one.
                chunk.deadline = time.monotonic() + timeout + (CHUNK_SECONDS if len(chunk.tasks) > 1 else 0.0)
            running[workers.submit(_run_chunk, function, [task.args for task in chunk.tasks])] = chunk

    refill()
    while running:
        soonest = min(chunk.deadline for chunk in running.values())
        patience = None if timeout is None else max(soonest - time.monotonic(), 0.0)
        done, _ = wait(running, patience, FIRST_COMPLETED)
        late = {f for f, chunk in running.items() if f not in done and chunk.deadline <= time.monotonic()}
        ended: list[tuple[Any, Any]] = []
        for future in done | late:
            chunk = running.pop(future)
            if future in late:
                reason = f"took longer than {timeout:g} s"
                workers.drop(future)
            else:
                try:
                    results, seconds = future.result()
                except workers.death_errors as error:
                    reason = f"its worker died: {error or type(error).__name__}"
                else:
                    queue.seconds[chunk.tasks[0].kind] = seconds / len(chunk.tasks)
                    ended += [(task.tag, result) for task, result in zip(chunk.tasks, results, strict=True)]
                    continue
            if len(chunk.tasks) > 1 or (chunk.attempt == 1 and future in done):
                queue.again += [_Chunk([task], chunk.attempt + 1) for task in chunk.tasks]
            else:
                ended.append((chunk.tasks[0].tag, LostTask(reason, future in late)))
        refill()  # before the caller does something with the results
        yield from ended


def _run_chunk(function: Callable[..., Any], tasks: list[tuple[Any, ...]]) -> tuple[list[Any], float]:
    """On the worker: the results of a chunk, and the seconds it took."""
    clock = time.perf_counter()
    return [function(*args) for args in tasks], time.perf_counter() - clock
