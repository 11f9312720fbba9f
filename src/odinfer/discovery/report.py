"""Tables, figures and files of a search for missing terms."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from odinfer.errors import InputError
from odinfer.files import make_folder, write_file
from odinfer.style.text import TextTable, format_number, format_with_error
from odinfer.version import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from odinfer.discovery.result import DiscoveredEquations, Discovery

    Found: TypeAlias = Discovery | DiscoveredEquations

_SHOWN = 8  # rows of the printed ranking


def ranking_table(found: Found, most: int = _SHOWN) -> TextTable:
    """The refitted terms, the best first."""
    rows = []
    for r in found.ranking.head(most).itertuples():
        cells = format_with_error([r.estimate, r.low, r.high], 0.25 * (r.high - r.low))
        interval = f"{cells[1]} to {cells[2]}" if math.isfinite(r.low) else "-"
        rows.append((r.equation, r.term, format_number(r.delta_bic, 4), format_number(r.p, 2), cells[0], interval))
    return TextTable(("equation", "term", "ΔBIC", "p", "estimate", "95 % interval"), tuple(rows))


def summary(found: Found) -> str:
    """The verdict, the ranking and what its columns mean, as plain text."""
    from odinfer.result.summary import wrapped

    lines = [found.headline, "", *found.equations, *ranking_table(found).lines(), "", found.footnote]
    return wrapped(lines)


def document(found: Found) -> dict[str, Any]:
    """Everything as plain data."""
    rows = [{k: _json_value(v) for k, v in row.items()} for row in found.ranking.to_dict("records")]
    return {
        "version": __version__, "verdict": found.verdict, "headline": found.headline, "best": found.best.text,
        "screened": found.screened, "p": _json_value(found.p), "ranking": rows,
    }  # fmt: skip


def dumps(found: Found) -> str:
    return json.dumps(document(found), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def figure(found: Found) -> Figure:
    """Data with the trajectories of the given model and of the best one, a panel per column."""
    from odinfer.discovery.figures import comparison_figure

    return comparison_figure(found)


def save(found: Found, path: Path) -> None:
    """Write to a `.json` file, a `.csv` file, or a folder."""
    if path.suffix == ".json":
        write_file(path, dumps(found))
    elif path.suffix == ".csv":
        write_file(path, found.ranking.to_csv(index=False))
    elif path.suffix:
        raise InputError(f"a discovery is saved as .json, .csv or to a folder, not as '{path.suffix}'")
    else:
        write_outputs(found, path)


def write_outputs(found: Found, folder: Path) -> list[str]:
    """discovery.json, ranking.csv, best.ode and the figure; their names."""
    from odinfer.style.drawing import png

    make_folder(folder)
    contents: dict[str, str | bytes] = {
        "discovery.png": png(figure(found)),
        "discovery.json": dumps(found),
        "ranking.csv": found.ranking.to_csv(index=False),
        "best.ode": (found.best.text or "").rstrip() + "\n",
    }
    for name, content in contents.items():
        write_file(folder / name, content)
    return list(contents)


def _json_value(value: Any) -> Any:
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    return value
