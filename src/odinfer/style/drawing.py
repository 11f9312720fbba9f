"""Colours (light and dark), axes and number formats of all figures.

Figures share nothing with pyplot: safe on servers, in threads.
"""

from __future__ import annotations

import io
import re
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from odinfer.style.text import format_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DPI = 150
RASTER = 110  # of what is drawn as pixels inside of drawings
# Okabe and Ito's colours, which people with any colour vision can tell apart.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#4D4D4D")
GOOD, BAD, UNKNOWN = "#0072B2", "#D55E00", "#8A8F98"
STYLE: dict[str, Any] = {
    "ink": "#2B2F36",
    "faint": "#6B7280",
    "line": "#C9CDD3",
    "grid": "#ECEEF1",
    "text": 9,
    "small": 8,
}
_DRAWN = 1000  # of many points: as many as a picture shows apart, so that a report of any series can be sent
WIDTH = 9.6  # inches of a sheet
ROWS = 5.6  # of a picture with a row per thing: as wide as a telephone can show
# What a colour is called in style sheets, and what it becomes on a dark page.
THEME: dict[str, tuple[str, str]] = {
    STYLE["ink"]: ("ink", "#E7E9EE"),
    STYLE["faint"]: ("faint", "#A3ABB8"),
    STYLE["line"]: ("line", "#555D6B"),
    STYLE["grid"]: ("grid", "#2B313B"),
    "#FFFFFF": ("back", "#1D2128"),
    UNKNOWN: ("unknown", "#9AA1AC"),
    **{
        light: (f"c{i}", dark)
        for i, (light, dark) in enumerate(
            zip(PALETTE, ("#58ADE3", "#F5884E", "#2FC59B", "#E39BC4", "#F2B632", "#94D0F3", "#BDBDBD"), strict=True)
        )
    },
}
# Half-way between its colours by day and by night: for pixels in drawings, which cannot change.
CLOUD = "#2C8FCA"
_FONT = "'DejaVu Sans', 'Verdana', sans-serif"
_NAMES = {light.lower(): name for light, (name, _) in THEME.items()}


def css_colour(colour: str) -> str:
    """A colour for style sheets: by its name, so that it follows the page, if it has one."""
    colour = {"white": "#FFFFFF"}.get(colour, colour)
    name = _NAMES.get(colour.lower())
    return f"var(--plot-{name})" if name else colour


def theme_css() -> str:
    """The style sheet that gives colours their values, by day and by night; paper is always white."""
    day = "".join(f"--plot-{name}:{light};" for light, (name, _) in THEME.items())
    night = "".join(f"--plot-{name}:{dark};" for name, dark in THEME.values())
    return f":root{{{day}}}@media screen and (prefers-color-scheme:dark){{:root{{{night}}}}}"


def neutral_theme_css() -> str:
    """The same for places whose colour nobody knows, such as notebooks: what is seen on white and on black alike."""
    given = {"ink": "#767B84", "faint": "#7B808A", "grid": "#80808040", "back": "#80808000"}
    between = {name: _mean_colour(light, dark) for light, (name, dark) in THEME.items()} | given
    return f":root{{{''.join(f'--plot-{name}:{colour};' for name, colour in between.items())}}}"


def _mean_colour(a: str, b: str) -> str:
    """The colour half-way between two."""
    return "#" + "".join(f"{(int(a[i : i + 2], 16) + int(b[i : i + 2], 16)) // 2:02X}" for i in (1, 3, 5))


def svg(figure: Figure, style: str = "") -> bytes:
    """A figure as an SVG file that follows the reader's choice of light or dark, or has another style sheet.

    Words stay words.
    """
    from matplotlib import rc_context

    figure.patch.set_visible(False)
    for ax in figure.axes:
        ax.patch.set_visible(False)
    buffer = io.StringIO()
    # Equal fits give equal files: no date, no random names.
    options: dict[Any, Any] = {
        "svg.fonttype": "none",
        "svg.hashsalt": "odinfer",
        "font.sans-serif": ["DejaVu Sans", "Verdana"],
    }
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with rc_context(options), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(buffer, format="svg", metadata=nothing, dpi=RASTER)
    text = buffer.getvalue()
    text = re.sub(r"(fill|stroke): (#[0-9a-f]{6})", lambda m: f"{m[1]}: {css_colour(m[2])}", text[text.index("<svg") :])
    # A hundredth of a point is seen by nobody.
    text = re.sub(r' [dxy]="[^"]*"', lambda m: re.sub(r"(?<=\d\.\d\d)\d+", "", m[0]), text)
    text = re.sub(r' (?:id="(?!m|p[0-9a-f])[^"]*"|transform="rotate\(-0 [^"]*")', "", text)
    text = re.sub(r"\s*\n\s*", "\n", text).replace(f"font-family: {_FONT}; ", "")
    text = re.sub(r'(?:<use [^>]*( style="[^"]*")/>\n)(?:<use [^>]*\1/>\n)+', _group_marks, text)
    words = f"text{{font-family:{_FONT};fill:{css_colour(STYLE['ink'])}}}"  # black is the default
    return text.replace("<defs>", f"<style>{words}{style or theme_css()}</style><defs>", 1).encode()


