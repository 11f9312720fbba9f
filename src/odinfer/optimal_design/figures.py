"""Plot predictions and sensitivities with the chosen samples, and the gain over the number of samples."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from odinfer.errors import InputError
from odinfer.style.drawing import PALETTE, STYLE
from odinfer.style.picture import LegendEntry, PanelFigure, Plot, combined_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from odinfer.optimal_design.result import Design

_LOG_FROM = 10.0  # ratio of standard errors from which their axis is logarithmic
_MOST = 6  # unknowns whose sensitivities are drawn: those with the largest


def design_picture(design: Design) -> PanelFigure:
    """Predictions, sensitivities and the gain by the number of samples."""
    c = design.predictions
    plots = []
    e = _main(design)
    for m, column in enumerate(c.columns[:3]):
        plots.append(
            Plot(column, f"predicted {column} with {len(design.samples)} samples", partial(_draw_course, design, e, m))
        )
    shown = _shown_rows(design, e)
    keys = [LegendEntry("sample", "o", STYLE["ink"])]
    if shown:
        plots.append(
            Plot("sensitivity", "sensitivities over time", partial(_draw_sensitivity, design, e, shown),
                 y="sensitivity (sd per 100 %)")
        )  # fmt: skip
    plots.append(
        Plot("gain", "mean standard error by the number of samples", partial(_draw_gain, design), x="number of samples",
             y="mean std. error (%)" if design.difference is None else "difference (nats)")
    )  # fmt: skip
    groups = tuple((c.names[p], PALETTE[i % len(PALETTE)]) for i, p in enumerate(shown))
    return PanelFigure(tuple(plots), tuple(keys), groups)


def design_figure(design: Design, path: str | Path | None = None, ax: Sequence[Axes] | None = None) -> Figure:
    """The picture on one sheet, or its panels on given axes."""
    picture = design_picture(design)
    if ax is None:
        figure = combined_figure(picture)
    else:
        axes = list(np.ravel(np.asarray(ax, dtype=object)))
        if len(axes) < len(picture.plots):
            raise InputError(f"ax: the picture has {len(picture.plots)} panels; give as many axes")
        for plot, own in zip(picture.plots, axes, strict=False):
            plot.draw(own)
            own.set_xlabel(plot.x)
            own.set_ylabel(plot.y or plot.name)
        figure = axes[0].figure
    if path is not None:
        figure.savefig(path)
    return figure


def _main(design: Design) -> int:
    """The experiment with most samples."""
    names = [s.experiment for s in design.samples]
    own = [names.count(name) for name in design.predictions.experiments]
    return int(np.argmax(own)) if own else 0


def _shown_rows(design: Design, e: int) -> list[int]:
    largest = design.predictions.sensitivity[e].max(0) if design.predictions.sensitivity.size else np.empty(0)
    return sorted(np.argsort(-largest)[:_MOST].tolist())


def _times(design: Design, e: int, column: str | None = None) -> list[float]:
    name = design.predictions.experiments[e]
    return [s.time for s in design.samples if s.experiment == name and (column is None or column in s.columns)]


def _draw_course(design: Design, e: int, m: int, ax: Axes) -> None:
    c = design.predictions
    ax.plot(c.t, c.predicted[e, :, m], color=PALETTE[0], lw=1.5)
    if c.rival is not None:
        ax.plot(c.t, c.rival[e, :, m], color=PALETTE[1], lw=1.5, ls="--")
    own = _times(design, e, c.columns[m])
    ax.plot(own, np.interp(own, c.t, c.predicted[e, :, m]), "o", color=STYLE["ink"], ms=5, zorder=3)


def _draw_sensitivity(design: Design, e: int, shown: Sequence[int], ax: Axes) -> None:
    c = design.predictions
    for time in _times(design, e):
        ax.axvline(time, color=STYLE["faint"], lw=0.9, ls=(0, (2, 2)))
    for i, p in enumerate(shown):
        ax.plot(c.t, c.sensitivity[e, :, p], color=PALETTE[i % len(PALETTE)], lw=1.4)


def _draw_gain(design: Design, ax: Axes) -> None:
    from matplotlib.ticker import MaxNLocator

    share = design.difference is None
    y = 100.0 * design.curve["mean_rse"] if share else design.curve["difference"]
    ax.plot(design.curve["samples"], y, color=PALETTE[0], lw=1.5, marker="o", ms=3.5)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    if share and y.max() > _LOG_FROM * y.min():
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter("{x:g}")
    else:
        ax.set_ylim(bottom=0)
