"""Figures of a comparison: γ against its expectation, fits of all candidates, and slope gaps.

Candidates are called by letters, the best A: their names may be long.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from odinfer.result.figures.marks import MAX_PANELS, axis_limits, set_y_limits, simplify_polyline
from odinfer.selection.missing_terms import Gap, gaps
from odinfer.style.drawing import BAD, GOOD, PALETTE, ROWS, STYLE, add_axes, css_colour, set_label, shorten
from odinfer.style.picture import LegendEntry, PanelFigure, Plot, SingleFigure, combined_figure
from odinfer.style.text import format_number
from odinfer.uncertainty.results import BAND

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from odinfer.result.fit import Fit
    from odinfer.selection.compare import Comparison

Array = NDArray[np.float64]

_COLUMNS = 12  # of the data in a picture
_LINES = ("-", "--", ":")


def letters(comparison: Comparison) -> dict[str, str]:
    """Candidate → a letter, the best first; A1, B1, … after Z."""
    return {
        str(name): chr(ord("A") + i % 26) + (str(i // 26) if i >= 26 else "")
        for i, name in enumerate(comparison.table.index)
    }


def gamma_picture(comparison: Comparison) -> SingleFigure | None:
    """γ of every equation of every candidate on a log axis, the range expected of a right equation shaded.

    None where no equation was judged.
    """
    called = letters(comparison)
    cases = [(called[name], j) for name in called for j in comparison.candidates[name].judgements][:MAX_PANELS]
    if not cases:
        return None
    values = np.array([[j.gamma, j.expected] for _, j in cases])
    real = values[np.isfinite(values) & (values > 0)]
    real = np.clip(real, 1e-100, 1e100)  # powers of ten around it are numbers
    low = 10.0 ** (np.floor(np.log10(real.min())) - 1) if len(real) else 1e-7
    high = 10.0 ** (np.ceil(np.log10(max(real.max(), 1.0))) + 1) if len(real) else 10.0
    names = [f"{letter}: {shorten(j.state, 16)}" for letter, j in cases]
    left, tall = 0.35 + 0.075 * max(map(len, names)), 0.3 * len(cases)
    labels = [f"{format_number(j.gamma, 2)}  {'contradicts' if j.contradicts else 'consistent'}" for _, j in cases]
    far = high * min((high / low) ** 0.35, 1e100)  # room for the words behind the bars

    def draw(figure: Any) -> None:
        ax = add_axes(figure, left, 0.5, ROWS - left - 0.2, tall + 0.1)
        rows = np.arange(len(cases))[::-1]
        for row, (_, j), words in zip(rows, cases, labels, strict=True):
            end = max(min(j.gamma, high), low) if np.isfinite(j.gamma) else low
            ax.barh(row, end - low, left=low, height=0.5, color=BAD if j.contradicts else GOOD, zorder=3)
            ax.barh(
                row, max(j.expected, 2 * low) - low, left=low, height=0.86, color=STYLE["line"], alpha=0.6, zorder=1
            )
            ax.annotate(words, (max(end, j.expected), row), (6, 0), textcoords="offset points", va="center",
                        fontsize=STYLE["small"], color=STYLE["ink"], parse_math=False)  # fmt: skip
        ax.set(xscale="log", xlim=(low, far), ylim=(-0.6, len(cases) - 0.4))
        decades = np.arange(np.log10(low), np.log10(far) + 0.5, max(1, np.log10(far / low) // 6))
        ax.set_xticks(10.0**decades, ["1" if d == 0 else f"1e{d:.0f}" for d in decades])
        ax.minorticks_off()
        ax.set_yticks(rows, names, fontsize=STYLE["text"], parse_math=False)
        ax.tick_params(axis="y", length=0)
        set_label(ax.set_xlabel, "mismatch γ; shaded: where a right equation stays in 95 of 100 cases")

    return SingleFigure(
        tall + 0.75, ROWS, draw, "γ: " + "; ".join(f"{n} {w}" for n, w in zip(names, labels, strict=True))
    )


def fits_figure(comparison: Comparison) -> Figure:
    """The observed columns, and over them what every candidate predicts."""
    return combined_figure(fits_picture(comparison))


def fits_picture(comparison: Comparison) -> PanelFigure:
    """The same panel by panel: the best candidate drawn strongest, each by its own best trajectory.

    Where that is not what the fit estimates, ODIN's compromise between it and the data is dotted.
    """
    called, fits = letters(comparison), comparison.fits
    first, styles = next(iter(fits.values())), _styles(comparison)
    plots = []
    for column in first.columns[:_COLUMNS]:
        rejected = [called[name] for name in called for j in comparison.candidates[name].judgements
                   if j.state == column and j.contradicts]  # fmt: skip
        title = f"contradicted: the equation of {', '.join(rejected)}" if rejected else ""
        alt = f"{column}: observations and the fits of {len(fits)} candidates{', ' + title if title else ''}"
        draw = partial(_draw_fits, comparison, column, styles)
        plots.append(
            Plot(
                column,
                alt,
                draw,
                y=shorten(column),
                title=title,
                colour=BAD,
                live=_panel_data(comparison, column, styles),
            )
        )
    keys = [LegendEntry("data", "o", STYLE["faint"])]
    for name, letter in called.items():
        keys.append(
            LegendEntry(
                f"{letter} {shorten(_plain(name), 30)}: {_verdict(comparison, name)}", styles[name][1], styles[name][0]
            )
        )
    if any(e.best is not None for fit in fits.values() for e in fit.experiments.values()):
        keys.append(LegendEntry("ODIN's compromise with the data", ":", STYLE["faint"]))
    return PanelFigure(tuple(plots), tuple(keys))


def _verdict(comparison: Comparison, name: str) -> str:
    """What the data say about a candidate, in a word or two."""
    c = comparison.candidates[name]
    if wrong := [j.state for j in c.judgements if j.contradicts]:
        return f"{shorten(', '.join(wrong), 20)} rejected"
    return "model rejected" if c.whole.contradicts(comparison.level) else "not rejected"


def _styles(comparison: Comparison) -> dict[str, tuple[str, str]]:
    """Candidate → its colour and kind of line."""
    return {name: (PALETTE[i % len(PALETTE)], _LINES[i // len(PALETTE) % len(_LINES)])
            for i, name in enumerate(letters(comparison))}  # fmt: skip


def _draw_fits(comparison: Comparison, column: str, styles: dict[str, tuple[str, str]], ax: Axes) -> None:
    first, lines, wide = next(iter(comparison.fits.values())), [], []
    m = first.columns.index(column)
    for experiment, e in first.experiments.items():
        ax.plot(e.t, e.y[:, m], "o", ms=3.5, color=STYLE["faint"], zorder=5)
        lines.append(e.y[:, m])
        for name, (colour, kind) in styles.items():
            best = name == comparison.best
            for (t, x), own in zip(_predicted(comparison.fits[name], experiment, column), (True, False), strict=False):
                ax.plot(t, x, kind if own else ":", color=colour, lw=2.4 if best else 1.4 if own else 1.0,
                        zorder=4 if best else 3)  # fmt: skip
                wide.append(x)
    set_y_limits(ax, axis_limits(lines, wide))


def _panel_data(comparison: Comparison, column: str, styles: dict[str, tuple[str, str]]) -> dict[str, Any]:
    first, called, lines = next(iter(comparison.fits.values())), letters(comparison), []
    m, nothing = first.columns.index(column), np.empty(0)
    for experiment, e in first.experiments.items():
        for n, (name, (colour, _)) in enumerate(styles.items()):
            (t, x), *compromise = _predicted(comparison.fits[name], experiment, column)
            at, beside = compromise[0] if compromise else (nothing, nothing)
            unknown = np.full(len(t), np.nan)
            lines.append({
                "name": called[name] + (f" {experiment}" if len(first.experiments) > 1 else ""),
                "colour": css_colour(colour),
                "t": t, "fit": x, **dict.fromkeys(("low", "high", "least", "most"), unknown),
                "seen": e.t if n == 0 else nothing, "data": e.y[:, m] if n == 0 else nothing,
                "limits": np.full(len(e.t), np.nan) if n == 0 else nothing, "dots": css_colour(STYLE["faint"]),
                "best_at": at, "best": beside, "best_colour": css_colour(colour), "wide": name == comparison.best,
            })  # fmt: skip
    return {"y": column, "log": False, "beside": "compromise", "lines": lines}


def _predicted(fit: Fit, experiment: str, column: str) -> list[tuple[Array, Array]]:
    """Times and values of a column by the model's own best trajectory, and ODIN's compromise where it is another."""
    e = fit.experiments[experiment]
    if e.fitted is None:
        k = fit.state_names.index(column)
        curves = [c for c in (e.best, e.curve) if c is not None]
        return [(c.t[at], c.x[at, k]) for c in curves for at in [simplify_polyline(c.t, c.x[:, k])]]
    m = fit.columns.index(column)
    if e.expected is not None and np.isfinite(e.expected[:, m]).all():
        at = simplify_polyline(e.curve.t, e.expected[:, m])
        return [(e.curve.t[at], e.expected[at, m])]
    seen = np.isfinite(e.y[:, m])
    return [(e.t[seen], e.fitted[seen, m])]


def gaps_picture(comparison: Comparison) -> PanelFigure | None:
    """For every equation that contradicts the data: what it lacks over time, its band, and where it leaves it."""
    called, plots = letters(comparison), []
    for name, letter in called.items():
        candidate = comparison.candidates[name]
        for g in (g for j in candidate.judgements if j.contradicts for g in gaps(candidate.fit, j.state)):
            where = f", experiment {g.experiment}" if len(candidate.fit.experiments) > 1 else ""
            title = f"{letter}: equation for {shorten(g.state)}{where}"
            times = ", ".join(f"{format_number(a, 3)} to {format_number(b, 3)}" for a, b in g.stretches[:4])
            alt = f"{title}, slope of the data minus f" + (f"; it fails at times {times}" if times else "")
            plots.append(Plot(g.state, alt, partial(_draw_gap, g), y="slope of data − f", title=title))
    keys = (
        LegendEntry("what the equation lacks", "-", BAD),
        LegendEntry("what the data leave open", "band", STYLE["faint"]),
    )
    return PanelFigure(tuple(plots[:MAX_PANELS]), keys) if plots else None


def _draw_gap(g: Gap, ax: Axes) -> None:
    ax.axhline(0.0, color=STYLE["faint"], lw=0.8)
    ax.fill_between(g.t, -BAND * g.sd, BAND * g.sd, color=STYLE["line"], alpha=0.6, lw=0, zorder=1)
    for a, b in g.stretches:
        ax.axvspan(a, b, color=BAD, alpha=0.1, lw=0, zorder=0)
    ax.plot(g.t, g.gap, color=BAD, lw=1.6, zorder=3)


def _plain(name: str) -> str:
    return "".join(c if c.isprintable() else " " for c in name)