def _group_marks(alike: re.Match[str]) -> str:
    """Marks that look alike, in a group that says so once."""
    return f"<g{alike[1]}>\n{alike[0].replace(alike[1], '')}</g>\n"


def png(figure: Figure, dpi: int = DPI) -> bytes:
    """A figure as the bytes of a PNG file."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        # A name in a script that the font lacks shows as boxes; that is no reason to bother the user.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        # Little compression: half the time for a slightly larger file. No metadata: equal fits give equal files.
        figure.savefig(buffer, format="png", dpi=dpi, metadata={"Software": None}, pil_kwargs={"compress_level": 4})
    return buffer.getvalue()


def new_figure(height: float, width: float = WIDTH) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure((width, height), facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def add_axes(figure: Any, left: float, bottom: float, width: float, height: float) -> Any:
    """Axes at so many inches on a sheet: matplotlib's, or those of `svg.SvgFigure`, which look so already."""
    w, h = figure.get_size_inches()
    ax = figure.add_axes((left / w, bottom / h, width / w, height / h))
    if not hasattr(ax, "spines"):
        return ax
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(STYLE["line"])
    ax.tick_params(labelsize=STYLE["small"], color=STYLE["line"], labelcolor=STYLE["faint"], length=3)
    ax.grid(color=STYLE["grid"], lw=0.8)
    ax.set_axisbelow(True)
    set_title(ax, "")
    ax.locator_params(axis="both", nbins=6)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(partial(_format_tick, axis))
    return ax


def _format_tick(axis: Any, value: float, _: Any) -> str:
    return format_tick(value, *axis.get_view_interval())


def format_tick(value: float, low: float, high: float) -> str:
    """A number on an axis from low to high, in full: a factor or an offset in a corner is easily overlooked."""
    size, span = max(abs(low), abs(high)), high - low
    value = 0.0 if abs(value) < 1e-9 * span else value  # which the locator's rounding errors hide
    digits = int(np.clip(np.ceil(np.log10(size / span)) + 3, 4, 12)) if span > 0 else 4
    return format_number(value, digits).replace("-", "\N{MINUS SIGN}")


def thin_points(y: NDArray[np.float64]) -> NDArray[np.int64]:
    """Places of the values (N,) to draw: all, or of many that are there the extremes of each stretch, and some more.

    So a cloud of any number of points keeps its outline.
    """
    seen = np.flatnonzero(np.isfinite(y))
    if len(seen) <= _DRAWN:
        return np.arange(len(y))
    count = _DRAWN // 16  # of stretches: if extremes were many, they would look like clouds of their own
    stretch = np.arange(len(seen)) * count // len(seen)
    order = np.lexsort((y[seen], stretch))  # within each stretch from low to high
    begin = np.searchsorted(stretch, np.arange(count))
    ends = order[np.concatenate([begin, np.append(begin[1:], len(seen)) - 1])]
    others = np.linspace(0, len(seen) - 1, _DRAWN - 2 * count).round().astype(np.int64)
    return np.asarray(seen[np.union1d(ends, others)])


def set_label(put: Any, words: str, colour: str = "", **more: Any) -> None:
    put(words, fontsize=STYLE["text"], color=colour or STYLE["ink"], parse_math=False, **more)


def set_title(ax: Axes, words: str, colour: str = "") -> None:
    """Words above axes; at a fixed height, or else matplotlib lays all ticks out once more to find it."""
    set_label(ax.set_title, words, colour, loc="left", y=1.0)


def escape_math(words: str) -> str:
    """Words for ticks and legends, which would read what is between dollars as mathematics."""
    return words.replace("$", r"\$")


def shorten(name: str, most: int = 18) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"
