"""Population models in `odinfer fit` and `odinfer check`."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from odinfer.apps.command.flags import read_times, read_values
from odinfer.apps.command.terminal import progress, show, staged
from odinfer.data.csv_file import write_csv
from odinfer.errors import InputError, listed, nearest
from odinfer.files import replaced_file
from odinfer.model.statements import read_statements
from odinfer.problem.problem import Problem
from odinfer.style.text import TextTable, format_number

if TYPE_CHECKING:
    from odinfer.data.data import Data
    from odinfer.population.result import PopulationFit
    from odinfer.population.structure import Structure


_DRAWS = 2000  # of random effects in a forecast


def fit_population(
    problem: Problem, folder: Path, truth: str | None, seed: int, as_json: bool, quiet: bool,
    test: bool = False, executor: Mapping[str, Any] | None = None,
) -> bool:  # fmt: skip
    """Fit, print the answer, and write a folder.

    Args:
        truth: true or published values, as the flag has them.
        test: whether to test the model as a whole.
        executor: "workers" and "cluster" that solve trajectories.

    Returns:
        Whether the fit converged.
    """
    from odinfer.population.fit import fit_population as run
    from odinfer.population.report import OUTPUTS, write_outputs
    from odinfer.population.structure import Structure

    true = read_values("--truth", truth, Structure.of(problem).names) if truth else {}

    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # its remarks about fonts are not for our users
    with staged(folder, OUTPUTS) as stage:
        with progress(quiet or as_json) as tell:
            result = run(problem, seed, tell, **(executor or {}))
            if test:
                tasks = {name: given for name, given in (executor or {}).items() if given is not None}
                result = replace(result, model_test=result.test(progress=tell, **tasks))
        if not (as_json or quiet):
            show(result.summary().rstrip())
            if true:
                show("\n" + "\n".join(_compare_with_truth(result, true).lines()))
        names = [path.name for path in write_outputs(result, stage)]
        document = (stage / "fit.json").read_text("utf-8")
    if as_json:
        show(document.rstrip())
    elif not quiet:
        first = names[-1]
        show(f"\nOpen {folder / first} first. Also in {folder}: {', '.join(names[:-1])}")
    return result.converged


def run_forecast(
    problem: Problem, new: Data | None, subjects: Sequence[str], fitted: Path | None, seed: int, quiet: bool,
    times: str, level: float, observed: bool, out: Path,
) -> None:  # fmt: skip
    """Write predictions with bands: of new subjects, of subjects of the fit, or of one drawn from the population.

    Args:
        new: doses, covariates and any observations of subjects that are not in the fit.
        subjects: names of those in the fit.
        fitted: fit.json; fitted anew if not given.
    """
    from odinfer.population.fit import fit_population as run
    from odinfer.population.result import saved_estimate
    from odinfer.population.simulation import Draws, forecast_new, forecast_subject
    from odinfer.uncertainty.results import checked_level

    t = np.unique(read_times(times))
    checked_level(level)
    known = [e.name for e in problem.data.experiments]
    for name in subjects:
        if name not in known:
            raise InputError(f"there is no subject '{name}'{nearest(name, known)}")
    with progress(quiet) as tell:
        found = saved_estimate(fitted, problem) if fitted else run(problem, seed, tell).estimate
    draws: dict[str, Draws] = {}
    for name in subjects:
        draws[name] = forecast_subject(found, t, name, _DRAWS, seed)
    if new is not None:
        draws |= {e.name: forecast_new(found, t, new.only(e.name), _DRAWS, seed) for e in new.experiments}
    if anyone := not draws:
        draws["new"] = forecast_subject(found, t, None, _DRAWS, seed)
    columns: dict[str, Any] = {"subject": np.repeat([*draws], len(t)), "time": np.tile(t, len(draws))}
    names = problem.columns
    bands = [own.band(level, observed) for own in draws.values()]
    for m, name in enumerate(names):
        for end, which in (("", 1), ("_low", 0), ("_high", 2)):
            columns[name + end] = np.concatenate([band[which][:, m] for band in bands])
    with replaced_file(out) as temporary:
        write_csv(temporary, columns)
    of = "a subject of the population with the doses and covariates of the first" if anyone else listed([*draws])
    show(f"Wrote {out}: {', '.join(names)} of {of}, with {100 * level:g} % bands at {len(t)} times.")


def _compare_with_truth(fit: PopulationFit, truth: Mapping[str, float]) -> TextTable:
    """Estimates beside true values."""
    rows = []
    for name, value in truth.items():
        low, high = fit.intervals.get(name, (np.nan, np.nan))
        rows.append(
            (
                name,
                format_number(fit.theta.get(name, np.nan)),
                format_number(value),
                "yes" if low <= value <= high else "no",
            )
        )
    return TextTable(("parameter", "estimate", "truth", "in 95 % interval"), tuple(rows))


def population_sentences(structure: Structure) -> list[str]:
    """Who the subjects are, what varies and by what, correlations, covariates, and what is estimated."""
    problem, subjects = structure.problem, len(structure.subjects)
    statements = read_statements(problem.model.declarations.text)
    counts = [int(np.isfinite(e.y).sum()) for e in problem.data.experiments]
    first, last = (end(float(end(e.t)) for e in problem.data.experiments) for end in (min, max))
    each = f"{min(counts)} to {max(counts)}" if min(counts) < max(counts) else f"{counts[0]}"
    lines = [f"{subjects} subjects with {each} observations each, from {first:g} to {last:g}."]
    for effect in structure.effects:
        if effect.deviates:
            continue
        given = statements.given["effect"][effect.name]
        centre = given.arguments[0][1].piece(0, None).strip().replace("**", "^")
        lines.append(f"{effect.name} varies by {given.by}: {effect.family} about {centre}, sd {effect.omega}.")
    for effect in problem.model.declarations.effects.occasion:
        most = sum(e.deviates is not None and e.deviates.name == effect.name for e in structure.effects)
        lines.append(f"{effect.name} varies by {effect.by} within subjects (at most {most} each), sd {effect.omega}.")
    for group in structure.groups:
        lines.append(f"Correlated: {listed(group)}.")
    names, labels = structure.covariates[0], problem.model.declarations.effects.labels
    used = dict.fromkeys(labels[name][0] if name in labels else name for name in names)
    if used:
        lines.append(f"Covariates: {listed(list(used))}.")
    estimated = [p.name for p in structure.parameters]
    lines.append(f"{len(estimated)} parameters of the population: {', '.join(estimated)}.")
    signs = [p.name for p in structure.parameters if p.role in ("centre", "fixed") and np.isinf(p.low)]
    if signs:
        lines.append(f"Of any sign: {listed(signs)}.")
    return lines
