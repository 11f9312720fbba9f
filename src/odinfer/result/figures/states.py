"""Plot states and observables over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from odinfer.diagnostics.verdicts import CONSISTENT, CONTRADICTS
from odinfer.errors import InputError
from odinfer.result.figures.marks import (
    MAX_PANELS,
    axis_label,
    axis_limits,
    colours,
    contradiction_note,
    displayed_points,
    dots,
    groups,
    largest_magnitude,
    neutral_colour,
    omission_note,
    set_time_axis,
    set_y_limits,
    simplify_polyline,
    span,
    states_to_show,
    verdict_colour,
)
from odinfer.result.prediction_interval import prediction_interval
from odinfer.result.stages import attached_problem, state_band
from odinfer.style.drawing import BAD, PALETTE, STYLE, css_colour, shorten, thin_points
from odinfer.style.picture import LegendEntry, PanelFigure, Plot, combined_figure
from odinfer.style.text import format_number
from odinfer.uncertainty.results import BAND

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from odinfer.result.fit import FitResult
    from odinfer.result.stages import ExperimentFit

Array = NDArray[np.float64]

_LOG_AXIS_RATIO = 30.0  # the ratio of log-normal values from which on their axis is logarithmic
_MAX_OVERLAID = 4  # experiments that one panel can hold; if there are more, each has panels of its own
_UNOBSERVED = "not observed: what the model implies"
_MAX_BANDS = 3  # experiments whose bands of new observations one panel can hold


@dataclass(frozen=True)
class Trace:
    """What one experiment contributes to a panel.

    Attributes:
        colour: of the experiment.
        t, centre, below, above: the estimated curve and the ends of its band (D,).
        low, high: between which new observations are expected (D,); NaN where that is not known.
        best: the model's own best trajectory (D,) at `best_at`, where the curve is ODIN's compromise; this, where the
            curve is the model's own and refuted.
        seen_at, y, limit: observations (N,); those that are limits only have −1 or 1 there.
    """

    colour: str
    t: Array
    centre: Array
    below: Array
    above: Array
    low: Array
    high: Array
    seen_at: Array
    y: Array
    limit: Array
    best_at: Array
    best: Array


@dataclass(frozen=True)
class Panel:
    """A state, or a column of the data that is none.

    Attributes:
        state: its name, where it is one.
        traces: one per experiment that is in the panel.
        beside: those whose axis it shares.
        logarithmic: whether its axis is.
    """

    name: str
    state: str
    traces: tuple[Trace, ...]
    beside: tuple[Trace, ...]
    logarithmic: bool = False


def states_figure(fit: FitResult, width: float | None = None) -> Figure:
    """Observations and estimated states with 95 % bands over time, a panel per state and per other observable."""
    return combined_figure(states_picture(fit), *([] if width is None else [width]))


def draw_states(fit: FitResult, ax: Axes | Sequence[Axes]) -> Figure:
    """Draw the same on axes of the caller: a panel on each of several, all panels on a single one.

    Raises:
        InputError: there are several axes, but fewer than panels.
    """
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

    panels = state_panels(fit)
    if isinstance(ax, Axes):
        ink = [PALETTE[i % len(PALETTE)] for i in range(len(panels))]
        if len(panels) > 1:
            traces = tuple(replace(r, colour=c) for c, p in zip(ink, panels, strict=True) for r in p.traces)
            handles = [Line2D([], [], color=c, label=p.name) for c, p in zip(ink, panels, strict=True)]
            panels = [Panel("", "", traces, traces)]
            ax.legend(handles=handles)
        axes: list[Axes] = [ax]
    else:
        axes = list(np.ravel(np.asarray(ax, dtype=object)))
    if len(axes) < len(panels):
        raise InputError(f"this plot has {len(panels)} panels, but ax has {len(axes)} axes")
    for own, panel in zip(axes, panels, strict=False):
        _draw_states(fit, panel, own)
        own.set_xlabel(axis_label(fit, "time"), parse_math=False)
        own.set_ylabel(axis_label(fit, panel.name), parse_math=False)
    return axes[0].figure.figure  # of axes in a subfigure, the whole figure


def states_picture(fit: FitResult) -> PanelFigure:
    """The same panel by panel, each with the verdict on its equation or on the model above it."""
    panels = state_panels(fit)
    plots = []
    for panel in panels:
        title, colour = _verdict(fit, panel)
        y, time = axis_label(fit, panel.name), axis_label(fit, "time")
        plots.append(
            Plot(panel.name, _description(fit, panel, title), partial(_draw_states, fit, panel), y=y, time=time,
                 title=title, colour=colour, live=_panel_data(fit, panel))
        )  # fmt: skip
    return PanelFigure(
        tuple(plots), _keys(fit, panels), () if _has_separate_panels(fit) else groups(fit), omission_note(fit)
    )


def _keys(fit: FitResult, panels: list[Panel]) -> tuple[LegendEntry, ...]:
    traces, colour = (
        [r for panel in panels for r in panel.traces],
        neutral_colour(fit) if not _has_separate_panels(fit) else PALETTE[0],
    )
    line, beside = "prediction" if fit.noise else "estimated state", ""
    if any(len(r.best) for r in traces):
        line, beside = "ODIN's compromise", "the model's best trajectory"
        if _compromise(fit) is not None:
            line, beside = beside, line
    keys = [LegendEntry("data", "o", colour), LegendEntry(line, "-", colour)]
    if beside:
        keys.append(LegendEntry(beside, "--", best_colour(fit, colour)))
    keys.append(LegendEntry("95 % band", "band", colour))
    if any(np.isfinite(r.low).any() for r in traces):
        keys.append(LegendEntry("95 % of new data", ":", colour))
    limits = {int(side) for r in traces for side in np.unique(r.limit)}
    keys += [LegendEntry(words, mark, colour) for side, words, mark in
             ((-1, "below this limit", "v"), (1, "above this limit", "^")) if side in limits]  # fmt: skip
    return tuple(keys)


def best_colour(fit: FitResult, own: str) -> str:
    """Of what is drawn beside the curve."""
    if _compromise(fit) is not None:
        return str(STYLE["faint"])
    return BAD if len(fit.experiments) == 1 else own


def _compromise(fit: FitResult) -> tuple[Array, ...] | None:
    """ODIN's states (N, K) of every experiment, where the curve is the model's own trajectory and is refuted."""
    odin = fit.stages.get("odin")
    if odin is None or CONTRADICTS not in fit.verdicts.values():
        return None
    if fit.details.get("stage_used", list(fit.stages)[-1]) == "odin":
        return None
    return odin.x if all(e.best is None for e in fit.experiments.values()) else None


def _verdict(fit: FitResult, panel: Panel) -> tuple[str, str]:
    """What is said above a panel, and in which colour."""
    if not any(np.isfinite(r.y).any() for r in panel.traces):
        against = contradiction_note(fit) if fit.converged else ""
        return (f"not observed; {against}", BAD) if against else (_UNOBSERVED, STYLE["faint"])
    if not fit.converged:
        return "", STYLE["ink"]
    verdict = fit.verdicts.get(panel.state)
    if verdict in (CONSISTENT, CONTRADICTS) and (verdict == CONTRADICTS or not contradiction_note(fit)):
        words = "its equation contradicts the data" if verdict == CONTRADICTS else "its equation is consistent"
        return words, verdict_colour(fit, panel.state)
    return contradiction_note(fit), BAD


def _description(fit: FitResult, panel: Panel, title: str) -> str:
    """What a panel shows."""
    seen = sum(int(np.isfinite(r.y).sum()) for r in panel.traces)
    off = [r.y - np.interp(r.seen_at, r.t, r.centre) for r in panel.traces if len(r.t)]
    size = (
        largest_magnitude(np.concatenate([o[r.limit == 0] for o, r in zip(off, panel.traces, strict=True)]))
        if off
        else np.nan
    )
    if not seen:
        return f"{panel.name}: {title}"
    parts = [f"{seen} observations and fit"]
    if np.isfinite(size):
        parts.append(f"residuals within ±{format_number(size, 2)}")
    lost = [r.y - np.interp(r.seen_at, r.best_at, r.best) for r in panel.traces if len(r.best)]
    if lost and _compromise(fit) is None and np.isfinite(far := largest_magnitude(np.concatenate(lost))):
        parts.append(f"the model's own best trajectory misses them by up to {format_number(far, 2)}")
    return f"{panel.name}: {', '.join([*parts, *([title] if title else [])])}"


def _draw_states(fit: FitResult, panel: Panel, ax: Axes) -> None:
    set_time_axis(fit, ax)
    if panel.logarithmic:
        _logarithmic(ax, panel)
    for r in panel.traces:
        ax.fill_between(r.t, r.below, r.above, color=r.colour, alpha=0.18, lw=0, zorder=1)
        for end in (r.low, r.high):
            if np.isfinite(end).any():
                ax.plot(r.t, end, color=r.colour, lw=0.9, ls=(0, (1, 2)), zorder=2)
        ax.plot(r.t, r.centre, color=r.colour, lw=1.6, zorder=3)
        if len(r.best):
            ax.plot(r.best_at, r.best, color=best_colour(fit, r.colour), lw=1.6, ls=(0, (4, 2)), zorder=3)
        dots(ax, r.seen_at, np.where(r.limit == 0, r.y, np.nan), r.colour)
        for side, marker in ((-1, "v"), (1, "^")):
            beyond = np.flatnonzero(r.limit == side)
            if len(beyond := beyond[thin_points(r.y[beyond])]):
                ax.plot(r.seen_at[beyond], r.y[beyond], marker, color="white", mec=r.colour, mew=1.1, ms=5, zorder=4)
    set_y_limits(ax, _limits(panel))


def _limits(panel: Panel) -> tuple[float, float]:
    ends = [end for r in panel.beside for end in (r.below, r.above, r.low, r.high, r.best)]
    return axis_limits([v for r in panel.beside for v in (r.centre, r.y)], ends)


def _panel_data(fit: FitResult, panel: Panel) -> dict[str, Any]:
    """A panel as plain data."""
    lines = []
    for r in panel.traces:
        name = next((n for n, c in zip(fit.experiments, colours(fit), strict=True) if c == r.colour), "")
        some = thin_points(r.y)
        seen_at, y, limit = r.seen_at[some], r.y[some], r.limit[some]
        lines.append({
            "name": name if len(panel.traces) > 1 else "", "colour": css_colour(r.colour), "t": r.t, "fit": r.centre,
            "low": r.below, "high": r.above, "least": r.low, "most": r.high,
            "seen": seen_at, "data": np.where(limit == 0, y, np.nan),
            "limits": np.where(limit == 0, np.nan, y), "best_at": r.best_at, "best": r.best,
            "best_colour": css_colour(best_colour(fit, r.colour)),
        })  # fmt: skip
    ends = _limits(panel)
    fixed = {} if panel.logarithmic or not np.isfinite(ends).all() else {"range": np.array(ends)}
    beside = {} if _compromise(fit) is None else {"beside": "ODIN's compromise"}
    return {"y": panel.name, "log": panel.logarithmic, "lines": lines, **beside, **fixed}


def state_panels(fit: FitResult) -> list[Panel]:
    """The states that a column observes as they are, the other columns, and then the hidden states."""
    of_state = {k: m for k in range(len(fit.state_names)) if (m := column_of(fit, k)) is not None}
    others = sorted({*range(len(fit.columns))} - {*of_state.values()})[: MAX_PANELS // 2]
    panels: list[Panel] = []
    hidden: list[Panel] = []
    apart, observed, odin, every = (
        _has_separate_panels(fit),
        _prediction_bands(fit),
        _compromise(fit),
        [*fit.experiments.values()],
    )
    beside = [(e.t, odin[i]) if odin is not None else None if e.best is None else (e.best.t, e.best.x)
              for i, e in enumerate(every)]  # fmt: skip
    for k in states_to_show(fit, MAX_PANELS - len(others) * (len(fit.experiments) if apart else 1)):
        m, name = of_state.get(k), fit.state_names[k]
        title = name if m is not None or name in fit.columns else f"{shorten(name, 9)} (hidden)"
        traces = [_trace(c, e, e.curve.x[:, k], [v[:, k] for v in state_band(fit, e.curve.x, e.curve.sd)], m, ends,
                         None if b is None else (b[0], b[1][:, k]))
                  for c, e, ends, b in zip(colours(fit), every, observed, beside, strict=True)]  # fmt: skip
        (hidden if m is None else panels).extend(_panels(fit, title, name, m, traces, apart and m is not None))
    for m in others:
        title = f"{shorten(fit.columns[m], 8)} (observed)" if fit.columns[m] in fit.state_names else fit.columns[m]
        traces = [_trace(c, e, x := e.expected[:, m], [x + s * BAND * e.expected_sd[:, m] for s in (-1, 1)], m, ends)
                  for c, e, ends in zip(colours(fit), fit.experiments.values(), observed, strict=True)
                  if e.expected is not None and e.expected_sd is not None]  # fmt: skip
        panels += _panels(fit, title, "", m, traces, apart)
    return panels + hidden


def _has_separate_panels(fit: FitResult) -> bool:
    """Whether experiments are so many that each has panels of its own, and these are few enough."""
    n = len(fit.experiments)
    hidden = sum(column_of(fit, k) is None for k in range(len(fit.state_names)))
    return n > _MAX_OVERLAID and n * len(fit.columns) + hidden <= MAX_PANELS


def column_of(fit: FitResult, k: int) -> int | None:
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


def _prediction_bands(fit: FitResult) -> list[tuple[Array, Array] | None]:
    """Per experiment, between which values (D, M) new observations lie along the curve; None where it is not known."""
    few = len(fit.experiments) <= _MAX_BANDS or _has_separate_panels(fit)
    found: list[tuple[Array, Array] | None] = []
    for name, e in fit.experiments.items():
        known = (
            few
            and e.best is None
            and len(e.curve.t) > 1
            and bool(np.isfinite(e.curve.x).all())
            and (not fit.noise or attached_problem(fit) is not None)
        )
        if not known or (not fit.noise and not {*fit.state_names} <= {*fit.sigma}):
            found.append(None)
            continue
        _, low, high = prediction_interval(fit, name, e.curve.t)
        found.append((low, high))
    return found


def _trace(
    colour: str, e: ExperimentFit, centre: Array, band: Sequence[Array], m: int | None,
    ends: tuple[Array, Array] | None, beside: tuple[Array, Array] | None = None,
) -> Trace:  # fmt: skip
    nothing = np.full(len(e.t), np.nan)
    y = nothing if m is None else e.y[:, m]
    limit = np.zeros(len(e.t)) if m is None or e.limit is None else np.asarray(e.limit[:, m], float)
    unknown = np.full(len(e.curve.t), np.nan)
    low, high = (unknown, unknown) if m is None or ends is None else (ends[0][:, m], ends[1][:, m])
    seen = displayed_points(e)
    t, centre, below, above, low, high = (v[seen] for v in (e.curve.t, centre, *band, low, high))
    at = simplify_polyline(t, centre, below, above, low, high)
    best_at, own = beside or (np.empty(0), np.empty(0))
    some = simplify_polyline(best_at, own)
    return Trace(
        colour, t[at], centre[at], below[at], above[at], low[at], high[at], e.t, y, limit, best_at[some], own[some]
    )  # fmt: skip


def _panels(fit: FitResult, title: str, state: str, m: int | None, traces: list[Trace], apart: bool) -> list[Panel]:
    logarithmic, every = False, tuple(traces)
    if m is not None and fit.noise.get(fit.columns[m]) == "lognormal":
        low, high = span(*(r.y for r in traces))
        logarithmic = 0 < _LOG_AXIS_RATIO * low < high
    if not apart:
        return [Panel(title, state, every, every, logarithmic)]
    return [Panel(f"{title}, {name}", state, (replace(r, colour=PALETTE[0]),), every, logarithmic)
            for name, r in zip(fit.experiments, traces, strict=True)]  # fmt: skip


def _logarithmic(ax: Axes, panel: Panel) -> None:
    """A logarithmic axis with plain words on its ticks, for what is seen."""
    low, high = span(*(v[v > 0] for r in panel.beside for v in (r.y, r.centre)))
    low = max(low, span(*(r.y for r in panel.beside))[0] / 30)  # a curve that falls to nothing is not followed
    ax.set(yscale="log")
    decades = np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    decades = decades[:: max(1, len(decades) // 6)]
    ax.set_yticks(10.0**decades, [format_number(10.0**d, 3).replace("-", "\N{MINUS SIGN}") for d in decades])
    ax.minorticks_off()
    ax.set_ylim(low / 1.6, high * 1.6)
