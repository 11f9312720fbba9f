"""Pictures of a fit: states and observables, slopes, residuals and γ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from odinfer.judgement.verdicts import CONTRADICTS, NOT_JUDGED
from odinfer.problem.course import SETTLED
from odinfer.style.drawing import BAD, GOOD, PALETTE, STYLE, UNKNOWN, WIDTH, add_axes, blank, label, short
from odinfer.style.text import number
from odinfer.uncertainty.results import BAND

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from odinfer.result.fit import Fit
    from odinfer.result.stages import ExperimentFit

Array = NDArray[np.float64]

MOST = 24  # panels in one picture: more are too small to read
_WIDE = 30.0  # the ratio of log-normal values from which on their axis is logarithmic
_LEFT, _BOTTOM, _TOP, _ROW = 0.72, 0.46, 0.1, 0.22  # inches around each panel for labels; a row of the legend


@dataclass(frozen=True)
class Trace:
    """What one experiment contributes to a panel: a curve with its band, and observations where there are any."""

    t: Array
    centre: Array
    sd: Array
    seen_at: Array
    y: Array
    limit: Array


@dataclass(frozen=True)
class Panel:
    """A state, or a column of the data that is none: a trace per experiment, and whether its axis is logarithmic."""

    name: str
    traces: tuple[Trace, ...]
    logarithmic: bool = False


def states_figure(fit: Fit) -> Figure:
    """Observations and estimated states with 95 % bands over time, a panel per state and per other observable."""
    panels = pictured(fit)
    figure, axes = _panels(fit, len(panels))
    for panel, ax in zip(panels, axes, strict=True):
        if panel.logarithmic:
            _logarithmic(ax, panel)
        _bands(ax, _colours(fit), [(r.t, r.centre, r.sd, r.y) for r in panel.traces])
        for colour, r in zip(_colours(fit), panel.traces, strict=True):
            ax.plot(r.t, r.centre, color=colour, lw=1.6, zorder=3)
            _dots(ax, r.seen_at, np.where(r.limit == 0, r.y, np.nan), colour)
            for side, marker in ((-1, "v"), (1, "^")):
                if (beyond := r.limit == side).any():
                    ax.plot(r.seen_at[beyond], r.y[beyond], marker, color="white", mec=colour, mew=1.1, ms=5, zorder=4)
        label(ax.set_ylabel, short(panel.name))
    keys = {"data": "o", "prediction" if fit.noise else "estimated state": "-", "95 % band": "band"}
    limits = {int(side) for panel in panels for r in panel.traces for side in np.unique(r.limit)}
    words = {-1: {"below this limit": "v"}, 1: {"above this limit": "^"}}
    return _finish(figure, fit, keys | {k: v for side in (-1, 1) if side in limits for k, v in words[side].items()})


def pictured(fit: Fit) -> list[Panel]:
    """The states shown, each with the column that observes it as it is if there is one, then the other columns."""
    of_state = {k: m for k in range(len(fit.state_names)) if (m := _column_of(fit, k)) is not None}
    others = sorted({*range(len(fit.columns))} - {*of_state.values()})[: MOST // 2]
    panels = []
    for k in shown(fit, MOST - len(others)):
        m, name = of_state.get(k), fit.state_names[k]
        name = name if m is not None or name in fit.columns else f"{short(name, 9)} (hidden)"
        traces = [_trace(e, e.curve.x[:, k], e.curve.sd[:, k], m) for e in fit.experiments.values()]
        panels.append(_panel(fit, name, m, traces))
    for m in others:
        name = f"{short(fit.columns[m], 8)} (observed)" if fit.columns[m] in fit.state_names else fit.columns[m]
        traces = [_trace(e, e.expected[:, m], e.expected_sd[:, m], m) for e in fit.experiments.values()
                  if e.expected is not None and e.expected_sd is not None]  # fmt: skip
        panels.append(_panel(fit, name, m, traces))
    return panels


def _column_of(fit: Fit, k: int) -> int | None:
    """The column that observes a state as it is."""
    name = fit.state_names[k]
    if not fit.noise:
        return k
    if name not in fit.columns:
        return None
    m = fit.columns.index(name)
    same = (np.allclose(e.fitted[:, m], e.estimate()[0][:, k], rtol=1e-6, equal_nan=True)
            for e in fit.experiments.values() if e.fitted is not None)  # fmt: skip
    return m if all(same) else None


def _trace(e: ExperimentFit, centre: Array, sd: Array, m: int | None) -> Trace:
    nothing = np.full(len(e.t), np.nan)
    y = nothing if m is None else e.y[:, m]
    limit = np.zeros(len(e.t)) if m is None or e.limit is None else np.asarray(e.limit[:, m], float)
    drawn = _drawn(e)
    return Trace(e.curve.t[drawn], centre[drawn], sd[drawn], e.t, y, limit)


def _drawn(e: ExperimentFit) -> Any:
    """Which points of the curve are drawn: not those of a long time before the data in which the system settles."""
    settles = e.t[0] - e.curve.t[0] > SETTLED * (np.ptp(e.t) or 1.0)
    return e.curve.t >= (e.t[0] if settles else -np.inf)


def _panel(fit: Fit, name: str, m: int | None, traces: list[Trace]) -> Panel:
    logarithmic = False
    if m is not None and fit.noise.get(fit.columns[m]) == "lognormal":
        low, high = _span(*(r.y for r in traces))
        logarithmic = 0 < _WIDE * low < high
    return Panel(name, tuple(traces), logarithmic)


def _logarithmic(ax: Axes, panel: Panel) -> None:
    """A logarithmic axis with plain words on its ticks, for what is seen."""
    low, high = _span(*(v[v > 0] for r in panel.traces for v in (r.y, r.centre)))
    low = max(low, _span(*(r.y for r in panel.traces))[0] / 30)  # a curve that falls to nothing is not followed
    ax.set(yscale="log")
    decades = np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    decades = decades[:: max(1, len(decades) // 6)]
    ax.set_yticks(10.0**decades, [number(10.0**d, 3).replace("-", "\N{MINUS SIGN}") for d in decades])
    ax.minorticks_off()
    ax.set_ylim(low / 1.6, high * 1.6)


def gradients_figure(fit: Fit) -> Figure | None:
    """f(x, θ) against the Gaussian process's derivative with its 95 % band, a panel per state; None without ODIN."""
    matched = [(c, e.gradients) for c, e in zip(_colours(fit), fit.experiments.values(), strict=True) if e.gradients]
    if not matched:
        return None
    figure, axes = _panels(fit, len(shown(fit)), title=0.2)
    for k, ax in zip(shown(fit), axes, strict=True):
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
    """Observed minus estimated states over time with ± 2 σ, and their distribution, a pair of panels per state.

    Of columns with distributions of their own, standardised residuals.
    """
    names = fit.columns if fit.noise else fit.state_names
    which = range(min(len(names), MOST)) if fit.noise else shown(fit)
    figure, axes = _panels(fit, len(which), height=1.9, aside=0.2)
    residuals = [e.residuals if e.scores is None else e.scores for e in fit.experiments.values()]
    for k, ax in zip(which, axes, strict=True):
        for colour, e, r in zip(_colours(fit), fit.experiments.values(), residuals, strict=True):
            _dots(ax, e.t, r[:, k], colour)
        sigma = 1.0 if fit.noise else fit.sigma.get(names[k], np.nan)
        every = np.concatenate([r[:, k] for r in residuals])
        every = every[np.isfinite(every)]
        size = max([2.4 * sigma if np.isfinite(sigma) else 0.0, *np.abs(every) * 1.1])
        ax.axhline(0.0, color=STYLE["faint"], lw=0.9, zorder=2)
        if np.isfinite(sigma):
            ax.hlines((-2 * sigma, 2 * sigma), *ax.get_xlim(), color=BAD, lw=1.0, ls=(0, (4, 2)), zorder=2)
        if 0 < size < 1e300:
            ax.set_ylim(-size, size)
            _distribution(ax, every, sigma, size)
        label(ax.set_ylabel, short(names[k]))
    if fit.noise:
        return _finish(figure, fit, {"standardised residual": "o", "± 2": "limit", "standard normal": "normal"})
    return _finish(figure, fit, {"data minus estimate": "o", "± 2 σ": "limit", "normal distribution with σ": "normal"})


