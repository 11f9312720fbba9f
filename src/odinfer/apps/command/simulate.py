"""`odinfer simulate`: write the solution of a model with its observables, or simulated data."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odinfer.apps.command.flags import model_text, read_times, read_values
from odinfer.apps.command.terminal import collected_notes, say, show, staged
from odinfer.checks import checked_positive
from odinfer.data.csv_file import write_csv
from odinfer.data.data import Experiment
from odinfer.data.reader import read_csv
from odinfer.errors import InputError
from odinfer.model.model import Model
from odinfer.noise import FAMILIES
from odinfer.ode.simulate import simulate
from odinfer.problem.condition import Condition

Array = NDArray[np.float64]


def run_simulation(
    model: Path, times: str, x0: str, theta: str, inputs: Path | None, noise: str, seed: int, out: Path | None
) -> bool:
    """Write a CSV file, or print it; whether the solution reaches the last time."""
    sd = read_noise(noise)
    with collected_notes():
        system = Model.from_text(model_text(model), model.stem)
        values = {**system.fixed, **(read_values("--theta", theta, system.parameters) if theta else {})}
        initial, t, series = read_values("--x0", x0, system.states) if x0 else {}, read_times(times), {}
        if inputs:
            first = read_csv(inputs, system.inputs).experiments[0]
            series = {name: (first.t, y) for name, y in zip(system.inputs, first.y.T, strict=True)}
        if out is not None and out.is_dir():
            raise InputError(f"cannot write to '{out}': it is a folder; give a file with -o")
        with staged(out.parent if out else Path(tempfile.gettempdir())) as stage:
            columns = csv_text(system, values, initial, t, series, sd, seed)
            file = stage / (out.name if out else "printed.csv")
            write_csv(file, columns)
            printed = "" if out else file.read_text("utf-8")
            if not out:
                file.unlink()
    if printed:
        show(printed.rstrip("\n"))
    finite = bool(np.isfinite(np.stack(list(columns.values()))).all())
    if not finite:
        say(f"the solution blows up before time {t[-1]:g}; what could not be computed is left empty")
    return finite


def read_noise(text: str) -> float | None:
    """The standard deviation of --noise; None for "model", where all noise is that of the model's text."""
    if text == "model":
        return None
    try:
        sd = float(text)
    except ValueError:
        raise InputError(f"--noise takes a standard deviation or 'model', not '{text[:60]}'") from None
    if sd != 0:
        checked_positive("--noise", sd)
    return sd


def csv_text(
    model: Model,
    theta: Mapping[str, float],
    x0: Mapping[str, float],
    t: Array,
    inputs: Mapping[str, Any],
    sd: float | None,
    seed: int,
) -> dict[str, Array]:
    """Columns by name, the time first.

    Without noise these are the states and what the model predicts for columns that have distributions. With noise they
    are data: those columns drawn from their distributions if the model has any, otherwise every state plus noise.

    Args:
        sd: of the noise where no distribution says it; 0 for none at all, None if there must be no such place.
    """
    x = simulate(model, theta, x0, t, inputs)
    states = dict(zip(model.states, x.T, strict=True))
    columns, rng = model.declarations.columns, np.random.default_rng(seed)
    if not columns:
        if sd is None:
            raise InputError(
                "--noise model: the model has no distributions (such as x ~ normal(x, 0.1)); give a number"
            )
        return {"time": t, **dict(zip(model.states, (x + sd * rng.normal(size=x.shape)).T, strict=True))}
    values = np.array([theta.get(name, np.nan) for name in model.parameters])
    u = Condition.of(model, Experiment("simulation", t, np.empty((len(t), 0)), dict(inputs))).inputs_at(t)
    point = t, x, np.broadcast_to(values, (len(t), len(values))), u
    seen = {}
    for column in columns:
        with np.errstate(all="ignore"):
            arguments = list(model.program(column.arguments).evaluate(*point).T)
        family = FAMILIES[column.family]
        if sd == 0:
            seen[column.name] = arguments[0]
            continue
        if len(arguments) < len(family.arguments):
            if sd is None:
                raise InputError(
                    f"line {column.line}: '{column.name}' has no sd; write it there, or give --noise a number"
                )
            arguments.append(np.full(len(t), sd))
        seen[column.name] = family.draw(rng, arguments)
    return {"time": t, **seen} if sd != 0 else {"time": t, **states, **seen}
