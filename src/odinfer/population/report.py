"""The report of a population fit: one HTML file, and a folder with everything."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from odinfer.files import make_folder, write_file
from odinfer.population.figures import MOST_SUBJECTS, PICTURES, draw
from odinfer.population.summary import headline, likelihood_table, population_table
from odinfer.style.drawing import png, svg
from odinfer.style.html import render_page
from odinfer.style.text import TextTable
from odinfer.version import __version__

if TYPE_CHECKING:
    from odinfer.population.result import PopulationFit

_ORDER = (1, 2, 4, 3, 5, 6, 0)  # columns of the table of parameters, the most important first
OUTPUTS = ("fit.json", "individual.csv", "residuals.csv", "plot.png", "report.html")


def picture_names(fit: PopulationFit) -> list[str]:
    """The names of the pictures of the report: those of random effects and covariates only if there are any."""
    known, varying = any(e.covariates for e in fit.problem.data.experiments), bool(fit.structure.varying)
    shown = {"effects": varying, "covariates": varying and known}
    return [name for name in PICTURES if shown.get(name, True)]


def pictures(fit: PopulationFit) -> dict[str, bytes]:
    """The pictures of the report as SVG files by name."""
    return {name: svg(draw(fit, name)) for name in picture_names(fit)}


def _caption(fit: PopulationFit, name: str) -> str:
    limited = name == "fits" and len(fit.subjects) > MOST_SUBJECTS
    more = f" The first {MOST_SUBJECTS} of {len(fit.subjects)} subjects." if limited else ""
    return PICTURES[name].caption + more


def html(fit: PopulationFit, drawn: Mapping[str, bytes] | None = None) -> str:
    """The report as one HTML page; `drawn` are its pictures, if they are there already."""
    parameters = population_table(fit)
    shown = [
        {"title": PICTURES[name].title, "why": _caption(fit, name), "image": base64.b64encode(image).decode()}
        for name, image in (pictures(fit) if drawn is None else drawn).items()
    ]
    return render_page(
        "population.html",
        live=False,
        name=fit.problem.model.name,
        version=__version__,
        headline=headline(fit),
        good=fit.converged,
        parameters=TextTable(
            tuple("kind" if i == 0 else parameters.header[i] for i in _ORDER),
            tuple(tuple(row[i] for i in _ORDER) for row in parameters.rows),
        ),
        likelihood=likelihood_table(fit),
        warnings=fit.warnings,
        test="" if fit.model_test is None else str(fit.model_test),
        text=fit.problem.model.text or "",
        pictures=shown,
        criteria=f"AIC {fit.aic:.2f}, BIC {fit.bic:.2f}",
    )


def write_outputs(fit: PopulationFit, folder: str | Path, drawn: Mapping[str, bytes] | None = None) -> list[Path]:
    """Write fit.json, individual.csv, residuals.csv, plot.png and report.html.

    Args:
        fit: the result.
        folder: where to.
        drawn: the pictures of the report, if they are there already.

    Returns:
        The paths of the files.
    """
    folder = Path(folder)
    make_folder(folder)
    paths = [folder / name for name in OUTPUTS]
    fit.save(paths[0])
    fit.save(paths[1])
    write_file(paths[2], fit.residuals.to_csv(index=False))
    write_file(paths[3], png(draw(fit, "fits")))
    write_file(paths[4], html(fit, drawn))
    return paths