def gamma_figure(fit: Fit) -> Figure | None:
    """γ per state as bars on a logarithmic axis, coloured by verdict; None where γ was not estimated."""
    states = [k for k in shown(fit) if fit.state_names[k] in fit.gamma]
    if not states:
        return None
    values = np.array([fit.gamma[fit.state_names[k]] for k in states])
    real = np.clip(values[np.isfinite(values) & (values > 0)], 1e-100, 1e100)  # powers of ten around it are numbers
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


def _panels(fit: Fit, n: int, height: float = 0.0, title: float = 0.0, aside: float = 0.0) -> tuple[Figure, list[Axes]]:
    """A figure with n panels over time.

    Rows are `height` inches tall, with `title` inches for a title; a share `aside` on the right is kept free.
    """
    height = height or (2.2 if n > 2 else 2.7)
    columns = min(n, 2) if n <= 4 else 2 if aside and n <= 12 else 3 if n <= 12 else 4
    each, head = WIDTH / columns, 0.36 + _ROW * (len(fit.experiments) > 1)
    total = -(-n // columns) * height + head
    figure = blank(total)
    first, last = _span(*(t for e in fit.experiments.values() for t in (e.t, e.curve.t[_drawn(e)])))
    margin = 0.02 * (last - first) or 0.5
    panels = []
    for i in range(n):
        left, bottom = i % columns * each + _LEFT, total - head - (i // columns + 1) * height + _BOTTOM
        ax = add_axes(figure, left, bottom, (each - _LEFT - 0.14) * (1 - aside), height - _BOTTOM - _TOP - title)
        ax.set_xlim(first - margin, last + margin)
        if i >= n - columns:
            label(ax.set_xlabel, "time")
        panels.append(ax)
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
        **{m: {"color": "white", "mec": colour, "marker": m, "ls": "", "ms": 5} for m in "v^"},
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
    if np.isfinite(high - low) and ax.get_yscale() == "linear":
        ax.set_ylim(low, high)
