"""The paper's figures from records, as matplotlib figures that share nothing with pyplot."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from odinfer.files import safe_name
from odinfer.paper.bench.compute import from_json
from odinfer.paper.bench.report.results import Results, outcome_entry, outcome_values, quartiles
from odinfer.paper.bench.report.tables import (
    chosen_parameters,
    equation_verdicts,
    marginals,
    quantile_bands,
    scalings,
    states_of,
)
from odinfer.paper.bench.runs import LIMIT
from odinfer.paper.systems import system_of
from odinfer.parallel.store import canonical
from odinfer.style.drawing import BAD, GOOD, PALETTE, STYLE, escape_math

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
FEWEST = 5  # points that make a box
_TRUTH, _OURS = "#D55E00", "#0072B2"


def panel_grid(
    rows: int, columns: int, width: float = 3.1, height: float = 2.5, layout: Any = "constrained", **more: Any
) -> tuple[Figure, Any]:
    """A figure and its axes (rows, columns)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure((max(width * columns, 4.5), height * rows), facecolor="white", layout=layout)
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False, **more)
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
        ax.spines[["left", "bottom"]].set_color(STYLE["line"])
        ax.tick_params(labelsize=STYLE["small"], color=STYLE["line"], labelcolor=STYLE["faint"], length=3, which="both")
        ax.grid(color=STYLE["grid"], lw=0.8, axis="y")
        ax.set_axisbelow(True)
    return figure, axes


def draw_boxes(ax: Axes, samples: Sequence[Array], labels: Sequence[str], log: bool = True) -> None:
    """A box from the 25 % to the 75 % quantile and a line at the median per sample; whiskers from 5 % to 95 %.

    Samples of few points are drawn as these points.
    """
    from matplotlib.ticker import LogFormatterSciNotation

    for i, v in enumerate(samples):
        v = v[v > 0] if log else v
        if not len(v):
            continue
        low, median, high, _ = quartiles(v)
        finite = v[np.isfinite(v)]
        if not math.isfinite(median) or not len(finite):
            ax.annotate("∞", (i, 0.97), xycoords=("data", "axes fraction"), ha="center", va="top", color=BAD)
            continue
        colour = PALETTE[i % len(PALETTE)]
        if len(v) < FEWEST:
            ax.scatter(np.full(len(finite), i), finite, s=16, color=colour, alpha=0.8)
            continue
        high = high if math.isfinite(high) else finite.max()
        ax.vlines(i, *np.quantile(finite, (0.05, 0.95)), color=colour, lw=1)
        ax.bar(i, high - low, bottom=low, width=0.55, color=colour, alpha=0.3, edgecolor=colour, lw=1)
        ax.hlines(median, i - 0.275, i + 0.275, color=colour, lw=2)
    ax.set_xticks(range(len(labels)), [*map(escape_math, labels)], rotation=35, ha="right", rotation_mode="anchor")
    ax.set_xlim(-0.6, len(labels) - 0.4)
    if log:
        ax.set_yscale("log")
        ax.yaxis.set_minor_formatter(LogFormatterSciNotation(labelOnlyBase=False, minor_thresholds=(1.5, 0.6)))


def _set_title(ax: Axes, words: str) -> None:
    ax.set_title(words, fontsize=STYLE["text"], color=STYLE["ink"], loc="left", parse_math=False)


def _by_noise(results: Results) -> list[list[str]]:
    """Settings in rows of noise levels and columns of systems, as the paper arranges them."""
    columns: dict[str, list[str]] = {}
    for setting in results.settings():
        columns.setdefault(results.case(setting).case.name, []).append(setting)
    rows = max(map(len, columns.values()), default=0)
    return [[c[i] if i < len(c) else "" for c in columns.values()] for i in range(rows)]


def _draw_errors(ax: Axes, results: Results, setting: str, role: str, entry: tuple[str, ...]) -> None:
    """Boxes of an error over methods; the dashed line is the median of the limit."""
    methods = results.methods(role)
    methods.pop(LIMIT, None)
    draw_boxes(
        ax, [outcome_values(results.at(setting, m), outcome_entry(*entry)) for m in methods], _short_labels(methods)
    )
    best = quartiles(outcome_values(results.at(setting, LIMIT), outcome_entry(*entry)))[1]
    if math.isfinite(best):
        ax.axhline(best, color=STYLE["ink"], lw=1, ls=(0, (4, 2)), zorder=1)


def error_figure(results: Results, role: str, key: str, label: str) -> Figure | None:
    """Boxes of an error over methods, a panel per setting."""
    arranged = _by_noise(results)
    if not arranged:
        return None
    figure, axes = panel_grid(len(arranged), len(arranged[0]), height=2.7)
    for row, line in zip(axes, arranged, strict=True):
        for ax, setting in zip(row, line, strict=True):
            if not setting:
                ax.set_axis_off()
                continue
            _draw_errors(ax, results, setting, role, (key,))
            _set_title(ax, setting)
        row[0].set_ylabel(label, fontsize=STYLE["text"])
    return figure


