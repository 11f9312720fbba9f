"""Estimated unknown functions with their bands over the data's density."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from odinfer.result.unknown import EstimatedFunction
from odinfer.style.drawing import PALETTE, STYLE, shorten
from odinfer.style.picture import LegendEntry, PanelFigure, Plot
from odinfer.style.text import format_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from odinfer.result.fit import FitResult

_BINS = 30  # of the density
_LEVELS = 9  # colours of a function of two arguments


def unknown_picture(fit: FitResult) -> PanelFigure | None:
    """A panel per unknown function; None if there is none."""
    stored = fit.details.get("unknown") or {}
    found = [EstimatedFunction.of(label, own) for label, own in stored.items()]
    if not found:
        return None
    keys = (
        LegendEntry("estimate", "-", PALETTE[0]),
        LegendEntry("95 % band", "band", PALETTE[0]),
        LegendEntry("where the data are", "band", STYLE["ink"]),
    )
    return PanelFigure(tuple(map(_panel, found)), keys)


def _panel(own: EstimatedFunction) -> Plot:
    draw = _curve if len(own.arguments) == 1 else _surface
    alt = f"{own.label} with its 95 % band over the range of the data"
    y = own.label if len(own.arguments) == 1 else own.arguments[1]
    return Plot(own.label, alt, lambda ax: draw(own, ax), x=shorten(own.arguments[0]), y=shorten(y), title=own.label)


def _curve(own: EstimatedFunction, ax: Axes) -> None:
    x = own.grid[:, 0]
    ax.fill_between(x, own.low, own.high, color=PALETTE[0], alpha=0.18, lw=0)
    ax.plot(x, own.value, color=PALETTE[0], lw=1.6)
    low, high = float(own.low.min()), float(own.high.max())
    size = (high - low) or 1.0
    count, edges = np.histogram(own.seen[:, 0], bins=_BINS, range=own.domain[0])
    height = 0.12 * size * count / max(int(count.max()), 1)
    base = low - 0.2 * size
    steps = base + np.repeat(height, 2)
    ax.fill_between(np.repeat(edges, 2)[1:-1], base, steps, color=STYLE["ink"], alpha=0.18, lw=0)
    ax.set_ylim(base, high + 0.08 * size)


def _surface(own: EstimatedFunction, ax: Axes) -> None:
    """Contour lines, each with its value at its middle."""
    from contourpy import contour_generator
    from matplotlib import colormaps, ticker
    from matplotlib.colors import to_hex

    n = round(len(own.value) ** 0.5)
    x, y, z = (v.reshape(n, n) for v in (own.grid[:, 0], own.grid[:, 1], own.value))
    levels = ticker.MaxNLocator(_LEVELS).tick_values(float(z.min()), float(z.max()))
    lines = contour_generator(x, y, z)
    for level, share in zip(levels, np.linspace(0.0, 0.85, len(levels)), strict=True):
        colour = to_hex(colormaps["viridis"](share))
        for line in map(np.asarray, lines.lines(level)):
            ax.plot(line[:, 0], line[:, 1], color=colour, lw=1.2)
            middle = float(line[len(line) // 2, 0]), float(line[len(line) // 2, 1])
            words = format_number(float(level), 3)
            ax.annotate(words, middle, (2, 4), textcoords="offset points", fontsize=STYLE["small"], color=colour)
    ax.plot(*own.seen.T, "o", color=STYLE["ink"], ms=1.5, alpha=0.5)
