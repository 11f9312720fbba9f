"""Plot two states against each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from odinfer.result.figures.marks import colours, dots, groups, neutral_colour, span
from odinfer.result.figures.states import best_colour, column_of
from odinfer.style.drawing import shorten
from odinfer.style.picture import LegendEntry, PanelFigure, Plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from odinfer.result.fit import FitResult


def phase_picture(fit: FitResult) -> PanelFigure | None:
    """Two states against each other, where there are just two; dots where both are observed, at the same time."""
    if len(fit.state_names) != 2 or not all(np.isfinite(e.curve.x).all() for e in fit.experiments.values()):
        return None
    columns = [m for k in range(2) if (m := column_of(fit, k)) is not None]
    both = columns if len(columns) == 2 else None

    def draw(ax: Axes) -> None:
        for colour, e in zip(colours(fit), fit.experiments.values(), strict=True):
            ax.plot(*e.curve.x.T, color=colour, lw=1.6, zorder=3)
            ax.plot(*e.curve.x[:1].T, "s", color=colour, ms=5, zorder=4)
            if e.best is not None:
                ax.plot(*e.best.x.T, color=best_colour(fit, colour), lw=1.4, ls=(0, (4, 2)), zorder=3)
            if both is not None:
                seen = np.ones(len(e.t), bool) if e.limit is None else (e.limit[:, both] == 0).all(1)
                dots(ax, e.y[seen, both[0]], e.y[seen, both[1]], colour)
        for axis, k in (("x", 0), ("y", 1)):
            seen = [e.y[:, both[k]] for e in fit.experiments.values() if both is not None]
            low, high = span(*(e.curve.x[:, k] for e in fit.experiments.values()), *seen)
            size = high - low or abs(high) or 1.0
            ax.set(**{f"{axis}lim": (low - 0.08 * size, high + 0.08 * size)})

    x, y = fit.state_names
    colour = neutral_colour(fit)
    keys = [LegendEntry("data", "o", colour)] if both is not None else []
    keys.append(LegendEntry("estimated states, from the square on", "-", colour))
    if any(e.best is not None for e in fit.experiments.values()):
        keys.append(LegendEntry("the model's best trajectory", "--", best_colour(fit, colour)))
    alt = f"{y} against {x}: the path of the estimated states"
    return PanelFigure((Plot(f"{y} against {x}", alt, draw, x=shorten(x), y=shorten(y)),), tuple(keys), groups(fit))
