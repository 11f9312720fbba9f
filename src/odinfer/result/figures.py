"""Pictures of a fit: states, slopes, residuals and γ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from odinfer.judgement.verdicts import CONTRADICTS, NOT_JUDGED
from odinfer.style.drawing import BAD, GOOD, PALETTE, STYLE, UNKNOWN, WIDTH, add_axes, blank, label, short
from odinfer.style.text import number
from odinfer.uncertainty.results import BAND

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from odinfer.result.fit import Fit

Array = NDArray[np.float64]

MOST = 24  # panels in one picture: more are too small to read
_LEFT, _BOTTOM, _TOP, _ROW = 0.72, 0.46, 0.1, 0.22  # inches around each panel for labels; a row of the legend


def states_figure(fit: Fit) -> Figure:
    """Observations and estimated states with 95 % bands over time, a panel per state."""
    figure, panels = _panels(fit)
    for k, ax in panels:
        curves = [(e.curve.t, e.curve.x[:, k], e.curve.sd[:, k], e.y[:, k]) for e in fit.experiments.values()]
        _bands(ax, _colours(fit), curves)
        for colour, e, (t, x, _, y) in zip(_colours(fit), fit.experiments.values(), curves, strict=True):
            ax.plot(t, x, color=colour, lw=1.6, zorder=3)
            _dots(ax, e.t, y, colour)
        label(ax.set_ylabel, short(fit.state_names[k]))
    return _finish(figure, fit, {"data": "o", "estimated state": "-", "95 % band": "band"})


def gradients_figure(fit: Fit) -> Figure | None:
    """f(x, θ) against the Gaussian process's derivative with its 95 % band, a panel per state; None without ODIN."""
    matched = [(c, e.gradients) for c, e in zip(_colours(fit), fit.experiments.values(), strict=True) if e.gradients]
    if not matched:
        return None
    figure, panels = _panels(fit, title=0.2)
    for k, ax in panels:
        name = fit.state_names[k]
        _bands(ax, [c for c, _ in matched], [(g.t, g.gp[:, k], g.sd[:, k], g.f[:, k]) for _, g in matched])
        for colour, g in matched:
            ax.plot(g.t, g.gp[:, k], color=colour, lw=1.2, ls=(0, (4, 2)), zorder=3)
            ax.plot(g.t, g.f[:, k], color=colour, lw=1.7, zorder=4)
        label(ax.set_ylabel, f"d {short(name, 12)} / dt")
        if name in fit.gamma:
            words = f"{fit.verdicts.get(name, 'not judged')}, γ = {number(fit.gamma[name], 2)}"
            label(ax.set_title, words, _verdict_colour(fit, name), loc="left")
    return _finish(
        figure, fit, {"slope by the equation": "-", "slope of the data": "--", "95 % band of the smoother": "band"}
    )


def residuals_figure(fit: Fit) -> Figure:
    """Observed minus estimated states over time with ± 2 σ, and their distribution, a pair of panels per state."""
    figure, panels = _panels(fit, height=1.9, aside=0.2)
    residuals = [e.y - e.estimate()[0] for e in fit.experiments.values()]
    for k, ax in panels:
        for colour, e, r in zip(_colours(fit), fit.experiments.values(), residuals, strict=True):
            _dots(ax, e.t, r[:, k], colour)
        sigma = fit.sigma.get(fit.state_names[k], np.nan)
        every = np.concatenate([r[:, k] for r in residuals])
        every = every[np.isfinite(every)]
        size = max([2.4 * sigma if np.isfinite(sigma) else 0.0, *np.abs(every) * 1.1])
        ax.axhline(0.0, color=STYLE["faint"], lw=0.9, zorder=2)
        if np.isfinite(sigma):
            ax.hlines((-2 * sigma, 2 * sigma), *ax.get_xlim(), color=BAD, lw=1.0, ls=(0, (4, 2)), zorder=2)
        if 0 < size < 1e300:
            ax.set_ylim(-size, size)
            _distribution(ax, every, sigma, size)
        label(ax.set_ylabel, short(fit.state_names[k]))
    return _finish(figure, fit, {"data minus estimate": "o", "± 2 σ": "limit", "normal distribution with σ": "normal"})


