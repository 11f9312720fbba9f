"""Write many fits as one self-contained HTML page and a CSV table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odinfer.apps.each import panels
from odinfer.apps.each.row import WHOLE_MODEL
from odinfer.apps.each.summary import findings, format_estimate, headline, spread_table, tone
from odinfer.data.csv_file import write_csv
from odinfer.errors import InputError, listed
from odinfer.files import make_folder, replaced_file, write_file
from odinfer.result.formats.json_values import encode_numbers
from odinfer.style.drawing import PALETTE
from odinfer.style.html import render_page
from odinfer.style.text import format_number
from odinfer.version import __version__

if TYPE_CHECKING:
    from odinfer.apps.each.fits import Fits

OUTPUTS = ("report.html", "estimates.csv")
_OPEN_PANELS = 24  # panels that are seen at once; the others are folded
_MAX_BYTES = 2_000_000  # of panels
_MAX_QUANTITIES = 16  # drawn
_MAX_ROWS = 1000  # of the table


def save(fits: Fits, path: Path) -> None:
    """To a .csv file, a .html page, or a folder with both."""
    if path.suffix == ".csv":
        with replaced_file(path) as temporary:
            _write_table(fits, temporary)
    elif path.suffix == ".html":
        write_file(path, html(fits))
    elif path.suffix:
        raise InputError(f"fits are saved as .csv, as .html or to a folder, not as '{path.suffix}'")
    else:
        write_outputs(fits, path)


def write_outputs(fits: Fits, folder: Path) -> list[Path]:
    """report.html and estimates.csv; the page first."""
    make_folder(folder)
    write_file(folder / OUTPUTS[0], html(fits))
    with replaced_file(folder / OUTPUTS[1]) as temporary:
        _write_table(fits, temporary)
    return [folder / name for name in OUTPUTS]


def dumps(fits: Fits) -> str:
    """The table as JSON, an object per series; numbers that JSON has not are null (NaN), "inf" and "-inf"."""
    rows = fits.table().reset_index().to_dict("records")
    plain = [{k: encode_numbers(v) if isinstance(v, float) else v for k, v in row.items()} for row in rows]
    return json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False)


def _write_table(fits: Fits, path: Path) -> None:
    table = fits.table().reset_index()
    write_csv(path, {str(name): table[name].to_numpy() for name in table.columns})


def html(fits: Fits) -> str:
    """One self-contained page."""
    first = next(iter(fits.problems.values()))
    axes, shared = panels.axes_of(fits.problems)
    why, found = _reasons(fits), fits.estimates()
    drawn = _panels(fits, axes, why)
    noted, others = ([name for name in drawn if (name in why) == yes] for yes in (True, False))
    return render_page(
        "each.html",
        live=False,
        fits=fits,
        equations=first.model.text,
        headline=headline(fits),
        remarks=findings(fits),
        tone=tone(fits),
        spread=spread_table(fits),
        quantities={
            name: drawing
            for name, by_series in list(found.items())[:_MAX_QUANTITIES]
            if (drawing := panels.estimates(by_series, [s for s, why in fits.outliers.items() if name in why]))
        },
        number=format_number,
        row=panels.ROW,
        size=(panels.WIDTH, panels.HEIGHT),
        colours=PALETTE,
        columns=first.columns[: panels.COLUMNS],
        left_out=len(first.columns) - panels.COLUMNS,
        ranges=_ranges(first.columns, next(iter(axes.values()))) if shared else "",
        groups=(("Worth a look", noted), ("The others" if noted else "All of them", others)),
        open=_OPEN_PANELS,
        panels=drawn,
        alts={name: _alt(fits, name, why) for name in drawn},
        why=why,
        header=("series", *found),
        cells=_cells(fits, found),
        undrawn=len(fits) - len(drawn),
        unlisted=max(0, len(fits) - _MAX_ROWS),
        version=__version__,
    )


def _reasons(fits: Fits) -> dict[str, str]:
    """Why a series needs a look, in a few words."""
    outliers = {name: f"outlier in {', '.join(why)}" for name, why in fits.outliers.items()}
    rejected = {
        name: f"contradicts {WHOLE_MODEL}" if why == (WHOLE_MODEL,) else f"contradicts the equation for {listed(why)}"
        for name, why in fits.contradicted.items()
    }
    return {**outliers, **rejected, **fits.failed}


def _panels(fits: Fits, axes: Mapping[str, panels.Axes], why: Mapping[str, str]) -> dict[str, panels.Panel]:
    """Panels, those that need a look first, as many as a page can hold."""
    drawn: dict[str, panels.Panel] = {}
    room = _MAX_BYTES
    for name in sorted(fits.problems, key=lambda name: name not in why):
        made = panels.panel(fits.problems[name], fits.rows[name], axes[name])
        room -= 400 + sum(map(len, (*made.dots, *made.lines)))
        if room < 0:
            break
        drawn[name] = made
    return drawn


def _ranges(columns: tuple[str, ...], axes: panels.Axes) -> str:
    parts = [f"time from {format_number(axes.start, 4)} to {format_number(axes.stop, 4)}"]
    each = zip(columns, axes.low.tolist(), axes.high.tolist(), strict=False)
    parts += [f"{name} from {format_number(low, 3)} to {format_number(high, 3)}" for name, low, high in each]
    return ", ".join(parts)


def _alt(fits: Fits, name: str, why: Mapping[str, str]) -> str:
    """What a panel shows: whether the fit is one, and the estimates."""
    row = fits.rows[name]
    found = ", ".join(f"{p} {format_estimate(value)[0]}" for p, value in list(row.theta.items())[:6])
    return f"{name}: data and fit, {why.get(name) or row.status}" + (f"; {found}" if found else "")


def _cells(fits: Fits, found: Any) -> list[tuple[str, ...]]:
    """Estimates with their intervals, a row per series."""
    rows = []
    for name in list(fits)[:_MAX_ROWS]:
        cells = []
        for by_series in found.values():
            own = by_series.get(name, (float("nan"),) * 3)
            value, low, high = format_estimate(own)
            cells.append(f"{value} ({low} to {high})" if own[1] == own[1] else value)
        rows.append((name, *cells))
    return rows
