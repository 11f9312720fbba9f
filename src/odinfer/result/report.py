"""The report of a fit: one HTML file with pictures, and a folder with everything."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from odinfer.files import make_folder, replacing, write_whole
from odinfer.judgement.verdicts import CONTRADICTS
from odinfer.problem.tables.csv_file import write_csv
from odinfer.result import figures, store, uncertainty_figures
from odinfer.result.fit import Fit
from odinfer.result.summary import Truth, facts, headline, parameter_table, stage_table, state_table, tone
from odinfer.style.drawing import png
from odinfer.style.html import inlined, page
from odinfer.style.text import TextTable, number
from odinfer.uncertainty.figures import profiles_figure
from odinfer.uncertainty.results import BAND
from odinfer.version import __version__

OUTPUTS = ("fit.json", "fit.nc", "states.csv", "plot.png", "report.html")
_FIGURES = {
    "states": figures.states_figure,
    "starts": uncertainty_figures.starts_figure,
    "gradients": figures.gradients_figure,
    "residuals": figures.residuals_figure,
    "gamma": figures.gamma_figure,
    "intervals": uncertainty_figures.intervals_figure,
    "profiles": lambda fit: profiles_figure(fit.profiles) if fit.profiles else None,
    "pairs": uncertainty_figures.pairs_figure,
}


def write_html(fit: Fit, path: str | Path, truth: Truth = None) -> None:
    """Write the result as one HTML file that needs no other file and no network.

    Args:
        fit: the result.
        path: of the file.
        truth: true parameters by name, where they are known.
    """
    write_whole(path, _html(fit, _pictures(fit), truth))


def write_outputs(fit: Fit, folder: str | Path, truth: Truth = None) -> list[Path]:
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
    pictures = _pictures(fit)
    paths = [folder / name for name in OUTPUTS]
    store.write(fit, paths[0])
    store.write(fit, paths[1])
    with replacing(paths[2]) as temporary:
        write_csv(temporary, state_columns(fit))
    write_whole(paths[3], pictures["states"])
    write_whole(paths[4], _html(fit, pictures, truth))
    return paths


def state_columns(fit: Fit) -> dict[str, np.ndarray]:
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
        for k, what in enumerate(names):
            if what in columns and np.allclose(columns[what], x[:, k], equal_nan=True):
                continue  # a column that is a state
            for end, sign in (("", 0), ("_low", -1), ("_high", 1)):
                name = what + end
                while name in columns:  # a state x beside one that is called x_low
                    name += "_"
                columns[name] = x[:, k] + sign * BAND * sd[:, k] if sign else x[:, k]
    return columns


def _html(fit: Fit, pictures: Mapping[str, bytes], truth: Truth) -> str:
    states, slopes = state_table(fit), fit.gamma_user
    judged = () if fit.noise else tuple(
        (row[0], row[2], row[1], number(np.sqrt(slopes.get(row[0], np.nan)), 2) if row[0] in slopes else "-")
        for row in states.rows
    )  # fmt: skip
    return page(
        "report.html",
        fit=fit,
        headline=headline(fit),
        tone=tone(fit),
        whole=headline(fit),
        wrong=[name for name in fit.state_names if fit.verdicts.get(name) == CONTRADICTS],
        contradicts=CONTRADICTS,
        parameters=parameter_table(fit, truth),
        judged=TextTable(("equation for", "verdict", "γ", "typical slope error"), judged),
        noise=states
        if fit.noise
        else TextTable(
            ("state", "noise σ", "RMSE of residuals", "observations"), tuple((r[0], *r[3:]) for r in states.rows)
        ),
        stages=stage_table(fit),
        facts=facts(fit),
        pictures=inlined(pictures),
        version=fit.details.get("version", __version__),
    )


def _pictures(fit: Fit) -> dict[str, bytes]:
    """The figures as PNG files, each drawn once; without those that this fit does not have."""
    drawn = {name: draw(fit) for name, draw in _FIGURES.items()}
    return {name: png(figure) for name, figure in drawn.items() if figure is not None}