def gamma_figure(fit: Fit) -> Figure | None:
    """γ per state as bars on a logarithmic axis, coloured by verdict; None where γ was not estimated."""
    states = [k for k in shown(fit) if fit.state_names[k] in fit.gamma]
    if not states:
        return None
    values = np.array([fit.gamma[fit.state_names[k]] for k in states])
    real = values[np.isfinite(values) & (values > 0)]
    low, high = (real.min(), real.max()) if len(real) else (1e-6, 1.0)
    low, high = 10.0 ** np.floor(np.log10(low) - 1), 10.0 ** np.ceil(np.log10(max(high, 1.0)) + 1)
    names, rows = [short(fit.state_names[k], 24) for k in states], np.arange(len(states))[::-1]
    left, tall = 0.35 + 0.075 * max(map(len, names)), 0.3 * len(states)
    figure = blank(tall + 0.75)
    ax = add_axes(figure, left, 0.5, WIDTH - left - 0.2, tall + 0.1)
    colours = [_verdict_colour(fit, fit.state_names[k]) for k in states]
    ends = np.clip(np.nan_to_num(values, nan=low), low, high)
    ax.barh(rows, ends - low, left=low, height=0.56, color=colours, zorder=3)
    high *= 100  # room for the words behind the bars
    ax.set(xscale="log", xlim=(low, high), ylim=(-0.6, len(states) - 0.4))
    decades = np.arange(np.log10(low), np.log10(high) + 0.5, max(1, np.log10(high / low) // 8))
    # Plain words on given ticks: the usual ones of a logarithmic axis take longer to draw than all else.
    ax.set_xticks(10.0**decades, ["1" if d == 0 else f"1e{d:.0f}" for d in decades])
    ax.minorticks_off()
    for row, end, value, k in zip(rows, ends, values, states, strict=True):
        words = f"{number(value, 2)}  {fit.verdicts.get(fit.state_names[k], '')}"
        ax.annotate(words, (end, row), (5, 0), textcoords="offset points", va="center", fontsize=STYLE["small"],
                    color=STYLE["ink"], parse_math=False)  # fmt: skip
    ax.set_yticks(rows, names, fontsize=STYLE["text"], parse_math=False)
    ax.tick_params(axis="y", length=0)
    label(ax.set_xlabel, "mismatch γ (standardised units)")
    return _noted(figure, fit)


# --- layout, by hand in inches: constrained layout would draw each figure twice


def _panels(fit: Fit, height: float = 0.0, title: float = 0.0, aside: float = 0.0) -> Any:
    """A figure with a panel per state shown, and pairs of a state's index and its axes.

    Rows are `height` inches tall, with `title` inches for a title; a share `aside` on the right is kept free.
    """
    n = len(shown(fit))
    height = height or (2.2 if n > 2 else 2.7)
    columns = min(n, 2) if n <= 4 else 2 if aside and n <= 12 else 3 if n <= 12 else 4
    each, head = WIDTH / columns, 0.36 + _ROW * (len(fit.experiments) > 1)
    total = -(-n // columns) * height + head
    figure = blank(total)
    first, last = _span(*(t for e in fit.experiments.values() for t in (e.t, e.curve.t)))
    margin = 0.02 * (last - first) or 0.5
    panels = []
    for i, k in enumerate(shown(fit)):
        left, bottom = i % columns * each + _LEFT, total - head - (i // columns + 1) * height + _BOTTOM
        ax = add_axes(figure, left, bottom, (each - _LEFT - 0.14) * (1 - aside), height - _BOTTOM - _TOP - title)
        ax.set_xlim(first - margin, last + margin)
        if i >= n - columns:
            label(ax.set_xlabel, "time")
        panels.append((k, ax))
    return figure, panels


def _distribution(ax: Axes, values: Array, sigma: float, size: float) -> None:
    """A histogram beside a panel of residuals, on the same axis, with the normal density that σ claims."""
    box, gap = ax.get_position(), 0.06 / WIDTH
    side = ax.figure.add_axes((box.x1 + gap, box.y0, 0.25 * box.width - gap, box.height), sharey=ax)
    side.set_axis_off()
    if len(values):
        bins = int(np.clip(2 * np.sqrt(len(values)), 8, 30))
        side.hist(values, bins, range=(-size, size), density=True, orientation="horizontal", color=STYLE["line"])
    if np.isfinite(sigma) and sigma > 0:
        r = np.linspace(-size, size, 100)
        side.plot(np.exp(-0.5 * (r / sigma) ** 2) / (np.sqrt(2 * np.pi) * sigma), r, color=STYLE["ink"], lw=1.2)
    side.set_ylim(ax.get_ylim())


def _finish(figure: Figure, fit: Fit, keys: dict[str, str]) -> Figure:
    """Add one legend above all panels: what the marks mean, and the experiments by colour if there are several."""
    from matplotlib.lines import Line2D

    # Neutral where the colours stand for experiments.
    colour = PALETTE[0] if len(fit.experiments) == 1 else STYLE["ink"]
    kinds: dict[str, dict[str, Any]] = {
        "o": {"color": colour, "marker": "o", "ls": "", "ms": 4.5},
        "-": {"color": colour, "lw": 1.5},
        "--": {"color": colour, "lw": 1.5, "ls": "--"},
        "band": {"color": colour, "lw": 7, "alpha": 0.18, "solid_capstyle": "butt"},
        "limit": {"color": BAD, "lw": 1.2, "ls": "--"},
        "normal": {"color": STYLE["ink"], "lw": 1.2},
    }
    _legend(figure, 0, [Line2D([], [], **kinds[kind]) for kind in keys.values()], list(keys))
    if len(fit.experiments) > 1:
        words = [short(name, 14) for name in fit.experiments]
        words[5:] = [f"{words[5]}  and {len(words) - 6} more"] if len(words) > 6 else words[5:]
        _legend(figure, 1, [Line2D([], [], color=c, lw=4) for c in _colours(fit)[: len(words)]], words)
    return _noted(figure, fit)


def _legend(figure: Figure, row: int, handles: list[Any], words: list[str]) -> None:
    top = 1.0 - row * _ROW / figure.get_size_inches()[1]
    legend = figure.legend(handles, ["-"] * len(handles), loc="upper left", ncols=len(handles), frameon=False,
                           fontsize=STYLE["small"], labelcolor=STYLE["ink"], handlelength=1.4, columnspacing=1.3,
                           bbox_to_anchor=(0.006, top), borderaxespad=0.3)  # fmt: skip
    for text, word in zip(legend.get_texts(), words, strict=True):
        # Set afterwards: a legend drops words that start with _ and reads $ as mathematics.
        text.set(text=word, parse_math=False)


def _noted(figure: Figure, fit: Fit) -> Figure:
    if len(fit.state_names) > MOST:
        words = f"{MOST} of {len(fit.state_names)} states shown"
        figure.text(0.99, 0.995, words, ha="right", va="top", fontsize=STYLE["small"], color=STYLE["faint"])
    return figure


def shown(fit: Fit, most: int = MOST) -> list[int]:
    """The states to show, in their order; where there are too many, those that contradict the data come first."""
    every = list(range(len(fit.state_names)))
    wrong_first = sorted(every, key=lambda k: fit.verdicts.get(fit.state_names[k]) != CONTRADICTS)
    return every if len(every) <= most else wrong_first[:most]


def _colours(fit: Fit) -> list[Any]:
    from matplotlib import colormaps

    n = len(fit.experiments)
    return list(PALETTE[:n] if n <= len(PALETTE) else colormaps["viridis"](np.linspace(0.0, 0.92, n)))


def _verdict_colour(fit: Fit, name: str) -> str:
    return {None: UNKNOWN, NOT_JUDGED: UNKNOWN, CONTRADICTS: BAD}.get(fit.verdicts.get(name), GOOD)


def _dots(ax: Axes, t: Array, y: Array, colour: Any) -> None:
    ax.plot(t, y, "o", color=colour, mec="white", mew=0.5, ms=np.clip(40 / np.sqrt(max(len(t), 1)), 1.8, 4.6), zorder=4)


def _span(*arrays: Array) -> tuple[float, float]:
    values = np.concatenate([a[np.isfinite(a)] for a in arrays])
    return (values.min(), values.max()) if len(values) else (np.nan, np.nan)


def _bands(ax: Axes, colours: list[Any], curves: list[tuple[Array, Array, Array, Array]]) -> None:
    """Draw the bands of curves (t, centre, sd, other) and set limits in which they do not flatten the lines."""
    for colour, (t, centre, sd, _) in zip(colours, curves, strict=True):
        ax.fill_between(t, centre - BAND * sd, centre + BAND * sd, color=colour, alpha=0.18, lw=0, zorder=1)
    low, high = _span(*(values for _, centre, _, other in curves for values in (centre, other)))
    band_low, band_high = _span(*(c + sign * BAND * sd for _, c, sd, _ in curves for sign in (-1, 1)))
    size = high - low or abs(high) or 1.0
    low = np.fmax(np.fmin(low, band_low), low - 0.6 * size) - 0.06 * size
    high = np.fmin(np.fmax(high, band_high), high + 0.6 * size) + 0.06 * size
    if np.isfinite(high - low):
        ax.set_ylim(low, high)
