"""Pictures of a comparison: γ against what is expected, the fits of all candidates, and where an equation fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from odinfer.result.figures import MOST
from odinfer.selection.missing_terms import gaps
from odinfer.style.drawing import BAD, GOOD, PALETTE, STYLE
from odinfer.style.text import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from odinfer.result.fit import Fit
    from odinfer.selection.compare import Comparison

Array = NDArray[np.float64]

_WIDTH = 9.6
_LINES = ("-", "--", "-.", ":")


def gamma_figure(comparison: Comparison) -> Figure | None:
    """γ of every equation of every candidate on a log axis, the range expected of a right equation shaded.

    None where no equation was judged.
    """
    cases = [(name, j) for name, c in comparison.candidates.items() for j in c.judgements][:MOST]
    if not cases:
        return None
    values = np.array([[j.gamma, j.expected] for _, j in cases])
    real = values[np.isfinite(values) & (values > 0)]
    low = 10.0 ** (np.floor(np.log10(real.min())) - 1) if len(real) else 1e-7
    high = 10.0 ** (np.ceil(np.log10(max(real.max(), 1.0))) + 2) if len(real) else 10.0
    figure = _figure(0.9 + 0.3 * len(cases))
    ax = _dressed(figure.add_subplot())
    rows = np.arange(len(cases))[::-1]
    for row, (_, j) in zip(rows, cases, strict=True):
        end = max(j.gamma, low) if np.isfinite(j.gamma) else low
        ax.barh(row, end - low, left=low, height=0.5, color=BAD if j.contradicts else GOOD, zorder=3)
        ax.barh(row, max(j.expected, 2 * low) - low, left=low, height=0.86, color=STYLE["line"], alpha=0.6, zorder=1)
        words = f"{number(j.gamma, 2)}  {'contradicts' if j.contradicts else 'consistent'}"
        ax.annotate(words, (max(end, j.expected), row), (6, 0), textcoords="offset points", va="center",
                    fontsize=STYLE["small"], color=STYLE["ink"], parse_math=False)  # fmt: skip
    ax.set(xscale="log", xlim=(low, high), ylim=(-0.6, len(cases) - 0.4))
    labels = [f"{_short(name)}: {_short(j.state, 16)}" for name, j in cases]
    ax.set_yticks(rows, labels, fontsize=STYLE["text"], parse_math=False)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel("mismatch γ (standardised units); shaded: where a right equation stays in 95 of 100 cases")
    return figure


def fits_figure(comparison: Comparison) -> Figure:
    """The observed columns, and over them what every candidate predicts; the best one drawn strongest."""
    fits, best = comparison.fits, comparison.best
    states = next(iter(fits.values())).columns[:12]
    experiments = list(next(iter(fits.values())).experiments)
    figure = _figure(0.7 + 2.5 * len(states) ** 0.5 * (1.15 if len(states) > 1 else 1.0))
    columns = 1 if len(states) == 1 else 2 if len(states) <= 4 else 3
    for i, state in enumerate(states):
        ax = _dressed(figure.add_subplot(-(-len(states) // columns), columns, i + 1))
        for n, experiment in enumerate(experiments):
            e = next(iter(fits.values())).experiments[experiment]
            k = next(iter(fits.values())).columns.index(state)
            ax.plot(e.t, e.y[:, k], "o", ms=3.5, color=STYLE["faint"], zorder=5, label="data" if n == 0 else None)
            for colour, (name, fit) in enumerate(fits.items()):
                ax.plot(
                    *_predicted(fit, experiment, state), _LINES[colour // len(PALETTE) % len(_LINES)],
                    color=PALETTE[colour % len(PALETTE)], lw=2.4 if name == best else 1.2,
                    zorder=4 if name == best else 3, label=_short(name) if n == 0 else None,
                )  # fmt: skip
        ax.set_ylabel(_short(state), parse_math=False)
        ax.set_xlabel("time")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    legend = figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False, fontsize=STYLE["small"])
    for text in legend.get_texts():
        text.set_parse_math(False)
    return figure


def _predicted(fit: Fit, experiment: str, column: str) -> tuple[Array, Array]:
    """Times and predicted values of a column: along the curve, or at the observations where it is no state."""
    e = fit.experiments[experiment]
    if e.fitted is None:
        return e.curve.t, e.curve.x[:, fit.state_names.index(column)]
    m = fit.columns.index(column)
    seen = np.isfinite(e.y[:, m])
    return e.t[seen], e.fitted[seen, m]


def gaps_figure(comparison: Comparison) -> Figure | None:
    """For every equation that contradicts the data: what it lacks over time, its band, and where it leaves it."""
    found = [
        (name, g)
        for name, c in comparison.candidates.items()
        for j in c.judgements
        if j.contradicts
        for g in gaps(c.fit, j.state)
    ][:MOST]
    if not found:
        return None
    columns = min(len(found), 2)
    rows = -(-len(found) // columns)
    figure = _figure(0.4 + 2.3 * rows)
    for i, (name, g) in enumerate(found):
        ax = _dressed(figure.add_subplot(rows, columns, i + 1))
        ax.axhline(0.0, color=STYLE["faint"], lw=0.8)
        ax.fill_between(g.t, -1.96 * g.sd, 1.96 * g.sd, color=STYLE["line"], alpha=0.6, lw=0, zorder=1)
        for a, b in g.stretches:
            ax.axvspan(a, b, color=BAD, alpha=0.1, lw=0, zorder=0)
        ax.plot(g.t, g.gap, color=BAD, lw=1.6, zorder=3)
        where = f", experiment {g.experiment}" if len(comparison.candidates[name].fit.experiments) > 1 else ""
        ax.set_title(f"{_short(name)}: equation for {_short(g.state)}{where}", loc="left", fontsize=STYLE["text"],
                     color=STYLE["ink"], parse_math=False)  # fmt: skip
        ax.set_ylabel("slope of data − f")
        ax.set_xlabel("time")
    return figure


def _figure(height: float) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure((_WIDTH, height), facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _dressed(ax: Axes) -> Axes:
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(STYLE["line"])
    ax.tick_params(labelsize=STYLE["small"], color=STYLE["line"], labelcolor=STYLE["faint"], length=3)
    ax.grid(color=STYLE["grid"], lw=0.8)
    ax.set_axisbelow(True)
    ax.xaxis.label.set(size=STYLE["text"], color=STYLE["ink"])
    ax.yaxis.label.set(size=STYLE["text"], color=STYLE["ink"])
    return ax


def _short(name: Any, most: int = 40) -> str:
    text = "".join(c if c.isprintable() else " " for c in str(name))
    return text if len(text) <= most else text[: most - 1] + "…"
