"""Draw SVG with the part of matplotlib's axes interface that figures use, without matplotlib.

A picture is drawn by functions that put lines, bands and words on axes. Given these axes they make a page, given
matplotlib's a file for print. Lengths are points, 72 to an inch; y of figures goes upwards as matplotlib's does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odinfer.style.drawing import PALETTE, STYLE, css_colour, format_tick, theme_css

Array = NDArray[np.float64]

_POINTS = 72.0  # in an inch
_MARGIN = 0.05  # of the range of data around them, where no limits are set
_TICKS = 6  # steps of an axis at most
_WIDE = 0.55  # of a letter, relative to its size
_FAR = 1e4  # points beyond which nothing is drawn: some viewers cannot
_FONT = "'DejaVu Sans','Verdana',sans-serif"
_DASHES = {"-": (), "--": (3.7, 1.6), ":": (1.0, 1.65)}  # in widths of the line
_MARKS = {"v": (0.5, -0.5, -0.5, -0.5, 0.0, 0.5), "^": (-0.5, 0.5, 0.5, 0.5, 0.0, -0.5),
          "<": (0.5, -0.5, 0.5, 0.5, -0.5, 0.0), ">": (-0.5, -0.5, -0.5, 0.5, 0.5, 0.0),
          "s": (-0.5, -0.5, 0.5, -0.5, 0.5, 0.5, -0.5, 0.5)}  # fmt: skip


class SvgFigure:
    """A sheet of so many inches."""

    def __init__(self, height: float, width: float) -> None:
        self.size, self.axes, self._words = (width, height), [], []  # type: tuple[float, float], list[SvgAxes], list[str]

    @property
    def figure(self) -> SvgFigure:
        return self

    def get_size_inches(self) -> tuple[float, float]:
        return self.size

    def add_axes(self, box: Sequence[float], sharey: SvgAxes | None = None) -> SvgAxes:
        """Axes in a box (left, bottom, width, height), as shares of the sheet."""
        self.axes.append(SvgAxes(self, Box(*box), sharey))
        return self.axes[-1]

    def legend(self, handles: Sequence[_Handle], labels: Sequence[str], **more: Any) -> None:
        """Names beside pieces of their lines, in one row from the upper left corner."""
        x, size = 6.0, more.get("fontsize", STYLE["small"])
        for handle, words in zip(handles, labels, strict=True):
            self._words.append(f'<path d="M{x:.4g} 9h14" style="stroke:{css_colour(handle.colour)};stroke-width:2.4"/>')
            self._words.append(_text(x + 19, 9 + 0.35 * size, words, size, STYLE["ink"]))
            x += 34 + _WIDE * size * len(words)

    def svg(self, style: str = "") -> bytes:
        """The drawing; it follows the reader's choice of light or dark, or has another style sheet."""
        w, h = (v * _POINTS for v in self.size)
        body = "".join(part for i, ax in enumerate(self.axes) for part in ax.parts(w, h, f"p{i}")) + "".join(
            self._words
        )
        css = f"text{{font-family:{_FONT}}}path{{fill:none}}{style or theme_css()}"
        size = f'width="{w:.5g}pt" height="{h:.5g}pt" viewBox="0 0 {w:.5g} {h:.5g}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>'
        return f"{head}<style>{css}</style>{body}</svg>".encode()


@dataclass(frozen=True)
class Box:
    """A part of a sheet, as shares of its width and height."""

    x0: float
    y0: float
    width: float
    height: float

    @property
    def x1(self) -> float:
        return self.x0 + self.width

    @property
    def y1(self) -> float:
        return self.y0 + self.height


@dataclass(frozen=True)
class _Handle:
    colour: str
    label: str


