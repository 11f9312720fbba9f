"""Follow chunks of start points in worker processes or on a Dask cluster, with results in a store.

Generations are wider then, and their chunks always the same, so that a seed gives the same answer for any number of
workers. What a store has of equal problem and starts is not followed again, also after a kill.
"""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odinfer.errors import InputError
from odinfer.likelihood.batch_likelihood import BatchLikelihood
from odinfer.model.differentiation import TextField
from odinfer.parallel.resume import FAILED, Job, JobProgress, error_outcome, resume
from odinfer.parallel.store import Store, canonical, digest
from odinfer.parallel.workers import check_workers, start_workers
from odinfer.problem.problem import Problem
from odinfer.progress import Progress
from odinfer.search.trust_region import TrustRegionResult, minimise_batch
from odinfer.version import __version__

Array = NDArray[np.float64]
Follower = Callable[[BatchLikelihood, Array, float], TrustRegionResult]

WIDTH = 4  # how many times as many starts a generation has
_CHUNK = 16  # starts that one task follows side by side
_ASK = 0.5  # seconds between two looks at what another process is following
_OPTIONS = ("bounds", "fixed", "prior", "sigma", "start", "scale", "positive")


@dataclass(frozen=True)
class StartExecutor:
    """Where starts are followed.

    Attributes:
        workers: how many processes; one is this one.
        cluster: address of a Dask scheduler instead.
        store: a folder in which results last.
    """

    workers: int = 1
    cluster: str | None = None
    store: str | Path | None = None

    def __post_init__(self) -> None:
        check_workers(self.workers)

    @contextlib.contextmanager
    def following(self, problem: Problem, progress: Progress) -> Iterator[Follower]:
        """What follows starts in place of `follow`, as long as the workers are there."""
        if self.store is not None:
            check_storable(problem)
        told = content(problem)
        with contextlib.ExitStack() as stack:
            folder = self.store or stack.enter_context(tempfile.TemporaryDirectory(prefix="odinfer-"))
            store = stack.enter_context(Store(folder, create=True))
            here = self.workers == 1 and self.cluster is None
            workers = (
                None if here else stack.enter_context(contextlib.closing(start_workers(self.workers, self.cluster)))
            )
            before = 0

            def followed(solver: BatchLikelihood, v: Array, best: float) -> TrustRegionResult:
                nonlocal before
                jobs = [_job(problem, told, v[i : i + _CHUNK], best) for i in range(0, len(v), _CHUNK)]

                def tell(state: JobProgress) -> None:
                    done = before + min(_CHUNK * (state.before + state.done), len(v))
                    progress(f"followed {done} starts", 1.0 - 0.7 ** (done / (2 * WIDTH * _CHUNK)))

                retry = True
                while resume(compute, jobs, store, workers, usable=usable, retry=retry, tell=tell).claimed_by_others:
                    retry = False
                    time.sleep(_ASK)
                before += len(v)
                ends = [_ends(store.records[job.key]["outcome"], job.args[1]) for job in jobs]
                return TrustRegionResult(
                    *(np.concatenate([getattr(e, f.name) for e in ends]) for f in fields(TrustRegionResult))
                )

            yield followed


def compute(problem: Problem, v: Array, best: float) -> dict[str, Any]:
    """The record of a chunk of starts (n, P). Whatever goes wrong is a status."""
    clock, cpu = time.perf_counter(), time.process_time()
    outcome: dict[str, Any]
    try:
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            ends = minimise_batch(BatchLikelihood.of(problem), v, best)
        value = [float(x) if np.isfinite(x) else None for x in ends.value]
        outcome = {"status": "followed", "v": ends.v.tolist(), "value": value, "settled": ends.settled.tolist()}
    except Exception as error:
        outcome = error_outcome(error)
    return {"outcome": outcome, "timing": {"seconds": time.perf_counter() - clock, "cpu": time.process_time() - cpu}}


def usable(stored: Mapping[str, Any]) -> bool:
    """Whether a record of a store, which may come from elsewhere, is one of a chunk of starts."""
    try:
        outcome = stored["outcome"]
        if digest(canonical(stored["run"])) != stored["key"]:
            return False
        if outcome["status"].startswith(FAILED):
            return True
        shape = np.shape(np.array(outcome["v"], float))
        return (
            len(shape) == 2 and shape[0] == len(outcome["value"]) == len(outcome["settled"]) == stored["run"]["starts"]
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return False


def check_storable(problem: Problem) -> None:
    """Refuse a problem whose content has no text: a changed function would be taken for the old one.

    Raises:
        InputError: the model, or a prior, is a Python function.
    """
    priors = [problem.prior] if callable(problem.prior) else list(problem.prior.values())
    if not isinstance(problem.model.evaluator, TextField) or any(map(callable, priors)):
        raise InputError(
            "a store cannot tell a function from a changed one, so it takes models and priors from text only; "
            "leave out store, or write the equations as text"
        )


def content(problem: Problem) -> str:
    """A digest of everything in a problem that its likelihood depends on."""
    m, seen = problem.model, hashlib.sha256()
    told = (m.text, m.states, m.parameters, m.inputs, [getattr(problem, name) for name in _OPTIONS], problem.data)
    _add(seen, told)
    return seen.hexdigest()


def _add(seen: Any, value: Any) -> None:
    """Add a value to a digest, with what it is made of."""
    if isinstance(value, np.ndarray):
        seen.update(f"{value.dtype}{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
    elif is_dataclass(value) and not isinstance(value, type):
        _add(seen, [(f.name, getattr(value, f.name)) for f in fields(value)])
    elif isinstance(value, Mapping):
        _add(seen, sorted(value.items(), key=lambda item: str(item[0])))
    elif isinstance(value, list | tuple):
        seen.update(f"[{len(value)}".encode())
        for part in value:
            _add(seen, part)
    else:
        seen.update(repr(value).encode() + b";")


def _job(problem: Problem, told: str, v: Array, best: float) -> Job:
    run = {
        "problem": told,
        "v": digest(v.tobytes().hex()),
        "best": repr(best),
        "starts": len(v),
        "version": __version__,
    }
    return Job(digest(canonical(run)), run, (problem, v, best))


def _ends(outcome: Mapping[str, Any], v: Array) -> TrustRegionResult:
    """What a record says, or nothing but the starts themselves where it failed."""
    none = np.zeros(len(v), bool)
    if outcome["status"].startswith(FAILED):
        return TrustRegionResult(v, np.full(len(v), np.inf), none, none, none, 0 * none)
    value = np.array([np.inf if x is None else x for x in outcome["value"]])
    return TrustRegionResult(
        np.array(outcome["v"], float), value, np.array(outcome["settled"], bool), none, none, 0 * none
    )
