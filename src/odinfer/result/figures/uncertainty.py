"""Pictures of how sure a fit is: intervals over parameters, where starts ended, and pairs of parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from odinfer.style.drawing import BAD, CLOUD, GOOD, PALETTE, ROWS, STYLE, WIDTH, add_axes, blank, label, short
from odinfer.style.picture import Lone
from odinfer.style.text import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from odinfer.result.fit import Fit

Array = NDArray[np.float64]

MOST_PAIRS = 6  # parameters in a pair plot: more are too small to read
MOST_ROWS = 30
_WORDS = {"likelihood": "likelihood", "profile": "profile", "bootstrap": "bootstrap", "sample": "posterior"}


def intervals_picture(fit: Fit) -> Lone | None:
    """Estimates with their 95 % intervals relative to the estimate, a row per parameter; None if there are none."""
    kinds = fit.intervals_by_kind()
    names = [n for n in fit.parameter_names if any(n in found for found in kinds.values())][:MOST_ROWS]
    names = [n for n in names if np.isfinite(fit.theta[n])]
    if not names:
        return None
    step = 0.16 * len(kinds) + 0.16
    left, tall = 0.5 + 0.075 * max(len(short(n, 24)) for n in names) + 0.55, step * len(names) + 0.1
    figure = blank(tall + 0.85, ROWS)
    ax = add_axes(figure, left, 0.5, ROWS - left - 0.3, tall)
    rows = np.arange(len(names))[::-1] * step
    sizes = np.array([abs(fit.theta[n]) or 1.0 for n in names])
    spans = [(np.array(found[n]) - fit.theta[n]) / s for found in kinds.values()
             for n, s in zip(names, sizes, strict=True) if n in found]  # fmt: skip
    finite = np.abs([v for pair in spans for v in pair if np.isfinite(v)])
    # Wide ones may run out of the picture rather than flatten the others.
    reach = min(1.15 * max(finite, default=1.0), 6.0 * (float(np.median(finite)) if len(finite) else 1.0), 3.0) or 1.0
    for i, (kind, found) in enumerate(kinds.items()):
        y = rows - (i - 0.5 * (len(kinds) - 1)) * 0.16
        for row, name, size in zip(y, names, sizes, strict=True):
            if name not in found:
                continue
            low, high = ((v - fit.theta[name]) / size for v in found[name])
            ax.plot(np.clip([low, high], -reach, reach), [row, row], color=PALETTE[i], lw=2.4, solid_capstyle="butt")
            for end, marker in ((low, "<"), (high, ">")):
                if abs(end) > reach:
                    ax.plot(np.sign(end) * reach * 0.99, row, marker, color=PALETTE[i], ms=5)
        ax.plot([], [], color=PALETTE[i], lw=2.4, label=f"{_WORDS[kind]} interval, 95 %")
    ax.plot(np.zeros(len(names)), rows, "o", color=STYLE["ink"], ms=3.5, zorder=4)
    ax.set(xlim=(-reach, reach), ylim=(rows.min() - 0.6 * step, rows.max() + 0.6 * step))
    words = [f"{short(n, 24)} = {number(fit.theta[n], 3)}" for n in names]
    ax.set_yticks(rows, words, fontsize=STYLE["text"], parse_math=False)
    ax.tick_params(axis="y", length=0)
    ax.xaxis.set_major_formatter(lambda v, _: f"{100 * v:+.3g} %".replace("-", "\N{MINUS SIGN}") if v else "estimate")
    label(ax.set_xlabel, "relative to the estimate; arrows go on")
    figure.legend(*ax.get_legend_handles_labels(), loc="upper left", ncols=2, frameon=False, fontsize=STYLE["small"])
    worst = max(names, key=lambda n: max((b - a) / (abs(fit.theta[n]) or 1.0) for f in kinds.values() if n in f
                                         for a, b in [f[n]]))  # fmt: skip
    return Lone(figure, f"95 % intervals of {len(names)} parameters relative to their estimates, widest for {worst}")


def starts_picture(fit: Fit) -> Lone | None:
    """What the starts of a search led to, best first; None if they are not known.

    By how much less likely it is, or in ODIN's search by how much worse it matches slopes.
    """
    d = fit.details
    what = "log-likelihood lost" if "start_objectives" in d else "mismatch of slopes gained"
    found = d.get("start_objectives", d.get("start_mismatches", ()))
    ends = np.sort([end for end in found if np.isfinite(end)])
    if len(ends) < 2:
        return None
    worse = ends - ends[0]
    figure = blank(2.3, ROWS)
    ax = add_axes(figure, 0.72, 0.5, ROWS - 1.0, 1.55)
    height = np.log10(1.0 + worse)
    agree = np.arange(len(ends)) < fit.details.get("starts_agreeing", 0)
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
    label(ax.set_xlabel, "starts, the best first" + (f"; {lost} more led nowhere" if lost > 0 else ""))
    label(ax.set_ylabel, what)
    return Lone(figure, f"{len(ends)} starts, the best first: {int(agree.sum())} agree with the best")


def pairs_picture(fit: Fit) -> Lone | None:
    """Pairs of parameters: draws of a posterior or bootstrap, else the ellipses of the covariance; None without."""
    names, draws = _cloud(fit)
    if len(names) < 2:
        return None
    n = len(names)
    side = min((WIDTH - 0.8) / n, 2.3)  # with numbers at the edges only, since panels of a row and a column share them
    panel = side - 0.14
    figure = blank(n * side + 0.65)
    for i in range(n):
        for j in range(i + 1):
            ax = add_axes(figure, j * side + 0.7, (n - 1 - i) * side + 0.55, panel, panel)
            _pair(ax, draws, fit, names, i, j)
            ax.locator_params(axis="both", nbins=3)
            ax.tick_params(labelsize=7.5, labelbottom=i == n - 1, labelleft=j == 0 < i)
            ax.tick_params(axis="x", labelrotation=30)
            ax.xaxis.set_label_coords(0.5, -0.4 / panel)
            ax.yaxis.set_label_coords(-0.52 / panel, 0.5)
            if i == n - 1:
                label(ax.set_xlabel, short(names[j], 10))
            if j == 0 and i:
                label(ax.set_ylabel, short(names[i], 10))
    return Lone(figure, f"Pairs of {', '.join(names)}: {_closest(names, draws)}")


def _closest(names: list[str], draws: Array) -> str:
    """Which two parameters go together most, in words."""
    with np.errstate(all="ignore"):
        r = np.asarray(np.nan_to_num(np.corrcoef(draws.T)))
    i, j = np.unravel_index(np.abs(np.triu(r, 1)).argmax(), r.shape)
    return f"{names[int(i)]} and {names[int(j)]} are correlated most, {number(float(r[i, j]), 2)}"


def _cloud(fit: Fit) -> tuple[list[str], Array]:
    """Names and points (n, F) of the draws to show; points of the normal approximation if there are no draws."""
    draws: Mapping[str, Any] = fit.draws or (fit.bootstrapped.theta if fit.bootstrapped else {})
    if draws and np.size(next(iter(draws.values()))):
        names = list(draws)[:MOST_PAIRS]
        points = np.stack([np.ravel(draws[name]) for name in names], -1)
        return names, points[np.linspace(0, len(points) - 1, min(len(points), 1500)).round().astype(int)]
    u = fit.uncertainty
    if u is None or not np.isfinite(u.covariance).all():
        return [], np.empty((0, 0))
    names = list(u.names)[:MOST_PAIRS]
    centre = np.array([np.log(fit.theta[n]) if n in u.log else fit.theta[n] for n in names])
    w, V = np.linalg.eigh(u.covariance[: len(names), : len(names)])
    z = np.random.default_rng(0).normal(size=(800, len(names)))
    points = centre + (z * np.sqrt(np.maximum(w, 0.0))) @ V.T
    return names, np.where([n in u.log for n in names], np.exp(np.minimum(points, 700.0)), points)


def _pair(ax: Axes, draws: Array, fit: Fit, names: list[str], i: int, j: int) -> None:
    limits = [np.quantile(draws[:, k], [0.002, 0.998]) for k in (j, i)]
    if not all(np.isfinite(v).all() and v[0] < v[1] for v in limits):
        return
    if i == j:
        ax.stairs(*np.histogram(draws[:, i], 30, range=tuple(limits[0])), fill=True, color=STYLE["line"])
        ax.axvline(fit.theta[names[i]], color=GOOD, lw=1.2)
        ax.set_yticks([])
        ax.set_xlim(*limits[0])
        return
    ax.plot(draws[:, j], draws[:, i], ".", color=CLOUD, ms=2.0, alpha=0.5, mew=0, rasterized=True)
    ax.plot(fit.theta[names[j]], fit.theta[names[i]], "o", color=BAD, ms=3.5)
    ax.set(xlim=limits[0], ylim=limits[1])
