"""Write a problem, or what a PEtab or SBML file holds, as model text and a CSV file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from odinfer.data.csv_file import write_csv
from odinfer.data.series import distinct_times
from odinfer.errors import InputError
from odinfer.files import safe_name
from odinfer.io import PETAB, SBML
from odinfer.io.petab_reader import nominal, read_petab
from odinfer.io.sbml_reader import read_sbml
from odinfer.problem.problem import Problem


def to_own(source: Path, folder: Path) -> list[str]:
    """Write a PEtab problem or an SBML model to a folder in our language; the names of the files.

    Nominal values become published.json, for `odinfer fit --truth`.

    Raises:
        InputError: the file is of another kind, or cannot be read.
    """
    name = safe_name(source.stem)
    if source.suffix.lower() in SBML:
        (folder / f"{name}.ode").write_text(str(read_sbml(source).text), "utf-8")
        return [f"{name}.ode"]
    if source.suffix.lower() not in PETAB:
        raise InputError(f"'{source}' is neither a PEtab problem (.yaml) nor an SBML model (.xml)")
    files = write_own(read_petab(source), folder, name)
    values = nominal(source)
    if values:
        files.append(folder / "published.json")
        files[-1].write_text(json.dumps(values, indent=2) + "\n", "utf-8")
    return [path.name for path in files]


def write_own(problem: Problem, folder: Path, name: str) -> list[Path]:
    """Write NAME.ode and NAME.csv, which give the problem again if all that is said of it stands in its text.

    Raises:
        InputError: the model is a function, or the data have what no such file has.
    """
    if problem.model.text is None:
        raise InputError("the model is a function; only one from text can be written")
    model, data = folder / f"{name}.ode", folder / f"{name}.csv"
    model.write_text(problem.model.text, "utf-8")
    write_csv(data, columns_of(problem))
    return [model, data]


def columns_of(problem: Problem) -> dict[str, list[Any]]:
    """The columns of a CSV file with all data: experiments, times, observations, their errors, constant inputs."""
    names, inputs, experiments = problem.columns, problem.model.inputs, problem.data.experiments
    for e in experiments:
        if e.limit is not None or e.doses or any(len(np.unique(e.u[name][1])) > 1 for name in inputs):
            raise InputError(f"experiment '{e.name}' has limits, doses or inputs that change, which are not written")
    by_row = [
        m for m in range(len(names)) if any(e.sd is not None and np.isfinite(e.sd[:, m]).any() for e in experiments)
    ]
    found: dict[str, list[Any]] = {name: [] for name in ("experiment", "time", *names)}
    found |= {f"{names[m]}_sd": [] for m in by_row} | {name: [] for name in inputs}
    for e in experiments:
        once = distinct_times(e.t)
        found["experiment"] += [e.name] * len(e.t)
        found["time"] += once[np.searchsorted(once, e.t, side="right") - 1].tolist()
        for m, name in enumerate(names):
            found[name] += e.y[:, m].tolist()
        for m in by_row:
            found[f"{names[m]}_sd"] += [np.nan] * len(e.t) if e.sd is None else e.sd[:, m].tolist()
        for name in inputs:
            found[name] += [float(e.u[name][1][0])] * len(e.t)
    return found if len(experiments) > 1 else {name: column for name, column in found.items() if name != "experiment"}