@dataclass
class Axis:
    """One direction: its limits, scale, ticks and name."""

    limits: tuple[float, float] | None = None
    log: bool = False
    ticks: tuple[Array, list[str]] | None = None
    size: float = STYLE["small"]
    shown: bool = True
    most: int = _TICKS
    integer: bool = False
    turned: float = 0.0  # degrees of the numbers
    label: tuple[str, float, str] | None = None
    low: float = math.inf
    high: float = -math.inf
    format: Callable[[float, Any], str] | None = None

    def set_major_formatter(self, words: Callable[[float, Any], str]) -> None:
        self.format = words

    def set_label_coords(self, x: float, y: float) -> None:
        """Labels stand below and left of the numbers in any case."""

    def include(self, values: Any) -> None:
        """Let the range of data reach to these."""
        v = np.asarray(values, float)
        v = v[np.isfinite(v) & ((v > 0) | (not self.log))]
        if v.size:
            self.low, self.high = min(self.low, float(v.min())), max(self.high, float(v.max()))

    @property
    def ends(self) -> tuple[float, float]:
        if self.limits is not None:
            return self.limits
        if not self.low <= self.high:
            return (0.1, 1.0) if self.log else (0.0, 1.0)
        if self.log:
            room = (self.high / self.low) ** _MARGIN
            return self.low / max(room, 1.05), self.high * max(room, 1.05)
        room = _MARGIN * (self.high - self.low) or 0.5 * abs(self.low) or 0.5
        return self.low - room, self.high + room

    def place(self, values: Any) -> Array:
        """Shares of the length of the axis."""
        low, high = self.ends
        v = np.asarray(values, float)
        with np.errstate(all="ignore"):
            if self.log:
                return np.asarray(np.log(v / low) / np.log(high / low))
            return np.asarray((v - low) / ((high - low) or 1.0))

    def marks(self) -> tuple[Array, list[str]]:
        """Ticks and their words."""
        low, high = self.ends
        if self.ticks is not None:
            at, words = self.ticks
            inside = (at >= min(low, high)) & (at <= max(low, high))
            return at[inside], [word for word, i in zip(words, inside, strict=True) if i]
        if self.log:
            powers = np.arange(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
            at = np.asarray(10.0 ** powers[:: max(1, len(powers) // self.most)], float)
        else:
            at = round_numbers(low, high, self.most, self.integer)
        return at, [self.format(v, None) if self.format else format_tick(v, low, high) for v in at]


def round_numbers(low: float, high: float, most: int, integer: bool = False) -> Array:
    """Multiples of 1, 2, 2.5 or 5 times a power of ten between two ends, at most about so many."""
    span = abs(high - low)
    if not span or not math.isfinite(span):
        return np.array([low])
    power = 10.0 ** math.floor(math.log10(span / most))
    step = next(n * power for n in (1, 2, 2.5, 5, 10) if n * power * most >= span * (1 - 1e-9))
    step = max(1.0, round(step)) if integer else step
    first, last = sorted((low, high))
    return np.asarray(np.arange(math.ceil(first / step - 1e-9), math.floor(last / step + 1e-9) + 1) * step, float)


@dataclass(eq=False)
class SvgAxes:
    """What pictures are drawn on."""

    figure: SvgFigure
    box: Box
    sharey: SvgAxes | None = None
    xaxis: Axis = field(default_factory=Axis)
    yaxis: Axis = field(default_factory=Axis)

    def __post_init__(self) -> None:
        if self.sharey is not None:
            self.yaxis = self.sharey.yaxis
        self._drawn: list[tuple[float, Callable[[float, float, float, float], str]]] = []
        self._title: tuple[str, float, str] | None = None
        self._framed = True
        self._handles: list[_Handle] = []

    # --- what is drawn

    def plot(self, x: Any, y: Any, kind: str = "-", **o: Any) -> None:
        """A line, or marks."""
        x, y = np.atleast_1d(np.asarray(x, float)), np.atleast_1d(np.asarray(y, float))
        if o.get("drawstyle") == "steps-post" and len(x) > 1:
            x, y = np.repeat(x, 2)[1:], np.repeat(y, 2)[:-1]
        if "label" in o:
            self._handles.append(_Handle(o["color"], o["label"]))
        self._include(x, y)
        mark = o.get("marker") or (kind if kind in _MARKS or kind in ("o", ".") else "")
        dash = o.get("ls", "" if kind == mark else kind)
        if dash:
            style = _stroke(o, o.get("lw", 1.5), dash)
            self._put(o.get("zorder", 2), lambda *to: f'<path d="{self._line(x, y, to)}" style="{style}"/>')
        if mark:
            self._put(o.get("zorder", 2), lambda *to: self._marks(x, y, mark, o, to))

    def fill_between(self, x: Any, low: Any, high: Any = 0.0, **o: Any) -> None:
        """A band, in pieces where it is not known throughout."""
        x = np.asarray(x, float)
        low, high = np.broadcast_to(np.asarray(low, float), x.shape), np.broadcast_to(np.asarray(high, float), x.shape)
        known = np.isfinite(x + low + high)
        self._include(x[known], np.concatenate([low[known], high[known]]))
        edges = np.flatnonzero(np.diff(np.r_[0, known.astype(int), 0]))
        for a, b in zip(edges[::2], edges[1::2], strict=True):
            self._polygon(np.r_[x[a:b], x[a:b][::-1]], np.r_[high[a:b], low[a:b][::-1]], o)

    def fill(self, x: Any, y: Any, **o: Any) -> None:
        self._include(x, y)
        self._polygon(np.asarray(x, float), np.asarray(y, float), o)

    def stairs(self, height: Any, edges: Any, orientation: str = "vertical", fill: bool = False, **o: Any) -> None:
        """A histogram."""
        x, y = np.repeat(np.asarray(edges, float), 2), np.r_[0.0, np.repeat(np.asarray(height, float), 2), 0.0]
        x, y = (x, y) if orientation == "vertical" else (y, x)
        self._include(x, y)
        if fill:
            self._polygon(x, y, o)
        else:
            self.plot(x, y, **o)

    def barh(self, y: float, width: float, left: float = 0.0, height: float = 0.8, **o: Any) -> None:
        ends, sides = (left, left + width), (y - height / 2, y + height / 2)
        self.fill(np.array([ends[0], ends[1], ends[1], ends[0]]), np.repeat(sides, 2), **o)

    def hlines(self, y: Iterable[float], low: float, high: float, **o: Any) -> None:
        for value in y:
            self.plot([low, high], [value, value], **o)

    def axhline(self, y: float, **o: Any) -> None:
        self.yaxis.include(y)
        self._across(o, lambda left, top, w, h: (left, top + h * (1 - float(self.yaxis.place(y))), f"h{w:.5g}"))

    def axvline(self, x: float, **o: Any) -> None:
        self.xaxis.include(x)
        self._across(o, lambda left, top, w, h: (left + w * float(self.xaxis.place(x)), top, f"v{h:.5g}"))

    def axvspan(self, low: float, high: float, **o: Any) -> None:
        self.xaxis.include((low, high))

        def draw(left: float, top: float, w: float, h: float) -> str:
            a, b = np.clip(self.xaxis.place([low, high]), 0, 1) * w + left
            return f'<path d="M{a:.5g} {top:.5g}H{b:.5g}v{h:.5g}H{a:.5g}z" style="{_fill(o)}"/>'

        self._put(o.get("zorder", 1), draw)

    def annotate(self, words: str, at: tuple[float, float], offset: tuple[float, float], **o: Any) -> None:
        """Words beside a point, so many points to the right and up."""

        def draw(*to: float) -> str:
            (x,), (y,) = self._places([at[0]], [at[1]], to)
            size = o.get("fontsize", STYLE["small"])
            return _text(x + offset[0], y - offset[1] + 0.35 * size, words, size, o.get("color", STYLE["ink"]))

        self._put(o.get("zorder", 3), draw)

    # --- limits, ticks, words

    def set(self, **given: Any) -> None:
        for name, value in given.items():
            getattr(self, f"set_{name}")(value)

    def set_xlim(self, low: Any, high: Any = None) -> None:
        self.xaxis.limits = _pair(low, high)

    def set_ylim(self, low: Any = None, high: Any = None, bottom: float | None = None) -> None:
        self.yaxis.limits = (bottom, self.yaxis.ends[1]) if bottom is not None else _pair(low, high)

    def get_xlim(self) -> tuple[float, float]:
        return self.xaxis.ends

    def get_ylim(self) -> tuple[float, float]:
        return self.yaxis.ends

    def set_xscale(self, kind: str) -> None:
        self.xaxis.log = kind == "log"

    def set_yscale(self, kind: str) -> None:
        self.yaxis.log = kind == "log"

    def get_yscale(self) -> str:
        return "log" if self.yaxis.log else "linear"

    def set_xticks(self, at: Any, words: Sequence[str] | None = None, **o: Any) -> None:
        _set_ticks(self.xaxis, at, words, o)

    def set_yticks(self, at: Any, words: Sequence[str] | None = None, **o: Any) -> None:
        _set_ticks(self.yaxis, at, words, o)

    def minorticks_off(self) -> None:
        """There are none."""

    def set_axis_off(self) -> None:
        self._framed = False

    def tick_params(self, axis: str = "both", **o: Any) -> None:
        for name, own in (("x", self.xaxis), ("y", self.yaxis)):
            if axis in (name, "both"):
                own.size, own.turned = o.get("labelsize", own.size), o.get("labelrotation", own.turned)
        self.xaxis.shown = o.get("labelbottom", self.xaxis.shown)
        self.yaxis.shown = o.get("labelleft", self.yaxis.shown)

    def locator_params(self, axis: str = "both", nbins: int = _TICKS, integer: bool = False) -> None:
        for name, own in (("x", self.xaxis), ("y", self.yaxis)):
            if axis in (name, "both"):
                own.most, own.integer = nbins, integer or own.integer

    def set_xlabel(self, words: str, fontsize: float = STYLE["text"], color: str = STYLE["ink"], **_: Any) -> None:
        self.xaxis.label = words, fontsize, color

    def set_ylabel(self, words: str, fontsize: float = STYLE["text"], color: str = STYLE["ink"], **_: Any) -> None:
        self.yaxis.label = words, fontsize, color

    def set_title(self, words: str, fontsize: float = STYLE["text"], color: str = STYLE["ink"], **_: Any) -> None:
        self._title = words, fontsize, color

    def get_position(self) -> Box:
        return self.box

    def get_legend_handles_labels(self) -> tuple[list[_Handle], list[str]]:
        return self._handles, [handle.label for handle in self._handles]

    # --- as SVG

    def parts(self, width: float, height: float, key: str) -> list[str]:
        """The elements of these axes on a sheet of so many points."""
        to = (self.box.x0 * width, (1 - self.box.y1) * height, self.box.width * width, self.box.height * height)
        left, top, w, h = to
        clip = f'<clipPath id="{key}"><rect x="{left:.5g}" y="{top:.5g}" width="{w:.5g}" height="{h:.5g}"/></clipPath>'
        drawn = "".join(draw(*to) for _, draw in sorted(self._drawn, key=lambda one: one[0]))
        frame = self._frame(*to) if self._framed else []
        inside = f'<g clip-path="url(#{key})">{drawn}</g>' if self._framed else f"<g>{drawn}</g>"
        return [clip, *frame, inside, *(self._names(*to) if self._framed else [])]

    def _frame(self, left: float, top: float, w: float, h: float) -> list[str]:
        """Grid, numbers and the two lines they stand at."""
        found, below = [], top + h
        (xs, xwords), (ys, ywords) = self.xaxis.marks(), self.yaxis.marks()
        columns, rows = left + w * self.xaxis.place(xs), below - h * self.yaxis.place(ys)
        grid = "".join(f"M{x:.5g} {top:.5g}v{h:.5g}" for x in columns) + "".join(
            f"M{left:.5g} {y:.5g}h{w:.5g}" for y in rows
        )
        found.append(f'<path d="{grid}" style="stroke:{css_colour(STYLE["grid"])};stroke-width:.8"/>')
        frame = f"M{left:.5g} {top:.5g}V{below:.5g}h{w:.5g}"
        found.append(f'<path d="{frame}" style="stroke:{css_colour(STYLE["line"])};stroke-width:.8"/>')
        faint = STYLE["faint"]
        if self.xaxis.shown:
            turned, size = self.xaxis.turned, self.xaxis.size
            found += [_text(x, below + 4 + size, words, size, faint, "end" if turned else "middle", -turned)
                      for x, words in zip(columns, xwords, strict=True)]  # fmt: skip
        if self.yaxis.shown:
            size = self.yaxis.size
            found += [
                _text(left - 5, y + 0.35 * size, words, size, faint, "end")
                for y, words in zip(rows, ywords, strict=True)
            ]
        return found

    def _names(self, left: float, top: float, w: float, h: float) -> list[str]:
        found = []
        if self.xaxis.label:
            words, size, colour = self.xaxis.label
            more = 0.5 * _WIDE * size * max(map(len, self.xaxis.marks()[1]), default=0) if self.xaxis.turned else 0.0
            found.append(_text(left + w / 2, top + h + 18 + more + 0.35 * size, words, size, colour, "middle"))
        if self.yaxis.label:
            words, size, colour = self.yaxis.label
            words = words if len(words) * _WIDE * size <= 1.6 * h else f"{words[: int(1.6 * h / _WIDE / size)]}…"
            wide = (
                _WIDE * self.yaxis.size * max(map(len, self.yaxis.marks()[1]), default=0) if self.yaxis.shown else 0.0
            )
            found.append(_text(max(left - 10 - wide, size), top + h / 2, words, size, colour, "middle", -90.0))
        if self._title and self._title[0]:
            words, size, colour = self._title
            found.append(_text(left, top - 5, words, size, colour))
        return found

    def _put(self, order: float, draw: Callable[[float, float, float, float], str]) -> None:
        self._drawn.append((order, draw))

    def _include(self, x: Any, y: Any) -> None:
        self.xaxis.include(x)
        self.yaxis.include(y)

    def _places(self, x: Any, y: Any, to: tuple[float, ...]) -> tuple[Array, Array]:
        left, top, w, h = to
        return left + w * self.xaxis.place(x), top + h * (1 - self.yaxis.place(y))

    def _line(self, x: Array, y: Array, to: tuple[float, ...]) -> str:
        """A path with a gap where a value is not known."""
        X, Y = self._places(x, y, to)
        found, pen = [], False
        known = (np.isfinite(X) & np.isfinite(Y)).tolist()
        for a, b, seen in zip(X.tolist(), np.clip(Y, -_FAR, _FAR).tolist(), known, strict=True):
            if seen:
                found.append(f"{'L' if pen else 'M'}{round(a, 2):g} {round(b, 2):g}")
            pen = seen
        return "".join(found)

    def _polygon(self, x: Array, y: Array, o: dict[str, Any]) -> None:
        style = _fill(o)
        self._put(o.get("zorder", 1), lambda *to: f'<path d="{self._line(x, y, to)}z" style="{style}"/>')

    def _across(self, o: dict[str, Any], place: Callable[..., tuple[float, float, str]]) -> None:
        style = _stroke(o, o.get("lw", 1.5), o.get("ls", "-"))

        def draw(*to: float) -> str:
            x, y, rest = place(*to)
            return f'<path d="M{x:.5g} {y:.5g}{rest}" style="{style}"/>' if math.isfinite(x + y) else ""

        self._put(o.get("zorder", 2), draw)

    def _marks(self, x: Array, y: Array, mark: str, o: dict[str, Any], to: tuple[float, ...]) -> str:
        X, Y = self._places(x, y, to)
        seen = np.isfinite(X) & np.isfinite(Y) & (np.abs(Y) < _FAR)
        size, colour = o.get("ms", 6.0) * (0.5 if mark == "." else 1.0), css_colour(o.get("color", PALETTE[0]))
        alpha = f";opacity:{o['alpha']:g}" if "alpha" in o else ""
        edge, rim = o.get("mew", 1.0 if "mec" in o else 0.0), css_colour(o.get("mec", o.get("color", PALETTE[0])))
        if mark in "o.":
            d = "".join(
                f"M{round(a, 1):g} {round(b, 1):g}h0" for a, b in zip(X[seen].tolist(), Y[seen].tolist(), strict=True)
            )
            layers = [(rim, size + edge), (colour, size)] if edge else [(colour, size)]
            return "".join(
                f'<path d="{d}" style="stroke:{c};stroke-width:{s:.3g};stroke-linecap:round{alpha}"/>'
                for c, s in layers
            )
        shape = np.reshape(_MARKS[mark], (-1, 2)) * size
        d = "".join("M" + "L".join(f"{a + dx:.4g} {b + dy:.4g}" for dx, dy in shape) + "z"
                    for a, b in zip(X[seen].tolist(), Y[seen].tolist(), strict=True))  # fmt: skip
        return f'<path d="{d}" style="fill:{colour};stroke:{rim};stroke-width:{edge:g}{alpha}"/>' if d else ""


def _set_ticks(axis: Axis, at: Any, words: Sequence[str] | None, o: dict[str, Any]) -> None:
    at = np.atleast_1d(np.asarray(at, float))
    axis.ticks = at, [""] * len(at) if words is None else list(words)
    axis.size = o.get("fontsize", axis.size)


def _pair(low: Any, high: Any) -> tuple[float, float]:
    a, b = low if high is None else (low, high)
    return float(a), float(b)


def _stroke(o: dict[str, Any], width: float, kind: Any) -> str:
    style = f"stroke:{css_colour(o.get('color', PALETTE[0]))};stroke-width:{width:g};stroke-linejoin:round"
    dash = [v * width for v in (_DASHES[kind] if isinstance(kind, str) else kind[1])]
    if dash:
        style += f";stroke-dasharray:{' '.join(f'{v:.3g}' for v in dash)}"
    return style + (f";opacity:{o['alpha']:g}" if o.get("alpha") is not None else "")


def _fill(o: dict[str, Any]) -> str:
    return f"fill:{css_colour(o.get('color', PALETTE[0]))}" + (
        f";opacity:{o['alpha']:g}" if o.get("alpha") is not None else ""
    )


def _text(x: float, y: float, words: str, size: float, colour: str, anchor: str = "start", turned: float = 0.0) -> str:
    """Words on a line; characters that XML does not have are left out."""
    plain = escape("".join(c if c.isprintable() else " " for c in words))
    turn = f' transform="rotate({turned:g} {x:.5g} {y:.5g})"' if turned else ""
    where = f' text-anchor="{anchor}"' if anchor != "start" else ""
    place = f'x="{x:.5g}" y="{y:.5g}" font-size="{size:g}"{where}{turn}'
    return f'<text {place} style="fill:{css_colour(colour)}">{plain}</text>'
