"""Worker processes on this machine, and workers of a Dask cluster, behind one protocol.

A worker that dies takes no other down: each local worker is an executor of `concurrent.futures` of its own, spawned
(JAX does not survive a fork) and with one thread for linear algebra.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from typing import Any, Protocol

from odinfer.checks import checked_integer
from odinfer.errors import InputError

_MOST_WORKERS = 64  # or four per core where that is more; each is a process of some 200 MB
_MOST_RESTARTS = 5  # of a worker that dies without a task
_SINGLE_THREADED = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
# The process that multiprocessing starts to clean up after us does so; after an interrupt it would also tell.
_NO_TRACKER_WARNING = "ignore:resource_tracker:UserWarning"
_XLA = "--xla_cpu_multi_thread_eigen=false"


class Workers(Protocol):
    """Where tasks run: `size` of them at a time."""

    @property
    def death_errors(self) -> tuple[type[BaseException], ...]:
        """What a future raises whose worker died."""

    @property
    def size(self) -> int: ...

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]: ...

    def drop(self, future: Future[Any]) -> None:
        """Stop a task that takes too long, whatever it is doing."""

    def close(self) -> None:
        """End all workers at once."""


def check_workers(workers: int) -> None:
    """Refuse a number of workers that is none, or that would bring this machine to its knees."""
    checked_integer("workers", workers, 1, max(_MOST_WORKERS, 4 * (os.cpu_count() or 1)))


def start_workers(workers: int, cluster: str | None = None) -> Workers:
    """Worker processes of this machine, or those of the Dask scheduler at an address."""
    check_workers(workers)
    return DaskCluster.connect(cluster) if cluster else WorkerPool(workers)


# --- worker processes of this machine


class WorkerPool:
    """Worker processes, each an executor of its own: one that dies or hangs is replaced, the others go on."""

    death_errors: tuple[type[BaseException], ...] = (BrokenExecutor, CancelledError)

    def __init__(self, size: int) -> None:
        self.size = size
        self._processes: list[_WorkerProcess] = []

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        # All start together, and not before there is something to do: a store may have everything already.
        self._processes = self._processes or [_WorkerProcess() for _ in range(self.size)]
        lane = next(lane for lane in self._processes if lane.free)
        return lane.submit(function, *args)

    def drop(self, future: Future[Any]) -> None:
        for lane in self._processes:
            if lane.running is future:
                lane.restart()

    def close(self) -> None:
        for lane in self._processes:
            lane.kill()


class _WorkerProcess:
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

        with worker_environment():
            self._executor: Executor = ProcessPoolExecutor(1, get_context("spawn"), exit_with_parent)
            self._pid = self._executor.submit(os.getpid)  # starts the process


@contextlib.contextmanager
def worker_environment() -> Iterator[None]:
    """What a process started inside inherits: single-threaded algebra, and no interest in Ctrl-C, which is ours."""
    before = {name: os.environ.get(name) for name in (*_SINGLE_THREADED, "XLA_FLAGS", "PYTHONWARNINGS")}
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    _set_single_threaded()
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, (before["PYTHONWARNINGS"], _NO_TRACKER_WARNING)))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _set_single_threaded() -> None:
    """Environment of a process that has not loaded its numerical libraries yet."""
    os.environ.update(_SINGLE_THREADED)
    flags = os.environ.get("XLA_FLAGS", "")
    os.environ["XLA_FLAGS"] = flags if _XLA in flags else f"{flags} {_XLA}".strip()


def exit_with_parent() -> None:
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


class DaskCluster:
    """The workers of a Dask scheduler. It moves the tasks of a worker that dies to others by itself."""

    def __init__(self, client: Any, address: str) -> None:
        from distributed.scheduler import KilledWorker

        self.death_errors: tuple[type[BaseException], ...] = (KilledWorker, CancelledError)
        self._client, self._address = client, address
        self._executor: Executor = client.get_executor(pure=False)

    @staticmethod
    def connect(address: str, patience: float = 10.0) -> DaskCluster:
        """The cluster at an address such as tcp://host:8786, once it has workers."""
        try:
            from distributed import Client
        except ImportError:
            raise InputError("a cluster needs Dask: pip install 'odinfer[cluster]'") from None
        try:
            _check_scheduler(address, patience)
            client = Client(address, timeout=patience, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise InputError(f"no Dask scheduler answers at '{address}' ({reason}); give its address") from None
        try:
            client.wait_for_workers(1, timeout=patience)
        except TimeoutError:
            client.close()
            raise InputError(f"the Dask scheduler at '{address}' has no workers; start some: dask worker") from None
        return DaskCluster(client, address)

    @property
    def size(self) -> int:
        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        return max(1, sum(int(w["nthreads"]) for w in workers))

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        if self._client.status != "running":
            raise InputError(
                f"the Dask scheduler at '{self._address}' is gone; start it and run the same command again"
            )
        return self._executor.submit(_run_on_cluster, function, *args)

    def drop(self, future: Future[Any]) -> None:
        future.cancel()  # a thread cannot be stopped: if it hangs for good, its worker is lost to us

    def close(self) -> None:
        self._executor.shutdown(wait=False)
        self._client.close()


def _check_scheduler(address: str, patience: float) -> None:
    """Exchange greetings with a scheduler: a Client would wait for ever for those of a port that stays silent."""
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    from distributed import Security
    from distributed.comm import connect

    async def greeted() -> None:
        comm = await connect(address, timeout=patience, **Security().get_connection_args("client"))
        comm.abort()

    async def in_time() -> None:
        try:
            await asyncio.wait_for(greeted(), patience)
        except TimeoutError:
            raise OSError(f"no answer within {patience:g} seconds") from None

    with ThreadPoolExecutor(1) as thread:  # the caller's own may run a loop already, as in a notebook
        thread.submit(asyncio.run, in_time()).result()


def _run_on_cluster(function: Callable[..., Any], *args: Any) -> Any:
    if "jax" not in sys.modules:
        _set_single_threaded()
    return function(*args)
