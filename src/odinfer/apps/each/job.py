"""The fit of one series as a job: its key (a hash of all inputs) and its computation in a worker."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from typing import Any

from odinfer.apps.each.row import Row
from odinfer.data.data import Experiment
from odinfer.methods import Method, fit
from odinfer.parallel.resume import FAILED, Job, error_outcome
from odinfer.parallel.store import canonical, digest
from odinfer.problem.problem import Problem
from odinfer.result.extras import with_extras
from odinfer.result.formats.json_format import dumps
from odinfer.result.formats.json_values import decode_record, encode, encode_record
from odinfer.version import __version__

_OPTIONS = ("bounds", "fixed", "prior", "sigma", "start", "scale", "positive")


@dataclass(frozen=True, eq=False)
class FitOptions:
    """What all series have in common: how they are fitted, and what is added to each fit."""

    method: Method
    seed: int = 0
    uncertainty: str | None = None
    test: bool = False


def job(problem: Problem, how: FitOptions) -> Job:
    """The fitting of a problem of one experiment."""
    (e,) = problem.data.experiments
    m = problem.model
    told = (m.text, m.states, m.parameters, m.inputs, {name: getattr(problem, name) for name in _OPTIONS})
    kind = type(how.method)
    run = {
        "experiment": e.name,
        "model": m.name,
        "problem": digest(canonical(encode(told))),
        "data": digest(canonical(_data_content(e, problem.columns))),
        "method": [f"{kind.__module__}.{kind.__qualname__}", encode(_method_options(how.method))],
        "more": [how.uncertainty, how.test],
        "seed": how.seed,
        "version": __version__,
    }
    return Job(digest(canonical(run)), run, (problem, how))


def _data_content(e: Experiment, columns: tuple[str, ...]) -> Any:
    values = {f.name: getattr(e, f.name) for f in fields(e)}
    return encode({**values, "columns": columns, "doses": [asdict(dose) for dose in e.doses]}, arrays=True)


def _method_options(method: Any) -> Any:
    return asdict(method) if is_dataclass(method) and not isinstance(method, type) else repr(method)


def compute(problem: Problem, how: FitOptions) -> dict[str, Any]:
    """The record of a series. Whatever goes wrong in a fit is a status: a table of many series must not miss one."""
    clock, cpu = time.perf_counter(), time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # nobody reads a thousand of them; those of a fit are in it
            found = fit(problem, method=how.method, seed=how.seed)
            found = with_extras(found, how.uncertainty, how.test, how.seed)
        row = encode_record(Row.of(found))
        outcome = {"status": found.status, "converged": found.converged, "row": row, "fit": dumps(found)}
    except Exception as error:
        outcome = error_outcome(error)
    return {"outcome": outcome, "timing": {"seconds": time.perf_counter() - clock, "cpu": time.process_time() - cpu}}


def row_of(outcome: Mapping[str, Any], problem: Problem | None = None) -> Row:
    """What a record has for the table, names in the order of the problem's; of a failure its status."""
    if "row" not in outcome:
        return Row(str(outcome["status"]))
    row: Row = decode_record(Row, outcome["row"])
    if problem is None:
        return row
    orders = {"theta": problem.parameters, "initial": problem.model.states, "sigma": problem.columns}
    named: dict[str, Any] = {
        key: {name: found[name] for name in order if name in (found := getattr(row, key))}
        for key, order in orders.items()
    }
    return replace(row, **named)


def is_valid_record(stored: Mapping[str, Any]) -> bool:
    """Whether a record of a store, which may come from elsewhere, is one of a series."""
    try:
        outcome = stored["outcome"]
        row = row_of(outcome)
        sound = all(len(value) == 3 for value in (*row.theta.values(), *row.initial.values()))
        same = digest(canonical(stored["run"])) == stored["key"] and row.status == outcome["status"]
        held = isinstance(outcome["fit"], str) if "row" in outcome else row.status.startswith(FAILED)
        return bool(sound and same and held and row.x.shape[:1] == row.t.shape)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError):
        return False
