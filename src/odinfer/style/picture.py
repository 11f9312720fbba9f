"""Figures of several panels: single panels for pages, or one sheet for a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from odinfer.errors import InputError
from odinfer.style.drawing import PALETTE, STYLE, WIDTH, add_axes, new_figure, set_label, set_title, shorten
from odinfer.style.svg import SvgFigure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LETTER = 0.07  # inches of a letter of a title, about
_NARROWEST = 2.2  # inches of a panel on a sheet, at least
PANEL = 4.5  # inches that a panel is wide by itself
_LEFT, _RIGHT, _BOTTOM, _TOP, _TITLE, _ROW = 0.72, 0.14, 0.46, 0.1, 0.2, 0.22  # inches around it; a row of the legend


@dataclass(frozen=True)
class LegendEntry:
    """What a mark means: a line "-", "--" or ":", dots "o", triangles "v" and "^", a "band" or an "outer" one."""

    words: str
    mark: str
    colour: str = PALETTE[0]


@dataclass(frozen=True)
class Plot:
    """One panel.

    Attributes:
        name: what it is about.
        alt: what it shows, for those who do not see it.
        draw: puts it on axes.
        x, y: what the axes are; `name` if not given.
        time: the label of the axis of time, where x is the time.
        title, colour: a line above it.
        aside: the share of its width that is kept free on the right.
        live: the same as plain data, for a page that lets it be zoomed; see `live.js`.
    """

    name: str
    alt: str
    draw: Callable[[Axes], None]
    x: str = "time"
    y: str = ""
    time: str = "time"
    title: str = ""
    colour: str = STYLE["ink"]
    aside: float = 0.0
    live: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class PanelFigure:
    """Panels that belong together, what their marks mean, whose colours they have, and what is to be said of them."""

    plots: tuple[Plot, ...]
    keys: tuple[LegendEntry, ...] = ()
    groups: tuple[tuple[str, str], ...] = ()
    note: str = ""
    height: float = 0.0

    @property
    def tall(self) -> float:
        """Inches of a panel without its title."""
        return self.height or (2.2 if len(self.plots) > 2 else 2.7)


@dataclass(frozen=True)
class SingleFigure:
    """A picture that is one sheet with a layout of its own.

    Attributes:
        height, width: inches.
        draw: puts it on a sheet.
        alt: what it shows in words.
    """

    height: float
    width: float
    draw: Callable[[Any], None] = field(repr=False)
    alt: str = ""

    @property
    def figure(self) -> Figure:
        """With matplotlib, for a file."""
        figure = new_figure(self.height, self.width)
        self.draw(figure)
        return figure

    def svg(self) -> bytes:
        """Without matplotlib, for a page."""
        figure = SvgFigure(self.height, self.width)
        self.draw(figure)
        return figure.svg()


def panel_figure(plot: Plot, height: float = 2.3) -> Figure:
    """A panel by itself."""
    figure = new_figure(height + _TITLE * bool(plot.title), PANEL)
    _draw_alone(plot, figure, height)
    return figure


def panel_svg(plot: Plot, height: float = 2.3, titled: bool = False) -> bytes:
    """The same without matplotlib, for a page; `titled` leaves room for a title, as others beside it have one."""
    figure = SvgFigure(height + _TITLE * (titled or bool(plot.title)), PANEL)
    _draw_alone(plot, figure, height)
    return figure.svg()


def _draw_alone(plot: Plot, figure: Any, height: float) -> None:
    width = (PANEL - _LEFT - _RIGHT) * (1 - plot.aside)
    _draw_panel(plot, add_axes(figure, _LEFT, _BOTTOM, width, height - _BOTTOM - _TOP))


def combined_figure(picture: PanelFigure, width: float = WIDTH) -> Figure:
    """All panels in rows, below what their marks mean; laid out by hand: constrained layout would draw it twice.

    Args:
        picture: the panels.
        width: of the figure in inches; narrow figures have fewer panels in a row.
    """
    n, above = len(picture.plots), _TITLE * any(plot.title for plot in picture.plots)
    height = picture.tall + above
    aside = any(plot.aside for plot in picture.plots)
    columns = min(n, 2) if n <= 4 else 2 if aside and n <= 12 else 3 if n <= 12 else 4
    columns = max(1, min(columns, int(width / _NARROWEST)))
    keys = _legend_rows([(_legend_handle(key), key.words) for key in picture.keys], width)
    if picture.groups:
        from matplotlib.lines import Line2D

        keys += _legend_rows([(Line2D([], [], color=colour, lw=4), words) for words, colour in picture.groups], width)
    each, head = width / columns, 0.14 + _ROW * max(len(keys), 1)
    total = -(-n // columns) * height + head
    figure = new_figure(total, width)
    for i, plot in enumerate(picture.plots):
        left, bottom = i % columns * each + _LEFT, total - head - (i // columns + 1) * height + _BOTTOM
        width = (each - _LEFT - _RIGHT) * (1 - plot.aside)
        ax = add_axes(figure, left, bottom, width, height - _BOTTOM - _TOP - above)
        shown = replace(plot, title=_fitting(plot.title, each))
        _draw_panel(shown, ax, below=plot.x if plot.x != "time" or i >= n - columns else "")
    for i, row in enumerate(keys):
        _legend(figure, i, *zip(*row, strict=True))
    if picture.note:
        figure.text(0.99, 0.995, picture.note, ha="right", va="top", fontsize=STYLE["small"], color=STYLE["faint"],
                    parse_math=False)  # fmt: skip
    return figure


def _fitting(title: str, width: float) -> str:
    """A title for a panel so many inches wide: without what is in brackets at its end, or shortened."""
    most = int(width / _LETTER)
    if len(title) > most and title.endswith(")"):
        title = title.rpartition(" (")[0]
    return shorten(title, most)


def draw_panels(picture: PanelFigure, ax: Any) -> list[Axes]:
    """Draw the panels on matplotlib axes of the caller, one on each.

    Raises:
        InputError: there are fewer axes than panels.
    """
    axes = list(np.ravel(np.asarray(ax, dtype=object)))
    if len(axes) < len(picture.plots):
        raise InputError(f"this plot has {len(picture.plots)} panels, but ax has {len(axes)} axes")
    for own, plot in zip(axes, picture.plots, strict=False):
        _draw_panel(plot, own)
    return axes[: len(picture.plots)]


def _draw_panel(plot: Plot, ax: Axes, below: str | None = None) -> None:
    plot.draw(ax)
    set_label(ax.set_ylabel, plot.y or plot.name)
    if words := plot.x if below is None else below:
        set_label(ax.set_xlabel, plot.time if words == "time" else words)
    if plot.title:
        set_title(ax, plot.title, plot.colour)


def _legend_handle(key: LegendEntry) -> Any:
    from matplotlib.lines import Line2D

    kinds: dict[str, dict[str, Any]] = {
        "o": {"marker": "o", "ls": "", "ms": 4.5},
        **{m: {"color": "white", "mec": key.colour, "marker": m, "ls": "", "ms": 5} for m in "v^"},
        "-": {"lw": 1.5},
        "--": {"lw": 1.5, "ls": "--"},
        ":": {"lw": 1.0, "ls": ":"},
        "band": {"lw": 7, "alpha": 0.18, "solid_capstyle": "butt"},
    }
    return Line2D([], [], **{"color": key.colour, **kinds[key.mark]})


def _legend_rows(keys: list[tuple[Any, str]], width: float) -> list[list[tuple[Any, str]]]:
    """Entries of a legend in as many rows as they need, by how wide their words are about."""
    rows: list[list[tuple[Any, str]]] = []
    left = 0.0
    for key in keys:
        wide = 0.45 + 0.062 * len(key[1])
        if not rows or wide > left:
            rows.append([])
            left = width
        rows[-1].append(key)
        left -= wide
    return rows


def _legend(figure: Figure, row: int, handles: tuple[Any, ...], words: tuple[str, ...]) -> None:
    top = 1.0 - row * _ROW / figure.get_size_inches()[1]
    legend = figure.legend(handles, ["-"] * len(handles), loc="upper left", ncols=len(handles), frameon=False,
                           fontsize=STYLE["small"], labelcolor=STYLE["ink"], handlelength=1.4, columnspacing=1.3,
                           bbox_to_anchor=(0.006, top), borderaxespad=0.3)  # fmt: skip
    for text, word in zip(legend.get_texts(), words, strict=True):
        # Set afterwards: a legend drops words that start with _ and reads $ as mathematics.
        text.set(text=word, parse_math=False)
