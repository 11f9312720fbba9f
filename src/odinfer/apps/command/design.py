"""`odinfer design`: read a model, data or a fit, and print the samples to take next."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odinfer.apps.command.flags import model_text, read_problem, read_values
from odinfer.apps.command.terminal import collected_notes, progress, show, staged
from odinfer.checks import checked_number
from odinfer.data.dose import Dose
from odinfer.errors import InputError
from odinfer.style.text import printable

if TYPE_CHECKING:
    from odinfer.data.data import Data
    from odinfer.model.model import Model
    from odinfer.optimal_design.result import Design
    from odinfer.result.fit import Fit

OUTPUTS = ("design.json", "samples.csv", "design.png")
_DOSE = re.compile(r"\s*([-+.\deE]+)\s*:\s*([^\W\d]\w*)\s*=\s*([-+.\deE]+)\s*")


def run_design(
    model: Path, known: Path | None, between: Path | None, values: Mapping[str, str], options: Mapping[str, Any],
    posed: Mapping[str, Any], folder: Path, as_json: bool, quiet: bool,
) -> None:  # fmt: skip
    """Find the samples, print them and write the folder.

    Args:
        known: data, or a fit.json; None if `values` has everything.
        values: "theta" and "x0" as text.
        options: of `od.design`, read from flags.
    """
    from odinfer.optimal_design.entry import design

    with collected_notes(quiet) as notes, staged(folder, OUTPUTS) as stage, progress(quiet or as_json) as tell:
        if known is not None:
            if values["theta"] or values["x0"]:
                raise InputError("--theta and --x0 are for a design without data; leave them or the file out")
            rival = _read_or_fit(between, known, posed, notes, tell) if between else None
            found = design(_read_or_fit(model, known, posed, notes, tell), between=rival, progress=tell, **options)
        else:
            system, other = _model(model), _model(between) if between else None
            known_names = (*system.parameters, *system.declarations.effects.names)
            theta = read_values("--theta", values["theta"], known_names) if values["theta"] else {}
            x0 = read_values("--x0", values["x0"], system.states) if values["x0"] else {}
            theta = {**system.fixed, **theta}
            sigma = read_values("--sigma", ",".join(posed["sigma"]), _columns(system)) if posed["sigma"] else {}
            found = design(system, between=other, theta=theta, x0=x0, sigma=sigma, progress=tell, **options)
        write_design(found, stage)
    if as_json:
        show(json.dumps(found.to_dict(), indent=1))
    elif not quiet:
        show(found.summary())
        show(f"\nOpen {folder / OUTPUTS[2]} for the picture. Also in {folder}: {', '.join(OUTPUTS[:2])}")


def write_design(found: Design, folder: Path) -> None:
    """Write design.json, samples.csv and design.png."""
    found.save(folder / OUTPUTS[0])
    found.save(folder / OUTPUTS[1])
    found.plot(folder / OUTPUTS[2])


def read_candidate_times(text: str) -> Any:
    """Candidate times of --times: START:STOP, START:STOP:COUNT, or a list."""
    from odinfer.apps.command.flags import read_times

    parts = text.split(":")
    if len(parts) == 2:
        try:
            return tuple(checked_number("--times", float(part)) for part in parts)
        except ValueError:
            raise InputError(f"--times takes START:STOP, START:STOP:COUNT or a list, not '{text[:60]}'") from None
    return read_times(text)


def read_doses(texts: Sequence[str]) -> list[list[Dose]]:
    """Dose plans of --doses, such as "0:gut=100,12:gut=50"."""
    plans = []
    for text in texts:
        plan = []
        for part in text.split(","):
            match = _DOSE.fullmatch(part)
            if match is None:
                raise InputError(f"--doses takes TIME:STATE=AMOUNT, for example 0:gut=100,12:gut=50, not '{part[:60]}'")
            time, state, amount = match.groups()
            plan.append(Dose(float(time), float(amount), state))
        plans.append(plan)
    return plans


def read_covariates(text: str) -> dict[str, float | str]:
    """Covariates of --covariates: numbers or labels by name."""
    found: dict[str, float | str] = {}
    for part in filter(None, text.split(",")):
        name, _, value = (piece.strip() for piece in part.partition("="))
        if not name or not value:
            raise InputError(f"--covariates takes name=value, not '{part[:60]}'")
        try:
            found[name] = float(value)
        except ValueError:
            found[name] = value
    return found


def _read_or_fit(model: Path, known: Path, posed: Mapping[str, Any], notes: list[str], tell: Any) -> Fit:
    """The fit of a model to data, or the one in a fit.json."""
    from odinfer.methods import fit

    if known.suffix.lower() != ".json":
        return fit(read_problem(model, known, posed, notes), progress=tell)
    from odinfer.data.data import Data
    from odinfer.problem.problem import Problem
    from odinfer.result.formats.load import load

    result, system = load(known), _model(model)
    if system.inputs:
        raise InputError(f"'{model}' has inputs, which a fit.json does not hold; give the data file instead")
    fixed = {name: result.theta[name] for name in result.details.get("fixed") or ()}
    fixed = {name: value for name, value in fixed.items() if name in system.parameters}
    found = result.attach(Problem(system, _observations(result, Data), fixed=fixed))
    if abs(found.maximum().refined.loglik - result.loglik) > 0.1:
        raise InputError(
            f"'{known}' was fitted with doses or options that it does not hold; give the data file instead"
        )
    return found


def _observations(result: Any, kind: type[Data]) -> Data:
    """The data of a fit from a file."""
    from odinfer.data.data import Experiment

    experiments = [Experiment(name, e.t, e.y, {}, limit=e.limit) for name, e in result.experiments.items()]
    return kind.from_experiments(result.columns, experiments)


def _model(path: Path) -> Model:
    from odinfer.model.model import Model

    return Model.from_text(model_text(path), printable(path.stem))


def _columns(model: Model) -> tuple[str, ...]:
    return tuple(c.name for c in model.declarations.columns) or model.states
