"""Write the report of a grid: one HTML page, CSV tables and PNG figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from odinfer.data.csv_file import write_csv
from odinfer.errors import InputError
from odinfer.files import staged_folder
from odinfer.paper.bench.report import figures, findings, tables
from odinfer.paper.bench.report.results import Results
from odinfer.paper.bench.report.tables import ReportTable
from odinfer.style.drawing import png, svg
from odinfer.style.html import base64_images, render_page
from odinfer.version import __version__

PAGE = "index.html"
_IN_WORDS = 3  # rows of a table in the words of a picture


class Item(NamedTuple):
    """A section of the page; figures are those whose names begin with one of the prefixes."""

    title: str
    text: str
    tables: tuple[Callable[[Results], ReportTable], ...]
    figures: tuple[str, ...]


def _quantiles(name: str, title: str, role: str, key: str, note: str = "") -> Callable[[Results], ReportTable]:
    return lambda results: tables.quantile_table(results, name, title, role, key, note)


_LIMIT = "The dashed line is the median of the statistical limit: maximum likelihood started at the truth."
ITEMS = (
    Item(
        "1. States: GP regression and ODIN",
        f"Root mean square error of the estimated states at the observation times, over times and states. {_LIMIT}",
        (_quantiles("1_states", "State RMSE", "states", "state_rmse"),),
        ("1_states",),
    ),
    Item(
        "2. Trajectory error by method",
        "The equations are integrated from the true initial values with the estimated parameters. trmse is the root "
        "mean square distance from the truth over times and states; trmse_paper is the paper's (1/N)·‖x̃ − x‖₂. "
        f"A run without an estimate counts as an infinite error. {_LIMIT}",
        (
            _quantiles("2_trmse_paper", "trmse_paper, the paper's convention", "compared", "trmse_paper"),
            _quantiles("2_trmse", "trmse, a root mean square", "compared", "trmse"),
            _quantiles("2_trmse_other_methods", "trmse of further methods", "also", "trmse"),
            tables.limit_table,
            tables.statewise_table,
        ),
        ("2_",),
    ),
    Item(
        "3. Median trajectories",
        "Blue: median over draws (their number in brackets) and the band from the 25 % to the 75 % quantile, cut off "
        "far from the truth. Orange: the truth.",
        (tables.trajectory_table,),
        ("3_",),
    ),
    Item(
        "4. Run times",
        "Dots are ours, diamonds are the paper's.",
        (tables.seconds_table,),
        ("4_",),
    ),
    Item(
        "5. Parameter estimates and identifiability",
        "Boxes from the 25 % to the 75 % quantile with the median; whiskers from 5 % to 95 %. The dashed line is the "
        "truth.",
        (tables.parameter_table,),
        ("5_",),
    ),
    Item(
        "6. Marginal distributions at fixed γ",
        "The line is the Gaussian with the same mean and standard deviation.",
        (tables.marginal_table,),
        ("6_",),
    ),
    Item(
        "7. Model selection",
        "Candidate M_ij has the true equation of the first state if i = 1 and of the second if j = 1. Every dot is a "
        "draw, diamonds are the paper's medians, and the dashed line is where the verdict changes.",
        (tables.gamma_table,),
        ("7_",),
    ),
    Item(
        "8. Scaling with the number of states",
        "Mean over draws ± one standard deviation.",
        (tables.scaling_table,),
        ("8_",),
    ),
)


def write(results: Results, folder: Path) -> list[str]:
    """Write the page, the tables and the figures, all of them or none.

    Returns:
        The names of the files, the page first.

    Raises:
        InputError: there is nothing to report, or the folder cannot be written to.
    """
    if not any(records for _, records in results.found):
        raise InputError("the store has no results of this grid and version; run it first: odinfer bench run")
    with staged_folder(folder, [PAGE]) as stage:
        return _write_files(results, stage)


def _write_files(results: Results, folder: Path) -> list[str]:
    pictures, drawings = {}, {}
    for name, draw in figures.all_figures(results).items():
        figure = draw()
        if figure is not None:
            pictures[name] = png(figure, 130)
            drawings[name] = svg(figure), figure.get_size_inches()[0]
    sections, names = [], []
    for item in ITEMS:
        made = [table(results) for table in item.tables]
        made = [t for t in made if t.rows and len(t.header) > 1]
        for table in made:
            write_csv(folder / f"{table.name}.csv", table.columns)
            names.append(f"{table.name}.csv")
        own = {n: d for n, d in drawings.items() if n.startswith(item.figures)}
        texts = base64_images({n: image for n, (image, _) in own.items()})
        sections.append(
            (item, made, [(_alternative_text(item, n, made), texts[n], round(96 * own[n][1])) for n in own])
        )
    for name, picture in pictures.items():
        (folder / f"{name}.png").write_bytes(picture)
        names.append(f"{name}.png")
    (folder / PAGE).write_text(_page(results, sections), "utf-8")
    return [PAGE, *names]


def _alternative_text(item: Item, name: str, made: Sequence[ReportTable]) -> str:
    """What a picture shows, in numbers of the table beside it."""
    table = next((t for t in made if t.name == name), next(iter(made), None))
    if table is None:
        return f"{item.title}: {name}"
    rows = (", ".join(f"{h} {c.splitlines()[0]}" for h, c in zip(table.header, row, strict=False) if c) for row in
            table.rows[:_IN_WORDS])  # fmt: skip
    return f"{item.title}: {name}. {'; '.join(rows)}"


def _page(results: Results, sections: list[tuple[Item, list[ReportTable], list[tuple[str, str, int]]]]) -> str:
    stored = sum(len(records) for _, records in results.found)
    planned = sum(cell.full for cell, _ in results.found)
    few = sorted({(c.method.label, len(r)) for c, r in results.cells() if len(r) < c.full})
    return render_page(
        "bench.html",
        live=False,
        title=results.grid.title,
        stored=stored,
        planned=planned,
        few=few,
        troubles=troubles(results),
        findings=findings.findings(results),
        beyond=findings.beyond_paper(results),
        sections=sections,
        version=__version__,
    )


def troubles(results: Results) -> list[tuple[str, int]]:
    """How runs ended that did not converge: the sentences, numbers taken out, and how often."""
    import re

    found: dict[str, int] = {}
    for cell, records in results.found:
        for record in records:
            outcome = record["outcome"]
            if not outcome["converged"]:
                words = re.sub(r"\d+(\.\d+)?(e-?\d+)?", "…", outcome["status"])
                words = f"{cell.method.label}: {re.sub(r'…( for| effective draws of) .*', r'…', words)}"
                found[words] = found.get(words, 0) + 1
    return sorted(found.items(), key=lambda item: -item[1])
