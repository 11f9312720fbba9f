"""Text summary of many fits: counts by outcome, and a table that stays readable for thousands of series."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from odinfer.apps.each.row import Estimate
from odinfer.diagnostics.equation_test import FALSE_ALARMS
from odinfer.result.summary import wrapped
from odinfer.style.text import TextTable, abbreviate, format_number, format_with_error, printable
from odinfer.uncertainty.results import BAND

if TYPE_CHECKING:
    from odinfer.apps.each.fits import Fits

_ROWS = 40  # lines up to which every estimate of every series is printed
_LOW, _HIGH = 0.05, 0.95  # the spread of series that is told


def headline(fits: Fits) -> str:
    """How many series there are, and how many of them are good."""
    n, good = len(fits), len(fits) - len(fits.failed)
    what = f"{n:,} series, fitted one by one" if n > 1 else "1 series"
    return f"{what}: {'all' if good == n > 1 else f'{good:,}'} converged."


def findings(fits: Fits) -> list[str]:
    """Which series need a look, and why, a sentence each."""
    lines = []
    if fits.failed:
        lines.append(f"Without a result: {_list_series({name: (status,) for name, status in fits.failed.items()})}.")
    if fits.contradicted:
        chance = f"a correct model is rejected in at most {100 * FALSE_ALARMS:g} % of series"
        lines.append(f"The model is rejected by: {_list_series(fits.contradicted)}; {chance}.")
    if fits.outliers:
        lines.append(f"Outliers: {_list_series(fits.outliers)}.")
    return lines


def _list_series(found: Mapping[str, tuple[str, ...]]) -> str:
    names = [f"{name} ({', '.join(why)})" for name, why in found.items()]
    return f"{len(found):,}, namely {', '.join(abbreviate(names))}"


def tone(fits: Fits) -> str:
    return "bad" if fits.failed else "part" if fits.contradicted or fits.outliers else "good"


def summary(fits: Fits) -> str:
    """All of it as plain text."""
    found = fits.estimates()
    table = long_table(fits) if sum(map(len, found.values())) <= _ROWS else spread_table(fits)
    lines = [f"{fits.model}, fitted by {fits.method}", headline(fits), "", *table.lines(), "", *findings(fits)]
    return wrapped(map(printable, lines)).rstrip() + "\n"


def long_table(fits: Fits) -> TextTable:
    """Every estimate of every series."""
    found = fits.estimates()
    rows = [
        (name, quantity, *format_estimate(value))
        for name in fits
        for quantity, by_series in found.items()
        if (value := by_series.get(name)) is not None
    ]
    return TextTable(("series", "parameter", "estimate", "95 % from", "to"), tuple(rows))


def format_estimate(value: Estimate) -> list[str]:
    """An estimate and the ends of its interval, to the same place."""
    sides = [abs(end - value[0]) for end in value[1:] if np.isfinite(end)]
    return format_with_error(value, min((side for side in sides if side > 0), default=np.nan) / BAND)


def spread_table(fits: Fits) -> TextTable:
    """How the estimates of the series that converged are spread, and how sure each of them typically is."""
    rows = []
    for quantity, by_series in fits.estimates().items():
        good = [value for name, value in by_series.items() if name not in fits.failed]
        rows.append((quantity, *(format_number(v, 4) for v in spread_statistics(good))))
    return TextTable(
        ("parameter", "median", "5 % quantile", "95 % quantile", "median half width of 95 % interval"), tuple(rows)
    )


def spread_statistics(values: list[Estimate]) -> tuple[float, float, float, float]:
    """Median, 5 % and 95 % quantile, and the median of half the width of the intervals; NaN where there is none."""
    table = np.array(values, float).reshape(-1, 3)
    value = table[np.isfinite(table[:, 0]), 0]
    if not len(value):
        return (np.nan,) * 4
    half = (table[:, 2] - table[:, 1]) / 2
    half = half[~np.isnan(half)]
    low, high = (float(np.quantile(value, q)) for q in (_LOW, _HIGH))
    return float(np.median(value)), low, high, float(np.median(half)) if len(half) else np.nan
