"""Write the report of a fit as one HTML file, or a folder with all files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from odinfer.data.csv_file import write_csv
from odinfer.diagnostics.verdicts import CONSISTENT, CONTRADICTS
from odinfer.errors import listed
from odinfer.files import make_folder, replaced_file, write_file
from odinfer.result import formats
from odinfer.result.estimates import (
    Truth,
    correlation_table,
    parameter_table,
    posterior_table,
    preferred_intervals,
    solutions_table,
)
from odinfer.result.figures import inputs, phase, residuals, samples, slopes, states, uncertainty, unknown
from odinfer.result.fit import FitResult
from odinfer.result.stages import attached_problem, state_band
from odinfer.result.summary import constant_table, data_counts, facts, headline, stage_table, state_table, tone
from odinfer.style.drawing import png
from odinfer.style.html import page_figure, render_page
from odinfer.style.picture import PanelFigure, SingleFigure
from odinfer.style.text import TextTable, format_number
from odinfer.uncertainty.figures import profiles_picture
from odinfer.uncertainty.results import BAND
from odinfer.version import __version__

OUTPUTS = ("fit.json", "fit.nc", "states.csv", "plot.png", "report.html")
# Pictures with all of their panels; of the others so many that a report of many states can be sent.
_IN_FULL, _FEW = ("states", "residuals"), 8
_MANY_EXPERIMENTS = 4  # from which on a row per experiment is easier to read than one per parameter and experiment
# All that a report may show; a fit that has no such picture has None.
PICTURES: dict[str, Callable[[FitResult], PanelFigure | SingleFigure | None]] = {
    "states": states.states_picture,
    "unknown": unknown.unknown_picture,
    "inputs": inputs.inputs_picture,
    "slopes": slopes.slopes_picture,
    "residuals": residuals.residuals_picture,
    "predicted": residuals.predicted_picture,
    "quantiles": residuals.quantiles_picture,
    "phase": phase.phase_picture,
    "profiles": lambda fit: profiles_picture(fit.profiles) if fit.profiles else None,
    "traces": samples.traces_picture,
    "ranks": samples.ranks_picture,
    "intervals": uncertainty.intervals_picture,
    "pairs": uncertainty.pairs_picture,
    "starts": uncertainty.starts_picture,
}


def write_html(fit: FitResult, path: str | Path, truth: Truth = None) -> None:
    """Write the result as one HTML file that needs no other file and no network.

    Args:
        fit: the result.
        path: of the file.
        truth: true parameters by name, where they are known.
    """
    write_file(path, html(fit, truth))


def write_outputs(fit: FitResult, folder: str | Path, truth: Truth = None) -> list[Path]:
    """Write fit.json, fit.nc, states.csv, plot.png and report.html.

    states.csv has the estimated states at the observation times with their 95 % bands, and the predicted values of
    observed columns that are no states.

    Returns:
        The paths of the files.

    Raises:
        InputError: if the folder cannot be made or written to.
    """
    folder = Path(folder)
    make_folder(folder)
    paths = [folder / name for name in OUTPUTS]
    formats.write(fit, paths[0])
    formats.write(fit, paths[1])
    with replaced_file(paths[2]) as temporary:
        write_csv(temporary, state_columns(fit))
    write_file(paths[3], png(states.states_figure(fit)))
    write_file(paths[4], html(fit, truth))
    return paths


def state_columns(fit: FitResult) -> dict[str, np.ndarray]:
    """Estimated states, predicted values of other columns, and 95 % bands of both, one experiment below the other."""
    columns: dict[str, np.ndarray] = {}
    if len(fit.experiments) > 1:
        columns["experiment"] = np.concatenate([[name] * len(e.t) for name, e in fit.experiments.items()])
    columns["time"] = np.concatenate([e.t for e in fit.experiments.values()])
    every = list(fit.experiments.values())
    tables = [(fit.state_names, [e.estimate() for e in every])]
    tables += [(fit.columns, [e.predictions() for e in every])] if fit.noise else []
    for names, found in tables:
        x, sd = (np.concatenate(parts) for parts in zip(*found, strict=True))
        low, high = state_band(fit, x, sd) if names is fit.state_names else (x - BAND * sd, x + BAND * sd)
        for k, what in enumerate(names):
            if what in columns and np.allclose(columns[what], x[:, k], equal_nan=True):
                continue  # a column that is a state
            for end, values in (("", x), ("_low", low), ("_high", high)):
                name = what + end
                while name in columns:  # a state x beside one that is called x_low
                    name += "_"
                columns[name] = values[:, k]
    return columns


def html(fit: FitResult, truth: Truth = None) -> str:
    """The page: what is said and shown on it."""
    rows, rates = state_table(fit), fit.gamma_user
    judged = () if fit.noise else tuple(
        (row[0], row[2], row[1], format_number(np.sqrt(rates.get(row[0], np.nan)), 2) if row[0] in rates else "-")
        for row in rows.rows
    )  # fmt: skip
    noise = TextTable(
        ("state", "noise σ", "RMSE of residuals", "observations"), tuple((r[0], *r[3:]) for r in rows.rows)
    )
    kind, found = preferred_intervals(fit)
    parameters, by_experiment = _split_by_experiment(parameter_table(fit, truth), [*fit.experiments])
    return render_page(
        "report.html",
        fit=fit,
        live=True,
        headline=headline(fit),
        tone=tone(fit),
        whole=headline(fit),
        agreement=_agreement(fit),
        wrong=[name for name in fit.state_names if fit.verdicts.get(name) == CONTRADICTS],
        compromise=any(e.best is not None for e in fit.experiments.values()),
        notes=_notes(fit),
        parameters=parameters,
        solutions=solutions_table(fit),
        by_experiment=by_experiment,
        amounts=data_counts(fit),
        intervals=bool(found),
        bayesian=kind == "sample",
        posterior=posterior_table(fit),
        chains=fit.sampled.status if fit.sampled is not None else fit.status,
        correlations=correlation_table(fit),
        judged=TextTable(("equation for", "verdict", "γ", "typical slope error"), judged),
        noise=TextTable(rows.header, tuple(r for r in rows.rows if r[1] != "hidden")) if fit.noise else noise,
        constants=constant_table(fit),
        stages=stage_table(fit),
        facts=facts(fit),
        pictures={
            name: page_figure(p, *([] if name in _IN_FULL else [_FEW]))
            for name, draw in PICTURES.items()
            if (p := draw(fit)) is not None
        },
        version=fit.details.get("version", __version__),
    )


def _split_by_experiment(table: TextTable, experiments: Sequence[str]) -> tuple[TextTable, TextTable | None]:
    """The rows of what all experiments share, and a row per experiment with what each has of its own.

    A table of 12 patients with 3 parameters each has 12 rows instead of 36; few of them stay as they are.
    """
    own: dict[str, dict[str, tuple[str, ...]]] = {}
    for row in table.rows:
        name, bracket, rest = row[0].partition("[")
        if bracket and rest.removesuffix("]") in experiments:
            own.setdefault(name, {})[rest.removesuffix("]")] = row
    if len(experiments) < _MANY_EXPERIMENTS or not own:
        return table, None
    inside = {row[0] for rows in own.values() for row in rows.values()}
    to = table.header.index("to") if "to" in table.header else None

    def cell(row: tuple[str, ...] | None) -> str:
        if row is None:
            return "-"
        return row[1] if to is None else f"{row[1]} ({row[to - 1]} to {row[to]})"

    rows = tuple((e, *(cell(found.get(e)) for found in own.values())) for e in experiments)
    shared = TextTable(table.header, tuple(row for row in table.rows if row[0] not in inside))
    return shared, TextTable(("experiment", *own), rows)


def _agreement(fit: FitResult) -> str:
    """What is said of the equations where they are folded away."""
    gammas = [g for g in fit.gamma.values() if np.isfinite(g)]
    verdicts = {*fit.verdicts.values()}
    words = (
        "All are consistent"
        if verdicts == {CONSISTENT}
        else "Not all of them"
        if CONTRADICTS in verdicts
        else "Not judged"
    )
    return f"{words}; γ at most {format_number(max(gammas), 2)}." if gammas else f"{words}."


def _notes(fit: FitResult) -> list[str]:
    """What is missing from the picture of states, and why."""
    notes = []
    if by_row := [name for name in fit.columns if name in fit.details.get("by_row", ())]:
        notes.append(
            f"Where new observations of {listed(by_row)} would lie is not shown: the standard deviation is known only "
            "at the rows of the data."
        )
    if fit.noise and attached_problem(fit) is None:
        notes.append("Where new observations would lie is not shown: a fit from a file has no model with it.")
    return notes
