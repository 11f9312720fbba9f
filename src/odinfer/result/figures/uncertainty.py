"""Plot intervals of parameters, objectives of start points, and pairs of parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from odinfer.style.drawing import (
    BAD,
    CLOUD,
    GOOD,
    PALETTE,
    ROWS,
    STYLE,
    WIDTH,
    add_axes,
    set_label,
    shorten,
)
from odinfer.style.picture import SingleFigure
from odinfer.style.text import format_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from odinfer.result.fit import FitResult

Array = NDArray[np.float64]

MOST_PAIRS = 6  # parameters in a pair plot: more are too small to read
_MAX_DOTS = 1500  # draws in a pair plot
_SHOWN_QUANTILES = (0.002, 0.998)  # of draws between which axes of a pair plot reach
_SHOWN_SD = 2.9  # standard deviations, the same for a normal distribution
_CONTOURS = ((2.448, 0.25), (1.177, 0.35))  # radii of ellipses that hold 95 % and 50 %, and their opacity
_MAX_EXPONENT = 700.0  # of e, to stay a number
MOST_ROWS = 30
_KIND_NAMES = {"likelihood": "likelihood", "profile": "profile", "bootstrap": "bootstrap", "sample": "posterior"}


def intervals_picture(fit: FitResult) -> SingleFigure | None:
    """Estimates with their 95 % intervals relative to the estimate, a row per parameter; None if there are none."""
    kinds = fit.intervals_by_kind()
    names = [n for n in fit.parameter_names if any(n in found for found in kinds.values())][:MOST_ROWS]
    names = [n for n in names if np.isfinite(fit.theta[n])]
    if not names:
        return None
    step = 0.16 * len(kinds) + 0.16
    left, tall = 0.5 + 0.075 * max(len(shorten(n, 24)) for n in names) + 0.55, step * len(names) + 0.1

    def draw(figure: Any) -> None:
        ax = add_axes(figure, left, 0.5, ROWS - left - 0.3, tall)
        rows = np.arange(len(names))[::-1] * step
        sizes = np.array([abs(fit.theta[n]) or 1.0 for n in names])
        spans = [(np.array(found[n]) - fit.theta[n]) / s for found in kinds.values()
                 for n, s in zip(names, sizes, strict=True) if n in found]  # fmt: skip
        finite = np.abs([v for pair in spans for v in pair if np.isfinite(v)])
        # Wide ones may run out of the picture rather than flatten the others.
        reach = (
            min(1.15 * max(finite, default=1.0), 6.0 * (float(np.median(finite)) if len(finite) else 1.0), 3.0) or 1.0
        )
        for i, (kind, found) in enumerate(kinds.items()):
            y = rows - (i - 0.5 * (len(kinds) - 1)) * 0.16
            for row, name, size in zip(y, names, sizes, strict=True):
                if name not in found:
                    continue
                low, high = ((v - fit.theta[name]) / size for v in found[name])
                ax.plot(
                    np.clip([low, high], -reach, reach), [row, row], color=PALETTE[i], lw=2.4, solid_capstyle="butt"
                )
                for end, marker in ((low, "<"), (high, ">")):
                    if abs(end) > reach:
                        ax.plot(np.sign(end) * reach * 0.99, row, marker, color=PALETTE[i], ms=5)
            ax.plot([], [], color=PALETTE[i], lw=2.4, label=f"{_KIND_NAMES[kind]} interval, 95 %")
        ax.plot(np.zeros(len(names)), rows, "o", color=STYLE["ink"], ms=3.5, zorder=4)
        ax.set(xlim=(-reach, reach), ylim=(rows.min() - 0.6 * step, rows.max() + 0.6 * step))
        words = [f"{shorten(n, 24)} = {format_number(fit.theta[n], 3)}" for n in names]
        ax.set_yticks(rows, words, fontsize=STYLE["text"], parse_math=False)
        ax.tick_params(axis="y", length=0)
        ax.xaxis.set_major_formatter(
            lambda v, _: f"{100 * v:+.3g} %".replace("-", "\N{MINUS SIGN}") if v else "estimate"
        )
        set_label(ax.set_xlabel, "relative to the estimate; arrows: the interval extends further")
        figure.legend(
            *ax.get_legend_handles_labels(), loc="upper left", ncols=2, frameon=False, fontsize=STYLE["small"]
        )

    worst = max(names, key=lambda n: max((b - a) / (abs(fit.theta[n]) or 1.0) for f in kinds.values() if n in f
                                         for a, b in [f[n]]))  # fmt: skip
    return SingleFigure(
        tall + 0.85,
        ROWS,
        draw,
        f"95 % intervals of {len(names)} parameters relative to their estimates, widest for {worst}",
    )


def starts_picture(fit: FitResult) -> SingleFigure | None:
    """What the starts of a search led to, best first; None if they are not known.

    By how much less likely it is, or in ODIN's search by how much worse it matches slopes.
    """
    d = fit.details
    kinds = {"start_objectives": "log-likelihood lost", "start_mismatches": "mismatch of slopes gained"}
    found = {key: np.sort([end for end in d.get(key, ()) if np.isfinite(end)]) for key in kinds}
    key = next((key for key, ends in found.items() if len(ends) > 1), None)
    if key is None:
        return None
    ends, what = found[key], kinds[key]
    worse = ends - ends[0]
    agree = np.arange(len(ends)) < fit.details.get("starts_agreeing", 0)

    def draw(figure: Any) -> None:
        ax = add_axes(figure, 0.72, 0.5, ROWS - 1.0, 1.55)
        height = np.log10(1.0 + worse)
        rank = np.arange(1, len(ends) + 1)
        ax.plot(rank, height, color=STYLE["line"], lw=1.0, zorder=2)
        for mine, colour in ((agree, GOOD), (~agree, STYLE["faint"])):
            ax.plot(rank[mine], height[mine], "o", color=colour, ms=5, zorder=3)
        top = max(int(np.ceil(height[-1])), 1)
        powers = range(0, top + 1, max(1, top // 5))
        ticks = [0.0, *(10.0**k for k in powers if k)]
        ax.set_yticks(np.log10(1.0 + np.array(ticks)), [f"{tick:g}" for tick in ticks])
        ax.set(xlim=(0.5, len(ends) + 0.5), ylim=(-0.06 * top, 1.06 * top))
        ax.locator_params(axis="x", integer=True)
        lost = fit.details.get("starts", len(ends)) - len(ends)
        set_label(ax.set_xlabel, "start points, the best first" + (f"; {lost} more failed" if lost > 0 else ""))
        set_label(ax.set_ylabel, what)

    return SingleFigure(2.3, ROWS, draw, f"{len(ends)} starts, the best first: {int(agree.sum())} agree with the best")


@dataclass(frozen=True, eq=False)
class Pairs:
    """What a pair plot shows of the parameters (F): draws (n, F), or the normal approximation if there are none.

    Attributes:
        centre, covariance: (F,) and (F, F) of the approximation, of log θ where `log` (F,).
    """

    names: list[str]
    draws: Array
    centre: Array
    covariance: Array
    log: NDArray[np.bool_]

    @staticmethod
    def of(fit: FitResult) -> Pairs:
        """The draws of a posterior or bootstrap, thinned, else the covariance; without names if there is neither."""
        draws: Mapping[str, Any] = fit.draws or (fit.bootstrapped.theta if fit.bootstrapped else {})
        if draws and np.size(next(iter(draws.values()))):
            names = list(draws)[:MOST_PAIRS]
            points = np.stack([np.ravel(draws[name]) for name in names], -1)
            points = points[np.linspace(0, len(points) - 1, min(len(points), _MAX_DOTS)).round().astype(int)]
            with np.errstate(all="ignore"):
                return Pairs(names, points, points.mean(0), np.atleast_2d(np.cov(points.T)), np.zeros(len(names), bool))
        u = fit.uncertainty
        if u is None or not np.isfinite(u.covariance).all():
            return Pairs([], np.empty((0, 0)), np.empty(0), np.empty((0, 0)), np.empty(0, bool))
        names = list(u.names)[:MOST_PAIRS]
        log = np.array([n in u.log for n in names])
        theta = np.array([fit.theta[n] for n in names])
        centre = np.where(log, np.log(np.where(log, theta, 1.0)), theta)
        return Pairs(names, np.empty((0, len(names))), centre, u.covariance[: len(names), : len(names)], log)

    def in_units(self, k: int, values: Array) -> Array:
        return np.exp(np.minimum(values, _MAX_EXPONENT)) if self.log[k] else values

    def limits(self, k: int) -> Array:
        """Between which values nearly all of a parameter's distribution lies (2,)."""
        if len(self.draws):
            return np.quantile(self.draws[:, k], _SHOWN_QUANTILES)
        return self.in_units(k, self.centre[k] + _SHOWN_SD * np.sqrt(self.covariance[k, k]) * np.array([-1.0, 1.0]))

    def ellipse(self, j: int, i: int, radius: float) -> tuple[Array, Array]:
        """The contour of parameters j and i of the approximation, `radius` standard deviations away (65, 65)."""
        w, V = np.linalg.eigh(self.covariance[np.ix_([j, i], [j, i])])
        angle = np.linspace(0.0, 2.0 * np.pi, 65)
        x, y = (V * np.sqrt(np.maximum(w, 0.0))) @ np.stack([np.cos(angle), np.sin(angle)]) * radius
        return self.in_units(j, self.centre[j] + x), self.in_units(i, self.centre[i] + y)