def statewise_figure(results: Results, case: str) -> Figure | None:
    """The trajectory error of every state of one system."""
    settings = [s for s in results.settings() if results.case(s).case.name == case]
    states = states_of(results, settings[0]) if settings else ()
    if not states:
        return None
    figure, axes = panel_grid(len(settings), len(states), width=2.5, height=2.5)
    for row, setting in zip(axes, settings, strict=True):
        for ax, state in zip(row, states, strict=True):
            _draw_errors(ax, results, setting, "compared", ("trmses_paper", state))
            _set_title(ax, f"{setting}: {state}")
        row[0].set_ylabel("trmse_paper", fontsize=STYLE["text"])
    return figure


def trajectory_figure(results: Results, setting: str) -> Figure | None:
    """States down, methods across: median trajectory, its band, and the truth."""
    found = quantile_bands(results, setting)
    if not found:
        return None
    names = system_of(canonical(results.case(setting).case.spec)).model.states
    # Laid out by hand, in inches: many panels with labels at the edges only, where constrained layout takes seconds.
    figure, axes = panel_grid(len(names), len(found), 2.1, 1.55, layout=None, sharex=True, sharey="row")
    wide, tall = figure.get_size_inches()
    figure.subplots_adjust(0.75 / wide, 0.5 / tall, 1 - 0.15 / wide, 1 - 0.6 / tall, wspace=0.12, hspace=0.15)
    for column, (label, b) in enumerate(found.items()):
        for k, name in enumerate(names):
            ax = axes[k, column]
            size = np.ptp(b.truth[:, k])
            floor, roof = b.truth[:, k].min() - 0.6 * size, b.truth[:, k].max() + 0.6 * size
            low, median, high = (np.clip(v[:, k], floor, roof) for v in (b.low, b.median, b.high))
            ax.fill_between(b.t, low, high, color=_OURS, alpha=0.25, lw=0)
            ax.plot(b.t, b.truth[:, k], color=_TRUTH, lw=1.6)
            ax.plot(b.t, median, color=_OURS, lw=1.2)
            if column == 0:
                ax.set_ylabel(name, fontsize=STYLE["text"], parse_math=False)
        _set_title(axes[0, column], f"{label} ({b.draws})")
    where = {"x": 0.01, "y": 1 - 0.1 / tall, "ha": "left", "va": "top"}
    figure.suptitle(setting, **where, fontsize=STYLE["text"] + 2, color=STYLE["ink"], parse_math=False)
    for ax in axes[-1]:
        ax.set_xlabel("time", fontsize=STYLE["small"])
    return figure


def seconds_figure(results: Results) -> Figure | None:
    """Medians of seconds per method and setting: ours as dots, the paper's as diamonds."""
    methods, settings = results.methods("compared"), results.settings()
    if not settings:
        return None
    printed = results.grid.report.get("seconds", {})
    figure, axes = panel_grid(1, 1, width=8.5, height=3.4)
    ax = axes[0, 0]
    for i, (name, label) in enumerate(methods.items()):
        offset = (i - (len(methods) - 1) / 2) * 0.7 / len(methods)
        ours = [
            quartiles(np.array([from_json(r["timing"]["seconds"]) for r in results.at(s, name)]))[1] for s in settings
        ]
        theirs = [printed.get(name, {}).get(s, (math.nan,))[0] for s in settings]
        x, colour = np.arange(len(settings)) + offset, PALETTE[i % len(PALETTE)]
        ax.plot(x, ours, "o", color=colour, ms=6, label=escape_math(label))
        if not np.isnan(theirs).all():
            ax.plot(x, theirs, "D", mfc="white", mec=colour, ms=6, label=escape_math(f"{label}, in the paper"))
    ax.set_yscale("log")
    ax.set_xticks(range(len(settings)), [*map(escape_math, settings)])
    ax.set_ylabel("seconds per fit", fontsize=STYLE["text"])
    figure.legend(loc="outside right upper", fontsize=STYLE["small"], frameon=False)
    return figure


