"""Trajectories of subjects as tasks for worker processes or a Dask cluster.

Only equations that are integrated step by step are sent away. Linear ones with constant coefficients are solved faster
than results could be sent back.
"""

from __future__ import annotations

import contextlib
import functools
import pickle
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odinfer.parallel.executor import LostTask, Task, run_tasks
from odinfer.parallel.workers import Workers, check_workers, start_workers

Array = NDArray[np.float64]
Index = NDArray[np.int64]
States = tuple[Array, Array | None]  # (M, K) at the observations, and their derivatives (M, K, W)

_FEWEST = 64  # trajectories in one task, so that sending costs less than solving
_WORKERS: ContextVar[Workers | None] = ContextVar("workers", default=None)


@contextlib.contextmanager
def trajectories_on(workers: int | None, cluster: str | None) -> Iterator[None]:
    """Let trajectories be solved by so many processes, or on a Dask cluster, inside this context."""
    check_workers(workers or 1)
    if cluster is None and (workers or 1) == 1:
        yield
        return
    with contextlib.closing(start_workers(workers or 1, cluster)) as crew:
        token = _WORKERS.set(crew)
        try:
            yield
        finally:
            _WORKERS.reset(token)


def solve_in_parts(solver: Any, e: Index, theta: Array, slopes: bool) -> States | None:
    """`solver.states(e, theta, slopes)` computed by the workers; None if there are none, or too little to do."""
    workers = _WORKERS.get()
    if workers is None or len(e) < 2 * _FEWEST:
        return None
    parts = np.array_split(np.arange(len(e)), min(len(e) // _FEWEST, 4 * workers.size))
    sent = pickle.dumps(solver)
    tasks = [Task(i, (sent, e[own], theta[own], slopes)) for i, own in enumerate(parts)]
    found: list[States] = [(np.empty(0), None)] * len(parts)
    for i, result in run_tasks(_states, tasks, workers):
        lost = isinstance(result, LostTask)
        found[i] = solver.states(e[parts[i]], theta[parts[i]], slopes) if lost else result
    S = [part for _, part in found if part is not None]
    return np.concatenate([x for x, _ in found]), np.concatenate(S) if S else None


def _states(sent: bytes, e: Index, theta: Array, slopes: bool) -> States:
    """On the worker."""
    found: States = _solver(sent)(e, theta, slopes)
    return found


@functools.lru_cache(maxsize=4)
def _solver(sent: bytes) -> Callable[[Index, Array, bool], States]:
    states: Callable[[Index, Array, bool], States] = pickle.loads(sent).states
    return states
