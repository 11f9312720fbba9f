"""Pictures of how equations and data agree: slopes from either, and γ."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from odinfer.result.figures.marks import (
    colours,
    groups,
    left_out,
    limited,
    neutral,
    over_time,
    room,
    shown,
    verdict_colour,
)
from odinfer.style.drawing import ROWS, STYLE, add_axes, blank, label, short
from odinfer.style.picture import Key, Lone, Picture, Plot
from odinfer.style.text import number
from odinfer.uncertainty.results import BAND

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from odinfer.result.fit import Fit


def slopes_picture(fit: Fit) -> Picture | None:
    """f(x, θ) against the Gaussian process's derivative with its 95 % band, a panel per state; None without ODIN."""
    matched = [(c, e.gradients) for c, e in zip(colours(fit), fit.experiments.values(), strict=True) if e.gradients]
    if not matched:
        return None
    plots = []
    for k in shown(fit):
        name = fit.state_names[k]
        said = fit.verdicts.get(name, "not judged")
        apart = [np.abs(g.f[:, k] - g.gp[:, k]) for _, g in matched]
        alt = f"slope of {name} by its equation and by the data, up to {number(max(map(np.nanmax, apart)), 2)} apart"
        title = f"{said}, γ = {number(fit.gamma[name], 2)}" if name in fit.gamma else ""
        plots.append(
            Plot(name, f"{alt}: {said}", partial(_draw_slopes, fit, matched, k), y=f"d {short(name, 12)} / dt",
                 title=title, colour=verdict_colour(fit, name))
        )  # fmt: skip
    words = (("slope by the equation", "-"), ("slope of the data", "--"), ("95 % band of the smoother", "band"))
    keys = tuple(Key(w, mark, neutral(fit)) for w, mark in words)
    return Picture(tuple(plots), keys, groups(fit), left_out(fit))


def _draw_slopes(fit: Fit, matched: list[tuple[str, Any]], k: int, ax: Axes) -> None:
    over_time(fit, ax)
    for colour, g in matched:
        gp, half = g.gp[:, k], BAND * g.sd[:, k]
        ax.fill_between(g.t, gp - half, gp + half, color=colour, alpha=0.18, lw=0, zorder=1)
        ax.plot(g.t, gp, color=colour, lw=1.2, ls=(0, (4, 2)), zorder=3)
        ax.plot(g.t, g.f[:, k], color=colour, lw=1.7, zorder=4)
    ends = [g.gp[:, k] + s * BAND * g.sd[:, k] for _, g in matched for s in (-1, 1)]
    limited(ax, room([v[:, k] for _, g in matched for v in (g.gp, g.f)], ends))


def gamma_picture(fit: Fit) -> Lone | None:
    """γ per state as bars on a logarithmic axis, coloured by verdict; None where γ was not estimated."""
    states = [k for k in shown(fit) if fit.state_names[k] in fit.gamma]
    if not states:
        return None
    values = np.array([fit.gamma[fit.state_names[k]] for k in states])
    real = np.clip(values[np.isfinite(values) & (values > 0)], 1e-100, 1e100)  # powers of ten around it are numbers
    low, high = (real.min(), real.max()) if len(real) else (1e-6, 1.0)
    low, high = 10.0 ** np.floor(np.log10(low) - 1), 10.0 ** np.ceil(np.log10(max(high, 1.0)) + 1)
    names, rows = [short(fit.state_names[k], 20) for k in states], np.arange(len(states))[::-1]
    left, tall = 0.35 + 0.075 * max(map(len, names)), 0.3 * len(states)
    figure = blank(tall + 0.75, ROWS)
    ax = add_axes(figure, left, 0.5, ROWS - left - 0.2, tall + 0.1)
    bars = [verdict_colour(fit, fit.state_names[k]) for k in states]
    ends = np.clip(np.nan_to_num(values, nan=low), low, high)
    ax.barh(rows, ends - low, left=low, height=0.56, color=bars, zorder=3)
    high *= (high / low) ** 0.45  # room for the words behind the bars
    ax.set(xscale="log", xlim=(low, high), ylim=(-0.6, len(states) - 0.4))
    decades = np.arange(np.log10(low), np.log10(high) + 0.5, max(1, np.log10(high / low) // 6))
    # Plain words on given ticks: the usual ones of a logarithmic axis take longer to draw than all else.
    ax.set_xticks(10.0**decades, ["1" if d == 0 else f"1e{d:.0f}" for d in decades])
    ax.minorticks_off()
    said = [f"{number(v, 2)}  {fit.verdicts.get(fit.state_names[k], '')}" for v, k in zip(values, states, strict=True)]
    for row, end, words in zip(rows, ends, said, strict=True):
        ax.annotate(words, (end, row), (5, 0), textcoords="offset points", va="center", fontsize=STYLE["small"],
                    color=STYLE["ink"], parse_math=False)  # fmt: skip
    ax.set_yticks(rows, names, fontsize=STYLE["text"], parse_math=False)
    ax.tick_params(axis="y", length=0)
    label(ax.set_xlabel, "mismatch γ (standardised units)")
    if note := left_out(fit):
        figure.text(0.99, 0.995, note, ha="right", va="top", fontsize=STYLE["small"], color=STYLE["faint"])
    return Lone(figure, "γ: " + "; ".join(f"{n} {w}" for n, w in zip(names, said, strict=True)))