def pairs_picture(fit: FitResult) -> SingleFigure | None:
    """Pairs of parameters: draws of a posterior or bootstrap, else the ellipses of the covariance; None without."""
    pairs = Pairs.of(fit)
    names, n = pairs.names, len(pairs.names)
    if n < 2:
        return None
    side = min((WIDTH - 0.8) / n, 2.3)  # with numbers at the edges only, since panels of a row and a column share them
    panel = side - 0.14

    def draw(figure: Any) -> None:
        for i in range(n):
            for j in range(i + 1):
                ax = add_axes(figure, j * side + 0.7, (n - 1 - i) * side + 0.55, panel, panel)
                _pair(ax, pairs, fit, i, j)
                ax.locator_params(axis="both", nbins=3)
                ax.tick_params(labelsize=7.5, labelbottom=i == n - 1, labelleft=j == 0 < i)
                ax.tick_params(axis="x", labelrotation=30)
                ax.xaxis.set_label_coords(0.5, -0.4 / panel)
                ax.yaxis.set_label_coords(-0.52 / panel, 0.5)
                if i == n - 1:
                    set_label(ax.set_xlabel, shorten(names[j], 10))
                if j == 0 and i:
                    set_label(ax.set_ylabel, shorten(names[i], 10))

    return SingleFigure(n * side + 0.65, WIDTH, draw, f"Pairs of {', '.join(names)}: {_strongest_correlation(pairs)}")


