"""Independent tasks on this process, on worker processes, or on a Dask cluster, by one interface.

A worker that dies takes no other down: each local worker is an executor of `concurrent.futures` of its own, spawned
(JAX does not survive a fork) and with one thread for linear algebra.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from odinfer.errors import InputError

if TYPE_CHECKING:
    from odinfer.fit import Progress

CHUNK_SECONDS = 1.0  # of work per message to a worker, some hundred times what the message costs
_MOST_TASKS = 256  # in one chunk
_MOST_RESTARTS = 5  # of a worker that dies without a task
_SINGLE_THREADED = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
_XLA = "--xla_cpu_multi_thread_eigen=false"


@dataclass(frozen=True)
class Task:
    """function(*args) to be computed; tasks of one kind take about equally long; `tag` comes back with the result."""

    tag: Any
    args: tuple[Any, ...]
    kind: str = ""


@dataclass(frozen=True)
class Lost:
    """Stands for the result of a task that has none: its workers died, or it took too long."""

    reason: str
    timed_out: bool = False


class Workers(Protocol):
    """Where tasks run: `size` of them at a time."""

    @property
    def deaths(self) -> tuple[type[BaseException], ...]:
        """What a future raises whose worker died."""

    @property
    def size(self) -> int: ...

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]: ...

    def drop(self, future: Future[Any]) -> None:
        """Stop a task that takes too long, whatever it is doing."""

    def close(self) -> None:
        """End all workers at once."""


def spread(
    function: Callable[..., Any],
    tasks: Iterable[Sequence[Any]],
    *,
    workers: int = 1,
    cluster: str | None = None,
    progress: Progress | None = None,
) -> list[Any]:
    """function(*task) for every task, results in the order of tasks and the same for any number of workers.

    Args:
        function: of a module, so that workers can import it.
        tasks: the arguments of each call; randomness must come from a seed among them.
        workers: 1 runs in this process; more are spawned.
        cluster: address of a Dask scheduler, instead of local workers.
        progress: called with (what, share done).

    Returns:
        A result per task; `Lost` where two workers died over it.

    Raises:
        What a call raises.
    """
    jobs = [Task(i, tuple(args)) for i, args in enumerate(tasks)]
    check_workers(workers)
    results: list[Any] = [None] * len(jobs)
    with contextlib.ExitStack() as stack:
        if cluster is None and (workers == 1 or len(jobs) < 2):
            found: Iterable[tuple[Any, Any]] = ((job.tag, function(*job.args)) for job in jobs)
        else:
            crew = stack.enter_context(contextlib.closing(start(min(workers, len(jobs)), cluster)))
            found = completed(function, jobs, crew)
        for count, (i, result) in enumerate(found, 1):
            results[i] = result
            if progress:
                progress(f"{count} of {len(jobs)}", count / len(jobs))
    return results


def check_workers(workers: int) -> None:
    """Refuse a number of workers that is none."""
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise InputError(f"workers must be a whole number from 1 on, not {workers!r}")


def start(workers: int, cluster: str | None = None) -> Workers:
    """Worker processes of this machine, or those of the Dask scheduler at an address."""
    check_workers(workers)
    return Cluster.connect(cluster) if cluster else Pool(workers)


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


def completed(
    function: Callable[..., Any], tasks: Iterable[Task], workers: Workers, timeout: float | None = None
) -> Generator[tuple[Any, Any], None, None]:
    """Run tasks, taken from their iterable when a worker is free, and give (tag, result) as they end.

    A chunk whose worker dies, or which takes longer than `timeout` seconds for one of its tasks, is tried again task
    by task on fresh workers; a task that fails so alone, or for the second time, gives `Lost`.
    """
    queue, running = _Queue(iter(tasks)), dict[Future[Any], _Chunk]()

    def refill() -> None:
        while len(running) < workers.size and (chunk := queue.next()) is not None:
            if timeout is not None:
                # Every task of a chunk is expected to be far below the limit of one.
                chunk.deadline = time.monotonic() + timeout + (CHUNK_SECONDS if len(chunk.tasks) > 1 else 0.0)
            running[workers.submit(_work, function, [task.args for task in chunk.tasks])] = chunk

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
                except workers.deaths as error:
                    reason = f"its worker died: {error or type(error).__name__}"
                else:
                    queue.seconds[chunk.tasks[0].kind] = seconds / len(chunk.tasks)
                    ended += [(task.tag, result) for task, result in zip(chunk.tasks, results, strict=True)]
                    continue
            if len(chunk.tasks) > 1 or (chunk.attempt == 1 and future in done):
                queue.again += [_Chunk([task], chunk.attempt + 1) for task in chunk.tasks]
            else:
                ended.append((chunk.tasks[0].tag, Lost(reason, future in late)))
        refill()  # before the caller does something with the results
        yield from ended


def _work(function: Callable[..., Any], tasks: list[tuple[Any, ...]]) -> tuple[list[Any], float]:
    """On the worker: the results of a chunk, and the seconds it took."""
    clock = time.perf_counter()
    return [function(*args) for args in tasks], time.perf_counter() - clock


# --- worker processes of this machine


class Pool:
    """Worker processes, each an executor of its own: one that dies or hangs is replaced, the others go on."""

    deaths: tuple[type[BaseException], ...] = (BrokenExecutor, CancelledError)

    def __init__(self, size: int) -> None:
        self._lanes = [_Lane() for _ in range(size)]

    @property
    def size(self) -> int:
        return len(self._lanes)

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        lane = next(lane for lane in self._lanes if lane.free)
        return lane.submit(function, *args)

    def drop(self, future: Future[Any]) -> None:
        for lane in self._lanes:
            if lane.running is future:
                lane.restart()

    def close(self) -> None:
        for lane in self._lanes:
            lane.kill()


class _Lane:
    """One worker process at a time."""

    def __init__(self) -> None:
        self.running: Future[Any] | None = None
        self._begin()

    @property
    def free(self) -> bool:
        return self.running is None or self.running.done()

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        for _ in range(_MOST_RESTARTS):
            try:
                self._pid.result()  # the time a process takes to start is not the task's
                self.running = self._executor.submit(function, *args)
                return self.running
            except BrokenExecutor:  # died while idle or with its last task
                self.restart()
        raise RuntimeError("worker processes cannot start; does the script guard its calls by __name__ == '__main__'?")

    def restart(self) -> None:
        self.kill()
        self._begin()

    def kill(self) -> None:
        with contextlib.suppress(Exception):
            os.kill(self._pid.result(timeout=60), signal.SIGKILL)
        self._executor.shutdown(wait=True, cancel_futures=True)

    def _begin(self) -> None:
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        self._executor: Executor = ProcessPoolExecutor(1, get_context("spawn"), _begin_worker)
        with _inherited():
            self._pid = self._executor.submit(os.getpid)  # starts the process


@contextlib.contextmanager
def _inherited() -> Iterator[None]:
    """What a process started inside inherits: single-threaded algebra, and no interest in Ctrl-C, which is ours."""
    before = {name: os.environ.get(name) for name in (*_SINGLE_THREADED, "XLA_FLAGS")}
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    _single_threaded()
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _single_threaded() -> None:
    """Environment of a process that has not loaded its numerical libraries yet."""
    os.environ.update(_SINGLE_THREADED)
    flags = os.environ.get("XLA_FLAGS", "")
    os.environ["XLA_FLAGS"] = flags if _XLA in flags else f"{flags} {_XLA}".strip()


def _begin_worker() -> None:
    """A worker whose parent was killed would wait for tasks for ever."""
    from multiprocessing import parent_process
    from multiprocessing.connection import wait as wait_for

    parent = parent_process()
    if parent is not None:

        def watch() -> None:
            wait_for([parent.sentinel])
            os._exit(1)

        threading.Thread(target=watch, daemon=True).start()


# --- a Dask cluster


class Cluster:
    """The workers of a Dask scheduler. It moves the tasks of a worker that dies to others by itself."""

    def __init__(self, client: Any, address: str) -> None:
        from distributed.scheduler import KilledWorker

        self.deaths: tuple[type[BaseException], ...] = (KilledWorker, CancelledError)
        self._client, self._address = client, address
        self._executor: Executor = client.get_executor(pure=False)

    @staticmethod
    def connect(address: str, patience: float = 10.0) -> Cluster:
        """The cluster at an address such as tcp://host:8786, once it has workers."""
        try:
            from distributed import Client
        except ImportError:
            raise InputError("a cluster needs Dask: pip install 'odinfer[cluster]'") from None
        try:
            client = Client(address, timeout=patience, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise InputError(f"no Dask scheduler answers at '{address}' ({reason}); give its address") from None
        try:
            client.wait_for_workers(1, timeout=patience)
        except TimeoutError:
            client.close()
            raise InputError(f"the Dask scheduler at '{address}' has no workers; start some: dask worker") from None
        return Cluster(client, address)

    @property
    def size(self) -> int:
        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        return max(1, sum(int(w["nthreads"]) for w in workers))

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        if self._client.status != "running":
            raise InputError(
                f"the Dask scheduler at '{self._address}' is gone; start it and run the same command again"
            )
        return self._executor.submit(_on_cluster, function, *args)

    def drop(self, future: Future[Any]) -> None:
        future.cancel()  # a thread cannot be stopped: if it hangs for good, its worker is lost to us

    def close(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)
        self._client.close()


def _on_cluster(function: Callable[..., Any], *args: Any) -> Any:
    if "jax" not in sys.modules:
        _single_threaded()
    return function(*args)
