"""Colours, dots, bands and the choice of states that figures share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from odinfer.diagnostics.equation_test import FALSE_ALARMS
from odinfer.diagnostics.model_test import ModelTest
from odinfer.diagnostics.verdicts import CONTRADICTS, NOT_JUDGED
from odinfer.problem.condition import SETTLED
from odinfer.style.drawing import BAD, GOOD, PALETTE, STYLE, UNKNOWN, shorten, thin_points
from odinfer.style.text import format_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from odinfer.result.fit import FitResult
    from odinfer.result.stages import ExperimentFit

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

MAX_PANELS = 24  # panels in one picture: more are too small to read
_VISIBLE = 2e-4  # of the height of a picture: the least that is seen
_MAX_LEGEND = 6  # experiments in a legend


def states_to_show(fit: FitResult, most: int = MAX_PANELS) -> list[int]:
    """The states to show, in their order; where there are too many, those that contradict the data come first."""
    every = list(range(len(fit.state_names)))
    wrong_first = sorted(every, key=lambda k: fit.verdicts.get(fit.state_names[k]) != CONTRADICTS)
    return every if len(every) <= most else wrong_first[:most]


def omission_note(fit: FitResult) -> str:
    """What to note where not all states are shown."""
    return f"{MAX_PANELS} of {len(fit.state_names)} states shown" if len(fit.state_names) > MAX_PANELS else ""


def colours(fit: FitResult) -> list[str]:
    """One per experiment."""
    n = len(fit.experiments)
    if n <= len(PALETTE):
        return list(PALETTE[:n])
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return [to_hex(c) for c in colormaps["viridis"](np.linspace(0.15, 0.92, n))]


def groups(fit: FitResult) -> tuple[tuple[str, str], ...]:
    """Experiments and their colours for a legend, if there are several."""
    if len(fit.experiments) == 1:
        return ()
    words = [shorten(name, 14) for name in fit.experiments]
    words[_MAX_LEGEND - 1 :] = (
        [f"{words[_MAX_LEGEND - 1]}  and {len(words) - _MAX_LEGEND} more"]
        if len(words) > _MAX_LEGEND
        else words[_MAX_LEGEND - 1 :]
    )
    return tuple(zip(words, colours(fit), strict=False))


def neutral_colour(fit: FitResult) -> str:
    """The colour of what belongs to no experiment."""
    return PALETTE[0] if len(fit.experiments) == 1 else STYLE["ink"]


def verdict_colour(fit: FitResult, name: str) -> str:
    return {None: UNKNOWN, NOT_JUDGED: UNKNOWN, CONTRADICTS: BAD}.get(fit.verdicts.get(name), GOOD)


def contradiction_note(fit: FitResult) -> str:
    """What speaks against the model as a whole, in a few words; empty if nothing does."""
    test = ModelTest.of(fit.details.get("model_test"))
    return f"the model contradicts the data (p = {format_number(test.p, 2)})" if test.contradicts(FALSE_ALARMS) else ""


def dots(ax: Axes, t: Array, y: Array, colour: Any) -> None:
    size, some = np.clip(40 / np.sqrt(max(len(t), 1)), 1.8, 4.6), thin_points(y)
    edge = 0.5 if len(some) == len(t) else 0.0
    ax.plot(t[some], y[some], "o", color=colour, mec="white", mew=edge, ms=size, zorder=4)


def span(*arrays: Array) -> tuple[float, float]:
    """The least and the greatest finite value; NaN without any."""
    values = np.concatenate([np.empty(0), *(a[np.isfinite(a)] for a in arrays)])
    return (float(values.min()), float(values.max())) if len(values) else (np.nan, np.nan)


def displayed_points(e: ExperimentFit) -> Mask:
    """Which points of the curve are drawn: not those of a long time before the data in which the system settles."""
    settles = e.t[0] - e.curve.t[0] > SETTLED * (np.ptp(e.t) or 1.0)
    return np.asarray(e.curve.t >= (e.t[0] if settles else -np.inf))


def axis_label(fit: FitResult, name: str) -> str:
    """The name of a panel, or of the time, with the header that the column has in the data instead of its own name."""
    for own, header in (fit.details.get("labels") or {}).items():
        if name == own or name.startswith((f"{own}, ", f"{own} (")):  # "x", "x, experiment" or "x (hidden)"
            return shorten(f"{header}{name.removeprefix(own)}")
    return shorten(name)


def set_time_axis(fit: FitResult, ax: Axes) -> None:
    """All panels of a fit have the same axis of time."""
    first, last = span(*(t for e in fit.experiments.values() for t in (e.t, e.curve.t[displayed_points(e)])))
    margin = 0.02 * (last - first) or 0.5
    ax.set_xlim(first - margin, last + margin)


def axis_limits(lines: list[Array], wide: list[Array]) -> tuple[float, float]:
    """Limits that hold all lines, and of what is wide as much as does not flatten them; NaN if there are none."""
    low, high = span(*lines)
    wide_low, wide_high = span(*wide)
    size = high - low or abs(high) or 1.0
    low = np.fmax(np.fmin(low, wide_low), low - 0.6 * size) - 0.06 * size
    high = np.fmin(np.fmax(high, wide_high), high + 0.6 * size) + 0.06 * size
    return float(low), float(high)


def set_y_limits(ax: Axes, ends: tuple[float, float]) -> None:
    """A vertical axis with these limits, if they are numbers and it is not logarithmic."""
    if np.isfinite(ends[1] - ends[0]) and ax.get_yscale() == "linear":
        ax.set_ylim(*ends)


def simplify_polyline(t: Array, *columns: Array) -> NDArray[np.intp]:
    """Return indices of points whose polyline follows all columns (D,) as far as visible (Douglas–Peucker 1973)."""
    values = np.stack([np.where(np.isfinite(c), c, 0.0) for c in columns], -1)
    if len(t) < 3 or not np.isfinite(values).all():
        return np.arange(len(t))
    size = np.ptp(values, axis=0)
    values = values / np.where(size > 0, size, 1.0)
    kept, open_ends = {0, len(t) - 1}, [(0, len(t) - 1)]
    while open_ends:  # a point is needed where the straight line is farthest off
        a, b = open_ends.pop()
        share = (t[a + 1 : b] - t[a]) / (t[b] - t[a])
        off = np.abs(values[a + 1 : b] - (1 - share)[:, None] * values[a] - share[:, None] * values[b]).max(1)
        if len(off) and off.max() > _VISIBLE:
            middle = a + 1 + int(off.argmax())
            kept.add(middle)
            open_ends += [(a, middle), (middle, b)]
    return np.array(sorted(kept))


def largest_magnitude(values: Array) -> float:
    """The largest size of any finite value; NaN without any."""
    values = np.abs(values[np.isfinite(values)])
    return float(values.max()) if len(values) else np.nan
