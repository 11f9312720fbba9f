"""`od.fit_each`: fit every experiment by itself in worker processes or on a cluster; resume from a store."""

from __future__ import annotations

import contextlib
import pickle
import tempfile
import time
from pathlib import Path
from typing import Any

from odinfer.apps.each.fits import Fits
from odinfer.apps.each.job import FitOptions, compute, is_valid_record, job, row_of
from odinfer.apps.each.row import Row
from odinfer.checks import checked_choice, checked_integer, checked_positive
from odinfer.errors import InputError
from odinfer.methods import Method, check_method, method_class
from odinfer.model.model import Model
from odinfer.parallel.resume import Job, JobProgress, resume
from odinfer.parallel.store import Store
from odinfer.parallel.workers import Workers, check_workers, start_workers
from odinfer.problem.problem import Problem
from odinfer.problem.user_input import as_model_and_data, is_model
from odinfer.progress import Progress, no_progress
from odinfer.search.start_executor import check_storable
from odinfer.uncertainty.results import KINDS

_POLL_SECONDS = 0.5  # seconds between two looks at what another process is computing


def fit_each(
    problem: Problem | Model | str | Path,
    data: Any = None,
    method: Method | str | None = None,
    seed: int = 0,
    *,
    uncertainty: str | None = None,
    test: bool = False,
    workers: int | None = None,
    cluster: str | None = None,
    store: str | Path | None = None,
    timeout: float | None = None,
    progress: Progress | None = None,
) -> Fits:
    """Fit every experiment of the data on its own; parameters that are local are just parameters there.

    Args:
        problem: a Problem, or a model (a Model, its text, or an .ode file) together with `data`.
        data: the observations, if `problem` is a model: Data, a DataFrame, a dictionary of columns or a file.
        method, seed: as in `fit`, and for every experiment the same.
        uncertainty: intervals of another kind for each: "profile", "bootstrap" or "sample".
        test: the model as a whole, by simulation, for each.
        workers: how many processes to spawn, in which a series that kills its process is no more than a status; this
            process if not given.
        cluster: address of a Dask scheduler instead.
        store: a folder in which results last: what it has of equal model, data and options is not computed again,
            also after a kill. Of models from text only.
        timeout: seconds after which the fit of an experiment is stopped, with a status.
        progress: called with (what, share done).

    Returns:
        experiment → its fit, or a failure with a status; `.table()` has all estimates with their intervals.

    Raises:
        InputError: what was given cannot be used at all. What cannot be fitted is a status.

    Example:
        >>> import odinfer as od
        >>> t, dry, wet = range(6), [3.0, 1.9, 1.1, 0.7, 0.45, 0.25], [3.1, 2.2, 1.7, 1.3, 0.95, 0.7]
        >>> data = od.Data.join({name: od.Data(t, x, ["x"]) for name, x in (("dry", dry), ("wet", wet))})
        >>> fits = od.fit_each(od.Model.from_text("x' = -k*x"), data)
        >>> print(fits.table()[["k", "k_low", "k_high"]].round(2))
                       k  k_low  k_high
        experiment
        dry         0.49   0.46    0.51
        wet         0.29   0.27    0.32
    """
    chosen = method_class(method or "odin")() if method is None or isinstance(method, str) else method
    how = FitOptions(chosen, checked_integer("seed", seed), uncertainty, bool(test))
    if uncertainty is not None:
        checked_choice("uncertainty", uncertainty, KINDS[1:])
    if workers is not None:
        check_workers(workers)
    if timeout is not None:
        checked_positive("timeout", timeout)
    problems, rows = _problems(problem, data, how.method)
    first = next(iter(problems.values()))
    if store is not None:
        check_storable(first)
    jobs = {name: job(own, how) for name, own in problems.items()}
    here = workers is None and cluster is None and timeout is None
    if not here and cluster is None:
        _check_portable(first)
    with contextlib.ExitStack() as stack:
        folder = store if store is not None else stack.enter_context(tempfile.TemporaryDirectory(prefix="odinfer-"))
        kept = stack.enter_context(Store(folder, create=True))
        executor = (
            None
            if here
            else stack.enter_context(contextlib.closing(start_workers(min(workers or 1, len(jobs)), cluster)))
        )
        _fit_all(list(jobs.values()), kept, executor, timeout, progress or no_progress)
        outcomes = {name: kept.records[own.key]["outcome"] for name, own in jobs.items()}
    rows |= {name: row_of(outcome, problems[name]) for name, outcome in outcomes.items()}
    documents = {name: outcome["fit"] for name, outcome in outcomes.items() if "fit" in outcome}
    return Fits(first.model.name, how.method.name, problems, rows, documents)


def _problems(given: Any, data: Any, method: Method) -> tuple[dict[str, Problem], dict[str, Row]]:
    """The problem of each experiment; a row for every experiment, with a status for those that have no problem."""
    if is_model(given):
        if data is None:
            raise InputError("fit_each needs data: fit_each(model, data) with a DataFrame, a file or Data")
        given, data = as_model_and_data(given, data)
    elif not isinstance(given, Problem):
        raise InputError(f"fit_each takes a Problem or a Model, not {type(given).__name__}")
    elif data is not None:
        raise InputError("fit_each(problem) takes no data of its own: they are in the Problem")
    else:
        data = given.data
    problems: dict[str, Problem] = {}
    rows: dict[str, Row] = {}
    first: InputError | None = None
    for e in data.experiments:
        try:
            own = Problem(given, data.only(e.name)) if isinstance(given, Model) else given.alone(e.name)
            check_method(method, own)
        except InputError as error:
            first, rows[e.name] = first or error, Row(f"failed: {error}")
        else:
            problems[e.name], rows[e.name] = own, Row("")
    if not problems:
        assert first is not None
        raise first
    return problems, rows


def _check_portable(problem: Problem) -> None:
    try:
        pickle.dumps(problem)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise InputError(
            f"this model cannot be sent to other processes ({error}); define its function at the top of a module, "
            "write the equations as text, or leave out workers and timeout"
        ) from None


def _fit_all(
    jobs: list[Job], store: Store, executor: Workers | None, timeout: float | None, progress: Progress
) -> None:
    """Until the store has all; what another process is computing is waited for, or taken over where it has died."""

    def tell(state: JobProgress) -> None:
        done = state.before + state.done
        failed = f", {state.failed} failed" if state.failed else ""
        progress(f"{done} of {state.total} series{failed}", done / state.total)

    retry = True
    while True:
        state = resume(compute, jobs, store, executor, usable=is_valid_record, retry=retry, timeout=timeout, tell=tell)
        if not state.claimed_by_others:
            return
        retry = False
        time.sleep(_POLL_SECONDS)