def parameter_figure(results: Results) -> Figure | None:
    """Estimates by method, a panel per parameter and setting; the dashed line is the truth."""
    chosen = chosen_parameters(results)[:12]
    if not chosen:
        return None
    columns = min(len(chosen), 4)
    figure, axes = panel_grid(-(-len(chosen) // columns), columns, width=2.6, height=2.8)
    methods = results.methods("compared")
    for ax in axes.flat[len(chosen) :]:
        ax.set_axis_off()
    for ax, (setting, name, truth) in zip(axes.flat, chosen, strict=False):
        draw_boxes(
            ax,
            [outcome_values(results.at(setting, m), outcome_entry("theta", name)) for m in methods],
            _short_labels(methods),
            truth > 0,
        )
        ax.axhline(truth, color=_TRUTH, lw=1.2, ls=(0, (4, 2)), zorder=1)
        _set_title(ax, f"{name}: {setting}")
    return figure


def marginal_figure(results: Results) -> Figure | None:
    """Histograms of draws with the Gaussian of the same mean and standard deviation."""
    found = marginals(results)[:12]
    if not found:
        return None
    columns = min(len(found), 4)
    figure, axes = panel_grid(-(-len(found) // columns), columns, width=2.7, height=2.3)
    for ax in axes.flat[len(found) :]:
        ax.set_axis_off()
    for ax, m in zip(axes.flat, found, strict=False):
        inner = m.quantiles[2:-2]  # without the outermost percent, which would flatten the rest
        ax.hist(inner, 30, density=True, color=_OURS, alpha=0.4)
        mean, sd = m.moments["mean"], max(m.moments["sd"], 1e-300)
        at = np.linspace(inner.min(), inner.max(), 200)
        ax.plot(at, np.exp(-0.5 * ((at - mean) / sd) ** 2) / (math.sqrt(2 * math.pi) * sd), color=STYLE["ink"], lw=1.2)
        ax.set_yticks([])
        _set_title(ax, f"{m.parameter}: {m.setting}\n{m.method}" + ("" if m.converged else ", not mixed"))
    return figure


def gamma_figure(results: Results) -> Figure | None:
    """γ of every equation over the draws; diamonds are the paper's medians, the line is where verdicts change."""
    judged = equation_verdicts(results)
    if not judged:
        return None
    groups = list(dict.fromkeys((j.setting, j.method, j.label) for j in judged))
    figure, axes = panel_grid(1, len(groups), width=4.6, height=3.2, sharey=True)
    for ax, group in zip(axes[0], groups, strict=True):
        mine = [j for j in judged if (j.setting, j.method, j.label) == group]
        for i, j in enumerate(mine):
            finite = j.gamma[np.isfinite(j.gamma)]
            # Side by side by rank: equal values at the floor stay visible as a row.
            spread = (np.argsort(np.argsort(finite)) / max(len(finite) - 1, 1) - 0.5) * 0.6
            ax.plot(i + spread, finite, ".", color=BAD if j.wrong else GOOD, ms=4, alpha=0.7)
            ax.plot(i, j.printed[0], "D", mfc="white", mec=STYLE["ink"], ms=6)
        ax.axhline(0.1, color=STYLE["faint"], lw=1, ls=(0, (4, 2)))
        ax.set_yscale("log")
        ax.set_xticks(
            range(len(mine)), [escape_math(f"{j.candidate} {j.state}") for j in mine], rotation=35, ha="right"
        )
        _set_title(ax, f"{group[2]}; {group[0]}")
    axes[0, 0].set_ylabel("γ (blue: equation right, red: wrong)", fontsize=STYLE["text"])
    return figure


def scaling_figure(results: Results) -> Figure | None:
    """Mean seconds ± standard deviation over the number of states, with the fitted line."""
    fits = scalings(results)
    if not fits:
        return None
    figure, axes = panel_grid(1, 2, width=4.2, height=3.1)
    for i, fit in enumerate(fits.values()):
        colour = PALETTE[i % len(PALETTE)]
        for ax in axes[0]:
            ax.plot(fit.K, fit.mean, "o", color=colour, ms=4.5, label=escape_math(fit.method))
            ax.fill_between(fit.K, fit.mean - fit.sd, fit.mean + fit.sd, color=colour, alpha=0.2, lw=0)
        if not math.isnan(fit.exponent):
            axes[0, 0].plot(fit.K, np.polyval(fit.line, fit.K), "--", color=colour, lw=1.2)
            power = np.exp(np.polyval(np.polyfit(np.log(fit.K), np.log(fit.mean), 1), np.log(fit.K)))
            axes[0, 1].plot(fit.K, power, "--", color=colour, lw=1.2)
    axes[0, 1].set(xscale="log", yscale="log")
    for ax, words in zip(axes[0], ("with a line, as in the paper", "with a power law"), strict=True):
        ax.set_xlabel("states K", fontsize=STYLE["text"])
        ax.set_ylabel("seconds per fit", fontsize=STYLE["text"])
        _set_title(ax, words)
    axes[0, 0].legend(fontsize=STYLE["small"], frameon=False)
    return figure


def _short_labels(methods: Mapping[str, str]) -> list[str]:
    return [label.replace(", paper's settings", " (paper)") for label in methods.values()]


def all_figures(results: Results) -> dict[str, Callable[[], Figure | None]]:
    """All figures by file name, not drawn yet."""
    cases = dict.fromkeys(results.case(s).case.name for s in results.settings())
    found: dict[str, Callable[[], Figure | None]] = {
        "1_states": lambda: error_figure(results, "states", "state_rmse", "state RMSE"),
        "2_trmse": lambda: error_figure(results, "compared", "trmse_paper", "trmse_paper"),
    }
    for case in cases:
        found[f"2_trmse_{safe_name(case)}"] = lambda case=case: statewise_figure(results, case)  # type: ignore[misc]
    for i, setting in enumerate(results.settings()):
        found[f"3_trajectories_{i + 1}"] = lambda s=setting: trajectory_figure(results, s)  # type: ignore[misc]
    return found | {
        "4_run_times": lambda: seconds_figure(results),
        "5_parameters": lambda: parameter_figure(results),
        "6_marginals": lambda: marginal_figure(results),
        "7_model_selection": lambda: gamma_figure(results),
        "8_scaling": lambda: scaling_figure(results),
    }
