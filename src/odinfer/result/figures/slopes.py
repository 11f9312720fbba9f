"""Plot slopes of the curves and of the equations."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from odinfer.result.figures.marks import (
    axis_label,
    axis_limits,
    colours,
    groups,
    neutral_colour,
    omission_note,
    set_time_axis,
    set_y_limits,
    states_to_show,
    verdict_colour,
)
from odinfer.style.drawing import shorten
from odinfer.style.picture import LegendEntry, PanelFigure, Plot
from odinfer.style.text import format_number
from odinfer.uncertainty.results import BAND

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from odinfer.result.fit import FitResult


def slopes_picture(fit: FitResult) -> PanelFigure | None:
    """f(x, θ) against the Gaussian process's derivative with its 95 % band, a panel per state; None without ODIN."""
    matched = [(c, e.gradients) for c, e in zip(colours(fit), fit.experiments.values(), strict=True) if e.gradients]
    if not matched:
        return None
    plots = []
    for k in states_to_show(fit):
        name = fit.state_names[k]
        verdict = fit.verdicts.get(name, "not judged")
        apart = [np.abs(g.f[:, k] - g.gp[:, k]) for _, g in matched]
        most = format_number(max(map(np.nanmax, apart)), 2)
        alt = f"slope of {name} by its equation and by the data, up to {most} apart"
        title = f"{verdict}, γ = {format_number(fit.gamma[name], 2)}" if name in fit.gamma else ""
        plots.append(
            Plot(name, f"{alt}: {verdict}", partial(_draw_slopes, fit, matched, k), y=f"d {shorten(name, 12)} / dt",
                 time=axis_label(fit, "time"), title=title, colour=verdict_colour(fit, name))
        )  # fmt: skip
    words = (("slope by the equation", "-"), ("slope of the data", "--"), ("95 % band of the smoother", "band"))
    keys = tuple(LegendEntry(w, mark, neutral_colour(fit)) for w, mark in words)
    return PanelFigure(tuple(plots), keys, groups(fit), omission_note(fit))


def _draw_slopes(fit: FitResult, matched: list[tuple[str, Any]], k: int, ax: Axes) -> None:
    set_time_axis(fit, ax)
    for colour, g in matched:
        gp, half = g.gp[:, k], BAND * g.sd[:, k]
        ax.fill_between(g.t, gp - half, gp + half, color=colour, alpha=0.18, lw=0, zorder=1)
        ax.plot(g.t, gp, color=colour, lw=1.2, ls=(0, (4, 2)), zorder=3)
        ax.plot(g.t, g.f[:, k], color=colour, lw=1.7, zorder=4)
    ends = [g.gp[:, k] + s * BAND * g.sd[:, k] for _, g in matched for s in (-1, 1)]
    set_y_limits(ax, axis_limits([v[:, k] for _, g in matched for v in (g.gp, g.f)], ends))
