"""The report of a population fit: one HTML file, and a folder with everything."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING

from odinfer.files import make_folder, write_file
from odinfer.population.figures import MOST_SUBJECTS, PICTURES, draw
from odinfer.population.summary import headline, likelihood_table, population_table
from odinfer.style.drawing import png
from odinfer.style.html import render_page
from odinfer.version import __version__

if TYPE_CHECKING:
    from odinfer.population.result import PopulationFit

OUTPUTS = ("fit.json", "individual.csv", "residuals.csv", "plot.png", "report.html")
_DPI = 110


def html(fit: PopulationFit) -> str:
    """The report as one HTML page."""
    known = any(e.covariates for e in fit.problem.data.experiments)
    pictures = []
    for name, picture in PICTURES.items():
        if name != "covariates" or known:
            image = base64.b64encode(png(draw(fit, name), _DPI)).decode()
            first = name == "fits" and len(fit.subjects) > MOST_SUBJECTS
            why = (
                f"{picture.caption} The first {MOST_SUBJECTS} of {len(fit.subjects)} subjects."
                if first
                else picture.caption
            )
            pictures.append({"title": picture.title, "why": why, "image": image})
    return render_page(
        "population.html",
        live=False,
        name=fit.problem.model.name,
        version=__version__,
        headline=headline(fit),
        good=fit.converged,
        tables=(population_table(fit), likelihood_table(fit)),
        warnings=fit.warnings,
        test="" if fit.model_test is None else str(fit.model_test),
        text=fit.problem.model.text or "",
        pictures=pictures,
        criteria=f"AIC {fit.aic:.2f}, BIC {fit.bic:.2f}",
    )


def write_outputs(fit: PopulationFit, folder: str | Path) -> list[Path]:
    """Write fit.json, individual.csv, residuals.csv, plot.png and report.html.

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
    write_file(paths[4], html(fit))
    return paths
