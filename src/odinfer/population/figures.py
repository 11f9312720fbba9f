"""Pictures of a population fit: raw data, individual fits, predictions, residuals, visual predictive check, effects.

A picture is a list of panels, functions that draw into axes. `draw` lays them out, or uses axes of the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from odinfer.errors import InputError, nearest
from odinfer.population.simulation import (
    SHARES,
    conditional_draws,
    edges_of_bins,
    forecast_subject,
    percentile_bands,
    predict,
    simulated_observations,
)
from odinfer.style.drawing import (
    BAD,
    GOOD,
    PALETTE,
    STYLE,
    WIDTH,
    add_axes,
    new_figure,
    set_label,
    set_title,
    shorten,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from odinfer.population.result import PopulationFit

Array = NDArray[np.float64]
Panel = Callable[["Axes"], None]

MOST_SUBJECTS = 20  # in small multiples
_NAMED = 12  # subjects whose names have room below an axis
_CURVE = 60  # times of a curve
_DRAWS = 200  # of a band
_EACH = 20  # draws of each subject in a histogram
REPLICATES = 300  # studies of a visual predictive check


@dataclass(frozen=True)
class Picture:
    """A picture of a fit.

    Attributes:
        title, caption: for reports.
        panels: of a fit and options.
        across: panels in a row, at most.
        tall: inches of a panel.
        alike: whether all panels have the same limits.
    """

    title: str
    caption: str
    panels: Callable[..., list[Panel]]
    across: int
    tall: float
    alike: bool = False


def draw(fit: PopulationFit, kind: str, ax: Any = None, **options: Any) -> Figure:
    """Draw a picture into a figure of its own, or into axes.

    Args:
        kind: one of `PICTURES`.
        ax: matplotlib axes, or a list or array of them, one for each panel.
        options: of the picture.
    """
    picture = PICTURES[kind]
    panels = picture.panels(fit, **options)
    if ax is not None:
        axes: list[Axes] = list(np.ravel(ax))
        if len(axes) != len(panels):
            raise InputError(f"the picture '{kind}' has {len(panels)} panels, not {len(axes)}; give so many axes")
        figure = cast("Figure", axes[0].figure)
    else:
        across, spare = min(picture.across, len(panels)), 0.75
        rows, width = -(-len(panels) // across), (WIDTH - 0.1) / across - 0.7
        figure, axes = new_figure(rows * (picture.tall + spare) + 0.2), []
        for i in range(len(panels)):
            row, column = divmod(i, across)
            bottom = (rows - 1 - row) * (picture.tall + spare) + 0.5
            axes.append(add_axes(figure, 0.65 + column * (width + 0.7), bottom, width, picture.tall - 0.1))
    for panel, own in zip(panels, axes, strict=True):
        panel(own)
    if options.get("by") or picture.alike:
        _share_limits(axes, 1 if picture.alike else len(fit.problem.columns))
    return figure


def _share_limits(axes: Sequence[Axes], columns: int) -> None:
    """The same limits for the groups of subjects of each column."""
    for column in np.array_split(np.array(axes, object), columns):
        x, y = (np.array([getattr(ax, name)() for ax in column]) for name in ("get_xlim", "get_ylim"))
        for ax in column:
            ax.set_xlim(x.min(), x.max())
            ax.set_ylim(y.min(), y.max())


def _strata(fit: PopulationFit, by: str | None) -> list[tuple[str, NDArray[np.bool_]]]:
    """Names of groups of subjects and who belongs to them (E,): by label, or below and above a median."""
    experiments = fit.problem.data.experiments
    if by is None:
        return [("", np.ones(len(experiments), bool))]
    known = [name for name in experiments[0].covariates if all(name in e.covariates for e in experiments)]
    if by not in known:
        raise InputError(f"the data have no covariate '{by}'{nearest(by, known)}")
    values = [e.covariates[by] for e in experiments]
    if any(isinstance(value, str) for value in values) or len(set(values)) <= 3:
        labels = sorted({str(value) for value in values})
        return [(f", {by} {label}", np.array([str(value) == label for value in values])) for label in labels]
    numbers = np.array(values, float)
    middle = float(np.median(numbers))
    return [(f", {by} < {middle:g}", numbers < middle), (f", {by} ≥ {middle:g}", numbers >= middle)]


def spaghetti(fit: PopulationFit, by: str | None = None) -> list[Panel]:
    """The data of all subjects, a line each; a panel for each column and group of subjects."""

    def panel(ax: Axes, m: int, words: str, who: NDArray[np.bool_]) -> None:
        for e in (e for e, own in zip(fit.problem.data.experiments, who, strict=True) if own):
            seen = np.isfinite(e.y[:, m])
            ax.plot(e.t[seen], e.y[seen, m], "-", lw=0.7, color=PALETTE[0], alpha=0.45, marker=".", ms=3)
        set_title(ax, shorten(fit.problem.columns[m]) + words)
        set_label(ax.set_xlabel, "time")

    groups = _strata(fit, by)
    return [partial(panel, m=m, words=words, who=who) for m in range(len(fit.problem.columns)) for words, who in groups]


def individual_fits(fit: PopulationFit, subjects: Sequence[str] | None = None) -> list[Panel]:
    """The data of each subject with individual prediction, its 95 % band and the prediction for the population."""
    chosen = fit.subjects[:MOST_SUBJECTS] if subjects is None else tuple(map(str, subjects))
    for name in chosen:
        if name not in fit.subjects:
            raise InputError(f"there is no subject '{name}'{nearest(name, fit.subjects)}")

    def panel(ax: Axes, name: str) -> None:
        s, v, i = fit.structure, fit.estimate.v, fit.subjects.index(name)
        e = s.problem.data.experiments[i]
        doses = [dose.time for dose in e.doses]
        t = np.unique(np.concatenate([np.linspace(min(0.0, e.t[0]), e.t[-1], _CURVE), e.t, doses]))
        t = t[(t >= s.problem.condition(i).start) & (t <= e.t[-1])]
        low, middle, high = forecast_subject(fit.estimate, t, name, _DRAWS, fit.seed).band(noise=False)
        theta = s.individual(v, np.array([i]), s.means(v)[0][i : i + 1])
        typical = predict(s, v, e, t, theta, np.random.default_rng(0)).values[0]
        for m in range(len(s.problem.columns)):
            colour = PALETTE[m % len(PALETTE)]
            ax.fill_between(t, low[:, m], high[:, m], color=colour, alpha=0.2, lw=0)
            ax.plot(t, middle[:, m], color=colour, lw=1.3)
            ax.plot(t, typical[:, m], "--", color=STYLE["faint"], lw=0.9)
            ax.plot(e.t, e.y[:, m], "o", ms=3, color=STYLE["ink"])
        set_title(ax, shorten(name))

    return [partial(panel, name=name) for name in chosen]


def individual_parameters(fit: PopulationFit) -> list[Panel]:
    """The parameters of all subjects with 95 % bands, by size, and their median."""
    table = fit.individual

    def panel(ax: Axes, name: str, family: str) -> None:
        own = table.sort_values(name)
        rank = np.arange(len(own))
        ax.vlines(rank, own[f"{name}_low"], own[f"{name}_high"], color=STYLE["faint"], lw=1)
        ax.plot(rank, own[name], "o", ms=3, color=PALETTE[0])
        ax.axhline(float(own[name].median()), color=STYLE["ink"], lw=0.8, ls="--")
        if family == "lognormal":
            ax.set_yscale("log")
            for write in (ax.yaxis.set_major_formatter, ax.yaxis.set_minor_formatter):
                write(lambda value, _: f"{value:g}" if f"{value:e}"[0] in "1235" else "")
        few = len(own) <= _NAMED
        ax.set_xticks(rank if few else [], own.index if few else [])
        set_title(ax, shorten(name))
        set_label(ax.set_xlabel, "subjects by size")

    shown = [e for e in fit.structure.effects if e.name in table]
    return [partial(panel, name=e.name, family=e.family) for e in shown[:MOST_SUBJECTS]]


def observed_predicted(fit: PopulationFit) -> list[Panel]:
    """Observations against the predictions for the population and for each individual."""

    def panel(ax: Axes, which: str) -> None:
        predicted, observed = fit.residuals[which], fit.residuals["observed"]
        ax.plot(predicted, observed, "o", ms=3, color=PALETTE[0], alpha=0.6)
        ends = [min(predicted.min(), observed.min()), max(predicted.max(), observed.max())]
        ax.plot(ends, ends, "-", color=STYLE["ink"], lw=0.8)
        set_label(ax.set_xlabel, f"{which} prediction")
        set_label(ax.set_ylabel, "observed")

    return [partial(panel, which=which) for which in ("population", "individual")]


def standardised_residuals(fit: PopulationFit) -> list[Panel]:
    """Standardised residuals against time and prediction, their normal quantiles, and sizes of individual ones."""

    def scatter(ax: Axes, which: str, words: str) -> None:
        ax.plot(fit.residuals[which], fit.residuals["residual"], "o", ms=3, color=PALETTE[0], alpha=0.6)
        for height in (-1.96, 0.0, 1.96):
            ax.axhline(height, color=STYLE["ink"] if height == 0 else BAD, lw=0.8, ls="-" if height == 0 else "--")
        set_label(ax.set_xlabel, words)
        set_label(ax.set_ylabel, "standardised residual")

    def individual(ax: Axes) -> None:
        ax.plot(
            fit.residuals["individual"],
            fit.residuals["individual_residual"].abs(),
            "o",
            ms=3,
            color=PALETTE[0],
            alpha=0.6,
        )
        set_label(ax.set_xlabel, "individual prediction")
        set_label(ax.set_ylabel, "|individual residual|")

    def quantiles(ax: Axes) -> None:
        from scipy.special import ndtri

        z = np.sort(fit.residuals["residual"].to_numpy())
        ax.plot(ndtri((np.arange(len(z)) + 0.5) / len(z)), z, "o", ms=3, color=PALETTE[0], alpha=0.6)
        ax.plot([-3, 3], [-3, 3], "-", color=STYLE["ink"], lw=0.8)
        set_label(ax.set_xlabel, "normal quantile")
        set_label(ax.set_ylabel, "standardised residual")

    words = {"time": "time", "population": "population prediction"}
    return [*(partial(scatter, which=which, words=label) for which, label in words.items()), quantiles, individual]


def predictive_check(fit: PopulationFit, by: str | None = None) -> list[Panel]:
    """Percentiles of the data over 90 % bands of the same percentiles in simulated studies.

    Args:
        by: a covariate; each of its labels, or each half of its values, has a panel.
    """
    subjects = fit.estimate.engine.subjects
    simulated = simulated_observations(fit.estimate, REPLICATES, np.random.default_rng([fit.seed, 11]))[0]

    def panel(ax: Axes, m: int, words: str, who: NDArray[np.bool_]) -> None:
        kept = (subjects.column == m) & who[subjects.subject]
        t = subjects.t[kept]
        edges = edges_of_bins(t)
        own, draws = percentile_bands(subjects, simulated, kept, edges, SHARES)
        bins = np.clip(np.searchsorted(edges, t, side="right") - 1, 0, len(edges) - 2)
        middle = np.array([t[bins == b].mean() if (bins == b).any() else np.nan for b in range(len(edges) - 1)])
        seen = np.isfinite(middle)
        low, high = np.nanquantile(draws[:, seen], [0.05, 0.95], axis=0)
        for k, share in enumerate(SHARES):
            colour = GOOD if share == 0.5 else PALETTE[1]
            ax.fill_between(middle[seen], low[:, k], high[:, k], color=colour, alpha=0.25, lw=0)
            ax.plot(middle[seen], own[seen, k], "-" if share == 0.5 else "--", color=colour, lw=1.4)
        ax.plot(t, subjects.y[kept], "o", ms=2.5, color=STYLE["ink"], alpha=0.4)
        set_title(ax, shorten(fit.problem.columns[m]) + words)
        set_label(ax.set_xlabel, "time")

    groups = _strata(fit, by)
    return [partial(panel, m=m, words=words, who=who) for m in range(len(fit.problem.columns)) for words, who in groups]


def _varying(fit: PopulationFit) -> tuple[str, ...]:
    if not fit.structure.varying:
        raise InputError("no parameter varies between the subjects of this fit")
    return fit.structure.varying


def effects(fit: PopulationFit) -> list[Panel]:
    """Random effects drawn given the data beside their fitted distribution, and pairs of their conditional means."""
    s, eta, names = fit.structure, fit.eta, _varying(fit)
    sd = np.sqrt(np.diag(s.covariance(fit.estimate.v)))
    drawn = conditional_draws(fit.estimate, _EACH, fit.seed)[0] - s.means(fit.estimate.v)[0][:, None]

    def histogram(ax: Axes, k: int) -> None:
        x = np.linspace(-3.5 * sd[k], 3.5 * sd[k], _CURVE)
        ax.hist(drawn[:, :, s.active[k]].ravel(), bins=20, density=True, color=PALETTE[0], alpha=0.5)
        ax.plot(x, np.exp(-0.5 * (x / sd[k]) ** 2) / (sd[k] * np.sqrt(2 * np.pi)), color=STYLE["ink"], lw=1)
        set_title(ax, f"η of {shorten(names[k])}")

    def pair(ax: Axes, a: str, b: str) -> None:
        ax.plot(eta[a], eta[b], "o", ms=3.5, color=PALETTE[0], alpha=0.7)
        set_label(ax.set_xlabel, f"η of {shorten(a)}")
        set_label(ax.set_ylabel, f"η of {shorten(b)}")

    pairs = [(a, b) for j, b in enumerate(names) for a in names[:j]]
    return [*(partial(histogram, k=k) for k in range(len(names))), *(partial(pair, a=a, b=b) for a, b in pairs)]


def covariates(fit: PopulationFit) -> list[Panel]:
    """Random effects against every covariate of the data, numbers or labels."""
    experiments = fit.problem.data.experiments
    known = [n for n in experiments[0].covariates if all(n in e.covariates for e in experiments)]
    if not known:
        raise InputError("the data have no covariates; read them by covariates=[...]")

    def panel(ax: Axes, covariate: str, name: str) -> None:
        values = [e.covariates[covariate] for e in experiments]
        if any(isinstance(value, str) for value in values):
            labels = sorted({str(value) for value in values})
            x = np.array([labels.index(str(value)) for value in values], float)
            ax.set_xticks(range(len(labels)), labels)
            ax.set_xlim(-0.5, len(labels) - 0.5)
            for i in range(len(labels)):
                middle = float(np.median(fit.eta[name].to_numpy()[x == i]))
                ax.plot([i - 0.25, i + 0.25], [middle, middle], "-", color=PALETTE[1], lw=2)
        else:
            x = np.array(values, float)
            if len(np.unique(x)) > 2:
                ends = np.array([x.min(), x.max()])
                ax.plot(ends, np.polyval(np.polyfit(x, fit.eta[name], 1), ends), "-", color=PALETTE[1], lw=1.5)
        ax.plot(x, fit.eta[name], "o", ms=3.5, color=PALETTE[0], alpha=0.7)
        ax.axhline(0.0, color=STYLE["ink"], lw=0.8)
        set_label(ax.set_xlabel, shorten(covariate))
        set_label(ax.set_ylabel, f"η of {shorten(name)}")

    names = _varying(fit)
    return [partial(panel, covariate=covariate, name=name) for covariate in known for name in names]


PICTURES: dict[str, Picture] = {
    "spaghetti": Picture("Data", "All subjects, a line each.", spaghetti, 2, 2.8),
    "fits": Picture(
        "Individual fits",
        "Individual prediction with its 95 % band; dashed: prediction for the population.",
        individual_fits, 4, 1.5, alike=True,
    ),
    "individual": Picture(
        "Parameters of the subjects",
        "Individual estimates with their 95 % bands, from the smallest to the largest; dashed: their median.",
        individual_parameters, 3, 2.1,
    ),
    "observed": Picture(
        "Observed and predicted", "On the line, prediction and observation agree.", observed_predicted, 2, 3.0
    ),
    "residuals": Picture(
        "Standardised residuals",
        "Normal scores among simulated observations of the same subject; dashed: 95 % of them lie in between. "
        "Last panel: residuals about the individual prediction; a trend says that the noise depends on it otherwise.",
        standardised_residuals, 2, 2.4,
    ),
    "vpc": Picture(
        "Visual predictive check",
        "Lines: 10th, 50th and 90th percentile of the data. Bands: 90 % of simulated studies.",
        predictive_check, 2, 3.0,
    ),
    "effects": Picture(
        "Random effects",
        "Draws given each subject's data with the fitted normal distribution, and pairs of conditional means.",
        effects, 3, 2.1,
    ),
    "covariates": Picture(
        "Random effects and covariates",
        "A trend (line: least squares, or medians of labels) suggests that the covariate belongs in the model.",
        covariates, 3, 2.1,
    ),
}  # fmt: skip
