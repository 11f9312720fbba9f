"""Plot the data with the trajectories of the given model and of the best terms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from odinfer.style.drawing import BAD, PALETTE, STYLE, shorten
from odinfer.style.picture import LegendEntry, PanelFigure, Plot, combined_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from odinfer.discovery.result import DiscoveredEquations, Discovery

_MOST_PANELS, _MOST_TERMS = 12, 4


def comparison_figure(found: Discovery | DiscoveredEquations) -> Figure:
    """A panel per observed column: its data, the given model, and the best terms."""
    problem, lines = found.problem, found.lines[:_MOST_TERMS]
    colours = (BAD, PALETTE[0], PALETTE[2], PALETTE[3]) if len(lines) > 1 else (PALETTE[0],)
    styles = ["--" if len(lines) > 1 and not i else "-" for i in range(len(lines))]
    plots = []
    for m, column in enumerate(problem.columns[:_MOST_PANELS]):

        def draw(ax: Axes, m: int = m, column: str = column) -> None:
            for (own, _), colour, style in zip(lines, colours, styles, strict=False):
                for e, curve in enumerate(own.maximum.curves()):
                    if column in problem.model.states:
                        y = curve.x[:, problem.model.states.index(column)]
                    else:
                        y = own.maximum.likelihood.observation.predicted(
                            e, curve.x[None], own.optimum.phi[None], curve.t
                        )[0][:, m]
                    ax.plot(curve.t, y, style, color=colour, lw=1.5)
            for experiment in problem.data.experiments:
                ax.plot(experiment.t, experiment.y[:, m], "o", color=STYLE["ink"], ms=3, zorder=1)
            seen = np.concatenate([e.y[:, m] for e in problem.data.experiments])
            low, high = np.nanmin(seen), np.nanmax(seen)
            ax.set_ylim(low - 0.15 * (high - low or 1.0), high + 0.15 * (high - low or 1.0))

        plots.append(Plot(column, f"{column} over time with the trajectories of the models", draw, y=shorten(column)))
    keys = [
        LegendEntry("data", "o", STYLE["ink"]),
        *(LegendEntry(words, style, colour) for (_, words), colour, style in zip(lines, colours, styles, strict=False)),
    ]
    return combined_figure(PanelFigure(tuple(plots), tuple(keys)))
