"""`odinfer fit --each`: fit every series by itself in worker processes and store the results durably."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odinfer.apps.command.terminal import progress, show, staged

if TYPE_CHECKING:
    from odinfer.problem.problem import Problem

STORE = "store"  # a folder in that of the outputs


def fit_all(problem: Problem, folder: Path, options: Mapping[str, Any], as_json: bool, quiet: bool) -> bool:
    """Fit, print and write; whether any series has converged.

    Args:
        problem: of all experiments.
        folder: for the outputs.
        options: of `fit_each`; the number of workers and the store may be None.
        as_json, quiet: what to print: the table as JSON, or nothing.
    """
    from odinfer.apps.each.entry import fit_each
    from odinfer.apps.each.page import OUTPUTS, dumps, write_outputs

    store = options["store"] or folder / STORE
    workers = options["workers"]
    if workers is None:
        workers = min(len(os.sched_getaffinity(0)), len(problem.data.experiments))
    left = f"finished series are in {store}, and the same command resumes"
    with staged(folder, OUTPUTS, left) as stage:
        with progress(quiet or as_json, lines=True) as tell:
            fits = fit_each(problem, **{**options, "workers": workers, "store": store}, progress=tell)
        if not (as_json or quiet):
            show(fits.summary().rstrip())
        names = [path.name for path in write_outputs(fits, stage)]
    if as_json:
        show(dumps(fits))
    elif not quiet:
        show(f"\nOpen {folder / names[0]} first. Also in {folder}: {', '.join(names[1:])}")
    return len(fits.failed) < len(fits)
