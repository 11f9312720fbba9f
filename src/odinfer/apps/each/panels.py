"""Compact SVG panels of many series, and dot plots of their estimates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from odinfer.apps.each.row import Estimate, Row
from odinfer.problem.problem import Problem

Array = NDArray[np.float64]

WIDTH, HEIGHT = 240, 120  # of a panel, in units of which a path has whole numbers
ROW = 1000, 150  # of a row of estimates
COLUMNS = 6  # drawn in a panel
_MAX_DOTS = 60  # per column of a panel
_MARGIN = 4
_SHARED_AXES_RATIO = 10.0  # the largest range of a column over the median one, up to which all panels share their axes


@dataclass(frozen=True)
class Panel:
    """The data and the curves of a series as paths of SVG, one of each per column."""

    dots: tuple[str, ...]
    lines: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Axes:
    """From (time) and to the ends of what panels show: start and stop (T,) of time, low and high of every column."""

    start: float
    stop: float
    low: Array
    high: Array

    def place(self, t: Array, x: Array, column: int) -> NDArray[np.int64]:
        """Points (N, 2) of a picture; far outside of it they are cut, so that numbers stay short."""
        low, high = self.low[column], self.high[column]
        across = (t - self.start) / max(self.stop - self.start, 1e-300)
        up = (x - low) / max(high - low, 1e-300)
        inner = np.array([WIDTH - 2 * _MARGIN, HEIGHT - 2 * _MARGIN])
        at = np.stack([across, 1.0 - np.clip(up, -1.0, 2.0)], -1) * inner + _MARGIN
        return np.asarray(at.round().astype(np.int64))


def axes_of(problems: Mapping[str, Problem]) -> tuple[dict[str, Axes], bool]:
    """The axes of every panel, and whether they are the same for all: not where series differ much in size."""
    own = {name: _axes(p) for name, p in problems.items()}
    low, high = np.stack([a.low for a in own.values()]), np.stack([a.high for a in own.values()])
    span = np.array([[a.stop - a.start] for a in own.values()])
    sizes = np.hstack([high - low, span])
    if (np.nanmax(sizes, 0) > _SHARED_AXES_RATIO * np.nanmedian(sizes, 0)).any():
        return own, False
    start, stop = min(a.start for a in own.values()), max(a.stop for a in own.values())
    same = Axes(start, stop, np.nanmin(low, 0), np.nanmax(high, 0))
    return dict.fromkeys(own, same), True


def _axes(problem: Problem) -> Axes:
    (e,) = problem.data.experiments
    y = e.y[:, :COLUMNS]
    seen = np.isfinite(y).any(0)
    low, high = (np.where(seen, f(np.where(np.isfinite(y), y, fill), 0), 0.0)
                 for f, fill in ((np.min, np.inf), (np.max, -np.inf)))  # fmt: skip
    return Axes(float(e.t[0]), float(e.t[-1]), low, high)


def panel(problem: Problem, row: Row, axes: Axes) -> Panel:
    """The picture of a series."""
    (e,) = problem.data.experiments
    dots, lines = [], []
    for m in range(min(e.y.shape[1], COLUMNS)):
        seen = np.flatnonzero(np.isfinite(e.y[:, m]))
        seen = seen[np.unique(np.linspace(0, len(seen) - 1, min(len(seen), _MAX_DOTS)).round().astype(int))]
        dots.append("".join(f"M{x} {y}h0" for x, y in axes.place(e.t[seen], e.y[seen, m], m).tolist()))
        inside = (row.t >= axes.start) & (row.t <= axes.stop)
        lines.append(_line(axes.place(row.t[inside], row.x[inside, m], m)) if row.x.size else "")
    return Panel(tuple(dots), tuple(lines))


def _line(points: NDArray[np.int64]) -> str:
    """A path through points, each relative to the one before it."""
    if len(points) < 2:
        return ""
    steps = "".join(f"l{x} {y}" for x, y in np.diff(points, axis=0).tolist())
    return f"M{points[0, 0]} {points[0, 1]}{steps}"


@dataclass(frozen=True)
class Estimates:
    """All estimates of one quantity in increasing order: intervals and dots as paths, of those marked apart.

    Attributes:
        bars, dots: of the rest.
        marked_bars, marked_dots: of those to be seen.
        middle: the height of the median.
        low, high: what the picture spans.
        log: whether its axis is logarithmic.
    """

    bars: str
    dots: str
    marked_bars: str
    marked_dots: str
    middle: int
    low: float
    high: float
    log: bool


def estimates(by_series: Mapping[str, Estimate], marked: Sequence[str]) -> Estimates | None:
    """The picture of a quantity over all series; None if no estimate is finite."""
    found = {name: value for name, value in by_series.items() if np.isfinite(value[0])}
    if not found:
        return None
    names = sorted(found, key=lambda name: found[name][0])
    table = np.array([found[name] for name in names])
    log = bool((table[:, 0] > 0).all() and table[-1, 0] > _SHARED_AXES_RATIO * table[0, 0])
    with np.errstate(all="ignore"):
        scaled = np.log(np.maximum(table, 0.0)) if log else table
    # Estimates and most intervals are inside; a few endless intervals must not flatten all.
    ends = scaled[:, 1:][np.isfinite(scaled[:, 1:])]
    usual = np.quantile(ends, [0.02, 0.98]) if len(ends) else scaled[[0, -1], 0]
    low, high = min(scaled[0, 0], usual[0]), max(scaled[-1, 0], usual[1])
    width, height = ROW
    across = ((np.arange(len(names)) + 0.5) / len(names) * width).round().astype(int).tolist()
    up = np.clip((scaled - low) / max(high - low, 1e-300), 0.0, 1.0)
    place = (_MARGIN + (1.0 - up) * (height - 2 * _MARGIN)).round()
    far = set(marked)
    paths = {key: [""] for key in ("bars", "dots", "marked_bars", "marked_dots")}
    for name, x, (at, bottom, top) in zip(names, across, place.tolist(), strict=True):
        which = "marked_" if name in far else ""
        if np.isfinite(bottom) and np.isfinite(top):
            paths[f"{which}bars"].append(f"M{x} {bottom:.0f}V{top:.0f}")
        paths[f"{which}dots"].append(f"M{x} {at:.0f}h0")
    joined = {key: "".join(parts) for key, parts in paths.items()}
    low, high = (float(np.exp(v) if log else v) for v in (low, high))
    return Estimates(**joined, middle=int(np.median(place[:, 0])), low=low, high=high, log=log)
