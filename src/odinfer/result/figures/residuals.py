"""Plot residuals over time, against predictions, and against normal quantiles."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from odinfer.result.figures.marks import (
    MAX_PANELS,
    axis_label,
    colours,
    dots,
    groups,
    largest_magnitude,
    neutral_colour,
    omission_note,
    set_time_axis,
    span,
    states_to_show,
)
from odinfer.style.drawing import BAD, STYLE, shorten
from odinfer.style.picture import PANEL, LegendEntry, PanelFigure, Plot
from odinfer.style.text import format_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from odinfer.result.fit import FitResult

Array = NDArray[np.float64]

_SIGNIFICANCE = 0.01  # how rarely the largest of so many normal values is as large as a line of alarm


def _columns(fit: FitResult) -> list[tuple[int, str]]:
    """The columns shown, by their place in the data and their name."""
    which = range(min(len(fit.columns), MAX_PANELS)) if fit.noise else states_to_show(fit)
    return [(k, fit.columns[k]) for k in which]


def residuals_picture(fit: FitResult, histogram: bool = True) -> PanelFigure:
    """Observed minus estimated states over time with ± 2 σ, and beside them a histogram, a panel per state.

    Of columns with distributions of their own, standardised residuals.
    """
    plots = []
    for k, name in _columns(fit):
        sigma = 1.0 if fit.noise else fit.sigma.get(name, np.nan)
        own = [(e.residuals if e.scores is None else e.scores)[:, k] for e in fit.experiments.values()]
        every = np.concatenate(own)
        every = every[np.isfinite(every)]
        beyond = f", {int((np.abs(every) > 2 * sigma).sum())} of {len(every)} beyond ± 2 {'' if fit.noise else 'σ'}"
        alt = f"{name}: residuals over time within ±{format_number(largest_magnitude(every), 2)}{beyond.rstrip()}"
        draw = partial(_draw_residuals, fit, own, sigma, histogram)
        plots.append(Plot(name, alt, draw, y=axis_label(fit, name), time=axis_label(fit, "time"), aside=0.2))
    marks = ("standardised residual", "± 2", "standard normal")
    if not fit.noise:
        marks = ("data minus estimate", "± 2 σ", "normal distribution with σ")
    keys = (
        LegendEntry(marks[0], "o", neutral_colour(fit)),
        LegendEntry(marks[1], "--", BAD),
        LegendEntry(marks[2], "-", STYLE["ink"]),
    )
    return PanelFigure(tuple(plots), keys, groups(fit), omission_note(fit), height=1.9)


def _draw_residuals(fit: FitResult, own: list[Array], sigma: float, histogram: bool, ax: Axes) -> None:
    set_time_axis(fit, ax)
    for colour, e, r in zip(colours(fit), fit.experiments.values(), own, strict=True):
        dots(ax, e.t, r, colour)
    every = np.concatenate(own)
    every = every[np.isfinite(every)]
    size = max(2.4 * sigma if np.isfinite(sigma) else 0.0, 1.1 * np.abs(every).max(initial=0.0))
    ax.axhline(0.0, color=STYLE["faint"], lw=0.9, zorder=2)
    if np.isfinite(sigma):
        ax.hlines((-2 * sigma, 2 * sigma), *ax.get_xlim(), color=BAD, lw=1.0, ls=(0, (4, 2)), zorder=2)
    if 0 < size < 1e300:
        ax.set_ylim(-size, size)
        if histogram:
            _distribution(ax, every, sigma, size)


def _distribution(ax: Axes, values: Array, sigma: float, size: float) -> None:
    """A histogram beside a panel of residuals, on the same axis, with the normal density that σ claims."""
    box, gap = ax.get_position(), 0.06 / PANEL
    side = ax.figure.add_axes((box.x1 + gap, box.y0, 0.25 * box.width - gap, box.height), sharey=ax)
    side.set_axis_off()
    if len(values):
        bins = int(np.clip(2 * np.sqrt(len(values)), 8, 30))
        bars = np.histogram(values, bins, range=(-size, size), density=True)
        side.stairs(*bars, orientation="horizontal", fill=True, color=STYLE["line"])
    if np.isfinite(sigma) and sigma > 0:
        r = np.linspace(-size, size, 100)
        side.plot(np.exp(-0.5 * (r / sigma) ** 2) / (np.sqrt(2 * np.pi) * sigma), r, color=STYLE["ink"], lw=1.2)
    side.set_ylim(ax.get_ylim())


def predicted_picture(fit: FitResult) -> PanelFigure | None:
    """Observations against predictions, a panel per column: on the line where they agree."""

    def draw(k: int, ax: Axes) -> None:
        for colour, e in zip(colours(fit), fit.experiments.values(), strict=True):
            seen = np.ones(len(e.t), bool) if e.limit is None else e.limit[:, k] == 0
            dots(ax, e.predictions()[0][seen, k], e.y[seen, k], colour)
        low, high = span(*(v[:, k] for e in fit.experiments.values() for v in (e.predictions()[0], e.y)))
        margin = 0.05 * (high - low) or 0.5
        if np.isfinite(margin):
            ends = (low - margin, high + margin)
            ax.plot(ends, ends, color=STYLE["faint"], lw=0.9, zorder=1)
            ax.set(xlim=ends, ylim=ends)

    def words(k: int, name: str) -> str:
        pairs = [(e.y[:, k], e.predictions()[0][:, k]) for e in fit.experiments.values()]
        y, p = (np.concatenate(v) for v in zip(*pairs, strict=True))
        seen = np.isfinite(y + p)
        r = (
            float(np.corrcoef(y[seen], p[seen])[0, 1])
            if seen.sum() > 2 and np.ptp(y[seen]) * np.ptp(p[seen])
            else np.nan
        )
        return f"{name}: {seen.sum()} observations against predictions, correlation {format_number(r, 3)}"

    return _by_column(
        fit, draw, words, "predicted", "observed", (LegendEntry("where they agree", "-", STYLE["faint"]),)
    )


def quantiles_picture(fit: FitResult) -> PanelFigure | None:
    """Ordered standardised residuals against those of a normal distribution, a panel per column."""
    from scipy.special import ndtri

    def ordered(k: int, name: str) -> Array:
        sigma = fit.sigma.get(name, np.nan)
        own = [(e.residuals / sigma if e.scores is None else e.scores)[:, k] for e in fit.experiments.values()]
        every = np.concatenate(own)
        return np.sort(every[np.isfinite(every)])

    def draw(k: int, ax: Axes) -> None:
        r = ordered(k, fit.columns[k])
        normal = ndtri((np.arange(len(r)) + 0.5) / max(len(r), 1))
        dots(ax, normal, r, neutral_colour(fit))
        size = 1.1 * max(2.0, largest_magnitude(r) if len(r) else 0.0, largest_magnitude(normal) if len(r) else 0.0)
        if size < 1e300:
            ax.plot((-size, size), (-size, size), color=STYLE["faint"], lw=0.9, zorder=1)
            ax.set(xlim=(-size, size), ylim=(-size, size))

    def words(k: int, name: str) -> str:
        r = ordered(k, name)
        far = float(-ndtri(0.5 * _SIGNIFICANCE / max(len(r), 1)))
        count = int((np.abs(r) > far).sum())
        caption = (
            f"{count} beyond ± {format_number(far, 2)}, where normal noise hardly ever is"
            if count
            else "none suspiciously far out"
        )
        return f"{name}: {len(r)} standardised residuals against normal quantiles, {caption}"

    return _by_column(
        fit, draw, words, "normal quantile", "residual / σ", (LegendEntry("normal noise", "-", STYLE["faint"]),)
    )


def _by_column(
    fit: FitResult,
    draw: Callable[[int, Axes], None],
    words: Callable[[int, str], str],
    x: str,
    y: str,
    keys: tuple[LegendEntry, ...],
) -> PanelFigure | None:
    """A panel per column; None where there is nothing to predict."""
    if not all(np.isfinite(e.predictions()[0]).any() for e in fit.experiments.values() if len(e.t)):
        return None
    plots = [Plot(name, words(k, name), partial(draw, k), x=x, y=y, title=shorten(name)) for k, name in _columns(fit)]
    return PanelFigure(tuple(plots), keys, groups(fit), omission_note(fit))