def _strongest_correlation(pairs: Pairs) -> str:
    """Which two parameters are correlated most, in words."""
    sd = np.sqrt(np.diag(pairs.covariance))
    with np.errstate(all="ignore"):
        r = np.asarray(np.nan_to_num(pairs.covariance / np.outer(sd, sd)))
    i, j = np.unravel_index(np.abs(np.triu(r, 1)).argmax(), r.shape)
    return f"{pairs.names[int(i)]} and {pairs.names[int(j)]} are correlated most, {format_number(float(r[i, j]), 2)}"


def _pair(ax: Axes, pairs: Pairs, fit: FitResult, i: int, j: int) -> None:
    limits = [pairs.limits(k) for k in (j, i)]
    if not all(np.isfinite(v).all() and v[0] < v[1] for v in limits):
        return
    own = fit.theta[pairs.names[i]]
    if i == j:
        if len(pairs.draws):
            ax.stairs(*np.histogram(pairs.draws[:, i], 30, range=tuple(limits[0])), fill=True, color=STYLE["line"])
        else:
            z = np.linspace(-_SHOWN_SD, _SHOWN_SD, 41)
            x = pairs.in_units(i, pairs.centre[i] + z * np.sqrt(pairs.covariance[i, i]))
            # The density of a log-normal estimate in its units has 1/θ in it.
            ax.fill_between(x, np.exp(-0.5 * z**2) / (x if pairs.log[i] else 1.0), color=STYLE["line"], lw=0)
            ax.set_ylim(bottom=0.0)
        ax.axvline(own, color=GOOD, lw=1.2)
        ax.set_yticks([])
        ax.set_xlim(*limits[0])
        return
    if len(pairs.draws):
        x, y = pairs.draws[:, j], pairs.draws[:, i]
        ax.plot(x, y, ".", color=CLOUD, ms=2.0, alpha=0.5, mew=0, rasterized=True)
    else:
        for radius, alpha in _CONTOURS:
            ax.fill(*pairs.ellipse(j, i, radius), color=CLOUD, alpha=alpha, lw=0)
    ax.plot(fit.theta[pairs.names[j]], own, "o", color=BAD, ms=3.5)
    ax.set(xlim=limits[0], ylim=limits[1])
